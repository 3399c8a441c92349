/* tests/runtime/math_tests.c - the math of the host: exponentials, rotations, sampling, the greatest of many. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/math_host.h"
#include "runtime/host/pool.h"
#include "runtime/session/logits.h"
#include "runtime/plan/rope.h"
#include "runtime/sampling/greatest.h"
#include "runtime/sampling/sampling.h"
#include "runtime/host/system.h"
#include "tests/support/shared.h"
#include "tests/runtime/math_tests.h"

/* How far off, in units of the last place that the right result has. */
static double units_off(double got, long double want)
{
	double near = fabs((double)want);
	return (double)fabsl((got - want) / (nextafter(near, INFINITY) - near));
}

/* Many at once give the bits of each, wherever they stand among others, in and out of what is done side by side. */
static void test_math_many(void **state)
{
	enum { N = 4003 };
	static double x[N], want[N];
	(void)state;
	for (int i = 0; i < N; i++) {
		x[i] = i % 1000 < 500 ? -700.0 * (i % 1000) / 500 : -exp(i % 97 - 60.0);
		if (i > 3000)
			x[i] = i % 3 ? x[i] : i % 2 ? 3.5 : -744.5;
	}
	x[7] = x[1600] = 0;
	x[1601] = -0.0;
	x[1602] = -700;
	x[2017] = -1e300;
	for (int i = 0; i < N; i++)
		want[i] = math_host_exp(x[i]);
	math_host_exps(x, N);
	assert_memory_equal(x, want, sizeof x);
}

/* The bounds that math_host.h states, against long doubles. */
static void test_math_bounds(void **state)
{
	int max = test_quick() ? 100000 : 1000000;
	double exp_off = 0, log_off = 0, sum_off = 0;
	uint64_t r = 3;
	(void)state;

	for (int i = 0; i < max; i++) {
		r = r * 6364136223846793005ull + 1442695040888963407ull;
		double u = (double)(r >> 11) * 0x1p-53,
		       x = (u - 0.5) * (i % 3 == 0   ? 1400
		                        : i % 3 == 1 ? 2
		                                     : 0.01),
		       y = (double)expl((long double)((u - 0.5) * (i % 3 ? 1 : 1400)));
		exp_off = fmax(exp_off, units_off(math_host_exp(x), expl(x)));
		log_off = fmax(log_off, units_off(math_host_log(y), logl(y)));
		const float d = (float)(-600 * u * u * u);
		sum_off = fmax(sum_off, units_off(math_host_sum_exp(&d, 1, 0), expl(d)));
	}
	if (exp_off > 1.2 || log_off > 3 || sum_off > 1.2)
		fail_msg("exp %.3f, log %.3f, sum of exp %.3f units off", exp_off, log_off, sum_off);
	assert_true(math_host_log(1) == 0);
	assert_true(math_host_sum_exp((const float[]){ -3e38f, 3e38f, -INFINITY }, 2, 3e38f) == 1);
}

static void test_math(void **state)
{
	uint64_t r = 1;
	(void)state;
	for (int i = 0; i < 200000; i++) {
		r = r * 6364136223846793005ull + 1442695040888963407ull;
		double u = (double)(r >> 11) * 0x1p-53, x = (u - 0.5) * 1400, s, c;
		if (x > -700)
			assert_true(fabs(math_host_exp(x) / exp(x) - 1) < 1e-15);
		double y = exp((u - 0.5) * 200);
		assert_true(fabs(math_host_log(y) - log(y)) <= 1e-15 * fabs(log(y)) + 1e-16);
		double z = u * 131072;
		math_host_sincos(z, &s, &c);
		assert_true(fabs(s - sin(z)) < 1e-15 && fabs(c - cos(z)) < 1e-15);
		math_host_sincos(-z, &s, &c);
		assert_true(fabs(s + sin(z)) < 1e-15 && fabs(c - cos(z)) < 1e-15);
	}
	assert_true(math_host_exp(0) == 1 && math_host_exp(-800) == 0 && isinf(math_host_exp(710)) &&
	            isnan(math_host_exp(NAN)));
	assert_true(fabs(math_host_pow(500000, 0.25) / pow(500000, 0.25) - 1) < 1e-14);
}

