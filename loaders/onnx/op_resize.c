/* loaders/onnx/op_resize.c - images of other sizes: one axis after the other, as weighted sums of taken elements. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

enum { BY_NEAREST, BY_LINEAR, BY_CUBIC, MAX_TAPS = 512 };
enum transform { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, CROP, TRANSFORMS };
static const char *const transform_names[TRANSFORMS] = {
	"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
};
static const char *const nearest_names[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
static const char *const mode_names[] = { "nearest", "linear", "cubic" };

struct resize {
	int mode, nearest, transform;
	bool antialias, exclude;
	double cubic, extrapolation;
};
/* One axis: from n elements to `to`. */
struct axis {
	uint64_t n, to;
	double scale, begin, end; /* begin, end: of the region, in parts of the axis */
};

static int word_of(struct op *o, const char *attribute, const char *usual, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (op_is(o, attribute, usual, names[i]))
			return i;
	op_refuse(o, "attribute %s has a word that is not known", attribute);
	return 0;
}

/* Where position p of the result lies among the elements. */
static double source_of(const struct resize *r, const struct axis *a, double p)
{
	const double length = a->scale * (double)a->n, n = (double)a->n;

	switch (r->transform) {
	case ALIGN_CORNERS: return length == 1 ? 0 : p * (n - 1) / (length - 1);
	case ASYMMETRIC: return p / a->scale;
	case PYTORCH_HALF_PIXEL: return length == 1 ? -0.5 : (p + 0.5) / a->scale - 0.5;
	case HALF_PIXEL_SYMMETRIC: return n / 2 * (1 - (double)a->to / length) + (p + 0.5) / a->scale - 0.5;
	case CROP: {
		const double span = (a->end - a->begin) * (n - 1);
		return a->begin * (n - 1) + (length == 1 ? span / 2 : p * span / (length - 1));
	}
	default: return (p + 0.5) / a->scale - 0.5;
	}
}

static double nearest_of(int mode, double x)
{
	const double low = floor(x), part = x - low;

	switch (mode) {
	case 0: return part <= 0.5 ? low : low + 1;
	case 1: return part < 0.5 ? low : low + 1;
	case 2: return low;
	default: return ceil(x);
	}
}

static double cubic_weight(double a, double x)
{
	x = fabs(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static unsigned taps_of(const struct resize *r, double scale)
{
	const double reach = r->mode == BY_CUBIC ? 2 : 1, narrow = r->antialias && scale < 1 ? scale : 1;
	const double first = floor(-reach / narrow) + 1;

	return 2 - 2 * first > MAX_TAPS ? 0 : (unsigned)(2 - 2 * first);
}

/* Elements and weights of one position. Elements beside the axis are those at its ends. */
static void weigh(const struct resize *r, const struct axis *a, double x, unsigned taps, int64_t *index, double *weight)
{
	const double low = floor(x), part = x == low ? 1 : x - low,
		     narrow = r->antialias && a->scale < 1 ? a->scale : 1;
	const int64_t first = (int64_t)low - (int64_t)(taps / 2) + (x == low ? 0 : 1);
	double sum = 0;

	for (unsigned k = 0; k < taps; k++) {
		const double distance = ((double)k + 1 - (double)(taps / 2) - part) * narrow;
		const int64_t at = first + k;
		weight[k] = r->mode == BY_CUBIC ? cubic_weight(r->cubic, distance) : fmax(0, 1 - fabs(distance));
		if (r->exclude && (at < 0 || at >= (int64_t)a->n))
			weight[k] = 0;
		index[k] = at < 0 ? 0 : at >= (int64_t)a->n ? (int64_t)a->n - 1 : at;
		sum += weight[k];
	}
	for (unsigned k = 0; k < taps && (narrow < 1 || r->exclude) && sum != 0; k++)
		weight[k] /= sum;
}

/* The weighted sum of taken slices; index and weight: [taps][positions] */
static tensor_value mix(struct op *o, tensor_value x, unsigned axis, unsigned taps, uint64_t n, const int64_t *index,
                        const double *weight)
{
	struct draw *d = &o->d;
	tensor_value sum = 0;

	for (unsigned k = 0; k < taps; k++) {
		const tensor_value taken = draw_take(d, x, op_constant_ints(o, index + k * n, n), axis);
		const struct shape s = draw_shape(d, taken);
		const tensor_value w = graph_broadcast(d->g, op_constant_reals(o, weight + k * n, n, draw_type(d, x)),
		                                       &s, &axis, o->err);
		const tensor_value part = draw_binary(d, OP_mul, taken, w);
		sum = k ? draw_binary(d, OP_add, sum, part) : part;
	}
	return sum;
}

/* Positions whose source lies beside the axis have the given value. */
static tensor_value extrapolate(struct op *o, const struct resize *r, const struct axis *a, tensor_value y,
                                unsigned axis)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, y);
	int64_t *beside = calloc(a->to + 1, sizeof *beside);

	if (!beside || !y) {
		free(beside);
		return 0;
	}
	for (uint64_t p = 0; p < a->to; p++) {
		const double x = source_of(r, a, (double)p);
		beside[p] = x < 0 || x > (double)a->n - 1;
	}
	const tensor_value mask = draw_convert(d, op_constant_ints(o, beside, a->to), JIT_TYPE_BOOL);
	free(beside);
	return draw_select(d, graph_broadcast(d->g, mask, &s, &axis, o->err),
	                   draw_scalar(d, r->extrapolation, draw_type(d, y)), y);
}

