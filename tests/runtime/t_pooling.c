/* tests/runtime/t_pooling.c - jit_model_info.pooling: what 1_Pooling/config.json and the GGUF key pooling_type say of
 * embeddings, what is refused of them, and that a packed model says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "include/jitrun.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"

static char dir[64], path[100];

static const char *in_dir(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static int make_directory(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/jitrun-pooling-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	tiny_write_hf(dir, &tiny_min);
	return mkdir(in_dir("1_Pooling"), 0700);
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(in_dir("config.json"));
	unlink(in_dir("model.safetensors"));
	unlink(in_dir("modules.json"));
	unlink(in_dir("1_Pooling/config.json"));
	rmdir(in_dir("1_Pooling"));
	return rmdir(dir);
}

static int pooling_of(const char *model, jit_error *err)
{
	jit_model_info info = JIT_MODEL_INFO();

	*err = (jit_error){ 0 };
	jit_model *m = jit_model_open(
		model, &JIT_MODEL_OPTIONS(.cache_dir = "", .device = "ref", .threads = 1, .tune = JIT_TUNE_OFF), err);
	if (!m)
		return -1;
	assert_int_equal(jit_model_get_info(m, &info, err), JIT_OK);
	jit_model_close(m);
	return info.pooling;
}

static void expect(const char *model, int pooling, const char *says)
{
	jit_error err;
	int found = pooling_of(model, &err);

	if (found != pooling || (says && !strstr(err.message, says)))
		fail_msg("%s: expected %d (%s), got %d (%s)", model, pooling, says ? says : "", found, err.message);
}

#define SWITCHES(cls, mean, last) \
	"{\"word_embedding_dimension\": 64, \"pooling_mode_cls_token\": " #cls \
	", \"pooling_mode_mean_tokens\": " #mean \
	", \"pooling_mode_max_tokens\": false, \"pooling_mode_lasttoken\": " #last ", \"include_prompt\": true}"

static void test_directory(void **state)
{
	static const struct {
		const char *text;
		int pooling;
		const char *says;
	} rows[] = {
		{ SWITCHES(false, false, true), JIT_POOL_LAST, NULL },
		{ SWITCHES(false, true, false), JIT_POOL_MEAN, NULL },
		{ SWITCHES(false, false, false), JIT_POOL_NONE, NULL },
		{ "{\"embedding_dimension\": 64, \"pooling_mode\": \"lasttoken\"}", JIT_POOL_LAST, NULL },
		{ "{\"pooling_mode\": \"mean\"}", JIT_POOL_MEAN, NULL },
		{ "{\"pooling_mode\": null}", JIT_POOL_NONE, NULL },
		{ SWITCHES(true, false, false), JIT_POOL_CLS, NULL },
		{ "{\"pooling_mode\": \"cls\"}", JIT_POOL_CLS, NULL },
		{ SWITCHES(false, true, true), -1, "pooling_mode_mean_tokens is true, expected one way of pooling" },
		{ "{\"pooling_mode\": \"max\"}", -1, "pooling_mode is max, expected" },
		{ "{\"pooling_mode\": \"new\"}", -1, "pooling_mode is new, expected" },
		{ "{\"pooling_mode\": 1}", -1, "pooling_mode is an integer, expected a string" },
		{ "{\"pooling_mode_lasttoken\": 1}", -1, "pooling_mode_lasttoken is an integer, expected" },
		{ "[]", -1, "1_Pooling/config.json: its content is an array, expected an object" },
		{ "{", -1, "1_Pooling/config.json: is not valid JSON" },
	};
	(void)state;

	expect(dir, JIT_POOL_NONE, NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		tiny_write(dir, "1_Pooling/config.json", rows[i].text, strlen(rows[i].text));
		expect(dir, rows[i].pooling, rows[i].says);
	}
}

/* What comes behind pooling is known, or refused. */
static void test_modules(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "[{\"type\":\"sentence_transformers.models.Transformer\"},{\"type\":\"sentence_transformers.models."
		  "Pooling\"},{\"type\":\"sentence_transformers.models.Normalize\"}]",
		  NULL },
		{ "[]", NULL },
		{ "[{\"type\":\"sentence_transformers.models.Dense\"}]",
		  "modules.json: module 0 is a Dense layer, which is supported behind Pooling and before Normalize" },
		{ "[{\"type\":\"sentence_transformers.models.LayerNorm\"}]",
		  "modules.json: the type of module 0 is \"sentence_transformers.models.LayerNorm\", supported "
		  "behind" },
		{ "[3]", "the type of module 0 is \"\"" },
		{ "{}", "modules.json: its content is an object, expected an array" },
		{ "[", "modules.json: is not valid JSON" },
	};
	(void)state;

	tiny_write(dir, "1_Pooling/config.json", "{}", 2);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct model m;
		tiny_write(dir, "modules.json", rows[i].text, strlen(rows[i].text));
		if (rows[i].says) {
			assert_false(model_open(&m, dir, 0, &err));
			assert_non_null(strstr(err.text, rows[i].says));
		} else {
			assert_true(model_open(&m, dir, 0, &err));
			model_close(&m);
		}
	}
	unlink(in_dir("modules.json"));
}

