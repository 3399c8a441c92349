/* loaders/onnx/op_boxes.c - boxes of detectors: which are kept, and what images have in them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

/* ---- NonMaxSuppression: as many boxes as are kept is the size of its result, so that all must be known */

struct suppression {
	const struct tensor *boxes, *scores;
	uint64_t batches, classes, n, max; /* most: of each class */
	float overlap, min;
	bool centred;  /* boxes are centre and size, not two corners */
	uint64_t work; /* comparisons that are left */
	int64_t *kept; /* rows of batch, class and box */
	uint64_t rows, room;
};

struct box {
	float low[2], high[2];
};

static struct box box_of(const struct suppression *s, uint64_t batch, uint64_t i)
{
	float x[4];
	struct box b;

	for (unsigned k = 0; k < 4; k++)
		x[k] = tensor_get(s->boxes, (batch * s->n + i) * 4 + k).f;
	for (unsigned k = 0; k < 2; k++) {
		const float half = x[k + 2] / 2, a = s->centred ? x[k] - half : x[k],
			    c = s->centred ? x[k] + half : x[k + 2];
		b.low[k] = a < c ? a : c;
		b.high[k] = a < c ? c : a;
	}
	return b;
}

/* The share of both that they have in common is above the threshold. */
static bool overlaps(const struct suppression *s, const struct box *a, const struct box *b)
{
	float side[2], area_a = 1, area_b = 1;

	for (unsigned k = 0; k < 2; k++) {
		const float low = fmaxf(a->low[k], b->low[k]), high = fminf(a->high[k], b->high[k]);
		if (!(high > low))
			return false;
		side[k] = high - low;
		area_a *= a->high[k] - a->low[k];
		area_b *= b->high[k] - b->low[k];
	}
	const float common = side[0] * side[1], all = area_a + area_b - common;
	return common > 0 && area_a > 0 && area_b > 0 && all > 0 && common / all > s->overlap;
}

struct candidate {
	float score;
	uint64_t box;
};

/* Greater scores first, then lesser boxes. */
static int by_score(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	return a->score != b->score ? (a->score < b->score) - (a->score > b->score)
	                            : (a->box > b->box) - (a->box < b->box);
}

static bool keep(struct op *o, struct suppression *s, uint64_t batch, uint64_t class, uint64_t box)
{
	if (s->rows == s->room) {
		const uint64_t room = s->room ? 2 * s->room : 64;
		int64_t *more = realloc(s->kept, room * 3 * sizeof *more);
		if (!more) {
			op_refuse(o, "there is no memory for %" PRIu64 " boxes", room);
			return false;
		}
		s->kept = more;
		s->room = room;
	}
	int64_t *row = s->kept + 3 * s->rows++;
	row[0] = (int64_t)batch;
	row[1] = (int64_t) class;
	row[2] = (int64_t)box;
	return true;
}

static bool select_boxes(struct op *o, struct suppression *s, struct candidate *c, uint64_t batch, uint64_t class)
{
	const uint64_t first = s->rows;
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->n; i++) {
		const float score = tensor_get(s->scores, (batch * s->classes + class) * s->n + i).f;
		if (score > s->min)
			c[n++] = (struct candidate){ score, i };
	}
	qsort(c, n, sizeof *c, by_score);
	for (uint64_t i = 0; i < n && s->rows - first < s->max; i++) {
		const struct box b = box_of(s, batch, c[i].box);
		bool apart = true;
		if (s->work < s->rows - first + 1) {
			op_refuse(o, "it takes too long to compare %" PRIu64 " boxes", s->n);
			return false;
		}
		s->work -= s->rows - first + 1;
		for (uint64_t k = first; k < s->rows && apart; k++) {
			const struct box other = box_of(s, batch, (uint64_t)s->kept[3 * k + 2]);
			apart = !overlaps(s, &b, &other);
		}
		if (apart && !keep(o, s, batch, class, c[i].box))
			return false;
	}
	return true;
}

/* A threshold; -inf or what is usual, if it is left out. */
static float threshold(struct op *o, unsigned input, float usual)
{
	const struct tensor *t = op_known(o, input);

	if (t && (shape_elements(&t->shape) != 1 || t->type != JIT_TYPE_F32))
		op_refuse(o, "input %u is no number of float32", input + 1);
	return t && !op_failed(o) ? tensor_get(t, 0).f : usual;
}

