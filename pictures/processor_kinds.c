/* pictures/processor_kinds.c - the classes of image processors. */
#include "pictures/processor_kinds.h"

#include <stdio.h>
#include <string.h>

#define CLIP_COLORS .mean = { 0.48145466, 0.4578275, 0.40821073 }, .std = { 0.26862954, 0.26130258, 0.27577711 }
#define HALF_COLORS .mean = { 0.5, 0.5, 0.5 }, .std = { 0.5, 0.5, 0.5 }
#define ALL_STEPS .do_resize = true, .do_rescale = true, .do_normalize = true, .rescale = 1.0 / 255

static const struct image_processor qwen2_vl = {
	.kind = PROCESSOR_QWEN2_VL,
	.resample = RESAMPLE_BICUBIC,
	ALL_STEPS,
	CLIP_COLORS,
	.min_pixels = 56 * 56,
	.max_pixels = 28 * 28 * 1280,
	.patch = 14,
	.merge = 2,
	.frames = 2,
	.placeholder = "<|image_pad|>",
};

static const struct image_processor gemma3 = {
	.kind = PROCESSOR_GEMMA3,
	.resample = RESAMPLE_BILINEAR,
	ALL_STEPS,
	HALF_COLORS,
	.height = 224,
	.width = 224,
	.patch = 16,
	.merge = 1,
	.frames = 1,
	.placeholder = "<start_of_image>",
	.begin = "\n\n<start_of_image>",
	.end = "<end_of_image>\n\n",
};

static const struct image_processor gemma4 = {
	.kind = PROCESSOR_GEMMA4,
	.resample = RESAMPLE_BICUBIC,
	.do_resize = true,
	.do_rescale = true,
	.do_normalize = false,
	.rescale = 1.0 / 255,
	.mean = { 0, 0, 0 },
	.std = { 1, 1, 1 },
	.patch = 16,
	.merge = 3,
	.frames = 1,
	.max_tokens = 280,
	.placeholder = "<|image|>",
	.begin = "<|image>",
	.end = "<image|>",
};

static const struct image_processor idefics3 = {
	.kind = PROCESSOR_IDEFICS3,
	.resample = RESAMPLE_LANCZOS,
	ALL_STEPS,
	HALF_COLORS,
	.split = true,
	.longest = 4 * 364,
	.height = 364,
	.width = 364,
	.patch = 32,
	.merge = 2,
	.frames = 1,
	.thumbnail = true,
	.placeholder = "<image>",
	.begin = "<fake_token_around_image>",
	.end = "<fake_token_around_image>",
};

static const struct image_processor got_ocr2 = {
	.kind = PROCESSOR_GOT_OCR2,
	.resample = RESAMPLE_BICUBIC,
	ALL_STEPS,
	CLIP_COLORS,
	.height = 384,
	.width = 384,
	.patch = 16,
	.merge = 2,
	.frames = 1,
	.min_tiles = 1,
	.max_tiles = 12,
	.thumbnail = true,
	.placeholder = "<IMG_CONTEXT>",
	.begin = "<img>",
	.end = "</img>",
};

static const struct image_processor clip = {
	.kind = PROCESSOR_CLIP,
	.resample = RESAMPLE_BICUBIC,
	ALL_STEPS,
	CLIP_COLORS,
	.do_center_crop = true,
	.shortest = 224,
	.crop_height = 224,
	.crop_width = 224,
	.patch = 32,
	.merge = 1,
	.frames = 1,
	.placeholder = "<image>",
};

static const struct image_processor siglip = {
	.kind = PROCESSOR_CLIP,
	.resample = RESAMPLE_BICUBIC,
	ALL_STEPS,
	HALF_COLORS,
	.height = 224,
	.width = 224,
	.patch = 16,
	.merge = 1,
	.frames = 1,
	.placeholder = "<image>",
};

