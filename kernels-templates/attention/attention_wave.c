/* kernels-templates/attention/attention_wave.c - attention for groups of waves: every wave has a chunk of positions,
 * all merge them.
 *
 * Owns: who does what in a group. What is computed is numerics.h rule 9, as in attention.c. A unit's queries are its
 * rows; as many rows as shared bytes allow are a tile, and a tile takes rounds: each wave takes one of the next chunks,
 * leaves max, sum and o of every row in shared bytes, and after a barrier wave r merges row r's, in order.
 *
 * A wave's share of the shared bytes holds a row's 128 scores first, then its p, then its o. Queries are broadcasts of
 * neighbouring words from where the rotation left them; keys and values come with a position, or a dimension, in each
 * of 32 lanes.
 * An editor keeps this: both barriers are met by all waves equally often; keys of positions that are not visible may be
 * read but are replaced, values of such positions are not read, but for rows that see less than others of their tile,
 * which then keep their sums.
 */
#include <math.h>

#include "kernels-templates/emit/heads.h"

enum {
	LANES = 32,
	CHUNK = NUMERICS_CHUNK,
	BLOCKS = CHUNK / LANES,
	SCORE_BYTES = CHUNK * 4,
	MARK_BYTES = 8,
	MOST_ROWS = 8,
	MOST_VECTORS = HEADS_MAX_DIM / LANES,
	UNROLL = 4,
	PIECE = 8 /* numbers */,
	PIECE_BYTES = 16,
	LANES_BYTES = LANES * PIECE_BYTES
};

struct spread {
	struct ir *b;
	unsigned waves, dims, vectors, group, columns, rows, kv_heads;
	unsigned element, row_bytes; /* of the cache: a number; a head at a position */
	bool int8, pieces, window;   /* pieces: templates.h */
	unsigned tile, tiles, slot;  /* rows of a tile; tiles of a unit; bytes a row has of a wave's share */
	ir_a arg, shared, marks;     /* [wave][row][slot], [wave][row] max and sum */
	ir_s wave;

	/* The unit's, and the tile's. */
	ir_s head, position, first_row; /* position: of the first column */
	ir_a own;                       /* this wave's share */
};

static ir_s load_slot(const struct spread *t, unsigned slot) { return ir_sload64(t->b, t->arg, (int32_t)(slot * 8)); }

static ir_s at_least(const struct spread *t, ir_s v, int64_t least) { return ir_smax(t->b, v, ir_sconst(t->b, least)); }
static ir_s at_most(const struct spread *t, ir_s v, int64_t most) { return ir_smin(t->b, v, ir_sconst(t->b, most)); }
static ir_s clamp(const struct spread *t, ir_s v, int64_t least, int64_t most)
{
	return at_most(t, at_least(t, v, least), most);
}

/* ---- rows */

/* Row `row` of the tile: its number in the unit, its column (where there are several) and its position. Rows past the
 * last are the last one again. */
struct row {
	ir_s number, column, position;
};

static struct row find_row(const struct spread *t, ir_s row)
{
	struct ir *b = t->b;
	struct row r = { .number = row, .position = t->position };

	if (t->tiles > 1)
		r.number = at_most(t, ir_sadd(b, t->first_row, row), t->rows - 1);
	if (t->columns > 1) {
		r.column = t->group == 1 ? r.number : ir_sdivi(b, r.number, t->group);
		r.position = ir_sadd(b, t->position, r.column);
	}
	return r;
}

/* What a row sees of the chunk that begins at `start`: from..to - 1, counted from there, cut to the chunk; nothing when
 * from is CHUNK or to is 0. */
static ir_s row_end(const struct spread *t, const struct row *r, ir_s start)
{
	ir_s seen = ir_saddi(t->b, ir_ssub(t->b, r->position, start), 1);
	return at_most(t, t->columns > 1 ? at_least(t, seen, 0) : seen,
	               CHUNK); /* a single column sees something of each of its chunks */
}

