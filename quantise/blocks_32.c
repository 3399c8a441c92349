/* quantise/blocks_32.c - types whose 32 or 16 numbers share one scale, or a scale and a minimum. */
#include <string.h>

#include "quantise/blocks.h"
#include "base/number.h"

enum { N = 32, HALF = 16 };

const struct fit_levels block_iq4_levels = {
	.min = -127,
	.max = 113,
	.listed = 16,
	.list = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 }
};

uint8_t block_iq4_code(int8_t level)
{
	uint8_t code = 0;

	while (code < block_iq4_levels.listed - 1 && block_iq4_levels.list[code] < level)
		code++;
	return code;
}

static void put_nibbles(uint8_t *out, const uint8_t *code)
{
	for (int i = 0; i < HALF; i++)
		out[i] = (uint8_t)((code[i] & 15) | code[i + HALF] << 4);
}

/* The fifth bits: number i has bit i of 32. */
static void put_fifth_bits(uint8_t *out, const uint8_t *code)
{
	memset(out, 0, N / 8);
	for (int i = 0; i < N; i++)
		out[i / 8] |= (uint8_t)((code[i] >> 4 & 1) << i % 8);
}

static void scaled(const struct block *b, uint8_t *out, float min, uint8_t code[N])
{
	const struct fit_levels l = { .min = min, .max = -min - 1 };
	struct fit_line line = { 0, 0 };
	int8_t level[N];

	block_put16(out, block_half(b, fit_scale(&l, b->x, b->w, N), &line.scale));
	fit_error(&l, line, b->x, b->w, N, level);
	for (int i = 0; i < N; i++)
		code[i] = (uint8_t)(level[i] - (int)min);
}

static void q4_0(const struct block *b, uint8_t *out)
{
	uint8_t code[N];

	scaled(b, out, -8, code);
	put_nibbles(out + 2, code);
}

static void q5_0(const struct block *b, uint8_t *out)
{
	uint8_t code[N];

	scaled(b, out, -16, code);
	put_fifth_bits(out + 2, code);
	put_nibbles(out + 6, code);
}

static void with_minimum(const struct block *b, uint8_t *out, float max, uint8_t code[N])
{
	const struct fit_levels l = { .min = 0, .max = max };
	struct fit_line line = fit_line(max, false, b->x, b->w, N);
	int8_t level[N];

	block_put16(out, block_half(b, line.scale, &line.scale));
	block_put16(out + 2, block_half(b, line.minimum, &line.minimum));
	fit_error(&l, line, b->x, b->w, N, level);
	memcpy(code, level, N);
}

static void q4_1(const struct block *b, uint8_t *out)
{
	uint8_t code[N];

	with_minimum(b, out, 15, code);
	put_nibbles(out + 4, code);
}

static void q5_1(const struct block *b, uint8_t *out)
{
	uint8_t code[N];

	with_minimum(b, out, 31, code);
	put_fifth_bits(out + 4, code);
	put_nibbles(out + 8, code);
}

/* By the type's own definition and not by a search: the largest number is 127, and halves go away from 0. Every other
 * writer of this type does the same, so files of the same weights are the same. */
static void q8_0(const struct block *b, uint8_t *out)
{
	float max = 0, scale, inverse;

	for (int i = 0; i < N; i++)
		max = __builtin_fabsf(b->source[i]) > max ? __builtin_fabsf(b->source[i]) : max;
	scale = max / 127;
	inverse = scale > 0x1p-126f ? 1 / scale : 0; /* otherwise it could be infinite, and the stored scale is 0 */
	block_put16(out, number_to_half(scale));
	for (int i = 0; i < N; i++) {
		float v = b->source[i] * inverse;
		int whole = v >= 127 ? 127 : v <= -127 ? -127 : (int)v;
		float rest = v - (float)whole;
		whole += whole < 127 && rest >= 0.5f;
		whole -= whole > -127 && rest <= -0.5f;
		out[2 + i] = (uint8_t)(int8_t)whole;
	}
}

