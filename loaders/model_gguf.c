/* loaders/model_gguf.c - hyperparameters out of GGUF metadata.
 *
 * Owns: the meaning of the keys <architecture>.* and general.*. Never: takes a key it does not understand for harmless
 * when it changes what is computed (table `refused`): a model that would run wrong is refused with a sentence.
 */
#include "loaders/model_load.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct model *m;
	const struct gguf *g;
	char arch[16];
	char key[96];                 /* the key last asked for, for messages */
	struct error *err;
};

enum presence { OPTIONAL, REQUIRED };

/* GGUF files of Mistral models call themselves llama: the computation is the same. */
static const struct { const char *name; enum model_arch arch; bool rope_pairs, qk_norm; } archs[] = {
	{ "llama", MODEL_LLAMA, true, false },
	{ "qwen2", MODEL_QWEN2, false, false },
	{ "qwen3", MODEL_QWEN3, false, true },
};

/* Keys that change the computation in a way that is not done here, and the value that means "off". */
static const struct { const char *suffix; double off; } refused[] = {
	{ "expert_count", 0 }, { "expert_used_count", 0 }, { "logit_scale", 1 }, { "attention.scale", 0 }, { "residual_scale", 1 },
	{ "embedding_scale", 1 }, { "attn_logit_softcapping", 0 }, { "final_logit_softcapping", 0 }, { "attention.clamp_kqv", 0 },
	{ "attention.max_alibi_bias", 0 }, { "attention.sliding_window_pattern", 0 }, { "rope.scaling.yarn_log_multiplier", 0 },
	{ "rope.scaling.yarn_ext_factor", 1 }, { "use_parallel_residual", 0 },
};

static const char *key(struct reader *r, const char *suffix)
{
	snprintf(r->key, sizeof r->key, "%s.%s", r->arch, suffix);
	return r->key;
}

static bool missing(struct reader *r)
{
	return error_set(r->err, ERROR_FORMAT, "%s: the key %s is missing", r->g->path, r->key);
}

/* A value per layer is accepted when all are equal. Replaces the array by its one value. */
static bool same_in_all_layers(struct reader *r, const struct gguf_kv *kv, uint64_t *out)
{
	if (kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 || kv->item == GGUF_F64 || kv->item == GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: the array of key %s does not hold integers", r->g->path, r->key);
	if (kv->count == 0 || kv->count != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT, "%s: the array of key %s has %" PRIu64 " values, expected one for each of the %" PRIu32 " layers",
			r->g->path, r->key, kv->count, r->m->spec.layers);
	int64_t first = gguf_item_int(kv, 0);
	for (uint64_t i = 1; i < kv->count; i++)
		if (gguf_item_int(kv, i) != first)
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is %" PRId64 " in layer 0 and %" PRId64 " in layer %" PRIu64 "; layers of different sizes are not supported",
				r->g->path, r->key, first, gguf_item_int(kv, i), i);
	*out = first < 0 ? UINT64_MAX : (uint64_t)first;
	return true;
}

static bool get_u32(struct reader *r, const char *suffix, enum presence presence, uint32_t *out)
{
	const struct gguf_kv *kv = gguf_find(r->g, key(r, suffix));
	uint64_t value = 0;
	bool found;

	if (!kv)
		return presence == OPTIONAL || missing(r);
	if (kv->type == GGUF_ARRAY ? !same_in_all_layers(r, kv, &value) : !gguf_u64(r->g, r->key, &value, &found, r->err))
		return false;
	if (value > UINT32_MAX)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is %" PRIu64 ", expected 0 to 4294967295", r->g->path, r->key, value);
	*out = (uint32_t)value;
	return true;
}

static bool get_f64(struct reader *r, const char *suffix, enum presence presence, double *out)
{
	bool found;

	if (!gguf_f64(r->g, key(r, suffix), out, &found, r->err))
		return false;
	return found || presence == OPTIONAL || missing(r);
}

static char *copy_text(const struct gguf_str *s)
{
	char text[128];

	return strdup(error_quote(text, sizeof text, s->p, s->n));
}

static bool read_arch(struct reader *r)
{
	struct gguf_str name;
	char text[60];
	bool found;

	if (!gguf_string(r->g, "general.architecture", &name, &found, r->err))
		return false;
	if (!found)
		return error_set(r->err, ERROR_FORMAT, "%s: the key general.architecture is missing", r->g->path);
	for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
		if (name.n == strlen(archs[i].name) && memcmp(name.p, archs[i].name, name.n) == 0) {
			struct model_file *f = r->m->file;
			snprintf(r->arch, sizeof r->arch, "%s", archs[i].name);
			r->m->spec.arch = archs[i].arch;
			f->needs = (struct model_needs){ .qkv_bias = NEED_IF_PRESENT, .o_bias = NEED_IF_PRESENT, .mlp_bias = NEED_IF_PRESENT,
				.qk_norm = archs[i].qk_norm ? NEED_ALWAYS : NEED_NOT, .rope_pairs = archs[i].rope_pairs };
			f->arch_name = copy_text(&name);
			return f->arch_name || error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
		}
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: general.architecture is \"%s\", expected llama, qwen2 or qwen3", r->g->path,
		error_quote(text, sizeof text, name.p, name.n));
}

