/* quantise/blocks_levels.c - types of two, three or four levels: one scale for 64, 128 or 256 numbers. */
#include <string.h>

#include "quantise/blocks.h"

enum { TERNARY_N = 256, TWO_N = 128, FOUR_N = 64 };

static void scaled(const struct block *b, uint8_t *half, const struct fit_levels *l, int n, int8_t *level)
{
	struct fit_line line = { 0, 0 };

	block_put16(half, block_half(b, fit_scale(l, b->x, b->w, n), &line.scale));
	fit_error(l, line, b->x, b->w, n, level);
}

static const struct fit_levels ternary = { .min = -1, .max = 1 };

/* So many numbers, `step` apart, as the digits of base three of a byte, the first the highest of five: as parts of 243
 * they are of 256, rounded up. */
static uint8_t digits(const int8_t *level, int n, int step)
{
	unsigned value = 0;

	for (int i = 0; i < 5; i++)
		value = 3 * value + (i < n ? (unsigned)(level[i * step] + 1) : 0);
	return (uint8_t)((value * 256 + 242) / 243);
}

static void tq1_0(const struct block *b, uint8_t *out)
{
	int8_t level[TERNARY_N];

	scaled(b, out + 52, &ternary, TERNARY_N, level);
	for (int i = 0; i < 32; i++)
		out[i] = digits(level + i, 5, 32);
	for (int i = 0; i < 16; i++)
		out[32 + i] = digits(level + 160 + i, 5, 16);
	for (int i = 0; i < 4; i++)
		out[48 + i] = digits(level + 240 + i, 4, 4);
}

static void tq2_0(const struct block *b, uint8_t *out)
{
	int8_t level[TERNARY_N];

	scaled(b, out + 64, &ternary, TERNARY_N, level);
	memset(out, 0, 64);
	for (int i = 0; i < TERNARY_N; i++)
		out[i / 128 * 32 + i % 32] |= (uint8_t)((level[i] + 1) << i / 32 % 4 * 2);
}

/* Plus or minus the scale, which is the mean of the magnitudes. 0 is plus. */
static void q1_0(const struct block *b, uint8_t *out)
{
	double sum = 0, weights = 0;
	float is;

	memset(out, 0, 18);
	for (int i = 0; i < TWO_N; i++) {
		sum += (double)b->w[i] * (double)__builtin_fabsf(b->x[i]);
		weights += (double)b->w[i];
		out[2 + i / 8] |= (uint8_t)((b->x[i] >= 0) << i % 8);
	}
	block_put16(out, block_half(b, (float)(sum / weights), &is));
}

static void q2_0(const struct block *b, uint8_t *out)
{
	static const struct fit_levels l = { .min = -1, .max = 2 };
	int8_t level[FOUR_N];

	memset(out, 0, 18);
	scaled(b, out, &l, FOUR_N, level);
	for (int i = 0; i < FOUR_N; i++)
		out[2 + i / 4] |= (uint8_t)((level[i] + 1) << i % 4 * 2);
}

block_encoder block_encoder_levels(enum dtype type)
{
	switch (type) {
	case DTYPE_TQ1_0: return tq1_0;
	case DTYPE_TQ2_0: return tq2_0;
	case DTYPE_Q1_0: return q1_0;
	case DTYPE_Q2_0: return q2_0;
	default: return NULL;
	}
}
