/* kernels-templates/attention/wave_rotate.c - what attention that rotates does first, for groups of waves.
 *
 * Owns: KEY_ROTATES. A unit's queries are normed, rotated and scaled into shared bytes, as KEY_ROPE does it; the unit
 * that sees the newest position puts its key and value into the cache, as KEY_KV_STORE does it, and of several columns
 * each unit those in its own part. Each wave takes a
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

/* The angles of a column; one column has them where they begin. */
static ir_a angles_at(const struct spread *t, unsigned slot, ir_s column)
{
	ir_a at = slot_at(t, slot);

	return t->columns == 1 ? at : ir_aadd(t->b, at, ir_smuli(t->b, column, t->dims / 2 * 4));
}

static struct heads_rotation rotation(const struct spread *t, ir_a x, ir_s column, unsigned cos, unsigned sin,
                                      unsigned norm)
{
	const uint32_t flags = t->kv.key->flags;
	struct heads_rotation r = { .x = x,
		                    .dims = t->dims,
		                    .awaited = flags & KEY_AWAITED,
		                    .normed = flags & KEY_QK_NORM,
		                    .last = flags & KEY_NORM_LAST };

	r.cos = angles_at(t, cos, column);
	r.sin = angles_at(t, sin, column);
	if (r.normed) {
		r.norm = slot_at(t, norm);
		r.eps = ir_fbcast(t->b, t->arg, ATTENTION_EPS * 8);
	}
	return r;
}

/* Bytes of a column of so many heads. */
static unsigned column_step(const struct spread *t, unsigned heads)
{
	return (unsigned)numerics_pad(heads * t->dims) * 4;
}

static void rotate_queries(const struct spread *t)
{
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(t->waves);
	ir_s mine = ir_sshri(b, ir_ssub(b, ir_sconst(b, t->rows + t->waves - 1), t->wave), shift);
	ir_s turn = ir_loop(b, mine), row = ir_sadd(b, ir_sshli(b, turn, shift), t->wave);
	ir_s first = ir_smuli(b, ir_smuli(b, t->head, t->group), t->dims * 4), of_row = ir_smuli(b, row, t->dims * 4),
	     column = { 0 };
	ir_a x = ir_aadd(b, ir_aadd(b, slot_at(t, ATTENTION_Q), first), of_row);
	if (t->columns > 1) { /* rows of a column lie side by side, as they do here */
		column = ir_sdivi(b, row, t->group);
		x = ir_aadd(
			b, x,
			ir_smuli(b, column,
		                 (int64_t)column_step(t, t->kv_heads * t->group) - (int64_t)(t->group * t->dims * 4)));
	}
	struct heads_rotation r = rotation(t, x, column, ATTENTION_COS, ATTENTION_SIN, ATTENTION_NORM);
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

/* Where the key or value of a column is that is to be stored. */
static ir_a column_at(const struct spread *t, unsigned slot, ir_s column)
{
	struct ir *b = t->b;
	ir_a at = ir_aadd(b, slot_at(t, slot), ir_smuli(b, t->head, t->dims * 4));

	return t->columns == 1 ? at : ir_aadd(b, at, ir_smuli(b, column, column_step(t, t->kv_heads)));
}

static ir_a page_of(const struct spread *t, ir_s position)
{
	struct ir *b = t->b;
	ir_s number = ir_sshli(b, ir_sshri(b, position, 7), 3);

	return ir_aload(b, ir_aadd(b, slot_at(t, ATTENTION_PAGES), number), 0);
}

static void store_key(const struct spread *t, ir_s column, ir_s position, ir_a page)
{
	struct ir *b = t->b;
	ir_a x = column_at(t, ATTENTION_K, column);
	struct heads_rotation r = rotation(t, x, column, ATTENTION_KEY_COS, ATTENTION_KEY_SIN, ATTENTION_KEY_NORM);
	ir_a keys = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_KEYS * 8));

	kv_store_emit_key(b, &t->kv, &r, keys, t->head, position);
}

static void store_value(const struct spread *t, ir_s column, ir_s position, ir_a page)
{
	struct ir *b = t->b;
	ir_f eps = { 0 };

	if (t->kv.key->flags & KEY_VALUE_NORM)
		eps = ir_fbcast(b, t->arg, ATTENTION_EPS * 8);
	ir_a values = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_VALUES * 8)),
	     from = column_at(t, ATTENTION_V, column);
	kv_store_emit_value(b, &t->kv, from, eps, values, t->head, position);
}

