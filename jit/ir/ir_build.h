/* jit/ir/ir_build.h - the typed wrappers templates are written with; each emits one instruction (ops.def says which).
 *
 * Naming: ir_ + the row's name. Most are written by scripts/ir_wrappers.sh. Rows with displacement take it last.
 * Variables: ir_var_f(b, init) makes one; ir_set_f(b, var, value) writes it; when value is the result of the
 * instruction just emitted, that instruction writes the variable directly and the value's own handle is dead
 * afterwards.
 */
#ifndef JIT_IR_BUILD_H
#define JIT_IR_BUILD_H

#include <string.h>
#include "jit/ir/ir.h"
#include "jit/ir/lanes.h"

#define IR_T_F ir_f
#define IR_T_I ir_i
#define IR_T_D ir_d
#define IR_T_L ir_l
#define IR_T_M ir_m
#define IR_T_S ir_s
#define IR_T_C ir_c
#define IR_T_A ir_a
#define IR_T_T ir_t
#define IR_T_O ir_o

#define IR_W0(name, D) \
	static inline IR_T_##D ir_##name(struct ir *b) { return (IR_T_##D){ ir_emit(b, IR_##name, 0, 0, 0, 0, 0) }; }
#define IR_W1(name, D, A) \
	static inline IR_T_##D ir_##name(struct ir *b, IR_T_##A x) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, x.r, 0, 0, 0) }; \
	}
#define IR_W2(name, D, A, B) \
	static inline IR_T_##D ir_##name(struct ir *b, IR_T_##A x, IR_T_##B y) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, x.r, y.r, 0, 0) }; \
	}
#define IR_W3(name, D, A, B, C) \
	static inline IR_T_##D ir_##name(struct ir *b, IR_T_##A x, IR_T_##B y, IR_T_##C z) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, x.r, y.r, z.r, 0) }; \
	}
#define IR_WI(name, D, A) \
	static inline IR_T_##D ir_##name(struct ir *b, IR_T_##A x, int64_t imm) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, x.r, 0, 0, imm) }; \
	}
#define IR_WC(name, D) \
	static inline IR_T_##D ir_##name(struct ir *b, int64_t imm) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, 0, 0, 0, imm) }; \
	}
