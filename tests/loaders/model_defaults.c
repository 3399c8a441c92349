/* tests/loaders/model_defaults.c - see model_defaults.h. What each class of transformers has where a file says nothing
 * stands first, then what it makes of null, 0 and 1, and of fields together. */
#include "tests/loaders/model_defaults.h"

static const struct default_case cases[] = {
	{ "llama", "", "kv_heads=16 head_dim=32 context=2048 eps=1e-06 theta=10000" },
	{ "mistral", "", "kv_heads=8 head_dim=32 context=131072 eps=1e-06 window=4096 kinds=wwwwwwww theta=10000" },
	{ "qwen2", "", "kv_heads=32 head_dim=32 context=32768 eps=1e-06 qkv_bias=1 theta=10000" },
	{ "qwen3", "", "kv_heads=32 head_dim=128 context=32768 eps=1e-06 theta=10000" },
	{ "ernie4_5", "", "kv_heads=2 head_dim=128 context=131072 eps=1e-05 tied=1 theta=500000" },
	{ "seed_oss", "", "kv_heads=8 head_dim=128 context=524288 eps=1e-06 qkv_bias=1 theta=10000" },
	{ "phi3", "", "kv_heads=16 head_dim=32 context=4096 eps=1e-05 theta=10000 rotating=32" },
	{ "smollm3", "", "kv_heads=4 head_dim=32 context=32768 eps=1e-06 tied=1 kinds=fffFfffF theta=2000000" },
	{ "granite", "", "kv_heads=16 head_dim=32 context=2048 eps=1e-06 theta=10000 attention_scale=1" },
	{ "olmo2", "", "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000" },
	{ "olmo3", "",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 window=4096 kinds=wwwfwwwf theta=500000 "
	  "window_theta=500000" },
	{ "exaone4", "", "kv_heads=32 head_dim=32 context=2048 eps=1e-05 window=4096 kinds=wwwFwwwF theta=10000" },
	{ "glm4", "", "kv_heads=2 head_dim=128 context=131072 eps=1.5625e-07 qkv_bias=1 theta=10000 rotating=64" },
	{ "arcee", "", "kv_heads=16 head_dim=32 context=4096 eps=1e-05 theta=10000" },
	{ "hunyuan_v1_dense", "", "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000" },
	{ "ministral3", "",
	  "kv_heads=8 head_dim=128 context=262144 eps=1e-05 theta=1000000 scaling=3 factor=16 "
	  "beta_fast=32 beta_slow=1 truncate=1 original=16384 query_scale=0.1" },
	{ "gemma", "", "kv_heads=16 head_dim=256 context=8192 eps=1e-06 tied=1 theta=10000" },
	{ "gemma2", "",
	  "kv_heads=4 head_dim=256 context=8192 eps=1e-06 tied=1 window=4096 kinds=wfwfwfwf "
	  "theta=10000 attention_scale=0.0625 score_cap=50 logit_cap=30" },
	{ "gemma3_text", "",
	  "kv_heads=4 head_dim=256 context=131072 eps=1e-06 tied=1 window=4096 kinds=wwwwwfww "
	  "theta=1000000 window_theta=10000 attention_scale=0.0625" },
	{ "bert", "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=512 eps=1e-12 tied=1 qkv_bias=1 kinds=FFFFFFFF theta=10000" },
	{ "bert", "\"hidden_act\": \"gelu_new\", \"type_vocab_size\": null", "context=512" },
	{ "roberta", "\"hidden_act\": null", "kv_heads=16 head_dim=32 context=510 eps=1e-12 qkv_bias=1" },
	{ "roberta", "\"hidden_act\": null, \"pad_token_id\": 3", "context=508" },
	{ "xlm-roberta", "\"hidden_act\": null", "kv_heads=16 head_dim=32 context=510 eps=1e-12 qkv_bias=1" },
	{ "distilbert", "\"hidden_act\": null", "kv_heads=16 head_dim=32 context=512 eps=1e-12 qkv_bias=1" },
	{ "mpnet", "\"hidden_act\": null", "kv_heads=16 head_dim=32 context=510 eps=1e-12 qkv_bias=1" },
	{ "nomic_bert", "\"hidden_act\": \"silu\"", "kv_heads=16 head_dim=32 context=2048 eps=1e-12 theta=10000" },
	{ "modernbert", "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=8192 eps=1e-05 window=129 kinds=fwwfwwfw theta=160000 window_theta=10000" },
	{ "eurobert", "", "kv_heads=16 head_dim=32 context=8192 eps=1e-05 theta=10000" },
	{ "gemma3_text-bidirectional", "\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": true",
	  "kv_heads=4 head_dim=256 context=131072 eps=1e-06 window=4097 kinds=wwwwwfww theta=1000000 "
	  "window_theta=10000 attention_scale=0.0625" },
	{ "bert-alibi",
	  "\"model_type\": \"bert\", \"position_embedding_type\": \"alibi\", \"feed_forward_type\": \"geglu\", "
	  "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=512 eps=1e-12 qkv_bias=1" },
	{ "qwen2_vl_text", "", "kv_heads=8 head_dim=32 context=32768 eps=1e-05 window=0 theta=1000000 qkv_bias=1" },
	{ "qwen2_5_vl_text", "", "kv_heads=8 head_dim=32 context=32768 eps=1e-05 window=0 theta=1000000 qkv_bias=1" },
	{ "qwen2_vl_text", "\"use_sliding_window\": true, \"num_hidden_layers\": 40", "window=0" },
	{ "qwen2_5_vl_text", "\"use_sliding_window\": true, \"max_window_layers\": 6", "window=4096 kinds=ffffffww" },
	{ "qwen3_vl_text", "", "kv_heads=32 head_dim=128 context=128000 eps=1e-06 theta=500000" },
	{ "cohere2", "",
	  "kv_heads=16 head_dim=32 context=8192 eps=1e-05 tied=1 window=4096 kinds=wwwFwwwF "
	  "theta=10000 logit_scale=0.0625" },
	{ "cohere", "", "kv_heads=16 head_dim=32 context=8192 eps=1e-05 tied=1 theta=500000 logit_scale=0.0625" },
#include "tests/loaders/model_defaults_newer.def"
	{ "gemma4_text", "\"hidden_size_per_layer_input\": 0",
	  "context=131072 eps=1e-06 tied=1 window=512 kinds=wwwwwfwf theta=1000000 "
	  "window_theta=10000 attention_scale=1 layer_input=0 lastdim=512 lastkv=4" },
	{ "lfm2", "", "ffn=256 kv_heads=8 head_dim=32 context=128000 eps=1e-05 tied=1 theta=1000000 taps=3" },
	{ "qwen3_5_text", "",
	  "kv_heads=4 head_dim=256 context=32768 eps=1e-06 kinds=mmmfmmmf theta=10000 rotating=64 "
	  "taps=4 key_heads=16 value_heads=32 key_dim=128 value_dim=128" },
	{ "lfm2_moe", "",
	  "kv_heads=8 head_dim=32 context=128000 eps=1e-05 tied=1 kinds=mmfmmmfm theta=1000000 "
	  "experts=32 used=4 expert_ffn=1792 dense=2 normed=1 router_bias=1 taps=3" },
	{ "qwen3_5_moe_text", "",
	  "kv_heads=2 head_dim=256 context=32768 eps=1e-06 kinds=mmmfmmmf theta=10000 rotating=64 "
	  "experts=256 used=8 expert_ffn=512 shared_ffn=512 normed=1 taps=4 key_heads=16 "
	  "value_heads=32 key_dim=128 value_dim=128" },
	{ "qwen3_next", "",
	  "kv_heads=2 head_dim=256 context=32768 eps=1e-06 kinds=mmmfmmmf theta=10000 rotating=64 "
	  "experts=512 used=10 expert_ffn=512 shared_ffn=512 normed=1 taps=4 key_heads=16 "
	  "value_heads=32 key_dim=128 value_dim=128" },
	{ "granitemoehybrid", "",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-06 kinds=mmmFmmmF attention_scale=1 "
	  "experts=8 used=2 expert_ffn=96 shared_ffn=1024 normed=1 taps=4 taps_bias=1 key_heads=1 "
	  "value_heads=32 key_dim=256 value_dim=32" },
	{ "nemotron_h", "",
	  "kv_heads=8 head_dim=128 context=4096 eps=1e-05 kinds=mFmmmFmm experts=8 used=2 "
	  "expert_ffn=7688 shared_ffn=7688 normed=1 taps=4 taps_bias=1 key_heads=8 value_heads=128 "
	  "key_dim=128 value_dim=64" },
	{ "mixtral", "",
	  "kv_heads=8 head_dim=32 context=131072 eps=1e-05 theta=1000000 experts=8 used=2 expert_ffn=96 normed=1" },
	{ "qwen3_moe", "",
	  "kv_heads=4 head_dim=32 context=32768 eps=1e-06 theta=10000 experts=128 used=8 expert_ffn=768 normed=0" },
	{ "qwen2_moe", "",
	  "kv_heads=16 head_dim=32 context=32768 eps=1e-06 qkv_bias=1 theta=10000 experts=60 "
	  "used=4 expert_ffn=1408 shared_ffn=5632 normed=0" },
	{ "olmoe", "",
	  "kv_heads=16 head_dim=32 context=4096 eps=1e-05 theta=10000 experts=64 used=8 expert_ffn=96 normed=0" },
	{ "granitemoe", "",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-06 theta=10000 attention_scale=1 experts=8 "
	  "used=2 expert_ffn=96 normed=1" },
	{ "gpt_oss", "",
	  "kv_heads=8 head_dim=64 context=131072 eps=1e-05 qkv_bias=1 o_bias=1 window=128 "
	  "kinds=wfwfwfwf theta=150000 scaling=3 factor=32 beta_fast=32 beta_slow=1 truncate=0 "
	  "original=4096 experts=128 used=4 expert_ffn=96 normed=1" },
	{ "glm4_moe", "",
	  "kv_heads=8 head_dim=32 context=131072 eps=1e-05 later=1 theta=10000 rotating=16 "
	  "experts=128 used=8 expert_ffn=1408 shared_ffn=1408 dense=1 normed=1" },
	{ "deepseek_v3", "",
	  "kv_heads=1 head_dim=192 context=4096 eps=1e-06 later=1 theta=10000 "
	  "attention_scale=0.0721687836 router_scale=2.5 experts=256 used=8 expert_ffn=2048 "
	  "shared_ffn=2048 dense=3 normed=1 groups=8 groups_used=4 rank=512 query_rank=1536 "
	  "rest=128 value=128 pairs=1" },
	{ "deepseek_v2", "",
	  "kv_heads=1 head_dim=192 context=2048 eps=1e-06 theta=10000 attention_scale=0.0721687836 "
	  "experts=64 used=6 expert_ffn=1407 shared_ffn=2814 normed=0 rank=512 query_rank=1536 "
	  "rest=128 value=128 pairs=1" },
	{ "glm4_moe_lite", "",
	  "kv_heads=1 head_dim=256 context=202752 eps=1e-05 theta=10000 attention_scale=0.0625 "
	  "router_scale=1.8 experts=64 used=4 expert_ffn=1536 shared_ffn=1536 dense=1 normed=1 "
	  "rank=512 query_rank=768 rest=192 value=256 pairs=1" },
	{ "mistral4", "",
	  "kv_heads=1 head_dim=128 context=1048576 eps=1e-06 theta=10000 scaling=3 factor=128 "
	  "beta_fast=32 beta_slow=1 truncate=1 original=8192 query_scale=0.1 "
	  "attention_scale=0.194969495 experts=128 used=4 expert_ffn=2048 shared_ffn=2048 normed=1 "
	  "rank=256 query_rank=1024 rest=64 value=128 pairs=1" },
	{ "helium", "", "kv_heads=20 head_dim=128 context=4096 eps=1e-08 theta=100000 pairs=1" },
	{ "gpt2", "\"hidden_act\": null, \"intermediate_size\": null",
	  "kv_heads=16 head_dim=32 context=1024 eps=1e-05 tied=1 qkv_bias=1 o_bias=1 mlp_bias=1 ffn=2048" },
	{ "gpt2", "\"hidden_act\": null, \"n_ctx\": 64", "context=64" },
	{ "bloom", "\"-intermediate_size\": 0",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 tied=1 qkv_bias=1 o_bias=1 mlp_bias=1 ffn=2048 alibi=8 "
	  "kinds=FFFFFFFF" },
	{ "bloom", "\"-intermediate_size\": 0, \"seq_length\": 77, \"tie_word_embeddings\": false",
	  "context=77 tied=0" },
	{ "mpt", "\"-intermediate_size\": 0",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 tied=1 qkv_bias=0 o_bias=0 mlp_bias=0 ffn=2048 alibi=8 "
	  "kinds=FFFFFFFF attention_scale=-1" },
	{ "mpt",
	  "\"-intermediate_size\": 0, \"max_seq_len\": 99, \"attn_config\": {\"alibi_bias_max\": 4, "
	  "\"softmax_scale\": 0.25}",
	  "context=99 alibi=4 attention_scale=0.25" },
	{ "flex_olmo", "",
	  "kv_heads=16 head_dim=32 context=4096 eps=1e-06 theta=500000 experts=7 used=5 expert_ffn=96 normed=0" },
	{ "flex_olmo", "\"num_local_experts\": 3, \"norm_topk_prob\": true, \"num_experts_per_tok\": 2",
	  "experts=3 used=2 normed=1" },
	{ "granite_swa", "",
	  "kv_heads=4 head_dim=32 context=8192 eps=1e-05 tied=1 window=128 kinds=fwwwfwww theta=10000 "
	  "attention_scale=1" },
	{ "granite_swa", "\"layer_rope_theta\": [0, 500, 500, 7, 0, 500, 7, 7]",
	  "kinds=FwwwFwww theta=500 window_theta=7" },
	{ "granite_swa", "\"layer_rope_theta\": null, \"rope_theta\": 300, \"sliding_window\": 9",
	  "window=9 kinds=fwwwfwww theta=300" },
	{ "ernie4_5_moe", "",
	  "kv_heads=4 head_dim=32 context=131072 eps=1e-05 tied=1 theta=500000 experts=64 used=6 expert_ffn=1536 "
	  "shared_ffn=3072 normed=1 pairs=1 router_scale=-1 routing=-RRRRRRR" },
	{ "ernie4_5_moe",
	  "\"moe_k\": 3, \"moe_num_experts\": 9, \"moe_num_shared_experts\": 0, \"moe_layer_start_index\": 2, "
	  "\"moe_layer_end_index\": 6, \"moe_layer_interval\": 2",
	  "experts=9 used=3 shared_ffn=0 routing=---R-R--" },
	{ "bitnet", "\"hidden_act\": \"relu2\"", "kv_heads=5 head_dim=32 context=2048 eps=1e-05 theta=500000" },
	{ "bamba", "\"mamba_n_heads\": 32",
	  "kv_heads=8 head_dim=32 context=262144 eps=1e-05 theta=10000 rotating=16 kinds=mmmmmmmm" },
	{ "bamba", "\"mamba_n_heads\": 32, \"attn_layer_indices\": [2, 7]", "kinds=mmfmmmmf" },
	{ "cohere2_moe", "",
	  "kv_heads=16 head_dim=128 context=8192 eps=1e-05 tied=1 window=4096 kinds=wwwFwwwF theta=10000 "
	  "logit_scale=0.0625 experts=8 used=2 expert_ffn=96 shared_ffn=0 normed=1 router_scale=-1 "
	  "routing=RRRRRRRR" },
	{ "cohere2_moe",
	  "\"num_shared_experts\": 3, \"norm_topk_prob\": false, \"first_k_dense_replace\": 2, "
	  "\"prefix_dense_intermediate_size\": 32, \"rms_norm_eps\": 1e-3",
	  "shared_ffn=288 normed=1 router_scale=0.5 shared_scale=0.5 kinds=ffwwwFww routing=--RRRRRR ffn=32 "
	  "eps=0.001" },
	{ "cohere2_moe",
	  "\"num_shared_experts\": 1, \"norm_topk_prob\": false, \"expert_selection_fn\": \"sigmoid\", "
	  "\"shared_expert_combination_strategy\": \"sum\", \"prefix_dense_sliding_window_pattern\": 2, "
	  "\"first_k_dense_replace\": 2",
	  "shared_ffn=96 normed=0 router_scale=-1 shared_scale=-1 kinds=wFwwwFww" },
	{ "afmoe", "",
	  "kv_heads=16 head_dim=128 context=16384 eps=1e-05 window=1024 kinds=wwwFwwwF theta=10000 embed_scale=-1 "
	  "experts=64 used=6 expert_ffn=1408 shared_ffn=2816 dense=1 normed=1 router_scale=-1" },
	{ "afmoe",
	  "\"mup_enabled\": true, \"global_attn_every_n_layers\": 2, \"route_scale\": 2.5, \"n_shared_experts\": 5, "
	  "\"num_shared_experts\": 1, \"num_dense_layers\": 3, \"attention_bias\": true",
	  "kinds=wFwFwFwF embed_scale=22.627417 router_scale=2.5 shared_ffn=1408 dense=3 qkv_bias=1 o_bias=1" },
	{ "youtu", "",
	  "kv_heads=1 head_dim=192 context=131072 eps=1e-06 tied=1 theta=10000 experts=0 rank=512 query_rank=1536 "
	  "rest=128 value=128 pairs=1" },
	{ "youtu", "\"q_lora_rank\": null, \"rope_interleave\": false", "query_rank=0 pairs=0" },
	{ "minicpm3", "",
	  "kv_heads=1 head_dim=96 context=32768 eps=1e-05 tied=1 theta=10000 rank=256 query_rank=768 rest=64 value=32 "
	  "pairs=0 embed_scale=12 residual_scale=0.494974747 logit_scale=0.5" },
	{ "minicpm3", "\"scale_depth\": null, \"dim_model_base\": null, \"q_lora_rank\": null, \"v_head_dim\": 16",
	  "query_rank=0 value=16 residual_scale=-1 logit_scale=-1" },
	{ "starcoder2", "\"hidden_act\": null",
	  "kv_heads=2 head_dim=32 context=4096 eps=1e-05 window=0 tied=1 qkv_bias=1 o_bias=1 theta=10000" },
	{ "starcoder2", "\"hidden_act\": null, \"use_bias\": false, \"sliding_window\": 64",
	  "window=64 qkv_bias=0 o_bias=0" },
	{ "stablelm", "", "kv_heads=32 head_dim=32 context=4096 eps=1e-05 theta=10000 rotating=8 qkv_bias=0" },
	{ "stablelm", "\"use_qkv_bias\": true, \"partial_rotary_factor\": 0.5", "qkv_bias=1 rotating=16" },
	{ "nemotron", "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=4096 eps=1e-05 theta=10000 rotating=16" },
	{ "olmo", "", "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000" },
	{ "phi", "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000 rotating=16 qkv_bias=1 o_bias=1" },
	{ "gptj", "\"hidden_act\": null, \"hidden_size\": 1024, \"intermediate_size\": null",
	  "kv_heads=16 head_dim=64 context=2048 eps=1e-05 theta=10000 rotating=64 pairs=1 ffn=4096" },
	{ "gptj", "\"hidden_act\": null, \"rotary_dim\": 16, \"max_position_embeddings\": null, \"n_positions\": 512",
	  "rotating=16" },
	{ "gpt_neox", "\"hidden_act\": null",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000 rotating=8 qkv_bias=1 o_bias=1" },
	{ "gpt_neox", "\"hidden_act\": null, \"rotary_pct\": 0.5, \"rotary_emb_base\": 500, \"attention_bias\": false",
	  "rotating=16 theta=500 qkv_bias=0 o_bias=0" },
	{ "gpt_neox", "\"hidden_act\": null, \"partial_rotary_factor\": 0.5, \"rope_theta\": 500",
	  "rotating=8 theta=10000" },
	{ "gpt_neox",
	  "\"hidden_act\": null, \"partial_rotary_factor\": 0.5, \"rotary_pct\": 1, \"rope_theta\": 500, "
	  "\"rotary_emb_base\": 600",
	  "rotating=32 theta=600" },
	{ "falcon", "\"hidden_act\": null",
	  "kv_heads=1 head_dim=32 context=2048 eps=1e-05 tied=1 theta=10000 qkv_bias=0" },
	{ "falcon", "\"hidden_act\": null, \"bias\": true, \"num_kv_heads\": 4", "kv_heads=1 qkv_bias=1 o_bias=1" },
	{ "gpt_bigcode", "\"hidden_act\": null",
	  "kv_heads=1 head_dim=32 context=1024 eps=1e-05 tied=1 qkv_bias=1 o_bias=1" },
	{ "opt", "\"hidden_act\": null", "kv_heads=16 head_dim=32 context=2048 eps=1e-05 tied=1 qkv_bias=1 o_bias=1" },
	{ "dots1", "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2",
	  "kv_heads=32 head_dim=32 context=2048 eps=1e-06 kinds=ffffffff theta=10000 experts=8 used=2 expert_ffn=1408 "
	  "shared_ffn=0 dense=0 normed=0 router_scale=-1" },
	{ "dots1", "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"max_window_layers\": 6",
	  "window=4096 kinds=ffffffww" },
	{ "dots1",
	  "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"max_window_layers\": 6, \"sliding_window\": null",
	  "window=0 kinds=ffffffff" },
	{ "solar_open", "",
	  "kv_heads=8 head_dim=128 context=131072 eps=1e-05 theta=1000000 rotating=128 experts=128 used=8 "
	  "expert_ffn=1280 "
	  "shared_ffn=1280 dense=0 normed=1 router_scale=-1" },
	{ "solar_open", "\"first_k_dense_replace\": 3, \"partial_rotary_factor\": 0.5", "dense=0 rotating=64" },
	{ "minimax_m2", "",
	  "kv_heads=8 head_dim=128 context=196608 eps=1e-06 theta=5000000 rotating=128 experts=256 used=8 "
	  "expert_ffn=96 "
	  "shared_ffn=0 dense=0 normed=1" },
	{ "minimax_m2", "\"rotary_dim\": 64", "rotating=64" },
	{ "minimax_m2", "\"rotary_dim\": 64, \"partial_rotary_factor\": 0.5", "rotating=64" },
	{ "exaone_moe", "",
	  "kv_heads=32 head_dim=32 context=2048 eps=1e-05 window=4096 kinds=wwwFwwwF theta=10000 experts=64 used=8 "
	  "expert_ffn=1024 shared_ffn=1024 dense=1 normed=1 router_scale=2.5 groups=0" },
	{ "exaone_moe", "\"num_shared_experts\": 2, \"n_group\": 4, \"topk_group\": 2",
	  "shared_ffn=2048 groups=4 groups_used=2" },
	{ "hunyuan_v1_moe",
	  "\"head_dim\": 32, \"num_experts\": [4, 4, 4, 4, 4, 4, 4, 4], \"moe_topk\": [2, 2, 2, 2, 2, 2, 2, 2]",
	  "kv_heads=16 head_dim=32 context=2048 eps=1e-05 theta=10000 experts=4 used=2 expert_ffn=96 shared_ffn=96 "
	  "normed=1" },
	{ "hunyuan_v1_moe", "\"head_dim\": 32, \"num_experts\": 4, \"num_experts_per_tok\": 2", "used=1" },
	{ "hy_v3", "\"routed_scaling_factor\": 1.5, \"n_shared_experts\": 3", "router_scale=2.826 shared_ffn=1536" },
	{ "hy_v3", "",
	  "kv_heads=8 head_dim=128 context=131072 eps=1e-05 theta=11158840 experts=192 used=8 expert_ffn=1536 "
	  "shared_ffn=1536 dense=1 normed=1 router_scale=2.826" },
	{ "hy_v3",
	  "\"mlp_layer_types\": [\"dense\", \"dense\", \"sparse\", \"sparse\", \"sparse\", \"sparse\", \"sparse\", "
	  "\"sparse\"], \"router_scaling_factor\": 1, \"num_shared_experts\": 3",
	  "dense=2 router_scale=-1 shared_ffn=4608" },
	{ "olmo2", "\"sliding_window\": 64", "window=0 kinds=ffffffff" },
	{ "olmo2", "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}",
	  "kinds=ffffffff scaling=1 factor=4" },
	{ "olmo2",
	  "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\"], \"rope_theta\": 500000",
	  "window=0 kinds=ffffffff theta=500000" },
	{ "granite", "\"attention_multiplier\": 1.0", "attention_scale=1" },
	{ "granite", "\"attention_multiplier\": 0", "attention_scale=0" },
	{ "granite",
	  "\"attention_multiplier\": 0.5, \"embedding_multiplier\": 0, \"residual_multiplier\": 0, "
	  "\"logits_scaling\": 1",
	  "attention_scale=0.5 embed_scale=0 residual_scale=0 logit_scale=-1" },
	{ "granite", "\"embedding_multiplier\": 1, \"residual_multiplier\": 0.5, \"logits_scaling\": 8",
	  "attention_scale=1 embed_scale=-1 residual_scale=0.5 logit_scale=0.125" },
	{ "granitemoe", "\"attention_multiplier\": 1", "attention_scale=1" },
	{ "granitemoehybrid", "\"attention_multiplier\": 1", "attention_scale=1" },
	{ "gemma2", "\"attn_logit_softcapping\": 1.0, \"final_logit_softcapping\": 1", "score_cap=1 logit_cap=1" },
	{ "gemma2", "\"attn_logit_softcapping\": null, \"final_logit_softcapping\": null",
	  "score_cap=-1 logit_cap=-1" },
	{ "gemma2", "\"query_pre_attn_scalar\": 1", "attention_scale=1" },
	{ "cohere2", "\"logit_scale\": 1", "logit_scale=-1" },
	{ "cohere2", "\"logit_scale\": 0", "logit_scale=0" },
	{ "cohere2",
	  "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\"]",
	  "window=0 kinds=FFFFFFFF" },
	{ "cohere2",
	  "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\"]",
	  "window=4096 kinds=FwFwFwFw" },
	{ "exaone4",
	  "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\"]",
	  "window=0 kinds=FFFFFFFF" },
	{ "exaone4",
	  "\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\"], \"sliding_window\": null",
	  "window=0 kinds=ffffffff" },
	{ "exaone4",
	  "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\"], \"sliding_window\": 32",
	  "window=32 kinds=FwFwFwFw" },
	{ "qwen3_moe", "\"use_sliding_window\": true", "window=4096 kinds=wwwwwwww" },
	{ "qwen3_moe", "\"use_sliding_window\": true, \"sliding_window\": null", "window=0 kinds=ffffffff" },
	{ "mistral", "\"sliding_window\": null, \"head_dim\": 0", "head_dim=32 window=0" },
	{ "mixtral", "\"sliding_window\": 64, \"num_experts\": 4", "window=64 experts=4" },
	{ "ernie4_5", "\"num_key_value_heads\": null, \"head_dim\": null, \"use_bias\": null",
	  "kv_heads=16 head_dim=32 qkv_bias=0" },
	{ "seed_oss", "\"attention_bias\": false, \"attention_out_bias\": true, \"head_dim\": null",
	  "head_dim=32 qkv_bias=0 o_bias=1" },
	{ "glm4", "\"partial_rotary_factor\": null, \"attention_bias\": false", "qkv_bias=0 rotating=128" },
	{ "glm4",
	  "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 100, "
	  "\"partial_rotary_factor\": 0.75}",
	  "theta=100 rotating=96" },
	{ "qwen3_next", "\"partial_rotary_factor\": null", "rotating=256" },
	{ "qwen3_next", "\"num_experts\": 0, \"-intermediate_size\": 0", "ffn=5632 experts=0" },
	{ "qwen3_next", "\"num_local_experts\": 3", "experts=512" },
	{ "qwen3_moe", "\"num_experts\": 0", "ffn=96 experts=0" },
	{ "qwen3_moe", "\"num_local_experts\": 3, \"norm_topk_prob\": true", "experts=3 normed=1" },
	{ "qwen2_moe", "\"num_experts\": 0", "ffn=96 experts=0" },
	{ "qwen2_moe", "\"use_sliding_window\": true, \"sliding_window\": 64, \"max_window_layers\": 5",
	  "window=64 kinds=wfwfwfff" },
	{ "qwen2_moe",
	  "\"use_sliding_window\": true, \"sliding_window\": 64, \"layer_types\": "
	  "[\"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", "
	  "\"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\"]",
	  "window=64 kinds=fwfwfwfw" },
	{ "qwen2_moe", "\"qkv_bias\": false", "qkv_bias=0" },
	{ "qwen3", "\"use_sliding_window\": true, \"max_window_layers\": 3", "window=4096 kinds=fffwwwww" },
	{ "qwen3", "\"use_sliding_window\": true, \"sliding_window\": null", "window=0 kinds=ffffffff" },
	{ "smollm3", "\"use_sliding_window\": true, \"sliding_window\": 64", "window=64 kinds=fffWfffW" },
	{ "smollm3", "\"sliding_window\": 64", "window=0 kinds=fffFfffF" },
	{ "smollm3",
	  "\"no_rope_layers\": [1, 0, 0, 1, 1, 1, 1, 0], \"use_sliding_window\": true, "
	  "\"sliding_window\": 7",
	  "window=7 kinds=fWWffffW" },
	{ "smollm3", "\"no_rope_layer_interval\": 3", "kinds=ffFffFff" },
	{ "smollm3", "\"max_window_layers\": 28, \"use_sliding_window\": false", "kinds=fffFfffF" },
	{ "smollm3",
	  "\"use_sliding_window\": false, \"sliding_window\": 64, \"layer_types\": "
	  "[\"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", "
	  "\"full_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\"]",
	  "window=64 kinds=fwfWfwfW" },
	{ "phi3", "\"sliding_window\": 64, \"partial_rotary_factor\": 0.75", "window=64 rotating=24" },
	{ "gemma3_text", "\"sliding_window_pattern\": 3, \"_sliding_window_pattern\": 2", "kinds=wwfwwfww" },
	{ "gemma3_text",
	  "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}, \"rope_local_base_freq\": "
	  "777",
	  "theta=1000000 window_theta=777 scaling=1 window_scaling=0 factor=8" },
	{ "gemma3_text",
	  "\"-vocab_size\": 0, \"-hidden_size\": 0, \"-intermediate_size\": 0, "
	  "\"-num_hidden_layers\": 0, \"-num_attention_heads\": 0",
	  "layers=26 hidden=2304 ffn=9216 heads=8 vocab=262208" },
	{ "ministral3",
	  "\"-vocab_size\": 0, \"-hidden_size\": 0, \"-intermediate_size\": 0, "
	  "\"-num_hidden_layers\": 0, \"-num_attention_heads\": 0",
	  "layers=34 hidden=4096 ffn=14336 heads=32 vocab=131072" },
	{ "ministral3", "\"rope_parameters\": {}", "theta=10000 scaling=0 query_scale=0" },
	{ "ministral3", "\"rope_scaling\": {}, \"rope_theta\": 5", "theta=1000000 scaling=3 query_scale=0.1" },
	{ "ministral3",
	  "\"rope_theta\": 20000, \"rope_parameters\": {\"rope_type\": \"default\"}, "
	  "\"sliding_window\": 64",
	  "window=64 theta=20000 scaling=0 query_scale=0" },
	{ "gpt_oss", "\"rope_theta\": 20000", "theta=20000 scaling=3" },
	{ "gpt_oss", "\"rope_parameters\": {}", "theta=150000 scaling=0" },
	{ "gpt_oss",
	  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
	  "\"original_max_position_embeddings\": 128}",
	  "theta=150000 factor=4 truncate=1" },
	{ "gpt_oss",
	  "\"sliding_window\": null, \"layer_types\": [\"full_attention\", \"full_attention\", "
	  "\"full_attention\", \"full_attention\", \"full_attention\", \"full_attention\", "
	  "\"full_attention\", \"full_attention\"]",
	  "kinds=ffffffff" },
	{ "olmo3", "\"rope_theta\": 10000", "theta=10000 window_theta=500000" },
	{ "olmo3",
	  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
	  "\"original_max_position_embeddings\": 128, \"truncate\": false}, "
	  "\"rope_local_base_freq\": 3",
	  "window_theta=500000 scaling=3 window_scaling=0 truncate=1" },
	{ "gemma2",
	  "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\", "
	  "\"sliding_attention\"], \"sliding_window_pattern\": 3",
	  "kinds=fwfwfwfw" },
	{ "gemma4_text",
	  "\"hidden_size_per_layer_input\": 0, \"layer_types\": [\"sliding_attention\", "
	  "\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
	  "\"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
	  "\"sliding_attention\"], \"global_head_dim\": 64",
	  "kinds=wwwwwwwf lastdim=64 rotating=64" },
	{ "gemma4_text", "\"hidden_size_per_layer_input\": 0, \"per_layer_config\": {}", "lastdim=256" },
	{ "gemma4_text",
	  "\"hidden_size_per_layer_input\": 0, \"attention_k_eq_v\": true, "
	  "\"num_global_key_value_heads\": 1",
	  "lastdim=512 lastkv=1" },
	{ "gemma4_text",
	  "\"hidden_size_per_layer_input\": 0, \"num_global_key_value_heads\": 1, "
	  "\"final_logit_softcapping\": 1",
	  "logit_cap=1 lastkv=4" },
	{ "lfm2", "\"tie_embedding\": false", "tied=0" },
	{ "lfm2_moe", "\"tie_embedding\": false, \"tie_word_embeddings\": true, \"num_local_experts\": 1",
	  "tied=0 experts=32" },
	{ "lfm2_moe", "\"use_expert_bias\": false, \"norm_topk_prob\": false, \"routed_scaling_factor\": 0",
	  "router_scale=0 normed=0 router_bias=0" },
	{ "lfm2", "\"block_ff_dim\": 600, \"block_multiple_of\": 32", "ffn=416" },
	{ "lfm2", "\"block_auto_adjust_ff_dim\": false", "ffn=96" },
	{ "granitemoe", "\"num_experts\": 3", "experts=8" },
	{ "granitemoehybrid", "\"num_local_experts\": 0", "ffn=1024 experts=0" },
	{ "granitemoehybrid",
	  "\"mamba_conv_bias\": null, \"position_embedding_type\": \"rope\", "
	  "\"tie_word_embeddings\": true",
	  "tied=1 kinds=mmmfmmmf taps_bias=0" },
	{ "nemotron_h", "\"moe_shared_expert_intermediate_size\": 0", "shared_ffn=0" },
	{ "glm4_moe",
	  "\"first_k_dense_replace\": 0, \"n_shared_experts\": 0, \"use_qk_norm\": true, "
	  "\"routed_scaling_factor\": 1",
	  "router_scale=-1 shared_ffn=0 dense=0 qk_norm=1" },
	{ "glm4_moe", "\"routed_scaling_factor\": 0, \"norm_topk_prob\": false, \"partial_rotary_factor\": 1",
	  "rotating=32 router_scale=0 normed=0" },
	{ "deepseek_v3", "\"q_lora_rank\": null, \"norm_topk_prob\": null, \"rope_interleave\": null",
	  "normed=0 query_rank=0 pairs=0" },
	{ "deepseek_v3",
	  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
	  "\"original_max_position_embeddings\": 128, \"mscale\": 1, \"mscale_all_dim\": 1}",
	  "factor=4 attention_scale=0.0935651676" },
	{ "deepseek_v2", "\"rope_interleave\": false, \"norm_topk_prob\": true, \"q_lora_rank\": null",
	  "normed=0 query_rank=0 pairs=1" },
	{ "deepseek_v3", "\"num_mtp_layers\": 1", "layers=8" },
	{ "deepseek_v2", "\"topk_method\": \"greedy\"", "experts=64" },
	{ "glm4_moe_lite", "\"first_k_dense_replace\": 4", "dense=1" },
	{ "deepseek_v3", "\"first_k_dense_replace\": 99", "dense=8" },
	{ "glm4_moe", "\"num_mtp_layers\": 3", "later=3" },
	{ "deepseek_v3", "\"num_nextn_predict_layers\": 0", "later=0" },
	{ "glm4_moe_lite",
	  "\"mlp_layer_types\": [\"dense\", \"dense\", \"sparse\", \"sparse\", \"sparse\", "
	  "\"sparse\", \"sparse\", \"sparse\"]",
	  "dense=2" },
	{ "mistral4", "\"rope_parameters\": {}", "scaling=0 query_scale=0 attention_scale=0.0883883476" },
	{ "mistral4", "\"routed_scaling_factor\": 0, \"-hidden_size\": 0, \"-num_hidden_layers\": 0",
	  "layers=36 hidden=4096 router_scale=0" },
	{ "exaone4", "\"sliding_window_pattern\": 2, \"sliding_window\": 1", "window=1 kinds=wFwFwFwF" },
	{ "cohere2", "\"sliding_window_pattern\": 1", "kinds=FFFFFFFF" },
	{ "cohere", "\"logit_scale\": 1, \"tie_word_embeddings\": false", "tied=0 logit_scale=-1" },
	{ "hunyuan_v1_dense", "\"head_dim\": 64, \"num_key_value_heads\": 1", "kv_heads=1 head_dim=64" },
	{ "qwen3_5_text", "\"full_attention_interval\": 2", "kinds=mfmfmfmf" },
	{ "gemma", "\"hidden_act\": \"gelu\"", "head_dim=256" },
	{ "gemma", "\"hidden_act\": \"gelu_new\"", "head_dim=256" },
	{ "gemma2", "\"hidden_act\": \"silu\", \"hidden_activation\": \"gelu_fast\"", "head_dim=256" },
	{ "llama",
	  "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5}, \"rope_scaling\": "
	  "{\"type\": \"linear\", \"factor\": 4}",
	  "theta=10000 scaling=1 factor=4" },
	{ "llama",
	  "\"rope_parameters\": {\"rope_type\": \"default\", \"type\": \"yarn\", \"factor\": 4, \"beta_fast\": 3}",
	  "theta=10000 scaling=0" },
	{ "llama",
	  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
	  "\"original_max_position_embeddings\": 128, \"beta_fast\": 0, \"beta_slow\": 0}",
	  "beta_fast=32 beta_slow=1 truncate=1" },
};

const struct default_case *default_cases(size_t *n)
{
	*n = sizeof cases / sizeof *cases;
	return cases;
}

static const struct default_sentence sentences[] = {
	{ "gemma2", "\"attn_logit_softcapping\": 0", "attn_logit_softcapping is 0, expected 1e-06 to 1000000" },
	{ "granite", "\"logits_scaling\": 0", "logits_scaling is 0, expected 1e-06 to 1000000" },
	{ "gemma2", "\"query_pre_attn_scalar\": 0", "query_pre_attn_scalar is 0, expected 1e-06 to 1000000" },
	{ "mistral", "\"sliding_window\": 0", "sliding_window is 0, expected at least 1 or null" },
	{ "cohere2", "\"sliding_window\": null", "sliding_window is missing" },
	{ "cohere2", "\"sliding_window_pattern\": 0", "sliding_window_pattern is 0, expected at least 1" },
	{ "gemma", "\"hidden_act\": \"silu\"", "hidden_act is \"silu\", expected gelu_pytorch_tanh" },
	{ "gemma2", "\"hidden_activation\": \"gelu\"", "hidden_activation is \"gelu\", expected gelu_pytorch_tanh" },
	{ "deepseek_v3", "\"n_group\": 1, \"topk_group\": 0", "topk_group is 0, expected at least 1" },
	{ "llama", "\"rope_parameters\": {\"factor\": 4}", "the field rope_parameters.factor is 4" },
	{ "qwen2", "\"hidden_act\": \"gelu\"", "hidden_act is \"gelu\", expected silu" },
};

const struct default_sentence *default_sentences(size_t *n)
{
	*n = sizeof sentences / sizeof *sentences;
	return sentences;
}
