/* kernels-templates/matmul/matmul_mma_piped.c - matmul for many columns by products of matrices, whose operands are
 * copied to shared bytes while the waves of a group multiply: prompts, on targets that copy (target->block_bytes), of
 * weights that lie as operands want them (Q8_0, F16, BF16).
 *
 * Owns: a tile of 64 or 128 rows of weights (2 or 4 row blocks, of which those of two matrices alternate) and 64 or 128
 * columns of activations. A wave has one row block and half of the columns; where the tile has two row blocks, of every
 * second half of the spans. All walk along k in steps of 128 bytes. Shared bytes hold a ring of stages, of which one is
 * multiplied while the copies of the next ones are under way: a step is a wait, a barrier, the copies of the step that
 * takes the stage which was multiplied last, and products.
 *
 * The order of sums is numerics.h rules 3, 4 and 13: a wave goes through its spans one after another, each a chain of
 * its own, and adds their totals as the tree has it. Totals that wait for their iteration are in registers, as far as
 * these suffice: of waves with 64 columns those of single spans, while those of two lie in the wave's own bytes; those
 * of four lie where the tile's totals will be. An editor keeps every barrier one that all waves run equally often.
 */
#include "kernels-templates/matmul/matmul_mma_piped.h"

/* ---- a step */

/* Units whose instructions an assembler may mix as it likes: with more of them it begins so many products at once that
 * registers do not suffice. The loops of copies are what parts them. */
static unsigned units_together(const struct piped *m)
{
	return !m->recipe->int8 ? PIPED_STEP_UNITS : m->product.parts == PRODUCT_PARTS ? 1 : PIPED_STEP_UNITS / 2;
}

/* Which copies begin in front of a unit: few at once, for they are in the way of other loads of shared bytes. */
static unsigned parts_at(const struct piped *m, unsigned unit)
{
	static const uint8_t one_by_one[PIPED_STEP_UNITS] = { PIPED_COLUMNS, PIPED_ROWS, PIPED_SCALES, PIPED_LAST };

	switch (units_together(m)) {
	case 1: return one_by_one[unit];
	case 2: return unit ? PIPED_SCALES | PIPED_LAST : PIPED_COLUMNS | PIPED_ROWS;
	default: return PIPED_ALL;
	}
}

/* Of what this wave multiplies of the stage at `at`, unit 0; the others follow. */
static struct product_operands operands_of(const struct piped *m, ir_a at)
{
	struct ir *b = m->b;
	const int64_t columns = (int64_t)m->product.parts * IR_TILE;
	struct product_operands o = { .rows = { .step = IR_VECTOR_BYTES, .apart = PIPED_SIDE },
		                      .columns = { .step = PIPED_STEP_BYTES },
		                      .row_scales = { .step = PIPED_ROW_NUMBERS, .apart = 1 },
		                      .column_scales = { .step = PIPED_COLUMN_NUMBERS } };

	o.rows.at = matmul_plus(b, at, m->row, PIPED_BLOCK_BYTES);
	o.columns.at = matmul_plus(b, ir_aaddi(b, at, piped_columns_at(m)), m->side, columns * PIPED_STEP_BYTES);
	if (!m->recipe->int8)
		return o;
	o.column_scales.at =
		matmul_plus(b, ir_aaddi(b, at, piped_column_scales_at(m)), m->side, columns * PIPED_COLUMN_NUMBERS);
	o.row_scales.at =
		matmul_plus(b, ir_aaddi(b, at, piped_row_scales_at(m)), m->row, PIPED_SIDE * PIPED_ROW_NUMBERS);
	return o;
}

static void next_unit(struct product_operands *o)
{
	o->rows.disp += 2 * PIPED_PLANE;
	o->columns.apart += 2;
	o->row_scales.disp += 2;
	o->column_scales.disp += 4;
}

static void do_step(const struct piped *m)
{
	struct ir *b = m->b;

	ir_copied(b, m->recipe->stages - 2);
	ir_barrier(b);
	struct product_operands o = operands_of(m, ir_aadd(b, m->ring, m->from));
	for (unsigned u = 0; u < PIPED_STEP_UNITS; u += units_together(m)) {
		piped_copy(m, parts_at(m, u));
		for (unsigned i = 0; i < units_together(m); i++) {
			matmul_product_add(&m->product, &o);
			next_unit(&o);
		}
	}
	ir_set_s(b, m->from, piped_next_stage(m, m->from));
}

/* ---- totals */

static bool in_registers(const struct piped *m, unsigned level)
{
	return level < (m->product.parts == PRODUCT_PARTS ? 1u : m->recipe->int8 ? 2u : 3u);
}

