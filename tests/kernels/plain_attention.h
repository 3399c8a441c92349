/* tests/kernels/plain_attention.h - norm, rotation, cache and attention as plain scalar loops, read straight off
 * kernels-templates/numerics.h.
 *
 * Owns: the expected values of those kernels' tests. Shares with them the contract's constants and nothing else: no
 * layout helper, no exp.
 */
#ifndef TESTS_PLAIN_ATTENTION_H
#define TESTS_PLAIN_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels-templates/templates.h"

float plain_exp(float x);
float plain_softplus(float x);
float plain_f16_to_f32(uint16_t h);
uint16_t plain_f32_to_f16(float x);

/* 1 / sqrt(mean of squares + eps). */
float plain_norm_scale(const float *x, unsigned n, float eps);
/* out and x have pad(k) elements; outq and outs may be NULL. */
void plain_norm(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight,
                unsigned k, float eps, bool centred);
/* The same, with a bias. */
void plain_norm_bias(float *out, int8_t *outq, struct activation_block *outs, const float *x, const float *weight,
                     const float *bias, unsigned k, float eps);

/* One head, without the attention scale; norm NULL: none. */
struct plain_angles {
	const float *cos, *sin, *norm;
	float eps;
	bool last; /* the norm stands behind the rotation */
};
void plain_rotate(float *out, const float *x, unsigned dims, const struct plain_angles *a);

/* A cache of one layer: F32, F16 or Q8_0. */
struct plain_cache {
	void *k, *v;
	enum dtype type;
	unsigned kv_heads, dims;
	uint64_t chunk_bytes; /* from a chunk of 128 positions to the next */
	bool octets;          /* laid out as template_kv_octets() says */
	float cap;            /* of scores; 0: none */
	const float *sinks;   /* of query heads; NULL: none */
	unsigned pages;       /* so many chunks lie one before the other, the last one first; 0: in their order */
	const float *slopes;  /* of query heads: what scores get for each position of distance; NULL: nothing */
};
/* Bytes of one head at one position. */
uint64_t plain_cache_row(enum dtype type, unsigned dims);
void plain_store(const struct plain_cache *c, unsigned head, uint64_t position, const float *key, const float *value);
/* The table of pages of so many chunks for kernels' PAGES, malloc'ed, whose addresses are PLAIN_KEYS before a chunk's
 * keys; and what VALUES is. */
enum { PLAIN_KEYS = 192 };
uint64_t *plain_pages(const struct plain_cache *c, unsigned chunks);
uint64_t plain_values(const struct plain_cache *c);
/* Fills one head's place at a position with bytes that make NaN of whatever uses it. */
void plain_spoil(const struct plain_cache *c, unsigned head, uint64_t position);

/* All query heads of one column at position; window 0: none. q and out: heads * dims. */
void plain_attention(float *out, const float *q, const struct plain_cache *c, unsigned heads, uint64_t position,
                     uint64_t window);
/* The same of a column that sees first..last; bias: of each head 2 * reach numbers, of which number j - column + reach
 * is added to the score of position j; NULL: none. */
struct plain_sight {
	uint64_t first, last, column;
	const float *bias;
	uint64_t reach;
};
void plain_attention_of(float *out, const float *q, const struct plain_cache *c, unsigned heads,
                        const struct plain_sight *sight);

#endif
