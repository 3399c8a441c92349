/* tests/runtime/sampler_stages.h - one case of the sampler vectors while it runs: its samplers, called as the case
 * says. */
#ifndef TESTS_SAMPLER_STAGES_H
#define TESTS_SAMPLER_STAGES_H

#include "runtime/sampling/draws.h"
#include "tests/runtime/sampler_vectors.h"

/* One sampler of a case, and what it keeps between rounds. */
struct stage {
	const json_t *about;
	const char *kind;
	struct mt19937 draws;
	float mu;
	struct adaptive_state adaptive;
};

enum { STAGES = 12 };
struct vector_run {
	struct candidates c;
	int32_t text[VECTOR_HISTORY], tally[VECTOR_TOKENS], same[VECTOR_HISTORY];
	size_t n_text;
	struct stage stage[STAGES];
	size_t n_stages;
	const float *input;
	int32_t n_input;
	double xtc_u; /* drawn in this round, -1: not */
};
extern struct vector_run run;

float stage_number(const struct stage *s, const char *name);
int32_t stage_integer(const struct stage *s, const char *name);
/* Returns the place that was chosen, -1 from samplers that do not choose. */
int32_t stage_apply(struct stage *s);
/* The samplers of a case, before its first round; and the token that it goes on with. */
void stages_begin(const json_t *c);
void stages_accept(int32_t id);

#endif
