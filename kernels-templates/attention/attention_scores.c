/* kernels-templates/attention/attention_scores.c - scores of a chunk, and their softmax: a position in every lane. */
#include <math.h>

#include "kernels-templates/attention/attention_parts.h"

/* ---- scores */

/* `steps` dimensions that lie at keys, `bytes` long. */
static void score_steps(const struct attention *t, struct tile *s, ir_a keys, ir_a scalars, unsigned steps,
                        unsigned bytes)
{
	struct ir *b = t->b;

	prefetch_emit(t, &s->prefetch, bytes);
	for (unsigned d = 0; d < steps; d++)
		attention_tile_step(t, s, keys, t->int8 ? 0 : d * 32 * t->element, scalars, (int32_t)(d * 4), d);
	ir_set_a(b, keys, ir_aaddi(b, keys, bytes));
	ir_set_a(b, scalars, ir_aaddi(b, scalars, steps * 4));
}

/* int8: up to 32 dimensions, which share scales. */
static void score_block(const struct attention *t, struct tile *s, ir_a keys, ir_a scalars, unsigned dims)
{
	struct ir *b = t->b;
	enum { WORDS = 32 * 4 };

	for (unsigned v = 0; v < s->n; v++)
		s->scale[v] = ir_fload(b, keys, (int32_t)s->at[v], 0);
	score_steps(t, s, keys, scalars, 0, WORDS);
	ir_loop(b, ir_sconst(b, dims / 4));
	score_steps(t, s, keys, scalars, 4, WORDS);
	ir_endloop(b);
	if (dims % 4)
		score_steps(t, s, keys, scalars, dims % 4, WORDS);
}

/* One tile of heads against one group of `blocks` blocks, or part of a block; keys moves behind the group's first
 * block. */
static void score_tile(const struct attention *t, struct tile *s, ir_a keys, ir_a q, ir_a scores, unsigned first)
{
	struct ir *b = t->b;
	unsigned unroll = t->dims % UNROLL ? 2 : UNROLL;
	ir_a scalars = ir_var_a(b, q);

	s->keys = true;
	for (unsigned v = 0; v < s->n; v++)
		s->at[v] = (first + v) / t->parts * 32 * t->row_bytes +
		           (first + v) % t->parts * t->w * (t->int8 ? 4 : t->element);
	attention_tile_clear(t, s);
	if (t->int8) {
		if (t->streams)
			s->prefetch =
				prefetch_stream(t, &(struct strip){ keys, s->block, s->blocks, 32 * t->row_bytes });
		ir_loop(b, ir_sconst(b, t->dims / 32));
		score_block(t, s, keys, scalars, 32);
		ir_endloop(b);
		if (t->dims % 32)
			score_block(t, s, keys, scalars, t->dims % 32);
	} else {
		unsigned strips = t->streams ? prefetch_key_strips(t, unroll) : 1;
		ir_s strip = strips > 1 ? ir_loop(b, ir_sconst(b, strips)) : ir_sconst(b, 0);
		if (t->streams)
			s->prefetch = prefetch_stream(
				t, &(struct strip){ keys, ir_sadd(b, ir_smuli(b, s->block, strips), strip),
			                            ir_smuli(b, s->blocks, strips), 32 * t->row_bytes / strips });
		ir_loop(b, ir_sconst(b, t->dims / unroll / strips));
		score_steps(t, s, keys, scalars, unroll, unroll * 32 * t->element);
		ir_endloop(b);
		if (strips > 1)
			ir_endloop(b);
	}
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned v = 0; v < s->n; v++)
			ir_fstore(b, scores, s->sum[h * s->n + v],
			          (int32_t)(h * SCORE_BYTES) + attention_lanes_bytes(t, first + v), 0);
}

