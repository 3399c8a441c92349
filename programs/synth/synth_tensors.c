#include "programs/synth/synth_tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint64_t synth_tensor_bytes(const struct synth_tensor *t)
{
	return (t->stack ? t->stack : 1) * t->rows * dtype_row_bytes(t->type, t->cols);
}

bool synth_is_gpt_oss(const struct model_shape *s) { return strcmp(s->arch, "gpt-oss") == 0; }

/* ---- which tensors */

/* A row of a size that the type does not have is of Q8_0. */
__attribute__((format(printf, 6, 7))) static void add(struct tensors *l, enum dtype type, enum content content,
                                                      uint64_t rows, uint64_t cols, const char *format, ...)
{
	struct synth_tensor *t = &l->list[l->n++];
	va_list args;
	*t = (struct synth_tensor){ .type = cols % dtype_table[type].block ? DTYPE_Q8_0 : type,
		                    .content = content,
		                    .rows = rows,
		                    .cols = cols };
	va_start(args, format);
	vsnprintf(t->name, sizeof t->name, format, args);
	va_end(args);
}

/* So many matrices in one tensor. */
static void add_stack(struct tensors *l, enum dtype type, uint64_t count, uint64_t rows, uint64_t cols,
                      const char *name, uint32_t i)
{
	add(l, type, RANDOM, rows, cols, "blk.%u.%s.weight", i, name);
	l->list[l->n - 1].stack = count;
}

