/* pictures/png.c - PNG by libpng.
 *
 * Owns: how libpng is asked for eight bits of red, green and blue, and where its errors go. Its own limits are set,
 * too: texts, which may be compressed, are passed over, and a profile has a limit.
 */
#include "pictures/decode.h"

#ifdef HAVE_LIBPNG

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct png_state {
	struct decoding *d;
	size_t at; /* bytes that were read */
	png_structp png;
	png_infop info;
	png_bytepp rows;
	bool no_memory;
};

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
	struct png_state *s = png_get_io_ptr(png);
	if (s->d->n - s->at < n)
		png_error(png, "ends early");
	memcpy(out, s->d->bytes + s->at, n);
	s->at += n;
}

static void on_error(png_structp png, png_const_charp text)
{
	struct png_state *s = png_get_error_ptr(png);
	if (s->no_memory)
		decode_refuse(s->d, ERROR_MEMORY, "needs more memory than there is");
	decode_refuse(s->d, ERROR_FORMAT, "is damaged: %s", text);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {}

static void *get_memory(png_structp png, png_alloc_size_t n)
{
	struct png_state *s = png_get_mem_ptr(png);
	void *p = malloc(n);
	s->no_memory = s->no_memory || !p;
	return p;
}

static void give_memory(png_structp png, void *p) { free(p); }

static void ask_for_rgb(struct png_state *s)
{
	int type = png_get_color_type(s->png, s->info);
	if (png_get_bit_depth(s->png, s->info) == 16)
		png_set_strip_16(s->png);
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(s->png);
	if (!(type & PNG_COLOR_MASK_COLOR)) {
		png_set_expand_gray_1_2_4_to_8(s->png);
		png_set_gray_to_rgb(s->png);
	}
	png_set_strip_alpha(s->png);
	png_set_interlace_handling(s->png);
	png_read_update_info(s->png, s->info);
}

static void take_orientation(struct png_state *s)
{
	png_uint_32 n = 0;
	png_bytep exif = NULL;
	if (png_get_eXIf_1(s->png, s->info, &n, &exif) != 0)
		s->d->orientation = exif_orientation(exif, n);
}

/* libpng comes back here by longjmp() from anywhere within; what must be freed is in *s. */
static bool read_picture(struct png_state *s)
{
	if (setjmp(png_jmpbuf(s->png)))
		return false;
	png_set_read_fn(s->png, s, read_bytes);
	png_set_user_limits(s->png, PICTURE_MAX_SIDE, PICTURE_MAX_SIDE);
	png_set_chunk_malloc_max(s->png, 1 << 23);
	png_set_chunk_cache_max(s->png, 1); /* no texts and palettes: a thousand of them may be 8 MiB each */
	png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
	png_read_info(s->png, s->info);
	if (!decode_size(s->d, png_get_image_width(s->png, s->info), png_get_image_height(s->png, s->info), false))
		return false;
	ask_for_rgb(s);
	size_t row = (size_t)s->d->picture.width * 3;
	if (png_get_rowbytes(s->png, s->info) != row)
		return decode_refuse(s->d, ERROR_UNSUPPORTED, "has rows of %zu bytes instead of %zu",
		                     png_get_rowbytes(s->png, s->info), row);
	s->rows = calloc(s->d->picture.height, sizeof *s->rows);
	if (!s->rows)
		return decode_refuse(s->d, ERROR_MEMORY, "needs more memory than there is");
	for (uint32_t y = 0; y < s->d->picture.height; y++)
		s->rows[y] = s->d->picture.rgb + y * row;
	png_read_image(s->png, s->rows);
	png_read_end(s->png, s->info);
	/* libpng goes on without what it could not keep. */
	if (s->no_memory)
		return decode_refuse(s->d, ERROR_MEMORY, "needs more memory than there is");
	take_orientation(s);
	return true;
}

bool decode_png(struct decoding *d)
{
	struct png_state s = { .d = d, .at = 0, .png = NULL, .info = NULL, .rows = NULL, .no_memory = false };
	s.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s, get_memory, give_memory);
	if (s.png)
		s.info = png_create_info_struct(s.png);
	bool ok = s.info ? read_picture(&s) : decode_refuse(d, ERROR_MEMORY, "needs more memory than there is");
	free(s.rows);
	png_destroy_read_struct(s.png ? &s.png : NULL, s.info ? &s.info : NULL, NULL);
	return ok;
}

#endif
