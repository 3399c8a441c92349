/* tests/runtime/t_shift.c - texts out of whose middle tokens were taken, so that they go on where the context is full:
 * their logits are those of a session that was fed what is left, and what chooses tokens goes on where it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "runtime/sampling/sampling.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

/* More than two pages; KEEP ends within the first, which another session has, too. */
enum { CONTEXT = 300, PROMPT = 200, KEEP = 5, TOKENS = 64 };

/* ---- logits */

static const char *name;

static jit_batch *open_batch(jit_model *m, int kv, int context)
{
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(
		m, &JIT_BATCH_OPTIONS(.context = context, .threads = 1, .tokens = TOKENS, .kv = kv), &err);

	if (!b)
		fail_msg("%s: %s", name, err.message);
	return b;
}

/* Until the session's tokens are computed. */
static void compute(jit_batch *b, const jit_session *s)
{
	jit_session *ready[4];
	jit_error err = { 0 };
	size_t n = 0;
	bool found = false;

	for (int i = 0; !found; i++) {
		assert_true(i < 100);
		must(jit_batch_step(b, ready, 4, &n, &err), &err);
		for (size_t k = 0; k < n; k++)
			found |= ready[k] == s;
	}
}

/* Its logits beside those of a session that was fed the same tokens and nothing else. */
static void compare(jit_model *m, jit_session *s, int n_vocab, int kv)
{
	jit_error err = { 0 };
	const size_t n = jit_session_length(s);
	jit_session *other =
		jit_session_open(m, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .kv = kv), &err);

	assert_non_null(other);
	must(jit_session_feed(other, jit_session_ids(s), n, &err), &err);
	const float *got = jit_session_logits(s, &err), *expected = jit_session_logits(other, &err);
	assert_non_null(got);
	if (memcmp(got, expected, (size_t)n_vocab * sizeof *got) != 0)
		fail_msg("%s: the logits behind %zu tokens are others than alone", name, n);
	jit_session_close(other);
}

/* From where its tokens are computed to where the last one is only chosen. */
static void go_on(jit_batch *b, jit_session *s, size_t length)
{
	jit_error err = { 0 };
	int32_t id;

	do {
		must(jit_session_next(s, &id, &err), &err);
		if (jit_session_length(s) < length)
			compute(b, s);
	} while (jit_session_length(s) < length);
}

/* A text that fills its context is cut, goes on, and is cut again; another one that began alike stays as it was. */
static void check_cut(jit_model *m, int n_vocab, int kv, size_t cut)
{
	jit_batch *b = open_batch(m, kv, CONTEXT);
	jit_error err = { 0 };
	jit_session *s = jit_batch_session(b, NULL, &err), *other = jit_batch_session(b, NULL, &err);
	int32_t ids[CONTEXT + 1], text[PROMPT];

	for (int i = 0; i < PROMPT; i++)
		text[i] = 10 + i * 37 % (n_vocab - 10);
	must(jit_session_submit(s, text, PROMPT, NULL, &err), &err);
	compute(b, s);
	go_on(b, s, CONTEXT + 1);
	must(jit_session_submit(other, text, PROMPT, NULL, &err), &err);
	compute(b, other);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(jit_session_length(s), CONTEXT + 1);
		memcpy(ids, jit_session_ids(s), sizeof ids);
		must(session_shift(s, KEEP, cut, &err), &err);
		assert_int_equal(jit_session_length(s), CONTEXT + 1 - cut);
		assert_memory_equal(jit_session_ids(s), ids, KEEP * sizeof *ids);
		assert_memory_equal(jit_session_ids(s) + KEEP, ids + KEEP + cut,
		                    (CONTEXT + 1 - KEEP - cut) * sizeof *ids);
		compute(b, s);
		compare(m, s, n_vocab, kv);
		go_on(b, s, CONTEXT + 1);
	}
	compare(m, other, n_vocab, kv);
	jit_session_close(other);
	jit_session_close(s);
	jit_batch_close(b);
}

static void check_model(unsigned i, const char *path, int kv)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);

	if (!m)
		fail_msg("%s: %s", path, err.message);
	must(jit_model_get_info(m, &info, &err), &err);
	check_cut(m, info.vocab, kv, i % 2 ? (CONTEXT - KEEP) / 2 : 1 + i * 17);
	jit_model_close(m);
}