static bool read_name(struct reader *r)
{
	struct gguf_str name = { "", 0 };
	bool found;

	if (!gguf_string(r->g, "general.name", &name, &found, r->err))
		return false;
	r->m->file->model_name = copy_text(&name);
	return r->m->file->model_name || error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
}

static bool check_refused(struct reader *r)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const struct gguf_kv *kv = gguf_find(r->g, key(r, refused[i].suffix));
		if (!kv)
			continue;
		if (kv->type == GGUF_STRING || kv->type == GGUF_ARRAY)
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: the key %s is not supported", r->g->path, r->key);
		double value = gguf_item_float(kv, 0);
		if (!(value == refused[i].off))
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is %.9g, which is not supported, expected %.9g or no such key", r->g->path, r->key, value, refused[i].off);
	}
	return true;
}

static bool read_sizes(struct reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t value_length = 0, vocab = 0;
	struct found_tensor embed;
	double eps = 0;

	if (!get_u32(r, "block_count", REQUIRED, &s->layers) || !get_u32(r, "embedding_length", REQUIRED, &s->hidden) ||
	    !get_u32(r, "feed_forward_length", REQUIRED, &s->ffn) || !get_u32(r, "attention.head_count", REQUIRED, &s->heads) ||
	    !get_u32(r, "context_length", REQUIRED, &s->context_train) || !get_u32(r, "vocab_size", OPTIONAL, &vocab) ||
	    !get_f64(r, "attention.layer_norm_rms_epsilon", REQUIRED, &eps))
		return false;
	s->kv_heads = s->heads;
	if (!get_u32(r, "attention.head_count_kv", OPTIONAL, &s->kv_heads))
		return false;
	if (!hparam_range(r->g->path, key(r, "attention.head_count"), s->heads, 1, MODEL_MAX_HEADS, r->err) ||
	    !hparam_range(r->g->path, key(r, "attention.head_count_kv"), s->kv_heads, 1, MODEL_MAX_HEADS, r->err))
		return false;
	if (!gguf_find(r->g, key(r, "attention.key_length")) && s->hidden % s->heads)
		return error_set(r->err, ERROR_FORMAT, "%s: %s.embedding_length is %" PRIu32 ", expected a multiple of the %" PRIu32 " attention heads", r->g->path,
			r->arch, s->hidden, s->heads);
	s->head_dim = value_length = s->hidden / s->heads;
	if (!get_u32(r, "attention.key_length", OPTIONAL, &s->head_dim) || !get_u32(r, "attention.value_length", OPTIONAL, &value_length))
		return false;
	if (value_length != s->head_dim)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: values have %" PRIu32 " elements per head and keys %" PRIu32 ", expected the same number", r->g->path,
			value_length, s->head_dim);
	if (!model_find_tensor(r->m->file, "token_embd.weight", &embed))
		return error_set(r->err, ERROR_FORMAT, "%s: the tensor token_embd.weight is missing", r->g->path);
	if (gguf_find(r->g, key(r, "vocab_size")) && vocab != embed.dim[1])
		return error_set(r->err, ERROR_FORMAT, "%s: %s.vocab_size is %" PRIu32 ", but token_embd.weight has %" PRIu64 " rows", r->g->path, r->arch, vocab, embed.dim[1]);
	if (!hparam_range(r->g->path, "the vocabulary size", (double)embed.dim[1], 1, INT32_MAX, r->err) ||
	    !hparam_range(r->g->path, key(r, "attention.layer_norm_rms_epsilon"), eps, 1e-30, 1, r->err))
		return false;
	s->vocab = (uint32_t)embed.dim[1];
	s->norm_eps = (float)eps;
	return get_u32(r, "attention.sliding_window", OPTIONAL, &s->sliding_window);
}

static bool read_scaling_type(struct reader *r, enum rope_scaling *out)
{
	struct gguf_str name;
	char text[60];
	bool found;

	if (!gguf_string(r->g, key(r, "rope.scaling.type"), &name, &found, r->err))
		return false;
	/* without a type, a factor means linear scaling; scale_linear is the older name of that factor */
	*out = gguf_find(r->g, key(r, "rope.scaling.factor")) || gguf_find(r->g, key(r, "rope.scale_linear")) ? ROPE_LINEAR : ROPE_NONE;
	if (!found)
		return true;
	static const struct { const char *name; enum rope_scaling scaling; } known[] = { { "none", ROPE_NONE }, { "linear", ROPE_LINEAR }, { "yarn", ROPE_YARN } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (name.n == strlen(known[i].name) && memcmp(name.p, known[i].name, name.n) == 0) {
			*out = known[i].scaling;
			return true;
		}
	key(r, "rope.scaling.type");
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is \"%s\", expected none, linear or yarn", r->g->path, r->key, error_quote(text, sizeof text, name.p, name.n));
}

