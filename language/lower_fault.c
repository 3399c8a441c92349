/* language/lower_fault.c - accesses out of bounds, with check: the first one of each lane is kept, and that of the
 * lowest instance is written where the host reads it.
 */
#include "language/lower_memory.h"

void jk_note_fault(struct lower *l, const struct spot *at)
{
	if (!l->check || at->ok.kind == VALUE_NONE)
		return;
	struct ir *b = l->ir;
	const ir_m ok = { jk_lower_to_mask(l, &at->ok) };
	ir_m bad = ir_mnot(b, ok);
	const uint16_t active = jk_lower_full_mask(l);
	const ir_i have = { l->fault }, zero = ir_iconst(b, 0), one = ir_iconst(b, 1);
	const ir_i access = ir_iconst(b, (int32_t)l->k->use_of[at->n->use]);

	if (active)
		bad = ir_mand(b, bad, (ir_m){ active });
	bad = ir_mand(b, bad, ir_ieq(b, have, zero));
	/* which subscript: the first that is none */
	for (unsigned k = at->s->dims; k-- > 0;) {
		struct value v = at->sub[k];
		const struct value index = jk_lower_cast(l, at->n, JK_I64, v);
		const ir_l x = { jk_lower_to_vector(l, &index) }, extent = ir_lconst(b, (int64_t)at->s->size[k]),
			   old = { l->fault_index };
		const ir_i which = ir_iconst(b, (int32_t)k), old_which = { l->fault_which };
		const ir_m here = ir_mand(b, bad, ir_mnot(b, ir_lult(b, x, extent)));
		jk_lower_assign(l, l->fault_index, ir_lsel(b, here, x, old).r);
		jk_lower_assign(l, l->fault_which, ir_isel(b, here, which, old_which).r);
	}
	jk_lower_assign(l, l->fault_access, ir_isel(b, bad, access, (ir_i){ l->fault_access }).r);
	jk_lower_assign(l, l->fault, ir_isel(b, bad, one, have).r);
}

void jk_lower_faults_begin(struct lower *l)
{
	if (!l->check)
		return;
	const uint16_t zero = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0),
		       wide_zero = jk_lower_emit(l, IR_lconst, 0, 0, 0, 0);
	l->fault = jk_lower_variable(l, IR_TYPE_i32, zero);
	l->fault_access = jk_lower_variable(l, IR_TYPE_i32, zero);
	l->fault_which = jk_lower_variable(l, IR_TYPE_i32, zero);
	l->fault_index = jk_lower_variable(l, IR_TYPE_i64, wide_zero);
}

/* The least of all lanes, in each of them. */
static ir_l min_of_lanes(struct lower *l, ir_l v)
{
	struct ir *b = l->ir;

	for (unsigned d = l->lanes / 2; d; d /= 2) {
		const ir_d x = ir_dbits(b, v);
		v = ir_lmin(b, v, ir_lbits(b, (ir_d){ ir_emit(b, IR_dxor, 0, x.r, 0, 0, d) }));
	}
	return v;
}

/* Of the lanes of the mask, which are one. */
static void put_fault(struct lower *l, uint16_t to, int32_t disp, ir_m mask, ir_l v)
{
	struct ir *b = l->ir;
	const ir_l none = ir_lconst(b, INT64_MAX), chosen = ir_lsel(b, mask, v, none);
	const ir_l one = min_of_lanes(l, chosen);

	ir_lstore(b, (ir_a){ to }, one, disp, 1);
}

void jk_lower_faults_end(struct lower *l)
{
	if (!l->check)
		return;
	struct ir *b = l->ir;
	const uint32_t scope = jk_lower_scope(l);
	const ir_i zero = ir_iconst(b, 0);
	const ir_m some = ir_ine(b, (ir_i){ l->fault }, zero);
	const uint16_t to = l->fault_address;

	jk_lower_open_if(l, ir_any(b, some).r);
	const ir_l base = ir_lsplat(b, (ir_s){ l->instance }), one = ir_lconst(b, 1), none = ir_lconst(b, INT64_MAX);
	const ir_l lane = ir_u2l(b, ir_ilane(b)), lanes = l->k->cooperates ? ir_lconst(b, 0) : lane;
	const ir_l number = ir_ladd(b, ir_ladd(b, base, lanes), one), mine = ir_lsel(b, some, number, none);
	const ir_l first = min_of_lanes(l, mine), old = ir_lload(b, (ir_a){ to }, 0, 1), wide_zero = ir_lconst(b, 0);
	const ir_l tie = ir_lsel(b, ir_mand(b, some, ir_leq(b, number, first)), lane, none),
		   which = min_of_lanes(l, tie);
	const ir_m chosen = ir_leq(b, lane, which), is_first = ir_ilt(b, ir_ilane(b), ir_iconst(b, 1));
	const ir_m better = ir_mor(b, ir_leq(b, old, wide_zero), ir_llt(b, first, old));
	jk_lower_open_if(l, ir_any(b, ir_mand(b, better, is_first)).r);
	ir_lstore(b, (ir_a){ to }, first, 0, 1);
	const ir_m only = ir_mand(b, chosen, ir_leq(b, lane, which));
	put_fault(l, to, 8, only, ir_u2l(b, (ir_i){ l->fault_access }));
	put_fault(l, to, 16, only, (ir_l){ l->fault_index });
	put_fault(l, to, 24, only, ir_u2l(b, (ir_i){ l->fault_which }));
	jk_lower_close_if(l);
	jk_lower_close_if(l);
	jk_lower_unscope(l, scope);
	jk_lower_assign(l, l->fault, zero.r);
}
