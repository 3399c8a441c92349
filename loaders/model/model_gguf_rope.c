/* loaders/model/model_gguf_rope.c - what GGUF keys say of positions and scales: rotary embedding, windows by layer, and
 * the scales that some families have (enum arch_switch). */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

static bool read_scaling_type(struct gguf_reader *r, enum rope_scaling *out)
{
	struct gguf_str name;
	char text[60];
	bool found;

	if (!gguf_string(r->g, gguf_key(r, "rope.scaling.type"), &name, &found, r->err))
		return false;
	/* without a type, a factor means linear scaling; scale_linear is the older name of that factor */
	*out = gguf_find(r->g, gguf_key(r, "rope.scaling.factor")) || gguf_find(r->g, gguf_key(r, "rope.scale_linear"))
	               ? ROPE_LINEAR
	               : ROPE_NONE;
	if (!found)
		return true;
	static const struct {
		const char *name;
		enum rope_scaling scaling;
	} known[] = { { "none", ROPE_NONE }, { "linear", ROPE_LINEAR }, { "yarn", ROPE_YARN } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (name.n == strlen(known[i].name) && memcmp(name.p, known[i].name, name.n) == 0) {
			*out = known[i].scaling;
			return true;
		}
	gguf_key(r, "rope.scaling.type");
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is \"%s\", expected none, linear or yarn", r->g->path,
	                 r->key, error_quote(text, sizeof text, name.p, name.n));
}

static bool read_yarn(struct gguf_reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	double attn = 1, yarn_attn = 1;

	rope->original_context = r->m->spec.context_train;
	rope->beta_fast = 32;
	rope->beta_slow = 1;
	rope->yarn_truncate = !(r->row->switches & SWITCH_YARN_EXACT);
	if (!gguf_get_u32(r, "rope.scaling.original_context_length", OPTIONAL, &rope->original_context) ||
	    !gguf_get_f64(r, "rope.scaling.yarn_beta_fast", OPTIONAL, &rope->beta_fast) ||
	    !gguf_get_f64(r, "rope.scaling.yarn_beta_slow", OPTIONAL, &rope->beta_slow) ||
	    !gguf_get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn) ||
	    !gguf_get_f64(r, "rope.scaling.yarn_attn_factor", OPTIONAL, &yarn_attn))
		return false;
	double own = model_yarn_attention(rope->factor, 1.0), all = 0;
	if (r->row->switches & SWITCH_QUERY_SCALE &&
	    !gguf_get_f64(r, "rope.scaling.yarn_log_multiplier", OPTIONAL, &all))
		return false;
	if (all != 0)
		own /= model_yarn_attention(rope->factor, all);
	if (r->row->switches & SWITCH_YARN_FACTOR && gguf_find(r->g, gguf_key(r, "rope.scaling.yarn_attn_factor")))
		own = 1;
	if (r->row->switches & SWITCH_LATENT) { /* the multiplier is that of the scores' scale, 0.1 included */
		double by = 0;
		if (!gguf_get_f64(r, "rope.scaling.yarn_log_multiplier", OPTIONAL, &by))
			return false;
		by = 1 + (rope->factor > 1 ? by * math_host_log(rope->factor) : 0);
		r->m->spec.attention_scale =
			model_scale_of((float)(by * by / math_host_sqrt((double)r->m->spec.head_dim)));
		own = 1;
	}
	/* in GGUF the attention factors multiply YaRN's own, they do not replace it */
	rope->attention_factor = attn * yarn_attn * own;
	return true;
}

