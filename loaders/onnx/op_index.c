/* loaders/onnx/op_index.c - operators that take or write elements by indices. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

tensor_value op_wrap(struct op *o, tensor_value index, uint64_t n)
{
	struct draw *d = &o->d;

	if (!tensor_is_signed(draw_type(d, index)))
		return index;
	const tensor_value i = draw_convert(d, index, JIT_TYPE_I64);
	return draw_select(d, draw_with(d, OP_lt, i, 0), draw_with(d, OP_add, i, (double)n), i);
}

void op_gather(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", 0), s.rank);

	if (!op_failed(o))
		o->out[0] = draw_take(&o->d, o->in[0], op_wrap(o, o->in[1], s.dim[axis]), axis);
}

void op_gather_elements(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", 0), s.rank);

	if (!op_failed(o))
		o->out[0] = draw_with_mode(&o->d, OP_take_along,
		                           (tensor_value[]){ o->in[0], op_wrap(o, o->in[1], s.dim[axis]) }, axis, -1);
}

/* Positions of which each number counts from the end if it is negative. */
static tensor_value wrap_positions(struct op *o, tensor_value index, const struct shape *of, unsigned batch)
{
	const struct shape s = draw_shape(&o->d, index);
	int64_t size[TENSOR_MAX_RANK] = { 0 };

	if (s.rank == 0 || s.dim[s.rank - 1] > of->rank - (batch < of->rank ? batch : of->rank)) {
		op_refuse(o, "positions have more numbers than there are dimensions");
		return 0;
	}
	for (uint64_t i = 0; i < s.dim[s.rank - 1]; i++)
		size[i] = (int64_t)of->dim[batch + i];
	const tensor_value i = draw_convert(&o->d, index, JIT_TYPE_I64),
			   n = op_constant_ints(o, size, s.dim[s.rank - 1]);
	return draw_select(&o->d, draw_with(&o->d, OP_lt, i, 0), draw_binary(&o->d, OP_add, i, n), i);
}

void op_gather_nd(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	int64_t batch = op_int(o, "batch_dims", 0);

	if (batch < 0 || batch >= s.rank) {
		op_refuse(o, "attribute batch_dims is %" PRId64 ", expected less than %u", batch, s.rank);
		return;
	}
	const tensor_value v[] = { o->in[0], wrap_positions(o, o->in[1], &s, (unsigned)batch) };
	if (v[1])
		o->out[0] = tensor_graph_add(o->d.g, OP_gather_nd, v, 2,
		                             &(struct attribute){ ATTRIBUTE_batch, 1, &batch, 0 }, 1, o->err);
}

static int64_t scatter_mode(struct op *o)
{
	static const char *const words[] = { "none", "add", "mul", "min", "max" };

	for (int i = 0; i < SCATTER_MODES; i++)
		if (op_is(o, "reduction", "none", words[i]))
			return i;
	op_refuse(o, "attribute reduction is none of none, add, mul, min and max");
	return 0;
}

void op_scatter_elements(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", 0), s.rank);
	const int64_t mode = scatter_mode(o);

	if (!op_failed(o))
		o->out[0] = draw_with_mode(&o->d, OP_scatter_along,
		                           (tensor_value[]){ o->in[0], op_wrap(o, o->in[1], s.dim[axis]), o->in[2] },
		                           axis, mode);
}

void op_scatter_nd(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const int64_t mode = scatter_mode(o);

	if (!op_failed(o))
		o->out[0] = draw_with_mode(&o->d, OP_scatter_nd,
		                           (tensor_value[]){ o->in[0], wrap_positions(o, o->in[1], &s, 0), o->in[2] },
		                           -1, mode);
}

