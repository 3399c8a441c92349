/* loaders/onnx/op_patches.c - patches of images: added up where they overlap, put back where their greatest was, and
 * taken from positions that the input says.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

/* Constants of that many numbers at most are made for indices and positions. */
enum { MAX_NUMBERS = 1 << 24 };

/* ---- Col2Im */

/* How many patches begin along each dimension; 0: err. */
static uint64_t count_patches(struct op *o, const struct windows *w, const struct shape *image, struct shape *patches)
{
	uint64_t all = 1;

	*patches = (struct shape){ .rank = w->n };
	for (unsigned i = 0; i < w->n; i++) {
		const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1,
			      room = (int64_t)image->dim[i] + w->low[i] + w->high[i] - reach;
		if (room < 0) {
			op_refuse(o, "a patch of %" PRId64 " elements is larger than dimension %u of the image", reach,
			          i);
			return 0;
		}
		patches->dim[i] = (uint64_t)(room / w->stride[i]) + 1;
		all *= patches->dim[i];
	}
	return all;
}

/* The patch in which tap k lies at the element; -1: none. */
static int64_t patch_at(const struct windows *w, const struct shape *patches, const uint64_t *element,
                        const uint64_t *k)
{
	int64_t flat = 0;

	for (unsigned i = 0; i < w->n; i++) {
		const int64_t from = (int64_t)element[i] + w->low[i] - (int64_t)k[i] * w->dilation[i];
		if (from < 0 || from % w->stride[i] || (uint64_t)(from / w->stride[i]) >= patches->dim[i])
			return -1;
		flat = flat * (int64_t)patches->dim[i] + from / w->stride[i];
	}
	return flat;
}

/* For each element of the image, where each tap is in [taps*patches]; -1: nowhere. */
static tensor_value taps_at(struct op *o, const struct windows *w, const struct shape *image,
                            const struct shape *patches)
{
	struct shape window = { .rank = w->n };
	uint64_t element[TENSOR_MAX_RANK] = { 0 }, k[TENSOR_MAX_RANK] = { 0 }, n = 0;
	const uint64_t elements = shape_elements(image), each = shape_elements(patches);

	for (unsigned i = 0; i < w->n; i++)
		window.dim[i] = (uint64_t)w->size[i];
	const uint64_t taps = shape_elements(&window);
	int64_t *index = elements && taps <= MAX_NUMBERS / elements ? calloc(elements * taps, sizeof *index) : NULL;
	if (!index) {
		op_refuse(o, "there are %" PRIu64 " taps of %" PRIu64 " elements", taps, elements);
		return 0;
	}
	do {
		int64_t tap = 0;
		do {
			const int64_t at = patch_at(w, patches, element, k);
			index[n++] = at < 0 ? -1 : tap * (int64_t)each + at;
			tap++;
		} while (shape_next(&window, k));
	} while (shape_next(image, element));
	const tensor_value v = op_constant_shaped(o, index, &(struct shape){ .rank = 2, .dim = { elements, taps } });
	free(index);
	return v;
}

static bool known_sizes(struct op *o, unsigned input, unsigned rank, int64_t *out, unsigned *n)
{
	if (!op_known_ints(o, input, out, TENSOR_MAX_RANK - 2, n))
		return false;
	if (*n == 0 || (rank && *n != rank))
		op_refuse(o, "input %u has %u numbers, expected %u", input + 1, *n, rank ? rank : 2);
	for (unsigned i = 0; i < *n && !op_failed(o); i++)
		if (out[i] < 1 || out[i] > MAX_NUMBERS)
			op_refuse(o, "input %u has the number %" PRId64, input + 1, out[i]);
	return !op_failed(o);
}

static bool read_patches(struct op *o, struct windows *w, struct shape *image)
{
	int64_t size[TENSOR_MAX_RANK], pads[2 * TENSOR_MAX_RANK];

	if (!known_sizes(o, 1, 0, size, &w->n) || !known_sizes(o, 2, w->n, w->size, &w->n) ||
	    !op_list(o, "strides", w->stride, w->n, 1, 1) || !op_list(o, "dilations", w->dilation, w->n, 1, 1) ||
	    !op_list(o, "pads", pads, 2 * w->n, 0, 0))
		return false;
	*image = (struct shape){ .rank = w->n };
	for (unsigned i = 0; i < w->n; i++) {
		image->dim[i] = (uint64_t)size[i];
		w->low[i] = pads[i];
		w->high[i] = pads[w->n + i];
	}
	return shape_fits(JIT_TYPE_F64, image, o->err);
}

