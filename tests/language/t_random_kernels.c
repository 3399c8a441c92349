/* tests/language/t_random_kernels.c - random kernels leave the same bytes with 8, 16 and 32 lanes, on every target of
 * this CPU and on simulated cards. A mask that is wrong lets lanes see each other, and these are others in each width.
 *
 *   t_random_kernels [SEED COUNT]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/language/random_program.h"
#include "tests/language/run_kernel.h"

static uint64_t first = 1, count = 60;

static void one(uint64_t seed)
{
	static const char *const sizes[] = { "n=37", "n=64", "n=5", "n=301" };
	char text[40000];
	struct run r;

	random_program(text, sizeof text, seed);
	run_open(&r, text, NULL, sizes[seed % 4]);
	const uint64_t elements = jk_parameter(r.kernel, 0)->elements;
	float *x = run_array(&r, "x");
	uint32_t *w = run_array(&r, "w");
	int32_t *w2 = run_array(&r, "w2");
	for (uint64_t k = 0; k < elements; k++) {
		x[k] = (float)((k * 2654435761u >> 7) % 2000) / 100 - 10;
		w[k] = (uint32_t)(k * 2246822519u);
		w2[k] = (int32_t)(k * 3266489917u >> 3);
	}
	run_everywhere(&r, seed % 4 == 0 || getenv("JITRUN_TEST_FULL") ? RUN_CARDS : RUN_CPUS);
	run_close(&r);
}

static void test_random(void **state)
{
	for (uint64_t seed = first; seed < first + count; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		one(seed);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	if (argc > 1)
		first = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		count = strtoull(argv[2], NULL, 0);
	if (argc == 1 && !getenv("JITRUN_TEST_QUICK"))
		count = 1000;
	return cmocka_run_group_tests_name("t_random_kernels", tests, NULL, NULL);
}
