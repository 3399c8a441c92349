/* tests/jit/t_lanes.c - f16 both ways against arithmetic and, where there is one, the hardware; f32 to integer; dot4,
 * dot4u. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "jit/ir/lanes.h"
#include "jit/target.h"

/* What a half means, from its fields. */
static double half_value(unsigned h)
{
	const unsigned exponent = h >> 10 & 31, fraction = h & 0x3ff;
	const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
	                         : exponent     ? ldexp(1024 + fraction, (int)exponent - 25)
	                                        : ldexp(fraction, -24);

	return h & 0x8000 ? -magnitude : magnitude;
}

static void test_widen(void **unused)
{
	for (unsigned h = 0; h < 65536; h++) {
		const float f = f16_f32((uint16_t)h);
		const double want = half_value(h);

		if (isnan(want)) {
			assert_true(isnan(f));
			/* sign and payload stay, the quiet bit is set */
			assert_int_equal(f32_bits(f), (h & 0x8000) << 16 | 0x7fc00000 | (h & 0x3ff) << 13);
		} else if (!((double)f == want && !signbit(f) == !signbit(want))) {
			fail_msg("half %04x widens to %a, expected %a", h, (double)f, want);
		}
	}
}

static void test_narrow_exact(void **unused)
{
	for (unsigned h = 0; h < 65536; h++) {
		const unsigned want = (h & 0x7fff) > 0x7c00 ? h | 0x200 : h;

		assert_int_equal(f32_f16(f16_f32((uint16_t)h)), want);
	}
}

/* Between two neighbouring halves: the midpoint goes to the even one, the floats next to it to the nearer one. */
static void test_narrow_midpoints(void **unused)
{
	for (unsigned h = 0; h < 0x7c00; h++) {
		const double high = h + 1 == 0x7c00 ? 65536 : half_value(h + 1);
		const float mid = (float)((half_value(h) + high) / 2);

		assert_true((double)mid * 2 == half_value(h) + high);
		assert_int_equal(f32_f16(mid), h & 1 ? h + 1 : h);
		assert_int_equal(f32_f16(nextafterf(mid, 0)), h);
		assert_int_equal(f32_f16(nextafterf(mid, INFINITY)), h + 1);
		assert_int_equal(f32_f16(-mid), 0x8000 | (h & 1 ? h + 1 : h));
		assert_int_equal(f32_f16(nextafterf(-mid, 0)), 0x8000 | h);
		assert_int_equal(f32_f16(nextafterf(-mid, -INFINITY)), 0x8000 | (h + 1));
		/* and around the half itself */
		assert_int_equal(f32_f16(nextafterf((float)half_value(h), INFINITY)), h);
		if (h)
			assert_int_equal(f32_f16(nextafterf((float)half_value(h), 0)), h);
	}
}

static void test_narrow_extremes(void **unused)
{
	static const struct {
		uint32_t bits;
		uint16_t half;
	} cases[] = {
		{ 0x00000000, 0x0000 }, { 0x80000000, 0x8000 }, { 0x00000001, 0x0000 }, { 0x807fffff, 0x8000 },
		{ 0x7f800000, 0x7c00 }, { 0xff800000, 0xfc00 }, { 0x7f7fffff, 0x7c00 }, { 0x477fefff, 0x7bff },
		{ 0x477ff000, 0x7c00 }, { 0x33000000, 0x0000 }, { 0x33000001, 0x0001 }, { 0x7f800001, 0x7e00 },
		{ 0x7fc00000, 0x7e00 }, { 0xffffffff, 0xffff }, { 0xff802000, 0xfe01 },
	};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		if (f32_f16(bits_f32(cases[k].bits)) != cases[k].half)
			fail_msg("%08x narrows to %04x, expected %04x", cases[k].bits, f32_f16(bits_f32(cases[k].bits)),
			         cases[k].half);
}

