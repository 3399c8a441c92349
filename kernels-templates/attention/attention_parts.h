/* kernels-templates/attention/attention_parts.h - what the files of the attention template for CPUs share beside
 * attention.h. */
#ifndef KERNELS_ATTENTION_PARTS_H
#define KERNELS_ATTENTION_PARTS_H

#include "kernels-templates/attention/attention.h"

enum {
	SCORE_BYTES = NUMERICS_CHUNK * 4, /* one head's scores, later its p */
	UNROLL = 4,
	ENOUGH_SUMS = 8, /* to hide the latency of fma */
	MAX_ROWS = 128,  /* bounds what a call keeps on its stack */
	MAX_REGS = 32,
	MAX_SUMS = 32,
	SOFTMAX_ROWS = 4,
	STRETCH_BYTES = 256 << 10, /* as long as runs of memory need to be: a plain read of such is 3 % slower than of
	                         one run, of 32 KiB 15 % */
	RUN_BYTES = 64 << 10       /* what the heads of a run may keep */
};

/* A tile of `size` things; the first of them is number first, or first + index * size when tiles are many and the code
 * is a loop's body. */
struct tile_range {
	unsigned size, first;
	bool many;
	ir_s index;
};
typedef void (*tile_fn)(const struct attention *t, const struct tile_range *p, const void *context);

/* sums[h][v] = fma(vector v, scalar h, sums[h][v]): vector v lies at[v] bytes behind `vectors`, scalar h head_bytes * h
 * bytes behind `scalars`.
 * int8: scale[v] are the scales of keys; values have theirs scale_at[v] bytes behind `vectors`. */
struct tile {
	unsigned heads, n;
	ir_f sum[MAX_SUMS];
	unsigned at[8], scale_at[8];
	uint32_t head_bytes;
	bool keys;
	ir_f scale[8];
	struct prefetch prefetch;
	ir_s block, blocks; /* keys, t->streams: which block this is of its head's chunk, of how many that are read */
};

/* --- attention_tile.c */

/* A tile of h heads by v vectors keeps h * v sums, the smaller side, and one of the larger side at a time; with int8
 * the vectors' scales, and one more on its way from int8. */
unsigned attention_tile_regs(const struct attention *t, unsigned h, unsigned v);
/* The most vectors beside h heads: more sums than hide the latency of fma only help when they share loads. */
unsigned attention_tile_vectors(const struct attention *t, unsigned h);
/* Emits tiles for n things, at most max each, as even as can be: of two sizes at most, hence at most two copies of the
 * code, unless each is to have its own. */
void attention_each_tile(const struct attention *t, unsigned n, unsigned max, bool own, tile_fn emit,
                         const void *context);
/* Where the tile's first thing lies, of things that are step bytes each. */
ir_a attention_at(const struct attention *t, ir_a base, const struct tile_range *p, unsigned step);
void attention_tile_clear(const struct attention *t, struct tile *s);
void attention_tile_step(const struct attention *t, struct tile *s, ir_a vectors, unsigned bytes, ir_a scalars,
                         int32_t disp, unsigned number);

/* --- attention_scores.c */

/* The visible part of the chunk for a tile of heads, group by group. What it reads for invisible positions stays among
 * their scores. */
void attention_score_heads(const struct attention *t, const struct tile_range *heads, const void *context);
void attention_softmax_chunk(const struct attention *t);

/* --- attention_values.c */

/* The same for all rows, from a chunk's o, which with a window begins the next chunk as +0. */
void attention_merge_rows(const struct attention *t);
/* For all columns, when there is any such position for one of them. */
void attention_value_rests(const struct attention *t, bool head);
void attention_value_heads(const struct attention *t, const struct tile_range *heads, const void *context);

/* --- attention_latent.c */

/* The chunk's o of all rows, from keys that are values too. */
void attention_latent_values(const struct attention *t);
/* NULL, or what is wrong with a latent key. */
const char *attention_latent_refusal(const struct key *key);

/* --- attention.c */

/* Few registers hold addresses: what is cheap to make again is made again by each phase rather than kept. */
ir_s attention_chunk_end(const struct attention *t);
/* What is visible to the tile's column number `column`, and to all of them. */
ir_s attention_column_end(const struct attention *t, ir_s column);
/* With a window: the first column's first visible position, counted from the chunk's start. */
ir_s attention_first_begin(const struct attention *t);
/* How many columns, from the first on, see some of the chunk. A later one may not see it yet: its state is then the
 * initial one. */
ir_s attention_columns_that_see(const struct attention *t);
ir_s attention_chunk_begin(const struct attention *t);
/* With a window: where the tile's column number `column` begins to see; the chunk's end when it sees nothing here. */
ir_s attention_column_begin(const struct attention *t, ir_s column);
ir_s attention_common_begin(const struct attention *t);
/* Not before attention_common_begin(): a short window may leave nothing that all columns see. */
ir_s attention_common_end(const struct attention *t);
/* From an address in one cache to the same offset in the other. */
ir_s attention_cache_step(const struct attention *t, unsigned from, unsigned to);

#endif
