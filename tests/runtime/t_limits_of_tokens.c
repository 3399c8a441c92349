/* tests/runtime/t_limits_of_tokens.c - what bounds the choices of a session: beside a plain loop over logits, with
 * drafts and without, alone and in a batch, and again after a rewind.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

enum { CONTEXT = 256, TOKENS = 40 };

static const char prompt[] = "Once upon a time there was a king. Once upon a time there was a";
static int32_t prompt_ids[CONTEXT];
static size_t n_prompt;

static size_t encode(const char *text, int32_t *ids)
{
	int32_t *made;
	size_t n;

	assert_int_equal(jit_model_tokenize(model, text, strlen(text), 1, 0, &made, &n, NULL), JIT_OK);
	memcpy(ids, made, n * sizeof *ids);
	free(made);
	return n;
}

static struct session_limits *open_limits(const struct session_limits_options *o)
{
	struct error e = { 0 };
	struct session_limits *l = session_limits_open(model, o, &e);

	if (!l)
		fail_msg("%s", e.text);
	return l;
}

static jit_session *alone(int speculate, const jit_sampling *p)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate, .sampling = p),
		&err);

	if (!s)
		fail_msg("%s", err.message);
	must(jit_session_feed(s, prompt_ids, n_prompt, &err), &err);
	return s;
}

static void limit(jit_session *s, const struct session_limits *l)
{
	struct error e = { 0 };

	assert_true(session_set_limits(s, l, &e));
}

static void generate(jit_session *s, int32_t *ids)
{
	jit_error err = { 0 };

	for (size_t i = 0; i < TOKENS; i++)
		must(jit_session_next(s, &ids[i], &err), &err);
}

/* Step by step in a batch, beside another session. */
static void generate_in_batch(const struct session_limits *l, const jit_sampling *p, int32_t *ids)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	jit_session *s = jit_batch_session(b, p, &err), *other = jit_batch_session(b, p, &err), *ready[2];
	size_t have = 0, n;
	int32_t id;

	must(jit_session_submit(s, prompt_ids, n_prompt, NULL, &err), &err);
	must(jit_session_submit(other, prompt_ids, n_prompt / 2, NULL, &err), &err);
	limit(s, l);
	while (have < TOKENS) {
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
		for (size_t i = 0; i < n; i++) {
			must(jit_session_next(ready[i], &id, &err), &err);
			if (ready[i] == s && have < TOKENS)
				ids[have++] = id;
		}
	}
	jit_session_close(s);
	jit_session_close(other);
	jit_batch_close(b);
}

/* The same tokens, however they are computed; first: those of a session without drafts. */
static void check_all_ways(const struct session_limits_options *o, const jit_sampling *p, int32_t *first)
{
	struct session_limits *l = open_limits(o);
	int32_t ids[TOKENS];
	jit_error err = { 0 };

	for (int way = 0; way < 3; way++) {
		jit_session *s = alone(way == 0 ? JIT_SPECULATE_OFF : way == 1 ? 4 : JIT_SPECULATE_AUTO, p);
		limit(s, l);
		generate(s, way ? ids : first);
		if (way)
			assert_memory_equal(ids, first, sizeof ids);
		/* A token that is fed is none that mirostat drew. */
		for (size_t back = 1; back + 1 < TOKENS && !(p && p->mirostat); back += 13) {
			must(jit_session_rewind(s, n_prompt + TOKENS - back - 1, &err), &err);
			must(jit_session_feed(s, &first[TOKENS - back - 1], 1, &err), &err);
			for (size_t i = TOKENS - back; i < TOKENS; i++)
				must(jit_session_next(s, &ids[i], &err), &err);
			assert_memory_equal(ids + TOKENS - back, first + TOKENS - back, back * sizeof *ids);
		}
		jit_session_close(s);
	}
	generate_in_batch(l, p, ids);
	assert_memory_equal(ids, first, sizeof ids);
	session_limits_close(l);
}

