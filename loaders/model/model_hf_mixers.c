/* loaders/model/model_hf_mixers.c - what config.json says of layers that keep a state instead of keys and values: which
 * they are, and their sizes. Defaults are those of the transformers classes. */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <string.h>

/* The words of layer_types. */
static const char *const type_names[] = {
	[MIXER_ATTENTION] = "full_attention", [MIXER_CONV] = "conv", [MIXER_DELTA] = "linear_attention"
};

static bool by_types(struct hf_reader *r, const json_t *types, uint8_t *mixer)
{
	uint32_t layers = r->m->spec.layers;
	char expected[60];

	if (!json_is_array(types) || json_array_size(types) != layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: layer_types is %s of %zu elements, expected an array of %" PRIu32, r->label,
		                 json_kind(types), json_array_size(types), layers);
	for (uint32_t i = 0; i < layers; i++) {
		const json_t *type = json_array_get(types, i);
		if (!json_is_text(type))
			return hf_wrong_kind(r, "an element of layer_types", type, "a string");
		const char *name = json_string_value(type);
		bool attends = strcmp(name, type_names[MIXER_ATTENTION]) == 0;
		snprintf(expected, sizeof expected, "%s or %s", type_names[MIXER_ATTENTION],
		         type_names[r->row->recurrent]);
		if (!attends && strcmp(name, type_names[r->row->recurrent]) != 0)
			return hf_unsupported(r, "an element of layer_types", name, expected);
		mixer[i] = attends ? MIXER_ATTENTION : (uint8_t)r->row->recurrent;
	}
	return true;
}

/* Numbers of the layers with attention; without such a list all have it. */
static bool by_numbers(struct hf_reader *r, const json_t *list, uint8_t *mixer)
{
	uint32_t layers = r->m->spec.layers;
	const json_t *one;
	size_t i;

	memset(mixer, list ? (int)r->row->recurrent : (int)MIXER_ATTENTION, layers);
	if (list && !json_is_array(list))
		return hf_wrong_kind(r, "full_attn_idxs", list, "an array");
	json_array_foreach(list, i, one)
	{
		if (!json_is_integer(one))
			return hf_wrong_kind(r, "an element of full_attn_idxs", one, "an integer");
		json_int_t layer = json_integer_value(one);
		if (layer < 0 || layer >= layers)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: full_attn_idxs names layer %" JSON_INTEGER_FORMAT
			                 ", expected one of %" PRIu32,
			                 r->label, layer, layers);
		mixer[layer] = MIXER_ATTENTION;
	}
	return true;
}

static bool by_interval(struct hf_reader *r, uint8_t *mixer)
{
	uint32_t interval = 4;

	if (!hf_get_u32(r, r->root, "full_attention_interval", OPTIONAL, UINT32_MAX, &interval))
		return false;
	for (uint32_t i = 0; i < r->m->spec.layers; i++)
		mixer[i] = interval && (i + 1) % interval == 0 ? MIXER_ATTENTION : (uint8_t)r->row->recurrent;
	return true;
}

/* The feed-forward size is not what the file says, where it is to be adjusted. */
static bool adjust_ffn(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double multiplier = 1;
	uint32_t multiple = 256;
	bool adjust = true;

	if (!hf_get_u32(r, r->root, "block_ff_dim", OPTIONAL, MODEL_MAX_WIDTH, &s->ffn) ||
	    !hf_get_bool(r, r->root, "block_auto_adjust_ff_dim", &adjust) ||
	    !hf_get_f64(r, r->root, "block_ffn_dim_multiplier", &multiplier) ||
	    !hf_get_u32(r, r->root, "block_multiple_of", OPTIONAL, MODEL_MAX_WIDTH, &multiple))
		return false;
	if (!adjust)
		return true;
	if (!hparam_range(r->label, "block_multiple_of", multiple, 1, MODEL_MAX_WIDTH, r->err) ||
	    !hparam_range(r->label, "block_ffn_dim_multiplier", multiplier, 1e-3, 1e3, r->err))
		return false;
	double ffn = (double)(uint64_t)(multiplier * (double)(2 * (uint64_t)s->ffn / 3));
	if (!hparam_range(r->label, "the feed-forward size", ffn, 1, MODEL_MAX_WIDTH, r->err))
		return false;
	s->ffn = ((uint32_t)ffn + multiple - 1) / multiple * multiple;
	return true;
}

