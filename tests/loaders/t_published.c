/* tests/loaders/t_published.c - configurations and metadata of published models, and small models of many kinds: those
 * of a kind that runs open, with tensors made up to match in name and shape alone; of the others each is refused by the
 * sentence that is stated here for its kind. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/json_read.h"
#include "tests/support/shared.h"
#include "tests/loaders/st_writer.h"
#include "tests/loaders/published.h"

static bool there(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	return v && !json_is_null(v);
}

/* Whether the words, with a space between them, have this one. */
static bool is_one_of(const char *type, const char *words)
{
	size_t n = strlen(type);

	for (const char *p = words; n && (p = strstr(p, type)); p += n)
		if ((p == words || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return true;
	return false;
}

/* The feed-forward layer of a mixture of experts. */
static void expert_entries(struct header *h, const struct sizes *s, const char *type, const char *base, uint64_t layer)
{
	const bool minimax = is_one_of(type, "minimax_m2"), mixtral = minimax || is_one_of(type, "mixtral phimoe"),
		   rotated = is_one_of(type, "qwen3_vl_moe_text"), granite = is_one_of(type, "granitemoe"),
		   delta = is_one_of(type, "qwen3_5_moe_text");
	const uint64_t wide = 2 * s->expert_ffn;
	const char *router = granite   ? "block_sparse_moe.router.layer"
	                     : mixtral ? "block_sparse_moe.gate"
	                               : "mlp.gate",
		   *each = mixtral ? "block_sparse_moe.experts" : "mlp.experts";
	const char *const gate[] = { "gate_proj", "w1" }, *const up[] = { "up_proj", "w3" },
			  *const down[] = { "down_proj", "w2" };
	char name[120], prefix[60];

	snprintf(prefix, sizeof prefix, "%slayers.%" PRIu64 ".", base, layer);
	snprintf(name, sizeof name, "%s%s.weight", prefix, router);
	entry(h, name, s->experts, s->hidden);
	snprintf(name, sizeof name, "%sblock_sparse_moe.e_score_correction_bias", prefix);
	if (minimax)
		entry(h, name, 0, s->experts);
	if (rotated) { /* column by column */
		snprintf(name, sizeof name, "%smlp.experts.gate_up_proj", prefix);
		stacked_entry(h, name, s->experts, s->hidden, wide);
		snprintf(name, sizeof name, "%smlp.experts.down_proj", prefix);
		stacked_entry(h, name, s->experts, s->expert_ffn, s->hidden);
	}
	if (granite || delta) {
		snprintf(name, sizeof name, "%s%s", prefix,
		         delta ? "mlp.experts.gate_up_proj" : "block_sparse_moe.input_linear.weight");
		stacked_entry(h, name, s->experts, wide, s->hidden);
		snprintf(name, sizeof name, "%s%s", prefix,
		         delta ? "mlp.experts.down_proj" : "block_sparse_moe.output_linear.weight");
		stacked_entry(h, name, s->experts, s->hidden, s->expert_ffn);
	}
	for (uint64_t e = 0; e < s->experts && !granite && !delta && !rotated; e++) {
		snprintf(name, sizeof name, "%s%s.%" PRIu64 ".%s.weight", prefix, each, e, gate[mixtral]);
		entry(h, name, s->expert_ffn, s->hidden);
		snprintf(name, sizeof name, "%s%s.%" PRIu64 ".%s.weight", prefix, each, e, up[mixtral]);
		entry(h, name, s->expert_ffn, s->hidden);
		snprintf(name, sizeof name, "%s%s.%" PRIu64 ".%s.weight", prefix, each, e, down[mixtral]);
		entry(h, name, s->hidden, s->expert_ffn);
	}
}

/* What a layer of gpt-oss has beside the usual. */
static void gpt_oss_entries(struct header *h, const struct sizes *s, const char *base, uint64_t layer)
{
	char prefix[60], name[120];

	snprintf(prefix, sizeof prefix, "%slayers.%" PRIu64 ".", base, layer);
#define NAME(text) (snprintf(name, sizeof name, "%s" text, prefix), name)
	entry(h, NAME("self_attn.sinks"), 0, s->heads);
	entry(h, NAME("mlp.router.weight"), s->experts, s->hidden);
	entry(h, NAME("mlp.router.bias"), 0, s->experts);
	entry(h, NAME("mlp.experts.gate_up_proj_bias"), s->experts, 2 * s->ffn);
	entry(h, NAME("mlp.experts.down_proj_bias"), s->experts, s->hidden);
	mxfp4_entries(h, NAME("mlp.experts.gate_up_proj"), s->experts, 2 * s->ffn, s->hidden);
	mxfp4_entries(h, NAME("mlp.experts.down_proj"), s->experts, s->hidden, s->ffn);
#undef NAME
}

static void layer_entries(struct header *h, const struct sizes *s, const char *type, const char *base, uint64_t layer)
{
	uint64_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	bool pre = !is_one_of(type, "olmo2 olmo3 exaone4"),
	     post = is_one_of(type, "olmo2 olmo3 exaone4 gemma2 gemma3_text glm4"), one_qkv = is_one_of(type, "phi3"),
	     fused_ffn = is_one_of(type, "phi3 glm4"), glm = is_one_of(type, "glm4"),
	     gemma = is_one_of(type, "gemma2 gemma3_text"), rows = is_one_of(type, "olmo2 olmo3 minimax_m2"),
	     each = s->qk_norm || is_one_of(type, "exaone4 gemma3_text"), hunyuan = is_one_of(type, "hunyuan_v1_dense"),
	     one_norm = is_one_of(type, "cohere phi"), dense = !s->experts, phi = is_one_of(type, "phi");
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.weight", 0, s->hidden, pre },
		{ "self_attn.q_proj.weight", q, s->hidden, !one_qkv },
		{ "self_attn.k_proj.weight", kv, s->hidden, !one_qkv },
		{ "self_attn.v_proj.weight", kv, s->hidden, !one_qkv },
		{ "self_attn.qkv_proj.weight", q + 2 * kv, s->hidden, one_qkv },
		{ "self_attn.o_proj.weight", s->hidden, q, !phi },
		{ "post_attention_layernorm.weight", 0, s->hidden, !one_norm },
		{ "post_feedforward_layernorm.weight", 0, s->hidden, post && !glm },
		{ "pre_feedforward_layernorm.weight", 0, s->hidden, gemma },
		{ "post_self_attn_layernorm.weight", 0, s->hidden, glm },
		{ "post_mlp_layernorm.weight", 0, s->hidden, glm },
		{ "mlp.gate_proj.weight", s->ffn, s->hidden,
		  dense && !fused_ffn && !phi && strcmp(type, "arcee") != 0 },
		{ "mlp.up_proj.weight", s->ffn, s->hidden, dense && !fused_ffn && !phi },
		{ "mlp.gate_up_proj.weight", 2 * s->ffn, s->hidden, fused_ffn },
		{ "mlp.down_proj.weight", s->hidden, s->ffn, dense && !phi },
		{ "self_attn.q_proj.bias", 0, q, s->qkv_bias },
		{ "self_attn.k_proj.bias", 0, kv, s->qkv_bias },
		{ "self_attn.v_proj.bias", 0, kv, s->qkv_bias },
		{ "self_attn.o_proj.bias", 0, s->hidden, s->o_bias && !glm },
		{ "mlp.gate_proj.bias", 0, s->ffn, s->mlp_bias },
		{ "mlp.up_proj.bias", 0, s->ffn, s->mlp_bias },
		{ "mlp.down_proj.bias", 0, s->hidden, s->mlp_bias },
		{ "self_attn.q_norm.weight", 0, rows ? q : s->head_dim, each || rows },
		{ "self_attn.k_norm.weight", 0, rows ? kv : s->head_dim, each || rows },
		{ "self_attn.query_layernorm.weight", 0, s->head_dim, hunyuan },
		{ "self_attn.key_layernorm.weight", 0, s->head_dim, hunyuan },
	};
	char name[100];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu64 ".%s", base, layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
	if (is_one_of(type, centred_types))
		centred_entries(h, type, base, layer, (uint64_t[]){ s->hidden, q, s->ffn });
	if (is_one_of(type, "gpt_oss"))
		gpt_oss_entries(h, s, base, layer);
	else if (s->experts)
		expert_entries(h, s, type, base, layer);
}

/* A layer of Qwen 3.5: with the delta rule, or with attention and its gate. */
static void delta_entries(struct header *h, json_t *config, const struct sizes *s, const char *base, uint64_t layer)
{
	const bool dense = !s->experts;
	const uint64_t shared = number(config, "shared_expert_intermediate_size", 1);
	const char *kind = json_string_value(json_array_get(json_object_get(config, "layer_types"), layer));
	bool state = !kind || strcmp(kind, "linear_attention") == 0;
	uint64_t heads = number(config, "linear_num_value_heads", 1),
		 values = heads * number(config, "linear_value_head_dim", 1),
		 channels = values +
	                    2 * number(config, "linear_num_key_heads", 1) * number(config, "linear_key_head_dim", 1),
		 q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const struct {
		const char *name;
		uint64_t rows, cols;
		bool there;
	} list[] = {
		{ "input_layernorm.weight", 0, s->hidden, true },
		{ "post_attention_layernorm.weight", 0, s->hidden, true },
		{ "linear_attn.in_proj_qkv.weight", channels, s->hidden, state },
		{ "linear_attn.in_proj_z.weight", values, s->hidden, state },
		{ "linear_attn.in_proj_a.weight", heads, s->hidden, state },
		{ "linear_attn.in_proj_b.weight", heads, s->hidden, state },
		{ "linear_attn.out_proj.weight", s->hidden, values, state },
		{ "linear_attn.conv1d.weight", channels, number(config, "linear_conv_kernel_dim", 1), state },
		{ "linear_attn.A_log", 0, heads, state },
		{ "linear_attn.dt_bias", 0, heads, state },
		{ "linear_attn.norm.weight", 0, number(config, "linear_value_head_dim", 1), state },
		{ "self_attn.q_proj.weight", 2 * q, s->hidden, !state },
		{ "self_attn.k_proj.weight", kv, s->hidden, !state },
		{ "self_attn.v_proj.weight", kv, s->hidden, !state },
		{ "self_attn.o_proj.weight", s->hidden, q, !state },
		{ "self_attn.q_norm.weight", 0, s->head_dim, !state },
		{ "self_attn.k_norm.weight", 0, s->head_dim, !state },
		{ "mlp.gate_proj.weight", s->ffn, s->hidden, dense },
		{ "mlp.up_proj.weight", s->ffn, s->hidden, dense },
		{ "mlp.down_proj.weight", s->hidden, s->ffn, dense },
		{ "mlp.shared_expert.gate_proj.weight", shared, s->hidden, !dense },
		{ "mlp.shared_expert.up_proj.weight", shared, s->hidden, !dense },
		{ "mlp.shared_expert.down_proj.weight", s->hidden, shared, !dense },
		{ "mlp.shared_expert_gate.weight", 1, s->hidden, !dense },
	};
	char name[100];

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		snprintf(name, sizeof name, "%slayers.%" PRIu64 ".%s", base, layer, list[i].name);
		if (list[i].there)
			entry(h, name, list[i].rows, list[i].cols);
	}
	if (s->experts)
		expert_entries(h, s, "qwen3_5_moe_text", base, layer);
}

