/* kernels-templates/attention/attention_rows.c - a head's rows of attention before the first chunk and after the last:
 * queries in, state cleared, results out.
 *
 * Owns: which columns of the launch a tile's columns are. Columns of a tile that lie outside of the launch are given
 * the query of one that there is, and are not written.
 */
#include <math.h>

#include "kernels-templates/attention/attention.h"

/* A head's sinks, whose heads' state follow one another, column by column. */
static void begin_with_sinks(const struct attention *t, ir_s head)
{
	struct ir *b = t->b;
	ir_a state = ir_var_a(b, attention_of_head(t, t->state, attention_state_bytes(t)));

	if (t->columns > 1)
		ir_loop(b, ir_sconst(b, t->columns));
	ir_a sink = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_SINKS * 8), ir_smuli(b, head, t->group * 4)));
	ir_loop(b, ir_sconst(b, t->group));
	ir_fstore(b, state, ir_fbcast(b, sink, 0), attention_state_at(t, STATE_MAX), 0);
	ir_fstore(b, state, ir_fconst(b, 1.0f), attention_state_at(t, STATE_SUM), 0);
	ir_set_a(b, sink, ir_aaddi(b, sink, 4));
	ir_set_a(b, state, ir_aaddi(b, state, attention_lanes_bytes(t, STATE_VECTORS)));
	ir_endloop(b);
	if (t->columns > 1)
		ir_endloop(b);
}

static void clear_state(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a state = ir_var_a(b, attention_of_head(t, t->state, attention_state_bytes(t))),
	     o = ir_var_a(b, attention_of_head(t, t->o, attention_o_bytes(t)));
	ir_a more = t->columns > 1 ? ir_var_a(b, t->chunk_o) : t->o;
	ir_f zero = ir_fconst(b, 0.0f);

	ir_loop(b, ir_sconst(b, t->rows));
	ir_fstore(b, state, ir_fconst(b, -INFINITY), attention_state_at(t, STATE_MAX), 0);
	ir_fstore(b, state, zero, attention_state_at(t, STATE_SUM), 0);
	for (unsigned v = 0; v < t->vectors; v++)
		ir_fstore(b, o, zero, attention_lanes_bytes(t, v), 0);
	if (t->window && t->columns > 1) { /* a column's first chunks may be others' alone: merging them leaves +0 */
		ir_fstore(b, state, zero, attention_state_at(t, STATE_OLD), 0);
		ir_fstore(b, state, zero, attention_state_at(t, STATE_NEW), 0);
		for (unsigned v = 0; v < t->vectors; v++)
			ir_fstore(b, more, zero, attention_lanes_bytes(t, v), 0);
		ir_set_a(b, more, ir_aaddi(b, more, attention_lanes_bytes(t, t->vectors)));
	}
	ir_set_a(b, state, ir_aaddi(b, state, attention_lanes_bytes(t, STATE_VECTORS)));
	ir_set_a(b, o, ir_aaddi(b, o, attention_lanes_bytes(t, t->vectors)));
	ir_endloop(b);
}

ir_s attention_tile_base(const struct attention *t, ir_s tile)
{
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(t->columns);
	return ir_sshli(b, ir_sadd(b, ir_sshri(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8), shift), tile), shift);
}

/* The launch's column that stands for the tile's column: number `column` when there is one, else the nearest. */
static ir_s launch_column(const struct attention *t, ir_s tile, ir_s column)
{
	struct ir *b = t->b;
	ir_s at =
		ir_ssub(b, ir_sadd(b, attention_tile_base(t, tile), column), ir_sload64(b, t->arg, ATTENTION_POS0 * 8));
	ir_s last = ir_saddi(b, ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8), -1);
	return ir_smax(b, ir_smin(b, at, last), ir_sconst(b, 0));
}

/* Of queries, or results. */
static unsigned column_bytes(const struct attention *t, unsigned dims)
{
	return (unsigned)numerics_pad(t->group * t->kv_heads * dims) * 4;
}

/* The queries of one column lie side by side; near the stack they need no address register in the inner loops. */
static void copy_column(const struct attention *t, ir_a from, ir_a to)
{
	struct ir *b = t->b;
	unsigned n = t->group * t->dims, tail = n % t->w;

	from = ir_var_a(b, from);
	ir_loop(b, ir_sconst(b, n / t->w));
	ir_fstore(b, to, ir_fload(b, from, 0, 0), 0, 0);
	ir_set_a(b, from, ir_aaddi(b, from, attention_lanes_bytes(t, 1)));
	ir_set_a(b, to, ir_aaddi(b, to, attention_lanes_bytes(t, 1)));
	ir_endloop(b);
	if (tail) {
		ir_fstore(b, to, ir_fload(b, from, 0, tail), 0, tail);
		ir_set_a(b, to, ir_aaddi(b, to, tail * 4));
	}
}