/* A packed model keeps the text it was made from. */
static void test_sources(void **state)
{
	struct error err = { 0 };
	struct model m, again;
	size_t n;
	(void)state;

	tiny_write(dir, "1_Pooling/config.json", SWITCHES(false, true, false), sizeof SWITCHES(false, true, false) - 1);
	assert_true(model_open(&m, dir, MODEL_KEEP_SOURCES, &err));
	struct model_source *s = model_sources(&m, &n, &err);
	assert_non_null(s);
	assert_true(model_open_sources(&again, s, n, "packed", MODEL_HEADER_ONLY, &err));
	assert_int_equal(again.pooling, POOLING_MEAN);
	model_close(&again);
	free(s);
	model_close(&m);
}

/* type UINT32_MAX: there is no such key. */
static enum model_pooling read_gguf(uint32_t type, struct error *err)
{
	struct model_part part = { .format = MODEL_GGUF };
	struct model_file f = { .format = MODEL_GGUF, .part = &part, .n_parts = 1, .arch = arch_of_gguf("llama", 5) };
	struct model m = { .file = &f };
	struct gguf_writer w;
	size_t n;

	gguf_writer_start(&w, 3, 32);
	gguf_write_u32(&w, "qwen3.pooling_type", 2); /* of another architecture: not asked for */
	if (type != UINT32_MAX)
		gguf_write_u32(&w, "llama.pooling_type", type);
	uint8_t *bytes = gguf_writer_finish(&w, &n);
	*err = (struct error){ 0 };
	if (!gguf_parse(&part.gguf, bytes, n, "test.gguf", true, err))
		fail_msg("%s", err->text);
	bool ok = model_read_pooling(&m, err);
	assert_int_equal(ok, err->code == ERROR_NONE);
	gguf_free(&part.gguf);
	gguf_writer_free(&w);
	free(bytes);
	return m.pooling;
}

/* The numbers are llama.cpp's. */
static void test_gguf(void **state)
{
	static const enum model_pooling taken[] = {
		[0] = POOLING_NOT_SAID, [1] = POOLING_MEAN, [2] = POOLING_CLS, [3] = POOLING_LAST
	};
	struct error err;
	(void)state;

	assert_int_equal(read_gguf(UINT32_MAX, &err), POOLING_NOT_SAID);
	for (uint32_t type = 0; type < 6; type++) {
		bool refused = type > 3;
		enum model_pooling found = read_gguf(type, &err);
		assert_int_equal(err.code, refused ? ERROR_UNSUPPORTED : ERROR_NONE);
		assert_int_equal(found, refused ? POOLING_NOT_SAID : taken[type]);
	}
	assert_string_equal(err.text, "test.gguf: key llama.pooling_type is 5, which is not supported, expected 0 (not "
	                              "said), 1 (the mean of all tokens), 2 (the first token) or 3 (the last token)");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_directory), cmocka_unit_test(test_modules),
		                            cmocka_unit_test(test_sources), cmocka_unit_test(test_gguf) };

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
