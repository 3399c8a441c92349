/* kernels-templates/attention/attention.c - attention over the KV cache, in chunks of positions, as IR.
 *
 * Owns: KEY_ATTENTION, numerics.h rule 9. A unit streams its head's keys and values once, chunk by chunk, for all the
 * query heads that share them, of one column or of several neighbouring ones: scores with a position in every lane,
 * softmax, then values with a dimension in every lane. Tiles of queries share each load; how large they are follows the
 * target's registers and never changes a bit of the result.
 *
 * A chunk has the keys of all heads side by side, and their values. Neighbouring units of one column therefore go
 * through the chunks together, a head after the other in each (a run), so that memory is read in long pieces: what is
 * asked for ahead, by us or by the processor, would be in vain at the end of each short one.
 *
 * Columns of a tile begin at a position that is a multiple of their number, so that a chunk has something visible for
 * all of them or for none; the last ones of a chunk may be visible to some only, and are done column by column; so are
 * the first ones that a window leaves to some only, in chunks that some columns may not see at all. What rows begin
 * with and where they end up is attention_rows.c's, what memory is asked for ahead attention_ahead.c's. An editor keeps
 * this: positions that are not visible may be read, in whole groups of blocks, but what was read is replaced before it
 * is used (keys), and not read at all (values): the cache holds anything there.
 */
#include <assert.h>
#include <math.h>

#include "kernels-templates/attention/attention.h"

enum {
	SCORE_BYTES = NUMERICS_CHUNK * 4, /* one head's scores, later its p */
	UNROLL = 4,
	ENOUGH_SUMS = 8, /* to hide the latency of fma */
	MAX_ROWS = 128,  /* bounds what a call keeps on its stack */
	MAX_REGS = 32,
	MAX_SUMS = 32,
	SOFTMAX_ROWS = 4,
	PIECE_BYTES = 256 << 10, /* as long as pieces of memory need to be: a plain read of such is 3 % slower than of
	                            one piece, of 32 KiB 15 % */
	RUN_BYTES = 64 << 10     /* what the heads of a run may keep */
};

static void each_head(struct attention *t)
{
	if (t->run > 1)
		t->at = ir_loop(t->b, t->n);
}

static void end_head(const struct attention *t)
{
	if (t->run > 1)
		ir_endloop(t->b);
}

/* Few registers hold addresses: what is cheap to make again is made again by each phase rather than kept. */
static ir_s chunk_end(const struct attention *t) { return ir_smin(t->b, t->hi, ir_sconst(t->b, NUMERICS_CHUNK)); }

/* What is visible to the tile's column number `column`, and to all of them. */
static ir_s column_end(const struct attention *t, ir_s column)
{
	ir_s hi = t->columns > 1 ? ir_sadd(t->b, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns), column) : t->hi;
	return ir_smin(t->b, hi, ir_sconst(t->b, NUMERICS_CHUNK));
}

/* With a window: the first column's first visible position, counted from the chunk's start. */
static ir_s first_begin(const struct attention *t)
{
	return ir_ssub(t->b, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns),
	               ir_sload64(t->b, t->arg, ATTENTION_SLIDING * 8));
}

static ir_s chunk_begin(const struct attention *t) { return ir_smax(t->b, first_begin(t), ir_sconst(t->b, 0)); }

/* With a window: where the tile's column number `column` begins to see; the chunk's end when it sees nothing here. */
static ir_s column_begin(const struct attention *t, ir_s column)
{
	ir_s lo = t->columns > 1 ? ir_sadd(t->b, first_begin(t), column) : first_begin(t);
	return ir_smin(t->b, ir_smax(t->b, lo, ir_sconst(t->b, 0)), ir_sconst(t->b, NUMERICS_CHUNK));
}

static ir_s common_begin(const struct attention *t) { return column_begin(t, ir_sconst(t->b, t->columns - 1)); }

/* Not before common_begin(): a short window may leave nothing that all columns see. */
static ir_s common_end(const struct attention *t)
{
	ir_s end = ir_smin(t->b, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns), ir_sconst(t->b, NUMERICS_CHUNK));
	return t->window ? ir_smax(t->b, end, common_begin(t)) : end;
}

/* From an address in one cache to the like place in the other. */
static ir_s cache_step(const struct attention *t, unsigned from, unsigned to)
{
	return ir_ssub(t->b, ir_sload64(t->b, t->arg, (int32_t)(to * 8)),
	               ir_sload64(t->b, t->arg, (int32_t)(from * 8)));
}

