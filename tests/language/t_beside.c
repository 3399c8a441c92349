/* tests/language/t_beside.c - kernels whose rows and vectors are written side by side give what a plain loop gives:
 * rows and vectors that are left over, a third index, indices that begin behind 0, loops whose ends rows do not share,
 * loops that lanes leave, values of 64 bits, and NaN.
 */
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

static const char text[] =
	"const i64 m; const i64 n; const i64 k;\n"
	"kernel product(in f32 a[2][m + 1][k + 1], in f32 b[k + 1][n + 2], out f32 c[2][m + 1][n + 2])\n"
	"over (z in 2, y in 1..m + 1, x in 2..n + 2) {\n"
	"	f32 s = 0.5;\n"
	"	for (p in 0..k) { s = fma(a[z][y][p], b[p][x], s); }\n"
	"	c[z][y][x] = s;\n"
	"}\n"
	"kernel ragged(in f32 a[2][m + 1][k + 1], in f32 b[k + 1][n + 2], out f32 c[2][m + 1][n + 2])\n"
	"over (y in 1..m + 1, x in 2..n + 2) {\n"
	"	f32 s = f32(x);\n"
	"	for (p in 0..k) { if (b[p][x] > 0.25) { s += a[1][y][p]; } }\n"
	"	for (p in 0..min(y, k)) { s = fma(a[0][y][p], b[p][x], s); }\n"
	"	for (p in 0..k) { if (s > 9) { break; } s += 0.75; }\n"
	"	c[1][y][x] = s;\n"
	"}\n"
	"kernel wide(in f32 a[2][m + 1][k + 1], in f32 b[k + 1][n + 2], out f64 d[m][n], inout i32 count[1])\n"
	"over (y in m, x in n) {\n"
	"	f64 s = 0;\n"
	"	for (p in 0..k) unroll(3) { for (q in 0..2) { s += f64(a[q][y][p]) * f64(b[p][x]); } }\n"
	"	d[y][x] = s;\n"
	"	atomic_add(count[0], 1);\n"
	"}\n";

struct sizes {
	size_t m, n, k;
};

static float element(const struct run *r, const char *name, size_t at)
{
	return ((const float *)run_array(r, name))[at];
}
static float a_of(const struct run *r, const struct sizes *s, size_t z, size_t y, size_t p)
{
	return element(r, "a", (z * (s->m + 1) + y) * (s->k + 1) + p);
}
static float b_of(const struct run *r, const struct sizes *s, size_t p, size_t x)
{
	return element(r, "b", p * (s->n + 2) + x);
}
static float c_of(const struct run *r, const struct sizes *s, size_t z, size_t y, size_t x)
{
	return element(r, "c", (z * (s->m + 1) + y) * (s->n + 2) + x);
}

static void open_run(struct run *r, const char *kernel, const struct sizes *s, enum run_machines machines)
{
	char constants[64];

	snprintf(constants, sizeof constants, "m=%zu n=%zu k=%zu", s->m, s->n, s->k);
	run_open(r, text, kernel, constants);
	float *a = run_array(r, "a"), *b = run_array(r, "b");
	for (size_t i = 0; i < 2 * (s->m + 1) * (s->k + 1); i++)
		a[i] = (float)((i * 2654435761u >> 9) % 1000) / 500 - 1;
	for (size_t i = 0; i < (s->k + 1) * (s->n + 2); i++)
		b[i] = (float)((i * 2246822519u >> 9) % 1000) / 500 - 1;
	run_everywhere(r, machines);
}

static void one_product(const struct sizes *s, enum run_machines machines)
{
	struct run r;

	open_run(&r, "product", s, machines);
	for (size_t z = 0; z < 2; z++)
		for (size_t y = 0; y < s->m + 1; y++)
			for (size_t x = 0; x < s->n + 2; x++) {
				float sum = 0.5f;
				for (size_t p = 0; p < s->k; p++)
					sum = fmaf(a_of(&r, s, z, y, p), b_of(&r, s, p, x), sum);
				assert_true(c_of(&r, s, z, y, x) == (y && x > 1 ? sum : 0));
			}
	run_close(&r);
}

