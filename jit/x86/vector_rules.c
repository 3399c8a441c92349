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
	[IR_istore_16] = RULE(sel_istore_16, VMOVUPS),
	[IR_fstore_s] = RULE(sel_fstore_s, VEXTRACTPS),
	[IR_fstore_hs] = RULE(sel_fstore_hs, VPEXTRW),
	[IR_fstore1] = RULE(sel_fstore1, VMOVSS),
	[IR_igather_32] = RULE(sel_gather_words, VPGATHERDD),
	[IR_igather_8] = RULE(sel_gather_parts, VPGATHERDD),
	[IR_igather_16] = RULE(sel_gather_parts, VPGATHERDD),
	[IR_lgather] = RULE(sel_gather_wide, VPGATHERDD),
	[IR_iscatter_32] = RULE(sel_each_lane, VPEXTRD),
	[IR_iscatter_8] = RULE(sel_each_lane, VPEXTRB),
	[IR_iscatter_16] = RULE(sel_each_lane, VPEXTRW),
	[IR_lscatter] = RULE(sel_each_lane, VPEXTRQ),
	[IR_iatomic_add] = RULE(sel_each_lane, ADD),
	[IR_latomic_add] = RULE(sel_each_lane, ADD),
	[IR_iatomic_min] = RULE(sel_each_lane, XCHG),
	[IR_iatomic_max] = RULE(sel_each_lane, XCHG),
	[IR_uatomic_min] = RULE(sel_each_lane, XCHG),
	[IR_uatomic_max] = RULE(sel_each_lane, XCHG),
	[IR_iatomic_and] = RULE(sel_each_lane, AND),
	[IR_iatomic_or] = RULE(sel_each_lane, OR),
	[IR_prefetch] = RULE(sel_prefetch, PREFETCHT0),
	[IR_prefetch2] = RULE(sel_prefetch, PREFETCHT1),
};

/* Lanes of 64 bits. */
#define WIDE(fn, x, form, imm) \
	{ \
		fn, X86_##x, LIR_##form, 0, imm, false \
	}
