/* tests/runtime/t_samplers.c - every sampler against what llama.cpp's do to the same logits: 3 815 cases of the shared
 * data, stage by stage, each from the engine's own list before it.
 *
 * Ids and counts are compared exactly but for equal logits, whose order is an accident of the engine's sorting: one may
 * stand for another. Logits are compared to 2e-6, probabilities to 1.5e-5, which the engine's float sums over 1000
 * tokens need. What else may differ, and how often it does, is counted: see enum reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "runtime/sampling/chain.h"
#include "tests/runtime/sampler_stages.h"
#include "tests/support/shared.h"

/* ---- what may differ */

enum reason {
	ALIKE,
	/* Head of a mass: the engine's float sum and ours lie on both sides of the threshold, within 1e-5 of it. */
	ON_THE_EDGE,
	/* Typical: a token of probability 0 makes the engine's entropy and all its scores NaN, and what stays is what
	 * its sort makes of that. Here such tokens add nothing to the entropy and come last. */
	TYPICAL_OF_NAN,
	/* Top-k: the engine puts logits from 3.4e8 on into its lowest bucket, and so cuts off the greatest. */
	TOP_K_OVERFLOW,
	/* Mirostat 1: equal logits, or -inf among the first 100, end in a conversion of NaN or infinity that leaves
	 * one. */
	MIROSTAT_OF_NAN,
	/* Logit bias: the second entry for a token is lost where it does not lie at its own place; here biases add
	 * up. */
	BIAS_LOST,
	REASONS
};
static const char *const reasons[REASONS] = {
	"alike",
	"on the edge of a threshold",
	"typical with probabilities of 0",
	"top-k of huge logits",
	"mirostat 1 of equal or infinite logits",
	"repeated biases"
};
static const unsigned expected[REASONS] = { 10855, 60, 69, 10, 100, 15 };

static bool has_infinite(const float *x, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return true;
	return false;
}

/* Before the stage is run: whether the engine's answer is one of its accidents. */
static enum reason accident(const struct stage *s)
{
	const struct candidates *c = &run.c;
	float max = candidates_max(c), min = max;

	for (int32_t i = 0; i < c->n; i++)
		min = c->logit[i] < min ? c->logit[i] : min;
	if (strcmp(s->kind, "typical") == 0 && stage_number(s, "p") < 1 && expf(min - max) == 0)
		return TYPICAL_OF_NAN;
	if (strcmp(s->kind, "top_k") == 0 && c->n > 128 && stage_integer(s, "k") > 128 && max > 3e8f)
		return TOP_K_OVERFLOW;
	if (strcmp(s->kind, "mirostat") == 0 && (min == max || has_infinite(c->logit, c->n)))
		return MIROSTAT_OF_NAN;
	return strcmp(s->kind, "logit_bias") == 0 && !candidates_all(c) &&
	                       json_array_size(json_object_get(s->about, "bias")) == 2 &&
	                       json_equal(json_array_get(json_array_get(json_object_get(s->about, "bias"), 0), 0),
	                                  json_array_get(json_array_get(json_object_get(s->about, "bias"), 1), 0))
	               ? BIAS_LOST
	               : ALIKE;
}

/* ---- comparing */

static char why[300];

static bool differs(const char *what, int32_t at, double want, double got)
{
	snprintf(why, sizeof why, "%s %d: %.9g, not %.9g", what, at, got, want);
	return false;
}

static bool near_enough(double a, double b, double relative, double absolute)
{
	return a == b || fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + absolute;
}

static float logit_before(const struct vector_list *before, int32_t id)
{
	for (int32_t i = 0; i < before->n; i++)
		if (before->id[i] == id)
			return before->logit[i];
	fail_msg("id %d was not there", id);
	return 0;
}

struct tolerance {
	double logit, logit_absolute, p, p_by_surprise;
};

/* Dynamic temperature: the engine's entropy is a sum of floats, whose errors count most where there is little of it.
 * Ours may give another temperature, by 2e-5 of the range. */
static struct tolerance tolerance_of(const struct stage *s, const struct vector_list *before,
                                     const struct vector_list *want)
{
	struct tolerance t = { 2e-6, 0, 1.5e-5, 0 };

	if (strcmp(s->kind, "adaptive_p") == 0)
		t = (struct tolerance){ 2e-6, 5e-6, 4e-5, 0 };
	if (strcmp(s->kind, "temp_ext") == 0 && stage_number(s, "delta") > 0 && before->n > 1) {
		double now = 0, low = fmax(0, (double)(stage_number(s, "t") - stage_number(s, "delta"))),
		       range = (double)(stage_number(s, "t") + stage_number(s, "delta")) - low;
		for (int32_t i = 0; i < want->n && now == 0; i++)
			if (want->logit[i] != 0 && isfinite(want->logit[i]))
				now = (double)logit_before(before, want->id[i]) / (double)want->logit[i];
		t.p_by_surprise = now != 0 ? 2e-5 * range / now : 0;
		t.logit += t.p_by_surprise;
	}
	return t;
}

