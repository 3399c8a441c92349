/* tests/runtime/t_text_encoders.c - models that encode texts, against what HF transformers computed for them: hidden
 * states, pooled vectors and scores; and the same bits alone, among others of any length, for any number of threads,
 * target and simulated card.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun_texts.h"
#include "runtime/model/model.h"
#include "tests/runtime/jina_model.h"
#include "tests/support/shared.h"
#include "tests/support/warm_pack.h"

/* Of the largest number of a text: what float32 may differ by from float32 in another order. */
#define TOLERANCE 1e-5

#define BOTH(name) name, name "/model-bf16.gguf"
static const char *const folders[] = { BOTH("enc-bert-a"),     BOTH("enc-roberta-a"), BOTH("enc-distilbert-a"),
	                               "enc-mpnet-a",          "enc-nomic-a",         BOTH("enc-modernbert-a"),
	                               BOTH("enc-eurobert-a"), BOTH("enc-gemma-a") };
#undef BOTH
enum { FOLDERS = sizeof folders / sizeof *folders, TEXTS = 3 };

static char path[1024];

/* ---- reference data */

struct expected {
	size_t n;
	int32_t *ids;
	float *hidden; /* n rows */
	size_t width;
};

/* The f32 tensor of that name, malloc'ed. */
static float *read_tensor(const char *file, const char *name, size_t *n)
{
	FILE *f = fopen(file, "rb");
	uint64_t header;

	assert_non_null(f);
	assert_int_equal(fread(&header, 8, 1, f), 1);
	char *text = malloc(header);
	assert_int_equal(fread(text, 1, header, f), header);
	json_t *all = json_loadb(text, header, 0, NULL), *t = json_object_get(all, name);
	assert_non_null(t);
	const json_t *at = json_object_get(t, "data_offsets");
	const long begin = (long)json_integer_value(json_array_get(at, 0)),
		   end = (long)json_integer_value(json_array_get(at, 1));
	*n = (size_t)(end - begin) / sizeof(float);
	float *out = malloc(*n * sizeof *out);
	assert_int_equal(fseek(f, 8 + (long)header + begin, SEEK_SET), 0);
	assert_int_equal(fread(out, sizeof *out, *n, f), *n);
	fclose(f);
	free(text);
	json_decref(all);
	return out;
}

static int32_t *read_ids(const json_t *list, size_t *n)
{
	*n = json_array_size(list);
	int32_t *ids = malloc(*n * sizeof *ids);
	for (size_t i = 0; i < *n; i++)
		ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
	return ids;
}

/* Of a folder, or of a file in one. */
static const char *folder_of(const char *name, char out[200], const char *file)
{
	const size_t n = strcspn(name, "/");

	snprintf(out, 200, "golden-more/%.*s/%s", (int)n, name, file);
	return out;
}

static void read_expected(const char *name, struct expected out[TEXTS])
{
	char file[200], where[1024], tensor[32];

	assert_non_null(shared_path(where, folder_of(name, file, "expected.json")));
	json_t *o = json_load_file(where, 0, NULL), *runs = json_object_get(o, "runs");
	assert_int_equal(json_array_size(runs), TEXTS);
	assert_non_null(shared_path(where, folder_of(name, file, "hidden.safetensors")));
	for (size_t i = 0; i < TEXTS; i++) {
		size_t floats;
		out[i].ids = read_ids(json_object_get(json_array_get(runs, i), "ids"), &out[i].n);
		snprintf(tensor, sizeof tensor, "hidden%zu", out[i].n);
		out[i].hidden = read_tensor(where, tensor, &floats);
		out[i].width = floats / out[i].n;
	}
	json_decref(o);
}

static void free_expected(struct expected e[TEXTS])
{
	for (size_t i = 0; i < TEXTS; i++) {
		free(e[i].ids);
		free(e[i].hidden);
	}
}

/* ---- models */

struct opened {
	jit_model *m;
	jit_session *s;
};

/* sealed: a pack with the kernels, or NULL */
static struct opened open_sealed(const char *name, const char *device, const char *isa, int threads, const char *sealed)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = sealed ? sealed : "",
	                                         .sealed = sealed != NULL);
	jit_session_options so = JIT_SESSION_OPTIONS(.threads = threads);
	char relative[200];
	struct opened o = { 0 };
	jit_error err = { 0 };

	snprintf(relative, sizeof relative, "golden-more/%s", name);
	if (!shared_path(path, relative))
		return o;
	if (!(o.m = jit_model_open(path, &mo, &err)))
		fail_msg("%s: %s", name, err.message);
	if (!(o.s = jit_session_open(o.m, &so, &err)))
		fail_msg("%s: %s", name, err.message);
	return o;
}

