/* graph/jvp_rules.c - how results move when operands do. */
#include "graph/transform_rules.h"

static bool set(struct transform *t, const struct tensor_node *n, tensor_value v)
{
	t->d[n->first] = v;
	return v != 0;
}

static tensor_value tangent_of(const struct transform *t, const struct tensor_node *n, unsigned i)
{
	return t->d[n->operand[i]];
}

bool jvp_elements(struct transform *t, const struct tensor_node *n)
{
	tensor_value sum = 0;

	for (uint32_t i = 0; i < n->operands; i++) {
		if (!tangent_of(t, n, i))
			continue;
		const tensor_value v = derivative_of(t, n, i, tangent_of(t, n, i));
		sum = sum ? put_two(t, OP_add, sum, v) : v;
		if (!sum)
			return false;
	}
	return set(t, n, sum);
}

/* The same operation, on tangents instead of floats. */
bool jvp_linear(struct transform *t, const struct tensor_node *n)
{
	tensor_value x[TENSOR_MAX_OPERANDS];

	for (uint32_t i = 0; i < n->operands; i++) {
		const struct tensor_value_info *info = info_of(t, n, i);
		x[i] = tangent_of(t, n, i)           ? tangent_of(t, n, i)
		       : tensor_is_float(info->type) ? put_zeros(t, info->type, &info->shape)
		                                     : operand_of(t, n, i);
	}
	return set(t, n, put_again(t, n, x));
}

bool jvp_scatter(struct transform *t, const struct tensor_node *n)
{
	const int64_t mode = tensor_node_whole(n, ATTRIBUTE_mode, 0, SCATTER_SET);

	return mode == SCATTER_SET || mode == SCATTER_ADD
	               ? jvp_linear(t, n)
	               : transform_refuse(t, n, "with another mode than set and add");
}

bool jvp_bilinear(struct transform *t, const struct tensor_node *n)
{
	tensor_value sum = 0;

	for (unsigned i = 0; i < 2; i++) {
		tensor_value x[] = { operand_of(t, n, 0), operand_of(t, n, 1) };
		if (!tangent_of(t, n, i))
			continue;
		x[i] = tangent_of(t, n, i);
		const tensor_value v = put_again(t, n, x);
		sum = sum ? put_two(t, OP_add, sum, v) : v;
		if (!sum)
			return false;
	}
	return set(t, n, sum);
}

/* Of a reduction: the sum of tangents, each times its element's part. Of no elements, the result does not move. */
static bool set_sum(struct transform *t, const struct tensor_node *n, tensor_value parts)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);

	return set(t, n,
	           put_axes(t, OP_reduce_sum, put_two(t, OP_mul, tangent_of(t, n, 0), parts), axes->whole, axes->n));
}

bool jvp_reduce_product(struct transform *t, const struct tensor_node *n) { return set_sum(t, n, put_others(t, n)); }
bool jvp_reduce_max(struct transform *t, const struct tensor_node *n) { return set_sum(t, n, put_parts(t, n)); }

bool jvp_cumprod(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0), rank = info_of(t, n, 0)->shape.rank;
	const tensor_value square = put_cumprod_derivative(t, n);
	unsigned to[TENSOR_MAX_RANK];

	if (!square)
		return false;
	for (unsigned i = 0; i < rank; i++)
		to[i] = i <= axis ? i : i + 1;
	const struct shape s = *shape_of_value(t, square);
	const tensor_value v = graph_broadcast(t->to, tangent_of(t, n, 0), &s, to, t->err);
	return set(t, n, put_axes(t, OP_reduce_sum, put_two(t, OP_mul, square, v), (int64_t[]){ axis }, 1));
}

bool jvp_sort(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const tensor_value from = put_permutation(t, n);

	for (uint32_t k = 0; k < n->operands; k++) {
		if (!tangent_of(t, n, k))
			continue;
		const tensor_value v = put_axis(t, OP_take_along, tangent_of(t, n, k), from, axis);
		if (!v)
			return false;
		t->d[n->first + k] = v;
	}
	return true;
}

bool jvp_window_max(struct transform *t, const struct tensor_node *n)
{
	struct patches p;

	if (!find_patches(t, n, &p))
		return false;
	const tensor_value v = put_patches(t, &p, tangent_of(t, n, 0), 0),
			   chosen = put_select(t, put_greatest(t, n, &p), v, put_number(t, 0, v));
	return set(t, n, put_axes(t, OP_reduce_sum, chosen, (int64_t[]){ p.together.rank - 1 }, 1));
}
