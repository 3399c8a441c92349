/* graph/vjp_move.c - gradients of operations on single elements, and of those that move elements: where an element came
 * from, its cotangent goes. */
#include "graph/transform_rules.h"

bool vjp_elements(struct transform *t, const struct tensor_node *n)
{
	for (uint32_t i = 0; i < n->operands; i++)
		if (vjp_wants(t, n, i) && !vjp_give(t, n, i, derivative_of(t, n, i, t->d[n->first])))
			return false;
	return true;
}

bool vjp_convert(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, graph_convert(t->to, t->d[n->first], info_of(t, n, 0)->type, t->err));
}

bool vjp_reshape(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, graph_reshape(t->to, t->d[n->first], &info_of(t, n, 0)->shape, t->err));
}

bool vjp_broadcast(struct transform *t, const struct tensor_node *n)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);
	const struct shape *from = &info_of(t, n, 0)->shape, *to = &t->from->value[n->first].shape;
	int64_t summed[TENSOR_MAX_RANK];
	unsigned count = 0;

	for (unsigned i = 0, next = 0; i < to->rank; i++) {
		const bool has = next < from->rank && axes->whole[next] == (int64_t)i;
		if (!has || from->dim[next] != to->dim[i])
			summed[count++] = i;
		next += has;
	}
	const tensor_value v = count ? put_axes(t, OP_reduce_sum, t->d[n->first], summed, count) : t->d[n->first];
	return vjp_give(t, n, 0, graph_reshape(t->to, v, from, t->err));
}

bool vjp_transpose(struct transform *t, const struct tensor_node *n)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);
	unsigned back[TENSOR_MAX_RANK];

	for (uint32_t i = 0; i < axes->n; i++)
		back[axes->whole[i]] = i;
	return vjp_give(t, n, 0, graph_transpose(t->to, t->d[n->first], back, t->err));
}

bool vjp_reverse(struct transform *t, const struct tensor_node *n)
{
	return vjp_give(t, n, 0, put_again(t, n, &t->d[n->first]));
}

bool vjp_slice(struct transform *t, const struct tensor_node *n)
{
	const struct shape *from = &info_of(t, n, 0)->shape, *to = &t->from->value[n->first].shape;
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK], interior[TENSOR_MAX_RANK];
	const tensor_value zero = put_zeros(t, info_of(t, n, 0)->type, &(struct shape){ 0 });

	for (unsigned i = 0; i < from->rank; i++) {
		interior[i] = tensor_node_whole(n, ATTRIBUTE_strides, i, 1) - 1;
		low[i] = tensor_node_whole(n, ATTRIBUTE_start, i, 0);
		const int64_t covers = to->dim[i] ? ((int64_t)to->dim[i] - 1) * (interior[i] + 1) + 1 : 0;
		high[i] = (int64_t)from->dim[i] - low[i] - covers;
	}
	return vjp_give(t, n, 0, put_pad(t, t->d[n->first], zero, low, high, interior));
}

/* What was cut off is padded with zeros, and what was padded is cut off. */
static tensor_value unpadded(struct transform *t, const struct tensor_node *n)
{
	const struct shape *from = &info_of(t, n, 0)->shape;
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK],
		start[TENSOR_MAX_RANK] = { 0 }, limit[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
	const tensor_value zero = put_zeros(t, info_of(t, n, 0)->type, &(struct shape){ 0 });

	for (unsigned i = 0; i < from->rank; i++) {
		low[i] = -tensor_node_whole(n, ATTRIBUTE_low, i, 0);
		high[i] = -tensor_node_whole(n, ATTRIBUTE_high, i, 0);
		strides[i] = tensor_node_whole(n, ATTRIBUTE_interior, i, 0) + 1;
		limit[i] = from->dim[i] ? ((int64_t)from->dim[i] - 1) * strides[i] + 1 : 0;
	}
	return put_slice(t, put_pad(t, t->d[n->first], zero, low, high, NULL), start, limit, strides);
}

bool vjp_pad(struct transform *t, const struct tensor_node *n)
{
	const struct attribute *interior = tensor_node_attribute(n, ATTRIBUTE_interior);
	const struct shape *to = &t->from->value[n->first].shape;
	int64_t axes[TENSOR_MAX_RANK];

	if (vjp_wants(t, n, 0) && !vjp_give(t, n, 0, unpadded(t, n)))
		return false;
	if (!vjp_wants(t, n, 1))
		return true;
	const tensor_value inside =
		put_is_inside(t, &info_of(t, n, 0)->shape, tensor_node_attribute(n, ATTRIBUTE_low)->whole,
	                      tensor_node_attribute(n, ATTRIBUTE_high)->whole, interior ? interior->whole : NULL);
	const tensor_value d = t->d[n->first], beside = put_select(t, inside, put_number(t, 0, d), d);
	for (unsigned i = 0; i < to->rank; i++)
		axes[i] = i;
	return vjp_give(t, n, 1, put_axes(t, OP_reduce_sum, beside, axes, to->rank));
}

