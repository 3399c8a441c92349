/* loaders/model/model_gguf.c - hyperparameters out of GGUF metadata.
 *
 * Owns: the meaning of the keys <architecture>.* and general.*. Never: takes a key it does not understand for harmless:
 * one that nothing here asks for must be on a list of model_arch.c, or the model is refused with a sentence.
 */
#include "loaders/model/model_gguf_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys that mean nothing where there is no scaling, and where it is not YaRN. */
static const char scaling_keys[] = "rope.scaling.factor rope.scale_linear";
static const char yarn_keys[] =
	"rope.scaling.original_context_length rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow";

static char *copy_text(const struct gguf_str *s)
{
	char text[128];

	return strdup(error_quote(text, sizeof text, s->p, s->n));
}

static bool read_arch(struct gguf_reader *r)
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
	model_take_row(&r->m->spec, row);
	f->arch = row;
	f->needs = arch_needs(row, row->gguf_pairs);
	f->needs.group[GROUP_QKV_BIAS] = f->needs.group[GROUP_O_BIAS] = f->needs.group[GROUP_MLP_BIAS] =
		NEED_IF_PRESENT;
	if (row->switches & SWITCH_HEAD_NORMS)
		f->needs.group[row->head_weights ? GROUP_QK_ROW_NORM : GROUP_QK_NORM] = NEED_IF_PRESENT;
	if (f->needs.group[GROUP_LAYER_SCALE] == NEED_ALWAYS)
		f->needs.group[GROUP_LAYER_SCALE] = NEED_IF_PRESENT;
	f->arch_name = copy_text(&name);
	return f->arch_name || error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
}

/* The activation function, where a family's files say it. */
static bool read_act(struct gguf_reader *r)
{
	struct gguf_str name;
	char text[60];
	bool found;

	if (!r->row->gguf_act_said)
		return true;
	r->m->spec.act = MODEL_SILU;
	if (!gguf_string(r->g, gguf_key(r, "hidden_act"), &name, &found, r->err))
		return false;
	if (!found || gguf_str_is(&name, "silu"))
		return true;
	r->m->spec.act = MODEL_RELU2;
	return gguf_str_is(&name, "relu2") ||
	       error_set(r->err, ERROR_UNSUPPORTED, "%s: key %s is \"%s\", expected silu or relu2", r->g->path, r->key,
	                 error_quote(text, sizeof text, name.p, name.n));
}

/* What kind of file it is, for those that are no model that runs alone. */
static bool check_kind(struct gguf_reader *r)
{
	struct gguf_str kind;
	char text[60];
	bool found;

	if (!gguf_string(r->g, "general.type", &kind, &found, r->err))
		return false;
	if (gguf_find(r->g, "adapter.type") || (found && gguf_str_is(&kind, "adapter")))
		return error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: is an adapter (LoRA), which changes another model; jitrun runs models without adapters",
			r->g->path);
	if (found && gguf_str_is(&kind, "imatrix"))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: is an importance matrix, which is for quantising another model", r->g->path);
	if (found && gguf_str_is(&kind, "mmproj"))
		return error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: is an encoder of images or sound (mmproj), which goes with a text model; name that "
			"one, and this file with --mmproj",
			r->g->path);
	return !found || gguf_str_is(&kind, "model") ||
	       error_set(r->err, ERROR_UNSUPPORTED, "%s: general.type is \"%s\", expected model", r->g->path,
	                 error_quote(text, sizeof text, kind.p, kind.n));
}

static bool read_name(struct gguf_reader *r)
{
	struct gguf_str name = { "", 0 };
	bool found;

	if (!gguf_string(r->g, "general.name", &name, &found, r->err))
		return false;
	r->m->file->model_name = copy_text(&name);
	return r->m->file->model_name ||
	       error_set(r->err, ERROR_MEMORY, "%s: no memory for the model's description", r->g->path);
}

