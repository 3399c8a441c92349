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
 * its own, and adds their totals as the tree has it. Totals that wait for their turn are in registers, as far as these
 * suffice: of waves with 64 columns those of single spans, while those of two lie in the wave's own bytes; those of four
 * lie where the tile's totals will be. An editor keeps every barrier one that all waves run equally often.
 */
#include <stddef.h>

#include "kernels-templates/formats/weight_pieces.h"
#include "kernels-templates/matmul/matmul.h"

enum {
	SIDE = 32 /* rows of a wave */,
	HALVES = SIDE / IR_TILE,
	MOST_TILES = 4 /* of 16 columns, of a wave */,
	LEVELS = 3 /* of totals that wait */,
	STEP_BYTES = IR_ROW_BYTES /* of a row or a column */,
	STEP_UNITS = 4 /* of 32 bytes */,
	PLANE = SIDE * IR_PIECE_BYTES /* a piece of the rows of a row block */,
	BLOCK_BYTES = SIDE * STEP_BYTES,
	HALF_UNIT = PIECES_PERIOD_UNITS / 2,
	COLUMN_NUMBERS = STEP_UNITS * 4 /* bytes of a column's scales, of a row's */,
	ROW_NUMBERS = STEP_UNITS * 2
};

struct piped {
	struct matmul_group group;
	struct ir *b;
	enum dtype activation;
	const struct weight_format *format;
	struct matmul_mma_shape shape;
	uint32_t kp;
	int64_t block_bytes;
	unsigned spans /* of a half */, span_units /* of 32 k's */, span_steps, tiles;

	/* This wave's: its half of the spans, and its number there; which row block and which columns it multiplies. */
	ir_s half, number, row, side;
	ir_a ring, own;
	/* What lanes add: of four columns of activations, turned as the first four of eight are; of the scales of eight
	 * columns. */
	ir_i columns, scales;

	/* A tile's: what is copied next, how many steps are left, and into which stage; which one is multiplied next. */
	ir_a w, x, xs;
	ir_s unit, left, to, from;
	ir_t acc[MOST_TILES][HALVES], waiting[LEVELS][MOST_TILES][HALVES];
};

static bool is_int8(const struct piped *m) { return m->activation == DTYPE_Q8_0; }
static int64_t column_bytes(const struct piped *m) { return (int64_t)m->kp * (is_int8(m) ? 1 : 2); }
static ir_a plus(const struct piped *m, ir_a a, ir_s n, int64_t bytes)
{
	return ir_aadd(m->b, a, ir_smuli(m->b, n, bytes));
}

/* ---- a stage: rows as [row block][piece][row], columns as [column][piece, turned]; scales as f32 [column][unit] and
 * f16 [row block][row][unit] */

static int32_t columns_at(const struct piped *m) { return (int32_t)m->shape.row_blocks * BLOCK_BYTES; }
static int32_t column_scales_at(const struct piped *m)
{
	return columns_at(m) + (int32_t)m->shape.columns * STEP_BYTES;
}
static int32_t row_scales_at(const struct piped *m)
{
	return column_scales_at(m) + (int32_t)m->shape.columns * COLUMN_NUMBERS;
}
static int32_t stage_bytes(const struct piped *m)
{
	return is_int8(m) ? row_scales_at(m) + (int32_t)m->shape.row_blocks * SIDE * ROW_NUMBERS : column_scales_at(m);
}
static int64_t ring_bytes(const struct piped *m) { return (int64_t)m->shape.stages * stage_bytes(m); }

static ir_s next_stage(const struct piped *m, ir_s stage)
{
	struct ir *b = m->b;
	ir_s next = ir_saddi(b, stage, stage_bytes(m));

	if (m->shape.stages == 2)
		return ir_ssub(b, ir_sconst(b, stage_bytes(m)), stage);
	return ir_ssub(b, next, ir_smuli(b, ir_sdivi(b, next, ring_bytes(m)), ring_bytes(m)));
}

/* ---- copies */

static unsigned waves_of_half(const struct piped *m) { return m->group.waves / m->shape.halves; }
static unsigned columns_of_wave(const struct piped *m) { return m->shape.columns / waves_of_half(m); }

enum { TURN_LAST = 4 * IR_PIECE_BYTES /* the last four of eight columns lie so else */ };