/* Each element of the image is the sum of what patches have for it. */
void op_col2im(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	struct windows w = { 0 };
	struct shape image, patches;

	if (!read_patches(o, &w, &image))
		return;
	const uint64_t all = count_patches(o, &w, &image, &patches);
	const tensor_value index = all ? taps_at(o, &w, &image, &patches) : 0;
	const uint64_t taps = draw_dim(d, index, 1);
	if (index && (s.rank != 3 || s.dim[1] % taps || s.dim[2] != all))
		op_refuse(o, "input 1 does not have rows of %" PRIu64 " patches, a multiple of %" PRIu64 " of them",
		          all, taps);
	if (op_failed(o))
		return;
	const uint64_t channels = s.dim[1] / taps;
	const tensor_value x =
		draw_dims(d, op_widen(o, o->in[0]), 3, (const uint64_t[]){ s.dim[0], channels, taps * all });
	const tensor_value sum = draw_reduce(d, OP_reduce_sum, draw_take(d, x, index, 2), 8, false);
	struct shape out = { .rank = 2 + w.n, .dim = { s.dim[0], channels } };
	memcpy(out.dim + 2, image.dim, w.n * sizeof *image.dim);
	o->out[0] = draw_convert(d, draw_reshape(d, sum, &out), draw_type(d, o->in[0]));
}

/* ---- MaxUnpool */

/* What the input had before MaxPool, as far as its attributes say. */
static bool unpooled_shape(struct op *o, const struct shape *s, struct shape *out)
{
	int64_t size[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK], pads[2 * TENSOR_MAX_RANK];
	const unsigned n = s->rank - 2;

	*out = *s;
	if (!op_attribute(o, "kernel_shape"))
		op_refuse(o, "there is no kernel_shape");
	if (op_failed(o) || !op_list(o, "kernel_shape", size, n, 1, 1) || !op_list(o, "strides", stride, n, 1, 1) ||
	    !op_list(o, "pads", pads, 2 * n, 0, 0))
		return false;
	for (unsigned i = 0; i < n; i++) {
		const int64_t in = (int64_t)s->dim[2 + i],
			      all = in ? (in - 1) * stride[i] + size[i] - pads[i] - pads[n + i] : 0;
		if (all < 0 || all > INT32_MAX)
			op_refuse(o, "dimension %u becomes %" PRId64, 2 + i, all);
		out->dim[2 + i] = (uint64_t)all;
	}
	return !op_failed(o) && shape_fits(draw_type(&o->d, o->in[0]), out, o->err);
}

/* Zeros behind each dimension, up to the shape that input 3 asks for. */
static tensor_value fill_up(struct op *o, tensor_value y, const struct shape *s)
{
	int64_t to[TENSOR_MAX_RANK], low[TENSOR_MAX_RANK] = { 0 }, high[TENSOR_MAX_RANK] = { 0 };
	unsigned n;

	if (!op_known_ints(o, 2, to, TENSOR_MAX_RANK, &n))
		return 0;
	if (n != s->rank) {
		op_refuse(o, "input 3, output_shape, has %u numbers, expected %u", n, s->rank);
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		high[i] = to[i] - (int64_t)s->dim[i];
		if (to[i] < (int64_t)s->dim[i] || to[i] > INT32_MAX) {
			op_refuse(o, "input 3, output_shape, has the number %" PRId64 ", expected %" PRIu64 " or more",
			          to[i], s->dim[i]);
			return 0;
		}
	}
	return draw_pad(&o->d, y, draw_scalar(&o->d, 0, draw_type(&o->d, y)), low, high);
}