static void iq4_nl(const struct block *b, uint8_t *out)
{
	struct fit_line line = { 0, 0 };
	uint8_t code[N];
	int8_t level[N];

	block_put16(out, block_half(b, fit_scale(&block_iq4_levels, b->x, b->w, N), &line.scale));
	fit_error(&block_iq4_levels, line, b->x, b->w, N, level);
	for (int i = 0; i < N; i++)
		code[i] = block_iq4_code(level[i]);
	put_nibbles(out + 2, code);
}

/* The levels are doubled, as the scale is halved: 2^(e - 128). */
static const struct fit_levels fp4_levels = {
	.min = -12, .max = 12, .listed = 15, .list = { -12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12 }
};

static uint8_t fp4_code(int8_t level)
{
	static const uint8_t of[13] = { [1] = 1, [2] = 2, [3] = 3, [4] = 4, [6] = 5, [8] = 6, [12] = 7 };

	return level < 0 ? 8 + of[-level] : of[level];
}

/* Of the powers of two for which the largest number is beside the largest level, that with the least error. */
static void mxfp4(const struct block *b, uint8_t *out)
{
	enum { FIRST = -4, TRIED = 3, LARGEST = 252 /* of which 12 times is still finite */ };
	float min = 0;
	int8_t level[N], best[N];
	uint8_t code[N];

	for (int k = 0; k < TRIED; k++) {
		int stored = 128 + FIRST + k - b->power;
		stored = stored < 0 ? 0 : stored > LARGEST ? LARGEST : stored;
		struct fit_line line = { (float)number_power(stored - 128 + b->power), 0 };
		float error = fit_error(&fp4_levels, line, b->x, b->w, N, level);
		if (k == 0 || error < min) {
			min = error;
			out[0] = (uint8_t)stored;
			memcpy(best, level, N);
		}
	}
	for (int i = 0; i < N; i++)
		code[i] = fp4_code(best[i]);
	put_nibbles(out + 1, code);
}

/* E4M3 without a sign. */
static float nvfp4_scale(int code)
{
	int e = code >> 3, m = code & 7;

	return (float)((double)(e ? 8 + m : m) * number_power((e ? e : 1) - 10));
}

/* Of the scales around the one that 16 numbers would like, that with the least error. Levels are doubled, so scales are
 * halved. */
static uint8_t nvfp4_part(const struct block *b, int part, int8_t level[16])
{
	enum { CODES = 127, AROUND = 2 };
	const float *x = b->x + 16 * part, *w = b->w + 16 * part;
	double factor = number_power(b->power) / 2, liked = (double)fit_scale(&fp4_levels, x, w, 16) / factor;
	int near = 0, best = 0;
	float min = 0;
	int8_t now[16];

	liked = liked < 0 ? -liked : liked;
	while (near < CODES - 1 && (double)nvfp4_scale(near + 1) <= liked)
		near++;
	for (int code = near - AROUND; code <= near + AROUND; code++) {
		if (code < 0 || code >= CODES)
			continue;
		struct fit_line line = { (float)((double)nvfp4_scale(code) * factor), 0 };
		float error = fit_error(&fp4_levels, line, x, w, 16, now);
		if (code > near - AROUND && code > 0 && error >= min)
			continue;
		min = error;
		best = code;
		memcpy(level, now, sizeof now);
	}
	return (uint8_t)best;
}

static void nvfp4(const struct block *b, uint8_t *out)
{
	int8_t level[16];

	for (int part = 0; part < 4; part++) {
		out[part] = nvfp4_part(b, part, level);
		for (int i = 0; i < 8; i++)
			out[4 + 8 * part + i] = (uint8_t)(fp4_code(level[i]) | fp4_code(level[i + 8]) << 4);
	}
}

block_encoder block_encoder_32(enum dtype type)
{
	switch (type) {
	case DTYPE_Q4_0: return q4_0;
	case DTYPE_Q4_1: return q4_1;
	case DTYPE_Q5_0: return q5_0;
	case DTYPE_Q5_1: return q5_1;
	case DTYPE_Q8_0: return q8_0;
	case DTYPE_IQ4_NL: return iq4_nl;
	case DTYPE_MXFP4: return mxfp4;
	case DTYPE_NVFP4: return nvfp4;
	default: return NULL;
	}
}
