/* loaders/model/model_switches.c - what an architecture's row says of a model beyond its tensors, for both kinds of
 * files: activation function, which layers rotate by what, checks of rotary factors. */
#include "loaders/model/model_load.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/math_host.h"

void model_take_row(struct model_spec *s, const struct arch_row *row)
{
	s->form = row->form;
	s->act = row->act;
	s->norms_rotated = row->switches & SWITCH_NORMS_ROTATED;
	s->head_weights = row->head_weights;
	s->centred = row->switches & SWITCH_LAYER_NORM;
	s->value_norms = row->switches & SWITCH_VALUE_NORMS;
	s->parallel = row->switches & SWITCH_PARALLEL;
	s->attends_beside = row->attends_beside;
	s->one_part = row->switches & SWITCH_ONE_PART;
	s->encodes = row->switches & SWITCH_ENCODES;
	s->pictures_whole = arch_word_in(row->wrapped, "gemma3");
	s->alibi = row->encoder ? row->encoder->alibi : row->alibi;
	s->pictures_windowed = arch_word_in(row->wrapped, "gemma4"); /* whole, if the files say so */
	if (row->switches & SWITCH_EMBED_ROOT)
		s->embed_scale = model_scale_of(1); /* of a size that is not known yet */
}

void model_low_queries(struct model *m)
{
	struct model_needs *n = &m->file->needs;

	if (m->spec.latent.query_rank) {
		n->group[GROUP_QUERIES] = NEED_NOT;
		n->group[GROUP_LOW_QUERIES] = NEED_ALWAYS;
	}
}

void model_drop_scales_of_1(struct model_spec *s)
{
	struct model_scale *const factor[] = { &s->embed_scale, &s->residual_scale, &s->logit_scale, &s->router_scale };

	for (size_t i = 0; i < sizeof factor / sizeof *factor; i++)
		if (factor[i]->value == 1)
			*factor[i] = (struct model_scale){ false, 0 };
}

bool model_take_sections(const char *label, const char *name, const uint32_t section[3], bool interleaved, bool stated,
                         struct model_rope *rope, struct error *err)
{
	const uint32_t pairs = section[0] + section[1] + section[2];

	if (pairs != rope->dims / 2 || !section[0])
		return !stated || error_set(err, ERROR_FORMAT,
		                            "%s: %s has %" PRIu32 " pairs, expected the %" PRIu32 " that rotate", label,
		                            name, pairs, rope->dims / 2);
	for (int i = 0; i < 3; i++)
		rope->sections[i] = section[i];
	rope->interleaved = interleaved;
	return true;
}

void model_plain_rope(struct model_rope *rope, double theta)
{
	*rope = (struct model_rope){ .dims = rope->dims, .theta = theta, .factor = 1, .attention_factor = 1 };
}

bool model_slides_make(struct model *m, const char *label, struct error *err)
{
	uint32_t layers = m->spec.layers;

	if (!m->file->layer_is_sliding && layers <= MODEL_MAX_LAYERS)
		m->file->layer_is_sliding = calloc(layers ? layers : 1, 1);
	m->spec.layer_is_sliding = m->file->layer_is_sliding;
	return m->file->layer_is_sliding ||
	       error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, layers);
}

bool model_mixers_make(struct model *m, const char *label, struct error *err)
{
	uint32_t layers = m->spec.layers;

	if (!hparam_range(label, "the number of layers", layers, 1, MODEL_MAX_LAYERS, err))
		return false;
	if (!m->file->layer_mixer)
		m->file->layer_mixer = calloc(layers, 1);
	m->spec.layer_mixer = m->file->layer_mixer;
	return m->file->layer_mixer ||
	       error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, layers);
}

bool model_route_layer(struct model *m, uint32_t layer, const char *label, struct error *err)
{
	struct model_file *f = m->file;

	if (!f->layer_routes && !(f->layer_routes = calloc(m->spec.layers, 1)))
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, m->spec.layers);
	m->spec.layer_routes = f->layer_routes;
	f->layer_routes[layer] = 1;
	return true;
}

bool model_scan_channels(struct model *m, const char *label, struct error *err)
{
	struct model_recurrent *c = &m->spec.recurrent;

	if (!hparam_range(label, "the number of heads in layers with a state", c->value_heads, 1, 4096, err) ||
	    !hparam_range(label, "the number of groups of heads in layers with a state", c->key_heads, 1, 4096, err))
		return false;
	if (c->value_heads % c->key_heads)
		return error_set(err, ERROR_FORMAT,
		                 "%s: layers with a state have %" PRIu32 " heads, expected a multiple of the %" PRIu32
		                 " groups",
		                 label, c->value_heads, c->key_heads);
	if (!c->key_dim || c->key_dim % 16 || c->key_dim > 1024 || !c->value_dim || c->value_dim % 16 ||
	    c->value_dim > 1024)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: layers with a state have one of %" PRIu32 " rows for heads of %" PRIu32
		                 " values, which is not supported: jitrun runs multiples of 16 up to 1024",
		                 label, c->key_dim, c->value_dim);
	c->channels = c->value_heads * c->value_dim + 2 * c->key_heads * c->key_dim;
	return true;
}

