/* tests/sim/t_sim.c - the simulator as a machine: traps, waits, barriers, memory modes, matrix products, damaged code
 * objects. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/sim/sim_run.h"

static uint32_t buffer[16384];
static float fbuf(size_t i)
{
	float f;
	memcpy(&f, &buffer[i], 4);
	return f;
}
static uint64_t state = 99;
static uint32_t draw(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 32);
}

static bool run(struct sim_bench *b, const char *kernel, uint32_t groups, uint32_t size, const struct sim_options *opt,
                struct error *err)
{
	uint64_t arg = (uint64_t)(uintptr_t)buffer;
	*err = (struct error){ .code = ERROR_NONE };
	return sim_bench_run(b, kernel, &arg, 1, groups, size, opt, err);
}

static struct sim_bench open_programs(unsigned t)
{
	struct error err = { .code = ERROR_NONE };
	struct sim_bench b = sim_bench_open("programs", sim_bench_targets[t]);
	assert_true(sim_map(b.dev, buffer, sizeof buffer, "buffer", true, &err));
	return b;
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
static void check_trap_place(const struct error *err, const struct sim_trap *trap, const char *kernel)
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
				check_trap_place(&err, &trap, traps[i].kernel);
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
			assert_int_equal(buffer[i], 4 * i);
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
			memset(buffer, 0, sizeof buffer);
			buffer[1] = N;
			must_run(&b, "grid", N, 32, &opt);
			assert_int_equal(buffer[0], N);
			for (unsigned g = 0; g < N; g++)
				for (unsigned l = 0; l < 32; l++)
					assert_int_equal(buffer[(16640 + 128 * g) / 4 + l], (g + 1) % N + 4 * l);
			assert_int_equal(c.workgroups, N);
			assert_int_equal(c.by_class[SIM_CLASS_ATOMIC], N);
			assert_int_equal(c.store_bytes, N * 256);
		}
		sim_bench_close(&b);
	}
}

static void test_too_few_resident(void **unused)
{
	(void)unused;
	struct sim_bench b = open_programs(1);
	struct sim_options opt = { .resident = 8, .stall_limit = 200000 };
	struct error err;
	memset(buffer, 0, sizeof buffer);
	buffer[1] = 40;
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
				assert_true(4 * l + k >= 128 || buffer[4 * l + k] == quad[k]);
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
				assert_int_equal(buffer[128 + 2 * l], 4 * l);
				assert_int_equal(buffer[128 + 2 * l + 1], 124 - 4 * l);
				assert_int_equal(buffer[192 + l], 8 * l);
				assert_int_equal(buffer[224 + l], 124 - 4 * l);
				assert_int_equal(buffer[256 + l], l & 1 ? 4 : 0);
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
		memset(buffer, 0, sizeof buffer);
		for (unsigned l = 0; l < 32; l++) {
			buffer[32 + l] = 100 + l;
			buffer[64 + l] = 200 + l;
			buffer[96 + l] = l % 5;
		}
		must_run(&b, "atomics", 1, 32, &opt);
		assert_int_equal(buffer[0], 32);
		assert_int_equal(buffer[1], 31);
		assert_int_equal(buffer[2], 124);
		for (unsigned l = 0; l < 32; l++) {
			assert_int_equal(buffer[32 + l], 101 + l);
			assert_int_equal(buffer[64 + l], l);
			assert_int_equal(buffer[96 + l], l % 5 == 3 ? 77 : l % 5);
			assert_int_equal(buffer[128 + l], 100 + l);
			assert_int_equal(buffer[160 + l], 200 + l);
			assert_int_equal(buffer[192 + l], l % 5);
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
				assert_int_equal(buffer[l], 4 * l + 4);
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
			assert_int_equal(buffer[l], 0x3f800000);
			assert_int_equal(buffer[32 + l], 0x3f800001);
			assert_int_equal(buffer[64 + l], 1);
			assert_int_equal(buffer[96 + l], 0);
			assert_int_equal(buffer[128 + l], 1);
			assert_int_equal(buffer[160 + l], 0xf0);
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
	return buffer[base + 32 * (k / per) + lane] >> bits * (k % per) & ((1u << bits) - 1);
}

static void check_matrix(unsigned t)
{
	for (unsigned m = 0; m < 16; m++)
		for (unsigned n = 0; n < 16; n++) {
			size_t at = t == 1 ? 32 * (m / 2) + 16 * (m % 2) + n : 32 * (m % 8) + 16 * (m / 8) + n;
			double f16 = fbuf(512 + at), bf16 = fbuf(512 + at); /* rounded once, at the end */
			int32_t sum = (int32_t)buffer[512 + at];
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
			assert_int_equal((int32_t)buffer[1536 + at], sum);
		}
}

