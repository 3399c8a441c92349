/* tests/fuzz/fuzz_pictures.c - arbitrary bytes as a picture's file: what is decoded has the size that was asked for at
 * most, all of its pixels, and the same ones each time. */
#include <stdlib.h>
#include <string.h>

#include "pictures/picture.h"
#include "tests/fuzz/fuzz.h"
#include "tests/pictures/small_pictures.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

void fuzz_pictures(const uint8_t *p, size_t n)
{
	static const struct picture_limits limits = { .bytes = 0, .pixels = 1 << 18 };
	struct error err = { 0 };
	struct picture one, two;

	if (!picture_decode(&one, p, n, "fuzz", &limits, &err)) {
		need(err.text[0] && !one.rgb);
		return;
	}
	size_t bytes = (size_t)one.width * one.height * 3;
	need(bytes > 0 && bytes <= 3 << 18);
	need(picture_decode(&two, p, n, "fuzz", &limits, &err));
	need(one.width == two.width && one.height == two.height && memcmp(one.rgb, two.rgb, bytes) == 0);
	picture_free(&one);
	picture_free(&two);
}

void fuzz_pictures_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	for (size_t k = 0; k < SMALL_PICTURES; k++)
		take(user, small_pictures[k].bytes, small_pictures[k].n);
}
