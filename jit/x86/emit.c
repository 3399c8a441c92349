/* jit/x86/emit.c - machine instructions with registers assigned, to bytes.
 *
 * Owns: the choice of the two-operand and FMA encodings once it is known which registers coincide, the layout of code
 * and constant pool. Decides no register and no order. Rule for editors: a sequence written here must not write its
 * destination before the last read of every other operand, unless the case excludes that they coincide.
 *
 * The frame, from rsp upwards: locals (64-byte aligned), vector slots, general slots, the caller's rsp.
 */
#include "jit/x86/emit.h"

const uint8_t x86_gpr_order[15] = {
	X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_RAX, X86_R8,  X86_R9,  X86_R10,
	X86_R11, X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15,
};

static struct x86_operand machine(uint8_t cls, unsigned number)
{
	switch (cls) {
	case X86_XMM: return x86_xmm((int)number);
	case X86_YMM: return x86_ymm((int)number);
	case X86_ZMM: return x86_zmm((int)number);
	case X86_GPR32: return x86_r32((int)number);
	case X86_KREG: return x86_k((int)number);
	default: return x86_r64((int)number);
	}
}

static struct x86_operand address(const struct emitter *e, const struct lir_ins *i)
{
	const uint8_t *phys = e->l->phys;
	unsigned vector = e->l->lanes * 4;
	switch (i->mem) {
	case LIR_AT_BASE:
		return i->index ? x86_mem_index(phys[i->base], phys[i->index], 1, i->disp)
		                : x86_mem(phys[i->base], i->disp);
	case LIR_AT_POOL: return x86_mem_label(e->pool, i->disp);
	case LIR_AT_LOCAL: return x86_mem(X86_RSP, i->disp);
	case LIR_AT_VEC_SLOT: return x86_mem(X86_RSP, (int32_t)(e->vec_slots_at + (uint32_t)i->disp * vector));
	default: return x86_mem(X86_RSP, (int32_t)(e->gpr_slots_at + (uint32_t)i->disp * 8));
	}
}

static struct x86_operand memory(const struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand m = address(e, i);
	return i->broadcast ? x86_mem_broadcast(m) : m;
}

/* A source operand: register or memory. */
static struct x86_operand source(const struct emitter *e, const struct lir_ins *i, uint32_t r)
{
	return r == LIR_MEM ? memory(e, i) : machine(i->ws, e->l->phys[r]);
}

static struct x86_operand target_of(const struct emitter *e, const struct lir_ins *i)
{
	return machine(i->wd, e->l->phys[i->dst]);
}

struct x86_operand x86_emit_g_or_mem(const struct emitter *e, const struct lir_ins *i, uint32_t r)
{
	return r == LIR_MEM ? memory(e, i) : g(e, r);
}

/* --- vectors */

static void emit_load(struct emitter *e, const struct lir_ins *i)
{
	emit2(e, i->broadcast ? X86_VBROADCASTSS : X86_VMOVUPS, target_of(e, i), address(e, i));
}

static void emit_move(struct emitter *e, const struct lir_ins *i)
{
	if (i->a == LIR_MEM)
		emit_load(e, i);
	else if (!same(e, i->dst, i->a))
		emit2(e, X86_VMOVAPS, target_of(e, i), source(e, i, i->a));
}

static void emit_op3(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	if (a == LIR_MEM) {
		a = i->b;
		b = LIR_MEM;
	}
	struct x86_operand imm = i->form == LIR_OP3I ? x86_imm(i->imm) : X86_0;
	emit4(e, i->op, target_of(e, i), source(e, i, a), source(e, i, b), imm);
}

