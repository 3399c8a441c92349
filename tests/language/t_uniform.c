/* tests/language/t_uniform.c - kernels that use lanes inside of an instance: each, reductions, scans and tiles; and one
 * of few lines that uses most functions of one series: prices of options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/language/run_kernel.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

static uint64_t splitmix(uint64_t x)
{
	uint64_t z = x + UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}
static uint32_t word(uint64_t i) { return (uint32_t)(splitmix(i) >> 32); }
static float number(uint64_t i) { return (float)(word(i) >> 8) / (1 << 24) * 4 - 2; }

/* --- the order of sums: 32 partial results in parts of 1024, as docs/kernels.md says */

static float ordered_sum(const float *x, size_t n)
{
	float total = 0;

	for (size_t part = 0; part < n; part += 1024) {
		const size_t size = n - part < 1024 ? n - part : 1024;
		float partial[32] = { 0 };
		for (size_t k = 0; k < size; k++)
			partial[k % 32] += x[part + k];
		for (unsigned half = 16; half; half /= 2)
			for (unsigned k = 0; k < half; k++)
				partial[k] += partial[k + half];
		total = part ? total + partial[0] : 0.0f + partial[0];
	}
	return total;
}

static void check_reductions(unsigned n, enum run_machines machines)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel reduce(in f32 x[3][n], in i32 w[n], out f32 o[3][4], out i32 p[4]) over (r in 3) {\n"
		"	o[r][0] = sum(j in 0..n: x[r][j]);\n"
		"	o[r][1] = min(j in 0..n: x[r][j]);\n"
		"	o[r][2] = max(j in 0..n: x[r][j]);\n"
		"	if (any(j in 0..n: x[r][j] > 1.9) && !all(j in 0..n: x[r][j] < 1.99)) { o[r][3] = 1; }\n"
		"	if (r == 1) { p[r] = sum(j in 0..n: w[j] * 3); }\n"
		"}\n";
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open(&r, text, NULL, constants);
	float *x = run_array(&r, "x");
	int32_t *w = run_array(&r, "w");
	for (unsigned k = 0; k < 3 * n; k++)
		x[k] = number(k);
	for (unsigned k = 0; k < n; k++)
		w[k] = (int32_t)word(k + 77);
	run_everywhere(&r, machines);
	const float *o = run_array(&r, "o");
	for (unsigned row = 0; row < 3; row++) {
		float min = INFINITY, max = -INFINITY;
		bool any = false, all = true;
		for (unsigned k = 0; k < n; k++) {
			const float v = x[row * n + k];
			min = v < min ? v : min;
			max = v > max ? v : max;
			any |= v > 1.9f;
			all &= v < 1.99f;
		}
		const float want[4] = { ordered_sum(x + row * n, n), min, max, any && !all };
		assert_memory_equal(o + row * 4, want, sizeof want);
	}
	uint32_t sum = 0;
	for (unsigned k = 0; k < n; k++)
		sum += (uint32_t)w[k] * 3;
	assert_int_equal(((int32_t *)run_array(&r, "p"))[1], (int32_t)sum);
	run_close(&r);
}

static void test_reductions(void **state)
{
	static const unsigned sizes[] = { 0, 1, 7, 8, 31, 32, 33, 63, 100, 1023, 1024, 1025, 2048, 3001 };

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_reductions(sizes[k], sizes[k] < 64 || sizes[k] == 1025 ? RUN_CARDS : RUN_CPUS);
}

/* A range whose ends are known in the run alone. */
static void test_ragged(void **state)
{
	static const char text[] =
		"const i32 rows = 40; const i32 n = 3000;\n"
		"kernel ragged(in i32 first[rows + 1], in f32 x[n], out f32 o[rows]) over (r in rows) {\n"
		"	o[r] = sum(j in first[r]..first[r + 1]: x[j]);\n"
		"}\n";
	struct run r;

	run_open(&r, text, NULL, "");
	int32_t *first = run_array(&r, "first");
	float *x = run_array(&r, "x");
	for (int k = 0; k <= 40; k++)
		first[k] = k == 40 ? 3000 : k * k;
	for (unsigned k = 0; k < 3000; k++)
		x[k] = number(k);
	run_everywhere(&r, RUN_CARDS);
	const float *o = run_array(&r, "o");
	for (int k = 0; k < 40; k++) {
		const float want = ordered_sum(x + first[k], (size_t)(first[k + 1] - first[k]));
		assert_memory_equal(o + k, &want, 4);
	}
	run_close(&r);
}

/* --- softmax against double precision */

