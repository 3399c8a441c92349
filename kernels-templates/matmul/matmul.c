/* kernels-templates/matmul/matmul.c - weights times columns of activations: dot products and what is done to a row's
 * result.
 *
 * Owns: blocking. A lane owns an output row, k runs in time, so no result depends on lanes, tiles or columns: a tile is
 * only a choice of which chains run side by side. Knows no weight format but through weight_format.h. An editor may
 * change the tiles freely and must keep every row's chain as numerics.h rules 3 to 5 say it.
 *
 * The loops, outermost first: row blocks; column tiles of the launch; the matrices, one or two; spans; segments of 256
 * (whose weights stay in the first-level cache). Inside a segment, in matmul_dot.c: parts of the tile that fit the
 * registers; k. Between segments the totals of the 32 rows lie in local memory, [span][matrix][column][32].
 *
 * Weights are read in the order they lie in memory, one stream at a time. It is two where a schedule
 * (matmul_schedule.h) walks two row blocks side by side, a step of one and a step of the other. Reading a unit's
 * vectors out of order loses a tenth of the memory's bandwidth.
 *
 * General registers are as short as vector registers: addresses walk and walk back, and what is easily computed again
 * is computed again.
 */
#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul_dot.h"

static void clear_sums(struct matmul *m, ir_a from)
{
	struct ir *b = m->b;
	ir_a at = ir_var_a(b, from);

	ir_loop(b, ir_sconst(b, m->spans * m->streams));
	for (unsigned i = 0; i < m->columns * m->row_vectors; i++)
		ir_fstore(b, at, ir_fconst(b, 0.0f), (int32_t)(i * b->lanes * 4), 0);
	matmul_walk(b, at, dot_span_bytes(m));
	ir_endloop(b);
}

/* All spans of a matrix at the addresses, totals into the sums at `from`. One loop runs over the segments of all
 * spans. */
static void dot_spans(struct matmul *m, ir_a from)
{
	struct ir *b = m->b;
	unsigned span = m->span_k / m->iteration_k,
		 segment = matmul_stretch(&m->shape, &m->schedule, &m->part) / m->iteration_k,
		 segments = (span + segment - 1) / segment;
	struct iterations iterations = { .known = segments == 1 || span % segment == 0,
		                         .n = span < segment ? span : segment };

	clear_sums(m, from);
	ir_s number = ir_loop(b, ir_sconst(b, m->spans * segments)),
	     in_span = segments > 1 ? ir_sdivi(b, number, segments) : number;
	m->sum = ir_var_a(b, ir_aadd(b, from, ir_smuli(b, in_span, dot_span_bytes(m))));
	if (!iterations.known) {
		ir_s done = ir_smuli(b, ir_ssub(b, number, ir_smuli(b, in_span, segments)), segment);
		iterations.s = ir_smin(b, ir_ssub(b, ir_sconst(b, span), done), ir_sconst(b, segment));
	}
	dot_segment(m, &iterations);
	ir_endloop(b);
}

/* Column `tile * columns` of a buffer with column_bytes a column. */
static ir_a locate(const struct matmul *m, unsigned slot, ir_s tile, int64_t column_bytes)
{
	unsigned columns = m->recipe->source == MATMUL_FROM_ROUTES ? 1 : m->columns;
	return ir_aadd(m->b, matmul_arg(m->b, m->arg, slot), ir_smuli(m->b, tile, columns * column_bytes));
}

/* ---- the outer loops */

/* All spans of one matrix, from inputs of column tile `tile`. */
static void dot_matrix(struct matmul *m, unsigned matrix, ir_s block, ir_s tile)
{
	struct ir *b = m->b;
	ir_s before = ir_smuli(b, block, m->block_bytes * m->matrices);

	if (m->recipe->source == MATMUL_FROM_ROUTES)
		before = ir_sadd(b, before, ir_smuli(b, m->route.expert, matmul_expert_bytes(m->key, m->block_bytes)));
	m->w = ir_var_a(b, ir_aadd(b, matmul_arg(b, m->arg, matrix ? MATMUL_W2 : MATMUL_W), before));
	if (m->format->head_bytes) {
		m->head = ir_var_a(b, m->w);
		matmul_walk(b, m->w, m->format->head_bytes);
		if (!m->aligned)
			m->unit = ir_var_s(b, ir_sconst(b, 0));
	}
	ir_a x = locate(m, MATMUL_X, tile, (int64_t)m->in_width * (m->int8 ? 1 : 4)),
	     xs = m->int8 ? locate(m, MATMUL_XS, tile, m->in_width / 2) : x;
	if (m->recipe->source == MATMUL_FROM_HEADS) {
		ir_s head = matmul_head(b, m->key, block);
		x = ir_aadd(b, x, ir_smuli(b, head, (int64_t)m->kp * (m->int8 ? 1 : 4)));
		xs = m->int8 ? ir_aadd(b, xs, ir_smuli(b, head, m->kp / 2)) : x;
	}
	m->x = ir_var_a(b, x);
	if (m->int8)
		m->xs = ir_var_a(b, xs);
	dot_spans(m, ir_aaddi(b, m->sums, (int64_t)matrix * m->columns * 128));
}