static tensor_value resize_axis(struct op *o, const struct resize *r, const struct axis *a, tensor_value x,
                                unsigned axis)
{
	const unsigned taps = r->mode == BY_NEAREST ? 1 : taps_of(r, a->scale);
	int64_t *index = taps && a->to < (1 << 24) / taps ? calloc(a->to * taps + 1, sizeof *index) : NULL,
		one[MAX_TAPS];
	double *weight = index ? calloc(a->to * taps + 1, sizeof *weight) : NULL, w[MAX_TAPS];
	tensor_value y = 0;

	if (!weight || a->n == 0)
		op_refuse(o, "axis %u of %" PRIu64 " elements cannot have %" PRIu64, axis, a->n, a->to);
	for (uint64_t p = 0; weight && a->n && p < a->to; p++) {
		const double from = source_of(r, a, (double)p), last = (double)a->n - 1;
		if (r->mode == BY_NEAREST) {
			index[p] = (int64_t)fmin(fmax(nearest_of(r->nearest, from), 0), last);
			continue;
		}
		weigh(r, a, fmin(fmax(from, -1e9), 1e9), taps, one, w);
		for (unsigned k = 0; k < taps; k++) {
			index[k * a->to + p] = one[k];
			weight[k * a->to + p] = w[k];
		}
	}
	if (!op_failed(o))
		y = r->mode == BY_NEAREST ? draw_take(&o->d, x, op_constant_ints(o, index, a->to), axis)
		                          : mix(o, x, axis, taps, a->to, index, weight);
	free(index);
	free(weight);
	return r->transform == CROP && y ? extrapolate(o, r, a, y, axis) : y;
}

/* ---- which sizes */

static bool read_reals(struct op *o, unsigned input, double *out, unsigned max, unsigned *n)
{
	const struct tensor *t = op_in(o, input) ? op_known(o, input) : NULL;

	*n = t ? (unsigned)shape_elements(&t->shape) : 0;
	if (*n > max)
		op_refuse(o, "input %u has %u numbers, expected at most %u", input + 1, *n, max);
	for (unsigned i = 0; i < *n && !op_failed(o); i++)
		out[i] = number_of(t, i);
	return *n > 0 && !op_failed(o);
}

/* From sizes: all by the least or the greatest scale, where the ratio of sides is kept. */
static void scale_sizes(struct op *o, struct axis *a, const unsigned *which, unsigned n, const double *size)
{
	const bool smaller = op_is(o, "keep_aspect_ratio_policy", "stretch", "not_larger"),
		   larger = op_is(o, "keep_aspect_ratio_policy", "stretch", "not_smaller");
	double scale = smaller ? INFINITY : 0;

	for (unsigned i = 0; i < n; i++) {
		const double own = size[i] / (double)a[which[i]].n;
		scale = smaller ? fmin(scale, own) : fmax(scale, own);
	}
	for (unsigned i = 0; i < n; i++) {
		struct axis *x = &a[which[i]];
		if (smaller || larger) {
			x->scale = scale;
			x->to = (uint64_t)floor(scale * (double)x->n + 0.5);
		} else {
			x->to = (uint64_t)size[i];
			x->scale = size[i] / (double)x->n;
		}
	}
}

