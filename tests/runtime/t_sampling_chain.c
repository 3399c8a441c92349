/* tests/runtime/t_sampling_chain.c - chains: the text of an order, what options may be, that a chain is its samplers
 * one after another, and that its state can be saved, restored and rewound. Allocations fail on demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/filters.h"
#include "runtime/sampling/sampling.h"
#include "tests/support/no_memory.h"
#include "tests/support/shared.h"

enum { VOCAB = 500, CONTEXT = 300 };

static uint64_t seed = 1;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}
static double unit(void) { return draw(1u << 30) / (double)(1u << 30); }

/* The logits after a text: of its last two tokens, so that texts repeat themselves. */
static const float *logits_after(const int32_t *text, size_t n)
{
	static float logits[VOCAB];
	uint64_t kept = seed;

	seed = n > 1 ? (uint64_t)(text[n - 1] % 7 * 31 + text[n - 2] % 3) : 0;
	for (int32_t i = 0; i < VOCAB; i++) {
		double a = 6 * unit();
		logits[i] = (float)(a * unit());
	}
	seed = kept;
	return logits;
}

/* ---- choices */

/* Letters for DRY's breakers. */
static const char *spell(void *user, int32_t id, size_t *n)
{
	static char letter;

	*(unsigned *)user += 1;
	letter = (char)('a' + id % 26);
	*n = 1;
	return &letter;
}
static unsigned spelled;
static const struct chain_pieces pieces = { spell, &spelled };

static struct chain_options random_options(void)
{
	static const char *const breakers[] = { "a", "bc" };
	static const jit_logit_bias bias[] = { { 5, 2 }, { 9, -INFINITY } };
	struct chain_options o = chain_usual;

	o.temperature = draw(6) ? (float)(0.2 + unit()) : 0;
	o.dynatemp_range = draw(3) ? 0 : 0.1f;
	o.top_k = draw(2) ? (int32_t)draw(60) : 0;
	o.top_p = draw(2) ? 1 : (float)unit();
	o.typical_p = draw(2) ? 1 : (float)unit();
	o.min_p = draw(2) ? 0 : (float)unit();
	o.top_n_sigma = draw(3) ? 0 : (float)(2 * unit());
	o.xtc_probability = draw(2) ? 0 : 0.5f;
	o.repeat_penalty = draw(2) ? 1 : 1.2f;
	o.presence_penalty = draw(2) ? 0 : 0.3f;
	o.repeat_window = (int32_t)draw(80) - 1;
	o.dry_multiplier = draw(2) ? 0 : 0.8f;
	o.dry_window = (int32_t)draw(100) - 1;
	o.dry_breakers = breakers;
	o.n_dry_breakers = (int32_t)draw(3);
	o.mirostat = draw(4) ? 0 : 1 + (int32_t)draw(2);
	o.adaptive_target = o.mirostat || draw(2) ? -1 : 0.3f;
	o.logit_bias = bias;
	o.n_logit_bias = (int32_t)draw(3);
	return o;
}

/* The same samplers, called by hand, in the usual order. Without DRY, mirostat and adaptive-p. */
static int32_t by_hand(const struct chain_options *o, struct candidates *l, const float *logits, const int32_t *text,
                       size_t n, struct chain_draws u)
{
	static int32_t tally[VOCAB];
	const struct penalties p = { o->repeat_penalty, o->frequency_penalty, o->presence_penalty,
		                     o->repeat_window < 0 ? CONTEXT : o->repeat_window };

	candidates_load(l, logits, VOCAB);
	penalties_bias(l, o->logit_bias, (size_t)o->n_logit_bias);
	penalties_apply(l, &p, text, n, tally);
	filter_top_n_sigma(l, o->top_n_sigma);
	filter_top_k(l, o->top_k);
	filter_typical(l, o->typical_p, o->min_keep);
	filter_top_p(l, o->top_p, o->min_keep);
	filter_min_p(l, o->min_p, o->min_keep);
	filter_xtc(l, o->xtc_probability, o->xtc_threshold, o->min_keep, u.xtc);
	if (!(o->temperature > 0))
		return l->id[draw_greedy(l)];
	temperature_dynamic(l, o->temperature, o->dynatemp_range, o->dynatemp_exponent);
	return l->id[draw_token(l, u.token)];
}

