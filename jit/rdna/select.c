/* jit/rdna/select.c - IR operations to RDNA instructions on virtual registers: operands, instructions, loops, the pass.
 *
 * Owns: what rdna_select.h declares but for scalars and addresses, and the loops' shape. Decides no registers and no
 * order: instructions come out in the IR's order, but for loads that are done together and values made at the entry.
 * Rule for editors: a row of a table first, a function only for what a row cannot say; no instruction writes VCC but
 * those that must.
 */
#include "jit/rdna/select.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

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

rsel_op rsel_new_sgpr(struct rsel *s) { return rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_SGPR, 1)); }

/* fneg and fabs of o. */
static rsel_op with_sign(rsel_op o, uint8_t op)
{
	if (o.kind == RDNA_LIR_CONST) {
		o.value = op == IR_fneg ? o.value ^ 0x80000000u : o.value & 0x7fffffffu;
		return o;
	}
	o.mods = op == IR_fneg ? o.mods ^ RDNA_NEG : RDNA_ABS;
	return o;
}

static struct rsel_value *make_home(struct rsel *s, uint16_t r)
{
	struct rsel_value *v = &s->value[r];

	switch (s->ir->kind[r]) {
	case IR_KIND_S: {
		uint32_t pair = rdna_lir_new(s->l, RDNA_CLASS_SGPR, 2);
		*v = (struct rsel_value){ .kind = RSEL_SCALAR,
			                  .o = rdna_lir_words(s->l, pair, 0, 1),
			                  .high = rdna_lir_words(s->l, pair, 1, 1),
			                  .low = INT64_MIN,
			                  .top = INT64_MAX };
		break;
	}
	case IR_KIND_A:
		*v = (struct rsel_value){
			.kind = RSEL_ADDRESS,
			.o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_SGPR, s->scan.reg[r].lds ? 1 : 2))
		};
		break;
	case IR_KIND_T:
		*v = (struct rsel_value){
			.kind = RSEL_VECTOR,
			.o = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, IR_TILE * IR_TILE / 32))
		};
		break;
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
	case RSCAN_CONST: return i->op == IR_ilane ? rsel_at_entry(s, RSEL_LANES, 1) : rdna_lir_imm((uint32_t)i->imm);
	case RSCAN_NAME: return i->op == IR_isplat ? rsel_scalar(s, i->a).o : rsel_any(s, i->a);
	case RSCAN_SIGN: return with_sign(rsel_any(s, i->a), i->op);
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

rsel_op rsel_mask(struct rsel *s, uint16_t r) { return s->value[r].o; }

