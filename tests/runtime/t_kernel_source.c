/* tests/runtime/t_kernel_source.c - kernels in the language through the library's interface: constants and messages,
 * what is out of range, tuning, and many threads that open, launch and close the same kernels. What the language means
 * has tests of its own in tests/language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_kernel.h"
#include "tests/runtime/kernel_trace_tests.h"
#include "tests/support/shared.h"

static const char text[] =
	"const i64 n;\n"
	"const i32 by = 3;\n"
	"tune wide in {64, 128, 256};\n"
	"tune copies in {1, 2};\n"
	"kernel scale(in i32 x[n], out i32 y[n]) over (i in n) block(wide) { y[i] = x[i] * by; }\n"
	"kernel shift(i64 d, in i32 x[n], inout i32 y[n]) over (i in n) { y[i] = x[i + d]; }\n";

static const char *const devices[] = { "cpu", "ref", "sim:gfx1100", "sim:sm90" };
enum { DEVICES = sizeof devices / sizeof *devices, MAX = 4000 };

static void good(int status, const jit_error *err)
{
	if (status)
		fail_msg("%s", err->message);
}

static jit_compute *open_compute(const char *device, const char *cache, int threads)
{
	jit_error err = { 0 };
	jit_compute *c =
		jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = device, .cache_dir = cache, .threads = threads), &err);

	if (!c)
		fail_msg("%s", err.message);
	return c;
}

static jit_kernel *open_kernel(jit_compute *c, const char *kernel, const char *constants, int check)
{
	jit_error err = { 0 };
	jit_kernel *k = jit_kernel_open(
		c, &JIT_KERNEL_OPTIONS(.source = text, .kernel = kernel, .constants = constants, .check = check), &err);

	if (!k)
		fail_msg("%s", err.message);
	return k;
}

/* y = by x of n elements, and nothing behind them. */
static void run_scale(jit_kernel *k, int n, int by)
{
	int32_t *x = malloc(sizeof *x * MAX), *y = malloc(sizeof *y * MAX);
	jit_error err = { 0 };
	jit_launch *l = jit_launch_open(k, &err);

	assert_true(x && y);
	good(!l, &err);
	for (int i = 0; i < MAX; i++) {
		x[i] = i * 7 - 100;
		y[i] = -1;
	}
	good(jit_launch_set_memory(l, 0, x, sizeof *x * (unsigned)n, &err), &err);
	good(jit_launch_set_memory(l, 1, y, sizeof *y * (unsigned)n, &err), &err);
	good(jit_launch_run(l, &err), &err);
	for (int i = 0; i < MAX; i++)
		assert_int_equal(y[i], i < n ? x[i] * by : -1);
	jit_launch_close(l);
	free(x);
	free(y);
}

/* No elements, one, primes, and one more and less than what a unit may have. */
static void test_sizes(void **state)
{
	static const int sizes[] = { 0, 1, 2, 31, 63, 64, 65, 127, 128, 129, 255, 257, 997, 1023, 1025, 3989 };
	char constants[64];

	for (int d = 0; d < DEVICES; d++) {
		jit_compute *c = open_compute(devices[d], "", 2);
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			snprintf(constants, sizeof constants, "n=%d, by=-5", sizes[i]);
			jit_kernel *k = open_kernel(c, "scale", constants, 0);
			run_scale(k, sizes[i], -5);
			jit_kernel_close(k);
		}
		jit_compute_close(c);
	}
}

/* ---- what is refused */

static void refused(jit_compute *c, const jit_kernel_options *o, int code, const char *says)
{
	jit_error err = { 0 };

	assert_null(jit_kernel_open(c, o, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.message, says))
		fail_msg("\"%s\" has no \"%s\"", err.message, says);
}

