/* loaders/model/model_hf_beside.c - what config.json says of Falcon H1, whose layers attend and scan side by side: the
 * factors of all their parts.
 *
 * Owns: where each factor goes. One of an input becomes one of what is made of it, as all of these are products: of the
 * scan's gate and steps, of the taps of its convolution, of scores and of attention's result.
 */
#include "loaders/model/model_hf_fields.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/math_host.h"

enum { GATE, VALUES, KEYS, QUERIES, STEPS, SECTIONS };

static bool check_factor(struct hf_reader *r, const char *field, double value)
{
	const double size = value < 0 ? -value : value;

	return hparam_range(r->label, field, size, 1e-6, 1e6, r->err);
}

static bool read_factor(struct hf_reader *r, const char *field, double *out)
{
	*out = 1;
	return hf_get_f64(r, r->root, field, out) && check_factor(r, field, *out);
}

/* n numbers; all 1 where the file says nothing. */
static bool read_list(struct hf_reader *r, const char *field, size_t n, double *out)
{
	const json_t *list = hf_get(r, r->root, field);

	if (list && (!json_is_array(list) || json_array_size(list) != n))
		return error_set(r->err, ERROR_FORMAT, "%s: %s is %s of %zu elements, expected an array of %zu",
		                 r->label, field, json_kind(list), json_array_size(list), n);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		if (list && !json_is_number(v))
			return hf_wrong_kind(r, field, v, "a list of numbers");
		out[i] = list ? json_number_value(v) : 1;
		if (!check_factor(r, field, out[i]))
			return false;
	}
	return true;
}

/* 0: none. */
static float factor_of(double value) { return value == 1 ? 0 : (float)value; }

/* Of each channel, in the order of the taps. */
static bool make_taps(struct hf_reader *r, const double section[SECTIONS], double in)
{
	const struct model_recurrent *c = &r->m->spec.recurrent;
	const uint64_t values = (uint64_t)c->value_heads * c->value_dim, rows = (uint64_t)c->key_heads * c->key_dim;
	float *out = malloc((values + 2 * rows) * c->taps * sizeof *out);

	if (!out)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for factors of convolutions", r->label);
	r->m->file->taps_times = out;
	for (uint64_t i = 0; i < values + 2 * rows; i++) {
		const int of = i < values ? VALUES : i < values + rows ? KEYS : QUERIES;
		for (uint32_t k = 0; k < c->taps; k++)
			*out++ = (float)(section[of] * in);
	}
	return true;
}

static bool read_attention(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double in, out, keys;
	bool bias = false;

	if (!read_factor(r, "attention_in_multiplier", &in) || !read_factor(r, "attention_out_multiplier", &out) ||
	    !read_factor(r, "key_multiplier", &keys) || !hf_get_bool(r, r->root, "attention_bias", &bias))
		return false;
	if (in != 1 && bias)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: attention_in_multiplier is %.9g beside attention_bias, expected 1", r->label, in);
	s->factors.attention = factor_of(in * out);
	s->attention_scale = model_scale_of((float)(in * in * keys / math_host_sqrt((double)s->head_dim)));
	return true;
}

/* Whether there is a norm beside the scan's gate, and where. */
static bool read_norm(struct hf_reader *r)
{
	bool norm = false, first = true;

	if (!hf_get_bool_or_none(r, "mamba_rms_norm", &norm) ||
	    !hf_get_bool_or_none(r, "mamba_norm_before_gate", &first))
		return false;
	r->m->spec.scan_norm = !norm ? SCAN_NORM_NONE : first ? SCAN_NORM_FIRST : SCAN_NORM_LAST;
	r->m->file->needs.group[GROUP_SCAN_NORM] = norm ? NEED_ALWAYS : NEED_NOT;
	return true;
}

bool hf_read_beside(struct hf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double section[SECTIONS], ffn[2], in, out, embed, head;

	if (!read_attention(r) || !read_norm(r) || !read_list(r, "ssm_multipliers", SECTIONS, section) ||
	    !read_list(r, "mlp_multipliers", 2, ffn) || !read_factor(r, "ssm_in_multiplier", &in) ||
	    !read_factor(r, "ssm_out_multiplier", &out) || !read_factor(r, "embedding_multiplier", &embed) ||
	    !read_factor(r, "lm_head_multiplier", &head))
		return false;
	s->factors.scan = factor_of(out);
	s->factors.scan_gate = factor_of(in * section[GATE]);
	s->factors.scan_steps = factor_of(in * section[STEPS]);
	s->factors.ffn_gate = factor_of(ffn[0]);
	s->factors.ffn = factor_of(ffn[1]);
	s->embed_scale = model_scale_of((float)embed);
	s->logit_scale = model_scale_of((float)head);
	return make_taps(r, section, in);
}
