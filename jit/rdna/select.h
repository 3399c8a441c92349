/* jit/rdna/select.h - what the files of RDNA instruction selection share. Nobody outside them includes it but tests.
 *
 * value_numbering.c finds what is computed twice. scan.c looks at the IR once: what is dead, which values need no
 * instruction of their own; merge_loads.c: which loads are done together. select.c owns operands and the pass,
 * select_entry.c what is made once at the entry; select_branch.c selects loops, ifs and conditions, select_scalar.c
 * scalars, select_address.c addresses,
 * select_memory.c loads and stores, select_math.c vector arithmetic, select_integer.c integers and dot products,
 * select_matrix.c matrices. Rule for editors: an operand's own instructions must be appended before the instruction
 * that uses it is, and a destination that is a variable may be an operand as well: sequences write it last.
 */
#ifndef JIT_RDNA_SELECT_H
#define JIT_RDNA_SELECT_H

#include "jit/ir/ir.h"
#include "jit/rdna/lir.h"
#include "jit/target.h"

/* value_numbering.c: the instructions of ir, in which operands name the first of equal results of a straight run. NULL:
 * no memory; else the caller frees. */
struct ir_ins *rsame_instructions(const struct ir *ir);

/* What the looks at the IR ask of a row, in one word. */
enum {
	RSCAN_IS_NOTHING = 1, /* left out here */
	RSCAN_HAS_EFFECT = 2, /* beyond its result */
	RSCAN_STORES = 4,
	RSCAN_IS_FUNCTION = 8,    /* its result depends on its operands and immediate alone */
	RSCAN_MOVES_ADDRESS = 16, /* its result is an address made of its operand a */
	RSCAN_IS_LDS = 32,        /* it makes an address of LDS */
	RSCAN_IS_GLOBAL = 64,     /* it makes one of global memory */
	RSCAN_ENDS_RUN = 128,     /* loops, ifs, breaks */
	RSCAN_LOADS_WORDS = 256,  /* words that may be loaded together with others */
	RSCAN_WAITS = 512         /* for other waves */
};
extern const uint16_t rscan_rows[IR_ROWS];
static inline unsigned rscan_row(const struct ir_ins *i) { return rscan_rows[ir_row(i)]; }

/* --- the scan */

/* Why a value has no instruction where it is defined. */
enum rscan_fold {
	RSCAN_NO,
	RSCAN_CONST,   /* constants, the lane's number, the call's arguments */
	RSCAN_ADDRESS, /* aaddi, local, shared: part of the addresses made of them */
	RSCAN_NAME,    /* another name of the same register */
	RSCAN_SIGN,    /* fneg, fabs: a modifier of the operands that use it */
	RSCAN_HALF,    /* an f16 that only sums of products read, which widen it themselves */
	RSCAN_FUSED    /* part of the one instruction that uses it */
};

/* Loads that one instruction does. */
enum rscan_family {
	RSCAN_ALONE,
	RSCAN_SCALAR /* into scalar registers */,
	RSCAN_STRIDED /* lane by lane */,
	RSCAN_LDS /* the same word for all lanes */
};
struct rscan_group {
	uint8_t family, words;
	uint32_t first /* instruction that does the load */;
	int64_t disp;
};

struct rscan {
	struct rscan_reg {
		uint32_t uses, def; /* by live instructions; the instruction that (last) defines it */
		uint32_t last;      /* the last use if all are in the block of the definition, else UINT32_MAX */
		uint32_t offset;    /* local, shared: where it begins */
		uint8_t fold;       /* enum rscan_fold; RSCAN_NO of variables and of register 0 */
		bool lds;           /* an address of LDS */
		/* While scanning: what a folded value depends on, as it was at its definition. */
		uint16_t root;
		uint32_t root_version, version, block;
	} * reg;
	bool *skip;             /* by instruction: dead */
	uint32_t *group, *word; /* by instruction that loads words: its group (0: none) and the word in it */
	uint32_t *moment;
	size_t n_moments; /* the instructions that loads' groups hang on: loads, stores, loops, ifs, barriers, and
	                     what writes variable addresses */
	struct rscan_group *groups;
	size_t n_groups, groups_capacity;
};
bool rscan_ir(struct rscan *s, const struct ir *ir, enum rdna_gen gen, unsigned scalar_words, struct error *err);
void rscan_free(struct rscan *s);
/* merge_loads.c: fills group, word and groups. False: no memory. */
bool rscan_group_loads(struct rscan *s, const struct ir *ir, enum rdna_gen gen, unsigned scalar_words);

