/* graph/eval_many.c - what operations mean that make one number of many. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"

/* ---- reductions: the order of the kernel language, which depends on the number of elements alone */

enum { PART = 1024, PARTIALS = 32 };

/* Of n elements that get() gives: parts of 1024, in each 32 partial results, halved until one is left. */
static union number reduced(enum tensor_op op, int wide, uint64_t n, union number (*get)(const void *user, uint64_t i),
                            const void *user)
{
	union number total = eval_neutral(op, wide), partial[PARTIALS];

	for (uint64_t part = 0; part < n; part += PART) {
		const uint64_t last = n - part < PART ? n : part + PART;
		for (unsigned l = 0; l < PARTIALS; l++)
			partial[l] = eval_neutral(op, wide);
		for (uint64_t i = part; i < last; i++)
			partial[i % PARTIALS] = eval_pair(op, wide, partial[i % PARTIALS], get(user, i));
		for (unsigned half = PARTIALS / 2; half; half /= 2)
			for (unsigned l = 0; l < half; l++)
				partial[l] = eval_pair(op, wide, partial[l], partial[l + half]);
		total = eval_pair(op, wide, total, partial[0]);
	}
	return total;
}

/* One after the other, as products are taken. */
static union number chained(enum tensor_op op, int wide, uint64_t n, union number (*get)(const void *user, uint64_t i),
                            const void *user)
{
	union number total = eval_neutral(op, wide);

	for (uint64_t i = 0; i < n; i++)
		total = eval_pair(op, wide, total, get(user, i));
	return total;
}

/* The elements of some dimensions, in row-major order. */
struct elements {
	const struct tensor *t;
	struct shape shape;
	uint64_t stride[TENSOR_MAX_RANK], first;
};

static union number element(const void *user, uint64_t i)
{
	const struct elements *x = user;
	uint64_t at = x->first;

	for (unsigned d = x->shape.rank; d-- > 0; i /= x->shape.dim[d])
		at += i % x->shape.dim[d] * x->stride[d];
	return tensor_get(x->t, at);
}

bool eval_reduce(struct evaluation *e)
{
	static const enum tensor_op ops[TENSOR_OPS] = {
		[OP_reduce_sum] = OP_add, [OP_reduce_product] = OP_mul, [OP_reduce_max] = OP_max,
		[OP_reduce_min] = OP_min, [OP_reduce_any] = OP_or,      [OP_reduce_all] = OP_and
	};
	const struct attribute *axes = tensor_node_attribute(e->n, ATTRIBUTE_axes);
	const struct shape *of = &e->in[0]->shape, *s = &e->out[0].shape;
	const int wide = tensor_wide_type(e->in[0]->type);
	uint64_t stride[TENSOR_MAX_RANK], kept[TENSOR_MAX_RANK], at[TENSOR_MAX_RANK] = { 0 }, i = 0;
	struct elements x = { .t = e->in[0] };
	unsigned n = 0;

	shape_strides(of, stride);
	for (unsigned d = 0; d < of->rank; d++) {
		bool goes = false;
		for (uint32_t k = 0; k < axes->n; k++)
			goes = goes || axes->whole[k] == (int64_t)d;
		if (goes) {
			x.stride[x.shape.rank] = stride[d];
			x.shape.dim[x.shape.rank++] = of->dim[d];
		} else {
			kept[n++] = stride[d];
		}
	}
	if (shape_elements(s) == 0)
		return true;
	do {
		const uint64_t count = shape_elements(&x.shape);
		x.first = eval_at(kept, at, n);
		tensor_put(&e->out[0], i++,
		           e->n->op == OP_reduce_product ? chained(OP_mul, wide, count, element, &x)
		                                         : reduced(ops[e->n->op], wide, count, element, &x));
	} while (shape_next(s, at));
	return true;
}

/* ---- along one axis */

/* The axis seen as the middle one of three. */
struct along {
	uint64_t outer, n, inner;
};

static struct along along_of(const struct evaluation *e)
{
	const struct shape *s = &e->in[0]->shape;
	const unsigned axis = (unsigned)tensor_node_whole(e->n, ATTRIBUTE_axis, 0, 0);

	return (struct along){ shape_part(s, 0, axis), s->dim[axis], shape_part(s, axis + 1, s->rank) };
}

static bool is_nan(int wide, union number x)
{
	return wide == JIT_TYPE_F32 ? isnan(x.f) : wide == JIT_TYPE_F64 && isnan(x.d);
}

