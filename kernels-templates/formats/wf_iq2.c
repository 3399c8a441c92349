/* kernels-templates/formats/wf_iq2.c - IQ2_XXS, IQ2_XS and IQ2_S weights: blocks of 256, eight weights named by a point
 * of a codebook and their signs.
 *
 * Files, all: f16 d first; a weight is d * (scale + 1/2) / 4 * level * sign, levels 8, 25 and 43.
 * IQ2_XXS, 32 k: four bytes that name points, then a word: four times seven bits of signs, and the scale in the upper
 * four. IQ2_XS: a half for eight k, nine bits that name the point and seven of signs; then a byte for 32 k: the scale
 * of the first 16 low, the other high. IQ2_S: 32 bytes of points' lower eight bits, 32 bytes of signs; a byte for 32 k
 * with the points' upper two bits; the scales as in IQ2_XS. Seven signs imply an eighth that makes the minuses even.
 * Packed: a table for points would have to be gathered from, which takes longer than reading a few more bits. So a
 * weight is three bits, level and sign. Heads: 32 f16 d; units of 32 k: 32 bytes, scales as in the file or, of IQ2_XXS,
 * 2 * scale + 1; a word a row of signs, as weight_join_bits() makes it; 2 words a row of levels, as
 * weight_join_pairs() does. 106 bytes for 66 of IQ2_XXS, 74 of IQ2_XS and 82 of IQ2_S.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/codebooks.h"
#include "kernels-templates/formats/weight_format.h"

enum { HEAD = 64, SIGNS = 32, LEVELS = SIGNS + 128, UNIT = LEVELS + 256, PARTS = 8 };
enum { XXS_FILE = 66, XS_FILE = 74, XS_SCALES = 66, S_FILE = 82, S_SIGNS = 34, S_UPPER = 66, S_SCALES = 74 };

static ir_i bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i sign = weight_bits(b, weight_word(b, w, unit_disp + SIGNS, v, 0), (int)weight_bit_of(g) - 2, 4),
	     level = weight_bits(b, weight_word(b, w, unit_disp + LEVELS, v, g / 4), (int)(g % 4) * 2, 3);
	return ir_ilut16(b, ir_ior(b, level, sign), LANES_TABLE_IQ2);
}

static void xxs_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                      ir_f out[2])
{
	ir_f eighth = ir_fmul(b, weight_u8(b, w, unit_disp, v), ir_fconst(b, 0.125f));
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), eighth);
}

static void xs_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	ir_i both = weight_byte(b, w, unit_disp, v),
	     one = half ? ir_ishr(b, both, 4) : ir_iand(b, both, ir_iconst(b, 15));
	ir_f quarter = ir_ffma(b, ir_i2f(b, one), ir_fconst(b, 0.25f), ir_fconst(b, 0.125f));
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), quarter);
}

/* Eight weights as bytes: the level's number, and 4 for a minus. */
static void put_point(uint32_t out[2], enum codebook_name name, unsigned point, uint8_t signs)
{
	uint64_t digits, minus = signs * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);

	memcpy(&digits, codebook(name)->digit + point * 8, 8);
	minus = (minus + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
	digits |= minus << 2;
	memcpy(out, &digits, 8);
}

/* What a format's 32 weights of a part are: eight words of four bytes each, in the order of k. And the part's scales,
 * as they are packed. */
struct reader {
	unsigned file_bytes;
	void (*weights)(uint32_t out[8], const uint8_t *block, unsigned part);
	uint8_t (*scales)(const uint8_t *block, unsigned part);
	bool halves;
};

static void xxs_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	const uint8_t *p = block + 2 + part * 8;
	uint32_t signs;

	memcpy(&signs, p + 4, 4);
	for (unsigned i = 0; i < 4; i++)
		put_point(out + 2 * i, CODEBOOK_IQ2_XXS, p[i], codebook_even_signs(signs >> 7 * i));
}

static uint8_t xxs_scales(const uint8_t *block, unsigned part)
{
	return (uint8_t)(2 * (block[2 + part * 8 + 7] >> 4) + 1);
}