static struct opened open_with(const char *name, const char *device, const char *isa, int threads)
{
	return open_sealed(name, device, isa, threads, NULL);
}

static struct opened open_model(const char *name) { return open_with(name, "cpu", NULL, 2); }

static void close_model(struct opened *o)
{
	jit_session_close(o->s);
	jit_model_close(o->m);
}

static void embed(const struct opened *o, const struct expected *e, int pooling, int normalise, float *out, size_t n)
{
	const jit_embedding_options eo = JIT_EMBEDDING_OPTIONS(.pooling = pooling, .normalise = normalise);
	jit_error err = { 0 };

	if (jit_session_embed(o->s, e->ids, e->n, &eo, out, n, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
}

static void compare(const char *name, const char *what, const float *got, const float *want, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, fabs((double)want[i]));
		worst = fmax(worst, fabs((double)want[i] - (double)got[i]));
	}
	if (!(worst <= TOLERANCE * largest))
		fail_msg("%s: %s differs by %g of %g", name, what, worst, largest);
}

static void test_hidden_states(void **state)
{
	(void)state;
	for (size_t f = 0; f < FOLDERS; f++) {
		struct opened o = open_model(folders[f]);
		struct expected e[TEXTS];
		if (!o.m)
			continue;
		read_expected(folders[f], e);
		for (size_t i = 0; i < TEXTS; i++) {
			const size_t n = e[i].n * e[i].width;
			float *rows = malloc(n * sizeof *rows);
			embed(&o, &e[i], JIT_POOL_NONE, 0, rows, n);
			compare(folders[f], "hidden states", rows, e[i].hidden, n);
			free(rows);
		}
		free_expected(e);
		close_model(&o);
	}
}

/* ---- pooled vectors, from the reference's rows */

static void pool_plainly(const struct expected *e, int pooling, double *out)
{
	for (size_t i = 0; i < e->width; i++) {
		double sum = 0;
		for (size_t k = 0; k < e->n; k++)
			sum += (double)e->hidden[k * e->width + i];
		out[i] = pooling == JIT_POOL_MEAN  ? sum / (double)e->n
		         : pooling == JIT_POOL_CLS ? (double)e->hidden[i]
		                                   : (double)e->hidden[(e->n - 1) * e->width + i];
	}
}

static void check_pooled(const struct opened *o, const char *name, const struct expected *e, int pooling, int normalise)
{
	double want[512], length = 0;
	float got[512], wanted[512];

	assert_true(e->width <= 512);
	pool_plainly(e, pooling, want);
	for (size_t i = 0; i < e->width; i++)
		length += want[i] * want[i];
	for (size_t i = 0; i < e->width; i++)
		wanted[i] = (float)(normalise ? want[i] / sqrt(length) : want[i]);
	embed(o, e, pooling, normalise, got, e->width);
	compare(name, "a pooled vector", got, wanted, e->width);
}

static void test_pooled_vectors(void **state)
{
	static const int ways[] = { JIT_POOL_MEAN, JIT_POOL_CLS, JIT_POOL_LAST };
	(void)state;

	for (size_t f = 0; f < FOLDERS; f++) {
		struct opened o = open_model(folders[f]);
		struct expected e[TEXTS];
		if (!o.m)
			continue;
		read_expected(folders[f], e);
		for (size_t i = 0; i < TEXTS; i++)
			for (size_t w = 0; w < 3; w++)
				check_pooled(&o, folders[f], &e[i], ways[w], (int)(i + w) % 2);
		free_expected(e);
		close_model(&o);
	}
}

/* ---- scores of pairs */

