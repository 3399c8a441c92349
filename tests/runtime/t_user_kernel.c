/* tests/runtime/t_user_kernel.c - users' kernels on every device, with kernels whose IR is built by hand: the same bits
 * as plain C for any number of units and threads; kept, sealed, cancelled, refused, and launched at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/ir/ir_build.h"
#include "runtime/kernels/compute.h"
#include "tests/support/shared.h"
#include "runtime/kernels/launch_plan.h"

enum { MAX = 5000 };

/* y = a x + y over n elements: a unit has W of them, or less at the end. */
struct saxpy {
	uint32_t n;
	bool refused, endless;
};

static bool build_saxpy(const void *user, struct ir *b, const struct target *t, struct error *err)
{
	const struct saxpy *s = user;
	const int32_t bytes = (int32_t)b->lanes * 4;
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), count = ir_ssub(b, ir_end(b), begin), at = ir_smuli(b, begin, bytes);

	if (s->refused)
		return error_set(err, ERROR_UNSUPPORTED, "this kernel is refused");
	ir_f a = ir_fbcast(b, arg, 0);
	ir_a x = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, 8), at)),
	     y = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, 16), at));
	ir_i first = ir_iadd(b, ir_imul(b, ir_isplat(b, begin), ir_iconst(b, (int32_t)b->lanes)), ir_ilane(b));
	ir_i i = ir_var_i(b, first), end = ir_iconst(b, (int32_t)s->n);

	ir_loop(b, count);
	ir_m here = ir_igt(b, end, i);
	ir_f xs = ir_fload(b, x, 0, 0);
	ir_where(b, here);
	ir_f ys = ir_fload(b, y, 0, 0);
	ir_where(b, here);
	ir_fstore(b, y, ir_fadd(b, ir_fmul(b, a, xs), ys), 0, 0);
	ir_where(b, here);
	ir_set_a(b, x, ir_aaddi(b, x, bytes));
	ir_set_a(b, y, ir_aaddi(b, y, bytes));
	ir_set_i(b, i, ir_iadd(b, i, ir_iconst(b, (int32_t)b->lanes)));
	ir_endloop(b);
	return true;
}

static jit_compute *open_compute(const jit_compute_options *o)
{
	jit_error err = { 0 };
	jit_compute *c = jit_compute_open(o, &err);

	if (!c)
		fail_msg("%s", err.message);
	return c;
}

static jit_kernel *try_saxpy(jit_compute *c, struct saxpy *s, jit_parameter p[3], struct error *err)
{
	const uint64_t bytes = s->n * sizeof(float);
	const unsigned lanes = c->device->facts.target->lanes;
	struct kernel_description is = {
		.name = "saxpy",
		.build = build_saxpy,
		.user = s,
		.parameter = p,
		.parameters = 3,
		.units = (s->n + lanes - 1) / lanes,
		.bytes_read = 2 * bytes,
		.bytes_written = bytes,
		.operations = 2 * s->n
	};

	/* as much work as in a launch that goes on for minutes, so that it is cut as often */
	if (s->endless)
		is.operations = UINT64_C(1) << 40;
	memcpy(is.id, &s->n, sizeof s->n);
	is.id[8] = s->refused;
	p[0] = JIT_STRUCT(jit_parameter, .name = "a", .type = JIT_TYPE_F32);
	p[1] = JIT_STRUCT(jit_parameter, .name = "x", .type = JIT_TYPE_F32, .access = JIT_IN, .dims = 1,
	                  .extent = { s->n }, .elements = s->n, .bytes = bytes);
	p[2] = JIT_STRUCT(jit_parameter, .name = "y", .type = JIT_TYPE_F32, .access = JIT_INOUT, .dims = 1,
	                  .extent = { s->n }, .elements = s->n, .bytes = bytes);
	return kernel_open(c, &is, err);
}

static jit_kernel *open_saxpy(jit_compute *c, struct saxpy *s, jit_parameter p[3])
{
	struct error err = { 0 };
	jit_kernel *k = try_saxpy(c, s, p, &err);

	if (!k)
		fail_msg("%s", err.text);
	return k;
}

