/* loaders/model/model_check.c - the ranges of hyperparameters, for GGUF and config.json alike. */
#include "loaders/model/model_load.h"

#include <inttypes.h>

#include "base/math_host.h"

struct checked {
	const struct model *m;
	const char *label; /* what held the hyperparameters */
	struct error *err;
};

bool hparam_range(const char *label, const char *key, double value, double min, double max, struct error *err)
{
	if (value >= min && value <= max) /* false for NaN */
		return true;
	return error_set(err, ERROR_FORMAT, "%s: %s is %.10g, expected %.10g to %.10g", label, key, value, min, max);
}

bool hparam_limit(const char *label, const char *key, double value, double min, double max, struct error *err)
{
	if (value >= min && value <= max)
		return true;
	return error_set(err, ERROR_UNSUPPORTED, "%s: %s is %.10g, which is not supported: jitrun runs %.10g to %.10g",
	                 label, key, value, min, max);
}

double model_yarn_attention(double factor, double mscale)
{
	return factor <= 1.0 ? 1.0 : 0.1 * mscale * math_host_log(factor) + 1.0;
}

/* What the kernels do (kernels-templates/emit/heads.h). */
static bool check_latent(const struct checked *b)
{
	enum { MAX_LATENT = 512, MAX_DIMS = 256 };
	const struct model_spec *s = &b->m->spec;
	const struct model_latent *l = &s->latent;

	if (l->rank % 32 || l->rank > MAX_LATENT)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: the latent vector of keys and values has %" PRIu32
		                 " dimensions, expected a multiple of 32 up to %d",
		                 b->label, l->rank, MAX_LATENT);
	if (l->rotating % 2)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: %" PRIu32 " dimensions of a head rotate, expected an even number", b->label,
		                 l->rotating);
	if ((uint64_t)s->heads * l->value % 32)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: %" PRIu32 " heads have %" PRIu32
		                 " values each, expected a multiple of 32 values together",
		                 b->label, s->heads, l->value);
	return hparam_range(b->label, "the dimensions of a head that rotate", l->rotating, 2, MAX_DIMS, b->err) &&
	       hparam_range(b->label, "the dimensions of a head that do not rotate", l->rest, 1, MAX_DIMS, b->err) &&
	       hparam_range(b->label, "the values of a head", l->value, 1, MODEL_MAX_HEAD_DIM, b->err) &&
	       hparam_range(b->label, "the number of attention heads", s->heads, 1, 4096, b->err) &&
	       hparam_range(b->label, "the attention scale", (double)s->attention_scale.value, 1e-6, 1e6, b->err);
}

/* Where layers differ. The model's own numbers are the largest of them. */
static bool check_layers(const struct checked *b)
{
	const struct model_spec *s = &b->m->spec;

	for (uint32_t i = 0; s->layer_sizes && i < s->layers; i++) {
		const struct model_sizes *z = &s->layer_sizes[i];
		if (!hparam_range(b->label, "the feed-forward size of a layer", z->ffn, 1, MODEL_MAX_WIDTH, b->err) ||
		    !hparam_range(b->label, "the number of key-value heads of a layer", z->kv_heads, 1, MODEL_MAX_HEADS,
		                  b->err) ||
		    !hparam_range(b->label, "the head dimension of a layer", z->head_dim, 2, MODEL_MAX_HEAD_DIM,
		                  b->err))
			return false;
		if (s->heads % z->kv_heads || z->head_dim % 2)
			return error_set(b->err, ERROR_FORMAT,
			                 "%s: layer %" PRIu32 " has %" PRIu32 " attention heads of %" PRIu32
			                 " and %" PRIu32
			                 " key-value heads, expected an even size and a multiple of these",
			                 b->label, i, s->heads, z->head_dim, z->kv_heads);
		const bool window = s->layer_rotation && s->layer_rotation[i] == ROTATION_WINDOW;
		const uint32_t dims = window ? s->window_rope.dims : s->rope.dims;
		if (z->head_dim != dims)
			return error_set(b->err, ERROR_UNSUPPORTED,
			                 "%s: the rotary embedding covers %" PRIu32 " of the %" PRIu32
			                 " dimensions of a head %s a window, expected all",
			                 b->label, dims, z->head_dim, window ? "with" : "without");
	}
	return !s->layer_input ||
	       hparam_range(b->label, "the size of per-layer inputs", s->layer_input, 1, MODEL_MAX_LAYER_INPUT, b->err);
}

