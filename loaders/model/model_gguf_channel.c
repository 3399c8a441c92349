/* loaders/model/model_gguf_channel.c - what GGUF keys say of layers with the selective scan of channels. */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <stdio.h>

/* Layers that route, by the tensors that there are: no key says it. */
static bool read_routes(struct gguf_reader *r)
{
	struct found_tensor t;
	char name[60];

	for (uint32_t i = 0; r->row->routing & ROUTING && i < r->m->spec.layers; i++) {
		snprintf(name, sizeof name, "blk.%" PRIu32 ".ffn_gate_inp.weight", i);
		if (model_find_tensor(r->m->file, name, &t) && !model_route_layer(r->m, i, r->g->path, r->err))
			return false;
	}
	return true;
}

/* Norms without weights stand in no tensor. */
static bool read_norms(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "ssm.dt_b_c_rms"));

	if (kv && kv->type != GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not true or false", r->g->path, r->key);
	r->m->file->channel_ones = kv && gguf_item_int(kv, 0) != 0;
	return true;
}

bool gguf_read_channel(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	uint32_t inner = 0;

	if (r->row->states_alone) {
		if (!model_mixers_make(r->m, r->g->path, r->err))
			return false;
		for (uint32_t i = 0; i < s->layers; i++)
			r->m->file->layer_mixer[i] = MIXER_CHANNEL;
	}
	if (!s->layer_mixer)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not an array, expected a number for each layer",
		                 r->g->path, gguf_key(r, "attention.head_count_kv"));
	if (!gguf_get_u32(r, "ssm.conv_kernel", REQUIRED, &c->taps) ||
	    !gguf_get_u32(r, "ssm.state_size", REQUIRED, &c->key_dim) ||
	    !gguf_get_u32(r, "ssm.time_step_rank", REQUIRED, &c->step_rank) ||
	    !gguf_get_u32(r, "ssm.inner_size", REQUIRED, &inner) || !read_norms(r) || !read_routes(r))
		return false;
	r->m->file->needs.group[GROUP_TAPS_BIAS] = NEED_ALWAYS;
	return model_channel_sizes(r->m, inner, r->g->path, r->err);
}