static void add_latent_layer(struct tensors *l, const struct model_shape *s, enum dtype type, uint32_t i)
{
	const uint32_t rest = s->head_dim - s->rotates;

	add(l, type, RANDOM, s->query_rank, s->hidden, "blk.%u.attn_q_a.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->query_rank, "blk.%u.attn_q_a_norm.weight", i);
	add(l, type, RANDOM, (uint64_t)s->heads * s->head_dim, s->query_rank, "blk.%u.attn_q_b.weight", i);
	add(l, type, RANDOM, s->rank + s->rotates, s->hidden, "blk.%u.attn_kv_a_mqa.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->rank, "blk.%u.attn_kv_a_norm.weight", i);
	add_stack(l, type, s->heads, s->rank, rest, "attn_k_b", i);
	add_stack(l, type, s->heads, s->value, s->rank, "attn_v_b", i);
	add(l, type, RANDOM, s->hidden, (uint64_t)s->heads * s->value, "blk.%u.attn_output.weight", i);
}

static void add_experts(struct tensors *l, const struct model_shape *s, enum dtype type, enum dtype better, uint32_t i)
{
	const uint64_t shared = (uint64_t)s->shared * s->expert_ffn;

	add(l, DTYPE_F32, RANDOM, s->experts, s->hidden, "blk.%u.ffn_gate_inp.weight", i);
	if (strcmp(s->arch, "deepseek2") == 0)
		add(l, DTYPE_F32, ONES, 1, s->experts, "blk.%u.exp_probs_b.bias", i);
	add_stack(l, type, s->experts, s->expert_ffn, s->hidden, "ffn_gate_exps", i);
	add_stack(l, type, s->experts, s->expert_ffn, s->hidden, "ffn_up_exps", i);
	add_stack(l, better, s->experts, s->hidden, s->expert_ffn, "ffn_down_exps", i);
	if (synth_is_gpt_oss(s)) {
		add(l, DTYPE_F32, RANDOM, 1, s->experts, "blk.%u.ffn_gate_inp.bias", i);
		add(l, DTYPE_F32, RANDOM, s->experts, s->expert_ffn, "blk.%u.ffn_gate_exps.bias", i);
		add(l, DTYPE_F32, RANDOM, s->experts, s->expert_ffn, "blk.%u.ffn_up_exps.bias", i);
		add(l, DTYPE_F32, RANDOM, s->experts, s->hidden, "blk.%u.ffn_down_exps.bias", i);
	}
	if (!shared)
		return;
	if (strcmp(s->arch, "qwen35moe") == 0)
		add(l, DTYPE_F32, RANDOM, 1, s->hidden, "blk.%u.ffn_gate_inp_shexp.weight", i);
	add(l, type, RANDOM, shared, s->hidden, "blk.%u.ffn_gate_shexp.weight", i);
	add(l, type, RANDOM, shared, s->hidden, "blk.%u.ffn_up_shexp.weight", i);
	add(l, better, RANDOM, s->hidden, shared, "blk.%u.ffn_down_shexp.weight", i);
}

/* What mixes the tokens of a layer that keeps a state. */
static void add_state_layer(struct tensors *l, const struct model_shape *s, enum dtype type, uint32_t i)
{
	uint64_t values = (uint64_t)s->value_heads * s->value_dim,
		 channels = values + 2 * (uint64_t)s->key_heads * s->key_dim;

	if (!s->value_heads) {
		add(l, type, RANDOM, 3 * (uint64_t)s->hidden, s->hidden, "blk.%u.shortconv.in_proj.weight", i);
		add(l, DTYPE_F32, ONES, s->hidden, s->taps, "blk.%u.shortconv.conv.weight", i);
		add(l, type, RANDOM, s->hidden, s->hidden, "blk.%u.shortconv.out_proj.weight", i);
		return;
	}
	add(l, type, RANDOM, channels, s->hidden, "blk.%u.attn_qkv.weight", i);
	add(l, type, RANDOM, values, s->hidden, "blk.%u.attn_gate.weight", i);
	add(l, type, RANDOM, s->value_heads, s->hidden, "blk.%u.ssm_beta.weight", i);
	add(l, type, RANDOM, s->value_heads, s->hidden, "blk.%u.ssm_alpha.weight", i);
	add(l, DTYPE_F32, ONES, channels, s->taps, "blk.%u.ssm_conv1d.weight", i);
	add(l, DTYPE_F32, MINUS_ONES, 1, s->value_heads, "blk.%u.ssm_a", i);
	add(l, DTYPE_F32, ONES, 1, s->value_heads, "blk.%u.ssm_dt.bias", i);
	add(l, DTYPE_F32, ONES, 1, s->value_dim, "blk.%u.ssm_norm.weight", i);
	add(l, type, RANDOM, s->hidden, values, "blk.%u.ssm_out.weight", i);
}

static void add_attention(struct tensors *l, const struct model_shape *s, enum dtype type, enum dtype better,
                          uint32_t i)
{
	uint64_t q = (uint64_t)s->heads * s->head_dim, kv = (uint64_t)s->kv_heads * s->head_dim;
	bool gated = strncmp(s->arch, "qwen35", 6) == 0;

	add(l, type, RANDOM, gated ? 2 * q : q, s->hidden, "blk.%u.attn_q.weight", i);
	add(l, type, RANDOM, kv, s->hidden, "blk.%u.attn_k.weight", i);
	add(l, better, RANDOM, kv, s->hidden, "blk.%u.attn_v.weight", i);
	add(l, type, RANDOM, s->hidden, q, "blk.%u.attn_output.weight", i);
	if (synth_is_gpt_oss(s)) {
		add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.attn_output.bias", i);
		add(l, DTYPE_F32, ONES, 1, s->heads, "blk.%u.attn_sinks.weight", i);
	}
	if (strcmp(s->arch, "qwen2") == 0 || synth_is_gpt_oss(s)) {
		add(l, DTYPE_F32, ONES, 1, q, "blk.%u.attn_q.bias", i);
		add(l, DTYPE_F32, ONES, 1, kv, "blk.%u.attn_k.bias", i);
		add(l, DTYPE_F32, ONES, 1, kv, "blk.%u.attn_v.bias", i);
	}
	if (strcmp(s->arch, "qwen3") == 0 || strcmp(s->arch, "qwen3moe") == 0 || s->taps) {
		add(l, DTYPE_F32, ONES, 1, s->head_dim, "blk.%u.attn_q_norm.weight", i);
		add(l, DTYPE_F32, ONES, 1, s->head_dim, "blk.%u.attn_k_norm.weight", i);
	}
}

bool synth_is_gemma(const struct model_shape *s) { return strncmp(s->arch, "gemma", 5) == 0; }

bool synth_slides(const struct model_shape *s, uint32_t layer)
{
	return layer % 6 != 5 && !(s->layers < 6 && layer == s->layers - 1); /* of few layers the last one is without */
}

/* Four norms; the last layers read the keys and values of others; each may get numbers of a token's own. */
static void add_gemma_layer(struct tensors *l, const struct model_shape *s, enum dtype type, enum dtype better,
                            uint32_t i)
{
	uint32_t dim = s->global_dim && !synth_slides(s, i) ? s->global_dim : s->head_dim;
	uint64_t q = (uint64_t)s->heads * dim, kv = (uint64_t)s->kv_heads * dim;

	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.attn_norm.weight", i);
	add(l, type, RANDOM, q, s->hidden, "blk.%u.attn_q.weight", i);
	add(l, DTYPE_F32, ONES, 1, dim, "blk.%u.attn_q_norm.weight", i);
	if (i + shape_borrowing(s) < s->layers) {
		add(l, type, RANDOM, kv, s->hidden, "blk.%u.attn_k.weight", i);
		add(l, better, RANDOM, kv, s->hidden, "blk.%u.attn_v.weight", i);
		add(l, DTYPE_F32, ONES, 1, dim, "blk.%u.attn_k_norm.weight", i);
	}
	add(l, type, RANDOM, s->hidden, q, "blk.%u.attn_output.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.post_attention_norm.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.ffn_norm.weight", i);
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_gate.weight", i);
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_up.weight", i);
	add(l, better, RANDOM, s->hidden, s->ffn, "blk.%u.ffn_down.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.post_ffw_norm.weight", i);
	if (!s->layer_input)
		return;
	add(l, type, RANDOM, s->layer_input, s->hidden, "blk.%u.inp_gate.weight", i);
	add(l, type, RANDOM, s->hidden, s->layer_input, "blk.%u.proj.weight", i);
	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.post_norm.weight", i);
	add(l, DTYPE_F32, ONES, 1, 1, "blk.%u.layer_output_scale.weight", i);
}

/* What Gemma has beside its layers. */
static void add_gemma(struct tensors *l, const struct model_shape *s, const struct mixture *m)
{
	const uint64_t all = (uint64_t)s->layers * s->layer_input;

	if (s->global_dim)
		add(l, DTYPE_F32, STILL_FACTORS, 1, s->global_dim / 2, "rope_freqs.weight");
	if (!all)
		return;
	add(l, m->output, RANDOM, s->vocab, all, "per_layer_token_embd.weight");
	add(l, DTYPE_BF16, RANDOM, all, s->hidden, "per_layer_model_proj.weight");
	add(l, DTYPE_F32, ONES, 1, s->layer_input, "per_layer_proj_norm.weight");
}

/* Those of attention: of gpt-oss, MXFP4 is for experts alone. */
static enum dtype attention_type(const struct model_shape *s, enum dtype type)
{
	return synth_is_gpt_oss(s) && type == DTYPE_MXFP4 ? DTYPE_Q8_0 : type;
}

static void add_layer(struct tensors *l, const struct model_shape *s, const struct mixture *m, uint32_t i)
{
	enum dtype type = m->matrices, better = mixture_layer(m, i, s->layers);
	const bool behind = strncmp(s->arch, "qwen35", 6) == 0 || synth_is_gpt_oss(s);

	if (synth_is_gemma(s)) {
		add_gemma_layer(l, s, type, better, i);
		return;
	}
	add(l, DTYPE_F32, ONES, 1, s->hidden, "blk.%u.attn_norm.weight", i);
	if (s->rank)
		add_latent_layer(l, s, type, i);
	else if (shape_attends(s, i))
		add_attention(l, s, attention_type(s, type), attention_type(s, better), i);
	else
		add_state_layer(l, s, type, i);
	add(l, DTYPE_F32, ONES, 1, s->hidden, behind ? "blk.%u.post_attention_norm.weight" : "blk.%u.ffn_norm.weight",
	    i);
	if (s->experts && i >= s->dense) {
		add_experts(l, s, type, better, i);
		return;
	}
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_gate.weight", i);
	add(l, type, RANDOM, s->ffn, s->hidden, "blk.%u.ffn_up.weight", i);
	add(l, better, RANDOM, s->hidden, s->ffn, "blk.%u.ffn_down.weight", i);
}

void synth_list_tensors(struct tensors *l, const struct model_shape *s, const struct mixture *m)
{
	l->n = 0;
	add(l, s->tied ? m->output : attention_type(s, m->matrices), s->tied ? RANDOM_TOKENS : RANDOM, s->vocab,
	    s->hidden, "token_embd.weight");
	if (!s->tied)
		add(l, m->output, RANDOM_TOKENS, s->vocab, s->hidden, "output.weight");
	add(l, DTYPE_F32, ONES, 1, s->hidden,
	    strcmp(s->arch, "lfm2") == 0 ? "token_embd_norm.weight" : "output_norm.weight");
	if (s->rope_factor > 0 && !synth_is_gemma(s))
		add(l, DTYPE_F32, ROPE_FACTORS, 1, s->head_dim / 2, "rope_freqs.weight");
	if (synth_is_gemma(s))
		add_gemma(l, s, m);
	for (uint32_t i = 0; i < s->layers; i++)
		add_layer(l, s, m, i);
}
