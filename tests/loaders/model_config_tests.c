/* tests/loaders/model_config_tests.c - what a model says of itself: every setting, in config.json and in GGUF keys,
 * right and wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_check.h"

/* Settings of config.json and what they must come to. error NULL: opens. */
struct setting {
	const char *arch, *extra, *error;
	enum rope_scaling scaling;
	double theta, factor, attention;
	uint32_t original, window;
};

static const struct setting settings[] = {
	{ "llama", "", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 500000", NULL, ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 5e5, \"rope_scaling\": null, \"torch_dtype\": \"bfloat16\"", NULL, ROPE_NONE,
	  500000, 1, 1, 0, 0 },
	{ "llama",
	  ",\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}, \"dtype\": \"bfloat16\"", NULL,
	  ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_theta\": 7, \"rope_parameters\": {\"rope_theta\": 20000}", NULL, ROPE_NONE, 20000, 1, 1, 0,
	  0 },
	{ "llama", ",\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}", NULL, ROPE_LINEAR, 10000, 4, 1, 512, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}", NULL, ROPE_LINEAR, 10000, 2.5, 1,
	  512, 0 },
	{ "llama",
	  ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
	  "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 256}",
	  NULL, ROPE_LLAMA3, 10000, 8, 1, 256, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 128}",
	  NULL, ROPE_YARN, 10000, 4, 1.1386294361119891, 128, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"attention_factor\": 1.5}", NULL,
	  ROPE_YARN, 10000, 4, 1.5, 512, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"mscale\": 2, \"mscale_all_dim\": 0.5}", NULL,
	  ROPE_YARN, 10000, 4, 1.2772588722239781 / 1.0693147180559945, 512, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, \"mscale\": 2}", NULL, ROPE_YARN,
	  10000, 4, 1.1386294361119891, 512, 0 },
	{ "qwen3",
	  ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": null, \"original_max_position_embeddings\": 128}",
	  NULL, ROPE_YARN, 10000, 4, 1.1386294361119891, 128, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": 0}", NULL, ROPE_YARN,
	  10000, 4, 1.1386294361119891, 512, 0 }, /* 0 means 32 */
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": -1}", "beta_fast is -1",
	  0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}",
	  "\"dynamic\", expected default, linear, llama3 or yarn", 0, 0, 0, 0, 0, 0 },
	{ "hunyuan_v1_dense", ",\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}",
	  "\"dynamic\" without alpha, which changes with the length of a text", 0, 0, 0, 0, 0, 0 },
	{ "hunyuan_v1_dense", ",\"rope_scaling\": {\"type\": \"dynamic\", \"alpha\": -2}",
	  "the rotary scaling's alpha is -2", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"longrope\", \"short_factor\": [1]}", "\"longrope\"", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\"}", "has no factor", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0}", "scaling factor is 0", 0, 0, 0, 0,
	  0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": \"2\"}",
	  "factor is a string, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8}", "llama3 has no low_freq_factor", 0,
	  0, 0, 0, 0, 0 },
	{ "llama",
	  ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": "
	  "3}",
	  "expected at least low_freq_factor", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": [1]", "rope_scaling is an array, expected an object", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1}}", "differs between kinds of layers",
	  0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": 0", "theta) is 0", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": -1e4", "theta) is -10000", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": true", "rope_theta is true, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": NaN", "rope_theta is NaN, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": 1e999", "rope_theta is Infinity, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_theta\": \"NaN\"", "rope_theta is a string, expected a number", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"unread\": NaN", "the field unread is NaN; it is not known", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"task_specific_params\": [1000000000000000019884624838656, NaN, -Infinity, 1e400, \"\\ud800\"]",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"vocab_size\": 123456789012345678901234567890", "vocab_size is 1.23456789e+29", 0, 0, 0, 0, 0,
	  0 },
	{ "llama", ",\"rope_scaling\": -Infinity", "rope_scaling is -Infinity, expected an object", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"model_type\": NaN", "model_type is NaN, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"hidden_act\": \"\\ud800\"",
	  "hidden_act is a string with half a surrogate pair, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"head_dim\": 1024", "the head dimension is 1024, which is not supported: jitrun runs 2 to 512", 0,
	  0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 33, \"num_experts\": 40",
	  "the number of experts of a token is 33, which is not supported: jitrun runs 1 to 32", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"head_dim\": 3", "the head dimension is 3", 0, 0, 0, 0, 0, 0 }, /* twice: the last counts */
	{ "llama", ",\"partial_rotary_factor\": 0.5", "partial_rotary_factor is 0.5", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"partial_rotary_factor\": 0.25}", "partial_rotary_factor is 0.25", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"quantization_config\": {\"bits\": 4}", "quantization_config", 0, 0, 0, 0, 0, 0 },
	{ "mistral", "", NULL, ROPE_NONE, 10000, 1, 1, 0, 4096 },
	{ "mistral", ",\"sliding_window\": null", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "mistral", ",\"sliding_window\": 7", NULL, ROPE_NONE, 10000, 1, 1, 0, 7 },
	{ "mistral", ",\"sliding_window\": 0", "sliding_window is 0", 0, 0, 0, 0, 0, 0 },
	{ "mistral", ",\"sliding_window\": -3", "sliding_window is -3", 0, 0, 0, 0, 0, 0 },
	{ "mistral", ",\"sliding_window\": 1.5", "sliding_window is 1.5, expected an integer", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"sliding_window\": 9", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen2", ",\"sliding_window\": 9", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen2", ",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 0", NULL, ROPE_NONE,
	  10000, 1, 1, 0, 9 },
	{ "qwen2", ",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 2", NULL, ROPE_NONE,
	  10000, 1, 1, 0, 0 },
	{ "qwen3",
	  ",\"sliding_window\": 9, \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
	  "\"full_attention\"]",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\"]", "expected an array of 2", 0, 0, 0, 0, 0, 0 },
	{ "laguna", "", "heads of 4 dimensions are multiplied by one number each", 0, 0, 0, 0, 0, 0 },
	{ "laguna", ",\"head_dim\": 32, \"num_attention_heads_per_layer\": [4, 3]", "layer 1 has 3", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\", 1]", "is an integer, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"layer_types\": [\"full_attention\", \"linear_attention\"]",
	  "\"linear_attention\", expected full_attention or sliding_attention", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"original_max_position_embeddings\": 0}",
	  "original_max_position_embeddings is 0", 0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2, \"truncate\": 1}",
	  "truncate is an integer, expected true or false", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": 3}", "rope_type is an integer, expected a string", 0, 0, 0, 0, 0,
	  0 },
	{ "llama", ",\"_name_or_path\": []", "_name_or_path is an array, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "gemma4", "", "model_type is \"gemma4\", which needs what jitrun does not have: a part for images", 0, 0, 0,
	  0, 0, 0 },
	{ "dbrx", "", "model_type is \"dbrx\", which needs what jitrun does not have: mixture of experts", 0, 0, 0, 0,
	  0, 0 },
	{ "qwen3_moe", "", "the tensor model.layers.0.mlp.gate.weight is missing", 0, 0, 0, 0, 0, 0 },
	{ "minimax_m2", ",\"head_dim\": 64, \"rotary_dim\": 32, \"partial_rotary_factor\": 0.25",
	  "rotary_dim is 32, but partial_rotary_factor is 0.25", 0, 0, 0, 0, 0, 0 },
	{ "minimax_m2", ",\"head_dim\": 64, \"rotary_dim\": 80", "rotary_dim is 80, expected 0 to 64", 0, 0, 0, 0, 0,
	  0 },
	{ "hunyuan_v1_moe", ",\"head_dim\": 32, \"num_experts\": 4, \"moe_topk\": [2, 3]",
	  "num_experts_per_tok is an array, expected an integer", 0, 0, 0, 0, 0, 0 },
	{ "deepseek_v2", "", "num_experts_per_tok is missing", 0, 0, 0, 0, 0, 0 },
	{ "olmoe", ",\"num_experts\": 0", "the number of experts is 0 (num_experts)", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 5, \"num_experts\": 4",
	  "the number of experts of a token is 5, expected 1 to 4", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 2, \"num_experts\": 4000",
	  "the number of experts is 4000, which is not supported: jitrun runs 1 to 1024", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 2, \"num_experts\": 4, \"num_local_experts\": 5",
	  "num_local_experts is 5, and another field says 4", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 2, \"num_experts\": 4, \"decoder_sparse_step\": 2",
	  "decoder_sparse_step is 2, which is not supported", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 2, \"num_experts\": 4, \"mlp_only_layers\": [0]",
	  "the field mlp_only_layers is [0]", 0, 0, 0, 0, 0, 0 },
	{ "qwen3_moe", ",\"num_experts_per_tok\": 2, \"num_experts\": 4, \"moe_intermediate_size\": 8",
	  "the tensor model.layers.0.mlp.gate.weight is missing", 0, 0, 0, 0, 0, 0 },
