/* jit/compile.h - IR to a code object, the whole pipeline on one screen.
 *
 * Owns: the order of the passes, the verifier between them, dumps, statistics. A code object is position-independent
 * machine code plus the facts a device needs to run it; compiling the same IR for the same target twice, on any
 * machine, gives the same bytes.
 */
#ifndef JIT_COMPILE_H
#define JIT_COMPILE_H

#include <stdio.h>
#include "jit/ir/ir.h"
#include "jit/key.h"
#include "jit/target.h"

enum { OBJECT_NAME = 32 };
struct object { /* bytes owned by the holder of the object: object_free */
	uint8_t *code;
	uint32_t code_bytes;                          /* code, then its constant pool; entry at offset 0 */
	uint32_t pool_offset;                         /* where the constants begin (disassemblers stop there) */
	uint32_t frame_bytes;                         /* of the stack; RDNA: of LDS, for each wave */
	uint32_t shared_bytes;                        /* RDNA: of LDS, for the group */
	uint16_t vector_regs, scalar_regs, mask_regs; /* RDNA: the highest number used + 1; x86: how many are used */
	uint16_t cooperative;                         /* RDNA: the waves of a group call it together */
	char name[OBJECT_NAME];                       /* of a user's kernel, as its text has it, maybe cut; else "" */
};
void object_free(struct object *o);

struct compile_stats {
	uint32_t ir_instructions, machine_instructions;
	uint32_t vector_regs_used, mask_regs_used, gpr_used, spills, spills_in_inner_loops;
	uint32_t dual_pairs; /* RDNA: instructions that became half of another's issue slot */
};

/* Passes that change no result and may be left out, to find out which one is to blame; struct backend says which of
 * them it has. */
enum {
	COMPILE_SKIP_SCHED = 1,
	COMPILE_SKIP_VOPD = 2,
	COMPILE_SKIP_CLAUSES = 4,
	COMPILE_SKIP_DELAYS = 8,
	COMPILE_SKIP_JOINS = 16
};

struct compile_options {
	/* tests shrink the register files to provoke spills (4 of each at least, 2 masks); 0: the target's own */
	unsigned max_vector_regs, max_gprs, max_mask_regs;
	uint32_t seed;      /* not 0: scrambles the register allocator's free choices */
	uint32_t skip;      /* COMPILE_SKIP_... */
	bool verify_passes; /* RDNA: tests have all that each pass makes verified, not only that registers assigned keep
	                       what is in them */
	FILE *dump_ir, *dump_asm; /* NULL: no dump; asm as ".byte" (RDNA: ".long") lines an assembler accepts, with the
	                             key as comment */
};

/* Writes a kernel's IR for key; jit/ is handed it, and knows no template. False: the template does not do this key. */
typedef bool (*compile_build_fn)(struct ir *ir, const struct key *key, const struct target *target, struct error *err);

/* The same of users' kernels, whose source is no part of this program: user says where it is. Called from many threads.
 */
struct compile_builder {
	bool (*build)(void *user, struct ir *ir, const struct key *key, const struct target *target, struct error *err);
	void *user;
	/* What its text calls it, maybe cut: for people. NULL: nobody says. */
	void (*name)(void *user, const struct key *key, char out[OBJECT_NAME]);
};

bool compile_ir(struct object *out, const struct ir *ir, const struct target *target, const struct compile_options *opt,
                struct compile_stats *stats, struct error *err);
bool compile_key(struct object *out, const struct key *key, compile_build_fn build, const struct compile_options *opt,
                 struct compile_stats *stats, struct error *err);
/* The same by a builder; of no program. */
bool compile_user_key(struct object *out, const struct key *key, const struct compile_builder *builder,
                      const struct compile_options *opt, struct compile_stats *stats, struct error *err);

#endif
