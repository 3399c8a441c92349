/* kernels-templates/formats/wf_q5.c - Q5_0 and Q5_1 weights: as Q4_0 and Q4_1 with a fifth bit.
 *
 * File, Q5_0: d, 4 bytes of fifth bits (bit k for k), 16 bytes of nibbles as in Q4_0. Weight d * (q - 16). Q5_1: d, m,
 * bits, nibbles; weight d * q + m. Packed, per block: 32 f16 d; [32 f16 m]; a word a row of fifth bits and 4 words a
 * row of nibbles, parted by weight_part_fives(). As many bytes as in the file.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { D = 0, M = 64, Q5_0_BITS = 64, Q5_1_BITS = 128, BIT_BYTES = WEIGHT_FIVES_BITS, QUANT_BYTES = 512 };

static ir_i q5_0_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_five_bytes(b, w, unit_disp + Q5_0_BITS, v, g);
}

static ir_i q5_1_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_five_bytes(b, w, unit_disp + Q5_1_BITS, v, g);
}

static void q5_0_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      ir_i out[2])
{
	weight_five_pair(b, w, unit_disp + Q5_0_BITS, v, g, out);
}

static void q5_1_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      ir_i out[2])
{
	weight_five_pair(b, w, unit_disp + Q5_1_BITS, v, g, out);
}

static void q5_0_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + D, v);
}

static void q5_1_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + D, v);
	out[1] = weight_half(b, w, unit_disp + M, v);
}

static void pack(void *dst, const void *const row[32], uint64_t k, bool minimum)
{
	unsigned file_bytes = minimum ? 24 : 22, at = minimum ? Q5_1_BITS : Q5_0_BITS,
		 unit = at + BIT_BYTES + QUANT_BYTES;

	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * unit;
		const uint8_t *d[32], *m[32], *bits[32], *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * file_bytes;
			m[r] = d[r] + 2;
			bits[r] = d[r] + (minimum ? 4 : 2);
			quants[r] = bits[r] + 4;
		}
		weight_transpose_scales(out + D, d);
		if (minimum)
			weight_transpose_scales(out + M, m);
		weight_transpose_bits((uint32_t *)(out + at), bits);
		weight_transpose_words((uint32_t *)(out + at + BIT_BYTES), quants, 4);
		weight_part_fives((uint32_t *)(out + at));
	}
}

static void q5_0_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, false); }
static void q5_1_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, true); }

/* bits: the four bytes of fifth bits; the nibbles follow. */
static int quant(const uint8_t *bits, unsigned i)
{
	return weight_nibble(bits + 4, i) | (bits[i / 8] >> i % 8 & 1) << 4;
}

static void q5_0_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 22;
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (float)(quant(block + 2, i % 32) - 16);
	}
}

static void q5_1_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 24;
		uint16_t d, m;
		memcpy(&d, block, 2);
		memcpy(&m, block + 2, 2);
		out[i] = f16_f32(d) * (float)quant(block + 4, i % 32) + f16_f32(m);
	}
}

static const struct weight_quants q5_0_quants = {
	.max = 31,
	.offset = 16,
	.registers = 8,
	.bytes = q5_0_bytes,
	.pair = q5_0_pair,
	.placed = WEIGHT_FIVES_PLACED,
	.scale = q5_0_scale
};
static const struct weight_quants q5_1_quants = {
	.max = 31,
	.minimum = true,
	.registers = 8,
	.bytes = q5_1_bytes,
	.pair = q5_1_pair,
	.placed = WEIGHT_FIVES_PLACED,
	.scale = q5_1_scale
};

const struct weight_format wf_q5_0 = {
	.type = DTYPE_Q5_0,
	.unit_k = 32,
	.unit_bytes = Q5_0_BITS + BIT_BYTES + QUANT_BYTES,
	.array = { { D, 2, 1 }, { Q5_0_BITS, 4, 1 }, { Q5_0_BITS + BIT_BYTES, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q5_0_quants,
	.pack = q5_0_pack,
	.to_f32 = q5_0_to_f32,
};
const struct weight_format wf_q5_1 = {
	.type = DTYPE_Q5_1,
	.unit_k = 32,
	.unit_bytes = Q5_1_BITS + BIT_BYTES + QUANT_BYTES,
	.array = { { D, 2, 2 }, { Q5_1_BITS, 4, 1 }, { Q5_1_BITS + BIT_BYTES, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q5_1_quants,
	.pack = q5_1_pack,
	.to_f32 = q5_1_to_f32,
};
