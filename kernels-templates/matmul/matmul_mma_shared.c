/* kernels-templates/matmul/matmul_mma_shared.c - matmul for many columns by products of matrices, whose operands the
 * waves of a group share: prompts.
 *
 * Owns: a tile of 64 columns of activations and 64 rows of weights: two row blocks, or one of each of two matrices. A
 * wave has 32 of either and every second half of the spans, as the bits of its number say. All walk along k in steps of
 * 32 bytes of a column. For a step, every wave brings 16 columns and 16 rows into shared bytes for all of its half; a
 * step's are loaded while the one before is multiplied, and lie in the other of two buffers. Scales come by periods of
 * 256 k's (weight_pieces.h).
 *
 * The order of sums is numerics.h rules 3, 4 and 13: a wave goes through its spans one after another, each a chain of
 * its own, and adds their totals as the tree has it; totals that wait for their turn lie in the wave's own bytes. An
 * editor keeps every barrier one that all waves run equally often.
 */
#include <stddef.h>

#include "kernels-templates/formats/weight_pieces.h"
#include "kernels-templates/matmul/matmul.h"

enum {
	SIDE = 32 /* rows or columns of a wave */,
	TILES = SIDE / IR_TILE,
	BOTH = 2 * SIDE,
	HALVES = 2 /* of the spans */,
	WAVES_OF_HALF = 4,
	PIECES_APART = BOTH + 4 /* from a piece of a strip to its next: in other banks */,
	FACTOR_BYTES = 2 * PIECES_APART * IR_PIECE_BYTES,
	BUFFER_BYTES = HALVES * 2 * FACTOR_BYTES,
	SCALES_AT = 2 * BUFFER_BYTES,
	SCALES_BYTES = BOTH * PIECES_PERIOD_UNITS * 4,
	ROWS_SCALES_AT = SCALES_AT + HALVES * SCALES_BYTES,
	UNIT_BYTES = SIDE * IR_STRIP_BYTES /* of a row block: its strips for a step */,
	TILE_BYTES = SIDE * SIDE * 4,
	MOST_WAITING = 2 /* totals */
};

struct shared {
	struct matmul_group group;
	struct ir *b;
	enum dtype activation;
	const struct weight_format *format;
	uint32_t kp;
	int64_t block_bytes;
	unsigned spans /* of a half */, span_steps;
	ir_a own;

	/* This wave's: its half, which rows and columns it multiplies, which 16 of both it brings. */
	ir_s half, row_side, column_side, brings;
	ir_i gather; /* from a column's first block to a lane's: four columns by eight blocks */

	/* A tile's, and walking. */
	ir_a x, w;       /* what is brought next */
	ir_a xs, ws;     /* scales of the period */
	ir_s left, turn; /* steps to be brought; displacement of the buffer in use */
	ir_a dx, dw;     /* the step's scales in shared bytes */
	ir_t acc[TILES][TILES];
};

static bool is_int8(const struct shared *m) { return m->activation == DTYPE_Q8_0; }
static uint32_t column_bytes(const struct shared *m) { return m->kp * (is_int8(m) ? 1 : 2); }
/* Of a row block. */
static int64_t span_bytes(const struct shared *m) { return m->block_bytes / (m->spans * HALVES); }

static ir_a plus(const struct shared *m, ir_a a, ir_s n, int64_t bytes)
{
	return ir_aadd(m->b, a, ir_smuli(m->b, n, bytes));
}

/* Of this half, in the buffer with displacement `turn`: the columns, behind them the rows. */
static ir_a buffer(const struct shared *m, ir_s turn)
{
	return plus(m, ir_aadd(m->b, m->group.sums, turn), m->half, 2 * FACTOR_BYTES);
}

/* ---- a step */

struct brought {
	ir_o x, w;
};

/* The next step's strips; behind them the addresses walk, past `behind` bytes too if that is the period's last one (1,
 * else 0). When nothing is left the same is loaded again. */