/* Those whose experts published_routed.c makes up. */
static const char routed_types[] = "deepseek_v2 deepseek_v3 kimi_k2 glm4_moe_lite glm4_moe llama4_text";

/* The header of a safetensors file of this configuration. */
static uint8_t *made_up(json_t *config, const char *type, const char *base, size_t *n)
{
	bool gemma3 = strcmp(type, "gemma3_text") == 0; /* published files leave out what its class has as defaults */
	uint64_t heads = number(config, "num_attention_heads", gemma3 ? 8 : 1),
		 hidden = number(config, "hidden_size", 1);
	bool bias = json_is_true(json_object_get(config, "attention_bias")), qwen2 = strcmp(type, "qwen2") == 0;
	struct sizes s = {
		number(config, "num_hidden_layers", 1),
		hidden,
		number(config, "intermediate_size", 1),
		number(config, "vocab_size", gemma3 ? 262208 : 1),
		heads,
		number(config, "num_key_value_heads", gemma3 ? 4 : heads),
		number(config, "head_dim", gemma3 ? 256 : hidden / heads),
		json_is_true(json_object_get(config, "tie_word_embeddings")) ||
			((gemma3 || strcmp(type, "cohere") == 0) && !there(config, "tie_word_embeddings")),
		bias || qwen2 || is_one_of(type, "phi") || json_is_true(json_object_get(config, "use_qkv_bias")),
		bias,
		json_is_true(json_object_get(config, "mlp_bias")),
		is_one_of(type, "qwen3 qwen3_vl_text qwen3_vl_moe_text qwen3_moe"),
		false,
		is_one_of(type, expert_types) ? number(config, "num_experts", number(config, "num_local_experts", 0))
					      : 0,
		number(config, "moe_intermediate_size", number(config, "intermediate_size", 1))
	};
	struct header h = { 0 };

	bool nemotron = strcmp(type, "nemotron_h") == 0;
	char name[60];
	snprintf(name, sizeof name, "%s%s.weight", base, nemotron ? "embeddings" : "embed_tokens");
	entry(&h, name, s.vocab, s.hidden);
	if (is_one_of(type, centred_types))
		centred_outer(&h, type, base, s.hidden, s.vocab);
	snprintf(name, sizeof name, "%s%s.weight", base, nemotron ? "norm_f" : "norm");
	if (!is_one_of(type, centred_types))
		entry(&h, name, 0, s.hidden);
	if (!s.tied)
		entry(&h,
		      strncmp(base, "language_model.", 15) == 0 ? "language_model.lm_head.weight" : "lm_head.weight",
		      s.vocab, s.hidden);
	const uint64_t later = number(config, "num_nextn_predict_layers", 0);
	if (nemotron && later)
		entry(&h, "mtp.layers.0.norm.weight", 0, s.hidden);
	for (uint64_t i = 0; i < s.layers + (nemotron ? 0 : later); i++)
		if (nemotron)
			one_part_entries(&h, config, i);
		else if (is_one_of(type, "qwen3_5_text qwen3_5_moe_text"))
			delta_entries(&h, config, &s, base, i);
		else if (json_is_true(json_object_get(config, "enable_moe_block")))
			beside_entries(&h, config, base, i);
		else if (is_one_of(type, routed_types))
			routed_entries(&h, config, base, i);
		else
			layer_entries(&h, &s, type, base, i);
	text_of(&h.b, "}");
	uint8_t *file = st_from_text((const char *)h.b.p, h.b.n, 0, n);
	bytes_forget(&h.b);
	return file;
}