#define ROUTED ",\"num_experts_per_tok\": 2, \"n_routed_experts\": 4, \"routed_scaling_factor\": 1"
#define LATENT ROUTED ", \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 8, \"v_head_dim\": 32"
	{ "glm4_moe", ROUTED ", \"partial_rotary_factor\": 0.5, \"n_group\": 3, \"topk_group\": 2",
	  "4 experts are in 3 groups, of which 2 have a token's 2", 0, 0, 0, 0, 0, 0 },
	{ "glm4_moe", ROUTED ", \"partial_rotary_factor\": 0.5, \"n_group\": 4, \"topk_group\": 2",
	  "expected equal groups of 2 or more", 0, 0, 0, 0, 0, 0 },
	{ "glm4_moe", ROUTED ", \"partial_rotary_factor\": 0.5, \"n_group\": 2, \"topk_group\": 3",
	  "the number of groups of a token's experts is 3, expected 1 to 2", 0, 0, 0, 0, 0, 0 },
	{ "glm4_moe", ROUTED ", \"partial_rotary_factor\": 0.5, \"n_group\": 2000, \"topk_group\": 3",
	  "the number of groups of experts is 2000, which is not supported: jitrun runs 2 to 32", 0, 0, 0, 0, 0, 0 },
	{ "kimi_k2", LATENT, "n_shared_experts is missing", 0, 0, 0, 0, 0, 0 },
	{ "deepseek_v3", LATENT ", \"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1, \"moe_layer_freq\": 2",
	  "moe_layer_freq is 2, which is not supported", 0, 0, 0, 0, 0, 0 },
	{ "deepseek_v3",
	  LATENT ", \"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1, \"scoring_func\": \"softmax\"",
	  "scoring_func is \"softmax\", expected sigmoid", 0, 0, 0, 0, 0, 0 },
	{ "deepseek_v3",
	  LATENT ", \"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1, \"topk_method\": \"greedy\"",
	  "topk_method is \"greedy\", expected noaux_tc", 0, 0, 0, 0, 0, 0 },
	{ "deepseek_v2",
	  LATENT ", \"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1, \"topk_method\": \"best\"",
	  "topk_method is \"best\", expected group_limited_greedy", 0, 0, 0, 0, 0, 0 },
	{ "glm4_moe_lite",
	  LATENT ", \"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1, \"mlp_layer_types\": [\"sparse\", "
	         "\"dense\"]",
	  "mlp_layer_types is not", 0, 0, 0, 0, 0, 0 },
