/* kernels-templates/matmul/matmul_wide.c - matmul for many columns: prompts.
 *
 * Owns: blocking when arithmetic, not memory, is the limit. As in matmul.c a lane owns a row and k runs in time; every
 * row's chain is as numerics.h rules 3 to 5 say it, whatever the tiles. The columns of a part lie side by side in
 * memory (KEY_INTERLEAVE), a panel, so that activations are one stream of small displacements, whatever k is: columns a
 * power of two apart would push each other out of the first-level cache.
 *
 * Sums of int8 products come from registers, or, where the target has tiles, through local memory from its products of
 * matrices.
 *
 * The loops, outermost first: row blocks; column tiles; matrices; segments of k, whose weights stay in the first-level
 * cache; parts of the tile that fit the registers; k. Weights that take work to read are unpacked once for a row block,
 * and read from there by all tiles; for a segment and its parts where that is too much for the second-level cache,
 * where they become f32, or where columns are few.
 */
#include "kernels-templates/matmul/matmul_wide.h"

#include "kernels-templates/matmul/matmul_dot.h"

/* How many tiles, a power of two, ask for the next row block's weights, where tiles have many columns. */
enum { WIDE_LINE = 64, WIDE_ASKING = 4 };

/* ---- walking */

static unsigned segments_of_span(const struct wide *m) { return (m->span_k + m->segment - 1) / m->segment; }
static bool even_segments(const struct wide *m) { return m->span_k % m->segment == 0; }

/* Bytes of an iteration: of weights, of inputs, of the inputs' blocks. */
static int64_t iteration_w(const struct wide *m)
{
	return (int64_t)m->iteration_k / m->format->unit_k * m->format->unit_bytes;
}
static int64_t iteration_beside(const struct wide *m)
{
	return (int64_t)m->iteration_k / m->format->unit_k * m->unpacked.unit_bytes;
}
static int64_t iteration_x(const struct wide *m, unsigned columns)
{
	return (int64_t)m->iteration_k * columns * (m->int8 ? 1 : 4);
}
static int64_t iteration_xs(const struct wide *m, unsigned columns)
{
	return (int64_t)m->iteration_k / 32 * columns * (int64_t)sizeof(struct activation_block);
}
/* Bytes of a panel. */
static int64_t panel_x(const struct wide *m) { return (int64_t)m->kp * m->part_columns * (m->int8 ? 1 : 4); }
static int64_t panel_xs(const struct wide *m)
{
	return (int64_t)m->kp / 32 * m->part_columns * (int64_t)sizeof(struct activation_block);
}

static void walk_iterations(const struct wide *m, ir_a var, int64_t bytes)
{
	if (even_segments(m))
		matmul_walk(m->b, var, m->segment / m->iteration_k * bytes);
	else
		ir_set_a(m->b, var, ir_aadd(m->b, var, ir_smuli(m->b, m->iterations, bytes)));
}

static void walk_weights(const struct wide *m, int direction)
{
	walk_iterations(m, m->w, direction * iteration_w(m));
	if (wide_reads_packed(m))
		walk_iterations(m, m->beside, direction * iteration_beside(m));
}

/* By a segment, in a panel of so many columns. */
static void walk_inputs(const struct wide *m, unsigned columns, int direction)
{
	walk_iterations(m, m->x, direction * iteration_x(m, columns));
	if (m->int8)
		walk_iterations(m, m->xs, direction * iteration_xs(m, columns));
}

static void walk_panels(const struct wide *m, int panels)
{
	matmul_walk(m->b, m->x, panels * panel_x(m));
	if (m->int8)
		matmul_walk(m->b, m->xs, panels * panel_xs(m));
}

/* ---- the inner loop */

/* All products of an iteration before the first is waited for. */
static void dot_tiles(const struct wide *m, const struct weight_tile *t)
{
	for (unsigned u = 0; u < m->iteration_k / NUMERICS_BLOCK; u++)
		weight_unpacked_products(&m->unpacked, m->b, t, u, m->products, (int32_t)(u * m->part_columns * 128));
	for (unsigned u = 0; u < m->iteration_k / NUMERICS_BLOCK; u++)
		weight_unpacked_add(&m->unpacked, m->b, t, u, m->products, (int32_t)(u * m->part_columns * 128));
}

