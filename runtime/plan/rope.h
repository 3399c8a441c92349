/* runtime/plan/rope.h - rotary frequencies and the cos/sin rows that rotation kernels read. Host code; no libm
 * (math_host.h). */
#ifndef RUNTIME_ROPE_H
#define RUNTIME_ROPE_H

#include "loaders/model/model.h"

/* Fills dims/2 frequencies, scaling applied; ROPE_LONG: with freq_factors. Returns the factor for cos and sin (1 but
 * for YaRN and ROPE_LONG). Sources: RoFormer (Su et al. 2021); position interpolation (Chen et al. 2023); YaRN (Peng et
 * al. 2023); llama3: as published with Llama 3.1; ROPE_LONG: LongRoPE (Ding et al. 2024). */
float rope_frequencies(float *inv_freq, const struct model_rope *r);

/* cos and sin rows [n][half] for positions pos0 .. pos0+n-1: angle = (float)position * inv_freq in f32, its cosine
 * rounded once, times factor. The pairs from `rotated` on do not rotate: 1 and 0. */
void rope_rows(float *cos, float *sin, const float *inv_freq, uint32_t half, uint32_t rotated, float factor,
               uint64_t pos0, uint32_t n);

/* The tables that a model's layers read: one, or ROPE_TABLES of them, each for all tokens of a pass, one behind the
 * other. Those by enum model_rotation, and one of queries that are scaled by position. */
enum { ROPE_TABLE_QUERIES = MODEL_ROTATIONS, ROPE_TABLES };
uint32_t rope_tables(const struct model_spec *s);
/* Pairs in a row of a table: half of a head's dimensions; of latent attention half of those that rotate, and one that
 * does not. */
uint32_t rope_half(const struct model_spec *s);

struct rope {
	uint32_t half, tables;           /* half: pairs of the largest head, by which tables lie apart */
	uint32_t row[ROTATION_NONE];     /* pairs of a token's row */
	uint32_t rotated[ROTATION_NONE]; /* pairs */
	float *inv_freq[ROTATION_NONE], factor[ROTATION_NONE];
	double query_scale;
	uint32_t query_scale_length, query_scale_offset;
	bool query_scale_still;
	uint8_t *part; /* of rotations of three parts: by which each pair rotates; NULL: there are none */
};
/* context: positions of the session, which decides between short and long factors. False: err. rope_close() is due in
 * any case. */
bool rope_open(struct rope *r, const struct model_spec *s, uint64_t context, struct error *err);
void rope_close(struct rope *r);
/* A checksum over what decides its tables, which goes on from `sum`. */
uint64_t rope_checksum(const struct rope *r, uint64_t sum);
/* Fills a token's row, where it has a position of each of the three parts. */
void rope_fill_three(const struct rope *r, float *cos, float *sin, uint32_t token, const uint64_t position[3]);
/* Fills n tokens' rows of all tables, each with room for `capacity` tokens, from token `first` on, for positions pos0
 * .. pos0+n-1. */
void rope_fill(const struct rope *r, float *cos, float *sin, uint32_t capacity, uint32_t first, uint64_t pos0,
               uint32_t n);

#endif
