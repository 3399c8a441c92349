/* jit/x86/lir.h - the machine-level form between selection and bytes: x86 instructions on virtual registers.
 *
 * Owns: the instruction record, the table of forms (which operands a form has, of which class, which one may be the
 * memory operand), the constant pool, and the verifier of both stages. Three-address everywhere: a form whose machine
 * instruction overwrites an operand is resolved by emit.c once registers are known, so no pass before it knows tied
 * operands. Nothing here knows the IR's meaning.
 *
 * A value has one register for its whole life; control flow is counted loops with breaks, and ifs. Rule for editors:
 * every operand a form reads stands in a, b, c, base or index, and dst is all it writes, except LIR_GATHER and
 * LIR_MGATHER, which also destroy c.
 */
#ifndef JIT_LIR_H
#define JIT_LIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "encoders/x86.h"

/* MASK: a register of one bit per lane or per byte; targets without such registers keep masks in vectors and use no
 * form that names it. */
enum lir_class { LIR_NONE, LIR_VEC, LIR_GPR, LIR_MASK, LIR_CLASSES };

/* Register numbers: 0 none, LIR_MEM stands where the memory operand goes, virtual registers from LIR_FIRST on. */
enum { LIR_MEM = 1, LIR_FIRST = 2 };

/* What the memory operand addresses. POOL and slots: disp counts bytes of the pool, slots of the class (masks live in
 * general slots). */
enum lir_mem { LIR_NO_MEM, LIR_AT_BASE, LIR_AT_POOL, LIR_AT_LOCAL, LIR_AT_VEC_SLOT, LIR_AT_GPR_SLOT };

/*   form      dst   a     b     c     may be memory   shares    what it does
 * `shares`: operands whose register the destination likes to take over, best first; after '!' none: it must differ from
 * the others. */
