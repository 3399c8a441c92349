/* tests/runtime/t_batch_narrow.c - batches whose passes have few tokens: a sweep of widths, lengths of prompts and
 * numbers of sessions. Each comes to an end, and every session has the tokens and the logits that it has alone. A step
 * that gets nowhere is an error; sessions that decode do not keep prompts out for ever.
 *
 * A session reads a prompt, chooses some tokens, reads again, and chooses again, so that what it waits for is of any
 * length in relation to a pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/batch/batch.h"
#include "include/jitrun_grammar.h"
#include "tests/support/shared.h"

enum { CONTEXT = 256, WIDEST = 40, SESSIONS_MAX = 5, CHOSEN = 3, READS = 2, ANSWERS = READS * (CHOSEN + 1) };

static const size_t lengths[] = { 1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 18, 23, 31, 32, 33, 47, 65, 130 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* What a session says: after each read its logits, and each token it chooses with the logits behind it. */
struct talk {
	int32_t chosen[ANSWERS];
	float *logits; /* [ANSWERS][vocab] */
};

static struct {
	const char *name;
	jit_model *model;
	size_t vocab;
	bool grammar;
	int kv;
	struct talk alone[LENGTHS][SESSIONS_MAX];
} on;

static void must(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s: %s", on.name, err->message);
}

/* ---- what sessions are asked */

/* Tokens that often repeat themselves, so that drafts come true. */
static void write_prompt(int32_t *ids, size_t n, size_t number, int read)
{
	uint64_t x = 77 * (n + 1) + 1009 * (number + 1) + (unsigned)read;

	for (size_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		ids[i] = i > 3 && (x >> 60) ? ids[i - 3] : (int32_t)((x >> 33) % on.vocab);
	}
}

static size_t read_length(size_t n, int read) { return read ? n / 2 + 1 : n; }

/* Every other session keeps to a grammar from its first choice on. */
static void begin_grammar(jit_session *s, size_t number)
{
	static const char schema[] = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}";
	jit_error err = { 0 };

	if (on.grammar && number % 2)
		must(jit_session_set_grammar(s, JIT_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, &err), &err);
}

/* Its text is whole where it is read again: no grammar goes on over that. */
static void end_grammar(jit_session *s)
{
	jit_error err = { 0 };

	if (on.grammar)
		must(jit_session_set_grammar(s, JIT_GRAMMAR_NONE, NULL, 0, &err), &err);
}

static jit_sampling sampling_of(size_t number)
{
	return JIT_SAMPLING(.temperature = number % 3 == 2 ? 0.9f : 0, .top_k = 30, .seed = number);
}

static void talk_alone(struct talk *t, size_t length, size_t number)
{
	const jit_sampling p = sampling_of(number);
	jit_error err = { 0 };
	jit_session *s = jit_session_open(on.model,
	                                  &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .kv = on.kv,
	                                                       .sampling = &p, .speculate = JIT_SPECULATE_OFF),
	                                  &err);
	int32_t ids[CONTEXT];
	float *at = t->logits = malloc(ANSWERS * on.vocab * sizeof *at);

	assert_non_null(s);
	assert_non_null(at);
	for (int read = 0; read < READS; read++) {
		const size_t n = read_length(length, read);
		write_prompt(ids, n, number, read);
		must(jit_session_feed(s, ids, n, &err), &err);
		begin_grammar(s, number);
		for (int i = 0; i <= CHOSEN; i++, at += on.vocab) {
			memcpy(at, jit_session_logits(s, &err), on.vocab * sizeof *at);
			if (i < CHOSEN)
				must(jit_session_next(s, &t->chosen[read * (CHOSEN + 1) + i], &err), &err);
		}
		end_grammar(s);
	}
	jit_session_close(s);
}

static void open_model(const char *name, bool of_the_tree, bool grammar, int kv)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	memset(&on, 0, sizeof on);
	if (!(of_the_tree ? source_path(path, name) : shared_path(path, name)))
		return;
	on.name = name;
	on.grammar = grammar;
	on.kv = kv;
	on.model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);
	if (!on.model)
		fail_msg("%s: %s", path, err.message);
	must(jit_model_get_info(on.model, &info, &err), &err);
	on.vocab = (size_t)info.vocab;
}

static void close_model(void)
{
	for (size_t i = 0; i < LENGTHS; i++)
		for (size_t k = 0; k < SESSIONS_MAX; k++)
			free(on.alone[i][k].logits);
	jit_model_close(on.model);
	on.model = NULL;
}

/* ---- the same in a batch */

struct part {
	jit_session *session;
	int read;
	size_t answers;
};

static void submit(const struct part *p, size_t length, size_t number)
{
	const size_t n = read_length(length, p->read);
	int32_t ids[CONTEXT];
	jit_error err = { 0 };

	write_prompt(ids, n, number, p->read);
	must(jit_session_submit(p->session, ids, n, NULL, &err), &err);
}

