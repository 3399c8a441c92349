/* loaders/model/model_arch.c - the table of architectures and the lists behind model_arch.h. */
#include "loaders/model/model_arch.h"

#include <stdio.h>
#include <string.h>

#define ATTENTION_ONLY "use_sliding_window max_window_layers"
/* Keys of mixtures of experts; fields of theirs that are for training. */
#define EXPERT_KEYS "expert_count expert_used_count expert_feed_forward_length"
#define SHARED_KEYS \
	"expert_shared_count expert_shared_feed_forward_length expert_weights_scale expert_weights_norm " \
	"expert_gating_func expert_group_count expert_group_used_count leading_dense_block_count"
/* Sizes of layers with the selective scan, which files have that have no such layers. */
#define SCAN_KEYS "ssm.conv_kernel ssm.state_size ssm.group_count ssm.inner_size ssm.time_step_rank"
/* Sizes of layers with the delta rule, where config.json leaves them out. */
#define DELTA_SIZES \
	"linear_conv_kernel_dim=4 linear_key_head_dim=128 linear_value_head_dim=128 linear_num_key_heads=16 " \
	"linear_num_value_heads=32 partial_rotary_factor|null=0.25"
#define TRAINED_ROUTER "output_router_logits router_aux_loss_coef router_jitter_noise"
/* What Cohere's files say of the model's form, which their classes always have. */
#define COHERE_SAID \
	"layer_switch order_of_interleaved_layers position_embedding_type rotary_pct use_embedding_sharing " \
	"use_gated_activation use_parallel_block use_parallel_embedding"

/* Latent attention: what it is, its switches last, to which a row may add; and the fields of config.json that say
 * again what others say or are for training. */
#define LATENT_FORM \
	.form = FORM_LATENT, .gguf_pairs = true, .hf_pairs = true, .groups = GROUP(LATENT), \
	.without = GROUP(KEYS_VALUES), .switches = SWITCH_LATENT | SWITCH_LATER_LAYERS
#define LATENT_FIELDS "qk_head_dim head_dim attention_bias mlp_bias ep_size seq_aux aux_loss_alpha"
#define SHARED_EXPERTS \
	{ SLOT_shared_gate, NULL, "mlp.shared_experts.gate_proj.weight" }, \
		{ SLOT_shared_up, NULL, "mlp.shared_experts.up_proj.weight" }, \
	{ \
		SLOT_shared_down, NULL, "mlp.shared_experts.down_proj.weight" \
	}
#define SHARED_MLP \
	{ SLOT_shared_gate, NULL, "mlp.shared_mlp.gate_proj.weight" }, \
		{ SLOT_shared_up, NULL, "mlp.shared_mlp.up_proj.weight" }, \
	{ \
		SLOT_shared_down, NULL, "mlp.shared_mlp.down_proj.weight" \
	}