/* Attention; windows; states of convolutions, of the delta rule, of a scan; latent attention. */
static void what_is_left_is_as_if_fed(void **state)
{
	static const char *const models[] = { "golden/gemma3-a", "golden/lfm2-a", "golden/qwen35-a",
		                              "golden/nemotronh-a", "golden/deepseekv3-a" };
	static const int kinds[] = { JIT_KV_F16, JIT_KV_Q8_0, JIT_KV_F32 };
	char path[1024];

	name = "tale";
	for (unsigned i = 0; i < 3; i++)
		check_cut(model, vocab, kinds[i], i == 0 ? 1 : (CONTEXT - KEEP) / 2 + i);
	for (unsigned i = 0; i < sizeof models / sizeof *models; i++) {
		if (!shared_path(path, models[i]) || (test_quick() && !test_mine_of_halves(i)))
			continue;
		name = models[i];
		check_model(i, path, kinds[i % 3]);
	}
}

/* ---- what chooses */

/* The number that a token is drawn by is the next one, and not one that was there. */
static void draws_go_on(void **state)
{
	const jit_sampling p = JIT_SAMPLING(.temperature = 2, .top_k = 900, .seed = 5);
	struct sampling plain = { 0 };
	struct error e = { 0 };
	jit_error err = { 0 };
	jit_session *s =
		jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .sampling = &p), &err);
	int32_t id, text[60];

	assert_non_null(s);
	assert_true(sampling_open(&plain, vocab) && sampling_set(&plain, &p, CONTEXT, &e));
	for (int i = 0; i < 60; i++)
		text[i] = 10 + i * 7;
	must(jit_session_feed(s, text, 60, &err), &err);
	for (size_t i = 0, drawn = 60; i < 40; i++, drawn++) {
		if (i % 8 == 3)
			must(session_shift(s, KEEP, 5 + i / 4, &err), &err);
		const float *logits = jit_session_logits(s, &err);
		const int32_t expected = sampling_choose(&plain, logits, text, drawn);
		must(jit_session_next(s, &id, &err), &err);
		assert_int_equal(id, expected);
	}
	sampling_close(&plain);
	jit_session_close(s);
}

/* A sampler that learns from what it chose knows it still. */
static void samplers_keep_their_state(void **state)
{
	const jit_sampling p = JIT_SAMPLING(.temperature = 1, .mirostat = 2, .seed = 9);
	enum { VOCAB = 200, FROM = 40, TO = 17 };
	struct sampling plain = { 0 }, cut = { 0 };
	struct error e = { 0 };
	float logits[VOCAB];
	int32_t history[FROM + 20] = { 0 }, whole[FROM + 20] = { 0 };

	assert_true(sampling_open(&plain, VOCAB) && sampling_set(&plain, &p, CONTEXT, &e));
	assert_true(sampling_open(&cut, VOCAB) && sampling_set(&cut, &p, CONTEXT, &e));
	for (size_t at = 0; at < FROM + 20; at++) {
		const size_t position = at < FROM ? at : at - FROM + TO;
		for (int i = 0; i < VOCAB; i++)
			logits[i] = (float)((i * 7919 + (int)at * 104729) % 1000) / 100;
		if (at == FROM) {
			sampling_shift(&cut, FROM, TO);
			memmove(history, history + FROM - TO, TO * sizeof *history);
		}
		const int32_t got = sampling_choose(&cut, logits, history, position);
		assert_int_equal(got, sampling_choose(&plain, logits, whole, at));
		history[position] = whole[at] = got;
	}
	sampling_close(&plain);
	sampling_close(&cut);
}

static void feed_text(jit_session *s, const char *text)
{
	jit_error err = { 0 };

	must(jit_session_feed_text(s, text, strlen(text), 0, &err), &err);
}

/* Generates until an end token; cuts whenever so many tokens are there. The text, which is to be freed. */
static char *write_on(jit_session *s, size_t room, size_t *n_tokens, unsigned *cuts)
{
	char *all = calloc(1, 1 << 14);
	jit_error err = { 0 };
	size_t n, have = 0;
	int32_t id;

	*cuts = 0;
	for (*n_tokens = 0; *n_tokens < 1000; ++*n_tokens) {
		if (jit_session_next(s, &id, &err) != JIT_OK || jit_model_is_end(model, id))
			break;
		const char *text = jit_session_text(s, id, &n, &err);
		assert_true(have + n < 1 << 14);
		memcpy(all + have, text, n);
		have += n;
		if (jit_session_length(s) > room) {
			must(session_shift(s, KEEP, room / 2, &err), &err);
			++*cuts;
		}
	}
	return all;
}

