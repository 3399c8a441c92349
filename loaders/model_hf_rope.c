/* loaders/model_hf_rope.c - what config.json says of positions and scales: rotary embedding, windows by layer, and the
 * scales that some families have (enum arch_switch). Defaults are those of the transformers classes. */
#include "loaders/model_hf_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

/* layer_types, or what transformers derives when it is absent: layers from max_window_layers on slide. */
static bool layer_slides(struct hf_reader *r, uint32_t layer, uint32_t max_window_layers, uint32_t period, bool *out)
{
	const json_t *types = hf_get(r, r->root, "layer_types");

	if (!types) {
		*out = r->row->window == WINDOW_BY_TYPE ? period == 0 || layer % period + 1 < period
		                                        : layer >= max_window_layers;
		return true;
	}
	if (!json_is_array(types) || json_array_size(types) != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: layer_types is %s of %zu elements, expected an array of %" PRIu32, r->label,
		                 json_kind(types), json_array_size(types), r->m->spec.layers);
	const json_t *type = json_array_get(types, layer);
	if (!json_is_text(type))
		return hf_wrong_kind(r, "an element of layer_types", type, "a string");
	*out = strcmp(json_string_value(type), "sliding_attention") == 0;
	return *out || strcmp(json_string_value(type), "full_attention") == 0 ||
	       hf_unsupported(r, "an element of layer_types", json_string_value(type),
	                      "full_attention or sliding_attention");
}

/* Every so many layers one has no window: as a number, or as letters, "LLLG". */
static bool read_period(struct hf_reader *r, uint32_t *period)
{
	static const char *const names[] = { "sliding_window_pattern", "_sliding_window_pattern" };

	for (int i = 0; i < 2; i++) {
		const json_t *v = hf_get(r, r->root, names[i]);
		if (json_is_text(v))
			*period = (uint32_t)strlen(json_string_value(v));
		else if (v && !hf_get_u32(r, r->root, names[i], OPTIONAL, UINT32_MAX, period))
			return false;
	}
	return true;
}

static bool read_window_per_layer(struct hf_reader *r, uint32_t window)
{
	struct model_spec *s = &r->m->spec;
	uint32_t max_window_layers = 28, sliding = 0, period = r->row->window_period;

	if (r->row->window == WINDOW_BY_TYPE && !read_period(r, &period))
		return false;

	if (!hf_get_u32(r, r->root, "max_window_layers", OPTIONAL, UINT32_MAX, &max_window_layers))
		return false;
	if (!model_slides_make(r->m, r->label, r->err))
		return false;
	uint8_t *slides = r->m->file->layer_is_sliding;
	s->layer_is_sliding = NULL;
	for (uint32_t i = 0; i < s->layers; i++) {
		bool one = false;
		if (!layer_slides(r, i, max_window_layers, period, &one))
			return false;
		slides[i] = one;
		sliding += one;
	}
	if (window && sliding) {
		s->sliding_window = window;
		s->layer_is_sliding = sliding < s->layers ? slides : NULL;
	}
	return true;
}

bool hf_read_window(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t window = json_object_get(r->root, "sliding_window") ? 0
	                  : r->row->switches & SWITCH_LONG
	                          ? 0
	                          : 4096; /* the classes' defaults; an explicit null means none */
	bool use = false;

	if (r->row->window == WINDOW_IGNORED)
		return true;
	if (!hf_get_u32(r, r->root, "sliding_window", OPTIONAL, UINT32_MAX, &window) ||
	    (r->row->window == WINDOW_SOME_LAYERS && !hf_get_bool(r, r->root, "use_sliding_window", &use)))
		return false;
	if (hf_get(r, r->root, "sliding_window") && window == 0 && (use || r->row->window != WINDOW_SOME_LAYERS))
		return error_set(r->err, ERROR_FORMAT, "%s: sliding_window is 0, expected at least 1 or null",
		                 r->label);
	if (r->row->window == WINDOW_ALL_LAYERS) {
		s->sliding_window = window;
		return true;
	}
	if (r->row->window == WINDOW_BY_TYPE)
		return read_window_per_layer(r, window);
	return read_window_per_layer(r, use ? window : 0);
}

