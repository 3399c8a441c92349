/* tests/pictures/processor_size_tests.c - sizes, tiles, crops and segments: beside hashes of what transformers' own
 * functions gave in Python for the same 3 000 sizes, and by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pictures/processor_tests.h"

static uint64_t splitmix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t hash_u32(uint64_t hash, uint32_t v)
{
	for (int k = 0; k < 4; k++)
		hash = (hash ^ (v >> 8 * k & 255)) * 0x100000001b3u;
	return hash;
}

static struct image_processor processor_of(const char *class, const char *members, const char *config)
{
	char image[400];
	struct error err = { 0 };
	struct image_processor p;
	snprintf(image, sizeof image, "{\"image_processor_type\": \"%s\"%s}", class, members);
	if (!read_texts(&p, image, config, NULL, &err))
		fail_msg("%s", err.text);
	return p;
}

#define QWEN28 "Qwen2VLImageProcessor", ", \"min_pixels\": 3136, \"max_pixels\": 12845056"
#define QWEN32 \
	"Qwen2VLImageProcessor", \
		", \"patch_size\": 16, \"size\": {\"shortest_edge\": 65536, \"longest_edge\": 16777216}"

/* Height and width of the first part, columns and rows of tiles, tokens of all; a lone 0 where a size is refused. */
void test_all_sizes(void **state)
{
	static const struct {
		const char *class, *members, *config;
		uint64_t hash;
	} rows[] = {
		{ QWEN28, NULL, 0xd9f010b1d3a5a2be },
		{ QWEN32, NULL, 0xcfa46d5665a63351 },
		{ "Idefics3ImageProcessor",
		  ", \"size\": {\"longest_edge\": 2048}, \"max_image_size\": {\"longest_edge\": 512}",
		  "{\"scale_factor\": 4, \"vision_config\": {\"patch_size\": 16}}", 0xb3892fa489e6f34b },
		{ "GotOcr2ImageProcessor", ", \"crop_to_patches\": true, \"size\": {\"height\": 448, \"width\": 448}",
		  "{\"vision_config\": {\"patch_size\": 14}}", 0xbd48904f6d7870db },
		{ "Lfm2VlImageProcessor", "", NULL, 0x1c69aadf9550a589 },
		{ "PixtralImageProcessor", ", \"patch_size\": 14, \"size\": {\"longest_edge\": 1540}",
		  "{\"spatial_merge_size\": 2}", 0x1c5afa1b5a5ed3d1 },
		{ "Gemma4ImageProcessor", "", NULL, 0xf196c35dc8beddd7 },
	};
	static const uint32_t max[] = { 64, 1024, 8192 };
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		struct image_processor p = processor_of(rows[r].class, rows[r].members, rows[r].config);
		uint64_t hash = 0xcbf29ce484222325u;
		for (uint64_t k = 0; k < 3000; k++) {
			uint32_t width = (uint32_t)(splitmix(2 * k) % max[k % 3]) + 1;
			uint32_t height = (uint32_t)(splitmix(2 * k + 1) % max[k % 3]) + 1;
			struct processed_image image;
			if (!processor_plan(&p, width, height, &image, NULL)) {
				hash = hash_u32(hash, 0);
				continue;
			}
			hash = hash_u32(hash_u32(hash, image.parts[0].height), image.parts[0].width);
			hash = hash_u32(hash_u32(hash, image.tile_columns), image.tile_rows);
			hash = hash_u32(hash, image.tokens);
			processed_image_free(&image);
		}
		if (hash != rows[r].hash)
			fail_msg("%s: %016llx, expected %016llx", rows[r].class, (unsigned long long)hash,
			         (unsigned long long)rows[r].hash);
	}
}

/* Height and width of pictures, before and after. */
void test_known_sizes(void **state)
{
	static const struct {
		bool by28;
		uint32_t from[2], to[2];
	} rows[] = {
		{ false, { 37, 91 }, { 192, 416 } },       { false, { 272, 336 }, { 256, 320 } },
		{ false, { 5000, 7000 }, { 3456, 4832 } }, { false, { 400, 80 }, { 576, 128 } },
		{ false, { 1000, 1000 }, { 992, 992 } },   { false, { 1, 100 }, { 32, 2560 } },
		{ true, { 480, 640 }, { 476, 644 } },      { true, { 37, 91 }, { 56, 112 } },
		{ true, { 5000, 7000 }, { 3024, 4228 } },  { true, { 400, 80 }, { 392, 84 } },
	};
	struct image_processor p28 = processor_of(QWEN28, NULL), p32 = processor_of(QWEN32, NULL);
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct error err = { 0 };
		struct processed_image image;
		assert_true(processor_plan(rows[k].by28 ? &p28 : &p32, rows[k].from[1], rows[k].from[0], &image, &err));
		assert_int_equal(image.parts[0].height, rows[k].to[0]);
		assert_int_equal(image.parts[0].width, rows[k].to[1]);
		processed_image_free(&image);
	}
}

