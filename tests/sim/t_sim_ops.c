/* tests/sim/t_sim_ops.c - every kernel of tests/sim/ops.s against an expectation written anew here, on edge values.
 *
 * The formulas below are independent of sim/valu.def: other helpers, other shapes. f16 goes through double and
 * nearbyint.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/sim/sim_run.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;

static u64 state = 0x243f6a8885a308d3ull;
static u32 draw(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(state >> 32);
}
static const u32 edges[] = {
	0,          0x80000000, 1,          0xffffffff, 0x7fffffff, 0x3f800000, 0xbf800000, 0x40490fdb,
	0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x4f000000,
	0xcf000000, 0x4f800000, 0x3effffff, 0x3f000000, 0xc0200000, 0x7bff7bff, 0x3c003c00, 0x80008000,
	0x7fff8000, 0xff00ff01, 0x00ff00ff, 0x12345678, 0x0000001f, 0x00200008, 0x33800000, 0x477fe000,
	0x477fefff, 0x38800000, 0x387fffff, 0x4b7fffff, 0x7c00fc00, 0x04000001, 0x41200000
};
static u32 value(void)
{
	u32 r = draw();
	if (r & 1)
		return edges[(r >> 8) % (sizeof edges / sizeof edges[0])];
	if ((r & 6) == 0)
		return 0x30000000u + draw() % 0x20000000u + (draw() & 0x80000000u);
	return draw();
}

static float F(u64 x)
{
	u32 u = (u32)x;
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static u32 B(float f)
{
	u32 u;
	memcpy(&u, &f, 4);
	return u;
}
static double D(u64 x)
{
	double f;
	memcpy(&f, &x, 8);
	return f;
}
static u64 DB(double f)
{
	u64 u;
	memcpy(&u, &f, 8);
	return u;
}
static double H(u64 x)
{
	int e = (int)(x >> 10 & 31), m = (int)(x & 1023);
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
	return x >> 15 & 1 ? -v : v;
}
static u32 HB(double v)
{
	u32 s = signbit(v) ? 0x8000 : 0;
	double a = fabs(v);
	if (isnan(v))
		return 0x7e00;
	if (a >= 65520)
		return s | 0x7c00;
	int e;
	(void)frexp(a, &e);
	if (a == 0)
		return s;
	e = e - 11 < -24 ? -24 : e - 11;
	double n = nearbyint(ldexp(a, -e));
	if (n >= 2048) {
		n /= 2;
		e++;
	}
	return n < 1024 ? s | (u32)n : s | (u32)(e + 25) << 10 | ((u32)n - 1024);
}
static u32 HZ(float f) /* toward zero */
{
	u32 h = HB(f);
	if (isnan(f) || isinf(f))
		return h;
	return fabs(H(h)) > fabs((double)f) ? h - 1 : h;
}
static i64 S(u64 x, unsigned n) { return (i64)(x << (64 - n)) >> (64 - n); }
static u32 byte(u64 x, unsigned k) { return (u32)(x >> 8 * k & 255); }
static u32 half(u64 x, unsigned k) { return (u32)(x >> 16 * k & 65535); }
static u32 both(u64 lo, u64 hi) { return (u32)((lo & 65535) | hi << 16); }
static u64 keep(u64 old, u64 v) { return (old & 0xffff0000u) | (v & 0xffffu); }
static u32 clampi(double v, double lo, double hi)
{
	return isnan(v) ? 0 : (u32)(i64)(v < lo ? lo : v > hi ? hi : trunc(v));
}
static float minf2(float a, float b)
{
	return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static float maxf2(float a, float b)
{
	return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static i64 mid(i64 a, i64 b, i64 c)
{
	i64 lo = a < b ? a : b, hi = a < b ? b : a;
	return c < lo ? lo : c > hi ? hi : c;
}
static u32 rev(u32 x)
{
	u32 r = 0;
	for (int i = 0; i < 32; i++)
		r |= (x >> i & 1) << (31 - i);
	return r;
}
static u32 ones(u32 x)
{
	u32 n = 0;
	for (; x; x >>= 1)
		n += x & 1;
	return n;
}
static u32 top(u32 x)
{
	for (u32 i = 0; i < 32; i++)
		if (x >> (31 - i) & 1)
			return i;
	return ~0u;
}
static u32 low(u32 x)
{
	for (u32 i = 0; i < 32; i++)
		if (x >> i & 1)
			return i;
	return ~0u;
}
static u32 signs(u32 x) { return x == 0 || x == ~0u ? ~0u : top(x >> 31 ? ~x : x); }
static i64 dots(u64 a, u64 b, unsigned bits, int sa, int sb)
{
	i64 s = 0;
	for (unsigned k = 0; k < 32; k += bits) {
		u64 x = a >> k & ((1u << bits) - 1), y = b >> k & ((1u << bits) - 1);
		s += (sa ? S(x, bits) : (i64)x) * (sb ? S(y, bits) : (i64)y);
	}
	return s;
}
static u32 sat32(i64 v) { return (u32)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v); }
static u32 pick(u64 a, u64 b, u64 s)
{
	u32 r = 0;
	for (unsigned k = 0; k < 4; k++) {
		u32 n = byte(s, k),
		    v = n < 4     ? byte(b, n)
		        : n < 8   ? byte(a, n - 4)
		        : n < 12  ? (half(n < 10 ? b : a, n & 1) >> 15 ? 255 : 0)
		        : n == 12 ? 0
		                  : 255;
		r |= v << 8 * k;
	}
	return r;
}
static u32 class_of(float f)
{
	u32 u = B(f);
	if (isnan(f))
		return u & 0x400000 ? 2 : 1;
	int k = fpclassify(f) == FP_INFINITE    ? 0
	        : fpclassify(f) == FP_NORMAL    ? 1
	        : fpclassify(f) == FP_SUBNORMAL ? 2
	                                        : 3;
	return signbit(f) ? 4u << k : 512u >> k;
}
/* Transcendentals flush denormals on both sides. */
static float flush(float f) { return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f; }
static u32 T(double v) { return B(flush((float)v)); }

#define lane (l)
#define A32 ((u32)a)
#define B32 ((u32)b)
#define C32 ((u32)c)
#define AF F(a)
#define BF F(b)
#define CF F(c)
#define OLD half(c, 0)
/* name, kind (w one word, d two words, m lane mask in vcc, c word and mask), expected; a b c are v[1:2] v[3:4] v[5:6],
 * vcc the lane's bit, l the lane */
/* clang-format off */
#define ROWS(X) \
	X(mov_b32, w, a) \
	X(cvt_f32_i32, w, B((float)(i32)a)) \
	X(cvt_f32_u32, w, B((float)A32)) \
	X(cvt_u32_f32, w, clampi(AF, 0, 4294967295.0)) \
	X(cvt_i32_f32, w, clampi(AF, -2147483648.0, 2147483647.0)) \
	X(cvt_f16_f32, w, keep(c, HB(AF))) \
	X(cvt_f32_f16, w, B((float)H(a & 65535))) \
	X(cvt_f32_ubyte0, w, B((float)byte(a, 0))) \
	X(cvt_f32_ubyte3, w, B((float)byte(a, 3))) \
	X(fract_f32, w, B(fminf(AF - floorf(AF), 0x1.fffffep-1f))) \
	X(trunc_f32, w, B(truncf(AF))) \
	X(ceil_f32, w, B(ceilf(AF))) \
	X(rndne_f32, w, B(rintf(AF))) \
	X(floor_f32, w, B(floorf(AF))) \
	X(exp_f32, w, T(exp2(flush(AF)))) \
	X(log_f32, w, T(log2(flush(AF)))) \
	X(rcp_f32, w, T(1 / (double)flush(AF))) \
	X(rsq_f32, w, T(1 / sqrt(flush(AF)))) \
	X(sqrt_f32, w, T(sqrt(flush(AF)))) \
	X(not_b32, w, A32 ^ ~0u) \
	X(bfrev_b32, w, rev(A32)) \
	X(frexp_exp_i32_f32, w, exponent(AF)) \
	X(frexp_mant_f32, w, B(mantissa(AF))) \
	X(cvt_f16_u16, w, keep(c, HB(half(a, 0)))) \
	X(cvt_f16_i16, w, keep(c, HB((double)S(a, 16)))) \
	X(cvt_u16_f16, w, keep(c, clampi(H(a & 65535), 0, 65535))) \
	X(cvt_i16_f16, w, keep(c, clampi(H(a & 65535), -32768, 32767))) \
	X(rcp_f16, w, keep(c, HB((float)(1 / H(a & 65535))))) \
	X(sqrt_f16, w, keep(c, HB((float)sqrt(H(a & 65535))))) \
	X(floor_f16, w, keep(c, HB(floor(H(a & 65535))))) \
	X(trunc_f16, w, keep(c, HB(trunc(H(a & 65535))))) \
	X(ffbh_u32, w, top(A32)) \
	X(ffbl_b32, w, low(A32)) \
	X(ffbh_i32, w, signs(A32)) \
	X(clz_i32_u32, w, top(A32)) \
	X(ctz_i32_b32, w, low(A32)) \
	X(cls_i32, w, signs(A32)) \
	X(cvt_i32_i16, w, (u32)S(a, 16)) \
	X(cvt_u32_u16, w, half(a, 0)) \
	X(not_b16, w, keep(c, ~a)) \
	X(add_f32, w, B(AF + BF)) \
	X(sub_f32, w, B(AF - BF)) \
	X(subrev_f32, w, B(BF - AF)) \
	X(mul_f32, w, B(AF * BF)) \
	X(mul_i32_i24, w, (u32)(S(a, 24) * S(b, 24))) \
	X(mul_hi_i32_i24, w, (u32)((S(a, 24) * S(b, 24)) >> 32)) \
	X(mul_u32_u24, w, (u32)((a & 0xffffff) * (b & 0xffffff))) \
	X(mul_hi_u32_u24, w, (u32)(((a & 0xffffff) * (b & 0xffffff)) >> 32)) \
	X(min_i32, w, (i32)a < (i32)b ? A32 : B32) \
	X(max_i32, w, (i32)a > (i32)b ? A32 : B32) \
	X(min_u32, w, A32 < B32 ? A32 : B32) \
	X(max_u32, w, A32 > B32 ? A32 : B32) \
	X(lshlrev_b32, w, B32 << (a % 32)) \
	X(lshrrev_b32, w, B32 >> (a % 32)) \
	X(ashrrev_i32, w, (u32)((i32)b >> (a % 32))) \
	X(and_b32, w, a & b) \
	X(or_b32, w, a | b) \
	X(xor_b32, w, a ^ b) \
	X(xnor_b32, w, ~(a ^ b)) \
	X(add_nc_u32, w, a + b) \
	X(sub_nc_u32, w, a - b) \
	X(subrev_nc_u32, w, b - a) \
	X(fmac_f32, w, B(fmaf(AF, BF, CF))) \
	X(add_f16, w, keep(c, HB(H(a & 65535) + H(b & 65535)))) \
	X(sub_f16, w, keep(c, HB(H(a & 65535) - H(b & 65535)))) \
	X(mul_f16, w, keep(c, HB(H(a & 65535) * H(b & 65535)))) \
	X(fmac_f16, w, keep(c, HB(fma(H(a & 65535), H(b & 65535), H(OLD))))) \
	X(mul_lo_u32, w, A32 * B32) \
	X(mul_hi_u32, w, ((u64)A32 * B32) >> 32) \
	X(mul_hi_i32, w, (u32)(((i64)(i32)a * (i32)b) >> 32)) \
	X(bfm_b32, w, ((1ull << (a % 32)) - 1) << (b % 32)) \
	X(bcnt_u32_b32, w, ones(A32) + B32) \
	X(mbcnt_lo_u32_b32, w, ones(A32 & (u32)((1ull << lane) - 1)) + B32) \
	X(mbcnt_hi_u32_b32, w, b) \
	X(ldexp_f32, w, B(ldexpf(AF, (i32)b))) \
	X(add_nc_u16, w, keep(c, a + b)) \
	X(sub_nc_u16, w, keep(c, a - b)) \
	X(mul_lo_u16, w, keep(c, half(a, 0) * half(b, 0))) \
	X(max_u16, w, keep(c, half(a, 0) > half(b, 0) ? a : b)) \
	X(max_i16, w, keep(c, S(a, 16) > S(b, 16) ? a : b)) \
	X(min_u16, w, keep(c, half(a, 0) < half(b, 0) ? a : b)) \
	X(min_i16, w, keep(c, S(a, 16) < S(b, 16) ? a : b)) \
	X(lshlrev_b16, w, keep(c, b << (a % 16))) \
	X(lshrrev_b16, w, keep(c, half(b, 0) >> (a % 16))) \
	X(ashrrev_i16, w, keep(c, (u64)(S(b, 16) >> (a % 16)))) \
	X(pack_b32_f16, w, both(nan16(a), nan16(b))) \
	X(cvt_pk_u16_u32, w, both(A32 > 65535 ? 65535 : a, B32 > 65535 ? 65535 : b)) \
	X(cvt_pk_i16_i32, w, both((u64)mid(-32768, 32767, (i32)a), (u64)mid(-32768, 32767, (i32)b))) \
	X(add_nc_i32, w, a + b) \
	X(sub_nc_i32, w, a - b) \
	X(pk_add_i16, w, both(a + b, half(a, 1) + half(b, 1))) \
	X(pk_sub_i16, w, both(a - b, half(a, 1) - half(b, 1))) \
	X(pk_mul_lo_u16, w, both(a * b, half(a, 1) * half(b, 1))) \
	X(pk_add_u16, w, both(a + b, half(a, 1) + half(b, 1))) \
	X(pk_add_f16, w, both(HB(H(half(a, 0)) + H(half(b, 0))), HB(H(half(a, 1)) + H(half(b, 1))))) \
	X(pk_mul_f16, w, both(HB(H(half(a, 0)) * H(half(b, 0))), HB(H(half(a, 1)) * H(half(b, 1))))) \
	X(pk_max_i16, w, both(S(a, 16) > S(b, 16) ? a : b, (i32)a >> 16 > (i32)b >> 16 ? half(a, 1) : half(b, 1))) \
	X(pk_min_u16, w, both(half(a, 0) < half(b, 0) ? a : b, half(a, 1) < half(b, 1) ? half(a, 1) : half(b, 1))) \
	X(pk_lshlrev_b16, w, both(half(b, 0) << (half(a, 0) % 16), half(b, 1) << (half(a, 1) % 16))) \
	X(pk_ashrrev_i16, w, both((u64)(S(b, 16) >> (half(a, 0) % 16)), (u64)((i32)b >> 16 >> (half(a, 1) % 16)))) \
	X(min_f32, w, B(minf2(AF, BF))) \
	X(max_f32, w, B(maxf2(AF, BF))) \
	X(cvt_pk_rtz_f16_f32, w, both(HZ(AF), HZ(BF))) \
	X(minimum_f32, w, B(isnan(AF) || isnan(BF) ? NAN : minf2(AF, BF))) \
	X(maximum_f32, w, B(isnan(AF) || isnan(BF) ? NAN : maxf2(AF, BF))) \
	X(mad_i32_i24, w, (u64)(S(a, 24) * S(b, 24)) + c) \
	X(mad_u32_u24, w, (a & 0xffffff) * (b & 0xffffff) + c) \
	X(bfe_u32, w, A32 >> (b % 32) & ((1ull << (c % 32)) - 1)) \
	X(bfe_i32, w, c % 32 ? (u64)S((u64)((i64)(i32)a >> (b % 32)), c % 32) : 0) \
	X(bfi_b32, w, (a & b) | (c & ~a)) \
	X(fma_f32, w, B(fmaf(AF, BF, CF))) \
	X(alignbit_b32, w, ((u64)A32 << 32 | B32) >> (c % 32)) \
	X(alignbyte_b32, w, ((u64)A32 << 32 | B32) >> 8 * (c % 4)) \
	X(min3_i32, w, (u64)least(least((i32)a, (i32)b), (i32)c)) \
	X(min3_u32, w, (u64)least(least(A32, B32), C32)) \
	X(max3_i32, w, (u64)-least(least(-(i64)(i32)a, -(i64)(i32)b), -(i64)(i32)c)) \
	X(max3_u32, w, (u64)-least(least(-(i64)A32, -(i64)B32), -(i64)C32)) \
	X(med3_i32, w, (u64)mid((i32)a, (i32)b, (i32)c)) \
	X(med3_u32, w, (u64)mid(A32, B32, C32)) \
	X(sad_u8, w, c + far(byte(a, 0), byte(b, 0)) + far(byte(a, 1), byte(b, 1)) + \
		far(byte(a, 2), byte(b, 2)) + far(byte(a, 3), byte(b, 3))) \
	X(sad_u16, w, c + far(half(a, 0), half(b, 0)) + far(half(a, 1), half(b, 1))) \
	X(sad_u32, w, c + far(A32, B32)) \
	X(lerp_u8, w, lerp(a, b, c)) \
	X(perm_b32, w, pick(a, b, c)) \
	X(xor3_b32, w, a ^ b ^ c) \
	X(xad_u32, w, (a ^ b) + c) \
	X(lshl_add_u32, w, (A32 << (b % 32)) + C32) \
	X(add_lshl_u32, w, (A32 + B32) << (c % 32)) \
	X(add3_u32, w, a + b + c) \
	X(lshl_or_b32, w, A32 << (b % 32) | c) \
	X(and_or_b32, w, (a & b) | c) \
	X(or3_b32, w, a | b | c) \
	X(mad_u32_u16, w, half(a, 0) * half(b, 0) + c) \
	X(mad_i32_i16, w, (u64)(S(a, 16) * S(b, 16)) + c) \
	X(fma_f16, w, keep(c, HB(fma(H(half(a, 0)), H(half(b, 0)), H(OLD))))) \
	X(dot2_f32_f16, w, B((float)(H(half(a, 0)) * H(half(b, 0)) + H(half(a, 1)) * H(half(b, 1)) + CF))) \
	X(dot4_u32_u8, w, (u64)dots(a, b, 8, 0, 0) + c) \
	X(dot8_u32_u4, w, (u64)dots(a, b, 4, 0, 0) + c) \
	X(dot4_i32_i8, w, (u64)dots(a, b, 8, 1, 1) + c) \
	X(dot4_i32_iu8_ss, w, (u64)dots(a, b, 8, 1, 1) + c) \
	X(dot4_i32_iu8_us, w, (u64)dots(a, b, 8, 0, 1) + c) \
	X(dot4_i32_iu8_clamp, w, sat32(dots(a, b, 8, 1, 1) + (i32)c)) \
	X(dot2_f32_bf16, w, B((float)((double)F(a << 16) * F(b << 16) + \
		(double)F(a & 0xffff0000u) * F(b & 0xffff0000u) + CF))) \
	X(pk_mad_u16, w, both(half(a, 0) * half(b, 0) + c, half(a, 1) * half(b, 1) + half(c, 1))) \
	X(pk_fma_f16, w, both(HB(fma(H(half(a, 0)), H(half(b, 0)), H(half(c, 0)))), \
		HB(fma(H(half(a, 1)), H(half(b, 1)), H(half(c, 1)))))) \
	X(fma_mix_f32, w, B(fmaf(AF, BF, CF))) \
	X(minmax_i32, w, (u64)mid(INT32_MAX, (i32)c, least((i32)a, (i32)b))) \
	X(maxmin_u32, w, (u64)least(-least(-(i64)A32, -(i64)B32), C32)) \
	X(dual_mov_mul, d, A32 | (u64)B(F(a >> 32) * BF) << 32) \
	X(dual_swap, d, c >> 32 | c << 32) \
	X(dual_fmac, d, B(fmaf(AF, F(a >> 32), CF)) | (u64)B(BF + F(b >> 32)) << 32) \
	X(cndmask_b32, w, vcc ? b : a) \
	X(add_co_ci_u32, c, (u64)A32 + B32 + vcc) \
	X(sub_co_ci_u32, c, ((u64)A32 - B32 - vcc) & 0x1ffffffffull) \
	X(add_co_u32, c, (u64)A32 + B32) \
	X(sub_co_u32, c, ((u64)A32 - B32) & 0x1ffffffffull) \
	X(mad_u64_u32, d, (u64)A32 * B32 + c) \
	X(fmaak_f32, w, B(fmaf(AF, BF, F(0x40490fdb)))) \
	X(fmamk_f32, w, B(fmaf(AF, F(0x40490fdb), BF))) \
	X(add_f64, d, DB(D(a) + D(b))) \
	X(mul_f64, d, DB(D(a) * D(b))) \
	X(fma_f64, d, DB(fma(D(a), D(b), D(c)))) \
	X(lshlrev_b64, d, b << (a % 64)) \
	X(lshrrev_b64, d, b >> (a % 64)) \
	X(ashrrev_i64, d, (u64)((i64)b >> (a % 64))) \
	X(cvt_f64_f32, d, DB((double)AF)) \
	X(cvt_f32_f64, w, B((float)D(a))) \
	X(cvt_f64_i32, d, DB((double)(i32)a)) \
	X(cvt_i32_f64, w, clampi(D(a), -2147483648.0, 2147483647.0)) \
	X(rcp_f64, d, DB(1 / D(a))) \
	X(neg_abs, w, B(fabsf(BF) - AF)) \
	X(omod, w, B(AF * BF * 2)) \
	X(clamp, w, B(fminf(fmaxf(AF + BF, 0), 1))) \
	X(uclamp, w, (u64)A32 + B32 > ~0u ? ~0u : a + b) \
	X(inline_half, w, B(0.5f + AF)) \
	X(inline_int, w, a - 7) \
	X(literal, w, a ^ 0x12345678) \
	X(op_sel, w, (c & 65535) | (u64)((half(a, 1) * half(b, 0) + half(c, 1)) & 65535) << 16) \
	X(pk_sel, w, both(half(a, 1) + half(b, 0), half(a, 0) + half(b, 1))) \
	X(mix_half, w, B(fmaf((float)H(half(a, 1)), (float)H(half(b, 0)), -CF))) \
	X(mixlo, w, keep(c, HB(fmaf((float)H(half(a, 0)), (float)H(half(b, 0)), (float)H(half(c, 0)))))) \
	X(mixhi, w, both(c, HB(fmaf((float)H(half(a, 0)), (float)H(half(b, 0)), (float)H(half(c, 0)))))) \
	X(dpp_quad, w, V[1][l ^ 3]) \
	X(dpp_shr, w, l % 16 < 3 ? c : V[1][l - 3]) \
	X(dpp_shl, w, l % 16 + 5 > 15 ? 0 : V[1][l + 5]) \
	X(dpp_ror, w, V[1][l / 16 * 16 + (l + 10) % 16]) \
	X(dpp_mirror, w, V[1][l ^ 15]) \
	X(dpp_half, w, V[1][l ^ 7]) \
	X(dpp_share, w, V[1][l / 16 * 16 + 7]) \
	X(dpp_xmask, w, V[1][l ^ 9]) \
	X(dpp_mask, w, l < 16 && (l / 4 == 1 || l / 4 == 2) ? V[1][l ^ 1] : c) \
	X(dpp_add, w, B(F(V[1][l ^ 2]) + BF)) \
	X(dpp8, w, V[1][l / 8 * 8 + "\7\0\6\1\5\2\4\3"[l % 8]]) \
	X(writelane, w, l == 5 ? 42 : c) \
	X(permlane16, w, V[1][l / 16 * 16 + (l % 16 == 0 ? 15 : l % 16 == 1 ? 1 : l % 16 < 8 ? 0 : 15)]) \
	X(permlanex16, w, V[1][(l ^ 16) / 16 * 16 + (l % 16 == 0 ? 3 : l % 16 == 8 ? 7 : 0)]) \
	X(swap, d, c >> 32 | c << 32) \
	X(cmp_lt_f32, m, AF < BF) \
	X(cmp_eq_f32, m, AF == BF) \
	X(cmp_le_f32, m, AF <= BF) \
	X(cmp_gt_f32, m, AF > BF) \
	X(cmp_lg_f32, m, islessgreater(AF, BF)) \
	X(cmp_ge_f32, m, AF >= BF) \
	X(cmp_o_f32, m, !isunordered(AF, BF)) \
	X(cmp_u_f32, m, isunordered(AF, BF)) \
	X(cmp_nge_f32, m, !(AF >= BF)) \
	X(cmp_nlt_f32, m, !(AF < BF)) \
	X(cmp_lt_i32, m, (i32)a < (i32)b) \
	X(cmp_eq_i32, m, A32 == B32) \
	X(cmp_ge_i32, m, (i32)a >= (i32)b) \
	X(cmp_lt_u32, m, A32 < B32) \
	X(cmp_gt_u32, m, A32 > B32) \
	X(cmp_ne_u32, m, A32 != B32) \
	X(cmp_class_f32, m, (class_of(AF) & b) != 0) \
	X(cmp_lt_f16, m, H(half(a, 0)) < H(half(b, 0))) \
	X(cmp_ge_f16, m, H(half(a, 0)) >= H(half(b, 0))) \
	X(cmp_lt_i16, m, S(a, 16) < S(b, 16)) \
	X(cmp_gt_u16, m, half(a, 0) > half(b, 0)) \
	X(cmp_lt_f64, m, D(a) < D(b)) \
	X(cmp_ge_f64, m, D(a) >= D(b)) \
	X(cmp_lt_i64, m, (i64)a < (i64)b) \
	X(cmp_gt_u64, m, a > b) \
	X(cmp_eq_u64, m, a == b) \
	X(sdwa_byte, w, B((float)byte(a, 2))) \
	X(sdwa_add, w, half(a, 1) + (u64)S(byte(b, 1), 8)) \
	X(sdwa_keep, w, (c & 0xff00ffffu) | (byte(a, 0) | byte(b, 3)) << 16) \
	X(readlane, s, V[1][13]) \
	X(readfirstlane, s, V[1][0])
/* clang-format on */

static u32 exponent(float f)
{
	int e = 0;
	if (isfinite(f))
		(void)frexpf(f, &e);
	return (u32)e;
}
static float mantissa(float f)
{
	int e;
	return isfinite(f) ? frexpf(f, &e) : f;
}
static i64 least(i64 a, i64 b) { return a < b ? a : b; }
static u32 far(u32 a, u32 b) { return a < b ? b - a : a - b; }
static u32 lerp(u64 a, u64 b, u64 c)
{
	u32 r = 0;
	for (unsigned k = 0; k < 4; k++)
		r |= (byte(a, k) + byte(b, k) + (byte(c, k) & 1)) / 2 << 8 * k;
	return r;
}
static u32 nan16(u64 h) { return (h & 0x7fff) > 0x7c00 ? (u32)(h | 0x200) & 65535 : half(h, 0); }

static u32 V[7][32];
#define FN(name, kind, expr) \
	static u64 want_##name(u64 a, u64 b, u64 c, u32 vcc, unsigned l) \
	{ \
		(void)a; \
		(void)b; \
		(void)c; \
		(void)vcc; \
		(void)l; \
		return (u64)(expr); \
	}
ROWS(FN)
static const struct row {
	const char *name;
	char kind;
	u64 (*want)(u64, u64, u64, u32, unsigned);
} rows[] = {
#define ROW(name, kind, expr) { #name, #kind[0], want_##name },
	ROWS(ROW)
};

static u32 memory[11][32];

/* Both NaN is agreement: payloads are not compared. width in bits of the float format that the row's result could
 * have. */
static bool agree(const struct row *r, u64 got, u64 want)
{
	bool f64 = strstr(r->name, "f64") != NULL && r->kind == 'd';
	if (got == want)
		return true;
	if (f64)
		return isnan(D(got)) && isnan(D(want));
	if (r->kind == 'd')
		return agree(&(struct row){ "x", 'w', NULL }, got >> 32, want >> 32) &&
		       agree(&(struct row){ "x", 'w', NULL }, got & ~0u, want & ~0u);
	if (isnan(F(got)) && isnan(F(want)))
		return true;
	for (unsigned k = 0; k < 2; k++)
		if (half(got, k) != half(want, k) && !(isnan(H(half(got, k))) && isnan(H(half(want, k)))))
			return false;
	return strstr(r->name, "16") || strstr(r->name, "mix");
}

static void check_lane(const struct row *r, const char *target, unsigned l)
{
	u64 a = V[1][l] | (u64)V[2][l] << 32, b = V[3][l] | (u64)V[4][l] << 32, c = V[5][l] | (u64)V[6][l] << 32;
	u32 vcc = 0x5a5a1234u >> l & 1;
	u64 want = r->want(a, b, c, vcc, l), got = memory[6][l];
	bool flag = memory[8][l] >> l & 1, flag_ok = true;
	if (r->kind == 'd')
		got |= (u64)memory[7][l] << 32;
	if (r->kind == 'm')
		got = flag;
	if (r->kind == 's')
		got = memory[9][l];
	if (r->kind == 'c') {
		flag_ok = flag == (want >> 32 & 1);
		want &= 0xffffffffu;
	}
	if (r->kind == 'w')
		want &= 0xffffffffu;
	if (!agree(r, got, want) || !flag_ok)
		fail_msg("%s %s lane %u: a %016llx b %016llx c %016llx vcc %u gave %016llx flag %d, expected %016llx",
		         target, r->name, l, (unsigned long long)a, (unsigned long long)b, (unsigned long long)c, vcc,
		         (unsigned long long)got, flag, (unsigned long long)want);
}

static void test_ops(void **unused)
{
	(void)unused;
	unsigned ran = 0;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = sim_bench_open("ops", sim_bench_targets[t]);
		struct error err = { .code = ERROR_NONE };
		assert_true(sim_map(b.dev, memory, sizeof memory, "values", true, &err));
		for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
			char name[64];
			snprintf(name, sizeof name, "op_%s", rows[i].name);
			if (!sim_find(b.object, name))
				continue;
			for (unsigned round = 0; round < 12; round++) {
				struct sim_options opt = { .memory = (enum sim_memory_mode)(round % 3), .seed = round };
				u64 arg = (u64)(uintptr_t)memory;
				for (unsigned k = 1; k < 7; k++)
					for (unsigned l = 0; l < 32; l++)
						memory[k - 1][l] = V[k][l] = value();
				if (!sim_bench_run(&b, name, &arg, 1, 1, 32, &opt, &err))
					fail_msg("%s", err.text);
				for (unsigned l = 0; l < 32; l++)
					check_lane(&rows[i], sim_bench_targets[t], l);
			}
			ran++;
		}
		sim_bench_close(&b);
	}
	assert_true(ran > 500);
}

int main(void)
{
	unsetenv("JITRUN_SIM_KEEP"); /* these objects are not ours, or damaged */
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ops) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
