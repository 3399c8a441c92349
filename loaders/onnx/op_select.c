/* loaders/onnx/op_select.c - results whose size depends on values, which must be known when the graph is drawn. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

static int64_t *room(struct op *o, uint64_t n)
{
	int64_t *p = n < UINT64_C(1) << 28 ? calloc(n + 1, sizeof *p) : NULL;

	if (!p)
		op_refuse(o, "there is no memory for %" PRIu64 " indices", n);
	return p;
}

static bool is_nonzero(const struct tensor *t, uint64_t i)
{
	return tensor_is_float(t->type) ? number_of(t, i) != 0 : tensor_get(t, i).u != 0;
}

/* Positions of elements that are not 0: a column for each. */
void op_nonzero(struct op *o)
{
	const struct tensor *t = op_known(o, 0);
	const uint64_t elements = t ? shape_elements(&t->shape) : 0;
	const unsigned rank = t ? t->shape.rank : 0;
	uint64_t n = 0, k = 0;

	if (!t)
		return;
	for (uint64_t i = 0; i < elements; i++)
		n += is_nonzero(t, i);
	int64_t *at = room(o, n * rank);
	for (uint64_t i = 0; at && i < elements; i++) {
		if (!is_nonzero(t, i))
			continue;
		uint64_t rest = i;
		for (unsigned d = rank; d-- > 0; rest /= t->shape.dim[d])
			at[d * n + k] = (int64_t)(rest % t->shape.dim[d]);
		k++;
	}
	if (at)
		o->out[0] = op_constant_shaped(o, at, &(struct shape){ .rank = 2, .dim = { rank, n } });
	free(at);
}

/* Slices where the condition is true, of the axis or of all elements. */
void op_compress(struct op *o)
{
	const struct tensor *t = op_known(o, 1);
	const bool flat = !op_attribute(o, "axis");
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const unsigned axis = flat ? 0 : op_axis(o, op_int(o, "axis", 0), s.rank);
	const uint64_t all = shape_elements(&s), given = t ? shape_elements(&t->shape) : 0,
		       n = flat     ? all
	                   : s.rank ? s.dim[axis]
	                            : 0;
	uint64_t k = 0;

	if (!t || op_failed(o))
		return;
	int64_t *at = room(o, given);
	for (uint64_t i = 0; at && i < given && i < n; i++)
		if (is_nonzero(t, i))
			at[k++] = (int64_t)i;
	if (at)
		o->out[0] = draw_take(&o->d, flat ? draw_dims(&o->d, o->in[0], 1, &all) : o->in[0],
		                      op_constant_ints(o, at, k), axis);
	free(at);
}

/* ---- unique: slices of an axis, or all elements as slices of one */

struct slices {
	const struct tensor *t;
	uint64_t outer, n, inner;
};

static int compare_numbers(const struct tensor *t, uint64_t x, uint64_t y)
{
	const union number a = tensor_get(t, x), b = tensor_get(t, y);

	switch (tensor_wide_type(t->type)) {
	case JIT_TYPE_F32: return (a.f > b.f) - (a.f < b.f);
	case JIT_TYPE_F64: return (a.d > b.d) - (a.d < b.d);
	case JIT_TYPE_I32:
	case JIT_TYPE_I64: return (a.i > b.i) - (a.i < b.i);
	default: return (a.u > b.u) - (a.u < b.u);
	}
}

static int compare(const struct slices *s, int64_t x, int64_t y)
{
	for (uint64_t o = 0; o < s->outer; o++)
		for (uint64_t i = 0; i < s->inner; i++) {
			const uint64_t base = o * s->n * s->inner + i;
			const int c =
				compare_numbers(s->t, base + (uint64_t)x * s->inner, base + (uint64_t)y * s->inner);
			if (c)
				return c;
		}
	return 0;
}

/* Merges runs: `order` becomes ascending, equal slices in their order. */
static void sort(const struct slices *s, int64_t *order, int64_t *other)
{
	for (uint64_t width = 1; width < s->n; width *= 2) {
		for (uint64_t first = 0; first < s->n; first += 2 * width) {
			const uint64_t middle = first + width < s->n ? first + width : s->n,
				       last = middle + width < s->n ? middle + width : s->n;
			uint64_t l = first, r = middle;
			for (uint64_t k = first; k < last; k++)
				other[k] = l < middle && (r == last || compare(s, order[l], order[r]) <= 0)
				                   ? order[l++]
				                   : order[r++];
		}
		memcpy(order, other, s->n * sizeof *order);
	}
}

struct uniques {
	int64_t *first, *inverse, *count, *order, *other;
	uint64_t n;
};

/* Groups of equal slices, in ascending order of them. */
static void group(const struct slices *s, struct uniques *u)
{
	for (uint64_t i = 0; i < s->n; i++)
		u->order[i] = (int64_t)i;
	sort(s, u->order, u->other);
	for (uint64_t i = 0; i < s->n; i++) {
		if (i == 0 || compare(s, u->order[i - 1], u->order[i]) != 0)
			u->first[u->n++] = u->order[i];
		u->inverse[u->order[i]] = (int64_t)u->n - 1;
		u->count[u->n - 1]++;
	}
}

/* Groups in the order in which they are first met. */
static void by_appearance(const struct slices *s, struct uniques *u)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->n; i++) /* order: a group's new number */
		if (u->first[u->inverse[i]] == (int64_t)i)
			u->order[u->inverse[i]] = (int64_t)n++;
	for (uint64_t g = 0; g < u->n; g++)
		u->other[u->order[g]] = u->first[g];
	memcpy(u->first, u->other, u->n * sizeof *u->first);
	for (uint64_t g = 0; g < u->n; g++)
		u->other[u->order[g]] = u->count[g];
	memcpy(u->count, u->other, u->n * sizeof *u->count);
	for (uint64_t i = 0; i < s->n; i++)
		u->inverse[i] = u->order[u->inverse[i]];
}

void op_unique(struct op *o)
{
	const struct tensor *t = op_known(o, 0);
	const bool flat = !op_attribute(o, "axis");
	const struct shape of = t ? t->shape : (struct shape){ 0 };
	const unsigned axis = flat ? 0 : op_axis(o, op_int(o, "axis", 0), of.rank);
	const uint64_t all = shape_elements(&of);
	struct slices s = { t, 1, all, 1 };
	struct uniques u = { .n = 0 };

	if (!t || op_failed(o))
		return;
	if (!flat)
		s = (struct slices){ t, shape_part(&of, 0, axis), of.dim[axis], shape_part(&of, axis + 1, of.rank) };
	u.first = room(o, s.n);
	u.inverse = room(o, s.n);
	u.count = room(o, s.n);
	u.order = room(o, s.n);
	u.other = room(o, s.n);
	if (!op_failed(o)) {
		group(&s, &u);
		if (op_int(o, "sorted", 1) == 0)
			by_appearance(&s, &u);
		const tensor_value at = op_constant_ints(o, u.first, u.n);
		o->out[0] = draw_take(&o->d, flat ? draw_dims(&o->d, o->in[0], 1, &all) : o->in[0], at, axis);
		if (o->outputs > 1)
			o->out[1] = at;
		if (o->outputs > 2)
			o->out[2] = op_constant_ints(o, u.inverse, s.n);
		if (o->outputs > 3)
			o->out[3] = op_constant_ints(o, u.count, u.n);
	}
	free(u.first);
	free(u.inverse);
	free(u.count);
	free(u.order);
	free(u.other);
}