static void one_ragged(const struct sizes *s, enum run_machines machines)
{
	struct run r;

	open_run(&r, "ragged", s, machines);
	for (size_t y = 1; y < s->m + 1; y++)
		for (size_t x = 2; x < s->n + 2; x++) {
			float sum = (float)x;
			for (size_t p = 0; p < s->k; p++)
				sum += b_of(&r, s, p, x) > 0.25f ? a_of(&r, s, 1, y, p) : 0;
			for (size_t p = 0; p < y && p < s->k; p++)
				sum = fmaf(a_of(&r, s, 0, y, p), b_of(&r, s, p, x), sum);
			for (size_t p = 0; p < s->k && sum <= 9; p++)
				sum += 0.75f;
			assert_true(c_of(&r, s, 1, y, x) == sum);
		}
	run_close(&r);
}

static void one_wide(const struct sizes *s, enum run_machines machines)
{
	struct run r;

	open_run(&r, "wide", s, machines);
	const double *d = run_array(&r, "d");
	for (size_t y = 0; y < s->m; y++)
		for (size_t x = 0; x < s->n; x++) {
			double sum = 0;
			for (size_t p = 0; p < s->k; p++)
				for (size_t q = 0; q < 2; q++) {
					const double product = (double)a_of(&r, s, q, y, p) * (double)b_of(&r, s, p, x);
					sum += product;
				}
			assert_true(d[y * s->n + x] == sum);
		}
	assert_int_equal(*(int32_t *)run_array(&r, "count"), s->m * s->n);
	run_close(&r);
}

static const struct sizes swept[] = {
	{ 4, 16, 3 }, { 5, 33, 4 }, { 3, 17, 5 },  { 9, 300, 2 },
	{ 1, 1, 1 },  { 8, 64, 0 }, { 7, 271, 6 }, { 6, 100, 1 },
};

static void test_products(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof swept / sizeof *swept; i++)
		one_product(&swept[i], i < 2 || !getenv("JITRUN_TEST_QUICK") ? RUN_CARDS : RUN_CPUS);
}

static void test_ragged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof swept / sizeof *swept; i++)
		one_ragged(&swept[i], i == 1 || !getenv("JITRUN_TEST_QUICK") ? RUN_CARDS : RUN_CPUS);
}

static void test_wide(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof swept / sizeof *swept; i++)
		one_wide(&swept[i], i == 1 || !getenv("JITRUN_TEST_QUICK") ? RUN_CARDS : RUN_CPUS);
}

/* Beside a loop that rows share, one that has as many turns as the row's number. */
static void test_own_ends(void **state)
{
	struct run r;
	(void)state;

	run_open(&r,
	         "kernel own(in i32 b[3][20], out i32 c[9][20]) over (y in 9, x in 20) {\n"
	         "	i32 s = 0;\n"
	         "	for (p in 0..3) { s += b[p][x]; }\n"
	         "	for (q in 0..y) { s += 100; }\n"
	         "	c[y][x] = s;\n"
	         "}\n",
	         "own", "");
	for (int32_t i = 0; i < 60; i++)
		((int32_t *)run_array(&r, "b"))[i] = i;
	run_everywhere(&r, RUN_CARDS);
	for (int32_t i = 0; i < 180; i++)
		assert_int_equal(((const int32_t *)run_array(&r, "c"))[i], 3 * (i % 20) + 60 + i / 20 * 100);
	run_close(&r);
}

/* Factors of an index beyond 32 bits. */
static void test_large_factors(void **state)
{
	struct run r;
	(void)state;

	run_open(&r,
	         "const i64 n;\n"
	         "kernel far(out i64 o[n]) over (i in n) {\n"
	         "	for (q in 0..2) { o[i] = (4294967311 * i + i64(8589934609) * i64(q)) % 1000003; }\n"
	         "}\n",
	         "far", "n=40");
	run_everywhere(&r, RUN_CARDS);
	for (int64_t i = 0; i < 40; i++)
		assert_int_equal(((const int64_t *)run_array(&r, "o"))[i],
		                 (INT64_C(4294967311) * i + INT64_C(8589934609)) % 1000003);
	run_close(&r);
}

/* Lanes that have four neighbours: what an instance wrote it reads again, a row's last ones, and reads that begin
 * between the neighbours' places. */
