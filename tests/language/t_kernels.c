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

/* --- a stencil, six steps between two arrays */

static const char stencil[] =
	"const i32 n;\n"
	"kernel stencil(in f32 a[n][n][n], in f32 vsq[n][n][n], inout f32 o[n][n][n]) over (z in 4..n - 4, y in 4..n - "
	"4, x in 4..n - 4) {\n"
	"\tf32 div = 0.5 * a[z][y][x]\n"
	"\t\t- 0.25 * (a[z][y][x + 1] + a[z][y][x - 1] + a[z][y + 1][x] + a[z][y - 1][x] + a[z + 1][y][x] + a[z - "
	"1][y][x])\n"
	"\t\t+ 0.125 * (a[z][y][x + 2] + a[z][y][x - 2] + a[z][y + 2][x] + a[z][y - 2][x] + a[z + 2][y][x] + a[z - "
	"2][y][x])\n"
	"\t\t+ -0.0625 * (a[z][y][x + 3] + a[z][y][x - 3] + a[z][y + 3][x] + a[z][y - 3][x] + a[z + 3][y][x] + a[z - "
	"3][y][x]);\n"
	"\to[z][y][x] = 2 * a[z][y][x] - o[z][y][x] + vsq[z][y][x] * div;\n"
	"}\n";

static void check_stencil(int n, const char *constants, uint64_t odd, uint64_t even, enum run_machines machines)
{
	const size_t size = (size_t)n * (size_t)n * (size_t)n, bytes = size * sizeof(float);
	float *one = malloc(bytes), *other = malloc(bytes);
	struct run r;

	assert_non_null(one);
	assert_non_null(other);
	run_open(&r, stencil, NULL, constants);
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
		run_everywhere(&r, machines);
		memcpy(step & 1 ? one : other, o, bytes);
	}
	if (odd) {
		assert_true(run_hash(other, bytes) == odd);
		assert_true(run_hash(one, bytes) == even);
	}
	free(one);
	free(other);
	run_close(&r);
}

