/* pictures/processor_plan.c - parts of a picture, and what stands for them in a prompt. */
#include "pictures/processor_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 1 << 10, SEGMENTS_MAX = 1 << 16 };

/* ---- steps */

static struct size size_make(uint32_t width, uint32_t height)
{
	return (struct size){ .width = width, .height = height };
}

static bool plan_one(const struct image_processor *p, struct size s, struct steps *out, struct error *err)
{
	struct size to = s;
	bool ok = true;
	if (p->do_resize) {
		switch (p->kind) {
		case PROCESSOR_QWEN2_VL: ok = size_qwen2_vl(p, s, &to, err); break;
		case PROCESSOR_GEMMA4: ok = size_gemma4(p, s, &to, err); break;
		case PROCESSOR_PIXTRAL: ok = size_pixtral(p, s, &to, err); break;
		case PROCESSOR_CLIP: ok = size_clip(p, s, &to, err); break;
		case PROCESSOR_LFM2_VL: ok = size_lfm2_vl(p, s, &to, err); break;
		default: to = size_make(p->width, p->height); break;
		}
	}
	out->first = out->second = out->part = to;
	return ok;
}

static void plan_crop(const struct image_processor *p, struct steps *out)
{
	out->part = size_make(p->crop_width, p->crop_height);
	int64_t left = (int64_t)out->first.width - p->crop_width, top = (int64_t)out->first.height - p->crop_height;
	/* Towards the left and the top where a pixel is left over, whether it is taken away or added. */
	out->left = left >= 0 ? left / 2 : -(-left / 2);
	out->top = top >= 0 ? top / 2 : -(-top / 2);
}

static bool plan_idefics3(const struct image_processor *p, struct size s, struct steps *out, struct error *err)
{
	struct size tile = size_make(p->width, p->height);
	out->first = s;
	out->part = tile;
	if (p->do_resize && !size_idefics3(p, s, &out->first, err))
		return false;
	out->second = tile;
	if (!p->split)
		return true;
	if (!size_idefics3_tiles(p, out->first, &out->second, err))
		return false;
	if (out->second.width > tile.width || out->second.height > tile.height) {
		out->grid = size_make(out->second.width / tile.width, out->second.height / tile.height);
		out->whole = tile;
		out->whole_of_second = true;
	}
	return true;
}

static bool plan_tiles(const struct image_processor *p, struct size s, struct size whole, struct steps *out,
                       struct error *err)
{
	out->grid = size_grid(p, s);
	out->part = size_make(p->width, p->height);
	uint64_t width = (uint64_t)out->grid.width * p->width, height = (uint64_t)out->grid.height * p->height;
	if (width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE || width * height > PICTURE_MAX_PIXELS)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%u x %u tiles of %u x %u pixels are more than the %d pixels that a picture may have",
		                 out->grid.width, out->grid.height, p->width, p->height, PICTURE_MAX_PIXELS);
	out->first = out->second = size_make((uint32_t)width, (uint32_t)height);
	if (p->thumbnail && out->grid.width * out->grid.height > 1)
		out->whole = whole;
	return true;
}

bool steps_plan(const struct image_processor *p, struct size s, struct steps *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	out->grid = size_make(1, 1);
	if (p->kind == PROCESSOR_IDEFICS3)
		return plan_idefics3(p, s, out, err);
	if (p->kind == PROCESSOR_GOT_OCR2 && p->split && p->max_tiles > 1)
		return plan_tiles(p, s, size_make(p->width, p->height), out, err);
	if (!plan_one(p, s, out, err))
		return false;
	if (p->kind == PROCESSOR_LFM2_VL && p->split && size_is_large(p, s))
		return plan_tiles(p, s, out->first, out, err);
	if (p->kind == PROCESSOR_CLIP && p->do_center_crop)
		plan_crop(p, out);
	return true;
}

/* ---- parts */

static enum image_layout layout_of(const struct image_processor *p)
{
	return p->kind == PROCESSOR_QWEN2_VL ? IMAGE_WINDOWS
	       : p->kind == PROCESSOR_GEMMA4 || p->kind == PROCESSOR_LFM2_VL
	               ? IMAGE_PATCHES
	               : IMAGE_PLANES;
}

