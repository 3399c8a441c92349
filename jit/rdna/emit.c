/* jit/rdna/emit.c - allocated instructions, waits and hazards in place, to bytes.
 *
 * Owns: how loops are counted and branches reach, which lanes are on, the return, the listing. Decides no register (but
 * spare scalar ones for loops) and no order. Rule for editors: what this file adds to the instructions stands behind
 * rdna_hazard, so it must be safe by itself on every generation.
 *
 * A loop counts in its index's register as long as nothing in its body writes there, and compares with its count's
 * register likewise; where the allocator has given them away, spare registers do it. Branches beyond 16 bits go through
 * a register pair: found out in a first pass over the whole kernel, which is then emitted again.
 */
#include "jit/rdna/machine.h"

#include "jit/compile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How many bytes a branch may span before it is made a far one: what 16 bits reach, less what far branches within it
 * will add. */
enum { MAX_DEPTH = 64, NEAR_BYTES = 120000, ALL_LANES = 0 };

/* Of loops: its branches are far ones; something in it writes its index, its count. */
enum { IS_FAR = 1, WRITES_INDEX = 2, WRITES_COUNT = 4 };

struct loop {
	size_t at;
	int head, exit;
	unsigned counter;
	struct rdna_operand limit;
	size_t start;
	bool counts, spare;
};

struct note {
	uint32_t offset;
	size_t ins;
}; /* listing */

struct emitter {
	struct rdna r;
	const struct rdna_lir *l;
	struct loop loop[MAX_DEPTH];
	unsigned depth;
	uint32_t exec; /* the lanes that are on; ALL_LANES: all of them */
	bool any_exec; /* some instruction is restricted to some lanes: what stands in front of it may have to come
	                  behind a change */
	struct rdna_map named, taken;      /* registers: that the kernel uses, and those with what is taken beside */
	uint16_t vector_regs, scalar_regs; /* highest number used + 1 */
	uint8_t *is;
	bool any_new_far; /* by LOOP: IS_FAR ... */
	struct note *note;
	size_t n_notes, notes_capacity;
	uint32_t count;
	size_t at, broken; /* the instruction now emitted; the one that the encoder refused */
	const char *why;
	bool unlisted; /* no memory for a note */
};

static void put(struct emitter *e, const struct rdna_ins *i)
{
	rdna_put(&e->r, i);
	e->count++;
}

static void put_hint(struct emitter *e, enum rdna_op op, uint32_t imm)
{
	rdna_put_imm(&e->r, op, imm);
	e->count++;
}

static void put2(struct emitter *e, enum rdna_op op, struct rdna_operand d, struct rdna_operand a,
                 struct rdna_operand b)
{
	put(e, &(struct rdna_ins){ .op = op, .d = { d }, .s = { a, b } });
}
static void put1(struct emitter *e, enum rdna_op op, struct rdna_operand d, struct rdna_operand a)
{
	put2(e, op, d, a, (struct rdna_operand){ 0 });
}
static void compare(struct emitter *e, enum rdna_op op, struct rdna_operand a, struct rdna_operand b)
{
	put(e, &(struct rdna_ins){ .op = op, .s = { a, b } });
}

/* gfx12 may show an older value of a scalar register that vector instructions have read before: what this file writes
 * it waits for, where it reads it. */
