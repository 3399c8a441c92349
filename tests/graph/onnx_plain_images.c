/* tests/graph/onnx_plain_images.c - operators on images beside plain loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/onnx_plain.h"
#include "tests/graph/onnx_writer.h"

enum { MAX = 6000 };

/* ---- regions of images */

enum { BATCH = 2, CHANNELS = 3, HIGH = 7, WIDE = 9, REGIONS = 4 };

static float image[BATCH * CHANNELS * HIGH * WIDE];

static double at(int b, int c, int y, int x) { return (double)image[((b * CHANNELS + c) * HIGH + y) * WIDE + x]; }

static double pool(const float *r, int c, int ph, int pw, int high, int wide, double scale)
{
	const int x0 = (int)floor((double)r[1] * scale + 0.5), y0 = (int)floor((double)r[2] * scale + 0.5),
		  x1 = (int)floor((double)r[3] * scale + 0.5), y1 = (int)floor((double)r[4] * scale + 0.5);
	const double h = fmax(y1 - y0 + 1, 1) / high, w = fmax(x1 - x0 + 1, 1) / wide;
	double max = -INFINITY;

	for (int y = y0 + (int)floor(ph * h); y < y0 + (int)ceil((ph + 1) * h); y++)
		for (int x = x0 + (int)floor(pw * w); x < x0 + (int)ceil((pw + 1) * w); x++)
			if (y >= 0 && y < HIGH && x >= 0 && x < WIDE)
				max = fmax(max, at((int)r[0], c, y, x));
	return isinf(max) ? 0 : max;
}

void check_roi_pool(void **state)
{
	double want[REGIONS * CHANNELS * 2 * 4];
	float r[REGIONS * 5];
	struct bytes g = { 0 }, a = { 0 };
	size_t n = 0;
	(void)state;

	plain_numbers(image, sizeof image / sizeof *image);
	for (int i = 0; i < REGIONS; i++) {
		r[i * 5] = (float)plain_below(BATCH);
		for (int k = 1; k < 5; k++)
			r[i * 5 + k] = (float)plain_below(i == 0 ? 60 : 36) / 2 - (i == 0 ? 10 : 0);
		for (int c = 0; c < CHANNELS; c++)
			for (int p = 0; p < 8; p++)
				want[n++] = pool(r + i * 5, c, p / 4, p % 4, 2, 4, 0.5);
	}
	plain_put(&g, "x", image, INTS(BATCH, CHANNELS, HIGH, WIDE), 4);
	plain_put(&g, "r", r, INTS(REGIONS, 5), 2);
	attribute_ints(&a, "pooled_shape", INTS(2, 4), 2);
	attribute_float(&a, "spatial_scale", 0.5F);
	onnx_put_node(&g, "n", "MaxRoiPool", "x r", "y", &a);
	plain_expect(&g, 18, want, n, 0, "MaxRoiPool");
}

/* Four corners' parts of a sample between elements, in out. */
static void corners(int b, int c, double y, double x, double out[4])
{
	memset(out, 0, 4 * sizeof *out);
	if (y < -1 || y > HIGH || x < -1 || x > WIDE)
		return;
	y = fmin(fmax(y, 0), HIGH - 1);
	x = fmin(fmax(x, 0), WIDE - 1);
	const int y0 = (int)y, x0 = (int)x, y1 = y0 + 1 < HIGH ? y0 + 1 : y0, x1 = x0 + 1 < WIDE ? x0 + 1 : x0;
	const double v = y - y0, u = x - x0;
	out[0] = (1 - v) * (1 - u) * at(b, c, y0, x0);
	out[1] = (1 - v) * u * at(b, c, y0, x1);
	out[2] = v * (1 - u) * at(b, c, y1, x0);
	out[3] = v * u * at(b, c, y1, x1);
}

static double bin_of(const float *r, int b, int c, int ph, int pw, int given, bool half, bool max)
{
	const double off = half ? 0.5 : 0, x0 = (double)r[0] - off, y0 = (double)r[1] - off;
	double w = (double)r[2] - off - x0, h = (double)r[3] - off - y0, sum = 0;
	bool first = true;

	w = half ? w : fmax(w, 1);
	h = half ? h : fmax(h, 1);
	const int gh = given ? given : (int)ceil(h / 2), gw = given ? given : (int)ceil(w / 3);
	for (int i = 0; i < gh; i++)
		for (int k = 0; k < gw; k++) {
			double part[4];
			corners(b, c, y0 + h / 2 * (ph + (i + 0.5) / gh), x0 + w / 3 * (pw + (k + 0.5) / gw), part);
			if (max) {
				const double v = fmax(fmax(part[0], part[1]), fmax(part[2], part[3]));
				sum = first ? v : fmax(sum, v);
			} else {
				sum += part[0] + part[1] + part[2] + part[3];
			}
			first = false;
		}
	return max ? sum : sum / fmax(gh * gw, 1);
}

