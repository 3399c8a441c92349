/* kernels-templates/formats/wf_q4.c - Q4_0, Q4_1 and MLX4 weights: blocks of 32 nibbles with an f16 scale, Q4_1 with an
 * f16 minimum too; both are bf16 in MLX4.
 *
 * File, Q4_0: d, 16 bytes; byte i holds k = i low and k = 16 + i high. Weight d * (q - 8). Q4_1: d, m, 16 bytes; weight
 * d * q + m. Packed, per block: 32 f16 d; [32 f16 m]; 4 words a row, group g of 4 k in the low nibbles of word g, group
 * g + 4 in the high ones. As many bytes as in the file, and the words are the file's.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { D = 0, M = 64, Q4_0_QUANTS = 64, Q4_1_QUANTS = 128, QUANT_BYTES = 512 };

static ir_i q4_0_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_nibbles(b, w, unit_disp + Q4_0_QUANTS, v, g);
}

static ir_i q4_1_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_nibbles(b, w, unit_disp + Q4_1_QUANTS, v, g);
}

static void q4_0_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      ir_i out[2])
{
	weight_nibble_pair(b, w, unit_disp + Q4_0_QUANTS, v, g, out);
}

static void q4_1_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      ir_i out[2])
{
	weight_nibble_pair(b, w, unit_disp + Q4_1_QUANTS, v, g, out);
}

static void q4_0_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + D, v);
}

static void q4_1_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + D, v);
	out[1] = weight_half(b, w, unit_disp + M, v);
}

static void mlx4_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_upper_half(b, w, unit_disp + D, v);
	out[1] = weight_upper_half(b, w, unit_disp + M, v);
}

static void pack(void *dst, const void *const row[32], uint64_t k, bool minimum)
{
	unsigned file_bytes = minimum ? 20 : 18, unit = (minimum ? Q4_1_QUANTS : Q4_0_QUANTS) + QUANT_BYTES;

	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * unit;
		const uint8_t *d[32], *m[32], *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * file_bytes;
			m[r] = d[r] + 2;
			quants[r] = d[r] + (minimum ? 4 : 2);
		}
		weight_transpose_scales(out + D, d);
		if (minimum)
			weight_transpose_scales(out + M, m);
		weight_transpose_words((uint32_t *)(out + (minimum ? Q4_1_QUANTS : Q4_0_QUANTS)), quants, 4);
	}
}

static void q4_0_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, false); }
static void q4_1_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, true); }

static void q4_0_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 18;
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (float)(weight_nibble(block + 2, i % 32) - 8);
	}
}

static void q4_1_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 20;
		uint16_t d, m;
		memcpy(&d, block, 2);
		memcpy(&m, block + 2, 2);
		out[i] = f16_f32(d) * (float)weight_nibble(block + 4, i % 32) + f16_f32(m);
	}
}

static void mlx4_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 20;
		uint16_t d, m;
		memcpy(&d, block, 2);
		memcpy(&m, block + 2, 2);
		/* The product is exact, so that this rounds once. */
		out[i] = bits_f32((uint32_t)d << 16) * (float)weight_nibble(block + 4, i % 32) +
		         bits_f32((uint32_t)m << 16);
	}
}

static const struct weight_quants q4_0_quants = {
	.max = 15,
	.offset = 8,
	.registers = 5,
	.bytes = q4_0_bytes,
	.pair = q4_0_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = q4_0_scale
};
static const struct weight_quants q4_1_quants = {
	.max = 15,
	.minimum = true,
	.registers = 5,
	.bytes = q4_1_bytes,
	.pair = q4_1_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = q4_1_scale
};
static const struct weight_quants mlx4_quants = {
	.max = 15,
	.minimum = true,
	.registers = 5,
	.bytes = q4_1_bytes,
	.pair = q4_1_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = mlx4_scale
};

const struct weight_format wf_q4_0 = {
	.type = DTYPE_Q4_0,
	.unit_k = 32,
	.unit_bytes = Q4_0_QUANTS + QUANT_BYTES,
	.array = { { D, 2, 1 }, { Q4_0_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q4_0_quants,
	.pack = q4_0_pack,
	.to_f32 = q4_0_to_f32,
};
const struct weight_format wf_q4_1 = {
	.type = DTYPE_Q4_1,
	.unit_k = 32,
	.unit_bytes = Q4_1_QUANTS + QUANT_BYTES,
	.array = { { D, 2, 2 }, { Q4_1_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q4_1_quants,
	.pack = q4_1_pack,
	.to_f32 = q4_1_to_f32,
};
const struct weight_format wf_mlx4 = {
	.type = DTYPE_MLX4,
	.unit_k = 32,
	.unit_bytes = Q4_1_QUANTS + QUANT_BYTES,
	.array = { { D, 2, 2 }, { Q4_1_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &mlx4_quants,
	.pack = q4_1_pack,
	.to_f32 = mlx4_to_f32,
};
