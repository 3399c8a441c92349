/* jit/rdna/hazard.c - what the generations need between instructions.
 *
 * Owns: the rules, each in one place (the table below), and what remedies them. Runs behind insert_waits.c; only emit.c
 * comes after it, and what that adds is safe by itself. Rule for editors: a rule looks along every path, loops
 * included.
 *
 *   TRANS    gfx110x       after:  a transcendental instruction
 *                          not:    a use of its result within 5 vector or 1 transcendental instructions;
 *                                  memory in between cures it
 *                          remedy: s_waitcnt_depctr va_vdst(0)
 *   CMPX     gfx11, gfx12  after:  v_cmpx
 *                          not:    v_permlane16 or x16
 *                          remedy: v_mov of the lane source onto itself
 *   MATRIX   gfx11, gfx12  after:  a matrix product
 *                          not:    another one whose A or B is its D
 *                          remedy: v_nop
 *   SGPR     gfx12         after:  a write of a scalar register that vector instructions have read at any time
 *                          not:    a read of it; a scalar load and vector memory in between cure it
 *                          remedy: s_wait_alu sa_sdst(0), va_sdst(0), va_vcc(0)
 *   DENORM   gfx10         after:  a float atomic
 *                          not:    s_denorm_mode within 3 states
 *                          remedy: s_nop 2
 *
 * SGPR: vector instructions of other functions count, so every register counts as read by one, but those that stand
 * apart (RDNA_ABI_APART), which none may read. The call's own write, the return address, is new; what the driver wrote
 * in front of it is settled.
 */
#include <stdlib.h>

#include "jit/rdna/hazard.h"

/* The rules of the table above. */
enum { TRANS = 1, CMPX = 2, MATRIX = 4, SGPR = 8, DENORM = 16 };
static const uint8_t rules_of[RDNA_GEN_COUNT] = {
	[RDNA_GFX10_3] = DENORM,
	[RDNA_GFX11] = TRANS | CMPX | MATRIX,
	[RDNA_GFX11_5] = CMPX | MATRIX,
	[RDNA_GFX12] = CMPX | MATRIX | SGPR,
};

enum {
	TRANS_VALUS = 6,   /* vector instructions until a transcendental result may be read */
	TRANS_TRANS = 2,   /* the same of transcendental ones */
	DENORM_STATES = 3, /* wait states from a float atomic to s_denorm_mode */
	ANY_MATRIX = 255   /* of several matrix products, on paths that join */
};

struct state {
	uint8_t trans_valus[256],
		trans_trans[256]; /* by vector register: how many more instructions may not read it; 0: none */
	uint8_t trans;            /* the most that trans_valus has */
	uint64_t by_salu,
		by_valu; /* pairs of scalar registers, a bit each: written by such an instruction and not waited for */
	uint8_t cmpx, atomic;
	uint8_t matrix_n;
	uint16_t matrix_reg; /* D of the product just before */
};

struct fix {
	uint16_t wait_alu;
	uint8_t before;
}; /* wait_alu: the fields, RDNA_DEPCTR_ANY for none; before: CMPX, MATRIX, DENORM */

/* What is looked up of an instruction again and again while loops forget_waited; a dual one's are those of both halves.
 * SGPR alone: pairs of scalar registers, a bit each. */
struct use {
	uint64_t read, written;
	unsigned facts;
};

struct guard {
	const struct rdna_lir *l;
	unsigned rules;
	struct fix *fix; /* these three by instruction */
	struct use *use;
	uint32_t *next;        /* it or the next that bears on a rule, find_uses */
	const uint32_t *loops; /* rdna_machine_loops */
	size_t wrong;          /* 1 + an instruction that reads what it may not; 0: none */
};

static bool is_memory(unsigned facts) { return facts & (RDNA_IS_VMEM | RDNA_IS_LDS); }
static bool is_cmpx(unsigned op) { return op >= RDNA_V_CMPX_LT_F32 && op <= RDNA_V_CMPX_CLASS_F16; }
static bool is_permlane(unsigned op)
{
	return op == RDNA_V_PERMLANE16_B32 || op == RDNA_V_PERMLANEX16_B32 || op == RDNA_V_PERMLANE16_VAR_B32 ||
	       op == RDNA_V_PERMLANEX16_VAR_B32;
}
static bool is_float_atomic(unsigned op)
{
	return op == RDNA_GLOBAL_ATOMIC_MIN_NUM_F32 || op == RDNA_GLOBAL_ATOMIC_MAX_NUM_F32 ||
	       op == RDNA_GLOBAL_ATOMIC_ADD_F32 || op == RDNA_FLAT_ATOMIC_MIN_NUM_F32 ||
	       op == RDNA_FLAT_ATOMIC_MAX_NUM_F32 || op == RDNA_FLAT_ATOMIC_ADD_F32;
}

