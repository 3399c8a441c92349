/* graph/vjp_many.c - gradients of operations that make one number of many, and of sort. */
#include "graph/transform_rules.h"

bool vjp_reduce_sum(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, put_spread(t, n, t->d[n->first]));
}

bool vjp_reduce_product(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, put_two(t, OP_mul, put_spread(t, n, t->d[n->first]), put_others(t, n)));
}

bool vjp_reduce_max(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, put_two(t, OP_mul, put_spread(t, n, t->d[n->first]), put_parts(t, n)));
}

/* Each element counts in the sums of those behind it. */
bool vjp_cumsum(struct transform *t, const struct tensor_node *n)
{
	int64_t number[] = { tensor_node_whole(n, ATTRIBUTE_axis, 0, 0), !tensor_node_whole(n, ATTRIBUTE_reverse, 0, 0),
		             tensor_node_whole(n, ATTRIBUTE_exclusive, 0, 0) };
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &number[0], 0 },
		                       { ATTRIBUTE_reverse, 1, &number[1], 0 },
		                       { ATTRIBUTE_exclusive, 1, &number[2], 0 } };

	return vjp_give(t, n, 0, put_node(t, OP_cumsum, &t->d[n->first], 1, a, 3));
}

bool vjp_cumprod(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0), rank = info_of(t, n, 0)->shape.rank;
	const tensor_value square = put_cumprod_derivative(t, n);
	unsigned to[TENSOR_MAX_RANK];

	if (!square)
		return false;
	for (unsigned i = 0; i < rank; i++)
		to[i] = i < axis ? i : i + 1;
	const struct shape s = *shape_of_value(t, square);
	const tensor_value d = graph_broadcast(t->to, t->d[n->first], &s, to, t->err);
	return vjp_give(t, n, 0, put_axes(t, OP_reduce_sum, put_two(t, OP_mul, square, d), (int64_t[]){ axis + 1 }, 1));
}

bool vjp_sort(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const tensor_value from = put_permutation(t, n);

	for (uint32_t k = 0; k < n->operands; k++) {
		const tensor_value d = t->d[n->first + k];
		if (!d || !vjp_wants(t, n, k))
			continue;
		const tensor_value zeros = put_zeros(t, info_of(t, n, k)->type, &info_of(t, n, k)->shape);
		if (!vjp_give(t, n, k, put_scatter(t, OP_scatter_along, zeros, from, d, axis, SCATTER_SET)))
			return false;
	}
	return true;
}
