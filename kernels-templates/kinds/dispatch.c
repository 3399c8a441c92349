/* kernels-templates/kinds/dispatch.c - the slots of a pass in the order of their experts, and back: which columns share
 * an expert, activations copied to them, and the weighted sum of a token's results.
 *
 * Owns: KEY_DISPATCH, KEY_SCATTER, KEY_COMBINE. Sorting decides which columns are computed side by side, and no bit of
 * a result.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { SLOT_BYTES = ROUTE_MAX * 4 };

static const char *refuse_slots(const struct key *key)
{
	return key->heads == 0 || key->heads > ROUTE_MAX ? "a token goes to one expert at least, and not to so many"
	                                                 : NULL;
}

/* ---- the order */

static void put(struct ir *b, ir_a at, int32_t disp, ir_s value)
{
	ir_fstore1(b, at, ir_fbits(b, ir_isplat(b, value)), disp);
}

/* A loop over all slots of all tokens: where the slot's number stands, and the counter of its expert. */
static void each_slot(struct ir *b, const struct key *key, ir_a arg, ir_a counters, ir_a *number, ir_a *counter)
{
	ir_s token = ir_loop(b, ir_sload64(b, arg, DISPATCH_TOKENS * 8)), slot = ir_loop(b, ir_sconst(b, key->heads));
	ir_s at = ir_sadd(b, ir_smuli(b, token, SLOT_BYTES), ir_sshli(b, slot, 2));
	ir_s expert = ir_sload32(b, ir_aadd(b, ir_aload(b, arg, DISPATCH_CHOSEN * 8), at), 0);

	*counter = ir_aadd(b, counters, ir_sshli(b, expert, 2));
	*number = ir_aadd(b, ir_aload(b, arg, DISPATCH_POSITIONS * 8), at);
}

static void end_slots(struct ir *b)
{
	ir_endloop(b);
	ir_endloop(b);
}

static void count(struct ir *b, const struct key *key, ir_a arg, ir_a counters)
{
	ir_a number, counter;
	ir_a at = ir_var_a(b, counters);

	ir_loop(b, ir_sconst(b, key->rows));
	put(b, at, 0, ir_sconst(b, 0));
	ir_set_a(b, at, ir_aaddi(b, at, 4));
	ir_endloop(b);
	each_slot(b, key, arg, counters, &number, &counter);
	put(b, counter, 0, ir_saddi(b, ir_sload32(b, counter, 0), 1));
	end_slots(b);
}

static void put_group(struct ir *b, ir_a at, ir_s expert, ir_s first, ir_s columns)
{
	put(b, at, offsetof(struct route_group, expert), expert);
	put(b, at, offsetof(struct route_group, first), first);
	put(b, at, offsetof(struct route_group, columns), columns);
	put(b, at, offsetof(struct route_group, unused), ir_sconst(b, 0));
}

/* Counters become the first column of each expert. A group that has none is written over by the next. */
static void group(struct ir *b, const struct key *key, ir_a arg, ir_a counters)
{
	ir_a at = ir_var_a(b, counters), out = ir_var_a(b, ir_aload(b, arg, DISPATCH_GROUPS * 8));
	ir_s first = ir_var_s(b, ir_sconst(b, 0)), groups = ir_var_s(b, ir_sconst(b, 0));

	ir_s expert = ir_loop(b, ir_sconst(b, key->rows));
	ir_s columns = ir_sload32(b, at, 0), some = ir_smin(b, columns, ir_sconst(b, 1));
	put_group(b, out, expert, first, columns);
	put(b, at, 0, first);
	ir_set_s(b, first, ir_sadd(b, first, columns));
	ir_set_s(b, groups, ir_sadd(b, groups, some));
	ir_set_a(b, out, ir_aadd(b, out, ir_smuli(b, some, sizeof(struct route_group))));
	ir_set_a(b, at, ir_aaddi(b, at, 4));
	ir_endloop(b);

	ir_s zero = ir_sconst(b, 0);
	ir_loop(b, ir_ssub(b, ir_sload64(b, arg, DISPATCH_GROUP_COUNT * 8), groups));
	put_group(b, out, zero, zero, zero);
	ir_set_a(b, out, ir_aaddi(b, out, sizeof(struct route_group)));
	ir_endloop(b);
}

static void assign(struct ir *b, const struct key *key, ir_a arg, ir_a counters)
{
	ir_a number, counter;

	each_slot(b, key, arg, counters, &number, &counter);
	ir_s next = ir_sload32(b, counter, 0);
	put(b, number, 0, next);
	put(b, counter, 0, ir_saddi(b, next, 1));
	end_slots(b);
}

bool dispatch_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *why = refuse_slots(key);

	if (why || key->rows == 0 || key->rows > ROUTE_EXPERTS_MAX || key->flags)
		return build_refuse(key, err, why ? why : "there is an expert at least, not so many, and no flag");
	ir_a arg = ir_arg(b), counters = ir_local(b, (int64_t)numerics_pad(key->rows) * 4);
	ir_s begin = ir_begin(b);
	ir_loop(b, ir_ssub(b, ir_end(b), begin));
	count(b, key, arg, counters);
	group(b, key, arg, counters);
	assign(b, key, arg, counters);
	ir_endloop(b);
	return true;
}

/* ---- copies */

/* So many words, whole vectors of them and a rest. */
static void copy_words(struct ir *b, ir_a from, ir_a to, uint32_t words)
{
	ir_a in = ir_var_a(b, from), out = ir_var_a(b, to);
	unsigned w = b->lanes, rest = words % w;

	ir_loop(b, ir_sconst(b, words / w));
	ir_fstore(b, out, ir_fload(b, in, 0, 0), 0, 0);
	ir_set_a(b, in, ir_aaddi(b, in, w * 4));
	ir_set_a(b, out, ir_aaddi(b, out, w * 4));
	ir_endloop(b);
	if (rest)
		ir_fstore(b, out, ir_fload(b, in, 0, rest), 0, rest);
}

