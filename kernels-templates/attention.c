/* kernels-templates/attention.c - attention over the KV cache, in chunks of positions, as IR.
 *
 * Owns: KEY_ATTENTION, numerics.h rule 9. A unit streams its head's keys and values once, chunk by chunk, for all the query heads that
 * share them: scores with a position in every lane, softmax, then values with a dimension in every lane. Tiles of query heads share
 * each load; how large they are follows the target's registers and never changes a bit of the result.
 * An editor keeps this: positions that are not visible may be read, in whole groups of blocks, but what was read is replaced before it is used
 * (keys), and not read at all (values): the cache holds anything there.
 */
#include <assert.h>
#include <math.h>

#include "kernels-templates/heads.h"

enum {
	STATE_MAX, STATE_SUM, STATE_OLD, STATE_NEW,      /* M, L, and this chunk's a and b; one vector each, equal lanes */
	STATE_VECTORS,
	SCORE_BYTES = NUMERICS_CHUNK * 4,                /* one head's scores, later its p */
	UNROLL = 4, LINE = 64,
	MAX_GROUP = 128,                                 /* bounds what a call keeps on its stack */
	MAX_REGS = 32, MAX_SUMS = 32
};

struct attention {
	struct ir *b;
	unsigned w, parts, dims, vectors /* of a head */, group /* query heads per kv head */, element;
	unsigned regs, head_tile;
	bool window;
	ir_a q, scores, state, o;        /* local: [group][dims], [group][128], [group][STATE_VECTORS][w], [group][vectors * w] */
	ir_a keys;                       /* variable: this chunk's keys */
	ir_s values_minus_keys;          /* a chunk's keys and values lie equally far into their caches */
	ir_s hi, lo;                     /* visible positions of this chunk, from its start: lo..hi-1; lo only with a window */
};

/* n things in tiles of at most max: count[0] tiles of size[0], then count[1] of one less. */
struct split { unsigned size[2], count[2]; };

static struct split split_evenly(unsigned n, unsigned max)
{
	unsigned tiles = (n + max - 1) / max;
	struct split s = { { n / tiles + 1, n / tiles }, { n % tiles, tiles - n % tiles } };
	return s;
}

/* A tile of h heads by v vectors keeps h * v sums, the smaller side, and one of the larger side at a time. */
static unsigned tile_regs(unsigned h, unsigned v)
{
	return h * v + (h < v ? h : v) + 1;
}

/* The most vectors beside h heads: 8 sums hide the latency of fma; more only help when they share loads. */
static unsigned tile_vectors(const struct attention *t, unsigned h)
{
	unsigned v = h == 1 ? 8 : h == 2 ? 4 : 1;
	while (h > 2 && v < 4 && tile_regs(h, v + 1) <= t->regs)
		v++;
	return v;
}

/* Calls emit for every tile of the split, in a loop where tiles of a size are many; at[] are addresses that move step[] bytes per thing. */
enum { MAX_CURSORS = 3 };
struct cursors { unsigned n; ir_a at[MAX_CURSORS]; uint32_t step[MAX_CURSORS]; };
typedef void (*tile_fn)(const struct attention *t, unsigned size, const ir_a at[], const void *context);

static void each_tile(const struct attention *t, struct split s, struct cursors c, tile_fn emit, const void *context)
{
	struct ir *b = t->b;
	for (unsigned i = 0; i < 2; i++) {
		bool many = s.count[i] > 1;
		if (!s.count[i])
			continue;
		for (unsigned j = 0; many && j < c.n; j++)
			c.at[j] = ir_var_a(b, c.at[j]);
		if (many)
			ir_loop(b, ir_sconst(b, s.count[i]));
		emit(t, s.size[i], c.at, context);
		for (unsigned j = 0; j < c.n; j++) {
			ir_a next = ir_aaddi(b, c.at[j], (int64_t)c.step[j] * s.size[i]);
			if (many)
				ir_set_a(b, c.at[j], next);
			else
				c.at[j] = next;
		}
		if (many)
			ir_endloop(b);
	}
}

static int32_t lanes_bytes(const struct attention *t, unsigned vectors)
{
	return (int32_t)(vectors * t->w * 4);
}

static int32_t state_at(const struct attention *t, unsigned what)
{
	return lanes_bytes(t, what);
}