/* cache[.., index[batch] + i, ..] = update[.., i, ..] */
void op_tensor_scatter(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), u = draw_shape(d, o->in[1]);
	const unsigned axis = op_axis(o, op_int(o, "axis", -2), s.rank);
	const bool circular = op_is(o, "mode", "linear", "circular");

	if (axis == 0 || u.rank != s.rank)
		op_refuse(o, "axis is the batch, or the update has %u dimensions, expected %u", u.rank, s.rank);
	if (op_failed(o))
		return;
	tensor_value at = draw_iota(d, JIT_TYPE_I64, &u, axis);
	if (op_in(o, 2)) {
		const unsigned to[] = { 0 };
		const tensor_value from = draw_convert(d, o->in[2], JIT_TYPE_I64);
		at = draw_binary(d, OP_add, at, graph_broadcast(d->g, from, &u, to, o->err));
	}
	if (circular)
		at = draw_with(d, OP_rem, at, (double)s.dim[axis]);
	o->out[0] = draw_with_mode(d, OP_scatter_along, (tensor_value[]){ o->in[0], at, o->in[1] }, axis, SCATTER_SET);
}

/* values[0] where the axis's position is not the index, values[1] where it is. */
void op_one_hot(struct op *o)
{
	struct draw *d = &o->d;
	const struct tensor *t = op_known(o, 1);
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", -1), s.rank + 1);

	if (t && shape_elements(&t->shape) != 1)
		op_refuse(o, "depth is no number");
	if (!t || op_failed(o) || s.rank >= TENSOR_MAX_RANK)
		return;
	const double depth = number_of(t, 0);
	if (!(depth >= 0 && depth < 0x1p40)) {
		op_refuse(o, "depth is %g", depth);
		return;
	}
	struct shape wide = draw_shape(d, draw_expand(d, o->in[0], axis));
	wide.dim[axis] = (uint64_t)depth;
	const tensor_value index = op_wrap(o, draw_convert(d, o->in[0], JIT_TYPE_I64), (uint64_t)depth),
			   hot = draw_binary(d, OP_eq, draw_expand(d, index, axis),
	                                     draw_iota(d, JIT_TYPE_I64, &wide, axis));
	const tensor_value off = draw_dims(d, draw_slice(d, o->in[2], 0, 0, 1, 1), 0, NULL),
			   on = draw_dims(d, draw_slice(d, o->in[2], 0, 1, 2, 1), 0, NULL);
	o->out[0] = draw_select(d, hot, on, off);
}

/* ---- padding */

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* Where position p of an axis that begins `low` before it takes its element from. */
static int64_t source(enum pad_mode mode, int64_t p, int64_t n)
{
	const int64_t period = mode == PAD_REFLECT && n > 1 ? 2 * (n - 1) : n;

	if (mode == PAD_EDGE)
		return p < 0 ? 0 : p >= n ? n - 1 : p;
	p = (p % period + period) % period;
	return p < n ? p : period - p;
}

static tensor_value pad_axis(struct op *o, tensor_value x, unsigned axis, enum pad_mode mode, int64_t low, int64_t high)
{
	enum {
		INDICES_MAX = 1 << 24
	}; /* they are constants of the graph: a few bytes of a file could ask for gigabytes */
	const int64_t n = (int64_t)draw_dim(&o->d, x, axis), to = n + low + high;
	int64_t *from = to >= 0 && to <= INDICES_MAX && (n || !to) ? calloc((size_t)to + 1, sizeof *from) : NULL;

	if (!from) {
		op_refuse(o,
		          "pads of %" PRId64 " and %" PRId64 " to a dimension of %" PRId64
		          ", expected at most %d in all",
		          low, high, n, INDICES_MAX);
		return 0;
	}
	for (int64_t i = 0; i < to; i++)
		from[i] = source(mode, i - low, n);
	const tensor_value y = draw_take(&o->d, x, op_constant_ints(o, from, (uint64_t)to), axis);
	free(from);
	return y;
}