/* clang-format off */
#define LIR_FORMS(X) \
	X(IDIOM,    VEC,  NONE, NONE, NONE, 0,            "",    "op dst, dst, dst: zeros or ones") \
	X(CONST,    VEC,  NONE, NONE, NONE, 0,            "",    "dst = the pool's constant") \
	X(MOV,      VEC,  VEC,  NONE, NONE, LIR_A,        "a",   "copy, load or reload") \
	X(OP2,      VEC,  VEC,  NONE, NONE, LIR_A,        "a",   "op dst, a") \
	X(OP2I,     VEC,  VEC,  NONE, NONE, 0,            "a",   "op dst, a, imm") \
	X(OP2R,     VEC,  VEC,  NONE, NONE, 0,            "a",   "op dst, a, a register: its length says the width") \
	X(FROM_GPR, VEC,  GPR,  NONE, NONE, LIR_A,        "",    "op dst, a") \
	X(OP3,      VEC,  VEC,  VEC,  NONE, LIR_B,        "ab",  "op dst, a, b") \
	X(OP3C,     VEC,  VEC,  VEC,  NONE, LIR_A|LIR_B,  "ab",  "op dst, a, b; a and b may be exchanged") \
	X(OP3I,     VEC,  VEC,  VEC,  NONE, LIR_B,        "ab",  "op dst, a, b, imm") \
	X(FMA,      VEC,  VEC,  VEC,  VEC,  LIR_A|LIR_B|LIR_C, "cab", "dst = a * b + c") \
	X(BLEND,    VEC,  VEC,  VEC,  VEC,  LIR_B,        "abc", "op dst, a, b, c: b where c is set") \
	X(GATHER,   VEC,  NONE, VEC,  VEC,  0,            "!",   "op dst, [base + b + disp], c") \
	X(DOT,      VEC,  VEC,  VEC,  VEC,  LIR_B,        "c!",  "dst = c; op dst, a, b") \
	X(TERNARY,  VEC,  VEC,  VEC,  VEC,  0,            "c!",  "dst = c; op dst, a, b, imm: imm is the truth table") \
	X(STORE,    NONE, VEC,  NONE, NONE, 0,            "",    "op memory, a") \
	X(STOREI,   NONE, VEC,  NONE, NONE, 0,            "",    "op memory, a, imm") \
	X(STOREM,   NONE, VEC,  VEC,  NONE, 0,            "",    "op memory, a (mask), b") \
	X(PREFETCH, NONE, NONE, NONE, NONE, 0,            "",    "op memory") \
	X(DOTS,     NONE, GPR,  GPR,  GPR,  0,            "",    "memory = products of matrices a, b; c: stride") \
	X(MIDIOM,   MASK, NONE, NONE, NONE, 0,            "",    "op dst, dst, dst: ones") \
	X(MCONST,   MASK, NONE, NONE, NONE, 0,            "",    "dst = the pool's constant") \
	X(MMOV,     MASK, MASK, NONE, NONE, LIR_A,        "a",   "copy, load or reload") \
	X(MSAVE,    NONE, MASK, NONE, NONE, 0,            "",    "memory = a, all 64 bits") \
	X(MOP,      MASK, MASK, MASK, NONE, 0,            "ab",  "op dst, a, b") \
	X(MNOT,     MASK, MASK, NONE, NONE, 0,            "a",   "op dst, a") \
	X(MSHIFT,   MASK, MASK, NONE, NONE, 0,            "a",   "op dst, a, imm") \
	X(MSIGN,    MASK, VEC,  NONE, NONE, 0,            "",    "op dst, a: the sign bits") \
	X(MCMP,     MASK, VEC,  VEC,  NONE, LIR_B,        "",    "op dst, a, b") \
	X(MCMPI,    MASK, VEC,  VEC,  NONE, LIR_B,        "",    "op dst, a, b, imm") \
	X(MBLEND,   VEC,  VEC,  VEC,  MASK, LIR_B,        "ab",  "op dst {c}, a, b: b where c is set") \
	X(MLOAD,    VEC,  NONE, NONE, MASK, 0,            "",    "op dst {c}, memory: zero where c is not set") \
	X(MSTORE,   NONE, VEC,  NONE, MASK, 0,            "",    "op memory {c}, a") \
	X(MSTOREI,  NONE, VEC,  NONE, MASK, 0,            "",    "op memory {c}, a, imm") \
	X(MGATHER,  VEC,  NONE, VEC,  MASK, 0,            "!",   "op dst {c}, [base + b + disp]") \
	X(SCONST,   GPR,  NONE, NONE, NONE, 0,            "",    "dst = imm") \
	X(SMOV,     GPR,  GPR,  NONE, NONE, LIR_A,        "a",   "copy, load or reload") \
	X(SLOAD32,  GPR,  GPR,  NONE, NONE, LIR_A,        "",    "dst = zero-extended 32-bit memory") \
	X(SSTORE,   NONE, GPR,  NONE, NONE, 0,            "",    "memory = a") \
	X(LEA,      GPR,  NONE, NONE, NONE, 0,            "",    "dst = the address") \
	X(SOP,      GPR,  GPR,  GPR,  NONE, LIR_B,        "a",   "dst = a op b") \
	X(SOPC,     GPR,  GPR,  GPR,  NONE, LIR_A|LIR_B,  "ab",  "dst = a op b; a and b may be exchanged") \
	X(SMINMAX,  GPR,  GPR,  GPR,  NONE, LIR_A|LIR_B,  "ab",  "dst = op's condition(b, a) ? b : a") \
	X(SOPI,     GPR,  GPR,  NONE, NONE, 0,            "a",   "dst = a op imm") \
	X(ENTRY,    GPR,  NONE, NONE, NONE, 0,            "",    "dst = the argument the call brings in register imm") \
	X(SCMP,     GPR,  GPR,  GPR,  NONE, LIR_B,        "",    "dst = op's condition(a, b) ? 1 : 0") \
	X(SCMPI,    GPR,  GPR,  NONE, NONE, 0,            "a",   "dst = op's condition(a, imm) ? 1 : 0") \
	X(SSEL,     GPR,  GPR,  GPR,  GPR,  0,            "ab",  "dst = c ? b : a") \
	X(TO_GPR,   GPR,  VEC,  NONE, NONE, 0,            "",    "dst = a's sign bits") \
	X(MTO_GPR,  GPR,  MASK, NONE, NONE, 0,            "",    "dst = a's bits") \
	X(EXTRACT,  GPR,  VEC,  NONE, NONE, 0,            "",    "dst = element imm of a's lowest 128 bits") \
	X(LOCK,     NONE, GPR,  NONE, NONE, 0,            "",    "memory = memory op a, at once for all who look") \
	X(XCHG,     GPR,  GPR,  NONE, NONE, 0,            "a",   "dst = memory, memory = a, which dst is; at once") \
	X(LOOP,     NONE, GPR,  NONE, NONE, 0,            "",    "a == 0: enter; else enter when a > 0") \
	X(ENDLOOP,  NONE, GPR,  GPR,  NONE, LIR_B,        "",    "again while a < b (b == 0: while a < imm)") \
	X(BREAK,    NONE, GPR,  NONE, NONE, 0,            "",    "a != 0: on behind the innermost loop") \
	X(IF,       NONE, GPR,  NONE, NONE, 0,            "",    "(a & imm) == 0 (imm 0: a == 0): on at ELSE, ENDIF") \
	X(ELSE,     NONE, NONE, NONE, NONE, 0,            "",    "on at ENDIF; the IF comes here") \
	X(ENDIF,    NONE, NONE, NONE, NONE, 0,            "",    "closes the innermost IF")
