/* loaders/model/model_bind.c - the last gate before a model is called open: every tensor
 * present, of the right shape and of a type that is computed with, and no tensor left over that might mean something.
 * Serves GGUF and safetensors alike; the two differ only in the tensors' names.
 *
 * Owns: the list of accepted weight types (weight_type_ok), the naming table, the shapes.
 * Rule: shapes are derived from the hyperparameters and compared with the file, never the other way round.
 */
#include "loaders/model/model_bind.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"

/* The types the kernels read: all that have blocks, but for two that are none of weights. */
static bool weight_type_ok(enum dtype t, bool vector)
{
	if (t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16)
		return true;
	return !vector && dtype_table[t].block > 1 && t != DTYPE_Q8_1 && t != DTYPE_Q8_K;
}

static const char *const embed_name[2] = { "token_embd.weight", "embed_tokens.weight" };
static const char *const final_norm_name[2] = { "output_norm.weight", "norm.weight" };
static const char *const lm_head_name[2] = { "output.weight", "lm_head.weight" };

/* What names of safetensors begin with: those of the layers, and that of the output matrix. The others are those of
 * text models inside models for images. */
static const struct {
	const char *base, *head;
} hf_prefixes[] = { { "model.", "" },
	            { "language_model.model.", "language_model." },
	            { "model.language_model.", "" },
	            { "model.text_model.", "" } };
enum { HF_PREFIXES = sizeof hf_prefixes / sizeof *hf_prefixes };

/* Whether layers with such a mixer have the tensors of a group, where the model has them. */
static bool group_of_mixer(const struct model_spec *s, enum tensor_group group, enum model_mixer mixer)
{
	switch (group) {
	case GROUP_ATTENTION:
	case GROUP_SINKS:
	case GROUP_Q_GATE:
	case GROUP_HEAD_GATE:
	case GROUP_QUERIES:
	case GROUP_KEYS_VALUES:
	case GROUP_QKV_BIAS:
	case GROUP_O_BIAS:
	case GROUP_QK_NORM:
	case GROUP_QK_ROW_NORM: return mixer == MIXER_ATTENTION || s->attends_beside;
#define X(id, name, rule) \
	case GROUP_##id: return mixer == MIXER_##id;
		MODEL_MIXERS(X)
#undef X
	case GROUP_DELTA_IN:
	case GROUP_DELTA_APART: return mixer == MIXER_DELTA;
	case GROUP_SCAN_NORM: return mixer == MIXER_SCAN;
	case GROUP_CHANNEL_NORM: return mixer == MIXER_CHANNEL;
	case GROUP_TAPS_BIAS: return mixer == MIXER_SCAN || mixer == MIXER_CHANNEL;
	case GROUP_TAPS: return mixer != MIXER_ATTENTION && mixer != MIXER_NONE;
	default: return true;
	}
}

/* Where layers with a state have norms before their parts, and those with attention behind them. */
static bool norm_stands(const struct arch_row *row, enum tensor_group group, enum model_mixer mixer)
{
	if (!row->norms_by_mixer)
		return true;
	return group == GROUP_POST_NORM ? mixer == MIXER_ATTENTION
	       : group == GROUP_PRE_NORM || group == GROUP_FFN_NORM
	               ? mixer != MIXER_ATTENTION
	               : true;
}

enum { MIN_IN_LAYER = 3 /* a norm and two matrices; a model that lacks one of more tensors hears its name */ };

static bool check_layers(struct binder *b)
{
	const struct model_spec *s = &b->m->spec;

	if (b->f->wanted)
		return true;
	if (s->layers > b->f->n_entries / MIN_IN_LAYER)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of layers is %" PRIu32 ", but there are only %" PRIu32
		                 " tensors, expected at least %d in a layer",
		                 b->label, s->layers, b->f->n_entries, MIN_IN_LAYER);
	/* what describes a layer here is less than the layer takes in the file, but for a few tiny ones, or a file cut
	 * on purpose */
	if (s->layers > 16 && !(b->f->flags & MODEL_HEADER_ONLY) &&
	    s->layers * sizeof(struct model_layer) > 2 * b->m->file_bytes)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: the number of layers is %" PRIu32 ", too many for a model of %" PRIu64 " bytes",
		                 b->label, s->layers, b->m->file_bytes);
	return true;
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

