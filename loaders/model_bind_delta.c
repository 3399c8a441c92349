/* loaders/model_bind_delta.c - matrices of the delta rule whose rows lie in one tensor by heads of keys: behind a
 * head's query and key are the values and the gates of the heads of values that it serves. */
#include "loaders/model_bind.h"

bool bind_by_key(const struct binder *b, enum tensor_slot k)
{
	uint32_t fused = b->f->format == MODEL_GGUF ? b->f->arch->gguf_fused : b->f->arch->hf_fused;

	return (fused & FUSED_DELTA && (k == SLOT_delta_qkv || k == SLOT_delta_z)) ||
	       (fused & FUSED_RATES && (k == SLOT_delta_b || k == SLOT_delta_a));
}

void bind_note_sections(const struct binder *b, enum tensor_slot k, struct model_tensor *t)
{
	const struct model_recurrent *r = &b->m->spec.recurrent;
	const uint32_t heads = r->value_heads / r->key_heads, key = r->key_dim, values = heads * r->value_dim;
	bool rates = k == SLOT_delta_a || k == SLOT_delta_b;

	t->key_heads = r->key_heads;
	t->by_key = rates ? 2 * heads : 2 * key + 2 * values;
	t->bytes = (size_t)t->key_heads * t->by_key * t->row_bytes; /* all of them */
	t->section[0].rows = rates ? heads : k == SLOT_delta_z ? values : key;
	t->section[0].first = k == SLOT_delta_a ? heads : k == SLOT_delta_z ? 2 * key + values : 0;
	if (k != SLOT_delta_qkv)
		return;
	t->section[1].rows = key;
	t->section[1].first = key;
	t->section[2].rows = values;
	t->section[2].first = 2 * key;
}
