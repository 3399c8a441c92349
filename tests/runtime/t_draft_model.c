/* tests/runtime/t_draft_model.c - a draft model changes no token and no logit: random walks over all that a session can
 * do, with draft models that are always right, sometimes and never, against the same walk without one. What is refused
 * as a draft model. And when one is asked, on a clock of its own: what that costs where it does not pay. */
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
#include "include/jitrun_draft.h"
#include "include/jitrun_grammar.h"
#include "runtime/speculate/speculate.h"
#include "tests/runtime/walk_record.h"
#include "tests/support/shared.h"

static uint64_t seed;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static jit_model *open_model(const char *path)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &err);

	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_model *open_shared(const char *name)
{
	char path[1024];

	return shared_path(path, name) ? open_model(path) : NULL;
}

/* ---- the same walk */

enum { CONTEXT = 200 };

/* Tokens whose texts are small letters and spaces alone. */
static void set_grammar(jit_session *s, bool some)
{
	static const char text[] = "[a-z ,.]*";
	jit_error err = { 0 };

	if (jit_session_set_grammar(s, some ? JIT_GRAMMAR_REGEX : JIT_GRAMMAR_NONE, text, sizeof text - 1, &err))
		fail_msg("%s", err.message);
}

static void set_sampling(jit_session *s, uint32_t which)
{
	static const char order[] = "penalties;top_k;temperature";
	const jit_sampling all[] = { JIT_SAMPLING(), JIT_SAMPLING(.temperature = 0.8f, .top_p = 0.9f, .seed = 5),
		                     JIT_SAMPLING(.temperature = 0.6f, .top_k = 20, .min_p = 0.02f, .seed = 6,
		                                  .repeat_penalty = 1.1f, .repeat_window = 20),
		                     JIT_SAMPLING(.temperature = 0.7f, .samplers = order, .top_k = 30, .seed = 7),
		                     JIT_SAMPLING(.temperature = 0.9f, .mirostat = 2, .seed = 8) };
	jit_error err = { 0 };

	assert_int_equal(jit_session_set_sampling(s, &all[which % 5], &err), JIT_OK);
}

/* False: the grammar refuses these tokens, and does so with drafts and without. Behind a rewind no token can be chosen
 * then. */
static bool feed_some(jit_session *s, const int32_t *ids, size_t n, bool grammar, struct record *r)
{
	jit_error err = { 0 };
	const int status = jit_session_feed(s, ids, n, &err);

	if (status != JIT_OK && !(grammar && status == JIT_ERROR_ARGUMENT))
		fail_msg("%s", err.message);
	note(r, &status, sizeof status);
	return status == JIT_OK;
}

/* Some steps, by the seed: mostly tokens, else whatever changes a session. */
static void walk(jit_session *s, const jit_model_info *info, uint64_t seed_of_walk, int steps, struct record *r)
{
	static const char *const stop[] = { " the", "\n" };
	const uint32_t vocab = (uint32_t)info->vocab;
	jit_error err = { 0 };
	int32_t ids[40];
	bool grammar = false, refused = false;

	seed = seed_of_walk;
	set_sampling(s, draw(5));
	for (uint32_t i = 0; i < 40; i++)
		ids[i] = (int32_t)draw(vocab);
	if (info->has_tokenizer)
		assert_int_equal(jit_session_set_stop(s, stop, 2, &err), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids, 1 + draw(40), &err), JIT_OK);
	for (int i = 0; i < steps; i++) {
		const uint32_t what = draw(40), length = (uint32_t)jit_session_length(s);
		if (what == 0 && length > 2) {
			assert_int_equal(jit_session_rewind(s, 1 + draw(length - 1), &err), JIT_OK);
			refused = !feed_some(s, ids, 1 + draw(3), grammar, r);
		} else if (what == 1 && length + 6 < CONTEXT) {
			const uint32_t first = draw(30);
			refused = !feed_some(s, ids + first, 1 + draw(6), grammar, r) && refused;
		} else if (what == 2) {
			set_sampling(s, draw(5));
		} else if (what == 3 && !grammar) { /* a feed computes in each case, jit_session_next may not */
			jit_session_cancel(s);
			assert_int_equal(jit_session_feed(s, ids, 1, &err), JIT_ERROR_CANCELLED);
			assert_int_equal(jit_session_feed(s, ids + 1, 1, &err), JIT_OK);
			refused = false;
		} else if (what == 4) {
			note_logits(r, s, vocab);
		} else if (what == 5 && info->has_tokenizer) {
			grammar = draw(3) > 0;
			set_grammar(s, grammar);
		} else {
			int32_t id = -1;
			int status = jit_session_next(s, &id, &err);
			note(r, &status, sizeof status);
			note(r, &id, sizeof id);
			if (status == JIT_OK && what < 12)
				note_logprobs(r, s);
			if (status == JIT_OK && info->has_tokenizer)
				note_text(r, s, id);
		}
	}
	note(r, jit_session_ids(s), jit_session_length(s) * sizeof(int32_t));
	r->stats = JIT_SESSION_STATS();
	assert_int_equal(jit_session_get_stats(s, &r->stats, &err), JIT_OK);
	r->draft = JIT_DRAFT_STATS();
	assert_int_equal(jit_session_get_draft_stats(s, &r->draft, &err), JIT_OK);
}