/* A tile of h heads by v vectors keeps h * v sums, the smaller side, and one of the larger side at a time; with int8
 * the vectors' scales, and one more on its way from int8. */
static unsigned tile_regs(const struct attention *t, unsigned h, unsigned v)
{
	return h * v + (h < v ? h : v) + 1 + (t->int8 ? v + 1 : 0);
}

/* The most vectors beside h heads: more sums than hide the latency of fma only help when they share loads. */
static unsigned tile_vectors(const struct attention *t, unsigned h)
{
	unsigned v = h <= 2 ? ENOUGH_SUMS / h : 1;
	while (h > 2 && v < 4 && tile_regs(t, h, v + 1) <= t->regs)
		v++;
	while (tile_regs(t, h, v) > t->regs)
		v--;
	return v;
}

/* A tile of `size` things; the first of them is number first, or first + index * size when tiles are many and the code
 * is a loop's body. */
struct place {
	unsigned size, first;
	bool many;
	ir_s index;
};
typedef void (*tile_fn)(const struct attention *t, const struct place *p, const void *context);

/* Emits tiles for n things, at most max each, as even as can be: of two sizes at most, hence at most two copies of the
 * code, unless each is to have its own. */
static void each_tile(const struct attention *t, unsigned n, unsigned max, bool own, tile_fn emit, const void *context)
{
	struct ir *b = t->b;
	unsigned tiles = (n + max - 1) / max, larger = n % tiles;
	unsigned count[2] = { larger, tiles - larger };
	struct place p = { .first = 0 };

	for (unsigned i = 0; own && i < tiles; i++, p.first += p.size) {
		p.size = n / tiles + (i < larger);
		emit(t, &p, context);
	}
	for (unsigned i = 0; !own && i < 2; i++) {
		p.size = n / tiles + (i == 0);
		p.many = count[i] > 1;
		if (p.many)
			p.index = ir_loop(b, ir_sconst(b, count[i]));
		if (count[i])
			emit(t, &p, context);
		if (p.many)
			ir_endloop(b);
		p.first += count[i] * p.size;
	}
}

/* Where the tile's first thing lies, of things that are step bytes each. */
static ir_a place_at(const struct attention *t, ir_a base, const struct place *p, unsigned step)
{
	if (p->many)
		base = ir_aadd(t->b, base, ir_smuli(t->b, p->index, (int64_t)p->size * step));
	return p->first ? ir_aaddi(t->b, base, (int64_t)p->first * step) : base;
}

/* sums[h][v] = fma(vector v, scalar h, sums[h][v]): vector v lies at[v] bytes behind `vectors`, scalar h head_bytes * h
 * bytes behind `scalars`.
 * int8: scale[v] are the scales of keys; values have theirs scale_at[v] bytes behind `vectors`. */
struct tile {
	unsigned heads, n;
	ir_f sum[MAX_SUMS];
	unsigned at[8], scale_at[8];
	uint32_t head_bytes;
	bool keys;
	ir_f scale[8];
	struct ahead ahead;
	ir_s block, blocks; /* keys, t->streams: which block this is of its head's chunk, of how many that are read */
};

/* Dimension `byte` of four, a word in every lane. */
static ir_f load_key_int8(const struct attention *t, const struct tile *s, ir_a p, int32_t disp, unsigned v,
                          unsigned byte)
{
	struct ir *b = t->b;
	ir_i word = ir_iload(b, p, disp);
	ir_i key = ir_isar(b, byte < 3 ? ir_ishl(b, word, 24 - 8 * byte) : word, 24);
	return ir_fmul(b, s->scale[v], ir_i2f(b, key));
}

/* Vector v, disp behind p. Number n of a step: which of the dimensions that share words. */
static ir_f load_cache(const struct attention *t, struct tile *s, ir_a p, int32_t disp, unsigned v, unsigned n)
{
	struct ir *b = t->b;
	int32_t at = disp + (int32_t)s->at[v], scale_at = disp + (int32_t)s->scale_at[v];

	if (!t->int8)
		return t->element == 2 ? ir_fload_h(b, p, at) : ir_fload(b, p, at, 0);
	if (s->keys)
		return load_key_int8(t, s, p, at, v, n);
	if (v == 0 || s->scale_at[v] != s->scale_at[v - 1])
		s->scale[0] = ir_fbcast(b, p, scale_at);
	return ir_fmul(b, s->scale[0], ir_i2f(b, ir_iload_s8(b, p, at)));
}

