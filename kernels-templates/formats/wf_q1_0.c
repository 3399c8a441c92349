/* kernels-templates/formats/wf_q1_0.c - Q1_0 and Q2_0 weights: numbers of one bit or two with an f16 scale.
 *
 * Files: f16 d first. Q1_0: 128 bits, the lowest first; weight d, or -d where the bit is 0. Q2_0: 64 pairs of bits, the
 * lowest first; weight d * (q - 1).
 * Packed, per 32 k: 32 f16 d; of Q1_0 a word a row of bits, as weight_transpose_bits() makes it, of Q2_0 2 words a row
 * of pairs, as weight_join_pairs() does.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { QUANTS = 64, Q1_UNIT = QUANTS + 128, Q2_UNIT = QUANTS + 256, FILE_BYTES = 18, Q1_K = 128, Q2_K = 64 };

/* 2 for a bit, 0 for none. */
static ir_i q1_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, 0), (int)weight_bit_of(g) - 1, 2);
}

static ir_i q2_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, g / 4), (int)(g % 4) * 2, 3);
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                  ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp, v);
}

static void q1_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *unit = (uint8_t *)dst + n * Q1_UNIT;
		const uint8_t *d[32], *bits[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * 32 / Q1_K * FILE_BYTES;
			bits[r] = d[r] + 2 + n * 32 % Q1_K / 8;
		}
		weight_transpose_scales(unit, d);
		weight_transpose_bits((uint32_t *)(unit + QUANTS), bits);
	}
}

/* Four pairs of a byte, each to a byte of its own. */
static uint32_t spread_pairs(uint32_t byte)
{
	byte = (byte | byte << 12) & 0x000f000f;
	return (byte | byte << 6) & 0x03030303;
}

static void q2_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *unit = (uint8_t *)dst + n * Q2_UNIT;
		const uint8_t *d[32];
		uint32_t words[8 * 32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * 32 / Q2_K * FILE_BYTES;
			for (unsigned g = 0; g < 8; g++)
				words[g * 32 + r] = spread_pairs(d[r][2 + n * 32 % Q2_K / 4 + g]);
		}
		weight_transpose_scales(unit, d);
		weight_join_pairs((uint32_t *)(unit + QUANTS), words, 0);
	}
}

static void q1_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / Q1_K * FILE_BYTES;
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (block[2 + i % Q1_K / 8] >> i % 8 & 1 ? 1.0f : -1.0f);
	}
}

static void q2_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / Q2_K * FILE_BYTES;
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (float)((block[2 + i % Q2_K / 4] >> i % 4 * 2 & 3) - 1);
	}
}

static const struct weight_quants q1_quants = {
	.max = 2, .offset = 1, .registers = 5, .bytes = q1_bytes, .scale = scale
};
static const struct weight_quants q2_quants = {
	.max = 3, .offset = 1, .registers = 5, .bytes = q2_bytes, .scale = scale
};

const struct weight_format wf_q1_0 = {
	.type = DTYPE_Q1_0,
	.unit_k = 32,
	.unit_bytes = Q1_UNIT,
	.array = { { 0, 2, 1 }, { QUANTS, 4, 1 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q1_quants,
	.pack = q1_pack,
	.to_f32 = q1_to_f32,
};
const struct weight_format wf_q2_0 = {
	.type = DTYPE_Q2_0,
	.unit_k = 32,
	.unit_bytes = Q2_UNIT,
	.array = { { 0, 2, 1 }, { QUANTS, 4, 2 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q2_quants,
	.pack = q2_pack,
	.to_f32 = q2_to_f32,
};
