/* tests/pictures/processor_gguf_tests.c - image processors of --mmproj files: each key, those that are wrong, and files
 * of llama.cpp's converter beside the folders that they were made of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/pictures/processor_tests.h"
#include "tests/support/shared.h"

#define V "clip.vision."

struct keys {
	const char *type;
	uint32_t image_size, patch; /* 0: not there */
	const char *more;           /* one key with a number, or NULL */
	uint32_t value;
	bool colors, vision_type;
};

static bool read_keys(const struct keys *k, struct image_processor *p, struct error *err)
{
	static const float mean[3] = { 0.25f, 0.5f, 0.75f }, std[3] = { 1, 2, 4 };
	struct gguf_writer w;
	struct gguf g;
	size_t n;
	gguf_writer_start(&w, 3, 32);
	if (k->type)
		gguf_write_string(&w, k->vision_type ? V "projector_type" : "clip.projector_type", k->type);
	if (k->image_size)
		gguf_write_u32(&w, V "image_size", k->image_size);
	if (k->patch)
		gguf_write_u32(&w, V "patch_size", k->patch);
	if (k->more)
		gguf_write_u32(&w, k->more, k->value);
	if (k->colors) {
		gguf_write_array(&w, V "image_mean", GGUF_F32, 3, mean, sizeof mean);
		gguf_write_array(&w, V "image_std", GGUF_F32, 3, std, sizeof std);
	}
	uint8_t *bytes = gguf_writer_finish(&w, &n);
	gguf_writer_free(&w);
	bool ok = gguf_parse(&g, bytes, n, "mm.gguf", false, err);
	assert_true(ok);
	ok = processor_read_gguf(p, &g, err);
	gguf_free(&g);
	free(bytes);
	return ok;
}

static const struct {
	struct keys keys;
	enum processor_kind kind;
	uint32_t patch, merge, width, longest, crop, min_tiles, max_tiles;
	uint64_t min_pixels, max_pixels;
} read_rows[] = {
	{ { "qwen2vl_merger", 560, 14, NULL, 0, true, false },
	  PROCESSOR_QWEN2_VL,
	  14,
	  2,
	  0,
	  0,
	  0,
	  0,
	  0,
	  3136,
	  12845056 },
	{ { "qwen2.5vl_merger", 0, 14, V "spatial_merge_size", 3, true, false },
	  PROCESSOR_QWEN2_VL,
	  14,
	  3,
	  0,
	  0,
	  0,
	  0,
	  0,
	  7056,
	  28901376 },
	{ { "qwen3vl_merger", 768, 16, NULL, 0, true, true },
	  PROCESSOR_QWEN2_VL,
	  16,
	  2,
	  0,
	  0,
	  0,
	  0,
	  0,
	  65536,
	  16777216 },
	{ { "gemma3", 896, 14, NULL, 0, true, false }, PROCESSOR_GEMMA3, 14, 4, 896, 0, 0, 0, 0, 0, 0 },
	{ { "gemma3", 64, 8, V "projector.scale_factor", 2, true, false },
	  PROCESSOR_GEMMA3,
	  8,
	  2,
	  64,
	  0,
	  0,
	  0,
	  0,
	  0,
	  0 },
	{ { "gemma4v", 224, 16, NULL, 0, true, false }, PROCESSOR_GEMMA4, 16, 3, 0, 0, 0, 0, 0, 0, 0 },
	{ { "idefics3", 512, 16, NULL, 0, true, false }, PROCESSOR_IDEFICS3, 16, 4, 512, 2048, 0, 0, 0, 0, 0 },
	{ { "idefics3", 64, 8, V "preproc_image_size", 128, true, false },
	  PROCESSOR_IDEFICS3,
	  8,
	  4,
	  64,
	  128,
	  0,
	  0,
	  0,
	  0,
	  0 },
	{ { "internvl", 448, 14, NULL, 0, true, false }, PROCESSOR_GOT_OCR2, 14, 2, 448, 0, 0, 1, 12, 0, 0 },
	{ { "internvl", 448, 14, V "preproc_max_tiles", 6, true, false },
	  PROCESSOR_GOT_OCR2,
	  14,
	  2,
	  448,
	  0,
	  0,
	  1,
	  6,
	  0,
	  0 },
	{ { "mlp", 336, 14, NULL, 0, true, false }, PROCESSOR_CLIP, 14, 1, 0, 0, 336, 0, 0, 0, 0 },
	{ { "pixtral", 1540, 14, V "spatial_merge_size", 2, true, false },
	  PROCESSOR_PIXTRAL,
	  14,
	  2,
	  0,
	  1540,
	  0,
	  0,
	  0,
	  0,
	  0 },
	{ { "lfm2", 256, 16, V "preproc_min_tiles", 3, true, false },
	  PROCESSOR_LFM2_VL,
	  16,
	  2,
	  512,
	  0,
	  0,
	  3,
	  10,
	  0,
	  0 },
};

