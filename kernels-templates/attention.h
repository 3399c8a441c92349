/* kernels-templates/attention.h - what the parts of attention.c share: one run of heads, and what each of its heads keeps in local memory.
 *
 * Owns: where a head's queries, state and o lie. attention.c goes through the cache; attention_rows.c fills these before and writes results after. No other file includes this.
 */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include "kernels-templates/heads.h"

/* M, L, and this chunk's a and b of numerics.h rule 9; one vector each, equal lanes. */
enum { STATE_MAX, STATE_SUM, STATE_OLD, STATE_NEW, STATE_VECTORS };
enum { ATTENTION_LINE = 64 };

struct attention {
	struct ir *b;
	unsigned w, parts, dims, vectors /* of a head */, group /* query heads per kv head */;
	unsigned element, row_bytes;     /* of the cache: a number; a head at a position */
	bool int8;                       /* ... in blocks of 32 dimensions with a scale */
	unsigned columns, rows;          /* of a tile; rows: the queries of a unit, [column][group] */
	unsigned regs, head_tile;
	bool window;
	unsigned kv_heads, run;          /* run: the most heads that go through the chunks together */
	ir_s n, at;                      /* this run has n heads; at: which of them, where the run may have several */
	ir_a q, scores, state, o;        /* local: [rows][dims], [rows][128], [rows][STATE_VECTORS][w], [rows][vectors * w]; but for scores each head of a run has its own */
	ir_a chunk_o;                    /* several columns: a chunk's o, [rows][vectors * w] */
	ir_a arg;
	ir_a keys;                       /* variable: this chunk's keys; its values lie equally far into their cache */
	ir_s hi;                         /* variable: one past the last position that is visible, to the last column, counted from the chunk's start */
};

/* Local memory's bytes of one head: its queries, state, o. */
static inline unsigned attention_q_bytes(const struct attention *t) { return (t->rows * t->dims * 4 + ATTENTION_LINE - 1) / ATTENTION_LINE * ATTENTION_LINE; }
static inline unsigned attention_state_bytes(const struct attention *t) { return t->rows * STATE_VECTORS * t->w * 4; }
static inline unsigned attention_o_bytes(const struct attention *t) { return t->rows * t->vectors * t->w * 4; }

/* Where the head at hand has its own of what each head of a run has. */
static inline ir_a attention_of_head(const struct attention *t, ir_a local, unsigned bytes)
{
	return t->run > 1 ? ir_aadd(t->b, local, ir_smuli(t->b, t->at, bytes)) : local;
}

static inline int32_t attention_lanes_bytes(const struct attention *t, unsigned vectors)
{
	return (int32_t)(vectors * t->w * 4);
}

static inline int32_t attention_state_at(const struct attention *t, unsigned what)
{
	return attention_lanes_bytes(t, what);
}

/* Of the head at hand of the run (t->at), u: its tile and number. The queries into local memory, state and o as before any chunk; the results to where the launch wants them. */
void attention_begin_rows(const struct attention *t, struct heads_unit u);
void attention_end_rows(const struct attention *t, struct heads_unit u);
/* The position of a tile's first column. */
ir_s attention_tile_base(const struct attention *t, ir_s tile);

#endif
