/* tests/runtime/t_window.c - layers with a window that keep little more than it give the bits of a cache that keeps
 * all: passes of every width at every place, draft tokens, rewinds short and long, what is cancelled; and how many
 * bytes that saves.
 *
 * The witness is a session on the same model whose passes are as wide as its context, so that its windows find no room
 * that could be saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { CONTEXT = 1024, VOCAB = 96, MAX = CONTEXT };

static char dir[] = "/tmp/t_window-XXXXXX";
static int32_t ids[MAX + 1];
static float trace[MAX][VOCAB]; /* the witness's logits after each token */

/* Windows of a few lengths about a block of 32 and a chunk of 128 positions. */
static struct tiny_model model_of(const char *arch, uint32_t window, char extra[300])
{
	bool some = strcmp(arch, "qwen3") == 0;

	snprintf(extra, 300, ", \"sliding_window\": %u%s", window,
	         some ? ", \"use_sliding_window\": true, \"layer_types\": [\"sliding_attention\", \"full_attention\", "
	                "\"sliding_attention\"]"
	              : "");
	return (struct tiny_model){
		.arch = arch,
		.layers = some ? 3 : 2,
		.hidden = 32,
		.ffn = 32,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 8,
		.vocab = VOCAB,
		.type = DTYPE_F32,
		.tied = true,
		.extra = extra
	};
}

