/* sim/lanes.h - what one lane computes: number formats and the odd arithmetic of single instructions.
 *
 * Owns: conversions between f16, bf16, f32 and bits, and helpers that expressions of valu.def name. Pure functions
 * of their arguments and of the host's rounding mode; branch-free where the lane loops must vectorise.
 */
#ifndef SIM_LANES_H
#define SIM_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#define LANE static inline __attribute__((always_inline, unused))

LANE float bits_f(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}
LANE uint32_t f_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}
LANE double bits_d(uint64_t u)
{
	double f;
	memcpy(&f, &u, 8);
	return f;
}
LANE uint64_t d_bits(double f)
{
	uint64_t u;
	memcpy(&u, &f, 8);
	return u;
}

/* f16 to f32, exact; signalling NaNs become quiet. */
LANE float h_f(uint32_t h)
{
	uint32_t sign = (h & 0x8000u) << 16, em = h & 0x7fffu;
	uint32_t normal = (em << 13) + 0x38000000u;
	uint32_t special = 0x7f800000u | (em & 0x3ffu) << 13 | ((em & 0x3ffu) ? 0x400000u : 0);
	uint32_t tiny = f_bits((float)(int32_t)em * 0x1p-24f);
	uint32_t r = em >= 0x7c00u ? special : em < 0x400u ? tiny : normal;
	return bits_f(sign | r);
}

