/* loaders/onnx/op_norms.c - normalisations. Of f16 and bf16 they are computed in f32. */
#include <inttypes.h>

#include "loaders/onnx/operators.h"

/* [channels] beside x of [n,channels,..] */
static tensor_value channels(struct op *o, tensor_value c, tensor_value x)
{
	const struct shape s = draw_shape(&o->d, x);
	const unsigned axis = s.rank > 1 ? 1 : 0;

	return c && x ? graph_broadcast(o->d.g, c, &s, &axis, o->err) : 0;
}

static tensor_value scaled(struct op *o, tensor_value x, tensor_value scale, tensor_value bias)
{
	struct draw *d = &o->d;

	if (scale)
		x = draw_binary(d, OP_mul, x, scale);
	return bias ? draw_binary(d, OP_add, x, bias) : x;
}

/* Means and variances of the batch replace the given ones, which move towards them. */
static tensor_value train(struct op *o, tensor_value x, double epsilon, double momentum)
{
	struct draw *d = &o->d;
	const unsigned axes = ((1U << draw_rank(d, x)) - 1) & ~2U;
	const tensor_value mean = draw_mean(d, x, axes, true), centred = draw_binary(d, OP_sub, x, mean);
	const tensor_value variance = draw_mean(d, draw_binary(d, OP_mul, centred, centred), axes, true);
	const uint64_t n = draw_dim(d, x, 1);
	const tensor_value now[] = { draw_dims(d, mean, 1, &n), draw_dims(d, variance, 1, &n) };

	for (unsigned i = 0; i < 2; i++)
		if (op_wants(o, i + 1)) {
			const tensor_value was = op_widen(o, o->in[3 + i]);
			const tensor_value moved = draw_binary(
				d, OP_add, draw_with(d, OP_mul, was, momentum),
				draw_with(d, OP_mul, draw_convert(d, now[i], draw_type(d, was)), 1 - momentum));
			o->out[i + 1] = draw_convert(d, moved, draw_type(d, o->in[3 + i]));
		}
	return draw_binary(d, OP_mul, centred, draw_unary(d, OP_rsqrt, draw_with(d, OP_add, variance, epsilon)));
}