enum { MAX_HEAD_DIM = 512 }; /* of what kernels do, as above */

/* A part of a head that rotates. */
static bool check_partial(const struct checked *b, uint32_t dims)
{
	const uint32_t all = b->m->spec.head_dim;

	return dims == all || (dims >= 2 && dims < all && dims % 2 == 0) ||
	       error_set(b->err, ERROR_FORMAT,
	                 "%s: the rotary embedding covers %" PRIu32 " of the %" PRIu32
	                 " dimensions of a head, expected an even number of them",
	                 b->label, dims, all);
}

static bool check_attention(const struct checked *b)
{
	const struct model_spec *s = &b->m->spec;

	if (!check_layers(b))
		return false;
	if (b->m->file->arch->groups & GROUP(HEAD_GATE) && s->head_dim % 32)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: heads of %" PRIu32 " dimensions are multiplied by one number each, which is not "
		                 "supported: jitrun runs multiples of 32",
		                 b->label, s->head_dim);
	for (uint32_t i = 0; s->layer_heads && i < s->layers; i++)
		if (s->layer_heads[i] % s->kv_heads)
			return error_set(b->err, ERROR_FORMAT,
			                 "%s: layer %" PRIu32 " has %" PRIu32
			                 " attention heads, expected a multiple of the %" PRIu32 " key-value heads",
			                 b->label, i, s->layer_heads[i], s->kv_heads);
	if (!s->layer_sizes && s->heads % s->kv_heads)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of attention heads is %" PRIu32 ", expected a multiple of the %" PRIu32
		                 " key-value heads",
		                 b->label, s->heads, s->kv_heads);
	if (s->head_dim % 2)
		return error_set(b->err, ERROR_FORMAT, "%s: the head dimension is %" PRIu32 ", expected an even number",
		                 b->label, s->head_dim);
	if (s->latent.rank)
		return check_latent(b);
	if (!hparam_limit(b->label, "the head dimension", s->head_dim, 2, MAX_HEAD_DIM, b->err))
		return false;
	if (s->layer_sizes) /* which check_layers() has looked at */
		return true;
	if (b->m->file->arch->switches & SWITCH_PARTIAL)
		return check_partial(b, s->rope.dims) && (!s->layer_rotation || check_partial(b, s->window_rope.dims));
	if (s->rope.dims != s->head_dim)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: the rotary embedding covers %" PRIu32 " of the %" PRIu32
		                 " dimensions of a head, expected all (partial rotation is not supported)",
		                 b->label, s->rope.dims, s->head_dim);
	return true;
}

static bool check_rope(const struct checked *b, const struct model_rope *r)
{
	const char *l = b->label;
	struct error *err = b->err;

	if (!hparam_range(l, "the rotary base (theta)", r->theta, 1.0 + 1e-6, 1e30, err))
		return false;
	if (r->scaling == ROPE_NONE)
		return true;
	if (r->scaling == ROPE_LONG)
		return hparam_range(l, "the rotary scaling's original context", r->original_context, 1, 4294967295.0,
		                    err) &&
		       hparam_range(l, "the rotary scaling's attention factor", r->attention_factor, 1e-6, 1e6, err);
	if (!hparam_range(l, "the rotary scaling factor", r->factor, 1e-6, 1e6, err))
		return false;
	if (r->scaling == ROPE_LINEAR)
		return true;
	if (!hparam_range(l, "the rotary scaling's original context", r->original_context, 1, 4294967295.0, err))
		return false;
	if (r->scaling == ROPE_LLAMA3) {
		if (!hparam_range(l, "low_freq_factor", r->low_freq_factor, 1e-6, 1e6, err) ||
		    !hparam_range(l, "high_freq_factor", r->high_freq_factor, 1e-6, 1e6, err))
			return false;
		return r->high_freq_factor >= r->low_freq_factor ||
		       error_set(err, ERROR_FORMAT,
		                 "%s: high_freq_factor is %.9g, expected at least low_freq_factor %.9g", l,
		                 r->high_freq_factor, r->low_freq_factor);
	}
	return hparam_range(l, "beta_fast", r->beta_fast, 1e-6, 1e6, err) &&
	       hparam_range(l, "beta_slow", r->beta_slow, 1e-6, 1e6, err) &&
	       hparam_range(l, "the YaRN attention factor", r->attention_factor, 1e-6, 1e6, err);
}

