/* tests/loaders/gguf_defaults.c - what GGUF keys mean that are absent, 0 or 1. See model_defaults.h. */
#include "tests/loaders/model_defaults.h"

#define WINDOW "attention.sliding_window=64 "
#define ROUTED "expert_count=8 expert_used_count=2 expert_feed_forward_length=32 "

static const struct default_keys keys[] = {
	{ "llama", "", "kv_heads=16 head_dim=32 theta=10000 scaling=0 attention_scale=-1 window=0", 0 },
	{ "llama", "rope.scaling.factor=0.0", "scaling=1 factor=1", 0 },
	{ "llama", "rope.scale_linear=4.0", "scaling=1 factor=4", 0 },
	{ "granite", "", "attention_scale=-1 embed_scale=-1 residual_scale=-1 logit_scale=-1", 0 },
	{ "granite", "attention.scale=1.0 embedding_scale=1.0 residual_scale=1.0 logit_scale=1.0",
	  "attention_scale=1 embed_scale=-1 residual_scale=-1 logit_scale=-1", 0 },
	{ "granite", "attention.scale=0.0 embedding_scale=0.0 residual_scale=0.0 logit_scale=4.0",
	  "attention_scale=-1 embed_scale=-1 residual_scale=-1 logit_scale=0.25", 0 },
	{ "granitemoe", ROUTED "attention.scale=1.0", "attention_scale=1 experts=8 used=2 normed=1 router_scale=-1",
	  0 },
	{ "gemma2", "", "window=4096 kinds=wfwfwfwf score_cap=50 logit_cap=30", 0 },
	{ "gemma2", WINDOW "attn_logit_softcapping=1.0 final_logit_softcapping=1.0",
	  "window=64 score_cap=1 logit_cap=1", 0 },
	{ "gemma2", "attn_logit_softcapping=0.0 final_logit_softcapping=0.0", "score_cap=-1 logit_cap=-1", 0 },
	{ "gemma2", "block_count=46", "attention_scale=0.176776695", 0 },
	{ "gemma3", "", "window=0 kinds=ffffffff logit_cap=-1 theta=10000 window_theta=10000", 0 },
	{ "gemma3", WINDOW "rope.freq_base=1000000.0 final_logit_softcapping=1.0",
	  "window=64 kinds=wwwwwfww logit_cap=1 theta=1000000 window_theta=10000", 0 },
	{ "gemma4", WINDOW, "window=64 logit_cap=30 attention_scale=1 score_cap=-1", 0 },
	{ "gemma4", WINDOW "final_logit_softcapping=0.0", "logit_cap=-1", 0 },
	{ "gemma4", "", 0, "the key gemma4.attention.sliding_window is missing" },
	{ "cohere2", WINDOW "logit_scale=1.0", "window=64 kinds=wwwFwwwF logit_scale=-1", 0 },
	{ "cohere2", WINDOW "logit_scale=0.25 attention.sliding_window_pattern=1", "kinds=FFFFFFFF logit_scale=0.25",
	  0 },
	{ "cohere2", "logit_scale=1.0", 0, "the key cohere2.attention.sliding_window is missing" },
	{ "cohere2", "logit_scale=1.0 attention.sliding_window=0", 0, "sliding_window is 0, expected 1 to" },
	{ "cohere2", WINDOW, 0, "the key cohere2.logit_scale is missing" },
	{ "command-r", "", "logit_scale=-1", 0 },
	{ "command-r", "logit_scale=0.0", "logit_scale=-1", 0 },
	{ "command-r", "logit_scale=0.5", "logit_scale=0.5", 0 },
	{ "exaone4", "", "window=0 kinds=ffffffff", 0 },
	{ "exaone4", WINDOW, "window=64 kinds=wwwFwwwF", 0 },
	{ "exaone4", "block_count=64", "window=4096", 0 },
	{ "olmo2", "rope.freq_base=500000.0", "window=0 kinds=ffffffff theta=500000", 0 },
	{ "olmo2", WINDOW "rope.scaling.factor=4.0", "window=64 kinds=wwwfwwwf scaling=1 window_scaling=0", 0 },
	{ "smollm3", "", "kinds=fffFfffF", 0 },
	{ "gpt-oss", ROUTED, 0, "the key gpt-oss.attention.sliding_window is missing" },
	{ "gpt-oss", ROUTED WINDOW, "window=64 kinds=wfwfwfwf normed=1", 0 },
	{ "glm4moe", ROUTED "expert_shared_count=1",
	  "experts=8 shared_ffn=32 dense=0 normed=0 router_scale=-1 groups=0", 0 },
	{ "glm4moe", ROUTED "expert_weights_norm=true expert_weights_scale=1.0 expert_gating_func=0",
	  "normed=1 router_scale=-1 shared_ffn=0", 0 },
	{ "glm4moe", ROUTED "expert_weights_scale=0.0 expert_gating_func=2", "router_scale=-1", 0 },
	{ "glm4moe", ROUTED "expert_gating_func=1", 0, "expert_gating_func is 1, which is not supported, expected 2" },
	{ "dots1", ROUTED "block_count=8 expert_shared_count=2 leading_dense_block_count=3",
	  "experts=8 shared_ffn=64 dense=3 normed=0 router_scale=-1", 0 },
	{ "minimax-m2", ROUTED "expert_gating_func=2", "experts=8 normed=1 shared_ffn=0", 0 },
	{ "minimax-m2", ROUTED "expert_gating_func=1", 0,
	  "expert_gating_func is 1, which is not supported, expected 2" },
	{ "exaone-moe", ROUTED WINDOW, "window=64 kinds=wwwFwwwF", 0 },
	{ "exaone-moe", ROUTED, 0, "the key exaone-moe.attention.sliding_window is missing" },
	{ "hunyuan-moe", ROUTED "expert_shared_feed_forward_length=48", "experts=8 shared_ffn=48 normed=1", 0 },
	{ "hy_v3", ROUTED "expert_weights_scale=2.0 expert_shared_feed_forward_length=48",
	  "shared_ffn=48 router_scale=2 normed=1", 0 },
	{ "afmoe", ROUTED WINDOW "block_count=8 leading_dense_block_count=2",
	  "window=64 kinds=wwwFwwwF embed_scale=22.627417 normed=1 dense=2 router_scale=-1", 0 },
	{ "afmoe", ROUTED, 0, "the key afmoe.attention.sliding_window is missing" },
	{ "qwen3moe", ROUTED, "experts=8 normed=1", 0 },
	{ "qwen2moe", ROUTED, "experts=8 normed=0 shared_ffn=0", 0 },
	{ "olmoe", ROUTED, "normed=0", 0 },
};

const struct default_keys *default_keys(size_t *n)
{
	*n = sizeof keys / sizeof *keys;
	return keys;
}