/* What Nemotron's files call the tensors of layers that are one thing each. */
#define NEMOTRON_NAMES \
	{ \
		{ SLOT_attn_norm, NULL, "norm.weight" }, { SLOT_ffn_norm, "attn_norm.weight", "norm.weight" }, \
			{ SLOT_q, NULL, "mixer.q_proj.weight" }, { SLOT_k, NULL, "mixer.k_proj.weight" }, \
			{ SLOT_v, NULL, "mixer.v_proj.weight" }, { SLOT_o, NULL, "mixer.o_proj.weight" }, \
			{ SLOT_q_bias, NULL, "mixer.q_proj.bias" }, { SLOT_k_bias, NULL, "mixer.k_proj.bias" }, \
			{ SLOT_v_bias, NULL, "mixer.v_proj.bias" }, { SLOT_o_bias, NULL, "mixer.o_proj.bias" }, \
			{ SLOT_up, NULL, "mixer.up_proj.weight" }, { SLOT_down, NULL, "mixer.down_proj.weight" }, \
			{ SLOT_up_bias, NULL, "mixer.up_proj.bias" }, \
			{ SLOT_down_bias, NULL, "mixer.down_proj.bias" }, \
			{ SLOT_scan_z, NULL, "mixer.in_proj.weight" }, \
			{ SLOT_scan_out, NULL, "mixer.out_proj.weight" }, \
			{ SLOT_scan_norm, NULL, "mixer.norm.weight" }, { SLOT_scan_decay, NULL, "mixer.A_log" }, \
			{ SLOT_scan_dt_bias, NULL, "mixer.dt_bias" }, { SLOT_scan_skip, NULL, "mixer.D" }, \
			{ SLOT_taps, NULL, "mixer.conv1d.weight" }, { SLOT_taps_bias, NULL, "mixer.conv1d.bias" }, \
			{ SLOT_router, NULL, "mixer.gate.weight" }, \
			{ SLOT_router_bias, NULL, "mixer.gate.e_score_correction_bias" }, \
			{ SLOT_expert_up, NULL, "mixer.experts.*.up_proj.weight" }, \
			{ SLOT_expert_down, NULL, "mixer.experts.*.down_proj.weight" }, \
			{ SLOT_shared_up, NULL, "mixer.shared_experts.up_proj.weight" }, \
			{ SLOT_shared_down, NULL, "mixer.shared_experts.down_proj.weight" }, \
	}

/* What GPT-2's tensors and fields are called, and what of these its classes use for other things or not at all. */
#define GPT_NAMES \
	{ SLOT_attn_norm, NULL, "ln_1.weight" }, { SLOT_attn_norm_bias, NULL, "ln_1.bias" }, \
		{ SLOT_ffn_norm, NULL, "ln_2.weight" }, { SLOT_ffn_norm_bias, NULL, "ln_2.bias" }, \
		{ SLOT_q, NULL, "attn.c_attn.weight" }, { SLOT_q_bias, NULL, "attn.c_attn.bias" }, \
		{ SLOT_o, NULL, "attn.c_proj.weight" }, { SLOT_o_bias, NULL, "attn.c_proj.bias" }, \
		{ SLOT_up, NULL, "mlp.c_fc.weight" }, { SLOT_down, NULL, "mlp.c_proj.weight" }, \
		{ SLOT_up_bias, NULL, "mlp.c_fc.bias" }, \
	{ \
		SLOT_down_bias, NULL, "mlp.c_proj.bias" \
	}
#define GPT_FIELDS \
	"n_embd=hidden_size n_inner=intermediate_size n_head=num_attention_heads n_layer=num_hidden_layers " \
	"n_positions=max_position_embeddings n_ctx=max_position_embeddings activation_function=hidden_act"
#define GPT_UNUSED \
	"summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout " \
	"attention_bias mlp_bias"

/* The norms of Falcon's layers that have one for each of attention and the feed-forward layer. */
static const struct arch_name falcon_norms[ARCH_NORM_NAMES] = {
	{ SLOT_attn_norm, "attn_norm_2.weight", "ln_attn.weight" },
	{ SLOT_attn_norm_bias, "attn_norm_2.bias", "ln_attn.bias" },
	{ SLOT_ffn_norm, "attn_norm.weight", "ln_mlp.weight" },
	{ SLOT_ffn_norm_bias, "attn_norm.bias", "ln_mlp.bias" }
};

/* What Mamba 1 is, and what its files say beside. */
#define CHANNEL_FORM \
	.groups = GROUP(CHANNEL) | GROUP(TAPS), .recurrent = MIXER_CHANNEL, .states_alone = true, .head_dim = 64, \
	.switches = SWITCH_ONE_PART | SWITCH_NO_ROPE, .gguf_fused = FUSED_CHANNEL, .hf_fused = FUSED_CHANNEL, \
	.base = "backbone.", .embed = "embeddings.weight", .final_norm = { NULL, "norm_f.weight" }, \
	.eps = "layer_norm_epsilon", .renamed = MAMBA_NAMES