void test_gguf(void **state)
{
	for (size_t k = 0; k < sizeof read_rows / sizeof *read_rows; k++) {
		struct error err = { 0 };
		struct image_processor p;
		if (!read_keys(&read_rows[k].keys, &p, &err))
			fail_msg("%s", err.text);
		assert_int_equal(p.kind, read_rows[k].kind);
		assert_int_equal(p.patch, read_rows[k].patch);
		assert_int_equal(p.merge, read_rows[k].merge);
		assert_int_equal(p.width, read_rows[k].width);
		assert_int_equal(p.height, read_rows[k].width);
		assert_int_equal(p.longest, read_rows[k].longest);
		assert_int_equal(p.crop_width, read_rows[k].crop);
		assert_int_equal(p.crop_height, read_rows[k].crop);
		assert_int_equal(p.shortest, read_rows[k].crop);
		assert_int_equal(p.min_tiles, read_rows[k].min_tiles);
		assert_int_equal(p.max_tiles, read_rows[k].max_tiles);
		assert_int_equal(p.min_pixels, read_rows[k].min_pixels);
		assert_int_equal(p.max_pixels, read_rows[k].max_pixels);
		assert_int_equal(p.split, p.kind == PROCESSOR_IDEFICS3 || p.kind == PROCESSOR_GOT_OCR2 ||
		                                  p.kind == PROCESSOR_LFM2_VL);
		assert_true(p.mean[0] == 0.25 && p.mean[2] == 0.75 && p.std[0] == 1 && p.std[2] == 4);
	}
}

void test_refused_gguf(void **state)
{
	static const struct {
		struct keys keys;
		const char *says;
	} rows[] = {
		{ { NULL, 64, 8, NULL, 0, true, false }, "mm.gguf: clip.projector_type is not there; qwen2vl_merger" },
		{ { "ldp", 64, 8, NULL, 0, true, false }, "mm.gguf: clip.projector_type is ldp; qwen2vl_merger" },
		{ { "gemma3", 64, 0, NULL, 0, true, false }, "mm.gguf: clip.vision.patch_size is not there" },
		{ { "gemma3", 0, 8, NULL, 0, true, false }, "mm.gguf: clip.vision.image_size is not there" },
		{ { "gemma3", 20000, 8, NULL, 0, true, false },
		  "mm.gguf: clip.vision.image_size is 20000; 1 to 16384 is expected" },
		{ { "gemma3", 60, 8, NULL, 0, true, false },
		  "mm.gguf: pictures of 60 x 60 pixels have no whole number of tokens of 32 x 32" },
		{ { "pixtral", 64, 8, V "spatial_merge_size", 33, true, false },
		  "mm.gguf: clip.vision.spatial_merge_size is 33; 1 to 32 is expected" },
		{ { "lfm2", 64, 8, V "preproc_min_tiles", 11, true, false },
		  "mm.gguf: at least 11 and at most 10 tiles are no range" },
		{ { "mlp", 64, 8, V "image_mean", 3, false, false },
		  "mm.gguf: clip.vision.image_mean is no array of three numbers" },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct error err = { 0 };
		struct image_processor p;
		assert_false(read_keys(&rows[k].keys, &p, &err));
		if (strncmp(err.text, rows[k].says, strlen(rows[k].says)) != 0)
			fail_msg("%s; expected: %s", err.text, rows[k].says);
		assert_false(read_keys(&rows[k].keys, &p, NULL));
	}
}

/* Both forms of a model, as far as the file says it: Qwen's limits of pixels are in folders alone. */
void test_gguf_beside_folders(void **state)
{
	static const char *const names[] = { "smolvlm", "qwen25vl", "qwen3vl", "qwen35" };
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		char relative[100], folder[1024], path[1100];
		struct error err = { 0 };
		struct image_processor p, q;
		struct gguf g;
		size_t n;
		snprintf(relative, sizeof relative, "golden-more/see-%s-a", names[k]);
		if (!shared_path(folder, relative))
			skip();
		snprintf(path, sizeof path, "%s/mmproj-bf16.gguf", folder);
		uint8_t *bytes = file_bytes(path, &n);
		assert_true(gguf_parse(&g, bytes, n, path, true, &err));
		if (!processor_read_folder(&p, folder, &err) || !processor_read_gguf(&q, &g, &err))
			fail_msg("%s", err.text);
		if (p.kind == PROCESSOR_QWEN2_VL) {
			q.min_pixels = p.min_pixels;
			q.max_pixels = p.max_pixels;
		}
		for (int c = 0; c < 3; c++) { /* floats in one, doubles in the other: the same numbers come of both */
			assert_true((float)p.mean[c] == (float)q.mean[c] && (float)p.std[c] == (float)q.std[c]);
			q.mean[c] = p.mean[c];
			q.std[c] = p.std[c];
		}
		assert_memory_equal(&p, &q, sizeof p);
		gguf_free(&g);
		free(bytes);
	}
}