/* Its logits are there: they are those alone, and so is what it chooses. Whether it goes on. */
static bool answer(struct part *p, size_t length_number, size_t number, int tokens)
{
	const struct talk *t = &on.alone[length_number][number];
	const size_t at = p->answers++, i = at % (CHOSEN + 1);
	jit_error err = { 0 };
	int32_t id;

	if (i == 0)
		begin_grammar(p->session, number);
	const float *logits = jit_session_logits(p->session, &err);
	if (!logits || memcmp(logits, t->logits + at * on.vocab, on.vocab * sizeof *logits) != 0)
		fail_msg("%s, passes of %d tokens, a prompt of %zu: session %zu has not the logits of answer %zu: %s",
		         on.name, tokens, lengths[length_number], number, at, err.message);
	if (i < CHOSEN) {
		must(jit_session_next(p->session, &id, &err), &err);
		assert_int_equal(id, t->chosen[at]);
		return true;
	}
	end_grammar(p->session);
	if (++p->read == READS)
		return false;
	submit(p, lengths[length_number], number);
	return true;
}

static void check_batch(int tokens, size_t length_number, size_t sessions)
{
	static const int modes[] = { JIT_SPECULATE_OFF, JIT_SPECULATE_AUTO, 4, 16, 8 };
	const int mode = modes[((size_t)tokens + length_number + sessions) % 5];
	const jit_batch_options o = JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = tokens, .kv = on.kv,
	                                              .speculate = mode, .kv_bytes = 64 << 20);
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(on.model, &o, &err);
	jit_session *ready[SESSIONS_MAX];
	struct part part[SESSIONS_MAX] = { 0 };
	size_t here = sessions, n, steps = 0;

	if (!b)
		fail_msg("%s: %s", on.name, err.message);
	for (size_t i = 0; i < sessions; i++) {
		const jit_sampling p = sampling_of(i);
		if (!on.alone[length_number][i].logits)
			talk_alone(&on.alone[length_number][i], lengths[length_number], i);
		part[i].session = jit_batch_session(b, &p, &err);
		assert_non_null(part[i].session);
		submit(&part[i], lengths[length_number], i);
	}
	while (here) {
		must(jit_batch_step(b, ready, 1 + (size_t)tokens % sessions, &n, &err), &err);
		for (size_t i = 0; i < sessions; i++)
			for (size_t k = 0; k < n; k++)
				if (ready[k] == part[i].session)
					here -= !answer(&part[i], length_number, i, tokens);
		if (++steps > 8 * sessions * (2 * lengths[length_number] + ANSWERS + 4))
			fail_msg("%s, passes of %d tokens, %zu prompts of %zu, drafts %d: no end after %zu steps",
			         on.name, tokens, sessions, lengths[length_number], mode, steps);
	}
	for (size_t i = 0; i < sessions; i++)
		jit_session_close(part[i].session);
	jit_batch_close(b);
}

/* Every width, with every length and number of sessions or, in parts, those that come out different each time. */
static void sweep(unsigned of)
{
	static const size_t numbers[] = { 1, 2, 3, SESSIONS_MAX };
	unsigned round = 0;

	for (int tokens = 1; on.model && tokens <= WIDEST; tokens++)
		for (size_t l = 0; l < LENGTHS; l++)
			for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
				if (round++ % of == 0)
					check_batch(tokens, l, numbers[k]);
}

static void every_width_comes_to_an_end(void **state)
{
	static const int kvs[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		open_model("models/tale-q8_0.gguf", true, true, kvs[i]);
		sweep(test_full() ? 1 : test_quick() ? 19 : i ? 7 : 1);
		close_model();
	}
}

/* Windows; states of convolutions, of the delta rule, of a scan; experts; latent attention. */
static void so_it_does_with_other_layers(void **state)
{
	static const char *const models[] = { "golden/gemma3-a",    "golden/lfm2-a",      "golden/qwen35-a",
		                              "golden/nemotronh-a", "golden/qwen3moe-a",  "golden/deepseekv3-a",
		                              "golden/gptoss-a",    "golden/qwen3next-a", "golden/granitehybrid-a" };
	(void)state;

	for (unsigned i = 0; i < sizeof models / sizeof *models; i++)
		if (test_mine_of_halves(i)) {
			open_model(models[i], false, false, i % 2 ? JIT_KV_F32 : JIT_KV_F16);
			sweep(test_full() ? 1 : test_quick() ? 97 : 13);
			close_model();
		}
}

/* ---- steps that get nowhere */

static jit_session *open_session(jit_batch *b, size_t length, size_t number)
{
	jit_error err = { 0 };
	struct part p = { .session = jit_batch_session(b, NULL, &err) };

	assert_non_null(p.session);
	submit(&p, length, number);
	return p.session;
}