static struct brought bring(struct shared *m, ir_s last, unsigned behind)
{
	struct ir *b = m->b;
	ir_s more = ir_smin(b, m->left, ir_sconst(b, 1)), bytes = ir_sconst(b, UNIT_BYTES);

	if (behind)
		bytes = ir_saddi(b, ir_smuli(b, last, behind), UNIT_BYTES);
	ir_set_a(b, m->x, ir_aadd(b, m->x, ir_smuli(b, more, IR_STRIP_BYTES)));
	ir_set_a(b, m->w, ir_aadd(b, m->w, ir_smul(b, more, bytes)));
	ir_set_s(b, m->left, ir_ssub(b, m->left, more));
	struct brought r;
	r.x = ir_oload(b, m->x, 0, column_bytes(m), 1);
	r.w = ir_oload(b, m->w, 0, IR_PIECE_BYTES, SIDE);
	return r;
}

static void leave(const struct shared *m, const struct brought *r, ir_s turn)
{
	struct ir *b = m->b;
	ir_a at = plus(m, buffer(m, turn), m->brings, IR_TILE * IR_PIECE_BYTES);

	ir_ostore(b, at, r->x, 0, IR_PIECE_BYTES, PIECES_APART);
	ir_ostore(b, at, r->w, FACTOR_BYTES, IR_PIECE_BYTES, PIECES_APART);
}

static void multiply(struct shared *m)
{
	struct ir *b = m->b;
	ir_a at = buffer(m, m->turn), x = plus(m, at, m->column_side, SIDE * IR_PIECE_BYTES),
	     w = plus(m, at, m->row_side, SIDE * IR_PIECE_BYTES);
	ir_o rows[TILES];
	ir_t dw[TILES] = { 0 };

	for (unsigned h = 0; h < TILES; h++) {
		rows[h] = ir_oload(b, w, (int32_t)(FACTOR_BYTES + h * IR_TILE * IR_PIECE_BYTES), IR_PIECE_BYTES,
		                   PIECES_APART);
		if (is_int8(m))
			dw[h] = ir_tload(b, m->dw, (int32_t)(h * IR_TILE * 4), 0, 4);
	}
	for (unsigned p = 0; p < TILES; p++) {
		ir_o columns = ir_oload(b, x, (int32_t)(p * IR_TILE * IR_PIECE_BYTES), IR_PIECE_BYTES, PIECES_APART);
		ir_t dx = { 0 };
		if (is_int8(m))
			dx = ir_tload(b, m->dx, (int32_t)(p * IR_TILE * PIECES_PERIOD_UNITS * 4),
			              PIECES_PERIOD_UNITS * 4, 0);
		for (unsigned h = 0; h < TILES; h++) {
			ir_t *acc = &m->acc[p][h];
			if (is_int8(m)) {
				ir_t sum = ir_tdot_i8(b, columns, rows[h], ir_tconst(b, 0));
				ir_set_t(b, *acc, ir_tfma(b, ir_tmul(b, dw[h], dx), ir_ti2f(b, sum), *acc));
			} else {
				ir_set_t(b, *acc,
				         m->activation == DTYPE_F16 ? ir_tdot_f16(b, columns, rows[h], *acc)
				                                    : ir_tdot_bf16(b, columns, rows[h], *acc));
			}
		}
	}
}

/* last: whether what is brought meanwhile begins the next period. */
static void step(struct shared *m, ir_s last, unsigned behind)
{
	struct ir *b = m->b;
	struct brought r = bring(m, last, behind);

	multiply(m);
	ir_s other = ir_ssub(b, ir_sconst(b, BUFFER_BYTES), m->turn);
	leave(m, &r, other);
	ir_set_s(b, m->turn, other);
	ir_barrier(b);
}

/* ---- scales of a period */

