/* loaders/model/model_gguf_layers.c - what GGUF keys say of layers that differ in sizes (SWITCH_LAYER_SIZES). */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <stdlib.h>

/* Of a layer: a number for all, or one for each. */
static bool get_of_layer(struct gguf_reader *r, const char *suffix, uint32_t layer, uint32_t *out)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, suffix));

	if (!kv || kv->type != GGUF_ARRAY)
		return gguf_get_u32(r, suffix, OPTIONAL, out);
	bool integers = kv->item != GGUF_STRING && kv->item != GGUF_ARRAY && kv->item != GGUF_F32 &&
	                kv->item != GGUF_F64 && kv->item != GGUF_BOOL;
	if (!integers || kv->count != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the array of key %s has %" PRIu64 " values, expected an integer for each of the "
		                 "%" PRIu32 " layers",
		                 r->g->path, r->key, kv->count, r->m->spec.layers);
	int64_t value = gguf_item_int(kv, layer);
	if (!hparam_range(r->g->path, r->key, (double)value, 1, UINT32_MAX, r->err))
		return false;
	*out = (uint32_t)value;
	return true;
}

bool gguf_read_heads(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "attention.head_count"));
	uint32_t *heads = NULL;

	if (!r->row->layer_heads || !kv || kv->type != GGUF_ARRAY)
		return gguf_get_u32(r, "attention.head_count", REQUIRED, &s->heads);
	if (!hparam_range(r->g->path, "the number of layers", s->layers, 1, MODEL_MAX_LAYERS, r->err))
		return false;
	bool ok = (heads = calloc(s->layers, sizeof *heads)) != NULL;
	if (!ok)
		error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->g->path, s->layers);
	for (uint32_t i = 0; ok && i < s->layers; i++)
		ok = get_of_layer(r, "attention.head_count", i, &heads[i]);
	ok = ok && model_heads_make(r->m, heads, r->g->path, r->err);
	free(heads);
	return ok;
}

bool gguf_get_size(struct gguf_reader *r, const char *suffix, enum presence presence, uint32_t *out)
{
	if (!(r->row->switches & SWITCH_LAYER_SIZES))
		return gguf_get_u32(r, suffix, presence, out);
	return gguf_find(r->g, gguf_key(r, suffix)) ? get_of_layer(r, suffix, 0, out)
	                                            : presence == OPTIONAL || gguf_missing(r);
}

/* Layers with a window have heads of their own; what is there under both names must be the same for keys, values and
 * rotation. */
static bool read_window_heads(struct gguf_reader *r, uint32_t *out)
{
	uint32_t values = *out, rotated;

	if (!gguf_get_u32(r, "attention.key_length_swa", OPTIONAL, out))
		return false;
	values = rotated = *out;
	if (!gguf_get_u32(r, "attention.value_length_swa", OPTIONAL, &values) ||
	    !gguf_get_u32(r, "rope.dimension_count_swa", OPTIONAL, &rotated))
		return false;
	return (values == *out && rotated == *out) ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: in layers with a window keys have %" PRIu32 " elements per head, values %" PRIu32
	                 " and %" PRIu32 " rotate, expected the same number",
	                 r->g->path, *out, values, rotated);
}

bool gguf_read_layers(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t window_dim = s->head_dim, shared = 0;

	if (!(r->row->switches & SWITCH_LAYER_SIZES))
		return true;
	if (!model_sizes_make(r->m, r->g->path, r->err) || !read_window_heads(r, &window_dim) ||
	    !gguf_get_u32(r, "attention.shared_kv_layers", OPTIONAL, &shared) ||
	    !gguf_get_u32(r, "embedding_length_per_layer_input", OPTIONAL, &s->layer_input))
		return false;
	s->pictures_whole = !s->layer_input; /* which no key says: so the published models are */
	for (uint32_t i = 0; i < s->layers; i++) {
		struct model_sizes *z = &r->m->file->layer_sizes[i];
		if (!get_of_layer(r, "attention.head_count_kv", i, &z->kv_heads) ||
		    !get_of_layer(r, "feed_forward_length", i, &z->ffn))
			return false;
		if (s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[i]))
			z->head_dim = window_dim;
	}
	s->window_rope.dims = window_dim;
	if (!model_share_keys(r->m, shared, r->g->path, r->err))
		return false;
	model_sizes_max(s);
	return true;
}