#ifdef __x86_64__
__attribute__((target("f16c"))) static uint32_t hardware_widen(uint16_t h)
{
	return (uint32_t)_mm_cvtsi128_si32(_mm_castps_si128(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
}

__attribute__((target("f16c"))) static uint16_t hardware_narrow(uint32_t bits)
{
	return (uint16_t)_mm_cvtsi128_si32(
		_mm_cvtps_ph(_mm_castsi128_ps(_mm_cvtsi32_si128((int)bits)), _MM_FROUND_TO_NEAREST_INT));
}

static void test_hardware(void **unused)
{
	if (!target_native(NULL)) /* F16C among the rest */
		skip();
	for (unsigned h = 0; h < 65536; h++)
		assert_int_equal(f32_bits(f16_f32((uint16_t)h)), hardware_widen((uint16_t)h));
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1021)
		if (f32_f16(bits_f32((uint32_t)bits)) != hardware_narrow((uint32_t)bits))
			fail_msg("%08x narrows to %04x, the hardware says %04x", (unsigned)bits,
			         f32_f16(bits_f32((uint32_t)bits)), hardware_narrow((uint32_t)bits));
}
#else
static void test_hardware(void **unused) { skip(); }
#endif

static void test_to_integer(void **unused)
{
	static const struct {
		float f;
		int32_t i;
	} cases[] = {
		{ 0, 0 },
		{ -0.0f, 0 },
		{ 0.5f, 0 },
		{ -0.5f, 0 },
		{ 1.5f, 2 },
		{ 2.5f, 2 },
		{ -1.5f, -2 },
		{ -2.5f, -2 },
		{ 3.5f, 4 },
		{ 0x1.000002p-1f, 1 },
		{ 0x1.fffffep-2f, 0 },
		{ 0x1p-149f, 0 },
		{ 8388607.5f, 8388608 },
		{ 8388606.5f, 8388606 },
		{ 0x1p30f, 1 << 30 },
		{ -0x1p30f, -(1 << 30) },
		{ 16777217.0f, 16777216 },
		{ -126.5f, -126 },
		{ 127.49999f, 127 },
	};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		assert_int_equal(f32_to_i32_rne(cases[k].f), cases[k].i);
}

static int32_t pack(int a, int b, int c, int d)
{
	return (int32_t)((uint32_t)(a & 255) | (uint32_t)(b & 255) << 8 | (uint32_t)(c & 255) << 16 |
	                 (uint32_t)(d & 255) << 24);
}

static void test_halves(void **unused)
{
	assert_int_equal(dot2b_u8i8(pack(1, 2, 3, 4), pack(5, 6, 7, 8)), 17 | 53 << 16);
	assert_int_equal(dot2b_u8i8(pack(127, 127, 1, 0), pack(-128, -128, -1, 9)),
	                 (int32_t)((uint32_t)(uint16_t)-32512 | 0xffff0000u));
	assert_int_equal(iadd_16x2((int32_t)0x8001ffff, (int32_t)0x80010001), 0x00020000);
	assert_int_equal(dot2_i16((int32_t)0x80008000, (int32_t)0x80008000, 0), INT32_MIN);
	assert_int_equal(dot2_i16((int32_t)0xffff0003, 0x00050007, 100), 100 + 21 - 5);
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_IQ4), pack(-127, -10, 1, 113));
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_FP4), pack(12, 24, 12, 0));
	assert_int_equal(ilut16_i8(0x06050200, LANES_TABLE_IQ2), pack(8, 43, -25, -43));
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_IQ3), pack(4, 62, -4, -62));
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_IQ4_RAISED), pack(1, 118, 129, 241));
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_IQ5_LOWER), pack(2, 71, 78, 122));
	assert_int_equal(ilut16_i8(0x0f080700, LANES_TABLE_IQ5_UPPER), pack(127, 171, 179, 249));
	assert_int_equal(ilut16_i8(0x07040301, LANES_TABLE_IQ2_KS), pack(18, 48, 5, 53));
}

static void test_dot4(void **unused)
{
	assert_int_equal(dot4_i8(pack(1, 2, 3, 4), pack(5, 6, 7, 8), 100), 170);
	assert_int_equal(dot4_i8(pack(-128, -128, -128, -128), pack(127, 127, 127, 127), 0), -4 * 128 * 127);
	assert_int_equal(dot4_i8(pack(-128, 0, 0, 0), pack(-127, 9, 9, 9), 0), 128 * 127);
	assert_int_equal(dot4_i8(pack(1, 0, 0, 0), pack(1, 0, 0, 0), INT32_MAX), INT32_MIN);
	assert_int_equal(dot4_u8i8(pack(1, 2, 3, 4), pack(5, -6, 7, -8), 100), 100 + 5 - 12 + 21 - 32);
	assert_int_equal(dot4_u8i8(pack(-1, -1, -1, -1), pack(-128, -128, -128, -128), 0), -4 * 255 * 128);
	assert_int_equal(dot4_u8i8(pack(-1, -1, -1, -1), pack(127, 127, 127, 127), INT32_MAX),
	                 (int32_t)(INT32_MIN + 4 * 255 * 127 - 1));
	for (int a = -128; a < 128; a++)
		for (int b = -127; b < 128; b++)
			for (int at = 0; at < 4; at++)
				assert_int_equal(dot4_i8(pack(at == 0 ? a : 0, at == 1 ? a : 0, at == 2 ? a : 0,
				                              at == 3 ? a : 0),
				                         pack(b, b, b, b), 7),
				                 a * b + 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widen),
		cmocka_unit_test(test_narrow_exact),
		cmocka_unit_test(test_narrow_midpoints),
		cmocka_unit_test(test_narrow_extremes),
		cmocka_unit_test(test_hardware),
		cmocka_unit_test(test_to_integer),
		cmocka_unit_test(test_dot4),
		cmocka_unit_test(test_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
