/* tests/vision/to_mmproj.c - see to_mmproj.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/safetensors.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/support/shared.h"
#include "tests/vision/to_mmproj.h"

enum { NAME = 200 };

static const struct family {
	const char *type, *projector, *merge_key;
	const char *outer; /* names of the projector's tensors: "from to", in turn, which begin so */
} families[] = {
	{ "llava", "mlp", NULL, "linear_1. mm.0. linear_2. mm.2." },
	{ "smolvlm", "idefics3", "clip.vision.projector.scale_factor", "modality_projection.proj. mm.model.fc." },
	{ "gemma3", "gemma3", "clip.vision.projector.scale_factor",
	  "mm_soft_emb_norm. mm.soft_emb_norm. mm_input_projection_weight mm.input_projection.weight" },
	{ "internvl", "internvl", "clip.vision.projector.scale_factor",
	  "layer_norm. mm.model.mlp.0. linear_1. mm.model.mlp.1. linear_2. mm.model.mlp.3." },
	{ "mistral3", "pixtral", "clip.vision.spatial_merge_size",
	  "norm. mm.input_norm. patch_merger.merging_layer. mm.patch_merger. linear_1. mm.1. linear_2. mm.2." },
	{ "qwen2_5_vl", "qwen2.5vl_merger", NULL, "" },
	{ "qwen2_vl", "qwen2vl_merger", NULL, "" },
	{ "qwen3_vl", "qwen3vl_merger", "clip.vision.spatial_merge_size", "" },
	{ "qwen3_5", "qwen3vl_merger", "clip.vision.spatial_merge_size", "" },
	{ "gemma4", "gemma4v", "clip.vision.projector.scale_factor", "embedding_projection. mm.input_projection." },
	{ "lfm2_vl", "lfm2", "clip.vision.projector.scale_factor",
	  "layer_norm. mm.input_norm. linear_1. mm.1. linear_2. mm.2." },
};

static const char *const of_tower =
	"embeddings.patch_embedding. v.patch_embd. embeddings.patch_embeddings.projection. v.patch_embd. patch_conv. "
	"v.patch_embd. patch_embed.proj. v.patch_embd. embeddings.position_embedding. v.position_embd. "
	"embeddings.position_embeddings v.position_embd.weight pos_embed. v.position_embd. embeddings.class_embedding "
	"v.class_embd embeddings.cls_token v.class_embd pre_layrnorm. v.pre_ln. ln_pre. v.pre_ln. post_layernorm. "
	"v.post_ln. merger.ln_q. v.post_ln. merger.norm. v.post_ln. merger.mlp.0. mm.0. merger.mlp.2. mm.2. "
	"merger.linear_fc1. mm.0. merger.linear_fc2. mm.2. patch_embedder.input_proj. v.patch_embd. "
	"patch_embedder.position_embedding_table v.position_embd.weight std_bias v.std_bias std_scale v.std_scale";
static const char *const of_layer =
	"layer_norm1. ln1. layernorm_before. ln1. attention_norm. ln1. norm1. ln1. layer_norm2. ln2. layernorm_after. "
	"ln2. "
	"ffn_norm. ln2. norm2. ln2. self_attn.q_proj. attn_q. self_attn.k_proj. attn_k. self_attn.v_proj. attn_v. "
	"attention.q_proj. attn_q. attention.k_proj. attn_k. attention.v_proj. attn_v. self_attn.out_proj. attn_out. "
	"attention.projection_layer. attn_out. attention.o_proj. attn_out. attn.proj. attn_out. attn.qkv. attn_qkv. "
	"mlp.fc1. ffn_up. mlp.fc2. ffn_down. mlp.linear_fc1. ffn_up. mlp.linear_fc2. ffn_down. mlp.gate_proj. "
	"ffn_gate. "
	"mlp.up_proj. ffn_up. mlp.down_proj. ffn_down. feed_forward.gate_proj. ffn_gate. feed_forward.up_proj. ffn_up. "
	"feed_forward.down_proj. ffn_down. lambda_1 ls1.weight lambda_2 ls2.weight "
	"input_layernorm. ln1. pre_feedforward_layernorm. ln2. post_attention_layernorm. attn_post_norm. "
	"post_feedforward_layernorm. ffn_post_norm. self_attn.q_norm. attn_q_norm. self_attn.k_norm. attn_k_norm. "
	"self_attn.o_proj. attn_out.";

struct work {
	struct gguf_writer w;
	const struct family *family;
	const struct mmproj_edit *edit;
	json_t *config, *vision;
	enum dtype type;
	const uint8_t *bytes;
};

