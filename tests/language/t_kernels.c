/* tests/language/t_kernels.c - kernels whose instances are lanes: every machine against plain C loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "tests/language/run_kernel.h"
#include "tests/support/shared.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

static float number(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return (float)(*state >> 8) / (1 << 24) * 4 - 2;
}

static void fill(float *x, size_t n, uint32_t seed)
{
	for (size_t k = 0; k < n; k++)
		x[k] = number(&seed);
}

/* --- saxpy, at every size around a vector and a unit of work */

static void check_saxpy(unsigned n, enum run_machines machines)
{
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open_example(&r, "saxpy", NULL, constants);
	float *x = run_array(&r, "x"), *y = run_array(&r, "y"), *want = malloc((n + 1) * sizeof *want);
	assert_non_null(want);
	fill(x, n, 1);
	fill(y, n, 2);
	run_set_f32(&r, "a", 1.7f);
	for (unsigned k = 0; k < n; k++)
		want[k] = fmaf(1.7f, x[k], y[k]);
	run_everywhere(&r, machines);
	assert_memory_equal(y, want, n * sizeof *want);
	free(want);
	run_close(&r);
}

static void test_saxpy(void **state)
{
	static const unsigned sizes[] = { 0,  1,  7,   8,   9,   15,  16,   17,   31,   32,
		                          33, 97, 255, 256, 257, 513, 1021, 1023, 1024, 1025 };

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_saxpy(sizes[k], sizes[k] < 100 || sizes[k] == 257 ? RUN_CARDS : RUN_CPUS);
}

/* --- mandelbrot: loops that lanes leave one by one */

static int32_t mandel(float c_re, float c_im, int32_t max)
{
	float re = c_re, im = c_im;
	int32_t k;

	for (k = 0; k < max && !(re * re + im * im > 4.0f); k++) {
		const float new_re = re * re - im * im, new_im = 2.0f * re * im;
		re = c_re + new_re;
		im = c_im + new_im;
	}
	return k;
}

static void check_mandelbrot(int width, int height, enum run_machines machines)
{
	const float dx = (1.0f - -2.0f) / (float)width, dy = (1.0f - -1.0f) / (float)height;
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "width=%d height=%d", width, height);
	run_open_example(&r, "mandelbrot", NULL, constants);
	const int32_t *o = run_array(&r, "o");
	run_everywhere(&r, machines);
	for (int j = 0; j < height; j++)
		for (int i = 0; i < width; i++)
			assert_int_equal(o[j * width + i], mandel(-2.0f + (float)i * dx, -1.0f + (float)j * dy, 256));
	if (width == 768 && height == 512)
		assert_true(run_hash(o, (size_t)width * (size_t)height * 4) == UINT64_C(0x24b3b3c1bdb53d88));
	run_close(&r);
}