/* Whether the head was cut where the sum is nearly what is asked for. */
static bool on_the_edge(const struct stage *s, const struct vector_list *want)
{
	int32_t n = run.c.n < want->n ? run.c.n : want->n;
	double sum = 0;

	if (strcmp(s->kind, "top_p") != 0 && strcmp(s->kind, "typical") != 0)
		return false;
	for (int32_t i = 0; i < n; i++)
		sum += (double)want->p[i];
	return fabs(sum - (double)stage_number(s, "p")) < 1e-5;
}

/* Ours may hold another token with the logit that theirs had. */
static bool same_list(const struct stage *s, const struct vector_list *before, const struct vector_list *want,
                      int32_t chosen, enum reason *reason)
{
	const struct candidates *c = &run.c;
	const struct tolerance t = tolerance_of(s, before, want);
	int32_t n = c->n < want->n ? c->n : want->n;

	if (c->n != want->n && on_the_edge(s, want))
		*reason = ON_THE_EDGE;
	else if (c->n != want->n)
		return differs("n", 0, want->n, c->n);
	for (int32_t i = 0; i < n; i++) {
		double p = c->has_p ? (double)c->p[i] : 0, surprise = p > 0 ? -log(p) : 0;
		if (c->id[i] != want->id[i] && logit_before(before, c->id[i]) != logit_before(before, want->id[i]))
			return differs("id", i, want->id[i], c->id[i]);
		if (!near_enough((double)c->logit[i], (double)want->logit[i], t.logit, t.logit_absolute))
			return differs("logit", i, (double)want->logit[i], (double)c->logit[i]);
		if (!near_enough(p, (double)want->p[i], t.p + t.p_by_surprise * surprise, 1e-30))
			return differs("p", i, (double)want->p[i], p);
	}
	return chosen == want->selected || differs("selected", 0, want->selected, chosen);
}

/* ---- cases */

static unsigned differing[REASONS]; /* stages, by reason */

static bool run_round(const json_t *stages)
{
	static struct vector_list list[2], input;
	const struct vector_list *before = NULL;

	candidates_load(&run.c, run.input, run.n_input);
	input = (struct vector_list){ .n = run.n_input };
	for (int32_t i = 0; i < run.n_input; i++) {
		input.id[i] = i;
		input.logit[i] = run.input[i];
	}
	assert_int_equal(json_array_size(stages), run.n_stages);
	for (size_t i = 0; i < run.n_stages; i++) {
		struct vector_list *want = &list[i % 2];
		enum reason reason = accident(&run.stage[i]);
		vector_stage(json_array_get(stages, i), run.input, run.n_input, before, want);
		int32_t chosen = stage_apply(&run.stage[i]);
		if (chosen < 0 && before)
			chosen = before->selected;
		if (reason == ALIKE && !same_list(&run.stage[i], before ? before : &input, want, chosen, &reason)) {
			size_t n = strlen(why);
			snprintf(why + n, sizeof why - n, " (stage %zu, %s)", i, run.stage[i].kind);
			return false;
		}
		differing[reason]++;
		vector_take(&run.c, want);
		before = want;
	}
	if (before->selected >= 0)
		stages_accept(before->id[before->selected]);
	return true;
}

static bool run_case(const json_t *c)
{
	const json_t *rounds = json_object_get(c, "rounds"), *draws = json_object_get(c, "draws");

	stages_begin(c);
	for (size_t r = 0; r < json_array_size(rounds); r++) {
		if (!run_round(json_array_get(rounds, r)))
			return false;
		if (json_array_size(draws) && run.xtc_u != json_number_value(json_array_get(draws, r)))
			return differs("draw", (int32_t)r, json_number_value(json_array_get(draws, r)), run.xtc_u);
	}
	return true;
}

/* By name, or a list. */
static void read_history(const json_t *histories, const json_t *history)
{
	const json_t *all = json_is_string(history) ? json_object_get(histories, json_string_value(history)) : history;

	run.n_text = json_array_size(all);
	assert_true(run.n_text + 16 < VECTOR_HISTORY);
	for (size_t i = 0; i < run.n_text; i++)
		run.text[i] = (int32_t)json_integer_value(json_array_get(all, i));
}

/* ---- whole chains */

static struct chain_options read_options(void)
{
	static const char *const breakers[] = { "\xff\x01\x04" }; /* the only one there is: token 3 */
	const struct stage *s = run.stage;
	struct chain_options o = chain_usual;

