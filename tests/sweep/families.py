"""tests/sweep/families.py - random configurations of each family, small enough that a model of it runs in a moment.

A family is a function of a random.Random that returns the fields of a config.json; `model_type` is its name. What it
draws are sizes, layer types, biases, scales and rotary embeddings. Whether a field is absent, null, 0, 1 or what the
class has by default is drawn in sweep.py, for all families alike.
"""

WINDOWS = [1, 3, 5, 8, 16, 31, 64]
EPS = [1e-6, 1e-5, 1e-3]
SCALES = [1, 1.0, 0.5, 0.0625, 0.22, 2.0, 12.0]


def divisors(n):
    return [i for i in range(1, n + 1) if n % i == 0]


def flip(r, p=0.5):
    return r.random() < p


def sizes(r, head_dims=(8, 16, 24, 32, 40, 64, 80, 96, 128), own_head_dim=True):
    """The sizes that nearly all families have."""
    heads = r.choice([1, 2, 3, 4, 6, 8])
    head_dim = r.choice(head_dims)
    while heads * head_dim > 320:
        head_dim = r.choice(head_dims)
    apart = own_head_dim and flip(r)
    # Several classes want the hidden size to be a multiple of the heads even where head_dim is said.
    hidden = heads * r.choice([8, 16, 24, 32]) if apart else heads * head_dim
    c = {
        "vocab_size": r.randint(61, 250), "hidden_size": hidden,
        "intermediate_size": r.choice([24, 32, 48, 64, 96, 160]), "num_hidden_layers": r.randint(1, 5),
        "num_attention_heads": heads, "num_key_value_heads": r.choice(divisors(heads)),
        "rms_norm_eps": r.choice(EPS), "max_position_embeddings": r.choice([64, 512, 4096, 16384]),
        "tie_word_embeddings": flip(r), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    }
    if apart:
        c["head_dim"] = head_dim
    elif own_head_dim and flip(r):
        c["head_dim"] = head_dim
    return c


def head_dim_of(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def scaling(r, c, kind):
    """The members of a rotary scaling, without the base."""
    if kind in ("default", "dynamic", "linear"):
        p = {"rope_type": kind}
        if kind != "default":
            p["factor"] = r.choice([1.0, 2.0, 4, 1.5])
        return p
    original = r.choice([16, 64, 256])
    p = {"rope_type": kind, "factor": r.choice([1.0, 2.0, 4.0, 8, 2.5]), "original_max_position_embeddings": original}
    if kind == "llama3":
        p.update(low_freq_factor=r.choice([1.0, 1, 0.5]), high_freq_factor=r.choice([4.0, 4, 2.0]))
    if kind == "yarn":
        for field, values in (("beta_fast", [32, 32.0, 16]), ("beta_slow", [1, 1.0, 2]), ("truncate", [True, False]),
                              ("attention_factor", [1.0, 1.2, 0.8])):
            if flip(r, 0.4):
                p[field] = r.choice(values)
        if flip(r, 0.3):
            p.update(mscale=r.choice([1.0, 0.707, 2]), mscale_all_dim=r.choice([1.0, 0.707, 0.5]))
    return p


def rope(r, c, kinds=("default", "default", "linear", "yarn", "llama3"), partial=None):
    """Adds a rotary embedding, in the words of transformers 4 or 5."""
    theta = r.choice([10000, 10000.0, 500000.0, 1000000, 100.0])
    p = scaling(r, c, r.choice(kinds))
    share = r.choice(partial) if partial else None
    if share is not None and int(head_dim_of(c) * share) % 2:
        share = 0.5 if head_dim_of(c) % 4 == 0 else 1.0
    if flip(r):
        c["rope_parameters"] = dict(p, rope_theta=theta)
        if share is not None:
            c["rope_parameters"]["partial_rotary_factor"] = share
        return c
    if flip(r, 0.8):
        c["rope_theta"] = theta
    if share is not None:
        c["partial_rotary_factor"] = share
    if p["rope_type"] == "default":
        if flip(r):
            c["rope_scaling"] = None
        return c
    if flip(r):
        p["type"] = p.pop("rope_type")
    c["rope_scaling"] = p
    return c


def layer_types(r, c, other="sliding_attention"):
    n = c["num_hidden_layers"]
    how = r.random()
    if how < 0.15:
        return ["full_attention"] * n
    if how < 0.3 and other == "sliding_attention":
        return [other] * n
    types = [r.choice(["full_attention", other]) for _ in range(n)]
    if other != "sliding_attention":
        types[r.randrange(n)] = "full_attention"
    return types


def maybe_types(r, c):
    """A window, and which layers have it, as far as a file says."""
    c["sliding_window"] = r.choice(WINDOWS + [None])
    if flip(r, 0.7):
        c["layer_types"] = layer_types(r, c)
    return c


def some_window(r, c):
    if flip(r):
        c["use_sliding_window"] = flip(r, 0.7)
        c["sliding_window"] = r.choice(WINDOWS)
        c["max_window_layers"] = r.randint(0, c["num_hidden_layers"])
        if flip(r):
            c["layer_types"] = layer_types(r, c)
    return c


def attention_bias(r, c, *more):
    for field in ("attention_bias",) + more:
        if flip(r):
            c[field] = flip(r)
    return c


def experts(r, c, count="num_experts", most=8):
    c[count] = r.randint(2, most)
    c["num_experts_per_tok"] = r.randint(1, min(4, c[count]))
    return c


# ---- dense families

def llama(r):
    c = attention_bias(r, sizes(r), "mlp_bias")
    return rope(r, c)


def mistral(r):
    c = rope(r, sizes(r))
    c["sliding_window"] = r.choice(WINDOWS + [None, None])
    return c


def qwen2(r):
    return some_window(r, rope(r, sizes(r, own_head_dim=False)))


def qwen3(r):
    return some_window(r, attention_bias(r, rope(r, sizes(r))))


def ernie4_5(r):
    c = sizes(r)
    c["head_dim"] = head_dim_of(c)
    c["use_bias"] = flip(r)
    return rope(r, c)


def seed_oss(r):
    c = sizes(r)
    c["head_dim"] = head_dim_of(c)
    c.update(attention_bias=flip(r), attention_out_bias=flip(r), mlp_bias=flip(r))
    return rope(r, c)


def phi3(r):
    c = sizes(r, own_head_dim=False)
    c["sliding_window"] = r.choice(WINDOWS + [None, None])
    rope(r, c, kinds=("default", "linear", "longrope"), partial=[None, 1.0, 0.5, 0.75])
    for p in (c.get("rope_parameters"), c.get("rope_scaling")):
        if p and "longrope" in (p.get("type"), p.get("rope_type")):
            share = c.get("partial_rotary_factor", (c.get("rope_parameters") or {}).get("partial_rotary_factor", 1.0))
            n = int(head_dim_of(c) * share) // 2
            p.pop("factor", None)
            original = p.pop("original_max_position_embeddings")
            p["short_factor"] = [1.0 + r.random() for _ in range(n)]
            p["long_factor"] = [1.0 + 8 * r.random() for _ in range(n)]
            # Which factors hold changes with the length in transformers, and with the context here: one is drawn.
            c["original_max_position_embeddings"] = original = 32768
            c["max_position_embeddings"] = r.choice([32768, 131072])
            if "rope_parameters" in c:
                p["original_max_position_embeddings"] = original
    return c


def smollm3(r):
    c = attention_bias(r, sizes(r), "mlp_bias")
    if flip(r):
        c["no_rope_layers"] = [r.randint(0, 1) for _ in range(c["num_hidden_layers"])]
    elif flip(r):
        c["no_rope_layer_interval"] = r.choice([1, 2, 3, 4])
    return some_window(r, rope(r, c))


def granite_scales(r, c):
    for field in ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"):
        if flip(r, 0.8):
            c[field] = r.choice(SCALES)
    return c


def granite(r):
    return granite_scales(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False)), "mlp_bias"))


