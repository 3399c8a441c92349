/* tests/jit/t_rdna_passes.c - the passes behind register allocation, each in texts of before and after; the bytes; the
 * pipeline without its optional passes.
 *
 * What the passes must achieve in all is t_rdna_waits.c's to judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/rdna/machine.h"
#include "tests/jit/random_ir.h"
#include "tests/jit/rdna_build.h"
#include "tests/jit/rdna_call.h"
#include "tests/jit/rdna_lir_random.h"
#include "tests/jit/rdna_text.h"

static void must(bool ok, const struct error *err)
{
	if (!ok)
		fail_msg("%s", err->text);
}

static void parse(struct rdna_lir *l, enum rdna_gen gen, const char *text)
{
	rdna_text_read(l, gen, text);
	l->allocated = true;
}

/* --- before; after */

enum { G10 = RDNA_GFX10_3, G11 = RDNA_GFX11, G115 = RDNA_GFX11_5, G12 = RDNA_GFX12 };
struct text {
	uint8_t gen;
	const char *before, *after;
}; /* after NULL: unchanged */

static bool wait_pass(struct rdna_lir *l, struct error *err) { return rdna_wait(l, err); }
static bool hazard_pass(struct rdna_lir *l, struct error *err)
{
	return rdna_hazard(l, &(struct rdna_hazard_options){ true, true }, err);
}
static bool clause_pass(struct rdna_lir *l, struct error *err)
{
	return rdna_hazard(l, &(struct rdna_hazard_options){ false, true }, err);
}
static bool delay_pass(struct rdna_lir *l, struct error *err)
{
	return rdna_hazard(l, &(struct rdna_hazard_options){ true, false }, err);
}
static bool vopd_pass(struct rdna_lir *l, struct error *err)
{
	rdna_shorten(l);
	return rdna_vopd(l, err);
}

static void check(const struct text *t, size_t n, bool (*pass)(struct rdna_lir *l, struct error *err))
{
	for (size_t k = 0; k < n; k++) {
		struct error err = { .code = ERROR_NONE };
		struct rdna_lir got, want;
		parse(&got, (enum rdna_gen)t[k].gen, t[k].before);
		parse(&want, (enum rdna_gen)t[k].gen, t[k].after ? t[k].after : t[k].before);
		must(pass(&got, &err), &err);
		char *a = rdna_text(&got), *b = rdna_text(&want);
		if (strcmp(a, b))
			fail_msg("case %zu: got\n%swanted\n%s", k, a, b);
		free(a);
		free(b);
		rdna_lir_free(&got);
		rdna_lir_free(&want);
	}
}
#define CHECK(cases, pass) check(cases, sizeof cases / sizeof *cases, pass)

