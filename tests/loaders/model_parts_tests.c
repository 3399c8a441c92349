/* tests/loaders/model_parts_tests.c - models in several files: split GGUF, sharded safetensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_files.h"

/* ---- split GGUF: tensors distributed to the parts in turn */

struct distribute {
	uint32_t parts, no_of_last, count_of_last, total;
	bool repeat, keyless;
	const char *key;
	uint32_t value;
	const char *extension; /* NULL: gguf */
};

static void write_split(const struct distribute *d)
{
	size_t n;
	uint8_t *p = tiny_gguf(&tiny_min, DTYPE_F32, &n, NULL);
	struct gguf g;
	char name[80], key[64];

	assert_true(gguf_parse(&g, p, n, "whole", false, NULL));
	for (uint32_t i = 0; i < d->parts; i++) {
		struct gguf_writer w;
		gguf_writer_start(&w, 3, 32);
		for (uint64_t k = 0; i == 0 && k < g.n_kv; k++) {
			snprintf(key, sizeof key, "%.*s", (int)g.kv[k].key.n, g.kv[k].key.p);
			if (g.kv[k].type == GGUF_STRING) {
				char value[64];
				snprintf(value, sizeof value, "%.*s", (int)g.kv[k].bytes, (const char *)g.kv[k].data);
				gguf_write_string(&w, key, value);
			} else
				gguf_write_scalar(&w, key, g.kv[k].type, g.kv[k].data);
		}
		bool last = i + 1 == d->parts;
		if (!d->keyless) {
			gguf_write_scalar(&w, "split.no", GGUF_U16,
			                  &(uint16_t){ (uint16_t)(last ? d->no_of_last : i) });
			gguf_write_scalar(&w, "split.count", GGUF_U16,
			                  &(uint16_t){ (uint16_t)(last ? d->count_of_last : d->parts) });
			gguf_write_scalar(&w, "split.tensors.count", GGUF_I32, &(int32_t){ (int32_t)d->total });
		}
		if (d->key && last)
			gguf_write_u32(&w, d->key, d->value);
		for (uint64_t k = 0; k < g.n_tensors; k++) {
			const struct gguf_tensor *t = &g.tensor[k];
			snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
			if (k % d->parts == i || (d->repeat && k == 0))
				gguf_write_tensor(&w, name, t->type, t->n_dims, t->ne, p + t->offset, t->bytes);
		}
		size_t m;
		uint8_t *part = gguf_writer_finish(&w, &m);
		snprintf(name, sizeof name, "s-%05u-of-%05u.%s", i + 1, d->parts, d->extension ? d->extension : "gguf");
		tiny_write(model_dir, name, part, m);
		free(part);
		gguf_writer_free(&w);
	}
	gguf_free(&g);
	free(p);
}

/* The file again, whose keys are those of a file without tensors. */
static void write_split_part_without_keys(const char *name)
{
	struct gguf_writer w;
	size_t n;

	gguf_writer_start(&w, 3, 32);
	uint8_t *p = gguf_writer_finish(&w, &n);
	tiny_write(model_dir, name, p, n);
	free(p);
	gguf_writer_free(&w);
}

static void test_split_gguf(void **state)
{
	const char *first = "s-00001-of-00003.gguf";

	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, NULL, 0, NULL });
	expect_open(in_dir(first), 0, NULL);
	expect_open(model_dir, 0, NULL);
	expect_open(in_dir("s-00002-of-00003.gguf"), 0, "is part 2 of 3 of a split model, expected its first part");
	write_split(&(struct distribute){ 3, 1, 3, 11, false, false, NULL, 0, NULL });
	expect_open(in_dir(first), 0, "s-00003-of-00003.gguf: key split.no is 1, expected 2");
	write_split(&(struct distribute){ 3, 2, 4, 11, false, false, NULL, 0, NULL });
	expect_open(in_dir(first), 0, "key split.count is 4, expected 3");
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, "llama.block_count", 1, NULL });
	expect_open(in_dir(first), 0, NULL);
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, "llama.block_count", 2, NULL });
	expect_open(in_dir(first), 0,
	            "s-00003-of-00003.gguf: the key llama.block_count is not the same in the first file");
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, "llama.expert_count", 0, NULL });
	expect_open(in_dir(first), 0, "the key llama.expert_count is not the same in the first file");
	write_split(&(struct distribute){ 3, 2, 3, 12, false, false, NULL, 0, NULL });
	expect_open(in_dir(first), 0, "key split.tensors.count is 12, expected 11");
	write_split(&(struct distribute){ 3, 2, 3, 11, false, true, NULL, 0, NULL });
	expect_open(in_dir(first), 0, "s-00001-of-00003.gguf: "); /* whole, as far as it says */
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, NULL, 0, NULL });
	write_split_part_without_keys("s-00003-of-00003.gguf");
	expect_open(in_dir(first), 0, "s-00003-of-00003.gguf: the key split.no is missing in a part");
	write_split(&(struct distribute){ 3, 2, 3, 13, true, false, NULL, 0, NULL });
	expect_open(in_dir(first), 0, "occurs in more than one part");
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, NULL, 0, NULL });
	assert_int_equal(unlink(in_dir("s-00003-of-00003.gguf")), 0);
	expect_open(in_dir(first), 0, "s-00003-of-00003.gguf: cannot be opened");
	assert_int_equal(rename(in_dir(first), in_dir("alone.gguf")), 0);
	expect_open(in_dir("alone.gguf"), 0,
	            "is part 1 of 3 of a split model by its key split.count, expected a name that ends in "
	            "-00001-of-00003.gguf");
	assert_int_equal(rename(in_dir("alone.gguf"), in_dir("s-00001-of-00004.gguf")), 0);
	expect_open(in_dir("s-00001-of-00004.gguf"), 0, "is part 1 of 3 of a split model by its key");
	assert_int_equal(rename(in_dir("s-00002-of-00003.gguf"), in_dir("s-00001-of-00003.gguf")), 0);
	expect_open(in_dir(first), 0, "is part 2 of 3 of a split model, expected its first part");
	assert_int_equal(unlink(in_dir(first)), 0);
	assert_int_equal(unlink(in_dir("s-00001-of-00004.gguf")), 0);
}

