/* pictures/processor_read.c - image processors of folders as transformers writes them.
 *
 * Owns: which file says what. preprocessor_config.json has the image processor's fields; processor_config.json may have
 * them in "image_processor", as newer versions write it, and then counts first; config.json has the tower's sizes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_read.h"
#include "loaders/files/file.h"
#include "pictures/fields.h"
#include "pictures/processor_kinds.h"

enum { MAX_SIDE = 16384, MAX_PATCH = 1024, MAX_MERGE = 32, MAX_TILES = 256, MAX_TOKENS = 1 << 20 };

struct reading {
	struct image_processor *p;
	bool ok;
	struct fields image, processor, config, vision; /* vision: config.json's vision_config */
	char file[3][300];
	json_t *tree[3];
};

/* ---- which class */

static bool read_class(struct reading *r)
{
	char name[100] = "";
	if (!fields_text(&r->image, "image_processor_type", name, sizeof name))
		fields_text(&r->image, "feature_extractor_type", name, sizeof name);
	if (!r->ok)
		return false;
	if (!name[0] || !processor_class(r->p, name)) {
		char expected[200];
		snprintf(expected, sizeof expected, "%s is expected", processor_classes());
		return field_refuse(&r->image, "image_processor_type", field(&r->image, "image_processor_type"),
		                    expected);
	}
	return true;
}

/* ---- the image processor's own fields */

static void read_common(struct reading *r)
{
	const struct fields *f = &r->image;
	struct image_processor *p = r->p;
	uint32_t resample = p->resample;
	field_bool(f, "do_resize", &p->do_resize);
	field_bool(f, "do_rescale", &p->do_rescale);
	field_bool(f, "do_normalize", &p->do_normalize);
	if (field_u32(f, "resample", 0, RESAMPLE_COUNT - 1, &resample))
		p->resample = (enum resample)resample;
	field_real(f, "rescale_factor", 1e-9, 1e9, &p->rescale);
	field_three(f, "image_mean", -1e6, 1e6, p->mean);
	field_three(f, "image_std", -1e6, 1e6, p->std);
}

/* "size" as pixels: the least and the most. Older files have them by other names, which count first. */
static void read_pixels(struct reading *r)
{
	struct fields size = fields_object(&r->image, "size", "size.");
	field_count(&size, "shortest_edge", 1, 1u << 30, &r->p->min_pixels);
	field_count(&size, "longest_edge", 1, 1u << 30, &r->p->max_pixels);
	field_count(&size, "min_pixels", 1, 1u << 30, &r->p->min_pixels);
	field_count(&size, "max_pixels", 1, 1u << 30, &r->p->max_pixels);
	field_count(&r->image, "min_pixels", 1, 1u << 30, &r->p->min_pixels);
	field_count(&r->image, "max_pixels", 1, 1u << 30, &r->p->max_pixels);
	field_u32(&r->image, "patch_size", 1, MAX_PATCH, &r->p->patch);
	field_u32(&r->image, "temporal_patch_size", 1, 16, &r->p->frames);
	field_u32(&r->image, "merge_size", 1, MAX_MERGE, &r->p->merge);
}

/* "size" as one size. */
static void read_size(struct reading *r) { field_side(&r->image, "size", MAX_SIDE, &r->p->height, &r->p->width); }

static void read_idefics3(struct reading *r)
{
	struct fields size = fields_object(&r->image, "size", "size.");
	struct fields tile = fields_object(&r->image, "max_image_size", "max_image_size.");
	field_u32(&size, "longest_edge", 1, MAX_SIDE, &r->p->longest);
	if (field_u32(&tile, "longest_edge", 1, MAX_SIDE, &r->p->width))
		r->p->height = r->p->width;
	field_bool(&r->image, "do_image_splitting", &r->p->split);
}

/* InternVLProcessor always asks for tiles, whatever the file has. */
static void read_got_ocr2(struct reading *r)
{
	char by[100] = "", type[100] = "";
	read_size(r);
	field_bool(&r->image, "crop_to_patches", &r->p->split);
	field_u32(&r->image, "min_patches", 1, MAX_TILES, &r->p->min_tiles);
	field_u32(&r->image, "max_patches", 1, MAX_TILES, &r->p->max_tiles);
	if (!fields_text(&r->processor, "processor_class", by, sizeof by))
		fields_text(&r->image, "processor_class", by, sizeof by);
	fields_text(&r->config, "model_type", type, sizeof type);
	r->p->split = r->p->split || strcmp(by, "InternVLProcessor") == 0 || strcmp(type, "internvl") == 0;
}