/* A displacement, and all lanes. */
#define IR_WX(name, D) \
	static inline IR_T_##D ir_##name(struct ir *b, IR_T_A x, int32_t disp) \
	{ \
		return (IR_T_##D){ ir_emit(b, IR_##name, 0, x.r, 0, 0, ir_x(disp, 0, 0)) }; \
	}
#define IR_WST(name, V) \
	static inline void ir_##name(struct ir *b, IR_T_A p, IR_T_##V v, int32_t disp) \
	{ \
		ir_emit(b, IR_##name, 0, p.r, v.r, 0, disp); \
	}

/* Operands are often calls that emit instructions themselves, and C leaves it to the compiler which argument it
 * evaluates first. Code objects must be the same whatever compiled jitrun, so the wrappers with several operands fix an
 * order: the last operand first. (Calls of other functions must not have two arguments that emit.) */
#define IR_LAST_FIRST_2(f, b, x, y) IR_NUMBERED_2(f, b, x, y, __COUNTER__)
#define IR_LAST_FIRST_3(f, b, x, y, z) IR_NUMBERED_3(f, b, x, y, z, __COUNTER__)
#define IR_LAST_FIRST_MORE(f, b, x, y, ...) IR_NUMBERED_MORE(f, b, x, y, __COUNTER__, __VA_ARGS__)
/* n: a number of its own for each use, as operands may be such uses themselves. It is expanded here. */
#define IR_NUMBERED_2(f, b, x, y, n) IR_ORDERED_2(f, b, x, y, n)
#define IR_NUMBERED_3(f, b, x, y, z, n) IR_ORDERED_3(f, b, x, y, z, n)
#define IR_NUMBERED_MORE(f, b, x, y, n, ...) IR_ORDERED_MORE(f, b, x, y, n, __VA_ARGS__)
#define IR_ORDERED_2(f, b, x, y, n) \
	__extension__({ \
		__auto_type ir_y_##n = (y); \
		__auto_type ir_x_##n = (x); \
		(f)(b, ir_x_##n, ir_y_##n); \
	})
#define IR_ORDERED_3(f, b, x, y, z, n) \
	__extension__({ \
		__auto_type ir_z_##n = (z); \
		__auto_type ir_y_##n = (y); \
		__auto_type ir_x_##n = (x); \
		(f)(b, ir_x_##n, ir_y_##n, ir_z_##n); \
	})
#define IR_ORDERED_MORE(f, b, x, y, n, ...) \
	__extension__({ \
		__auto_type ir_y_##n = (y); \
		__auto_type ir_x_##n = (x); \
		(f)(b, ir_x_##n, ir_y_##n, __VA_ARGS__); \
	})

/* All rows whose operands are registers and at most one integer. */
#include "jit/ir/ir_wrappers.h"

/* clang-format off */
IR_WX(fload_h, F) IR_WX(iload, I) IR_WX(iload_u8, I) IR_WX(iload_s8, I) IR_WX(iload_u16, I) IR_WST(fstore1, F)
	/* clang-format on */

	static inline ir_f ir_fconst(struct ir *b, float v)
{
	uint32_t u;
	memcpy(&u, &v, 4);
	return (ir_f){ ir_emit(b, IR_fconst, 0, 0, 0, 0, u) };
}
static inline void ir_endloop(struct ir *b) { ir_emit(b, IR_endloop, 0, 0, 0, 0, 0); }
static inline void ir_if(struct ir *b, ir_c holds) { ir_emit(b, IR_if, 0, holds.r, 0, 0, 0); }
static inline void ir_else(struct ir *b) { ir_emit(b, IR_else, 0, 0, 0, 0, 0); }
static inline void ir_endif(struct ir *b) { ir_emit(b, IR_endif, 0, 0, 0, 0, 0); }
/* Out of the innermost loop when it holds. */
static inline void ir_break(struct ir *b, ir_c holds) { ir_emit(b, IR_break, 0, holds.r, 0, 0, 0); }
static inline void ir_barrier_all(struct ir *b) { ir_emit(b, IR_barrier_all, 0, 0, 0, 0, 0); }
static inline void ir_barrier(struct ir *b) { ir_emit(b, IR_barrier, 0, 0, 0, 0, 0); }
static inline void ir_istore_8(struct ir *b, ir_a p, ir_i v, int32_t disp)
{
	ir_emit(b, IR_istore_8, 0, p.r, v.r, 0, ir_x(disp, 0, 0));
}
static inline ir_i ir_iload_s(struct ir *b, ir_a p, int32_t disp, unsigned stride)
{
	return (ir_i){ ir_emit(b, IR_iload_s, 0, p.r, 0, 0, ir_x(disp, 0, stride)) };
}
static inline void ir_prefetch2(struct ir *b, ir_a p, int32_t disp) { ir_emit(b, IR_prefetch2, 0, p.r, 0, 0, disp); }
static inline void ir_prefetch(struct ir *b, ir_a p, int32_t disp) { ir_emit(b, IR_prefetch, 0, p.r, 0, 0, disp); }
static inline ir_i ir_igather(struct ir *b, ir_a p, ir_i off, int32_t disp)
{
	return (ir_i){ ir_emit(b, IR_igather, 0, p.r, off.r, 0, disp) };
}
static inline ir_t ir_tconst(struct ir *b, float v)
{
	uint32_t u;
	memcpy(&u, &v, 4);
	return (ir_t){ ir_emit(b, IR_tconst, 0, 0, 0, 0, u) };
}
static inline ir_t ir_tload(struct ir *b, ir_a p, int32_t disp, unsigned stride, unsigned step)
{
	return (ir_t){ ir_emit(b, IR_tload, 0, p.r, 0, 0, ir_x(disp, step, stride)) };
}
static inline ir_t ir_tload_top(struct ir *b, ir_a p, int32_t disp, unsigned stride, unsigned step)
{
	return (ir_t){ ir_emit(b, IR_tload_top, 0, p.r, 0, 0, ir_x(disp, step, stride)) };
}
static inline ir_t ir_tload_h(struct ir *b, ir_a p, int32_t disp, unsigned stride, unsigned step)
{
	return (ir_t){ ir_emit(b, IR_tload_h, 0, p.r, 0, 0, ir_x(disp, step, stride)) };
}
static inline void ir_tstore(struct ir *b, ir_a p, ir_t v, int32_t disp, unsigned stride, unsigned step)
{
	ir_emit(b, IR_tstore, 0, p.r, v.r, 0, ir_x(disp, step, stride));
}
static inline void ir_tstore_top(struct ir *b, ir_a p, ir_t v, int32_t disp, unsigned stride, unsigned step)
{
	ir_emit(b, IR_tstore_top, 0, p.r, v.r, 0, ir_x(disp, step, stride));
}
/* vectors: how many 16 bytes a strip's second half lies behind its first */
static inline ir_o ir_oload(struct ir *b, ir_a p, int32_t disp, unsigned stride, unsigned vectors)
{
	return (ir_o){ ir_emit(b, IR_oload, 0, p.r, 0, 0, ir_x(disp, vectors, stride)) };
}
static inline ir_o ir_oload_top(struct ir *b, ir_a p, int32_t disp, unsigned stride, unsigned vectors)
{
	return (ir_o){ ir_emit(b, IR_oload_top, 0, p.r, 0, 0, ir_x(disp, vectors, stride)) };
}
/* vector: the first of the two */
static inline ir_o ir_oload_swizzled(struct ir *b, ir_a p, int32_t disp, unsigned vector)
{
	return (ir_o){ ir_emit(b, IR_oload_swizzled, 0, p.r, 0, 0, ir_x(disp, vector, IR_ROW_BYTES)) };
}
static inline void ir_ostore(struct ir *b, ir_a p, ir_o v, int32_t disp, unsigned stride, unsigned vectors)
{
	ir_emit(b, IR_ostore, 0, p.r, v.r, 0, ir_x(disp, vectors, stride));
}
static inline void ir_copy(struct ir *b, ir_a to, ir_a from, uint32_t bytes)
{
	ir_emit(b, IR_copy, 0, to.r, from.r, 0, bytes);
}
/* bytes: of a lane */
static inline void ir_copy_at(struct ir *b, ir_a to, ir_a from, ir_i offset, unsigned bytes)
{
	ir_emit(b, IR_copy_at, 0, to.r, from.r, offset.r, bytes);
}
static inline void ir_copies(struct ir *b) { ir_emit(b, IR_copies, 0, 0, 0, 0, 0); }
static inline void ir_copied(struct ir *b, uint32_t but) { ir_emit(b, IR_copied, 0, 0, 0, 0, but); }
/* n: lanes touched, 0 for all */
static inline ir_f ir_fload(struct ir *b, ir_a p, int32_t disp, unsigned n)
{
	return (ir_f){ ir_emit(b, IR_fload, 0, p.r, 0, 0, ir_x(disp, n, 0)) };
}
/* Of all lanes, stride bytes apart. */
static inline ir_f ir_fawait_s(struct ir *b, ir_a p, int32_t disp, unsigned stride)
{
	return (ir_f){ ir_emit(b, IR_fawait, 0, p.r, 0, 0, ir_x(disp, 0, stride)) };
}
static inline ir_f ir_fawait(struct ir *b, ir_a p, int32_t disp, unsigned n)
{
	return (ir_f){ ir_emit(b, IR_fawait, 0, p.r, 0, 0, ir_x(disp, n, 4)) };
}
static inline ir_f ir_fawait_at(struct ir *b, ir_a p, ir_i off, int32_t disp)
{
	return (ir_f){ ir_emit(b, IR_fawait_at, 0, p.r, off.r, 0, disp) };
}
/* Any v: bits that are IR_EMPTY become another NaN's. */
static inline void ir_fgive(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n)
{
	ir_i bits = ir_ibits(b, v), given = ir_iconst(b, IR_EMPTY_GIVEN), empty = ir_iconst(b, IR_EMPTY);
	ir_m is_empty = ir_ieq(b, bits, empty);
	ir_f some = ir_fbits(b, ir_isel(b, is_empty, given, bits));

	ir_emit(b, IR_fgive, 0, p.r, some.r, 0, ir_x(disp, n, 0));
}
static inline void ir_fstore(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n)
{
	ir_emit(b, IR_fstore, 0, p.r, v.r, 0, ir_x(disp, n, 0));
}
static inline void ir_fstore_h(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n)
{
	ir_emit(b, IR_fstore_h, 0, p.r, v.r, 0, ir_x(disp, n, 0));
}
static inline void ir_fstore_s(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n, unsigned stride)
{
	ir_emit(b, IR_fstore_s, 0, p.r, v.r, 0, ir_x(disp, n, stride));
}
static inline void ir_idots(struct ir *b, ir_a sums, int32_t disp, ir_a x, ir_a w, unsigned rows)
{
	ir_emit(b, IR_idots, 0, sums.r, x.r, w.r, ir_x(disp, rows, 0));
}
static inline void ir_fstore_hs(struct ir *b, ir_a p, ir_f v, int32_t disp, unsigned n, unsigned stride)
{
	ir_emit(b, IR_fstore_hs, 0, p.r, v.r, 0, ir_x(disp, n, stride));
}

static inline void ir_set_f(struct ir *b, ir_f var, ir_f v) { ir_set(b, var.r, v.r); }
static inline void ir_set_i(struct ir *b, ir_i var, ir_i v) { ir_set(b, var.r, v.r); }
static inline void ir_set_m(struct ir *b, ir_m var, ir_m v) { ir_set(b, var.r, v.r); }
static inline void ir_set_c(struct ir *b, ir_c var, ir_c v) { ir_set(b, var.r, v.r); }
static inline void ir_set_s(struct ir *b, ir_s var, ir_s v) { ir_set(b, var.r, v.r); }
static inline void ir_set_a(struct ir *b, ir_a var, ir_a v) { ir_set(b, var.r, v.r); }
static inline void ir_set_t(struct ir *b, ir_t var, ir_t v) { ir_set(b, var.r, v.r); }
/* A variable with a first value. The value's handle stays usable (a move is always emitted). */
static inline ir_f ir_var_f(struct ir *b, ir_f v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_f32);
	ir_emit(b, IR_fmov, r, v.r, 0, 0, 0);
	return (ir_f){ r };
}
static inline ir_i ir_var_i(struct ir *b, ir_i v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_i32);
	ir_emit(b, IR_imov, r, v.r, 0, 0, 0);
	return (ir_i){ r };
}
static inline ir_m ir_var_m(struct ir *b, ir_m v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_m);
	ir_emit(b, IR_mmov, r, v.r, 0, 0, 0);
	return (ir_m){ r };
}
static inline ir_c ir_var_c(struct ir *b, ir_c v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_c);
	ir_emit(b, IR_cmov, r, v.r, 0, 0, 0);
	return (ir_c){ r };
}
static inline ir_s ir_var_s(struct ir *b, ir_s v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_s);
	ir_emit(b, IR_smov, r, v.r, 0, 0, 0);
	return (ir_s){ r };
}
static inline ir_a ir_var_a(struct ir *b, ir_a v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_a);
	ir_emit(b, IR_amov, r, v.r, 0, 0, 0);
	return (ir_a){ r };
}
static inline ir_t ir_var_t(struct ir *b, ir_t v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_t);
	ir_emit(b, IR_tmov, r, v.r, 0, 0, 0);
	return (ir_t){ r };
}

