/* tests/loaders/published_routed.c - the tensors that follow from what is published of models with latent attention,
 * and of GLM 4.5: dense layers, then layers with experts, then layers that predict further tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/published.h"

/* A matrix of `rows` rows, or a vector with 0 of them. */
struct named {
	const char *name;
	uint64_t rows, cols;
	bool there;
};

static bool is_true(json_t *config, const char *key) { return json_is_true(json_object_get(config, key)); }

static void put_all(struct header *h, const char *base, uint64_t layer, const struct named *list, size_t n)
{
	char name[120];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu64 ".%s", base, layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
}

static void attention_entries(struct header *h, json_t *config, const char *base, uint64_t layer)
{
	const uint64_t hidden = number(config, "hidden_size", 1), heads = number(config, "num_attention_heads", 1),
		       rank = number(config, "kv_lora_rank", 0), low = number(config, "q_lora_rank", 0),
		       rest = number(config, "qk_nope_head_dim", 0), rotating = number(config, "qk_rope_head_dim", 0),
		       value = number(config, "v_head_dim", 0), queries = heads * (rest + rotating),
		       dim = number(config, "head_dim", 0), q = heads * dim,
		       kv = number(config, "num_key_value_heads", 1) * dim;
	const bool latent_one = rank, norms = is_true(config, "use_qk_norm"), bias = is_true(config, "attention_bias");
	const struct named list[] = {
		{ "input_layernorm.weight", 0, hidden, true },
		{ "post_attention_layernorm.weight", 0, hidden, true },
		{ "self_attn.q_proj.weight", queries, hidden, latent_one && !low },
		{ "self_attn.q_a_proj.weight", low, hidden, latent_one && low },
		{ "self_attn.q_a_layernorm.weight", 0, low, latent_one && low },
		{ "self_attn.q_b_proj.weight", queries, low, latent_one && low },
		{ "self_attn.kv_a_proj_with_mqa.weight", rank + rotating, hidden, latent_one },
		{ "self_attn.kv_a_layernorm.weight", 0, rank, latent_one },
		{ "self_attn.kv_b_proj.weight", heads * (rest + value), rank, latent_one },
		{ "self_attn.o_proj.weight", hidden, latent_one ? heads * value : q, true },
		{ "self_attn.q_proj.weight", q, hidden, !latent_one },
		{ "self_attn.k_proj.weight", kv, hidden, !latent_one },
		{ "self_attn.v_proj.weight", kv, hidden, !latent_one },
		{ "self_attn.q_proj.bias", 0, q, !latent_one && bias },
		{ "self_attn.k_proj.bias", 0, kv, !latent_one && bias },
		{ "self_attn.v_proj.bias", 0, kv, !latent_one && bias },
		{ "self_attn.q_norm.weight", 0, dim, !latent_one && norms },
		{ "self_attn.k_norm.weight", 0, dim, !latent_one && norms },
	};

	put_all(h, base, layer, list, sizeof list / sizeof *list);
}

/* A layer of Llama 4: each so many are mixtures, whose experts lie column by column in one tensor. */
static void llama4_entries(struct header *h, json_t *config, const char *base, uint64_t layer)
{
	const uint64_t hidden = number(config, "hidden_size", 1), dim = number(config, "head_dim", 128),
		       q = number(config, "num_attention_heads", 1) * dim,
		       kv = number(config, "num_key_value_heads", 1) * dim, of = number(config, "num_local_experts", 1),
		       ffn = number(config, "intermediate_size", 1), wide = number(config, "intermediate_size_mlp", 1);
	const bool mixed = (layer + 1) % number(config, "interleave_moe_layer_step", 1) == 0;
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.weight", 0, hidden, true },
		{ "post_attention_layernorm.weight", 0, hidden, true },
		{ "self_attn.q_proj.weight", q, hidden, true },
		{ "self_attn.k_proj.weight", kv, hidden, true },
		{ "self_attn.v_proj.weight", kv, hidden, true },
		{ "self_attn.o_proj.weight", hidden, q, true },
		{ "feed_forward.gate_proj.weight", wide, hidden, !mixed },
		{ "feed_forward.up_proj.weight", wide, hidden, !mixed },
		{ "feed_forward.down_proj.weight", hidden, wide, !mixed },
		{ "feed_forward.router.weight", of, hidden, mixed },
		{ "feed_forward.shared_expert.gate_proj.weight", ffn, hidden, mixed },
		{ "feed_forward.shared_expert.up_proj.weight", ffn, hidden, mixed },
		{ "feed_forward.shared_expert.down_proj.weight", hidden, ffn, mixed },
	};
	char name[100];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu64 ".%s", base, layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
	snprintf(name, sizeof name, "%slayers.%" PRIu64 ".feed_forward.experts.gate_up_proj", base, layer);
	if (mixed)
		stacked_entry(h, name, of, hidden, 2 * ffn);
	snprintf(name, sizeof name, "%slayers.%" PRIu64 ".feed_forward.experts.down_proj", base, layer);
	if (mixed)
		stacked_entry(h, name, of, ffn, hidden);
}

