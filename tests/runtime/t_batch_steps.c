/* tests/runtime/t_batch_steps.c - what a batch puts into its passes, on a clock of the test's own: how much of a
 * prompt, by max_pass_ms; draft tokens of several sessions, where they pay; sessions that are cancelled at every
 * moment; and which logits are copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/batch/batch.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

enum { CONTEXT = 2304, LONG = 2000, WIDE = 512, MAX = 16 };

/* ---- a clock on which a pass takes what the test says */

static struct {
	double now, fixed, token, last; /* seconds of a pass, and of each of its tokens */
	double deeper;                  /* and of each of those for all that were computed before */
	uint64_t all;                   /* tokens so far */
	uint32_t tokens;                /* of the last pass */
	unsigned passes;
	bool (*run)(struct stream *s, struct plan *p, struct pool *pool, struct error *err);
	void (*each)(void); /* is called in each pass */
} told;

static double tell(void) { return told.now; }

static bool run(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	told.passes++;
	told.tokens = p->tokens;
	told.last = told.fixed + (told.token + told.deeper * (double)told.all) * p->tokens;
	told.all += p->tokens;
	told.now += told.last;
	if (told.each)
		told.each();
	return told.run(s, p, pool, err);
}

static jit_batch *open_batch(int speculate, int max_pass_ms)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model,
	                              &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = WIDE,
	                                                 .speculate = speculate, .max_pass_ms = max_pass_ms),
	                              &err);

	if (!b)
		fail_msg("%s", err.message);
	told.run = b->engine.stream->run;
	told.each = NULL;
	told.passes = 0;
	told.deeper = 0;
	told.all = 0;
	b->engine.stream->run = run;
	b->now = tell;
	return b;
}

static jit_session *open_session(jit_batch *b)
{
	jit_error err = { 0 };
	jit_session *s = jit_batch_session(b, NULL, &err);

	assert_non_null(s);
	return s;
}

/* Tokens that do not repeat themselves soon. */
static void submit(jit_session *s, size_t n, uint64_t seed)
{
	int32_t ids[CONTEXT];
	jit_error err = { 0 };

	for (size_t i = 0; i < n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		ids[i] = (int32_t)((seed >> 33) % (uint64_t)vocab);
	}
	must(jit_session_submit(s, ids, n, NULL, &err), &err);
}

/* Those that became ready go on, all but the one that is given; whether that one did. */
static bool step(jit_batch *b, const jit_session *reader, unsigned *others)
{
	jit_session *ready[MAX];
	jit_error err = { 0 };
	size_t n;
	bool found = false;
	int32_t id;

	must(jit_batch_step(b, ready, MAX, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		if (ready[i] == reader)
			found = true;
		else
			must(jit_session_next(ready[i], &id, &err), &err);
	}
	*others = (unsigned)n - found;
	return found;
}

/* ---- prompts */

/* Two that write while a long prompt comes: each step is one pass and gives both a token. Once two passes of a width
 * have been seen, none takes longer than may be, and few take much less. */
static void check_bound(int max_pass_ms, double fixed, double token)
{
	enum { KNOWN = 12 };
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, max_pass_ms);
	jit_session *writer[2] = { open_session(b), open_session(b) }, *reader = open_session(b);
	unsigned others, passes = 0, full = 0;
	double may = max_pass_ms / 1e3, min = fixed + token * (16 + 2);
	bool done = false;

	told.fixed = fixed;
	told.token = token;
	submit(writer[0], 5, 1);
	submit(writer[1], 7, 2);
	for (int i = 0; i < 4; i++)
		step(b, reader, &others);
	submit(reader, LONG, 3);
	for (; !done; passes++) {
		told.passes = 0;
		done = step(b, reader, &others);
		assert_int_equal(told.passes, 1);
		assert_int_equal(others, 2);
		if (passes < KNOWN && told.tokens <= 64)
			continue;
		if (told.last > (may > min ? may : min) * 1.0001)
			fail_msg("pass %u of %u tokens takes %.1f ms of %d", passes, told.tokens, told.last * 1e3,
			         max_pass_ms);
		full += told.last > may * 0.9 || told.tokens == WIDE;
	}
	if (full + KNOWN + 2 < passes && may > min)
		fail_msg("%u of %u passes use the time that they have", full, passes);
	jit_session_close(reader);
	jit_session_close(writer[0]);
	jit_session_close(writer[1]);
	jit_batch_close(b);
}