static bool read_llama3(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	const char *const needed[] = { "factor", "low_freq_factor", "high_freq_factor" };

	for (int i = 0; i < 3; i++)
		if (!hf_get(r, o, needed[i]))
			return error_set(r->err, ERROR_FORMAT, "%s: the rotary scaling llama3 has no %s", r->label,
			                 needed[i]);
	rope->scaling = ROPE_LLAMA3;
	return hf_get_f64(r, o, "low_freq_factor", &rope->low_freq_factor) &&
	       hf_get_f64(r, o, "high_freq_factor", &rope->high_freq_factor);
}

static bool read_yarn(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	double mscale = 0, mscale_all = 0;

	rope->scaling = ROPE_YARN;
	rope->beta_fast = 32;
	rope->beta_slow = 1;
	rope->yarn_truncate = !(r->row->switches & SWITCH_YARN_EXACT);
	if (!hf_get(r, o, "factor")) {
		if (rope->original_context == 0)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: original_max_position_embeddings is 0, expected at least 1", r->label);
		rope->factor = (double)r->m->spec.context_train / rope->original_context;
	}
	if (!hf_get_f64(r, o, "beta_fast", &rope->beta_fast) || !hf_get_f64(r, o, "beta_slow", &rope->beta_slow) ||
	    !hf_get_bool(r, o, "truncate", &rope->yarn_truncate) || !hf_get_f64(r, o, "mscale", &mscale) ||
	    !hf_get_f64(r, o, "mscale_all_dim", &mscale_all))
		return false;
	rope->attention_factor =
		mscale != 0 && mscale_all != 0
			? model_yarn_attention(rope->factor, mscale) / model_yarn_attention(rope->factor, mscale_all)
			: model_yarn_attention(rope->factor, 1.0);
	if (r->row->switches & SWITCH_LATENT && mscale_all != 0) {
		double by = model_yarn_attention(rope->factor, mscale_all);
		r->m->spec.attention_scale = (float)(by * by / math_host_sqrt((double)r->m->spec.head_dim));
	}
	return hf_get_f64(r, o, "attention_factor", &rope->attention_factor);
}

/* How much of a head rotates. */
static bool read_partial(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	double partial = 1;

	if (!hf_get_f64(r, o, "partial_rotary_factor", &partial))
		return false;
	if (r->row->switches & SWITCH_LATENT) /* there, qk_rope_head_dim says it */
		return true;
	if (partial == 1) {
		rope->dims = hf_get(r, o, "partial_rotary_factor") ? r->m->spec.head_dim : rope->dims;
		return true;
	}
	if (!(r->row->switches & SWITCH_PARTIAL))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: partial_rotary_factor is %.9g, expected 1 (partial rotation is not supported)",
		                 r->label, partial);
	if (!hparam_range(r->label, "partial_rotary_factor", partial, 1e-6, 1, r->err))
		return false;
	rope->dims = (uint32_t)(r->m->spec.head_dim * partial);
	return true;
}

/* dims / 2 numbers, malloc'ed in *out. */
static bool read_factors(struct hf_reader *r, const json_t *o, const char *name, uint32_t n, float **out)
{
	const json_t *list = hf_get(r, o, name);

	if (!json_is_array(list) || json_array_size(list) != n)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the rotary scaling's %s is %s of %zu elements, expected an array of %" PRIu32,
		                 r->label, name, list ? json_kind(list) : "absent",
		                 list ? json_array_size(list) : (size_t)0, n);
	free(*out);
	*out = malloc((n ? n : 1) * sizeof **out);
	if (!*out)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " rotary factors", r->label, n);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		if (!json_is_number(v))
			return hf_wrong_kind(r, name, v, "a list of numbers");
		(*out)[i] = (float)json_number_value(v);
	}
	return model_check_factors(r->label, name, *out, n, r->err);
}

/* Factors for sessions of up to the original context, and for longer ones. */
static bool read_long(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	struct model_file *f = r->m->file;
	uint32_t n = rope->dims / 2;

	if (!hf_get_u32(r, r->root, "original_max_position_embeddings", OPTIONAL, UINT32_MAX,
	                &rope->original_context) ||
	    !hparam_range(r->label, "original_max_position_embeddings", rope->original_context, 1, 4294967295.0,
	                  r->err) ||
	    !read_factors(r, o, "short_factor", n, &f->freq_factors) ||
	    !read_factors(r, o, "long_factor", n, &f->long_factors))
		return false;
	rope->scaling = ROPE_LONG;
	rope->freq_factors = f->freq_factors;
	rope->long_factors = f->long_factors;
	double times =
		hf_get(r, o, "factor") ? rope->factor : (double)r->m->spec.context_train / rope->original_context;
	rope->attention_factor =
		times <= 1 ? 1
			   : math_host_sqrt(1 + math_host_log(times) / math_host_log((double)rope->original_context));
	return hf_get_f64(r, o, "attention_factor", &rope->attention_factor);
}