#define WIDE_BINARY(x) WIDE(sel_wide_binary, x, OP3, 0)
#define WIDE_EITHER(x) WIDE(sel_wide_binary, x, OP3C, 0)
#define WIDE_COMPARE(how) WIDE(sel_wide_compare, VCMPPD, OP3I, how)
#define WIDE_INTS(how) WIDE(sel_wide_compare_ints, VPCMPQ, OP3I, how)
static const struct sel_rule wide[IR_ROWS] = {
	[IR_dconst] = RULE(sel_wide_constants, VMOVAPS),
	[IR_lconst] = RULE(sel_wide_constants, VMOVAPS),
	[IR_dmov] = RULE(sel_wide_move, VMOVAPS),
	[IR_lmov] = RULE(sel_wide_move, VMOVAPS),
	[IR_dbits] = RULE(sel_wide_move, VMOVAPS),
	[IR_lbits] = RULE(sel_wide_move, VMOVAPS),
	[IR_lsplat] = RULE(sel_wide_splat, VPBROADCASTQ),
	[IR_dxor] = RULE(sel_wide_exchange, VPERMQ),
	[IR_dadd] = WIDE_EITHER(VADDPD),
	[IR_dsub] = WIDE_BINARY(VSUBPD),
	[IR_dmul] = WIDE_EITHER(VMULPD),
	[IR_ddiv] = WIDE_BINARY(VDIVPD),
	[IR_dmin] = WIDE_BINARY(VMINPD),
	[IR_dmax] = WIDE_BINARY(VMAXPD),
	[IR_dfma] = RULE(sel_wide_fma, VFMADD231PD),
	[IR_dsqrt] = WIDE(sel_wide_unary, VSQRTPD, OP2, 0),
	[IR_dabs] = RULE(sel_wide_sign, VANDPS),
	[IR_dneg] = RULE(sel_wide_sign, VXORPS),
	[IR_dround] = WIDE(sel_wide_unary, VROUNDPD, OP2I, 8),
	[IR_dfloor] = WIDE(sel_wide_unary, VROUNDPD, OP2I, 9),
	[IR_dceil] = WIDE(sel_wide_unary, VROUNDPD, OP2I, 10),
	[IR_dtrunc] = WIDE(sel_wide_unary, VROUNDPD, OP2I, 11),
	[IR_dlt] = WIDE_COMPARE(0x11),
	[IR_dle] = WIDE_COMPARE(0x12),
	[IR_deq] = WIDE_COMPARE(0x00),
	[IR_dne] = WIDE_COMPARE(0x04),
	[IR_dsel] = RULE(sel_wide_select, VBLENDVPD),
	[IR_lsel] = RULE(sel_wide_select, VBLENDVPD),
	[IR_ladd] = WIDE_EITHER(VPADDQ),
	[IR_lsub] = WIDE_BINARY(VPSUBQ),
	[IR_lmul] = RULE(sel_wide_multiply, VPMULUDQ),
	[IR_land] = WIDE_EITHER(VPAND),
	[IR_lor] = WIDE_EITHER(VPOR),
	[IR_lxor] = WIDE_EITHER(VPXOR),
	[IR_lshl] = WIDE(sel_wide_unary, VPSLLQ, OP2I, 0),
	[IR_lshr] = WIDE(sel_wide_unary, VPSRLQ, OP2I, 0),
	[IR_lsar] = RULE(sel_wide_shift_down, VPSRLQ),
	[IR_lshlv] = WIDE_BINARY(VPSLLVQ),
	[IR_lshrv] = WIDE_BINARY(VPSRLVQ),
	[IR_lsarv] = RULE(sel_wide_shift_down, VPSRLVQ),
	[IR_lmin] = RULE(sel_wide_min, VBLENDVPD),
	[IR_lmax] = RULE(sel_wide_min, VBLENDVPD),
	[IR_lumin] = RULE(sel_wide_min, VBLENDVPD),
	[IR_lumax] = RULE(sel_wide_min, VBLENDVPD),
	[IR_llt] = WIDE_INTS(1),
	[IR_lle] = WIDE_INTS(2),
	[IR_leq] = WIDE_INTS(0),
	[IR_lne] = WIDE_INTS(4),
	[IR_lult] = WIDE_INTS(1),
	[IR_lule] = WIDE_INTS(2),
	[IR_f2d] = RULE(sel_widen, VCVTPS2PD),
	[IR_i2d] = RULE(sel_widen, VCVTDQ2PD),
	[IR_i2l] = RULE(sel_widen, VPMOVSXDQ),
	[IR_u2l] = RULE(sel_widen, VPMOVZXDQ),
	[IR_u2d] = RULE(sel_widen_unsigned, VPMOVZXDQ),
	[IR_d2f] = RULE(sel_narrow, VCVTPD2PS),
	[IR_l2i] = RULE(sel_wide_low, VPMOVQD),
	[IR_d2i_cut] = RULE(sel_narrow_int_cut, VCVTTPD2DQ),
	[IR_d2u_cut] = RULE(sel_narrow_unsigned_cut, VCVTTPD2UDQ),
	[IR_l2d] = RULE(sel_wide_from_int, VADDPD),
	[IR_ul2d] = RULE(sel_wide_from_int, VADDPD),
	[IR_d2l_cut] = RULE(sel_wide_to_int_cut, VCVTTPD2QQ),
	[IR_d2ul_cut] = RULE(sel_wide_to_int_cut, VCVTTPD2UQQ),
	[IR_dload] = RULE(sel_wide_load, VMOVUPS),
	[IR_lload] = RULE(sel_wide_load, VMOVUPS),
	[IR_dstore] = RULE(sel_wide_store, VMOVUPS),
	[IR_lstore] = RULE(sel_wide_store, VMOVUPS),
	[IR_dbcast] = RULE(sel_wide_broadcast, VBROADCASTSD),
	[IR_lbcast] = RULE(sel_wide_broadcast, VBROADCASTSD),
};
static const struct sel_rule wide_avx512[IR_ROWS] = {
	[IR_dround] = WIDE(sel_wide_unary, VRNDSCALEPD, OP2I, 8),
	[IR_dfloor] = WIDE(sel_wide_unary, VRNDSCALEPD, OP2I, 9),
	[IR_dceil] = WIDE(sel_wide_unary, VRNDSCALEPD, OP2I, 10),
	[IR_dtrunc] = WIDE(sel_wide_unary, VRNDSCALEPD, OP2I, 11),
	[IR_lmul] = WIDE_EITHER(VPMULLQ),
	[IR_land] = WIDE_EITHER(VPANDQ),
	[IR_lor] = WIDE_EITHER(VPORQ),
	[IR_lxor] = WIDE_EITHER(VPXORQ),
	[IR_lsar] = WIDE(sel_wide_unary, VPSRAQ, OP2I, 0),
	[IR_lsarv] = WIDE_BINARY(VPSRAVQ),
	[IR_u2d] = RULE(sel_widen, VCVTUDQ2PD),
	[IR_l2d] = WIDE(sel_wide_unary, VCVTQQ2PD, OP2, 0),
	[IR_ul2d] = WIDE(sel_wide_unary, VCVTUQQ2PD, OP2, 0),
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
	[IR_istore_16] = RULE(sel_istore_8_wide, VPMOVDW),
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
	overlay(s, wide);
	if (s->target->mask_regs) {
		overlay(s, avx512);
		overlay(s, wide_avx512);
	}
	if (s->target->has_vnni)
		overlay(s, vnni);
	if (s->target->has_dot2)
		overlay(s, dot2);
	if (s->target->has_tiles)
		overlay(s, tiles);
}
