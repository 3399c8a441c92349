/* tests/kernels/t_scale.c - numbers scaled, added scaled, and bounded, and what layers get of a token's own: the
 * templates against plain loops, bit for bit; and the bound against tanh of the C library. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"

enum { BLOCKS = 100, N = BLOCKS * 32 };

/* All sizes of numbers, both signs, both zeros. */
static void fill(float *x)
{
	uint64_t state = 5;

	for (unsigned i = 0; i < N; i++)
		x[i] = ldexpf(kernel_random(&state), (int)(i / 32) % 40 - 25);
	x[0] = 0.0f;
	x[1] = -0.0f;
	x[2] = 3e38f;
	x[3] = -3e38f;
	x[4] = INFINITY;
	x[5] = -INFINITY;
}

static float plain(uint32_t flags, float x, float by, float old)
{
	if (flags & KEY_CAP) {
		float t = x / by, part = 2.0f / (1.0f + plain_exp(t + t));
		return by * (1.0f + -part);
	}
	x = x * by;
	return flags & KEY_RESIDUAL ? old + x : x;
}

static void check(const struct kernel_way *way, uint32_t flags, float by)
{
	struct key key = { .kind = KEY_SCALE, .flags = flags };
	float *in = kernel_buffer(N * 4, 0), *out = kernel_buffer(N * 4, 0), *want = kernel_buffer(N * 4, 0);
	uint64_t arg[SCALE_ARGS] = { [SCALE_IN] = (uintptr_t)in, [SCALE_OUT] = (uintptr_t)out };
	uint64_t state = 9;
	struct kernel k;

	memcpy(&arg[SCALE_BY], &by, 4);
	fill(in);
	for (unsigned i = 0; i < N; i++) {
		out[i] = kernel_random(&state);
		want[i] = plain(flags, in[i], by, out[i]);
	}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 61, BLOCKS);
	kernel_run(&k, arg, 7, 7);
	kernel_run(&k, arg, 0, 61);
	assert_memory_equal(out, want, N * 4);
	/* in place */
	arg[SCALE_OUT] = (uintptr_t)in;
	if (!(flags & KEY_RESIDUAL)) {
		kernel_run(&k, arg, 0, BLOCKS);
		assert_memory_equal(in, want, N * 4);
	}
	kernel_close(&k);
	free(in);
	free(out);
	free(want);
}

/* Times other numbers, each or all by one. */
static void check_by_memory(const struct kernel_way *way, uint32_t flags)
{
	struct key key = { .kind = KEY_SCALE, .flags = flags };
	float *in = kernel_buffer(N * 4, 0), *by = kernel_buffer(N * 4, 0), *out = kernel_buffer(N * 4, 0xff),
	      *want = kernel_buffer(N * 4, 0);
	uint64_t arg[SCALE_ARGS] = {
		[SCALE_IN] = (uintptr_t)in, [SCALE_OUT] = (uintptr_t)out, [SCALE_BY] = (uintptr_t)by
	};
	uint64_t state = 11;
	struct kernel k;

	fill(in);
	in[4] = in[5] = 1.0f;
	for (unsigned i = 0; i < N; i++) {
		by[i] = kernel_random(&state);
		want[i] = in[i] * by[flags == KEY_PAIR ? i : 0];
	}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 61, BLOCKS);
	kernel_run(&k, arg, 0, 61);
	assert_memory_equal(out, want, N * 4);
	arg[SCALE_OUT] = (uintptr_t)in;
	kernel_run(&k, arg, 0, BLOCKS);
	assert_memory_equal(in, want, N * 4);
	kernel_close(&k);
	free(in);
	free(by);
	free(out);
	free(want);
}

static void test_every_way(void **unused)
{
	static const float by[] = { 1.0f, 30.0f, 0.22f, 12.0f };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned w = 0; w < ways; w++)
		for (unsigned i = 0; i < sizeof by / sizeof *by; i++) {
			check(&way[w], 0, by[i]);
			check(&way[w], KEY_RESIDUAL, by[i]);
			check(&way[w], KEY_CAP, by[i]);
		}
	for (unsigned w = 0; w < ways; w++) {
		check_by_memory(&way[w], KEY_PAIR);
		check_by_memory(&way[w], KEY_GATED);
	}
}

/* ---- what layers get of a token's own */

enum { LAYERS = 5, TOKENS = 3 };