static jit_model *open_model(const struct tiny_model *t, const char *device)
{
	jit_error err = { 0 };

	tiny_write_hf(dir, t);
	jit_model *m = jit_model_open(dir, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);
	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session(jit_model *m, int batch, int kv, int speculate, uint64_t *kv_bytes)
{
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m,
	                                  &JIT_SESSION_OPTIONS(.context = CONTEXT, .batch = batch, .kv = kv,
	                                                       .threads = 2, .speculate = speculate),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	jit_session_get_stats(s, &stats, NULL);
	*kv_bytes = stats.kv_bytes;
	return s;
}

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

/* A text of `max` tokens that repeats itself with changes; the second half is what the model chooses. */
static void make_trace(jit_model *m, int kv, size_t max, uint64_t *kv_bytes)
{
	jit_session *s = open_session(m, 1024, kv, JIT_SPECULATE_OFF, kv_bytes);
	uint32_t seed = 11;

	for (size_t i = 0; i < max; i++) {
		ids[i] = i < 60 || random_below(&seed, 20) == 0 ? (int32_t)random_below(&seed, VOCAB) : ids[i - 60];
		if (i < max / 2)
			assert_int_equal(jit_session_feed(s, &ids[i], 1, NULL), JIT_OK);
		else
			assert_int_equal(jit_session_next(s, &ids[i], NULL), JIT_OK);
		memcpy(trace[i], jit_session_logits(s, NULL), sizeof trace[i]);
	}
	jit_session_close(s);
}

static void must_match(jit_session *s)
{
	size_t n = jit_session_length(s);

	if (memcmp(jit_session_logits(s, NULL), trace[n - 1], sizeof trace[0]) != 0)
		fail_msg("the logits after token %zu differ", n);
}

/* In feeds of the given width, and in the model's own choices behind the middle. */
static void go_on(jit_session *s, size_t to, size_t width, size_t max)
{
	while (jit_session_length(s) < to) {
		size_t at = jit_session_length(s), n = to - at < width ? to - at : width;
		int32_t id;
		if (at >= max / 2 && jit_session_logits(s, NULL)) {
			assert_int_equal(jit_session_next(s, &id, NULL), JIT_OK);
			assert_int_equal(id, ids[at]);
		} else {
			assert_int_equal(jit_session_feed(s, ids + at, n, NULL), JIT_OK);
		}
		must_match(s);
	}
}

/* The text in passes of one width, then back and forth. */
static void check_width(jit_model *m, int kv, int batch, int speculate, size_t max, uint64_t all_bytes)
{
	uint64_t kv_bytes;
	jit_session *s = open_session(m, batch, kv, speculate, &kv_bytes);
	uint32_t seed = (uint32_t)batch;

	assert_true(kv_bytes < all_bytes);
	go_on(s, max, (size_t)batch, max);
	for (int i = 0; i < 6; i++) { /* short ways back, and long ones */
		size_t now = jit_session_length(s), back = 1 + random_below(&seed, i & 1 ? (uint32_t)now : 100);
		assert_int_equal(jit_session_rewind(s, now - back, NULL), JIT_OK);
		if (i % 3 == 0) {
			jit_session_cancel(s); /* nothing is computed then */
			assert_int_equal(jit_session_feed(s, ids + now - back, 1, NULL), JIT_ERROR_CANCELLED);
			assert_int_equal(jit_session_length(s), now - back);
		}
		size_t to = now - back + 1 + random_below(&seed, 200);
		go_on(s, to < max ? to : max, (size_t)batch, max);
	}
	jit_session_close(s);
}

static void check_window(const char *arch, uint32_t window, const char *device, const int *batches, int n, size_t max)
{
	static const int kinds[] = { JIT_KV_F16, JIT_KV_Q8_0, JIT_KV_F32 };
	static unsigned round;
	char extra[300];
	struct tiny_model t = model_of(arch, window, extra);
	jit_model *m = open_model(&t, device);
	int kv = kinds[round++ % 3];
	uint64_t all;

	make_trace(m, kv, max, &all);
	for (int i = 0; i < n; i++)
		check_width(m, kv, batches[i], i & 1 ? 8 : JIT_SPECULATE_OFF, max, all);
	jit_model_close(m);
}

static void test_sweep(void **state)
{
	static const uint32_t windows[] = { 1, 31, 32, 33, 127, 128, 129, 200, 300 };
	static const int batches[] = { 264, 3, 1, 16, 17, 128, 129 };
	bool quick = test_quick();

	for (size_t i = 0; i < sizeof windows / sizeof *windows; i += quick ? 3 : 1) {
		check_window("mistral", windows[i], "cpu", batches + (quick ? i % 5 : 0), quick ? 2 : 7, MAX);
		check_window("qwen3", windows[i], "cpu", batches + (quick ? (i + 2) % 5 : 0), quick ? 2 : 7, MAX);
	}
}

static void test_devices(void **state)
{
	static const int batches[] = { 40 };

	check_window("qwen3", 50, "ref", batches, 1, 600);
	if (test_quick())
		return;
	setenv("JITRUN_SIM_HIDE", "1", 1); /* the host copies when it moves chunks */
	check_window("qwen3", 50, "sim:gfx1100", batches, 1, 600);
	unsetenv("JITRUN_SIM_HIDE");
}

/* One layer in four has a window of 512: of 32 768 positions, three layers keep all, and one about a thousand. */
static void test_bytes(void **state)
{
	struct tiny_model t = {
		.arch = "qwen3",
		.layers = 4,
		.hidden = 32,
		.ffn = 32,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 64,
		.vocab = VOCAB,
		.type = DTYPE_F32,
		.tied = true,
		.extra = ", \"use_sliding_window\": true, \"sliding_window\": 512, \"layer_types\": "
			 "[\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
			 "\"full_attention\"]"
	};
	const uint64_t position = 2 * 2 * 64 * 2; /* of one layer: keys and values, two heads of 64 f16 */
	jit_model *m = open_model(&t, "cpu");
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32768, .threads = 1), NULL);

	assert_non_null(s);
	jit_session_get_stats(s, &stats, NULL);
	printf("# %llu bytes of cache; all positions of all layers would be %llu\n", (unsigned long long)stats.kv_bytes,
	       (unsigned long long)(4 * 32768 * position));
	assert_in_range(stats.kv_bytes, 32768 * position + 3 * (512 + 264) * position,
	                32768 * position + 3 * (512 + 264 + 4 * 128) * position);
	jit_session_close(s);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_sweep),
		                            cmocka_unit_test(test_devices) };

	if (!mkdtemp(dir))
		return 99;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) || failed;
}
