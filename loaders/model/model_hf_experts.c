/* loaders/model/model_hf_experts.c - what config.json says of a mixture of experts. */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <string.h>

/* Layers with and without experts alternately are not done. */
static bool check_step(struct hf_reader *r)
{
	uint32_t step = 1;

	if (!hf_get_u32(r, r->root, "decoder_sparse_step", OPTIONAL, UINT32_MAX, &step))
		return false;
	return step == 1 || error_set(r->err, ERROR_UNSUPPORTED,
	                              "%s: decoder_sparse_step is %" PRIu32
	                              ", which is not supported, expected 1 (experts in every layer)",
	                              r->label, step);
}

static bool read_fixed(struct hf_reader *r, const char *name, uint32_t expected)
{
	uint32_t value = expected;

	return hf_get_u32(r, r->root, name, OPTIONAL, UINT32_MAX, &value) &&
	       (value == expected ||
	        error_set(r->err, ERROR_UNSUPPORTED, "%s: %s is %" PRIu32 ", which is not supported, expected %" PRIu32,
	                  r->label, name, value, expected));
}

static bool read_word(struct hf_reader *r, const char *name, const char *expected)
{
	const char *value = expected;

	return hf_get_string(r, r->root, name, &value) &&
	       (strcmp(value, expected) == 0 || hf_unsupported(r, name, value, expected));
}

/* How many layers come before those with experts: a number, or a list of all layers. */
static bool read_dense(struct hf_reader *r, const char *name)
{
	const json_t *types = hf_get(r, r->root, "mlp_layer_types");
	struct model_spec *s = &r->m->spec;
	uint32_t dense = 0;
	bool same = true;

	while (types && json_is_text(json_array_get(types, dense)) &&
	       strcmp(json_string_value(json_array_get(types, dense)), "dense") == 0)
		dense++;
	const bool by_types = arch_word_in(r->row->fields, name); /* of a class that does not know the number */
	if (r->row->routing & ROUTING_ALL)
		return true;
	s->dense_layers = types ? dense : by_types;
	if (!by_types && !hf_get_u32(r, r->root, name, OPTIONAL, MODEL_MAX_LAYERS, &s->dense_layers))
		return false;
	if (s->dense_layers > s->layers) /* which a class takes for all */
		s->dense_layers = s->layers;
	for (uint32_t i = dense; types && i < s->layers; i++)
		same = same && json_is_text(json_array_get(types, i)) &&
		       strcmp(json_string_value(json_array_get(types, i)), "sparse") == 0;
	return !types || (same && dense == s->dense_layers && json_array_size(types) == s->layers) ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: mlp_layer_types is not \"dense\" for the first %" PRIu32
	                 " layers and \"sparse\" for the others of %" PRIu32,
	                 r->label, s->dense_layers, s->layers);
}

/* What latent attention's classes have that is not done otherwise. */
static bool check_latent(struct hf_reader *r)
{
	const bool sigmoid = r->row->routing & ROUTING_SIGMOID;

	return read_fixed(r, "moe_layer_freq", 1) && read_word(r, "scoring_func", sigmoid ? "sigmoid" : "softmax");
}

/* "greedy" passes over the groups that a configuration names. */
static bool read_groups(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const char *method = s->router_sigmoid ? "noaux_tc" : "greedy";

	if (!(r->row->routing & ROUTING_GROUPS))
		return read_fixed(r, "n_group", 1) && read_fixed(r, "topk_group", 1);
	if (!s->router_sigmoid && !hf_get_string(r, r->root, "topk_method", &method))
		return false;
	if (!hf_get_u32(r, r->root, "n_group", OPTIONAL, UINT32_MAX, &s->expert_groups) ||
	    !hf_get_u32(r, r->root, "topk_group", s->expert_groups > 1 ? REQUIRED : OPTIONAL, UINT32_MAX,
	                &s->expert_groups_used))
		return false;
	if (strcmp(method, "greedy") == 0)
		s->expert_groups = 0;
	if (s->expert_groups && hf_get(r, r->root, "topk_group") && s->expert_groups_used == 0)
		return error_set(r->err, ERROR_FORMAT, "%s: topk_group is 0, expected at least 1", r->label);
	model_one_group(s);
	return read_word(r, "topk_method",
	                 strcmp(method, "greedy") == 0 ? method
	                 : s->router_sigmoid           ? "noaux_tc"
	                                               : "group_limited_greedy");
}