static void test_refused(void **state)
{
	static const struct {
		const char *constants;
		int code;
		const char *says;
	} wrong[] = {
		{ NULL, JIT_ERROR_FORMAT, "n" },
		{ "n", JIT_ERROR_ARGUMENT, "\"n\", expected name=value" },
		{ "n=", JIT_ERROR_ARGUMENT, "\"n=\", expected name=value" },
		{ "=3", JIT_ERROR_ARGUMENT, "\"=3\", expected name=value" },
		{ "n=3 n=4", JIT_ERROR_ARGUMENT, "n has two values" },
		{ "n=x", JIT_ERROR_FORMAT, "n" },
		{ "n=3 q=1", JIT_ERROR_FORMAT, "q" },
		{ "n=-1", JIT_ERROR_FORMAT, "" },
		{ "n=3 wide=65", JIT_ERROR_FORMAT, "wide" },
	};
	jit_compute *c = open_compute("cpu", "", 1);
	char messages[4096], tiny[40];

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		refused(c, &JIT_KERNEL_OPTIONS(.source = text, .kernel = "scale", .constants = wrong[i].constants),
		        wrong[i].code, wrong[i].says);
	refused(c, &JIT_KERNEL_OPTIONS(.source = text, .constants = "n=1"), JIT_ERROR_FORMAT, "");
	refused(c, &JIT_KERNEL_OPTIONS(.source = text, .kernel = "scal", .constants = "n=1"), JIT_ERROR_FORMAT, "scal");
	refused(c, &JIT_KERNEL_OPTIONS(.path = "/no/such.jk"), JIT_ERROR_IO, "/no/such.jk: No such file");
	refused(c, &JIT_KERNEL_OPTIONS(.kernel = "a"), JIT_ERROR_ARGUMENT, "neither a source nor a path");
	refused(c, &JIT_KERNEL_OPTIONS(.source = ""), JIT_ERROR_FORMAT, "");
	/* all messages, as far as there is room; the name of the file in each */
	const char *two = "kernel f(out f32 y[2]) over (i in 2) {\n\ty[i] = a;\n\ty[i] = b;\n}\n";
	refused(c,
	        &JIT_KERNEL_OPTIONS(.source = two, .path = "two.jk", .messages = messages,
	                            .n_messages = sizeof messages),
	        JIT_ERROR_FORMAT, "two.jk:2:");
	assert_non_null(strstr(messages, "two.jk:2:"));
	assert_non_null(strstr(messages, "two.jk:3:"));
	assert_non_null(strchr(messages, '^'));
	refused(c, &JIT_KERNEL_OPTIONS(.source = two, .path = "two.jk", .messages = tiny, .n_messages = sizeof tiny),
	        JIT_ERROR_FORMAT, "two.jk:2:");
	assert_int_equal(strlen(tiny), sizeof tiny - 1);
	assert_memory_equal(tiny, messages, sizeof tiny - 1);
	/* n bytes of a longer text */
	jit_kernel *k =
		jit_kernel_open(c,
	                        &JIT_KERNEL_OPTIONS(.source = text, .n = (size_t)(strstr(text, "kernel shift") - text),
	                                            .constants = "n=5"),
	                        NULL);
	assert_non_null(k);
	run_scale(k, 5, 3);
	jit_kernel_close(k);
	jit_compute_close(c);
}

/* ---- out of range */

static void test_check(void **state)
{
	static int32_t x[MAX], y[MAX];

	for (int i = 0; i < MAX; i++)
		x[i] = i;
	for (int d = 0; d < DEVICES; d++)
		for (int check = 0; check < 2; check++) {
			jit_error err = { 0 };
			jit_compute *c = open_compute(devices[d], "", 3);
			jit_kernel *k = open_kernel(c, "shift", "n=1000", check);
			jit_launch *l = jit_launch_open(k, &err);
			good(jit_launch_set_memory(l, 1, x, 4000, &err), &err);
			good(jit_launch_set_memory(l, 2, y, 4000, &err), &err);
			good(jit_launch_set_integer(l, 0, 0, &err), &err);
			good(jit_launch_run(l, &err), &err);
			good(jit_launch_set_integer(l, 0, 700, &err), &err);
			const int status = jit_launch_run(l, &err);
			assert_int_equal(status, check ? JIT_ERROR_ARGUMENT : JIT_OK);
			/* the least instance's: x[300 + 700] */
			if (check && (!strstr(err.message, "kernel:6:") || !strstr(err.message, "1000")))
				fail_msg("%s: %s", devices[d], err.message);
			for (int i = 0; !check && i < 1000; i++)
				assert_int_equal(y[i], i < 300 ? i + 700 : 0);
			good(jit_launch_set_integer(l, 0, 0, &err), &err); /* a fault does not stay */
			good(jit_launch_run(l, &err), &err);
			jit_launch_close(l);
			jit_kernel_close(k);
			jit_compute_close(c);
		}
}

/* ---- tuning */

static const char *tuned(const jit_kernel *k)
{
	jit_kernel_report r = JIT_KERNEL_REPORT();

	assert_int_equal(jit_kernel_get_report(k, &r, NULL), JIT_OK);
	return r.tuned;
}