/* Eight blocks of each of the 16 columns: of a shorter period some behind it too, which nobody asks for. */
static void leave_column_scales(const struct shared *m)
{
	struct ir *b = m->b;
	enum { COLUMNS = 4 /* of a load */, BYTES = COLUMNS * PIECES_PERIOD_UNITS * 4 };
	ir_i d[IR_TILE / COLUMNS];

	for (unsigned i = 0; i < IR_TILE / COLUMNS; i++)
		d[i] = ir_igather(b, m->xs, m->gather, (int32_t)(i * COLUMNS * (m->kp / 2)));
	ir_a at = plus(m, plus(m, ir_aaddi(b, m->group.sums, SCALES_AT), m->half, SCALES_BYTES), m->brings,
	               IR_TILE * PIECES_PERIOD_UNITS * 4);
	for (unsigned i = 0; i < IR_TILE / COLUMNS; i++)
		ir_fstore(b, at, ir_fbits(b, d[i]), (int32_t)(i * BYTES), 0);
}

/* Where the scale of unit u lies in a period, and how far apart those of neighbouring rows. */
static uint64_t scale_place(const struct shared *m, unsigned units, unsigned u, unsigned *apart)
{
	uint32_t stream = units * weight_pieces_lane(m->format), at = weight_pieces_stream(m->format, 0, units) + 2 * u;
	uint64_t place = weight_pieces_place(stream, at, 0);

	*apart = (unsigned)(weight_pieces_place(stream, at, 1) - place);
	return place;
}

static ir_f row_scale(const struct shared *m, unsigned units, unsigned u)
{
	struct ir *b = m->b;
	unsigned apart;
	int32_t at = (int32_t)scale_place(m, units, u, &apart);

	return apart % 4 == 0 ? ir_fhalf(b, ir_iload_s(b, m->ws, at & ~3, apart), at >> 1 & 1)
	                      : ir_fhalf(b, ir_iload_u16(b, m->ws, at), 0);
}

/* Of the row block that this wave brings a half of: it brings those of every second unit. */
static void leave_row_scales(const struct shared *m, unsigned units)
{
	struct ir *b = m->b;
	ir_s odd = ir_sandi(b, m->brings, 1), side = ir_sshri(b, m->brings, 1);
	ir_a at = plus(m, plus(m, ir_aaddi(b, m->group.sums, ROWS_SCALES_AT), m->half, SCALES_BYTES), side, SIDE * 4);

	for (unsigned first = 0; first < 2; first++) {
		ir_f d[PIECES_PERIOD_UNITS / 2];
		unsigned n = 0;
		ir_loop(b, first ? odd : ir_ssub(b, ir_sconst(b, 1), odd));
		for (unsigned u = first * 4; u < units && u < first * 4 + 4; u++)
			d[n++] = row_scale(m, units, u);
		for (unsigned i = 0; i < n; i++)
			ir_fstore(b, at, d[i], (int32_t)((first * 4 + i) * BOTH * 4), 0);
		ir_endloop(b);
	}
}

static void begin_scales(struct shared *m)
{
	struct ir *b = m->b;
	ir_a at = plus(m, ir_aaddi(b, m->group.sums, SCALES_AT), m->half, SCALES_BYTES);

	ir_set_a(b, m->dx, plus(m, at, m->column_side, SIDE * PIECES_PERIOD_UNITS * 4));
	ir_set_a(b, m->dw, plus(m, ir_aaddi(b, at, ROWS_SCALES_AT - SCALES_AT), m->row_side, SIDE * 4));
}

/* ---- periods and spans */

