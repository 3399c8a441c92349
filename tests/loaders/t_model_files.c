/* tests/loaders/t_model_files.c - models opened from paths: files, directories, split and sharded sets, things that are
 * no files, and the malformed files of the reference data. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "loaders/model_load.h"
#include "loaders/tokenizer.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

static char dir[300]; /* fresh for each test */

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/jitrun-model-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) { return remove(path); }

static int remove_dir(void **state) { return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static const char *in_dir(const char *name)
{
	static char path[2][700];
	static int turn;

	snprintf(path[turn ^= 1], sizeof path[0], "%s/%s", dir, name);
	return path[turn];
}

/* part NULL: must open */
static void expect(const char *path, unsigned flags, const char *part)
{
	struct error err = { 0 };
	struct model m;
	bool ok = model_open(&m, path, flags, &err);

	if (ok != (part == NULL) || (!ok && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", path, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
	else
		assert_true(!m.file && !m.tokenizer && !m.spec.layer);
}

static void write_gguf(const char *name)
{
	size_t n;
	uint8_t *p = tiny_gguf(&tiny_least, DTYPE_F32, &n, NULL);

	tiny_write(dir, name, p, n);
	free(p);
}

static void test_things_that_are_no_models(void **state)
{
	expect(in_dir("absent.gguf"), 0, "cannot be opened: No such file");
	expect("", 0, "cannot be opened");
	expect(dir, 0, "holds no model, expected a .gguf or .safetensors file");
	tiny_write(dir, "empty.gguf", "", 0);
	expect(in_dir("empty.gguf"), 0, "is empty (0 bytes)");
	tiny_write(dir, "text.txt", "hello", 5);
	expect(in_dir("text.txt"), 0, "is no GGUF file and is not named .safetensors");
	assert_int_equal(mkfifo(in_dir("fifo.gguf"), 0600), 0);
	expect(in_dir("fifo.gguf"), 0, "is a FIFO, expected a regular file");
	assert_int_equal(mkdir(in_dir("d.gguf"), 0700), 0);
	expect(in_dir("d.gguf"), 0, "holds no model");
	expect("/dev/null", 0, "is a device");
	assert_int_equal(symlink("loop.gguf", in_dir("loop.gguf")), 0);
	expect(in_dir("loop.gguf"), 0, "cannot be opened");
	tiny_write(dir, "secret.gguf", "GGUF", 4);
	assert_int_equal(chmod(in_dir("secret.gguf"), 0), 0);
	expect(in_dir("secret.gguf"), 0,
	       geteuid() == 0 ? "too few for a GGUF header" : "cannot be opened: Permission denied");
	tiny_write(dir, "a\x1b[2Jb\xff.gguf", "GGML", 4);
	expect(in_dir("a\x1b[2Jb\xff.gguf"), 0, "a\\x1b[2Jb\\xff.gguf: begins with \"GGML\", expected \"GGUF\"");
}

static void test_long_path_keeps_its_end(void **state)
{
	char name[256] = { 0 };
	struct error err = { 0 };
	struct model m;

	memset(name, 'x', 200);
	memcpy(name + 200, "\xc3\xa9.gguf", 8);
	tiny_write(dir, name, "GGML", 4);
	assert_false(model_open(&m, in_dir(name), 0, &err));
	assert_true(strncmp(err.text, "...", 3) == 0 && strstr(err.text, "xx\xc3\xa9.gguf: begins with"));
}

static void test_directories(void **state)
{
	tiny_write_hf(dir, &tiny_least);
	expect(dir, 0, NULL);
	char slash[310];
	snprintf(slash, sizeof slash, "%s/", dir);
	expect(slash, 0, NULL);
	expect(in_dir("model.safetensors"), 0, NULL);
	write_gguf("one.gguf");
	write_gguf("two.gguf");
	expect(dir, 0, NULL); /* the safetensors model */
	expect(in_dir("one.gguf"), 0, NULL);
	assert_int_equal(rename(in_dir("one.gguf"), in_dir("one")), 0);
	expect(in_dir("one"), 0, NULL); /* by its first bytes */
	assert_int_equal(unlink(in_dir("config.json")), 0);
	expect(dir, 0, "config.json: cannot be opened");
	assert_int_equal(rename(in_dir("model.safetensors"), in_dir("other.safetensors")), 0);
	expect(dir, 0, NULL); /* two.gguf */
	assert_int_equal(rename(in_dir("one"), in_dir("one.gguf")), 0);
	expect(dir, 0, "holds 2 GGUF models, expected one; name the file");
	assert_true(unlink(in_dir("one.gguf")) == 0 && unlink(in_dir("two.gguf")) == 0);
	expect(dir, 0, "config.json: cannot be opened");
	tiny_write(dir, "more.safetensors", "", 0);
	expect(dir, 0, "holds 2 .safetensors files and neither");
}

static void test_adapters(void **state)
{
	tiny_write_hf(dir, &tiny_least);
	expect(dir, 0, NULL);
	tiny_write(dir, "adapter_config.json", "{}", 2);
	expect(dir, 0, "holds an adapter (LoRA, adapter_config.json), which changes a model");
	expect(in_dir("model.safetensors"), 0, "model.safetensors: holds an adapter");
	write_gguf("one.gguf");
	expect(in_dir("one.gguf"), 0, NULL);
	assert_int_equal(unlink(in_dir("config.json")), 0);
	assert_int_equal(rename(in_dir("model.safetensors"), in_dir("adapter_model.safetensors")), 0);
	expect(in_dir("adapter_model.safetensors"), 0, "holds an adapter");
}

/* ---- split GGUF: tensors dealt out to the parts in turn */

struct deal {
	uint32_t parts, no_of_last, count_of_last, total;
	bool repeat, keyless;
	const char *key;
	uint32_t value;
};

static void write_split(const struct deal *d)
{
	size_t n;
	uint8_t *p = tiny_gguf(&tiny_least, DTYPE_F32, &n, NULL);
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
		snprintf(name, sizeof name, "s-%05u-of-%05u.gguf", i + 1, d->parts);
		tiny_write(dir, name, part, m);
		free(part);
		gguf_writer_free(&w);
	}
	gguf_free(&g);
	free(p);
}

static void test_split_gguf(void **state)
{
	const char *first = "s-00001-of-00003.gguf";

	write_split(&(struct deal){ 3, 2, 3, 11, false, false, NULL, 0 });
	expect(in_dir(first), 0, NULL);
	expect(dir, 0, NULL);
	expect(in_dir("s-00002-of-00003.gguf"), 0, "is part 2 of 3 of a split model, expected its first part");
	write_split(&(struct deal){ 3, 1, 3, 11, false, false, NULL, 0 });
	expect(in_dir(first), 0, "s-00003-of-00003.gguf: key split.no is 1, expected 2");
	write_split(&(struct deal){ 3, 2, 4, 11, false, false, NULL, 0 });
	expect(in_dir(first), 0, "key split.count is 4, expected 3");
	write_split(&(struct deal){ 3, 2, 3, 11, false, false, "llama.block_count", 1 });
	expect(in_dir(first), 0, NULL);
	write_split(&(struct deal){ 3, 2, 3, 11, false, false, "llama.block_count", 2 });
	expect(in_dir(first), 0, "s-00003-of-00003.gguf: the key llama.block_count is not the same in the first file");
	write_split(&(struct deal){ 3, 2, 3, 11, false, false, "llama.expert_count", 0 });
	expect(in_dir(first), 0, "the key llama.expert_count is not the same in the first file");
	write_split(&(struct deal){ 3, 2, 3, 12, false, false, NULL, 0 });
	expect(in_dir(first), 0, "key split.tensors.count is 12, expected 11");
	write_split(&(struct deal){ 3, 2, 3, 11, false, true, NULL, 0 });
	expect(in_dir(first), 0, "key split.no is missing");
	write_split(&(struct deal){ 3, 2, 3, 13, true, false, NULL, 0 });
	expect(in_dir(first), 0, "occurs in more than one part");
	write_split(&(struct deal){ 3, 2, 3, 11, false, false, NULL, 0 });
	assert_int_equal(unlink(in_dir("s-00003-of-00003.gguf")), 0);
	expect(in_dir(first), 0, "s-00003-of-00003.gguf: cannot be opened");
	assert_int_equal(rename(in_dir(first), in_dir("alone.gguf")), 0);
	expect(in_dir("alone.gguf"), 0, "key split.count is 3, expected 1");
	write_gguf("z-00001-of-99999.gguf");
	expect(in_dir("z-00001-of-99999.gguf"), 0, "is named as part 1 of 99999");
	write_gguf("z-00004-of-00003.gguf");
	expect(in_dir("z-00004-of-00003.gguf"), 0, "is named as part 4 of 3");
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
	uint8_t *p = tiny_safetensors(&tiny_least, &n);
	struct safetensors s;
	struct bytes index = { 0 };
	char line[200];

	tiny_write_hf(dir, &tiny_least);
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
		tiny_write(dir, line, file, m);
		free(file);
	}
	bytes_put(&index, "}}\n", 4);
	safetensors_free(&s);
	free(p);
	return (char *)index.p;
}

static void with_index(const char *text, const char *part)
{
	tiny_write(dir, "model.safetensors.index.json", text, strlen(text));
	expect(dir, 0, part);
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
		  "tensor model.norm.weight is not in model-00001-of-00002.safetensors, where the index says" },
		{ "model.norm.weight", "model.norm.wait", "tensor model.norm.wait is not in" },
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
	expect(in_dir("model-00002-of-00002.safetensors"), 0, NULL); /* any shard stands for all */
	assert_true(model_open(&m, dir, MODEL_HEADER_ONLY, NULL));
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

/* ---- header only */

static void test_header_only(void **state)
{
	write_gguf("m.gguf");
	tiny_write_hf(dir, &tiny_least);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "m.gguf" : "model.safetensors";
		struct stat st;
		struct model m;
		assert_int_equal(stat(in_dir(name), &st), 0);
		assert_int_equal(truncate(in_dir(name), st.st_size - 200), 0);
		expect(in_dir(name), 0, "but the file has");
		assert_true(model_open(&m, in_dir(name), MODEL_HEADER_ONLY, NULL));
		uint8_t byte;
		struct error err = { 0 };
		assert_false(model_read(&m, &m.spec.embed, 0, 1, &byte, &err));
		assert_non_null(strstr(err.text, "cannot be read, only the header was opened"));
		assert_true(m.spec.embed.rows == 5 && m.spec.embed.bytes == 80 && !m.spec.layer[0].q_bias.bytes);
		assert_true(m.tensor_bytes > 200 && m.file_bytes == (uint64_t)st.st_size - 200);
		model_close(&m);
	}
}

