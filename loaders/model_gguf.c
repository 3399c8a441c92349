/* loaders/model_gguf.c - hyperparameters out of GGUF metadata.
 *
 * Owns: the meaning of the keys <architecture>.* and general.*. Never: takes a key it does not understand for harmless:
 * one that nothing here asks for must be on a list of model_arch.c, or the model is refused with a sentence.
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
	const struct arch_row *row;
	bool *read;   /* keys that were asked for */
	char key[96]; /* the key last asked for, for messages */
	struct error *err;
};

enum presence { OPTIONAL, REQUIRED };

/* Keys that mean nothing where there is no scaling, and where it is not YaRN. */
static const char scaling_keys[] = "rope.scaling.factor rope.scale_linear";
static const char yarn_keys[] =
	"rope.scaling.original_context_length rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow";

static const char *key(struct reader *r, const char *suffix)
{
	snprintf(r->key, sizeof r->key, "%s.%s", r->row->gguf, suffix);
	const struct gguf_kv *kv = gguf_find(r->g, r->key);
	if (kv)
		r->read[kv - r->g->kv] = true;
	return r->key;
}

static bool missing(struct reader *r)
{
	return error_set(r->err, ERROR_FORMAT, "%s: the key %s is missing", r->g->path, r->key);
}

/* A value per layer is accepted when all are equal. Replaces the array by its one value. */
static bool same_in_all_layers(struct reader *r, const struct gguf_kv *kv, uint64_t *out)
{
	if (kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 || kv->item == GGUF_F64 ||
	    kv->item == GGUF_BOOL)
		return error_set(r->err, ERROR_FORMAT, "%s: the array of key %s does not hold integers", r->g->path,
		                 r->key);
	if (kv->count == 0 || kv->count != r->m->spec.layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the array of key %s has %" PRIu64 " values, expected one for each of the %" PRIu32
		                 " layers",
		                 r->g->path, r->key, kv->count, r->m->spec.layers);
	int64_t first = gguf_item_int(kv, 0);
	for (uint64_t i = 1; i < kv->count; i++)
		if (gguf_item_int(kv, i) != first)
			return error_set(r->err, ERROR_UNSUPPORTED,
			                 "%s: key %s is %" PRId64 " in layer 0 and %" PRId64 " in layer %" PRIu64
			                 "; layers of different sizes are not supported",
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
	if (kv->type == GGUF_ARRAY ? !same_in_all_layers(r, kv, &value)
	                           : !gguf_u64(r->g, r->key, &value, &found, r->err))
		return false;
	if (value > UINT32_MAX)
		return error_set(r->err, ERROR_FORMAT, "%s: key %s is %" PRIu64 ", expected 0 to 4294967295",
		                 r->g->path, r->key, value);
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

static bool str_is(const struct gguf_str *s, const char *word)
{
	return s->n == strlen(word) && memcmp(s->p, word, s->n) == 0;
}

static bool read_arch(struct reader *r)
{
	struct gguf_str name;
	char text[60], names[200];
	bool found;

	if (!gguf_string(r->g, "general.architecture", &name, &found, r->err))
		return false;
	if (!found)
		return error_set(r->err, ERROR_FORMAT, "%s: the key general.architecture is missing", r->g->path);
	const struct arch_row *row = r->row = arch_of_gguf(name.p, name.n);
	error_quote(text, sizeof text, name.p, name.n);
	if (!row)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: general.architecture is \"%s\", expected %s",
		                 r->g->path, text, arch_names(true, names, sizeof names));
	if (row->lacks)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: general.architecture is \"%s\", which needs what jitrun does not have: %s",
		                 r->g->path, text, row->lacks);
	struct model_file *f = r->m->file;
	r->m->spec.form = row->form;
	f->arch = row;
	f->needs = arch_needs(row, row->gguf_pairs);
	f->needs.group[GROUP_QKV_BIAS] = f->needs.group[GROUP_O_BIAS] = f->needs.group[GROUP_MLP_BIAS] =
		NEED_IF_PRESENT;
	f->arch_name = copy_text(&name);
	return f->arch_name || error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
}

