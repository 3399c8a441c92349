/* jit/ir/ir.h - the typed vector IR in which every kernel is written once.
 *
 * Owns: flat fixed-size instructions, virtual registers with a type, the builder. What an instruction means is
 * ops.def and interp.c; this file never evaluates, optimises or reorders. "No pass may change what is computed;
 * every pass may only change where and when."
 *
 * The builder's error is sticky: a wrong call (types, unbalanced loops, too many registers) sets ir->error and later
 * calls return register 0; ask once at the end with ir_verify(). Builders allocate from one growing array and are freed
 * whole.
 *
 * A kernel is called as  void kernel(const uint64_t *arg, int64_t begin, int64_t end)  : it does the work units
 * begin..end-1 of a launch. Vectors have W lanes, of 32 bits or of 64: lane l of each is the same one. W (8, 16 or 32)
 * belongs to the target, and a template reads it.
 */
#ifndef JIT_IR_H
#define JIT_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "jit/ir/each.h"

/* Operations first, then rows, which are operations with a type: IR_add, and IR_fadd of f32. An instruction's op is the
 * former, which fits a byte; compilers refuse to compare it with the latter. An operation without a type is its own
 * row. */
enum ir_op {
	IR_NO_ROW,
#define OP(name, ...) IR_##name,
#define OPS(name, ...) IR_##name,
#include "jit/ir/ops.def"
#undef OP
#undef OPS
	IR_OPS,
	IR_BEFORE_ROWS = 255,
#define OP(name, ...)
#define ENUMERATOR(x, row, type) IR_##row,
#define OPS(name, dst, a, b, c, imm, effects, needs, expression, meaning, ...) IR_EACH(ENUMERATOR, , __VA_ARGS__)
#include "jit/ir/ops.def"
#undef OP
#undef OPS
#undef ENUMERATOR
	IR_ROWS
};

enum ir_type {
	IR_TYPE__,
#define TYPE(name, ...) IR_TYPE_##name,
#include "jit/ir/types.def"
#undef TYPE
	IR_TYPES,
	IR_REGISTER_TYPES = IR_TYPE_i64 /* the last one that a register may have */
};
enum ir_imm { IR_IMM__, IR_IMM_i, IR_IMM_f, IR_IMM_d, IR_IMM_x, IR_IMM_t };

/* What an instruction does beside giving its result. */
enum ir_effect {
	IR_PURE = 1,        /* within a call the result depends on operands and immediate alone */
	IR_READS = 2,       /* memory, at address a */
	IR_WRITES = 4,      /* memory, at address a */
	IR_AWAITS = 8,      /* goes on when another call of the launch has given the words */
	IR_COPIES = 16,     /* begins, groups or awaits copies that go on beside the kernel */
	IR_HINTS = 32,      /* changes no result: a target may leave it out */
	IR_BRANCHES = 64,   /* ends a straight run of instructions */
	IR_FRAMES = 128,    /* takes bytes of the frame or of the group, outside loops and ifs only */
	IR_MEETS = 256,     /* waits for the other waves of the group */
	IR_GROUPS = 512,    /* makes the kernel one that waves call together */
	IR_MASKABLE = 1024, /* may be restricted to the lanes of a mask */
	IR_INDEXED = 2048   /* lane l has element b[l] of those at address a */
};

/* What a target must have for a row; jit/compile.c knows which targets do. */
enum ir_needs {
	IR_NEEDS__,
	IR_NEEDS_mma = 1,            /* products of tiles */
	IR_NEEDS_local_operands = 2, /* operands of these in local and shared bytes, and half tiles */
	IR_NEEDS_local = IR_NEEDS_mma | IR_NEEDS_local_operands,
	IR_NEEDS_tiles = 4,  /* products of int8 matrices in memory */
	IR_NEEDS_dot2 = 8,   /* products of pairs of bf16 */
	IR_NEEDS_parts = 16, /* launches whose units are done in parts */
	IR_NEEDS_copies = 32 /* copies that go on beside the kernel */
};

/* Facts of a row, generated from ops.def: by row, and of operations with types by operation as well, where name,
 * effects, expression and meaning alone count. expression is "" where there is none. */