/* clang-format on */
enum { LIR_A = 1, LIR_B = 2, LIR_C = 4 };

enum lir_form {
#define X(name, ...) LIR_##name,
	LIR_FORMS(X)
#undef X
		LIR_FORM_COUNT
};

struct lir_facts {
	const char *name;
	uint8_t dst, a, b, c, fold;
	const char *shares;
};
extern const struct lir_facts lir_facts[LIR_FORM_COUNT];

struct lir_ins {
	uint8_t form;
	uint8_t wd, ws; /* enum x86_class of the destination and of the sources */
	uint8_t mem;    /* enum lir_mem */
	bool broadcast; /* the memory operand is one 32-bit element, for every lane */
	uint16_t op;    /* enum x86_op */
	uint32_t dst, a, b, c;
	uint32_t base, index; /* LIR_AT_BASE: base + index (0: none) + disp */
	int32_t disp;
	uint32_t ir; /* the IR instruction it came from, for dumps */
	int64_t imm;
};

/* What tiles are set up for, once for a kernel. */
enum { LIR_TILE_SHAPES = 2 };
struct lir_tiles {
	uint8_t rows[LIR_TILE_SHAPES]; /* of first factors, by shape; 0: none */
	uint32_t config;               /* what ldtilecfg reads: bytes of the pool */
};
/* The imm of DOTS: rows, and displacements of a and b. */
enum { LIR_DOTS_MAX_DISP = 0xffffff };
static inline int64_t lir_dots(unsigned rows, int32_t disp_a, int32_t disp_b)
{
	return (int64_t)(rows | (uint64_t)disp_a << 16 | (uint64_t)disp_b << 40);
}
static inline unsigned lir_dots_rows(int64_t imm) { return (unsigned)imm & 0xff; }
static inline int32_t lir_dots_disp_a(int64_t imm) { return (int32_t)((uint64_t)imm >> 16 & LIR_DOTS_MAX_DISP); }
static inline int32_t lir_dots_disp_b(int64_t imm) { return (int32_t)((uint64_t)imm >> 40); }

struct lir {
	struct lir_ins *ins;
	size_t n_ins, ins_capacity;
	uint8_t *cls;
	size_t n_regs, regs_capacity; /* class by register */
	uint8_t *phys;                /* set by regalloc: machine register by virtual one */
	uint32_t *pool;
	size_t n_pool, pool_capacity; /* 32-bit words, whole vectors */
	unsigned lanes;
	uint32_t local_bytes, vec_slots, gpr_slots;
	struct lir_tiles tiles;
	bool failed; /* memory ran out */
};

void lir_init(struct lir *l, unsigned lanes);
void lir_free(struct lir *l);
uint32_t lir_reg(struct lir *l, enum lir_class cls);
/* Appends; returns a pointer good until the next append. Never NULL: after a failure it is a record nobody reads. */
struct lir_ins *lir_add(struct lir *l, enum lir_form form, enum x86_op op);
/* Appends a vector constant to the pool; returns its byte offset. */
uint32_t lir_pool(struct lir *l, const uint32_t *lanes);

/* Classes, memory operands, balance of loops and ifs, definition before use on every path. With registers assigned
 * (l->phys) it follows the contents of each machine register and checks that every use reads the value it names. */
bool lir_verify(const struct lir *l, struct error *err);

#endif