	o.repeat_penalty = stage_number(&s[0], "repeat");
	o.frequency_penalty = stage_number(&s[0], "freq");
	o.presence_penalty = stage_number(&s[0], "present");
	o.repeat_window = stage_integer(&s[0], "last_n");
	o.dry_multiplier = stage_number(&s[1], "multiplier");
	o.dry_base = stage_number(&s[1], "base");
	o.dry_allowed_length = stage_integer(&s[1], "allowed_length");
	o.dry_window = stage_integer(&s[1], "last_n");
	o.dry_breakers = breakers;
	o.n_dry_breakers = json_array_size(json_object_get(s[1].about, "breaker_tokens")) == 1;
	o.top_n_sigma = stage_number(&s[2], "n");
	o.top_k = stage_integer(&s[3], "k");
	o.typical_p = stage_number(&s[4], "p");
	o.min_keep = stage_integer(&s[4], "min_keep");
	o.top_p = stage_number(&s[5], "p");
	o.min_p = stage_number(&s[6], "p");
	o.xtc_probability = stage_number(&s[7], "p");
	o.xtc_threshold = stage_number(&s[7], "t");
	o.temperature = stage_number(&s[8], "t");
	o.dynatemp_range = stage_number(&s[8], "delta");
	o.dynatemp_exponent = stage_number(&s[8], "exponent");
	return o;
}

/* The probability of a token in the last list; -1: it is not there. */
static float last_p(const struct vector_list *last, int32_t id)
{
	for (int32_t i = 0; i < last->n; i++)
		if (last->id[i] == id)
			return last->p[i];
	return -1;
}

static unsigned chains; /* that were compared */

/* The engine's chain and ours choose the same token, or one that was as likely. */
static void run_chain(const json_t *c, size_t number_of_case)
{
	static struct vector_list last;
	const json_t *rounds = json_object_get(c, "rounds");
	const struct chain_options o = read_options();
	struct error err = { 0 };
	struct chain *chain =
		chain_open(&o, run.n_input, VECTOR_HISTORY, (struct chain_pieces){ vector_piece, NULL }, &err);

	assert_non_null(chain);
	struct chain_state state = chain_begin(chain);
	for (size_t r = 0; r < json_array_size(rounds); r++) {
		const json_t *stages = json_array_get(rounds, r), *before_xtc = json_array_get(stages, 6);
		struct chain_draws u = { 0 };
		vector_stage(json_array_get(stages, run.n_stages - 1), run.input, run.n_input, NULL, &last);
		if (o.xtc_probability > 0 && vector_integer(before_xtc, "n") > 1)
			u.xtc = mt19937_float(&run.stage[7].draws);
		if (last.n > 1)
			u.token = mt19937_double(&run.stage[9].draws);
		int32_t want = last.id[last.selected],
			id = chain_choose(chain, run.input, run.text, run.n_text, u, &state);
		if (id != want && last_p(&last, id) != last_p(&last, want) && run.input[id] != run.input[want])
			fail_msg("case %zu, round %zu: token %d, not %d", number_of_case, r, id, want);
		run.text[run.n_text++] = want;
	}
	chain_close(chain);
}

/* The case by stages, and by our chain when all its stages were compared. */
static bool run_both(const json_t *histories, const json_t *c, size_t number_of_case)
{
	unsigned alike = differing[ALIKE];

	read_history(histories, json_object_get(c, "history"));
	if (!run_case(c))
		return false;
	if (strcmp(json_string_value(json_object_get(c, "group")), "chain") != 0 ||
	    differing[ALIKE] - alike < json_array_size(json_object_get(c, "rounds")) * run.n_stages)
		return true;
	read_history(histories, json_object_get(c, "history"));
	stages_begin(c);
	run_chain(c, number_of_case);
	chains++;
	return true;
}

/* ---- DRY with breakers as texts, over the vocabulary of a small model */

enum { PIECES = 512, PIECE_BYTES = 64 };
static struct {
	char bytes[PIECE_BYTES];
	size_t n;
} piece_of[PIECES];

static const char *real_piece(void *user, int32_t id, size_t *n)
{
	(void)user;
	*n = piece_of[id].n;
	return piece_of[id].bytes;
}

static void read_token_pieces(const json_t *pieces)
{
	assert_int_equal(json_array_size(pieces), PIECES);
	for (size_t i = 0; i < PIECES; i++) {
		const char *hex = json_string_value(json_array_get(pieces, i));
		piece_of[i].n = strlen(hex) / 2;
		assert_true(piece_of[i].n <= PIECE_BYTES);
		for (size_t b = 0; b < piece_of[i].n; b++) {
			char two[3] = { hex[2 * b], hex[2 * b + 1], 0 };
			piece_of[i].bytes[b] = (char)strtol(two, NULL, 16);
		}
	}
}