struct ir_facts {
	const char *name; /* NULL: there is no such row */
	uint8_t op, type, dst, a, b, c, imm, needs;
	uint16_t effects;
	uint32_t types; /* of an operation: those it exists for, a bit each */
	const char *expression, *meaning;
};
extern const struct ir_facts ir_facts[IR_ROWS];
struct ir_type_facts {
	const char *name, *meaning;
	char letter;
	uint8_t lane, bytes, needs; /* lane: what a load of such elements gives */
};
extern const struct ir_type_facts ir_types[IR_TYPES];

struct ir_ins {
	uint8_t op, type;            /* below IR_OPS; IR_TYPE__ where the operation has no types */
	uint16_t dst, a, b, c, mask; /* virtual registers; 0: none. mask: of type m, on MASKABLE rows alone */
	int64_t imm;
};
_Static_assert(sizeof(struct ir_ins) == 24, "kernels have thousands of instructions, and every pass walks over them");

/* The row that an operation and a type make; IR_NO_ROW: there is none. */
extern const uint16_t ir_rows[IR_TYPES][IR_OPS];
static inline unsigned ir_row(const struct ir_ins *i) { return ir_rows[i->type][i->op]; }
static inline const struct ir_facts *ir_facts_of(const struct ir_ins *i) { return &ir_facts[ir_row(i)]; }
/* Whether a number stands for a row, and not for an operation with types or nothing. */
static inline bool ir_is_row(unsigned row) { return row < IR_ROWS && ir_facts[row].name && !ir_facts[row].types; }

/* Loops and ifs that are open, from the outside in. */
enum { IR_MAX_LOOP_DEPTH = 16, IR_MAX_DEPTH = 32 /* of loops and ifs together */ };
/* The same in the instructions that backends make, which have loops and ifs of their own. */
enum { IR_LOWERED_DEPTH = 2 * IR_MAX_DEPTH };
enum ir_block { IR_IN_LOOP, IR_IN_IF, IR_IN_ELSE };
struct ir_blocks {
	uint8_t kind[IR_MAX_DEPTH]; /* enum ir_block */
	uint8_t depth, loops;
};
/* Why an operation cannot stand here. */
enum ir_misplaced {
	IR_PLACED,
	IR_LOOPS_TOO_DEEP,
	IR_TOO_DEEP,
	IR_NO_LOOP,  /* endloop, break */
	IR_IF_OPEN,  /* endloop */
	IR_NO_IF,    /* else, endif */
	IR_IN_BLOCK, /* local, shared */
	IR_MISPLACED_COUNT
};
/* Opens and closes what the operation does. */
enum ir_misplaced ir_blocks_step(struct ir_blocks *b, unsigned op);

struct ir {
	struct ir_ins *ins;
	size_t n_ins, capacity;
	uint8_t *type; /* enum ir_type */
	bool *is_var;
	size_t n_regs, regs_capacity; /* by register; register 0 is none */
	unsigned lanes;               /* W */
	struct ir_blocks blocks;      /* open so far; none in a finished kernel */
	uint32_t local_bytes;
	unsigned waves;   /* in a group; 1 unless the target has more */
	bool cooperative; /* has wave, shared or barrier */
	bool beside; /* waves of a group have shares of the units that lie side by side: what they read is shared */
	uint32_t shared_bytes;
	const char *error; /* static text, or NULL */
	bool no_memory;    /* the error is that memory ran out, which says nothing of the kernel */
};

/* What ir_verify and the builder hold kernels to. */
enum {
	IR_MAX_REGS = 65536 /* with register 0 */,
	IR_MAX_LOCAL_BYTES = 1 << 20,
	IR_MAX_SHARED_BYTES = 224 << 10, /* that some targets have: of most, TARGET_SHARED_BYTES */
	IR_MAX_COPIES = 15,              /* that copied leaves */
	IR_MAX_WAVES = 16
};

/* The share of the frame a local of imm bytes takes: locals lie in the order of their instructions. */
static inline uint32_t ir_local_size(int64_t imm) { return ((uint32_t)imm + 63) & ~(uint32_t)63; }

