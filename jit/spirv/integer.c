/* jit/spirv/integer.c - rows of integers that take more than one instruction: quotients, shifts by lanes, products of
 * bytes and halves, tables, conversions that are cut.
 */
#include "jit/ir/lanes.h"
#include "jit/spirv/spirv.h"

#define U32(op, ...) SPIRV_VALUE(&e->w, SPIRV_U32, op, __VA_ARGS__)
#define U64(op, ...) SPIRV_VALUE(&e->w, SPIRV_U64, op, __VA_ARGS__)
#define BOOL(op, ...) SPIRV_VALUE(&e->w, SPIRV_BOOL, op, __VA_ARGS__)

static uint32_t word(struct spirv_emitter *e, uint32_t v) { return spirv_u32(&e->w, v); }

/* The division that is done has a divisor that it may have (lanes.h). */
static uint32_t quotient(struct spirv_emitter *e, uint32_t a, uint32_t b)
{
	const uint32_t zero = word(e, 0), one = word(e, 1), all_ones = word(e, UINT32_MAX),
		       none = BOOL(IEqual, b, zero), minus = BOOL(IEqual, b, all_ones),
		       divisor = U32(Select, BOOL(LogicalOr, none, minus), one, b), q = U32(SDiv, a, divisor),
		       negated = U32(ISub, zero, a);

	return U32(Select, none, all_ones, U32(Select, minus, negated, q));
}

static uint32_t quotient_unsigned(struct spirv_emitter *e, uint32_t a, uint32_t b)
{
	const uint32_t none = BOOL(IEqual, b, word(e, 0)), divisor = U32(Select, none, word(e, 1), b),
		       q = U32(UDiv, a, divisor);

	return U32(Select, none, word(e, UINT32_MAX), q);
}

static void divide(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b),
		       q = i->op == IR_div || i->op == IR_rem ? quotient(e, a, b) : quotient_unsigned(e, a, b);
	const bool rest = i->op == IR_rem || i->op == IR_rem_unsigned;

	spirv_set(e, i->dst, rest ? U32(ISub, a, U32(IMul, q, b)) : q);
}

/* 0 <= a < 2^31. */
static void divide_scalar(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = U32(UConvert, spirv_get(e, i->a)), q = U32(UDiv, a, word(e, (uint32_t)i->imm));

	spirv_set(e, i->dst, U64(UConvert, q));
}

static void high_half(struct spirv_emitter *e, const struct ir_ins *i)
{
	const enum spv_op widen = i->op == IR_mul_high ? SPV_SConvert : SPV_UConvert;
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b),
		       x = spirv_make_value(&e->w, SPIRV_U64, widen, &a, 1),
		       y = spirv_make_value(&e->w, SPIRV_U64, widen, &b, 1), product = U64(IMul, x, y);

	spirv_set(e, i->dst, U32(UConvert, U64(ShiftRightLogical, product, word(e, 32))));
}

/* Counts beyond the width give 0, or the sign. */
static void shift_by(struct spirv_emitter *e, const struct ir_ins *i, enum spv_op op)
{
	const bool wide = i->type == IR_TYPE_i64;
	const enum spirv_type type = wide ? SPIRV_U64 : SPIRV_U32;
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b),
		       last = spirv_constant(&e->w, type, wide ? 63 : 31), beyond = BOOL(UGreaterThan, b, last),
		       count = SPIRV_VALUE(&e->w, type, Select, beyond, last, b), operand[] = { a, count },
		       shifted = spirv_make_value(&e->w, type, op, operand, 2);

	if (op == SPV_ShiftRightArithmetic)
		spirv_set(e, i->dst, shifted);
	else
		spirv_set(e, i->dst, SPIRV_VALUE(&e->w, type, Select, beyond, spirv_constant(&e->w, type, 0), shifted));
}

static void rotate(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), by = (uint32_t)i->imm;

	spirv_set(e, i->dst,
	          by ? U32(BitwiseOr, U32(ShiftLeftLogical, a, word(e, by)),
	                   U32(ShiftRightLogical, a, word(e, 32 - by)))
	             : a);
}

static uint32_t part(struct spirv_emitter *e, enum spv_op op, uint32_t a, uint32_t from, uint32_t bits)
{
	const uint32_t operand[] = { a, word(e, from), word(e, bits) };

	return spirv_make_value(&e->w, SPIRV_U32, op, operand, 3);
}

static void dot_bytes(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b), c = spirv_get(e, i->c),
		       dot = i->op == IR_dot_bytes ? U32(SDot, a, b, SPV_PACKED_4x8Bit)
	                                           : U32(SUDot, b, a, SPV_PACKED_4x8Bit);

	spirv_set(e, i->dst, U32(IAdd, c, dot));
}

static void dot_halves(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b);
	uint32_t sum = spirv_get(e, i->c);

	for (uint32_t from = 0; from < 32; from += 16)
		sum = U32(IAdd, sum,
		          U32(IMul, part(e, SPV_BitFieldSExtract, a, from, 16),
		              part(e, SPV_BitFieldSExtract, b, from, 16)));
	spirv_set(e, i->dst, sum);
}