const char *bind_keep_name(struct model_file *f, const char *name)
{
	size_t n = strlen(name) + 1;

	assert(f->strings_used + n <= f->strings_size);
	char *out = memcpy(f->strings + f->strings_used, name, n);
	f->strings_used += n;
	return out;
}

bool bind_check_type(struct binder *b, const char *name, const struct found_tensor *t, bool vector)
{
	return weight_type_ok(t->type, vector) ||
	       error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported %s", t->label,
	                 name, dtype_table[t->type].name, vector ? "for a vector" : "for weights");
}

/* A matrix that is several tensors. */
static bool bind_affine(struct binder *b, const char *name, const struct found_tensor *t, uint64_t rows, uint64_t cols,
                        const struct part_rows *part, struct model_tensor *out)
{
	const struct affine_shape shape = {
		.rows = rows, .cols = cols, .first_row = part ? part->first : 0, .all_rows = part ? part->all : rows
	};
	struct model_quants *q = b->quants_of_expert ? b->quants_of_expert : model_keep_quants(b->f, 1, b->err);

	if (!q || !model_bind_affine(b->f, name, t, &shape, out, q, b->err))
		return false;
	out->quants = q;
	out->name = bind_keep_name(b->f, name);
	b->m->tensor_bytes += out->bytes;
	return true;
}

bool bind_tensor(struct binder *b, const char *name, uint64_t rows, uint64_t cols, bool vector, enum model_need need,
                 const struct part_rows *part, struct model_tensor *out)
{
	struct found_tensor t;

	if (need == NEED_NOT)
		return true;
	if (!model_find_tensor(b->f, name, &t)) {
		if (!vector && model_find_quants(b->f, name, &t))
			return bind_affine(b, name, &t, rows, cols, part, out);
		if (need == NEED_IF_PRESENT)
			return true;
		if (b->f->wanted)
			return bind_wanted(b, name,
			                   &(struct wanted_shape){ rows, cols, part ? part->all : 0, vector, false },
			                   out);
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	}
	if (b->taps && !bind_flatten_taps(b, name, &t))
		return false;
	if (vector && b->flat)
		bind_flatten(&t, cols);
	if (!vector && model_is_quants(b->f, t.type))
		return bind_affine(b, name, &t, rows, cols, part, out);
	if (!vector && t.type == DTYPE_U8)
		return error_set(b->err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s has type U8: packed numbers, such as those of NVFP4, of a method that "
		                 "config.json does not name",
		                 t.label, name);
	const uint64_t file_rows = part && !vector ? part->all : rows, file_cols = part && vector ? part->all : cols;
	if (!check_shape(b, name, &t, file_rows, file_cols, vector))
		return false;
	const struct dtype_facts *type = &dtype_table[t.type];
	if (!bind_check_type(b, name, &t, vector))
		return false;
	assert(cols % type->block == 0); /* the parse has refused part blocks */
	size_t row_bytes = (size_t)dtype_row_bytes(t.type, cols);
	assert(dtype_row_bytes(t.type, file_cols) * file_rows == t.bytes);
	*out = (struct model_tensor){
		.name = bind_keep_name(b->f, name),
		.type = t.type,
		.rows = rows,
		.cols = cols,
		.part = t.part,
		.offset = t.offset + (part ? part->first * (vector ? type->bytes : row_bytes) : 0),
		.bytes = row_bytes * (size_t)rows,
		.row_bytes = row_bytes
	};
	b->f->used[t.entry] = true;
	b->m->tensor_bytes += out->bytes;
	return true;
}

