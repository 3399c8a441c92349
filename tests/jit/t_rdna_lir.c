/* tests/jit/t_rdna_lir.c - the RDNA machine form: its text, the table of facts, what the verifier refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/rdna/live.h"
#include "tests/jit/rdna_text.h"

/* --- text */

static void what_is_printed_is_read_back(void **state)
{
	static const char text[] =
		"s_load_b128 %s1:4, s[8:9] offset:16\n"
		"s_load_b32 %s2, %s1[0:1], %s1[2] offset:-4 memory:const\n"
		"v_mbcnt_lo_u32_b32 %v3, -1, 0\n"
		"global_load_b128 %v4:4, %v3, %s1[0:1] offset:-16 exec:0xff\n"
		"global_load_u8 %v5, %v4[1:2], off cache:0x5\n"
		"loop %s6, %s2\n"
		"  loop 7000\n"
		"    v_fma_f32 %v4[2], -|%v3|, 0x3f800001, %v4[2] omod:0x1 clamp\n"
		"    v_add_f32 %v3, %v4[0], %v4[1] dpp16:0x161 row_mask:0x3 bound_ctrl\n"
		"    v_mov_b32 %v3, %v4[0] dpp8:0xfac688\n"
		"  endloop\n"
		"  ds_store_b32 %v3, %v4[3] offset:65532 exec:0x1\n"
		"  ds_load_2addr_b32 %v7:2, %v3 offset:3 offset1:9 memory:none\n"
		"endloop\n"
		"v_cmp_lt_f32 %s8, 5.n, -%v3 e64\n"
		"v_cndmask_b32 %v3, %v4[0], %v4[1], %s8\n"
		"v_div_scale_f32 %v3, vcc_lo, %v3, %v4[0], %v4[1]\n"
		"v_add_co_ci_u32 %v3, null, 0, %v3, vcc_lo\n"
		"s_mov_b64 vcc, -5\n"
		"s_mov_b32 m0, 0x80000000\n"
		"v_pk_fma_f16 %v3, %v4[0].h, %v4[1].f, -|%v4[2]|.h.f\n"
		"v_fma_f16 %v3.h, %v4[0].h, %v4[1], 1.h\n"
		"v_mov_b32 v255, s[105]\n"
		"global_atomic_add_u32 %v3, %v4[0], off\n"
		"global_atomic_add_u32 %v3, %v4[0], %v4[1], s[2:3] cache:0x1\n"
		"s_barrier\n";
	struct rdna_lir l, m;
	rdna_text_read(&l, RDNA_GFX11, text);
	char *first = rdna_text(&l);
	rdna_text_read(&m, RDNA_GFX11, first);
	char *second = rdna_text(&m);
	assert_string_equal(first, second);
	assert_int_equal(l.n_ins, m.n_ins);
	for (size_t k = 0; k < l.n_ins; k++)
		assert_memory_equal(&l.ins[k], &m.ins[k], sizeof l.ins[k]);
	const char *odd = "v_mov_b32 v255, s[105]", *plain = "v_mov_b32 v255, s105";
	size_t at = (size_t)(strstr(text, odd) - text);
	assert_memory_equal(first, text, at);
	assert_memory_equal(first + at, plain, strlen(plain));
	assert_string_equal(first + at + strlen(plain), text + at + strlen(odd));
	assert_int_equal(l.reg[4].n, 4);
	assert_int_equal(l.reg[1].align, 4);
	assert_int_equal(l.ins[3].exec, 0xff);
	assert_int_equal(l.ins[1].memory, RDNA_MEM_CONST);
	assert_true(l.ins[11].stores);
	free(first);
	free(second);
	rdna_lir_free(&l);
	rdna_lir_free(&m);
}

static void branches_and_masks_are_read_back(void **state)
{
	static const char text[] =
		"s_load_b64 %s1:2, s[8:9]\n"
		"if %s1[0]\n"
		"  loop 3\n"
		"    break s10\n"
		"  endloop\n"
		"else\n"
		"  global_load_b32 %v2, %v2, %s1:2 lanes:%s1[1]\n"
		"  ds_store_b32 %v2, %v2 lanes:vcc_lo offset:4\n"
		"endif\n";
	struct rdna_lir l;
	rdna_text_read(&l, RDNA_GFX12, text);
	char *again = rdna_text(&l);
	assert_string_equal(again, text);
	assert_int_equal(l.n_ins, 9);
	assert_true(rdna_lir_is_masked(&l.ins[6]) && rdna_lir_is_masked(&l.ins[7]));
	free(again);
	rdna_lir_free(&l);
}