static int32_t greatest(const float *logits, const bool *never)
{
	int32_t best = -1;

	for (int32_t i = 0; i < vocab; i++)
		if (!never[i] && (best < 0 || logits[i] > logits[best]))
			best = i;
	return best;
}

/* The likeliest token that is none of `never`, by the logits of a session that is told of nothing. */
static void check_greedy(const bool *never, const int32_t *ids)
{
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	jit_error err = { 0 };

	for (size_t i = 0; i < TOKENS; i++) {
		const float *logits = jit_session_logits(s, &err);
		assert_non_null(logits);
		assert_int_equal(ids[i], greatest(logits, never));
		must(jit_session_feed(s, &ids[i], 1, &err), &err);
	}
	jit_session_close(s);
}

static void test_allowed(void **state)
{
	static const int32_t allowed[] = { 300, 40, 55, 61, 7 };
	const struct session_limits_options o = { .allowed = allowed, .n_allowed = 5, .budget = -1 };
	const jit_sampling greedy = JIT_SAMPLING(), hot = JIT_SAMPLING(.temperature = 3, .seed = 4);
	bool *never = malloc((size_t)vocab);
	int32_t ids[TOKENS];
	(void)state;

	memset(never, 1, (size_t)vocab);
	for (size_t i = 0; i < 5; i++)
		never[allowed[i]] = false;
	check_all_ways(&o, &greedy, ids);
	check_greedy(never, ids);
	check_all_ways(&o, &hot, ids);
	for (size_t i = 0; i < TOKENS; i++)
		assert_false(never[ids[i]]);
	free(never);
}

static char *text_of(const int32_t *ids, size_t n)
{
	jit_error err = { 0 };
	char *text = jit_model_detokenize(model, ids, n, NULL, &err);

	assert_non_null(text);
	return text;
}

/* However a text is cut into tokens, it is not generated. */
static void test_texts(void **state)
{
	static const char *const texts[] = { "king", "th", "was a", " s" };
	const jit_sampling ways[] = { JIT_SAMPLING(), JIT_SAMPLING(.temperature = 2.5f, .seed = 11),
		                      JIT_SAMPLING(.temperature = 1, .mirostat = 2, .seed = 3) };
	unsigned without = 0;
	(void)state;

	for (size_t w = 0; w < 3; w++) {
		int32_t ids[TOKENS];
		jit_session *s = alone(JIT_SPECULATE_OFF, &ways[w]);
		generate(s, ids);
		char *text = text_of(ids, TOKENS);
		for (size_t i = 0; i < 4; i++)
			without += strstr(text, texts[i]) != NULL;
		free(text);
		jit_session_close(s);
		check_all_ways(&(struct session_limits_options){ .texts = texts, .n_texts = 4, .budget = -1 }, &ways[w],
		               ids);
		text = text_of(ids, TOKENS);
		for (size_t i = 0; i < 4; i++)
			if (strstr(text, texts[i]))
				fail_msg("\"%s\" is in \"%s\"", texts[i], text);
		free(text);
	}
	assert_true(without > 3);
}

static void test_sequences(void **state)
{
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	int32_t free_ids[TOKENS], ids[TOKENS];
	(void)state;

	generate(s, free_ids);
	jit_session_close(s);
	const struct session_tokens word = { free_ids + 3, 3 };
	check_all_ways(&(struct session_limits_options){ .words = &word, .n_words = 1, .budget = -1 }, NULL, ids);
	assert_memory_equal(ids, free_ids, 5 * sizeof *ids);
	assert_int_not_equal(ids[5], free_ids[5]);
}