static bool read_boxes(struct op *o, struct suppression *s)
{
	const int64_t centred = op_int(o, "center_point_box", 0), max = op_known_int(o, 2, 0);

	*s = (struct suppression){ .boxes = op_known(o, 0), .scores = op_known(o, 1), .work = UINT64_C(1) << 28 };
	if (op_failed(o))
		return false;
	const struct shape b = s->boxes->shape, k = s->scores->shape;
	if (centred != 0 && centred != 1)
		op_refuse(o, "attribute center_point_box is %" PRId64 ", expected 0 or 1", centred);
	else if (b.rank != 3 || b.dim[2] != 4 || k.rank != 3 || k.dim[0] != b.dim[0] || k.dim[2] != b.dim[1] ||
	         s->boxes->type != JIT_TYPE_F32 || s->scores->type != JIT_TYPE_F32)
		op_refuse(o, "expected boxes of float32 [batches,boxes,4] and scores [batches,classes,boxes]");
	s->batches = b.dim[0];
	s->n = b.dim[1];
	s->classes = k.dim[1];
	s->max = max > 0 ? (uint64_t)max : 0;
	s->centred = centred == 1;
	s->overlap = threshold(o, 3, 0);
	s->min = threshold(o, 4, -INFINITY);
	return !op_failed(o);
}

void op_non_max_suppression(struct op *o)
{
	struct suppression s;

	if (!read_boxes(o, &s))
		return;
	struct candidate *c = calloc(s.n + 1, sizeof *c);
	if (!c)
		op_refuse(o, "there is no memory for %" PRIu64 " boxes", s.n);
	for (uint64_t i = 0; i < s.batches && s.max && !op_failed(o); i++)
		for (uint64_t k = 0; k < s.classes; k++)
			if (!select_boxes(o, &s, c, i, k))
				break;
	if (!op_failed(o))
		o->out[0] = op_constant_shaped(o, s.kept, &(struct shape){ .rank = 2, .dim = { s.rows, 3 } });
	free(s.kept);
	free(c);
}

/* ---- RoiAlign */

struct align {
	uint64_t rois, channels, high, wide; /* high, wide: of the image */
	uint64_t pooled[2], samples[2];      /* of y and x */
	tensor_value start[2], step[2];      /* [rois,1,1]: where a region begins, and the size of its bins */
	tensor_value each[2];                /* [rois,1,1]: samples of a bin along y and x */
	tensor_value at[2], counts[2];       /* [rois,pooled,samples]: positions, and whether the sample is one */
	bool by_max;
};

/* Samples of each bin: as many as the attribute says, or as there are elements in it. */
static void count_samples(struct op *o, struct align *a, unsigned axis, tensor_value size)
{
	struct draw *d = &o->d;
	const int64_t given = op_int(o, "sampling_ratio", 0);
	struct error err = { 0 };

	a->samples[axis] = given > 0 ? (uint64_t)given : 0;
	a->each[axis] = given > 0 ? draw_number(d, (double)given, size)
	                          : draw_unary(d, OP_ceil, draw_with(d, OP_div, size, (double)a->pooled[axis]));
	if (given < 0 || given > 1 << 10)
		op_refuse(o, "attribute sampling_ratio is %" PRId64, given);
	if (given || op_failed(o))
		return;
	const struct tensor *t = import_known(o->im, a->each[axis], &err);
	if (!t) {
		op_refuse(o, "attribute sampling_ratio is 0, and how many samples there are %s", err.text);
		return;
	}
	for (uint64_t i = 0; i < a->rois; i++) {
		const double n = number_of(t, i);
		if (!(n <= 1 << 10))
			op_refuse(o, "a bin of region %" PRIu64 " has %g elements", i, n);
		else if (n > (double)a->samples[axis])
			a->samples[axis] = (uint64_t)n;
	}
	if (!a->samples[axis])
		a->samples[axis] = 1;
}

