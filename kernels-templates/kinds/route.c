/* kernels-templates/kinds/route.c - which experts a token goes to, and by how much each counts.
 *
 * Owns: KEY_ROUTE (numerics.h rule 14). Whatever the logits are, NaN included, what comes out are numbers of experts:
 * kernels find weights by them.
 *
 * Logits become whole numbers in the same order, which a walk over all of them compares lane by lane. Each choice is a
 * walk: it takes the last one out, and finds the greatest of the rest.
 */
#include <math.h>

#include "kernels-templates/kinds/route.h"

static ir_f logistic(struct ir *b, ir_f x)
{
	ir_f one = ir_fconst(b, 1.0f);
	return ir_fdiv(b, one, ir_fadd(b, one, math_exp(b, ir_fneg(b, x))));
}

/* Whole numbers in the order of the floats; both zeros are one, NaN the least. */
ir_i route_order_of(struct ir *b, ir_f x)
{
	ir_f plus = ir_fadd(b, x, ir_fconst(b, 0.0f));
	ir_i bits = ir_ibits(b, plus), min = ir_iconst(b, TAKEN + 1);
	ir_i flipped = ir_ixor(b, bits, ir_iand(b, ir_isar(b, bits, 31), ir_iconst(b, INT32_MAX)));
	return ir_isel(b, ir_fle(b, plus, plus), ir_imax(b, flipped, min), min);
}

/* Lanes of a block that are experts, the first of which has the number `first`. */
static ir_i keep_experts(const struct route *r, ir_i order, ir_i number)
{
	struct ir *b = r->b;

	if (r->key->rows % 32 == 0)
		return order;
	return ir_isel(b, ir_igt(b, ir_iconst(b, (int32_t)r->key->rows), number), order, ir_iconst(b, TAKEN));
}

/* What the softmax of all experts divides by, and the greatest logit that it goes by; for the choice alone. */
struct softmax {
	ir_f max, sum;
};

static ir_f sum_of_all(const struct route *r, ir_f max);

static struct softmax softmax_of_all(const struct route *r)
{
	struct ir *b = r->b;
	ir_a in = ir_var_a(b, r->logits);
	ir_i number = ir_var_i(b, ir_ilane(b));
	ir_f min = ir_fconst(b, -INFINITY), part[MATH_MAX_PARTS];

	for (unsigned v = 0; v < r->parts; v++)
		part[v] = ir_var_f(b, min);
	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_m is = ir_igt(b, ir_iconst(b, (int32_t)r->key->rows), number);
		ir_set_f(b, part[v], ir_fmax(b, ir_fsel(b, is, ir_fload(b, in, part_at(r, v), 0), min), part[v]));
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, in, ir_aaddi(b, in, BLOCK_BYTES));
	ir_endloop(b);
	const ir_f max = math_lane_max(b, part);
	return (struct softmax){ max, sum_of_all(r, max) };
}

static void rank_all(const struct route *r)
{
	struct ir *b = r->b;
	ir_a in = ir_var_a(b, r->logits), order = ir_var_a(b, r->order), values = ir_var_a(b, r->values),
	     bias = ir_var_a(b, r->bias);
	ir_i number = ir_var_i(b, ir_ilane(b));
	const bool shares = !r->sigmoid && r->key->flags & KEY_BIAS;
	const struct softmax all = shares ? softmax_of_all(r) : (struct softmax){ 0 };

	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_f x = ir_fload(b, in, part_at(r, v), 0);
		if (r->sigmoid) {
			x = logistic(b, x);
			ir_fstore(b, values, x, part_at(r, v), 0);
		}
		if (shares)
			x = ir_fdiv(b, math_exp(b, ir_fsub(b, x, all.max)), all.sum);
		if (r->key->flags & KEY_BIAS)
			x = ir_fadd(b, x, ir_fload(b, bias, part_at(r, v), 0));
		ir_i kept = keep_experts(r, route_order_of(b, x), number);
		ir_fstore(b, order, ir_fbits(b, kept), part_at(r, v), 0);
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, in, ir_aaddi(b, in, BLOCK_BYTES));
	ir_set_a(b, order, ir_aaddi(b, order, BLOCK_BYTES));
	ir_set_a(b, values, ir_aaddi(b, values, BLOCK_BYTES));
	ir_set_a(b, bias, ir_aaddi(b, bias, BLOCK_BYTES));
	ir_endloop(b);
}

