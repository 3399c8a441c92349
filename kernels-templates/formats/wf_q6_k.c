/* kernels-templates/formats/wf_q6_k.c - Q6_K weights: blocks of 256 in sixteen parts of 16, each with an 8-bit scale.
 *
 * File: 128 bytes of nibbles, 64 bytes of pairs of bits, 16 signed scales, f16 d. In each half of 128 k, k = 32 j + i
 * has its nibble in byte 32 (j % 2) + i of the half's 64, low for j < 2, and its upper bits in bits 2 j of byte i of
 * the half's 32. Weight d * scale * (q - 32).
 * Packed: heads of 32 f16 d; units of 32 k: two times 32 signed scales, one for each 16 k; 2 words a row of pairs of
 * bits; 4 words of nibbles. Of groups g and g + 4, word g of the nibbles has the lower four bits of the first in its
 * low nibbles and the upper four of the other in its high ones; the bits missing lie at bits 4 and 2 of the bytes of
 * word g / 2 of the pairs, which for odd g is rotated to the left by 4 bits first. So a mask for both and a choice of
 * bits for each is what it takes to have the first group as it is and the other one two bits to the left. As many bytes
 * as in the file.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { HEAD = 64, PAIRS = 64, QUANTS = PAIRS + 256, UNIT = QUANTS + 512, PARTS = 8, PLACED = 2 };
enum { FILE_BYTES = 210, FILE_PAIRS = 128, FILE_SCALES = 192, FILE_D = 208 };

/* The word with the pair of the first of two groups at bits 4, and that of the other at bits 2 if `rotated`. */
static ir_i pair_word(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
                      bool rotated)
{
	ir_i word = weight_word(b, w, unit_disp + PAIRS, v, g / 2);
	return g % 2 == 0 ? word : rotated ? ir_irotl(b, word, 4) : ir_ishl(b, word, 4);
}

static void pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g, ir_i out[2])
{
	ir_i pairs = weight_bits(b, pair_word(b, w, unit_disp, v, g, true), 0, 0x3c), low = ir_iconst(b, 0x0f0f0f0f);

	out[1] = ir_ibsel(b, low, pairs, weight_word(b, w, unit_disp + QUANTS, v, g));
	out[0] = ir_ibsel(b, low, weight_word(b, w, unit_disp + QUANTS, v, g), pairs);
}

static ir_i bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	if (w->contiguous || w->chooses) {
		ir_i two[2];
		pair(b, w, unit_disp, v, g % 4, two);
		return g < 4 ? two[0] : ir_ishr(b, two[1], PLACED);
	}
	ir_i pairs = weight_bits(b, pair_word(b, w, unit_disp, v, g % 4, g >= 4), 0, g < 4 ? 0x30 : 0x0c);
	ir_i nibbles = weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, g % 4), 0, g < 4 ? 0x0f : 0xf0);
	ir_i both = ir_ior(b, nibbles, pairs);
	return g < 4 ? both : ir_ishr(b, both, PLACED);
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                  ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_s8(b, w, unit_disp + (int32_t)half * 32, v));
}

/* Words of 32 quants of 32 rows, group g in word g, to those of a unit. */
static void join(uint32_t *pairs, uint32_t *nibbles, const uint32_t *quants)
{
	for (unsigned i = 0; i < 4 * 32; i++) {
		uint32_t first = quants[i], other = quants[i + 4 * 32];
		nibbles[i] = (first & 0x0f0f0f0f) | (other << 2 & 0xf0f0f0f0);
		uint32_t rest = (first & 0x30303030) | (other << 2 & 0x0c0c0c0c), *to = pairs + i / 64 * 32 + i % 32;
		*to = i / 32 % 2 ? *to | rest >> 4 | rest << 28 : rest;
	}
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[32 * 32], pairs[16 * 32], quants[8 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *block[32], *upper[32], *d[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * FILE_BYTES;
			upper[r] = block[r] + FILE_PAIRS;
			d[r] = block[r] + FILE_D;
		}
		weight_transpose_scales(out, d);
		weight_transpose_words(words, block, 32);
		weight_transpose_words(pairs, upper, 16);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = out + HEAD + p * UNIT;
			for (unsigned r = 0; r < 32; r++) {
				unit[r] = block[r][FILE_SCALES + 2 * p];
				unit[32 + r] = block[r][FILE_SCALES + 2 * p + 1];
			}
			const uint32_t *low = words + (p / 4 * 16 + p % 2 * 8) * 32, *high = pairs + p / 4 * 8 * 32;
			for (unsigned i = 0; i < 8 * 32; i++)
				quants[i] = (low[i] >> p % 4 / 2 * 4 & 0x0f0f0f0f) |
				            (high[i] >> p % 4 * 2 & 0x03030303) << 4;
			join((uint32_t *)(unit + PAIRS), (uint32_t *)(unit + QUANTS), quants);
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
		int nibble = block[half * 64 + j % 2 * 32 + at] >> j / 2 * 4 & 15,
		    upper = block[FILE_PAIRS + half * 32 + at] >> 2 * j & 3;
		out[i] = f16_f32(d) * (float)(int8_t)block[FILE_SCALES + i % 256 / 16] *
		         (float)((nibble | upper << 4) - 32);
	}
}

static const struct weight_quants quants = {
	.max = 63,
	.offset = 32,
	.halves = true,
	.registers = 8,
	.bytes = bytes,
	.pair = pair,
	.placed = PLACED,
	.scale = scale
};

const struct weight_format wf_q6_k = {
	.type = DTYPE_Q6_K,
	.unit_k = 32,
	.unit_bytes = UNIT,
	.array = { { 0, 1, 2 }, { PAIRS, 4, 2 }, { QUANTS, 4, 4 } },
	.head_units = PARTS,
	.head_bytes = HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &quants,
	.pack = pack,
	.to_f32 = to_f32,
};