static void test_rope(void **state)
{
	float f[64], g[64], factors[64];
	struct model_rope r = { .dims = 128, .theta = 10000, .scaling = ROPE_NONE };
	(void)state;
	assert_true(rope_frequencies(f, &r) == 1);
	assert_true(f[0] == 1 && f[32] == 0.01f);
	r.scaling = ROPE_LINEAR;
	r.factor = 4;
	rope_frequencies(g, &r);
	assert_true(g[10] == f[10] / 4);
	r = (struct model_rope){ .dims = 128,
		                 .theta = 500000,
		                 .scaling = ROPE_LLAMA3,
		                 .factor = 8,
		                 .low_freq_factor = 1,
		                 .high_freq_factor = 4,
		                 .original_context = 8192 };
	rope_frequencies(g, &r);
	r.scaling = ROPE_NONE;
	rope_frequencies(f, &r);
	assert_true(g[0] == f[0] &&
	            g[63] == f[63] / 8); /* short waves kept, long ones divided, between them in between */
	assert_true(g[32] < f[32] && g[32] > f[32] / 8);
	for (int i = 0; i < 64; i++)
		factors[i] = (float)(i + 1);
	r.freq_factors = factors;
	rope_frequencies(g, &r);
	assert_true(g[7] == f[7] / 8);
	r = (struct model_rope){
		.dims = 128,
		.theta = 10000,
		.scaling = ROPE_YARN,
		.factor = 4,
		.original_context = 4096,
		.beta_fast = 32,
		.beta_slow = 1,
		.attention_factor = 1.138,
		.yarn_truncate = true
	};
	assert_true(rope_frequencies(g, &r) == (float)1.138);
	r.scaling = ROPE_NONE;
	rope_frequencies(f, &r);
	assert_true(g[0] == f[0] && g[63] == f[63] / 4);
	/* pairs turn 32 times in the original context at 20.94 and once at 45.03; truncated, the blend goes from 20 to
	 * 46 */
	r.scaling = ROPE_YARN;
	rope_frequencies(g, &r);
	assert_true(g[20] == f[20] && g[46] == f[46] / 4 && fabsf(g[21] / f[21] - (1 - 0.75f / 26)) < 1e-6f &&
	            fabsf(g[33] / f[33] - 0.625f) < 1e-6f);
	r.yarn_truncate = false;
	rope_frequencies(g, &r);
	assert_true(g[20] == f[20] && g[46] == f[46] / 4 && g[21] / f[21] > 0.99f && g[33] / f[33] > 0.6240f &&
	            g[33] / f[33] < 0.6249f);
	float cs[2][4], sn[2][4], inv[4] = { 1, 0.5f, 0.25f, 0 };
	rope_rows(cs[0], sn[0], inv, 4, 4, 2, 7, 2);
	assert_true(cs[1][1] == (float)(2 * cos(4)) && sn[0][0] == (float)(2 * sin(7)) && cs[1][3] == 2 &&
	            sn[1][3] == 0);
}

enum { SAMPLED = 1000, DRAWS = 20000 };

/* Three tokens that can be drawn: 7, 100 and 3, with 0.6, 0.3 and 0.1. */
static void open_three(struct sampling *s, float logits[SAMPLED])
{
	*s = (struct sampling){ 0 };
	assert_true(sampling_open(s, SAMPLED));
	for (int i = 0; i < SAMPLED; i++)
		logits[i] = -20;
	logits[7] = logf(0.6f);
	logits[100] = logf(0.3f);
	logits[3] = logf(0.1f);
}

static void test_sampling(void **state)
{
	float logits[SAMPLED];
	int count[SAMPLED] = { 0 };
	struct sampling s;
	(void)state;
	open_three(&s, logits);
	assert_int_equal(sampling_choose(&s, logits, NULL, 0), 7); /* greedy */
	s.params = JIT_SAMPLING(.temperature = 1, .seed = 5);
	for (size_t i = 0; i < DRAWS; i++)
		count[sampling_choose(&s, logits, NULL, i)]++;
	assert_true(fabs(count[7] / (double)DRAWS - 0.6) < 0.02 && fabs(count[100] / (double)DRAWS - 0.3) < 0.02 &&
	            fabs(count[3] / (double)DRAWS - 0.1) < 0.02);
	sampling_close(&s);
}

static const struct {
	jit_sampling p;
	double want[3];
} filters[] = { { { .temperature = 1, .top_k = 2 }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 1, .top_p = 0.85f }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 1, .top_p = 0.95f }, { 0.6, 0.3, 0.1 } },
	        { { .temperature = 1, .min_p = 0.4f }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 0.5f }, { 0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46 } },
	        { { .temperature = 1, .top_k = 2, .top_p = 0.6f }, { 1, 0, 0 } },
	        { { .temperature = 1, .top_k = 1 }, { 1, 0, 0 } },
	        /* either side of where a filter takes one token more */
	        { { .temperature = 1, .top_p = 0.599f }, { 1, 0, 0 } },
	        { { .temperature = 1, .top_p = 0.601f }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 1, .top_p = 0.899f }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 1, .top_p = 0.901f }, { 0.6, 0.3, 0.1 } },
	        { { .temperature = 1, .min_p = 0.499f }, { 2.0 / 3, 1.0 / 3, 0 } },
	        { { .temperature = 1, .min_p = 0.501f }, { 1, 0, 0 } } };