/* The sizes of latent attention; key_length and value_length are those of the vector that all heads share. */
static bool read_latent(struct gguf_reader *r, uint32_t value_length)
{
	struct model_spec *s = &r->m->spec;
	struct model_latent *l = &s->latent;
	uint32_t key_length = s->head_dim, head = 0;

	if (!gguf_get_u32(r, "attention.kv_lora_rank", REQUIRED, &l->rank) ||
	    !gguf_get_u32(r, "attention.q_lora_rank", OPTIONAL, &l->query_rank) ||
	    !gguf_get_u32(r, "rope.dimension_count", REQUIRED, &l->rotating))
		return false;
	if (!gguf_find(r->g, gguf_key(r, "attention.key_length_mla")))
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: the key %s is missing: files from before April 2025 hold latent attention in a "
		                 "form that is not supported",
		                 r->g->path, r->key);
	if (!gguf_get_u32(r, "attention.key_length_mla", REQUIRED, &head) ||
	    !gguf_get_u32(r, "attention.value_length_mla", REQUIRED, &l->value) ||
	    !hparam_range(r->g->path, gguf_key(r, "attention.kv_lora_rank"), l->rank, 1, MODEL_MAX_WIDTH, r->err) ||
	    !hparam_range(r->g->path, gguf_key(r, "rope.dimension_count"), l->rotating, 1, MODEL_MAX_HEAD_DIM,
	                  r->err) ||
	    !hparam_range(r->g->path, gguf_key(r, "attention.key_length_mla"), head, l->rotating + 1.0,
	                  MODEL_MAX_HEAD_DIM, r->err))
		return false;
	if (s->kv_heads != 1 || key_length != l->rank + l->rotating || value_length != l->rank)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: there are %" PRIu32 " key-value heads of %" PRIu32 " and %" PRIu32
		                 " elements, expected one of %" PRIu32 " and %" PRIu32,
		                 r->g->path, s->kv_heads, key_length, value_length, l->rank + l->rotating, l->rank);
	l->rest = head - l->rotating;
	s->head_dim = head;
	model_low_queries(r->m);
	return true;
}

/* Those that predict further tokens count as layers there. */
static bool read_layers(struct gguf_reader *r)
{
	struct model_file *f = r->m->file;
	struct model_spec *s = &r->m->spec;

	if (!gguf_get_u32(r, "block_count", REQUIRED, &s->layers))
		return false;
	if (!(r->row->switches & SWITCH_LATER_LAYERS) || !gguf_find(r->g, gguf_key(r, "nextn_predict_layers")))
		return true;
	if (!gguf_get_u32(r, "nextn_predict_layers", OPTIONAL, &f->later_layers))
		return false;
	if (f->later_layers >= s->layers)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: key %s is %" PRIu32 ", expected fewer than the %" PRIu32 " layers", r->g->path,
		                 r->key, f->later_layers, s->layers);
	s->layers -= f->later_layers;
	return true;
}

static bool read_window(struct gguf_reader *r)
{
	const struct arch_row *row = r->row;
	struct model_spec *s = &r->m->spec;
	const enum presence presence = row->gguf_states_window ? REQUIRED : OPTIONAL;

	if (!row->gguf_window_layers || row->gguf_window_layers == s->layers)
		s->sliding_window = row->gguf_window;
	if (!gguf_get_u32(r, "attention.sliding_window", presence, &s->sliding_window))
		return false;
	return !row->gguf_states_window || hparam_range(r->g->path, r->key, s->sliding_window, 1, UINT32_MAX, r->err);
}

/* No layer attends: keys of heads say 0, and what is made for heads anyway is small. */
static bool read_no_heads(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;

	if (!gguf_get_u32(r, "attention.head_count", OPTIONAL, &s->heads) ||
	    !gguf_get_u32(r, "feed_forward_length", OPTIONAL, &s->ffn) ||
	    !hparam_range(r->g->path, gguf_key(r, "attention.head_count"), s->heads, 0, 0, r->err))
		return false;
	s->heads = s->ffn = 1;
	return true;
}