/* What kind of file it is, for those that are no model that runs alone. */
static bool check_kind(struct reader *r)
{
	struct gguf_str kind;
	char text[60];
	bool found;

	if (!gguf_string(r->g, "general.type", &kind, &found, r->err))
		return false;
	if (gguf_find(r->g, "adapter.type") || (found && str_is(&kind, "adapter")))
		return error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: is an adapter (LoRA), which changes another model; jitrun runs models without adapters",
			r->g->path);
	if (found && str_is(&kind, "imatrix"))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: is an importance matrix, which is for quantising another model", r->g->path);
	if (found && str_is(&kind, "mmproj"))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: is an encoder of images or sound (mmproj), which goes with a text model; jitrun "
		                 "runs text models alone",
		                 r->g->path);
	return !found || str_is(&kind, "model") ||
	       error_set(r->err, ERROR_UNSUPPORTED, "%s: general.type is \"%s\", expected model", r->g->path,
	                 error_quote(text, sizeof text, kind.p, kind.n));
}

static bool read_name(struct reader *r)
{
	struct gguf_str name = { "", 0 };
	bool found;

	if (!gguf_string(r->g, "general.name", &name, &found, r->err))
		return false;
	r->m->file->model_name = copy_text(&name);
	return r->m->file->model_name ||
	       error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
}

static bool read_sizes(struct reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t value_length = 0, vocab = 0;
	struct found_tensor embed;
	double eps = 0;

	if (!get_u32(r, "block_count", REQUIRED, &s->layers) || !get_u32(r, "embedding_length", REQUIRED, &s->hidden) ||
	    !get_u32(r, "feed_forward_length", REQUIRED, &s->ffn) ||
	    !get_u32(r, "attention.head_count", REQUIRED, &s->heads) ||
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
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: %s.embedding_length is %" PRIu32 ", expected a multiple of the %" PRIu32
		                 " attention heads",
		                 r->g->path, r->row->gguf, s->hidden, s->heads);
	s->head_dim = value_length = s->hidden / s->heads;
	if (!get_u32(r, "attention.key_length", OPTIONAL, &s->head_dim) ||
	    !get_u32(r, "attention.value_length", OPTIONAL, &value_length))
		return false;
	if (value_length != s->head_dim)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: values have %" PRIu32 " elements per head and keys %" PRIu32
		                 ", expected the same number",
		                 r->g->path, value_length, s->head_dim);
	if (!model_find_tensor(r->m->file, "token_embd.weight", &embed))
		return error_set(r->err, ERROR_FORMAT, "%s: the tensor token_embd.weight is missing", r->g->path);
	if (gguf_find(r->g, key(r, "vocab_size")) && vocab != embed.dim[1])
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: %s.vocab_size is %" PRIu32 ", but token_embd.weight has %" PRIu64 " rows",
		                 r->g->path, r->row->gguf, vocab, embed.dim[1]);
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
	*out = gguf_find(r->g, key(r, "rope.scaling.factor")) || gguf_find(r->g, key(r, "rope.scale_linear"))
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
	key(r, "rope.scaling.type");
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is \"%s\", expected none, linear or yarn", r->g->path,
	                 r->key, error_quote(text, sizeof text, name.p, name.n));
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
	    !get_f64(r, "rope.scaling.yarn_beta_fast", OPTIONAL, &rope->beta_fast) ||
	    !get_f64(r, "rope.scaling.yarn_beta_slow", OPTIONAL, &rope->beta_slow) ||
	    !get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn) ||
	    !get_f64(r, "rope.scaling.yarn_attn_factor", OPTIONAL, &yarn_attn))
		return false;
	/* in GGUF the attention factors multiply YaRN's own, they do not replace it */
	rope->attention_factor = attn * yarn_attn * model_yarn_attention(rope->factor, 1.0);
	return true;
}