static const struct image_processor pixtral = {
	.kind = PROCESSOR_PIXTRAL,
	.resample = RESAMPLE_BICUBIC,
	ALL_STEPS,
	CLIP_COLORS,
	.longest = 1024,
	.patch = 16,
	.merge = 1,
	.frames = 1,
	.placeholder = "[IMG]",
	.end = "[IMG_END]",
	.row_break = "[IMG_BREAK]",
};

static const struct image_processor lfm2_vl = {
	.kind = PROCESSOR_LFM2_VL,
	.resample = RESAMPLE_BILINEAR,
	ALL_STEPS,
	HALF_COLORS,
	.split = true,
	.height = 512,
	.width = 512,
	.patch = 16,
	.merge = 2,
	.frames = 1,
	.min_tiles = 2,
	.max_tiles = 10,
	.thumbnail = true,
	.min_tokens = 64,
	.max_tokens = 256,
	.tolerance = 2.0,
	.placeholder = "<image>",
	.begin = "<|image_start|>",
	.end = "<|image_end|>",
};

static const struct {
	const char *name;
	const struct image_processor *defaults;
} classes[] = {
	{ "Qwen2VLImageProcessor", &qwen2_vl }, { "Gemma3ImageProcessor", &gemma3 },
	{ "Gemma4ImageProcessor", &gemma4 },    { "Idefics3ImageProcessor", &idefics3 },
	{ "SmolVLMImageProcessor", &idefics3 }, { "GotOcr2ImageProcessor", &got_ocr2 },
	{ "CLIPImageProcessor", &clip },        { "CLIPFeatureExtractor", &clip },
	{ "SiglipImageProcessor", &siglip },    { "PixtralImageProcessor", &pixtral },
	{ "Lfm2VlImageProcessor", &lfm2_vl },
};

bool processor_class(struct image_processor *p, const char *name)
{
	for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
		size_t n = strlen(classes[k].name);
		if (strncmp(name, classes[k].name, n) == 0 &&
		    (!name[n] || strcmp(name + n, "Fast") == 0 || strcmp(name + n, "Pil") == 0)) {
			*p = *classes[k].defaults;
			return true;
		}
	}
	return false;
}

const char *processor_classes(void)
{
	return "Qwen2VL, Gemma3, Gemma4, Idefics3, SmolVLM, GotOcr2, CLIP, Siglip, Pixtral or Lfm2Vl with "
	       "ImageProcessor "
	       "behind it";
}

static bool divides(const struct image_processor *p, uint32_t side) { return side % (p->patch * p->merge) == 0; }

bool processor_check(const struct image_processor *p, const char *name, struct error *err)
{
	uint32_t height = p->do_center_crop ? p->crop_height : p->height,
		 width = p->do_center_crop ? p->crop_width : p->width;
	for (int c = 0; c < 3; c++)
		if (p->do_normalize && p->std[c] == 0)
			return error_set(err, ERROR_FORMAT, "%s: image_std has a 0, by which nothing can be divided",
			                 name);
	if (p->min_tiles > p->max_tiles)
		return error_set(err, ERROR_FORMAT, "%s: at least %u and at most %u tiles are no range", name,
		                 p->min_tiles, p->max_tiles);
	if (p->min_tokens > p->max_tokens)
		return error_set(err, ERROR_FORMAT, "%s: at least %u and at most %u image tokens are no range", name,
		                 p->min_tokens, p->max_tokens);
	if (p->min_pixels > p->max_pixels)
		return error_set(err, ERROR_FORMAT, "%s: at least %llu and at most %llu pixels are no range", name,
		                 (unsigned long long)p->min_pixels, (unsigned long long)p->max_pixels);
	bool one_size = p->kind == PROCESSOR_GEMMA3 || p->kind == PROCESSOR_IDEFICS3 || p->kind == PROCESSOR_GOT_OCR2 ||
	                p->kind == PROCESSOR_LFM2_VL;
	if (one_size && (!divides(p, height) || !divides(p, width)))
		return error_set(err, ERROR_FORMAT,
		                 "%s: pictures of %u x %u pixels have no whole number of tokens of %u x %u", name,
		                 width, height, p->patch * p->merge, p->patch * p->merge);
	return true;
}