static void xs_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	for (unsigned i = 0; i < 4; i++) {
		uint16_t both;
		memcpy(&both, block + 2 + (part * 4 + i) * 2, 2);
		put_point(out + 2 * i, CODEBOOK_IQ2_XS, both & 511, codebook_even_signs(both >> 9));
	}
}

static uint8_t xs_scales(const uint8_t *block, unsigned part) { return block[XS_SCALES + part]; }

static void s_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned upper = block[S_UPPER + part] >> 2 * i & 3, point = block[2 + part * 4 + i] | upper << 8;
		put_point(out + 2 * i, CODEBOOK_IQ2_S, point, block[S_SIGNS + part * 4 + i]);
	}
}

static uint8_t s_scales(const uint8_t *block, unsigned part) { return block[S_SCALES + part]; }

static const struct reader xxs = { XXS_FILE, xxs_weights, xxs_scales, false },
			   xs = { XS_FILE, xs_weights, xs_scales, true }, s = { S_FILE, s_weights, s_scales, true };

static void pack(void *dst, const void *const row[32], uint64_t k, const struct reader *f)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * UNIT);
		const uint8_t *block[32];
		for (unsigned r = 0; r < 32; r++)
			block[r] = (const uint8_t *)row[r] + n * f->file_bytes;
		weight_transpose_scales(head, block);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = head + HEAD + p * UNIT;
			uint32_t own[8], all[8 * 32];
			for (unsigned r = 0; r < 32; r++) {
				unit[r] = f->scales(block[r], p);
				f->weights(own, block[r], p);
				for (unsigned g = 0; g < 8; g++)
					all[g * 32 + r] = own[g];
			}
			weight_join_bits((uint32_t *)(unit + SIGNS), all, 2);
			weight_join_pairs((uint32_t *)(unit + LEVELS), all, 0);
		}
	}
}

static void xxs_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, &xxs); }
static void xs_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, &xs); }
static void s_pack(void *dst, const void *const row[32], uint64_t k) { pack(dst, row, k, &s); }

static void to_f32(float *out, const void *row, uint64_t k, const struct reader *f)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		const uint8_t *block = (const uint8_t *)row + n / 8 * f->file_bytes;
		uint8_t weight[32], scales = f->scales(block, n % 8);
		uint32_t words[8];
		uint16_t d;
		memcpy(&d, block, 2);
		f->weights(words, block, n % 8);
		memcpy(weight, words, 32);
		for (unsigned i = 0; i < 32; i++) {
			int eighths = f->halves ? 2 * (scales >> i / 16 * 4 & 15) + 1 : scales;
			out[n * 32 + i] =
				f16_f32(d) * ((float)eighths * 0.125f) * (float)lanes_table[LANES_TABLE_IQ2][weight[i]];
		}
	}
}

static void xxs_to_f32(float *out, const void *row, uint64_t k) { to_f32(out, row, k, &xxs); }
static void xs_to_f32(float *out, const void *row, uint64_t k) { to_f32(out, row, k, &xs); }
static void s_to_f32(float *out, const void *row, uint64_t k) { to_f32(out, row, k, &s); }

static const struct weight_quants xxs_quants = {
	.is_signed = true, .registers = 9, .bytes = bytes, .scale = xxs_scale
};
static const struct weight_quants xs_quants = {
	.is_signed = true, .halves = true, .registers = 9, .bytes = bytes, .scale = xs_scale
};

#define COMMON \
	.unit_k = 32, .unit_bytes = UNIT, .array = { { 0, 1, 1 }, { SIGNS, 4, 1 }, { LEVELS, 4, 2 } }, \
	.head_units = PARTS, .head_bytes = HEAD, .lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4, .step = 4

const struct weight_format wf_iq2_xxs = {
	.type = DTYPE_IQ2_XXS, COMMON, .quants = &xxs_quants, .pack = xxs_pack, .to_f32 = xxs_to_f32
};
const struct weight_format wf_iq2_xs = {
	.type = DTYPE_IQ2_XS, COMMON, .quants = &xs_quants, .pack = xs_pack, .to_f32 = xs_to_f32
};
const struct weight_format wf_iq2_s = {
	.type = DTYPE_IQ2_S, COMMON, .quants = &xs_quants, .pack = s_pack, .to_f32 = s_to_f32
};