static void deepseek_entries(struct header *h, json_t *config, const char *base, uint64_t layer)
{
	const uint64_t hidden = number(config, "hidden_size", 1), ffn = number(config, "intermediate_size", 1),
		       one = number(config, "moe_intermediate_size", 1),
		       shared = one * number(config, "n_shared_experts", 0),
		       experts_there = number(config, "n_routed_experts", 0), vocab = number(config, "vocab_size", 1);
	const char *type = json_string_value(json_object_get(config, "model_type"));
	const bool dense = layer < number(config, "first_k_dense_replace", 0),
		   later = layer >= number(config, "num_hidden_layers", 0), sigmoid = strcmp(type, "deepseek_v2") != 0;
	const struct named list[] = {
		{ "mlp.gate_proj.weight", ffn, hidden, dense },
		{ "mlp.up_proj.weight", ffn, hidden, dense },
		{ "mlp.down_proj.weight", hidden, ffn, dense },
		{ "mlp.gate.weight", experts_there, hidden, !dense },
		{ "mlp.gate.e_score_correction_bias", 0, experts_there, !dense && sigmoid },
		{ "mlp.shared_experts.gate_proj.weight", shared, hidden, !dense && shared },
		{ "mlp.shared_experts.up_proj.weight", shared, hidden, !dense && shared },
		{ "mlp.shared_experts.down_proj.weight", hidden, shared, !dense && shared },
		{ "embed_tokens.weight", vocab, hidden, later },
		{ "enorm.weight", 0, hidden, later },
		{ "hnorm.weight", 0, hidden, later },
		{ "eh_proj.weight", hidden, 2 * hidden, later },
		{ "shared_head.norm.weight", 0, hidden, later },
		{ "shared_head.head.weight", vocab, hidden, later },
	};
	char name[120];

	attention_entries(h, config, base, layer);
	put_all(h, base, layer, list, sizeof list / sizeof *list);
	for (uint64_t e = 0; e < experts_there && !dense; e++)
		for (int k = 0; k < 3; k++) {
			static const char *const part[] = { "gate", "up", "down" };
			snprintf(name, sizeof name, "%slayers.%" PRIu64 ".mlp.experts.%" PRIu64 ".%s_proj.weight", base,
			         layer, e, part[k]);
			entry(h, name, k == 2 ? hidden : one, k == 2 ? one : hidden);
		}
}

void routed_entries(struct header *h, json_t *config, const char *base, uint64_t layer)
{
	const char *type = json_string_value(json_object_get(config, "model_type"));

	(strcmp(type, "llama4_text") == 0 ? llama4_entries : deepseek_entries)(h, config, base, layer);
}

static void bytes_entry(struct header *h, const char *name, const char *shape, uint64_t bytes)
{
	char line[400];

	snprintf(line, sizeof line,
	         ",\"%s\":{\"dtype\":\"U8\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", name, shape,
	         h->at, h->at + bytes);
	text_of(&h->b, line);
	h->at += bytes;
}

/* MXFP4: blocks and scales of all experts' rows. */
void mxfp4_entries(struct header *h, const char *name, uint64_t n_experts, uint64_t rows, uint64_t cols)
{
	char own[120], shape[100];
	uint64_t blocks = n_experts * rows * (cols / 32);

	snprintf(own, sizeof own, "%s_blocks", name);
	snprintf(shape, sizeof shape, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",16", n_experts, rows, cols / 32);
	bytes_entry(h, own, shape, blocks * 16);
	snprintf(own, sizeof own, "%s_scales", name);
	snprintf(shape, sizeof shape, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, n_experts, rows, cols / 32);
	bytes_entry(h, own, shape, blocks);
}