/* Where this wave's totals go: [row block][half][matrix][column][32]. */
static ir_a totals_of(const struct piped *m)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const int64_t block = (int64_t)m->recipe->columns * PIPED_SIDE * 4;
	ir_s row = m->row;
	ir_a at = matmul_plus(b, g->sums, m->half, m->recipe->matrices * block);

	if (m->recipe->matrices > 1) {
		at = matmul_plus(b, at, ir_sandi(b, row, 1), block);
		row = ir_sshri(b, row, 1);
	}
	at = matmul_plus(b, at, row, m->recipe->spans * m->recipe->matrices * block);
	return matmul_plus(b, at, m->side, (int64_t)m->product.parts * IR_TILE * PIPED_SIDE * 4);
}

static ir_a waiting_total(const struct piped *m, unsigned level)
{
	return in_registers(m, level) || level == 1 ? m->own : totals_of(m);
}

static void put_by(const struct piped *m, unsigned level)
{
	ir_a to = waiting_total(m, level);

	if (!in_registers(m, level)) {
		matmul_product_put_by(&m->product, to, 0);
		return;
	}
	for (unsigned p = 0; p < m->product.parts; p++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			ir_set_t(m->b, m->waiting[level][p][h], m->product.acc[p][h]);
}

static void add_waiting(const struct piped *m, unsigned level)
{
	struct ir *b = m->b;
	ir_a from = waiting_total(m, level);

	if (!in_registers(m, level)) {
		matmul_product_join(&m->product, from, 0);
		return;
	}
	for (unsigned p = 0; p < m->product.parts; p++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++) {
			const ir_t acc = m->product.acc[p][h];
			ir_set_t(b, acc, ir_tfma(b, acc, ir_tconst(b, 1), m->waiting[level][p][h]));
		}
}

/* Of span number i: a total of 2^level spans, i being past the first so many levels, waits, or joins what waits. */
static void join_totals(const struct piped *m, ir_s i, unsigned level)
{
	struct ir *b = m->b;

	if (m->spans >> level <= 1)
		return;
	ir_s odd = ir_sandi(b, ir_sshri(b, i, level), 1);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), odd));
	put_by(m, level);
	ir_endloop(b);
	ir_loop(b, odd);
	add_waiting(m, level);
	join_totals(m, i, level + 1);
	ir_endloop(b);
}

/* ---- a tile */

static void make_sums(struct piped *m)
{
	struct ir *b = m->b;

	for (unsigned p = 0; p < m->product.parts; p++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++) {
			m->product.acc[p][h] = ir_var_t(b, ir_tconst(b, 0));
			for (unsigned level = 0; m->spans >> level > 1; level++)
				if (in_registers(m, level))
					m->waiting[level][p][h] = ir_var_t(b, ir_tconst(b, 0));
		}
}

static void do_tile(void *context, ir_s base, ir_s blocks, ir_s tile)
{
	struct piped *m = context;
	struct ir *b = m->b;

	piped_begin_walk(m, base, blocks, tile);
	make_sums(m);
	ir_loop(b, ir_sconst(b, m->recipe->stages - 1));
	piped_copy(m, PIPED_ALL);
	ir_endloop(b);
	ir_s i = ir_loop(b, ir_sconst(b, m->spans));
	matmul_product_clear(&m->product);
	ir_loop(b, ir_sconst(b, m->span_steps));
	do_step(m);
	ir_endloop(b);
	join_totals(m, i, 0);
	ir_endloop(b);
	matmul_product_store(&m->product, totals_of(m), PIPED_SIDE * 4);
}

void matmul_mma_piped_build(struct ir *b, const struct key *key, const struct target *target,
                            const struct matmul_recipe *r)
{
	struct piped m = { .group = matmul_group_of(b, key, target, r, &m),
		           .b = b,
		           .recipe = r,
		           .spans = numerics_spans(key->k) / r->spans };

	m.group.tile = do_tile;
	m.span_steps = m.group.span_units * (r->int8 ? 1 : 2) / PIPED_STEP_UNITS;
	m.product = matmul_product_of(b, r, r->columns / 2 / IR_TILE);
	if (m.product.parts == PRODUCT_PARTS && m.spans > 2)
		m.own = ir_local(b, PRODUCT_PARTS * PRODUCT_WAITING);
	ir_a rings = ir_shared(b, r->spans * piped_ring_bytes(&m));
	ir_s wave = ir_wave(b);
	m.half = ir_sdivi(b, wave, piped_waves_of_half(&m));
	m.number = ir_sandi(b, wave, (int32_t)piped_waves_of_half(&m) - 1);
	m.row = ir_sshri(b, m.number, 1);
	m.side = ir_sandi(b, m.number, 1);
	m.ring = matmul_plus(b, rings, m.half, piped_ring_bytes(&m));
	piped_make_lanes(&m);
	matmul_group_build(&m.group);
}