/* What the class of Qwen 3.5 has where a file says nothing. */
static void fill_up(json_t *config)
{
	static const struct {
		const char *name;
		int value;
	} usual[] = { { "head_dim", 256 },
		      { "linear_conv_kernel_dim", 4 },
		      { "linear_key_head_dim", 128 },
		      { "linear_value_head_dim", 128 },
		      { "linear_num_key_heads", 16 },
		      { "linear_num_value_heads", 32 },
		      { "num_experts", 256 },
		      { "moe_intermediate_size", 512 },
		      { "shared_expert_intermediate_size", 512 } };
	json_t *types = json_array();

	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!there(config, usual[i].name))
			json_object_set_new(config, usual[i].name, json_integer(usual[i].value));
	for (uint64_t i = 1; i <= number(config, "num_hidden_layers", 1); i++)
		json_array_append_new(types, json_string(i % 4 ? "linear_attention" : "full_attention"));
	json_object_set_new(config, "layer_types", types);
}

/* What is expected of a configuration: NULL, or a part of the sentence that refuses it. */
static bool says(json_t *o, const char *key, const char *text)
{
	json_t *v = json_object_get(o, key);
	return json_is_string(v) && strcmp(json_string_value(v), text) == 0;
}

/* NULL: its quantised weights are read, or it has none. */
static const char *quants_refusal(json_t *config)
{
	json_t *q = json_object_get(config, "quantization_config"), *mlx = json_object_get(config, "quantization");

	if (json_object_get(mlx, "group_size") && !json_object_get(mlx, "mode"))
		return NULL;
	if (says(q, "quant_method", "gptq") && number(q, "bits", 0) != 4 && number(q, "bits", 0) != 8)
		return "quantization_config.bits is 3, expected 4 or 8";
	if (says(q, "quant_method", "gptq") && json_is_true(json_object_get(q, "desc_act")))
		return "quantization_config.desc_act is true, expected false";
	if (says(q, "quant_method", "gptq") || (says(q, "quant_method", "fp8") && !there(q, "config_groups")) ||
	    (says(q, "quant_method", "compressed-tensors") &&
	     (says(q, "format", "float-quantized") || says(q, "format", "pack-quantized"))))
		return NULL;
	return there(config, "quantization_config") || there(config, "quantization")
	               ? "expected unquantised weights"
	               : NULL;
}