def olmo2(r):
    return attention_bias(r, rope(r, sizes(r, own_head_dim=False)))


def olmo3(r):
    return maybe_types(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False), kinds=("default", "yarn", "linear"))))


def exaone4(r):
    c = maybe_types(r, rope(r, sizes(r)))
    if flip(r, 0.3):
        c["sliding_window_pattern"] = r.choice([2, 3, 4, "LLLG", "LG", None])
    return c


def glm4(r):
    c = sizes(r, head_dims=(16, 32, 64, 80, 128))
    c["head_dim"] = head_dim_of(c)
    return rope(r, dict(c, attention_bias=flip(r)), partial=[0.5, 0.5, 0.25])


def arcee(r):
    return rope(r, attention_bias(r, dict(sizes(r), hidden_act="relu2"), "mlp_bias"), kinds=("default", "yarn"))


def hunyuan_v1_dense(r):
    c = attention_bias(r, sizes(r))
    c["head_dim"] = head_dim_of(c)
    rope(r, c)
    if flip(r, 0.4):
        c.pop("rope_parameters", None)
        c["rope_theta"] = 10000.0
        c["rope_scaling"] = {"type": "dynamic", "alpha": r.choice([1000.0, 50, 1, 2.5]), "factor": 1.0,
                             "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
        c["max_position_embeddings"] = 32768
    return c


def ministral3(r):
    c = dict(sizes(r), sliding_window=r.choice(WINDOWS + [None, None]))
    c["rope_parameters"] = dict(scaling(r, c, "yarn"), rope_theta=r.choice([10000.0, 1000000.0]),
                                llama_4_scaling_beta=r.choice([0, 0.1, 1]))
    c["rope_parameters"]["original_max_position_embeddings"] = r.choice([8, 16, 64])
    return c


def cwm(r):
    c = rope(r, dict(sizes(r), mlp_bias=flip(r)))
    c["head_dim"] = head_dim_of(c)
    return maybe_types(r, c)


def helium(r):
    c = attention_bias(r, sizes(r, head_dims=(8, 16, 32, 64, 80)), "mlp_bias")
    c["head_dim"] = head_dim_of(c)
    return rope(r, c)


# ---- norms that subtract the mean

def centred(r, c, field="layer_norm_eps"):
    c[field] = c.pop("rms_norm_eps")
    return c


def starcoder2(r):
    c = centred(r, rope(r, sizes(r, own_head_dim=False)), "norm_epsilon")
    c.update(use_bias=flip(r, 0.8), hidden_act=r.choice(["gelu_pytorch_tanh", "gelu", "gelu_new"]),
             sliding_window=r.choice(WINDOWS + [None, None]))
    return c


def stablelm(r):
    c = centred(r, sizes(r, head_dims=(16, 32, 64, 80), own_head_dim=False))
    c.update(use_qkv_bias=flip(r), use_parallel_residual=flip(r), qk_layernorm=False)
    return rope(r, c, kinds=("default", "linear"), partial=[0.25, 0.5, 1.0])


def nemotron(r):
    c = sizes(r, head_dims=(16, 32, 64, 80))
    c["head_dim"] = head_dim_of(c)
    c = centred(r, attention_bias(r, c, "mlp_bias"), "norm_eps")
    return rope(r, dict(c, hidden_act="relu2"), kinds=("default",), partial=[0.5, 0.25, 1.0])


def olmo(r):
    c = attention_bias(r, rope(r, sizes(r, own_head_dim=False)))
    c.pop("rms_norm_eps")
    return dict(c, clip_qkv=None)


def phi(r):
    c = centred(r, sizes(r, head_dims=(16, 32, 64, 80), own_head_dim=False))
    c.update(hidden_act=r.choice(["gelu_new", "gelu"]), qk_layernorm=False)
    return rope(r, c, kinds=("default", "linear"), partial=[0.4, 0.5, 0.25])


def renamed(c, **names):
    """Fields by the names that older classes have."""
    return {names.get(k, k): v for k, v in c.items() if names.get(k, k)}


def gptj(r):
    c = sizes(r, head_dims=(16, 32, 64), own_head_dim=False)
    c["rotary_dim"] = r.choice([8, 16, head_dim_of(c)])
    c.update(activation_function=r.choice(["gelu_new", "gelu"]), layer_norm_epsilon=c.pop("rms_norm_eps"),
             n_inner=r.choice([None, c.pop("intermediate_size")]))
    c.pop("num_key_value_heads")
    return renamed(c, hidden_size="n_embd", num_hidden_layers="n_layer", num_attention_heads="n_head",
                   max_position_embeddings="n_positions")


def gpt_neox(r):
    c = centred(r, sizes(r, head_dims=(16, 32, 64, 80), own_head_dim=False))
    c.pop("num_key_value_heads")
    c.update(use_parallel_residual=flip(r), attention_bias=flip(r, 0.8), hidden_act=r.choice(["gelu", "gelu_new"]))
    c = rope(r, c, kinds=("default", "linear"), partial=[0.25, 0.5, 1.0])
    for name, own in (("partial_rotary_factor", "rotary_pct"), ("rope_theta", "rotary_emb_base")):
        if name in c:  # at the top, the class reads its own names alone
            c[own] = c.pop(name)
    return c


def falcon(r):
    c = sizes(r, own_head_dim=False)
    c.update(layer_norm_epsilon=c.pop("rms_norm_eps"), multi_query=flip(r), parallel_attn=flip(r, 0.7), bias=flip(r, 0.3),
             alibi=False, new_decoder_architecture=flip(r), ffn_hidden_size=c.pop("intermediate_size"))
    heads = c.pop("num_key_value_heads")
    if c["new_decoder_architecture"]:
        c.update(num_kv_heads=heads, parallel_attn=True)
        if flip(r, 0.6):
            c["num_ln_in_parallel_attn"] = r.choice([1, 2, None])
    return rope(r, c, kinds=("default", "linear"))


def gpt_bigcode(r):
    c = sizes(r, own_head_dim=False)
    c.update(layer_norm_epsilon=c.pop("rms_norm_eps"), multi_query=True, n_inner=c.pop("intermediate_size"),
             activation_function=r.choice(["gelu_pytorch_tanh", "gelu"]), max_position_embeddings=512)
    c.pop("num_key_value_heads")
    return renamed(c, hidden_size="n_embd", num_hidden_layers="n_layer", num_attention_heads="n_head",
                   max_position_embeddings="n_positions")


def gpt2(r):
    c = gpt_bigcode(r)
    c.pop("multi_query")
    return c


def bloom(r):
    c = sizes(r, own_head_dim=False)
    for field in ("intermediate_size", "max_position_embeddings", "num_key_value_heads"):
        c.pop(field)
    c["layer_norm_epsilon"] = c.pop("rms_norm_eps")
    names = dict(num_hidden_layers="n_layer")
    names.update(dict(num_attention_heads="n_head") if flip(r) else dict(hidden_size="n_embed"))
    return renamed(c, **names)


def mpt(r):
    c = sizes(r, own_head_dim=False)
    for field in ("intermediate_size", "num_key_value_heads"):
        c.pop(field)
    c["layer_norm_epsilon"] = c.pop("rms_norm_eps")
    if flip(r, 0.7):
        # The class computes with 8 whatever this says; models that were trained with another value need it.
        c["attn_config"] = {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch",
                            "softmax_scale": r.choice([None, 0.3, 0.1]), "clip_qkv": None, "model_type": ""}
    return renamed(c, hidden_size="d_model", num_hidden_layers="n_layers", num_attention_heads="n_heads",
                   max_position_embeddings="max_seq_len")


def opt(r):
    c = sizes(r, own_head_dim=False)
    c.update(ffn_dim=c.pop("intermediate_size"), activation_function="relu", word_embed_proj_dim=c["hidden_size"],
             max_position_embeddings=512)
    for field in ("rms_norm_eps", "num_key_value_heads"):
        c.pop(field)
    return c


# ---- Gemma

def gemma(r):
    c = rope(r, attention_bias(r, sizes(r)), kinds=("default", "linear"))
    c["head_dim"] = head_dim_of(c)
    for field, values in (("hidden_act", ["gelu_pytorch_tanh", "gelu"]),
                          ("hidden_activation", ["gelu_pytorch_tanh", None])):
        if flip(r):
            c[field] = r.choice(values)
    return c


def gemma2(r):
    c = maybe_types(r, rope(r, attention_bias(r, sizes(r)), kinds=("default", "linear")))
    c["head_dim"] = head_dim_of(c)
    c["query_pre_attn_scalar"] = r.choice([1, 16, 64, 256, c["head_dim"]])
    for field in ("attn_logit_softcapping", "final_logit_softcapping"):
        if flip(r, 0.8):
            c[field] = r.choice([1.0, 1, 2.0, 30.0, 50.0, None])
    return c


def two_ropes(r, c, proportional=False):
    full = dict(scaling(r, c, r.choice(["default", "linear"])), rope_theta=r.choice([1000000.0, 10000.0]))
    if proportional and flip(r):
        full = {"rope_type": "proportional", "partial_rotary_factor": r.choice([0.25, 0.5, 1.0]),
                "rope_theta": 1000000.0}
    if proportional or flip(r):
        c["rope_parameters"] = {"full_attention": full, "sliding_attention": {"rope_type": "default",
                                                                             "rope_theta": r.choice([10000.0, 500.0])}}
        return c
    c["rope_theta"] = full.pop("rope_theta")
    if flip(r):
        c["rope_local_base_freq"] = r.choice([10000.0, 500.0])
    if full["rope_type"] != "default":
        c["rope_scaling"] = full
    return c


def gemma3_text(r):
    c = maybe_types(r, two_ropes(r, attention_bias(r, sizes(r))))
    c["sliding_window"] = c["sliding_window"] or 8
    c["head_dim"] = head_dim_of(c)
    c["query_pre_attn_scalar"] = r.choice([1, 16, 64, 256, c["head_dim"]])
    for field in ("attn_logit_softcapping", "final_logit_softcapping"):
        if flip(r, 0.4):
            c[field] = r.choice([1.0, 2.0, 30.0, None])
    if flip(r, 0.3):
        c["sliding_window_pattern"] = r.choice([1, 2, 3, 6])
    return c


def gemma4_text(r):
    c = sizes(r, head_dims=(8, 16, 32))
    heads = c["num_attention_heads"]
    c["num_hidden_layers"] = r.randint(2, 5)
    c.update(head_dim=head_dim_of(c), global_head_dim=r.choice([16, 32, 64]), sliding_window=r.choice(WINDOWS),
             attention_k_eq_v=flip(r), enable_moe_block=flip(r, 0.3), tie_word_embeddings=True,
             hidden_size_per_layer_input=r.choice([0, 0, 8, 16, 32]), use_double_wide_mlp=False,
             num_kv_shared_layers=0, final_logit_softcapping=r.choice([None, 1.0, 30.0]))
    c["vocab_size_per_layer_input"] = c["vocab_size"]
    c["layer_types"] = [r.choice(["sliding_attention", "full_attention"]) for _ in range(c["num_hidden_layers"] - 1)]
    c["layer_types"].append("full_attention")
    if c["attention_k_eq_v"]:
        c["num_global_key_value_heads"] = r.choice(divisors(heads))
    if c["enable_moe_block"]:
        c.update(num_experts=r.randint(2, 6), top_k_experts=2, moe_intermediate_size=r.choice([16, 32]))
    own = c["layer_types"][:-1]
    if set(own) >= set(c["layer_types"]) and flip(r):
        c.update(num_kv_shared_layers=1, use_double_wide_mlp=flip(r))
    return two_ropes(r, attention_bias(r, c), proportional=True)


# ---- Cohere

def cohere2(r):
    c = maybe_types(r, rope(r, attention_bias(r, sizes(r)), kinds=("default",)))
    c["sliding_window"] = c["sliding_window"] or 8
    c["layer_norm_eps"] = c.pop("rms_norm_eps")
    if flip(r, 0.7):
        c["logit_scale"] = r.choice(SCALES)
    return c


def cohere(r):
    c = rope(r, attention_bias(r, sizes(r, own_head_dim=False)), kinds=("default", "linear"))
    c["layer_norm_eps"] = c.pop("rms_norm_eps")
    if flip(r, 0.7):
        c["logit_scale"] = r.choice(SCALES)
    dim, heads = head_dim_of(c), c["num_key_value_heads"]
    if flip(r, 0.5):  # jitrun runs these sizes alone
        c["use_qk_norm"] = dim % 16 == 0 and dim * heads % 32 == 0
    return c


# ---- layers with a state

def lfm2(r):
    c = sizes(r, own_head_dim=False)
    c["norm_eps"] = c.pop("rms_norm_eps")
    c["hidden_size"] = 32 * ((c["hidden_size"] + 31) // 32)
    if c["hidden_size"] % c["num_attention_heads"]:
        c.update(num_attention_heads=4, num_key_value_heads=r.choice([1, 2, 4]))
    c.update(conv_L_cache=r.choice([2, 3, 4]), conv_bias=False, block_auto_adjust_ff_dim=flip(r))
    if c["block_auto_adjust_ff_dim"]:
        c.update(block_multiple_of=r.choice([16, 32, 64]), block_ffn_dim_multiplier=r.choice([1.0, 1, 1.3]))
    c["layer_types"] = layer_types(r, c, "conv")
    return rope(r, c, kinds=("default", "linear"))


def lfm2_moe(r):
    c = experts(r, lfm2(r))
    for field in ("block_auto_adjust_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier"):
        c.pop(field, None)
    c.update(moe_intermediate_size=r.choice([16, 32]), num_dense_layers=r.randint(0, c["num_hidden_layers"]),
             norm_topk_prob=flip(r), use_expert_bias=flip(r), routed_scaling_factor=r.choice([1.0, 2.5]))
    return c


def delta_sizes(r, c):
    keys = r.choice([1, 2, 4])
    c.update(linear_num_key_heads=keys, linear_num_value_heads=keys * r.choice([1, 2]),
             linear_key_head_dim=r.choice([16, 32, 48, 64]), linear_value_head_dim=r.choice([16, 32, 48, 64, 80]),
             linear_conv_kernel_dim=r.choice([2, 4]))
    if c["linear_num_value_heads"] * c["linear_value_head_dim"] % 32:
        c["linear_value_head_dim"] = 32
    c["layer_types"] = layer_types(r, c, "linear_attention")
    return c


def qwen3_5_text(r):
    c = sizes(r, head_dims=(16, 32, 64))
    c["head_dim"] = head_dim_of(c)
    share = r.choice([0.25, 0.5, 1.0])
    c["rope_parameters"] = {"rope_type": "default", "rope_theta": r.choice([10000000.0, 10000]),
                            "partial_rotary_factor": share, "mrope_interleaved": True}
    n = int(c["head_dim"] * share) // 2
    c["rope_parameters"]["mrope_section"] = [n - n // 3 * 2, n // 3, n // 3]
    return attention_bias(r, delta_sizes(r, c))


def qwen3_5_moe_text(r):
    c = experts(r, qwen3_5_text(r))
    c.update(moe_intermediate_size=r.choice([16, 32]), shared_expert_intermediate_size=r.choice([16, 32, 64]))
    c.pop("intermediate_size")
    return c


def qwen3_next(r):
    c = sizes(r, head_dims=(16, 32, 64))
    c["head_dim"] = head_dim_of(c)
    c = experts(r, delta_sizes(r, c))
    c.update(moe_intermediate_size=r.choice([16, 32]), shared_expert_intermediate_size=r.choice([16, 32, 64]),
             norm_topk_prob=flip(r))
    return rope(r, attention_bias(r, c), kinds=("default", "linear"), partial=[0.25, 0.5, 1.0])


def scan_sizes(r, c, words):
    heads = r.choice([2, 4, 6, 8])
    groups = r.choice(divisors(heads))
    c.update(zip(words, (heads, r.choice([16, 32, 48, 64, 80]), groups, r.choice([16, 32, 64]), r.choice([2, 4]))))
    return c


def granitemoehybrid(r):
    c = granite_scales(r, attention_bias(r, rope(r, sizes(r, head_dims=(8, 16, 32), own_head_dim=False),
                                                 kinds=("default", "linear"))))
    scan_sizes(r, c, ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv"))
    heads = c["num_attention_heads"]
    c["hidden_size"] = hidden = r.choice([32, 64, 96]) if heads not in (3, 6) else 96
    c["mamba_expand"] = 2
    if 2 * hidden % (16 * c["mamba_n_heads"]):
        c.update(mamba_n_heads=2, mamba_n_groups=r.choice([1, 2]))
    c["mamba_d_head"] = r.choice(["auto", 2 * hidden // c["mamba_n_heads"]])
    c.update(mamba_conv_bias=flip(r, 0.8), shared_intermediate_size=r.choice([16, 32, 64]),
             position_embedding_type=r.choice(["rope", "nope", None]),
             layer_types=[r.choice(["mamba", "attention"]) for _ in range(c["num_hidden_layers"])])
    c["layer_types"][r.randrange(len(c["layer_types"]))] = "attention"
    experts(r, c, "num_local_experts", 6)
    if flip(r, 0.3):
        c.update(num_local_experts=0, num_experts_per_tok=0)
    if flip(r, 0.4):
        c["time_step_limit"] = r.choice([[0.0, 2.0], [0.05, 0.5], [0.01, 100.0]])
    return c


def nemotron_h(r):
    c = sizes(r, head_dims=(16, 32, 64))
    c["head_dim"] = head_dim_of(c)
    c.pop("rms_norm_eps")
    scan_sizes(r, c, ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel"))
    letters = [r.choice("MM*-E") for _ in range(r.randint(2, 6))]
    letters[r.randrange(len(letters))] = "*"
    c.update(layer_norm_epsilon=r.choice(EPS), mlp_hidden_act="relu2", use_conv_bias=flip(r, 0.8),
             attention_bias=flip(r, 0.3), mlp_bias=flip(r, 0.3) and "E" not in letters,
             time_step_min=r.choice([0.001, 0.1]), hybrid_override_pattern="".join(letters),
             num_hidden_layers=len(letters), n_routed_experts=r.randint(2, 6), n_shared_experts=1,
             moe_intermediate_size=r.choice([16, 32]), moe_shared_expert_intermediate_size=r.choice([16, 32]),
             num_experts_per_tok=2, routed_scaling_factor=r.choice([1.0, 2.5]), norm_topk_prob=flip(r))
    if flip(r):
        words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
        c["layers_block_type"] = [words[x] for x in c.pop("hybrid_override_pattern")]
    return c


# ---- mixtures of experts

def mixtral(r):
    c = experts(r, rope(r, sizes(r)), "num_local_experts")
    c["sliding_window"] = r.choice(WINDOWS + [None, None])
    return c


def qwen3_moe(r):
    c = experts(r, some_window(r, attention_bias(r, rope(r, sizes(r)))))
    c.update(moe_intermediate_size=r.choice([16, 32, 48]), norm_topk_prob=flip(r))
    return c


def qwen2_moe(r):
    c = experts(r, some_window(r, rope(r, sizes(r, own_head_dim=False))))
    if not c.get("use_sliding_window"):
        c.pop("layer_types", None)  # the class then has a window of 0 for those of its layers, and computes no numbers
    c.update(moe_intermediate_size=r.choice([16, 32]), shared_expert_intermediate_size=r.choice([16, 32, 64]),
             norm_topk_prob=flip(r), qkv_bias=flip(r))
    return c


def olmoe(r):
    c = experts(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False))))
    c["norm_topk_prob"] = flip(r)
    return c


def granitemoe(r):
    return experts(r, granite_scales(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False)))), "num_local_experts")


def gpt_oss(r):
    c = experts(r, maybe_types(r, rope(r, sizes(r), kinds=("default", "yarn", "yarn"))), "num_local_experts")
    c["sliding_window"] = c["sliding_window"] or 8
    c.update(head_dim=head_dim_of(c), attention_bias=True)
    return c


def sigmoid_groups(r, c, count="n_routed_experts"):
    groups = r.choice([1, 1, 2, 4])
    c.update({count: groups * r.choice([2, 3]), "n_group": groups, "topk_group": r.randint(1, groups),
              "n_shared_experts": r.choice([1, 2]), "routed_scaling_factor": r.choice([1.0, 1, 1.8, 2.5]),
              "norm_topk_prob": flip(r), "moe_intermediate_size": r.choice([16, 32]),
              "first_k_dense_replace": r.randint(0, c["num_hidden_layers"])})
    c["num_experts_per_tok"] = r.randint(1, c[count] // groups * c["topk_group"])
    return c


def glm4_moe(r):
    c = sizes(r, head_dims=(16, 32, 64, 80))
    c["head_dim"] = head_dim_of(c)
    c = sigmoid_groups(r, attention_bias(r, c, "use_qk_norm"))
    return rope(r, c, kinds=("default", "linear"), partial=[0.5, 0.25])


def dots1(r):
    c = sigmoid_groups(r, attention_bias(r, rope(r, sizes(r))))
    c["sliding_window"] = r.choice(WINDOWS + [None])
    c["max_window_layers"] = r.randint(0, c["num_hidden_layers"])
    if flip(r):
        c["layer_types"] = layer_types(r, c)
    return c


def solar_open(r):
    c = sigmoid_groups(r, attention_bias(r, sizes(r, head_dims=(16, 32, 64, 80))))
    c["head_dim"] = head_dim_of(c)
    c.pop("first_k_dense_replace")
    return rope(r, c, kinds=("default", "linear", "yarn"), partial=[1.0, 0.5])


def minimax_m2(r):
    c = sizes(r, head_dims=(16, 32, 64, 80))
    c["head_dim"] = head_dim_of(c)
    c = experts(r, rope(r, c, kinds=("default", "linear"), partial=[1.0, 0.5]), "num_local_experts")
    return c


def exaone_moe(r):
    c = sigmoid_groups(r, exaone4(r), "num_experts")
    c["num_shared_experts"] = c.pop("n_shared_experts")
    return c


def hunyuan_v1_moe(r):
    c = experts(r, hunyuan_v1_dense(r))
    used = c.pop("num_experts_per_tok")
    c["moe_topk"] = [used] * c["num_hidden_layers"] if flip(r) else used
    return c


def hy_v3(r):
    c = sizes(r)
    c["head_dim"] = head_dim_of(c)
    c = experts(r, rope(r, attention_bias(r, c, "mlp_bias")))
    dense = r.randint(0, c["num_hidden_layers"])
    c.update(num_shared_experts=r.choice([1, 2]), moe_intermediate_size=r.choice([16, 32]),
             router_scaling_factor=r.choice([1.0, 1, 2.826]),
             mlp_layer_types=["dense"] * dense + ["sparse"] * (c["num_hidden_layers"] - dense))
    return c


def latent(r, kinds=("default", "yarn", "yarn")):
    c = sizes(r, own_head_dim=False)
    c["num_key_value_heads"] = c["num_attention_heads"]
    c.update(kv_lora_rank=r.choice([32, 64]), q_lora_rank=r.choice([None, 16, 32, 48]),
             qk_nope_head_dim=r.choice([8, 16, 24, 32]), qk_rope_head_dim=r.choice([8, 16]),
             v_head_dim=r.choice([16, 32]))
    if c["num_attention_heads"] * c["v_head_dim"] % 32:
        c["v_head_dim"] = 32
    return rope(r, sigmoid_groups(r, c), kinds=kinds)


def deepseek_v3(r):
    c = latent(r)
    if flip(r):
        c["rope_interleave"] = flip(r)
    return c


def deepseek_v2(r):
    c = latent(r)
    c["topk_method"] = r.choice(["greedy", "group_limited_greedy"])
    c.pop("norm_topk_prob")
    return c


def glm4_moe_lite(r):
    c = latent(r)
    if flip(r):
        dense = c.pop("first_k_dense_replace")
        c["mlp_layer_types"] = ["dense"] * dense + ["sparse"] * (c["num_hidden_layers"] - dense)
    return c


def mistral4(r):
    c = latent(r)
    c.update(n_group=1, topk_group=1, first_k_dense_replace=0)
    c.pop("rope_theta", None)
    c.pop("rope_scaling", None)
    c["rope_parameters"] = dict(scaling(r, c, "yarn"), rope_theta=10000.0, llama_4_scaling_beta=r.choice([0, 0.1]))
    c["rope_parameters"]["original_max_position_embeddings"] = r.choice([16, 64])
    return c


def flex_olmo(r):
    c = experts(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False))))
    if flip(r):
        c["norm_topk_prob"] = flip(r)
    return c