static struct matmul_results results_of(const struct matmul *m, ir_a sums)
{
	return (struct matmul_results){
		.b = m->b,
		.key = m->key,
		.recipe = m->recipe,
		.arg = m->arg,
		.sums = sums,
		.spans = m->spans,
		.columns = m->columns,
		.expert = m->route.expert
	};
}

/* The results of the row blocks that were walked side by side, from `block` on. */
static void finish_streams(const struct matmul *m, ir_s block, ir_s tile)
{
	struct ir *b = m->b;

	for (unsigned s = 0; s < m->streams; s++) {
		ir_a sums = s ? ir_aaddi(b, m->sums, s * dot_stream_sums(m)) : m->sums;
		ir_s number = s ? ir_saddi(b, block, s) : block;
		struct matmul_results r = results_of(m, sums);
		matmul_finish(&r, number, tile);
	}
}

/* `streams` row blocks from `block` on, and goes on to the next. */
static void emit_streams(struct matmul *m, ir_s block, unsigned streams)
{
	struct ir *b = m->b;

	m->streams = streams;
	ir_s tile = ir_loop(b, ir_sload64(b, m->arg, MATMUL_TILES * 8));
	for (unsigned matrix = 0; matrix < m->matrices; matrix++)
		dot_matrix(m, matrix, block, tile);
	finish_streams(m, block, tile);
	ir_endloop(b);
	ir_set_s(b, block, ir_saddi(b, block, streams));
}

static void emit_blocks(struct matmul *m)
{
	struct ir *b = m->b;
	unsigned per_unit = m->key->row_blocks;
	ir_s block =
		ir_var_s(b, ir_smuli(b, ir_begin(b),
	                             per_unit)); /* a loop that is not asked for its index needs one register less */
	ir_s end = ir_smin(b, ir_smuli(b, ir_end(b), per_unit), ir_sconst(b, m->blocks));

	if (m->schedule.row_blocks > 1) {
		ir_loop(b, ir_sshri(b, ir_ssub(b, end, block), 1));
		emit_streams(m, block, 2);
		ir_endloop(b);
	}
	ir_loop(b, ir_ssub(b, end, block));
	emit_streams(m, block, 1);
	ir_endloop(b);
}

/* ---- weights chosen by data */

/* A tile of `m->columns` columns of the route, from column `done` of it on. */
static void emit_route_tile(struct matmul *m, ir_s block, ir_s done)
{
	struct ir *b = m->b;
	ir_s in = ir_sadd(b, m->route.in, done), out = ir_sadd(b, m->route.out, done);

	for (unsigned matrix = 0; matrix < m->matrices; matrix++)
		dot_matrix(m, matrix, block, in);
	struct matmul_results r = results_of(m, m->sums);
	matmul_finish(&r, block, out);
}

static void set_up(struct matmul *m, const struct key *key, const struct target *target,
                   const struct matmul_schedule *schedule);

/* In tiles of each width, the widest first, each with its usual schedule. */
static void emit_route(const struct matmul *widest, ir_s block, const struct target *target)
{
	struct ir *b = widest->b;
	ir_s done = ir_var_s(b, ir_sconst(b, 0));

	for (unsigned width = widest->key->tile_n; width >= 1; width /= 2) {
		struct key key = *widest->key;
		struct matmul m = *widest;
		key.tile_n = width;
		const struct matmul_schedule usual = matmul_usual_schedule(&key, target);
		set_up(&m, &key, target, &usual);
		matmul_route_tiles(b, widest->key, &m.route, width);
		emit_route_tile(&m, block, done);
		ir_set_s(b, done, ir_saddi(b, done, width));
		ir_endloop(b);
	}
}

/* `streams` row blocks of the route from `block` on, and goes on to the next. */
static void emit_route_streams(struct matmul *m, ir_s block, unsigned streams)
{
	struct ir *b = m->b;

	m->streams = streams;
	for (unsigned matrix = 0; matrix < m->matrices; matrix++)
		dot_matrix(m, matrix, block, m->route.in);
	finish_streams(m, block, m->route.out);
	ir_set_s(b, block, ir_saddi(b, block, streams));
}

/* Single columns, whose row blocks are walked two by two: no pair is of two routes, which have matrices of their own.
 */