/* Many of them equal. */
static const float *with_ties(const float *logits)
{
	static float tied[VOCAB];

	for (int32_t i = 0; i < VOCAB; i++)
		tied[i] = floorf(4 * logits[i]) / 4;
	return tied;
}

static void same_list(const struct candidates *a, const struct candidates *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->id, b->id, (size_t)a->n * sizeof *a->id);
	assert_memory_equal(a->logit, b->logit, (size_t)a->n * sizeof *a->logit);
	assert_memory_equal(a->p, b->p, (size_t)a->n * sizeof *a->p);
}

static void test_by_hand(void **state)
{
	jit_logit_bias lower[40];
	struct candidates list;
	int32_t text[CONTEXT];
	(void)state;

	for (int32_t i = 0; i < 40; i++)
		lower[i] = (jit_logit_bias){ 9 + i, i ? -0.5f : -INFINITY };
	assert_true(candidates_open(&list, VOCAB));
	for (int run = 0; run < 120; run++) {
		struct chain_options o = random_options();
		struct error err = { 0 };
		o.dry_multiplier = 0;
		o.mirostat = 0;
		o.adaptive_target = -1;
		if (run % 4 == 3) { /* the likeliest, whatever is dropped behind it */
			o.temperature = 0;
			o.repeat_window = 0;
		}
		if (run % 8 > 3) { /* and biases that only lower */
			o.logit_bias = lower;
			o.n_logit_bias = 20 * (run % 3);
		}
		struct chain *c = chain_open(&o, VOCAB, CONTEXT, pieces, &err);
		assert_non_null(c);
		struct chain_state s = chain_begin(c);
		for (size_t n = 0; n < 60; n++) {
			const struct chain_draws u = { unit(), unit() };
			const float *logits = logits_after(text, n);
			logits = run % 2 ? with_ties(logits) : logits;
			text[n] = chain_choose(c, logits, text, n, u, &s);
			assert_int_equal(text[n], by_hand(&o, &list, logits, text, n, u));
			if (!chain_is_greedy(c))
				same_list(chain_list(c), &list);
			assert_false(o.n_logit_bias > 1 && text[n] == 9);
		}
		chain_close(c);
	}
	candidates_close(&list);
}

/* The order is what the text says: top-p before and after the temperature keep other tokens. */
static void test_order_matters(void **state)
{
	static const char *const orders[] = { "top_p;temperature", "temperature;top_p", "temperature" };
	static const int max[] = {
		2, 3, 4
	}; /* of 4 tokens with 0.5, 0.3, 0.15, 0.05 at temperature 1, those that are left */
	const float logits[] = { logf(0.5f), logf(0.3f), logf(0.15f), logf(0.05f) };
	(void)state;

	for (int i = 0; i < 3; i++) {
		struct chain_options o = chain_usual;
		struct error err = { 0 };
		int32_t greatest = 0;
		o.samplers = orders[i];
		o.temperature = 3;
		o.top_p = 0.7f;
		struct chain *c = chain_open(&o, 4, 8, pieces, &err);
		struct chain_state s = chain_begin(c);
		for (int k = 0; k < 200; k++) {
			int32_t id = chain_choose(c, logits, NULL, 0, (struct chain_draws){ 0, k / 200.0 }, &s);
			greatest = id > greatest ? id : greatest;
		}
		assert_int_equal(greatest + 1, max[i]);
		chain_close(c);
	}
}

/* ---- state */

struct text {
	int32_t id[CONTEXT + 1];
};

