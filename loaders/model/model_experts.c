/* loaders/model/model_experts.c - what files say of a mixture of experts: how many there are, how wide, and how the
 * router chooses. For GGUF and config.json alike.
 *
 * Owns: the names of these keys and fields, and what a layer has instead of a dense feed-forward layer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "loaders/model/model_gguf_fields.h"

enum { MODEL_MAX_EXPERTS = 1024, MODEL_MAX_EXPERTS_USED = 32 };

bool model_layer_has_group(const struct model_spec *s, uint32_t layer, enum tensor_group group)
{
	const bool feeds = !s->one_part || model_layer_mixer(s, layer) == MIXER_NONE;

	switch (group) {
	case GROUP_PRE_NORM: return !s->one_part || !feeds;
	case GROUP_FFN_NORM: return feeds;
	case GROUP_GATE:
	case GROUP_MLP:
	case GROUP_MLP_BIAS: return feeds && (s->experts_beside || !model_layer_routes(s, layer));
	case GROUP_ROUTER:
	case GROUP_EXPERTS:
	case GROUP_ROUTER_BIAS:
	case GROUP_EXPERT_BIAS:
	case GROUP_BESIDE:
	case GROUP_SHARED:
	case GROUP_SHARED_ROUTER: return model_layer_routes(s, layer);
	default: return true;
	}
}

void model_no_experts(struct model_spec *s)
{
	s->ffn = s->shared_ffn ? s->shared_ffn : s->ffn;
	s->experts_used = s->expert_ffn = s->shared_ffn = 0;
}

void model_need_experts(struct model_file *f, const struct model_spec *s)
{
	enum model_need *need = f->needs.group;

	need[GROUP_ROUTER] = need[GROUP_EXPERTS] = NEED_ALWAYS;
	need[GROUP_BESIDE] = s->experts_beside ? NEED_ALWAYS : NEED_NOT;
	need[GROUP_ROUTER_BIAS] =
		(s->router_sigmoid && !(f->arch->routing & (ROUTING_AVERAGED | ROUTING_SCALED))) ||
				f->arch->routing & ROUTING_CHOICE_BIAS
			? NEED_ALWAYS
			: NEED_NOT;
	need[GROUP_SHARED] = s->shared_ffn ? NEED_ALWAYS : NEED_NOT;
	need[GROUP_SHARED_ROUTER] = s->shared_ffn && f->arch->routing & ROUTING_SHARED ? NEED_ALWAYS : NEED_NOT;
}

bool model_check_scaled(const struct model_spec *s, const char *label, struct error *err)
{
	return !s->experts_scaled || s->experts_used == 1 ||
	       error_set(err, ERROR_UNSUPPORTED,
	                 "%s: a token goes to %" PRIu32 " experts whose inputs are scaled, which is not supported, "
	                 "expected 1",
	                 label, s->experts_used);
}

void model_average(struct model_spec *s)
{
	if (!s->shared_ffn)
		return;
	s->shared_scale = model_scale_of(0.5f);
	s->router_scale = model_scale_of(0.5f * (s->router_scale.given ? s->router_scale.value : 1));
}

void model_one_group(struct model_spec *s)
{
	if (s->expert_groups == s->expert_groups_used || s->expert_groups <= 1)
		s->expert_groups = s->expert_groups_used = 0;
}

/* A number that must be what this architecture has anyway, or 0, which says nothing. */
static bool read_fixed(struct gguf_reader *r, const char *suffix, uint32_t expected)
{
	uint32_t value = expected;

	return gguf_get_u32(r, suffix, OPTIONAL, &value) &&
	       (value == expected || value == 0 ||
	        error_set(r->err, ERROR_UNSUPPORTED,
	                  "%s: key %s is %" PRIu32 ", which is not supported, expected %" PRIu32, r->g->path,
	                  gguf_key(r, suffix), value, expected));
}

static bool read_normed(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "expert_weights_norm"));

	if (kv && kv->type != GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not true or false", r->g->path, r->key);
	if (kv)
		r->m->spec.router_normed = gguf_item_int(kv, 0) != 0;
	return true;
}

/* Whether the first layer with experts has such a tensor. */
static bool has_tensor(const struct gguf_reader *r, const char *part)
{
	struct found_tensor t;
	char name[60];

	snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", r->m->spec.dense_layers, part);
	return model_find_tensor(r->m->file, name, &t);
}