/* What the router's shares are multiplied by, and the expert of all tokens. */
static bool read_shared(struct hf_reader *r)
{
	const bool latent = r->row->switches & SWITCH_LATENT;
	struct model_spec *s = &r->m->spec;
	const bool behind_convolutions = r->row->recurrent == MIXER_CONV;
	uint32_t count = 0, width = 0;
	double scale = 1;

	if (latent && !check_latent(r))
		return false;
	if ((r->row->routing & (ROUTING_SIGMOID | ROUTING_COUNTED | ROUTING_CHOICE_BIAS) || latent) &&
	    (!hf_get_u32(r, r->root, "n_shared_experts", OPTIONAL, MODEL_MAX_HEADS, &count) ||
	     !read_dense(r, behind_convolutions ? "num_dense_layers" : "first_k_dense_replace") ||
	     !hf_get_f64(r, r->root, "routed_scaling_factor", &scale) || !read_groups(r)))
		return false;
	if (r->row->routing & (ROUTING_SHARED | ROUTING_SHARED_WIDE) &&
	    !hf_get_u32(r, r->root, "shared_expert_intermediate_size", REQUIRED, MODEL_MAX_WIDTH, &width))
		return false;
	if (r->row->recurrent == MIXER_SCAN &&
	    !hf_get_u32(r, r->root, s->one_part ? "moe_shared_expert_intermediate_size" : "shared_intermediate_size",
	                REQUIRED, MODEL_MAX_WIDTH, &width))
		return false;
	s->router_scale = model_scale_of((float)scale);
	s->shared_ffn = width || s->one_part ? width : count * s->expert_ffn;
	return true;
}

/* Whether something is added to what the router says, for the choice. */
static bool read_router_bias(struct hf_reader *r)
{
	bool bias = true;

	if (r->row->recurrent != MIXER_CONV)
		return true;
	if (!hf_get_bool(r, r->root, "use_expert_bias", &bias))
		return false;
	r->m->file->needs.group[GROUP_ROUTER_BIAS] = bias ? NEED_ALWAYS : NEED_NOT;
	return true;
}

/* Whether there are experts at all, where a family has them beside a feed-forward layer. */
static bool read_beside(struct hf_reader *r, bool *none)
{
	bool *beside = &r->m->spec.experts_beside;

	*none = !(r->row->routing & ROUTING) || r->row->routing & ROUTING_GGUF ||
	        (r->m->spec.one_part && !r->m->spec.layer_routes);
	if (!(r->row->routing & ROUTING_BESIDE))
		return true;
	if (!hf_get_bool(r, r->root, "enable_moe_block", beside))
		return false;
	*none = !*beside;
	return true;
}

/* ERNIE's: every so many layers from one to another have experts. */
static bool read_spread(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *end = hf_get(r, r->root, "moe_layer_end_index");
	uint32_t interval = 1, last = s->layers - 1;
	double min = 0;

	if (!(r->row->routing & ROUTING_CHOICE_BIAS))
		return true;
	if (!hf_get_u32(r, r->root, "moe_layer_interval", OPTIONAL, UINT32_MAX, &interval) ||
	    !hparam_range(r->label, "moe_layer_interval", interval, 1, UINT32_MAX, r->err) ||
	    (end && !(json_is_integer(end) && json_integer_value(end) == -1) &&
	     !hf_get_u32(r, r->root, "moe_layer_end_index", OPTIONAL, UINT32_MAX, &last)) ||
	    !hf_get_f64(r, r->root, "moe_norm_min", &min) ||
	    !hparam_range(r->label, "moe_norm_min", min, 0, 1e-6, r->err))
		return false;
	for (uint32_t i = s->dense_layers; i < s->layers; i++)
		if (i <= last && (i + 1) % interval == 0 && !model_route_layer(r->m, i, r->label, r->err))
			return false;
	if (!s->layer_routes)
		s->dense_layers = s->layers;
	return true;
}

/* Cohere's: what the router is, how its result and that of the shared expert come together, and how wide layers
 * without experts are. */
static bool read_averaged(struct hf_reader *r)
{
	const char *router = "softmax", *way = "average";
	struct model_spec *s = &r->m->spec;
	uint32_t pattern = 1;

	if (!(r->row->routing & ROUTING_AVERAGED))
		return true;
	if (!hf_get_string(r, r->root, "expert_selection_fn", &router) ||
	    !hf_get_string(r, r->root, "shared_expert_combination_strategy", &way) ||
	    !hf_get_u32(r, r->root, "prefix_dense_sliding_window_pattern", OPTIONAL, UINT32_MAX, &pattern) ||
	    !hf_get_u32(r, r->root, "prefix_dense_intermediate_size", OPTIONAL, MODEL_MAX_WIDTH, &s->ffn))
		return false;
	s->router_sigmoid = strcmp(router, "sigmoid") == 0;
	if (!s->router_sigmoid && strcmp(router, "softmax") != 0)
		return hf_unsupported(r, "expert_selection_fn", router, "softmax or sigmoid");
	if (strcmp(way, "average") != 0 && strcmp(way, "sum") != 0)
		return hf_unsupported(r, "shared_expert_combination_strategy", way, "average or sum");
	if (strcmp(way, "average") == 0)
		model_average(s);
	s->router_normed = true; /* of a softmax, whatever the file says */
	s->dense_rotates = pattern == 1;
	return !s->router_sigmoid || hf_get_bool_or_none(r, "norm_topk_prob", &s->router_normed);
}

