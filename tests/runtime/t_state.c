/* tests/runtime/t_state.c - sessions that are saved, restored and forked go on with the bits that they would have had:
 * every type of cache, windows in all layers, in some and in none, texts that end before, at and behind the border of a
 * chunk. What does not fit is refused, and leaves a session that can be used.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/store/record.h"
#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { MAX = 700, MORE = 5, HEADER = 256, AT_SUM = 104, AT_HEADER_SUM = 248 };

static char dir[] = "/tmp/t_state-XXXXXX", path[300];
static int32_t ids[MAX + MORE];

static const struct tiny_model window_all = {
	.arch = "mistral",
	.layers = 3,
	.hidden = 64,
	.ffn = 96,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 16,
	.vocab = 256,
	.type = DTYPE_BF16,
	.tied = true,
	.extra = ", \"sliding_window\": 40"
};
static const struct tiny_model window_some = {
	.arch = "qwen3",
	.layers = 4,
	.hidden = 64,
	.ffn = 96,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 40,
	.vocab = 256,
	.type = DTYPE_F32,
	.tied = true,
	.extra = ", \"use_sliding_window\": true, \"sliding_window\": 40, \"layer_types\": [\"sliding_attention\", "
		 "\"full_attention\", \"sliding_attention\", \"sliding_attention\"]"
};
static const struct tiny_model no_window = {
	.arch = "llama",
	.layers = 2,
	.hidden = 64,
	.ffn = 96,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 16,
	.vocab = 256,
	.type = DTYPE_F16,
	.tied = true
};

static void make_ids(int vocab)
{
	for (int i = 0; i < MAX + MORE; i++)
		ids[i] = (int32_t)((unsigned)i * 7919u % (unsigned)vocab);
}

static jit_model *open_tiny(const struct tiny_model *t, const char *device)
{
	char folder[200];
	jit_error err = { 0 };

	make_ids((int)t->vocab);
	snprintf(folder, sizeof folder, "%s/%s", dir, t->arch);
	mkdir(folder, 0700);
	tiny_write_hf(folder, t);
	jit_model *m =
		jit_model_open(folder, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);
	if (!m)
		fail_msg("%s: %s", t->arch, err.message);
	return m;
}

static jit_session *open_session(jit_model *m, int context, int batch, int kv)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m,
	                                  &JIT_SESSION_OPTIONS(.context = context, .batch = batch, .kv = kv,
	                                                       .threads = 2, .speculate = JIT_SPECULATE_OFF),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static int vocab_of(const jit_model *m)
{
	jit_model_info info = JIT_MODEL_INFO();

	jit_model_get_info(m, &info, NULL);
	return info.vocab;
}

/* Both compute the same from here on, token by token and all at once. */
static void must_agree(jit_model *m, jit_session *a, jit_session *b)
{
	size_t bytes = (size_t)vocab_of(m) * sizeof(float), n = jit_session_length(a);

	assert_int_equal(jit_session_length(b), n);
	assert_memory_equal(jit_session_ids(a), jit_session_ids(b), n * sizeof *ids);
	if (n)
		assert_memory_equal(jit_session_logits(a, NULL), jit_session_logits(b, NULL), bytes);
	for (int i = 0; i < 2; i++) {
		jit_error err = { 0 };
		must(jit_session_feed(a, ids + n, i ? MORE - 1 : 1, &err), &err);
		must(jit_session_feed(b, ids + n, i ? MORE - 1 : 1, &err), &err);
		assert_memory_equal(jit_session_logits(a, NULL), jit_session_logits(b, NULL), bytes);
	}
}

static void check_length(jit_model *m, jit_session *whole, int n, int kv, int context, int batch)
{
	jit_session *s = open_session(m, 1024, 16, kv), *restored, *fork;
	jit_error err = { 0 };

	must(jit_session_rewind(whole, 0, &err), &err);
	if (n) {
		must(jit_session_feed(whole, ids, (size_t)n, &err), &err);
		must(jit_session_feed(s, ids, (size_t)n, &err), &err);
	}
	must(jit_session_save(s, path, &err), &err);
	restored = open_session(m, context, batch, kv);
	must(jit_session_restore(restored, path, &err), &err);
	must_agree(m, whole, restored);
	must(jit_session_rewind(whole, (size_t)n, &err), &err);
	if (n) {
		must(jit_session_rewind(whole, (size_t)n - 1, &err), &err);
		must(jit_session_feed(whole, ids + n - 1, 1, &err), &err);
	}
	fork = jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = context, .batch = batch, .kv = kv, .threads = 1),
	                        &err);
	if (!fork)
		fail_msg("%s", err.message);
	must_agree(m, whole, fork);
	assert_int_equal(jit_session_length(s), n); /* and s is as it was */
	jit_session_close(fork);
	jit_session_close(restored);
	jit_session_close(s);
}

