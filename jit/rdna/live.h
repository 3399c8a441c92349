/* jit/rdna/live.h - what the passes on virtual RDNA registers share: where each register lives, and what an
 * instruction's letters say.
 *
 * Owns: the intervals, and the list of what instructions name that they are found by. Nothing here chooses anything.
 * Rule for editors: an interval must cover every instruction between which the words' contents matter, loops' ways back
 * included; the allocator believes it, and the verifier of lir_verify.c does not use it.
 */
#ifndef JIT_RDNA_LIVE_H
#define JIT_RDNA_LIVE_H

#include "jit/rdna/lir.h"

#define RDNA_LIVE_NEVER UINT32_MAX

/* One operand of an instruction that names a virtual register: words word .. word + n - 1 of all registers' words. What
 * is read as well as written has one of each. */
struct rdna_use {
	uint32_t reg, word;
	uint8_t n;
	bool written, takes; /* takes: it is the first one of the instruction's that writes the register */
};

/* What is noted of an instruction: some of its facts, as they stand in its row, and what takes two more of a row's
 * bits. */
enum {
	RDNA_MARK_FIXED = RDNA_IS_FIXED, /* order is kept against everything; also behind the last instruction */
	RDNA_MARK_READS_SCC = RDNA_READS_SCC,
	RDNA_MARK_WRITES_SCC = RDNA_WRITES_SCC,
	RDNA_MARK_MACHINE = RDNA_READS_VCC,    /* it names a machine register, or reads vcc without naming it */
	RDNA_MARK_SCC_WANTED = RDNA_WRITES_VCC /* what it leaves in scc is read before it is written again */
};

/* Of a register. Positions are instruction numbers. */
struct rdna_life {
	uint32_t first_word; /* its words are first_word .. first_word + n - 1 of all registers' words */
	uint32_t start;      /* its first write; NEVER: it has none */
	uint32_t end;        /* the last of its words' ends; 0: nothing names it */
	uint32_t uses;       /* how many operands name it */
};
/* Of a word: its last read or write, or the end of a loop around whose back it goes, NEVER where nothing names it; and
 * while lives are found, the latest write that is on every path. */
struct rdna_word {
	uint32_t end, sure;
};

struct rdna_live {
	struct rdna_life *reg;
	uint16_t *named; /* by register: a bit for each word that something names */
	struct rdna_word *word;
	size_t n_words;
	uint32_t *written;  /* by word: the last instruction that writes it; 0 also where none does */
	uint32_t *loop_end; /* by instruction: of a LOOP, its ENDLOOP */
	uint32_t *use_from; /* by instruction, n_ins + 1: its part of use[], what it reads in front of what it writes */
	uint16_t *marks;    /* by instruction, n_ins + 1: RDNA_MARK_ ... */
	struct rdna_use *use;
	size_t n_uses, use_capacity;
	void *memory;
};
/* l must have passed rdna_lir_verify. False: no memory. */
bool rdna_live_find(struct rdna_live *v, const struct rdna_lir *l);
void rdna_live_free(struct rdna_live *v);

/* rdna_regalloc with all registers there are and no seed, for callers that have found the intervals already. */
bool rdna_regalloc_known(struct rdna_lir *l, const struct rdna_live *live, struct rdna_regs *used, struct error *err);

/* The encoder's letters of the operands, "dst=src", in this generation. */
const char *rdna_lir_letters(unsigned op, enum rdna_gen gen);
/* What stands for '@' and in saddr. */
enum {
	RDNA_ADDRESS_NONE,
	RDNA_ADDRESS_SCALAR,
	RDNA_ADDRESS_LDS,
	RDNA_ADDRESS_GLOBAL,
	RDNA_ADDRESS_FLAT,
	RDNA_ADDRESS_SCRATCH
};
unsigned rdna_lir_address_form(unsigned op);
/* What rdna_lir_add makes of an operation. */
void rdna_lir_set_usual(struct rdna_lir_ins *i, unsigned op);

/* Whether the hardware writes destinations before it has read all sources: they must then not share registers. Vector
 * results of several words are written word by word; a matrix product writes while it reads A and B. */
static inline bool rdna_lir_early_clobber(const struct rdna_lir_ins *i)
{
	return i->d[0].n > 1 && rdna_lir_row(i->op) & RDNA_ROW_EARLY_CLOBBER;
}

#endif
