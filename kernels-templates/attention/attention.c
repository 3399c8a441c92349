/* kernels-templates/attention/attention.c - attention over the KV cache, in chunks of positions, as IR.
 *
 * Owns: KEY_ATTENTION, numerics.h rule 9. A unit streams its head's keys and values once, chunk by chunk, for all the
 * query heads that share them, of one column or of several neighbouring ones: scores with a position in every lane,
 * softmax, then values with a dimension in every lane. Tiles of queries share each load; how large they are follows the
 * target's registers and never changes a bit of the result.
 *
 * A chunk has the keys of all heads side by side, and their values. Neighbouring units of one column therefore go
 * through the chunks together, a head after the other in each (a run), so that memory is read in long runs: a
 * prefetch, ours or the processor's, would be in vain at the end of each short one.
 *
 * Columns of a tile begin at a position that is a multiple of their number, so that a chunk has something visible for
 * all of them or for none; the last ones of a chunk may be visible to some only, and are done column by column; so are
 * the first ones that a window leaves to some only, in chunks that some columns may not see at all. What rows begin
 * with and where they end up is attention_rows.c's, what is prefetched attention_prefetch.c's. Tiles are
 * attention_tile.c's, scores and softmax attention_scores.c's, values attention_values.c's. An editor keeps
 * this: positions that are not visible may be read, in whole groups of blocks, but what was read is replaced before it
 * is used (keys), and not read at all (values): the cache holds anything there.
 */
#include "kernels-templates/attention/attention_parts.h"

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

/* Not past the chunk, nor, where columns see what is behind them, past the last position. */
static ir_s not_past(const struct attention *t, ir_s end)
{
	end = ir_smin(t->b, end, ir_sconst(t->b, NUMERICS_CHUNK));
	return t->both ? ir_smin(t->b, end, t->left) : end;
}

ir_s attention_chunk_end(const struct attention *t) { return not_past(t, t->hi); }

ir_s attention_column_end(const struct attention *t, ir_s column)
{
	ir_s hi = t->columns > 1 ? ir_sadd(t->b, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns), column) : t->hi;
	return not_past(t, hi);
}

/* Where the window of a position begins, from the text's start. */
static ir_s period_begin(const struct attention *t, ir_s position)
{
	return ir_smuli(t->b, ir_sdivi(t->b, position, t->period), t->period);
}

/* How far behind the text's start the chunk at hand begins. */
static ir_s chunk_start(const struct attention *t) { return ir_ssub(t->b, ir_saddi(t->b, t->last, 1), t->hi); }

ir_s attention_columns_that_see(const struct attention *t)
{
	struct ir *b = t->b;
	const ir_s all = ir_sconst(b, t->columns);

	if (!t->window)
		return all;
	if (!t->period)
		return ir_smin(b, ir_ssub(b, ir_sconst(b, NUMERICS_CHUNK), attention_first_begin(t)), all);
	ir_s behind = period_begin(t, ir_saddi(b, chunk_start(t), NUMERICS_CHUNK + (int64_t)t->period - 1));
	return ir_smin(b, ir_ssub(b, behind, ir_saddi(b, t->last, 1 - (int64_t)t->columns)), all);
}

ir_s attention_first_begin(const struct attention *t)
{
	if (t->period)
		return ir_ssub(t->b, period_begin(t, ir_saddi(t->b, t->last, 1 - (int64_t)t->columns)), chunk_start(t));
	return ir_ssub(t->b, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns),
	               ir_sload64(t->b, t->arg, ATTENTION_SLIDING * 8));
}

ir_s attention_chunk_begin(const struct attention *t)
{
	return ir_smax(t->b, attention_first_begin(t), ir_sconst(t->b, 0));
}

ir_s attention_column_begin(const struct attention *t, ir_s column)
{
	ir_s lo = attention_first_begin(t);

	if (t->columns > 1 && t->period)
		lo = ir_ssub(t->b,
		             period_begin(t, ir_sadd(t->b, ir_saddi(t->b, t->last, 1 - (int64_t)t->columns), column)),
		             chunk_start(t));
	else if (t->columns > 1)
		lo = ir_sadd(t->b, lo, column);
	return ir_smin(t->b, ir_smax(t->b, lo, ir_sconst(t->b, 0)), ir_sconst(t->b, NUMERICS_CHUNK));
}

