/* graph/draw.c - single steps of drawing, with broadcasting. */
#include "graph/draw.h"

#include <inttypes.h>

#define OF(v) (&d->g->value[v].shape)

tensor_value draw_unary(struct draw *d, enum tensor_op op, tensor_value x) { return graph_unary(d->g, op, x, d->err); }

bool draw_common_shape(struct draw *d, const tensor_value *v, unsigned n, struct shape *s)
{
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

	*s = (struct shape){ 0 };
	for (unsigned i = 0; i < n; i++) {
		if (!v[i])
			return false;
		s->rank = OF(v[i])->rank > s->rank ? OF(v[i])->rank : s->rank;
	}
	for (unsigned k = 0; k < s->rank; k++) {
		uint64_t dim = 1;
		for (unsigned i = 0; i < n; i++) {
			const struct shape *of = OF(v[i]);
			const unsigned missing = s->rank - of->rank;
			const uint64_t x = k < missing ? 1 : of->dim[k - missing];
			if (x != 1 && dim != 1 && x != dim)
				return error_set(d->err, ERROR_ARGUMENT, "%s and %s cannot be broadcast to each other",
				                 shape_text(d->g->value[v[0]].type, OF(v[0]), a),
				                 shape_text(d->g->value[v[i]].type, of, b));
			dim = x == 1 ? dim : x;
		}
		s->dim[k] = dim;
	}
	return true;
}

tensor_value draw_broadcast(struct draw *d, tensor_value x, const struct shape *s)
{
	return graph_broadcast_last(d->g, x, s, d->err);
}

tensor_value draw_binary(struct draw *d, enum tensor_op op, tensor_value x, tensor_value y)
{
	struct shape s;

	if (!draw_common_shape(d, (tensor_value[]){ x, y }, 2, &s))
		return 0;
	return graph_binary(d->g, op, draw_broadcast(d, x, &s), draw_broadcast(d, y, &s), d->err);
}

tensor_value draw_select(struct draw *d, tensor_value condition, tensor_value x, tensor_value y)
{
	tensor_value v[] = { condition, x, y };
	struct shape s;

	if (!draw_common_shape(d, v, 3, &s))
		return 0;
	for (unsigned i = 0; i < 3; i++)
		v[i] = draw_broadcast(d, v[i], &s);
	return v[0] && v[1] && v[2] ? tensor_graph_add(d->g, OP_select, v, 3, NULL, 0, d->err) : 0;
}

tensor_value draw_scalar(struct draw *d, double number, int type)
{
	return graph_full(d->g, number, type, &(struct shape){ 0 }, d->err);
}

tensor_value draw_number(struct draw *d, double number, tensor_value like)
{
	const struct shape s = draw_shape(d, like); /* a copy: adding values moves them */

	return like ? graph_full(d->g, number, d->g->value[like].type, &s, d->err) : 0;
}

tensor_value draw_with(struct draw *d, enum tensor_op op, tensor_value x, double number)
{
	return graph_binary(d->g, op, x, draw_number(d, number, x), d->err);
}

tensor_value draw_from(struct draw *d, enum tensor_op op, double number, tensor_value x)
{
	return graph_binary(d->g, op, draw_number(d, number, x), x, d->err);
}

tensor_value draw_convert(struct draw *d, tensor_value x, int type) { return graph_convert(d->g, x, type, d->err); }

tensor_value draw_reshape(struct draw *d, tensor_value x, const struct shape *s)
{
	return graph_reshape(d->g, x, s, d->err);
}

tensor_value draw_dims(struct draw *d, tensor_value x, unsigned rank, const uint64_t *dim)
{
	struct shape s = { .rank = rank };

	if (rank > TENSOR_MAX_RANK) {
		error_set(d->err, ERROR_ARGUMENT, "%u dimensions, expected at most %d", rank, TENSOR_MAX_RANK);
		return 0;
	}
	for (unsigned i = 0; i < rank; i++)
		s.dim[i] = dim[i];
	return draw_reshape(d, x, &s);
}

tensor_value draw_expand(struct draw *d, tensor_value x, unsigned axis)
{
	const struct shape s = draw_shape(d, x);
	uint64_t dim[TENSOR_MAX_RANK + 1];

	for (unsigned i = 0; i <= s.rank; i++)
		dim[i] = i == axis ? 1 : s.dim[i > axis ? i - 1 : i];
	return draw_dims(d, x, s.rank + 1, dim);
}

tensor_value draw_squeeze(struct draw *d, tensor_value x, unsigned axis)
{
	const struct shape s = draw_shape(d, x);
	uint64_t dim[TENSOR_MAX_RANK];
	unsigned n = 0;

	for (unsigned i = 0; i < s.rank; i++)
		if (i != axis)
			dim[n++] = s.dim[i];
	return draw_dims(d, x, n, dim);
}

