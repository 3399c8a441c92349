/* kernels-templates/matmul/matmul_mma.c - matmul for many columns, on targets with products of matrices: prompts.
 *
 * Owns: a job of a group (matmul_group.c) done in tiles: the columns of activations are rows of the first factor,
 * weights are columns of the second, so that a row of sums is a row of what matmul_finish reads. Weights lie by vectors
 * of 16 bytes (weight_vectors.h), which is as factors want them.
 *
 * Q8_0 with int8 activations: the integer sums of a block come from two products, then one sum of products of floats
 * per block, in block order: numerics.h rule 4 to the bit. So do other formats on targets whose operands may lie in
 * local bytes: there a wave leaves a unit's quants as signed bytes, and their scales, for itself. F16 and BF16 with
 * activations rounded to that type are of the BOUNDED class, rule 13. Weights are met once by all columns of a tile.
 */
#include <stddef.h>

#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/formats/weight_unpack.h"
#include "kernels-templates/matmul/matmul_product.h"

enum { MMA_ROWS = PRODUCT_ROWS /* from a vector of a row to its next there are those of so many */ };
_Static_assert(TEMPLATE_MMA_COLUMNS / IR_TILE <= PRODUCT_PARTS, "a wave has all columns of a tile");

struct mma {
	struct matmul_group group;
	struct ir *b;
	const struct matmul_recipe *recipe;
	uint32_t column, scales_column; /* bytes from a column of activations, of their scales, to the next */

	ir_a own; /* weights that are unpacked: the wave's own bytes */

	const struct target *target;
	struct matmul_ahead ahead; /* AWAITED: weights that are copied */

	/* A job's own. */
	ir_a w, scales, x, xs; /* walking */
	struct matmul_product product;
};

/* Bytes of a column of activations. */
static uint32_t column_bytes(const struct mma *m) { return m->group.kp * (m->recipe->int8 ? 1 : 2); }

/* ---- one unit */

/* Bytes `at` .. at + 31 of the weights' stream, and of the activations. */
static struct product_operand strips_of_rows(const struct mma *m, unsigned units, uint32_t at)
{
	const uint32_t stream = units * weight_vectors_lane(m->recipe->format);

	return (struct product_operand){ m->w, (int32_t)weight_vectors_offset(stream, at, 0), IR_VECTOR_BYTES,
		                         MMA_ROWS };
}

static struct product_operand strips_of_columns(const struct mma *m, uint32_t at)
{
	return (struct product_operand){ m->x, (int32_t)at, m->column, 1 };
}

/* Where the scale of a period's unit u lies. */
static uint64_t scale_offset(const struct mma *m, unsigned units, unsigned u, unsigned lane)
{
	return weight_vectors_offset(units * weight_vectors_lane(m->recipe->format),
	                             weight_vectors_stream(m->recipe->format, 0, units) + 2 * u, lane);
}

/* m->scales is at the first unit's. */
static struct product_operand row_scales(const struct mma *m, unsigned units, unsigned u)
{
	const uint64_t offset = scale_offset(m, units, u, 0);

	return (struct product_operand){ m->scales, (int32_t)(offset - scale_offset(m, units, 0, 0)),
		                         (uint32_t)(scale_offset(m, units, u, 1) - offset), 1 };
}

/* The columns' numbers `member` of their block of unit u. */
static struct product_operand of_blocks(const struct mma *m, unsigned u, size_t member)
{
	return (struct product_operand){ m->xs, (int32_t)(u * sizeof(struct activation_block) + member),
		                         m->scales_column, 0 };
}

/* Unit u of a period of `units`. */
static void int8_unit(const struct mma *m, unsigned units, unsigned u)
{
	const struct product_operands o = { .rows = strips_of_rows(m, units, u * VECTORS_UNIT_K),
		                            .columns = strips_of_columns(m, u * VECTORS_UNIT_K),
		                            .row_scales = row_scales(m, units, u),
		                            .column_scales = of_blocks(m, u, offsetof(struct activation_block, d)) };

	matmul_product_add(&m->product, &o);
}

static void float_unit(const struct mma *m, unsigned units, unsigned u)
{
	for (unsigned at = u * 2 * VECTORS_UNIT_K; at < (u + 1) * 2 * VECTORS_UNIT_K; at += IR_STRIP_BYTES) {
		const struct product_operands o = { .rows = strips_of_rows(m, units, at),
			                            .columns = strips_of_columns(m, at) };
		matmul_product_add(&m->product, &o);
	}
}

/* ---- one unit of weights that are unpacked
 *
 * Own bytes: [row][16] of the first 16 quants; where halves have their own scales as much of zeroes; [row][16] of the
 * others; then f32 [half][row] scales, and minima likewise. A half is an operand whose other vector is zeroes.
 */
enum { OWN_VECTORS = MMA_ROWS * IR_VECTOR_BYTES, OWN_FLOATS = MMA_ROWS * 4 };