void test_refused_sizes(void **state)
{
	static const struct {
		const char *class, *members;
		uint32_t width, height;
		const char *says;
	} rows[] = {
		{ QWEN28, 1, 201, "a picture of 1 x 201 pixels: one side is more than 200 times the other" },
		{ QWEN28, 0, 5, "a picture of 0 x 5 pixels; sides of 1 to 65536 are expected" },
		{ QWEN28, 5, 65537, "a picture of 5 x 65537 pixels; sides of 1 to 65536 are expected" },
		{ "PixtralImageProcessor", "", 60000, 1,
		  "a picture of 60000 x 1 pixels would become one of 1024 x 0; sides of" },
		{ "Gemma4ImageProcessor", ", \"max_soft_tokens\": 1", 17, 17,
		  "a picture of 17 x 17 pixels has no multiple of 48" },
		{ "Qwen2VLImageProcessor", ", \"do_resize\": false", 28, 29,
		  "a picture of 28 x 29 pixels is not resized, and its sides are no multiples of 28" },
		{ "GotOcr2ImageProcessor", ", \"do_resize\": false", 384, 383,
		  "a picture of 384 x 383 pixels is not resized, and the model takes pictures of 384 x 384" },
		{ "CLIPImageProcessor", ", \"crop_size\": 16", 40, 40,
		  "a picture of 16 x 16 pixels has no patch of 32 x 32" },
		{ "GotOcr2ImageProcessor",
		  ", \"crop_to_patches\": true, \"min_patches\": 200, \"max_patches\": 200, \"size\": {\"height\": "
		  "4096, "
		  "\"width\": 4096}",
		  1, 1, " tiles of 4096 x 4096 pixels are more than the 67108864 pixels that a picture may have" },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct image_processor p = processor_of(rows[k].class, rows[k].members, NULL);
		struct error err = { 0 };
		struct processed_image image;
		if (processor_plan(&p, rows[k].width, rows[k].height, &image, &err))
			fail_msg("%s%s takes %u x %u", rows[k].class, rows[k].members, rows[k].width, rows[k].height);
		assert_null(image.parts);
		if (!strstr(err.text, rows[k].says))
			fail_msg("%s; expected: %s", err.text, rows[k].says);
	}
}

/* ---- what stands for a picture in a prompt */

static void said_of(char *out, size_t cap, const struct image_processor *p, uint32_t width, uint32_t height)
{
	struct error err = { 0 };
	struct processed_image image;
	if (!processor_plan(p, width, height, &image, &err))
		fail_msg("%s", err.text);
	out[0] = 0;
	for (uint32_t k = 0; k < image.n_segments; k++)
		if (image.segments[k].n > 0)
			snprintf(out + strlen(out), cap - strlen(out), "{%u:%u+%u}", image.segments[k].part,
			         image.segments[k].first, image.segments[k].n);
		else
			snprintf(out + strlen(out), cap - strlen(out), "%s", image.segments[k].text);
	processed_image_free(&image);
}