/* A layer of Gemma 4's mixture: experts beside a feed-forward layer; no values where there is no window. */
void beside_entries(struct header *h, json_t *config, const char *base, uint64_t layer)
{
	const char *kind = json_string_value(json_array_get(json_object_get(config, "layer_types"), layer));
	const bool all = kind && strcmp(kind, "full_attention") == 0;
	const uint64_t hidden = number(config, "hidden_size", 1), ffn = number(config, "intermediate_size", 1),
		       one = number(config, "moe_intermediate_size", 1), many = number(config, "num_experts", 1),
		       dim = number(config, all ? "global_head_dim" : "head_dim", 1),
		       q = dim * number(config, "num_attention_heads", 1),
		       kv = dim * number(config, all ? "num_global_key_value_heads" : "num_key_value_heads", 1);
	const struct named list[] = {
		{ "input_layernorm.weight", 0, hidden, true },
		{ "self_attn.q_proj.weight", q, hidden, true },
		{ "self_attn.k_proj.weight", kv, hidden, true },
		{ "self_attn.v_proj.weight", kv, hidden, !all },
		{ "self_attn.o_proj.weight", hidden, q, true },
		{ "self_attn.q_norm.weight", 0, dim, true },
		{ "self_attn.k_norm.weight", 0, dim, true },
		{ "post_attention_layernorm.weight", 0, hidden, true },
		{ "pre_feedforward_layernorm.weight", 0, hidden, true },
		{ "pre_feedforward_layernorm_2.weight", 0, hidden, true },
		{ "post_feedforward_layernorm.weight", 0, hidden, true },
		{ "post_feedforward_layernorm_1.weight", 0, hidden, true },
		{ "post_feedforward_layernorm_2.weight", 0, hidden, true },
		{ "mlp.gate_proj.weight", ffn, hidden, true },
		{ "mlp.up_proj.weight", ffn, hidden, true },
		{ "mlp.down_proj.weight", hidden, ffn, true },
		{ "router.proj.weight", many, hidden, true },
		{ "router.scale", 0, hidden, true },
		{ "router.per_expert_scale", 0, many, true },
		{ "layer_scalar", 0, 1, true },
	};
	char name[120];

	put_all(h, base, layer, list, sizeof list / sizeof *list);
	snprintf(name, sizeof name, "%slayers.%" PRIu64 ".experts.gate_up_proj", base, layer);
	stacked_entry(h, name, many, 2 * one, hidden);
	snprintf(name, sizeof name, "%slayers.%" PRIu64 ".experts.down_proj", base, layer);
	stacked_entry(h, name, many, hidden, one);
}

/* ---- GGUF */