/* Elements go to the places that indices say, as MaxPool gives them; all others are 0. */
void op_max_unpool(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), k = draw_shape(d, o->in[1]);
	struct shape of;

	if (s.rank < 3 || !shape_equal(&s, &k)) {
		op_refuse(o, "input 1 has %u dimensions, expected 3 or more, and indices of the same shape", s.rank);
		return;
	}
	if (!unpooled_shape(o, &s, &of))
		return;
	const uint64_t all = shape_elements(&of), n = shape_elements(&s);
	const tensor_value empty =
		graph_full(d->g, 0, draw_type(d, o->in[0]), &(struct shape){ .rank = 1, .dim = { all } }, o->err);
	const tensor_value v[] = { empty, draw_dims(d, o->in[1], 2, (const uint64_t[]){ n, 1 }),
		                   draw_dims(d, o->in[0], 1, &n) };
	const tensor_value y = draw_reshape(d, draw_with_mode(d, OP_scatter_nd, v, -1, SCATTER_SET), &of);
	o->out[0] = op_in(o, 2) ? fill_up(o, y, &of) : y;
}

/* ---- DeformConv */

struct deform {
	struct windows w;
	struct shape in, out; /* in: [batch,channels,space]; out: places of the result alone */
	uint64_t taps, positions, groups, offset_groups, channels;
};

/* Where each tap of each position lies in dimension i, without offsets: [taps,positions]. */
static tensor_value plain_positions(struct op *o, const struct deform *f, unsigned i, int type)
{
	struct shape window = { .rank = f->w.n };
	uint64_t k[TENSOR_MAX_RANK] = { 0 }, at[TENSOR_MAX_RANK] = { 0 }, n = 0;

	for (unsigned a = 0; a < f->w.n; a++)
		window.dim[a] = (uint64_t)f->w.size[a];
	double *x = f->positions && f->taps <= MAX_NUMBERS / f->positions
	                    ? calloc(f->taps * f->positions, sizeof *x)
	                    : NULL;
	if (!x) {
		op_refuse(o, "there are %" PRIu64 " positions of %" PRIu64 " taps", f->positions, f->taps);
		return 0;
	}
	do
		do
			x[n++] = (double)((int64_t)at[i] * f->w.stride[i] - f->w.low[i] +
			                  (int64_t)k[i] * f->w.dilation[i]);
		while (shape_next(&f->out, at));
	while (shape_next(&window, k));
	const tensor_value v =
		draw_dims(&o->d, op_constant_reals(o, x, n, type), 2, (const uint64_t[]){ f->taps, f->positions });
	free(x);
	return v;
}

static bool read_deform(struct op *o, struct deform *f)
{
	const struct shape k = draw_shape(&o->d, o->in[1]), s = draw_shape(&o->d, o->in[2]);
	const int64_t groups = op_int(o, "group", 1), offset_groups = op_int(o, "offset_group", 1);

	f->in = draw_shape(&o->d, o->in[0]);
	if (f->in.rank < 3 || k.rank != f->in.rank || s.rank != f->in.rank) {
		op_refuse(o, "input 1 has %u dimensions, expected 3 or more, and as many of weights and offsets",
		          f->in.rank);
		return false;
	}
	f->taps = shape_part(&k, 2, k.rank);
	for (unsigned i = 0; i + 2 < k.rank; i++)
		f->w.size[i] = (int64_t)k.dim[2 + i];
	if (f->taps > MAX_NUMBERS || !op_windows(o, &f->in, true, &f->w))
		return false;
	f->channels = f->in.dim[1];
	if (groups < 1 || offset_groups < 1 || f->channels % (uint64_t)groups ||
	    f->channels % (uint64_t)offset_groups || k.dim[0] % (uint64_t)groups ||
	    k.dim[1] != f->channels / (uint64_t)groups)
		op_refuse(o,
		          "%" PRIu64 " channels do not fit the weights in %" PRId64 " groups, or %" PRId64
		          " of offsets",
		          f->channels, groups, offset_groups);
	else if (s.dim[0] != f->in.dim[0] || s.dim[1] != (uint64_t)offset_groups * f->taps * f->w.n)
		op_refuse(o, "offsets have %" PRIu64 " channels, expected %" PRIu64, s.dim[1],
		          (uint64_t)offset_groups * f->taps * f->w.n);
	f->out = (struct shape){ .rank = f->w.n };
	for (unsigned i = 0; i < f->w.n && !op_failed(o); i++) {
		const int64_t reach = (f->w.size[i] - 1) * f->w.dilation[i] + 1,
			      room = (int64_t)f->in.dim[2 + i] + f->w.low[i] + f->w.high[i] - reach;
		f->out.dim[i] = s.dim[2 + i];
		if (room < 0 || (uint64_t)(room / f->w.stride[i]) + 1 != s.dim[2 + i])
			op_refuse(o,
			          "dimension %u of the offsets is %" PRIu64 ", and windows begin at %" PRId64 " places",
			          2 + i, s.dim[2 + i], room < 0 ? 0 : room / f->w.stride[i] + 1);
	}
	f->groups = (uint64_t)groups;
	f->offset_groups = (uint64_t)offset_groups;
	f->positions = shape_elements(&f->out);
	return !op_failed(o);
}

