/* loaders/model_bind.c - the last gate before a model is called open: hyperparameters within their ranges, every tensor
 * present, of the right shape and of a type that is computed with, and no tensor left over that might mean something.
 * Serves GGUF and safetensors alike; the two differ only in the tensors' names.
 *
 * Owns: the list of accepted weight types (weight_type_ok), the naming table, the shapes.
 * Rule: shapes are derived from the hyperparameters and compared with the file, never the other way round.
 */
#include "loaders/model_load.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

/* The types the kernels read; extend here when a template for another one exists. */
static bool weight_type_ok(enum dtype t, bool vector)
{
	switch (t) {
	case DTYPE_F32:
	case DTYPE_F16:
	case DTYPE_BF16: return true;
	case DTYPE_Q8_0:
	case DTYPE_Q4_0:
	case DTYPE_Q4_1:
	case DTYPE_Q5_0:
	case DTYPE_Q5_1:
	case DTYPE_Q2_K:
	case DTYPE_Q3_K:
	case DTYPE_Q4_K:
	case DTYPE_Q5_K:
	case DTYPE_Q6_K:
	case DTYPE_IQ4_NL:
	case DTYPE_IQ4_XS:
	case DTYPE_MXFP4: return !vector;
	default: return false;
	}
}

struct slot {
	size_t at;           /* in struct model_layer */
	const char *name[2]; /* indexed by enum model_format */
	enum tensor_width rows, cols;
	bool vector;
	enum tensor_group group;
	enum tensor_order order;
};

/* clang-format off */
static const struct slot slots[TENSOR_SLOTS] = {
#define MATRIX(name, gguf, hf, rows, cols, group, order) \
	{ offsetof(struct model_layer, name), { gguf, hf }, WIDTH_##rows, WIDTH_##cols, \
	  false, GROUP_##group, ORDER_##order },
#define VECTOR(name, gguf, hf, cols, group, order) \
	{ offsetof(struct model_layer, name), { gguf, hf }, WIDTH_ONE, WIDTH_##cols, \
	  true, GROUP_##group, ORDER_##order },
	TENSOR_SLOTS_EACH(MATRIX, VECTOR)
#undef MATRIX
#undef VECTOR
};
/* clang-format on */

enum { NAME_CAP = 64 };

static const char *const layer_prefix[2] = { "blk.", "model.layers." };
static const char *const embed_name[2] = { "token_embd.weight", "model.embed_tokens.weight" };
static const char *const final_norm_name[2] = { "output_norm.weight", "model.norm.weight" };
static const char *const lm_head_name[2] = { "output.weight", "lm_head.weight" };

struct binder {
	struct model *m;
	struct model_file *f;
	const char *label; /* what held the hyperparameters */
	struct error *err;
};

bool hparam_range(const char *label, const char *key, double value, double least, double most, struct error *err)
{
	if (value >= least && value <= most) /* false for NaN */
		return true;
	return error_set(err, ERROR_FORMAT, "%s: %s is %.10g, expected %.10g to %.10g", label, key, value, least, most);
}

double model_yarn_attention(double factor, double mscale)
{
	return factor <= 1.0 ? 1.0 : 0.1 * mscale * math_host_log(factor) + 1.0;
}

static bool check_attention(struct binder *b)
{
	const struct model_spec *s = &b->m->spec;

	if (s->heads % s->kv_heads)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of attention heads is %" PRIu32 ", expected a multiple of the %" PRIu32
		                 " key-value heads",
		                 b->label, s->heads, s->kv_heads);
	if (s->head_dim % 2)
		return error_set(b->err, ERROR_FORMAT, "%s: the head dimension is %" PRIu32 ", expected an even number",
		                 b->label, s->head_dim);
	if (s->rope.dims != s->head_dim)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: the rotary embedding covers %" PRIu32 " of the %" PRIu32
		                 " dimensions of a head, expected all (partial rotation is not supported)",
		                 b->label, s->rope.dims, s->head_dim);
	return true;
}

static bool check_rope(struct binder *b)
{
	const struct model_rope *r = &b->m->spec.rope;
	const char *l = b->label;
	struct error *err = b->err;

	if (!hparam_range(l, "the rotary base (theta)", r->theta, 1.0 + 1e-6, 1e30, err))
		return false;
	if (r->scaling == ROPE_NONE)
		return true;
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
		return r->high_freq_factor > r->low_freq_factor ||
		       error_set(err, ERROR_FORMAT,
		                 "%s: high_freq_factor is %.9g, expected more than low_freq_factor %.9g", l,
		                 r->high_freq_factor, r->low_freq_factor);
	}
	return hparam_range(l, "beta_fast", r->beta_fast, 1e-6, 1e6, err) &&
	       hparam_range(l, "beta_slow", r->beta_slow, 1e-6, 1e6, err) &&
	       hparam_range(l, "the YaRN attention factor", r->attention_factor, 1e-6, 1e6, err);
}