static void good(int status, const jit_error *err)
{
	if (status)
		fail_msg("%s", err->message);
}

static void fill(float *x, float *y, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (float)(int32_t)seed * 0x1p-31f;
		y[i] = (float)(i % 977) * 0.37f;
	}
}

static void plain(float a, const float *x, float *y, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		volatile float product = a * x[i]; /* two roundings */
		y[i] = product + y[i];
	}
}

/* Guards behind the arrays must stay. */
static void run_memory(jit_kernel *k, uint32_t n, uint32_t seed)
{
	jit_error err = { 0 };
	float *x = malloc((n + 64) * sizeof *x), *y = malloc((n + 64) * sizeof *y),
	      *want = malloc((n + 64) * sizeof *y);
	const float a = 1.7f + (float)seed;
	jit_launch *l = jit_launch_open(k, &err);

	good(!l, &err);
	fill(x, y, n + 64, seed);
	memcpy(want, y, (n + 64) * sizeof *y);
	plain(a, x, want, n);
	good(jit_launch_set_real(l, 0, &(double){ (double)a }, &err), &err);
	good(jit_launch_set_memory(l, 1, x, n * sizeof *x, &err), &err);
	good(jit_launch_set_memory(l, 2, y, n * sizeof *y, &err), &err);
	good(jit_launch_run(l, &err), &err);
	assert_memory_equal(y, want, (n + 64) * sizeof *y);
	plain(a, x, want, n);
	good(jit_launch_run(l, &err), &err);
	assert_memory_equal(y, want, (n + 64) * sizeof *y);
	jit_launch_close(l);
	free(x);
	free(y);
	free(want);
}

static void run_buffers(jit_compute *c, jit_kernel *k, uint32_t n)
{
	static float x[MAX], y[MAX], got[MAX];
	jit_error err = { 0 };
	const uint64_t bytes = n * sizeof *x;
	/* both in one: neighbours do not overlap */
	jit_buffer *b = jit_buffer_open(c, 2 * bytes, &err);
	jit_launch *l = jit_launch_open(k, &err);

	good(!b || !l, &err);
	assert_int_equal(jit_buffer_bytes(b), 2 * bytes);
	fill(x, y, n, 7);
	good(jit_buffer_write(b, 0, x, bytes, &err), &err);
	good(jit_buffer_write(b, bytes, y, bytes, &err), &err);
	good(jit_launch_set_integer(l, 0, 3, &err), &err);
	good(jit_launch_set_buffer(l, 1, b, 0, &err), &err);
	good(jit_launch_set_buffer(l, 2, b, bytes, &err), &err);
	for (int i = 0; i < 3; i++) {
		good(jit_launch_run(l, &err), &err);
		plain(3, x, y, n);
	}
	good(jit_buffer_read(b, bytes, got, bytes, &err), &err);
	assert_memory_equal(got, y, bytes);
	if (jit_buffer_memory(b))
		assert_memory_equal((uint8_t *)jit_buffer_memory(b) + bytes, y, bytes);
	jit_launch_close(l);
	jit_buffer_close(b);
}

static const char *const devices[] = {
	"cpu", "ref", "sim:gfx1030", "sim:gfx1100", "sim:gfx1201", "sim:sm80", "sim:sm90"
};
enum { DEVICES = sizeof devices / sizeof *devices };

/* No units, one, one more and one less than a unit's elements, and more units than threads. */
static void test_devices(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 7, 8, 9, 31, 32, 33, 997, MAX };

	for (unsigned d = 0; d < DEVICES; d++)
		for (int threads = 1; threads <= 3; threads += 2) {
			jit_compute *c = open_compute(
				&JIT_COMPUTE_OPTIONS(.device = devices[d], .threads = threads, .cache_dir = ""));
			for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
				struct saxpy s = { .n = sizes[i] };
				jit_parameter p[3];
				jit_kernel *k = open_saxpy(c, &s, p);
				run_memory(k, s.n, 1);
				run_memory(k, s.n, 2);
				run_buffers(c, k, s.n);
				jit_kernel_close(k);
			}
			jit_compute_close(c);
		}
}

