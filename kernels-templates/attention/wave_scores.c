/* kernels-templates/attention/wave_scores.c - scores and softmax of a chunk, for groups of waves. */
#include <math.h>

#include "kernels-templates/attention/attention_wave.h"

/* ---- scores */

/* sum[row][block], and what advances them: addresses that walk along the dimensions. Rows of one column lie side by
 * side and share one. */
struct scores {
	ir_f sum[MAX_ROWS][BLOCKS];
	ir_a query[MAX_ROWS];
	unsigned queries;
};

/* Adds `dims` dimensions. */
static void add_scores(const struct spread *t, void *context, unsigned dims, ir_f k[][BLOCKS])
{
	struct ir *b = t->b;
	struct scores *s = context;
	ir_f q[8];

	for (unsigned r = 0; r < t->tile; r++) {
		unsigned behind = r - r % s->queries;
		for (unsigned d = 0; d < dims; d++)
			q[d] = ir_fbcast(b, s->query[r % s->queries], (int32_t)((behind * t->dims + d) * 4));
		for (unsigned d = 0; d < dims; d++)
			for (unsigned i = 0; i < t->blocks; i++)
				ir_set_f(b, s->sum[r][i], ir_ffma(b, k[d][i], q[d], s->sum[r][i]));
	}
	for (unsigned r = 0; r < s->queries; r++)
		ir_set_a(b, s->query[r], ir_aaddi(b, s->query[r], dims * 4));
}

static void walk_keys(const struct spread *t, struct key_walk *s, unsigned bytes)
{
	for (unsigned i = 0; i < t->blocks; i++)
		ir_set_a(t->b, s->key[i], ir_aaddi(t->b, s->key[i], bytes));
}

static void walk_floats(const struct spread *t, struct key_walk *s, unsigned dims)
{
	struct ir *b = t->b;
	unsigned step = dims % 8 == 0 ? 8 : dims % 4 == 0 ? 4 : 2;
	ir_f k[8][BLOCKS];

	ir_loop(b, ir_sconst(b, dims / step));
	for (unsigned d = 0; d < step; d++)
		for (unsigned i = 0; i < t->blocks; i++) {
			int32_t at = (int32_t)(d * LANES * t->element);
			k[d][i] = t->element == 2 ? ir_fload_h(b, s->key[i], at) : ir_fload(b, s->key[i], at, 0);
		}
	s->take(t, s->context, step, k);
	walk_keys(t, s, step * LANES * t->element);
	ir_endloop(b);
}

/* Eight dimensions are one load of 16 bytes a lane. */
static void walk_octets(const struct spread *t, struct key_walk *s, unsigned dims)
{
	struct ir *b = t->b;
	unsigned step = t->tile * t->blocks <= 16 ? 2 : 1;
	ir_i word[MANY][BLOCKS][4];

	while (t->blocks == 1 && step * 2 <= t->many && dims % (step * 2 * OCTET) == 0)
		step *= 2;
	ir_f k[OCTET][BLOCKS];

	ir_loop(b, ir_sconst(b, dims / OCTET / step));
	for (unsigned octet = 0; octet < step; octet++)
		for (unsigned i = 0; i < t->blocks; i++)
			for (unsigned n = 0; n < 4; n++)
				word[octet][i][n] =
					ir_iload_s(b, s->key[i], (int32_t)(octet * LANES_BYTES + n * 4), OCTET_BYTES);
	walk_keys(t, s, step * LANES_BYTES);
	for (unsigned octet = 0; octet < step; octet++) {
		for (unsigned d = 0; d < OCTET; d++)
			for (unsigned i = 0; i < t->blocks; i++)
				k[d][i] = ir_fhalf(b, word[octet][i][d / 2], d % 2);
		s->take(t, s->context, OCTET, k);
	}
	ir_endloop(b);
}

/* A word of up to four dimensions in every lane. */
static void walk_word(const struct spread *t, struct key_walk *s, const ir_f scale[BLOCKS], unsigned dims)
{
	struct ir *b = t->b;
	ir_f k[4][BLOCKS];

	for (unsigned i = 0; i < t->blocks; i++) {
		ir_i word = ir_iload(b, s->key[i], 0);
		for (unsigned d = 0; d < dims; d++)
			k[d][i] = ir_fmul(b, scale[i],
			                  ir_i2f(b, ir_isar(b, d < 3 ? ir_ishl(b, word, 24 - 8 * d) : word, 24)));
	}
	s->take(t, s->context, dims, k);
	walk_keys(t, s, LANES * 4);
}