static jit_session *open_session(jit_model *m, int threads, int speculate, const jit_draft_options *draft)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m,
	                                  &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = threads, .batch = 24,
	                                                       .speculate = speculate, .draft = draft),
	                                  &err);

	if (!s)
		fail_msg("%s", err.message);
	return s;
}

/* Accepted in all, of tokens that a draft model proposed. */
static uint64_t accepted;

static void compare_walks(jit_model *m, jit_model *by, int threads, int speculate, uint64_t of_walk, int steps)
{
	static struct record want, got;
	jit_model_info info = JIT_MODEL_INFO();
	const jit_draft_options o = JIT_DRAFT_OPTIONS(.model = by, .kv = (int)(of_walk % 3),
	                                              .max = (int)(of_walk % 4) * 5, .min_p = of_walk % 5 ? 0 : 0.1f,
	                                              .min = of_walk % 7 ? 0 : 1, .context = of_walk % 2 ? 0 : 64);

	jit_model_get_info(m, &info, NULL);
	want.n = got.n = 0;
	jit_session *s = open_session(m, threads, JIT_SPECULATE_OFF, NULL);
	walk(s, &info, of_walk, steps, &want);
	jit_session_close(s);
	assert_int_equal(want.draft.requests, 0);
	s = open_session(m, threads, speculate, &o);
	walk(s, &info, of_walk, steps, &got);
	if (got.draft.trouble)
		fail_msg("walk %llu: %s", (unsigned long long)of_walk, got.draft.trouble);
	jit_session_close(s);
	if (got.n != want.n || memcmp(got.bytes, want.bytes, want.n) != 0)
		fail_msg("walk %llu, passes of %d, %d threads: another text", (unsigned long long)of_walk, speculate,
		         threads);
	const jit_draft_stats *t = &got.draft;
	assert_in_range(t->proposed, t->used, t->requests * (uint64_t)(o.max ? o.max : 15));
	assert_true(t->accepted <= t->used && t->used <= got.stats.drafted && t->accepted <= got.stats.accepted);
	assert_true((t->seconds > 0) == (t->requests > 0));
	assert_true(t->gain >= 0 && (t->requests || t->gain == 0));
	accepted += t->accepted;
}

static void compare_models(jit_model *m, jit_model *by, int walks, uint64_t min)
{
	static const int passes[] = { 4, 8, 16, JIT_SPECULATE_AUTO }, threads[] = { 1, 2, 7 };

	accepted = 0;
	for (int i = 0; i < walks; i++)
		compare_walks(m, by, threads[i % 3], passes[i % 4], 100 + (uint64_t)i, test_quick() ? 60 : 200);
	printf("# %llu tokens of the draft model were right\n", (unsigned long long)accepted);
	assert_true(accepted >= min);
}

/* The model itself, which is always right, and a copy that is opened apart. */
static void test_of_itself(void **state)
{
	char path[1024];
	(void)state;
	jit_model *m = open_model(source_path(path, "models/tale-q8_0.gguf")), *copy = open_model(path);

	compare_models(m, m, test_quick() ? 4 : 24, 60);
	compare_models(m, copy, test_quick() ? 2 : 12, 10);
	jit_model_close(copy);
	jit_model_close(m);
}

/* A small model that was made for it, and one that is as good as random. */
static void test_of_others(void **state)
{
	(void)state;
	jit_model *m = open_shared("models/tale-llama"), *by = open_shared("models/tale-llama-draft");

	if (!m || !by)
		skip();
	compare_models(m, by, test_quick() ? 4 : 24, 20);
	compare_models(by, m, test_quick() ? 2 : 8, 5);
	jit_model_close(by);
	jit_model_close(m);
}

/* Layers that keep a state, windows, experts: as models and as draft models. */
static void test_of_families(void **state)
{
	static const char *const pairs[][2] = {
		{ "golden/qwen3next-a", "golden/gptoss-a" },
		{ "golden/gptoss-a", "golden/qwen3next-a" },
		{ "golden/gemma3-a", "golden/lfm2moe-a" },
		{ "golden/lfm2moe-a", "golden/lfm2moe-a" },
		{ "golden/granitehybrid-a", "golden/granitehybrid-a" },
		{ "golden/gemma3-a", "golden/gemma3-a" }
	};
	(void)state;

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		jit_model *m = open_shared(pairs[i][0]), *by = open_shared(pairs[i][1]);
		if (!m || !by) {
			jit_model_close(m);
			jit_model_close(by);
			skip();
		}
		compare_models(m, by, test_quick() ? 1 : 8, strcmp(pairs[i][0], pairs[i][1]) ? 0 : 5);
		jit_model_close(by);
		jit_model_close(m);
	}
}