static void test_every_cpu_target(void **state)
{
	const struct target_cpu cpu = target_this_cpu();

	for (int t = TARGET_AVX2; t <= TARGET_AVX512_AMX; t++)
		for (int native = 0; native < 2; native++) {
			struct saxpy s = { .n = 333 };
			jit_parameter p[3];
			if (native && !target_runs(&cpu, &target_table[t], NULL))
				continue;
			jit_compute *c =
				open_compute(&JIT_COMPUTE_OPTIONS(.device = native ? "cpu" : "ref",
			                                          .isa = target_table[t].name, .cache_dir = ""));
			jit_kernel *k = open_saxpy(c, &s, p);
			jit_kernel_report r = JIT_KERNEL_REPORT();
			run_memory(k, s.n, 1);
			good(jit_kernel_get_report(k, &r, NULL), NULL);
			assert_int_equal(r.runs, native ? JIT_RUNS_NATIVE : JIT_RUNS_INTERPRETED);
			assert_int_equal(r.launches, 2);
			assert_string_equal(r.name, "saxpy");
			assert_int_equal(strncmp(r.key, "user.4d01", 9), 0);
			assert_int_equal(r.bytes_written, 333 * 4);
			assert_int_equal(r.code_bytes != 0, native);
			jit_kernel_close(k);
			jit_compute_close(c);
		}
}

/* ---- kept and sealed */

static void check_source(const char *dir, const char *device, int sealed, int code)
{
	struct saxpy s = { .n = 100 };
	jit_parameter p[3];
	jit_kernel_report r = JIT_KERNEL_REPORT();
	jit_compute *c =
		open_compute(&JIT_COMPUTE_OPTIONS(.device = device, .cache_dir = dir, .sealed = sealed, .threads = 2));
	jit_kernel *k = open_saxpy(c, &s, p);

	good(jit_kernel_get_report(k, &r, NULL), NULL);
	assert_int_equal(r.code, code);
	run_memory(k, s.n, 4);
	jit_kernel_close(k);
	k = open_saxpy(c, &s, p);
	good(jit_kernel_get_report(k, &r, NULL), NULL);
	assert_int_equal(r.code, JIT_CODE_MEMORY);
	jit_kernel_close(k);
	jit_compute_close(c);
}