void attention_score_heads(const struct attention *t, const struct tile_range *heads, const void *context)
{
	struct ir *b = t->b;
	unsigned n = attention_tile_vectors(t, heads->size), blocks, block_bytes = 32 * t->row_bytes, shift = 5;
	while (n & (n - 1))
		n &= n - 1;
	blocks = n > t->parts ? n / t->parts : 1;
	blocks = t->streams || heads->size * t->parts >= ENOUGH_SUMS || blocks == 1 ? 1 : 2;
	n = n > blocks * t->parts ? blocks * t->parts : n;
	(void)context;
	shift += blocks == 2;
	ir_s end = ir_sshri(b, ir_saddi(b, attention_chunk_end(t), blocks * 32 - 1), shift),
	     to_values = attention_cache_step(t, ATTENTION_KEYS, ATTENTION_VALUES);
	ir_a keys = ir_var_a(b, t->keys), to = ir_var_a(b, attention_at(t, t->scores, heads, SCORE_BYTES));

	if (t->window) {
		ir_s skip = ir_sshri(b, attention_chunk_begin(t), shift);
		end = ir_ssub(b, end, skip);
		ir_set_a(b, keys, ir_aadd(b, keys, ir_smuli(b, skip, blocks * block_bytes)));
		ir_set_a(b, to, ir_aadd(b, to, ir_smuli(b, skip, blocks * 128)));
	}
	ir_s group = ir_loop(b, end);
	for (unsigned first = 0; first < blocks * t->parts; first += n) {
		struct tile s = { .heads = heads->size, .n = n, .head_bytes = t->dims * 4 };
		bool last = first + n >= blocks * t->parts;
		if (t->streams) {
			s.block = group;
			s.blocks = end;
		} else if (first == 0 && !t->latent)
			s.prefetch = prefetch_from(t, ir_aadd(b, keys, to_values), (n + t->parts - 1) / t->parts);
		score_tile(t, &s, keys,
		           attention_at(t, attention_of_head(t, t->q, attention_q_bytes(t)), heads, t->dims * 4), to,
		           first);
		if (!last)
			ir_set_a(b, keys, ir_aaddi(b, keys, -(int64_t)block_bytes));
		else if (blocks > 1)
			ir_set_a(b, keys, ir_aaddi(b, keys, (blocks - 1) * block_bytes));
	}
	ir_set_a(b, to, ir_aaddi(b, to, blocks * 128));
	ir_endloop(b);
}

/* ---- softmax */

/* Opens a loop over the chunk's blocks with a visible position; returns a variable that is to walk through their
 * scores. */
static ir_a each_block(const struct attention *t, ir_a scores)
{
	struct ir *b = t->b;
	ir_s end = ir_sshri(b, ir_saddi(b, attention_chunk_end(t), 31), 5);
	if (t->window) {
		ir_s skip = ir_sshri(b, attention_chunk_begin(t), 5);
		end = ir_ssub(b, end, skip);
		scores = ir_aadd(b, scores, ir_sshli(b, skip, 7));
	}
	scores = ir_var_a(b, scores);
	ir_loop(b, end);
	return scores;
}

/* Of row r, vector v of a block. */
static int32_t score_at(const struct attention *t, unsigned r, unsigned v)
{
	return (int32_t)(r * SCORE_BYTES) + attention_lanes_bytes(t, v);
}

/* Biased: where what is added to the scores of rows from number `row` of a column on begins, as their blocks do. */
static void find_biases(const struct attention *t, ir_s column, ir_s row, unsigned rows, ir_a bias[])
{
	struct ir *b = t->b;
	ir_s reach = ir_sload64(b, t->arg, ATTENTION_REACH * 8), head = t->first_head;

	if (t->run > 1)
		head = ir_sadd(b, head, t->at);
	head = ir_sadd(b, ir_smuli(b, head, t->group), row);
	ir_s columns = ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8), start = ir_ssub(b, columns, t->left);
	ir_s behind = ir_ssub(b, ir_ssub(b, ir_saddi(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8), t->columns), column),
	                      t->hi);
	if (t->columns > 1) { /* of columns that there are */
		ir_s own = ir_smax(b, ir_ssub(b, start, behind), ir_sconst(b, 0));
		behind = ir_ssub(b, start, ir_smin(b, own, ir_saddi(b, columns, -1)));
	}
	if (t->window)
		behind = ir_sadd(b, behind, ir_sshli(b, ir_sshri(b, attention_chunk_begin(t), 5), 5));
	ir_s at = ir_sadd(b, ir_smul(b, head, ir_sshli(b, reach, 1)), ir_sadd(b, reach, behind));
	bias[0] = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_BIAS * 8), ir_sshli(b, at, 2)));
	for (unsigned r = 1; r < rows; r++)
		bias[r] = ir_var_a(b, ir_aadd(b, bias[r - 1], ir_sshli(b, reach, 3)));
}

