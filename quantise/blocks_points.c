/* quantise/blocks_points.c - the types that name points of codebooks: where their bits lie. */
#include <string.h>

#include "quantise/points.h"

enum { N = POINTS_N };

static void put_bits(uint8_t *p, int at, unsigned value, int bits)
{
	for (int i = 0; i < bits; i++)
		p[(at + i) / 8] |= (uint8_t)((value >> i & 1) << (at + i) % 8);
}

/* Four bits for each of so many parts, the lower ones first. */
static void put_scales(uint8_t *out, const struct points *p, int parts)
{
	for (int i = 0; i < parts; i++)
		put_bits(out, 4 * i, (unsigned)p->i[i], 4);
}

/* A word for 32 numbers: seven signs of each eight, and the scale. */
static void put_signs_and_scale(uint8_t *out, const struct points *p, int part)
{
	for (int i = 0; i < 4; i++)
		put_bits(out, 7 * i, p->sign[4 * part + i] & 127, 7);
	put_bits(out, 28, (unsigned)p->i[part], 4);
}

static void iq2_xxs(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ2_XXS, 8, 15, 0, true, 0.125f };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 66);
	block_put16(out, p.scale);
	for (int part = 0; part < 8; part++) {
		for (int i = 0; i < 4; i++)
			out[2 + 8 * part + i] = (uint8_t)p.point[4 * part + i];
		put_signs_and_scale(out + 6 + 8 * part, &p, part);
	}
}

static void iq2_xs(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ2_XS, 16, 15, 0, true, 0.125f };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 74);
	block_put16(out, p.scale);
	for (int i = 0; i < N / 8; i++)
		block_put16(out + 2 + 2 * i, (uint16_t)(p.point[i] | (p.sign[i] & 127) << 9));
	put_scales(out + 66, &p, 16);
}

static void iq2_s(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ2_S, 16, 15, 0, false, 0.125f };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 82);
	block_put16(out, p.scale);
	for (int i = 0; i < N / 8; i++) {
		out[2 + i] = (uint8_t)p.point[i];
		out[34 + i] = p.sign[i];
		put_bits(out + 66, 2 * i, p.point[i] >> 8, 2);
	}
	put_scales(out + 74, &p, 16);
}

static void iq3_xxs(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ3_XXS, 8, 15, 0, true, 0.25f };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 98);
	block_put16(out, p.scale);
	for (int i = 0; i < N / 4; i++)
		out[2 + i] = (uint8_t)p.point[i];
	for (int part = 0; part < 8; part++)
		put_signs_and_scale(out + 66 + 4 * part, &p, part);
}

static void iq3_s(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ3_S, 8, 15, 0, false, 1 };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 110);
	block_put16(out, p.scale);
	for (int i = 0; i < N / 4; i++) {
		out[2 + i] = (uint8_t)p.point[i];
		put_bits(out + 66, i, p.point[i] >> 8, 1);
	}
	memcpy(out + 74, p.sign, N / 8);
	put_scales(out + 106, &p, 8);
}

static void iq1_s(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ1, 8, 7, 32, false, 1 };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 50);
	block_put16(out, p.scale);
	for (int i = 0; i < N / 8; i++) {
		out[2 + i] = (uint8_t)p.point[i];
		put_bits(out + 34 + i / 4 * 2, i % 4 * 3, p.point[i] >> 8, 3);
	}
	for (int part = 0; part < 8; part++)
		put_bits(out + 34 + 2 * part, 12, (unsigned)p.i[part] | (unsigned)p.shift[4 * part] << 3, 4);
}

/* The scale is the upper four bits of each of four words of scales. */
static void iq1_m(const struct block *b, uint8_t *out)
{
	static const struct points_shape shape = { CODEBOOK_IQ1, 16, 7, 8, false, 1 };
	struct points p;

	points_fit(&shape, b, &p);
	memset(out, 0, 56);
	for (int i = 0; i < N / 8; i++) {
		out[i] = (uint8_t)p.point[i];
		put_bits(out + 32, 4 * i, (unsigned)p.point[i] >> 8 | (unsigned)p.shift[i] << 3, 4);
	}
	for (int i = 0; i < 16; i++)
		put_bits(out + 48 + i / 4 * 2, i % 4 * 3, (unsigned)p.i[i], 3);
	for (int n = 0; n < 4; n++)
		put_bits(out + 48 + 2 * n, 12, p.scale >> 4 * n & 15, 4);
}

block_encoder block_encoder_points(enum dtype type)
{
	switch (type) {
	case DTYPE_IQ1_S: return iq1_s;
	case DTYPE_IQ1_M: return iq1_m;
	case DTYPE_IQ2_XXS: return iq2_xxs;
	case DTYPE_IQ2_XS: return iq2_xs;
	case DTYPE_IQ2_S: return iq2_s;
	case DTYPE_IQ3_XXS: return iq3_xxs;
	case DTYPE_IQ3_S: return iq3_s;
	default: return NULL;
	}
}
