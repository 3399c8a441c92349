/* tests/runtime/t_compile_ahead.c - kernels are made before they are needed, beside the session's thread: counted, not
 * timed. And whichever kernels a pass goes through, those of one token again and again give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/session/session.h"
#include "tests/support/shared.h"

enum { VOCAB = 4096, STEPS = 24, PROMPT = 40, PROMPT_MAX = 512 };

static char model_path[1024];

/* Repeats itself, so that there is something to guess. */
static int32_t prompt_token(int i) { return 300 + i % 9 * 17; }

static jit_model *open_model(const jit_model_options *o)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(model_path, o, &err);

	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session(jit_model *m, const jit_session_options *o)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m, o, &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static void feed(jit_session *s, int n)
{
	jit_error err = { 0 };
	int32_t ids[PROMPT_MAX];

	for (int i = 0; i < n; i++)
		ids[i] = prompt_token(i);
	assert_int_equal(jit_session_feed(s, ids, (size_t)n, &err), JIT_OK);
}

static jit_session_stats stats_of(const jit_session *s)
{
	jit_session_stats stats = JIT_SESSION_STATS();

	jit_session_get_stats(s, &stats, NULL);
	return stats;
}

/* Feeds, then decodes; logits, if wanted, of every step. */
static void write_tokens(jit_session *s, int prompt, int steps, float *logits)
{
	jit_error err = { 0 };
	int32_t id;

	feed(s, prompt);
	for (int i = 0; i < steps; i++) {
		if (logits) {
			const float *l = jit_session_logits(s, &err);
			assert_non_null(l);
			memcpy(logits + (size_t)i * VOCAB, l, VOCAB * sizeof *l);
		}
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	}
}

static const int guesses[] = { JIT_SPECULATE_OFF, JIT_SPECULATE_AUTO, 4, 8, 16 };
enum { GUESSES = sizeof guesses / sizeof *guesses };

/* ---- where kernels are made */

/* A new model with nothing on disk: after the prompt the session's thread makes none. */
static void cross(int guess, size_t position, int prompt, int batch)
{
	jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = ""));
	jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = (int)position + 1024, .threads = 2,
	                                                      .batch = batch, .speculate = guess));

	if (position)
		assert_true(session_skip(s, position));
	feed(s, prompt);
	jit_session_stats before = stats_of(s), after;
	jit_error err = { 0 };
	int32_t id;
	for (int i = 0; i < STEPS * 6; i++)
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	session_rest(s);
	after = stats_of(s);
	assert_int_equal(after.kernel_stalls, 0);
	assert_int_equal(after.kernels_from_cache, 0);
	assert_true(after.kernels_background > 0);
	assert_true(after.kernels_background >= before.kernels_background);
	/* all that came after the prompt came from the background; one in flight is counted in one place a moment
	 * before the other */
	assert_true(after.kernels - after.kernels_background <= before.kernels - before.kernels_background);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_none_between_tokens(void **state)
{
	static const size_t borders[] = { 0, 500, 2040, 8184 };
	(void)state;

	for (int g = 0; g < GUESSES; g++)
		cross(guesses[g], 0, PROMPT, 0);
	for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
		cross(JIT_SPECULATE_AUTO, borders[i], 3, 0);
	cross(JIT_SPECULATE_AUTO, 0, 1, 0);
	cross(JIT_SPECULATE_AUTO, 0, PROMPT, 16);
}

/* The comparison can fail: a dump is of kernels in the order of their use, so nothing is made ahead then. */
static void test_counts_stalls(void **state)
{
	jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = "", .dump_ir = "/dev/null"));
	jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1));
	(void)state;

	write_tokens(s, PROMPT, 4, NULL);
	assert_true(stats_of(s).kernel_stalls > 0);
	assert_int_equal(stats_of(s).kernels_background, 0);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_nothing_to_do(void **state)
{
	jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF));
	(void)state;

	for (int i = 0; i < 3; i++) {
		jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1));
		write_tokens(s, PROMPT, 4, NULL);
		session_rest(s);
		assert_true(i == 0 ? stats_of(s).kernels_background > 0 : stats_of(s).kernels_background == 0);
		assert_int_equal(stats_of(s).kernel_stalls, 0);
		jit_session_close(s);
	}
	jit_model_close(m);
}

/* A session that is closed at once has still made for the next one, which finds it in the cache, what it expected to
 * need. */
