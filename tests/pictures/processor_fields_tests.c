/* tests/pictures/processor_fields_tests.c - what each field of an image processor's files means, what is there without
 * it, and how a wrong one is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/pictures/processor_tests.h"

/* ---- a processor as words, so that two can be compared field by field */

enum { WORDS = 40 };
struct words {
	unsigned n;
	char name[WORDS][24], value[WORDS][96];
};

static void put(struct words *w, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(struct words *w, const char *name, const char *format, ...)
{
	va_list args;
	assert_true(w->n < WORDS);
	snprintf(w->name[w->n], sizeof w->name[0], "%s", name);
	va_start(args, format);
	vsnprintf(w->value[w->n++], sizeof w->value[0], format, args);
	va_end(args);
}

static void words_of(struct words *w, const struct image_processor *p)
{
	w->n = 0;
	put(w, "kind", "%d", p->kind);
	put(w, "steps", "%d%d%d%d", p->do_resize, p->do_rescale, p->do_normalize, p->do_center_crop);
	put(w, "split", "%d", p->split);
	put(w, "resample", "%d", p->resample);
	put(w, "rescale", "%.9g", p->rescale);
	put(w, "mean", "%.9g,%.9g,%.9g", p->mean[0], p->mean[1], p->mean[2]);
	put(w, "std", "%.9g,%.9g,%.9g", p->std[0], p->std[1], p->std[2]);
	put(w, "size", "%ux%u", p->width, p->height);
	put(w, "shortest", "%u", p->shortest);
	put(w, "longest", "%u", p->longest);
	put(w, "pixels", "%llu-%llu", (unsigned long long)p->min_pixels, (unsigned long long)p->max_pixels);
	put(w, "crop", "%ux%u", p->crop_width, p->crop_height);
	put(w, "patch", "%u", p->patch);
	put(w, "merge", "%u", p->merge);
	put(w, "frames", "%u", p->frames);
	put(w, "tiles", "%u-%u", p->min_tiles, p->max_tiles);
	put(w, "thumbnail", "%d", p->thumbnail);
	put(w, "tokens", "%u-%u", p->min_tokens, p->max_tokens);
	put(w, "tolerance", "%.9g", p->tolerance);
	put(w, "class", "%d", p->class_token);
	put(w, "texts", "%s %s %s %s", p->placeholder, p->begin, p->end, p->row_break);
}

/* "name=value ..." of what differs; all where `from` is NULL. */
static void difference(char *out, size_t cap, const struct image_processor *from, const struct image_processor *p)
{
	struct words a, b;
	words_of(&b, p);
	if (from)
		words_of(&a, from);
	out[0] = 0;
	for (unsigned k = 0; k < b.n; k++)
		if (!from || strcmp(a.value[k], b.value[k]) != 0)
			snprintf(out + strlen(out), cap - strlen(out), "%s%s=%s", out[0] ? " " : "", b.name[k],
			         b.value[k]);
}

bool read_texts(struct image_processor *p, const char *image, const char *config, const char *processor,
                struct error *err)
{
	struct processor_files files = {
		.name = "m",
		.preprocessor = image,
		.n_preprocessor = image ? strlen(image) : 0,
		.processor = processor,
		.n_processor = processor ? strlen(processor) : 0,
		.config = config,
		.n_config = config ? strlen(config) : 0
	};
	return processor_read(p, &files, err);
}

/* ---- defaults */

static const struct {
	const char *class, *config, *all;
} defaults[] = {
	{ "Qwen2VLImageProcessor", NULL,
	  "kind=0 steps=1110 split=0 resample=3 rescale=0.00392156863 mean=0.48145466,0.4578275,0.40821073 "
	  "std=0.26862954,0.26130258,0.27577711 "
	  "size=0x0 shortest=0 longest=0 pixels=3136-1003520 crop=0x0 "
	  "patch=14 merge=2 frames=2 tiles=0-0 thumbnail=0 tokens=0-0 tolerance=0 class=0 "
	  "texts=<|image_pad|>   " },
	{ "Gemma3ImageProcessorFast", "{\"mm_tokens_per_image\": 4, \"vision_config\": {\"patch_size\": 14}}",
	  "kind=1 steps=1110 split=0 resample=2 rescale=0.00392156863 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 "
	  "size=224x224 shortest=0 longest=0 pixels=0-0 crop=0x0 "
	  "patch=14 merge=8 frames=1 tiles=0-0 thumbnail=0 tokens=0-0 tolerance=0 class=0 "
	  "texts=<start_of_image> \n\n<start_of_image> <end_of_image>\n\n " },
	{ "Gemma4ImageProcessor", NULL,
	  "kind=2 steps=1100 split=0 resample=3 rescale=0.00392156863 mean=0,0,0 std=1,1,1 "
	  "size=0x0 shortest=0 longest=0 pixels=0-0 crop=0x0 "
	  "patch=16 merge=3 frames=1 tiles=0-0 thumbnail=0 tokens=0-280 tolerance=0 class=0 "
	  "texts=<|image|> <|image> <image|> " },
	{ "Idefics3ImageProcessor", "{\"vision_config\": {\"patch_size\": 14}}",
	  "kind=3 steps=1110 split=1 resample=1 rescale=0.00392156863 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 "
	  "size=364x364 shortest=0 longest=1456 pixels=0-0 crop=0x0 "
	  "patch=14 merge=2 frames=1 tiles=0-0 thumbnail=1 tokens=0-0 tolerance=0 class=0 "
	  "texts=<image> <fake_token_around_image> <fake_token_around_image> " },
	{ "GotOcr2ImageProcessorPil", NULL,
	  "kind=4 steps=1110 split=0 resample=3 rescale=0.00392156863 mean=0.48145466,0.4578275,0.40821073 "
	  "std=0.26862954,0.26130258,0.27577711 "
	  "size=384x384 shortest=0 longest=0 pixels=0-0 crop=0x0 "
	  "patch=16 merge=2 frames=1 tiles=1-12 thumbnail=1 tokens=0-0 tolerance=0 class=0 "
	  "texts=<IMG_CONTEXT> <img> </img> " },
	{ "CLIPImageProcessor", "{\"vision_config\": {\"model_type\": \"clip_vision_model\"}}",
	  "kind=5 steps=1111 split=0 resample=3 rescale=0.00392156863 mean=0.48145466,0.4578275,0.40821073 "
	  "std=0.26862954,0.26130258,0.27577711 "
	  "size=0x0 shortest=224 longest=0 pixels=0-0 crop=224x224 "
	  "patch=32 merge=1 frames=1 tiles=0-0 thumbnail=0 tokens=0-0 tolerance=0 class=0 "
	  "texts=<image>   " },
	{ "SiglipImageProcessor", "{\"vision_config\": {\"model_type\": \"siglip_vision_model\"}}",
	  "kind=5 steps=1110 split=0 resample=3 rescale=0.00392156863 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 "
	  "size=224x224 shortest=0 longest=0 pixels=0-0 crop=0x0 "
	  "patch=16 merge=1 frames=1 tiles=0-0 thumbnail=0 tokens=0-0 tolerance=0 class=0 "
	  "texts=<image>   " },
	{ "PixtralImageProcessor", NULL,
	  "kind=6 steps=1110 split=0 resample=3 rescale=0.00392156863 mean=0.48145466,0.4578275,0.40821073 "
	  "std=0.26862954,0.26130258,0.27577711 "
	  "size=0x0 shortest=0 longest=1024 pixels=0-0 crop=0x0 "
	  "patch=16 merge=1 frames=1 tiles=0-0 thumbnail=0 tokens=0-0 tolerance=0 class=0 "
	  "texts=[IMG]  [IMG_END] [IMG_BREAK]" },
	{ "Lfm2VlImageProcessor", NULL,
	  "kind=7 steps=1110 split=1 resample=2 rescale=0.00392156863 mean=0.5,0.5,0.5 std=0.5,0.5,0.5 "
	  "size=512x512 shortest=0 longest=0 pixels=0-0 crop=0x0 "
	  "patch=16 merge=2 frames=1 tiles=2-10 thumbnail=1 tokens=64-256 tolerance=2 class=0 "
	  "texts=<image> <|image_start|> <|image_end|> " },
};

void test_defaults(void **state)
{
	for (size_t k = 0; k < sizeof defaults / sizeof *defaults; k++) {
		char image[100], said[1000];
		struct error err = { 0 };
		struct image_processor p;
		snprintf(image, sizeof image, "{\"image_processor_type\": \"%s\", \"size\": null}", defaults[k].class);
		if (!read_texts(&p, image, defaults[k].config, NULL, &err))
			fail_msg("%s: %s", defaults[k].class, err.text);
		difference(said, sizeof said, NULL, &p);
		assert_string_equal(said, defaults[k].all);
	}
}

/* ---- each field by itself */

#define QWEN "Qwen2VLImageProcessor"
#define SMOL "SmolVLMImageProcessor"
#define GOT "GotOcr2ImageProcessor"
#define LFM "Lfm2VlImageProcessor"
#define TOWER14 "{\"vision_config\": {\"patch_size\": 14}}"

static const struct {
	const char *class, *member, *config, *processor, *differs;
} fields[] = {
	{ QWEN, "\"do_resize\": false", NULL, NULL, "steps=0110" },
	{ QWEN, "\"do_rescale\": false", NULL, NULL, "steps=1010" },
	{ QWEN, "\"do_normalize\": false", NULL, NULL, "steps=1100" },
	{ QWEN, "\"resample\": 1", NULL, NULL, "resample=1" },
	{ QWEN, "\"rescale_factor\": 0.5", NULL, NULL, "rescale=0.5" },
	{ QWEN, "\"image_mean\": [0.25, 0, -1]", NULL, NULL, "mean=0.25,0,-1" },
	{ QWEN, "\"image_std\": 2", NULL, NULL, "std=2,2,2" },
	{ QWEN, "\"image_std\": [3]", NULL, NULL, "std=3,3,3" },
	{ QWEN, "\"size\": {\"shortest_edge\": 9, \"longest_edge\": 99}", NULL, NULL, "pixels=9-99" },
	{ QWEN, "\"size\": {\"min_pixels\": 8, \"max_pixels\": 88}", NULL, NULL, "pixels=8-88" },
	{ QWEN, "\"min_pixels\": 7, \"max_pixels\": 77, \"size\": {\"shortest_edge\": 9, \"longest_edge\": 99}", NULL,
	  NULL, "pixels=7-77" },
	{ QWEN, "\"patch_size\": 16, \"merge_size\": 3, \"temporal_patch_size\": 1", NULL, NULL,
	  "patch=16 merge=3 frames=1" },
	{ QWEN, "\"patch_size\": null, \"do_resize\": null", NULL, NULL, "" },
	{ "Gemma4ImageProcessor", "\"patch_size\": 8, \"pooling_kernel_size\": 2, \"max_soft_tokens\": 70", NULL, NULL,
	  "patch=8 merge=2 tokens=0-70" },
	{ SMOL,
	  "\"max_image_size\": {\"longest_edge\": 56}, \"size\": {\"longest_edge\": 112}, \"do_image_splitting\": "
	  "false",
	  TOWER14, NULL, "split=0 size=56x56 longest=112 patch=14" },
	{ SMOL, "\"max_image_size\": {\"longest_edge\": 512}",
	  "{\"scale_factor\": 4, \"vision_config\": {\"patch_size\": 16}}", "{\"image_seq_len\": 64}",
	  "size=512x512 patch=16 merge=4" },
	{ GOT,
	  "\"crop_to_patches\": true, \"min_patches\": 2, \"max_patches\": 5, \"size\": {\"height\": 64, \"width\": "
	  "96}",
	  NULL, NULL, "split=1 size=96x64 tiles=2-5" },
	{ GOT, "\"crop_to_patches\": false, \"processor_class\": \"InternVLProcessor\"", NULL, NULL, "split=1" },
	{ GOT, "\"crop_to_patches\": false", "{\"model_type\": \"internvl\"}", NULL, "split=1" },
	{ GOT, "\"crop_to_patches\": false", NULL, "{\"processor_class\": \"InternVLProcessor\"}", "split=1" },
	{ GOT, "\"size\": {\"height\": 448, \"width\": 448}",
	  "{\"downsample_ratio\": 0.25, \"vision_config\": {\"patch_size\": [14, 14]}}", "{\"image_seq_length\": 64}",
	  "size=448x448 patch=14 merge=4" },
	{ "CLIPImageProcessor", "\"size\": {\"shortest_edge\": 336}, \"crop_size\": {\"height\": 300, \"width\": 320}",
	  NULL, NULL, "shortest=336 crop=320x300" },
	{ "CLIPFeatureExtractor", "\"size\": 336, \"crop_size\": 336", NULL, NULL, "shortest=336 crop=336x336" },
	{ "CLIPImageProcessor", "\"size\": {\"height\": 64, \"width\": 96}, \"do_center_crop\": false", NULL, NULL,
	  "steps=1110 size=96x64 shortest=0" },
	{ "CLIPImageProcessor", "\"a\": 1", "{\"vision_feature_select_strategy\": \"full\"}",
	  "{\"patch_size\": 14, \"image_token\": \"<pic>\"}", "patch=14 class=1 texts=<pic>   " },
	{ "PixtralImageProcessor",
	  "\"size\": {\"longest_edge\": 1540}, \"patch_size\": {\"height\": 14, \"width\": 14}",
	  "{\"spatial_merge_size\": 2}", NULL, "longest=1540 patch=14 merge=2" },
	{ "PixtralImageProcessor", "\"size\": {\"height\": 100, \"width\": 200}, \"patch_size\": 8", NULL,
	  "{\"spatial_merge_size\": 3, \"patch_size\": 10, \"image_token\": \"[I]\", \"image_break_token\": \"[B]\", "
	  "\"image_end_token\": \"[E]\"}",
	  "size=200x100 longest=0 patch=10 merge=3 texts=[I]  [E] [B]" },
	{ LFM, "\"downsample_factor\": 4, \"do_image_splitting\": false, \"min_tiles\": 3, \"max_tiles\": 4", NULL,
	  NULL, "split=0 merge=4 tiles=3-4" },
	{ LFM,
	  "\"use_thumbnail\": false, \"min_image_tokens\": 1, \"max_image_tokens\": 2, \"max_pixels_tolerance\": 1.5",
	  NULL, NULL, "thumbnail=0 tokens=1-2 tolerance=1.5" },
	{ LFM, "\"tile_size\": 256, \"encoder_patch_size\": 8, \"do_resize\": false", NULL, NULL,
	  "size=256x256 patch=8" },
	{ LFM, "\"min_tiles\": 1, \"max_tiles\": 1", NULL, NULL, "split=0 tiles=1-1" },
};

void test_fields(void **state)
{
	for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
		char image[400], inside[500], said[1000];
		struct error err = { 0 };
		struct image_processor p, from;
		bool patch = strcmp(fields[k].class, SMOL) == 0;
		snprintf(image, sizeof image, "{\"image_processor_type\": \"%s\"}", fields[k].class);
		/* The defaults of SmolVLM fit no tower of theirs, so the comparison is with one that they fit. */
		assert_true(read_texts(&from, image, patch ? "{\"vision_config\": {\"patch_size\": 13}}" : NULL, NULL,
		                       &err));
		snprintf(image, sizeof image, "{\"image_processor_type\": \"%s\", %s}", fields[k].class,
		         fields[k].member);
		if (!read_texts(&p, image, fields[k].config, fields[k].processor, &err))
			fail_msg("%s: %s", image, err.text);
		difference(said, sizeof said, &from, &p);
		assert_string_equal(said, fields[k].differs);
		/* The same in processor_config.json, which counts first. */
		if (fields[k].processor)
			continue;
		snprintf(inside, sizeof inside, "{\"image_processor\": %s}", image);
		if (!read_texts(&p, "{\"image_processor_type\": \"none\"}", fields[k].config, inside, &err))
			fail_msg("%s: %s", inside, err.text);
		difference(said, sizeof said, &from, &p);
		if (!strstr(fields[k].member, "processor_class"))
			assert_string_equal(said, fields[k].differs);
	}
}