static void test_mandelbrot(void **state)
{
	/* none, one, primes, and one more and less than lanes and blocks have */
	static const int widths[] = { 0, 1, 7, 8, 9, 15, 17, 31, 32, 33, 255, 256, 257 };

	for (unsigned k = 0; k < sizeof widths / sizeof *widths; k++)
		check_mandelbrot(widths[k], 2, widths[k] < 34 ? RUN_CARDS : RUN_CPUS);
	check_mandelbrot(5, 0, RUN_CARDS);
	check_mandelbrot(37, 11, RUN_CARDS);
	check_mandelbrot(300, 5, RUN_CPUS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_mandelbrot(768, 512, RUN_CPUS);
}

/* --- a stencil, six steps between two arrays */

/* What a step leaves in o, by C. */
static void plain_stencil(int n, const float *a, const float *vsq, float *o)
{
	const int p = n * n;

	for (int z = 4; z < n - 4; z++)
		for (int y = 4; y < n - 4; y++)
			for (int x = 4; x < n - 4; x++) {
				const int i = z * p + y * n + x;
				float sum = 0.5f * a[i];
				for (int d = 1; d < 4; d++) {
					const float by = d == 1 ? -0.25f : d == 2 ? 0.125f : -0.0625f;
					sum += by * (a[i + d] + a[i - d] + a[i + d * n] + a[i - d * n] + a[i + d * p] +
					             a[i - d * p]);
				}
				o[i] = 2 * a[i] - o[i] + vsq[i] * sum;
			}
}

static void check_stencil(int n, uint64_t odd, uint64_t even, enum run_machines machines)
{
	const size_t size = (size_t)n * (size_t)n * (size_t)n, bytes = size * sizeof(float);
	float *one = malloc(bytes + 1), *other = malloc(bytes + 1), *want = malloc(bytes + 1);
	char constants[16];
	struct run r;

	snprintf(constants, sizeof constants, "n=%d", n);
	assert_non_null(want);
	assert_non_null(one);
	assert_non_null(other);
	run_open_example(&r, "stencil", NULL, constants);
	float *a = run_array(&r, "a"), *o = run_array(&r, "o"), *vsq = run_array(&r, "vsq");
	for (int z = 0, at = 0; z < n; z++)
		for (int y = 0; y < n; y++)
			for (int x = 0; x < n; x++, at++) {
				one[at] = x < n / 2 ? (float)x / (float)n : (float)y / (float)n;
				other[at] = 0;
				vsq[at] = (float)(x * y * z) / (float)(n * n * n);
			}
	for (int step = 0; step < 6; step++) { /* even steps read the first one and change the second */
		memcpy(a, step & 1 ? other : one, bytes);
		memcpy(o, step & 1 ? one : other, bytes);
		memcpy(want, o, bytes);
		plain_stencil(n, a, vsq, want);
		run_everywhere(&r, machines);
		assert_memory_equal(o, want, bytes);
		memcpy(step & 1 ? one : other, o, bytes);
	}
	if (odd) {
		assert_true(run_hash(other, bytes) == odd);
		assert_true(run_hash(one, bytes) == even);
	}
	free(one);
	free(other);
	free(want);
	run_close(&r);
}

static void test_stencil(void **state)
{
	/* fields that are all border, with one element inside, and rows of some lanes more and less than a vector */
	static const int sizes[] = { 0, 1, 7, 8, 9, 11, 13 }, wide[] = { 15, 16, 17, 23, 24, 25, 39, 40, 41, 64 };

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_stencil(sizes[k], 0, 0, RUN_CARDS);
	for (unsigned k = 0; !getenv("JITRUN_TEST_QUICK") && k < sizeof wide / sizeof *wide; k++)
		check_stencil(wide[k], wide[k] == 64 ? UINT64_C(0x329e2a9fc2f4d5f9) : 0, UINT64_C(0x1facf2a8a7b92019),
		              RUN_CPUS);
}

/* --- Perlin noise: functions, and gathers by what other gathers give */

static void check_noise(int width, int height, uint64_t hash, enum run_machines machines)
{
	static const uint8_t permutation[256] = {
#include "programs/jitk/permutation.def"
	};
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "width=%d height=%d", width, height);
	run_open_example(&r, "noise", NULL, constants);
	int32_t *perm = run_array(&r, "perm");
	for (unsigned k = 0; k < 512; k++)
		perm[k] = permutation[k & 255];
	run_everywhere(&r, machines);
	if (hash)
		assert_true(run_hash(run_array(&r, "o"), (size_t)jk_parameter(r.kernel, 1)->bytes) == hash);
	run_close(&r);
}