/* The logits, 0 before, that the engine changed, and by how much. */
static void penalised_there(const json_t *c, float logit[PIECES])
{
	const json_t *all = json_object_get(c, "penalised");

	memset(logit, 0, PIECES * sizeof *logit);
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *pair = json_array_get(all, i);
		vector_floats(json_string_value(json_array_get(pair, 1)),
		              &logit[json_integer_value(json_array_get(pair, 0))], 1);
	}
}

static void penalised_here(const json_t *c)
{
	static struct dry_breaker breaker[8];
	static int32_t tally[PIECES], same[VECTOR_HISTORY];
	static const float zero[PIECES];
	const json_t *params = json_object_get(c, "params"), *breakers = json_object_get(params, "breakers");
	struct dry d = { .multiplier = vector_number(params, "multiplier"),
		         .base = vector_number(params, "base"),
		         .allowed = vector_integer(params, "allowed_length"),
		         .window = vector_integer(params, "last_n"),
		         .breaker = breaker,
		         .piece = real_piece,
		         .same = same };

	for (size_t i = 0; i < json_array_size(breakers); i++) {
		const char *text = json_string_value(json_array_get(breakers, i));
		if (!*text)
			continue;
		breaker[d.n_breakers].n = (uint32_t)strlen(text);
		memcpy(breaker[d.n_breakers++].bytes, text, strlen(text));
	}
	read_history(c, json_object_get(c, "history"));
	candidates_load(&run.c, zero, PIECES);
	dry_apply(&run.c, &d, run.text, run.n_text, tally);
}

/* The engine spells tokens as if each began a text, so that one loses its space, and finds a breaker that reaches over
 * tokens by how its rest would be cut at the beginning of a text. It therefore misses breakers with a space and most
 * that are longer than a token, which here are found wherever the text has them. All else is alike.
 */
static void test_dry_vocabulary(void **state)
{
	char path[1024];
	unsigned alike = 0, other = 0;
	(void)state;

	if (!shared_path(path, "data/samplers/grammar.json.gz"))
		skip();
	json_t *all = vector_file(path), *cases = json_object_get(all, "dry_vocab");
	assert_true(candidates_open(&run.c, VECTOR_TOKENS));
	read_token_pieces(json_object_get(all, "pieces"));
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *c = json_array_get(cases, i);
		float want[PIECES];
		bool same = true;
		penalised_there(c, want);
		penalised_here(c);
		for (int32_t t = 0; t < PIECES; t++)
			same &= near_enough((double)run.c.logit[t], (double)want[t], 2e-6, 0);
		const char *breaker =
			json_string_value(json_array_get(json_object_get(json_object_get(c, "params"), "breakers"), 0));
		if (!same && !strchr(breaker, ' ') && strlen(breaker) < 2)
			fail_msg("case %zu: other tokens are penalised", i);
		alike += same;
		other += !same;
	}
	candidates_close(&run.c);
	json_decref(all);
	assert_int_equal(alike, 56);
	assert_int_equal(other, 14);
}

static void test_vectors(void **state)
{
	char path[1024];
	static float input[VECTOR_TOKENS];
	unsigned bad = 0;
	(void)state;

	if (!shared_path(path, "data/samplers/vectors.json.gz"))
		skip();
	json_t *all = vector_file(path), *cases = json_object_get(all, "cases");
	assert_true(json_array_size(cases) >= 3815);
	assert_true(candidates_open(&run.c, VECTOR_TOKENS));
	run.input = input;
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *c = json_array_get(cases, i);
		const char *logits = json_string_value(json_object_get(c, "logits")),
			   *group = json_string_value(json_object_get(c, "group"));
		const json_t *in = json_object_get(json_object_get(all, "logits"), logits);
		run.n_input = vector_integer(in, "n");
		vector_floats(json_string_value(json_object_get(in, "f32")), input, run.n_input);
		if (!run_both(json_object_get(all, "histories"), c, i)) {
			char *about = json_dumps(json_object_get(c, "samplers"), JSON_COMPACT | JSON_REAL_PRECISION(6));
			printf("# case %zu, %s of %s: %s; %.400s\n", i, group, logits, why, about);
			free(about);
			bad++;
		}
	}
	candidates_close(&run.c);
	json_decref(all);
	assert_int_equal(bad, 0);
	for (int r = 0; r < REASONS; r++)
		if (differing[r] != expected[r])
			fail_msg("%u stages, not %u: %s", differing[r], expected[r], reasons[r]);
	assert_int_equal(chains, 282);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors), cmocka_unit_test(test_dry_vocabulary) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