static void names_of_the_newest_generation_are_read_too(void **state)
{
	struct rdna_lir l;
	rdna_text_read(
		&l, RDNA_GFX10_3,
		"global_load_dwordx2 %v1:2, %v2, %s3:2\nglobal_load_b64 %v1:2, %v2, %s3:2 ; comment\n\n# comment\n");
	assert_int_equal(l.n_ins, 2);
	assert_int_equal(l.ins[0].op, RDNA_GLOBAL_LOAD_B64);
	assert_int_equal(l.ins[1].op, RDNA_GLOBAL_LOAD_B64);
	char *text = rdna_text(&l);
	assert_non_null(strstr(text, "global_load_dwordx2"));
	free(text);
	rdna_lir_free(&l);
}

static void broken_text_is_refused(void **state)
{
	static const char *const broken[] = {
		"v_nothing %v1",
		"v_mov_b32 %v1",
		"v_mov_b32 %v1, %v2, %v3",
		"v_mov_b32 %v0, 1",
		"v_mov_b32 %v1[16], 1",
		"v_mov_b32 %v1, |%v2",
		"v_mov_b32 %v1, x5",
		"v_mov_b32 %v1, %v2 wild",
		"v_mov_b32 %v1, %v2 offset:",
		"ds_load_b32 %v1, %v2 memory:disk",
		"v_mov_b32 %v1, %s1",
		"v_mov_b32 %v1, v[3:",
		"global_load_b32 %v1, %v2:2",
		"v_mov_b32 %v1[3:2], 0",
		"v_mov_b32 %v1:17, 0",
	};
	for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
		struct rdna_lir l;
		struct error err = { 0 };
		rdna_lir_init(&l, RDNA_GFX11);
		if (rdna_lir_parse(&l, broken[k], &err))
			fail_msg("\"%s\" was accepted", broken[k]);
		assert_int_equal(err.code, ERROR_ARGUMENT);
		rdna_lir_free(&l);
	}
}

/* --- records */

static void insertion_shifts_and_zeroes(void **state)
{
	struct rdna_lir l;
	rdna_text_read(&l, RDNA_GFX11, "v_mov_b32 %v1, 1\nv_mov_b32 %v1, 2\n");
	assert_true(rdna_lir_insert(&l, 1, 300));
	assert_int_equal(l.n_ins, 302);
	assert_int_equal(l.ins[0].s[0].value, 1);
	assert_int_equal(l.ins[301].s[0].value, 2);
	static const struct rdna_lir_ins zero;
	for (size_t k = 1; k < 301; k++)
		assert_memory_equal(&l.ins[k], &zero, sizeof zero);
	rdna_lir_free(&l);
}

