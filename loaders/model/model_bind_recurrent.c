/* loaders/model/model_bind_recurrent.c - tensors of layers with a state that lie otherwise in their files: matrices of
 * the delta rule whose rows lie in one tensor by heads of keys, and vectors as matrices. Behind a head's query and key
 * lie the values and the gates of the heads of values that it serves.
 */
#include "loaders/model/model_bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* One of the three; *channels grows by those it has. */
static bool bind_extent(struct binder *b, const char *name, uint64_t *channels, struct model_extent *extent,
                        struct model_tensor *out)
{
	const uint32_t taps = b->m->spec.recurrent.taps;
	struct found_tensor t;

	if (!model_find_tensor(b->f, name, &t))
		return error_set(b->err, ERROR_FORMAT, "%s: the tensor %s is missing", b->f->part[0].file.label, name);
	const uint64_t rows = t.dim[1] * t.dim[2] * t.dim[3];
	if (t.rank > 4 || t.dim[0] != taps || !rows || rows > MODEL_MAX_WIDTH)
		return error_set(b->err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " taps of %" PRIu64 " channels, expected %" PRIu32
		                 " of some",
		                 t.label, name, t.dim[0], rows, taps);
	if (!bind_check_type(b, name, &t, true))
		return false;
	if (*channels && t.type != out->type)
		return error_set(b->err, ERROR_UNSUPPORTED, "%s: tensor %s has type %s, expected %s as before it",
		                 t.label, name, dtype_table[t.type].name, dtype_table[out->type].name);
	if (!*channels)
		*out = (struct model_tensor){ .name = bind_keep_name(b->f, name),
			                      .type = t.type,
			                      .rows = 1,
			                      .part = t.part,
			                      .offset = t.offset };
	*extent = (struct model_extent){ t.part, t.offset, rows * taps * dtype_table[t.type].bytes };
	*channels += rows;
	out->cols += rows * taps;
	out->bytes += (size_t)extent->bytes;
	b->f->used[t.entry] = true;
	b->m->tensor_bytes += extent->bytes;
	return true;
}

/* Where one ends and the next begins is not asked: transformers makes one tensor of them, and saves three that are as
 * long as each other. */
bool bind_taps_apart(struct binder *b, uint32_t layer, struct model_tensor *out)
{
	const struct model_spec *s = &b->m->spec;
	const char *form = b->f->arch->taps_apart[b->f->format];
	const int star = (int)strcspn(form, "*");
	uint64_t channels = 0;
	char name[NAME_CAP];

	if (!b->f->extents && !(b->f->extents = calloc((size_t)s->layers * MODEL_EXTENTS, sizeof *b->f->extents)))
		return error_set(b->err, ERROR_MEMORY, "%s: no memory for %" PRIu32 " layers", b->label, s->layers);
	struct model_extent *extent = b->f->extents + (size_t)layer * MODEL_EXTENTS;
	for (int i = 0; i < MODEL_EXTENTS; i++) {
		snprintf(name, sizeof name, "%s%s%" PRIu32 ".%.*s%c%s", b->base, bind_layers_name(b->f), layer, star,
		         form, "qkv"[i], form + star + 1);
		if (!bind_extent(b, name, &channels, &extent[i], out))
			return false;
	}
	out->row_bytes = out->bytes;
	out->extent = extent;
	return channels == s->recurrent.channels ||
	       error_set(b->err, ERROR_FORMAT,
	                 "%s: the tensors up to %s have taps of %" PRIu64 " channels, expected %" PRIu32,
	                 b->f->part[0].file.label, name, channels, s->recurrent.channels);
}

bool model_read_extents(const struct model *m, const struct model_tensor *t, uint64_t offset, size_t bytes,
                        uint8_t *out, struct error *err)
{
	for (int i = 0; i < MODEL_EXTENTS && bytes; i++) {
		const struct model_extent *p = &t->extent[i];
		if (offset >= p->bytes) {
			offset -= p->bytes;
			continue;
		}
		const size_t n = bytes < p->bytes - offset ? bytes : (size_t)(p->bytes - offset);
		if (!file_read(&m->file->part[p->part].file, p->offset + offset, n, out, err))
			return false;
		offset = 0;
		out += n;
		bytes -= n;
	}
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
