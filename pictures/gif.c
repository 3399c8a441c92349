/* pictures/gif.c - GIF by giflib: the first picture of a file.
 *
 * Owns: where that picture lies on the canvas, and which colours its indices have. Around it, the canvas has the
 * transparent index where there is one, else the first. Pictures behind it are not looked at.
 */
#include "pictures/decode.h"

#ifdef HAVE_GIFLIB

#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

struct gif_state {
	struct decoding *d;
	size_t at; /* bytes that were read */
	GifFileType *gif;
	uint8_t palette[256][3];
	int transparent; /* index, or -1 */
	uint8_t *row;
};

static int read_bytes(GifFileType *gif, GifByteType *out, int n)
{
	struct gif_state *s = gif->UserData;
	size_t left = s->d->n - s->at, take = n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
	memcpy(out, s->d->bytes + s->at, take);
	s->at += take;
	return (int)take;
}

static bool refuse(struct gif_state *s)
{
	const char *why = s->gif ? GifErrorString(s->gif->Error) : NULL;
	if (s->at == s->d->n)
		return decode_refuse(s->d, ERROR_FORMAT, "has %zu bytes and ends within its picture", s->d->n);
	return decode_refuse(s->d, ERROR_FORMAT, "is damaged: %s", why ? why : "its header");
}

/* A graphic control extension says which index is transparent. */
static bool read_extension(struct gif_state *s)
{
	int code;
	GifByteType *block;
	if (DGifGetExtension(s->gif, &code, &block) != GIF_OK)
		return refuse(s);
	if (block && code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4)
		s->transparent = block[1] & 1 ? block[4] : -1;
	while (block)
		if (DGifGetExtensionNext(s->gif, &block) != GIF_OK)
			return refuse(s);
	return true;
}

/* Without a palette, and beyond its end, an index is a grey. */
static void take_palette(struct gif_state *s)
{
	const ColorMapObject *map = s->gif->Image.ColorMap ? s->gif->Image.ColorMap : s->gif->SColorMap;
	for (int k = 0; k < 256; k++)
		memset(s->palette[k], k, 3);
	for (int k = 0; map && k < map->ColorCount && k < 256; k++) {
		s->palette[k][0] = map->Colors[k].Red;
		s->palette[k][1] = map->Colors[k].Green;
		s->palette[k][2] = map->Colors[k].Blue;
	}
}

static bool read_row(struct gif_state *s, uint32_t y)
{
	const GifImageDesc *image = &s->gif->Image;
	struct picture *p = &s->d->picture;
	if (DGifGetLine(s->gif, s->row, image->Width) != GIF_OK)
		return refuse(s);
	uint8_t *out = p->rgb + (((size_t)image->Top + y) * p->width + (size_t)image->Left) * 3;
	for (int x = 0; x < image->Width; x++)
		memcpy(out + (size_t)x * 3, s->palette[s->row[x]], 3);
	return true;
}

/* The canvas grows where the picture leaves it, as Pillow has it. */
static bool read_image(struct gif_state *s)
{
	static const struct {
		uint32_t first, step;
	} passes[] = { { 0, 8 }, { 4, 8 }, { 2, 4 }, { 1, 2 } };
	if (DGifGetImageDesc(s->gif) != GIF_OK)
		return refuse(s);
	const GifImageDesc *image = &s->gif->Image;
	if (image->Left < 0 || image->Top < 0 || image->Width <= 0 || image->Height <= 0)
		return decode_refuse(s->d, ERROR_FORMAT, "has a picture of %d x %d pixels", image->Width,
		                     image->Height);
	int64_t right = (int64_t)image->Left + image->Width, bottom = (int64_t)image->Top + image->Height;
	if (!decode_size(s->d, (uint64_t)(right > s->gif->SWidth ? right : s->gif->SWidth),
	                 (uint64_t)(bottom > s->gif->SHeight ? bottom : s->gif->SHeight), false))
		return false;
	take_palette(s);
	struct picture *p = &s->d->picture;
	const uint8_t *around = s->palette[s->transparent < 0 ? 0 : s->transparent];
	for (size_t k = 0; k < (size_t)p->width * p->height; k++)
		memcpy(p->rgb + k * 3, around, 3);
	s->row = malloc((size_t)image->Width);
	if (!s->row)
		return decode_refuse(s->d, ERROR_MEMORY, "needs more memory than there is");
	if (!image->Interlace) {
		for (uint32_t y = 0; y < (uint32_t)image->Height; y++)
			if (!read_row(s, y))
				return false;
		return true;
	}
	for (int k = 0; k < 4; k++)
		for (uint32_t y = passes[k].first; y < (uint32_t)image->Height; y += passes[k].step)
			if (!read_row(s, y))
				return false;
	return true;
}

static bool read_first(struct gif_state *s)
{
	for (;;) {
		GifRecordType type;
		if (DGifGetRecordType(s->gif, &type) != GIF_OK)
			return refuse(s);
		if (type == IMAGE_DESC_RECORD_TYPE)
			return read_image(s);
		if (type == TERMINATE_RECORD_TYPE)
			return decode_refuse(s->d, ERROR_FORMAT, "has no picture");
		if (type == EXTENSION_RECORD_TYPE && !read_extension(s))
			return false;
	}
}

bool decode_gif(struct decoding *d)
{
	struct gif_state s = { .d = d, .at = 0, .gif = NULL, .transparent = -1, .row = NULL };
	int code = 0;
	s.gif = DGifOpen(&s, read_bytes, &code);
	bool ok = s.gif ? read_first(&s) : refuse(&s);
	free(s.row);
	if (s.gif)
		DGifCloseFile(s.gif, &code);
	return ok;
}

#endif
