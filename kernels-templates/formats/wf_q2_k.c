/* kernels-templates/formats/wf_q2_k.c - Q2_K and Q3_K weights: blocks of 256 in sixteen parts of 16 with small scales.
 *
 * File, both: 64 bytes of pairs of bits; in each half of 128 k, k = 32 j + i has bits 2 j of byte i of the half's 32.
 * Q2_K: 16 bytes, the scale low and the minimum high; the pairs; f16 d, f16 dmin. Weight d * scale * q - dmin *
 * minimum.
 * Q3_K: 32 bytes of third bits, bit p of byte i for k = 32 p + i; the pairs; 12 bytes of 6-bit scales; f16 d. Weight d
 * * (scale - 32) * (q - 4). Packed, heads: 32 f16 d, [Q2_K: 32 f16 -dmin]; units of 32 k: two times 32 bytes, one for
 * each 16 k, scale and minimum as in the file or scale - 32; [Q3_K: a word a row of third bits, as weight_join_bits()
 * makes it]; 2 words a row of pairs, group g at bits 2 (g % 4) of the bytes of word g / 4. As many bytes as in the
 * file, Q3_K 114 for 110: six bits are made eight, but not by vectors (112).
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum { Q2_HEAD = 128, Q2_HEAD_DMIN = 64, Q3_HEAD = 64, STEPS = 64, PAIR_BYTES = 256, BIT_BYTES = 128, PARTS = 8 };
enum { Q2_UNIT = STEPS + PAIR_BYTES, Q3_UNIT = STEPS + BIT_BYTES + PAIR_BYTES };
enum {
	Q2_FILE = 84,
	Q2_FILE_PAIRS = 16,
	Q2_FILE_D = 80,
	Q3_FILE = 110,
	Q3_FILE_PAIRS = 32,
	Q3_FILE_STEPS = 96,
	Q3_FILE_D = 108
};

static ir_i q2_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, unit_disp + STEPS, v, g / 4), (int)(g % 4) * 2, 3);
}

static ir_i q3_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i third = weight_bits(b, weight_word(b, w, unit_disp + STEPS, v, 0), (int)weight_bit_of(g) - 2, 4);
	return ir_ior(b,
	              weight_bits(b, weight_word(b, w, unit_disp + STEPS + BIT_BYTES, v, g / 4), (int)(g % 4) * 2, 3),
	              third);
}

static void q2_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	ir_i both = weight_byte(b, w, unit_disp + (int32_t)half * 32, v);
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), ir_i2f(b, ir_iand(b, both, ir_iconst(b, 15))));
	out[1] = ir_fmul(b, weight_head_half(b, w, Q2_HEAD_DMIN, v), ir_i2f(b, ir_ishr(b, both, 4)));
}

static void q3_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_s8(b, w, unit_disp + (int32_t)half * 32, v));
}

static void q2_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[16 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (Q2_HEAD + PARTS * Q2_UNIT);
		const uint8_t *block[32], *pairs[32], *d[32], *dmin[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * Q2_FILE;
			pairs[r] = block[r] + Q2_FILE_PAIRS;
			d[r] = block[r] + Q2_FILE_D;
			dmin[r] = d[r] + 2;
		}
		weight_transpose_scales(out, d);
		weight_transpose_minima(out + Q2_HEAD_DMIN, dmin);
		weight_transpose_words(words, pairs, 16);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = out + Q2_HEAD + p * Q2_UNIT;
			for (unsigned r = 0; r < 32; r++) {
				unit[r] = block[r][2 * p];
				unit[32 + r] = block[r][2 * p + 1];
			}
			weight_join_pairs((uint32_t *)(unit + STEPS), words + p / 4 * 8 * 32, p % 4 * 2);
		}
	}
}

/* Scale n of Q3_K: four bits from the first eight bytes, two from the last four. */
static int q3_step(const uint8_t *s, unsigned n)
{
	return ((s[n % 8] >> n / 8 * 4 & 15) | (s[8 + n % 4] >> n / 4 * 2 & 3) << 4) - 32;
}

static void q3_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[16 * 32], bits[8 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (Q3_HEAD + PARTS * Q3_UNIT);
		const uint8_t *block[32], *pairs[32], *d[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * Q3_FILE;
			pairs[r] = block[r] + Q3_FILE_PAIRS;
			d[r] = block[r] + Q3_FILE_D;
		}
		weight_transpose_scales(out, d);
		weight_transpose_words(words, pairs, 16);
		weight_transpose_words(bits, block, 8);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = out + Q3_HEAD + p * Q3_UNIT;
			for (unsigned i = 0; i < 64; i++)
				unit[i] = (uint8_t)q3_step(block[i % 32] + Q3_FILE_STEPS, 2 * p + i / 32);
			weight_join_bits((uint32_t *)(unit + STEPS), bits, p);
			weight_join_pairs((uint32_t *)(unit + STEPS + BIT_BYTES), words + p / 4 * 8 * 32, p % 4 * 2);
		}
	}
}

/* Number i of 256 from the 64 bytes of pairs. */
static int pair(const uint8_t *pairs, unsigned i) { return pairs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3; }

static void q2_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 256 * Q2_FILE, both = block[i % 256 / 16];
		uint16_t d, dmin;
		memcpy(&d, block + Q2_FILE_D, 2);
		memcpy(&dmin, block + Q2_FILE_D + 2, 2);
		out[i] = f16_f32(d) * (float)(both & 15) * (float)pair(block + Q2_FILE_PAIRS, i % 256) -
		         f16_f32(dmin) * (float)(both >> 4);
	}
}

static void q3_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 256 * Q3_FILE;
		unsigned at = (unsigned)(i % 256);
		uint16_t d;
		memcpy(&d, block + Q3_FILE_D, 2);
		int q = pair(block + Q3_FILE_PAIRS, at) | (block[at % 32] >> at / 32 & 1) << 2;
		out[i] = f16_f32(d) * (float)q3_step(block + Q3_FILE_STEPS, at / 16) * (float)(q - 4);
	}
}

static const struct weight_quants q2_quants = {
	.max = 3, .halves = true, .minimum = true, .registers = 5, .bytes = q2_bytes, .scale = q2_scale
};
static const struct weight_quants q3_quants = {
	.max = 7, .offset = 4, .halves = true, .registers = 7, .bytes = q3_bytes, .scale = q3_scale
};

const struct weight_format wf_q2_k = {
	.type = DTYPE_Q2_K,
	.unit_k = 32,
	.unit_bytes = Q2_UNIT,
	.array = { { 0, 1, 2 }, { STEPS, 4, 2 } },
	.head_units = PARTS,
	.head_bytes = Q2_HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q2_quants,
	.pack = q2_pack,
	.to_f32 = q2_to_f32,
};
const struct weight_format wf_q3_k = {
	.type = DTYPE_Q3_K,
	.unit_k = 32,
	.unit_bytes = Q3_UNIT,
	.array = { { 0, 1, 2 }, { STEPS, 4, 1 }, { STEPS + BIT_BYTES, 4, 2 } },
	.six = true,
	.six_bias = 32,
	.head_units = PARTS,
	.head_bytes = Q3_HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q3_quants,
	.pack = q3_pack,
	.to_f32 = q3_to_f32,
};
