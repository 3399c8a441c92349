/* tests/jit/t_rdna_regalloc.c - RDNA register allocation: programs before and after, random ones in shrunken register
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/rdna/machine.h"
#include "tests/jit/rdna_lir_run.h"
#include "tests/jit/rdna_text.h"

static void parse(struct rdna_lir *l, enum rdna_gen gen, const char *text)
{
	struct error err = { 0 };
	rdna_text_read(l, gen, text);
	if (!rdna_lir_verify(l, &err))
		fail_msg("%s", err.text);
}

static void becomes(enum rdna_gen gen, const char *before, const char *after)
{
	struct rdna_lir l;
	struct rdna_regs used;
	struct error err = { 0 };
	parse(&l, gen, before);
	if (!rdna_regalloc(&l, 0, 0, 0, &used, &err) || !rdna_lir_verify(&l, &err))
		fail_msg("%s", err.text);
	rdna_text_is(&l, after);
	rdna_lir_free(&l);
}

static void low_numbers_go_first_and_are_used_again(void **state)
{
	becomes(RDNA_GFX11,
	        "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_add_f32 %v3, %v1, %v2\nv_mov_b32 %v4, 5\nv_add_f32 %v5, %v3, "
	        "%v4\n"
	        "ds_store_b32 %v5, %v5\n",
	        "v_mov_b32 v0, 0\nv_mov_b32 v1, 1\nv_add_f32 v0, v0, v1\nv_mov_b32 v1, 5\nv_add_f32 v0, v0, "
	        "v1\nds_store_b32 v0, v0\n");
}

static void sums_take_over_their_addend(void **state)
{
	becomes(RDNA_GFX11, "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_fma_f32 %v3, %v1, %v1, %v2\nds_store_b32 %v1, %v3\n",
	        "v_mov_b32 v0, 0\nv_mov_b32 v1, 1\nv_fma_f32 v1, v0, v0, v1\nds_store_b32 v0, v1\n");
	becomes(RDNA_GFX11,
	        "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_mov_b32 %v3, 2\nv_fma_f32 %v4, %v1, %v2, %v3\nds_store_b32 %v4, "
	        "%v4\n",
	        "v_mov_b32 v0, 0\nv_mov_b32 v1, 1\nv_mov_b32 v2, 2\nv_fma_f32 v2, v0, v1, v2\nds_store_b32 v2, v2\n");
}

static void copies_cost_no_register(void **state)
{
	becomes(RDNA_GFX11, "v_mov_b32 %v9, 7\nv_mov_b32 %v1, 0\nv_mov_b32 %v2, %v1\nds_store_b32 %v9, %v2\n",
	        "v_mov_b32 v0, 7\nv_mov_b32 v1, 0\nv_mov_b32 v1, v1\nds_store_b32 v0, v1\n");
}

static void copies_onto_themselves_go(void **state)
{
	struct rdna_lir l;
	struct rdna_regs used;
	parse(&l, RDNA_GFX11,
	      "v_mov_b32 %v1, 7\nv_mov_b32 %v2, %v1\nv_mov_b32 %v3, %v2 dpp16:0x161\nv_mov_b32 %v4, %v3\ns_mov_b64 "
	      "%s5:2, s[8:9]\ns_mov_b64 %s6:2, %s5:2\n"
	      "global_store_b32 %v3, %v4, %s6:2\n");
	assert_true(rdna_regalloc(&l, 0, 0, 0, &used, NULL));
	rdna_tidy(&l);
	rdna_text_is(&l, "v_mov_b32 v0, 7\nv_mov_b32 v0, v0 dpp16:0x161\nv_mov_b32 v1, v0\ns_mov_b64 s[16:17], "
	                 "s[8:9]\nglobal_store_b32 v0, v1, s[16:17]\n");
	rdna_lir_free(&l);
}

static void scalar_tuples_are_aligned(void **state)
{
	becomes(RDNA_GFX11,
	        "s_mov_b32 %s1, 0\ns_load_b64 %s2:2, s[8:9]\ns_load_b128 %s3:4, %s2:2\ns_mov_b32 %s4, 1\ns_add_co_i32 "
	        "%s5, %s1, %s4\n"
	        "s_add_co_i32 %s6, %s3[2], %s5\ns_mov_b32 vcc_lo, %s6\n",
	        "s_mov_b32 s16, 0\ns_load_b64 s[18:19], s[8:9]\ns_load_b128 s[20:23], s[18:19]\ns_mov_b32 s17, "
	        "1\ns_add_i32 s16, s16, s17\n"
	        "s_add_i32 s16, s22, s16\ns_mov_b32 vcc_lo, s16\n");
}

/* Words are given back one by one. */
static void a_tuple_ends_word_by_word(void **state)
{
	becomes(RDNA_GFX11,
	        "v_mov_b32 %v1, 0\nglobal_load_b64 %v2:2, %v1, s[8:9]\nds_store_b32 %v1, %v2[0]\nv_mov_b32 %v3, "
	        "3\nds_store_b32 %v3, %v2[1]\n"
	        "ds_store_b32 %v1, %v3\n",
	        "v_mov_b32 v0, 0\nglobal_load_b64 v[1:2], v0, s[8:9]\nds_store_b32 v0, v1\nv_mov_b32 v1, "
	        "3\nds_store_b32 v1, v2\nds_store_b32 v0, v1\n");
}

