/* kernels-templates/matmul/matmul.c - weights times columns of activations: dot products and what is done to a row's
 * result.
 *
 * Owns: blocking. A lane owns an output row, k runs in time, so no result depends on lanes, tiles or columns: a tile is
 * only a choice of which chains run side by side. Knows no weight format but through weight_format.h. An editor may
 * change the tiles freely and must keep every row's chain as numerics.h rules 3 to 5 say it.
 *
 * The loops, outermost first: row blocks; column tiles of the launch; the matrices, one or two; spans; segments of 256
 * (whose weights stay in the first-level cache); parts of the tile that fit the registers; k. Between segments the
 * totals of the 32 rows lie in local memory, [span][matrix][column][32].
 *
 * Weights are read in the order they lie in memory, one stream at a time, or two when a schedule (matmul_schedule.h)
 * has two row blocks walked side by side, a step of one and a step of the other. Reading a unit's vectors out of order
 * loses a tenth of the memory's bandwidth.
 *
 * General registers are as short as vector registers: addresses walk and walk back, and what is easily computed again
 * is computed again.
 */
#include <assert.h>
#include <string.h>

#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"
#include "kernels-templates/matmul/matmul_schedule.h"

enum { MATMUL_LINE = 64, MATMUL_MAX_COLUMNS = 8 };

struct matmul {
	struct ir *b;
	const struct key *key;
	const struct weight_format *format;
	bool int8, has_vnni, has_bsel;
	bool by_pairs, keeps_heads;       /* of single columns */
	uint32_t kp, rows_padded, blocks; /* padded k and rows; blocks of 32 rows */
	int64_t block_bytes;
	unsigned spans, span_k;
	bool aligned;         /* formats with heads: every span and segment begins with one */
	unsigned columns;     /* of a column tile */
	unsigned row_vectors; /* vectors in 32 rows */
	unsigned matrices;

	struct matmul_shape shape;
	struct matmul_schedule schedule;
	struct matmul_parts part; /* of a tile, that fits the registers */
	unsigned iteration_k;     /* k's in one turn of the inner loop */
	unsigned streams;         /* row blocks side by side, stream_bytes apart in memory */
	int64_t stream_bytes;

	ir_a arg, sums;
	ir_a w, x, xs, sum; /* walking */
	ir_a head;
	ir_s unit; /* formats with heads: that of the unit at w, and its number among them */

	/* Weights asked for by a turn: `lines` lines from w + ahead + lines_at (ahead.r 0: none) on. */
	ir_s ahead;
	int64_t lines_at, lines;
};

/* ---- walking */

static ir_a load_arg(const struct matmul *m, unsigned slot) { return ir_aload(m->b, m->arg, (int32_t)(slot * 8)); }

static void walk(struct matmul *m, ir_a var, int64_t bytes)
{
	if (bytes)
		ir_set_a(m->b, var, ir_aaddi(m->b, var, bytes));
}

/* A count of inner-loop turns: known now, or only when the kernel runs. */
struct turns {
	bool known;
	int64_t n;
	ir_s s;
};

static void walk_turns(struct matmul *m, ir_a var, const struct turns *t, int64_t bytes)
{
	if (t->known)
		walk(m, var, t->n * bytes);
	else
		ir_set_a(m->b, var, ir_aadd(m->b, var, ir_smuli(m->b, t->s, bytes)));
}

static int64_t interleave_units(const struct matmul *m) { return m->iteration_k / m->format->unit_k; }
static int64_t interleave_bytes(const struct matmul *m) { return interleave_units(m) * m->format->unit_bytes; }

static void walk_inputs(struct matmul *m, const struct turns *t, int direction)
{
	walk_turns(m, m->x, t, direction * (int64_t)m->iteration_k * (m->int8 ? 1 : 4));
	if (m->int8)
		walk_turns(m, m->xs, t, direction * (int64_t)(m->iteration_k / 32 * sizeof(struct activation_block)));
}

/* w stands where units alone would have brought it: puts it, and the head, right for the heads passed in n units (back
 * when negative). */
