/* kernels-templates/matmul/matmul_mma_shared.c - matmul for many columns by products of matrices, whose operands the
 * waves of a group share: prompts.
 *
 * Owns: a tile of 64 columns of activations and 64 rows of weights: two row blocks, or one of each of two matrices. A
 * wave has 32 of either and every second half of the spans, as the bits of its number say. All walk along k in steps of
 * four strips of a column, 128 bytes; where a span ends with a shorter period, also of two or one. For a step, every
 * wave stages its part of columns and rows in shared memory (matmul_mma_load.c): it loads that to registers before
 * it multiplies the step in front, and leaves it behind a barrier.
 *
 * The order of sums is numerics.h rules 3, 4 and 13: a wave goes through its spans one after another, each a chain of
 * its own, and adds their totals as the tree has it; totals that wait for their iteration lie in the wave's own bytes.
 * An editor keeps every barrier one that all waves run equally often.
 */
#include "kernels-templates/matmul/matmul_mma_shared.h"

enum { WAVES_OF_HALF = 4, TILE_BYTES = MMA_SIDE * MMA_SIDE * 4, MAX_WAITING = 2 /* totals */ };

/* ---- a step's products */

/* A half's other 16 k's meet the zeroes. In a loop, for the registers of one. */
static void multiply_halves(const struct mma_shared *m, const struct product_operands *o)
{
	struct ir *b = m->b;
	ir_a rows = o->rows.at, scales = o->row_scales.at;

	ir_loop(b, ir_sconst(b, 2));
	matmul_product_add(&m->product, o);
	ir_set_a(b, rows, ir_aaddi(b, rows, MMA_VECTORS_BYTES));
	ir_set_a(b, scales, ir_aaddi(b, scales, MMA_SCALES_BYTES));
	ir_endloop(b);
	ir_set_a(b, rows, ir_aaddi(b, rows, -2 * MMA_VECTORS_BYTES));
	ir_set_a(b, scales, ir_aaddi(b, scales, -2 * MMA_SCALES_BYTES));
}

static void next_strip(const struct mma_shared *m, const struct product_operands *o)
{
	struct ir *b = m->b;

	ir_set_a(b, o->columns.at, ir_aaddi(b, o->columns.at, mma_strip_bytes(m)));
	ir_set_a(b, o->rows.at, ir_aaddi(b, o->rows.at, mma_strip_bytes(m)));
	if (!m->recipe->int8)
		return;
	ir_set_a(b, o->column_scales.at, ir_aaddi(b, o->column_scales.at, 4));
	ir_set_a(b, o->row_scales.at, ir_aaddi(b, o->row_scales.at, MMA_BOTH * 4));
}

/* What this wave multiplies of the first strip that is staged. */
static struct product_operands operands_of(const struct mma_shared *m)
{
	struct ir *b = m->b;
	struct product_operands o = { .rows = { .step = IR_VECTOR_BYTES, .apart = MMA_APART },
		                      .columns = { .step = IR_VECTOR_BYTES, .apart = MMA_APART },
		                      .row_scales = { .step = 4 },
		                      .column_scales = { .step = MMA_STEP * 4 } };
	ir_a at = mma_buffer(m);

	o.columns.at = ir_var_a(b, matmul_plus(b, at, m->column_side, MMA_SIDE * IR_VECTOR_BYTES));
	o.rows.at =
		ir_var_a(b, matmul_plus(b, ir_aaddi(b, at, MMA_FACTOR_BYTES), m->row_side, MMA_SIDE * IR_VECTOR_BYTES));
	if (!m->recipe->int8)
		return o;
	o.column_scales.at = ir_var_a(b, matmul_plus(b, mma_column_scales(m), m->column_side, MMA_SIDE * MMA_STEP * 4));
	o.row_scales.at = ir_var_a(b, matmul_plus(b, mma_row_scales(m), m->row_side, MMA_SIDE * 4));
	o.column_sums = o.column_scales;
	o.row_minima = o.row_scales;
	o.column_sums.disp = o.row_minima.disp = MMA_SCALES_BYTES;
	return o;
}