enum { SOFTMAX = 1, SIGMOID = 2 }; /* expert_gating_func */

/* Families of one name whose routers differ: by a key, or by the tensor that those with a sigmoid have. */
static bool read_gating(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t gating = has_tensor(r, "exp_probs_b.bias") ? SIGMOID : SOFTMAX;

	const uint32_t usual = gating;
	if (!gguf_get_u32(r, "expert_gating_func", OPTIONAL, &gating))
		return false;
	gating = gating ? gating : usual;
	if (gating != SOFTMAX && gating != SIGMOID)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: key %s is %" PRIu32
		                 ", which is not supported, expected 1 (softmax) or 2 (sigmoid)",
		                 r->g->path, r->key, gating);
	s->router_sigmoid = gating == SIGMOID;
	return true;
}

static bool read_groups(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;

	if (!(r->row->routing & ROUTING_GROUPS))
		return read_fixed(r, "expert_group_count", 1) && read_fixed(r, "expert_group_used_count", 1);
	if (!gguf_get_u32(r, "expert_group_count", OPTIONAL, &s->expert_groups) ||
	    !gguf_get_u32(r, "expert_group_used_count", s->expert_groups > 1 ? REQUIRED : OPTIONAL,
	                  &s->expert_groups_used))
		return false;
	model_one_group(s);
	return true;
}

/* How many layers come before those with experts: where no key says it, those that have no router. */
static bool read_dense(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	static const char key[] = "leading_dense_block_count";

	if (gguf_find(r->g, gguf_key(r, key)))
		return gguf_get_u32(r, key, OPTIONAL, &s->dense_layers);
	while (s->experts && s->dense_layers < s->layers && !has_tensor(r, "ffn_gate_inp.weight") &&
	       has_tensor(r, "ffn_up.weight"))
		s->dense_layers++;
	return true;
}

/* Where a family has more than the number of experts. */
static bool read_shared(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t count = 0, width = 0;
	double scale = 0;

	if (!arch_word_in(r->row->keys, "expert_shared_count"))
		return true;
	if (!gguf_get_u32(r, "expert_shared_count", OPTIONAL, &count) ||
	    !gguf_get_u32(r, "expert_shared_feed_forward_length", OPTIONAL, &width) || !read_dense(r) ||
	    !gguf_get_f64(r, "expert_weights_scale", OPTIONAL, &scale) || !read_normed(r) ||
	    !(r->row->switches & SWITCH_LATENT || r->row->routing & ROUTING_AVERAGED
	              ? read_gating(r)
	              : read_fixed(r, "expert_gating_func", s->router_sigmoid ? SIGMOID : SOFTMAX)) ||
	    !read_groups(r) ||
	    !hparam_range(r->g->path, gguf_key(r, "expert_shared_count"), count, 0, MODEL_MAX_EXPERTS, r->err) ||
	    !hparam_range(r->g->path, gguf_key(r, "expert_feed_forward_length"), s->expert_ffn, 0, MODEL_MAX_WIDTH,
	                  r->err))
		return false;
	s->router_scale = (struct model_scale){ scale != 0, (float)scale }; /* a key of 0 means none */
	s->shared_ffn = width ? width : count * s->expert_ffn;
	if (r->row->routing & ROUTING_AVERAGED) {
		model_average(s);
		s->dense_rotates = true;
	}
	return true;
}

/* Llama 4's: each so many layers are mixtures, with a shared expert as wide as the others. */
static bool read_scaled(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t step = 0;

	if (!(r->row->routing & ROUTING_SCALED) || !s->experts)
		return true;
	if (!gguf_get_u32(r, "interleave_moe_layer_step", REQUIRED, &step))
		return false;
	s->experts_scaled = true;
	s->shared_ffn = s->expert_ffn;
	s->dense_layers = s->layers;
	for (uint32_t layer = 0; layer < s->layers && layer < MODEL_MAX_LAYERS; layer++)
		if (step && (layer + 1) % step == 0) {
			s->dense_layers = 0;
			if (!model_route_layer(r->m, layer, r->g->path, r->err))
				return false;
		}
	return model_check_scaled(s, r->g->path, r->err);
}

