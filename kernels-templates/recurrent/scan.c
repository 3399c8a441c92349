/* kernels-templates/recurrent/scan.c - the selective scan, token by token: a state that forgets, takes up and is read.
 *
 * Owns: KEY_SCAN, which is numerics.h rule 18. As with the delta rule, a unit is 32 values of a head, whose part of the
 * state depends on no other's. The columns of the launch go through it one after the other. It is read where the pass
 * before left it for the first column, and where it is written for all others.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"
#include "kernels-templates/recurrent/values.h"

enum {
	ROWS_APART = 16,
	ROWS_TOGETHER = 4
}; /* states of an iteration: loaded before any is written, or one after the other */

struct scan {
	struct ir *b;
	const struct key *key;
	bool apart; /* loads cannot pass stores: many stand side by side */
	unsigned parts, rows;
	ir_a arg;
	struct values unit;
	ir_a keys, queries, value, out; /* variables: this column's, value and out the unit's */
	ir_f decay, rate;
	ir_a from, to; /* the unit's part of the state; from: a variable */
};

static ir_f number_of(const struct scan *t, unsigned slot, ir_s bytes)
{
	return ir_fbcast(t->b, ir_aadd(t->b, ir_aload(t->b, t->arg, (int32_t)slot * 8), bytes), 0);
}

static int32_t row_bytes(const struct scan *t, unsigned row, unsigned v)
{
	return (int32_t)(row * 128 + v * t->b->lanes * 4);
}

/* The numbers that all of a head's values have in common. */
static void column_rates(struct scan *t, ir_s column)
{
	struct ir *b = t->b;
	ir_s one = ir_sshli(b, t->unit.head, 2),
	     here = ir_sadd(b, ir_smuli(b, column, (int64_t)numerics_pad(t->key->heads) * 4), one);
	ir_f step = ir_fadd(b, number_of(t, SCAN_DT, here), number_of(t, SCAN_DT_BIAS, one));

	t->rate = ir_fmin(b, ir_fmax(b, math_softplus(b, step), ir_fbcast(b, t->arg, SCAN_FLOOR * 8)),
	                  ir_fbcast(b, t->arg, SCAN_CEILING * 8));
	t->decay = math_exp(b, ir_fmul(b, number_of(t, SCAN_DECAY, one), t->rate));
}

/* An iteration's rows: each forgets, takes up its part of the values, and is read. */
static void scan_rows(const struct scan *t, ir_a at, ir_a to, ir_a key, ir_a query, const ir_f taken[], ir_f sum[])
{
	struct ir *b = t->b;
	ir_f s[ROWS_APART * MATH_MAX_PARTS];

	for (unsigned i = 0; t->apart && i < t->rows * t->parts; i++)
		s[i] = ir_fload(b, at, row_bytes(t, i / t->parts, i % t->parts), 0);
	for (unsigned i = 0; i < t->rows; i++) {
		ir_f k = ir_fbcast(b, key, (int32_t)(i * 4)), q = ir_fbcast(b, query, (int32_t)(i * 4));
		for (unsigned v = 0; v < t->parts; v++) {
			ir_f held = t->apart ? s[i * t->parts + v] : ir_fload(b, at, row_bytes(t, i, v), 0);
			ir_f row = ir_ffma(b, k, taken[v], ir_fmul(b, held, t->decay));
			ir_fstore(b, to, row, row_bytes(t, i, v), 0);
			ir_set_f(b, sum[v], ir_ffma(b, row, q, sum[v]));
		}
	}
}

