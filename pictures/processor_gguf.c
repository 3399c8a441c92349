/* pictures/processor_gguf.c - image processors of llama.cpp's --mmproj files.
 *
 * Owns: which class a projector's type belongs to, and its keys. These files have less than a folder: what they leave
 * out is the class's default, or what the published folders of that projector have (limits of Qwen's pictures).
 */
#include <stdio.h>
#include <string.h>

#include "loaders/files/gguf.h"
#include "pictures/processor_kinds.h"

enum { MAX_SIDE = 16384, MAX_PATCH = 1024, MAX_MERGE = 32, MAX_TILES = 256 };

static const struct projector {
	const char *type, *name;         /* the class */
	uint32_t min_tokens, max_tokens; /* of a picture: Qwen's least and most pixels */
	const char *merge_key;
	uint32_t merge;
} projectors[] = {
	{ "qwen2vl_merger", "Qwen2VLImageProcessor", 4, 16384, "clip.vision.spatial_merge_size", 2 },
	{ "qwen2.5vl_merger", "Qwen2VLImageProcessor", 4, 16384, "clip.vision.spatial_merge_size", 2 },
	{ "qwen3vl_merger", "Qwen2VLImageProcessor", 64, 16384, "clip.vision.spatial_merge_size", 2 },
	{ "gemma3", "Gemma3ImageProcessor", 0, 0, "clip.vision.projector.scale_factor", 4 },
	{ "gemma4v", "Gemma4ImageProcessor", 0, 0, "clip.vision.projector.scale_factor", 3 },
	{ "idefics3", "Idefics3ImageProcessor", 0, 0, "clip.vision.projector.scale_factor", 4 },
	{ "internvl", "GotOcr2ImageProcessor", 0, 0, "clip.vision.projector.scale_factor", 2 },
	{ "mlp", "CLIPImageProcessor", 0, 0, NULL, 1 },
	{ "pixtral", "PixtralImageProcessor", 0, 0, "clip.vision.spatial_merge_size", 1 },
	{ "lfm2", "Lfm2VlImageProcessor", 0, 0, "clip.vision.projector.scale_factor", 2 },
};

/* A number in its range; *out stays where the key is not there and need not be. */
static bool read_u32(const struct gguf *g, const char *key, uint32_t max, bool needed, uint32_t *out, struct error *err)
{
	uint64_t v = 0;
	bool found = false;
	if (!gguf_u64(g, key, &v, &found, err))
		return false;
	if (!found)
		return !needed || error_set(err, ERROR_FORMAT, "%s: %s is not there", g->path, key);
	if (v < 1 || v > max)
		return error_set(err, ERROR_FORMAT, "%s: %s is %llu; 1 to %u is expected", g->path, key,
		                 (unsigned long long)v, max);
	*out = (uint32_t)v;
	return true;
}

static bool read_three(const struct gguf *g, const char *key, double out[3], struct error *err)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	if (!kv)
		return true;
	if (kv->type != GGUF_ARRAY || (kv->item != GGUF_F32 && kv->item != GGUF_F64) || kv->count != 3)
		return error_set(err, ERROR_FORMAT, "%s: %s is no array of three numbers", g->path, key);
	for (uint64_t k = 0; k < 3; k++) {
		out[k] = gguf_item_float(kv, k);
		if (!(out[k] >= -1e6 && out[k] <= 1e6))
			return error_set(err, ERROR_FORMAT, "%s: %s has %g; a number from -1e+06 to 1e+06 is expected",
			                 g->path, key, out[k]);
	}
	return true;
}

static const struct projector *find_projector(const struct gguf *g, struct error *err)
{
	struct gguf_str type = { NULL, 0 };
	bool found = false;
	char quoted[60];
	if (!gguf_string(g, "clip.vision.projector_type", &type, &found, err) ||
	    (!found && !gguf_string(g, "clip.projector_type", &type, &found, err)))
		return NULL;
	for (size_t k = 0; found && k < sizeof projectors / sizeof *projectors; k++)
		if (type.n == strlen(projectors[k].type) && memcmp(type.p, projectors[k].type, type.n) == 0)
			return &projectors[k];
	error_set(err, ERROR_UNSUPPORTED,
	          "%s: clip.projector_type is %s; qwen2vl_merger, qwen2.5vl_merger, qwen3vl_merger, gemma3, gemma4v, "
	          "idefics3, "
	          "internvl, mlp, pixtral or lfm2 is expected",
	          g->path, found ? error_quote(quoted, sizeof quoted, type.p, type.n) : "not there");
	return NULL;
}

/* The tower's size as the class has it: of a tile, of a picture, or the longest edge. */
static bool take_size(struct image_processor *p, const struct gguf *g, struct error *err)
{
	uint32_t size = 0;
	if (p->kind == PROCESSOR_QWEN2_VL || p->kind == PROCESSOR_GEMMA4 || p->kind == PROCESSOR_LFM2_VL)
		return true;
	if (!read_u32(g, "clip.vision.image_size", MAX_SIDE, true, &size, err))
		return false;
	if (p->kind == PROCESSOR_PIXTRAL) {
		p->longest = size;
	} else if (p->kind == PROCESSOR_CLIP) {
		p->shortest = p->crop_height = p->crop_width = size;
	} else {
		p->height = p->width = size;
	}
	if (p->kind == PROCESSOR_IDEFICS3) {
		p->longest = 4 * size;
		return read_u32(g, "clip.vision.preproc_image_size", MAX_SIDE, false, &p->longest, err);
	}
	return true;
}

bool processor_read_gguf(struct image_processor *p, const struct gguf *g, struct error *err)
{
	struct error own = { ERROR_NONE, "" };
	if (!err)
		err = &own;
	memset(p, 0, sizeof *p);
	const struct projector *projector = find_projector(g, err);
	if (!projector)
		return false;
	bool ok = processor_class(p, projector->name);
	p->merge = projector->merge;
	p->split = p->split || p->kind == PROCESSOR_GOT_OCR2;
	ok = ok && read_u32(g, "clip.vision.patch_size", MAX_PATCH, true, &p->patch, err) && take_size(p, g, err) &&
	     read_three(g, "clip.vision.image_mean", p->mean, err) &&
	     read_three(g, "clip.vision.image_std", p->std, err) &&
	     (!projector->merge_key || read_u32(g, projector->merge_key, MAX_MERGE, false, &p->merge, err));
	if (p->kind == PROCESSOR_GOT_OCR2 || p->kind == PROCESSOR_LFM2_VL)
		ok = ok && read_u32(g, "clip.vision.preproc_min_tiles", MAX_TILES, false, &p->min_tiles, err) &&
		     read_u32(g, "clip.vision.preproc_max_tiles", MAX_TILES, false, &p->max_tiles, err);
	if (ok && projector->max_tokens > 0) {
		uint64_t token = (uint64_t)p->patch * p->merge * p->patch * p->merge;
		p->min_pixels = projector->min_tokens * token;
		p->max_pixels = projector->max_tokens * token;
	}
	ok = ok && processor_check(p, g->path, err);
	if (!ok)
		memset(p, 0, sizeof *p);
	return ok;
}
