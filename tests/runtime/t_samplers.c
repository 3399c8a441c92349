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

#include "runtime/sampling/draws.h"
#include "runtime/sampling/dry.h"
#include "runtime/sampling/filters.h"
#include "runtime/sampling/penalties.h"
#include "tests/runtime/sampler_vectors.h"
#include "tests/support/shared.h"

/* One sampler of a case, and what it keeps between rounds. */
struct stage {
	const json_t *about;
	const char *kind;
	struct mt19937 draws;
	float mu;
	struct adaptive_state adaptive;
};

enum { STAGES = 12 };
static struct {
	struct candidates c;
	int32_t text[VECTOR_HISTORY], tally[VECTOR_TOKENS], same[VECTOR_HISTORY];
	size_t n_text;
	struct stage stage[STAGES];
	size_t n_stages;
	const float *input;
	int32_t n_input;
	double xtc_u; /* drawn in this round, -1: not */
} run;

static float number(const struct stage *s, const char *name) { return vector_number(s->about, name); }
static int32_t integer(const struct stage *s, const char *name) { return vector_integer(s->about, name); }

/* ---- the samplers */

static void apply_bias(const struct stage *s)
{
	struct logit_bias bias[8];
	const json_t *all = json_object_get(s->about, "bias");
	size_t n = json_array_size(all);

	assert_true(n <= 8);
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(all, i), *value = json_array_get(pair, 1);
		bias[i].id = (int32_t)json_integer_value(json_array_get(pair, 0));
		bias[i].bias = json_is_string(value) ? -INFINITY : (float)json_number_value(value);
	}
	penalties_bias(&run.c, bias, n);
}

static void apply_dry(const struct stage *s)
{
	static struct dry_breaker breaker[8];
	struct dry d = { .multiplier = number(s, "multiplier"),
		         .base = number(s, "base"),
		         .allowed = integer(s, "allowed_length"),
		         .window = integer(s, "last_n"),
		         .breaker = breaker,
		         .piece = vector_piece,
		         .same = run.same };
	const json_t *all = json_object_get(s->about, "breaker_tokens");

	d.n_breakers = (uint32_t)json_array_size(all);
	assert_true(d.n_breakers <= 8);
	for (size_t b = 0; b < d.n_breakers; b++) {
		const json_t *tokens = json_array_get(all, b);
		breaker[b].n = VECTOR_PIECE * (uint32_t)json_array_size(tokens);
		for (size_t i = 0, n; i < json_array_size(tokens); i++)
			memcpy(breaker[b].bytes + VECTOR_PIECE * i,
			       vector_piece(NULL, (int32_t)json_integer_value(json_array_get(tokens, i)), &n),
			       VECTOR_PIECE);
	}
	dry_apply(&run.c, &d, run.text, run.n_text, run.tally);
}

static void apply_xtc(struct stage *s)
{
	float p = number(s, "p"), t = number(s, "t");
	bool draws = p > 0 && !(t > 0.5f) && run.c.n > 1;

	run.xtc_u = draws ? mt19937_float(&s->draws) : -1;
	filter_xtc(&run.c, p, t, integer(s, "min_keep"), draws ? run.xtc_u : 0);
}

/* The engine draws no number when one candidate is left. */
static int32_t apply_draw(struct stage *s)
{
	struct mt19937 before = s->draws;
	const struct mirostat m =
		strncmp(s->kind, "mirostat", 8) ? (struct mirostat){ 0, 0 }
						: (struct mirostat){ number(s, "tau"), number(s, "eta") };
	double u = mt19937_double(&s->draws);
	int32_t chosen;

	if (strcmp(s->kind, "mirostat") == 0)
		chosen = draw_mirostat(&run.c, &m, integer(s, "m"), integer(s, "n_vocab"), u, &s->mu);
	else if (strcmp(s->kind, "mirostat_v2") == 0)
		chosen = draw_mirostat_v2(&run.c, &m, u, &s->mu);
	else if (strcmp(s->kind, "adaptive_p") == 0)
		chosen = draw_adaptive(&run.c, &(struct adaptive){ number(s, "target"), number(s, "decay") }, u,
		                       &s->adaptive);
	else
		chosen = draw_token(&run.c, u);
	if (run.c.n == 1)
		s->draws = before;
	return chosen;
}

