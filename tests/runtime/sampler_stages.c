#include "tests/runtime/sampler_stages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/dry.h"
#include "runtime/sampling/filters.h"
#include "runtime/sampling/penalties.h"

struct vector_run run;

float stage_number(const struct stage *s, const char *name) { return vector_number(s->about, name); }
int32_t stage_integer(const struct stage *s, const char *name) { return vector_integer(s->about, name); }

/* ---- the samplers */

static void apply_bias(const struct stage *s)
{
	jit_logit_bias bias[8];
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
	struct dry d = { .multiplier = stage_number(s, "multiplier"),
		         .base = stage_number(s, "base"),
		         .allowed = stage_integer(s, "allowed_length"),
		         .window = stage_integer(s, "last_n"),
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
	float p = stage_number(s, "p"), t = stage_number(s, "t");
	bool draws = p > 0 && !(t > 0.5f) && run.c.n > 1;

	run.xtc_u = draws ? mt19937_float(&s->draws) : -1;
	filter_xtc(&run.c, p, t, stage_integer(s, "min_keep"), draws ? run.xtc_u : 0);
}

/* The engine draws no number when one candidate is left. */
static int32_t apply_draw(struct stage *s)
{
	struct mt19937 before = s->draws;
	const struct mirostat m =
		strncmp(s->kind, "mirostat", 8) ? (struct mirostat){ 0, 0 }
						: (struct mirostat){ stage_number(s, "tau"), stage_number(s, "eta") };
	double u = mt19937_double(&s->draws);
	int32_t chosen;

	if (strcmp(s->kind, "mirostat") == 0)
		chosen = draw_mirostat(&run.c, &m, stage_integer(s, "m"), stage_integer(s, "n_vocab"), u, &s->mu);
	else if (strcmp(s->kind, "mirostat_v2") == 0)
		chosen = draw_mirostat_v2(&run.c, &m, u, &s->mu);
	else if (strcmp(s->kind, "adaptive_p") == 0)
		chosen =
			draw_adaptive(&run.c, &(struct adaptive){ stage_number(s, "target"), stage_number(s, "decay") },
		                      u, &s->adaptive);
	else
		chosen = draw_token(&run.c, u);
	if (run.c.n == 1)
		s->draws = before;
	return chosen;
}

int32_t stage_apply(struct stage *s)
{
	struct candidates *c = &run.c;
	const char *k = s->kind;

	if (strcmp(k, "temp") == 0)
		temperature_scale(c, stage_number(s, "t"));
	else if (strcmp(k, "temp_ext") == 0)
		temperature_dynamic(c, stage_number(s, "t"), stage_number(s, "delta"), stage_number(s, "exponent"));
	else if (strcmp(k, "top_k") == 0)
		filter_top_k(c, stage_integer(s, "k"));
	else if (strcmp(k, "top_p") == 0)
		filter_top_p(c, stage_number(s, "p"), stage_integer(s, "min_keep"));
	else if (strcmp(k, "min_p") == 0)
		filter_min_p(c, stage_number(s, "p"), stage_integer(s, "min_keep"));
	else if (strcmp(k, "typical") == 0)
		filter_typical(c, stage_number(s, "p"), stage_integer(s, "min_keep"));
	else if (strcmp(k, "top_n_sigma") == 0)
		filter_top_n_sigma(c, stage_number(s, "n"));
	else if (strcmp(k, "xtc") == 0)
		apply_xtc(s);
	else if (strcmp(k, "penalties") == 0)
		penalties_apply(c,
		                &(struct penalties){ stage_number(s, "repeat"), stage_number(s, "freq"),
		                                     stage_number(s, "present"), stage_integer(s, "last_n") },
		                run.text, run.n_text, run.tally);
	else if (strcmp(k, "dry") == 0)
		apply_dry(s);
	else if (strcmp(k, "logit_bias") == 0)
		apply_bias(s);
	else
		return strcmp(k, "greedy") == 0 ? draw_greedy(c) : apply_draw(s);
	return -1;
}

void stages_begin(const json_t *c)
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
			s->mu = mirostat_begin(&(struct mirostat){ stage_number(s, "tau"), stage_number(s, "eta") });
		if (strcmp(s->kind, "adaptive_p") == 0)
			s->adaptive = adaptive_begin(
				&(struct adaptive){ stage_number(s, "target"), stage_number(s, "decay") });
	}
}

void stages_accept(int32_t id)
{
	assert_true(run.n_text < VECTOR_HISTORY);
	run.text[run.n_text++] = id;
	for (size_t i = 0; i < run.n_stages; i++)
		if (strcmp(run.stage[i].kind, "adaptive_p") == 0)
			adaptive_accept(&(struct adaptive){ stage_number(&run.stage[i], "target"),
			                                    stage_number(&run.stage[i], "decay") },
			                &run.stage[i].adaptive, id);
}