static void test_filters(void **state)
{
	float logits[SAMPLED];
	int count[SAMPLED];
	struct sampling s;
	(void)state;
	open_three(&s, logits);
	for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
		memset(count, 0, sizeof count);
		s.params = filters[f].p;
		s.params.seed = 99;
		for (size_t i = 0; i < DRAWS; i++)
			count[sampling_choose(&s, logits, NULL, i)]++;
		const int id[3] = { 7, 100, 3 };
		for (int k = 0; k < 3; k++)
			if (fabs(count[id[k]] / (double)DRAWS - filters[f].want[k]) > 0.02)
				fail_msg("filter %zu: token %d drawn %d of %d", f, id[k], count[id[k]], DRAWS);
	}
	sampling_close(&s);
}

/* Ties go to the lowest id; the penalty moves a seen token down, once however often it was seen, and only one of the
 * last so many. */
static void test_ties_and_penalties(void **state)
{
	float flat[SAMPLED] = { 0 };
	struct sampling s = { 0 };
	(void)state;
	assert_true(sampling_open(&s, SAMPLED));
	assert_int_equal(sampling_choose(&s, flat, NULL, 0), 0);
	int32_t history[] = { 7, 7, 7 };
	s.params = JIT_SAMPLING(.repeat_penalty = 3);
	for (int i = 0; i < SAMPLED; i++)
		flat[i] = 1;
	flat[7] = 2;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 0);
	flat[7] = 4;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 7);
	flat[7] = 2;
	history[1] = history[2] = 9;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 0);
	s.params.repeat_window = 2;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 7);
	s.params.repeat_window = 3;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 0);
	sampling_close(&s);
}

/* The first of the greatest, wherever blocks and chains begin and end, and whatever stands beside it. */
static void test_greatest(void **state)
{
	enum { MAX = 5000 };
	struct sampling s = { 0 };
	float *x = test_malloc(MAX * sizeof *x);
	uint32_t r = 1;
	(void)state;

	for (int n = 1; n <= MAX; n = n < 70 ? n + 1 : n * 3 / 2 + 1) {
		assert_true(sampling_open(&s, n));
		for (int kind = 0; kind < 6; kind++) {
			float max = -INFINITY;
			int32_t first = 0;
			for (int i = 0; i < n; i++) {
				r = r * 1664525u + 1013904223u;
				x[i] = kind == 0   ? NAN
				       : kind == 1 ? -INFINITY
				       : kind == 2 ? (r >> 31 ? 0.0f : -0.0f)
				                   : (float)(r >> 28) - 20;
				if (kind > 3 && r >> 30 == 0)
					x[i] = NAN;
			}
			for (int i = n; i-- > 0;)
				max = x[i] > max ? x[i] : max;
			for (int i = n; i-- > 0;)
				first = x[i] == max ? i : first;
			assert_int_equal(sampling_choose(&s, x, NULL, 0), first);
		}
		sampling_close(&s);
	}
	test_free(x);
}

/* The same where the greatest of each 32 is known: ties within a block and between blocks, and zeros of both signs. */
static void test_greatest_of_blocks(void **state)
{
	enum { BLOCKS = 40 };
	float x[32 * BLOCKS], greatest[BLOCKS];
	uint32_t r = 7;
	(void)state;

	for (int round = 0; round < 2000; round++) {
		int blocks = 1 + round % BLOCKS;
		for (int i = 0; i < 32 * blocks; i++) {
			r = r * 1664525u + 1013904223u;
			x[i] = round % 3 ? (float)(r >> (round % 3 == 1 ? 28 : 16)) - 20 : r >> 31 ? 0.0f : -0.0f;
		}
		for (int b = 0; b < blocks; b++) {
			greatest[b] = -INFINITY;
			for (int i = 0; i < 32; i++)
				greatest[b] = fmaxf(greatest[b], x[32 * b + i]);
		}
		assert_int_equal(greatest_of_blocks(x, greatest, 32 * blocks), greatest_first(x, 32 * blocks));
		assert_true(logits_are_finite(greatest, 32 * (uint32_t)blocks));
		greatest[round % blocks] = INFINITY;
		assert_false(logits_are_finite(greatest, 32 * (uint32_t)blocks));
	}
}

int math_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_math),
		cmocka_unit_test(test_math_bounds),
		cmocka_unit_test(test_math_many),
		cmocka_unit_test(test_rope),
		cmocka_unit_test(test_sampling),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_ties_and_penalties),
		cmocka_unit_test(test_greatest),
		cmocka_unit_test(test_greatest_of_blocks),
	};

	return cmocka_run_group_tests_name("math_tests", tests, NULL, NULL);
}
