/* kernels-templates/matmul/matmul_mma_shared.h - what the files of matmul_mma_shared.c share: a tile's steps, and what
 * waves stage for them. */
#ifndef KERNELS_MATMUL_MMA_SHARED_H
#define KERNELS_MATMUL_MMA_SHARED_H

#include "kernels-templates/formats/weight_vectors_period.h"
#include "kernels-templates/matmul/matmul_product.h"

enum {
	MMA_SIDE = PRODUCT_ROWS /* or columns, of a wave */,
	MMA_BOTH = 2 * MMA_SIDE,
	MMA_HALVES = 2 /* of the spans */,
	MMA_STEP = 4 /* strips of a step, at most */,
	MMA_APART = MMA_BOTH + 4 /* from a vector of a strip to its next: in other banks */,
	MMA_VECTORS_BYTES = MMA_APART * IR_VECTOR_BYTES,
	MMA_FACTOR_BYTES = 2 * MMA_VECTORS_BYTES,
	MMA_SCALES_BYTES = MMA_BOTH * MMA_STEP * 4,
	MMA_UNIT_BYTES =
		MMA_SIDE * IR_STRIP_BYTES /* of a row block: its strips of a unit, where they lie as they are */
};

struct mma_shared {
	struct matmul_group group;
	struct ir *b;
	const struct matmul_recipe *recipe;
	unsigned spans /* of a half */, span_strips;
	ir_a own;

	/* This wave's: its half, which rows and columns it multiplies, which 16 of both it stages. */
	ir_s half, row_side, column_side, loader;

	/* A tile's, and walking: what is staged next. */
	ir_a x, w, xs, heads;
	struct matmul_product product;
};

/* Some strips of a period. */
struct mma_step {
	unsigned units, first, strips; /* of the period; the first one's number; how many */
};

/* What a wave has loaded for a step. */
struct mma_loaded {
	ir_o x[MMA_STEP], w[MMA_STEP];
	ir_i dx[2], sx[2], dw;
	ir_i word[WEIGHT_MAX_ARRAYS][16], head[4];
};

static inline uint32_t mma_column_bytes(const struct mma_shared *m) { return m->group.kp * (m->recipe->int8 ? 1 : 2); }
static inline bool mma_has_minima(const struct mma_shared *m)
{
	return m->recipe->unpacks && m->recipe->format->quants->minimum;
}
static inline bool mma_has_halves(const struct mma_shared *m)
{
	return m->recipe->unpacks && m->recipe->format->quants->halves;
}

/* Shared bytes of a half of the spans: for each strip of a step the columns', behind them the rows' (between the
 * vectors of these as much of zeroes, where halves of a unit have their own scales); then f32 [column][MMA_STEP]
 * scales, and sums scaled likewise; then f32 [unit][row] scales, and minima likewise, or those of second halves. */
static inline int32_t mma_row_vectors(const struct mma_shared *m) { return mma_has_halves(m) ? 3 : 2; }
static inline int32_t mma_strip_bytes(const struct mma_shared *m)
{
	return MMA_FACTOR_BYTES + mma_row_vectors(m) * MMA_VECTORS_BYTES;
}
static inline int32_t mma_column_numbers(const struct mma_shared *m) { return mma_has_minima(m) ? 2 : 1; }
static inline int32_t mma_row_numbers(const struct mma_shared *m)
{
	return mma_has_minima(m) || mma_has_halves(m) ? 2 : 1;
}
static inline int64_t mma_half_bytes(const struct mma_shared *m)
{
	return MMA_STEP * mma_strip_bytes(m) + (mma_column_numbers(m) + mma_row_numbers(m)) * MMA_SCALES_BYTES;
}
static inline ir_a mma_buffer(const struct mma_shared *m)
{
	return matmul_plus(m->b, m->group.sums, m->half, mma_half_bytes(m));
}
static inline ir_a mma_column_scales(const struct mma_shared *m)
{
	return ir_aaddi(m->b, mma_buffer(m), MMA_STEP * mma_strip_bytes(m));
}
static inline ir_a mma_row_scales(const struct mma_shared *m)
{
	return ir_aaddi(m->b, mma_column_scales(m), mma_column_numbers(m) * MMA_SCALES_BYTES);
}

/* --- matmul_mma_load.c */

/* Whether weights of this format, spans of so many units, are unpacked on their way. */
bool mma_may_load(const struct weight_format *f, unsigned span_units);
/* Where weights, and heads, of the tile's row block number `number` begin for this wave. */
void mma_begin_rows(struct mma_shared *m, ir_s number);
struct mma_loaded mma_load(const struct mma_shared *m, const struct mma_step *s);
void mma_leave(const struct mma_shared *m, const struct mma_step *s, const struct mma_loaded *r);
/* Once for a tile. */
void mma_write_zeroes(const struct mma_shared *m);
/* Behind a step's; to the tile's beginning where nothing is left (over 1, else 0; NULL: something is). */
void mma_walk(const struct mma_shared *m, const struct mma_step *s, const ir_s *over);

#endif
