/* loaders/onnx/op_windows.c - convolutions and pools. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

/* ---- what windows they have */

/* SAME: as many positions as the stride leaves; what is missing is added at both sides, the odd one at the named. */
static void pad_same(const struct shape *in, struct windows *w, bool lower)
{
	for (unsigned i = 0; i < w->n; i++) {
		const int64_t n = (int64_t)in->dim[2 + i], out = (n + w->stride[i] - 1) / w->stride[i];
		const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1,
			      more = out ? (out - 1) * w->stride[i] + reach - n : 0, all = more > 0 ? more : 0;
		w->low[i] = lower ? (all + 1) / 2 : all / 2;
		w->high[i] = all - w->low[i];
	}
}

/* A window that begins behind the input and its left pad is left out. */
static void round_up(const struct shape *in, struct windows *w)
{
	for (unsigned i = 0; i < w->n; i++) {
		const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1, n = (int64_t)in->dim[2 + i],
			      room = n + w->low[i] + w->high[i] - reach;
		int64_t steps = room < 0 ? 0 : (room + w->stride[i] - 1) / w->stride[i];
		if (steps * w->stride[i] >= n + w->low[i])
			steps--;
		w->extra[i] = room < 0 ? 0 : steps * w->stride[i] - room;
		if (w->extra[i] < 0)
			w->extra[i] = 0;
	}
}

bool op_windows(struct op *o, const struct shape *in, bool has_size, struct windows *w)
{
	int64_t pads[2 * TENSOR_MAX_RANK], size[TENSOR_MAX_RANK];
	unsigned given;

	w->n = in->rank - 2;
	memset(w->extra, 0, sizeof w->extra);
	if (op_ints(o, "kernel_shape", size, TENSOR_MAX_RANK, &given)) {
		if (given != w->n)
			op_refuse(o, "attribute kernel_shape has %u numbers, expected %u", given, w->n);
		for (unsigned i = 0; i < w->n && !op_failed(o); i++)
			if (size[i] < 1 || size[i] > 1 << 24 || (has_size && size[i] != w->size[i]))
				op_refuse(o, "attribute kernel_shape has the number %" PRId64, size[i]);
		memcpy(w->size, size, sizeof size);
	} else if (!has_size) {
		op_refuse(o, "there is no kernel_shape");
	}
	if (op_failed(o) || !op_list(o, "strides", w->stride, w->n, 1, 1) ||
	    !op_list(o, "dilations", w->dilation, w->n, 1, 1) || !op_list(o, "pads", pads, 2 * w->n, 0, 0))
		return false;
	const bool upper = op_is(o, "auto_pad", "NOTSET", "SAME_UPPER"),
		   lower = op_is(o, "auto_pad", "NOTSET", "SAME_LOWER"),
		   valid = op_is(o, "auto_pad", "NOTSET", "VALID");
	for (unsigned i = 0; i < w->n; i++) {
		w->low[i] = valid ? 0 : pads[i];
		w->high[i] = valid ? 0 : pads[w->n + i];
	}
	if (upper || lower)
		pad_same(in, w, lower);
	else if (!valid && !op_is(o, "auto_pad", "NOTSET", "NOTSET"))
		op_refuse(o, "attribute auto_pad is none of NOTSET, SAME_UPPER, SAME_LOWER and VALID");
	if (op_int(o, "ceil_mode", 0))
		round_up(in, w);
	return !op_failed(o);
}

static uint32_t attributes_of(const struct windows *w, int64_t *high, struct attribute *a)
{
	for (unsigned i = 0; i < w->n; i++)
		high[i] = w->high[i] + w->extra[i];
	a[0] = (struct attribute){ ATTRIBUTE_strides, w->n, (int64_t *)(uintptr_t)w->stride, 0 };
	a[1] = (struct attribute){ ATTRIBUTE_low, w->n, (int64_t *)(uintptr_t)w->low, 0 };
	a[2] = (struct attribute){ ATTRIBUTE_high, w->n, high, 0 };
	a[3] = (struct attribute){ ATTRIBUTE_dilation, w->n, (int64_t *)(uintptr_t)w->dilation, 0 };
	return 4;
}

tensor_value op_window(struct op *o, enum tensor_op op, tensor_value x, const struct windows *w)
{
	int64_t high[TENSOR_MAX_RANK];
	struct attribute a[5];
	uint32_t n = attributes_of(w, high, a);

	a[n++] = (struct attribute){ ATTRIBUTE_window, w->n, (int64_t *)(uintptr_t)w->size, 0 };
	return x ? tensor_graph_add(o->d.g, op, &x, 1, a, n, o->err) : 0;
}

