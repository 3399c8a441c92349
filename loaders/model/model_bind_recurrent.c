/* loaders/model/model_bind_recurrent.c - tensors of layers with a state that lie otherwise in their files: matrices of
 * the delta rule whose rows lie in one tensor by heads of keys, and vectors as matrices. Behind a head's query and key
 * lie the values and the gates of the heads of values that it serves.
 */
#include "loaders/model/model_bind.h"

#include <inttypes.h>

bool bind_by_key(const struct binder *b, enum tensor_slot k)
{
	const uint32_t fused = bind_fused(b->f);

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

void bind_flatten(struct found_tensor *t, uint64_t elements)
{
	if (t->rank > 2 || t->dim[0] > elements || t->dim[0] * t->dim[1] != elements)
		return;
	t->dim[0] = elements;
	t->dim[1] = t->rank = 1;
}

/* The taps of a convolution are a matrix in the file, a channel's side by side; here they are one vector. */
bool bind_flatten_taps(struct binder *b, const char *name, struct found_tensor *t)
{
	const struct model_recurrent *c = &b->m->spec.recurrent;
	uint64_t channels = t->dim[1] * t->dim[2] * t->dim[3];

	if (bind_mlx_taps(b, t)) {
		t->dim[0] = c->taps;
		t->dim[1] = 1;
		channels = c->channels;
	}
	if (t->rank > 4 || t->dim[0] != c->taps || channels != c->channels ||
	    (t->dim[1] != channels && t->dim[2] != channels))
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " taps of %" PRIu64 " channels, expected %" PRIu32
		                 " of %" PRIu32,
		                 t->label, name, t->dim[0], channels, c->taps, c->channels);
	t->dim[0] *= channels;
	t->dim[1] = t->dim[2] = t->dim[3] = t->rank = 1;
	return true;
}

/* Whether the slot's rows alternate in the file, head by head, with those of the gate or the queries. */
static bool is_qkv(enum tensor_slot k)
{
	return k == SLOT_q || k == SLOT_k || k == SLOT_v || k == SLOT_q_bias || k == SLOT_k_bias || k == SLOT_v_bias;
}

bool bind_by_heads(const struct binder *b, enum tensor_slot k)
{
	const uint32_t fused = bind_fused(b->f);

	if (fused & FUSED_BY_HEADS && is_qkv(k))
		return true;
	return fused & FUSED_Q_GATE && (k == SLOT_q || k == SLOT_q_gate || k == SLOT_q_bias || k == SLOT_q_gate_bias);
}

void bind_note_heads(const struct binder *b, enum tensor_slot k, struct model_tensor *t)
{
	const uint32_t dim = b->m->spec.head_dim, group = b->m->spec.heads / b->m->spec.kv_heads;
	const bool qkv = bind_fused(b->f) & FUSED_BY_HEADS, queries = k == SLOT_q || k == SLOT_q_bias;
	const uint32_t parts = qkv ? group + 2 : 2;

	t->head_rows = parts * dim;
	if (qkv)
		t->head_first = queries ? 0 : k == SLOT_k || k == SLOT_k_bias ? group * dim : (group + 1) * dim;
	else
		t->head_first = k == SLOT_q_gate || k == SLOT_q_gate_bias ? dim : 0;
	if (qkv && queries && group > 1) /* those of a head of keys go together */
		t->rope_head = group * dim;
	t->bytes = t->bytes / (qkv && queries ? group : 1) * parts; /* all of them */
}
