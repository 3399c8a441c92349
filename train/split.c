/* train/split.c - a graph cut in two by which inputs are known. */
#include "train/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct splitting {
	const struct tensor_graph *g;
	struct split *s;
	uint8_t *is_late;           /* of each value: it depends on a late input */
	tensor_value *front, *back; /* of each value: what it is there; 0: not there */
	struct error *err;
};

/* What is computed again rather than kept: it has no arithmetic, or more elements than it is worth. */
static bool is_cheap(enum tensor_op op)
{
	switch (tensor_ops[op].kind) {
	case KIND_CONSTANT:
	case KIND_IOTA:
	case KIND_BROADCAST:
	case KIND_RESHAPE:
	case KIND_TRANSPOSE:
	case KIND_SLICE:
	case KIND_DEQUANTISE: return true; /* weights stay packed */
	default: return false;
	}
}

static void find_late(struct splitting *x, uint32_t late)
{
	for (uint32_t i = late; i < x->g->inputs; i++)
		x->is_late[x->g->input[i]] = 1;
	for (uint32_t i = 0; i < x->g->nodes; i++) {
		const struct tensor_node *n = &x->g->node[i];
		uint8_t any = 0;
		for (uint32_t k = 0; k < n->operands; k++)
			any |= x->is_late[n->operand[k]];
		for (uint32_t k = 0; k < n->results; k++)
			x->is_late[n->first + k] = any;
	}
}

/* A node, whose operands are there already. */
static bool copy_node(struct splitting *x, struct tensor_graph *to, tensor_value *is, const struct tensor_node *n)
{
	tensor_value operand[TENSOR_MAX_OPERANDS];

	for (uint32_t k = 0; k < n->operands; k++)
		operand[k] = is[n->operand[k]];
	const tensor_value v =
		n->op == OP_constant
			? tensor_graph_constant(to, n->constant, x->err)
			: tensor_graph_add(to, n->op, operand, n->operands, n->attribute, n->attributes, x->err);
	for (uint32_t k = 0; v && k < n->results; k++)
		is[n->first + k] = v + k;
	return v != 0;
}

static bool copy_inputs(struct splitting *x, struct tensor_graph *to, tensor_value *is, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tensor_value_info *v = &x->g->value[x->g->input[i]];
		if (!(is[x->g->input[i]] = tensor_graph_input(to, v->name, v->type, &v->shape, x->err)))
			return false;
	}
	return true;
}

/* Sees to it that an early value is there in `back`: computed again, or as an input. */
static bool want(struct splitting *x, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(x->g, v);
	char name[32];

	if (x->back[v])
		return true;
	if (n && is_cheap(n->op)) {
		for (uint32_t k = 0; k < n->operands; k++)
			if (!want(x, n->operand[k]))
				return false;
		return copy_node(x, &x->s->back, x->back, n);
	}
	if (x->s->n_kept == SPLIT_KEPT_MAX)
		return error_set(x->err, ERROR_UNSUPPORTED, "more than %d values are to be kept", SPLIT_KEPT_MAX);
	const struct tensor_value_info info = x->g->value[v];
	snprintf(name, sizeof name, "kept.%u", x->s->n_kept);
	x->s->kept[x->s->n_kept++] = v;
	x->back[v] = tensor_graph_input(&x->s->back, name, info.type, &info.shape, x->err);
	return x->back[v] && tensor_graph_output(&x->s->front, name, x->front[v], x->err);
}

static bool copy_nodes(struct splitting *x)
{
	for (uint32_t i = 0; i < x->g->nodes; i++) {
		const struct tensor_node *n = &x->g->node[i];
		if (!x->is_late[n->first] && !copy_node(x, &x->s->front, x->front, n))
			return false;
	}
	for (uint32_t i = 0; i < x->g->outputs && !x->is_late[x->g->output[i]]; i++, x->s->front_outputs++)
		if (!tensor_graph_output(&x->s->front, x->g->output_name[i], x->front[x->g->output[i]], x->err))
			return false;
	for (uint32_t i = 0; i < x->g->nodes; i++) {
		const struct tensor_node *n = &x->g->node[i];
		if (!x->is_late[n->first])
			continue;
		for (uint32_t k = 0; k < n->operands; k++)
			if (!want(x, n->operand[k]))
				return false;
		if (!copy_node(x, &x->s->back, x->back, n))
			return false;
	}
	for (uint32_t i = x->s->front_outputs; i < x->g->outputs; i++)
		if (!want(x, x->g->output[i]) ||
		    !tensor_graph_output(&x->s->back, x->g->output_name[i], x->back[x->g->output[i]], x->err))
			return false;
	return true;
}

bool split_graph(struct split *s, const struct tensor_graph *g, uint32_t late, struct error *err)
{
	struct splitting x = { .g = g, .s = s, .err = err };
	bool ok;

	*s = (struct split){ .n_kept = 0 };
	tensor_graph_init(&s->front);
	tensor_graph_init(&s->back);
	x.is_late = calloc(g->values, sizeof *x.is_late);
	x.front = calloc(g->values, sizeof *x.front);
	x.back = calloc(g->values, sizeof *x.back);
	ok = (x.is_late && x.front && x.back) || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	if (ok) {
		find_late(&x, late);
		ok = copy_inputs(&x, &s->front, x.front, late) && copy_inputs(&x, &s->back, x.back, g->inputs) &&
		     copy_nodes(&x);
	}
	free(x.is_late);
	free(x.front);
	free(x.back);
	return ok;
}

void split_free(struct split *s)
{
	tensor_graph_free(&s->front);
	tensor_graph_free(&s->back);
}
