// Test programs of the simulator: traps, waits, barriers, LDS, atomics, matrix products, modes. GEN is 10, 11 or 12.
.include "common.inc"

// --- traps: each does one thing wrong

BEGIN trap_undefined
	v_add_f32 v1, v30, v30
FINISH trap_undefined
BEGIN trap_undefined_scalar
	s_add_u32 s6, s7, s7
FINISH trap_undefined_scalar
BEGIN trap_load_wait
	global_load_dword v1, v20, s[4:5]
	v_mov_b32 v2, v1
FINISH trap_load_wait
BEGIN trap_load_overwrite
	global_load_dword v1, v20, s[4:5]
	v_mov_b32 v1, 0
FINISH trap_load_overwrite
BEGIN trap_count
	global_load_dword v1, v20, s[4:5]
	global_load_dword v2, v20, s[4:5]
.if GEN == 12
	s_wait_loadcnt 1
.else
	s_waitcnt vmcnt(1)
.endif
	v_mov_b32 v3, v1
	v_mov_b32 v3, v2
FINISH trap_count
BEGIN trap_scalar_wait
	s_load_dword s6, s[4:5], 0x0
	s_mov_b32 s7, s6
FINISH trap_scalar_wait
BEGIN trap_bounds
	v_add_nc_u32 v20, 0x100000, v20
	global_load_dword v1, v20, s[4:5]
FINISH trap_bounds
BEGIN trap_misaligned
	v_add_nc_u32 v20, 1, v20
	global_load_dword v1, v20, s[4:5]
FINISH trap_misaligned
BEGIN trap_readonly
	s_getpc_b64 s[6:7]
	v_mov_b32 v1, 0
	v_mov_b32 v2, 0
	global_store_dword v2, v1, s[6:7]
FINISH trap_readonly
BEGIN trap_lds
	v_add_nc_u32 v20, 0x100, v20
	ds_write_b32 v20, v20
FINISH trap_lds, 256
BEGIN trap_lds_undefined
	ds_read_b32 v1, v20
	WAIT_LDS
FINISH trap_lds_undefined, 256
BEGIN trap_word
	.long 0xffffffff
FINISH trap_word
BEGIN trap_vgpr
	v_mov_b32 v200, 0
FINISH trap_vgpr
BEGIN trap_barrier
	v_readfirstlane_b32 s6, v0
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc1 1f
	BARRIER
1:
FINISH trap_barrier
BEGIN trap_spin
1:	s_sleep 1
	s_branch 1b
FINISH trap_spin
BEGIN trap_clause
	s_clause 0x1
	global_load_dword v1, v20, s[4:5]
	v_mov_b32 v2, 0
FINISH trap_clause
BEGIN trap_end
	s_nop 0
DESCRIPTOR trap_end
	s_code_end
.if GEN >= 11
BEGIN trap_cmpx
	v_mov_b32 v1, v20
	v_cmpx_eq_u32 v1, v1
	v_permlane16_b32 v2, v1, 0, 0
FINISH trap_cmpx
BEGIN pass_cmpx
	v_mov_b32 v1, v20
	v_cmpx_eq_u32 v1, v1
	v_mov_b32 v1, v1
	v_permlane16_b32 v2, v1, 0, 0
FINISH pass_cmpx
BEGIN trap_matrix
.irp r, 8,9,10,11,12,13,14,15,16,17,18,19,21,22,23,24,25,26,27,28,29
	v_mov_b32 v\r, 0
.endr
.if GEN == 11
	v_wmma_f32_16x16x16_f16 v[8:15], v[22:29], v[22:29], v[8:15]
	v_wmma_f32_16x16x16_f16 v[22:29], v[8:15], v[8:15], v[22:29]
.else
	v_wmma_f32_16x16x16_f16 v[8:15], v[22:25], v[22:25], v[8:15]
	v_wmma_f32_16x16x16_f16 v[22:29], v[8:11], v[8:11], v[22:29]
.endif
FINISH trap_matrix
.endif
.if GEN == 11
BEGIN trap_trans
	v_cvt_f32_u32 v1, v20
	v_rcp_f32 v2, v1
	v_add_f32 v3, v2, v2
FINISH trap_trans
BEGIN pass_trans
	v_cvt_f32_u32 v1, v20
	v_rcp_f32 v2, v1
	s_waitcnt_depctr 0x0fff
	v_add_f32 v3, v2, v2
FINISH pass_trans
.endif
.if GEN == 12
BEGIN trap_sgpr
	s_mov_b32 s6, 1
	v_add_nc_u32 v1, s6, v20
	s_mov_b32 s6, 2
	v_add_nc_u32 v1, s6, v20
FINISH trap_sgpr
BEGIN pass_sgpr
	s_mov_b32 s6, 1
	v_add_nc_u32 v1, s6, v20
	s_mov_b32 s6, 2
	s_wait_alu 0xfffe
	v_add_nc_u32 v1, s6, v20