/* A lone number is the shortest edge. */
static void read_clip(struct reading *r)
{
	struct image_processor *p = r->p;
	const json_t *size = field(&r->image, "size");
	if (size && json_is_object(size) && !json_object_get(size, "height")) {
		struct fields edges = fields_object(&r->image, "size", "size.");
		field_u32(&edges, "shortest_edge", 1, MAX_SIDE, &p->shortest);
	} else if (size && json_is_integer(size)) {
		field_u32(&r->image, "size", 1, MAX_SIDE, &p->shortest);
	} else if (size) {
		read_size(r);
		p->shortest = 0;
	}
	field_bool(&r->image, "do_center_crop", &p->do_center_crop);
	field_side(&r->image, "crop_size", MAX_SIDE, &p->crop_height, &p->crop_width);
	if (p->do_center_crop && !p->crop_height && r->ok)
		field_refuse(&r->image, "crop_size", NULL, "do_center_crop needs height and width");
}

static void read_pixtral(struct reading *r)
{
	struct image_processor *p = r->p;
	const json_t *size = field(&r->image, "size");
	uint32_t height = p->patch, width = p->patch;
	if (size && json_is_object(size) && !json_object_get(size, "height")) {
		struct fields edges = fields_object(&r->image, "size", "size.");
		field_u32(&edges, "longest_edge", 1, MAX_SIDE, &p->longest);
	} else if (size) {
		read_size(r);
		p->longest = 0;
	}
	field_side(&r->image, "patch_size", MAX_PATCH, &height, &width);
	if (height != width && r->ok)
		field_refuse(&r->image, "patch_size", field(&r->image, "patch_size"), "two equal sides are expected");
	p->patch = height;
}

static void read_lfm2_vl(struct reading *r)
{
	struct image_processor *p = r->p;
	field_u32(&r->image, "downsample_factor", 1, MAX_MERGE, &p->merge);
	field_bool(&r->image, "do_image_splitting", &p->split);
	field_u32(&r->image, "min_tiles", 1, MAX_TILES, &p->min_tiles);
	field_u32(&r->image, "max_tiles", 1, MAX_TILES, &p->max_tiles);
	field_bool(&r->image, "use_thumbnail", &p->thumbnail);
	field_u32(&r->image, "min_image_tokens", 1, MAX_TOKENS, &p->min_tokens);
	field_u32(&r->image, "max_image_tokens", 1, MAX_TOKENS, &p->max_tokens);
	field_u32(&r->image, "encoder_patch_size", 1, MAX_PATCH, &p->patch);
	field_real(&r->image, "max_pixels_tolerance", 0, 1e6, &p->tolerance);
	if (field_u32(&r->image, "tile_size", 1, MAX_SIDE, &p->width))
		p->height = p->width;
	p->do_resize = true; /* the class resizes always */
	if (p->max_tiles == 1)
		p->split = false;
}

static void read_gemma4(struct reading *r)
{
	field_u32(&r->image, "patch_size", 1, MAX_PATCH, &r->p->patch);
	field_u32(&r->image, "pooling_kernel_size", 1, MAX_MERGE, &r->p->merge);
	field_u32(&r->image, "max_soft_tokens", 1, MAX_TOKENS, &r->p->max_tokens);
}

/* ---- what the tower's sizes make of a part */

/* The patch of config.json's tower, which classes without a field for it take; each tower has its own default. */
static void read_tower_patch(struct reading *r)
{
	static const struct {
		const char *type;
		uint32_t patch;
	} defaults[] = { { "clip_vision_model", 32 },
		         { "siglip_vision_model", 16 },
		         { "internvl_vision", 16 },
		         { "idefics3_vision", 32 },
		         { "smolvlm_vision", 32 } };
	char type[60] = "";
	uint32_t height = r->p->patch, width;
	if (fields_text(&r->vision, "model_type", type, sizeof type))
		for (size_t k = 0; k < sizeof defaults / sizeof *defaults; k++)
			if (strcmp(type, defaults[k].type) == 0)
				height = defaults[k].patch;
	width = height;
	field_side(&r->vision, "patch_size", MAX_PATCH, &height, &width);
	if (height != width && r->ok)
		field_refuse(&r->vision, "patch_size", field(&r->vision, "patch_size"), "two equal sides are expected");
	r->p->patch = height;
}