static void facts_say_what_instructions_do(void **state)
{
	static const struct {
		unsigned op, facts;
	} want[] = {
		{ RDNA_S_ADD_CO_U32, RDNA_IS_SALU | RDNA_WRITES_SCC },
		{ RDNA_S_ADD_CO_CI_U32, RDNA_IS_SALU | RDNA_READS_SCC | RDNA_WRITES_SCC },
		{ RDNA_S_MUL_I32, RDNA_IS_SALU },
		{ RDNA_S_MOV_B32, RDNA_IS_SALU },
		{ RDNA_S_CSELECT_B32, RDNA_IS_SALU | RDNA_READS_SCC },
		{ RDNA_S_CMP_LT_I32, RDNA_IS_SALU | RDNA_WRITES_SCC },
		{ RDNA_S_LOAD_B64, RDNA_IS_SMEM },
		{ RDNA_V_ADD_F32, RDNA_IS_VALU },
		{ RDNA_V_RCP_F32, RDNA_IS_VALU | RDNA_IS_TRANS },
		{ RDNA_V_DIV_FMAS_F32, RDNA_IS_VALU | RDNA_READS_VCC },
		{ RDNA_V_WMMA_I32_16X16X16_IU8, RDNA_IS_VALU | RDNA_IS_WMMA },
		{ RDNA_GLOBAL_LOAD_B128, RDNA_IS_VMEM },
		{ RDNA_GLOBAL_STORE_B32, RDNA_IS_VMEM | RDNA_IS_STORE },
		{ RDNA_GLOBAL_ATOMIC_ADD_U32, RDNA_IS_VMEM | RDNA_IS_STORE },
		{ RDNA_DS_LOAD_B32, RDNA_IS_LDS },
		{ RDNA_DS_STORE_B128, RDNA_IS_LDS | RDNA_IS_STORE },
		{ RDNA_DS_BPERMUTE_B32, RDNA_IS_LDS },
		{ RDNA_S_BARRIER, RDNA_IS_FIXED },
		{ RDNA_S_BARRIER_SIGNAL, RDNA_IS_SALU | RDNA_IS_FIXED },
		{ RDNA_V_CMPX_LT_F32, RDNA_IS_VALU | RDNA_IS_FIXED },
		{ RDNA_V_CMP_LT_F32, RDNA_IS_VALU },
		{ RDNA_LIR_LOOP, RDNA_IS_FIXED | RDNA_WRITES_SCC },
		{ RDNA_LIR_IF, RDNA_IS_FIXED | RDNA_WRITES_SCC },
		{ RDNA_LIR_BREAK, RDNA_IS_FIXED | RDNA_WRITES_SCC },
		{ RDNA_LIR_DUAL, RDNA_IS_FIXED },
	};
	for (size_t k = 0; k < sizeof want / sizeof *want; k++)
		if (rdna_lir_facts(want[k].op) != want[k].facts)
			fail_msg("row %zu: facts %#x, not %#x", k, rdna_lir_facts(want[k].op), want[k].facts);
	for (unsigned op = 0; op < RDNA_OP_COUNT; op++) {
		unsigned f = rdna_lir_facts(op), classes = f & (RDNA_IS_SALU | RDNA_IS_VALU | RDNA_IS_SMEM |
		                                                RDNA_IS_VMEM | RDNA_IS_LDS | RDNA_IS_FIXED);
		assert_int_not_equal(classes, 0);
	}
}

static void some_destinations_are_read(void **state)
{
	static const char *const reads[] = {
		"v_fmac_f32 %v1, %v2, %v3",
		"s_fmac_f32 %s1, %s2, %s3",
		"global_load_b32 %v1, %v2, %s3:2 exec:0xff",
		"global_load_b32 %v1, %v2, %s3:2 lanes:%s4",
		"ds_load_b32 %v1, %v2 lanes:%s4",
		"ds_load_u16_d16_hi %v1, %v2",
		"v_fma_f16 %v1.h, %v2, %v2, %v2",
		"v_mov_b32 %v1, %v2 dpp16:0x111",
		"v_mov_b32 %v1, %v2 dpp16:0x161 bank_mask:0x1",
		"v_writelane_b32 %v1, %s2, 3",
		"s_cmov_b32 %s1, %s2",
	};
	static const char *const reads_not[] = {
		"v_fma_f32 %v1, %v2, %v3, %v4",
		"global_load_b32 %v1, %v2, %s3:2",
		"v_mov_b32 %v1, %v2 dpp16:0x161",
		"v_mov_b32 %v1, %v2 dpp16:0x111 bound_ctrl",
		"v_fma_f16 %v1, %v2, %v2, %v2.h",
		"ds_load_u16 %v1, %v2 exec:0xffffffff",
		"loop %s1, 3",
		"ds_store_b32 %v1, %v2 exec:0x1",
	};
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t k = 0; k < (pass ? sizeof reads_not : sizeof reads) / sizeof *reads; k++) {
			struct rdna_lir l;
			rdna_text_read(&l, RDNA_GFX11_5, pass ? reads_not[k] : reads[k]);
			if (rdna_lir_reads_dst(&l.ins[0]) != !pass)
				fail_msg("%s", pass ? reads_not[k] : reads[k]);
			rdna_lir_free(&l);
		}
}

/* --- the verifier */

static bool verify(enum rdna_gen gen, const char *text, struct error *err)
{
	struct rdna_lir l;
	rdna_text_read(&l, gen, text);
	bool ok = rdna_lir_verify(&l, err);
	rdna_lir_free(&l);
	return ok;
}

