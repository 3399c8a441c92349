/* loaders/onnx/op_shape.c - operators on shapes, and constants. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

/* ---- constants */

tensor_value op_constant_shaped(struct op *o, const int64_t *x, const struct shape *s)
{
	struct tensor t;
	const uint64_t n = shape_elements(s);

	if (!tensor_make(&t, JIT_TYPE_I64, s, o->err))
		return 0;
	if (n)
		memcpy(t.data, x, n * sizeof *x);
	const tensor_value v = tensor_graph_constant(o->d.g, &t, o->err);
	tensor_free(&t);
	return v;
}

tensor_value op_constant_ints(struct op *o, const int64_t *x, uint64_t n)
{
	return op_constant_shaped(o, x, &(struct shape){ .rank = 1, .dim = { n } });
}

tensor_value op_constant_reals(struct op *o, const double *x, uint64_t n, int type)
{
	struct tensor t;

	if (!tensor_make(&t, type, &(struct shape){ .rank = 1, .dim = { n } }, o->err))
		return 0;
	for (uint64_t i = 0; i < n; i++)
		tensor_put(&t, i, tensor_convert((union number){ .d = x[i] }, JIT_TYPE_F64, tensor_wide_type(type)));
	const tensor_value v = tensor_graph_constant(o->d.g, &t, o->err);
	tensor_free(&t);
	return v;
}

static tensor_value constant_tensor(struct op *o, const struct onnx_tensor *from)
{
	struct tensor t;

	if (!onnx_tensor_of(from, "attribute value", o->im->file->folder, &t, o->err))
		return 0;
	const tensor_value v = tensor_graph_constant(o->d.g, &t, o->err);
	tensor_free(&t);
	o->narrow_out[0] = onnx_narrow_bits(from->type) ? (uint8_t)from->type : 0;
	return v;
}

static tensor_value constant_floats(struct op *o, const struct onnx_attribute *a)
{
	struct tensor t;

	if (!tensor_make(&t, JIT_TYPE_F32, &(struct shape){ .rank = 1, .dim = { a->n_floats } }, o->err))
		return 0;
	if (a->n_floats)
		memcpy(t.data, a->floats, a->n_floats * sizeof *a->floats);
	const tensor_value v = tensor_graph_constant(o->d.g, &t, o->err);
	tensor_free(&t);
	return v;
}

void op_constant(struct op *o)
{
	const struct onnx_attribute *a;

	if ((a = op_attribute(o, "value")) && a->t) {
		o->out[0] = constant_tensor(o, a->t);
	} else if ((a = op_attribute(o, "value_int"))) {
		const int64_t i = op_int(o, "value_int", 0);
		o->out[0] = op_constant_shaped(o, &i, &(struct shape){ 0 });
	} else if ((a = op_attribute(o, "value_ints"))) {
		o->out[0] = op_constant_ints(o, a->ints, a->n_ints);
	} else if (op_attribute(o, "value_float")) {
		o->out[0] = draw_scalar(&o->d, op_float(o, "value_float", 0), JIT_TYPE_F32);
	} else if ((a = op_attribute(o, "value_floats"))) {
		o->out[0] = constant_floats(o, a);
	} else {
		op_refuse(o, "it has no tensor, integers or floats as its value");
	}
}

static bool shape_from(struct op *o, const int64_t *dim, unsigned n, struct shape *s)
{
	*s = (struct shape){ .rank = n };
	for (unsigned i = 0; i < n; i++) {
		if (dim[i] < 0) {
			op_refuse(o, "dimension %u is %" PRId64, i, dim[i]);
			return false;
		}
		s->dim[i] = (uint64_t)dim[i];
	}
	return true;
}

void op_constant_of_shape(struct op *o)
{
	const struct onnx_attribute *a = op_attribute(o, "value");
	int64_t dim[TENSOR_MAX_RANK];
	struct shape s;
	unsigned n;

	if (!op_known_ints(o, 0, dim, TENSOR_MAX_RANK, &n) || !shape_from(o, dim, n, &s))
		return;
	tensor_value v = a && a->t ? constant_tensor(o, a->t) : draw_scalar(&o->d, 0, JIT_TYPE_F32);
	if (v && shape_elements(&o->d.g->value[v].shape) != 1)
		op_refuse(o, "attribute value has several elements, expected one");
	else
		o->out[0] = draw_broadcast(&o->d, draw_dims(&o->d, v, 0, NULL), &s);
}

/* ---- shapes as values */

void op_shape(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	int64_t from = op_int(o, "start", 0), to = op_int(o, "end", s.rank), dim[TENSOR_MAX_RANK];
	const int64_t rank = s.rank;

	from = from < 0 ? from + rank : from;
	to = to < 0 ? to + rank : to;
	from = from < 0 ? 0 : from > rank ? rank : from;
	to = to < from ? from : to > rank ? rank : to;
	for (int64_t i = from; i < to; i++)
		dim[i - from] = (int64_t)s.dim[i];
	o->out[0] = op_constant_ints(o, dim, (uint64_t)(to - from));
}