/* ---- in batches */

enum { OF_BATCH = 60, PROMPT = 9 };

static void take_steps(jit_batch *b, jit_session **s, int n)
{
	jit_error err = { 0 };
	int32_t id;
	size_t told;
	jit_session *ready[2];

	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, 2, &told, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < told; i++)
			if (jit_session_length(ready[i]) < OF_BATCH + (size_t)(ready[i] == s[n - 1] ? 30 : 0))
				assert_int_equal(jit_session_next(ready[i], &id, &err), JIT_OK);
	}
}

/* Two sessions, of which one goes on alone, against each by itself; the draft model is that of the batch. */
static void compare_batch(jit_model *m, jit_model *by, int speculate, const jit_sampling *sampling, int threads)
{
	const jit_draft_options o = JIT_DRAFT_OPTIONS(.model = by);
	const jit_batch_options bo =
		JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = threads, .speculate = speculate, .draft = &o);
	jit_draft_stats stats = JIT_DRAFT_STATS();
	jit_error err = { 0 };
	jit_session *s[2];
	int32_t prompt[2][PROMPT];

	jit_batch *b = jit_batch_open(m, &bo, &err);
	if (!b)
		fail_msg("%s", err.message);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < PROMPT; k++)
			prompt[i][k] = 20 + 13 * k + i;
		assert_non_null(s[i] = jit_batch_session(b, sampling, &err));
		assert_int_equal(jit_session_submit(s[i], prompt[i], PROMPT, NULL, &err), JIT_OK);
	}
	take_steps(b, s, 2);
	for (int i = 0; i < 2; i++) {
		jit_session *plain =
			jit_session_open(m,
		                         &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .sampling = sampling,
		                                              .speculate = JIT_SPECULATE_OFF),
		                         &err);
		int32_t id;
		assert_int_equal(jit_session_feed(plain, prompt[i], PROMPT, &err), JIT_OK);
		while (jit_session_length(plain) < jit_session_length(s[i]))
			assert_int_equal(jit_session_next(plain, &id, &err), JIT_OK);
		assert_memory_equal(jit_session_ids(plain), jit_session_ids(s[i]),
		                    jit_session_length(plain) * sizeof(int32_t));
		jit_session_close(plain);
	}
	assert_int_equal(jit_session_get_draft_stats(s[1], &stats, &err), JIT_OK);
	assert_null(stats.trouble);
	if (speculate > 0)
		assert_true(stats.accepted > 0);
	jit_session_close(s[0]);
	jit_session_close(s[1]);
	jit_batch_close(b);
}

static void test_batch(void **state)
{
	const jit_sampling drawn = JIT_SAMPLING(.temperature = 0.8f, .top_p = 0.9f, .seed = 4);
	char path[1024];
	jit_error err = { 0 };
	(void)state;
	jit_model *m = open_model(source_path(path, "models/tale-q8_0.gguf"));

	compare_batch(m, m, 4, NULL, 1);
	compare_batch(m, m, 8, &drawn, 2);
	compare_batch(m, m, JIT_SPECULATE_AUTO, &drawn, 1);
	assert_null(jit_batch_open(
		m, &JIT_BATCH_OPTIONS(.context = 16, .draft = &JIT_DRAFT_OPTIONS(.model = m, .max = 9)), &err));
	assert_non_null(strstr(err.message, "max: 9 tokens are more than half"));
	jit_model_close(m);
}

/* ---- what is refused */

static void refused(jit_model *m, const jit_draft_options *o, int context, const char *says)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = context, .threads = 1, .draft = o), &err);

	assert_null(s);
	if (err.code != JIT_ERROR_ARGUMENT || !strstr(err.message, says))
		fail_msg("\"%s\" is not about \"%s\"", err.message, says);
}

static void test_refused(void **state)
{
	char path[1024];
	(void)state;
	jit_model *m = open_model(source_path(path, "models/tale-q8_0.gguf"));

	refused(m, &JIT_DRAFT_OPTIONS(), 64, "its model is NULL");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .max = 15), 20, "max: 15 tokens are more than half");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .max = 9, .context = 16), 64, "max: 9 tokens are more than half");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .max = 4, .min = 5), 64, "min: 5 is not in 0..4");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .min = 12), 20, "min: 12 is not in 0..10");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .kv = 3), 64, "kv: 3 is not");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .min_p = 2), 64, "min_p: 2 is not");
	refused(m, &JIT_DRAFT_OPTIONS(.model = m, .reserved = 1), 64, "reserved: 1 is not 0");
	jit_model *other = open_shared("golden/llama-mha-f32");
	if (other)
		refused(m, &JIT_DRAFT_OPTIONS(.model = other), 64, "another vocabulary");
	jit_model_close(other);
	jit_model_close(m);
}