/* Writes a text; at some places tokens are fed instead, or the last ones are taken back and chosen once more. */
static void write_text(const struct chain_options *o, struct text *t, bool rewinds)
{
	struct sampling s = { .params = { .seed = 7 } };
	struct error err = { 0 };
	size_t back = 0;

	assert_true(sampling_open(&s, VOCAB) && sampling_use(&s, o, CONTEXT, pieces, &err));
	for (size_t n = 0; n <= CONTEXT; n++) {
		t->id[n] =
			n % 50 < 5 ? (int32_t)(n * 7 % VOCAB) : sampling_choose(&s, logits_after(t->id, n), t->id, n);
		if (rewinds && n % 37 == 30 && back++ % 2 == 0) {
			size_t to = n - n % 30;
			struct text before = *t;
			for (size_t i = to; i <= n; i++)
				t->id[i] = -1; /* nobody may look at them */
			sampling_rewind(&s, to);
			for (size_t i = to; i <= n; i++) {
				t->id[i] = i % 50 < 5 ? (int32_t)(i * 7 % VOCAB)
				                      : sampling_choose(&s, logits_after(t->id, i), t->id, i);
				assert_int_equal(t->id[i], before.id[i]);
			}
		}
	}
	sampling_close(&s);
}

static void test_rewind(void **state)
{
	(void)state;
	for (int run = 0; run < (test_quick() ? 12 : 60); run++) {
		static struct text plain, rewound;
		struct chain_options o = random_options();
		if (run % 3 == 0)
			o.mirostat = 2, o.adaptive_target = -1, o.temperature = 1;
		if (run % 3 == 1)
			o.mirostat = 0, o.adaptive_target = 0.2f, o.temperature = 1;
		write_text(&o, &plain, false);
		write_text(&o, &rewound, true);
		assert_memory_equal(&plain, &rewound, sizeof plain);
	}
}

/* Chooses tokens `from` .. `to`-1 of a text. */
static void go_on(struct sampling *s, int32_t *text, size_t from, size_t to)
{
	for (size_t n = from; n < to; n++)
		text[n] = sampling_choose(s, logits_after(text, n), text, n);
}

/* A text that is taken back and goes on with other tokens is chosen as if it had been that one from the first. */
static void test_another_way(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct chain_options o = chain_usual;
		struct error err = { 0 };
		int32_t text[2][CONTEXT];
		o.temperature = 1;
		o.mirostat = kind;
		o.mirostat_eta = 0.7f;
		o.adaptive_target = kind ? -1 : 0.1f;
		for (int detour = 0; detour < 2; detour++) {
			struct sampling s = { .params = { .seed = 7 } };
			assert_true(sampling_open(&s, VOCAB) && sampling_use(&s, &o, CONTEXT, pieces, &err));
			go_on(&s, text[detour], 0, detour ? 150 : 50);
			sampling_rewind(&s, 50);
			for (size_t n = 50; n < 60; n++)
				text[detour][n] = (int32_t)n;
			go_on(&s, text[detour], 60, CONTEXT);
			sampling_close(&s);
		}
		assert_memory_equal(text[0], text[1], sizeof *text);
	}
}

/* A copy of the state is the state: going on from it gives the same tokens; without it, others. */
static void test_saved_state(void **state)
{
	struct error err = { 0 };
	int differ = 0;
	(void)state;

	for (int kind = 0; kind < 3; kind++) {
		struct chain_options o = chain_usual;
		int32_t text[200], again[200];
		o.temperature = 1;
		if (kind < 2) {
			o.mirostat = 1 + kind;
			o.mirostat_tau = 2;
			o.mirostat_eta = 0.5f;
		} else {
			o.adaptive_target = 0.1f;
		}
		struct chain *c = chain_open(&o, VOCAB, CONTEXT, pieces, &err);
		assert_true(chain_has_state(c));
		struct chain_state now = chain_begin(c), saved = now, begun = now;
		for (size_t n = 0; n < 200; n++) {
			if (n == 100)
				saved = now;
			text[n] = chain_choose(c, logits_after(text, n), text, n,
			                       (struct chain_draws){ 0, (double)(n * 37 % 100) / 100 }, &now);
			chain_accept(c, &now, text[n]);
		}
		for (int with = 0; with < 2; with++) {
			now = with ? saved : begun;
			memcpy(again, text, sizeof again);
			for (size_t n = 100; n < 200; n++) {
				again[n] = chain_choose(c, logits_after(again, n), again, n,
				                        (struct chain_draws){ 0, (double)(n * 37 % 100) / 100 }, &now);
				chain_accept(c, &now, again[n]);
			}
			if (with)
				assert_memory_equal(text, again, sizeof text);
			else
				differ += memcmp(text, again, sizeof text) != 0;
		}
		chain_close(c);
	}
	assert_int_equal(differ, 3);
}