/* dst = a*b + c. 231 adds to its destination, 213 and 132 multiply theirs; the last source may be memory. */
static void emit_fma(struct emitter *e, const struct lir_ins *i)
{
	const bool wide = i->op == X86_VFMADD231PD;
	const unsigned by_231 = wide ? X86_VFMADD231PD : X86_VFMADD231PS,
		       by_213 = wide ? X86_VFMADD213PD : X86_VFMADD213PS,
		       by_132 = wide ? X86_VFMADD132PD : X86_VFMADD132PS;
	struct x86_operand d = target_of(e, i);
	uint32_t a = i->a, b = i->b, c = i->c;
	if (a == LIR_MEM || same(e, i->dst, b)) {
		a = i->b;
		b = i->a;
	}
	if (c != LIR_MEM && same(e, i->dst, c)) {
		emit3(e, by_231, d, source(e, i, a), source(e, i, b));
	} else if (b == LIR_MEM && !same(e, i->dst, a)) {
		emit2(e, X86_VMOVAPS, d, source(e, i, c));
		emit3(e, by_231, d, source(e, i, a), memory(e, i));
	} else if (b == LIR_MEM) {
		emit3(e, by_132, d, source(e, i, c), memory(e, i));
	} else if (same(e, i->dst, a)) {
		emit3(e, by_213, d, source(e, i, b), source(e, i, c));
	} else if (c == LIR_MEM) {
		emit_load(e, i);
		emit3(e, by_231, d, source(e, i, a), source(e, i, b));
	} else {
		emit2(e, X86_VMOVAPS, d, source(e, i, c));
		emit3(e, by_231, d, source(e, i, a), source(e, i, b));
	}
}

/* All zeros or all ones. Writing 128 bits of zeros clears the rest too, and is shorter. */
static void emit_idiom(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = target_of(e, i);
	if (i->wd == X86_ZMM && i->op == X86_VXORPS && d.reg < 16)
		d = x86_xmm(d.reg);
	emit4(e, i->op, d, d, d, i->op == X86_VPTERNLOGD ? x86_imm(0xff) : X86_0);
}

/* The destination is cleared first: a gather merges into it, and would wait for whatever wrote it last. */
static void emit_gather(struct emitter *e, const struct lir_ins *i)
{
	emit3(e, X86_VXORPS, target_of(e, i), target_of(e, i), target_of(e, i));
	int base = i->mem == LIR_AT_LOCAL ? X86_RSP : e->l->phys[i->base];
	struct x86_operand m = x86_mem_index(base, e->l->phys[i->b], i->imm ? (int)i->imm : 1, i->disp);
	bool masked = i->form == LIR_MGATHER;
	e->x.mask = masked ? e->l->phys[i->c] : 0;
	emit3(e, i->op, target_of(e, i), m, masked ? X86_0 : machine(i->ws, e->l->phys[i->c]));
}

/* dst = c and what the instruction adds of a and b; dst is the register of a or b only if it is c's too. */
static void emit_dot(struct emitter *e, const struct lir_ins *i)
{
	if (!same(e, i->dst, i->c))
		emit2(e, X86_VMOVAPS, target_of(e, i), source(e, i, i->c));
	emit4(e, i->op, target_of(e, i), source(e, i, i->a), source(e, i, i->b),
	      i->form == LIR_TERNARY ? x86_imm(i->imm) : X86_0);
}

static void emit_vector(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = i->dst ? target_of(e, i) : X86_0;
	switch (i->form) {
	case LIR_IDIOM: emit_idiom(e, i); break;
	case LIR_CONST: emit2(e, i->op, d, memory(e, i)); break;
	case LIR_MOV: emit_move(e, i); break;
	case LIR_OP2:
	case LIR_OP2R:
	case LIR_FROM_GPR: emit2(e, i->op, d, source(e, i, i->a)); break;
	case LIR_OP2I: emit3(e, i->op, d, source(e, i, i->a), x86_imm(i->imm)); break;
	case LIR_OP3:
	case LIR_OP3C:
	case LIR_OP3I: emit_op3(e, i); break;
	case LIR_FMA: emit_fma(e, i); break;
	case LIR_BLEND: emit4(e, i->op, d, source(e, i, i->a), source(e, i, i->b), source(e, i, i->c)); break;
	case LIR_GATHER: emit_gather(e, i); break;
	case LIR_DOT:
	case LIR_TERNARY: emit_dot(e, i); break;
	case LIR_STORE: emit2(e, i->op, memory(e, i), source(e, i, i->a)); break;
	case LIR_STOREI: emit3(e, i->op, memory(e, i), source(e, i, i->a), x86_imm(i->imm)); break;
	case LIR_STOREM: emit3(e, i->op, memory(e, i), source(e, i, i->a), source(e, i, i->b)); break;
	default: emit1(e, i->op, memory(e, i)); break;
	}
}

/* --- products of matrices. The strides of rows in memory are index registers: one, times 1 or 4. */

enum { HALF = 64 /* bytes of a tile's row */ };
_Static_assert(IR_DOTS_ROW == 4 * IR_DOTS_STRIP, "one register holds both strides");

