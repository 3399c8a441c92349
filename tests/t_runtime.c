/* tests/t_runtime.c - the small parts of runtime/: pool, own mathematics, rotary frequencies, sampling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/math_host.h"
#include "runtime/pool.h"
#include "runtime/rope.h"
#include "runtime/sampling.h"
#include "runtime/system.h"
#include "tests/shared.h"

/* Each phase every worker adds its number to its own cell, then all check every cell: a barrier that lets one through early is seen. */
struct phases { struct pool *pool; int cell[16][16]; int wrong, workers; };

static void phase_worker(void *user, int worker, int workers)
{
	struct phases *p = user;
	for (int phase = 1; phase <= 50; phase++) {
		p->cell[worker][0] = phase;
		pool_barrier(p->pool, worker);
		for (int w = 0; w < workers; w++)
			if (p->cell[w][0] != phase)
				__atomic_fetch_add(&p->wrong, 1, __ATOMIC_RELAXED);
		pool_barrier(p->pool, worker);
	}
	__atomic_fetch_add(&p->workers, 1, __ATOMIC_RELAXED);
}

static void test_pool(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 9; threads += 2) {
		struct error e = { 0 };
		struct phases p = { .pool = pool_open(threads, &e) };
		assert_non_null(p.pool);
		for (int i = 0; i < 10; i++)
			pool_run(p.pool, phase_worker, &p);
		assert_int_equal(p.wrong, 0);
		assert_int_equal(p.workers, 10 * threads);
		pool_close(p.pool);
	}
	struct error e = { 0 };
	assert_null(pool_open(0, &e));
	assert_int_equal(e.code, ERROR_ARGUMENT);
	assert_true(system_default_threads() >= 1);
	assert_true(system_available_memory() > 1 << 20);
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
	assert_true(math_host_exp(0) == 1 && math_host_exp(-800) == 0 && isinf(math_host_exp(710)) && isnan(math_host_exp(NAN)));
	assert_true(fabs(math_host_pow(500000, 0.25) / pow(500000, 0.25) - 1) < 1e-14);
}

static void test_rope(void **state)
{
	float f[64], g[64], factors[64];
	struct model_rope r = { .dims = 128, .theta = 10000, .scaling = ROPE_NONE };
	(void)state;
	assert_true(rope_frequencies(f, &r) == 1);
	assert_true(f[0] == 1 && fabsf(f[32] - 0.01f) < 1e-8f);
	r.scaling = ROPE_LINEAR;
	r.factor = 4;
	rope_frequencies(g, &r);
	assert_true(g[10] == f[10] / 4);
	r = (struct model_rope){ .dims = 128, .theta = 500000, .scaling = ROPE_LLAMA3, .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 8192 };
	rope_frequencies(g, &r);
	r.scaling = ROPE_NONE;
	rope_frequencies(f, &r);
	assert_true(g[0] == f[0] && g[63] == f[63] / 8);      /* short waves kept, long ones divided, between them in between */
	assert_true(g[32] < f[32] && g[32] > f[32] / 8);
	for (int i = 0; i < 64; i++)
		factors[i] = (float)(i + 1);
	r.freq_factors = factors;
	rope_frequencies(g, &r);
	assert_true(fabsf(g[7] * 8 / f[7] - 1) < 1e-6f);
	r = (struct model_rope){ .dims = 128, .theta = 10000, .scaling = ROPE_YARN, .factor = 4, .original_context = 4096, .beta_fast = 32, .beta_slow = 1, .attention_factor = 1.138, .yarn_truncate = true };
	assert_true(rope_frequencies(g, &r) == (float)1.138);
	r.scaling = ROPE_NONE;
	rope_frequencies(f, &r);
	assert_true(g[0] == f[0] && fabsf(g[63] * 4 / f[63] - 1) < 1e-6f);
	float cs[2][4], sn[2][4], inv[4] = { 1, 0.5f, 0.25f, 0 };
	rope_rows(cs[0], sn[0], inv, 4, 2, 7, 2);
	assert_true(fabsf(cs[1][1] - 2 * cosf(4)) < 1e-6f && fabsf(sn[0][0] - 2 * sinf(7)) < 1e-6f && cs[1][3] == 2 && sn[1][3] == 0);
}

static void test_sampling(void **state)
{
	enum { N = 1000, DRAWS = 20000 };
	float logits[N];
	int count[N] = { 0 };
	struct sampling s = { 0 };
	(void)state;
	assert_true(sampling_open(&s, N));
	for (int i = 0; i < N; i++)
		logits[i] = -20;
	logits[7] = logf(0.6f);
	logits[100] = logf(0.3f);
	logits[3] = logf(0.1f);
	assert_int_equal(sampling_choose(&s, logits, NULL, 0), 7);         /* greedy */
	s.params = (jit_sampling){ .temperature = 1, .seed = 5 };
	for (size_t i = 0; i < DRAWS; i++)
		count[sampling_choose(&s, logits, NULL, i)]++;
	assert_true(fabs(count[7] / (double)DRAWS - 0.6) < 0.02 && fabs(count[100] / (double)DRAWS - 0.3) < 0.02 && fabs(count[3] / (double)DRAWS - 0.1) < 0.02);
	struct { jit_sampling p; double want[3]; } filters[] = {
		{ { .temperature = 1, .top_k = 2 }, { 2.0 / 3, 1.0 / 3, 0 } }, { { .temperature = 1, .top_p = 0.85f }, { 2.0 / 3, 1.0 / 3, 0 } },
		{ { .temperature = 1, .top_p = 0.95f }, { 0.6, 0.3, 0.1 } }, { { .temperature = 1, .min_p = 0.4f }, { 2.0 / 3, 1.0 / 3, 0 } },
		{ { .temperature = 0.5f }, { 0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46 } }, { { .temperature = 1, .top_k = 2, .top_p = 0.6f }, { 1, 0, 0 } },
		{ { .temperature = 1, .top_k = 1 }, { 1, 0, 0 } } };
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
	/* ties go to the lowest id; the penalty moves a seen token down, once however often it was seen */
	float flat[N] = { 0 };
	s.params = (jit_sampling){ 0 };
	assert_int_equal(sampling_choose(&s, flat, NULL, 0), 0);
	int32_t history[] = { 7, 7, 7 };
	s.params = (jit_sampling){ .repeat_penalty = 3 };
	for (int i = 0; i < N; i++)
		flat[i] = 1;
	flat[7] = 2;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 0);
	flat[7] = 4;
	assert_int_equal(sampling_choose(&s, flat, history, 3), 7);
	sampling_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pool), cmocka_unit_test(test_math), cmocka_unit_test(test_rope), cmocka_unit_test(test_sampling) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
