/* loaders/model/tensor_slots.h - the tensors that a layer may have: one table, which all loops over a layer expand.
 *
 * Owns: each tensor's name in code, its names in files, its size, and the group that decides whether a model has it.
 * A row makes the tensor known to the loaders, to the packing of weights and to the lists of kernels; what computes
 * with it is an architecture's layer (runtime/plan/arch_*.c).
 *
 * A star in a name of safetensors stands for an expert's number; without one, and in GGUF, one tensor holds all
 * experts' matrices.
 *
 * Matrices stand in the order in which a token reads them, which is their order in memory, too.
 */
#ifndef LOADERS_TENSOR_SLOTS_H
#define LOADERS_TENSOR_SLOTS_H

/* How many rows or columns. */
enum tensor_width {
	WIDTH_ONE,
	WIDTH_HIDDEN,
	WIDTH_HEADS,
	WIDTH_QUERIES,
	WIDTH_KEYS,
	WIDTH_FFN,
	WIDTH_HEAD_DIM,
	/* of struct model_recurrent: channels, and taps for each; values, their heads, and the size of one */
	WIDTH_CHANNELS,
	WIDTH_TAPS,
	WIDTH_VALUES,
	WIDTH_VALUE_HEADS,
	WIDTH_VALUE_DIM,
	WIDTH_STATE_KEYS, /* of all heads */
	WIDTH_RESULTS,    /* of all heads' attention */
	WIDTH_LATENT,     /* a latent vector */
	WIDTH_LATENT_ROW, /* ... and what rotates behind it */
	WIDTH_QUERY_RANK,
	WIDTH_REST, /* of a query: what does not rotate */
	WIDTH_KEYS_BY_HEAD /* a latent vector for each head */,
	WIDTH_EXPERTS,
	WIDTH_EXPERT_FFN,
	WIDTH_SHARED_FFN,
	WIDTH_INPUT /* model_spec.layer_input */,
	WIDTH_NUMBERS /* of an activation function */,
	WIDTH_STEP_RANK,
	WIDTH_STATE, /* of a channel */
	WIDTH_STATES /* of all channels */
};

/* Tensors that a model has together or not at all. */
enum tensor_group {
	GROUP_WEIGHT,
	GROUP_ATTENTION, /* the matrices of layers whose mixer it is, as the next two are of others' */
	GROUP_CONV,
	GROUP_DELTA,
	GROUP_DELTA_IN,     /* of such layers: what makes queries, keys and values, in one matrix, */
	GROUP_DELTA_APART,  /* ... or in three */
	GROUP_Q_GATE,       /* of attention's result, its rows beside the queries' */
	GROUP_HEAD_GATE,    /* the same, with one row for each head */
	GROUP_SCAN,         /* of layers with the selective scan */
	GROUP_CHANNEL,      /* of layers with the selective scan of channels */
	GROUP_CHANNEL_NORM, /* of their steps, keys and queries */
	GROUP_SCAN_NORM,
	GROUP_TAPS_BIAS,
	GROUP_TAPS,     /* of layers with a convolution, behind gates or before the delta rule */
	GROUP_PRE_NORM, /* before attention */
	GROUP_FFN_NORM, /* before the feed-forward layer */
	GROUP_GATE,     /* of the feed-forward layer */
	GROUP_MLP,      /* its other matrices */
	GROUP_QKV_BIAS,
	GROUP_O_BIAS,
	GROUP_MLP_BIAS,
	GROUP_QK_NORM,     /* of each head */
	GROUP_QK_ROW_NORM, /* of all heads together */
	GROUP_POST_NORM,   /* behind attention and behind the feed-forward layer, before they are added to the stream */
	GROUP_QUERIES,     /* their matrix, which reads the stream */
	GROUP_KEYS_VALUES, /* their matrices */
	GROUP_LATENT,      /* latent attention's */
	GROUP_LOW_QUERIES, /* queries by way of a vector of a low rank */
	/* Of layers with a mixture of experts, which have those instead of GATE and MLP. */
	GROUP_ROUTER,
	GROUP_EXPERTS,     /* as many as there are experts, which each row below stands for */
	GROUP_ROUTER_BIAS, /* for the choice alone */
	GROUP_EXPERT_BIAS, /* of the router's logits, and of experts' matrices: a vector of each, in one tensor */
	GROUP_SHARED,
	GROUP_SHARED_ROUTER,
	GROUP_BESIDE,      /* of experts that stand beside a feed-forward layer */
	GROUP_SUB_NORM,    /* of attention's result, and of what the feed-forward layer's last matrix reads */
	GROUP_XIELU,       /* numbers of the activation function, which model_xielu.c finds */
	GROUP_SINKS,       /* of attention's heads */
	GROUP_LAYER_INPUT, /* what a layer makes of a token's own */
	GROUP_LAYER_SCALE, /* by which a layer ends */
	GROUP_POST_NORM_BIAS,
	GROUP_NORM_BIAS,     /* of the norm before attention, and of the final one */
	GROUP_FFN_NORM_BIAS, /* of the norm before the feed-forward layer */
	TENSOR_GROUPS
};
/* Its bit in a set of groups. */
#define GROUP(name) (UINT64_C(1) << GROUP_##name)
_Static_assert(TENSOR_GROUPS <= 64, "a set of groups is a word");