/* Typed handles, so that the C compiler checks types. */
typedef struct {
	uint16_t r;
} ir_f;
typedef struct {
	uint16_t r;
} ir_i;
typedef struct {
	uint16_t r;
} ir_d;
typedef struct {
	uint16_t r;
} ir_l;
typedef struct {
	uint16_t r;
} ir_m;
typedef struct {
	uint16_t r;
} ir_s;
typedef struct {
	uint16_t r;
} ir_c;
typedef struct {
	uint16_t r;
} ir_a;
typedef struct {
	uint16_t r;
} ir_t;
typedef struct {
	uint16_t r;
} ir_o;

/* Tiles and operands of matrix products. */
enum { IR_TILE = 16, IR_STRIP_BYTES = 32, IR_VECTOR_BYTES = 16, IR_ROW_BYTES = 128 /* of oload_swizzled */ };
/* Of idots: bytes, and k's, of a row of the first factor; bytes of a row of the second one, which is four k's, and of
 * the sums. */
enum { IR_DOTS_STRIP = 32, IR_DOTS_ROW = 128 };

void ir_init(struct ir *ir, unsigned lanes);
void ir_free(struct ir *ir);

/* The generic emitter behind the typed wrappers of ir_build.h. dst 0 asks for a fresh register. Returns dst. */
uint16_t ir_emit(struct ir *ir, enum ir_op row, uint16_t dst, uint16_t a, uint16_t b, uint16_t c, int64_t imm);
/* Writes value into the variable: retargets the instruction just emitted when value is its fresh result (and no loop's
 * index, which the loop itself writes), else emits a move. */
void ir_set(struct ir *ir, uint16_t var, uint16_t value);

/* Restricts the instruction just emitted, which must be MASKABLE, to the lanes of a mask. */
void ir_where(struct ir *ir, ir_m mask);

/* A variable: a register that may be written again. */
uint16_t ir_new_var(struct ir *ir, enum ir_type type);

/* Packs the immediate of an `x` row. n == 0: all lanes. */
static inline int64_t ir_x(int32_t disp, unsigned n, unsigned stride)
{
	return (int64_t)((uint64_t)(uint32_t)disp | (uint64_t)(n & 0xff) << 32 | (uint64_t)(stride & 0xffffff) << 40);
}
static inline int32_t ir_x_disp(int64_t imm) { return (int32_t)(uint32_t)((uint64_t)imm & 0xffffffffu); }
static inline unsigned ir_x_lanes(int64_t imm, unsigned w)
{
	unsigned n = (unsigned)((uint64_t)imm >> 32) & 0xff;
	return n ? n : w;
}
static inline unsigned ir_x_stride(int64_t imm) { return (unsigned)((uint64_t)imm >> 40); }
/* The immediate of a `t` row is packed alike, its step where the lanes are. */
static inline unsigned ir_t_step(int64_t imm) { return (unsigned)((uint64_t)imm >> 32) & 0xff; }
/* The displacement of an instruction that has one. */
static inline int64_t ir_disp(const struct ir_ins *i)
{
	return ir_facts_of(i)->imm == IR_IMM_d ? i->imm : ir_x_disp(i->imm);
}
/* Whether the op has any of these effects. */
static inline bool ir_does(unsigned op, unsigned effects) { return ir_facts[op].effects & effects; }
/* Whether it must stay where nobody uses its result. */
static inline bool ir_stays(unsigned op)
{
	return ir_does(op, IR_WRITES | IR_COPIES | IR_HINTS | IR_BRANCHES | IR_MEETS);
}

/* Checks types, definition before use on every path, loop balance, immediates' ranges, and the sticky error. False: our
 * bug; err names the instruction. Run between passes and by every test. */
bool ir_verify(const struct ir *ir, struct error *err);

/* One instruction per line, loops indented: "%12:F = ffma %3 %4 %12" (the form: print.c). ir_parse reads the same text
 * back (tests); it initialises ir, and leaves it free on failure; whether the kernel is well formed is ir_verify's. */
void ir_print(const struct ir *ir, FILE *out);
bool ir_parse(struct ir *ir, const char *text, struct error *err);

/* The meaning: runs units begin..end-1 by interpretation. The oracle of every backend. arg as the native kernel gets
 * it; addresses are real. Aborts (assert) on nothing but our own bugs. */
void ir_interp(const struct ir *ir, const uint64_t *arg, int64_t begin, int64_t end);

#endif