def granite_swa(r):
    c = granite_scales(r, attention_bias(r, rope(r, sizes(r, own_head_dim=False)), "mlp_bias"))
    c["sliding_window"] = r.choice(WINDOWS)
    if flip(r, 0.7):
        c["layer_types"] = layer_types(r, c)
    if flip(r, 0.7):
        bases = r.choice([[10000.0], [10000.0, 0], [500.0, 100000.0], [500.0, 100000.0, 0]])
        c["layer_rope_theta"] = [r.choice(bases) for _ in range(c["num_hidden_layers"])]
    return c


def afmoe(r):
    c = sizes(r)
    c["head_dim"] = head_dim_of(c)
    c = experts(r, rope(r, attention_bias(r, c)))
    c.update(num_shared_experts=r.choice([1, 2]), moe_intermediate_size=r.choice([16, 32]),
             num_dense_layers=r.randint(0, c["num_hidden_layers"]), sliding_window=r.choice(WINDOWS))
    for field, values in (("route_scale", [1.0, 1, 2.826, 0.5]), ("mup_enabled", [True, False]),
                          ("global_attn_every_n_layers", [1, 2, 3])):
        if flip(r, 0.7):
            c[field] = r.choice(values)
    if flip(r):
        c["layer_types"] = layer_types(r, c)
    return c


