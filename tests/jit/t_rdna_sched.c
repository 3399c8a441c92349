/* tests/jit/t_rdna_sched.c - RDNA scheduling: what moves where, what never changes places, how many registers it may
 * take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/jit/rdna_lir_run.h"
#include "tests/jit/rdna_text.h"

static void becomes(unsigned vgprs, const char *before, const char *after)
{
	struct rdna_lir l;
	struct error err = { 0 };
	rdna_text_read(&l, RDNA_GFX11, before);
	if (!rdna_lir_verify(&l, &err) || !rdna_sched(&l, vgprs, 0, &err) || !rdna_lir_verify(&l, &err))
		fail_msg("%s", err.text);
	rdna_text_is(&l, after);
	rdna_lir_free(&l);
}

static const char four_loads[] =
	"v_mov_b32 %v1, 0\n"
	"s_barrier\n"
	"global_load_b32 %v2, %v1, s[8:9]\nv_add_f32 %v3, %v2, %v2\nds_store_b32 %v1, %v3\n"
	"global_load_b32 %v4, %v1, s[8:9] offset:4\nv_add_f32 %v5, %v4, %v4\nds_store_b32 %v1, %v5\n"
	"global_load_b32 %v6, %v1, s[8:9] offset:8\nv_add_f32 %v7, %v6, %v6\nds_store_b32 %v1, %v7\n";

static void loads_go_up_together(void **state)
{
	becomes(0, four_loads,
	        "v_mov_b32 %v1, 0\n"
	        "s_barrier\n"
	        "global_load_b32 %v2, %v1, s[8:9]\nglobal_load_b32 %v4, %v1, s[8:9] offset:4\nglobal_load_b32 %v6, "
	        "%v1, s[8:9] offset:8\n"
	        "v_add_f32 %v3, %v2, %v2\nv_add_f32 %v5, %v4, %v4\nds_store_b32 %v1, %v3\nv_add_f32 %v7, %v6, %v6\n"
	        "ds_store_b32 %v1, %v5\nds_store_b32 %v1, %v7\n");
}

static void without_registers_nothing_moves(void **state) { becomes(2, four_loads, four_loads); }

static void barriers_and_loops_are_not_crossed(void **state)
{
	static const char text[] =
		"v_mov_b32 %v1, 0\nv_add_f32 %v2, %v1, %v1\nv_add_f32 %v3, %v2, "
		"%v2\ns_barrier\nglobal_load_b32 %v4, %v1, s[8:9]\nloop 3\n"
		"  v_add_f32 %v5, %v4, %v4\n  global_load_b32 %v6, %v1, "
		"s[8:9]\nendloop\nglobal_load_b32 %v7, %v1, s[8:9]\n";
	becomes(0, text, text);
}

static void memory_keeps_its_order(void **state)
{
	/* a store between two loads of the same memory; other memory, and memory that nobody writes, goes up */
	becomes(0,
	        "v_mov_b32 %v1, 0\ns_barrier\nv_add_f32 %v9, %v1, %v1\nds_store_b32 %v1, %v9\nds_load_b32 %v2, "
	        "%v1\nglobal_load_b32 %v3, %v1, s[8:9]\n"
	        "v_add_f32 %v4, %v2, %v3\nglobal_store_b32 %v1, %v4, s[8:9]\ns_load_b32 %s5, s[8:9] "
	        "memory:const\nv_add_f32 %v6, %v4, %s5\nds_store_b32 %v1, %v6\n",
	        "v_mov_b32 %v1, 0\ns_barrier\nglobal_load_b32 %v3, %v1, s[8:9]\ns_load_b32 %s5, s[8:9] "
	        "memory:const\nv_add_f32 %v9, %v1, %v1\nds_store_b32 %v1, %v9\n"
	        "ds_load_b32 %v2, %v1\nv_add_f32 %v4, %v2, %v3\nv_add_f32 %v6, %v4, %s5\nglobal_store_b32 %v1, %v4, "
	        "s[8:9]\nds_store_b32 %v1, %v6\n");
}

/* The sum in the middle leaves something in scc that nobody reads: it may go up, but not between the halves of
 * another. */
