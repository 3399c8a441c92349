/* tests/runtime/remade.c - see remade.h. */
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "tests/runtime/remade.h"
#include "tests/support/shared.h"

enum { TOKENS = 37 };

static char folder[200];

/* ---- a safetensors file, read */

void original_read(struct original *o, const char *dir)
{
	char path[1100];
	uint64_t length;
	size_t n;

	snprintf(path, sizeof path, "%s/config.json", dir);
	char *text = (char *)file_bytes(path, &n);
	text[n] = 0;
	for (char *p; (p = strstr(text, "Infinity"));) /* which is no JSON */
		memcpy(p, "100000.0", 8);
	o->config = json_loads(text, 0, NULL);
	free(text);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	o->file = file_bytes(path, &n);
	memcpy(&length, o->file, 8);
	o->header = json_loadb((char *)o->file + 8, length, 0, NULL);
	o->data = o->file + 8 + length;
	assert_true(o->config && o->header);
}

bool original_open(struct original *o, const char *name)
{
	char path[1024], relative[100];

	snprintf(relative, sizeof relative, "golden/%s", name);
	if (!shared_path(path, relative))
		return false;
	original_read(o, path);
	return true;
}

void original_close(struct original *o)
{
	json_decref(o->config);
	json_decref(o->header);
	free(o->file);
}

struct slice original_slice(json_t *entry, const uint8_t *data)
{
	json_t *at = json_object_get(entry, "data_offsets"), *shape = json_object_get(entry, "shape");
	struct slice t = { .dim = { 1, 1, 1, 1 }, .rank = json_array_size(shape), .type = DTYPE_BF16 };
	uint64_t from = (uint64_t)json_integer_value(json_array_get(at, 0));

	for (size_t i = 0; i < t.rank; i++)
		t.dim[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
	if (strcmp(json_string_value(json_object_get(entry, "dtype")), "F32") == 0)
		t.type = DTYPE_F32;
	t.p = data + from;
	t.bytes = (size_t)json_integer_value(json_array_get(at, 1)) - from;
	return t;
}

/* ---- what is made of it */

char *remade_path(char out[300], const char *name)
{
	snprintf(out, 300, "%s/%s", folder, name);
	return out;
}

void remade_file(const char *name, const void *p, size_t n)
{
	char path[300];
	FILE *f = fopen(remade_path(path, name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* The directory of a model: its files. */
void remade_model(const char *name, struct st_writer *w, json_t *config)
{
	char path[300], file[260];
	size_t n;
	uint8_t *weights = st_writer_finish(w, 8, &n);
	char *text = json_dumps(config, 0);

	mkdir(remade_path(path, name), 0777);
	snprintf(file, sizeof file, "%s/model.safetensors", name);
	remade_file(file, weights, n);
	snprintf(file, sizeof file, "%s/config.json", name);
	remade_file(file, text, strlen(text));
	free(weights);
	free(text);
}

void remade_put(struct st_writer *w, const char *name, const struct slice *t)
{
	st_write_tensor(w, name, t->type, (unsigned)t->rank, t->dim, t->p, t->bytes);
}

/* ---- heads of a state cut in two */

static void put_twice(struct st_writer *w, const char *name, const struct slice *t, uint64_t first)
{
	const uint64_t columns = t->bytes / t->dim[0], more = t->dim[0] - first;
	uint64_t shape[2] = { first + 2 * more, t->dim[1] };
	uint8_t *all = malloc(shape[0] * columns), *at = all + first * columns;

	memcpy(all, t->p, first * columns);
	for (uint64_t r = first; r < t->dim[0]; r++)
		for (int i = 0; i < 2; i++, at += columns)
			memcpy(at, t->p + r * columns, columns);
	st_write_tensor(w, name, t->type, (unsigned)t->rank, shape, all, shape[0] * columns);
	free(all);
}

bool remade_halves(const char *made, const char *name, const char *heads, const char *head_dim)
{
	static const char *const of_heads[] = { ".A_log", ".D", ".dt_bias" };
	struct original o;
	struct st_writer w;
	const char *key;
	json_t *entry;

	if (!original_open(&o, name))
		return false;
	const json_int_t n = json_integer_value(json_object_get(o.config, heads)),
			 dim = json_integer_value(json_object_get(o.config, head_dim));
	json_object_set_new(o.config, heads, json_integer(2 * n));
	json_object_set_new(o.config, head_dim, json_integer(dim / 2));
	st_writer_start(&w);
	json_object_foreach(o.header, key, entry)
	{
		struct slice t = strcmp(key, "__metadata__") ? original_slice(entry, o.data) : (struct slice){ 0 };
		bool each = false;
		for (size_t i = 0; i < sizeof of_heads / sizeof *of_heads; i++)
			each = each || strcmp(key + strlen(key) - strlen(of_heads[i]), of_heads[i]) == 0;
		if (each)
			put_twice(&w, key, &t, 0);
		else if (strstr(key, "in_proj.weight")) /* the steps stand last */
			put_twice(&w, key, &t, t.dim[0] - (uint64_t)n);
		else if (t.p)
			remade_put(&w, key, &t);
	}
	remade_model(made, &w, o.config);
	original_close(&o);
	return true;
}

/* ---- logits */

static float *logits_of(const char *path, struct remade_run run, size_t *n)
{
	jit_error err = { 0 };
	int32_t ids[TOKENS];
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = run.device, .cache_dir = ""), &err);
	jit_model_info info = JIT_MODEL_INFO();

	if (!m)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	*n = (size_t)info.vocab;
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i * 31 + 5) % info.vocab;
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 64, .kv = JIT_KV_F32, .batch = run.batch, .threads = 2), &err);
	if (!s || jit_session_feed(s, ids, TOKENS, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
	float *out = malloc(*n * sizeof *out);
	memcpy(out, jit_session_logits(s, &err), *n * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

/* tolerance: of the largest; 0: the same bits. */
void remade_compare(const char *a, struct remade_run run_a, const char *b, struct remade_run run_b, double tolerance)
{
	size_t n, m;
	float *x = logits_of(a, run_a, &n), *y = logits_of(b, run_b, &m);
	double worst = 0, largest = 0;

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
		largest = fmax(largest, fabs((double)x[i]));
	}
	if (!(worst <= tolerance * largest) || (tolerance == 0 && memcmp(x, y, n * sizeof *x) != 0))
		fail_msg("%s on %s and %s on %s differ by %g of %g", a, run_a.device, b, run_b.device, worst, largest);
	assert_true(largest > 0);
	free(x);
	free(y);
}

int remade_start(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof folder, "%s/jitrun-scan-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

bool remade_differ(const char *a, const char *b)
{
	size_t n, m;
	float *x = logits_of(a, (struct remade_run){ "cpu", 16 }, &n),
	      *y = logits_of(b, (struct remade_run){ "cpu", 16 }, &m);
	bool differ = n != m || memcmp(x, y, n * sizeof *x) != 0;

	free(x);
	free(y);
	return differ;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }
int remade_end(void **state) { return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
