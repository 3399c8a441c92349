/* tests/vision/pair_tests.c - image encoders of mmproj files: the bits of the folders that they were made of, files of
 * llama.cpp's converter, each key, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/session/session_pictures.h"
#include "tests/support/shared.h"
#include "tests/vision/to_mmproj.h"
#include "tests/vision/tower_tests.h"
#include "vision/seer.h"

static char dir[] = "/tmp/jitrun-pairs-XXXXXX";

static const char *own_path(char path[1024], const char *name)
{
	snprintf(path, 1024, "%s/%s", dir, name);
	return path;
}

static struct tower *opened(const char *path, jit_compute *c)
{
	struct error err = { 0 };
	struct tower *t = tower_open(path, c, &err);

	if (!t)
		fail_msg("%s", err.text);
	return t;
}

static struct tower_features features(const char *path, jit_compute *c, const struct tower_pixels *p)
{
	struct tower *t = opened(path, c);
	struct tower_features f = tower_encoded(t, p);

	tower_close(t);
	return f;
}

static void copy_file(const char *to, const char *from, const char *old, const char *now)
{
	size_t n;
	uint8_t *bytes = file_bytes(from, &n);
	FILE *f = fopen(to, "wb");

	assert_non_null(f);
	if (old) {
		char *at = memmem(bytes, n, old, strlen(old));
		assert_non_null(at);
		assert_int_equal(strlen(old), strlen(now));
		memcpy(at, now, strlen(now));
	}
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
}

/* A copy of a folder in which a text of config.json is another one. */
static void change_folder(char folder[1024], const char *model, const char *old, const char *now)
{
	static const char *const files[] = { "config.json", "model.safetensors", "preprocessor_config.json" };
	char *own = strdup(folder), from[1100], to[1100];

	own_path(folder, model);
	mkdir(folder, 0700);
	for (size_t i = 0; i < 3; i++) {
		snprintf(from, sizeof from, "%s/%s", own, files[i]);
		snprintf(to, sizeof to, "%s/%s", folder, files[i]);
		copy_file(to, from, i ? NULL : old, now);
	}
	free(own);
}

/* The folder of a model. That of Pixtral's has another number for the projector's norm than its file can have; and
 * llama.cpp's file of Qwen 2.5 VL, with the key that only our files have left out, other windows. */
static bool folder_of(char folder[1024], const char *model, bool published)
{
	char name[200];

	snprintf(name, sizeof name, "golden-more/%s", model);
	if (!shared_path(folder, name))
		return false;
	if (strcmp(model, "see-pixtral-a") == 0)
		change_folder(folder, model, "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e-05");
	if (strcmp(model, "see-qwen25vl-a") == 0 && published)
		change_folder(folder, model, "\"window_size\": 32", "\"window_size\":112");
	return true;
}

static void compare_types(const char *model, jit_compute *c)
{
	static const struct {
		enum dtype type;
		double max; /* 0: the same bits */
	} types[] = { { DTYPE_F32, 0 }, { DTYPE_BF16, 0 }, { DTYPE_F16, 1e-4 }, { DTYPE_Q8_0, 0.05 } };
	char folder[1024], path[1024];
	struct reference r;

	if (!reference_open(&r, model))
		return;
	assert_true(folder_of(folder, model, false));
	const struct tower_pixels p = reference_pixels(&r, 1);
	struct tower_features f = features(folder, c, &p);
	const uint64_t n = f.levels * f.tokens * f.width;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		own_path(path, "mmproj.gguf");
		write_mmproj(path, folder, types[i].type, NULL);
		struct tower_features g = features(path, c, &p);
		assert_int_equal(g.tokens, f.tokens);
		assert_int_equal(g.levels, f.levels);
		const double apart = tower_difference(g.values, f.values, n);
		if (types[i].max == 0 ? memcmp(f.values, g.values, n * sizeof(float)) != 0 : apart > types[i].max)
			fail_msg("%s as %s: %.1e apart", model, dtype_table[types[i].type].name, apart);
		if (types[i].type == DTYPE_Q8_0)
			assert_true(apart > 1e-6);
		free(g.values);
	}
	free(f.values);
	reference_close(&r);
}

