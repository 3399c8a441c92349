/* programs/jitk/jitk_bench.c - how long a kernel takes, beside what the same device gives to a copy and to fused
 * multiplications, measured in the same run by kernels of the same language. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitk/jitk.h"

enum { RUNS_MIN = 5, RUNS_MAX = 100000, COPIED = 1 << 24, CHAINS = 1 << 17, ITERATIONS = 512, LIMIT_RUNS = 7 };
#define SECONDS_OF_RUNS 0.5

static const char limits[] =
	"const i64 n;\n"
	"const i64 turns = 512;\n"
	"kernel copy(in f32 x[n], out f32 y[n]) over (i in n) { y[i] = x[i]; }\n"
	"kernel multiply(f32 a, f32 b, out f32 y[n]) over (i in n) {\n"
	"	f32 p = f32(i32(i)); f32 q = a; f32 r = b; f32 s = 0.5; f32 t = 0.25; f32 u = 0.125; f32 v = 1.5; f32 "
	"w = 2.5;\n"
	"	for (k in 0..turns) {\n"
	"		p = fma(p, a, b); q = fma(q, a, b); r = fma(r, a, b); s = fma(s, a, b);\n"
	"		t = fma(t, a, b); u = fma(u, a, b); v = fma(v, a, b); w = fma(w, a, b);\n"
	"	}\n"
	"	y[i] = p + q + r + s + t + u + v + w;\n"
	"}\n";

/* ---- a kernel on buffers of the device */

struct timed {
	jit_kernel *kernel;
	jit_launch *launch;
	jit_buffer *buffer[JK_MAX_PARAMETERS];
	size_t n;
};

static void timed_close(struct timed *t)
{
	jit_launch_close(t->launch);
	for (size_t i = 0; i < t->n; i++)
		jit_buffer_close(t->buffer[i]);
	jit_kernel_close(t->kernel);
	*t = (struct timed){ .n = 0 };
}

/* Takes the kernel, NULL being an error already. */
static bool timed_open(struct timed *t, jit_compute *c, jit_kernel *k, jit_error *err)
{
	*t = (struct timed){ .kernel = k, .n = jit_kernel_parameters(k) };
	bool ok = k && (t->launch = jit_launch_open(k, err));
	for (size_t i = 0; ok && i < t->n; i++) {
		jit_parameter p = JIT_PARAMETER();
		jit_kernel_parameter(k, i, &p, NULL);
		if (p.access == JIT_SCALAR) /* until its value is given */
			ok = (p.type == JIT_TYPE_F32 ? jit_launch_set_real(t->launch, i, &(double){ 0.5 }, err)
			                             : jit_launch_set_bits(t->launch, i, 0, err)) == JIT_OK;
		else
			ok = (t->buffer[i] = jit_buffer_open(c, p.bytes, err)) &&
			     jit_launch_set_buffer(t->launch, i, t->buffer[i], 0, err) == JIT_OK;
	}
	return ok;
}

static uint64_t once(struct timed *t, jit_error *err)
{
	jit_kernel_report r = JIT_KERNEL_REPORT();

	if (jit_launch_run(t->launch, err) != JIT_OK)
		return 0;
	jit_kernel_get_report(t->kernel, &r, NULL);
	return r.last_ns ? r.last_ns : 1;
}

/* The least time of some runs; 0: err. */
static uint64_t min(struct timed *t, jit_error *err)
{
	uint64_t best = UINT64_MAX, ns = 1;

	for (int i = 0; i < LIMIT_RUNS && ns; i++)
		if ((ns = once(t, err)))
			best = ns < best ? ns : best;
	return ns ? best : 0;
}

static uint64_t limit(jit_compute *c, const char *kernel, const char *constants, jit_error *err)
{
	struct timed t;
	jit_kernel *k = jit_kernel_open(
		c, &JIT_KERNEL_OPTIONS(.source = limits, .path = "limits", .kernel = kernel, .constants = constants),
		err);
	const uint64_t ns = timed_open(&t, c, k, err) ? min(&t, err) : 0;

	timed_close(&t);
	return ns;
}

/* ---- the report */

