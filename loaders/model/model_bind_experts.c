/* loaders/model/model_bind_experts.c - the matrices of a mixture of experts: all in one tensor, or each in its own. */
#include "loaders/model/model_bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool check_stack(struct binder *b, const char *name, const struct found_tensor *t, uint64_t experts,
                        uint64_t rows, uint64_t cols)
{
	if (t->rank == 3 && t->dim[0] == cols && t->dim[1] == rows && t->dim[2] == experts)
		return true;
	return error_set(b->err, ERROR_FORMAT,
	                 "%s: tensor %s has %" PRIu32 " dimensions (%" PRIu64 " x %" PRIu64 " x %" PRIu64
	                 "), expected 3: (%" PRIu64 " x %" PRIu64 " x %" PRIu64 ") experts x rows x columns",
	                 t->label, name, t->rank, t->dim[2], t->dim[1], t->dim[0], experts, rows, cols);
}

/* Quants of all experts' rows in one tensor, and their numbers in others. */
static bool bind_quants(struct binder *b, const char *name, const struct found_tensor *t, struct model_tensor *out)
{
	const uint32_t experts = b->m->spec.experts;
	const struct affine_shape shape = {
		.rows = out->rows, .cols = out->cols, .all_rows = out->rows * experts, .experts = experts
	};
	struct model_quants *q = model_keep_quants(b->f, experts, b->err);
	struct model_tensor all;

	if (!q || !model_bind_affine(b->f, name, t, &shape, &all, q, b->err))
		return false;
	for (uint32_t e = 1; e < experts; e++) {
		q[e] = q[0];
		q[e].first_row = e * out->rows;
	}
	out->name = bind_keep_name(b->f, name);
	out->type = all.type;
	out->part = t->part;
	out->row_bytes = all.row_bytes;
	out->offset = t->offset;
	out->quants = q;
	return true;
}

/* All experts' matrices in one tensor, perhaps with others between them. */
static bool bind_stack(struct binder *b, const char *name, const struct part_rows *part, struct model_tensor *out)
{
	const struct model_spec *s = &b->m->spec;
	struct found_tensor t;
	uint64_t rows = part->all;

	if (!model_find_tensor(b->f, name, &t))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	if (model_is_quants(b->f, t.type))
		return bind_quants(b, name, &t, out);
	if (!check_stack(b, name, &t, s->experts, rows, out->cols) || !bind_check_type(b, name, &t, false))
		return false;
	out->name = bind_keep_name(b->f, name);
	out->type = t.type;
	out->part = t.part;
	out->row_bytes = (size_t)dtype_row_bytes(t.type, out->cols);
	out->offset = t.offset + part->first * out->row_bytes;
	out->expert_stride = rows * out->row_bytes;
	b->f->used[t.entry] = true;
	return true;
}

/* Each expert's matrix a tensor of its own. */
static bool bind_each(struct binder *b, const char *pattern, struct model_tensor *out)
{
	const struct model_spec *s = &b->m->spec;
	const char *star = strchr(pattern, '*');
	struct expert_location *location = b->f->locations + b->locations_used;
	struct model_tensor one = { 0 };
	char name[NAME_CAP];
	struct model_quants *quants = NULL;

	b->locations_used += s->experts;
	if (b->f->quants.form != QUANTS_WHOLE && b->locations_used <= b->f->n_locations &&
	    !(quants = model_keep_quants(b->f, s->experts, b->err)))
		return false;
	for (uint32_t e = 0; e < s->experts; e++) {
		snprintf(name, sizeof name, "%.*s%" PRIu32 "%s", (int)(star - pattern), pattern, e, star + 1);
		if (b->locations_used > b->f->n_locations)
			return error_set(b->err, ERROR_FORMAT,
			                 "%s: the tensor %s is missing, or others of %" PRIu32 " experts",
			                 b->f->part[0].file.label, name, s->experts);
		size_t kept = b->f->strings_used;
		uint64_t bytes = b->m->tensor_bytes;
		one.quants = NULL;
		b->quants_of_expert = quants ? quants + e : NULL;
		bool bound = bind_tensor(b, name, out->rows, out->cols, false, NEED_ALWAYS, NULL, &one);
		b->quants_of_expert = NULL;
		if (!bound)
			return false;
		b->m->tensor_bytes = bytes; /* counted together */
		if (e > 0 && (one.type != out->type || !one.quants != !out->quants))
			return error_set(b->err, ERROR_UNSUPPORTED,
			                 "%s: tensor %s has type %s, and that of expert 0 %s",
			                 b->f->part[one.part].file.label, name, dtype_table[one.type].name,
			                 dtype_table[out->type].name);
		if (e > 0)
			b->f->strings_used = kept;
		else
			out->name = one.name;
		out->type = one.type;
		out->row_bytes = one.row_bytes;
		out->quants = e > 0 ? out->quants : one.quants;
		location[e] = (struct expert_location){ one.part, one.offset };
	}
	out->part = location[0].part;
	out->offset = location[0].offset;
	out->location = location;
	return true;
}