static void tile_clear(const struct attention *t, struct tile *s)
{
	assert(s->heads * s->n <= MAX_SUMS && s->n <= 8);
	for (unsigned i = 0; i < s->heads * s->n; i++)
		s->sum[i] = ir_var_f(t->b, ir_fconst(t->b, 0.0f));
}

static void tile_step(const struct attention *t, struct tile *s, ir_a vectors, unsigned bytes, ir_a scalars,
                      int32_t disp, unsigned number)
{
	struct ir *b = t->b;
	ir_f held[8];
	bool hold_heads = s->heads < s->n;

	for (unsigned i = 0; i < (hold_heads ? s->heads : s->n); i++)
		held[i] = hold_heads ? ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes))
		                     : load_cache(t, s, vectors, (int32_t)bytes, i, number);
	for (unsigned i = 0; i < (hold_heads ? s->n : s->heads); i++) {
		ir_f one = hold_heads ? load_cache(t, s, vectors, (int32_t)bytes, i, number)
		                      : ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes));
		for (unsigned j = 0; j < (hold_heads ? s->heads : s->n); j++) {
			ir_f *sum = &s->sum[hold_heads ? j * s->n + i : i * s->n + j];
			ir_set_f(b, *sum, ir_ffma(b, hold_heads ? one : held[j], hold_heads ? held[j] : one, *sum));
		}
	}
}

/* ---- scores */