static void the_verifier_accepts_what_is_right(void **state)
{
	static const char *const right[] = {
		"v_mov_b32 %v1, 0\nloop %s2, s7\nv_add_f32 %v1, %v1, %s2\nv_mov_b32 %v3[0], 0\nendloop\nv_mov_b32 %v4, "
		"%v1\n",
		"s_load_b64 %s1:2, s[8:9]\nv_mov_b32 %v2[0], 0\nv_mov_b32 %v2[1], %s1[1]\nglobal_store_b64 %v2[0], "
		"%v2:2, %s1:2\n",
		"s_cmp_eq_u32 s10, s12\ns_cselect_b32 %s1, s10, 0\n",
		"v_mov_b32 %v1, 0\nv_div_scale_f32 %v2, vcc_lo, %v1, %v1, %v1\nv_div_fmas_f32 %v3, %v1, %v1, %v2\n",
		"loop 3\nv_mov_b32 %v1, 0\nendloop\nloop 3\nv_mov_b32 %v1, 0\nv_mov_b32 %v2, %v1\nendloop\n",
		"v_mov_b32 %v1, 0\nglobal_load_b32 %v1, %v1, s[8:9] exec:0xff\n",
		"v_mov_b32 %v1, 0\nglobal_load_b32 %v1, %v1, s[8:9] lanes:s10\n",
		"v_mov_b32 %v1, 0\nif s10\nv_mov_b32 %v1, 1\nv_mov_b32 %v2, %v1\nelse\nv_mov_b32 %v2, %v1\nendif\n"
		"v_mov_b32 %v3, %v1\n",
		"v_mov_b32 %v1, 0\nloop 3\nif s10\nbreak s12\nelse\nloop s7\nbreak s10\nendloop\nendif\n"
		"v_mov_b32 %v1, 2\nendloop\nv_mov_b32 %v2, %v1\n",
	};
	struct error err = { 0 };
	for (size_t k = 0; k < sizeof right / sizeof *right; k++)
		if (!verify(RDNA_GFX11, right[k], &err))
			fail_msg("program %zu: %s", k, err.text);
}

static void the_verifier_refuses_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *what;
	} wrong[] = {
		{ "v_mov_b32 %v1, %v2\n", "before it is written" },
		{ "loop 3\nv_mov_b32 %v1, 0\nendloop\nv_mov_b32 %v2, %v1\n", "before it is written" },
		{ "v_mov_b32 %v1[0], 0\nv_mov_b32 %v2, %v1[1]\n", "before it is written" },
		{ "global_load_b32 %v1, %v1, s[8:9]\n", "before it is written" },
		{ "v_mov_b32 %v1, 0\nglobal_load_b32 %v2, %v1, s[8:9] exec:0xff\n", "before it is written" },
		{ "s_cselect_b32 %s1, s10, 0\n", "scc is read" },
		{ "s_cmp_eq_u32 s10, s12\nloop 3\nendloop\ns_cselect_b32 %s1, s10, 0\n", "scc is read" },
		{ "s_mov_b32 %s1, vcc_lo\n", "vcc or scc" },
		{ "v_mov_b32 %v1, 0\nv_div_fmas_f32 %v3, %v1, %v1, %v1\n", "vcc is read" },
		{ "v_mov_b32 %v1, 0\ns_mov_b32 %s2, %v1\n", "wrong class" },
		{ "v_mov_b32 %v1, 0\nv_readfirstlane_b32 %v2, %v1\n", "wrong class" },
		{ "v_mov_b32 %v1:2, 0\n", "number of words" },
		{ "v_mov_b32 %v1, s[8:9]\n", "number of words" },
		{ "s_load_b128 %s1:4, s[8:9]\ns_mov_b64 %s2:2, %s1[1:2]\n", "begins at a word" },
		{ "v_mov_b32 v3, 0\n", "belongs to the allocator" },
		{ "s_mov_b32 s7, 0\n", "may not write" },
		{ "s_mov_b32 exec_lo, 0\n", "may not write" },
		{ "s_mov_b32 %s1, s3\n", "register of the driver" },
		{ "s_mov_b32 m0, 0\n", "register of the driver" },
		{ "s_mov_b32 %s1, s16\n", "belongs to the allocator" },
		{ "loop 3\n", "stays open" },
		{ "endloop\n", "not open" },
		{ "if s10\n", "stays open" },
		{ "endif\n", "end of an if that is not open" },
		{ "else\n", "an if that is not open" },
		{ "if s10\nelse\nelse\nendif\n", "an if that is not open" },
		{ "if s10\nendloop\n", "end of a loop that is not open" },
		{ "loop 3\nendif\nendloop\n", "end of an if that is not open" },
		{ "if s10\nbreak s10\nendif\n", "a break outside of loops" },
		{ "v_mov_b32 %v1, 0\nif %v1\nendif\n", "wrong class" },
		{ "if s10\nv_mov_b32 %v1, 0\nendif\nv_mov_b32 %v2, %v1\n", "before it is written" },
		{ "if s10\nv_mov_b32 %v1, 0\nelse\nv_mov_b32 %v2, %v1\nendif\n", "before it is written" },
		{ "s_cmp_eq_u32 s10, s12\nif s10\nendif\ns_cselect_b32 %s1, s10, 0\n", "scc is read" },
		{ "v_mov_b32 %v1, 0\nglobal_load_b32 %v2, %v1, s[8:9] lanes:s10\n", "before it is written" },
		{ "v_mov_b32 %v1, 0\nglobal_load_b32 %v1, %v1, s[8:9] exec:0x1 lanes:s10\n", "lanes said twice" },
		{ "v_mov_b32 %v1, 0\nglobal_load_b32 %v1, %v1, s[8:9] lanes:%v1\n", "wrong class" },
		{ "v_mov_b32 %v1, 0 exec:0x1\n", "only memory" },
		{ "v_mov_b32 %v1, 0\nv_dot4c_i32_i8 %v1, %v1, %v1\n", "generation lacks" },
		{ "v_mov_b32 %v1, 0\nds_load_b32 %v2, 5\n", "takes none" },
		{ "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 0\nv_swap_b32 %v1, %v2\n", "writes its source" },
	};
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		struct error err = { 0 };
		if (verify(RDNA_GFX11, wrong[k].text, &err))
			fail_msg("program %zu was accepted: %s", k, wrong[k].text);
		if (!strstr(err.text, wrong[k].what))
			fail_msg("program %zu: \"%s\" does not say \"%s\"", k, err.text, wrong[k].what);
	}
}

