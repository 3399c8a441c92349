/* loaders/model/model_hf_channel.c - what config.json says of layers with the selective scan of channels, in Mamba's
 * words and in Jamba's.
 */
#include <inttypes.h>
#include <string.h>

#include "loaders/model/model_hf_fields.h"

struct words {
	const char *state, *taps, *expand, *rank, *bias;
};
static const struct words mamba = { "state_size", "conv_kernel", "expand", "time_step_rank", "use_conv_bias" },
			  jamba = { "mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_dt_rank",
	                            "mamba_conv_bias" };

/* Every so many layers from one on. */
struct period {
	uint32_t every, from;
};

static bool read_period(struct hf_reader *r, const char *every, const char *from, struct period *out)
{
	return hf_get_u32(r, r->root, every, OPTIONAL, UINT32_MAX, &out->every) &&
	       hf_get_u32(r, r->root, from, OPTIONAL, UINT32_MAX, &out->from) &&
	       hparam_range(r->label, every, out->every, 1, UINT32_MAX, r->err);
}

static bool is_in(const struct period *p, uint32_t layer) { return layer % p->every == p->from; }

/* Which of Jamba's layers attend, and which have experts. */
static bool read_layers(struct hf_reader *r)
{
	struct period attends = { 8, 4 }, routes = { 2, 1 };
	uint32_t experts = 16;

	if (!read_period(r, "attn_layer_period", "attn_layer_offset", &attends) ||
	    !read_period(r, "expert_layer_period", "expert_layer_offset", &routes) ||
	    !hf_get_u32(r, r->root, "num_experts", OPTIONAL, UINT32_MAX, &experts))
		return false;
	for (uint32_t i = 0; i < r->m->spec.layers; i++) {
		r->m->file->layer_mixer[i] = is_in(&attends, i) ? MIXER_ATTENTION : MIXER_CHANNEL;
		if (experts > 1 && is_in(&routes, i) && !model_route_layer(r->m, i, r->label, r->err))
			return false;
	}
	if (!r->m->spec.layer_routes) /* one expert is a usual feed-forward layer */
		r->m->spec.dense_layers = r->m->spec.layers;
	return true;
}

static bool read_rank(struct hf_reader *r, const char *name)
{
	struct model_spec *s = &r->m->spec;
	const json_t *v = hf_get(r, r->root, name);

	s->recurrent.step_rank = (s->hidden + 15) / 16;
	return json_is_text(v) ? strcmp(json_string_value(v), "auto") == 0 ||
	                                 hf_unsupported(r, name, json_string_value(v), "auto or a number")
	                       : hf_get_u32(r, r->root, name, OPTIONAL, MODEL_MAX_WIDTH, &s->recurrent.step_rank);
}

bool hf_read_channel(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	const struct words *w = r->row->states_alone ? &mamba : &jamba;
	uint32_t times = 2;
	bool bias = true;

	if (r->row->channel_ones) {
		double eps = 1e-6;
		if (!hf_get_f64(r, r->root, "mixer_rms_eps", &eps) ||
		    !hparam_range(r->label, "mixer_rms_eps", eps, 1e-30, 1, r->err))
			return false;
		s->head_eps = (float)eps;
	}
	c->taps = 4;
	c->key_dim = 16;
	if (r->row->states_alone)
		memset(r->m->file->layer_mixer, MIXER_CHANNEL, s->layers);
	else if (!read_layers(r))
		return false;
	if (!hf_get_u32(r, r->root, w->state, OPTIONAL, MODEL_MAX_WIDTH, &c->key_dim) ||
	    !hf_get_u32(r, r->root, w->taps, OPTIONAL, UINT32_MAX, &c->taps) ||
	    !hf_get_u32(r, r->root, w->expand, OPTIONAL, 64, &times) || !read_rank(r, w->rank) ||
	    !hf_get_bool_or_none(r, w->bias, &bias))
		return false;
	r->m->file->channel_ones = r->row->channel_ones;
	r->m->file->needs.group[GROUP_TAPS_BIAS] = bias ? NEED_ALWAYS : NEED_NOT;
	return model_channel_sizes(r->m, times * s->hidden, r->label, r->err);
}
