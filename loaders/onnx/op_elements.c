/* loaders/onnx/op_elements.c - operators that make a number of one or two numbers. */
#include <inttypes.h>
#include <string.h>

#include "loaders/onnx/operators.h"

tensor_value op_widen(struct op *o, tensor_value x)
{
	const int type = draw_type(&o->d, x);

	return type == JIT_TYPE_F16 || type == JIT_TYPE_BF16 ? draw_convert(&o->d, x, JIT_TYPE_F32) : x;
}

void op_unary(struct op *o) { o->out[0] = draw_unary(&o->d, (enum tensor_op)o->row->user, o->in[0]); }
void op_binary(struct op *o) { o->out[0] = draw_binary(&o->d, (enum tensor_op)o->row->user, o->in[0], o->in[1]); }

/* Rows of operators.def that are drawn by a function of graph/draw_functions.c. */
void op_function(struct op *o)
{
	typedef tensor_value function(struct draw * d, tensor_value x);
	static function *const functions[] = {
		[FUNCTION_ACOS] = draw_acos,        [FUNCTION_ACOSH] = draw_acosh, [FUNCTION_ASIN] = draw_asin,
		[FUNCTION_ASINH] = draw_asinh,      [FUNCTION_ATAN] = draw_atan,   [FUNCTION_ATANH] = draw_atanh,
		[FUNCTION_COSH] = draw_cosh,        [FUNCTION_SINH] = draw_sinh,   [FUNCTION_TAN] = draw_tan,
		[FUNCTION_SOFTPLUS] = draw_softplus
	};
	const int type = draw_type(&o->d, o->in[0]);

	o->out[0] = draw_convert(&o->d, functions[o->row->user](&o->d, op_widen(o, o->in[0])), type);
}

void op_relu(struct op *o) { o->out[0] = draw_relu(&o->d, o->in[0]); }
void op_reciprocal(struct op *o) { o->out[0] = draw_reciprocal(&o->d, o->in[0]); }
void op_is_nan(struct op *o) { o->out[0] = draw_is_nan(&o->d, o->in[0]); }

void op_is_inf(struct op *o)
{
	const bool up = op_int(o, "detect_positive", 1) != 0, down = op_int(o, "detect_negative", 1) != 0;

	o->out[0] = draw_is_infinite(&o->d, o->in[0], up, down);
}

/* Max, Min, Sum and Mean take any number of operands. NaN in one of them is the result. */
static tensor_value with_nan(struct op *o, enum tensor_op op, tensor_value x, tensor_value y)
{
	const tensor_value z = draw_binary(&o->d, op, x, y);

	if ((op != OP_max && op != OP_min) || !tensor_is_float(draw_type(&o->d, x)))
		return z;
	return draw_select(&o->d, draw_is_nan(&o->d, x), x, z); /* the row gives y where y is NaN */
}

void op_variadic(struct op *o)
{
	const enum tensor_op op = o->row->user == VARIADIC_MEAN ? OP_add : (enum tensor_op)o->row->user;
	tensor_value x = o->in[0];

	for (uint32_t i = 1; i < o->inputs; i++)
		x = with_nan(o, op, x, o->in[i]);
	if (o->row->user == VARIADIC_MEAN)
		x = draw_with(&o->d, OP_div, x, o->inputs);
	o->out[0] = x;
}

void op_where(struct op *o) { o->out[0] = draw_select(&o->d, o->in[0], o->in[1], o->in[2]); }

void op_clip(struct op *o)
{
	const tensor_value x = o->in[0];
	tensor_value min = op_in(o, 1), max = op_in(o, 2);

	if (op_attribute(o, "min"))
		min = draw_scalar(&o->d, op_float(o, "min", 0), draw_type(&o->d, x));
	if (op_attribute(o, "max"))
		max = draw_scalar(&o->d, op_float(o, "max", 0), draw_type(&o->d, x));
	o->out[0] = x;
	if (min) /* NaN stays: the row gives its second operand */
		o->out[0] = draw_binary(&o->d, OP_max, min, o->out[0]);
	if (max)
		o->out[0] = draw_binary(&o->d, OP_min, max, o->out[0]);
}

/* ---- powers and remainders */

