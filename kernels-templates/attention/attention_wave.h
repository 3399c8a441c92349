/* kernels-templates/attention/attention_wave.h - what the files of attention for groups of waves share. */
#ifndef KERNELS_ATTENTION_WAVE_H
#define KERNELS_ATTENTION_WAVE_H

#include "kernels-templates/attention/kv_store.h"

enum {
	LANES = 32,
	CHUNK = NUMERICS_CHUNK,
	BLOCKS = CHUNK / LANES,
	SCORE_BYTES = CHUNK * 4,
	MARK_BYTES = 8,
	MAX_ROWS = 8,
	MAX_VECTORS = HEADS_MAX_LATENT / LANES,
	OCTET = 8 /* numbers */,
	OCTET_BYTES = 16,
	MANY = 8 /* the most iterations that are one */,
	LANES_BYTES = LANES * OCTET_BYTES
};

struct spread {
	struct ir *b;
	unsigned waves, dims, out_dims, vectors /* of a head's o */, group, columns, rows, kv_heads;
	unsigned all;                /* columns of the launch */
	bool apart;                  /* parts: of which a unit has `columns`, and rows for these alone */
	unsigned element, row_bytes; /* of the cache: a number; a head at a position */
	uint32_t period;             /* of windows that all begin at its multiples; 0: each ends at its token */
	bool int8, octets, window, cap, latent, sinks, both, biased; /* octets: templates.h */
	unsigned tile, tiles, slot; /* rows of a tile; tiles of a unit; bytes a row has of a wave's share */
	unsigned blocks;            /* of 32 positions, whose scores a wave does together */
	unsigned many;           /* values: so many iterations of a loop are one; parts: as many octets of keys, too */
	ir_a arg, shared, marks; /* [wave][row][slot], [wave][row] max and sum */
	ir_s wave;

	bool rotates;       /* KEY_ROTATES */
	bool gives;         /* KEY_AWAITED: records */
	ir_a queries;       /* ... the unit's queries, rotated: [row][dims] */
	struct kv_store kv; /* ... and the writing side of the cache */

	/* The unit's, and the tile's. */
	ir_s head, position, first_row; /* position: of the first column */
	bool partial;                   /* apart: the last columns are fewer than a unit may have */
	ir_s first_column, live;        /* apart: of the unit; partial: its rows that there are */
	ir_a own;                       /* this wave's share; its scores, or the whole chunk's p */
	ir_a o;                         /* where a chunk's o goes, rows o_step apart */
	unsigned o_step;
	bool quantised;  /* its results become int8 blocks, too */
	bool one_vector; /* of values: the walk is along one vector of dimensions; int8: its scale lies so far behind */
	ir_s scale_step;

	/* Copies. */
	const struct attention_ahead *ahead; /* whose columns' values are not in the chunk, which has `old` positions */
	ir_s old, vector;
};

/* Row `row` of the tile: its number in the unit, its column (where there are several) and its position. Rows past the
 * last are the last one again. */
struct row {
	ir_s number, column, position;
};

/* --- wave_scores.c */

/* A way along the dimensions of a chunk's keys: `take` is given some of them at a time, k[dimension][block]. */
struct key_walk {
	ir_a key[BLOCKS]; /* variables */
	void (*take)(const struct spread *t, void *context, unsigned dims, ir_f k[][BLOCKS]);
	void *context;
};
/* Where keys begin that lie at `keys`; the next `dims` dimensions. */
void attention_wave_begin_walk(const struct spread *t, struct key_walk *w, ir_a keys);
void attention_wave_walk(const struct spread *t, struct key_walk *w, unsigned dims);

/* All scores of the chunk at `keys`, visible or not, into this wave's share. */
void attention_wave_score_chunk(const struct spread *t, ir_a keys);
/* Scores of row i become p; maximum and sum are left at the mark. Where a row sees nothing of the chunk they mean
 * nothing. */
void attention_wave_softmax_row(const struct spread *t, ir_s i, ir_s start, ir_a mark);
/* Of all rows, among the marks. */
void attention_wave_softmax_rows(const struct spread *t, ir_s start);

/* --- wave_values.c */

/* The o of every row of the tile, over the positions that it sees, to where it belongs. Rows of a tile are in the
 * order of their columns, so the first row is where visible positions begin and end earliest, the last row where they
 * do so latest. */
void attention_wave_value_chunk(const struct spread *t, ir_a values, ir_s start);

/* --- wave_latent.c */

/* The same from keys that are values too (numerics.h rule 9a). */
void attention_wave_latent_chunk(const struct spread *t, ir_a keys, ir_s start);

/* --- wave_ahead.c */