/* As llama.cpp's converter wrote it: the weights have the folder's values. */
static void compare_published(const char *model, jit_compute *c)
{
	char name[200], path[1024], folder[1024];
	struct reference r;

	if (!reference_open(&r, model))
		return;
	snprintf(name, sizeof name, "golden-more/%s/mmproj-bf16.gguf", model);
	assert_non_null(shared_path(path, name));
	assert_true(folder_of(folder, model, true));
	for (unsigned i = 0; i < PICTURES; i++) {
		const struct tower_pixels p = reference_pixels(&r, i);
		struct tower_features f = features(folder, c, &p), g = features(path, c, &p);
		assert_int_equal(f.tokens, g.tokens);
		assert_memory_equal(f.values, g.values, f.levels * f.tokens * f.width * sizeof(float));
		free(f.values);
		free(g.values);
	}
	reference_close(&r);
}


static void remove_all(void)
{
	char command[200];

	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

void test_pairs(void **state)
{
	static const char *const published[] = { "see-smolvlm-a", "see-qwen25vl-a", "see-qwen3vl-a", "see-qwen35-a" };
	(void)state;

	assert_non_null(mkdtemp(dir));
	jit_compute *c = compute_open("cpu", NULL, 2);
	for (size_t i = 0; i < TOWER_MODELS; i++)
		compare_types(tower_models[i], c);
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		compare_published(published[i], c);
	jit_compute_close(c);
	remove_all();
}

/* ---- keys */

#define V "clip.vision."

/* Those that may be left out, or be said in another way: the same features. */
static void compare_keys(jit_compute *c)
{
	static const struct {
		const char *model;
		struct mmproj_edit edit;
	} rows[] = {
		{ "see-llava-a", { .swapped = 1 } },
		{ "see-llava-a", { .without = V "feature_layer", .number = V "block_count", .value = 2 } },
		{ "see-llava-a", { .off = "clip.use_gelu" } },
		{ "see-llava-a", { .number = V "attention.head_count_kv", .value = 4 } },
		{ "see-gemma3-a", { .swapped = 1 } },
		{ "see-gemma3-a", { .number = V "attention.head_dim", .value = 16 } },
		{ "see-gemma3-a", { .without = "clip.has_vision_encoder" } },
		{ "see-gemma3-a", { .more_tensor = "mm.a.mlp.0.weight" } },
		{ "see-pixtral-a", { .more_tensor = "v.token_embd.img_break" } },
		{ "see-smolvlm-a", { .text = "clip.vision.projector_type", .content = "idefics3" } },
		{ "see-qwen3vl-a", { .without = "clip.use_gelu" } },
		{ "see-qwen35-a", { .without = V "is_deepstack_layers" } },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char folder[1024], path[1024];
		struct reference r;
		if (!reference_open(&r, rows[i].model))
			continue;
		assert_true(folder_of(folder, rows[i].model, false));
		const struct tower_pixels p = reference_pixels(&r, 1);
		own_path(path, "mmproj.gguf");
		write_mmproj(path, folder, DTYPE_F32, &rows[i].edit);
		struct tower_features f = features(folder, c, &p), g = features(path, c, &p);
		if (memcmp(f.values, g.values, f.levels * f.tokens * f.width * sizeof(float)) != 0)
			fail_msg("row %zu of %s has other features", i, rows[i].model);
		free(f.values);
		free(g.values);
		reference_close(&r);
	}
}

static const struct refused {
	const char *model;
	struct mmproj_edit edit;
	const char *says;
} refused[] = {
	{ "gemma3",
	  { .text = "general.architecture", .content = "llama" },
	  "general.architecture is llama, expected clip" },
	{ "gemma3", { .without = "general.architecture" }, "general.architecture is missing, expected clip" },
	{ "gemma3", { .off = "clip.has_vision_encoder" }, "clip.has_vision_encoder is false, expected true" },
	{ "gemma3", { .text = "clip.projector_type", .content = "ldp" }, "clip.projector_type is ldp, expected mlp" },
	{ "gemma3", { .without = "clip.projector_type" }, "clip.projector_type is missing, expected mlp" },
	{ "gemma3", { .without = V "embedding_length" }, V "embedding_length is missing" },
	{ "gemma3", { .number = V "embedding_length", .value = 70000 }, V "embedding_length is 70000" },
	{ "gemma3", { .number = V "embedding_length", .value = 66 }, V "embedding_length is 66, expected 4 heads" },
	{ "pixtral", { .number = V "embedding_length", .value = 72 }, "expected 4 heads of a multiple of 4 numbers" },
	{ "gemma3",
	  { .number = V "embedding_length", .value = 32 },
	  "v.position_embd.weight has 4096 numbers, expected 2048" },
	{ "gemma3", { .number = V "block_count", .value = 0 }, V "block_count is 0" },
	{ "gemma3", { .number = V "block_count", .value = 300 }, V "block_count is 300" },
	{ "gemma3", { .number = V "block_count", .value = 3 }, "the tensor v.blk.2.ln1.weight is missing" },
	{ "gemma3", { .without = V "attention.head_count" }, V "attention.head_count is missing" },
	{ "gemma3",
	  { .number = V "attention.head_count_kv", .value = 2 },
	  V "attention.head_count_kv is 2, expected 4" },
	{ "gemma3", { .number = V "attention.head_dim", .value = 8 }, V "attention.head_dim is 8, expected 16" },
	{ "gemma3", { .number = V "feed_forward_length", .value = 95 }, V "feed_forward_length is 95, expected 96" },
	{ "gemma3", { .without = V "feed_forward_length" }, V "feed_forward_length is missing" },
	{ "gemma3", { .number = V "patch_size", .value = 0 }, V "patch_size is 0" },
	{ "gemma3",
	  { .number = V "patch_size", .value = 4 },
	  "v.position_embd.weight has 4096 numbers, expected 16384" },
	{ "gemma3", { .without = V "image_size" }, V "image_size is missing" },
	{ "gemma3", { .number = V "image_size", .value = 4 }, V "image_size / clip.vision.patch_size is 0" },
	{ "gemma3",
	  { .number = V "projector.scale_factor", .value = 3 },
	  "projector.scale_factor is 3, expected a divisor" },
	{ "gemma3", { .number = V "projection_dim", .value = 65 }, "projection_dim is 65, expected 64" },
	{ "gemma3", { .without = V "projection_dim" }, V "projection_dim is missing" },
	{ "gemma3", { .without = V "attention.layer_norm_epsilon" }, "layer_norm_epsilon is missing" },
	{ "gemma3", { .on = "clip.use_silu" }, "both clip.use_gelu and clip.use_silu are true" },
	{ "gemma3", { .without_tensor = "mm.soft_emb_norm.weight" }, "mm.soft_emb_norm.weight is missing" },
	{ "gemma3", { .without_tensor = "v.blk.0.ffn_up.weight" }, "there is no matrix v.blk.0.ffn_up.weight" },
	{ "gemma3", { .without_tensor = "v.patch_embd.weight" }, "there is no tensor v.patch_embd.weight" },
	{ "gemma3", { .more_tensor = "v.blk.0.attn_q_norm.weight" }, "v.blk.0.attn_q_norm.weight is none that" },
	{ "llava", { .number = V "feature_layer", .value = 2 }, V "feature_layer is no array" },
	{ "llava", { .list = V "feature_layer", .count = 2, .values = { 1, 2 } }, V "feature_layer has 2 layers" },
	{ "llava", { .list = V "feature_layer", .count = 1, .values = { 4 } }, V "feature_layer is 4" },
	{ "llava", { .more_tensor = "v.image_newline" }, "v.image_newline is none that" },
	{ "qwen25vl", { .without = V "n_wa_pattern" }, V "n_wa_pattern is missing" },
	{ "qwen25vl",
	  { .number = V "window_size", .value = 8 },
	  "window_size / (spatial_merge_size * patch_size) is 0" },
	{ "qwen25vl",
	  { .number = V "spatial_merge_size", .value = 3 },
	  "mm.0.weight has the shape [256,256], expected [256,576]" },
	{ "qwen25vl", { .without_tensor = "v.patch_embd.weight.1" }, "v.patch_embd.weight.1 is missing" },
	{ "qwen3vl", { .list = V "is_deepstack_layers", .count = 2, .values = { 0, 1 } }, "v.deepstack.1.norm.weight" },
	{ "qwen3vl", { .list = V "is_deepstack_layers", .count = 5 }, "is_deepstack_layers is no array of at most 4" },
	{ "qwen3vl", { .without = V "is_deepstack_layers" }, "v.deepstack.0.fc1.bias is none that" },
	{ "qwen3vl", { .without_tensor = "v.position_embd.weight" }, "there is no matrix v.position_embd.weight" },
	{ "internvl", { .without_tensor = "v.blk.1.ls1.weight" }, "v.blk.1.ls1.weight is missing" },
	{ "lfm2vl", { .without_tensor = "mm.input_norm.weight" }, "mm.input_norm.bias is none that" },
};

void test_pair_keys(void **state)
{
	char folder[1024], path[1024], name[60];
	(void)state;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	jit_compute *c = compute_open("cpu", NULL, 1);
	compare_keys(c);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct error err = { 0 };
		snprintf(name, sizeof name, "see-%s-a", refused[i].model);
		if (!folder_of(folder, name, false))
			continue;
		own_path(path, "mmproj.gguf");
		write_mmproj(path, folder, DTYPE_F32, &refused[i].edit);
		struct tower *t = tower_open(path, c, &err);
		if (t || !strstr(err.text, refused[i].says) || !strstr(err.text, "mmproj.gguf"))
			fail_msg("row %zu: \"%s\", expected \"%s\"", i, err.text, refused[i].says);
	}
	jit_compute_close(c);
	remove_all();
}

