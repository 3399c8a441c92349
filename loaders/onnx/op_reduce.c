/* loaders/onnx/op_reduce.c - operators that make one number of many, and those along one axis. */
#include <inttypes.h>
#include <math.h>

#include "loaders/onnx/operators.h"

/* The axes of a reduction; all of them where none is given. *nothing: none is given, and that means none. */
static unsigned axes_of(struct op *o, unsigned rank, bool *nothing)
{
	int64_t axes[TENSOR_MAX_RANK];
	unsigned n;

	op_ints_of(o, 1, "axes", axes, TENSOR_MAX_RANK, &n);
	*nothing = n == 0 && op_int(o, "noop_with_empty_axes", 0) != 0;
	return n ? op_axes(o, axes, n, rank) : (1U << rank) - 1;
}

static tensor_value reduced(struct op *o, tensor_value x, unsigned axes, bool keep)
{
	struct draw *d = &o->d;

	switch (o->row->user) {
	case REDUCE_L1: return draw_reduce(d, OP_reduce_sum, draw_unary(d, OP_abs, x), axes, keep);
	case REDUCE_L2: {
		const tensor_value sum = draw_reduce(d, OP_reduce_sum, draw_binary(d, OP_mul, x, x), axes, keep);
		if (tensor_is_float(draw_type(d, sum)))
			return draw_unary(d, OP_sqrt, sum);
		return draw_unary(d, OP_sqrt, draw_convert(d, sum, JIT_TYPE_F64));
	}
	case REDUCE_LOG_SUM: return draw_unary(d, OP_log, draw_reduce(d, OP_reduce_sum, x, axes, keep));
	case REDUCE_LOG_SUM_EXP: return draw_log_sum_exp(d, x, axes, keep);
	case REDUCE_MEAN: return draw_mean(d, x, axes, keep);
	case REDUCE_SQUARES: return draw_reduce(d, OP_reduce_sum, draw_binary(d, OP_mul, x, x), axes, keep);
	default: return draw_reduce(d, OP_reduce_sum, x, axes, keep);
	}
}

void op_reduce(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	bool nothing;
	const unsigned axes = axes_of(o, draw_rank(d, o->in[0]), &nothing);
	const bool keep = op_int(o, "keepdims", 1) != 0;

	if (op_failed(o))
		return;
	if (nothing && (o->row->user == REDUCE_MEAN || o->row->user == REDUCE_SUM))
		o->out[0] = o->in[0];
	else
		o->out[0] = draw_convert(d, reduced(o, op_widen(o, o->in[0]), nothing ? 0 : axes, keep), type);
}

/* The rows themselves: greatest, least, product. Of bool they are or, and. */
void op_reduce_row(struct op *o)
{
	struct draw *d = &o->d;
	enum tensor_op op = (enum tensor_op)o->row->user;
	bool nothing;
	const unsigned axes = axes_of(o, draw_rank(d, o->in[0]), &nothing);
	const bool keep = op_int(o, "keepdims", 1) != 0;

	if (draw_type(d, o->in[0]) == JIT_TYPE_BOOL)
		op = op == OP_reduce_max ? OP_reduce_any : OP_reduce_all;
	if (!op_failed(o))
		o->out[0] = nothing ? o->in[0] : draw_reduce(d, op, o->in[0], axes, keep);
}

void op_arg(struct op *o)
{
	struct draw *d = &o->d;
	const unsigned rank = draw_rank(d, o->in[0]), axis = op_axis(o, op_int(o, "axis", 0), rank);
	const bool keep = op_int(o, "keepdims", 1) != 0;
	int64_t along = axis, last = op_int(o, "select_last_index", 0) != 0;

	if (op_failed(o))
		return;
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &along, 0 }, { ATTRIBUTE_last, 1, &last, 0 } };
	const tensor_value v = tensor_graph_add(d->g, (enum tensor_op)o->row->user, o->in, 1, a, 2, o->err);
	o->out[0] = keep ? draw_expand(d, v, axis) : v;
}