/* x to the power of a known integer, or by the bits of an unknown one. */
static tensor_value integer_power(struct op *o, tensor_value x, tensor_value y)
{
	struct draw *d = &o->d;
	const unsigned bits = 8 * tensor_type_bytes(draw_type(d, y));
	tensor_value power = draw_number(d, 1, x), square = x;

	for (unsigned i = 0; i < bits; i++) {
		const tensor_value bit = draw_with(d, OP_and, draw_with(d, OP_shift_right, y, i), 1);
		power = draw_select(d, draw_with(d, OP_ne, bit, 0), draw_binary(d, OP_mul, power, square), power);
		square = draw_binary(d, OP_mul, square, square);
	}
	return power;
}

void op_pow(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]), by = draw_type(d, o->in[1]);

	if (tensor_is_float(type)) {
		o->out[0] = draw_binary(d, OP_pow, o->in[0], draw_convert(d, o->in[1], type));
	} else if (tensor_is_float(by)) {
		const tensor_value x = draw_convert(d, o->in[0], JIT_TYPE_F64),
				   y = draw_convert(d, o->in[1], JIT_TYPE_F64);
		o->out[0] = draw_convert(d, draw_binary(d, OP_pow, x, y), type);
	} else {
		o->out[0] = integer_power(o, o->in[0], o->in[1]);
	}
}

/* fmod=1: the sign of the dividend, as the row has it; else that of the divisor. */
void op_mod(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value rest = draw_binary(d, OP_rem, o->in[0], o->in[1]);
	const int type = draw_type(d, o->in[0]);

	o->out[0] = rest;
	if (op_int(o, "fmod", 0) || !(tensor_is_float(type) || tensor_is_signed(type)))
		return;
	const tensor_value zero = draw_number(d, 0, rest);
	const tensor_value differ =
		draw_binary(d, OP_ne, draw_binary(d, OP_lt, rest, zero), draw_with(d, OP_lt, o->in[1], 0));
	const tensor_value wrong = draw_binary(d, OP_and, draw_binary(d, OP_ne, rest, zero), differ);
	o->out[0] = draw_select(d, wrong, draw_binary(d, OP_add, rest, o->in[1]), rest);
}

/* Up to opset 27 shifts are of unsigned integers; a shift by the width or more, or by a negative number, gives 0 or
 * the sign. */
void op_bit_shift(struct op *o)
{
	const bool left = op_is(o, "direction", "", "LEFT"), right = op_is(o, "direction", "", "RIGHT");

	if (!left && !right)
		op_refuse(o, "attribute direction is neither LEFT nor RIGHT");
	else
		o->out[0] = draw_binary(&o->d, left ? OP_shift_left : OP_shift_right, o->in[0], o->in[1]);
}

/* ---- types */

static int type_attribute(struct op *o, const char *name, int64_t usual)
{
	const int64_t to = op_int(o, name, usual);

	if (onnx_type(to) < 0)
		op_refuse(o, "attribute %s is the type %s, which graphs do not have", name, onnx_type_name(to));
	return onnx_type(to);
}

/* A cast of ONNX from float to a narrow integer keeps the low bits of the integer, as the row does. */
void op_cast(struct op *o)
{
	const int64_t to = op_int(o, "to", 0);

	if (onnx_held_type(to) < 0)
		type_attribute(o, "to", 0);
	else
		op_cast_to(o, to);
}

void op_cast_like(struct op *o)
{
	if (o->narrow_in[1])
		op_cast_to(o, o->narrow_in[1]);
	else
		o->out[0] = draw_convert(&o->d, o->in[0], draw_type(&o->d, o->in[1]));
}

void op_bit_cast(struct op *o)
{
	int64_t type = type_attribute(o, "to", 0);

	if (op_failed(o))
		return;
	if (draw_type(&o->d, o->in[0]) == JIT_TYPE_BOOL && type != JIT_TYPE_BOOL) /* its byte is 0 or 1 */
		o->in[0] = draw_convert(&o->d, o->in[0], JIT_TYPE_U8);
	o->out[0] = tensor_graph_add(o->d.g, OP_bitcast, o->in, 1, &(struct attribute){ ATTRIBUTE_type, 1, &type, 0 },
	                             1, o->err);
}

/* ---- activations */

