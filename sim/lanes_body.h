/* sim/lanes_body.h - the lane kernels: one function per row of valu.def and vcmp.def, each a loop over 32 lanes.
 *
 * Owns: how a row's types are loaded and stored. Included by lanes_base.c and lanes_avx2.c, which differ in the
 * instruction set they are compiled for alone. A kernel's d never overlaps its sources.
 */
#include "sim/lanes.h"
#include "sim/wave.h"

typedef unsigned __int128 wide;

#define TYPE_f float
#define TYPE_h float
#define TYPE_d double
#define TYPE_u uint32_t
#define TYPE_i int32_t
#define TYPE_w uint32_t
#define TYPE_s int32_t
#define TYPE_U uint64_t
#define TYPE_I int64_t
#define TYPE_P uint32_t
#define TYPE_Q uint32_t
#define TYPE_x uint32_t
#define TYPE_M bool
#define TYPE_F uint32_t
#define TYPE_H uint32_t
#define TYPE_Z uint64_t
#define TYPE__ int
#define LOAD_f(p) bits_f((p)[l])
#define LOAD_h(p) h_f((p)[l] & 0xffffu)
#define LOAD_U(p) ((uint64_t)(p)[l + LANES] << 32 | (p)[l])
#define LOAD_I(p) ((int64_t)LOAD_U(p))
#define LOAD_Z(p) LOAD_U(p)
#define LOAD_d(p) bits_d(LOAD_U(p))
#define LOAD_u(p) ((p)[l])
#define LOAD_i(p) ((int32_t)(p)[l])
#define LOAD_w(p) ((p)[l] & 0xffffu)
#define LOAD_s(p) sx16((p)[l])
#define LOAD_P(p) ((p)[l])
#define LOAD_Q(p) ((p)[l])
#define LOAD_x(p) ((p)[l])
#define LOAD_F(p) ((p)[l])
#define LOAD_H(p) ((p)[l])
#define LOAD_M(p) ((p)[l] != 0)
#define LOAD__(p) 0
/* An invalid operation makes the NaN 0x7fc00000 on RDNA and 0xffc00000 on x86. */
#define STORE_f(e) \
	do { \
		uint32_t u_ = f_bits(e); \
		d[l] = u_ == 0xffc00000u ? 0x7fc00000u : u_; \
	} while (0)
#define STORE_h(e) \
	do { \
		uint32_t u_ = f_h(e); \
		d[l] = u_ == 0xfe00u ? 0x7e00u : u_; \
	} while (0)
#define STORE_e(e) \
	do { \
		uint32_t u_ = d_h(e); \
		d[l] = u_ == 0xfe00u ? 0x7e00u : u_; \
	} while (0)
#define STORE_U(e) \
	do { \
		uint64_t u_ = (e); \
		d[l] = (uint32_t)u_; \
		d[l + LANES] = (uint32_t)(u_ >> 32); \
	} while (0)
#define STORE_I(e) STORE_U((uint64_t)(e))
#define STORE_d(e) \
	do { \
		uint64_t r_ = d_bits(e); \
		STORE_U(r_ == 0xfff8000000000000ull ? 0x7ff8000000000000ull : r_); \
	} while (0)
#define STORE_u(e) d[l] = (e)
#define STORE_x(e) d[l] = (e)
#define STORE_P(e) d[l] = (e)
#define STORE_Q(e) d[l] = (e)
#define STORE_i(e) d[l] = (uint32_t)(e)
#define STORE_w(e) d[l] = (uint32_t)(e)&0xffffu
#define STORE_s(e) d[l] = (uint32_t)(e)&0xffffu
#define STORE_k(e) \
	do { \
		uint64_t r_ = (e); \
		d[l] = (uint32_t)r_; \
		d[l + LANES] = 0u - (uint32_t)(r_ >> 32 & 1); \
	} while (0)
#define STORE_K(e) \
	do { \
		wide r_ = (e); \
		STORE_U((uint64_t)r_); \
		d[l + 2 * LANES] = 0u - (uint32_t)(r_ >> 64 & 1); \
	} while (0)