static void test_stencil(void **state)
{
	check_stencil(13, "n=13", 0, 0, RUN_CARDS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_stencil(64, "n=64", UINT64_C(0x329e2a9fc2f4d5f9), UINT64_C(0x1facf2a8a7b92019), RUN_CPUS);
}

/* --- Perlin noise: functions, and gathers by what other gathers give */

static const char noise[] =
	"const i32 width;\n"
	"const i32 height;\n"
	"const f32 x0 = -10; const f32 x1 = 10; const f32 y0 = -10; const f32 y1 = 10;\n"
	"fn f32 grad(in i32 perm[512], i32 x, i32 y, i32 z, f32 dx, f32 dy, f32 dz) {\n"
	"\ti32 h = perm[perm[perm[x] + y] + z] & 15;\n"
	"\tf32 u = h < 8 || h == 12 || h == 13 ? dx : dy;\n"
	"\tf32 v = h < 4 || h == 12 || h == 13 ? dy : dz;\n"
	"\treturn ((h & 1) != 0 ? -u : u) + ((h & 2) != 0 ? -v : v);\n"
	"}\n"
	"fn f32 weight(f32 t) { f32 t3 = t * t * t; f32 t4 = t3 * t; return 6 * t4 * t - 15 * t4 + 10 * t3; }\n"
	"fn f32 lerp(f32 t, f32 low, f32 high) { return (1 - t) * low + t * high; }\n"
	"fn f32 noise(in i32 perm[512], f32 x, f32 y, f32 z) {\n"
	"\ti32 ix = i32(floor(x)); i32 iy = i32(floor(y)); i32 iz = i32(floor(z));\n"
	"\tf32 dx = x - f32(ix); f32 dy = y - f32(iy); f32 dz = z - f32(iz);\n"
	"\ti32 jx = ix & 255; i32 jy = iy & 255; i32 jz = iz & 255;\n"
	"\tf32 w000 = grad(perm, jx, jy, jz, dx, dy, dz);\n"
	"\tf32 w100 = grad(perm, jx + 1, jy, jz, dx - 1, dy, dz);\n"
	"\tf32 w010 = grad(perm, jx, jy + 1, jz, dx, dy - 1, dz);\n"
	"\tf32 w110 = grad(perm, jx + 1, jy + 1, jz, dx - 1, dy - 1, dz);\n"
	"\tf32 w001 = grad(perm, jx, jy, jz + 1, dx, dy, dz - 1);\n"
	"\tf32 w101 = grad(perm, jx + 1, jy, jz + 1, dx - 1, dy, dz - 1);\n"
	"\tf32 w011 = grad(perm, jx, jy + 1, jz + 1, dx, dy - 1, dz - 1);\n"
	"\tf32 w111 = grad(perm, jx + 1, jy + 1, jz + 1, dx - 1, dy - 1, dz - 1);\n"
	"\tf32 wx = weight(dx); f32 wy = weight(dy); f32 wz = weight(dz);\n"
	"\tf32 x00 = lerp(wx, w000, w100); f32 x10 = lerp(wx, w010, w110);\n"
	"\tf32 x01 = lerp(wx, w001, w101); f32 x11 = lerp(wx, w011, w111);\n"
	"\tf32 yy0 = lerp(wy, x00, x10); f32 yy1 = lerp(wy, x01, x11);\n"
	"\treturn lerp(wz, yy0, yy1);\n"
	"}\n"
	"kernel noises(in i32 perm[512], out f32 o[height][width]) over (j in height, i in width) {\n"
	"\tf32 dx = (x1 - x0) / f32(width);\n"
	"\tf32 dy = (y1 - y0) / f32(height);\n"
	"\tf32 x = x0 + f32(i) * dx;\n"
	"\tf32 y = y0 + f32(j) * dy;\n"
	"\tf32 omega = 0.6; f32 lambda = 1; f32 o1 = 1; f32 sum = 0;\n"
	"\tfor (k in 0..8) {\n"
	"\t\tsum += abs(o1 * noise(perm, lambda * x, lambda * y, lambda * 0.6));\n"
	"\t\tlambda *= 1.99;\n"
	"\t\to1 *= omega;\n"
	"\t}\n"
	"\to[j][i] = sum * 0.5;\n"
	"}\n";

static void check_noise(const char *constants, uint64_t hash, enum run_machines machines)
{
	static const uint8_t permutation[256] = {
		151, 160, 137, 91,  90,  15,  131, 13,  201, 95,  96,  53,  194, 233, 7,   225, 140, 36,  103, 30,
		69,  142, 8,   99,  37,  240, 21,  10,  23,  190, 6,   148, 247, 120, 234, 75,  0,   26,  197, 62,
		94,  252, 219, 203, 117, 35,  11,  32,  57,  177, 33,  88,  237, 149, 56,  87,  174, 20,  125, 136,
		171, 168, 68,  175, 74,  165, 71,  134, 139, 48,  27,  166, 77,  146, 158, 231, 83,  111, 229, 122,
		60,  211, 133, 230, 220, 105, 92,  41,  55,  46,  245, 40,  244, 102, 143, 54,  65,  25,  63,  161,
		1,   216, 80,  73,  209, 76,  132, 187, 208, 89,  18,  169, 200, 196, 135, 130, 116, 188, 159, 86,
		164, 100, 109, 198, 173, 186, 3,   64,  52,  217, 226, 250, 124, 123, 5,   202, 38,  147, 118, 126,
		255, 82,  85,  212, 207, 206, 59,  227, 47,  16,  58,  17,  182, 189, 28,  42,  223, 183, 170, 213,
		119, 248, 152, 2,   44,  154, 163, 70,  221, 153, 101, 155, 167, 43,  172, 9,   129, 22,  39,  253,
		19,  98,  108, 110, 79,  113, 224, 232, 178, 185, 112, 104, 218, 246, 97,  228, 251, 34,  242, 193,
		238, 210, 144, 12,  191, 179, 162, 241, 81,  51,  145, 235, 249, 14,  239, 107, 49,  192, 214, 31,
		181, 199, 106, 157, 184, 84,  204, 176, 115, 121, 50,  45,  127, 4,   150, 254, 138, 236, 205, 93,
		222, 114, 67,  29,  24,  72,  243, 141, 128, 195, 78,  66,  215, 61,  156, 180,
	};
	struct run r;

	run_open(&r, noise, NULL, constants);
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
	check_noise("width=19 height=2", 0, RUN_CARDS);
	if (!getenv("JITRUN_TEST_QUICK"))
		check_noise("width=768 height=768", UINT64_C(0xde9724c5d51b3c0d), RUN_CPUS);
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

/* --- options: functions of one series, against double precision */

static const char options[] =
	"const i32 n = 3;\n"
	"fn f32 cnd(f32 x) {\n"
	"\tf32 l = abs(x);\n"
	"\tf32 k = 1 / (1 + 0.2316419 * l);\n"
	"\tf32 k2 = k * k; f32 k3 = k2 * k; f32 k4 = k2 * k2; f32 k5 = k3 * k2;\n"
	"\tf32 w = 0.31938153 * k - 0.356563782 * k2 + 1.781477937 * k3 - 1.821255978 * k4 + 1.330274429 * k5;\n"
	"\tw *= 0.39894228040 * exp(-l * l * 0.5);\n"
	"\tif (x > 0) w = 1 - w;\n"
	"\treturn w;\n"
	"}\n"
	"kernel black_scholes(in f32 s[n], in f32 x[n], in f32 t[n], in f32 r[n], in f32 v[n], out f32 o[n]) over (i "
	"in n) {\n"
	"\tf32 root = sqrt(t[i]);\n"
	"\tf32 d1 = (log(s[i] / x[i]) + (r[i] + v[i] * v[i] * 0.5) * t[i]) / (v[i] * root);\n"
	"\tf32 d2 = d1 - v[i] * root;\n"
	"\to[i] = s[i] * cnd(d1) - x[i] * exp(-r[i] * t[i]) * cnd(d2);\n"
	"}\n";

static void test_options(void **state)
{
	struct run r;

	run_open(&r, options, NULL, "");
	static const struct {
		const char *name;
		float value;
	} inputs[] = { { "s", 100 }, { "x", 98 }, { "t", 2 }, { "r", 0.02f }, { "v", 5 } };
	for (unsigned k = 0; k < 5; k++)
		for (unsigned i = 0; i < 3; i++)
			((float *)run_array(&r, inputs[k].name))[i] = inputs[k].value;
	run_everywhere(&r, RUN_CARDS);
	assert_true(fabs((double)((float *)run_array(&r, "o"))[1] - 99.9605026) < 1e-5 * 100);
	run_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saxpy), cmocka_unit_test(test_mandelbrot), cmocka_unit_test(test_stencil),
		cmocka_unit_test(test_noise), cmocka_unit_test(test_types),      cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests_name("t_kernels", tests, NULL, NULL);
}