static void one_quads(size_t m, size_t n)
{
	char constants[64];
	struct run r;

	snprintf(constants, sizeof constants, "m=%zu n=%zu", m, n);
	run_open(&r,
	         "const i64 m; const i64 n;\n"
	         "kernel quads(in f32 a[m][n + 8], in u32 b[n + 4], inout f32 c[m][n + 4], out i32 d[m][n + 4], inout "
	         "u32 e[m][n + 4])\n"
	         "over (y in m, x in 4..n + 4) {\n"
	         "	f32 s = a[y][x - 3] * 0.5 + a[y][x + 3] + c[y][x];\n"
	         "	if (s > 1) { s -= 1; }\n"
	         "	c[y][x] = s;\n"
	         "	e[y][x] = e[y][x] ^ b[x];\n"
	         "	d[y][x] = i32(b[x - 1] & 255) + i32(x) + i32(c[y][x] * 4) + i32(b[3] & 7);\n"
	         "}\n",
	         "quads", constants);
	float *a = run_array(&r, "a"), *c = run_array(&r, "c"), *old = malloc(m * (n + 4) * sizeof *old);
	uint32_t *b = run_array(&r, "b"), *e = run_array(&r, "e");
	assert_non_null(old);
	for (size_t i = 0; i < m * (n + 8); i++)
		a[i] = (float)((i * 2654435761u >> 9) % 1000) / 500 - 1;
	for (size_t i = 0; i < n + 4; i++)
		b[i] = (uint32_t)i * 2246822519u;
	for (size_t i = 0; i < m * (n + 4); i++) {
		old[i] = c[i] = (float)((i * 2246822519u >> 9) % 1000) / 500 - 1;
		e[i] = (uint32_t)i * 7;
	}
	run_everywhere(&r, RUN_CARDS);
	for (size_t y = 0; y < m; y++)
		for (size_t x = 4; x < n + 4; x++) {
			const size_t i = y * (n + 4) + x;
			const float half = element(&r, "a", y * (n + 8) + x - 3) * 0.5f,
				    first = half + element(&r, "a", y * (n + 8) + x + 3), sum = first + old[i];
			const float s = sum > 1 ? sum - 1 : sum;
			assert_true(element(&r, "c", i) == s);
			assert_int_equal(((const uint32_t *)run_array(&r, "e"))[i],
			                 (uint32_t)i * 7 ^ (uint32_t)x * 2246822519u);
			assert_int_equal(((const int32_t *)run_array(&r, "d"))[i],
			                 (int32_t)((uint32_t)(x - 1) * 2246822519u & 255) + (int32_t)x +
			                         (int32_t)(s * 4) + (int32_t)(3 * 2246822519u & 7));
		}
	free(old);
	run_close(&r);
}

static void test_quads(void **state)
{
	static const size_t n[] = { 300, 4, 133, 1, 124, 128, 132, 252, 256, 260, 380, 516 };
	const size_t count = getenv("JITRUN_TEST_QUICK") ? 3 : sizeof n / sizeof *n;

	(void)state;
	for (size_t k = 0; k < count; k++)
		one_quads(1 + k % 3, n[k]);
}

/* A card loads four neighbours at once where they lie at multiples of 16 bytes alone. */
static void test_unaligned(void **state)
{
	(void)state;
	for (int64_t from = 0; from < 4; from++) {
		struct run r;
		run_open(&r,
		         "kernel four(i32 at, in f32 x[404], out f32 o[100]) over (i in 100) {\n"
		         "	i32 k = min(max(at, 0), 4);\n"
		         "	o[i] = x[4 * i + k] + x[4 * i + k + 1] + x[4 * i + k + 2] + x[4 * i + k + 3];\n"
		         "}\n",
		         "four", "");
		run_set_bits(&r, "at", (uint64_t)from);
		for (int i = 0; i < 404; i++)
			((float *)run_array(&r, "x"))[i] = (float)i;
		run_everywhere(&r, RUN_CARDS);
		for (int64_t i = 0; i < 100; i++)
			assert_true(((const float *)run_array(&r, "o"))[i] == (float)(16 * i + 4 * from + 6));
		run_close(&r);
	}
}

/* Least and greatest of a value and a constant, and 1 / x, of numbers, zeros, infinities and, where that gives a
 * number, NaN. */