/* The better of two: the greater, or the one of the lower number. */
static struct candidate better(const struct route *r, struct candidate x, struct candidate y)
{
	struct ir *b = r->b;
	ir_m equal = ir_mand(b, ir_ieq(b, x.order, y.order), ir_igt(b, x.number, y.number)),
	     wins = ir_mor(b, ir_igt(b, y.order, x.order), equal);
	struct candidate c = { .order = ir_isel(b, wins, y.order, x.order),
		               .number = ir_isel(b, wins, y.number, x.number),
		               .value = ir_fsel(b, wins, y.value, x.value) };
	if (is_scaled(r))
		c.factor = ir_fsel(b, wins, y.factor, x.factor);
	return c;
}

static ir_i swap_lanes(struct ir *b, ir_i x, unsigned by) { return ir_ibits(b, ir_fxor(b, ir_fbits(b, x), by)); }

/* The best of all lanes, in every lane. */
struct candidate route_fold(const struct route *r, struct candidate best[])
{
	struct ir *b = r->b;

	for (unsigned n = r->parts / 2; n >= 1; n /= 2)
		for (unsigned i = 0; i < n; i++)
			best[i] = better(r, best[i], best[i + n]);
	struct candidate c = best[0];
	for (unsigned by = b->lanes / 2; by >= 1; by /= 2) {
		struct candidate other = { .order = swap_lanes(b, c.order, by),
			                   .number = swap_lanes(b, c.number, by),
			                   .value = ir_fxor(b, c.value, by) };
		if (is_scaled(r))
			other.factor = ir_fxor(b, c.factor, by);
		c = better(r, c, other);
	}
	return c;
}

/* Walks over all, from which `last` is taken out; best: variables. */
static void walk(const struct route *r, ir_i last, struct candidate best[])
{
	struct ir *b = r->b;
	ir_a order = ir_var_a(b, r->order), values = ir_var_a(b, r->sigmoid ? r->values : r->logits);
	ir_i number = ir_var_i(b, ir_ilane(b)), taken = ir_iconst(b, TAKEN);
	ir_a times = is_scaled(r) ? ir_var_a(b, r->times) : values;

	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_i o = ir_isel(b, ir_ieq(b, number, last), taken, ir_iload(b, order, part_at(r, v)));
		ir_fstore(b, order, ir_fbits(b, o), part_at(r, v), 0);
		ir_m wins = ir_igt(b, o, best[v].order);
		ir_set_i(b, best[v].order, ir_isel(b, wins, o, best[v].order));
		ir_set_i(b, best[v].number, ir_isel(b, wins, number, best[v].number));
		ir_set_f(b, best[v].value, ir_fsel(b, wins, ir_fload(b, values, part_at(r, v), 0), best[v].value));
		if (is_scaled(r))
			ir_set_f(b, best[v].factor,
			         ir_fsel(b, wins, ir_fload(b, times, part_at(r, v), 0), best[v].factor));
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, order, ir_aaddi(b, order, BLOCK_BYTES));
	ir_set_a(b, values, ir_aaddi(b, values, BLOCK_BYTES));
	if (is_scaled(r))
		ir_set_a(b, times, ir_aaddi(b, times, BLOCK_BYTES));
	ir_endloop(b);
}

/* ---- the choice */

/* What a choice counts among those that are left and near it: 1 / the sum of their exp(l - m). */
static ir_f share_near(const struct route *r, ir_f max)
{
	struct ir *b = r->b;
	ir_a in = ir_var_a(b, r->logits), order = ir_var_a(b, r->order);
	ir_f part[MATH_MAX_PARTS], zero = ir_fconst(b, 0.0f);
	ir_i taken = ir_iconst(b, TAKEN);

	for (unsigned v = 0; v < r->parts; v++)
		part[v] = ir_var_f(b, zero);
	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_f l = ir_fload(b, in, part_at(r, v), 0);
		ir_f far = ir_fdiv(b, ir_fsub(b, max, l), ir_fmax(b, ir_fabs(b, l), max));
		ir_f e = ir_fsel(b, ir_fle(b, r->near, far), zero, math_exp(b, ir_fsub(b, l, max)));
		ir_m left = ir_igt(b, ir_iload(b, order, part_at(r, v)), taken);
		ir_set_f(b, part[v], ir_fadd(b, part[v], ir_fsel(b, left, e, zero)));
	}
	ir_set_a(b, in, ir_aaddi(b, in, BLOCK_BYTES));
	ir_set_a(b, order, ir_aaddi(b, order, BLOCK_BYTES));
	ir_endloop(b);
	return ir_fdiv(b, ir_fconst(b, 1.0f), math_lane_sum(b, part));
}