static void test_kept(void **state)
{
	char dir[] = "/tmp/t_user_kernel.XXXXXX", command[64];

	assert_non_null(mkdtemp(dir));
	check_source(dir, "cpu", 0, JIT_CODE_GENERATED);
	check_source(dir, "cpu", 0, JIT_CODE_DISK);
	check_source(dir, "cpu", 1, JIT_CODE_DISK);
	check_source(dir, "sim:gfx1100", 0, JIT_CODE_GENERATED);
	check_source(dir, "sim:gfx1100", 0, JIT_CODE_DISK);
	check_source(dir, "sim:sm90", 0, JIT_CODE_GENERATED);
	check_source(dir, "sim:sm90", 0, JIT_CODE_DISK);
	/* another kernel: that of 100 elements does not do */
	struct saxpy s = { .n = 101 };
	jit_parameter p[3];
	struct error err = { 0 };
	jit_compute *c = open_compute(&JIT_COMPUTE_OPTIONS(.cache_dir = dir, .sealed = 1));
	assert_null(try_saxpy(c, &s, p, &err));
	assert_non_null(strstr(err.text, "kernel saxpy: kernel user.65"));
	assert_non_null(strstr(err.text, "--sealed forbids generating it"));
	jit_compute_close(c);
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* ---- what is refused */

static void refused(int status, const jit_error *err, const char *text)
{
	assert_int_equal(status, JIT_ERROR_ARGUMENT);
	if (!strstr(err->message, text))
		fail_msg("\"%s\" has no \"%s\"", err->message, text);
}

static void test_arguments(void **state)
{
	struct saxpy s = { .n = 10 };
	jit_parameter p[3], requested = JIT_PARAMETER();
	float x[16] = { 0 }, y[16] = { 0 };
	jit_error err = { 0 };
	jit_compute *c = open_compute(&JIT_COMPUTE_OPTIONS(.cache_dir = "")), *other = open_compute(NULL);
	jit_kernel *k = open_saxpy(c, &s, p);
	jit_launch *l = jit_launch_open(k, &err);
	jit_buffer *b = jit_buffer_open(other, 64, &err);

	assert_int_equal(jit_kernel_parameters(k), 3);
	assert_int_equal(jit_kernel_find(k, "y"), 2);
	assert_int_equal(jit_kernel_find(k, "z"), -1);
	good(jit_kernel_parameter(k, 2, &requested, &err), &err);
	assert_int_equal(requested.access, JIT_INOUT);
	assert_int_equal(requested.extent[0], 10);
	refused(jit_kernel_parameter(k, 3, &requested, &err), &err, "parameter 3 of saxpy, which has 3");
	refused(jit_launch_run(l, &err), &err, "scalar a of saxpy was not given");
	refused(jit_launch_set_real(l, 1, &(double){ 1 }, &err), &err,
	        "array x of saxpy was given a number, expected memory");
	refused(jit_launch_set_memory(l, 0, x, 4, &err), &err, "scalar a of saxpy was given memory, expected a number");
	refused(jit_launch_set_memory(l, 1, x, 39, &err), &err,
	        "given 39 bytes, expected at least 40: 10 elements of 4");
	refused(jit_launch_set_memory(l, 1, (uint8_t *)x + 2, 62, &err), &err, "expected a multiple of 4 bytes");
	refused(jit_launch_set_memory(l, 9, x, 40, &err), &err, "parameter 9 of saxpy");
	refused(jit_launch_set_buffer(l, 1, b, 0, &err), &err, "of another jit_compute");
	refused(jit_launch_set_bits(l, 0, UINT64_C(1) << 32, &err), &err, "does not have");
	good(jit_launch_set_bits(l, 0, 0x3f800000, &err), &err);
	good(jit_launch_set_memory(l, 1, x, sizeof x, &err), &err);
	refused(jit_launch_run(l, &err), &err, "array y of saxpy was not given");
	good(jit_launch_set_memory(l, 2, x + 4, 40, &err), &err);
	refused(jit_launch_run(l, &err), &err, "arrays x and y of saxpy overlap, and y is written");
	good(jit_launch_set_memory(l, 2, y, 40, &err), &err);
	good(jit_launch_run(l, &err), &err);
	refused(jit_buffer_write(b, 60, x, 5, &err), &err, "5 bytes from byte 60 of a buffer, which has 64 bytes");
	refused(jit_buffer_read(b, UINT64_MAX, x, 2, &err), &err, "which has 64 bytes");
	jit_buffer_close(b);
	jit_launch_close(l);
	jit_kernel_close(k);
	jit_compute_close(other);
	jit_compute_close(c);
}

static void test_refused(void **state)
{
	for (unsigned d = 0; d < DEVICES; d++) {
		struct saxpy s = { .n = 10, .refused = true }, fine = { .n = 10 };
		jit_parameter p[3], q[3];
		struct error err = { 0 };
		jit_compute *c = open_compute(&JIT_COMPUTE_OPTIONS(.device = devices[d], .cache_dir = ""));
		assert_null(try_saxpy(c, &s, p, &err));
		assert_string_equal(err.text, "kernel saxpy: this kernel is refused");
		jit_kernel *k = open_saxpy(c, &fine, q); /* and the next one works */
		run_memory(k, 10, 1);
		jit_kernel_close(k);
		jit_compute_close(c);
	}
	jit_error err = { 0 };
	assert_null(jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "sim:sm90x2"), &err));
	assert_non_null(strstr(err.message, "one card"));
	assert_null(jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "toaster"), &err));
	assert_non_null(strstr(err.message, "unknown"));
	assert_null(jit_compute_open(&JIT_COMPUTE_OPTIONS(.threads = -1), &err));
	assert_null(jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "ref", .sealed = 1), &err));
}

/* ---- cancelling */

