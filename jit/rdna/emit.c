/* jit/rdna/emit.c - allocated instructions, waits and hazards in place, to bytes.
 *
 * Owns: which registers the kernel uses, which lanes are on, the return, the listing; emit_branch.c has the loops and
 * ifs. Decides no register (but spare scalar ones for loops) and no order. Rule for editors: what this file adds to the
 * instructions stands behind rdna_hazard, so it must be safe by itself on every generation.
 */
#include "jit/rdna/emit.h"

#include "jit/compile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
	uint32_t last[RDNA_V0] = { 0 }, open[IR_LOWERED_DEPTH];
	unsigned depth = 0;
	for (uint32_t at = 0; at < l->n_ins; at++) {
		const struct rdna_lir_ins *i = &l->ins[at];
		rdna_map_add_results(&e->named, i);
		note_write(last, &i->d[0], at);
		note_write(last, &i->d[1], at);
		e->any_exec |= i->exec != 0 || rdna_lir_is_masked(i);
		if (i->op == RDNA_LIR_LOOP) {
			assert(depth < IR_LOWERED_DEPTH);
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

/* --- which lanes are on */

static void change_exec(struct emitter *e, uint32_t lanes)
{
	put1(e, RDNA_S_MOV_B32, rdna_s(RDNA_EXEC_LO), rdna_imm(lanes == ALL_LANES ? -1 : (int64_t)lanes));
	e->exec = lanes;
	e->exec_reg = NO_REGISTER;
}

static inline void set_exec(struct emitter *e, uint32_t lanes)
{
	if (lanes == UINT32_MAX)
		lanes = ALL_LANES;
	if (e->exec != lanes || e->exec_reg != NO_REGISTER)
		change_exec(e, lanes);
}

/* What rdna_hazard has waited for. */
static void set_exec_to(struct emitter *e, const struct rdna_lir_operand *mask)
{
	struct rdna_range r = rdna_machine_range(mask);
	if (e->exec_reg == r.reg)
		return;
	put1(e, RDNA_S_MOV_B32, rdna_s(RDNA_EXEC_LO), rdna_s(r.reg));
	e->exec_reg = r.reg;
}

/* The next access takes its lanes anew when this instruction writes the register that they are as. Nothing is written
 * for that here, which may be within a clause. */
static void forget_mask(struct emitter *e, const struct rdna_lir_ins *i)
{
	const struct rdna_range mask = { (uint16_t)e->exec_reg, 1 };
	for (unsigned d = 0; d < 2; d++)
		if (rdna_range_meets(rdna_machine_range(&i->d[d]), mask))
			e->exec_reg = LOST_REGISTER;
}

/* Scalar instructions do not care, and leaving the lanes as they are joins restricted accesses on both sides of them.
 * What stands in front of an instruction on its behalf comes behind the change. */
static void exec_for(struct emitter *e, size_t at)
{
	const struct rdna_lir_ins *i = &e->l->ins[at];
	while (at + 1 < e->l->n_ins && (i->op == RDNA_S_CLAUSE || i->op == RDNA_S_DELAY_ALU))
		i = &e->l->ins[++at];
	unsigned facts = i->op < RDNA_OP_COUNT ? rdna_lir_facts(i->op) : RDNA_IS_VALU;
	if (facts & (RDNA_IS_VMEM | RDNA_IS_LDS) && i->s[3].kind)
		set_exec_to(e, &i->s[3]);
	else if (facts & (RDNA_IS_VMEM | RDNA_IS_LDS))
		set_exec(e, i->exec);
	else if (facts & (RDNA_IS_VALU | RDNA_IS_TRANS | RDNA_IS_WMMA))
		set_exec(e, ALL_LANES);
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
	case RDNA_LIR_LOOP:
	case RDNA_LIR_ENDLOOP:
	case RDNA_LIR_IF:
	case RDNA_LIR_ELSE:
	case RDNA_LIR_ENDIF:
	case RDNA_LIR_BREAK: rdna_emit_branch(e, i); return;
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
		if (i->exec || i->s[3].kind || e->exec != ALL_LANES || e->exec_reg != NO_REGISTER)
			exec_for(e, e->at);
		emit_plain(e, i);
		if (e->exec_reg != NO_REGISTER)
			forget_mask(e, i);
	}
}

static void emit_body(struct emitter *e, bool notes)
{
	e->count = 0;
	e->n_notes = 0;
	e->exec = ALL_LANES;
	e->exec_reg = NO_REGISTER;
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
