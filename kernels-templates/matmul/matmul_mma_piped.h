/* kernels-templates/matmul/matmul_mma_piped.h - what the files of matmul_mma_piped.c share: a tile, its stages, and the
 * copies that fill them. */
#ifndef KERNELS_MATMUL_MMA_PIPED_H
#define KERNELS_MATMUL_MMA_PIPED_H

#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul_product.h"

enum {
	PIPED_SIDE = PRODUCT_ROWS /* of a wave */,
	PIPED_LEVELS = 3 /* of totals that wait */,
	PIPED_STEP_BYTES = IR_ROW_BYTES /* of a row or a column */,
	PIPED_STEP_UNITS = 4 /* of 32 bytes */,
	PIPED_PLANE = PIPED_SIDE * IR_VECTOR_BYTES /* a vector of the rows of a row block */,
	PIPED_BLOCK_BYTES = PIPED_SIDE * PIPED_STEP_BYTES,
	PIPED_COLUMN_NUMBERS = PIPED_STEP_UNITS * 4 /* bytes of a column's scales, of a row's */,
	PIPED_ROW_NUMBERS = PIPED_STEP_UNITS * 2
};

struct piped {
	struct matmul_group group;
	struct ir *b;
	const struct matmul_recipe *recipe;
	unsigned spans /* of a half */, span_steps;

	/* This wave's: its half of the spans, and its number there; which row block and which columns it multiplies. */
	ir_s half, number, row, side;
	ir_a ring, own;
	/* What lanes add: of four columns of activations, swizzled as the first four of eight are; of the scales of
	 * eight columns. */
	ir_i columns, scales;

	/* A tile's: what is copied next, how many steps are left, and into which stage; which one is multiplied next.
	 */
	ir_a w, x, xs;
	ir_s unit, left, to, from;
	struct matmul_product product;
	ir_t waiting[PIPED_LEVELS][PRODUCT_PARTS][PRODUCT_HALVES];
};

static inline int64_t piped_column_bytes(const struct piped *m)
{
	return (int64_t)m->group.kp * (m->recipe->int8 ? 1 : 2);
}

/* ---- a stage: rows as [row block][vector][row], columns as [column][vector, swizzled]; scales as f32 [column][unit]
 * and f16 [row block][row][unit] */

static inline int32_t piped_columns_at(const struct piped *m) { return (int32_t)m->recipe->sides * PIPED_BLOCK_BYTES; }
static inline int32_t piped_column_scales_at(const struct piped *m)
{
	return piped_columns_at(m) + (int32_t)m->recipe->columns * PIPED_STEP_BYTES;
}
static inline int32_t piped_row_scales_at(const struct piped *m)
{
	return piped_column_scales_at(m) + (int32_t)m->recipe->columns * PIPED_COLUMN_NUMBERS;
}
static inline int32_t piped_stage_bytes(const struct piped *m)
{
	return m->recipe->int8 ? piped_row_scales_at(m) + (int32_t)m->recipe->sides * PIPED_SIDE * PIPED_ROW_NUMBERS
	                       : piped_column_scales_at(m);
}
static inline int64_t piped_ring_bytes(const struct piped *m)
{
	return (int64_t)m->recipe->stages * piped_stage_bytes(m);
}
static inline unsigned piped_waves_of_half(const struct piped *m) { return m->group.waves / m->recipe->spans; }

/* --- matmul_mma_piped_copies.c */

/* Behind a stage the next one, around. */
ir_s piped_next_stage(const struct piped *m, ir_s stage);
void piped_make_lanes(struct piped *m);
/* What is copied first, of the tile that begins with that row block, of so many. */
void piped_begin_walk(struct piped *m, ir_s base, ir_s blocks, ir_s tile);
/* Copies some of what the next step needs, if there is one. The last part counts as copies, either way. */
enum { PIPED_COLUMNS = 1, PIPED_ROWS = 2, PIPED_SCALES = 4, PIPED_LAST = 8, PIPED_ALL = 15 };
void piped_copy(const struct piped *m, unsigned parts);

#endif
