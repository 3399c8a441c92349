/* kernels-templates/recurrent/delta.c - the gated delta rule, token by token: a state that forgets, is corrected, and
 * is read.
 *
 * Owns: KEY_DELTA, which is numerics.h rule 17. A unit is 32 values of a head: their part of the state depends on no
 * other's. It is small enough for the nearest cache while the columns of the launch go through it one after the other.
 * It is read where the pass before left it for the first column, and where it is written for all others.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"
#include "kernels-templates/recurrent/values.h"

enum { ROWS_APART = 16, ROWS_TOGETHER = 4 }; /* of an iteration: loaded before any is written, or one after the other */
enum { AHEAD = 4 << 10, LINE = 64 };

struct delta {
	struct ir *b;
	const struct key *key;
	bool apart; /* loads cannot pass stores: many stand side by side */
	bool asks;  /* a core waits for few lines at a time: it asks for the state ahead, and for where it is written */
	unsigned parts, rows;
	ir_a arg;
	struct values unit;
	ir_a q, k, v, out, factors;        /* variables: this column's; factors: with OF_ALL */
	int64_t q_bytes, k_bytes, v_bytes; /* from one column's to the next one's */
	ir_f decay, beta, q_scale, k_scale;
	ir_a from, to; /* the unit's part of the state; from: a variable */
};

static ir_s key_head(struct ir *b, const struct key *key, ir_s head)
{
	if (!(key->flags & KEY_TILED))
		return ir_sdivi(b, head, key->heads / key->kv_heads);
	return ir_ssub(b, head, ir_smuli(b, ir_sdivi(b, head, key->kv_heads), key->kv_heads));
}

static ir_f number_of(const struct delta *t, unsigned slot, ir_s bytes)
{
	return ir_fbcast(t->b, ir_aadd(t->b, ir_aload(t->b, t->arg, (int32_t)slot * 8), bytes), 0);
}

/* 1 / the length of the key or query at x. */
static ir_f length_scale(const struct delta *t, ir_a x)
{
	struct ir *b = t->b;
	ir_f part[MATH_MAX_PARTS];

	for (uint32_t i = 0; i < t->key->head_dim; i += 32)
		for (unsigned v = 0; v < t->parts; v++) {
			const uint32_t at = i + v * b->lanes, n = t->key->head_dim;
			if (at >= n) { /* of a last block of 16 */
				part[v] = i ? part[v] : ir_fconst(b, 0.0f);
				continue;
			}
			ir_f e = ir_fload(b, x, (int32_t)(at * 4), at + b->lanes > n ? n - at : 0);
			part[v] = i ? ir_ffma(b, e, e, part[v]) : ir_fmul(b, e, e);
		}
	ir_f sum = ir_fadd(b, math_lane_sum(b, part), ir_fconst(b, NUMERICS_LENGTH_EPS));
	return ir_fdiv(b, ir_fconst(b, 1.0f), ir_fsqrt(b, sum));
}

/* The numbers that all of a head's values have in common. */
static void column_scales(struct delta *t, ir_s column)
{
	struct ir *b = t->b;
	ir_s one = ir_sshli(b, t->unit.head, 2),
	     here = ir_sadd(b, ir_smuli(b, column, (int64_t)numerics_pad(t->key->heads) * 4), one);

	if (!(t->key->flags & KEY_OF_ALL)) {
		ir_f rate = math_softplus(b, ir_fadd(b, number_of(t, DELTA_A, here), number_of(t, DELTA_DT, one)));
		t->decay = math_exp(b, ir_fmul(b, number_of(t, DELTA_DECAY, one), rate));
	}
	t->beta = math_act(b, ACT_SIGMOID, number_of(t, DELTA_B, here));
	if (t->key->flags & KEY_SCALED)
		t->beta = ir_fadd(b, t->beta, t->beta);
	t->k_scale = length_scale(t, t->k);
	t->q_scale = ir_fmul(b, length_scale(t, t->q), ir_fbcast(b, t->arg, DELTA_SCALE * 8));
}

static int32_t row_bytes(const struct delta *t, unsigned row, unsigned v)
{
	return (int32_t)(row * 128 + v * t->b->lanes * 4);
}

/* An iteration's rows of the state, where their loads stand side by side. */
static void load_rows(const struct delta *t, ir_a at, ir_f s[])
{
	for (unsigned i = 0; t->apart && i < t->rows * t->parts; i++)
		s[i] = ir_fload(t->b, at, row_bytes(t, i / t->parts, i % t->parts), 0);
}

