/* jit/x86/select_state.h - what the files of instruction selection share: the state of the pass and the operands of
 * instructions.
 *
 * select.c owns all of it and the scalars; select_branch.c selects loops, ifs and conditions, select_vector.c vectors
 * and masks, select_vector_memory.c what goes to and from memory; vector_rules.c has the tables. Nobody else includes
 * this. Rule for editors: an operand's own instructions (a constant, a sum of addresses) must be appended before the
 * instruction that uses it is.
 */
#ifndef JIT_X86_SEL_H
#define JIT_X86_SEL_H

#include "jit/x86/select.h"

/* A constant: made once, before the outermost loop or if that needs it first. FIRST_N is a mask, as the target keeps
 * masks; TABLE is one of lanes.h, in every 128 bits; STEPS is value times the lane's number; WIDE is 64 bits, value the
 * lower ones. */
enum sel_constant_kind { SEL_SPLAT, SEL_LANES, SEL_FIRST_N, SEL_TABLE, SEL_STEPS, SEL_WIDE };
struct sel_constant {
	uint8_t kind;
	uint32_t value, upper, reg;
	size_t before;
};

/* What dot products have made of an operand and may use again. */
enum sel_memo_kind { SEL_ABS, SEL_SIGNS, SEL_NEGATIVE };
struct sel_memo {
	uint8_t kind;
	uint32_t of, is;
};

struct sel_loop {
	uint32_t counter, count;
	int64_t last;
	bool down;
};
enum { SEL_MAX_DEPTH = 64, SEL_MEMO = 8 };

struct sel {
	const struct ir *ir;
	const struct target *target;
	struct sel_rule rules[IR_ROWS];
	struct lir *l;
	struct scan scan;
	uint32_t *reg;       /* virtual register by IR register; 0: none yet */
	uint32_t *upper;     /* of the upper half of the lanes, where they have 64 bits */
	uint32_t entry[3];   /* arg, begin, end */
	size_t at;           /* IR instruction being selected */
	uint8_t width, half; /* enum x86_class of a whole vector, and of one half as long */
	struct sel_constant *constant;
	size_t n_constants, constants_capacity;
	struct sel_loop loop[SEL_MAX_DEPTH];
	unsigned depth;   /* of loops */
	unsigned blocks;  /* loops and ifs that are open */
	size_t outermost; /* where the outermost of these begins */
	struct sel_memo memo[SEL_MEMO];
	unsigned memo_next;
	uint32_t pooled,
		pooled_value; /* a constant in the pool that is read from there: its byte offset plus one, 0: none */
};

/* A memory operand on its way into an instruction. */
struct sel_memory {
	uint8_t mem;
	bool broadcast;
	uint32_t base;
	int32_t disp;
};
extern const struct sel_memory sel_no_memory;

/* The register an IR register lives in; the one the current instruction writes. */
uint32_t sel_reg(struct sel *s, uint16_t r);
uint32_t sel_dst(struct sel *s, const struct ir_ins *i);
/* A vector, mask or constant as a register. */
uint32_t sel_vec(struct sel *s, uint16_t r);
uint32_t sel_gpr(struct sel *s, uint16_t r);
/* A vector operand: a register, or LIR_MEM with *p filled when its load was folded into this use. */
uint32_t sel_operand(struct sel *s, uint16_t r, struct sel_memory *p);
struct sel_memory sel_memory(struct sel *s, uint16_t r, int64_t disp);
uint32_t sel_constant(struct sel *s, enum sel_constant_kind kind, uint32_t value);
/* The same 64 bits in every lane of a vector of such. */
uint32_t sel_wide_constant(struct sel *s, uint64_t value);
/* A constant into a general register, which it returns. */
uint32_t sel_scalar_constant(struct sel *s, uint32_t dst, int64_t value);
/* The constant an IR register stands for, if it does. */
bool sel_constant_of(const struct sel *s, uint16_t r, enum sel_constant_kind *kind, uint32_t *value);
bool sel_scalar_of(const struct sel *s, uint16_t r, int64_t *value);
/* Appends an instruction with these operands; those that are LIR_MEM stand at p. */
struct lir_ins *sel_ins(struct sel *s, enum lir_form form, unsigned op, uint32_t dst, uint32_t a, uint32_t b,
                        struct sel_memory p);

/* Fills in the rows that say how s->target does what is no scalar. */
void sel_vector_rules(struct sel *s);

/* --- select_branch.c */

