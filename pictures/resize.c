/* pictures/resize.c - Pillow's resampling of pictures with eight bits a colour.
 *
 * Owns: the filters, their weights, and the two passes. What decides a byte is each filter's formula in double, the
 * range of samples it reads, the rounding of weights to 22 bits and that of sums; all four are Pillow's. The sine is
 * our own, so that no C library decides a weight.
 */
#include "pictures/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BITS = 22 };

static const double pi = 3.14159265358979323846;

/* The sine of |x| < 64, rounded from a sum that has eleven bits more than a double. */
static double sine(double x)
{
	const long double half_circle = 3.14159265358979323846264338327950288L;
	long double halves = floorl((long double)x / half_circle + 0.5L);
	long double r = (long double)x - halves * half_circle;
	long double term = r, sum = r;
	for (int k = 2; k < 30; k += 2) {
		term *= -r * r / (long double)(k * (k + 1));
		sum += term;
	}
	return (double)(fmodl(halves, 2) == 0 ? sum : -sum);
}

static double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

static double bilinear(double x)
{
	if (x < 0.0)
		x = -x;
	return x < 1.0 ? 1.0 - x : 0.0;
}

static double hamming(double x)
{
	if (x < 0.0)
		x = -x;
	if (x == 0.0)
		return 1.0;
	if (x >= 1.0)
		return 0.0;
	x *= pi;
	return sine(x) / x * (0.54 + 0.46 * sine(x + pi / 2));
}

static double bicubic(double x)
{
	const double a = -0.5;
	if (x < 0.0)
		x = -x;
	if (x < 1.0)
		return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
	if (x < 2.0)
		return (((x - 5) * x + 8) * x - 4) * a;
	return 0.0;
}

static double sinc(double x)
{
	if (x == 0.0)
		return 1.0;
	x *= pi;
	return sine(x) / x;
}

static double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

static const struct filter {
	double (*at)(double x);
	double support; /* how far it reaches to each side, in samples of the smaller picture */
} filters[RESAMPLE_COUNT] = {
	[RESAMPLE_LANCZOS] = { lanczos, 3.0 }, [RESAMPLE_BILINEAR] = { bilinear, 1.0 },
	[RESAMPLE_BICUBIC] = { bicubic, 2.0 }, [RESAMPLE_BOX] = { box, 0.5 },
	[RESAMPLE_HAMMING] = { hamming, 1.0 },
};

/* For each sample of a line that is made: which samples it reads, and their weights. */
struct weights {
	uint32_t *first, *n;
	int32_t *weight; /* [length][stride] */
	size_t stride;
};

static void weights_free(struct weights *w)
{
	free(w->first);
	free(w->n);
	free(w->weight);
	*w = (struct weights){ 0 };
}

/* The weights of one sample, whose filter has its middle at `center` of the line that is read. */
static void weigh(const struct filter *f, double center, double scale, uint32_t first, uint32_t n, double *real,
                  int32_t *weight)
{
	double sum = 0.0, inverse = 1.0 / scale;
	for (uint32_t k = 0; k < n; k++) {
		real[k] = f->at(((double)(k + first) - center + 0.5) * inverse);
		sum += real[k];
	}
	for (uint32_t k = 0; k < n; k++) {
		if (sum != 0.0)
			real[k] /= sum;
		double fixed = real[k] * (double)(1 << WEIGHT_BITS);
		weight[k] = (int32_t)(real[k] < 0 ? fixed - 0.5 : fixed + 0.5);
	}
}

static bool weights_make(struct weights *w, uint32_t from, uint32_t to, const struct filter *f, struct error *err)
{
	double scale = (double)from / to, wide = scale < 1.0 ? 1.0 : scale;
	double support = f->support * wide;
	*w = (struct weights){ .stride = (size_t)ceil(support) * 2 + 1 };
	double *real = calloc(w->stride, sizeof *real);
	w->first = calloc(to, sizeof *w->first);
	w->n = calloc(to, sizeof *w->n);
	w->weight = calloc(to * w->stride, sizeof *w->weight);
	if (!real || !w->first || !w->n || !w->weight) {
		free(real);
		weights_free(w);
		return error_set(err, ERROR_MEMORY, "no memory for resizing a line of %u pixels to %u", from, to);
	}
	for (uint32_t k = 0; k < to; k++) {
		double center = (k + 0.5) * scale;
		double low = center - support + 0.5, high = center + support + 0.5;
		w->first[k] = low < 0.0 ? 0 : (uint32_t)low;
		w->n[k] = (high > from ? from : (uint32_t)high) - w->first[k];
		weigh(f, center, wide, w->first[k], w->n[k], real, w->weight + k * w->stride);
	}
	free(real);
	return true;
}