LANE double frexp_mant_d(double a)
{
	int e;
	return isinf(a) || isnan(a) ? a : frexp(a, &e);
}
LANE int32_t frexp_exp_d(double a)
{
	int e;
	if (isinf(a) || isnan(a) || a == 0)
		return 0;
	(void)frexp(a, &e);
	return e;
}
LANE int32_t dot4(uint32_t a, uint32_t b, bool sa, bool sb)
{
	int32_t sum = 0;
	for (int k = 0; k < 32; k += 8) {
		int32_t x = sa ? sx8(a >> k) : (int32_t)(a >> k & 0xff),
			y = sb ? sx8(b >> k) : (int32_t)(b >> k & 0xff);
		sum += x * y;
	}
	return sum;
}
LANE int32_t dot8(uint32_t a, uint32_t b, bool sa, bool sb)
{
	int32_t sum = 0;
	for (int k = 0; k < 32; k += 4) {
		int32_t x = (int32_t)(a >> k & 15), y = (int32_t)(b >> k & 15);
		sum += (sa && x > 7 ? x - 16 : x) * (sb && y > 7 ? y - 16 : y);
	}
	return sum;
}
LANE int32_t dot_sat(int64_t sum, int32_t c, uint32_t par)
{
	return par & 256 ? sat_i64(sum + c) : (int32_t)((uint32_t)sum + (uint32_t)c);
}
LANE uint32_t dot_usat(uint32_t sum, uint32_t c, uint32_t par) { return par & 256 && sum + c < c ? ~0u : sum + c; }
LANE int32_t mad_sat(int64_t p, int32_t c, uint32_t par)
{
	return par & 256 ? sat_i64(p + c) : (int32_t)((uint32_t)p + (uint32_t)c);
}
LANE float dot2_f16(uint32_t a, uint32_t b, float c)
{
	return (float)((double)h_f(a & 0xffff) * h_f(b & 0xffff) + (double)h_f(a >> 16) * h_f(b >> 16) + c);
}
LANE double dot2_h(uint32_t a, uint32_t b, float c)
{
	return (double)h_f(a & 0xffff) * h_f(b & 0xffff) + (double)h_f(a >> 16) * h_f(b >> 16) + c;
}
LANE float dot2_bf16(uint32_t a, uint32_t b, float c)
{
	return (float)((double)bf_f(a & 0xffff) * bf_f(b & 0xffff) + (double)bf_f(a >> 16) * bf_f(b >> 16) + c);
}
LANE uint32_t pk_fma(uint32_t a, uint32_t b, uint32_t c)
{
	return pk(d_h((double)h_f(a & 0xffff) * h_f(b & 0xffff) + h_f(c & 0xffff)),
	          d_h((double)h_f(a >> 16) * h_f(b >> 16) + h_f(c >> 16)));
}
LANE uint32_t pk_sat(int32_t lo, int32_t hi)
{
	return pk((uint32_t)sat_i(lo, -32768, 32767), (uint32_t)sat_i(hi, -32768, 32767));
}
LANE uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t r = 0;
	for (int k = 0; k < 32; k += 8)
		r |= ((((a >> k & 0xff) + (b >> k & 0xff) + (c >> k & 1)) >> 1) & 0xff) << k;
	return r;
}
LANE uint32_t sad_u8(uint32_t a, uint32_t b)
{
	uint32_t r = 0;
	for (int k = 0; k < 32; k += 8)
		r += absdiff(a >> k & 0xff, b >> k & 0xff);
	return r;
}
LANE uint32_t msad_u8(uint32_t a, uint32_t b)
{
	uint32_t r = 0;
	for (int k = 0; k < 32; k += 8)
		r += (b >> k & 0xff) ? absdiff(a >> k & 0xff, b >> k & 0xff) : 0;
	return r;
}
LANE uint32_t norm_i16(float a) { return (uint32_t)sat_i(f_i(rintf(a * 32767.0f)), -32767, 32767); }
LANE uint32_t norm_u16(float a) { return umin(f_u(rintf(a * 65535.0f)), 65535); }
LANE wide mad_i64(int32_t a, int32_t b, int64_t c)
{
	int64_t p = (int64_t)a * b, r = (int64_t)((uint64_t)p + (uint64_t)c);
	bool overflow = (p < 0) == (c < 0) && (r < 0) != (p < 0);
	return (wide)overflow << 64 | (uint64_t)r;
}

