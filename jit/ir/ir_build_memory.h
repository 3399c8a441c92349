/* jit/ir/ir_build_memory.h - memory by the type of its elements: loads, stores, gathers, scatters and atomics, named
 * alike for every type.
 *
 * ir_load_T, ir_store_T, ir_gather_T, ir_scatter_distinct_T, ir_atomic_OPERATION_T. T is f32, f64, i32, i64, or a type
 * that memory alone has: f16 and bf16 are lanes of f32, i8, u8, i16 and u16 are lanes of i32. A load widens exactly; a
 * store rounds to the nearest, ties to even, or keeps the low bits. A few instructions each, with the same bits on
 * every target.
 *
 * disp: bytes. n: lanes that take part from the first on, 0 for all. mask: of these, the ones that do; ir_everywhere
 * for all. Lanes that take no part load 0 and touch no memory. index: which element, from 0 on; its address, index
 * times the size of an element, is below 2^32 (ops.def). Operands are values that exist: write no call that emits in
 * their place.
 */
#ifndef JIT_IR_BUILD_MEMORY_H
#define JIT_IR_BUILD_MEMORY_H

#include "jit/ir/ir_build_numbers.h"

/* No mask. */
static const ir_m ir_everywhere = { 0 };

/* The instruction just emitted, for the lanes of a mask. */
static inline uint16_t ir_for_lanes(struct ir *b, uint16_t r, ir_m mask)
{
	if (mask.r)
		ir_where(b, mask);
	return r;
}

/* --- how elements become lanes, and lanes elements */

/* The lower `bits` bits, with their sign. */
static inline ir_i ir_with_sign(struct ir *b, ir_i v, unsigned bits)
{
	return ir_isar(b, ir_ishl(b, v, 32 - bits), 32 - bits);
}

static inline ir_f ir_from_bf16(struct ir *b, ir_i half) { return ir_fbits(b, ir_ishl(b, half, 16)); }

/* In the lower half. A sum that carries rounds up; of a NaN, which it might make infinite, the upper half is kept and
 * made quiet. */
static inline ir_i ir_to_bf16(struct ir *b, ir_f v)
{
	const ir_i bits = ir_ibits(b, v), odd = ir_iand(b, ir_ishr(b, bits, 16), ir_iconst(b, 1));
	const ir_i sum = ir_iadd(b, ir_iadd(b, bits, ir_iconst(b, 0x7fff)), odd);
	const ir_i quiet = ir_ior(b, bits, ir_iconst(b, 0x400000));
	const ir_m nan = ir_fne(b, v, v);

	return ir_ishr(b, ir_isel(b, nan, quiet, sum), 16);
}

/* As f32_f16 of lanes.h says. */
static inline ir_i ir_to_f16(struct ir *b, ir_f v)
{
	const ir_i bits = ir_ibits(b, v), size = ir_iand(b, bits, ir_iconst(b, 0x7fffffff));
	const ir_i sign = ir_iand(b, ir_ishr(b, bits, 16), ir_iconst(b, 0x8000));
	const ir_i odd = ir_iand(b, ir_ishr(b, size, 13), ir_iconst(b, 1));
	const ir_i sum = ir_iadd(b, ir_iadd(b, size, odd), ir_iconst(b, 0xfff - (112 << 23)));
	const ir_i normal = ir_ishr(b, sum, 13);
	const ir_f units = ir_fadd(b, ir_fbits(b, size), ir_fconst(b, 0.5f));
	const ir_i small = ir_isub(b, ir_ibits(b, units), ir_iconst(b, 0x3f000000));
	const ir_i nan = ir_ior(b, ir_iand(b, ir_ishr(b, size, 13), ir_iconst(b, 0x3ff)), ir_iconst(b, 0x7e00));
	const ir_m is_small = ir_igt(b, ir_iconst(b, 0x38800000), size),
		   is_large = ir_igt(b, size, ir_iconst(b, 0x477fffff)),
		   is_nan = ir_igt(b, size, ir_iconst(b, 0x7f800000));
	const ir_i some = ir_isel(b, is_small, small, normal), max = ir_isel(b, is_large, ir_iconst(b, 0x7c00), some);

	return ir_ior(b, ir_isel(b, is_nan, nan, max), sign);
}

/* --- elements side by side */