static void choose(struct route *r)
{
	struct ir *b = r->b;
	ir_i last = ir_var_i(b, ir_iconst(b, -1));

	for (unsigned v = 0; v < r->parts; v++) {
		r->chosen[v] = ir_var_f(b, ir_fconst(b, 0.0f));
		r->value[v] = ir_var_f(b, ir_fconst(b, 0.0f));
		if (is_scaled(r))
			r->factor[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	}
	ir_s slot = ir_loop(b, ir_sconst(b, r->key->heads));
	struct candidate best[MATH_MAX_PARTS];
	for (unsigned v = 0; v < r->parts; v++) {
		best[v] = (struct candidate){ .order = ir_var_i(b, ir_iconst(b, TAKEN)),
			                      .number = ir_var_i(b, ir_iconst(b, 0)),
			                      .value = ir_var_f(b, ir_fconst(b, 0.0f)) };
		if (is_scaled(r))
			best[v].factor = ir_var_f(b, ir_fconst(b, 0.0f));
	}
	walk(r, last, best);
	struct candidate c = route_fold(r, best);
	ir_set_i(b, last, c.number);
	if (r->key->flags & KEY_GREATEST)
		c.value = share_near(r, c.value);
	ir_i at = ir_isplat(b, slot);
	for (unsigned v = 0; v < r->parts; v++) {
		ir_m here = ir_ieq(b, ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(v * b->lanes))), at);
		ir_set_f(b, r->chosen[v], ir_fsel(b, here, ir_fbits(b, last), r->chosen[v]));
		ir_set_f(b, r->value[v], ir_fsel(b, here, c.value, r->value[v]));
		if (is_scaled(r))
			ir_set_f(b, r->factor[v], ir_fsel(b, here, c.factor, r->factor[v]));
	}
	ir_endloop(b);
}

/* ---- shares */

/* Lanes of slots that there are; others become `pad`. */
static ir_f keep_slots(const struct route *r, unsigned v, ir_f x, float pad)
{
	struct ir *b = r->b;
	ir_i slot = ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(v * b->lanes)));
	return ir_fsel(b, ir_igt(b, ir_iconst(b, (int32_t)r->key->heads), slot), x, ir_fconst(b, pad));
}

/* The sum of exp(l - m) over all experts. */
static ir_f sum_of_all(const struct route *r, ir_f max)
{
	struct ir *b = r->b;
	ir_a in = ir_var_a(b, r->logits);
	ir_i number = ir_var_i(b, ir_ilane(b));
	ir_f part[MATH_MAX_PARTS], zero = ir_fconst(b, 0.0f);

	for (unsigned v = 0; v < r->parts; v++)
		part[v] = ir_var_f(b, zero);
	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_f e = math_exp(b, ir_fsub(b, ir_fload(b, in, part_at(r, v), 0), max));
		if (r->key->rows % 32)
			e = ir_fsel(b, ir_igt(b, ir_iconst(b, (int32_t)r->key->rows), number), e, ir_fconst(b, 0.0f));
		ir_set_f(b, part[v], ir_fadd(b, part[v], e));
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, in, ir_aaddi(b, in, BLOCK_BYTES));
	ir_endloop(b);
	return math_lane_sum(b, part);
}

static void share_softmax(const struct route *r, ir_f share[])
{
	struct ir *b = r->b;
	ir_f kept[MATH_MAX_PARTS];

	for (unsigned v = 0; v < r->parts; v++)
		kept[v] = keep_slots(r, v, r->value[v], -INFINITY);
	ir_f max = math_lane_max(b, kept);
	for (unsigned v = 0; v < r->parts; v++)
		share[v] = keep_slots(r, v, math_exp(b, ir_fsub(b, kept[v], max)), 0);
	ir_f sum = r->key->flags & KEY_OF_ALL ? sum_of_all(r, max) : math_lane_sum(b, share);
	for (unsigned v = 0; v < r->parts; v++)
		share[v] = ir_fdiv(b, share[v], sum);
}

static void share_sigmoid(const struct route *r, ir_f share[])
{
	struct ir *b = r->b;

	for (unsigned v = 0; v < r->parts; v++)
		share[v] = keep_slots(r, v, r->value[v], 0);
	if (!(r->key->flags & KEY_NORMED))
		return;
	float beside = r->key->flags & KEY_SHARE_EPS ? 1e-6f : 1e-20f;
	ir_f sum = ir_fadd(b, math_lane_sum(b, share), ir_fconst(b, beside));
	for (unsigned v = 0; v < r->parts; v++)
		share[v] = ir_fdiv(b, share[v], sum);
}