/* ---- names */

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

/* By a list of pairs of words; false: nothing fits. */
static bool by_pairs(const char *pairs, const char *s, char out[NAME])
{
	char from[NAME], to[NAME];
	int used;

	for (; sscanf(pairs, "%199s %199s%n", from, to, &used) == 2; pairs += used)
		if (strncmp(s, from, strlen(from)) == 0 && snprintf(out, NAME, "%s%s", to, s + strlen(from)))
			return true;
	return false;
}

static int number_of(const struct work *w, unsigned deep)
{
	return (int)json_integer_value(json_array_get(json_object_get(w->vision, "deepstack_visual_indexes"), deep));
}

/* False: the file has it not. */
static bool new_name(const struct work *w, const struct name_ref *name, char out[NAME])
{
	static const char *const towers[] = { "vision_tower.vision_model.", "vision_tower.", "vision_model.",
		                              "visual." };
	static const char *const layers[] = { "encoder.layers.", "encoder.layer.", "transformer.layers.", "blocks." };
	char whole[NAME], rest[NAME];
	const char *s = whole;
	unsigned layer;
	int used = 0;

	snprintf(whole, sizeof whole, "%.*s", (int)name->n, name->p);
	s += begins(s, "model.") ? 6 : 0;
	if (begins(s, "multi_modal_projector.") || begins(s, "connector.") || begins(s, "embed_vision."))
		return by_pairs(w->family->outer, strchr(s, '.') + 1, out);
	size_t i = 0;
	for (; i < 4 && !begins(s, towers[i]); i++)
		;
	if (i == 4)
		return false;
	s += strlen(towers[i]);
	if (strcmp(w->family->projector, "mlp") == 0 && begins(s, "post_layernorm."))
		return false;
	if (by_pairs(of_tower, s, out))
		return true;
	if (sscanf(s, "deepstack_merger_list.%u.%n", &layer, &used) == 1 && used)
		return by_pairs("norm. norm. linear_fc1. fc1. linear_fc2. fc2.", s + used, rest) &&
		       snprintf(out, NAME, "v.deepstack.%d.%s", number_of(w, layer), rest);
	for (i = 0; i < 4; i++) {
		char pattern[40];
		snprintf(pattern, sizeof pattern, "%s%%u.%%n", layers[i]);
		if (sscanf(s, pattern, &layer, &used) == 1 && used && by_pairs(of_layer, s + used, rest))
			return snprintf(out, NAME, "v.blk.%u.%s", layer, rest) > 0;
	}
	return false;
}

/* ---- numbers */

static void put_numbers(struct bytes *b, enum dtype type, const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], 4);
		const uint16_t half = type == DTYPE_F16 ? float_to_half(x[i]) : (uint16_t)(bits >> 16);
		if (type == DTYPE_F32)
			bytes_put(b, &x[i], 4);
		else if (type != DTYPE_Q8_0)
			bytes_put(b, &half, 2);
	}
	for (uint64_t i = 0; type == DTYPE_Q8_0 && i < n; i += 32) {
		float max = 0;
		for (unsigned k = 0; k < 32; k++)
			max = fmaxf(max, fabsf(x[i + k]));
		const uint16_t scale = float_to_half(max / 127);
		bytes_put(b, &scale, 2);
		for (unsigned k = 0; k < 32; k++) {
			const int8_t q = (int8_t)lrintf(max > 0 ? x[i + k] * 127 / max : 0);
			bytes_put(b, &q, 1);
		}
	}
}

static void put(struct work *w, const char *name, enum dtype type, unsigned rank, const uint64_t *dim, const float *x)
{
	uint64_t ne[4], n = 1;
	struct bytes b = { 0 };

	if (w->edit->without_tensor && strcmp(name, w->edit->without_tensor) == 0)
		return;
	for (unsigned i = 0; i < rank; i++) {
		ne[i] = dim[rank - 1 - i];
		n *= ne[i];
	}
	if (rank == 1 || strstr(name, "patch_embd") || strstr(name, "position_embd") || ne[0] % 32)
		type = DTYPE_F32;
	put_numbers(&b, type, x, n);
	gguf_write_tensor(&w->w, name, type, rank, ne, b.p, b.n);
	bytes_forget(&b);
	free(b.p);
}

static uint64_t config_number(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);

	v = v ? v : json_object_get(o, b ? b : a);
	v = json_is_array(v) ? json_array_get(v, 0) : v;
	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* Rows i and half + i of a head become rows 2i and 2i + 1. */