static void check_align(int given, bool half, bool max)
{
	double want[REGIONS * CHANNELS * 6];
	int64_t batch[REGIONS];
	float r[REGIONS * 4];
	struct bytes g = { 0 }, a = { 0 };
	size_t n = 0;

	plain_numbers(image, sizeof image / sizeof *image);
	for (int i = 0; i < REGIONS; i++) {
		batch[i] = plain_below(BATCH);
		for (int k = 0; k < 2; k++) {
			r[i * 4 + k] = (float)plain_below(60) / 7 - 2;
			r[i * 4 + 2 + k] = r[i * 4 + k] + 0.3F + (float)plain_below(60) / 9;
		}
		for (int c = 0; c < CHANNELS; c++)
			for (int p = 0; p < 6; p++)
				want[n++] = bin_of(r + i * 4, (int)batch[i], c, p / 3, p % 3, given, half, max);
	}
	plain_put(&g, "x", image, INTS(BATCH, CHANNELS, HIGH, WIDE), 4);
	plain_put(&g, "r", r, INTS(REGIONS, 4), 2);
	onnx_put_ints(&g, "b", batch, REGIONS);
	attribute_int(&a, "output_height", 2);
	attribute_int(&a, "output_width", 3);
	attribute_int(&a, "sampling_ratio", given);
	attribute_of_text(&a, "mode", max ? "max" : "avg");
	attribute_of_text(&a, "coordinate_transformation_mode", half ? "half_pixel" : "output_half_pixel");
	onnx_put_node(&g, "n", "RoiAlign", "x r b", "y", &a);
	plain_expect(&g, 18, want, n, 2e-5, "RoiAlign");
}

void check_roi_align(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++)
		check_align(i / 4 % 4, i % 2, i / 2 % 2);
}

/* ---- DeformConv */

static double sample(const float *plane, int h, int w, double y, double x)
{
	const int y0 = (int)floor(y), x0 = (int)floor(x);
	double sum = 0;

	for (int i = y0; i <= y0 + 1; i++)
		for (int k = x0; k <= x0 + 1; k++)
			if (i >= 0 && i < h && k >= 0 && k < w)
				sum += (1 - fabs(y - i)) * (1 - fabs(x - k)) * (double)plane[i * w + k];
	return sum;
}

struct deform {
	int groups, offsets, stride, dilation, pad, oh, ow;
	float x[2 * 4 * 6 * 5], w[4 * 4 * 2 * 3], offset[MAX], mask[MAX], bias[4];
};

/* 2 images of 4 channels, 6 x 5; 4 filters of 2 x 3. */
static double deformed(const struct deform *d, int b, int o, int i, int k)
{
	const int each = 4 / d->groups, positions = d->oh * d->ow, at = i * d->ow + k;
	double sum = (double)d->bias[o];

	for (int c = 0; c < each; c++)
		for (int t = 0; t < 6; t++) {
			const int channel = o / (4 / d->groups) * each + c, set = channel / (4 / d->offsets),
				  tap = (b * d->offsets + set) * 6 + t;
			const double y = i * d->stride - d->pad + t / 3 * d->dilation +
			                 (double)d->offset[(tap * 2) * positions + at],
				     x = k * d->stride - d->pad + t % 3 * d->dilation +
			                 (double)d->offset[(tap * 2 + 1) * positions + at];
			sum += sample(d->x + (b * 4 + channel) * 30, 6, 5, y, x) *
			       (double)d->mask[tap * positions + at] * (double)d->w[(o * each + c) * 6 + t];
		}
	return sum;
}

static void check_deform(int groups, int offsets, int stride, int dilation, int pad)
{
	static struct deform d;
	static double want[MAX];
	struct bytes g = { 0 }, a = { 0 };
	size_t n = 0;

	d = (struct deform){ .groups = groups, .offsets = offsets, .stride = stride, .dilation = dilation, .pad = pad };
	d.oh = (6 + 2 * pad - dilation - 1) / stride + 1;
	d.ow = (5 + 2 * pad - 2 * dilation - 1) / stride + 1;
	plain_numbers(d.x, sizeof d.x / sizeof *d.x);
	plain_numbers(d.w, sizeof d.w / sizeof *d.w);
	plain_numbers(d.offset, MAX);
	plain_numbers(d.mask, MAX);
	plain_numbers(d.bias, 4);
	for (int i = 0; i < 2 * 4 * d.oh * d.ow; i++)
		want[n++] = deformed(&d, i / (4 * d.oh * d.ow), i / (d.oh * d.ow) % 4, i / d.ow % d.oh, i % d.ow);
	plain_put(&g, "x", d.x, INTS(2, 4, 6, 5), 4);
	plain_put(&g, "w", d.w, INTS(4, 4 / groups, 2, 3), 4);
	plain_put(&g, "o", d.offset, INTS(2, offsets * 12, d.oh, d.ow), 4);
	plain_put(&g, "b", d.bias, INTS(4), 1);
	plain_put(&g, "m", d.mask, INTS(2, offsets * 6, d.oh, d.ow), 4);
	attribute_int(&a, "group", groups);
	attribute_int(&a, "offset_group", offsets);
	attribute_ints(&a, "strides", INTS(stride, stride), 2);
	attribute_ints(&a, "dilations", INTS(dilation, dilation), 2);
	attribute_ints(&a, "pads", INTS(pad, pad, pad, pad), 4);
	onnx_put_node(&g, "n", "DeformConv", "x w o b m", "y", &a);
	plain_expect(&g, 22, want, n, 1e-4, "DeformConv");
}

void check_deform_conv(void **state)
{
	(void)state;
	check_deform(1, 1, 1, 1, 0);
	check_deform(2, 1, 1, 1, 1);
	check_deform(1, 2, 2, 1, 1);
	check_deform(4, 4, 1, 2, 2);
}
