/* pictures/bmp.c - Windows bitmaps, and those of OS/2.
 *
 * Owns: the format, by a reader of its own: palettes of 1, 4 and 8 bits, run lengths of 4 and 8 bits, 16, 24 and 32
 * bits a pixel with the masks that programs write. Others are refused. Every offset is compared with the file's length
 * first.
 */
#include <string.h>

#include "pictures/decode.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
enum { RAW, RLE8, RLE4, BITFIELDS };

struct bmp {
	uint32_t header;
	int64_t width, height;
	bool top_down;
	unsigned bits, compression;
	size_t pixels;    /* where they begin */
	uint32_t mask[3]; /* red, green, blue: of 16 and 32 bits */
	uint8_t palette[256][3];
};

static unsigned get16(const uint8_t *p) { return p[0] | (unsigned)p[1] << 8; }
static uint32_t get32(const uint8_t *p) { return get16(p) | (uint32_t)get16(p + 2) << 16; }

/* Masks of BITFIELDS lie behind the short header, or in a longer one at the same offset. */
static bool read_masks(struct decoding *d, struct bmp *b)
{
	static const uint32_t known[][4] = {
		{ 32, 0xff0000, 0xff00, 0xff },
		{ 32, 0xff000000, 0xff0000, 0xff00 },
		{ 32, 0xff, 0xff00, 0xff0000 },
		{ 16, 0xf800, 0x7e0, 0x1f },
		{ 16, 0x7c00, 0x3e0, 0x1f },
		{ 24, 0xff0000, 0xff00, 0xff },
		{ 32, 0, 0, 0 },
	};
	if (d->n < FILE_HEADER + INFO_HEADER + 12)
		return decode_refuse(d, ERROR_FORMAT, "ends within its masks");
	for (int c = 0; c < 3; c++)
		b->mask[c] = get32(d->bytes + FILE_HEADER + INFO_HEADER + 4 * c);
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (known[k][0] == b->bits && memcmp(known[k] + 1, b->mask, sizeof b->mask) == 0) {
			if (b->bits == 32 && b->mask[0] == 0)
				memcpy(b->mask, known[0] + 1, sizeof b->mask);
			return true;
		}
	return decode_refuse(d, ERROR_UNSUPPORTED,
	                     "has %u bits a pixel with the masks %#x, %#x and %#x, which are not read", b->bits,
	                     b->mask[0], b->mask[1], b->mask[2]);
}

static bool read_header(struct decoding *d, struct bmp *b)
{
	const uint8_t *p = d->bytes + FILE_HEADER;
	if (d->n < FILE_HEADER + CORE_HEADER)
		return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its header", d->n);
	b->header = get32(p);
	b->pixels = get32(d->bytes + 10);
	if (b->header == CORE_HEADER) {
		b->width = get16(p + 4);
		b->height = get16(p + 6);
		b->bits = get16(p + 10);
		return true;
	}
	if (b->header != INFO_HEADER && b->header != 52 && b->header != 56 && b->header != 64 && b->header != 108 &&
	    b->header != 124)
		return decode_refuse(d, ERROR_UNSUPPORTED,
		                     "has a header of %u bytes; 12, 40, 52, 56, 64, 108 or 124 is expected", b->header);
	if (d->n < FILE_HEADER + (size_t)b->header)
		return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its header", d->n);
	b->width = get32(p + 4);
	b->height = (int32_t)get32(p + 8);
	b->top_down = b->height < 0;
	b->height = b->top_down ? -b->height : b->height;
	b->bits = get16(p + 14);
	b->compression = get32(p + 16);
	return true;
}

/* Whether this reader has the number of bits with the compression; masks of 16, 24 and 32 bits. */
static bool read_kind(struct decoding *d, struct bmp *b)
{
	unsigned bits = b->bits;
	bool raw = bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
	bool ok = b->compression == RAW    ? raw
	          : b->compression == RLE8 ? bits == 8
	          : b->compression == RLE4 ? bits == 4
	                                   : b->compression == BITFIELDS && raw && bits >= 16;
	if (!ok)
		return decode_refuse(d, ERROR_UNSUPPORTED, "has %u bits a pixel with compression %u, which is not read",
		                     bits, b->compression);
	if (b->compression == BITFIELDS)
		return read_masks(d, b);
	uint32_t five = bits == 16;
	b->mask[0] = five ? 0x7c00 : 0xff0000;
	b->mask[1] = five ? 0x3e0 : 0xff00;
	b->mask[2] = five ? 0x1f : 0xff;
	return true;
}

static bool read_palette(struct decoding *d, struct bmp *b)
{
	size_t entry = b->header == CORE_HEADER ? 3 : 4, at = FILE_HEADER + (size_t)b->header;
	uint32_t colors = b->header == CORE_HEADER ? 0 : get32(d->bytes + FILE_HEADER + 32);
	if (b->bits > 8)
		return true;
	if (colors == 0)
		colors = 1u << b->bits;
	if (colors > 256)
		colors = 256;
	if (d->n < at || (d->n - at) / entry < colors)
		return decode_refuse(d, ERROR_FORMAT, "ends within its palette of %u colours", colors);
	for (uint32_t k = 0; k < colors; k++)
		for (int c = 0; c < 3; c++)
			b->palette[k][c] = d->bytes[at + k * entry + 2 - (size_t)c];
	/* Some writers say that the pixels begin where the palette does. */
	if (b->pixels == at)
		b->pixels = at + colors * entry;
	return true;
}

