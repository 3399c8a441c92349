/* bench/kernels/jitrun_worker.c - jitrun as a worker of compare.py: the examples of docs/examples/kernels.
 *   bench/kernel_worker FOLDER [DEVICE [ISA [THREADS [CACHE]]]]
 * FOLDER has the .jk files. On devices that do not work in the host's memory arrays are copied before the first run,
 * and stay there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/kernels/worker.h"
#include "include/jitrun_kernel.h"

enum { MERGES = 64, MERGE_LOGS = 5 };

static struct {
	const char *folder;
	jit_compute *compute;
	jit_compute_info info;
	jit_kernel *kernel;
	jit_launch *launch;
	jit_buffer *buffer[WORKER_ARRAYS];
	struct {
		jit_kernel *kernel;
		jit_launch *launch;
		jit_buffer *total;
	} before; /* a launch before that one: of prefix_sum on a card */
	uint64_t open_ns;
	size_t sorted; /* the array that a sort ended in */
	struct merge { /* of a sort: the steps from distance far * 2^(logs - 1) down to far; far 0: its beginning */
		uint64_t far;
		unsigned logs;
		jit_kernel *kernel;
		jit_launch *launch;
	} merge[MERGES];
	size_t merges;
} it;

static bool failed(const jit_error *err)
{
	fprintf(stderr, "%s\n", err->message);
	return false;
}

static void close_case(struct worker_case *c)
{
	jit_launch_close(it.launch);
	it.launch = NULL;
	jit_launch_close(it.before.launch);
	it.before.launch = NULL;
	jit_buffer_close(it.before.total);
	it.before.total = NULL;
	for (int i = 0; i < WORKER_ARRAYS; i++) {
		jit_buffer_close(it.buffer[i]);
		it.buffer[i] = NULL;
	}
	jit_kernel_close(it.kernel);
	it.kernel = NULL;
	jit_kernel_close(it.before.kernel);
	it.before.kernel = NULL;
	for (size_t k = 0; k < it.merges; k++) {
		jit_launch_close(it.merge[k].launch);
		jit_kernel_close(it.merge[k].kernel);
	}
	it.merges = 0;
	(void)c;
}

static bool give(struct worker_case *c, size_t parameter, size_t from, jit_error *err)
{
	const struct worker_array *a = &c->array[from];

	if (worker_is_scalar(a))
		return jit_launch_set_real(it.launch, parameter, &a->value, err) == JIT_OK;
	if (it.info.in_place)
		return jit_launch_set_memory(it.launch, parameter, a->data, a->bytes, err) == JIT_OK;
	if (!it.buffer[from])
		it.buffer[from] = jit_buffer_open(it.compute, a->bytes, err);
	return it.buffer[from] && jit_launch_set_buffer(it.launch, parameter, it.buffer[from], 0, err) == JIT_OK;
}

static bool is_sort(const struct worker_case *c) { return strcmp(c->name, "bitonic_sort") == 0; }

/* On a card a scan is two launches: the totals of parts, then each part. */
static bool is_scan(const struct worker_case *c) { return strcmp(c->name, "prefix_sum") == 0; }
static bool is_scan_in_parts(const struct worker_case *c) { return is_scan(c) && !it.info.in_place; }

static jit_kernel *open_kernel(const struct worker_case *c, const char *name, jit_error *err)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s.jk", it.folder, c->name);
	return jit_kernel_open(it.compute, &JIT_KERNEL_OPTIONS(.path = path, .constants = c->constants, .kernel = name),
	                       err);
}