static void emit_dots(struct emitter *e, const struct lir_ins *i)
{
	struct x86_tiles t = x86_tiles_of(&e->l->tiles, i->imm, e->dots++);
	int x = e->l->phys[i->a], w = e->l->phys[i->b], strip = e->l->phys[i->c], row = IR_DOTS_ROW / IR_DOTS_STRIP;
	struct x86_operand sums = address(e, i);

	emit2(e, X86_TILELOADD, x86_tmm(t.x), x86_mem_index(x, strip, 1, lir_dots_disp_a(i->imm)));
	for (int half = 0; half < 2; half++) {
		emit2(e, X86_TILELOADD, x86_tmm(t.w[half]),
		      x86_mem_index(w, strip, row, lir_dots_disp_b(i->imm) + half * HALF));
		emit1(e, X86_TILEZERO, x86_tmm(t.sum[half]));
		emit3(e, i->op, x86_tmm(t.sum[half]), x86_tmm(t.x), x86_tmm(t.w[half]));
	}
	for (int half = 0; half < 2; half++)
		emit2(e, X86_TILESTORED, x86_mem_index(sums.reg, strip, row, sums.disp + half * HALF),
		      x86_tmm(t.sum[half]));
}

/* --- masks. What a mask lets through is merged into memory, and into registers zeroed. */

static struct x86_operand k(const struct emitter *e, uint32_t r) { return x86_k(e->l->phys[r]); }

static void emit_mask(struct emitter *e, const struct lir_ins *i)
{
	switch (i->form) {
	case LIR_MIDIOM: emit3(e, i->op, k(e, i->dst), k(e, i->dst), k(e, i->dst)); break;
	case LIR_MCONST: emit2(e, i->op, k(e, i->dst), memory(e, i)); break;
	case LIR_MMOV:
		if (i->a == LIR_MEM || !same(e, i->dst, i->a))
			emit2(e, i->op, k(e, i->dst), i->a == LIR_MEM ? memory(e, i) : k(e, i->a));
		break;
	case LIR_MSAVE: emit2(e, i->op, memory(e, i), k(e, i->a)); break;
	case LIR_MOP: emit3(e, i->op, k(e, i->dst), k(e, i->a), k(e, i->b)); break;
	case LIR_MNOT: emit2(e, i->op, k(e, i->dst), k(e, i->a)); break;
	case LIR_MSHIFT: emit3(e, i->op, k(e, i->dst), k(e, i->a), x86_imm(i->imm)); break;
	case LIR_MSIGN: emit2(e, i->op, k(e, i->dst), source(e, i, i->a)); break;
	case LIR_MCMP: emit3(e, i->op, k(e, i->dst), source(e, i, i->a), source(e, i, i->b)); break;
	default: emit4(e, i->op, k(e, i->dst), source(e, i, i->a), source(e, i, i->b), x86_imm(i->imm)); break;
	}
}

static void emit_masked(struct emitter *e, const struct lir_ins *i)
{
	if (i->form == LIR_MGATHER) {
		emit_gather(e, i);
		return;
	}
	e->x.mask = e->l->phys[i->c];
	e->x.zeroing = i->form == LIR_MLOAD;
	switch (i->form) {
	case LIR_MBLEND: emit3(e, i->op, target_of(e, i), source(e, i, i->a), source(e, i, i->b)); break;
	case LIR_MLOAD: emit2(e, i->op, target_of(e, i), memory(e, i)); break;
	case LIR_MSTORE: emit2(e, i->op, memory(e, i), source(e, i, i->a)); break;
	default: emit3(e, i->op, memory(e, i), source(e, i, i->a), x86_imm(i->imm)); break;
	}
}

/* --- scalars */

static void move_gpr(struct emitter *e, struct x86_operand d, struct x86_operand s)
{
	if (s.cls == X86_MEM || d.reg != s.reg)
		emit2(e, X86_MOV, d, s);
}

static void emit_sconst(struct emitter *e, const struct lir_ins *i)
{
	unsigned r = e->l->phys[i->dst];
	if (!i->imm)
		emit2(e, X86_XOR, x86_r32((int)r), x86_r32((int)r));
	else if (i->imm > 0 && i->imm <= UINT32_MAX)
		emit2(e, X86_MOV, x86_r32((int)r), x86_imm(i->imm));
	else
		emit2(e, X86_MOV, x86_r64((int)r), x86_imm(i->imm));
}

