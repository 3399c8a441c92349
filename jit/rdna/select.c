/* jit/rdna/select.c - IR operations to RDNA instructions on virtual registers: operands, instructions, barriers, the
 * pass.
 *
 * Owns: operands and instructions. Decides no registers and no order: instructions come out in the IR's order, but for
 * loads that are done together and values made at the entry. Rule for editors: a row of a table first, a function only
 * for what a row cannot say; no instruction writes VCC but those that must.
 */
#include <stdlib.h>

#include "base/array.h"
#include "jit/rdna/select.h"

/* --- operands */

bool rsel_inline(uint32_t value)
{
	switch (value) {
	case 0x3f000000:
	case 0xbf000000:
	case 0x3f800000:
	case 0xbf800000:
	case 0x40000000:
	case 0xc0000000:
	case 0x40800000:
	case 0xc0800000:
	case 0x3e22f983: return true;
	default: return value <= 64 || value >= 0xfffffff0u;
	}
}

rsel_op rsel_new_vgpr(struct rsel *s) { return rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, 1)); }

rsel_op rsel_new_pair(struct rsel *s) { return rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, 2)); }

rsel_op rsel_new_sgpr(struct rsel *s) { return rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_SGPR, 1)); }

/* fneg and fabs of o. */
static rsel_op with_sign(rsel_op o, bool minus)
{
	if (o.kind == RDNA_LIR_CONST) {
		o.value = minus ? o.value ^ 0x80000000u : o.value & 0x7fffffffu;
		return o;
	}
	o.mods = minus ? o.mods ^ RDNA_NEG : RDNA_ABS;
	return o;
}

static struct rsel_value *make_home(struct rsel *s, uint16_t r)
{
	struct rsel_value *v = &s->value[r];

	switch (s->ir->type[r]) {
	case IR_TYPE_s: {
		uint32_t pair = rdna_lir_new(s->l, RDNA_CLASS_SGPR, 2);
		*v = (struct rsel_value){ .kind = RSEL_SCALAR,
			                  .o = rdna_lir_words(pair, 0, 1),
			                  .high = rdna_lir_words(pair, 1, 1),
			                  .low = INT64_MIN,
			                  .top = INT64_MAX };
		break;
	}
	case IR_TYPE_a:
		*v = (struct rsel_value){
			.kind = RSEL_ADDRESS,
			.o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_SGPR, s->scan.reg[r].lds ? 1 : 2))
		};
		break;
	case IR_TYPE_t:
		*v = (struct rsel_value){
			.kind = RSEL_VECTOR,
			.o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, IR_TILE * IR_TILE / 32))
		};
		break;
	case IR_TYPE_m:
	case IR_TYPE_c: *v = (struct rsel_value){ .kind = RSEL_VECTOR, .o = rsel_new_sgpr(s) }; break;
	case IR_TYPE_f64:
	case IR_TYPE_i64: *v = (struct rsel_value){ .kind = RSEL_VECTOR, .o = rsel_new_pair(s) }; break;
	default: *v = (struct rsel_value){ .kind = RSEL_VECTOR, .o = rsel_new_vgpr(s) }; break;
	}
	return v;
}

struct rsel_value *rsel_home(struct rsel *s, uint16_t r)
{
	return s->ir->is_var[r] && s->value[r].kind == RSEL_NONE ? make_home(s, r) : &s->value[r];
}

rsel_op rsel_folded(struct rsel *s, uint16_t r)
{
	const struct ir_ins *i = rsel_definition(s, r);

	switch (s->scan.reg[r].fold) {
	case RSCAN_CONST: return i->op == IR_lane ? rsel_at_entry(s, RSEL_LANES, 1) : rdna_lir_imm((uint32_t)i->imm);
	case RSCAN_NAME: return i->op == IR_splat ? rsel_scalar(s, i->a).o : rsel_any(s, i->a);
	case RSCAN_SIGN: return with_sign(rsel_any(s, i->a), i->op == IR_neg);
	default: return rsel_home(s, r)->o;
	}
}

rsel_op rsel_to_vgpr(struct rsel *s, rsel_op o)
{
	if (rsel_is_vgpr(s, &o))
		return o;
	rsel_op d = rsel_new_vgpr(s), plain = o;
	plain.mods = 0;
	rsel_mov(s, d, plain);
	d.mods = o.mods;
	return d;
}

/* Whether r is a value of its own that the rest of the block may read again as it is. */
static bool is_lasting(const struct rsel *s, uint16_t r)
{
	return !s->ir->is_var[r] && s->scan.reg[r].fold == RSCAN_NO;
}

rsel_op rsel_vgpr(struct rsel *s, uint16_t r)
{
	struct rsel_value *v = &s->value[r];

	if (is_lasting(s, r) && v->copy && v->copy_block == s->block)
		return rdna_lir_r(s->l, v->copy);
	rsel_op o = rsel_any(s, r), in = rsel_to_vgpr(s, o);
	if (is_lasting(s, r) && !rsel_is_vgpr(s, &o)) {
		v->copy = in.reg;
		v->copy_block = s->block;
	}
	return in;
}

