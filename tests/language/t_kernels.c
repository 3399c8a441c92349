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

static const char saxpy[] =
	"const i64 n;\n"
	"kernel saxpy(in f32 x[n], inout f32 y[n], f32 a) over (i in n) { y[i] = fma(a, x[i], y[i]); }\n";

static void check_saxpy(unsigned n, enum run_machines machines)
{
	char constants[40];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open(&r, saxpy, "saxpy", constants);
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
	static const unsigned sizes[] = {
		0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 97, 255, 256, 257, 511, 512, 513, 1021
	};

	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		check_saxpy(sizes[k], sizes[k] < 100 || sizes[k] == 257 ? RUN_CARDS : RUN_CPUS);
}

/* --- mandelbrot: loops that lanes leave one by one */

static const char mandelbrot[] =
	"const i32 width; const i32 height; const i32 most = 256;\n"
	"const f32 x0 = -2; const f32 x1 = 1; const f32 y0 = -1; const f32 y1 = 1;\n"
	"kernel mandelbrot(out i32 o[height][width]) over (j in height, i in width) {\n"
	"	f32 dx = (x1 - x0) / f32(width);\n"
	"	f32 dy = (y1 - y0) / f32(height);\n"
	"	f32 c_re = x0 + f32(i) * dx, c_im = y0 + f32(j) * dy;\n"
	"	f32 re = c_re, im = c_im;\n"
	"	i32 count = 0;\n"
	"	for (k in 0..most) {\n"
	"		if (re * re + im * im > 4)\n"
	"			break;\n"
	"		f32 new_re = re * re - im * im, new_im = 2 * re * im;\n"
	"		re = c_re + new_re;\n"
	"		im = c_im + new_im;\n"
	"		count += 1;\n"
	"	}\n"
	"	o[j][i] = count;\n"
	"}\n";

static int32_t mandel(float c_re, float c_im, int32_t most)
{
	float re = c_re, im = c_im;
	int32_t k;

	for (k = 0; k < most && !(re * re + im * im > 4.0f); k++) {
		const float new_re = re * re - im * im, new_im = 2.0f * re * im;
		re = c_re + new_re;
		im = c_im + new_im;
	}
	return k;
}

static void check_mandelbrot(int width, int height, const char *constants, enum run_machines machines)
{
	const float dx = (1.0f - -2.0f) / (float)width, dy = (1.0f - -1.0f) / (float)height;
	struct run r;

	run_open(&r, mandelbrot, NULL, constants);
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
	check_mandelbrot(37, 11, "width=37 height=11", RUN_CARDS);
	check_mandelbrot(300, 5, "width=300 height=5", RUN_CPUS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_mandelbrot(768, 512, "width=768 height=512", RUN_CPUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saxpy),
		cmocka_unit_test(test_mandelbrot),
	};

	return cmocka_run_group_tests_name("t_kernels", tests, NULL, NULL);
}