static void hash(uint64_t *h, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*h = (*h ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
}

/* The same tokens and the same bits of state, whatever compiler, C library and machine: seen once and written down. */
static void test_same_everywhere(void **state)
{
	uint64_t h = 0xcbf29ce484222325ull;
	struct error err = { 0 };
	(void)state;

	seed = 2026;
	for (int run = 0; run < 40; run++) {
		const struct chain_options o = random_options();
		int32_t text[80];
		struct chain *c = chain_open(&o, VOCAB, CONTEXT, pieces, &err);
		struct chain_state s = chain_begin(c);
		for (size_t n = 0; n < 80; n++) {
			struct chain_draws u;
			u.xtc = unit();
			u.token = unit();
			text[n] = chain_choose(c, logits_after(text, n), text, n, u, &s);
			chain_accept(c, &s, text[n]);
			hash(&h, &text[n], sizeof text[n]);
			hash(&h, &s.mu, sizeof s.mu);
			hash(&h, &s.adaptive.sum, sizeof s.adaptive.sum);
		}
		chain_close(c);
	}
	if (h != 0x07e69ad05a8713feull)
		fail_msg("%016llx", (unsigned long long)h);
}

/* Without a chain, and with one that was taken away again, tokens are those that options alone choose. */
static void test_taken_away(void **state)
{
	struct sampling a = { .params = { .temperature = 1, .top_k = 40, .seed = 3 } }, b = a;
	struct error err = { 0 };
	struct chain_options o = chain_usual;
	int32_t text[100];
	(void)state;

	o.temperature = 1;
	assert_true(sampling_open(&a, VOCAB) && sampling_open(&b, VOCAB));
	assert_true(sampling_use(&b, &o, CONTEXT, pieces, &err));
	o.top_p = NAN;
	assert_false(sampling_use(&b, &o, CONTEXT, pieces, &err)); /* and the old one stays */
	assert_non_null(b.chain);
	assert_true(sampling_use(&b, NULL, CONTEXT, pieces, &err));
	for (size_t n = 0; n < 100; n++) {
		const float *l = logits_after(text, n);
		text[n] = sampling_choose(&a, l, text, n);
		assert_int_equal(sampling_choose(&b, l, text, n), text[n]);
	}
	sampling_close(&a);
	sampling_close(&b);
}

/* ---- memory */

static void test_memory(void **state)
{
	struct sampling s = { 0 };
	struct error err = { 0 };
	(void)state;

	assert_true(sampling_open(&s, VOCAB));
	for (unsigned fails = 1;; fails++) {
		struct chain_options o = random_options();
		o.mirostat = 2;
		o.adaptive_target = -1;
		o.dry_multiplier = 1;
		o.dry_window = 50;
		o.n_dry_breakers = o.n_logit_bias = 2;
		err = (struct error){ 0 };
		memory_fail(fails);
		bool ok = sampling_use(&s, &o, CONTEXT, pieces, &err);
		memory_fail(0);
		assert_int_equal(ok, err.code == ERROR_NONE);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_MEMORY);
		assert_true(strncmp(err.text, "no memory for the samplers", 26) == 0);
		assert_true(fails < 50);
	}
	memory_fail(1); /* and choosing asks for none */
	sampling_choose(&s, logits_after(NULL, 0), NULL, 0);
	assert_int_equal(memory_requests, 0);
	memory_fail(0);
	sampling_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_order_matters),
		                            cmocka_unit_test(test_rewind),      cmocka_unit_test(test_another_way),
		                            cmocka_unit_test(test_saved_state), cmocka_unit_test(test_same_everywhere),
		                            cmocka_unit_test(test_taken_away),  cmocka_unit_test(test_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
