/* kernels-templates/formats/wf_ternary.c - TQ1_0 and TQ2_0 weights: blocks of 256 numbers -1, 0 and 1 with an f16
 * scale.
 *
 * Files: f16 d last. TQ2_0: 64 bytes of pairs of bits, as in Q2_K. Weight d * (q - 1). TQ1_0: 52 bytes, each five
 * digits, read off it by multiplying: digit n of byte p is the upper byte of 3 * (p * 3^n mod 256). Byte 32 j + i has k
 * = i, 32 + i ... of the first 160, byte 32 + i of 20 the next 80 in the same way 16 at a time, and four bytes have
 * four of the last 16 k each. Weight d * (digit - 1). Packed, both: heads of 32 f16 d; units of 32 k: 2 words a row of
 * pairs, as weight_join_pairs() makes them. As many bytes as in the file of TQ2_0, 66; for 54 of TQ1_0, since taking
 * five digits apart costs a multiplication each.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { HEAD = 64, UNIT = 256, PARTS = 8, TQ2_FILE = 66, TQ2_D = 64, TQ1_FILE = 54, TQ1_D = 52 };

static ir_i bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, unit_disp, v, g / 4), (int)(g % 4) * 2, 3);
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                  ir_f out[2])
{
	out[0] = weight_head_half(b, w, 0, v);
}

static void tq2_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[16 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *block[32], *d[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * TQ2_FILE;
			d[r] = block[r] + TQ2_D;
		}
		weight_transpose_scales(head, d);
		weight_transpose_words(words, block, 16);
		for (unsigned p = 0; p < PARTS; p++)
			weight_join_pairs((uint32_t *)(head + HEAD + p * UNIT), words + p / 4 * 8 * 32, p % 4 * 2);
	}
}

/* All digits of a block, in the order of k. */
static void tq1_digits(uint8_t out[256], const uint8_t *block)
{
	static const struct {
		uint8_t first, bytes, digits;
	} stretch[] = { { 0, 32, 5 }, { 32, 16, 5 }, { 48, 4, 4 } };

	for (unsigned s = 0; s < sizeof stretch / sizeof *stretch; s++)
		for (unsigned n = 0, power = 1; n < stretch[s].digits; n++, power *= 3)
			for (unsigned i = 0; i < stretch[s].bytes; i++)
				*out++ = (uint8_t)((block[stretch[s].first + i] * power & 255) * 3 >> 8);
}

static void tq1_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint8_t digits[32][256];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *d[32], *part[32];
		for (unsigned r = 0; r < 32; r++) {
			const uint8_t *block = (const uint8_t *)row[r] + n * TQ1_FILE;
			d[r] = block + TQ1_D;
			tq1_digits(digits[r], block);
		}
		weight_transpose_scales(head, d);
		for (unsigned p = 0; p < PARTS; p++) {
			uint32_t words[8 * 32];
			for (unsigned r = 0; r < 32; r++)
				part[r] = digits[r] + p * 32;
			weight_transpose_words(words, part, 8);
			weight_join_pairs((uint32_t *)(head + HEAD + p * UNIT), words, 0);
		}
	}
}

static void tq2_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 256 * TQ2_FILE;
		unsigned at = (unsigned)(i % 256);
		uint16_t d;
		memcpy(&d, block + TQ2_D, 2);
		out[i] = f16_f32(d) * (float)((block[at / 128 * 32 + at % 32] >> at % 128 / 32 * 2 & 3) - 1);
	}
}

static void tq1_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		const uint8_t *block = (const uint8_t *)row + n * TQ1_FILE;
		uint8_t digits[256];
		uint16_t d;
		memcpy(&d, block + TQ1_D, 2);
		tq1_digits(digits, block);
		for (unsigned i = 0; i < 256; i++)
			out[n * 256 + i] = f16_f32(d) * (float)(digits[i] - 1);
	}
}

static const struct weight_quants quants = { .max = 3, .offset = 1, .registers = 5, .bytes = bytes, .scale = scale };

#define COMMON \
	.unit_k = 32, .unit_bytes = UNIT, .array = { { 0, 4, 2 } }, .head_units = PARTS, .head_bytes = HEAD, \
	.lane_sizes = 1 << WEIGHT_LANE_4, .step = 4, .quants = &quants

const struct weight_format wf_tq1_0 = { .type = DTYPE_TQ1_0, COMMON, .pack = tq1_pack, .to_f32 = tq1_to_f32 };
const struct weight_format wf_tq2_0 = { .type = DTYPE_TQ2_0, COMMON, .pack = tq2_pack, .to_f32 = tq2_to_f32 };