rsel_op rsel_dst(struct rsel *s, const struct ir_ins *i)
{
	if (s->ir->is_var[i->dst])
		return rsel_home(s, i->dst)->o;
	rsel_op o = s->ir->kind[i->dst] == IR_KIND_M ? rsel_new_sgpr(s) : rsel_new_vgpr(s);
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

/* --- the entry: instructions in front of all others, each value made once */

static struct rdna_lir_ins *rsel_first(struct rsel *s, unsigned op, uint32_t reg)
{
	if (s->n_first == s->first_capacity) {
		size_t capacity = 2 * s->first_capacity + 16;
		struct rdna_lir_ins *grown = realloc(s->first, capacity * sizeof *grown);
		if (!grown) {
			s->l->failed = true;
			return rdna_lir_add(s->l, op);
		}
		s->first = grown;
		s->first_capacity = capacity;
	}
	struct rdna_lir_ins *n = &s->first[s->n_first++];
	*n = (struct rdna_lir_ins){ .op = (uint16_t)op, .ir = UINT32_MAX };
	n->d[0] = rdna_lir_r(s->l, reg);
	return n;
}

static void first2(struct rsel *s, unsigned op, uint32_t reg, rsel_op a, rsel_op b)
{
	struct rdna_lir_ins *n = rsel_first(s, op, reg);

	n->s[0] = a;
	n->s[1] = b;
}

static void make_lanes(struct rsel *s, uint32_t reg, uint32_t by)
{
	if (by == 0)
		first2(s, RDNA_V_MOV_B32, reg, rdna_lir_imm(0), rsel_none());
	else if (by == 1)
		first2(s, RDNA_V_MBCNT_LO_U32_B32, reg, rdna_lir_imm(UINT32_MAX), rdna_lir_imm(0));
	else if (!(by & (by - 1)))
		first2(s, RDNA_V_LSHLREV_B32, reg, rdna_lir_imm((uint32_t)__builtin_ctz(by)),
		       rsel_at_entry(s, RSEL_LANES, 1));
	else
		first2(s, RDNA_V_MUL_U32_U24, reg, rdna_lir_imm(by), rsel_at_entry(s, RSEL_LANES, 1));
}

/* The locals of a group's waves lie behind the bytes they share. */
static void make_locals(struct rsel *s, uint32_t reg)
{
	uint32_t shared = ir_local_size(s->ir->shared_bytes);

	first2(s, RDNA_S_MUL_I32, reg, rdna_lir_fixed(RDNA_ABI_WAVE, 1), rdna_lir_imm(s->ir->local_bytes));
	if (shared)
		first2(s, RDNA_S_ADD_CO_U32, reg, rdna_lir_r(s->l, reg), rdna_lir_imm(shared));
}

static void make_local_lanes(struct rsel *s, uint32_t reg, uint32_t by)
{
	rsel_op locals = rsel_at_entry(s, RSEL_LOCALS, 0);

	if (by)
		first2(s, RDNA_V_ADD_NC_U32, reg, locals, rsel_at_entry(s, RSEL_LANES, by));
	else
		first2(s, RDNA_V_MOV_B32, reg, locals, rsel_none());
}

static void make_tile_lanes(struct rsel *s, uint32_t reg, uint32_t by_column, uint32_t by_half)
{
	rsel_op lane = rsel_at_entry(s, RSEL_LANES, 1), o = rdna_lir_r(s->l, reg),
		half = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, 1));

	first2(s, RDNA_V_AND_B32, reg, rdna_lir_imm(15), lane);
	first2(s, RDNA_V_MUL_U32_U24, reg, rdna_lir_imm(by_column), o);
	if (!by_half)
		return;
	first2(s, RDNA_V_LSHRREV_B32, half.reg, rdna_lir_imm(4), lane);
	first2(s, RDNA_V_MUL_U32_U24, half.reg, rdna_lir_imm(by_half), half);
	first2(s, RDNA_V_ADD_NC_U32, reg, half, o);
}

static rsel_op at_entry(struct rsel *s, enum rsel_entry_kind kind, uint32_t value, uint32_t half)
{
	for (size_t k = 0; k < s->n_entries; k++)
		if (s->entry[k].kind == kind && s->entry[k].value == value && s->entry[k].half == half)
			return rdna_lir_r(s->l, s->entry[k].reg);
	uint32_t reg =
		rdna_lir_new(s->l, kind == RSEL_LOCALS || kind == RSEL_CONSTANT ? RDNA_CLASS_SGPR : RDNA_CLASS_VGPR, 1);
	if (kind == RSEL_LANES)
		make_lanes(s, reg, value);
	else if (kind == RSEL_LOCALS)
		make_locals(s, reg);
	else if (kind == RSEL_LOCAL_LANES)
		make_local_lanes(s, reg, value);
	else if (kind == RSEL_TILE_LANES)
		make_tile_lanes(s, reg, value, half);
	else
		first2(s, RDNA_S_MOV_B32, reg, rdna_lir_imm(value), rsel_none());
	if (s->n_entries == s->entries_capacity) {
		size_t capacity = 2 * s->entries_capacity + 16;
		struct rsel_entry *grown = realloc(s->entry, capacity * sizeof *grown);
		if (!grown) {
			s->l->failed = true;
			return rdna_lir_r(s->l, reg);
		}
		s->entry = grown;
		s->entries_capacity = capacity;
	}
	s->entry[s->n_entries++] = (struct rsel_entry){ (uint8_t)kind, value, half, reg };
	return rdna_lir_r(s->l, reg);
}