#define HYBRID ",\"layer_types\": [\"mamba\", \"attention\"], \"mamba_n_heads\": 1"
	{ "granitemoehybrid", "", "layer_types is missing", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", ",\"layer_types\": [\"mamba\"]", "layer_types is for 1 layers, expected 2", 0, 0, 0, 0, 0,
	  0 },
	{ "granitemoehybrid", ",\"layer_types\": [\"mamba\", 2]",
	  "layer_types is an integer, expected a list of strings", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", ",\"layer_types\": [\"mamba\", \"moe\"]",
	  "a layer's kind is \"moe\", expected mamba or attention", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"mamba_d_head\": 64", "1 heads of 64 values, expected 32 values together", 0,
	  0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"mamba_d_head\": \"all\"", "mamba_d_head is \"all\", expected auto", 0, 0, 0,
	  0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"mamba_d_state\": 24", "have one of 24 rows for heads of 32 values", 0, 0, 0,
	  0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"mamba_n_groups\": 2", "have 1 heads, expected a multiple of the 2 groups", 0,
	  0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"position_embedding_type\": \"alibi\"",
	  "position_embedding_type is \"alibi\", expected rope or nope", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid",
	  HYBRID ", \"mamba_d_conv\": 9, \"num_experts_per_tok\": 0, \"shared_intermediate_size\": 8",
	  "the number of taps of the convolutions is 9, which is not supported: jitrun runs 2 to 8", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"time_step_limit\": [0]",
	  "time_step_limit is an array, expected a list of the least and the greatest step", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"time_step_limit\": [-1, 2]",
	  "the least of time_step_limit is -1, expected 0 to", 0, 0, 0, 0, 0, 0 },
	{ "granitemoehybrid", HYBRID ", \"time_step_limit\": [0, 0]",
	  "the greatest of time_step_limit is 0, expected 1e-06 to", 0, 0, 0, 0, 0, 0 },