/* Data at an odd address is legal in safetensors; every byte is where the header says. */
static void test_unaligned_data(void **state)
{
	struct tiny_model t = tiny_least;
	struct model a, b;

	t.align = 1;
	for (int i = 0; i < 2; i++) {
		tiny_write_hf(dir, &t);
		struct model *m = i ? &b : &a;
		assert_true(model_open(m, dir, 0, NULL));
		assert_int_equal(unlink(in_dir("model.safetensors")), 0);
		t.align = 4096;
	}
	uint8_t *p = model_tensor_bytes(&a, &a.spec.layer[0].down), *q = model_tensor_bytes(&b, &b.spec.layer[0].down);
	assert_memory_equal(p, q, b.spec.layer[0].down.bytes);
	free(p);
	free(q);
	model_close(&a);
	model_close(&b);
}

/* ---- reference data */

static void test_shared_models_open(void **state)
{
	static const struct {
		const char *path, *line;
	} want[] = {
		{ "golden/llama-gqa4-bf16", "llama 3 layers, hidden 256, BF16" },
		{ "golden/llama-mha-f32", "llama 2 layers, hidden 128, F32" },
		{ "golden/mistral-gqa4-f16", "mistral 2 layers, hidden 512, F16" },
		{ "golden/qwen3-gqa2-bf16", "qwen3 3 layers, hidden 256, BF16" },
		{ "data/stories260K/hf", "llama 5 layers, hidden 64, F32" },
		{ "data/stories260K/stories260K.gguf", "llama 5 layers, hidden 64, F32" },
		{ "data/stories260K/stories260K.llamacpp-f16.gguf", "llama 5 layers, hidden 64, F16" },
		{ "models/tale-qwen3/tale-qwen3-q8_0.gguf", "qwen3 6 layers, hidden 256, Q8_0" },
	};
	char path[1024], line[100];

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct error err = { 0 };
		struct model m;
		if (!shared_path(path, want[i].path))
			skip();
		if (!model_open(&m, path, 0, &err))
			fail_msg("%s", err.text);
		model_describe(&m, line, sizeof line);
		assert_string_equal(line, want[i].line);
		assert_int_equal(m.tokenizer != NULL, strncmp(want[i].path, "golden", 6) != 0);
		model_close(&m);
	}
}