/* s_waitcnt 49279: lgkmcnt 0; 16241: vmcnt 1; 16240: vmcnt 0 (gfx10); 64519: lgkmcnt 0 (gfx11) */
static const struct text waits[] = {
	/* loads of a counter arrive in order: only as many as came after may be outstanding */
	{ G12,
	  "global_load_b32 v1, v0, s[10:11]\nglobal_load_b128 v[4:7], v0, s[10:11]\nglobal_load_b32 v2, v0, "
	  "s[10:11]\nv_add_f32 v3, v1, v1\nv_add_f32 v3, v3, v7\nv_add_f32 v3, v3, v2\n",
	  "global_load_b32 v1, v0, s[10:11]\nglobal_load_b128 v[4:7], v0, s[10:11]\nglobal_load_b32 v2, v0, "
	  "s[10:11]\ns_wait_loadcnt 2\nv_add_f32 v3, v1, v1\n"
	  "s_wait_loadcnt 1\nv_add_f32 v3, v3, v7\ns_wait_loadcnt 0\nv_add_f32 v3, v3, v2\n" },
	/* scalar loads in any order; both counters at once */
	{ G12, "s_load_b32 s16, s[8:9]\ns_load_b32 s17, s[8:9]\nv_mov_b32 v1, s16\n",
	  "s_load_b32 s16, s[8:9]\ns_load_b32 s17, s[8:9]\ns_wait_kmcnt 0\nv_mov_b32 v1, s16\n" },
	{ G12,
	  "global_load_b32 v1, v0, s[10:11]\nds_load_b32 v2, v0\nds_load_b32 v3, v0\nv_add_f32 v4, v1, v2\nv_mov_b32 "
	  "v4, v3\n",
	  "global_load_b32 v1, v0, s[10:11]\nds_load_b32 v2, v0\nds_load_b32 v3, v0\ns_wait_loadcnt_dscnt 1\nv_add_f32 "
	  "v4, v1, v2\ns_wait_dscnt 0\nv_mov_b32 v4, v3\n" },
	/* gfx10 counts LDS and scalar loads together, and with a scalar load under way only 0 says anything */
	{ G10,
	  "ds_load_b32 v1, v0\nds_load_b32 v2, v0\ns_load_b32 s16, s[8:9]\nv_mov_b32 v3, v1\nv_mov_b32 v4, "
	  "v2\nv_mov_b32 v5, s16\n",
	  "ds_load_b32 v1, v0\nds_load_b32 v2, v0\ns_load_b32 s16, s[8:9]\ns_waitcnt 49279\nv_mov_b32 v3, "
	  "v1\nv_mov_b32 v4, v2\nv_mov_b32 v5, s16\n" },
	/* a load may not be overtaken by another write, and the rest is waited for at the return */
	{ G10, "global_load_b32 v1, v0, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\nv_mov_b32 v1, 0\n",
	  "global_load_b32 v1, v0, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\ns_waitcnt 16241\nv_mov_b32 v1, "
	  "0\ns_waitcnt 16240\n" },
	/* stores by themselves wait for nothing; only scalar loads of the same memory for them */
	{ G12,
	  "global_store_b32 v0, v1, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\ns_load_b32 s16, s[10:11] "
	  "memory:const\nv_mov_b32 v0, v1\ns_load_b32 s17, s[10:11]\ns_mov_b32 s18, s17\nv_mov_b32 v3, v2\n",
	  "global_store_b32 v0, v1, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\ns_load_b32 s16, s[10:11] "
	  "memory:const\nv_mov_b32 v0, v1\ns_wait_storecnt 0\ns_load_b32 s17, s[10:11]\n"
	  "s_wait_kmcnt 0\ns_mov_b32 s18, s17\ns_wait_loadcnt 0\nv_mov_b32 v3, v2\n" },
	{ G11,
	  "s_load_b32 s16, s[10:11]\nglobal_store_b32 v0, v1, s[10:11]\ns_barrier\ns_load_b32 s16, s[10:11]\ns_mov_b32 "
	  "s17, s16\n",
	  "s_load_b32 s16, s[10:11]\ns_waitcnt 64519\nglobal_store_b32 v0, v1, s[10:11]\ns_barrier\ns_waitcnt_vscnt "
	  "null, 0\ns_load_b32 s16, s[10:11]\ns_waitcnt 64519\ns_mov_b32 s17, s16\n" },
	{ G12, "ds_store_b32 v0, v1\nds_load_b32 v2, v0\ns_barrier_signal -1\ns_barrier_wait 0xffff\n",
	  "ds_store_b32 v0, v1\nds_load_b32 v2, v0\ns_wait_dscnt 0\ns_barrier_signal -1\ns_barrier_wait 0xffff\n" },
	/* a loop that may run no time; what comes around its back; a scalar load is waited for in front of it, not in
	 * every turn */
	{ G12,
	  "s_load_b32 s16, s[8:9]\nglobal_load_b32 v1, v0, s[10:11]\nloop s20, s12\n  global_load_b32 v2, v0, "
	  "s[10:11]\n  v_mul_f32 v3, s16, v1\n  global_load_b32 v1, v0, s[10:11]\n  v_add_f32 v3, v2, "
	  "v3\nendloop\nv_mov_b32 v3, v1\n",
	  "s_load_b32 s16, s[8:9]\nglobal_load_b32 v1, v0, s[10:11]\ns_wait_kmcnt 0\nloop s20, s12\n  global_load_b32 "
	  "v2, v0, s[10:11]\n  s_wait_loadcnt 1\n  v_mul_f32 v3, s16, v1\n  global_load_b32 v1, v0, s[10:11]\n"
	  "  s_wait_loadcnt 1\n  v_add_f32 v3, v2, v3\nendloop\ns_wait_loadcnt 0\nv_mov_b32 v3, v1\n" },
	/* both halves' registers are waited for in front of a dual instruction */
	{ G11, "ds_load_b32 v1, v0\ndual\nv_mov_b32 v2, 0\nv_mov_b32 v3, v1\n",
	  "ds_load_b32 v1, v0\ns_waitcnt 64519\ndual\nv_mov_b32 v2, 0\nv_mov_b32 v3, v1\n" },
};
static void waits_stand_where_needed(void **state)
{
	(void)state;
	CHECK(waits, wait_pass);
}

