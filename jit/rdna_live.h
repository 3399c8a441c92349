/* jit/rdna_live.h - what the passes on virtual RDNA registers share: where each register lives, and what an instruction's letters say.
 *
 * Owns: the intervals. Nothing here chooses anything. Rule for editors: an interval must cover every instruction between which the words' contents
 * matter, loops' ways back included; the allocator believes it, and the verifier of rdna_lir_verify.c does not use it.
 */
#ifndef JIT_RDNA_LIVE_H
#define JIT_RDNA_LIVE_H

#include "jit/rdna_lir.h"

#define RDNA_LIVE_NEVER UINT32_MAX

/* By register: words first_word[r] .. first_word[r + 1] - 1 of end[]. Positions are instruction numbers. */
struct rdna_live {
	uint32_t *first_word;        /* n_regs + 1 */
	uint32_t *start;             /* by register: its first write; NEVER: it has none */
	uint32_t *end;               /* by word: its last read or write, or the end of a loop around whose back it goes; NEVER: nothing names it */
	uint32_t *loop_end;          /* by instruction: of a LOOP, its ENDLOOP */
	size_t n_words;
};
/* l must have passed rdna_lir_verify. False: no memory. */
bool rdna_live_find(struct rdna_live *v, const struct rdna_lir *l);
void rdna_live_free(struct rdna_live *v);

/* The encoder's letters of the operands, "dst=src", in this generation. */
const char *rdna_lir_letters(unsigned op, enum rdna_gen gen);
/* What stands for '@' and in saddr. */
enum { RDNA_ADDRESS_NONE, RDNA_ADDRESS_SCALAR, RDNA_ADDRESS_LDS, RDNA_ADDRESS_GLOBAL, RDNA_ADDRESS_FLAT, RDNA_ADDRESS_SCRATCH };
unsigned rdna_lir_address_form(unsigned op);
/* What rdna_lir_add makes of an operation. */
void rdna_lir_set_usual(struct rdna_lir_ins *i, unsigned op);
unsigned rdna_lir_alignment(enum rdna_class cls, unsigned words);

/* Whether the hardware writes destinations before it has read all sources: they must then not share registers. Vector results of several words are written word by
 * word; a matrix product writes while it reads A and B. */
static inline bool rdna_lir_apart(const struct rdna_lir_ins *i) { return i->d[0].n > 1 && rdna_lir_row(i->op) & RDNA_ROW_APART; }

#endif
