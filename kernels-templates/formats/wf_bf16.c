/* kernels-templates/formats/wf_bf16.c - BF16 weights.
 *
 * Packed: [k/2][32 rows] 32-bit words, the even k in the low half, the odd k in the high half: one load gives two k's,
 * each one instruction away from f32, and packing transposes 32-bit words. Where activations are pairs as well, a word
 * is multiplied as it lies.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

static void load(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[])
{
	ir_i pair = weight_word(b, w, unit_disp, v, 0);
	out[0] = ir_fbits(b, ir_ishl(b, pair, 16));
	out[1] = ir_fbits(b, ir_iand(b, pair, ir_iconst(b, (int32_t)0xffff0000)));
}

static void load_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index,
                      ir_f out[])
{
	out[0] = ir_fbits(b, weight_word(b, w, unit_disp, v, 0));
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	weight_transpose_rows(dst, row, k * 2, numerics_pad(k) * 2, false);
}

static void to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		uint16_t h;
		memcpy(&h, (const uint8_t *)row + i * 2, 2);
		out[i] = bits_f32((uint32_t)h << 16);
	}
}

const struct weight_format wf_bf16 = {
	.type = DTYPE_BF16,
	.unit_k = 2,
	.unit_bytes = 128,
	.lane_sizes = 1 << WEIGHT_LANE_4,
	.array = { { 0, 4, 16 } },
	.step = 2,
	.load = load,
	.pack = pack,
	.to_f32 = to_f32,
};

/* One k of it is a word: a pair of k's. */
const struct weight_format wf_bf16_dot2 = {
	.type = DTYPE_BF16,
	.unit_k = 1,
	.unit_bytes = 128,
	.lane_sizes = 1 << WEIGHT_LANE_4,
	.array = { { 0, 4, 32 } },
	.step = 1,
	.load = load_pair,
};
