/* jit/x86/vector_rules.c - which instruction does which operation on vectors, on which target.
 *
 * Owns: the tables. That of AVX2 is whole; the others have what differs, and the last one that fits the target wins.
 */
#include "jit/x86/select_state.h"

#define BINARY(x) \
	{ \
		sel_binary, X86_##x, LIR_OP3, LIR_B, 0, false \
	}
#define BINARY_EITHER(x) \
	{ \
		sel_binary, X86_##x, LIR_OP3C, LIR_A | LIR_B, 0, false \
	}
#define COMPARE(x, how) \
	{ \
		sel_binary, X86_##x, LIR_OP3I, LIR_B, how, false \
	}
#define UNARY(x) \
	{ \
		sel_unary, X86_##x, LIR_OP2, LIR_A, 0, false \
	}
#define SHIFT(x) \
	{ \
		sel_unary, X86_##x, LIR_OP2I, 0, 0, false \
	}
#define LOAD(x) \
	{ \
		sel_load, X86_##x, LIR_OP2, 0, 0, false \
	}
#define MOVE \
	{ \
		sel_move, X86_VMOVAPS, LIR_MOV, 0, 0, false \
	}
#define RULE(fn, x) \
	{ \
		fn, X86_##x, 0, 0, 0, false \
	}

/* The mode, and 8: no exceptions. */
#define ROUND(x, how) \
	{ \
		sel_round, X86_##x, LIR_OP2I, 0, how, false \
	}
#define COMPARE_INTO_MASK(x, how) \
	{ \
		sel_binary, X86_##x, LIR_MCMPI, LIR_B, how, false \
	}

