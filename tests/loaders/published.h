/* tests/loaders/published.h - what the tests of published models share. */
#ifndef TESTS_LOADERS_PUBLISHED_H
#define TESTS_LOADERS_PUBLISHED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/model/model_load.h"

static const char experts[] = "mixture of experts", latent[] = "latent attention", mean[] = "subtract the mean",
		  images[] = "a part for images", fused[] = "Q, K and V in one tensor", unknown[] = "expected llama, ";

/* What the sentence says of each model_type or general.architecture that does not run. */
static const struct {
	const char *type, *part;
} refused[] = {
	{ "minimax_m3", experts },
	{ "dbrx", experts },
	{ "mimo_v2_flash", experts },
	{ "step3p7", experts },
	{ "kimi_k3", "recurrent state (Kimi" },
	{ "deepseek_v32", latent },
	{ "deepseek_v4", latent },
	{ "deepseek_ref", latent },
	{ "glm_moe_dsa", latent },
	{ "glm-dsa", latent },
	{ "phi3small", "block-sparse" },
	{ "chatglm", fused },
	{ "qwen", fused },
	{ "internlm2", fused },
	{ "baichuan", "ALiBi" },
	{ "exaone", "names of tensors" },
	{ "nemotron-nas", "layers of different sizes" },
	{ "mimo", "predict several tokens" },
	{ "codegen", mean },
	{ "llava", images }, /* without a text_config */
	{ "mllama", images },
	{ "phi3_v", images },
	{ "phi4mm", images },
	{ "molmo", images },
	{ "deepseek_vl_v2", images },
	{ "multi_modality", images },
	{ "kimi_k25", images },
	{ "lfm2_vl", "expected at least 3 in a layer" }, /* it runs; the weights made up here are others */
	{ "jamba", "taps of the convolutions is 1" },
	{ "yuan", unknown },
	{ "minimind", unknown },
	{ "bert", "token_embd.weight is missing" }, /* which runs: of its tensors none are made here */
};

/* The sizes that tensors follow from. */
struct sizes {
	uint64_t layers, hidden, ffn, vocab, heads, kv_heads, head_dim;
	bool tied, qkv_bias, o_bias, mlp_bias, qk_norm, fused; /* fused: gate and up in one */
	uint64_t experts, expert_ffn;
};

/* The header of a safetensors file, written entry by entry, of which only the descriptions are there. */
struct header {
	struct bytes b;
	uint64_t at;
};

struct counts {
	unsigned opened, refused;
};

const char *refusal(const char *type);
void text_of(struct bytes *b, const char *s);
void check_said(const char *name, const uint8_t *weights, size_t n, const char *config, size_t n_config,
                const char *part, struct counts *c);

uint64_t number(json_t *o, const char *key, uint64_t otherwise);
/* A matrix, or with 0 rows a vector; one tensor for all experts. */
void entry(struct header *h, const char *name, uint64_t rows, uint64_t cols);
void stacked_entry(struct header *h, const char *name, uint64_t count, uint64_t rows, uint64_t cols);

/* published_routed.c: a layer of a model with latent attention, or of GLM 4.5; one behind the others is made to predict
 * further tokens. The second is for GGUF files. */
struct gguf_writer;
void beside_entries(struct header *h, json_t *config, const char *base, uint64_t layer);
/* MXFP4: blocks and scales of all experts' rows. */
void mxfp4_entries(struct header *h, const char *name, uint64_t n_experts, uint64_t rows, uint64_t cols);
void routed_entries(struct header *h, json_t *config, const char *base, uint64_t layer);
/* published_centred.c: of models whose norms subtract the mean and have biases, what a layer has beside the usual
 * tensors (size: of the hidden state, of the queries and of the feed-forward layer), and what stands outside layers. */
static const char expert_types[] =
	"qwen3_moe mixtral phimoe granitemoe qwen3_5_moe_text qwen3_vl_moe_text gpt_oss minimax_m2";
static const char centred_types[] = "phi stablelm phimoe";
void centred_entries(struct header *h, const char *type, const char *base, uint64_t layer, const uint64_t size[3]);
void centred_outer(struct header *h, const char *type, const char *base, uint64_t hidden, uint64_t vocab);
/* published_scan.c: a layer of Nemotron-H, which is one thing alone. */
void one_part_entries(struct header *h, json_t *config, uint64_t layer);
void routed_infos(struct gguf_writer *w, json_t *kv, const char *arch);
/* published_gguf_tests.c: an integer among a file's keys; a tensor of which only the description is there, at *at. */
uint64_t key_number(json_t *kv, const char *arch, const char *suffix, uint64_t otherwise);
void describe(struct gguf_writer *w, const char *name, enum dtype type, const uint64_t ne[3], uint64_t *at);

/* Of these, configurations alone are published; what they lack is the first tensor. */
static const char bare_types[] = "falcon gpt_neox gptj gpt_bigcode opt minicpm3 bloom mpt gpt2";

/* The tests of the other files of the program: the number that failed. */
int published_gguf_tests(void);

void fill_up_llama(json_t *text);

#endif