/* ---- refusals */

static const struct {
	const char *class, *member, *config, *processor, *says;
} wrong[] = {
	{ "BlipImageProcessor", "", NULL, NULL,
	  "m/preprocessor_config.json: image_processor_type is \"BlipImageProcessor\"; Qwen2VL, Gemma3, Gemma4" },
	{ QWEN, ", \"do_resize\": 1", NULL, NULL,
	  "m/preprocessor_config.json: do_resize is 1; true or false is expected" },
	{ QWEN, ", \"resample\": 6", NULL, NULL, "resample is 6; an integer from 0 to 5 is expected" },
	{ QWEN, ", \"rescale_factor\": 0", NULL, NULL,
	  "rescale_factor is 0; a number from 1e-09 to 1e+09 is expected" },
	{ QWEN, ", \"image_mean\": [1, 2]", NULL, NULL,
	  "image_mean is [1,2]; a number, or an array of three, is expected" },
	{ QWEN, ", \"image_std\": [1, NaN, 1]", NULL, NULL, "image_std is NaN; a number from" },
	{ QWEN, ", \"image_std\": [1, 0, 1]", NULL, NULL, "image_std has a 0, by which nothing can be divided" },
	{ QWEN, ", \"size\": 5", NULL, NULL, "size is 5; an object is expected" },
	{ QWEN, ", \"size\": {\"shortest_edge\": -1}", NULL, NULL,
	  "size.shortest_edge is -1; an integer from 1 to 1073741824 is expected" },
	{ QWEN, ", \"min_pixels\": 10, \"max_pixels\": 9", NULL, NULL,
	  "at least 10 and at most 9 pixels are no range" },
	{ QWEN, ", \"patch_size\": \"14\"", NULL, NULL, "patch_size is \"14\"; an integer from 1 to 1024 is expected" },
	{ "Gemma3ImageProcessor", ", \"size\": {\"height\": 64}", NULL, NULL,
	  "size is {\"height\":64}; height and width are expected in it" },
	{ "Gemma3ImageProcessor", ", \"size\": [64]", NULL, NULL,
	  "size is [64]; an array of height and width is expected" },
	{ "Gemma3ImageProcessor", "", "{\"mm_tokens_per_image\": 5}", NULL,
	  "m/config.json: mm_tokens_per_image is 5; a square that divides 14 x 14 patches of a side of 16 is "
	  "expected" },
	{ "Gemma3ImageProcessor", "", "{\"mm_tokens_per_image\": 49}", "{\"image_seq_length\": 50}",
	  "m/processor_config.json: image_seq_length is 50; 49 is expected, for 224 x 224 pixels with tokens of 32 x "
	  "32" },
	{ SMOL, "", NULL, NULL, "pictures of 364 x 364 pixels have no whole number of tokens of 64 x 64" },
	{ GOT, ", \"min_patches\": 13", NULL, NULL, "at least 13 and at most 12 tiles are no range" },
	{ "CLIPImageProcessor", "", "{\"vision_feature_select_strategy\": \"none\"}", NULL,
	  "m/config.json: vision_feature_select_strategy is \"none\"; default or full is expected" },
	{ "CLIPImageProcessor", "", "{\"vision_config\": {\"patch_size\": [14, 16]}}", NULL,
	  "m/config.json: vision_config.patch_size is [14,16]; two equal sides are expected" },
	{ "SiglipImageProcessor", ", \"do_center_crop\": true", NULL, NULL,
	  "crop_size is not there; do_center_crop needs height and width" },
	{ "PixtralImageProcessor", ", \"patch_size\": {\"height\": 8, \"width\": 9}", NULL, NULL,
	  "patch_size is {\"height\":8,\"width\":9}; two equal sides are expected" },
	{ "PixtralImageProcessor", "", NULL, "{\"image_token\": \"0123456789012345678901234567890123456789\"}",
	  "a text of fewer than 40 bytes is expected" },
	{ LFM, ", \"min_image_tokens\": 300", NULL, NULL, "at least 300 and at most 256 image tokens are no range" },
	{ LFM, "", "[1]", NULL, "m/config.json is an array; an object is expected" },
	{ LFM, "", "{\"vision_config\": 3}", NULL, "m/config.json: vision_config is 3; an object is expected" },
};

