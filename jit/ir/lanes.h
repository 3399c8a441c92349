/* jit/ir/lanes.h - the arithmetic of one lane that C has no operator for: bit casts, f16, f32 to integer, dot products
 * of bytes, byte tables.
 *
 * Owns: the helpers the expressions of ops.def name, in plain C whose results do not depend on the host. Nothing here
 * looks at a kernel. Every function is a chain of selects without a branch or a loop that depends on its input, so that
 * a loop over lanes vectorises; keep it so.
 */
#ifndef JIT_LANES_H
#define JIT_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float bits_f32(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static inline uint32_t f32_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

static inline double bits_f64(uint64_t u)
{
	double d;
	memcpy(&d, &u, 8);
	return d;
}
static inline uint64_t f64_bits(double d)
{
	uint64_t u;
	memcpy(&u, &d, 8);
	return u;
}

/* Sums and products that wrap, of numbers of every type that ops.def has. */
static inline double lane_add_f64(double a, double b) { return a + b; }
static inline float lane_add_f32(float a, float b) { return a + b; }
static inline int32_t lane_add_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
static inline int64_t lane_add_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline double lane_sub_f64(double a, double b) { return a - b; }
static inline float lane_sub_f32(float a, float b) { return a - b; }
static inline int32_t lane_sub_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
static inline int64_t lane_sub_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline double lane_mul_f64(double a, double b) { return a * b; }
static inline float lane_mul_f32(float a, float b) { return a * b; }
static inline int32_t lane_mul_i32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
static inline int64_t lane_mul_i64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int32_t lane_shl_i32(int32_t a, int64_t n) { return (int32_t)((uint32_t)a << n); }
static inline int64_t lane_shl_i64(int64_t a, int64_t n) { return (int64_t)((uint64_t)a << n); }
#define lane_add(a, b) \
	_Generic((a), float : lane_add_f32, double : lane_add_f64, int32_t : lane_add_i32, int64_t : lane_add_i64)(a, b)
#define lane_sub(a, b) \
	_Generic((a), float : lane_sub_f32, double : lane_sub_f64, int32_t : lane_sub_i32, int64_t : lane_sub_i64)(a, b)
#define lane_mul(a, b) \
	_Generic((a), float : lane_mul_f32, double : lane_mul_f64, int32_t : lane_mul_i32, int64_t : lane_mul_i64)(a, b)
#define lane_shl(a, n) _Generic((a), int32_t : lane_shl_i32, int64_t : lane_shl_i64)(a, n)

/* Quotients of integers: every divisor gives one, and a = quotient * b + remainder, wrapping. The division that is done
 * has a divisor that it may have. */