/* start + step * (bin + (sample + 0.5) / samples) */
static void sample_points(struct op *o, struct align *a, unsigned axis)
{
	struct draw *d = &o->d;
	const struct shape s = { .rank = 3, .dim = { a->rois, a->pooled[axis], a->samples[axis] } };
	const int type = draw_type(d, a->start[axis]);
	const tensor_value bin = draw_iota(d, type, &s, 1), sample = draw_iota(d, type, &s, 2);
	const tensor_value bins = draw_binary(d, OP_mul, bin, a->step[axis]),
			   part = draw_binary(d, OP_div,
	                                      draw_binary(d, OP_mul, draw_with(d, OP_add, sample, 0.5), a->step[axis]),
	                                      a->each[axis]);

	a->at[axis] = draw_binary(d, OP_add, draw_binary(d, OP_add, bins, a->start[axis]), part);
	a->counts[axis] = draw_binary(d, OP_lt, sample, a->each[axis]);
}

static bool read_align(struct op *o, struct align *a)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), r = draw_shape(d, o->in[1]), b = draw_shape(d, o->in[2]);
	const bool half = o->opset >= 16 && op_is(o, "coordinate_transformation_mode", "half_pixel", "half_pixel"),
		   plain = op_is(o, "coordinate_transformation_mode", "output_half_pixel", "output_half_pixel");
	const double scale = op_float(o, "spatial_scale", 1);
	const int64_t pooled[] = { op_int(o, "output_height", 1), op_int(o, "output_width", 1) };

	a->by_max = op_is(o, "mode", "avg", "max");
	if (!a->by_max && !op_is(o, "mode", "avg", "avg"))
		op_refuse(o, "attribute mode is none of avg and max");
	if (!half && !plain)
		op_refuse(o, "attribute coordinate_transformation_mode is none of half_pixel and output_half_pixel");
	if (s.rank != 4 || r.rank != 2 || r.dim[1] != 4 || b.rank != 1 || b.dim[0] != r.dim[0] || !s.dim[2] ||
	    !s.dim[3])
		op_refuse(o, "expected an image of 4 dimensions, regions [n,4], and the batch of each");
	for (unsigned i = 0; i < 2; i++)
		if (pooled[i] < 1 || pooled[i] > 1 << 16)
			op_refuse(o, "the output has a dimension of %" PRId64, pooled[i]);
	if (op_failed(o))
		return false;
	a->rois = r.dim[0];
	a->channels = s.dim[1];
	a->high = s.dim[2];
	a->wide = s.dim[3];
	const tensor_value regions = draw_with(d, OP_mul, op_widen(o, o->in[1]), scale),
			   corners = half ? draw_with(d, OP_sub, regions, 0.5) : regions;
	for (unsigned i = 0; i < 2; i++) {
		const unsigned k = 1 - i; /* regions have x first */
		const tensor_value from = draw_expand(d, draw_slice(d, corners, 1, k, k + 1, 1), 2),
				   to = draw_expand(d, draw_slice(d, corners, 1, k + 2, k + 3, 1), 2);
		tensor_value size = draw_binary(d, OP_sub, to, from);
		if (!half)
			size = draw_with(d, OP_max, size, 1);
		a->pooled[i] = (uint64_t)pooled[i];
		a->start[i] = from;
		a->step[i] = draw_with(d, OP_div, size, (double)pooled[i]);
		count_samples(o, a, i, size);
		if (op_failed(o))
			return false;
		sample_points(o, a, i);
	}
	return !op_failed(o);
}

/* [rois,pooled,samples] of y or x as one of [rois,pooled y,pooled x,samples y,samples x] */
static tensor_value over_bins(struct op *o, const struct align *a, tensor_value v, unsigned axis)
{
	const uint64_t dim[2][5] = { { a->rois, a->pooled[0], 1, a->samples[0], 1 },
		                     { a->rois, 1, a->pooled[1], 1, a->samples[1] } };

	return draw_dims(&o->d, v, 5, dim[axis]);
}

