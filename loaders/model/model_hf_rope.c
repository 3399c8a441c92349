/* loaders/model/model_hf_rope.c - what config.json says of positions: rotary embedding, and which layers rotate by
 * what. Defaults are those of the transformers classes. */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

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

/* 0 means what absent does. */
static bool get_beta(struct hf_reader *r, const json_t *o, const char *name, double usual, double *out)
{
	*out = 0;
	if (!hf_get_f64(r, o, name, out))
		return false;
	*out = *out == 0 ? usual : *out;
	return true;
}

static bool read_yarn(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	double mscale = 0, mscale_all = 0;
	bool truncate = true;

	rope->scaling = ROPE_YARN;
	if (!hf_get(r, o, "factor")) {
		if (rope->original_context == 0)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: original_max_position_embeddings is 0, expected at least 1", r->label);
		rope->factor = (double)r->m->spec.context_train / rope->original_context;
	}
	if (!get_beta(r, o, "beta_fast", 32, &rope->beta_fast) || !get_beta(r, o, "beta_slow", 1, &rope->beta_slow) ||
	    !hf_get_bool(r, o, "truncate", &truncate) || !hf_get_f64(r, o, "mscale", &mscale) ||
	    !hf_get_f64(r, o, "mscale_all_dim", &mscale_all))
		return false;
	/* Classes with parameters for each kind of layers do not look for it there. */
	rope->yarn_truncate = truncate || r->row->switches & SWITCH_WINDOW_ROPE;
	rope->attention_factor =
		mscale != 0 && mscale_all != 0
			? model_yarn_attention(rope->factor, mscale) / model_yarn_attention(rope->factor, mscale_all)
			: model_yarn_attention(rope->factor, 1.0);
	if (r->row->switches & SWITCH_LATENT && mscale_all != 0) {
		double by = model_yarn_attention(rope->factor, mscale_all);
		r->m->spec.attention_scale =
			model_scale_of((float)(by * by / math_host_sqrt((double)r->m->spec.head_dim)));
	}
	return hf_get_f64(r, o, "attention_factor", &rope->attention_factor);
}

/* How much of a head rotates. */
static bool read_partial(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	double partial = 1;

	if (!hf_get_f64(r, o, "partial_rotary_factor", &partial))
		return false;
	if (r->row->rotary_dim && o == r->root && hf_get(r, o, r->row->rotary_dim)) {
		uint32_t dims = 0;
		if (!hf_get_u32(r, o, r->row->rotary_dim, OPTIONAL, r->m->spec.head_dim, &dims))
			return false;
		if (hf_get(r, o, "partial_rotary_factor") && dims != (uint32_t)(r->m->spec.head_dim * partial))
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: %s is %" PRIu32 ", but partial_rotary_factor is %.9g", r->label,
			                 r->row->rotary_dim, dims, partial);
		rope->dims = dims;
		return true;
	}
	if (r->row->switches & SWITCH_LATENT) /* there, qk_rope_head_dim says it */
		return true;
	if (partial == 1) {
		rope->dims = hf_get(r, o, "partial_rotary_factor") && !r->m->spec.layer_sizes
		                     ? r->m->spec.head_dim
		                     : rope->dims;
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

/* Attention factors of their own for shorter and longer sessions, which must be one: files have no others. */
static bool read_mscales(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	double near = 0, far = 0;

	if (!(r->row->routing & ROUTING_NEAR))
		return true;
	if (!hf_get_f64(r, o, "short_mscale", &near) || !hf_get_f64(r, o, "long_mscale", &far))
		return false;
	if (near != far)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: short_mscale is %.9g and long_mscale %.9g, expected the same", r->label, near,
		                 far);
	if (near != 0)
		rope->attention_factor = near;
	return true;
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
	return read_mscales(r, o, rope) && hf_get_f64(r, o, "attention_factor", &rope->attention_factor);
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

/* Members of scalings, which say nothing where there is none. */
static const char scaling_members[] = "factor original_max_position_embeddings beta_fast beta_slow mscale "
				      "mscale_all_dim attention_factor truncate low_freq_factor high_freq_factor";

/* They count as read. */
static bool pass_over(struct hf_reader *r, const json_t *o, const char *members)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	{
		if (arch_word_in(members, name))
			hf_get(r, o, name);
	}
	return true;
}

