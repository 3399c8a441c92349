/* tests/mutate/mutant_trial.c - what is done with one file that is nearly right, and how much memory that may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "jit/store/cache.h"
#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model.h"
#include "loaders/tokenizer/tokenizer.h"
#include "include/jitrun.h"
#include "tests/mutate/mutate.h"
#include "tests/mutate/mutant_trial.h"

/* --- memory: what is asked for while a file is opened must follow from the file's size */

static atomic_uint_fast64_t requested;
static uint64_t max_requested = UINT64_MAX;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t alignment, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

static void count(size_t n)
{
	if (atomic_fetch_add(&requested, n) + n > max_requested) {
		char text[100];
		int length = snprintf(text, sizeof text, "# %zu bytes more are too much for this file\n", n);
		max_requested = UINT64_MAX;
		(void)!write(STDERR_FILENO, text, (size_t)length);
		abort();
	}
}

void *__wrap_malloc(size_t n)
{
	count(n);
	return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t each)
{
	count(n * each);
	return __real_calloc(n, each);
}
void *__wrap_realloc(void *p, size_t n)
{
	count(n);
	return __real_realloc(p, n);
}
int __wrap_posix_memalign(void **out, size_t alignment, size_t n)
{
	count(n);
	return __real_posix_memalign(out, alignment, n);
}
void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
	count(n);
	return __real_aligned_alloc(alignment, n);
}

void limit_memory(uint64_t bytes)
{
	requested = 0;
	max_requested = bytes;
}

/* --- one file's trials */

void refused(struct trial *t, const char *text)
{
	t->refused++;
	if (!text[0] || strchr(text, '\n') || !strstr(text, mutant_base))
		fail_msg("\"%s\" is no sentence that names the file", text);
}

static void tokenize(const struct tokenizer *k)
{
	static const char text[] = "ab  the lower\xff \xe4\xb8\xad<s>[X] 12345\n\n e\xcc\x81!<|im_end|> "
				   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

	for (unsigned flags = 0; flags < 4; flags++) {
		struct error err = { 0 };
		size_t n, bytes;
		int32_t *ids;
		if (!tokenizer_encode(k, text, sizeof text - 1, flags, &ids, &n, &err)) {
			assert_true(err.text[0]);
			continue;
		}
		for (size_t i = 0; i < n; i++)
			assert_in_range(ids[i], 0, tokenizer_size(k) - 1);
		char *back = tokenizer_decode(k, ids, n, flags & 1, &bytes, &err);
		assert_non_null(back);
		free(back);
		free(ids);
	}
}

static void read_tensors(const struct model *m)
{
	struct error err = { 0 };

	for (uint32_t i = 0; i < m->spec.layers; i++)
		for (int k = 0; k < TENSOR_SLOTS; k++) {
			const struct model_tensor *x = (const struct model_tensor *)&m->spec.layer[i] + k;
			uint8_t *p = malloc(x->bytes + 1);
			assert_true(p && x->bytes == x->rows * x->row_bytes &&
			            (x->bytes == 0 || model_read(m, x, 0, x->bytes, p, &err)));
			free(p);
		}
	assert_true(model_read_done(m, &err));
}

/* Two tokens by the interpreter. */
static void run(struct trial *t)
{
	const jit_model_options how =
		JIT_MODEL_OPTIONS(.device = "ref", .cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF);
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	int32_t id;
	jit_model *m = jit_model_open(t->path, &how, &err);

	if (!m) {
		refused(t, err.message);
		return;
	}
	jit_model_get_info(m, &info, NULL);
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .speculate = JIT_SPECULATE_OFF), &err);
	if (s) {
		const int32_t ids[] = { info.vocab > 1, info.vocab - 1 };
		bool ok = jit_session_feed(s, ids, 2, &err) == JIT_OK && jit_session_next(s, &id, &err) == JIT_OK &&
		          jit_session_next(s, &id, &err) == JIT_OK;
		assert_true(ok ? id >= 0 && id < info.vocab : err.message[0] && !t->m.whole);
		jit_session_close(s);
	} else {
		assert_true(err.message[0]);
	}
	t->opened++;
	jit_model_close(m);
}

void try_model(struct trial *t)
{
	static const unsigned flags[] = { 0, MODEL_HEADER_ONLY, MODEL_NO_TOKENIZER };
	bool whole = false;

	snprintf(t->path + strlen(t->path), sizeof t->path - strlen(t->path), "%s%s", t->m.open[0] ? "/" : "",
	         t->m.open);
	for (size_t i = 0; i < 3; i++) {
		struct error err = { 0 };
		struct model m;
		limit_memory(40 * t->bytes + (8 << 20));
		bool ok = model_open(&m, t->path, flags[i], &err);
		limit_memory(UINT64_MAX);
		if (!ok) {
			refused(t, err.text);
			continue;
		}
		assert_false(err.text[0]);
		if (m.tokenizer)
			tokenize(m.tokenizer);
		if (i == 0) {
			whole = true;
			read_tensors(&m);
		}
		t->opened++;
		model_close(&m);
	}
	limit_memory(100 * t->bytes + (64 << 20));
	if (whole)
		run(t);
	limit_memory(UINT64_MAX);
}