/* s_wait_alu 4095: va_vdst 0; 65534: sa_sdst 0; 61951: va_sdst 0; 65533: va_vcc 0 */
static const struct text hazards[] = {
	{ G11, "v_rcp_f32 v1, v2\nv_mov_b32 v3, v4\nv_add_f32 v5, v1, v1\nv_add_f32 v5, v1, v1\n",
	  "v_rcp_f32 v1, v2\nv_mov_b32 v3, v4\ns_wait_alu 4095\nv_add_f32 v5, v1, v1\nv_add_f32 v5, v1, v1\n" },
	{ G11, "v_rcp_f32 v1, v2\nds_store_b32 v0, v3\nv_add_f32 v5, v1, v1\n", NULL },
	{ G11, "v_rcp_f32 v1, v2\nv_rcp_f32 v3, v2\nv_rcp_f32 v4, v2\nv_add_f32 v5, v1, v1\n", NULL },
	{ G11, "loop s20, 4\n  v_mov_b32 v5, v1\n  v_rcp_f32 v1, v2\nendloop\n",
	  "loop s20, 4\n  s_wait_alu 4095\n  v_mov_b32 v5, v1\n  v_rcp_f32 v1, v2\nendloop\n" },
	/* five vector instructions between are too few, six are not; one transcendental is too few */
	{ G11,
	  "v_rcp_f32 v1, v2\nv_mov_b32 v10, v4\nv_mov_b32 v11, v4\nv_mov_b32 v12, v4\nv_mov_b32 v13, v4\nv_mov_b32 "
	  "v14, v4\nv_add_f32 v5, v1, v1\n",
	  "v_rcp_f32 v1, v2\nv_mov_b32 v10, v4\nv_mov_b32 v11, v4\nv_mov_b32 v12, v4\nv_mov_b32 v13, v4\nv_mov_b32 "
	  "v14, v4\ns_wait_alu 4095\nv_add_f32 v5, v1, v1\n" },
	{ G11,
	  "v_rcp_f32 v1, v2\nv_mov_b32 v10, v4\nv_mov_b32 v11, v4\nv_mov_b32 v12, v4\nv_mov_b32 v13, v4\nv_mov_b32 "
	  "v14, v4\nv_mov_b32 v15, v4\nv_add_f32 v5, v1, v1\n",
	  NULL },
	{ G11, "v_rcp_f32 v1, v2\nv_rcp_f32 v3, v2\nv_add_f32 v5, v1, v1\n",
	  "v_rcp_f32 v1, v2\nv_rcp_f32 v3, v2\ns_wait_alu 4095\nv_add_f32 v5, v1, v1\n" },
	{ G115, "v_rcp_f32 v1, v2\nv_add_f32 v5, v1, v1\n", NULL },
	{ G11, "v_cmpx_lt_f32 v1, v2\nv_nop\nv_permlanex16_b32 v3, v4, s16, s17\n",
	  "v_cmpx_lt_f32 v1, v2\nv_nop\nv_mov_b32 v4, v4\nv_permlanex16_b32 v3, v4, s16, s17\n" },
	{ G115, "v_cmpx_lt_f32 v1, v2\nv_permlane16_b32 v3, v4, s16, s17\n",
	  "v_cmpx_lt_f32 v1, v2\nv_mov_b32 v4, v4\nv_permlane16_b32 v3, v4, s16, s17\n" },
	{ G12, "v_cmpx_lt_f32 v1, v2\nv_permlane16_b32 v3, v4, s16, s17\n",
	  "v_cmpx_lt_f32 v1, v2\nv_mov_b32 v4, v4\nv_permlane16_b32 v3, v4, s16, s17\ns_wait_alu 65534\n" },
	{ G10, "v_cmpx_lt_f32 v1, v2\nv_permlanex16_b32 v3, v4, s16, s17\n", NULL },
	{ G11,
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[16:23], v[8:11], "
	  "v[4:7], v[16:23]\n",
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15]\nv_nop\nv_wmma_i32_16x16x16_iu8 v[16:23], v[8:11], "
	  "v[4:7], v[16:23]\n" },
	{ G115,
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[16:23], v[4:7], "
	  "v[12:15], v[16:23]\n",
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:3], v[4:7], v[8:15]\nv_nop\nv_wmma_i32_16x16x16_iu8 v[16:23], v[4:7], "
	  "v[12:15], v[16:23]\n" },
	{ G12,
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[16:23], v[14:15], "
	  "v[4:5], v[16:23]\n",
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_nop\nv_wmma_i32_16x16x16_iu8 v[16:23], "
	  "v[14:15], v[4:5], v[16:23]\ns_wait_alu 65534\n" },
	{ G12,
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[16:23], v[0:1], v[8:9], "
	  "v[16:23]\n",
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_nop\nv_wmma_i32_16x16x16_iu8 v[16:23], v[0:1], "
	  "v[8:9], v[16:23]\ns_wait_alu 65534\n" },
	/* the sum may follow directly */
	{ G12,
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], "
	  "v[8:15]\n",
	  "v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], v[8:15]\nv_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[4:5], "
	  "v[8:15]\ns_wait_alu 65534\n" },
	{ G10, "global_atomic_min_num_f32 v0, v1, s[10:11]\ns_denorm_mode 0\n",
	  "global_atomic_min_num_f32 v0, v1, s[10:11]\ns_nop 2\ns_denorm_mode 0\n" },
	/* whatever else the wave ran may have read any register by a vector instruction; the return reads what the
	 * driver wrote */
	{ G12,
	  "s_mov_b32 s16, 0\ns_add_co_u32 s18, s16, 1\nv_cmp_lt_f32 s20, v1, v2\nv_cndmask_b32 v3, v1, v2, "
	  "s20\ns_mov_b32 s21, s20\n",
	  "s_mov_b32 s16, 0\ns_wait_alu 65534\ns_add_co_u32 s18, s16, 1\nv_cmp_lt_f32 s20, v1, v2\ns_wait_alu "
	  "61951\nv_cndmask_b32 v3, v1, v2, s20\ns_mov_b32 s21, s20\n" },
	{ G12, "v_cmp_lt_f32 vcc_lo, v1, v2\nv_cndmask_b32 v3, v1, v2, vcc_lo\n",
	  "v_cmp_lt_f32 vcc_lo, v1, v2\ns_wait_alu 65533\nv_cndmask_b32 v3, v1, v2, vcc_lo\ns_wait_alu 65534\n" },
	{ G12, "loop s20, 4\n  v_mov_b32 v1, s20\nendloop\n",
	  "loop s20, 4\n  s_wait_alu 65534\n  v_mov_b32 v1, s20\nendloop\n" },
};
static void hazards_are_padded(void **state)
{
	(void)state;
	CHECK(hazards, hazard_pass);
}