static int in_order(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct times {
	uint64_t *ns;
	size_t n, runs;
};

static bool run_all(struct timed *t, struct times *x, jit_error *err)
{
	uint64_t all = 0;

	x->runs = jitk.times ? (size_t)jitk.times : RUNS_MAX;
	if (!(x->ns = calloc(x->runs, sizeof *x->ns))) {
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for the times of the runs" };
		return false;
	}
	if (!once(t, err)) /* memory that is touched for the first time takes longer */
		return false;
	while (x->n < x->runs && (jitk.times || x->n < RUNS_MIN || (double)all * 1e-9 < SECONDS_OF_RUNS)) {
		if (!(x->ns[x->n] = once(t, err)))
			return false;
		all += x->ns[x->n++];
	}
	qsort(x->ns, x->n, sizeof *x->ns, in_order);
	return true;
}

static void share(const char *what, double amount, const char *unit, double ns, double limit_rate)
{
	const double rate = amount / ns;

	printf("%s: %.3f G%s a second, %.1f %% of the %.3f measured here\n", what, rate, unit,
	       limit_rate > 0 ? 100 * rate / limit_rate : 0, limit_rate);
}

static bool print(const struct timed *t, const struct times *x, jit_compute *c, jit_error *err)
{
	char constants[64];
	jit_kernel_report r = JIT_KERNEL_REPORT();
	jit_compute_info info = JIT_COMPUTE_INFO();
	const double ns = (double)x->ns[x->n / 2];

	jit_kernel_get_report(t->kernel, &r, NULL);
	jit_compute_get_info(c, &info, NULL);
	snprintf(constants, sizeof constants, "n=%d", COPIED);
	const uint64_t copy = limit(c, "copy", constants, err);
	snprintf(constants, sizeof constants, "n=%d turns=%d", CHAINS, ITERATIONS);
	const uint64_t multiply = copy ? limit(c, "multiply", constants, err) : 0;
	if (!multiply)
		return false;
	printf("%s%s%s on %s (%s), %d thread%s: median %.4f ms, least %.4f ms of %zu runs\n", r.name,
	       r.tuned[0] ? " with " : "", r.tuned, info.device, info.target, info.threads,
	       info.threads == 1 ? "" : "s", ns * 1e-6, (double)x->ns[0] * 1e-6, x->n);
	share("memory", (double)r.bytes_read + (double)r.bytes_written, "B", ns, 8.0 * COPIED / (double)copy);
	share("arithmetic", (double)r.operations, "op", ns, 2.0 * 8 * ITERATIONS * (double)CHAINS / (double)multiply);
	return true;
}

static bool give(const struct timed *t, const struct jitk_arrays *a, jit_error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < t->n; i++)
		ok = t->buffer[i]
		             ? jit_buffer_write(t->buffer[i], 0, a->list[i].data, a->list[i].is.bytes, err) == JIT_OK
		             : jitk_arrays_give_scalar(a, i, t->launch, err);
	return ok;
}

/* The same kernel with the constants that tuning found. */
static bool open_tuned(struct timed *t, jit_compute *c, const struct jitk_arrays *a, jit_error *err)
{
	timed_close(t);
	return timed_open(t, c, jitk_kernel_open(c, err), err) && give(t, a, err);
}

int jitk_bench(void)
{
	jit_error err = { 0 };
	struct error e = { 0 };
	struct jitk_arrays a = { 0 };
	struct timed t = { .n = 0 };
	struct times x = { 0 };
	jit_compute *c = jitk_compute_open(NULL, NULL, (int)jitk.threads, &err);
	bool ok = c && timed_open(&t, c, jitk_kernel_open(c, &err), &err);
	int status;

	if (ok && !jitk_arrays_open(&a, t.kernel, &e)) {
		status = jitk_fail(e.text);
	} else {
		ok = ok && give(&t, &a, &err);
		if (ok && jitk.tune)
			ok = jit_launch_tune(t.launch, &err) == JIT_OK && open_tuned(&t, c, &a, &err);
		ok = ok && run_all(&t, &x, &err) && print(&t, &x, c, &err) && jit_compute_written(c, &err) == JIT_OK;
		status = ok ? JITK_DONE : jitk_fail_error(&err);
	}
	free(x.ns);
	jitk_arrays_close(&a);
	timed_close(&t);
	jit_compute_close(c);
	return status;
}
