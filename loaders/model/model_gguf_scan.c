/* loaders/model/model_gguf_scan.c - what GGUF keys say of layers with the selective scan (Mamba 2): which they are, and
 * their sizes; and of Nemotron's layers, each of which is one thing alone. */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <stdio.h>

static bool find_of_layer(const struct gguf_reader *r, uint32_t layer, const char *name, struct found_tensor *t)
{
	char full[60];

	snprintf(full, sizeof full, "blk.%" PRIu32 ".%s", layer, name);
	return model_find_tensor(r->m->file, full, t);
}

/* Layers without attention are what their tensors show: some files give no feed-forward layer a width. */
static bool read_parts(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct found_tensor t;

	for (uint32_t i = 0; i < s->layers; i++) {
		if (s->layer_mixer[i] != MIXER_SCAN || find_of_layer(r, i, "ssm_in.weight", &t))
			continue;
		r->m->file->layer_mixer[i] = MIXER_NONE;
		if (find_of_layer(r, i, "ffn_gate_inp.weight", &t)) {
			if (!model_route_layer(r->m, i, r->g->path, r->err))
				return false;
		} else if (!s->ffn && find_of_layer(r, i, "ffn_up.weight", &t)) {
			if (!hparam_range(r->g->path, "the feed-forward size", (double)t.dim[1], 1, MODEL_MAX_WIDTH,
			                  r->err))
				return false;
			s->ffn = (uint32_t)t.dim[1];
		}
	}
	return true;
}

bool gguf_read_scan(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	uint32_t values = 0;
	struct found_tensor norm;

	if (r->row->attends_beside || r->row->states_alone) {
		if (!model_mixers_make(r->m, r->g->path, r->err))
			return false;
		for (uint32_t i = 0; i < s->layers; i++)
			r->m->file->layer_mixer[i] = MIXER_SCAN;
	}
	if (r->row->attends_beside && !find_of_layer(r, 0, "ssm_norm.weight", &norm)) {
		s->scan_norm = SCAN_NORM_NONE;
		r->m->file->needs.group[GROUP_SCAN_NORM] = NEED_NOT;
	}
	if (!s->layer_mixer)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not an array, expected a number for each layer",
		                 r->g->path, gguf_key(r, "attention.head_count_kv"));
	if (!gguf_get_u32(r, "ssm.conv_kernel", REQUIRED, &c->taps) ||
	    !gguf_get_u32(r, "ssm.state_size", REQUIRED, &c->key_dim) ||
	    !gguf_get_u32(r, "ssm.group_count", REQUIRED, &c->key_heads) ||
	    !gguf_get_u32(r, "ssm.time_step_rank", REQUIRED, &c->value_heads) ||
	    !gguf_get_u32(r, "ssm.inner_size", REQUIRED, &values))
		return false;
	c->value_dim = c->value_heads ? values / c->value_heads : 0;
	if ((uint64_t)c->value_dim * c->value_heads != values)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: key %s is %" PRIu32 ", expected a multiple of the %" PRIu32 " heads", r->g->path,
		                 gguf_key(r, "ssm.inner_size"), values, c->value_heads);
	c->floor = s->one_part && !r->row->states_alone ? 0.001f : 0; /* no key says it */
	r->m->file->needs.group[GROUP_TAPS_BIAS] = NEED_ALWAYS;
	return (!s->one_part || r->row->states_alone || read_parts(r)) && model_scan_channels(r->m, r->g->path, r->err);
}

bool gguf_read_some_ffn(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "feed_forward_length"));

	if (r->row->states_alone) { /* it says 0 */
		s->ffn = 1;
		return true;
	}
	if (!s->one_part || !kv || kv->type != GGUF_ARRAY)
		return gguf_get_size(r, "feed_forward_length",
		                     r->row->routing & (ROUTING_ALL | ROUTING_AVERAGED) ? OPTIONAL : REQUIRED, &s->ffn);
	for (uint64_t i = 0; i < kv->count; i++) {
		bool integers = kv->item != GGUF_STRING && kv->item != GGUF_ARRAY && kv->item != GGUF_F32 &&
		                kv->item != GGUF_F64 && kv->item != GGUF_BOOL;
		int64_t n = integers ? gguf_item_int(kv, i) : -1;
		if (n < 0 || n > MODEL_MAX_WIDTH || kv->count != s->layers || (n && s->ffn && n != s->ffn))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: the array of key %s has %" PRIu64 " values, %" PRId64
			                 " among them, expected 0 or one number for each of the %" PRIu32 " layers",
			                 r->g->path, r->key, kv->count, n, s->layers);
		s->ffn = n ? (uint32_t)n : s->ffn;
	}
	return true;
}