tensor_value op_convolve(struct op *o, tensor_value x, tensor_value w, const struct windows *v, const int64_t *input,
                         int64_t groups)
{
	int64_t high[TENSOR_MAX_RANK];
	struct attribute a[6];
	uint32_t n = attributes_of(v, high, a);

	a[n++] = (struct attribute){ ATTRIBUTE_groups, 1, &groups, 0 };
	if (input)
		a[n++] = (struct attribute){ ATTRIBUTE_input_dilation, v->n, (int64_t *)(uintptr_t)input, 0 };
	return x && w ? tensor_graph_add(o->d.g, OP_conv, (tensor_value[]){ x, w }, 2, a, n, o->err) : 0;
}

/* ---- convolutions */

/* [channels] beside [n,channels,..] */
static tensor_value add_bias(struct op *o, tensor_value y, tensor_value bias)
{
	const struct shape s = draw_shape(&o->d, y);

	if (!bias || !y)
		return y;
	return draw_binary(&o->d, OP_add, y, graph_broadcast(o->d.g, bias, &s, (const unsigned[]){ 1 }, o->err));
}

static bool has_space(struct op *o, const struct shape *s, unsigned min)
{
	if (s->rank < min)
		op_refuse(o, "input 1 has %u dimensions, expected %u or more", s->rank, min);
	return s->rank >= min;
}

void op_conv(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]), k = draw_shape(&o->d, o->in[1]);
	struct windows w;

	if (!has_space(o, &s, 3) || k.rank != s.rank) {
		op_refuse(o, "the weights have %u dimensions, expected %u", k.rank, s.rank);
		return;
	}
	for (unsigned i = 0; i + 2 < k.rank; i++)
		w.size[i] = (int64_t)k.dim[2 + i];
	if (!op_windows(o, &s, true, &w))
		return;
	o->out[0] = add_bias(o, op_convolve(o, o->in[0], o->in[1], &w, NULL, op_int(o, "group", 1)), op_in(o, 2));
}

/* Pads of a transposed convolution: given, or what makes the output's shape. */
static bool transposed_pads(struct op *o, const struct shape *s, struct windows *w)
{
	int64_t more[TENSOR_MAX_RANK], shape[TENSOR_MAX_RANK];
	const bool same_upper = op_is(o, "auto_pad", "NOTSET", "SAME_UPPER"),
		   same_lower = op_is(o, "auto_pad", "NOTSET", "SAME_LOWER");
	unsigned n;

	if (!op_list(o, "output_padding", more, w->n, 0, 0))
		return false;
	const bool given = op_ints(o, "output_shape", shape, TENSOR_MAX_RANK, &n);
	if (given && n != w->n)
		op_refuse(o, "attribute output_shape has %u numbers, expected %u", n, w->n);
	for (unsigned i = 0; i < w->n && !op_failed(o); i++) {
		const int64_t in = (int64_t)s->dim[2 + i], reach = (w->size[i] - 1) * w->dilation[i] + 1,
			      full = w->stride[i] * (in - 1) + more[i] + reach;
		if (given || same_upper || same_lower) {
			const int64_t all = full - (given ? shape[i] : in * w->stride[i]);
			const int64_t half = all >= 0 ? all / 2 : -((1 - all) / 2); /* towards the lesser one */
			w->low[i] = same_upper ? half : all - half;
			w->high[i] = all - w->low[i];
		}
		if (w->low[i] < -(1 << 24) || w->high[i] < -(1 << 24))
			op_refuse(o, "attribute output_shape has the number %" PRId64, shape[i]);
		w->low[i] = reach - 1 - w->low[i];
		w->high[i] = reach - 1 - w->high[i] + more[i];
	}
	return !op_failed(o);
}

/* [channels, out/groups, ..] becomes [out, channels/groups, ..], and windows are reversed. */
static tensor_value flipped(struct op *o, tensor_value w, uint64_t groups)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, w);
	struct shape split = { .rank = s.rank + 1 }, joined = s;

	if (groups == 0 || s.dim[0] % groups || s.rank >= TENSOR_MAX_RANK) {
		op_refuse(o, "attribute group is %" PRIu64 " of %" PRIu64 " channels", groups, s.dim[0]);
		return 0;
	}
	split.dim[0] = groups;
	split.dim[1] = s.dim[0] / groups;
	memcpy(split.dim + 2, s.dim + 1, (s.rank - 1) * sizeof *s.dim);
	joined.dim[0] = groups * s.dim[1];
	joined.dim[1] = s.dim[0] / groups;
	w = draw_reshape(d, draw_swap(d, draw_reshape(d, w, &split), 1, 2), &joined);
	for (unsigned i = 2; i < s.rank; i++)
		w = draw_reverse(d, w, i);
	return w;
}