/* What the grammar has taken, it has taken, though it stands in the text no more. */
static void grammars_go_on(void **state)
{
	static const char expression[] = "([0-9]{3},){40}end";
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	size_t n_tokens, commas = 0;
	unsigned cuts;

	feed_text(s, "Once upon a time there was a king who counted: ");
	must(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, expression, strlen(expression), &err), &err);
	char *text = write_on(s, 48, &n_tokens, &cuts);
	assert_true(cuts >= 3);
	assert_int_equal(strlen(text), 40 * 4 + 3);
	for (const char *c = text; *c; c++)
		commas += *c == ',';
	assert_int_equal(commas, 40);
	assert_string_equal(text + 160, "end");
	assert_int_equal(jit_session_grammar_complete(s), 1);
	free(text);
	jit_session_close(s);
}

/* Tokens that are taken back behind a cut are chosen again, the grammar being where it was before them. */
static void what_is_taken_back_comes_again(void **state)
{
	static const char expression[] = "([0-9]{3},){40}end";
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	int32_t id, before[6];

	feed_text(s, "Once upon a time there was a king who counted: ");
	must(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, expression, strlen(expression), &err), &err);
	for (int i = 0; i < 30; i++)
		must(jit_session_next(s, &id, &err), &err);
	for (size_t n = 1; n < 7; n++) {
		must(session_shift(s, KEEP, n, &err), &err);
		for (size_t i = 0; i < n; i++)
			must(jit_session_next(s, &before[i], &err), &err);
		const size_t left = jit_session_length(s) - n - 1;
		id = jit_session_ids(s)[left];
		must(jit_session_rewind(s, left, &err), &err);
		must(jit_session_feed(s, &id, 1, &err), &err);
		for (size_t i = 0; i < n; i++) {
			must(jit_session_next(s, &id, &err), &err);
			assert_int_equal(id, before[i]);
		}
	}
	jit_session_close(s);
}

static int32_t an_end(void)
{
	int32_t id = 0;

	while (id < vocab && !jit_model_is_end(model, id))
		id++;
	assert_true(id < vocab);
	return id;
}

/* An answer has its least number of tokens, those counted that are gone. */
static void limits_go_on(void **state)
{
	static const size_t min[] = { 40, 150 };

	for (size_t i = 0; i < 2; i++) {
		struct error e = { 0 };
		jit_error err = { 0 };
		/* an end token as soon as one may be chosen */
		const jit_logit_bias bias = { .id = an_end(), .bias = 90 };
		const jit_sampling p = JIT_SAMPLING(.logit_bias = &bias, .n_logit_bias = 1);
		jit_session *s = jit_session_open(
			model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .sampling = &p), &err);
		const struct session_limits_options o = { .min = (int64_t)min[i], .budget = -1 };
		struct session_limits *l = session_limits_open(model, &o, &e);
		size_t n_tokens;
		unsigned cuts;

		feed_text(s, "Once upon a time");
		assert_true(session_set_limits(s, l, &e));
		char *text = write_on(s, 48, &n_tokens, &cuts);
		assert_int_equal(n_tokens, min[i]);
		assert_true(cuts >= min[i] / 50);
		free(text);
		jit_session_close(s);
		session_limits_close(l);
	}
}

/* ---- what is refused */

static void cuts_that_are_none(void **state)
{
	static const size_t rows[][2] = {
		{ 0, 0 }, { 5, 0 }, { 11, 1 }, { 10, 1 }, { 0, 10 }, { 4, 6 }, { 4, SIZE_MAX }
	};
	jit_error err = { 0 };
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	const int32_t ids[10] = { 10, 20, 30, 40, 50, 60, 70, 80, 90, 100 };

	must(jit_session_feed(s, ids, 10, &err), &err);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(session_shift(s, rows[i][0], rows[i][1], &err), JIT_ERROR_ARGUMENT);
		assert_int_equal(jit_session_length(s), 10);
		assert_memory_equal(jit_session_ids(s), ids, sizeof ids);
	}
	must(session_shift(s, 4, 5, &err), &err);
	assert_int_equal(jit_session_length(s), 5);
	assert_int_equal(jit_session_ids(s)[4], 100);
	jit_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_is_as_if_fed),
		cmocka_unit_test(draws_go_on),
		cmocka_unit_test(samplers_keep_their_state),
		cmocka_unit_test(grammars_go_on),
		cmocka_unit_test(what_is_taken_back_comes_again),
		cmocka_unit_test(limits_go_on),
		cmocka_unit_test(cuts_that_are_none),
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