static void check_model(jit_model *m, const int *lengths, int n_lengths)
{
	static const int kinds[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };

	make_ids(vocab_of(m));
	for (size_t k = 0; k < 3; k++) {
		jit_session *whole = open_session(m, 1024, 1024, kinds[k]); /* which keeps all positions */
		for (int i = 0; i < n_lengths; i++) /* to a session that keeps a window, and to one that keeps all */
			check_length(m, whole, lengths[i], kinds[k], i & 1 ? 1024 : 896, i & 1 ? 16 : 896);
		jit_session_close(whole);
	}
}

static void test_tiny(void **state)
{
	static const struct tiny_model *const models[] = { &window_all, &window_some, &no_window };
	static const int lengths[] = { 0, 1, 39, 127, 128, 129, 300, 385, 640, 700 };
	static const int short_lengths[] = { 1, 130, 400 };
	bool quick = test_quick();

	for (size_t i = 0; i < 3; i++) {
		jit_model *m = open_tiny(models[i], "cpu");
		check_model(m, quick ? short_lengths : lengths, quick ? 3 : 10);
		jit_model_close(m);
	}
}

static void test_devices(void **state)
{
	static const char *const devices[] = { "ref", "sim:gfx1100", "sim:gfx1030" };
	static const int short_lengths[] = { 130 };

	setenv("JITRUN_SIM_HIDE", "1", 1);
	for (size_t i = 0; i < (test_quick() ? 2 : 3); i++) {
		jit_model *m = open_tiny(i ? &window_all : &window_some, devices[i]);
		check_model(m, short_lengths, 1);
		jit_model_close(m);
	}
	unsetenv("JITRUN_SIM_HIDE");
}

/* What one CPU wrote, another kind of CPU and the interpreter read. */
static void test_between_devices(void **state)
{
	jit_model *m = open_tiny(&window_some, "cpu"), *ref = open_tiny(&window_some, "ref"),
		  *card = open_tiny(&window_some, "sim:gfx1100");
	jit_session *s = open_session(m, 512, 16, JIT_KV_F16), *t = open_session(ref, 512, 16, JIT_KV_F16),
		    *u = open_session(card, 512, 16, JIT_KV_F16);
	jit_error err = { 0 };

	must(jit_session_feed(s, ids, 50, &err), &err);
	must(jit_session_save(s, path, &err), &err);
	must(jit_session_restore(t, path, &err), &err);
	must_agree(m, s, t);
	assert_int_equal(jit_session_restore(u, path, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "another kind of device"));
	jit_session_close(s);
	jit_session_close(t);
	jit_session_close(u);
	jit_model_close(m);
	jit_model_close(ref);
	jit_model_close(card);
}

static void test_golden(void **state)
{
	static const int lengths[] = { 140 };
	char folder[1024];
	unsigned families = 0;

	if (!shared_path(folder, "golden"))
		skip();
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		char one[2048];
		snprintf(one, sizeof one, "%s/%s", folder, e->d_name);
		jit_model *m =
			*e->d_name == '.' ? NULL : jit_model_open(one, &JIT_MODEL_OPTIONS(.cache_dir = ""), NULL);
		if (m && (!test_quick() || families < 2))
			check_model(m, lengths, 1);
		families += m != NULL;
		jit_model_close(m);
	}
	closedir(d);
	printf("# %u models\n", families);
	assert_true(families > 0);
}

/* ---- what is refused */

static void refused(jit_session *s, const char *words)
{
	jit_error err = { 0 };
	int32_t id = 1;

	assert_int_not_equal(jit_session_restore(s, path, &err), JIT_OK);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
	assert_int_equal(jit_session_length(s), 0);
	assert_int_equal(jit_session_feed(s, &id, 1, &err), JIT_OK);
	assert_non_null(jit_session_logits(s, &err));
	assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
}

