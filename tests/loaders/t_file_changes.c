/* tests/loaders/t_file_changes.c - model files that are cut, written to, lengthened, replaced or removed while they are
 * read.
 *
 * First at every single read: this program's own pread() changes the file that is about to be read. What is no file of
 * the model any more gives the very weights; everything else gives the sentence that says so. Then at random moments,
 * by a process beside the jitrun program: it prints what it prints of the file as it was, or one sentence, and never
 * dies of a signal. JITRUN_PROGRAM names another program to try that on. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "runtime/device/device.h"
#include "runtime/model/load_weights.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/file_changes.h"

/* ---- at every read */

static struct {
	enum change change;
	unsigned at, reads;
} plan;

ssize_t pread(int fd, void *out, size_t n, off_t at);

/* In place of libc's: before read number plan.at of a file in change_dir, the file changes. */
ssize_t pread(int fd, void *out, size_t n, off_t at)
{
	char link[64], path[1024];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length > 0) {
		path[length] = 0;
		if (*change_dir && strncmp(path, change_dir, strlen(change_dir)) == 0 && ++plan.reads == plan.at)
			change_file(path, plan.change);
	}
	return syscall(SYS_pread64, fd, out, n, at);
}

/* A model as it was when its files were quiet. */
struct quiet {
	uint8_t *arena, *vectors;
	size_t arena_bytes, vectors_bytes;
	unsigned reads;
};

static struct device *device; /* of all tests, for as long as the program runs */

static bool load(struct weights *w, const char *path, struct error *err)
{
	struct model m;
	struct pool *pool = pool_open(1, err);

	plan.reads = 0;
	bool ok = pool && model_open(&m, path, 0, err);
	if (ok) {
		ok = weights_open(w, &m, NULL, device, pool, NULL, NULL, err);
		model_close(&m);
	}
	if (pool)
		pool_close(pool);
	return ok;
}

static struct quiet load_quiet(const char *path)
{
	struct error err = { 0 };
	struct weights w;

	plan.change = NOTHING;
	if (!load(&w, path, &err))
		fail_msg("%s", err.text);
	struct quiet q = { malloc(w.packed_bytes), malloc(w.vectors_bytes), w.packed_bytes, w.vectors_bytes,
		           plan.reads };
	memcpy(q.arena, w.arena, q.arena_bytes);
	memcpy(q.vectors, w.vectors, q.vectors_bytes);
	weights_close(&w);
	return q;
}

static void free_quiet(struct quiet *q)
{
	free(q->arena);
	free(q->vectors);
}

static void same_as(const struct quiet *q, const struct weights *w)
{
	assert_int_equal(q->arena_bytes, w->packed_bytes);
	assert_memory_equal(q->arena, w->arena, q->arena_bytes);
	assert_memory_equal(q->vectors, w->vectors, q->vectors_bytes);
}

static void at_every_read(const char *path, const struct kept *files, size_t n_files)
{
	unsigned tried = 0, step = test_quick() ? 3 : 1;

	for (size_t i = 0; i < n_files; i++)
		put_back(&files[i]);
	struct quiet q = load_quiet(path);
	assert_true(q.reads > 20);
	for (enum change c = CUT_HALF; c < CHANGES; c++)
		for (unsigned at = q.reads <= 3 ? 1 : 1 + (unsigned)c % step; at <= q.reads;
		     at += at < 4 ? 1 : step, tried++) {
			struct error err = { 0 };
			struct weights w;
			for (size_t i = 0; i < n_files; i++)
				put_back(&files[i]);
			plan.change = c;
			plan.at = at;
			bool ok = load(&w, path, &err);
			if (ok != (c == REPLACE || c == REMOVE) ||
			    (!ok && !strstr(err.text, "changed while it was read")))
				fail_msg("%s before read %u of %u: %s", change_name[c], at, q.reads,
				         ok ? "nothing was noticed" : err.text);
			if (ok) {
				same_as(&q, &w);
				weights_close(&w);
			}
		}
	printf("# %u reads, %u changes tried\n", q.reads, tried);
	free_quiet(&q);
}

static const struct tiny_model model = {
	"llama", 2, 64, 96, 4, 2, 16, 700, DTYPE_F32, .tied = true, .attention_bias = true
};

