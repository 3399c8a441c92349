/* jit/rdna/machine.h - what the passes behind register allocation share: operands as machine registers, short forms,
 * insertion, flow.
 *
 * Owns: the one place where an allocated instruction becomes the encoder's, and the one walk over loops and ifs.
 * Knows no counter, no hazard and no pairing rule: those are the passes' own. Nothing in front of rdna_regalloc may use
 * it; behind rdna_tidy operands are machine registers and constants.
 */
#ifndef JIT_RDNA_MACHINE_H
#define JIT_RDNA_MACHINE_H

#include "jit/rdna/lir.h"

enum { RDNA_MACHINE_REGS = 512 }; /* the encoder's numbers: scalar ones below RDNA_V0 */

struct rdna_range {
	uint16_t reg;
	uint8_t n;
}; /* n machine words from reg on; n 0: no register */
/* Behind rdna_tidy no operand is virtual. */
static inline bool rdna_is_register(const struct rdna_lir_operand *o) { return o->kind == RDNA_LIR_FIXED; }
static inline struct rdna_range rdna_machine_range(const struct rdna_lir_operand *o)
{
	return rdna_is_register(o) ? (struct rdna_range){ (uint16_t)o->reg, o->n } : (struct rdna_range){ 0, 0 };
}

/* All registers that an instruction names, in one list. A destination that is also read stands in both halves. */
struct rdna_touch {
	struct rdna_range reads[8], writes[2];
	unsigned n_reads, n_writes;
};
static inline void rdna_machine_touch(const struct rdna_lir_ins *i, struct rdna_touch *t)
{
	unsigned n = 0;
	for (unsigned k = 0; k < 4; k++) {
		t->reads[n] = rdna_machine_range(&i->s[k]);
		n += t->reads[n].n != 0;
	}
	t->reads[n] = rdna_machine_range(&i->saddr);
	t->n_reads = n += t->reads[n].n != 0;
	t->n_writes = 0;
	for (unsigned k = 0; k < 2; k++) {
		t->writes[t->n_writes] = rdna_machine_range(&i->d[k]);
		t->n_writes += t->writes[t->n_writes].n != 0;
	}
	if (t->n_writes && rdna_lir_reads_dst(i))
		t->reads[t->n_reads++] = t->writes[0];
}
/* Sets of registers by their numbers: scalar ones in the first two words, vector ones in the last four. What is said of
 * the words between, scc and constants, nobody asks for. */
enum { RDNA_MAP_SCALAR = 2, RDNA_MAP_VECTOR = RDNA_V0 / 64, RDNA_MAP_WORDS = RDNA_MACHINE_REGS / 64 };
struct rdna_map {
	uint64_t w[RDNA_MAP_WORDS];
};
static inline void rdna_map_add(struct rdna_map *m, struct rdna_range r)
{
	uint64_t *w = &m->w[r.reg / 64], these = (UINT64_C(1) << r.n) - 1;
	unsigned first = r.reg % 64;
	w[0] |= these << first;
	if (first + r.n > 64)
		w[1] |= these >> (64 - first);
}
static inline uint64_t rdna_map_meets(const struct rdna_map *a, const struct rdna_map *b)
{
	return (a->w[0] & b->w[0]) | (a->w[1] & b->w[1]) | (a->w[4] & b->w[4]) | (a->w[5] & b->w[5]) |
	       (a->w[6] & b->w[6]) | (a->w[7] & b->w[7]);
}
static inline void rdna_map_join(struct rdna_map *m, const struct rdna_map *with)
{
	for (unsigned k = 0; k < RDNA_MAP_WORDS; k++)
		m->w[k] |= with->w[k];
}
static inline void rdna_map_add_operand(struct rdna_map *m, const struct rdna_lir_operand *o)
{
	if (rdna_is_register(o))
		rdna_map_add(m, rdna_machine_range(o));
}
static inline void rdna_map_add_sources(struct rdna_map *m, const struct rdna_lir_ins *i)
{
	rdna_map_add_operand(m, &i->s[0]);
	rdna_map_add_operand(m, &i->s[1]);
	rdna_map_add_operand(m, &i->s[2]);
	rdna_map_add_operand(m, &i->s[3]);
	rdna_map_add_operand(m, &i->saddr);
}
static inline void rdna_map_add_results(struct rdna_map *m, const struct rdna_lir_ins *i)
{
	rdna_map_add_operand(m, &i->d[0]);
	rdna_map_add_operand(m, &i->d[1]);
}
static inline bool rdna_range_meets(struct rdna_range a, struct rdna_range b)
{
	return a.reg < b.reg + b.n && b.reg < a.reg + a.n;
}