/* The first pairs of a head rotate, by frequencies of the whole head. */
static bool read_proportional(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	struct model_file *f = r->m->file;
	uint32_t n = rope->dims / 2;
	double partial = 1;

	if (!hf_get_f64(r, o, "partial_rotary_factor", &partial) ||
	    !hparam_range(r->label, "partial_rotary_factor", partial, 0, 1, r->err))
		return false;
	free(f->freq_factors);
	f->freq_factors = malloc((n ? n : 1) * sizeof *f->freq_factors);
	if (!f->freq_factors)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " rotary factors", r->label, n);
	for (uint32_t i = 0; i < n; i++)
		f->freq_factors[i] = i < (uint32_t)(partial * n) ? 1 : MODEL_ROPE_STILL;
	rope->freq_factors = f->freq_factors;
	return true;
}

static bool read_scaling(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	const char *type = NULL;

	if (!hf_get_string(r, o, "type", &type) || !hf_get_string(r, o, "rope_type", &type))
		return false;
	if (type && strcmp(type, "proportional") == 0 && r->row->switches & SWITCH_LAYER_SIZES)
		return read_proportional(r, o, rope);
	if (!read_partial(r, o, rope))
		return false;
	if (!type || strcmp(type, "default") == 0)
		return true;
	rope->original_context = r->m->spec.context_train;
	if (!hf_get_f64(r, o, "factor", &rope->factor) ||
	    !hf_get_u32(r, o, "original_max_position_embeddings", OPTIONAL, UINT32_MAX, &rope->original_context))
		return false;
	if (strcmp(type, "linear") == 0) {
		rope->scaling = ROPE_LINEAR;
		return hf_get(r, o, "factor") ||
		       error_set(r->err, ERROR_FORMAT, "%s: the rotary scaling linear has no factor", r->label);
	}
	if (strcmp(type, "llama3") == 0)
		return read_llama3(r, o, rope);
	if (strcmp(type, "yarn") == 0)
		return read_yarn(r, o, rope);
	if (strcmp(type, "longrope") == 0 && r->row->switches & SWITCH_LONG)
		return read_long(r, o, rope);
	return hf_unsupported(r, "the rotary scaling type", type, "default, linear, llama3 or yarn");
}

/* One object of rotary parameters. */
static bool read_object(struct hf_reader *r, json_t *o, const char *key, struct model_rope *rope)
{
	if (!json_is_object(o))
		return hf_wrong_kind(r, key, o, "an object");
	return hf_get_f64(r, o, "rope_theta", &rope->theta) && read_scaling(r, o, rope) &&
	       (!(r->row->switches & SWITCH_QUERY_SCALE) ||
	        hf_get_f64(r, o, "llama_4_scaling_beta", &r->m->spec.query_scale)) &&
	       hf_check_unread(r, o, r->read_within, key, ".");
}

/* Layers with a window rotate without scaling: by parameters of their own, by another base, or by the same. */
static bool read_window_rope(struct hf_reader *r, json_t *o, const char *key)
{
	struct model_spec *s = &r->m->spec;

	model_plain_rope(&s->window_rope, r->row->window_theta != 0 ? r->row->window_theta : s->rope.theta);
	return hf_get_f64(r, r->root, "rope_local_base_freq", &s->window_rope.theta) &&
	       (!o || read_object(r, o, key, &s->window_rope));
}

bool hf_read_rope(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_rope *rope = &s->rope;
	const char *key = hf_get(r, r->root, "rope_parameters") ? "rope_parameters" : "rope_scaling";
	json_t *o = hf_get(r, r->root, key), *window = NULL;

	uint32_t window_dims = s->layer_sizes ? s->window_rope.dims : s->head_dim;
	rope->dims = s->latent.rank ? s->latent.rotating : s->head_dim;
	if (r->row->recurrent == MIXER_DELTA)
		rope->dims = s->head_dim / 4;
	if (s->latent.rank)
		s->attention_scale = (float)(1 / math_host_sqrt((double)s->head_dim));
	model_plain_rope(rope, r->row->switches & SWITCH_WINDOW_ROPE && r->row->window_theta != 0 ? 1000000 : 10000);
	if (!hf_get_f64(r, r->root, "rope_theta", &rope->theta) || !read_partial(r, r->root, rope))
		return false;
	if (o && (hf_get(r, o, "full_attention") || hf_get(r, o, "sliding_attention"))) {
		if (!(r->row->switches & SWITCH_WINDOW_ROPE))
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: %s differs between kinds of layers, expected one for all", r->label, key);
		window = hf_get(r, o, "sliding_attention");
		json_t *full = hf_get(r, o, "full_attention");
		if (!hf_check_unread(r, o, r->read_within, key, "."))
			return false;
		o = full;
	}
	if (o && !read_object(r, o, key, rope))
		return false;
	s->query_scale_length = rope->original_context;
	s->window_rope = *rope;
	s->window_rope.dims = s->layer_sizes ? window_dims : rope->dims;
	return !(r->row->switches & SWITCH_WINDOW_ROPE) || read_window_rope(r, window, key);
}