static bool read_axes(struct op *o, const struct resize *r, unsigned rank, struct axis *a, unsigned scales_at)
{
	double value[TENSOR_MAX_RANK], roi[2 * TENSOR_MAX_RANK];
	int64_t axes[TENSOR_MAX_RANK];
	unsigned which[TENSOR_MAX_RANK], n = rank, given, rois = 0;
	const bool sizes = !read_reals(o, scales_at, value, TENSOR_MAX_RANK, &given) &&
	                   read_reals(o, scales_at + 1, value, TENSOR_MAX_RANK, &given);

	for (unsigned i = 0; i < rank; i++)
		axes[i] = i;
	if (op_attribute(o, "axes"))
		op_ints(o, "axes", axes, TENSOR_MAX_RANK, &n);
	if (r->transform == CROP)
		read_reals(o, 1, roi, 2 * TENSOR_MAX_RANK, &rois);
	if (given != n || (r->transform == CROP && rois != 2 * n))
		op_refuse(o, "there are %u scales or sizes, and %u numbers of regions, for %u dimensions", given, rois,
		          n);
	op_axes(o, axes, n, rank);
	for (unsigned i = 0; i < n && !op_failed(o); i++) {
		which[i] = op_axis(o, axes[i], rank);
		struct axis *x = &a[which[i]];
		if (!(value[i] > 0 && value[i] * (sizes ? 1 : (double)(x->n + 1)) < 0x1p30) || x->n == 0)
			op_refuse(o, "scale or size %u is %g", i + 1, value[i]);
		if (rois) {
			x->begin = roi[i];
			x->end = roi[n + i];
		}
		x->scale = value[i];
		x->to = (uint64_t)floor((double)x->n * value[i] * (r->transform == CROP ? x->end - x->begin : 1));
	}
	if (sizes && !op_failed(o))
		scale_sizes(o, a, which, n, value);
	return !op_failed(o);
}

/* Before opset 11, Resize and Upsample have their scales as input 2, and divide positions by them. */
void op_resize(struct op *o)
{
	struct draw *d = &o->d;
	const bool old = o->opset < 11;
	const struct shape s = draw_shape(d, o->in[0]);
	const int type = draw_type(d, o->in[0]);
	struct axis a[TENSOR_MAX_RANK];
	struct resize r = {
		.mode = word_of(o, "mode", "nearest", mode_names, 3),
		.nearest = old ? 2 : word_of(o, "nearest_mode", "round_prefer_floor", nearest_names, 4),
		.transform =
			old ? ASYMMETRIC
			    : word_of(o, "coordinate_transformation_mode", "half_pixel", transform_names, TRANSFORMS),
		.antialias = op_int(o, "antialias", 0) != 0,
		.exclude = op_int(o, "exclude_outside", 0) != 0,
		.cubic = op_float(o, "cubic_coeff_a", -0.75),
		.extrapolation = op_float(o, "extrapolation_value", 0)
	};

	for (unsigned i = 0; i < s.rank; i++)
		a[i] = (struct axis){ s.dim[i], s.dim[i], 1, 0, 1 };
	if (op_failed(o) || !read_axes(o, &r, s.rank, a, old ? 1 : 2))
		return;
	tensor_value x = r.mode != BY_NEAREST && !tensor_is_float(type) ? draw_convert(d, o->in[0], JIT_TYPE_F32)
	                                                                : op_widen(o, o->in[0]);
	for (unsigned i = 0; i < s.rank && !op_failed(o); i++)
		if (a[i].scale != 1 || a[i].to != a[i].n || (r.transform == CROP && (a[i].begin != 0 || a[i].end != 1)))
			x = resize_axis(o, &r, &a[i], x, i);
	o->out[0] = draw_convert(d, x, type);
}