static bool read_rope(struct reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	double attn = 1, yarn_attn = 1;

	rope->dims = r->m->spec.head_dim;
	rope->theta = 10000;
	rope->factor = 1;
	rope->attention_factor = 1;
	if (!get_u32(r, "rope.dimension_count", OPTIONAL, &rope->dims) ||
	    !get_f64(r, "rope.freq_base", OPTIONAL, &rope->theta) || !read_scaling_type(r, &rope->scaling))
		return false;
	if (rope->scaling != ROPE_NONE && (!get_f64(r, "rope.scale_linear", OPTIONAL, &rope->factor) ||
	                                   !get_f64(r, "rope.scaling.factor", OPTIONAL, &rope->factor)))
		return false;
	if (rope->scaling == ROPE_YARN)
		return read_yarn(r);
	if (!get_f64(r, "rope.scaling.yarn_attn_factor", OPTIONAL, &yarn_attn) ||
	    !get_f64(r, "rope.scaling.attn_factor", OPTIONAL, &attn))
		return false;
	return attn * yarn_attn == 1 ||
	       error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: key %s is %.9g without YaRN scaling, which is not supported, expected 1", r->g->path,
	                 key(r, attn == 1 ? "rope.scaling.yarn_attn_factor" : "rope.scaling.attn_factor"),
	                 attn == 1 ? yarn_attn : attn);
}

/* Divisors of the rotary frequencies. */
static bool read_freq_factors(struct reader *r)
{
	struct model_rope *rope = &r->m->spec.rope;
	struct model_file *f = r->m->file;
	struct found_tensor t;
	uint32_t n = rope->dims / 2;

	if (!model_find_tensor(f, "rope_freqs.weight", &t))
		return true;
	f->used[t.entry] = true;
	if (t.type != DTYPE_F32 || t.dim[0] != n || t.dim[1] != 1 || t.dim[2] != 1 || t.dim[3] != 1 || n == 0)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: tensor rope_freqs.weight has %" PRIu64 " elements of type %s, expected %" PRIu32
		                 " of type F32",
		                 t.label, t.dim[0], dtype_table[t.type].name, n);
	if (rope->scaling == ROPE_YARN)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: has both YaRN scaling and rope_freqs.weight, expected one of them", t.label);
	if (f->flags & MODEL_HEADER_ONLY && !f->from_sources)
		return true;
	size_t bytes = n * sizeof *f->freq_factors;
	if (f->from_sources && f->rope_factors.size != bytes)
		return error_set(r->err, ERROR_FORMAT, "%s: holds %" PRIu64 " bytes of rope_freqs.weight, expected %zu",
		                 t.label, f->rope_factors.size, bytes);
	f->freq_factors = malloc(bytes);
	if (!f->freq_factors)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " rotary factors", t.label, n);
	if (f->from_sources)
		memcpy(f->freq_factors, f->rope_factors.base, bytes);
	else if (!model_read_found(f, &t, bytes, f->freq_factors, r->err))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!hparam_range(t.label, "a value of rope_freqs.weight", (double)f->freq_factors[i], 1e-30, 1e30,
		                  r->err))
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
	return error_set(r->err, ERROR_FORMAT,
	                 "%s: tokenizer.ggml.tokens has %" PRIu64 " entries, but token_embd.weight has %" PRIu32
	                 " rows",
	                 r->g->path, kv->count, r->m->spec.vocab);
}

static bool scaling_key(const struct reader *r, const char *suffix)
{
	enum rope_scaling scaling = r->m->spec.rope.scaling;

	return (scaling == ROPE_NONE && arch_word_in(scaling_keys, suffix)) ||
	       (scaling != ROPE_YARN && arch_word_in(yarn_keys, suffix));
}

/* A key that turns something on must say that it is off. A scale of the scores may also say what it is anyway. */
static bool check_off(struct reader *r, const struct gguf_kv *kv, const struct arch_off *known)
{
	if (kv->type == GGUF_STRING || kv->type == GGUF_ARRAY)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: the key %s is not supported", r->g->path, r->key);
	double value = gguf_item_float(kv, 0);
	bool usual =
		strcmp(known->name, "attention.scale") == 0 && (float)value == 1 / sqrtf((float)r->m->spec.head_dim);
	if (value == known->off || usual)
		return true;
	char means[80];
	snprintf(means, sizeof means, known->means ? " (%s)" : "%s", known->means ? known->means : "");
	if (kv->type == GGUF_BOOL)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: key %s is %s%s, which is not supported, expected %s or no such key", r->g->path,
		                 r->key, value != 0 ? "true" : "false", means, known->off != 0 ? "true" : "false");
	return error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: key %s is %.9g%s, which is not supported, expected %.9g or no such key", r->g->path,
	                 r->key, value, means, known->off);
}

