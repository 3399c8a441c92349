/* vision/prepare.c - what the host makes of a picture before it is encoded: its patches in order, and what depends on
 * where they are. Host code; no libm. */
#include <string.h>

#include "base/math_host.h"
#include "vision/parts.h"

/* Where patch i of a picture is, block by block. */
static void where(const struct tower_spec *s, uint32_t width, uint32_t i, uint32_t *y, uint32_t *x)
{
	const uint32_t m = s->merge, block = i / (m * m), in = i % (m * m);

	*y = block / (width / m) * m + in / m;
	*x = block % (width / m) * m + in % m;
}

void prepare_patches(const struct tower_spec *s, const struct tower_pixels *p, const float *tile, uint32_t height,
                     uint32_t width, float *out)
{
	const uint32_t numbers = tower_patch_numbers(s), patch = s->patch;
	const uint64_t plane = (uint64_t)p->height * p->width;
	uint32_t y, x;

	for (uint32_t i = 0; i < height * width; i++, out += numbers) {
		where(s, width, i, &y, &x);
		if (s->flags & TOWER_BLOCKS) {
			memcpy(out, tile + (uint64_t)i * numbers, numbers * sizeof *out);
			continue;
		}
		if (s->flags & TOWER_ROWS) {
			memcpy(out, tile + ((uint64_t)y * width + x) * numbers, numbers * sizeof *out);
			continue;
		}
		for (uint32_t c = 0; c < s->channels; c++)
			for (uint32_t line = 0; line < patch; line++)
				memcpy(out + ((uint64_t)c * patch + line) * patch,
				       tile + c * plane + ((uint64_t)y * patch + line) * p->width + (uint64_t)x * patch,
				       patch * sizeof *out);
	}
}

/* ---- positions */

/* Of one side: for each patch which rows of the table count, from `first` on, and how much. */
struct taps {
	uint32_t first, n;
	float weight[2];
};

static void corner_taps(struct taps *t, uint32_t side, uint32_t n, uint32_t i)
{
	/* torch.linspace(0, side - 1, n), which goes from both ends */
	const float step = n > 1 ? (float)(side - 1) / (float)(n - 1) : 0;
	const float at = i < n / 2 || n == 1 ? step * (float)i : (float)(side - 1) - step * (float)(n - 1 - i);
	const uint32_t down = (uint32_t)at;

	*t = (struct taps){ .first = down, .n = down + 1 < side ? 2 : 1 };
	t->weight[1] = at - (float)down;
	t->weight[0] = 1 - t->weight[1];
}

static void corners(const struct tower_spec *s, const float *table, uint32_t height, uint32_t width, float *out)
{
	uint32_t y, x;

	for (uint32_t i = 0; i < height * width; i++, out += s->hidden) {
		struct taps v, h;
		where(s, width, i, &y, &x);
		corner_taps(&v, s->side, height, y);
		corner_taps(&h, s->side, width, x);
		memset(out, 0, s->hidden * sizeof *out);
		for (uint32_t a = 0; a < v.n; a++)
			for (uint32_t b = 0; b < h.n; b++) {
				const float w = v.weight[a] * h.weight[b];
				const float *row =
					table + ((uint64_t)(v.first + a) * s->side + h.first + b) * s->hidden;
				for (uint32_t c = 0; c < s->hidden; c++)
					out[c] += row[c] * w;
			}
	}
}

/* How much row `j` of `side` counts for position i of n, when a picture is resized with antialiasing. */
static float triangle(uint32_t side, uint32_t n, uint32_t i, uint32_t j, float *sum)
{
	const float scale = (float)side / (float)n, support = scale > 1 ? scale : 1, centre = scale * ((float)i + 0.5f);
	const float low = centre - support + 0.5f, high = centre + support + 0.5f;
	const uint32_t first = low > 0 ? (uint32_t)low : 0, end = high < (float)side ? (uint32_t)high : side;
	float own = 0;

	*sum = 0;
	for (uint32_t k = first; k < end; k++) {
		float x = ((float)k - centre + 0.5f) / support;
		x = x < 0 ? -x : x;
		const float w = x < 1 ? 1 - x : 0;
		*sum += w;
		own = k == j ? w : own;
	}
	return own;
}

static void antialiased(const struct tower_spec *s, const float *table, uint32_t height, uint32_t width, float *out)
{
	uint32_t y, x;
	float sum_y, sum_x;

	for (uint32_t i = 0; i < height * width; i++, out += s->hidden) {
		where(s, width, i, &y, &x);
		memset(out, 0, s->hidden * sizeof *out);
		for (uint32_t a = 0; a < s->side; a++) {
			const float v = triangle(s->side, height, y, a, &sum_y);
			for (uint32_t b = 0; v > 0 && b < s->side; b++) {
				const float h = triangle(s->side, width, x, b, &sum_x), w = v / sum_y * (h / sum_x);
				const float *row = table + ((uint64_t)a * s->side + b) * s->hidden;
				for (uint32_t c = 0; h > 0 && c < s->hidden; c++)
					out[c] += row[c] * w;
			}
		}
	}
}

