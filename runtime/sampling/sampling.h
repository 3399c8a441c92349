/* runtime/sampling/sampling.h - a session's choice of tokens.
 *
 * Owns: the random numbers, and the samplers' state by position. The random number for position p is a function of
 * (seed, p) alone, and the state before a position is kept: rewinding and choosing again gives the same token, however
 * the text was computed. Arithmetic is our own, so that a seed gives the same text on every machine.
 *
 * Where nothing but temperature, top-k, top-p, min-p and the repeat penalty is asked for, this file does it all
 * (filters in the order penalty, top-k, top-p, min-p, temperature, draw), and a seed gives the text that it always
 * gave. Everything else is a chain (chain.h).
 */
#ifndef RUNTIME_SAMPLING_H
#define RUNTIME_SAMPLING_H

#include <stdbool.h>
#include "include/jitrun.h"
#include "base/sampling_fields.h"
#include "runtime/sampling/chain.h"

struct sampling {
	jit_sampling params;
	int32_t vocab;
	const struct tokenizer *tokenizer; /* for what tokens spell; NULL: they spell nothing */
	char scratch[256];                 /* its */
	const int32_t *never;              /* tokens that are not chosen, whatever the parameters are */
	size_t n_never;
	float *work; /* vocab: logits after the penalty */
	struct sampling_candidate *candidate;
	double *weight;            /* vocab: while one is drawn */
	struct candidates first;   /* for the first of many */
	struct chain *chain;       /* NULL: none is used */
	struct chain_state *after; /* [context + 2]: [p + 1] is the state when position p was drawn and its token not
	                              accepted yet; NULL: the chain has none */
	size_t known;              /* after[] is, up to here */
	uint64_t gone;             /* tokens that were taken out of the text before, which had numbers, too */
	struct sampling_left {
		int32_t n, of; /* by params: candidate[of - 1], candidate[of - 2], ...; a chain has its list */
		int32_t only;  /* -1: drawn from several; else the token that was taken as the likeliest */
		double mass;   /* all weights together; 0: not added up yet */
	} left;                /* what the last choice was drawn from; n 0: nothing */
};

bool sampling_open(struct sampling *s, int32_t vocab);
void sampling_close(struct sampling *s);
/* From now on tokens are chosen as this says, which options.h has read. What it points to is copied. False: err, and
 * all is as it was. */
bool sampling_set(struct sampling *s, const jit_sampling *p, size_t context, struct error *err);
/* Whether they may be set, as far as no model is needed to tell. */
bool sampling_check(const jit_sampling *p, struct error *err);
/* What these parameters mean: with the value that stands for each 0. What it points to is theirs, or lives as long as
 * the program. */
jit_sampling sampling_told(const jit_sampling *p);
/* A field by its number. */
double sampling_value(const jit_sampling *p, enum sampling_field f);
void sampling_put(jit_sampling *p, enum sampling_field f, double value);
/* From now on tokens are chosen by this chain; o NULL: by params. Texts are of at most `context` tokens. False: err,
 * and all is as it was. */
bool sampling_use(struct sampling *s, const struct chain_options *o, size_t context, struct chain_pieces pieces,
                  struct error *err);
/* Tokens from position n on are forgotten. */
void sampling_rewind(struct sampling *s, size_t n);
/* From inside of a text of `before` tokens some were taken out, so that there are n: the next choice is the one that
 * would have come, by the tokens that are left. */
void sampling_shift(struct sampling *s, size_t before, size_t n);
/* Whether any token may be chosen by logits of which some are -infinity, and by the biases. */
bool sampling_any_left(struct sampling *s, const float *logits);
/* history: the tokens before this position (position of them). greatest: of each 32 logits, where that is known, which
 * are finite then; NULL: it is not. Allocates nothing. */
int32_t sampling_choose_knowing(struct sampling *s, const float *logits, const float *greatest, const int32_t *history,
                                size_t position);
static inline int32_t sampling_choose(struct sampling *s, const float *logits, const int32_t *history, size_t position)
{
	return sampling_choose_knowing(s, logits, NULL, history, position);
}
/* After it: this token was taken instead, whatever was drawn. */
void sampling_took(struct sampling *s, int32_t id);
/* After it: how many tokens it drew from, and the i-th of them with its probability; in no order. */
int32_t sampling_left(struct sampling *s);
int32_t sampling_left_at(const struct sampling *s, int32_t i, double *probability);

#endif
