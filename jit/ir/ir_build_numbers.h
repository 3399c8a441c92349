/* jit/ir/ir_build_numbers.h - more of ir_build.h's wrappers: constants, memory and variables of lanes of 64 bits. */
#ifndef JIT_IR_BUILD_NUMBERS_H
#define JIT_IR_BUILD_NUMBERS_H

#include "jit/ir/ir_build.h"

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

#endif