static void plain_inputs(float *out, const float *x, const float *e, const float *weight, unsigned n, float eps,
                         float by)
{
	float r = plain_norm_scale(x, n, eps);

	for (unsigned i = 0; i < (n + 31) / 32 * 32; i++) {
		float normed = i < n ? (x[i] * r) * weight[i] : 0, own = i < n ? e[i] * by : 0;
		out[i] = (normed + own) * 0.70710678118654752f;
	}
}

static void check_inputs(const struct kernel_way *way, unsigned n)
{
	struct key key = { .kind = KEY_LAYER_INPUTS, .rows = LAYERS, .k = n };
	unsigned column = (LAYERS * n + 31) / 32 * 32, padded = (n + 31) / 32 * 32;
	size_t bytes = (size_t)TOKENS * column * 4, out_bytes = (size_t)LAYERS * TOKENS * padded * 4;
	float *x = kernel_buffer(bytes, 0), *e = kernel_buffer(bytes, 0), *weight = kernel_buffer(padded * 4, 0),
	      *out = kernel_buffer(out_bytes, 0xff), *want = kernel_buffer(out_bytes, 0), eps = 3e-4f, by = 4.0f;
	uint64_t arg[LAYER_INPUTS_ARGS] = { [LAYER_INPUTS_X] = (uintptr_t)x,
		                            [LAYER_INPUTS_E] = (uintptr_t)e,
		                            [LAYER_INPUTS_WEIGHT] = (uintptr_t)weight,
		                            [LAYER_INPUTS_OUT] = (uintptr_t)out,
		                            [LAYER_INPUTS_COLUMNS] = TOKENS };
	uint64_t state = n;
	struct kernel k;

	memcpy(&arg[LAYER_INPUTS_EPS], &eps, 4);
	memcpy(&arg[LAYER_INPUTS_BY], &by, 4);
	for (unsigned i = 0; i < n; i++)
		weight[i] = kernel_random(&state);
	for (unsigned c = 0; c < TOKENS; c++) {
		for (unsigned i = 0; i < LAYERS * n; i++) {
			x[c * column + i] = kernel_random(&state);
			e[c * column + i] = kernel_random(&state);
		}
		for (unsigned l = 0; l < LAYERS; l++)
			plain_inputs(want + (l * TOKENS + c) * padded, x + c * column + l * n, e + c * column + l * n,
			             weight, n, eps, by);
	}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 7, TOKENS * LAYERS);
	kernel_run(&k, arg, 0, 7);
	if (memcmp(out, want, out_bytes) != 0)
		fail_msg("%s: what layers get, %u numbers each, differs", way->name, n);
	kernel_close(&k);
	free(x);
	free(e);
	free(weight);
	free(out);
	free(want);
}

static void test_layer_inputs(void **unused)
{
	static const unsigned sizes[] = { 1, 16, 31, 32, 40, 100, 256, 1024 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned w = 0; w < ways; w++)
		for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
			check_inputs(&way[w], sizes[i]);
}

static void test_bound(void **unused)
{
	float in[N];

	fill(in);
	for (unsigned i = 0; i < N; i++) {
		double want = 50.0 * tanh((double)in[i] / 50.0);
		if (fabs((double)plain(KEY_CAP, in[i], 50.0f, 0) - want) > 50 * 1e-6)
			fail_msg("%g is bounded to %g, expected %g", in[i], plain(KEY_CAP, in[i], 50.0f, 0), want);
	}
}

/* Infinite, tiny and zero arguments, beside usual ones. */
static void test_xielu(void **unused)
{
	enum { XIELU_BLOCKS = 5, XIELU_N = XIELU_BLOCKS * 32 };
	static const float by[4] = { 0.8f, 1.3f, 0.5f, -1e-6f },
			   odd[] = { 0.0f, -0.0f, 1e-8f, -1e-8f, 90.0f, -90.0f, INFINITY };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	float *x = kernel_buffer(XIELU_N * 4, 0), *numbers = kernel_buffer(128, 0),
	      *out = kernel_buffer(XIELU_N * 4, 0), *want = kernel_buffer(XIELU_N * 4, 0);

	uint64_t seed = 9;

	for (unsigned i = 0; i < XIELU_N; i++)
		x[i] = kernel_random(&seed) * 4;
	memcpy(numbers, by, sizeof by);
	memcpy(x + 40, odd, sizeof odd);
	for (unsigned i = 0; i < XIELU_N; i++) {
		const float line = by[2] * x[i], min = x[i] < by[3] ? x[i] : by[3];
		want[i] = x[i] > 0 ? fmaf(by[0] * x[i], x[i], line) : fmaf((plain_exp(min) - 1.0f) - x[i], by[1], line);
	}
	for (unsigned w = 0; w < ways; w++) {
		struct key key = { .kind = KEY_GATE, .flags = KEY_SCALED };
		uint64_t arg[GATE_ARGS] = { (uintptr_t)x, (uintptr_t)numbers, (uintptr_t)out };
		struct kernel k;
		memset(out, 0xff, XIELU_N * 4);
		kernel_open(&k, &way[w], &key);
		kernel_run(&k, arg, 2, XIELU_BLOCKS);
		kernel_run(&k, arg, 0, 2);
		kernel_close(&k);
		if (memcmp(out, want, XIELU_N * 4) != 0)
			fail_msg("%s: xIELU differs", way[w].name);
	}
	free(x);
	free(numbers);
	free(out);
	free(want);
}

