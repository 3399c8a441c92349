/* jit/x86/emit.h - what the files of x86 emission share: the state of the pass, and how one instruction is handed to
 * the encoder. */
#ifndef JIT_X86_EMIT_H
#define JIT_X86_EMIT_H

#include "jit/x86/select.h"
#include "base/array.h"

enum { PAGE = 4096 };

struct note {
	uint32_t offset;
	uint32_t ins;
}; /* listing: where an instruction's bytes begin, what they are for */

struct emitter {
	struct x86 x;
	const struct lir *l;
	const struct emit_options *opt;
	struct emit_block {
		int head, exit; /* labels; head: of loops; exit: of an if, where it goes when a part is not run */
		bool loop;
	} block[IR_LOWERED_DEPTH]; /* that are open */
	unsigned depth;
	int pool;
	uint32_t vec_slots_at, gpr_slots_at, frame;
	uint32_t saved;           /* callee-saved registers pushed, bit by number */
	uint32_t count, at, dots; /* instructions; the one at work; products of matrices so far */
	bool flags_of_counter;    /* the last instruction was the loop counter's addition: flags tell zero */
	struct note *note;
	size_t n_notes, notes_capacity;
	bool failed;
};

/* --- operands */

static inline void take_note(struct emitter *e)
{
	if (!e->opt->dump_asm)
		return;
	e->failed |= !array_grow((void **)&e->note, &e->notes_capacity, e->n_notes + 1, sizeof *e->note);
	if (!e->failed)
		e->note[e->n_notes++] = (struct note){ (uint32_t)e->x.size, e->at };
}

static inline void emit4(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b,
                         struct x86_operand c, struct x86_operand d)
{
	take_note(e);
	x86_ins(&e->x, (enum x86_op)op, a, b, c, d);
	e->count++;
}

static inline void emit0(struct emitter *e, unsigned op) { emit4(e, op, X86_0, X86_0, X86_0, X86_0); }
static inline void emit1(struct emitter *e, unsigned op, struct x86_operand a) { emit4(e, op, a, X86_0, X86_0, X86_0); }
static inline void emit2(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b)
{
	emit4(e, op, a, b, X86_0, X86_0);
}
static inline void emit3(struct emitter *e, unsigned op, struct x86_operand a, struct x86_operand b,
                         struct x86_operand c)
{
	emit4(e, op, a, b, c, X86_0);
}

static inline bool same(const struct emitter *e, uint32_t x, uint32_t y)
{
	return x >= LIR_FIRST && y >= LIR_FIRST && e->l->phys[x] == e->l->phys[y];
}

static inline struct x86_operand g(const struct emitter *e, uint32_t r) { return x86_r64(e->l->phys[r]); }

/* --- emit_frame.c */

void x86_emit_loop(struct emitter *e, const struct lir_ins *i);
void x86_emit_endloop(struct emitter *e, const struct lir_ins *i, bool flags);
void x86_emit_branch(struct emitter *e, const struct lir_ins *i); /* the rest of control flow */
void x86_emit_prologue(struct emitter *e);
void x86_emit_epilogue(struct emitter *e);

/* --- emit_list.c */

void x86_list(const struct emitter *e, uint32_t code_end);

/* --- emit.c */

struct x86_operand x86_emit_g_or_mem(const struct emitter *e, const struct lir_ins *i, uint32_t r);

#endif