static void pair_rows(const struct work *w, const struct safetensors_tensor *t, float *x)
{
	const uint64_t heads = config_number(w->vision, "num_attention_heads", NULL), dim = t->dim[0] / heads,
		       cols = t->rank > 1 ? t->dim[1] : 1;
	float *copy = malloc(t->dim[0] * cols * sizeof *copy);

	memcpy(copy, x, t->dim[0] * cols * sizeof *copy);
	for (uint64_t h = 0; h < heads; h++)
		for (uint64_t j = 0; j < 2; j++)
			for (uint64_t i = 0; i < dim / 2; i++)
				memcpy(x + (h * dim + i * 2 + j) * cols, copy + (h * dim + j * dim / 2 + i) * cols,
				       cols * sizeof *x);
	free(copy);
}

/* Two frames become tensors of their own. */
static void put_frames(struct work *w, const struct safetensors_tensor *t, const float *x)
{
	const uint64_t dim[] = { t->dim[0], t->dim[1], t->dim[3], t->dim[4] }, square = dim[2] * dim[3];
	float *one = malloc(dim[0] * dim[1] * square * sizeof *one);

	assert_int_equal(t->dim[2], 2);
	for (unsigned f = 0; f < 2; f++) {
		for (uint64_t i = 0; i < dim[0] * dim[1]; i++)
			memcpy(one + i * square, x + (i * 2 + f) * square, square * sizeof *one);
		put(w, f ? "v.patch_embd.weight.1" : "v.patch_embd.weight", DTYPE_F32, 4, dim, one);
	}
	free(one);
}

/* Pixels whose channels are neighbours become planes. */
static void put_planes(struct work *w, const struct safetensors_tensor *t, const float *x)
{
	const uint64_t p = config_number(w->vision, "patch_size", NULL), dim[] = { t->dim[0], 3, p, p };
	float *planes = malloc(dim[0] * 3 * p * p * sizeof *planes);

	for (uint64_t r = 0; r < dim[0]; r++)
		for (uint64_t i = 0; i < p * p; i++)
			for (uint64_t c = 0; c < 3; c++)
				planes[(r * 3 + c) * p * p + i] = x[(r * p * p + i) * 3 + c];
	put(w, "v.patch_embd.weight", DTYPE_F32, 4, dim, planes);
	free(planes);
}

static void put_qkv(struct work *w, const char *name, const struct safetensors_tensor *t, const float *x)
{
	const uint64_t dim[] = { t->dim[0] / 3, t->dim[1] }, each = t->rank > 1 ? dim[0] * dim[1] : dim[0];
	const char *at = strstr(name, "qkv");
	char own[NAME];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(own, sizeof own, "%.*s%c%s", (int)(at - name), name, "qkv"[i], at + 3);
		put(w, own, w->type, t->rank, dim, x + i * each);
	}
}

static void swap_names(char name[NAME])
{
	char *at = strstr(name, "ffn_"), kind[40];

	if (!at)
		return;
	snprintf(kind, sizeof kind, "%.39s", strchr(at, '.'));
	snprintf(at, 60, "%s%s", strncmp(at, "ffn_up", 6) == 0 ? "ffn_down" : "ffn_up", kind);
}

/* A tensor in the shape and order of such files. */
static void put_shaped(struct work *w, const struct safetensors_tensor *t, char name[NAME], const float *x)
{
	uint64_t dim[4] = { 1 };
	unsigned rank = t->rank;
	const uint64_t *from = t->dim;
	while (rank > 1 && *from == 1) {
		rank--;
		from++;
	}
	memcpy(dim, from, (rank < 4 ? rank : 4) * sizeof *dim);
	char *linear = strstr(name, ".linear."); /* Gemma 4's have bounds beside it */
	if (linear)
		memmove(linear, linear + 7, strlen(linear + 7) + 1);
	rank = rank ? rank : 1;
	if (t->rank == 5)
		put_frames(w, t, x);
	else if (strcmp(name, "v.patch_embd.weight") == 0 && t->rank == 2)
		put_planes(w, t, x);
	else if (strstr(name, "qkv") && strcmp(w->family->projector, "qwen3vl_merger") != 0)
		put_qkv(w, name, t, x);
	else
		put(w, name, w->type, rank, dim, x);
}