void attention_wave_rotate(const struct spread *t, ir_s newest)
{
	struct ir *b = t->b;
	unsigned key_wave = t->rows % t->waves, value_wave = (t->rows + 1) % t->waves;
	ir_s column = ir_sconst(b, 0);
	ir_a page = page_of(t, t->position);

	ir_loop(b, of_wave(t, key_wave, newest));
	store_key(t, column, t->position, page);
	ir_endloop(b);

	ir_loop(b, of_wave(t, value_wave, newest));
	store_value(t, column, t->position, page);
	ir_endloop(b);

	rotate_queries(t);
	ir_barrier_all(b);
}

/* ---- with copies that were asked for ahead */

/* Whose turn a query is not. */
static unsigned key_wave(const struct spread *t) { return t->waves - 1; }
static unsigned value_wave(const struct spread *t) { return t->waves - 2; }

void attention_wave_rotate_ahead(const struct attention_ahead *a, ir_s newest)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;

	ir_loop(b, of_wave(t, key_wave(t), newest));
	ir_s column = ir_sconst(b, 0);
	ir_a x = column_at(t, ATTENTION_K, ir_sconst(b, 0));
	struct heads_rotation r = rotation(t, x, column, ATTENTION_KEY_COS, ATTENTION_KEY_SIN, ATTENTION_KEY_NORM);
	attention_ahead_leave_key(a, &r);
	ir_endloop(b);
	rotate_queries(t);
	ir_barrier(b);
}

void attention_wave_value_ahead(const struct attention_ahead *a, ir_s newest)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;
	ir_f eps = { 0 };

	ir_loop(b, of_wave(t, value_wave(t), newest));
	if (t->kv.key->flags & KEY_VALUE_NORM)
		eps = ir_fbcast(b, t->arg, ATTENTION_EPS * 8);
	attention_ahead_leave_value(a, column_at(t, ATTENTION_V, ir_sconst(b, 0)), eps);
	ir_endloop(b);
}

void attention_wave_store_ahead(const struct attention_ahead *a, ir_s newest)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;
	const uint32_t head_bytes = CHUNK * t->row_bytes;

	ir_loop(b, of_wave(t, key_wave(t), newest));
	ir_a page = ir_aadd(b, page_of(t, t->position), ir_smuli(b, t->head, head_bytes)),
	     keys = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_KEYS * 8));
	ir_s block = ir_sshri(b, ir_sandi(b, t->position, CHUNK - 1), 5);
	attention_ahead_put_key(a, ir_aadd(b, keys, ir_smuli(b, block, LANES * t->row_bytes)), t->position);
	ir_endloop(b);

	ir_loop(b, of_wave(t, value_wave(t), newest));
	page = ir_aadd(b, page_of(t, t->position), ir_smuli(b, t->head, head_bytes));
	ir_a values = ir_aadd(b, page, ir_sload64(b, t->arg, ATTENTION_VALUES * 8));
	ir_s vector = ir_loop(b, ir_sconst(b, t->dims / LANES));
	attention_ahead_put_value(a, ir_aadd(b, values, ir_smuli(b, vector, LANES_BYTES)), vector, t->position,
	                          t->row_bytes);
	ir_endloop(b);
	ir_endloop(b);
}

/* ---- several columns */

/* Columns `from`, from + waves, ... that lie in chunks first .. end - 1: opens two loops; returns the column. */
static ir_s each_column(const struct spread *t, ir_s from, ir_s first, ir_s end)
{
	struct ir *b = t->b;
	ir_s left = ir_ssub(b, ir_sconst(b, t->columns + t->waves - 1), from),
	     turn = ir_loop(b, ir_sdivi(b, left, t->waves)), column = ir_sadd(b, from, ir_smuli(b, turn, t->waves));
	ir_s chunk = ir_sshri(b, ir_sadd(b, t->position, column), 7),
	     behind = ir_smin(b, ir_ssub(b, end, chunk), ir_saddi(b, ir_ssub(b, chunk, first), 1));

	ir_loop(b, ir_smin(b, behind, ir_sconst(b, 1)));
	return column;
}

void attention_wave_rotate_columns(const struct spread *t, ir_s first, ir_s end)
{
	struct ir *b = t->b;

	ir_s column = each_column(t, t->wave, first, end), position = ir_sadd(b, t->position, column);
	store_key(t, column, position, page_of(t, position));
	ir_endloop(b);
	ir_endloop(b);

	ir_s other = ir_ssub(b, ir_sconst(b, t->waves - 1), t->wave);
	column = each_column(t, other, first, end);
	position = ir_sadd(b, t->position, column);
	store_value(t, column, position, page_of(t, position));
	ir_endloop(b);
	ir_endloop(b);

	rotate_queries(t);
	ir_barrier_all(b);
}