/* Of one layer, attention's; of latent attention, or (glm4moe) of the usual one. */
static void attention_infos(struct gguf_writer *w, json_t *kv, const char *arch, uint64_t layer, uint64_t *at)
{
	const bool latent_one = strcmp(arch, "deepseek2") == 0;
	const uint64_t hidden = key_number(kv, arch, "embedding_length", 1),
		       heads = key_number(kv, arch, "attention.head_count", 1),
		       keys = key_number(kv, arch, "attention.head_count_kv", 1),
		       rank = key_number(kv, arch, "attention.kv_lora_rank", 0),
		       low = key_number(kv, arch, "attention.q_lora_rank", 0),
		       rotating = key_number(kv, arch, "rope.dimension_count", 0),
		       dim = key_number(kv, arch, latent_one ? "attention.key_length_mla" : "attention.key_length", 0),
		       value = key_number(kv, arch, "attention.value_length_mla", dim);
	const struct {
		const char *name;
		uint64_t ne[3];
		bool there;
	} list[] = {
		{ "attn_norm.weight", { hidden }, true },
		{ "ffn_norm.weight", { hidden }, latent_one },
		{ "post_attention_norm.weight", { hidden }, !latent_one },
		{ "attn_q.weight", { hidden, heads * dim }, !latent_one },
		{ "attn_k.weight", { hidden, keys * dim }, !latent_one },
		{ "attn_v.weight", { hidden, keys * dim }, !latent_one },
		{ "attn_q.bias", { heads * dim }, !latent_one },
		{ "attn_k.bias", { keys * dim }, !latent_one },
		{ "attn_v.bias", { keys * dim }, !latent_one },
		{ "attn_output.weight", { heads * value, hidden }, true },
		{ "attn_q_a.weight", { hidden, low }, latent_one },
		{ "attn_q_a_norm.weight", { low }, latent_one },
		{ "attn_q_b.weight", { low, heads * dim }, latent_one },
		{ "attn_kv_a_mqa.weight", { hidden, rank + rotating }, latent_one },
		{ "attn_kv_a_norm.weight", { rank }, latent_one },
		{ "attn_k_b.weight", { dim - rotating, rank, heads }, latent_one },
		{ "attn_v_b.weight", { rank, value, heads }, latent_one },
	};
	char name[64];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "blk.%" PRIu64 ".%s", layer, list[i].name);
		if (list[i].there)
			describe(w, name, list[i].ne[1] ? DTYPE_BF16 : DTYPE_F32, list[i].ne, at);
	}
}

static void layer_infos(struct gguf_writer *w, json_t *kv, const char *arch, uint64_t layer, uint64_t *at)
{
	const uint64_t hidden = key_number(kv, arch, "embedding_length", 1),
		       ffn = key_number(kv, arch, "feed_forward_length", 1),
		       one = key_number(kv, arch, "expert_feed_forward_length", 1),
		       shared = one * key_number(kv, arch, "expert_shared_count", 0),
		       count = key_number(kv, arch, "expert_count", 0);
	const bool dense = layer < key_number(kv, arch, "leading_dense_block_count", 0),
		   later = layer + key_number(kv, arch, "nextn_predict_layers", 0) >=
	                   key_number(kv, arch, "block_count", 1);
	const struct {
		const char *name;
		uint64_t ne[3];
		bool there;
	} list[] = {
		{ "ffn_gate.weight", { hidden, ffn }, dense },
		{ "ffn_up.weight", { hidden, ffn }, dense },
		{ "ffn_down.weight", { ffn, hidden }, dense },
		{ "ffn_gate_inp.weight", { hidden, count }, !dense },
		{ "exp_probs_b.bias", { count }, !dense },
		{ "ffn_gate_exps.weight", { hidden, one, count }, !dense },
		{ "ffn_up_exps.weight", { hidden, one, count }, !dense },
		{ "ffn_down_exps.weight", { one, hidden, count }, !dense },
		{ "ffn_gate_shexp.weight", { hidden, shared }, !dense },
		{ "ffn_up_shexp.weight", { hidden, shared }, !dense },
		{ "ffn_down_shexp.weight", { shared, hidden }, !dense },
		{ "nextn.eh_proj.weight", { 2 * hidden, hidden }, later },
		{ "nextn.enorm.weight", { hidden }, later },
		{ "nextn.hnorm.weight", { hidden }, later },
		{ "nextn.shared_head_norm.weight", { hidden }, later },
	};
	char name[64];

	attention_infos(w, kv, arch, layer, at);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "blk.%" PRIu64 ".%s", layer, list[i].name);
		if (list[i].there)
			describe(w, name, list[i].ne[1] ? DTYPE_BF16 : DTYPE_F32, list[i].ne, at);
	}
}

void routed_infos(struct gguf_writer *w, json_t *kv, const char *arch)
{
	const uint64_t hidden = key_number(kv, arch, "embedding_length", 1);
	const uint64_t words[3] = { hidden, key_number(kv, arch, "vocab_size", 1000) }, norm[3] = { hidden };
	uint64_t at = 0;

	describe(w, "token_embd.weight", DTYPE_BF16, words, &at);
	describe(w, "output.weight", DTYPE_BF16, words, &at);
	describe(w, "output_norm.weight", DTYPE_F32, norm, &at);
	for (uint64_t i = 0, n = key_number(kv, arch, "block_count", 1); i < n; i++)
		layer_infos(w, kv, arch, i, &at);
}
