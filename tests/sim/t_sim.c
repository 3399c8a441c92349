/* tests/sim/t_sim.c - the simulator as a machine: traps, waits, barriers, memory modes, matrix products, damaged code
 * objects. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/sim/sim_run.h"
#include "tests/sim/sim_check.h"

static float fbuf(size_t i)
{
	float f;
	memcpy(&f, &sim_buffer[i], 4);
	return f;
}

static bool run(struct sim_bench *b, const char *kernel, uint32_t groups, uint32_t size, const struct sim_options *opt,
                struct error *err)
{
	uint64_t arg = (uint64_t)(uintptr_t)sim_buffer;
	*err = (struct error){ .code = ERROR_NONE };
	return sim_bench_run(b, kernel, &arg, 1, groups, size, opt, err);
}

static void must_run(struct sim_bench *b, const char *kernel, uint32_t groups, uint32_t size,
                     const struct sim_options *opt)
{
	struct error err;
	if (!run(b, kernel, groups, size, opt, &err))
		fail_msg("%s %s: %s", sim_target(b->dev), kernel, err.text);
}

/* --- traps */

static const struct {
	const char *kernel, *says;
} traps[] = {
	{ "trap_undefined", "v30, which nothing wrote" },
	{ "trap_undefined_scalar", "s7, which nothing wrote" },
	{ "trap_load_wait", "v1 while a load" },
	{ "trap_load_overwrite", "v1 while a load" },
	{ "trap_count", "v2 while a load" },
	{ "trap_scalar_wait", "s6 while a load" },
	{ "trap_bounds", "no region" },
	{ "trap_misaligned", "not aligned to 4" },
	{ "trap_readonly", "read-only" },
	{ "trap_lds", "of LDS, which has 256" },
	{ "trap_lds_undefined", "of LDS, which nothing wrote" },
	{ "trap_word", "cannot be decoded" },
	{ "trap_vgpr", "v200 of a wave that has 48" },
	{ "trap_barrier", "barrier" },
	{ "trap_spin", "cannot complete" },
	{ "trap_clause", "in a clause of load" },
	{ "trap_end", "past the end of the kernel" },
	{ "trap_cmpx", "v_cmpx" },
	{ "trap_matrix", "matrix product before" },
	{ "trap_trans", "transcendental" },
	{ "trap_sgpr", "without s_wait_alu" },
	{ "trap_denorm", "float atomic" },
};

/* The sentence says where the kernel trapped, and so does the struct. */
static void check_trap_location(const struct error *err, const struct sim_trap *trap, const char *kernel)
{
	char at[128], in[64];
	snprintf(at, sizeof at, "kernel %s trapped at +0x%llx (", kernel, (unsigned long long)trap->offset);
	snprintf(in, sizeof in, "), workgroup %u wave %u: ", trap->workgroup, trap->wave);
	assert_true(trap->trapped);
	if (strncmp(err->text, at, strlen(at)) != 0 || !strstr(err->text, in))
		fail_msg("\"%s...%s\" is not in: %s", at, in, err->text);
}

static void test_traps(void **unused)
{
	(void)unused;
	unsigned hit = 0;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		for (size_t i = 0; i < sizeof traps / sizeof traps[0]; i++)
			for (int mode = 0; mode < 3; mode++) {
				struct sim_trap trap;
				struct sim_options opt = {
					.memory = (enum sim_memory_mode)mode, .stall_limit = 10000, .trap = &trap
				};
				struct error err;
				if (!sim_find(b.object, traps[i].kernel))
					continue;
				if (run(&b, traps[i].kernel, 1, 64, &opt, &err))
					fail_msg("%s %s did not trap", sim_bench_targets[t], traps[i].kernel);
				if (!strstr(err.text, traps[i].says))
					fail_msg("%s: %s", traps[i].kernel, err.text);
				check_trap_location(&err, &trap, traps[i].kernel);
				hit++;
			}
		sim_bench_close(&b);
	}
	assert_true(hit >= 3 * 3 * 17);
}

static void test_padding(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options opt = { .seed = 1 }, lax = { .allow_hazards = true };
		static const char *const pass[] = { "pass_cmpx", "pass_trans", "pass_sgpr" }, *const padded[] = {
			"trap_cmpx", "trap_matrix", "trap_trans", "trap_sgpr", "trap_denorm"
		};
		for (unsigned i = 0; i < 3; i++)
			if (sim_find(b.object, pass[i]))
				must_run(&b, pass[i], 2, 32, &opt);
		for (unsigned i = 0; i < 5; i++)
			if (sim_find(b.object, padded[i]))
				must_run(&b, padded[i], 1, 32, &lax);
		sim_bench_close(&b);
	}
}