static const struct text clauses[] = {
	{ G11,
	  "global_load_b32 v1, v0, s[10:11]\nglobal_load_b128 v[4:7], v0, s[10:11]\nv_mov_b32 v9, 0\nglobal_load_b32 "
	  "v2, v0, s[10:11]\n",
	  "s_clause 1\nglobal_load_b32 v1, v0, s[10:11]\nglobal_load_b128 v[4:7], v0, s[10:11]\nv_mov_b32 v9, "
	  "0\nglobal_load_b32 v2, v0, s[10:11]\n" },
	{ G10,
	  "s_load_b32 s16, s[8:9]\ns_load_b32 s17, s[8:9]\ns_load_b32 s18, s[8:9]\nglobal_load_b32 v1, v0, s[10:11]\n",
	  "s_clause 2\ns_load_b32 s16, s[8:9]\ns_load_b32 s17, s[8:9]\ns_load_b32 s18, s[8:9]\nglobal_load_b32 v1, v0, "
	  "s[10:11]\n" },
	{ G11,
	  "global_load_b32 v1, v0, s[10:11] exec:0xff\nglobal_load_b32 v2, v0, s[10:11]\nglobal_store_b32 v0, v1, "
	  "s[10:11]\nglobal_store_b32 v0, v1, s[10:11]\n",
	  NULL },
};
static void loads_in_a_row_are_clauses(void **state)
{
	(void)state;
	CHECK(clauses, clause_pass);
}

/* 1 to 4: the vector instruction so many ago; 9: scalar; 5: transcendental; << 7 for the one a skip of << 4 further
 * on */
static const struct text delays[] = {
	{ G11, "v_mov_b32 v1, v2\nv_add_f32 v3, v1, v1\n", "v_mov_b32 v1, v2\ns_delay_alu 1\nv_add_f32 v3, v1, v1\n" },
	{ G11, "v_mov_b32 v1, v2\nv_mov_b32 v4, v2\nv_add_f32 v3, v1, v4\n",
	  "v_mov_b32 v1, v2\nv_mov_b32 v4, v2\ns_delay_alu 257\nv_add_f32 v3, v1, v4\n" },
	{ G11, "v_mov_b32 v1, v2\nv_mov_b32 v4, v1\nv_mov_b32 v5, v4\n",
	  "v_mov_b32 v1, v2\ns_delay_alu 145\nv_mov_b32 v4, v1\nv_mov_b32 v5, v4\n" },
	{ G11,
	  "s_mov_b32 s16, 1\nv_mov_b32 v1, s16\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, "
	  "0\nv_mov_b32 v6, v1\n",
	  "s_mov_b32 s16, 1\ns_delay_alu 9\nv_mov_b32 v1, s16\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\nv_mov_b32 v4, "
	  "0\nv_mov_b32 v5, 0\nv_mov_b32 v6, v1\n" },
	{ G10, "v_mov_b32 v1, v2\nv_add_f32 v3, v1, v1\n", NULL },
};
static void delays_are_announced(void **state)
{
	(void)state;
	CHECK(delays, delay_pass);
}

