/* loaders/model/model_adapter.c - see model_adapter.h. */
#include "loaders/model/model_adapter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_bind.h"

_Static_assert((int)MODEL_LOCATION_NAME >= (int)NAME_CAP, "a name has room");

static const struct model_tensor *tensor_of(const struct model *m, uint32_t layer, enum tensor_slot slot)
{
	return (const struct model_tensor *)((const char *)&m->spec.layer[layer] + bind_slots[slot].at);
}

/* The model's files as if they were of that kind. */
static struct model_file as_format(const struct model *m, enum model_format format)
{
	struct model_file f = *m->file;

	if (f.format == format)
		return f;
	f.format = format;
	f.needs.rope_pairs = format == MODEL_GGUF ? f.arch->gguf_pairs : f.arch->hf_pairs;
	f.experts_each = f.experts_fused = f.delta_fused = false;
	return f;
}

/* Of tensors that hold several matrices: which rows are the slot's. */
static struct part_rows rows_of(const struct binder *b, uint32_t layer, enum tensor_slot slot, enum tensor_slot first,
                                enum tensor_slot last)
{
	struct part_rows part = { 0 };

	for (enum tensor_slot i = first; i <= last; i++) {
		const uint64_t rows = model_width(&b->m->spec, layer, bind_slots[i].rows);
		part.first += i < slot ? rows : 0;
		part.all += rows;
	}
	if (bind_by_heads(b, slot) || bind_by_key(b, slot))
		part.first = 0;
	return part;
}

bool model_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                       struct model_location *out)
{
	static const char end[] = ".weight";
	const struct model_tensor *t = tensor_of(m, layer, slot);
	struct model_file f = as_format(m, gguf ? MODEL_GGUF : MODEL_HF);
	struct model seen = *m;
	struct binder b = { .m = &seen, .f = &f, .base = "", .head = "" };
	enum tensor_slot first = slot, last = slot;

	if (!t->bytes || t->experts || t->heads || bind_slots[slot].vector || m->spec.encodes)
		return false;
	const char *fused = bind_fused_name(&f, slot, &first, &last);
	const char *name = fused ? fused : bind_own_name(&f, slot);
	const size_t n = strlen(name), ends = sizeof end - 1;
	if (n <= ends || strcmp(name + n - ends, end) != 0 || strchr(name, '*'))
		return false;
	snprintf(out->name, sizeof out->name, "%s%" PRIu32 ".%.*s", bind_layers_name(&f), layer, (int)(n - ends), name);
	const struct part_rows part = rows_of(&b, layer, slot, first, last);
	out->first_row = part.first;
	out->all_rows = part.all;
	/* As if it lay there: what the order depends on is the slot and the kind of file. */
	out->order = (struct model_tensor){ .rows = t->rows, .cols = t->cols, .bytes = 1 };
	bind_note_order(&b, layer, &bind_slots[slot], &out->order);
	if (bind_by_heads(&b, slot))
		bind_note_heads(&b, slot, &out->order);
	if (bind_by_key(&b, slot))
		bind_note_sections(&b, slot, &out->order);
	out->head_dim = out->order.rope_head ? out->order.rope_head : m->spec.head_dim;
	return true;
}

bool model_experts_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                               struct model_location *out)
{
	static const char end[] = ".weight";
	const struct model_tensor *t = tensor_of(m, layer, slot);
	struct model_file f = as_format(m, gguf ? MODEL_GGUF : MODEL_HF);
	enum tensor_slot first = slot, last = slot;

	if (!t->bytes || !t->experts || bind_slots[slot].vector || bind_fused_name(&f, slot, &first, &last))
		return false;
	const char *name = bind_own_name(&f, slot);
	const size_t n = strlen(name), ends = sizeof end - 1;
	if (n <= ends || strcmp(name + n - ends, end) != 0 || (!gguf && !strchr(name, '*')))
		return false;
	snprintf(out->name, sizeof out->name, "%s%" PRIu32 ".%.*s", bind_layers_name(&f), layer, (int)(n - ends), name);
	out->first_row = 0;
	out->all_rows = t->rows;
	out->order = (struct model_tensor){ .rows = t->rows, .cols = t->cols, .bytes = 1 };
	out->head_dim = m->spec.head_dim;
	return true;
}

