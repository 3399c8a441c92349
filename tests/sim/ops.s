// Test programs of the simulator: one kernel for each instruction, between the same loads and stores.
// In: v1..v6 from 128 bytes each of the first argument; v10 and v11 begin as v5 and v6; vcc is 0x5a5a1234.
// Out: v10, v11, vcc, s20 at 768, 896, 1024, 1152. GEN is 10, 11 or 12.

.include "common.inc"
.macro OP name, text:vararg
KERNEL op_\name
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_and_b32 v20, 0x3ff, v0
	v_lshlrev_b32 v20, 2, v20
	WAIT_SCALAR
	global_load_dword v1, v20, s[4:5]
	global_load_dword v2, v20, s[4:5] offset:128
	global_load_dword v3, v20, s[4:5] offset:256
	global_load_dword v4, v20, s[4:5] offset:384
	global_load_dword v5, v20, s[4:5] offset:512
	global_load_dword v6, v20, s[4:5] offset:640
	s_mov_b32 vcc_lo, 0x5a5a1234
	s_mov_b32 s20, 0
	WAIT_LOAD
	v_mov_b32 v10, v5
	v_mov_b32 v11, v6
	\text
	WAIT_VALU
	v_mov_b32 v12, vcc_lo
	v_mov_b32 v13, s20
	global_store_dword v20, v10, s[4:5] offset:768
	global_store_dword v20, v11, s[4:5] offset:896
	global_store_dword v20, v12, s[4:5] offset:1024
	global_store_dword v20, v13, s[4:5] offset:1152
	s_endpgm
DESCRIPTOR op_\name, 0
.endm
.macro V1 names:vararg
.irp n, \names
	OP \n, v_\n v10, v1
.endr
.endm
.macro V2 names:vararg
.irp n, \names
	OP \n, v_\n v10, v1, v3
.endr
.endm
.macro V3 names:vararg
.irp n, \names
	OP \n, v_\n v10, v1, v3, v5
.endr
.endm
.macro C2 names:vararg
.irp n, \names
	OP cmp_\n, v_cmp_\n vcc_lo, v1, v3
.endr
.endm
.macro C2D names:vararg
.irp n, \names
	OP cmp_\n, v_cmp_\n vcc_lo, v[1:2], v[3:4]
.endr
.endm

V1 mov_b32, cvt_f32_i32, cvt_f32_u32, cvt_u32_f32, cvt_i32_f32, cvt_f16_f32, cvt_f32_f16, cvt_f32_ubyte0
V1 cvt_f32_ubyte3, fract_f32, trunc_f32
V1 ceil_f32, rndne_f32, floor_f32, exp_f32, log_f32, rcp_f32, rsq_f32, sqrt_f32, not_b32, bfrev_b32, frexp_exp_i32_f32
V1 frexp_mant_f32
V1 cvt_f16_u16, cvt_f16_i16, cvt_u16_f16, cvt_i16_f16, rcp_f16, sqrt_f16, floor_f16, trunc_f16
.if GEN == 10
V1 ffbh_u32, ffbl_b32, ffbh_i32
.else
V1 clz_i32_u32, ctz_i32_b32, cls_i32, cvt_i32_i16, cvt_u32_u16, not_b16
.endif
V2 add_f32, sub_f32, subrev_f32, mul_f32, mul_i32_i24, mul_hi_i32_i24, mul_u32_u24, mul_hi_u32_u24, min_i32, max_i32
V2 min_u32, max_u32
V2 lshlrev_b32, lshrrev_b32, ashrrev_i32, and_b32, or_b32, xor_b32, xnor_b32, add_nc_u32, sub_nc_u32, subrev_nc_u32
V2 fmac_f32, add_f16, sub_f16, mul_f16, fmac_f16
V2 mul_lo_u32, mul_hi_u32, mul_hi_i32, bfm_b32, bcnt_u32_b32, mbcnt_lo_u32_b32, mbcnt_hi_u32_b32, ldexp_f32
V2 add_nc_u16, sub_nc_u16, mul_lo_u16, max_u16, max_i16, min_u16, min_i16
V2 lshlrev_b16, lshrrev_b16, ashrrev_i16, pack_b32_f16, cvt_pk_u16_u32, cvt_pk_i16_i32, add_nc_i32, sub_nc_i32
V2 pk_add_i16, pk_sub_i16, pk_mul_lo_u16, pk_add_u16, pk_add_f16, pk_mul_f16, pk_max_i16, pk_min_u16, pk_lshlrev_b16
V2 pk_ashrrev_i16
.if GEN == 12
	OP min_f32, v_min_num_f32 v10, v1, v3
	OP max_f32, v_max_num_f32 v10, v1, v3
	OP cvt_pk_rtz_f16_f32, v_cvt_pk_rtz_f16_f32 v10, v1, v3
	V2 minimum_f32, maximum_f32
