/* loaders/adapter/adapter_norms.c - norms that an adapter has whole (modules_to_save), for merges (adapter.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/adapter/adapter.h"

static struct adapter_whole *find(const struct adapter_file *f, const char *name, uint32_t *at)
{
	const size_t n = strlen(name);

	for (*at = 0; *at < f->n_whole; ++*at) {
		const char *path = f->whole[*at].path;
		const size_t have = strlen(path);
		if (have >= n && strcmp(path + have - n, name) == 0 && (have == n || path[have - n - 1] == '.'))
			return &f->whole[*at];
	}
	return NULL;
}

static bool match_norm(struct adapter_file *f, const struct model *m, uint32_t layer, enum tensor_slot slot,
                       size_t *room, struct error *err)
{
	struct adapter_part p = { .target = ADAPTER_WHOLE_NORM, .layer = layer, .slot = slot, .rows = 1 };
	struct adapter_whole *w;

	if (!model_norm_location_of(m, false, layer, slot, &p.location) || !(w = find(f, p.location.name, &p.pair)))
		return true;
	p.cols = p.location.order.cols;
	if (w->is_base || w->t.rows != 1 || w->t.cols != p.cols)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s is of %" PRIu64 " x %" PRIu64 " numbers, expected %" PRIu64
		                 ", as the model's %s has",
		                 f->weights.label, w->t.name, w->t.rows, w->t.cols, p.cols, p.location.name);
	w->used = true;
	return adapter_append_part(f, &p, room, err);
}

bool adapter_match_norms(struct adapter_file *f, const struct model *m, size_t *room, struct error *err)
{
	static const enum tensor_slot slots[] = {
		SLOT_attn_norm, SLOT_ffn_norm,   SLOT_attn_post_norm, SLOT_ffn_post_norm, SLOT_q_norm,
		SLOT_k_norm,    SLOT_q_row_norm, SLOT_k_row_norm,     SLOT_q_a_norm,      SLOT_kv_a_norm
	};

	for (uint32_t i = 0; i < m->spec.layers; i++)
		for (size_t k = 0; k < sizeof slots / sizeof *slots; k++)
			if (!match_norm(f, m, i, slots[k], room, err))
				return false;
	return match_norm(f, m, 0, TENSOR_SLOTS, room, err);
}
