/* pictures/processor_run.c - the numbers of a picture's parts.
 *
 * Owns: what a byte becomes, and the order of the numbers. As torchvision has it: mean and deviation are floats that
 * are multiplied by 255 in float, and a byte is (byte - mean) / deviation in float.
 */
#include <stdlib.h>
#include <string.h>

#include "pictures/processor_plan.h"

struct colors {
	float of[3][256]; /* the number of each byte of red, green and blue */
};

static void colors_make(struct colors *t, const struct image_processor *p)
{
	float whole = p->do_rescale ? (float)(1.0 / p->rescale) : 1.0f;
	for (int c = 0; c < 3; c++) {
		float mean = (float)p->mean[c] * whole, deviation = (float)p->std[c] * whole;
		for (int byte = 0; byte < 256; byte++)
			t->of[c][byte] = p->do_normalize ? ((float)byte - mean) / deviation
			                 : p->do_rescale ? (float)byte * (float)p->rescale
			                                 : (float)byte;
	}
}

/* Where a part's pixels lie: in a picture, from (left, top) on, with black around it. */
struct view {
	const struct picture *from;
	int64_t left, top;
};

static const uint8_t *pixel(const struct view *v, uint32_t x, uint32_t y)
{
	static const uint8_t black[3] = { 0, 0, 0 };
	int64_t px = v->left + x, py = v->top + y;
	if (px < 0 || py < 0 || px >= v->from->width || py >= v->from->height)
		return black;
	return v->from->rgb + ((size_t)py * v->from->width + (size_t)px) * 3;
}

static void fill_planes(const struct image_part *part, const struct view *v, const struct colors *t)
{
	size_t plane = (size_t)part->width * part->height;
	float *out = part->values;
	for (uint32_t y = 0; y < part->height; y++)
		for (uint32_t x = 0; x < part->width; x++, out++) {
			const uint8_t *in = pixel(v, x, y);
			for (size_t c = 0; c < 3; c++)
				out[c * plane] = t->of[c][in[c]];
		}
}

static void fill_patches(const struct image_part *part, const struct view *v, const struct colors *t, uint32_t side)
{
	float *out = part->values;
	for (uint32_t patch = 0; patch < part->rows * part->columns; patch++)
		for (uint32_t k = 0; k < side * side; k++, out += 3) {
			const uint8_t *in = pixel(v, patch % part->columns * side + k % side,
			                          patch / part->columns * side + k / side);
			for (int c = 0; c < 3; c++)
				out[c] = t->of[c][in[c]];
		}
}

/* The patch with its left upper pixel at (x, y): planes of red, green and blue, each as often as there are frames. */
static float *fill_window_patch(float *out, const struct view *v, const struct colors *t, uint32_t x, uint32_t y,
                                uint32_t side, uint32_t frames)
{
	for (int c = 0; c < 3; c++)
		for (uint32_t frame = 0; frame < frames; frame++)
			for (uint32_t k = 0; k < side * side; k++)
				*out++ = t->of[c][pixel(v, x + k % side, y + k / side)[c]];
	return out;
}

static void fill_windows(const struct image_part *part, const struct view *v, const struct colors *t,
                         const struct image_processor *p)
{
	float *out = part->values;
	uint32_t side = p->patch, merge = p->merge;
	for (uint32_t row = 0; row < part->rows; row += merge)
		for (uint32_t column = 0; column < part->columns; column += merge)
			for (uint32_t k = 0; k < merge * merge; k++)
				out = fill_window_patch(out, v, t, (column + k % merge) * side,
				                        (row + k / merge) * side, side, p->frames);
}

static void fill_part(const struct image_processor *p, enum image_layout layout, const struct image_part *part,
                      const struct view *v, const struct colors *t)
{
	switch (layout) {
	case IMAGE_PLANES: fill_planes(part, v, t); break;
	case IMAGE_PATCHES: fill_patches(part, v, t, p->patch); break;
	case IMAGE_WINDOWS: fill_windows(part, v, t, p); break;
	}
}

static bool same_size(const struct picture *p, struct size s) { return p->width == s.width && p->height == s.height; }

/* *out is `from` resized; the pixels stay from's where the size is the same, and *out is then all 0. */
static bool resize_step(const struct image_processor *p, struct picture *out, const struct picture *from, struct size s,
                        const struct picture **result, struct error *err)
{
	memset(out, 0, sizeof *out);
	*result = from;
	if (same_size(from, s))
		return true;
	*result = out;
	return picture_resize(out, from, s.width, s.height, p->resample, err);
}

static void fill_tiles(const struct image_processor *p, const struct steps *s, struct processed_image *out,
                       const struct picture *from, const struct colors *t)
{
	for (uint32_t k = 0; k < s->grid.width * s->grid.height; k++) {
		const struct image_part *part = &out->parts[k];
		struct view v = { .from = from,
			          .left = s->left + (int64_t)part->tile_column * s->part.width,
			          .top = s->top + (int64_t)part->tile_row * s->part.height };
		fill_part(p, out->layout, part, &v, t);
	}
}

static bool fill(const struct image_processor *p, const struct steps *s, struct processed_image *out,
                 const struct picture *picture, struct error *err)
{
	struct colors t;
	struct picture made[3];
	const struct picture *first, *second, *whole = NULL;
	memset(made, 0, sizeof made);
	colors_make(&t, p);
	bool ok = resize_step(p, &made[0], picture, s->first, &first, err) &&
	          resize_step(p, &made[1], first, s->second, &second, err);
	if (ok && s->whole.width > 0)
		ok = resize_step(p, &made[2], s->whole_of_second ? second : picture, s->whole, &whole, err);
	if (ok)
		fill_tiles(p, s, out, second, &t);
	if (ok && whole) {
		struct view v = { .from = whole, .left = 0, .top = 0 };
		fill_part(p, out->layout, &out->parts[out->n_parts - 1], &v, &t);
	}
	for (int k = 0; k < 3; k++)
		picture_free(&made[k]);
	return ok;
}

bool processor_run(const struct image_processor *p, const struct picture *picture, struct processed_image *out,
                   struct error *err)
{
	struct steps steps;
	if (!processor_plan(p, picture->width, picture->height, out, err))
		return false;
	out->values = malloc(out->n_values * sizeof *out->values);
	bool ok = out->values || error_set(err, ERROR_MEMORY, "no memory for %zu numbers of a picture", out->n_values);
	size_t at = 0;
	for (uint32_t k = 0; ok && k < out->n_parts; k++) {
		out->parts[k].values = out->values + at;
		at += out->parts[k].n_values;
	}
	ok = ok && steps_plan(p, (struct size){ .width = picture->width, .height = picture->height }, &steps, err) &&
	     fill(p, &steps, out, picture, err);
	if (!ok)
		processed_image_free(out);
	return ok;
}