static void dot_iteration(const struct wide *m, const struct weight_tile *t)
{
	const struct weight_format *f = m->format;
	if (m->tiles) {
		dot_tiles(m, t);
		return;
	}
	for (unsigned k = 0; k < m->iteration_k; k += m->int8 ? f->unit_k : f->step)
		if (m->int8 && wide_unpacks(m))
			weight_unpacked_dot(&m->unpacked, m->b, t, 0, 0);
		else if (m->int8)
			weight_dot_int8(f, m->b, t, (int32_t)(k / f->unit_k * f->unit_bytes), k / f->unit_k);
		else
			dot_floats(m->b, f, t, k);
}

/* Of the span, before this segment. */
static ir_f sum_so_far(const struct wide *m, int32_t disp)
{
	return segments_of_span(m) > 1 ? ir_fload(m->b, m->sum, disp, 0) : ir_fconst(m->b, 0.0f);
}

/* One part of the segment; leaves the addresses as they were. */
static void dot_part(const struct wide *m, unsigned columns, unsigned vector)
{
	struct ir *b = m->b;
	struct weight_tile t = {
		.vectors = m->part_vectors,
		.first_vector = vector,
		.columns = columns,
		.w = { .at = { m->w, m->w, m->w }, .head = m->beside },
		.x = m->x,
		.xs = m->xs,
		.sums = WEIGHT_MAX_ACC,
		.x_column = m->int8 ? NUMERICS_BLOCK : 4,
		.x_step = m->int8 ? 4 : (int32_t)columns * 4,
		.xs_column = sizeof(struct activation_block),
		.xs_step = (int32_t)(columns * sizeof(struct activation_block)),
		.has_vnni = m->has_vnni,
		.dot2 = m->format == &wf_bf16_dot2
	};
	int32_t disp[WEIGHT_MAX_ACC];

	for (unsigned i = 0; i < t.vectors * columns; i++) {
		disp[i] = (int32_t)(i % columns * 128 + (vector + i / columns) * b->lanes * 4);
		t.acc[i] = ir_var_f(b, m->int8 ? sum_so_far(m, disp[i]) : ir_fconst(b, 0.0f));
	}
	ir_loop(b, even_segments(m) ? ir_sconst(b, m->segment / m->iteration_k) : m->iterations);
	for (unsigned i = 0; m->schedule.prefetch_level != SCHEDULE_NO_LEVEL && i < m->lines; i++)
		(m->schedule.prefetch_level == SCHEDULE_SECOND_LEVEL
		         ? ir_prefetch2
		         : ir_prefetch)(b, m->ahead, (int32_t)(i * WIDE_LINE));
	for (unsigned i = 0; m->schedule.prefetch_level == SCHEDULE_BOTH_LEVELS && i < m->lines; i++)
		ir_prefetch2(b, m->ahead, (int32_t)(m->schedule.prefetch_distance + i * WIDE_LINE));
	matmul_walk(b, m->ahead, m->lines * WIDE_LINE);
	dot_iteration(m, &t);
	matmul_walk(b, m->w, iteration_w(m));
	if (wide_reads_packed(m))
		matmul_walk(b, m->beside, iteration_beside(m));
	matmul_walk(b, m->x, iteration_x(m, columns));
	if (m->int8)
		matmul_walk(b, m->xs, iteration_xs(m, columns));
	ir_endloop(b);
	for (unsigned i = 0; i < t.vectors * columns; i++)
		ir_fstore(b, m->sum, m->int8 ? t.acc[i] : ir_fadd(b, sum_so_far(m, disp[i]), t.acc[i]), disp[i], 0);
	walk_weights(m, -1);
	walk_inputs(m, columns, -1);
}

static void dot_vectors(const struct wide *m, unsigned columns)
{
	for (unsigned v = 0; v < m->row_vectors; v += m->part_vectors)
		dot_part(m, columns, v);
	matmul_walk(m->b, m->sum, columns * 128);
}