static void copy_column(struct ir *b, ir_a arg, unsigned from, unsigned to, ir_s column, ir_s assign, uint32_t bytes)
{
	ir_a in = ir_aadd(b, ir_aload(b, arg, (int32_t)(from * 8)), ir_smuli(b, column, bytes)),
	     out = ir_aadd(b, ir_aload(b, arg, (int32_t)(to * 8)), ir_smuli(b, assign, bytes));
	copy_words(b, in, out, bytes / 4);
}

bool scatter_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const bool int8 = key->activation == key_type(DTYPE_Q8_0);
	const char *why = refuse_slots(key);
	uint32_t kp = (uint32_t)numerics_pad(key->k);

	if (why || key->k == 0 || key->k > 1u << 24 || (!int8 && key->activation != key_type(DTYPE_F32)) || key->flags)
		return build_refuse(key, err, why ? why : "f32 or int8 of a width of 1..16777216 are copied");
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s column = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s slot = ir_loop(b, ir_sconst(b, key->heads));
	ir_s at = ir_sadd(b, ir_smuli(b, column, SLOT_BYTES), ir_sshli(b, slot, 2));
	ir_s assign = ir_sload32(b, ir_aadd(b, ir_aload(b, arg, SCATTER_POSITIONS * 8), at), 0);
	copy_column(b, arg, SCATTER_X, SCATTER_OUT, column, assign, int8 ? kp : kp * 4);
	if (int8)
		copy_column(b, arg, SCATTER_XS, SCATTER_OUTS, column, assign, kp / 2);
	ir_endloop(b);
	ir_endloop(b);
	return true;
}

/* ---- sums */

struct combine {
	struct ir *b;
	const struct key *key;
	int64_t row_bytes;
	ir_s column;
	ir_a in, shares, positions; /* in: of this block; the others the column's */
};

static void load_slot(const struct combine *c, ir_s slot, ir_f *share, ir_f y[])
{
	struct ir *b = c->b;
	ir_s at = ir_sshli(b, slot, 2),
	     row = c->key->flags & KEY_SORTED ? ir_sload32(b, ir_aadd(b, c->positions, at), 0)
	                                      : ir_sadd(b, ir_smuli(b, c->column, c->key->heads), slot);
	ir_a in = ir_aadd(b, c->in, ir_smuli(b, row, c->row_bytes));

	*share = ir_fbcast(b, ir_aadd(b, c->shares, at), 0);
	if (c->key->flags & KEY_SIGMOID) {
		ir_f one = ir_fconst(b, 1.0f);
		*share = ir_fdiv(b, one, ir_fadd(b, one, math_exp(b, ir_fneg(b, *share))));
	}
	for (unsigned v = 0; v < math_parts(b); v++)
		y[v] = ir_fload(b, in, (int32_t)(v * b->lanes * 4), 0);
}

/* The first product is not added to 0. */
static void sum_slots(const struct combine *c, ir_f sum[])
{
	struct ir *b = c->b;
	ir_f share, y[MATH_MAX_PARTS];

	load_slot(c, ir_sconst(b, 0), &share, y);
	for (unsigned v = 0; v < math_parts(b); v++)
		sum[v] = ir_var_f(b, ir_fmul(b, share, y[v]));
	if (c->key->heads == 1)
		return;
	ir_s other = ir_saddi(b, ir_loop(b, ir_sconst(b, c->key->heads - 1)), 1);
	load_slot(c, other, &share, y);
	for (unsigned v = 0; v < math_parts(b); v++)
		ir_set_f(b, sum[v], ir_ffma(b, share, y[v], sum[v]));
	ir_endloop(b);
}

bool combine_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const uint32_t known = KEY_SORTED | KEY_SIGMOID | KEY_RESIDUAL, blocks = (uint32_t)numerics_pad(key->k) / 32;
	const char *why = refuse_slots(key);
	ir_f sum[MATH_MAX_PARTS];

	if (why || key->k == 0 || key->k > 1u << 24 || key->flags & ~known)
		return build_refuse(key, err, why ? why : "sums have a width of 1..16777216, and not these flags");
	struct combine c = { .b = b, .key = key, .row_bytes = (int64_t)blocks * 128 };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	c.column = ir_sdivi(b, unit, blocks);
	ir_s slots = ir_smuli(b, c.column, SLOT_BYTES);
	ir_s block = ir_sshli(b, ir_ssub(b, unit, ir_smuli(b, c.column, blocks)), 7);
	c.in = ir_aadd(b, ir_aload(b, arg, COMBINE_IN * 8), block);
	c.shares = ir_aadd(b, ir_aload(b, arg, COMBINE_SHARES * 8), slots);
	if (key->flags & KEY_SORTED)
		c.positions = ir_aadd(b, ir_aload(b, arg, COMBINE_POSITIONS * 8), slots);
	sum_slots(&c, sum);
	ir_a out = ir_aadd(b, ir_aload(b, arg, COMBINE_OUT * 8), ir_sshli(b, unit, 7));
	for (unsigned v = 0; v < math_parts(b); v++) {
		int32_t at = (int32_t)(v * b->lanes * 4);
		if (key->flags & KEY_RESIDUAL)
			sum[v] = ir_fadd(b, ir_fload(b, out, at, 0), sum[v]);
		ir_fstore(b, out, sum[v], at, 0);
	}
	ir_endloop(b);
	return true;
}