/* --- memory and synchronisation */

static void test_races(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options plain = { .seed = 3 }, watch = { .seed = 3, .races = true };
		struct error err;
		must_run(&b, "race", 4, 32, &plain);
		assert_false(run(&b, "race", 4, 32, &watch, &err));
		assert_non_null(strstr(err.text, "nothing ordered"));
		must_run(&b, "race", 1, 32, &watch);
		sim_bench_close(&b);
	}
}

/* A store that no wait covers before the barrier: right when memory is instant, caught when it is late. */
static void test_late_store(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options now = { .memory = SIM_MEMORY_NOW };
		unsigned caught = 0;
		struct error err;
		must_run(&b, "late_store", 1, 64, &now);
		for (unsigned i = 0; i < 32; i++)
			assert_int_equal(sim_buffer[i], 4 * i);
		for (unsigned seed = 0; seed < 32; seed++) {
			struct sim_options late = { .memory = SIM_MEMORY_AT_WAIT, .seed = seed };
			caught += !run(&b, "late_store", 1, 64, &late, &err);
		}
		assert_true(caught > 0);
		sim_bench_close(&b);
	}
}

static void test_grid_barrier(void **unused)
{
	(void)unused;
	enum { N = 40 };
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		for (unsigned round = 0; round < 12; round++) {
			struct sim_counters c = { 0 };
			struct sim_options opt = { .memory = (enum sim_memory_mode)(round % 3),
				                   .seed = round,
				                   .races = true,
				                   .counters = &c };
			memset(sim_buffer, 0, sizeof sim_buffer);
			sim_buffer[1] = N;
			must_run(&b, "grid", N, 32, &opt);
			assert_int_equal(sim_buffer[0], N);
			for (unsigned g = 0; g < N; g++)
				for (unsigned l = 0; l < 32; l++)
					assert_int_equal(sim_buffer[(16640 + 128 * g) / 4 + l], (g + 1) % N + 4 * l);
			assert_int_equal(c.workgroups, N);
			assert_int_equal(c.by_class[SIM_CLASS_ATOMIC], N);
			assert_int_equal(c.store_bytes, N * 256);
		}
		sim_bench_close(&b);
	}
}

static void test_resident_limit(void **unused)
{
	(void)unused;
	struct sim_bench b = open_programs(1);
	struct sim_options opt = { .resident = 8, .stall_limit = 200000 };
	struct error err;
	memset(sim_buffer, 0, sizeof sim_buffer);
	sim_buffer[1] = 40;
	assert_false(run(&b, "grid", 40, 32, &opt, &err));
	assert_non_null(strstr(err.text, "cannot complete"));
	sim_bench_close(&b);
}

static void check_lds(void)
{
	for (unsigned l = 0; l < 32; l++) {
		uint32_t own = 4 * l, other = 124 - 4 * l;
		const uint32_t quad[4] = { other, own, other, own };
		for (unsigned k = 0; k < 4; k++)
			if (4 * l + k < 128)
				assert_true(4 * l + k >= 128 || sim_buffer[4 * l + k] == quad[k]);
	}
}

static void test_lds(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++)
		for (int mode = 0; mode < 3; mode++) {
			struct sim_bench b = open_programs(t);
			struct sim_counters c = { 0 };
			struct sim_options opt = { .memory = (enum sim_memory_mode)mode, .counters = &c };
			must_run(&b, "lds", 1, 32, &opt);
			check_lds();
			for (unsigned l = 0; l < 32; l++) {
				assert_int_equal(sim_buffer[128 + 2 * l], 4 * l);
				assert_int_equal(sim_buffer[128 + 2 * l + 1], 124 - 4 * l);
				assert_int_equal(sim_buffer[192 + l], 8 * l);
				assert_int_equal(sim_buffer[224 + l], 124 - 4 * l);
				assert_int_equal(sim_buffer[256 + l], l & 1 ? 4 : 0);
			}
			assert_int_equal(c.lds_load_bytes, 32 * (4 + 8 + 8));
			assert_true(c.lds_conflicts > 0);
			sim_bench_close(&b);
		}
}

static void test_atomics(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options opt = { .memory = SIM_MEMORY_RANDOM, .seed = t };
		memset(sim_buffer, 0, sizeof sim_buffer);
		for (unsigned l = 0; l < 32; l++) {
			sim_buffer[32 + l] = 100 + l;
			sim_buffer[64 + l] = 200 + l;
			sim_buffer[96 + l] = l % 5;
		}
		must_run(&b, "atomics", 1, 32, &opt);
		assert_int_equal(sim_buffer[0], 32);
		assert_int_equal(sim_buffer[1], 31);
		assert_int_equal(sim_buffer[2], 124);
		for (unsigned l = 0; l < 32; l++) {
			assert_int_equal(sim_buffer[32 + l], 101 + l);
			assert_int_equal(sim_buffer[64 + l], l);
			assert_int_equal(sim_buffer[96 + l], l % 5 == 3 ? 77 : l % 5);
			assert_int_equal(sim_buffer[128 + l], 100 + l);
			assert_int_equal(sim_buffer[160 + l], 200 + l);
			assert_int_equal(sim_buffer[192 + l], l % 5);
		}
		sim_bench_close(&b);
	}
}

