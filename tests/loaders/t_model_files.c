/* tests/loaders/t_model_files.c - models opened from paths: files, directories, split and sharded sets, things that are
 * no files, and the malformed files of the reference data. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_files.h"

static void test_things_that_are_no_models(void **state)
{
	expect_open(in_dir("absent.gguf"), 0, "cannot be opened: No such file");
	expect_open("", 0, "cannot be opened");
	expect_open(model_dir, 0, "holds no model, expected a .gguf or .safetensors file");
	tiny_write(model_dir, "pytorch_model.bin", "x", 1);
	expect_open(model_dir, 0, "holds no model, expected a .gguf or .safetensors file (there is pytorch_model.bin)");
	tiny_write(model_dir, "empty.gguf", "", 0);
	expect_open(in_dir("empty.gguf"), 0, "is empty (0 bytes)");
	tiny_write(model_dir, "text.txt", "hello", 5);
	expect_open(in_dir("text.txt"), 0, "is neither a GGUF file nor named .safetensors");
	assert_int_equal(mkfifo(in_dir("fifo.gguf"), 0600), 0);
	expect_open(in_dir("fifo.gguf"), 0, "is a FIFO, expected a regular file");
	assert_int_equal(mkdir(in_dir("d.gguf"), 0700), 0);
	expect_open(in_dir("d.gguf"), 0, "holds no model");
	expect_open("/dev/null", 0, "is a device");
	assert_int_equal(symlink("loop.gguf", in_dir("loop.gguf")), 0);
	expect_open(in_dir("loop.gguf"), 0, "cannot be opened");
	tiny_write(model_dir, "secret.gguf", "GGUF", 4);
	assert_int_equal(chmod(in_dir("secret.gguf"), 0), 0);
	expect_open(in_dir("secret.gguf"), 0,
	            geteuid() == 0 ? "too few for a GGUF header" : "cannot be opened: Permission denied");
	tiny_write(model_dir, "a\x1b[2Jb\xff.gguf", "GGML", 4);
	expect_open(in_dir("a\x1b[2Jb\xff.gguf"), 0, "a\\x1b[2Jb\\xff.gguf: begins with \"GGML\", expected \"GGUF\"");
}

static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22"
			  "eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345678\n";
static const struct {
	const char *bytes;
	size_t n; /* 0: a text */
	const char *said;
	bool weights; /* only in place of weights */
} kind[] = {
	{ lfs, 0, "is a Git LFS pointer, not the file that it stands for; 'git lfs pull'", false },
	{ "<!DOCTYPE html><html>Entry not found</html>", 0, "is a web page (HTML or XML)", false },
	{ "\xef\xbb\xbf\n  <HTML lang=en>\n", 0, "is a web page (HTML or XML)", false },
	{ "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", 0, "is a web page", false },
	{ "{\"error\":\"Invalid credentials in Authorization header\"}", 0,
	  ": it is JSON, \"{\"error\":\"Invalid credentials in Authorization header\"}\", perhaps what a "
	  "server "
	  "answered",
	  true },
	{ "Access to model x/y is restricted. You must be authenticated.", 0,
	  ": it is a text, \"Access to model x/y is restricted. You must be authenticated\", perhaps", true },
	{ "\x1f\x8b\x08\0\0\0\0\0\0\x03\xec\xbd", 12, "is compressed with gzip; unpack it", true },
	{ "PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0archive/data.pkl\x80\2}q", 36, "is a ZIP archive, as PyTorch's .bin",
	  true },
	{ "\x80\2}q\0X\x06\0\0\0weight", 16, "is a pickle of Python, as PyTorch's .bin", true },
	{ "tjgg\3\0\0\0\0\x7d\0\0", 12, "is a GGML file of before August 2023", true },
	{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, "begins with 20 bytes 0", true },
	{ "\xff\xfe<\0h\0t\0m\0l\0>\0", 14, "is a text in UTF-16", true },
};