/* --- kernels: everything but running them */

struct seen {
	struct key key[64];
	size_t n;
};

static bool see(const struct cache_item *item, void *user)
{
	struct seen *s = user;
	char text[KEY_TEXT_MAX];

	key_text(&item->key, text, sizeof text);
	if (s->n < 64)
		s->key[s->n++] = item->key;
	return true;
}

static void load(struct cache *c, const struct seen *s)
{
	const struct registry_options how = { .build = template_build, .cache = c, .sealed = true };
	struct error err = { 0 };
	struct registry *r = registry_open(&how, &err);

	assert_non_null(r);
	registry_load(r, s->key, s->n);
	for (size_t i = 0; i < s->n; i++) {
		struct error why = { 0 };
		const struct kernel *k = registry_get(r, &s->key[i], NULL, &why);
		assert_true(k ? k->object.code_bytes > 0 && key_equal(&k->key, &s->key[i]) : why.text[0]);
	}
	registry_close(r);
}

void empty_directory(const char *dir)
{
	DIR *d = opendir(dir);
	char path[600];

	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' || e->d_name[1] > '.')
			unlink(path);
	}
	if (d)
		closedir(d);
}

/* Into a directory of its own, and out again. */
static void move(struct trial *t)
{
	static const struct cache_maker maker = { .build = template_build };
	struct error err = { 0 };
	char other[100], again[120];
	uint64_t n = 0;

	snprintf(other, sizeof other, "%s-other", mutant_base);
	snprintf(again, sizeof again, "%s/again.jkp", other);
	struct cache *c = cache_open(other, NULL, &err);
	assert_non_null(c);
	/* compared with what is made here, which no code of a mutant is; or taken as it is */
	bool compared = dice_one_in(&t->m.dice, 2),
	     taken = t->kind == MUTANT_PACK && cache_import(c, t->path, compared ? &maker : NULL, &n, &err);
	assert_false(taken && compared && n);
	if (t->kind == MUTANT_PACK && !taken) {
		refused(t, err.text);
		t->refused -= compared;
	}
	struct error why = { 0 };
	assert_true(cache_export(c, again, NULL, NULL, &n, &why) || why.text[0]);
	cache_close(c);
	empty_directory(other);
	rmdir(other);
}

void try_cache(struct trial *t)
{
	struct error err = { 0 };
	struct seen s = { .n = 0 };
	uint64_t sound, bad;

	if (t->m.open[0])
		snprintf(t->path + strlen(t->path), sizeof t->path - strlen(t->path), "/%s", t->m.open);
	limit_memory(20 * t->bytes + (80 << 20)); /* the largest code there may be is 16 MiB */
	struct cache *c = cache_open(t->path, &(struct cache_options){ .read_only = true }, &err);
	if (!c) {
		refused(t, err.text);
		limit_memory(UINT64_MAX);
		return;
	}
	assert_true(cache_each(c, see, &s, &err));
	load(c, &s);
	limit_memory(UINT64_MAX);
	assert_true(cache_verify(c, false, NULL, NULL, &sound, &bad, &err));
	t->opened += bad == 0;
	t->refused += bad != 0;
	cache_close(c);
	/* what is stored is synced, which takes long */
	if (dice_one_in(&t->m.dice, 8))
		move(t);
}

/* It is locked: nothing may be asked of it meanwhile. */
static void see_result(const struct tune_result *r, void *user)
{
	struct seen *s = user;

	assert_true(r->gain >= 1 && r->gain < 100 && r->samples >= 1);
	if (s->n < 64)
		s->key[s->n++] = r->key;
}

void try_tune(struct trial *t)
{
	struct error err = { 0 };
	struct seen s = { .n = 0 };

	limit_memory(40 * t->bytes + (1 << 20));
	struct tune *k = tune_open(t->path, &err);
	limit_memory(UINT64_MAX);
	assert_non_null(k);
	t->opened += tune_any(k);
	tune_each(k, see_result, &s);
	for (size_t i = 0; i < s.n; i++)
		assert_true(tune_known(k, &s.key[i]));
	struct tune_result mine = { .gain = 2, .samples = 3 };
	assert_true(key_parse(&mine.key, "matmul.q8_0.aq8_0.4096x512.c1.b1.s3.avx2"));
	tune_set(k, &mine);
	assert_true(tune_save(k, &err));
	tune_close(k);
}