static void test_scores(void **state)
{
	static const char *const ranks[] = { "enc-bert-a-rank", "enc-roberta-a-rank", "enc-modernbert-a-rank" };
	const jit_embedding_options rank = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_RANK);
	(void)state;

	for (size_t f = 0; f < sizeof ranks / sizeof *ranks; f++) {
		struct opened o = open_model(ranks[f]);
		jit_model_info info = JIT_MODEL_INFO();
		char file[200], where[1024];
		jit_error err = { 0 };
		if (!o.m)
			continue;
		assert_int_equal(jit_model_get_info(o.m, &info, &err), JIT_OK);
		assert_int_equal(info.pooling, JIT_POOL_RANK);
		assert_non_null(shared_path(where, folder_of(ranks[f], file, "expected.json")));
		json_t *root = json_load_file(where, 0, NULL), *runs = json_object_get(root, "runs"), *run;
		size_t i;
		json_array_foreach(runs, i, run)
		{
			jit_embedding_text t = { 0 };
			int32_t *ids = read_ids(json_object_get(run, "ids"), &t.n), types[128] = { 0 };
			const json_int_t first = json_integer_value(json_object_get(run, "first"));
			const float want = (float)json_number_value(json_object_get(run, "score"));
			float got = 0;
			for (size_t k = (size_t)first; f == 0 && k < t.n; k++)
				types[k] = 1;
			t.ids = ids;
			t.types = types;
			if (jit_session_embed_texts(o.s, &t, 1, &rank, &got, 1, &err) != JIT_OK)
				fail_msg("%s: %s", ranks[f], err.message);
			compare(ranks[f], "a score", &got, &want, 1);
			free(ids);
		}
		json_decref(root);
		close_model(&o);
	}
}

/* ---- the same bits everywhere */

/* Texts of any length: some of the reference's ids, over and over. */
struct drawn {
	jit_embedding_text text;
	int32_t ids[128];
};

static void draw_texts(struct drawn *d, size_t n, const struct expected *e, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		d[i].text = (jit_embedding_text){ .ids = d[i].ids, .n = i == 0 ? 1 : 1 + (seed >> 16) % 100 };
		for (size_t k = 0; k < d[i].text.n; k++) {
			seed = seed * 1664525 + 1013904223;
			d[i].ids[k] = e[2].ids[(seed >> 16) % e[2].n];
		}
	}
}

enum { DRAWN = 23 };

/* All rows of all texts, one behind the other; malloc'ed. */
static float *rows_of(const struct opened *o, const struct drawn *d, size_t n, size_t width, size_t *floats)
{
	const jit_embedding_options eo = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE);
	jit_embedding_text texts[DRAWN];
	jit_error err = { 0 };

	*floats = 0;
	for (size_t i = 0; i < n; i++) {
		texts[i] = d[i].text;
		*floats += texts[i].n * width;
	}
	float *rows = malloc(*floats * sizeof *rows);
	if (jit_session_embed_texts(o->s, texts, n, &eo, rows, *floats, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
	return rows;
}

static void same_bits(const char *name, const char *how, const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&a[i], &b[i], sizeof *a) != 0)
			fail_msg("%s: number %zu %s is %.9g, expected %.9g", name, i, how, (double)a[i], (double)b[i]);
}

static void check_alone(const struct opened *o, const char *name, const struct drawn *d, const float *rows,
                        size_t width)
{
	for (size_t i = 0; i < DRAWN; i++) {
		size_t n;
		float *alone = rows_of(o, &d[i], 1, width, &n);
		same_bits(name, "alone", alone, rows, n);
		free(alone);
		rows += n;
	}
}

static void check_elsewhere(const char *name, const struct drawn *d, size_t texts, const float *rows, size_t width,
                            const char *device, const char *isa, int threads)
{
	struct opened o = open_with(name, device, isa, threads);
	size_t n;
	float *here = rows_of(&o, d, texts, width, &n);
	char how[60];

	snprintf(how, sizeof how, "on %s %s, %d threads,", device, isa ? isa : "", threads);
	same_bits(name, how, here, rows, n);
	free(here);
	close_model(&o);
}

static void test_same_bits(void **state)
{
	static const char *const cards[] = { "sim:gfx1030", "sim:gfx1101", "sim:gfx1201", "sim:sm80", "sim:sm90" };
	enum { CARDS = sizeof cards / sizeof *cards };
	static struct drawn d[DRAWN];
	(void)state;

	for (size_t f = 0; f < FOLDERS; f++) {
		struct opened o = open_model(folders[f]);
		struct expected e[TEXTS];
		size_t n;
		if (!o.m)
			continue;
		read_expected(folders[f], e);
		draw_texts(d, DRAWN, e, (uint32_t)f);
		float *rows = rows_of(&o, d, DRAWN, e[0].width, &n);
		check_alone(&o, folders[f], d, rows, e[0].width);
		close_model(&o);
		check_elsewhere(folders[f], d, DRAWN, rows, e[0].width, "cpu", "avx2", 1);
		check_elsewhere(folders[f], d, DRAWN, rows, e[0].width, "cpu", NULL, 3);
		if (!test_quick() || f % 4 == 0)
			check_elsewhere(folders[f], d, 3, rows, e[0].width, "ref", NULL, 2);
		for (size_t c = test_quick() ? f % CARDS : 0; c < CARDS; c += test_quick() ? CARDS : 1)
			check_elsewhere(folders[f], d, 3, rows, e[0].width, cards[c], NULL, 2);
		free(rows);
		free_expected(e);
	}
}

