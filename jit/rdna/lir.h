/* jit/rdna/lir.h - the machine-level form of an RDNA kernel between selection and bytes.
 *
 * Owns: the instruction record, operands on virtual registers, what an instruction reads and writes, the verifier of
 * all stages, the text form that the passes' tests are written in. Instructions are those of encoders/rdna.h under its
 * names; nothing here knows the IR's meaning.
 *
 * A virtual register is a tuple of 1 to 16 consecutive 32-bit registers of one file, with one machine register for its
 * whole life. An operand names n of its words from word `sub` on. A tuple may be written word by word; a register may
 * be written more than once (a variable). Control flow is counted loops, which a break may leave, and ifs. Memory
 * instructions may be restricted to some lanes (`exec`, or a mask in a register); all else runs with all 32.
 *
 * The passes, in their order; each takes and leaves a whole kernel, those marked * may be left out
 * (compile_options.skip):
 *   rdna_select    IR -> instructions on virtual registers
 *   rdna_sched *   loads up and together, within a budget of registers; inside straight runs of instructions
 *   rdna_regalloc  virtual -> machine registers; nothing is ever spilled: a kernel that does not fit is refused
 *   rdna_tidy      machine registers into operands; rdna_shorten: short forms (machine.h)
 *   rdna_vopd *    pairs of vector instructions into dual ones (gfx11 and later)
 *   rdna_wait      waits for the counters of loads and stores
 *   rdna_hazard    what the generations need between instructions; * clauses, delay hints
 *   rdna_emit      loops, ifs, lane restrictions and everything else into bytes
 *
 * The kernel's function: called by the driver (program.h) with s_swappc_b64, all lanes on, nothing outstanding, and on
 * gfx12 all scalar registers but the return address's settled (s_wait_alu). It
 * returns the same way; its loads have arrived, stores may be under way.
 */
#ifndef JIT_RDNA_LIR_H
#define JIT_RDNA_LIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "encoders/rdna.h"

/* Scalar registers that have a role. A function reads RDNA_ABI_WAVE..RDNA_ABI_RETURN+1, writes none below
 * RDNA_ABI_FREE_SGPR, and may use all vector registers, s16..s105, vcc, scc. 64-bit ones take two. */
enum {
	RDNA_ABI_DRIVER = 0, /* s0..s6 are the driver's, and m0 */
	RDNA_ABI_WAVE = 7,   /* this wave's number in its group */
	RDNA_ABI_ARG = 8,
	RDNA_ABI_BEGIN = 10,
	RDNA_ABI_END = 12,
	RDNA_ABI_RETURN = 14,
	RDNA_ABI_FREE_SGPR = 16,
	RDNA_ABI_APART = 84, /* gfx12: from here on no vector instruction of any function reads scalar registers */
	RDNA_ABI_SGPRS = 106,
	RDNA_ABI_VGPRS = 256
};

/* Pseudo instructions, numbered behind the encoder's. */
enum {
	RDNA_LIR_LOOP = RDNA_OP_COUNT, /* d[0]: the index, one SGPR, or none; s[0]: the count, signed, one SGPR or a
	                                  constant. Runs max(count, 0) times */
	RDNA_LIR_ENDLOOP,
	RDNA_LIR_BREAK, /* s[0]: one SGPR; goes on behind the innermost loop when that is not 0 */
	RDNA_LIR_IF,    /* s[0]: one SGPR; goes on behind ELSE or ENDIF when that is 0 */
	RDNA_LIR_ELSE,
	RDNA_LIR_ENDIF,
	RDNA_LIR_DUAL, /* this and the next instruction are the halves of a dual one (rdna_vopd) */
	RDNA_LIR_OPS
};

static inline bool rdna_lir_branches(unsigned op) { return op >= RDNA_LIR_LOOP && op < RDNA_LIR_DUAL; }

enum rdna_class { RDNA_CLASS_SGPR, RDNA_CLASS_VGPR, RDNA_CLASSES };

enum rdna_lir_kind {
	RDNA_LIR_NONE,
	RDNA_LIR_VIRTUAL, /* words sub .. sub+n-1 of virtual register reg */
	RDNA_LIR_FIXED,   /* machine register reg as the encoder numbers it (RDNA_VCC_LO, RDNA_V0 + i), n of them */
	RDNA_LIR_CONST    /* value: inline where the instruction can, else a literal */
};
struct rdna_lir_operand {
	uint8_t kind, n, sub, mods /* RDNA_NEG ... */;
	union {
		uint32_t reg, value;
	};
};

/* What a memory instruction touches. Between two that touch the same, at least one of them writing, order is kept. */
enum rdna_memory {
	RDNA_MEM_NONE,
	RDNA_MEM_GLOBAL,
	RDNA_MEM_LDS,
	RDNA_MEM_CONST /* never written by this kernel: may move freely */
};

