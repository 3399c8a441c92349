/* kernels-templates/attention/wave_columns.c - attention of many columns, for groups of waves: every wave has columns
 * of its own and goes through all chunks that they see, one after the other.
 *
 * Owns: who does what in such a group. Its waves never wait for each other; they are one so that they read the same
 * chunks at about the same time, from the cache that they share. A wave's own bytes hold the scores of its rows, which
 * become p and then a chunk's o; their maximum and sum; and what the chunks so far came to (numerics.h rule 9).
 */
#include <math.h>

#include "kernels-templates/attention/attention_wave.h"

struct columns {
	struct spread *t;
	unsigned all; /* columns of a group */
	ir_a state;   /* [row]: o, maximum, sum */
};

static unsigned state_bytes(const struct spread *t) { return t->vectors * LANES * 4 + MARK_BYTES; }
static ir_a state_of(const struct columns *c, ir_s row)
{
	return ir_aadd(c->t->b, c->state, ir_smuli(c->t->b, row, state_bytes(c->t)));
}
static int32_t max_at(const struct spread *t) { return (int32_t)(t->vectors * LANES * 4); }

static void begin_rows(const struct columns *c)
{
	const struct spread *t = c->t;
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sconst(b, t->tile));
	struct row row = attention_wave_find_row(t, i);
	ir_a state = state_of(c, i);

	for (unsigned v = 0; v < t->vectors; v++)
		ir_fstore(b, state, ir_fconst(b, 0.0f), (int32_t)(v * LANES * 4), 0);
	ir_fstore1(b, state, t->sinks ? attention_wave_sink(t, &row) : ir_fconst(b, -INFINITY), max_at(t));
	ir_fstore1(b, state, ir_fconst(b, t->sinks ? 1.0f : 0.0f), max_at(t) + 4);
	ir_endloop(b);
}

static void merge_rows(const struct columns *c, ir_s chunk)
{
	const struct spread *t = c->t;
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sconst(b, t->tile)), sees = ir_sconst(b, 1);
	struct row row = attention_wave_find_row(t, i);

	if (t->window && t->columns > 1) { /* it may begin in a later chunk for a later column */
		ir_s begin = attention_wave_row_begin(t, &row, ir_sshli(b, chunk, 7));
		sees = ir_smin(b, ir_ssub(b, ir_sconst(b, CHUNK), begin), sees);
	}
	ir_loop(b, sees);
	ir_a state = state_of(c, i), mark = attention_wave_mark(t, i), o = ir_aadd(b, t->o, ir_smuli(b, i, t->o_step));
	ir_f max = ir_fbcast(b, mark, 0), sum = ir_fbcast(b, mark, 4), old_max = ir_fbcast(b, state, max_at(t)),
	     old_sum = ir_fbcast(b, state, max_at(t) + 4);
	ir_f new_max = ir_fmax(b, old_max, max), keep = math_exp(b, ir_fsub(b, old_max, new_max)),
	     join = math_exp(b, ir_fsub(b, max, new_max)), total = ir_ffma(b, old_sum, keep, ir_fmul(b, sum, join));
	ir_f joined[MAX_VECTORS];

	for (unsigned v = 0; v < t->vectors; v++) {
		ir_f old = ir_fload(b, state, (int32_t)(v * LANES * 4), 0);
		joined[v] = ir_ffma(b, old, keep, ir_fmul(b, ir_fload(b, o, (int32_t)(v * LANES * 4), 0), join));
	}
	for (unsigned v = 0; v < t->vectors; v++)
		ir_fstore(b, state, joined[v], (int32_t)(v * LANES * 4), 0);
	ir_fstore1(b, state, new_max, max_at(t));
	ir_fstore1(b, state, total, max_at(t) + 4);
	ir_endloop(b);
	ir_endloop(b);
}

/* Of the launch's columns only. */
static void store_rows(const struct columns *c)
{
	const struct spread *t = c->t;
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sconst(b, t->tile));
	struct row row = attention_wave_find_row(t, i);
	ir_s column = attention_wave_launch_column(t, row.position);

	ir_loop(b, attention_wave_in_launch(t, row.position, 1));
	ir_a state = state_of(c, i), out = attention_wave_row_at(t, ATTENTION_OUT, &row, column);
	ir_f sum = ir_fbcast(b, state, max_at(t) + 4);
	for (unsigned v = 0; v < t->vectors; v++) {
		ir_f o = ir_fload(b, state, (int32_t)(v * LANES * 4), 0);
		ir_fstore(b, out, ir_fdiv(b, o, sum), (int32_t)(v * LANES * 4),
		          t->out_dims - v * LANES < LANES ? t->out_dims - v * LANES : 0);
	}
	ir_endloop(b);
	ir_endloop(b);
}

static void do_unit(const struct columns *c, ir_s unit)
{
	struct spread *t = c->t;
	struct ir *b = t->b;
	struct heads_unit u = heads_unit(b, unit, t->kv_heads);
	unsigned shift = (unsigned)__builtin_ctz(c->all);
	ir_s pos0 = ir_sload64(b, t->arg, ATTENTION_POS0 * 8), first = ir_sconst(b, 0);
	ir_s behind = ir_sadd(b, pos0, ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8));
	/* The last tiles see the most chunks and begin first. */
	ir_s last = ir_sshri(b, ir_saddi(b, behind, -1), shift), tile = ir_sshli(b, ir_ssub(b, last, u.column), shift);

	t->head = u.head;
	t->position = ir_sadd(b, tile, ir_smuli(b, t->wave, t->columns));
	ir_s chunks = attention_wave_chunks_to(t, ir_saddi(b, t->position, t->columns - 1));
	if (t->window) {
		ir_s lowest = attention_wave_lowest(t, t->position);
		first = ir_sshri(b, ir_smax(b, lowest, ir_sconst(b, 0)), 7);
		chunks = ir_ssub(b, chunks, first);
	}
	ir_loop(b, attention_wave_in_launch(t, t->position, t->columns));
	begin_rows(c);
	ir_s chunk = ir_sadd(b, first, ir_loop(b, chunks));
	attention_wave_chunk(t, chunk);
	merge_rows(c, chunk);
	ir_endloop(b);
	store_rows(c);
	attention_wave_zero_pads(t, ir_sconst(b, 1));
	ir_endloop(b);
}

void attention_wave_columns_build(struct spread *t)
{
	struct ir *b = t->b;
	struct columns c = { .t = t, .all = t->columns };

	t->columns /= t->waves;
	t->rows = t->tile = t->columns * t->group;
	t->tiles = 1;
	t->wave = ir_wave(b);
	t->first_row = ir_sconst(b, 0);
	t->own = t->o = ir_local(b, (int64_t)t->tile * t->slot);
	t->o_step = t->slot;
	c.state = ir_local(b, (int64_t)t->tile * state_bytes(t));
	/* as if all waves had theirs in one buffer, one after the other */
	ir_a marks = ir_local(b, (int64_t)t->tile * MARK_BYTES);
	t->marks = ir_aadd(b, marks, ir_smuli(b, t->wave, -(int64_t)(t->tile * MARK_BYTES)));
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	do_unit(&c, ir_sadd(b, begin, i));
	ir_endloop(b);
}