#define MAMBA_NAMES \
	{ \
		{ SLOT_attn_norm, NULL, "norm.weight" }, { SLOT_channel_x, NULL, "mixer.in_proj.weight" }, \
			{ SLOT_channel_dt, NULL, "mixer.x_proj.weight" }, \
			{ SLOT_channel_steps, NULL, "mixer.dt_proj.weight" }, \
			{ SLOT_channel_bias, NULL, "mixer.dt_proj.bias" }, \
			{ SLOT_channel_out, NULL, "mixer.out_proj.weight" }, \
			{ SLOT_channel_decay, NULL, "mixer.A_log" }, { SLOT_channel_skip, NULL, "mixer.D" }, \
			{ SLOT_taps, NULL, "mixer.conv1d.weight" }, { SLOT_taps_bias, NULL, "mixer.conv1d.bias" }, \
	}
#define MAMBA_DEFAULTS "num_attention_heads=1 max_position_embeddings=1048576 layer_norm_epsilon=1e-5"
#define MAMBA_FIELDS \
	"intermediate_size rescale_prenorm_residual residual_in_fp32 time_step_floor time_step_max time_step_min " \
	"time_step_scale time_step_init_scheme use_mambapy use_associative_scan use_falcon_mambapy d_inner d_model " \
	"n_layer ssm_cfg fused_add_norm rms_norm"

/* Fields of configurations of Qwen 2 VL and 2.5 VL, which may have those of the text model beside the image part's. */
#define SEEING \
	"attention_bias mlp_bias mrope_section vision_config image_token_id video_token_id " \
	"vision_start_token_id vision_end_token_id vision_token_id"