static void wait_scalar_write(struct emitter *e)
{
	if (e->l->gen == RDNA_GFX12)
		put_hint(e, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

/* --- registers */

static inline void note_write(uint32_t last[RDNA_V0], const struct rdna_lir_operand *d, uint32_t at)
{
	for (unsigned k = 0; rdna_is_register(d) && d->reg < RDNA_V0 && k < d->n; k++)
		last[d->reg + k] = at + 1;
}

/* Whether the LOOP's index and its count are written in it. last: by scalar register, 1 + the last instruction that
 * wrote it. */
static unsigned loop_writes(const struct rdna_lir *l, uint32_t loop, const uint32_t last[RDNA_V0])
{
	struct rdna_range index = rdna_machine_range(&l->ins[loop].d[0]),
			  count = rdna_machine_range(&l->ins[loop].s[0]);
	return (index.n && last[index.reg] > loop + 1 ? WRITES_INDEX : 0u) |
	       (count.n && last[count.reg] > loop + 1 ? WRITES_COUNT : 0u);
}

/* One walk over all results: what the kernel uses, for beside what it is called with it reads only what it has written
 * (rdna_lir_verify), and what loops write. */
static void find_registers(struct emitter *e)
{
	const struct rdna_lir *l = e->l;
	uint32_t last[RDNA_V0] = { 0 }, open[MAX_DEPTH];
	unsigned depth = 0;
	for (uint32_t at = 0; at < l->n_ins; at++) {
		const struct rdna_lir_ins *i = &l->ins[at];
		rdna_map_add_results(&e->named, i);
		note_write(last, &i->d[0], at);
		note_write(last, &i->d[1], at);
		e->any_exec |= i->exec != 0;
		if (i->op == RDNA_LIR_LOOP) {
			assert(depth < MAX_DEPTH);
			open[depth++] = at;
		} else if (i->op == RDNA_LIR_ENDLOOP) {
			depth--;
			e->is[open[depth]] |= (uint8_t)loop_writes(l, open[depth], last);
		}
	}
}

/* The highest of n words' bits + 1; 0: there is none. */
static unsigned past_highest(const uint64_t *w, unsigned n)
{
	while (n && !w[n - 1])
		n--;
	return n ? 64 * n - (unsigned)__builtin_clzll(w[n - 1]) : 0;
}

static void take_named(struct emitter *e)
{
	const uint64_t allocatable[RDNA_MAP_SCALAR] = { e->named.w[0],
		                                        e->named.w[1] & ((UINT64_C(1) << (RDNA_ABI_SGPRS - 64)) - 1) };
	unsigned scalars = past_highest(allocatable, RDNA_MAP_SCALAR);
	e->taken = e->named;
	e->vector_regs = (uint16_t)past_highest(e->named.w + RDNA_MAP_VECTOR, RDNA_MAP_WORDS - RDNA_MAP_VECTOR);
	e->scalar_regs = (uint16_t)(scalars > RDNA_ABI_FREE_SGPR ? scalars : RDNA_ABI_FREE_SGPR);
}

/* A pair of scalar registers that the kernel does not use, on gfx12 one that stands apart if there is any. Never half a
 * pair: gfx12 minds what is written to its other half, which rdna_hazard does not see. */
static unsigned spare(struct emitter *e)
{
	const unsigned all = RDNA_ABI_SGPRS - RDNA_ABI_FREE_SGPR,
		       first = e->l->gen == RDNA_GFX12 ? RDNA_ABI_APART - RDNA_ABI_FREE_SGPR : 0;
	for (unsigned i = 0; i < all; i += 2) {
		unsigned k = RDNA_ABI_FREE_SGPR + (first + i) % all;
		if (e->taken.w[k / 64] >> k % 64 & 3)
			continue;
		rdna_map_add(&e->taken, (struct rdna_range){ (uint16_t)k, 2 });
		e->scalar_regs = k + 2 > e->scalar_regs ? (uint16_t)(k + 2) : e->scalar_regs;
		return k;
	}
	e->why = "no scalar register is left to count a loop";
	return RDNA_ABI_FREE_SGPR;
}

static void give_back(struct emitter *e, unsigned pair) { e->taken.w[pair / 64] &= ~(UINT64_C(3) << pair % 64); }

/* --- which lanes are on */

static void change_exec(struct emitter *e, uint32_t lanes)
{
	put1(e, RDNA_S_MOV_B32, rdna_s(RDNA_EXEC_LO), rdna_imm(lanes == ALL_LANES ? -1 : (int64_t)lanes));
	e->exec = lanes;
}

static inline void set_exec(struct emitter *e, uint32_t lanes)
{
	if (lanes == UINT32_MAX)
		lanes = ALL_LANES;
	if (e->exec != lanes)
		change_exec(e, lanes);
}

/* Scalar instructions do not care, and leaving the lanes as they are joins restricted accesses on both sides of them.
 * What stands in front of an instruction on its behalf comes behind the change. */
static void exec_for(struct emitter *e, size_t at)
{
	const struct rdna_lir_ins *i = &e->l->ins[at];
	while (at + 1 < e->l->n_ins && (i->op == RDNA_S_CLAUSE || i->op == RDNA_S_DELAY_ALU))
		i = &e->l->ins[++at];
	unsigned facts = i->op < RDNA_OP_COUNT ? rdna_lir_facts(i->op) : RDNA_IS_VALU;
	if (facts & (RDNA_IS_VMEM | RDNA_IS_LDS))
		set_exec(e, i->exec);
	else if (facts & (RDNA_IS_VALU | RDNA_IS_TRANS | RDNA_IS_WMMA))
		set_exec(e, ALL_LANES);
}

/* --- branches */

static enum rdna_op opposite(enum rdna_op op)
{
	return op == RDNA_S_CBRANCH_SCC0 ? RDNA_S_CBRANCH_SCC1 : RDNA_S_CBRANCH_SCC0;
}

/* SCC means nothing behind it. */
static void branch(struct emitter *e, enum rdna_op op, int label, bool far, bool forward)
{
	if (!far) {
		put(e, &(struct rdna_ins){ .op = op, .s = { rdna_to(label) } });
		return;
	}
	unsigned pc = spare(e);
	int here = rdna_label(&e->r), over = rdna_label(&e->r);
	if (op != RDNA_S_BRANCH)
		put(e, &(struct rdna_ins){ .op = opposite(op), .s = { rdna_to(over) } });
	put(e, &(struct rdna_ins){ .op = RDNA_S_GETPC_B64, .d = { rdna_sn(pc, 2) } });
	rdna_bind(&e->r, here);
	wait_scalar_write(e);
	put2(e, RDNA_S_ADD_CO_U32, rdna_s(pc), rdna_s(pc), rdna_distance(label, here));
	wait_scalar_write(e);
	put2(e, RDNA_S_ADD_CO_CI_U32, rdna_s(pc + 1), rdna_s(pc + 1), rdna_imm(forward ? 0 : -1));
	wait_scalar_write(e);
	put(e, &(struct rdna_ins){ .op = RDNA_S_SETPC_B64, .s = { rdna_sn(pc, 2) } });
	rdna_bind(&e->r, over);
	give_back(e, pc);
}

/* --- loops */

static struct rdna_operand count_of(const struct emitter *e, const struct rdna_lir_ins *i)
{
	struct rdna_range r = rdna_machine_range(&i->s[0]);
	return r.n ? rdna_s(r.reg) : rdna_imm((int32_t)i->s[0].value);
}

/* Where the count is kept while the loop runs. */
static struct rdna_operand limit_of(struct emitter *e, const struct rdna_lir_ins *i, struct rdna_operand count)
{
	struct rdna_range c = rdna_machine_range(&i->s[0]), d = rdna_machine_range(&i->d[0]);
	if (!c.n || (!(d.n && rdna_range_meets(c, d)) && !(e->is[e->at] & WRITES_COUNT)))
		return count;
	unsigned reg = spare(e);
	put1(e, RDNA_S_MOV_B32, rdna_s(reg), count);
	return rdna_s(reg);
}

static void emit_loop(struct emitter *e, const struct rdna_lir_ins *i)
{
	assert(e->depth < MAX_DEPTH);
	struct loop *p = &e->loop[e->depth++];
	struct rdna_range d = rdna_machine_range(&i->d[0]);
	struct rdna_operand count = count_of(e, i);
	bool constant = count.kind == RDNA_CONST;

	*p = (struct loop){ .at = e->at, .head = rdna_label(&e->r), .exit = rdna_label(&e->r), .start = e->r.size };
	p->counts = !constant || (int32_t)count.value > 1;
	if (constant && (int32_t)count.value < 1) {
		branch(e, RDNA_S_BRANCH, p->exit, e->is[e->at] & IS_FAR, true);
	} else if (!constant) {
		compare(e, RDNA_S_CMP_LT_I32, count, rdna_imm(1));
		branch(e, RDNA_S_CBRANCH_SCC1, p->exit, e->is[e->at] & IS_FAR, true);
	}
	p->limit = limit_of(e, i, count);
	p->spare = p->counts && (!d.n || e->is[e->at] & WRITES_INDEX);
	p->counter = p->spare ? spare(e) : d.reg;
	if (d.n || p->counts)
		put1(e, RDNA_S_MOV_B32, rdna_s(p->counter), rdna_imm(0));
	rdna_bind(&e->r, p->head);
	if (p->spare && d.n) {
		wait_scalar_write(e);
		put1(e, RDNA_S_MOV_B32, rdna_s(d.reg), rdna_s(p->counter));
	}
}

static void emit_endloop(struct emitter *e)
{
	struct loop *p = &e->loop[--e->depth];
	struct rdna_operand count = count_of(e, &e->l->ins[p->at]);
	if (p->counts) {
		if (p->spare || p->limit.reg != count.reg)
			wait_scalar_write(e);
		put2(e, RDNA_S_ADD_CO_I32, rdna_s(p->counter), rdna_s(p->counter), rdna_imm(1));
		if (p->counter < RDNA_ABI_APART || (p->spare && rdna_is_register(&e->l->ins[p->at].d[0])))
			wait_scalar_write(e);
		compare(e, RDNA_S_CMP_LT_I32, rdna_s(p->counter), p->limit);
		branch(e, RDNA_S_CBRANCH_SCC1, p->head, e->is[p->at] & IS_FAR, false);
	}
	rdna_bind(&e->r, p->exit);
	if (p->spare)
		give_back(e, p->counter);
	if (p->limit.kind == RDNA_REG && p->limit.reg != count.reg)
		give_back(e, p->limit.reg);
	if (!(e->is[p->at] & IS_FAR) && e->r.size - p->start > NEAR_BYTES) {
		e->is[p->at] |= IS_FAR;
		e->any_new_far = true;
	}
}

/* --- the body */

static void take_note(struct emitter *e)
{
	if (e->n_notes == e->notes_capacity) {
		size_t capacity = e->notes_capacity ? 2 * e->notes_capacity : 256;
		struct note *grown = realloc(e->note, capacity * sizeof *grown);
		if (!grown) {
			e->unlisted = true;
			return;
		}
		e->note = grown;
		e->notes_capacity = capacity;
	}
	e->note[e->n_notes++] = (struct note){ (uint32_t)e->r.size, e->at };
}

static void emit_dual(struct emitter *e)
{
	const struct rdna_lir_ins *i = &e->l->ins[e->at];
	struct rdna_half hx, hy;
	assert(e->at + 2 < e->l->n_ins);
	rdna_machine_half(e->l->gen, &i[1], &hx);
	rdna_machine_half(e->l->gen, &i[2], &hy);
	if (!rdna_put_halves(&e->r, &hx, &hy)) { /* the encoder says why */
		struct rdna_ins x, y;
		rdna_machine_ins(&i[1], &x);
		rdna_machine_ins(&i[2], &y);
		rdna_put_dual(&e->r, &x, &y);
	}
	e->count++;
	e->at += 2;
}

static void emit_plain(struct emitter *e, const struct rdna_lir_ins *i)
{
	struct rdna_plain p;
	if (!rdna_machine_plain(i, &p) || !rdna_put_plain(&e->r, (enum rdna_op)i->op, &p)) {
		struct rdna_ins x;
		rdna_machine_ins(i, &x);
		rdna_put(&e->r, &x);
	}
	e->count++;
}

/* Pseudo instructions; and what rdna_patch_op put in front of instructions, a constant and nothing else to look at. */
static void emit_fixed(struct emitter *e, const struct rdna_lir_ins *i)
{
	switch (i->op) {
	case RDNA_LIR_LOOP: emit_loop(e, i); return;
	case RDNA_LIR_ENDLOOP: emit_endloop(e); return;
	case RDNA_LIR_DUAL: emit_dual(e); return;
	case RDNA_S_WAITCNT:
	case RDNA_S_WAIT_LOADCNT:
	case RDNA_S_WAIT_STORECNT:
	case RDNA_S_WAIT_DSCNT:
	case RDNA_S_WAIT_KMCNT:
	case RDNA_S_WAIT_LOADCNT_DSCNT:
	case RDNA_S_WAIT_STORECNT_DSCNT:
	case RDNA_S_WAIT_ALU:
	case RDNA_S_NOP:
	case RDNA_S_CLAUSE:
	case RDNA_S_DELAY_ALU:
		if (i->s[0].kind != RDNA_LIR_CONST)
			break;
		put_hint(e, (enum rdna_op)i->op, i->s[0].value);
		return;
	default: break;
	}
	emit_plain(e, i);
}

static void emit_one(struct emitter *e)
{
	const struct rdna_lir_ins *i = &e->l->ins[e->at];
	if (rdna_lir_facts(i->op) & RDNA_IS_FIXED) {
		if (e->any_exec)
			exec_for(e, e->at);
		emit_fixed(e, i);
	} else {
		if (i->exec || e->exec != ALL_LANES)
			exec_for(e, e->at);
		emit_plain(e, i);
	}
}

static void emit_body(struct emitter *e, bool notes)
{
	e->count = 0;
	e->n_notes = 0;
	e->exec = ALL_LANES;
	e->any_new_far = false;
	e->broken = SIZE_MAX;
	take_named(e);
	for (e->at = 0; e->at < e->l->n_ins; e->at++) {
		size_t at = e->at;
		if (notes)
			take_note(e);
		emit_one(e);
		if (e->r.error && e->broken == SIZE_MAX)
			e->broken = at;
	}
	if (notes)
		take_note(e);
	set_exec(e, ALL_LANES);
	put(e, &(struct rdna_ins){ .op = RDNA_S_SETPC_B64, .s = { rdna_sn(RDNA_ABI_RETURN, 2) } });
}

/* --- the listing */

static bool list_text(const struct emitter *e, size_t at, FILE *out)
{
	const struct rdna_lir_ins *i = &e->l->ins[at];
	bool dual = i->op == RDNA_LIR_DUAL;
	char *text = rdna_machine_text(e->l, dual ? i + 1 : i), *half = dual ? rdna_machine_text(e->l, i + 2) : NULL;
	bool ok = text && (half || !dual);
	if (ok)
		fprintf(out, "\t; %s%s%s%s\n", dual ? "dual " : "", text, dual ? " :: " : "", dual ? half : "");
	free(text);
	free(half);
	return ok;
}

static bool list(const struct emitter *e, const struct rdna_listing *to)
{
	const char *title = to->title ? to->title : "kernel";
	fprintf(to->out, "; %s\n\t.text\n%s:\n", title, title);
	for (size_t k = 0; k < e->n_notes; k++) {
		size_t end = k + 1 < e->n_notes ? e->note[k + 1].offset : e->r.size, at = e->note[k].ins;
		fprintf(to->out, end > e->note[k].offset ? "\t.long " : "\t");
		for (size_t b = e->note[k].offset; b < end; b += 4) {
			uint32_t w = (uint32_t)e->r.code[b] | (uint32_t)e->r.code[b + 1] << 8 |
			             (uint32_t)e->r.code[b + 2] << 16 | (uint32_t)e->r.code[b + 3] << 24;
			fprintf(to->out, "%s0x%08" PRIx32, b > e->note[k].offset ? ", " : "", w);
		}
		if (at == e->l->n_ins)
			fprintf(to->out, "\t; return\n");
		else if (!list_text(e, at, to->out))
			return false;
	}
	return true;
}

/* --- the pass */

static bool refuse(const struct emitter *e, struct error *err)
{
	if (e->why)
		return error_set(err, ERROR_UNSUPPORTED, "cannot emit a kernel: %s", e->why);
	char *text = e->broken < e->l->n_ins ? rdna_machine_text(e->l, &e->l->ins[e->broken]) : NULL;
	error_set(err, e->r.error_op == RDNA_OP_COUNT ? ERROR_MEMORY : ERROR_UNSUPPORTED, "cannot encode \"%s\": %s",
	          text ? text : "a kernel", e->r.error);
	free(text);
	return false;
}

bool rdna_emit_listed(struct object *out, const struct rdna_lir *l, struct rdna_listing *listing, struct error *err)
{
	struct emitter e = { .l = l };
	bool list_it = listing && listing->out, ok;
	e.is = calloc(l->n_ins + 1, sizeof *e.is);
	if (!e.is)
		return error_set(err, ERROR_MEMORY, "no memory for a kernel of %zu instructions", l->n_ins);
	find_registers(&e);
	do {
		rdna_free(&e.r);
		rdna_init(&e.r, l->gen);
		emit_body(&e, list_it);
	} while (e.any_new_far && !e.r.error && !e.why);
	ok = !e.why && rdna_finish(&e.r) ? true : refuse(&e, err);
	if (ok && list_it)
		ok = (!e.unlisted && list(&e, listing)) || error_set(err, ERROR_MEMORY, "no memory to list a kernel");
	if (ok) {
		out->code = e.r.code;
		out->code_bytes = out->pool_offset = (uint32_t)e.r.size;
		out->vector_regs = e.vector_regs;
		out->scalar_regs = e.scalar_regs;
		e.r.code = NULL;
	}
	if (listing)
		listing->instructions = e.count;
	rdna_free(&e.r);
	free(e.is);
	free(e.note);
	return ok;
}

bool rdna_emit(struct object *out, const struct rdna_lir *l, struct error *err)
{
	return rdna_emit_listed(out, l, NULL, err);
}