/* What a file may have and nobody reads. */
static void leave(const struct binder *b, const char *name)
{
	struct found_tensor t;

	if (model_find_tensor(b->f, name, &t))
		b->f->used[t.entry] = true;
}

/* Where there is no tensor of this name, but MLX's. */
static bool other_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char name[NAME_CAP])
{
	struct found_tensor t;
	char other[NAME_CAP];

	if (model_find_tensor(b->f, name, &t) || !bind_mlx_name(b, layer, k, other))
		return false;
	memcpy(name, other, NAME_CAP);
	return true;
}

static bool is_transposed(const struct binder *b, const struct bind_slot_row *slot)
{
	return !slot->vector && b->f->format == MODEL_HF && b->f->arch->columns_first;
}

/* Whether files have rows and columns of this vector. */
static bool is_flat(const struct binder *b, enum tensor_group group)
{
	if ((group == GROUP_QK_ROW_NORM && b->m->spec.head_weights) || group == GROUP_CHANNEL)
		return true;
	return b->f->format == MODEL_GGUF ? group == GROUP_SCAN || group == GROUP_SCAN_NORM
	                                  : b->f->arch->routing & ROUTING_CHOICE_BIAS;
}

/* What is done to the numbers of the file. */
static void note_numbers(const struct binder *b, enum tensor_slot k, struct model_tensor *t)
{
	if (!t->bytes)
		return;
	t->times = k == SLOT_router_scale ? (float)(1 / math_host_sqrt((double)b->m->spec.hidden)) : 0;
	t->each_times = k == SLOT_taps ? b->f->taps_times : NULL;
	t->by_channel = k == SLOT_channel_decay ? b->m->spec.recurrent.key_dim : 0;
	t->minus_exp =
		(k == SLOT_delta_decay || k == SLOT_scan_decay || k == SLOT_channel_decay) && b->f->format == MODEL_HF;
}

static enum model_need need_of(const struct binder *b, uint32_t layer, enum tensor_slot k)
{
	const struct model_spec *s = &b->m->spec;
	const enum tensor_group group = bind_slots[k].group;
	const enum model_mixer mixer = model_layer_mixer(s, layer);

	return group_of_mixer(s, group, mixer) && norm_stands(b->f->arch, group, mixer) &&
	                       model_layer_has_group(s, layer, group)
	               ? model_need_of(b->f, s, layer, k, group)
	               : NEED_NOT;
}

static bool bind_slot(struct binder *b, uint32_t layer, enum tensor_slot k)
{
	const struct model_spec *s = &b->m->spec;
	const struct bind_slot_row *slot = &bind_slots[k];
	struct model_tensor *t = (struct model_tensor *)((char *)&s->layer[layer] + slot->at);
	struct part_rows part = { 0 };
	enum tensor_slot first = k, last = k;
	char name[NAME_CAP];
	const char *fused = bind_fused_name(b->f, k, &first, &last);
	enum model_need need = need_of(b, layer, k);

	for (enum tensor_slot i = first; i <= last; i++) {
		uint64_t rows = model_width(s, layer, bind_slots[i].vector ? bind_slots[i].cols : bind_slots[i].rows);
		part.first += i < k ? rows : 0;
		part.all += rows;
	}
	if (bind_by_heads(b, k) || bind_by_key(b, k))
		part.first = 0;
	snprintf(name, sizeof name, "%s%s%" PRIu32 ".%s", b->base, bind_layers_name(b->f), layer,
	         fused ? fused : bind_own_name(b->f, k));
	if (!fused)
		bind_changed_name(b, layer, k, name);
	bool other = other_name(b, layer, k, name),
	     by_columns = b->f->format == MODEL_HF && b->f->arch->hf_fused & FUSED_BY_COLUMNS && !other;
	fused = other ? NULL : fused;
	if (!other && bind_whole_name(b, layer, k, name, &part))
		fused = name;
	if (slot->group == GROUP_EXPERTS)
		return need == NEED_NOT ||
		       bind_experts(b, name, model_width(s, layer, slot->rows), model_width(s, layer, slot->cols),
		                    fused ? &part : NULL, by_columns, t);
	if (k >= SLOT_expert_gate_bias && k <= SLOT_expert_down_bias)
		return need == NEED_NOT ||
		       bind_expert_vectors(b, name, model_width(s, layer, slot->cols), fused ? &part : NULL, t);
	if (need != NEED_NOT && (k == SLOT_k_b || k == SLOT_v_b))
		return bind_by_head(b, name, k == SLOT_k_b, other, t);
	if (need != NEED_NOT && k == SLOT_taps && b->f->arch->taps_apart[b->f->format])
		return bind_taps_apart(b, layer, t);
	if (model_borrows(s, layer, k))
		leave(b, name);
	if (need != NEED_NOT && is_transposed(b, slot))
		return bind_transposed(b, name, layer, slot, fused ? &part : NULL, t);
	b->taps = slot->cols == WIDTH_TAPS;
	b->flat = is_flat(b, slot->group);
	bool ok = bind_tensor(b, name, model_width(s, layer, slot->rows), model_width(s, layer, slot->cols),
	                      slot->vector, need, fused ? &part : NULL, t);
	b->taps = b->flat = false;
	if (!ok)
		return false;
	bind_note_order(b, layer, slot, t);
	note_numbers(b, k, t);
	if (bind_by_heads(b, k) && t->bytes)
		bind_note_heads(b, k, t);
	if (bind_by_key(b, k) && t->bytes)
		bind_note_sections(b, k, t);
	return true;
}