static void test_cancel(void **state)
{
	jit_error err = { 0 };
	jit_cancel *cancel = jit_cancel_open(&err);

	for (unsigned d = 0; d < DEVICES; d++) {
		static float x[MAX], y[MAX], was[MAX];
		struct saxpy s = { .n = MAX, .endless = true };
		jit_parameter p[3];
		jit_compute *c = open_compute(
			&JIT_COMPUTE_OPTIONS(.device = devices[d], .cache_dir = "", .cancel = cancel, .threads = 2));
		jit_kernel *k = open_saxpy(c, &s, p);
		jit_launch *l = jit_launch_open(k, &err);
		fill(x, y, MAX, 3);
		memcpy(was, y, sizeof y);
		jit_launch_set_real(l, 0, &(double){ 2 }, &err);
		jit_launch_set_memory(l, 1, x, sizeof x, &err);
		jit_launch_set_memory(l, 2, y, sizeof y, &err);
		assert_true(l->plan.plan.n_ops > 100);
		jit_cancel_set(cancel, 1);
		assert_int_equal(jit_launch_run(l, &err), JIT_ERROR_CANCELLED);
		assert_memory_equal(y, was, sizeof y);
		jit_cancel_set(cancel, 0);
		good(jit_launch_run(l, &err), &err);
		plain(2, x, was, MAX);
		assert_memory_equal(y, was, sizeof y);
		jit_launch_close(l);
		jit_kernel_close(k);
		jit_compute_close(c);
	}
	jit_cancel_close(cancel);
}

/* ---- at once */

struct caller {
	jit_compute *compute;
	jit_kernel *kernel;
	uint32_t n, seed;
};

static void *call(void *user)
{
	const struct caller *c = user;

	for (int i = 0; i < 20; i++) {
		struct saxpy s = { .n = c->n + (uint32_t)i };
		jit_parameter p[3];
		jit_kernel *own = open_saxpy(c->compute, &s, p);
		run_memory(c->kernel, c->n, c->seed);
		run_memory(own, s.n, c->seed);
		jit_kernel_close(own);
	}
	return NULL;
}

static void test_at_once(void **state)
{
	static const char *const on[] = { "cpu", "ref", "sim:gfx1100", "sim:sm90" };

	for (unsigned d = 0; d < 4; d++) {
		struct caller caller[4];
		struct saxpy s[4];
		jit_parameter p[4][3];
		pthread_t thread[4];
		jit_compute *c = open_compute(&JIT_COMPUTE_OPTIONS(.device = on[d], .cache_dir = "", .threads = 2));
		for (uint32_t i = 0; i < 4; i++) {
			s[i] = (struct saxpy){ .n = 100 + i / 2 };
			caller[i] = (struct caller){ c, open_saxpy(c, &s[i], p[i]), s[i].n, i };
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, call, &caller[i]), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		for (int i = 0; i < 4; i++)
			jit_kernel_close(caller[i].kernel);
		jit_compute_close(c);
	}
}

/* A launch is cut where it can be cancelled: by its work, or on a real card by what that does in a fiftieth of a
 * second.
 */
static void test_parts(void **state)
{
	static const struct {
		double operations, arithmetic;
		bool one_by_one;
		uint64_t units, parts;
	} cases[] = { { 5e9, 0, false, 1000, 5 },      { 5e9, 1e11, false, 1000, 3 }, { 5e9, 1e12, false, 1000, 1 },
		      { 5e9, 1e9, false, 1000, 5 },    { 5e9, 0, false, 2, 2 },       { 1, 0, true, 77, 77 },
		      { 1, 1e12, true, 1 << 20, 4096 } };
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct launch_shape shape = { .units = cases[i].units,
			                            .args = 1,
			                            .serial = cases[i].one_by_one,
			                            .operations = cases[i].operations,
			                            .arithmetic = cases[i].arithmetic };
		struct launch_plan l;
		struct error err = { 0 };
		assert_true(launch_plan_make(&l, &shape, &err));
		assert_int_equal(l.plan.n_ops, cases[i].parts);
		for (size_t k = 0; k < l.plan.n_ops; k++)
			assert_int_equal(l.plan.op[k].begin, k ? l.plan.op[k - 1].end : 0);
		assert_int_equal(l.plan.op[l.plan.n_ops - 1].end, cases[i].units);
		launch_plan_free(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_every_cpu_target),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
