/* graph/pass_conv.c - convolutions of inputs with gaps (input_dilation), as several without.
 *
 * A result at position o has a product with those elements k of the window alone for which o - low + k * dilation is a
 * multiple of the input's dilation. So the results whose positions have one remainder are a convolution of their own,
 * with every input_dilation-th element of the window. Their results are then put between each other.
 */
#include <string.h>

#include "graph/passes_state.h"

enum { DIMS = TENSOR_MAX_RANK - 2, DIMS_MAX = 3 /* the results of all rests have two dimensions more for each */ };

struct gaps {
	struct copying *c;
	const struct tensor_node *n;
	unsigned dims;
	int64_t low[DIMS], dilation[DIMS], input[DIMS], in[DIMS], window[DIMS], out[DIMS], periods[DIMS];
};

/* The first element of the window that results with this rest have; `input`: none. */
static int64_t first_of(const struct gaps *x, unsigned d, int64_t rest)
{
	int64_t k = 0;

	while (k < x->input[d] && (k * x->dilation[d] - x->low[d] + rest) % x->input[d])
		k++;
	return k;
}

static int64_t divisor_of(int64_t a, int64_t b)
{
	while (b) {
		const int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static bool find_gaps(struct gaps *x, struct copying *c, const struct tensor_node *n)
{
	const struct shape *in = &c->to->value[n->operand[0]].shape, *by = &c->to->value[n->operand[1]].shape;
	bool any = false;

	*x = (struct gaps){ .c = c, .n = n, .dims = in->rank - 2 };
	if (x->dims > DIMS_MAX || !shape_elements(by))
		return false;
	for (unsigned d = 0; d < x->dims; d++) {
		const int64_t high = tensor_node_whole(n, ATTRIBUTE_high, d, 0);
		x->low[d] = tensor_node_whole(n, ATTRIBUTE_low, d, 0);
		x->dilation[d] = tensor_node_whole(n, ATTRIBUTE_dilation, d, 1);
		x->input[d] = tensor_node_whole(n, ATTRIBUTE_input_dilation, d, 1);
		x->in[d] = (int64_t)in->dim[2 + d];
		x->window[d] = (int64_t)by->dim[2 + d];
		x->out[d] = (x->in[d] - 1) * x->input[d] + 1 + x->low[d] + high - (x->window[d] - 1) * x->dilation[d];
		x->periods[d] = (x->out[d] + x->input[d] - 1) / x->input[d];
		if (tensor_node_whole(n, ATTRIBUTE_strides, d, 1) != 1 || x->in[d] < 1 || x->out[d] < 1 ||
		    divisor_of(x->dilation[d], x->input[d]) != 1 || x->input[d] > x->window[d])
			return false;
		any = any || x->input[d] > 1;
	}
	return any;
}

static tensor_value node(struct gaps *x, enum tensor_op op, const tensor_value *operand, uint32_t operands,
                         struct attribute *a, uint32_t attributes)
{
	const struct tensor_node n = { .op = op,
		                       .operands = operands,
		                       .operand = (tensor_value *)(uintptr_t)operand,
		                       .attribute = a,
		                       .attributes = attributes };

	for (uint32_t i = 0; i < operands; i++)
		if (!operand[i])
			return 0;
	return passes_put(x->c, &n);
}

static tensor_value reshaped(struct gaps *x, tensor_value v, int64_t *shape, uint32_t rank)
{
	struct attribute a = { ATTRIBUTE_shape, rank, shape, 0 };

	return node(x, OP_reshape, &v, 1, &a, 1);
}

/* Every so many-th element of the window. */
static tensor_value weights(struct gaps *x, const int64_t *first)
{
	int64_t start[TENSOR_MAX_RANK] = { 0 }, limit[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
	const struct shape *by = &x->c->to->value[x->n->operand[1]].shape;
	struct attribute a[] = { { ATTRIBUTE_start, by->rank, start, 0 },
		                 { ATTRIBUTE_limit, by->rank, limit, 0 },
		                 { ATTRIBUTE_strides, by->rank, strides, 0 } };

	for (unsigned d = 0; d < by->rank; d++) {
		limit[d] = (int64_t)by->dim[d];
		strides[d] = d < 2 ? 1 : x->input[d - 2];
		start[d] = d < 2 ? 0 : first[d - 2];
	}
	return node(x, OP_slice, &x->n->operand[1], 1, a, 3);
}

/* The results whose positions have these remainders, [n, o, periods of the first, 1, periods of the second, 1 ..]. */
static tensor_value part(struct gaps *x, const int64_t *rest)
{
	int64_t first[DIMS], low[DIMS], high[DIMS], groups = tensor_node_whole(x->n, ATTRIBUTE_groups, 0, 1);
	int64_t shape[TENSOR_MAX_RANK + DIMS_MAX];
	struct attribute a[] = { { ATTRIBUTE_low, x->dims, low, 0 },
		                 { ATTRIBUTE_high, x->dims, high, 0 },
		                 { ATTRIBUTE_dilation, x->dims, x->dilation, 0 },
		                 { ATTRIBUTE_groups, 1, &groups, 0 } };

	for (unsigned d = 0; d < x->dims; d++) {
		first[d] = first_of(x, d, rest[d]);
		low[d] = -((rest[d] - x->low[d] + first[d] * x->dilation[d]) / x->input[d]);
		const int64_t taps = (x->window[d] - first[d] + x->input[d] - 1) / x->input[d];
		high[d] = x->periods[d] - x->in[d] - low[d] + (taps - 1) * x->dilation[d];
	}
	const tensor_value in[] = { x->n->operand[0], weights(x, first) }, v = node(x, OP_conv, in, 2, a, 4);
	if (!v)
		return 0;
	shape[0] = (int64_t)x->c->to->value[v].shape.dim[0];
	shape[1] = (int64_t)x->c->to->value[v].shape.dim[1];
	for (unsigned d = 0; d < x->dims; d++) {
		shape[2 + 2 * d] = x->periods[d];
		shape[3 + 2 * d] = 1;
	}
	return reshaped(x, v, shape, 2 + 2 * x->dims);
}

/* Of the dimensions from d on, all rests between each other. */
static tensor_value joined(struct gaps *x, unsigned d, int64_t *rest)
{
	tensor_value v[TENSOR_MAX_OPERANDS];
	int64_t axis = 3 + 2 * (int64_t)d;
	struct attribute a = { ATTRIBUTE_axis, 1, &axis, 0 };

	if (d == x->dims)
		return part(x, rest);
	for (rest[d] = 0; rest[d] < x->input[d]; rest[d]++)
		v[rest[d]] = joined(x, d + 1, rest);
	return x->input[d] == 1 ? v[0] : node(x, OP_concatenate, v, (uint32_t)x->input[d], &a, 1);
}

tensor_value passes_put_conv(struct copying *c, const struct tensor_node *n)
{
	struct gaps x;
	int64_t rest[DIMS], shape[TENSOR_MAX_RANK], start[TENSOR_MAX_RANK] = { 0 };

	if (!find_gaps(&x, c, n))
		return 0;
	for (unsigned d = 0; d < x.dims; d++)
		if (x.input[d] > 8)
			return 0;
	tensor_value v = joined(&x, 0, rest);
	if (!v)
		return 0;
	const struct shape *s = &c->to->value[v].shape;
	bool is_longer = false;
	shape[0] = (int64_t)s->dim[0];
	shape[1] = (int64_t)s->dim[1];
	for (unsigned d = 0; d < x.dims; d++)
		shape[2 + d] = x.periods[d] * x.input[d];
	v = reshaped(&x, v, shape, 2 + x.dims);
	for (unsigned d = 0; d < x.dims; d++) {
		is_longer = is_longer || shape[2 + d] > x.out[d];
		shape[2 + d] = x.out[d];
	}
	struct attribute a[] = { { ATTRIBUTE_start, 2 + x.dims, start, 0 }, { ATTRIBUTE_limit, 2 + x.dims, shape, 0 } };
	return v && is_longer ? node(&x, OP_slice, &v, 1, a, 2) : v;
}