/* Where the packed unit number `unit` of the matrix lies, and its head. Made again whenever it is asked for: no
 * register waits for that. */
static ir_a packed_unit(const struct wide *m, ir_s unit, ir_a *head)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->packed;
	ir_a at = ir_aadd(b, matmul_arg(b, m->results.arg, MATMUL_W),
	                  ir_smuli(b, m->block, m->block_bytes * m->matrices));

	if (m->matrices > 1)
		at = ir_aadd(b, at, ir_smuli(b, m->matrix, m->block_bytes));
	*head = at;
	if (f->head_bytes) {
		ir_s heads = ir_sshri(b, unit, (unsigned)__builtin_ctz(f->head_units));
		*head = ir_aadd(b, at, ir_smuli(b, heads, (int64_t)f->head_units * f->unit_bytes + f->head_bytes));
		at = ir_aaddi(b, ir_aadd(b, at, ir_smuli(b, heads, f->head_bytes)), f->head_bytes);
	}
	return ir_aadd(b, at, ir_smuli(b, unit, f->unit_bytes));
}

static ir_s span_number(const struct wide *m)
{
	return segments_of_span(m) > 1 ? ir_sdivi(m->b, m->segment_number, segments_of_span(m)) : m->segment_number;
}

/* Iterations of the span before this segment, where segments differ. */
static ir_s fairness_before(const struct wide *m)
{
	struct ir *b = m->b;
	return ir_smuli(b, ir_ssub(b, m->segment_number, ir_smuli(b, span_number(m), segments_of_span(m))),
	                m->segment / m->iteration_k);
}

/* Number of the segment's first block of 32 k's. */
static ir_s first_block(const struct wide *m)
{
	struct ir *b = m->b;
	if (even_segments(m))
		return ir_smuli(b, m->segment_number, m->segment / m->block_k);
	ir_s iterations = ir_sadd(b, ir_smuli(b, span_number(m), m->span_k / m->iteration_k), fairness_before(m));
	return ir_sdivi(b, ir_smuli(b, iterations, m->iteration_k), m->block_k);
}

static ir_a tile_at(const struct wide *m, unsigned slot, int64_t column_bytes)
{
	return ir_aadd(m->b, matmul_arg(m->b, m->results.arg, slot),
	               ir_smuli(m->b, m->tile, m->columns * column_bytes));
}

/* Unpacks so many units from number `unit`, a variable, on, to `to`, which walks. */
static void unpack_units(const struct wide *m, ir_s unit, ir_s units, ir_a to)
{
	struct ir *b = m->b;
	ir_a head;

	ir_loop(b, units);
	ir_a at = packed_unit(m, unit, &head);
	struct weight_stream w = { .at = { at, at, at }, .head = head, .chooses = m->unpacked.chooses };
	for (unsigned v = 0; v < m->row_vectors; v++)
		weight_unpack(&m->unpacked, b, &w, v, to);
	matmul_walk(b, to, m->unpacked.unit_bytes);
	ir_set_s(b, unit, ir_saddi(b, unit, 1));
	ir_endloop(b);
}

/* Puts the addresses of weights and inputs to the segment's beginning, and unpacks it. While that goes on no register
 * holds them. */
static void unpack_segment(struct wide *m)
{
	struct ir *b = m->b;
	ir_s units = even_segments(m) ? ir_sconst(b, m->segment / NUMERICS_BLOCK)
	                              : ir_sdivi(b, ir_smuli(b, m->iterations, m->iteration_k), NUMERICS_BLOCK);
	ir_s unit = ir_var_s(b, first_block(m));
	ir_a head;

	unpack_units(m, unit, units, ir_var_a(b, m->scratch));
	m->ahead = ir_var_a(b, packed_unit(m, unit, &head));
	ir_s before = first_block(m);
	m->w = ir_var_a(b, wide_reads_packed(m) ? packed_unit(m, before, &head) : m->scratch);
	if (wide_reads_packed(m))
		m->beside = ir_var_a(b, m->scratch);
	m->x = ir_var_a(b, ir_aadd(b, tile_at(m, MATMUL_X, (int64_t)m->kp * (m->int8 ? 1 : 4)),
	                           ir_smuli(b, before, (int64_t)NUMERICS_BLOCK * m->part_columns * (m->int8 ? 1 : 4))));
	if (m->int8)
		m->xs = ir_var_a(
			b, ir_aadd(b, tile_at(m, MATMUL_XS, m->kp / 2),
		                   ir_smuli(b, before, m->part_columns * (int64_t)sizeof(struct activation_block))));
}

