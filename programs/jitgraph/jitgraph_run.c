/* programs/jitgraph/jitgraph_run.c - a run of a graph, and a run beside the interpreter and beside expected outputs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitgraph/jitgraph.h"
#include "runtime/host/system.h"

void jitgraph_run_close(struct jitgraph_run *r)
{
	jitgraph_values_close(&r->in);
	jitgraph_values_close(&r->out);
	jit_executable_close(r->executable);
	jit_graph_close(r->graph);
	jit_compute_close(r->compute);
}

static double bytes_of(const jit_graph *g, size_t n,
                       int (*of)(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err))
{
	double all = 0;

	for (size_t i = 0; i < n; i++) {
		jit_tensor t = JIT_TENSOR();
		of(g, i, &t, NULL);
		all += (double)t.bytes;
	}
	return all;
}

/* What values need in the host's memory, which is promised and not yet taken. */
static uint64_t value_bytes(const struct jitgraph_run *r)
{
	jit_executable_report x = JIT_EXECUTABLE_REPORT();
	jit_compute_info info = JIT_COMPUTE_INFO();

	jit_executable_get_report(r->executable, &x, NULL);
	jit_compute_get_info(r->compute, &info, NULL);
	return strncmp(info.device, "cuda", 4) == 0 || strncmp(info.device, "amd", 3) == 0 ? 0 : x.bytes;
}

/* Asked before inputs are made, which takes their memory. */
static bool fits(const struct jitgraph_run *r, uint64_t values, struct error *err)
{
	const double in = bytes_of(r->graph, jit_graph_inputs(r->graph), jit_graph_input),
		     out = bytes_of(r->graph, jit_graph_outputs(r->graph), jit_graph_output);
	const uint64_t available = system_available_memory();

	return in + out + (double)values <= (double)available ||
	       error_set(err, ERROR_MEMORY,
	                 "the inputs have %.0f bytes, the outputs %.0f, and values %" PRIu64 "; %" PRIu64
	                 " bytes of memory are free",
	                 in, out, values, available);
}

bool jitgraph_run_open(struct jitgraph_run *r, int *status)
{
	jit_error err = { 0 };
	struct error e = { 0 };

	*r = (struct jitgraph_run){ 0 };
	if (!(r->graph = jitgraph_open(&err))) {
		*status = jitgraph_fail_error(&err);
		return false;
	}
	if (!jitgraph_check_names(r->graph, &e) || !fits(r, 0, &e)) {
		*status = jitgraph_fail(e.text);
		return false;
	}
	if (!(r->compute = jitgraph_compute_open(r->graph, &err)) ||
	    !(r->executable = jit_executable_open(r->compute, r->graph, &err))) {
		*status = jitgraph_fail_error(&err);
		return false;
	}
	if (!fits(r, value_bytes(r), &e) || !jitgraph_inputs(&r->in, r->graph, &e) ||
	    !jitgraph_outputs(&r->out, r->graph, &e)) {
		*status = jitgraph_fail(e.text);
		return false;
	}
	return true;
}

static bool run(struct jitgraph_run *r, jit_error *err)
{
	return jit_executable_run(r->executable, (const void *const *)r->in.data, r->in.n, r->out.data, r->out.n,
	                          err) == JIT_OK;
}

static void print_report(const struct jitgraph_run *r)
{
	jit_executable_report x = JIT_EXECUTABLE_REPORT();

	jit_executable_get_report(r->executable, &x, NULL);
	fprintf(stderr,
	        "jitgraph: %s: %u kernels, of which %" PRIu64
	        " were generated, in %.3f ms; %u groups on the host; %" PRIu64 " bytes for values; ran in %.3f ms\n",
	        jitgraph.file, x.kernels, x.generated, (double)x.open_ns * 1e-6, x.on_host, x.bytes,
	        (double)x.last_ns * 1e-6);
}

int jitgraph_run(void)
{
	struct jitgraph_run r;
	jit_error err = { 0 };
	struct error e = { 0 };
	int status = JITGRAPH_DONE;

	if (jitgraph_run_open(&r, &status)) {
		if (!run(&r, &err) || jit_compute_written(r.compute, &err) != JIT_OK)
			status = jitgraph_fail_error(&err);
		else if (!jitgraph_put_outputs(&r.out, &e))
			status = jitgraph_fail(e.text);
		else if (!jitgraph.quiet)
			print_report(&r);
	}
	jitgraph_run_close(&r);
	return status;
}

/* ---- check */

/* Equal bits; two NaNs are equal, whatever bits they have. */
static bool same(const struct array *a, const struct array *b, uint64_t i)
{
	const unsigned size = array_type_bytes(a->type);

	return memcmp(a->data + i * size, b->data + i * size, size) == 0 ||
	       (array_type_is_float(a->type) && isnan(array_number(a->type, a->data + i * size)) &&
	        isnan(array_number(b->type, b->data + i * size)));
}

/* How many elements differ, with the first of them. */
static uint64_t differ(const struct array *found, const struct array *expected)
{
	char x[ARRAY_ELEMENT_MAX], y[ARRAY_ELEMENT_MAX];
	uint64_t n = 0;

	for (uint64_t i = 0; i < found->elements; i++)
		if (!same(found, expected, i) && !n++)
			printf("%s: element %" PRIu64 " is %s, the interpreter has %s\n", found->name, i,
			       array_element(found->type, found->data, i, x),
			       array_element(expected->type, expected->data, i, y));
	return n;
}

