/* loaders/model/model_hf_scan.c - what config.json says of layers with the selective scan (Mamba 2): which they are,
 * and their sizes, in Granite's words and in Nemotron's. */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <string.h>

/* What a layer is, by a letter or a word. */
static const struct {
	char letter;
	const char *word;
	enum model_mixer mixer;
	bool routes;
} kinds[] = { { 'M', "mamba", MIXER_SCAN, false },
	      { 'M', "linear_attention", MIXER_SCAN, false }, /* in files of transformers 5, as below */
	      { '*', "attention", MIXER_ATTENTION, false },
	      { '*', "full_attention", MIXER_ATTENTION, false },
	      { '-', "mlp", MIXER_NONE, false },
	      { 'E', "moe", MIXER_NONE, true } };
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool set_kind(struct hf_reader *r, uint32_t layer, char letter, const char *word)
{
	struct model_file *f = r->m->file;

	for (size_t i = 0; i < KINDS; i++) {
		if (word ? strcmp(kinds[i].word, word) != 0 : kinds[i].letter != letter)
			continue;
		if (kinds[i].mixer == MIXER_NONE && !r->m->spec.one_part)
			break;
		f->layer_mixer[layer] = (uint8_t)kinds[i].mixer;
		return !kinds[i].routes || model_route_layer(r->m, layer, r->label, r->err);
	}
	const char one[] = { letter, 0 };
	return hf_unsupported(r, "a layer's kind", word ? word : one,
	                      r->m->spec.one_part ? "M, *, - or E, or mamba, attention, mlp or moe"
	                                          : "mamba or attention");
}

/* Bamba's: numbers of the layers with attention. */
static bool kinds_by_numbers(struct hf_reader *r, const json_t *list)
{
	const uint32_t layers = r->m->spec.layers;
	const json_t *one;
	size_t i;

	memset(r->m->file->layer_mixer, MIXER_SCAN, layers);
	json_array_foreach(list, i, one)
	{
		if (!json_is_integer(one) || json_integer_value(one) < 0 || json_integer_value(one) >= layers)
			return hf_wrong_kind(r, "an element of attn_layer_indices", one, "a layer's number");
		r->m->file->layer_mixer[json_integer_value(one)] = MIXER_ATTENTION;
	}
	return true;
}

static bool read_kinds(struct hf_reader *r)
{
	static const char *const names[] = { "hybrid_override_pattern", "layers_block_type", "layer_types" };
	const uint32_t layers = r->m->spec.layers;
	const json_t *v = NULL, *numbers = hf_get(r, r->root, "attn_layer_indices");
	const char *name = NULL;

	if (r->row->attends_beside || r->row->states_alone) {
		memset(r->m->file->layer_mixer, MIXER_SCAN, layers);
		return true;
	}
	if (numbers && !json_is_array(numbers))
		return hf_wrong_kind(r, "attn_layer_indices", numbers, "an array");
	if (numbers)
		return kinds_by_numbers(r, numbers);

	for (size_t i = r->m->spec.one_part ? 0 : 2; i < 3 && !v; i++)
		v = hf_get(r, r->root, name = names[i]);
	if (!v)
		return error_set(r->err, ERROR_FORMAT, "%s: %s is missing", r->label,
		                 names[r->m->spec.one_part ? 0 : 2]);
	if (!json_is_text(v) && !json_is_array(v))
		return hf_wrong_kind(r, name, v, "a string or an array");
	size_t n = json_is_array(v) ? json_array_size(v) : strlen(json_string_value(v));
	if (n != layers)
		return error_set(r->err, ERROR_FORMAT, "%s: %s is for %zu layers, expected %" PRIu32, r->label, name, n,
		                 layers);
	for (uint32_t i = 0; i < layers; i++) {
		const json_t *word = json_array_get(v, i);
		if (json_is_array(v) && !json_is_text(word))
			return hf_wrong_kind(r, name, word, "a list of strings");
		if (!set_kind(r, i, json_is_array(v) ? 0 : json_string_value(v)[i],
		              json_is_array(v) ? json_string_value(word) : NULL))
			return false;
	}
	return true;
}

/* The words of both families, and what they have where a file says nothing. */
struct words {
	const char *heads, *head_dim, *groups, *state, *taps, *bias;
	uint32_t usual_heads, usual_dim, usual_groups, usual_state;
};
static const struct words
	granite = { "mamba_n_heads",
	            "mamba_d_head",
	            "mamba_n_groups",
	            "mamba_d_state",
	            "mamba_d_conv",
	            "mamba_conv_bias",
	            128,
	            0,
	            1,
	            256 },
	nemotron = { "mamba_num_heads",
	             "mamba_head_dim",
	             "n_groups",
	             "ssm_state_size",
	             "conv_kernel",
	             "use_conv_bias",
	             128,
	             64,
	             8,
	             128 };

/* A field that is absent, or this word. */
static bool has_word(struct hf_reader *r, const char *name, const char *word)
{
	const char *value = NULL;

	return hf_get_string(r, r->root, name, &value) &&
	       (!value || strcmp(value, word) == 0 || hf_unsupported(r, name, value, word));
}