/* Gemma 3 pools to a square of mm_tokens_per_image features. */
static void read_gemma3_pool(struct reading *r)
{
	uint32_t tokens = 256, side = 1;
	field_u32(&r->config, "mm_tokens_per_image", 1, MAX_TOKENS, &tokens);
	while (side * side < tokens)
		side++;
	uint32_t patches = r->p->width / r->p->patch;
	if (r->ok && (side * side != tokens || r->p->width != r->p->height || patches % side != 0 || patches == 0)) {
		char expected[120];
		snprintf(expected, sizeof expected, "a square that divides %u x %u patches of a side of %u is expected",
		         patches, r->p->height / r->p->patch, r->p->patch);
		field_refuse(&r->config, "mm_tokens_per_image", field(&r->config, "mm_tokens_per_image"), expected);
		return;
	}
	if (r->ok)
		r->p->merge = patches / side;
}

static void read_tower(struct reading *r)
{
	struct image_processor *p = r->p;
	char strategy[30] = "default";
	double ratio = 0.5;
	if (p->kind == PROCESSOR_PIXTRAL) {
		field_u32(&r->config, "spatial_merge_size", 1, MAX_MERGE, &p->merge);
		field_u32(&r->vision, "patch_size", 1, MAX_PATCH, &p->patch);
	}
	if (p->kind != PROCESSOR_GEMMA3 && p->kind != PROCESSOR_IDEFICS3 && p->kind != PROCESSOR_GOT_OCR2 &&
	    p->kind != PROCESSOR_CLIP)
		return;
	read_tower_patch(r);
	if (p->kind == PROCESSOR_GEMMA3)
		read_gemma3_pool(r);
	if (p->kind == PROCESSOR_IDEFICS3)
		field_u32(&r->config, "scale_factor", 1, MAX_MERGE, &p->merge);
	if (p->kind == PROCESSOR_GOT_OCR2 && field_real(&r->config, "downsample_ratio", 1.0 / MAX_MERGE, 1, &ratio))
		p->merge = (uint32_t)(1 / ratio + 0.5);
	if (p->kind == PROCESSOR_CLIP &&
	    fields_text(&r->config, "vision_feature_select_strategy", strategy, sizeof strategy)) {
		if (strcmp(strategy, "default") != 0 && strcmp(strategy, "full") != 0)
			field_refuse(&r->config, "vision_feature_select_strategy",
			             field(&r->config, "vision_feature_select_strategy"),
			             "default or full is expected");
		p->class_token = strcmp(strategy, "full") == 0;
	}
}

/* The number of features of a part of one size that processor_config.json has, beside the tower's. */
static void check_tokens(struct reading *r)
{
	struct image_processor *p = r->p;
	const char *name = field(&r->processor, "image_seq_len") ? "image_seq_len" : "image_seq_length";
	uint32_t side = p->patch * p->merge, said = 0, tokens = p->height / side * (p->width / side);
	if (!r->ok || (p->kind != PROCESSOR_GEMMA3 && p->kind != PROCESSOR_IDEFICS3 && p->kind != PROCESSOR_GOT_OCR2))
		return;
	if (field_u32(&r->processor, name, 1, MAX_TOKENS, &said) && said != tokens) {
		char expected[120];
		snprintf(expected, sizeof expected, "%u is expected, for %u x %u pixels with tokens of %u x %u", tokens,
		         p->width, p->height, side, side);
		field_refuse(&r->processor, name, field(&r->processor, name), expected);
	}
}

/* ---- all of it */

static void read_processor(struct reading *r)
{
	struct image_processor *p = r->p;
	if (p->kind == PROCESSOR_PIXTRAL) {
		field_u32(&r->processor, "patch_size", 1, MAX_PATCH, &p->patch);
		field_u32(&r->processor, "spatial_merge_size", 1, MAX_MERGE, &p->merge);
		fields_text(&r->processor, "image_break_token", p->row_break, sizeof p->row_break);
		fields_text(&r->processor, "image_end_token", p->end, sizeof p->end);
	}
	if (p->kind == PROCESSOR_PIXTRAL || p->kind == PROCESSOR_CLIP)
		fields_text(&r->processor, "image_token", p->placeholder, sizeof p->placeholder);
	if (p->kind == PROCESSOR_CLIP)
		field_u32(&r->processor, "patch_size", 1, MAX_PATCH, &p->patch);
}

