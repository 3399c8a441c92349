/* graph/infer_move.c - types and shapes of operations that move elements. */
#include "graph/infer.h"

#include <inttypes.h>

bool infer_transpose(struct inference *x)
{
	const struct attribute *axes;
	bool marked[TENSOR_MAX_RANK];
	struct shape s = *x->shape[0];

	if (!infer_list(x, ATTRIBUTE_axes, s.rank, &axes) || !infer_axes(x, ATTRIBUTE_axes, s.rank, marked))
		return false;
	for (unsigned i = 0; i < s.rank; i++)
		s.dim[i] = x->shape[0]->dim[axes->whole[i]];
	return infer_result(x, x->type[0], &s);
}

bool infer_slice(struct inference *x)
{
	const struct attribute *start, *limit, *strides;
	struct shape s = *x->shape[0];

	if (!infer_list(x, ATTRIBUTE_start, s.rank, &start) || !infer_list(x, ATTRIBUTE_limit, s.rank, &limit) ||
	    !infer_list(x, ATTRIBUTE_strides, s.rank, &strides))
		return false;
	for (unsigned i = 0; i < s.rank; i++) {
		const int64_t from = start->whole[i], to = limit->whole[i], step = strides ? strides->whole[i] : 1;
		if (from < 0 || to < from || (uint64_t)to > s.dim[i] || step < 1)
			return error_set(x->err, ERROR_ARGUMENT,
			                 "slice from %" PRId64 " to %" PRId64 " in steps of %" PRId64
			                 " of a dimension of %" PRIu64,
			                 from, to, step, s.dim[i]);
		s.dim[i] = ((uint64_t)(to - from) + (uint64_t)step - 1) / (uint64_t)step;
	}
	return infer_result(x, x->type[0], &s);
}

bool infer_pad(struct inference *x)
{
	const struct attribute *low, *high, *interior;
	struct shape s = *x->shape[0];

	if (!infer_list(x, ATTRIBUTE_low, s.rank, &low) || !infer_list(x, ATTRIBUTE_high, s.rank, &high) ||
	    !infer_list(x, ATTRIBUTE_interior, s.rank, &interior))
		return false;
	if (x->type[1] != x->type[0] || x->shape[1]->rank != 0)
		return error_set(x->err, ERROR_ARGUMENT, "pad with a number that is no scalar of type %s",
		                 tensor_type_name(x->type[0]));
	for (unsigned i = 0; i < s.rank; i++) {
		const int64_t between = interior ? interior->whole[i] : 0, max = INT64_C(1) << 46;
		if (between < 0 || between > max || low->whole[i] > max || high->whole[i] > max ||
		    low->whole[i] < -max || high->whole[i] < -max ||
		    (s.dim[i] && (uint64_t)between > (uint64_t)max / s.dim[i]))
			return error_set(x->err, ERROR_ARGUMENT, "pad by %" PRId64 ", %" PRId64 " and %" PRId64,
			                 low->whole[i], high->whole[i], between);
		const int64_t n = (int64_t)s.dim[i] + (s.dim[i] ? (int64_t)(s.dim[i] - 1) * between : 0) +
		                  low->whole[i] + high->whole[i];
		if (n < 0)
			return error_set(x->err, ERROR_ARGUMENT, "pad to a dimension of %" PRId64, n);
		s.dim[i] = (uint64_t)n;
	}
	return infer_result(x, x->type[0], &s);
}

bool infer_concatenate(struct inference *x)
{
	struct shape s = *x->shape[0];
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
	unsigned axis;

	if (!infer_axis(x, ATTRIBUTE_axis, s.rank, &axis))
		return false;
	for (unsigned i = 1; i < x->n->operands; i++) {
		bool ok = x->type[i] == x->type[0] && x->shape[i]->rank == s.rank;
		for (unsigned d = 0; ok && d < s.rank; d++)
			ok = d == axis || x->shape[i]->dim[d] == s.dim[d];
		if (!ok)
			return error_set(x->err, ERROR_ARGUMENT, "concatenate of %s and %s along axis %u",
			                 shape_text(x->type[0], x->shape[0], a), shape_text(x->type[i], x->shape[i], b),
			                 axis);
		s.dim[axis] += x->shape[i]->dim[axis];
	}
	return infer_result(x, x->type[0], &s);
}

bool infer_reverse(struct inference *x)
{
	bool marked[TENSOR_MAX_RANK];

	return infer_axes(x, ATTRIBUTE_axes, x->shape[0]->rank, marked) && infer_result(x, x->type[0], x->shape[0]);
}

/* ---- by indices */

static bool has_indices(struct inference *x, unsigned operand)
{
	return tensor_is_integer(x->type[operand]) ||
	       error_set(x->err, ERROR_ARGUMENT, "indices of %s are %s, expected integers", x->op,
	                 tensor_type_name(x->type[operand]));
}

static bool fits_rank(struct inference *x, unsigned rank)
{
	return rank <= TENSOR_MAX_RANK || error_set(x->err, ERROR_ARGUMENT, "%s to %u dimensions, expected at most %d",
	                                            x->op, rank, TENSOR_MAX_RANK);
}