static void put_tensor(struct work *w, const struct safetensors_tensor *t)
{
	char name[NAME];
	const bool is_half = t->type == DTYPE_BF16;
	const uint64_t n = t->bytes / (is_half ? 2 : 4);
	const bool is_mistral = strcmp(w->family->projector, "pixtral") == 0;

	if (!new_name(w, &t->name, name))
		return;
	assert_true(is_half || t->type == DTYPE_F32);
	float *x = malloc(n * sizeof *x);
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *at = w->bytes + t->offset + (is_half ? 2 : 4) * i;
		const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
		memcpy(&x[i], is_half ? (const void *)&bits : at, 4);
		if (strstr(name, "soft_emb_norm"))
			x[i] += 1;
	}
	if (is_mistral && (strstr(name, "attn_q.") || strstr(name, "attn_k.")))
		pair_rows(w, t, x);
	if (w->edit->swapped)
		swap_names(name);
	put_shaped(w, t, name, x);
	free(x);
}

/* ---- keys */

static bool own_key(const struct work *w, const char *key)
{
	const struct mmproj_edit *e = w->edit;
	const char *const others[] = { e->without, e->number, e->text, e->on, e->off, e->list };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (others[i] && strcmp(others[i], key) == 0)
			return false;
	return true;
}

static void put_u32(struct work *w, const char *key, uint64_t value)
{
	if (own_key(w, key))
		gguf_write_u32(&w->w, key, (uint32_t)value);
}

static void put_switch(struct work *w, const char *key)
{
	if (own_key(w, key))
		gguf_write_bool(&w->w, key, true);
}

static void put_colors(struct work *w, const char *folder)
{
	char path[1100];
	json_error_t je;

	snprintf(path, sizeof path, "%s/preprocessor_config.json", folder);
	json_t *p = json_load_file(path, 0, &je);
	if (!p) /* as of plain_towers.py: nobody asks */
		return;
	for (int which = 0; which < 2; which++) {
		const json_t *a = json_object_get(p, which ? "image_std" : "image_mean");
		float three[3];
		for (size_t i = 0; i < 3; i++)
			three[i] = (float)json_number_value(json_array_get(a, i));
		gguf_write_array(&w->w, which ? "clip.vision.image_std" : "clip.vision.image_mean", GGUF_F32, 3, three,
		                 sizeof three);
	}
	const json_t *size = json_object_get(json_object_get(p, "size"), "longest_edge");
	if (strcmp(w->family->projector, "idefics3") == 0 && json_is_integer(size))
		put_u32(w, "clip.vision.preproc_image_size", (uint64_t)json_integer_value(size));
	json_decref(p);
}

static uint64_t merge_of(const struct work *w)
{
	const double ratio = json_number_value(json_object_get(w->config, "downsample_ratio"));

	if (strcmp(w->family->projector, "gemma3") == 0) {
		const uint64_t side =
			config_number(w->vision, "image_size", NULL) / config_number(w->vision, "patch_size", NULL);
		return side / (uint64_t)sqrt((double)config_number(w->config, "mm_tokens_per_image", NULL));
	}
	if (strcmp(w->family->projector, "internvl") == 0)
		return (uint64_t)(1 / ratio);
	if (strcmp(w->family->projector, "gemma4v") == 0)
		return config_number(w->vision, "pooling_kernel_size", NULL);
	return json_object_get(w->vision, "spatial_merge_size") ? config_number(w->vision, "spatial_merge_size", NULL)
	       : json_object_get(w->config, "spatial_merge_size")
	               ? config_number(w->config, "spatial_merge_size", NULL)
	               : config_number(w->config, "scale_factor", "downsample_factor");
}

static double eps_of(const struct work *w)
{
	const bool is_gemma4 = strcmp(w->family->projector, "gemma4v") == 0;
	const json_t *v = json_object_get(w->vision, is_gemma4 ? "rms_norm_eps" : "layer_norm_eps");

	return v ? json_number_value(v) : strcmp(w->family->projector, "pixtral") == 0 ? 1e-5 : 1e-6;
}

static void put_qwen_keys(struct work *w, uint64_t layers)
{
	const json_t *full = json_object_get(w->vision, "fullatt_block_indexes"),
		     *deep = json_object_get(w->vision, "deepstack_visual_indexes");
	uint8_t is_deep[64] = { 0 };

	if (full) {
		put_u32(w, "clip.vision.n_wa_pattern", (uint64_t)json_integer_value(json_array_get(full, 0)) + 1);
		put_u32(w, "clip.vision.window_size", config_number(w->vision, "window_size", NULL));
		put_switch(w, "clip.use_silu");
	}
	if (strcmp(w->family->projector, "qwen3vl_merger") != 0)
		return;
	for (size_t i = 0; i < json_array_size(deep); i++)
		is_deep[json_integer_value(json_array_get(deep, i))] = 1;
	if (own_key(w, "clip.vision.is_deepstack_layers"))
		gguf_write_array(&w->w, "clip.vision.is_deepstack_layers", GGUF_BOOL, layers, is_deep, layers);
	put_switch(w, "clip.use_gelu");
}