/* Saved by a session of m, read by one of another. */
static void check_other(jit_model *m, jit_model *other, int kv, const char *words)
{
	jit_session *s = open_session(m, 256, 16, JIT_KV_F16), *t = open_session(other, 256, 16, kv);
	jit_error err = { 0 };

	must(jit_session_feed(s, ids, 20, &err), &err);
	must(jit_session_save(s, path, &err), &err);
	refused(t, words);
	jit_session_close(s);
	jit_session_close(t);
}

static void test_others(void **state)
{
	struct tiny_model changed = no_window;
	jit_model *m = open_tiny(&no_window, "cpu"), *window = open_tiny(&window_all, "cpu");
	jit_error err = { 0 };

	check_other(m, m, JIT_KV_F32, "has a KV cache of F16, and the session has F32");
	check_other(m, window, JIT_KV_F16, "was saved with the model \"llama 2 layers");
	changed.extra = ", \"rope_theta\": 5000.0"; /* the same words, other numbers */
	jit_model *other = open_tiny(&changed, "cpu");
	check_other(m, other, JIT_KV_F16, "its weights or numbers are others");
	jit_model_close(other);
	char folder[200], weights[256];
	snprintf(folder, sizeof folder, "%s/llama", dir);
	snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
	tiny_write_hf(folder, &no_window);
	FILE *f = fopen(weights, "r+b"); /* one bit of one weight */
	fseek(f, -1, SEEK_END);
	int last = fgetc(f);
	fseek(f, -1, SEEK_END);
	fputc(last ^ 1, f);
	fclose(f);
	assert_non_null(other = jit_model_open(folder, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err));
	check_other(m, other, JIT_KV_F16, "its weights or numbers are others");
	jit_model_close(other);
	assert_non_null(
		other = jit_model_open(
			folder, &JIT_MODEL_OPTIONS(.cache_dir = "", .bounded_numerics = JIT_NUMERICS_ALWAYS_BOUNDED),
			&err));
	check_other(other, other, JIT_KV_Q8_0, "has a KV cache of F16, and the session has Q8_0");
	jit_model *exact = jit_model_open(folder, &JIT_MODEL_OPTIONS(.cache_dir = ""), &err);
	check_other(other, exact, JIT_KV_F16,
	            "other numerics: int8 activations, bounded, and this is int8 activations, exact");
	jit_model_close(exact);
	jit_model_close(other);
	jit_model_close(window);
	jit_model_close(m);
}

static uint8_t *saved(jit_model *m, jit_session *s, size_t *n)
{
	jit_error err = { 0 };

	must(jit_session_feed(s, ids, 150, &err), &err);
	must(jit_session_save(s, path, &err), &err);
	must(jit_session_rewind(s, 0, &err), &err);
	return file_bytes(path, n);
}

static void test_damage(void **state)
{
	jit_model *m = open_tiny(&window_some, "cpu");
	jit_session *s = open_session(m, 256, 16, JIT_KV_F16);
	size_t n;
	uint8_t *p = saved(m, s, &n);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	size_t step = test_quick() ? 1999 : 211;
	for (size_t cut = 0; cut < n; cut += cut < 2 * HEADER ? 16 : step) {
		tiny_write(dir, "state", p, cut);
		refused(s, "damaged");
	}
	for (size_t at = 0; at < n; at += at < 2 * HEADER ? 1 : step) {
		p[at] ^= (uint8_t)(1u << at % 8);
		tiny_write(dir, "state", p, n);
		refused(s, at < 8 ? "no saved session" : at < 12 ? "version" : "damaged");
		p[at] ^= (uint8_t)(1u << at % 8);
	}
	tiny_write(dir, "state", p, n); /* whole again, it can be read */
	jit_error err = { 0 };
	must(jit_session_restore(s, path, &err), &err);
	free(p);
	jit_session_close(s);
	jit_model_close(m);
}

