/* kernels-templates/attention/attention_merge.c - the records of a context's chunks become attention's result.
 *
 * Owns: KEY_MERGE: the second half of numerics.h rule 9, chunk after chunk, for units of a context that others went
 * through in parts. A vector has as many chunks as lanes: their maxima so far come one after the other, their two
 * exponentials each all at once. Only sum and o are left for the chain, one operation a chunk.
 */
#include <math.h>

#include "kernels-templates/emit/heads.h"

enum { VECTOR = 32 /* dimensions */, AT_ONCE = 8 /* chunks */, MAX_PARTS = 4 };

struct merge {
	struct ir *b;
	unsigned w, parts /* vectors of 32 dimensions */, dims, vectors /* of a unit's 32 dimensions, or more */, heads;
	unsigned columns, group; /* of several columns: heads that share keys */
	bool awaited, quantised;
	uint32_t bytes; /* of a record */
	int32_t marks;  /* where max and sum are in it */
	ir_a arg;
	ir_a maxima, keep, join, sums; /* local: chunk by chunk, [w + 1], else [w] */
	ir_a scratch;                  /* local: of blocks that are given */
	/* A unit's. */
	ir_a at;       /* variable: the first record that is not yet merged */
	ir_a o;        /* variable: what the unit has of it */
	ir_f max, sum; /* variables */
	ir_f *value;   /* variables */
};

static ir_s slot(const struct merge *m, unsigned which) { return ir_sload64(m->b, m->arg, (int32_t)(which * 8)); }

/* Records of one head, from chunk to chunk. */
static uint32_t step(const struct merge *m) { return m->columns * m->heads * m->bytes; }

/* ---- as many chunks as lanes: `count` of them; lanes behind them repeat the last one */

/* The maxima of all chunks up to each one; m->max becomes the last of them. */
static ir_f maxima_so_far(const struct merge *m, ir_f max)
{
	struct ir *b = m->b;
	ir_f so_far = ir_fconst(b, 0.0f);
	ir_i lane = ir_ilane(b);

	ir_fstore(b, m->keep, max, 0, 0);
	for (unsigned i = 0; i < m->w; i++) {
		ir_set_f(b, m->max, ir_fmax(b, m->max, ir_fbcast(b, m->keep, (int32_t)(i * 4))));
		so_far = ir_fsel(b, ir_ieq(b, lane, ir_iconst(b, (int32_t)i)), m->max, so_far);
	}
	return so_far;
}

static ir_f load_mark(const struct merge *m, ir_i offset, int32_t disp)
{
	return m->awaited ? ir_fawait_at(m->b, m->at, offset, disp)
	                  : ir_fbits(m->b, ir_igather(m->b, m->at, offset, disp));
}

static void weigh(const struct merge *m, ir_s count)
{
	struct ir *b = m->b;
	ir_i lane = ir_ilane(b), last = ir_isplat(b, ir_saddi(b, count, -1)), chunk = ir_imin(b, lane, last),
	     offset = ir_imul(b, chunk, ir_iconst(b, (int32_t)step(m)));
	ir_f max = load_mark(m, offset, m->marks), sum = load_mark(m, offset, m->marks + 4);

	ir_fstore1(b, m->maxima, m->max, 0);
	ir_f so_far = maxima_so_far(m, max);
	ir_fstore(b, m->maxima, so_far, 4, 0);
	ir_f before = ir_fload(b, m->maxima, 0, 0), join = math_exp(b, ir_fsub(b, max, so_far));
	ir_fstore(b, m->keep, math_exp(b, ir_fsub(b, before, so_far)), 0, 0);
	ir_fstore(b, m->join, join, 0, 0);
	ir_fstore(b, m->sums, ir_fmul(b, sum, join), 0, 0);
}

