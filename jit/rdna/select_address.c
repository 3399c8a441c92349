/* jit/rdna/select_address.c - addresses in scalar registers, and the bases that memory instructions are given.
 *
 * Addresses of LDS have 32 bits, others 64.
 */
#include "jit/rdna/select.h"

struct rsel_pointer rsel_pointer(struct rsel *s, uint16_t r, int64_t disp)
{
	struct rsel_pointer p = { .lds = s->scan.reg[r].lds, .disp = disp };
	uint16_t root = rscan_root(&s->scan, s->ir, r, &p.disp);
	const struct ir_ins *i = rsel_definition(s, root);
	uint8_t fold = s->ir->is_var[root] ? RSCAN_NO : s->scan.reg[root].fold;

	p.of = root;
	p.version = s->version[root];
	if (fold == RSCAN_ADDRESS) {
		p.locals = i->op == IR_local;
		p.disp += s->scan.reg[root].offset;
	} else if (fold == RSCAN_CONST) {
		p.base = rdna_lir_fixed(RDNA_ABI_ARG, 2);
	} else {
		p.base = rsel_home(s, root)->o;
	}
	return p;
}

/* The halves of a pair, as a scalar that may be anything. */
static struct rsel_value halves(rsel_op pair)
{
	struct rsel_value v = rsel_whole(pair, pair);

	v.o.n = v.high.n = 1;
	if (pair.kind == RDNA_LIR_FIXED)
		v.high.reg++;
	else
		v.high.sub++;
	return v;
}

rsel_op rsel_base(struct rsel *s, const struct rsel_pointer *p, int64_t low, int64_t high, int32_t *offset)
{
	int64_t span = high - low + 1, above = p->disp - low, far = above - (above % span + span) % span;

	*offset = (int32_t)(p->disp - far);
	if (!far)
		return p->base;
	uint32_t known = rsel_remembered(s, p, 0, far);
	if (!known) {
		known = rdna_lir_new(s->l, RDNA_CLASS_SGPR, 2);
		struct rsel_value d = halves(rdna_lir_r(s->l, known)), a = halves(p->base), b = rsel_constant(far);
		rsel_sum_of(s, false, &d, &a, &b);
		rsel_remember(s, p, 0, far, known);
	}
	return rdna_lir_r(s->l, known);
}

static rsel_op lds_base(struct rsel *s, const struct rsel_pointer *p)
{
	return p->locals ? rsel_at_entry(s, RSEL_LOCALS, 0) : p->base;
}

rsel_op rsel_lds_sum(struct rsel *s, const struct rsel_pointer *p)
{
	rsel_op base = lds_base(s, p), d;

	if (base.kind == RDNA_LIR_NONE)
		return rsel_low_half(p->disp);
	if (!p->disp)
		return base;
	d = rsel_new_sgpr(s);
	rsel_salu(s, RDNA_S_ADD_CO_U32, d, base, rsel_low_half(p->disp));
	return d;
}

static rsel_op address_result(struct rsel *s, const struct ir_ins *i)
{
	if (s->ir->is_var[i->dst])
		return rsel_home(s, i->dst)->o;
	rsel_op o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_SGPR, s->scan.reg[i->dst].lds ? 1 : 2));
	s->value[i->dst] = (struct rsel_value){ .kind = RSEL_ADDRESS, .o = o };
	return o;
}

static void lds_address_sum(struct rsel *s, const struct ir_ins *i, struct rsel_pointer *p, rsel_op more)
{
	rsel_op base = lds_base(s, p);
	bool constant = more.kind == RDNA_LIR_CONST;

	if (constant)
		p->disp += (int32_t)more.value;
	if (base.kind == RDNA_LIR_NONE && !p->disp && !constant && !s->ir->is_var[i->dst] && !s->ir->is_var[i->b])
		s->value[i->dst] = (struct rsel_value){ .kind = RSEL_ADDRESS, .o = more }; /* LDS begins at 0 */
	else if (constant)
		rsel_salu(s, RDNA_S_ADD_CO_U32, address_result(s, i),
		          base.kind == RDNA_LIR_NONE ? rsel_low_half(0) : base, rsel_low_half(p->disp));
	else
		rsel_salu(s, RDNA_S_ADD_CO_U32, address_result(s, i), rsel_lds_sum(s, p), more);
}

void rsel_address_sum(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_pointer p = rsel_pointer(s, i->a, i->op == IR_addi ? i->imm : 0);
	struct rsel_value b = i->b ? rsel_scalar(s, i->b) : rsel_constant(0);

	if (p.lds) {
		lds_address_sum(s, i, &p, i->b ? b.o : rsel_low_half(0));
		return;
	}
	/* only aaddi has a displacement here: it is not folded into aadd */
	struct rsel_value a = halves(p.base), d = halves(address_result(s, i)), disp = rsel_constant(p.disp);
	rsel_sum_of(s, false, &d, &a, i->b ? &b : &disp);
}

void rsel_address_move(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	bool lds = s->scan.reg[i->dst].lds;
	struct rsel_pointer p = { .lds = lds, .locals = i->op == IR_local, .disp = s->scan.reg[i->dst].offset };

	if (i->op == IR_arg)
		p = (struct rsel_pointer){ .base = rdna_lir_fixed(RDNA_ABI_ARG, 2) };
	else if (i->op == IR_mov)
		p = rsel_pointer(s, i->a, 0);
	if (lds)
		rsel_mov(s, address_result(s, i), rsel_lds_sum(s, &p));
	else
		rsel_salu(s, RDNA_S_MOV_B64, address_result(s, i), p.base, rsel_none());
}