static void do_period(struct shared *m, unsigned units)
{
	struct ir *b = m->b;
	const unsigned bytes = units * weight_pieces_unit(m->format);

	leave_column_scales(m);
	leave_row_scales(m, units);
	begin_scales(m);
	ir_barrier(b);
	ir_s u = ir_loop(b, ir_sconst(b, units));
	ir_s done = ir_saddi(b, u, 1);
	step(m, units == PIECES_PERIOD_UNITS ? ir_sshri(b, done, 3) : ir_sdivi(b, done, units),
	     bytes - units * UNIT_BYTES);
	ir_set_a(b, m->dx, ir_aaddi(b, m->dx, 4));
	ir_set_a(b, m->dw, ir_aaddi(b, m->dw, BOTH * 4));
	ir_endloop(b);
	ir_set_a(b, m->xs, ir_aaddi(b, m->xs, units * sizeof(struct activation_block)));
	ir_set_a(b, m->ws, ir_aaddi(b, m->ws, bytes));
}

static void do_span(struct shared *m)
{
	struct ir *b = m->b;
	unsigned whole = m->span_steps / PIECES_PERIOD_UNITS, rest = m->span_steps % PIECES_PERIOD_UNITS;

	if (!is_int8(m)) {
		ir_loop(b, ir_sconst(b, m->span_steps));
		step(m, (ir_s){ 0 }, 0);
		ir_endloop(b);
		return;
	}
	if (whole > 1)
		ir_loop(b, ir_sconst(b, whole));
	if (whole)
		do_period(m, PIECES_PERIOD_UNITS);
	if (whole > 1)
		ir_endloop(b);
	if (rest)
		do_period(m, rest);
}

/* ---- totals */

static void store_totals(const struct shared *m, ir_a at, unsigned column_bytes)
{
	for (unsigned p = 0; p < TILES; p++)
		for (unsigned h = 0; h < TILES; h++)
			ir_tstore(m->b, at, m->acc[p][h], (int32_t)(p * IR_TILE * column_bytes + h * IR_TILE * 4),
			          column_bytes, 4);
}

/* If `does` is 1: leaves the totals at `level` of the wave's own bytes, or adds to those that wait there. */
static void put_by(const struct shared *m, ir_s does, unsigned level)
{
	ir_loop(m->b, does);
	store_totals(m, ir_aaddi(m->b, m->own, level * TILE_BYTES), SIDE * 4);
	ir_endloop(m->b);
}

static void add_waiting(const struct shared *m, ir_s does, unsigned level)
{
	struct ir *b = m->b;
	ir_a at = ir_aaddi(b, m->own, level * TILE_BYTES);

	ir_loop(b, does);
	for (unsigned p = 0; p < TILES; p++)
		for (unsigned h = 0; h < TILES; h++) {
			ir_t first = ir_tload(b, at, (int32_t)(p * IR_TILE * SIDE * 4 + h * IR_TILE * 4), SIDE * 4, 4);
			ir_set_t(b, m->acc[p][h], ir_tfma(b, m->acc[p][h], ir_tconst(b, 1), first));
		}
	ir_endloop(b);
}

/* Of span number i of two or four: the totals of the first wait at level 0, the sum of the first two at level 1. */
static void join_totals(const struct shared *m, ir_s i)
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

static void begin_walk(struct shared *m, ir_s base, ir_s blocks, ir_s tile)
{
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	ir_s side = ir_sshri(b, m->brings, 1), number;

	if (g->matrices > 1)
		number = ir_sadd(b, ir_sshli(b, base, 1), side);
	else
		number = ir_sadd(b, base, ir_smin(b, side, ir_saddi(b, blocks, -1)));
	ir_a w = plus(m, plus(m, matmul_group_arg(g, MATMUL_W), number, m->block_bytes), m->half,
	              m->spans * span_bytes(m)),
	     x = plus(m, matmul_group_arg(g, MATMUL_X), tile, (int64_t)BOTH * column_bytes(m));

	m->w = ir_var_a(b, plus(m, w, ir_sandi(b, m->brings, 1), IR_TILE * IR_PIECE_BYTES));
	x = plus(m, x, m->brings, (int64_t)IR_TILE * column_bytes(m));
	m->x = ir_var_a(b, plus(m, x, m->half, column_bytes(m) / HALVES));
	m->left = ir_var_s(b, ir_sconst(b, m->spans * m->span_steps - 1));
	m->turn = ir_var_s(b, ir_sconst(b, 0));
	if (!is_int8(m))
		return;
	m->ws = ir_var_a(b, w);
	ir_a xs = plus(m, matmul_group_arg(g, MATMUL_XS), tile, (int64_t)BOTH * (m->kp / 2));
	xs = plus(m, xs, m->brings, (int64_t)IR_TILE * (m->kp / 2));
	m->xs = ir_var_a(b, plus(m, xs, m->half, m->kp / 2 / HALVES));
	m->dx = ir_var_a(b, g->sums);
	m->dw = ir_var_a(b, g->sums);
}