static void make_lanes(struct piped *m)
{
	struct ir *b = m->b;
	ir_i lane = ir_ilane(b), column = ir_ishr(b, lane, 3),
	     piece = ir_ixor(b, ir_iand(b, lane, ir_iconst(b, 7)), column);

	m->columns = ir_iadd(b, ir_imul(b, column, ir_iconst(b, (int32_t)column_bytes(m))), ir_ishl(b, piece, 4));
	if (!is_int8(m))
		return;
	ir_i block = ir_iand(b, lane, ir_iconst(b, STEP_UNITS - 1)),
	     eighth = ir_imul(b, ir_ishr(b, lane, 2), ir_iconst(b, (int32_t)(m->kp / 2)));
	m->scales = ir_iadd(b, eighth, ir_ishl(b, block, 4));
}

static ir_i pieces(const struct piped *m) { return ir_ishl(m->b, ir_ilane(m->b), 4); }

/* Of a row block; two waves have half of the pieces each. */
static void copy_rows(const struct piped *m, ir_a to, ir_a from)
{
	struct ir *b = m->b;
	ir_s block = ir_sshri(b, m->number, 1), odd = ir_sandi(b, m->number, 1);
	ir_i lanes = pieces(m);

	to = plus(m, plus(m, to, block, BLOCK_BYTES), odd, BLOCK_BYTES / 2);
	from = plus(m, from, odd, BLOCK_BYTES / 2);
	for (unsigned i = 0; i < BLOCK_BYTES / 2 / PLANE; i++)
		ir_copy_at(b, ir_aaddi(b, to, i * PLANE), ir_aaddi(b, from, i * PLANE), lanes, IR_PIECE_BYTES);
}

/* period: which of the span's this is. The scales of a whole one are a piece of each row, those of a shorter one, of
 * four units, half a piece. */
static void copy_row_scales(const struct piped *m, ir_a to, ir_s period)
{
	struct ir *b = m->b;
	const int64_t whole = PIECES_PERIOD_UNITS * (int64_t)PLANE * 2;
	const unsigned periods = m->span_units / PIECES_PERIOD_UNITS, rest = m->span_units % PIECES_PERIOD_UNITS;
	ir_s odd = ir_sandi(b, m->number, 1), block = ir_sshri(b, m->number, 1),
	     in_row = ir_sshli(b, ir_sandi(b, m->unit, STEP_UNITS), 1);
	ir_a from = ir_aadd(b, ir_aaddi(b, m->w, whole), in_row);
	ir_i lanes = pieces(m);

	from = plus(m, from, period, PIECES_PERIOD_UNITS * (int64_t)weight_pieces_unit(m->format));
	if (rest) {
		ir_s is_rest = periods ? ir_sdivi(b, period, periods) : ir_sconst(b, 1);
		from = plus(m, from, is_rest, -whole / 2);
		lanes = ir_imul(
			b, ir_ilane(b),
			ir_isplat(b, ir_ssub(b, ir_sconst(b, IR_PIECE_BYTES), ir_smuli(b, is_rest, ROW_NUMBERS))));
	}
	to = plus(m, ir_aaddi(b, to, row_scales_at(m)), block, SIDE * ROW_NUMBERS);
	ir_loop(b, ir_ssub(b, ir_sconst(b, 1), odd));
	ir_copy_at(b, to, from, lanes, ROW_NUMBERS);
	ir_endloop(b);
}

static void copy_columns(const struct piped *m, ir_a to)
{
	struct ir *b = m->b;
	const unsigned n = columns_of_wave(m);
	ir_a place = plus(m, ir_aaddi(b, to, columns_at(m)), m->number, n * STEP_BYTES), from = ir_aaddi(b, m->x, 0);
	ir_i last = ir_ixor(b, m->columns, ir_iconst(b, TURN_LAST));

	for (unsigned i = 0; i < n / 4; i++)
		ir_copy_at(b, ir_aaddi(b, place, i * 4 * STEP_BYTES), ir_aaddi(b, from, i * 4 * column_bytes(m)),
		           i % 2 ? last : m->columns, IR_PIECE_BYTES);
}