static void check_softmax(unsigned n, enum run_machines machines)
{
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "rows=2 n=%u", n);
	run_open_example(&r, "softmax", NULL, constants);
	float *x = run_array(&r, "x");
	for (unsigned k = 0; k < 2 * n; k++)
		x[k] = number(k) * 5;
	run_everywhere(&r, machines);
	const float *o = run_array(&r, "y");
	for (unsigned row = 0; row < 2; row++) {
		double sum = 0;
		for (unsigned k = 0; k < n; k++)
			sum += exp((double)x[row * n + k]);
		for (unsigned k = 0; k < n; k++) {
			const double want = exp((double)x[row * n + k]) / sum;
			assert_true(fabs((double)o[row * n + k] - want) <= 2e-6 * want);
		}
	}
	run_close(&r);
}

static void test_softmax(void **state)
{
	/* rows of vectors, of parts of 1024, and of what a card keeps in registers */
	static const uint16_t sizes[] = { 0, 1, 2, 7, 31, 32, 33, 45, 97, 1023, 1024, 1025, 2053 };

	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
		check_softmax(sizes[s], sizes[s] < 2000 ? RUN_CARDS : RUN_CPUS);
	check_softmax(2081, RUN_CARDS);
	check_softmax(4097, RUN_CARDS);
}

/* --- scans of integers, where every order gives the same */

static void check_scan(unsigned n, enum run_machines machines)
{
	static const char text[] =
		"const i32 n;\n"
		"kernel scan_all(in u32 x[n], out u32 o[n], out u32 before[n], out i32 most[n]) over (i in 1) {\n"
		"	scan sum (j in 0..n) o[j] = x[j];\n"
		"	scan exclusive sum (j in 0..n) before[j] = x[j];\n"
		"	scan max (j in 0..n) most[j] = i32(x[j]);\n"
		"}\n";
	char constants[40];
	struct run r;
	uint32_t sum = 0;
	int32_t max = INT32_MIN;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open(&r, text, NULL, constants);
	uint32_t *x = run_array(&r, "x");
	for (unsigned k = 0; k < n; k++)
		x[k] = word(k);
	run_everywhere(&r, machines);
	const uint32_t *o = run_array(&r, "o"), *before = run_array(&r, "before");
	const int32_t *greatest = run_array(&r, "most");
	for (unsigned k = 0; k < n; k++) {
		assert_int_equal(before[k], sum);
		sum += x[k];
		max = (int32_t)x[k] > max ? (int32_t)x[k] : max;
		assert_int_equal(o[k], sum);
		assert_int_equal(greatest[k], max);
	}
	if (n == 1000000)
		assert_true(run_hash(o, n * sizeof *o) == UINT64_C(0x469442208a795998));
	run_close(&r);
}

