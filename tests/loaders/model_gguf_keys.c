/* tests/loaders/model_gguf_keys.c - the changes of a GGUF file that its reader must take or refuse, a row for each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/loaders/model_gguf_keys.h"

/* Renames a key, so that it is absent and may be written anew. */
static void hide(struct gguf_writer *w, const char *key)
{
	uint8_t *p = memmem(w->kv.p, w->kv.n, key, strlen(key));

	assert_non_null(p);
	*p = '_';
}

static void u32(struct gguf_writer *w, const char *key, uint32_t v)
{
	if (memmem(w->kv.p, w->kv.n, key, strlen(key)))
		hide(w, key);
	gguf_write_u32(w, key, v);
}

static void f32(struct gguf_writer *w, const char *key, float v)
{
	if (memmem(w->kv.p, w->kv.n, key, strlen(key)))
		hide(w, key);
	gguf_write_f32(w, key, v);
}

static void per_layer(struct gguf_writer *w, const char *key, uint32_t a, uint32_t b)
{
	hide(w, key);
	gguf_write_array(w, key, GGUF_U32, 2, (const uint32_t[]){ a, b }, 8);
}

static void freqs(struct gguf_writer *w, float last)
{
	gguf_write_tensor(w, "rope_freqs.weight", DTYPE_F32, 1, (const uint64_t[]){ 2 }, (const float[]){ 1, last }, 8);
}