static void read_fields(struct reading *r)
{
	static void (*const own[PROCESSOR_KINDS])(struct reading *) = {
		[PROCESSOR_QWEN2_VL] = read_pixels,   [PROCESSOR_GEMMA3] = read_size,
		[PROCESSOR_GEMMA4] = read_gemma4,     [PROCESSOR_IDEFICS3] = read_idefics3,
		[PROCESSOR_GOT_OCR2] = read_got_ocr2, [PROCESSOR_CLIP] = read_clip,
		[PROCESSOR_PIXTRAL] = read_pixtral,   [PROCESSOR_LFM2_VL] = read_lfm2_vl,
	};
	if (!read_class(r))
		return;
	read_common(r);
	own[r->p->kind](r);
	read_tower(r);
	read_processor(r);
	check_tokens(r);
}

static bool parse(struct reading *r, int k, const char *folder, const char *file, const char *text, size_t n,
                  struct fields *f, struct error *err)
{
	char label[200];
	snprintf(r->file[k], sizeof r->file[k], "%s/%s", error_quote(label, sizeof label, folder, strlen(folder)),
	         file);
	*f = (struct fields){ .o = NULL, .file = r->file[k], .in = "", .ok = &r->ok, .err = err };
	if (!text)
		return true;
	r->tree[k] = json_read(text, n, JSON_MAX_CONFIG, r->file[k], err);
	if (!r->tree[k])
		return false;
	if (!json_is_object(r->tree[k]))
		return error_set(err, ERROR_FORMAT, "%s is %s; an object is expected", r->file[k],
		                 json_kind(r->tree[k]));
	f->o = r->tree[k];
	return true;
}

bool processor_read(struct image_processor *p, const struct processor_files *files, struct error *err)
{
	struct error own = { ERROR_NONE, "" };
	struct reading r = { .p = p, .ok = true };
	if (!err)
		err = &own;
	memset(p, 0, sizeof *p);
	bool ok = parse(&r, 0, files->name, "preprocessor_config.json", files->preprocessor, files->n_preprocessor,
	                &r.image, err) &&
	          parse(&r, 1, files->name, "processor_config.json", files->processor, files->n_processor, &r.processor,
	                err) &&
	          parse(&r, 2, files->name, "config.json", files->config, files->n_config, &r.config, err);
	if (ok) {
		r.vision = fields_object(&r.config, "vision_config", "vision_config.");
		struct fields inside = fields_object(&r.processor, "image_processor", "image_processor.");
		if (inside.o)
			r.image = inside;
		if (!r.image.o && r.ok)
			r.ok = error_set(err, ERROR_FORMAT, "%s is not there, and %s has no image_processor", r.file[0],
			                 r.file[1]);
		read_fields(&r);
		ok = r.ok && processor_check(p, r.image.file, err);
	}
	for (int k = 0; k < 3; k++)
		json_decref(r.tree[k]);
	if (!ok)
		memset(p, 0, sizeof *p);
	return ok;
}

/* A file of the folder, or nothing where it is not there. */
static bool read_file(struct file *f, const char *folder, const char *name, struct error *err)
{
	char path[4096];
	memset(f, 0, sizeof *f);
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
		return error_set(err, ERROR_ARGUMENT, "the path of a folder has more than %zu bytes", sizeof path - 30);
	if (access(path, F_OK) != 0)
		return true;
	return file_open(f, path, err) && file_text(f, JSON_MAX_CONFIG, err);
}

bool processor_read_folder(struct image_processor *p, const char *folder, struct error *err)
{
	struct file f[3] = { 0 };
	memset(p, 0, sizeof *p);
	bool ok = read_file(&f[0], folder, "preprocessor_config.json", err) &&
	          read_file(&f[1], folder, "processor_config.json", err) &&
	          read_file(&f[2], folder, "config.json", err);
	struct processor_files files = {
		.name = folder,
		.preprocessor = (const char *)f[0].base,
		.n_preprocessor = f[0].have,
		.processor = (const char *)f[1].base,
		.n_processor = f[1].have,
		.config = (const char *)f[2].base,
		.n_config = f[2].have
	};
	ok = ok && processor_read(p, &files, err);
	for (int k = 0; k < 3; k++)
		file_close(&f[k]);
	return ok;
}