static void test_noise(void **state)
{
	static const int widths[] = { 0, 1, 7, 8, 9, 15, 17, 19, 31, 32, 33, 255, 256, 257 };

	for (unsigned k = 0; k < sizeof widths / sizeof *widths; k++)
		check_noise(widths[k], 2, 0, widths[k] < 34 ? RUN_CARDS : RUN_CPUS);
	check_noise(9, 0, 0, RUN_CARDS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_noise(768, 768, UINT64_C(0xde9724c5d51b3c0d), RUN_CPUS);
}

/* --- elements of every type */

static void test_types(void **state)
{
	static const char text[] =
		"const i32 n = 83;\n"
		"kernel types(in i8 a[n], in u8 b[n], in i16 c[n], in u16 d[n], in f16 h[n], in bf16 g[n], in i64 "
		"l[n], in f64 e[n],\n"
		"	out i8 oa[n], out u8 ob[n], out i16 oc[n], out u16 od[n], out f16 oh[n], out bf16 og[n], out "
		"i64 ol[n],\n"
		"	out f64 oe[n], out u64 ou[n]) over (i in n) {\n"
		"	oa[i] = a[n - 1 - i] * 3;\n"
		"	ob[i] = b[i] + 200;\n"
		"	oc[i] = c[i] - i32(d[i]);\n"
		"	od[i] = d[(i * 7) % n] ^ 0xffff;\n"
		"	oh[i] = h[i] * 0.25;\n"
		"	og[i] = g[n - 1 - i];\n"
		"	ol[i] = l[i] / (i64(i) - 40) + (l[i] >> 3);\n"
		"	oe[i] = sqrt(abs(e[i])) + f64(a[i]);\n"
		"	ou[i] = u64(e[i]) + u64(l[i]) % 1000;\n"
		"}\n";
	enum { N = 83 };
	struct run r;

	run_open(&r, text, NULL, "");
	int8_t *a = run_array(&r, "a");
	uint8_t *b = run_array(&r, "b");
	int16_t *c = run_array(&r, "c");
	uint16_t *d = run_array(&r, "d"), *h = run_array(&r, "h"), *g = run_array(&r, "g");
	int64_t *l = run_array(&r, "l");
	double *e = run_array(&r, "e");
	for (int k = 0; k < N; k++) {
		a[k] = (int8_t)(k * 37);
		b[k] = (uint8_t)(k * 11);
		c[k] = (int16_t)(k * 1021);
		d[k] = (uint16_t)(k * 4099);
		h[k] = (uint16_t)(0x3c00 + k * 16); /* from 1 on */
		g[k] = (uint16_t)(0x3f80 + k);
		l[k] = (int64_t)k * INT64_C(1234567890123456) - 5;
		e[k] = (double)k * 123.25 - 300;
	}
	run_everywhere(&r, RUN_CARDS);
	for (int k = 0; k < N; k++) {
		const int64_t by = k - 40, quotient = by ? l[k] / by : -1;
		assert_int_equal(((int8_t *)run_array(&r, "oa"))[k], (int8_t)(a[N - 1 - k] * 3));
		assert_int_equal(((uint8_t *)run_array(&r, "ob"))[k], (uint8_t)(b[k] + 200));
		assert_int_equal(((int16_t *)run_array(&r, "oc"))[k], (int16_t)(c[k] - d[k]));
		assert_int_equal(((uint16_t *)run_array(&r, "od"))[k], (uint16_t)(d[k * 7 % N] ^ 0xffff));
		assert_int_equal(((uint16_t *)run_array(&r, "oh"))[k], h[k] - 0x800); /* two powers of two less */
		assert_int_equal(((uint16_t *)run_array(&r, "og"))[k], g[N - 1 - k]);
		assert_true(((int64_t *)run_array(&r, "ol"))[k] == quotient + (l[k] >> 3));
		assert_true(((double *)run_array(&r, "oe"))[k] == sqrt(fabs(e[k])) + a[k]);
		assert_true(((uint64_t *)run_array(&r, "ou"))[k] ==
		            (e[k] > 0 ? (uint64_t)e[k] : 0) + (uint64_t)l[k] % 1000);
	}
	run_close(&r);
}

/* --- loops with ends of each lane, whatever the type says that these could be */

static void test_ragged_loops(void **state)
{
	static const char text[] =
		"const i32 n = 83;\n"
		"kernel ragged(in TYPE first[n + 1], out u32 o[n], out u32 p[n]) over (i in n) {\n"
		"	u32 s = 0, t = 0;\n"
		"	for (k in first[i]..first[i + 1]) { s += u32(k); }\n"
		"	for (k in 0..first[i] step 3) { t += u32(k); }\n"
		"	o[i] = s;\n"
		"	p[i] = t;\n"
		"}\n";
	struct run r;

	for (unsigned type = 0; type < 2; type++) {
		char copy[sizeof text];
		memcpy(copy, text, sizeof text);
		memcpy(strstr(copy, "TYPE"), type ? "u32 " : "i32 ", 4);
		run_open(&r, copy, NULL, "");
		uint32_t *first = run_array(&r, "first");
		for (uint32_t k = 0; k < 84; k++)
			first[k] = k * k / 7;
		run_everywhere(&r, RUN_CARDS);
		for (uint32_t i = 0; i < 83; i++) {
			uint32_t s = 0, t = 0;
			for (uint32_t k = first[i]; k < first[i + 1]; k++)
				s += k;
			for (uint32_t k = 0; k < first[i]; k += 3)
				t += k;
			assert_int_equal(((uint32_t *)run_array(&r, "o"))[i], s);
			assert_int_equal(((uint32_t *)run_array(&r, "p"))[i], t);
		}
		run_close(&r);
	}
}

/* --- elements that lie apart, as many as no block of lanes has; and one place, which one instance writes */

static void test_apart(void **state)
{
	static const char text[] =
		"const i32 n;\n"
		"kernel apart(in f32 x[3 * n + 1], in u8 b[2 * n], out f32 o[n], out u32 p[2 * n]) "
		"over (i in n) {\n"
		"	o[i] = x[3 * i + 1];\n"
		"	p[2 * i + 1] = u32(b[2 * i]);\n"
		"}\n"
		"kernel alone(in f32 x[3 * n + 1], out f32 q[2]) over (k in n - n + 1) {\n"
		"	q[0] = x[3];\n"
		"	if (x[4] > 1) { q[1] = x[0]; }\n"
		"}\n";
	static const uint8_t sizes[] = { 1, 2, 7, 8, 15, 16, 17, 31, 33, 40, 64, 65, 100 };
	char constants[16];
	struct run r;
	(void)state;

	for (size_t k = 0; k < sizeof sizes; k++) {
		const uint32_t n = sizes[k];
		snprintf(constants, sizeof constants, "n=%u", n);
		run_open(&r, text, "apart", constants);
		for (uint32_t i = 0; i < 3 * n + 1; i++)
			((float *)run_array(&r, "x"))[i] = (float)i;
		for (uint32_t i = 0; i < 2 * n; i++)
			((uint8_t *)run_array(&r, "b"))[i] = (uint8_t)(i + 1);
		run_everywhere(&r, RUN_CARDS);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(((float *)run_array(&r, "o"))[i] == (float)(3 * i + 1));
			assert_int_equal(((uint32_t *)run_array(&r, "p"))[2 * i + 1], 2 * i + 1);
		}
		run_close(&r);
		run_open(&r, text, "alone", constants);
		for (uint32_t i = 0; i < 3 * n + 1; i++)
			((float *)run_array(&r, "x"))[i] = (float)(i + 5);
		run_everywhere(&r, RUN_CARDS);
		assert_true(((float *)run_array(&r, "q"))[0] == 8);
		assert_true(((float *)run_array(&r, "q"))[1] == (n > 1 ? 5 : 0));
		run_close(&r);
	}
}