/* Registers assigned by hand: v, s count from the machine's v0 and s16. */
static bool verify_assigned(const char *text, const uint8_t *number, struct error *err)
{
	struct rdna_lir l;
	rdna_text_read(&l, RDNA_GFX11, text);
	for (uint32_t r = 1; r < l.n_regs; r++)
		l.reg[r].phys =
			(uint16_t)((l.reg[r].cls == RDNA_CLASS_VGPR ? RDNA_V0 : RDNA_ABI_FREE_SGPR) + number[r]);
	l.allocated = true;
	bool ok = rdna_lir_verify(&l, err);
	rdna_lir_free(&l);
	return ok;
}

struct assigned {
	const char *text;
	uint8_t number[6];
	bool ok;
};

static void check_assigned(const struct assigned *cases, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct error err = { 0 };
		if (verify_assigned(cases[k].text, cases[k].number, &err) != cases[k].ok)
			fail_msg("case %zu: %s", k, cases[k].ok ? err.text : "accepted");
	}
}

static void the_verifier_follows_machine_registers(void **state)
{
	static const struct assigned cases[] = {
		{ "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_add_f32 %v3, %v1, %v2\n", { 0, 0, 1, 0 }, true },
		{ "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_add_f32 %v3, %v1, %v2\n", { 0, 0, 0, 1 }, false },
		/* a word of a tuple under another register */
		{ "v_mov_b32 %v1[0], 0\nv_mov_b32 %v1[1], 0\nv_mov_b32 %v2, %v1[1]\nv_mov_b32 %v3, %v1[0]\n",
		  { 0, 0, 1, 2 },
		  true },
		{ "v_mov_b32 %v1[0], 0\nv_mov_b32 %v1[1], 0\nv_mov_b32 %v2, %v1[1]\nv_mov_b32 %v3, %v1[0]\n",
		  { 0, 0, 0, 2 },
		  false },
		/* round a loop's back */
		{ "v_mov_b32 %v1, 0\nloop 2\nv_mov_b32 %v2, %v1\nv_mov_b32 %v3, 5\nendloop\n", { 0, 0, 1, 1 }, true },
		{ "v_mov_b32 %v1, 0\nloop 2\nv_mov_b32 %v2, %v1\nv_mov_b32 %v3, 5\nendloop\n", { 0, 0, 1, 0 }, false },
		{ "v_mov_b32 %v1, 0\nloop 2\nloop 2\nv_mov_b32 %v2, %v1\nendloop\nv_mov_b32 %v3, 5\nendloop\n",
		  { 0, 0, 1, 0 },
		  false },
		/* what a loop replaces is unknown behind it, even if it was the same before */
		{ "v_mov_b32 %v1, 0\nloop 2\nv_mov_b32 %v2, 1\nendloop\nv_mov_b32 %v3, %v1\n", { 0, 0, 0, 1 }, false },
		{ "s_mov_b32 %s1, s7\nloop %s2, %s1\ns_mov_b32 %s3, %s1\nendloop\n", { 0, 0, 0, 2 }, false },
		{ "s_mov_b32 %s1, s7\nloop %s2, %s1\ns_mov_b32 %s3, %s1\nendloop\n", { 0, 0, 1, 2 }, true },
		/* written before all is read */
		{ "v_mov_b32 %v1, 0\nv_mov_b32 %v2[0], 0\nv_mov_b32 %v2[1], 0\nv_lshlrev_b64 %v3:2, %v1, %v2:2\n",
		  { 0, 0, 2, 4 },
		  true },
		{ "v_mov_b32 %v1, 0\nv_mov_b32 %v2[0], 0\nv_mov_b32 %v2[1], 0\nv_lshlrev_b64 %v3:2, %v1, %v2:2\n",
		  { 0, 0, 2, 3 },
		  false },
		/* an odd pair, a number that does not exist */
		{ "s_mov_b64 %s1:2, 0\n", { 0, 1 }, false },
		{ "s_mov_b64 %s1:2, 0\n", { 0, 90 }, false },
		{ "s_mov_b64 %s1:2, 0\n", { 0, 88 }, true },
	};
	check_assigned(cases, sizeof cases / sizeof *cases);
}