static unsigned halves_of(const struct weight_quants *q) { return q->halves ? 2 : 1; }
static int32_t own_second(const struct weight_quants *q) { return (int32_t)halves_of(q) * OWN_VECTORS; }
static int32_t own_scales(const struct weight_quants *q, unsigned half)
{
	return own_second(q) + OWN_VECTORS + (int32_t)half * OWN_FLOATS;
}
static int32_t own_minima(const struct weight_quants *q, unsigned half)
{
	return own_scales(q, half) + (int32_t)halves_of(q) * OWN_FLOATS;
}
static int32_t own_bytes(const struct weight_quants *q)
{
	return own_minima(q, 0) + (q->minimum ? (int32_t)halves_of(q) * OWN_FLOATS : 0);
}

static void write_zeroes(const struct mma *m)
{
	ir_f zero = ir_fconst(m->b, 0);
	for (unsigned i = 0; i < 4; i++)
		ir_fstore_s(m->b, m->own, zero, OWN_VECTORS + (int32_t)i * 4, 0, IR_VECTOR_BYTES);
}

/* What the minima of half a unit, or of all of it, are multiplied with. */
static ir_t scaled_sums(const struct mma *m, unsigned part, unsigned u, unsigned half, ir_t dx)
{
	struct ir *b = m->b;
	const size_t sum = offsetof(struct activation_block, sum) + half * 4;
	const bool halves = m->recipe->format->quants->halves;
	const struct product_operand of = of_blocks(m, u, halves ? sum : offsetof(struct activation_block, d_sum));
	ir_t sums = matmul_product_of_columns(&m->product, &of, part);

	return halves ? ir_tmul(b, dx, ir_ti2f(b, sums)) : sums;
}

/* Half a unit, or all of it, for rows 16 * h .. and all columns. */
static void multiply_own(const struct mma *m, unsigned u, unsigned half, unsigned h)
{
	struct ir *b = m->b;
	const struct matmul_product *p = &m->product;
	const struct weight_quants *q = m->recipe->format->quants;
	const struct product_operand rows = { m->own, (int32_t)half * OWN_VECTORS, IR_VECTOR_BYTES, MMA_ROWS },
				     scales = { m->own, own_scales(q, half), 4, 0 },
				     minima = { m->own, own_minima(q, half), 4, 0 },
				     columns = strips_of_columns(m, u * VECTORS_UNIT_K),
				     blocks = of_blocks(m, u, offsetof(struct activation_block, d));
	ir_o w = matmul_product_rows(p, &rows, h);
	ir_t dw = matmul_product_of_rows(p, &scales, h), mw = { 0 };

	if (q->minimum)
		mw = matmul_product_of_rows(p, &minima, h);
	for (unsigned i = 0; i < p->parts; i++) {
		ir_o x = matmul_product_columns(p, &columns, i);
		ir_t dx = matmul_product_of_columns(p, &blocks, i);
		ir_set_t(b, p->acc[i][h], matmul_product_sum(p, x, w, dx, dw, p->acc[i][h]));
		if (q->minimum)
			ir_set_t(b, p->acc[i][h], ir_tfma(b, mw, scaled_sums(m, i, u, half, dx), p->acc[i][h]));
	}
}

static void visit_unit(void *context, const struct weight_stream *w, unsigned index)
{
	const struct mma *m = context;
	const struct weight_quants *q = m->recipe->format->quants;
	const struct product_unpacked to = { .quants = m->own,
		                             .numbers = m->own,
		                             .second = own_second(q),
		                             .scales = { own_scales(q, 0), own_scales(q, 1) },
		                             .minima = { own_minima(q, 0), own_minima(q, 1) } };

	matmul_product_unpack(m->b, q, w, &to);
	for (unsigned half = 0; half < halves_of(q); half++)
		for (unsigned h = 0; h < PRODUCT_HALVES; h++)
			multiply_own(m, index, half, h);
}

static void visit_walk(void *context, unsigned units)
{
	const struct mma *m = context;

	ir_set_a(m->b, m->x, ir_aaddi(m->b, m->x, (int64_t)units * VECTORS_UNIT_K));
	ir_set_a(m->b, m->xs, ir_aaddi(m->b, m->xs, units * sizeof(struct activation_block)));
}

/* What is awaited is one tile, which leaves registers for as many units as may be loaded at once. */
static struct weight_reader reader_of(const struct mma *m)
{
	enum { UNITS = 4 };
	unsigned fit = weight_vectors_fit(m->recipe->format), units = fit < UNITS ? fit : UNITS;

	return (struct weight_reader){ .b = m->b,
		                       .format = m->recipe->format,
		                       .span_units = m->group.span_units,
		                       .max_units = m->recipe->awaited ? units : 2,
		                       .rest_apart = true };
}