bool model_delta_channels(struct model *m, const char *label, struct error *err)
{
	struct model_recurrent *c = &m->spec.recurrent;

	if (!hparam_range(label, "the number of heads of keys in layers with a state", c->key_heads, 1, 4096, err) ||
	    !hparam_range(label, "the number of heads of values in layers with a state", c->value_heads, 1, 4096, err))
		return false;
	if (c->value_heads % c->key_heads)
		return error_set(err, ERROR_FORMAT,
		                 "%s: layers with a state have %" PRIu32 " heads of values, expected a multiple of the "
		                 "%" PRIu32 " of keys",
		                 label, c->value_heads, c->key_heads);
	if (!c->key_dim || !c->value_dim || c->key_dim % 16 || c->value_dim % 16 || c->key_dim > 256 ||
	    c->value_dim > 256)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: layers with a state have keys of %" PRIu32 " and values of %" PRIu32
		                 " elements, which is not supported: jitrun runs multiples of 16 up to 256",
		                 label, c->key_dim, c->value_dim);
	if (m->file->arch->groups & GROUP(DELTA_APART) && (c->key_heads * c->key_dim) % 32)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: layers with a state have %" PRIu32 " heads of keys of %" PRIu32
		                 " elements, which is not supported: jitrun runs multiples of 32 together",
		                 label, c->key_heads, c->key_dim);
	c->channels = 2 * c->key_heads * c->key_dim + c->value_heads * c->value_dim;
	return true;
}

static bool slides(const struct model_spec *s, uint32_t layer)
{
	return s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[layer]);
}

static enum model_rotation rotation_of(const struct model *m, uint32_t switches, const uint8_t *rotates, uint32_t layer)
{
	const struct model_spec *s = &m->spec;

	if (m->file->arch->layer_bases)
		return rotates ? (enum model_rotation)rotates[layer] : ROTATION_MAIN;
	if (switches & SWITCH_NO_ROPE)
		return m->file->rotates ? ROTATION_MAIN : ROTATION_NONE;
	if (switches & SWITCH_NO_ROPE_LAYERS)
		return (rotates ? rotates[layer] : (layer + 1) % 4 != 0) ? ROTATION_MAIN : ROTATION_NONE;
	if (switches & SWITCH_WINDOWS_ROTATE)
		return slides(s, layer) || (s->dense_rotates && !model_layer_routes(s, layer)) || !m->file->windowed
		               ? ROTATION_MAIN
		               : ROTATION_NONE;
	return slides(s, layer) ? ROTATION_WINDOW : ROTATION_MAIN;
}

bool model_set_rotations(struct model *m, const uint8_t *rotates, const char *label, struct error *err)
{
	struct model_spec *s = &m->spec;
	uint32_t switches = m->file->arch->switches;

	/* A norm behind the rotation undoes what multiplies the cosines and sines, but beside its epsilon. */
	const double times = s->rope.attention_factor;
	if (switches & SWITCH_NORMS_ROTATED && times != 0 && times != 1) {
		s->head_eps = (float)((double)s->norm_eps / (times * times));
		s->rope.attention_factor = s->window_rope.attention_factor = 1;
	}
	if (switches & SWITCH_EMBED_ROOT)
		s->embed_scale = model_scale_of((float)math_host_sqrt((double)s->hidden));
	if (switches & SWITCH_NO_ROPE && !m->file->rotates)
		s->rope.dims = s->window_rope.dims = s->head_dim;
	const bool listed = m->file->arch->layer_bases && rotates;
	if ((!listed &&
	     !(switches & (SWITCH_NO_ROPE | SWITCH_NO_ROPE_LAYERS | SWITCH_WINDOWS_ROTATE | SWITCH_WINDOW_ROPE))) ||
	    s->layers > MODEL_MAX_LAYERS)
		return true;
	m->file->layer_rotation = calloc(s->layers ? s->layers : 1, 1);
	if (!m->file->layer_rotation)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, s->layers);
	for (uint32_t i = 0; i < s->layers; i++)
		m->file->layer_rotation[i] = (uint8_t)rotation_of(m, switches, rotates, i);
	s->layer_rotation = m->file->layer_rotation;
	return true;
}

bool model_check_factors(const char *label, const char *name, const float *factor, uint32_t n, struct error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(factor[i] >= 1e-30f && factor[i] <= 1e30f))
			return error_set(err, ERROR_FORMAT, "%s: a value of %s is %.10g, expected 1e-30 to 1e+30",
			                 label, name, (double)factor[i]);
	return true;
}