static bool vgpr_range(struct rdna_range r) { return r.n && r.reg >= RDNA_V0; }

/* --- the rules, one function each: what must stand in front of the instruction, then what it leaves behind */

static bool trans_hit(const struct state *s, const struct rdna_touch *t)
{
	for (unsigned k = 0; k < t->n_reads; k++)
		for (unsigned r = t->reads[k].reg;
		     vgpr_range(t->reads[k]) && r < t->reads[k].reg + (unsigned)t->reads[k].n; r++)
			if (s->trans_valus[r - RDNA_V0] && s->trans_trans[r - RDNA_V0])
				return true;
	return false;
}

static uint8_t one_less(uint8_t n) { return (uint8_t)(n > 0 ? n - 1 : 0); }

/* One instruction less. */
static void trans_passes(struct state *s, bool trans)
{
	for (unsigned r = 0; s->trans && r < 256; r++)
		s->trans_valus[r] = one_less(s->trans_valus[r]);
	for (unsigned r = 0; trans && r < 256; r++)
		s->trans_trans[r] = one_less(s->trans_trans[r]);
	s->trans = one_less(s->trans);
}

static void rule_trans(struct state *s, const struct rdna_touch *t, unsigned facts, unsigned op, uint32_t imm,
                       struct fix *f)
{
	bool hit = is_vector(facts) && s->trans && trans_hit(s, t);
	if (hit)
		f->wait_alu &= RDNA_DEPCTR_VA_VDST(0);
	if (s->trans && (hit || is_memory(facts) || (op == RDNA_S_WAIT_ALU && !(imm >> 12 & 15)))) {
		memset(s->trans_valus, 0, sizeof s->trans_valus);
		s->trans = 0;
	}
	if (!is_vector(facts))
		return;
	trans_passes(s, facts & RDNA_IS_TRANS);
	for (unsigned k = 0; k < t->n_writes && facts & RDNA_IS_TRANS; k++)
		for (unsigned r = t->writes[k].reg;
		     vgpr_range(t->writes[k]) && r < t->writes[k].reg + (unsigned)t->writes[k].n; r++) {
			s->trans_valus[r - RDNA_V0] = s->trans = TRANS_VALUS;
			s->trans_trans[r - RDNA_V0] = TRANS_TRANS;
		}
}

static void rule_cmpx(struct state *s, unsigned facts, unsigned op, struct fix *f)
{
	if (is_permlane(op) && s->cmpx)
		f->before |= CMPX;
	if (is_vector(facts) && op != RDNA_V_NOP)
		s->cmpx = is_cmpx(op);
}

static void rule_matrix(struct state *s, const struct rdna_touch *t, unsigned facts, struct fix *f)
{
	struct rdna_range last = { s->matrix_reg, s->matrix_n };
	if (!(facts & RDNA_IS_WMMA)) {
		if (is_vector(facts))
			s->matrix_n = 0;
		return;
	}
	for (unsigned k = 0; k < 2; k++) /* A and B are the first two sources */
		if (s->matrix_n == ANY_MATRIX || (s->matrix_n && rdna_range_meets(t->reads[k], last)))
			f->before |= MATRIX;
	s->matrix_reg = t->writes[0].reg;
	s->matrix_n = t->writes[0].n;
}

/* The pairs that no vector instruction reads. */
static const uint64_t apart = (UINT64_C(1) << RDNA_ABI_SGPRS / 2) - (UINT64_C(1) << RDNA_ABI_APART / 2);
static const uint64_t vcc_pair = UINT64_C(1) << RDNA_VCC_LO / 2;

/* The pairs of scalar registers among an operand's. */
static uint64_t pairs_of(const struct rdna_lir_operand *o)
{
	if (!rdna_is_register(o) || o->reg >= RDNA_TTMP0 + 16)
		return 0;
	unsigned first = o->reg / 2, last = (o->reg + o->n - 1) / 2;
	return ((UINT64_C(2) << (last - first)) - 1) << first;
}