/* Beside the interpreter: how many elements of all outputs differ. False: an error was printed. */
static bool beside_interpreter(struct jitgraph_run *r, uint64_t *n, int *status)
{
	struct jitgraph_values meaning = { .n = 0 };
	jit_error err = { 0 };
	struct error e = { 0 };
	uint64_t elements = 0;
	bool ok = jitgraph_outputs(&meaning, r->graph, &e);

	if (!ok)
		*status = jitgraph_fail(e.text);
	else if (!(ok = jit_graph_interpret(r->graph, (const void *const *)r->in.data, r->in.n, meaning.data, meaning.n,
	                                    &err) == JIT_OK))
		*status = jitgraph_fail_error(&err);
	for (size_t i = 0; ok && i < meaning.n; i++) {
		*n += differ(&r->out.list[i], &meaning.list[i]);
		elements += meaning.list[i].elements;
	}
	if (ok)
		printf("%" PRIu64 " of %" PRIu64 " elements differ from the interpreter\n", *n, elements);
	jitgraph_values_close(&meaning);
	return ok;
}

/* As numpy.allclose has it: |found - expected| <= atol + rtol * |expected|. */
static uint64_t far_from(const struct array *found, const struct array *expected, double *worst)
{
	char x[ARRAY_ELEMENT_MAX], y[ARRAY_ELEMENT_MAX];
	uint64_t n = 0;

	*worst = 0;
	for (uint64_t i = 0; i < found->elements; i++) {
		const double a = array_number(found->type, found->data + i * array_type_bytes(found->type)),
			     b = array_number(expected->type, expected->data + i * array_type_bytes(expected->type));
		const double apart = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
		*worst = apart > *worst || isnan(apart) ? apart : *worst;
		if (!(apart <= jitgraph.atol + jitgraph.rtol * fabs(b)) && !n++)
			printf("%s: element %" PRIu64 " is %s, expected %s\n", found->name, i,
			       array_element(found->type, found->data, i, x),
			       array_element(expected->type, expected->data, i, y));
	}
	return n;
}

/* What outputs should be near to. An expected output may have another type: that of an engine that computes more
 * exactly. */
struct expectations {
	struct expected {
		const struct array *found;
		const char *spec;
		struct array is;
	} * list;
	size_t n;
};

static void expectations_close(struct expectations *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->list[i].is.data);
	free(x->list);
}

/* optional: the file may have no such tensor. */
static bool expect(struct expectations *x, const struct array *output, const char *spec, bool optional,
                   struct error *err)
{
	struct expected *e = &x->list[x->n];
	struct array as_found = *output;
	bool missing = false;

	*e = (struct expected){ .found = output, .spec = spec };
	if (!jitgraph_read(&e->is, spec, output->name, optional ? &missing : NULL, err))
		return false;
	x->n += !missing;
	as_found.type = e->is.type;
	return missing || array_fits(&as_found, spec, array_npy_type(e->is.type), e->is.dims, e->is.extent, err);
}

static bool expectations_open(struct expectations *x, const struct jitgraph_run *r, struct error *err)
{
	const struct option_list *list = &jitgraph.expect;
	bool ok = true;

	*x = (struct expectations){ .list = calloc(r->out.n * (size_t)(list->n + 1) + 1, sizeof *x->list) };
	if (!x->list)
		return error_set(err, ERROR_MEMORY, "no memory for a list of arrays");
	for (size_t i = 0; ok && i < r->out.n; i++) {
		const struct array *output = &r->out.list[i];
		const char *spec = array_given(list->value, list->n, output->name);
		ok = !spec || expect(x, output, spec, false, err);
		for (int k = 0; ok && k < list->n; k++)
			ok = strchr(list->value[k], '=') || expect(x, output, list->value[k], true, err);
	}
	return ok;
}

static uint64_t beside_expected(const struct expectations *x)
{
	uint64_t n = 0;
	double worst;

	for (size_t i = 0; i < x->n; i++) {
		const struct expected *e = &x->list[i];
		const uint64_t far = far_from(e->found, &e->is, &worst);
		printf("%s: %" PRIu64 " of %" PRIu64 " elements are too far from %s; at most %.3g apart\n",
		       e->found->name, far, e->found->elements, e->spec, worst);
		n += far;
	}
	return n;
}

int jitgraph_check(void)
{
	struct jitgraph_run r;
	struct expectations x = { .n = 0 };
	jit_error err = { 0 };
	struct error e = { 0 };
	uint64_t differing = 0;
	int status = JITGRAPH_DONE;

	if (jitgraph_run_open(&r, &status)) {
		if (!expectations_open(&x, &r, &e))
			status = jitgraph_fail(e.text);
		else if (!run(&r, &err))
			status = jitgraph_fail_error(&err);
		else if (beside_interpreter(&r, &differing, &status) && (differing += beside_expected(&x)))
			status = JITGRAPH_FAILED;
	}
	expectations_close(&x);
	jitgraph_run_close(&r);
	return status;
}
