/* tests/programs/t_card_bandwidth.c - the read bandwidth that jitbench measures on an NVIDIA card: of a simulated one,
 * whose clock is the test's, and with JITRUN_TEST_CUDA in the environment of this machine's first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/card_bandwidth.h"
#include "runtime/device/cuda/cuda_simulated.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

/* All of it is read however many blocks there are: 1, 2, 4 or 8 on each of two multiprocessors. */
enum { BYTES = 3 * 16 * 32768 };
static const float milliseconds = 0.25f;
static bool forgets; /* a launch leaves its last block out */
static unsigned launches;

static int fake_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	struct cuda_launch_config less = *c;

	launches++;
	less.grid[0] -= forgets && less.grid[0] > 1;
	return __real_cuda_simulated()->launch(&less, function, params, extra);
}

static int fake_elapsed(float *out, void *start, void *end)
{
	int result = __real_cuda_simulated()->event_elapsed(out, start, end);

	*out = milliseconds;
	return result;
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api;

	api = *__real_cuda_simulated();
	api.launch = fake_launch;
	api.event_elapsed = fake_elapsed;
	return &api;
}

static void test_rate(void **state)
{
	struct error err = { 0 };
	struct device *d = device_open("sim:sm80", NULL, &err);

	assert_non_null(d);
	size_t before = cuda_simulation.used;
	struct card_bandwidth *b = card_bandwidth_open(d, BYTES, &err);
	assert_non_null(b);
	assert_true(card_bandwidth_sample(b, 2, &err) == BYTES / (1e-3 * (double)milliseconds));
	assert_int_equal(launches, 4 * 3 + 2);
	card_bandwidth_close(b);
	assert_int_equal(cuda_simulation.used, before);
	device_close(d);
}

static void test_what_is_not_read(void **state)
{
	struct error err = { 0 };
	struct device *d = device_open("sim:sm80", NULL, &err);

	assert_non_null(d);
	forgets = true;
	assert_null(card_bandwidth_open(d, BYTES, &err));
	assert_non_null(strstr(err.text, "what was read to measure its bandwidth adds to"));
	forgets = false;
	err = (struct error){ 0 };
	assert_null(card_bandwidth_open(d, 32768, &err));
	assert_non_null(strstr(err.text, "are too few to measure"));
	device_close(d);
}

static void test_card(void **state)
{
	struct error err = { 0 };

	if (!getenv("JITRUN_TEST_CUDA"))
		skip();
	struct device *d = device_open("cuda", NULL, &err);
	struct card_bandwidth *b = d ? card_bandwidth_open(d, 0, &err) : NULL;
	if (!b)
		fail_msg("%s", err.text);
	double rate = card_bandwidth_sample(b, 10, &err);
	printf("# read bandwidth %.1f GB/s with %u blocks a multiprocessor\n", rate / 1e9, card_bandwidth_blocks(b));
	assert_true(rate > 1e11 && rate < 1e14);
	card_bandwidth_close(b);
	device_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rate), cmocka_unit_test(test_what_is_not_read),
		                            cmocka_unit_test(test_card) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
