/* tests/kernels/t_quantise.c - the quantise template against the plain loop, ordinary blocks and the edges of the
 * range. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"

enum { BLOCKS = 400 };

/* Blocks of one magnitude each, from denormals to the largest float, with ties, equal values and zeros among them. */
static float *make_input(void)
{
	uint64_t state = 7;
	float *x = kernel_buffer(BLOCKS * 128, 0);

	for (unsigned n = 0; n < BLOCKS; n++)
		for (unsigned i = 0; i < 32; i++) {
			float r = kernel_random(&state);
			float *at = x + n * 32 + i;
			switch (n % 8) {
			case 0: *at = ldexpf(r, (int)n % 250 - 125); break;
			case 1: *at = (float)((int)(n * 37 + i * 11) % 255 - 127) * 0.5f; break;
			case 2: *at = i == n % 32 ? r : 0.0f; break;
			case 3: *at = (r < 0 ? -1 : 1) * (float)(n + i) * FLT_TRUE_MIN; break;
			case 4: *at = n % 16 == 4 ? 0.0f : -0.0f; break;
			default: *at = r; break;
			}
		}
	x[5 * 32] = FLT_MAX;
	x[6 * 32 + 31] = -FLT_MAX;
	return x;
}

static void test_blocks(void **unused)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways_and_cards(&ways, KERNEL_ALL_CARDS);
	float *x = make_input(), *s = kernel_buffer(BLOCKS * 16, 0);
	struct activation_block *expected_s = kernel_buffer(BLOCKS * 16, 0);
	int8_t *q = kernel_buffer(BLOCKS * 32, 0), *expected_q = kernel_buffer(BLOCKS * 32, 0);
	const struct key key = { .kind = KEY_QUANTISE };
	const uint64_t arg[QUANTISE_ARGS] = { (uintptr_t)x, (uintptr_t)q, (uintptr_t)s };

	plain_quantise(x, BLOCKS, expected_q, expected_s);
	for (unsigned i = 0; i < n; i++) {
		struct kernel k;
		memset(q, 0x55, BLOCKS * 32);
		memset(s, 0x55, BLOCKS * 16);
		kernel_open(&k, &ways[i], &key);
		kernel_run(&k, arg, 123, BLOCKS);
		kernel_run(&k, arg, 50, 50);
		kernel_run(&k, arg, 0, 123);
		kernel_close(&k);
		assert_memory_equal(q, expected_q, BLOCKS * 32);
		assert_memory_equal(s, expected_s, BLOCKS * 16);
	}
	for (unsigned i = 0; i < BLOCKS * 32; i++)
		assert_int_not_equal(q[i], -128);
	free(x);
	free(s);
	free(expected_s);
	free(q);
	free(expected_q);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