void op_size(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const int64_t n = (int64_t)shape_elements(&s);

	o->out[0] = op_constant_shaped(o, &n, &(struct shape){ 0 });
}

/* ---- reshapes */

void op_identity(struct op *o) { o->out[0] = o->in[0]; }

/* 0: as it is, unless allowzero says that it is 0; -1: what is left. */
void op_reshape(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const bool zero = op_int(o, "allowzero", 0) != 0;
	int64_t dim[TENSOR_MAX_RANK];
	uint64_t product = 1;
	unsigned n, rest = TENSOR_MAX_RANK;

	if (!op_ints_of(o, 1, "shape", dim, TENSOR_MAX_RANK, &n)) {
		op_refuse(o, "there is no shape");
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		if (dim[i] == 0 && !zero && i < s.rank)
			dim[i] = (int64_t)s.dim[i];
		if (dim[i] < -1 || (dim[i] == -1 && rest < TENSOR_MAX_RANK)) {
			op_refuse(o, "dimension %u of the new shape is %" PRId64, i, dim[i]);
			return;
		}
		if (dim[i] == -1)
			rest = i;
		else if (__builtin_mul_overflow(product, (uint64_t)dim[i], &product))
			product = UINT64_MAX;
	}
	if (rest < TENSOR_MAX_RANK)
		dim[rest] = product ? (int64_t)(shape_elements(&s) / product) : 0;
	struct shape to;
	if (shape_from(o, dim, n, &to))
		o->out[0] = draw_reshape(&o->d, o->in[0], &to);
}

void op_flatten(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const int64_t given = op_int(o, "axis", 1), a = given < 0 ? given + s.rank : given;

	if (a < 0 || a > s.rank) {
		op_refuse(o, "attribute axis is %" PRId64 ", expected at most %u", given, s.rank);
		return;
	}
	const uint64_t dim[] = { shape_part(&s, 0, (unsigned)a), shape_part(&s, (unsigned)a, s.rank) };
	o->out[0] = draw_dims(&o->d, o->in[0], 2, dim);
}

void op_squeeze(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	int64_t axes[TENSOR_MAX_RANK];
	uint64_t dim[TENSOR_MAX_RANK];
	unsigned n, set, rank = 0;
	const bool given = op_ints_of(o, 1, "axes", axes, TENSOR_MAX_RANK, &n);

	set = op_axes(o, axes, n, s.rank);
	for (unsigned i = 0; i < s.rank; i++) {
		const bool goes = given ? set >> i & 1 : s.dim[i] == 1;
		if (goes && s.dim[i] != 1)
			op_refuse(o, "dimension %u is %" PRIu64 ", expected 1", i, s.dim[i]);
		if (!goes)
			dim[rank++] = s.dim[i];
	}
	if (!op_failed(o))
		o->out[0] = draw_dims(&o->d, o->in[0], rank, dim);
}

void op_unsqueeze(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	int64_t axes[TENSOR_MAX_RANK];
	uint64_t dim[2 * TENSOR_MAX_RANK];
	unsigned n, from = 0;

	if (!op_ints_of(o, 1, "axes", axes, TENSOR_MAX_RANK, &n)) {
		op_refuse(o, "there are no axes");
		return;
	}
	const unsigned set = op_axes(o, axes, n, s.rank + n);
	for (unsigned i = 0; i < s.rank + n && !op_failed(o); i++)
		dim[i] = set >> i & 1 ? 1 : s.dim[from++];
	if (!op_failed(o))
		o->out[0] = draw_dims(&o->d, o->in[0], s.rank + n, dim);
}

void op_transpose(struct op *o)
{
	const unsigned rank = draw_rank(&o->d, o->in[0]);
	int64_t perm[TENSOR_MAX_RANK];
	unsigned axes[TENSOR_MAX_RANK], n;
	const bool given = op_ints(o, "perm", perm, TENSOR_MAX_RANK, &n);

	if (given && (n != rank || op_axes(o, perm, n, rank) != (1U << rank) - 1))
		op_refuse(o, "attribute perm does not name each of %u dimensions once", rank);
	for (unsigned i = 0; i < rank && !op_failed(o); i++)
		axes[i] = given ? op_axis(o, perm[i], rank) : rank - 1 - i;
	if (!op_failed(o))
		o->out[0] = draw_transpose(&o->d, o->in[0], axes);
}