.else
	V2 min_f32, max_f32
	OP cvt_pk_rtz_f16_f32, v_cvt_pkrtz_f16_f32 v10, v1, v3
.endif
V3 mad_i32_i24, mad_u32_u24, bfe_u32, bfe_i32, bfi_b32, fma_f32, alignbit_b32, alignbyte_b32, min3_i32, min3_u32
V3 max3_i32, max3_u32, med3_i32, med3_u32
V3 sad_u8, sad_u16, sad_u32, lerp_u8, perm_b32, xor3_b32, xad_u32, lshl_add_u32, add_lshl_u32, add3_u32, lshl_or_b32
V3 and_or_b32, or3_b32, mad_u32_u16, mad_i32_i16, fma_f16
V3 dot2_f32_f16, dot4_u32_u8, dot8_u32_u4, pk_mad_u16, pk_fma_f16, fma_mix_f32
.if GEN == 10
V3 dot4_i32_i8
.else
	OP dot4_i32_iu8_ss, v_dot4_i32_iu8 v10, v1, v3, v5 neg_lo:[1,1,0]
	OP dot4_i32_iu8_us, v_dot4_i32_iu8 v10, v1, v3, v5 neg_lo:[0,1,0]
	OP dot4_i32_iu8_clamp, v_dot4_i32_iu8 v10, v1, v3, v5 neg_lo:[1,1,0] clamp
V3 dot2_f32_bf16, minmax_i32, maxmin_u32
	OP dual_mov_mul, v_dual_mov_b32 v10, v1 :: v_dual_mul_f32 v11, v2, v3
	OP dual_swap, v_dual_mov_b32 v10, v11 :: v_dual_mov_b32 v11, v10
	OP dual_fmac, v_dual_fmac_f32 v10, v1, v2 :: v_dual_add_f32 v11, v3, v4