static uint8_t byte_of(int32_t sum)
{
	int32_t v = sum >> WEIGHT_BITS;
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Each row of `from`, which is as high as `to`, becomes as wide as `to`. */
static void resize_rows(struct picture *to, const struct picture *from, const struct weights *w)
{
	for (uint32_t y = 0; y < to->height; y++) {
		const uint8_t *row = from->rgb + (size_t)y * from->width * 3;
		uint8_t *out = to->rgb + (size_t)y * to->width * 3;
		for (uint32_t x = 0; x < to->width; x++, out += 3) {
			const int32_t *weight = w->weight + x * w->stride;
			const uint8_t *in = row + (size_t)w->first[x] * 3;
			int32_t sum[3] = { 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1) };
			for (uint32_t k = 0; k < w->n[x]; k++, in += 3)
				for (int c = 0; c < 3; c++)
					sum[c] += in[c] * weight[k];
			for (int c = 0; c < 3; c++)
				out[c] = byte_of(sum[c]);
		}
	}
}

/* `from`, which is as wide as `to`, becomes as high as `to`. sums: as many as a row has bytes. */
static void resize_columns(struct picture *to, const struct picture *from, const struct weights *w, int32_t *sums)
{
	size_t row = (size_t)to->width * 3;
	for (uint32_t y = 0; y < to->height; y++) {
		for (size_t x = 0; x < row; x++)
			sums[x] = 1 << (WEIGHT_BITS - 1);
		for (uint32_t k = 0; k < w->n[y]; k++) {
			const uint8_t *in = from->rgb + (w->first[y] + k) * row;
			int32_t weight = w->weight[y * w->stride + k];
			for (size_t x = 0; x < row; x++)
				sums[x] += in[x] * weight;
		}
		for (size_t x = 0; x < row; x++)
			to->rgb[y * row + x] = byte_of(sums[x]);
	}
}

static uint32_t nearest(double position, uint32_t n) { return position < n ? (uint32_t)position : n - 1; }

/* Positions are added up step by step, as Pillow does it: a product could round to another sample. */
static bool resize_nearest(struct picture *out, const struct picture *from, uint32_t width, uint32_t height,
                           struct error *err)
{
	if (!picture_make(out, width, height, err))
		return false;
	double step_x = (double)from->width / width, step_y = (double)from->height / height;
	double at_y = step_y * 0.5;
	for (uint32_t y = 0; y < height; y++) {
		const uint8_t *row = from->rgb + (size_t)nearest(at_y, from->height) * from->width * 3;
		uint8_t *to = out->rgb + (size_t)y * width * 3;
		double at_x = step_x * 0.5;
		for (uint32_t x = 0; x < width; x++) {
			memcpy(to + (size_t)x * 3, row + (size_t)nearest(at_x, from->width) * 3, 3);
			at_x += step_x;
		}
		at_y += step_y;
	}
	return true;
}

/* A pass that changes the width alone, then one that changes the height alone; either may be left out. */
static bool resize_width(struct picture *out, const struct picture *from, uint32_t width, const struct filter *f,
                         struct error *err)
{
	struct weights w;
	if (!weights_make(&w, from->width, width, f, err))
		return false;
	bool ok = picture_make(out, width, from->height, err);
	if (ok)
		resize_rows(out, from, &w);
	weights_free(&w);
	return ok;
}

static bool resize_height(struct picture *out, const struct picture *from, uint32_t height, const struct filter *f,
                          struct error *err)
{
	struct weights w;
	if (!weights_make(&w, from->height, height, f, err))
		return false;
	int32_t *sums = calloc((size_t)from->width * 3, sizeof *sums);
	bool ok = sums || error_set(err, ERROR_MEMORY, "no memory for a row of %u pixels", from->width);
	ok = ok && picture_make(out, from->width, height, err);
	if (ok)
		resize_columns(out, from, &w, sums);
	free(sums);
	weights_free(&w);
	return ok;
}

bool picture_resize(struct picture *out, const struct picture *from, uint32_t width, uint32_t height, enum resample how,
                    struct error *err)
{
	*out = (struct picture){ 0 };
	if (width == from->width && height == from->height) {
		if (!picture_make(out, width, height, err))
			return false;
		memcpy(out->rgb, from->rgb, (size_t)width * height * 3);
		return true;
	}
	if (width == 0 || height == 0)
		return error_set(err, ERROR_ARGUMENT, "a picture cannot be resized to %u x %u pixels", width, height);
	if (how == RESAMPLE_NEAREST)
		return resize_nearest(out, from, width, height, err);
	const struct filter *f = &filters[how];
	if (height == from->height)
		return resize_width(out, from, width, f, err);
	if (width == from->width)
		return resize_height(out, from, height, f, err);
	struct picture half;
	if (!resize_width(&half, from, width, f, err))
		return false;
	bool ok = resize_height(out, &half, height, f, err);
	picture_free(&half);
	return ok;
}