ir_s attention_common_begin(const struct attention *t)
{
	return attention_column_begin(t, ir_sconst(t->b, t->columns - 1));
}

ir_s attention_common_end(const struct attention *t)
{
	ir_s end = not_past(t, ir_saddi(t->b, t->hi, 1 - (int64_t)t->columns));
	return t->window ? ir_smax(t->b, end, attention_common_begin(t)) : end;
}

ir_s attention_cache_step(const struct attention *t, unsigned from, unsigned to)
{
	return ir_ssub(t->b, ir_sload64(t->b, t->arg, (int32_t)(to * 8)),
	               ir_sload64(t->b, t->arg, (int32_t)(from * 8)));
}

/* ---- a run of units */

/* The part's share of `chunks` chunks, of which the one at hand is number `first`; those before it are left out. */
static ir_s begin_part(struct attention *t, struct heads_unit u, ir_s first, ir_s chunks)
{
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(t->context_parts);
	ir_s from = ir_sshri(b, ir_smul(b, u.column, chunks), shift),
	     to = ir_sshri(b, ir_smul(b, ir_saddi(b, u.column, 1), chunks), shift);

	ir_set_a(b, t->page, ir_aadd(b, t->page, ir_sshli(b, from, 3)));
	ir_set_s(b, t->hi, ir_ssub(b, t->hi, ir_sshli(b, from, 7)));
	ir_s chunk = ir_sadd(b, first, from);
	ir_s row = ir_smuli(b, ir_sadd(b, ir_smuli(b, chunk, t->kv_heads), u.head), t->group);
	t->record = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_OUT * 8),
	                                ir_smuli(b, row, attention_record_bytes(t))));
	return ir_ssub(b, to, from);
}

/* In the page at hand. */
static ir_a first_keys(const struct attention *t, struct heads_unit u)
{
	struct ir *b = t->b;
	ir_s offset = ir_sload64(b, t->arg, ATTENTION_KEYS * 8);

	if (!t->latent)
		offset = ir_sadd(b, offset, ir_smuli(b, u.head, NUMERICS_CHUNK * t->row_bytes));
	return ir_aadd(b, ir_aload(b, t->page, 0), offset);
}

static void stream_chunks(struct attention *t, struct heads_unit u)
{
	struct ir *b = t->b;
	ir_s p = t->columns > 1     ? ir_saddi(b, attention_tile_base(t, u.column), t->columns - 1)
	         : t->context_parts ? ir_sload64(b, t->arg, ATTENTION_POS0 * 8)
	                            : ir_sadd(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8), u.column);
	ir_s last = p;
	if (t->both) {
		t->left = ir_var_s(b, ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8));
		last = ir_smin(b, p, ir_saddi(b, t->left, -1));
	}
	ir_s chunks = ir_saddi(b, ir_sshri(b, last, 7), 1);
	if (t->columns > 1) { /* a tile past the last column has none */
		ir_s end = ir_sadd(b, ir_sload64(b, t->arg, ATTENTION_POS0 * 8),
		                   ir_sload64(b, t->arg, ATTENTION_COLUMNS * 8));
		chunks = ir_smul(b, chunks,
		                 ir_smin(b, ir_ssub(b, end, attention_tile_base(t, u.column)), ir_sconst(b, 1)));
	}
	t->hi = ir_var_s(b, ir_saddi(b, p, 1));
	t->last = p;
	t->page = ir_var_a(b, ir_aload(b, t->arg, ATTENTION_PAGES * 8));
	ir_s skip = { 0 };
	if (t->window) {
		skip = ir_sshri(b, attention_chunk_begin(t), 7);
		chunks = ir_ssub(b, chunks, skip);
		ir_set_a(b, t->page, ir_aadd(b, t->page, ir_sshli(b, skip, 3)));
		ir_set_s(b, t->hi, ir_ssub(b, t->hi, ir_sshli(b, skip, 7)));
		if (t->both)
			ir_set_s(b, t->left, ir_ssub(b, t->left, ir_sshli(b, skip, 7)));
	}
	if (t->context_parts)
		chunks = begin_part(t, u, t->window ? skip : ir_sconst(b, 0), chunks);
	ir_loop(b, chunks);
	t->keys = ir_var_a(b, first_keys(t, u));
	each_head(t);
	attention_each_tile(t, t->rows, t->head_tile, false, attention_score_heads, NULL);
	attention_softmax_chunk(t);
	if (t->columns > 1 && t->window)
		attention_value_rests(t, true);
	if (t->latent)
		attention_latent_values(t);
	else
		attention_each_tile(t, t->rows, t->head_tile, false, attention_value_heads, NULL);
	if (t->columns > 1)
		attention_value_rests(t, false);
	if (t->columns > 1 || t->latent)
		attention_merge_rows(t);
	if (t->run > 1)
		ir_set_a(b, t->keys, ir_aaddi(b, t->keys, NUMERICS_CHUNK * t->row_bytes));
	end_head(t);
	if (t->context_parts)
		ir_set_a(b, t->record, ir_aaddi(b, t->record, t->kv_heads * t->group * attention_record_bytes(t)));
	ir_set_a(b, t->page, ir_aaddi(b, t->page, 8));
	ir_set_s(b, t->hi, ir_saddi(b, t->hi, -NUMERICS_CHUNK));
	if (t->both)
		ir_set_s(b, t->left, ir_saddi(b, t->left, -NUMERICS_CHUNK));
	ir_endloop(b);
}

