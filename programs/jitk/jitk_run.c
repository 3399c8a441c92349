/* programs/jitk/jitk_run.c - a run of a kernel, and runs of it on every device, compared bit for bit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "programs/jitk/jitk.h"

/* ---- run */

static void print_report(const jit_kernel *k)
{
	static const char *const code[] = { "generated", "from memory", "from the cache", "from a pack" };
	jit_kernel_report r = JIT_KERNEL_REPORT();

	jit_kernel_get_report(k, &r, NULL);
	fprintf(stderr, "jitk: %s: %s", r.name,
	        r.runs == JIT_RUNS_INTERPRETED ? "interpreted, as --device ref does" : "native");
	if (r.runs == JIT_RUNS_NATIVE)
		fprintf(stderr, ", %" PRIu64 " bytes of code %s in %.3f ms", r.code_bytes, code[r.code],
		        (double)r.code_ns * 1e-6);
	fprintf(stderr, "%s%s; ran in %.3f ms; %s\n", r.tuned[0] ? "; tuned: " : "", r.tuned, (double)r.last_ns * 1e-6,
	        r.key);
}

/* With --tune: the launch becomes one of the kernel with the fastest constants. */
static bool tuned(jit_compute *c, jit_kernel **k, jit_launch **l, const struct jitk_arrays *a, jit_error *err)
{
	if (!jitk.tune)
		return true;
	if (jit_launch_tune(*l, err) != JIT_OK)
		return false;
	jit_launch_close(*l);
	jit_kernel_close(*k);
	*l = NULL;
	*k = jitk_kernel_open(c, err);
	return *k && (*l = jit_launch_open(*k, err)) && jitk_arrays_give(a, *l, NULL, err);
}

int jitk_run(void)
{
	jit_error err = { 0 };
	struct error e = { 0 };
	struct jitk_arrays a = { 0 };
	jit_compute *c = jitk_compute_open(NULL, NULL, (int)jitk.threads, &err);
	jit_kernel *k = c ? jitk_kernel_open(c, &err) : NULL;
	jit_launch *l = k ? jit_launch_open(k, &err) : NULL;
	int status = JITK_DONE;

	if (!l)
		status = jitk_fail_error(&err);
	else if (!jitk_arrays_open(&a, k, &e))
		status = jitk_fail(e.text);
	else if (!jitk_arrays_give(&a, l, NULL, &err) || !tuned(c, &k, &l, &a, &err) ||
	         jit_launch_run(l, &err) != JIT_OK || jit_compute_written(c, &err) != JIT_OK)
		status = jitk_fail_error(&err);
	else if (!jitk_arrays_out(&a, &e))
		status = jitk_fail(e.text);
	else if (!jitk.quiet)
		print_report(k);
	jitk_arrays_close(&a);
	jit_launch_close(l);
	jit_kernel_close(k);
	jit_compute_close(c);
	return status;
}

/* ---- test: what each device makes of the same arrays */

struct results {
	uint8_t **data; /* by parameter; of scalars NULL */
	size_t n;
};

static void results_free(struct results *r)
{
	for (size_t i = 0; r->data && i < r->n; i++)
		free(r->data[i]);
	free(r->data);
	*r = (struct results){ .n = 0 };
}

static bool results_copy(struct results *r, const struct jitk_arrays *a)
{
	*r = (struct results){ .data = calloc(a->n + 1, sizeof *r->data), .n = a->n };
	bool ok = r->data != NULL;
	for (size_t i = 0; ok && i < a->n; i++) {
		const size_t bytes = (size_t)a->list[i].is.bytes;
		if (a->list[i].is.access == JIT_SCALAR)
			continue;
		if ((ok = (r->data[i] = malloc(bytes ? bytes : 1)) != NULL))
			memcpy(r->data[i], a->list[i].data, bytes);
	}
	return ok;
}

/* One device's: *r. False: err. */
static bool compute(const char *device, const char *isa, int threads, struct jitk_arrays *a, struct results *r,
                    jit_error *err)
{
	jit_compute *c = jitk_compute_open(device, isa, threads, err);
	jit_kernel *k = c ? jitk_kernel_open(c, err) : NULL;
	jit_launch *l = k ? jit_launch_open(k, err) : NULL;
	struct error e = { 0 };
	bool ok = l != NULL;

	if (ok && !a->list && !jitk_arrays_open(a, k, &e)) {
		*err = (jit_error){ .code = JIT_ERROR_ARGUMENT };
		snprintf(err->message, sizeof err->message, "%s", e.text);
		ok = false;
	}
	if (ok && !results_copy(r, a)) {
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for a copy of the arrays" };
		ok = false;
	}
	ok = ok && jitk_arrays_give(a, l, r->data, err) && jit_launch_run(l, err) == JIT_OK;
	jit_launch_close(l);
	jit_kernel_close(k);
	jit_compute_close(c);
	if (!ok)
		results_free(r);
	return ok;
}

