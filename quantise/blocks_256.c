/* quantise/blocks_256.c - the types of two levels of scales: which parts and levels each has, and where its bits lie.
 */
#include <string.h>

#include "quantise/super.h"

static const struct fit_levels two_bits = { .min = 0, .max = 3 }, three_bits = { .min = -4, .max = 3 },
			       four_bits = { .min = 0, .max = 15 }, five_bits = { .min = 0, .max = 31 },
			       six_bits = { .min = -32, .max = 31 };

/* Two bits of 256 numbers: four numbers 32 apart share a byte. */
static void put_pairs(uint8_t *out, const uint8_t *code)
{
	memset(out, 0, SUPER / 4);
	for (int i = 0; i < SUPER; i++)
		out[i / 128 * 32 + i % 32] |= (uint8_t)((code[i] & 3) << i / 32 % 4 * 2);
}

/* Four bits: two numbers 32 apart share a byte. */
static void put_nibbles(uint8_t *out, const uint8_t *code)
{
	memset(out, 0, SUPER / 2);
	for (int i = 0; i < SUPER; i++)
		out[i / 64 * 32 + i % 32] |= (uint8_t)((code[i] & 15) << i / 32 % 2 * 4);
}

static void codes_of(const struct super *s, int min, uint8_t code[SUPER])
{
	for (int i = 0; i < SUPER; i++)
		code[i] = (uint8_t)(s->level[i] - min);
}

static void q2_k(const struct block *b, uint8_t *out)
{
	static const struct super_shape shape = { &two_bits, 16, 0, 15, true };
	uint8_t code[SUPER];
	struct super s;

	super_fit(&shape, b, &s);
	codes_of(&s, 0, code);
	for (int p = 0; p < shape.parts; p++)
		out[p] = (uint8_t)(s.n[p] | s.m[p] << 4);
	put_pairs(out + 16, code);
	block_put16(out + 80, s.scale);
	block_put16(out + 82, s.minimum);
}

/* Six bits of 16 scales: low four in a nibble, high two apart. */
static void put_scales_q3(uint8_t *out, const int *n)
{
	memset(out, 0, 12);
	for (int p = 0; p < 16; p++) {
		unsigned v = (unsigned)(n[p] + 32);
		out[p % 8] |= (uint8_t)((v & 15) << p / 8 * 4);
		out[8 + p % 4] |= (uint8_t)(v >> 4 << p / 4 * 2);
	}
}

static void q3_k(const struct block *b, uint8_t *out)
{
	static const struct super_shape shape = { &three_bits, 16, -32, 31, false };
	uint8_t code[SUPER];
	struct super s;

	super_fit(&shape, b, &s);
	codes_of(&s, -4, code);
	memset(out, 0, 32);
	for (int i = 0; i < SUPER; i++)
		out[i % 32] |= (uint8_t)((code[i] >> 2) << i / 32);
	put_pairs(out + 32, code);
	put_scales_q3(out + 96, s.n);
	block_put16(out + 108, s.scale);
}

/* Six bits of eight scales and eight minima: of the first four of each in a byte of their own, whose highest two bits
 * are those of the last four. */
static void put_scales_q4(uint8_t *out, const int *n, const int *m)
{
	for (int p = 0; p < 4; p++) {
		out[p] = (uint8_t)(n[p] | n[p + 4] >> 4 << 6);
		out[p + 4] = (uint8_t)(m[p] | m[p + 4] >> 4 << 6);
		out[p + 8] = (uint8_t)((n[p + 4] & 15) | (m[p + 4] & 15) << 4);
	}
}

static void with_minima(const struct block *b, uint8_t *out, const struct fit_levels *levels, uint8_t code[SUPER])
{
	const struct super_shape shape = { levels, 8, 0, 63, true };
	struct super s;

	super_fit(&shape, b, &s);
	codes_of(&s, 0, code);
	block_put16(out, s.scale);
	block_put16(out + 2, s.minimum);
	put_scales_q4(out + 4, s.n, s.m);
}

static void q4_k(const struct block *b, uint8_t *out)
{
	uint8_t code[SUPER];

	with_minima(b, out, &four_bits, code);
	put_nibbles(out + 16, code);
}

static void q5_k(const struct block *b, uint8_t *out)
{
	uint8_t code[SUPER];

	with_minima(b, out, &five_bits, code);
	memset(out + 16, 0, 32);
	for (int i = 0; i < SUPER; i++)
		out[16 + i % 32] |= (uint8_t)((code[i] >> 4) << i / 32);
	put_nibbles(out + 48, code);
}

static void q6_k(const struct block *b, uint8_t *out)
{
	static const struct super_shape shape = { &six_bits, 16, -128, 127, false };
	uint8_t code[SUPER];
	struct super s;

	super_fit(&shape, b, &s);
	codes_of(&s, -32, code);
	memset(out, 0, 192);
	for (int i = 0; i < SUPER; i++) {
		int half = i / 128, quarter = i % 128 / 32, at = i % 32;
		out[half * 64 + quarter % 2 * 32 + at] |= (uint8_t)((code[i] & 15) << quarter / 2 * 4);
		out[128 + half * 32 + at] |= (uint8_t)(code[i] >> 4 << quarter * 2);
	}
	for (int p = 0; p < shape.parts; p++)
		out[192 + p] = (uint8_t)(int8_t)s.n[p];
	block_put16(out + 208, s.scale);
}

static void iq4_xs(const struct block *b, uint8_t *out)
{
	static const struct super_shape shape = { &block_iq4_levels, 8, -32, 31, false };
	unsigned high = 0;
	struct super s;

	super_fit(&shape, b, &s);
	block_put16(out, s.scale);
	memset(out + 4, 0, 4);
	for (int p = 0; p < shape.parts; p++) {
		unsigned v = (unsigned)(s.n[p] + 32);
		out[4 + p / 2] |= (uint8_t)((v & 15) << p % 2 * 4);
		high |= v >> 4 << 2 * p;
		for (int i = 0; i < 16; i++)
			out[8 + p * 16 + i] = (uint8_t)(block_iq4_code(s.level[p * 32 + i]) |
			                                block_iq4_code(s.level[p * 32 + i + 16]) << 4);
	}
	block_put16(out + 2, (uint16_t)high);
}

block_encoder block_encoder_256(enum dtype type)
{
	switch (type) {
	case DTYPE_Q2_K: return q2_k;
	case DTYPE_Q3_K: return q3_k;
	case DTYPE_Q4_K: return q4_k;
	case DTYPE_Q5_K: return q5_k;
	case DTYPE_Q6_K: return q6_k;
	case DTYPE_IQ4_XS: return iq4_xs;
	default: return NULL;
	}
}