/* A GGUF file whose header takes several reads. */
static uint8_t *long_gguf(size_t *n)
{
	enum { WORDS = 6000, LENGTH = 100 };
	static char text[LENGTH + 1];
	static const char *word[WORDS];
	size_t n_hf;
	uint8_t *hf = tiny_safetensors(&model, &n_hf);
	char *config = tiny_config(&model);
	struct gguf_writer w;
	struct model m;

	memset(text, 'x', LENGTH);
	for (int i = 0; i < WORDS; i++)
		word[i] = text;
	assert_true(model_open_memory(&m, hf, n_hf, config, strlen(config), 0, NULL) &&
	            model_to_gguf(&w, &m, DTYPE_BF16, NULL));
	gguf_write_strings(&w, "some.words", word, WORDS);
	uint8_t *p = gguf_writer_finish(&w, n);
	gguf_writer_free(&w);
	model_close(&m);
	free(config);
	free(hf);
	return p;
}

static void test_gguf_at_every_read(void **state)
{
	struct kept file = { .name = "m.gguf" };

	file.p = long_gguf(&file.n);
	at_every_read(in_dir("m.gguf"), &file, 1);
	free(file.p);
}

static void test_safetensors_at_every_read(void **state)
{
	char *config = tiny_config(&model);
	struct kept files[2] = { { .name = "model.safetensors" },
		                 { "config.json", (uint8_t *)config, strlen(config) } };

	files[0].p = tiny_safetensors(&model, &files[0].n);
	at_every_read(change_dir, files, 2);
	free(files[0].p);
	free(config);
}

/* ---- many files */

/* Each tensor in a shard of its own, behind an index; returns how many. */
static unsigned write_shards(const struct tiny_model *t)
{
	size_t n, m;
	uint8_t *p = tiny_safetensors(t, &n);
	char *config = tiny_config(t), line[300], name[100];
	struct bytes index = { 0 };
	struct safetensors s;

	assert_true(safetensors_parse(&s, p, n, "whole", false, NULL));
	tiny_write(change_dir, "config.json", config, strlen(config));
	bytes_put(&index, "{\"weight_map\": {", 16);
	for (uint32_t i = 0; i < s.n_tensors; i++) {
		const struct safetensors_tensor *tensor = &s.tensor[i];
		struct st_writer w;
		st_writer_start(&w);
		snprintf(name, sizeof name, "%.*s", (int)tensor->name.n, tensor->name.p);
		st_write_tensor(&w, name, tensor->type, tensor->rank, tensor->dim, p + tensor->offset, tensor->bytes);
		int length = snprintf(line, sizeof line, "%s\"%s\": \"s%u.safetensors\"", i ? ", " : "", name, i);
		bytes_put(&index, line, (size_t)length);
		uint8_t *file = st_writer_finish(&w, 8, &m);
		snprintf(line, sizeof line, "s%u.safetensors", i);
		tiny_write(change_dir, line, file, m);
		free(file);
	}
	bytes_put(&index, "}}\n", 3);
	tiny_write(change_dir, "model.safetensors.index.json", index.p, index.n);
	unsigned shards = s.n_tensors;
	bytes_forget(&index);
	safetensors_free(&s);
	free(config);
	free(p);
	return shards;
}