/* ---- when it is asked, on a clock of its own */

/* What a pass takes, in plain ones: so much more for each further token; what a token of the draft model takes; of how
 * many of its tokens it is right; how well it knows which. */
struct world {
	double cost, token, right;
	bool knows;
};

static double uniform(void) { return draw(1 << 20) / (double)(1 << 20); }

/* Seconds for a text without copies of so many tokens. */
static double decode(const struct world *w, uint32_t n, bool drafts, uint32_t prompt)
{
	static int32_t ids[4096];
	struct speculate s = { .mode = drafts ? SPECULATE_AUTO : SPECULATE_OFF,
		               .ask.o = { .on = drafts, .max = ASK_MAX } };
	const double plain = 1e-2;
	double clock = 0, prompt_token = plain / 8;

	for (uint32_t i = 0; i < prompt + n; i++)
		ids[i] = (int32_t)draw(1 << 30);
	assert_true(speculate_open(&s, ids, 4096));
	speculate_prompt_took(&s, prompt, prompt * prompt_token);
	uint32_t read = 0;
	for (uint32_t i = prompt; i < prompt + n; i++) {
		if (!drafts) {
			clock += plain;
			continue;
		}
		if (speculate_hit(&s, i, ids[i]))
			continue;
		const uint32_t wanted = speculate_wants(&s, i + 1, 16, NULL);
		if (wanted) {
			const uint32_t affords = speculate_affords(&s), behind = i + 1 - read;
			const uint32_t reads = read ? 1 : behind < affords ? behind : affords;
			const double before = read ? 0 : reads * w->token * prompt_token;
			double took = 0;
			bool more = true;
			for (uint32_t k = 1; more && k <= wanted; k++) {
				const bool right = uniform() < w->right;
				const double likely =
					w->knows ? (right ? 0.6 + 0.4 * uniform() : 0.5 * uniform()) : uniform();
				took += w->token * plain;
				more = speculate_offer(&s, right && i + k < prompt + n ? ids[i + k] : -1,
				                       (float)likely);
			}
			clock += took + before;
			speculate_offered(&s, took, read ? 0 : reads, before);
			read = i + 1;
		}
		const uint32_t tokens = speculate_next(&s, i + 1, 16)->tokens;
		const double took = plain * (1 + w->cost * (tokens - 1));
		clock += took;
		speculate_again(&s, 0);
		speculate_took(&s, took);
	}
	speculate_close(&s);
	return clock;
}

/* Never slower than 0.98 times plain, the prompt's time left out; and faster where it must be. */
static void test_clock(void **state)
{
	static const double costs[] = { 0.02, 0.1, 0.3, 0.9 }, tokens[] = { 0.02, 0.1, 0.3, 1 },
			    rights[] = { 0, 0.2, 0.4, 0.6, 0.8, 1 };
	double min_gain = 2;
	(void)state;

	seed = 3;
	for (int c = 0; c < 4; c++)
		for (int k = 0; k < 4; k++)
			for (int r = 0; r < 6; r++)
				for (int knows = 0; knows < 2; knows++) {
					const struct world w = { costs[c], tokens[k], rights[r], knows };
					const double gain = decode(&w, 600, false, 100) / decode(&w, 600, true, 100);
					min_gain = gain < min_gain ? gain : min_gain;
					if (gain < 0.98)
						fail_msg("%g a token, draft tokens %g, right %g, %d: gain %.3f", w.cost,
						         w.token, w.right, knows, gain);
				}
	const double much = decode(&(struct world){ 0.02, 0.02, 1, true }, 600, false, 100) /
	                    decode(&(struct world){ 0.02, 0.02, 1, true }, 600, true, 100);
	const double some = decode(&(struct world){ 0.05, 0.1, 0.61, true }, 600, false, 100) /
	                    decode(&(struct world){ 0.05, 0.1, 0.61, true }, 600, true, 100);
	printf("# least gain %.3f; %.2f where all are right, %.2f of a good draft model\n", min_gain, much, some);
	assert_true(much > 5 && some > 1.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_of_itself),   cmocka_unit_test(test_of_others),
		                            cmocka_unit_test(test_of_families), cmocka_unit_test(test_batch),
		                            cmocka_unit_test(test_refused),     cmocka_unit_test(test_clock) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
