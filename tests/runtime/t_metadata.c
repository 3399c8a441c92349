/* tests/runtime/t_metadata.c - jit_model_metadata: every key of a GGUF file and of a directory's two configurations,
 * with the values that were written; and that odd files neither end it nor let it grow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "include/jitrun.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

/* The items of an array: " kind integer real n text" of each. */
static size_t spell_items(const struct model *m, size_t number, char *out, size_t cap)
{
	size_t at = 0;

	for (size_t i = 0; i < m->metadata[number].n; i++) {
		struct model_metadata v;
		struct error err = { 0 };
		assert_true(model_metadata_item(m, number, i, &v, &err));
		assert_true(v.kind == METADATA_STRING ? v.text && v.text[v.n] == 0 : !v.text);
		at += (size_t)snprintf(out + at, cap - at, " %d %lld %g %zu %s", (int)v.kind, (long long)v.integer,
		                       v.real, v.n, v.text ? v.text : "-");
		assert_true(at < cap);
	}
	return at;
}

/* "key kind integer real n item text" of each, in lines; of an array a line with its items, too. */
static void spell(const struct model *m, char *out, size_t cap)
{
	size_t at = 0;

	*out = 0;
	for (size_t i = 0; i < m->n_metadata; i++) {
		const struct model_metadata *v = &m->metadata[i];
		assert_true(v->kind == METADATA_STRING ? v->text && v->text[v->n] == 0 : !v->text);
		at += (size_t)snprintf(out + at, cap - at, "%s %d %lld %g %zu %d %s\n", v->key, (int)v->kind,
		                       (long long)v->integer, v->real, v->n, (int)v->item, v->text ? v->text : "-");
		assert_true(at < cap);
		if (v->kind == METADATA_ARRAY && v->n) {
			at += spell_items(m, i, out + at, cap - at);
			at += (size_t)snprintf(out + at, cap - at, "\n");
		}
	}
}

static void of_gguf(void **state)
{
	const uint64_t large = UINT64_MAX;
	const int64_t min = INT64_MIN;
	const double real = -2.5;
	const uint16_t items[] = { 1, 2, 3 };
	const char *const words[] = { "a", "b" };
	struct model_file f;
	struct model_part part = { .format = MODEL_GGUF };
	struct model m = { .file = &f };
	struct gguf_writer w;
	struct error err = { 0 };
	char found[4096];
	size_t n;
	(void)state;

	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.name", "tale");
	gguf_write_string(&w, "empty", "");
	gguf_write_u32(&w, "x.layers", 7);
	gguf_write_scalar(&w, "large", GGUF_U64, &large);
	gguf_write_scalar(&w, "least", GGUF_I64, &min);
	gguf_write_f32(&w, "eps", 0.5f);
	gguf_write_scalar(&w, "real", GGUF_F64, &real);
	gguf_write_bool(&w, "flag", true);
	gguf_write_strings(&w, "words", words, 2);
	gguf_write_array(&w, "items", GGUF_U16, 3, items, sizeof items);
	gguf_write_array(&w, "huge", GGUF_U64, 2, (const uint64_t[]){ UINT64_MAX, 7 }, 16);
	gguf_write_array(&w, "flags", GGUF_BOOL, 2, (const uint8_t[]){ 1, 0 }, 2);
	gguf_write_array(&w, "reals", GGUF_F64, 1, &real, sizeof real);
	gguf_write_nested(&w, "nested", 2, 2, 5);
	uint8_t *bytes = gguf_writer_finish(&w, &n);
	f = (struct model_file){ .format = MODEL_GGUF, .part = &part, .n_parts = 1 };
	assert_true(gguf_parse(&part.gguf, bytes, n, "test.gguf", true, &err));
	assert_true(model_read_metadata(&m, &err));
	spell(&m, found, sizeof found);
	assert_string_equal(found, "general.name 0 0 0 4 6 tale\nempty 0 0 0 0 6 \nx.layers 1 7 0 0 6 -\n"
	                           "large 2 0 1.84467e+19 0 6 -\nleast 1 -9223372036854775808 0 0 6 -\n"
	                           "eps 2 0 0.5 0 6 -\nreal 2 0 -2.5 0 6 -\nflag 3 1 0 0 6 -\n"
	                           "words 4 0 0 2 0 -\n 0 0 0 1 a 0 0 0 1 b\nitems 4 0 0 3 1 -\n"
	                           " 1 1 0 0 - 1 2 0 0 - 1 3 0 0 -\nhuge 4 0 0 2 1 -\n 2 0 1.84467e+19 0 - 1 7 0 0 -\n"
	                           "flags 4 0 0 2 3 -\n 3 1 0 0 - 3 0 0 0 -\nreals 4 0 0 1 2 -\n 2 0 -2.5 0 -\n"
	                           "nested 4 0 0 2 6 -\n 4 0 0 0 - 4 0 0 0 -\n");
	model_free_metadata(&m);
	gguf_free(&part.gguf);
	gguf_writer_free(&w);
	free(bytes);
}

