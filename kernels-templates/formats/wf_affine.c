/* kernels-templates/formats/wf_affine.c - integers with a scale and what is added, as formats of safetensors have them:
 * MLX8 and MLX8_F16 (eight bits, a minimum), AWQ4 and AWQ4_BF16 (four bits, a zero point).
 *
 * Blocks of 32 k that loaders/model/model_affine_read.c makes. MLX8: d, m, 32 bytes; weight d * q + m, q 0..255; d and
 * m are bf16, of MLX8_F16 f16. AWQ4: d, a byte z, nibbles as in Q4_0; weight d * (q - z), as d * q - d * z, whose
 * products are exact; d is f16, of AWQ4_BF16 bf16. Packed, per block: MLX8 32 d, 32 m, 8 words a row of bytes; AWQ4 32
 * bytes z, 32 d, 4 words a row of nibbles. As many bytes as in the blocks.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { D = 0, M = 64, BYTES = 128, MLX8_UNIT = BYTES + 1024, MLX8_FILE = 36 };
enum { Z = 0, AWQ4_D = 32, NIBBLES = 96, AWQ4_UNIT = NIBBLES + 512, AWQ4_FILE = 19 };

static ir_i mlx8_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_word(b, w, unit_disp + BYTES, v, g);
}

static void mlx8_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_upper_half(b, w, unit_disp + D, v);
	out[1] = weight_upper_half(b, w, unit_disp + M, v);
}

static void mlx8_f16_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                           ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + D, v);
	out[1] = weight_half(b, w, unit_disp + M, v);
}

static ir_i awq4_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_nibbles(b, w, unit_disp + NIBBLES, v, g);
}

static void awq4_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      ir_i out[2])
{
	weight_nibble_pair(b, w, unit_disp + NIBBLES, v, g, out);
}

/* -(d * z), exact; of a z of 0 with the sign that lets a weight of 0 be +0. */
static ir_f zero_of(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, ir_f d)
{
	ir_f minus = ir_fmul(b, weight_u8(b, w, unit_disp + Z, v), ir_fconst(b, -1.0f));
	return ir_fmul(b, d, minus);
}

static void awq4_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp + AWQ4_D, v);
	out[1] = zero_of(b, w, unit_disp, v, out[0]);
}

static void awq4_bf16_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                            ir_f out[2])
{
	out[0] = weight_upper_half(b, w, unit_disp + AWQ4_D, v);
	out[1] = zero_of(b, w, unit_disp, v, out[0]);
}

static void mlx8_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * MLX8_UNIT;
		const uint8_t *d[32], *m[32], *bytes[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * MLX8_FILE;
			m[r] = d[r] + 2;
			bytes[r] = d[r] + 4;
		}
		weight_transpose_scales(out + D, d);
		weight_transpose_scales(out + M, m);
		weight_transpose_words((uint32_t *)(out + BYTES), bytes, 8);
	}
}

static void awq4_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * AWQ4_UNIT;
		const uint8_t *d[32], *nibbles[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * AWQ4_FILE;
			out[Z + r] = d[r][2];
			nibbles[r] = d[r] + 3;
		}
		weight_transpose_scales(out + AWQ4_D, d);
		weight_transpose_words((uint32_t *)(out + NIBBLES), nibbles, 4);
	}
}

static float number_at(const uint8_t *p, bool half)
{
	uint16_t bits;

	memcpy(&bits, p, 2);
	return half ? f16_f32(bits) : bits_f32((uint32_t)bits << 16);
}

/* Products are exact: the sum rounds once. */
static void mlx8(float *out, const void *row, uint64_t k, bool half)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * MLX8_FILE;
		out[i] = number_at(block, half) * (float)block[4 + i % 32] + number_at(block + 2, half);
	}
}

static void awq4(float *out, const void *row, uint64_t k, bool half)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * AWQ4_FILE;
		float d = number_at(block, half);
		out[i] = d * (float)weight_nibble(block + 3, i % 32) + d * -(float)block[2];
	}
}

static void mlx8_to_f32(float *out, const void *row, uint64_t k) { mlx8(out, row, k, false); }
static void mlx8_f16_to_f32(float *out, const void *row, uint64_t k) { mlx8(out, row, k, true); }
static void awq4_to_f32(float *out, const void *row, uint64_t k) { awq4(out, row, k, true); }
static void awq4_bf16_to_f32(float *out, const void *row, uint64_t k) { awq4(out, row, k, false); }

static const struct weight_quants mlx8_quants = {
	.max = 255, .is_wide = true, .minimum = true, .registers = 8, .bytes = mlx8_bytes, .scale = mlx8_scale
};
static const struct weight_quants mlx8_f16_quants = {
	.max = 255, .is_wide = true, .minimum = true, .registers = 8, .bytes = mlx8_bytes, .scale = mlx8_f16_scale
};
static const struct weight_quants awq4_quants = {
	.max = 15,
	.minimum = true,
	.registers = 6,
	.bytes = awq4_bytes,
	.pair = awq4_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = awq4_scale
};
static const struct weight_quants awq4_bf16_quants = {
	.max = 15,
	.minimum = true,
	.registers = 6,
	.bytes = awq4_bytes,
	.pair = awq4_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = awq4_bf16_scale
};

const struct weight_format wf_mlx8 = {
	.type = DTYPE_MLX8,
	.unit_k = 32,
	.unit_bytes = MLX8_UNIT,
	.array = { { D, 2, 2 }, { BYTES, 4, 8 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &mlx8_quants,
	.pack = mlx8_pack,
	.to_f32 = mlx8_to_f32,
};
const struct weight_format wf_mlx8_f16 = {
	.type = DTYPE_MLX8_F16,
	.unit_k = 32,
	.unit_bytes = MLX8_UNIT,
	.array = { { D, 2, 2 }, { BYTES, 4, 8 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &mlx8_f16_quants,
	.pack = mlx8_pack,
	.to_f32 = mlx8_f16_to_f32,
};
const struct weight_format wf_awq4 = {
	.type = DTYPE_AWQ4,
	.unit_k = 32,
	.unit_bytes = AWQ4_UNIT,
	.array = { { Z, 1, 1 }, { AWQ4_D, 2, 1 }, { NIBBLES, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &awq4_quants,
	.pack = awq4_pack,
	.to_f32 = awq4_to_f32,
};
const struct weight_format wf_awq4_bf16 = {
	.type = DTYPE_AWQ4_BF16,
	.unit_k = 32,
	.unit_bytes = AWQ4_UNIT,
	.array = { { Z, 1, 1 }, { AWQ4_D, 2, 1 }, { NIBBLES, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &awq4_bf16_quants,
	.pack = awq4_pack,
	.to_f32 = awq4_bf16_to_f32,
};