static void pass_heads(struct matmul *m, bool known, int64_t n, ir_s s)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->format;
	int64_t stride = (int64_t)f->head_units * f->unit_bytes + f->head_bytes;
	unsigned shift = (unsigned)__builtin_ctz(f->head_units);

	if (known && n % f->head_units == 0) {
		walk(m, m->w, n / f->head_units * f->head_bytes);
		walk(m, m->head, n / f->head_units * stride);
		return;
	}
	ir_set_s(b, m->unit, known ? ir_saddi(b, m->unit, n) : ir_sadd(b, m->unit, s));
	ir_s passed = ir_sshri(b, m->unit, shift);
	ir_set_s(b, m->unit, ir_sandi(b, m->unit, f->head_units - 1));
	ir_set_a(b, m->w, ir_aadd(b, m->w, ir_smuli(b, passed, f->head_bytes)));
	ir_set_a(b, m->head, ir_aadd(b, m->head, ir_smuli(b, passed, stride)));
}

/* Along k: weights and inputs. direction: 1 or -1. */
static void walk_k(struct matmul *m, const struct turns *t, int direction)
{
	walk_turns(m, m->w, t, direction * interleave_bytes(m));
	if (m->format->head_bytes)
		pass_heads(m, t->known, direction * t->n * interleave_units(m),
		           t->known ? t->s : ir_smuli(m->b, t->s, direction * interleave_units(m)));
	walk_inputs(m, t, direction);
}

/* Moves the inputs, and the sums with them, by whole columns. */
static void walk_columns(struct matmul *m, int columns)
{
	walk(m, m->x, columns * (int64_t)m->kp * (m->int8 ? 1 : 4));
	if (m->int8)
		walk(m, m->xs, columns * (int64_t)(m->kp / 2));
	walk(m, m->sum, columns * 128);
}

/* ---- the inner loop */

static ir_f load_input(struct ir *b, const struct weight_tile *t, unsigned c, unsigned k)
{
	return ir_fbcast(b, t->x, weight_input_disp(t, c, k));
}

