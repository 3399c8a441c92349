/* jit/ir/rows.h - for readers of ops.def that make something of every row: what its letters mean.
 *
 * IR_OF_v(f16) and the like are types of operands, as constants, by the row's type.
 */
#ifndef JIT_IR_ROWS_H
#define JIT_IR_ROWS_H

#include "jit/ir/ir.h"

enum {
#define TYPE(name, letter, lane, ints, bits, difference, condition, bytes, needs, meaning) \
	IR_LANE_##name = IR_TYPE_##lane, IR_INTS_##name = IR_TYPE_##ints, IR_BITS_##name = IR_TYPE_##bits, \
	IR_DIFFERENCE_##name = IR_TYPE_##difference, IR_CONDITION_##name = IR_TYPE_##condition, \
	IR_TYPE_NEEDS_##name = IR_NEEDS_##needs,
#include "jit/ir/types.def"
#undef TYPE
	IR_LANE__ = IR_TYPE__,
	IR_TYPE_NEEDS__ = IR_NEEDS__
};

#define IR_OF__(type) IR_TYPE__
#define IR_OF_v(type) IR_LANE_##type
#define IR_OF_w(type) IR_INTS_##type
#define IR_OF_x(type) IR_BITS_##type
#define IR_OF_d(type) IR_DIFFERENCE_##type
#define IR_OF_q(type) IR_CONDITION_##type
#define IR_OF_f32(type) IR_TYPE_f32
#define IR_OF_i32(type) IR_TYPE_i32
#define IR_OF_m(type) IR_TYPE_m
#define IR_OF_s(type) IR_TYPE_s
#define IR_OF_c(type) IR_TYPE_c
#define IR_OF_a(type) IR_TYPE_a
#define IR_OF_t(type) IR_TYPE_t
#define IR_OF_o(type) IR_TYPE_o

#endif