/* `steps` dimensions that lie at keys, `bytes` long. */
static void score_steps(const struct attention *t, struct tile *s, ir_a keys, ir_a scalars, unsigned steps,
                        unsigned bytes)
{
	struct ir *b = t->b;

	ahead_ask(t, &s->ahead, bytes);
	for (unsigned d = 0; d < steps; d++)
		tile_step(t, s, keys, t->int8 ? 0 : d * 32 * t->element, scalars, (int32_t)(d * 4), d);
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
	tile_clear(t, s);
	if (t->int8) {
		if (t->streams)
			s->ahead = ahead_stream(t, &(struct strip){ keys, s->block, s->blocks, 32 * t->row_bytes });
		ir_loop(b, ir_sconst(b, t->dims / 32));
		score_block(t, s, keys, scalars, 32);
		ir_endloop(b);
		if (t->dims % 32)
			score_block(t, s, keys, scalars, t->dims % 32);
	} else {
		unsigned strips = t->streams ? ahead_key_strips(t, unroll) : 1;
		ir_s strip = strips > 1 ? ir_loop(b, ir_sconst(b, strips)) : ir_sconst(b, 0);
		if (t->streams)
			s->ahead = ahead_stream(
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

/* The visible part of the chunk for a tile of heads, group by group. What it reads for invisible positions stays among
 * their scores. */
static void score_heads(const struct attention *t, const struct place *heads, const void *context)
{
	struct ir *b = t->b;
	unsigned n = tile_vectors(t, heads->size), blocks, block_bytes = 32 * t->row_bytes, shift = 5;
	while (n & (n - 1))
		n &= n - 1;
	blocks = n > t->parts ? n / t->parts : 1;
	blocks = t->streams || heads->size * t->parts >= ENOUGH_SUMS || blocks == 1 ? 1 : 2;
	n = n > blocks * t->parts ? blocks * t->parts : n;
	(void)context;
	shift += blocks == 2;
	ir_s end = ir_sshri(b, ir_saddi(b, chunk_end(t), blocks * 32 - 1), shift),
	     to_values = cache_step(t, ATTENTION_KCACHE, ATTENTION_VCACHE);
	ir_a keys = ir_var_a(b, t->keys), to = ir_var_a(b, place_at(t, t->scores, heads, SCORE_BYTES));

	if (t->window) {
		ir_s skip = ir_sshri(b, chunk_begin(t), shift);
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
		} else if (first == 0)
			s.ahead = ahead_from(t, ir_aadd(b, keys, to_values), (n + t->parts - 1) / t->parts);
		score_tile(t, &s, keys,
		           place_at(t, attention_of_head(t, t->q, attention_q_bytes(t)), heads, t->dims * 4), to,
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
	ir_s end = ir_sshri(b, ir_saddi(b, chunk_end(t), 31), 5);
	if (t->window) {
		ir_s skip = ir_sshri(b, chunk_begin(t), 5);
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

/* Scores of invisible positions become -inf, in `rows` rows of one column; max: the chunk's maxima. */
static void mask_scores(const struct attention *t, ir_a scores, ir_s column, unsigned rows, ir_f max[])
{
	struct ir *b = t->b;
	ir_f hidden = ir_fconst(b, -INFINITY), part[SOFTMAX_ROWS][MATH_MAX_PARTS];
	ir_i end = ir_isplat(b, column_end(t, column)), begin = { 0 };

	if (t->window) {
		ir_i before = ir_isplat(b, ir_sshli(b, ir_sshri(b, chunk_begin(t), 5), 5));
		end = ir_isub(b, end, before);
		begin = ir_var_i(b, ir_isub(b, ir_isplat(b, ir_saddi(b, column_begin(t, column), -1)), before));
	}
	end = ir_var_i(b, end);
	for (unsigned i = 0; i < rows * t->parts; i++)
		part[i / t->parts][i % t->parts] = ir_var_f(b, hidden);
	ir_a s = each_block(t, scores);
	for (unsigned v = 0; v < t->parts; v++) {
		ir_i at = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(v * t->w)));
		ir_m seen = ir_igt(b, end, at);
		if (t->window)
			seen = ir_mand(b, seen, ir_igt(b, at, begin));
		for (unsigned r = 0; r < rows; r++) {
			ir_f x = ir_fsel(b, seen, ir_fload(b, s, score_at(t, r, v), 0), hidden);
			ir_fstore(b, s, x, score_at(t, r, v), 0);
			ir_set_f(b, part[r][v], ir_fmax(b, x, part[r][v]));
		}
	}
	ir_set_a(b, s, ir_aaddi(b, s, 128));
	ir_set_i(b, end, ir_isub(b, end, ir_iconst(b, 32)));
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

/* What a row is after the chunk, from what it was. */
static void merge_state(const struct attention *t, ir_a state, ir_f max, ir_f sum)
{
	struct ir *b = t->b;
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

/* Rows of one column side by side: a row by itself is a long chain of operations. */
static void softmax_rows(const struct attention *t, ir_a scores, ir_a state, ir_s column, unsigned rows)
{
	ir_f max[SOFTMAX_ROWS], sum[SOFTMAX_ROWS];

	mask_scores(t, scores, column, rows, max);
	exp_scores(t, scores, rows, max, sum);
	for (unsigned r = 0; r < rows; r++)
		merge_state(t, ir_aaddi(t->b, state, (int64_t)r * attention_lanes_bytes(t, STATE_VECTORS)), max[r],
		            sum[r]);
}

/* How many columns, from the first on, see some of the chunk. A later one may not see it yet: its state is then the
 * initial one. */
static ir_s columns_that_see(const struct attention *t)
{
	struct ir *b = t->b;
	ir_s all = ir_sconst(b, t->columns);
	return t->window ? ir_smin(b, ir_ssub(b, ir_sconst(b, NUMERICS_CHUNK), first_begin(t)), all) : all;
}

static void softmax_chunk(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a scores = ir_var_a(b, t->scores),
	     state = ir_var_a(b, attention_of_head(t, t->state, attention_state_bytes(t)));
	ir_s column = { 0 };
	if (t->columns > 1)
		column = ir_loop(b, columns_that_see(t));
	unsigned rows = t->regs < 32 ? 1 : SOFTMAX_ROWS;
	while (t->group % rows)
		rows--;
	ir_loop(b, ir_sconst(b, t->group / rows));
	softmax_rows(t, scores, state, column, rows);
	ir_set_a(b, scores, ir_aaddi(b, scores, rows * SCORE_BYTES));
	ir_set_a(b, state, ir_aaddi(b, state, rows * attention_lanes_bytes(t, STATE_VECTORS)));
	ir_endloop(b);
	if (t->columns > 1)
		ir_endloop(b);
}

/* ---- values */

/* The tile's vector i is number `vector` of a row. */
static void locate_value(const struct attention *t, struct tile *s, unsigned i, unsigned vector)
{
	s->at[i] = (t->int8 ? (t->dims + 31) / 32 * 4 : 0) + vector * t->w * t->element;
	s->scale_at[i] = vector * t->w / 32 * 4;
}

/* Some rows at v for the tile of sums s. */
static void value_rows(const struct attention *t, struct tile *s, ir_a v, ir_a p, unsigned rows)
{
	struct ir *b = t->b;
	for (unsigned r = 0; r < rows; r++)
		tile_step(t, s, v, r * t->row_bytes, p, (int32_t)(r * 4), 0);
	ir_set_a(b, v, ir_aaddi(b, v, rows * t->row_bytes));
	ir_set_a(b, p, ir_aaddi(b, p, rows * 4));
}

/* Several columns: where the tile's o lies. */
static ir_a chunk_o_at(const struct attention *t, const struct place *heads, const struct place *dims)
{
	return place_at(t, place_at(t, t->chunk_o, heads, (unsigned)attention_lanes_bytes(t, t->vectors)), dims,
	                (unsigned)attention_lanes_bytes(t, 1));
}

static void load_tile(const struct attention *t, struct tile *s, const struct place *heads, const struct place *dims)
{
	ir_a from = chunk_o_at(t, heads, dims);
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned i = 0; i < s->n; i++)
			s->sum[h * s->n + i] =
				ir_var_f(t->b, ir_fload(t->b, from, attention_lanes_bytes(t, h * t->vectors + i), 0));
}

static void store_tile(const struct attention *t, const struct tile *s, const struct place *heads,
                       const struct place *dims)
{
	ir_a to = chunk_o_at(t, heads, dims);
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned i = 0; i < s->n; i++)
			ir_fstore(t->b, to, s->sum[h * s->n + i], attention_lanes_bytes(t, h * t->vectors + i), 0);
}

/* The same for all rows, from a chunk's o, which with a window begins the next chunk as +0. */
static void merge_rows(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a state = ir_var_a(b, t->state), o = ir_var_a(b, t->o), more = ir_var_a(b, t->chunk_o);

	ir_loop(b, ir_sconst(b, t->rows));
	ir_f keep = ir_fload(b, state, attention_state_at(t, STATE_OLD), 0),
	     join = ir_fload(b, state, attention_state_at(t, STATE_NEW), 0);
	for (unsigned i = 0; i < t->vectors; i++) {
		ir_f joined = ir_fmul(b, ir_fload(b, more, attention_lanes_bytes(t, i), 0), join);
		ir_fstore(b, o, ir_ffma(b, ir_fload(b, o, attention_lanes_bytes(t, i), 0), keep, joined),
		          attention_lanes_bytes(t, i), 0);
		if (t->window)
			ir_fstore(b, more, ir_fconst(b, 0.0f), attention_lanes_bytes(t, i), 0);
	}
	ir_set_a(b, state, ir_aaddi(b, state, attention_lanes_bytes(t, STATE_VECTORS)));
	ir_set_a(b, o, ir_aaddi(b, o, attention_lanes_bytes(t, t->vectors)));
	ir_set_a(b, more, ir_aaddi(b, more, attention_lanes_bytes(t, t->vectors)));
	ir_endloop(b);
}

/* O = O * a + o * b for the tile's dimensions. */
static void merge_tile(const struct attention *t, const struct tile *s, const struct place *heads,
                       const struct place *dims)
{
	struct ir *b = t->b;
	ir_a state = place_at(t, attention_of_head(t, t->state, attention_state_bytes(t)), heads,
	                      (unsigned)attention_lanes_bytes(t, STATE_VECTORS));
	ir_a o = place_at(t,
	                  place_at(t, attention_of_head(t, t->o, attention_o_bytes(t)), heads,
	                           (unsigned)attention_lanes_bytes(t, t->vectors)),
	                  dims, (unsigned)attention_lanes_bytes(t, 1));

	for (unsigned h = 0; h < s->heads; h++) {
		int32_t head = (int32_t)h * attention_lanes_bytes(t, STATE_VECTORS);
		ir_f keep = ir_fload(b, state, head + attention_state_at(t, STATE_OLD), 0);
		ir_f join = ir_fload(b, state, head + attention_state_at(t, STATE_NEW), 0);
		for (unsigned i = 0; i < s->n; i++) {
			int32_t disp = attention_lanes_bytes(t, h * t->vectors + i);
			ir_f more = ir_fmul(b, s->sum[h * s->n + i], join);
			ir_fstore(b, o, ir_ffma(b, ir_fload(b, o, disp, 0), keep, more), disp, 0);
		}
	}
}

/* `fours` times four rows. */
static void value_fours(const struct attention *t, struct tile *s, ir_a v, ir_a p, const struct place *dims, ir_s fours)
{
	struct ir *b = t->b;

	if (t->streams) {
		unsigned rows = ahead_value_rows(t);
		ir_s strips = ir_sshri(b, ir_saddi(b, fours, rows / 4 - 1), (unsigned)__builtin_ctz(rows / 4)),
		     strip = ir_loop(b, strips);
		s->ahead = ahead_stream(t, &(struct strip){ v, strip, strips, rows * t->row_bytes });
		fours = ir_smin(b, ir_ssub(b, fours, ir_smuli(b, strip, rows / 4)), ir_sconst(b, rows / 4));
	} else {
		ir_a next = ir_aadd(b, t->keys, ahead_next(t));
		s->ahead =
			ahead_from(t,
		                   t->int8 ? ir_aaddi(b, next, NUMERICS_CHUNK * t->row_bytes / t->vectors * dims->first)
		                           : place_at(t, next, dims, NUMERICS_CHUNK * t->w * t->element),
		                   1);
	}
	ir_loop(b, fours);
	ahead_ask(t, &s->ahead,
	          4 * (t->int8 ? (dims->size * t->row_bytes + t->vectors - 1) / t->vectors
	                       : dims->size * t->w * t->element));
	value_rows(t, s, v, p, 4);
	ir_endloop(b);
	if (t->streams)
		ir_endloop(b);
}

/* Some vectors of dimensions for a tile of heads: the chunk's o, merged into O. */
static void value_tile(const struct attention *t, const struct place *dims, const void *context)
{
	const struct place *heads = context;
	struct ir *b = t->b;
	struct tile s = { .heads = heads->size, .n = dims->size, .head_bytes = SCORE_BYTES };
	ir_s count = t->columns > 1 ? common_end(t) : chunk_end(t);
	ir_a p = place_at(t, t->scores, heads, SCORE_BYTES);
	ir_a v = ir_aadd(b, t->keys, cache_step(t, ATTENTION_KCACHE, ATTENTION_VCACHE));
	v = t->int8 ? v : place_at(t, v, dims, t->w * t->element);

	if (t->window) {
		ir_s begin = common_begin(t);
		count = ir_ssub(b, count, begin);
		p = ir_aadd(b, p, ir_sshli(b, begin, 2));
		v = ir_aadd(b, v, ir_smuli(b, begin, t->row_bytes));
	}
	p = ir_var_a(b, p);
	v = ir_var_a(b, v);
	for (unsigned i = 0; i < dims->size; i++)
		locate_value(t, &s, i, (t->int8 ? dims->first : 0) + i);
	if (t->columns > 1 && t->window)
		load_tile(t, &s, heads, dims);
	else
		tile_clear(t, &s);
	value_fours(t, &s, v, p, dims, ir_sshri(b, count, 2));
	ir_loop(b, ir_sandi(b, count, 3));
	value_rows(t, &s, v, p, 1);
	ir_endloop(b);
	if (t->columns > 1)
		store_tile(t, &s, heads, dims);
	else
		merge_tile(t, &s, heads, dims);
}

/* What not all columns see lies before what they all see (head), or behind it: in the last chunk column c sees c
 * positions more than the first one, and where windows begin it sees c less. Where a column's share begins, and how
 * long it is, or less than 0. Cheaper to make again than to keep. */
static ir_s rest_begin(const struct attention *t, bool head, ir_s column)
{
	return head ? column_begin(t, column) : common_end(t);
}

static ir_s rest_count(const struct attention *t, bool head, ir_s column)
{
	ir_s end = column_end(t, column);
	return ir_ssub(t->b, head ? ir_smin(t->b, common_begin(t), end) : end, rest_begin(t, head, column));
}

/* `n` vectors of dimensions from number `first` on, of one column's rows: they go on from the chunk's o. */
static void value_rest(const struct attention *t, bool head, ir_s column, unsigned first, unsigned n)
{
	struct ir *b = t->b;
	struct tile s = { .heads = 1, .n = n, .head_bytes = SCORE_BYTES };
	ir_a row = ir_var_a(b, ir_aadd(b, t->scores, ir_smuli(b, column, t->group * SCORE_BYTES)));
	ir_a o = ir_var_a(b, ir_aadd(b, t->chunk_o,
	                             ir_smuli(b, column, t->group * (unsigned)attention_lanes_bytes(t, t->vectors))));

	ir_loop(b, ir_sconst(b, t->group));
	ir_s count = rest_count(t, head, column), from = rest_begin(t, head, column);
	ir_a v = ir_var_a(b, ir_aadd(b, ir_aadd(b, t->keys, ir_smuli(b, from, t->row_bytes)),
	                             cache_step(t, ATTENTION_KCACHE, ATTENTION_VCACHE)));
	ir_a p = ir_var_a(b, ir_aadd(b, row, ir_sshli(b, from, 2)));
	for (unsigned i = 0; i < n; i++) {
		locate_value(t, &s, i, first + i);
		s.sum[i] = ir_var_f(b, ir_fload(b, o, attention_lanes_bytes(t, first + i), 0));
	}
	ir_loop(b, count);
	value_rows(t, &s, v, p, 1);
	ir_endloop(b);
	for (unsigned i = 0; i < n; i++)
		ir_fstore(b, o, s.sum[i], attention_lanes_bytes(t, first + i), 0);
	ir_set_a(b, row, ir_aaddi(b, row, SCORE_BYTES));
	ir_set_a(b, o, ir_aaddi(b, o, attention_lanes_bytes(t, t->vectors)));
	ir_endloop(b);
}

/* For all columns, when there is any such position for one of them. */
static void value_rests(const struct attention *t, bool head)
{
	struct ir *b = t->b;
	enum { VECTORS = 8 };
	ir_s most = head ? ir_ssub(b, common_begin(t), chunk_begin(t)) : ir_ssub(b, chunk_end(t), common_end(t));
	ir_s some = ir_smin(b, ir_smax(b, most, ir_sconst(b, 0)), ir_sconst(b, 1));
	ir_s column = ir_loop(b, ir_smuli(b, some, t->columns));

	for (unsigned first = 0; first < t->vectors; first += VECTORS)
		value_rest(t, head, column, first, t->vectors - first < VECTORS ? t->vectors - first : VECTORS);
	ir_endloop(b);
}

static void value_heads(const struct attention *t, const struct place *heads, const void *context)
{
	(void)context;
	each_tile(t, t->vectors, t->streams ? t->vectors : tile_vectors(t, heads->size), t->int8, value_tile, heads);
}

/* ---- a run of units */

static void stream_chunks(struct attention *t, struct heads_unit u)
{
	struct ir *b = t->b;
	ir_s p = t->columns > 1 ? ir_saddi(b, attention_tile_base(t, u.column), t->columns - 1)
	                        : ir_sadd(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8), u.column);
	ir_s chunks = ir_saddi(b, ir_sshri(b, p, 7), 1);
	if (t->columns > 1) { /* a tile past the last column has none */
		ir_s end = ir_sadd(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8),
		                   ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8));
		chunks = ir_smul(b, chunks,
		                 ir_smin(b, ir_ssub(b, end, attention_tile_base(t, u.column)), ir_sconst(b, 1)));
	}
	ir_s place = ir_smuli(b, u.head, NUMERICS_CHUNK * t->row_bytes), hi = ir_saddi(b, p, 1);

	t->hi = ir_var_s(b, hi);
	if (t->window) {
		ir_s skip = ir_sshri(b, chunk_begin(t), 7);
		chunks = ir_ssub(b, chunks, skip);
		place = ir_sadd(b, place, ir_smul(b, skip, attention_chunk_bytes(t)));
		ir_set_s(b, t->hi, ir_ssub(b, t->hi, ir_sshli(b, skip, 7)));
	}
	t->keys = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_KCACHE * 8), place));
	ir_loop(b, chunks);
	each_head(t);
	each_tile(t, t->rows, t->head_tile, false, score_heads, NULL);
	softmax_chunk(t);
	if (t->columns > 1 && t->window)
		value_rests(t, true);
	each_tile(t, t->rows, t->head_tile, false, value_heads, NULL);
	if (t->columns > 1) {
		value_rests(t, false);
		merge_rows(t);
	}
	ir_set_a(b, t->keys, ir_aadd(b, t->keys, ahead_next(t)));
	end_head(t);
	ir_set_s(b, t->hi, ir_saddi(b, t->hi, -NUMERICS_CHUNK));
	ir_endloop(b);
}