static inline int32_t lane_div_i32(int32_t a, int32_t b)
{
	const bool odd = b == 0 || b == -1;
	const int32_t quotient = a / (odd ? 1 : b);

	return b == 0 ? -1 : b == -1 ? lane_sub_i32(0, a) : quotient;
}
static inline int32_t lane_div_unsigned(int32_t a, int32_t b)
{
	const uint32_t quotient = (uint32_t)a / (b ? (uint32_t)b : 1);

	return b ? (int32_t)quotient : -1;
}
static inline float lane_div_f32(float a, float b) { return a / b; }
static inline double lane_div_f64(double a, double b) { return a / b; }
#define lane_div(a, b) _Generic((a), float : lane_div_f32, double : lane_div_f64, int32_t : lane_div_i32)(a, b)
static inline int32_t lane_rem(int32_t a, int32_t b) { return lane_sub_i32(a, lane_mul_i32(lane_div_i32(a, b), b)); }
static inline int32_t lane_rem_unsigned(int32_t a, int32_t b)
{
	return lane_sub_i32(a, lane_mul_i32(lane_div_unsigned(a, b), b));
}
static inline uint32_t lane_unsigned_i32(int32_t a) { return (uint32_t)a; }
static inline uint64_t lane_unsigned_i64(int64_t a) { return (uint64_t)a; }
#define lane_unsigned(a) _Generic((a), int32_t : lane_unsigned_i32, int64_t : lane_unsigned_i64)(a)
static inline int32_t lane_mul_high(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
static inline int32_t lane_mul_high_unsigned(int32_t a, int32_t b)
{
	return (int32_t)((uint64_t)(uint32_t)a * (uint32_t)b >> 32);
}
/* All bits below the highest that is set. */
static inline uint32_t lane_smear(uint32_t a)
{
	a |= a >> 1;
	a |= a >> 2;
	a |= a >> 4;
	a |= a >> 8;
	return a | a >> 16;
}
static inline int32_t lane_ones(uint32_t a)
{
	a -= a >> 1 & 0x55555555u;
	a = (a & 0x33333333u) + (a >> 2 & 0x33333333u);
	return (int32_t)(((a + (a >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

/* What a word holds that is still to be given (ops.def: fawait, fgive): a NaN that no arithmetic makes, and what is
 * given in its place. Its last byte is -128, so that no four quotients of an int8 block, -127 to 127, are it. */
#define IR_EMPTY 0xffa5c380u
#define IR_EMPTY_GIVEN 0x7fffffffu

/* Round to nearest even; f must lie in [-2^30, 2^30]. */
static inline int32_t f32_to_i32_rne(float f) { return (int32_t)rintf(f); }

/* Towards zero. What is converted lies in range, whatever f is. */
static inline int32_t f32_to_i32_cut(float f)
{
	const float inside = f >= -0x1p31f && f < 0x1p31f ? f : 0;

	return f >= 0x1p31f ? INT32_MAX : f < -0x1p31f ? INT32_MIN : (int32_t)inside;
}
static inline uint32_t f32_to_u32_cut(float f)
{
	const float inside = f > 0 && f < 0x1p32f ? f : 0;

	return f >= 0x1p32f ? UINT32_MAX : (uint32_t)inside;
}

static inline int64_t f64_to_i64_cut(double d)
{
	const double inside = d >= -0x1p63 && d < 0x1p63 ? d : 0;

	return d >= 0x1p63 ? INT64_MAX : d < -0x1p63 ? INT64_MIN : (int64_t)inside;
}
static inline uint64_t f64_to_u64_cut(double d)
{
	const double inside = d > 0 && d < 0x1p64 ? d : 0;

	return d >= 0x1p64 ? UINT64_MAX : (uint64_t)inside;
}
static inline int32_t f64_to_i32_cut(double d)
{
	const double inside = d > -0x1p31 - 1 && d < 0x1p31 ? d : 0;

	return d >= 0x1p31 ? INT32_MAX : d <= -0x1p31 - 1 ? INT32_MIN : (int32_t)inside;
}
static inline int32_t f64_to_u32_cut(double d)
{
	const double inside = d > 0 && d < 0x1p32 ? d : 0;

	return d >= 0x1p32 ? -1 : (int32_t)(uint32_t)inside;
}
static inline int32_t f32_to_u32_cut_bits(float f) { return (int32_t)f32_to_u32_cut(f); }
static inline int64_t f64_to_u64_cut_bits(double d) { return (int64_t)f64_to_u64_cut(d); }
#define lane_to_int_cut(a) _Generic((a), float : f32_to_i32_cut, double : f64_to_i64_cut)(a)
#define lane_to_unsigned_cut(a) _Generic((a), float : f32_to_u32_cut_bits, double : f64_to_u64_cut_bits)(a)

/* Of both sizes. from: an integer as a float of the type that a has. */
#define lane_fma(a, b, c) _Generic((a), float : fmaf, double : fma)(a, b, c)
#define lane_sqrt(a) _Generic((a), float : sqrtf, double : sqrt)(a)
#define lane_round(a) _Generic((a), float : rintf, double : rint)(a)
#define lane_floor(a) _Generic((a), float : floorf, double : floor)(a)
#define lane_ceil(a) _Generic((a), float : ceilf, double : ceil)(a)
#define lane_trunc(a) _Generic((a), float : truncf, double : trunc)(a)
static inline float lane_abs_f32(float a) { return bits_f32(f32_bits(a) & 0x7fffffffu); }
static inline float lane_neg_f32(float a) { return bits_f32(f32_bits(a) ^ 0x80000000u); }
static inline double lane_abs_f64(double a) { return bits_f64(f64_bits(a) & INT64_MAX); }
static inline double lane_neg_f64(double a) { return bits_f64(f64_bits(a) ^ UINT64_C(1) << 63); }
#define lane_abs(a) _Generic((a), float : lane_abs_f32, double : lane_abs_f64)(a)
#define lane_neg(a) _Generic((a), float : lane_neg_f32, double : lane_neg_f64)(a)

/* Shifts, counts without sign. */
static inline int32_t lane_shr_u32(uint32_t a, int64_t n) { return (int32_t)(a >> n); }
static inline int64_t lane_shr_u64(uint64_t a, int64_t n) { return (int64_t)(a >> n); }
static inline int32_t lane_shl_by_u32(uint32_t a, uint32_t n) { return n < 32 ? (int32_t)(a << n) : 0; }
static inline int64_t lane_shl_by_u64(uint64_t a, uint64_t n) { return n < 64 ? (int64_t)(a << n) : 0; }
static inline int32_t lane_shr_by_u32(uint32_t a, uint32_t n) { return n < 32 ? (int32_t)(a >> n) : 0; }
static inline int64_t lane_shr_by_u64(uint64_t a, uint64_t n) { return n < 64 ? (int64_t)(a >> n) : 0; }
static inline int32_t lane_sar_by_i32(int32_t a, uint32_t n) { return a >> (n < 32 ? n : 31); }
static inline int64_t lane_sar_by_i64(int64_t a, uint64_t n) { return a >> (n < 64 ? n : 63); }
#define lane_shr(a, n) _Generic((a), uint32_t : lane_shr_u32, uint64_t : lane_shr_u64)(a, n)
#define lane_shl_by(a, n) _Generic((a), uint32_t : lane_shl_by_u32, uint64_t : lane_shl_by_u64)(a, n)
#define lane_shr_by(a, n) _Generic((a), uint32_t : lane_shr_by_u32, uint64_t : lane_shr_by_u64)(a, n)
#define lane_sar_by(a, n) _Generic((a), int32_t : lane_sar_by_i32, int64_t : lane_sar_by_i64)(a, n)

/* Exact. A NaN becomes quiet and keeps its sign and payload, as the F16C instructions do it. */
static inline float f16_f32(uint16_t h)
{
	const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
	/* as if normal: move the fields and rebias; infinity and NaN rebias twice, to the largest exponent */
	const uint32_t normal = (magnitude << 13) + (112u << 23);
	const uint32_t special = ((magnitude << 13) + (224u << 23)) | (magnitude > 0x7c00u ? 0x400000u : 0u);
	/* a denormal is its 10 bits times 2^-24: put them below the leading one of 2^-14, then take that one away */
	const uint32_t denormal = f32_bits(bits_f32((magnitude << 13) + (113u << 23)) - bits_f32(113u << 23));
	const uint32_t bits = magnitude >= 0x7c00u ? special : magnitude >= 0x0400u ? normal : denormal;

	return bits_f32(bits | sign);
}

/* Round to nearest even; beyond the range to infinity. A NaN becomes quiet and keeps its sign and upper payload. */
static inline uint16_t f32_f16(float f)
{
	const uint32_t bits = f32_bits(f), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
	/* adding just under half a unit, and one more when the last kept bit is odd, rounds by carry */
	const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
	/* 0.5 has the unit 2^-24, so the sum rounds a small magnitude to a whole number of f16 denormal units */
	const uint32_t denormal = f32_bits(bits_f32(magnitude) + 0.5f) - 0x3f000000u;
	const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
	const uint32_t half = magnitude > 0x7f800000u    ? nan
	                      : magnitude >= 0x47800000u ? 0x7c00u
	                      : magnitude >= 0x38800000u ? normal
	                                                 : denormal;

	return (uint16_t)(half | sign);
}

/* c plus the sum over the four bytes of signed a times signed b, wrapping. */
static inline int32_t dot4_i8(int32_t a, int32_t b, int32_t c)
{
	const int32_t p0 = (int8_t)(a & 0xff) * (int8_t)(b & 0xff),
		      p1 = (int8_t)(a >> 8 & 0xff) * (int8_t)(b >> 8 & 0xff);
	const int32_t p2 = (int8_t)(a >> 16 & 0xff) * (int8_t)(b >> 16 & 0xff),
		      p3 = (int8_t)(a >> 24 & 0xff) * (int8_t)(b >> 24 & 0xff);

	return (int32_t)((uint32_t)c + (uint32_t)(p0 + p1 + p2 + p3));
}

/* The same with unsigned a. */
static inline int32_t dot4_u8i8(int32_t a, int32_t b, int32_t c)
{
	const int32_t p0 = (a & 0xff) * (int8_t)(b & 0xff), p1 = (a >> 8 & 0xff) * (int8_t)(b >> 8 & 0xff);
	const int32_t p2 = (a >> 16 & 0xff) * (int8_t)(b >> 16 & 0xff),
		      p3 = (a >> 24 & 0xff) * (int8_t)(b >> 24 & 0xff);

	return (int32_t)((uint32_t)c + (uint32_t)(p0 + p1 + p2 + p3));
}

/* Two halves, each the sum of two products that 16 bits hold. */
static inline int32_t dot2b_u8i8(int32_t a, int32_t b)
{
	const int32_t low = (a & 0xff) * (int8_t)(b & 0xff) + (a >> 8 & 0xff) * (int8_t)(b >> 8 & 0xff);
	const int32_t high = (a >> 16 & 0xff) * (int8_t)(b >> 16 & 0xff) + (a >> 24 & 0xff) * (int8_t)(b >> 24 & 0xff);

	return (int32_t)(((uint32_t)low & 0xffff) | (uint32_t)high << 16);
}

static inline int32_t iadd_16x2(int32_t a, int32_t b)
{
	return (int32_t)((((uint32_t)a + (uint32_t)b) & 0xffff) |
	                 (((uint32_t)a & 0xffff0000u) + ((uint32_t)b & 0xffff0000u)));
}

/* c plus the sum over the two halves of signed a times signed b, wrapping. */
static inline int32_t dot2_i16(int32_t a, int32_t b, int32_t c)
{
	const int32_t low = (int16_t)(a & 0xffff) * (int16_t)(b & 0xffff),
		      high = (int16_t)(a >> 16 & 0xffff) * (int16_t)(b >> 16 & 0xffff);

	return (int32_t)((uint32_t)c + (uint32_t)low + (uint32_t)high);
}

/* Numbers below the normal ones become zero. */
static inline float flush_f32(float x) { return f32_bits(x) & 0x7f800000u ? x : copysignf(0, x); }

/* a * b + c of bf16 a and b, rounded to 24 bits as if there were no least exponent; what is below the normal numbers
 * then becomes zero. Terms whose sum is so small, but not 0, are below 2^-100, so that a larger scale rounds them so.
 */
static inline float fma_flushed(float a, float b, float c)
{
	const float sum = fmaf(a, b, c);

	if (sum == 0 || !(fabsf(sum) <= 0x1p-126f))
		return sum;
	const float scaled = fmaf(a * 0x1p48f, b, c * 0x1p48f);
	return fabsf(scaled) < 0x1p-78f ? copysignf(0, sum) : scaled * 0x1p-48f;
}

/* vdpbf16ps: the upper halves are added first. */
static inline float dot2_bf16(uint32_t a, uint32_t b, float c)
{
	const float sum =
		fma_flushed(flush_f32(bits_f32(a & 0xffff0000u)), flush_f32(bits_f32(b & 0xffff0000u)), flush_f32(c));

	return fma_flushed(flush_f32(bits_f32(a << 16)), flush_f32(bits_f32(b << 16)), sum);
}

/* The byte tables of ilut16: the 16 levels that IQ4_NL and IQ4_XS name by 4 bits; the numbers of FP4 (E2M1), doubled,
 * plus 12; the levels of the IQ2 formats by 2 bits, and 4 for a minus; the levels of IQ3_XXS by 3 bits, and 8 for one;
 * the 16 levels of IQ4 plus 128; the lower and the upper 16 of the 32 levels of IQ5_KS, plus 128; the levels of IQ2_KS
 * by 2 bits, and 4 for its second list, plus 31.
 */
enum {
	LANES_TABLE_IQ4,
	LANES_TABLE_FP4,
	LANES_TABLE_IQ2,
	LANES_TABLE_IQ3,
	LANES_TABLE_IQ4_RAISED,
	LANES_TABLE_IQ5_LOWER,
	LANES_TABLE_IQ5_UPPER,
	LANES_TABLE_IQ2_KS,
	LANES_TABLES
};
static const int8_t lanes_table[LANES_TABLES][16] = {
	{ -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 },
	{ 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0 },
	{ 8, 25, 43, 0, -8, -25, -43, 0 },
	{ 4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62 },
	{ 1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15 },
	{ 2, 14, 25, 36, 45, 54, 63, 71, 78, 85, 92, 98, 104, 110, 116, 122 },
	{ 127, -123, -117, -111, -105, -99, -92, -85, -77, -69, -60, -51, -41, -31, -19, -7 },
	{ 0, 18, 32, 48, 5, 23, 37, 53 },
};
static inline int32_t ilut16_i8(int32_t a, int64_t table)
{
	const int8_t *t = lanes_table[table];

	return (int32_t)((uint32_t)(uint8_t)t[a & 15] | (uint32_t)(uint8_t)t[a >> 8 & 15] << 8 |
	                 (uint32_t)(uint8_t)t[a >> 16 & 15] << 16 | (uint32_t)(uint8_t)t[a >> 24 & 15] << 24);
}

#endif