/* So many tensors every layer has. */
static uint32_t required_per_layer(void)
{
	uint32_t sum = 0;

	for (int k = 0; k < TENSOR_SLOTS; k++)
		sum += slots[k].group == GROUP_WEIGHT;
	return sum;
}

static bool check_hparams(struct binder *b)
{
	const struct model_spec *s = &b->m->spec;
	uint32_t required = required_per_layer();
	const struct {
		const char *key;
		double value, most;
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
		if (!hparam_range(b->label, range[i].key, range[i].value, 1, range[i].most, b->err))
			return false;
	if (!hparam_range(b->label, "the norms' epsilon", (double)s->norm_eps, 1e-30, 1, b->err) ||
	    !check_attention(b) || !check_rope(b))
		return false;
	if (s->layers > b->f->n_entries / required)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of layers is %" PRIu32 ", but there are only %" PRIu32
		                 " tensors, expected at least %" PRIu32 " in a layer",
		                 b->label, s->layers, b->f->n_entries, required);
	/* what describes a layer here is less than the layer takes in the file, but for a few tiny ones, or a file cut
	 * on purpose */
	if (s->layers > 16 && !(b->f->flags & MODEL_HEADER_ONLY) &&
	    s->layers * sizeof(struct model_layer) > 2 * b->m->file_bytes)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of layers is %" PRIu32 ", too many for a model of %" PRIu64 " bytes",
		                 b->label, s->layers, b->m->file_bytes);
	return true;
}

static uint64_t extent(const struct model_spec *s, enum tensor_width w)
{
	switch (w) {
	case WIDTH_HIDDEN: return s->hidden;
	case WIDTH_QUERIES: return (uint64_t)s->heads * s->head_dim;
	case WIDTH_KEYS: return (uint64_t)s->kv_heads * s->head_dim;
	case WIDTH_FFN: return s->ffn;
	case WIDTH_HEAD_DIM: return s->head_dim;
	default: return 1;
	}
}

static bool check_shape(struct binder *b, const char *name, const struct found_tensor *t, uint64_t rows, uint64_t cols,
                        bool vector)
{
	/* GGUF writers may add dimensions of 1; safetensors shapes are exact */
	bool rank_ok = b->f->format == MODEL_GGUF ? t->rank <= 4 : t->rank == (vector ? 1u : 2u);
	char shape[100], *at = shape;

	if (rank_ok && t->dim[0] == cols && t->dim[1] == rows && t->dim[2] == 1 && t->dim[3] == 1)
		return true;
	*at = 0;
	for (uint32_t d = t->rank < 4 ? t->rank : 4; d-- > 0;)
		at += snprintf(at, sizeof shape - (size_t)(at - shape), "%" PRIu64 "%s", t->dim[d], d ? " x " : "");
	if (vector)
		return error_set(b->err, ERROR_FORMAT, "%s: tensor %s has shape (%s), expected (%" PRIu64 ")", t->label,
		                 name, shape, cols);
	return error_set(b->err, ERROR_FORMAT,
	                 "%s: tensor %s has shape (%s), expected (%" PRIu64 " x %" PRIu64 ") rows x columns", t->label,
	                 name, shape, rows, cols);
}

static const char *keep_name(struct model_file *f, const char *name)
{
	size_t n = strlen(name) + 1;

	assert(f->strings_used + n <= f->strings_size);
	char *out = memcpy(f->strings + f->strings_used, name, n);
	f->strings_used += n;
	return out;
}

static bool bind(struct binder *b, const char *name, uint64_t rows, uint64_t cols, bool vector, enum model_need need,
                 struct model_tensor *out)
{
	struct found_tensor t;

	if (need == NEED_NOT)
		return true;
	if (!model_find_tensor(b->f, name, &t)) {
		if (need == NEED_IF_PRESENT)
			return true;
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	}
	if (!check_shape(b, name, &t, rows, cols, vector))
		return false;
	const struct dtype_facts *type = &dtype_table[t.type];
	if (!weight_type_ok(t.type, vector))
		return error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported %s",
		                 t.label, name, type->name, vector ? "for a vector" : "for weights");
	assert(cols % type->block == 0); /* the parse has refused part blocks */
	size_t row_bytes = (size_t)(cols / type->block * type->bytes);
	assert(row_bytes * rows == t.bytes);
	*out = (struct model_tensor){
		.name = keep_name(b->f, name),
		.type = t.type,
		.rows = rows,
		.cols = cols,
		.part = t.part,
		.offset = t.offset,
		.bytes = (size_t)t.bytes,
		.row_bytes = row_bytes
	};
	b->f->used[t.entry] = true;
	b->m->tensor_bytes += t.bytes;
	return true;
}