static ir_s row_begin(const struct spread *t, const struct row *r, ir_s start)
{
	if (!t->window)
		return ir_sconst(t->b, 0);
	return clamp(
		t, ir_ssub(t->b, ir_saddi(t->b, ir_ssub(t->b, r->position, load_slot(t, ATTENTION_SLIDING)), 1), start),
		0, CHUNK);
}

static unsigned column_bytes(const struct spread *t)
{
	return (unsigned)numerics_pad(t->group * t->kv_heads * t->dims) * 4;
}

/* The row in a buffer of queries or results; column: of the launch. */
static ir_a row_at(const struct spread *t, unsigned slot, const struct row *r, ir_s column)
{
	struct ir *b = t->b;
	ir_s in_group = t->columns > 1 ? ir_ssub(b, r->number, ir_smuli(b, r->column, t->group)) : r->number;
	ir_a at = ir_aadd(b, ir_aload(b, t->arg, (int32_t)(slot * 8)), ir_smuli(b, column, column_bytes(t)));
	return ir_aadd(b, at, ir_smuli(b, ir_sadd(b, ir_smuli(b, t->head, t->group), in_group), t->dims * 4));
}

/* The launch's column at a position; columns that it does not have stand for the nearest one. */
static ir_s launch_column(const struct spread *t, ir_s position)
{
	struct ir *b = t->b;
	ir_s column = ir_ssub(b, position, load_slot(t, ATTENTION_POS0));
	if (t->columns == 1)
		return column;
	return at_least(t, ir_smin(b, column, ir_saddi(b, load_slot(t, ATTENTION_COLUMNS), -1)), 0);
}

/* ---- scores */

/* sum[row][block], and what brings them on: addresses that walk along the dimensions. Rows of one column lie side by
 * side and share one. */
struct scores {
	ir_f sum[MOST_ROWS][BLOCKS];
	ir_a query[MOST_ROWS], key[BLOCKS];
	unsigned queries;
};

/* Adds `dims` dimensions, whose keys are k[dimension][block]. */
static void add_scores(const struct spread *t, struct scores *s, unsigned dims, ir_f k[][BLOCKS])
{
	struct ir *b = t->b;
	ir_f q[8];

	for (unsigned r = 0; r < t->tile; r++) {
		unsigned behind = r - r % s->queries;
		for (unsigned d = 0; d < dims; d++)
			q[d] = ir_fbcast(b, s->query[r % s->queries], (int32_t)((behind * t->dims + d) * 4));
		for (unsigned d = 0; d < dims; d++)
			for (unsigned i = 0; i < BLOCKS; i++)
				ir_set_f(b, s->sum[r][i], ir_ffma(b, k[d][i], q[d], s->sum[r][i]));
	}
	for (unsigned r = 0; r < s->queries; r++)
		ir_set_a(b, s->query[r], ir_aaddi(b, s->query[r], dims * 4));
}

static void walk_keys(const struct spread *t, struct scores *s, unsigned bytes)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		ir_set_a(t->b, s->key[i], ir_aaddi(t->b, s->key[i], bytes));
}

static void score_floats(const struct spread *t, struct scores *s)
{
	struct ir *b = t->b;
	unsigned step = t->dims % 8 == 0 ? 8 : t->dims % 4 == 0 ? 4 : 2;
	ir_f k[8][BLOCKS];

	ir_loop(b, ir_sconst(b, t->dims / step));
	for (unsigned d = 0; d < step; d++)
		for (unsigned i = 0; i < BLOCKS; i++) {
			int32_t at = (int32_t)(d * LANES * t->element);
			k[d][i] = t->element == 2 ? ir_fload_h(b, s->key[i], at) : ir_fload(b, s->key[i], at, 0);
		}
	add_scores(t, s, step, k);
	walk_keys(t, s, step * LANES * t->element);
	ir_endloop(b);
}

