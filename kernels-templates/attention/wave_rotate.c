/* kernels-templates/attention/wave_rotate.c - what attention that rotates does first, for groups of waves.
 *
 * Owns: KEY_ROTATES. A unit's queries are normed, rotated and scaled into shared bytes, as KEY_ROPE does it; the unit
 * that sees the newest position puts its key and value into the cache, as KEY_KV_STORE does it. Each wave takes a
 * query, and two that have none, where there are such, the key and the value: all wait for the same loads at once. Then
 * all meet, and every later load finds what was written.
 */
#include "kernels-templates/attention/attention_wave.h"

struct rotated {
	ir_a at;
	ir_f scale;
};

static void query_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const struct rotated *out = context;

	ir_fstore(b, out->at, ir_fmul(b, v, out->scale), (int32_t)(i * 4), n < 32 ? n : 0);
}

static ir_a slot_at(const struct spread *t, unsigned slot) { return ir_aload(t->b, t->arg, (int32_t)(slot * 8)); }

static struct heads_rotation rotation(const struct spread *t, ir_a x, unsigned cos, unsigned sin, unsigned norm)
{
	const uint32_t flags = t->kv.key->flags;
	struct heads_rotation r = { .x = x,
		                    .dims = t->dims,
		                    .awaited = flags & KEY_AWAITED,
		                    .normed = flags & KEY_QK_NORM,
		                    .last = flags & KEY_NORM_LAST };

	r.cos = slot_at(t, cos);
	r.sin = slot_at(t, sin);
	if (r.normed) {
		r.norm = slot_at(t, norm);
		r.eps = ir_fbcast(t->b, t->arg, ATTENTION_EPS * 8);
	}
	return r;
}

static void rotate_queries(const struct spread *t)
{
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(t->waves);
	ir_s mine = ir_sshri(b, ir_ssub(b, ir_sconst(b, t->rows + t->waves - 1), t->wave), shift);
	ir_s turn = ir_loop(b, mine), row = ir_sadd(b, ir_sshli(b, turn, shift), t->wave);
	ir_s first = ir_smuli(b, ir_smuli(b, t->head, t->group), t->dims * 4), of_row = ir_smuli(b, row, t->dims * 4);
	ir_a x = ir_aadd(b, ir_aadd(b, slot_at(t, ATTENTION_Q), first), of_row);
	struct heads_rotation r = rotation(t, x, ATTENTION_COS, ATTENTION_SIN, ATTENTION_NORM);
	struct rotated out = { .at = ir_aadd(b, t->queries, of_row) };

	out.scale = ir_fbcast(b, t->arg, ATTENTION_SCALE * 8);
	heads_rotate(b, &r, query_sink, &out);
	ir_endloop(b);
}

/* `wanted` for the wave of that number, else 0. */
static ir_s of_wave(const struct spread *t, unsigned number, ir_s wanted)
{
	struct ir *b = t->b;
	ir_s off = ir_saddi(b, t->wave, -(int64_t)number);
	ir_s other = ir_smin(b, ir_smul(b, off, off), ir_sconst(b, 1));

	return ir_smul(b, wanted, ir_ssub(b, ir_sconst(b, 1), other));
}

void attention_wave_rotate(const struct spread *t, ir_s newest)
{
	struct ir *b = t->b;
	unsigned key_wave = t->rows % t->waves, value_wave = (t->rows + 1) % t->waves;
	ir_s in_row = ir_smuli(b, t->head, t->dims * 4);
	ir_s number = ir_sshli(b, ir_sshri(b, t->position, 7), 3);
	ir_a entry = ir_aadd(b, slot_at(t, ATTENTION_PAGES), number), page = ir_aload(b, entry, 0);

	ir_loop(b, of_wave(t, key_wave, newest));
	ir_a x = ir_aadd(b, slot_at(t, ATTENTION_K), in_row);
	struct heads_rotation r = rotation(t, x, ATTENTION_KEY_COS, ATTENTION_KEY_SIN, ATTENTION_KEY_NORM);
	ir_a keys = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_KEYS * 8));
	kv_store_emit_key(b, &t->kv, &r, keys, t->head, t->position);
	ir_endloop(b);

	ir_loop(b, of_wave(t, value_wave, newest));
	ir_f eps = { 0 };
	if (t->kv.key->flags & KEY_VALUE_NORM)
		eps = ir_fbcast(b, t->arg, ATTENTION_EPS * 8);
	ir_a values = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_VALUES * 8)),
	     from = ir_aadd(b, slot_at(t, ATTENTION_V), in_row);
	kv_store_emit_value(b, &t->kv, from, eps, values, t->head, t->position);
	ir_endloop(b);

	rotate_queries(t);
	ir_barrier_all(b);
}