/* Llama 4's: which layers are mixtures, and how wide the others are. */
static bool read_scaled(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *list = hf_get(r, r->root, "moe_layers"), *one;
	uint32_t step = 1, routes = 0;
	size_t i;

	if (!(r->row->routing & ROUTING_SCALED))
		return true;
	s->experts_scaled = true;
	s->router_sigmoid = true;
	s->shared_ffn = s->expert_ffn;
	if (list && !json_is_array(list))
		return hf_wrong_kind(r, "moe_layers", list, "an array");
	if (!hf_get_u32(r, r->root, "interleave_moe_layer_step", OPTIONAL, UINT32_MAX, &step) ||
	    !hf_get_u32(r, r->root, "intermediate_size_mlp", REQUIRED, MODEL_MAX_WIDTH, &s->ffn) ||
	    !hparam_range(r->label, "interleave_moe_layer_step", step, 1, UINT32_MAX, r->err))
		return false;
	json_array_foreach(list, i, one)
	{
		if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) >= s->layers)
			return hf_wrong_kind(r, "an element of moe_layers", one, "the number of a layer");
		if (!model_route_layer(r->m, (uint32_t)json_integer_value(one), r->label, r->err))
			return false;
	}
	for (uint32_t layer = 0; layer < s->layers; layer++) {
		if (!list && (layer + 1) % step == 0 && !model_route_layer(r->m, layer, r->label, r->err))
			return false;
		routes += s->layer_routes && s->layer_routes[layer];
	}
	s->dense_layers = routes ? 0 : s->layers;
	return model_check_scaled(s, r->label, r->err);
}

/* Phi 3.5's: shares among experts that are nearer the best than twice the noise they were trained with. */
static bool read_near(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double noise = 0.01;

	if (!(r->row->routing & ROUTING_NEAR))
		return true;
	if (!hf_get_f64(r, r->root, "router_jitter_noise", &noise) ||
	    !hparam_range(r->label, "router_jitter_noise", noise, 1e-6, 1, r->err))
		return false;
	s->router_near = (float)(2 * noise);
	return s->experts_used == 2 ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: num_experts_per_tok is %" PRIu32 ", which is not supported, expected 2", r->label,
	                 s->experts_used);
}

bool hf_read_experts(struct hf_reader *r)
{
	static const char *const counts[] = { "num_experts", "num_local_experts", "n_routed_experts" };
	struct model_spec *s = &r->m->spec;
	const uint32_t routing = r->row->routing;
	const char *used = routing & ROUTING_BESIDE ? "top_k_experts" : "num_experts_per_tok";
	bool none;

	if (!read_beside(r, &none) || none)
		return none;
	s->router_sigmoid = routing & ROUTING_SIGMOID;
	s->router_normed = routing & ROUTING_HF_NORMED;
	s->router_share_eps = routing & ROUTING_SHARE_EPS;
	s->expert_ffn = s->ffn;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) { /* some say it by two names */
		uint32_t n = s->experts;
		if (r->row->counts && !arch_word_in(r->row->counts, counts[i]))
			continue;
		if (!hf_get_u32(r, r->root, counts[i], OPTIONAL, UINT32_MAX, &n))
			return false;
		if (s->experts && n != s->experts)
			return error_set(r->err, ERROR_FORMAT, "%s: %s is %" PRIu32 ", and another field says %" PRIu32,
			                 r->label, counts[i], n, s->experts);
		s->experts = n;
	}
	if (!s->experts && r->row->switches & SWITCH_LATENT)
		return true;
	if (!hf_get_u32(r, r->root, used, REQUIRED, UINT32_MAX, &s->experts_used) ||
	    !hf_get_u32(r, r->root, "moe_intermediate_size", OPTIONAL, MODEL_MAX_WIDTH, &s->expert_ffn) ||
	    !check_step(r) ||
	    (routing & ROUTING_STATED && !hf_get_bool_or_none(r, "norm_topk_prob", &s->router_normed)) ||
	    !read_shared(r) || !read_spread(r) || !read_averaged(r) || !read_scaled(r))
		return false;
	if (!s->experts && routing & (ROUTING_MAYBE | ROUTING_OR_DENSE)) {
		s->shared_ffn = routing & ROUTING_MAYBE ? s->shared_ffn : 0;
		model_no_experts(s);
		return true;
	}
	if (!s->experts)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the number of experts is 0 (num_experts), expected at least 1", r->label);
	model_need_experts(r->m->file, s);
	s->ffn = s->ffn ? s->ffn : s->expert_ffn;
	return read_near(r) && read_router_bias(r);
}
