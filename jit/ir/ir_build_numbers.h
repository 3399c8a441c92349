/* jit/ir/ir_build_numbers.h - more of ir_build.h's wrappers: quotients, comparisons and rounding of lanes, and lanes of
 * 64 bits. Named alike, with the same order of operands.
 */
#ifndef JIT_IR_BUILD_NUMBERS_H
#define JIT_IR_BUILD_NUMBERS_H

#include "jit/ir/ir_build.h"

/* clang-format off */
IR_W2(idiv, I, I, I) IR_W2(irem, I, I, I) IR_W2(udiv, I, I, I) IR_W2(urem, I, I, I) IR_W2(umin, I, I, I)
IR_W2(umax, I, I, I) IR_W2(imulh, I, I, I) IR_W2(umulh, I, I, I) IR_W2(isarv, I, I, I) IR_W1(iones, I, I)
IR_W1(iclz, I, I) IR_W2(ilt, M, I, I) IR_W2(ile, M, I, I) IR_W2(ine, M, I, I) IR_W2(ult, M, I, I)
IR_W2(ule, M, I, I) IR_W2(feq, M, F, F) IR_W2(fne, M, F, F) IR_W1(fround, F, F) IR_W1(ffloor, F, F)
IR_W1(fceil, F, F) IR_W1(ftrunc, F, F) IR_W1(u2f, F, I) IR_W1(f2i_cut, I, F) IR_W1(f2u_cut, I, F)
IR_W2(mxor, M, M, M) IR_W2(cxor, C, C, C) IR_W2(dadd, D, D, D) IR_W2(dsub, D, D, D) IR_W2(dmul, D, D, D)
IR_W3(dfma, D, D, D, D) IR_W2(ddiv, D, D, D) IR_W1(dsqrt, D, D) IR_W2(dmin, D, D, D) IR_W2(dmax, D, D, D)
IR_W1(dabs, D, D) IR_W1(dneg, D, D) IR_W1(dround, D, D) IR_W1(dfloor, D, D) IR_W1(dceil, D, D) IR_W1(dtrunc, D, D)
IR_W2(dlt, M, D, D) IR_W2(dle, M, D, D) IR_W2(deq, M, D, D) IR_W2(dne, M, D, D) IR_W3(dsel, D, M, D, D)
IR_W1(dbits, D, L) IR_W1(lbits, L, D) IR_W1(f2d, D, F) IR_W1(d2f, F, D) IR_W1(i2d, D, I) IR_W1(u2d, D, I)
IR_W1(d2i_cut, I, D) IR_W1(d2u_cut, I, D) IR_W1(l2d, D, L) IR_W1(ul2d, D, L) IR_W1(d2l_cut, L, D)
IR_W1(d2ul_cut, L, D) IR_W1(i2l, L, I) IR_W1(u2l, L, I) IR_W1(l2i, I, L) IR_W1(lsplat, L, S) IR_W2(ladd, L, L, L)
IR_W2(lsub, L, L, L) IR_W2(lmul, L, L, L) IR_W2(land, L, L, L) IR_W2(lor, L, L, L) IR_W2(lxor, L, L, L)
IR_WI(lshl, L, L) IR_WI(lshr, L, L) IR_WI(lsar, L, L) IR_W2(lshlv, L, L, L) IR_W2(lshrv, L, L, L)
IR_W2(lsarv, L, L, L) IR_W2(lmin, L, L, L) IR_W2(lmax, L, L, L) IR_W2(lumin, L, L, L) IR_W2(lumax, L, L, L)
IR_W2(llt, M, L, L) IR_W2(lle, M, L, L) IR_W2(leq, M, L, L) IR_W2(lne, M, L, L) IR_W2(lult, M, L, L)
IR_W2(lule, M, L, L) IR_W3(lsel, L, M, L, L) IR_WC(lconst, L) IR_WI(dxor, D, D) IR_WI(dbcast, D, A)
IR_WI(lbcast, L, A)
	/* clang-format on */

	static inline ir_d ir_dconst(struct ir *b, double v)
{
	uint64_t u;
	memcpy(&u, &v, 8);
	return (ir_d){ ir_emit(b, IR_dconst, 0, 0, 0, 0, (int64_t)u) };
}
/* n: lanes touched, 0 for all */
static inline ir_d ir_dload(struct ir *b, ir_a p, int32_t disp, unsigned n)
{
	return (ir_d){ ir_emit(b, IR_dload, 0, p.r, 0, 0, ir_x(disp, n, 0)) };
}
static inline ir_l ir_lload(struct ir *b, ir_a p, int32_t disp, unsigned n)
{
	return (ir_l){ ir_emit(b, IR_lload, 0, p.r, 0, 0, ir_x(disp, n, 0)) };
}
static inline void ir_dstore(struct ir *b, ir_a p, ir_d v, int32_t disp, unsigned n)
{
	ir_emit(b, IR_dstore, 0, p.r, v.r, 0, ir_x(disp, n, 0));
}
static inline void ir_lstore(struct ir *b, ir_a p, ir_l v, int32_t disp, unsigned n)
{
	ir_emit(b, IR_lstore, 0, p.r, v.r, 0, ir_x(disp, n, 0));
}
static inline void ir_set_d(struct ir *b, ir_d var, ir_d v) { ir_set(b, var.r, v.r); }
static inline void ir_set_l(struct ir *b, ir_l var, ir_l v) { ir_set(b, var.r, v.r); }
static inline ir_d ir_var_d(struct ir *b, ir_d v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_f64);
	ir_emit(b, IR_dmov, r, v.r, 0, 0, 0);
	return (ir_d){ r };
}
static inline ir_l ir_var_l(struct ir *b, ir_l v)
{
	uint16_t r = ir_new_var(b, IR_TYPE_i64);
	ir_emit(b, IR_lmov, r, v.r, 0, 0, 0);
	return (ir_l){ r };
}

