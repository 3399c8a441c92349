/* kernels-templates/matmul/matmul_mma_piped_copies.c - the copies of matmul_mma_piped.c.
 *
 * Owns: which wave copies what of a step, from where, and where it lies in a stage. Of the rows of a row block two
 * waves copy half of the vectors each, which lie as in memory, side by side. Of columns every wave copies as many, four
 * of 128 bytes with one row of copy_at; a vector lies at a position that depends on its column, so that eight columns'
 * vectors of the same number, which a load of matrices reads at once, are in different banks.
 */
#include <stddef.h>

#include "kernels-templates/matmul/matmul_mma_piped.h"

ir_s piped_next_stage(const struct piped *m, ir_s stage)
{
	struct ir *b = m->b;
	ir_s next = ir_saddi(b, stage, piped_stage_bytes(m));

	if (m->recipe->stages == 2)
		return ir_ssub(b, ir_sconst(b, piped_stage_bytes(m)), stage);
	return ir_ssub(b, next, ir_smuli(b, ir_sdivi(b, next, piped_ring_bytes(m)), piped_ring_bytes(m)));
}

/* ---- a step */

static unsigned columns_of_wave(const struct piped *m) { return m->recipe->columns / piped_waves_of_half(m); }

enum { SWIZZLE_LAST = 4 * IR_VECTOR_BYTES /* the last four of eight columns lie so else */ };

void piped_make_lanes(struct piped *m)
{
	struct ir *b = m->b;
	ir_i lane = ir_ilane(b), column = ir_ishr(b, lane, 3),
	     vector = ir_ixor(b, ir_iand(b, lane, ir_iconst(b, 7)), column);

	m->columns =
		ir_iadd(b, ir_imul(b, column, ir_iconst(b, (int32_t)piped_column_bytes(m))), ir_ishl(b, vector, 4));
	if (!m->recipe->int8)
		return;
	ir_i block = ir_iand(b, lane, ir_iconst(b, PIPED_STEP_UNITS - 1)),
	     eighth = ir_imul(b, ir_ishr(b, lane, 2), ir_iconst(b, (int32_t)(m->group.kp / 2)));
	m->scales = ir_iadd(b, eighth, ir_ishl(b, block, 4));
}

static ir_i vectors(const struct piped *m) { return ir_ishl(m->b, ir_ilane(m->b), 4); }

/* Of a row block; two waves have half of the vectors each. */
static void copy_rows(const struct piped *m, ir_a to, ir_a from)
{
	struct ir *b = m->b;
	ir_s block = ir_sshri(b, m->number, 1), odd = ir_sandi(b, m->number, 1);
	ir_i lanes = vectors(m);

	to = matmul_plus(b, matmul_plus(b, to, block, PIPED_BLOCK_BYTES), odd, PIPED_BLOCK_BYTES / 2);
	from = matmul_plus(b, from, odd, PIPED_BLOCK_BYTES / 2);
	for (unsigned i = 0; i < PIPED_BLOCK_BYTES / 2 / PIPED_PLANE; i++)
		ir_copy_at(b, ir_aaddi(b, to, i * PIPED_PLANE), ir_aaddi(b, from, i * PIPED_PLANE), lanes,
		           IR_VECTOR_BYTES);
}

/* period: which of the span's this is. The scales of a whole one are a vector of each row, those of a shorter one, of
 * four units, half a vector. */
static void copy_row_scales(const struct piped *m, ir_a to, ir_s period)
{
	struct ir *b = m->b;
	const int64_t whole = VECTORS_PERIOD_UNITS * (int64_t)PIPED_PLANE * 2;
	const unsigned periods = m->group.span_units / VECTORS_PERIOD_UNITS,
		       rest = m->group.span_units % VECTORS_PERIOD_UNITS;
	ir_s odd = ir_sandi(b, m->number, 1), block = ir_sshri(b, m->number, 1),
	     in_row = ir_sshli(b, ir_sandi(b, m->unit, PIPED_STEP_UNITS), 1);
	ir_a from = ir_aadd(b, ir_aaddi(b, m->w, whole), in_row);
	ir_i lanes = vectors(m);

	from = matmul_plus(b, from, period, VECTORS_PERIOD_UNITS * (int64_t)weight_vectors_unit(m->recipe->format));
	if (rest) {
		ir_s is_rest = periods ? ir_sdivi(b, period, periods) : ir_sconst(b, 1);
		from = matmul_plus(b, from, is_rest, -whole / 2);
		lanes = ir_imul(b, ir_ilane(b),
		                ir_isplat(b, ir_ssub(b, ir_sconst(b, IR_VECTOR_BYTES),
		                                     ir_smuli(b, is_rest, PIPED_ROW_NUMBERS))));
	}
	to = matmul_plus(b, ir_aaddi(b, to, piped_row_scales_at(m)), block, PIPED_SIDE * PIPED_ROW_NUMBERS);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), odd));
	ir_copy_at(b, to, from, lanes, PIPED_ROW_NUMBERS);
	ir_endloop(b);
}

static void copy_columns(const struct piped *m, ir_a to)
{
	struct ir *b = m->b;
	const unsigned n = columns_of_wave(m);
	ir_a target = matmul_plus(b, ir_aaddi(b, to, piped_columns_at(m)), m->number, n * PIPED_STEP_BYTES),
	     from = ir_aaddi(b, m->x, 0);
	ir_i last = ir_ixor(b, m->columns, ir_iconst(b, SWIZZLE_LAST));

	for (unsigned i = 0; i < n / 4; i++)
		ir_copy_at(b, ir_aaddi(b, target, i * 4 * PIPED_STEP_BYTES),
		           ir_aaddi(b, from, i * 4 * piped_column_bytes(m)), i % 2 ? last : m->columns,
		           IR_VECTOR_BYTES);
}