void op_elu(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const tensor_value x = op_widen(o, o->in[0]);
	const double alpha = op_float(o, "alpha", o->row->user == ACTIVATION_SELU ? 1.67326319217681884765625 : 1),
		     gamma = o->row->user == ACTIVATION_SELU ? op_float(o, "gamma", 1.05070102214813232421875) : 1;
	tensor_value below = o->row->user == ACTIVATION_CELU ? draw_with(d, OP_div, x, alpha) : x;

	below = draw_with(d, OP_mul, draw_expm1(d, below), alpha);
	const tensor_value y = draw_select(d, draw_with(d, OP_lt, x, 0), below, x);
	o->out[0] = draw_convert(d, gamma == 1 ? y : draw_with(d, OP_mul, y, gamma), type);
}

void op_leaky_relu(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = o->in[0], below = draw_with(d, OP_mul, x, op_float(o, "alpha", 0.01));

	o->out[0] = draw_select(d, draw_with(d, OP_lt, x, 0), below, x);
}

void op_prelu(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = o->in[0], below = draw_binary(d, OP_mul, x, o->in[1]);

	o->out[0] = draw_select(d, draw_with(d, OP_lt, x, 0), below, x);
}

void op_thresholded_relu(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value above = draw_with(d, OP_gt, o->in[0], op_float(o, "alpha", 1));

	o->out[0] = draw_select(d, above, o->in[0], draw_number(d, 0, o->in[0]));
}

/* max(0, min(1, alpha x + beta)); HardSwish is x times that. */
void op_hard_sigmoid(struct op *o)
{
	struct draw *d = &o->d;
	const bool swish = o->row->user == ACTIVATION_HARD_SWISH;
	const double alpha = swish ? 1.0 / 6 : op_float(o, "alpha", 0.2), beta = swish ? 0.5 : op_float(o, "beta", 0.5);
	const tensor_value x = o->in[0], line = draw_with(d, OP_add, draw_with(d, OP_mul, x, alpha), beta);
	const tensor_value y = draw_from(d, OP_max, 0, draw_from(d, OP_min, 1, line));

	o->out[0] = swish ? draw_binary(d, OP_mul, x, y) : y;
}

void op_softsign(struct op *o)
{
	struct draw *d = &o->d;

	o->out[0] = draw_binary(d, OP_div, o->in[0], draw_with(d, OP_add, draw_unary(d, OP_abs, o->in[0]), 1));
}

/* x < -lambd: x + bias; x > lambd: x - bias; else 0. */
void op_shrink(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = o->in[0];
	const double bias = op_float(o, "bias", 0), lambd = op_float(o, "lambd", 0.5);
	const tensor_value up = draw_with(d, OP_gt, x, lambd), down = draw_with(d, OP_lt, x, -lambd);
	const tensor_value rest = draw_select(d, up, draw_with(d, OP_sub, x, bias), draw_number(d, 0, x));

	o->out[0] = draw_select(d, down, draw_with(d, OP_add, x, bias), rest);
}

void op_gelu(struct op *o)
{
	const bool by_tanh = op_is(o, "approximate", "none", "tanh");

	o->out[0] = draw_convert(&o->d, draw_gelu(&o->d, op_widen(o, o->in[0]), by_tanh), draw_type(&o->d, o->in[0]));
}

void op_mish(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = op_widen(o, o->in[0]);
	const tensor_value y = draw_binary(d, OP_mul, x, draw_unary(d, OP_tanh, draw_softplus(d, x)));

	o->out[0] = draw_convert(d, y, draw_type(d, o->in[0]));
}

static tensor_value swish(struct draw *d, tensor_value x, double alpha)
{
	return draw_binary(d, OP_mul, x, draw_unary(d, OP_logistic, draw_with(d, OP_mul, x, alpha)));
}

void op_swish(struct op *o)
{
	const tensor_value y = swish(&o->d, op_widen(o, o->in[0]), op_float(o, "alpha", 1));

	o->out[0] = draw_convert(&o->d, y, draw_type(&o->d, o->in[0]));
}

void op_swiglu(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value gate = swish(d, op_widen(o, o->in[0]), op_float(o, "alpha", 1));

	o->out[0] = draw_convert(d, draw_binary(d, OP_mul, gate, op_widen(o, o->in[1])), draw_type(d, o->in[0]));
}