void op_conv_transpose(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]), k = draw_shape(&o->d, o->in[1]);
	const int64_t groups = op_int(o, "group", 1);
	int64_t stride[TENSOR_MAX_RANK];
	struct windows w;

	if (!has_space(o, &s, 3) || k.rank != s.rank) {
		op_refuse(o, "the weights have %u dimensions, expected %u", k.rank, s.rank);
		return;
	}
	for (unsigned i = 0; i + 2 < k.rank; i++)
		w.size[i] = (int64_t)k.dim[2 + i];
	if (!op_windows(o, &s, true, &w) || !transposed_pads(o, &s, &w))
		return;
	for (unsigned i = 0; i < w.n; i++) {
		stride[i] = w.stride[i];
		w.stride[i] = 1;
	}
	const tensor_value weights = flipped(o, o->in[1], (uint64_t)groups);
	o->out[0] = add_bias(o, op_convolve(o, o->in[0], weights, &w, stride, groups), op_in(o, 2));
}

/* ---- pools */

static tensor_value average(struct op *o, tensor_value x, const struct windows *w)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, x);
	const bool with_pads = op_int(o, "count_include_pad", 0) != 0;
	struct shape one = s;
	int64_t low[TENSOR_MAX_RANK] = { 0 }, high[TENSOR_MAX_RANK] = { 0 };
	struct windows within = *w;

	one.dim[0] = one.dim[1] = 1;
	tensor_value ones = draw_broadcast(d, draw_scalar(d, 1, draw_type(d, x)), &one);
	for (unsigned i = 0; i < w->n && with_pads; i++) { /* pads count, but not what ceil_mode adds */
		low[2 + i] = w->low[i];
		high[2 + i] = w->high[i];
		within.low[i] = within.high[i] = 0;
	}
	if (with_pads)
		ones = draw_pad(d, ones, draw_scalar(d, 1, draw_type(d, x)), low, high);
	const tensor_value count = op_window(o, OP_window_sum, ones, &within);
	return draw_binary(d, OP_div, op_window(o, OP_window_sum, x, w), count);
}

static tensor_value root_of_powers(struct op *o, tensor_value x, const struct windows *w)
{
	struct draw *d = &o->d;
	const int64_t p = op_int(o, "p", 2);

	if (p < 1) {
		op_refuse(o, "attribute p is %" PRId64, p);
		return 0;
	}
	const tensor_value size = draw_unary(d, OP_abs, x);
	if (p == 1)
		return op_window(o, OP_window_sum, size, w);
	if (p == 2)
		return draw_unary(d, OP_sqrt, op_window(o, OP_window_sum, draw_binary(d, OP_mul, x, x), w));
	const tensor_value sum = op_window(o, OP_window_sum, draw_with(d, OP_pow, size, (double)p), w);
	return draw_with(d, OP_pow, sum, 1.0 / (double)p);
}

/* For each position of a window, the flat element of its space under each tap; -1: beside it. */
static tensor_value taps_of(struct op *o, const struct shape *s, const struct shape *out, const struct windows *w)
{
	struct shape window = { .rank = w->n }, at_shape = { .rank = w->n };
	uint64_t taps = 1, positions = 1, at[TENSOR_MAX_RANK] = { 0 }, k[TENSOR_MAX_RANK] = { 0 }, n = 0;

	for (unsigned i = 0; i < w->n; i++) {
		taps *= window.dim[i] = (uint64_t)w->size[i];
		positions *= at_shape.dim[i] = out->dim[2 + i];
	}
	int64_t *index = positions && taps < (1 << 26) / positions ? calloc(positions * taps, sizeof *index) : NULL;
	if (!index) {
		op_refuse(o, "indices of %" PRIu64 " windows of %" PRIu64 " elements", positions, taps);
		return 0;
	}
	do
		do {
			int64_t flat = 0;
			for (unsigned i = 0; i < w->n; i++) {
				const int64_t p =
					(int64_t)at[i] * w->stride[i] - w->low[i] + (int64_t)k[i] * w->dilation[i];
				if (p < 0 || p >= (int64_t)s->dim[2 + i])
					flat = INT64_MIN / 2;
				else if (flat >= 0)
					flat = flat * (int64_t)s->dim[2 + i] + p;
			}
			index[n++] = flat < 0 ? -1 : flat;
		} while (shape_next(&window, k));
	while (shape_next(&at_shape, at));
	const struct shape is = { .rank = 2, .dim = { positions, taps } };
	const tensor_value v = op_constant_shaped(o, index, &is);
	free(index);
	return v;
}