static void axes(const struct tower_spec *s, const float *table, uint32_t height, uint32_t width, float *out)
{
	uint32_t y, x;

	for (uint32_t i = 0; i < height * width; i++, out += s->hidden) {
		where(s, width, i, &y, &x);
		const float *column = table + (uint64_t)x * s->hidden,
			    *row = table + ((uint64_t)s->side + y) * s->hidden;
		for (uint32_t c = 0; c < s->hidden; c++)
			out[c] = column[c] + row[c];
	}
}

/* The row of the table for position i of n. */
static uint32_t bucket(uint32_t side, uint32_t n, uint32_t i) { return (uint32_t)((uint64_t)i * side / n); }

void prepare_positions(const struct tower_spec *s, const float *table, uint32_t height, uint32_t width, float *out)
{
	uint32_t y, x;

	if (s->flags & TOWER_HAS_CLASS) {
		memcpy(out, table, s->hidden * sizeof *out);
		out += s->hidden;
		table += s->hidden;
	}
	if (s->row->positions == POSITIONS_CORNERS)
		corners(s, table, height, width, out);
	if (s->row->positions == POSITIONS_ANTIALIAS)
		antialiased(s, table, height, width, out);
	if (s->row->positions == POSITIONS_AXES)
		axes(s, table, height, width, out);
	if (s->row->positions != POSITIONS_TABLE && s->row->positions != POSITIONS_BUCKETS)
		return;
	for (uint32_t i = 0; i < height * width; i++) {
		where(s, width, i, &y, &x);
		const uint64_t row = (uint64_t)bucket(s->side, height, y) * s->side + bucket(s->side, width, x);
		memcpy(out + (uint64_t)i * s->hidden, table + row * s->hidden, s->hidden * sizeof *out);
	}
}

/* ---- rotation */

/* The frequency of number `i` of `n`. */
static float frequency(double theta, uint32_t i, uint32_t n)
{
	return (float)(1 / math_host_pow(theta, (double)(2 * i) / n));
}

void prepare_rotation(const struct tower_spec *s, uint32_t height, uint32_t width, float *cosine, float *sine)
{
	const uint32_t dim = s->hidden / s->heads, pairs = dim / 2, half = pairs / 2;
	double sin, cos;
	uint32_t y, x;

	for (uint32_t i = 0; i < height * width; i++) {
		where(s, width, i, &y, &x);
		for (uint32_t k = 0; k < pairs; k++) {
			const bool first = k < half, by_row = first != (s->row->rotation == ROTATES_SEPARATELY);
			const uint32_t own = first ? k : k - half;
			const float f = s->row->rotation == ROTATES_INTERLEAVED
			                        ? frequency(s->theta, 2 * own + !first, dim)
			                        : frequency(s->theta, own, pairs);
			math_host_sincos((double)((float)(by_row ? y : x) * f), &sin, &cos);
			cosine[(uint64_t)i * pairs + k] = (float)cos;
			sine[(uint64_t)i * pairs + k] = (float)sin;
		}
	}
}

struct windows windows_of(const struct tower_spec *s, uint32_t height, uint32_t width)
{
	const uint32_t side = s->window * s->merge, across = (width + side - 1) / side;

	return (struct windows){ .side = side,
		                 .across = across,
		                 .n = across * ((height + side - 1) / side),
		                 .each = (height < side ? height : side) * (width < side ? width : side) };
}

void prepare_windows(const struct tower_spec *s, uint32_t height, uint32_t width, int32_t *row, int32_t *back,
                     int32_t *inside)
{
	const struct windows w = windows_of(s, height, width);
	uint32_t y, x;

	memset(row, 0, (size_t)w.n * w.each * sizeof *row);
	if (inside)
		memset(inside, 0, (size_t)w.n * w.each * sizeof *inside);
	for (uint32_t i = 0; i < height * width; i++) {
		where(s, width, i, &y, &x);
		/* by rows of the window, which is as wide as the picture has it */
		const uint32_t left = x / w.side * w.side, wide = width - left < w.side ? width - left : w.side,
			       at = (y / w.side * w.across + x / w.side) * w.each + y % w.side * wide + (x - left);
		row[at] = (int32_t)i;
		back[i] = (int32_t)at;
		if (inside)
			inside[at] = 1;
	}
}