tensor_value draw_transpose(struct draw *d, tensor_value x, const unsigned *axes)
{
	return graph_transpose(d->g, x, axes, d->err);
}

tensor_value draw_swap(struct draw *d, tensor_value x, unsigned a, unsigned b)
{
	unsigned axes[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < TENSOR_MAX_RANK; i++)
		axes[i] = i == a ? b : i == b ? a : i;
	return draw_transpose(d, x, axes);
}

tensor_value draw_slice(struct draw *d, tensor_value x, unsigned axis, uint64_t from, uint64_t to, uint64_t step)
{
	int64_t start[TENSOR_MAX_RANK] = { 0 }, limit[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
	const struct shape s = draw_shape(d, x);

	if (!x || (from == 0 && to == s.dim[axis] && step == 1))
		return x;
	for (unsigned i = 0; i < s.rank; i++) {
		limit[i] = (int64_t)s.dim[i];
		strides[i] = 1;
	}
	start[axis] = (int64_t)from;
	limit[axis] = (int64_t)to;
	strides[axis] = (int64_t)step;
	const struct attribute a[] = { { ATTRIBUTE_start, s.rank, start, 0 },
		                       { ATTRIBUTE_limit, s.rank, limit, 0 },
		                       { ATTRIBUTE_strides, s.rank, strides, 0 } };
	return tensor_graph_add(d->g, OP_slice, &x, 1, a, 3, d->err);
}

/* Nodes have at most TENSOR_MAX_OPERANDS operands: more are joined in several steps. */
tensor_value draw_concatenate(struct draw *d, const tensor_value *v, unsigned n, unsigned axis)
{
	tensor_value part[TENSOR_MAX_OPERANDS];
	int64_t along = axis;
	unsigned parts = 0;

	for (unsigned i = 0; i < n; i++)
		if (!v[i])
			return 0;
	if (n == 1)
		return v[0];
	if (n <= TENSOR_MAX_OPERANDS)
		return tensor_graph_add(d->g, OP_concatenate, v, n, &(struct attribute){ ATTRIBUTE_axis, 1, &along, 0 },
		                        1, d->err);
	if (n > TENSOR_MAX_OPERANDS * TENSOR_MAX_OPERANDS) {
		error_set(d->err, ERROR_UNSUPPORTED, "%u parts are to be joined, expected at most %d", n,
		          TENSOR_MAX_OPERANDS * TENSOR_MAX_OPERANDS);
		return 0;
	}
	for (unsigned i = 0; i < n; i += TENSOR_MAX_OPERANDS)
		part[parts++] = draw_concatenate(
			d, v + i, n - i < TENSOR_MAX_OPERANDS ? n - i : (unsigned)TENSOR_MAX_OPERANDS, axis);
	return draw_concatenate(d, part, parts, axis);
}

tensor_value draw_pad(struct draw *d, tensor_value x, tensor_value with, const int64_t *low, const int64_t *high)
{
	int64_t from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK];
	const struct shape s = draw_shape(d, x);
	bool any = false;

	for (unsigned i = 0; i < s.rank; i++) {
		from[i] = low[i];
		to[i] = high[i];
		any = any || low[i] || high[i];
	}
	if (!x || !with || !any)
		return x && with ? x : 0;
	const struct attribute a[] = { { ATTRIBUTE_low, s.rank, from, 0 }, { ATTRIBUTE_high, s.rank, to, 0 } };
	return tensor_graph_add(d->g, OP_pad, (tensor_value[]){ x, with }, 2, a, 2, d->err);
}

tensor_value draw_reverse(struct draw *d, tensor_value x, unsigned axis)
{
	int64_t along = axis;

	return x ? tensor_graph_add(d->g, OP_reverse, &x, 1, &(struct attribute){ ATTRIBUTE_axes, 1, &along, 0 }, 1,
	                            d->err)
	         : 0;
}

tensor_value draw_iota(struct draw *d, int type, const struct shape *s, unsigned axis)
{
	int64_t of = type, along = axis, dim[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < s->rank; i++)
		dim[i] = (int64_t)s->dim[i];
	const struct attribute a[] = {
		{ ATTRIBUTE_type, 1, &of, 0 }, { ATTRIBUTE_shape, s->rank, dim, 0 }, { ATTRIBUTE_axis, 1, &along, 0 }
	};
	return tensor_graph_add(d->g, OP_iota, NULL, 0, a, 3, d->err);
}

tensor_value draw_take(struct draw *d, tensor_value x, tensor_value indices, unsigned axis)
{
	return draw_with_mode(d, OP_take, (tensor_value[]){ x, indices }, axis, -1);
}