static ir_f load_cache(const struct attention *t, ir_a p, unsigned elements)
{
	return t->element == 2 ? ir_fload_h(t->b, p, (int32_t)(elements * 2)) : ir_fload(t->b, p, (int32_t)(elements * 4), 0);
}

/* sums[h][v] = fma(vector v, scalar h, sums[h][v]): vector v lies at element at[v] behind `vectors`, scalar h step[h] bytes behind `scalars`. */
struct tile {
	unsigned heads, n;
	ir_f sum[MAX_SUMS];
	unsigned at[8];
	uint32_t head_bytes;
};

static void tile_clear(const struct attention *t, struct tile *s)
{
	assert(s->heads * s->n <= MAX_SUMS && s->n <= 8);
	for (unsigned i = 0; i < s->heads * s->n; i++)
		s->sum[i] = ir_var_f(t->b, ir_fconst(t->b, 0.0f));
}

static void tile_step(const struct attention *t, struct tile *s, ir_a vectors, unsigned elements, ir_a scalars, int32_t disp)
{
	struct ir *b = t->b;
	ir_f held[8];
	bool hold_heads = s->heads < s->n;

	for (unsigned i = 0; i < (hold_heads ? s->heads : s->n); i++)
		held[i] = hold_heads ? ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes)) : load_cache(t, vectors, elements + s->at[i]);
	for (unsigned i = 0; i < (hold_heads ? s->n : s->heads); i++) {
		ir_f one = hold_heads ? load_cache(t, vectors, elements + s->at[i]) : ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes));
		for (unsigned j = 0; j < (hold_heads ? s->heads : s->n); j++) {
			ir_f *sum = &s->sum[hold_heads ? j * s->n + i : i * s->n + j];
			ir_set_f(b, *sum, ir_ffma(b, hold_heads ? one : held[j], hold_heads ? held[j] : one, *sum));
		}
	}
}

static void prefetch_lines(const struct attention *t, ir_a p, unsigned disp, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i += LINE)
		ir_prefetch(t->b, p, (int32_t)(disp + i));
}

/* ---- scores */

/* One tile of heads against one group of `blocks` blocks, or part of a block; keys moves behind the group's first block. */
static void score_tile(const struct attention *t, struct tile *s, ir_a keys, ir_a q, ir_a scores, unsigned first, bool fetch)
{
	struct ir *b = t->b;
	unsigned unroll = t->dims % UNROLL ? 2 : UNROLL, row = 32 * t->element;
	ir_a scalars = ir_var_a(b, q);

	for (unsigned v = 0; v < s->n; v++)
		s->at[v] = (first + v) / t->parts * 32 * t->dims + (first + v) % t->parts * t->w;
	tile_clear(t, s);
	ir_loop(b, ir_sconst(b, t->dims / unroll));
	if (fetch)
		prefetch_lines(t, ir_aadd(b, keys, t->values_minus_keys), 0, unroll * row);
	for (unsigned d = 0; d < unroll; d++)
		tile_step(t, s, keys, d * 32, scalars, (int32_t)(d * 4));
	ir_set_a(b, keys, ir_aaddi(b, keys, unroll * row));
	ir_set_a(b, scalars, ir_aaddi(b, scalars, unroll * 4));
	ir_endloop(b);
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned v = 0; v < s->n; v++)
			ir_fstore(b, scores, s->sum[h * s->n + v], (int32_t)(h * SCORE_BYTES) + lanes_bytes(t, first + v), 0);
}

