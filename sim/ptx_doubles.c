/* sim/ptx_doubles.c - what PTX instructions compute on floats of 64 bits, lane by lane. */
#include <math.h>
#include <string.h>

#include "sim/ptx_warp.h"

static double number(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

/* Arithmetic makes one NaN. */
static uint64_t bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof u);
	return isnan(d) ? UINT64_C(0x7fffffffffffffff) : u;
}

static float narrow_number(uint64_t bits)
{
	const uint32_t u = (uint32_t)bits;
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

static uint64_t narrow_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return isnan(f) ? 0x7fffffff : u;
}

/* A NaN becomes the number whose upper bit alone is set; what does not fit the nearest number that does. */
static uint64_t to_signed(double d, int width)
{
	const double end = ldexp(1, width - 1);
	const uint64_t top = UINT64_C(1) << (width - 1);

	return isnan(d) || trunc(d) < -end ? top : trunc(d) >= end ? top - 1 : (uint64_t)(int64_t)d;
}

static uint64_t to_unsigned(double d, int width)
{
	const double end = ldexp(1, width);

	return isnan(d)          ? UINT64_C(1) << (width - 1)
	       : d <= -1         ? 0
	       : trunc(d) >= end ? UINT64_MAX
	       : d < 0           ? 0
	                         : (uint64_t)d;
}

#define ROW(name, expression) \
	case PTX_DO_##name: \
		for (unsigned l = 0; l < PTX_LANES; l++) \
			if (mask >> l & 1) \
				d[l] = (expression)&s->mask; \
		return true

static bool compute(const struct ptx_step *s, uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                    uint32_t mask)
{
	switch (s->operation) {
		ROW(DADD, bits(number(a[l]) + number(b[l])));
		ROW(DSUB, bits(number(a[l]) - number(b[l])));
		ROW(DMUL, bits(number(a[l]) * number(b[l])));
		ROW(DFMA, bits(fma(number(a[l]), number(b[l]), number(c[l]))));
		ROW(DDIV, bits(number(a[l]) / number(b[l])));
		ROW(DSQRT, bits(sqrt(number(a[l]))));
		ROW(DLT, (uint64_t)(number(a[l]) < number(b[l])));
		ROW(DGT, (uint64_t)(number(a[l]) > number(b[l])));
		ROW(DLE, (uint64_t)(number(a[l]) <= number(b[l])));
		ROW(DEQ, (uint64_t)(number(a[l]) == number(b[l])));
		ROW(DNEU, (uint64_t)(number(a[l]) != number(b[l])));
		ROW(DROUND, bits(rint(number(a[l]))));
		ROW(DFLOOR, bits(floor(number(a[l]))));
		ROW(DCEIL, bits(ceil(number(a[l]))));
		ROW(DTRUNC, bits(trunc(number(a[l]))));
		ROW(DOF_FLOAT, bits((double)narrow_number(a[l])));
		ROW(DTO_FLOAT, narrow_bits((float)number(a[l])));
		ROW(DOF_S32, bits((double)(int32_t)(uint32_t)a[l]));
		ROW(DOF_S64, bits((double)(int64_t)a[l]));
		ROW(DOF_U64, bits((double)a[l]));
		ROW(DTO_S32, to_signed(number(a[l]), 32));
		ROW(DTO_U32, to_unsigned(number(a[l]), 32));
		ROW(DTO_S64, to_signed(number(a[l]), 64));
		ROW(DTO_U64, to_unsigned(number(a[l]), 64));
		ROW(SIGNED_64, (uint64_t)(int64_t)(int32_t)(uint32_t)a[l]);
	default: return false;
	}
}

bool ptx_compute_doubles(const struct ptx_step *s, uint64_t *d, const uint64_t *const o[3], uint32_t mask)
{
	return compute(s, d, o[0], o[1], o[2], mask);
}