static const struct sel_rule avx2[IR_ROWS] = {
	[IR_fconst] = RULE(sel_vector_constant, VMOVAPS),
	[IR_iconst] = RULE(sel_vector_constant, VMOVAPS),
	[IR_ilane] = RULE(sel_vector_constant, VMOVAPS),
	[IR_isplat] = RULE(sel_splat, VPBROADCASTD),
	[IR_fadd] = BINARY_EITHER(VADDPS),
	[IR_fsub] = BINARY(VSUBPS),
	[IR_fmul] = BINARY_EITHER(VMULPS),
	[IR_ffma] = { sel_fma, X86_VFMADD231PS, LIR_FMA, LIR_A | LIR_B | LIR_C, 0, false },
	[IR_fdiv] = BINARY(VDIVPS),
	[IR_fsqrt] = UNARY(VSQRTPS),
	[IR_fmin] = BINARY(VMINPS),
	[IR_fmax] = BINARY(VMAXPS),
	[IR_fabs] = { sel_with_constant, X86_VANDPS, LIR_OP3C, LIR_A, 0x7fffffff, false },
	[IR_fneg] = { sel_with_constant, X86_VXORPS, LIR_OP3C, LIR_A, 0x80000000, false },
	[IR_flt] = COMPARE(VCMPPS, 0x11),
	[IR_fle] = COMPARE(VCMPPS, 0x12), /* ordered, quiet */
	[IR_fsel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0, false },
	[IR_isel] = { sel_select, X86_VBLENDVPS, LIR_BLEND, LIR_B, 0, false },
	[IR_f2i] = UNARY(VCVTPS2DQ),
	[IR_i2f] = UNARY(VCVTDQ2PS),
	[IR_fbits] = MOVE,
	[IR_ibits] = MOVE,
	[IR_fmov] = MOVE,
	[IR_imov] = MOVE,
	[IR_mmov] = MOVE,
	[IR_iadd] = BINARY_EITHER(VPADDD),
	[IR_isub] = BINARY(VPSUBD),
	[IR_imul] = BINARY_EITHER(VPMULLD),
	[IR_iand] = { sel_and, X86_VPAND, LIR_OP3C, LIR_A | LIR_B, X86_VPANDN, false },
	[IR_ior] = BINARY_EITHER(VPOR),
	[IR_ixor] = BINARY_EITHER(VPXOR),
	[IR_ibsel] = RULE(sel_choose_bits, VPOR),
	[IR_ishl] = SHIFT(VPSLLD),
	[IR_ishr] = SHIFT(VPSRLD),
	[IR_isar] = SHIFT(VPSRAD),
	[IR_irotl] = RULE(sel_rotate, VPOR),
	[IR_ishlv] = BINARY(VPSLLVD),
	[IR_ishrv] = BINARY(VPSRLVD),
	[IR_imin] = BINARY_EITHER(VPMINSD),
	[IR_imax] = BINARY_EITHER(VPMAXSD),
	[IR_ieq] = BINARY_EITHER(VPCMPEQD),
	[IR_igt] = BINARY(VPCMPGTD),
	[IR_umin] = BINARY_EITHER(VPMINUD),
	[IR_umax] = BINARY_EITHER(VPMAXUD),
	[IR_isarv] = BINARY(VPSRAVD),
	[IR_ilt] = RULE(sel_less, VPCMPGTD),
	[IR_ile] = RULE(sel_not_more, VPCMPGTD),
	[IR_ine] = RULE(sel_not_equal, VPCMPEQD),
	[IR_ult] = RULE(sel_below, VPMINUD),
	[IR_ule] = RULE(sel_not_above, VPMINUD),
	[IR_feq] = COMPARE(VCMPPS, 0x00),
	[IR_fne] = COMPARE(VCMPPS, 0x04),
	[IR_imulh] = RULE(sel_mul_high, VPMULDQ),
	[IR_umulh] = RULE(sel_mul_high, VPMULUDQ),
	[IR_iones] = RULE(sel_ones, VPMADDWD),
	[IR_iclz] = RULE(sel_leading_zeros, VPMADDWD),
	[IR_idiv] = RULE(sel_divide, VDIVPD),
	[IR_irem] = RULE(sel_divide, VDIVPD),
	[IR_udiv] = RULE(sel_divide, VDIVPD),
	[IR_urem] = RULE(sel_divide, VDIVPD),
	[IR_fround] = ROUND(VROUNDPS, 8),
	[IR_ffloor] = ROUND(VROUNDPS, 9),
	[IR_fceil] = ROUND(VROUNDPS, 10),
	[IR_ftrunc] = ROUND(VROUNDPS, 11),
	[IR_u2f] = RULE(sel_from_unsigned, VCVTDQ2PS),
	[IR_f2i_cut] = RULE(sel_to_int_cut, VCVTTPS2DQ),
	[IR_f2u_cut] = RULE(sel_to_unsigned_cut, VCVTTPS2DQ),
	[IR_mxor] = BINARY_EITHER(VPXOR),
	[IR_dot4] = RULE(sel_dot4, VPMADDUBSW),
	[IR_dot4u] = RULE(sel_dot4u, VPAND),
	[IR_dot2b] = { sel_binary, X86_VPMADDUBSW, LIR_OP3, LIR_B, 0, true },
	[IR_iadd_16] = { sel_binary, X86_VPADDW, LIR_OP3C, LIR_A | LIR_B, 0, true },
	[IR_dot2h] = { sel_dot2h, X86_VPMADDWD, LIR_OP3C, LIR_B, 0, true },
	[IR_ilut16] = { sel_table, X86_VPSHUFB, LIR_OP3, LIR_A, 0, true },
	[IR_mand] = BINARY_EITHER(VPAND),
	[IR_mor] = BINARY_EITHER(VPOR),
	[IR_mnot] = { sel_with_constant, X86_VPXOR, LIR_OP3C, 0, 0xffffffff, false },
	[IR_fxor] = RULE(sel_fxor, VPERM2F128),

	[IR_fload] = RULE(sel_fload, VMOVUPS),
	[IR_fawait] = RULE(sel_fawait, VMOVUPS),
	[IR_fawait_at] = RULE(sel_gather, VPGATHERDD),
	[IR_fload_h] = LOAD(VCVTPH2PS),
	[IR_iload] = RULE(sel_fload, VMOVUPS),
	[IR_iload_u8] = LOAD(VPMOVZXBD),
	[IR_iload_s8] = LOAD(VPMOVSXBD),
	[IR_iload_u16] = LOAD(VPMOVZXWD),
	[IR_fbcast] = LOAD(VBROADCASTSS),
	[IR_ibcast] = LOAD(VPBROADCASTD),
	[IR_fbcast_h] = RULE(sel_fbcast_h, VCVTPH2PS),
	[IR_igather] = RULE(sel_gather, VPGATHERDD),
	[IR_iload_s] = RULE(sel_strided, VPGATHERDD),
	[IR_fhalf] = RULE(sel_fhalf, VCVTPH2PS),
	[IR_fgive] = RULE(sel_fstore, VMOVUPS),
	[IR_fstore] = RULE(sel_fstore, VMOVUPS),
	[IR_fstore_h] = RULE(sel_fstore_h, VCVTPS2PH),
	[IR_istore_8] = RULE(sel_istore_8, VMOVQ),
	[IR_fstore_s] = RULE(sel_fstore_s, VEXTRACTPS),
	[IR_fstore_hs] = RULE(sel_fstore_hs, VPEXTRW),
	[IR_fstore1] = RULE(sel_fstore1, VMOVSS),
	[IR_prefetch] = RULE(sel_prefetch, PREFETCHT0),
	[IR_prefetch2] = RULE(sel_prefetch, PREFETCHT1),
};