void op_expand(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape of = draw_shape(d, o->in[0]);
	int64_t dim[TENSOR_MAX_RANK];
	struct shape s;
	unsigned n;

	if (!op_known_ints(o, 1, dim, TENSOR_MAX_RANK, &n) || !shape_from(o, dim, n, &s))
		return;
	struct shape to = s.rank > of.rank ? s : of;
	for (unsigned i = 0; i < to.rank; i++) { /* both ways: a 1 of the shape keeps the dimension */
		const uint64_t a = i < to.rank - of.rank ? 1 : of.dim[i - (to.rank - of.rank)],
			       b = i < to.rank - s.rank ? 1 : s.dim[i - (to.rank - s.rank)];
		to.dim[i] = b == 1 ? a : b;
	}
	o->out[0] = draw_broadcast(d, o->in[0], &to);
}

/* ---- pieces */

void op_concat(struct op *o)
{
	const unsigned rank = draw_rank(&o->d, o->in[0]),
		       axis = op_axis(o, op_int(o, "axis", o->opset < 4 ? 1 : 0), rank);
	tensor_value *list = calloc(o->inputs, sizeof *list);
	unsigned n = 0;

	for (uint32_t i = 0; list && i < o->inputs; i++)
		if (o->in[i])
			list[n++] = o->in[i];
	if (!list)
		op_refuse(o, "there is no memory");
	else if (!op_failed(o))
		o->out[0] = draw_concatenate(&o->d, list, n, axis);
	free(list);
}

/* Sizes of the parts: given, or equal ones, of which the last may be smaller. */
void op_split(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const unsigned axis = op_axis(o, op_int(o, "axis", 0), s.rank);
	enum { MAX = 4096 };
	int64_t *size = calloc(MAX, sizeof *size);
	unsigned n = 0;
	uint64_t at = 0;

	if (!size || o->outputs > MAX || op_failed(o)) {
		op_refuse(o, "there are %u outputs, expected at most %d", o->outputs, MAX);
		free(size);
		return;
	}
	const bool given = op_ints_of(o, 1, "split", size, MAX, &n);
	const uint64_t parts = (uint64_t)op_int(o, "num_outputs", o->outputs),
		       each = parts ? (s.dim[axis] + parts - 1) / parts : 0;
	if (given ? n != o->outputs : parts != o->outputs)
		op_refuse(o, "there are %u outputs and %" PRIu64 " parts", o->outputs, given ? n : parts);
	for (uint32_t i = 0; i < o->outputs && !op_failed(o); i++) {
		const uint64_t left = s.dim[axis] - at, take = given ? (uint64_t)size[i] : each < left ? each : left;
		if (take > left || (given && i + 1 == o->outputs && take != left))
			op_refuse(o, "the parts do not add up to %" PRIu64, s.dim[axis]);
		else
			o->out[i] = draw_slice(&o->d, o->in[0], axis, at, at + take, 1);
		at += take;
	}
	free(size);
}

static int64_t within(int64_t x, int64_t min, int64_t max) { return x < min ? min : x > max ? max : x; }

static tensor_value slice_axis(struct op *o, tensor_value x, unsigned axis, int64_t start, int64_t end, int64_t step)
{
	const int64_t n = (int64_t)draw_dim(&o->d, x, axis);

	start = within(start < 0 && start >= -n ? start + n : start, step < 0 ? -1 : 0, step < 0 ? n - 1 : n);
	end = end < 0 ? end + n : end; /* no overflow: end is negative, n is not */
	end = within(end, step < 0 ? -1 : 0, n);
	if (step > 0) {
		if (step > n + 1)
			step = n + 1;
		return draw_slice(&o->d, x, axis, (uint64_t)start, (uint64_t)(end < start ? start : end),
		                  (uint64_t)step);
	}
	const int64_t by = step < -(n + 1) ? n + 1 : -step, count = start > end ? (start - end + by - 1) / by : 0;
	const int64_t first = count ? n - 1 - start : 0;
	return draw_slice(&o->d, draw_reverse(&o->d, x, axis), axis, (uint64_t)first,
	                  (uint64_t)(count ? first + (count - 1) * by + 1 : 0), (uint64_t)by);
}

void op_slice(struct op *o)
{
	const unsigned rank = draw_rank(&o->d, o->in[0]);
	int64_t start[TENSOR_MAX_RANK], end[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK], step[TENSOR_MAX_RANK];
	unsigned n, ends, n_axes, steps;

	for (unsigned i = 0; i < TENSOR_MAX_RANK; i++) {
		axes[i] = i;
		step[i] = 1;
	}
	if (!op_ints_of(o, 1, "starts", start, TENSOR_MAX_RANK, &n) ||
	    !op_ints_of(o, 2, "ends", end, TENSOR_MAX_RANK, &ends)) {
		op_refuse(o, "there are no starts and ends");
		return;
	}
	const bool has_axes = op_ints_of(o, 3, "axes", axes, TENSOR_MAX_RANK, &n_axes),
		   has_steps = op_known_ints(o, 4, step, TENSOR_MAX_RANK, &steps);
	if (ends != n || (has_axes && n_axes != n) || (has_steps && steps != n))
		op_refuse(o, "starts, ends, axes and steps have different lengths");
	op_axes(o, axes, n, rank);
	tensor_value x = o->in[0];
	for (unsigned i = 0; i < n && !op_failed(o); i++) {
		if (step[i] == 0)
			op_refuse(o, "a step is 0");
		else
			x = slice_axis(o, x, op_axis(o, axes[i], rank), start[i], end[i], step[i]);
	}
	if (!op_failed(o))
		o->out[0] = x;
}