/* Biased without seeing both sides: what scores of these rows lose for each position of distance. */
static void find_slopes(const struct attention *t, ir_s row, unsigned rows, ir_f slope[])
{
	struct ir *b = t->b;
	ir_s head = t->first_head;

	if (t->run > 1)
		head = ir_sadd(b, head, t->at);
	head = ir_sadd(b, ir_smuli(b, head, t->group), row);
	ir_a at = ir_aadd(b, ir_aload(b, t->arg, ATTENTION_BIAS * 8), ir_sshli(b, head, 2));
	for (unsigned r = 0; r < rows; r++)
		slope[r] = ir_fbcast(b, at, (int32_t)(r * 4));
}

/* The column's own position, from the first block that is looked at on. */
static ir_i own_position(const struct attention *t, ir_s column)
{
	struct ir *b = t->b;
	ir_s own =
		t->columns > 1 ? ir_sadd(b, ir_saddi(b, t->hi, -(int64_t)t->columns), column) : ir_saddi(b, t->hi, -1);

	if (t->window)
		own = ir_ssub(b, own, ir_sshli(b, ir_sshri(b, attention_chunk_begin(t), 5), 5));
	return ir_isplat(b, own);
}

/* Scores of invisible positions become -inf, in `rows` rows of one column; max: the chunk's maxima. */
static void mask_scores(const struct attention *t, ir_a scores, ir_s column, ir_s row, unsigned rows, ir_f max[])
{
	struct ir *b = t->b;
	ir_f hidden = ir_fconst(b, -INFINITY), part[SOFTMAX_ROWS][MATH_MAX_PARTS];
	ir_i end = ir_isplat(b, attention_column_end(t, column)), begin = { 0 };

	if (t->window) {
		ir_i before = ir_isplat(b, ir_sshli(b, ir_sshri(b, attention_chunk_begin(t), 5), 5));
		end = ir_isub(b, end, before);
		begin = ir_var_i(b,
		                 ir_isub(b, ir_isplat(b, ir_saddi(b, attention_column_begin(t, column), -1)), before));
	}
	end = ir_var_i(b, end);
	for (unsigned i = 0; i < rows * t->parts; i++)
		part[i / t->parts][i % t->parts] = ir_var_f(b, hidden);
	ir_f cap = t->cap ? ir_fbcast(b, t->arg, ATTENTION_CAP * 8) : hidden;
	const bool table = t->biased && t->both, slopes = t->biased && !t->both;
	ir_a bias[SOFTMAX_ROWS];
	ir_f slope[SOFTMAX_ROWS];
	ir_i own = { 0 };
	if (table)
		find_biases(t, column, row, rows, bias);
	if (slopes) {
		find_slopes(t, row, rows, slope);
		own = ir_var_i(b, own_position(t, column));
	}
	ir_a s = each_block(t, scores);
	for (unsigned v = 0; v < t->parts; v++) {
		ir_i at = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(v * t->w)));
		ir_m seen = ir_igt(b, end, at);
		if (t->window)
			seen = ir_mand(b, seen, ir_igt(b, at, begin));
		ir_f away = slopes ? ir_i2f(b, ir_isub(b, at, own)) : hidden;
		for (unsigned r = 0; r < rows; r++) {
			ir_f score = ir_fload(b, s, score_at(t, r, v), 0);
			if (t->cap)
				score = math_cap(b, score, cap);
			if (slopes)
				score = ir_fadd(b, score, ir_fmul(b, away, slope[r]));
			if (table)
				score = ir_fadd(b, score, ir_fload(b, bias[r], attention_lanes_bytes(t, v), 0));
			ir_f x = ir_fsel(b, seen, score, hidden);
			ir_fstore(b, s, x, score_at(t, r, v), 0);
			ir_set_f(b, part[r][v], ir_fmax(b, x, part[r][v]));
		}
	}
	ir_set_a(b, s, ir_aaddi(b, s, 128));
	for (unsigned r = 0; table && r < rows; r++)
		ir_set_a(b, bias[r], ir_aaddi(b, bias[r], 128));
	ir_set_i(b, end, ir_isub(b, end, ir_iconst(b, 32)));
	if (slopes)
		ir_set_i(b, own, ir_isub(b, own, ir_iconst(b, 32)));
	if (t->window)
		ir_set_i(b, begin, ir_isub(b, begin, ir_iconst(b, 32)));
	ir_endloop(b);
	for (unsigned r = 0; r < rows; r++)
		max[r] = math_lane_max(b, part[r]);
}

