/* sim/ptx_math.c - what PTX instructions that touch registers alone compute, lane by lane. */
#include <math.h>
#include <string.h>

#include "sim/ptx_warp.h"

static float number(uint64_t bits)
{
	const uint32_t u = (uint32_t)bits;
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

/* Arithmetic makes one NaN. */
static uint64_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return isnan(f) ? 0x7fffffff : u;
}

static uint64_t widen(uint64_t half)
{
	const uint32_t sign = (uint32_t)(half >> 15 & 1) << 31, exponent = half >> 10 & 31, fraction = half & 1023;

	if (exponent == 31)
		return fraction ? 0x7fffffff : sign | 0x7f800000;
	return (bits(ldexpf((float)(exponent ? fraction | 1024 : fraction), (int)(exponent ? exponent : 1) - 25))) |
	       sign;
}

/* To the nearest, ties to even: a unit of the result is a power of two, by which the number is divided exactly. */
static uint64_t narrow(uint64_t wide)
{
	const float f = number(wide), size = fabsf(f);
	const uint64_t sign = wide >> 16 & 0x8000;
	int exponent;

	if (isnan(f))
		return 0x7fff;
	if (size >= 65520.0f)
		return sign | 0x7c00;
	frexpf(size, &exponent);
	int unit = size != 0 && exponent - 11 > -24 ? exponent - 11 : -24;
	uint32_t units = (uint32_t)rintf(ldexpf(size, -unit));
	/* a carry into the next exponent comes out right */
	return sign | (units + (unit > -24 ? (uint32_t)(unit + 24) * 1024 : 0));
}

static int64_t s32(uint64_t v) { return (int32_t)(uint32_t)v; }

static uint64_t to_integer(uint64_t v)
{
	const float f = number(v);

	return isnan(f)       ? 0
	       : f >= 0x1p31f ? INT32_MAX
	       : f < -0x1p31f ? (uint32_t)INT32_MIN
	                      : (uint32_t)(int32_t)rintf(f);
}

/* Towards zero; what does not fit becomes the nearest number that does. */
static uint64_t cut_to_integer(uint64_t v)
{
	const float f = number(v);

	return isnan(f) ? 0 : f >= 0x1p31f ? INT32_MAX : f < -0x1p31f ? (uint32_t)INT32_MIN : (uint32_t)(int32_t)f;
}

static uint64_t cut_to_unsigned(uint64_t v)
{
	const float f = number(v);

	return isnan(f) || f <= -1 ? 0 : f >= 0x1p32f ? UINT32_MAX : (uint32_t)(int64_t)f;
}

/* Of a NaN and a number the number; zeros are ordered by their signs. */
static uint64_t min_or_max(uint64_t a, uint64_t b, bool is_min)
{
	const float x = number(a), y = number(b);

	if (isnan(x) || isnan(y))
		return !isnan(x) ? a : !isnan(y) ? b : 0x7fffffff;
	if (x == y)
		return is_min ? a | b : a & b;
	return (x < y) == is_min ? a : b;
}

/* By 0 the manual defines nothing, so it is a number that nobody hopes for. */
static uint64_t divided(uint64_t a, uint64_t b) { return b ? a / b : a ^ 0x2b2b2b2b; }