#define RELU2 ",\"hidden_act\": \"relu2\""
#define ONE_PART RELU2 ",\"layer_norm_epsilon\": 1e-5, \"hybrid_override_pattern\": "
	{ "nemotron_h", RELU2 ",\"layer_norm_epsilon\": 1e-5", "hybrid_override_pattern is missing", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"M\"", "hybrid_override_pattern is for 1 layers, expected 2", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"MX\"", "a layer's kind is \"X\", expected M, *, - or E", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "7", "hybrid_override_pattern is an integer, expected a string", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"M-\"", "none of the layers has attention", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"*E\"", "embeddings.weight is missing", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"M*\", \"mamba_hidden_act\": \"gelu\"",
	  "mamba_hidden_act is \"gelu\", expected silu", 0, 0, 0, 0, 0, 0 },
	{ "nemotron_h", ONE_PART "\"M*\", \"time_step_min\": -1", "time_step_min is -1, expected 0 to 1000", 0, 0, 0, 0,
	  0, 0 },
	{ "nemotron_h", ONE_PART "\"M*\", \"moe_latent_size\": 64", "the field moe_latent_size is 64", 0, 0, 0, 0, 0,
	  0 },
	{ "deberta-v2", "",
	  "model_type is \"deberta-v2\", which needs what jitrun does not have: attention that keeps contents and "
	  "positions apart",
	  0, 0, 0, 0, 0, 0 },
	{ "t5", "", "model_type is \"t5\", which needs what jitrun does not have: an encoder beside the decoder", 0, 0,
	  0, 0, 0, 0 },
	{ "internlm2", "", "its GGUF files have them apart and run", 0, 0, 0, 0, 0, 0 },
	{ "", "", "model_type is \"\", expected llama, mistral, qwen2, qwen3, ernie4_5, xverse, seed_oss, ", 0, 0, 0, 0,
	  0, 0 },
	{ "qwen2 qwen3", "", "model_type is \"qwen2 qwen3\", expected llama", 0, 0, 0, 0, 0, 0 },
	{ "ernie4_5", ",\"rope_theta\": 500000, \"compression_ratio\": 1.0", NULL, ROPE_NONE, 500000, 1, 1, 0, 0 },
	{ "ernie4_5", ",\"compression_ratio\": 2", "the field compression_ratio is 2", 0, 0, 0, 0, 0, 0 },
	{ "xverse", ",\"max_tokenizer_truncation\": 6144", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	/* what the class is, and what it does with the layers */
	{ "llama", ",\"architectures\": [\"LlamaForCausalLM\"]", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"architectures\": []", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"architectures\": [\"LlamaForSequenceClassification\"]",
	  "names LlamaForSequenceClassification, which is no model that continues a text as LlamaForCausalLM does", 0,
	  0, 0, 0, 0, 0 },
	{ "llama", ",\"architectures\": [\"LlamaForCausalLM\", \"LlamaModel\"]", "names LlamaModel", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"architectures\": [\"Qwen2ForRewardModel\"]", "names Qwen2ForRewardModel", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"architectures\": [\"LlamaForCausalLM\"]", "names LlamaForCausalLM", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"architectures\": \"LlamaForCausalLM\"", "architectures is a string, expected an array", 0, 0, 0,
	  0, 0, 0 },
	{ "llama", ",\"architectures\": [1]", "an element of architectures is an integer, expected a string", 0, 0, 0,
	  0, 0, 0 },
	{ "qwen2", ",\"is_causal\": false", "the field is_causal is false", 0, 0, 0, 0, 0, 0 },
	{ "qwen2", ",\"is_causal\": true", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	/* fields that nothing reads: harmless by name, by value, or refused */
	{ "llama",
	  ",\"transformers_version\": \"4.51.0\", \"use_cache\": true, \"pretraining_tp\": 4, \"attention_dropout\": "
	  "0.1, \"id2label\": {\"0\": \"A\"}",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama",
	  ",\"is_llama_config\": true, \"rope_interleaved\": false, \"transformers.js_config\": {\"kv_cache_dtype\": "
	  "1}, \"_flash_attn_2_enabled\": true, \"activation\": \"swiglu\"",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"rope_interleaved\": true", "the field rope_interleaved is true", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"activation\": \"geglu\"", "activation is \"geglu\", expected swiglu", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"attention_chunk_size\": 128", "the field attention_chunk_size is 128; it is not known", 0, 0, 0,
	  0, 0, 0 },
	{ "llama",
	  ",\"attention_chunk_size\": null, \"use_mrope\": false, \"num_experts\": 0, \"layer_scales\": [], \"other\": "
	  "{}, \"kind\": \"\", \"share\": 0.0",
	  NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"num_local_experts\": 8", "the field num_local_experts is 8", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"logits_scaling\": 1", NULL, ROPE_NONE, 10000, 1, 1, 0, 0 },
	{ "llama", ",\"logits_scaling\": 0", "the field logits_scaling is 0", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"residual_multiplier\": \"1\"", "the field residual_multiplier is \"1\"", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"factor\": 8", "the field factor is 8", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"a\\u001b[2J\": [1, {\"b\": \"\\u001b\"}]", "the field a\\x1b[2J is [1,{\"b\":\"\\u001B\"}]", 0,
	  0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, \"mrope_section\": [1, 1]}",
	  "the field rope_scaling.mrope_section is [1,1]", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"rope_type\": \"default\", \"mrope_section\": [1, 1]}",
	  "the field rope_parameters.mrope_section is [1,1]", 0, 0, 0, 0, 0, 0 },
	{ "llama", ",\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"llama_4_scaling_beta\": 0.1}",
	  "rope_parameters.llama_4_scaling_beta is 0.1", 0, 0, 0, 0, 0, 0 },
	{ "llama",
	  ",\"rope_parameters\": {\"rope_type\": \"default\"}, \"rope_scaling\": {\"rope_type\": \"linear\", "
	  "\"factor\": 2}",
	  NULL, ROPE_LINEAR, 10000, 2, 1, 512, 0 }, /* the older name counts, if it holds anything */
	{ "llama", ",\"rope_parameters\": {\"rope_theta\": 7e5}, \"rope_scaling\": {}", NULL, ROPE_NONE, 7e5, 1, 1, 0,
	  0 },
	{ "llama", ",\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, \"finetuned\": true}", NULL, ROPE_YARN,
	  10000, 4, 1.1386294361119891, 512, 0 },
	{ "llama", ",\"quantization_config\": {\"quant_method\": \"hqq\", \"bits\": 4}",
	  "has a quantization_config of method hqq, expected unquantised weights, or one of the methods "
	  "compressed-tensors",
	  0, 0, 0, 0, 0, 0 },
	{ "qwen3", ",\"quantization\": {\"group_size\": 64}", "has a quantization, expected unquantised weights", 0, 0,
	  0, 0, 0, 0 },
};

static void test_settings(void **state)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const struct setting *s = &settings[i];
		struct tiny_model t = { s->arch, 2, 16, 24, 4, 2, 4, 9, DTYPE_F32, .tied = true, .extra = s->extra };
		struct opened o = open_hf(&t);
		if (o.ok != (s->error == NULL) || (s->error && !strstr(o.err.text, s->error)))
			fail_msg("%s%s: expected \"%s\", got \"%s\"", s->arch, s->extra, s->error ? s->error : "ok",
			         o.ok ? "ok" : o.err.text);
		if (o.ok) {
			const struct model_rope *r = &o.m.spec.rope;
			if (r->scaling != s->scaling || r->theta != s->theta || r->factor != s->factor ||
			    r->original_context != s->original || o.m.spec.sliding_window != s->window)
				fail_msg("%s%s: scaling %d, theta %g, factor %g, original %u, window %u", s->arch,
				         s->extra, r->scaling, r->theta, r->factor, r->original_context,
				         o.m.spec.sliding_window);
			if (r->attention_factor != s->attention)
				fail_msg("%s%s: attention factor %.17g", s->arch, s->extra, r->attention_factor);
			assert_null(o.m.spec.layer_is_sliding);
		}
		close_it(&o);
	}
}