bool hf_read_conv(struct hf_reader *r)
{
	struct model_recurrent *c = &r->m->spec.recurrent;
	const json_t *types = hf_get(r, r->root, "layer_types"), *numbers = hf_get(r, r->root, "full_attn_idxs");
	uint8_t *mixer = r->m->file->layer_mixer;

	if (types ? !by_types(r, types, mixer) : !by_numbers(r, numbers, mixer))
		return false;
	c->taps = 3;
	c->channels = r->m->spec.hidden;
	return hf_get_u32(r, r->root, "conv_L_cache", OPTIONAL, UINT32_MAX, &c->taps) &&
	       (r->row->routing & ROUTING || adjust_ffn(r));
}

/* OLMo's: what its class has for each size depends on others. Released models do not rotate, and say so by a base of
 * null. */
static bool read_olmo(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	const json_t *o = r->root, *types = hf_get(r, o, "layer_types"), *rope = hf_get(r, o, "rope_parameters");
	uint8_t *mixer = r->m->file->layer_mixer;

	for (uint32_t i = 0; !types && i < s->layers; i++)
		mixer[i] = i % 4 == 3 || (s->layers < 4 && i + 1 == s->layers) ? MIXER_ATTENTION : MIXER_DELTA;
	if (types && !by_types(r, types, mixer))
		return false;
	c->taps = 4;
	c->key_heads = c->value_heads = s->heads;
	c->doubled = true;
	if (!hf_get_u32(r, o, "linear_conv_kernel_dim", OPTIONAL, UINT32_MAX, &c->taps) ||
	    !hf_get_u32(r, o, "linear_num_key_heads", OPTIONAL, MODEL_MAX_HEADS, &c->key_heads) ||
	    !hf_get_u32(r, o, "linear_num_value_heads", OPTIONAL, MODEL_MAX_HEADS, &c->value_heads) ||
	    !hparam_range(r->label, "linear_num_key_heads", c->key_heads, 1, MODEL_MAX_HEADS, r->err))
		return false;
	c->key_dim = (uint32_t)(0.75 * s->hidden / c->key_heads);
	if (!hf_get_u32(r, o, "linear_key_head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &c->key_dim))
		return false;
	c->value_dim = 2 * c->key_dim;
	if (!hf_get_u32(r, o, "linear_value_head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &c->value_dim) ||
	    !hf_get_bool(r, o, "linear_allow_neg_eigval", &c->doubled))
		return false;
	r->m->file->rotates = !json_is_object(rope) || !json_is_null(json_object_get(rope, "rope_theta"));
	s->head_eps = 1e-5f; /* of the norm behind the delta rule, whatever rms_norm_eps is */
	return model_delta_channels(r->m, r->label, r->err);
}

bool hf_read_delta(struct hf_reader *r)
{
	if (r->row->norms_by_mixer)
		return read_olmo(r);
	struct model_recurrent *c = &r->m->spec.recurrent;
	const json_t *o = r->root;
	const json_t *types = hf_get(r, o, "layer_types");
	uint8_t *mixer = r->m->file->layer_mixer;
	bool gate = true;

	if (types ? !by_types(r, types, mixer) : !by_interval(r, mixer))
		return false;
	if (!hf_get_bool(r, o, "attn_output_gate", &gate) ||
	    !hf_get_u32(r, o, "linear_conv_kernel_dim", REQUIRED, UINT32_MAX, &c->taps) ||
	    !hf_get_u32(r, o, "linear_num_key_heads", REQUIRED, MODEL_MAX_HEADS, &c->key_heads) ||
	    !hf_get_u32(r, o, "linear_num_value_heads", REQUIRED, MODEL_MAX_HEADS, &c->value_heads) ||
	    !hf_get_u32(r, o, "linear_key_head_dim", REQUIRED, MODEL_MAX_HEAD_DIM, &c->key_dim) ||
	    !hf_get_u32(r, o, "linear_value_head_dim", REQUIRED, MODEL_MAX_HEAD_DIM, &c->value_dim))
		return false;
	return gate ? model_delta_channels(r->m, r->label, r->err)
	            : error_set(r->err, ERROR_UNSUPPORTED,
	                        "%s: attn_output_gate is false, expected true (attention without a gate)", r->label);
}

bool hf_read_mixers(struct hf_reader *r)
{
	static bool (*const read[])(struct hf_reader *) = {
#define X(id, name, rule) [MIXER_##id] = hf_read_##name,
		MODEL_MIXERS(X)
#undef X
	};

	if (r->row->recurrent == MIXER_ATTENTION)
		return true;
	return model_mixers_make(r->m, r->label, r->err) && read[r->row->recurrent](r);
}