static void copy_column_scales(const struct piped *m, ir_a to)
{
	struct ir *b = m->b;
	const unsigned n = columns_of_wave(m);

	to = plus(m, ir_aaddi(b, to, column_scales_at(m)), m->number, n * COLUMN_NUMBERS);
	for (unsigned i = 0; i < n / 8; i++)
		ir_copy_at(b, ir_aaddi(b, to, i * 8 * COLUMN_NUMBERS), ir_aaddi(b, m->xs, i * 8 * (int64_t)(m->kp / 2)),
		           m->scales, 4);
}

/* Behind the step. */
static void walk(const struct piped *m)
{
	struct ir *b = m->b;

	ir_set_a(b, m->x, ir_aaddi(b, m->x, STEP_BYTES));
	ir_set_s(b, m->left, ir_saddi(b, m->left, -1));
	ir_set_s(b, m->to, next_stage(m, m->to));
	if (!is_int8(m)) {
		ir_set_a(b, m->w, ir_aaddi(b, m->w, BLOCK_BYTES));
		return;
	}
	ir_s unit = ir_saddi(b, m->unit, STEP_UNITS), over = ir_sdivi(b, unit, m->span_units);
	ir_set_a(b, m->xs, ir_aaddi(b, m->xs, STEP_UNITS * sizeof(struct activation_block)));
	ir_set_a(b, m->w, plus(m, m->w, over, m->span_units * (int64_t)weight_pieces_unit(m->format)));
	ir_set_s(b, m->unit, ir_ssub(b, unit, ir_smuli(b, over, m->span_units)));
}

/* Copies some of what the next step needs, if there is one. The last part counts as copies, either way. */
enum { COPY_COLUMNS = 1, COPY_ROWS = 2, COPY_SCALES = 4, COPY_LAST = 8, COPY_ALL = 15 };
static void copy_parts(const struct piped *m, unsigned parts)
{
	struct ir *b = m->b;

	ir_loop(b, ir_smin(b, m->left, ir_sconst(b, 1)));
	ir_a to = ir_aadd(b, m->ring, m->to), from = m->w;
	ir_s period = { 0 };
	if (is_int8(m) && parts & (COPY_ROWS | COPY_SCALES))
		period = ir_sshri(b, m->unit, 3);
	if (is_int8(m) && parts & COPY_ROWS) {
		from = plus(m, from, period, PIECES_PERIOD_UNITS * (int64_t)weight_pieces_unit(m->format));
		from = plus(m, from, ir_sandi(b, m->unit, STEP_UNITS), 2 * PLANE);
	}
	if (parts & COPY_COLUMNS)
		copy_columns(m, to);
	if (parts & COPY_ROWS)
		copy_rows(m, to, from);
	if (is_int8(m) && parts & COPY_SCALES) {
		copy_column_scales(m, to);
		copy_row_scales(m, to, period);
	}
	if (parts & COPY_LAST)
		walk(m);
	ir_endloop(b);
	if (parts & COPY_LAST)
		ir_copies(b);
}

/* ---- products */

/* What a wave multiplies of a stage. */
struct factors {
	ir_a rows, columns, dw, dx;
};

static ir_t add(const struct piped *m, ir_o column, ir_o row, ir_t dx, ir_t dw, ir_t acc)
{
	struct ir *b = m->b;

	if (m->activation == DTYPE_F16)
		return ir_tdot_f16(b, column, row, acc);
	if (m->activation == DTYPE_BF16)
		return ir_tdot_bf16(b, column, row, acc);
	ir_t sum = ir_tdot_i8(b, column, row, ir_tconst(b, 0)), by = ir_tmul(b, dw, dx), total = ir_ti2f(b, sum);
	return ir_tfma(b, by, total, acc);
}

static void multiply_unit(const struct piped *m, const struct factors *f, int32_t u)
{
	struct ir *b = m->b;
	ir_o row[HALVES];
	ir_t dw[HALVES] = { { 0 } }, dx = { 0 };

	for (int32_t h = 0; h < HALVES; h++) {
		row[h] = ir_oload(b, f->rows, u * 2 * PLANE + h * IR_TILE * IR_PIECE_BYTES, IR_PIECE_BYTES, SIDE);
		if (is_int8(m))
			dw[h] = ir_tload_h(b, f->dw, h * IR_TILE * ROW_NUMBERS + u * 2, 0, ROW_NUMBERS);
	}
	for (unsigned p = 0; p < m->tiles; p++) {
		ir_o column = ir_oload_turned(b, f->columns, (int32_t)p * IR_TILE * STEP_BYTES, 2 * (unsigned)u);
		if (is_int8(m))
			dx = ir_tload(b, f->dx, (int32_t)p * IR_TILE * COLUMN_NUMBERS + u * 4, COLUMN_NUMBERS, 0);
		for (unsigned h = 0; h < HALVES; h++)
			ir_set_t(b, m->acc[p][h], add(m, column, row[h], dx, dw[h], m->acc[p][h]));
	}
}

