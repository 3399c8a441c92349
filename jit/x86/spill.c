/* jit/x86/spill.c - rewrites the instructions once it is known which values live in memory: reloads, stores, folded
 * operands. */
#include "base/array.h"
#include "jit/x86/regalloc_state.h"

static struct lir_ins *ra_out(struct ra *ra, const struct lir_ins *i)
{
	if (!array_grow((void **)&ra->out, &ra->out_capacity, ra->n_out + 1, sizeof *ra->out)) {
		ra_no_memory(ra);
		return NULL;
	}
	ra->out[ra->n_out] = *i;
	return &ra->out[ra->n_out++];
}

static void ra_count(struct ra *ra)
{
	ra->result->spills++;
	ra->result->spills_in_inner_loops += ra->inner;
}

static uint32_t ra_tiny(struct ra *ra, uint32_t like)
{
	uint32_t v = lir_reg(ra->l, (enum lir_class)ra->l->cls[like]);
	if (!array_grow((void **)&ra->reg, &ra->reg_capacity, ra->l->n_regs, sizeof *ra->reg)) {
		ra_no_memory(ra);
		return like;
	}
	ra->reg[v] = (struct ra_reg){ .flags = RA_TINY, .slot = RA_NONE };
	return v;
}

static void ra_at_slot(struct ra *ra, struct lir_ins *i, uint32_t v)
{
	struct ra_reg *r = &ra->reg[v];
	i->mem = ra_class[ra->l->cls[v]].slot;
	if (r->slot == RA_NONE)
		r->slot = i->mem == LIR_AT_VEC_SLOT ? ra->l->vec_slots++ : ra->l->gpr_slots++;
	i->disp = (int32_t)r->slot;
	ra_count(ra);
}

static uint8_t ra_width(const struct ra *ra, uint32_t v)
{
	uint8_t cls = ra->l->cls[v];
	return cls == LIR_GPR ? X86_GPR64 : cls == LIR_MASK ? X86_KREG : ra->l->lanes == 16 ? X86_ZMM : X86_YMM;
}

/* The instruction that loads v's value into the register `to`. */
static void ra_reload(struct ra *ra, uint32_t v, uint32_t to, uint32_t ir)
{
	uint8_t cls = ra->l->cls[v];
	struct lir_ins n = { .form = ra_class[cls].load, .op = ra_class[cls].load_op, .a = LIR_MEM };
	if (ra_made_again(ra, v)) {
		n = ra->l->ins[ra->reg[v].start];
	} else {
		n.wd = n.ws = ra_width(ra, v);
		ra_at_slot(ra, &n, v);
	}
	n.dst = to;
	n.ir = ir;
	ra_out(ra, &n);
}

/* Lets the instruction read v from memory itself, if its form can and nothing else in it reads v or memory. */
static bool ra_fold(struct ra *ra, struct lir_ins *i, uint32_t v)
{
	uint8_t fold = lir_facts[i->form].fold;
	uint32_t *const operand[3] = { &i->b, &i->c, &i->a };
	static const uint8_t bit[3] = { LIR_B, LIR_C, LIR_A };
	bool again = ra_made_again(ra, v);
	const struct lir_ins *def = &ra->l->ins[ra->reg[v].start];
	if (i->mem || (again && def->form != LIR_CONST) || (i->a == v) + (i->b == v) + (i->c == v) != 1)
		return false;
	for (unsigned k = 0; k < 3; k++) {
		if (*operand[k] != v || !(fold & bit[k]))
			continue;
		*operand[k] = LIR_MEM;
		if (again) {
			i->mem = LIR_AT_POOL;
			i->disp = def->disp;
		} else {
			ra_at_slot(ra, i, v);
		}
		return true;
	}
	return false;
}

static void ra_replace(struct lir_ins *i, uint32_t from, uint32_t to)
{
	uint32_t *const operand[MAX_OPERANDS] = { &i->a, &i->b, &i->c, &i->base, &i->index };
	for (unsigned k = 0; k < MAX_OPERANDS; k++)
		if (*operand[k] == from)
			*operand[k] = to;
}

static void ra_rewrite_one(struct ra *ra, struct lir_ins i)
{
	uint32_t reads[MAX_OPERANDS];
	unsigned n = ra_reads(&i, reads);
	for (unsigned k = 0; k < n; k++) {
		uint32_t v = reads[k];
		if (!(ra->reg[v].flags & RA_SPILLED) || ra_fold(ra, &i, v))
			continue;
		uint32_t t = ra_tiny(ra, v);
		ra_reload(ra, v, t, i.ir);
		ra_replace(&i, v, t);
	}
	uint32_t v = i.dst;
	if (!v || !(ra->reg[v].flags & RA_SPILLED)) {
		ra_out(ra, &i);
		return;
	}
	if (ra_made_again(ra, v))
		return;
	uint8_t cls = ra->l->cls[v];
	struct lir_ins s = { .form = ra_class[cls].save, .op = ra_class[cls].save_op, .ir = i.ir };
	s.wd = s.ws = ra_width(ra, v);
	bool copy = i.form == ra_class[cls].load && i.a != LIR_MEM;
	if (copy) {
		s.a = i.a;
	} else {
		s.a = i.dst = ra_tiny(ra, v);
		ra_out(ra, &i);
	}
	ra_at_slot(ra, &s, v);
	ra_out(ra, &s);
}

static bool ra_is_inner(const struct lir *l, size_t loop)
{
	size_t k = loop + 1;
	while (l->ins[k].form != LIR_LOOP && l->ins[k].form != LIR_ENDLOOP)
		k++;
	return l->ins[k].form == LIR_ENDLOOP;
}

bool ra_rewrite(struct ra *ra)
{
	struct lir *l = ra->l;
	ra->n_out = 0;
	ra->inner = false;
	for (size_t k = 0; !l->failed && k < l->n_ins; k++) {
		struct lir_ins i = l->ins[k];
		/* A loop's own reloads: those of its entry test happen outside it, those of its end inside. */
		ra_rewrite_one(ra, i);
		if (i.form == LIR_LOOP || i.form == LIR_ENDLOOP)
			ra->inner = i.form == LIR_LOOP && ra_is_inner(l, k);
	}
	if (l->failed)
		return false;
	struct lir_ins *ins = l->ins;
	size_t capacity = l->ins_capacity;
	l->ins = ra->out;
	l->ins_capacity = ra->out_capacity;
	l->n_ins = ra->n_out;
	ra->out = ins;
	ra->out_capacity = capacity;
	return true;
}
