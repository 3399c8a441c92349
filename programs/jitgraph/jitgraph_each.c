/* programs/jitgraph/jitgraph_each.c - bench of several sets of sizes in turn: each is run while a thread makes the next
 * one's executable. In the end a line for each says when and why it was made. */
#include <inttypes.h>
#include <stdio.h>

#include "programs/jitgraph/jitgraph.h"
#include "runtime/host/system.h"

enum { RUNS = 5 };

/* The least of some runs, in seconds; below 0: err. */
static double run_some(jit_executable *x, const struct jitgraph_values *in, struct jitgraph_values *out, jit_error *err)
{
	const int runs = jitgraph.times ? (int)jitgraph.times : RUNS;
	double min = -1;

	for (int i = 0; i < runs; i++) {
		const double begin = system_seconds();
		if (jit_executable_run(x, (const void *const *)in->data, in->n, out->data, out->n, err) != JIT_OK)
			return -1;
		const double took = system_seconds() - begin;
		min = min < 0 || took < min ? took : min;
	}
	return min;
}

static bool run_set(jit_specialiser *s, int i, int *status)
{
	const struct option_list *each = &jitgraph.each;
	struct jitgraph_values in = { .n = 0 }, out = { .n = 0 };
	jit_error err = { 0 };
	struct error e = { 0 };
	double min = -1;
	jit_executable *x = jit_specialiser_get(s, each->value[i], &err);
	jit_graph *g = x ? jitgraph_open_more(each->value[i], &err) : NULL;

	if (!g || (i + 1 < each->n && jit_specialiser_ahead(s, each->value[i + 1], &err) != JIT_OK))
		*status = jitgraph_fail_error(&err);
	else if (!jitgraph_inputs(&in, g, &e) || !jitgraph_outputs(&out, g, &e))
		*status = jitgraph_fail(e.text);
	else if ((min = run_some(x, &in, &out, &err)) < 0)
		*status = jitgraph_fail_error(&err);
	else
		printf("%s: least of %d runs %.4f ms\n", each->value[i], jitgraph.times ? (int)jitgraph.times : RUNS,
		       min * 1e3);
	jitgraph_values_close(&in);
	jitgraph_values_close(&out);
	jit_graph_close(g);
	return *status == JITGRAPH_DONE;
}

static void print_reports(jit_specialiser *s)
{
	for (size_t i = 0; i < jit_specialiser_count(s); i++) {
		jit_specialisation r = JIT_SPECIALISATION();
		if (jit_specialiser_report(s, i, &r, NULL) != JIT_OK || r.state != JIT_SPECIALISED)
			continue;
		printf("%s was specialised %s, %.3f ms after the start, in %.3f ms; %.3f ms were waited for it; %u "
		       "kernels, %" PRIu64 " generated, %u groups on the host; used %" PRIu64 " times\n",
		       r.sizes, r.ahead ? "ahead" : "when it was asked for", (double)r.began_ns * 1e-6,
		       (double)r.took_ns * 1e-6, (double)r.waited_ns * 1e-6, r.kernels, r.generated, r.on_host, r.uses);
	}
}

int jitgraph_each(void)
{
	char sizes[4000];
	jit_error err = { 0 };
	int status = JITGRAPH_DONE;
	const bool ok = jitgraph_sizes(sizes, sizeof sizes, &err);
	jit_graph *g = ok ? jitgraph_open_more(jitgraph.each.value[0], &err) : NULL;
	jit_compute *c = g ? jitgraph_compute_open(g, &err) : NULL;
	jit_specialiser *s =
		c ? jit_specialiser_open(c, &JIT_GRAPH_OPTIONS(.path = jitgraph.file, .sizes = sizes), &err) : NULL;

	if (s && jitgraph.json)
		status = jitgraph_fail("--json goes without --each");
	else if (!s)
		status = jitgraph_fail_error(&err);
	for (int i = 0; i < jitgraph.each.n && status == JITGRAPH_DONE; i++)
		run_set(s, i, &status);
	if (status == JITGRAPH_DONE)
		print_reports(s);
	jit_specialiser_close(s);
	jit_compute_close(c);
	jit_graph_close(g);
	return status;
}
