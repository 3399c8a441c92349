/* pictures/picture.c - memory of pictures.
 *
 * Owns: how large a picture may be, however it is made.
 */
#include "pictures/picture.h"

#include <stdlib.h>

bool picture_make(struct picture *out, uint32_t width, uint32_t height, struct error *err)
{
	*out = (struct picture){ 0, 0, NULL };
	if (width == 0 || height == 0 || width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE ||
	    (uint64_t)width * height > PICTURE_MAX_PIXELS)
		return error_set(err, ERROR_ARGUMENT,
		                 "a picture of %u x %u pixels: sides of 1 to %d and at most %d pixels are expected",
		                 width, height, PICTURE_MAX_SIDE, PICTURE_MAX_PIXELS);
	out->rgb = malloc((size_t)width * height * 3);
	if (!out->rgb)
		return error_set(err, ERROR_MEMORY, "no memory for a picture of %u x %u pixels", width, height);
	out->width = width;
	out->height = height;
	return true;
}

void picture_free(struct picture *p)
{
	free(p->rgb);
	*p = (struct picture){ 0, 0, NULL };
}
