/* jit/rdna/select_branch.c - loops, ifs, and the conditions that they go by.
 *
 * Owns: the rows for C and for control flow. A condition is 0 or 1 in a scalar register of its own; SCC does not
 * outlive the instructions that one row becomes. Rule for editors: what selection remembers of a straight run ends
 * where control flow does anything (rsel_new_block).
 */
#include "jit/rdna/select.h"

/* --- conditions */

/* d = SCC, or the opposite. */
static void keep_scc(struct rsel *s, rsel_op d, bool is)
{
	rsel_salu(s, RDNA_S_CSELECT_B32, d, rdna_lir_imm(is), rdna_lir_imm(!is));
}

/* slt, sle. op: of signed halves; other: of those without sign. extra: a <= b, which is that b is not less than a. */
static void rsel_compare_scalars(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), b = rsel_scalar(s, i->b);
	bool narrow = rsel_is_narrow(&a) && rsel_is_narrow(&b), small = rsel_is_int32(&a) && rsel_is_int32(&b);

	if (narrow || small)
		rsel_salu(s, small ? r->op : r->other, rsel_none(), a.o, b.o);
	else
		rsel_less(s, r->extra ? &b : &a, r->extra ? &a : &b);
	keep_scc(s, rsel_dst(s, i), narrow || small || !r->extra);
}

static void rsel_equal(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), b = rsel_scalar(s, i->b);

	if ((rsel_is_narrow(&a) && rsel_is_narrow(&b)) || (rsel_is_int32(&a) && rsel_is_int32(&b))) {
		rsel_salu(s, r->op, rsel_none(), a.o, b.o);
		keep_scc(s, rsel_dst(s, i), true);
		return;
	}
	rsel_op low = rsel_new_sgpr(s), high = rsel_new_sgpr(s);
	rsel_salu(s, RDNA_S_XOR_B32, low, a.o, b.o);
	rsel_salu(s, RDNA_S_XOR_B32, high, a.high, b.high);
	rsel_salu(s, RDNA_S_OR_B32, rsel_new_sgpr(s), low, high);
	keep_scc(s, rsel_dst(s, i), false);
}

static void rsel_select_scalar(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value yes = rsel_scalar(s, i->b), no = rsel_scalar(s, i->c);
	int64_t low = yes.low < no.low ? yes.low : no.low, top = yes.top > no.top ? yes.top : no.top;
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, false);

	rsel_salu(s, RDNA_S_CMP_LG_U32, rsel_none(), rsel_mask(s, i->a), rdna_lir_imm(0));
	rsel_salu(s, r->op, d.o, yes.o, no.o);
	if (d.high.kind != RDNA_LIR_CONST)
		rsel_salu(s, r->op, d.high, yes.high, no.high);
}

static void rsel_logic(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_mask(s, i->a), b = i->b ? rsel_mask(s, i->b) : rdna_lir_imm(1);

	rsel_salu(s, r->op, rsel_dst(s, i), a, b);
}

/* mmov, cmov */
static void rsel_move_bits(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op a = rsel_mask(s, i->a);

	rsel_mov(s, rsel_dst(s, i), a);
}

/* any, all. extra: what the mask is compared with. */
static void rsel_lanes(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_salu(s, r->op, rsel_none(), rsel_mask(s, i->a), rdna_lir_imm(r->extra));
	keep_scc(s, rsel_dst(s, i), true);
}

/* --- control flow */

static void rsel_loop(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op count = rsel_scalar(s, i->a).o, index = s->scan.reg[i->dst].uses ? rsel_new_sgpr(s) : rsel_none();

	if (s->ir->is_var[i->a]) { /* the body may write the variable; the count is read once */
		rsel_op copy = rsel_new_sgpr(s);
		rsel_mov(s, copy, count);
		count = copy;
	}
	struct rdna_lir_ins *n = rsel_add(s, RDNA_LIR_LOOP);
	n->d[0] = index;
	n->s[0] = count;
	s->value[i->dst] = (struct rsel_value){
		.kind = RSEL_SCALAR, .o = index, .high = rdna_lir_imm(0), .low = 0, .top = INT32_MAX
	};
	rsel_new_block(s);
}

static void rsel_endloop(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_add(s, RDNA_LIR_ENDLOOP);
	rsel_new_block(s);
}

/* if, break */
static void rsel_branch(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op condition = rsel_mask(s, i->a);

	rsel_add(s, r->op)->s[0] = condition;
	rsel_new_block(s);
}

/* else, endif */
static void rsel_meet(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_add(s, r->op);
	rsel_new_block(s);
}

const struct rsel_rule rsel_branch_rules[IR_ROWS] = {
	[IR_slt] = { .select = rsel_compare_scalars, .op = RDNA_S_CMP_LT_I32, .other = RDNA_S_CMP_LT_U32 },
	[IR_sle] = { .select = rsel_compare_scalars,
	             .op = RDNA_S_CMP_LE_I32,
	             .other = RDNA_S_CMP_LE_U32,
	             .extra = true },
	[IR_seq] = { .select = rsel_equal, .op = RDNA_S_CMP_EQ_U32 },
	[IR_ssel] = { .select = rsel_select_scalar, .op = RDNA_S_CSELECT_B32 },
	[IR_cand] = { .select = rsel_logic, .op = RDNA_S_AND_B32 },
	[IR_cxor] = { .select = rsel_logic, .op = RDNA_S_XOR_B32 },
	[IR_cor] = { .select = rsel_logic, .op = RDNA_S_OR_B32 },
	[IR_cnot] = { .select = rsel_logic, .op = RDNA_S_XOR_B32 },
	[IR_mmov] = { .select = rsel_move_bits },
	[IR_cmov] = { .select = rsel_move_bits },
	[IR_any] = { .select = rsel_lanes, .op = RDNA_S_CMP_LG_U32, .extra = 0 },
	[IR_all] = { .select = rsel_lanes, .op = RDNA_S_CMP_EQ_U32, .extra = UINT32_MAX },
	[IR_loop] = { .select = rsel_loop },
	[IR_endloop] = { .select = rsel_endloop },
	[IR_if] = { .select = rsel_branch, .op = RDNA_LIR_IF },
	[IR_else] = { .select = rsel_meet, .op = RDNA_LIR_ELSE },
	[IR_endif] = { .select = rsel_meet, .op = RDNA_LIR_ENDIF },
	[IR_break] = { .select = rsel_branch, .op = RDNA_LIR_BREAK },
};