/* Eight dimensions are one load of 16 bytes a lane. */
static void score_pieces(const struct spread *t, struct scores *s)
{
	struct ir *b = t->b;
	unsigned step = t->tile * BLOCKS <= 16 ? 2 : 1;
	ir_i word[2][BLOCKS][4];
	ir_f k[PIECE][BLOCKS];

	ir_loop(b, ir_sconst(b, t->dims / PIECE / step));
	for (unsigned piece = 0; piece < step; piece++)
		for (unsigned i = 0; i < BLOCKS; i++)
			for (unsigned n = 0; n < 4; n++)
				word[piece][i][n] =
					ir_iload_s(b, s->key[i], (int32_t)(piece * LANES_BYTES + n * 4), PIECE_BYTES);
	walk_keys(t, s, step * LANES_BYTES);
	for (unsigned piece = 0; piece < step; piece++) {
		for (unsigned d = 0; d < PIECE; d++)
			for (unsigned i = 0; i < BLOCKS; i++)
				k[d][i] = ir_fhalf(b, word[piece][i][d / 2], d % 2);
		add_scores(t, s, PIECE, k);
	}
	ir_endloop(b);
}

/* A word of up to four dimensions in every lane. */
static void score_word(const struct spread *t, struct scores *s, const ir_f scale[BLOCKS], unsigned dims)
{
	struct ir *b = t->b;
	ir_f k[4][BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		ir_i word = ir_iload(b, s->key[i], 0);
		for (unsigned d = 0; d < dims; d++)
			k[d][i] = ir_fmul(b, scale[i],
			                  ir_i2f(b, ir_isar(b, d < 3 ? ir_ishl(b, word, 24 - 8 * d) : word, 24)));
	}
	add_scores(t, s, dims, k);
	walk_keys(t, s, LANES * 4);
}

/* Up to 32 dimensions, which share scales. */
static void score_int8(const struct spread *t, struct scores *s, unsigned dims)
{
	struct ir *b = t->b;
	ir_f scale[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++)
		scale[i] = ir_fload(b, s->key[i], 0, 0);
	walk_keys(t, s, LANES * 4);
	ir_loop(b, ir_sconst(b, dims / 4));
	score_word(t, s, scale, 4);
	ir_endloop(b);
	if (dims % 4)
		score_word(t, s, scale, dims % 4);
}

/* All scores of the chunk at `keys`, visible or not, into this wave's share. */
static void score_chunk(const struct spread *t, ir_a keys)
{
	struct ir *b = t->b;
	struct scores s = { .queries = t->columns == 1 && t->tile * t->tiles == t->rows ? 1 : t->tile };

	for (unsigned r = 0; r < s.queries; r++) {
		struct row row = find_row(t, ir_sconst(b, r));
		s.query[r] = ir_var_a(b, row_at(t, ATTENTION_Q, &row, launch_column(t, row.position)));
	}
	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < BLOCKS; i++)
			s.sum[r][i] = ir_var_f(b, ir_fconst(b, 0.0f));
	for (unsigned i = 0; i < BLOCKS; i++)
		s.key[i] = ir_var_a(b, ir_aaddi(b, keys, i * LANES * t->row_bytes));
	if (t->pieces) {
		score_pieces(t, &s);
	} else if (!t->int8) {
		score_floats(t, &s);
	} else {
		ir_loop(b, ir_sconst(b, t->dims / 32));
		score_int8(t, &s, 32);
		ir_endloop(b);
		if (t->dims % 32)
			score_int8(t, &s, t->dims % 32);
	}
	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < BLOCKS; i++)
			ir_fstore(b, t->own, s.sum[r][i], (int32_t)(r * t->slot + i * LANES * 4), 0);
}

/* ---- softmax */

/* Writes p of a row's scores s; returns its sums, lane by lane. Two blocks hide a little of what each waits for. */
static ir_f weigh_scores(const struct spread *t, ir_a to, const ir_f s[BLOCKS], ir_f max)
{
	enum { AT_ONCE = 2 };
	struct ir *b = t->b;
	ir_f sum = ir_var_f(b, ir_fconst(b, 0.0f)), left[BLOCKS], p[AT_ONCE];

	for (unsigned k = 0; k < BLOCKS; k++)
		left[k] = ir_var_f(b, s[k]);
	ir_loop(b, ir_sconst(b, BLOCKS / AT_ONCE));
	for (unsigned k = 0; k < AT_ONCE; k++)
		p[k] = math_exp(b, ir_fsub(b, left[k], max));
	for (unsigned k = 0; k < AT_ONCE; k++) {
		ir_fstore(b, to, p[k], (int32_t)(k * LANES * 4), 0);
		ir_set_f(b, sum, ir_fadd(b, sum, p[k]));
	}
	for (unsigned k = AT_ONCE; k < BLOCKS; k++)
		ir_set_f(b, left[k - AT_ONCE], left[k]);
	ir_set_a(b, to, ir_aaddi(b, to, AT_ONCE * LANES * 4));
	ir_endloop(b);
	return sum;
}

