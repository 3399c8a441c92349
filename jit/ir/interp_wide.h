/* jit/ir/interp_wide.h - the lane loops of the interpreter's rows with lanes of 64 bits: a part of interp.c, whose
 * macros it uses. */
#ifndef JIT_IR_INTERP_WIDE_H
#define JIT_IR_INTERP_WIDE_H

/* Rows of lanes of 64 bits, some of whose operands, or whose result, may have 32: what each is its letter says. */
#define WIDE_v(name, p, T, FROM) \
	const uint64_t UNUSED name##u = ((const uint64_t *)(p))[l]; \
	const int64_t UNUSED name##i = (int64_t)name##u; \
	const T UNUSED name = FROM(name##u);
#define WIDE_w WIDE_v
#define WIDE_x WIDE_v
#define WIDE_d WIDE_v
#define NARROW_OPERAND(name, p, T, FROM) \
	const uint32_t UNUSED name##u = ((const uint32_t *)(p))[l]; \
	const int32_t UNUSED name##i = (int32_t)name##u; \
	const T UNUSED name = FROM(name##u);
#define WIDE_f32(name, p, T, FROM) NARROW_OPERAND(name, p, float, FROM_F32)
#define WIDE_i32(name, p, T, FROM) NARROW_OPERAND(name, p, int32_t, FROM_I32)
#define WIDE_q(name, p, T, FROM) const bool UNUSED name##m = ((const uint32_t *)(p))[l] != 0;
#define WIDE_s(name, p, T, FROM)
#define WIDE__(name, p, T, FROM)
#define FROM_F64(bits) bits_f64(bits)
#define FROM_I64(bits) (int64_t)(bits)
#define GIVE_WIDE(x) ((uint64_t *)d)[l] = (x)
#define GIVE_NARROW(x) ((uint32_t *)d)[l] = (x)
#define GIVE_v_f64(x) GIVE_WIDE(f64_bits(x))
#define GIVE_w_f64(x) GIVE_WIDE((uint64_t)(int64_t)(x))
#define GIVE_v_i64(x) GIVE_WIDE((uint64_t)(int64_t)(x))
#define GIVE_q_f64(x) GIVE_NARROW(BITS_MASK(x))
#define GIVE_q_i64(x) GIVE_NARROW(BITS_MASK(x))
#define GIVE_f32_f64(x) GIVE_NARROW(f32_bits(x))
#define GIVE_i32_f64(x) GIVE_NARROW(BITS_I32(x))
#define GIVE_i32_i64(x) GIVE_NARROW(BITS_I32(x))
#define WIDE_LANES_OF(GIVE, A, B, C, T, FROM, expression) \
	{ \
		void *d = INTERP_REG(in->dst); \
		const void UNUSED *pa = INTERP_REG(in->a), *pb = INTERP_REG(in->b), *pc = INTERP_REG(in->c); \
		const int64_t UNUSED as = INTERP_SCALAR(in->a), imm = in->imm; \
		const T UNUSED k = FROM((uint64_t)imm); \
		typedef T UNUSED lane_type; \
		EACH_LANE { A(a, pa, T, FROM) B(b, pb, T, FROM) C(c, pc, T, FROM) GIVE(expression); } \
		break; \
	}

#endif