void op_batch_norm(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const double epsilon = op_float(o, "epsilon", 1e-5), momentum = op_float(o, "momentum", 0.9);
	tensor_value x = op_widen(o, o->in[0]), p[4];

	if (op_int(o, "spatial", 1) != 1 || op_int(o, "is_test", 1) != 1) {
		op_refuse(o, "attributes spatial and is_test are expected to be 1");
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		p[i] = channels(o, draw_convert(d, o->in[1 + i], draw_type(d, x)), x);
	if (op_int(o, "training_mode", 0)) {
		x = train(o, x, epsilon, momentum);
	} else {
		const tensor_value factor = draw_unary(d, OP_rsqrt, draw_with(d, OP_add, p[3], epsilon));
		x = draw_binary(d, OP_mul, draw_binary(d, OP_sub, x, p[2]), factor);
	}
	o->out[0] = draw_convert(d, scaled(o, x, p[0], p[1]), type);
}

void op_instance_norm(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	tensor_value x = op_widen(o, o->in[0]);
	const unsigned axes = ((1U << draw_rank(d, x)) - 1) & ~3U;

	x = draw_standardize(d, x, axes, op_float(o, "epsilon", 1e-5), NULL, NULL);
	o->out[0] = draw_convert(
		d, scaled(o, x, channels(o, op_widen(o, o->in[1]), x), channels(o, op_widen(o, o->in[2]), x)), type);
}

/* From opset 21 on a scale has an element for each channel, before one for each group. */
void op_group_norm(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const int type = draw_type(d, o->in[0]);
	const uint64_t groups = (uint64_t)op_int(o, "num_groups", 0);
	struct shape split = { .rank = 3 };

	if (s.rank < 2 || groups == 0 || s.dim[1] % groups) {
		op_refuse(o, "attribute num_groups is %" PRIu64 ", which does not divide the channels", groups);
		return;
	}
	split.dim[0] = s.dim[0];
	split.dim[1] = groups;
	split.dim[2] = s.dim[1] / groups * shape_part(&s, 2, s.rank);
	tensor_value x = draw_reshape(d, op_widen(o, o->in[0]), &split), p[2];
	x = draw_standardize(d, x, 4, op_float(o, "epsilon", 1e-5), NULL, NULL);
	for (unsigned i = 0; i < 2; i++) {
		p[i] = op_widen(o, o->in[1 + i]);
		if (draw_rank(d, p[i]) == 1 && draw_dim(d, p[i], 0) == groups && groups != s.dim[1]) {
			const struct shape wide = { .rank = 2, .dim = { groups, s.dim[1] / groups } };
			p[i] = draw_dims(d, draw_broadcast(d, draw_expand(d, p[i], 1), &wide), 1, &s.dim[1]);
		}
	}
	x = draw_reshape(d, x, &s);
	o->out[0] = draw_convert(d, scaled(o, x, channels(o, p[0], x), channels(o, p[1], x)), type);
}

static unsigned from_axis(struct op *o, unsigned rank)
{
	const unsigned axis = op_axis(o, op_int(o, "axis", -1), rank);

	return ((1U << rank) - 1) & ~((1U << axis) - 1);
}

static bool stashes_floats(struct op *o)
{
	const int64_t stash = op_int(o, "stash_type", 1);

	if (stash != 1 && stash != 11)
		op_refuse(o, "attribute stash_type is %" PRId64 ", expected 1", stash);
	return !op_failed(o);
}

void op_layer_norm(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const unsigned axes = from_axis(o, draw_rank(d, o->in[0]));
	tensor_value mean, factor, x = op_widen(o, o->in[0]);

	if (!stashes_floats(o) || op_failed(o))
		return;
	x = draw_standardize(d, x, axes, op_float(o, "epsilon", 1e-5), &mean, &factor);
	x = scaled(o, x, op_widen(o, o->in[1]), op_in(o, 2) ? op_widen(o, o->in[2]) : 0);
	o->out[0] = draw_convert(d, x, type);
	if (op_wants(o, 1))
		o->out[1] = mean;
	if (op_wants(o, 2))
		o->out[2] = factor;
}

void op_rms_norm(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const unsigned axes = from_axis(o, draw_rank(d, o->in[0]));

	if (!stashes_floats(o) || op_failed(o))
		return;
	const tensor_value x = draw_rms(d, op_widen(o, o->in[0]), axes, op_float(o, "epsilon", 1e-5));
	o->out[0] = draw_convert(d, scaled(o, x, op_widen(o, o->in[1]), 0),
	                         draw_type(d, o->in[1]) == type ? type : draw_type(d, o->in[1]));
}

/* (x - E[x]) / sqrt(E[x^2] - E[x]^2 + 1e-9), as the operator's function has it */
void op_mvn(struct op *o)
{
	struct draw *d = &o->d;
	int64_t axes[TENSOR_MAX_RANK] = { 0, 2, 3 };
	unsigned n = 3;

	if (!op_ints(o, "axes", axes, TENSOR_MAX_RANK, &n))
		n = 3;
	const unsigned set = op_axes(o, axes, n, draw_rank(d, o->in[0]));
	if (op_failed(o))
		return;
	const tensor_value x = op_widen(o, o->in[0]), mean = draw_mean(d, x, set, true),
			   centred = draw_binary(d, OP_sub, x, mean);
	const tensor_value variance = draw_mean(d, draw_binary(d, OP_mul, centred, centred), set, true);
	const tensor_value y =
		draw_binary(d, OP_div, centred, draw_with(d, OP_add, draw_unary(d, OP_sqrt, variance), 1e-9));
	o->out[0] = draw_convert(d, y, draw_type(d, o->in[0]));
}

/* x / (bias + alpha / size * the sum of squares of channels around)^beta */
void op_lrn(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const int64_t size = op_int(o, "size", 0);
	const double alpha = op_float(o, "alpha", 1e-4), beta = op_float(o, "beta", 0.75),
		     bias = op_float(o, "bias", 1);

	if (size < 1 || size > 1 << 20 || s.rank < 3) {
		op_refuse(o, "attribute size is %" PRId64, size);
		return;
	}
	const uint64_t rows[] = { s.dim[0], 1, s.dim[1], shape_part(&s, 2, s.rank) };
	const struct windows w = { .n = 2,
		                   .size = { size, 1 },
		                   .stride = { 1, 1 },
		                   .dilation = { 1, 1 },
		                   .low = { (size - 1) / 2, 0 },
		                   .high = { size - 1 - (size - 1) / 2, 0 } };
	const tensor_value x = op_widen(o, o->in[0]);
	const tensor_value sum = op_window(o, OP_window_sum, draw_dims(d, draw_binary(d, OP_mul, x, x), 4, rows), &w);
	const tensor_value under = draw_with(d, OP_add, draw_with(d, OP_mul, sum, alpha / (double)size), bias);
	const tensor_value y = draw_binary(d, OP_div, x, draw_reshape(d, draw_with(d, OP_pow, under, beta), &s));
	o->out[0] = draw_convert(d, y, draw_type(d, o->in[0]));
}
