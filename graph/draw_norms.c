/* graph/draw_norms.c - softmax and norms, over a set of axes. */
#include "graph/draw.h"

#include <math.h>

/* Rows of which all are -inf have the greatest -inf, which is taken as 0: no NaN comes of their difference. */
static tensor_value greatest(struct draw *d, tensor_value x, unsigned axes)
{
	const tensor_value max = draw_reduce(d, OP_reduce_max, x, axes, true);
	const tensor_value none = draw_with(d, OP_eq, max, -(double)INFINITY);

	return draw_select(d, none, draw_number(d, 0, max), max);
}

tensor_value draw_softmax(struct draw *d, tensor_value x, unsigned axes)
{
	const tensor_value max = draw_reduce(d, OP_reduce_max, x, axes, true);
	const tensor_value e = draw_unary(d, OP_exp, draw_binary(d, OP_sub, x, max));

	return draw_binary(d, OP_div, e, draw_reduce(d, OP_reduce_sum, e, axes, true));
}

tensor_value draw_log_softmax(struct draw *d, tensor_value x, unsigned axes)
{
	const tensor_value down = draw_binary(d, OP_sub, x, draw_reduce(d, OP_reduce_max, x, axes, true));
	const tensor_value sum = draw_reduce(d, OP_reduce_sum, draw_unary(d, OP_exp, down), axes, true);

	return draw_binary(d, OP_sub, down, draw_unary(d, OP_log, sum));
}

tensor_value draw_log_sum_exp(struct draw *d, tensor_value x, unsigned axes, bool keep)
{
	const tensor_value max = greatest(d, x, axes);
	const tensor_value e = draw_unary(d, OP_exp, draw_binary(d, OP_sub, x, max));
	const tensor_value sum = draw_reduce(d, OP_reduce_sum, e, axes, keep);
	struct shape s = draw_shape(d, sum);

	return draw_binary(d, OP_add, draw_unary(d, OP_log, sum), draw_reshape(d, max, &s));
}

tensor_value draw_standardize(struct draw *d, tensor_value x, unsigned axes, double epsilon, tensor_value *mean,
                              tensor_value *scale)
{
	const tensor_value middle = draw_mean(d, x, axes, true), centred = draw_binary(d, OP_sub, x, middle);
	const tensor_value variance = draw_mean(d, draw_binary(d, OP_mul, centred, centred), axes, true);
	const tensor_value factor = draw_unary(d, OP_rsqrt, draw_with(d, OP_add, variance, epsilon));

	if (mean)
		*mean = middle;
	if (scale)
		*scale = factor;
	return draw_binary(d, OP_mul, centred, factor);
}

tensor_value draw_rms(struct draw *d, tensor_value x, unsigned axes, double epsilon)
{
	const tensor_value square = draw_mean(d, draw_binary(d, OP_mul, x, x), axes, true);

	return draw_binary(d, OP_mul, x, draw_unary(d, OP_rsqrt, draw_with(d, OP_add, square, epsilon)));
}