/* The name of a file makes it no part, and the keys that joining leaves behind make it none either. */
static void test_whole_gguf(void **state)
{
	static const char *const names[] = {
		"z-00001-of-99999.gguf",
		"z-00004-of-00003.gguf",
		"z-00001-of-00002.gguf",
		"z-00002-of-00002.gguf",
		"z-00000-of-00000.gguf",
		"Z.GGUF",
		"z.Gguf"
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		write_gguf(names[i]);
		expect_open(in_dir(names[i]), 0, NULL);
		if (i > 3)
			expect_open(model_dir, 0, NULL); /* alone in its directory */
		assert_int_equal(unlink(in_dir(names[i])), 0);
	}
	for (uint32_t count = 0; count < 4; count++) {
		write_split(&(struct distribute){ 1, 0, count, 11, false, false, NULL, 0, NULL });
		expect_open(in_dir("s-00001-of-00001.gguf"), 0, count < 2 ? NULL : "by its key split.count, expected");
	}
	/* tensors that were added later */
	write_split(&(struct distribute){ 1, 0, 0, 5, false, false, NULL, 0, NULL });
	assert_int_equal(rename(in_dir("s-00001-of-00001.gguf"), in_dir("merged.gguf")), 0);
	expect_open(in_dir("merged.gguf"), 0, NULL);
	assert_int_equal(rename(in_dir("merged.gguf"), in_dir("s-00001-of-00003.gguf")), 0);
	expect_open(in_dir("s-00001-of-00003.gguf"), 0, NULL);
	write_split(&(struct distribute){ 1, 0, 5000, 11, false, false, NULL, 0, NULL });
	expect_open(in_dir("s-00001-of-00001.gguf"), 0, "key split.count is 5000, expected 0 to 4096");
	assert_int_equal(unlink(in_dir("s-00001-of-00001.gguf")), 0);
	assert_int_equal(unlink(in_dir("s-00001-of-00003.gguf")), 0);
	write_split(&(struct distribute){ 3, 2, 3, 11, false, false, NULL, 0, "GGUF" });
	expect_open(in_dir("s-00001-of-00003.GGUF"), 0, NULL);
	expect_open(model_dir, 0, NULL);
	expect_open(in_dir("s-00002-of-00003.GGUF"), 0, "is part 2 of 3");
	for (int i = 1; i <= 3; i++) {
		char name[40];
		snprintf(name, sizeof name, "s-0000%d-of-00003.GGUF", i);
		assert_int_equal(unlink(in_dir(name)), 0);
	}
}

/* ---- sharded safetensors */

static void copy_tensor(struct st_writer *w, const uint8_t *file, const struct safetensors *s, uint32_t i)
{
	const struct safetensors_tensor *t = &s->tensor[i];
	char name[100];

	snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
	st_write_tensor(w, name, t->type, t->rank, t->dim, file + t->offset, t->bytes);
}

/* Even tensors into shard 1, odd ones into shard 2; the index as a text the test can edit. */
static char *write_shards(void)
{
	size_t n, m;
	uint8_t *p = tiny_safetensors(&tiny_min, &n);
	struct safetensors s;
	struct bytes index = { 0 };
	char line[200];

	tiny_write_hf(model_dir, &tiny_min);
	assert_int_equal(unlink(in_dir("model.safetensors")), 0);
	assert_true(safetensors_parse(&s, p, n, "whole", false, NULL));
	const char *begin = "{\"metadata\": {\"total_size\": 1.5e3}, \"weight_map\": {";
	bytes_put(&index, begin, strlen(begin));
	for (uint32_t shard = 1; shard <= 2; shard++) {
		struct st_writer w;
		st_writer_start(&w);
		for (uint32_t i = shard - 1; i < s.n_tensors; i += 2) {
			copy_tensor(&w, p, &s, i);
			int length = snprintf(line, sizeof line, "%s\"%.*s\": \"model-0000%u-of-00002.safetensors\"",
			                      index.n > strlen(begin) ? ", " : "", (int)s.tensor[i].name.n,
			                      s.tensor[i].name.p, shard);
			bytes_put(&index, line, (size_t)length);
		}
		uint8_t *file = st_writer_finish(&w, 8, &m);
		snprintf(line, sizeof line, "model-0000%u-of-00002.safetensors", shard);
		tiny_write(model_dir, line, file, m);
		free(file);
	}
	bytes_put(&index, "}}\n", 4);
	safetensors_free(&s);
	free(p);
	return (char *)index.p;
}