/* One corner of four around the samples: what the image has there, times its weight. x: [channels,batch*space] */
static tensor_value corner_of(struct op *o, const struct align *a, tensor_value x, unsigned corner)
{
	struct draw *d = &o->d;
	const struct shape all = { .rank = 5,
		                   .dim = { a->rois, a->pooled[0], a->pooled[1], a->samples[0], a->samples[1] } };
	const uint64_t size[] = { a->high, a->wide };
	tensor_value index = draw_dims(d, draw_convert(d, o->in[2], JIT_TYPE_I64), 5,
	                               (const uint64_t[]){ a->rois, 1, 1, 1, 1 }),
		     weight = 0;

	for (unsigned i = 0; i < 2; i++) {
		const double last = (double)size[i] - 1;
		const tensor_value at = draw_from(d, OP_min, last, draw_from(d, OP_max, 0, a->at[i])),
				   low = draw_unary(d, OP_floor, at), part = draw_binary(d, OP_sub, at, low),
				   w = corner >> i & 1 ? part : draw_from(d, OP_sub, 1, part),
				   to = corner >> i & 1 ? draw_from(d, OP_min, last, draw_with(d, OP_add, low, 1))
		                                        : low;
		index = draw_binary(d, OP_add, draw_with(d, OP_mul, index, (double)size[i]),
		                    over_bins(o, a, draw_convert(d, to, JIT_TYPE_I64), i));
		weight = weight ? draw_binary(d, OP_mul, weight, over_bins(o, a, w, i)) : over_bins(o, a, w, i);
	}
	const tensor_value y = draw_take(d, x, draw_broadcast(d, index, &all), 1);
	return draw_binary(d, OP_mul, y, draw_expand(d, weight, 0));
}

/* Samples at less than -1 or more than the image's size are 0. */
static tensor_value inside(struct op *o, const struct align *a)
{
	struct draw *d = &o->d;
	const double size[] = { (double)a->high, (double)a->wide };
	tensor_value all = 0;

	for (unsigned i = 0; i < 2; i++) {
		const tensor_value in = draw_binary(d, OP_and, draw_with(d, OP_ge, a->at[i], -1),
		                                    draw_with(d, OP_le, a->at[i], size[i])),
				   both = over_bins(o, a, in, i);
		all = all ? draw_binary(d, OP_and, all, both) : both;
	}
	return draw_expand(d, all, 0);
}

/* x: [channels,rois,pooled y,pooled x,samples y,samples x] */
static tensor_value pool_samples(struct op *o, const struct align *a, tensor_value x)
{
	struct draw *d = &o->d;
	const tensor_value counts = draw_expand(
		d, draw_binary(d, OP_and, over_bins(o, a, a->counts[0], 0), over_bins(o, a, a->counts[1], 1)), 0);
	const tensor_value each = draw_from(d, OP_max, 1, draw_binary(d, OP_mul, a->each[0], a->each[1]));
	const tensor_value none = draw_scalar(d, a->by_max ? -(double)INFINITY : 0, draw_type(d, x)),
			   samples = draw_select(d, counts, x, none);

	if (!a->by_max)
		return draw_binary(d, OP_div, draw_reduce(d, OP_reduce_sum, samples, 48, false),
		                   draw_expand(d, each, 0));
	const tensor_value max = draw_reduce(d, OP_reduce_max, samples, 48, false);
	return draw_select(d, draw_with(d, OP_eq, max, -(double)INFINITY), draw_scalar(d, 0, draw_type(d, x)), max);
}

/* Each bin of a region is the mean of samples between elements, or the greatest of what their four corners add. */
void op_roi_align(struct op *o)
{
	struct draw *d = &o->d;
	struct align a = { 0 };
	tensor_value sum = 0;

	if (!read_align(o, &a))
		return;
	const struct shape s = draw_shape(d, o->in[0]);
	const tensor_value x = draw_dims(d, draw_swap(d, op_widen(o, o->in[0]), 0, 1), 2,
	                                 (const uint64_t[]){ a.channels, s.dim[0] * a.high * a.wide });
	for (unsigned i = 0; i < 4; i++) { /* bits of the corner: 1: below, 2: to the right */
		const tensor_value y = corner_of(o, &a, x, i >> 1 | (i & 1) << 1);
		sum = sum ? draw_binary(d, a.by_max ? OP_max : OP_add, sum, y) : y;
	}
	sum = draw_select(d, inside(o, &a), sum, draw_scalar(d, 0, draw_type(d, sum)));
	o->out[0] = draw_convert(d, draw_swap(d, pool_samples(o, &a, sum), 0, 1), draw_type(d, o->in[0]));
}