bool gguf_read_rope(struct gguf_reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	double attn = 1, yarn_attn = 1;

	rope->dims = model_main_dim(&r->m->spec);
	if (r->m->spec.latent.rank)
		r->m->spec.attention_scale = model_scale_of((float)(1 / math_host_sqrt((double)r->m->spec.head_dim)));
	rope->theta = 10000;
	rope->factor = 1;
	rope->attention_factor = 1;
	if (!gguf_get_u32(r, "rope.dimension_count", OPTIONAL, &rope->dims) ||
	    !gguf_get_f64(r, "rope.freq_base", OPTIONAL, &rope->theta) || !read_scaling_type(r, &rope->scaling))
		return false;
	if (rope->scaling != ROPE_NONE && (!gguf_get_f64(r, "rope.scale_linear", OPTIONAL, &rope->factor) ||
	                                   !gguf_get_f64(r, "rope.scaling.factor", OPTIONAL, &rope->factor)))
		return false;
	rope->factor = rope->factor == 0 ? 1 : rope->factor; /* where one is given, 0 is as good as none */
	if (rope->scaling == ROPE_YARN)
		return read_yarn(r);
	if (!gguf_get_f64(r, "rope.scaling.yarn_attn_factor", OPTIONAL, &yarn_attn) ||
	    !gguf_get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn))
		return false;
	if (r->row->switches & SWITCH_LONG) {
		rope->attention_factor = attn * yarn_attn;
		rope->original_context = r->m->spec.context_train;
		return gguf_get_u32(r, "rope.scaling.original_context_length", OPTIONAL, &rope->original_context);
	}
	return attn * yarn_attn == 1 ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: key %s is %.9g without YaRN scaling, which is not supported, expected 1", r->g->path,
	                 gguf_key(r, attn == 1 ? "rope.scaling.yarn_attn_factor" : "rope.scaling.attn_factor"),
	                 attn == 1 ? yarn_attn : attn);
}

/* ---- windows by layer */

static bool slides_by_list(struct gguf_reader *r, const struct gguf_kv *kv, uint32_t layer, bool *out)
{
	if (kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 || kv->item == GGUF_F64)
		return error_set(r->err, ERROR_FORMAT, "%s: the array of key %s holds no true and false", r->g->path,
		                 r->key);
	if (kv->count != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the array of key %s has %" PRIu64 " values, expected one for each of the %" PRIu32
		                 " layers",
		                 r->g->path, r->key, kv->count, r->m->spec.layers);
	*out = gguf_item_int(kv, layer) != 0;
	return true;
}

/* A list of layers with a window, or a number: every so many layers one has none. */
static bool read_windows(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "attention.sliding_window_pattern"));
	uint32_t period = r->row->window_period;

	if (kv && kv->type != GGUF_ARRAY && !gguf_get_u32(r, "attention.sliding_window_pattern", OPTIONAL, &period))
		return false;
	if (!s->sliding_window)
		return true;
	r->m->file->windowed = true;
	if (!model_slides_make(r->m, r->g->path, r->err))
		return false;
	uint8_t *slides = r->m->file->layer_is_sliding;
	for (uint32_t i = 0; i < s->layers; i++) {
		bool one = period == 0 || i % period + 1 < period;
		if (r->row->full_first || (r->row->encoder && r->row->encoder->one_first))
			one = period == 0 || i % period != 0;
		if (kv && kv->type == GGUF_ARRAY && !slides_by_list(r, kv, i, &one))
			return false;
		slides[i] = one;
	}
	return true;
}

/* ---- scales */

/* What is taken where there is no key, 0: none, as a key of 0 says. */
static bool read_cap(struct gguf_reader *r, const char *suffix, double usual, struct model_scale *out)
{
	double value = usual;

	if (!gguf_get_f64(r, suffix, OPTIONAL, &value) ||
	    (value != 0 && !hparam_range(r->g->path, r->key, value, 1e-6, 1e6, r->err)))
		return false;
	*out = (struct model_scale){ value != 0, (float)value };
	return true;
}

/* A key that is absent and one of 0 mean that there is none. */
static bool read_scale(struct gguf_reader *r, const char *suffix, bool divides, struct model_scale *out)
{
	double value = 0;

	if (!gguf_get_f64(r, suffix, OPTIONAL, &value))
		return false;
	if (value != 0 && !hparam_range(r->g->path, r->key, value, 1e-6, 1e6, r->err))
		return false;
	*out = value != 0 ? model_scale_of((float)(divides ? 1 / value : value)) : (struct model_scale){ false, 0 };
	return true;
}