/* Where a wave has the keys and values copied that it reads next, and where those of the launch's columns wait. */
struct attention_ahead {
	const struct spread *t;
	unsigned vectors;        /* of values, of a wave */
	ir_a key, value;         /* shared: column by column, as halves */
	ir_a keys, values;       /* local: a block of positions; vectors, one behind the other */
	ir_s pos0, first, count; /* the launch's; columns that lie in the unit's chunks and that it sees */
};
/* Whether a group has room for that beside `shared` bytes. t and vectors are set. */
bool attention_ahead_plan(const struct attention_ahead *a, const struct target *target, uint32_t shared);
void attention_ahead_begin(struct attention_ahead *a);
/* Copies: this wave's block of keys; a vector of a chunk's values, the wave's of that number. */
void attention_ahead_ask_keys(const struct attention_ahead *a, ir_a from);
void attention_ahead_ask_vector(const struct attention_ahead *a, ir_s number, ir_a from);
/* Where that vector is then: as in a cache whose heads have LANES dimensions. */
ir_a attention_ahead_vector(const struct attention_ahead *a, ir_s number);
/* Leaves a column's, for all waves behind the next barrier. */
void attention_ahead_leave_key(const struct attention_ahead *a, ir_s column, const struct heads_rotation *r);
void attention_ahead_leave_value(const struct attention_ahead *a, ir_s column, ir_a from, ir_f eps);
/* Puts it into its block of keys; its vector `number` into that vector of its chunk's values in the cache. */
void attention_ahead_put_key(const struct attention_ahead *a, ir_s column, ir_a block);
void attention_ahead_put_value(const struct attention_ahead *a, ir_s column, ir_a vector, ir_s number);
/* Where a vector of a column's value is left. */
ir_a attention_ahead_value(const struct attention_ahead *a, ir_s column, ir_s vector);
/* Opens a loop over the unit's columns at positions from .. from + n - 1, n a constant; returns the column. */
ir_s attention_ahead_each(const struct attention_ahead *a, ir_s from, unsigned n);

/* --- wave_rotate.c */

/* KEY_ROTATES: before anything else of a unit. newest: 1 where it is this unit that stores the position's key and
 * value, else 0. All waves of the group must come here, and none may still read another unit's queries. */
void attention_wave_rotate(const struct spread *t, ir_s newest);
/* The same, but keys are left for attention_ahead_put_key(); then the values, for what is behind another barrier. */
void attention_wave_rotate_ahead(const struct attention_ahead *a);
void attention_wave_value_ahead(const struct attention_ahead *a);
/* Puts those of the unit's chunks into the cache, when all waves have their copies. */
void attention_wave_store_ahead(const struct attention_ahead *a);
/* The same of several columns, of which this unit stores those in chunks first .. end - 1, that it reads itself. */
void attention_wave_rotate_columns(const struct spread *t, ir_s first, ir_s end);

/* --- wave_split.c */

/* Whether units in parts have room for copies beside so many shared bytes; t->tile and t->tiles are set. */
bool attention_wave_split_copies(struct spread *t, const struct target *target, uint32_t beside);
/* KEY_ATTENTION with key.rows: the context in so many parts (docs/kernel-templates.md). */
void attention_wave_split_build(struct spread *t, const struct target *target, unsigned parts);

/* --- wave_columns.c */

/* A tile of as many columns as attention_wave_columns() says. */
void attention_wave_columns_build(struct spread *t);

/* --- attention_wave.c */

/* The chunk's share of every row's result: o, and maximum and sum among the marks. */
void attention_wave_chunk(const struct spread *t, ir_s chunk);
static inline ir_a attention_wave_mark(const struct spread *t, ir_s row)
{
	struct ir *b = t->b;
	return ir_aadd(b, t->marks, ir_smuli(b, ir_sadd(b, ir_smuli(b, t->wave, t->tile), row), MARK_BYTES));
}
/* The logit of a row's sink, in every lane. */
ir_f attention_wave_sink(const struct spread *t, const struct row *r);
/* What its scores lose for each position of distance, in every lane. */
ir_f attention_wave_slope(const struct spread *t, const struct row *r);
/* What is added to its scores of the chunk that begins at `start`. */
ir_a attention_wave_bias(const struct spread *t, const struct row *r, ir_s start);
/* The chunks up to the last one that a column at that position sees. */
ir_s attention_wave_chunks_to(const struct spread *t, ir_s position);
/* 1 if one of so many columns from that position on is the launch's, else 0. */
ir_s attention_wave_in_launch(const struct spread *t, ir_s position, unsigned columns);
/* If `does` is 1: zeros behind the columns of the unit's last head. */
void attention_wave_zero_pads(const struct spread *t, ir_s does);

struct row attention_wave_find_row(const struct spread *t, ir_s row);
/* What a row sees of the chunk that begins at `start`: from..to - 1, counted from there, cut to the chunk; nothing when
 * from is CHUNK or to is 0. */
ir_s attention_wave_row_end(const struct spread *t, const struct row *r, ir_s start);
/* The first position that one sees, which may be before the text. */
ir_s attention_wave_lowest(const struct spread *t, ir_s position);
ir_s attention_wave_row_begin(const struct spread *t, const struct row *r, ir_s start);
/* The row in a buffer of queries or results; column: of the launch. */
ir_a attention_wave_row_at(const struct spread *t, unsigned slot, const struct row *r, ir_s column);
/* The launch's column at a position; columns that it does not have stand for the nearest one. */
ir_s attention_wave_launch_column(const struct spread *t, ir_s position);

#endif