def laguna(r):
    c = experts(r, attention_bias(r, sizes(r, own_head_dim=False)))
    n, kv = c["num_hidden_layers"], r.choice([1, 2])
    c.update(head_dim=r.choice([32, 64]), num_key_value_heads=kv, num_attention_heads=kv * r.choice([1, 2, 3]),
             moe_intermediate_size=r.choice([16, 32]), shared_expert_intermediate_size=r.choice([16, 48]),
             sliding_window=r.choice(WINDOWS))
    if flip(r, 0.7):
        c["num_attention_heads_per_layer"] = [kv * r.choice([1, 2, 4]) for _ in range(n)]
    if flip(r, 0.7):
        c["layer_types"] = layer_types(r, c)
    if flip(r):
        dense = r.randint(0, n)
        c["mlp_layer_types"] = ["dense"] * dense + ["sparse"] * (n - dense)
    if flip(r):
        c["moe_routed_scaling_factor"] = r.choice([1.0, 2.5, 0.5])
    if flip(r, 0.7):
        c["rope_parameters"] = {kind: {"rope_type": "default", "rope_theta": r.choice([300.0, 10000.0])}
                                for kind in ("full_attention", "sliding_attention")}
        for of in c["rope_parameters"].values():
            if flip(r):
                of["partial_rotary_factor"] = r.choice([0.25, 0.5, 1.0])
    return c