static bool bind_layer(struct binder *b, uint32_t i)
{
	for (int k = 0; k < TENSOR_SLOTS; k++)
		if (!bind_slot(b, i, (enum tensor_slot)k))
			return false;
	return true;
}

static bool bind_inputs(struct binder *b)
{
	static const char *const names[2][3] = {
		{ "per_layer_token_embd.weight", "per_layer_model_proj.weight", "per_layer_proj_norm.weight" },
		{ "embed_tokens_per_layer.weight", "per_layer_model_projection.weight",
		  "per_layer_projection_norm.weight" }
	};
	struct model_spec *s = &b->m->spec;
	uint64_t all = (uint64_t)s->layers * s->layer_input;
	char name[3][NAME_CAP];

	for (int i = 0; i < 3; i++)
		snprintf(name[i], NAME_CAP, "%s%s", b->base, names[b->f->format == MODEL_HF][i]);
	return bind_tensor(b, name[0], s->vocab, all, false, NEED_ALWAYS, NULL, &s->input_embed) &&
	       bind_tensor(b, name[1], all, s->hidden, false, NEED_ALWAYS, NULL, &s->input_proj) &&
	       bind_tensor(b, name[2], 1, s->layer_input, true, NEED_ALWAYS, NULL, &s->input_norm);
}

static const char *name_of_embed(const struct model_file *f)
{
	return f->format == MODEL_HF && f->arch->embed ? f->arch->embed : embed_name[f->format];
}

/* Where a family's published files have a name of their own, transformers 5 can save the usual one. */
static const char *name_of_head(const struct model_file *f)
{
	struct found_tensor t;
	const bool own = f->format == MODEL_HF && f->arch->head &&
	                 (model_find_tensor(f, f->arch->head, &t) || !model_find_tensor(f, lm_head_name[MODEL_HF], &t));

	return own ? f->arch->head : lm_head_name[f->format];
}

