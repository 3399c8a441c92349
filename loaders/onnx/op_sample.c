/* loaders/onnx/op_sample.c - samples of images at positions that a grid gives, and such grids. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loaders/onnx/operators.h"

enum { BY_NEAREST, BY_LINEAR, BY_CUBIC };
enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
enum { MAX_TAPS = 4 };

/* A tap of one dimension, [batch,positions]: which element, its weight, and (where others are 0) whether it exists. */
struct tap {
	tensor_value index, weight, exists;
};
struct sampler {
	int mode, padding;
	bool corners;
	unsigned n, taps; /* dimensions of space; taps of each */
	struct tap tap[TENSOR_MAX_RANK][MAX_TAPS];
};

/* Reflects x by both ends until it lies between them. */
static tensor_value reflect(struct draw *d, tensor_value x, double low, double high)
{
	const double span = high - low;

	if (span <= 0)
		return draw_number(d, low, x);
	const tensor_value far = draw_unary(d, OP_abs, draw_with(d, OP_sub, x, low)),
			   rest = draw_with(d, OP_rem, far, 2 * span);
	const tensor_value back = draw_from(d, OP_sub, 2 * span, rest);
	return draw_with(d, OP_add, draw_select(d, draw_with(d, OP_gt, rest, span), back, rest), low);
}

/* An element's number as an index that exists. */
static void set_tap(struct op *o, const struct sampler *s, uint64_t n, tensor_value at, struct tap *t)
{
	struct draw *d = &o->d;
	const double last = (double)n - 1;

	if (s->padding == PAD_ZEROS)
		t->exists = draw_binary(d, OP_and, draw_with(d, OP_ge, at, 0), draw_with(d, OP_le, at, last));
	else if (s->padding == PAD_REFLECTION)
		at = draw_unary(d, OP_trunc, reflect(d, at, s->corners ? 0 : -0.5, s->corners ? last : last + 0.5));
	at = draw_from(d, OP_min, last, draw_from(d, OP_max, 0, at));
	t->index = draw_convert(d, at, JIT_TYPE_I64);
}

/* Weights of four elements around, of which the second lies `part` before the position. */
static tensor_value cubic(struct draw *d, tensor_value part, int k)
{
	const double a = -0.75;
	const tensor_value x = draw_unary(d, OP_abs, draw_with(d, OP_sub, part, k - 1.0));
	const tensor_value square = draw_binary(d, OP_mul, x, x);

	if (k == 1 || k == 2) { /* ((a + 2) x - (a + 3)) x^2 + 1 */
		const tensor_value line = draw_with(d, OP_sub, draw_with(d, OP_mul, x, a + 2), a + 3);
		return draw_with(d, OP_add, draw_binary(d, OP_mul, line, square), 1);
	} /* ((x - 5) x + 8) x a - 4 a */
	const tensor_value inner = draw_with(d, OP_add, draw_binary(d, OP_mul, draw_with(d, OP_sub, x, 5), x), 8);
	return draw_with(d, OP_sub, draw_with(d, OP_mul, draw_binary(d, OP_mul, inner, x), a), 4 * a);
}

/* Taps of dimension i around the position x, in elements. */
static void read_position(struct op *o, struct sampler *s, unsigned i, uint64_t n, tensor_value x)
{
	struct draw *d = &o->d;
	const tensor_value low = draw_unary(d, OP_floor, x), part = draw_binary(d, OP_sub, x, low);

	for (int k = 0; k < (int)s->taps; k++) {
		struct tap *t = &s->tap[i][k];
		if (s->mode == BY_NEAREST)
			set_tap(o, s, n, draw_unary(d, OP_round, x), t);
		else
			set_tap(o, s, n, draw_with(d, OP_add, low, s->mode == BY_CUBIC ? k - 1 : k), t);
		if (s->mode == BY_LINEAR)
			t->weight = k ? part : draw_from(d, OP_sub, 1, part);
		else if (s->mode == BY_CUBIC)
			t->weight = cubic(d, part, k);
	}
}

/* The same of a position between -1 and 1. */
static void read_dimension(struct op *o, struct sampler *s, unsigned i, uint64_t n, tensor_value g)
{
	struct draw *d = &o->d;
	const tensor_value up = draw_with(d, OP_add, g, 1);

	read_position(o, s, i, n,
	              s->corners
	                      ? draw_with(d, OP_mul, draw_with(d, OP_div, up, 2), (double)n - 1)
	                      : draw_with(d, OP_div, draw_with(d, OP_sub, draw_with(d, OP_mul, up, (double)n), 1), 2));
}