/* Units whose instructions an assembler may mix as it likes: with more of them it begins so many products at once that
 * registers do not suffice. Others are a loop each, which has one turn. */
static unsigned units_together(const struct piped *m)
{
	return !is_int8(m) ? STEP_UNITS : m->tiles == MOST_TILES ? 1 : STEP_UNITS / 2;
}

/* Which copies begin in front of a unit: few at once, for they are in the way of other loads of shared bytes. */
static unsigned parts_at(const struct piped *m, unsigned unit)
{
	static const uint8_t one_by_one[STEP_UNITS] = { COPY_COLUMNS, COPY_ROWS, COPY_SCALES | COPY_LAST };

	switch (units_together(m)) {
	case 1: return one_by_one[unit];
	case 2: return unit ? COPY_SCALES | COPY_LAST : COPY_COLUMNS | COPY_ROWS;
	default: return COPY_ALL;
	}
}

static void do_step(const struct piped *m)
{
	struct ir *b = m->b;
	const int64_t columns = (int64_t)m->tiles * IR_TILE;
	struct factors f = { 0 };

	ir_copied(b, m->shape.stages - 2);
	ir_barrier(b);
	ir_a at = ir_aadd(b, m->ring, m->from);
	f.rows = plus(m, at, m->row, BLOCK_BYTES);
	f.columns = plus(m, ir_aaddi(b, at, columns_at(m)), m->side, columns * STEP_BYTES);
	if (is_int8(m)) {
		f.dx = plus(m, ir_aaddi(b, at, column_scales_at(m)), m->side, columns * COLUMN_NUMBERS);
		f.dw = plus(m, ir_aaddi(b, at, row_scales_at(m)), m->row, SIDE * ROW_NUMBERS);
	}
	for (unsigned u = 0; u < STEP_UNITS; u += units_together(m)) {
		const unsigned parts = parts_at(m, u);
		if (parts)
			copy_parts(m, parts);
		else
			ir_loop(b, ir_smin(b, ir_saddi(b, m->left, 1), ir_sconst(b, 1))); /* one turn */
		for (unsigned i = 0; i < units_together(m); i++)
			multiply_unit(m, &f, (int32_t)(u + i));
		if (!parts)
			ir_endloop(b);
	}
	ir_set_s(b, m->from, next_stage(m, m->from));
}

/* ---- totals */

/* Totals in memory that wait: tile by tile, in more banks than rows of all would take. */
enum { WAITING_ROW = IR_TILE * 4 };

static int32_t waiting_at(unsigned p, unsigned h) { return (int32_t)((p * HALVES + h) * IR_TILE * WAITING_ROW); }

static bool in_registers(const struct piped *m, unsigned level)
{
	return level < (m->tiles == MOST_TILES ? 1u : is_int8(m) ? 2u : 3u);
}

/* Where this wave's totals go: [row block][half][matrix][column][32]. */
static ir_a totals_of(const struct piped *m)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const int64_t block = (int64_t)m->shape.columns * SIDE * 4;
	ir_s row = m->row;
	ir_a at = plus(m, g->sums, m->half, g->matrices * block);

	if (g->matrices > 1) {
		at = plus(m, at, ir_sandi(b, row, 1), block);
		row = ir_sshri(b, row, 1);
	}
	at = plus(m, at, row, m->shape.halves * g->matrices * block);
	return plus(m, at, m->side, (int64_t)m->tiles * IR_TILE * SIDE * 4);
}

static ir_a waiting_place(const struct piped *m, unsigned level)
{
	return in_registers(m, level) || level == 1 ? m->own : totals_of(m);
}

static void put_by(const struct piped *m, unsigned level)
{
	ir_a to = waiting_place(m, level);

	for (unsigned p = 0; p < m->tiles; p++)
		for (unsigned h = 0; h < HALVES; h++)
			if (in_registers(m, level))
				ir_set_t(m->b, m->waiting[level][p][h], m->acc[p][h]);
			else
				ir_tstore(m->b, to, m->acc[p][h], waiting_at(p, h), WAITING_ROW, 4);
}