static const struct text pairs[] = {
	{ G11, "v_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v14\n",
	  "dual\nv_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v14\n" },
	{ G10, "v_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v14\n", NULL },
	/* destinations of one parity; sources in one bank, cured by turning one half round; not curable */
	{ G11, "v_mul_f32 v4, v10, v11\nv_mul_f32 v6, v12, v14\n", NULL },
	{ G11, "v_mul_f32 v4, v10, v11\nv_mul_f32 v5, v14, v12\n",
	  "dual\nv_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v14\n" },
	{ G11, "v_sub_f32 v4, v10, v11\nv_sub_f32 v5, v14, v12\n", NULL },
	/* an accumulating fma is v_fmac; the second may write what the first reads, not read what it writes */
	{ G11, "v_fma_f32 v4, v10, v11, v4\nv_fma_f32 v5, v12, v14, v5\n",
	  "dual\nv_fmac_f32 v4, v10, v11\nv_fmac_f32 v5, v12, v14\n" },
	{ G11, "v_mul_f32 v4, v10, v11\nv_mov_b32 v11, 0\n", "dual\nv_mul_f32 v4, v10, v11\nv_mov_b32 v11, 0\n" },
	{ G11, "v_mul_f32 v4, v10, v11\nv_add_f32 v5, v4, v12\n", NULL },
	/* v_and only as the second half; three scalar values are one too many, the literal is one of them */
	{ G11, "v_and_b32 v4, v10, v11\nv_mov_b32 v5, v13\n", "dual\nv_mov_b32 v5, v13\nv_and_b32 v4, v10, v11\n" },
	{ G11, "v_mul_f32 v4, s16, v11\nv_mul_f32 v5, s17, v12\n",
	  "dual\nv_mul_f32 v4, s16, v11\nv_mul_f32 v5, s17, v12\n" },
	{ G11, "v_fma_f32 v4, s16, 0x12345678, v11\nv_mul_f32 v5, s17, v12\n",
	  "v_fmamk_f32 v4, s16, 0x12345678, v11\nv_mul_f32 v5, s17, v12\n" },
	/* down to the later one, or that one up; not over memory, nor over what depends */
	{ G11, "v_mul_f32 v4, v10, v11\nv_cvt_f32_i32 v6, v7\nv_mul_f32 v5, v12, v6\n",
	  "v_cvt_f32_i32 v6, v7\ndual\nv_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v6\n" },
	{ G11, "v_mul_f32 v4, v10, v11\nv_cvt_f32_i32 v6, v4\nv_mul_f32 v5, v12, v14\n",
	  "dual\nv_mul_f32 v4, v10, v11\nv_mul_f32 v5, v12, v14\nv_cvt_f32_i32 v6, v4\n" },
	{ G11, "v_mul_f32 v4, v10, v11\nv_cvt_f32_i32 v12, v4\nv_mul_f32 v5, v12, v14\n", NULL },
	{ G11, "v_mul_f32 v4, v10, v11\nglobal_load_b32 v6, v0, s[10:11]\nv_mul_f32 v5, v12, v14\n", NULL },
	{ G11, "v_mul_f32 v4, v10, v11\ns_barrier\nv_mul_f32 v5, v12, v14\n", NULL },
};
static void neighbours_are_paired(void **state)
{
	(void)state;
	CHECK(pairs, vopd_pass);
}

static bool tidy_pass(struct rdna_lir *l, struct error *err)
{
	(void)err;
	rdna_tidy(l);
	return true;
}
static const struct text moves[] = {
	{ G11,
	  "v_mov_b32 v1, v1\ns_mov_b64 s[16:17], s[16:17]\nv_mov_b32 v2, v1\ns_mov_b32 s18, s18\nv_mov_b32 v3, v3 "
	  "dpp16:0x161\n",
	  "v_mov_b32 v2, v1\nv_mov_b32 v3, v3 dpp16:0x161\n" },
};
static void idle_moves_are_dropped(void **state)
{
	(void)state;
	CHECK(moves, tidy_pass);
}

static bool shorten_pass(struct rdna_lir *l, struct error *err)
{
	(void)err;
	rdna_shorten(l);
	return true;
}
static const struct text lengths[] = {
	{ G11,
	  "v_fma_f32 v1, v2, v3, v1\nv_fma_f32 v1, v2, s16, v1\nv_fma_f32 v1, s16, s17, v1\nv_fma_f32 v1, -v2, v3, "
	  "v1\n",
	  "v_fmac_f32 v1, v2, v3\nv_fmac_f32 v1, s16, v2\nv_fma_f32 v1, s16, s17, v1\nv_fma_f32 v1, -v2, v3, v1\n" },
	{ G11, "v_fma_f32 v1, v2, v3, 0x12345678\nv_fma_f32 v1, 0x12345678, v3, v4\nv_fma_f32 v1, v2, v3, 1.0\n",
	  "v_fmaak_f32 v1, v2, v3, 0x12345678\nv_fmamk_f32 v1, v3, 0x12345678, v4\nv_fma_f32 v1, v2, v3, 1.0\n" },
	{ G11, "v_sub_f32 v1, v2, s16\nv_add_f32 v1, v2, s16\nv_sub_f32 v1, v2, v3\nv_max_num_f32 v1, v2, s16\n",
	  "v_subrev_f32 v1, s16, v2\nv_add_f32 v1, s16, v2\nv_sub_f32 v1, v2, v3\nv_max_num_f32 v1, v2, s16\n" },
	{ G10,
	  "v_dot4_i32_i8 v1, v2, v3, v1\ns_mov_b32 s16, 1000\ns_add_co_i32 s16, s16, 1000\ns_mul_i32 s16, s17, "
	  "1000\ns_mov_b32 s16, 5\n",
	  "v_dot4c_i32_i8 v1, v2, v3\ns_movk_i32 s16, 1000\ns_addk_co_i32 s16, 1000\ns_mul_i32 s16, s17, "
	  "1000\ns_mov_b32 s16, 5\n" },
};
static void instructions_are_shortened(void **state)
{
	(void)state;
	CHECK(lengths, shorten_pass);
}

