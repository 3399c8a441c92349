/* loaders/model/model_hf_window.c - what config.json says of windows: how long, and which layers have one (enum
 * arch_window). Where the file leaves it open, as the transformers classes derive it. */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What the layers are derived from, where the file has no list of their kinds. */
struct rule {
	uint32_t max_window_layers, period, prefix; /* prefix: of layers before those with experts */
	uint8_t *rotates;                           /* with WINDOW_STILL; malloc'ed */
};

static bool slides_by_rule(const struct hf_reader *r, const struct rule *rule, uint32_t layer)
{
	switch (r->row->window) {
	case WINDOW_BY_TYPE:
		if (r->row->routing & ROUTING_AVERAGED && layer < r->m->spec.dense_layers)
			return rule->prefix && (layer + 1) % rule->prefix != 0;
		if (r->row->full_unlisted)
			return false;
		layer -= r->row->routing & ROUTING_AVERAGED ? r->m->spec.dense_layers : 0;
		return r->row->full_first ? layer % rule->period != 0 : layer % rule->period + 1 < rule->period;
	case WINDOW_SOME_LAYERS: return layer >= rule->max_window_layers;
	case WINDOW_ALTERNATES: return layer % 2 == 0 && layer < rule->max_window_layers;
	case WINDOW_STILL: return !rule->rotates[layer];
	case WINDOW_CHUNKS: return rule->rotates[layer];
	case WINDOW_IGNORED:
	case WINDOW_ALL_LAYERS:
	case WINDOW_IF_USED: break;
	}
	return true;
}

static bool slides_by_type(struct hf_reader *r, const json_t *types, uint32_t layer, bool *out)
{
	const json_t *type = json_array_get(types, layer);

	if (!json_is_text(type))
		return hf_wrong_kind(r, "an element of layer_types", type, "a string");
	const bool chunks = r->row->window == WINDOW_CHUNKS;
	*out = strcmp(json_string_value(type), chunks ? "chunked_attention" : "sliding_attention") == 0;
	return *out || strcmp(json_string_value(type), "full_attention") == 0 ||
	       hf_unsupported(r, "an element of layer_types", json_string_value(type),
	                      chunks ? "full_attention or chunked_attention" : "full_attention or sliding_attention");
}

/* Every so many layers one has no window: as a number, or as letters, "LLLG". Some classes have one number for ever. */
static bool read_period(struct hf_reader *r, uint32_t *period)
{
	static const char name[] = "sliding_window_pattern";
	const json_t *v = arch_word_in(r->row->fields, name) ? NULL : hf_get(r, r->root, name);

	*period = r->row->window_period;
	if (json_is_text(v))
		*period = (uint32_t)strlen(json_string_value(v));
	else if (v && !hf_get_u32(r, r->root, name, OPTIONAL, UINT32_MAX, period))
		return false;
	return true;
}

/* Asks for the fields also where there is a list, types. */
static bool read_rule(struct hf_reader *r, const json_t *types, struct rule *rule)
{
	const uint32_t layers = r->m->spec.layers;

	rule->max_window_layers = 28;
	rule->prefix = 1;
	if (r->row->routing & ROUTING_AVERAGED &&
	    !hf_get_u32(r, r->root, "prefix_dense_sliding_window_pattern", OPTIONAL, UINT32_MAX, &rule->prefix))
		return false;
	switch (r->row->window) {
	case WINDOW_BY_TYPE:
		return read_period(r, &rule->period) &&
		       (types || rule->period ||
		        error_set(r->err, ERROR_FORMAT, "%s: sliding_window_pattern is 0, expected at least 1",
		                  r->label));
	case WINDOW_SOME_LAYERS:
	case WINDOW_ALTERNATES:
		return hf_get_u32(r, r->root, "max_window_layers", OPTIONAL, UINT32_MAX, &rule->max_window_layers);
	case WINDOW_STILL:
	case WINDOW_CHUNKS:
		rule->rotates = calloc(layers ? layers : 1, 1);
		return rule->rotates ? hf_read_rotating(r, rule->rotates)
		                     : error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label,
		                                 layers);
	case WINDOW_IGNORED:
	case WINDOW_ALL_LAYERS:
	case WINDOW_IF_USED: break;
	}
	return true;
}

static bool read_layers(struct hf_reader *r, const struct rule *rule, const json_t *types, uint32_t window)
{
	struct model_spec *s = &r->m->spec;
	uint8_t *slides = r->m->file->layer_is_sliding;
	uint32_t sliding = 0;

	s->layer_is_sliding = NULL;
	for (uint32_t i = 0; i < s->layers; i++) {
		bool one = types ? false : slides_by_rule(r, rule, i);
		if (types && !slides_by_type(r, types, i, &one))
			return false;
		if (r->row->switches & SWITCH_LAYER_SIZES && i + 1 == s->layers)
			one = false; /* whatever the file says of the last layer */
		slides[i] = one;
		sliding += one;
	}
	if (window && sliding) {
		s->sliding_window = window;
		s->layer_is_sliding = sliding < s->layers ? slides : NULL;
	}
	return true;
}

static bool read_window_per_layer(struct hf_reader *r, uint32_t window)
{
	const json_t *types = hf_get(r, r->root, "layer_types");
	const uint32_t layers = r->m->spec.layers;
	struct rule rule = { 0 };

	if (types && (!json_is_array(types) || json_array_size(types) != layers))
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: layer_types is %s of %zu elements, expected an array of %" PRIu32, r->label,
		                 json_kind(types), json_array_size(types), layers);
	bool ok = read_rule(r, types, &rule) && model_slides_make(r->m, r->label, r->err) &&
	          read_layers(r, &rule, types, window);
	free(rule.rotates);
	return ok;
}

/* Whether windows are turned on, where a field says so. */
static bool read_use(struct hf_reader *r, bool *use)
{
	switch (r->row->window) {
	case WINDOW_SOME_LAYERS:
	case WINDOW_IF_USED:
	case WINDOW_ALTERNATES: *use = false; return hf_get_bool(r, r->root, "use_sliding_window", use);
	case WINDOW_STILL: /* whose masks go by the list, where there is one, whatever this field says */
		*use = false;
		if (!hf_get_bool(r, r->root, "use_sliding_window", use))
			return false;
		*use = *use || hf_get(r, r->root, "layer_types");
		return true;
	case WINDOW_IGNORED:
	case WINDOW_ALL_LAYERS:
	case WINDOW_CHUNKS:
	case WINDOW_BY_TYPE: break;
	}
	*use = true;
	return true;
}

bool hf_read_window(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const char *field = r->row->window == WINDOW_CHUNKS ? "attention_chunk_size" : "sliding_window";
	uint32_t window = 0;
	bool use;

	if (r->row->window == WINDOW_IGNORED)
		return true;
	s->window_chunks = r->row->window == WINDOW_CHUNKS;
	if (!hf_get_u32(r, r->root, field, OPTIONAL, UINT32_MAX, &window) || !read_use(r, &use))
		return false;
	if (use && hf_get(r, r->root, field) && window == 0)
		return error_set(r->err, ERROR_FORMAT, "%s: %s is 0, expected at least 1 or null", r->label, field);
	window = use ? window : 0;
	r->m->file->windowed = window != 0;
	if (r->row->window != WINDOW_ALL_LAYERS && r->row->window != WINDOW_IF_USED)
		return read_window_per_layer(r, window);
	s->sliding_window = window;
	return true;
}
