/* kernels-templates/formats/weights.c - the table of weight formats and what packing needs of every one.
 *
 * Owns: which types are supported, packed sizes, the turning of 32 rows into lanes. Knows nothing of a format but its
 * struct weight_format. Packing runs while a model loads, at memory speed: rows are read a cache line at a time, so
 * that 32 rows a power of two apart do not push each other out of the first-level cache.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_vectors.h"

static const struct weight_format *const weight_formats[] = {
#define X(name) &wf_##name,
	WEIGHT_FORMATS(X)
#undef X
};

/* Kernels that read one row of the 32 may read this far past the last block; what they read there never reaches a
 * result. */
enum { WEIGHT_SLACK = 512 };

const struct weight_format *weight_format_find(enum dtype t)
{
	for (size_t i = 0; i < sizeof weight_formats / sizeof weight_formats[0]; i++)
		if (weight_formats[i]->type == t)
			return weight_formats[i];
	return NULL;
}

bool weight_supported(enum dtype t) { return weight_format_find(t) != NULL; }

const struct weight_format *weight_format_for(enum dtype t, enum dtype activation)
{
	return activation == DTYPE_BF16 ? t == DTYPE_BF16 ? &wf_bf16_dot2 : NULL : weight_format_find(t);
}

uint64_t weight_run_bytes(const struct weight_format *f, uint64_t k)
{
	uint64_t units = k / f->unit_k;
	return units * f->unit_bytes + (f->head_bytes ? units / f->head_units * f->head_bytes : 0);
}

uint64_t weight_block_bytes(enum dtype t, enum weight_layout layout, uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	return layout == WEIGHT_LANE_CONTIGUOUS ? weight_vectors_bytes(f, numerics_pad(k))
	                                        : weight_run_bytes(f, numerics_pad(k));
}

uint64_t weight_packed_bytes(enum dtype t, enum weight_layout layout, uint64_t rows, uint64_t k)
{
	return (rows + 31) / 32 * weight_block_bytes(t, layout, k) + WEIGHT_SLACK;
}

enum dtype weight_default_activation(enum dtype t)
{
	const struct weight_format *f = weight_format_find(t);
	return f && weight_has_int8(f) ? DTYPE_Q8_0 : DTYPE_F32;
}

void weight_to_f32(enum dtype t, float *out, const void *row, uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	f->to_f32(out, row, k);
}

enum { STRETCH = 2048 };

void weight_part(const struct weight_format *f, const void *const row[32], uint64_t from, uint64_t n, uint8_t *copies,
                 const void *part[32])
{
	static const uint8_t zeros[STRETCH * 4];
	const struct dtype_facts *facts = &dtype_table[f->type];
	const uint64_t at = from / facts->block * facts->bytes, bytes = n / facts->block * facts->bytes;

	assert(!facts->row || facts->row + bytes <= WEIGHT_PART_BYTES);
	for (unsigned r = 0; r < 32; r++) {
		const uint8_t *whole = row[r];
		part[r] = whole ? whole + at : zeros;
		if (!whole || !facts->row)
			continue;
		uint8_t *copy = copies + r * WEIGHT_PART_BYTES;
		memcpy(copy, whole, facts->row);
		memcpy(copy + facts->row, whole + facts->row + at, bytes);
		part[r] = copy;
	}
}

/* Rows of the last block that do not exist: packed from zeros, a stretch at a time, since a row may be of any
 * length. */
static void pack_some(const struct weight_format *f, void *dst, const void *const row[32], uint64_t k)
{
	const uint64_t stretch = dtype_table[f->type].row ? 256 : STRETCH;
	uint8_t copies[32 * WEIGHT_PART_BYTES];

	for (uint64_t at = 0; at < k; at += stretch) {
		const void *part[32];
		uint64_t n = k - at < stretch ? k - at : stretch;
		weight_part(f, row, at, n, copies, part);
		f->pack((uint8_t *)dst + weight_run_bytes(f, at), part, n);
	}
}

void weight_pack_block(enum dtype t, enum weight_layout layout, void *dst, const void *const row[32], uint64_t k)
{
	const struct weight_format *f = weight_format_find(t);
	assert(f && k % dtype_table[t].block == 0);
	if (layout == WEIGHT_LANE_CONTIGUOUS) {
		weight_vectors_pack(f, dst, row, k);
		return;
	}
	for (unsigned r = 0; r < 32; r++)
		if (!row[r]) {
			pack_some(f, dst, row, k);
			return;
		}
	f->pack(dst, row, k);
}

typedef uint32_t weight_v4 __attribute__((vector_size(16)));
typedef uint16_t weight_v8 __attribute__((vector_size(16)));

