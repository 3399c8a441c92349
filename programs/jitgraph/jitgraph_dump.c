/* programs/jitgraph/jitgraph_dump.c - a graph as it is read, after each pass, and as kernels; which device is done with
 * it first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/passes.h"
#include "graph/text.h"
#include "programs/common/device_auto.h"
#include "programs/jitgraph/jitgraph.h"
#include "runtime/graph/graph_api.h"

/* ---- passes */

static bool wanted(const char *stage) { return !jitgraph.stage || strcmp(jitgraph.stage, stage) == 0; }

/* Its text, malloc'ed. NULL: err. */
static char *text_of(const struct tensor_graph *g, struct error *err)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (f)
		graph_text_write(g, f, (uint64_t)jitgraph.shown);
	if (f && fclose(f) == 0)
		return text;
	free(text);
	error_set(err, ERROR_MEMORY, "no memory for the text of a graph");
	return NULL;
}

/* *before: the text of the stage before, which becomes this one's. */
static bool print(const struct tensor_graph *g, const char *stage, const char *what, char **before, struct error *err)
{
	char *text = wanted(stage) ? text_of(g, err) : NULL;
	const bool same = text && *before && strcmp(text, *before) == 0;

	if (!wanted(stage))
		return true;
	if (text && same)
		printf("# %s: %s: nothing changed\n\n", stage, what);
	else if (text)
		printf("# %s: %s; %u node%s\n%s%s", stage, what, g->nodes, g->nodes == 1 ? "" : "s", text,
		       jitgraph.stage ? "" : "\n");
	free(*before);
	*before = text;
	return text != NULL;
}

/* Each pass by itself, then what executables run. */
static bool print_passes(const struct tensor_graph *g, struct error *err)
{
	struct tensor_graph made[PASSES + 1];
	const struct tensor_graph *from = g;
	char *before = NULL;

	for (int i = 0; i <= PASSES; i++)
		tensor_graph_init(&made[i]);
	bool ok = print(g, "read", "the graph as it was read", &before, err);
	for (int i = 0; ok && i < PASSES; i++) {
		ok = passes_run_one(&made[i], from, (enum pass)i, err) &&
		     print(&made[i], pass_rows[i].name, pass_rows[i].what, &before, err);
		from = &made[i];
	}
	ok = ok && passes_run(&made[PASSES], g, err) &&
	     print(&made[PASSES], "all", "all passes at once, of which kernels are made", &before, err);
	free(before);
	for (int i = 0; i <= PASSES; i++)
		tensor_graph_free(&made[i]);
	return ok;
}

static int print_kernels(const jit_graph *g)
{
	jit_error err = { 0 };
	jit_compute *c = jitgraph_compute_open(g, &err);
	jit_executable *x = c ? jit_executable_open(c, g, &err) : NULL;
	const int status = x ? JITGRAPH_DONE : jitgraph_fail_error(&err);

	if (x) {
		printf("# kernels: each group of nodes, where it runs%s\n", jitgraph.kernels ? ", and its text" : "");
		executable_print(executable_of(x), stdout, jitgraph.kernels);
	}
	jit_executable_close(x);
	jit_compute_close(c);
	return status;
}

int jitgraph_dump(void)
{
	jit_error err = { 0 };
	struct error e = { 0 };
	jit_graph *g = jitgraph_open(&err);
	int status = g ? JITGRAPH_DONE : jitgraph_fail_error(&err);

	if (g && !print_passes(graph_of(g), &e))
		status = jitgraph_fail(e.text);
	else if (g && wanted("kernels"))
		status = print_kernels(g);
	jit_graph_close(g);
	return status;
}

/* ---- devices */

/* What a node does: of products two operations for each pair, of all others one for each element. */
static uint64_t operations_of(const struct tensor_graph *g, const struct tensor_node *n)
{
	const struct shape *out = &g->value[n->first].shape;
	uint64_t sums = 1;

	if (n->op == OP_dot) {
		const struct attribute *left = tensor_node_attribute(n, ATTRIBUTE_left);
		for (uint32_t i = 0; i < left->n; i++)
			sums *= g->value[n->operand[0]].shape.dim[left->whole[i]];
	} else if (n->op == OP_conv) {
		const struct shape *by = &g->value[n->operand[1]].shape;
		sums = shape_part(by, 1, by->rank);
	}
	return shape_elements(out) * sums * (n->op == OP_dot || n->op == OP_conv ? 2 : 1);
}

static uint64_t bytes_of(const struct tensor_graph *g, tensor_value v)
{
	return shape_elements(&g->value[v].shape) * tensor_type_bytes(g->value[v].type);
}

static jit_work work_of(const struct tensor_graph *g)
{
	jit_work w = JIT_WORK();

	for (tensor_value v = 1; v < g->values; v++) {
		w.memory += bytes_of(g, v);
		w.bytes += 2 * bytes_of(g, v); /* written, and read */
	}
	for (uint32_t i = 0; i < g->nodes; i++)
		w.operations += operations_of(g, &g->node[i]);
	for (uint32_t i = 0; i < g->inputs; i++)
		w.copied += bytes_of(g, g->input[i]);
	for (uint32_t i = 0; i < g->outputs; i++)
		w.copied += bytes_of(g, g->output[i]);
	return w;
}

jit_compute *jitgraph_compute_open(const jit_graph *g, jit_error *err)
{
	char device[DEVICE_AUTO_MAX];
	const bool choose = device_is_auto(jitgraph.device);

	if (choose) {
		const jit_work w = work_of(graph_of(g));
		if (!device_auto_choose(&w, "a run", jitgraph.quiet, device, err))
			return NULL;
	}
	return jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = choose ? device : jitgraph.device, .isa = jitgraph.isa,
	                             .threads = (int)jitgraph.threads, .sealed = jitgraph.sealed,
	                             .cache_dir = jitgraph.no_cache ? "" : jitgraph.cache, .dump_ir = jitgraph.dump_ir,
	                             .dump_asm = jitgraph.dump_asm, .cancel = jitgraph_cancel),
		err);
}