static void copy_column_scales(const struct piped *m, ir_a to)
{
	struct ir *b = m->b;
	const unsigned n = columns_of_wave(m);

	to = matmul_plus(b, ir_aaddi(b, to, piped_column_scales_at(m)), m->number, n * PIPED_COLUMN_NUMBERS);
	for (unsigned i = 0; i < n / 8; i++)
		ir_copy_at(b, ir_aaddi(b, to, i * 8 * PIPED_COLUMN_NUMBERS),
		           ir_aaddi(b, m->xs, i * 8 * (int64_t)(m->group.kp / 2)), m->scales, 4);
}

/* Behind the step. */
static void walk(const struct piped *m)
{
	struct ir *b = m->b;

	ir_set_a(b, m->x, ir_aaddi(b, m->x, PIPED_STEP_BYTES));
	ir_set_s(b, m->left, ir_saddi(b, m->left, -1));
	ir_set_s(b, m->to, piped_next_stage(m, m->to));
	if (!m->recipe->int8) {
		ir_set_a(b, m->w, ir_aaddi(b, m->w, PIPED_BLOCK_BYTES));
		return;
	}
	ir_s unit = ir_saddi(b, m->unit, PIPED_STEP_UNITS), over = ir_sdivi(b, unit, m->group.span_units);
	ir_set_a(b, m->xs, ir_aaddi(b, m->xs, PIPED_STEP_UNITS * sizeof(struct activation_block)));
	ir_set_a(b, m->w,
	         matmul_plus(b, m->w, over, m->group.span_units * (int64_t)weight_vectors_unit(m->recipe->format)));
	ir_set_s(b, m->unit, ir_ssub(b, unit, ir_smuli(b, over, m->group.span_units)));
}

void piped_copy(const struct piped *m, unsigned parts)
{
	struct ir *b = m->b;

	ir_loop(b, ir_smin(b, m->left, ir_sconst(b, 1)));
	ir_a to = ir_aadd(b, m->ring, m->to), from = m->w;
	ir_s period = { 0 };
	if (m->recipe->int8 && parts & (PIPED_ROWS | PIPED_SCALES))
		period = ir_sshri(b, m->unit, 3);
	if (m->recipe->int8 && parts & PIPED_ROWS) {
		from = matmul_plus(b, from, period,
		                   VECTORS_PERIOD_UNITS * (int64_t)weight_vectors_unit(m->recipe->format));
		from = matmul_plus(b, from, ir_sandi(b, m->unit, PIPED_STEP_UNITS), 2 * PIPED_PLANE);
	}
	if (parts & PIPED_COLUMNS)
		copy_columns(m, to);
	if (parts & PIPED_ROWS)
		copy_rows(m, to, from);
	if (m->recipe->int8 && parts & PIPED_SCALES) {
		copy_column_scales(m, to);
		copy_row_scales(m, to, period);
	}
	if (parts & PIPED_LAST)
		walk(m);
	ir_endloop(b);
	if (parts & PIPED_LAST)
		ir_copies(b);
}

/* ---- a tile */

/* The row block that this wave copies a part of. */
static ir_s row_block(const struct piped *m, ir_s base, ir_s blocks)
{
	struct ir *b = m->b;
	ir_s number = ir_sshri(b, m->number, 1), last = ir_saddi(b, blocks, -1);

	if (m->recipe->matrices == 1)
		return ir_sadd(b, base, ir_smin(b, number, last));
	ir_s pair = ir_sadd(b, base, ir_smin(b, ir_sshri(b, number, 1), last));
	return ir_sadd(b, ir_sshli(b, pair, 1), ir_sandi(b, number, 1));
}

void piped_begin_walk(struct piped *m, ir_s base, ir_s blocks, ir_s tile)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const int64_t column = piped_column_bytes(m), numbers = m->group.kp / 2;
	ir_s block = row_block(m, base, blocks);
	ir_a w = matmul_plus(b, matmul_group_arg(g, MATMUL_W), block, m->recipe->block_bytes),
	     x = matmul_plus(b, matmul_group_arg(g, MATMUL_X), tile, m->recipe->columns * column);

	w = matmul_plus(b, w, m->half,
	                m->spans * m->group.span_units * (int64_t)weight_vectors_unit(m->recipe->format));
	x = matmul_plus(b, matmul_plus(b, x, m->number, columns_of_wave(m) * column), m->half,
	                column / m->recipe->spans);
	m->w = ir_var_a(b, w);
	m->x = ir_var_a(b, x);
	m->left = ir_var_s(b, ir_sconst(b, m->spans * m->span_steps));
	m->to = ir_var_s(b, ir_sconst(b, 0));
	m->from = ir_var_s(b, ir_sconst(b, 0));
	if (!m->recipe->int8)
		return;
	m->unit = ir_var_s(b, ir_sconst(b, 0));
	ir_a xs = matmul_plus(b, matmul_group_arg(g, MATMUL_XS), tile, m->recipe->columns * numbers);
	xs = matmul_plus(b, xs, m->number, columns_of_wave(m) * numbers);
	xs = matmul_plus(b, ir_aaddi(b, xs, offsetof(struct activation_block, d)), m->half, numbers / m->recipe->spans);
	m->xs = ir_var_a(b, xs);
}
