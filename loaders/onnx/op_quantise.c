/* loaders/onnx/op_quantise.c - numbers as small integers with a scale and a zero point, and products of them. */
#include <inttypes.h>

#include "loaders/onnx/operators.h"

/* Scales or zero points beside x: one, one for each element of an axis, or one for each block along it. */
static tensor_value spread(struct op *o, tensor_value v, const struct shape *x, unsigned axis)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, v);
	const int64_t block = op_int(o, "block_size", 0);

	if (!v || shape_elements(&s) == 1)
		return draw_dims(d, v, 0, NULL);
	if (s.rank == 1 && block == 0 && x->rank)
		return graph_broadcast(d->g, v, x, &axis, o->err);
	if (s.rank != x->rank || block < 1 || (uint64_t)block * s.dim[axis] < x->dim[axis] ||
	    (uint64_t)block > TENSOR_MAX_BYTES) {
		op_refuse(o, "scales of %u dimensions in blocks of %" PRId64 " do not cover %u dimensions", s.rank,
		          block, x->rank);
		return 0;
	}
	const tensor_value apart = draw_expand(d, v, axis + 1);
	struct shape wide = draw_shape(d, apart), joined = s;
	if (!apart)
		return 0;
	wide.dim[axis + 1] = (uint64_t)block;
	joined.dim[axis] *= (uint64_t)block;
	return draw_slice(d, draw_reshape(d, draw_broadcast(d, apart, &wide), &joined), axis, 0, x->dim[axis], 1);
}

static unsigned axis_of(struct op *o, const struct shape *x)
{
	const int64_t axis = op_int(o, "axis", 1);

	return x->rank < 2 ? 0 : op_axis(o, axis, x->rank);
}

/* Rounds to nearest even, adds the zero point, and cuts to the type's range. narrow: of 4 or 2 bits, or 0. */
static tensor_value saturated(struct op *o, tensor_value x, tensor_value zero, int type, int64_t narrow)
{
	struct draw *d = &o->d;
	const unsigned bits = 8 * tensor_type_bytes(type);
	const bool has_sign = tensor_is_signed(type);
	double min = has_sign ? -(double)(1ULL << (bits - 1)) : 0,
	       max = (double)((1ULL << (has_sign ? bits - 1 : bits)) - 1);

	if (narrow)
		op_narrow_range(narrow, &min, &max);

	if (!tensor_is_integer(type) || bits > 16) {
		op_refuse(o, "numbers are quantised to %s, expected integers of 8 or 16 bits", tensor_type_name(type));
		return 0;
	}
	x = draw_unary(d, OP_round, x);
	if (zero)
		x = draw_binary(d, OP_add, x, draw_convert(d, zero, draw_type(d, x)));
	return draw_convert(d, draw_from(d, OP_min, max, draw_from(d, OP_max, min, x)), type);
}

static int type_named(struct op *o, const char *attribute, int usual)
{
	const int64_t number = op_int(o, attribute, 0);

	if (number && onnx_type(number) < 0)
		op_refuse(o, "attribute %s is the type %s, which graphs do not have", attribute,
		          onnx_type_name(number));
	return number ? onnx_type(number) : usual;
}

void op_quantize(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned axis = axis_of(o, &s);
	const int64_t number = op_int(o, "output_dtype", op_in(o, 2) ? o->narrow_in[2] : 0),
		      narrow = onnx_narrow_bits(number) ? number : 0;
	const int type = narrow ? onnx_held_type(narrow)
	                        : type_named(o, "output_dtype", op_in(o, 2) ? draw_type(d, o->in[2]) : JIT_TYPE_U8),
		  precision = type_named(o, "precision", draw_type(d, o->in[1]));

	if (op_failed(o))
		return;
	const int wide = tensor_is_float(precision) ? precision : JIT_TYPE_F32;
	const tensor_value scale = draw_convert(d, spread(o, o->in[1], &s, axis), wide),
			   zero = op_in(o, 2) ? spread(o, o->in[2], &s, axis) : 0;
	const tensor_value x = op_widen(o, draw_binary(d, OP_div, draw_convert(d, o->in[0], wide), scale));
	o->narrow_out[0] = (uint8_t)narrow;
	if (tensor_is_float(type))
		o->out[0] = op_narrow(o, zero ? draw_binary(d, OP_add, x, draw_convert(d, zero, draw_type(d, x))) : x,
		                      narrow);
	else
		o->out[0] = saturated(o, x, zero, type, narrow);
}

void op_dequantize(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned axis = axis_of(o, &s);
	const int type = type_named(o, "output_dtype", draw_type(d, o->in[1]));

	if (op_failed(o))
		return;
	const tensor_value scale = op_widen(o, spread(o, o->in[1], &s, axis));
	const int whole = tensor_is_float(draw_type(d, o->in[0])) ? draw_type(d, scale) : JIT_TYPE_I32;
	tensor_value x = draw_convert(d, o->in[0], whole);
	if (op_in(o, 2))
		x = draw_binary(d, OP_sub, x, draw_convert(d, spread(o, o->in[2], &s, axis), whole));
	o->out[0] = draw_convert(d, draw_binary(d, OP_mul, draw_convert(d, x, draw_type(d, scale)), scale), type);
}