/* Pads of all dimensions, from those of the axes that are named. */
static bool read_pads(struct op *o, unsigned rank, int64_t low[], int64_t high[])
{
	int64_t pads[2 * TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK];
	unsigned n, n_axes = rank;

	for (unsigned i = 0; i < rank; i++) {
		axes[i] = i;
		low[i] = high[i] = 0;
	}
	if (!op_ints_of(o, 1, o->opset < 2 ? "paddings" : "pads", pads, 2 * TENSOR_MAX_RANK, &n))
		op_refuse(o, "there are no pads");
	if (op_in(o, 3))
		op_known_ints(o, 3, axes, TENSOR_MAX_RANK, &n_axes);
	if (n != 2 * n_axes)
		op_refuse(o, "there are %u pads for %u dimensions", n, n_axes);
	op_axes(o, axes, n_axes, rank);
	for (unsigned i = 0; i < n_axes && !op_failed(o); i++) {
		const unsigned a = op_axis(o, axes[i], rank);
		low[a] = pads[i];
		high[a] = pads[n_axes + i];
		if (low[a] < -(1 << 28) || high[a] < -(1 << 28) || low[a] > 1 << 28 || high[a] > 1 << 28)
			op_refuse(o, "pads of %" PRId64 " and %" PRId64, low[a], high[a]);
	}
	return !op_failed(o);
}

void op_pad(struct op *o)
{
	static const char *const words[] = { "constant", "reflect", "edge", "wrap" };
	struct draw *d = &o->d;
	const unsigned rank = draw_rank(d, o->in[0]);
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK];
	unsigned mode = 0;

	while (mode < 4 && !op_is(o, "mode", "constant", words[mode]))
		mode++;
	if (mode == 4)
		op_refuse(o, "attribute mode is none of constant, reflect, edge and wrap");
	if (!read_pads(o, rank, low, high))
		return;
	tensor_value x = o->in[0];
	if (mode == PAD_CONSTANT) {
		const tensor_value with = op_in(o, 2) ? draw_dims(d, o->in[2], 0, NULL)
		                                      : draw_scalar(d, op_float(o, "value", 0), draw_type(d, x));
		x = draw_pad(d, x, with, low, high);
	}
	for (unsigned i = 0; i < rank && mode != PAD_CONSTANT && !op_failed(o); i++)
		if (low[i] || high[i])
			x = pad_axis(o, x, i, (enum pad_mode)mode, low[i], high[i]);
	o->out[0] = x;
}

void op_center_crop_pad(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	int64_t want[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK],
		low[TENSOR_MAX_RANK] = { 0 }, high[TENSOR_MAX_RANK] = { 0 };
	unsigned n, n_axes;

	for (unsigned i = 0; i < TENSOR_MAX_RANK; i++)
		axes[i] = i;
	if (!op_ints(o, "axes", axes, TENSOR_MAX_RANK, &n_axes))
		n_axes = s.rank;
	if (!op_known_ints(o, 1, want, TENSOR_MAX_RANK, &n))
		return;
	if (n != n_axes)
		op_refuse(o, "there are %u sizes for %u dimensions", n, n_axes);
	op_axes(o, axes, n_axes, s.rank);
	for (unsigned i = 0; i < n && !op_failed(o); i++) {
		const unsigned a = op_axis(o, axes[i], s.rank);
		if (want[i] < 0 || want[i] > INT64_C(1) << 46) {
			op_refuse(o, "size %u is %" PRId64, i, want[i]);
			return;
		}
		const int64_t more = want[i] - (int64_t)s.dim[a];
		low[a] = more < 0 ? -(-more / 2) : more / 2;
		high[a] = more - low[a];
	}
	if (!op_failed(o))
		o->out[0] = draw_pad(d, o->in[0], draw_scalar(d, 0, draw_type(d, o->in[0])), low, high);
}

/* ---- blocks */