/* Flat positions in column-major order of the last two and more dimensions. */
static tensor_value column_major(struct op *o, tensor_value flat, const struct shape *s)
{
	struct draw *d = &o->d;
	tensor_value rest = flat, sum = draw_number(d, 0, flat);
	double stride[TENSOR_MAX_RANK], n = 1;

	for (unsigned i = 2; i < s->rank; i++) {
		stride[i] = n;
		n *= (double)s->dim[i];
	}
	for (unsigned i = s->rank; i-- > 2;) {
		const tensor_value at = draw_with(d, OP_rem, rest, (double)s->dim[i]);
		sum = draw_binary(d, OP_add, sum, draw_with(d, OP_mul, at, stride[i]));
		rest = draw_with(d, OP_div, rest, (double)s->dim[i]);
	}
	return sum;
}

static double min_of(int type)
{
	return type == JIT_TYPE_I8 ? -128 : type == JIT_TYPE_I16 ? -32768 : -(double)INFINITY;
}

/* Where in the whole tensor the greatest of each window is. */
static tensor_value positions(struct op *o, const struct windows *w, tensor_value y)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), out = draw_shape(d, y);
	const uint64_t rows = s.dim[0] * s.dim[1], space = shape_part(&s, 2, s.rank);
	const tensor_value taps = taps_of(o, &s, &out, w);
	const struct shape t = draw_shape(d, taps);
	if (!taps)
		return 0;
	const tensor_value x = draw_dims(d, o->in[0], 2, (const uint64_t[]){ rows, space });
	const tensor_value seen = draw_take(d, x, taps, 1), beside = draw_with(d, OP_lt, taps, 0);
	const tensor_value low = draw_scalar(d, min_of(draw_type(d, x)), draw_type(d, x));
	const tensor_value masked = draw_select(d, beside, low, seen);
	int64_t axis = 2;
	const tensor_value best =
		masked ? tensor_graph_add(d->g, OP_argmax, &masked, 1,
	                                  &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1, o->err)
		       : 0;
	const struct shape all = { .rank = 3, .dim = { rows, t.dim[0], t.dim[1] } };
	const tensor_value flat = draw_with_mode(
		d, OP_take_along, (tensor_value[]){ draw_broadcast(d, taps, &all), draw_expand(d, best, 2) }, 2, -1);
	tensor_value at = draw_dims(d, flat, 2, (const uint64_t[]){ rows, t.dim[0] });
	if (op_int(o, "storage_order", 0))
		at = column_major(o, at, &s);
	const struct shape of = draw_shape(d, at);
	const tensor_value row = draw_with(d, OP_mul, draw_iota(d, JIT_TYPE_I64, &of, 0), (double)space);
	return draw_reshape(d, draw_binary(d, OP_add, at, row), &out);
}

void op_pool(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const int type = draw_type(&o->d, o->in[0]);
	const tensor_value x = op_widen(o, o->in[0]);
	struct windows w;

	if (!has_space(o, &s, 3) || !op_windows(o, &s, false, &w))
		return;
	const tensor_value y = o->row->user == POOL_MAX       ? op_window(o, OP_window_max, x, &w)
	                       : o->row->user == POOL_AVERAGE ? average(o, x, &w)
	                                                      : root_of_powers(o, x, &w);
	o->out[0] = draw_convert(&o->d, y, type);
	if (o->row->user == POOL_MAX && op_wants(o, 1) && y)
		o->out[1] = positions(o, &w, y);
}

void op_global_pool(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned axes = ((1U << s.rank) - 1) & ~3U;
	const int type = draw_type(d, o->in[0]);
	const tensor_value x = op_widen(o, o->in[0]);

	if (!has_space(o, &s, 3))
		return;
	if (o->row->user == POOL_MAX) {
		o->out[0] = draw_reduce(d, OP_reduce_max, o->in[0], axes, true);
	} else if (o->row->user == POOL_AVERAGE) {
		o->out[0] = draw_convert(d, draw_mean(d, x, axes, true), type);
	} else {
		const double p = (double)op_int(o, "p", 2);
		const tensor_value sum =
			draw_reduce(d, OP_reduce_sum, draw_with(d, OP_pow, draw_unary(d, OP_abs, x), p), axes, true);
		o->out[0] = draw_convert(d, draw_with(d, OP_pow, sum, 1 / p), type);
	}
}