/* The converter writes what the reference's own converter wrote. */
static void test_conversion_equals_reference(void **state)
{
	char hf[1024], gguf[1024];
	struct model a, b;
	struct gguf_writer w;
	size_t n;

	if (!shared_path(hf, "data/stories260K/hf") || !shared_path(gguf, "data/stories260K/stories260K.own-f32.gguf"))
		skip();
	assert_true(model_open(&a, hf, MODEL_NO_TOKENIZER, NULL) && model_to_gguf(&w, &a, DTYPE_F32, NULL));
	uint8_t *p = gguf_writer_finish(&w, &n);
	struct gguf ours;
	assert_true(gguf_parse(&ours, p, n, "ours", false, NULL) && model_open(&b, gguf, MODEL_NO_TOKENIZER, NULL));
	const struct gguf *theirs = &b.file->part[0].gguf;
	uint8_t *reference = file_bytes(gguf, &n);
	assert_int_equal(ours.n_tensors, theirs->n_tensors);
	for (uint64_t i = 0; i < ours.n_tensors; i++) {
		char name[80];
		snprintf(name, sizeof name, "%.*s", (int)ours.tensor[i].name.n, ours.tensor[i].name.p);
		const struct gguf_tensor *t = gguf_find_tensor(theirs, name);
		assert_true(t && t->type == ours.tensor[i].type && t->bytes == ours.tensor[i].bytes);
		assert_memory_equal(p + ours.tensor[i].offset, reference + t->offset, t->bytes);
	}
	gguf_free(&ours);
	free(reference);
	free(p);
	gguf_writer_free(&w);
	model_close(&a);
	model_close(&b);
}