/* The module and its parameter: of one matrix for each expert, the list of them. */
static void parameter_name(char *out, size_t room, const char *name, const char *parameter, bool newer)
{
	static const char end[] = ".weight";
	const char *star = strchr(name, '*');
	const size_t n = strlen(name), ends = sizeof end - 1;

	if (star)
		snprintf(out, room, "%.*s%s", (int)(star - name), name, parameter);
	else
		snprintf(out, room, "%.*s", (int)(n > ends && strcmp(name + n - ends, end) == 0 ? n - ends : n), name);
	if (newer)
		snprintf(out, room, "mlp.experts.%s", parameter);
}

bool model_parameter_location_of(const struct model *m, uint32_t layer, enum tensor_slot slot, bool newer,
                                 struct model_location *out)
{
	static const char older[] = "block_sparse_moe.experts.*";
	const struct model_tensor *t = tensor_of(m, layer, slot);
	struct model_file f = as_format(m, MODEL_HF);
	enum tensor_slot first = slot, last = slot;

	if (!t->bytes || !t->experts || bind_slots[slot].vector)
		return false;
	const bool pair = slot != SLOT_expert_down && tensor_of(m, layer, SLOT_expert_gate)->bytes,
		   is_up = slot == SLOT_expert_up, alternates = pair && f.arch->hf_fused & FUSED_BY_COLUMNS;
	const char *fused = bind_fused_name(&f, slot, &first, &last), *name = fused ? fused : bind_own_name(&f, slot);
	char own[NAME_CAP - 32];
	if (newer && strncmp(name, older, sizeof older - 1) != 0)
		return false;
	parameter_name(own, sizeof own, name, pair ? "gate_up_proj" : is_up ? "up_proj" : "down_proj", newer);
	*out = (struct model_location){
		.all_rows = pair ? 2 * t->rows : t->rows,
		.first_row = !pair || !is_up ? 0
		             : alternates    ? 1
		                             : t->rows,
		.order = { .rows = t->rows, .cols = t->cols, .bytes = 1 },
		.head_dim = m->spec.head_dim,
		.row_step = alternates ? 2 : 1,
		.by_columns = f.arch->hf_fused & FUSED_BY_COLUMNS || f.arch->experts_by_columns
	};
	snprintf(out->name, sizeof out->name, "%s%" PRIu32 ".%s", bind_layers_name(&f), layer, own);
	return true;
}

bool model_norm_location_of(const struct model *m, bool gguf, uint32_t layer, enum tensor_slot slot,
                            struct model_location *out)
{
	static const char end[] = ".weight";
	const bool last = slot == TENSOR_SLOTS;
	const struct model_tensor *t = last ? &m->spec.final_norm : tensor_of(m, layer, slot);
	struct model_file f = as_format(m, gguf ? MODEL_GGUF : MODEL_HF);
	struct model seen = *m;
	const struct binder b = { .m = &seen, .f = &f, .base = "", .head = "" };
	/* As a norm before attention has them: a number for each of the stream's. */
	const struct bind_slot_row *row = &bind_slots[last ? SLOT_attn_norm : slot];

	if (!t->bytes || t->ones || t->given || t->each_times || m->spec.encodes || !row->vector)
		return false;
	*out = (struct model_location){ .all_rows = 1, .order = { .rows = 1, .cols = t->cols, .bytes = 1 } };
	bind_note_order(&b, last ? 0 : layer, row, &out->order);
	out->head_dim = out->order.rope_head ? out->order.rope_head : m->spec.head_dim;
	const char *others = gguf ? "output_norm.weight" : "model.norm.weight", *own = f.arch->final_norm[f.format],
		   *name = !last ? bind_own_name(&f, slot)
	                   : own ? own
	                         : others;
	const size_t n = strlen(name), ends = sizeof end - 1;
	if (n <= ends || strcmp(name + n - ends, end) != 0)
		return false;
	if (last) {
		snprintf(out->name, sizeof out->name, "%.*s", (int)(n - ends), name);
		return true;
	}
	snprintf(out->name, sizeof out->name, "%s%" PRIu32 ".%.*s", bind_layers_name(&f), layer, (int)(n - ends), name);
	return true;
}

const char *model_gguf_name(const struct model *m) { return m->file->arch->gguf; }