static const struct arch_row rows[] = {
#include "loaders/model/model_arch_rows.def"
#include "loaders/model/model_arch_states.def"
#include "loaders/model/model_arch_centred.def"
#include "loaders/model/model_arch_mixtures.def"
#include "loaders/model/model_arch_encoders.def"
#include "loaders/model/model_arch_refused.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Keys of GGUF behind "ARCHITECTURE." that must be off, in the order in which they are named when several are not. */
static const struct arch_off gguf_off[] = {
	{ "attention.causal", 1, "attention to later tokens" },
	{ "expert_count", 0, "mixture of experts" },
	{ "expert_used_count", 0, "mixture of experts" },
	{ "expert_shared_count", 0, NULL },
	{ "expert_feed_forward_length", 0, NULL },
	{ "expert_shared_feed_forward_length", 0, NULL },
	{ "expert_weights_scale", 0, NULL },
	{ "expert_weights_norm", 0, NULL },
	{ "expert_gating_func", 0, NULL },
	{ "expert_group_count", 0, NULL },
	{ "expert_group_used_count", 0, NULL },
	{ "leading_dense_block_count", 0, NULL },
	{ "interleave_moe_layer_step", 0, NULL },
	{ "moe_every_n_layers", 0, NULL },
	{ "nextn_predict_layers", 0, "layers that predict several tokens" },
	{ "logit_scale", 1, NULL },
	{ "residual_scale", 1, NULL },
	{ "embedding_scale", 1, NULL },
	{ "attn_logit_softcapping", 0, NULL },
	{ "final_logit_softcapping", 0, NULL },
	{ "router_logit_softcapping", 0, NULL },
	{ "attention.temperature_scale", 0, "queries scaled by position" },
	{ "attention.temperature_length", 0, NULL },
	{ "attention.scale", 0, NULL },
	{ "attention.output_scale", 1, NULL },
	{ "attention.value_scale", 1, NULL },
	{ "attention.clamp_kqv", 0, "Q, K and V cut off" },
	{ "attention.max_alibi_bias", 0, "attention biased by distance" },
	{ "attention.sliding_window_pattern", 0, "a window in some layers" },
	{ "attention.shared_kv_layers", 0, NULL },
	{ "rope.scaling.yarn_log_multiplier", 0, NULL },
	{ "rope.scaling.yarn_ext_factor", 1, NULL },
	{ "rope.scaling.alpha", 0, NULL },
	{ "use_parallel_residual", 0, NULL },
	{ "swin_norm", 0, NULL },
	{ "embedding_length_per_layer_input", 0, NULL },
	{ "n_deepstack_layers", 0, NULL },
	{ "full_attention_interval", 0, NULL },
};

/* Fields of config.json of which the value that leaves them off is not null, false, 0 or empty. */
static const struct arch_off hf_off[] = {
	{ "is_causal", 1, "attention to later tokens" },
	{ "logit_scale", 1, NULL },
	{ "logits_scaling", 1, NULL },
	{ "embedding_multiplier", 1, NULL },
	{ "residual_multiplier", 1, NULL },
	{ "compression_ratio", 1, NULL },
	{ "extrapolation_factor", 1, NULL },
	{ "do_layer_norm_before", 1, NULL },
	{ "enable_bias", 1, NULL },
	{ "layer_norm_elementwise_affine", 1, NULL },
	{ "scale_attn_weights", 1, NULL },
};

/* layer_norm_epsilon is for norms that subtract the mean, where there are none of them; finetuned says how a
 * scaling came about, tensor_data_layout where the weights came from; pooling_type is model_pooling.c's,
 * the labels are model_classifier.c's, and the sizes of dense layers model_dense.c's. */
static const char gguf_keys[] =
	"attention.layer_norm_epsilon rope.scaling.finetuned tensor_data_layout pooling_type "
	"classifier.output_labels dense_2_feat_in dense_2_feat_out dense_3_feat_in "
	"dense_3_feat_out";

/* Names that begin with _ are private to transformers. Further what it writes into every configuration, and what is for
 * training, for sampling, or for a program of another kind. */
static const char hf_fields[] =
	"transformers_version torch_dtype dtype use_cache auto_map tokenizer_class attn_implementation "
	"return_dict output_attentions output_hidden_states torchscript chunk_size_feed_forward is_decoder prefix "
	"finetuning_task task_specific_params problem_type "
	"id2label label2id num_labels use_bfloat16 gradient_checkpointing pretraining_tp initializer_range "
	"initializer_factor "
	"attention_dropout residual_dropout hidden_dropout attention_probs_dropout_prob hidden_dropout_prob "
	"resid_pdrop embd_pdrop attn_pdrop embed_dropout classifier_dropout "
	"bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id "
	"max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k "
	"top_p typical_p repetition_penalty length_penalty "
	"no_repeat_ngram_size encoder_no_repeat_ngram_size num_return_sequences output_scores return_dict_in_generate "
	"forced_bos_token_id forced_eos_token_id "
	"remove_invalid_values suppress_tokens begin_suppress_tokens exponential_decay_length_penalty bad_words_ids "
	"finetuned max_sequence_length model_max_length max_tokenizer_truncation unsloth_fixed unsloth_version "
	"is_llama_config transformers.js_config "
	"cache_implementation layer_norm_eps neftune_noise_alpha use_flash_attention use_flash_attention_2 "
	"use_flash_attn use_sdpa";

static const char gguf_tensors[] = "blk.*.attn_rot_embd.weight";
static const char hf_tensors[] = "model.layers.*.self_attn.rotary_emb.inv_freq model.rotary_emb.inv_freq "
				 "h.*.attn.bias h.*.attn.masked_bias";

struct model_needs arch_needs(const struct arch_row *row, bool rope_pairs)
{
	const uint64_t usual = GROUP(WEIGHT) | GROUP(ATTENTION) | GROUP(MLP) | GROUP(PRE_NORM) | GROUP(FFN_NORM) |
	                       GROUP(GATE) | GROUP(QUERIES) | GROUP(KEYS_VALUES);
	struct model_needs n = { .rope_pairs = rope_pairs, .head_biased = row->head_biased };

	for (int g = 0; g < TENSOR_GROUPS; g++)
		n.group[g] = ((usual & ~row->without) | row->groups) >> g & 1 ? NEED_ALWAYS : NEED_NOT;
	if (row->groups & GROUP(SCAN))
		n.group[GROUP_SCAN_NORM] = NEED_ALWAYS;
	if (row->form == FORM_BERT)
		n.group[GROUP_POST_NORM_BIAS] = NEED_ALWAYS;
	return n;
}

const struct arch_row *arch_rows(size_t *n)
{
	*n = ROWS;
	return rows;
}

struct arch_lists arch_lists(void) { return (struct arch_lists){ gguf_keys, hf_fields, gguf_tensors, hf_tensors }; }

/* The word that begins at or behind p, its end in *end; NULL when there is none. */
static const char *next_word(const char *p, const char **end)
{
	p += strspn(p, " ");
	*end = p + strcspn(p, " ");
	return *p ? p : NULL;
}

static bool word_in(const char *words, const char *word, size_t n)
{
	const char *end;

	for (const char *p = words; p && (p = next_word(p, &end)); p = end)
		if ((size_t)(end - p) == n && memcmp(p, word, n) == 0)
			return true;
	return false;
}

bool arch_word_in(const char *words, const char *word) { return word_in(words, word, strlen(word)); }

const struct arch_row *arch_of_gguf(const char *name, size_t n)
{
	for (size_t i = 0; i < ROWS; i++)
		if (word_in(rows[i].gguf, name, n))
			return &rows[i];
	return NULL;
}

const struct arch_row *arch_of_hf(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (arch_word_in(rows[i].hf, name))
			return &rows[i];
	return NULL;
}

const char *arch_names(bool gguf, char *out, size_t cap)
{
	static const char others[] = " or others";
	const char *name[ROWS];
	size_t n = 0, used = 0;

	for (size_t i = 0; i < ROWS; i++)
		if (!rows[i].lacks && (gguf ? rows[i].gguf : rows[i].hf))
			name[n++] = gguf ? rows[i].gguf : rows[i].hf;
	*out = 0;
	for (size_t i = 0; i < n; i++) {
		const char *before = i == 0 ? "" : i + 1 < n ? ", " : " or ";
		if (used + strlen(before) + strlen(name[i]) + strlen(others) >= cap) {
			snprintf(out + used, cap - used, "%s", others);
			break;
		}
		used += (size_t)snprintf(out + used, cap - used, "%s%s", before, name[i]);
	}
	return out;
}

const struct arch_off *arch_gguf_offs(size_t *n)
{
	*n = sizeof gguf_off / sizeof *gguf_off;
	return gguf_off;
}

const struct arch_off *arch_hf_off(const char *field)
{
	for (size_t i = 0; i < sizeof hf_off / sizeof *hf_off; i++)
		if (strcmp(hf_off[i].name, field) == 0)
			return &hf_off[i];
	return NULL;
}

bool arch_gguf_key_harmless(const char *suffix) { return arch_word_in(gguf_keys, suffix); }

bool arch_hf_field_harmless(const struct arch_row *row, const char *field)
{
	return *field == '_' || arch_word_in(hf_fields, field) || arch_word_in(row->fields, field);
}

/* Whether the name is the pattern's, in which * stands for one or more digits. */
static bool fits(const char *pattern, const char *pattern_end, const char *name, size_t n)
{
	size_t i = 0;

	for (; pattern < pattern_end; pattern++) {
		if (*pattern != '*') {
			if (i == n || name[i++] != *pattern)
				return false;
			continue;
		}
		size_t first = i;
		while (i < n && name[i] >= '0' && name[i] <= '9')
			i++;
		if (i == first)
			return false;
	}
	return i == n;
}

bool arch_tensor_harmless(bool gguf, const char *name, size_t n)
{
	static const char base[] = "transformer.";
	const size_t skip = !gguf && n > strlen(base) && memcmp(name, base, strlen(base)) == 0 ? strlen(base) : 0;
	const char *end;

	name += skip;
	n -= skip;
	for (const char *p = gguf ? gguf_tensors : hf_tensors; (p = next_word(p, &end)); p = end)
		if (fits(p, end, name, n))
			return true;
	return false;
}