static void scan_column(struct scan *t, ir_s column)
{
	struct ir *b = t->b;
	ir_f value[MATH_MAX_PARTS], taken[MATH_MAX_PARTS], sum[MATH_MAX_PARTS];

	column_rates(t, column);
	values_load(b, &t->unit, t->value, value);
	for (unsigned v = 0; v < t->parts; v++) {
		taken[v] = ir_fmul(b, value[v], t->rate);
		sum[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	}
	ir_a at = ir_var_a(b, t->from), to = ir_var_a(b, t->to), key = ir_var_a(b, t->keys),
	     query = ir_var_a(b, t->queries);
	ir_loop(b, ir_sconst(b, t->key->head_dim / t->rows));
	scan_rows(t, at, to, key, query, taken, sum);
	ir_set_a(b, at, ir_aaddi(b, at, t->rows * 128));
	ir_set_a(b, to, ir_aaddi(b, to, t->rows * 128));
	ir_set_a(b, key, ir_aaddi(b, key, t->rows * 4));
	ir_set_a(b, query, ir_aaddi(b, query, t->rows * 4));
	ir_endloop(b);
	ir_f skip = number_of(t, SCAN_SKIP, ir_sshli(b, t->unit.head, 2));
	values_load(b, &t->unit, t->value, value);
	for (unsigned v = 0; v < t->parts; v++)
		value[v] = ir_ffma(b, skip, value[v], sum[v]);
	values_store(b, &t->unit, t->out, value);
	ir_set_a(b, t->from, t->to);
}

static bool sizes_ok(const struct key *key)
{
	return key->head_dim && key->head_dim % 16 == 0 && key->head_dim <= SCAN_MAX_STATE && key->rows &&
	       key->rows % 16 == 0 && key->rows <= SCAN_MAX_VALUES && key->heads && key->heads <= 4096 &&
	       (uint64_t)key->heads * key->rows % 32 == 0 && key->kv_heads && key->heads % key->kv_heads == 0;
}

/* Where the unit's head begins in columns, and its part of the state. */
static void begin_unit(struct scan *t, ir_s unit)
{
	const struct key *key = t->key;
	struct ir *b = t->b;
	int64_t values = (int64_t)key->heads * key->rows * 4, keys = (int64_t)key->kv_heads * key->head_dim * 4,
		state = (int64_t)key->head_dim * 128;
	ir_a in = ir_aload(b, t->arg, SCAN_XBC * 8);

	t->unit = values_of_unit(b, unit, key->rows);
	ir_s group = ir_sdivi(b, t->unit.head, key->heads / key->kv_heads), value = values_offset(b, &t->unit, unit);
	ir_s at = ir_smuli(b, group, (int64_t)key->head_dim * 4);
	t->value = ir_var_a(b, ir_aadd(b, in, value));
	t->keys = ir_var_a(b, ir_aadd(b, ir_aaddi(b, in, values), at));
	t->queries = ir_var_a(b, ir_aadd(b, ir_aaddi(b, in, values + keys), at));
	t->out = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, SCAN_OUT * 8), value));
	t->from = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, SCAN_STATE_IN * 8), ir_smuli(b, unit, state)));
	t->to = ir_aadd(b, ir_aload(b, t->arg, SCAN_STATE_OUT * 8), ir_smuli(b, unit, state));
}

bool scan_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	if (!sizes_ok(key))
		return build_refuse(
			key, err,
			"a head must have a state of 16 to 1024 rows and 16 to 1024 values, multiples of 16, "
			"all values a multiple of 32; and groups must divide heads");
	if (key->flags)
		return build_refuse(key, err, "these flags do not go together");
	struct scan t = { .b = b,
		          .key = key,
		          .apart = target->lane_bytes != 0,
		          .parts = math_parts(b),
		          .rows = target->lane_bytes ? ROWS_APART : ROWS_TOGETHER,
		          .arg = ir_arg(b) };
	int64_t out = 4 * (int64_t)key->heads * key->rows, in = out + 8 * (int64_t)key->kv_heads * key->head_dim;
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));

	begin_unit(&t, ir_sadd(b, begin, i));
	ir_s column = ir_loop(b, ir_sload64(b, t.arg, SCAN_COLUMNS * 8));
	scan_column(&t, column);
	ir_set_a(b, t.keys, ir_aaddi(b, t.keys, in));
	ir_set_a(b, t.queries, ir_aaddi(b, t.queries, in));
	ir_set_a(b, t.value, ir_aaddi(b, t.value, in));
	ir_set_a(b, t.out, ir_aaddi(b, t.out, out));
	ir_endloop(b);
	ir_endloop(b);
	return true;
}