/* Tokens that end texts are not chosen before `min`, and are free afterwards. */
static void test_min(void **state)
{
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	int32_t free_ids[TOKENS], ids[TOKENS];
	(void)state;

	generate(s, free_ids);
	jit_session_close(s);
	check_all_ways(&(struct session_limits_options){ .min = 9, .ends = free_ids + 8, .n_ends = 1, .budget = -1 },
	               NULL, ids);
	for (size_t i = 0; i < 9; i++)
		assert_int_not_equal(ids[i], free_ids[8]);
	check_all_ways(&(struct session_limits_options){ .min = 8, .ends = free_ids + 8, .n_ends = 1, .budget = -1 },
	               NULL, ids);
	for (size_t i = 0; i < 8; i++)
		assert_int_not_equal(ids[i], free_ids[8]);
}

/* The reasoning is closed behind so many tokens, wherever it was opened, and not again. */
static void test_budget(void **state)
{
	static const char *const marks[][2] = { { "<think>", "</think>" }, { "[THINK]\n", "[/THINK]" } };
	int32_t ids[TOKENS], kept[CONTEXT];
	const size_t n_kept = n_prompt;
	(void)state;

	memcpy(kept, prompt_ids, sizeof kept);
	for (size_t m = 0; m < 2; m++) {
		n_prompt = encode(prompt, prompt_ids);
		int32_t *more;
		size_t n;
		assert_int_equal(jit_model_tokenize(model, marks[m][0], strlen(marks[m][0]), 0, 0, &more, &n, NULL),
		                 JIT_OK);
		memcpy(prompt_ids + n_prompt, more, n * sizeof *more);
		n_prompt += n;
		free(more);
		for (int64_t budget = 0; budget <= 11; budget += budget ? 5 : 1) {
			const char *message = budget == 6 ? " Enough." : NULL;
			check_all_ways(&(struct session_limits_options){ .budget = budget, .message = message }, NULL,
			               ids);
			char *before = text_of(ids, (size_t)budget), *all = text_of(ids, TOKENS);
			char *closed = strstr(all, marks[m][1]);
			assert_non_null(closed);
			assert_null(strstr(closed + 1, marks[m][1]));
			const size_t more_text = message ? strlen(message) : 0;
			assert_int_equal(closed - all, strlen(before) + more_text);
			if (message)
				assert_memory_equal(closed - more_text, message, more_text);
			free(before);
			free(all);
		}
	}
	memcpy(prompt_ids, kept, sizeof kept);
	n_prompt = n_kept;
	/* Without reasoning nothing is closed. */
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	int32_t free_ids[TOKENS];
	generate(s, free_ids);
	jit_session_close(s);
	check_all_ways(&(struct session_limits_options){ .budget = 0 }, NULL, ids);
	assert_memory_equal(ids, free_ids, sizeof ids);
}

static void test_refused(void **state)
{
	static const int32_t bad[] = { 1, -1 };
	static const char *const empty[] = { "" };
	const struct session_tokens word = { bad, 2 };
	const struct session_limits_options cases[] = {
		{ .allowed = bad, .n_allowed = 2, .budget = -1 },
		{ .ends = bad, .n_ends = 2, .budget = -1 },
		{ .words = &word, .n_words = 1, .budget = -1 },
		{ .texts = empty, .n_texts = 1, .budget = -1 },
	};
	static const int32_t one = 5;
	const struct session_tokens never = { &one, 1 };
	jit_error err = { 0 };
	int32_t id;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		assert_null(session_limits_open(model, &cases[i], &e));
		assert_int_equal(e.code, ERROR_ARGUMENT);
	}
	struct session_limits *l = open_limits(&(struct session_limits_options){
		.allowed = &one, .n_allowed = 1, .words = &never, .n_words = 1, .budget = -1 });
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	limit(s, l);
	assert_int_equal(jit_session_next(s, &id, &err), JIT_ERROR_UNSUPPORTED);
	limit(s, NULL);
	must(jit_session_next(s, &id, &err), &err);
	jit_session_close(s);
	session_limits_close(l);
}

static int start(void **state)
{
	const int status = open_model(state);

	n_prompt = status ? 0 : encode(prompt, prompt_ids);
	return status;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed), cmocka_unit_test(test_texts),  cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_min),     cmocka_unit_test(test_budget), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, close_model);
}