/* ---- MaxRoiPool */

/* Which elements of an axis are in each bin: [rois,bins,n]. from, to: [rois], ends of regions, in elements. */
static tensor_value bins_of(struct op *o, tensor_value from, tensor_value to, uint64_t bins, uint64_t n)
{
	struct draw *d = &o->d;
	const struct shape s = { .rank = 3, .dim = { draw_dim(d, from, 0), bins, n } };
	const int type = draw_type(d, from);
	const tensor_value start = draw_dims(d, from, 3, (const uint64_t[]){ s.dim[0], 1, 1 }),
			   end = draw_dims(d, to, 3, (const uint64_t[]){ s.dim[0], 1, 1 }),
			   size = draw_from(d, OP_max, 1, draw_with(d, OP_add, draw_binary(d, OP_sub, end, start), 1)),
			   step = draw_with(d, OP_div, size, (double)bins);
	const tensor_value bin = draw_iota(d, type, &s, 1),
			   at = draw_binary(d, OP_sub, draw_iota(d, type, &s, 2), start),
			   low = draw_unary(d, OP_floor, draw_binary(d, OP_mul, bin, step)),
			   high = draw_unary(d, OP_ceil, draw_binary(d, OP_mul, draw_with(d, OP_add, bin, 1), step));

	return draw_binary(d, OP_and, draw_binary(d, OP_ge, at, low), draw_binary(d, OP_lt, at, high));
}

/* The greatest of the elements in each bin of each region, whose ends are rounded to elements; of no element 0. */
void op_max_roi_pool(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), r = draw_shape(d, o->in[1]);
	const double scale = op_float(o, "spatial_scale", 1);
	int64_t bins[2];
	tensor_value end[4];

	if (s.rank != 4 || r.rank != 2 || r.dim[1] != 5)
		op_refuse(o, "expected an image of 4 dimensions, and regions [n,5]");
	else if (!op_attribute(o, "pooled_shape"))
		op_refuse(o, "there is no pooled_shape");
	if (op_failed(o) || !op_list(o, "pooled_shape", bins, 2, 1, 1))
		return;
	const tensor_value regions = op_widen(o, o->in[1]);
	for (unsigned i = 0; i < 4; i++) { /* x, y of both corners; halves are rounded up */
		const tensor_value x = draw_squeeze(d, draw_slice(d, regions, 1, 1 + i, 2 + i, 1), 1);
		end[i] = draw_unary(d, OP_floor, draw_with(d, OP_add, draw_with(d, OP_mul, x, scale), 0.5));
	}
	const uint64_t rois = r.dim[0], high = (uint64_t)bins[0], wide = (uint64_t)bins[1];
	const tensor_value batch = draw_convert(d, draw_squeeze(d, draw_slice(d, regions, 1, 0, 1, 1), 1),
	                                        JIT_TYPE_I64),
			   low = draw_scalar(d, -(double)INFINITY, draw_type(d, op_widen(o, o->in[0])));
	const tensor_value x = draw_dims(d, draw_take(d, op_widen(o, o->in[0]), batch, 0), 5,
	                                 (const uint64_t[]){ rois, s.dim[1], s.dim[2], 1, s.dim[3] });
	const tensor_value in_x = draw_dims(d, bins_of(o, end[0], end[2], wide, s.dim[3]), 5,
	                                    (const uint64_t[]){ rois, 1, 1, wide, s.dim[3] }),
			   in_y = draw_dims(d, bins_of(o, end[1], end[3], high, s.dim[2]), 5,
	                                    (const uint64_t[]){ rois, 1, high, s.dim[2], 1 });
	/* [rois,channels,y,bins], then [rois,channels,bins,bins] */
	const tensor_value rows = draw_reduce(d, OP_reduce_max, draw_select(d, in_x, x, low), 16, false);
	const tensor_value max =
		draw_reduce(d, OP_reduce_max, draw_select(d, in_y, draw_expand(d, rows, 2), low), 8, false);
	const tensor_value y =
		draw_select(d, draw_with(d, OP_eq, max, -(double)INFINITY), draw_scalar(d, 0, draw_type(d, max)), max);
	o->out[0] = draw_convert(d, y, draw_type(d, o->in[0]));
}
