/* kernels-templates/attention/wave_rotate.c - what attention that rotates does first, for groups of waves.
 *
 * Owns: KEY_ROTATES. A unit's queries are normed, rotated and scaled into shared bytes, as KEY_ROPE does it; the unit
 * that sees the newest position puts its key and value into the cache, as KEY_KV_STORE does it, and of several columns
 * each unit those in its own part. Units with copies that were asked for ahead make what they need of all columns and
 * keep it in shared bytes. Each wave takes a
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

	return t->all == 1 ? at : ir_aadd(t->b, at, ir_smuli(t->b, column, t->dims / 2 * 4));
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

/* Of count things: opens a loop over those that this wave does, of `waves` that share them round-robin, wave `number`
 * the first. */
static ir_s each_of(const struct spread *t, ir_s count, unsigned waves, ir_s number)
{
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(waves);
	ir_s mine = ir_sshri(b, ir_ssub(b, ir_saddi(b, count, waves - 1), number), shift);

	return ir_sadd(b, ir_sshli(b, ir_loop(b, mine), shift), number);
}

/* number: of the wave, among those that share them. */
static void rotate_queries(const struct spread *t, ir_s wave)
{
	struct ir *b = t->b;
	ir_s row = each_of(t, ir_sconst(b, t->rows), t->waves, wave);
	ir_s first = ir_smuli(b, ir_smuli(b, t->head, t->group), t->dims * 4), of_row = ir_smuli(b, row, t->dims * 4),
	     column = { 0 };
	ir_a to = ir_aadd(b, t->queries, of_row);
	if (t->partial) { /* rows that there are not are the last one again */
		row = ir_smin(b, row, ir_saddi(b, t->live, -1));
		of_row = ir_smuli(b, row, t->dims * 4);
	}
	ir_a x = ir_aadd(b, ir_aadd(b, slot_at(t, ATTENTION_Q), first), of_row);
	const int64_t step = column_step(t, t->kv_heads * t->group);
	if (t->columns > 1) { /* rows of a column lie side by side, as they do here */
		column = ir_sdivi(b, row, t->group);
		x = ir_aadd(b, x, ir_smuli(b, column, step - (int64_t)(t->group * t->dims * 4)));
	}
	if (t->apart) {
		column = t->columns > 1 ? ir_sadd(b, t->first_column, column) : t->first_column;
		x = ir_aadd(b, x, ir_smuli(b, t->first_column, step));
	}
	struct heads_rotation r = rotation(t, x, column, ATTENTION_COS, ATTENTION_SIN, ATTENTION_NORM);
	struct rotated out = { .at = to };

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

	return t->all == 1 ? at : ir_aadd(b, at, ir_smuli(b, column, column_step(t, t->kv_heads)));
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

	rotate_queries(t, t->wave);
	ir_barrier_all(b);
}

/* ---- with copies that were asked for ahead */

/* The last waves begin: where there is one chunk, they have nothing to copy. */
static ir_s from_last(const struct spread *t, unsigned behind)
{
	struct ir *b = t->b;

	return ir_sandi(b, ir_ssub(b, ir_sconst(b, 2 * t->waves - 1 - behind % t->waves), t->wave), t->waves - 1);
}

/* Opens a loop over the unit's columns whose values are this wave's: the waves of the last team share them round-robin,
 * which have the time where there is one chunk. */
static ir_s each_value(const struct attention_ahead *a)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;
	const unsigned team = t->waves < BLOCKS ? t->waves : BLOCKS;
	ir_s from_end = ir_ssub(b, ir_sconst(b, t->waves - 1), t->wave),
	     is_last = ir_ssub(b, ir_sconst(b, 1),
	                       ir_smin(b, ir_sshri(b, from_end, (unsigned)__builtin_ctz(team)), ir_sconst(b, 1)));

	ir_s from = ir_sandi(b, from_end, team - 1), n = ir_smul(b, a->count, is_last);
	return ir_sadd(b, a->first, each_of(t, n, team, from));
}

void attention_wave_rotate_ahead(const struct attention_ahead *a)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;

	rotate_queries(t, from_last(t, 0));
	ir_s column = ir_sadd(b, a->first, each_of(t, a->count, t->waves, from_last(t, t->rows)));
	ir_a x = column_at(t, ATTENTION_K, column);
	struct heads_rotation r = rotation(t, x, column, ATTENTION_KEY_COS, ATTENTION_KEY_SIN, ATTENTION_KEY_NORM);
	attention_ahead_leave_key(a, column, &r);
	ir_endloop(b);
	ir_barrier(b);
}

void attention_wave_value_ahead(const struct attention_ahead *a)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;
	ir_f eps = { 0 };

	ir_s column = each_value(a);
	if (t->kv.key->flags & KEY_VALUE_NORM)
		eps = ir_fbcast(b, t->arg, ATTENTION_EPS * 8);
	attention_ahead_leave_value(a, column, column_at(t, ATTENTION_V, column), eps);
	ir_endloop(b);
}

/* Where keys or values of the head begin that are in the column's chunk. */
static ir_a cached_at(const struct attention_ahead *a, ir_s column, unsigned slot)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;
	ir_a page = page_of(t, ir_sadd(b, a->pos0, column));

	page = ir_aadd(b, page, ir_smuli(b, t->head, CHUNK * t->row_bytes));
	return ir_aadd(b, page, ir_sload64(b, t->arg, (int32_t)(slot * 8)));
}

void attention_wave_store_ahead(const struct attention_ahead *a)
{
	const struct spread *t = a->t;
	struct ir *b = t->b;

	/* By those that left them: nobody else need have seen that. */
	ir_s column = ir_sadd(b, a->first, each_of(t, a->count, t->waves, from_last(t, t->rows)));
	ir_s block = ir_sshri(b, ir_sandi(b, ir_sadd(b, a->pos0, column), CHUNK - 1), 5);
	ir_a keys = ir_aadd(b, cached_at(a, column, ATTENTION_KEYS), ir_smuli(b, block, LANES * t->row_bytes));
	attention_ahead_put_key(a, column, keys);
	ir_endloop(b);

	column = each_value(a);
	ir_a values = cached_at(a, column, ATTENTION_VALUES);
	ir_s vector = ir_loop(b, ir_sconst(b, t->dims / LANES));
	attention_ahead_put_value(a, column, ir_aadd(b, values, ir_smuli(b, vector, LANES_BYTES)), vector);
	ir_endloop(b);
	ir_endloop(b);
}

/* ---- several columns */

/* Columns `from`, from + waves, ... that lie in chunks first .. end - 1: opens two loops; returns the column. */
static ir_s each_column(const struct spread *t, ir_s from, ir_s first, ir_s end)
{
	struct ir *b = t->b;
	ir_s left = ir_ssub(b, ir_sconst(b, t->columns + t->waves - 1), from),
	     iteration = ir_loop(b, ir_sdivi(b, left, t->waves)),
	     column = ir_sadd(b, from, ir_smuli(b, iteration, t->waves));
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

	rotate_queries(t, t->wave);
	ir_barrier_all(b);
}