static void copy_queries(const struct attention *t, struct heads_unit u)
{
	struct ir *b = t->b;
	unsigned bytes = t->group * t->dims * 4;
	ir_a to = ir_var_a(b, attention_of_head(t, t->q, attention_q_bytes(t))),
	     from = ir_aadd(b, ir_aload(b, t->arg, ATTENTION_Q * 8), ir_smuli(b, u.head, bytes));

	if (t->columns == 1) {
		copy_column(t, ir_aadd(b, from, ir_smuli(b, u.column, column_bytes(t, t->dims))), to);
		return;
	}
	ir_s column = ir_loop(b, ir_sconst(b, t->columns));
	copy_column(t, ir_aadd(b, from, ir_smuli(b, launch_column(t, u.column, column), column_bytes(t, t->dims))), to);
	ir_endloop(b);
}

void attention_begin_rows(const struct attention *t, struct heads_unit u)
{
	copy_queries(t, u);
	clear_state(t);
	if (t->sinks)
		begin_with_sinks(t, u.head);
}

static void store_heads(const struct attention *t, ir_a state, ir_a o, ir_a out)
{
	struct ir *b = t->b;

	out = ir_var_a(b, out);
	ir_loop(b, ir_sconst(b, t->group));
	ir_f sum = ir_fload(b, state, attention_state_at(t, STATE_SUM), 0);
	for (unsigned i = 0; i < t->vectors; i++) {
		unsigned left = t->out_dims - i * t->w;
		ir_fstore(b, out, ir_fdiv(b, ir_fload(b, o, attention_lanes_bytes(t, i), 0), sum),
		          attention_lanes_bytes(t, i), left < t->w ? left : 0);
	}
	ir_set_a(b, state, ir_aaddi(b, state, attention_lanes_bytes(t, STATE_VECTORS)));
	ir_set_a(b, o, ir_aaddi(b, o, attention_lanes_bytes(t, t->vectors)));
	ir_set_a(b, out, ir_aaddi(b, out, t->out_dims * 4));
	ir_endloop(b);
}

void attention_end_rows(const struct attention *t, struct heads_unit u)
{
	struct ir *b = t->b;
	unsigned width = t->group * t->kv_heads * t->out_dims, bytes = column_bytes(t, t->out_dims);
	ir_a state = ir_var_a(b, attention_of_head(t, t->state, attention_state_bytes(t))),
	     o = ir_var_a(b, attention_of_head(t, t->o, attention_o_bytes(t))),
	     out = ir_aload(b, t->arg, ATTENTION_OUT * 8);

	if (t->columns == 1) {
		out = ir_aadd(b, out, ir_smuli(b, u.column, bytes));
	} else {
		ir_s base = attention_tile_base(t, u.column), pos0 = ir_sload64(b, t->arg, ATTENTION_POS0 * 8),
		     skip = ir_smax(b, ir_ssub(b, pos0, base), ir_sconst(b, 0));
		ir_s end = ir_smin(b, ir_ssub(b, ir_sadd(b, pos0, ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8)), base),
		                   ir_sconst(b, t->columns));
		ir_set_a(b, state,
		         ir_aadd(b, state,
		                 ir_smuli(b, skip, t->group * (unsigned)attention_lanes_bytes(t, STATE_VECTORS))));
		ir_set_a(b, o,
		         ir_aadd(b, o, ir_smuli(b, skip, t->group * (unsigned)attention_lanes_bytes(t, t->vectors))));
		out = ir_aadd(b, out, ir_smuli(b, launch_column(t, u.column, ir_sconst(b, 0)), bytes));
		out = ir_var_a(b, out);
		ir_loop(b, ir_ssub(b, end, skip));
	}
	store_heads(t, state, o, ir_aadd(b, out, ir_smuli(b, u.head, t->group * t->out_dims * 4)));
	heads_zero_pad(b, out, width, u.head, t->kv_heads);
	if (t->columns > 1) {
		ir_set_a(b, out, ir_aaddi(b, out, bytes));
		ir_endloop(b);
	}
}
