/* tests/sim/sim_object_tests.c - the simulator on objects: kernels that clang compiled, damaged files, wrong arguments.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/sim/sim_run.h"
#include "tests/sim/sim_check.h"

/* --- kernels that clang compiled */

static float x[4096], y[4096], z[4096], old[4096];
static double dx[1024], dy[1024], dz[1024];

static void fill(const char *kernel)
{
	bool small = !strcmp(kernel, "reduce") || !strcmp(kernel, "matmul");
	for (unsigned i = 0; i < 4096; i++) {
		uint32_t u = draw_number(), v = draw_number();
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
		uint64_t u = (uint64_t)draw_number() << 32 | draw_number(),
			 v = (uint64_t)draw_number() << 32 | draw_number();
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

/* The value lies among the finite ones. The powers of two that scale it round nothing. */
static float nearest_half(float value)
{
	int e;
	(void)frexpf(value, &e);
	e = e - 11 < -24 ? -24 : e - 11;
	return ldexpf(nearbyintf(ldexpf(value, -e)), e);
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
			q[draw_number() % (i % 2 ? n : 1024)] = (uint8_t)draw_number();
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

/* gfx1100 and gfx1102 set up waves wrongly that start with fewer than 16 registers; the field is at 52 in the
 * descriptor. */
static void test_first_registers(void **unused)
{
	(void)unused;
	static const struct {
		const char *target;
		uint8_t mach;
		bool picky;
	} cases[] = { { "gfx1100", 0x41, true },
		      { "gfx1101", 0x46, false },
		      { "gfx1102", 0x47, true },
		      { "gfx1103", 0x44, false } };
	size_t n;
	uint8_t *p = sim_bench_read("programs", "gfx1100", &n), *kd;

	for (kd = p; kd + 64 <= p + n && memcmp(kd + 52, "\x9e\0\0\0\x08\4", 6) != 0;)
		kd++;
	assert_true(kd + 64 <= p + n);
	for (unsigned i = 0; i < 4; i++) {
		struct error err = { .code = ERROR_NONE };
		struct sim_device *dev = sim_open(cases[i].target, &err);
		p[48] = cases[i].mach;
		for (uint8_t user = 2; user <= 16; user++) {
			err = (struct error){ .code = ERROR_NONE };
			kd[52] = (uint8_t)(0x80 | user << 1);
			struct sim_object *o = sim_load(dev, p, n, &err);
			assert_int_equal(o != NULL, !cases[i].picky || user >= 15);
			if (!o)
				assert_non_null(strstr(err.text, "needs at least 16"));
			sim_unload(o);
		}
		sim_close(dev);
	}
	free(p);
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
	assert_false(sim_map(b.dev, sim_buffer + 1, 8, "overlap", true, &err));
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
			uint32_t w[4] = { draw_number(), draw_number(), draw_number(), draw_number() };
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

int sim_object_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_damaged_objects),
		cmocka_unit_test(test_first_registers),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_random_words),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_register_rules),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_programs_are_current),
	};

	return cmocka_run_group_tests_name("sim_object_tests", tests, NULL, NULL);
}
