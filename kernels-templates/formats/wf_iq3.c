/* kernels-templates/formats/wf_iq3.c - IQ3_XXS and IQ3_S weights: blocks of 256, four weights named by a point of a
 * codebook and their signs.
 *
 * Files: f16 d first. IQ3_XXS: 64 bytes that name points; a word for 32 k: four times seven bits of signs, which imply
 * an eighth that makes the minuses even, and the scale in the upper four. Weight d * (scale + 1/2) / 2 * level * sign,
 * levels 4, 12, 20, 28, 36, 44, 52 and 62. IQ3_S: 64 bytes of points' lower bits, 8 bytes of their ninth ones, 32 bytes
 * of signs, four of scales: of two neighbouring 32 k the first low. Weight d * (2 * scale + 1) * level * sign, levels
 * 1, 3 ... 15. Packed: eight levels and a sign are a nibble: no more than what a table of points would have cost to
 * gather from. Heads: 32 f16 d; units of 32 k: 32 bytes 2 * scale + 1; nibbles as in Q4_0. Of IQ3_XXS: the level's
 * number, 8 for a minus; of IQ3_S, half of the weight + 15. 138 bytes for 98 of IQ3_XXS and 110 of IQ3_S.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/codebooks.h"
#include "kernels-templates/formats/weight_format.h"

enum { HEAD = 64, QUANTS = 32, UNIT = QUANTS + 512, PARTS = 8, S_OFFSET = 15, S_PLACED = 3 };
enum { XXS_FILE = 98, XXS_SIGNS = 66, S_FILE = 110, S_UPPER = 66, S_SIGNS = 74, S_SCALES = 106 };

static ir_i xxs_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return ir_ilut16(b, weight_nibbles(b, w, unit_disp + QUANTS, v, g), LANES_TABLE_IQ3);
}

/* The nibbles doubled. */
static ir_i s_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, g % 4), g < 4 ? -1 : S_PLACED, 0x1e);
}

static void s_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g, ir_i out[2])
{
	out[0] = s_bytes(b, w, unit_disp, v, g);
	out[1] = weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, g), 0, 0xf0);
}

static void xxs_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                      ir_f out[2])
{
	ir_f quarter = ir_fmul(b, weight_u8(b, w, unit_disp, v), ir_fconst(b, 0.25f));
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), quarter);
}

static void s_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                    ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_u8(b, w, unit_disp, v));
}

/* Each of four signs to the lowest bit of its byte. */
static uint32_t spread_signs(unsigned four) { return ((four & 15) * 0x00204081) & 0x01010101; }

static uint32_t point_of(enum codebook_name name, unsigned point)
{
	uint32_t digits;
	memcpy(&digits, codebook(name)->digit + point * 4, 4);
	return digits;
}

/* The 32 weights of a part as the nibbles that are packed, in bytes. */
static void xxs_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	uint32_t signs;

	memcpy(&signs, block + XXS_SIGNS + part * 4, 4);
	for (unsigned g = 0; g < 8; g++) {
		unsigned four = codebook_even_signs(signs >> 7 * (g / 2)) >> g % 2 * 4;
		out[g] = point_of(CODEBOOK_IQ3_XXS, block[2 + part * 8 + g]) | spread_signs(four) << 3;
	}
}

static void s_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	for (unsigned g = 0; g < 8; g++) {
		unsigned point = block[2 + part * 8 + g] | (block[S_UPPER + part] >> g & 1u) << 8,
			 four = block[S_SIGNS + part * 4 + g / 2] >> g % 2 * 4;
		out[g] = (point_of(CODEBOOK_IQ3_S, point) | 0x08080808) ^ spread_signs(four) * 15;
	}
}

/* 2 * scale + 1. */
static uint8_t xxs_odd(const uint8_t *block, unsigned part)
{
	return (uint8_t)(2 * (block[XXS_SIGNS + part * 4 + 3] >> 4) + 1);
}

static uint8_t s_odd(const uint8_t *block, unsigned part)
{
	return (uint8_t)(2 * (block[S_SCALES + part / 2] >> part % 2 * 4 & 15) + 1);
}

static void pack(void *dst, const void *const row[32], uint64_t k, unsigned file_bytes,
                 void (*weights)(uint32_t out[8], const uint8_t *block, unsigned part),
                 uint8_t (*odd)(const uint8_t *block, unsigned part))
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *block[32];
		for (unsigned r = 0; r < 32; r++)
			block[r] = (const uint8_t *)row[r] + n * file_bytes;
		weight_transpose_scales(head, block);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = head + HEAD + p * UNIT;
			uint32_t own[8], all[8 * 32];
			for (unsigned r = 0; r < 32; r++) {
				unit[r] = odd(block[r], p);
				weights(own, block[r], p);
				for (unsigned g = 0; g < 8; g++)
					all[g * 32 + r] = own[g];
			}
			weight_join_nibbles((uint32_t *)(unit + QUANTS), all, 0);
		}
	}
}

static void xxs_pack(void *dst, const void *const row[32], uint64_t k)
{
	pack(dst, row, k, XXS_FILE, xxs_weights, xxs_odd);
}
static void s_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, S_FILE, s_weights, s_odd); }

static void xxs_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		const uint8_t *block = (const uint8_t *)row + n / 8 * XXS_FILE;
		uint32_t words[8];
		uint8_t nibble[32];
		uint16_t d;
		memcpy(&d, block, 2);
		xxs_weights(words, block, n % 8);
		memcpy(nibble, words, 32);
		for (unsigned i = 0; i < 32; i++)
			out[n * 32 + i] = f16_f32(d) * ((float)xxs_odd(block, n % 8) * 0.25f) *
			                  (float)lanes_table[LANES_TABLE_IQ3][nibble[i]];
	}
}

static void s_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		const uint8_t *block = (const uint8_t *)row + n / 8 * S_FILE;
		uint32_t words[8];
		uint8_t nibble[32];
		uint16_t d;
		memcpy(&d, block, 2);
		s_weights(words, block, n % 8);
		memcpy(nibble, words, 32);
		for (unsigned i = 0; i < 32; i++)
			out[n * 32 + i] = f16_f32(d) * (float)s_odd(block, n % 8) * (float)(2 * nibble[i] - S_OFFSET);
	}
}

static const struct weight_quants xxs_quants = {
	.is_signed = true, .registers = 7, .bytes = xxs_bytes, .scale = xxs_scale
};
static const struct weight_quants s_quants = {
	.max = 30,
	.offset = S_OFFSET,
	.registers = 8,
	.bytes = s_bytes,
	.pair = s_pair,
	.placed = S_PLACED,
	.scale = s_scale
};

#define COMMON \
	.unit_k = 32, .unit_bytes = UNIT, .array = { { 0, 1, 1 }, { QUANTS, 4, 4 } }, .head_units = PARTS, \
	.head_bytes = HEAD, .lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4, .step = 4

const struct weight_format wf_iq3_xxs = {
	.type = DTYPE_IQ3_XXS, COMMON, .quants = &xxs_quants, .pack = xxs_pack, .to_f32 = xxs_to_f32
};
const struct weight_format wf_iq3_s = {
	.type = DTYPE_IQ3_S, COMMON, .quants = &s_quants, .pack = s_pack, .to_f32 = s_to_f32
};