#define ir_idiv(b, x, y) IR_LAST_FIRST_2(ir_idiv, b, x, y)
#define ir_irem(b, x, y) IR_LAST_FIRST_2(ir_irem, b, x, y)
#define ir_udiv(b, x, y) IR_LAST_FIRST_2(ir_udiv, b, x, y)
#define ir_urem(b, x, y) IR_LAST_FIRST_2(ir_urem, b, x, y)
#define ir_umin(b, x, y) IR_LAST_FIRST_2(ir_umin, b, x, y)
#define ir_umax(b, x, y) IR_LAST_FIRST_2(ir_umax, b, x, y)
#define ir_imulh(b, x, y) IR_LAST_FIRST_2(ir_imulh, b, x, y)
#define ir_umulh(b, x, y) IR_LAST_FIRST_2(ir_umulh, b, x, y)
#define ir_isarv(b, x, y) IR_LAST_FIRST_2(ir_isarv, b, x, y)
#define ir_ilt(b, x, y) IR_LAST_FIRST_2(ir_ilt, b, x, y)
#define ir_ile(b, x, y) IR_LAST_FIRST_2(ir_ile, b, x, y)
#define ir_ine(b, x, y) IR_LAST_FIRST_2(ir_ine, b, x, y)
#define ir_ult(b, x, y) IR_LAST_FIRST_2(ir_ult, b, x, y)
#define ir_ule(b, x, y) IR_LAST_FIRST_2(ir_ule, b, x, y)
#define ir_feq(b, x, y) IR_LAST_FIRST_2(ir_feq, b, x, y)
#define ir_fne(b, x, y) IR_LAST_FIRST_2(ir_fne, b, x, y)
#define ir_mxor(b, x, y) IR_LAST_FIRST_2(ir_mxor, b, x, y)
#define ir_cxor(b, x, y) IR_LAST_FIRST_2(ir_cxor, b, x, y)
#define ir_dadd(b, x, y) IR_LAST_FIRST_2(ir_dadd, b, x, y)
#define ir_dsub(b, x, y) IR_LAST_FIRST_2(ir_dsub, b, x, y)
#define ir_dmul(b, x, y) IR_LAST_FIRST_2(ir_dmul, b, x, y)
#define ir_dfma(b, x, y, z) IR_LAST_FIRST_3(ir_dfma, b, x, y, z)
#define ir_ddiv(b, x, y) IR_LAST_FIRST_2(ir_ddiv, b, x, y)
#define ir_dmin(b, x, y) IR_LAST_FIRST_2(ir_dmin, b, x, y)
#define ir_dmax(b, x, y) IR_LAST_FIRST_2(ir_dmax, b, x, y)
#define ir_dlt(b, x, y) IR_LAST_FIRST_2(ir_dlt, b, x, y)
#define ir_dle(b, x, y) IR_LAST_FIRST_2(ir_dle, b, x, y)
#define ir_deq(b, x, y) IR_LAST_FIRST_2(ir_deq, b, x, y)
#define ir_dne(b, x, y) IR_LAST_FIRST_2(ir_dne, b, x, y)
#define ir_dsel(b, x, y, z) IR_LAST_FIRST_3(ir_dsel, b, x, y, z)
#define ir_ladd(b, x, y) IR_LAST_FIRST_2(ir_ladd, b, x, y)
#define ir_lsub(b, x, y) IR_LAST_FIRST_2(ir_lsub, b, x, y)
#define ir_lmul(b, x, y) IR_LAST_FIRST_2(ir_lmul, b, x, y)
#define ir_land(b, x, y) IR_LAST_FIRST_2(ir_land, b, x, y)
#define ir_lor(b, x, y) IR_LAST_FIRST_2(ir_lor, b, x, y)
#define ir_lxor(b, x, y) IR_LAST_FIRST_2(ir_lxor, b, x, y)
#define ir_lshlv(b, x, y) IR_LAST_FIRST_2(ir_lshlv, b, x, y)
#define ir_lshrv(b, x, y) IR_LAST_FIRST_2(ir_lshrv, b, x, y)
#define ir_lsarv(b, x, y) IR_LAST_FIRST_2(ir_lsarv, b, x, y)
#define ir_lmin(b, x, y) IR_LAST_FIRST_2(ir_lmin, b, x, y)
#define ir_lmax(b, x, y) IR_LAST_FIRST_2(ir_lmax, b, x, y)
#define ir_lumin(b, x, y) IR_LAST_FIRST_2(ir_lumin, b, x, y)
#define ir_lumax(b, x, y) IR_LAST_FIRST_2(ir_lumax, b, x, y)
#define ir_llt(b, x, y) IR_LAST_FIRST_2(ir_llt, b, x, y)
#define ir_lle(b, x, y) IR_LAST_FIRST_2(ir_lle, b, x, y)
#define ir_leq(b, x, y) IR_LAST_FIRST_2(ir_leq, b, x, y)
#define ir_lne(b, x, y) IR_LAST_FIRST_2(ir_lne, b, x, y)
#define ir_lult(b, x, y) IR_LAST_FIRST_2(ir_lult, b, x, y)
#define ir_lule(b, x, y) IR_LAST_FIRST_2(ir_lule, b, x, y)
#define ir_lsel(b, x, y, z) IR_LAST_FIRST_3(ir_lsel, b, x, y, z)

#endif