static void test_matrix(void **unused)
{
	(void)unused;
	for (unsigned t = 1; t < 3; t++) {
		struct sim_bench b = open_programs(t);
		struct sim_options opt = { .memory = SIM_MEMORY_AT_WAIT };
		for (unsigned i = 0; i < 512; i++)
			buffer[i] = 0x30003000u + (draw() & 0x8fff8fffu);
		for (unsigned i = 0; t == 1 && i < 512; i += 32)
			memcpy(&buffer[i + 16], &buffer[i], 64);
		for (unsigned i = 512; i < 768; i++) {
			float f = (float)(draw() % 100);
			memcpy(&buffer[i], &f, 4);
		}
		must_run(&b, "matrix", 1, 32, &opt);
		check_matrix(t);
		sim_bench_close(&b);
	}
}

/* --- kernels that clang compiled */

static float x[4096], y[4096], z[4096], old[4096];
static double dx[1024], dy[1024], dz[1024];

static void fill(const char *kernel)
{
	bool small = !strcmp(kernel, "reduce") || !strcmp(kernel, "matmul");
	for (unsigned i = 0; i < 4096; i++) {
		uint32_t u = draw(), v = draw();
		memcpy(&x[i], &u, 4);
		memcpy(&y[i], &v, 4);
		if (i % 3 == 0) {
			u &= 0x80ffffff;
			v = (v & 0x83ffffff) | 0x3c000000;
			memcpy(&x[i], &u, 4);
			memcpy(&y[i], &v, 4);
		}
		if (small) {
			x[i] = (float)(u % 50);
			y[i] = (float)(v % 50);
		}
		z[i] = old[i] = (float)i;
	}
	for (unsigned i = 0; i < 1024; i++) {
		uint64_t u = (uint64_t)draw() << 32 | draw(), v = (uint64_t)draw() << 32 | draw();
		memcpy(&dx[i], &u, 8);
		memcpy(&dy[i], &v, 8);
	}
}

static uint32_t mixed(int32_t b, int32_t c)
{
	int32_t v = c | 1;
	uint32_t r = v == -1 ? 0 : (uint32_t)(b / v);
	r ^= (uint32_t)b % (uint32_t)v;
	r += (uint32_t)(((int64_t)b * v) >> 32);
	r ^= (uint32_t)__builtin_popcount((uint32_t)b);
	r += (uint32_t)__builtin_clz((uint32_t)b | 1);
	uint64_t w = (uint64_t)(uint32_t)b << 32 | (uint32_t)v;
	r ^= (uint32_t)((w * w) >> 13);
	r += (uint32_t)(b > v ? b : v);
	r ^= (uint32_t)(int32_t)((float)b * 0.001f);
	for (int k = 0; k < (v & 7); k++)
		r = r * 1664525u + 1013904223u;
	return r;
}

/* y lies among the finite ones. The powers of two that scale it round nothing. */
static float nearest_half(float y)
{
	int e;
	(void)frexpf(y, &e);
	e = e - 11 < -24 ? -24 : e - 11;
	return ldexpf(nearbyintf(ldexpf(y, -e)), e);
}

