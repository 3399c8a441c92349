/* tests/fuzz/fuzz_towers.c - arbitrary bytes as the file of an image encoder: a GGUF file for --mmproj, or two bytes
 * with the length of a config.json, this, and a safetensors file. What opens has features of the size that it says, for
 * a picture that its image processor makes; where the encoder is small, these are computed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_kernel.h"
#include "pictures/processor.h"
#include "tests/fuzz/fuzz.h"
#include "tests/loaders/gguf_writer.h"
#include "vision/tower.h"

enum { SIDE = 16, NUMBERS_MAX = 1 << 12, WIDTH_MAX = 64, LAYERS_MAX = 4 };

static jit_compute *compute;

static void need(int condition)
{
	if (!condition)
		abort();
}

static void close_compute(void) { jit_compute_close(compute); }

static void begin(void)
{
	if (compute)
		return;
	compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "ref", .threads = 1, .cache_dir = ""), NULL);
	need(compute && !atexit(close_compute));
}

/* ---- what was opened */

static void encode(struct tower *t, const struct processed_image *image)
{
	const struct tower_spec *s = tower_spec_of(t);

	for (uint32_t i = 0; i < image->n_parts; i++) {
		const struct image_part *part = &image->parts[i];
		const bool planes = image->layout == IMAGE_PLANES;
		const struct tower_pixels p = { part->values, 1, planes ? part->height : part->rows,
			                        planes ? part->width : part->columns };
		const uint64_t each = planes ? s->channels : tower_patch_numbers(s);
		struct tower_features f;
		struct error err = { 0 };
		uint64_t tokens;
		if (planes != !(s->flags & TOWER_ROWS) || (uint64_t)p.height * p.width * each != part->n_values)
			continue;
		if (!tower_encode(t, &p, &f, &err)) {
			need(err.text[0] && !f.values);
			continue;
		}
		need(tower_tokens(s, &p, &tokens, &err) && tokens == f.tokens && f.width == s->out);
		free(f.values);
	}
}

/* A picture as its file's processor makes it. */
static void use_pair(struct tower *t)
{
	const struct tower_spec *s = tower_spec_of(t);
	struct image_processor processor;
	struct processed_image image;
	struct picture picture;
	struct error err = { 0 };

	if (!tower_read_processor(t, &processor, &err)) {
		need(err.text[0] != 0);
		return;
	}
	if (!processor_plan(&processor, SIDE, SIDE, &image, &err)) {
		need(err.text[0] != 0);
		return;
	}
	const bool small = image.n_values <= NUMBERS_MAX && s->hidden <= WIDTH_MAX && s->ffn <= WIDTH_MAX &&
	                   s->layers <= LAYERS_MAX && s->out <= WIDTH_MAX;
	processed_image_free(&image);
	if (!small)
		return;
	need(picture_make(&picture, SIDE, SIDE, &err));
	memset(picture.rgb, 7, SIDE * SIDE * 3);
	if (processor_run(&processor, &picture, &image, &err)) {
		encode(t, &image);
		processed_image_free(&image);
	}
	picture_free(&picture);
}

void fuzz_towers(const uint8_t *p, size_t n)
{
	const bool pair = n >= 4 && memcmp(p, "GGUF", 4) == 0;
	struct error err = { 0 };
	uint16_t length;
	const char *path;

	begin();
	if (pair) {
		path = fuzz_file(0, "mmproj.gguf", p, n);
	} else {
		if (n < sizeof length)
			return;
		memcpy(&length, p, sizeof length);
		const size_t config = length < n - 2 ? length : n - 2;
		fuzz_file(0, "config.json", p + 2, config);
		fuzz_file(1, "model.safetensors", p + 2 + config, n - 2 - config);
		path = fuzz_directory();
	}
	struct tower *t = tower_open(path, compute, &err);
	need(t != NULL || err.text[0] != 0);
	if (t && pair)
		use_pair(t);
	tower_close(t);
	if (pair) {
		unlink(path);
		return;
	}
	unlink(fuzz_file(0, "config.json", p, 0));
	unlink(fuzz_file(1, "model.safetensors", p, 0));
}

/* ---- seeds: encoders with one layer of eight numbers, in two heads, and patches of 2 x 2 pixels */