/* To u8, with a range that has all numbers and 0. */
void op_dynamic_quantize(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = o->in[0];
	const unsigned all = (1U << draw_rank(d, x)) - 1;
	const tensor_value min = draw_from(d, OP_min, 0, draw_reduce(d, OP_reduce_min, x, all, false)),
			   max = draw_from(d, OP_max, 0, draw_reduce(d, OP_reduce_max, x, all, false));
	const tensor_value scale = draw_with(d, OP_div, draw_binary(d, OP_sub, max, min), 255);
	const tensor_value zero =
		saturated(o, draw_binary(d, OP_div, draw_unary(d, OP_neg, min), scale), 0, JIT_TYPE_U8, 0);

	o->out[0] = saturated(o, draw_binary(d, OP_div, x, scale), zero, JIT_TYPE_U8, 0);
	if (o->outputs > 1)
		o->out[1] = scale;
	if (o->outputs > 2)
		o->out[2] = zero;
}

/* ---- products */

/* Integers less their zero point. as: the shape that several zero points have beside x, or NULL. */
static tensor_value centred(struct op *o, tensor_value x, tensor_value zero, const struct shape *as)
{
	struct draw *d = &o->d;
	const tensor_value wide = draw_convert(d, x, JIT_TYPE_I32);

	if (!zero)
		return wide;
	const struct shape s = draw_shape(d, zero);
	tensor_value z = draw_convert(d, zero, JIT_TYPE_I32);
	if (shape_elements(&s) == 1)
		z = draw_dims(d, z, 0, NULL);
	else if (s.rank == 1 && as)
		z = draw_reshape(d, z, as);
	return draw_binary(d, OP_sub, wide, z);
}

/* One for each row of a matrix stands in a column. */
static struct shape column_of(struct op *o, tensor_value v)
{
	return (struct shape){ .rank = 2, .dim = { draw_dim(&o->d, v, 0), 1 } };
}

static tensor_value column(struct op *o, tensor_value v)
{
	const struct shape s = column_of(o, v);

	return draw_rank(&o->d, v) == 1 && s.dim[0] != 1 ? draw_reshape(&o->d, v, &s)
	       : draw_rank(&o->d, v) == 1                ? draw_dims(&o->d, v, 0, NULL)
	                                                 : v;
}

void op_matmul_integer(struct op *o)
{
	const struct shape rows =
		op_in(o, 2) && draw_rank(&o->d, o->in[2]) ? column_of(o, o->in[2]) : (struct shape){ 0 };

	o->out[0] =
		draw_matmul(&o->d, centred(o, o->in[0], op_in(o, 2), &rows), centred(o, o->in[1], op_in(o, 3), NULL));
}

void op_qlinear_matmul(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape rows = draw_rank(d, o->in[2]) ? column_of(o, o->in[2]) : (struct shape){ 0 };
	const tensor_value product =
		draw_matmul(d, centred(o, o->in[0], o->in[2], &rows), centred(o, o->in[3], o->in[5], NULL));
	const tensor_value scale = draw_binary(d, OP_mul, column(o, op_widen(o, o->in[1])), op_widen(o, o->in[4]));
	const tensor_value x = draw_binary(d, OP_mul, draw_convert(d, product, draw_type(d, scale)), scale);

	o->out[0] = saturated(o, draw_binary(d, OP_div, x, op_widen(o, o->in[6])), o->in[7], draw_type(d, o->in[7]), 0);
}

/* One for each output channel, beside weights or results of `rank` dimensions. */
static struct shape channel_shape(struct op *o, tensor_value v, unsigned rank, unsigned axis)
{
	struct shape s = { .rank = rank };

	for (unsigned i = 0; i < rank; i++)
		s.dim[i] = i == axis && draw_rank(&o->d, v) ? draw_dim(&o->d, v, 0) : 1;
	return s;
}

static tensor_value convolved(struct op *o, tensor_value x, tensor_value x_zero, tensor_value w, tensor_value w_zero)
{
	const struct shape s = draw_shape(&o->d, x), k = draw_shape(&o->d, w),
			   each = channel_shape(o, w_zero, k.rank, 0);
	struct windows v;

	if (s.rank < 3 || k.rank != s.rank) {
		op_refuse(o, "x and w have %u and %u dimensions", s.rank, k.rank);
		return 0;
	}
	for (unsigned i = 0; i + 2 < k.rank; i++)
		v.size[i] = (int64_t)k.dim[2 + i];
	if (!op_windows(o, &s, true, &v))
		return 0;
	return op_convolve(o, centred(o, x, x_zero, NULL), centred(o, w, w_zero, &each), &v, NULL,
	                   op_int(o, "group", 1));
}

void op_conv_integer(struct op *o) { o->out[0] = convolved(o, o->in[0], op_in(o, 2), o->in[1], op_in(o, 3)); }

void op_qlinear_conv(struct op *o)
{
	struct draw *d = &o->d;
	tensor_value y = convolved(o, o->in[0], o->in[2], o->in[3], o->in[5]);
	const unsigned rank = draw_rank(d, y);
	const struct shape scales = channel_shape(o, o->in[4], rank, 1),
			   biases = channel_shape(o, op_in(o, 8), rank, 1);

	if (op_in(o, 8))
		y = draw_binary(d, OP_add, y, draw_reshape(d, o->in[8], &biases));
	const tensor_value factor =
		draw_binary(d, OP_div, draw_dims(d, o->in[1], 0, NULL), draw_dims(d, o->in[6], 0, NULL));
	const tensor_value scale = draw_binary(d, OP_mul, draw_reshape(d, o->in[4], &scales), factor);
	const tensor_value x = draw_binary(d, OP_mul, draw_convert(d, y, draw_type(d, scale)), scale);
	o->out[0] = saturated(o, x, draw_dims(d, o->in[7], 0, NULL), draw_type(d, o->in[7]), 0);
}