void op_depth_to_space(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const uint64_t b = (uint64_t)op_int(o, "blocksize", 0);
	const bool column = op_is(o, "mode", "DCR", "CRD");

	if (s.rank != 4 || b == 0 || b > 1 << 20 || s.dim[1] % (b * b)) {
		op_refuse(o, "blocks of %" PRIu64 " do not fit the shape", b);
		return;
	}
	const uint64_t c = s.dim[1] / (b * b), h = s.dim[2], w = s.dim[3];
	tensor_value x;
	if (column) {
		x = draw_dims(d, o->in[0], 6, (const uint64_t[]){ s.dim[0], c, b, b, h, w });
		x = draw_transpose(d, x, (const unsigned[]){ 0, 1, 4, 2, 5, 3 });
	} else {
		x = draw_dims(d, o->in[0], 6, (const uint64_t[]){ s.dim[0], b, b, c, h, w });
		x = draw_transpose(d, x, (const unsigned[]){ 0, 3, 4, 1, 5, 2 });
	}
	o->out[0] = draw_dims(d, x, 4, (const uint64_t[]){ s.dim[0], c, h * b, w * b });
}

void op_space_to_depth(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const uint64_t b = (uint64_t)op_int(o, "blocksize", 0);
	const bool column = op_is(o, "mode", "DCR", "CRD");

	if (s.rank != 4 || b == 0 || b > 1 << 20 || s.dim[2] % b || s.dim[3] % b) {
		op_refuse(o, "blocks of %" PRIu64 " do not fit the shape", b);
		return;
	}
	const uint64_t c = s.dim[1], h = s.dim[2] / b, w = s.dim[3] / b;
	const tensor_value x = draw_dims(d, o->in[0], 6, (const uint64_t[]){ s.dim[0], c, h, b, w, b });
	const tensor_value y = column ? draw_transpose(d, x, (const unsigned[]){ 0, 1, 3, 5, 2, 4 })
	                              : draw_transpose(d, x, (const unsigned[]){ 0, 3, 5, 1, 2, 4 });
	o->out[0] = draw_dims(d, y, 4, (const uint64_t[]){ s.dim[0], c * b * b, h, w });
}

/* Along the time axis, the first `length` elements of each batch in reverse. */
void op_reverse_sequence(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const unsigned batch = op_axis(o, op_int(o, "batch_axis", 1), s.rank),
		       time = op_axis(o, op_int(o, "time_axis", 0), s.rank);

	if (batch == time)
		op_refuse(o, "attributes batch_axis and time_axis are the same");
	if (op_failed(o))
		return;
	const tensor_value length = graph_broadcast(d->g, draw_convert(d, o->in[1], JIT_TYPE_I64), &s, &batch, o->err);
	const tensor_value at = draw_iota(d, JIT_TYPE_I64, &s, time);
	const tensor_value back = draw_with(d, OP_sub, draw_binary(d, OP_sub, length, at), 1);
	const tensor_value from = draw_select(d, draw_binary(d, OP_lt, at, length), back, at);
	o->out[0] = draw_with_mode(d, OP_take_along, (tensor_value[]){ o->in[0], from }, time, -1);
}

/* Without training there is nothing to drop. */
void op_dropout(struct op *o)
{
	const struct tensor *training = op_in(o, 2) ? op_known(o, 2) : NULL;
	const struct tensor *ratio = training && op_in(o, 1) ? op_known(o, 1) : NULL;
	const struct shape s = draw_shape(&o->d, o->in[0]);

	if (training && number_of(training, 0) != 0 && !(ratio && number_of(ratio, 0) == 0))
		op_refuse(o, "input 3, training_mode, is true, which asks for random numbers");
	if (op_int(o, "is_test", 1) == 0)
		op_refuse(o, "attribute is_test is 0, which asks for random numbers");
	if (op_failed(o))
		return;
	o->out[0] = o->in[0];
	if (op_wants(o, 1))
		o->out[1] = draw_broadcast(&o->d, draw_scalar(&o->d, 1, JIT_TYPE_BOOL), &s);
}
