/* runtime/sampling/rules.h - what a model's own files say is not to be chosen behind some text.
 *
 * Owns: rows of tokens that come once (no_repeat_ngram_size), rows that do not come at all (bad_words_ids of several
 * tokens), and tokens that do not begin an answer (begin_suppress_tokens), as transformers has them. They depend on the
 * logits and the text alone, so that nothing is kept between tokens, and go before all samplers. Tokens that are never
 * chosen are the samplers' (sampling_set.c).
 */
#ifndef RUNTIME_SAMPLING_RULES_H
#define RUNTIME_SAMPLING_RULES_H

#include "loaders/model/model.h"

struct rules {
	const struct model_sampling *of; /* the model's */
	int32_t vocab;
	float *logits; /* room for them; NULL: no rule depends on the text */
};

bool rules_open(struct rules *r, const struct model_sampling *of, int32_t vocab);
void rules_close(struct rules *r);
/* *logits: those behind n tokens of a text; they become others, where a rule forbids a token. begins: the last token of
 * the text was fed, and not chosen. Allocates nothing. */
void rules_apply(struct rules *r, const float **logits, const int32_t *text, size_t n, bool begins);

#endif