/* --- bytes */

static void bytes_of(enum rdna_gen gen, const char *text, struct object *o)
{
	struct error err = { .code = ERROR_NONE };
	struct rdna_lir l;
	parse(&l, gen, text);
	rdna_shorten(&l);
	*o = (struct object){ 0 };
	must(rdna_emit(o, &l, &err), &err);
	rdna_lir_free(&l);
}

/* Words, the return's one aside. */
static void short_forms_are_found(void **state)
{
	static const struct {
		uint8_t gen, words;
		const char *text;
	} cases[] = {
		{ G11, 1, "v_fma_f32 v1, v2, v3, v1" },
		{ G11, 1, "v_fma_f32 v1, v2, s16, v1" },
		{ G11, 2, "v_fma_f32 v1, v2, v3, v4" },
		{ G11, 2, "v_fma_f32 v1, -v2, v3, v1" },
		{ G11, 2, "v_fma_f32 v1, s16, s17, v1" },
		{ G11, 2, "v_fma_f32 v1, v2, v3, 0x12345678" },
		{ G11, 2, "v_fma_f32 v1, v2, 0x12345678, v3" },
		{ G11, 2, "v_fma_f32 v1, v2, 0x12345678, v1" },
		{ G10, 1, "v_dot4_i32_i8 v1, v2, v3, v1" },
		{ G10, 2, "v_dot4_i32_i8 v1, v2, v3, v4" },
		{ G11, 1, "v_add_f32 v1, v2, s16" },
		{ G11, 1, "v_sub_f32 v1, v2, s16" },
		{ G11, 1, "v_sub_nc_u32 v1, v2, 7" },
		{ G11, 2, "v_max_num_f32 v1, v2, s16" },
		{ G11, 1, "s_mov_b32 s16, 0xffff8000" },
		{ G11, 2, "s_mov_b32 s16, 0x8000" },
		{ G11, 1, "s_add_co_i32 s16, s16, 1000" },
		{ G11, 2, "s_add_co_u32 s16, s16, 1000" },
		{ G11, 1, "s_mul_i32 s16, s16, 1000" },
		{ G11, 2, "s_mul_i32 s16, s17, 1000" },
		/* lanes on and off once for both, and not at all for what is no memory */
		{ G10, 7,
		  "global_store_b32 v0, v1, s[10:11] exec:0x1f\ns_mov_b32 s16, 0\nglobal_store_b32 v0, v1, s[10:11] "
		  "exec:0x1f" },
		{ G10, 9,
		  "global_store_b32 v0, v1, s[10:11] exec:0x1f\nv_mov_b32 v2, 0\nglobal_store_b32 v0, v1, "
		  "s[10:11]\nglobal_store_b32 v0, v1, s[10:11] exec:0xffffffff" },
	};
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct object o;
		bytes_of((enum rdna_gen)cases[k].gen, cases[k].text, &o);
		if (o.code_bytes != 4u * (cases[k].words + 1u))
			fail_msg("\"%s\" takes %u words, expected %u", cases[k].text, o.code_bytes / 4 - 1,
			         cases[k].words);
		object_free(&o);
	}
}

