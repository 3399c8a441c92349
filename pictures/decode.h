/* pictures/decode.h - what picture_decode() and the readers of formats share.
 *
 * Owns: one decoding: the bytes, the limits, and the picture that comes of them. A reader looks at a header, asks
 * decode_size() for the picture, and fills it. What it leaves half filled is freed by picture_decode().
 */
#ifndef PICTURES_DECODE_H
#define PICTURES_DECODE_H

#include "pictures/picture.h"

struct decoding {
	const uint8_t *bytes;
	size_t n;
	const char *label;  /* the file's name, quoted for messages */
	const char *format; /* "PNG", ... */
	uint64_t max_pixels;
	struct picture picture;
	unsigned orientation; /* EXIF's 1 to 8; 0: not said */
	struct error *err;
};

bool decode_png(struct decoding *d);
bool decode_jpeg(struct decoding *d);
bool decode_webp(struct decoding *d);
bool decode_gif(struct decoding *d);
bool decode_bmp(struct decoding *d);

/* Compares the sizes with the limits and makes the picture, all black where `black`. */
bool decode_size(struct decoding *d, uint64_t width, uint64_t height, bool black);
/* Sets the error "LABEL: this FORMAT file ..."; false always. */
bool decode_refuse(struct decoding *d, enum error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The orientation that n bytes of EXIF say, which begin with the byte order or with "Exif\0\0"; 0 when they do not. */
unsigned exif_orientation(const uint8_t *p, size_t n);
/* Rotates and mirrors a picture as this orientation asks for. */
bool picture_orient(struct picture *p, unsigned orientation, struct error *err);

#endif
