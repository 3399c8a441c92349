/* kernels-templates/wf_q6_k.c - Q6_K weights: blocks of 256 in sixteen parts of 16, each with an 8-bit scale.
 *
 * File: 128 bytes of nibbles, 64 bytes of pairs of bits, 16 signed scales, f16 d. In each half of 128 k, k = 32 j + i has its nibble in byte 32 (j % 2) + i of
 * the half's 64, low for j < 2, and its upper bits in bits 2 j of byte i of the half's 32. Weight d * scale * (q - 32).
 * Packed: heads of 32 f16 d; units of 32 k: two times 32 signed scales, one for each 16 k; 2 words a row of upper bits, group g at bits 2 (g % 4) of the bytes
 * of word g / 4; nibbles as in Q4_0. As many bytes as in the file.
 */
#include "jit/lanes.h"
#include "kernels-templates/weight_format.h"

enum { HEAD = 64, PAIRS = 64, QUANTS = PAIRS + 256, UNIT = QUANTS + 512, PARTS = 8 };
enum { FILE_BYTES = 210, FILE_PAIRS = 128, FILE_SCALES = 192, FILE_D = 208 };

static ir_i bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i upper = weight_bits(b, weight_word(b, w, unit_disp + PAIRS, v, g / 4), (int)(g % 4) * 2 - 4, 48);
	return ir_ior(b, weight_nibbles(b, w, unit_disp + QUANTS, v, g), upper);
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half, ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_s8(b, w, unit_disp + (int32_t)half * 32, v));
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[32 * 32], pairs[16 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *block[32], *upper[32], *d[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * FILE_BYTES;
			upper[r] = block[r] + FILE_PAIRS;
			d[r] = block[r] + FILE_D;
		}
		weight_turn_scales(out, d);
		weight_turn_words(words, block, 32);
		weight_turn_words(pairs, upper, 16);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = out + HEAD + p * UNIT;
			for (unsigned r = 0; r < 32; r++) {
				unit[r] = block[r][FILE_SCALES + 2 * p];
				unit[32 + r] = block[r][FILE_SCALES + 2 * p + 1];
			}
			weight_join_pairs((uint32_t *)(unit + PAIRS), pairs + p / 4 * 8 * 32, p % 4 * 2);
			weight_join_nibbles((uint32_t *)(unit + QUANTS), words + (p / 4 * 16 + p % 2 * 8) * 32, p % 4 / 2 * 4);
		}
	}
}

static void to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 256 * FILE_BYTES;
		unsigned half = (unsigned)(i % 256 / 128), j = (unsigned)(i % 128 / 32), at = (unsigned)(i % 32);
		uint16_t d;
		memcpy(&d, block + FILE_D, 2);
		int nibble = block[half * 64 + j % 2 * 32 + at] >> j / 2 * 4 & 15, upper = block[FILE_PAIRS + half * 32 + at] >> 2 * j & 3;
		out[i] = f16_f32(d) * (float)(int8_t)block[FILE_SCALES + i % 256 / 16] * (float)((nibble | upper << 4) - 32);
	}
}

static const struct weight_quants quants = { .most = 63, .offset = 32, .halves = true, .registers = 8, .bytes = bytes, .scale = scale };

const struct weight_format wf_q6_k = {
	.type = DTYPE_Q6_K, .unit_k = 32, .unit_bytes = UNIT, .array = { { 0, 1, 2 }, { PAIRS, 4, 2 }, { QUANTS, 4, 4 } },
	.head_units = PARTS, .head_bytes = HEAD, .lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4, .quants = &quants, .pack = pack, .to_f32 = to_f32,
};