static bool give_parts(struct worker_case *c, jit_error *err)
{
	jit_parameter total = JIT_PARAMETER();

	it.before.kernel = open_kernel(c, "totals", err);
	it.before.launch = it.before.kernel ? jit_launch_open(it.before.kernel, err) : NULL;
	if (!it.before.launch || jit_kernel_parameter(it.before.kernel, 1, &total, err) != JIT_OK ||
	    !(it.before.total = jit_buffer_open(it.compute, total.bytes, err)))
		return false;
	return give(c, 0, 0, err) && give(c, 2, 1, err) &&
	       jit_launch_set_buffer(it.launch, 1, it.before.total, 0, err) == JIT_OK &&
	       jit_launch_set_buffer(it.before.launch, 0, it.buffer[0], 0, err) == JIT_OK &&
	       jit_launch_set_buffer(it.before.launch, 1, it.before.total, 0, err) == JIT_OK;
}

static const char *open_case(struct worker_case *c)
{
	const char *name = is_sort(c) ? "step" : is_scan_in_parts(c) ? "parts" : is_scan(c) ? "prefix_sum" : NULL;
	jit_error err = { 0 };

	const uint64_t begin = worker_now(CLOCK_MONOTONIC);
	it.kernel = open_kernel(c, name, &err);
	it.open_ns = worker_now(CLOCK_MONOTONIC) - begin;
	it.launch = it.kernel ? jit_launch_open(it.kernel, &err) : NULL;
	bool ok = it.launch != NULL;
	if (ok && is_scan_in_parts(c)) {
		ok = give_parts(c, &err);
	} else {
		ok = ok && jit_kernel_parameters(it.kernel) == (size_t)c->arrays;
		for (size_t i = 0; ok && i < (size_t)c->arrays; i++)
			ok = give(c, i, i, &err);
	}
	if (!ok)
		failed(&err);
	return ok ? NULL : "jitrun refused it";
}

/* The array `from` becomes what a launch of a sort reads, and the other one what it writes. */
static bool give_sorted(struct worker_case *c, jit_launch *l, size_t parameter, size_t from, jit_error *err)
{
	bool ok = true;

	for (size_t k = 0; ok && k < 2; k++) {
		const size_t at = k ? from ^ 3 : from;
		ok = it.buffer[at]
		             ? jit_launch_set_buffer(l, parameter + k, it.buffer[at], 0, err) == JIT_OK
		             : jit_launch_set_memory(l, parameter + k, c->array[at].data, c->array[at].bytes, err) ==
		                       JIT_OK;
	}
	return ok;
}

static struct merge *merge_of(const struct worker_case *c, uint64_t far, unsigned logs, jit_error *err)
{
	char path[512], constants[320];
	struct merge *m = it.merge;

	for (; m < it.merge + it.merges; m++)
		if (m->far == far && m->logs == logs)
			return m;
	snprintf(path, sizeof path, "%s/%s.jk", it.folder, c->name);
	snprintf(constants, sizeof constants, "%s,far=%llu,logs=%u", c->constants, (unsigned long long)far, logs);
	*m = (struct merge){ far, logs, NULL, NULL };
	m->kernel = it.merges < MERGES
	                    ? jit_kernel_open(it.compute,
	                                      &JIT_KERNEL_OPTIONS(.path = path, .constants = constants,
	                                                          .kernel = far > 1 ? "merge"
	                                                                    : far   ? "near"
	                                                                            : "begin"),
	                                      err)
	                    : NULL;
	if (!m->kernel || !(m->launch = jit_launch_open(m->kernel, err)))
		return NULL;
	it.merges++;
	return m;
}

static bool launch(struct worker_case *c, uint64_t far, unsigned logs, size_t *from, jit_error *err)
{
	struct merge *m = merge_of(c, far, logs, err);
	const bool ok = m && give_sorted(c, m->launch, 0, *from, err) && jit_launch_run(m->launch, err) == JIT_OK;

	*from ^= 3;
	return ok;
}

/* Five steps in a launch, those of the distances below 32 in the last one. */
static bool merge(struct worker_case *c, uint64_t distance, size_t *from, jit_error *err)
{
	bool ok = true;

	for (int left = 63 - __builtin_clzll(distance); ok && left >= 0;) {
		const unsigned low = (unsigned)left / MERGE_LOGS * MERGE_LOGS;
		ok = launch(c, UINT64_C(1) << low, (unsigned)left - low + 1, from, err);
		left = (int)low - 1;
	}
	return ok;
}