/* `iterations` times n chunks; weights: the slot of the first one's among keep, join and sums. */
static void add_chunks(const struct merge *m, ir_s weights, ir_s iterations, unsigned n)
{
	struct ir *b = m->b;
	ir_f o[AT_ONCE];
	ir_a keep = ir_var_a(b, ir_aadd(b, m->keep, ir_sshli(b, weights, 2))),
	     join = ir_var_a(b, ir_aadd(b, m->join, ir_sshli(b, weights, 2))),
	     sums = ir_var_a(b, ir_aadd(b, m->sums, ir_sshli(b, weights, 2)));

	ir_loop(b, iterations);
	for (unsigned v = 0; v < m->vectors; v++) {
		for (unsigned i = 0; i < n; i++) {
			int32_t disp = (int32_t)(i * step(m) + v * m->w * 4);
			o[i] = m->awaited ? ir_fawait(b, m->o, disp, 0) : ir_fload(b, m->o, disp, 0);
		}
		for (unsigned i = 0; i < n; i++) {
			ir_f kept = ir_fbcast(b, keep, (int32_t)(i * 4)), joined = ir_fbcast(b, join, (int32_t)(i * 4));
			ir_set_f(b, m->value[v], ir_ffma(b, m->value[v], kept, ir_fmul(b, o[i], joined)));
		}
	}
	for (unsigned i = 0; i < n; i++) {
		ir_f kept = ir_fbcast(b, keep, (int32_t)(i * 4)), sum = ir_fbcast(b, sums, (int32_t)(i * 4));
		ir_set_f(b, m->sum, ir_ffma(b, m->sum, kept, sum));
	}
	ir_set_a(b, m->o, ir_aaddi(b, m->o, n * step(m)));
	ir_set_a(b, keep, ir_aaddi(b, keep, n * 4));
	ir_set_a(b, join, ir_aaddi(b, join, n * 4));
	ir_set_a(b, sums, ir_aaddi(b, sums, n * 4));
	ir_endloop(b);
}

static void merge_chunks(const struct merge *m, ir_s chunks)
{
	struct ir *b = m->b;
	unsigned shift = (unsigned)__builtin_ctz(m->w);
	ir_s round = ir_loop(b, ir_sshri(b, ir_saddi(b, chunks, m->w - 1), shift));
	ir_s left = ir_ssub(b, chunks, ir_sshli(b, round, shift)), count = ir_smin(b, left, ir_sconst(b, m->w)),
	     iterations = ir_sshri(b, count, 3);

	weigh(m, count);
	add_chunks(m, ir_sconst(b, 0), iterations, AT_ONCE);
	ir_s done = ir_sshli(b, iterations, 3);
	add_chunks(m, done, ir_sandi(b, count, AT_ONCE - 1), 1);
	ir_set_a(b, m->at, ir_aaddi(b, m->at, m->w * step(m)));
	ir_endloop(b);
}

/* ---- a unit */

static void store_unit(const struct merge *m, ir_s column, ir_s head, ir_s part)
{
	struct ir *b = m->b;
	unsigned width = m->heads * m->dims, dims = m->parts > 1 ? VECTOR : m->dims;
	ir_a out = ir_aload(b, m->arg, MERGE_OUT * 8);
	if (m->columns > 1)
		out = ir_aadd(b, out, ir_smuli(b, column, (int64_t)numerics_pad(width) * 4));
	ir_a row = ir_aadd(b, out, ir_smuli(b, head, m->dims * 4)), to = ir_aadd(b, row, ir_smuli(b, part, VECTOR * 4));

	ir_f y[HEADS_MAX_DIM / 8];

	for (unsigned v = 0; v < m->vectors && v * m->w < dims; v++) {
		unsigned left = dims - v * m->w;
		y[v] = ir_fdiv(b, m->value[v], m->sum);
		if (m->awaited && m->quantised)
			continue;
		if (m->awaited)
			ir_fgive(b, to, y[v], (int32_t)(v * m->w * 4), left < m->w ? left : 0);
		else
			ir_fstore(b, to, y[v], (int32_t)(v * m->w * 4), left < m->w ? left : 0);
	}
	if (m->quantised) { /* a unit is a block */
		ir_s block = ir_sadd(b, ir_smuli(b, head, m->parts), part);
		if (m->columns > 1)
			block = ir_sadd(b, block, ir_smuli(b, column, (int64_t)numerics_pad(width) / VECTOR));
		ir_a q = ir_aadd(b, ir_aload(b, m->arg, MERGE_OUTQ * 8), ir_sshli(b, block, 5));
		ir_a s = ir_aadd(b, ir_aload(b, m->arg, MERGE_OUTS * 8), ir_sshli(b, block, 4));
		if (m->awaited)
			quantise_give_block(b, y[0], q, s, m->scratch);
		else
			quantise_emit_block(b, y, q, 0, s, 0);
	}
	if (m->awaited && m->quantised)
		return; /* heads are whole blocks, and there is no pad */
	if (m->awaited)
		heads_give_pad(b, out, width, head, m->heads);
	else
		heads_zero_pad(b, out, width, head, m->heads);
}