static float *drawn(uint64_t n, uint64_t seed)
{
	float *x = kernel_buffer(n * sizeof *x, 0);

	for (uint64_t i = 0; i < n; i++)
		x[i] = kernel_random(&seed) * 3;
	return x;
}

/* All elements of a head by one number; launches begin and end within heads. */
static void test_gates_by_head(void **unused)
{
	static const struct {
		uint32_t heads, dim, columns;
	} cases[] = { { 3, 64, 3 }, { 1, 32, 5 }, { 40, 96, 2 }, { 32, 32, 2 } };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);

	for (unsigned round = 0; round < ways * (unsigned)(sizeof cases / sizeof *cases); round++) {
		const uint32_t heads = cases[round / ways].heads, dim = cases[round / ways].dim,
			       columns = cases[round / ways].columns, pitch = (heads + 31) / 32 * 32;
		const uint64_t n = (uint64_t)columns * heads * dim;
		const struct key key = {
			.kind = KEY_GATE, .act = ACT_SOFTPLUS, .flags = KEY_BY_HEAD, .heads = heads, .head_dim = dim
		};
		float *x = drawn(n, 9), *gate = drawn((uint64_t)columns * pitch, 10), *out = kernel_buffer(n * 4, 0),
		      *want = kernel_buffer(n * 4, 0);
		const uint64_t arg[GATE_ARGS] = { (uintptr_t)x, (uintptr_t)gate, (uintptr_t)out };
		struct kernel k;

		for (uint64_t i = 0; i < n; i++) {
			const uint64_t column = i / ((uint64_t)heads * dim), head = i / dim % heads;
			want[i] = x[i] * plain_softplus(gate[column * pitch + head]);
		}
		kernel_open(&k, &way[round % ways], &key);
		kernel_run(&k, arg, (int64_t)(n / 96), (int64_t)(n / 32));
		kernel_run(&k, arg, 0, (int64_t)(n / 96));
		kernel_close(&k);
		assert_memory_equal(out, want, n * 4);
		free(x);
		free(gate);
		free(out);
		free(want);
	}
}

static void test_refusals(void **unused)
{
	kernel_refused(&(struct key){ .kind = KEY_SCALE, .flags = KEY_RESIDUAL | KEY_CAP });
	kernel_refused(&(struct key){ .kind = KEY_SCALE, .flags = KEY_BIAS });
	kernel_refused(&(struct key){ .kind = KEY_SCALE, .flags = KEY_PAIR | KEY_RESIDUAL });
	kernel_refused(&(struct key){ .kind = KEY_LAYER_INPUTS, .rows = 3 });
	kernel_refused(&(struct key){ .kind = KEY_LAYER_INPUTS, .rows = 3, .k = 1025 });
	kernel_refused(&(struct key){ .kind = KEY_LAYER_INPUTS, .k = 32 });
	kernel_refused(
		&(struct key){ .kind = KEY_GATE, .act = ACT_SILU, .flags = KEY_BY_HEAD, .heads = 2, .head_dim = 48 });
	kernel_refused(&(struct key){ .kind = KEY_GATE, .act = ACT_SILU, .flags = KEY_BY_HEAD, .head_dim = 32 });
	kernel_refused(&(struct key){ .kind = KEY_GATE, .flags = KEY_BY_HEAD, .heads = 2, .head_dim = 32 });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_way),     cmocka_unit_test(test_bound),
		                            cmocka_unit_test(test_layer_inputs),  cmocka_unit_test(test_xielu),
		                            cmocka_unit_test(test_gates_by_head), cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