static void multiply(const struct mma_shared *m, unsigned strips)
{
	struct ir *b = m->b;
	const struct product_operands o = operands_of(m);

	ir_loop(b, ir_sconst(b, strips));
	if (mma_has_halves(m))
		multiply_halves(m, &o);
	else
		matmul_product_add(&m->product, &o);
	next_strip(m, &o);
	ir_endloop(b);
}

/* ---- a span */

/* Multiplies what is there, while what comes next is loaded. */
static void take(const struct mma_shared *m, const struct mma_step *s, const struct mma_step *next, const ir_s *over)
{
	mma_walk(m, s, over);
	struct mma_loaded r = mma_load(m, next);
	multiply(m, s->strips);
	ir_barrier(m->b);
	mma_leave(m, next, &r);
	ir_barrier(m->b);
}

/* A run of n steps, and what follows. over: of the last one. */
static void take_all(const struct mma_shared *m, const struct mma_step s[], unsigned n, const struct mma_step *next,
                     const ir_s *over)
{
	for (unsigned i = 0; i < n; i++)
		take(m, &s[i], i + 1 < n ? &s[i + 1] : next, i + 1 < n ? NULL : over);
}

/* The steps of a period have as many units as its vectors of scales. */
static unsigned steps_of(unsigned units, struct mma_step out[])
{
	unsigned n = 0, first = 0;

	for (unsigned strips = MMA_STEP; strips; strips /= 2)
		for (; units - first >= strips; first += strips)
			out[n++] = (struct mma_step){ units, first, strips };
	return n;
}

/* A span: whole periods, and the steps of a shorter one. */
struct walk {
	unsigned periods, n_whole, n_rest;
	struct mma_step whole[VECTORS_PERIOD_UNITS], rest[VECTORS_PERIOD_UNITS];
};

static struct walk walk_of(const struct mma_shared *m)
{
	struct walk w = { 0 };

	if (m->recipe->int8) {
		w.periods = m->span_strips / VECTORS_PERIOD_UNITS;
		w.n_whole = steps_of(VECTORS_PERIOD_UNITS, w.whole);
		w.n_rest = steps_of(m->span_strips % VECTORS_PERIOD_UNITS, w.rest);
	} else {
		w.whole[w.n_whole++].strips = m->span_strips % MMA_STEP ? 2 : MMA_STEP;
		w.periods = m->span_strips / w.whole[0].strips;
	}
	return w;
}

static const struct mma_step *first_step(const struct walk *w) { return w->periods ? w->whole : w->rest; }

/* over: whether it is the last one (1, else 0). */
static void do_span(const struct mma_shared *m, const struct walk *w, ir_s over)
{
	struct ir *b = m->b;
	unsigned times = w->n_rest && w->periods ? w->periods - 1 : w->periods;
	ir_s i = { 0 };

	if (times > 1)
		i = ir_loop(b, ir_sconst(b, times));
	if (times && w->n_rest) {
		take_all(m, w->whole, w->n_whole, w->whole, NULL);
	} else if (times) {
		ir_s last = times > 1 ? ir_sdivi(b, ir_saddi(b, i, 1), times) : ir_sconst(b, 1),
		     ends = ir_smul(b, last, over);
		take_all(m, w->whole, w->n_whole, w->whole, &ends);
	}
	if (times > 1)
		ir_endloop(b);
	if (w->n_rest && w->periods)
		take_all(m, w->whole, w->n_whole, w->rest, NULL);
	take_all(m, w->rest, w->n_rest, first_step(w), &over);
}

/* ---- totals */

/* If `does` is 1: leaves the totals at `level` of the wave's own bytes, or adds to those that wait there. */
static void put_by(const struct mma_shared *m, ir_s does, unsigned level)
{
	ir_loop(m->b, does);
	matmul_product_put_by(&m->product, m->own, (int32_t)(level * TILE_BYTES));
	ir_endloop(m->b);
}

static void add_waiting(const struct mma_shared *m, ir_s does, unsigned level)
{
	ir_loop(m->b, does);
	matmul_product_join(&m->product, m->own, (int32_t)(level * TILE_BYTES));
	ir_endloop(m->b);
}

