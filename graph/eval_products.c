/* graph/eval_products.c - what products, convolutions and windows mean: fused sums, in ascending order. */
#include <string.h>

#include "graph/eval_rules.h"

/* ---- dot */

/* Dimensions of one side: batches, its own, contracted ones. */
struct side {
	uint64_t stride[TENSOR_MAX_RANK], batch[TENSOR_MAX_RANK], own[TENSOR_MAX_RANK], sum[TENSOR_MAX_RANK];
	unsigned owns;
};

static void find_strides(const struct evaluation *e, unsigned operand, enum tensor_attribute sum,
                         enum tensor_attribute batch, struct side *s)
{
	const struct attribute *sums = tensor_node_attribute(e->n, sum), *batches = tensor_node_attribute(e->n, batch);

	shape_strides(&e->in[operand]->shape, s->stride);
	s->owns = 0;
	for (uint32_t i = 0; batches && i < batches->n; i++)
		s->batch[i] = s->stride[batches->whole[i]];
	for (uint32_t i = 0; sums && i < sums->n; i++)
		s->sum[i] = s->stride[sums->whole[i]];
	for (unsigned i = 0; i < e->in[operand]->shape.rank; i++)
		if (!attribute_has(sums, i) && !attribute_has(batches, i))
			s->own[s->owns++] = s->stride[i];
}

bool eval_dot(struct evaluation *e)
{
	const struct attribute *sums = tensor_node_attribute(e->n, ATTRIBUTE_left),
			       *batches = tensor_node_attribute(e->n, ATTRIBUTE_left_batch);
	const unsigned n = batches ? batches->n : 0;
	const struct shape *s = &e->out[0].shape;
	const int wide = tensor_wide_type(e->out[0].type);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, k[TENSOR_MAX_RANK] = { 0 }, i = 0;
	struct shape sum = { .rank = sums->n };
	struct side l, r;

	find_strides(e, 0, ATTRIBUTE_left, ATTRIBUTE_left_batch, &l);
	find_strides(e, 1, ATTRIBUTE_right, ATTRIBUTE_right_batch, &r);
	for (uint32_t d = 0; d < sums->n; d++)
		sum.dim[d] = e->in[0]->shape.dim[sums->whole[d]];
	if (shape_elements(s) == 0)
		return true;
	do {
		const uint64_t x = eval_at(l.batch, at, n) + eval_at(l.own, at + n, l.owns),
			       y = eval_at(r.batch, at, n) + eval_at(r.own, at + n + l.owns, r.owns);
		union number total = eval_neutral(OP_add, wide);
		if (shape_elements(&sum))
			do
				total = eval_fused(wide, tensor_get(e->in[0], x + eval_at(l.sum, k, sum.rank)),
				                   tensor_get(e->in[1], y + eval_at(r.sum, k, sum.rank)), total);
			while (shape_next(&sum, k));
		tensor_put(&e->out[0], i++, total);
	} while (shape_next(s, at));
	return true;
}

/* ---- windows */

struct windows {
	unsigned n; /* dimensions */
	int64_t stride[TENSOR_MAX_RANK], low[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK], input[TENSOR_MAX_RANK];
};

static void windows_of(const struct evaluation *e, unsigned n, struct windows *w)
{
	w->n = n;
	for (unsigned i = 0; i < n; i++) {
		w->stride[i] = tensor_node_whole(e->n, ATTRIBUTE_strides, i, 1);
		w->low[i] = tensor_node_whole(e->n, ATTRIBUTE_low, i, 0);
		w->dilation[i] = tensor_node_whole(e->n, ATTRIBUTE_dilation, i, 1);
		w->input[i] = tensor_node_whole(e->n, ATTRIBUTE_input_dilation, i, 1);
	}
}

