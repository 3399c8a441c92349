/* kernels-templates/formats/wf_fp8.c - FP8 weights (E4M3), with a scale of f32.
 *
 * Blocks of 32 k that loaders/model/model_affine_read.c makes: an f32 scale, less than 128, and 32 bytes. Byte: a sign,
 * four bits of exponent with a bias of 7, three of mantissa; weight scale * number, rounded once. There is no infinity,
 * and the code of no number counts as 480 here: the code that makes blocks refuses it. Packed, per block: 32 times the
 * scale, 2^120 of it; 8 words a row of bytes. Moved to where an f32 has them, the bits of a byte are its number, 2^120
 * times too small. As many bytes as in the block.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_vectors.h"

enum { BYTES = 128, UNIT = BYTES + 1024, FILE_BYTES = 36 };
#define TOO_SMALL 0x1p120f

static void load(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[])
{
	ir_f own, *scale = w->contiguous ? &w->contiguous->scale[0] : &own;
	ir_i word = weight_word(b, w, unit_disp + BYTES, v, index);

	if (!w->contiguous || index == 0)
		*scale = weight_float(b, w, unit_disp, v);
	for (unsigned i = 0; i < 4; i++) {
		ir_i top = i < 3 ? ir_ishl(b, word, 24 - 8 * i) : word;
		/* The sign comes along in four bits, of which the highest stays. */
		ir_i bits = ir_iand(b, ir_isar(b, top, 4), ir_iconst(b, (int32_t)0x87f00000));
		out[i] = ir_fmul(b, *scale, ir_fbits(b, bits));
	}
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * UNIT;
		const uint8_t *bytes[32];
		for (unsigned r = 0; r < 32; r++) {
			const uint8_t *block = (const uint8_t *)row[r] + n * FILE_BYTES;
			float scale;
			memcpy(&scale, block, 4);
			scale *= TOO_SMALL;
			memcpy(out + 4 * r, &scale, 4);
			bytes[r] = block + 4;
		}
		weight_transpose_words((uint32_t *)(out + BYTES), bytes, 8);
	}
}

static void to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * FILE_BYTES;
		uint32_t byte = block[4 + i % 32];
		float scale;
		memcpy(&scale, block, 4);
		out[i] = scale * (bits_f32((byte & 0x80) << 24 | (byte & 0x7f) << 20) * TOO_SMALL);
	}
}

const struct weight_format wf_fp8 = {
	.type = DTYPE_FP8,
	.unit_k = 32,
	.unit_bytes = UNIT,
	.array = { { 0, 4, 1 }, { BYTES, 4, 8 } },
	.lane_sizes = 1 << WEIGHT_LANE_4,
	.step = 4,
	.load = load,
	.pack = pack,
	.to_f32 = to_f32,
};