/* Scores become p, row by row; maximum and sum are left among the marks. Where a row sees nothing of the chunk they
 * mean nothing. */
static void softmax_rows(const struct spread *t, ir_s start)
{
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sconst(b, t->tile));
	struct row row = find_row(t, i);
	ir_a scores = ir_aadd(b, t->own, ir_smuli(b, i, t->slot));
	ir_a mark = ir_aadd(b, t->marks, ir_smuli(b, ir_sadd(b, ir_smuli(b, t->wave, t->tile), i), MARK_BYTES));
	ir_i end = ir_isplat(b, row_end(t, &row, start)), before = { 0 };
	ir_f s[BLOCKS], max = { 0 }, sum = { 0 };

	if (t->window)
		before = ir_isplat(b, ir_saddi(b, row_begin(t, &row, start), -1));
	for (unsigned k = 0; k < BLOCKS; k++) {
		ir_i at = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(k * LANES)));
		ir_m seen = ir_igt(b, end, at);
		if (t->window)
			seen = ir_mand(b, seen, ir_igt(b, at, before));
		s[k] = ir_fsel(b, seen, ir_fload(b, scores, (int32_t)(k * LANES * 4), 0), ir_fconst(b, -INFINITY));
		max = k ? ir_fmax(b, s[k], max) : s[k];
	}
	max = math_lane_max(b, &max);
	ir_fstore1(b, mark, max, 0);
	sum = weigh_scores(t, ir_var_a(b, scores), s, max);
	ir_fstore1(b, mark, math_lane_sum(b, &sum), 4);
	ir_endloop(b);
}

/* ---- values */

/* values: of the chunk. */
struct values {
	ir_f o[MOST_ROWS][MOST_VECTORS];
	ir_a values;
};

/* The position n behind the one at `at`. */
static void load_value(const struct spread *t, ir_a at, unsigned n, ir_f out[MOST_VECTORS])
{
	struct ir *b = t->b;
	int32_t row = (int32_t)(n * t->row_bytes);

	for (unsigned i = 0; i < t->vectors; i++)
		if (t->int8) {
			ir_f scale = ir_fbcast(b, at, row + (int32_t)(i * 4));
			out[i] = ir_fmul(b, scale,
			                 ir_i2f(b, ir_iload_s8(b, at, row + (int32_t)(t->vectors * 4 + i * LANES))));
		} else if (t->element == 2) {
			out[i] = ir_fload_h(b, at, row + (int32_t)(i * LANES * 2));
		} else {
			out[i] = ir_fload(b, at, row + (int32_t)(i * LANES * 4), 0);
		}
}

/* By pieces: the eight positions at `at`; one position, of a number known only when the kernel runs. */
static void load_piece(const struct spread *t, ir_a at, ir_f out[PIECE][MOST_VECTORS])
{
	struct ir *b = t->b;
	ir_i word[MOST_VECTORS][PIECE / 2];

	for (unsigned i = 0; i < t->vectors; i++)
		for (unsigned n = 0; n < PIECE / 2; n++)
			word[i][n] = ir_iload_s(b, at, (int32_t)(i * LANES_BYTES + n * 4), PIECE_BYTES);
	for (unsigned n = 0; n < PIECE; n++)
		for (unsigned i = 0; i < t->vectors; i++)
			out[n][i] = ir_fhalf(b, word[i][n / 2], n % 2);
}