static const char *attention_refusal(const struct key *key, const struct target *target)
{
	const char *refusal =
		key->flags & KEY_LATENT ? attention_latent_refusal(key) : heads_refusal(key->heads, key->head_dim);

	if (!refusal && !(key->flags & KEY_LATENT) && key->k && (!(key->flags & KEY_WINDOW) || key->flags & KEY_BOTH))
		refusal = "windows that begin at multiples are windows, and reach to one side";
	if (refusal)
		return refusal;
	if (key->kv_heads == 0 || key->heads % key->kv_heads != 0 || key->heads / key->kv_heads > MAX_ROWS)
		return "heads must be a multiple of kv_heads, 128 times at most";
	if (key->rows && key->flags & KEY_ROTATES && key->tile_n > 1 &&
	    !template_attention_columns(target, key->heads, key->kv_heads, key->head_dim, key->tile_n))
		return "the queries of so many columns do not fit the shared bytes of a group";
	const bool columns = key->rows && key->flags & KEY_ROTATES; /* any number of them */
	if ((key->tile_n & (key->tile_n - 1) && !columns) || key->tile_n > TEMPLATE_MAX_QUERIES ||
	    (key->tile_n > 1 && key->heads / key->kv_heads * key->tile_n > MAX_ROWS))
		return "a column tile has 1, 2, 4, 8 or 16 columns, and 128 queries a kv head at most";
	if (key->rows & (key->rows - 1) || key->rows > TEMPLATE_MAX_PARTS ||
	    (key->rows && ((key->tile_n > 1 && !columns) || key->flags & KEY_LATENT)))
		return "a context has a power of two of parts, 64 at most, of one column or of what rotates, and not "
		       "of "
		       "latent attention";
	if (key->flags & KEY_BOTH && (key->rows || key->flags & (KEY_ROTATES | KEY_LATENT)))
		return "what sees both sides rotates nothing, has no parts, and is not latent attention";
	if (key->flags & KEY_BIAS && key->flags & KEY_LATENT)
		return "scores of latent attention are not biased";
	if (!heads_kv_bytes(key))
		return "the cache must be F16, F32 or Q8_0";
	if (key->flags & KEY_AWAITED && (!(key->flags & KEY_ROTATES) || !key->rows))
		return "what rotates and has parts may await its input";
	if (key->row_blocks && (key->tile_n < 2 || !attention_wave_apart(key, target)))
		return "columns lie apart where there are several, in parts, and units have room for copies";
	if (!(key->flags & KEY_ROTATES))
		return key->flags & (KEY_QK_NORM | KEY_VALUE_NORM | KEY_QUANTISED_OUT)
		               ? "norms stand, and results become int8, where it rotates"
		               : NULL;
	if (key->flags & KEY_LATENT || (key->tile_n > 1 && !key->rows) ||
	    !template_attention_rotates(target, key->heads, key->kv_heads, key->head_dim))
		return "only groups of waves rotate, one column whose queries fit their shared bytes, or parts of a "
		       "context";
	if (key->flags & KEY_QUANTISED_OUT && (key->rows || key->head_dim % 32 || key->flags & KEY_AWAITED))
		return "heads that become int8 are whole blocks of 32, in one part, which nobody awaits";
	return NULL;
}