.endif
	OP cndmask_b32, v_cndmask_b32 v10, v1, v3, vcc_lo
	OP add_co_ci_u32, v_add_co_ci_u32 v10, vcc_lo, v1, v3, vcc_lo
	OP sub_co_ci_u32, v_sub_co_ci_u32 v10, vcc_lo, v1, v3, vcc_lo
	OP add_co_u32, v_add_co_u32 v10, vcc_lo, v1, v3
	OP sub_co_u32, v_sub_co_u32 v10, vcc_lo, v1, v3
	OP mad_u64_u32, v_mad_u64_u32 v[10:11], vcc_lo, v1, v3, v[5:6]
	OP fmaak_f32, v_fmaak_f32 v10, v1, v3, 0x40490fdb
	OP fmamk_f32, v_fmamk_f32 v10, v1, 0x40490fdb, v3
	OP add_f64, v_add_f64 v[10:11], v[1:2], v[3:4]
	OP mul_f64, v_mul_f64 v[10:11], v[1:2], v[3:4]
	OP fma_f64, v_fma_f64 v[10:11], v[1:2], v[3:4], v[5:6]
	OP lshlrev_b64, v_lshlrev_b64 v[10:11], v1, v[3:4]
	OP lshrrev_b64, v_lshrrev_b64 v[10:11], v1, v[3:4]
	OP ashrrev_i64, v_ashrrev_i64 v[10:11], v1, v[3:4]
	OP cvt_f64_f32, v_cvt_f64_f32 v[10:11], v1
	OP cvt_f32_f64, v_cvt_f32_f64 v10, v[1:2]
	OP cvt_f64_i32, v_cvt_f64_i32 v[10:11], v1
	OP cvt_i32_f64, v_cvt_i32_f64 v10, v[1:2]
	OP rcp_f64, v_rcp_f64 v[10:11], v[1:2]
	OP neg_abs, v_add_f32 v10, -v1, |v3|
	OP omod, v_mul_f32 v10, v1, v3 mul:2
	OP clamp, v_add_f32 v10, v1, v3 clamp
	OP uclamp, v_add_nc_u32 v10, v1, v3 clamp
	OP inline_half, v_add_f32 v10, 0.5, v1
	OP inline_int, v_add_nc_u32 v10, -7, v1
	OP literal, v_xor_b32 v10, 0x12345678, v1
	OP op_sel, v_mad_u16 v10, v1, v3, v5 op_sel:[1,0,1,1]
	OP pk_sel, v_pk_add_u16 v10, v1, v3 op_sel:[1,0] op_sel_hi:[0,1]
	OP mix_half, v_fma_mix_f32 v10, v1, v3, -v5 op_sel:[1,0,0] op_sel_hi:[1,1,0]
	OP mixlo, v_fma_mixlo_f16 v10, v1, v3, v5 op_sel_hi:[1,1,1]
	OP mixhi, v_fma_mixhi_f16 v10, v1, v3, v5 op_sel_hi:[1,1,1]
	OP dpp_quad, v_mov_b32_dpp v10, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf
	OP dpp_shr, v_mov_b32_dpp v10, v1 row_shr:3 row_mask:0xf bank_mask:0xf
	OP dpp_shl, v_mov_b32_dpp v10, v1 row_shl:5 row_mask:0xf bank_mask:0xf bound_ctrl:1
	OP dpp_ror, v_mov_b32_dpp v10, v1 row_ror:6 row_mask:0xf bank_mask:0xf
	OP dpp_mirror, v_mov_b32_dpp v10, v1 row_mirror row_mask:0xf bank_mask:0xf
	OP dpp_half, v_mov_b32_dpp v10, v1 row_half_mirror row_mask:0xf bank_mask:0xf
	OP dpp_share, v_mov_b32_dpp v10, v1 row_share:7 row_mask:0xf bank_mask:0xf
	OP dpp_xmask, v_mov_b32_dpp v10, v1 row_xmask:9 row_mask:0xf bank_mask:0xf
	OP dpp_mask, v_mov_b32_dpp v10, v1 row_xmask:1 row_mask:0x1 bank_mask:0x6
	OP dpp_add, v_add_f32_dpp v10, v1, v3 row_xmask:2 row_mask:0xf bank_mask:0xf
	OP dpp8, v_mov_b32_dpp v10, v1 dpp8:[7,0,6,1,5,2,4,3]
	OP readlane, v_readlane_b32 s20, v1, 13
	OP readfirstlane, v_readfirstlane_b32 s20, v1
	OP writelane, v_writelane_b32 v10, 42, 5
	OP permlane16, v_permlane16_b32 v10, v1, 0x1f, -1
	OP permlanex16, v_permlanex16_b32 v10, v1, 3, 7
	OP swap, v_swap_b32 v10, v11
C2 lt_f32, eq_f32, le_f32, gt_f32, lg_f32, ge_f32, o_f32, u_f32, nge_f32, nlt_f32, lt_i32, eq_i32, ge_i32, lt_u32
C2 gt_u32, ne_u32, class_f32, lt_f16, ge_f16, lt_i16, gt_u16
C2D lt_f64, ge_f64, lt_i64, gt_u64, eq_u64
.if GEN == 10
OP sdwa_byte, v_cvt_f32_ubyte0_sdwa v10, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2
OP sdwa_add, v_add_nc_u32_sdwa v10, v1, sext(v3) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_1
OP sdwa_keep, v_or_b32_sdwa v10, v1, v3 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_3
.endif