/* Comparisons of scalars, whose result is 0 or 1. */
void sel_compare(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_choose(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_not(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* any and all */
void sel_mask_bits(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_loop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_endloop(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_if(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_else(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_endif(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_break(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Of the bits of a, which the lanes of a mask set: what stands between the two is done when this one is. */
void sel_if_bit(struct sel *s, uint32_t bits, unsigned bit);
void sel_end_bit(struct sel *s);
/* The lanes of a mask as bits of a general register. */
uint32_t sel_bits(struct sel *s, uint16_t mask);

/* --- select_vector_memory.c */

void sel_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fload(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fbcast_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_gather(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fawait(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_strided(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fstore(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fstore1(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fstore_h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fstore_s(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fstore_hs(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_istore_8(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_istore_16(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_istore_8_wide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_prefetch(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_dots(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

/* --- select_vector.c */

void sel_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* A constant whose complement is in a register already needs none of its own. */
void sel_and(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* a and the constant of the row */
void sel_with_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Where masks are vectors, the blend takes its second source where the mask's sign bit is set. */
void sel_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* A constant written into a variable; others are made where they are used. */
void sel_vector_constant(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* |a| times b with a's sign. Without VNNI: u8 times s8 pairs to 16 bits (32512 at most), pairs of those to 32 bits. */
void sel_dot4(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* The bytes of even and of odd number apart, widened to words: products and their sums of two are exact in 32 bits. */
void sel_dot4u(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_dot_at_once(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_dot2h(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* a has the bits that choose. Without the instruction for it: both parts, and what is chosen of them. */
void sel_choose_bits(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* The register of an operand that nobody else wants becomes the destination's. In the immediate's table dst, a and b
 * are bits 2, 1 and 0 of the index. */
void sel_ternary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_rotate(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_table(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* The half as a signed number in 32 bits, so that packing with saturation changes nothing; then as f16. Packing 256
 * bits interleaves the halves by 64 bits, which a permutation puts right. */
void sel_fhalf(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Within 128 bits by one permutation; parts of 128 bits by another. */
void sel_fxor(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

/* The first n lanes, and of these those of the instruction's mask, where it has one. */
uint32_t sel_lanes(struct sel *s, const struct ir_ins *i, unsigned n);

/* The 128 bits of a, a vector of that width, that begin with lane 4 * number. */
uint32_t sel_xmm(struct sel *s, uint32_t a, uint8_t width, unsigned number);

/* --- select_index.c */

void sel_gather_words(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_gather_parts(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_gather_wide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_each_lane(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

/* --- select_wide.c */

/* Both halves of the lanes, of 64 bits; a mask for each. */
struct sel_pair {
	uint32_t v[2];
};
struct sel_pair sel_wide(struct sel *s, uint16_t r);
struct sel_pair sel_dst_pair(struct sel *s, const struct ir_ins *i);
struct sel_pair sel_mask_pair(struct sel *s, uint32_t mask);
/* imm: how they are compared, of vcmppd. */
void sel_wide_compare(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* imm: how, of vpcmpq. */
void sel_wide_compare_ints(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_select(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_binary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* imm: the instruction's; 0: that of the operation. */
void sel_wide_unary(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_fma(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_sign(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_min(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_multiply(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_shift_down(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_constants(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_move(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_splat(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_exchange(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_widen(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_widen_unsigned(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_narrow(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_low(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_narrow_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_narrow_unsigned_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_from_int(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_to_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_load(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_store(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_wide_broadcast(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

/* --- select_integer.c */

/* What an instruction on vectors gives, of one source, two, or one and an immediate. */
uint32_t sel_op2(struct sel *s, unsigned op, uint32_t a);
uint32_t sel_op3(struct sel *s, unsigned op, uint32_t a, uint32_t b);
uint32_t sel_op2i(struct sel *s, unsigned op, uint32_t a, unsigned n);
/* The lower or upper half of the lanes, of 32 bits, where a vector begins. */
uint32_t sel_half(struct sel *s, uint32_t a, unsigned number);
/* Half the lanes of integers as floats of 64 bits; two halves, from 0 to 2^32 - 1, cut to integers. */
uint32_t sel_widened(struct sel *s, uint32_t half, bool has_sign);
uint32_t sel_join_unsigned(struct sel *s, const uint32_t q[2]);

/* Comparisons that are one of AVX2's the other way round, or of which the mask is complemented. */
void sel_less(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_not_more(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_not_equal(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Without signs: a is not above b where it is the lesser of the two. */
void sel_below(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_not_above(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Products of 64 bits of the even lanes, and of the odd ones. */
void sel_mul_high(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* Sums of pairs of bits, of fours, of bytes; then the bytes are added. */
void sel_ones(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_leading_zeros(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
/* idiv, irem, udiv, urem */
void sel_divide(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_round(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_from_unsigned(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_to_int_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);
void sel_to_unsigned_cut(struct sel *s, const struct ir_ins *i, const struct sel_rule *r);

#endif