def youtu(r):
    c = latent(r, kinds=("default", "default", "yarn"))
    for field in ("n_routed_experts", "n_group", "topk_group", "n_shared_experts", "routed_scaling_factor",
                  "norm_topk_prob", "moe_intermediate_size", "first_k_dense_replace", "num_experts_per_tok"):
        c.pop(field)
    if flip(r):
        c["rope_interleave"] = flip(r)
    return c


def minicpm3(r):
    c = youtu(r)
    c.pop("rope_interleave", None)
    if flip(r, 0.3) and c["hidden_size"] // c["num_attention_heads"] in (16, 32):
        c.pop("v_head_dim")
    for field, values in (("scale_emb", [1, 6, 12, 0.5]), ("scale_depth", [1.4, 1, 0.3, None]),
                          ("dim_model_base", [32, 64, 256, None])):
        if flip(r, 0.8):
            c[field] = r.choice(values)
    return c


def ernie4_5_moe(r):
    c = sizes(r, own_head_dim=False)
    c.update(moe_num_experts=r.randint(2, 8), moe_num_shared_experts=r.choice([0, 1, 2]),
             moe_intermediate_size=r.choice([16, 32]), moe_layer_start_index=r.randint(0, c["num_hidden_layers"]))
    c["moe_k"] = r.randint(1, min(4, c["moe_num_experts"]))
    for field, values in (("moe_layer_end_index", [-1, c["num_hidden_layers"] - 1, 0]),
                          ("moe_layer_interval", [1, 1, 2]), ("moe_norm_min", [1e-12])):
        if flip(r, 0.7):
            c[field] = r.choice(values)
    return rope(r, c, kinds=("default", "linear"))


