/* tests/runtime/t_card_cuts.c - passes that are predicted to take long go to a card in several launches, and inside an
 * op too, with the same logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/device/simulated/simulator.h"
#include "include/jitrun.h"
#include "runtime/session/session.h"
#include "tests/support/shared.h"

struct cuts {
	double seconds[8]; /* of an op, by its number */
	size_t ops, commands, launches;
	bool failed;
	jit_session *cancelled; /* in its third launch; NULL: none is */
};

static double long_op(void *user, const struct plan *p, size_t op)
{
	struct cuts *c = user;

	c->ops = p->n_ops;
	return c->seconds[op % 8];
}

/* Every launch, and every command once. Those that one launch has are not predicted to take longer than a launch may.
 */
static void see_cut(void *user, const struct plan *p, const struct sim_kernel *kernel, size_t first, size_t end,
                    const struct sim_counters *c)
{
	struct cuts *cuts = user;
	(void)p;
	(void)kernel;
	(void)c;

	if (first == end)
		cuts->commands = cuts->launches = 0;
	else
		cuts->failed |= first != cuts->commands || end <= first;
	cuts->commands += end - first;
	cuts->launches += first < end;
	if (cuts->cancelled && cuts->launches == 3)
		jit_session_cancel(cuts->cancelled);
}

enum { TOKENS = 4 };

/* A pass that is cancelled ends behind the launch that runs then, and leaves the session as it was. */
static void cancel_first(jit_session *s, struct cuts *cuts, const int32_t *ids)
{
	jit_error err = { 0 };

	cuts->cancelled = s;
	assert_int_equal(jit_session_feed(s, ids, TOKENS, &err), JIT_ERROR_CANCELLED);
	cuts->cancelled = NULL;
	assert_int_equal(cuts->launches, 3);
	assert_int_equal(jit_session_length(s), 0);
}

/* The logits behind a prompt; cuts NULL: on the CPU. `cancel`: it is cancelled first, and fed again. */
static float *compute(const char *device, int launch, struct cuts *cuts, bool cancel, size_t *bytes)
{
	const struct simulator_options sim = {
		.launch = (enum stream_launch)launch, .watch = see_cut, .predict = long_op, .races = true, .user = cuts
	};
	const int32_t ids[TOKENS] = { 1, 70, 33, 104 };
	jit_model_info info = JIT_MODEL_INFO();
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 8, .threads = 1), &err) : NULL;

	if (!s)
		fail_msg("%s: %s", device, err.message);
	assert_true(!cuts || simulator_set(session_stream(s), &sim));
	if (cancel)
		cancel_first(s, cuts, ids);
	if (jit_session_feed(s, ids, TOKENS, &err) != JIT_OK)
		fail_msg("%s: %s", device, err.message);
	jit_model_get_info(m, &info, NULL);
	*bytes = (size_t)info.vocab * sizeof(float);
	float *logits = malloc(*bytes);
	memcpy(logits, jit_session_logits(s, &err), *bytes);
	jit_session_close(s);
	jit_model_close(m);
	return logits;
}

static void check_cuts(const float *truth, const char *device, int launch, const double seconds[8], size_t min)
{
	struct cuts cuts = { .failed = false };
	size_t bytes;

	memcpy(cuts.seconds, seconds, sizeof cuts.seconds);
	float *logits = compute(device, launch, &cuts, false, &bytes);
	assert_memory_equal(logits, truth, bytes);
	free(logits);
	assert_false(cuts.failed);
	assert_true(cuts.commands >= cuts.ops);
	if (cuts.launches < min || (min == 1 && cuts.launches > 1))
		fail_msg("%s: %zu launches of %zu commands of %zu ops, expected %zu%s launches", device, cuts.launches,
		         cuts.commands, cuts.ops, min, min > 1 ? " or more" : "");
}

static void test_cuts(void **state)
{
	static const char *const devices[] = { "sim:gfx1101", "sim:gfx1030", "sim:gfx1201" };
	static const double one = CARD_LAUNCH_SECONDS;
	size_t bytes;
	float *truth = compute("cpu", 0, NULL, false, &bytes);
	(void)state;

	for (int i = 0; i < (test_quick() ? 1 : 3); i++) {
		check_cuts(truth, devices[i], STREAM_LAUNCH_TOKEN, (double[8]){ 0 }, 1);
		check_cuts(truth, devices[i], STREAM_LAUNCH_TOKEN,
		           (double[8]){ one, one, one, one, one, one, one, one }, 20);
		check_cuts(truth, devices[i], STREAM_LAUNCH_TOKEN,
		           (double[8]){ 0, one / 2, 3 * one, 2.5 * one, 0, 1e9, 0, one }, 40);
		check_cuts(truth, devices[i], STREAM_LAUNCH_LAYER, (double[8]){ 0, 0, 7.01 * one }, 20);
		check_cuts(truth, devices[i], STREAM_LAUNCH_OP, (double[8]){ 4 * one }, 20);
	}
	free(truth);
}

/* Between the launches of a pass that is cut, and between those that were asked for. */
static void test_cancel(void **state)
{
	static const int launches[] = { STREAM_LAUNCH_TOKEN, STREAM_LAUNCH_OP };
	size_t bytes;
	float *truth = compute("cpu", 0, NULL, false, &bytes);
	(void)state;

	for (unsigned i = 0; i < 2; i++) {
		struct cuts cuts = { .failed = false };
		for (unsigned k = 0; k < 8; k++)
			cuts.seconds[k] = i ? 0 : CARD_LAUNCH_SECONDS;
		float *logits = compute("sim:gfx1201", launches[i], &cuts, true, &bytes);
		assert_memory_equal(logits, truth, bytes);
		free(logits);
	}
	free(truth);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cuts), cmocka_unit_test(test_cancel) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