/* Whether y comes before x, as the greatest or the least. */
static bool is_better(enum tensor_op op, int wide, union number x, union number y)
{
	if (is_nan(wide, x) || is_nan(wide, y))
		return !is_nan(wide, x);
	return op == OP_argmax ? eval_less(wide, x, y) : eval_less(wide, y, x);
}

bool eval_arg(struct evaluation *e)
{
	const struct along a = along_of(e);
	const int wide = tensor_wide_type(e->in[0]->type);
	const bool last = tensor_node_whole(e->n, ATTRIBUTE_last, 0, 0) != 0;

	for (uint64_t o = 0; o < a.outer; o++)
		for (uint64_t j = 0; j < a.inner; j++) {
			union number best = tensor_get(e->in[0], o * a.n * a.inner + j);
			uint64_t where = 0;
			for (uint64_t i = 1; i < a.n; i++) {
				const union number x = tensor_get(e->in[0], (o * a.n + i) * a.inner + j);
				if (is_better(e->n->op, wide, best, x) ||
				    (last && !is_better(e->n->op, wide, x, best))) {
					best = x;
					where = i;
				}
			}
			tensor_put(&e->out[0], o * a.inner + j, (union number){ .u = where });
		}
	return true;
}

bool eval_scan(struct evaluation *e)
{
	const struct along a = along_of(e);
	const int wide = tensor_wide_type(e->in[0]->type);
	const enum tensor_op op = e->n->op == OP_cumsum ? OP_add : OP_mul;
	const bool back = tensor_node_whole(e->n, ATTRIBUTE_reverse, 0, 0) != 0,
		   without = tensor_node_whole(e->n, ATTRIBUTE_exclusive, 0, 0) != 0;

	for (uint64_t o = 0; o < a.outer; o++)
		for (uint64_t j = 0; j < a.inner; j++) {
			union number total = eval_neutral(op, wide);
			for (uint64_t i = 0; i < a.n; i++) {
				const uint64_t at = (o * a.n + (back ? a.n - 1 - i : i)) * a.inner + j;
				const union number with = eval_pair(op, wide, total, tensor_get(e->in[0], at));
				tensor_put(&e->out[0], at, without ? total : with);
				total = with;
			}
		}
	return true;
}

/* Stable: insertion of each element behind those that come before it; merging makes it quick enough for tests. */
static bool comes_first(const struct evaluation *e, uint64_t x, uint64_t y, bool down)
{
	const int wide = tensor_wide_type(e->in[0]->type);
	const union number a = tensor_get(e->in[0], x), b = tensor_get(e->in[0], y);

	if (is_nan(wide, a) || is_nan(wide, b)) /* NaNs are greater than all */
		return down ? is_nan(wide, a) && !is_nan(wide, b) : !is_nan(wide, a);
	return down ? eval_less(wide, b, a) : eval_less(wide, a, b);
}

static void merge_sort(const struct evaluation *e, uint64_t *order, uint64_t *other, uint64_t n, bool down)
{
	for (uint64_t width = 1; width < n; width *= 2) {
		for (uint64_t first = 0; first < n; first += 2 * width) {
			const uint64_t middle = first + width < n ? first + width : n,
				       last = middle + width < n ? middle + width : n;
			uint64_t l = first, r = middle;
			for (uint64_t k = first; k < last; k++)
				other[k] = l < middle && (r == last || !comes_first(e, order[r], order[l], down))
				                   ? order[l++]
				                   : order[r++];
		}
		memcpy(order, other, n * sizeof *order);
	}
}

bool eval_sort(struct evaluation *e)
{
	const struct along a = along_of(e);
	const bool down = tensor_node_whole(e->n, ATTRIBUTE_descending, 0, 0) != 0;
	uint64_t *order = calloc(2 * a.n + 1, sizeof *order);

	if (!order)
		return error_set(e->err, ERROR_MEMORY, "there is no memory to sort");
	for (uint64_t o = 0; o < a.outer; o++)
		for (uint64_t j = 0; j < a.inner; j++) {
			for (uint64_t i = 0; i < a.n; i++)
				order[i] = (o * a.n + i) * a.inner + j;
			merge_sort(e, order, order + a.n, a.n, down);
			for (uint64_t i = 0; i < a.n; i++)
				for (uint32_t k = 0; k < e->n->operands; k++)
					tensor_put(&e->out[k], (o * a.n + i) * a.inner + j,
					           tensor_get(e->in[k], order[i]));
		}
	free(order);
	return true;
}
