/* tests/runtime/t_text.c - text out of a session when memory is short: it is said, and no byte is lost. Allocations
 * fail on demand: the program is linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/memfile.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);
static bool none_left;
static unsigned refused;
void *__wrap_malloc(size_t n) { return none_left ? refused++, (void *)NULL : __real_malloc(n); }
void *__wrap_realloc(void *p, size_t n) { return none_left ? refused++, (void *)NULL : __real_realloc(p, n); }

/* Every token is asked for without memory, and then with it; the pieces are the whole text. */
static void test_session_text(void **state)
{
	static const char text[] = "Once upon a time there was a l\xc3\xb8t of sn\xf0\x9f\xa6\x99ow. The end";
	char path[1024], got[200] = "";
	jit_error err = { 0 };
	int32_t *ids;
	size_t n, at = 0;
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), &err);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);
	assert_non_null(s);
	assert_int_equal(jit_model_tokenize(m, text, sizeof text - 1, 0, 0, &ids, &n, &err), JIT_OK);
	refused = 0;
	for (size_t i = 0; i <= n; i++) {
		int32_t id = i < n ? ids[i] : -1;
		size_t bytes;
		none_left = true;
		const char *piece = jit_session_text(s, id, &bytes, &err);
		none_left = false;
		if (!piece) {
			assert_int_equal(bytes, 0);
			assert_int_equal(err.code, JIT_ERROR_MEMORY);
			piece = jit_session_text(s, id, &bytes, &err);
			assert_non_null(piece);
		}
		memcpy(got + at, piece, bytes);
		at += bytes;
	}
	got[at] = 0;
	assert_true(refused > 0);
	assert_string_equal(got, text);
	free(ids);
	jit_session_close(s);
	jit_model_close(m);
}

/* The stream itself, a new buffer for each token; where a text drops its first space, it drops one and no more. */
static void test_stream(void **state)
{
#define SPACE "\xe2\x96\x81"
	static const char *const piece[] = { SPACE "once", SPACE "upon", SPACE };
	static const int32_t ids[] = { 259, 260, 261, 3 + 0xc3, 3 + 0xa9, 3 + 0xe2, 260 };
	struct error err;
	struct small v;
	struct utf8_stream s = { 0 };
	char got[100] = "";
	size_t at = 0;
	(void)state;

	spm_vocab(&v.file, piece, 3);
	vocab_bool(&v.file, "add_space_prefix", 1);
	assert_true(small_open(&v, 0, &err));
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		char *out = NULL;
		size_t cap = 0;
		none_left = true;
		size_t made = tokenizer_stream(v.t, &s, ids[i], false, &out, &cap);
		none_left = false;
		assert_true(made == SIZE_MAX);
		made = tokenizer_stream(v.t, &s, ids[i], false, &out, &cap);
		assert_true(made != SIZE_MAX);
		memcpy(got + at, out, made);
		at += made;
		free(out);
	}
	got[at] = 0;
	assert_string_equal(got, "once upon \xc3\xa9\xef\xbf\xbd upon");
	small_close(&v);
}

/* A stream to memory that once could not grow gives nothing, though all later writes would fit. Without that it is what
 * was written, also in places gone back to. */
static void test_memory_stream(void **state)
{
	char expected[6001];
	size_t n;
	(void)state;

	for (int fails = 0; fails < 2; fails++) {
		struct memfile f;
		assert_true(memfile_open(&f));
		for (size_t i = 0; i < 1000; i++) {
			none_left = fails && i >= 500 && i < 700; /* it must grow in between */
			fprintf(f.out, "%05zu ", i);
			fflush(f.out);
			snprintf(expected + 6 * i, 7, "%05zu ", i);
		}
		assert_int_equal(fseek(f.out, 12, SEEK_SET), 0);
		fputs("AB", f.out);
		memcpy(expected + 12, "AB", 2);
		char *text = memfile_take(&f, &n);
		if (fails)
			assert_null(text);
		else
			assert_true(text && n == 6000 && text[n] == 0 && memcmp(text, expected, n) == 0);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_session_text), cmocka_unit_test(test_stream),
		                            cmocka_unit_test(test_memory_stream) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
