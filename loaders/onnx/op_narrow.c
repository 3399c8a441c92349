/* loaders/onnx/op_narrow.c - elements of less than 8 bits, and floats of 8 bits. Graphs hold them in wider types (u8,
 * i8 and f32), with exactly the numbers that the narrow types have. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "loaders/onnx/operators.h"

/* mantissa: bits of it. least: the exponent of subnormal numbers. */
static const struct narrow_type {
	int64_t number;
	uint8_t bits, mantissa;
	int8_t min;
	float max;
	bool has_infinity, has_two_zeros, has_nan;
} types[] = {
	{ ONNX_E4M3FN, 8, 3, -6, 448, false, true, true }, { ONNX_E4M3FNUZ, 8, 3, -7, 240, false, false, true },
	{ ONNX_E5M2, 8, 2, -14, 57344, true, true, true }, { ONNX_E5M2FNUZ, 8, 2, -15, 57344, false, false, true },
	{ ONNX_E2M1, 4, 1, 0, 6, false, true, false },     { ONNX_E8M0, 8, 0, -127, 0x1p127F, false, false, true },
	{ ONNX_UINT4, 4, 0, 0, 15, false, false, false },  { ONNX_INT4, 4, 0, 0, 7, false, false, false },
	{ ONNX_UINT2, 2, 0, 0, 3, false, false, false },   { ONNX_INT2, 2, 0, 0, 1, false, false, false }
};

static const struct narrow_type *find(int64_t number)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].number == number)
			return &types[i];
	return NULL;
}

unsigned onnx_narrow_bits(int64_t number) { return find(number) ? find(number)->bits : 0; }

int onnx_held_type(int64_t number)
{
	switch (number) {
	case ONNX_UINT4:
	case ONNX_UINT2: return JIT_TYPE_U8;
	case ONNX_INT4:
	case ONNX_INT2: return JIT_TYPE_I8;
	default: return find(number) ? JIT_TYPE_F32 : onnx_type(number);
	}
}

/* ---- what codes mean */

static float float_of(const struct narrow_type *t, unsigned code)
{
	const unsigned sign = code >> (t->bits - 1), rest = code & ((1U << (t->bits - 1)) - 1), m = t->mantissa,
		       field = rest >> m, part = rest & ((1U << m) - 1), last = (1U << (t->bits - 1 - m)) - 1;
	float x;

	if (t->number == ONNX_E8M0)
		return code == 255 ? NAN : ldexpf(1, (int)code - 127);
	if (!t->has_two_zeros && code == 0x80)
		return NAN;
	if (t->has_infinity && field == last)
		x = part ? NAN : INFINITY;
	else if (t->number == ONNX_E4M3FN && rest == 0x7f)
		x = NAN;
	else
		x = field ? ldexpf((float)((1U << m) + part), (int)field - 1 + t->min - (int)m)
		          : ldexpf((float)part, t->min - (int)m);
	return sign ? -x : x;
}

union number onnx_narrow_value(int64_t number, unsigned code)
{
	const struct narrow_type *t = find(number);
	union number x = { .u = 0 };

	if (onnx_held_type(number) == JIT_TYPE_F32)
		x.f = float_of(t, code);
	else if (onnx_held_type(number) == JIT_TYPE_U8)
		x.u = code;
	else
		x.i = (int64_t)code - (code >> (t->bits - 1) ? INT64_C(1) << t->bits : 0);
	return x;
}

/* ---- casts */

static tensor_value bits_of(struct op *o, tensor_value x, int64_t type)
{
	return x ? tensor_graph_add(o->d.g, OP_bitcast, &x, 1, &(struct attribute){ ATTRIBUTE_type, 1, &type, 0 }, 1,
	                            o->err)
	         : 0;
}

/* The low bits of an integer. */
static tensor_value low_bits(struct op *o, const struct narrow_type *t, tensor_value x)
{
	struct draw *d = &o->d;
	const int type = onnx_held_type(t->number);
	const tensor_value whole = tensor_is_float(draw_type(d, x)) ? draw_convert(d, x, JIT_TYPE_I64) : x,
			   y = draw_convert(d, whole, type);

	if (type == JIT_TYPE_U8)
		return draw_with(d, OP_and, y, (double)t->max);
	return draw_with(d, OP_shift_right, draw_with(d, OP_shift_left, y, 8.0 - t->bits), 8.0 - t->bits);
}