/* Deep in a long prompt a token takes several times as long as at its beginning. */
static void so_it_does_where_tokens_take_longer(void **state)
{
	enum { MAY_MS = 200 };
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, MAY_MS);
	jit_session *writer = open_session(b), *reader = open_session(b);
	unsigned others, passes = 0;
	double max = 0, start = told.now;

	told.fixed = 0.020;
	told.token = 0.003;
	told.deeper = 0.000004;
	submit(writer, 5, 1);
	for (int i = 0; i < 4; i++)
		step(b, reader, &others);
	submit(reader, LONG, 3);
	start = told.now;
	for (bool done = false; !done; passes++) {
		done = step(b, reader, &others);
		max = told.last > max ? told.last : max;
	}
	printf("# %u passes, the longest takes %.0f ms of %d\n", passes, max * 1e3, MAY_MS);
	assert_true(max <= 1.25e-3 * MAY_MS);
	assert_true(told.now - start >= 0.8e-3 * MAY_MS * passes);
	jit_session_close(reader);
	jit_session_close(writer);
	jit_batch_close(b);
}

static void a_pass_takes_no_longer_than_it_may(void **state)
{
	check_bound(100, 0.010, 0.001); /* some 90 tokens */
	if (test_quick())
		return;
	check_bound(200, 0.030, 0.0005);
	check_bound(5, 0.010, 0.001);    /* 16 tokens of a prompt come in whatever it takes */
	check_bound(5000, 0.010, 0.001); /* as many as a pass has */
}

/* ---- drafts */

/* Sessions that were told to repeat six tokens, and often do. Returns tokens by second of the clock. */
static double rate(int speculate, double token, size_t sessions, uint64_t *accepted, int32_t *text)
{
	enum { EACH = 60 };
	jit_batch *b = open_batch(speculate, 0);
	jit_session *s[MAX];
	jit_error err = { 0 };
	jit_session_stats stats = JIT_SESSION_STATS();
	int32_t ids[120];
	size_t chosen = 0;

	told.fixed = 0.020;
	told.token = token;
	for (size_t i = 0; i < sessions; i++) {
		for (int k = 0; k < 120; k++)
			ids[k] = 40 + (k + (int)i) % 6;
		must(jit_session_submit(s[i] = open_session(b), ids, 120, NULL, &err), &err);
	}
	double start = told.now;
	while (chosen < EACH * sessions) {
		jit_session *ready[MAX];
		size_t n;
		must(jit_batch_step(b, ready, MAX, &n, &err), &err);
		for (size_t i = 0; i < n; i++) {
			int32_t id;
			if (jit_session_length(ready[i]) >= 120 + EACH)
				continue;
			must(jit_session_next(ready[i], &id, &err), &err);
			chosen++;
		}
	}
	double seconds = told.now - start;
	*accepted = 0;
	for (size_t i = 0; i < sessions; i++) {
		must(jit_session_get_stats(s[i], &stats, &err), &err);
		*accepted += stats.accepted;
		memcpy(text + i * (120 + EACH), jit_session_ids(s[i]), (120 + EACH) * sizeof *text);
		jit_session_close(s[i]);
	}
	jit_batch_close(b);
	return (double)chosen / seconds;
}

/* Where more tokens cost next to nothing drafts of several sessions pay; where each costs as much as a pass, none is
 * made for long. The text is the same. */
static void drafts_pay_for_several(void **state)
{
	static int32_t plain[MAX * 180], drafted[MAX * 180];
	uint64_t accepted;

	for (size_t sessions = 2; sessions <= 4; sessions += 2) {
		double without = rate(JIT_SPECULATE_OFF, 0.0002, sessions, &accepted, plain);
		double with = rate(JIT_SPECULATE_AUTO, 0.0002, sessions, &accepted, drafted);
		assert_memory_equal(plain, drafted, sessions * 180 * sizeof *plain);
		if (accepted == 0 || with < 1.5 * without)
			fail_msg("%zu sessions: %.0f tokens a second with drafts, %.0f without, %llu accepted",
			         sessions, with, without, (unsigned long long)accepted);
		without = rate(JIT_SPECULATE_OFF, 0.020, sessions, &accepted, plain);
		with = rate(JIT_SPECULATE_AUTO, 0.020, sessions, &accepted, drafted);
		assert_memory_equal(plain, drafted, sessions * 180 * sizeof *plain);
		if (with < 0.9 * without)
			fail_msg("%zu sessions: %.0f tokens a second with dear drafts, %.0f without", sessions, with,
			         without);
	}
}