bool gguf_read_experts(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;

	if (!(r->row->routing & ROUTING) ||
	    (s->one_part && !s->layer_routes)) /* or there might be some, and are none */
		return true;
	s->router_normed = r->row->routing & ROUTING_NORMED;
	s->router_sigmoid = r->row->routing & ROUTING_SIGMOID;
	s->router_share_eps = r->row->routing & ROUTING_SHARE_EPS;
	s->expert_ffn = s->ffn;
	if (!gguf_get_u32(r, "expert_count", OPTIONAL, &s->experts) ||
	    !gguf_get_u32(r, "expert_used_count", OPTIONAL, &s->experts_used) ||
	    !gguf_get_u32(r, "expert_feed_forward_length", OPTIONAL, &s->expert_ffn) || !read_shared(r))
		return false;
	s->experts_beside = s->experts && r->row->routing & ROUTING_BESIDE;
	if (!read_scaled(r))
		return false;
	if (s->experts)
		model_need_experts(r->m->file, s);
	else if (r->row->routing & ROUTING_MAYBE)
		model_no_experts(s);
	r->m->file->experts_fused = has_tensor(r, "ffn_gate_up_exps.weight");
	s->ffn = s->ffn ? s->ffn : s->expert_ffn;
	return true;
}

/* Kernels find the best of a group, or with a sigmoid the best two. */
static bool check_groups(const struct model_spec *s, const char *label, struct error *err)
{
	const uint32_t groups = s->expert_groups, used = s->expert_groups_used, min = s->router_sigmoid ? 2 : 1;

	if (!groups)
		return true;
	if (!hparam_limit(label, "the number of groups of experts", groups, 2, MODEL_MAX_EXPERTS_USED, err) ||
	    !hparam_range(label, "the number of groups of a token's experts", used, 1, groups, err))
		return false;
	if (s->experts % groups || s->experts / groups < min || s->experts_used > used * (s->experts / groups))
		return error_set(err, ERROR_FORMAT,
		                 "%s: %" PRIu32 " experts are in %" PRIu32 " groups, of which %" PRIu32
		                 " have a token's %" PRIu32 " experts, expected equal groups of %" PRIu32
		                 " or more, and enough of them",
		                 label, s->experts, groups, used, s->experts_used, min);
	return true;
}

bool model_check_experts(const struct model *m, const char *label, struct error *err)
{
	const struct model_spec *s = &m->spec;

	if (!s->experts)
		return s->experts_used == 0 ||
		       error_set(err, ERROR_FORMAT,
		                 "%s: the number of experts is 0, but a token goes to %" PRIu32 " of them", label,
		                 s->experts_used);
	return hparam_limit(label, "the number of experts", s->experts, 1, MODEL_MAX_EXPERTS, err) &&
	       hparam_range(label, "the number of experts of a token", s->experts_used, 1, s->experts, err) &&
	       hparam_limit(label, "the number of experts of a token", s->experts_used, 1, MODEL_MAX_EXPERTS_USED,
	                    err) &&
	       hparam_range(label, "the experts' feed-forward size", s->expert_ffn, 1, MODEL_MAX_WIDTH, err) &&
	       hparam_range(label, "the shared expert's feed-forward size", s->shared_ffn, 0, MODEL_MAX_WIDTH, err) &&
	       hparam_range(label, "the number of layers without experts", s->dense_layers, 0, s->layers, err) &&
	       check_groups(s, label, err) &&
	       (s->router_scale.value == 0 ||
	        hparam_range(label, "the scale of the experts' shares", (double)s->router_scale.value, 1e-6, 1e6, err));
}

bool model_make_locations(struct model *m, const char *label, struct error *err)
{
	const struct model_spec *s = &m->spec;
	struct model_file *f = m->file;
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->layers; i++)
		n += model_layer_routes(s, i) ? s->experts * (f->needs.group[GROUP_GATE] == NEED_NOT ? 2u : 3u) : 0;
	if (!s->experts || f->format == MODEL_GGUF)
		return true;
	if (n > f->n_entries) /* or they are in tensors of their own, which need no locations */
		n = 0;
	f->locations = calloc(n ? n : 1, sizeof *f->locations);
	f->n_locations = n;
	return f->locations ||
	       error_set(err, ERROR_MEMORY, "%s: no memory for the locations of %" PRIu64 " matrices", label, n);
}