/* Division in steps, by the manual's rules: div_scale moves operands away from where the refinement would over- or
 * underflow. Where the denominator's inverse and the quotient are both denormal the manual scales the denominator up,
 * which overflows; here it is scaled down, as div_fmas undoes. */
LANE int exponent_f(float f) { return (int)(f_bits(f) >> 23 & 0xff); }
LANE int exponent_d(double f) { return (int)(d_bits(f) >> 52 & 0x7ff); }
LANE uint64_t div_scale_f(float s0, float den, float num)
{
	float r = s0;
	bool vcc = false, is_den = f_bits(s0) == f_bits(den), is_num = f_bits(s0) == f_bits(num);
	bool inverse_denorm = fabsf(1.0f / den) < 0x1p-126f && den == den && !isinf(den);
	bool quotient_denorm = fabsf((float)((double)num / (double)den)) < 0x1p-126f;
	if (num == 0 || den == 0)
		r = NAN;
	else if (exponent_f(num) - exponent_f(den) >= 96) {
		vcc = true;
		if (is_den)
			r = ldexpf(s0, 64);
	} else if (exponent_f(den) == 0)
		r = ldexpf(s0, 64);
	else if (inverse_denorm && quotient_denorm) {
		vcc = true;
		if (is_den)
			r = ldexpf(s0, -64);
	} else if (inverse_denorm)
		r = ldexpf(s0, -64);
	else if (quotient_denorm) {
		vcc = true;
		if (is_num)
			r = ldexpf(s0, 64);
	} else if (exponent_f(num) <= 23)
		r = ldexpf(s0, 64);
	return (uint64_t)vcc << 32 | (isnan(r) && !isnan(s0) ? 0x7fc00000u : f_bits(r));
}
LANE wide div_scale_d(double s0, double den, double num)
{
	double r = s0;
	bool vcc = false, is_den = d_bits(s0) == d_bits(den), is_num = d_bits(s0) == d_bits(num);
	bool inverse_denorm = fabs(1.0 / den) < 0x1p-1022 && den == den && !isinf(den),
	     quotient_denorm = fabs(num / den) < 0x1p-1022;
	if (num == 0 || den == 0)
		r = NAN;
	else if (exponent_d(num) - exponent_d(den) >= 768) {
		vcc = true;
		if (is_den)
			r = ldexp(s0, 128);
	} else if (exponent_d(den) == 0)
		r = ldexp(s0, 128);
	else if (inverse_denorm && quotient_denorm) {
		vcc = true;
		if (is_den)
			r = ldexp(s0, -128);
	} else if (inverse_denorm)
		r = ldexp(s0, -128);
	else if (quotient_denorm) {
		vcc = true;
		if (is_num)
			r = ldexp(s0, 128);
	} else if (exponent_d(num) <= 53)
		r = ldexp(s0, 128);
	return (wide)vcc << 64 | (isnan(r) && !isnan(s0) ? 0x7ff8000000000000ull : d_bits(r));
}
LANE uint32_t div_fixup_f(float q, float den, float num)
{
	uint32_t sign = (f_bits(den) ^ f_bits(num)) & 0x80000000u;
	if (num != num)
		return f_bits(num) | 0x400000u;
	if (den != den)
		return f_bits(den) | 0x400000u;
	if ((den == 0 && num == 0) || (isinf(den) && isinf(num)))
		return 0xffc00000u;
	if (den == 0 || isinf(num))
		return sign | 0x7f800000u;
	if (isinf(den) || num == 0)
		return sign;
	if (exponent_f(num) - exponent_f(den) < -150)
		return sign;
	if (q != q)
		return sign | 0x7f800000u;
	return sign | (f_bits(q) & 0x7fffffffu);
}
LANE uint64_t div_fixup_d(double q, double den, double num)
{
	uint64_t sign = (d_bits(den) ^ d_bits(num)) & 0x8000000000000000ull;
	if (num != num)
		return d_bits(num) | 0x8000000000000ull;
	if (den != den)
		return d_bits(den) | 0x8000000000000ull;
	if ((den == 0 && num == 0) || (isinf(den) && isinf(num)))
		return 0xfff8000000000000ull;
	if (den == 0 || isinf(num))
		return sign | 0x7ff0000000000000ull;
	if (isinf(den) || num == 0)
		return sign;
	if (exponent_d(num) - exponent_d(den) < -1075)
		return sign;
	if (q != q)
		return sign | 0x7ff0000000000000ull;
	return sign | (d_bits(q) & 0x7fffffffffffffffull);
}