/* What differs with mask registers and 512 bits. */
static const struct sel_rule avx512[IR_ROWS] = {
	[IR_flt] = { sel_binary, X86_VCMPPS, LIR_MCMPI, LIR_B, 0x11, false },
	[IR_fle] = { sel_binary, X86_VCMPPS, LIR_MCMPI, LIR_B, 0x12, false },
	[IR_ieq] = { sel_binary, X86_VPCMPEQD, LIR_MCMP, LIR_B, 0, false },
	[IR_igt] = { sel_binary, X86_VPCMPGTD, LIR_MCMP, LIR_B, 0, false },
	[IR_feq] = COMPARE_INTO_MASK(VCMPPS, 0x00),
	[IR_fne] = COMPARE_INTO_MASK(VCMPPS, 0x04),
	[IR_ilt] = COMPARE_INTO_MASK(VPCMPD, 1),
	[IR_ile] = COMPARE_INTO_MASK(VPCMPD, 2),
	[IR_ine] = COMPARE_INTO_MASK(VPCMPD, 4),
	[IR_ult] = COMPARE_INTO_MASK(VPCMPUD, 1),
	[IR_ule] = COMPARE_INTO_MASK(VPCMPUD, 2),
	[IR_mxor] = { sel_binary, X86_KXORW, LIR_MOP, 0, 0, false },
	[IR_fround] = ROUND(VRNDSCALEPS, 8),
	[IR_ffloor] = ROUND(VRNDSCALEPS, 9),
	[IR_fceil] = ROUND(VRNDSCALEPS, 10),
	[IR_ftrunc] = ROUND(VRNDSCALEPS, 11),
	[IR_u2f] = UNARY(VCVTUDQ2PS),
	[IR_fsel] = { sel_select, X86_VBLENDMPS, LIR_MBLEND, LIR_B, 0, false },
	[IR_isel] = { sel_select, X86_VBLENDMPS, LIR_MBLEND, LIR_B, 0, false },
	[IR_mand] = { sel_binary, X86_KANDW, LIR_MOP, 0, 0, false },
	[IR_mor] = { sel_binary, X86_KORW, LIR_MOP, 0, 0, false },
	[IR_mnot] = { sel_unary, X86_KNOTW, LIR_MNOT, 0, 0, false },
	[IR_mmov] = { sel_unary, X86_KMOVW, LIR_MMOV, 0, 0, false },
	[IR_iand] = { sel_and, X86_VPANDD, LIR_OP3C, LIR_A | LIR_B, X86_VPANDND, false },
	[IR_ior] = BINARY_EITHER(VPORD),
	[IR_ixor] = BINARY_EITHER(VPXORD),
	[IR_ibsel] = RULE(sel_ternary, VPTERNLOGD),
	[IR_irotl] = SHIFT(VPROLD),
	[IR_dot4u] = RULE(sel_dot4u, VPANDD),
	[IR_fxor] = RULE(sel_fxor, VSHUFF32X4),
	[IR_istore_8] = RULE(sel_istore_8_wide, VPMOVDB),
};

static const struct sel_rule vnni[IR_ROWS] = {
	[IR_dot4u] = { sel_dot_at_once, X86_VPDPBUSD, LIR_DOT, LIR_B, 0, false },
	[IR_dot2h] = { sel_dot_at_once, X86_VPDPWSSD, LIR_DOT, LIR_B, 0, false },
};

static const struct sel_rule dot2[IR_ROWS] = {
	[IR_fdot2] = { sel_dot_at_once, X86_VDPBF16PS, LIR_DOT, LIR_B, 0, false },
};

static const struct sel_rule tiles[IR_ROWS] = { [IR_idots] = RULE(sel_dots, TDPBSSD) };

static void overlay(struct sel *s, const struct sel_rule *rules)
{
	for (unsigned op = 0; op < IR_ROWS; op++)
		if (rules[op].select)
			s->rules[op] = rules[op];
}

void sel_vector_rules(struct sel *s)
{
	overlay(s, avx2);
	if (s->target->mask_regs)
		overlay(s, avx512);
	if (s->target->has_vnni)
		overlay(s, vnni);
	if (s->target->has_dot2)
		overlay(s, dot2);
	if (s->target->has_tiles)
		overlay(s, tiles);
}