/* The byte that the bits of a mask make of a pixel: all of them set is 255. */
static uint8_t masked(uint32_t pixel, uint32_t mask)
{
	unsigned shift = (unsigned)__builtin_ctz(mask);
	uint32_t max = mask >> shift;
	return (uint8_t)(((pixel & mask) >> shift) * 255 / max);
}

static void set_index(struct decoding *d, const struct bmp *b, int64_t x, int64_t y, unsigned index)
{
	int64_t row = b->top_down ? y : b->height - 1 - y;
	memcpy(d->picture.rgb + (size_t)(row * b->width + x) * 3, b->palette[index], 3);
}

static void set_row(struct decoding *d, const struct bmp *b, const uint8_t *in, int64_t y)
{
	int64_t row = b->top_down ? y : b->height - 1 - y;
	uint8_t *out = d->picture.rgb + (size_t)(row * b->width) * 3;
	for (int64_t x = 0; x < b->width; x++, out += 3) {
		if (b->bits <= 8) {
			size_t bit = (size_t)x * b->bits;
			unsigned index = in[bit / 8] >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1);
			memcpy(out, b->palette[index], 3);
			continue;
		}
		const uint8_t *p = in + (size_t)x * (b->bits / 8);
		uint32_t pixel = b->bits == 16 ? get16(p) : get16(p) | (uint32_t)p[2] << 16;
		if (b->bits == 32)
			pixel |= (uint32_t)p[3] << 24;
		for (int c = 0; c < 3; c++)
			out[c] = masked(pixel, b->mask[c]);
	}
}

static bool read_rows(struct decoding *d, const struct bmp *b)
{
	size_t stride = ((size_t)b->width * b->bits + 31) / 32 * 4, used = ((size_t)b->width * b->bits + 7) / 8;
	if (b->pixels > d->n || d->n - b->pixels < used || (d->n - b->pixels - used) / stride < (size_t)b->height - 1)
		return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its pixels", d->n);
	for (int64_t y = 0; y < b->height; y++)
		set_row(d, b, d->bytes + b->pixels + (size_t)y * stride, y);
	return true;
}

/* Runs: a count and an index (for 4 bits: two that alternate); 0 begins what is no run: 0 the end of a row, 1 that of
 * the picture, 2 a step, more a number of indices as they are. */
struct runs {
	const uint8_t *p;
	size_t n, at;
	int64_t x, y;
};

static void put(struct decoding *d, const struct bmp *b, struct runs *r, unsigned index)
{
	if (r->x < b->width && r->y < b->height)
		set_index(d, b, r->x, r->y, index);
	r->x++;
}

/* Indices as they are, padded to two bytes. False: the file ends. */
static bool read_literal(struct decoding *d, const struct bmp *b, struct runs *r, unsigned count)
{
	size_t bytes = b->bits == 8 ? count : (count + 1) / 2;
	if (r->n - r->at < bytes)
		return false;
	for (unsigned k = 0; k < count; k++) {
		unsigned byte = r->p[r->at + (b->bits == 8 ? k : k / 2)];
		put(d, b, r, b->bits == 8 ? byte : k % 2 ? byte & 15 : byte >> 4);
	}
	r->at += bytes + bytes % 2;
	return true;
}

static bool read_runs(struct decoding *d, const struct bmp *b)
{
	struct runs r = { .p = d->bytes, .n = d->n, .at = b->pixels, .x = 0, .y = 0 };
	/* What runs step over has the first colour. */
	for (int64_t y = 0; y < b->height; y++)
		for (int64_t x = 0; x < b->width; x++)
			set_index(d, b, x, y, 0);
	while (r.y < b->height) {
		if (r.at > r.n || r.n - r.at < 2)
			return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its pixels", d->n);
		unsigned count = r.p[r.at], value = r.p[r.at + 1];
		r.at += 2;
		if (count > 0) {
			for (unsigned k = 0; k < count; k++)
				put(d, b, &r, b->bits == 8 ? value : k % 2 ? value & 15 : value >> 4);
		} else if (value == 0) {
			r.x = 0;
			r.y++;
		} else if (value == 1) {
			return true;
		} else if (value == 2) {
			if (r.n - r.at < 2)
				return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its pixels", d->n);
			r.x += r.p[r.at];
			r.y += r.p[r.at + 1];
			r.at += 2;
		} else if (!read_literal(d, b, &r, value)) {
			return decode_refuse(d, ERROR_FORMAT, "has %zu bytes and ends within its pixels", d->n);
		}
	}
	return true;
}

bool decode_bmp(struct decoding *d)
{
	struct bmp b;
	memset(&b, 0, sizeof b);
	if (!read_header(d, &b) || !read_kind(d, &b) || !decode_size(d, (uint64_t)b.width, (uint64_t)b.height, false) ||
	    !read_palette(d, &b))
		return false;
	return b.compression == RLE8 || b.compression == RLE4 ? read_runs(d, &b) : read_rows(d, &b);
}
