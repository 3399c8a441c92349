/* loaders/model/model_hf_layers.c - what config.json says of layers that differ in sizes (SWITCH_LAYER_SIZES). */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Further computations that such a configuration can turn on. */
static bool check_rest(struct hf_reader *r)
{
	const json_t *sight = hf_get(r, r->root, "use_bidirectional_attention");

	r->m->spec.pictures_whole = json_is_text(sight) && strcmp(json_string_value(sight), "vision") == 0;
	if (!sight || json_is_false(sight) || r->m->spec.pictures_whole)
		return true;
	return error_set(
		r->err, ERROR_UNSUPPORTED,
		"%s: use_bidirectional_attention is %s, expected null or \"vision\", which is for images alone",
		r->label, json_is_text(sight) ? json_string_value(sight) : json_kind(sight));
}

static bool read_inputs(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t vocab = s->vocab;

	if (!hf_get_u32(r, r->root, "hidden_size_per_layer_input", OPTIONAL, MODEL_MAX_LAYER_INPUT, &s->layer_input) ||
	    !hf_get_u32(r, r->root, "vocab_size_per_layer_input", OPTIONAL, INT32_MAX, &vocab))
		return false;
	return !s->layer_input || vocab == s->vocab ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: vocab_size_per_layer_input is %" PRIu32 ", expected vocab_size, which is %" PRIu32,
	                 r->label, vocab, s->vocab);
}

/* What files of transformers 5 say of layers with heads of their own, by number. */
static bool read_each(struct hf_reader *r)
{
	json_t *each = hf_get(r, r->root, "per_layer_config"), *of_layer, *v;
	const char *layer, *name;

	if (each && !json_is_object(each))
		return hf_wrong_kind(r, "per_layer_config", each, "an object");
	json_object_foreach(each, layer, of_layer)
	{
		char *end = NULL, text[60];
		const unsigned long i = strtoul(layer, &end, 10);
		if (*layer < '0' || *layer > '9' || *end || i >= r->m->spec.layers)
			return hf_unsupported(r, "a layer of per_layer_config",
			                      error_quote(text, sizeof text, layer, strlen(layer)), "a number of one");
		if (!json_is_object(of_layer))
			return hf_wrong_kind(r, "a layer of per_layer_config", of_layer, "an object");
		struct model_sizes *z = &r->m->file->layer_sizes[i];
		json_object_foreach(of_layer, name, v)
		{
			if (strcmp(name, "head_dim") != 0 && strcmp(name, "num_key_value_heads") != 0)
				return hf_unsupported(r, "a field of per_layer_config",
				                      error_quote(text, sizeof text, name, strlen(name)),
				                      "head_dim or num_key_value_heads");
		}
		if (!hf_get_u32(r, of_layer, "head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &z->head_dim) ||
		    !hf_get_u32(r, of_layer, "num_key_value_heads", OPTIONAL, MODEL_MAX_HEADS, &z->kv_heads))
			return false;
	}
	return true;
}

bool hf_read_layer_heads(struct hf_reader *r)
{
	const struct model_spec *s = &r->m->spec;
	const char *field = r->row->layer_heads;
	const json_t *list = field ? hf_get(r, r->root, field) : NULL;

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) != s->layers)
		return error_set(r->err, ERROR_FORMAT, "%s: %s is %s of %zu elements, expected an array of %" PRIu32,
		                 r->label, field, json_kind(list), json_array_size(list), s->layers);
	uint32_t *heads = calloc(s->layers ? s->layers : 1, sizeof *heads);
	bool ok = heads || error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label, s->layers);
	for (uint32_t i = 0; ok && i < s->layers; i++) {
		const json_t *v = json_array_get(list, i);
		const bool one =
			json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) <= MODEL_MAX_HEADS;
		ok = one || hf_wrong_kind(r, field, v, "a list of numbers of heads");
		heads[i] = one ? (uint32_t)json_integer_value(v) : 0;
	}
	ok = ok && model_heads_make(r->m, heads, r->label, r->err);
	free(heads);
	return ok;
}

/* Layers without a window have heads of their own. */
bool hf_read_layers(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t global_dim = s->head_dim, global_heads = s->kv_heads, shared = 0;
	bool keys_are_values = false, wide = false;

	if (!(r->row->switches & SWITCH_LAYER_SIZES))
		return true;
	if (!check_rest(r) || !read_inputs(r) || !model_sizes_make(r->m, r->label, r->err) ||
	    !hf_get_bool(r, r->root, "attention_k_eq_v", &keys_are_values) ||
	    !hf_get_bool(r, r->root, "use_double_wide_mlp", &wide) ||
	    !hf_get_u32(r, r->root, "global_head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &global_dim) ||
	    !hf_get_u32(r, r->root, "num_global_key_value_heads", OPTIONAL, MODEL_MAX_HEADS, &global_heads) ||
	    !hf_get_u32(r, r->root, "num_kv_shared_layers", OPTIONAL, UINT32_MAX, &shared))
		return false;
	r->m->file->values_are_keys = keys_are_values;
	s->window_rope.dims = s->head_dim;
	for (uint32_t i = 0; i < s->layers; i++) {
		struct model_sizes *z = &r->m->file->layer_sizes[i];
		if (s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[i]))
			continue;
		z->head_dim = global_dim;
		z->kv_heads = keys_are_values ? global_heads : z->kv_heads;
	}
	if (!read_each(r) || !model_share_keys(r->m, shared, r->label, r->err))
		return false;
	for (uint32_t i = s->layers - shared; wide && i < s->layers; i++)
		r->m->file->layer_sizes[i].ffn *= 2;
	model_sizes_max(s);
	return true;
}