/* ---- damaged files: refused with a sentence, or opened */

static void open_damaged(const char *path, const uint8_t *bytes, size_t n, jit_compute *c)
{
	struct error err = { 0 };
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	struct tower *t = tower_open(path, c, &err);
	assert_true(t ? err.code == ERROR_NONE : err.code != ERROR_NONE && *err.text);
	tower_close(t);
}

void test_pair_damaged(void **state)
{
	static const char *const models[] = { "see-gemma3-a", "see-qwen3vl-a", "see-lfm2vl-a", "see-llava-a" };
	const unsigned each = test_quick() ? 10 : 250;
	char folder[1024], path[1024];
	uint64_t random = 1;
	(void)state;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	jit_compute *c = compute_open("cpu", NULL, 1);
	for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
		size_t n;
		if (!folder_of(folder, models[m], false))
			continue;
		uint8_t *bytes = to_mmproj(folder, DTYPE_F32, NULL, &n);
		for (unsigned i = 0; i < each; i++) {
			size_t at[3];
			uint8_t was[3];
			for (unsigned k = 0; k < 3; k++) { /* of the header, which the first 3 000 bytes are within */
				random = random * 6364136223846793005u + 1442695040888963407u;
				at[k] = (random >> 33) % 3000;
				was[k] = bytes[at[k]];
				bytes[at[k]] ^= (uint8_t)(1u << (random >> 60) % 8);
			}
			open_damaged(own_path(path, "damaged.gguf"), bytes, i % 8 ? n : n * (i % 64) / 64, c);
			for (unsigned k = 3; k-- > 0;)
				bytes[at[k]] = was[k];
		}
		free(bytes);
	}
	jit_compute_close(c);
	remove_all();
}