/* A head's values; Granite's files may leave them to the width of all. */
static bool read_head_dim(struct hf_reader *r, const char *name)
{
	struct model_recurrent *c = &r->m->spec.recurrent;
	uint32_t times = 2, width = 0;

	if (json_is_text(hf_get(r, r->root, name)) ? !has_word(r, name, "auto")
	                                           : !hf_get_u32(r, r->root, name, OPTIONAL, UINT32_MAX, &c->value_dim))
		return false;
	if (r->m->spec.one_part && !r->row->states_alone)
		return true;
	if (!hf_get_u32(r, r->root, r->row->states_alone ? "expand" : "mamba_expand", OPTIONAL, 64, &times) ||
	    (r->row->attends_beside && !hf_get_u32(r, r->root, "mamba_d_ssm", OPTIONAL, MODEL_MAX_WIDTH, &width)))
		return false;
	uint64_t all = width ? width : (uint64_t)times * r->m->spec.hidden;
	if (!c->value_dim && c->value_heads)
		c->value_dim = (uint32_t)(all / c->value_heads);
	return (uint64_t)c->value_dim * c->value_heads == all ||
	       error_set(r->err, ERROR_FORMAT,
	                 "%s: %" PRIu32 " heads of %" PRIu32 " values, expected %" PRIu64
	                 " values together (mamba_expand times hidden_size)",
	                 r->label, c->value_heads, c->value_dim, all);
}

/* Of Nemotron's layers, which are one thing each. */
static bool read_one_part(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double min = 0.001;

	if (!has_word(r, "mamba_hidden_act", "silu") || !has_word(r, "mlp_hidden_act", "relu2") ||
	    !hf_get_f64(r, r->root, "time_step_min", &min) ||
	    !hparam_range(r->label, "time_step_min", min, 0, 1e3, r->err))
		return false;
	s->recurrent.floor = (float)min;
	return hf_get(r, r->root, "head_dim") ||
	       hf_get_u32(r, r->root, "attention_head_dim", OPTIONAL, MODEL_MAX_HEAD_DIM, &s->head_dim);
}

/* The least and the greatest step of Granite's, from 0 to infinity where nothing is said; transformers 5 writes
 * infinity as a word. */
static bool read_step_limit(struct hf_reader *r)
{
	struct model_recurrent *c = &r->m->spec.recurrent;
	const json_t *v = hf_get(r, r->root, "time_step_limit"), *min = json_array_get(v, 0),
		     *max = json_array_get(v, 1), *written = json_object_get(max, "__float__");
	const char *word = json_is_text(written) ? json_string_value(written) : json_not_finite(max);
	const bool endless = word && strcmp(word, "Infinity") == 0;

	if (!v)
		return true;
	if (json_array_size(v) != 2 || !json_is_number(min) || !(endless || json_is_number(max)))
		return hf_wrong_kind(r, "time_step_limit", v, "a list of the least and the greatest step");
	if (!hparam_range(r->label, "the least of time_step_limit", json_number_value(min), 0, 1e6, r->err) ||
	    (!endless &&
	     !hparam_range(r->label, "the greatest of time_step_limit", json_number_value(max), 1e-6, 1e6, r->err)))
		return false;
	c->floor = (float)json_number_value(min);
	c->ceiling = endless ? 0 : (float)json_number_value(max);
	return true;
}

/* Granite's rotate where the file says so. */
static bool read_positions(struct hf_reader *r)
{
	const char *type = NULL;

	if (!hf_get_string(r, r->root, "position_embedding_type", &type))
		return false;
	r->m->file->rotates = type && strcmp(type, "rope") == 0;
	return !type || r->m->file->rotates || strcmp(type, "nope") == 0 ||
	       hf_unsupported(r, "position_embedding_type", type, "rope or nope");
}

bool hf_read_scan(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_recurrent *c = &s->recurrent;
	const struct words *w = s->one_part ? &nemotron : &granite;
	bool bias = true;

	c->taps = 4;
	c->value_heads = w->usual_heads;
	c->value_dim = w->usual_dim;
	c->key_heads = w->usual_groups;
	c->key_dim = w->usual_state;
	if (!read_kinds(r) || !hf_get_u32(r, r->root, w->heads, OPTIONAL, MODEL_MAX_HEADS, &c->value_heads) ||
	    !hf_get_u32(r, r->root, w->groups, OPTIONAL, MODEL_MAX_HEADS, &c->key_heads) ||
	    !hf_get_u32(r, r->root, w->state, OPTIONAL, MODEL_MAX_WIDTH, &c->key_dim) ||
	    !hf_get_u32(r, r->root, w->taps, OPTIONAL, UINT32_MAX, &c->taps) ||
	    !hf_get_bool_or_none(r, w->bias, &bias) || !read_head_dim(r, w->head_dim) ||
	    !(s->one_part && !r->row->states_alone ? read_one_part(r) : read_positions(r) && read_step_limit(r)))
		return false;
	r->m->file->needs.group[GROUP_TAPS_BIAS] = bias ? NEED_ALWAYS : NEED_NOT;
	return model_scan_channels(r->m, r->label, r->err) && (!r->row->attends_beside || hf_read_beside(r));
}