static const char *expected(json_t *config, const char *type)
{
	static const char *const runs[] = {
		"llama",      "mistral",
		"qwen2",      "qwen3",
		"xverse",     "phi3",
		"smollm3",    "granite",
		"olmo2",      "olmo3",
		"glm4",       "hunyuan_v1_dense",
		"exaone4",    "gemma3_text",
		"arcee",      "gemma2",
		"ministral3", "cohere",
		"qwen3_moe",  "mixtral",
		"granitemoe", "qwen3_5_moe_text",
		"gpt_oss",    "nemotron_h",
		"minimax_m2", "stablelm",
		"phi",        "phimoe"
	};
	const char *class = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
	bool run = false;

	if (!type)
		return "model_type is missing";
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		run = run || strcmp(type, runs[i]) == 0;
	if (is_one_of(type, bare_types) && quants_refusal(config))
		return quants_refusal(config);
	if (is_one_of(type, bare_types))
		return "tensor";
	if (!run && !is_one_of(type, routed_types))
		return refusal(type);
	if (class && !strstr(class, "ForCausalLM"))
		return "is no model that continues a text";
	if (strcmp(type, "gpt_oss") != 0 && quants_refusal(config))
		return quants_refusal(config);
	if (json_is_false(json_object_get(config, "is_causal")))
		return "the field is_causal is false";
	if (there(config, "attention_chunk_size"))
		return "the field attention_chunk_size is";
	if (!there(config, "num_hidden_layers") && !there(config, "layers_block_type"))
		return "num_hidden_layers is missing";
	if (strcmp(type, "nemotron_h") == 0 && there(config, "moe_latent_size"))
		return "moe_latent_size";
	return NULL;
}