/* ---- a text model and its encoder in one folder */

static jit_model *model_opened(const char *path)
{
	jit_error e = { 0 };
	jit_model *m = jit_model_open(path, NULL, &e);

	if (!m)
		fail_msg("%s", e.message);
	return m;
}

/* The features of a picture's file, from the pair and from the folder of safetensors. */
static void compare_seers(jit_compute *c, jit_model *m, const char *gguf, const char *folder)
{
	char path[1100];
	struct error err = { 0 };
	jit_model *other = model_opened(folder);
	struct jit_image_encoder *seer[] = { seer_open(gguf, m, c, &err), seer_open(folder, other, c, &err) };
	struct jit_image *seen[2];
	size_t n;

	snprintf(path, sizeof path, "%s/image0.png", folder);
	uint8_t *bytes = file_bytes(path, &n);
	for (int i = 0; i < 2; i++)
		if (!seer[i] || !(seen[i] = seer_read(seer[i], bytes, n, "image0.png", NULL, &err)) ||
		    !image_encode(seen[i], &err))
			fail_msg("%s", err.text);
	assert_int_equal(seen[0]->image.n_parts, seen[1]->image.n_parts);
	for (uint32_t i = 0; i < seen[0]->image.n_parts; i++) {
		const struct image_features *x = seen[0]->part[i], *y = seen[1]->part[i];
		assert_int_equal(x->tokens, y->tokens);
		assert_int_equal(x->levels, y->levels);
		assert_memory_equal(x->values, y->values, x->levels * x->tokens * x->width * sizeof *x->values);
	}
	for (int i = 0; i < 2; i++) {
		image_release(seen[i]);
		seer_close(seer[i]);
	}
	free(bytes);
	jit_model_close(other);
}