static void with_index(const char *text, const char *part)
{
	tiny_write(model_dir, "model.safetensors.index.json", text, strlen(text));
	expect_open(model_dir, 0, part);
}

/* text with the first `from` replaced */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *out = NULL;

	assert_non_null(at);
	assert_true(asprintf(&out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return out;
}

static void test_sharded_safetensors(void **state)
{
	static const struct {
		const char *from, *to, *error;
	} change[] = {
		{ "model.norm.weight\": \"model-00002", "model.norm.weight\": \"model-00001",
		  NULL }, /* what a shard holds it says itself */
		{ "model.norm.weight", "model.norm.wait", NULL },
		{ "\"weight_map\": {", "\"weight_map\": {\"mtp.fc.weight\": \"model-00001-of-00002.safetensors\", ",
		  NULL },
		{ "\"weight_map\": {", "\"weight_map\": {\"mtp.fc.weight\": \"mtp.safetensors\", ",
		  "names the shard mtp.safetensors, which does not exist" },
		{ "model.norm.weight", "model\\u002enorm.weight", NULL },
		{ "model-00001-of", "model-00003-of",
		  "names the shard model-00003-of-00002.safetensors, which does not exist" },
		{ "\"model-00001-of", "\"../x/model-00001-of", "expected the name of a file in the same directory" },
		{ "\"model-00001-of-00002.safetensors\"", "\"/etc/passwd\"",
		  "expected the name of a file in the same directory" },
		{ "\"model-00001-of-00002.safetensors\"", "\"..\"", "expected the name of a file" },
		{ "\"model-00001-of-00002.safetensors\"", "\"\"", "expected the name of a file" },
		{ "\"model-00001-of-00002.safetensors\"", "\"model\\u0000\"", "expected the name of a file" },
		{ "\"model-00001-of-00002.safetensors\"", "\"config.json\"", "config.json: the header's length" },
		{ "\"model-00001-of-00002.safetensors\"", "7", "an integer, expected a string" },
		{ "\"weight_map\"", "\"weightmap\"", "has no weight_map" },
		{ "\"metadata\": {\"total_size\": 1.5e3}", "\"weight_map\": {}", NULL },
		{ "1.5e3", "1e999", NULL },
		{ "1.5e3", "1000000000000000019884624838656", NULL },
		{ "{\"metadata\"", "{\"x\": [NaN, \"\\ud800\"], \"metadata\"", NULL },
		{ "}}", "}}\n", NULL },
		{ "\"model-00001-of-00002.safetensors\"", "NaN", "NaN, expected a string" },
		{ "}}", "}", "is not valid JSON in line" },
		{ "}}", "}} x", "expected nothing more" },
		{ "{\"metadata\"", "[{\"metadata\"", "expected ',' or ']'" },
	};
	char *index = write_shards();
	struct model m;

	with_index(index, NULL);
	expect_open(in_dir("model-00002-of-00002.safetensors"), 0, NULL); /* any shard stands for all */
	assert_true(model_open(&m, model_dir, MODEL_HEADER_ONLY, NULL));
	assert_int_equal(m.file->n_parts, 2);
	model_close(&m);
	for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
		char *text = replaced(index, change[i].from, change[i].to);
		with_index(text, change[i].error);
		free(text);
	}
	with_index("{\"weight_map\": {}}", "the weight_map is empty");
	with_index("", "model.safetensors.index.json: is empty");
	free(index);
}

/* The whole model beside an index that is left over: of nothing, and of shards that are gone. */
static void test_left_over_index(void **state)
{
	char *index = write_shards();
	struct model m;
	size_t n;
	uint8_t *whole = tiny_safetensors(&tiny_min, &n);
	tiny_write(model_dir, "model.safetensors", whole, n);
	with_index("{\"weight_map\": {}}", NULL);
	assert_int_equal(unlink(in_dir("model-00001-of-00002.safetensors")), 0);
	with_index(index, NULL);
	assert_true(model_open(&m, model_dir, MODEL_HEADER_ONLY, NULL));
	assert_int_equal(m.file->n_parts, 1);
	model_close(&m);
	assert_int_equal(unlink(in_dir("model.safetensors")), 0);
	expect_open(model_dir, 0, "names the shard model-00001-of-00002.safetensors, which does not exist");
	free(whole);
	free(index);
}

int model_parts_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_split_gguf),
		TEST(test_whole_gguf),
		TEST(test_sharded_safetensors),
		TEST(test_left_over_index),
	};

	return cmocka_run_group_tests_name("model_parts_tests", tests, NULL, NULL);
}