rsel_op rsel_mask(struct rsel *s, uint16_t r) { return rsel_home(s, r)->o; }

rsel_op rsel_dst(struct rsel *s, const struct ir_ins *i)
{
	if (s->ir->is_var[i->dst])
		return rsel_home(s, i->dst)->o;
	const uint8_t type = s->ir->type[i->dst];
	rsel_op o = type == IR_TYPE_m || type == IR_TYPE_c       ? rsel_new_sgpr(s)
	            : type == IR_TYPE_f64 || type == IR_TYPE_i64 ? rsel_new_pair(s)
	                                                         : rsel_new_vgpr(s);
	s->value[i->dst] = (struct rsel_value){ .kind = RSEL_VECTOR, .o = o };
	return o;
}

void rsel_give_uniform(struct rsel *s, const struct ir_ins *i, rsel_op o)
{
	if (s->ir->is_var[i->dst])
		rsel_mov(s, rsel_dst(s, i), o);
	else
		s->value[i->dst] = (struct rsel_value){ .kind = RSEL_UNIFORM, .o = o };
}

/* --- instructions */

struct rdna_lir_ins *rsel_add(struct rsel *s, unsigned op)
{
	struct rdna_lir_ins *n = rdna_lir_add(s->l, op);

	n->ir = (uint32_t)s->at;
	return n;
}

void rsel_mov(struct rsel *s, rsel_op d, rsel_op a)
{
	struct rdna_lir_ins *n = rsel_add(s, rsel_is_vgpr(s, &d) ? RDNA_V_MOV_B32 : RDNA_S_MOV_B32);

	n->d[0] = d;
	n->s[0] = a;
}

static bool same_scalar(const rsel_op *a, const rsel_op *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->sub == b->sub && a->n == b->n &&
	       (a->kind != RDNA_LIR_CONST || a->value == b->value);
}

/* Scalar values travel on a bus of two, one of them at most a literal: what is too much is moved out of the way. The
 * first in o stays. */
static void rsel_fit_bus(struct rsel *s, rsel_op *const o[3])
{
	rsel_op seen[2];
	unsigned n = 0, literals = 0;

	for (unsigned k = 0; k < 3; k++) {
		bool literal = o[k]->kind == RDNA_LIR_CONST && !rsel_inline(o[k]->value), known = false;
		if (!literal && !rsel_is_sgpr(s, o[k]))
			continue;
		for (unsigned m = 0; m < n; m++)
			known |= same_scalar(&seen[m], o[k]);
		if (known)
			continue;
		if (n < 2 && literal && literals) {
			rsel_op t = rsel_new_sgpr(s);
			rsel_mov(s, t, *o[k]);
			*o[k] = t;
		} else if (n == 2) {
			*o[k] = rsel_to_vgpr(s, *o[k]);
			continue;
		}
		literals += o[k]->kind == RDNA_LIR_CONST;
		seen[n++] = *o[k];
	}
}

/* What the bus may have to carry. */
static inline bool takes_bus(const struct rsel *s, const rsel_op *o)
{
	return o->kind == RDNA_LIR_VIRTUAL ? s->l->reg[o->reg].cls != RDNA_CLASS_VGPR : o->kind != RDNA_LIR_NONE;
}

struct rdna_lir_ins *rsel_valu(struct rsel *s, unsigned op, rsel_op d, rsel_op a, rsel_op b, rsel_op c)
{
	if (takes_bus(s, &a) + takes_bus(s, &b) + takes_bus(s, &c) > 1) {
		rsel_op *const o[3] = { &c, &a, &b }; /* c may be a mask, which can lie nowhere else */
		rsel_fit_bus(s, o);
	}
	struct rdna_lir_ins *n = rsel_add(s, op);
	n->d[0] = d;
	n->s[0] = a;
	n->s[1] = b;
	n->s[2] = c;
	return n;
}

struct rdna_lir_ins *rsel_salu(struct rsel *s, unsigned op, rsel_op d, rsel_op a, rsel_op b)
{
	bool two = a.kind == RDNA_LIR_CONST && b.kind == RDNA_LIR_CONST && !rsel_inline(a.value) &&
	           !rsel_inline(b.value) && a.value != b.value;

	if (two) {
		rsel_op t = rsel_new_sgpr(s);
		rsel_mov(s, t, a);
		a = t;
	}
	struct rdna_lir_ins *n = rsel_add(s, op);
	n->d[0] = d;
	n->s[0] = a;
	n->s[1] = b;
	return n;
}

void rsel_new_block(struct rsel *s)
{
	s->block++;
	s->n_memo = 0;
}

/* --- barriers */