static void test_scratch_and_order(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++)
		for (int mode = 0; mode < 3; mode++) {
			struct sim_bench b = open_programs(t);
			struct sim_options opt = { .memory = (enum sim_memory_mode)mode, .seed = 5 };
			must_run(&b, "scratch", 1, 32, &opt);
			for (unsigned l = 0; l < 32; l++)
				assert_int_equal(sim_buffer[l], 4 * l + 4);
			sim_bench_close(&b);
		}
}

static void test_mode(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options opt = { .seed = 1 };
		must_run(&b, "mode", 1, 32, &opt);
		for (unsigned l = 0; l < 32; l++) {
			assert_int_equal(sim_buffer[l], 0x3f800000);
			assert_int_equal(sim_buffer[32 + l], 0x3f800001);
			assert_int_equal(sim_buffer[64 + l], 1);
			assert_int_equal(sim_buffer[96 + l], 0);
			assert_int_equal(sim_buffer[128 + l], 1);
			assert_int_equal(sim_buffer[160 + l], 0xf0);
		}
		sim_bench_close(&b);
	}
}

/* --- matrix products, against plain loops over the published layouts */

static float half_value(uint32_t h)
{
	int e = (int)(h >> 10 & 31), m = (int)(h & 1023);
	float v = e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
	return h >> 15 & 1 ? -v : v;
}

/* Element k of row i, of width bits, from 8 registers of 32 lanes at word base. */
static uint32_t element(size_t base, unsigned t, unsigned i, unsigned k, unsigned bits)
{
	unsigned lane = i, per = 32 / bits;
	if (t == 2) {
		lane += k >= 8 ? 16 : 0;
		k %= 8;
	}
	return sim_buffer[base + 32 * (k / per) + lane] >> bits * (k % per) & ((1u << bits) - 1);
}

static void check_matrix(unsigned t)
{
	for (unsigned m = 0; m < 16; m++)
		for (unsigned n = 0; n < 16; n++) {
			size_t at = t == 1 ? 32 * (m / 2) + 16 * (m % 2) + n : 32 * (m % 8) + 16 * (m / 8) + n;
			double f16 = fbuf(512 + at), bf16 = fbuf(512 + at); /* rounded once, at the end */
			int32_t sum = (int32_t)sim_buffer[512 + at];
			for (unsigned k = 0; k < 16; k++) {
				uint32_t a = element(0, t, m, k, 16), b = element(256, t, n, k, 16), x = a << 16,
					 y = b << 16;
				float fx, fy;
				memcpy(&fx, &x, 4);
				memcpy(&fy, &y, 4);
				f16 += (double)half_value(a) * half_value(b);
				bf16 += (double)fx * fy;
				sum += (int8_t)element(0, t, m, k, 8) * (int8_t)element(256, t, n, k, 8);
			}
			assert_true(fbuf(1024 + at) == (float)f16);
			assert_true(fbuf(1280 + at) == (float)bf16);
			assert_int_equal((int32_t)sim_buffer[1536 + at], sum);
		}
}

static void test_matrix(void **unused)
{
	(void)unused;
	for (unsigned t = 1; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options opt = { .memory = SIM_MEMORY_AT_WAIT };
		for (unsigned i = 0; i < 512; i++)
			sim_buffer[i] = 0x30003000u + (draw_number() & 0x8fff8fffu);
		for (unsigned i = 0; t == 1 && i < 512; i += 32)
			memcpy(&sim_buffer[i + 16], &sim_buffer[i], 64);
		for (unsigned i = 512; i < 768; i++) {
			float f = (float)(draw_number() % 100);
			memcpy(&sim_buffer[i], &f, 4);
		}
		must_run(&b, "matrix", 1, 32, &opt);
		check_matrix(t);
		sim_bench_close(&b);
	}
}

int main(void)
{
	unsetenv("JITRUN_SIM_KEEP"); /* these objects are not ours, or damaged */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_late_store),
		cmocka_unit_test(test_grid_barrier),
		cmocka_unit_test(test_resident_limit),
		cmocka_unit_test(test_lds),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_scratch_and_order),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_matrix),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += sim_object_tests();
	return failed;
}