/* The visible part of the chunk for heads `h` at q and scores, group by group. What it reads for invisible positions stays among their scores. */
static void score_heads(const struct attention *t, unsigned h, const ir_a at[], const void *context)
{
	ir_a q = at[0], scores = at[1];
	struct ir *b = t->b;
	(void)context;
	unsigned n = tile_vectors(t, h), blocks, block_bytes = 32 * t->dims * t->element, shift = 5;
	while (n & (n - 1))
		n &= n - 1;
	blocks = n > t->parts ? n / t->parts : 1;
	blocks = blocks > 2 ? 2 : blocks;
	n = n > blocks * t->parts ? blocks * t->parts : n;
	shift += blocks == 2;
	ir_s end = ir_sshri(b, ir_saddi(b, t->hi, blocks * 32 - 1), shift);
	ir_a keys = ir_var_a(b, t->keys), to = ir_var_a(b, scores);

	if (t->window) {
		ir_s skip = ir_sshri(b, t->lo, shift);
		end = ir_ssub(b, end, skip);
		ir_set_a(b, keys, ir_aadd(b, keys, ir_smuli(b, skip, blocks * block_bytes)));
		ir_set_a(b, to, ir_aadd(b, to, ir_smuli(b, skip, blocks * 128)));
	}
	ir_loop(b, end);
	for (unsigned first = 0; first < blocks * t->parts; first += n) {
		struct tile s = { .heads = h, .n = n, .head_bytes = t->dims * 4 };
		bool last = first + n >= blocks * t->parts;
		score_tile(t, &s, keys, q, to, first, first == 0);
		if (!last)
			ir_set_a(b, keys, ir_aaddi(b, keys, -(int64_t)block_bytes));
		else if (blocks > 1)
			ir_set_a(b, keys, ir_aaddi(b, keys, (blocks - 1) * block_bytes));
	}
	ir_set_a(b, to, ir_aaddi(b, to, blocks * 128));
	ir_endloop(b);
}

static void score_chunk(const struct attention *t)
{
	struct cursors c = { 2, { t->q, t->scores }, { t->dims * 4, SCORE_BYTES } };
	each_tile(t, split_evenly(t->group, t->head_tile), c, score_heads, NULL);
}

/* ---- softmax */

/* The chunk's blocks with a visible position: their number; *skip is the first one's. */
static ir_s visible_blocks(const struct attention *t, ir_s *skip)
{
	struct ir *b = t->b;
	ir_s end = ir_sshri(b, ir_saddi(b, t->hi, 31), 5);
	if (!t->window)
		return end;
	*skip = ir_sshri(b, t->lo, 5);
	return ir_ssub(b, end, *skip);
}

/* Scores of invisible positions become -inf; returns the chunk's maximum. */
static ir_f mask_scores(const struct attention *t, ir_a first, ir_s blocks, ir_s skip)
{
	struct ir *b = t->b;
	ir_a s = ir_var_a(b, first);
	ir_f hidden = ir_fconst(b, -INFINITY), part[MATH_MAX_PARTS];
	ir_i end = ir_isplat(b, t->hi), begin = { 0 };

	if (t->window) {
		ir_i before = ir_isplat(b, ir_sshli(b, skip, 5));
		end = ir_isub(b, end, before);
		begin = ir_var_i(b, ir_isub(b, ir_isplat(b, ir_saddi(b, t->lo, -1)), before));
	}
	end = ir_var_i(b, end);
	for (unsigned v = 0; v < t->parts; v++)
		part[v] = ir_var_f(b, hidden);
	ir_loop(b, blocks);
	for (unsigned v = 0; v < t->parts; v++) {
		ir_i at = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(v * t->w)));
		ir_m seen = ir_igt(b, end, at);
		if (t->window)
			seen = ir_mand(b, seen, ir_igt(b, at, begin));
		ir_f x = ir_fsel(b, seen, ir_fload(b, s, lanes_bytes(t, v), 0), hidden);
		ir_fstore(b, s, x, lanes_bytes(t, v), 0);
		ir_set_f(b, part[v], ir_fmax(b, x, part[v]));
	}
	ir_set_a(b, s, ir_aaddi(b, s, 128));
	ir_set_i(b, end, ir_isub(b, end, ir_iconst(b, 32)));
	if (t->window)
		ir_set_i(b, begin, ir_isub(b, begin, ir_iconst(b, 32)));
	ir_endloop(b);
	return math_lane_max(b, part);
}

/* Scores become p; returns their sum. */
static ir_f exp_scores(const struct attention *t, ir_a first, ir_s blocks, ir_f max)
{
	struct ir *b = t->b;
	ir_a s = ir_var_a(b, first);
	ir_f part[MATH_MAX_PARTS];

	for (unsigned v = 0; v < t->parts; v++)
		part[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, blocks);
	for (unsigned v = 0; v < t->parts; v++) {
		ir_f p = math_exp(b, ir_fsub(b, ir_fload(b, s, lanes_bytes(t, v), 0), max));
		ir_fstore(b, s, p, lanes_bytes(t, v), 0);
		ir_set_f(b, part[v], ir_fadd(b, part[v], p));
	}
	ir_set_a(b, s, ir_aaddi(b, s, 128));
	ir_endloop(b);
	return math_lane_sum(b, part);
}