static void test_window_in_some_layers(void **state)
{
	struct tiny_model t = { "qwen3", 3, 16, 24, 4, 2, 4, 9, DTYPE_F32, .tied = true };
	static const char *const extra[] = {
		",\"sliding_window\": 9, \"use_sliding_window\": true, \"max_window_layers\": 2",
		",\"sliding_window\": 9, \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", "
		"\"full_attention\", \"sliding_attention\"]",
	};

	for (int i = 0; i < 2; i++) {
		t.extra = extra[i];
		struct opened o = open_hf(&t);
		assert_true(o.ok && o.m.spec.sliding_window == 9 && o.m.spec.layer_is_sliding);
		assert_true(!o.m.spec.layer_is_sliding[0] && !o.m.spec.layer_is_sliding[1] &&
		            o.m.spec.layer_is_sliding[2]);
		close_it(&o);
	}
}

static const char *const good_values[] = { "1", "4", "6", "2", "1", "5", "1e-05", "true", "2", "\"silu\"" };

static const struct {
	int at;
	const char *value, *error;
} config_changes[] = {
	{ 0, "1", NULL },
	{ 0, "1.0", NULL },
	{ 0, "1e0", NULL },
	{ 0, "0", "the number of layers is 0" },
	{ 0, "-1", "num_hidden_layers is -1" },
	{ 0, "2", "the tensor model.layers.1.input_layernorm.weight is missing" },
	{ 0, "4", "the number of layers is 4, but there are only 11 tensors" },
	{ 0, "1025", "is 1025, expected 0 to 1024" },
	{ 0, "4294967297", "num_hidden_layers is 4294967297" },
	{ 0, "9223372036854775807", "num_hidden_layers is 9.2" },
	{ 0, "null", "num_hidden_layers is missing" },
	{ 0, "1.5", "expected an integer" },
	{ 0, "\"1\"", "is a string" },
	{ 0, "[1]", "is an array" },
	{ 0, "{}", "is an object" },
	{ 0, "true", "is true" },
	{ 1, "0", "the hidden size is 0" },
	{ 1, "5", "expected (5 x 5)" },
	{ 1, "8", "has shape" },
	{ 2, "7", "expected (7 x 4)" },
	{ 2, "16777217", "intermediate_size is 16777217" },
	{ 3, "0", "num_attention_heads is 0" },
	{ 3, "4", "has shape" },
	{ 3, "3", "has shape" },
	{ 4, "0", "key-value heads is 0" },
	{ 4, "null", "has shape" },
	{ 4, "2", "has shape" },
	{ 4, "3", "expected a multiple of the 3" },
	{ 5, "4", "model.embed_tokens.weight has shape (5 x 4), expected (4 x 4)" },
	{ 5, "0", "vocabulary size is 0" },
	{ 5, "2147483648", "vocab_size is 2147483648" },
	{ 6, "0", "rms_norm_eps is 0" },
	{ 6, "-1e-5", "rms_norm_eps is" },
	{ 6, "null", NULL },
	{ 6, "2", "rms_norm_eps is 2" },
	{ 6, "1", NULL },
	{ 6, "false", "is false" },
	{ 7, "false", "the tensor lm_head.weight is missing" },
	{ 7, "1", "is an integer, expected true or false" },
	{ 7, "null", "lm_head.weight is missing" },
	{ 8, "null", NULL },
	{ 8, "3", "expected an even number" },
	{ 8, "4", "has shape" },
	{ 8, "0", "head dimension is 0" },
	{ 8, "4098", "head_dim is 4098" },
	{ 9, "\"gelu\"", "hidden_act is \"gelu\", expected silu" },
	{ 9, "null", NULL },
	{ 9, "\"\\u001b[2J\"", "hidden_act is \"\\x1b[2J\"" },
};

