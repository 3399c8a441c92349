/* tests/fuzz/fuzz_processor.c - arbitrary bytes as the files of an image processor, between them a byte 0: what is read
 * of them makes parts and segments that agree with each other, of a picture of any size. */
#include <stdlib.h>
#include <string.h>

#include "pictures/processor.h"
#include "tests/fuzz/fuzz.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

static void try_size(const struct image_processor *p, uint32_t width, uint32_t height)
{
	struct error err = { 0 };
	struct processed_image image;
	if (!processor_plan(p, width, height, &image, &err)) {
		need(err.text[0] && !image.parts && !image.segments);
		return;
	}
	size_t values = 0, tokens = 0, placed = 0;
	for (uint32_t k = 0; k < image.n_parts; k++) {
		const struct image_part *part = &image.parts[k];
		need(part->width > 0 && part->height > 0 && part->tokens > 0);
		values += part->n_values;
		tokens += part->tokens;
	}
	for (uint32_t k = 0; k < image.n_segments; k++) {
		const struct prompt_segment *segment = &image.segments[k];
		need(segment->part < image.n_parts && memchr(segment->text, 0, sizeof segment->text));
		need(segment->first + segment->n <= image.parts[segment->part].tokens);
		placed += segment->n;
	}
	need(values == image.n_values && tokens == image.tokens && placed == tokens);
	if (image.n_values < 1 << 16 && (uint64_t)width * height < 1 << 16) {
		struct picture picture;
		struct processed_image filled;
		need(picture_make(&picture, width, height, &err));
		memset(picture.rgb, 7, (size_t)width * height * 3);
		if (processor_run(p, &picture, &filled, &err))
			processed_image_free(&filled);
		picture_free(&picture);
	}
	processed_image_free(&image);
}

void fuzz_processor(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	struct image_processor processor;
	const uint8_t *second = memchr(p, 0, n), *end = p + n;
	const uint8_t *third = second ? memchr(second + 1, 0, (size_t)(end - second - 1)) : NULL;
	struct processor_files files = {
		.name = "fuzz", .preprocessor = (const char *)p, .n_preprocessor = (size_t)((second ? second : end) - p)
	};
	if (second) {
		files.config = (const char *)second + 1;
		files.n_config = (size_t)((third ? third : end) - second - 1);
	}
	if (third) {
		files.processor = (const char *)third + 1;
		files.n_processor = (size_t)(end - third - 1);
	}
	if (!processor_read(&processor, &files, &err)) {
		need(err.text[0]);
		return;
	}
	try_size(&processor, 1, 1);
	try_size(&processor, 37, 91);
	try_size(&processor, 640, 480);
	try_size(&processor, 65536, 1);
	try_size(&processor, 3, 65536);
}

/* A text with the zeros in it, without that at its end. */
#define SEED(text) \
	{ \
		text, sizeof(text) - 1 \
	}

void fuzz_processor_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const struct {
		const char *text;
		size_t n;
	} seeds[] = {
		SEED("{\"image_processor_type\":\"Qwen2VLImageProcessorFast\",\"size\":{\"shortest_edge\":1024,"
		     "\"longest_edge\":16384},"
		     "\"patch_size\":8,\"merge_size\":2,\"image_mean\":[0.5,0.5,0.5],\"image_std\":0.5}"),
		SEED("{\"image_processor_type\":\"Gemma3ImageProcessor\",\"size\":{\"height\":64,\"width\":64}}\0"
		     "{\"mm_tokens_per_image\":16,\"vision_config\":{\"patch_size\":8}}\0{\"image_seq_length\":16}"),
		SEED("{\"image_processor_type\":\"SmolVLMImageProcessor\",\"max_image_size\":{\"longest_edge\":64},"
		     "\"size\":"
		     "{\"longest_edge\":128}}\0{\"scale_factor\":2,\"vision_config\":{\"patch_size\":8}}"),
		SEED("{\"image_processor_type\":\"GotOcr2ImageProcessor\",\"crop_to_patches\":true,\"max_patches\":4,"
		     "\"min_patches\":1,"
		     "\"size\":{\"height\":64,\"width\":64}}\0{\"downsample_ratio\":0.5,\"vision_config\":{\"patch_"
		     "size\":[8,8]}}"),
		SEED("{\"image_processor_type\":\"CLIPImageProcessor\",\"crop_size\":64,\"size\":64,\"do_resize\":"
		     "false}\0"
		     "{\"vision_feature_select_strategy\":\"full\",\"vision_config\":{\"patch_size\":8}}"),
		SEED("{\"image_processor_type\":\"PixtralImageProcessor\",\"patch_size\":{\"height\":8,\"width\":8},"
		     "\"size\":"
		     "{\"longest_edge\":64}}\0{}\0{\"patch_size\":8,\"spatial_merge_size\":2,\"image_break_token\":\"["
		     "B]\"}"),
		SEED("{\"image_processor_type\":\"Lfm2VlImageProcessor\",\"tile_size\":64,\"encoder_patch_size\":8,"
		     "\"min_image_tokens\":4,\"max_image_tokens\":16,\"do_image_splitting\":true,\"max_pixels_"
		     "tolerance\":2.0}"),
		SEED("{\"image_processor_type\":\"Gemma4ImageProcessor\",\"max_soft_tokens\":70,\"patch_size\":4}"),
		SEED("{}\0{}\0{\"image_processor\":{\"image_processor_type\":\"SiglipImageProcessor\",\"resample\":"
		     "null}}"),
	};
	for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++)
		take(user, (const uint8_t *)seeds[k].text, seeds[k].n);
}