static bool bind_outer(struct binder *b)
{
	struct model_spec *s = &b->m->spec;
	enum model_format form = b->f->format;
	bool tied = b->f->needs.tied_by_config;

	char name[3][NAME_CAP];

	snprintf(name[0], NAME_CAP, "%s%s", b->base, name_of_embed(b->f));
	const char *final_norm = b->f->arch->final_norm[form];
	snprintf(name[1], NAME_CAP, "%s%s", b->base, final_norm ? final_norm : final_norm_name[form]);
	snprintf(name[2], NAME_CAP, "%s%s", b->head, name_of_head(b->f));
	const enum model_need final = s->form == FORM_BERT || b->f->arch->norms_plain ? NEED_NOT : NEED_ALWAYS;
	if (!bind_tensor(b, name[0], s->vocab, s->hidden, false, NEED_ALWAYS, NULL, &s->embed) ||
	    !bind_tensor(b, name[1], 1, s->hidden, true, final, NULL, &s->final_norm) ||
	    !bind_tensor(b, name[2], s->vocab, s->hidden, false,
	                 tied && !b->f->needs.head_apart ? NEED_NOT
	                 : tied                          ? NEED_IF_PRESENT
	                 : form == MODEL_GGUF            ? NEED_IF_PRESENT
	                                                 : NEED_ALWAYS,
	                 NULL, &s->lm_head))
		return false;
	if (!bind_positions(b) || !bind_outer_biases(b, name[1], name[2]))
		return false;
	if ((s->layer_input && !bind_inputs(b)) || (s->encodes && !model_bind_encoder(b, b->err)))
		return false;
	s->final_norm.plus_one = bind_plus_one(b);
	s->tied = s->lm_head.bytes == 0;
	if (s->tied)
		s->lm_head = s->embed;
	return true;
}

/* Of the names there are. */
static void find_prefix(struct binder *b)
{
	struct found_tensor t;
	char name[NAME_CAP];

	if (b->f->format == MODEL_GGUF)
		return;
	if (b->f->arch->encoder) {
		bind_encoder_prefix(b, name_of_embed(b->f));
		return;
	}
	for (int i = HF_PREFIXES - 1; i >= 0; i--) {
		snprintf(name, sizeof name, "%s%s", hf_prefixes[i].base, embed_name[MODEL_HF]);
		b->base = hf_prefixes[i].base;
		b->head = hf_prefixes[i].head;
		if (b->f->wrapped && model_find_tensor(b->f, name, &t))
			return;
	}
	snprintf(name, sizeof name, "%s%s", b->f->arch->base ? b->f->arch->base : "", name_of_embed(b->f));
	if (b->f->arch->base &&
	    (b->f->wanted || model_find_tensor(b->f, name, &t))) /* transformers 5 can save it without that */
		b->base = b->f->arch->base;
	else if (model_find_tensor(b->f, name_of_embed(b->f), &t)) /* as the first files of some families have it */
		b->base = "";
}

bool model_bind(struct model *m, const char *label, struct error *err)
{
	struct binder b = { .m = m, .f = m->file, .label = label, .err = err, .base = "", .head = "" };
	struct model_spec *s = &m->spec;
	struct model_file *f = m->file;

	find_prefix(&b);
	if (!model_check_hparams(m, label, err) || !check_layers(&b))
		return false;
	bind_find_experts(&b); /* of layers whose number is checked by now */
	b.norms_whole = bind_mlx_norms(&b);
	s->layer = calloc(s->layers, sizeof *s->layer);
	f->strings_size = ((size_t)s->layers * TENSOR_SLOTS + 16) * NAME_CAP;
	f->strings = malloc(f->strings_size);
	if (!s->layer || !f->strings)
		return error_set(err, ERROR_MEMORY, "%s: no memory to describe %" PRIu32 " layers", label, s->layers);
	if (!bind_outer(&b) || !model_make_locations(m, label, err))
		return false;
	for (uint32_t i = 0; i < s->layers; i++)
		if (!bind_layer(&b, i))
			return false;
	model_move_last_norm(m);
	bind_plain_norms(m);
	if (!bind_check_heads(&b) || !model_bind_xielu(&b, err))
		return false;
	char head[NAME_CAP], embed[NAME_CAP];
	snprintf(head, NAME_CAP, "%s%s", b.head, name_of_head(f));
	snprintf(embed, NAME_CAP, "%s%s", b.base, name_of_embed(f));
	return model_check_tied_head(f, head, embed, err) && model_read_classifier(m, err) &&
	       model_check_left_over(m, err);
}
