/* graph/vmap.c - graphs for many sets of inputs at once. */
#include <string.h>

#include "graph/transform_rules.h"

/* The input with the new dimension where the caller has it. */
static bool enter_input(struct transform *t, tensor_value v, int axis)
{
	const struct tensor_value_info *info = &t->from->value[v];
	struct shape s = info->shape;

	if (axis >= 0 && ((unsigned)axis > s.rank || s.rank == TENSOR_MAX_RANK)) {
		char text[SHAPE_TEXT_MAX];
		return error_set(t->err, ERROR_ARGUMENT,
		                 "vmap of input %s, %s, along axis %d, expected 0 to %u, and at most 7 dimensions",
		                 transform_input_name(t->from, v), shape_text(info->type, &s, text), axis, s.rank);
	}
	if (axis >= 0) {
		memmove(s.dim + axis + 1, s.dim + axis, (s.rank - (unsigned)axis) * sizeof *s.dim);
		s.dim[axis] = t->size;
		s.rank++;
	}
	t->active[v] = axis >= 0;
	t->is[v] = tensor_graph_input(t->to, info->name, info->type, &s, t->err);
	return t->is[v] != 0;
}

/* It goes to the front. */
static bool move_input_axis(struct transform *t, tensor_value v, int axis)
{
	unsigned order[TENSOR_MAX_RANK] = { (unsigned)axis };

	for (unsigned i = 0; i < t->from->value[v].shape.rank; i++)
		order[i + 1] = i < (unsigned)axis ? i : i + 1;
	t->is[v] = graph_transpose(t->to, t->is[v], order, t->err);
	return t->is[v] != 0;
}

static tensor_value in_front(struct transform *t, tensor_value v, const struct shape *own)
{
	struct shape s = { .rank = own->rank + 1, .dim = { t->size } };
	unsigned axes[TENSOR_MAX_RANK];

	if (s.rank > TENSOR_MAX_RANK) {
		error_set(t->err, ERROR_UNSUPPORTED, "vmap of %u dimensions, expected at most %d", own->rank,
		          TENSOR_MAX_RANK - 1);
		return 0;
	}
	for (unsigned i = 0; i < own->rank; i++) {
		s.dim[i + 1] = own->dim[i];
		axes[i] = i + 1;
	}
	return graph_broadcast(t->to, v, &s, axes, t->err);
}

tensor_value vmap_operand(struct transform *t, const struct tensor_node *n, unsigned i)
{
	return t->active[n->operand[i]] ? operand_of(t, n, i)
	                                : in_front(t, operand_of(t, n, i), &info_of(t, n, i)->shape);
}

/* Of no sets, nothing is computed. */
static bool put_nothing(struct transform *t, const struct tensor_node *n)
{
	for (uint32_t k = 0; k < n->results; k++) {
		const struct tensor_value_info *info = &t->from->value[n->first + k];
		const tensor_value zero = graph_full(t->to, 0, info->type, &(struct shape){ 0 }, t->err);
		struct shape s = { .rank = info->shape.rank + 1 };
		for (unsigned i = 0; i < info->shape.rank; i++)
			s.dim[i + 1] = info->shape.dim[i];
		if (!(t->is[n->first + k] = graph_broadcast(t->to, zero, &s, NULL, t->err)))
			return false;
	}
	return true;
}

static bool put_batched(struct transform *t, const struct tensor_node *n)
{
	transform_rule *rule = transform_rules[n->op].vmap;

	for (uint32_t k = 0; k < n->results; k++)
		if (t->from->value[n->first + k].shape.rank == TENSOR_MAX_RANK)
			return error_set(t->err, ERROR_UNSUPPORTED, "vmap of %s to %d dimensions, expected at most %d",
			                 tensor_ops[n->op].name, TENSOR_MAX_RANK + 1, TENSOR_MAX_RANK);
	if (!rule)
		return error_set(t->err, ERROR_UNSUPPORTED, "%s has no rule for vmap", tensor_ops[n->op].name);
	if (!(t->size == 0 ? put_nothing(t, n) : rule(t, n)))
		return false;
	for (uint32_t k = 0; k < n->results; k++)
		t->active[n->first + k] = true;
	return true;
}

static bool put_all(struct transform *t, const int axis[])
{
	for (uint32_t i = 0; i < t->from->inputs; i++)
		if (!enter_input(t, t->from->input[i], axis[i]))
			return false;
	for (uint32_t i = 0; i < t->from->inputs; i++)
		if (axis[i] >= 0 && !move_input_axis(t, t->from->input[i], axis[i]))
			return false;
	for (uint32_t i = 0; i < t->from->nodes; i++) {
		const struct tensor_node *n = &t->from->node[i];
		bool any = false;
		for (uint32_t k = 0; k < n->operands; k++)
			any = any || t->active[n->operand[k]];
		if (!(any ? put_batched(t, n) : transform_copy(t, n)))
			return false;
	}
	for (uint32_t i = 0; i < t->from->outputs; i++) {
		const tensor_value v = t->from->output[i];
		const tensor_value w = t->active[v] ? t->is[v] : in_front(t, t->is[v], &t->from->value[v].shape);
		if (!w || !tensor_graph_output(t->to, t->from->output_name[i], w, t->err))
			return false;
	}
	return true;
}

bool tensor_graph_vmap(struct tensor_graph *to, const struct tensor_graph *from, uint64_t size, const int axis[],
                       struct error *err)
{
	struct transform t = { .name = "vmap", .to = to, .from = from, .size = size, .err = err };
	const bool ok = transform_open(&t) && put_all(&t, axis);

	transform_close(&t);
	return ok;
}