static void what_goes_round_a_loop_keeps_its_register(void **state)
{
	becomes(RDNA_GFX11,
	        "v_mov_b32 %v1, 1\nloop %s2, s7\nv_mov_b32 %v3, %v1\nv_mov_b32 %v4, 4\nds_store_b32 %v3, "
	        "%v4\nendloop\nv_mov_b32 %v5, 5\nds_store_b32 %v5, %v5\n",
	        "v_mov_b32 v0, 1\nloop s16, s7\n  v_mov_b32 v1, v0\n  v_mov_b32 v2, 4\n  ds_store_b32 v1, "
	        "v2\nendloop\nv_mov_b32 v0, 5\nds_store_b32 v0, v0\n");
	/* ... and what each round writes anew does not */
	becomes(RDNA_GFX11,
	        "v_mov_b32 %v1, 1\nloop 3\nds_store_b32 %v1, %v1\nv_mov_b32 %v4, 4\nds_store_b32 %v4, %v4\nv_mov_b32 "
	        "%v1, 4\nendloop\n",
	        "v_mov_b32 v0, 1\nloop 3\n  ds_store_b32 v0, v0\n  v_mov_b32 v1, 4\n  ds_store_b32 v1, v1\n  v_mov_b32 "
	        "v0, 4\nendloop\n");
}

static void counts_live_to_the_end_of_their_loop(void **state)
{
	becomes(RDNA_GFX11, "s_mov_b32 %s1, s7\nloop %s2, %s1\ns_mov_b32 %s3, 0\ns_mov_b32 vcc_lo, %s3\nendloop\n",
	        "s_mov_b32 s16, s7\nloop s17, s16\n  s_mov_b32 s18, 0\n  s_mov_b32 vcc_lo, s18\nendloop\n");
}

static void matrix_products_stay_apart_from_their_factors(void **state)
{
	static const char before[] =
		"v_mov_b32 %v1[0], 0\nv_mov_b32 %v1[1], 0\nv_mov_b32 %v1[2], 0\nv_mov_b32 %v1[3], 0\n"
		"v_wmma_i32_16x16x16_iu8 %v2:8, %v1:4, %v1:4, 0\nv_wmma_i32_16x16x16_iu8 %v3:8, %v1:4, %v1:4, "
		"%v2:8\nds_store_b32 %v3[0], %v3[7]\n";
	static const char after[] =
		"v_mov_b32 v0, 0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 0\nv_mov_b32 v3, 0\n"
		"v_wmma_i32_16x16x16_iu8 v[4:11], v[0:3], v[0:3], 0\nv_wmma_i32_16x16x16_iu8 "
		"v[4:11], v[0:3], v[0:3], v[4:11]\nds_store_b32 v4, v11\n";
	becomes(RDNA_GFX11, before, after);
}

