/* sim/ptx_matrix.c - products of matrices by all lanes of a warp: mma.sync (PTX ISA manual, chapter 9, "Warp Level
 * Matrix Multiply-Accumulate Instructions": the figures of m16n8k16 and m16n8k32).
 */
#include <math.h>
#include <string.h>

#include "sim/ptx_warp.h"

enum { ROWS = 16, COLUMNS = 8, MAX_K = 32 };

struct factors {
	unsigned k;
	uint32_t a[ROWS][MAX_K], b[MAX_K][COLUMNS]; /* elements as bits */
};

static uint64_t word(const struct ptx_warp *w, uint32_t reg, unsigned lane)
{
	return w->reg[(size_t)reg * PTX_LANES + lane];
}

/* Element i of a lane's registers, which hold 32 / bits of them each. */
static uint32_t element(const struct ptx_warp *w, const uint32_t *reg, unsigned lane, unsigned i, unsigned bits)
{
	const unsigned each = 32 / bits;
	return (uint32_t)(word(w, reg[i / each], lane) >> i % each * bits) & ((1u << bits) - 1);
}

/* m16n8k32 of bytes. */
static void collect_bytes(const struct ptx_warp *w, const struct ptx_step *s, struct factors *f)
{
	f->k = 32;
	for (unsigned lane = 0; lane < PTX_LANES; lane++) {
		const unsigned group = lane >> 2, in_group = lane % 4;
		for (unsigned i = 0; i < 16; i++) {
			unsigned row = i < 4 || (i >= 8 && i < 12) ? group : group + 8,
				 column = i < 8 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
			f->a[row][column] = element(w, s->s, lane, i, 8);
		}
		for (unsigned i = 0; i < 8; i++) {
			unsigned row = i < 4 ? in_group * 4 + (i & 3) : in_group * 4 + (i & 3) + 16;
			f->b[row][group] = element(w, s->s + 4, lane, i, 8);
		}
	}
}

/* m16n8k16 of f16 and bf16. */
static void collect_halves(const struct ptx_warp *w, const struct ptx_step *s, struct factors *f)
{
	f->k = 16;
	for (unsigned lane = 0; lane < PTX_LANES; lane++) {
		const unsigned group = lane >> 2, in_group = lane % 4;
		for (unsigned i = 0; i < 8; i++) {
			unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8,
				 column = i < 4 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
			f->a[row][column] = element(w, s->s, lane, i, 16);
		}
		for (unsigned i = 0; i < 4; i++) {
			unsigned row = i < 2 ? in_group * 2 + (i & 1) : in_group * 2 + (i & 1) + 8;
			f->b[row][group] = element(w, s->s + 4, lane, i, 16);
		}
	}
}

/* --- sums */

static uint32_t sum_bytes(const struct factors *f, unsigned row, unsigned column, uint32_t c)
{
	for (unsigned k = 0; k < f->k; k++)
		c += (uint32_t)((int8_t)f->a[row][k] * (int8_t)f->b[k][column]);
	return c;
}

static double half(uint32_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
	                             : ldexp(exponent ? fraction | 1024 : fraction, (exponent ? exponent : 1) - 25);
	return bits & 0x8000 ? -size : size;
}

static float number(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* What of x lies at or above unit. */
static double cut(double x, double unit) { return trunc(x / unit) * unit; }

static float cut_sum(const double term[], unsigned n)
{
	double max = 0, sum = 0;
	int exponent;

	for (unsigned i = 0; i < n; i++)
		max = fabs(term[i]) > max ? fabs(term[i]) : max;
	frexp(max, &exponent);
	for (unsigned i = 0; i < n; i++)
		sum += isfinite(max) && max > 0 ? cut(term[i], ldexp(1, exponent - 24)) : term[i];
	frexp(sum, &exponent);
	exponent = exponent < -125 ? -125 : exponent;
	return isfinite(sum) && sum != 0 ? (float)cut(sum, ldexp(1, exponent - 24)) : (float)sum;
}

/* term[0] is c. */
static float add_up(const double term[], unsigned n, enum ptx_sums sums)
{
	double once = 0;
	float each = sums == PTX_SUMS_BACKWARD ? 0 : (float)term[0];

	switch (sums) {
	case PTX_SUMS_FORWARD:
		for (unsigned i = 1; i < n; i++)
			each += (float)term[i];
		return each;
	case PTX_SUMS_BACKWARD:
		for (unsigned i = n; i-- > 0;)
			each += (float)term[i];
		return each;
	case PTX_SUMS_CUT: return cut_sum(term, n);
	default:
		once = term[0];
		for (unsigned i = 1; i < n; i++)
			once += term[i];
		return (float)once;
	}
}

static uint32_t sum_halves(const struct factors *f, unsigned row, unsigned column, uint32_t c, bool is_bf16,
                           enum ptx_sums sums)
{
	double term[MAX_K + 1] = { (double)number(c) };
	uint32_t bits;

	for (unsigned k = 0; k < f->k; k++) {
		uint32_t x = f->a[row][k], y = f->b[k][column];
		term[1 + k] = is_bf16 ? (double)number(x << 16) * (double)number(y << 16) : half(x) * half(y);
	}
	float sum = add_up(term, f->k + 1, sums);
	memcpy(&bits, &sum, sizeof bits);
	return isnan(sum) ? 0x7fffffff : bits;
}

void ptx_multiply(struct ptx_warp *w, const struct ptx_step *s, enum ptx_sums sums)
{
	const bool bytes = s->operation == PTX_DO_MMA_S8;
	uint64_t out[4][PTX_LANES];
	struct factors f;

	if (bytes)
		collect_bytes(w, s, &f);
	else
		collect_halves(w, s, &f);
	for (unsigned lane = 0; lane < PTX_LANES; lane++)
		for (unsigned i = 0; i < 4; i++) {
			unsigned row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = (lane % 4) * 2 + (i & 1);
			uint32_t c = (uint32_t)word(w, s->s[6 + i], lane);
			out[i][lane] = bytes ? sum_bytes(&f, row, column, c)
			                     : sum_halves(&f, row, column, c, s->operation == PTX_DO_MMA_BF16, sums);
		}
	for (unsigned i = 0; i < 4; i++)
		memcpy(w->reg + (size_t)s->d[i] * PTX_LANES, out[i], sizeof out[i]);
}