FINISH pass_sgpr
.endif
.if GEN == 10
BEGIN trap_denorm
	global_atomic_fmax v20, v20, s[4:5]
	s_denorm_mode 0
FINISH trap_denorm
.endif
// every workgroup writes the same words
BEGIN race
	global_store_dword v20, v20, s[4:5]
FINISH race
// the first wave's LDS write may still be under way at the barrier
BEGIN late_store
	v_readfirstlane_b32 s6, v0
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 1f
	ds_write_b32 v20, v20
1:	BARRIER
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc1 2f
	v_add_nc_u32 v21, 0xffffff80, v20
	ds_read_b32 v1, v21
	WAIT_LDS
	global_store_dword v21, v1, s[4:5]
2:
FINISH late_store, 128

// --- a barrier of all workgroups: the count at +0; each workgroup writes its number at 256 + 128 * id and reads its
// neighbour's (s3 = count from +4)
BEGIN grid
	GROUP_ID s8
	s_load_dword s9, s[4:5], 0x4
	s_lshl_b32 s10, s8, 7
	s_addk_i32 s10, 256
	v_add_nc_u32 v1, s10, v20
	v_add_nc_u32 v2, s8, v20
	global_store_dword v1, v2, s[4:5]
	WAIT_STORE
	v_cmp_eq_u32 vcc_lo, 0, v20
	v_mov_b32 v3, 0
	v_mov_b32 v4, 1
	s_and_saveexec_b32 s22, vcc_lo
.if GEN == 12
	global_atomic_add_u32 v3, v4, s[4:5] scope:SCOPE_DEV
.else
	global_atomic_add v3, v4, s[4:5]
.endif
	WAIT_STORE
	s_mov_b32 exec_lo, s22
	WAIT_SCALAR
1:	s_sleep 1
.if GEN == 10
	global_load_dword v5, v3, s[4:5] glc dlc
.elseif GEN == 11
	global_load_dword v5, v3, s[4:5] glc
.else
	global_load_b32 v5, v3, s[4:5] scope:SCOPE_DEV
.endif
	WAIT_LOAD
	v_readfirstlane_b32 s12, v5
	s_cmp_lt_u32 s12, s9
	s_cbranch_scc1 1b
	INVALIDATE
	s_add_u32 s14, s8, 1
	s_cmp_eq_u32 s14, s9
	s_cselect_b32 s14, 0, s14
	s_lshl_b32 s14, s14, 7
	s_addk_i32 s14, 256
	v_add_nc_u32 v6, s14, v20
	global_load_dword v7, v6, s[4:5]
	s_lshl_b32 s16, s8, 7
	s_add_u32 s16, s16, 16640
	v_add_nc_u32 v8, s16, v20
	WAIT_LOAD
	global_store_dword v8, v7, s[4:5]
FINISH grid

// --- LDS: 32 lanes reverse their words by b32, pairs by 2addr, quads by b128
BEGIN lds
	v_sub_nc_u32 v1, 124, v20
	ds_write_b32 v20, v20
	ds_read_b32 v2, v1
	v_lshlrev_b32 v3, 1, v20
	v_lshlrev_b32 v4, 2, v20
	WAIT_LDS
	ds_write2_b32 v3, v20, v2 offset0:32 offset1:33
	ds_read2_b32 v[6:7], v3 offset0:33 offset1:32
	WAIT_LDS
	v_mov_b32 v8, v6
	v_mov_b32 v9, v7
	ds_write_b128 v4, v[6:9] offset:512
	ds_read_b64 v[10:11], v4 offset:516
	WAIT_LDS
	v_lshlrev_b32 v12, 2, v20
	global_store_dwordx4 v12, v[6:9], s[4:5]
	global_store_dwordx2 v3, v[10:11], s[4:5] offset:512
	ds_add_u32 v20, v20
	v_mov_b32 v13, 5
	ds_add_rtn_u32 v14, v20, v13
	ds_bpermute_b32 v15, v1, v20
	ds_swizzle_b32 v16, v20 offset:swizzle(BITMASK_PERM,"0000p")
	WAIT_LDS
	global_store_dword v20, v14, s[4:5] offset:768
	global_store_dword v20, v15, s[4:5] offset:896
	global_store_dword v20, v16, s[4:5] offset:1024
FINISH lds, 1024

// --- atomics with return on words 0..: each lane adds, takes the maximum, exchanges, compares and swaps on its own or
// the first word
BEGIN atomics
	v_mov_b32 v1, 0
	v_mov_b32 v2, 1
	v_lshrrev_b32 v3, 2, v20
	global_atomic_add v1, v2, s[4:5]
	global_atomic_umax v1, v3, s[4:5] offset:4
	global_atomic_or v1, v20, s[4:5] offset:8
	WAIT_STORE
.if GEN == 12
	global_atomic_add_u32 v4, v20, v2, s[4:5] offset:128 th:TH_ATOMIC_RETURN
	global_atomic_swap_b32 v5, v20, v3, s[4:5] offset:256 th:TH_ATOMIC_RETURN
