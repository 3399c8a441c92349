/* kernels-templates/matmul/matmul_dot.c - the inner loops of matmul.c: a segment of k, part by part of the tile.
 *
 * Owns: the walking along k and over columns, the order of loads and products, and what is prefetched.
 */
#include <assert.h>

#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul_dot.h"

enum { MATMUL_LINE = 64 };

/* ---- walking */

static void walk_iterations(struct matmul *m, ir_a var, const struct iterations *t, int64_t bytes)
{
	if (t->known)
		matmul_walk(m->b, var, t->n * bytes);
	else
		ir_set_a(m->b, var, ir_aadd(m->b, var, ir_smuli(m->b, t->s, bytes)));
}

static int64_t interleave_units(const struct matmul *m) { return m->iteration_k / m->format->unit_k; }
static int64_t interleave_bytes(const struct matmul *m) { return interleave_units(m) * m->format->unit_bytes; }

static void walk_inputs(struct matmul *m, const struct iterations *t, int direction)
{
	walk_iterations(m, m->x, t, direction * (int64_t)m->iteration_k * (m->int8 ? 1 : 4));
	if (m->int8)
		walk_iterations(m, m->xs, t,
		                direction * (int64_t)(m->iteration_k / 32 * sizeof(struct activation_block)));
}

/* w stands where units alone would have moved it: puts it, and the head, right for the heads passed in n units (back
 * when negative). */
static void pass_heads(struct matmul *m, bool known, int64_t n, ir_s s)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->format;
	int64_t stride = (int64_t)f->head_units * f->unit_bytes + f->head_bytes;
	unsigned shift = (unsigned)__builtin_ctz(f->head_units);

	if (known && n % f->head_units == 0) {
		matmul_walk(b, m->w, n / f->head_units * f->head_bytes);
		matmul_walk(b, m->head, n / f->head_units * stride);
		return;
	}
	ir_set_s(b, m->unit, known ? ir_saddi(b, m->unit, n) : ir_sadd(b, m->unit, s));
	ir_s passed = ir_sshri(b, m->unit, shift);
	ir_set_s(b, m->unit, ir_sandi(b, m->unit, f->head_units - 1));
	ir_set_a(b, m->w, ir_aadd(b, m->w, ir_smuli(b, passed, f->head_bytes)));
	ir_set_a(b, m->head, ir_aadd(b, m->head, ir_smuli(b, passed, stride)));
}

/* Along k: weights and inputs. direction: 1 or -1. */
static void walk_k(struct matmul *m, const struct iterations *t, int direction)
{
	walk_iterations(m, m->w, t, direction * interleave_bytes(m));
	if (m->format->head_bytes)
		pass_heads(m, t->known, direction * t->n * interleave_units(m),
		           t->known ? t->s : ir_smuli(m->b, t->s, direction * interleave_units(m)));
	walk_inputs(m, t, direction);
}

/* Moves the inputs, and the sums with them, by whole columns. */
static void walk_columns(struct matmul *m, int columns)
{
	matmul_walk(m->b, m->x, columns * (int64_t)m->in_width * (m->int8 ? 1 : 4));
	if (m->int8)
		matmul_walk(m->b, m->xs, columns * (int64_t)(m->in_width / 2));
	matmul_walk(m->b, m->sum, columns * 128);
}

/* ---- the inner loop */

static ir_f load_input(struct ir *b, const struct weight_tile *t, unsigned c, unsigned k)
{
	return ir_fbcast(b, t->x, weight_input_disp(t, c, k));
}

void dot_floats(struct ir *b, const struct weight_format *f, const struct weight_tile *t, unsigned k)
{
	ir_f w[WEIGHT_MAX_ACC][WEIGHT_MAX_STEP];

	for (unsigned v = 0; v < t->vectors; v++)
		weight_load(f, b, &t->w, (int32_t)(k / f->unit_k * f->unit_bytes), t->first_vector + v,
		            k % f->unit_k / f->step, w[v]);
	for (unsigned i = 0; i < f->step; i++)
		for (unsigned c = 0; c < t->columns; c++) {
			ir_f in = load_input(b, t, c, k + i);
			for (unsigned v = 0; v < t->vectors; v++)
				weight_add_product(b, t, v, c, w[v][i], in);
		}
}

/* The same, inputs first: the fewer of the two wait in registers. Formats with long steps keep theirs for the weights,
 * and load inputs again for each row vector. */