/* Up to 32 dimensions, which share scales. */
static void walk_int8(const struct spread *t, struct key_walk *s, unsigned dims)
{
	struct ir *b = t->b;
	ir_f scale[BLOCKS];

	for (unsigned i = 0; i < t->blocks; i++)
		scale[i] = ir_fload(b, s->key[i], 0, 0);
	walk_keys(t, s, LANES * 4);
	ir_loop(b, ir_sconst(b, dims / 4));
	walk_word(t, s, scale, 4);
	ir_endloop(b);
	if (dims % 4)
		walk_word(t, s, scale, dims % 4);
}

void attention_wave_begin_walk(const struct spread *t, struct key_walk *w, ir_a keys)
{
	for (unsigned i = 0; i < t->blocks; i++)
		w->key[i] = ir_var_a(t->b, ir_aaddi(t->b, keys, i * LANES * t->row_bytes));
}

void attention_wave_walk(const struct spread *t, struct key_walk *w, unsigned dims)
{
	struct ir *b = t->b;

	if (t->octets) {
		walk_octets(t, w, dims);
	} else if (!t->int8) {
		walk_floats(t, w, dims);
	} else {
		ir_loop(b, ir_sconst(b, dims / 32));
		walk_int8(t, w, 32);
		ir_endloop(b);
		if (dims % 32)
			walk_int8(t, w, dims % 32);
	}
}

void attention_wave_score_chunk(const struct spread *t, ir_a keys)
{
	struct ir *b = t->b;
	struct scores s = { .queries = (t->columns == 1 || t->rotates) && t->tile * t->tiles == t->rows ? 1 : t->tile };
	struct key_walk w = { .take = add_scores, .context = &s };

	for (unsigned r = 0; r < s.queries; r++) {
		struct row row = attention_wave_find_row(t, ir_sconst(b, r));
		s.query[r] = ir_var_a(b, attention_wave_row_at(t, ATTENTION_Q, &row,
		                                               attention_wave_launch_column(t, row.position)));
	}
	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < t->blocks; i++)
			s.sum[r][i] = ir_var_f(b, ir_fconst(b, 0.0f));
	attention_wave_begin_walk(t, &w, keys);
	attention_wave_walk(t, &w, t->dims);
	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < t->blocks; i++)
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

static void store_mark(const struct spread *t, ir_a mark, ir_f v, int32_t disp)
{
	if (t->gives)
		ir_fgive(t->b, mark, v, disp, 1);
	else
		ir_fstore1(t->b, mark, v, disp);
}

void attention_wave_softmax_row(const struct spread *t, ir_s i, ir_s start, ir_a mark)
{
	struct ir *b = t->b;
	struct row row = attention_wave_find_row(t, i);
	ir_a scores = ir_aadd(b, t->own, ir_smuli(b, i, t->slot));
	ir_i end = ir_isplat(b, attention_wave_row_end(t, &row, start)), before = { 0 };
	ir_f s[BLOCKS], max = { 0 }, sum = { 0 };

	if (t->window)
		before = ir_isplat(b, ir_saddi(b, attention_wave_row_begin(t, &row, start), -1));
	ir_f cap = t->cap ? ir_fbcast(b, t->arg, ATTENTION_CAP * 8) : (ir_f){ 0 };
	const bool table = t->biased && t->both, slopes = t->biased && !t->both;
	ir_a bias = table ? attention_wave_bias(t, &row, start) : scores;
	ir_f slope = slopes ? attention_wave_slope(t, &row) : (ir_f){ 0 };
	ir_i own = slopes ? ir_isplat(b, ir_ssub(b, row.position, start)) : (ir_i){ 0 };
	for (unsigned k = 0; k < BLOCKS; k++) {
		ir_i at = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(k * LANES)));
		ir_m seen = ir_igt(b, end, at);
		if (t->window)
			seen = ir_mand(b, seen, ir_igt(b, at, before));
		ir_f score = ir_fload(b, scores, (int32_t)(k * LANES * 4), 0);
		if (t->cap)
			score = math_cap(b, score, cap);
		if (slopes)
			score = ir_fadd(b, score, ir_fmul(b, ir_i2f(b, ir_isub(b, at, own)), slope));
		if (table)
			score = ir_fadd(b, score, ir_fload(b, bias, (int32_t)(k * LANES * 4), 0));
		s[k] = ir_fsel(b, seen, score, ir_fconst(b, -INFINITY));
		max = k ? ir_fmax(b, s[k], max) : s[k];
	}
	max = math_lane_max(b, &max);
	store_mark(t, mark, max, 0);
	sum = weigh_scores(t, ir_var_a(b, scores), s, max);
	store_mark(t, mark, math_lane_sum(b, &sum), 4);
}

void attention_wave_softmax_rows(const struct spread *t, ir_s start)
{
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sconst(b, t->tile)), of_wave = ir_smuli(b, t->wave, t->tile);

	attention_wave_softmax_row(t, i, start, ir_aadd(b, t->marks, ir_smuli(b, ir_sadd(b, of_wave, i), MARK_BYTES)));
	ir_endloop(b);
}