/* Each dimension is put beside one that repeats it. */
void op_tile(struct op *o)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	int64_t times[TENSOR_MAX_RANK];
	tensor_value x = o->in[0];
	unsigned n;

	if (!op_known_ints(o, 1, times, TENSOR_MAX_RANK, &n))
		return;
	if (n != s.rank) {
		op_refuse(o, "there are %u repeats of %u dimensions", n, s.rank);
		return;
	}
	for (unsigned i = 0; i < n && !op_failed(o); i++) {
		const struct shape at = draw_shape(&o->d, x);
		struct shape flat = { .rank = 3, .dim = { shape_part(&at, 0, i), 1, shape_part(&at, i, at.rank) } },
			     wide = flat, to = at;
		if (times[i] < 0 || (at.dim[i] && (uint64_t)times[i] > TENSOR_MAX_BYTES / at.dim[i])) {
			op_refuse(o, "repeat %u is %" PRId64, i, times[i]);
			return;
		}
		wide.dim[1] = (uint64_t)times[i];
		to.dim[i] *= (uint64_t)times[i];
		x = draw_reshape(&o->d, draw_broadcast(&o->d, draw_reshape(&o->d, x, &flat), &wide), &to);
	}
	o->out[0] = x;
}

/* ---- numbers in a row */

void op_range(struct op *o)
{
	const struct tensor *t[3];
	double x[3];

	for (unsigned i = 0; i < 3; i++) {
		t[i] = op_known(o, i);
		if (!t[i])
			return;
		if (shape_elements(&t[i]->shape) != 1) {
			op_refuse(o, "input %u is no number", i + 1);
			return;
		}
		x[i] = number_of(t[i], 0);
	}
	const double n = ceil((x[1] - x[0]) / x[2]);
	if (!(fabs(n) < 0x1p40)) {
		op_refuse(o, "the range from %g to %g in steps of %g has no length", x[0], x[1], x[2]);
		return;
	}
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]), in = tensor_wide_type(type);
	const struct shape s = { .rank = 1, .dim = { n > 0 ? (uint64_t)n : 0 } };
	const tensor_value steps =
		draw_binary(d, OP_mul, draw_iota(d, in, &s, 0), draw_convert(d, draw_dims(d, o->in[2], 0, NULL), in));
	o->out[0] = draw_convert(d, draw_binary(d, OP_add, steps, draw_convert(d, draw_dims(d, o->in[0], 0, NULL), in)),
	                         type);
}

/* Rows i and columns j with j - i >= k (upper) or <= k, or == k of EyeLike. */
static tensor_value diagonal(struct op *o, const struct shape *s, enum tensor_op op, int64_t k)
{
	struct draw *d = &o->d;
	const tensor_value i = draw_iota(d, JIT_TYPE_I64, s, s->rank - 2),
			   j = draw_iota(d, JIT_TYPE_I64, s, s->rank - 1);

	return draw_with(d, op, draw_binary(d, OP_sub, j, i), (double)k);
}

void op_trilu(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const int64_t k = within(op_known_int(o, 1, 0), -(INT64_C(1) << 46), INT64_C(1) << 46);
	const bool upper = op_int(o, "upper", 1) != 0;

	if (s.rank < 2)
		op_refuse(o, "there are %u dimensions, expected 2 or more", s.rank);
	if (op_failed(o))
		return;
	const struct shape matrix = { .rank = 2, .dim = { s.dim[s.rank - 2], s.dim[s.rank - 1] } };
	o->out[0] =
		draw_select(d, diagonal(o, &matrix, upper ? OP_ge : OP_le, k), o->in[0], draw_number(d, 0, o->in[0]));
}

void op_eye_like(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const struct onnx_attribute *a = op_attribute(o, "dtype");
	const int type = a ? onnx_type(op_int(o, "dtype", 0)) : draw_type(d, o->in[0]);
	const int64_t k = within(op_int(o, "k", 0), -(INT64_C(1) << 46), INT64_C(1) << 46);

	if (s.rank != 2 || type < 0)
		op_refuse(o, "there are %u dimensions, expected 2, or attribute dtype is no type of graphs", s.rank);
	else
		o->out[0] = draw_convert(d, diagonal(o, &s, OP_eq, k), type);
}