/* The text of config.json with one member's value replaced. */
static void test_config_values(void **state)
{
	static const char *const base =
		"{\"model_type\": \"llama\", \"num_hidden_layers\": @0, \"hidden_size\": @1, "
		"\"intermediate_size\": @2, \"num_attention_heads\": @3, "
		"\"num_key_value_heads\": @4, \"vocab_size\": @5, \"rms_norm_eps\": @6, "
		"\"tie_word_embeddings\": @7, \"head_dim\": @8, \"hidden_act\": @9}";
	size_t n;
	uint8_t *weights = tiny_safetensors(&tiny_min, &n);

	for (size_t i = 0; i < sizeof config_changes / sizeof *config_changes; i++) {
		char config[1000], *out = config;
		for (const char *p = base; *p; p++)
			if (*p == '@') {
				int k = *++p - '0';
				out += sprintf(out, "%s",
				               k == config_changes[i].at ? config_changes[i].value : good_values[k]);
			} else
				*out++ = *p;
		struct error err = { 0 };
		struct model m;
		bool ok = model_open_memory(&m, weights, n, config, (size_t)(out - config), 0, &err);
		if (ok != (config_changes[i].error == NULL) || (!ok && !strstr(err.text, config_changes[i].error)))
			fail_msg("%d = %s: expected \"%s\", got \"%s\"", config_changes[i].at, config_changes[i].value,
			         config_changes[i].error ? config_changes[i].error : "ok", ok ? "ok" : err.text);
		if (ok)
			model_close(&m);
		else
			assert_true(m.file == NULL && m.spec.layer == NULL);
	}
	free(weights);
}