static void check_config(const char *file, struct counts *c)
{
	char path[1024], relative[600];
	size_t n, n_text;

	snprintf(relative, sizeof relative, "data/configs/%s", file);
	if (!shared_path(path, relative))
		fail_msg("%s is listed, but not there", file);
	char *bytes = (char *)file_bytes(path, &n_text);
	json_t *config = json_read(bytes, n_text, n_text, file, NULL); /* one of them says Infinity */
	const char *type = json_string_value(json_object_get(config, "model_type")), *base = "model.";
	json_t *text = json_object_get(config, "text_config"), *inner = json_object_get(text, "model_type");
	bool inside =
		type && json_is_string(inner) &&
		is_one_of(type, "gemma3 gemma4 llama4 llava mistral3 qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_moe") &&
		is_one_of(json_string_value(inner),
	                  "gemma3_text gemma4_text llama llama4_text ministral3 qwen3_vl_text qwen3_5_text "
	                  "qwen3_5_moe_text qwen3_vl_moe_text");
	bool cut = inside && there(text, "layer_types") && /* one was made smaller by hand */
	           json_array_size(json_object_get(text, "layer_types")) != number(text, "num_hidden_layers", 0);
	const char *part = inside && (quants_refusal(config) || quants_refusal(text))
	                           ? quants_refusal(config) ? quants_refusal(config) : quants_refusal(text)
	                   : cut    ? "layer_types is an array of"
	                   : inside ? NULL
	                            : expected(config, type);
	if (type && !part && !inside && refusal(type))
		fail_msg("%s: type %s runs and is refused", file, type);
	base = type && strcmp(type, "nemotron_h") == 0 ? "backbone." : base;
	if (inside) {
		type = json_string_value(inner);
		base = is_one_of(type, "qwen3_vl_text qwen3_vl_moe_text qwen3_5_text qwen3_5_moe_text")
		               ? "model.language_model."
		               : "language_model.model.";
	}
	if (inside && is_one_of(type, "qwen3_5_text qwen3_5_moe_text") && !there(text, "linear_num_key_heads"))
		fill_up(text); /* two files leave all that to their class */
	if (inside && strcmp(type, "llama") == 0)
		fill_up_llama(text);
	if (type && is_one_of(type, "qwen2_vl qwen2_5_vl"))
		type = "qwen2";
	uint8_t *weights = made_up(inside ? text : config, type ? type : "", base, &n);
	check_said(file, weights, n, bytes, n_text, part, c);
	json_decref(config);
	free(weights);
	free(bytes);
}