static void softmax_head(const struct attention *t, ir_a scores, ir_a state)
{
	struct ir *b = t->b;
	ir_s skip = { 0 }, blocks = visible_blocks(t, &skip);
	if (t->window)
		scores = ir_aadd(b, scores, ir_sshli(b, skip, 7));
	ir_f max = mask_scores(t, scores, blocks, skip);
	ir_f sum = exp_scores(t, scores, blocks, max);
	ir_f old_max = ir_fload(b, state, state_at(t, STATE_MAX), 0);
	ir_f new_max = ir_fmax(b, old_max, max);
	ir_f keep = math_exp(b, ir_fsub(b, old_max, new_max));
	ir_f join = math_exp(b, ir_fsub(b, max, new_max));
	ir_f total = ir_ffma(b, ir_fload(b, state, state_at(t, STATE_SUM), 0), keep, ir_fmul(b, sum, join));

	ir_fstore(b, state, new_max, state_at(t, STATE_MAX), 0);
	ir_fstore(b, state, total, state_at(t, STATE_SUM), 0);
	ir_fstore(b, state, keep, state_at(t, STATE_OLD), 0);
	ir_fstore(b, state, join, state_at(t, STATE_NEW), 0);
}

static void softmax_chunk(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a scores = ir_var_a(b, t->scores), state = ir_var_a(b, t->state);
	ir_loop(b, ir_sconst(b, t->group));
	softmax_head(t, scores, state);
	ir_set_a(b, scores, ir_aaddi(b, scores, SCORE_BYTES));
	ir_set_a(b, state, ir_aaddi(b, state, lanes_bytes(t, STATE_VECTORS)));
	ir_endloop(b);
}

/* ---- values */

/* What the tiles of a chunk's values share, and the scores and state of the heads they belong to. */
struct values {
	ir_s keys_minus_values, count;
	ir_a first;                      /* the first visible row */
	unsigned heads;
	ir_a p, state, o;
};

static void value_rows(const struct attention *t, struct tile *s, const struct values *c, ir_a v, ir_a p, unsigned rows)
{
	struct ir *b = t->b;
	unsigned row = t->dims * t->element, chunk = NUMERICS_CHUNK * row, part = s->n * t->w * t->element;
	ir_a next = ir_aadd(b, v, c->keys_minus_values);

	if (rows > 1 && part >= row)
		prefetch_lines(t, next, chunk, rows * row);
	for (unsigned r = 0; rows > 1 && part < row && r < rows; r++)
		prefetch_lines(t, next, chunk + r * row, part);
	for (unsigned r = 0; r < rows; r++)
		tile_step(t, s, v, r * t->dims, p, (int32_t)(r * 4));
	ir_set_a(b, v, ir_aaddi(b, v, rows * row));
	ir_set_a(b, p, ir_aaddi(b, p, rows * 4));
}

/* n vectors of dimensions of a tile of heads: the chunk's o, merged into O. */
static void value_tile(const struct attention *t, unsigned n, const ir_a at[], const void *context)
{
	const struct values *c = context;
	struct ir *b = t->b;
	struct tile s = { .heads = c->heads, .n = n, .head_bytes = SCORE_BYTES };
	ir_a v = ir_var_a(b, at[0]), p = ir_var_a(b, c->p), o = at[1];

	for (unsigned i = 0; i < n; i++)
		s.at[i] = i * t->w;
	tile_clear(t, &s);
	ir_loop(b, ir_sshri(b, c->count, 2));
	value_rows(t, &s, c, v, p, 4);
	ir_endloop(b);
	ir_loop(b, ir_sandi(b, c->count, 3));
	value_rows(t, &s, c, v, p, 1);
	ir_endloop(b);
	for (unsigned h = 0; h < c->heads; h++) {
		int32_t head = h * (unsigned)lanes_bytes(t, STATE_VECTORS);
		ir_f keep = ir_fload(b, c->state, head + state_at(t, STATE_OLD), 0);
		ir_f join = ir_fload(b, c->state, head + state_at(t, STATE_NEW), 0);
		for (unsigned i = 0; i < n; i++) {
			int32_t disp = lanes_bytes(t, h * t->vectors + i);
			ir_f more = ir_fmul(b, s.sum[h * n + i], join);
			ir_fstore(b, o, ir_ffma(b, ir_fload(b, o, disp, 0), keep, more), disp, 0);
		}
	}
}