static void test_scans(void **state)
{
	static const unsigned sizes[] = { 0, 1, 5, 31, 32, 33, 100, 1024, 1025, 2100 };

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_scan(sizes[k], sizes[k] < 101 ? RUN_CARDS : RUN_CPUS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_scan(1000000, RUN_CPUS);
}

/* Of floats, in the order of docs/kernels.md: a hypercube of 32, rows in a part, parts. The minimum of them depends on
 * the order where some are NaN, or zeros of either sign. */

static float either(bool is_min, float a, float b) { return is_min ? (a < b ? a : b) : a + b; }

static void check_float_scan(const float *x, const float *o, unsigned n, bool is_min)
{
	const float none = is_min ? INFINITY : 0;
	float base = none, carry = none;

	for (unsigned row = 0; row * 32 < n; row++) {
		float before[32], total[32], other[32];
		if (row % 32 == 0) {
			base = either(is_min, base, carry);
			carry = none;
		}
		for (unsigned k = 0; k < 32; k++) {
			total[k] = row * 32 + k < n ? x[row * 32 + k] : none;
			before[k] = none;
		}
		for (unsigned d = 1; d < 32; d *= 2) {
			memcpy(other, total, sizeof other);
			for (unsigned k = 0; k < 32; k++) {
				if (k & d)
					before[k] = either(is_min, other[k ^ d], before[k]);
				total[k] = k & d ? either(is_min, other[k ^ d], other[k])
				                 : either(is_min, other[k], other[k ^ d]);
			}
		}
		for (unsigned k = 0; k < 32 && row * 32 + k < n; k++) {
			const float in_part = either(is_min, either(is_min, carry, before[k]), x[row * 32 + k]);
			const float want = either(is_min, base, in_part), nan = NAN;
			assert_memory_equal(&o[row * 32 + k], isnan(want) ? &nan : &want, 4);
		}
		carry = either(is_min, carry, total[0]);
	}
}

static void test_scan_of_floats(void **state)
{
	static const char text[] =
		"const i32 n = 2077;\n"
		"kernel scan_floats(in f32 x[n], in f32 y[n], out f32 o[n], out f32 smallest[n]) over (i in 1) {\n"
		"	scan sum (j in 0..n) o[j] = x[j];\n"
		"	scan min (j in 0..n) smallest[j] = y[j];\n"
		"}\n";
	static const float values[] = { NAN, 1, INFINITY, 0.0f, 2.5f, -0.0f, 0.0f };
	enum { N = 2077 };
	struct run r;

	run_open(&r, text, NULL, "");
	float *x = run_array(&r, "x"), *y = run_array(&r, "y");
	for (unsigned k = 0; k < N; k++) {
		x[k] = number(k);
		y[k] = values[(k * 2654435761u >> 20) % 7];
	}
	run_everywhere(&r, RUN_CARDS);
	check_float_scan(x, run_array(&r, "o"), N, false);
	check_float_scan(y, run_array(&r, "smallest"), N, true);
	run_close(&r);
}

/* --- tiles: a bitonic sort of one tile, and a transposition */

static void test_bitonic(void **state)
{
	struct run r;

	run_open_example(&r, "bitonic_sort", "rows", "count=3 logs=6");
	uint32_t *x = run_array(&r, "x");
	for (unsigned k = 0; k < 3 * 64; k++)
		x[k] = word(k);
	run_everywhere(&r, RUN_CARDS);
	const uint32_t *o = run_array(&r, "y");
	for (unsigned row = 0; row < 3; row++) {
		uint64_t sum = 0;
		for (unsigned k = 0; k < 64; k++) {
			sum += x[row * 64 + k];
			sum -= o[row * 64 + k];
			assert_true(!k || o[row * 64 + k] >= o[row * 64 + k - 1]);
		}
		assert_true(sum == 0);
	}
	run_close(&r);
}

/* --- options: functions of one series, against double precision */

/* The example's formula in double precision, with its polynomial. */
static double normal(double x)
{
	const double k = 1 / (1 + 0.2316419 * fabs(x));
	const double w = ((((1.330274429 * k - 1.821255978) * k + 1.781477937) * k - 0.356563782) * k + 0.31938153) *
	                 k * 0.39894228040 * exp(-x * x / 2);

	return x > 0 ? 1 - w : w;
}
static double price(double s, double x, double t, double r, double v)
{
	const double d1 = (log(s / x) + (r + v * v / 2) * t) / (v * sqrt(t)), d2 = d1 - v * sqrt(t);

	return s * normal(d1) - x * exp(-r * t) * normal(d2);
}

static void check_options(unsigned n, bool published, enum run_machines machines)
{
	static const struct {
		const char *name;
		float value, more; /* of element i: value + more * (i mod 13) */
	} inputs[] = { { "s", 100, 3 }, { "x", 98, 2 }, { "t", 2, 0.25f }, { "r", 0.02f, 0.01f }, { "v", 5, -0.3f } };
	const float *in[5];
	char constants[16];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open_example(&r, "black_scholes", NULL, constants);
	for (unsigned k = 0; k < 5; k++) {
		float *to = run_array(&r, inputs[k].name);
		in[k] = to;
		for (unsigned i = 0; i < n; i++)
			to[i] = inputs[k].value + (published ? 0 : inputs[k].more * (float)(i * 7 % 13));
	}
	run_everywhere(&r, machines);
	for (unsigned i = 0; i < n; i++) {
		const double want = published ? 99.9605026
		                              : price((double)in[0][i], (double)in[1][i], (double)in[2][i],
		                                      (double)in[3][i], (double)in[4][i]);
		assert_true(fabs((double)((float *)run_array(&r, "o"))[i] - want) < 1e-5 * 100);
	}
	run_close(&r);
}

static void test_options(void **state)
{
	static const unsigned sizes[] = { 0, 1, 7, 8, 9, 15, 17, 31, 32, 33, 97, 255, 256, 257, 1021 };

	check_options(3, true, RUN_CARDS);
	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_options(sizes[k], false, sizes[k] < 98 ? RUN_CARDS : RUN_CPUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options), cmocka_unit_test(test_reductions),
		cmocka_unit_test(test_ragged),  cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_scans),   cmocka_unit_test(test_scan_of_floats),
		cmocka_unit_test(test_bitonic),
	};

	return cmocka_run_group_tests_name("t_uniform", tests, NULL, NULL);
}
