/* kernels-templates/kinds/route_groups.c - experts in groups, of which a token's are of some: which groups those are,
 * and that the experts of the others are taken out (numerics.h rule 14).
 */
#include "kernels-templates/kinds/route.h"

/* Lanes that are experts of the group whose first one is `first`. */
static ir_m in_group(const struct route *r, ir_i number, ir_i first)
{
	struct ir *b = r->b;
	ir_i behind = ir_iadd(b, first, ir_iconst(b, (int32_t)(r->key->rows / r->key->kv_heads)));

	return ir_mand(b, ir_igt(b, number, ir_iadd(b, first, ir_iconst(b, -1))), ir_igt(b, behind, number));
}

/* The best of a group, but for one. */
static struct candidate best_of_group(const struct route *r, ir_i first, ir_i but)
{
	struct ir *b = r->b;
	ir_i number = ir_var_i(b, ir_ilane(b)), taken = ir_iconst(b, TAKEN);
	ir_a order = ir_var_a(b, r->order);
	struct candidate best[MATH_MAX_PARTS];

	for (unsigned v = 0; v < r->parts; v++)
		best[v] = (struct candidate){ .order = ir_var_i(b, taken),
			                      .number = ir_var_i(b, ir_iconst(b, 0)),
			                      .value = ir_var_f(b, ir_fconst(b, 0.0f)) };
	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_i o = ir_isel(b, in_group(r, number, first), ir_iload(b, order, part_at(r, v)), taken);
		o = ir_isel(b, ir_ieq(b, number, but), taken, o);
		ir_m wins = ir_igt(b, o, best[v].order);
		ir_set_i(b, best[v].order, ir_isel(b, wins, o, best[v].order));
		ir_set_i(b, best[v].number, ir_isel(b, wins, number, best[v].number));
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, order, ir_aaddi(b, order, BLOCK_BYTES));
	ir_endloop(b);
	return route_fold(r, best);
}

/* The float that has this order. */
static ir_f of_order(struct ir *b, ir_i order)
{
	return ir_fbits(b, ir_ixor(b, order, ir_iand(b, ir_isar(b, order, 31), ir_iconst(b, INT32_MAX))));
}

/* A group in each lane. */
static ir_i lane_numbers(const struct route *r, unsigned v)
{
	return ir_iadd(r->b, ir_ilane(r->b), ir_iconst(r->b, (int32_t)(v * r->b->lanes)));
}

/* How good each group is: its best expert, or with a sigmoid the sum of its best two. */
static void rank_groups(const struct route *r, ir_i score[])
{
	struct ir *b = r->b;

	for (unsigned v = 0; v < r->parts; v++)
		score[v] = ir_var_i(b, ir_iconst(b, TAKEN));
	ir_s group = ir_loop(b, ir_sconst(b, r->key->kv_heads));
	ir_i first = ir_isplat(b, ir_smuli(b, group, r->key->rows / r->key->kv_heads)), at = ir_isplat(b, group);
	struct candidate best = best_of_group(r, first, ir_iconst(b, -1));
	ir_i one = best.order;
	if (r->sigmoid) {
		struct candidate second = best_of_group(r, first, best.number);
		one = route_order_of(b, ir_fadd(b, of_order(b, best.order), of_order(b, second.order)));
	}
	for (unsigned v = 0; v < r->parts; v++)
		ir_set_i(b, score[v], ir_isel(b, ir_ieq(b, lane_numbers(r, v), at), one, score[v]));
	ir_endloop(b);
}

static void choose_groups(const struct route *r, ir_i score[])
{
	struct ir *b = r->b;
	struct candidate each[MATH_MAX_PARTS];
	ir_i keep[MATH_MAX_PARTS];

	for (unsigned v = 0; v < r->parts; v++)
		keep[v] = ir_var_i(b, ir_iconst(b, 0));
	ir_loop(b, ir_sconst(b, r->key->k));
	for (unsigned v = 0; v < r->parts; v++)
		each[v] = (struct candidate){
			.order = score[v], .number = lane_numbers(r, v), .value = ir_fconst(b, 0.0f)
		};
	struct candidate best = route_fold(r, each);
	for (unsigned v = 0; v < r->parts; v++) {
		ir_m here = ir_ieq(b, lane_numbers(r, v), best.number);
		ir_set_i(b, keep[v], ir_isel(b, here, ir_iconst(b, 1), keep[v]));
		ir_set_i(b, score[v], ir_isel(b, here, ir_iconst(b, TAKEN), score[v]));
	}
	ir_endloop(b);
	for (unsigned v = 0; v < r->parts; v++)
		ir_fstore(b, r->kept, ir_fbits(b, keep[v]), part_at(r, v), 0);
}

/* Takes out the experts of all groups but the best. */
void route_keep_groups(const struct route *r)
{
	struct ir *b = r->b;
	ir_i score[MATH_MAX_PARTS], taken = ir_iconst(b, TAKEN);

	rank_groups(r, score);
	choose_groups(r, score);
	ir_s group = ir_loop(b, ir_sconst(b, r->key->kv_heads));
	ir_i first = ir_isplat(b, ir_smuli(b, group, r->key->rows / r->key->kv_heads)),
	     keep = ir_ibits(b, ir_fbcast(b, ir_aadd(b, r->kept, ir_sshli(b, group, 2)), 0));
	ir_m out = ir_ieq(b, keep, ir_iconst(b, 0));
	ir_a order = ir_var_a(b, r->order);
	ir_i number = ir_var_i(b, ir_ilane(b));
	ir_loop(b, ir_sconst(b, r->blocks));
	for (unsigned v = 0; v < r->parts; v++) {
		ir_m gone = ir_mand(b, out, in_group(r, number, first));
		ir_i o = ir_isel(b, gone, taken, ir_iload(b, order, part_at(r, v)));
		ir_fstore(b, order, ir_fbits(b, o), part_at(r, v), 0);
		ir_set_i(b, number, ir_iadd(b, number, ir_iconst(b, (int32_t)b->lanes)));
	}
	ir_set_a(b, order, ir_aaddi(b, order, BLOCK_BYTES));
	ir_endloop(b);
	ir_endloop(b);
}