static void load_of_piece(const struct spread *t, const struct values *v, ir_s position, ir_f out[MOST_VECTORS])
{
	struct ir *b = t->b;
	ir_s in_piece = ir_sandi(b, position, PIECE - 1), even = ir_sshli(b, ir_sshri(b, in_piece, 1), 2);
	ir_a at = ir_aadd(b, ir_aadd(b, v->values, ir_smuli(b, ir_ssub(b, position, in_piece), t->row_bytes)), even);
	ir_i shift = ir_isplat(b, ir_sshli(b, ir_sandi(b, in_piece, 1), 4));

	for (unsigned i = 0; i < t->vectors; i++)
		out[i] = ir_fhalf(b, ir_ishrv(b, ir_iload_s(b, at, (int32_t)(i * LANES_BYTES), PIECE_BYTES), shift), 0);
}

/* `count` turns of n positions each, from position `from` on; by pieces, n is 1, or PIECE and from a multiple of it. */
static void add_values(const struct spread *t, struct values *v, ir_s from, ir_s count, unsigned n)
{
	struct ir *b = t->b;
	ir_f value[PIECE][MOST_VECTORS], p[PIECE];
	ir_a at = ir_var_a(b, ir_aadd(b, v->values, ir_smuli(b, from, t->row_bytes))),
	     scores = ir_var_a(b, ir_aadd(b, t->own, ir_sshli(b, from, 2)));

	ir_s turn = ir_loop(b, count);
	if (t->pieces && n == 1)
		load_of_piece(t, v, ir_sadd(b, from, turn), value[0]);
	else if (t->pieces)
		load_piece(t, at, value);
	for (unsigned j = 0; !t->pieces && j < n; j++)
		load_value(t, at, j, value[j]);
	for (unsigned r = 0; r < t->tile; r++) {
		for (unsigned j = 0; j < n; j++)
			p[j] = ir_fbcast(b, scores, (int32_t)(r * t->slot + j * 4));
		for (unsigned j = 0; j < n; j++)
			for (unsigned i = 0; i < t->vectors; i++)
				ir_set_f(b, v->o[r][i], ir_ffma(b, p[j], value[j][i], v->o[r][i]));
	}
	ir_set_a(b, at, ir_aaddi(b, at, n * t->row_bytes));
	ir_set_a(b, scores, ir_aaddi(b, scores, n * 4));
	ir_endloop(b);
}

/* Positions from..to - 1, which only some rows see: the others keep what they have. */
static void add_some(const struct spread *t, struct values *v, ir_s start, ir_s from, ir_s to)
{
	struct ir *b = t->b;
	ir_f value[MOST_VECTORS];

	ir_s n = ir_loop(b, ir_ssub(b, to, from)), position = ir_sadd(b, from, n);
	ir_a p = ir_aadd(b, t->own, ir_sshli(b, position, 2));
	ir_i at = ir_isplat(b, position);
	if (t->pieces)
		load_of_piece(t, v, position, value);
	else
		load_value(t, ir_aadd(b, v->values, ir_smuli(b, position, t->row_bytes)), 0, value);
	for (unsigned r = 0; r < t->tile; r++) {
		struct row row = find_row(t, ir_sconst(b, r));
		ir_m seen = ir_igt(b, ir_isplat(b, row_end(t, &row, start)), at);
		if (t->window)
			seen = ir_mand(b, seen,
			               ir_igt(b, at, ir_isplat(b, ir_saddi(b, row_begin(t, &row, start), -1))));
		ir_f weight = ir_fbcast(b, p, (int32_t)(r * t->slot));
		for (unsigned i = 0; i < t->vectors; i++)
			ir_set_f(b, v->o[r][i], ir_fsel(b, seen, ir_ffma(b, weight, value[i], v->o[r][i]), v->o[r][i]));
	}
	ir_endloop(b);
}