static void scc_reaches_its_reader(void **state)
{
	becomes(0,
	        "s_load_b64 %s1:2, s[8:9]\ns_barrier\n"
	        "s_add_co_u32 %s2[0], %s1[0], 1\ns_add_co_ci_u32 %s2[1], %s1[1], 0\ns_and_b32 %s3, %s1[0], "
	        "7\ns_load_b32 %s4, %s1:2, %s3\ns_add_co_u32 %s5, %s2[0], %s4\n",
	        "s_load_b64 %s1:2, s[8:9]\ns_barrier\n"
	        "s_add_u32 %s2[0], %s1[0], 1\ns_addc_u32 %s2[1], %s1[1], 0\ns_and_b32 %s3, %s1[0], 7\ns_load_b32 %s4, "
	        "%s1:2, %s3\ns_add_u32 %s5, %s2[0], %s4\n");
}

/* --- random programs */

static bool same_order(const struct rdna_lir *a, const struct rdna_lir *b)
{
	return memcmp(a->ins, b->ins, a->n_ins * sizeof *a->ins) == 0;
}

static void random_programs_stay_what_they_are(void **state)
{
	static const enum rdna_gen gens[] = { RDNA_GFX10_3, RDNA_GFX11 };
	unsigned moved = 0;
	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct rdna_lir l, a;
		struct error err = { 0 };
		rdna_lir_make(&l, gens[seed % 2], 20 + seed % 300, seed);
		struct rdna_lir_outcome want = rdna_lir_run(&l), got;
		for (unsigned pass = 0; pass < 6; pass++) {
			rdna_lir_copy(&a, &l);
			if (!rdna_sched(&a, pass ? 20 + seed * pass % 150 : 0, pass % 3 ? seed * pass : 0, &err) ||
			    !rdna_lir_verify(&a, &err))
				fail_msg("seed %u: %s", seed, err.text);
			got = rdna_lir_run(&a);
			if (got.visible != want.visible || got.registers != want.registers)
				fail_msg("seed %u, pass %u: the program computes something else", seed, pass);
			moved += !same_order(&l, &a);
			rdna_lir_free(&a);
		}
		rdna_lir_free(&l);
	}
	assert_true(moved > 1200);
}

/* Neighbours that depend on each other, exchanged: the run tells, or they did not. So the test above would, too. */
static void a_broken_order_is_noticed(void **state)
{
	unsigned noticed = 0, raw = 0;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		struct rdna_lir l;
		rdna_lir_make(&l, RDNA_GFX11, 120, seed);
		struct rdna_lir_outcome want = rdna_lir_run(&l), got;
		unsigned depth = 0;
		for (size_t k = 0; k + 1 < l.n_ins; k++) {
			struct rdna_lir_ins one = l.ins[k], two = l.ins[k + 1];
			depth += one.op == RDNA_LIR_LOOP || one.op == RDNA_LIR_IF;
			depth -= one.op == RDNA_LIR_ENDLOOP || one.op == RDNA_LIR_ENDIF;
			bool depends = one.d[0].kind == RDNA_LIR_VIRTUAL && two.s[0].kind == RDNA_LIR_VIRTUAL &&
			               one.d[0].reg == two.s[0].reg && one.d[0].n == 1 && two.s[0].n == 1 &&
			               one.d[0].sub == two.s[0].sub && two.op < RDNA_OP_COUNT && one.op < RDNA_OP_COUNT;
			if (!depends || depth || two.d[0].kind != RDNA_LIR_VIRTUAL)
				continue;
			l.ins[k] = two;
			l.ins[k + 1] = one;
			got = rdna_lir_run(&l);
			raw++;
			noticed += got.visible != want.visible || got.registers != want.registers;
			l.ins[k] = one;
			l.ins[k + 1] = two;
		}
		rdna_lir_free(&l);
	}
	assert_true(raw > 50);
	assert_true(noticed * 10 > raw * 8); /* a result may be written again before anything sees it */
}