/* Of span number i of two or four: the totals of the first wait at level 0, the sum of the first two at level 1. */
static void join_totals(const struct mma_shared *m, ir_s i)
{
	struct ir *b = m->b;
	ir_s odd = ir_sandi(b, i, 1), even = ir_ssub(b, ir_sconst(b, 1), odd);

	put_by(m, even, 0);
	add_waiting(m, odd, 0);
	if (m->spans == 2)
		return;
	ir_s later = ir_sshri(b, i, 1);
	put_by(m, ir_smul(b, odd, ir_ssub(b, ir_sconst(b, 1), later)), 1);
	add_waiting(m, ir_smul(b, odd, later), 1);
}

/* ---- a tile */

static void begin_walk(struct mma_shared *m, ir_s base, ir_s blocks, ir_s tile)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const int64_t column = mma_column_bytes(m), blocks_of = m->group.kp / 2;
	ir_s side = ir_sshri(b, m->loader, 1), number;

	if (m->recipe->matrices > 1)
		number = ir_sadd(b, ir_sshli(b, base, 1), side);
	else
		number = ir_sadd(b, base, ir_smin(b, side, ir_saddi(b, blocks, -1)));
	mma_begin_rows(m, number);
	ir_a x = matmul_plus(b, matmul_group_arg(g, MATMUL_X), tile, MMA_BOTH * column);
	x = matmul_plus(b, x, m->loader, IR_TILE * column);
	m->x = ir_var_a(b, matmul_plus(b, x, m->half, column / MMA_HALVES));
	if (!m->recipe->int8)
		return;
	ir_a xs = matmul_plus(b, matmul_group_arg(g, MATMUL_XS), tile, MMA_BOTH * blocks_of);
	xs = matmul_plus(b, xs, m->loader, IR_TILE * blocks_of);
	m->xs = ir_var_a(b, matmul_plus(b, xs, m->half, blocks_of / MMA_HALVES));
}

static void do_spans(const struct mma_shared *m)
{
	struct ir *b = m->b;
	const struct walk w = walk_of(m);
	struct mma_loaded first = mma_load(m, first_step(&w));

	mma_leave(m, first_step(&w), &first);
	if (mma_has_halves(m))
		mma_write_zeroes(m);
	ir_barrier(b);
	ir_s i = ir_loop(b, ir_sconst(b, m->spans));
	matmul_product_clear(&m->product);
	do_span(m, &w, ir_sdivi(b, ir_saddi(b, i, 1), m->spans));
	if (m->spans > 1)
		join_totals(m, i);
	ir_endloop(b);
}

static void do_tile(void *context, ir_s base, ir_s blocks, ir_s tile)
{
	struct mma_shared *m = context;
	const struct matmul_group *g = &m->group;
	const int64_t totals = (int64_t)MMA_BOTH * MMA_SIDE * 4;

	begin_walk(m, base, blocks, tile);
	matmul_product_open(&m->product);
	do_spans(m);
	/* [row block][half][matrix][column][32] */
	ir_a at = matmul_plus(m->b, g->sums, m->half, totals * m->recipe->matrices);
	at = matmul_plus(m->b, at, m->row_side, m->recipe->matrices > 1 ? totals : MMA_HALVES * totals);
	matmul_product_store(&m->product, matmul_plus(m->b, at, m->column_side, TILE_BYTES), MMA_SIDE * 4);
}

void matmul_mma_shared_build(struct ir *b, const struct key *key, const struct target *target,
                             const struct matmul_recipe *r)
{
	struct mma_shared m = { .group = matmul_group_of(b, key, target, r, &m),
		                .b = b,
		                .recipe = r,
		                .spans = numerics_spans(key->k) / r->spans };

	m.group.tile = do_tile;
	m.span_strips = m.group.span_units * (r->int8 ? 1 : 2);
	m.product = matmul_product_of(b, r, MMA_SIDE / IR_TILE);
	m.group.room = MMA_HALVES * mma_half_bytes(&m);
	if (m.spans > 1)
		m.own = ir_local(b, (m.spans > 2 ? MAX_WAITING : 1) * TILE_BYTES);
	ir_s wave = ir_wave(b);
	m.row_side = ir_sandi(b, wave, 1);
	m.loader = ir_sandi(b, wave, WAVES_OF_HALF - 1);
	m.column_side = ir_sshri(b, m.loader, 1);
	m.half = ir_sshri(b, wave, 2);
	matmul_group_build(&m.group);
}