/* What lies in the place of a file that was not downloaded, and files of other programs: said by name, whatever the
 * file is called. */
static void test_stand_ins(void **state)
{
	static const char *const weights[] = { "x.gguf", "x.safetensors", "pytorch_model.bin", "sha256-0123" };
	static const char *const texts[] = { "config.json", "tokenizer.json", "model.safetensors.index.json",
		                             "generation_config.json", "chat_template.jinja" };
	struct model m;

	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
		const size_t n = kind[i].n ? kind[i].n : strlen(kind[i].bytes);
		tiny_write_hf(model_dir, &tiny_min);
		for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
			tiny_write(model_dir, weights[k], kind[i].bytes, n);
			expect_open(in_dir(weights[k]), 0, kind[i].said);
			assert_int_equal(unlink(in_dir(weights[k])), 0);
		}
		for (size_t k = 0; k < sizeof texts / sizeof *texts && !kind[i].weights; k++) {
			struct error err = { 0 };
			tiny_write_hf(model_dir, &tiny_min);
			if (k == 2)
				assert_int_equal(unlink(in_dir("model.safetensors")), 0);
			tiny_write(model_dir, texts[k], kind[i].bytes, n);
			bool ok = model_open(&m, model_dir, 0, &err), apart = k == 1 || k == 4;
			assert_int_equal(ok, apart); /* without these two a model is one all the same */
			const char *text = k == 1   ? m.tokenizer_error.text
			                   : k == 4 ? m.chat_template_error.text
			                            : err.text;
			if (!strstr(text, kind[i].said) || !strstr(text, texts[k]))
				fail_msg("%s: expected \"%s\", got \"%s\"", texts[k], kind[i].said, text);
			if (ok)
				model_close(&m);
			assert_int_equal(unlink(in_dir(texts[k])), 0);
		}
	}
}

/* Texts beside a model that some editor wrote: with a mark of UTF-8 they are the same, in UTF-16 they are refused. */
static void test_byte_order_marks(void **state)
{
	static const char mark[] = "\xef\xbb\xbf", template[] = "{{ messages[0].content }}";
	struct model m;
	char text[1 << 16];

	tiny_write_hf(model_dir, &tiny_min);
	FILE *f = fopen(in_dir("config.json"), "r");
	size_t n = fread(text + 3, 1, sizeof text - 3, f);
	fclose(f);
	memcpy(text, mark, 3);
	tiny_write(model_dir, "config.json", text, n + 3);
	snprintf(text, sizeof text, "%s%s", mark, template);
	tiny_write(model_dir, "chat_template.jinja", text, strlen(text));
	struct error err = { 0 };
	if (!model_open(&m, model_dir, 0, &err))
		fail_msg("%s", err.text);
	const char *kept = model_find_chat_template(&m, NULL)->text;
	assert_int_equal(strncmp(kept, template, strlen(template)), 0);
	model_close(&m);
	static const char utf16[] = "\xff\xfe{\0}\0", utf32[] = "\0\0\xfe\xff\0\0\0{", plain16[] = "{\0\n\0}\0";
	tiny_write(model_dir, "config.json", utf16, 6);
	expect_open(model_dir, 0, "config.json: is a text in UTF-16, expected UTF-8");
	tiny_write(model_dir, "config.json", utf32, 8);
	expect_open(model_dir, 0, "config.json: is a text in UTF-32, expected UTF-8");
	tiny_write(model_dir, "config.json", plain16, 6);
	expect_open(model_dir, 0, "config.json: is a text in UTF-16, expected UTF-8");
	assert_int_equal(unlink(in_dir("chat_template.jinja")), 0);
}

