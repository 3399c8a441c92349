/* tests/kernels/t_scale.c - numbers scaled, added scaled, and bounded: the template against plain loops, bit for bit;
 * and the bound against tanh of the C library. */
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

static void test_refusals(void **unused)
{
	kernel_refused(&(struct key){ .kind = KEY_SCALE, .flags = KEY_RESIDUAL | KEY_CAP });
	kernel_refused(&(struct key){ .kind = KEY_SCALE, .flags = KEY_BIAS });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_way), cmocka_unit_test(test_bound),
		                            cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