static void expect_stall(jit_batch *b, unsigned steps)
{
	jit_session *ready[4];
	jit_error err = { 0 };
	size_t n = 0;
	int status = JIT_OK;

	for (unsigned i = 0; status == JIT_OK && i < steps; i++) {
		status = jit_batch_step(b, ready, 4, &n, &err);
		assert_int_equal(n, 0);
	}
	assert_int_equal(status, JIT_ERROR_STALLED);
	assert_non_null(strstr(err.message, "2 sessions wait for tokens"));
}

/* No token fits into a pass of none. */
static void a_step_without_a_pass_is_an_error(void **state)
{
	jit_error err = { 0 };
	jit_session *ready[4];
	size_t n = 1;
	(void)state;

	open_model("models/tale-q8_0.gguf", true, false, 0);
	jit_batch *b =
		jit_batch_open(on.model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 8), &err);
	assert_non_null(b);
	must(jit_batch_step(b, ready, 4, &n, &err), &err); /* nothing is due */
	assert_int_equal(n, 0);
	jit_session *s[2] = { open_session(b, 30, 0), open_session(b, 12, 1) };
	b->engine.batch = 0;
	expect_stall(b, 1);
	expect_stall(b, 1);
	b->engine.batch = 8; /* and nothing is lost by it */
	for (size_t done = 0; done < 2; done += n)
		must(jit_batch_step(b, ready, 4, &n, &err), &err);
	jit_session_close(s[0]);
	jit_session_close(s[1]);
	jit_batch_close(b);
	close_model();
}

static struct jit_batch *forgetful;

/* Time is told when a pass is over: states that it left are gone by then. */
static double forget_states(void)
{
	for (size_t i = 0; i < forgetful->n; i++)
		if (forgetful->member[i]->admitted)
			states_forget(&forgetful->member[i]->session->memory.states, 0);
	return 0;
}

static void a_pass_that_gets_nowhere_is_an_error(void **state)
{
	jit_error err = { 0 };
	(void)state;

	open_model("golden/lfm2-a", false, false, 0);
	if (!on.model)
		return;
	forgetful = jit_batch_open(on.model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = 20), &err);
	assert_non_null(forgetful);
	jit_session *s[2] = { open_session(forgetful, 90, 0), open_session(forgetful, 90, 1) };
	forgetful->now = forget_states;
	expect_stall(forgetful, 3);
	jit_session_close(s[0]);
	jit_session_close(s[1]);
	jit_batch_close(forgetful);
	close_model();
}

/* ---- turns */

/* So many sessions that they fill every pass write on and on; the number of steps until a prompt is read, too. */
static size_t steps_to_read(int tokens, size_t writers, size_t length)
{
	jit_error err = { 0 };
	const jit_batch_options o = JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1, .tokens = tokens,
	                                              .speculate = JIT_SPECULATE_OFF, .kv_bytes = 256 << 20);
	jit_batch *b = jit_batch_open(on.model, &o, &err);
	jit_session **s = calloc(writers + 1, sizeof *s), **ready = calloc(writers + 1, sizeof *ready);
	size_t steps = 0, n, told;

	assert_true(b && s && ready);
	for (size_t i = 0; i < writers; i++)
		s[i] = open_session(b, 1 + i % 2, i);
	for (told = 0; told < writers; told += n)
		must(jit_batch_step(b, ready, writers, &n, &err), &err);
	for (size_t i = 0; i < writers; i++)
		must(jit_session_next(s[i], &(int32_t){ 0 }, &err), &err);
	s[writers] = open_session(b, length, writers);
	for (bool read = false; !read; steps++) {
		must(jit_batch_step(b, ready, writers + 1, &n, &err), &err);
		for (size_t i = 0; i < n; i++)
			if (ready[i] == s[writers])
				read = true;
			else
				must(jit_session_next(ready[i], &(int32_t){ 0 }, &err), &err);
		assert_true(steps < 4 * CONTEXT);
	}
	for (size_t i = 0; i <= writers; i++)
		jit_session_close(s[i]);
	jit_batch_close(b);
	free(s);
	free(ready);
	return steps;
}

static void writers_do_not_keep_prompts_out(void **state)
{
	(void)state;
	open_model("models/tale-q8_0.gguf", true, false, 0);
	assert_in_range(steps_to_read(1, 2, 40), 40, 130);
	assert_in_range(steps_to_read(4, 6, 60), 15, 60);
	assert_in_range(steps_to_read(0, BATCH_CHUNKS_MAX + 3, 50), 3, 10);
	close_model();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_width_comes_to_an_end),
		cmocka_unit_test(so_it_does_with_other_layers),
		cmocka_unit_test(a_step_without_a_pass_is_an_error),
		cmocka_unit_test(a_pass_that_gets_nowhere_is_an_error),
		cmocka_unit_test(writers_do_not_keep_prompts_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