static void dot_f32_step(struct matmul *m, const struct weight_tile *t, unsigned k)
{
	const struct weight_format *f = m->format;
	int32_t unit_disp = (int32_t)(k / f->unit_k * f->unit_bytes);
	ir_f w[WEIGHT_MAX_ACC][WEIGHT_MAX_STEP], x[MATMUL_MAX_COLUMNS][WEIGHT_MAX_STEP];
	/* The fewer of the two wait in registers; formats with long steps keep theirs for the weights. */
	bool inputs_first = t->columns <= t->vectors, inputs_again = inputs_first && f->step > 2;

	for (unsigned c = 0; inputs_first && !inputs_again && c < t->columns; c++)
		for (unsigned i = 0; i < f->step; i++)
			x[c][i] = load_input(m->b, t, c, k + i);
	for (unsigned v = 0; v < t->vectors; v++) {
		weight_load(f, m->b, &t->w, unit_disp, t->first_vector + v, k % f->unit_k / f->step, w[v]);
		for (unsigned i = 0; inputs_first && i < f->step; i++)
			for (unsigned c = 0; c < t->columns; c++)
				weight_add_product(m->b, t, v, c, w[v][i],
				                   inputs_again ? load_input(m->b, t, c, k + i) : x[c][i]);
	}
	for (unsigned i = 0; !inputs_first && i < f->step; i++)
		for (unsigned c = 0; c < t->columns; c++) {
			ir_f in = load_input(m->b, t, c, k + i);
			for (unsigned v = 0; v < t->vectors; v++)
				weight_add_product(m->b, t, v, c, w[v][i], in);
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

static void dot_turn(struct matmul *m, const struct weight_tile *t)
{
	const struct weight_format *f = m->format;

	ir_a from = m->ahead.r ? ir_aadd(m->b, m->w, m->ahead) : m->w;
	ask_for_lines(m, from);
	for (unsigned k = 0; k < m->iteration_k; k += m->int8 ? f->unit_k : f->step)
		if (m->int8)
			weight_dot_int8(f, m->b, t, (int32_t)(k / f->unit_k * f->unit_bytes), k / f->unit_k);
		else
			dot_f32_step(m, t, k);
}

static void load_head(const struct matmul *m, const struct weight_tile *t, struct weight_head *head)
{
	for (unsigned i = 0; i < m->format->head_bytes / 64; i++)
		for (unsigned v = t->first_vector; v < t->first_vector + t->vectors; v++)
			head->half[i][v] = weight_head_half(m->b, &t->w, (int32_t)(i * 64), v);
}

/* Leaves the addresses at the end in k. Where heads come is known when they begin spans; else the units are counted. */
static void dot_turns(struct matmul *m, const struct weight_tile *t, const struct turns *turns)
{
	struct ir *b = m->b;
	static const struct turns one = { .known = true, .n = 1 };

	if (!m->aligned) {
		ir_loop(b, turns->known ? ir_sconst(b, turns->n) : turns->s);
		dot_turn(m, t);
		walk_k(m, &one, 1);
		ir_endloop(b);
		return;
	}
	assert(turns->known);
	ir_loop(b, ir_sconst(b, turns->n * interleave_units(m) / m->format->head_units));
	struct weight_head head;
	struct weight_tile with_head = *t;
	if (m->keeps_heads && m->streams == 1) {
		load_head(m, t, &head);
		with_head.w.in_registers = &head;
		t = &with_head;
	}
	ir_loop(b, ir_sconst(b, m->format->head_units / interleave_units(m)));
	dot_turn(m, t);
	walk(m, m->w, interleave_bytes(m));
	walk_inputs(m, &one, 1);
	ir_endloop(b);
	pass_heads(m, true, m->format->head_units, m->unit);
	ir_endloop(b);
}

static int64_t span_bytes(const struct matmul *m) { return (int64_t)m->matrices * m->columns * 128; }

/* From the totals of one row block to those of the next. */
static int64_t stream_sums(const struct matmul *m) { return m->spans * span_bytes(m); }

/* One part over `turns` turns: `columns` columns from m->x, row vectors from `vector` on. Leaves the addresses at the
 * end in k. */
static void dot_part(struct matmul *m, unsigned columns, unsigned vector, const struct turns *turns)
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
		.by_pairs = m->by_pairs
	};
	unsigned of_stream = m->part.vectors * columns, n = of_stream * m->streams;
	bool parked = m->streams > 1 && matmul_accumulators_in_memory(&m->shape);
	int32_t disp[WEIGHT_MAX_ACC];

	t.x_column = (int32_t)(m->kp * (m->int8 ? 1u : 4u));
	t.x_step = 4;
	t.xs_column = (int32_t)(m->kp / 2);
	t.xs_step = sizeof(struct activation_block);
	for (unsigned i = 0; i < n; i++) {
		disp[i] = (int32_t)(i / of_stream * stream_sums(m) + i % columns * 128 +
		                    (vector + i % of_stream / columns) * b->lanes * 4);
		if (!parked)
			t.acc[i] = ir_var_f(b, m->int8 ? ir_fload(b, m->sum, disp[i], 0) : ir_fconst(b, 0.0f));
	}
	if (parked) {
		t.parked = m->sum;
		t.parked_at = disp;
		t.sums = t.vectors;
	}
	dot_turns(m, &t, turns);
	for (unsigned i = 0; i < n && !parked; i++)
		ir_fstore(b, m->sum, m->int8 ? t.acc[i] : ir_fadd(b, ir_fload(b, m->sum, disp[i], 0), t.acc[i]),
		          disp[i], 0);
}

/* All row vectors by `columns` columns from m->x; leaves the addresses as they were. */
static void dot_vectors(struct matmul *m, unsigned columns, const struct turns *turns)
{
	for (unsigned v = 0; v < m->row_vectors; v += m->part.vectors) {
		dot_part(m, columns, v, turns);
		walk_k(m, turns, -1);
		m->lines_at += m->lines * MATMUL_LINE;
	}
}