/* Positions from..to - 1, which all rows see. */
static void add_whole(const struct spread *t, struct values *v, ir_s from, ir_s to)
{
	struct ir *b = t->b;
	unsigned shift = t->pieces ? 3 : 2;

	if (t->pieces && t->window) { /* else from is 0 */
		ir_s whole = ir_smin(b, ir_sshli(b, ir_sshri(b, ir_saddi(b, from, PIECE - 1), shift), shift), to);
		add_values(t, v, from, ir_ssub(b, whole, from), 1);
		from = whole;
	}
	ir_s count = ir_ssub(b, to, from), turns = ir_sshri(b, count, shift);
	add_values(t, v, from, turns, 1u << shift);
	ir_s rest = ir_sandi(b, count, (1 << shift) - 1);
	add_values(t, v, ir_sadd(b, from, ir_sshli(b, turns, shift)), rest, 1);
}

/* The o of every row of the tile, over the positions that it sees, into this wave's share. Rows of a tile are in the
 * order of their columns, so the first row is where visible positions begin and end earliest, the last row where they
 * do so latest. */
static void value_chunk(const struct spread *t, ir_a values, ir_s start)
{
	struct ir *b = t->b;
	struct row first = find_row(t, ir_sconst(b, 0)), last = find_row(t, ir_sconst(b, t->tile - 1));
	ir_s begin = row_begin(t, &first, start), end = row_end(t, &last, start);
	struct values v;

	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < t->vectors; i++)
			v.o[r][i] = ir_var_f(b, ir_fconst(b, 0.0f));
	v.values = values;
	if (t->columns == 1) {
		add_whole(t, &v, begin, end);
	} else {
		ir_s all = t->window ? ir_smin(b, row_begin(t, &last, start), end) : begin,
		     no_more = ir_smax(b, row_end(t, &first, start), all);
		if (t->window)
			add_some(t, &v, start, begin, all);
		add_whole(t, &v, all, no_more);
		add_some(t, &v, start, no_more, end);
	}
	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < t->vectors; i++)
			ir_fstore(b, t->own, v.o[r][i], (int32_t)(r * t->slot + i * LANES * 4), 0);
}

/* ---- chunks */

static void do_chunk(const struct spread *t, ir_s chunk)
{
	struct ir *b = t->b;
	ir_s place = ir_sadd(b, ir_smul(b, chunk, load_slot(t, ATTENTION_CHUNK_BYTES)),
	                     ir_smuli(b, t->head, CHUNK * t->row_bytes));
	ir_s start = ir_sshli(b, chunk, 7);

	score_chunk(t, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_KCACHE * 8), place));
	softmax_rows(t, start);
	value_chunk(t, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_VCACHE * 8), place), start);
}

/* The row that this wave merges: its state, and where it goes. */
struct state {
	struct row row;
	ir_a out;
	ir_f max, sum, o[MOST_VECTORS];
};

static void merge_one(const struct spread *t, const struct state *s, ir_s chunk, ir_s from)
{
	struct ir *b = t->b;
	ir_s row = ir_sadd(b, ir_smuli(b, from, t->tile), t->wave);
	ir_a mark = ir_aadd(b, t->marks, ir_smuli(b, row, MARK_BYTES)),
	     o = ir_aadd(b, t->shared, ir_smuli(b, row, t->slot));
	ir_f max = ir_fbcast(b, mark, 0), sum = ir_fbcast(b, mark, 4), new_max = ir_fmax(b, s->max, max);
	ir_f keep = math_exp(b, ir_fsub(b, s->max, new_max)), join = math_exp(b, ir_fsub(b, max, new_max));
	ir_f total = ir_ffma(b, s->sum, keep, ir_fmul(b, sum, join));
	bool some = t->window && t->columns > 1; /* windows may begin in a later chunk for a later column */
	ir_m seen = { 0 };

	if (some) {
		ir_s begin = row_begin(t, &s->row, ir_sshli(b, chunk, 7));
		seen = ir_igt(b, ir_iconst(b, CHUNK), ir_isplat(b, begin));
	}
	ir_set_f(b, s->max, some ? ir_fsel(b, seen, new_max, s->max) : new_max);
	ir_set_f(b, s->sum, some ? ir_fsel(b, seen, total, s->sum) : total);
	for (unsigned i = 0; i < t->vectors; i++) {
		ir_f more = ir_fmul(b, ir_fload(b, o, (int32_t)(i * LANES * 4), 0), join),
		     joined = ir_ffma(b, s->o[i], keep, more);
		ir_set_f(b, s->o[i], some ? ir_fsel(b, seen, joined, s->o[i]) : joined);
	}
}

