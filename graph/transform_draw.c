/* graph/transform_draw.c - nodes that rules of transforms put into graphs. */
#include "graph/transform_rules.h"

tensor_value put_node(struct transform *t, enum tensor_op op, const tensor_value *x, unsigned n,
                      const struct attribute *a, unsigned attributes)
{
	for (unsigned i = 0; i < n; i++)
		if (!x[i])
			return 0;
	return tensor_graph_add(t->to, op, x, n, a, attributes, t->err);
}

tensor_value put_again(struct transform *t, const struct tensor_node *n, const tensor_value *x)
{
	return put_node(t, n->op, x, n->operands, n->attribute, n->attributes);
}

tensor_value put_one(struct transform *t, enum tensor_op op, tensor_value x) { return put_node(t, op, &x, 1, NULL, 0); }

tensor_value put_two(struct transform *t, enum tensor_op op, tensor_value x, tensor_value y)
{
	return put_node(t, op, (tensor_value[]){ x, y }, 2, NULL, 0);
}

tensor_value put_select(struct transform *t, tensor_value condition, tensor_value x, tensor_value y)
{
	return put_node(t, OP_select, (tensor_value[]){ condition, x, y }, 3, NULL, 0);
}

tensor_value put_number(struct transform *t, double number, tensor_value like)
{
	if (!like)
		return 0;
	const struct tensor_value_info info = t->to->value[like]; /* a copy: adding values moves them */
	return graph_full(t->to, number, info.type, &info.shape, t->err);
}

tensor_value put_zeros(struct transform *t, int type, const struct shape *s)
{
	const struct shape own = *s;

	return graph_full(t->to, 0, type, &own, t->err);
}

tensor_value put_axis(struct transform *t, enum tensor_op op, tensor_value x, tensor_value y, unsigned axis)
{
	int64_t number = axis;
	const struct attribute a = { ATTRIBUTE_axis, 1, &number, 0 };

	return put_node(t, op, (tensor_value[]){ x, y }, tensor_ops[op].min == 1 && !y ? 1 : 2, &a, 1);
}

tensor_value put_axes(struct transform *t, enum tensor_op op, tensor_value x, const int64_t *axes, unsigned count)
{
	const struct attribute a = { ATTRIBUTE_axes, count, (int64_t *)(uintptr_t)axes, 0 };

	return put_node(t, op, &x, 1, &a, 1);
}

tensor_value put_iota(struct transform *t, int type, const struct shape *s, unsigned axis)
{
	int64_t of = type, shape[TENSOR_MAX_RANK], number = axis;

	for (unsigned i = 0; i < s->rank; i++)
		shape[i] = (int64_t)s->dim[i];
	const struct attribute a[] = {
		{ ATTRIBUTE_type, 1, &of, 0 }, { ATTRIBUTE_shape, s->rank, shape, 0 }, { ATTRIBUTE_axis, 1, &number, 0 }
	};
	return put_node(t, OP_iota, NULL, 0, a, 3);
}

tensor_value put_pad(struct transform *t, tensor_value x, tensor_value number, const int64_t *low, const int64_t *high,
                     const int64_t *interior)
{
	if (!x)
		return 0;
	const unsigned rank = shape_of_value(t, x)->rank;
	const struct attribute a[] = { { ATTRIBUTE_low, rank, (int64_t *)(uintptr_t)low, 0 },
		                       { ATTRIBUTE_high, rank, (int64_t *)(uintptr_t)high, 0 },
		                       { ATTRIBUTE_interior, rank, (int64_t *)(uintptr_t)interior, 0 } };
	return put_node(t, OP_pad, (tensor_value[]){ x, number }, 2, a, interior ? 3 : 2);
}

tensor_value put_slice(struct transform *t, tensor_value x, const int64_t *start, const int64_t *limit,
                       const int64_t *strides)
{
	if (!x)
		return 0;
	const unsigned rank = shape_of_value(t, x)->rank;
	const struct attribute a[] = { { ATTRIBUTE_start, rank, (int64_t *)(uintptr_t)start, 0 },
		                       { ATTRIBUTE_limit, rank, (int64_t *)(uintptr_t)limit, 0 },
		                       { ATTRIBUTE_strides, rank, (int64_t *)(uintptr_t)strides, 0 } };
	return put_node(t, OP_slice, &x, 1, a, strides ? 3 : 2);
}

tensor_value put_scatter(struct transform *t, enum tensor_op op, tensor_value x, tensor_value at, tensor_value updates,
                         unsigned axis, enum scatter_mode mode)
{
	int64_t number = axis, how = mode;
	const struct attribute a[] = { { ATTRIBUTE_mode, 1, &how, 0 }, { ATTRIBUTE_axis, 1, &number, 0 } };

	return put_node(t, op, (tensor_value[]){ x, at, updates }, 3, a, op == OP_scatter_along ? 2 : 1);
}

tensor_value put_positions(struct transform *t, tensor_value at, unsigned batches)
{
	tensor_value part[TENSOR_MAX_RANK + 1];
	int64_t axis;

	if (!at || !batches)
		return at;
	const unsigned rank = shape_of_value(t, at)->rank;
	struct shape s = *shape_of_value(t, at);
	s.dim[rank - 1] = 1;
	axis = rank - 1;
	for (unsigned i = 0; i < batches; i++)
		part[i] = put_iota(t, JIT_TYPE_I64, &s, i);
	part[batches] = graph_convert(t->to, at, JIT_TYPE_I64, t->err);
	return put_node(t, OP_concatenate, part, batches + 1, &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1);
}

tensor_value put_is_inside(struct transform *t, const struct shape *x, const int64_t *low, const int64_t *high,
                           const int64_t *interior)
{
	const struct shape scalar = { 0 };

	return put_pad(t, graph_full(t->to, 1, JIT_TYPE_BOOL, x, t->err),
	               graph_full(t->to, 0, JIT_TYPE_BOOL, &scalar, t->err), low, high, interior);
}