static void test_configurations(void **state)
{
	char path[1024];
	struct counts c = { 0 };
	json_t *entry_of;
	size_t i;

	if (!shared_path(path, "data/configs/index.json"))
		skip();
	json_t *index = json_load_file(path, 0, NULL);
	json_array_foreach(index, i, entry_of)
	{
		const char *file = json_string_value(json_object_get(entry_of, "file")), *name = strrchr(file, '/') + 1;
		if (strcmp(name, "config.json") == 0 || there(entry_of, "model_type"))
			check_config(file, &c);
	}
	json_decref(index);
	printf("# %u configurations open, %u are refused\n", c.opened, c.refused);
	assert_true(c.opened >= 60 && c.opened + c.refused >= 210);
}

/* ---- small models of many kinds: what is said of the directory, and of a GGUF file in it. NULL: opens; GGUF "": there
 * is none */

static const struct {
	const char *folder, *hf, *gguf;
} small[] = {
	{ "llama-a", NULL, NULL },        { "llama-gqa4-bf16", NULL, "" }, { "llama-mha-f32", NULL, "" },
	{ "mistral-gqa4-f16", NULL, "" }, { "qwen3-gqa2-bf16", NULL, "" }, { "ernie45-a", NULL, NULL },
	{ "seedoss-a", NULL, NULL },      { "ministral3-a", NULL, NULL },  { "mistral4-a", NULL, NULL },
	{ "mixtral-a", NULL, NULL },      { "arcee-a", NULL, NULL },       { "cohere2-a", NULL, NULL },
	{ "deepseekv2-a", NULL, NULL },   { "deepseekv3-a", NULL, NULL },  { "glm4moelite-a", NULL, NULL },
	{ "exaone4-a", NULL, NULL },      { "gemma2-a", NULL, NULL },      { "gemma3-a", NULL, NULL },
	{ "gemma4-e-a", NULL, NULL },     { "gemma4-k-a", NULL, NULL },    { "gemma4-moe-a", NULL, NULL },
	{ "glm4-a", NULL, NULL },         { "olmo2-a", NULL, NULL },       { "olmo3-a", NULL, NULL },
	{ "glm4moe-a", NULL, NULL },      { "granitemoe-a", NULL, "" },    { "olmoe-a", NULL, NULL },
	{ "qwen2moe-a", NULL, NULL },     { "qwen3moe-a", NULL, NULL },    { "gptoss-a", NULL, NULL },
	{ "gptoss-a-mxfp4", NULL, NULL }, { "granite-a", NULL, "" },       { "granitehybrid-a", NULL, "" },
	{ "nemotronh-a", NULL, NULL },    { "hunyuan-a", NULL, NULL },     { "lfm2-a", NULL, NULL },
	{ "lfm2moe-a", NULL, NULL },      { "phi3-a", NULL, NULL },        { "qwen35-a", NULL, NULL },
	{ "qwen35moe-a", NULL, NULL },    { "qwen3next-a", NULL, NULL },   { "smollm3-a", NULL, NULL },
};

static void check_path(const char *relative, const char *part)
{
	char path[1024];
	struct error err = { 0 };
	struct model m;

	if (!shared_path(path, relative))
		fail_msg("%s is not there", relative);
	bool ok = model_open(&m, path, MODEL_NO_TOKENIZER, &err);
	if (ok != (part == NULL) || (part && !strstr(err.text, part)))
		fail_msg("%s: expected \"%s\", got \"%s\"", path, part ? part : "ok", ok ? "ok" : err.text);
	if (ok)
		model_close(&m);
}

static void test_small_models(void **state)
{
	char path[1024];

	if (!shared_path(path, "golden/llama-a"))
		skip();
	for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
		snprintf(path, sizeof path, "golden/%s", small[i].folder);
		check_path(path, small[i].hf);
		snprintf(path, sizeof path, "golden/%s/model-bf16.gguf", small[i].folder);
		if (!small[i].gguf || *small[i].gguf)
			check_path(path, small[i].gguf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_small_models),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += published_gguf_tests();
	return failed;
}