void weight_transpose_words(uint32_t *dst, const uint8_t *const row[32], unsigned n)
{
	for (unsigned r = 0; r < 32; r += 4)
		for (unsigned i = 0; i < n; i += 4) {
			weight_v4 a, b, c, d;
			memcpy(&a, row[r] + i * 4, 16);
			memcpy(&b, row[r + 1] + i * 4, 16);
			memcpy(&c, row[r + 2] + i * 4, 16);
			memcpy(&d, row[r + 3] + i * 4, 16);
			weight_v4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
				  ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
			weight_v4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
				  cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
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

void weight_transpose_halves(uint16_t *dst, const uint8_t *const row[32], unsigned n)
{
	for (unsigned r = 0; r < 32; r += 8)
		for (unsigned i = 0; i < n; i += 8) {
			weight_v8 a[8], t[8];
			for (unsigned j = 0; j < 8; j++)
				memcpy(&a[j], row[r + j] + i * 2, 16);
			/* Three rounds that interleave vector j with vector j + 4 move element e of vector j to
			 * element j of vector e. */
			for (unsigned round = 0; round < 3; round++) {
				for (unsigned j = 0; j < 4; j++) {
					t[2 * j] = __builtin_shufflevector(a[j], a[j + 4], 0, 8, 1, 9, 2, 10, 3, 11);
					t[2 * j + 1] =
						__builtin_shufflevector(a[j], a[j + 4], 4, 12, 5, 13, 6, 14, 7, 15);
				}
				memcpy(a, t, sizeof a);
			}
			for (unsigned j = 0; j < 8; j++)
				memcpy(dst + (i + j) * 32 + r, &a[j], 16);
		}
}

void weight_transpose_rows(void *dst, const void *const row[32], uint64_t bytes, uint64_t padded_bytes, bool halves)
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
			weight_transpose_halves((uint16_t *)((uint8_t *)dst + at * 32), part, LINE / 2);
		else
			weight_transpose_words((uint32_t *)((uint8_t *)dst + at * 32), part, LINE / 4);
	}
}

void weight_join_nibbles(uint32_t *dst, const uint32_t *src, unsigned shift)
{
	for (unsigned i = 0; i < 4 * 32; i++)
		dst[i] = (src[i] >> shift & 0x0f0f0f0f) | (src[i + 4 * 32] >> shift & 0x0f0f0f0f) << 4;
}

void weight_join_pairs(uint32_t *dst, const uint32_t *src, unsigned shift)
{
	for (unsigned word = 0; word < 2; word++)
		for (unsigned r = 0; r < 32; r++) {
			const uint32_t *s = src + word * 4 * 32 + r;
			dst[word * 32 + r] = (s[0] >> shift & 0x03030303) | (s[32] >> shift & 0x03030303) << 2 |
			                     (s[64] >> shift & 0x03030303) << 4 | (s[96] >> shift & 0x03030303) << 6;
		}
}

void weight_join_bits(uint32_t *dst, const uint32_t *src, unsigned shift)
{
	for (unsigned r = 0; r < 32; r++)
		dst[r] = 0;
	for (unsigned g = 0; g < 8; g++)
		for (unsigned r = 0; r < 32; r++)
			dst[r] |= (src[g * 32 + r] >> shift & 0x01010101) << weight_bit_of(g);
}

void weight_part_fives(uint32_t *bits)
{
	uint32_t *nibbles = bits + 32;

	for (unsigned g = 0; g < 4; g++)
		for (unsigned r = 0; r < 32; r++) {
			uint32_t other = nibbles[g * 32 + r] >> 4 & 0x0f0f0f0f, at = weight_bit_of(g + 4),
				 fifth = bits[r] >> at & 0x01010101;
			nibbles[g * 32 + r] =
				(nibbles[g * 32 + r] & 0x0f0f0f0f) | ((other >> 1 & 0x07070707) | fifth << 3) << 4;
			bits[r] = (bits[r] & ~(0x01010101u << at)) | (other & 0x01010101) << at;
		}
}

void weight_transpose_bits(uint32_t *dst, const uint8_t *const row[32])
{
	uint32_t word[32];

	for (unsigned r = 0; r < 32; r++) {
		memcpy(&word[r], row[r], 4);
		dst[r] = 0;
	}
	/* Byte i wants bits i, i + 4, i + 8 ...: every fourth bit, drawn together in three steps. */
	for (unsigned i = 0; i < 4; i++)
		for (unsigned r = 0; r < 32; r++) {
			uint32_t v = word[r] >> i & 0x11111111;
			v = (v | v >> 3) & 0x03030303;
			v = (v | v >> 6) & 0x000f000f;
			dst[r] |= ((v | v >> 12) & 0xff) << 8 * i;
		}
	/* Bits 0..3 and 4..7 of each byte now alternate. */
	for (unsigned r = 0; r < 32; r++) {
		uint32_t v = dst[r];
		v = (v & 0xc3c3c3c3) | (v << 2 & 0x30303030) | (v >> 2 & 0x0c0c0c0c);
		v = (v & 0x99999999) | (v << 1 & 0x44444444) | (v >> 1 & 0x22222222);
		dst[r] = (v << 1 & 0xaaaaaaaa) | (v >> 1 & 0x55555555);
	}
}

void weight_transpose_scales(void *dst, const uint8_t *const row[32])
{
	for (unsigned r = 0; r < 32; r++)
		memcpy((uint8_t *)dst + r * 2, row[r], 2);
}

void weight_transpose_minima(void *dst, const uint8_t *const row[32])
{
	uint8_t *d = dst;
	for (unsigned r = 0; r < 32; r++) {
		d[r * 2] = row[r][0];
		d[r * 2 + 1] = row[r][1] ^ 0x80;
	}
}