/* Behind the layer's number. */
static const char *name_of(const struct model_file *f, enum tensor_slot slot)
{
	for (int i = 0; i < ARCH_NAMES_MOST; i++) {
		const struct arch_name *own = &f->arch->renamed[i];
		const char *name = f->format == MODEL_GGUF ? own->gguf : own->hf;
		if (own->slot == slot && name)
			return name;
	}
	return slots[slot].name[f->format];
}

static bool bind_layer(struct binder *b, uint32_t i)
{
	const struct model_spec *s = &b->m->spec;
	char name[NAME_CAP];

	for (int k = 0; k < TENSOR_SLOTS; k++) {
		const struct slot *slot = &slots[k];
		struct model_tensor *t = (struct model_tensor *)((char *)&s->layer[i] + slot->at);
		snprintf(name, sizeof name, "%s%" PRIu32 ".%s", layer_prefix[b->f->format], i,
		         name_of(b->f, (enum tensor_slot)k));
		if (!bind(b, name, extent(s, slot->rows), extent(s, slot->cols), slot->vector,
		          b->f->needs.group[slot->group], t))
			return false;
		t->rope_pairs = slot->order == ORDER_ROTATED && b->f->needs.rope_pairs && t->bytes;
	}
	return true;
}

static bool bind_outer(struct binder *b)
{
	struct model_spec *s = &b->m->spec;
	enum model_format form = b->f->format;
	bool tied = b->f->needs.tied_by_config;

	if (!bind(b, embed_name[form], s->vocab, s->hidden, false, NEED_ALWAYS, &s->embed) ||
	    !bind(b, final_norm_name[form], 1, s->hidden, true, NEED_ALWAYS, &s->final_norm) ||
	    !bind(b, lm_head_name[form], s->vocab, s->hidden, false,
	          tied                 ? NEED_NOT
	          : form == MODEL_GGUF ? NEED_IF_PRESENT
	                               : NEED_ALWAYS,
	          &s->lm_head))
		return false;
	s->tied = s->lm_head.bytes == 0;
	if (s->tied)
		s->lm_head = s->embed;
	return true;
}

/* An output matrix in a file whose configuration says that the embedding is used instead. Engines disagree on which of
 * the two counts, so both must be the same. */
static bool check_tied_head(struct binder *b)
{
	struct found_tensor head, embed;

	if (!b->f->needs.tied_by_config || !model_find_tensor(b->f, lm_head_name[b->f->format], &head))
		return true;
	bool same = model_find_tensor(b->f, embed_name[b->f->format], &embed) && head.type == embed.type &&
	            head.bytes == embed.bytes && memcmp(head.dim, embed.dim, sizeof head.dim) == 0;
	if (same && !(b->f->flags & MODEL_HEADER_ONLY) && !model_same_found(b->f, &head, &embed, &same, b->err))
		return false;
	b->f->used[head.entry] = same;
	return same ||
	       error_set(b->err, ERROR_UNSUPPORTED,
	                 "%s: the tensor %s differs from %s, but tie_word_embeddings says that they are the same",
	                 head.label, lm_head_name[b->f->format], embed_name[b->f->format]);
}

static bool check_left_over(struct binder *b)
{
	struct model_file *f = b->f;
	char text[100];

	for (uint32_t i = 0; i < f->n_entries; i++) {
		struct name_ref n = model_entry_name(f, i);
		if (!f->used[i] && !arch_tensor_harmless(f->format == MODEL_GGUF, n.p, n.n))
			return error_set(b->err, ERROR_UNSUPPORTED,
			                 "%s: the tensor %s is none that jitrun computes with in a %s model, and "
			                 "without it the results might be wrong",
			                 f->part[f->entry[i].part].file.label, error_quote(text, sizeof text, n.p, n.n),
			                 f->arch_name);
	}
	return true;
}

bool model_bind(struct model *m, const char *label, struct error *err)
{
	struct binder b = { m, m->file, label, err };
	struct model_spec *s = &m->spec;
	struct model_file *f = m->file;

	if (!check_hparams(&b))
		return false;
	s->layer = calloc(s->layers, sizeof *s->layer);
	f->strings_size = ((size_t)s->layers * TENSOR_SLOTS + 3) * NAME_CAP;
	f->strings = malloc(f->strings_size);
	if (!s->layer || !f->strings)
		return error_set(err, ERROR_MEMORY, "%s: no memory to describe %" PRIu32 " layers", label, s->layers);
	if (!bind_outer(&b))
		return false;
	for (uint32_t i = 0; i < s->layers; i++)
		if (!bind_layer(&b, i))
			return false;
	return check_tied_head(&b) && check_left_over(&b);
}