static void too_many_registers_are_refused(void **state)
{
	struct rdna_lir l;
	struct rdna_regs used;
	struct error err = { 0 };
	parse(&l, RDNA_GFX11,
	      "v_mov_b32 %v1, 0\nv_mov_b32 %v2, 1\nv_mov_b32 %v3, 2\nv_fma_f32 %v4, %v1, %v2, %v3\nds_store_b32 %v4, "
	      "%v4\n");
	assert_false(rdna_regalloc(&l, 2, 0, 0, &used, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_string_equal(err.text, "the kernel does not fit in 2 vector registers: at instruction 2 of 5 2 are "
	                              "taken and a tuple of 1 finds no room");
	err = (struct error){ 0 };
	assert_true(rdna_regalloc(&l, 3, 0, 0, &used, &err));
	assert_int_equal(used.vgprs, 3);
	assert_int_equal(used.sgprs, RDNA_ABI_FREE_SGPR);
	rdna_lir_free(&l);
}

static void unused_results_need_a_register_too(void **state)
{
	becomes(RDNA_GFX11, "v_mov_b32 %v1, 0\nglobal_load_b128 %v2:4, %v1, s[8:9]\nds_store_b32 %v1, %v2[3]\n",
	        "v_mov_b32 v0, 0\nglobal_load_b128 v[1:4], v0, s[8:9]\nds_store_b32 v0, v4\n");
}

/* --- random programs: what they do stays the same in any file that is large enough */

static void random_programs_stay_what_they_are(void **state)
{
	static const enum rdna_gen gens[] = { RDNA_GFX10_3, RDNA_GFX11 };
	unsigned fitted = 0, refused = 0;
	for (uint32_t seed = 1; seed <= 300; seed++) {
		struct rdna_lir l, a;
		struct error err = { 0 };
		rdna_lir_make(&l, gens[seed % 2], 20 + seed % 200, seed);
		if (!rdna_lir_verify(&l, &err))
			fail_msg("seed %u: %s", seed, err.text);
		struct rdna_lir_outcome want = rdna_lir_run(&l);
		for (unsigned shrink = 0; shrink < 8; shrink++) {
			struct rdna_regs used;
			unsigned vgprs = shrink ? 16 + (seed * 7 + shrink * 29) % 120 : 0,
				 sgprs = shrink ? 10 + (seed * 5 + shrink * 13) % 60 : 0;
			rdna_lir_copy(&a, &l);
			err = (struct error){ 0 };
			if (rdna_regalloc(&a, vgprs, sgprs, shrink % 3 ? 0 : seed, &used, &err)) {
				fitted++;
				if (!rdna_lir_verify(&a, &err))
					fail_msg("seed %u in %u, %u: %s", seed, vgprs, sgprs, err.text);
				assert_true(used.vgprs <= (vgprs ? vgprs : RDNA_ABI_VGPRS));
				assert_true(used.sgprs <=
				            RDNA_ABI_FREE_SGPR + (sgprs ? sgprs : RDNA_ABI_SGPRS - RDNA_ABI_FREE_SGPR));
				if (rdna_lir_run(&a).visible != want.visible)
					fail_msg("seed %u in %u, %u computes something else", seed, vgprs, sgprs);
				rdna_tidy(&a);
				if (rdna_lir_run(&a).visible != want.visible)
					fail_msg("seed %u in %u, %u misses a copy", seed, vgprs, sgprs);
			} else {
				refused++;
				assert_int_equal(err.code, ERROR_UNSUPPORTED);
			}
			rdna_lir_free(&a);
		}
		rdna_lir_free(&l);
	}
	assert_true(fitted > 300 && refused > 300);
}

/* The run and the verifier notice when two registers that live at once are put together. */
static void a_wrong_allocation_is_noticed(void **state)
{
	unsigned wrong = 0, verified = 0, ran = 0;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct rdna_lir l;
		struct rdna_regs used;
		struct error err = { 0 };
		rdna_lir_make(&l, RDNA_GFX11, 150, seed);
		uint64_t want = rdna_lir_run(&l).visible;
		if (rdna_regalloc(&l, 0, 0, 0, &used, &err))
			for (uint32_t r = 1; r < l.n_regs; r++) {
				uint16_t was = l.reg[r].phys;
				if (l.reg[r].cls != RDNA_CLASS_VGPR || was == RDNA_V0)
					continue;
				l.reg[r].phys = (uint16_t)(was - 1);
				err = (struct error){ 0 };
				bool accepted = rdna_lir_verify(&l, &err), same = rdna_lir_run(&l).visible == want;
				if (accepted && !same)
					fail_msg("seed %u: register %u moved, the program computes something else, and "
					         "the verifier is content",
					         seed, (unsigned)r);
				if (was && rdna_lir_verify_registers(&l, NULL) !=
				                   accepted) /* one that nothing writes has no place */
					fail_msg("seed %u: register %u moved, and the verifier of places says "
					         "something else than that of all",
					         seed, (unsigned)r);
				wrong++;
				verified += !accepted;
				ran += !same;
				l.reg[r].phys = was;
			}
		rdna_lir_free(&l);
	}
	assert_true(verified * 2 > wrong && ran * 4 > wrong);
}

static void the_same_input_gives_the_same_registers(void **state)
{
	struct rdna_lir l, a, b;
	struct rdna_regs used;
	rdna_lir_make(&l, RDNA_GFX11, 300, 11);
	rdna_lir_copy(&a, &l);
	rdna_lir_copy(&b, &l);
	assert_true(rdna_regalloc(&a, 0, 0, 0, &used, NULL) && rdna_regalloc(&b, 0, 0, 0, &used, NULL));
	assert_memory_equal(a.reg, b.reg, l.n_regs * sizeof *a.reg);
	rdna_lir_free(&l);
	rdna_lir_free(&a);
	rdna_lir_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(low_numbers_go_first_and_are_used_again),
		cmocka_unit_test(sums_take_over_their_addend),
		cmocka_unit_test(copies_cost_no_register),
		cmocka_unit_test(copies_onto_themselves_go),
		cmocka_unit_test(scalar_tuples_are_aligned),
		cmocka_unit_test(a_tuple_ends_word_by_word),
		cmocka_unit_test(what_goes_round_a_loop_keeps_its_register),
		cmocka_unit_test(counts_live_to_the_end_of_their_loop),
		cmocka_unit_test(matrix_products_stay_apart_from_their_factors),
		cmocka_unit_test(too_many_registers_are_refused),
		cmocka_unit_test(unused_results_need_a_register_too),
		cmocka_unit_test(random_programs_stay_what_they_are),
		cmocka_unit_test(a_wrong_allocation_is_noticed),
		cmocka_unit_test(the_same_input_gives_the_same_registers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
