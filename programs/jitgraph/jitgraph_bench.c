/* programs/jitgraph/jitgraph_bench.c - how long a graph takes: the first run, with its code, and those after it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "programs/common/output.h"
#include "programs/jitgraph/jitgraph.h"
#include "runtime/host/system.h"

enum { RUNS_MIN = 5, RUNS_MAX = 100000 };
#define SECONDS_OF_RUNS 0.5

static int in_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Seconds of each run, in ascending order. */
struct times {
	double *run, first;
	size_t n;
};

static bool run_once(struct jitgraph_run *r, double *seconds, jit_error *err)
{
	const double begin = system_seconds();
	const bool ok = jit_executable_run(r->executable, (const void *const *)r->in.data, r->in.n, r->out.data,
	                                   r->out.n, err) == JIT_OK;

	*seconds = system_seconds() - begin;
	return ok;
}

static bool run_all(struct jitgraph_run *r, struct times *t, jit_error *err)
{
	const size_t max = jitgraph.times ? (size_t)jitgraph.times : RUNS_MAX;
	double all = 0;

	if (!(t->run = calloc(max, sizeof *t->run))) {
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for the times of the runs" };
		return false;
	}
	if (!run_once(r, &t->first, err))
		return false;
	while (t->n < max && (jitgraph.times || t->n < RUNS_MIN || all < SECONDS_OF_RUNS)) {
		if (!run_once(r, &t->run[t->n], err))
			return false;
		all += t->run[t->n++];
	}
	qsort(t->run, t->n, sizeof *t->run, in_order);
	return true;
}

static void print(const struct jitgraph_run *r, const struct times *t)
{
	jit_executable_report x = JIT_EXECUTABLE_REPORT();
	jit_compute_info info = JIT_COMPUTE_INFO();

	jit_executable_get_report(r->executable, &x, NULL);
	jit_compute_get_info(r->compute, &info, NULL);
	printf("%s on %s (%s), %d thread%s: median %.4f ms, least %.4f ms of %zu runs; first %.4f ms\n", jitgraph.file,
	       info.device, info.target, info.threads, info.threads == 1 ? "" : "s", t->run[t->n / 2] * 1e3,
	       t->run[0] * 1e3, t->n, t->first * 1e3);
	printf("%u kernels, of which %" PRIu64 " were generated, opened in %.3f ms; %u groups on the host\n", x.kernels,
	       x.generated, (double)x.open_ns * 1e-6, x.on_host);
	printf("%" PRIu64 " bytes for values, %" PRIu64 " without shared memory; %" PRIu64 " bytes of constants\n",
	       x.bytes, x.all_bytes, x.constant_bytes);
}

static json_int_t ns(double seconds) { return (json_int_t)(seconds * 1e9); }

static void print_json(const struct jitgraph_run *r, const struct times *t)
{
	jit_executable_report x = JIT_EXECUTABLE_REPORT();
	jit_compute_info info = JIT_COMPUTE_INFO();

	jit_executable_get_report(r->executable, &x, NULL);
	jit_compute_get_info(r->compute, &info, NULL);
	json_t *o = json_pack("{s:o, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I}",
	                      "graph", output_string(jitgraph.file), "device", info.device, "target", info.target,
	                      "threads", info.threads, "runs", (json_int_t)t->n, "first_ns", ns(t->first), "median_ns",
	                      ns(t->run[t->n / 2]), "least_ns", ns(t->run[0]), "greatest_ns", ns(t->run[t->n - 1]),
	                      "kernels", (int)x.kernels, "on_host", (int)x.on_host, "generated",
	                      (json_int_t)x.generated, "open_ns", (json_int_t)x.open_ns, "bytes", (json_int_t)x.bytes,
	                      "all_bytes", (json_int_t)x.all_bytes, "constant_bytes", (json_int_t)x.constant_bytes);
	json_dumpf(o, stdout, JSON_INDENT(2) | output_json_flags(stdout));
	putchar('\n');
	json_decref(o);
}

int jitgraph_bench(void)
{
	struct jitgraph_run r;
	struct times t = { .n = 0 };
	jit_error err = { 0 };
	int status = JITGRAPH_DONE;

	if (jitgraph.each.n)
		return jitgraph_each();
	if (jitgraph_run_open(&r, &status)) {
		if (!run_all(&r, &t, &err))
			status = jitgraph_fail_error(&err);
		else if (jitgraph.json)
			print_json(&r, &t);
		else
			print(&r, &t);
	}
	free(t.run);
	jitgraph_run_close(&r);
	return status;
}