static void read_texts(struct model *m, struct model_file *f, const char *config, const char *generation)
{
	struct error err = { 0 };

	*f = (struct model_file){ .format = MODEL_HF };
	*m = (struct model){ .file = f };
	file_memory(&f->config, config, strlen(config), "config.json");
	if (generation)
		file_memory(&f->generation_config, generation, strlen(generation), "generation_config.json");
	assert_true(model_read_metadata(m, &err));
}

static void of_directory(void **state)
{
	static const char config[] =
		"{\"a\": \"x\", \"rope\": {\"f\": 2.5, \"deep\": {\"n\": -3}}, \"list\": [1, 2], \"mixed\": [1, "
		"\"2\"], "
		"\"none\": [], \"lists\": [[1]], \"yes\": true, \"no\": false, \"nothing\": null, \"odd\": [NaN, 1.5], "
		"\"inf\": -Infinity, \"empty\": {}}";
	struct model_file f;
	struct model m;
	char found[4096];
	(void)state;

	read_texts(&m, &f, config, "{\"top_k\": 20}");
	spell(&m, found, sizeof found);
	assert_string_equal(
		found,
		"a 0 0 0 1 6 x\nrope.f 2 0 2.5 0 6 -\nrope.deep.n 1 -3 0 0 6 -\nlist 4 0 0 2 1 -\n"
		" 1 1 0 0 - 1 2 0 0 -\nmixed 4 0 0 2 6 -\n 1 1 0 0 - 0 0 0 1 2\nnone 4 0 0 0 6 -\n"
		"lists 4 0 0 1 6 -\n 4 0 0 1 -\nyes 3 1 0 0 6 -\n"
		"no 3 0 0 0 6 -\nnothing 5 0 0 0 6 -\nodd 4 0 0 2 2 -\n 2 0 nan 0 - 2 0 1.5 0 -\ninf 2 0 -inf 0 6 -\n"
		"generation_config.top_k 1 20 0 0 6 -\n");
	model_free_metadata(&m);
	read_texts(&m, &f, "[1, 2", NULL); /* others refuse it, with a sentence */
	assert_int_equal(m.n_metadata, 0);
	model_free_metadata(&m);
}

/* A long name above many members would be repeated for each of them. */
static void long_paths(void **state)
{
	struct model_file f;
	struct model m;
	char name[254], text[1200];
	(void)state;

	for (int length = 250; length < 254; length++) {
		memset(name, 'k', sizeof name);
		name[length] = 0;
		snprintf(text, sizeof text, "{\"%s\": {\"ab\": 1, \"abc\": 2, \"a\": 3}, \"last\": 4}", name);
		read_texts(&m, &f, text, NULL);
		/* with a dot and the name, at most 255 bytes */
		size_t fit = (length + 2 <= 255) + (length + 3 <= 255) + (length + 4 <= 255);
		assert_int_equal(m.n_metadata, fit + 1);
		assert_string_equal(m.metadata[fit].key, "last");
		model_free_metadata(&m);
	}
}

static const char *text_of_key(const jit_model *m, const char *key)
{
	for (size_t i = 0; i < jit_model_metadata_count(m); i++) {
		jit_metadata v = JIT_METADATA();
		assert_int_equal(jit_model_metadata(m, i, &v, NULL), JIT_OK);
		if (strcmp(v.key, key) == 0)
			return v.kind == JIT_METADATA_STRING ? v.text : "no text";
	}
	return NULL;
}

static void of_opened_models(void **state)
{
	const jit_model_options o = JIT_MODEL_OPTIONS(.cache_dir = "", .device = "ref", .threads = 1);
	jit_metadata v = JIT_METADATA();
	jit_error err = { 0 };
	char path[1024];
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &o, &err);
	assert_non_null(m);
	assert_string_equal(text_of_key(m, "general.architecture"), "qwen3");
	assert_string_equal(text_of_key(m, "tokenizer.ggml.tokens"), "no text");
	assert_null(text_of_key(m, "general"));
	size_t n = jit_model_metadata_count(m);
	assert_int_equal(jit_model_metadata(m, n, &v, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "expected a number less than"));
	assert_int_equal(jit_model_metadata(m, SIZE_MAX, &v, NULL), JIT_ERROR_ARGUMENT);
	jit_model_close(m);
	if (!shared_path(path, "models/tale-llama"))
		skip();
	m = jit_model_open(path, &o, &err);
	assert_non_null(m);
	assert_string_equal(text_of_key(m, "model_type"), "llama");
	assert_non_null(text_of_key(m, "generation_config.eos_token_id"));
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(of_gguf), cmocka_unit_test(of_directory),
		                            cmocka_unit_test(long_paths), cmocka_unit_test(of_opened_models) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