enum { HIDDEN = 8, FFN = 16, OUT = 12, PATCH = 2, SQUARE = 3 * PATCH * PATCH };

struct seed_tensor {
	const char *name;
	uint64_t dim[4]; /* as in GGUF, rows inside; ends with 0 */
};

static const struct seed_tensor of_layer[] = {
	{ "v.blk.0.ln1.weight", { HIDDEN } },
	{ "v.blk.0.ln1.bias", { HIDDEN } },
	{ "v.blk.0.ln2.weight", { HIDDEN } },
	{ "v.blk.0.ln2.bias", { HIDDEN } },
	{ "v.blk.0.attn_q.weight", { HIDDEN, HIDDEN } },
	{ "v.blk.0.attn_q.bias", { HIDDEN } },
	{ "v.blk.0.attn_k.weight", { HIDDEN, HIDDEN } },
	{ "v.blk.0.attn_k.bias", { HIDDEN } },
	{ "v.blk.0.attn_v.weight", { HIDDEN, HIDDEN } },
	{ "v.blk.0.attn_v.bias", { HIDDEN } },
	{ "v.blk.0.attn_out.weight", { HIDDEN, HIDDEN } },
	{ "v.blk.0.attn_out.bias", { HIDDEN } },
	{ "v.blk.0.ffn_up.weight", { HIDDEN, FFN } },
	{ "v.blk.0.ffn_up.bias", { FFN } },
	{ "v.blk.0.ffn_down.weight", { FFN, HIDDEN } },
	{ "v.blk.0.ffn_down.bias", { HIDDEN } },
	{ "v.post_ln.weight", { HIDDEN } },
	{ "v.post_ln.bias", { HIDDEN } },
	{ "v.patch_embd.weight", { PATCH, PATCH, 3, HIDDEN } },
	{ NULL, { 0 } },
};
static const struct seed_tensor of_qwen[] = {
	{ "v.patch_embd.weight.1", { PATCH, PATCH, 3, HIDDEN } },
	{ "mm.0.weight", { 4 * HIDDEN, 4 * HIDDEN } },
	{ "mm.0.bias", { 4 * HIDDEN } },
	{ "mm.2.weight", { 4 * HIDDEN, OUT } },
	{ "mm.2.bias", { OUT } },
	{ NULL, { 0 } }
};
static const struct seed_tensor of_gemma[] = {
	{ "v.patch_embd.bias", { HIDDEN } },
	{ "v.position_embd.weight", { HIDDEN, 64 } },
	{ "mm.soft_emb_norm.weight", { HIDDEN } },
	{ "mm.input_projection.weight", { OUT, HIDDEN } },
	{ NULL, { 0 } }
};

static void put_tensors(struct gguf_writer *w, const struct seed_tensor *t)
{
	static float values[4096];

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		values[i] = (float)(i * 7 % 13) / 16 - 0.25f;
	for (; t->name; t++) {
		uint64_t n = 1;
		unsigned rank = 0;
		while (rank < 4 && t->dim[rank])
			n *= t->dim[rank++];
		gguf_write_tensor(w, t->name, DTYPE_F32, rank, t->dim, values, n * sizeof *values);
	}
}