/* A header whose checksum fits: its numbers are looked at. */
static void with_number(uint8_t *p, size_t n, jit_session *s, unsigned at, uint32_t value, const char *words)
{
	uint8_t was[HEADER];

	memcpy(was, p, HEADER);
	record_put32(p + at, value);
	record_put64(p + AT_HEADER_SUM, record_checksum(p, AT_HEADER_SUM, 1));
	tiny_write(dir, "state", p, n);
	refused(s, words);
	memcpy(p, was, HEADER);
}

static void test_numbers(void **state)
{
	static const uint32_t values[] = { 0, 1, 3, 128, 149, 151, 257, 65536, 0x7fffffff, 0x80000000u, 0xffffffffu };
	jit_model *m = open_tiny(&window_some, "cpu");
	jit_session *s = open_session(m, 256, 16, JIT_KV_F16), *small = open_session(m, 100, 16, JIT_KV_F16);
	size_t n;
	uint8_t *p = saved(m, s, &n);

	refused(small, "holds 150 tokens, and the context of this session 100");
	with_number(p, n, s, 16, 0x39, "was saved by jitrun 9");
	with_number(p, n, s, 56, 77, "an unknown type");
	with_number(p, n, s, 76, 77, "its sizes are not the model's");
	for (unsigned at = 80; at < AT_SUM; at += 4)
		for (size_t i = 0; i < sizeof values / sizeof *values; i++)
			/* one token less in the cache is another good file */
			if (record_get32(p + at) != values[i] && (at != 84 || values[i] != 149))
				with_number(p, n, s, at, values[i], "");
	record_put32(p + HEADER + 8, 256); /* an id that there is not */
	with_number(p, n, s, 92, 0, "not in the vocabulary");
	free(p);
	jit_session_close(small);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_arguments(void **state)
{
	jit_model *m = open_tiny(&no_window, "cpu");
	jit_session *s = open_session(m, 64, 16, JIT_KV_F16);
	jit_error err = { 0 };

	must(jit_session_feed(s, ids, 10, &err), &err);
	assert_int_equal(jit_session_save(s, "", &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_save(s, "/tmp/", &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_save(s, "/nonexistent/state", &err), JIT_ERROR_IO);
	remove(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(jit_session_save(s, path, &err), JIT_ERROR_IO);
	assert_non_null(strstr(err.message, "is no regular file, so it is not replaced"));
	remove(path);
	must(jit_session_save(s, path, &err), &err);
	assert_int_equal(jit_session_restore(s, path, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "the session has 10 tokens"));
	assert_int_equal(jit_session_length(s), 10);
	assert_null(jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = 64, .kv = JIT_KV_F32), &err));
	assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
	assert_null(jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = 9), &err));
	assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
	must(jit_session_rewind(s, 0, &err), &err);
	assert_int_equal(jit_session_restore(s, "/dev/null", &err), JIT_ERROR_FORMAT);
	assert_int_equal(jit_session_restore(s, "/nonexistent", &err), JIT_ERROR_IO);
	assert_int_equal(jit_session_restore(s, dir, &err), JIT_ERROR_FORMAT);
	jit_session_close(s);
	jit_model_close(m);
}

/* What was forgotten is not in the file: the bytes are those of a session that never had it. */
static void test_forgotten(void **state)
{
	static const int kinds[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };
	static const char *const devices[] = { "cpu", "sim:gfx1100" };

	for (size_t i = 0; i < 6; i++) {
		jit_model *m = open_tiny(&window_some, devices[i / 3]);
		size_t n[2];
		uint8_t *p[2];
		for (int round = 0; round < 2; round++) {
			jit_session *s = open_session(m, 256, 32, kinds[i % 3]);
			jit_error err = { 0 };
			must(jit_session_feed(s, ids, 20, &err), &err);
			if (round) {
				must(jit_session_feed(s, ids + 100, 60, &err), &err);
				must(jit_session_rewind(s, 20, &err), &err);
			}
			must(jit_session_save(s, path, &err), &err);
			p[round] = file_bytes(path, &n[round]);
			jit_session_close(s);
		}
		assert_int_equal(n[0], n[1]);
		assert_memory_equal(p[0], p[1], n[0]);
		free(p[0]);
		free(p[1]);
		jit_model_close(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiny),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_between_devices),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_forgotten),
	};

	if (!mkdtemp(dir))
		return 99;
	snprintf(path, sizeof path, "%s/state", dir);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) || failed;
}