static void refusals_name_the_instruction(void **state)
{
	struct error err = { .code = ERROR_NONE };
	struct object o = { 0 };
	struct rdna_lir l;
	(void)state;
	parse(&l, RDNA_GFX11, "v_mov_b32 v1, 0\nv_fma_f32 v2, s16, s17, s18\nv_mov_b32 v3, 0\n");
	assert_false(rdna_emit(&o, &l, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_string_equal(err.text, "cannot encode \"v_fma_f32 v2, s16, s17, s18\": a vector instruction can read at "
	                              "most two different scalar registers or literals (constant bus)");
	assert_null(o.code);
	rdna_lir_free(&l);
}

/* --- loops, run in the simulator: v1 counts turns, v2 sums the index */

static void start(struct rdna_lir *l, enum rdna_gen gen)
{
	rdna_lir_init(l, gen);
	l->allocated = true;
	put_scalar(l, RDNA_S_LOAD_B64, sn(20, 2), RDNA_ABI_ARG, 0, RDNA_MEM_CONST);
	put(l, RDNA_V_MBCNT_LO_U32_B32, v(0), imm(UINT32_MAX), imm(0), NONE);
	put(l, RDNA_V_LSHLREV_B32, v(0), imm(2), v(0), NONE);
	put(l, RDNA_V_MOV_B32, v(1), imm(0), NONE, NONE);
	put(l, RDNA_V_MOV_B32, v(2), imm(0), NONE, NONE);
}

static void finish(struct rdna_lir *l, uint32_t out[64])
{
	const struct rdna_hazard_options h = { 0 };
	struct error err = { .code = ERROR_NONE };
	struct object o = { 0 };
	uint64_t arg = (uint64_t)(uintptr_t)out;
	put_global(l, RDNA_GLOBAL_STORE_B32, v(1), 0, 20, 0);
	put_global(l, RDNA_GLOBAL_STORE_B32, v(2), 0, 20, 128);
	must(rdna_wait(l, &err) && rdna_hazard(l, &h, &err) && rdna_emit(&o, l, &err), &err);
	const struct rdna_call c = {
		.object = &o, .gen = l->gen, .arg = &arg, .n_args = 1, .end = -3, .memory = { { out, 256, true } }
	};
	must(rdna_call(&c, &(struct sim_options){ .memory = SIM_MEMORY_AT_WAIT }, &err), &err);
	object_free(&o);
	rdna_lir_free(l);
}

/* trash: what the body does to the index's (1) and the count's (2) register at its end */
static void one_loop(enum rdna_gen gen, bool constant, int32_t count, bool index, unsigned trash, size_t filler)
{
	struct rdna_lir l;
	uint32_t out[64], turns = count > 0 ? (uint32_t)count : 0;
	start(&l, gen);
	put(&l, RDNA_S_MOV_B32, s(30), imm((uint32_t)count), NONE, NONE);
	put(&l, RDNA_LIR_LOOP, index ? s(31) : NONE, constant ? imm((uint32_t)count) : s(30), NONE, NONE);
	put(&l, RDNA_V_ADD_NC_U32, v(1), imm(1), v(1), NONE);
	if (index)
		put(&l, RDNA_V_ADD_NC_U32, v(2), s(31), v(2), NONE);
	for (size_t k = 0; k < filler; k++)
		put(&l, RDNA_V_XOR_B32, v(3), v(1), v(2), NONE);
	if (trash & 1)
		put(&l, RDNA_S_MOV_B32, s(31), imm(77), NONE, NONE);
	if (trash & 2)
		put(&l, RDNA_S_MOV_B32, s(30), imm(99), NONE, NONE);
	rdna_lir_add(&l, RDNA_LIR_ENDLOOP);
	finish(&l, out);
	for (unsigned k = 0; k < 32; k++)
		if (out[k] != turns || out[32 + k] != (index && turns ? turns * (turns - 1) / 2 : 0))
			fail_msg("%s, count %d (%s), index %d, trash %u: %u turns, indices add up to %u",
			         rdna_call_targets[gen], count, constant ? "constant" : "register", index, trash,
			         out[k], out[32 + k]);
}

static void loops_run_as_often_as_asked(void **state)
{
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (int32_t count = -1; count < 5; count++)
			for (unsigned k = 0; k < 16; k++)
				one_loop((enum rdna_gen)gen, k & 1, count, k & 2, k >> 2, 0);
}

/* 33 000 words are more than a branch reaches. */
static void branches_reach_far(void **state)
{
	(void)state;
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++) {
		one_loop((enum rdna_gen)gen, false, 3, true, 0, 40000);
		one_loop((enum rdna_gen)gen, false, 0, true, 3, 40000);
		one_loop((enum rdna_gen)gen, true, 0, true, 3, 40000);
	}
}

/* --- disassembly */

static const char *disassembler(void)
{
	static const char *const names[] = { "llvm-objdump-22", "llvm-objdump-21", "llvm-objdump-20",
		                             "llvm-objdump-19" };
	for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
		char command[128];
		snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", names[k]);
		if (system(command) == 0)
			return names[k];
	}
	return NULL;
}

static unsigned disassemble(const char *tool, const struct amdgpu_object *o, const char *what)
{
	char path[] = "/tmp/t_rdna_passes_XXXXXX", command[160], line[512];
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, o->bytes, o->size) == (ssize_t)o->size);
	close(fd);
	snprintf(command, sizeof command, "%s -d %s", tool, path);
	FILE *p = popen(command, "r");
	assert_non_null(p);
	unsigned n = 0;
	while (fgets(line, sizeof line, p)) {
		if (strstr(line, ".long") || strstr(line, "<unknown>"))
			fail_msg("%s: %s", what, line);
		n += strstr(line, "// ") != NULL;
	}
	assert_int_equal(pclose(p), 0);
	unlink(path);
	return n;
}