tensor_value draw_with_mode(struct draw *d, enum tensor_op op, const tensor_value *v, int64_t axis, int64_t mode)
{
	struct attribute a[2];
	uint32_t n = 0;

	for (unsigned i = 0; i < tensor_ops[op].min; i++)
		if (!v[i])
			return 0;
	if (axis >= 0)
		a[n++] = (struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 };
	if (mode >= 0)
		a[n++] = (struct attribute){ ATTRIBUTE_mode, 1, &mode, 0 };
	return tensor_graph_add(d->g, op, v, tensor_ops[op].min, a, n, d->err);
}

tensor_value draw_reduce(struct draw *d, enum tensor_op op, tensor_value x, unsigned axes, bool keep)
{
	unsigned list[TENSOR_MAX_RANK], n = 0;
	struct shape s = draw_shape(d, x);

	for (unsigned i = 0; i < s.rank; i++)
		if (axes >> i & 1) {
			list[n++] = i;
			s.dim[i] = 1;
		}
	const tensor_value y = n ? graph_reduce(d->g, op, x, list, n, d->err) : x;
	return keep ? draw_reshape(d, y, &s) : y;
}

tensor_value draw_mean(struct draw *d, tensor_value x, unsigned axes, bool keep)
{
	const struct shape s = draw_shape(d, x);
	uint64_t n = 1;

	for (unsigned i = 0; i < s.rank; i++)
		n *= axes >> i & 1 ? s.dim[i] : 1;
	return draw_with(d, OP_div, draw_reduce(d, OP_reduce_sum, x, axes, keep), (double)n);
}

tensor_value draw_dot(struct draw *d, tensor_value x, tensor_value y, unsigned left, unsigned right, unsigned batches)
{
	int64_t l = left, r = right, batch[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < batches; i++)
		batch[i] = i;
	const struct attribute a[] = { { ATTRIBUTE_left, 1, &l, 0 },
		                       { ATTRIBUTE_right, 1, &r, 0 },
		                       { ATTRIBUTE_left_batch, batches, batch, 0 },
		                       { ATTRIBUTE_right_batch, batches, batch, 0 } };
	return x && y ? tensor_graph_add(d->g, OP_dot, (tensor_value[]){ x, y }, 2, a, 4, d->err) : 0;
}

tensor_value draw_dot_of(struct draw *d, tensor_value x, tensor_value y, int64_t left, int64_t right,
                         int64_t left_batch, int64_t right_batch)
{
	const struct attribute a[] = { { ATTRIBUTE_left, 1, &left, 0 },
		                       { ATTRIBUTE_right, 1, &right, 0 },
		                       { ATTRIBUTE_left_batch, 1, &left_batch, 0 },
		                       { ATTRIBUTE_right_batch, 1, &right_batch, 0 } };

	return x && y ? tensor_graph_add(d->g, OP_dot, (tensor_value[]){ x, y }, 2, a, 4, d->err) : 0;
}

/* Batches of both sides, broadcast to each other. */
static tensor_value batched(struct draw *d, tensor_value x, const struct shape *batch)
{
	const struct shape of = draw_shape(d, x);
	struct shape s = *batch;

	s.dim[s.rank++] = of.dim[of.rank - 2];
	s.dim[s.rank++] = of.dim[of.rank - 1];
	return draw_broadcast(d, x, &s);
}

static bool batches_of(struct draw *d, tensor_value x, tensor_value y, struct shape *batch)
{
	const struct shape a = draw_shape(d, x), b = draw_shape(d, y);

	*batch = (struct shape){ .rank = (a.rank > b.rank ? a.rank : b.rank) - 2 };
	for (unsigned i = 0; i < batch->rank; i++) {
		const unsigned k = batch->rank - i; /* from the end */
		const uint64_t m = k + 2 > a.rank ? 1 : a.dim[a.rank - 2 - k],
			       n = k + 2 > b.rank ? 1 : b.dim[b.rank - 2 - k];
		if (m != n && m != 1 && n != 1)
			return error_set(d->err, ERROR_ARGUMENT,
			                 "batches of %" PRIu64 " and %" PRIu64 " matrices cannot be multiplied", m, n);
		batch->dim[i] = m == 1 ? n : m;
	}
	return true;
}

tensor_value draw_matmul(struct draw *d, tensor_value x, tensor_value y)
{
	const unsigned l = draw_rank(d, x), r = draw_rank(d, y);
	struct shape batch;

	if (!x || !y)
		return 0;
	if (l == 0 || r == 0) {
		error_set(d->err, ERROR_ARGUMENT, "a matrix product of a scalar");
		return 0;
	}
	if (l == 1)
		return draw_dot(d, x, y, 0, r > 1 ? r - 2 : 0, 0);
	if (r <= 2)
		return draw_dot(d, x, y, l - 1, 0, 0);
	if (!batches_of(d, x, y, &batch))
		return 0;
	return draw_dot(d, batched(d, x, &batch), batched(d, y, &batch), batch.rank + 1, batch.rank, batch.rank);
}
