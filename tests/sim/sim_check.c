/* tests/sim/sim_check.c - see sim_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/sim/sim_run.h"
#include "tests/sim/sim_check.h"

uint32_t sim_buffer[16384];

static uint64_t state = 99;
uint32_t draw_number(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 32);
}

struct sim_bench open_programs(unsigned t)
{
	struct error err = { .code = ERROR_NONE };
	struct sim_bench b = sim_bench_open("programs", sim_bench_targets[t]);
	assert_true(sim_map(b.dev, sim_buffer, sizeof sim_buffer, "buffer", true, &err));
	return b;
}