static void dot_narrow(struct ir *b, const struct weight_format *f, const struct weight_tile *t, unsigned k)
{
	ir_f w[WEIGHT_MAX_STEP], x[MATMUL_MAX_COLUMNS][WEIGHT_MAX_STEP];
	const bool again = f->step > 2;

	for (unsigned c = 0; !again && c < t->columns; c++)
		for (unsigned i = 0; i < f->step; i++)
			x[c][i] = load_input(b, t, c, k + i);
	for (unsigned v = 0; v < t->vectors; v++) {
		weight_load(f, b, &t->w, (int32_t)(k / f->unit_k * f->unit_bytes), t->first_vector + v,
		            k % f->unit_k / f->step, w);
		for (unsigned i = 0; i < f->step; i++)
			for (unsigned c = 0; c < t->columns; c++)
				weight_add_product(b, t, v, c, w[i], again ? load_input(b, t, c, k + i) : x[c][i]);
	}
}

static bool single_part(const struct matmul *m) { return matmul_single_part(&m->shape, &m->part); }

static void ask(const struct matmul *m, ir_a from, bool second, int64_t at)
{
	for (unsigned s = 0; s < m->streams; s++)
		for (int64_t i = 0; i < m->lines; i++)
			(second ? ir_prefetch2
			        : ir_prefetch)(m->b, from, (int32_t)(s * m->stream_bytes + at + i * MATMUL_LINE));
}

static void ask_for_lines(const struct matmul *m, ir_a from)
{
	const struct matmul_schedule *c = &m->schedule;
	bool once = matmul_once(&m->shape, &m->part);

	if (c->prefetch_level == SCHEDULE_NO_LEVEL)
		return;
	ask(m, from, once && c->prefetch_level != SCHEDULE_FIRST_LEVEL, m->lines_at);
	if (c->prefetch_level == SCHEDULE_BOTH_LEVELS)
		ask(m, from, !once, once ? m->lines_at / 2 : m->lines_at + c->prefetch_distance);
}

static void dot_iteration(struct matmul *m, const struct weight_tile *t)
{
	const struct weight_format *f = m->format;

	ir_a from = m->ahead.r ? ir_aadd(m->b, m->w, m->ahead) : m->w;
	ask_for_lines(m, from);
	for (unsigned k = 0; k < m->iteration_k; k += m->int8 ? f->unit_k : f->step)
		if (m->int8)
			weight_dot_int8(f, m->b, t, (int32_t)(k / f->unit_k * f->unit_bytes), k / f->unit_k);
		else
			(t->columns <= t->vectors ? dot_narrow : dot_floats)(m->b, f, t, k);
}

static void load_head(const struct matmul *m, const struct weight_tile *t, struct weight_head *head)
{
	for (unsigned v = t->first_vector; m->format->float_head && v < t->first_vector + t->vectors; v++)
		head->half[0][v] = weight_head_float(m->b, &t->w, v);
	for (unsigned i = 0; !m->format->float_head && i < m->format->head_bytes / 64; i++)
		for (unsigned v = t->first_vector; v < t->first_vector + t->vectors; v++)
			head->half[i][v] = weight_head_half(m->b, &t->w, (int32_t)(i * 64), v);
}

/* Leaves the addresses at the end in k. Where heads come is known when they begin spans; else the units are counted. */
static void dot_iterations(struct matmul *m, const struct weight_tile *t, const struct iterations *iterations)
{
	struct ir *b = m->b;
	static const struct iterations one = { .known = true, .n = 1 };

	if (!m->aligned) {
		ir_loop(b, iterations->known ? ir_sconst(b, iterations->n) : iterations->s);
		dot_iteration(m, t);
		walk_k(m, &one, 1);
		ir_endloop(b);
		return;
	}
	assert(iterations->known);
	ir_loop(b, ir_sconst(b, iterations->n * interleave_units(m) / m->format->head_units));
	struct weight_head head;
	struct weight_tile with_head = *t;
	if (m->keeps_heads && m->streams == 1) {
		load_head(m, t, &head);
		with_head.w.in_registers = &head;
		t = &with_head;
	}
	ir_loop(b, ir_sconst(b, m->format->head_units / interleave_units(m)));
	dot_iteration(m, t);
	matmul_walk(b, m->w, interleave_bytes(m));
	walk_inputs(m, &one, 1);
	ir_endloop(b);
	pass_heads(m, true, m->format->head_units, m->unit);
	ir_endloop(b);
}

/* One part over `iterations` iterations: `columns` columns from m->x, row vectors from `vector` on. Leaves the
 * addresses at the end in k. */