/* One tap of each dimension: what is taken there, times its weights. x: [batch,channels,space] */
static tensor_value take_tap(struct op *o, const struct sampler *s, tensor_value x, const struct shape *of,
                             const unsigned *which)
{
	struct draw *d = &o->d;
	tensor_value index = 0, weight = 0, exists = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct tap *t = &s->tap[i][which[i]];
		const tensor_value more = i ? draw_with(d, OP_mul, index, (double)of->dim[2 + i]) : 0;
		index = i ? draw_binary(d, OP_add, more, t->index) : t->index;
		if (t->weight)
			weight = weight ? draw_binary(d, OP_mul, weight, t->weight) : t->weight;
		if (t->exists)
			exists = exists ? draw_binary(d, OP_and, exists, t->exists) : t->exists;
	}
	const struct shape all = { .rank = 3, .dim = { of->dim[0], of->dim[1], draw_dim(d, index, 1) } };
	tensor_value y = draw_with_mode(
		d, OP_take_along, (tensor_value[]){ x, draw_broadcast(d, draw_expand(d, index, 1), &all) }, 2, -1);
	if (exists)
		y = draw_select(d, draw_expand(d, exists, 1), y, draw_scalar(d, 0, draw_type(d, y)));
	return weight ? draw_binary(d, OP_mul, y, draw_convert(d, draw_expand(d, weight, 1), draw_type(d, y))) : y;
}

/* The sum over all taps. x: [batch,channels,space], of: [batch,channels,..] */
static tensor_value take_taps(struct op *o, const struct sampler *s, tensor_value x, const struct shape *of)
{
	struct shape taps = { .rank = s->n };
	uint64_t at[TENSOR_MAX_RANK] = { 0 };
	unsigned which[TENSOR_MAX_RANK] = { 0 };
	tensor_value sum = 0;

	for (unsigned i = 0; i < s->n; i++)
		taps.dim[i] = s->taps;
	do {
		for (unsigned i = 0; i < s->n; i++)
			which[i] = (unsigned)at[i];
		const tensor_value part = take_tap(o, s, x, of, which);
		sum = sum ? draw_binary(&o->d, OP_add, sum, part) : part;
	} while (!op_failed(o) && shape_next(&taps, at));
	return sum;
}

tensor_value op_sample_linear(struct op *o, tensor_value x, const struct shape *of, const tensor_value *at)
{
	struct sampler s = { .mode = BY_LINEAR, .padding = PAD_ZEROS, .taps = 2, .n = of->rank - 2 };

	for (unsigned i = 0; i < s.n; i++)
		read_position(o, &s, i, of->dim[2 + i], at[i]);
	return take_taps(o, &s, x, of);
}

static bool read_sampler(struct op *o, struct sampler *s)
{
	const bool cubic_mode = op_is(o, "mode", "linear", "cubic") || op_is(o, "mode", "linear", "bicubic"),
		   nearest = op_is(o, "mode", "linear", "nearest"),
		   linear = op_is(o, "mode", "linear", "linear") || op_is(o, "mode", "linear", "bilinear"),
		   border = op_is(o, "padding_mode", "zeros", "border"),
		   reflection = op_is(o, "padding_mode", "zeros", "reflection");

	if (!cubic_mode && !nearest && !linear)
		op_refuse(o, "attribute mode is none of linear, nearest and cubic");
	if (!border && !reflection && !op_is(o, "padding_mode", "zeros", "zeros"))
		op_refuse(o, "attribute padding_mode is none of zeros, border and reflection");
	s->mode = cubic_mode ? BY_CUBIC : nearest ? BY_NEAREST : BY_LINEAR;
	s->padding = border ? PAD_BORDER : reflection ? PAD_REFLECTION : PAD_ZEROS;
	s->taps = s->mode == BY_CUBIC ? 4 : s->mode == BY_LINEAR ? 2 : 1;
	s->corners = op_int(o, "align_corners", 0) != 0;
	return !op_failed(o);
}