static bool same(float a, float b) { return !memcmp(&a, &b, 4) || (isnan(a) && isnan(b)); }

static void check_kernel(const char *k, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		float want = 0;
		int32_t b, c;
		uint32_t got;
		memcpy(&b, &x[i], 4);
		memcpy(&c, &y[i], 4);
		memcpy(&got, &z[i], 4);
		if (!strcmp(k, "mixed")) {
			assert_int_equal(got, mixed(b, c));
			continue;
		}
		if (!strcmp(k, "vddiv")) {
			double d = dx[i] / dy[i];
			assert_true(!memcmp(&d, &dz[i], 8) || (isnan(d) && isnan(dz[i])));
			continue;
		}
		if (!strcmp(k, "vhalf")) {
			if (fabsf(y[i]) < 65520)
				assert_true(z[i] == nearest_half(y[i]));
			continue;
		}
		if (!strcmp(k, "vadd"))
			want = x[i] + y[i];
		if (!strcmp(k, "vdiv"))
			want = x[i] / y[i];
		if (!strcmp(k, "vsqrt"))
			want = sqrtf(x[i]);
		if (!strcmp(k, "vfma"))
			want = fmaf(x[i], y[i], old[i]);
		if (!same(want, z[i]))
			fail_msg("%s: %a and %a gave %a, expected %a", k, (double)x[i], (double)y[i], (double)z[i],
			         (double)want);
	}
}

static void check_sums(const char *k)
{
	if (!strcmp(k, "reduce"))
		for (unsigned g = 0; g < 16; g++) {
			float s = 0;
			for (unsigned i = 0; i < 100; i++)
				s += x[100 * g + i];
			assert_true(s == z[g]);
		}
	else
		for (unsigned r = 0; r < 64; r++)
			for (unsigned c = 0; c < 64; c++) {
				float s = 0;
				for (unsigned i = 0; i < 64; i++)
					s += x[64 * r + i] * y[64 * i + c];
				assert_true(s == z[64 * r + c]);
			}
}