static void none(struct gguf_writer *w) {}
static void no_arch(struct gguf_writer *w) { hide(w, "general.architecture"); }
static void arch_number(struct gguf_writer *w) { u32(w, "general.architecture", 3); }
static void arch_other(struct gguf_writer *w)
{
	hide(w, "general.architecture");
	gguf_write_string(w, "general.architecture", "codeshell");
}
static void arch_encoder(struct gguf_writer *w)
{
	hide(w, "general.architecture");
	gguf_write_string(w, "general.architecture", "neo-bert");
}
static void arch_unknown(struct gguf_writer *w)
{
	hide(w, "general.architecture");
	gguf_write_string(w, "general.architecture", "llamb");
}
static void arch_two(struct gguf_writer *w)
{
	hide(w, "general.architecture");
	gguf_write_string(w, "general.architecture", "gemma2 gemma3");
}
static void arch_long(struct gguf_writer *w)
{
	hide(w, "general.architecture");
	gguf_write_string(w, "general.architecture", "llama\x1b[31mllamallamallamallama");
}
static void no_layers(struct gguf_writer *w) { hide(w, "llama.block_count"); }
static void layers_3(struct gguf_writer *w) { u32(w, "llama.block_count", 3); }
static void layers_u64(struct gguf_writer *w)
{
	hide(w, "llama.block_count");
	gguf_write_scalar(w, "llama.block_count", GGUF_U64, &(uint64_t){ 2 });
}
static void layers_i8(struct gguf_writer *w)
{
	hide(w, "llama.block_count");
	gguf_write_scalar(w, "llama.block_count", GGUF_I8, &(int8_t){ 2 });
}
static void layers_negative(struct gguf_writer *w)
{
	hide(w, "llama.block_count");
	gguf_write_scalar(w, "llama.block_count", GGUF_I32, &(int32_t){ -2 });
}
static void layers_huge(struct gguf_writer *w)
{
	hide(w, "llama.block_count");
	gguf_write_scalar(w, "llama.block_count", GGUF_U64, &(uint64_t){ 1ull << 32 });
}
static void layers_float(struct gguf_writer *w) { f32(w, "llama.block_count", 2); }
static void heads_array(struct gguf_writer *w) { per_layer(w, "llama.attention.head_count_kv", 2, 2); }
static void heads_differ(struct gguf_writer *w) { per_layer(w, "llama.attention.head_count_kv", 2, 4); }
static void ffn_array(struct gguf_writer *w) { per_layer(w, "llama.feed_forward_length", 24, 24); }
static void ffn_short(struct gguf_writer *w)
{
	hide(w, "llama.feed_forward_length");
	gguf_write_array(w, "llama.feed_forward_length", GGUF_U32, 1, &(uint32_t){ 24 }, 4);
}
static void ffn_strings(struct gguf_writer *w)
{
	hide(w, "llama.feed_forward_length");
	gguf_write_strings(w, "llama.feed_forward_length", (const char *const[]){ "24", "24" }, 2);
}
static void no_kv_heads(struct gguf_writer *w) { hide(w, "llama.attention.head_count_kv"); }
static void no_context(struct gguf_writer *w) { hide(w, "llama.context_length"); }
static void no_key_length(struct gguf_writer *w)
{
	hide(w, "llama.attention.key_length");
	hide(w, "llama.attention.value_length");
}
static void value_length(struct gguf_writer *w) { u32(w, "llama.attention.value_length", 8); }
static void no_vocab(struct gguf_writer *w) { hide(w, "llama.vocab_size"); }
static void vocab_10(struct gguf_writer *w) { u32(w, "llama.vocab_size", 10); }
static void eps_nan(struct gguf_writer *w) { f32(w, "llama.attention.layer_norm_rms_epsilon", NAN); }
static void eps_zero(struct gguf_writer *w) { f32(w, "llama.attention.layer_norm_rms_epsilon", 0); }
static void eps_f64(struct gguf_writer *w)
{
	hide(w, "llama.attention.layer_norm_rms_epsilon");
	gguf_write_scalar(w, "llama.attention.layer_norm_rms_epsilon", GGUF_F64, &(double){ 1e-5 });
}
static void eps_integer(struct gguf_writer *w) { u32(w, "llama.attention.layer_norm_rms_epsilon", 1); }
static void eps_gone(struct gguf_writer *w) { hide(w, "llama.attention.layer_norm_rms_epsilon"); }
static void rope_partial(struct gguf_writer *w) { u32(w, "llama.rope.dimension_count", 2); }
static void rope_default(struct gguf_writer *w)
{
	hide(w, "llama.rope.dimension_count");
	hide(w, "llama.rope.freq_base");
}
static void theta_inf(struct gguf_writer *w) { f32(w, "llama.rope.freq_base", INFINITY); }
static void theta_zero(struct gguf_writer *w) { f32(w, "llama.rope.freq_base", 0); }
static void window(struct gguf_writer *w) { u32(w, "llama.attention.sliding_window", 77); }
static void window_pattern(struct gguf_writer *w)
{
	u32(w, "llama.attention.sliding_window", 77);
	u32(w, "llama.attention.sliding_window_pattern", 2);
}
static void experts(struct gguf_writer *w) { u32(w, "llama.expert_count", 8); }
static void no_experts(struct gguf_writer *w) { u32(w, "llama.expert_count", 0); }
static void softcap(struct gguf_writer *w) { f32(w, "llama.final_logit_softcapping", 30); }
static void not_causal(struct gguf_writer *w) { gguf_write_bool(w, "llama.attention.causal", false); }
static void causal(struct gguf_writer *w) { gguf_write_bool(w, "llama.attention.causal", true); }
static void scale_same(struct gguf_writer *w) { f32(w, "llama.attention.scale", 0.5f); }
static void scale_other(struct gguf_writer *w) { f32(w, "llama.attention.scale", 0.25f); }
static void off(struct gguf_writer *w)
{
	f32(w, "llama.logit_scale", 1);
	f32(w, "llama.attn_logit_softcapping", 0);
	u32(w, "llama.nextn_predict_layers", 0);
	u32(w, "llama.pooling_type", 0);
}
static void pooled(struct gguf_writer *w) { u32(w, "llama.pooling_type", 5); }
static void pooled_for_rank(struct gguf_writer *w) { u32(w, "llama.pooling_type", 4); }
static void pooled_text(struct gguf_writer *w) { gguf_write_string(w, "llama.pooling_type", "mean"); }
static void temperature(struct gguf_writer *w) { f32(w, "llama.attention.temperature_scale", 0.1f); }
static void scale_text(struct gguf_writer *w) { gguf_write_string(w, "llama.logit_scale", "1"); }
static void key_unknown(struct gguf_writer *w) { u32(w, "llama.attention.frobnicate", 0); }
static void key_long(struct gguf_writer *w)
{
	char key[200];
	snprintf(key, sizeof key, "llama.%0190d", 0);
	gguf_write_u32(w, key, 0);
}
static void key_nul(struct gguf_writer *w)
{
	u32(w, "llama.expert_count?", 0);
	*((uint8_t *)memmem(w->kv.p, w->kv.n, "count?", 6) + 5) = 0;
}
static void key_other(struct gguf_writer *w)
{
	u32(w, "llama4.expert_count", 8);
	u32(w, "llamas", 3);
	gguf_write_string(w, "someone.quantized_by", "x");
}
static void key_harmless(struct gguf_writer *w)
{
	gguf_write_bool(w, "llama.rope.scaling.finetuned", true);
	f32(w, "llama.attention.layer_norm_epsilon", 1e-5f);
	gguf_write_string(w, "llama.tensor_data_layout", "x");
}
static void yarn_less(struct gguf_writer *w)
{
	u32(w, "llama.rope.scaling.original_context_length", 128);
	f32(w, "llama.rope.scaling.yarn_beta_fast", 1);
}
static void none_attn(struct gguf_writer *w) { f32(w, "llama.rope.scaling.attn_factor", 2); }
static void none_yarn_attn(struct gguf_writer *w) { f32(w, "llama.rope.scaling.yarn_attn_factor", 2); }
static void kind(struct gguf_writer *w, const char *name) { gguf_write_string(w, "general.type", name); }
static void kind_model(struct gguf_writer *w) { kind(w, "model"); }
static void kind_adapter(struct gguf_writer *w) { kind(w, "adapter"); }
static void kind_old_adapter(struct gguf_writer *w) { gguf_write_string(w, "adapter.type", "lora"); }
static void kind_mmproj(struct gguf_writer *w) { kind(w, "mmproj"); }
static void kind_imatrix(struct gguf_writer *w) { kind(w, "imatrix"); }
static void kind_vocab(struct gguf_writer *w) { kind(w, "vocab"); }
static void extra(struct gguf_writer *w, const char *name, uint64_t n)
{
	float zeros[16] = { 0 };
	gguf_write_tensor(w, name, DTYPE_F32, 1, &n, zeros, n * 4);
}
static void extra_q_norm(struct gguf_writer *w) { extra(w, "blk.0.attn_q_norm.weight", 4); }
static void extra_k_norm(struct gguf_writer *w) { extra(w, "blk.1.attn_k_norm.weight", 4); }
static void extra_post_norm(struct gguf_writer *w) { extra(w, "blk.1.post_attention_norm.weight", 16); }
static void extra_sinks(struct gguf_writer *w) { extra(w, "blk.0.attn_sinks.weight", 4); }
static void extra_router(struct gguf_writer *w) { extra(w, "blk.0.ffn_gate_inp.weight", 16); }
static void extra_sub_norm(struct gguf_writer *w) { extra(w, "blk.0.attn_sub_norm.weight", 16); }
static void extra_long(struct gguf_writer *w) { extra(w, "rope_factors_long.weight", 2); }
static void extra_short(struct gguf_writer *w) { extra(w, "rope_factors_short.weight", 2); }
static void extra_output_bias(struct gguf_writer *w) { extra(w, "output.bias", 9); }
static void extra_norm_bias(struct gguf_writer *w) { extra(w, "blk.0.attn_norm.bias", 16); }
static void extra_scale(struct gguf_writer *w) { extra(w, "blk.0.attn_q.scale", 1); }
static void extra_down_scale(struct gguf_writer *w) { extra(w, "blk.1.ffn_down.scale", 1); }
static void extra_input_scale(struct gguf_writer *w) { extra(w, "blk.0.attn_q.input_scale", 1); }
static void extra_layer(struct gguf_writer *w) { extra(w, "blk.2.attn_norm.weight", 16); }
static void extra_rotation(struct gguf_writer *w)
{
	extra(w, "blk.0.attn_rot_embd.weight", 2);
	extra(w, "blk.1.attn_rot_embd.weight", 2);
}
static void extra_nearly(struct gguf_writer *w) { extra(w, "blk..attn_rot_embd.weight", 2); }
static void type(struct gguf_writer *w, const char *name) { gguf_write_string(w, "llama.rope.scaling.type", name); }
static void scaling_none(struct gguf_writer *w)
{
	type(w, "none");
	f32(w, "llama.rope.scaling.factor", 4);
}
static void scaling_linear(struct gguf_writer *w)
{
	type(w, "linear");
	f32(w, "llama.rope.scaling.factor", 4);
}
static void scaling_implied(struct gguf_writer *w) { f32(w, "llama.rope.scaling.factor", 4); }
static void scaling_old(struct gguf_writer *w) { f32(w, "llama.rope.scale_linear", 4); }
static void scaling_zero(struct gguf_writer *w)
{
	type(w, "linear");
	f32(w, "llama.rope.scaling.factor", 0);
}
static void scaling_long(struct gguf_writer *w) { type(w, "longrope"); }
static void scaling_number(struct gguf_writer *w) { u32(w, "llama.rope.scaling.type", 1); }
static void linear_attn(struct gguf_writer *w)
{
	scaling_linear(w);
	f32(w, "llama.rope.scaling.attn_factor", 2);
}
static void yarn(struct gguf_writer *w)
{
	type(w, "yarn");
	f32(w, "llama.rope.scaling.factor", 4);
	u32(w, "llama.rope.scaling.original_context_length", 128);
}
static void yarn_attn(struct gguf_writer *w)
{
	yarn(w);
	f32(w, "llama.rope.scaling.attn_factor", 2);
}
static void yarn_attn_two(struct gguf_writer *w)
{
	yarn_attn(w);
	f32(w, "llama.rope.scaling.yarn_attn_factor", 0.5f);
}
static void yarn_log(struct gguf_writer *w)
{
	yarn(w);
	f32(w, "llama.rope.scaling.yarn_log_multiplier", 0.1f);
}
static void yarn_freqs(struct gguf_writer *w)
{
	yarn(w);
	freqs(w, 2);
}
void gguf_freqs_ok(struct gguf_writer *w) { freqs(w, 8); }
static void freqs_zero(struct gguf_writer *w) { freqs(w, 0); }
static void freqs_nan(struct gguf_writer *w) { freqs(w, NAN); }
static void freqs_long(struct gguf_writer *w)
{
	gguf_write_tensor(w, "rope_freqs.weight", DTYPE_F32, 1, (const uint64_t[]){ 3 }, NULL, 12);
}
static void freqs_half(struct gguf_writer *w)
{
	gguf_write_tensor(w, "rope_freqs.weight", DTYPE_F16, 1, (const uint64_t[]){ 2 }, NULL, 4);
}
static void extra_tensor(struct gguf_writer *w)
{
	gguf_write_tensor(w, "other.weight", DTYPE_I64, 4, (const uint64_t[]){ 1, 2, 1, 2 }, NULL, 32);
}
static void tokens_short(struct gguf_writer *w)
{
	gguf_write_strings(w, "tokenizer.ggml.tokens", (const char *const[]){ "a" }, 1);
}
static void no_tokenizer(struct gguf_writer *w)
{
	gguf_write_string(w, "tokenizer.ggml.model", "none");
	gguf_write_string(w, "tokenizer.ggml.pre", "x");
}
static void split_alone(struct gguf_writer *w) { u32(w, "split.count", 3); }
static void split_one(struct gguf_writer *w)
{
	u32(w, "split.count", 1);
	u32(w, "split.no", 0);
}
static void name_number(struct gguf_writer *w) { u32(w, "general.name", 1); }
static void fused(struct gguf_writer *w)
{
	memcpy(memmem(w->info.p, w->info.n, "blk.1.attn_q.weight", 19), "blk.1.attn_x.weight", 19);
}
static void bias_wide(struct gguf_writer *w)
{
	gguf_write_tensor(w, "blk.0.attn_q.bias", DTYPE_F32, 1, (const uint64_t[]){ 17 }, NULL, 68);
}
static void bias_only_q(struct gguf_writer *w)
{
	gguf_write_tensor(w, "blk.0.attn_q.bias", DTYPE_F32, 1, (const uint64_t[]){ 16 }, NULL, 64);
}
static void head_shape(struct gguf_writer *w)
{
	gguf_write_tensor(w, "output.weight", DTYPE_Q5_K, 2, (const uint64_t[]){ 256, 9 }, NULL, 1584);
}
static void head_type(struct gguf_writer *w)
{
	gguf_write_tensor(w, "output.weight", DTYPE_I32, 2, (const uint64_t[]){ 16, 9 }, NULL, 576);
}