static void find_pairs(struct use *u, const struct rdna_lir_ins *i)
{
	u->read |=
		pairs_of(&i->s[0]) | pairs_of(&i->s[1]) | pairs_of(&i->s[2]) | pairs_of(&i->s[3]) | pairs_of(&i->saddr);
	u->written |= pairs_of(&i->d[0]) | pairs_of(&i->d[1]);
	if (rdna_lir_reads_dst(i))
		u->read |= pairs_of(&i->d[0]);
	if (u->facts & RDNA_READS_VCC)
		u->read |= vcc_pair;
	if (u->facts & RDNA_WRITES_VCC)
		u->written |= vcc_pair;
	u->written &= ~apart;
}

static void forget_waited(struct state *s, unsigned imm)
{
	if (!(imm & 1))
		s->by_salu = 0;
	if (!(imm & 2))
		s->by_valu &= ~vcc_pair;
	if (!(imm >> 9 & 7))
		s->by_valu &= vcc_pair;
}

/* Scalar instructions see at once what vector ones wrote. */
static void late_read(const struct state *s, uint64_t pairs, bool vector, struct fix *f)
{
	uint64_t late = vector ? pairs & s->by_valu : 0;
	if (pairs & s->by_salu)
		f->wait_alu &= RDNA_DEPCTR_SA_SDST(0);
	if (late & vcc_pair)
		f->wait_alu &= RDNA_DEPCTR_VA_VCC(0);
	if (late & ~vcc_pair)
		f->wait_alu &= RDNA_DEPCTR_VA_SDST(0);
}

static void rule_sgpr(struct state *s, const struct rdna_lir_ins *i, const struct use *u, struct fix *f)
{
	bool vector = is_vector(u->facts);
	if (i->op == RDNA_S_WAIT_ALU)
		forget_waited(s, i->s[0].value);
	if (rdna_lir_is_masked(i)) { /* rdna_emit moves it to exec in front of it */
		late_read(s, pairs_of(&i->s[3]), false, f);
		forget_waited(s, f->wait_alu);
	}
	if (u->facts & (RDNA_IS_SMEM | RDNA_IS_VMEM))
		s->by_salu = s->by_valu = 0;
	if (!vector && !(u->facts & RDNA_IS_SALU))
		return;
	late_read(s, u->read, vector, f);
	forget_waited(s, f->wait_alu);
	*(vector ? &s->by_valu : &s->by_salu) |= u->written;
}

/* rdna_emit counts in the index and compares it with the count; between the two it waits for what scalar instructions
 * wrote, if the index does not stand apart. */
static void rule_sgpr_endloop(struct state *s, const struct rdna_lir_ins *loop, struct fix *f)
{
	bool counts = loop->s[0].kind != RDNA_LIR_CONST || (int32_t)loop->s[0].value > 1;
	if (!counts)
		return;
	late_read(s, pairs_of(&loop->d[0]) | pairs_of(&loop->s[0]), false, f);
	if (rdna_is_register(&loop->d[0]) && !(pairs_of(&loop->d[0]) & apart))
		forget_waited(s, RDNA_DEPCTR_SA_SDST(0));
}

static void rule_denorm(struct state *s, unsigned facts, unsigned op, uint32_t imm, struct fix *f)
{
	unsigned states = op == RDNA_S_NOP ? (imm & 15) + 1 : 1;
	if (op == RDNA_S_DENORM_MODE && s->atomic) {
		f->before |= DENORM;
		s->atomic = 0;
	}
	if (is_float_atomic(op))
		s->atomic = DENORM_STATES;
	else if (is_vector(facts) || is_memory(facts))
		s->atomic = 0;
	else
		s->atomic = (uint8_t)(s->atomic > states ? s->atomic - states : 0);
}

/* --- along the paths */

/* Nobody but TRANS and MATRIX asks for single registers. */
static void touch(const struct rdna_lir_ins *i, struct rdna_touch *t)
{
	struct rdna_touch y;
	if (i->op != RDNA_LIR_DUAL) {
		rdna_machine_touch(i, t);
		return;
	}
	rdna_machine_touch(i + 1, t);
	rdna_machine_touch(i + 2, &y);
	for (unsigned k = 0; k < y.n_reads && t->n_reads < 8; k++)
		t->reads[t->n_reads++] = y.reads[k];
	for (unsigned k = 0; k < y.n_writes && t->n_writes < 2; k++)
		t->writes[t->n_writes++] = y.writes[k];
}