void test_segments(void **state)
{
	static const struct {
		const char *class, *members, *config;
		uint32_t width, height;
		const char *says;
	} rows[] = {
		{ QWEN28, NULL, 56, 84, "{0:0+6}" },
		{ "Gemma3ImageProcessor", "", "{\"mm_tokens_per_image\": 49}", 9, 9,
		  "\n\n<start_of_image>{0:0+49}<end_of_image>\n\n" },
		{ "Gemma4ImageProcessor", ", \"max_soft_tokens\": 70", NULL, 480, 480, "<|image>{0:0+64}<image|>" },
		{ "CLIPImageProcessor", "", "{\"vision_feature_select_strategy\": \"full\"}", 9, 9, "{0:0+50}" },
		{ "PixtralImageProcessor", "", NULL, 40, 20, "{0:0+3}[IMG_BREAK]{0:3+3}[IMG_END]" },
		{ "GotOcr2ImageProcessor", ", \"crop_to_patches\": true", NULL, 768, 384,
		  "<img>{0:0+144}{1:0+144}{2:0+144}</img>" },
		{ "GotOcr2ImageProcessor", "", NULL, 768, 384, "<img>{0:0+144}</img>" },
		{ "Lfm2VlImageProcessor", "", NULL, 512, 512, "<|image_start|>{0:0+256}<|image_end|>" },
		{ "Lfm2VlImageProcessor", "", NULL, 512, 1536,
		  "<|image_start|><|img_row_1_col_1|>{0:0+256}<|img_row_2_col_1|>{1:0+256}<|img_row_3_col_1|>{2:0+256}"
		  "<|img_thumbnail|>{3:0+243}<|image_end|>" },
		{ "Lfm2VlImageProcessor", ", \"use_thumbnail\": false", NULL, 1088, 512,
		  "<|image_start|><|img_row_1_col_1|>{0:0+256}<|img_row_1_col_2|>{1:0+256}<|image_end|>" },
		{ "SmolVLMImageProcessor", "", "{\"vision_config\": {\"patch_size\": 14}}", 728, 364,
		  "<fake_token_around_image><row_1_col_1>{0:0+169}<fake_token_around_image><row_1_col_2>{1:0+169}"
		  "<fake_token_around_image><row_1_col_3>{2:0+169}<fake_token_around_image><row_1_col_4>{3:0+169}\n"
		  "<fake_token_around_image><row_2_col_1>{4:0+169}<fake_token_around_image><row_2_col_2>{5:0+169}"
		  "<fake_token_around_image><row_2_col_3>{6:0+169}<fake_token_around_image><row_2_col_4>{7:0+169}\n\n"
		  "<fake_token_around_image><global-img>{8:0+169}<fake_token_around_image>" },
		{ "SmolVLMImageProcessor", ", \"do_image_splitting\": false",
		  "{\"vision_config\": {\"patch_size\": 14}}", 728, 364,
		  "<fake_token_around_image><global-img>{0:0+169}<fake_token_around_image>" },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		char said[1500];
		struct image_processor p = processor_of(rows[k].class, rows[k].members, rows[k].config);
		said_of(said, sizeof said, &p, rows[k].width, rows[k].height);
		assert_string_equal(said, rows[k].says);
	}
}

/* ---- numbers by hand */

static void make_counted(struct picture *p, uint32_t width, uint32_t height)
{
	struct error err = { 0 };
	assert_true(picture_make(p, width, height, &err));
	for (size_t k = 0; k < (size_t)width * height * 3; k++)
		p->rgb[k] = (uint8_t)(k * 7 + 1);
}

/* The middle of a picture, and black around one that is too small. */
void test_crops(void **state)
{
	struct image_processor p = processor_of("CLIPImageProcessor",
	                                        ", \"do_resize\": false, \"crop_size\": {\"height\": 4, \"width\": 5}",
	                                        "{\"vision_config\": {\"patch_size\": 1}}");
	static const uint32_t sizes[][2] = { { 5, 4 }, { 8, 9 }, { 6, 5 }, { 2, 2 }, { 3, 7 }, { 4, 1 } };
	static const int left[] = { 0, 1, 0, -1, -1, 0 }, top[] = { 0, 2, 0, -1, 1, -1 };
	p.do_rescale = p.do_normalize = false;
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		struct error err = { 0 };
		struct picture from;
		struct processed_image image;
		make_counted(&from, sizes[k][0], sizes[k][1]);
		if (!processor_run(&p, &from, &image, &err))
			fail_msg("%s", err.text);
		assert_int_equal(image.n_values, 60);
		for (int i = 0; i < 60; i++) {
			int c = i / 20, y = i % 20 / 5 + top[k], x = i % 5 + left[k];
			bool in = x >= 0 && y >= 0 && x < (int)from.width && y < (int)from.height;
			float expected = in ? from.rgb[(y * (int)from.width + x) * 3 + c] : 0;
			assert_true(image.values[i] == expected);
		}
		processed_image_free(&image);
		picture_free(&from);
	}
}

/* What each step makes of a byte. */
void test_steps_left_out(void **state)
{
	struct image_processor p =
		processor_of("SiglipImageProcessor",
	                     ", \"size\": {\"height\": 2, \"width\": 3}, \"image_mean\": 0.25, "
	                     "\"image_std\": 0.5, \"rescale_factor\": 0.125",
	                     "{\"vision_config\": {\"patch_size\": 1}}");
	struct picture from;
	make_counted(&from, 3, 2);
	for (int steps = 0; steps < 4; steps++) {
		struct error err = { 0 };
		struct processed_image image;
		p.do_rescale = steps & 1;
		p.do_normalize = steps & 2;
		if (!processor_run(&p, &from, &image, &err))
			fail_msg("%s", err.text);
		for (int i = 0; i < 18; i++) {
			float byte = from.rgb[i % 6 * 3 + i / 6];
			float expected = steps == 0   ? byte
			                 : steps == 1 ? byte / 8
			                 : steps == 2 ? (byte - 0.25f) / 0.5f
			                              : (byte - 2) / 4;
			assert_true(image.values[i] == expected);
		}
		processed_image_free(&image);
	}
	picture_free(&from);
}