struct rdna_lir_ins {
	uint16_t op; /* enum rdna_op or a pseudo instruction */
	uint8_t memory;
	bool stores;
	struct rdna_lir_operand d[2], s[4], saddr; /* as in struct rdna_ins; of memory instructions s[3] is the lanes
	                                              that take part, one SGPR, and exec is 0 */
	int32_t offset;
	union {
		struct {
			uint8_t cache, scope, th, omod;
			bool clamp, e64;
		};
		uint64_t forms; /* all of these: 0 of most */
	};
	int32_t offset1;
	uint32_t exec; /* memory instructions: the lanes that take part, 0: all. A load then leaves d as it was in the
	                  others: it reads d too */
	struct rdna_dpp dpp;
	uint32_t ir; /* the IR instruction it came from, for dumps */
};

struct rdna_lir_reg {
	uint8_t cls, n, align;
	uint16_t phys; /* set by regalloc: the encoder's number of its first word */
};

struct rdna_lir {
	struct rdna_lir_ins *ins;
	size_t n_ins, ins_capacity;
	struct rdna_lir_reg *reg;
	size_t n_regs, regs_capacity; /* register 0 is none */
	enum rdna_gen gen;
	bool allocated; /* regalloc has run: phys counts */
	bool tried; /* rdna_sched has: phys and used are what regalloc would choose with all registers there are and no
	               seed */
	struct rdna_regs {
		uint16_t vgprs, sgprs; /* highest used + 1 */
		uint16_t sgprs_needed; /* as if none stood apart (RDNA_ABI_APART) */
	} used;
	uint32_t local_bytes, shared_bytes; /* LDS: shared ones at 0, then each wave's own */
	bool failed;                        /* memory ran out */
};

void rdna_lir_init(struct rdna_lir *l, enum rdna_gen gen);
void rdna_lir_free(struct rdna_lir *l);
bool rdna_lir_make_room(struct rdna_lir *l); /* for one more register; false: failed */
static inline unsigned rdna_lir_alignment(enum rdna_class cls, unsigned words)
{
	return cls == RDNA_CLASS_VGPR || words == 1 ? 1 : words == 2 ? 2 : 4;
}
/* SGPR tuples are aligned as the hardware wants them. After a failure the number is 0, which has no words and no class:
 * the caller must only not write through it. */
static inline uint32_t rdna_lir_new(struct rdna_lir *l, enum rdna_class cls, unsigned words)
{
	if (l->failed || (l->n_regs == l->regs_capacity && !rdna_lir_make_room(l)))
		return 0;
	l->reg[l->n_regs] = (struct rdna_lir_reg){
		.cls = (uint8_t)cls, .n = (uint8_t)words, .align = (uint8_t)rdna_lir_alignment(cls, words)
	};
	return (uint32_t)l->n_regs++;
}
/* Appends; returns a pointer good until the next append. Never NULL: after a failure it is a record nobody reads. */
struct rdna_lir_ins *rdna_lir_add(struct rdna_lir *l, unsigned op);
/* Makes room for n instructions before number `at`, zeroed; false: failed. */
bool rdna_lir_insert(struct rdna_lir *l, size_t at, size_t n);

static inline struct rdna_lir_operand rdna_lir_words(uint32_t reg, unsigned sub, unsigned n)
{
	return (struct rdna_lir_operand){ .kind = RDNA_LIR_VIRTUAL, .n = (uint8_t)n, .sub = (uint8_t)sub, .reg = reg };
}
static inline struct rdna_lir_operand rdna_lir_r(const struct rdna_lir *l, uint32_t reg)
{
	return (struct rdna_lir_operand){ .kind = RDNA_LIR_VIRTUAL, .n = l->reg[reg].n, .reg = reg };
}
static inline struct rdna_lir_operand rdna_lir_fixed(unsigned reg, unsigned n)
{
	return (struct rdna_lir_operand){ .kind = RDNA_LIR_FIXED, .n = (uint8_t)n, .reg = reg };
}
static inline struct rdna_lir_operand rdna_lir_imm(uint32_t value)
{
	return (struct rdna_lir_operand){ .kind = RDNA_LIR_CONST, .n = 1, .value = value };
}

/* --- facts of an instruction, asked by every pass; one table, in lir.c */

enum {
	RDNA_READS_SCC = 1,
	RDNA_WRITES_SCC = 2,
	RDNA_READS_VCC = 4 /* beside operands */,
	RDNA_WRITES_VCC = 8,
	RDNA_IS_SALU = 16,
	RDNA_IS_VALU = 32,
	RDNA_IS_TRANS = 64,
	RDNA_IS_SMEM = 128,
	RDNA_IS_VMEM = 256,
	RDNA_IS_LDS = 512,
	RDNA_IS_STORE = 1024,
	RDNA_IS_WMMA = 2048,
	RDNA_IS_FIXED = 4096 /* order kept against everything: barriers, sleeps, mode changes, cache control, branches,
	                        pseudo instructions */
};

/* A row of the table in one word: the facts; whether a plain destination is read as well; what memory is usually
 * touched. It is made when it is first asked for, the same by every thread, as every pass asks for every
 * instruction, some many times. */