static void run_clang(struct sim_bench *b, const char *k, unsigned round)
{
	struct sim_options opt = {
		.memory = (enum sim_memory_mode)round, .seed = round, .perturb = round ? 17 : 0, .races = round == 2
	};
	struct error err = { .code = ERROR_NONE };
	bool reduce = !strcmp(k, "reduce"), matmul = !strcmp(k, "matmul"), doubles = !strcmp(k, "vddiv");
	uint64_t block[64] = { (uint64_t)(uintptr_t)z, (uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y,
		               reduce   ? 100
		               : matmul ? 64
		                        : 1000 };
	uint32_t g[3] = { 16, 1, 1 }, s[3] = { 64, 1, 1 };
	if (doubles) {
		block[0] = (uint64_t)(uintptr_t)dz;
		block[1] = (uint64_t)(uintptr_t)dx;
		block[2] = (uint64_t)(uintptr_t)dy;
	}
	if (matmul) {
		g[0] = g[1] = 4;
		s[0] = s[1] = 16;
	}
	fill(k);
	if (!sim_dispatch(b->dev, sim_find(b->object, k), block, sizeof block, g, s, &opt, &err))
		fail_msg("%s", err.text);
	if (reduce || matmul)
		check_sums(k);
	else
		check_kernel(k, 1000);
}

static void test_clang(void **unused)
{
	(void)unused;
	static const char *const kernels[] = { "vadd",  "vdiv",   "vsqrt",  "vfma", "vhalf",
		                               "vddiv", "reduce", "matmul", "mixed" };
	for (unsigned t = 0; t < 3; t++) {
		struct error err = { .code = ERROR_NONE };
		struct sim_bench b = sim_bench_open("kernels", sim_bench_targets[t]);
		void *const maps[] = { x, y, z, dx, dy, dz };
		for (unsigned i = 0; i < 6; i++)
			assert_true(sim_map(b.dev, maps[i], i < 3 ? sizeof x : sizeof dx, "array", true, &err));
		for (unsigned k = 0; k < 9; k++)
			for (unsigned round = 0; round < 3; round++)
				run_clang(&b, kernels[k], round);
		sim_bench_close(&b);
	}
}

/* --- files and arguments */

static void test_damaged_objects(void **unused)
{
	(void)unused;
	struct error err = { .code = ERROR_NONE };
	struct sim_device *dev = sim_open("gfx1100", &err);
	size_t n;
	uint8_t *p = sim_bench_read("kernels", "gfx1100", &n), *q = malloc(n);
	for (size_t cut = 0; cut < n; cut += cut < 4096 ? 1 : 37) {
		uint8_t *exact = malloc(cut ? cut : 1);
		memcpy(exact, p, cut);
		err = (struct error){ .code = ERROR_NONE };
		struct sim_object *o = sim_load(dev, exact, cut, &err);
		if (o)
			sim_unload(o);
		else
			assert_true(err.text[0]);
		free(exact);
	}
	for (unsigned i = 0; i < 4000; i++) {
		memcpy(q, p, n);
		for (unsigned k = 0; k < 3; k++)
			q[draw() % (i % 2 ? n : 1024)] = (uint8_t)draw();
		struct sim_object *o = sim_load(dev, q, n, NULL);
		sim_unload(o);
	}
	free(p);
	free(q);
	p = sim_bench_read("kernels", "gfx1030", &n);
	err = (struct error){ .code = ERROR_NONE };
	assert_null(sim_load(dev, p, n, &err));
	assert_non_null(strstr(err.text, "0x36, expected 0x41"));
	free(p);
	sim_close(dev);
	err = (struct error){ .code = ERROR_NONE };
	assert_null(sim_open("gfx900", &err));
	assert_non_null(strstr(err.text, "gfx900"));
}

static void test_arguments(void **unused)
{
	(void)unused;
	struct sim_bench b = open_programs(0);
	const struct sim_kernel *k = sim_find(b.object, "lds");
	struct sim_trap trap = { .trapped = true };
	struct sim_options opt = { .seed = 0, .trap = &trap };
	const uint32_t one[3] = { 1, 1, 1 }, many[3] = { 1025, 1, 1 };
	uint64_t block[8] = { 0 };
	struct error err = { .code = ERROR_NONE };
	assert_int_equal(k->lds_size, 1024);
	assert_int_equal(k->kernarg_size, 64);
	assert_int_equal(k->vgprs, 48);
	assert_null(sim_find(b.object, "nothing"));
	assert_false(sim_dispatch(b.dev, k, block, 8, one, one, &opt, &err));
	assert_non_null(strstr(err.text, "64 bytes"));
	assert_false(trap.trapped);
	err = (struct error){ .code = ERROR_NONE };
	assert_false(sim_dispatch(b.dev, k, block, 64, one, many, &opt, &err));
	err = (struct error){ .code = ERROR_NONE };
	assert_false(sim_map(b.dev, buffer + 1, 8, "overlap", true, &err));
	sim_bench_close(&b);
}

/* What another decoder says of valid encodings: length and instruction. */
static void test_decode(void **unused)
{
	(void)unused;
	char line[256], last[16] = "";
	struct sim_device *dev = NULL;
	unsigned lines = 0;
	FILE *f = source_open("tests/golden/sim_decode.txt");
	while (fgets(line, sizeof line, f)) {
		char target[16], want[96], got[96], *g = got;
		unsigned length, found = 0;
		uint32_t w[4];
		if (line[0] == '#')
			continue;
		int n = sscanf(line, "%15s %u %95s %x %x %x %x", target, &length, want, &w[0], &w[1], &w[2], &w[3]) - 3;
		assert_true(n >= 1);
		if (strcmp(target, last)) {
			sim_close(dev);
			dev = sim_open(strcpy(last, target), NULL);
		}
		const char *name = sim_decode_name(dev, w, (unsigned)n, &found);
		for (const char *p = name ? name : ""; *p; p++)
			if (*p != ' ')
				*g++ = *p;
		*g = 0;
		if (!name || found != length || strcmp(got, want))
			fail_msg("%s gave %s of %u words", line, name ? name : "nothing", found);
		if (n > 1)
			assert_null(sim_decode_name(dev, w, (unsigned)n - 1, &found));
		lines++;
	}
	fclose(f);
	sim_close(dev);
	assert_true(lines > 2000);
}

/* Register rules that the decoder enforces: an assembler would not make these words. */
static void test_register_rules(void **unused)
{
	(void)unused;
	struct sim_device *dev = sim_open("gfx1100", NULL);
	unsigned n;
	const uint32_t banks[2] = { 0xca100101, 0x02000105 },
		       apart[2] = { 0xca100101, 0x02000106 }; /* v_dual_mov v2, v1 :: v_mov v1, v5 or v6 */
	const uint32_t three[2] = { 0xd6550000, 0x000c0401 },
		       two[2] = { 0xd6550000, 0x00080401 };               /* v_add3_u32 v0, s1, s2, s3 or s2 */
	const uint32_t odd[1] = { 0xbe820105 }, even[1] = { 0xbe820104 }; /* s_mov_b64 s[2:3], s[5:6] or s[4:5] */
	assert_null(sim_decode_name(dev, banks, 2, &n));
	assert_string_equal(sim_decode_name(dev, apart, 2, &n), "v_mov_b32 :: v_mov_b32");
	assert_null(sim_decode_name(dev, three, 2, &n));
	assert_string_equal(sim_decode_name(dev, two, 2, &n), "v_add3_u32");
	assert_null(sim_decode_name(dev, odd, 1, &n));
	assert_string_equal(sim_decode_name(dev, even, 1, &n), "s_mov_b64");
	sim_close(dev);
}

static void test_targets(void **unused)
{
	(void)unused;
	static const char *const names[] = { "gfx1030", "gfx1031", "gfx1032", "gfx1100", "gfx1101", "gfx1102",
		                             "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201" };
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct sim_device *dev = sim_open(names[i], NULL);
		assert_non_null(dev);
		assert_string_equal(sim_target(dev), names[i]);
		sim_close(dev);
	}
}