static void do_tile(void *context, ir_s base, ir_s blocks, ir_s tile)
{
	struct shared *m = context;
	struct ir *b = m->b;
	const struct matmul_group *g = &m->group;
	struct brought first;

	begin_walk(m, base, blocks, tile);
	for (unsigned p = 0; p < TILES; p++)
		for (unsigned h = 0; h < TILES; h++)
			m->acc[p][h] = ir_var_t(b, ir_tconst(b, 0.0f));
	first.x = ir_oload(b, m->x, 0, column_bytes(m), 1);
	first.w = ir_oload(b, m->w, 0, IR_PIECE_BYTES, SIDE);
	leave(m, &first, m->turn);
	ir_barrier(b);
	ir_s i = ir_loop(b, ir_sconst(b, m->spans));
	for (unsigned p = 0; p < TILES; p++)
		for (unsigned h = 0; h < TILES; h++)
			ir_set_t(b, m->acc[p][h], ir_tconst(b, 0.0f));
	do_span(m);
	if (m->spans > 1)
		join_totals(m, i);
	ir_endloop(b);
	/* [row block][half][matrix][column][32] */
	const int64_t totals = (int64_t)BOTH * SIDE * 4;
	ir_a at = plus(m, g->sums, m->half, totals * g->matrices);
	at = plus(m, at, m->row_side, g->matrices > 1 ? totals : HALVES * totals);
	store_totals(m, plus(m, at, m->column_side, TILE_BYTES), SIDE * 4);
}

void matmul_mma_shared_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct shared m = {
		.group = { .b = b,
		           .key = key,
		           .waves = target->waves,
		           .parts = template_matmul_parts(target, key),
		           .spans = HALVES,
		           .tile = do_tile,
		           .context = &m },
		.b = b,
		.activation = key_dtype(key->activation),
		.format = weight_format_find(key_dtype(key->weight)),
		.kp = (uint32_t)numerics_pad(key->k),
		.spans = numerics_spans(key->k) / HALVES
	};

	m.block_bytes = (int64_t)weight_pieces_bytes(m.format, m.kp);
	m.span_steps = column_bytes(&m) / (m.spans * HALVES) / IR_STRIP_BYTES;
	if (m.spans > 1)
		m.own = ir_local(b, (m.spans > 2 ? MOST_WAITING : 1) * TILE_BYTES);
	ir_s wave = ir_wave(b);
	m.row_side = ir_sandi(b, wave, 1);
	m.brings = ir_sandi(b, wave, WAVES_OF_HALF - 1);
	m.column_side = ir_sshri(b, m.brings, 1);
	m.half = ir_sshri(b, wave, 2);
	if (is_int8(&m)) {
		ir_i lane = ir_ilane(b), unit = ir_iand(b, lane, ir_iconst(b, PIECES_PERIOD_UNITS - 1));
		ir_i column = ir_imul(b, ir_ishr(b, lane, 3), ir_iconst(b, (int32_t)(m.kp / 2)));
		m.gather = ir_iadd(b, column, ir_ishl(b, unit, 4));
	}
	matmul_group_build(&m.group);
}