static void the_verifier_follows_them_over_branches(void **state)
{
	static const struct assigned cases[] = {
		/* on one way, or on both */
		{ "v_mov_b32 %v1, 0\nif s10\nv_mov_b32 %v2, 1\nendif\nv_mov_b32 %v3, %v1\n", { 0, 0, 1, 2 }, true },
		{ "v_mov_b32 %v1, 0\nif s10\nv_mov_b32 %v2, 1\nendif\nv_mov_b32 %v3, %v1\n", { 0, 0, 0, 2 }, false },
		{ "v_mov_b32 %v1, 0\nif s10\nv_mov_b32 %v2, 1\nelse\nv_mov_b32 %v3, %v1\nendif\n",
		  { 0, 0, 0, 2 },
		  true },
		{ "v_mov_b32 %v1, 0\nif s10\nelse\nv_mov_b32 %v2, 1\nendif\nv_mov_b32 %v3, %v1\n",
		  { 0, 0, 0, 2 },
		  false },
		/* a break goes on with what is there */
		{ "v_mov_b32 %v1, 0\nloop 2\nv_mov_b32 %v2, 1\nbreak s10\nv_mov_b32 %v1, 2\nendloop\n"
		  "v_mov_b32 %v3, %v1\n",
		  { 0, 0, 1, 2 },
		  true },
		{ "v_mov_b32 %v1, 0\nloop 2\nv_mov_b32 %v1, 1\nv_mov_b32 %v2, 1\nbreak s10\nv_mov_b32 %v1, 2\nendloop\n"
		  "v_mov_b32 %v3, %v1\n",
		  { 0, 0, 0, 2 },
		  false },
	};
	check_assigned(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read_back),
		cmocka_unit_test(branches_and_masks_are_read_back),
		cmocka_unit_test(names_of_the_newest_generation_are_read_too),
		cmocka_unit_test(broken_text_is_refused),
		cmocka_unit_test(insertion_shifts_and_zeroes),
		cmocka_unit_test(facts_say_what_instructions_do),
		cmocka_unit_test(some_destinations_are_read),
		cmocka_unit_test(the_verifier_accepts_what_is_right),
		cmocka_unit_test(the_verifier_refuses_what_is_wrong),
		cmocka_unit_test(the_verifier_follows_machine_registers),
		cmocka_unit_test(the_verifier_follows_them_over_branches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
