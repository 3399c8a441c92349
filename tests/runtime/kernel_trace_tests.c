/* tests/runtime/kernel_trace_tests.c - the timeline of a jit_compute: a span for each launch, and spans of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_kernel.h"
#include "runtime/kernels/launch_list.h"
#include "tests/runtime/kernel_trace_tests.h"

enum { N = 100 };

static void good(int status, const jit_error *err)
{
	if (status)
		fail_msg("%s", err->message);
}

struct timeline {
	size_t launches, shares;
	double launched, shared; /* how long, in microseconds */
};

/* What a file of Chrome's trace format says of the kernel `scale`; nothing else may be in it. */
static struct timeline read_timeline(const char *path)
{
	struct timeline t = { 0 };
	json_t *file = json_load_file(path, 0, NULL), *event;
	size_t i;
	int launches = -1;

	assert_non_null(file);
	json_array_foreach(json_object_get(file, "traceEvents"), i, event)
	{
		const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
		const int track = (int)json_integer_value(json_object_get(event, "tid"));
		const double took = json_number_value(json_object_get(event, "dur"));
		if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) {
			launches = name && strcmp(name, "launches") == 0 ? track : launches;
			continue;
		}
		assert_string_equal(json_string_value(json_object_get(event, "name")), "scale");
		assert_true(took >= 0 && json_number_value(json_object_get(event, "ts")) >= 0);
		*(track == launches ? &t.launches : &t.shares) += 1;
		*(track == launches ? &t.launched : &t.shared) += took;
	}
	json_decref(file);
	return t;
}

/* A launch, or a list of two. */
static void run(jit_compute *c, bool as_list)
{
	static int32_t x[N], y[N];
	struct error e = { 0 };
	jit_error err = { 0 };
	jit_kernel *k = jit_kernel_open(
		c,
		&JIT_KERNEL_OPTIONS(.source = "const i64 n = 100; kernel scale(in i32 x[n], out i32 y[n]) over (i in "
	                                      "n) { y[i] = x[i] * 3; }"),
		&err);
	jit_launch *l = k ? jit_launch_open(k, &err) : NULL;

	good(!l, &err);
	for (int i = 0; i < N; i++)
		x[i] = i;
	good(jit_launch_set_memory(l, 0, x, sizeof x, &err), &err);
	good(jit_launch_set_memory(l, 1, y, sizeof y, &err), &err);
	if (as_list) {
		struct launch_list *list = launch_list_open((jit_launch *const[]){ l, l }, 2, 1, &e);
		assert_true(list && launch_list_run(list, 1, &e));
		launch_list_close(list);
	} else {
		good(jit_launch_run(l, &err), &err);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(y[i], 3 * i);
	jit_launch_close(l);
	jit_kernel_close(k);
}

void kernel_trace_test(void **state)
{
	static const char *const devices[] = { "cpu", "ref", "sim:gfx1100", "sim:sm90" };
	char dir[] = "/tmp/t_kernel_trace.XXXXXX", path[64], command[64];
	jit_error err = { 0 };

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/trace", dir);
	for (int d = 0; d < 4; d++)
		for (int written = 0; written < 2; written++) {
			jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = devices[d], .cache_dir = "",
			                                                       .threads = 2, .trace = path),
			                                  &err);
			good(!c, &err);
			const bool lists = d < 2; /* a list is of devices that work in the host's memory */
			for (int i = 0; i < 3; i++)
				run(c, false);
			if (lists)
				run(c, true);
			if (written) { /* what runs later is not written */
				good(jit_compute_written(c, &err), &err);
				run(c, false);
				good(jit_compute_written(c, &err), &err);
			}
			jit_compute_close(c);
			const struct timeline t = read_timeline(path);
			assert_int_equal(t.launches, 3);
			assert_true(t.shares >= 3 + (lists ? 2u : 0u));
			assert_true(t.launched > 0 && (lists || t.shared <= t.launched));
		}
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .trace = "/dev/full"), &err);
	good(!c, &err);
	run(c, false);
	assert_int_equal(jit_compute_written(c, &err), JIT_ERROR_IO);
	assert_non_null(strstr(err.message, "timeline"));
	jit_compute_close(c);
	assert_null(jit_compute_open(&JIT_COMPUTE_OPTIONS(.trace = "/no/such/file"), &err));
	assert_non_null(strstr(err.message, "/no/such/file: cannot be written"));
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}