void bind_find_experts(struct binder *b)
{
	const struct model_spec *s = &b->m->spec;
	struct found_tensor t;
	char name[NAME_CAP];
	uint32_t layer = 0;

	while (layer < s->layers && !model_layer_routes(s, layer))
		layer++;
	if (b->f->format != MODEL_HF || !(b->f->arch->hf_fused & FUSED_EXPERTS) || layer == s->layers)
		return;
	snprintf(name, sizeof name, "%slayers.%" PRIu32 ".mlp.experts.0.gate_proj.weight", b->base, layer);
	b->f->experts_each = model_find_tensor(b->f, name, &t);
}

/* Behind the layer's number, each with the router beside it. */
static const struct {
	const char *experts, *router;
} wholes[] = { { "mlp.experts.", "mlp.gate.weight" },
	       { "block_sparse_moe.experts.", "block_sparse_moe.router.weight" },
	       { "feed_forward.experts.", "feed_forward.gate.weight" },
	       { "mixer.experts.", "mixer.gate.weight" } };

static bool there(const struct binder *b, uint32_t layer, const char *before, const char *kind, char out[NAME_CAP])
{
	struct found_tensor t;

	snprintf(out, NAME_CAP, "%slayers.%" PRIu32 ".%s%s", b->base, layer, before, kind);
	return model_find_tensor(b->f, out, &t);
}

/* The same where a row has norms_by_mixer: transformers 5 renames by names alone when it saves. */
static bool newer_norm(const struct binder *b, uint32_t layer, enum tensor_slot k, char out[NAME_CAP])
{
	const char *name = k == SLOT_attn_norm        ? "input_layernorm.weight"
	                   : k == SLOT_ffn_norm       ? "post_attention_layernorm.weight"
	                   : k == SLOT_attn_post_norm ? "feedforward_layer_norm.weight"
	                                              : NULL;

	return name && there(b, layer, name, "", out);
}

void bind_changed_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char name[NAME_CAP])
{
	static const struct {
		enum tensor_slot slot;
		const char *name;
	} newer[] = { { SLOT_router_bias, "mlp.e_score_correction_bias" },
		      { SLOT_router_bias, "mlp.gate.e_score_correction_bias" },
		      { SLOT_router_bias, "mlp.gate.moe_statics.e_score_correction_bias" },
		      { SLOT_shared_gate, "mlp.shared_experts.gate_proj.weight" },
		      { SLOT_shared_up, "mlp.shared_experts.up_proj.weight" },
		      { SLOT_shared_down, "mlp.shared_experts.down_proj.weight" } };
	struct found_tensor t;
	char out[NAME_CAP];

	if (b->m->spec.encodes)
		bind_old_norm_name(b, name);
	if (b->f->arch->norms_by_mixer && !model_find_tensor(b->f, name, &t) && newer_norm(b, layer, k, out))
		memcpy(name, out, NAME_CAP);
	if (b->f->format != MODEL_HF || !model_layer_routes(&b->m->spec, layer) || model_find_tensor(b->f, name, &t))
		return;
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
		if (newer[i].slot == k && there(b, layer, newer[i].name, "", out)) {
			memcpy(name, out, NAME_CAP);
			return;
		}
}

bool bind_whole_name(const struct binder *b, uint32_t layer, enum tensor_slot k, char name[NAME_CAP],
                     struct part_rows *part)
{
	const struct model_spec *s = &b->m->spec;
	const bool gated = b->f->needs.group[GROUP_GATE] != NEED_NOT,
		   pair = gated && (k == SLOT_expert_gate || k == SLOT_expert_up),
		   one = k == SLOT_expert_down || (k == SLOT_expert_up && !gated);
	struct found_tensor t;
	char out[NAME_CAP];

	if (b->f->format != MODEL_HF || !model_layer_routes(s, layer) || !(pair || one || k == SLOT_router) ||
	    model_find_tensor(b->f, name, &t))
		return false;
	for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
		const char *kind = pair ? "gate_up_proj" : k == SLOT_expert_up ? "up_proj" : "down_proj";
		if (k == SLOT_router ? !there(b, layer, wholes[i].router, "", out)
		                     : !there(b, layer, wholes[i].experts, kind, out))
			continue;
		memcpy(name, out, NAME_CAP);
		const uint64_t rows = pair ? s->expert_ffn : part->all;
		*part = (struct part_rows){ k == SLOT_expert_up && pair ? rows : 0, pair ? 2 * rows : rows };
		return true;
	}
	return false;
}

bool bind_experts(struct binder *b, const char *name, uint64_t rows, uint64_t cols, const struct part_rows *part,
                  bool by_columns, struct model_tensor *t)
{
	struct part_rows all = { 0, rows };

	*t = (struct model_tensor){ .rows = rows, .cols = cols, .experts = b->m->spec.experts };
	part = part ? part : &all;
	bool ok = by_columns                               ? bind_columns(b, name, part, t)
	          : strchr(name, '*')                      ? bind_each(b, name, t)
	          : bind_lies_by_columns(b, name, part, t) ? bind_by_columns(b, name, part, t)
	                                                   : bind_stack(b, name, part, t);
	if (!ok)
		return false;
	t->bytes = (size_t)(t->experts * t->rows) * t->row_bytes;
	b->m->tensor_bytes += t->bytes;
	return true;
}