static void value_heads(const struct attention *t, unsigned heads, const ir_a at[], const void *context)
{
	struct values c = *(const struct values *)context;
	struct cursors dims = { 2, { c.first, at[2] }, { t->w * t->element, t->w * 4 } };
	c.heads = heads;
	c.p = t->window ? ir_aadd(t->b, at[0], ir_sshli(t->b, t->lo, 2)) : at[0];
	c.state = at[1];
	each_tile(t, split_evenly(t->vectors, tile_vectors(t, heads)), dims, value_tile, &c);
}

static void value_chunk(const struct attention *t)
{
	struct ir *b = t->b;
	struct cursors heads = { 3, { t->scores, t->state, t->o },
	                         { SCORE_BYTES, (uint32_t)lanes_bytes(t, STATE_VECTORS), (uint32_t)lanes_bytes(t, t->vectors) } };
	struct values c = { .count = t->hi };

	c.keys_minus_values = ir_ssub(b, ir_sconst(b, 0), t->values_minus_keys);
	c.first = ir_aadd(b, t->keys, t->values_minus_keys);
	if (t->window) {
		c.first = ir_aadd(b, c.first, ir_smuli(b, t->lo, t->dims * t->element));
		c.count = ir_ssub(b, t->hi, t->lo);
	}
	each_tile(t, split_evenly(t->group, t->head_tile), heads, value_heads, &c);
}

/* ---- a unit */

static void clear_state(const struct attention *t)
{
	struct ir *b = t->b;
	ir_a state = ir_var_a(b, t->state), o = ir_var_a(b, t->o);
	ir_f zero = ir_fconst(b, 0.0f);

	ir_loop(b, ir_sconst(b, t->group));
	ir_fstore(b, state, ir_fconst(b, -INFINITY), state_at(t, STATE_MAX), 0);
	ir_fstore(b, state, zero, state_at(t, STATE_SUM), 0);
	for (unsigned v = 0; v < t->vectors; v++)
		ir_fstore(b, o, zero, lanes_bytes(t, v), 0);
	ir_set_a(b, state, ir_aaddi(b, state, lanes_bytes(t, STATE_VECTORS)));
	ir_set_a(b, o, ir_aaddi(b, o, lanes_bytes(t, t->vectors)));
	ir_endloop(b);
}

/* The unit's queries lie side by side; near the stack they need no address register in the inner loops. */
static void copy_queries(const struct attention *t, ir_a from)
{
	struct ir *b = t->b;
	unsigned n = t->group * t->dims, tail = n % t->w;
	ir_a to = ir_var_a(b, t->q);

	from = ir_var_a(b, from);
	ir_loop(b, ir_sconst(b, n / t->w));
	ir_fstore(b, to, ir_fload(b, from, 0, 0), 0, 0);
	ir_set_a(b, from, ir_aaddi(b, from, lanes_bytes(t, 1)));
	ir_set_a(b, to, ir_aaddi(b, to, lanes_bytes(t, 1)));
	ir_endloop(b);
	if (tail)
		ir_fstore(b, to, ir_fload(b, from, 0, tail), 0, tail);
}

static void store_heads(const struct attention *t, ir_a out)
{
	struct ir *b = t->b;
	ir_a state = ir_var_a(b, t->state), o = ir_var_a(b, t->o);

	out = ir_var_a(b, out);
	ir_loop(b, ir_sconst(b, t->group));
	ir_f sum = ir_fload(b, state, state_at(t, STATE_SUM), 0);
	for (unsigned i = 0; i < t->vectors; i++) {
		unsigned left = t->dims - i * t->w;
		ir_fstore(b, out, ir_fdiv(b, ir_fload(b, o, lanes_bytes(t, i), 0), sum), lanes_bytes(t, i), left < t->w ? left : 0);
	}
	ir_set_a(b, state, ir_aaddi(b, state, lanes_bytes(t, STATE_VECTORS)));
	ir_set_a(b, o, ir_aaddi(b, o, lanes_bytes(t, t->vectors)));
	ir_set_a(b, out, ir_aaddi(b, out, t->dims * 4));
	ir_endloop(b);
}