/* Whether it leaves every state as it is and nothing can stand in its way. */
static bool is_quiet(const struct guard *g, const struct rdna_lir_ins *i, const struct use *u)
{
	if (rdna_lir_branches(i->op) || i->op == RDNA_S_WAIT_ALU)
		return false;
	return g->rules == SGPR ? !(u->read | u->written) && !(u->facts & (RDNA_IS_SMEM | RDNA_IS_VMEM))
	                        : g->rules == TRANS && !is_vector(u->facts) && !is_memory(u->facts);
}

/* Of every instruction. Halves are left out: their dual one speaks for them. */
static void find_uses(struct guard *g)
{
	const struct rdna_lir *l = g->l;
	g->next[l->n_ins] = (uint32_t)l->n_ins;
	for (size_t at = l->n_ins; at-- > 0;) {
		const struct rdna_lir_ins *i = &l->ins[at];
		struct use *u = &g->use[at];
		bool dual = i->op == RDNA_LIR_DUAL;
		*u = (struct use){ .facts = facts_of(i) };
		g->fix[at] = (struct fix){ RDNA_DEPCTR_ANY, 0 };
		if (g->rules & SGPR)
			find_pairs(u, dual ? i + 1 : i);
		if (dual) {
			if (g->rules & SGPR)
				find_pairs(u, i + 2);
			g->next[at + 1] = g->next[at + 2] = g->next[at + 3];
		}
		if (is_vector(u->facts) && u->read & apart)
			g->wrong = at + 1;
		g->next[at] = is_quiet(g, i, u) ? g->next[at + 1] : (uint32_t)at;
	}
}

static void step(void *user, void *state, size_t at)
{
	struct guard *g = user;
	struct state *s = state;
	const struct rdna_lir_ins *i = &g->l->ins[at];
	const struct use *u = &g->use[at];
	struct fix *f = &g->fix[at];
	struct rdna_touch t;
	*f = (struct fix){ RDNA_DEPCTR_ANY, 0 };
	t.n_reads = t.n_writes = 0;
	if (s->trans || u->facts & (RDNA_IS_TRANS | RDNA_IS_WMMA))
		touch(i, &t);
	if (g->rules & TRANS)
		rule_trans(s, &t, u->facts, i->op, i->s[0].value, f);
	if (g->rules & CMPX)
		rule_cmpx(s, u->facts, i->op, f);
	if (g->rules & MATRIX)
		rule_matrix(s, &t, u->facts, f);
	if (g->rules & SGPR && i->op == RDNA_LIR_ENDLOOP)
		rule_sgpr_endloop(s, &g->l->ins[g->loops[at]], f);
	else if (g->rules & SGPR)
		rule_sgpr(s, i, u, f);
	if (g->rules & DENORM)
		rule_denorm(s, u->facts, i->op, i->s[0].value, f);
}

static bool max(uint8_t *into, const uint8_t *from, size_t n)
{
	bool changed = false;
	if (memcmp(into, from, n) == 0)
		return false;
	for (size_t k = 0; k < n; k++)
		if (from[k] > into[k]) {
			into[k] = from[k];
			changed = true;
		}
	return changed;
}

static bool join(void *user, void *into, void *from)
{
	struct state *a = into;
	const struct state *b = from;
	bool changed = max(a->trans_valus, b->trans_valus, sizeof a->trans_valus);
	changed |= max(a->trans_trans, b->trans_trans, sizeof a->trans_trans);
	max(&a->trans, &b->trans, 1);
	changed |= (b->by_salu & ~a->by_salu) || (b->by_valu & ~a->by_valu);
	a->by_salu |= b->by_salu;
	a->by_valu |= b->by_valu;
	changed |= max(&a->cmpx, &b->cmpx, 1);
	changed |= max(&a->atomic, &b->atomic, 1);
	if (b->matrix_n && a->matrix_n != ANY_MATRIX &&
	    (a->matrix_n != b->matrix_n || a->matrix_reg != b->matrix_reg)) {
		a->matrix_n = ANY_MATRIX;
		changed = true;
	}
	return changed;
}

/* --- the remedies */