static uint64_t dot(uint64_t a, uint64_t b, uint64_t c, bool is_signed)
{
	uint32_t sum = (uint32_t)c;

	for (int k = 0; k < 32; k += 8)
		sum += (uint32_t)((is_signed ? (int8_t)(a >> k) : (int)(uint8_t)(a >> k)) * (int8_t)(b >> k));
	return sum;
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t choice)
{
	const uint64_t both = (uint32_t)a | b << 32;
	uint64_t out = 0;

	for (int k = 0; k < 4; k++) {
		unsigned c = choice >> 4 * k & 15;
		uint64_t byte = both >> 8 * (c & 7) & 0xff;
		out |= (c & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << 8 * k;
	}
	return out;
}

static uint64_t logic(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
	uint64_t out = 0;

	for (unsigned k = 0; k < 8; k++)
		if (table >> k & 1)
			out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	return out;
}

static uint64_t funnel_left(uint64_t a, uint64_t b, uint64_t count)
{
	unsigned n = count & 31;
	return n ? b << n | (uint32_t)a >> (32 - n) : b;
}

#define LANES(expression) \
	do { \
		for (unsigned l = 0; l < PTX_LANES; l++) \
			if (mask >> l & 1) \
				d[l] = (expression)&s->mask; \
	} while (0)
#define ROW(name, expression) \
	case PTX_DO_##name: LANES(expression); return true

static bool compute_floats(const struct ptx_step *s, uint64_t *d, const uint64_t *a, const uint64_t *b,
                           const uint64_t *c, uint32_t mask)
{
	switch (s->operation) {
		ROW(FADD, bits(number(a[l]) + number(b[l])));
		ROW(FSUB, bits(number(a[l]) - number(b[l])));
		ROW(FMUL, bits(number(a[l]) * number(b[l])));
		ROW(FFMA, bits(fmaf(number(a[l]), number(b[l]), number(c[l]))));
		ROW(FDIV, bits(number(a[l]) / number(b[l])));
		ROW(FMIN, min_or_max(a[l], b[l], true));
		ROW(FMAX, min_or_max(a[l], b[l], false));
		ROW(FRCP, bits(1 / number(a[l])));
		ROW(FSQRT, bits(sqrtf(number(a[l]))));
		ROW(FLT, (uint64_t)(number(a[l]) < number(b[l])));
		ROW(FGT, (uint64_t)(number(a[l]) > number(b[l])));
		ROW(FLE, (uint64_t)(number(a[l]) <= number(b[l])));
		ROW(F2I, to_integer(a[l]));
		ROW(I2F, bits((float)s32(a[l])));
		ROW(FEQ, (uint64_t)(number(a[l]) == number(b[l])));
		ROW(FNEU, (uint64_t)(number(a[l]) != number(b[l])));
		ROW(FROUND, bits(rintf(number(a[l]))));
		ROW(FFLOOR, bits(floorf(number(a[l]))));
		ROW(FCEIL, bits(ceilf(number(a[l]))));
		ROW(FTRUNC, bits(truncf(number(a[l]))));
		ROW(F2I_CUT, cut_to_integer(a[l]));
		ROW(F2U_CUT, cut_to_unsigned(a[l]));
		ROW(U2F, bits((float)(uint32_t)a[l]));
		ROW(WIDEN, widen(a[l]));
		ROW(NARROW, narrow(a[l]));
	default: return false;
	}
}

/* What an operand that only caches look at is. */
enum { POLICY = 1 };

static bool compute_words(const struct ptx_step *s, uint64_t *d, const uint64_t *a, const uint64_t *b,
                          const uint64_t *c, const uint64_t *e, uint32_t mask)
{
	switch (s->operation) {
		ROW(POLICY, POLICY);
		ROW(MOVE, a[l]);
		ROW(ADD, a[l] + b[l]);
		ROW(SUB, a[l] - b[l]);
		ROW(MUL, a[l] * b[l]);
		ROW(MAD, a[l] * b[l] + c[l]);
		ROW(DIV, divided(a[l], b[l]));
		ROW(REM, b[l] ? a[l] % b[l] : a[l]);
		ROW(MIN_U, a[l] < b[l] ? a[l] : b[l]);
		ROW(MAX_U, a[l] > b[l] ? a[l] : b[l]);
		ROW(MUL_HIGH_S, (uint64_t)(s32(a[l]) * s32(b[l])) >> 32);
		ROW(MUL_HIGH_U, a[l] * b[l] >> 32);
		ROW(ONES, (uint64_t)__builtin_popcountll(a[l]));
		ROW(CLZ, a[l] ? (uint64_t)__builtin_clz((uint32_t)a[l]) : 32);
		ROW(MIN_S, s32(a[l]) < s32(b[l]) ? a[l] : b[l]);
		ROW(MAX_S, s32(a[l]) > s32(b[l]) ? a[l] : b[l]);
		ROW(AND, a[l] & b[l]);
		ROW(OR, a[l] | b[l]);
		ROW(XOR, a[l] ^ b[l]);
		ROW(LOP3, logic(a[l], b[l], c[l], e[l]));
		ROW(SHL, b[l] < 32 ? a[l] << b[l] : 0);
		ROW(SHR_U, b[l] < 32 ? a[l] >> b[l] : 0);
		ROW(SHR_S, (uint64_t)(s32(a[l]) >> (b[l] < 31 ? b[l] : 31)));
		ROW(SHF, funnel_left(a[l], b[l], c[l]));
		ROW(EQ, (uint64_t)(a[l] == b[l]));
		ROW(NE, (uint64_t)(a[l] != b[l]));
		ROW(GT, (uint64_t)(s32(a[l]) > s32(b[l])));
		ROW(GE, (uint64_t)(s32(a[l]) >= s32(b[l])));
		ROW(LT, (uint64_t)(s32(a[l]) < s32(b[l])));
		ROW(LE, (uint64_t)(s32(a[l]) <= s32(b[l])));
		ROW(GE_U, (uint64_t)(a[l] >= b[l]));
		ROW(LE_U, (uint64_t)(a[l] <= b[l]));
		ROW(LT_U, (uint64_t)(a[l] < b[l]));
		ROW(SELECT, c[l] ? a[l] : b[l]);
		ROW(PERMUTE, permute(a[l], b[l], c[l]));
		ROW(DOT_SS, dot(a[l], b[l], c[l], true));
		ROW(DOT_US, dot(a[l], b[l], c[l], false));
		ROW(MAD_WIDE_16, (uint64_t)((int16_t)a[l] * (int16_t)b[l]) + c[l]);
		ROW(NOT_P, !a[l]);
	default: return false;
	}
}

static bool compute_wide(const struct ptx_step *s, uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                         uint32_t mask)
{
	switch (s->operation) {
		ROW(WIDE_S, (uint64_t)(s32(a[l]) * s32(b[l])));
		ROW(WIDE_U, a[l] * b[l]);
		ROW(MAD_WIDE_U, a[l] * b[l] + c[l]);
		ROW(JOIN, a[l] | b[l] << 32);
		ROW(MIN_S64, (int64_t)a[l] < (int64_t)b[l] ? a[l] : b[l]);
		ROW(MAX_S64, (int64_t)a[l] > (int64_t)b[l] ? a[l] : b[l]);
		ROW(SHL_64, b[l] < 64 ? a[l] << b[l] : 0);
		ROW(SHR_S64, (uint64_t)((int64_t)a[l] >> (b[l] < 63 ? b[l] : 63)));
		ROW(SHR_U64, b[l] < 64 ? a[l] >> b[l] : 0);
		ROW(LT_S64, (uint64_t)((int64_t)a[l] < (int64_t)b[l]));
		ROW(LE_S64, (uint64_t)((int64_t)a[l] <= (int64_t)b[l]));
		ROW(GE_S64, (uint64_t)((int64_t)a[l] >= (int64_t)b[l]));
	default: return false;
	}
}

/* From other lanes: of all as they were before. */
static bool compute_across(const struct ptx_step *s, uint64_t *d, const uint64_t *a, const uint64_t *b, uint32_t mask)
{
	uint64_t from[PTX_LANES];

	if (s->operation == PTX_DO_ANY || s->operation == PTX_DO_ALL) {
		const bool any = s->operation == PTX_DO_ANY;
		uint64_t is = !any;
		for (unsigned l = 0; l < PTX_LANES; l++)
			is = any ? is | a[l] : is & a[l];
		LANES(is);
		return true;
	}
	if (s->operation != PTX_DO_BUTTERFLY && s->operation != PTX_DO_FROM_LANE)
		return false;
	memcpy(from, a, sizeof from);
	for (unsigned l = 0; l < PTX_LANES; l++)
		if (mask >> l & 1)
			d[l] = from[(s->operation == PTX_DO_BUTTERFLY ? l ^ b[l] : b[l]) & 31];
	return true;
}

/* The halves of a word, or the words of 64 bits. */
static bool split(struct ptx_warp *w, const struct ptx_step *s, const uint64_t *from, uint32_t mask)
{
	const unsigned bits = s->operation == PTX_DO_SPLIT ? 16 : 32;

	for (unsigned l = 0; l < PTX_LANES; l++) {
		const uint64_t value = from[l];
		for (unsigned k = 0; k < 2 && mask >> l & 1; k++)
			w->reg[(size_t)s->d[k] * PTX_LANES + l] =
				value >> bits * k & (bits == 16 ? 0xffff : UINT32_MAX);
	}
	return true;
}

bool ptx_compute(struct ptx_warp *w, const struct ptx_step *s, uint32_t mask)
{
	const uint64_t *o[4];

	for (unsigned k = 0; k < 4; k++)
		o[k] = s->s[k] == PTX_NO_REGISTER ? NULL : w->reg + (size_t)s->s[k] * PTX_LANES;
	if (s->operation == PTX_DO_SPLIT || s->operation == PTX_DO_SPLIT_64)
		return split(w, s, o[0], mask);
	uint64_t *d = w->reg + (size_t)s->d[0] * PTX_LANES;
	return s->d[0] != PTX_NO_REGISTER &&
	       (compute_floats(s, d, o[0], o[1], o[2], mask) || compute_words(s, d, o[0], o[1], o[2], o[3], mask) ||
	        compute_wide(s, d, o[0], o[1], o[2], mask) || ptx_compute_doubles(s, d, o, mask) ||
	        compute_across(s, d, o[0], o[1], mask));
}