static bool read_scales(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	double beta = 0;

	if (r->row->alibi != 0 && arch_word_in(r->row->keys, "attention.max_alibi_bias") &&
	    (!gguf_get_f64(r, "attention.max_alibi_bias", REQUIRED, &s->alibi) ||
	     !hparam_range(r->g->path, r->key, s->alibi, 1e-6, 1e6, r->err)))
		return false;
	if (r->row->switches & SWITCH_SCALES)
		return read_scale(r, "embedding_scale", false, &s->embed_scale) &&
		       read_scale(r, "residual_scale", false, &s->residual_scale) &&
		       read_scale(r, "attention.scale", false, &s->attention_scale) &&
		       read_scale(r, "logit_scale", true, &s->logit_scale);
	if (r->row->switches & SWITCH_LOGIT_SCALE)
		return (!r->row->gguf_states_window || gguf_find(r->g, gguf_key(r, "logit_scale")) ||
		        gguf_missing(r)) &&
		       read_scale(r, "logit_scale", false, &s->logit_scale);
	if (r->row->window == WINDOW_CHUNKS) { /* numbers of llama.cpp's, which no key says */
		s->query_scale = 0.1;
		s->query_scale_length = 8192;
		s->query_scale_offset = 1;
		s->query_scale_still = true;
		r->m->file->head_ones = s->experts != 128;
	}
	if (arch_word_in(r->row->keys, "attention.temperature_scale")) {
		s->query_scale_length = s->rope.original_context;
		if (!gguf_get_f64(r, "attention.temperature_scale", OPTIONAL, &beta) ||
		    !gguf_get_u32(r, "attention.temperature_length", OPTIONAL, &s->query_scale_length))
			return false;
		s->query_scale = beta;
	}
	if (r->row->switches & SWITCH_CAPS &&
	    !read_cap(r, "attn_logit_softcapping", r->row->gguf_score_cap, &s->score_cap))
		return false;
	if (r->row->switches & (SWITCH_CAPS | SWITCH_LOGIT_CAP) &&
	    !read_cap(r, "final_logit_softcapping", r->row->gguf_logit_cap, &s->logit_cap))
		return false;
	if (r->row->switches & SWITCH_SCORES_PLAIN)
		s->attention_scale = model_scale_of(1);
	/* Of Gemma 2 and 3, the largest sizes alone scale by another number than their heads' size. */
	if (r->row->switches & SWITCH_QUERY_SCALAR && s->layers == (r->row->switches & SWITCH_CAPS ? 46 : 62))
		s->attention_scale = model_scale_of((float)(1 / sqrt((double)(s->hidden / s->heads))));
	return true;
}

/* Here "finetuned" says whether anything rotates at all. */
static bool read_rotates(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "rope.scaling.finetuned"));

	if (kv && kv->type != GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not true or false", r->g->path, r->key);
	r->m->file->rotates = !r->m->spec.one_part && r->row->recurrent != MIXER_CHANNEL && !r->row->pos_embed &&
	                      r->row->alibi == 0 && (!r->row->encoder || r->row->encoder->rotates) &&
	                      (!kv || gguf_item_int(kv, 0) != 0);
	return true;
}

/* Four numbers of pairs, of which the last is 0. */
static bool read_sections(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, "rope.dimension_sections"));
	uint32_t section[3];

	if (!kv || !arch_word_in(r->row->keys, "rope.dimension_sections"))
		return true;
	if (kv->type != GGUF_ARRAY || kv->count < 3 || kv->item == GGUF_STRING || kv->item == GGUF_ARRAY)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is not a list of numbers", r->g->path, r->key);
	for (uint64_t i = 0; i < 3; i++) {
		const int64_t n = gguf_item_int(kv, i);
		if (n < 0 || n > MODEL_MAX_HEAD_DIM)
			return error_set(r->err, ERROR_FORMAT, "%s: key %s has %" PRId64 " pairs, expected 0 to %d",
			                 r->g->path, r->key, n, MODEL_MAX_HEAD_DIM);
		section[i] = (uint32_t)n;
	}
	return model_take_sections(r->g->path, r->key, section, !arch_word_in(r->row->gguf, "qwen2vl"), true,
	                           &r->m->spec.rope, r->err);
}