/* f32 to f16, round to nearest even. */
LANE uint32_t f_h(float f)
{
	uint32_t u = f_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
	uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13;
	uint32_t tiny = f_bits(bits_f(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;
	uint32_t r = a > 0x7f800000u    ? 0x7e00u | (a >> 13 & 0x3ffu)
	             : a >= 0x477ff000u ? 0x7c00u
	             : a < 0x38800000u  ? tiny
	                                : normal;
	return sign | r;
}

/* f32 to f16, toward zero: overflow becomes the largest finite value. */
LANE uint32_t f_h_rtz(float f)
{
	uint32_t u = f_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu, r;
	if (a > 0x7f800000u)
		r = 0x7e00u | (a >> 13 & 0x3ffu);
	else if (a == 0x7f800000u)
		r = 0x7c00u;
	else if (a >= 0x47800000u)
		r = 0x7bffu;
	else if (a >= 0x38800000u)
		r = (a - 0x38000000u) >> 13;
	else
		r = (uint32_t)(int32_t)(bits_f(a) * 0x1p24f);
	return sign | r;
}

/* A double, rounded once to f32's odd neighbour, so that a later rounding to fewer bits is right. */
LANE float d_f_odd(double d)
{
	float f = (float)d;
	double back = (double)f;
	if (back != d && !(f_bits(f) & 1) && !isinf(f) && !isnan(f)) {
		uint32_t u = f_bits(f);
		bool up = fabs(back) < fabs(d);
		f = bits_f(up ? u + 1 : u - 1);
	}
	return f;
}
LANE uint32_t d_h(double d) { return f_h(d_f_odd(d)); }

LANE float bf_f(uint32_t b) { return bits_f(b << 16); }
LANE uint32_t f_bf(float f)
{
	uint32_t u = f_bits(f);
	return (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16 | 0x40u) & 0xffffu : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}

/* IEEE minNum and maxNum with -0 below +0. */
LANE float min_num(float a, float b)
{
	float r = a < b || (a == b && (f_bits(a) >> 31)) ? a : b;
	return a != a ? b : b != b ? a : r;
}
LANE float max_num(float a, float b)
{
	float r = a > b || (a == b && !(f_bits(a) >> 31)) ? a : b;
	return a != a ? b : b != b ? a : r;
}
LANE double min_num_d(double a, double b)
{
	double r = a < b || (a == b && (d_bits(a) >> 63)) ? a : b;
	return a != a ? b : b != b ? a : r;
}
LANE double max_num_d(double a, double b)
{
	double r = a > b || (a == b && !(d_bits(a) >> 63)) ? a : b;
	return a != a ? b : b != b ? a : r;
}
/* IEEE 754-2019 minimum and maximum: NaN wins. */
LANE float minimum(float a, float b) { return a != a ? a : b != b ? b : min_num(a, b); }
LANE float maximum(float a, float b) { return a != a ? a : b != b ? b : max_num(a, b); }
LANE double minimum_d(double a, double b) { return a != a ? a : b != b ? b : min_num_d(a, b); }
LANE double maximum_d(double a, double b) { return a != a ? a : b != b ? b : max_num_d(a, b); }
LANE float med3(float a, float b, float c)
{
	float lo = min_num(a, b), hi = max_num(a, b);
	bool nan = a != a || b != b || c != c;
	return nan ? min_num(lo, c) : max_num(lo, min_num(hi, c));
}
LANE int32_t imin(int32_t a, int32_t b) { return a < b ? a : b; }
LANE int32_t imax(int32_t a, int32_t b) { return a > b ? a : b; }
LANE uint32_t umin(uint32_t a, uint32_t b) { return a < b ? a : b; }
LANE uint32_t umax(uint32_t a, uint32_t b) { return a > b ? a : b; }
LANE int32_t imed3(int32_t a, int32_t b, int32_t c) { return imax(imin(a, b), imin(imax(a, b), c)); }
LANE uint32_t umed3(uint32_t a, uint32_t b, uint32_t c) { return umax(umin(a, b), umin(umax(a, b), c)); }

/* Float to integer, toward zero, saturating; NaN becomes 0. */
LANE int32_t f_i(float f)
{
	float c = f < -0x1p31f ? -0x1p31f : f;
	int32_t r = (int32_t)(c >= 0x1p31f || c != c ? 0.0f : c);
	return f >= 0x1p31f ? INT32_MAX : r;
}
LANE uint32_t f_u(float f)
{
	float c = f > 0 ? f : 0.0f;
	uint32_t lo = (uint32_t)(int32_t)(c < 0x1p31f ? c : 0.0f);
	uint32_t hi = (uint32_t)(int32_t)(c >= 0x1p31f && c < 0x1p32f ? c - 0x1p31f : 0.0f) + 0x80000000u;
	return c >= 0x1p32f ? UINT32_MAX : c >= 0x1p31f ? hi : lo;
}
LANE int32_t d_i(double f) { return f != f ? 0 : f >= 0x1p31 ? INT32_MAX : f <= -0x1p31 ? INT32_MIN : (int32_t)f; }
LANE uint32_t d_u(double f) { return !(f > 0) ? 0 : f >= 0x1p32 ? UINT32_MAX : (uint32_t)f; }
LANE int32_t sat_i(int32_t v, int32_t lo, int32_t hi) { return v < lo ? lo : v > hi ? hi : v; }
LANE int32_t sat_i64(int64_t v) { return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v; }

LANE uint32_t bfe_u(uint32_t a, uint32_t off, uint32_t n) { return n ? a >> off & (0xffffffffu >> (32 - n)) : 0; }
LANE int32_t bfe_i(uint32_t a, uint32_t off, uint32_t n)
{
	if (n == 0)
		return 0;
	return off + n < 32 ? (int32_t)(a << (32 - off - n)) >> (32 - n) : (int32_t)a >> off;
}
LANE uint32_t brev(uint32_t v)
{
	v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
	v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
	v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(v);
}
LANE uint32_t clz_u(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : ~0u; }
LANE uint32_t ctz_u(uint32_t v) { return v ? (uint32_t)__builtin_ctz(v) : ~0u; }
LANE uint32_t cls_i(uint32_t v) /* leading bits equal to the sign; all equal: -1 */
{
	uint32_t x = v ^ (uint32_t)((int32_t)v >> 31);
	return x ? (uint32_t)__builtin_clz(x) : ~0u;
}
LANE uint32_t perm_byte(uint32_t a, uint32_t b, uint32_t sel)
{
	uint64_t v = (uint64_t)a << 32 | b;
	if (sel >= 13)
		return 0xff;
	if (sel == 12)
		return 0;
	if (sel >= 8)
		return (v >> ((sel - 8) * 16 + 15) & 1) ? 0xff : 0;
	return (uint32_t)(v >> sel * 8) & 0xff;
}
LANE uint32_t perm(uint32_t a, uint32_t b, uint32_t s)
{
	return perm_byte(a, b, s & 0xff) | perm_byte(a, b, s >> 8 & 0xff) << 8 | perm_byte(a, b, s >> 16 & 0xff) << 16 |
	       perm_byte(a, b, s >> 24) << 24;
}
LANE int32_t sx24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
LANE int32_t sx16(uint32_t v) { return (int16_t)(uint16_t)v; }
LANE int32_t sx8(uint32_t v) { return (int8_t)(uint8_t)v; }
LANE uint32_t pk(uint32_t lo, uint32_t hi) { return (lo & 0xffffu) | hi << 16; }
LANE uint32_t absdiff(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

/* Class bits of v_cmp_class: sNaN qNaN -inf -normal -denormal -0 +0 +denormal +normal +inf. */
LANE uint32_t class_bits(bool sign, bool exp_max, bool exp_zero, bool man_zero, bool quiet)
{
	if (exp_max && !man_zero)
		return quiet ? 2 : 1;
	if (exp_max)
		return sign ? 4 : 512;
	if (!exp_zero)
		return sign ? 8 : 256;
	if (!man_zero)
		return sign ? 16 : 128;
	return sign ? 32 : 64;
}
LANE uint32_t class_f(uint32_t u)
{
	return class_bits(u >> 31, (u & 0x7f800000u) == 0x7f800000u, !(u & 0x7f800000u), !(u & 0x7fffffu), u >> 22 & 1);
}
LANE uint32_t class_h(uint32_t u)
{
	return class_bits(u >> 15 & 1, (u & 0x7c00u) == 0x7c00u, !(u & 0x7c00u), !(u & 0x3ffu), u >> 9 & 1);
}
LANE uint32_t class_d(uint64_t u)
{
	uint64_t e = u >> 52 & 0x7ff, m = u & 0xfffffffffffffull;
	return class_bits(u >> 63, e == 0x7ff, !e, !m, u >> 51 & 1);
}
LANE float flush_f(float f)
{
	uint32_t u = f_bits(f);
	return bits_f((u & 0x7f800000u) ? u : u & 0x80000000u);
}

/* a*b + c exactly, rounded to odd in double: rounding it to f32 afterwards, at any scale, rounds once. */
LANE double fma_odd(float a, float b, float c)
{
	double p = (double)a * (double)b, s = p + (double)c;
	if (isnan(s) || isinf(s))
		return s;
	double t = s - p, e = (p - (s - t)) + ((double)c - t);
	uint64_t u = d_bits(s);
	if (e != 0 && !(u & 1))
		u = (e > 0) == (s > 0) ? u + 1 : u - 1;
	return bits_d(u);
}
#endif