static void test_closed_at_once(void **state)
{
	char dir[] = "/tmp/jitrun-test-XXXXXX", command[64];
	uint64_t made = 0;
	(void)state;

	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 3; i++) {
		jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = dir));
		jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1));
		if (i > 0) {
			session_rest(s);
			made = stats_of(s).kernels_background;
			assert_true(made > 10);
			assert_int_equal(stats_of(s).kernels_generated, 0);
			assert_int_equal(stats_of(s).kernels_from_cache, made);
		}
		jit_session_close(s);
		jit_model_close(m);
	}
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 20; i++) { /* and without a cache drops it */
		jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = ""));
		jit_session *s = open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1 + i % 2));
		if (i % 4 == 3)
			feed(s, i);
		jit_session_close(s);
		jit_model_close(m);
	}
}

/* ---- the same bits */

static float want[STEPS * VOCAB], got[STEPS * VOCAB];

static void compare(const jit_model_options *mo, jit_session_options so, int prompt)
{
	jit_model *m = open_model(mo);

	so.context = 512;
	for (int g = -1; g < GUESSES; g++) {
		so.speculate = g < 0 ? JIT_SPECULATE_OFF : guesses[g];
		jit_session *s = open_session(m, &so);
		if (g < 0)
			session_pin_general(s);
		write_tokens(s, prompt, STEPS, g < 0 ? want : got);
		if (g >= 0)
			assert_memory_equal(got, want, sizeof want);
		jit_session_close(s);
	}
	jit_model_close(m);
}

static void test_general_kernels(void **state)
{
	static const int prompts[] = { 1, 2, 3, 4, 5, 8, 9, 16, 17, 40, 77, 300 };
	(void)state;

	for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
		compare(&JIT_MODEL_OPTIONS(.cache_dir = ""), JIT_SESSION_OPTIONS(.threads = 2), prompts[i]);
	compare(&JIT_MODEL_OPTIONS(.cache_dir = "", .isa = "avx2"), JIT_SESSION_OPTIONS(.threads = 1), 77);
	compare(&JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = 1),
	        JIT_SESSION_OPTIONS(.threads = 2, .kv = JIT_KV_F32), 77);
	compare(&JIT_MODEL_OPTIONS(.cache_dir = ""), JIT_SESSION_OPTIONS(.threads = 2, .kv = JIT_KV_Q8_0, .batch = 33),
	        77);
}

/* They are other kernels, and few. */
static void test_general_kernels_are_not_many(void **state)
{
	uint64_t kernels[2];
	(void)state;

	for (int general = 0; general < 2; general++) {
		jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF));
		jit_session *s = open_session(
			m, &JIT_SESSION_OPTIONS(.context = 512, .threads = 1, .speculate = JIT_SPECULATE_OFF));
		if (general)
			session_pin_general(s);
		write_tokens(s, 17, 1, NULL);
		feed(s, 5);
		session_rest(s);
		kernels[general] = stats_of(s).kernels;
		jit_session_close(s);
		jit_model_close(m);
	}
	assert_true(kernels[1] < kernels[0] / 2);
}

/* ---- what is seen of it */

static void test_seen(void **state)
{
	char dir[] = "/tmp/jitrun-test-XXXXXX", path[64], command[128];
	jit_error err = { 0 };
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/trace", dir);
	jit_model *m = open_model(&JIT_MODEL_OPTIONS(.cache_dir = ""));
	jit_session *s =
		open_session(m, &JIT_SESSION_OPTIONS(.context = 256, .threads = 1, .speculate = JIT_SPECULATE_OFF,
	                                             .profile = JIT_PROFILE_EVENTS));
	write_tokens(s, PROMPT, STEPS, NULL);
	char *report = jit_session_report(s, 0, &err), line[80];
	assert_non_null(report);
	snprintf(line, sizeof line, "%d kernels were generated or loaded in the background in ",
	         (int)stats_of(s).kernels_background);
	assert_non_null(strstr(report, line));
	assert_non_null(strstr(report, " ms,\n0 when decoding needed them\n"));
	assert_non_null(
		strstr(report, "tuned matmul.")); /* the first passes have found out which schedules they like */
	assert_non_null(strstr(report, ":\n  weights "));
	free(report);
	report = jit_session_report(s, 1, &err);
	assert_non_null(report);
	assert_non_null(strstr(report, "\"schedule\":\"weights "));
	assert_non_null(strstr(report, "\"tuned_gain\":"));
	assert_non_null(strstr(report, "\"stalls\":0"));
	free(report);
	assert_int_equal(jit_session_trace(s, path, &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	snprintf(command, sizeof command, "grep -q '\"name\":\"background\"' %s", path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none_between_tokens),
		cmocka_unit_test(test_counts_stalls),
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_closed_at_once),
		cmocka_unit_test(test_general_kernels),
		cmocka_unit_test(test_general_kernels_are_not_many),
		cmocka_unit_test(test_seen),
	};

	source_path(model_path, "models/tale-q8_0.gguf");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