/* The factor of a row of the state: its own with OF_ALL, else that of the head. */
static ir_f factor_of(const struct delta *t, ir_a factors, unsigned row)
{
	return t->key->flags & KEY_OF_ALL ? ir_fbcast(t->b, factors, (int32_t)(row * 4)) : t->decay;
}

/* One of them, forgotten in part. */
static ir_f faded_row(const struct delta *t, ir_a at, const ir_f s[], unsigned row, unsigned v, ir_f factor)
{
	ir_f held = t->apart ? s[row * t->parts + v] : ir_fload(t->b, at, row_bytes(t, row, v), 0);
	return ir_fmul(t->b, held, factor);
}

/* To the next iteration's. */
static void next_factors(const struct delta *t, ir_a factors)
{
	if (t->key->flags & KEY_OF_ALL)
		ir_set_a(t->b, factors, ir_aaddi(t->b, factors, t->rows * 4));
}

/* Of the first column, which meets the state in memory; `first` is 1 in that, and 0 in others. */
static void ask(const struct delta *t, ir_s first, ir_a at, ir_a to)
{
	struct ir *b = t->b;

	ir_loop(b, first);
	for (int32_t i = 0; i < (int32_t)(t->rows * 128); i += LINE) {
		ir_prefetch(b, at, AHEAD + i);
		ir_prefetch(b, to, i);
	}
	ir_endloop(b);
	ir_set_a(b, to, ir_aaddi(b, to, t->rows * 128));
}

/* What the state holds for the key. */
static void recall(const struct delta *t, ir_s column, ir_f sum[])
{
	struct ir *b = t->b;
	ir_f s[ROWS_APART * MATH_MAX_PARTS];
	ir_a at = ir_var_a(b, t->from), k = ir_var_a(b, t->k), to = at,
	     factors = t->key->flags & KEY_OF_ALL ? ir_var_a(b, t->factors) : at;
	ir_s first = column;

	if (t->asks) {
		to = ir_var_a(b, t->to);
		first = ir_ssub(b, ir_sconst(b, 1), ir_smin(b, column, ir_sconst(b, 1)));
	}

	for (unsigned v = 0; v < t->parts; v++)
		sum[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, ir_sconst(b, t->key->head_dim / t->rows));
	if (t->asks)
		ask(t, first, at, to);
	load_rows(t, at, s);
	for (unsigned i = 0; i < t->rows; i++) {
		ir_f key = ir_fmul(b, ir_fbcast(b, k, (int32_t)(i * 4)), t->k_scale), fade = factor_of(t, factors, i);
		for (unsigned v = 0; v < t->parts; v++)
			ir_set_f(b, sum[v], ir_ffma(b, faded_row(t, at, s, i, v, fade), key, sum[v]));
	}
	next_factors(t, factors);
	ir_set_a(b, at, ir_aaddi(b, at, t->rows * 128));
	ir_set_a(b, k, ir_aaddi(b, k, t->rows * 4));
	ir_endloop(b);
}

/* Corrects the state by `change` for the key, and reads what it then holds for the query. */
static void correct(const struct delta *t, const ir_f change[], ir_f sum[])
{
	struct ir *b = t->b;
	ir_f s[ROWS_APART * MATH_MAX_PARTS];
	ir_a at = ir_var_a(b, t->from), to = ir_var_a(b, t->to), k = ir_var_a(b, t->k), q = ir_var_a(b, t->q),
	     factors = t->key->flags & KEY_OF_ALL ? ir_var_a(b, t->factors) : at;

	for (unsigned v = 0; v < t->parts; v++)
		sum[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, ir_sconst(b, t->key->head_dim / t->rows));
	load_rows(t, at, s);
	for (unsigned i = 0; i < t->rows; i++) {
		ir_f key = ir_fmul(b, ir_fbcast(b, k, (int32_t)(i * 4)), t->k_scale),
		     query = ir_fmul(b, ir_fbcast(b, q, (int32_t)(i * 4)), t->q_scale), fade = factor_of(t, factors, i);
		for (unsigned v = 0; v < t->parts; v++) {
			ir_f row = ir_ffma(b, key, change[v], faded_row(t, at, s, i, v, fade));
			ir_fstore(b, to, row, row_bytes(t, i, v), 0);
			ir_set_f(b, sum[v], ir_ffma(b, row, query, sum[v]));
		}
	}
	next_factors(t, factors);
	ir_set_a(b, at, ir_aaddi(b, at, t->rows * 128));
	ir_set_a(b, to, ir_aaddi(b, to, t->rows * 128));
	ir_set_a(b, k, ir_aaddi(b, k, t->rows * 4));
	ir_set_a(b, q, ir_aaddi(b, q, t->rows * 4));
	ir_endloop(b);
}