static void layers_hollow(struct gguf_writer *w)
{
	char name[8];

	u32(w, "llama.block_count", 200);
	for (int i = 0; i < 200 * 9; i++) {
		snprintf(name, sizeof name, "%x", i);
		gguf_write_tensor(w, name, DTYPE_F32, 1, (const uint64_t[]){ 0 }, NULL, 0);
	}
}

const struct gguf_key_change gguf_key_changes[] = {
	{ none, NULL, ROPE_NONE, 1, 1, 0 },
	{ no_arch, "general.architecture is missing", 0, 0, 0, 0 },
	{ arch_number, "general.architecture has type U32, expected STRING", 0, 0, 0, 0 },
	{ arch_other,
	  "general.architecture is \"codeshell\", which needs what jitrun does not have: norms that subtract the mean",
	  0, 0, 0, 0 },
	{ arch_encoder,
	  "general.architecture is \"neo-bert\", which needs what jitrun does not have: its form of an encoder "
	  "(NeoBERT)",
	  0, 0, 0, 0 },
	{ arch_unknown,
	  "general.architecture is \"llamb\", expected llama, qwen2, qwen3, mistral3, ernie4_5, xverse, seed_oss, "
	  "internlm2, deci, exaone, ",
	  0, 0, 0, 0 },
	{ arch_two, "is \"gemma2 gemma3\", expected llama", 0, 0, 0, 0 },
	{ arch_long, "\"llama\\x1b[31mllama", 0, 0, 0, 0 },
	{ no_layers, "key llama.block_count is missing", 0, 0, 0, 0 },
	{ layers_3, "the tensor blk.2.attn_norm.weight is missing", 0, 0, 0, 0 },
	{ layers_u64, NULL, ROPE_NONE, 1, 1, 0 },
	{ layers_i8, NULL, ROPE_NONE, 1, 1, 0 },
	{ layers_negative, "llama.block_count is -2", 0, 0, 0, 0 },
	{ layers_huge, "is 4294967296, expected 0 to 4294967295", 0, 0, 0, 0 },
	{ layers_float, "type F32, expected an integer", 0, 0, 0, 0 },
	{ heads_array, NULL, ROPE_NONE, 1, 1, 0 },
	{ heads_differ, "is 2 in layer 0 and 4 in layer 1", 0, 0, 0, 0 },
	{ ffn_array, NULL, ROPE_NONE, 1, 1, 0 },
	{ ffn_short, "has 1 values, expected one for each of the 2 layers", 0, 0, 0, 0 },
	{ ffn_strings, "does not hold integers", 0, 0, 0, 0 },
	{ no_kv_heads, "attn_k.weight has shape", 0, 0, 0, 0 },
	{ no_context, "llama.context_length is missing", 0, 0, 0, 0 },
	{ no_key_length, NULL, ROPE_NONE, 1, 1, 0 },
	{ value_length, "values have 8 elements per head and keys 4", 0, 0, 0, 0 },
	{ no_vocab, NULL, ROPE_NONE, 1, 1, 0 },
	{ vocab_10, "llama.vocab_size is 10, but token_embd.weight has 9 rows", 0, 0, 0, 0 },
	{ eps_nan, "epsilon is nan", 0, 0, 0, 0 },
	{ eps_zero, "epsilon is 0", 0, 0, 0, 0 },
	{ eps_f64, NULL, ROPE_NONE, 1, 1, 0 },
	{ eps_integer, "type U32, expected F32 or F64", 0, 0, 0, 0 },
	{ eps_gone, "epsilon is missing", 0, 0, 0, 0 },
	{ rope_partial, "covers 2 of the 4 dimensions", 0, 0, 0, 0 },
	{ rope_default, NULL, ROPE_NONE, 1, 1, 0 },
	{ theta_inf, "theta) is inf", 0, 0, 0, 0 },
	{ theta_zero, "theta) is 0", 0, 0, 0, 0 },
	{ window, NULL, ROPE_NONE, 1, 1, 77 },
	{ window_pattern, "sliding_window_pattern is 2", 0, 0, 0, 0 },
	{ experts, "the number of experts of a token is 0, expected 1 to 8", 0, 0, 0, 0 },
	{ no_experts, NULL, ROPE_NONE, 1, 1, 0 },
	{ softcap, "final_logit_softcapping is 30", 0, 0, 0, 0 },
	{ scaling_none, NULL, ROPE_NONE, 1, 1, 0 },
	{ scaling_linear, NULL, ROPE_LINEAR, 4, 1, 0 },
	{ scaling_implied, NULL, ROPE_LINEAR, 4, 1, 0 },
	{ scaling_old, NULL, ROPE_LINEAR, 4, 1, 0 },
	{ scaling_zero, NULL, ROPE_LINEAR, 1, 1, 0 },
	{ scaling_long, "is \"longrope\", expected none, linear or yarn", 0, 0, 0, 0 },
	{ scaling_number, "type U32, expected STRING", 0, 0, 0, 0 },
	{ linear_attn, "attn_factor is 2 without YaRN", 0, 0, 0, 0 },
	{ yarn, NULL, ROPE_YARN, 4, 1.1386294361119891, 0 },
	{ yarn_attn, NULL, ROPE_YARN, 4, 2 * 1.1386294361119891, 0 },
	{ yarn_attn_two, NULL, ROPE_YARN, 4, 1.1386294361119891, 0 },
	{ yarn_log, "yarn_log_multiplier is 0.1", 0, 0, 0, 0 },
	{ yarn_freqs, "both YaRN scaling and rope_freqs.weight", 0, 0, 0, 0 },
	{ gguf_freqs_ok, NULL, ROPE_NONE, 1, 1, 0 },
	{ freqs_zero, "a value of rope_freqs.weight is 0", 0, 0, 0, 0 },
	{ freqs_nan, "a value of rope_freqs.weight is nan", 0, 0, 0, 0 },
	{ freqs_long, "has 3 elements of type F32, expected 2 of type F32", 0, 0, 0, 0 },
	{ freqs_half, "of type F16, expected", 0, 0, 0, 0 },
	{ extra_tensor, "the tensor other.weight is none that jitrun computes with in a llama model", 0, 0, 0, 0 },
	{ not_causal,
	  "key llama.attention.causal is false (attention to later tokens), which is not supported, expected true", 0,
	  0, 0, 0 },
	{ causal, NULL, ROPE_NONE, 1, 1, 0 },
	{ scale_same, NULL, ROPE_NONE, 1, 1, 0 },
	{ scale_other, "llama.attention.scale is 0.25", 0, 0, 0, 0 },
	{ off, NULL, ROPE_NONE, 1, 1, 0 },
	{ pooled, "llama.pooling_type is 5, which is not supported, expected 0 (not said)", 0, 0, 0, 0 },
	{ pooled_for_rank, "llama.pooling_type is 4 (a score for reranking), which is not supported", 0, 0, 0, 0 },
	{ pooled_text, "key llama.pooling_type has type STRING, expected an integer", 0, 0, 0, 0 },
	{ temperature, "llama.attention.temperature_scale is 0.1", 0, 0, 0, 0 },
	{ scale_text, "the key llama.logit_scale is not supported", 0, 0, 0, 0 },
	{ key_unknown, "the key llama.attention.frobnicate is not known and might change what the model computes", 0, 0,
	  0, 0 },
	{ key_long, "the key llama.0000", 0, 0, 0, 0 },
	{ key_nul, "the key llama.expert_count\\x00 is not known", 0, 0, 0, 0 },
	{ key_other, NULL, ROPE_NONE, 1, 1, 0 },
	{ key_harmless, NULL, ROPE_NONE, 1, 1, 0 },
	{ yarn_less, NULL, ROPE_NONE, 1, 1, 0 },
	{ none_attn, "rope.scaling.attn_factor is 2 without YaRN", 0, 0, 0, 0 },
	{ none_yarn_attn, "rope.scaling.yarn_attn_factor is 2 without YaRN", 0, 0, 0, 0 },
	{ kind_model, NULL, ROPE_NONE, 1, 1, 0 },
	{ kind_adapter, "is an adapter (LoRA)", 0, 0, 0, 0 },
	{ kind_old_adapter, "is an adapter (LoRA)", 0, 0, 0, 0 },
	{ kind_mmproj, "(mmproj)", 0, 0, 0, 0 },
	{ kind_imatrix, "is an importance matrix", 0, 0, 0, 0 },
	{ kind_vocab, "general.type is \"vocab\", expected model", 0, 0, 0, 0 },
	{ extra_q_norm, "the tensor blk.0.attn_q_norm.weight is none that", 0, 0, 0, 0 },
	{ extra_k_norm, "the tensor blk.1.attn_k_norm.weight is none that", 0, 0, 0, 0 },
	{ extra_post_norm, "the tensor blk.1.post_attention_norm.weight is none that", 0, 0, 0, 0 },
	{ extra_sinks, "the tensor blk.0.attn_sinks.weight is none that", 0, 0, 0, 0 },
	{ extra_router, "the tensor blk.0.ffn_gate_inp.weight is none that", 0, 0, 0, 0 },
	{ extra_sub_norm, "the tensor blk.0.attn_sub_norm.weight is none that", 0, 0, 0, 0 },
	{ extra_long, "the tensor rope_factors_long.weight is none that", 0, 0, 0, 0 },
	{ extra_short, "the tensor rope_factors_short.weight is none that", 0, 0, 0, 0 },
	{ extra_output_bias, "the tensor output.bias is none that", 0, 0, 0, 0 },
	{ extra_norm_bias, "the tensor blk.0.attn_norm.bias is none that", 0, 0, 0, 0 },
	{ extra_scale, "the tensor blk.0.attn_q.scale is none that", 0, 0, 0, 0 },
	{ extra_down_scale, "the tensor blk.1.ffn_down.scale is none that", 0, 0, 0, 0 },
	{ extra_input_scale, "the tensor blk.0.attn_q.input_scale is none that", 0, 0, 0, 0 },
	{ extra_layer, "the tensor blk.2.attn_norm.weight is none that", 0, 0, 0, 0 },
	{ extra_rotation, NULL, ROPE_NONE, 1, 1, 0 },
	{ extra_nearly, "the tensor blk..attn_rot_embd.weight is none that", 0, 0, 0, 0 },
	{ tokens_short, "has 1 entries, but token_embd.weight has 9 rows", 0, 0, 0, 0 },
	{ no_tokenizer, NULL, ROPE_NONE, 1, 1, 0 },
	{ split_alone, "split.count is 3, expected 0 or 1", 0, 0, 0, 0 },
	{ split_one, NULL, ROPE_NONE, 1, 1, 0 },
	{ name_number, "general.name has type U32", 0, 0, 0, 0 },
	{ fused, "the tensor blk.1.attn_q.weight is missing", 0, 0, 0, 0 },
	{ bias_wide, "blk.0.attn_q.bias has shape (17), expected (16)", 0, 0, 0, 0 },
	{ bias_only_q, NULL, ROPE_NONE, 1, 1, 0 },
	{ head_shape, "output.weight has shape (9 x 256), expected (9 x 16)", 0, 0, 0, 0 },
	{ layers_hollow, "layers is 200, too many for a model of", 0, 0, 0, 0 },
	{ head_type, "output.weight has type I32, which is not supported for weights", 0, 0, 0, 0 },
};
const size_t gguf_key_changes_n = sizeof gguf_key_changes / sizeof *gguf_key_changes;
