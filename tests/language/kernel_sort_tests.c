/* tests/language/kernel_sort_tests.c - the kernels of bitonic_sort.jk on every machine: a step, several in a launch,
 * and that the steps are a sort.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/language/kernel_sort_tests.h"
#include "tests/language/run_kernel.h"

static uint32_t word(uint64_t i)
{
	uint64_t z = 1 + i * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32);
}
static enum run_machines machines_for(unsigned n) { return n < 98 || n == 1025 ? RUN_CARDS : RUN_CPUS; }

static void step(const uint32_t *x, uint32_t *y, unsigned n, unsigned flip)
{
	memcpy(y, x, n * sizeof *x);
	for (unsigned low = 0; low < n; low++) {
		const unsigned high = low ^ flip;
		if (low < high && high < n && x[low] > x[high]) {
			y[low] = x[high];
			y[high] = x[low];
		}
	}
}

static void check_step(unsigned n, unsigned flip)
{
	char constants[40];
	uint32_t want[1025];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u", n);
	run_open_example(&r, "bitonic_sort", "step", constants);
	run_set_bits(&r, "flip", flip);
	uint32_t *x = run_array(&r, "x");
	for (unsigned k = 0; k < n; k++)
		x[k] = k % 5 ? word(k) : UINT32_MAX * (k % 2);
	step(x, want, n, flip);
	run_everywhere(&r, machines_for(n));
	assert_memory_equal(run_array(&r, "y"), want, n * sizeof *want);
	run_close(&r);
}

static void check_sort(unsigned n)
{
	uint32_t array[2][1025], *x = array[0], *y = array[1], *other;

	for (unsigned k = 0; k < n; k++)
		x[k] = word(k) >> k % 30;
	for (unsigned d = 1; d < n; d *= 2)
		for (unsigned e = d, flip = 2 * d - 1; e; e /= 2, flip = e) {
			step(x, y, n, flip);
			other = x;
			x = y;
			y = other;
		}
	for (unsigned k = 1; k < n; k++)
		assert_true(x[k - 1] <= x[k]);
}

void kernel_sort_steps(void **state)
{
	static const unsigned flips[] = { 1, 3, 4, 31, 32, 63, 1023 };

	for (unsigned k = 0; k < sizeof flips / sizeof *flips; k++) {
		check_step(33, flips[k]);
		check_step(1, flips[k]);
	}
	check_step(0, 1);
	check_step(31, 16);
	check_step(1025, 2047);
	check_step(1023, 512);
	for (unsigned n = 0; n < 130; n++)
		check_sort(n);
	check_sort(1023);
	check_sort(1025);
}

/* Several steps in a launch: distances far * 2^(logs - 1) ... far. */
static void check_merge(unsigned n, unsigned far, unsigned logs)
{
	char constants[60];
	uint32_t array[2][2500], *want = array[0], *next = array[1], *other;
	struct run r;

	snprintf(constants, sizeof constants, "n=%u far=%u logs=%u", n, far, logs);
	run_open_example(&r, "bitonic_sort", far > 1 ? "merge" : "near", constants);
	uint32_t *x = run_array(&r, "x");
	for (unsigned k = 0; k < n; k++)
		want[k] = x[k] = k % 7 ? word(k) : UINT32_MAX * (k % 2);
	for (unsigned e = far << logs >> 1; e >= far; e /= 2) {
		step(want, next, n, e);
		other = want;
		want = next;
		next = other;
	}
	run_everywhere(&r, machines_for(n));
	assert_memory_equal(run_array(&r, "y"), want, n * sizeof *want);
	run_close(&r);
}

/* Runs of 2^logs elements, each sorted. */
static void check_begin(unsigned n, unsigned logs)
{
	char constants[60];
	uint32_t want[1025];
	struct run r;

	snprintf(constants, sizeof constants, "n=%u logs=%u", n, logs);
	run_open_example(&r, "bitonic_sort", "begin", constants);
	uint32_t *x = run_array(&r, "x");
	for (unsigned k = 0; k < n; k++)
		x[k] = k % 7 ? word(k) : UINT32_MAX * (k % 2);
	memcpy(want, x, n * sizeof *want);
	for (unsigned begin = 0; begin < n; begin += 1u << logs)
		for (unsigned k = begin + 1; k < n && k < begin + (1u << logs); k++)
			for (unsigned i = k; i > begin && want[i - 1] > want[i]; i--) {
				const uint32_t other = want[i];
				want[i] = want[i - 1];
				want[i - 1] = other;
			}
	run_everywhere(&r, machines_for(n));
	assert_memory_equal(run_array(&r, "y"), want, n * sizeof *want);
	run_close(&r);
}

void kernel_sort_merges(void **state)
{
	for (unsigned logs = 1; logs <= 5; logs++)
		check_begin(logs * 193, logs);
	check_begin(0, 5);
	check_begin(31, 5);
	check_begin(1025, 5);
	(void)state;
	for (unsigned logs = 1; logs <= 5; logs++) {
		check_merge(97, 1, logs);
		check_merge(logs * 401, 32, logs);
		check_merge(1025, 1024, logs);
	}
	check_merge(0, 1, 5);
	check_merge(0, 32, 5);
	check_merge(1, 32, 5);
	check_merge(1023, 1, 5);
	check_merge(1024, 32, 5);
}