static uint8_t *make_pair(const char *projector, const struct seed_tensor *own, size_t *n)
{
	static const float half[3] = { 0.5f, 0.5f, 0.5f };
	struct gguf_writer w;

	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.architecture", "clip");
	gguf_write_bool(&w, "clip.has_vision_encoder", true);
	gguf_write_string(&w, "clip.projector_type", projector);
	gguf_write_u32(&w, "clip.vision.projection_dim", OUT);
	gguf_write_u32(&w, "clip.vision.image_size", SIDE);
	gguf_write_u32(&w, "clip.vision.patch_size", PATCH);
	gguf_write_u32(&w, "clip.vision.embedding_length", HIDDEN);
	gguf_write_u32(&w, "clip.vision.feed_forward_length", FFN);
	gguf_write_u32(&w, "clip.vision.block_count", 1);
	gguf_write_u32(&w, "clip.vision.attention.head_count", 2);
	gguf_write_array(&w, "clip.vision.image_mean", GGUF_F32, 3, half, sizeof half);
	gguf_write_array(&w, "clip.vision.image_std", GGUF_F32, 3, half, sizeof half);
	gguf_write_f32(&w, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
	if (strcmp(projector, "gemma3") == 0) {
		gguf_write_u32(&w, "clip.vision.projector.scale_factor", 2);
		gguf_write_bool(&w, "clip.use_gelu", true);
	}
	put_tensors(&w, of_layer);
	put_tensors(&w, own);
	uint8_t *bytes = gguf_writer_finish(&w, n);
	gguf_writer_free(&w);
	return bytes;
}

static const char config[] =
	"{\"model_type\": \"qwen2_vl\", \"vision_config\": {\"model_type\": \"qwen2_vl\", \"depth\": 1, \"embed_dim\": "
	"8, \"hidden_size\": 12, \"mlp_ratio\": 2, \"num_heads\": 2, \"patch_size\": 2}}";
static const struct {
	const char *name;
	unsigned rows, columns; /* rows 0: a vector */
} of_folder[] = {
	{ "visual.patch_embed.proj.weight", HIDDEN, 2 * SQUARE },
	{ "visual.blocks.0.norm1.weight", 0, HIDDEN },
	{ "visual.blocks.0.norm1.bias", 0, HIDDEN },
	{ "visual.blocks.0.attn.qkv.weight", 3 * HIDDEN, HIDDEN },
	{ "visual.blocks.0.attn.qkv.bias", 0, 3 * HIDDEN },
	{ "visual.blocks.0.attn.proj.weight", HIDDEN, HIDDEN },
	{ "visual.blocks.0.attn.proj.bias", 0, HIDDEN },
	{ "visual.blocks.0.norm2.weight", 0, HIDDEN },
	{ "visual.blocks.0.norm2.bias", 0, HIDDEN },
	{ "visual.blocks.0.mlp.fc1.weight", FFN, HIDDEN },
	{ "visual.blocks.0.mlp.fc1.bias", 0, FFN },
	{ "visual.blocks.0.mlp.fc2.weight", HIDDEN, FFN },
	{ "visual.blocks.0.mlp.fc2.bias", 0, HIDDEN },
	{ "visual.merger.ln_q.weight", 0, HIDDEN },
	{ "visual.merger.ln_q.bias", 0, HIDDEN },
	{ "visual.merger.mlp.0.weight", 4 * HIDDEN, 4 * HIDDEN },
	{ "visual.merger.mlp.0.bias", 0, 4 * HIDDEN },
	{ "visual.merger.mlp.2.weight", OUT, 4 * HIDDEN },
	{ "visual.merger.mlp.2.bias", 0, OUT },
};

static void give_folder(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static uint8_t all[1 << 16];
	char header[8192] = "{";
	uint16_t length = sizeof config - 1;
	uint64_t n = 1, at = 0, size = 0;

	for (size_t i = 0; i < sizeof of_folder / sizeof *of_folder; i++) {
		const uint64_t bytes = 4ull * of_folder[i].columns * (of_folder[i].rows ? of_folder[i].rows : 1);
		n += (uint64_t)snprintf(header + n, sizeof header - n, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
		                        i ? "," : "", of_folder[i].name);
		if (of_folder[i].rows)
			n += (uint64_t)snprintf(header + n, sizeof header - n, "%u,", of_folder[i].rows);
		n += (uint64_t)snprintf(header + n, sizeof header - n, "%u],\"data_offsets\":[%llu,%llu]}",
		                        of_folder[i].columns, (unsigned long long)at, (unsigned long long)(at + bytes));
		at += bytes;
	}
	n += (uint64_t)snprintf(header + n, sizeof header - n, "}");
	memcpy(all, &length, 2);
	memcpy(all + 2, config, length);
	size = 2u + length;
	memcpy(all + size, &n, 8);
	memcpy(all + size + 8, header, n);
	size += 8 + n;
	need(size + at <= sizeof all);
	take(user, all, size + at);
}

void fuzz_towers_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	for (int i = 0; i < 2; i++) {
		size_t n;
		uint8_t *bytes = make_pair(i ? "gemma3" : "qwen2vl_merger", i ? of_gemma : of_qwen, &n);
		take(user, bytes, n);
		free(bytes);
	}
	give_folder(take, user);
}