def bitnet(r):
    return attention_bias(r, dict(rope(r, sizes(r, own_head_dim=False)), hidden_act="relu2"))


def bamba(r):
    c = attention_bias(r, sizes(r, head_dims=(8, 16, 32), own_head_dim=False), "mlp_bias")
    scan_sizes(r, c, ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv"))
    c["hidden_size"] = hidden = r.choice([32, 64, 96]) if c["num_attention_heads"] not in (3, 6) else 96
    if 2 * hidden % (16 * c["mamba_n_heads"]):
        c.update(mamba_n_heads=2, mamba_n_groups=r.choice([1, 2]))
    c["mamba_d_head"] = r.choice(["auto", 2 * hidden // c["mamba_n_heads"]])
    c["mamba_conv_bias"] = flip(r, 0.8)
    c["attn_layer_indices"] = [0] + [i for i in range(1, c["num_hidden_layers"]) if flip(r, 0.3)]
    if c["num_hidden_layers"] > 1 and flip(r):
        c["attn_layer_indices"][0] = c["num_hidden_layers"] - 1
    if flip(r, 0.4):
        c["time_step_limit"] = r.choice([[0.0, 0.5], [0.1, 2.0]])
    c["rope_parameters"] = {"rope_type": "default", "rope_theta": r.choice([10000.0, 500.0]),
                            "partial_rotary_factor": 0.5}
    return c


def cohere2_moe(r):
    c = sizes(r)
    c["head_dim"] = head_dim_of(c)
    eps = c.pop("rms_norm_eps")
    c.update({r.choice(["rms_norm_eps", "layer_norm_eps"]): eps, "sliding_window": r.choice(WINDOWS)})
    c = experts(r, rope(r, attention_bias(r, c), kinds=("default", "linear")))
    for field, values in (("num_shared_experts", [0, 1, 2]), ("shared_expert_combination_strategy", ["average", "sum"]),
                          ("expert_selection_fn", ["softmax", "sigmoid"]), ("norm_topk_prob", [True, False]),
                          ("prefix_dense_sliding_window_pattern", [1, 2, 3]), ("sliding_window_pattern", [2, 3, 4]),
                          ("prefix_dense_intermediate_size", [None, 48, 96]), ("logit_scale", [0.25, 1, 0.0625])):
        if flip(r, 0.7):
            c[field] = r.choice(values)
    layers, dense = c["num_hidden_layers"], r.choice([0, 0, 1, 2])
    if flip(r):
        c["layer_types"] = layer_types(r, c)
        c["mlp_layer_types"] = ["dense" if i < dense else "sparse" for i in range(layers)]
    elif dense:
        c["first_k_dense_replace"] = min(dense, layers)
    return c


def apertus(r):
    c = attention_bias(r, sizes(r, own_head_dim=False))
    c["rope_parameters"] = dict(scaling(r, c, r.choice(["default", "linear", "llama3"])),
                                rope_theta=r.choice([10000.0, 500000.0, 100.0]))
    return dict(c, hidden_act="xielu")


def phimoe(r):
    c = attention_bias(r, sizes(r, own_head_dim=False), "lm_head_bias")
    c.update(num_local_experts=r.randint(2, 8), num_experts_per_tok=2, router_jitter_noise=r.choice([0.01, 0.1, 0.4]),
             sliding_window=r.choice([None, 8, 31]))
    c["lm_head_bias"] = c.get("lm_head_bias", False) and not c["tie_word_embeddings"]
    return rope(r, c, kinds=("default",))


def qwen3_vl_moe_text(r):
    c = experts(r, rope(r, attention_bias(r, sizes(r)), kinds=("default",)))
    c["moe_intermediate_size"] = r.choice([16, 32, c["hidden_size"] // 2])
    if flip(r, 0.4):
        c["norm_topk_prob"] = flip(r)
    return c


def falcon_h1(r):
    c = attention_bias(r, sizes(r, head_dims=(8, 16, 32), own_head_dim=False), "mlp_bias")
    scan_sizes(r, c, ("mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv"))
    values = c["mamba_n_heads"] * c["mamba_d_head"]
    while values % 32 or values // c["mamba_n_groups"] % 16:
        c["mamba_d_head"] = r.choice([16, 32, 64])
        values = c["mamba_n_heads"] * c["mamba_d_head"]
    c.update(mamba_d_ssm=values, mamba_conv_bias=flip(r, 0.8), mamba_rms_norm=flip(r), mamba_norm_before_gate=flip(r))
    for field in ("key_multiplier", "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
                  "embedding_multiplier", "lm_head_multiplier"):
        if flip(r, 0.7):
            c[field] = r.choice([1.0, 0.5, 0.3, 1.7])
    if not c.get("attention_bias") and flip(r):
        c["attention_in_multiplier"] = r.choice([1.0, 0.6, 1.4])
    for field, n in (("ssm_multipliers", 5), ("mlp_multipliers", 2)):
        if flip(r, 0.7):
            c[field] = [r.choice([1.0, 0.5, 0.7, 1.3]) for _ in range(n)]
    if flip(r, 0.4):
        c["time_step_limit"] = r.choice([[0.0, 0.5], [0.1, 2.0]])
    return rope(r, c, kinds=("default", "linear"))


def mamba2(r):
    c = sizes(r, own_head_dim=False)
    for field in ("intermediate_size", "num_attention_heads", "num_key_value_heads", "max_position_embeddings"):
        c.pop(field)
    scan_sizes(r, c, ("num_heads", "head_dim", "n_groups", "state_size", "conv_kernel"))
    c["hidden_size"], c["expand"] = r.choice([32, 64, 96]), 2
    if 2 * c["hidden_size"] % (16 * c["num_heads"]) or 2 * c["hidden_size"] // c["n_groups"] % 16:
        c.update(num_heads=2, n_groups=r.choice([1, 2]))
    c["head_dim"] = 2 * c["hidden_size"] // c["num_heads"]
    c.update(layer_norm_epsilon=c.pop("rms_norm_eps"), use_conv_bias=flip(r, 0.8))
    if flip(r, 0.4):
        c["time_step_limit"] = r.choice([[0.0, 0.5], [0.1, 2.0]])
    return c


def mamba(r):
    c = sizes(r, own_head_dim=False)
    for field in ("intermediate_size", "num_attention_heads", "num_key_value_heads", "max_position_embeddings"):
        c.pop(field)
    c.update(hidden_size=r.choice([32, 64, 96]), layer_norm_epsilon=c.pop("rms_norm_eps"), expand=r.choice([1, 2, 3]),
             state_size=r.choice([4, 8, 16, 20, 64]), conv_kernel=r.randint(2, 4), use_conv_bias=flip(r, 0.8))
    if flip(r):
        c["time_step_rank"] = r.choice([1, 3, 8, "auto"])
    return c


def falcon_mamba(r):
    return dict(mamba(r), mixer_rms_eps=r.choice(EPS))


def jamba(r):
    c = sizes(r, own_head_dim=False)
    c["num_attention_heads"], c["hidden_size"] = 2, r.choice([32, 64, 96])
    c["num_key_value_heads"] = r.choice([1, 2])
    c.update(num_experts=r.choice([1, 4, 6]), num_experts_per_tok=r.choice([1, 2]), expert_layer_period=r.randint(1, 3),
             attn_layer_period=r.randint(1, 3), mamba_d_state=r.choice([4, 8, 16, 20]), mamba_d_conv=r.randint(2, 4),
             mamba_expand=r.choice([1, 2, 3]), mamba_conv_bias=flip(r, 0.8))
    c.update(expert_layer_offset=r.randrange(c["expert_layer_period"]),
             attn_layer_offset=r.randrange(min(c["attn_layer_period"], c["num_hidden_layers"])),  # one attends
             mamba_dt_rank=r.choice([1, 3, 8, "auto"]))
    c["num_experts_per_tok"] = min(c["num_experts_per_tok"], c["num_experts"])
    return c


def olmo_hybrid(r):
    c = attention_bias(r, rope(r, sizes(r, own_head_dim=False), kinds=("default", "linear")))
    heads = r.choice([2, 4])
    c.update(linear_num_key_heads=heads, linear_num_value_heads=heads * r.choice([1, 2]),
             linear_key_head_dim=r.choice([16, 32, 48, 96]), linear_value_head_dim=r.choice([16, 32, 64]),
             linear_conv_kernel_dim=r.choice([2, 4]), linear_allow_neg_eigval=flip(r))
    if flip(r, 0.7) and c["num_hidden_layers"] > 1:
        n = c["num_hidden_layers"]
        c["layer_types"] = [r.choice(["full_attention", "linear_attention"]) for _ in range(n)]
        c["layer_types"][0], c["layer_types"][-1] = r.sample(["full_attention", "linear_attention"], 2)
    if flip(r, 0.3) and not c.get("rope_scaling"):
        c["rope_parameters"] = {"rope_type": "default", "rope_theta": None}
    return c


def llama4_text(r):
    c = attention_bias(r, rope(r, sizes(r), kinds=("default", "linear", "llama3")))
    n = c["num_hidden_layers"]
    c.update(num_local_experts=r.choice([1, 2, 4, 6]), num_experts_per_tok=1, intermediate_size=r.choice([16, 32, 48]),
             intermediate_size_mlp=r.choice([32, 64, 96]), attention_chunk_size=r.choice([1, 5, 16, 32, 64]),
             use_qk_norm=flip(r), floor_scale=r.choice([1, 8, 64]), attn_scale=r.choice([0.1, 0.5]),
             attn_temperature_tuning=flip(r, 0.7))
    if flip(r):
        c["no_rope_layers"] = [r.choice([0, 1]) for _ in range(n)]
    elif flip(r):
        c["no_rope_layer_interval"] = r.choice([2, 3])
    if flip(r):
        c["moe_layers"] = sorted(r.sample(range(n), r.randint(1, n)))
    else:
        c["interleave_moe_layer_step"] = r.randint(1, min(2, n))
    if flip(r):
        c["layer_types"] = [r.choice(["full_attention", "chunked_attention"]) for _ in range(n)]
    return c


FAMILIES = {f.__name__: f for f in (
    llama, mistral, qwen2, qwen3, ernie4_5, seed_oss, phi3, smollm3, granite, olmo2, olmo3, exaone4, glm4, arcee,
    hunyuan_v1_dense, ministral3, gemma, gemma2, gemma3_text, gemma4_text, cohere2, cohere, lfm2, lfm2_moe,
    qwen3_5_text, qwen3_5_moe_text, qwen3_next, granitemoehybrid, nemotron_h, mixtral, qwen3_moe, qwen2_moe, olmoe,
    granitemoe, gpt_oss, glm4_moe, deepseek_v3, deepseek_v2, glm4_moe_lite, mistral4, cwm, helium, dots1, solar_open,
    minimax_m2, exaone_moe, hunyuan_v1_moe, hy_v3, starcoder2, stablelm, nemotron, olmo, phi,
    gptj, gpt_neox, falcon, gpt_bigcode, opt, flex_olmo, granite_swa, afmoe, laguna, youtu, minicpm3,
    gpt2, bloom, mpt, ernie4_5_moe, bitnet, bamba, cohere2_moe,
    apertus, phimoe, qwen3_vl_moe_text, falcon_h1, mamba2,
    mamba, falcon_mamba, jamba, olmo_hybrid, llama4_text)}
