/* tests/runtime/sampler_vectors.h - the sampler vectors of the shared data: read, and run stage by stage. */
#ifndef TESTS_SAMPLER_VECTORS_H
#define TESTS_SAMPLER_VECTORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/sampling/candidates.h"

enum { VECTOR_TOKENS = 1500, VECTOR_HISTORY = 400 };

/* What a sampler left. */
struct vector_list {
	int32_t n, id[VECTOR_TOKENS];
	float logit[VECTOR_TOKENS], p[VECTOR_TOKENS];
	bool all, has_p, sorted;
	int32_t selected;
};

/* A JSON text in a gzip file; NULL when gzip is missing. */
json_t *vector_file(const char *path);
/* f32 bit patterns, big-endian hex, 8 digits each. */
void vector_floats(const char *hex, float *out, int32_t n);
float vector_number(const json_t *object, const char *name); /* "-inf" as text */
int32_t vector_integer(const json_t *object, const char *name);
/* A stage's list; input: the round's logits; before: the stage before, NULL for the first. */
void vector_stage(const json_t *stage, const float *input, int32_t n, const struct vector_list *before,
                  struct vector_list *out);
void vector_take(struct candidates *c, const struct vector_list *list);

/* The engine's generator (MT19937 of Matsumoto and Nishimura). */
struct mt19937 {
	uint32_t word[624];
	unsigned at;
};
void mt19937_seed(struct mt19937 *g, uint32_t seed);
double mt19937_float(struct mt19937 *g);  /* one word, rounded to a float below 1 */
double mt19937_double(struct mt19937 *g); /* two words, below 1 */

/* Pieces for token breakers: each token spells three bytes that can begin nowhere else. */
enum { VECTOR_PIECE = 3 };
const char *vector_piece(void *user, int32_t id, size_t *n);

#endif