/* A segment in several parts. Each part asks for its share of the next segment's lines. */
static void dot_parts(struct matmul *m, const struct turns *turns)
{
	unsigned full = m->columns / m->part.columns, rest = m->columns % m->part.columns,
		 groups = m->row_vectors / m->part.vectors;
	/* Which column part this is takes a register to say. Kernels that count heads have none left even for a loop
	 * over column parts; int8 kernels that count their turns, and those with heads, have none for the number and
	 * let every part ask. */
	bool unrolled = m->format->head_bytes && !m->aligned;
	bool by_columns = full > 1 && (unrolled || ((turns->known || !m->int8) && !m->format->head_bytes));
	unsigned shares = by_columns ? (full + (rest > 0)) * groups : groups;
	int64_t next = (int64_t)NUMERICS_SEGMENT / m->format->unit_k * m->format->unit_bytes,
		lines = interleave_bytes(m) / MATMUL_LINE;

	m->lines = (lines + shares - 1) / shares;
	m->lines_at = next;
	if (full > 1 && !unrolled) {
		ir_s number = ir_loop(m->b, ir_sconst(m->b, full));
		if (by_columns)
			m->ahead = ir_smuli(m->b, number, groups * m->lines * MATMUL_LINE);
	}
	for (unsigned i = 0; i < (unrolled ? full : 1); i++) {
		dot_vectors(m, m->part.columns, turns);
		if (full > 1 || rest)
			walk_columns(m, (int)m->part.columns);
	}
	if (full > 1 && !unrolled)
		ir_endloop(m->b);
	m->ahead.r = 0;
	m->lines_at = next + (by_columns ? full * groups * m->lines * MATMUL_LINE : 0);
	if (rest)
		dot_vectors(m, rest, turns);
	if (full > 1 || rest)
		walk_columns(m, -(int)(full * m->part.columns));
	walk_k(m, turns, 1);
}

static void dot_segment(struct matmul *m, const struct turns *turns)
{
	if (single_part(m)) {
		/* A head ahead shifts what follows it. */
		m->lines = (interleave_bytes(m) + m->format->head_bytes + MATMUL_LINE - 1) / MATMUL_LINE;
		m->lines_at = m->schedule.prefetch_distance;
		dot_part(m, m->columns, 0, turns);
	} else {
		dot_parts(m, turns);
	}
}

static void clear_sums(struct matmul *m, ir_a from)
{
	struct ir *b = m->b;
	ir_a at = ir_var_a(b, from);

	ir_loop(b, ir_sconst(b, m->spans * m->streams));
	for (unsigned i = 0; i < m->columns * m->row_vectors; i++)
		ir_fstore(b, at, ir_fconst(b, 0.0f), (int32_t)(i * b->lanes * 4), 0);
	walk(m, at, span_bytes(m));
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
	struct turns turns = { .known = segments == 1 || span % segment == 0, .n = span < segment ? span : segment };

	clear_sums(m, from);
	ir_s number = ir_loop(b, ir_sconst(b, m->spans * segments)),
	     in_span = segments > 1 ? ir_sdivi(b, number, segments) : number;
	m->sum = ir_var_a(b, ir_aadd(b, from, ir_smuli(b, in_span, span_bytes(m))));
	if (!turns.known) {
		ir_s done = ir_smuli(b, ir_ssub(b, number, ir_smuli(b, in_span, segments)), segment);
		turns.s = ir_smin(b, ir_ssub(b, ir_sconst(b, span), done), ir_sconst(b, segment));
	}
	dot_segment(m, &turns);
	ir_endloop(b);
}

/* Column `tile * columns` of a buffer with column_bytes a column. */
static ir_a locate(const struct matmul *m, unsigned slot, ir_s tile, int64_t column_bytes)
{
	return ir_aadd(m->b, load_arg(m, slot), ir_smuli(m->b, tile, m->columns * column_bytes));
}

/* ---- the outer loops */

/* All spans of one matrix, from inputs of column tile `tile`. */
static void dot_matrix(struct matmul *m, unsigned matrix, ir_s block, ir_s tile)
{
	struct ir *b = m->b;
	ir_s before = ir_smuli(b, block, m->block_bytes * m->matrices);

	m->w = ir_var_a(b, ir_aadd(b, load_arg(m, matrix ? MATMUL_W2 : MATMUL_W), before));
	if (m->format->head_bytes) {
		m->head = ir_var_a(b, m->w);
		walk(m, m->w, m->format->head_bytes);
		if (!m->aligned)
			m->unit = ir_var_s(b, ir_sconst(b, 0));
	}
	m->x = ir_var_a(b, locate(m, MATMUL_X, tile, (int64_t)m->kp * (m->int8 ? 1 : 4)));
	if (m->int8)
		m->xs = ir_var_a(b, locate(m, MATMUL_XS, tile, m->kp / 2));
	dot_spans(m, ir_aaddi(b, m->sums, (int64_t)matrix * m->columns * 128));
}