void test_refused_fields(void **state)
{
	struct error err = { 0 };
	struct image_processor p;
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		char image[300];
		err = (struct error){ 0 };
		snprintf(image, sizeof image, "{\"image_processor_type\": \"%s\"%s}", wrong[k].class, wrong[k].member);
		if (read_texts(&p, image, wrong[k].config, wrong[k].processor, &err))
			fail_msg("%s is accepted", image);
		if (!strstr(err.text, wrong[k].says))
			fail_msg("%s; expected: %s", err.text, wrong[k].says);
		assert_false(read_texts(&p, image, wrong[k].config, wrong[k].processor, NULL));
	}
	err = (struct error){ 0 };
	assert_false(read_texts(&p, NULL, NULL, "{}", &err));
	assert_string_equal(err.text, "m/preprocessor_config.json is not there, and m/processor_config.json has no "
	                              "image_processor");
	err = (struct error){ 0 };
	assert_false(read_texts(&p, "{}", NULL, NULL, &err));
	assert_non_null(strstr(err.text, "image_processor_type is not there; Qwen2VL, "));
	err = (struct error){ 0 };
	assert_false(processor_read_folder(&p, "/nowhere/at/all", &err));
	assert_non_null(strstr(err.text, "preprocessor_config.json is not there"));
}