static void test_constants(void **state)
{
	static const uint32_t special[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 1,
		                            0x80000001, 0x7f7fffff, 0x3f800000, 0xc0200000, 0x40400000,
		                            0x7fc00000, 0xffc00001, 0x00800000, 0xfe800000 };
	enum { N = 260, SPECIAL = sizeof special / sizeof *special };
	struct run r;
	(void)state;

	run_open(&r,
	         "kernel bounds(in f32 x[260], out f32 low[260], out f32 high[260], out f32 one[260])\n"
	         "over (i in 260) {\n"
	         "	low[i] = min(x[i], 3); high[i] = max(x[i], -2.5);\n"
	         "	one[i] = 1 / max(min(x[i], 1.5e30), -1);\n"
	         "}\n",
	         "bounds", "");
	float x[N];
	for (size_t i = 0; i < N; i++)
		memcpy(&x[i], &(uint32_t){ i < 2 * SPECIAL ? special[i % SPECIAL] : (uint32_t)i * 2654435761u }, 4);
	memcpy(run_array(&r, "x"), x, sizeof x);
	run_everywhere(&r, RUN_CARDS);
	for (size_t i = 0; i < N; i++) {
		const float low = x[i] < 3 ? x[i] : 3, high = x[i] > -2.5f ? x[i] : -2.5f,
			    within = x[i] < 1.5e30f ? x[i] : 1.5e30f, one = 1 / (within > -1 ? within : -1);
		assert_memory_equal((const float *)run_array(&r, "low") + i, &low, 4);
		assert_memory_equal((const float *)run_array(&r, "high") + i, &high, 4);
		assert_memory_equal((const float *)run_array(&r, "one") + i, &one, 4);
	}
	run_close(&r);
}

/* Machines compute NaNs with other bits; arrays and bits_u32 have one for all. A plain C program says which results are
 * NaN, and that every element that is none has its bits. */
static void test_one_nan(void **state)
{
	static const uint32_t special[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x3f800000, 0xc0200000,
		                            0x7fc00000, 0xffc00001, 0x7f800001, 0xffa00000, 0x7fffffff, 0xffffffff };
	enum { SPECIAL = sizeof special / sizeof *special, N = SPECIAL * SPECIAL };
	struct run r;
	(void)state;

	run_open(&r,
	         "const i64 n = 144;\n"
	         "kernel nan(in f32 x[n], in f32 y[n], out f32 a[n], out f64 b[n], out f16 c[n], out bf16 d[n],\n"
	         "	out u32 e[n], out u64 f[n], out f32 g[2 * n], out f32 h[n], out f16 k[n]) over (i in n) {\n"
	         "	f32 s = x[i] * y[i] - x[i], t = -sqrt(s);\n"
	         "	a[i] = s; b[i] = f64(x[i]) / f64(y[i]); c[i] = s; d[i] = s;\n"
	         "	e[i] = bits_u32(-s); f[i] = bits_u64(f64(x[i])); g[2 * i] = s; h[i] = x[i];\n"
	         "	scatter_distinct(k[(i * 5) % n], t);\n"
	         "}\n",
	         "nan", "");
	float *x = run_array(&r, "x"), *y = run_array(&r, "y");
	for (size_t i = 0; i < N; i++) {
		memcpy(&x[i], &special[i % SPECIAL], 4);
		memcpy(&y[i], &special[i / SPECIAL], 4);
	}
	run_everywhere(&r, RUN_CARDS);
	for (size_t i = 0; i < N; i++) {
		const float product = x[i] * y[i], s = product - x[i];
		const double quotient = (double)x[i] / (double)y[i], widened = (double)x[i];
		const uint16_t half = ((const uint16_t *)run_array(&r, "c"))[i],
			       root = ((const uint16_t *)run_array(&r, "k"))[i * 5 % N];
		uint32_t bits = 0x7fc00000, negative = 0x7fc00000, copied = 0x7fc00000;
		uint64_t wide = UINT64_C(0x7ff8000000000000), same = wide;
		if (!isnan(s)) {
			memcpy(&bits, &s, 4);
			negative = bits ^ 0x80000000;
		}
		if (!isnan(x[i])) {
			memcpy(&copied, &x[i], 4);
			memcpy(&same, &widened, 8);
		}
		if (!isnan(quotient))
			memcpy(&wide, &quotient, 8);
		assert_int_equal(((const uint32_t *)run_array(&r, "a"))[i], bits);
		assert_int_equal(((const uint32_t *)run_array(&r, "g"))[2 * i], bits);
		assert_int_equal(((const uint32_t *)run_array(&r, "e"))[i], negative);
		assert_int_equal(((const uint32_t *)run_array(&r, "h"))[i], copied);
		assert_int_equal(((const uint64_t *)run_array(&r, "b"))[i], wide);
		assert_int_equal(((const uint64_t *)run_array(&r, "f"))[i], same);
		assert_int_equal(((const uint16_t *)run_array(&r, "d"))[i], bits >> 16);
		assert_true(isnan(s) ? half == 0x7fff : (half & 0x7fff) <= 0x7c00);
		assert_true(isnan(s) || s < 0 ? root == 0x7fff : (root & 0x7fff) <= 0x7c00);
	}
	run_close(&r);
}