/* 1 for a wave that has a row, else 0. */
static ir_s has_row(const struct spread *t)
{
	struct ir *b = t->b;
	ir_s of_tile = ir_ssub(b, ir_sconst(b, t->tile), t->wave),
	     of_unit = ir_ssub(b, ir_sconst(b, t->rows), ir_sadd(b, t->first_row, t->wave));
	return clamp(t, t->tiles > 1 ? ir_smin(b, of_tile, of_unit) : of_tile, 0, 1);
}

static void store_row(const struct spread *t, const struct state *s)
{
	struct ir *b = t->b;
	ir_s mine = has_row(t);

	if (t->columns > 1) { /* the launch's columns only */
		ir_s column = ir_ssub(b, s->row.position, load_slot(t, ATTENTION_POS0)),
		     left = ir_ssub(b, load_slot(t, ATTENTION_COLUMNS), column);
		mine = clamp(t, ir_smin(b, mine, ir_smin(b, ir_saddi(b, column, 1), left)), 0, 1);
	}
	ir_loop(b, mine);
	ir_a out = ir_var_a(b, s->out);
	ir_loop(b, ir_sconst(b, t->dims / LANES));
	ir_fstore(b, out, ir_fdiv(b, s->o[0], s->sum), 0, 0);
	for (unsigned i = 0; i + 1 < t->vectors; i++)
		ir_set_f(b, s->o[i], s->o[i + 1]);
	ir_set_a(b, out, ir_aaddi(b, out, LANES * 4));
	ir_endloop(b);
	if (t->dims % LANES)
		ir_fstore(b, out, ir_fdiv(b, s->o[0], s->sum), 0, t->dims % LANES);
	ir_endloop(b);
}

/* Chunks first.. of the cache, `chunks` of them, for the tile of rows from first_row on. */
static void do_tile(struct spread *t, ir_s first, ir_s chunks)
{
	struct ir *b = t->b;
	struct state s = { .row = find_row(t, at_most(t, t->wave, t->tile - 1)) };
	unsigned shift = (unsigned)__builtin_ctz(t->waves);

	s.out = row_at(t, ATTENTION_OUT, &s.row,
	               launch_column(t, s.row.position)); /* here, where there are other loads to wait for */
	s.max = ir_var_f(b, ir_fconst(b, -INFINITY));
	s.sum = ir_var_f(b, ir_fconst(b, 0.0f));
	for (unsigned i = 0; i < t->vectors; i++)
		s.o[i] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_s round = ir_loop(b, ir_sshri(b, ir_saddi(b, chunks, t->waves - 1), shift)),
	     done = ir_sshli(b, round, shift);
	ir_s left = ir_ssub(b, chunks, done);
	ir_loop(b, at_most(t, ir_ssub(b, left, t->wave), 1));
	do_chunk(t, ir_sadd(b, ir_sadd(b, first, done), t->wave));
	ir_endloop(b);
	ir_barrier(b);
	ir_s from = ir_loop(b, ir_smul(b, has_row(t), at_most(t, left, t->waves)));
	merge_one(t, &s, ir_sadd(b, ir_sadd(b, first, done), from), from);
	ir_endloop(b);
	ir_barrier(b);
	ir_endloop(b);
	store_row(t, &s);
}

/* ---- a unit */

/* Zeros behind the columns of the unit's last head: the first wave's work. */
static void zero_pads(const struct spread *t)
{
	struct ir *b = t->b;
	unsigned width = t->group * t->kv_heads * t->dims;
	ir_s first_wave = ir_ssub(b, ir_sconst(b, 1), at_most(t, t->wave, 1));

	if (numerics_pad(width) == width)
		return;
	ir_loop(b, first_wave);
	ir_s column = ir_loop(b, ir_sconst(b, t->columns)),
	     number = ir_sadd(b, ir_ssub(b, t->position, load_slot(t, ATTENTION_POS0)), column);
	ir_s there =
		t->columns == 1
			? ir_sconst(b, 1)
			: clamp(t,
	                        ir_smin(b, ir_saddi(b, number, 1), ir_ssub(b, load_slot(t, ATTENTION_COLUMNS), number)),
	                        0, 1);
	ir_loop(b, there);
	heads_zero_pad(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_OUT * 8), ir_smuli(b, number, column_bytes(t))),
	               width, t->head, t->kv_heads);
	ir_endloop(b);
	ir_endloop(b);
	ir_endloop(b);
}

