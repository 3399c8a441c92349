/* kernels-templates/attention/attention_values.c - the values of a chunk, weighted and summed: a dimension in every
 * lane. */
#include "kernels-templates/attention/attention_parts.h"

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
		attention_tile_step(t, s, v, r * t->row_bytes, p, (int32_t)(r * 4), 0);
	ir_set_a(b, v, ir_aaddi(b, v, rows * t->row_bytes));
	ir_set_a(b, p, ir_aaddi(b, p, rows * 4));
}

/* Several columns: where the tile's o lies. */
static ir_a chunk_o_at(const struct attention *t, const struct tile_range *heads, const struct tile_range *dims)
{
	return attention_at(t, attention_at(t, t->chunk_o, heads, (unsigned)attention_lanes_bytes(t, t->vectors)), dims,
	                    (unsigned)attention_lanes_bytes(t, 1));
}

static void load_tile(const struct attention *t, struct tile *s, const struct tile_range *heads,
                      const struct tile_range *dims)
{
	ir_a from = chunk_o_at(t, heads, dims);
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned i = 0; i < s->n; i++)
			s->sum[h * s->n + i] =
				ir_var_f(t->b, ir_fload(t->b, from, attention_lanes_bytes(t, h * t->vectors + i), 0));
}

static void store_tile(const struct attention *t, const struct tile *s, const struct tile_range *heads,
                       const struct tile_range *dims)
{
	ir_a to = chunk_o_at(t, heads, dims);
	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned i = 0; i < s->n; i++)
			ir_fstore(t->b, to, s->sum[h * s->n + i], attention_lanes_bytes(t, h * t->vectors + i), 0);
}

void attention_merge_rows(const struct attention *t)
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

/* A part of the context: o as it is, among the chunk's records. */
static void record_tile(const struct attention *t, const struct tile *s, const struct tile_range *heads,
                        const struct tile_range *dims)
{
	ir_a rows = attention_at(t, attention_record_of_head(t), heads, attention_record_bytes(t)),
	     to = attention_at(t, rows, dims, (unsigned)attention_lanes_bytes(t, 1));

	for (unsigned h = 0; h < s->heads; h++)
		for (unsigned i = 0; i < s->n; i++)
			ir_fstore(t->b, to, s->sum[h * s->n + i],
			          (int32_t)(h * attention_record_bytes(t)) + attention_lanes_bytes(t, i), 0);
}

/* O = O * a + o * b for the tile's dimensions. */
static void merge_tile(const struct attention *t, const struct tile *s, const struct tile_range *heads,
                       const struct tile_range *dims)
{
	struct ir *b = t->b;
	ir_a state = attention_at(t, attention_of_head(t, t->state, attention_state_bytes(t)), heads,
	                          (unsigned)attention_lanes_bytes(t, STATE_VECTORS));
	ir_a o = attention_at(t,
	                      attention_at(t, attention_of_head(t, t->o, attention_o_bytes(t)), heads,
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
static void value_fours(const struct attention *t, struct tile *s, ir_a v, ir_a p, const struct tile_range *dims,
                        ir_s fours)
{
	struct ir *b = t->b;

	if (t->streams) {
		unsigned rows = prefetch_value_rows(t);
		ir_s strips = ir_sshri(b, ir_saddi(b, fours, rows / 4 - 1), (unsigned)__builtin_ctz(rows / 4)),
		     strip = ir_loop(b, strips);
		s->prefetch = prefetch_stream(t, &(struct strip){ v, strip, strips, rows * t->row_bytes });
		fours = ir_smin(b, ir_ssub(b, fours, ir_smuli(b, strip, rows / 4)), ir_sconst(b, rows / 4));
	} else {
		ir_a next = ir_aadd(b, t->keys, prefetch_next(t));
		s->prefetch = prefetch_from(
			t,
			t->int8 ? ir_aaddi(b, next, NUMERICS_CHUNK * t->row_bytes / t->vectors * dims->first)
				: attention_at(t, next, dims, NUMERICS_CHUNK * t->w * t->element),
			1);
	}
	ir_loop(b, fours);
	prefetch_emit(t, &s->prefetch,
	              4 * (t->int8 ? (dims->size * t->row_bytes + t->vectors - 1) / t->vectors
	                           : dims->size * t->w * t->element));
	value_rows(t, s, v, p, 4);
	ir_endloop(b);
	if (t->streams)
		ir_endloop(b);
}

/* Some vectors of dimensions for a tile of heads: the chunk's o, merged into O. */
static void value_tile(const struct attention *t, const struct tile_range *dims, const void *context)
{
	const struct tile_range *heads = context;
	struct ir *b = t->b;
	struct tile s = { .heads = heads->size, .n = dims->size, .head_bytes = SCORE_BYTES };
	ir_s count = t->columns > 1 ? attention_common_end(t) : attention_chunk_end(t);
	ir_a p = attention_at(t, t->scores, heads, SCORE_BYTES);
	ir_a v = ir_aadd(b, t->keys, attention_cache_step(t, ATTENTION_KEYS, ATTENTION_VALUES));
	v = t->int8 ? v : attention_at(t, v, dims, t->w * t->element);

	if (t->window) {
		ir_s begin = attention_common_begin(t);
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
		attention_tile_clear(t, &s);
	value_fours(t, &s, v, p, dims, ir_sshri(b, count, 2));
	ir_loop(b, ir_sandi(b, count, 3));
	value_rows(t, &s, v, p, 1);
	ir_endloop(b);
	if (t->columns > 1)
		store_tile(t, &s, heads, dims);
	else
		(t->context_parts ? record_tile : merge_tile)(t, &s, heads, dims);
}

/* What not all columns see lies before what they all see (head), or behind it: in the last chunk column c sees c
 * positions more than the first one, and where windows begin it sees c less. Where a column's share begins, and how
 * long it is, or less than 0. Cheaper to make again than to keep. */
static ir_s rest_begin(const struct attention *t, bool head, ir_s column)
{
	return head ? attention_column_begin(t, column) : attention_common_end(t);
}

static ir_s rest_count(const struct attention *t, bool head, ir_s column)
{
	ir_s end = attention_column_end(t, column);
	return ir_ssub(t->b, head ? ir_smin(t->b, attention_common_begin(t), end) : end, rest_begin(t, head, column));
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
	                             attention_cache_step(t, ATTENTION_KEYS, ATTENTION_VALUES)));
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

void attention_value_rests(const struct attention *t, bool head)
{
	struct ir *b = t->b;
	enum { VECTORS = 8 };
	ir_s max = head ? ir_ssub(b, attention_common_begin(t), attention_chunk_begin(t))
	                : ir_ssub(b, attention_chunk_end(t), attention_common_end(t));
	ir_s some = ir_smin(b, ir_smax(b, max, ir_sconst(b, 0)), ir_sconst(b, 1));
	ir_s column = ir_loop(b, ir_smuli(b, some, t->columns));

	for (unsigned first = 0; first < t->vectors; first += VECTORS)
		value_rest(t, head, column, first, t->vectors - first < VECTORS ? t->vectors - first : VECTORS);
	ir_endloop(b);
}

void attention_value_heads(const struct attention *t, const struct tile_range *heads, const void *context)
{
	(void)context;
	attention_each_tile(t, t->vectors, t->streams ? t->vectors : attention_tile_vectors(t, heads->size), t->int8,
	                    value_tile, heads);
}
