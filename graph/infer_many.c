/* graph/infer_many.c - types and shapes of operations that make one number of many. */
#include "graph/infer.h"

#include <inttypes.h>

bool infer_reduce(struct inference *x)
{
	const bool logic = tensor_ops[x->n->op].kind == KIND_REDUCE_BOOL;
	bool marked[TENSOR_MAX_RANK];
	struct shape s = { 0 };

	if (logic != (x->type[0] == JIT_TYPE_BOOL))
		return error_set(x->err, ERROR_ARGUMENT, "%s of %s, expected %s", x->op, tensor_type_name(x->type[0]),
		                 logic ? "bool" : "numbers");
	if (!infer_axes(x, ATTRIBUTE_axes, x->shape[0]->rank, marked))
		return false;
	for (unsigned i = 0; i < x->shape[0]->rank; i++)
		if (!marked[i])
			s.dim[s.rank++] = x->shape[0]->dim[i];
	return infer_result(x, x->type[0], &s);
}

bool infer_arg(struct inference *x)
{
	struct shape s = { 0 };
	unsigned axis;

	if (!infer_axis(x, ATTRIBUTE_axis, x->shape[0]->rank, &axis))
		return false;
	if (x->type[0] == JIT_TYPE_BOOL)
		return error_set(x->err, ERROR_ARGUMENT, "%s of bool, expected numbers", x->op);
	if (x->shape[0]->dim[axis] == 0)
		return error_set(x->err, ERROR_ARGUMENT, "%s of no elements", x->op);
	for (unsigned i = 0; i < x->shape[0]->rank; i++)
		if (i != axis)
			s.dim[s.rank++] = x->shape[0]->dim[i];
	return infer_result(x, JIT_TYPE_I64, &s);
}

bool infer_scan(struct inference *x)
{
	unsigned axis;

	if (x->type[0] == JIT_TYPE_BOOL)
		return error_set(x->err, ERROR_ARGUMENT, "%s of bool, expected numbers", x->op);
	return infer_axis(x, ATTRIBUTE_axis, x->shape[0]->rank, &axis) && infer_result(x, x->type[0], x->shape[0]);
}

bool infer_sort(struct inference *x)
{
	unsigned axis;

	if (!infer_axis(x, ATTRIBUTE_axis, x->shape[0]->rank, &axis))
		return false;
	for (unsigned i = 0; i < x->n->operands; i++) {
		if (!shape_equal(x->shape[i], x->shape[0]))
			return error_set(x->err, ERROR_ARGUMENT, "operands of sort have different shapes");
		x->out->type[i] = x->type[i];
		x->out->shape[i] = *x->shape[i];
	}
	x->out->results = x->n->operands;
	return true;
}

/* ---- products */

/* Axes of both sides that belong together: as many, of equal sizes. */
static bool pairs(struct inference *x, enum tensor_attribute left, enum tensor_attribute right, bool l[TENSOR_MAX_RANK],
                  bool r[TENSOR_MAX_RANK])
{
	const struct attribute *a = tensor_node_attribute(x->n, left), *b = tensor_node_attribute(x->n, right);

	if (!infer_axes(x, left, x->shape[0]->rank, l) || !infer_axes(x, right, x->shape[1]->rank, r))
		return false;
	if ((a ? a->n : 0) != (b ? b->n : 0))
		return error_set(x->err, ERROR_ARGUMENT, "%s and %s of dot have different lengths",
		                 tensor_attributes[left].name, tensor_attributes[right].name);
	for (uint32_t i = 0; a && i < a->n; i++) {
		const uint64_t n = x->shape[0]->dim[a->whole[i]], m = x->shape[1]->dim[b->whole[i]];
		if (n != m)
			return error_set(x->err, ERROR_ARGUMENT, "dot of dimensions of %" PRIu64 " and %" PRIu64, n, m);
	}
	return true;
}

bool infer_dot(struct inference *x)
{
	bool l[TENSOR_MAX_RANK], r[TENSOR_MAX_RANK], lb[TENSOR_MAX_RANK], rb[TENSOR_MAX_RANK];
	const struct attribute *batch = tensor_node_attribute(x->n, ATTRIBUTE_left_batch);
	struct shape s = { .rank = batch ? batch->n : 0 };

	if (x->type[0] != x->type[1] || x->type[0] == JIT_TYPE_BOOL)
		return error_set(x->err, ERROR_ARGUMENT, "dot of %s and %s, expected equal types of numbers",
		                 tensor_type_name(x->type[0]), tensor_type_name(x->type[1]));
	if (!pairs(x, ATTRIBUTE_left, ATTRIBUTE_right, l, r) ||
	    !pairs(x, ATTRIBUTE_left_batch, ATTRIBUTE_right_batch, lb, rb))
		return false;
	for (unsigned i = 0; i < TENSOR_MAX_RANK; i++)
		if ((l[i] && lb[i]) || (r[i] && rb[i]))
			return error_set(x->err, ERROR_ARGUMENT, "dot has an axis that is contracted and a batch, too");
	const unsigned rank =
		x->shape[0]->rank + x->shape[1]->rank - s.rank - 2 * tensor_node_attribute(x->n, ATTRIBUTE_left)->n;
	if (rank > TENSOR_MAX_RANK)
		return error_set(x->err, ERROR_ARGUMENT, "dot to %u dimensions, expected at most %d", rank,
		                 TENSOR_MAX_RANK);
	for (unsigned i = 0; i < s.rank; i++)
		s.dim[i] = x->shape[0]->dim[batch->whole[i]];
	for (unsigned i = 0; i < x->shape[0]->rank; i++)
		if (!l[i] && !lb[i])
			s.dim[s.rank++] = x->shape[0]->dim[i];
	for (unsigned i = 0; i < x->shape[1]->rank; i++)
		if (!r[i] && !rb[i])
			s.dim[s.rank++] = x->shape[1]->dim[i];
	return infer_result(x, x->type[0], &s);
}

