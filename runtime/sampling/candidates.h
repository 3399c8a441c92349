/* runtime/sampling/candidates.h - the tokens that are left to choose from.
 *
 * Owns: the list, its order, and how the first of it are found without sorting all. The order is total: the greater
 * logit first, then the lower id, so that equal logits never depend on an algorithm. A list begins with every token in
 * the order of ids; each sampler works on what the one before left. Logits may be infinite, and never NaN.
 *
 * Sums: exponentials are floats, made in double precision (base/math_host.h). They are added in double precision, one
 * after another in the order of the list.
 */
#ifndef RUNTIME_SAMPLING_CANDIDATES_H
#define RUNTIME_SAMPLING_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct candidate_word;

struct candidates {
	int32_t n, room;
	int32_t *id;
	float *logit;
	float *p; /* probabilities, of the last sampler that made any; valid with has_p, else all are 0 */
	bool has_p;
	bool sorted;     /* the list is in order */
	int32_t changed; /* id[i] == i for all i from here on */
	float *key;      /* for sorting: ascending */
	struct candidate_word *word, *other;
};

bool candidates_open(struct candidates *c, int32_t room);
void candidates_close(struct candidates *c);

/* All tokens 0 .. n-1; n <= room. */
void candidates_load(struct candidates *c, const float *logits, int32_t n);
/* The same, and then candidates_keep_first(): of a few only they are copied. */
void candidates_load_first(struct candidates *c, const float *logits, int32_t n, int32_t k);
/* Whether entry i is token i, for all. */
bool candidates_all(const struct candidates *c);

/* The greatest logit; -inf when there are none. */
float candidates_max(const struct candidates *c);
/* Its first place. */
int32_t candidates_first_max(const struct candidates *c);

/* The first k in order stay, and come out sorted; k >= 1. */
void candidates_keep_first(struct candidates *c, int32_t k);
void candidates_sort(struct candidates *c);
/* Drops those below `min`; the others keep their order. */
void candidates_keep_from(struct candidates *c, float min);
/* In the order of key[], which the caller has filled (ascending, then the lower id): the shortest head whose
 * probabilities add up to `mass` or more (above: to more than it) and that has `min` of them stays, in that order.
 * Probabilities are there. */
void candidates_keep_mass(struct candidates *c, float mass, bool above, int32_t min);
/* Keys that make it the list's own order. */
void candidates_key_logits(struct candidates *c);
void candidates_drop_head(struct candidates *c, int32_t n);

/* p[i] = exp(logit[i] - max); returns their sum. */
double candidates_exp(struct candidates *c);
/* p becomes the softmax of the logits. Returns the logarithm of the sum behind it, so that ln p = logit - max -
 * that. */
double candidates_softmax(struct candidates *c);

#endif