static void store_slots(const struct route *r, ir_a chosen, ir_a shares, ir_f scale)
{
	struct ir *b = r->b;
	ir_f share[MATH_MAX_PARTS];

	if (r->sigmoid || r->key->flags & KEY_GREATEST)
		share_sigmoid(r, share);
	else
		share_softmax(r, share);
	for (unsigned v = 0; v < r->parts; v++) {
		ir_fstore(b, chosen, r->chosen[v], part_at(r, v), 0);
		ir_f scaled = r->key->flags & KEY_GREATEST ? share[v] : ir_fmul(b, share[v], scale);
		ir_fstore(b, shares, is_scaled(r) ? ir_fmul(b, scaled, r->factor[v]) : scaled, part_at(r, v), 0);
	}
}

static const char *refuse_groups(const struct key *key)
{
	const uint32_t groups = key->kv_heads, min = key->flags & KEY_SIGMOID ? 2 : 1;

	if (groups == 0)
		return key->k ? "without groups there are none to choose" : NULL;
	if (groups > ROUTE_MAX || key->k == 0 || key->k > groups || key->rows % groups || key->rows / groups < min)
		return "groups have the same number of experts, and some of them are chosen";
	return key->heads > key->k * (key->rows / groups) ? "the chosen groups have too few experts" : NULL;
}

static const char *refuse(const struct key *key)
{
	const uint32_t flags = key->flags;

	if (flags & KEY_GREATEST && (flags != KEY_GREATEST || key->kv_heads))
		return "shares among near experts go with no other flags and no groups";
	if (flags & ~(uint32_t)(KEY_SIGMOID | KEY_NORMED | KEY_OF_ALL | KEY_BIAS | KEY_SHARE_EPS | KEY_SCALED |
	                        KEY_GREATEST) ||
	    (flags & KEY_SIGMOID && flags & KEY_OF_ALL) || (flags & KEY_SHARE_EPS && !(flags & KEY_NORMED)) ||
	    (!(flags & KEY_SIGMOID) && (flags & KEY_NORMED || (flags & KEY_BIAS && key->kv_heads))))
		return "these flags do not go together";
	if (key->kv_heads && flags & KEY_SCALED)
		return "experts in groups have no numbers of their own";
	if (key->rows == 0 || key->rows > ROUTE_EXPERTS_MAX)
		return "there is an expert at least, and not so many";
	if (key->heads == 0 || key->heads > key->rows || key->heads > ROUTE_MAX)
		return "a token goes to one expert at least, and not to so many";
	return refuse_groups(key);
}

bool route_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *why = refuse(key);

	if (why)
		return build_refuse(key, err, why);
	struct route r = { .b = b,
		           .key = key,
		           .parts = math_parts(b),
		           .blocks = (unsigned)numerics_pad(key->rows) / 32,
		           .sigmoid = key->flags & KEY_SIGMOID };
	ir_a arg = ir_arg(b);
	r.order = ir_local(b, r.blocks * BLOCK_BYTES);
	r.values = r.sigmoid ? ir_local(b, r.blocks * BLOCK_BYTES) : r.order;
	if (key->kv_heads)
		r.kept = ir_local(b, BLOCK_BYTES);
	ir_s begin = ir_begin(b);
	ir_s column = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	r.logits = ir_aadd(b, ir_aload(b, arg, ROUTE_LOGITS * 8), ir_smuli(b, column, r.blocks * BLOCK_BYTES));
	r.bias = key->flags & KEY_BIAS ? ir_aload(b, arg, ROUTE_BIAS * 8) : r.logits;
	if (is_scaled(&r))
		r.times = ir_aload(b, arg, ROUTE_TIMES * 8);
	if (key->flags & KEY_GREATEST)
		r.near = ir_fbcast(b, arg, ROUTE_SCALE * 8);
	rank_all(&r);
	if (key->kv_heads)
		route_keep_groups(&r);
	choose(&r);
	ir_s at = ir_sshli(b, column, 7);
	ir_a chosen = ir_aadd(b, ir_aload(b, arg, ROUTE_CHOSEN * 8), at),
	     shares = ir_aadd(b, ir_aload(b, arg, ROUTE_SHARES * 8), at);
	store_slots(&r, chosen, shares, ir_fbcast(b, arg, ROUTE_SCALE * 8));
	ir_endloop(b);
	return true;
}