/* The least of numbers, of which some are NaN, depends on their order, which all machines share. */
static void test_reductions_of_nan(void **state)
{
	static const char text[] =
		"const i64 n;\n"
		"kernel least(in f32 x[20][n], out f32 a[20], out f32 b[20], out f64 c[20]) over (r in 20) {\n"
		"	a[r] = min(j in 0..n: x[r][j]);\n"
		"	b[r] = max(j in 0..n - i64(r % 3): x[r][j]);\n"
		"	c[r] = min(j in 0..n: f64(x[r][j]));\n"
		"}\n";
	static const uint16_t sizes[] = { 3, 9, 31, 34, 45, 100, 1033 };
	static const float values[] = { NAN, 1, -INFINITY, INFINITY, 2.5f, -0.0f, 0 };
	char constants[16];
	struct run r;
	(void)state;

	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		snprintf(constants, sizeof constants, "n=%u", sizes[k]);
		run_open(&r, text, "least", constants);
		for (uint32_t i = 0; i < 20u * sizes[k]; i++)
			((float *)run_array(&r, "x"))[i] = values[(i * 2654435761u >> 20) % 7];
		run_everywhere(&r, RUN_CARDS);
		run_close(&r);
	}
}

/* Scalars that are loaded together may take the register of a mask that stores had before. */
static void test_masks_and_clauses(void **state)
{
	static const char text[] =
		"kernel conv(in u32 a0[2380], in u32 a1[48], out u32 o[1260]) over (b in 7, c in 1, p in 45) {\n"
		"	i32 t0 = p / 9, t1 = p % 9;\n"
		"	u32 s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n"
		"	for (k in 0..4) { for (w0 in 0..1) { for (w1 in 0..3) {\n"
		"		i32 t2 = t0 * 2 + w0 * 1 - 2;\n"
		"		i32 t3 = t2 / 2, t4 = t1 * 2 + w1 * 1 - 2;\n"
		"		bool t5 = t2 >= 0 && t3 < 5 && t4 >= 0 && t4 < 17;\n"
		"		bool t6 = t2 % 2 != 0;\n"
		"		u32 t8 = a0[((b * 4 + 0 * 4 + k) * 85 + (t3 * 17 + t4))];\n"
		"		u32 t9 = select(t5, t8, u32(0));\n"
		"		s0 = select(t6, s0, s0 + t9 * a1[(((c * 4 + 0) * 4 + k) * 3 + (w0 * 3 + w1))]);\n"
		"		s1 = select(t6, s1, s1 + t9 * a1[(((c * 4 + 1) * 4 + k) * 3 + (w0 * 3 + w1))]);\n"
		"		s2 = select(t6, s2, s2 + t9 * a1[(((c * 4 + 2) * 4 + k) * 3 + (w0 * 3 + w1))]);\n"
		"		s3 = select(t6, s3, s3 + t9 * a1[(((c * 4 + 3) * 4 + k) * 3 + (w0 * 3 + w1))]);\n"
		"	} } }\n"
		"	o[(b * 4 + c * 4 + 0) * 45 + p] = s0;\n"
		"	o[(b * 4 + c * 4 + 1) * 45 + p] = s1;\n"
		"	o[(b * 4 + c * 4 + 2) * 45 + p] = s2;\n"
		"	o[(b * 4 + c * 4 + 3) * 45 + p] = s3;\n"
		"}\n";
	struct run r;
	(void)state;

	run_open(&r, text, "conv", "");
	for (uint32_t i = 0; i < 2380; i++)
		((uint32_t *)run_array(&r, "a0"))[i] = i * 2654435761u;
	for (uint32_t i = 0; i < 48; i++)
		((uint32_t *)run_array(&r, "a1"))[i] = i * 2246822519u;
	run_everywhere(&r, RUN_CARDS);
	run_close(&r);
}

