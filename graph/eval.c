/* graph/eval.c - nodes and graphs, computed. */
#include "graph/eval.h"

#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"

static eval_rule *const rules[] = {
	[KIND_NUMBERS] = eval_elements,
	[KIND_FLOATS] = eval_elements,
	[KIND_BITS] = eval_elements,
	[KIND_INTEGERS] = eval_elements,
	[KIND_COMPARE] = eval_elements,
	[KIND_SELECT] = eval_elements,
	[KIND_CONVERT] = eval_convert,
	[KIND_BITCAST] = eval_bitcast,
	[KIND_CONSTANT] = eval_constant,
	[KIND_IOTA] = eval_iota,
	[KIND_BROADCAST] = eval_broadcast,
	[KIND_RESHAPE] = eval_reshape,
	[KIND_TRANSPOSE] = eval_transpose,
	[KIND_SLICE] = eval_slice,
	[KIND_PAD] = eval_pad,
	[KIND_CONCATENATE] = eval_concatenate,
	[KIND_REVERSE] = eval_reverse,
	[KIND_TAKE] = eval_take,
	[KIND_TAKE_ALONG] = eval_take_along,
	[KIND_GATHER_ND] = eval_gather_nd,
	[KIND_SCATTER_ND] = eval_scatter_nd,
	[KIND_SCATTER_ALONG] = eval_scatter_along,
	[KIND_REDUCE] = eval_reduce,
	[KIND_REDUCE_BOOL] = eval_reduce,
	[KIND_ARG] = eval_arg,
	[KIND_SCAN] = eval_scan,
	[KIND_SORT] = eval_sort,
	[KIND_DOT] = eval_dot,
	[KIND_CONV] = eval_conv,
	[KIND_WINDOW] = eval_window,
	[KIND_DEQUANTISE] = eval_dequantise,
	[KIND_RANDOM] = eval_random,
	[KIND_SOLVE] = eval_solve,
	[KIND_LOOP] = eval_loop,
	[KIND_KERNEL] = eval_kernel
};

bool tensor_node_eval(const struct tensor_graph *g, const struct tensor_node *n, const struct tensor *const in[],
                      struct tensor out[], struct error *err)
{
	struct evaluation e = { n, in, out, err };
	bool ok = true;
	uint32_t made = 0;

	for (; ok && made < n->results; made += ok) {
		const struct tensor_value_info *v = &g->value[n->first + made];
		ok = tensor_make(&out[made], v->type, &v->shape, err);
	}
	ok = ok && rules[tensor_ops[n->op].kind](&e);
	for (uint32_t i = 0; !ok && i < made; i++)
		tensor_free(&out[i]);
	return ok;
}

static bool copy(struct tensor *to, const struct tensor *from, struct error *err)
{
	if (!tensor_make(to, from->type, &from->shape, err))
		return false;
	if (to->data)
		memcpy(to->data, from->data, (size_t)tensor_bytes(to));
	return true;
}

/* Nodes whose results are wanted, into value[]; what an input would give is given by the caller. */
static bool run(const struct tensor_graph *g, const bool *wanted, struct tensor *value, bool *there, struct error *err)
{
	const struct tensor *in[TENSOR_MAX_OPERANDS];

	for (uint32_t i = 0; i < g->nodes; i++) {
		const struct tensor_node *n = &g->node[i];
		if (wanted && !wanted[i])
			continue;
		for (uint32_t k = 0; k < n->operands; k++)
			in[k] = &value[n->operand[k]];
		if (!tensor_node_eval(g, n, in, &value[n->first], err))
			return false;
		for (uint32_t k = 0; k < n->results; k++)
			there[n->first + k] = true;
	}
	return true;
}

static void free_all(const struct tensor_graph *g, struct tensor *value, bool *there)
{
	for (uint32_t v = 1; value && there && v < g->values; v++)
		if (there[v])
			tensor_free(&value[v]);
	free(value);
	free(there);
}

bool tensor_graph_eval(const struct tensor_graph *g, const struct tensor *const in[], struct tensor out[],
                       struct error *err)
{
	struct tensor *value = calloc(g->values, sizeof *value);
	bool *there = calloc(g->values, sizeof *there);
	uint32_t made = 0;
	bool ok = (value && there) || error_set(err, ERROR_MEMORY, "there is no memory for a graph");

	for (uint32_t i = 0; ok && i < g->inputs; i++)
		ok = there[g->input[i]] = copy(&value[g->input[i]], in[i], err);
	ok = ok && run(g, NULL, value, there, err);
	for (; ok && made < g->outputs; made += ok)
		ok = copy(&out[made], &value[g->output[made]], err);
	for (uint32_t i = 0; !ok && i < made; i++)
		tensor_free(&out[i]);
	free_all(g, value, there);
	return ok;
}

/* Marks the nodes that v needs; false: it needs an input. */
static bool mark(const struct tensor_graph *g, tensor_value v, bool *wanted)
{
	const uint32_t node = g->value[v].node;

	if (node == (uint32_t)VALUE_OUTSIDE)
		return false;
	wanted[node] = true;
	for (uint32_t i = node + 1; i-- > 0;)
		for (uint32_t k = 0; wanted[i] && k < g->node[i].operands; k++) {
			const uint32_t by = g->value[g->node[i].operand[k]].node;
			if (by == (uint32_t)VALUE_OUTSIDE)
				return false;
			wanted[by] = true;
		}
	return true;
}

bool tensor_graph_known(const struct tensor_graph *g, tensor_value v, struct tensor *out, struct error *err)
{
	struct tensor *value = calloc(g->values, sizeof *value);
	bool *there = calloc(g->values, sizeof *there), *wanted = calloc(g->nodes + (size_t)1, sizeof *wanted);
	bool ok = (value && there && wanted) || error_set(err, ERROR_MEMORY, "there is no memory for a graph");

	ok = ok && (mark(g, v, wanted) || error_set(err, ERROR_UNSUPPORTED, "the value depends on an input"));
	ok = ok && run(g, wanted, value, there, err) && copy(out, &value[v], err);
	free_all(g, value, there);
	free(wanted);
	return ok;
}