/* The address that r is made of: *disp is increased by what was added to it. */
uint16_t rscan_root(const struct rscan *s, const struct ir *ir, uint16_t r, int64_t *disp);
/* Whether the operation reads operand slot 0, 1, 2 through the modifiers of signs. */
bool rscan_takes_sign(const struct ir_ins *i, unsigned slot);
/* Operations whose result is computed in scalar registers when all operands lie there: the instruction, or 0. */
extern const uint16_t rscan_uniform_op[IR_ROWS];
/* The instruction that does i and the operation behind its operand number *slot in one; 0: there is none. */
unsigned rscan_fused_op(const struct ir *ir, const struct ir_ins *i, const struct ir_ins *inner, unsigned slot);

/* --- the state of selection */

enum rsel_kind {
	RSEL_NONE,
	RSEL_VECTOR, /* F, I: o is a word of a vector register; D, L: a pair of them; T, O: a tuple of them; M: a scalar
	                register of one bit a lane; C: a scalar register, 0 or 1 */
	RSEL_UNIFORM, /* F, I: o is a scalar register or a constant: all lanes alike */
	RSEL_SCALAR,  /* S: o and high are its halves, scalar registers or constants; it lies in low..top */
	RSEL_ADDRESS  /* A: o is a pair of scalar registers, one where it is of LDS */
};
struct rsel_value {
	uint8_t kind;
	struct rdna_lir_operand o, high;
	int64_t low, top;
	uint32_t copy, copy_block;
};

/* Values made once, at the entry: lane * value (0: zero in all lanes); the same plus where the wave's locals begin;
 * that alone; a constant in a scalar register; (lane mod 16) * value + (lane / 16) * half. */
enum rsel_entry_kind { RSEL_LANES, RSEL_LOCAL_LANES, RSEL_LOCALS, RSEL_CONSTANT, RSEL_TILE_LANES };
struct rsel_entry {
	uint8_t kind;
	uint32_t value, half, reg;
};

/* Sums of a base and an offset that the rest of the block may use again. */
struct rsel_memo {
	bool lds;
	uint32_t of, version, stride;
	int64_t offset;
	uint32_t reg;
};
enum { RSEL_MEMO = 32 };

struct rsel {
	const struct ir *ir;
	enum rdna_gen gen;
	struct rdna_lir *l;
	struct rscan scan;
	struct rsel_value *value; /* by IR register; of kind NONE what is folded, and variables that were not met yet */
	uint32_t *version;        /* by IR register: how often it was written so far */
	uint32_t *tuple;          /* by group: the register it was loaded into */
	uint32_t block;           /* straight runs so far */
	size_t at;                /* IR instruction being selected */
	struct rsel_entry *entry;
	size_t n_entries, entries_capacity;
	struct rdna_lir_ins *first;
	size_t n_first, first_capacity; /* the entry's instructions */
	struct rsel_memo memo[RSEL_MEMO];
	unsigned n_memo;
};