/* The first element of an array that the kernel writes in which they differ; a->n: none. */
static size_t differs(const struct jitk_arrays *a, const struct results *x, const struct results *y, uint64_t *at)
{
	for (size_t i = 0; i < a->n; i++) {
		const jit_parameter *p = &a->list[i].is;
		if (p->access == JIT_SCALAR || !p->elements || memcmp(x->data[i], y->data[i], (size_t)p->bytes) == 0)
			continue;
		const uint64_t size = p->bytes / p->elements;
		for (*at = 0; memcmp(x->data[i] + *at * size, y->data[i] + *at * size, (size_t)size) == 0;)
			++*at;
		return i;
	}
	return a->n;
}

struct trial {
	struct jitk_arrays arrays;
	struct results expected;
	int failed, refused, done;
	bool cancelled;
};

static void try_device(struct trial *t, const char *device, const char *isa, int threads)
{
	struct results got = { 0 };
	jit_error err = { 0 };
	char name[64], x[JITK_ELEMENT_MAX], y[JITK_ELEMENT_MAX];
	uint64_t at = 0;

	if (t->cancelled)
		return;
	snprintf(name, sizeof name, "%s%s%s, %d thread%s", device, isa ? " " : "", isa ? isa : "", threads,
	         threads == 1 ? "" : "s");
	if (!compute(device, isa, threads, &t->arrays, &got, &err)) {
		t->cancelled = err.code == JIT_ERROR_CANCELLED;
		t->refused++;
		printf("%-28s refused: %s\n", name, err.message);
		return;
	}
	const size_t i = differs(&t->arrays, &t->expected, &got, &at);
	t->done++;
	if (i == t->arrays.n) {
		if (!jitk.quiet)
			printf("%-28s equal\n", name);
	} else {
		const struct jitk_array *a = &t->arrays.list[i];
		t->failed++;
		printf("%-28s differs: %s, element %" PRIu64 " is %s, the interpreter has %s\n", name, a->is.name, at,
		       jitk_element(a, got.data[i], at, x), jitk_element(a, t->expected.data[i], at, y));
	}
	results_free(&got);
	fflush(stdout);
}

static void try_cards(struct trial *t)
{
	for (size_t i = 0; i < jit_device_count(); i++) {
		jit_device_info d = JIT_DEVICE_INFO();
		const bool known = jit_device_get_info(i, &d, NULL) == JIT_OK && !d.why_not[0];
		if (known && (strncmp(d.name, "amd", 3) == 0 || strncmp(d.name, "cuda", 4) == 0) &&
		    !strchr(d.name, ','))
			try_device(t, d.name, NULL, 1);
	}
}

static void try_all(struct trial *t)
{
	const struct target_cpu cpu = target_this_cpu();
	char device[32];

	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++) {
		const struct target *target = &target_table[i];
		if (!target->backend->host_runs) {
			snprintf(device, sizeof device, "sim:%s", target->name);
			if (target->backend->simulated && target->cards <= 1)
				try_device(t, device, NULL, 1);
			continue;
		}
		try_device(t, "ref", target->name, 1);
		for (int threads = 1; target_runs(&cpu, target, NULL) && threads <= 3; threads++)
			try_device(t, "cpu", target->name, threads);
	}
	try_cards(t);
}

int jitk_test(void)
{
	struct trial t = { .failed = 0 };
	jit_error err = { 0 };
	int status = JITK_DONE;

	/* the interpreter at its least width is the judge */
	if (!compute("ref", "avx2", 1, &t.arrays, &t.expected, &err)) {
		jitk_arrays_close(&t.arrays);
		return jitk_fail_error(&err);
	}
	if (jitk.device)
		try_device(&t, jitk.device, jitk.isa, jitk.threads ? (int)jitk.threads : 1);
	else
		try_all(&t);
	if (!jitk.quiet)
		printf("%d equal, %d differ, %d refused\n", t.done - t.failed, t.failed, t.refused);
	if (t.failed || t.refused)
		status = t.cancelled ? JITK_INTERRUPTED : JITK_FAILED;
	results_free(&t.expected);
	jitk_arrays_close(&t.arrays);
	return status;
}