static void emit_route_pairs(struct matmul *m)
{
	struct ir *b = m->b;
	ir_s begin = ir_begin(b), end = ir_end(b), first = ir_sdivi(b, begin, m->blocks);
	ir_s routes = ir_ssub(b, ir_sdivi(b, ir_saddi(b, end, m->blocks - 1), m->blocks), first);
	ir_s number = ir_sadd(b, first, ir_loop(b, routes)), before = ir_smuli(b, number, m->blocks);
	/* of this route: from the launch's first, if that is behind its own first, up to the launch's end or its own */
	ir_s from = ir_smax(b, ir_ssub(b, begin, before), ir_sconst(b, 0));
	ir_s to = ir_smin(b, ir_ssub(b, end, before), ir_sconst(b, m->blocks));

	m->route = matmul_route_load(b, m->key, matmul_arg(b, m->arg, MATMUL_ROUTES), number);
	ir_s block = ir_var_s(b, from);
	ir_loop(b, ir_sshri(b, ir_ssub(b, to, block), 1));
	emit_route_streams(m, block, 2);
	ir_endloop(b);
	ir_loop(b, ir_ssub(b, to, block));
	emit_route_streams(m, block, 1);
	ir_endloop(b);
	ir_endloop(b);
}

static void emit_routes(struct matmul *m, const struct target *target)
{
	struct ir *b = m->b;
	if (m->schedule.row_blocks > 1) {
		emit_route_pairs(m);
		return;
	}
	ir_s begin = ir_begin(b), unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s number = ir_sdivi(b, unit, m->blocks), block = ir_ssub(b, unit, ir_smuli(b, number, m->blocks));

	m->streams = 1;
	m->route = matmul_route_load(b, m->key, matmul_arg(b, m->arg, MATMUL_ROUTES), number);
	if (m->key->tile_n == 1)
		emit_route_tile(m, block, ir_sconst(b, 0));
	else
		emit_route(m, block, target);
	ir_endloop(b);
}

/* What follows from the key, its recipe and its schedule. */
static void set_up(struct matmul *m, const struct key *key, const struct target *target,
                   const struct matmul_schedule *schedule)
{
	m->key = key;
	m->schedule = *schedule;
	m->shape = matmul_shape(key, target);
	m->columns = key->tile_n;
	m->keeps_heads = m->columns == 1 && target->vector_regs >= 32;
	m->by_pairs = m->keeps_heads && m->int8 && m->has_vnni && m->has_bsel && weight_has_pairs(m->format);
	m->spans = m->shape.spans;
	m->span_k = m->shape.span_k;
	m->aligned = m->shape.aligned;
	m->matrices = m->shape.matrices;
	m->iteration_k = m->schedule.unroll_k;
	m->part = matmul_parts(&m->shape, m->schedule.tile_n);
	m->stream_bytes = m->block_bytes * m->matrices;
}

void matmul_lanes_build(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	struct matmul m = { .b = b,
		            .recipe = r,
		            .format = r->format,
		            .int8 = r->int8,
		            .has_vnni = target->has_vnni,
		            .has_bsel = target->has_bsel,
		            .block_bytes = r->block_bytes,
		            .row_vectors = math_parts(b) };

	m.kp = (uint32_t)(numerics_pad(key->k) / weight_element_k(key_dtype(key->activation)));
	m.rows_padded = (uint32_t)numerics_pad(key->rows);
	m.blocks = m.rows_padded / 32 * matmul_heads(key);
	m.in_width = m.kp * matmul_heads(key);
	set_up(&m, key, target, &r->schedule);
	m.arg = ir_arg(b);
	m.sums = ir_local(b, m.schedule.row_blocks * dot_stream_sums(&m));
	if (r->source == MATMUL_FROM_ROUTES)
		emit_routes(&m, target);
	else
		emit_blocks(&m);
}

/* ---- all engines */

void matmul_build_by(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	switch (r->engine) {
	case MATMUL_NO_ENGINE: break;
	case MATMUL_LANES: matmul_lanes_build(b, key, target, r); break;
	case MATMUL_LANES_WIDE: matmul_wide_build(b, key, target, r); break;
	case MATMUL_WAVES: matmul_wave_build(b, key, target, r); break;
	case MATMUL_SIDE_BY_SIDE: matmul_floats_build(b, key, target, r); break;
	case MATMUL_PRODUCTS: matmul_mma_build(b, key, target, r); break;
	}
}

bool matmul_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const struct matmul_recipe r = matmul_recipe(key, target);

	if (r.refusal)
		return build_refuse(key, err, r.refusal);
	matmul_build_by(b, key, target, &r);
	return true;
}
