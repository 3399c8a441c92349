/* loaders/model/model_gguf_mixers.c - what GGUF keys say of layers that keep a state instead of keys and values: which
 * they are, and their sizes. */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <stdio.h>

/* Heads of keys and values, layer by layer: where there are none, a convolution mixes the tokens. */
static bool by_heads(struct gguf_reader *r, const struct gguf_kv *kv)
{
	struct model_spec *s = &r->m->spec;
	uint32_t heads = 0;

	if (kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 || kv->item == GGUF_F64 ||
	    kv->item == GGUF_BOOL || kv->count != s->layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the array of key %s has %" PRIu64 " values, expected an integer for each of the "
		                 "%" PRIu32 " layers",
		                 r->g->path, r->key, kv->count, s->layers);
	if (!model_mixers_make(r->m, r->g->path, r->err))
		return false;
	for (uint32_t i = 0; i < s->layers; i++) {
		int64_t n = gguf_item_int(kv, i);
		if (n < 0 || n > MODEL_MAX_HEADS || (n && heads && n != heads))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: key %s is %" PRId64 " in layer %" PRIu32
			                 ", expected 0 or the same number as in other layers",
			                 r->g->path, r->key, n, i);
		heads = n ? (uint32_t)n : heads;
		r->m->file->layer_mixer[i] = n ? MIXER_ATTENTION : (uint8_t)r->row->recurrent;
	}
	s->kv_heads = heads;
	return true;
}

bool gguf_read_kv_heads(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "attention.head_count_kv"));

	if ((r->row->recurrent == MIXER_CONV || r->row->recurrent == MIXER_SCAN ||
	     r->row->recurrent == MIXER_CHANNEL) &&
	    kv && kv->type == GGUF_ARRAY)
		return by_heads(r, kv);
	return gguf_get_u32(r, "attention.head_count_kv", OPTIONAL, &r->m->spec.kv_heads);
}

/* Which layers attend, their tensors say: files name an interval that holds for the published sizes alone. */
static bool attends(const struct gguf_reader *r, uint32_t layer)
{
	struct found_tensor t;
	char name[40];

	snprintf(name, sizeof name, "blk.%" PRIu32 ".attn_q.weight", layer);
	return model_find_tensor(r->m->file, name, &t);
}

/* Older files have queries, keys, values and the gate in one tensor. */
static bool has_one_input(const struct gguf_reader *r, uint32_t layer)
{
	struct found_tensor t;
	char name[40];

	snprintf(name, sizeof name, "blk.%" PRIu32 ".ssm_in.weight", layer);
	return r->row->gguf_fused & FUSED_RATES && model_find_tensor(r->m->file, name, &t);
}

bool gguf_read_delta(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	uint32_t values = 0;

	if (!gguf_get_u32(r, "ssm.conv_kernel", REQUIRED, &c->taps) ||
	    !gguf_get_u32(r, "ssm.state_size", REQUIRED, &c->key_dim) ||
	    !gguf_get_u32(r, "ssm.group_count", REQUIRED, &c->key_heads) ||
	    !gguf_get_u32(r, "ssm.time_step_rank", REQUIRED, &c->value_heads) ||
	    !gguf_get_u32(r, "ssm.inner_size", REQUIRED, &values))
		return false;
	c->tiled = r->row->switches & SWITCH_TILED;
	c->value_dim = c->value_heads ? values / c->value_heads : 0;
	if ((uint64_t)c->value_dim * c->value_heads != values)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: key %s is %" PRIu32 ", expected a multiple of the %" PRIu32 " heads of values",
		                 r->g->path, r->key, values, c->value_heads);
	if (!model_mixers_make(r->m, r->g->path, r->err))
		return false;
	for (uint32_t i = 0; i < s->layers; i++) {
		r->m->file->layer_mixer[i] = attends(r, i) ? MIXER_ATTENTION : MIXER_DELTA;
		r->m->file->delta_fused = r->m->file->delta_fused || has_one_input(r, i);
	}
	return model_delta_channels(r->m, r->g->path, r->err);
}

bool gguf_read_conv(struct gguf_reader *r)
{
	struct model_recurrent *c = &r->m->spec.recurrent;

	c->channels = r->m->spec.hidden;
	return gguf_get_u32(r, "shortconv.l_cache", REQUIRED, &c->taps);
}

bool gguf_read_mixers(struct gguf_reader *r)
{
	static bool (*const read[])(struct gguf_reader *) = {
#define X(id, name, rule) [MIXER_##id] = gguf_read_##name,
		MODEL_MIXERS(X)
#undef X
	};

	return r->row->recurrent == MIXER_ATTENTION || read[r->row->recurrent](r);
}