/* What fitted still fits, within the budget or in what it took before. */
static void the_budget_is_kept(void **state)
{
	unsigned smaller = 0;
	for (uint32_t seed = 1; seed <= 200; seed++) {
		struct rdna_lir l, a;
		struct rdna_regs before, after;
		rdna_lir_make(&l, RDNA_GFX10_3, 60 + seed, seed);
		rdna_lir_copy(&a, &l);
		unsigned budget = 24 + seed % 100;
		if (rdna_regalloc(&a, 0, 0, 0, &before, NULL)) {
			assert_true(rdna_sched(&l, budget, seed % 4 == 3 ? seed : 0, NULL));
			struct error err = { 0 };
			/* tuples may leave gaps: one more of the largest is granted */
			unsigned max = (before.vgprs > budget ? before.vgprs : budget) + 8;
			if (!rdna_regalloc(&l, max, 0, 0, &after, &err))
				fail_msg("seed %u, budget %u, before %u: %s", seed, budget, before.vgprs, err.text);
			smaller += after.vgprs <= before.vgprs || after.vgprs <= budget;
		}
		rdna_lir_free(&l);
		rdna_lir_free(&a);
	}
	assert_true(smaller > 100);
}

static void the_same_input_gives_the_same_order(void **state)
{
	for (uint32_t seed = 0; seed < 3; seed++) {
		struct rdna_lir a, b;
		rdna_lir_make(&a, RDNA_GFX11, 400, 5);
		rdna_lir_make(&b, RDNA_GFX11, 400, 5);
		assert_true(rdna_sched(&a, 96, seed, NULL) && rdna_sched(&b, 96, seed, NULL));
		assert_true(same_order(&a, &b));
		rdna_lir_free(&a);
		rdna_lir_free(&b);
	}
}

/* A run of very many instructions: what is more than n log n would not end in the time a test has. */
static void long_runs_are_no_trouble(void **state)
{
	struct rdna_lir l;
	struct rdna_regs used;
	struct error err = { 0 };
	enum { UNITS = 30000 };
	rdna_lir_init(&l, RDNA_GFX11);
	uint32_t lane = rdna_lir_new(&l, RDNA_CLASS_VGPR, 1);
	struct rdna_lir_ins *i = rdna_lir_add(&l, RDNA_V_MOV_B32);
	i->d[0] = rdna_lir_r(&l, lane);
	i->s[0] = rdna_lir_imm(0);
	for (unsigned k = 0; k < UNITS; k++) {
		uint32_t v = rdna_lir_new(&l, RDNA_CLASS_VGPR, 4), w = rdna_lir_new(&l, RDNA_CLASS_VGPR, 1);
		i = rdna_lir_add(&l, RDNA_GLOBAL_LOAD_B128);
		i->d[0] = rdna_lir_r(&l, v);
		i->s[0] = rdna_lir_r(&l, lane);
		i->saddr = rdna_lir_fixed(RDNA_ABI_ARG, 2);
		i->memory = RDNA_MEM_CONST;
		i = rdna_lir_add(&l, RDNA_V_FMA_F32);
		i->d[0] = rdna_lir_r(&l, w);
		for (unsigned s = 0; s < 3; s++)
			i->s[s] = rdna_lir_words(v, s, 1);
		i = rdna_lir_add(&l, RDNA_GLOBAL_STORE_B32);
		i->s[0] = rdna_lir_r(&l, lane);
		i->s[1] = rdna_lir_r(&l, w);
		i->saddr = rdna_lir_fixed(RDNA_ABI_ARG, 2);
	}
	struct rdna_lir_outcome want = rdna_lir_run(&l), got;
	assert_true(rdna_sched(&l, 96, 0, &err));
	got = rdna_lir_run(&l);
	assert_true(want.visible == got.visible && want.registers == got.registers);
	assert_int_equal(l.ins[1].op, RDNA_GLOBAL_LOAD_B128);
	assert_int_equal(l.ins[2].op, RDNA_GLOBAL_LOAD_B128);
	if (!rdna_regalloc(&l, 96, 0, 0, &used, &err) || !rdna_lir_verify(&l, &err))
		fail_msg("%s", err.text);
	rdna_lir_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_go_up_together),
		cmocka_unit_test(without_registers_nothing_moves),
		cmocka_unit_test(barriers_and_loops_are_not_crossed),
		cmocka_unit_test(memory_keeps_its_order),
		cmocka_unit_test(scc_reaches_its_reader),
		cmocka_unit_test(random_programs_stay_what_they_are),
		cmocka_unit_test(a_broken_order_is_noticed),
		cmocka_unit_test(the_budget_is_kept),
		cmocka_unit_test(the_same_input_gives_the_same_order),
		cmocka_unit_test(long_runs_are_no_trouble),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
