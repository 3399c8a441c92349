/* jit/x86/select.h - what the parts of the x86 back end tell each other. Nobody outside includes it but compile.c and
 * tests.
 *
 * scan.c looks at the IR once and notes which values need no instruction of their own; select.c and
 * select_vector.c write machine instructions; tiles.c says which tiles products of matrices use; emit.c turns them
 * into bytes.
 */
#ifndef JIT_X86_SELECT_H
#define JIT_X86_SELECT_H

#include "jit/compile.h"
#include "jit/ir/ir.h"
#include "jit/x86/lir.h"
#include "jit/target.h"

struct sel;
struct sel_rule;
typedef void (*sel_fn)(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

/* How one IR operation becomes machine instructions on one target. */
struct sel_rule {
	sel_fn select;
	uint16_t op;  /* enum x86_op */
	uint8_t form; /* enum lir_form */
	uint8_t fold; /* LIR_A, LIR_B, LIR_C: IR operands that may come straight from memory */
	uint32_t imm;
	bool whole; /* ... but only whole vectors, not one element for all lanes */
};

/* Why a value has no instruction where it is defined. */
enum scan_fold {
	SCAN_NO,
	SCAN_CONST,   /* fconst, iconst, ilane, sconst, arg, begin, end: made where needed */
	SCAN_ADDRESS, /* aaddi, local: part of the memory operands that use it */
	SCAN_LOAD,    /* a load: the memory operand of its one use */
	SCAN_ALIAS    /* another name of the same register */
};

struct scan {
	struct scan_reg {
		uint32_t uses; /* by live instructions */
		uint32_t def;  /* instruction that (last) defines it */
		uint8_t fold;  /* enum scan_fold */
		/* While scanning: what the folded value depends on, as it was at its definition. */
		uint16_t root; /* variable behind it, 0: none */
		uint32_t root_version, version, block, stores, touched;
		uint32_t offset; /* local: byte offset in the frame */
	} * reg;
	uint16_t *into; /* by instruction: variable it writes directly instead of its dst; 0: none */
	bool *skip;     /* by instruction: dead, or a move made needless by `into` */
	uint32_t local_bytes;
};

/* broadcasts: where a load may be folded, so may one element that goes into every lane, unless the row says no. */
bool scan_ir(struct scan *s, const struct ir *ir, const struct sel_rule *rules, bool broadcasts, struct error *err);
void scan_free(struct scan *s);

bool x86_select(struct lir *l, const struct ir *ir, const struct target *target, struct error *err);

/* Tiles (tiles.c): what l's products need, as l->tiles. False: they are of more shapes than there are tiles for. */
bool x86_tiles_set_up(struct lir *l, struct error *err);
/* The tiles of a product: two of sums, one of the first factor, two of the second. */
struct x86_tiles {
	uint8_t sum[2], x, w[2];
};
struct x86_tiles x86_tiles_of(const struct lir_tiles *t, int64_t imm, unsigned number);

struct emit_options {
	FILE *dump_asm;
	const char *title;
	const struct ir *ir;
};
/* Machine instructions with registers assigned to an object; counts the instructions. */
bool x86_emit(struct object *out, const struct lir *l, const struct emit_options *opt, uint32_t *instructions,
              struct error *err);

/* Allocation order of the general registers: the three arguments first, then what calls clobber, then what must be
 * saved. */
extern const uint8_t x86_gpr_order[15];

#endif
