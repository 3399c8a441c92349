/* pictures/processor_size.c - sizes of pictures in Python's arithmetic. */
#include "pictures/processor_size.h"

#include <math.h>

/* Sides in double, as products may be beyond any integer here; false with err set where no picture has them. */
static bool size_of(double height, double width, struct size s, struct size *out, struct error *err)
{
	if (!(height >= 1 && width >= 1 && height <= PICTURE_MAX_SIDE && width <= PICTURE_MAX_SIDE &&
	      height * width <= PICTURE_MAX_PIXELS))
		return error_set(
			err, ERROR_UNSUPPORTED,
			"a picture of %u x %u pixels would become one of %.0f x %.0f; sides of 1 to %d and at most "
			"%d pixels are expected",
			s.width, s.height, width, height, PICTURE_MAX_SIDE, PICTURE_MAX_PIXELS);
	*out = (struct size){ .width = (uint32_t)width, .height = (uint32_t)height };
	return true;
}

/* The number of tiles' or windows' sides, never below one. */
static double at_least(double min, double x) { return x < min ? min : x; }

bool size_qwen2_vl(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	double h = s.height, w = s.width, factor = (double)p->patch * p->merge;
	if ((h > w ? h / w : w / h) > 200)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"a picture of %u x %u pixels: one side is more than 200 times the other, which the model's "
			"image processor refuses",
			s.width, s.height);
	double rows = rint(h / factor) * factor, columns = rint(w / factor) * factor;
	if (rows * columns > (double)p->max_pixels) {
		double beta = sqrt(h * w / (double)p->max_pixels);
		rows = at_least(factor, floor(h / beta / factor) * factor);
		columns = at_least(factor, floor(w / beta / factor) * factor);
	} else if (rows * columns < (double)p->min_pixels) {
		double beta = sqrt((double)p->min_pixels / (h * w));
		rows = ceil(h * beta / factor) * factor;
		columns = ceil(w * beta / factor) * factor;
	}
	return size_of(rows, columns, s, out, err);
}

bool size_gemma4(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	double h = s.height, w = s.width, patches = (double)p->max_tokens * p->merge * p->merge;
	double pixels = patches * p->patch * p->patch, side = (double)p->merge * p->patch;
	double factor = sqrt(pixels / (h * w));
	double rows = floor(factor * h / side) * side, columns = floor(factor * w / side) * side;
	double longest = p->max_tokens * side;
	if (rows == 0 && columns == 0)
		return error_set(err, ERROR_UNSUPPORTED, "a picture of %u x %u pixels has no multiple of %.0f in it",
		                 s.width, s.height, side);
	if (rows == 0) {
		rows = side;
		columns = fmin(floor(w / h) * side, longest);
	} else if (columns == 0) {
		columns = side;
		rows = fmin(floor(h / w) * side, longest);
	}
	return size_of(rows, columns, s, out, err);
}

bool size_pixtral(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	double h = s.height, w = s.width, side = (double)p->patch * p->merge;
	double max_h = p->longest ? p->longest : p->height, max_w = p->longest ? p->longest : p->width;
	double ratio = fmax(h / max_h, w / max_w);
	if (ratio > 1) {
		h = floor(h / ratio);
		w = floor(w / ratio);
	}
	return size_of(ceil(h / side) * side, ceil(w / side) * side, s, out, err);
}

bool size_clip(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	if (!p->shortest)
		return size_of(p->height, p->width, s, out, err);
	bool upright = s.width <= s.height;
	double shorter = upright ? s.width : s.height, longer = upright ? s.height : s.width;
	double edge = p->shortest, other = floor(edge * longer / shorter);
	return size_of(upright ? other : edge, upright ? edge : other, s, out, err);
}

bool size_idefics3(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	const double bound = 4096; /* the class's own, whatever the files say */
	double h = s.height, w = s.width, ratio = w / h;
	if (w >= h) {
		w = p->longest;
		h = floor(w / ratio);
		h += fmod(h, 2);
	} else {
		h = p->longest;
		w = floor(h * ratio);
		w += fmod(w, 2);
	}
	h = at_least(1, h);
	w = at_least(1, w);
	ratio = w / h;
	if (w >= h && w > bound) {
		w = bound;
		h = floor(w / ratio);
	} else if (h > w && h > bound) {
		h = bound;
		w = floor(h * ratio);
	}
	return size_of(at_least(1, h), at_least(1, w), s, out, err);
}

bool size_idefics3_tiles(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	double h = s.height, w = s.width, tile = p->width, ratio = w / h;
	if (w >= h) {
		w = ceil(w / tile) * tile;
		h = ceil(floor(w / ratio) / tile) * tile;
	} else {
		h = ceil(h / tile) * tile;
		w = ceil(floor(h * ratio) / tile) * tile;
	}
	return size_of(h, w, s, out, err);
}

bool size_lfm2_vl(const struct image_processor *p, struct size s, struct size *out, struct error *err)
{
	double h = s.height, w = s.width, side = (double)p->patch * p->merge;
	double min = p->min_tokens * side * side, max = p->max_tokens * side * side;
	double rows = at_least(side, rint(h / side) * side), columns = at_least(side, rint(w / side) * side);
	if (rows * columns > max) {
		double beta = sqrt(h * w / max);
		rows = at_least(side, floor(h / beta / side) * side);
		columns = at_least(side, floor(w / beta / side) * side);
	} else if (rows * columns < min) {
		double beta = sqrt(min / (h * w));
		rows = ceil(h * beta / side) * side;
		columns = ceil(w * beta / side) * side;
	}
	return size_of(rows, columns, s, out, err);
}

bool size_is_large(const struct image_processor *p, struct size s)
{
	double side = (double)p->patch * p->merge;
	double rows = at_least(p->patch, rint(s.height / side) * side);
	double columns = at_least(p->patch, rint(s.width / side) * side);
	return rows * columns > p->max_tokens * side * side * p->tolerance;
}

struct size size_grid(const struct image_processor *p, struct size s)
{
	struct size best = { 1, 1 };
	double ratio = (double)s.width / s.height, nearest = INFINITY, pixels = (double)s.width * s.height;
	for (uint32_t n = p->min_tiles; n <= p->max_tiles; n++)
		for (uint32_t w = 1; w <= n; w++) {
			if (n % w != 0)
				continue;
			struct size grid = { .width = w, .height = n / w };
			double away = fabs(ratio - (double)grid.width / grid.height);
			if (away < nearest || (away == nearest && pixels > 0.5 * p->height * p->width * n)) {
				nearest = away;
				best = grid;
			}
		}
	return best;
}
