/* graph/draw_functions.c - functions of numbers that have no row of their own. */
#include "graph/draw.h"

#include <math.h>

tensor_value draw_reciprocal(struct draw *d, tensor_value x) { return draw_from(d, OP_div, 1, x); }

/* log(1 + x) is log(w) of the rounded w; the factor x / (w - 1) gives back what rounding took. */
tensor_value draw_log1p(struct draw *d, tensor_value x)
{
	const tensor_value w = draw_with(d, OP_add, x, 1), step = draw_with(d, OP_sub, w, 1);
	const tensor_value corrected =
		draw_binary(d, OP_mul, draw_unary(d, OP_log, w), draw_binary(d, OP_div, x, step));
	const tensor_value is_small = draw_with(d, OP_eq, step, 0),
			   is_great = draw_with(d, OP_eq, draw_unary(d, OP_abs, w), (double)INFINITY);

	return draw_select(d, is_small, x, draw_select(d, is_great, w, corrected));
}

/* The same the other way: exp(x) - 1 times x / log(exp(x)). */
tensor_value draw_expm1(struct draw *d, tensor_value x)
{
	const tensor_value w = draw_unary(d, OP_exp, x), step = draw_with(d, OP_sub, w, 1);
	const tensor_value corrected =
		draw_binary(d, OP_mul, step, draw_binary(d, OP_div, x, draw_unary(d, OP_log, w)));
	const tensor_value is_small = draw_with(d, OP_eq, w, 1),
			   is_far = draw_with(d, OP_gt, draw_unary(d, OP_abs, x), 0.5);

	return draw_select(d, is_small, x, draw_select(d, is_far, step, corrected));
}

tensor_value draw_tan(struct draw *d, tensor_value x)
{
	return draw_binary(d, OP_div, draw_unary(d, OP_sin, x), draw_unary(d, OP_cos, x));
}

/* Of |x| up to tan(pi / 8), by its series: x - x^3 / 3 + x^5 / 5 .. */
static tensor_value atan_series(struct draw *d, tensor_value x)
{
	const tensor_value square = draw_binary(d, OP_mul, x, x);
	int terms = draw_type(d, x) == JIT_TYPE_F64 ? 21 : 10;
	tensor_value sum = draw_number(d, (terms & 1 ? -1.0 : 1.0) / (2 * terms + 1), x);

	while (terms-- > 1) {
		const tensor_value next = draw_number(d, (terms & 1 ? -1.0 : 1.0) / (2 * terms + 1), x);
		sum = sum && square && next ? tensor_graph_add(d->g, OP_fma, (tensor_value[]){ sum, square, next }, 3,
		                                               NULL, 0, d->err)
		                            : 0;
	}
	const tensor_value cube = draw_binary(d, OP_mul, x, square);
	return draw_binary(d, OP_add, x, draw_binary(d, OP_mul, cube, sum));
}

/* Beyond 1: pi / 2 - atan(1 / x); beyond tan(pi / 8): pi / 4 + atan((x - 1) / (x + 1)). */
tensor_value draw_atan(struct draw *d, tensor_value x)
{
	const tensor_value size = draw_unary(d, OP_abs, x), is_great = draw_with(d, OP_gt, size, 1);
	const tensor_value within = draw_select(d, is_great, draw_reciprocal(d, size), size);
	const tensor_value is_middle = draw_with(d, OP_gt, within, 0.41421356237309503);
	const tensor_value rotated =
		draw_binary(d, OP_div, draw_with(d, OP_sub, within, 1), draw_with(d, OP_add, within, 1));
	const tensor_value series = atan_series(d, draw_select(d, is_middle, rotated, within));
	const tensor_value angle = draw_select(d, is_middle, draw_with(d, OP_add, series, 0.78539816339744831), series);
	const tensor_value all = draw_select(d, is_great, draw_from(d, OP_sub, 1.5707963267948966, angle), angle);

	return draw_binary(d, OP_mul, all, draw_unary(d, OP_sign, x));
}

/* sqrt((1 - x) (1 + x)) loses nothing near 1. */
tensor_value draw_asin(struct draw *d, tensor_value x)
{
	const tensor_value product = draw_binary(d, OP_mul, draw_from(d, OP_sub, 1, x), draw_from(d, OP_add, 1, x));

	return draw_atan(d, draw_binary(d, OP_div, x, draw_unary(d, OP_sqrt, product)));
}

