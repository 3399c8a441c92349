/* pictures/picture.h - pictures in files become pixels.
 *
 * Owns: what is a picture to the rest of the library, and the way from a file's bytes to it: PNG, JPEG, WebP and GIF by
 * their libraries, BMP by a reader of its own. The pixels are those that Pillow's Image.open(), exif_transpose() and
 * convert("RGB") give, byte for byte where both use the same library: models were trained on these.
 *
 * Limits are compared with what a file's header says, before anything is decoded and before memory is taken for it.
 * Bytes behind the picture and parts that are not needed for it are not looked at.
 *
 * Never: reads or writes files, prints, keeps anything of a call.
 */
#ifndef PICTURES_PICTURE_H
#define PICTURES_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of a file, and pixels and pixels of a side of a picture, that are decoded unless the caller asks for fewer. */
enum { PICTURE_MAX_BYTES = 1 << 26, PICTURE_MAX_PIXELS = 1 << 26, PICTURE_MAX_SIDE = 1 << 16 };

/* width x height pixels, rows from the top, each pixel three bytes: red, green, blue, without padding. */
struct picture {
	uint32_t width, height;
	uint8_t *rgb; /* width * height * 3 bytes from malloc(); picture_free() */
};

/* 0 is the default of each; a number above it is taken as the default. */
struct picture_limits {
	uint64_t bytes;  /* of the file */
	uint64_t pixels; /* width * height */
};

/* The format of n bytes by how they begin: "PNG", "JPEG", "WebP", "GIF", "BMP"; NULL for anything else. */
const char *picture_format(const void *bytes, size_t n);

/* Whether this build has the library for a format that picture_format() names. */
bool picture_can_read(const char *format);

/* Decodes n bytes. name is what messages call the file. An animated picture is its first frame, on a canvas of its
 * whole size. What is transparent keeps its colour, as convert("RGB") keeps it: only the alpha is dropped. Of sixteen
 * bits the upper eight stay; for grey that is another rule than Pillow's, which makes all above 255 white. The
 * orientation is that of EXIF: in JPEG's first APP1, PNG's eXIf, WebP's EXIF chunk. Colour profiles and gamma are not
 * applied. A file that ends before its pixels do, or in which the format notices damage, is refused. False with err
 * set: *out is all 0. limits may be NULL. */
bool picture_decode(struct picture *out, const void *bytes, size_t n, const char *name,
                    const struct picture_limits *limits, struct error *err);

/* A picture of these sizes with pixels that are not set. False with err set when they are 0, too large, or there is no
 * memory. */
bool picture_make(struct picture *out, uint32_t width, uint32_t height, struct error *err);
void picture_free(struct picture *p);

#endif