/* Whether the elements are those of queries or keys, in the order of their rotation (model_tensor.rope_pairs). */
enum tensor_order { ORDER_PLAIN, ORDER_ROTATED };

/* MATRIX(name, name in GGUF, name in safetensors, rows, columns, group, order)
 * VECTOR(name, name in GGUF, name in safetensors, elements, group, order) */
/* clang-format off */
#define TENSOR_SLOTS_EACH(MATRIX, VECTOR) \
	VECTOR(attn_norm, "attn_norm.weight", "input_layernorm.weight", HIDDEN, PRE_NORM, PLAIN) \
	MATRIX(q_gate, "attn_q.weight", "self_attn.q_proj.weight", QUERIES, HIDDEN, Q_GATE, PLAIN) \
	MATRIX(q, "attn_q.weight", "self_attn.q_proj.weight", QUERIES, HIDDEN, QUERIES, ROTATED) \
	MATRIX(k, "attn_k.weight", "self_attn.k_proj.weight", KEYS, HIDDEN, KEYS_VALUES, ROTATED) \
	MATRIX(v, "attn_v.weight", "self_attn.v_proj.weight", KEYS, HIDDEN, KEYS_VALUES, PLAIN) \
	MATRIX(head_gate, "attn_gate.weight", "self_attn.g_proj.weight", HEADS, HIDDEN, HEAD_GATE, PLAIN) \
	MATRIX(q_a, "attn_q_a.weight", "self_attn.q_a_proj.weight", QUERY_RANK, HIDDEN, LOW_QUERIES, PLAIN) \
	MATRIX(kv_a, "attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", LATENT_ROW, HIDDEN, LATENT, \
	       ROTATED) \
	MATRIX(q_b, "attn_q_b.weight", "self_attn.q_b_proj.weight", QUERIES, QUERY_RANK, LOW_QUERIES, ROTATED) \
	MATRIX(k_b, "attn_k_b.weight", "self_attn.kv_b_proj.weight", KEYS_BY_HEAD, REST, LATENT, PLAIN) \
	MATRIX(v_b, "attn_v_b.weight", "self_attn.kv_b_proj.weight", RESULTS, LATENT, LATENT, PLAIN) \
	MATRIX(o, "attn_output.weight", "self_attn.o_proj.weight", HIDDEN, RESULTS, ATTENTION, PLAIN) \
	MATRIX(conv_b, "shortconv.in_proj.weight", "conv.in_proj.weight", HIDDEN, HIDDEN, CONV, PLAIN) \
	MATRIX(conv_c, "shortconv.in_proj.weight", "conv.in_proj.weight", HIDDEN, HIDDEN, CONV, PLAIN) \
	MATRIX(conv_x, "shortconv.in_proj.weight", "conv.in_proj.weight", HIDDEN, HIDDEN, CONV, PLAIN) \
	MATRIX(conv_out, "shortconv.out_proj.weight", "conv.out_proj.weight", HIDDEN, HIDDEN, CONV, PLAIN) \
	MATRIX(delta_q, "attn_q.weight", "linear_attn.q_proj.weight", STATE_KEYS, HIDDEN, DELTA_APART, PLAIN) \
	MATRIX(delta_k, "attn_k.weight", "linear_attn.k_proj.weight", STATE_KEYS, HIDDEN, DELTA_APART, PLAIN) \
	MATRIX(delta_v, "attn_v.weight", "linear_attn.v_proj.weight", VALUES, HIDDEN, DELTA_APART, PLAIN) \
	MATRIX(delta_qkv, "attn_qkv.weight", "linear_attn.in_proj_qkv.weight", CHANNELS, HIDDEN, DELTA_IN, PLAIN) \
	MATRIX(delta_z, "attn_gate.weight", "linear_attn.in_proj_z.weight", VALUES, HIDDEN, DELTA, PLAIN) \
	MATRIX(delta_b, "ssm_beta.weight", "linear_attn.in_proj_b.weight", VALUE_HEADS, HIDDEN, DELTA, PLAIN) \
	MATRIX(delta_a, "ssm_alpha.weight", "linear_attn.in_proj_a.weight", VALUE_HEADS, HIDDEN, DELTA, PLAIN) \
	MATRIX(delta_out, "ssm_out.weight", "linear_attn.out_proj.weight", HIDDEN, VALUES, DELTA, PLAIN) \
	MATRIX(scan_z, "ssm_in.weight", "mamba.in_proj.weight", VALUES, HIDDEN, SCAN, PLAIN) \
	MATRIX(scan_xbc, "ssm_in.weight", "mamba.in_proj.weight", CHANNELS, HIDDEN, SCAN, PLAIN) \
	MATRIX(scan_dt, "ssm_in.weight", "mamba.in_proj.weight", VALUE_HEADS, HIDDEN, SCAN, PLAIN) \
	MATRIX(scan_out, "ssm_out.weight", "mamba.out_proj.weight", HIDDEN, VALUES, SCAN, PLAIN) \
	MATRIX(channel_x, "ssm_in.weight", "mamba.in_proj.weight", VALUES, HIDDEN, CHANNEL, PLAIN) \
	MATRIX(channel_z, "ssm_in.weight", "mamba.in_proj.weight", VALUES, HIDDEN, CHANNEL, PLAIN) \
	MATRIX(channel_dt, "ssm_x.weight", "mamba.x_proj.weight", STEP_RANK, VALUES, CHANNEL, PLAIN) \
	MATRIX(channel_b, "ssm_x.weight", "mamba.x_proj.weight", STATE, VALUES, CHANNEL, PLAIN) \
	MATRIX(channel_c, "ssm_x.weight", "mamba.x_proj.weight", STATE, VALUES, CHANNEL, PLAIN) \
	MATRIX(channel_steps, "ssm_dt.weight", "mamba.dt_proj.weight", VALUES, STEP_RANK, CHANNEL, PLAIN) \
	MATRIX(channel_out, "ssm_out.weight", "mamba.out_proj.weight", HIDDEN, VALUES, CHANNEL, PLAIN) \
	VECTOR(ffn_norm, "ffn_norm.weight", "post_attention_layernorm.weight", HIDDEN, FFN_NORM, PLAIN) \
	MATRIX(gate, "ffn_gate.weight", "mlp.gate_proj.weight", FFN, HIDDEN, GATE, PLAIN) \
	MATRIX(up, "ffn_up.weight", "mlp.up_proj.weight", FFN, HIDDEN, MLP, PLAIN) \
	MATRIX(down, "ffn_down.weight", "mlp.down_proj.weight", HIDDEN, FFN, MLP, PLAIN) \
	MATRIX(router, "ffn_gate_inp.weight", "mlp.gate.weight", EXPERTS, HIDDEN, ROUTER, PLAIN) \
	MATRIX(expert_gate, "ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight", \
	       EXPERT_FFN, HIDDEN, EXPERTS, PLAIN) \
	MATRIX(expert_up, "ffn_up_exps.weight", "mlp.experts.*.up_proj.weight", EXPERT_FFN, HIDDEN, EXPERTS, PLAIN) \
	MATRIX(expert_down, "ffn_down_exps.weight", "mlp.experts.*.down_proj.weight", \
	       HIDDEN, EXPERT_FFN, EXPERTS, PLAIN) \
	MATRIX(shared_router, "ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", \
	       ONE, HIDDEN, SHARED_ROUTER, PLAIN) \
	MATRIX(shared_gate, "ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight", \
	       SHARED_FFN, HIDDEN, SHARED, PLAIN) \
	MATRIX(shared_up, "ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", \
	       SHARED_FFN, HIDDEN, SHARED, PLAIN) \
	MATRIX(shared_down, "ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight", \
	       HIDDEN, SHARED_FFN, SHARED, PLAIN) \
	VECTOR(router_bias, "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", EXPERTS, ROUTER_BIAS, PLAIN) \
	VECTOR(logit_bias, "ffn_gate_inp.bias", "mlp.router.bias", EXPERTS, EXPERT_BIAS, PLAIN) \
	VECTOR(expert_gate_bias, "ffn_gate_exps.bias", "mlp.experts.gate_proj_bias", EXPERT_FFN, EXPERT_BIAS, PLAIN) \
	VECTOR(expert_up_bias, "ffn_up_exps.bias", "mlp.experts.up_proj_bias", EXPERT_FFN, EXPERT_BIAS, PLAIN) \
	VECTOR(expert_down_bias, "ffn_down_exps.bias", "mlp.experts.down_proj_bias", HIDDEN, EXPERT_BIAS, PLAIN) \
	VECTOR(router_scale, "ffn_gate_inp.scale", "router.scale", HIDDEN, BESIDE, PLAIN) \
	VECTOR(expert_scale, "ffn_down_exps.scale", "router.per_expert_scale", EXPERTS, BESIDE, PLAIN) \
	VECTOR(expert_norm, "pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight", HIDDEN, BESIDE, PLAIN) \
	VECTOR(dense_post_norm, "post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight", \
	       HIDDEN, BESIDE, PLAIN) \
	VECTOR(expert_post_norm, "post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight", \
	       HIDDEN, BESIDE, PLAIN) \
	VECTOR(attn_sub_norm, "attn_sub_norm.weight", "self_attn.attn_sub_norm.weight", RESULTS, SUB_NORM, PLAIN) \
	VECTOR(ffn_sub_norm, "ffn_sub_norm.weight", "mlp.ffn_sub_norm.weight", FFN, SUB_NORM, PLAIN) \
	VECTOR(xielu, "", "mlp.act_fn.", NUMBERS, XIELU, PLAIN) \
	VECTOR(sinks, "attn_sinks.weight", "self_attn.sinks", HEADS, SINKS, PLAIN) \
	VECTOR(delta_norm, "ssm_norm.weight", "linear_attn.norm.weight", VALUE_DIM, DELTA, PLAIN) \
	VECTOR(delta_decay, "ssm_a", "linear_attn.A_log", VALUE_HEADS, DELTA, PLAIN) \
	VECTOR(delta_dt, "ssm_dt.bias", "linear_attn.dt_bias", VALUE_HEADS, DELTA, PLAIN) \
	VECTOR(taps, "ssm_conv1d.weight", "linear_attn.conv1d.weight", TAPS, TAPS, PLAIN) \
	VECTOR(taps_bias, "ssm_conv1d.bias", "mamba.conv1d.bias", CHANNELS, TAPS_BIAS, PLAIN) \
	VECTOR(scan_norm, "ssm_norm.weight", "mamba.norm.weight", VALUES, SCAN_NORM, PLAIN) \
	VECTOR(scan_decay, "ssm_a", "mamba.A_log", VALUE_HEADS, SCAN, PLAIN) \
	VECTOR(scan_dt_bias, "ssm_dt.bias", "mamba.dt_bias", VALUE_HEADS, SCAN, PLAIN) \
	VECTOR(scan_skip, "ssm_d", "mamba.D", VALUE_HEADS, SCAN, PLAIN) \
	VECTOR(channel_bias, "ssm_dt.bias", "mamba.dt_proj.bias", VALUES, CHANNEL, PLAIN) \
	VECTOR(channel_decay, "ssm_a", "mamba.A_log", STATES, CHANNEL, PLAIN) \
	VECTOR(channel_skip, "ssm_d", "mamba.D", VALUES, CHANNEL, PLAIN) \
	VECTOR(channel_dt_norm, "ssm_dt_norm.weight", "mamba.dt_layernorm.weight", STEP_RANK, CHANNEL_NORM, PLAIN) \
	VECTOR(channel_b_norm, "ssm_b_norm.weight", "mamba.b_layernorm.weight", STATE, CHANNEL_NORM, PLAIN) \
	VECTOR(channel_c_norm, "ssm_c_norm.weight", "mamba.c_layernorm.weight", STATE, CHANNEL_NORM, PLAIN) \
	MATRIX(input_gate, "inp_gate.weight", "per_layer_input_gate.weight", INPUT, HIDDEN, LAYER_INPUT, PLAIN) \
	MATRIX(input_out, "proj.weight", "per_layer_projection.weight", HIDDEN, INPUT, LAYER_INPUT, PLAIN) \
	VECTOR(input_post_norm, "post_norm.weight", "post_per_layer_input_norm.weight", HIDDEN, LAYER_INPUT, PLAIN) \
	VECTOR(layer_scale, "layer_output_scale.weight", "layer_scalar", ONE, LAYER_SCALE, PLAIN) \
	VECTOR(q_gate_bias, "attn_q.bias", "self_attn.q_proj.bias", QUERIES, QKV_BIAS, PLAIN) \
	VECTOR(q_bias, "attn_q.bias", "self_attn.q_proj.bias", QUERIES, QKV_BIAS, ROTATED) \
	VECTOR(k_bias, "attn_k.bias", "self_attn.k_proj.bias", KEYS, QKV_BIAS, ROTATED) \
	VECTOR(v_bias, "attn_v.bias", "self_attn.v_proj.bias", KEYS, QKV_BIAS, PLAIN) \
	VECTOR(o_bias, "attn_output.bias", "self_attn.o_proj.bias", HIDDEN, O_BIAS, PLAIN) \
	VECTOR(gate_bias, "ffn_gate.bias", "mlp.gate_proj.bias", FFN, MLP_BIAS, PLAIN) \
	VECTOR(up_bias, "ffn_up.bias", "mlp.up_proj.bias", FFN, MLP_BIAS, PLAIN) \
	VECTOR(down_bias, "ffn_down.bias", "mlp.down_proj.bias", HIDDEN, MLP_BIAS, PLAIN) \
	VECTOR(q_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", HEAD_DIM, QK_NORM, ROTATED) \
	VECTOR(k_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", HEAD_DIM, QK_NORM, ROTATED) \
	VECTOR(q_a_norm, "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", QUERY_RANK, LOW_QUERIES, PLAIN) \
	VECTOR(kv_a_norm, "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", LATENT, LATENT, PLAIN) \
	VECTOR(q_row_norm, "attn_q_norm.weight", "self_attn.q_norm.weight", QUERIES, QK_ROW_NORM, ROTATED) \
	VECTOR(k_row_norm, "attn_k_norm.weight", "self_attn.k_norm.weight", KEYS, QK_ROW_NORM, ROTATED) \
	VECTOR(attn_norm_bias, "attn_norm.bias", "input_layernorm.bias", HIDDEN, NORM_BIAS, PLAIN) \
	VECTOR(ffn_norm_bias, "ffn_norm.bias", "post_attention_layernorm.bias", HIDDEN, FFN_NORM_BIAS, PLAIN) \
	VECTOR(attn_post_norm, "post_attention_norm.weight", "post_attention_layernorm.weight", \
	       HIDDEN, POST_NORM, PLAIN) \
	VECTOR(attn_post_norm_bias, "post_attention_norm.bias", "post_attention_layernorm.bias", \
	       HIDDEN, POST_NORM_BIAS, PLAIN) \
	VECTOR(ffn_post_norm_bias, "post_ffw_norm.bias", "post_feedforward_layernorm.bias", \
	       HIDDEN, POST_NORM_BIAS, PLAIN) \
	VECTOR(ffn_post_norm, "post_ffw_norm.weight", "post_feedforward_layernorm.weight", HIDDEN, POST_NORM, PLAIN)
/* clang-format on */

#define TENSOR_SLOTS_NONE(...)
/* Those of one sort: X(name, ...) as above. */
#define MATRIX_SLOTS_EACH(X) TENSOR_SLOTS_EACH(X, TENSOR_SLOTS_NONE)
#define VECTOR_SLOTS_EACH(X) TENSOR_SLOTS_EACH(TENSOR_SLOTS_NONE, X)

enum tensor_slot {
#define X(name, ...) SLOT_##name,
	TENSOR_SLOTS_EACH(X, X)
#undef X
		TENSOR_SLOTS
};

/* The positions in arrays of matrices or vectors alone. */
enum matrix_slot {
#define X(name, ...) MATRIX_##name,
	MATRIX_SLOTS_EACH(X)
#undef X
		MATRIX_SLOTS
};
enum vector_slot {
#define X(name, ...) VECTOR_##name,
	VECTOR_SLOTS_EACH(X)
#undef X
		VECTOR_SLOTS
};

#endif