/* Returns the place that was chosen, -1 from samplers that do not choose. */
static int32_t apply(struct stage *s)
{
	struct candidates *c = &run.c;
	const char *k = s->kind;

	if (strcmp(k, "temp") == 0)
		temperature_scale(c, number(s, "t"));
	else if (strcmp(k, "temp_ext") == 0)
		temperature_dynamic(c, number(s, "t"), number(s, "delta"), number(s, "exponent"));
	else if (strcmp(k, "top_k") == 0)
		filter_top_k(c, integer(s, "k"));
	else if (strcmp(k, "top_p") == 0)
		filter_top_p(c, number(s, "p"), integer(s, "min_keep"));
	else if (strcmp(k, "min_p") == 0)
		filter_min_p(c, number(s, "p"), integer(s, "min_keep"));
	else if (strcmp(k, "typical") == 0)
		filter_typical(c, number(s, "p"), integer(s, "min_keep"));
	else if (strcmp(k, "top_n_sigma") == 0)
		filter_top_n_sigma(c, number(s, "n"));
	else if (strcmp(k, "xtc") == 0)
		apply_xtc(s);
	else if (strcmp(k, "penalties") == 0)
		penalties_apply(c,
		                &(struct penalties){ number(s, "repeat"), number(s, "freq"), number(s, "present"),
		                                     integer(s, "last_n") },
		                run.text, run.n_text, run.tally);
	else if (strcmp(k, "dry") == 0)
		apply_dry(s);
	else if (strcmp(k, "logit_bias") == 0)
		apply_bias(s);
	else
		return strcmp(k, "greedy") == 0 ? draw_greedy(c) : apply_draw(s);
	return -1;
}

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
	float most = candidates_max(c), least = most;

	for (int32_t i = 0; i < c->n; i++)
		least = c->logit[i] < least ? c->logit[i] : least;
	if (strcmp(s->kind, "typical") == 0 && number(s, "p") < 1 && expf(least - most) == 0)
		return TYPICAL_OF_NAN;
	if (strcmp(s->kind, "top_k") == 0 && c->n > 128 && integer(s, "k") > 128 && most > 3e8f)
		return TOP_K_OVERFLOW;
	if (strcmp(s->kind, "mirostat") == 0 && (least == most || has_infinite(c->logit, c->n)))
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
	if (strcmp(s->kind, "temp_ext") == 0 && number(s, "delta") > 0 && before->n > 1) {
		double now = 0, low = fmax(0, (double)(number(s, "t") - number(s, "delta"))),
		       range = (double)(number(s, "t") + number(s, "delta")) - low;
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
	return fabs(sum - (double)number(s, "p")) < 1e-5;
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

static void begin(const json_t *c)
{
	const json_t *samplers = json_object_get(c, "samplers");

	run.n_stages = json_array_size(samplers);
	assert_true(run.n_stages <= STAGES);
	for (size_t i = 0; i < run.n_stages; i++) {
		struct stage *s = &run.stage[i];
		s->about = json_array_get(samplers, i);
		s->kind = json_string_value(json_object_get(s->about, "sampler"));
		if (json_object_get(s->about, "seed"))
			mt19937_seed(&s->draws, (uint32_t)json_integer_value(json_object_get(s->about, "seed")));
		if (strncmp(s->kind, "mirostat", 8) == 0)
			s->mu = mirostat_begin(&(struct mirostat){ number(s, "tau"), number(s, "eta") });
		if (strcmp(s->kind, "adaptive_p") == 0)
			s->adaptive = adaptive_begin(&(struct adaptive){ number(s, "target"), number(s, "decay") });
	}
}

static void accept_token(int32_t id)
{
	assert_true(run.n_text < VECTOR_HISTORY);
	run.text[run.n_text++] = id;
	for (size_t i = 0; i < run.n_stages; i++)
		if (strcmp(run.stage[i].kind, "adaptive_p") == 0)
			adaptive_accept(&(struct adaptive){ number(&run.stage[i], "target"),
			                                    number(&run.stage[i], "decay") },
			                &run.stage[i].adaptive, id);
}

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
		int32_t chosen = apply(&run.stage[i]);
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
		accept_token(before->id[before->selected]);
	return true;
}

static bool run_case(const json_t *c)
{
	const json_t *rounds = json_object_get(c, "rounds"), *draws = json_object_get(c, "draws");

	begin(c);
	for (size_t r = 0; r < json_array_size(rounds); r++) {
		if (!run_round(json_array_get(rounds, r)))
			return false;
		if (json_array_size(draws) && run.xtc_u != json_number_value(json_array_get(draws, r)))
			return differs("draw", (int32_t)r, json_number_value(json_array_get(draws, r)), run.xtc_u);
	}
	return true;
}

static void read_history(const json_t *histories, const json_t *name)
{
	const json_t *all = json_is_string(name) ? json_object_get(histories, json_string_value(name)) : NULL;

	run.n_text = json_array_size(all);
	assert_true(run.n_text + 16 < VECTOR_HISTORY);
	for (size_t i = 0; i < run.n_text; i++)
		run.text[i] = (int32_t)json_integer_value(json_array_get(all, i));
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
		read_history(json_object_get(all, "histories"), json_object_get(c, "history"));
		if (!run_case(c)) {
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
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