bool vjp_concatenate(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const struct shape *to = &t->from->value[n->first].shape;
	int64_t start[TENSOR_MAX_RANK] = { 0 }, limit[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < to->rank; i++)
		limit[i] = (int64_t)to->dim[i];
	limit[axis] = 0;
	for (uint32_t k = 0; k < n->operands; k++) {
		start[axis] = limit[axis];
		limit[axis] += (int64_t)info_of(t, n, k)->shape.dim[axis];
		if (vjp_wants(t, n, k) && !vjp_give(t, n, k, put_slice(t, t->d[n->first], start, limit, NULL)))
			return false;
	}
	return true;
}

/* ---- by indices */

/* Slices of v, and what they are added to, with the axis in front; indices become one row of positions. */
tensor_value put_untake(struct transform *t, tensor_value v, tensor_value at, unsigned axis, uint64_t size)
{
	if (!v || !at)
		return 0;
	const struct shape s = *shape_of_value(t, v), by = *shape_of_value(t, at);
	const int type = t->to->value[v].type;
	unsigned front[TENSOR_MAX_RANK], back[TENSOR_MAX_RANK], count = 0;
	struct shape rows = { 1, { shape_elements(&by) } }, into = { 1, { size } };

	for (unsigned i = 0; i < by.rank; i++)
		front[count++] = axis + i;
	for (unsigned i = 0; i < s.rank; i++)
		if (i < axis || i >= axis + by.rank) {
			front[count++] = i;
			rows.dim[rows.rank++] = into.dim[into.rank] = s.dim[i];
			into.rank++;
		}
	for (unsigned i = 0; i < into.rank; i++)
		back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
	const tensor_value updates = graph_reshape(t->to, graph_transpose(t->to, v, front, t->err), &rows, t->err);
	const struct shape column = { 2, { rows.dim[0], 1 } };
	const tensor_value sums = put_scatter(t, OP_scatter_nd, put_zeros(t, type, &into),
	                                      graph_reshape(t->to, at, &column, t->err), updates, 0, SCATTER_ADD);
	return graph_transpose(t->to, sums, back, t->err);
}

bool vjp_take(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);

	return vjp_give(t, n, 0,
	                put_untake(t, t->d[n->first], operand_of(t, n, 1), axis, info_of(t, n, 0)->shape.dim[axis]));
}

bool vjp_take_along(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const tensor_value zeros = put_zeros(t, info_of(t, n, 0)->type, &info_of(t, n, 0)->shape);

	return vjp_give(t, n, 0,
	                put_scatter(t, OP_scatter_along, zeros, operand_of(t, n, 1), t->d[n->first], axis,
	                            SCATTER_ADD));
}

bool vjp_gather_nd(struct transform *t, const struct tensor_node *n)
{
	const unsigned batches = (unsigned)tensor_node_whole(n, ATTRIBUTE_batch, 0, 0);
	const tensor_value zeros = put_zeros(t, info_of(t, n, 0)->type, &info_of(t, n, 0)->shape);

	return vjp_give(t, n, 0,
	                put_scatter(t, OP_scatter_nd, zeros, put_positions(t, operand_of(t, n, 1), batches),
	                            t->d[n->first], 0, SCATTER_ADD));
}

/* What an update overwrote counts nothing. gathered: the cotangents at the positions of the updates. */
static bool give_scatter(struct transform *t, const struct tensor_node *n, tensor_value gathered)
{
	const int64_t mode = tensor_node_whole(n, ATTRIBUTE_mode, 0, SCATTER_SET);
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	tensor_value kept = t->d[n->first];

	if (mode != SCATTER_SET && mode != SCATTER_ADD)
		return transform_refuse(t, n, "with another mode than set and add");
	if (vjp_wants(t, n, 0) && mode == SCATTER_SET)
		kept = put_scatter(t, n->op, kept, operand_of(t, n, 1),
		                   put_zeros(t, info_of(t, n, 2)->type, &info_of(t, n, 2)->shape), axis, SCATTER_SET);
	return (!vjp_wants(t, n, 0) || vjp_give(t, n, 0, kept)) && (!vjp_wants(t, n, 2) || vjp_give(t, n, 2, gathered));
}

bool vjp_scatter_nd(struct transform *t, const struct tensor_node *n)
{
	return give_scatter(t, n, put_two(t, OP_gather_nd, t->d[n->first], operand_of(t, n, 1)));
}

bool vjp_scatter_along(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);

	return give_scatter(t, n, put_axis(t, OP_take_along, t->d[n->first], operand_of(t, n, 1), axis));
}