static bool unpack(const char *archive)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		execlp("tar", "tar", "-C", dir, "-xJf", archive, (char *)NULL);
		_exit(127);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_malformed_files(void **state)
{
	char archive[1024], line[400], name[100], answer[40];
	unsigned cases = 0;

	if (!shared_path(archive, "data/malformed/from-stories260K.tar.xz"))
		skip();
	if (!unpack(archive)) {
		printf("# skipped: tar cannot unpack %s\n", archive);
		skip();
	}
	FILE *f = fopen(in_dir("EXPECT.tsv"), "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		struct error err = { 0 };
		struct model m;
		if (sscanf(line, "%99s %39s", name, answer) != 2)
			continue;
		strcat(name, ".gguf");
		bool opened = model_open(&m, in_dir(name), 0, &err), ok = opened && !m.tokenizer_error.code;
		if (opened && !ok) { /* of use for token ids only, and says why */
			assert_null(m.tokenizer);
			err = m.tokenizer_error;
		}
		if (strcmp(answer, "either") != 0 && ok != (strcmp(answer, "accept") == 0))
			fail_msg("%s: expected %s: %s", name, answer, ok ? "opened" : err.text);
		if (opened)
			model_close(&m);
		if (!ok)
			assert_non_null(strstr(err.text, name)); /* every sentence names the file */
		cases++;
	}
	fclose(f);
	assert_true(cases >= 115);
}