static const char *attention_refusal(const struct key *key)
{
	const char *refusal = heads_refusal(key->heads, key->head_dim);
	if (refusal)
		return refusal;
	if (key->kv_heads == 0 || key->heads % key->kv_heads != 0 || key->heads / key->kv_heads > MAX_ROWS)
		return "heads must be a multiple of kv_heads, 128 times at most";
	if (key->tile_n & (key->tile_n - 1) || key->tile_n > TEMPLATE_MAX_QUERIES ||
	    (key->tile_n > 1 && key->heads / key->kv_heads * key->tile_n > MAX_ROWS))
		return "a column tile has 1, 2, 4, 8 or 16 columns, and 128 queries a kv head at most";
	if (!heads_kv_bytes(key))
		return "the cache must be F16, F32 or Q8_0";
	return NULL;
}

unsigned template_attention_tile_n(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t columns)
{
	enum { ROWS = 16 };
	unsigned n = 1, most = target->waves > 1 ? attention_wave_rows(target->waves, head_dim) : ROWS;
	while (n * 2 <= columns && n * 2 * (heads / kv_heads) <= most)
		n *= 2;
	return n;
}

/* The run's head at hand. */
static struct heads_unit head_of(const struct attention *t, struct heads_unit u)
{
	return t->run > 1 ? (struct heads_unit){ u.column, ir_sadd(t->b, u.head, t->at) } : u;
}