static void every_word_is_an_instruction(void **state)
{
	const char *tool = disassembler();
	(void)state;
	if (!tool) {
		print_message("skipped: there is no llvm-objdump of version 19 or later\n");
		skip();
	}
	for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct error err = { .code = ERROR_NONE };
			struct rdna_lir l;
			struct object o = { 0 };
			struct amdgpu_object bytes = { 0 };
			rdna_lir_random(&l, (enum rdna_gen)gen, seed, 400);
			rdna_shorten(&l);
			must(rdna_vopd(&l, &err) && rdna_wait(&l, &err) && rdna_hazard(&l, NULL, &err) &&
			             rdna_emit(&o, &l, &err),
			     &err);
			const struct rdna_call c = { .object = &o, .gen = (enum rdna_gen)gen };
			must(rdna_call_object(&c, &bytes, &err), &err);
			assert_true(disassemble(tool, &bytes, rdna_call_targets[gen]) > 300);
			amdgpu_object_free(&bytes);
			object_free(&o);
			rdna_lir_free(&l);
		}
}

/* --- the pipeline */

static bool run_ir(const struct object *o, enum rdna_gen gen, struct random_ir_buffers *b, enum sim_memory_mode mode,
                   struct error *err)
{
	const struct rdna_call c = {
		.object = o,
		.gen = gen,
		.arg = b->arg,
		.n_args = 4,
		.begin = 3,
		.end = 11,
		.memory = { { b->in, sizeof b->in, false },
		            { b->out, sizeof b->out, true },
		            { b->pointer, sizeof b->pointer, false } }
	};
	return rdna_call(&c, &(struct sim_options){ .memory = mode }, err);
}

static void optional_passes_change_no_result(void **state)
{
	static struct random_ir_buffers want, got;
	(void)state;
	for (uint64_t seed = 1; seed < 7; seed++)
		for (unsigned gen = 0; gen < RDNA_GEN_COUNT; gen++) {
			struct ir ir;
			random_ir(&ir, 32, seed, 120);
			random_ir_fill(&want, seed);
			ir_interp(&ir, want.arg, 3, 11);
			for (uint32_t skip = 0; skip < 16; skip++) {
				const struct compile_options opt = { .skip = skip, .verify_passes = true };
				struct compile_stats stats;
				struct error err = { .code = ERROR_NONE };
				struct object o;
				random_ir_fill(&got, seed);
				must(compile_ir(&o, &ir, target_find(rdna_call_targets[gen]), &opt, &stats, &err),
				     &err);
				must(run_ir(&o, (enum rdna_gen)gen, &got, SIM_MEMORY_AT_WAIT, &err), &err);
				if (memcmp(want.out, got.out, sizeof want.out))
					fail_msg("%s, kernel %llu without passes 0x%x: another result",
					         rdna_call_targets[gen], (unsigned long long)seed, skip);
				assert_true(!stats.dual_pairs || !(skip & COMPILE_SKIP_VOPD));
				assert_true(stats.machine_instructions > 100 &&
				            stats.vector_regs_used == o.vector_regs &&
				            o.scalar_regs >= RDNA_ABI_FREE_SGPR);
				object_free(&o);
			}
			ir_free(&ir);
		}
}

/* The listing's words are the code's. */
static void listings_hold_the_code(void **state)
{
	struct error err = { .code = ERROR_NONE };
	char *text = NULL;
	size_t size, at = 0;
	struct ir ir;
	struct object o;
	const struct compile_options opt = { .dump_asm = open_memstream(&text, &size) };
	(void)state;
	random_ir(&ir, 32, 5, 120);
	must(compile_ir(&o, &ir, target_find("gfx1100"), &opt, NULL, &err), &err);
	fclose(opt.dump_asm);
	assert_non_null(strstr(text, "; kernel\n\t.text\nkernel:\n\t.long 0x"));
	for (char *p = text; (p = strstr(p, ".long "));) {
		p += 6;
		for (;; p += 2) {
			uint32_t w = (uint32_t)strtoul(p, &p, 16), code;
			assert_true(at + 4 <= o.code_bytes);
			memcpy(&code, o.code + at, 4);
			assert_int_equal(w, code);
			at += 4;
			if (*p != ',')
				break;
		}
	}
	assert_int_equal(at, o.code_bytes);
	free(text);
	object_free(&o);
	ir_free(&ir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_stand_where_needed),
		cmocka_unit_test(hazards_are_padded),
		cmocka_unit_test(loads_in_a_row_are_clauses),
		cmocka_unit_test(delays_are_announced),
		cmocka_unit_test(neighbours_are_paired),
		cmocka_unit_test(idle_moves_are_dropped),
		cmocka_unit_test(instructions_are_shortened),
		cmocka_unit_test(short_forms_are_found),
		cmocka_unit_test(refusals_name_the_instruction),
		cmocka_unit_test(loops_run_as_often_as_asked),
		cmocka_unit_test(branches_reach_far),
		cmocka_unit_test(every_word_is_an_instruction),
		cmocka_unit_test(optional_passes_change_no_result),
		cmocka_unit_test(listings_hold_the_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
