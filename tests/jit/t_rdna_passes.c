/* tests/jit/t_rdna_passes.c - the passes behind register allocation, each in texts of before and after; the bytes; the
 * pipeline without its optional passes.
 *
 * What the passes must achieve in all is t_rdna_waits.c's to judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/rdna/machine.h"
#include "tests/jit/rdna_text.h"
#include "tests/jit/rdna_bytes_tests.h"

void must_do(bool ok, const struct error *err)
{
	if (!ok)
		fail_msg("%s", err->text);
}

void parse_rdna(struct rdna_lir *l, enum rdna_gen gen, const char *text)
{
	rdna_text_read(l, gen, text);
	l->allocated = true;
}

/* --- before; after */

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
		parse_rdna(&got, (enum rdna_gen)t[k].gen, t[k].before);
		parse_rdna(&want, (enum rdna_gen)t[k].gen, t[k].after ? t[k].after : t[k].before);
		must_do(pass(&got, &err), &err);
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
	/* stores by themselves wait for nothing; only scalar loads of the same memory for them, and the scalar cache
	 * must not have it any more */
	{ G12,
	  "global_store_b32 v0, v1, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\ns_load_b32 s16, s[10:11] "
	  "memory:const\nv_mov_b32 v0, v1\ns_load_b32 s17, s[10:11]\ns_mov_b32 s18, s17\nv_mov_b32 v3, v2\n",
	  "global_store_b32 v0, v1, s[10:11]\nglobal_load_b32 v2, v0, s[10:11]\ns_load_b32 s16, s[10:11] "
	  "memory:const\nv_mov_b32 v0, v1\ns_wait_storecnt 0\ns_dcache_inv\ns_wait_kmcnt 0\ns_load_b32 s17, s[10:11]\n"
	  "s_wait_kmcnt 0\ns_mov_b32 s18, s17\ns_wait_loadcnt 0\nv_mov_b32 v3, v2\n" },
	{ G11,
	  "s_load_b32 s16, s[10:11]\nglobal_store_b32 v0, v1, s[10:11]\ns_barrier\ns_load_b32 s16, s[10:11]\ns_mov_b32 "
	  "s17, s16\n",
	  "s_load_b32 s16, s[10:11]\ns_waitcnt 64519\nglobal_store_b32 v0, v1, s[10:11]\ns_barrier\ns_waitcnt_vscnt "
	  "null, 0\ns_dcache_inv\ns_waitcnt 64519\ns_load_b32 s16, s[10:11]\ns_waitcnt 64519\ns_mov_b32 s17, s16\n" },
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
	/* but those that stand apart; and memory cures it, vectors' and scalar loads, not LDS */
	{ G12, "s_mov_b32 s84, 0\ns_add_co_u32 s105, s84, 1\ns_mov_b32 s82, s105\ns_mov_b32 s86, s82\n",
	  "s_mov_b32 s84, 0\ns_add_co_u32 s105, s84, 1\ns_mov_b32 s82, s105\ns_wait_alu 65534\ns_mov_b32 s86, s82\n" },
	{ G12,
	  "s_mov_b32 s16, 0\nglobal_load_b32 v0, v1, s[10:11]\ns_mov_b32 s18, s16\ns_load_b32 s17, s[10:11]\n"
	  "s_mov_b32 s20, s18\nds_load_b32 v2, v1\ns_mov_b32 s22, s20\n",
	  "s_mov_b32 s16, 0\nglobal_load_b32 v0, v1, s[10:11]\ns_mov_b32 s18, s16\ns_load_b32 s17, s[10:11]\n"
	  "s_mov_b32 s20, s18\nds_load_b32 v2, v1\ns_wait_alu 65534\ns_mov_b32 s22, s20\n" },
	{ G12, "loop s20, 4\n  v_mov_b32 v1, s20\nendloop\n",
	  "loop s20, 4\n  s_wait_alu 65534\n  v_mov_b32 v1, s20\nendloop\n" },
};
/* One vector read would make every function's scalar writes of the pair late. */
static void none_is_read_that_stands_apart(void **state)
{
	static const char *const wrong[] = { "v_mov_b32 v1, s84\n", "v_cndmask_b32 v3, v1, v2, s105\n",
		                             "dual\nv_mov_b32 v2, 0\nv_mov_b32 v3, s90\n" };
	(void)state;
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		struct error err = { .code = ERROR_NONE };
		struct rdna_lir l;
		parse_rdna(&l, RDNA_GFX12, wrong[k]);
		assert_false(hazard_pass(&l, &err));
		assert_non_null(strstr(err.text, "stands apart"));
		rdna_lir_free(&l);
		parse_rdna(&l, RDNA_GFX11, wrong[k]);
		assert_true(hazard_pass(&l, &err));
		rdna_lir_free(&l);
	}
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_stand_where_needed),       cmocka_unit_test(hazards_are_padded),
		cmocka_unit_test(none_is_read_that_stands_apart), cmocka_unit_test(loads_in_a_row_are_clauses),
		cmocka_unit_test(delays_are_announced),           cmocka_unit_test(neighbours_are_paired),
		cmocka_unit_test(idle_moves_are_dropped),         cmocka_unit_test(instructions_are_shortened),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += rdna_bytes_tests();
	return failed;
}