static void delta_column(struct delta *t, ir_s column)
{
	struct ir *b = t->b;
	ir_f held[MATH_MAX_PARTS], change[MATH_MAX_PARTS], out[MATH_MAX_PARTS], value[MATH_MAX_PARTS];

	column_scales(t, column);
	recall(t, column, held);
	values_load(b, &t->unit, t->v, value);
	for (unsigned v = 0; v < t->parts; v++)
		change[v] = ir_fmul(b, ir_fsub(b, value[v], held[v]), t->beta);
	correct(t, change, out);
	values_store(b, &t->unit, t->out, out);
	ir_set_a(b, t->from, t->to);
}

static bool sizes_ok(const struct key *key)
{
	return key->head_dim && key->head_dim % 16 == 0 && key->head_dim <= DELTA_MAX_DIM && key->rows &&
	       key->rows % 16 == 0 && key->rows <= DELTA_MAX_DIM && key->heads && key->heads <= 4096 &&
	       (uint64_t)key->heads * key->rows % 32 == 0 && key->kv_heads && key->heads % key->kv_heads == 0;
}

/* Where the unit's head begins in columns, and its part of the state. */
static void begin_unit(struct delta *t, ir_s unit)
{
	const struct key *key = t->key;
	struct ir *b = t->b;
	int64_t keys = (int64_t)key->kv_heads * key->head_dim * 4, state = (int64_t)key->head_dim * 128;
	bool apart = key->flags & KEY_SORTED;
	ir_a in = ir_aload(b, t->arg, DELTA_QKV * 8),
	     k = apart ? ir_aload(b, t->arg, DELTA_K * 8) : ir_aaddi(b, in, keys),
	     v = apart ? ir_aload(b, t->arg, DELTA_V * 8) : ir_aaddi(b, in, 2 * keys);

	t->unit = values_of_unit(b, unit, key->rows);
	ir_s value = values_offset(b, &t->unit, unit),
	     at = ir_smuli(b, key_head(b, key, t->unit.head), key->head_dim * 4);
	if (key->flags & KEY_OF_ALL)
		t->factors = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, DELTA_A * 8), at));
	t->q = ir_var_a(b, ir_aadd(b, in, at));
	t->k = ir_var_a(b, ir_aadd(b, k, at));
	t->v = ir_var_a(b, ir_aadd(b, v, value));
	t->out = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, DELTA_OUT * 8), value));
	t->from = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, DELTA_STATE_IN * 8), ir_smuli(b, unit, state)));
	t->to = ir_aadd(b, ir_aload(b, t->arg, DELTA_STATE_OUT * 8), ir_smuli(b, unit, state));
}

bool delta_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	if (!sizes_ok(key))
		return build_refuse(
			key, err,
			"keys and values must have 16 to 256 elements, a multiple of 16, all values a multiple "
			"of 32, and as many heads of keys as divide those of values");
	if (key->flags & ~(uint32_t)(KEY_TILED | KEY_SCALED | KEY_SORTED | KEY_OF_ALL))
		return build_refuse(key, err, "these flags do not go together");
	struct delta t = { .b = b,
		           .key = key,
		           .apart = target->lane_bytes != 0,
		           .asks = target->prefetch_to_l2,
		           .parts = math_parts(b),
		           .rows = target->lane_bytes ? ROWS_APART : ROWS_TOGETHER,
		           .arg = ir_arg(b) };
	bool apart = key->flags & KEY_SORTED;
	int64_t keys = 4 * (int64_t)key->kv_heads * key->head_dim, out = 4 * (int64_t)key->heads * key->rows;
	t.q_bytes = t.k_bytes = apart ? keys : 2 * keys + out;
	t.v_bytes = apart ? out : 2 * keys + out;
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));

	begin_unit(&t, ir_sadd(b, begin, i));
	ir_s column = ir_loop(b, ir_sload64(b, t.arg, DELTA_COLUMNS * 8));
	delta_column(&t, column);
	ir_set_a(b, t.q, ir_aaddi(b, t.q, t.q_bytes));
	ir_set_a(b, t.k, ir_aaddi(b, t.k, t.k_bytes));
	ir_set_a(b, t.v, ir_aaddi(b, t.v, t.v_bytes));
	ir_set_a(b, t.out, ir_aaddi(b, t.out, out));
	if (key->flags & KEY_OF_ALL)
		ir_set_a(b, t.factors, ir_aaddi(b, t.factors, keys));
	ir_endloop(b);
	ir_endloop(b);
	return true;
}