/* Heads u.head .. u.head + n - 1 of one column or tile. */
static void run_body(struct attention *t, struct heads_unit u)
{
	each_head(t);
	attention_begin_rows(t, head_of(t, u));
	end_head(t);
	stream_chunks(t, u);
	each_head(t);
	attention_end_rows(t, head_of(t, u));
	end_head(t);
}

/* The launch's units, column by column. */
static void each_run(struct attention *t)
{
	struct ir *b = t->b;
	ir_s first = ir_sdivi(b, ir_begin(b), t->kv_heads),
	     end = ir_sdivi(b, ir_saddi(b, ir_end(b), t->kv_heads - 1), t->kv_heads);
	ir_s column = ir_var_s(b, first);

	ir_loop(b, ir_ssub(b, end, first));
	ir_s before = ir_smuli(b, column, t->kv_heads);
	ir_s head = ir_var_s(b, ir_smax(b, ir_ssub(b, ir_begin(b), before), ir_sconst(b, 0)));
	ir_s heads = ir_smin(b, ir_ssub(b, ir_end(b), before), ir_sconst(b, t->kv_heads));
	ir_loop(b, ir_sdivi(b, ir_saddi(b, ir_ssub(b, heads, head), t->run - 1), t->run));
	t->n = ir_smin(b, ir_ssub(b, heads, head), ir_sconst(b, t->run));
	run_body(t, (struct heads_unit){ column, head });
	ir_set_s(b, head, ir_saddi(b, head, t->run));
	ir_endloop(b);
	ir_set_s(b, column, ir_saddi(b, column, 1));
	ir_endloop(b);
}