/* For loads too: another wave may store there behind the barrier. */
static void wait_for_memory(struct rsel *s)
{
	if (s->gen == RDNA_GFX12) {
		rsel_add(s, RDNA_S_WAIT_LOADCNT)->s[0] = rdna_lir_imm(0);
		rsel_add(s, RDNA_S_WAIT_STORECNT)->s[0] = rdna_lir_imm(0);
		return;
	}
	rsel_add(s, RDNA_S_WAITCNT)->s[0] = rdna_lir_imm(rdna_waitcnt(s->gen, 0, -1, -1));
	struct rdna_lir_ins *n = rsel_add(s, RDNA_S_WAITCNT_VSCNT);
	n->s[0] = rdna_lir_fixed(RDNA_NULL, 1);
	n->s[1] = rdna_lir_imm(0);
}

/* Vector loads of a workgroup's waves look into the same caches, which its own stores go through. */
static void rsel_barrier(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	(void)r;
	if (i->op == IR_barrier_all)
		wait_for_memory(s);
	if (s->gen != RDNA_GFX12) {
		rsel_add(s, RDNA_S_BARRIER);
		return;
	}
	rsel_add(s, RDNA_S_BARRIER_SIGNAL)->s[0] = rdna_lir_imm(UINT32_MAX);
	rsel_add(s, RDNA_S_BARRIER_WAIT)->s[0] = rdna_lir_imm(UINT32_MAX);
}

/* --- the pass */

static const struct rsel_rule rsel_barrier_rules[IR_ROWS] = {
	[IR_barrier] = { .select = rsel_barrier },
	[IR_barrier_all] = { .select = rsel_barrier },
};

static const struct rsel_rule *find_rule(unsigned row)
{
	static const struct rsel_rule *const rules[] = {
		rsel_math_rules,   rsel_memory_rules,  rsel_scalar_rules, rsel_matrix_rules,
		rsel_branch_rules, rsel_barrier_rules, rsel_wide_rules
	};
	unsigned k = 0;

	while (!rules[k][row].select)
		k++;
	return &rules[k][row];
}

/* Found when it is first asked for, the same by every thread. */
static inline const struct rsel_rule *rule_of(unsigned row)
{
	static _Atomic(const struct rsel_rule *) known[IR_ROWS];
	const struct rsel_rule *rule = atomic_load_explicit(&known[row], memory_order_relaxed);

	if (!rule) {
		rule = find_rule(row);
		atomic_store_explicit(&known[row], rule, memory_order_relaxed);
	}
	return rule;
}

static bool is_folded(const struct rsel *s, const struct ir_ins *i)
{
	uint8_t fold = s->scan.reg[i->dst].fold;

	return fold != RSCAN_NO && !(fold == RSCAN_HALF && i->op == IR_load);
}

static void rsel_run(struct rsel *s)
{
	const struct ir_ins *i = s->ir->ins;
	const bool *skip = s->scan.skip;

	for (size_t at = 0, n = s->ir->n_ins; !s->l->failed && at < n; at++, i++) {
		if (skip[at] || is_folded(s, i))
			continue;
		const struct rsel_rule *r = rule_of(ir_row(i));
		s->at = at;
		r->select(s, i, r);
		s->version[i->dst]++;
	}
	rsel_put_first(s);
}

bool rdna_select(struct rdna_lir *l, const struct ir *ir, const struct target *t, unsigned scalar_words,
                 struct error *err)
{
	struct ir named = *ir;
	struct rsel s = { .ir = &named, .l = l, .gen = rdna_gen_of(t->name), .block = 1 };

	l->local_bytes = ir->local_bytes;
	l->shared_bytes = ir->shared_bytes;
	named.ins = rsame_instructions(ir);
	if (!named.ins)
		return error_set(err, ERROR_MEMORY, "no memory for the %zu operations of a kernel", ir->n_ins);
	if (!rscan_ir(&s.scan, &named, s.gen, scalar_words, err)) {
		free(named.ins);
		return false;
	}
	s.value = malloc(
		(ir->n_regs + 1) * sizeof *s.value); /* but for their kinds they are written before they are read */
	for (size_t r = 0; s.value && r < ir->n_regs; r++)
		s.value[r].kind = RSEL_NONE;
	s.version = calloc(ir->n_regs + 1, sizeof *s.version);
	s.tuple = calloc(s.scan.n_groups + 1, sizeof *s.tuple);
	l->failed |= !s.value || !s.version || !s.tuple ||
	             !array_grow((void **)&l->ins, &l->ins_capacity, l->n_ins + ir->n_ins, sizeof *l->ins) ||
	             !array_grow((void **)&l->reg, &l->regs_capacity, l->n_regs + ir->n_regs,
	                         sizeof *l->reg); /* about as many as there will be */
	if (!l->failed)
		rsel_run(&s);
	free(s.value);
	free(s.version);
	free(s.tuple);
	free(s.entry);
	free(s.first);
	free(named.ins);
	rscan_free(&s.scan);
	return !l->failed || error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
}