typedef struct rdna_lir_operand rsel_op;
struct rsel_rule;
typedef void (*rsel_fn)(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* How one IR operation becomes instructions. other: the instruction with its two sources exchanged, 0 where there is
 * none. */
struct rsel_rule {
	rsel_fn select;
	uint16_t op, other;
	uint32_t extra;
};
extern const struct rsel_rule rsel_scalar_rules[IR_ROWS], rsel_memory_rules[IR_ROWS], rsel_matrix_rules[IR_ROWS],
	rsel_math_rules[IR_ROWS], rsel_branch_rules[IR_ROWS], rsel_wide_rules[IR_ROWS];

/* --- operands */

static inline const struct ir_ins *rsel_definition(const struct rsel *s, uint16_t r)
{
	return &s->ir->ins[s->scan.reg[r].def];
}
static inline rsel_op rsel_none(void) { return (rsel_op){ 0 }; }
static inline bool rsel_is_vgpr(const struct rsel *s, const rsel_op *o)
{
	return o->kind == RDNA_LIR_VIRTUAL ? s->l->reg[o->reg].cls == RDNA_CLASS_VGPR
	                                   : o->kind == RDNA_LIR_FIXED && o->reg >= RDNA_V0;
}
static inline bool rsel_is_sgpr(const struct rsel *s, const rsel_op *o)
{
	return (o->kind == RDNA_LIR_VIRTUAL || o->kind == RDNA_LIR_FIXED) && !rsel_is_vgpr(s, o);
}
/* A constant that instructions hold in their operand. */
bool rsel_inline(uint32_t value);

/* What an IR register stands for; a variable gets its registers when it is first met. */
struct rsel_value *rsel_home(struct rsel *s, uint16_t r);
/* F, I: a vector register, a scalar one or a constant; with modifiers where the value's sign is folded. */
rsel_op rsel_folded(struct rsel *s, uint16_t r);
static inline rsel_op rsel_any(struct rsel *s, uint16_t r)
{
	return s->value[r].kind != RSEL_NONE ? s->value[r].o : rsel_folded(s, r);
}
/* The same, moved to a vector register if it is none. */
rsel_op rsel_vgpr(struct rsel *s, uint16_t r);
rsel_op rsel_to_vgpr(struct rsel *s, rsel_op o);
/* M, C: a scalar register. */
rsel_op rsel_mask(struct rsel *s, uint16_t r);
/* The register that a vector result goes to. */
rsel_op rsel_dst(struct rsel *s, const struct ir_ins *i);
rsel_op rsel_new_vgpr(struct rsel *s);
rsel_op rsel_new_pair(struct rsel *s);
rsel_op rsel_new_sgpr(struct rsel *s);
/* Gives an F or I result that lies in a scalar register (or is a constant) to the IR's register. */
void rsel_give_uniform(struct rsel *s, const struct ir_ins *i, rsel_op o);
/* Made at the entry, once. */
rsel_op rsel_at_entry(struct rsel *s, enum rsel_entry_kind kind, uint32_t value);
rsel_op rsel_tile_lanes(struct rsel *s, uint32_t by_column, uint32_t by_half);

/* --- instructions */

struct rdna_lir_ins *rsel_add(struct rsel *s, unsigned op);
/* A vector instruction; operands that it cannot take are moved to where it can. */
struct rdna_lir_ins *rsel_valu(struct rsel *s, unsigned op, rsel_op d, rsel_op a, rsel_op b, rsel_op c);
void rsel_mov(struct rsel *s, rsel_op d, rsel_op a);
/* A scalar instruction of one or two sources; no source: none. */
struct rdna_lir_ins *rsel_salu(struct rsel *s, unsigned op, rsel_op d, rsel_op a, rsel_op b);
/* What was remembered of a straight run is no more. */
void rsel_new_block(struct rsel *s);

/* --- scalars and addresses */

/* S: its halves. */
struct rsel_value rsel_scalar(struct rsel *s, uint16_t r);
/* Gives the halves loaded into o (one or two words) to an S or A. */
void rsel_give_loaded(struct rsel *s, const struct ir_ins *i, rsel_op words);

/* An address on its way into an instruction: base (none: LDS from its beginning, or from the wave's locals on) +
 * disp. */
struct rsel_pointer {
	bool lds, locals;
	rsel_op base;
	int64_t disp;
	uint32_t of, version;
};
struct rsel_pointer rsel_pointer(struct rsel *s, uint16_t r, int64_t disp);
/* A pair of scalar registers such that *offset, within low..high, leads from it to the address. */
rsel_op rsel_base(struct rsel *s, const struct rsel_pointer *p, int64_t low, int64_t high, int32_t *offset);
/* LDS: the whole address in a scalar register or a constant. */
rsel_op rsel_lds_sum(struct rsel *s, const struct rsel_pointer *p);
/* What is known of this base and offset in this block; 0: nothing. */
uint32_t rsel_remembered(const struct rsel *s, const struct rsel_pointer *p, uint32_t stride, int64_t offset);
void rsel_remember(struct rsel *s, const struct rsel_pointer *p, uint32_t stride, int64_t offset, uint32_t reg);

/* --- select_entry.c */

void rsel_put_first(struct rsel *s);

/* --- values */

static inline rsel_op rsel_low_half(int64_t v) { return rdna_lir_imm((uint32_t)(uint64_t)v); }
static inline rsel_op rsel_high_half(int64_t v) { return rdna_lir_imm((uint32_t)((uint64_t)v >> 32)); }

/* --- select_address.c */

/* aadd and, where it is not folded, aaddi */
void rsel_address_sum(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* amov, and what is otherwise folded, written into a variable. */
void rsel_address_move(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);

/* --- select_scalar.c */

struct rsel_value rsel_whole(rsel_op o, rsel_op high);
struct rsel_value rsel_constant(int64_t v);
static inline bool rsel_is_constant(const struct rsel_value *v) { return v->low == v->top; }
static inline bool rsel_is_narrow(const struct rsel_value *v) { return v->low >= 0 && v->top <= UINT32_MAX; }
static inline bool rsel_is_int32(const struct rsel_value *v) { return v->low >= INT32_MIN && v->top <= INT32_MAX; }
/* Where the result of i goes, which lies in low..top: one register if that will do, and is allowed. */
struct rsel_value rsel_scalar_dst(struct rsel *s, const struct ir_ins *i, int64_t low, int64_t top, bool pair);
/* SCC becomes whether a is less than b, by all 64 bits. */
void rsel_less(struct rsel *s, const struct rsel_value *a, const struct rsel_value *b);
void rsel_sum_of(struct rsel *s, bool minus, const struct rsel_value *d, const struct rsel_value *a,
                 const struct rsel_value *b);

static inline bool rsel_in_vgpr(struct rsel *s, rsel_op o) { return rsel_is_vgpr(s, &o); }

/* --- select_integer.c */

/* op, or other with the sources exchanged. */
void rsel_integer(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Shifts by a constant. The instructions take the count first. */
void rsel_shift(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Counts of 32 and more give 0; the instructions take them modulo 32. */
void rsel_shift_lanes(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_i2f(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Conversion cuts, so the rounding comes first. */
void rsel_f2i(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Where those who use a half do not widen it themselves. */
void rsel_fhalf(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_choose_bits(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* The lower half of the word twice, moved to the right. */
void rsel_rotate(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_dot4(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* A byte without sign is one with a sign plus 128, and what that makes is 128 times the sum of b. */
void rsel_dot4u(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Two products at a time are all there is of four when the other bytes are 0. a's bytes need no sign bit. */
void rsel_dot2b(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_dot2h(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_iadd_16(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* The table's halves of eight bytes each are looked up by three bits; the fourth then says which result counts, byte by
 * byte. */
void rsel_ilut16(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);

/* --- select_memory.c */

/* Elements in a row, one a lane. op: the global load; other: that of LDS; extra: bytes of an element. */
void rsel_load(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* op: the global store; other: that of LDS; extra: bytes from lane to lane, 0: the row's stride. */
void rsel_store(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Every lane, of d.n words. */
void rsel_load_lanes(struct rsel *s, const struct rsel_pointer *p, uint32_t stride, rsel_op d);

/* --- select_divide.c */

/* Counts of 32 and more are as 31. */
void rsel_shift_down(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
void rsel_ones(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* The instruction gives -1 where no bit is set. */
void rsel_leading_zeros(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* idiv, irem, udiv, urem */
void rsel_divide_lanes(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);

/* --- select_math.c */

/* One source: op. */
void rsel_unary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* Two sources. The short encoding wants its second in a vector register: then they are exchanged. */
void rsel_binary(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r);
/* What lane ^ by has, of 32 bits. */
void rsel_exchange(struct rsel *s, rsel_op d, rsel_op a, unsigned by);
/* yes where the mask is set. */
void rsel_choose(struct rsel *s, rsel_op d, rsel_op mask, rsel_op yes, rsel_op no);

#endif
