/* tests/runtime/t_told.c - jitrun_logits.h: functions of the caller's that see and change logits, logits of all tokens
 * that are fed, and how far a prompt has come; alone, in batches, with draft tokens and with a grammar. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "include/jitrun_logits.h"
#include "tests/support/shared.h"

enum { CONTEXT = 320, CHOSEN = 40 };
static jit_model *model;
static size_t vocab, hidden;

static jit_session *open_session(int speculate, int batch, const jit_sampling *p)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model,
	                                  &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .sampling = p,
	                                                       .speculate = speculate, .batch = batch),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static size_t prompt(int32_t ids[CONTEXT])
{
	const size_t n = 150;

	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)((300 + i * 7 % 40 + i % 3) % vocab);
	return n;
}

/* ---- changing logits */

struct seen {
	unsigned calls;
	uint64_t sum;  /* of all logits and texts that came */
	int at, value; /* the call that gives `value`, or leaves `odd`; -1: none */
	float odd;
};

/* Forbids what was said in the last 12 tokens, and prefers odd tokens, by the text and the logits alone. */
static int change(void *user, float *logits, size_t n_logits, const int32_t *ids, size_t n_ids)
{
	struct seen *seen = user;

	assert_int_equal(n_logits, vocab);
	for (size_t i = 0; i < n_logits; i++) {
		uint32_t bits;
		memcpy(&bits, &logits[i], sizeof bits);
		seen->sum = seen->sum * 31 + bits;
		logits[i] += i % 2 ? 20 : 0;
	}
	for (size_t i = n_ids > 12 ? n_ids - 12 : 0; i < n_ids; i++) {
		seen->sum = seen->sum * 31 + (uint32_t)ids[i];
		logits[ids[i]] = -INFINITY;
	}
	if ((int)seen->calls++ == seen->at) {
		if (seen->value)
			return seen->value;
		logits[5] = seen->odd;
	}
	return 0;
}

static const char schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}";

static void begin(jit_session *s, struct seen *seen, bool grammar)
{
	jit_error err = { 0 };

	*seen = (struct seen){ .at = -1 };
	assert_int_equal(jit_session_set_logits_fn(s, change, seen, &err), JIT_OK);
	if (grammar)
		assert_int_equal(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, &err),
		                 JIT_OK);
}