/* dst = a op b, op two-operand. */
static void emit_sop(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	bool either = i->form == LIR_SOPC;
	if (a == LIR_MEM || (either && same(e, i->dst, b) && !same(e, i->dst, a))) {
		a = i->b;
		b = i->a;
	}
	struct x86_operand d = g(e, i->dst);
	if (!same(e, i->dst, a) && same(e, i->dst, b)) { /* a difference into its subtrahend */
		emit1(e, X86_NEG, d);
		emit2(e, X86_ADD, d, g(e, a));
	} else if (i->op == X86_ADD && b != LIR_MEM && !same(e, i->dst, a)) {
		emit2(e, X86_LEA, d, x86_mem_index(e->l->phys[a], e->l->phys[b], 1, 0));
	} else {
		move_gpr(e, d, g(e, a));
		emit2(e, i->op, d, x86_emit_g_or_mem(e, i, b));
	}
}

/* dst = the condition (cmovg: minimum, cmovl: maximum) holds for a against b ? b : a. */
static void emit_minmax(struct emitter *e, const struct lir_ins *i)
{
	uint32_t a = i->a, b = i->b;
	if (a == LIR_MEM || same(e, i->dst, b)) {
		a = i->b;
		b = i->a;
	}
	move_gpr(e, g(e, i->dst), g(e, a));
	emit2(e, X86_CMP, g(e, i->dst), x86_emit_g_or_mem(e, i, b));
	emit2(e, i->op, g(e, i->dst), x86_emit_g_or_mem(e, i, b));
}

static void emit_sopi(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = g(e, i->dst), a = g(e, i->a);
	if (i->op == X86_IMUL) {
		emit3(e, X86_IMUL, d, a, x86_imm(i->imm));
	} else if (i->op == X86_ADD && d.reg != a.reg) {
		if (i->imm)
			emit2(e, X86_LEA, d, x86_mem(a.reg, (int32_t)i->imm));
		else
			emit2(e, X86_MOV, d, a);
	} else {
		move_gpr(e, d, a);
		if (i->imm || i->op == X86_AND)
			emit2(e, i->op, d, x86_imm(i->imm));
		e->flags_of_counter = i->op == X86_ADD && i->imm;
	}
}

/* dst = the condition holds for a against b, or against the immediate. */
static void emit_condition(struct emitter *e, const struct lir_ins *i)
{
	struct x86_operand d = x86_r32(e->l->phys[i->dst]);
	emit2(e, X86_CMP, g(e, i->a), i->form == LIR_SCMPI ? x86_imm(i->imm) : x86_emit_g_or_mem(e, i, i->b));
	emit1(e, i->op, d);
	emit2(e, X86_MOVZX8, d, d);
}

/* dst = c ? b : a. Moves leave the flags as they are. */
static void emit_choose(struct emitter *e, const struct lir_ins *i)
{
	bool from_b = same(e, i->dst, i->b);
	emit2(e, X86_TEST, g(e, i->c), g(e, i->c));
	move_gpr(e, g(e, i->dst), g(e, from_b ? i->b : i->a));
	emit2(e, from_b ? X86_CMOVE : X86_CMOVNE, g(e, i->dst), g(e, from_b ? i->a : i->b));
}

static void emit_at_once(struct emitter *e, const struct lir_ins *i)
{
	static const uint8_t lock = 0xf0;
	const int r = e->l->phys[i->form == LIR_XCHG ? i->dst : i->a];
	if (i->form == LIR_LOCK && !i->imm)
		x86_bytes(&e->x, &lock, sizeof lock);
	emit2(e, i->op, memory(e, i), i->form == LIR_XCHG || i->ws == X86_GPR32 ? x86_r32(r) : x86_r64(r));
}