void op_cumulative(struct op *o)
{
	const unsigned rank = draw_rank(&o->d, o->in[0]), axis = op_axis(o, op_known_int(o, 1, 0), rank);
	int64_t along = axis, reverse = op_int(o, "reverse", 0) != 0, exclusive = op_int(o, "exclusive", 0) != 0;
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &along, 0 },
		                       { ATTRIBUTE_reverse, 1, &reverse, 0 },
		                       { ATTRIBUTE_exclusive, 1, &exclusive, 0 } };

	if (!op_failed(o))
		o->out[0] = tensor_graph_add(o->d.g, (enum tensor_op)o->row->user, o->in, 1, a, 3, o->err);
}

/* The first k of the axis in order, and where they were. Equal ones stay in their order: sort is stable. */
void op_top_k(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", -1), s.rank);
	const int64_t k = op_in(o, 1) ? op_known_int(o, 1, 0) : op_int(o, "k", 0);
	int64_t along = axis, down = op_int(o, "largest", 1) != 0;
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &along, 0 }, { ATTRIBUTE_descending, 1, &down, 0 } };

	if (!op_failed(o) && (k < 0 || (uint64_t)k > s.dim[axis]))
		op_refuse(o, "k is %" PRId64 " of %" PRIu64 " elements", k, s.dim[axis]);
	if (op_failed(o))
		return;
	const tensor_value at = draw_iota(d, JIT_TYPE_I64, &s, axis);
	const tensor_value v =
		tensor_graph_add(d->g, OP_sort, (tensor_value[]){ o->in[0], at }, at ? 2 : 0, a, 2, o->err);
	o->out[0] = draw_slice(d, v, axis, 0, (uint64_t)k, 1);
	if (op_wants(o, 1))
		o->out[1] = draw_slice(d, v ? v + 1 : 0, axis, 0, (uint64_t)k, 1);
}

/* ---- softmax */

/* Before opset 13, all dimensions from the axis on are one. */
void op_softmax(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const bool flat = o->opset < 13;
	const unsigned axis = op_axis(o, op_int(o, "axis", flat ? 1 : -1), s.rank);
	const int type = draw_type(d, o->in[0]);
	tensor_value x = op_widen(o, o->in[0]), y;

	if (op_failed(o))
		return;
	const unsigned axes = flat ? ((1U << s.rank) - 1) & ~((1U << axis) - 1) : 1U << axis;
	if (o->row->user == SOFTMAX) {
		y = draw_softmax(d, x, axes);
	} else if (o->row->user == LOG_SOFTMAX) {
		y = draw_log_softmax(d, x, axes);
	} else { /* 1 at the first of the greatest ones */
		struct shape as = s;
		if (flat)
			as = (struct shape){ .rank = 2,
				             .dim = { shape_part(&s, 0, axis), shape_part(&s, axis, s.rank) } };
		const unsigned along = flat ? 1 : axis;
		x = draw_reshape(d, x, &as);
		int64_t a = along;
		const tensor_value first = tensor_graph_add(d->g, OP_argmax, &x, x ? 1 : 0,
		                                            &(struct attribute){ ATTRIBUTE_axis, 1, &a, 0 }, 1, o->err);
		const tensor_value hit =
			draw_binary(d, OP_eq, draw_expand(d, first, along), draw_iota(d, JIT_TYPE_I64, &as, along));
		y = draw_reshape(d, hit, &s);
	}
	o->out[0] = draw_convert(d, y, type);
}

/* x / the norm of its row, 0 where the norm is. */
void op_lp_normalization(struct op *o)
{
	struct draw *d = &o->d;
	const unsigned rank = draw_rank(d, o->in[0]), axis = op_axis(o, op_int(o, "axis", -1), rank);
	const int64_t p = op_int(o, "p", 2);
	const tensor_value x = o->in[0];
	tensor_value norm;

	if (p != 1 && p != 2)
		op_refuse(o, "attribute p is %" PRId64 ", expected 1 or 2", p);
	if (op_failed(o))
		return;
	if (p == 1)
		norm = draw_reduce(d, OP_reduce_sum, draw_unary(d, OP_abs, x), 1U << axis, true);
	else
		norm = draw_unary(d, OP_sqrt,
		                  draw_reduce(d, OP_reduce_sum, draw_binary(d, OP_mul, x, x), 1U << axis, true));
	const tensor_value none = draw_with(d, OP_eq, norm, 0);
	o->out[0] = draw_select(d, none, draw_number(d, 0, x), draw_binary(d, OP_div, x, norm));
}
