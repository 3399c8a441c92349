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
static i64 min(i64 a, i64 b) { return a < b ? a : b; }
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
#define SIM_OP(name, kind, expr) \
	static u64 want_##name(u64 a, u64 b, u64 c, u32 vcc, unsigned l) \
	{ \
		(void)a; \
		(void)b; \
		(void)c; \
		(void)vcc; \
		(void)l; \
		return (u64)(expr); \
	}
#include "tests/sim/sim_ops.def"
#undef SIM_OP

static const struct row {
	const char *name;
	char kind;
	u64 (*want)(u64, u64, u64, u32, unsigned);
} rows[] = {
#define SIM_OP(name, kind, expr) { #name, #kind[0], want_##name },
#include "tests/sim/sim_ops.def"
#undef SIM_OP
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