#define ir_igather(b, x, y, ...) IR_LAST_FIRST_MORE(ir_igather, b, x, y, __VA_ARGS__)
#define ir_copy_at(b, x, y, ...) IR_LAST_FIRST_MORE(ir_copy_at, b, x, y, __VA_ARGS__)
#define ir_copy(b, x, y, ...) IR_LAST_FIRST_MORE(ir_copy, b, x, y, __VA_ARGS__)
#define ir_istore_8(b, x, y, ...) IR_LAST_FIRST_MORE(ir_istore_8, b, x, y, __VA_ARGS__)
#define ir_fstore1(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fstore1, b, x, y, __VA_ARGS__)
#define ir_fawait_at(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fawait_at, b, x, y, __VA_ARGS__)
#define ir_fgive(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fgive, b, x, y, __VA_ARGS__)
#define ir_fstore(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fstore, b, x, y, __VA_ARGS__)
#define ir_fstore_h(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fstore_h, b, x, y, __VA_ARGS__)
#define ir_fstore_s(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fstore_s, b, x, y, __VA_ARGS__)
#define ir_fstore_hs(b, x, y, ...) IR_LAST_FIRST_MORE(ir_fstore_hs, b, x, y, __VA_ARGS__)
#define ir_tstore(b, x, y, ...) IR_LAST_FIRST_MORE(ir_tstore, b, x, y, __VA_ARGS__)
#define ir_tstore_top(b, x, y, ...) IR_LAST_FIRST_MORE(ir_tstore_top, b, x, y, __VA_ARGS__)
#define ir_ostore(b, x, y, ...) IR_LAST_FIRST_MORE(ir_ostore, b, x, y, __VA_ARGS__)

#endif
