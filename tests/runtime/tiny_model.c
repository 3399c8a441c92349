/* tests/runtime/tiny_model.c - see tiny_model.h. Failures of the system end the test program. */
#include "tests/runtime/tiny_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/loaders/st_writer.h"

const struct tiny_model tiny_min = {
	.arch = "llama",
	.layers = 1,
	.hidden = 4,
	.ffn = 6,
	.heads = 2,
	.kv_heads = 1,
	.head_dim = 2,
	.vocab = 5,
	.type = DTYPE_F32,
	.tied = true
};

char *tiny_config(const struct tiny_model *t)
{
	char *out = NULL;

	if (asprintf(&out,
	             "{\"model_type\": \"%s\", \"num_hidden_layers\": %u, \"hidden_size\": %u, \"intermediate_size\": "
	             "%u, \"num_attention_heads\": %u, "
	             "\"num_key_value_heads\": %u, \"head_dim\": %u, \"vocab_size\": %u, \"hidden_act\": \"silu\", "
	             "\"rms_norm_eps\": 1e-05, "
	             "\"max_position_embeddings\": 512, \"tie_word_embeddings\": %s, \"attention_bias\": %s, "
	             "\"mlp_bias\": %s%s}",
	             t->arch, t->layers, t->hidden, t->ffn, t->heads, t->kv_heads, t->head_dim, t->vocab,
	             t->tied ? "true" : "false", t->attention_bias ? "true" : "false", t->mlp_bias ? "true" : "false",
	             t->extra ? t->extra : "") < 0)
		abort();
	return out;
}

struct build {
	const struct tiny_model *t;
	struct st_writer w;
	uint32_t seed;
};

/* Multiples of 1/64 below 1: exact in every float type here. */
static float next_value(struct build *b)
{
	b->seed = b->seed * 1664525 + 1013904223;
	return (float)((int32_t)(b->seed >> 25) - 64) / 64;
}

static void put(struct build *b, const char *name, uint64_t rows, uint64_t cols)
{
	enum dtype type = rows ? b->t->type : DTYPE_F32;
	uint64_t count = (rows ? rows : 1) * cols;
	struct bytes data = { 0 };

	if (b->t->skip && strcmp(b->t->skip, name) == 0)
		return;
	for (uint64_t i = 0; i < count; i++) {
		float f = next_value(b);
		uint32_t bits;
		memcpy(&bits, &f, 4);
		uint16_t h = type == DTYPE_F16 ? float_to_half(f) : (uint16_t)(bits >> 16);
		bytes_put(&data, type == DTYPE_F32 ? (const void *)&f : &h, dtype_table[type].bytes);
	}
	if (rows)
		st_write_tensor(&b->w, name, type, 2, (const uint64_t[]){ rows, cols }, data.p, data.n);
	else
		st_write_tensor(&b->w, name, type, 1, &cols, data.p, data.n);
	bytes_forget(&data);
}

static void put_layer(struct build *b, uint32_t i)
{
	const struct tiny_model *t = b->t;
	uint64_t q = (uint64_t)t->heads * t->head_dim, kv = (uint64_t)t->kv_heads * t->head_dim, h = t->hidden,
		 f = t->ffn;
	bool qwen2 = strcmp(t->arch, "qwen2") == 0, qwen3 = strcmp(t->arch, "qwen3") == 0,
	     bias = qwen2 || t->attention_bias;
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.weight", 0, h, true },
		{ "self_attn.q_proj.weight", q, h, true },
		{ "self_attn.k_proj.weight", kv, h, true },
		{ "self_attn.v_proj.weight", kv, h, true },
		{ "self_attn.o_proj.weight", h, q, true },
		{ "post_attention_layernorm.weight", 0, h, true },
		{ "mlp.gate_proj.weight", f, h, true },
		{ "mlp.up_proj.weight", f, h, true },
		{ "mlp.down_proj.weight", h, f, true },
		{ "self_attn.q_proj.bias", 0, q, bias },
		{ "self_attn.k_proj.bias", 0, kv, bias },
		{ "self_attn.v_proj.bias", 0, kv, bias },
		{ "self_attn.o_proj.bias", 0, h, t->attention_bias && !qwen2 },
		{ "mlp.gate_proj.bias", 0, f, t->mlp_bias },
		{ "mlp.up_proj.bias", 0, f, t->mlp_bias },
		{ "mlp.down_proj.bias", 0, h, t->mlp_bias },
		{ "self_attn.q_norm.weight", 0, t->head_dim, qwen3 },
		{ "self_attn.k_norm.weight", 0, t->head_dim, qwen3 },
	};
	char name[100];

	for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
		snprintf(name, sizeof name, "model.layers.%" PRIu32 ".%s", i, list[k].name);
		if (list[k].there)
			put(b, name, list[k].rows, list[k].cols);
	}
}

uint8_t *tiny_safetensors(const struct tiny_model *t, size_t *n)
{
	struct build b = { .t = t, .seed = 1 };

	st_writer_start(&b.w);
	put(&b, "model.embed_tokens.weight", t->vocab, t->hidden);
	put(&b, "model.norm.weight", 0, t->hidden);
	if (!t->tied)
		put(&b, "lm_head.weight", t->vocab, t->hidden);
	for (uint32_t i = 0; i < t->layers; i++)
		put_layer(&b, i);
	if (t->add)
		put(&b, t->add, 0, 1);
	if (t->head == HEAD_EQUAL)
		b.seed = 1;
	if (t->head != HEAD_AS_TIED)
		put(&b, "lm_head.weight", t->vocab, t->hidden);
	return st_writer_finish(&b.w, t->align ? t->align : 8, n);
}

uint8_t *tiny_gguf(const struct tiny_model *t, enum dtype type, size_t *n, struct error *err)
{
	size_t n_weights;
	uint8_t *weights = tiny_safetensors(t, &n_weights), *out = NULL;
	char *config = tiny_config(t);
	struct gguf_writer w = { 0 };
	struct model m;

	if (model_open_memory(&m, weights, n_weights, config, strlen(config), 0, err)) {
		if (model_to_gguf(&w, &m, type, err))
			out = gguf_writer_finish(&w, n);
		gguf_writer_free(&w);
		model_close(&m);
	}
	free(weights);
	free(config);
	return out;
}

void tiny_write(const char *dir, const char *name, const void *p, size_t n)
{
	char path[1200];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
		abort();
}

void tiny_write_hf(const char *dir, const struct tiny_model *t)
{
	size_t n;
	uint8_t *weights = tiny_safetensors(t, &n);
	char *config = tiny_config(t);

	tiny_write(dir, "model.safetensors", weights, n);
	tiny_write(dir, "config.json", config, strlen(config));
	free(weights);
	free(config);
}