/* ---- kernels made before */

/* Texts of every length, several at once and alone. */
static void check_sealed(const char *name, const char *pack)
{
	static struct drawn d[DRAWN];
	struct opened open = open_model(name), sealed;
	struct registry_counters c;
	struct expected e[TEXTS];
	size_t n;

	if (!open.m)
		return;
	warm_pack(path, pack,
	          &(struct key_list_options){ .target = target_native(NULL),
	                                      .activations = KEY_LIST_INT8_ACTIVATIONS,
	                                      .kv = KEY_LIST_KV_F16, /* an encoder's is F32, whatever is requested */
	                                      .usual = true },
	          NULL);
	sealed = open_sealed(name, "cpu", NULL, 2, pack);
	read_expected(name, e);
	for (uint32_t seed = 0; seed < (test_quick() ? 4 : 20); seed++) {
		draw_texts(d, DRAWN, e, seed);
		float *want = rows_of(&open, d, DRAWN, e[0].width, &n),
		      *got = rows_of(&sealed, d, DRAWN, e[0].width, &n);
		same_bits(name, "sealed", got, want, n);
		free(want);
		free(got);
		for (size_t i = 0; i < DRAWN; i++)
			free(rows_of(&sealed, &d[i], 1, e[0].width, &n));
	}
	registry_count(open.m->registry, &c);
	assert_true(c.generated > 0);
	registry_count(sealed.m->registry, &c);
	assert_int_equal(c.generated, 0);
	free_expected(e);
	close_model(&open);
	close_model(&sealed);
}

static void test_sealed(void **state)
{
	char dir[] = "/tmp/jitrun-encoders-XXXXXX", pack[64];
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(pack, sizeof pack, "%s/kernels.pack", dir);
	for (size_t f = 0; f < FOLDERS; f += test_quick() ? 5 : 1) {
		check_sealed(folders[f], pack);
		unlink(pack);
	}
	rmdir(dir);
}

/* ---- what is refused */

#define REFUSED(call, words) \
	do { \
		err = (jit_error){ 0 }; \
		assert_int_not_equal(call, JIT_OK); \
		if (!strstr(err.message, words)) \
			fail_msg("%s: %s", #call, err.message); \
	} while (0)

static void test_refusals(void **state)
{
	static const char generates[] = "encodes texts and generates none";
	const jit_embedding_options mean = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_MEAN),
				    rank = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_RANK);
	struct opened o = open_model("enc-bert-a");
	int32_t ids[200] = { 5, 6, 7 }, id, kinds[] = { 0, 2, 0 };
	jit_model_info info = JIT_MODEL_INFO();
	float out[64], x[8];
	jit_error err;
	(void)state;

	if (!o.m)
		skip();
	assert_int_equal(jit_model_get_info(o.m, &info, &err), JIT_OK);
	assert_true(info.encodes && info.embedding == 64 && info.hidden == 64);
	REFUSED(jit_session_feed(o.s, ids, 3, &err), generates);
	REFUSED(jit_session_score(o.s, ids, 3, x, &err), generates);
	REFUSED(jit_session_next(o.s, &id, &err), generates);
	err = (jit_error){ 0 };
	assert_null(jit_session_logits(o.s, &err));
	assert_non_null(strstr(err.message, generates));
	REFUSED(jit_session_embed(o.s, ids, 3, &rank, x, 1, &err), "no classifier");
	REFUSED(jit_session_embed(o.s, ids, 3, &mean, out, 63, &err), "63 floats were given for 1 texts; expected 64");
	REFUSED(jit_session_embed(o.s, ids, 0, &mean, out, 64, &err), "0 tokens");
	REFUSED(jit_session_embed(o.s, ids, 129, &mean, out, 64, &err), "context of 128 tokens");
	const jit_embedding_text typed = { .ids = ids, .types = kinds, .n = 3 };
	REFUSED(jit_session_embed_texts(o.s, &typed, 1, &mean, out, 64, &err), "the type of token 1 of text 0 is 2");
	assert_int_equal(jit_session_embed(o.s, ids, 128, &mean, out, 64, &err), JIT_OK);
	assert_int_equal(jit_session_length(o.s), 0);
	close_model(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_states), cmocka_unit_test(test_pooled_vectors),
		cmocka_unit_test(test_scores),        cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_sealed),        cmocka_unit_test(test_refusals),
		cmocka_unit_test(jina_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