tensor_value draw_acos(struct draw *d, tensor_value x)
{
	const tensor_value ratio = draw_binary(d, OP_div, draw_from(d, OP_sub, 1, x), draw_from(d, OP_add, 1, x));

	return draw_with(d, OP_mul, draw_atan(d, draw_unary(d, OP_sqrt, ratio)), 2);
}

/* (u + u / (u + 1)) / 2 of u = exp(x) - 1. */
tensor_value draw_sinh(struct draw *d, tensor_value x)
{
	const tensor_value u = draw_expm1(d, draw_unary(d, OP_abs, x));
	const tensor_value other = draw_binary(d, OP_div, u, draw_with(d, OP_add, u, 1)),
			   is_great = draw_with(d, OP_eq, u, (double)INFINITY);
	const tensor_value half =
		draw_with(d, OP_mul, draw_binary(d, OP_add, u, draw_select(d, is_great, u, other)), 0.5);

	return draw_binary(d, OP_mul, half, draw_unary(d, OP_sign, x));
}

tensor_value draw_cosh(struct draw *d, tensor_value x)
{
	const tensor_value up = draw_unary(d, OP_exp, x), down = draw_unary(d, OP_exp, draw_unary(d, OP_neg, x));

	return draw_with(d, OP_mul, draw_binary(d, OP_add, up, down), 0.5);
}

/* log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), with the sign of x. */
tensor_value draw_asinh(struct draw *d, tensor_value x)
{
	const tensor_value size = draw_unary(d, OP_abs, x), square = draw_binary(d, OP_mul, x, x);
	const tensor_value root = draw_unary(d, OP_sqrt, draw_with(d, OP_add, square, 1));
	const tensor_value more = draw_binary(d, OP_div, square, draw_with(d, OP_add, root, 1));

	return draw_binary(d, OP_mul, draw_log1p(d, draw_binary(d, OP_add, size, more)), draw_unary(d, OP_sign, x));
}

/* log1p(t + sqrt(2 t + t^2)) of t = x - 1. */
tensor_value draw_acosh(struct draw *d, tensor_value x)
{
	const tensor_value t = draw_with(d, OP_sub, x, 1);
	const tensor_value under = draw_binary(d, OP_mul, t, draw_with(d, OP_add, t, 2));

	return draw_log1p(d, draw_binary(d, OP_add, t, draw_unary(d, OP_sqrt, under)));
}

tensor_value draw_atanh(struct draw *d, tensor_value x)
{
	const tensor_value ratio = draw_binary(d, OP_div, draw_with(d, OP_mul, x, 2), draw_from(d, OP_sub, 1, x));

	return draw_with(d, OP_mul, draw_log1p(d, ratio), 0.5);
}

tensor_value draw_softplus(struct draw *d, tensor_value x)
{
	const tensor_value size = draw_unary(d, OP_abs, x);
	const tensor_value rest = draw_log1p(d, draw_unary(d, OP_exp, draw_unary(d, OP_neg, size)));

	return draw_binary(d, OP_add, draw_relu(d, x), rest);
}

/* max() of the row takes its second operand when one is NaN. */
tensor_value draw_relu(struct draw *d, tensor_value x) { return draw_from(d, OP_max, 0, x); }

tensor_value draw_gelu(struct draw *d, tensor_value x, bool by_tanh)
{
	tensor_value inner;

	if (by_tanh) {
		const tensor_value square = draw_binary(d, OP_mul, x, x);
		const tensor_value factor = draw_with(d, OP_add, draw_with(d, OP_mul, square, 0.044715), 1);
		const tensor_value scaled = draw_with(d, OP_mul, x, 0.79788456080286541);
		inner = draw_unary(d, OP_tanh, draw_binary(d, OP_mul, scaled, factor));
	} else {
		inner = draw_unary(d, OP_erf, draw_with(d, OP_mul, x, 0.70710678118654757));
	}
	return draw_binary(d, OP_mul, draw_with(d, OP_mul, x, 0.5), draw_with(d, OP_add, inner, 1));
}

tensor_value draw_is_nan(struct draw *d, tensor_value x) { return draw_binary(d, OP_ne, x, x); }

tensor_value draw_is_infinite(struct draw *d, tensor_value x, bool positive, bool negative)
{
	const tensor_value up = draw_with(d, OP_eq, x, (double)INFINITY),
			   down = draw_with(d, OP_eq, x, -(double)INFINITY);

	if (positive && negative)
		return draw_binary(d, OP_or, up, down);
	return positive ? up : negative ? down : draw_binary(d, OP_and, up, down);
}
