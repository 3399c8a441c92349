/* kernels-templates/formats/wf_q4_k.c - Q4_K and Q5_K weights: blocks of 256 in eight parts of 32, each with a 6-bit
 * scale and a 6-bit minimum.
 *
 * File: f16 d, f16 dmin, 12 bytes of 6-bit numbers, [Q5_K: 32 bytes of fifth bits, bit p of byte i for k = 32 p + i],
 * 128 bytes of nibbles: byte 32 c + i holds k = 64 c + i low and k = 64 c + 32 + i high. Weight d * scale * q - dmin *
 * minimum.
 * Packed: heads of 32 f16 d and 32 f16 -dmin; units of 32 k: 32 bytes scale, 32 bytes minimum, [a word a row of fifth
 * bits], nibbles as in Q4_0, [parted by weight_part_fives()]. 148 bytes for the file's 144, 180 for 176: six bits are
 * made eight, but not by vectors.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum {
	HEAD = 128,
	HEAD_DMIN = 64,
	MINIMA = 32,
	BITS = 64,
	BIT_BYTES = WEIGHT_FIVES_BITS,
	QUANT_BYTES = 512,
	PARTS = 8
};
enum { Q4_UNIT = BITS + QUANT_BYTES, Q5_UNIT = BITS + BIT_BYTES + QUANT_BYTES };
enum { FILE_STEPS = 4, Q4_FILE = 144, Q4_FILE_QUANTS = 16, Q5_FILE = 176, Q5_FILE_BITS = 16, Q5_FILE_QUANTS = 48 };

static ir_i q4_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_nibbles(b, w, unit_disp + BITS, v, g);
}

static ir_i q5_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return weight_five_bytes(b, w, unit_disp + BITS, v, g);
}

static void q4_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g, ir_i out[2])
{
	weight_nibble_pair(b, w, unit_disp + BITS, v, g, out);
}

static void q5_pair(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g, ir_i out[2])
{
	weight_five_pair(b, w, unit_disp + BITS, v, g, out);
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                  ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_u8(b, w, unit_disp, v));
	out[1] = ir_fmul(b, weight_head_half(b, w, HEAD_DMIN, v), weight_u8(b, w, unit_disp + MINIMA, v));
}

/* Part n's two numbers from the 12 bytes: six bits whole for the first four parts, four and two for the last. */
static void steps(const uint8_t *s, unsigned n, uint8_t *scale, uint8_t *minimum)
{
	*scale = n < 4 ? s[n] & 63 : (uint8_t)((s[n + 4] & 15) | s[n - 4] >> 6 << 4);
	*minimum = n < 4 ? s[n + 4] & 63 : (uint8_t)(s[n + 4] >> 4 | s[n] >> 6 << 4);
}

static void pack_head(uint8_t *out, unsigned unit, const uint8_t *const block[32])
{
	const uint8_t *dmin[32];

	for (unsigned r = 0; r < 32; r++) {
		dmin[r] = block[r] + 2;
		for (unsigned n = 0; n < PARTS; n++)
			steps(block[r] + FILE_STEPS, n, &out[HEAD + n * unit + r], &out[HEAD + n * unit + MINIMA + r]);
	}
	weight_transpose_scales(out, block);
	weight_transpose_minima(out + HEAD_DMIN, dmin);
}

static void q4_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[32 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (HEAD + PARTS * Q4_UNIT);
		const uint8_t *block[32], *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * Q4_FILE;
			quants[r] = block[r] + Q4_FILE_QUANTS;
		}
		pack_head(out, Q4_UNIT, block);
		weight_transpose_words(words, quants, 32);
		for (unsigned p = 0; p < PARTS; p++)
			weight_join_nibbles((uint32_t *)(out + HEAD + p * Q4_UNIT + BITS), words + p / 2 * 8 * 32,
			                    p % 2 * 4);
	}
}

static void q5_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[32 * 32], bits[8 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *out = (uint8_t *)dst + n * (HEAD + PARTS * Q5_UNIT);
		const uint8_t *block[32], *quants[32], *fifth[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * Q5_FILE;
			quants[r] = block[r] + Q5_FILE_QUANTS;
			fifth[r] = block[r] + Q5_FILE_BITS;
		}
		pack_head(out, Q5_UNIT, block);
		weight_transpose_words(words, quants, 32);
		weight_transpose_words(bits, fifth, 8);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = out + HEAD + p * Q5_UNIT;
			weight_join_bits((uint32_t *)(unit + BITS), bits, p);
			weight_join_nibbles((uint32_t *)(unit + BITS + BIT_BYTES), words + p / 2 * 8 * 32, p % 2 * 4);
			weight_part_fives((uint32_t *)(unit + BITS));
		}
	}
}

static void to_f32(float *out, const uint8_t *row, uint64_t k, bool five)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = row + i / 256 * (five ? Q5_FILE : Q4_FILE),
			      *quants = block + (five ? Q5_FILE_QUANTS : Q4_FILE_QUANTS);
		unsigned part = (unsigned)(i % 256 / 32), at = (unsigned)(i % 32);
		uint8_t scale, minimum;
		uint16_t d, dmin;
		memcpy(&d, block, 2);
		memcpy(&dmin, block + 2, 2);
		steps(block + FILE_STEPS, part, &scale, &minimum);
		int q = quants[part / 2 * 32 + at] >> part % 2 * 4 & 15;
		if (five)
			q |= (block[Q5_FILE_BITS + at] >> part & 1) << 4;
		out[i] = f16_f32(d) * (float)scale * (float)q - f16_f32(dmin) * (float)minimum;
	}
}

static void q4_to_f32(float *out, const void *row, uint64_t k) { to_f32(out, row, k, false); }
static void q5_to_f32(float *out, const void *row, uint64_t k) { to_f32(out, row, k, true); }

static const struct weight_quants q4_quants = {
	.max = 15,
	.minimum = true,
	.registers = 5,
	.bytes = q4_bytes,
	.pair = q4_pair,
	.placed = WEIGHT_NIBBLES_PLACED,
	.scale = scale
};
static const struct weight_quants q5_quants = {
	.max = 31,
	.minimum = true,
	.registers = 8,
	.bytes = q5_bytes,
	.pair = q5_pair,
	.placed = WEIGHT_FIVES_PLACED,
	.scale = scale
};

const struct weight_format wf_q4_k = {
	.type = DTYPE_Q4_K,
	.unit_k = 32,
	.unit_bytes = Q4_UNIT,
	.array = { { 0, 1, 2 }, { BITS, 4, 4 } },
	.six = true,
	.head_units = PARTS,
	.head_bytes = HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q4_quants,
	.pack = q4_pack,
	.to_f32 = q4_to_f32,
};
const struct weight_format wf_q5_k = {
	.type = DTYPE_Q5_K,
	.unit_k = 32,
	.unit_bytes = Q5_UNIT,
	.array = { { 0, 1, 2 }, { BITS, 4, 1 }, { BITS + BIT_BYTES, 4, 4 } },
	.six = true,
	.head_units = PARTS,
	.head_bytes = HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &q5_quants,
	.pack = q5_pack,
	.to_f32 = q5_to_f32,
};