/* Hunyuan's: its files' other members change nothing beside alpha. */
static bool read_alpha(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	const double dims = rope->dims;
	double alpha = 0;

	pass_over(r, o, scaling_members);
	if (!hf_get_f64(r, o, "alpha", &alpha))
		return false;
	if (alpha == 0)
		return error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: the rotary scaling is \"dynamic\" without alpha, which changes with the length of a "
			"text and is not supported",
			r->label);
	if (!hparam_range(r->label, "the rotary scaling's alpha", alpha, 1e-6, 1e9, r->err) ||
	    !hparam_range(r->label, "the head dimension", dims, 4, MODEL_MAX_HEAD_DIM, r->err) ||
	    !hparam_range(r->label, "the rotary base (theta)", rope->theta, 1e-6, 1e30, r->err))
		return false;
	rope->theta *= math_host_pow(alpha, dims / (dims - 2));
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
	if (!type || strcmp(type, "default") == 0 ||
	    (strcmp(type, "mrope") == 0 && arch_word_in(r->row->fields, "mrope_section")))
		return pass_over(r, o, type ? scaling_members : NULL);
	if (strcmp(type, "dynamic") == 0 && r->row->switches & SWITCH_ALPHA)
		return read_alpha(r, o, rope);
	if (r->row->switches & SWITCH_LONG && (strcmp(type, "su") == 0 || strcmp(type, "yarn") == 0))
		type = "longrope"; /* names that older files give it */
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

/* By what pairs rotate of pictures' tokens. Where that is left out, the classes take a half, a quarter and a quarter of
 * the pairs, or nearly so. */
static bool read_sections(struct hf_reader *r, const json_t *o, struct model_rope *rope)
{
	const json_t *list = arch_word_in(r->row->fields, "mrope_section") ? hf_get(r, o, "mrope_section") : NULL;
	uint32_t section[3] = { 24, 20, 20 };

	if (!arch_word_in(r->row->fields, "mrope_section"))
		return true;
	if (!list && rope->dims == 64)
		memcpy(section, (uint32_t[]){ 11, 11, 10 }, sizeof section);
	if (list && (!json_is_array(list) || json_array_size(list) != 3))
		return hf_wrong_kind(r, "mrope_section", list, "a list of three numbers");
	for (size_t i = 0; list && i < 3; i++) {
		const json_t *v = json_array_get(list, i);
		if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > MODEL_MAX_HEAD_DIM)
			return hf_wrong_kind(r, "mrope_section", v, "numbers of pairs");
		section[i] = (uint32_t)json_integer_value(v);
	}
	return model_take_sections(r->label, "mrope_section", section,
	                           arch_word_in(r->row->fields, "mrope_interleaved"), list != NULL, rope, r->err);
}

/* One object of rotary parameters. */
static bool read_object(struct hf_reader *r, json_t *o, const char *key, struct model_rope *rope)
{
	if (!json_is_object(o))
		return hf_wrong_kind(r, key, o, "an object");
	if (r->row->switches & SWITCH_QUERY_SCALE)
		hf_get(r, o, "max_position_embeddings"); /* which the classes add to what they save */
	return hf_get_f64(r, o, "rope_theta", &rope->theta) && read_scaling(r, o, rope) && read_sections(r, o, rope) &&
	       (!(r->row->switches & SWITCH_QUERY_SCALE) ||
	        hf_get_f64(r, o, "llama_4_scaling_beta", &r->m->spec.query_scale)) &&
	       hf_check_unread(r, o, r->read_within, key, ".");
}

/* Layers with a window rotate without scaling: by parameters of their own, by another base, or by the same. */
static bool read_window_rope(struct hf_reader *r, json_t *o, const char *key)
{
	struct model_spec *s = &r->m->spec;

	model_plain_rope(&s->window_rope, r->row->window_theta != 0 ? r->row->window_theta : s->rope.theta);
	return (arch_word_in(r->row->fields, "rope_local_base_freq") ||
	        hf_get_f64(r, r->root, "rope_local_base_freq", &s->window_rope.theta)) &&
	       (!o || read_object(r, o, key, &s->window_rope));
}

/* Which of the two names of rotary parameters counts: the older one where a file has both, but of classes that put the
 * two together. */
static const char *rope_key(struct hf_reader *r)
{
	static const char newer[] = "rope_parameters", older[] = "rope_scaling";

	if (!hf_get(r, r->root, newer))
		return older;
	return !(r->row->switches & SWITCH_WINDOW_ROPE) && json_object_size(json_object_get(r->root, older))
	               ? older
	               : newer;
}