static inline ir_f ir_load_f32(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_f){ ir_for_lanes(b, ir_emit(b, IR_fload, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_d ir_load_f64(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_d){ ir_for_lanes(b, ir_emit(b, IR_dload, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_i ir_load_i32(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_iload, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_l ir_load_i64(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_l){ ir_for_lanes(b, ir_emit(b, IR_lload, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_f ir_load_f16(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_f){ ir_for_lanes(b, ir_emit(b, IR_fload_h, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_f ir_load_bf16(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_iload_u16, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };

	return ir_from_bf16(b, v);
}
static inline ir_i ir_load_i8(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_iload_s8, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_i ir_load_u8(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_iload_u8, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline ir_i ir_load_i16(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_iload_u16, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };

	return ir_with_sign(b, v, 16);
}
static inline ir_i ir_load_u16(struct ir *b, ir_a p, int32_t disp, unsigned n, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_iload_u16, 0, p.r, 0, 0, ir_x(disp, n, 0)), mask) };
}
static inline void ir_store_f32(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_fstore, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_f64(struct ir *b, ir_a p, ir_d v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_dstore, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_i32(struct ir *b, ir_a p, ir_i v, int32_t disp, unsigned n, ir_m mask)
{
	const uint16_t lanes = ir_fbits(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_fstore, 0, p.r, lanes, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_i64(struct ir *b, ir_a p, ir_l v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_lstore, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_f16(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_fstore_h, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_bf16(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n, ir_m mask)
{
	const uint16_t lanes = ir_to_bf16(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_istore_16, 0, p.r, lanes, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_i8(struct ir *b, ir_a p, ir_i v, int32_t disp, unsigned n, ir_m mask)
{
	const uint16_t lanes = ir_with_sign(b, v, 8).r;

	ir_for_lanes(b, ir_emit(b, IR_istore_8, 0, p.r, lanes, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_u8(struct ir *b, ir_a p, ir_i v, int32_t disp, unsigned n, ir_m mask)
{
	const uint16_t lanes = ir_with_sign(b, v, 8).r;

	ir_for_lanes(b, ir_emit(b, IR_istore_8, 0, p.r, lanes, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_i16(struct ir *b, ir_a p, ir_i v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_istore_16, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}
static inline void ir_store_u16(struct ir *b, ir_a p, ir_i v, int32_t disp, unsigned n, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_istore_16, 0, p.r, v.r, 0, ir_x(disp, n, 0)), mask);
}

/* --- by index */

static inline ir_f ir_gather_f32(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_igather_32, 0, p.r, index.r, 0, disp), mask) };

	return ir_fbits(b, v);
}
static inline ir_d ir_gather_f64(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_l v = { ir_for_lanes(b, ir_emit(b, IR_lgather, 0, p.r, index.r, 0, disp), mask) };

	return ir_dbits(b, v);
}
static inline ir_i ir_gather_i32(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_igather_32, 0, p.r, index.r, 0, disp), mask) };
}
static inline ir_l ir_gather_i64(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	return (ir_l){ ir_for_lanes(b, ir_emit(b, IR_lgather, 0, p.r, index.r, 0, disp), mask) };
}
static inline ir_f ir_gather_f16(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_igather_16, 0, p.r, index.r, 0, disp), mask) };

	return ir_fhalf(b, v, 0);
}
static inline ir_f ir_gather_bf16(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_igather_16, 0, p.r, index.r, 0, disp), mask) };

	return ir_from_bf16(b, v);
}
static inline ir_i ir_gather_i8(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_igather_8, 0, p.r, index.r, 0, disp), mask) };

	return ir_with_sign(b, v, 8);
}
static inline ir_i ir_gather_u8(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_igather_8, 0, p.r, index.r, 0, disp), mask) };
}
static inline ir_i ir_gather_i16(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	const ir_i v = { ir_for_lanes(b, ir_emit(b, IR_igather_16, 0, p.r, index.r, 0, disp), mask) };

	return ir_with_sign(b, v, 16);
}
static inline ir_i ir_gather_u16(struct ir *b, ir_a p, ir_i index, int32_t disp, ir_m mask)
{
	return (ir_i){ ir_for_lanes(b, ir_emit(b, IR_igather_16, 0, p.r, index.r, 0, disp), mask) };
}
/* Of lanes that take part, no two have the same index: the interpreter and simulated cards stop where they do. */
static inline void ir_scatter_distinct_f32(struct ir *b, ir_a p, ir_i index, ir_f v, int32_t disp, ir_m mask)
{
	const uint16_t lanes = ir_ibits(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_iscatter_32, 0, p.r, index.r, lanes, disp), mask);
}
static inline void ir_scatter_distinct_f64(struct ir *b, ir_a p, ir_i index, ir_d v, int32_t disp, ir_m mask)
{
	const uint16_t lanes = ir_lbits(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_lscatter, 0, p.r, index.r, lanes, disp), mask);
}
static inline void ir_scatter_distinct_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iscatter_32, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_scatter_distinct_i64(struct ir *b, ir_a p, ir_i index, ir_l v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_lscatter, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_scatter_distinct_f16(struct ir *b, ir_a p, ir_i index, ir_f v, int32_t disp, ir_m mask)
{
	const uint16_t lanes = ir_to_f16(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_iscatter_16, 0, p.r, index.r, lanes, disp), mask);
}
static inline void ir_scatter_distinct_bf16(struct ir *b, ir_a p, ir_i index, ir_f v, int32_t disp, ir_m mask)
{
	const uint16_t lanes = ir_to_bf16(b, v).r;

	ir_for_lanes(b, ir_emit(b, IR_iscatter_16, 0, p.r, index.r, lanes, disp), mask);
}
static inline void ir_scatter_distinct_i8(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iscatter_8, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_scatter_distinct_u8(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iscatter_8, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_scatter_distinct_i16(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iscatter_16, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_scatter_distinct_u16(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iscatter_16, 0, p.r, index.r, v.r, disp), mask);
}
/* Lanes may have the same index. What was there is not given: then no order of updates can show. */
static inline void ir_atomic_add_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_add, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_add_u32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_add, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_add_i64(struct ir *b, ir_a p, ir_i index, ir_l v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_latomic_add, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_add_u64(struct ir *b, ir_a p, ir_i index, ir_l v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_latomic_add, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_min_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_min, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_min_u32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_uatomic_min, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_max_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_max, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_max_u32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_uatomic_max, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_and_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_and, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_and_u32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_and, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_or_i32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_or, 0, p.r, index.r, v.r, disp), mask);
}
static inline void ir_atomic_or_u32(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask)
{
	ir_for_lanes(b, ir_emit(b, IR_iatomic_or, 0, p.r, index.r, v.r, disp), mask);
}

#endif
