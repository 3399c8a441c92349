/* kernels-templates/weights.c - the table of weight formats and what packing needs of every one.
 *
 * Owns: which types are supported, packed sizes, the turning of 32 rows into lanes. Knows nothing of a format but its struct weight_format.
 * Packing runs while a model loads, at memory speed: rows are read a cache line at a time, so that 32 rows a power of two apart do
 * not push each other out of the first-level cache.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/weight_format.h"

static const struct weight_format *const weight_formats[] = { &wf_f32, &wf_f16, &wf_bf16, &wf_q8_0 };

/* Kernels that read one row of the 32 may read this far past the last block; what they read there never reaches a result. */
enum { WEIGHT_SLACK = 128 };

const struct weight_format *weight_format_find(enum dtype t)
{
	for (size_t i = 0; i < sizeof weight_formats / sizeof weight_formats[0]; i++)
		if (weight_formats[i]->type == t)
			return weight_formats[i];
	return NULL;
}

bool weight_supported(enum dtype t)
{
	return weight_format_find(t) != NULL;
}

uint64_t weight_block_bytes(enum dtype t, uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	return numerics_pad(k) / f->unit_k * f->unit_bytes;
}

uint64_t weight_packed_bytes(enum dtype t, uint64_t rows, uint64_t k)
{
	return (rows + 31) / 32 * weight_block_bytes(t, k) + WEIGHT_SLACK;
}

enum dtype weight_default_activation(enum dtype t)
{
	const struct weight_format *f = weight_format_find(t);
	return f && f->dot_int8 ? DTYPE_Q8_0 : DTYPE_F32;
}

void weight_to_f32(enum dtype t, float *out, const void *row, uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	f->to_f32(out, row, k);
}

/* Rows of the last block that do not exist: packed from zeros, a stretch at a time, since a row may be of any length. */
static void pack_some(const struct weight_format *f, void *dst, const void *const row[32], uint64_t k)
{
	enum { STRETCH = 2048 };
	static const uint8_t zeros[STRETCH * 4];
	const struct dtype_facts *facts = &dtype_table[f->type];

	for (uint64_t at = 0; at < k; at += STRETCH) {
		const void *part[32];
		uint64_t n = k - at < STRETCH ? k - at : STRETCH;
		for (unsigned r = 0; r < 32; r++)
			part[r] = row[r] ? (const void *)((const uint8_t *)row[r] + at / facts->block * facts->bytes) : zeros;
		f->pack((uint8_t *)dst + at / f->unit_k * f->unit_bytes, part, n);
	}
}

void weight_pack_block(enum dtype t, void *dst, const void *const row[32], uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	for (unsigned r = 0; r < 32; r++)
		if (!row[r]) {
			pack_some(f, dst, row, k);
			return;
		}
	f->pack(dst, row, k);
}

typedef uint32_t weight_v4 __attribute__((vector_size(16)));
typedef uint16_t weight_v8 __attribute__((vector_size(16)));

void weight_turn_words(uint32_t *dst, const uint8_t *const row[32], unsigned n)
{
	for (unsigned r = 0; r < 32; r += 4)
		for (unsigned i = 0; i < n; i += 4) {
			weight_v4 a, b, c, d;
			memcpy(&a, row[r] + i * 4, 16);
			memcpy(&b, row[r + 1] + i * 4, 16);
			memcpy(&c, row[r + 2] + i * 4, 16);
			memcpy(&d, row[r + 3] + i * 4, 16);
			weight_v4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
			weight_v4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
			a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
			b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
			c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
			d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
			memcpy(dst + i * 32 + r, &a, 16);
			memcpy(dst + (i + 1) * 32 + r, &b, 16);
			memcpy(dst + (i + 2) * 32 + r, &c, 16);
			memcpy(dst + (i + 3) * 32 + r, &d, 16);
		}
}

void weight_turn_halves(uint16_t *dst, const uint8_t *const row[32], unsigned n)
{
	for (unsigned r = 0; r < 32; r += 8)
		for (unsigned i = 0; i < n; i += 8) {
			weight_v8 a[8], t[8];
			for (unsigned j = 0; j < 8; j++)
				memcpy(&a[j], row[r + j] + i * 2, 16);
			/* Three rounds that interleave vector j with vector j + 4 bring element e of vector j to element j of vector e. */
			for (unsigned round = 0; round < 3; round++) {
				for (unsigned j = 0; j < 4; j++) {
					t[2 * j] = __builtin_shufflevector(a[j], a[j + 4], 0, 8, 1, 9, 2, 10, 3, 11);
					t[2 * j + 1] = __builtin_shufflevector(a[j], a[j + 4], 4, 12, 5, 13, 6, 14, 7, 15);
				}
				memcpy(a, t, sizeof a);
			}
			for (unsigned j = 0; j < 8; j++)
				memcpy(dst + (i + j) * 32 + r, &a[j], 16);
		}
}

void weight_turn_rows(void *dst, const void *const row[32], uint64_t bytes, uint64_t padded_bytes, bool halves)
{
	enum { LINE = 64 };
	uint8_t last[32][LINE];
	const uint8_t *part[32];

	for (uint64_t at = 0; at < padded_bytes; at += LINE) {
		uint64_t left = bytes > at ? bytes - at : 0;
		if (left < LINE)
			memset(last, 0, sizeof last);
		for (unsigned r = 0; r < 32; r++) {
			part[r] = left < LINE ? last[r] : (const uint8_t *)row[r] + at;
			if (left < LINE && left > 0)
				memcpy(last[r], (const uint8_t *)row[r] + at, left);
		}
		/* A line of each row becomes 32 lines, whatever the lane size. */
		if (halves)
			weight_turn_halves((uint16_t *)((uint8_t *)dst + at * 32), part, LINE / 2);
		else
			weight_turn_words((uint32_t *)((uint8_t *)dst + at * 32), part, LINE / 4);
	}
}