static void test_long_path_keeps_its_end(void **state)
{
	char name[256] = { 0 };
	struct error err = { 0 };
	struct model m;

	memset(name, 'x', 200);
	memcpy(name + 200, "\xc3\xa9.gguf", 8);
	tiny_write(model_dir, name, "GGML", 4);
	assert_false(model_open(&m, in_dir(name), 0, &err));
	assert_true(strncmp(err.text, "...", 3) == 0 && strstr(err.text, "xx\xc3\xa9.gguf: begins with"));
}

static void test_directories(void **state)
{
	tiny_write_hf(model_dir, &tiny_min);
	expect_open(model_dir, 0, NULL);
	char slash[310];
	snprintf(slash, sizeof slash, "%s/", model_dir);
	expect_open(slash, 0, NULL);
	expect_open(in_dir("model.safetensors"), 0, NULL);
	write_gguf("one.gguf");
	write_gguf("two.gguf");
	expect_open(model_dir, 0, NULL); /* the safetensors model */
	expect_open(in_dir("one.gguf"), 0, NULL);
	assert_int_equal(rename(in_dir("one.gguf"), in_dir("one")), 0);
	expect_open(in_dir("one"), 0, NULL); /* by its first bytes */
	assert_int_equal(unlink(in_dir("config.json")), 0);
	expect_open(model_dir, 0, "config.json: cannot be opened");
	assert_int_equal(rename(in_dir("model.safetensors"), in_dir("other.safetensors")), 0);
	expect_open(model_dir, 0, NULL); /* two.gguf */
	assert_int_equal(rename(in_dir("one"), in_dir("one.gguf")), 0);
	tiny_write(model_dir, "mmproj-one.gguf", "x", 1); /* goes with a model, and is none */
	expect_open(model_dir, 0, "holds 2 GGUF models (one.gguf, two.gguf), expected one; name the file");
	write_gguf("five.gguf");
	write_gguf("four.gguf");
	write_gguf("three.gguf");
	expect_open(
		model_dir, 0,
		"holds 5 GGUF models (five.gguf, four.gguf, one.gguf, three.gguf, ...), expected one; name the file");
	assert_true(unlink(in_dir("five.gguf")) == 0 && unlink(in_dir("four.gguf")) == 0 &&
	            unlink(in_dir("three.gguf")) == 0);
	assert_true(unlink(in_dir("one.gguf")) == 0 && unlink(in_dir("two.gguf")) == 0);
	expect_open(model_dir, 0, "config.json: cannot be opened");
	tiny_write(model_dir, "more.safetensors", "", 0);
	expect_open(model_dir, 0, "holds 2 .safetensors files and neither");
}

static void test_adapters(void **state)
{
	tiny_write_hf(model_dir, &tiny_min);
	expect_open(model_dir, 0, NULL);
	tiny_write(model_dir, "adapter_config.json", "{}", 2);
	expect_open(model_dir, 0, "holds an adapter (LoRA, adapter_config.json), which changes a model");
	expect_open(in_dir("model.safetensors"), 0, "model.safetensors: holds an adapter");
	write_gguf("one.gguf");
	expect_open(in_dir("one.gguf"), 0, NULL);
	assert_int_equal(unlink(in_dir("config.json")), 0);
	assert_int_equal(rename(in_dir("model.safetensors"), in_dir("adapter_model.safetensors")), 0);
	expect_open(in_dir("adapter_model.safetensors"), 0, "holds an adapter");
}

/* ---- header only */

