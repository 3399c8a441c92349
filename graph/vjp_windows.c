/* graph/vjp_windows.c - gradients of windows, and windows as an axis of their own, which jvp needs, too. */
#include <math.h>

#include "graph/transform_rules.h"

/* Each element counts in the windows that it lies in: sums of the cotangent, with strides as gaps. */
bool vjp_window_sum(struct transform *t, const struct tensor_node *n)
{
	const struct shape *x = &info_of(t, n, 0)->shape, *y = &t->from->value[n->first].shape;
	int64_t none[TENSOR_MAX_RANK] = { 0 }, gaps[TENSOR_MAX_RANK] = { 0 }, low[TENSOR_MAX_RANK],
		high[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < x->rank - 2; i++) {
		const int64_t stride = tensor_node_whole(n, ATTRIBUTE_strides, i, 1), count = (int64_t)y->dim[2 + i];
		dilation[i] = tensor_node_whole(n, ATTRIBUTE_dilation, i, 1);
		const int64_t reach = (tensor_node_whole(n, ATTRIBUTE_window, i, 1) - 1) * dilation[i];
		gaps[2 + i] = stride - 1;
		low[i] = reach - tensor_node_whole(n, ATTRIBUTE_low, i, 0);
		high[i] = (int64_t)x->dim[2 + i] + reach - (count ? (count - 1) * stride + 1 : 0) - low[i];
	}
	const tensor_value zero = put_zeros(t, info_of(t, n, 0)->type, &(struct shape){ 0 }),
			   d = put_pad(t, t->d[n->first], zero, none, none, gaps);
	const struct attribute a[] = { *tensor_node_attribute(n, ATTRIBUTE_window),
		                       { ATTRIBUTE_low, x->rank - 2, low, 0 },
		                       { ATTRIBUTE_high, x->rank - 2, high, 0 },
		                       { ATTRIBUTE_dilation, x->rank - 2, dilation, 0 } };
	return vjp_give(t, n, 0, put_node(t, OP_window_sum, &d, 1, a, 4));
}

/* Positions of a dimension's windows: [windows, elements of each]. */
static tensor_value put_index(struct transform *t, uint64_t windows, int64_t stride, int64_t size, int64_t dilation)
{
	const struct shape s = { 2, { windows, (uint64_t)size } };
	const tensor_value window = put_iota(t, JIT_TYPE_I64, &s, 0), element = put_iota(t, JIT_TYPE_I64, &s, 1),
			   first = put_two(t, OP_mul, window, put_number(t, (double)stride, window));

	return put_two(t, OP_add, first, put_two(t, OP_mul, element, put_number(t, (double)dilation, element)));
}

bool find_patches(struct transform *t, const struct tensor_node *n, struct patches *p)
{
	const struct shape *x = &info_of(t, n, 0)->shape, *y = &t->from->value[n->first].shape;
	uint64_t of = 1;

	*p = (struct patches){ .n = x->rank - 2, .padded = *x, .apart = { .rank = 2 * x->rank - 2 } };
	if (p->apart.rank > TENSOR_MAX_RANK)
		return transform_refuse(t, n, "along more than 3 dimensions");
	p->together = *y;
	for (unsigned i = 0; i < 2; i++) {
		p->apart.dim[i] = x->dim[i];
		p->order[i] = i;
	}
	for (unsigned i = 0; i < p->n; i++) {
		const int64_t stride = tensor_node_whole(n, ATTRIBUTE_strides, i, 1),
			      dilation = tensor_node_whole(n, ATTRIBUTE_dilation, i, 1),
			      window = tensor_node_whole(n, ATTRIBUTE_window, i, 1);
		const uint64_t windows = y->dim[2 + i];
		const int64_t size = windows ? ((int64_t)windows - 1) * stride + (window - 1) * dilation + 1 : 1;
		p->low[2 + i] = tensor_node_whole(n, ATTRIBUTE_low, i, 0);
		p->high[2 + i] = size - p->low[2 + i] - (int64_t)x->dim[2 + i];
		p->padded.dim[2 + i] = (uint64_t)size;
		p->index[i] = put_index(t, windows, stride, window, dilation);
		if (!p->index[i])
			return false;
		p->apart.dim[2 + 2 * i] = windows;
		p->apart.dim[3 + 2 * i] = (uint64_t)window;
		p->order[2 + i] = 2 + 2 * i;
		p->order[2 + p->n + i] = 3 + 2 * i;
		of *= (uint64_t)window;
	}
	p->together.dim[p->together.rank++] = of;
	return true;
}

tensor_value put_patches(struct transform *t, const struct patches *p, tensor_value x, double number)
{
	unsigned order[TENSOR_MAX_RANK];

	if (!x)
		return 0;
	const tensor_value beside = graph_full(t->to, number, t->to->value[x].type, &(struct shape){ 0 }, t->err);
	x = put_pad(t, x, beside, p->low, p->high, NULL);
	for (unsigned i = 0; i < p->n; i++)
		x = put_axis(t, OP_take, x, p->index[i], 2 + 2 * i);
	for (unsigned i = 0; i < p->apart.rank; i++)
		order[i] = (unsigned)p->order[i];
	return graph_reshape(t->to, graph_transpose(t->to, x, order, t->err), &p->together, t->err);
}

tensor_value put_greatest(struct transform *t, const struct tensor_node *n, const struct patches *p)
{
	const unsigned axis = p->together.rank - 1;
	unsigned kept[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < axis; i++)
		kept[i] = i;
	const tensor_value x = put_patches(t, p, operand_of(t, n, 0), (double)-INFINITY),
			   which = put_axis(t, OP_argmax, x, 0, axis);
	return put_two(t, OP_eq, put_iota(t, JIT_TYPE_I64, &p->together, axis),
	               graph_broadcast(t->to, which, &p->together, kept, t->err));
}

tensor_value put_unpatched(struct transform *t, const struct patches *p, tensor_value v)
{
	struct shape moved = { .rank = p->apart.rank };
	unsigned back[TENSOR_MAX_RANK];
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK];

	if (!v)
		return 0;
	for (unsigned i = 0; i < moved.rank; i++) {
		moved.dim[i] = p->apart.dim[p->order[i]];
		back[p->order[i]] = i;
	}
	for (unsigned i = 0; i < p->padded.rank; i++) {
		low[i] = -p->low[i];
		high[i] = -p->high[i];
	}
	const int type = t->to->value[v].type;
	v = graph_transpose(t->to, graph_reshape(t->to, v, &moved, t->err), back, t->err);
	for (unsigned i = p->n; i-- > 0;)
		v = put_untake(t, v, p->index[i], 2 + 2 * i, p->padded.dim[2 + i]);
	return put_pad(t, v, put_zeros(t, type, &(struct shape){ 0 }), low, high, NULL);
}

bool vjp_window_max(struct transform *t, const struct tensor_node *n)
{
	unsigned kept[TENSOR_MAX_RANK];
	struct patches p;

	if (!find_patches(t, n, &p))
		return false;
	for (unsigned i = 0; i + 1 < p.together.rank; i++)
		kept[i] = i;
	const tensor_value d = graph_broadcast(t->to, t->d[n->first], &p.together, kept, t->err),
			   v = put_select(t, put_greatest(t, n, &p), d, put_number(t, 0, d));
	return vjp_give(t, n, 0, put_unpatched(t, &p, v));
}