/* What is cut, chosen or made of integers is no NaN, or the one, whatever NaNs there were before. */
static void test_cut_nan(void **state)
{
	static const uint32_t special[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x3f800000, 0xc0200000,
		                            0x7fc00000, 0xffc00001, 0x7f800001, 0xffa00000, 0x7fffffff, 0xffffffff };
	enum { N = sizeof special / sizeof *special };
	struct run r;
	(void)state;

	run_open(&r,
	         "const i64 n = 12;\n"
	         "kernel cut(in f32 x[n], out f32 a[n], out f32 b[n], out f64 c[n], out f16 d[n], out u32 e[n],\n"
	         "	out f32 g[n]) over (i in n) {\n"
	         "	a[i] = max(x[i], 0); b[i] = max(0, x[i]); c[i] = f64(min(max(x[i], -1), 1));\n"
	         "	d[i] = x[i] > 0 ? f32(i) : 0.5; e[i] = bits_u32(abs(-floor(min(x[i], 2.5))));\n"
	         "	g[i] = min(1, max(-1, x[i]));\n"
	         "}\n",
	         "cut", "");
	float x[N];
	memcpy(x, special, sizeof x);
	memcpy(run_array(&r, "x"), x, sizeof x);
	run_everywhere(&r, RUN_CARDS);
	for (size_t i = 0; i < N; i++) {
		float a = x[i] > 0 ? x[i] : 0, b = 0 > x[i] ? 0 : x[i], low = x[i] > -1 ? x[i] : -1,
		      floored = fabsf(-floorf(x[i] < 2.5f ? x[i] : 2.5f)), after = -1 > x[i] ? -1 : x[i],
		      g = 1 < after ? 1 : after;
		const double c = (double)(low < 1 ? low : 1);
		const uint32_t nan = 0x7fc00000;
		assert_memory_equal((const float *)run_array(&r, "a") + i, &a, 4);
		assert_memory_equal((const float *)run_array(&r, "b") + i, isnan(b) ? (const void *)&nan : &b, 4);
		assert_memory_equal((const double *)run_array(&r, "c") + i, &c, 8);
		assert_true(isnan(x[i]) || !(x[i] > 0) ? ((const uint16_t *)run_array(&r, "d"))[i] == 0x3800 : true);
		assert_memory_equal((const uint32_t *)run_array(&r, "e") + i, &floored, 4);
		assert_memory_equal((const float *)run_array(&r, "g") + i, isnan(g) ? (const void *)&nan : &g, 4);
	}
	run_close(&r);
}

/* What is known when the kernel is bound. */
static void test_known_nan(void **state)
{
	struct run r;
	(void)state;

	run_open(&r,
	         "kernel known(out f32 a[8], out u32 e[8]) over (i in 8) {\n"
	         "	a[i] = f32(0) / 0; e[i] = bits_u32(bits_f32(0xffc00001));\n"
	         "}\n",
	         "known", "");
	run_everywhere(&r, RUN_CARDS);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(((const uint32_t *)run_array(&r, "a"))[i], 0x7fc00000);
		assert_int_equal(((const uint32_t *)run_array(&r, "e"))[i], 0x7fc00000);
	}
	run_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),  cmocka_unit_test(test_ragged),        cmocka_unit_test(test_wide),
		cmocka_unit_test(test_own_ends),  cmocka_unit_test(test_large_factors), cmocka_unit_test(test_quads),
		cmocka_unit_test(test_unaligned), cmocka_unit_test(test_constants),     cmocka_unit_test(test_one_nan),
		cmocka_unit_test(test_known_nan), cmocka_unit_test(test_cut_nan)
	};

	return cmocka_run_group_tests_name("t_beside", tests, NULL, NULL);
}