static void do_unit(struct spread *t, ir_s unit)
{
	struct ir *b = t->b;
	struct heads_unit u = heads_unit(b, unit, t->kv_heads);
	unsigned shift = (unsigned)__builtin_ctz(t->columns);
	ir_s pos0 = load_slot(t, ATTENTION_POS0), first = ir_sconst(b, 0);

	t->head = u.head;
	t->position = t->columns == 1 ? ir_sadd(b, pos0, u.column)
	                              : ir_sshli(b, ir_sadd(b, ir_sshri(b, pos0, shift), u.column), shift);
	ir_s chunks = ir_saddi(b, ir_sshri(b, ir_saddi(b, t->position, t->columns - 1), 7), 1);
	if (t->window) {
		ir_s lowest = at_least(t, ir_saddi(b, ir_ssub(b, t->position, load_slot(t, ATTENTION_SLIDING)), 1), 0);
		first = ir_sshri(b, lowest, 7);
		chunks = ir_ssub(b, chunks, first);
	}
	if (t->columns > 1) { /* a tile past the last column has none */
		ir_s end = ir_sadd(b, pos0, load_slot(t, ATTENTION_COLUMNS));
		chunks = ir_smul(b, chunks, clamp(t, ir_ssub(b, end, t->position), 0, 1));
	}
	ir_s tile = t->tiles > 1 ? ir_loop(b, ir_sconst(b, t->tiles)) : ir_sconst(b, 0);
	t->first_row = t->tiles > 1 ? ir_smuli(b, tile, t->tile) : tile;
	do_tile(t, first, chunks);
	if (t->tiles > 1)
		ir_endloop(b);
	zero_pads(t);
}

static unsigned slot_bytes(unsigned dims)
{
	unsigned o = (dims + LANES - 1) / LANES * LANES * 4;
	return o > SCORE_BYTES ? o : SCORE_BYTES;
}

unsigned attention_wave_rows(unsigned waves, unsigned head_dim)
{
	unsigned most = IR_MAX_SHARED_BYTES / (waves * (slot_bytes(head_dim) + MARK_BYTES)),
		 limit = waves < MOST_ROWS ? waves : MOST_ROWS;
	return most < limit ? most : limit;
}

void attention_wave_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct spread t = { .b = b,
		            .waves = target->waves,
		            .dims = key->head_dim,
		            .group = key->heads / key->kv_heads,
		            .kv_heads = key->kv_heads,
		            .columns = key->tile_n ? key->tile_n : 1,
		            .element = heads_kv_bytes(key),
		            .row_bytes = heads_kv_row_bytes(key),
		            .int8 = heads_kv_bytes(key) == 1,
		            .pieces = template_kv_pieces(target, (enum dtype)(key->kv - 1), key->head_dim),
		            .window = key->flags & KEY_WINDOW };

	t.rows = t.columns * t.group;
	t.vectors = (t.dims + LANES - 1) / LANES;
	t.slot = slot_bytes(t.dims);
	unsigned most = attention_wave_rows(t.waves, t.dims);
	t.tiles = (t.rows + most - 1) / most;
	t.tile = (t.rows + t.tiles - 1) / t.tiles;
	t.arg = ir_arg(b);
	t.shared = ir_shared(b, (int64_t)t.waves * t.tile * t.slot);
	t.marks = ir_shared(b, (int64_t)t.waves * t.tile * MARK_BYTES);
	t.wave = ir_wave(b);
	t.own = ir_aadd(b, t.shared, ir_smuli(b, t.wave, t.tile * t.slot));
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	do_unit(&t, ir_sadd(b, ir_begin(b), i));
	ir_endloop(b);
}