static bool read_sizes(struct gguf_reader *r)
{
	struct model_spec *s = &r->m->spec;
	uint32_t value_length = 0, vocab = 0;
	struct found_tensor embed;
	const char *eps_key = s->centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
	double eps = 0;

	if ((s->one_part || s->encodes) && !gguf_find(r->g, gguf_key(r, eps_key))) /* there, both names mean the same */
		eps_key = s->centred ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
	if (!read_layers(r) || !gguf_get_u32(r, "embedding_length", REQUIRED, &s->hidden) || !gguf_read_some_ffn(r) ||
	    !(r->row->states_alone ? read_no_heads(r) : gguf_read_heads(r)) ||
	    !gguf_get_u32(r, "context_length", REQUIRED, &s->context_train) ||
	    !gguf_get_u32(r, "vocab_size", OPTIONAL, &vocab) || !gguf_get_f64(r, eps_key, REQUIRED, &eps))
		return false;
	s->kv_heads = s->heads;
	if (!(r->row->switches & SWITCH_LAYER_SIZES
	              ? gguf_get_size(r, "attention.head_count_kv", OPTIONAL, &s->kv_heads)
	              : gguf_read_kv_heads(r)))
		return false;
	if (!hparam_range(r->g->path, gguf_key(r, "attention.head_count"), s->heads, 1, MODEL_MAX_HEADS, r->err) ||
	    !hparam_range(r->g->path, gguf_key(r, "attention.head_count_kv"), s->kv_heads, 1, MODEL_MAX_HEADS, r->err))
		return false;
	bool latent = r->row->switches & SWITCH_LATENT;
	if (!latent && !gguf_find(r->g, gguf_key(r, "attention.key_length")) && s->hidden % s->heads)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: %s.embedding_length is %" PRIu32 ", expected a multiple of the %" PRIu32
		                 " attention heads",
		                 r->g->path, r->row->gguf, s->hidden, s->heads);
	s->head_dim = value_length = r->row->states_alone ? r->row->head_dim : s->hidden / s->heads;
	if (!gguf_get_u32(r, "attention.key_length", OPTIONAL, &s->head_dim) ||
	    !gguf_get_u32(r, "attention.value_length", OPTIONAL, &value_length))
		return false;
	if (latent && !read_latent(r, value_length))
		return false;
	if (!latent && value_length != s->head_dim)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: values have %" PRIu32 " elements per head and keys %" PRIu32
		                 ", expected the same number",
		                 r->g->path, value_length, s->head_dim);
	if (!model_find_tensor(r->m->file, "token_embd.weight", &embed))
		return error_set(r->err, ERROR_FORMAT, "%s: the tensor token_embd.weight is missing", r->g->path);
	if (gguf_find(r->g, gguf_key(r, "vocab_size")) && vocab != embed.dim[1])
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: %s.vocab_size is %" PRIu32 ", but token_embd.weight has %" PRIu64 " rows",
		                 r->g->path, r->row->gguf, vocab, embed.dim[1]);
	if (!hparam_range(r->g->path, "the vocabulary size", (double)embed.dim[1], 1, INT32_MAX, r->err) ||
	    !hparam_range(r->g->path, gguf_key(r, eps_key), eps, 1e-30, 1, r->err))
		return false;
	s->vocab = (uint32_t)embed.dim[1];
	s->norm_eps = (float)eps;
	return gguf_read_parallel(r) && read_window(r);
}

/* A GGUF file pads its token list to the embedding's rows; a list of another length belongs to another model. */
static bool check_token_count(struct gguf_reader *r)
{
	const struct gguf_kv *kv = gguf_find(r->g, "tokenizer.ggml.tokens");

	if (!kv || kv->type != GGUF_ARRAY || kv->count == r->m->spec.vocab)
		return true;
	return error_set(r->err, ERROR_FORMAT,
	                 "%s: tokenizer.ggml.tokens has %" PRIu64 " entries, but token_embd.weight has %" PRIu32
	                 " rows",
	                 r->g->path, kv->count, r->m->spec.vocab);
}

static bool scaling_key(const struct gguf_reader *r, const char *suffix)
{
	enum rope_scaling scaling = r->m->spec.rope.scaling;

	return (scaling == ROPE_NONE && arch_word_in(scaling_keys, suffix)) ||
	       (scaling != ROPE_YARN && arch_word_in(yarn_keys, suffix));
}