/* Runs of 32, then for d = 32, 64 ...: the flip 2d - 1, then the distances d / 2 ... 1, from one array to the other. */
static bool sort(struct worker_case *c, jit_error *err)
{
	const uint64_t n = (uint64_t)worker_constant(c, "n");
	size_t from = 1;
	bool ok = launch(c, 0, MERGE_LOGS, &from, err);

	for (uint64_t d = UINT64_C(1) << MERGE_LOGS; ok && d < n; d *= 2) {
		ok = jit_launch_set_bits(it.launch, 0, 2 * d - 1, err) == JIT_OK &&
		     give_sorted(c, it.launch, 1, from, err) && jit_launch_run(it.launch, err) == JIT_OK;
		from ^= 3;
		ok = ok && merge(c, d / 2, &from, err);
	}
	it.sorted = from;
	return ok;
}

static bool run_case(struct worker_case *c)
{
	jit_error err = { 0 };

	if (it.before.launch && jit_launch_run(it.before.launch, &err) != JIT_OK)
		return failed(&err);
	return (is_sort(c) ? sort(c, &err) : jit_launch_run(it.launch, &err) == JIT_OK) || failed(&err);
}

static bool move(struct worker_case *c, bool to_device)
{
	jit_error err = { 0 };
	bool ok = true;

	for (int i = 0; ok && i < c->arrays; i++) {
		struct worker_array *a = &c->array[i];
		const int from = !to_device && is_sort(c) ? (int)it.sorted : i;
		if (!to_device && !worker_writes(a))
			continue;
		if (!it.buffer[from] && from != i)
			memcpy(a->data, c->array[from].data, a->bytes);
		else if (it.buffer[from])
			ok = (to_device ? jit_buffer_write(it.buffer[i], 0, a->data, a->bytes, &err)
			                : jit_buffer_read(it.buffer[from], 0, a->data, a->bytes, &err)) == JIT_OK;
	}
	return ok || failed(&err);
}

/* How the code came, what that and the whole of opening took, its size, and what a launch moves and computes. */
static const char *facts(struct worker_case *c)
{
	static char text[256];
	jit_kernel_report r = JIT_KERNEL_REPORT();

	jit_kernel_get_report(it.kernel, &r, NULL);
	snprintf(text, sizeof text,
	         "code=%d code_ns=%llu open_ns=%llu code_bytes=%llu read=%llu written=%llu operations=%llu", r.code,
	         (unsigned long long)r.code_ns, (unsigned long long)it.open_ns, (unsigned long long)r.code_bytes,
	         (unsigned long long)r.bytes_read, (unsigned long long)r.bytes_written,
	         (unsigned long long)r.operations);
	(void)c;
	return text;
}

int main(int argc, char **argv)
{
	const struct worker w = { open_case, run_case, move, close_case, facts };
	jit_error err = { 0 };

	if (argc < 2) {
		fputs("usage: kernel_worker FOLDER [DEVICE [ISA [THREADS [CACHE]]]]\n", stderr);
		return 2;
	}
	it.folder = argv[1];
	it.info = JIT_COMPUTE_INFO();
	it.compute = jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = argc > 2 ? argv[2] : "cpu",
	                             .isa = argc > 3 && argv[3][0] != '-' ? argv[3] : NULL,
	                             .threads = argc > 4 ? atoi(argv[4]) : 1, .cache_dir = argc > 5 ? argv[5] : ""),
		&err);
	if (!it.compute || jit_compute_get_info(it.compute, &it.info, &err) != JIT_OK) {
		failed(&err);
		return 1;
	}
	const int status = worker_main(&w);
	jit_compute_close(it.compute);
	return status;
}