.else
	global_atomic_add v4, v20, v2, s[4:5] offset:128 glc
	global_atomic_swap v5, v20, v3, s[4:5] offset:256 glc
.endif
	v_mov_b32 v6, 77
	v_mov_b32 v7, 3
.if GEN == 12
	global_atomic_cmpswap_b32 v8, v20, v[6:7], s[4:5] offset:384 th:TH_ATOMIC_RETURN
.else
	global_atomic_cmpswap v8, v20, v[6:7], s[4:5] offset:384 glc
.endif
	WAIT_LOAD
	global_store_dword v20, v4, s[4:5] offset:512
	global_store_dword v20, v5, s[4:5] offset:640
	global_store_dword v20, v8, s[4:5] offset:768
FINISH atomics

// --- scratch, and the order of a wave's own store and load
BEGIN scratch
	v_add_nc_u32 v1, 3, v20
	scratch_store_dword off, v1, off offset:4
	scratch_load_dword v2, off, off offset:4
	WAIT_LOAD
	global_store_dword v20, v2, s[4:5]
	global_load_dword v3, v20, s[4:5]
	WAIT_LOAD
	v_add_nc_u32 v3, 1, v3
	global_store_dword v20, v3, s[4:5]
FINISH scratch, 0, 16

// --- MODE: toward +infinity, then denormals flushed; what was there comes back from s_getreg
BEGIN mode
	v_mov_b32 v1, 1.0
	v_mov_b32 v2, 0x00000001
	v_add_f32 v3, v1, v2
	s_getreg_b32 s6, hwreg(HW_REG_MODE, 0, 8)
	s_round_mode 0x1
	v_add_f32 v4, v1, v2
	s_round_mode 0x0
	v_mul_f32 v5, v1, v2
	s_denorm_mode 0xc
	v_mul_f32 v6, v1, v2
	s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0
	v_mul_f32 v7, v1, v2
	v_mov_b32 v8, s6
	global_store_dword v20, v3, s[4:5]
	global_store_dword v20, v4, s[4:5] offset:128
	global_store_dword v20, v5, s[4:5] offset:256
	global_store_dword v20, v6, s[4:5] offset:384
	global_store_dword v20, v7, s[4:5] offset:512
	global_store_dword v20, v8, s[4:5] offset:640
FINISH mode

// --- matrix products: A and B as registers at 0 and 1024, C at 2048, D to 4096 (f16), 5120 (bf16), 6144 (iu8, both
// signed)
.if GEN >= 11
BEGIN matrix
.macro LOAD8 first, at
.irp r, 0,1,2,3,4,5,6,7
	global_load_dword v[\first+\r], v20, s[4:5] offset:\at+128*\r
.endr
.endm
	LOAD8 24, 0
	LOAD8 32, 1024
	LOAD8 8, 2048
	WAIT_LOAD
.macro STORE8 base
	v_add_nc_u32 v21, \base, v20
.irp r, 0,1,2,3,4,5,6,7
	global_store_dword v21, v[40+\r], s[4:5] offset:128*\r
.endr
.endm
.if GEN == 11
	v_wmma_f32_16x16x16_f16 v[40:47], v[24:31], v[32:39], v[8:15]
	STORE8 4096
	v_wmma_f32_16x16x16_bf16 v[40:47], v[24:31], v[32:39], v[8:15]
	STORE8 5120
	v_wmma_i32_16x16x16_iu8 v[40:47], v[24:27], v[32:35], v[8:15] neg_lo:[1,1,0]
	STORE8 6144
.else
	v_wmma_f32_16x16x16_f16 v[40:47], v[24:27], v[32:35], v[8:15]
	STORE8 4096
	v_wmma_f32_16x16x16_bf16 v[40:47], v[24:27], v[32:35], v[8:15]
	STORE8 5120
	v_wmma_i32_16x16x16_iu8 v[40:47], v[24:25], v[32:33], v[8:15] neg_lo:[1,1,0]
	STORE8 6144
.endif
FINISH matrix
.endif

// --- speed: 8 fused multiply-adds, a dot product and a 128-bit load in each round of a loop of s6 rounds (from +0)
BEGIN speed
	s_load_dword s6, s[4:5], 0x0
	v_lshlrev_b32 v20, 2, v20
.irp r, 1,2,3,4,5,6,7,8,9
	v_mov_b32 v\r, 0
.endr
	WAIT_SCALAR
1:	global_load_dwordx4 v[12:15], v20, s[4:5]
	WAIT_LOAD
.irp r, 1,2,3,4,5,6,7,8
	v_fma_f32 v\r, v12, v13, v\r
.endr
	v_dot4_u32_u8 v9, v14, v15, v9
	s_sub_u32 s6, s6, 1
	s_cmp_lg_u32 s6, 0
	s_cbranch_scc1 1b
FINISH speed
