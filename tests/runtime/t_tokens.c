/* tests/runtime/t_tokens.c - jitrun_tokens.h: the vocabulary of a model, compared with the arrays of its file, which
 * the same header gives, and with what its tokenizer makes of texts. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_tokens.h"
#include "tests/support/shared.h"

static const jit_model_options options = {
	.size = sizeof options, .cache_dir = "", .device = "ref", .threads = 1, .weight_cache = NULL
};

static size_t number_of(const jit_model *m, const char *key, size_t expected)
{
	const int64_t number = jit_model_metadata_find(m, key);
	jit_metadata v = JIT_METADATA();
	jit_error err = { 0 };

	assert_true(number >= 0);
	assert_int_equal(jit_model_metadata(m, (size_t)number, &v, &err), JIT_OK);
	assert_string_equal(v.key, key);
	assert_int_equal(v.n, expected);
	return (size_t)number;
}

/* What it adds behind another token, by whole texts; where it is whole characters. */
static void check_bytes(const jit_model *m, int32_t id, const char *bytes, size_t n)
{
	const int32_t ids[] = { 300, id };
	size_t n_one, n_two;
	char *one = jit_model_detokenize(m, ids, 1, &n_one, NULL), *two = jit_model_detokenize(m, ids, 2, &n_two, NULL);

	assert_non_null(one);
	assert_non_null(two);
	if (!strstr(two, "\xef\xbf\xbd")) {
		assert_int_equal(n_two - n_one, n);
		assert_memory_equal(two + n_one, bytes, n);
	}
	jit_free(one);
	jit_free(two);
}

static void of_a_gguf_file(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	char path[1024], bytes[300];
	unsigned control = 0, ends = 0;
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &options, &err);
	assert_non_null(m);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	const size_t texts = number_of(m, "tokenizer.ggml.tokens", (size_t)info.vocab),
		     types = number_of(m, "tokenizer.ggml.token_type", (size_t)info.vocab);
	for (int32_t id = 0; id < info.vocab; id++) {
		jit_metadata text = JIT_METADATA(), type = JIT_METADATA();
		jit_token t = JIT_TOKEN();
		assert_int_equal(jit_model_metadata_item(m, texts, (size_t)id, &text, &err), JIT_OK);
		assert_int_equal(jit_model_metadata_item(m, types, (size_t)id, &type, &err), JIT_OK);
		assert_int_equal(jit_model_token(m, id, &t, bytes, sizeof bytes, &err), JIT_OK);
		assert_int_equal(text.kind, JIT_METADATA_STRING);
		assert_int_equal(type.kind, JIT_METADATA_INTEGER);
		assert_int_equal(t.n_text, text.n);
		assert_memory_equal(t.text, text.text, text.n);
		assert_int_equal(text.text[text.n], 0);
		assert_int_equal(t.kind, type.integer);
		assert_int_equal(t.is_end, jit_model_is_end(m, id));
		assert_int_equal(jit_model_find_token(m, text.text, text.n), id);
		if (t.kind == JIT_TOKEN_CONTROL) {
			assert_int_equal(t.n_bytes, t.n_text);
			assert_memory_equal(bytes, t.text, t.n_text);
		} else {
			check_bytes(m, id, bytes, t.n_bytes);
		}
		control += t.kind == JIT_TOKEN_CONTROL;
		ends += t.is_end != 0;
	}
	assert_true(control > 0 && ends > 0);
	jit_model_close(m);
}

static void room_may_be_short(void **state)
{
	jit_error err = { 0 };
	char path[1024], whole[64], some[64];
	jit_token t = JIT_TOKEN();
	int32_t *ids;
	size_t n;
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &options, &err);
	assert_int_equal(jit_model_tokenize(m, " there", 6, 0, 0, &ids, &n, &err), JIT_OK);
	assert_int_equal(jit_model_token(m, ids[0], &t, whole, sizeof whole, &err), JIT_OK);
	assert_in_range(t.n_bytes, 2, 6);
	for (size_t room = 0; room <= t.n_bytes + 1; room++) {
		jit_token again = JIT_TOKEN();
		memset(some, '#', sizeof some);
		assert_int_equal(jit_model_token(m, ids[0], &again, room ? some : NULL, room, &err), JIT_OK);
		assert_int_equal(again.n_bytes, t.n_bytes);
		const size_t written = room < t.n_bytes ? room : t.n_bytes;
		assert_memory_equal(some, whole, written);
		assert_int_equal(some[written], '#');
	}
	jit_free(ids);
	jit_model_close(m);
}

static void wrong_arguments(void **state)
{
	jit_error err = { 0 };
	jit_metadata v = JIT_METADATA();
	jit_token t = JIT_TOKEN();
	char path[1024];
	int32_t id = 5;
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &options, &err);
	static const int32_t none[] = { -1, INT32_MIN, INT32_MAX };
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(jit_model_token(m, none[i], &t, NULL, 0, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_model_role(m, "fim", &id, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "\"fim\""));
	assert_non_null(strstr(err.message, "fim_prefix"));
	assert_int_equal(id, 5);
	for (size_t i = 0; jit_token_role(i); i++)
		assert_int_equal(jit_model_role(m, jit_token_role(i), &id, &err), JIT_OK);
	assert_int_equal(jit_model_role(m, "eos", &id, &err), JIT_OK);
	assert_int_equal(jit_model_is_end(m, id), 1);
	assert_int_equal(jit_model_find_token(m, "no such token", 13), -1);
	assert_int_equal(jit_model_find_token(m, "", 0), -1);
	assert_int_equal(jit_model_metadata_find(m, "no.such.key"), -1);
	const size_t name = (size_t)jit_model_metadata_find(m, "general.architecture"),
		     list = (size_t)jit_model_metadata_find(m, "tokenizer.ggml.tokens");
	assert_int_equal(jit_model_metadata_item(m, name, 0, &v, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "general.architecture, is no array"));
	assert_int_equal(jit_model_metadata_item(m, SIZE_MAX, 0, &v, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_model_metadata_item(m, list, SIZE_MAX, &v, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "tokenizer.ggml.tokens, has no item"));
	jit_model_close(m);
}

/* Many threads ask for the first time at once. */
static void *ask(void *p)
{
	jit_metadata v = JIT_METADATA();
	const jit_model *m = p;

	for (size_t i = 0; i < 300; i++)
		if (jit_model_metadata_item(m, (size_t)jit_model_metadata_find(m, "tokenizer.ggml.tokens"), i, &v,
		                            NULL) != JIT_OK ||
		    jit_model_find_token(m, v.text, v.n) != (int32_t)i)
			return p;
	return NULL;
}

static void from_many_threads(void **state)
{
	pthread_t thread[8];
	jit_error err = { 0 };
	char path[1024];
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &options, &err);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, m), 0);
	for (int i = 0; i < 8; i++) {
		void *wrong;
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_a_gguf_file), cmocka_unit_test(room_may_be_short),
		                            cmocka_unit_test(wrong_arguments), cmocka_unit_test(from_many_threads) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
