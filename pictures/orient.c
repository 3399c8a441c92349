/* pictures/orient.c - which way up a picture is, and rotating it so.
 *
 * Owns: the one tag of EXIF that pixels depend on. EXIF is a TIFF file in small: a byte order, and a list of tags.
 */
#include "pictures/decode.h"

#include <string.h>

static unsigned get16(const uint8_t *p, bool big) { return big ? p[0] * 256u + p[1] : p[1] * 256u + p[0]; }

static uint32_t get32(const uint8_t *p, bool big)
{
	uint32_t low = get16(p + (big ? 2 : 0), big), high = get16(p + (big ? 0 : 2), big);
	return high << 16 | low;
}

enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4, TAG_BYTES = 12 };

unsigned exif_orientation(const uint8_t *p, size_t n)
{
	if (n >= 6 && memcmp(p, "Exif\0\0", 6) == 0) {
		p += 6;
		n -= 6;
	}
	if (n < 10 || (memcmp(p, "II*\0", 4) != 0 && memcmp(p, "MM\0*", 4) != 0))
		return 0;
	bool big = p[0] == 'M';
	size_t at = get32(p + 4, big);
	if (at > n - 2)
		return 0;
	for (unsigned tags = get16(p + at, big); tags > 0; tags--) {
		const uint8_t *tag = p + at + 2;
		if (n - at < 2 + TAG_BYTES)
			return 0;
		unsigned type = get16(tag + 2, big);
		if (get16(tag, big) == TAG_ORIENTATION) {
			uint32_t v = type == TYPE_SHORT  ? get16(tag + 8, big)
			             : type == TYPE_LONG ? get32(tag + 8, big)
			                                 : 0;
			return get32(tag + 4, big) == 1 && v >= 1 && v <= 8 ? v : 0;
		}
		at += TAG_BYTES;
	}
	return 0;
}

/* Where the pixel (x, y) of the upright picture lies in the stored one of w x h pixels. */
static size_t stored_at(unsigned orientation, uint32_t x, uint32_t y, uint32_t w, uint32_t h)
{
	bool swapped = orientation >= 5;
	bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
	bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
	uint32_t sx = swapped ? y : x, sy = swapped ? x : y;
	return (size_t)(mirror_y ? h - 1 - sy : sy) * w + (mirror_x ? w - 1 - sx : sx);
}

bool picture_orient(struct picture *p, unsigned orientation, struct error *err)
{
	struct picture upright;
	bool swapped = orientation >= 5;

	if (orientation < 2 || orientation > 8)
		return true;
	if (!picture_make(&upright, swapped ? p->height : p->width, swapped ? p->width : p->height, err))
		return false;
	for (uint32_t y = 0; y < upright.height; y++)
		for (uint32_t x = 0; x < upright.width; x++)
			memcpy(upright.rgb + ((size_t)y * upright.width + x) * 3,
			       p->rgb + stored_at(orientation, x, y, p->width, p->height) * 3, 3);
	picture_free(p);
	*p = upright;
	return true;
}