/* m->w is at the span. from: the row block. */
static void do_unpacked(struct mma *m, const struct matmul_job *j, ir_a from)
{
	struct weight_reader r = reader_of(m);
	const struct weight_visitor v = { .context = m, .unit = visit_unit, .walk = visit_walk };

	matmul_group_heads(&m->group, j, from, &r);
	for (unsigned i = 0; i < VECTORS_SIZES; i++)
		r.at[i] = m->w;
	matmul_ahead_set(&m->ahead, &r);
	if (m->recipe->format->quants->halves)
		write_zeroes(m);
	matmul_ahead_read(&m->ahead, &r, &v);
}

/* ---- a job */

/* Units whose loads may be under way at once, and leave room for their sums. Parts of a launch are company enough. */
static unsigned interleave_units(const struct mma *m)
{
	return m->recipe->int8 && m->product.parts == 1 && !m->recipe->parts ? 4 : m->recipe->parts ? 1 : 2;
}

/* A whole period is done in iterations, through which vectors and the scales in a row's last vector move on evenly. */
static void do_period(const struct mma *m, unsigned units)
{
	struct ir *b = m->b;
	unsigned iteration = units == VECTORS_PERIOD_UNITS ? interleave_units(m) : units,
		 k_bytes = m->recipe->int8 ? 1 : 2;
	int64_t period = units * weight_vectors_unit(m->recipe->format),
		vectors = iteration * VECTORS_UNIT_K * k_bytes * MMA_ROWS;

	if (m->recipe->int8)
		ir_set_a(b, m->scales, ir_aaddi(b, m->w, (int64_t)scale_offset(m, units, 0, 0)));
	if (iteration < units)
		ir_loop(b, ir_sconst(b, units / iteration));
	for (unsigned u = 0; u < iteration; u++)
		if (m->recipe->int8)
			int8_unit(m, units, u);
		else
			float_unit(m, units, u);
	matmul_walk(b, m->x, iteration * VECTORS_UNIT_K * k_bytes);
	if (m->recipe->int8)
		matmul_walk(b, m->xs, iteration * (int64_t)sizeof(struct activation_block));
	if (iteration < units) {
		matmul_walk(b, m->w, vectors);
		if (m->recipe->int8)
			matmul_walk(b, m->scales, 2 * iteration);
		ir_endloop(b);
		matmul_walk(b, m->w, period - units / iteration * vectors);
	} else {
		matmul_walk(b, m->w, period);
	}
}

static void do_spans(const struct mma *m)
{
	struct ir *b = m->b;
	unsigned whole = m->group.span_units / VECTORS_PERIOD_UNITS, rest = m->group.span_units % VECTORS_PERIOD_UNITS;

	if (whole > 1)
		ir_loop(b, ir_sconst(b, whole));
	if (whole)
		do_period(m, VECTORS_PERIOD_UNITS);
	if (whole > 1)
		ir_endloop(b);
	if (rest)
		do_period(m, rest);
}

static void do_job(void *context, const struct matmul_job *j)
{
	struct mma *m = context;
	const struct matmul_group *g = &m->group;
	struct ir *b = m->b;
	ir_a from = matmul_group_weights(g, j);

	m->w = ir_var_a(b, ir_aadd(b, from,
	                           ir_smuli(b, j->span,
	                                    (int64_t)m->group.span_units * weight_vectors_unit(m->recipe->format))));
	m->scales = m->recipe->int8 && !m->recipe->unpacks ? ir_var_a(b, m->w) : m->w;
	m->x = ir_var_a(b, matmul_group_input(g, j, MATMUL_X, column_bytes(m)));
	if (m->recipe->int8)
		m->xs = ir_var_a(b, matmul_group_input(g, j, MATMUL_XS, m->group.kp / 2));
	matmul_product_open(&m->product);
	if (m->recipe->unpacks)
		do_unpacked(m, j, from);
	else
		do_spans(m);
	matmul_product_store(&m->product, j->sums, MMA_ROWS * 4);
}

static void ask(void *context)
{
	struct mma *m = context;
	struct weight_reader r = reader_of(m);

	matmul_ahead_open(&m->ahead, &m->group, m->recipe->block_bytes, m->target, &r);
}

uint32_t matmul_mma_own_bytes(const struct weight_format *f) { return (uint32_t)own_bytes(f->quants); }

void matmul_mma_build(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	struct mma m = { .group = matmul_group_of(b, key, target, r, &m),
		         .b = b,
		         .target = target,
		         .recipe = r,
		         .product = matmul_product_of(b, r, (key->tile_n + IR_TILE - 1) / IR_TILE) };

	if (r->operands != MATMUL_DIRECT) {
		(r->operands == MATMUL_RING ? matmul_mma_piped_build : matmul_mma_shared_build)(b, key, target, r);
		return;
	}
	m.column = (uint32_t)r->column * (r->int8 ? 1 : 2);
	m.scales_column = m.group.kp / 2 + (r->awaited ? MATMUL_COLUMN_PAD : 0);
	m.group.job = do_job;
	m.group.ask = target->block_bytes ? ask : NULL;
	if (r->unpacks)
		m.own = ir_local(b, r->own);
	matmul_group_build(&m.group);
}