bool gguf_read_switches(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;

	if (!read_sections(r))
		return false;

	s->window_chunks = r->row->window == WINDOW_CHUNKS && s->sliding_window;
	if (((r->row->window == WINDOW_BY_TYPE || s->window_chunks) && !read_windows(r)) || !gguf_read_layers(r) ||
	    (r->row->switches & SWITCH_NO_ROPE && !read_rotates(r)))
		return false;
	uint32_t window_dims = s->layer_sizes ? s->window_rope.dims : s->rope.dims;
	s->window_rope = s->rope;
	s->window_rope.dims = window_dims;
	if (r->row->switches & SWITCH_WINDOW_ROPE) {
		model_plain_rope(&s->window_rope, r->row->window_theta != 0 ? r->row->window_theta : s->rope.theta);
		if (!gguf_get_f64(r, "rope.freq_base_swa", OPTIONAL, &s->window_rope.theta) ||
		    (r->row->switches & SWITCH_PARTIAL &&
		     !gguf_get_u32(r, "rope.dimension_count_swa", OPTIONAL, &s->window_rope.dims)))
			return false;
	}
	if (!read_scales(r))
		return false;
	model_drop_scales_of_1(s);
	return model_set_rotations(r->m, NULL, r->g->path, r->err);
}

/* ---- factors */

/* dims / 2 numbers, malloc'ed in *out; NULL: there is no such tensor, or no data to read. given: what a model that is
 * opened from sources has of them. */
static bool read_factors(struct gguf_reader *r, const char *name, const struct file *given, float **out)
{
	struct model_file *f = r->m->file;
	struct found_tensor t;
	uint32_t n = r->m->spec.rope.dims / 2;

	if (!model_find_tensor(f, name, &t))
		return true;
	f->used[t.entry] = true;
	if (t.type != DTYPE_F32 || t.dim[0] != n || t.dim[1] != 1 || t.dim[2] != 1 || t.dim[3] != 1 || n == 0)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " elements of type %s, expected %" PRIu32 " of type F32",
		                 t.label, name, t.dim[0], dtype_table[t.type].name, n);
	if (r->m->spec.rope.scaling == ROPE_YARN)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: has both YaRN scaling and %s, expected one of them",
		                 t.label, name);
	if (f->flags & MODEL_HEADER_ONLY && !f->from_sources)
		return true;
	size_t bytes = n * sizeof **out;
	if (f->from_sources && given->size != bytes)
		return error_set(r->err, ERROR_FORMAT, "%s: holds %" PRIu64 " bytes of %s, expected %zu", t.label,
		                 given->size, name, bytes);
	*out = malloc(bytes);
	if (!*out)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " rotary factors", t.label, n);
	if (f->from_sources)
		memcpy(*out, given->base, bytes);
	else if (!model_read_found(f, &t, bytes, *out, r->err))
		return false;
	return model_check_factors(t.label, name, *out, n, r->err);
}

bool gguf_read_factors(struct gguf_reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	struct model_file *f = r->m->file;
	struct found_tensor t;

	if (!(r->row->switches & SWITCH_LONG)) {
		if (!read_factors(r, "rope_freqs.weight", &f->rope_factors, &f->freq_factors))
			return false;
		rope->freq_factors = f->freq_factors;
		if (r->m->spec.window_rope.scaling == rope->scaling && !(r->row->switches & SWITCH_WINDOW_ROPE))
			r->m->spec.window_rope.freq_factors = f->freq_factors;
		return true;
	}
	bool is_long = model_find_tensor(f, "rope_factors_long.weight", &t);
	if (is_long != model_find_tensor(f, "rope_factors_short.weight", &t))
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: has one of the tensors rope_factors_long.weight and rope_factors_short.weight, "
		                 "expected both or none",
		                 r->g->path);
	if (!is_long)
		return true;
	if (!read_factors(r, "rope_factors_long.weight", &f->rope_long_factors, &f->long_factors) ||
	    !read_factors(r, "rope_factors_short.weight", &f->rope_factors, &f->freq_factors))
		return false;
	rope->scaling = ROPE_LONG;
	rope->freq_factors = f->freq_factors;
	rope->long_factors = f->long_factors;
	return true;
}