static void test_tune(void **state)
{
	static int32_t x[1000], y[1000], was[1000];
	char dir[] = "/tmp/t_kernel_source.XXXXXX", command[64];

	assert_non_null(mkdtemp(dir));
	for (int d = 0; d < DEVICES; d++) {
		jit_error err = { 0 };
		char kept[64];
		jit_compute *c = open_compute(devices[d], dir, 2);
		jit_kernel *k = open_kernel(c, "scale", "n=1000", 0), *again;
		jit_launch *l = jit_launch_open(k, &err);
		assert_int_equal(jit_launch_tune(l, &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, "x of scale was not given"));
		memset(y, 1, sizeof y);
		memcpy(was, y, sizeof y);
		good(jit_launch_set_memory(l, 0, x, sizeof x, &err), &err);
		good(jit_launch_set_memory(l, 1, y, sizeof y, &err), &err);
		good(jit_launch_tune(l, &err), &err);
		assert_memory_equal(y, was, sizeof y); /* copies were used */
		jit_launch_close(l);
		again = open_kernel(c, "scale", "n=1000", 0);
		snprintf(kept, sizeof kept, "%s", tuned(again));
		assert_true(!kept[0] || strstr(kept, "wide="));
		run_scale(again, 1000, 3);
		jit_kernel_close(again);
		jit_kernel_close(k);
		jit_compute_close(c);
		/* another process: what was found is in the cache, where the device has one */
		c = open_compute(devices[d], dir, 1);
		k = open_kernel(c, "scale", "n=1000", 0);
		if (strcmp(devices[d], "ref") != 0)
			assert_string_equal(tuned(k), kept);
		jit_kernel_close(k);
		/* all values given: nothing is tuned */
		k = open_kernel(c, "scale", "n=1000 wide=256 copies=1", 0);
		assert_string_equal(tuned(k), "");
		jit_kernel_close(k);
		jit_compute_close(c);
	}
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* ---- threads that open, launch and close the same kernels */

static void *open_and_close(void *user)
{
	jit_compute *c = user;
	char constants[32];

	for (int i = 0; i < 30; i++) {
		snprintf(constants, sizeof constants, "n=%d", 10 + i % 3);
		jit_kernel *k = open_kernel(c, "scale", constants, 0), *other = open_kernel(c, "scale", constants, 0);
		jit_kernel_close(i % 2 ? k : other);
		run_scale(i % 2 ? other : k, 10 + i % 3, 3);
		jit_kernel_close(i % 2 ? other : k);
	}
	return NULL;
}

static void test_threads(void **state)
{
	for (int d = 0; d < DEVICES; d++) {
		pthread_t thread[4];
		jit_compute *c = open_compute(devices[d], "", 2);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, c), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		jit_compute_close(c);
	}
}

/* ---- which device */

static void test_predictions(void **state)
{
	const jit_work work = JIT_WORK(.bytes = UINT64_C(1) << 32, .operations = 1000, .copied = 64, .memory = 64);
	jit_prediction best = JIT_PREDICTION(), p = JIT_PREDICTION();
	jit_error err = { 0 };
	bool seen = false;

	good(jit_device_choose(&work, &best, &err), &err);
	for (size_t i = 0; i < jit_device_count(); i++) {
		jit_device_info info = JIT_DEVICE_INFO();
		good(jit_device_get_info(i, &info, &err), &err);
		good(jit_device_predict(i, &work, &p, &err), &err);
		assert_string_equal(p.device, info.name);
		if (p.why_not[0]) {
			assert_true(p.seconds == 0 && p.bandwidth == 0);
			continue;
		}
		assert_true(p.seconds >= best.seconds);
		assert_true(p.seconds >= p.memory_seconds + p.start_seconds);
		/* kernels reach a part of each peak */
		jit_work more = work;
		more.bytes *= 2, more.operations *= 3, more.copied *= 5;
		jit_prediction q = JIT_PREDICTION();
		good(jit_device_predict(i, &more, &q, &err), &err);
		assert_true(q.bandwidth == p.bandwidth && q.arithmetic == p.arithmetic && q.link == p.link);
		assert_true(p.memory_seconds >= (double)work.bytes / p.bandwidth);
		assert_true(p.arithmetic_seconds >= (double)work.operations / p.arithmetic);
		assert_true(fabs(q.memory_seconds / p.memory_seconds - 2) < 1e-9);
		assert_true(fabs(q.arithmetic_seconds / p.arithmetic_seconds - 3) < 1e-9);
		assert_true(p.link > 0 ? fabs(q.copy_seconds / p.copy_seconds - 5) < 1e-9 : p.copy_seconds == 0);
		assert_true(strncmp(p.device, "sim:", 4) != 0 && strcmp(p.device, "ref") != 0);
		seen |= strcmp(p.device, best.device) == 0;
	}
	assert_true(seen);
	assert_int_equal(jit_device_predict(jit_device_count(), &work, &p, &err), JIT_ERROR_ARGUMENT);
}

/* ---- what a jit_compute keeps and tells */

