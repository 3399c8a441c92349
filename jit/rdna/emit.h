/* jit/rdna/emit.h - what the files of RDNA emission share: the state of the pass, and how an instruction is handed to
 * the encoder. */
#ifndef JIT_RDNA_EMIT_H
#define JIT_RDNA_EMIT_H

#include "jit/ir/ir.h"
#include "jit/rdna/machine.h"

/* How many bytes a branch may span before it is made a far one: what 16 bits reach, less what far branches within it
 * will add. What exec may be beside a number of lanes: all; those of a register; not known. */
enum { NEAR_BYTES = 120000, ALL_LANES = 0, NO_REGISTER = 0, LOST_REGISTER = UINT16_MAX };

/* Of loops, ifs and elses: the branches are far ones; something in a loop writes its index, its count. */
enum { IS_FAR = 1, WRITES_INDEX = 2, WRITES_COUNT = 4 };

/* A loop, or a part of an if, that is open. at: the LOOP, IF or ELSE; exit: the label behind it. */
struct block {
	size_t at;
	int head, exit;
	unsigned counter;
	struct rdna_operand limit;
	size_t start;
	bool loop, counts, spare;
};

struct note {
	uint32_t offset;
	size_t ins;
}; /* listing */

struct emitter {
	struct rdna r;
	const struct rdna_lir *l;
	struct block block[IR_LOWERED_DEPTH];
	unsigned depth;
	uint32_t exec;     /* the lanes that are on; ALL_LANES: all of them */
	unsigned exec_reg; /* then: those of this register's mask; NO_REGISTER: as exec says; LOST_REGISTER: of a mask
	                      that no register has any more */
	bool any_exec;     /* some instruction is restricted to some lanes: what stands in front of it may have to come
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

static inline void put(struct emitter *e, const struct rdna_ins *i)
{
	rdna_put(&e->r, i);
	e->count++;
}

static inline void put_hint(struct emitter *e, enum rdna_op op, uint32_t imm)
{
	rdna_put_imm(&e->r, op, imm);
	e->count++;
}

static inline void put2(struct emitter *e, enum rdna_op op, struct rdna_operand d, struct rdna_operand a,
                        struct rdna_operand b)
{
	put(e, &(struct rdna_ins){ .op = op, .d = { d }, .s = { a, b } });
}
static inline void put1(struct emitter *e, enum rdna_op op, struct rdna_operand d, struct rdna_operand a)
{
	put2(e, op, d, a, (struct rdna_operand){ 0 });
}
static inline void compare(struct emitter *e, enum rdna_op op, struct rdna_operand a, struct rdna_operand b)
{
	put(e, &(struct rdna_ins){ .op = op, .s = { a, b } });
}

/* gfx12 may show an older value of a scalar register that vector instructions have read before: what this file writes
 * it waits for, where it reads it. */
static inline void wait_scalar_write(struct emitter *e)
{
	if (e->l->gen == RDNA_GFX12)
		put_hint(e, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

/* --- emit_branch.c: loops and ifs */

/* LOOP, ENDLOOP, BREAK, IF, ELSE, ENDIF. */
void rdna_emit_branch(struct emitter *e, const struct rdna_lir_ins *i);

#endif