/* Several columns keep more than a run could have at hand, and take their time over each position. */
static unsigned run_of(const struct attention *t)
{
	unsigned bytes = NUMERICS_CHUNK * t->row_bytes, wanted = (PIECE_BYTES + bytes - 1) / bytes;
	unsigned room = RUN_BYTES / (attention_q_bytes(t) + attention_state_bytes(t) + attention_o_bytes(t)),
		 most = wanted < t->kv_heads ? wanted : t->kv_heads;
	return t->columns > 1 || room < 2 ? 1 : most < room ? most : room;
}

/* One column whose values, a whole row at a time, have registers for the sums of all heads: both caches are then read
 * from the first byte to the last. */
static bool streams_of(const struct attention *t)
{
	return t->columns == 1 && t->rows <= t->head_tile && t->vectors <= 8 &&
	       tile_regs(t, t->rows, t->vectors) <= t->regs && tile_vectors(t, t->rows) >= t->parts;
}

bool attention_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = attention_refusal(key);
	if (refusal)
		return build_refuse(key, err, refusal);
	if (target->waves > 1) {
		attention_wave_build(b, key, target);
		return true;
	}
	struct attention t = {
		.b = b,
		.w = b->lanes,
		.parts = math_parts(b),
		.dims = key->head_dim,
		.group = key->heads / key->kv_heads,
		.element = heads_kv_bytes(key),
		.row_bytes = heads_kv_row_bytes(key),
		.int8 = heads_kv_bytes(key) == 1,
		.kv_heads = key->kv_heads,
		.window = key->flags & KEY_WINDOW,
		.columns = key->tile_n ? key->tile_n : 1
	};
	t.rows = t.columns * t.group;
	t.vectors = (t.dims + t.w - 1) / t.w;
	t.regs = target->vector_regs < MAX_REGS ? target->vector_regs : MAX_REGS;
	t.head_tile = t.regs >= 32 ? 16 : 6; /* making floats of what is cached costs as many operations as two fma: the
	                                        more heads share them the better */
	t.run = run_of(&t);
	t.streams = streams_of(&t);
	t.second_level = target->prefetch_to_l2;
	t.q = ir_local(b, t.run * attention_q_bytes(&t) + t.w * 4);
	t.scores = ir_local(b, t.rows * SCORE_BYTES);
	t.state = ir_local(b, t.run * attention_state_bytes(&t));
	t.o = ir_local(b, t.run * attention_o_bytes(&t));
	if (t.columns > 1)
		t.chunk_o = ir_local(b, attention_o_bytes(&t));

	t.arg = ir_arg(b);
	each_run(&t);
	return true;
}