static uint32_t join_halves(struct spirv_emitter *e, uint32_t low, uint32_t high)
{
	return U32(BitwiseOr, U32(BitwiseAnd, low, word(e, 0xffff)), U32(BitwiseAnd, high, word(e, 0xffff0000)));
}

static void dot_pairs(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b);
	uint32_t half[2];

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t product[2];
		for (uint32_t j = 0; j < 2; j++)
			product[j] = U32(IMul, part(e, SPV_BitFieldUExtract, a, 16 * k + 8 * j, 8),
			                 part(e, SPV_BitFieldSExtract, b, 16 * k + 8 * j, 8));
		half[k] = U32(IAdd, product[0], product[1]);
	}
	spirv_set(e, i->dst, join_halves(e, half[0], U32(ShiftLeftLogical, half[1], word(e, 16))));
}

static void add_halves(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = spirv_get(e, i->b), upper = word(e, 0xffff0000),
		       high = U32(IAdd, U32(BitwiseAnd, a, upper), U32(BitwiseAnd, b, upper));

	spirv_set(e, i->dst, join_halves(e, U32(IAdd, a, b), high));
}

static uint64_t entries(int64_t table, unsigned from)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < 8; k++)
		bytes |= (uint64_t)(uint8_t)lanes_table[table][from + k] << 8 * k;
	return bytes;
}

/* A byte's fourth bit chooses among halves of the table, its lower three among the half's entries. */
static void look_up(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), low = spirv_u64(&e->w, entries(i->imm, 0)),
		       high = spirv_u64(&e->w, entries(i->imm, 8));
	uint32_t all = 0;

	for (uint32_t k = 0; k < 4; k++) {
		const uint32_t number = part(e, SPV_BitFieldUExtract, a, 8 * k, 3),
			       upper = BOOL(INotEqual, U32(BitwiseAnd, a, word(e, 8u << 8 * k)), word(e, 0)),
			       half = U64(Select, upper, high, low), at = U32(ShiftLeftLogical, number, word(e, 3)),
			       entry = U32(BitwiseAnd, U32(UConvert, U64(ShiftRightLogical, half, at)), word(e, 0xff)),
			       there = U32(ShiftLeftLogical, entry, word(e, 8 * k));
		all = all ? U32(BitwiseOr, all, there) : there;
	}
	spirv_set(e, i->dst, all);
}

static void select_bits(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t a = spirv_get(e, i->a), b = U32(BitwiseAnd, a, spirv_get(e, i->b)),
		       c = U32(BitwiseAnd, U32(Not, a), spirv_get(e, i->c));

	spirv_set(e, i->dst, U32(BitwiseOr, b, c));
}

static void leading_zeros(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t highest = SPIRV_GLSL(&e->w, SPIRV_U32, FindUMsb, spirv_get(e, i->a)); /* of 0: -1 */

	spirv_set(e, i->dst, U32(ISub, word(e, 31), highest));
}

static void widen_half(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t half = part(e, SPV_BitFieldUExtract, spirv_get(e, i->a), i->imm ? 16 : 0, 16);

	spirv_set(e, i->dst, SPIRV_CALL(&e->w, WIDEN_HALF, half));
}

static void round_to_int(struct spirv_emitter *e, const struct ir_ins *i)
{
	const uint32_t whole = SPIRV_GLSL(&e->w, SPIRV_F32, RoundEven, spirv_get(e, i->a));

	spirv_set(e, i->dst, U32(ConvertFToS, whole));
}

bool spirv_integer(struct spirv_emitter *e, const struct ir_ins *i)
{
	switch (ir_row(i)) {
	case IR_idiv:
	case IR_irem:
	case IR_udiv:
	case IR_urem: divide(e, i); return true;
	case IR_sdivi: divide_scalar(e, i); return true;
	case IR_imulh:
	case IR_umulh: high_half(e, i); return true;
	case IR_ishlv:
	case IR_lshlv: shift_by(e, i, SPV_ShiftLeftLogical); return true;
	case IR_ishrv:
	case IR_lshrv: shift_by(e, i, SPV_ShiftRightLogical); return true;
	case IR_isarv:
	case IR_lsarv: shift_by(e, i, SPV_ShiftRightArithmetic); return true;
	case IR_irotl: rotate(e, i); return true;
	case IR_dot4:
	case IR_dot4u: dot_bytes(e, i); return true;
	case IR_dot2h: dot_halves(e, i); return true;
	case IR_dot2b: dot_pairs(e, i); return true;
	case IR_iadd_16: add_halves(e, i); return true;
	case IR_ilut16: look_up(e, i); return true;
	case IR_ibsel: select_bits(e, i); return true;
	case IR_iclz: leading_zeros(e, i); return true;
	case IR_fhalf: widen_half(e, i); return true;
	case IR_f2i: round_to_int(e, i); return true;
	default: return false;
	}
}