/* Scores become p; sum: of each row. */
static void exp_scores(const struct attention *t, ir_a scores, unsigned rows, const ir_f max[], ir_f sum[])
{
	struct ir *b = t->b;
	ir_f part[SOFTMAX_ROWS][MATH_MAX_PARTS];

	for (unsigned i = 0; i < rows * t->parts; i++)
		part[i / t->parts][i % t->parts] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_a s = each_block(t, scores);
	for (unsigned r = 0; r < rows; r++)
		for (unsigned v = 0; v < t->parts; v++) {
			ir_f p = math_exp(b, ir_fsub(b, ir_fload(b, s, score_at(t, r, v), 0), max[r]));
			ir_fstore(b, s, p, score_at(t, r, v), 0);
			ir_set_f(b, part[r][v], ir_fadd(b, part[r][v], p));
		}
	ir_set_a(b, s, ir_aaddi(b, s, 128));
	ir_endloop(b);
	for (unsigned r = 0; r < rows; r++)
		sum[r] = math_lane_sum(b, part[r]);
}

/* What a row is after the chunk, from what it was; parts: what its record is to say. */
static void merge_state(const struct attention *t, ir_a state, ir_f max, ir_f sum)
{
	struct ir *b = t->b;

	if (t->context_parts) {
		ir_fstore1(b, state, max, 0);
		ir_fstore1(b, state, sum, 4);
		return;
	}
	ir_f old_max = ir_fload(b, state, attention_state_at(t, STATE_MAX), 0);
	ir_f new_max = ir_fmax(b, old_max, max);
	ir_f keep = math_exp(b, ir_fsub(b, old_max, new_max));
	ir_f join = math_exp(b, ir_fsub(b, max, new_max));
	ir_f total = ir_ffma(b, ir_fload(b, state, attention_state_at(t, STATE_SUM), 0), keep, ir_fmul(b, sum, join));

	ir_fstore(b, state, new_max, attention_state_at(t, STATE_MAX), 0);
	ir_fstore(b, state, total, attention_state_at(t, STATE_SUM), 0);
	ir_fstore(b, state, keep, attention_state_at(t, STATE_OLD), 0);
	ir_fstore(b, state, join, attention_state_at(t, STATE_NEW), 0);
}

static int32_t state_step(const struct attention *t)
{
	return t->context_parts ? (int32_t)attention_record_bytes(t) : attention_lanes_bytes(t, STATE_VECTORS);
}

/* Rows of one column side by side: a row by itself is a long chain of operations. */
static void softmax_rows(const struct attention *t, ir_a scores, ir_a state, ir_s column, ir_s row, unsigned rows)
{
	ir_f max[SOFTMAX_ROWS], sum[SOFTMAX_ROWS];

	mask_scores(t, scores, column, row, rows, max);
	exp_scores(t, scores, rows, max, sum);
	for (unsigned r = 0; r < rows; r++)
		merge_state(t, ir_aaddi(t->b, state, (int64_t)r * state_step(t)), max[r], sum[r]);
}

void attention_softmax_chunk(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a scores = ir_var_a(b, t->scores),
	     state = ir_var_a(b, t->context_parts ? ir_aaddi(b, attention_record_of_head(t), attention_record_marks(t))
	                                          : attention_of_head(t, t->state, attention_state_bytes(t)));
	ir_s column = ir_sconst(b, 0);
	if (t->columns > 1)
		column = ir_loop(b, attention_columns_that_see(t));
	unsigned rows = t->regs < 32 ? 1 : SOFTMAX_ROWS;
	while (t->group % rows)
		rows--;
	ir_s iteration = ir_loop(b, ir_sconst(b, t->group / rows));
	softmax_rows(t, scores, state, column, ir_smuli(b, iteration, rows), rows);
	ir_set_a(b, scores, ir_aaddi(b, scores, rows * SCORE_BYTES));
	ir_set_a(b, state, ir_aaddi(b, state, (int32_t)rows * state_step(t)));
	ir_endloop(b);
	if (t->columns > 1)
		ir_endloop(b);
}