unsigned template_attention_tile_n(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t columns)
{
	enum { ROWS = 16, MANY = 64 /* columns, whose tiles are enough for a card */ };
	unsigned n = 1, own = target->waves > 1 ? attention_wave_columns(target, heads, kv_heads) : 0,
		 max = target->waves > 1 ? attention_wave_rows(target->waves, head_dim) : ROWS;
	if (own && columns >= MANY)
		return own;
	while (n * 2 <= columns && n * 2 * (heads / kv_heads) <= max)
		n *= 2;
	return n;
}

unsigned template_attention_parts(const struct target *target, uint32_t kv_heads)
{
	enum { UNITS = 128, MIN = 4 };
	unsigned n = MIN;

	while (n * kv_heads < UNITS && n < TEMPLATE_MAX_PARTS)
		n *= 2;
	return target->lane_bytes && target->waves == 1 ? 0 : n;
}

/* One column: as many units as keep a machine busy, of few heads; several are units themselves, and heads that go
 * together share what they load. */
unsigned template_latent_units(uint32_t heads, uint32_t columns)
{
	enum { NARROW = 8, MIN_UNITS = 8, MANY = 32 };
	unsigned group = columns > 1 ? MANY : NARROW;

	while (group > 1 && (heads % group || (columns == 1 && heads / group < MIN_UNITS)))
		group--;
	return heads / group;
}

/* The run's head at hand. */
static struct heads_unit head_of(const struct attention *t, struct heads_unit u)
{
	return t->run > 1 ? (struct heads_unit){ u.column, ir_sadd(t->b, u.head, t->at) } : u;
}

/* Heads u.head .. u.head + n - 1 of one column or tile, or in one part of the context. */
static void run_body(struct attention *t, struct heads_unit u)
{
	struct heads_unit rows = u;

	if (t->context_parts)
		rows.column = ir_sconst(t->b, 0);
	t->first_head = u.head;
	each_head(t);
	attention_begin_rows(t, head_of(t, rows));
	end_head(t);
	stream_chunks(t, u);
	if (t->context_parts)
		return;
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
	unsigned bytes = NUMERICS_CHUNK * t->row_bytes, wanted = (STRETCH_BYTES + bytes - 1) / bytes;
	unsigned room = RUN_BYTES / (attention_q_bytes(t) + attention_state_bytes(t) + attention_o_bytes(t)),
		 max = wanted < t->kv_heads ? wanted : t->kv_heads;
	return t->columns > 1 || t->latent || room < 2 ? 1 : max < room ? max : room;
}

/* One column whose values, a whole row at a time, have registers for the sums of all heads: both caches are then read
 * from the first byte to the last. */
static bool streams_of(const struct attention *t)
{
	return t->columns == 1 && !t->latent && t->rows <= t->head_tile && t->vectors <= 8 &&
	       attention_tile_regs(t, t->rows, t->vectors) <= t->regs && attention_tile_vectors(t, t->rows) >= t->parts;
}

bool attention_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = attention_refusal(key, target);
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
		.period = key->flags & KEY_LATENT ? 0 : key->k,
		.cap = key->flags & KEY_CAP,
		.latent = key->flags & KEY_LATENT,
		.sinks = key->flags & KEY_SINKS,
		.both = key->flags & KEY_BOTH,
		.biased = key->flags & KEY_BIAS,
		.context_parts = key->rows,
		.columns = key->tile_n ? key->tile_n : 1
	};
	t.rows = t.columns * t.group;
	t.out_dims = t.latent ? key->k : t.dims;
	t.vectors = (t.out_dims + t.w - 1) / t.w;
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
	if (t.columns > 1 || t.latent)
		t.chunk_o = ir_local(b, attention_o_bytes(&t));

	t.arg = ir_arg(b);
	each_run(&t);
	return true;
}