static jit_compute_info info_of(const jit_compute *c)
{
	jit_compute_info i = JIT_COMPUTE_INFO();

	assert_int_equal(jit_compute_get_info(c, &i, NULL), JIT_OK);
	return i;
}

/* Opens the kernel once and runs it; its report. */
static jit_kernel_report run_once(jit_compute *c)
{
	jit_kernel_report r = JIT_KERNEL_REPORT();
	jit_kernel *k = open_kernel(c, "scale", "n=100", 0);

	run_scale(k, 100, 3);
	assert_int_equal(jit_kernel_get_report(k, &r, NULL), JIT_OK);
	assert_true(r.launches == 1 && r.last_ns > 0);
	assert_true(r.code_bytes > 0 && r.code_ns > 0);
	jit_kernel_close(k);
	return r;
}

static void test_kept_code(void **state)
{
	char dir[] = "/tmp/t_kernel_source.XXXXXX", small[] = "/tmp/t_kernel_source.XXXXXX", command[128];

	assert_non_null(mkdtemp(dir));
	assert_non_null(mkdtemp(small));
	for (int again = 0; again < 2; again++) {
		jit_compute *c = open_compute("cpu", dir, 2);
		assert_int_equal(run_once(c).code, again ? JIT_CODE_DISK : JIT_CODE_GENERATED);
		assert_int_equal(run_once(c).code, JIT_CODE_MEMORY);
		const jit_compute_info i = info_of(c);
		assert_true(i.in_place && i.threads == 2);
		assert_true(i.generated == (again ? 0 : 1) && i.from_disk == (again ? 1 : 0) && i.from_pack == 0);
		assert_true((i.generated_ns > 0) == !again && (i.from_disk_ns > 0) == (again != 0));
		assert_true(i.code_bytes > 0);
		jit_compute_close(c);
	}
	/* where the directory may hold one byte, what another process left goes when something is stored */
	for (int i = 0; i < 3; i++) {
		jit_error err = { 0 };
		jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = small, .cache_limit = 1), &err);
		good(!c, &err);
		if (i == 1)
			jit_kernel_close(open_kernel(c, "scale", "n=101", 0));
		else
			assert_int_equal(run_once(c).code, JIT_CODE_GENERATED);
		jit_compute_close(c);
	}
	snprintf(command, sizeof command, "rm -r %s %s", dir, small);
	assert_int_equal(system(command), 0);
}

static void test_cards_copy(void **state)
{
	jit_compute *c = open_compute("sim:gfx1100", "", 1);

	assert_string_equal(info_of(c).device, "sim:gfx1100");
	assert_string_equal(info_of(c).target, "gfx1100");
	jit_compute_close(c);
}

/* Whether a file has the text. */
static bool has_text(const char *path, const char *wanted)
{
	size_t n;
	uint8_t *p = file_bytes(path, &n);
	const bool found = memmem(p, n, wanted, strlen(wanted)) != NULL;

	free(p);
	return found;
}

static void test_dumps(void **state)
{
	char dir[] = "/tmp/t_kernel_source.XXXXXX", ir[64], code[64], jit[64], perf[64], command[160];
	jit_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	snprintf(ir, sizeof ir, "%s/ir", dir);
	snprintf(code, sizeof code, "%s/asm", dir);
	snprintf(jit, sizeof jit, "%s/jit-%ld.dump", dir, (long)getpid());
	snprintf(perf, sizeof perf, "/tmp/perf-%ld.map", (long)getpid());
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .dump_ir = ir, .dump_asm = code,
	                                                       .jitdump = dir, .perf_map = 1, .gdb = 1),
	                                  &err);
	good(!c, &err);
	run_once(c);
	good(jit_compute_written(c, &err), &err);
	jit_compute_close(c);
	assert_true(has_text(ir, "loop") && has_text(code, ".byte"));
	assert_true(has_text(jit, "scale.user.") && has_text(perf, "scale.user."));
	/* a file that cannot be written whole */
	c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .dump_ir = "/dev/full"), &err);
	good(!c, &err);
	run_once(c);
	assert_int_equal(jit_compute_written(c, &err), JIT_ERROR_IO);
	assert_non_null(strstr(err.message, "IR"));
	jit_compute_close(c);
	snprintf(command, sizeof command, "rm -r %s %s", dir, perf);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_check),     cmocka_unit_test(test_tune),
		cmocka_unit_test(test_threads),   cmocka_unit_test(test_predictions),
		cmocka_unit_test(test_kept_code), cmocka_unit_test(test_cards_copy),
		cmocka_unit_test(test_dumps),     cmocka_unit_test(kernel_trace_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