static void add_waiting(const struct piped *m, unsigned level)
{
	struct ir *b = m->b;
	ir_a from = waiting_place(m, level);

	for (unsigned p = 0; p < m->tiles; p++)
		for (unsigned h = 0; h < HALVES; h++) {
			ir_t first = m->waiting[level][p][h];
			if (!in_registers(m, level))
				first = ir_tload(b, from, waiting_at(p, h), WAITING_ROW, 4);
			ir_set_t(b, m->acc[p][h], ir_tfma(b, m->acc[p][h], ir_tconst(b, 1), first));
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

/* The row block that this wave copies a part of. */
static ir_s row_block(const struct piped *m, ir_s base, ir_s blocks)
{
	struct ir *b = m->b;
	ir_s number = ir_sshri(b, m->number, 1), last = ir_saddi(b, blocks, -1);

	if (m->group.matrices == 1)
		return ir_sadd(b, base, ir_smin(b, number, last));
	ir_s pair = ir_sadd(b, base, ir_smin(b, ir_sshri(b, number, 1), last));
	return ir_sadd(b, ir_sshli(b, pair, 1), ir_sandi(b, number, 1));
}

static void begin_walk(struct piped *m, ir_s base, ir_s blocks, ir_s tile)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	const int64_t column = column_bytes(m), numbers = m->kp / 2;
	ir_a w = plus(m, matmul_group_arg(g, MATMUL_W), row_block(m, base, blocks), m->block_bytes),
	     x = plus(m, matmul_group_arg(g, MATMUL_X), tile, m->shape.columns * column);

	w = plus(m, w, m->half, m->spans * m->span_units * (int64_t)weight_pieces_unit(m->format));
	x = plus(m, plus(m, x, m->number, columns_of_wave(m) * column), m->half, column / m->shape.halves);
	m->w = ir_var_a(b, w);
	m->x = ir_var_a(b, x);
	m->left = ir_var_s(b, ir_sconst(b, m->spans * m->span_steps));
	m->to = ir_var_s(b, ir_sconst(b, 0));
	m->from = ir_var_s(b, ir_sconst(b, 0));
	if (!is_int8(m))
		return;
	m->unit = ir_var_s(b, ir_sconst(b, 0));
	ir_a xs = plus(m, matmul_group_arg(g, MATMUL_XS), tile, m->shape.columns * numbers);
	xs = plus(m, xs, m->number, columns_of_wave(m) * numbers);
	xs = plus(m, ir_aaddi(b, xs, offsetof(struct activation_block, d)), m->half, numbers / m->shape.halves);
	m->xs = ir_var_a(b, xs);
}

static void make_sums(struct piped *m)
{
	struct ir *b = m->b;

	for (unsigned p = 0; p < m->tiles; p++)
		for (unsigned h = 0; h < HALVES; h++) {
			m->acc[p][h] = ir_var_t(b, ir_tconst(b, 0));
			for (unsigned level = 0; m->spans >> level > 1; level++)
				if (in_registers(m, level))
					m->waiting[level][p][h] = ir_var_t(b, ir_tconst(b, 0));
		}
}

static void do_tile(void *context, ir_s base, ir_s blocks, ir_s tile)
{
	struct piped *m = context;
	struct ir *b = m->b;

	begin_walk(m, base, blocks, tile);
	make_sums(m);
	ir_loop(b, ir_sconst(b, m->shape.stages - 1));
	copy_parts(m, COPY_ALL);
	ir_endloop(b);
	ir_s i = ir_loop(b, ir_sconst(b, m->spans));
	for (unsigned p = 0; p < m->tiles; p++)
		for (unsigned h = 0; h < HALVES; h++)
			ir_set_t(b, m->acc[p][h], ir_tconst(b, 0));
	ir_loop(b, ir_sconst(b, m->span_steps));
	do_step(m);
	ir_endloop(b);
	join_totals(m, i, 0);
	ir_endloop(b);
	ir_a totals = totals_of(m);
	for (unsigned p = 0; p < m->tiles; p++)
		for (unsigned h = 0; h < HALVES; h++)
			ir_tstore(b, totals, m->acc[p][h], (int32_t)(p * IR_TILE * SIDE * 4 + h * IR_TILE * 4),
			          SIDE * 4, 4);
}

/* ---- keys */

/* What a launch of 512 tokens takes on a card with 132 multiprocessors, as many turns as fill it: from so many row
 * blocks on it has enough tiles of 128 rows and 64 columns. */
enum { MULTIPROCESSORS = 132, TOKENS = 512, MANY_BLOCKS = 64 };

static uint64_t turns(uint64_t blocks, unsigned columns)
{
	return ((blocks + 3) / 4 * (TOKENS / columns) + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
}

bool matmul_mma_pipes(const struct target *target, const struct weight_format *f, uint64_t k)
{
	const unsigned spans = numerics_spans(k), units = (unsigned)(numerics_pad(k) / spans / PIECES_UNIT_K);

	if (!f || !target->local_operands || target->shared_bytes <= TARGET_SHARED_BYTES * 4 || spans < 2)
		return false;
	return f->type == DTYPE_Q8_0 ? units % STEP_UNITS == 0
	                             : (f->type == DTYPE_F16 || f->type == DTYPE_BF16) && units % 2 == 0;
}

static uint64_t row_blocks_of(uint64_t rows, uint32_t flags)
{
	return numerics_pad(rows) / SIDE * (flags & KEY_PAIR ? 2 : 1);
}

bool matmul_mma_widens(const struct target *target, const struct weight_format *f, uint64_t rows, uint64_t k,
                       uint32_t flags)
{
	const uint64_t blocks = row_blocks_of(rows, flags);

	return matmul_mma_pipes(target, f, k) && blocks >= MANY_BLOCKS &&
	       2 * turns(blocks, TEMPLATE_MMA_WIDE) <= turns(blocks, TEMPLATE_MMA_SHARED);
}

struct matmul_mma_shape matmul_mma_shape(const struct target *target, const struct key *key)
{
	const struct weight_format *f = weight_format_find(key_dtype(key->weight));
	struct matmul_mma_shape s = { .row_blocks = 2, .columns = key->tile_n, .halves = 1 };

	if (key->tile_n < TEMPLATE_MMA_SHARED || !matmul_mma_pipes(target, f, key->k))
		return s;
	const bool wide = key->tile_n == TEMPLATE_MMA_WIDE;
	if (wide || row_blocks_of(key->rows, key->flags) >= MANY_BLOCKS)
		s.row_blocks = 4;
	else
		s.halves = 2;
	s.stages = !wide ? 4 : f->type == DTYPE_Q8_0 ? 2 : 3;
	return s;
}

void matmul_mma_piped_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct piped m = { .group = { .b = b,
		                      .key = key,
		                      .target = target,
		                      .waves = target->waves,
		                      .parts = template_matmul_parts(target, key),
		                      .tile = do_tile,
		                      .context = &m },
		           .b = b,
		           .activation = key_dtype(key->activation),
		           .format = weight_format_find(key_dtype(key->weight)),
		           .shape = matmul_mma_shape(target, key),
		           .kp = (uint32_t)numerics_pad(key->k) };

	m.group.spans = m.shape.halves;
	m.block_bytes = (int64_t)weight_pieces_bytes(m.format, m.kp);
	m.spans = numerics_spans(key->k) / m.shape.halves;
	m.span_units = m.kp / numerics_spans(key->k) / PIECES_UNIT_K;
	m.span_steps = m.span_units * (is_int8(&m) ? 1 : 2) / STEP_UNITS;
	m.tiles = m.shape.columns / 2 / IR_TILE;
	if (m.tiles == MOST_TILES && m.spans > 2)
		m.own = ir_local(b, SIDE * MOST_TILES * IR_TILE * 4);
	ir_a rings = ir_shared(b, m.shape.halves * ring_bytes(&m));
	ir_s wave = ir_wave(b);
	m.half = ir_sdivi(b, wave, waves_of_half(&m));
	m.number = ir_sandi(b, wave, (int32_t)waves_of_half(&m) - 1);
	m.row = ir_sshri(b, m.number, 1);
	m.side = ir_sandi(b, m.number, 1);
	m.ring = plus(&m, rings, m.half, ring_bytes(&m));
	make_lanes(&m);
	matmul_group_build(&m.group);
}