static void test_header_only(void **state)
{
	write_gguf("m.gguf");
	tiny_write_hf(model_dir, &tiny_min);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "m.gguf" : "model.safetensors";
		struct stat st;
		struct model m;
		assert_int_equal(stat(in_dir(name), &st), 0);
		assert_int_equal(truncate(in_dir(name), st.st_size - 200), 0);
		expect_open(in_dir(name), 0, "but the file has");
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
	struct tiny_model t = tiny_min;
	struct model a, b;

	t.align = 1;
	for (int i = 0; i < 2; i++) {
		tiny_write_hf(model_dir, &t);
		struct model *m = i ? &b : &a;
		assert_true(model_open(m, model_dir, 0, NULL));
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
		execlp("tar", "tar", "-C", model_dir, "-xJf", archive, (char *)NULL);
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

static void write_text(const char *name, const char *text) { tiny_write(model_dir, name, text, strlen(text)); }

/* What ends a generation: the ids of config.json and of generation_config.json, one or a list, beside the tokenizer's
 * own. */
static void test_end_tokens(void **state)
{
	static const char tokenizer[] =
		"{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
		"\"add_prefix_space\": false}, "
		"\"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
		"\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"e\": 4}, \"merges\": []}}";
	struct tiny_model t = tiny_min;
	struct error err = { 0 };
	struct model m;

	t.extra = ", \"eos_token_id\": 1";
	tiny_write_hf(model_dir, &t);
	write_text("tokenizer.json", tokenizer);
	write_text("generation_config.json", "{\"eos_token_id\": [2, 4]}");
	if (!model_open(&m, model_dir, 0, &err))
		fail_msg("%s", err.text);
	for (int32_t id = 0; id < 5; id++)
		assert_int_equal(tokenizer_is_eog(m.tokenizer, id), id == 1 || id == 2 || id == 4);
	model_close(&m);
	write_text("generation_config.json", "{\"eos_token_id\": null}");
	expect_open(model_dir, 0, NULL);
	write_text("generation_config.json", "{\"eos_token_id\": [2, 5]}");
	expect_open(model_dir, 0, "eos_token_id is 5, expected one of the tokenizer's 5 tokens");
	write_text("generation_config.json", "{\"eos_token_id\": \"e\"}");
	expect_open(model_dir, 0, "eos_token_id is a string");
	write_text("generation_config.json", "[]");
	expect_open(model_dir, 0, "generation_config.json: its content is an array");
	write_text("generation_config.json", "{");
	expect_open(model_dir, 0, "generation_config.json: is not valid JSON");
}

/* A tokenizer that cannot be read does not stop the model; the reason is kept. */
static void test_unreadable_tokenizer(void **state)
{
	static const struct {
		const char *name, *text, *says;
	} rows[] = {
		{ "tokenizer.json", "{", "tokenizer.json: is not valid JSON in line 1, byte 2" },
		{ "tokenizer.json", "", "tokenizer.json: is empty" },
		{ "tokenizer.json", "{\"model\": {\"type\": \"Odd\"}}", "tokenizer.json: model.type is \"Odd\"" },
		{ "tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656,}",
		  "tokenizer_config.json: is not valid JSON in line 1, byte 54" },
	};
	struct tiny_model t = tiny_min;
	struct error err = { 0 };
	struct model m;

	tiny_write_hf(model_dir, &t);
	write_text("tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}");
	write_text("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
	assert_true(model_open(&m, model_dir, 0, &err) && m.tokenizer && !m.tokenizer_error.code);
	model_close(&m);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		write_text(rows[i].name, rows[i].text);
		if (!model_open(&m, model_dir, 0, &err))
			fail_msg("%s", err.text);
		if (m.tokenizer || !strstr(m.tokenizer_error.text, rows[i].says))
			fail_msg("row %zu says: %s", i, m.tokenizer_error.text);
		model_close(&m);
		assert_true(model_open(&m, model_dir, MODEL_NO_TOKENIZER, &err) && !m.tokenizer_error.code);
		model_close(&m);
		write_text("tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_things_that_are_no_models),
		TEST(test_stand_ins),
		TEST(test_byte_order_marks),
		TEST(test_long_path_keeps_its_end),
		TEST(test_directories),
		TEST(test_adapters),
		TEST(test_end_tokens),
		TEST(test_unreadable_tokenizer),
		TEST(test_header_only),
		TEST(test_unaligned_data),
		TEST(test_shared_models_open),
		TEST(test_conversion_equals_reference),
		TEST(test_malformed_files),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += model_parts_tests();
	return failed;
}