/* A key that turns something on must say that it is off. A scale of the scores may also say what it is anyway. */
static bool check_off(struct gguf_reader *r, const struct gguf_kv *kv, const struct arch_off *known)
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

static bool check_offs(struct gguf_reader *r)
{
	size_t n;
	const struct arch_off *off = arch_gguf_offs(&n);

	for (size_t i = 0; i < n; i++) {
		const struct gguf_kv *kv = gguf_find(r->g, gguf_key(r, off[i].name));
		if (kv && !arch_word_in(r->row->keys, off[i].name) && !check_off(r, kv, &off[i]))
			return false;
	}
	return true;
}

static bool is_own(const struct gguf_reader *r, const struct gguf_kv *kv)
{
	size_t prefix = strlen(r->row->gguf);

	return kv->key.n > prefix && memcmp(kv->key.p, r->row->gguf, prefix) == 0 && kv->key.p[prefix] == '.';
}

/* Into r->key, where it can be a name at all. */
static bool copy_key(struct gguf_reader *r, const struct gguf_kv *kv)
{
	if (kv->key.n >= sizeof r->key || memchr(kv->key.p, 0, kv->key.n))
		return false;
	snprintf(r->key, sizeof r->key, "%.*s", (int)kv->key.n, kv->key.p);
	return true;
}

static bool check_key(struct gguf_reader *r, const struct gguf_kv *kv)
{
	size_t prefix = strlen(r->row->gguf);
	char text[100];

	if (!is_own(r, kv))
		return true;
	if (copy_key(r, kv)) {
		const char *suffix = r->key + prefix + 1;
		if (arch_gguf_key_harmless(suffix) || arch_word_in(r->row->keys, suffix) || scaling_key(r, suffix))
			return true;
	}
	return error_set(r->err, ERROR_UNSUPPORTED,
	                 "%s: the key %s is not known and might change what the model computes", r->g->path,
	                 error_quote(text, sizeof text, kv->key.p, kv->key.n));
}

/* A later part of a split model may repeat the first part's keys, no more. */
static bool check_repeated(struct gguf_reader *r, const struct gguf *part)
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
static bool check_unread(struct gguf_reader *r)
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
	struct gguf_reader r = { .m = m, .g = &m->file->part[0].gguf, .err = err };

	r.read = calloc(r.g->n_kv ? r.g->n_kv : 1, sizeof *r.read);
	if (!r.read)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu64 " keys", r.g->path, r.g->n_kv);
	bool ok = check_kind(&r) && read_arch(&r) && read_act(&r) && read_name(&r) && read_sizes(&r) &&
	          gguf_read_mixers(&r) && gguf_read_experts(&r) && gguf_read_rope(&r) && gguf_read_switches(&r) &&
	          gguf_read_encoder(&r) && check_offs(&r) && check_unread(&r) && gguf_read_factors(&r) &&
	          check_token_count(&r);
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

/* A file that is whole may have been made of parts, which leaves their keys behind, with a count of 0. */
static bool check_whole(const struct gguf *g, struct error *err)
{
	uint64_t count = 0;
	bool found;

	return gguf_u64(g, "split.count", &count, &found, err) &&
	       (count <= 1 ||
	        error_set(err, ERROR_FORMAT, "%s: key split.count is %" PRIu64 ", expected 0 or 1 in a whole model",
	                  g->path, count));
}

bool model_check_split(const struct model_file *f, struct error *err)
{
	uint64_t tensors = 0;

	if (f->n_parts == 1)
		return check_whole(&f->part[0].gguf, err);
	for (uint32_t i = 0; i < f->n_parts; i++) {
		const struct gguf *g = &f->part[i].gguf;
		tensors += g->n_tensors;
		if (!split_key(g, "split.no", i, true, err) || !split_key(g, "split.count", f->n_parts, true, err))
			return false;
	}
	return split_key(&f->part[0].gguf, "split.tensors.count", tensors, false, err);
}