/* `streams` row blocks from `block` on, and goes on to the next. */
static void emit_streams(struct matmul *m, ir_s block, unsigned streams)
{
	struct ir *b = m->b;

	m->streams = streams;
	ir_s tile = ir_loop(b, ir_sload64(b, m->arg, MATMUL_TILES * 8));
	for (unsigned matrix = 0; matrix < m->matrices; matrix++)
		dot_matrix(m, matrix, block, tile);
	for (unsigned s = 0; s < streams; s++) {
		ir_a sums = s ? ir_aaddi(b, m->sums, s * stream_sums(m)) : m->sums;
		ir_s number = s ? ir_saddi(b, block, s) : block;
		matmul_finish(&(struct matmul_results){ b, m->key, m->arg, sums, m->spans, m->matrices, m->columns },
		              number, tile);
	}
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

const char *matmul_refuse(const struct key *key, const struct weight_format *format, int64_t block_bytes,
                          unsigned columns, unsigned row_blocks)
{
	bool int8 = key->activation == key_type(DTYPE_Q8_0);

	if (!format)
		return "this weight format is not computed with";
	if (key->activation != key_type(DTYPE_F32) && !(int8 && weight_has_int8(format)))
		return "this activation format is not computed with";
	if (key->rows == 0 || key->k == 0 || key->k % dtype_table[format->type].block != 0)
		return "rows and k must be positive, k a multiple of the weights' block";
	if (key->tile_n == 0 || key->tile_n > columns)
		return "a column tile has at least one column, and not so many";
	if (key->row_blocks == 0 || key->row_blocks > row_blocks)
		return "a unit has at least one row block, and not so many";
	if (block_bytes > INT32_MAX / 2 || numerics_pad(key->k) * 4 * columns > INT32_MAX / 2)
		return "k is too large";
	if (numerics_pad(key->rows) * 4 * columns > INT32_MAX)
		return "there are too many rows";
	return matmul_refuse_epilogue(key);
}

unsigned template_tile_n(const struct target *target)
{
	return target->lane_bytes ? TEMPLATE_MAX_COLUMNS : MATMUL_MAX_COLUMNS;
}

bool matmul_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	if ((key->flags & KEY_MMA || target->lane_bytes) && key->schedule)
		return build_refuse(key, err, "there is one schedule for cards");
	if (key->flags & KEY_MMA)
		return matmul_mma_build(b, key, target, err);
	if (key->flags & KEY_WIDE)
		return matmul_wide_build(b, key, target, err);
	if (target->lane_bytes)
		return matmul_wave_build(b, key, target, err);
	struct matmul m = { .b = b,
		            .key = key,
		            .has_vnni = target->has_vnni,
		            .has_bsel = target->has_bsel,
		            .row_vectors = math_parts(b) };

	m.format = key->weight ? weight_format_find(key_dtype(key->weight)) : NULL;
	m.int8 = key->activation == key_type(DTYPE_Q8_0);
	m.kp = (uint32_t)numerics_pad(key->k);
	m.rows_padded = (uint32_t)numerics_pad(key->rows);
	m.blocks = m.rows_padded / 32;
	if (m.format)
		m.block_bytes = (int64_t)weight_run_bytes(m.format, m.kp);
	const char *why = matmul_refuse(key, m.format, m.block_bytes, MATMUL_MAX_COLUMNS, 2);
	if (why)
		return build_refuse(key, err, why);

	if ((why = matmul_schedule(key, target, &m.schedule)))
		return build_refuse(key, err, why);

	m.shape = matmul_shape(key, target);
	m.columns = key->tile_n;
	m.keeps_heads = m.columns == 1 && target->vector_regs >= 32;
	m.by_pairs = m.keeps_heads && m.int8 && m.has_vnni && m.has_bsel && weight_has_pairs(m.format);
	m.spans = m.shape.spans;
	m.span_k = m.shape.span_k;
	m.aligned = m.shape.aligned;
	m.matrices = m.shape.matrices;
	m.iteration_k = m.schedule.unroll_k;
	m.part = matmul_parts(&m.shape, m.schedule.tile_n);
	m.stream_bytes = m.block_bytes * m.matrices;
	m.arg = ir_arg(b);
	m.sums = ir_local(b, m.schedule.row_blocks * stream_sums(&m));
	emit_blocks(&m);
	return true;
}