static void write_text(const char *name, const char *text) { tiny_write(dir, name, text, strlen(text)); }

/* What ends a generation: the ids of config.json and of generation_config.json, one or a list, beside the tokenizer's
 * own. */
static void test_end_tokens(void **state)
{
	static const char tokenizer[] =
		"{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
		"\"add_prefix_space\": false}, "
		"\"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
		"\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"e\": 4}, \"merges\": []}}";
	struct tiny_model t = tiny_least;
	struct error err = { 0 };
	struct model m;

	t.extra = ", \"eos_token_id\": 1";
	tiny_write_hf(dir, &t);
	write_text("tokenizer.json", tokenizer);
	write_text("generation_config.json", "{\"eos_token_id\": [2, 4]}");
	if (!model_open(&m, dir, 0, &err))
		fail_msg("%s", err.text);
	for (int32_t id = 0; id < 5; id++)
		assert_int_equal(tokenizer_is_eog(m.tokenizer, id), id == 1 || id == 2 || id == 4);
	model_close(&m);
	write_text("generation_config.json", "{\"eos_token_id\": null}");
	expect(dir, 0, NULL);
	write_text("generation_config.json", "{\"eos_token_id\": [2, 5]}");
	expect(dir, 0, "eos_token_id is 5, expected one of the tokenizer's 5 tokens");
	write_text("generation_config.json", "{\"eos_token_id\": \"e\"}");
	expect(dir, 0, "eos_token_id is a string");
	write_text("generation_config.json", "[]");
	expect(dir, 0, "generation_config.json: its content is an array");
	write_text("generation_config.json", "{");
	expect(dir, 0, "generation_config.json: is not valid JSON");
}

/* A tokenizer that cannot be read does not stop the model; the reason is kept. */
static void test_unreadable_tokenizer(void **state)
{
	static const struct {
		const char *name, *text, *says;
	} rows[] = {
		{ "tokenizer.json", "{", "tokenizer.json: is not valid JSON in line 1, byte 2" },
		{ "tokenizer.json", "", "tokenizer.json: is empty" },
		{ "tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}",
		  "tokenizer.json: model.type is \"Unigram\"" },
		{ "tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656,}",
		  "tokenizer_config.json: is not valid JSON in line 1, byte 54" },
	};
	struct tiny_model t = tiny_least;
	struct error err = { 0 };
	struct model m;

	tiny_write_hf(dir, &t);
	write_text("tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}");
	write_text("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
	assert_true(model_open(&m, dir, 0, &err) && m.tokenizer && !m.tokenizer_error.code);
	model_close(&m);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		write_text(rows[i].name, rows[i].text);
		if (!model_open(&m, dir, 0, &err))
			fail_msg("%s", err.text);
		if (m.tokenizer || !strstr(m.tokenizer_error.text, rows[i].says))
			fail_msg("row %zu says: %s", i, m.tokenizer_error.text);
		model_close(&m);
		assert_true(model_open(&m, dir, MODEL_NO_TOKENIZER, &err) && !m.tokenizer_error.code);
		model_close(&m);
		write_text("tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}");
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_things_that_are_no_models),
		TEST(test_long_path_keeps_its_end),
		TEST(test_directories),
		TEST(test_adapters),
		TEST(test_split_gguf),
		TEST(test_sharded_safetensors),
		TEST(test_end_tokens),
		TEST(test_unreadable_tokenizer),
		TEST(test_header_only),
		TEST(test_unaligned_data),
		TEST(test_shared_models_open),
		TEST(test_conversion_equals_reference),
		TEST(test_malformed_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