static bool check_scales(const struct checked *b)
{
	const struct model_spec *s = &b->m->spec;
	const struct {
		const char *what;
		double value;
	} scale[] = {
		{ "the embeddings' scale", (double)s->embed_scale.value },
		{ "the residual scale", (double)s->residual_scale.value },
		{ "the logits' scale", (double)s->logit_scale.value },
		{ "the attention scale", (double)s->attention_scale.value },
		{ "the logits' bound", (double)s->logit_cap.value },
		{ "the scores' bound", (double)s->score_cap.value },
		{ "the queries' scale by position", s->query_scale },
	};

	for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
		if (scale[i].value != 0 && /* none, or a factor of 0 */
		    !hparam_range(b->label, scale[i].what, scale[i].value, 1e-6, 1e6, b->err))
			return false;
	return s->query_scale == 0 || hparam_range(b->label, "the length of the queries' scale", s->query_scale_length,
	                                           1, 4294967295.0, b->err);
}

static bool check_recurrent(const struct checked *b)
{
	const struct model_spec *s = &b->m->spec;
	const struct model_recurrent *c = &s->recurrent;
	uint32_t attend = 0;

	if (!s->layer_mixer)
		return true;
	for (uint32_t i = 0; i < s->layers; i++)
		attend += s->attends_beside || s->layer_mixer[i] == MIXER_ATTENTION;
	if (!attend && !b->m->file->arch->states_alone)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: none of the layers has attention, expected at least one", b->label);
	if (!hparam_limit(b->label, "the number of taps of the convolutions", c->taps, MODEL_MIN_TAPS, MODEL_MAX_TAPS,
	                  b->err) ||
	    !hparam_range(b->label, "the number of channels of the convolutions", c->channels, 1, MODEL_MAX_WIDTH,
	                  b->err))
		return false;
	return c->channels % 32 == 0 ||
	       error_set(b->err, ERROR_UNSUPPORTED,
	                 "%s: convolutions go over %" PRIu32
	                 " channels, which is not supported: jitrun runs multiples of 32",
	                 b->label, c->channels);
}

bool model_check_hparams(const struct model *m, const char *label, struct error *err)
{
	const struct checked c = { m, label, err }, *b = &c;
	const struct model_spec *s = &m->spec;
	const struct {
		const char *key;
		double value, max;
	} range[] = {
		{ "the number of layers", s->layers, MODEL_MAX_LAYERS },
		{ "the hidden size", s->hidden, MODEL_MAX_WIDTH },
		{ "the feed-forward size", s->ffn, MODEL_MAX_WIDTH },
		{ "the number of attention heads", s->heads, MODEL_MAX_HEADS },
		{ "the number of key-value heads", s->kv_heads, MODEL_MAX_HEADS },
		{ "the head dimension", s->head_dim, MODEL_MAX_HEAD_DIM },
		{ "the vocabulary size", s->vocab, INT32_MAX },
		{ "the context length", s->context_train, 4294967295.0 },
	};

	for (size_t i = 0; i < sizeof range / sizeof *range; i++)
		if (!hparam_range(b->label, range[i].key, range[i].value, 1, range[i].max, b->err))
			return false;
	if (!hparam_range(b->label, "the norms' epsilon", (double)s->norm_eps, 1e-30, 1, b->err) ||
	    !check_attention(b) || !check_rope(b, &s->rope) || (s->layer_rotation && !check_rope(b, &s->window_rope)) ||
	    !check_scales(b) || !check_recurrent(b) || !model_check_experts(m, label, err))
		return false;
	return true;
}
