/* pictures/decode.c - which format a file has, and its reader.
 *
 * Owns: the way around the readers of formats: limits before, orientation after, and nothing left behind when one of
 * them refuses.
 */
#include "pictures/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pictures/decode.h"

/* Readers that this build has; the others' formats are known by name alone. */
#ifndef HAVE_LIBPNG
#define decode_png NULL
#endif
#ifndef HAVE_LIBJPEG
#define decode_jpeg NULL
#endif
#ifndef HAVE_LIBWEBP
#define decode_webp NULL
#endif
#ifndef HAVE_GIFLIB
#define decode_gif NULL
#endif

static const struct {
	const char *name;
	size_t at, n; /* where the bytes lie that tell it */
	const char *bytes;
	bool (*decode)(struct decoding *d); /* NULL: not in this build */
	const char *reader;
} formats[] = {
	{ "PNG", 0, 8, "\x89PNG\r\n\x1a\n", decode_png, "libpng" },
	{ "JPEG", 0, 3, "\xff\xd8\xff", decode_jpeg, "libjpeg" },
	{ "WebP", 8, 4, "WEBP", decode_webp, "libwebp" },
	{ "GIF", 0, 4, "GIF8", decode_gif, "giflib" },
	{ "BMP", 0, 2, "BM", decode_bmp, "" },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static int format_of(const void *bytes, size_t n)
{
	for (int k = 0; k < FORMATS; k++)
		if (n >= formats[k].at + formats[k].n &&
		    memcmp((const char *)bytes + formats[k].at, formats[k].bytes, formats[k].n) == 0 &&
		    (formats[k].at == 0 || memcmp(bytes, "RIFF", 4) == 0))
			return k;
	return -1;
}

const char *picture_format(const void *bytes, size_t n)
{
	int k = format_of(bytes, n);
	return k < 0 ? NULL : formats[k].name;
}

bool picture_can_read(const char *format)
{
	for (int k = 0; k < FORMATS; k++)
		if (strcmp(format, formats[k].name) == 0)
			return formats[k].decode != NULL;
	return false;
}

bool decode_refuse(struct decoding *d, enum error_code code, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return error_set(d->err, code, "%s: this %s file %s", d->label, d->format, text);
}

bool decode_size(struct decoding *d, uint64_t width, uint64_t height, bool black)
{
	if (width == 0 || height == 0)
		return decode_refuse(d, ERROR_FORMAT,
		                     "says that its picture has %llu x %llu pixels; 1 x 1 is the least",
		                     (unsigned long long)width, (unsigned long long)height);
	if (width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE || width * height > d->max_pixels)
		return decode_refuse(
			d, ERROR_UNSUPPORTED,
			"has a picture of %llu x %llu pixels; sides of at most %d and at most %llu pixels are "
			"expected",
			(unsigned long long)width, (unsigned long long)height, PICTURE_MAX_SIDE,
			(unsigned long long)d->max_pixels);
	if (!picture_make(&d->picture, (uint32_t)width, (uint32_t)height, d->err))
		return false;
	if (black)
		memset(d->picture.rgb, 0, (size_t)(width * height) * 3);
	return true;
}

static uint64_t limit(uint64_t requested, uint64_t max) { return requested == 0 || requested > max ? max : requested; }

bool picture_decode(struct picture *out, const void *bytes, size_t n, const char *name,
                    const struct picture_limits *limits, struct error *err)
{
	static const struct picture_limits none = { 0, 0 };
	char label[200];
	struct error own = { ERROR_NONE, "" };
	int k = format_of(bytes, n);

	*out = (struct picture){ 0, 0, NULL };
	if (!limits)
		limits = &none;
	error_quote(label, sizeof label, name, strlen(name));
	uint64_t max = limit(limits->bytes, PICTURE_MAX_BYTES);
	if (n > max)
		return error_set(err, ERROR_UNSUPPORTED, "%s has %zu bytes; a picture's file may have %llu", label, n,
		                 (unsigned long long)max);
	if (k < 0)
		return error_set(err, ERROR_FORMAT, "%s is no picture: PNG, JPEG, WebP, GIF or BMP is expected", label);
	if (!formats[k].decode)
		return error_set(err, ERROR_UNSUPPORTED, "%s is a %s file, and this program was built without %s",
		                 label, formats[k].name, formats[k].reader);
	struct decoding d = { .bytes = bytes,
		              .n = n,
		              .label = label,
		              .format = formats[k].name,
		              .max_pixels = limit(limits->pixels, PICTURE_MAX_PIXELS),
		              .err = err ? err : &own };
	if (formats[k].decode(&d) && picture_orient(&d.picture, d.orientation, d.err)) {
		*out = d.picture;
		return true;
	}
	picture_free(&d.picture);
	return false;
}