/* Bytes in memory that an iteration stands for, rounded up. */
static unsigned iteration_packed(const struct wide *m)
{
	return (unsigned)((weight_run_bytes(m->packed, 256) * m->iteration_k + 255) / 256);
}

static unsigned parts_of_tile(const struct wide *m)
{
	return (m->columns + m->part_columns - 1) / m->part_columns * (m->row_vectors / m->part_vectors);
}

/* All of a row block. */
static void unpack_block(struct wide *m)
{
	struct ir *b = m->b;
	ir_a to = ir_var_a(b, m->scratch);

	if (m->matrices > 1)
		m->matrix = ir_loop(b, ir_sconst(b, m->matrices));
	ir_s unit = ir_var_s(b, ir_sconst(b, 0));
	unpack_units(m, unit, ir_sconst(b, m->kp / NUMERICS_BLOCK), to);
	if (m->matrices > 1)
		ir_endloop(b);
}

/* Where the tile's weights begin, and the share of the next row block that it asks for: whether there are other tiles
 * to ask for the rest is told by their width. */
static void find_block(struct wide *m)
{
	struct ir *b = m->b;
	ir_a packed = ir_aadd(b, matmul_arg(b, m->results.arg, MATMUL_W),
	                      ir_smuli(b, m->block, m->block_bytes * m->matrices));

	m->w = ir_var_a(b, m->whole && !wide_reads_packed(m) ? m->scratch : packed);
	if (!m->whole)
		return;
	if (wide_reads_packed(m))
		m->beside = ir_var_a(b, m->scratch);
	bool many = m->columns >= WIDE_MANY;
	unsigned share = WIDE_LINE * parts_of_tile(m) * (many ? WIDE_ASKING - 1 : 1);
	m->lines = (iteration_packed(m) + share - 1) / share;
	int64_t bytes = (int64_t)m->lines * WIDE_LINE * parts_of_tile(m) * m->matrices * (m->kp / m->iteration_k);
	m->ahead = ir_var_a(b, ir_aadd(b, ir_aaddi(b, packed, m->block_bytes * m->matrices),
	                               ir_smuli(b, ir_sandi(b, m->tile, many ? WIDE_ASKING - 1 : 0), bytes)));
}

/* The last panel, which is narrower: so far into it, the segment begins earlier. */
static void dot_rest(const struct wide *m, unsigned rest)
{
	struct ir *b = m->b;
	int64_t x = (int64_t)m->block_k * (m->part_columns - rest) * (m->int8 ? 1 : 4),
		xs = (m->part_columns - rest) * (int64_t)sizeof(struct activation_block);
	ir_s before = first_block(m);

	for (int direction = -1; direction <= 1; direction += 2) {
		ir_set_a(b, m->x, ir_aadd(b, m->x, ir_smuli(b, before, direction * x)));
		if (m->int8)
			ir_set_a(b, m->xs, ir_aadd(b, m->xs, ir_smuli(b, before, direction * xs)));
		if (direction < 0)
			dot_vectors(m, rest);
	}
}