rsel_op rsel_at_entry(struct rsel *s, enum rsel_entry_kind kind, uint32_t value) { return at_entry(s, kind, value, 0); }

rsel_op rsel_tile_lanes(struct rsel *s, uint32_t by_column, uint32_t by_half)
{
	return at_entry(s, RSEL_TILE_LANES, by_column, by_half);
}

static void rsel_put_first(struct rsel *s)
{
	if (s->l->failed || !s->n_first || !rdna_lir_insert(s->l, 0, s->n_first))
		return;
	memcpy(s->l->ins, s->first, s->n_first * sizeof *s->first);
}

/* --- sums of addresses, remembered inside a block */

uint32_t rsel_remembered(const struct rsel *s, const struct rsel_place *p, uint32_t stride, int64_t offset)
{
	for (unsigned k = 0; k < s->n_memo && k < RSEL_MEMO; k++) {
		const struct rsel_memo *m = &s->memo[k];
		if (m->lds == p->lds && m->of == p->of && m->version == p->version && m->stride == stride &&
		    m->offset == offset)
			return m->reg;
	}
	return 0;
}

void rsel_remember(struct rsel *s, const struct rsel_place *p, uint32_t stride, int64_t offset, uint32_t reg)
{
	s->memo[s->n_memo++ % RSEL_MEMO] = (struct rsel_memo){ p->lds, p->of, p->version, stride, offset, reg };
}

static void rsel_new_block(struct rsel *s)
{
	s->block++;
	s->n_memo = 0;
}

/* --- loops */

static void rsel_loop(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	rsel_op count = rsel_scalar(s, i->a).o, index = s->scan.reg[i->dst].uses ? rsel_new_sgpr(s) : rsel_none();

	(void)r;
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
	(void)i, (void)r;
	rsel_add(s, RDNA_LIR_ENDLOOP);
	rsel_new_block(s);
}

static void rsel_barrier(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	(void)i, (void)r;
	if (s->gen != RDNA_GFX12) {
		rsel_add(s, RDNA_S_BARRIER);
		return;
	}
	rsel_add(s, RDNA_S_BARRIER_SIGNAL)->s[0] = rdna_lir_imm(UINT32_MAX);
	rsel_add(s, RDNA_S_BARRIER_WAIT)->s[0] = rdna_lir_imm(UINT32_MAX);
}

/* --- the pass */

static const struct rsel_rule rsel_shape_rules[IR_OP_COUNT] = {
	[IR_loop] = { .select = rsel_loop },
	[IR_endloop] = { .select = rsel_endloop },
	[IR_barrier] = { .select = rsel_barrier },
};

static const struct rsel_rule *find_rule(uint8_t op)
{
	static const struct rsel_rule *const rules[] = { rsel_math_rules, rsel_memory_rules, rsel_scalar_rules,
		                                         rsel_matrix_rules, rsel_shape_rules };
	unsigned k = 0;

	while (!rules[k][op].select)
		k++;
	return &rules[k][op];
}

/* Found when it is first asked for, the same by whoever does. */
static inline const struct rsel_rule *rule_of(uint8_t op)
{
	static _Atomic(const struct rsel_rule *) known[IR_OP_COUNT];
	const struct rsel_rule *rule = atomic_load_explicit(&known[op], memory_order_relaxed);

	if (!rule) {
		rule = find_rule(op);
		atomic_store_explicit(&known[op], rule, memory_order_relaxed);
	}
	return rule;
}

static bool is_folded(const struct rsel *s, const struct ir_ins *i)
{
	uint8_t fold = s->scan.reg[i->dst].fold;

	return fold != RSCAN_NO && !(fold == RSCAN_HALF && i->op == IR_fload_h);
}

static void rsel_run(struct rsel *s)
{
	const struct ir_ins *i = s->ir->ins;
	const bool *skip = s->scan.skip;

	for (size_t at = 0, n = s->ir->n_ins; !s->l->failed && at < n; at++, i++) {
		if (skip[at] || is_folded(s, i))
			continue;
		const struct rsel_rule *r = rule_of(i->op);
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