/* What comes of the function with all of these; `drafted` counts. */
static void run(int speculate, bool in_batch, bool grammar, float temperature, int32_t *chosen, struct seen *seen,
                uint64_t *drafted)
{
	const jit_sampling p = JIT_SAMPLING(.temperature = temperature, .top_k = 30, .seed = 4);
	jit_batch_options o = JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate);
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_error err = { 0 };
	int32_t ids[CONTEXT];
	const size_t n = prompt(ids);
	jit_batch *b = in_batch ? jit_batch_open(model, &o, &err) : NULL;
	jit_session *s = in_batch ? jit_batch_session(b, &p, &err) : open_session(speculate, 0, &p);

	assert_non_null(s);
	if (in_batch)
		assert_int_equal(jit_session_submit(s, ids, n, NULL, &err), JIT_OK);
	else
		assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
	begin(s, seen, grammar);
	for (int i = 0; i < CHOSEN; i++) {
		jit_session *ready;
		for (size_t told = 0; in_batch && !told;)
			assert_int_equal(jit_batch_step(b, &ready, 1, &told, &err), JIT_OK);
		if (jit_session_next(s, &chosen[i], &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (int k = 0; k < 12 && k < i; k++)
			assert_int_not_equal(chosen[i], chosen[i - 1 - k]);
	}
	assert_int_equal(seen->calls, CHOSEN);
	assert_int_equal(jit_session_get_stats(s, &stats, &err), JIT_OK);
	*drafted += stats.drafted;
	jit_session_close(s);
	jit_batch_close(b);
}

static void drafts_and_batches_go_on(void **state)
{
	uint64_t drafted = 0;
	(void)state;

	for (int kind = 0; kind < 4; kind++) {
		int32_t want[CHOSEN], got[CHOSEN];
		struct seen first, seen;
		const float temperature = kind & 1 ? 1.2f : 0;
		run(JIT_SPECULATE_OFF, false, kind & 2, temperature, want, &first, &drafted);
		assert_int_equal(drafted == 0, kind == 0);
		for (int way = 0; way < 4; way++) {
			run(way % 2 ? 4 : 16, way >= 2, kind & 2, temperature, got, &seen, &drafted);
			assert_memory_equal(got, want, sizeof want);
			assert_true(seen.sum == first.sum);
		}
	}
	assert_true(drafted > 0);
}

/* The model's own logits are told as ever, and another function, or none, is in force at once. */
static void logits_stay(void **state)
{
	jit_session *s = open_session(JIT_SPECULATE_OFF, 0, NULL), *fork;
	jit_error err = { 0 };
	int32_t ids[CONTEXT], plain, id;
	const size_t n = prompt(ids);
	struct seen seen;
	float *before = malloc(vocab * sizeof *before), chosen;
	jit_logprob top;
	(void)state;

	assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
	memcpy(before, jit_session_logits(s, &err), vocab * sizeof *before);
	begin(s, &seen, false);
	fork = jit_session_fork(s, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	assert_non_null(fork);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	assert_int_equal(jit_session_logprobs(s, &chosen, &top, 1, &err), JIT_OK);
	assert_int_equal(jit_session_next(fork, &plain, &err), JIT_OK);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(top.id, plain); /* by the model alone */
	assert_int_not_equal(id, plain);
	assert_int_equal(jit_session_rewind(s, n - 1, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids + n - 1, 1, &err), JIT_OK);
	assert_memory_equal(jit_session_logits(s, &err), before, vocab * sizeof *before);
	assert_int_equal(jit_session_set_logits_fn(s, NULL, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	assert_int_equal(id, plain);
	free(before);
	jit_session_close(fork);
	jit_session_close(s);
}

static int forbid_all(void *user, float *logits, size_t n_logits, const int32_t *ids, size_t n_ids)
{
	(void)user, (void)ids, (void)n_ids;
	for (size_t i = 0; i < n_logits; i++)
		logits[i] = -INFINITY;
	return 0;
}

static void odd_answers(void **state)
{
	static const float odd[] = { NAN, INFINITY };
	jit_session *s = open_session(JIT_SPECULATE_OFF, 0, NULL);
	jit_error err = { 0 };
	int32_t ids[CONTEXT], id, want;
	const size_t n = prompt(ids);
	struct seen seen;
	(void)state;

	assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
	for (int i = 0; i < 2; i++) {
		begin(s, &seen, false);
		seen.at = 0;
		seen.odd = odd[i];
		assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, i ? "token 5 inf" : "token 5 nan"));
	}
	begin(s, &seen, false);
	seen.at = 0;
	seen.value = 77;
	assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_CANCELLED);
	assert_non_null(strstr(err.message, "gave 77"));
	assert_int_equal(jit_session_set_logits_fn(s, forbid_all, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "no token may follow"));
	assert_int_equal(jit_session_length(s), n); /* nothing was chosen, and it goes on */
	assert_int_equal(jit_session_set_logits_fn(s, NULL, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_next(s, &want, &err), JIT_OK);
	jit_session_close(s);
}

/* ---- every token's logits */

static void every_row_is_that_of_a_feed(void **state)
{
	static const size_t cuts[][3] = { { 0, 150, 0 }, { 0, 1, 20 }, { 7, 63, 80 }, { 149, 1, 0 } };
	jit_session *plain = open_session(JIT_SPECULATE_OFF, 0, NULL);
	jit_error err = { 0 };
	int32_t ids[CONTEXT];
	const size_t n = prompt(ids);
	float *want = malloc(n * vocab * sizeof *want), *got = malloc(n * vocab * sizeof *got);
	(void)state;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(jit_session_feed(plain, ids + i, 1, &err), JIT_OK);
		memcpy(want + i * vocab, jit_session_logits(plain, &err), vocab * sizeof *want);
	}
	for (int c = 0; c < 4; c++) {
		jit_session *s = open_session(4, c == 2 ? 24 : 0, NULL);
		size_t at = cuts[c][0];
		assert_int_equal(jit_session_feed(s, ids, at, &err), JIT_OK);
		for (int part = 1; part < 3; at += cuts[c][part++]) {
			const size_t m = cuts[c][part];
			assert_int_equal(jit_session_feed_logits(s, ids + at, m, got, m * vocab, &err), JIT_OK);
			assert_memory_equal(got, want + at * vocab, m * vocab * sizeof *got);
		}
		assert_int_equal(jit_session_length(s), at);
		assert_memory_equal(jit_session_logits(s, &err), want + (at - 1) * vocab, vocab * sizeof *got);
		const size_t wrong[] = { 0, 1, vocab - 1, vocab + 1, 2 * vocab, SIZE_MAX };
		for (int i = 0; i < 6; i++)
			assert_int_equal(jit_session_feed_logits(s, ids, 1, got, wrong[i], &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, "n_logits"));
		assert_int_equal(jit_session_length(s), at);
		jit_session_close(s);
	}
	free(want);
	free(got);
	jit_session_close(plain);
}

/* ---- progress */

struct told {
	size_t last, length, calls, stop_at;
};

static int take_progress(void *user, size_t computed, size_t length)
{
	struct told *t = user;

	assert_true(computed > t->last && computed <= length);
	t->last = computed;
	t->length = length;
	t->calls++;
	return t->stop_at && computed >= t->stop_at;
}

static void prompts_are_told(void **state)
{
	jit_error err = { 0 };
	int32_t ids[CONTEXT], id;
	const size_t n = prompt(ids);
	float *rows = malloc(n * (vocab > hidden ? vocab : hidden) * sizeof *rows);
	(void)state;

	for (int way = 0; way < 4; way++) {
		jit_session *s = open_session(4, 32, NULL);
		struct told t = { 0 };
		assert_int_equal(jit_session_set_prompt_fn(s, take_progress, &t, &err), JIT_OK);
		assert_int_equal(way == 0   ? jit_session_feed(s, ids, n, &err)
		                 : way == 1 ? jit_session_score(s, ids, n, NULL, &err)
		                 : way == 2 ? jit_session_feed_logits(s, ids, n, rows, n * vocab, &err)
		                            : jit_session_embed(s, ids, n, NULL, rows, hidden, &err),
		                 JIT_OK);
		assert_int_equal(t.last, n);
		assert_int_equal(t.length, n);
		assert_in_range(t.calls, 5, n);
		if (way < 3) { /* tokens that are chosen are no prompt */
			const size_t calls = t.calls;
			for (int i = 0; i < 6; i++)
				assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_int_equal(t.calls, calls);
		}
		jit_session_close(s);
	}
	/* it may stop a feed, which can go on later */
	jit_session *s = open_session(4, 32, NULL);
	struct told t = { .stop_at = 60 };
	assert_int_equal(jit_session_set_prompt_fn(s, take_progress, &t, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_ERROR_CANCELLED);
	assert_int_equal(jit_session_length(s), t.last);
	assert_in_range(t.last, 60, 91);
	t.stop_at = n; /* too late: all are computed */
	assert_int_equal(jit_session_feed(s, ids + t.last, n - t.last, &err), JIT_OK);
	assert_int_equal(t.last, n);
	assert_int_equal(jit_session_set_prompt_fn(s, NULL, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids, 3, &err), JIT_OK);
	assert_int_equal(t.last, n);
	jit_session_close(s);
	free(rows);
}

static void so_they_are_in_batches(void **state)
{
	jit_error err = { 0 };
	int32_t ids[CONTEXT];
	const size_t n = prompt(ids);
	struct told t[2] = { { 0 }, { .stop_at = 40 } };
	unsigned steps = 0;
	(void)state;

	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 32), &err);
	jit_session *s[2] = { jit_batch_session(b, NULL, &err), jit_batch_session(b, NULL, &err) }, *ready[2];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(jit_session_set_prompt_fn(s[i], take_progress, &t[i], &err), JIT_OK);
		ids[0] = 300 + i; /* nothing is shared */
		assert_int_equal(jit_session_submit(s[i], ids, n, NULL, &err), JIT_OK);
	}
	for (size_t told; jit_batch_pending(b) && steps < 100; steps++)
		assert_int_equal(jit_batch_step(b, ready, 2, &told, &err), JIT_OK);
	assert_int_equal(t[0].last, n);
	assert_int_equal(t[0].length, n);
	assert_non_null(jit_session_logits(s[0], &err));
	assert_null(jit_session_logits(s[1], &err));
	assert_int_equal(err.code, JIT_ERROR_CANCELLED);
	assert_int_equal(jit_session_length(s[1]), t[1].last);
	for (int i = 0; i < 2; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
}

static int open_model(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	char path[1024];
	(void)state;

	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	if (!model || jit_model_get_info(model, &info, &err) != JIT_OK)
		return -1;
	vocab = (size_t)info.vocab;
	hidden = (size_t)info.hidden;
	return 0;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drafts_and_batches_go_on),
		cmocka_unit_test(logits_stay),
		cmocka_unit_test(odd_answers),
		cmocka_unit_test(every_row_is_that_of_a_feed),
		cmocka_unit_test(prompts_are_told),
		cmocka_unit_test(so_they_are_in_batches)
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
