#include "quantise/quantise.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "base/floats.h"
#include "base/number.h"
#include "quantise/blocks.h"

static block_encoder encoder_of(enum dtype type)
{
	block_encoder e = block_encoder_32(type);

	e = e ? e : block_encoder_256(type);
	e = e ? e : block_encoder_levels(type);
	return e ? e : block_encoder_points(type);
}

bool quantise_supported(enum dtype type) { return quantise_readable(type) || encoder_of(type) || row_encoder_of(type); }

float quantise_max(enum dtype type)
{
	const float half = 65504;

	switch (type) {
	case DTYPE_F32:
	case DTYPE_BF16: return FLT_MAX;
	case DTYPE_MXFP4: return 12 * 0x1p124f;
	case DTYPE_F16: return half;
	case DTYPE_Q4_0: return half * 7;
	case DTYPE_Q4_1: return half;
	case DTYPE_Q5_0: return half * 15;
	case DTYPE_Q5_1: return half;
	case DTYPE_Q8_0:
	case DTYPE_IQ4_NL: return half * 113;
	case DTYPE_Q2_K: return half * 15;
	case DTYPE_Q3_K: return half * 31 * 3;
	case DTYPE_Q4_K:
	case DTYPE_Q5_K: return half * 63;
	case DTYPE_Q6_K: return half * 127 * 31;
	case DTYPE_IQ4_XS: return half * 31 * 113;
	case DTYPE_NVFP4: return 448 * 6;
	case DTYPE_IQ4_KS:
	case DTYPE_IQ5_KS: return 0x1p126f; /* what is nearest is finite, too */
	case DTYPE_IQ2_KS: return half * 15 * 22;
	case DTYPE_TQ1_0:
	case DTYPE_TQ2_0:
	case DTYPE_Q1_0: return half;
	case DTYPE_Q2_0: return half * 2;
	case DTYPE_IQ1_S:
	case DTYPE_IQ1_M: return half * 15;
	case DTYPE_IQ2_XXS:
	case DTYPE_IQ2_XS:
	case DTYPE_IQ2_S: return half * 31 * 25 / 8; /* not all numbers may have the largest magnitude */
	case DTYPE_IQ3_XXS: return half * 31 * 36 / 4;
	case DTYPE_IQ3_S: return half * 31 * 9;
	default: return 0;
	}
}

bool quantise_readable(enum dtype type) { return floats_hold(type); }

void quantise_read(enum dtype type, const uint8_t *row, uint64_t n, float *x)
{
	assert(quantise_readable(type));
	floats_read(x, row, type, n);
}

uint16_t block_half(const struct block *b, float scale, float *is)
{
	uint16_t h = number_to_half((float)((double)scale * number_power(-b->power)));

	*is = (float)((double)number_from_half(h) * number_power(b->power));
	return h;
}

/* Of the power of two by which the largest of the numbers becomes one in [1, 2). */
static int power_of(const float *x, uint64_t n)
{
	uint32_t max = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t magnitude = number_bits(x[i]) & 0x7fffffff;
		max = magnitude > max ? magnitude : max;
	}
	return max ? -number_exponent(number_of_bits(max)) : 0;
}

static double mean_of(const float *importance, uint64_t n)
{
	double sum = 0;

	for (uint64_t i = 0; importance && i < n; i++)
		sum += importance[i];
	return sum / (double)n;
}

/* Importances as they are, but for those so much below their mean that the search would not care at all; all the same
 * where the mean is 0. */
static void make_ready(struct block *b, const float *x, int power, const float *importance, double mean, int n)
{
	double factor = number_power(power);

	b->source = x;
	b->power = power;
	for (int i = 0; i < n; i++) {
		double w = mean > 0 ? importance[i] / mean : 1;
		b->x[i] = (float)((double)x[i] * factor);
		b->w[i] = (float)(w < 1e-4 ? 1e-4 : w);
	}
}

void row_block(const struct row *r, uint64_t at, struct block *b)
{
	make_ready(b, r->x + at, r->power, r->importance ? r->importance + at : NULL, r->mean, BLOCK_MAX);
}

void quantise_row(enum dtype type, const float *x, const float *importance, uint64_t n, uint8_t *out)
{
	const struct dtype_facts *f = &dtype_table[type];
	block_encoder encode = encoder_of(type);
	row_encoder encode_row = row_encoder_of(type);
	struct block b;

	assert(quantise_supported(type) && n % f->block == 0);
	if (encode_row) {
		encode_row(&(struct row){ x, importance, n, power_of(x, n), mean_of(importance, n) }, out);
		return;
	}
	if (!encode) {
		floats_write(out, type, x, n);
		return;
	}
	for (uint64_t i = 0; i < n; i += f->block, out += f->bytes) {
		const float *w = importance ? importance + i : NULL;
		make_ready(&b, x + i, power_of(x + i, f->block), w, mean_of(w, f->block), f->block);
		encode(&b, out);
	}
}
