/* loaders/model/model_layers.c - models whose layers differ in sizes, for both kinds of files: heads of layers with a
 * window and of the others, and layers that attend to the keys and values of an earlier one. */
#include "loaders/model/model_load.h"

#include <inttypes.h>
#include <stdlib.h>

bool model_sizes_make(struct model *m, const char *label, struct error *err)
{
	struct model_spec *s = &m->spec;

	if (!hparam_range(label, "the number of layers", s->layers, 1, MODEL_MAX_LAYERS, err))
		return false;
	m->file->layer_sizes = calloc(s->layers, sizeof *m->file->layer_sizes);
	if (!m->file->layer_sizes)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, s->layers);
	for (uint32_t i = 0; i < s->layers; i++)
		m->file->layer_sizes[i] = (struct model_sizes){ s->kv_heads, s->head_dim, s->ffn, i };
	s->layer_sizes = m->file->layer_sizes;
	return true;
}

bool model_heads_make(struct model *m, const uint32_t *heads, const char *label, struct error *err)
{
	struct model_spec *s = &m->spec;
	uint32_t max = 0;
	bool same = true;

	if (!hparam_range(label, "the number of layers", s->layers, 1, MODEL_MAX_LAYERS, err))
		return false;
	for (uint32_t i = 0; i < s->layers; i++) {
		if (!hparam_range(label, "the number of attention heads of a layer", heads[i], 1, MODEL_MAX_HEADS, err))
			return false;
		max = heads[i] > max ? heads[i] : max;
		same = same && heads[i] == heads[0];
	}
	s->heads = max;
	if (same)
		return true;
	m->file->layer_heads = malloc(s->layers * sizeof *heads);
	if (!m->file->layer_heads)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", label, s->layers);
	for (uint32_t i = 0; i < s->layers; i++)
		m->file->layer_heads[i] = heads[i];
	s->layer_heads = m->file->layer_heads;
	return true;
}

static bool slides(const struct model_spec *s, uint32_t layer)
{
	return s->sliding_window && (!s->layer_is_sliding || s->layer_is_sliding[layer]);
}

bool model_share_keys(struct model *m, uint32_t shared, const char *label, struct error *err)
{
	const struct model_spec *s = &m->spec;
	struct model_sizes *z = m->file->layer_sizes;
	uint32_t own = s->layers - shared;

	if (shared >= s->layers)
		return error_set(err, ERROR_FORMAT,
		                 "%s: %" PRIu32 " of %" PRIu32 " layers attend to keys and values of earlier ones, "
		                 "expected fewer",
		                 label, shared, s->layers);
	for (uint32_t i = own; i < s->layers; i++) {
		uint32_t from = own;
		while (from > 0 && slides(s, from - 1) != slides(s, i))
			from--;
		if (from == 0)
			return error_set(err, ERROR_FORMAT,
			                 "%s: layer %" PRIu32
			                 " attends to keys and values of an earlier layer of its kind, "
			                 "and there is none",
			                 label, i);
		z[i].kv_layer = from - 1;
		z[i].kv_heads = z[from - 1].kv_heads;
		z[i].head_dim = z[from - 1].head_dim;
	}
	return true;
}

uint32_t model_main_dim(const struct model_spec *s)
{
	for (uint32_t i = 0; s->layer_sizes && i < s->layers; i++)
		if (!slides(s, i))
			return s->layer_sizes[i].head_dim;
	return s->head_dim;
}

void model_sizes_max(struct model_spec *s)
{
	s->kv_heads = s->head_dim = s->ffn = 0;
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_sizes *z = &s->layer_sizes[i];
		s->kv_heads = z->kv_heads > s->kv_heads ? z->kv_heads : s->kv_heads;
		s->head_dim = z->head_dim > s->head_dim ? z->head_dim : s->head_dim;
		s->ffn = z->ffn > s->ffn ? z->ffn : s->ffn;
	}
}

bool model_borrows(const struct model_spec *s, uint32_t layer, enum tensor_slot k)
{
	return model_sizes_of(s, layer).kv_layer != layer &&
	       (k == SLOT_k || k == SLOT_v || k == SLOT_k_norm || k == SLOT_k_bias || k == SLOT_v_bias);
}

enum model_need model_need_of(const struct model_file *f, const struct model_spec *s, uint32_t layer,
                              enum tensor_slot k, enum tensor_group group)
{
	const uint32_t fused = f->format == MODEL_HF ? f->arch->hf_fused : f->arch->gguf_fused;

	/* A gate that has a matrix of its own has no bias. */
	if ((k == SLOT_gate_bias && f->needs.group[GROUP_GATE] == NEED_NOT) ||
	    (k == SLOT_q_gate_bias && (f->needs.group[GROUP_Q_GATE] == NEED_NOT || !(fused & FUSED_Q_GATE))))
		return NEED_NOT;
	if ((k == SLOT_expert_gate || k == SLOT_shared_gate) && f->needs.group[GROUP_GATE] == NEED_NOT)
		return NEED_NOT;
	if (group == GROUP_LAYER_INPUT)
		return s->layer_input ? NEED_ALWAYS : NEED_NOT;
	if (model_borrows(s, layer, k))
		return NEED_NOT;
	if (s->layer_sizes && k == SLOT_v && !slides(s, layer))
		return f->format == MODEL_GGUF ? NEED_IF_PRESENT : f->values_are_keys ? NEED_NOT : NEED_ALWAYS;
	if (s->layer_sizes && k == SLOT_v_bias && !slides(s, layer) && f->values_are_keys)
		return NEED_NOT;
	if (k == SLOT_attn_norm && layer == 0 && f->arch->encoder && f->arch->encoder->one_first)
		return NEED_NOT;
	return f->needs.group[group];
}