static bool read_yarn(struct reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	double attn = 1, yarn_attn = 1;

	rope->original_context = r->m->spec.context_train;
	rope->beta_fast = 32;
	rope->beta_slow = 1;
	rope->yarn_truncate = true;
	if (!get_u32(r, "rope.scaling.original_context_length", OPTIONAL, &rope->original_context) ||
	    !get_f64(r, "rope.scaling.yarn_beta_fast", OPTIONAL, &rope->beta_fast) || !get_f64(r, "rope.scaling.yarn_beta_slow", OPTIONAL, &rope->beta_slow) ||
	    !get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn) || !get_f64(r, "rope.scaling.yarn_attn_factor", OPTIONAL, &yarn_attn))
		return false;
	/* in GGUF the attention factors multiply YaRN's own, they do not replace it */
	rope->attention_factor = attn * yarn_attn * model_yarn_attention(rope->factor, 1.0);
	return true;
}

static bool read_rope(struct reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	double attn = 1;

	rope->dims = r->m->spec.head_dim;
	rope->theta = 10000;
	rope->factor = 1;
	rope->attention_factor = 1;
	if (!get_u32(r, "rope.dimension_count", OPTIONAL, &rope->dims) || !get_f64(r, "rope.freq_base", OPTIONAL, &rope->theta) || !read_scaling_type(r, &rope->scaling))
		return false;
	if (rope->scaling == ROPE_NONE)
		return true;
	if (!get_f64(r, "rope.scale_linear", OPTIONAL, &rope->factor) || !get_f64(r, "rope.scaling.factor", OPTIONAL, &rope->factor))
		return false;
	if (rope->scaling == ROPE_YARN)
		return read_yarn(r);
	if (!get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn))
		return false;
	return attn == 1 || error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is %.9g without YaRN scaling, which is not supported, expected 1", r->g->path, r->key, attn);
}

/* Divisors of the rotary frequencies. Copied: the file promises no alignment for floats. */
static bool read_freq_factors(struct reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	struct model_file *f = r->m->file;
	struct found_tensor t;
	uint32_t n = rope->dims / 2;

	if (!model_find_tensor(f, "rope_freqs.weight", &t))
		return true;
	if (t.type != DTYPE_F32 || t.dim[0] != n || t.dim[1] != 1 || t.dim[2] != 1 || t.dim[3] != 1 || n == 0)
		return error_set(r->err, ERROR_FORMAT, "%s: tensor rope_freqs.weight has %" PRIu64 " elements of type %s, expected %" PRIu32 " of type F32", t.label,
			t.dim[0], dtype_table[t.type].name, n);
	if (rope->scaling == ROPE_YARN)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: has both YaRN scaling and rope_freqs.weight, expected one of them", t.label);
	if (!t.data)
		return true;
	f->freq_factors = malloc(n * sizeof *f->freq_factors);
	if (!f->freq_factors)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " rotary factors", t.label, n);
	memcpy(f->freq_factors, t.data, n * sizeof *f->freq_factors);
	for (uint32_t i = 0; i < n; i++)
		if (!hparam_range(t.label, "a value of rope_freqs.weight", (double)f->freq_factors[i], 1e-30, 1e30, r->err))
			return false;
	rope->freq_factors = f->freq_factors;
	return true;
}

/* A GGUF file pads its token list to the embedding's rows; a list of another length belongs to another model. */
static bool check_token_count(struct reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, "tokenizer.ggml.tokens");

	if (!kv || kv->type != GGUF_ARRAY || kv->count == r->m->spec.vocab)
		return true;
	return error_set(r->err, ERROR_FORMAT, "%s: tokenizer.ggml.tokens has %" PRIu64 " entries, but token_embd.weight has %" PRIu32 " rows", r->g->path, kv->count, r->m->spec.vocab);
}

bool model_read_gguf(struct model *m, struct error *err)
{
	struct reader r = { .m = m, .g = &m->file->part[0].gguf, .err = err };

	return read_arch(&r) && read_name(&r) && check_refused(&r) && read_sizes(&r) && read_rope(&r) && read_freq_factors(&r) && check_token_count(&r);
}

static bool split_key(const struct gguf *g, const char *name, uint64_t expected, bool required, struct error *err)
{
	uint64_t value = 0;
	bool found;

	if (!gguf_u64(g, name, &value, &found, err))
		return false;
	if (!found)
		return !required || error_set(err, ERROR_FORMAT, "%s: the key %s is missing in a part of a split model", g->path, name);
	return value == expected || error_set(err, ERROR_FORMAT, "%s: key %s is %" PRIu64 ", expected %" PRIu64 " from the names and contents of the files",
		g->path, name, value, expected);
}

bool model_check_split(const struct model_file *f, struct error *err)
{
	bool split = f->n_parts > 1;
	uint64_t tensors = 0;

	for (uint32_t i = 0; i < f->n_parts; i++) {
		const struct gguf *g = &f->part[i].gguf;
		tensors += g->n_tensors;
		if (!split_key(g, "split.no", i, split, err) || !split_key(g, "split.count", f->n_parts, split, err))
			return false;
	}
	return split_key(&f->part[0].gguf, "split.tensors.count", tensors, false, err);
}