/* ---- cancelling */

static jit_session *victim;
static unsigned cancel_at;

static void cancel_then(void)
{
	if (told.passes == cancel_at)
		jit_session_cancel(victim);
}

/* Reads 40 tokens, and writes: beside another that is cancelled in a certain pass, in its prompt or later. Returns the
 * number of passes. */
static unsigned write_beside(unsigned at, float *logits)
{
	jit_batch *b = open_batch(JIT_SPECULATE_AUTO, 1);
	jit_session *writer = open_session(b), *ready[2];
	jit_error err = { 0 };
	size_t n, chosen = 0;
	bool told_of = false;
	int32_t id;

	told.fixed = 0.020;
	told.token = 0.001;
	victim = open_session(b);
	cancel_at = at;
	told.each = cancel_then;
	submit(writer, 40, 1);
	submit(victim, 90, 2);
	while (chosen < 8 || (at && !told_of)) {
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
		for (size_t i = 0; i < n; i++) {
			if (ready[i] == writer && chosen == 8)
				continue;
			int status = jit_session_next(ready[i], &id, &err);
			told_of |= status == JIT_ERROR_CANCELLED;
			if (ready[i] == writer)
				must(status, &err), chosen++;
			else if (status != JIT_ERROR_CANCELLED && jit_session_length(victim) < 100)
				must(status, &err);
		}
		assert_true(told.passes < 200);
		if (at && told.passes > at + 1 && !told_of)
			fail_msg("cancelled in pass %u, and not told %u passes later", at, told.passes - at);
	}
	while (jit_session_length(writer) > 0 && !jit_session_logits(writer, NULL))
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
	memcpy(logits, jit_session_logits(writer, &err), (size_t)vocab * sizeof *logits);
	unsigned passes = told.passes;
	/* The one that was cancelled can go on. */
	if (at) {
		submit(victim, 3, 5);
		while (!step(b, victim, &(unsigned){ 0 }))
			assert_true(told.passes < 400);
	}
	jit_session_close(victim);
	jit_session_close(writer);
	jit_batch_close(b);
	return passes;
}

static void who_is_cancelled_leaves_others_alone(void **state)
{
	float *alone = malloc((size_t)vocab * sizeof *alone), *beside = malloc((size_t)vocab * sizeof *beside);
	unsigned passes = write_beside(0, alone);

	assert_true(passes > 8);
	for (unsigned at = 1; at < passes; at += test_quick() ? 3 : 1) {
		write_beside(at, beside);
		assert_memory_equal(alone, beside, (size_t)vocab * sizeof *alone);
	}
	free(alone);
	free(beside);
}

/* ---- logits */

/* Who chooses in turn with the passes has its logits where they were computed; who does not choose yet keeps them. */
static void only_unread_logits_are_copied(void **state)
{
	jit_batch *b = open_batch(JIT_SPECULATE_OFF, 200);
	jit_session *writer[2] = { open_session(b), open_session(b) }, *waits = open_session(b);
	const size_t bytes = (size_t)vocab * sizeof(float);
	float *before = malloc(bytes);
	jit_error err = { 0 };
	unsigned others;
	(void)state;

	assert_non_null(before);
	submit(writer[0], 5, 1);
	submit(writer[1], 7, 2);
	submit(waits, 9, 3);
	while (!step(b, waits, &others))
		;
	memcpy(before, jit_session_logits(waits, &err), bytes);
	for (int i = 0; i < 8; i++)
		step(b, waits, &others);
	assert_int_equal(others, 2);
	assert_null(writer[0]->member->own_logits);
	assert_null(writer[1]->member->own_logits);
	assert_memory_equal(jit_session_logits(waits, &err), before, bytes);
	free(before);
	jit_session_close(waits);
	jit_session_close(writer[0]);
	jit_session_close(writer[1]);
	jit_batch_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_takes_no_longer_than_it_may),
		cmocka_unit_test(so_it_does_where_tokens_take_longer), cmocka_unit_test(drafts_pay_for_several),
		cmocka_unit_test(who_is_cancelled_leaves_others_alone), cmocka_unit_test(only_unread_logits_are_copied)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