static bool check_offs(struct reader *r)
{
	size_t n;
	const struct arch_off *off = arch_gguf_offs(&n);

	for (size_t i = 0; i < n; i++) {
		const struct gguf_kv *kv = gguf_find(r->g, key(r, off[i].name));
		if (kv && !check_off(r, kv, &off[i]))
			return false;
	}
	return true;
}

static bool is_own(const struct reader *r, const struct gguf_kv *kv)
{
	size_t prefix = strlen(r->row->gguf);

	return kv->key.n > prefix && memcmp(kv->key.p, r->row->gguf, prefix) == 0 && kv->key.p[prefix] == '.';
}

/* Into r->key, where it can be a name at all. */
static bool copy_key(struct reader *r, const struct gguf_kv *kv)
{
	if (kv->key.n >= sizeof r->key || memchr(kv->key.p, 0, kv->key.n))
		return false;
	snprintf(r->key, sizeof r->key, "%.*s", (int)kv->key.n, kv->key.p);
	return true;
}

static bool check_key(struct reader *r, const struct gguf_kv *kv)
{
	size_t prefix = strlen(r->row->gguf);
	char text[100];

	if (!is_own(r, kv))
		return true;
	if (copy_key(r, kv)) {
		const char *suffix = r->key + prefix + 1;
		if (arch_gguf_key_harmless(suffix) || scaling_key(r, suffix))
			return true;
	}
	return error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: the key %s is not known and might change what the model computes", r->g->path,
	                 error_quote(text, sizeof text, kv->key.p, kv->key.n));
}

/* A later part of a split model may repeat the first part's keys, no more. */
static bool check_repeated(struct reader *r, const struct gguf *part)
{
	char text[100];

	for (uint64_t i = 0; i < part->n_kv; i++) {
		const struct gguf_kv *kv = &part->kv[i];
		if (!is_own(r, kv))
			continue;
		const struct gguf_kv *first = copy_key(r, kv) ? gguf_find(r->g, r->key) : NULL;
		if (!first || first->type != kv->type || first->item != kv->item || first->bytes != kv->bytes ||
		    memcmp(first->data, kv->data, kv->bytes) != 0)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: the key %s is not the same in the first file of the model", part->path,
			                 error_quote(text, sizeof text, kv->key.p, kv->key.n));
	}
	return true;
}

/* Every key of the architecture has been read, or changes nothing. */
static bool check_unread(struct reader *r)
{
	const struct model_file *f = r->m->file;

	for (uint64_t i = 0; i < r->g->n_kv; i++)
		if (!r->read[i] && !check_key(r, &r->g->kv[i]))
			return false;
	for (uint32_t i = 1; i < f->n_parts; i++)
		if (!check_repeated(r, &f->part[i].gguf))
			return false;
	return true;
}

bool model_read_gguf(struct model *m, struct error *err)
{
	struct reader r = { .m = m, .g = &m->file->part[0].gguf, .err = err };

	r.read = calloc(r.g->n_kv ? r.g->n_kv : 1, sizeof *r.read);
	if (!r.read)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu64 " keys", r.g->path, r.g->n_kv);
	bool ok = check_kind(&r) && read_arch(&r) && read_name(&r) && read_sizes(&r) && read_rope(&r) &&
	          check_offs(&r) && check_unread(&r) && read_freq_factors(&r) && check_token_count(&r);
	free(r.read);
	return ok;
}

static bool split_key(const struct gguf *g, const char *name, uint64_t expected, bool required, struct error *err)
{
	uint64_t value = 0;
	bool found;

	if (!gguf_u64(g, name, &value, &found, err))
		return false;
	if (!found)
		return !required || error_set(err, ERROR_FORMAT, "%s: the key %s is missing in a part of a split model",
		                              g->path, name);
	return value == expected ||
	       error_set(err, ERROR_FORMAT,
	                 "%s: key %s is %" PRIu64 ", expected %" PRIu64 " from the names and contents of the files",
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