/* Whether element k of the window at position `at` lies between two elements of the operand, where nothing is. */
static bool is_between(const struct windows *w, const uint64_t *at, const uint64_t *k)
{
	for (unsigned i = 0; i < w->n; i++)
		if (((int64_t)at[i] * w->stride[i] - w->low[i] + (int64_t)k[i] * w->dilation[i]) % w->input[i])
			return true;
	return false;
}

/* Where element k of the window at position `at` lies in the operand's dimensions; false: beside them, or between. */
static bool is_inside(const struct windows *w, const uint64_t *at, const uint64_t *k, const uint64_t *dim,
                      uint64_t *element)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->n; i++) {
		const int64_t p = (int64_t)at[i] * w->stride[i] - w->low[i] + (int64_t)k[i] * w->dilation[i];
		if (p < 0 || p % w->input[i] || (uint64_t)(p / w->input[i]) >= dim[i])
			return false;
		n = n * dim[i] + (uint64_t)(p / w->input[i]);
	}
	*element = n;
	return true;
}

static union number conv_at(const struct evaluation *e, const struct windows *w, const uint64_t *at, int wide)
{
	const struct shape *in = &e->in[0]->shape, *by = &e->in[1]->shape;
	const uint64_t groups = (uint64_t)tensor_node_whole(e->n, ATTRIBUTE_groups, 0, 1), channels = by->dim[1],
		       group = at[1] / (by->dim[0] / groups), size = shape_part(in, 2, in->rank),
		       taps = shape_part(by, 2, by->rank);
	struct shape window = { .rank = w->n };
	union number total = eval_neutral(OP_add, wide);
	uint64_t k[TENSOR_MAX_RANK] = { 0 };

	memcpy(window.dim, by->dim + 2, w->n * sizeof *window.dim);
	for (uint64_t c = 0; c < channels && taps; c++) {
		uint64_t tap = 0, element;
		do {
			union number x = { .u = 0 }; /* beside the operand */
			if (is_between(w, at + 2, k)) {
				tap++;
				continue;
			}
			if (is_inside(w, at + 2, k, in->dim + 2, &element))
				x = tensor_get(e->in[0], (at[0] * in->dim[1] + group * channels + c) * size + element);
			total = eval_fused(wide, x, tensor_get(e->in[1], (at[1] * channels + c) * taps + tap), total);
			tap++;
		} while (shape_next(&window, k));
	}
	return total;
}

bool eval_conv(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape;
	const int wide = tensor_wide_type(e->out[0].type);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, i = 0;
	struct windows w;

	windows_of(e, s->rank - 2, &w);
	if (shape_elements(s))
		do
			tensor_put(&e->out[0], i++, conv_at(e, &w, at, wide));
		while (shape_next(s, at));
	return true;
}

bool eval_window(struct evaluation *e)
{
	const struct shape *s = &e->out[0].shape, *in = &e->in[0]->shape;
	const struct attribute *window = tensor_node_attribute(e->n, ATTRIBUTE_window);
	const enum tensor_op op = e->n->op == OP_window_max ? OP_max : OP_add;
	const int wide = tensor_wide_type(e->out[0].type);
	const uint64_t size = shape_part(in, 2, in->rank);
	uint64_t at[TENSOR_MAX_RANK] = { 0 }, k[TENSOR_MAX_RANK] = { 0 }, i = 0, element;
	struct shape of = { .rank = window->n };
	struct windows w;

	windows_of(e, s->rank - 2, &w);
	for (unsigned d = 0; d < of.rank; d++)
		of.dim[d] = (uint64_t)window->whole[d];
	if (shape_elements(s) == 0)
		return true;
	do {
		union number total = eval_neutral(op, wide);
		do
			if (is_inside(&w, at + 2, k, in->dim + 2, &element))
				total = eval_pair(op, wide, total,
				                  tensor_get(e->in[0], (at[0] * in->dim[1] + at[1]) * size + element));
		while (shape_next(&of, k));
		tensor_put(&e->out[0], i++, total);
	} while (shape_next(s, at));
	return true;
}