static void emit_scalar(struct emitter *e, const struct lir_ins *i)
{
	switch (i->form) {
	case LIR_SCONST: emit_sconst(e, i); break;
	case LIR_SMOV: move_gpr(e, g(e, i->dst), x86_emit_g_or_mem(e, i, i->a)); break;
	case LIR_SLOAD32:
		emit2(e, X86_MOV, x86_r32(e->l->phys[i->dst]),
		      i->a == LIR_MEM ? memory(e, i) : x86_r32(e->l->phys[i->a]));
		break;
	case LIR_SSTORE: emit2(e, X86_MOV, memory(e, i), g(e, i->a)); break;
	case LIR_LEA: emit2(e, X86_LEA, g(e, i->dst), memory(e, i)); break;
	case LIR_SOP:
	case LIR_SOPC: emit_sop(e, i); break;
	case LIR_SMINMAX: emit_minmax(e, i); break;
	case LIR_SCMP:
	case LIR_SCMPI: emit_condition(e, i); break;
	case LIR_SSEL: emit_choose(e, i); break;
	case LIR_TO_GPR:
	case LIR_MTO_GPR: emit2(e, i->op, x86_r32(e->l->phys[i->dst]), source(e, i, i->a)); break;
	case LIR_SOPI: emit_sopi(e, i); break;
	case LIR_EXTRACT:
		emit3(e, i->op, i->op == X86_VPEXTRQ ? g(e, i->dst) : x86_r32(e->l->phys[i->dst]), source(e, i, i->a),
		      x86_imm(i->imm));
		break;
	case LIR_LOCK:
	case LIR_XCHG: emit_at_once(e, i); break;
	default: move_gpr(e, g(e, i->dst), x86_r64((int)i->imm)); break;
	}
}

/* --- the pass */

static void emit_body(struct emitter *e)
{
	const struct lir *l = e->l;
	for (e->at = 0; e->at < l->n_ins; e->at++) {
		const struct lir_ins *i = &l->ins[e->at];
		bool flags = e->flags_of_counter;
		e->flags_of_counter = false;
		if (i->form == LIR_LOOP)
			x86_emit_loop(e, i);
		else if (i->form == LIR_ENDLOOP)
			x86_emit_endloop(e, i, flags);
		else if (i->form >= LIR_BREAK)
			x86_emit_branch(e, i);
		else if (i->form == LIR_DOTS)
			emit_dots(e, i);
		else if (i->form < LIR_DOTS)
			emit_vector(e, i);
		else if (i->form <= LIR_MCMPI)
			emit_mask(e, i);
		else if (i->form <= LIR_MGATHER)
			emit_masked(e, i);
		else
			emit_scalar(e, i);
	}
	e->at = UINT32_MAX;
}

static bool emit_object(struct emitter *e, struct object *out, struct error *err)
{
	uint32_t code_end = (uint32_t)e->x.size;
	x86_align(&e->x, 64);
	uint32_t pool = (uint32_t)e->x.size;
	x86_bind(&e->x, e->pool);
	x86_bytes(&e->x, e->l->pool, e->l->n_pool * 4);
	if (!x86_finish(&e->x))
		return error_set(err, e->x.error_op == X86_OP_COUNT ? ERROR_MEMORY : ERROR_ARGUMENT,
		                 "cannot encode %s: %s",
		                 e->x.error_op == X86_OP_COUNT ? "a kernel" : x86_op_name(e->x.error_op), e->x.error);
	if (e->opt->dump_asm)
		x86_list(e, code_end);
	*out = (struct object){
		.code = e->x.code, .code_bytes = (uint32_t)e->x.size, .pool_offset = pool, .frame_bytes = e->frame
	};
	e->x.code = NULL;
	e->x.size = e->x.capacity = 0;
	return true;
}

bool x86_emit(struct object *out, const struct lir *l, const struct emit_options *opt, uint32_t *instructions,
              struct error *err)
{
	struct emitter e = { .l = l, .opt = opt, .at = UINT32_MAX };
	x86_init(&e.x);
	e.x.evex = l->lanes == 16; /* else VNNI, too, is said with VEX */
	e.pool = x86_label(&e.x);
	x86_emit_prologue(&e);
	if (l->tiles.rows[0])
		emit1(&e, X86_LDTILECFG, x86_mem_label(e.pool, (int32_t)l->tiles.config));
	emit_body(&e);
	if (l->tiles.rows[0])
		emit0(&e, X86_TILERELEASE); /* tiles in use would be saved at every change of threads */
	x86_emit_epilogue(&e);
	bool ok = e.failed ? error_set(err, ERROR_MEMORY, "no memory to list a kernel") : emit_object(&e, out, err);
	*instructions = e.count;
	x86_free(&e.x);
	free(e.note);
	return ok;
}