/* No word, however odd, may crash the decoder. */
static void test_random_words(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < 3; t++) {
		struct sim_device *dev = sim_open(sim_bench_targets[t], NULL);
		unsigned known = 0;
		for (unsigned i = 0; i < 300000; i++) {
			uint32_t w[4] = { draw(), draw(), draw(), draw() };
			unsigned length = 0, n = 1 + i % 4;
			if (!sim_decode_name(dev, w, n, &length))
				continue;
			assert_true(length >= 1 && length <= n);
			known++;
		}
		assert_true(known > 1000);
		sim_close(dev);
	}
}

/* The checked-in programs are what the assembler makes of their sources. */
static void test_programs_are_current(void **unused)
{
	(void)unused;
	char dir[] = "/tmp/sim-test-XXXXXX", command[4096], sources[1024];
	if (access("/usr/bin/llvm-mc-19", X_OK) || access("/usr/bin/ld.lld-19", X_OK)) {
		print_message("llvm-mc-19 or ld.lld-19 is missing\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	source_path(sources, "tests/sim");
	snprintf(command, sizeof command,
	         "sh %s/build.sh %s asm && for f in %s/*.co; do cmp $f %s/`basename $f` || exit 1; done; s=$?; rm -rf "
	         "%s; exit $s",
	         sources, dir, dir, sources, dir);
	assert_int_equal(system(command), 0);
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
		cmocka_unit_test(test_too_few_resident),
		cmocka_unit_test(test_lds),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_scratch_and_order),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_damaged_objects),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_random_words),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_register_rules),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_programs_are_current),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