/* What each tap sees, [batch,channels,taps,positions]. */
static tensor_value deformed_taps(struct op *o, const struct deform *f)
{
	struct draw *d = &o->d;
	const uint64_t sets = f->in.dim[0] * f->offset_groups, each = f->channels / f->offset_groups;
	const tensor_value x = draw_dims(d, op_widen(o, o->in[0]), 3,
	                                 (const uint64_t[]){ sets, each, shape_part(&f->in, 2, f->in.rank) });
	const int type = draw_type(d, x);
	const tensor_value offset =
		draw_dims(d, op_widen(o, o->in[2]), 4, (const uint64_t[]){ sets, f->taps, f->w.n, f->positions });
	struct shape of = f->in;
	tensor_value at[TENSOR_MAX_RANK];

	of.dim[0] = sets;
	of.dim[1] = each;
	for (unsigned i = 0; i < f->w.n; i++) {
		const tensor_value more = draw_squeeze(d, draw_slice(d, offset, 2, i, i + 1, 1), 2);
		at[i] = draw_dims(d,
		                  draw_binary(d, OP_add, draw_convert(d, more, type), plain_positions(o, f, i, type)),
		                  2, (const uint64_t[]){ sets, f->taps * f->positions });
	}
	tensor_value y = draw_dims(d, op_sample_linear(o, x, &of, at), 4,
	                           (const uint64_t[]){ sets, each, f->taps, f->positions });
	if (op_in(o, 4)) {
		const tensor_value mask = draw_dims(d, draw_convert(d, op_widen(o, o->in[4]), type), 4,
		                                    (const uint64_t[]){ sets, 1, f->taps, f->positions });
		y = draw_binary(d, OP_mul, y, mask);
	}
	return y;
}

/* A convolution, each tap of which lies where an offset says, between elements, and is scaled by a mask. */
void op_deform_conv(struct op *o)
{
	struct draw *d = &o->d;
	struct deform f = { 0 };

	if (!read_deform(o, &f))
		return;
	const struct shape k = draw_shape(d, o->in[1]);
	const uint64_t row = f.channels / f.groups * f.taps, filters = k.dim[0];
	const tensor_value x = draw_dims(d, deformed_taps(o, &f), 4,
	                                 (const uint64_t[]){ f.in.dim[0], f.groups, row, f.positions }),
			   w = draw_dims(d, op_widen(o, o->in[1]), 3,
	                                 (const uint64_t[]){ f.groups, filters / f.groups, row });
	/* [groups,filters of each,batch,positions] */
	const tensor_value y = draw_transpose(d, draw_dot_of(d, w, x, 2, 2, 0, 1), (const unsigned[]){ 2, 0, 1, 3 });
	struct shape out = { .rank = f.in.rank, .dim = { f.in.dim[0], filters } };
	memcpy(out.dim + 2, f.out.dim, f.w.n * sizeof *out.dim);
	tensor_value all = draw_reshape(d, y, &out);
	if (op_in(o, 3))
		all = draw_binary(d, OP_add, all,
		                  graph_broadcast(d->g, op_widen(o, o->in[3]), &out, (const unsigned[]){ 1 }, o->err));
	o->out[0] = draw_convert(d, all, draw_type(d, o->in[0]));
}