static void dot_part(struct matmul *m, unsigned columns, unsigned vector, const struct iterations *iterations)
{
	struct ir *b = m->b;
	/* Arrays of every lane size start at row 0, so one register serves all. */
	struct weight_stream w = { .at = { m->w, m->w, m->w },
		                   .head = m->head,
		                   .vectors = m->row_vectors,
		                   .second_offset = m->streams > 1 ? (int32_t)m->stream_bytes : 0,
		                   .chooses = m->has_bsel };
	struct weight_tile t = {
		.vectors = m->part.vectors * m->streams,
		.first_vector = vector,
		.columns = columns,
		.w = w,
		.x = m->x,
		.xs = m->xs,
		.sums = m->part.sums,
		.has_vnni = m->has_vnni,
		.by_pairs = m->by_pairs,
		.dot2 = m->format == &wf_bf16_dot2
	};
	unsigned of_stream = m->part.vectors * columns, n = of_stream * m->streams;
	bool parked = m->streams > 1 && matmul_accumulators_in_memory(&m->shape);
	int32_t disp[WEIGHT_MAX_ACC];

	t.x_column = (int32_t)(m->in_width * (m->int8 ? 1u : 4u));
	t.x_step = 4;
	t.xs_column = (int32_t)(m->in_width / 2);
	t.xs_step = sizeof(struct activation_block);
	for (unsigned i = 0; i < n; i++) {
		disp[i] = (int32_t)(i / of_stream * dot_stream_sums(m) + i % columns * 128 +
		                    (vector + i % of_stream / columns) * b->lanes * 4);
		if (!parked)
			t.acc[i] = ir_var_f(b, m->int8 ? ir_fload(b, m->sum, disp[i], 0) : ir_fconst(b, 0.0f));
	}
	if (parked) {
		t.parked = m->sum;
		t.parked_at = disp;
		t.sums = t.vectors;
	}
	dot_iterations(m, &t, iterations);
	for (unsigned i = 0; i < n && !parked; i++)
		ir_fstore(b, m->sum, m->int8 ? t.acc[i] : ir_fadd(b, ir_fload(b, m->sum, disp[i], 0), t.acc[i]),
		          disp[i], 0);
}

/* All row vectors by `columns` columns from m->x; leaves the addresses as they were. */
static void dot_vectors(struct matmul *m, unsigned columns, const struct iterations *iterations)
{
	for (unsigned v = 0; v < m->row_vectors; v += m->part.vectors) {
		dot_part(m, columns, v, iterations);
		walk_k(m, iterations, -1);
		m->lines_at += m->lines * MATMUL_LINE;
	}
}

/* A segment in several parts. Each part asks for its share of the next segment's lines. */
static void dot_parts(struct matmul *m, const struct iterations *iterations)
{
	unsigned full = m->columns / m->part.columns, rest = m->columns % m->part.columns,
		 groups = m->row_vectors / m->part.vectors;
	/* Which column part this is takes a register to say. Kernels that count heads have none left even for a loop
	 * over column parts; int8 kernels that count their iterations, and those with heads, have none for the number
	 * and let every part ask. */
	bool unrolled = m->format->head_bytes && !m->aligned;
	bool by_columns = full > 1 && (unrolled || ((iterations->known || !m->int8) && !m->format->head_bytes));
	unsigned shares = by_columns ? (full + (rest > 0)) * groups : groups;
	int64_t next = (int64_t)m->shape.segment_k / m->format->unit_k * m->format->unit_bytes,
		lines = interleave_bytes(m) / MATMUL_LINE;

	m->lines = (lines + shares - 1) / shares;
	m->lines_at = next;
	if (full > 1 && !unrolled) {
		ir_s number = ir_loop(m->b, ir_sconst(m->b, full));
		if (by_columns)
			m->ahead = ir_smuli(m->b, number, groups * m->lines * MATMUL_LINE);
	}
	for (unsigned i = 0; i < (unrolled ? full : 1); i++) {
		dot_vectors(m, m->part.columns, iterations);
		if (full > 1 || rest)
			walk_columns(m, (int)m->part.columns);
	}
	if (full > 1 && !unrolled)
		ir_endloop(m->b);
	m->ahead.r = 0;
	m->lines_at = next + (by_columns ? full * groups * m->lines * MATMUL_LINE : 0);
	if (rest)
		dot_vectors(m, rest, iterations);
	if (full > 1 || rest)
		walk_columns(m, -(int)(full * m->part.columns));
	walk_k(m, iterations, 1);
}

void dot_segment(struct matmul *m, const struct iterations *iterations)
{
	if (single_part(m)) {
		/* A head ahead shifts what follows it. */
		m->lines = (interleave_bytes(m) + m->format->head_bytes + MATMUL_LINE - 1) / MATMUL_LINE;
		m->lines_at = m->schedule.prefetch_distance;
		dot_part(m, m->columns, 0, iterations);
	} else {
		dot_parts(m, iterations);
	}
}
