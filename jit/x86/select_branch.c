/* jit/x86/select_branch.c - loops, ifs and what they go by: conditions, and masks as bits.
 *
 * A condition is 0 or 1 in a general register. Rule for editors: what selection remembers of a straight run ends where
 * control flow does anything (sel_new_run), and constants stand before the outermost block that needs them.
 */
#include <string.h>

#include "jit/x86/select_state.h"

static bool fits32(int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }

/* --- conditions */

void sel_compare(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	int64_t v;
	uint32_t a = sel_gpr(s, i->a);
	if (sel_scalar_of(s, i->b, &v) && fits32(v)) {
		sel_ins(s, LIR_SCMPI, r->op, sel_dst(s, i), a, 0, sel_no_memory)->imm = v;
		return;
	}
	uint32_t b = sel_gpr(s, i->b);
	sel_ins(s, LIR_SCMP, r->op, sel_dst(s, i), a, b, sel_no_memory);
}

void sel_choose(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t condition = sel_gpr(s, i->a), yes = sel_gpr(s, i->b), no = sel_gpr(s, i->c);
	sel_ins(s, LIR_SSEL, r->op, sel_dst(s, i), no, yes, sel_no_memory)->c = condition;
}

void sel_not(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t a = sel_gpr(s, i->a);
	sel_ins(s, LIR_SOPI, r->op, sel_dst(s, i), a, 0, sel_no_memory)->imm = 1;
}

uint32_t sel_bits(struct sel *s, uint16_t mask)
{
	bool apart = s->target->mask_regs != 0;
	uint32_t m = sel_vec(s, mask), t = lir_reg(s->l, LIR_GPR);
	struct lir_ins *n =
		sel_ins(s, apart ? LIR_MTO_GPR : LIR_TO_GPR, apart ? X86_KMOVW : X86_VMOVMSKPS, t, m, 0, sel_no_memory);
	if (apart)
		n->ws = X86_KREG;
	return t;
}

void sel_mask_bits(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t bits = sel_bits(s, i->a);
	sel_ins(s, LIR_SCMPI, r->op, sel_dst(s, i), bits, 0, sel_no_memory)->imm =
		i->op == IR_all ? (1 << s->l->lanes) - 1 : 0;
}

/* --- blocks */

static void sel_new_run(struct sel *s) { memset(s->memo, 0, sizeof s->memo); }

static void sel_enter(struct sel *s)
{
	if (!s->blocks++)
		s->outermost = s->l->n_ins;
}

static void sel_leave(struct sel *s)
{
	s->blocks--;
	sel_new_run(s);
}

void sel_if(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_enter(s);
	uint32_t condition = sel_gpr(s, i->a);
	sel_ins(s, LIR_IF, r->op, 0, condition, 0, sel_no_memory);
	sel_new_run(s);
}

void sel_else(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, LIR_ELSE, r->op, 0, 0, 0, sel_no_memory);
	sel_new_run(s);
}

void sel_endif(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	sel_ins(s, LIR_ENDIF, r->op, 0, 0, 0, sel_no_memory);
	sel_leave(s);
}

void sel_break(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	uint32_t condition = sel_gpr(s, i->a);
	sel_ins(s, LIR_BREAK, r->op, 0, condition, 0, sel_no_memory);
	sel_new_run(s);
}

void sel_if_bit(struct sel *s, uint32_t bits, unsigned bit)
{
	sel_enter(s);
	sel_ins(s, LIR_IF, X86_JE, 0, bits, 0, sel_no_memory)->imm = INT64_C(1) << bit;
}

void sel_end_bit(struct sel *s)
{
	sel_ins(s, LIR_ENDIF, X86_JMP, 0, 0, 0, sel_no_memory);
	s->blocks--;
}

/* --- loops: an entry test unless the count is known to be positive, then a test at the bottom. Counted down when
 * nobody reads the index. */

void sel_loop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	bool var = s->ir->is_var[i->dst];
	struct sel_loop *o = &s->loop[s->depth];
	int64_t n = 0;
	bool known = sel_scalar_of(s, i->a, &n) && n > 0 && fits32(n);
	sel_enter(s);
	*o = (struct sel_loop){ .down = !var && !s->scan.reg[i->dst].uses };
	o->count = known ? 0 : sel_gpr(s, i->a);
	o->counter = var || o->down ? lir_reg(s->l, LIR_GPR) : sel_reg(s, i->dst);
	if (!o->down)
		o->last = n;
	if (!known && !o->down && s->ir->is_var[i->a] && s->scan.reg[i->a].def > s->at) {
		uint32_t copy = lir_reg(s->l, LIR_GPR); /* the body writes the variable; the count was read once */
		sel_ins(s, LIR_SMOV, X86_MOV, copy, o->count, 0, sel_no_memory);
		o->count = copy;
	}
	if (o->down && !known)
		sel_ins(s, LIR_SMOV, X86_MOV, o->counter, o->count, 0, sel_no_memory);
	else
		sel_scalar_constant(s, o->counter, o->down ? n : 0);
	sel_ins(s, LIR_LOOP, X86_TEST, 0, known ? 0 : o->down ? o->counter : o->count, 0, sel_no_memory);
	s->depth++;
	sel_new_run(s);
	if (var)
		sel_ins(s, LIR_SMOV, X86_MOV, sel_reg(s, i->dst), o->counter, 0, sel_no_memory);
}

void sel_endloop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r)
{
	struct sel_loop *o = &s->loop[--s->depth];
	sel_ins(s, LIR_SOPI, X86_ADD, o->counter, o->counter, 0, sel_no_memory)->imm = o->down ? -1 : 1;
	struct lir_ins *n = sel_ins(s, LIR_ENDLOOP, o->down ? X86_JNE : X86_JL, 0, o->counter, o->down ? 0 : o->count,
	                            sel_no_memory);
	n->imm = o->last;
	sel_leave(s);
}