static void do_unit(struct merge *m, const struct key *key, ir_s unit)
{
	struct ir *b = m->b;
	ir_s head = m->parts > 1 ? ir_sdivi(b, unit, m->parts) : unit, pos0 = slot(m, MERGE_POS0), column = { 0 };
	ir_s part = ir_ssub(b, unit, ir_smuli(b, head, m->parts)), first = ir_sconst(b, 0);
	if (m->columns > 1) {
		struct heads_unit u = heads_unit(b, head, m->heads);
		column = u.column;
		head = u.head;
		pos0 = ir_sadd(b, pos0, column);
	}
	ir_s chunks = ir_saddi(b, ir_sshri(b, pos0, 7), 1);

	if (key->flags & KEY_WINDOW) {
		ir_s lowest = key->k ? ir_smuli(b, ir_sdivi(b, pos0, key->k), key->k)
		                     : ir_saddi(b, ir_ssub(b, pos0, slot(m, MERGE_SLIDING)), 1);
		first = ir_sshri(b, ir_smax(b, lowest, ir_sconst(b, 0)), 7);
		chunks = ir_ssub(b, chunks, first);
	}
	ir_s record = ir_sadd(b, ir_smuli(b, first, m->columns * m->heads), head);
	if (m->columns > 1) { /* [head of keys][column][head of the group] */
		ir_s of = ir_sdivi(b, head, m->group);
		record = ir_sadd(b, record, ir_smuli(b, of, (m->columns - 1) * m->group));
		record = ir_sadd(b, record, ir_smuli(b, column, m->group));
	}
	ir_a records = ir_aload(b, m->arg, MERGE_RECORDS * 8);
	m->at = ir_var_a(b, ir_aadd(b, records, ir_smuli(b, record, m->bytes)));
	m->o = ir_var_a(b, ir_aadd(b, m->at, ir_smuli(b, part, VECTOR * 4)));
	if (key->flags & KEY_SINKS) {
		ir_a sinks = ir_aload(b, m->arg, MERGE_SINKS * 8);
		m->max = ir_var_f(b, ir_fbcast(b, ir_aadd(b, sinks, ir_sshli(b, head, 2)), 0));
	} else {
		m->max = ir_var_f(b, ir_fconst(b, -INFINITY));
	}
	m->sum = ir_var_f(b, ir_fconst(b, key->flags & KEY_SINKS ? 1.0f : 0.0f));
	for (unsigned v = 0; v < m->vectors; v++)
		m->value[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	merge_chunks(m, chunks);
	store_unit(m, column, head, part);
}

bool merge_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = heads_refusal(key->heads, key->head_dim);
	ir_f value[HEADS_MAX_DIM / 8];
	struct merge m = { .b = b, .w = b->lanes, .dims = key->head_dim, .heads = key->heads, .value = value };

	(void)target;
	if (key->flags & KEY_QUANTISED_OUT && key->head_dim % VECTOR)
		refusal = "heads that become int8 are whole blocks of 32";
	if (key->flags & KEY_QUANTISED_OUT && key->flags & KEY_AWAITED && b->lanes != VECTOR)
		refusal = "int8 blocks are given by vectors of 32";
	if (refusal)
		return build_refuse(key, err, refusal);
	if (key->tile_n > 1 && (key->tile_n > TEMPLATE_MAX_QUERIES || !key->kv_heads || key->heads % key->kv_heads))
		return build_refuse(key, err, "several columns are 16 at most, of heads that share keys");
	m.columns = key->tile_n > 1 ? key->tile_n : 1;
	m.group = m.columns > 1 ? key->heads / key->kv_heads : 1;
	m.quantised = key->flags & KEY_QUANTISED_OUT;
	m.awaited = key->flags & KEY_AWAITED;
	m.parts = template_merge_units(m.dims);
	m.vectors = ((m.parts > 1 ? VECTOR : m.dims) + VECTOR - 1) / VECTOR * (VECTOR / m.w);
	m.bytes = template_attention_record(m.dims);
	m.marks = (int32_t)(m.bytes - 32);
	m.maxima = ir_local(b, (m.w + 1) * 4);
	m.keep = ir_local(b, m.w * 4);
	m.join = ir_local(b, m.w * 4);
	m.sums = ir_local(b, m.w * 4);
	if (m.awaited && m.quantised)
		m.scratch = ir_local(b, VECTOR);
	m.arg = ir_arg(b);
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	do_unit(&m, key, ir_sadd(b, begin, i));
	ir_endloop(b);
	return true;
}