static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_more_files_than_descriptors(void **state)
{
	const struct tiny_model t = { "llama", 6, 64, 96, 4, 2, 16, 300, DTYPE_F32, .tied = true };
	const unsigned before = open_files();
	struct rlimit all, small;
	struct error err = { 0 };
	struct weights w;

	tiny_write_hf(change_dir, &t);
	struct quiet q = load_quiet(change_dir);
	assert_int_equal(unlink(in_dir("model.safetensors")), 0);
	assert_int_equal(write_shards(&t), 6 * 9 + 2);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	small = all;
	small.rlim_cur = before + 8;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	bool ok = load(&w, change_dir, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	if (!ok)
		fail_msg("%s", err.text);
	same_as(&q, &w);
	weights_close(&w);
	assert_int_equal(open_files(), before);
	/* such a file is opened anew for what is read of it, and must be the same one still */
	plan.change = REPLACE;
	plan.at = plan.reads - 20;
	assert_false(load(&w, change_dir, &err));
	assert_non_null(strstr(err.text, "was replaced by another file while it was read"));
	free_quiet(&q);
}

/* When the weights are in memory, nothing of the model is open. */
static void test_nothing_stays_open(void **state)
{
	const unsigned before = open_files();
	struct weights w;
	struct model m;
	struct pool *pool = pool_open(1, NULL);

	plan.change = NOTHING;
	tiny_write_hf(change_dir, &model);
	assert_true(pool && model_open(&m, change_dir, 0, NULL));
	assert_int_equal(open_files(), before + 1);
	assert_true(weights_open(&w, &m, NULL, device, pool, NULL, NULL, NULL));
	assert_int_equal(open_files(), before);
	weights_close(&w);
	model_close(&m);
	assert_true(model_open(&m, change_dir, MODEL_HEADER_ONLY, NULL));
	assert_int_equal(open_files(), before);
	model_close(&m);
	pool_close(pool);
}

/* ---- the copy of a header */

static void test_header_in_parts(void **state)
{
	enum { N = 3000001 };
	uint8_t *p = malloc(N), some[100];
	struct error err = { 0 };
	struct file f;

	for (int i = 0; i < N; i++)
		p[i] = (uint8_t)((unsigned)i * 2654435761u >> 24);
	tiny_write(change_dir, "f", p, N);
	assert_true(file_open(&f, in_dir("f"), &err) && f.size == N && f.have == 0);
	assert_true(file_reach(&f, 1, &err));
	const uint8_t *base = f.base;
	for (uint64_t n = 1; n < N; n = n * 5 / 2) {
		assert_true(file_reach(&f, n, &err) && f.have >= n && f.have <= N && f.base == base);
		assert_memory_equal(f.base, p, f.have);
	}
	file_trim(&f, 5000);
	assert_true(f.have >= 5000 && f.have < 20000);
	assert_memory_equal(f.base, p, f.have);
	assert_true(file_read(&f, 4950, 100, some, &err) && memcmp(some, p + 4950, 100) == 0);
	assert_true(file_read(&f, N - 100, 100, some, &err) && memcmp(some, p + N - 100, 100) == 0);
	file_rest(&f);
	assert_true(file_read(&f, N - 50, 50, some, &err) && memcmp(some, p + N - 50, 50) == 0);
	assert_int_equal(unlink(in_dir("f")), 0);
	assert_false(file_read(&f, N - 50, 50, some, &err));
	assert_non_null(strstr(err.text, "cannot be opened again: No such file"));
	file_close(&f);
	free(p);
}

/* A text value of 300 MB in a file with holes is not copied. */
static void test_header_without_end(void **state)
{
	const uint64_t length = 300000000, parts[] = { 0, 1, 3 };
	const uint32_t version = 3, type = GGUF_STRING;
	uint8_t head[100];
	size_t n = 0;

	memcpy(head, "GGUF", n = 4);
	memcpy(head + n, &version, 4), n += 4;
	memcpy(head + n, parts, 24), n += 24; /* no tensor, one key, a name of three */
	memcpy(head + n, "key", 3), n += 3;
	memcpy(head + n, &type, 4), n += 4;
	memcpy(head + n, &length, 8), n += 8;
	tiny_write(change_dir, "m.gguf", head, n);
	assert_int_equal(truncate(in_dir("m.gguf"), 400000000), 0);
	struct error err = { 0 };
	struct model m;
	assert_false(model_open(&m, in_dir("m.gguf"), 0, &err));
	assert_non_null(strstr(err.text, "m.gguf: the header has 300000047 bytes or more, expected at most 268435456"));
}

/* Texts of files with holes: refused by their size, before any of it is copied. */
static void test_texts_without_end(void **state)
{
	static const struct {
		const char *name;
		unsigned max;
	} text[] = { { "generation_config.json", 1048576 },
		     { "tokenizer_config.json", 134217728 },
		     { "tokenizer.json", 134217728 },
		     { "config.json", 1048576 },
		     { "model.safetensors.index.json", 33554432 } };

	tiny_write_hf(change_dir, &tiny_min);
	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		struct error err = { 0 };
		struct model m;
		char expected[200];
		if (i == 4) {
			tiny_write_hf(change_dir, &tiny_min);
			assert_int_equal(unlink(in_dir("model.safetensors")), 0); /* beside it no index is looked at */
		}
		tiny_write(change_dir, text[i].name, "{", 1);
		assert_int_equal(truncate(in_dir(text[i].name), 200000000), 0);
		bool ok = model_open(&m, change_dir, 0, &err), tokenizer = strncmp(text[i].name, "tokenizer", 9) == 0;
		assert_int_equal(ok, tokenizer); /* a model without its tokenizer is one all the same */
		if (ok) {
			err = m.tokenizer_error;
			model_close(&m);
		}
		snprintf(expected, sizeof expected, "/%s: has 200000000 bytes, expected at most %u", text[i].name,
		         text[i].max);
		if (!strstr(err.text, expected))
			fail_msg("expected \"%s\", got \"%s\"", expected, err.text);
		if (i < 3)
			assert_int_equal(unlink(in_dir(text[i].name)), 0);
	}
}

int main(void)
{
	struct error err = { 0 };
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
		TEST(test_header_in_parts),           TEST(test_header_without_end),
		TEST(test_texts_without_end),         TEST(test_gguf_at_every_read),
		TEST(test_safetensors_at_every_read), TEST(test_more_files_than_descriptors),
		TEST(test_nothing_stays_open),
	};

	device = device_open("cpu", NULL, &err);
	if (!device) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	device_close(device);
	return failed;
}
