/* pictures/jpeg.c - JPEG by libjpeg-turbo.
 *
 * Owns: how libjpeg is asked for red, green and blue, what CMYK becomes (inverted, as Adobe's programs write it and
 * Pillow reads it), where its errors go, and the number of passes a progressive picture may have.
 */
#include "pictures/decode.h"

#ifdef HAVE_LIBJPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* Passes over the whole picture: encoders write about ten. */
enum { MAX_SCANS = 200 };

struct jpeg_state {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	struct jpeg_source_mgr source;
	jmp_buf back;
	struct decoding *d;
	uint8_t *row; /* of CMYK */
};

static struct jpeg_state *state_of(j_common_ptr c) { return c->client_data; }

static void on_error(j_common_ptr c)
{
	struct jpeg_state *s = state_of(c);
	char text[JMSG_LENGTH_MAX];
	c->err->format_message(c, text);
	decode_refuse(s->d, c->err->msg_code == JERR_OUT_OF_MEMORY ? ERROR_MEMORY : ERROR_FORMAT, "is damaged: %s",
	              text);
	longjmp(s->back, 1);
}

/* Warnings are what libjpeg mends by itself, as Pillow lets it. */
static void on_message(j_common_ptr c, int level) {}

static void on_progress(j_common_ptr c)
{
	struct jpeg_state *s = state_of(c);
	if (s->jpeg.input_scan_number <= MAX_SCANS)
		return;
	decode_refuse(s->d, ERROR_UNSUPPORTED, "has more than %d passes over its picture", MAX_SCANS);
	longjmp(s->back, 1);
}

static void source_begin(j_decompress_ptr j) {}

static boolean source_ends(j_decompress_ptr j)
{
	struct jpeg_state *s = state_of((j_common_ptr)j);
	decode_refuse(s->d, ERROR_FORMAT, "has %zu bytes and ends within its picture", s->d->n);
	longjmp(s->back, 1);
}

static void source_skip(j_decompress_ptr j, long n)
{
	if (n <= 0)
		return;
	if ((size_t)n > j->src->bytes_in_buffer)
		source_ends(j);
	j->src->next_input_byte += n;
	j->src->bytes_in_buffer -= (size_t)n;
}

static void set_up(struct jpeg_state *s)
{
	jpeg_create_decompress(&s->jpeg);
	s->source = (struct jpeg_source_mgr){
		.next_input_byte = s->d->bytes,
		.bytes_in_buffer = s->d->n,
		.init_source = source_begin,
		.fill_input_buffer = source_ends,
		.skip_input_data = source_skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = source_begin
	};
	s->jpeg.src = &s->source;
	s->progress.progress_monitor = on_progress;
	s->jpeg.progress = &s->progress;
	jpeg_save_markers(&s->jpeg, JPEG_APP0 + 1, 0xffff);
}

static void take_orientation(struct jpeg_state *s)
{
	for (jpeg_saved_marker_ptr m = s->jpeg.marker_list; m; m = m->next)
		if (m->data_length > 6 && memcmp(m->data, "Exif\0", 5) == 0) {
			s->d->orientation = exif_orientation(m->data, m->data_length);
			return;
		}
}

/* a * b / 255, rounded as Pillow rounds it. */
static unsigned product(unsigned a, unsigned b)
{
	unsigned v = a * b + 128;
	return (v + (v >> 8)) >> 8;
}

static void rgb_of_cmyk(uint8_t *rgb, const uint8_t *in, uint32_t width)
{
	for (uint32_t x = 0; x < width; x++, in += 4, rgb += 3)
		for (int c = 0; c < 3; c++)
			rgb[c] = (uint8_t)(in[3] - product(255u - in[c], in[3]));
}

static bool read_rows(struct jpeg_state *s, bool cmyk)
{
	struct picture *p = &s->d->picture;
	if (cmyk && !(s->row = malloc((size_t)p->width * 4)))
		return decode_refuse(s->d, ERROR_MEMORY, "needs more memory than there is");
	jpeg_start_decompress(&s->jpeg);
	while (s->jpeg.output_scanline < p->height) {
		uint8_t *out = p->rgb + (size_t)s->jpeg.output_scanline * p->width * 3;
		JSAMPROW row = cmyk ? s->row : out;
		if (jpeg_read_scanlines(&s->jpeg, &row, 1) == 1 && cmyk)
			rgb_of_cmyk(out, s->row, p->width);
	}
	return true;
}

/* libjpeg comes back here by longjmp() from anywhere within; what must be freed is in *s. */
static bool read_picture(struct jpeg_state *s)
{
	if (setjmp(s->back))
		return false;
	set_up(s);
	jpeg_read_header(&s->jpeg, TRUE);
	int components = s->jpeg.num_components;
	if (components != 1 && components != 3 && components != 4)
		return decode_refuse(s->d, ERROR_UNSUPPORTED, "has %d components; 1, 3 or 4 are expected", components);
	if (!decode_size(s->d, s->jpeg.image_width, s->jpeg.image_height, false))
		return false;
	take_orientation(s);
	s->jpeg.out_color_space = components == 4 ? JCS_CMYK : JCS_RGB;
	return read_rows(s, components == 4);
}

bool decode_jpeg(struct decoding *d)
{
	struct jpeg_state *s = calloc(1, sizeof *s);
	if (!s)
		return decode_refuse(d, ERROR_MEMORY, "needs more memory than there is");
	s->d = d;
	s->jpeg.err = jpeg_std_error(&s->errors);
	s->errors.error_exit = on_error;
	s->errors.emit_message = on_message;
	s->jpeg.client_data = s;
	bool ok = read_picture(s);
	if (s->jpeg.mem)
		jpeg_destroy_decompress(&s->jpeg);
	free(s->row);
	free(s);
	return ok;
}

#endif