/* More turns than a card counts. */
static void test_many_iterations(void **state)
{
	struct jk_messages m;
	struct error err = { 0 };
	struct ir ir;
	static const char *const texts[] = {
		"kernel k(out u32 o[9]) over (i in 9) { u32 e = 0; while (e < 5) at most 2147483648 { e += 1; } o[i] = "
		"e; }",
		"kernel k(out u32 o[9]) over (i in 9) { u32 e = 0; for (k in i64(0)..2147483648) { e += 1; } o[i] = e; "
		"}",
	};

	for (unsigned k = 0; k < sizeof texts / sizeof *texts; k++) {
		struct jk_file *f = jk_parse("test.jk", texts[k], strlen(texts[k]), &m);
		struct jk_kernel *kernel = f ? jk_bind(f, NULL, NULL, 0, &m) : NULL;
		if (kernel && jk_build_lanes(&ir, kernel, 8, 1, false, &err))
			fail_msg("not refused: %s", texts[k]);
		assert_non_null(strstr(kernel ? err.text : m.message[0].text, "2^31 - 1 iterations"));
		jk_kernel_close(kernel);
		jk_file_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saxpy),
		cmocka_unit_test(test_mandelbrot),
		cmocka_unit_test(test_stencil),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_ragged_loops),
		cmocka_unit_test(test_many_iterations),
		cmocka_unit_test(test_reductions_of_nan),
		cmocka_unit_test(test_masks_and_clauses),
		cmocka_unit_test(test_apart),
	};

	return cmocka_run_group_tests_name("t_kernels", tests, NULL, NULL);
}