void op_grid_sample(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape of = draw_shape(d, o->in[0]), g = draw_shape(d, o->in[1]);
	const int type = draw_type(d, o->in[0]);
	struct sampler s = { 0 };

	if (of.rank < 3 || of.rank > 5 || g.rank != of.rank || g.dim[g.rank - 1] != of.rank - 2 ||
	    g.dim[0] != of.dim[0] || shape_part(&of, 2, of.rank) == 0) {
		op_refuse(o, "the grid does not fit an input of %u dimensions, expected 3 to 5", of.rank);
		return;
	}
	if (!read_sampler(o, &s))
		return;
	s.n = of.rank - 2;
	const uint64_t positions = shape_part(&g, 1, g.rank - 1);
	const tensor_value grid =
		draw_dims(d, op_widen(o, o->in[1]), 3, (const uint64_t[]){ g.dim[0], positions, s.n });
	for (unsigned i = 0; i < s.n; i++) {
		const unsigned k = s.n - 1 - i; /* the grid has the last dimension first */
		read_dimension(o, &s, i, of.dim[2 + i], draw_squeeze(d, draw_slice(d, grid, 2, k, k + 1, 1), 2));
	}
	const tensor_value wide =
		tensor_is_float(type) ? op_widen(o, o->in[0]) : draw_convert(d, o->in[0], JIT_TYPE_F32);
	const tensor_value x =
		draw_dims(d, wide, 3, (const uint64_t[]){ of.dim[0], of.dim[1], shape_part(&of, 2, of.rank) });
	const tensor_value sum = take_taps(o, &s, x, &of);
	struct shape out = of;
	memcpy(out.dim + 2, g.dim + 1, s.n * sizeof *out.dim);
	o->out[0] = draw_convert(d, draw_reshape(d, sum, &out), type);
}

/* Positions -1 to 1 of each dimension of space, through a matrix for each batch. */
void op_affine_grid(struct op *o)
{
	struct draw *d = &o->d;
	const bool corners = op_int(o, "align_corners", 0) != 0;
	const int type = draw_type(d, o->in[0]);
	int64_t size[TENSOR_MAX_RANK];
	tensor_value part[TENSOR_MAX_RANK];
	struct shape space = { .rank = 0 };
	unsigned n;

	if (!op_known_ints(o, 1, size, TENSOR_MAX_RANK, &n))
		return;
	if ((n != 4 && n != 5) || draw_rank(d, o->in[0]) != 3 || draw_dim(d, o->in[0], 1) != n - 2 ||
	    draw_dim(d, o->in[0], 2) != n - 1) {
		op_refuse(o, "a size of %u numbers, expected 4 or 5, and a matrix for as many dimensions", n);
		return;
	}
	for (unsigned i = 2; i < n; i++) {
		if (size[i] < 1 || size[i] > 1 << 24) {
			op_refuse(o, "input 2, size, has the number %" PRId64, size[i]);
			return;
		}
		space.dim[space.rank++] = (uint64_t)size[i];
	}
	const tensor_value theta = op_widen(o, o->in[0]);
	const uint64_t all = shape_elements(&space);
	for (unsigned i = 0; i < n - 2; i++) { /* x, y, z: the last dimension first */
		const unsigned axis = n - 3 - i;
		const double steps = (double)space.dim[axis];
		tensor_value at = draw_iota(d, draw_type(d, theta), &space, axis);
		if (corners)
			at = steps > 1 ? draw_with(d, OP_sub,
			                           draw_with(d, OP_div, draw_with(d, OP_mul, at, 2), steps - 1), 1)
			               : draw_number(d, 0, at);
		else
			at = draw_with(
				d, OP_sub,
				draw_with(d, OP_div, draw_with(d, OP_add, draw_with(d, OP_mul, at, 2), 1), steps), 1);
		part[i] = draw_dims(d, at, 2, (const uint64_t[]){ all, 1 });
	}
	part[n - 2] = draw_broadcast(d, draw_scalar(d, 1, draw_type(d, theta)),
	                             &(struct shape){ .rank = 2, .dim = { all, 1 } });
	const tensor_value homogeneous = draw_concatenate(d, part, n - 1, 1);
	const tensor_value y = draw_dot(d, theta, homogeneous, 2, 1, 0); /* [batch,dimension,positions] */
	struct shape out = { .rank = n, .dim = { draw_dim(d, theta, 0) } };
	memcpy(out.dim + 1, space.dim, space.rank * sizeof *space.dim);
	out.dim[n - 1] = n - 2;
	o->out[0] = draw_convert(d, draw_reshape(d, draw_swap(d, y, 1, 2), &out), type);
}