/* To the nearest number of the type, ties to even, as if its exponent had no end. */
static tensor_value rounded(struct op *o, const struct narrow_type *t, tensor_value x)
{
	struct draw *d = &o->d;
	const tensor_value exponent = draw_with(d, OP_and, bits_of(o, x, JIT_TYPE_U32), (double)0x7f800000),
			   low = draw_with(d, OP_max, exponent, (double)((uint32_t)(127 + t->min) << 23)),
			   step = bits_of(o, draw_with(d, OP_sub, low, (double)((uint32_t)t->mantissa << 23)),
	                                  JIT_TYPE_F32);

	return draw_binary(d, OP_mul, draw_unary(d, OP_round, draw_binary(d, OP_div, x, step)), step);
}

static tensor_value to_float(struct op *o, const struct narrow_type *t, tensor_value x, bool saturates)
{
	struct draw *d = &o->d;
	const double max = (double)t->max;
	tensor_value y = rounded(o, t, x);

	if (saturates || !t->has_nan) {
		y = draw_from(d, OP_min, max, draw_from(d, OP_max, -max, y));
	} else {
		const tensor_value over = draw_with(d, OP_gt, draw_unary(d, OP_abs, y), max);
		const tensor_value far =
			t->has_infinity ? draw_with(d, OP_mul, y, (double)INFINITY) : draw_number(d, (double)NAN, y);
		y = draw_select(d, over, far, y);
	}
	if (!t->has_nan)
		y = draw_select(d, draw_is_nan(d, y), draw_number(d, 0, y), y);
	return t->has_two_zeros ? y : draw_with(d, OP_add, y, 0);
}

/* Powers of two from 2^-127 on. round_mode says whether what lies between goes up, down, or to the nearest. */
static tensor_value to_power(struct op *o, tensor_value x, bool saturates)
{
	struct draw *d = &o->d;
	const bool up = op_is(o, "round_mode", "up", "up"), nearest = op_is(o, "round_mode", "up", "nearest");
	const double add = up        ? (double)0x7fffff
	                   : nearest ? (double)0x400000
	                             : 0,
		     one = (double)0x800000, half = (double)0x400000,
		     middle = up        ? half + 1
	                      : nearest ? (double)0x600000
	                                : one;
	const tensor_value bits = draw_with(d, OP_and, bits_of(o, x, JIT_TYPE_U32), (double)0x7fffffff);
	const tensor_value usual = draw_with(d, OP_and, draw_with(d, OP_add, bits, add), (double)0x7f800000),
			   small = draw_select(d, draw_with(d, OP_ge, bits, middle), draw_number(d, one, bits),
	                                       draw_number(d, half, bits));
	const tensor_value y = draw_select(d, draw_with(d, OP_lt, bits, one), small, usual),
			   cut = draw_with(d, OP_min, y, (double)0x7f000000);
	tensor_value wrong = draw_is_nan(d, x);

	if (!up && !nearest && !op_is(o, "round_mode", "up", "down"))
		op_refuse(o, "attribute round_mode is none of up, down and nearest");
	if (!saturates)
		wrong = draw_binary(d, OP_or, wrong,
		                    draw_binary(d, OP_or, draw_with(d, OP_gt, y, (double)0x7f000000),
		                                draw_with(d, OP_lt, bits, half)));
	const tensor_value power = bits_of(o, cut, JIT_TYPE_F32);
	return draw_select(d, wrong, draw_number(d, (double)NAN, power), power);
}

tensor_value op_narrow(struct op *o, tensor_value x, int64_t number)
{
	const struct narrow_type *t = find(number);
	const bool saturates = op_int(o, "saturate", 1) != 0;

	if (!t)
		return draw_convert(&o->d, x, onnx_type(number));
	if (onnx_held_type(number) != JIT_TYPE_F32)
		return low_bits(o, t, x);
	const tensor_value wide = draw_convert(&o->d, x, JIT_TYPE_F32);
	return number == ONNX_E8M0 ? to_power(o, wide, saturates) : to_float(o, t, wide, saturates);
}

void op_cast_to(struct op *o, int64_t number)
{
	o->out[0] = o->narrow_in[0] == number ? o->in[0] : op_narrow(o, o->in[0], number);
	o->narrow_out[0] = onnx_narrow_bits(number) ? (uint8_t)number : 0;
}

void op_narrow_range(int64_t number, double *min, double *max)
{
	const struct narrow_type *t = find(number);

	*max = (double)t->max;
	*min = number == ONNX_INT4 || number == ONNX_INT2 ? -*max - 1 : 0;
}
