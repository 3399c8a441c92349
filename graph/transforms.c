/* graph/transforms.c - the table of rules, and what all transforms do: copies, names, and what is active. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/transform_rules.h"

#define vjp_zero transform_zero
#define jvp_zero transform_zero
#define vjp_none NULL
#define jvp_none NULL
#define vmap_none NULL
const struct transform_row transform_rules[TENSOR_OPS] = {
#define RULES(op, vjp, jvp, vmap) [OP_##op] = { vjp_##vjp, jvp_##jvp, vmap_##vmap },
#include "graph/rules.def"
#undef RULES
};

bool transform_zero(struct transform *t, const struct tensor_node *n)
{
	(void)t;
	(void)n;
	return true;
}

bool transform_open(struct transform *t)
{
	t->is = calloc(t->from->values, sizeof *t->is);
	t->d = calloc(t->from->values, sizeof *t->d);
	t->active = calloc(t->from->values, sizeof *t->active);
	return (t->is && t->d && t->active) || error_set(t->err, ERROR_MEMORY, "there is no memory for a graph");
}

void transform_close(struct transform *t)
{
	free(t->is);
	free(t->d);
	free(t->active);
}

bool transform_refuse(struct transform *t, const struct tensor_node *n, const char *why)
{
	return error_set(t->err, ERROR_UNSUPPORTED, "%s %s has no rule for %s", tensor_ops[n->op].name, why, t->name);
}

/* ---- copies */

bool transform_copy(struct transform *t, const struct tensor_node *n)
{
	tensor_value operand[TENSOR_MAX_OPERANDS], v;

	for (uint32_t i = 0; i < n->operands; i++)
		operand[i] = operand_of(t, n, i);
	v = n->op == OP_constant           ? tensor_graph_constant(t->to, n->constant, t->err)
	    : n->op == OP_scan && t->saves ? loop_put_saving(t, n, operand)
	                                   : put_again(t, n, operand);
	for (uint32_t k = 0; v && k < n->results; k++) {
		t->is[n->first + k] = v + k;
		if (!tensor_graph_name_value(t->to, v + k, t->from->value[n->first + k].name, t->err))
			return false;
	}
	return v != 0;
}

bool transform_copy_inputs(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->inputs; i++) {
		const struct tensor_value_info *v = &t->from->value[t->from->input[i]];
		const tensor_value w = tensor_graph_input(t->to, v->name, v->type, &v->shape, t->err);
		if (!w)
			return false;
		t->is[t->from->input[i]] = w;
	}
	return true;
}

bool transform_copy_nodes(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->nodes; i++)
		if (!transform_copy(t, &t->from->node[i]))
			return false;
	return true;
}

/* ---- names */

const char *transform_input_name(const struct tensor_graph *g, tensor_value v)
{
	return g->value[v].name ? g->value[v].name : "input";
}

static char *prefixed(const char *prefix, const char *name, struct error *err)
{
	const size_t size = strlen(prefix) + strlen(name) + 2;
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%s.%s", prefix, name);
	else
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	return text;
}

static bool is_input_name(const struct tensor_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->inputs; i++)
		if (g->value[g->input[i]].name && strcmp(g->value[g->input[i]].name, name) == 0)
			return true;
	return false;
}

tensor_value transform_input(struct transform *t, const char *prefix, const char *name, tensor_value v)
{
	const struct tensor_value_info *of = &t->from->value[v];
	char *text = prefixed(prefix, name, t->err);
	tensor_value w = 0;

	while (text && is_input_name(t->to, text)) {
		char *longer = prefixed(prefix, text, t->err);
		free(text);
		text = longer;
	}
	if (text)
		w = tensor_graph_input(t->to, text, of->type, &of->shape, t->err);
	free(text);
	return w;
}

static bool is_output_name(const struct tensor_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->outputs; i++)
		if (strcmp(g->output_name[i], name) == 0)
			return true;
	return false;
}

bool transform_output(struct transform *t, const char *prefix, const char *name, tensor_value v)
{
	char *text = prefixed(prefix, name, t->err);

	while (text && is_output_name(t->to, text)) {
		char *longer = prefixed(prefix, text, t->err);
		free(text);
		text = longer;
	}
	bool ok = text && tensor_graph_output(t->to, text, v, t->err);
	if (ok && !t->to->value[v].name) /* so that statements which are added can name it */
		ok = tensor_graph_name_value(t->to, v, text, t->err);
	free(text);
	return ok;
}

bool transform_outputs(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->outputs; i++)
		if (!tensor_graph_output(t->to, t->from->output_name[i], t->is[t->from->output[i]], t->err))
			return false;
	return true;
}

/* ---- what is active */

static bool mark_inputs(struct transform *t, const tensor_value wrt[], uint32_t n)
{
	char text[SHAPE_TEXT_MAX];

	for (uint32_t i = 0; i < n; i++) {
		const tensor_value v = wrt[i];
		if (v == 0 || v >= t->from->values || t->from->value[v].node != (uint32_t)VALUE_OUTSIDE)
			return error_set(t->err, ERROR_ARGUMENT,
			                 "value %u is no input of the graph, expected one for %s", v, t->name);
		if (!tensor_is_float(t->from->value[v].type))
			return error_set(t->err, ERROR_ARGUMENT, "input %s is %s, expected floats for %s",
			                 transform_input_name(t->from, v),
			                 shape_text(t->from->value[v].type, &t->from->value[v].shape, text), t->name);
		if (t->active[v])
			return error_set(t->err, ERROR_ARGUMENT, "input %s is named twice for %s",
			                 transform_input_name(t->from, v), t->name);
		t->active[v] = true;
	}
	return true;
}

/* Marks what the outputs of floats need. */
static void mark_needed(const struct tensor_graph *g, bool *needed)
{
	for (uint32_t i = 0; i < g->outputs; i++)
		needed[g->output[i]] = tensor_is_float(g->value[g->output[i]].type);
	for (uint32_t i = g->nodes; i-- > 0;) {
		const struct tensor_node *n = &g->node[i];
		bool any = false;
		for (uint32_t k = 0; k < n->results; k++)
			any = any || needed[n->first + k];
		for (uint32_t k = 0; any && k < n->operands; k++)
			needed[n->operand[k]] = true;
	}
}

static bool mark_node(struct transform *t, const struct tensor_node *n, transform_rule *rule, const bool *needed)
{
	bool any = false, is_needed = false;

	for (uint32_t k = 0; k < n->operands; k++)
		any = any || t->active[n->operand[k]];
	for (uint32_t k = 0; k < n->results; k++)
		is_needed = is_needed || needed[n->first + k];
	if (any && is_needed && !rule)
		return error_set(t->err, ERROR_UNSUPPORTED, "%s has no rule for %s", tensor_ops[n->op].name, t->name);
	for (uint32_t k = 0; any && is_needed && k < n->results; k++)
		t->active[n->first + k] = rule != transform_zero && tensor_is_float(t->from->value[n->first + k].type);
	return true;
}

bool transform_mark(struct transform *t, const tensor_value wrt[], uint32_t n,
                    transform_rule *(*rule)(enum tensor_op op))
{
	bool *needed = calloc(t->from->values, sizeof *needed);
	bool ok = needed || error_set(t->err, ERROR_MEMORY, "there is no memory for a graph");

	ok = ok && mark_inputs(t, wrt, n);
	if (ok)
		mark_needed(t->from, needed);
	for (uint32_t i = 0; ok && i < t->from->nodes; i++)
		ok = mark_node(t, &t->from->node[i], rule(t->from->node[i].op), needed);
	free(needed);
	return ok;
}