static void remedy(struct rdna_patch *p, const struct rdna_lir *l, size_t at, const struct fix *f)
{
	const struct rdna_lir_ins *i = at < l->n_ins ? &l->ins[at] : NULL;
	if (f->before & CMPX) {
		struct rdna_lir_ins move = { .op = RDNA_V_MOV_B32, .d = { i->s[0] }, .s = { i->s[0] }, .ir = i->ir };
		move.d[0].mods = move.s[0].mods = 0;
		rdna_patch_add(p, at, &move);
	}
	if (f->before & MATRIX) {
		struct rdna_lir_ins nop = { .op = RDNA_V_NOP, .ir = i->ir };
		rdna_patch_add(p, at, &nop);
	}
	if (f->before & DENORM)
		rdna_patch_op(p, at, RDNA_S_NOP, DENORM_STATES - 1);
	if (f->wait_alu != RDNA_DEPCTR_ANY)
		rdna_patch_op(p, at, RDNA_S_WAIT_ALU, f->wait_alu);
}

/* The return reads s[14:15]. */
static void at_return(const struct guard *g, struct state *s, struct fix *f)
{
	*f = (struct fix){ RDNA_DEPCTR_ANY, 0 };
	if (g->rules & SGPR)
		late_read(s, UINT64_C(1) << RDNA_ABI_RETURN / 2, false, f);
}

/* The generation's rules that something in the kernel can break. */
static unsigned rules_for(const struct rdna_lir *l)
{
	unsigned rules = SGPR; /* the return address is new to all */
	for (size_t at = 0; at < l->n_ins; at++) {
		unsigned op = l->ins[at].op, facts = rdna_lir_facts(op);
		if (!(facts & (RDNA_IS_TRANS | RDNA_IS_WMMA | RDNA_IS_FIXED | RDNA_IS_STORE)))
			continue;
		rules |= (facts & RDNA_IS_TRANS ? TRANS : 0) | (facts & RDNA_IS_WMMA ? MATRIX : 0) |
		         (is_cmpx(op) ? CMPX : 0) | (is_float_atomic(op) ? DENORM : 0);
	}
	return rules & rules_of[l->gen];
}

static bool find_fixes(struct guard *g, struct error *err)
{
	const struct rdna_lir *l = g->l;
	const struct rdna_flow flow = {
		.l = l,
		.loops = g->loops,
		.next = g->next,
		.size = sizeof(struct state),
		.user = g,
		.step = step,
		.join = join
	};
	struct state s = { 0 };
	if (!g->fix || !g->use || !g->next || !g->loops)
		return error_set(err, ERROR_MEMORY, "no memory to look at a kernel of %zu instructions", l->n_ins);
	find_uses(g);
	if (g->wrong)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "machine instruction %zu of the kernel reads, as a vector one, a scalar register that "
		                 "stands apart",
		                 g->wrong - 1);
	s.by_salu = UINT64_C(1) << RDNA_ABI_RETURN / 2;
	if (!rdna_flow_run(&flow, &s, err))
		return false;
	at_return(g, &s, &g->fix[l->n_ins]);
	return true;
}

static bool required(struct rdna_lir *l, struct error *err)
{
	struct rdna_patch p = { 0 };
	unsigned rules = rules_for(l);
	if (!rules)
		return true;
	uint32_t *loops = rdna_machine_loops(l);
	struct guard g = { .l = l,
		           .rules = rules,
		           .loops = loops,
		           .fix = malloc((l->n_ins + 1) * sizeof *g.fix),
		           .use = malloc((l->n_ins + 1) * sizeof *g.use),
		           .next = malloc((l->n_ins + 1) * sizeof *g.next) };
	bool ok = find_fixes(&g, err);
	for (size_t at = 0; ok && at <= l->n_ins; at++)
		if (g.fix[at].before || g.fix[at].wait_alu != RDNA_DEPCTR_ANY)
			remedy(&p, l, at, &g.fix[at]);
	ok = ok && rdna_patch_apply(l, &p, err);
	free(g.fix);
	free(g.use);
	free(g.next);
	free(loops);
	return ok;
}

/* --- the pass */

bool rdna_hazard(struct rdna_lir *l, const struct rdna_hazard_options *o, struct error *err)
{
	static const struct rdna_hazard_options all = { 0 };
	o = o ? o : &all;
	return required(l, err) && rdna_hints(l, !o->no_clauses, !o->no_delays && l->gen != RDNA_GFX10_3, err);
}