static uint32_t up(uint32_t n, uint32_t by) { return (n + by - 1) / by; }

/* Whether the tower takes a part of this size: not where files switch resizing off and the picture has another one. */
static bool part_fits(const struct image_processor *p, struct size s, struct error *err)
{
	if (p->kind == PROCESSOR_GEMMA3 || p->kind == PROCESSOR_GOT_OCR2)
		return (s.width == p->width && s.height == p->height) ||
		       error_set(err, ERROR_UNSUPPORTED,
		                 "a picture of %u x %u pixels is not resized, and the model takes pictures of %u x %u",
		                 s.width, s.height, p->width, p->height);
	uint32_t side = p->patch * (p->kind == PROCESSOR_LFM2_VL || p->kind == PROCESSOR_CLIP ? 1 : p->merge);
	if (p->kind == PROCESSOR_CLIP || (s.width % side == 0 && s.height % side == 0))
		return true;
	return error_set(err, ERROR_UNSUPPORTED,
	                 "a picture of %u x %u pixels is not resized, and its sides are no multiples of %u", s.width,
	                 s.height, side);
}

static bool part_fill(const struct image_processor *p, struct size s, struct image_part *part, struct error *err)
{
	if (!part_fits(p, s, err))
		return false;
	part->width = s.width;
	part->height = s.height;
	part->columns = s.width / p->patch;
	part->rows = s.height / p->patch;
	part->n_values = (size_t)s.width * s.height * 3 * p->frames;
	part->token_columns = up(part->columns, p->merge);
	part->tokens = part->token_columns * up(part->rows, p->merge) + p->class_token;
	if (part->tokens == 0)
		return error_set(err, ERROR_UNSUPPORTED, "a picture of %u x %u pixels has no patch of %u x %u", s.width,
		                 s.height, p->patch, p->patch);
	return true;
}

static bool plan_parts(const struct image_processor *p, const struct steps *s, struct processed_image *out,
                       struct error *err)
{
	uint64_t tiles = (uint64_t)s->grid.width * s->grid.height;
	out->layout = layout_of(p);
	out->patch = p->patch;
	out->merge = p->merge;
	out->frames = p->frames;
	if (tiles >= PARTS_MAX)
		return error_set(err, ERROR_UNSUPPORTED, "%u x %u tiles; fewer than %d are expected", s->grid.width,
		                 s->grid.height, PARTS_MAX);
	out->n_parts = (uint32_t)tiles + (s->whole.width > 0);
	out->parts = calloc(out->n_parts, sizeof *out->parts);
	if (!out->parts)
		return error_set(err, ERROR_MEMORY, "no memory for %u parts of a picture", out->n_parts);
	out->tile_rows = tiles > 1 ? s->grid.height : 0;
	out->tile_columns = tiles > 1 ? s->grid.width : 0;
	for (uint32_t k = 0; k < out->n_parts; k++) {
		struct image_part *part = &out->parts[k];
		if (!part_fill(p, k < tiles ? s->part : s->whole, part, err))
			return false;
		part->is_tile = k < tiles && tiles > 1;
		part->tile_row = part->is_tile ? k / s->grid.width : 0;
		part->tile_column = part->is_tile ? k % s->grid.width : 0;
		out->tokens += part->tokens;
		out->n_values += part->n_values;
	}
	return true;
}

/* ---- segments of the prompt */

static bool segment_add(struct processed_image *out, struct prompt_segment **segment, struct error *err)
{
	if (out->n_segments % 16 == 0) {
		struct prompt_segment *more = realloc(out->segments, (out->n_segments + 16) * sizeof *more);
		if (!more)
			return error_set(err, ERROR_MEMORY, "no memory for a picture's tokens");
		out->segments = more;
	}
	*segment = &out->segments[out->n_segments++];
	memset(*segment, 0, sizeof **segment);
	return true;
}