/* ---- scales */

static bool read_scale(struct hf_reader *r, const char *field, bool divides, float *out)
{
	double value = 0;

	if (!hf_get_f64(r, r->root, field, &value))
		return false;
	if (value != 0 && !hparam_range(r->label, field, value, 1e-6, 1e6, r->err))
		return false;
	*out = value == 0 || value == 1 ? 0 : (float)(divides ? 1 / value : value);
	return true;
}

static bool read_scales(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double scalar = s->head_dim;

	if (r->row->switches & SWITCH_SCALES)
		return read_scale(r, "embedding_multiplier", false, &s->embed_scale) &&
		       read_scale(r, "residual_multiplier", false, &s->residual_scale) &&
		       read_scale(r, "attention_multiplier", false, &s->attention_scale) &&
		       read_scale(r, "logits_scaling", true, &s->logit_scale);
	if (r->row->switches & SWITCH_LOGIT_SCALE) {
		s->logit_scale = 0.0625f; /* the classes' default */
		return !hf_get(r, r->root, "logit_scale") || read_scale(r, "logit_scale", false, &s->logit_scale);
	}
	if (r->row->switches & SWITCH_CAPS && (!read_scale(r, "attn_logit_softcapping", false, &s->score_cap) ||
	                                       !read_scale(r, "final_logit_softcapping", false, &s->logit_cap)))
		return false;
	if (r->row->switches & SWITCH_SCORES_PLAIN)
		s->attention_scale = 1;
	if (!(r->row->switches & SWITCH_QUERY_SCALAR))
		return true;
	if (!hf_get_f64(r, r->root, "query_pre_attn_scalar", &scalar) ||
	    !hparam_range(r->label, "query_pre_attn_scalar", scalar, 1e-6, 1e6, r->err))
		return false;
	s->attention_scale = (float)(1 / math_host_sqrt(scalar));
	return true;
}

/* Which layers rotate, where the file says it layer by layer. */
static bool read_rotating(struct hf_reader *r, uint8_t *rotates)
{
	const json_t *list = hf_get(r, r->root, "no_rope_layers");
	uint32_t interval = 4, layers = r->m->spec.layers;

	if (!hf_get_u32(r, r->root, "no_rope_layer_interval", OPTIONAL, UINT32_MAX, &interval))
		return false;
	if (list && (!json_is_array(list) || json_array_size(list) != layers))
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: no_rope_layers is %s of %zu elements, expected an array of %" PRIu32, r->label,
		                 json_kind(list), json_array_size(list), layers);
	for (uint32_t i = 0; i < layers; i++) {
		const json_t *v = json_array_get(list, i);
		if (list && !json_is_integer(v))
			return hf_wrong_kind(r, "an element of no_rope_layers", v, "0 or 1");
		rotates[i] = list ? json_integer_value(v) != 0 : interval == 0 || (i + 1) % interval != 0;
	}
	return true;
}

bool hf_read_switches(struct hf_reader *r)
{
	uint8_t *rotates = NULL;
	bool ok = read_scales(r);

	if (r->row->recurrent == MIXER_ATTENTION) /* GGUF files alone may say otherwise */
		r->m->file->rotates = true;
	if (ok && r->row->switches & SWITCH_NO_ROPE_LAYERS) {
		rotates = calloc(r->m->spec.layers ? r->m->spec.layers : 1, 1);
		ok = rotates ? read_rotating(r, rotates)
		             : error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label,
		                         r->m->spec.layers);
	}
	ok = ok && model_set_rotations(r->m, rotates, r->label, r->err);
	free(rotates);
	return ok;
}