/* ---- windows */

static bool is_between(struct inference *x, const struct attribute *a, unsigned i, int64_t min)
{
	const int64_t max = INT64_C(1) << 30;

	return !a || (a->whole[i] >= min && a->whole[i] <= max) ||
	       error_set(x->err, ERROR_ARGUMENT, "%s of %s is %" PRId64 ", expected %" PRId64 " to %" PRId64,
	                 tensor_attributes[a->name].name, x->op, a->whole[i], min, max);
}

bool infer_windows(struct inference *x, unsigned first, const uint64_t *window, const struct attribute *input,
                   struct shape *s)
{
	const struct attribute *strides, *low, *high, *dilation;
	const unsigned n = s->rank - first;

	if (!infer_list(x, ATTRIBUTE_strides, n, &strides) || !infer_list(x, ATTRIBUTE_low, n, &low) ||
	    !infer_list(x, ATTRIBUTE_high, n, &high) || !infer_list(x, ATTRIBUTE_dilation, n, &dilation))
		return false;
	for (unsigned i = 0; i < n; i++) {
		const int64_t min = -(INT64_C(1) << 30);
		if (!is_between(x, strides, i, 1) || !is_between(x, dilation, i, 1) || !is_between(x, input, i, 1) ||
		    !is_between(x, low, i, min) || !is_between(x, high, i, min))
			return false;
		if (window[i] > UINT64_C(1) << 30 || s->dim[first + i] > UINT64_C(1) << 31)
			return error_set(x->err, ERROR_ARGUMENT, "window of %s of %" PRIu64 " in %" PRIu64 " elements",
			                 x->op, window[i], s->dim[first + i]);
		const int64_t size =
			s->dim[first + i] ? ((int64_t)s->dim[first + i] - 1) * (input ? input->whole[i] : 1) + 1 : 0;
		const int64_t of = window[i] ? ((int64_t)window[i] - 1) * (dilation ? dilation->whole[i] : 1) + 1 : 0;
		const int64_t room = size + (low ? low->whole[i] : 0) + (high ? high->whole[i] : 0) - of;
		s->dim[first + i] = room < 0 ? 0 : (uint64_t)(room / (strides ? strides->whole[i] : 1)) + 1;
	}
	return true;
}

bool infer_conv(struct inference *x)
{
	const struct shape *in = x->shape[0], *w = x->shape[1];
	const int64_t groups = tensor_node_whole(x->n, ATTRIBUTE_groups, 0, 1);
	const struct attribute *input;
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
	struct shape s = *in;

	if (x->type[0] != x->type[1] || x->type[0] == JIT_TYPE_BOOL || in->rank != w->rank || in->rank < 3)
		return error_set(
			x->err, ERROR_ARGUMENT,
			"conv of %s and %s, expected numbers of one type: [n,channels,..] and [out,channels,..]",
			shape_text(x->type[0], in, a), shape_text(x->type[1], w, b));
	if (groups < 1 || in->dim[1] != w->dim[1] * (uint64_t)groups || w->dim[0] % (uint64_t)groups)
		return error_set(x->err, ERROR_ARGUMENT, "conv of %s and %s in %" PRId64 " groups",
		                 shape_text(x->type[0], in, a), shape_text(x->type[1], w, b), groups);
	if (!infer_list(x, ATTRIBUTE_input_dilation, in->rank - 2, &input) ||
	    !infer_windows(x, 2, w->dim + 2, input, &s))
		return false;
	s.dim[1] = w->dim[0];
	return infer_result(x, x->type[0], &s);
}

bool infer_window(struct inference *x)
{
	const struct attribute *a;
	struct shape s = *x->shape[0];
	uint64_t window[TENSOR_MAX_RANK];

	if (s.rank < 3 || x->type[0] == JIT_TYPE_BOOL)
		return error_set(x->err, ERROR_ARGUMENT, "%s, expected numbers of three dimensions or more", x->op);
	if (!infer_list(x, ATTRIBUTE_window, s.rank - 2, &a))
		return false;
	for (unsigned i = 0; i < s.rank - 2; i++) {
		if (!is_between(x, a, i, 1))
			return false;
		window[i] = (uint64_t)a->whole[i];
	}
	return infer_windows(x, 2, window, NULL, &s) && infer_result(x, x->type[0], &s);
}