/* The encoder's record, and what most are at a glance; false: it takes the record. */
void rdna_machine_ins(const struct rdna_lir_ins *i, struct rdna_ins *out);
bool rdna_machine_plain(const struct rdna_lir_ins *i, struct rdna_plain *p);
void rdna_machine_half(enum rdna_gen gen, const struct rdna_lir_ins *i, struct rdna_half *h);

/* The text of one instruction, for errors and listings; malloc'ed, NULL when memory ran out. */
char *rdna_machine_text(const struct rdna_lir *l, const struct rdna_lir_ins *i);

/* Instructions to be put in front of others, collected in ascending order and inserted in one go. */
struct rdna_patch {
	struct rdna_lir_ins *ins;
	size_t *at;
	size_t n, capacity;
	bool failed;
};
void rdna_patch_add(struct rdna_patch *p, size_t at, const struct rdna_lir_ins *i);
void rdna_patch_op(struct rdna_patch *p, size_t at, unsigned op, uint32_t imm); /* with one constant operand */
/* Frees the patch. False: memory ran out. */
bool rdna_patch_apply(struct rdna_lir *l, struct rdna_patch *p, struct error *err);

/* Behind the last verification, which needs what they change. Gives every operand its machine register, and drops the
 * moves of a register onto itself that allocation made of the kernel's moves. */
void rdna_tidy(struct rdna_lir *l);
/* Instructions in the shortest form of the same meaning. */
void rdna_shorten(struct rdna_lir *l);

/* A forward analysis over ifs, and loops that run any number of times. A state is `size` bytes without pointers. step()
 * takes a state over instruction `at` (LOOP, ENDLOOP, BREAK, IF, ELSE, ENDIF included); it is called again and again
 * until loops settle, the last time for each instruction with its final state, so that what it notes about an
 * instruction must replace what it noted before. It is not called for those that `next` leaves out, which leave every
 * state as it is. again() says, given the states in front of a loop and around its back, whether to begin with the loop
 * once more. join() merges `from` into `into` and says whether that changed; it must climb a finite ladder, and may
 * rewrite `from` as long as that means the same. */
struct rdna_flow {
	const struct rdna_lir *l;
	const uint32_t *loops; /* rdna_machine_loops */
	const uint32_t *next;  /* by instruction, and behind the last: it or the next one not left out, which none of
	                          those may be. NULL: none is */
	size_t size;
	void *user;
	void (*step)(void *user, void *state, size_t at);
	bool (*join)(void *user, void *into, void *from);
	bool (*again)(void *user, const void *entry, const void *around, size_t at); /* may be NULL */
	void (*alike)(void *user,
	              void *state); /* writes a state as all that mean the same are written; NULL: they are */
};
/* state: at the first instruction; then what it is behind the last. */
bool rdna_flow_run(const struct rdna_flow *f, void *state, struct error *err);

/* By LOOP its ENDLOOP, by IF its ELSE or ENDIF and by ELSE its ENDIF, which are further on; by ENDLOOP its LOOP; 0
 * elsewhere. malloc'ed, NULL: no memory. */
uint32_t *rdna_machine_loops(const struct rdna_lir *l);

/* rdna_emit with a listing: bytes with each instruction's text behind them. Counts the instructions. */
struct rdna_listing {
	FILE *out;
	const char *title;
	uint32_t instructions;
};
bool rdna_emit_listed(struct object *out, const struct rdna_lir *l, struct rdna_listing *listing, struct error *err);

#endif
