/* loaders/model/model_hf_scales.c - what config.json says of the scales and bounds that some families have (enum
 * arch_switch). Defaults are those of the transformers classes. */
#include "loaders/model/model_hf_fields.h"

#include "base/math_host.h"

/* A bound: null, and where the class has none, absent, mean that there is none. */
static bool read_cap(struct hf_reader *r, const char *field, struct model_scale *out)
{
	double value = 0;

	if (!hf_get(r, r->root, field))
		return true;
	if (!hf_get_f64(r, r->root, field, &value) || !hparam_range(r->label, field, value, 1e-6, 1e6, r->err))
		return false;
	*out = model_scale_of((float)value);
	return true;
}

/* A factor, `usual` where the file says nothing; or what is divided by, which then is not 0. */
static bool read_scale(struct hf_reader *r, const char *field, double usual, bool divides, struct model_scale *out)
{
	double value = usual;

	if (!hf_get_f64(r, r->root, field, &value))
		return false;
	if ((value != 0 || divides) && !hparam_range(r->label, field, value, 1e-6, 1e6, r->err))
		return false;
	*out = model_scale_of((float)(divides ? 1 / value : value));
	return true;
}

/* How scores lose with distance, and MPT's scale of them. */
static bool read_alibi(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;

	if (r->row->alibi == 0 || !r->row->inner)
		return true;
	if (!hf_get_f64(r, r->root, "alibi_bias_max", &s->alibi) ||
	    !hparam_range(r->label, "alibi_bias_max", s->alibi, 1e-6, 1e6, r->err))
		return false;
	return !hf_get(r, r->root, "softmax_scale") || read_scale(r, "softmax_scale", 1, false, &s->attention_scale);
}

/* Llama 4's: whether queries of layers that do not rotate grow with the position, which older files say as a number. */
static bool read_temperature(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const json_t *on = hf_get(r, r->root, "attn_temperature_tuning");
	double scale = 0.1, length = 8192;

	if (r->row->window != WINDOW_CHUNKS)
		return true;
	if (on && !json_is_boolean(on) && !json_is_integer(on))
		return hf_wrong_kind(r, "attn_temperature_tuning", on, "true or false");
	if (!hf_get_f64(r, r->root, "attn_scale", &scale) || !hf_get_f64(r, r->root, "floor_scale", &length) ||
	    !hparam_range(r->label, "floor_scale", length, 1, UINT32_MAX, r->err) ||
	    !hparam_range(r->label, "attn_scale", scale, 0, 1e3, r->err))
		return false;
	if (length != (uint32_t)length)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: floor_scale is %.9g, expected an integer", r->label,
		                 length);
	s->query_scale = on && (json_is_false(on) || (json_is_integer(on) && !json_integer_value(on))) ? 0 : scale;
	s->query_scale_length = (uint32_t)length;
	s->query_scale_offset = 1;
	s->query_scale_still = true;
	r->m->file->head_ones = true;
	return hf_get_bool(r, r->root, "use_qk_norm", &r->m->file->head_ones);
}

/* MiniCPM's: each sum counts by the depth, and logits by the width of the model that its settings were found with. */
static bool read_depth_scales(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const double root = math_host_sqrt((double)s->layers);
	double depth = root, width = s->hidden;

	if (!read_scale(r, "scale_emb", 1, false, &s->embed_scale) || !hf_get_f64(r, r->root, "scale_depth", &depth) ||
	    !hf_get_f64(r, r->root, "dim_model_base", &width) ||
	    !hparam_range(r->label, "scale_depth", depth, 1e-6, 1e6, r->err) ||
	    !hparam_range(r->label, "dim_model_base", width, 1, MODEL_MAX_WIDTH, r->err))
		return false;
	s->residual_scale = model_scale_of((float)(depth / root));
	s->logit_scale = model_scale_of((float)(width / s->hidden));
	return true;
}

bool hf_read_scales(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double scalar = s->head_dim;

	if (!read_alibi(r) || !read_temperature(r))
		return false;
	if (r->row->switches & SWITCH_DEPTH_SCALES)
		return read_depth_scales(r);

	if (r->row->switches & SWITCH_SCALES)
		return read_scale(r, "embedding_multiplier", 1, false, &s->embed_scale) &&
		       read_scale(r, "residual_multiplier", 1, false, &s->residual_scale) &&
		       read_scale(r, "attention_multiplier", 1, false, &s->attention_scale) &&
		       read_scale(r, "logits_scaling", 1, true, &s->logit_scale);
	if (r->row->switches & SWITCH_LOGIT_SCALE)
		return read_scale(r, "logit_scale", 0.0625, false, &s->logit_scale);
	if (r->row->switches & SWITCH_CAPS && !read_cap(r, "attn_logit_softcapping", &s->score_cap))
		return false;
	if (r->row->switches & (SWITCH_CAPS | SWITCH_LOGIT_CAP) &&
	    !read_cap(r, "final_logit_softcapping", &s->logit_cap))
		return false;
	if (r->row->switches & SWITCH_SCORES_PLAIN)
		s->attention_scale = model_scale_of(1);
	if (!(r->row->switches & SWITCH_QUERY_SCALAR))
		return true;
	if (!hf_get_f64(r, r->root, "query_pre_attn_scalar", &scalar) ||
	    !hparam_range(r->label, "query_pre_attn_scalar", scalar, 1e-6, 1e6, r->err))
		return false;
	s->attention_scale = model_scale_of((float)(1 / math_host_sqrt(scalar)));
	return true;
}

bool hf_read_embed_root(struct hf_reader *r)
{
	bool root = false;

	if (!r->row->embed_root)
		return true;
	if (!hf_get_bool(r, r->root, r->row->embed_root, &root))
		return false;
	if (!root)
		r->m->spec.embed_scale = (struct model_scale){ false, 0 };
	return true;
}