enum {
	RDNA_ROW_FACTS = 0xffff,
	RDNA_ROW_READS_DST = 1 << 16,
	RDNA_ROW_EARLY_CLOBBER = 1 << 17,
	RDNA_ROW_MEMORY_SHIFT = 18,
	RDNA_ROW_KNOWN = 1 << 30
};
extern _Atomic uint32_t rdna_lir_rows[RDNA_LIR_OPS];
uint32_t rdna_lir_make_row(unsigned op);
static inline uint32_t rdna_lir_row(unsigned op)
{
	uint32_t row = atomic_load_explicit(&rdna_lir_rows[op], memory_order_relaxed);
	return row ? row : rdna_lir_make_row(op);
}
static inline unsigned rdna_lir_facts(unsigned op) { return rdna_lir_row(op) & RDNA_ROW_FACTS; }

/* Whether destination 0 is also read: accumulating instructions (v_fmac), loads of some lanes, 16-bit halves that keep
 * the other, lanes that DPP leaves alone. Arithmetic into a lower half counts as writing the whole word: nobody may
 * rely on the upper half that was there before. */
bool rdna_lir_dpp_reads_dst(const struct rdna_dpp *p);
static inline bool rdna_lir_is_masked(const struct rdna_lir_ins *i)
{
	return i->s[3].kind && rdna_lir_facts(i->op) & (RDNA_IS_VMEM | RDNA_IS_LDS);
}
static inline bool rdna_lir_reads_dst(const struct rdna_lir_ins *i)
{
	if (i->d[0].kind == RDNA_LIR_NONE || i->op >= RDNA_OP_COUNT)
		return false;
	return rdna_lir_is_masked(i) || (i->exec && i->exec != UINT32_MAX) || i->d[0].mods & RDNA_HIGH ||
	       rdna_lir_row(i->op) & RDNA_ROW_READS_DST || (i->dpp.kind && rdna_lir_dpp_reads_dst(&i->dpp));
}
/* Visits the operands of an instruction: destinations then sources then saddr. written: it is a destination. */
static inline void rdna_lir_visit(const struct rdna_lir_ins *i,
                                  void (*visit)(void *user, const struct rdna_lir_operand *o, bool written), void *user)
{
	for (unsigned k = 0; k < 2; k++)
		if (i->d[k].kind)
			visit(user, &i->d[k], true);
	for (unsigned k = 0; k < 4; k++)
		if (i->s[k].kind)
			visit(user, &i->s[k], false);
	if (i->saddr.kind)
		visit(user, &i->saddr, false);
}

/* Classes and sizes as the instruction takes them, balance of loops and ifs, definition (word by word) before use on
 * every path; once registers are assigned, that every use reads the words it names. */
bool rdna_lir_verify(const struct rdna_lir *l, struct error *err);
/* Of that only what registers assigned can have spoilt in a kernel that passed it before, in one quick walk: that
 * sources hold the words they name, that destinations keep clear of sources. */
bool rdna_lir_verify_registers(const struct rdna_lir *l, struct error *err);
/* One instruction per line in the assembler's words, with virtual registers as "%v12", "%s3:2" (words), "%v12[1]" (one
 * word), "%v12[2:3]"; loops indented. Parse reads it back (tests). */
void rdna_lir_print(const struct rdna_lir *l, FILE *out);
bool rdna_lir_parse(struct rdna_lir *l, const char *text, struct error *err);

/* --- the passes */

struct ir;
struct target;
struct object;

/* l: initialised, empty. scalar_words: the most that one scalar load can load, at least 2; RDNA_SCALAR_WORDS is what
 * the machine can. Fewer leave smaller gaps between registers. */
enum { RDNA_SCALAR_WORDS = 16 };
bool rdna_select(struct rdna_lir *l, const struct ir *ir, const struct target *t, unsigned scalar_words,
                 struct error *err);
/* vgprs: how many the result may need at once, a share of the file that lets enough waves live (0: all there are). The
 * new order needs no more than that, or than the old one did if that was more. seed: not 0 scrambles it. */
bool rdna_sched(struct rdna_lir *l, unsigned vgprs, uint32_t seed, struct error *err);
/* At most max_* registers, scalar ones counted from RDNA_ABI_FREE_SGPR on; 0: all there are. False with
 * ERROR_UNSUPPORTED: they do not suffice. */
bool rdna_regalloc(struct rdna_lir *l, unsigned max_vgprs, unsigned max_sgprs, uint32_t seed, struct rdna_regs *used,
                   struct error *err);
bool rdna_vopd(struct rdna_lir *l, struct error *err);
bool rdna_wait(struct rdna_lir *l, struct error *err);
struct rdna_hazard_options {
	bool no_clauses, no_delays;
};
bool rdna_hazard(struct rdna_lir *l, const struct rdna_hazard_options *o, struct error *err);
/* Position-independent bytes that end in the return. Fills out->code, code_bytes, pool_offset. */
bool rdna_emit(struct object *out, const struct rdna_lir *l, struct error *err);

#endif
