/* kernels-templates/attention/attention.h - what the parts of attention.c share: one run of heads, and what each of its
 * heads keeps in local memory.
 *
 * Owns: where a head's queries, state and o lie. attention.c goes through the cache; attention_rows.c fills these
 * before and writes results after; attention_prefetch.c prefetches. No other file includes this.
 */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include "kernels-templates/emit/heads.h"

/* M, L, and this chunk's a and b of numerics.h rule 9; one vector each, equal lanes. */
enum { STATE_MAX, STATE_SUM, STATE_OLD, STATE_NEW, STATE_VECTORS };
enum { ATTENTION_LINE = 64 };

struct attention {
	struct ir *b;
	unsigned w, parts, dims, vectors /* of a head's o */, group /* query heads per kv head */;
	unsigned out_dims;           /* of values and results; latent: the first of the keys' dimensions */
	unsigned element, row_bytes; /* of the cache: a number; a head at a position */
	bool int8;                   /* ... in blocks of 32 dimensions with a scale */
	unsigned context_parts;      /* of which a unit does one, and leaves records of chunks; 0: it does all */
	unsigned columns, rows;      /* of a tile; rows: the queries of a unit, [column][group] */
	unsigned regs, head_tile;
	bool window, cap, latent, sinks, both, biased;
	unsigned period;        /* of windows that all begin at its multiples, 0: each ends at its token */
	ir_s last;              /* with period: the last column's position, from the text's start */
	unsigned kv_heads, run; /* run: the most heads that go through the chunks together */
	bool streams; /* keys and values are each prefetched a little ahead of where they are read; else values while
	                 keys are read, and the other way round */
	bool second_level;        /* streams: prefetched into the second cache level too, from further ahead */
	ir_s n, at;               /* this run has n heads; at: which of them, where the run may have several */
	ir_a q, scores, state, o; /* local: [rows][dims], [rows][128], [rows][STATE_VECTORS][w], [rows][vectors * w];
	                             but for scores each head of a run has its own */
	ir_a chunk_o;             /* several columns, and latent: a chunk's o, [rows][vectors * w] */
	ir_a arg;
	ir_a page;       /* variable: this chunk's entry of the table of pages */
	ir_a record;     /* variable: parts: of this chunk and the run's first row */
	ir_a keys;       /* variable: this chunk's keys; its values lie as far behind for every head */
	ir_s first_head; /* biased: of the run */
	ir_s left;       /* variable: both: one past the last position that there is, counted from the chunk's start */
	ir_s hi; /* variable: one past the last position that is visible, to the last column, counted from the chunk's
	            start */
};

/* Local memory's bytes of one head: its queries, state, o. */
static inline unsigned attention_q_bytes(const struct attention *t)
{
	return (t->rows * t->dims * 4 + ATTENTION_LINE - 1) / ATTENTION_LINE * ATTENTION_LINE;
}
static inline unsigned attention_state_bytes(const struct attention *t) { return t->rows * STATE_VECTORS * t->w * 4; }
static inline unsigned attention_o_bytes(const struct attention *t) { return t->rows * t->vectors * t->w * 4; }

/* Of a record of a row and chunk (docs/kernel-templates.md): its bytes, and where max and sum are in it. */
static inline unsigned attention_record_bytes(const struct attention *t)
{
	return template_attention_record(t->out_dims);
}
static inline int32_t attention_record_marks(const struct attention *t)
{
	return (int32_t)((t->out_dims + 31) / 32 * 128);
}

/* Where the head at hand has its own of what each head of a run has. */
static inline ir_a attention_of_head(const struct attention *t, ir_a local, unsigned bytes)
{
	return t->run > 1 ? ir_aadd(t->b, local, ir_smuli(t->b, t->at, bytes)) : local;
}

/* This chunk's records of the head at hand. */
static inline ir_a attention_record_of_head(const struct attention *t)
{
	return attention_of_head(t, t->record, t->group * attention_record_bytes(t));
}

static inline int32_t attention_lanes_bytes(const struct attention *t, unsigned vectors)
{
	return (int32_t)(vectors * t->w * 4);
}

static inline int32_t attention_state_at(const struct attention *t, unsigned what)
{
	return attention_lanes_bytes(t, what);
}

/* From this chunk's page to the next one's, wherever that lies. */
static inline ir_s attention_page_step(const struct attention *t)
{
	return ir_ssub(t->b, ir_sload64(t->b, t->page, 8), ir_sload64(t->b, t->page, 0));
}

/* A stream of prefetches beside what is read: the next addresses, variables, one for each cache level; times: so many
 * bytes are prefetched for each that is read. */
struct prefetch {
	unsigned levels, times;
	ir_a at[2];
};

/* From a head's chunk to what is read next: the same chunk of the run's next head, behind the last one the first one's
 * next chunk. */
ir_s prefetch_next(const struct attention *t);
/* Prefetches from `at` on, in the order of addresses. */
struct prefetch prefetch_from(const struct attention *t, ir_a at, unsigned times);
/* A strip of a head's chunk of keys or values, which has `count` strips that are read, of `bytes` bytes each; it begins
 * at `at`. */
struct strip {
	ir_a at;
	ir_s number, count;
	unsigned bytes;
};
/* To be called before the strip is read: prefetches strips of the same stream some way ahead of it. */
struct prefetch prefetch_stream(const struct attention *t, const struct strip *s);
/* Emits the prefetches that go with reading the next `bytes` bytes. */
void prefetch_emit(const struct attention *t, const struct prefetch *a, unsigned bytes);
/* How long strips are: a block of keys has so many, whose loops have steps of `unroll` dimensions; a strip of values so
 * many rows, a power of two. */
unsigned prefetch_key_strips(const struct attention *t, unsigned unroll);
unsigned prefetch_value_rows(const struct attention *t);

/* Of the head at hand of the run (t->at), u: its tile and number. The queries into local memory, state and o as before
 * any chunk; the results to where the launch wants them. */
void attention_begin_rows(const struct attention *t, struct heads_unit u);
void attention_end_rows(const struct attention *t, struct heads_unit u);
/* The position of a tile's first column. */
ir_s attention_tile_base(const struct attention *t, ir_s tile);

#endif