#define VALU(fmt, name, g10, g11, g12, flags, D, A, B, C, expr) \
	static void lane_##name(uint32_t *restrict d, const uint32_t *a_, const uint32_t *b_, const uint32_t *c_, \
	                        uint32_t par) \
	{ \
		(void)a_; \
		(void)b_; \
		(void)c_; \
		(void)par; \
		for (unsigned l = 0; l < LANES; l++) { \
			TYPE_##A a = LOAD_##A(a_); \
			TYPE_##B b = LOAD_##B(b_); \
			TYPE_##C c = LOAD_##C(c_); \
			(void)a; \
			(void)b; \
			(void)c; \
			STORE_##D(expr); \
		} \
	}
#include "sim/valu.def"
#define VCMP(name, g10, g11, on12, A, B, x, y, ...) \
	static void lane_cmp_##name(uint32_t *restrict d, const uint32_t *a_, const uint32_t *b_, const uint32_t *c_, \
	                            uint32_t par) \
	{ \
		(void)c_; \
		(void)par; \
		for (unsigned l = 0; l < LANES; l++) { \
			TYPE_##A a = LOAD_##A(a_); \
			TYPE_##B b = LOAD_##B(b_); \
			(void)a; \
			(void)b; \
			d[l] = 0u - (uint32_t)(__VA_ARGS__); \
		} \
	}
#include "sim/vcmp.def"

const sim_lane_fn LANES_TABLE[OP_COUNT] = {
#define VALU(fmt, name, ...) [OP_V_##name] = lane_##name,
#include "sim/valu.def"
#define VCMP(name, ...) [OP_CMP_##name] = lane_cmp_##name, [OP_CMPX_##name] = lane_cmp_##name,
#include "sim/vcmp.def"
};

static struct sim_span span(uint64_t base, const uint32_t *v, bool pairs, uint32_t exec, uint64_t *addr)
{
	uint32_t first = exec ? (uint32_t)__builtin_ctz(exec) : 0;
	if (pairs)
		for (unsigned l = 0; l < LANES; l++)
			addr[l] = base + ((uint64_t)v[l + LANES] << 32 | v[l]);
	else
		for (unsigned l = 0; l < LANES; l++)
			addr[l] = base + v[l];
	if (exec != ~0u)
		for (unsigned l = 0; l < LANES; l++)
			addr[l] = exec >> l & 1 ? addr[l] : addr[first];
	int64_t lo = INT64_MAX, hi = INT64_MIN;
	uint64_t bits = 0;
	for (unsigned l = 0; l < LANES; l++) {
		int64_t x = (int64_t)addr[l];
		lo = x < lo ? x : lo;
		hi = x > hi ? x : hi;
		bits |= addr[l];
	}
	return (struct sim_span){ (uint64_t)lo, (uint64_t)hi, bits };
}
const struct sim_kit KIT = { pack, span };