bool infer_take(struct inference *x)
{
	const struct shape *from = x->shape[0], *at = x->shape[1];
	struct shape s = { .rank = from->rank ? from->rank - 1 + at->rank : 0 };
	unsigned axis, n = 0;

	if (!has_indices(x, 1) || !infer_axis(x, ATTRIBUTE_axis, from->rank, &axis) || !fits_rank(x, s.rank))
		return false;
	for (unsigned i = 0; i < axis; i++)
		s.dim[n++] = from->dim[i];
	for (unsigned i = 0; i < at->rank; i++)
		s.dim[n++] = at->dim[i];
	for (unsigned i = axis + 1; i < from->rank; i++)
		s.dim[n++] = from->dim[i];
	return infer_result(x, x->type[0], &s);
}

/* Whether `of` has the dimensions of `in`, or less but along the axis any number. */
static bool lies_in(struct inference *x, const struct shape *of, const struct shape *in, unsigned axis)
{
	bool ok = of->rank == in->rank;

	for (unsigned i = 0; ok && i < in->rank; i++)
		ok = i == axis || of->dim[i] <= in->dim[i];
	return ok || error_set(x->err, ERROR_ARGUMENT, "indices of %s reach beyond what they index", x->op);
}

bool infer_take_along(struct inference *x)
{
	unsigned axis;

	return has_indices(x, 1) && infer_axis(x, ATTRIBUTE_axis, x->shape[0]->rank, &axis) &&
	       lies_in(x, x->shape[1], x->shape[0], axis) && infer_result(x, x->type[0], x->shape[1]);
}

/* How many numbers a position has; those of the first `batch` dimensions are the same in all. */
static bool positions(struct inference *x, unsigned batch, uint64_t *length)
{
	const struct shape *of = x->shape[0], *at = x->shape[1];

	if (at->rank <= batch || of->rank < batch)
		return error_set(x->err, ERROR_ARGUMENT, "%s with batch %u of %u and %u dimensions", x->op, batch,
		                 of->rank, at->rank);
	*length = at->dim[at->rank - 1];
	if (*length > of->rank - batch)
		return error_set(x->err, ERROR_ARGUMENT,
		                 "positions of %s have %" PRIu64 " numbers, expected at most %u", x->op, *length,
		                 of->rank - batch);
	for (unsigned i = 0; i < batch; i++)
		if (of->dim[i] != at->dim[i])
			return error_set(x->err, ERROR_ARGUMENT, "%s has batches of %" PRIu64 " and %" PRIu64, x->op,
			                 of->dim[i], at->dim[i]);
	return true;
}

bool infer_gather_nd(struct inference *x)
{
	const int64_t batch = tensor_node_whole(x->n, ATTRIBUTE_batch, 0, 0);
	const struct shape *of = x->shape[0], *at = x->shape[1];
	struct shape s = { 0 };
	uint64_t length;

	if (batch < 0 || batch > TENSOR_MAX_RANK)
		return error_set(x->err, ERROR_ARGUMENT, "batch of %s is %" PRId64, x->op, batch);
	if (!has_indices(x, 1) || !positions(x, (unsigned)batch, &length) ||
	    !fits_rank(x, at->rank - 1 + of->rank - (unsigned)batch - (unsigned)length))
		return false;
	for (unsigned i = 0; i + 1 < at->rank; i++)
		s.dim[s.rank++] = at->dim[i];
	for (unsigned i = (unsigned)batch + (unsigned)length; i < of->rank; i++)
		s.dim[s.rank++] = of->dim[i];
	return infer_result(x, x->type[0], &s);
}

static bool has_mode(struct inference *x)
{
	const int64_t mode = tensor_node_whole(x->n, ATTRIBUTE_mode, 0, SCATTER_SET);

	if (mode < 0 || mode >= SCATTER_MODES)
		return error_set(x->err, ERROR_ARGUMENT, "mode of %s is %" PRId64, x->op, mode);
	return x->type[2] == x->type[0] || error_set(x->err, ERROR_ARGUMENT, "%s of %s into %s", x->op,
	                                             tensor_type_name(x->type[2]), tensor_type_name(x->type[0]));
}

bool infer_scatter_nd(struct inference *x)
{
	const struct shape *of = x->shape[0], *at = x->shape[1];
	struct shape s = { 0 };
	uint64_t length;

	if (!has_indices(x, 1) || !has_mode(x) || !positions(x, 0, &length) ||
	    !fits_rank(x, at->rank - 1 + of->rank - (unsigned)length))
		return false;
	for (unsigned i = 0; i + 1 < at->rank; i++)
		s.dim[s.rank++] = at->dim[i];
	for (unsigned i = (unsigned)length; i < of->rank; i++)
		s.dim[s.rank++] = of->dim[i];
	if (!shape_equal(&s, x->shape[2]))
		return error_set(x->err, ERROR_ARGUMENT, "updates of %s do not have the shape that positions ask for",
		                 x->op);
	return infer_result(x, x->type[0], of);
}

bool infer_scatter_along(struct inference *x)
{
	unsigned axis;

	if (!has_indices(x, 1) || !has_mode(x) || !infer_axis(x, ATTRIBUTE_axis, x->shape[0]->rank, &axis) ||
	    !lies_in(x, x->shape[1], x->shape[0], axis))
		return false;
	if (!shape_equal(x->shape[1], x->shape[2]))
		return error_set(x->err, ERROR_ARGUMENT, "updates of %s do not have the shape of the indices", x->op);
	return infer_result(x, x->type[0], x->shape[0]);
}