static void test_config_forms(void **state)
{
	static const struct {
		const char *text, *error;
	} forms[] = {
		{ "[]", "its content is an array, expected an object" },
		{ "", "not valid JSON" },
		{ "{}", "model_type is missing" },
		{ "{\"model_type\": null}", "model_type is missing" },
		{ "{\"model_type\": 1}", "model_type is an integer" },
		{ "{\"model_type\": \"llama\"}", "num_hidden_layers is missing" },
		{ "{\"model_type\": \"llama\"", "not valid JSON in line 1" },
		{ "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 4, \"intermediate_size\": 6, "
		  "\"vocab_size\": 5, \"num_attention_heads\": 3}",
		  "hidden_size is 4, expected a multiple of num_attention_heads 3" },
		{ "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 4, \"intermediate_size\": 6, "
		  "\"vocab_size\": 5, \"num_attention_heads\": 2, "
		  "\"num_key_value_heads\": 1, \"tie_word_embeddings\": true}",
		  NULL },
	};
	size_t n;
	uint8_t *weights = tiny_safetensors(&tiny_min, &n);

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct error err = { 0 };
		struct model m;
		bool ok = model_open_memory(&m, weights, n, forms[i].text, strlen(forms[i].text), 0, &err);
		if (ok != (forms[i].error == NULL) || (!ok && !strstr(err.text, forms[i].error)))
			fail_msg("%s: expected \"%s\", got \"%s\"", forms[i].text,
			         forms[i].error ? forms[i].error : "ok", ok ? "ok" : err.text);
		if (!ok)
			continue;
		assert_true(m.spec.head_dim == 2 && m.spec.context_train == 2048 && m.spec.norm_eps == 1e-6f &&
		            m.spec.rope.theta == 10000);
		model_close(&m);
	}
	free(weights);
}

static void test_config_text_limits(void **state)
{
	size_t n, length = (1 << 20) + 1;
	uint8_t *weights = tiny_safetensors(&tiny_min, &n);
	char *config = malloc(length);
	struct error err = { 0 };
	struct model m;

	memset(config, '[', length);
	assert_false(model_open_memory(&m, weights, n, config, length, 0, &err));
	assert_non_null(strstr(err.text, "expected at most 1048576"));
	err.code = ERROR_NONE;
	assert_false(model_open_memory(&m, weights, n, config, length - 1, 0, &err));
	assert_non_null(strstr(err.text, "not valid JSON"));
	free(config);
	free(weights);
}

int model_config_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),           cmocka_unit_test(test_window_in_some_layers),
		cmocka_unit_test(test_config_values),      cmocka_unit_test(test_config_forms),
		cmocka_unit_test(test_config_text_limits),
	};

	return cmocka_run_group_tests_name("model_config_tests", tests, NULL, NULL);
}