static void stream_chunks(struct attention *t, ir_a arg, struct heads_unit u)
{
	struct ir *b = t->b;
	uint32_t row = t->dims * t->element;
	ir_s p = ir_sadd(b, ir_sload64(b, arg, ATTENTION_POS0 * 8), u.column), chunk = ir_sshri(b, p, 7), skipped = ir_sconst(b, 0);
	ir_s place = ir_smul(b, u.head, ir_sload64(b, arg, ATTENTION_CAPACITY * 8)), hi = ir_saddi(b, p, 1), lo = { 0 };

	if (t->window) {
		lo = ir_smax(b, ir_ssub(b, hi, ir_sload64(b, arg, ATTENTION_SLIDING * 8)), ir_sconst(b, 0));
		ir_s begin = ir_sshri(b, lo, 7);
		chunk = ir_ssub(b, chunk, begin);
		skipped = ir_sshli(b, begin, 7);
		lo = ir_var_s(b, ir_ssub(b, lo, skipped));
		place = ir_sadd(b, place, skipped);
		hi = ir_ssub(b, hi, skipped);
	}
	hi = ir_var_s(b, hi);
	t->keys = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, ATTENTION_KCACHE * 8), ir_smuli(b, place, row)));
	t->values_minus_keys = ir_ssub(b, ir_sload64(b, arg, ATTENTION_VCACHE * 8), ir_sload64(b, arg, ATTENTION_KCACHE * 8));
	ir_loop(b, ir_saddi(b, chunk, 1));
	t->hi = ir_smin(b, hi, ir_sconst(b, NUMERICS_CHUNK));
	if (t->window)
		t->lo = ir_smax(b, lo, ir_sconst(b, 0));
	score_chunk(t);
	softmax_chunk(t);
	value_chunk(t);
	ir_set_a(b, t->keys, ir_aaddi(b, t->keys, NUMERICS_CHUNK * row));
	ir_set_s(b, hi, ir_saddi(b, hi, -NUMERICS_CHUNK));
	if (t->window)
		ir_set_s(b, lo, ir_saddi(b, lo, -NUMERICS_CHUNK));
	ir_endloop(b);
}

static const char *attention_refusal(const struct key *key)
{
	const char *refusal = heads_refusal(key->heads, key->head_dim);
	if (refusal)
		return refusal;
	if (key->kv_heads == 0 || key->heads % key->kv_heads != 0 || key->heads / key->kv_heads > MAX_GROUP)
		return "heads must be a multiple of kv_heads, 128 times at most";
	if (!heads_kv_bytes(key))
		return "the cache must be F16 or F32";
	return NULL;
}

bool attention_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = attention_refusal(key);
	if (refusal)
		return build_refuse(key, err, refusal);
	unsigned width = key->heads * key->head_dim, column_bytes = (unsigned)numerics_pad(width) * 4;
	struct attention t = { .b = b, .w = b->lanes, .parts = math_parts(b), .dims = key->head_dim, .group = key->heads / key->kv_heads,
	                       .element = heads_kv_bytes(key), .window = key->flags & KEY_WINDOW };
	t.vectors = (t.dims + t.w - 1) / t.w;
	t.regs = target->vector_regs < MAX_REGS ? target->vector_regs : MAX_REGS;
	t.head_tile = t.regs >= 32 ? 8 : 6;
	t.q = ir_local(b, (t.group * t.dims + t.w) * 4);
	t.scores = ir_local(b, t.group * SCORE_BYTES);
	t.state = ir_local(b, t.group * (unsigned)lanes_bytes(&t, STATE_VECTORS));
	t.o = ir_local(b, t.group * (unsigned)lanes_bytes(&t, t.vectors));

	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->kv_heads);
	copy_queries(&t, heads_at(b, ir_aload(b, arg, ATTENTION_Q * 8), u, column_bytes, t.group * t.dims * 4));
	clear_state(&t);
	stream_chunks(&t, arg, u);
	ir_a out = ir_aload(b, arg, ATTENTION_OUT * 8);
	store_heads(&t, heads_at(b, out, u, column_bytes, t.group * t.dims * 4));
	heads_zero_pad(b, ir_aadd(b, out, ir_smuli(b, u.column, column_bytes)), width, u.head, key->kv_heads);
	ir_endloop(b);
	return true;
}
