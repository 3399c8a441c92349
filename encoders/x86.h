/* encoders/x86.h - x86-64 instructions to bytes.
 *
 * Owns: the table of instructions (x86.def, one row each) and one function per encoding form. Knows no IR, no
 * policy, no registers' roles; usable alone. The opcode constant of a row carries its encoding facts: prefix,
 * opcode map, W, vector length, and beside the VEX column an EVEX column (tuple type for disp8*N) so that the
 * same row serves AVX2 and AVX-512.
 * Errors are sticky: an operand that the instruction cannot take sets x->error to a sentence naming the rule and
 * later calls do nothing; the caller asks once, at the end.
 */
#ifndef ENCODERS_X86_H
#define ENCODERS_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_op {
#define X86(id, ...) X86_##id,
#define X86_ALT(id, ...)
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
	X86_OP_COUNT
};

enum {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R9,
	X86_R10,
	X86_R11,
	X86_R12,
	X86_R13,
	X86_R14,
	X86_R15
};

enum x86_class { X86_NONE, X86_GPR32, X86_GPR64, X86_XMM, X86_YMM, X86_ZMM, X86_KREG, X86_TMM, X86_MEM, X86_IMM };

/* One operand. Registers: cls, reg (0..15, vectors 0..31, masks and tiles 0..7). Memory: base in reg (X86_NO_BASE:
 * none), index (X86_NO_INDEX: none), scale 1 2 4 8, disp; or label >= 0: RIP-relative to that label plus disp.
 * Immediates: imm. Registers of 8 and 16 bits are given as x86_r32. A branch's label is x86_mem_label(label, 0). */
struct x86_operand {
	uint8_t cls, reg, index, scale;
	int32_t disp;
	int32_t label; /* MEM: -1 unless RIP-relative */
	int64_t imm;
	bool broadcast; /* MEM: EVEX embedded broadcast of one element (32 bits, or 64 where the instruction's W is 1)
	                 */
};
enum { X86_NO_INDEX = 0xff, X86_NO_BASE = 0xff, X86_NO_LABEL = -1 };

struct x86_operand x86_r32(int reg), x86_r64(int reg), x86_xmm(int reg), x86_ymm(int reg), x86_zmm(int reg),
	x86_k(int reg), x86_tmm(int reg);
struct x86_operand x86_imm(int64_t v);
struct x86_operand x86_mem(int base, int32_t disp);
struct x86_operand x86_mem_index(int base, int index, int scale, int32_t disp);
struct x86_operand x86_mem_label(int label, int32_t disp);
struct x86_operand x86_mem_broadcast(struct x86_operand mem);

struct x86 {
	uint8_t *code;
	size_t size, capacity; /* grows by realloc; the caller frees with x86_free */
	const char *error;     /* NULL, or the rule that was broken (static text) */
	enum x86_op error_op;  /* X86_OP_COUNT when no instruction broke it (a label, memory) */
	int32_t *label;
	size_t n_labels; /* offset of each bound label, or -1 */
	struct x86_fixup *fixup;
	size_t n_fixups;
	/* false: rows must encode with VEX (a zmm, reg > 15, mask or broadcast is then an error). true: VEX where it
	 * can say the same in fewer bytes, except for the dot products, whose VEX form is a CPU feature of its own. */
	bool evex;
	/* EVEX decoration of the next instruction only */
	uint8_t mask;
	bool zeroing;
};

void x86_init(struct x86 *x);
void x86_free(struct x86 *x);

/* Appends one instruction; operands in Intel order, destination first; unused ones X86_NONE ({0}). */
void x86_ins(struct x86 *x, enum x86_op op, struct x86_operand a, struct x86_operand b, struct x86_operand c,
             struct x86_operand d);
#define X86_0 ((struct x86_operand){ 0 })

int x86_label(struct x86 *x);                           /* a new, unbound label */
void x86_bind(struct x86 *x, int label);                /* here */
void x86_align(struct x86 *x, unsigned bytes);          /* pads with the longest NOPs */
void x86_bytes(struct x86 *x, const void *p, size_t n); /* raw data (constant pool) */
bool x86_finish(struct x86 *x);                         /* resolves fixups, once; false if an error is set */

const char *x86_op_name(enum x86_op op); /* the mnemonic */

#endif
