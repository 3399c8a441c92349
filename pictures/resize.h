/* pictures/resize.h - pictures of other sizes, byte for byte as Pillow makes them.
 *
 * Owns: Pillow's filters and its arithmetic: weights of a filter as wide as the reduction (antialias), computed in
 * double, as integers of 22 bits behind the point; rows first, then columns, with a rounded byte in between.
 *
 * Never: knows models.
 */
#ifndef PICTURES_RESIZE_H
#define PICTURES_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pictures/picture.h"

/* Pillow's numbers, as preprocessor_config.json has them in "resample". */
enum resample {
	RESAMPLE_NEAREST = 0,
	RESAMPLE_LANCZOS = 1,
	RESAMPLE_BILINEAR = 2,
	RESAMPLE_BICUBIC = 3,
	RESAMPLE_BOX = 4,
	RESAMPLE_HAMMING = 5,
	RESAMPLE_COUNT
};

/* Image.resize((width, height), how) of `from` into *out. A picture of the same size is copied. False with err set when
 * a size is 0 or too large, or there is no memory; *out is then all 0. */
bool picture_resize(struct picture *out, const struct picture *from, uint32_t width, uint32_t height, enum resample how,
                    struct error *err);

#endif