/* Texts that follow each other are one segment, as the tokenizer must see them together. */
static bool add_text(struct processed_image *out, const char *text, struct error *err)
{
	struct prompt_segment *segment = out->n_segments ? &out->segments[out->n_segments - 1] : NULL;
	if (!text[0])
		return true;
	if ((!segment || segment->n > 0) && !segment_add(out, &segment, err))
		return false;
	size_t n = strlen(segment->text);
	if (n + strlen(text) >= sizeof segment->text)
		return segment_add(out, &segment, err) &&
		       snprintf(segment->text, sizeof segment->text, "%s", text) >= 0;
	memcpy(segment->text + n, text, strlen(text) + 1);
	return true;
}

static bool add_features(struct processed_image *out, uint32_t part, uint32_t first, uint32_t n, struct error *err)
{
	struct prompt_segment *segment;
	if (!segment_add(out, &segment, err))
		return false;
	segment->part = part;
	segment->first = first;
	segment->n = n;
	return true;
}

static bool add_part(struct processed_image *out, uint32_t part, struct error *err)
{
	return add_features(out, part, 0, out->parts[part].tokens, err);
}

static bool segments_pixtral(const struct image_processor *p, struct processed_image *out, struct error *err)
{
	const struct image_part *part = &out->parts[0];
	for (uint32_t at = 0; at < part->tokens; at += part->token_columns)
		if (!add_features(out, 0, at, part->token_columns, err) ||
		    !add_text(out, at + part->token_columns < part->tokens ? p->row_break : p->end, err))
			return false;
	return true;
}

/* A mark before each tile, which says where it lies; a line's end behind each row. */
static bool segments_idefics3(const struct image_processor *p, struct processed_image *out, struct error *err)
{
	char mark[PROCESSOR_TEXT + 24];
	for (uint32_t k = 0; k < out->n_parts; k++) {
		const struct image_part *part = &out->parts[k];
		if (part->is_tile)
			snprintf(mark, sizeof mark, "%s<row_%u_col_%u>", p->begin, part->tile_row + 1,
			         part->tile_column + 1);
		else
			snprintf(mark, sizeof mark, "%s%s<global-img>", k > 0 ? "\n" : "", p->begin);
		if (!add_text(out, mark, err) || !add_part(out, k, err))
			return false;
		if (part->is_tile && part->tile_column + 1 == out->tile_columns && !add_text(out, "\n", err))
			return false;
	}
	return add_text(out, p->end, err);
}

static bool segments_plain(const struct image_processor *p, struct processed_image *out, struct error *err)
{
	char mark[48];
	if (!add_text(out, p->begin, err))
		return false;
	for (uint32_t k = 0; k < out->n_parts; k++) {
		const struct image_part *part = &out->parts[k];
		if (p->kind == PROCESSOR_LFM2_VL && out->n_parts > 1) {
			snprintf(mark, sizeof mark, "<|img_row_%u_col_%u|>", part->tile_row + 1, part->tile_column + 1);
			if (!add_text(out, part->is_tile ? mark : "<|img_thumbnail|>", err))
				return false;
		}
		if (!add_part(out, k, err))
			return false;
	}
	return add_text(out, p->end, err);
}

bool processor_plan(const struct image_processor *p, uint32_t width, uint32_t height, struct processed_image *out,
                    struct error *err)
{
	struct steps steps;
	memset(out, 0, sizeof *out);
	if (width == 0 || height == 0 || width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE)
		return error_set(err, ERROR_ARGUMENT, "a picture of %u x %u pixels; sides of 1 to %d are expected",
		                 width, height, PICTURE_MAX_SIDE);
	out->width = width;
	out->height = height;
	bool ok = steps_plan(p, size_make(width, height), &steps, err) && plan_parts(p, &steps, out, err);
	ok = ok && (p->kind == PROCESSOR_PIXTRAL    ? segments_pixtral(p, out, err)
	            : p->kind == PROCESSOR_IDEFICS3 ? segments_idefics3(p, out, err)
	                                            : segments_plain(p, out, err));
	if (!ok)
		processed_image_free(out);
	return ok;
}

void processed_image_free(struct processed_image *image)
{
	free(image->parts);
	free(image->values);
	free(image->segments);
	memset(image, 0, sizeof *image);
}