void test_pair_found(void **state)
{
	char folder[1024], from[1100], to[1024], pair[1024], second[1024], other[1024];
	struct error err = { 0 };
	(void)state;

	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	if (!folder_of(folder, "see-gemma3-a", false))
		return;
	jit_compute *c = compute_open("cpu", NULL, 2);
	snprintf(from, sizeof from, "%s/model-bf16.gguf", folder);
	copy_file(own_path(to, "model.gguf"), from, NULL, NULL);
	jit_model *m = model_opened(dir); /* alone, and beside its encoder */
	assert_null(seer_open(to, m, c, &err));
	assert_non_null(strstr(err.text, "there is no image encoder beside it, expected a file mmproj-*.gguf"));
	write_mmproj(own_path(pair, "mmproj-F32.gguf"), folder, DTYPE_F32, NULL);
	jit_model_close(m);
	m = model_opened(dir);
	compare_seers(c, m, to, folder);
	compare_seers(c, m, dir, folder);
	err = (struct error){ 0 };
	assert_true(folder_of(other, "see-lfm2vl-a", false));
	write_mmproj(own_path(second, "LFM.MMPROJ.gguf"), other, DTYPE_F32,
	             &(struct mmproj_edit){ .without_tensor = "mm.2.bias" });
	assert_null(seer_open(to, m, c, &err));
	assert_non_null(
		strstr(err.text, "holds 2 files for pictures (LFM.MMPROJ.gguf, mmproj-F32.gguf), expected one"));
	err = (struct error){ 0 };
	assert_null(seer_open_pair(second, m, c, &err));
	assert_non_null(strstr(err.text, "the tensor mm.2.bias is missing"));
	err = (struct error){ 0 };
	struct jit_image_encoder *seer = seer_open_pair(pair, m, c, &err);
	assert_non_null(seer);
	seer_close(seer);
	assert_null(seer_open_pair(to, m, c, &err));
	assert_non_null(strstr(err.text, "general.architecture is gemma3, expected clip"));
	jit_model_close(m);
	jit_compute_close(c);
	remove_all();
}