static void wide_segment(struct wide *m)
{
	unsigned full = m->columns / m->part_columns, rest = m->columns % m->part_columns, parts = parts_of_tile(m);

	if (!m->whole)
		m->lines = (iteration_packed(m) + WIDE_LINE * parts - 1) / (WIDE_LINE * parts);
	if (wide_unpacks_segments(m))
		unpack_segment(m);
	else if (!m->whole)
		m->ahead = ir_var_a(m->b, ir_aaddi(m->b, m->w, m->segment / m->iteration_k * iteration_w(m)));
	ir_a sums = m->results.sums;
	if (m->matrices > 1)
		sums = ir_aadd(m->b, sums, ir_smuli(m->b, m->matrix, m->columns * 128));
	m->sum = ir_var_a(m->b, ir_aadd(m->b, sums, ir_smuli(m->b, span_number(m), matmul_span_bytes(&m->results))));
	bool loop = full > 1 ||
	            wide_unpacks_segments(
			    m); /* in a loop of its own, what unpacking keeps in registers is in nobody's way */
	if (loop)
		ir_loop(m->b, ir_sconst(m->b, full));
	dot_vectors(m, m->part_columns);
	walk_panels(m, 1);
	if (loop)
		ir_endloop(m->b);
	if (rest)
		dot_rest(m, rest);
	if (wide_unpacks_segments(m))
		return;
	walk_panels(m, -(int)full);
	walk_weights(m, 1);
	walk_inputs(m, m->part_columns, 1);
}

/* ---- the outer loops */

static void clear_sums(const struct wide *m)
{
	struct ir *b = m->b;
	ir_a at = ir_var_a(b, m->results.sums);

	ir_loop(b, ir_sconst(b, (int64_t)m->spans * m->matrices * m->columns));
	for (unsigned v = 0; v < m->row_vectors; v++)
		ir_fstore(b, at, ir_fconst(b, 0.0f), (int32_t)(v * b->lanes * 4), 0);
	matmul_walk(b, at, 128);
	ir_endloop(b);
}

/* One matrix. One loop runs over the segments of all spans. */
static void dot_spans(struct wide *m)
{
	struct ir *b = m->b;

	m->segment_number = ir_loop(b, ir_sconst(b, m->spans * segments_of_span(m)));
	if (!even_segments(m))
		m->iterations = ir_smin(b, ir_ssub(b, ir_sconst(b, m->span_k / m->iteration_k), fairness_before(m)),
		                        ir_sconst(b, m->segment / m->iteration_k));
	wide_segment(m);
	ir_endloop(b);
}

static void emit_blocks(struct wide *m)
{
	struct ir *b = m->b;
	ir_s block = ir_var_s(b, ir_begin(b));

	m->block = block;
	ir_loop(b, ir_ssub(b, ir_end(b), block));
	if (m->whole)
		unpack_block(m);
	m->tile = ir_loop(b, ir_sload64(b, m->results.arg, MATMUL_TILES * 8));
	if (segments_of_span(m) > 1)
		clear_sums(m);
	if (!wide_unpacks_segments(m))
		find_block(m);
	if (m->matrices > 1)
		m->matrix = ir_loop(b, ir_sconst(b, m->matrices));
	if (!wide_unpacks_segments(m))
		m->x = ir_var_a(b, tile_at(m, MATMUL_X, (int64_t)m->kp * (m->int8 ? 1 : 4)));
	if (!wide_unpacks_segments(m) && m->int8)
		m->xs = ir_var_a(b, tile_at(m, MATMUL_XS, m->kp / 2));
	dot_spans(m);
	if (m->matrices > 1)
		ir_endloop(b);
	matmul_finish(&m->results, block, m->tile);
	ir_endloop(b);
	ir_set_s(b, block, ir_saddi(b, block, 1));
	ir_endloop(b);
}

void matmul_wide_build(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	struct wide m;

	wide_shape_key(&m, key, target, r->schedule.k_block_bytes);
	m.part_columns = r->panel;
	m.b = b;
	m.schedule = r->schedule;
	m.results = (struct matmul_results){
		.b = b, .key = key, .recipe = r, .arg = ir_arg(b), .spans = m.spans, .columns = m.columns
	};
	m.results.sums = ir_local(b, m.spans * matmul_span_bytes(&m.results));
	if (wide_unpacks(&m))
		m.scratch = ir_local(b, m.whole ? wide_block_unpacked(&m)
		                                : (int64_t)m.segment / NUMERICS_BLOCK * m.unpacked.unit_bytes);
	if (m.tiles)
		m.products = ir_local(b, (int64_t)m.iteration_k / NUMERICS_BLOCK * m.part_columns * 128);
	emit_blocks(&m);
}