bool hf_read_rope(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	struct model_rope *rope = &s->rope;
	const char *key = rope_key(r);
	json_t *o = hf_get(r, r->root, key), *window = NULL;

	uint32_t window_dims = s->layer_sizes ? s->window_rope.dims : s->head_dim;
	rope->dims = s->latent.rank ? s->latent.rotating : model_main_dim(s);
	if (s->latent.rank)
		s->attention_scale = model_scale_of((float)(1 / math_host_sqrt((double)s->head_dim)));
	model_plain_rope(rope, 10000);
	const bool each = r->row->switches & SWITCH_WINDOW_ROPE && r->row->switches & SWITCH_PARTIAL;
	if (!hf_get_f64(r, r->root, "rope_theta", &rope->theta) || (!each && !read_partial(r, r->root, rope)))
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
	s->window_rope.dims = s->layer_sizes ? window_dims : each ? s->head_dim : rope->dims;
	return !(r->row->switches & SWITCH_WINDOW_ROPE) || read_window_rope(r, window, key);
}

/* ---- which layers rotate, and by what */

bool hf_read_rotating(struct hf_reader *r, uint8_t *rotates)
{
	const json_t *list = hf_get(r, r->root, "no_rope_layers");
	uint32_t interval = 4, layers = r->m->spec.layers;

	if (r->row->window == WINDOW_CHUNKS && json_is_array(list) && !json_array_size(list))
		list = NULL; /* as its class takes it */

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

/* A layer's rotary base: that of most layers, another one that some have, or 0, by which nothing rotates. */
static bool read_base(struct hf_reader *r, double base, uint8_t *rotation)
{
	struct model_spec *s = &r->m->spec;

	*rotation = base == 0                                     ? ROTATION_NONE
	            : s->rope.theta == 0 || base == s->rope.theta ? ROTATION_MAIN
	                                                          : ROTATION_WINDOW;
	double *theta = *rotation == ROTATION_MAIN ? &s->rope.theta : &s->window_rope.theta;
	if (*rotation != ROTATION_NONE && *theta != 0 && *theta != base)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: %s has more than two bases, %.9g among them", r->label,
		                 r->row->layer_bases, base);
	if (*rotation != ROTATION_NONE)
		*theta = base;
	return true;
}

/* In *rotations, malloc'ed, enum model_rotation for each layer; NULL: the file lists no bases. */
static bool read_layer_bases(struct hf_reader *r, uint8_t **rotations)
{
	const char *field = r->row->layer_bases;
	const json_t *list = field ? hf_get(r, r->root, field) : NULL;
	struct model_spec *s = &r->m->spec;
	const double usual = s->rope.theta;

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) != s->layers)
		return error_set(r->err, ERROR_FORMAT, "%s: %s is %s of %zu elements, expected an array of %" PRIu32,
		                 r->label, field, json_kind(list), json_array_size(list), s->layers);
	*rotations = calloc(s->layers ? s->layers : 1, 1);
	if (!*rotations)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label, s->layers);
	s->rope.theta = s->window_rope.theta = 0;
	for (uint32_t i = 0; i < s->layers; i++) {
		const json_t *v = json_array_get(list, i);
		if (!json_is_number(v))
			return hf_wrong_kind(r, field, v, "a list of numbers");
		if (!read_base(r, json_number_value(v), &(*rotations)[i]))
			return false;
	}
	s->rope.theta = s->rope.theta != 0 ? s->rope.theta : usual;
	s->window_rope.theta = s->window_rope.theta != 0 ? s->window_rope.theta : s->rope.theta;
	return true;
}

bool hf_read_switches(struct hf_reader *r)
{
	uint8_t *rotates = NULL;
	bool ok = hf_read_scales(r) && read_layer_bases(r, &rotates);

	model_drop_scales_of_1(&r->m->spec);
	if (r->row->recurrent == MIXER_ATTENTION) /* GGUF files alone may say otherwise */
		r->m->file->rotates =
			r->row->encoder ? r->row->encoder->rotates : !r->row->pos_embed && r->row->alibi == 0;
	if (ok && r->row->switches & SWITCH_NO_ROPE_LAYERS) {
		rotates = calloc(r->m->spec.layers ? r->m->spec.layers : 1, 1);
		ok = rotates ? hf_read_rotating(r, rotates)
		             : error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", r->label,
		                         r->m->spec.layers);
	}
	ok = ok && model_set_rotations(r->m, rotates, r->label, r->err) && hf_read_embed_root(r);
	free(rotates);
	return ok;
}