static void put_keys(struct work *w, const char *folder)
{
	const json_t *text = json_object_get(w->config, "text_config");
	const uint64_t layers = config_number(w->vision, "num_hidden_layers", "depth");
	const bool is_qwen = strstr(w->family->projector, "merger"),
		   is_llava = strcmp(w->family->projector, "mlp") == 0;
	const struct mmproj_edit *e = w->edit;

	if (own_key(w, "general.architecture"))
		gguf_write_string(&w->w, "general.architecture", "clip");
	put_switch(w, "clip.has_vision_encoder");
	if (own_key(w, "clip.projector_type"))
		gguf_write_string(&w->w, "clip.projector_type", w->family->projector);
	put_u32(w, "clip.vision.projection_dim",
	        is_llava ? 32 : config_number(text ? text : w->config, "hidden_size", NULL));
	put_u32(w, "clip.vision.image_size",
	        json_object_get(w->vision, "image_size") ? config_number(w->vision, "image_size", NULL) : 256);
	put_u32(w, "clip.vision.patch_size", config_number(w->vision, "patch_size", NULL));
	put_u32(w, "clip.vision.embedding_length", config_number(w->vision, "hidden_size", NULL));
	put_u32(w, "clip.vision.feed_forward_length", config_number(w->vision, "intermediate_size", NULL));
	put_u32(w, "clip.vision.block_count", layers);
	put_u32(w, "clip.vision.attention.head_count", config_number(w->vision, "num_attention_heads", "num_heads"));
	put_colors(w, folder);
	if (own_key(w, "clip.vision.attention.layer_norm_epsilon"))
		gguf_write_f32(&w->w, "clip.vision.attention.layer_norm_epsilon", (float)eps_of(w));
	if (w->family->merge_key)
		put_u32(w, w->family->merge_key, merge_of(w));
	if (is_qwen)
		put_qwen_keys(w, layers);
	else if (!is_llava)
		put_switch(w, "clip.use_gelu");
	if (is_llava && own_key(w, "clip.vision.feature_layer")) {
		const uint32_t layer = (uint32_t)layers - 1;
		gguf_write_array(&w->w, "clip.vision.feature_layer", GGUF_I32, 1, &layer, sizeof layer);
	}
	if (e->number)
		gguf_write_u32(&w->w, e->number, e->value);
	if (e->text)
		gguf_write_string(&w->w, e->text, e->content);
	if (e->on)
		gguf_write_bool(&w->w, e->on, true);
	if (e->off)
		gguf_write_bool(&w->w, e->off, false);
	if (e->list)
		gguf_write_array(&w->w, e->list, GGUF_U32, e->count, e->values, e->count * sizeof *e->values);
}

uint8_t *to_mmproj(const char *folder, enum dtype type, const struct mmproj_edit *e, size_t *n)
{
	static const struct mmproj_edit none;
	struct work w = { .type = type, .edit = e ? e : &none };
	struct safetensors index;
	struct error err = { 0 };
	char path[1100];
	json_error_t je;
	size_t size;

	snprintf(path, sizeof path, "%s/config.json", folder);
	w.config = json_load_file(path, 0, &je);
	assert_non_null(w.config);
	w.vision = json_object_get(w.config, "vision_config");
	const char *own = json_string_value(json_object_get(w.config, "model_type"));
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (strcmp(families[i].type, own) == 0)
			w.family = &families[i];
	assert_non_null(w.family);
	snprintf(path, sizeof path, "%s/model.safetensors", folder);
	uint8_t *bytes = file_bytes(path, &size);
	assert_true(safetensors_parse(&index, bytes, size, path, false, &err));
	w.bytes = bytes;
	gguf_writer_start(&w.w, 3, 32);
	put_keys(&w, folder);
	for (uint32_t i = 0; i < index.n_tensors; i++)
		put_tensor(&w, &index.tensor[i]);
	if (w.edit->more_tensor)
		put(&w, w.edit->more_tensor, DTYPE_F32, 1, &(uint64_t){ 1 }, &(float){ 1 });
	uint8_t *out = gguf_writer_finish(&w.w, n);
	gguf_writer_free(&w.w);
	safetensors_free(&index);
	free(bytes);
	json_decref(w.config);
	return out;
}

void write_mmproj(const char *path, const char *folder, enum dtype type, const struct mmproj_edit *e)
{
	size_t n;
	uint8_t *bytes = to_mmproj(folder, type, e, &n);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
}
