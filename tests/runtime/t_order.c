/* tests/runtime/t_order.c - the pass that orders ops (runtime/plan/order.h): hand-made graphs, and random ones
 * (order_random_tests.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels-templates/emit/heads.h"
#include "tests/runtime/made_plan.h"

/* The barriers, as a mask of the ops before them. */
static void expect_barriers(const struct made *m, uint32_t mask)
{
	for (size_t i = 0; i < m->plan.n_ops; i++)
		if (m->op[i].barrier != (mask >> i & 1u))
			fail_msg("a barrier behind op %zu: %d", i, m->op[i].barrier);
}

/* ---- hand-made graphs */

static void test_diamond(void **state)
{
	struct made m;
	(void)state;

	begin(&m);
	scale(&m, 0, 1, 1);   /* a */
	scale(&m, 1, 2, 1);   /* b and c read it, and may run together */
	scale(&m, 1, 3, 1);   /* c */
	gate(&m, 2, 3, 4, 1); /* d reads both */
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 2 | 1 << 3);
	assert_int_equal(m.plan.n_stages, 3);
	assert_int_equal(m.stage[1], 1);
	assert_int_equal(m.stage[2], 3);
	assert_int_equal(m.stage[3], 4);
}

static void test_hazards(void **state)
{
	struct made m;
	(void)state;

	begin(&m); /* written behind a read */
	scale(&m, 0, 1, 1);
	scale(&m, 2, 0, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1);

	begin(&m); /* written twice; nobody reads either */
	scale(&m, 0, 1, 1);
	scale(&m, 2, 1, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1);

	begin(&m); /* a value that is used twice, and one that never is */
	scale(&m, 0, 1, 1);
	scale(&m, 0, 2, 1);
	scale(&m, 0, 3, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 2);

	begin(&m); /* in place, again and again; KEY_RESIDUAL reads what it writes */
	scale(&m, 0, 0, 2);
	scale(&m, 0, 0, 2);
	scale(&m, 1, 2, 1);
	m.kernel[2].key.flags = KEY_RESIDUAL;
	scale(&m, 2, 3, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);

	begin(&m); /* neighbours that only touch each other */
	scale(&m, 0, 4, 2);
	scale(&m, 2, 6, 2);
	scale(&m, 5, 8, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1 | 1 << 2);
}

static void test_boundaries(void **state)
{
	struct made m;
	(void)state;

	begin(&m); /* sections, of which one is empty */
	scale(&m, 0, 1, 1);
	scale(&m, 0, 2, 1);
	m.section[m.plan.n_sections++] = 2;
	m.section[m.plan.n_sections++] = 2;
	scale(&m, 0, 3, 1);
	scale(&m, 0, 4, 1);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1 | 1 << 3);
	assert_int_equal(m.plan.n_stages, 2);

	begin(&m); /* units of other costs */
	scale(&m, 0, 1, 1);
	scale(&m, 0, 2, 1);
	scale(&m, 0, 3, 1);
	scale(&m, 0, 4, 1);
	m.op[1].uneven = m.op[2].uneven = true;
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 2 | 1 << 3);

	begin(&m); /* a chain is a stage, with the barriers that other devices need */
	scale(&m, 0, 1, 4);
	scale(&m, 0, 5, 4);
	scale(&m, 5, 9, 2);
	scale(&m, 0, 11, 1);
	m.op[1].fused_units = 2;
	m.op[2].fused_units = 1;
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
	assert_int_equal(m.plan.n_stages, 3);
	assert_int_equal(m.stage[1], 1);
	assert_int_equal(m.stage[2], 3);
}

static void change(struct made *m, uint64_t *slot, enum plan_change what, uint64_t offset, uint32_t sequence)
{
	m->changing[m->plan.n_changing++] = (struct plan_changing){ slot, offset, what, sequence };
}

/* A layer's keys and values are `layer` * 64 KiB behind a page's address. */
static void store(struct made *m, uint32_t layer, uint32_t sequence)
{
	uint64_t *a =
		add(m, (struct key){ .kind = KEY_KV_STORE, .kv_heads = 2, .head_dim = 32, .kv = key_type(DTYPE_F32) },
	            2);

	a[KV_STORE_K] = at(0);
	a[KV_STORE_V] = at(1);
	a[KV_STORE_KEYS] = layer * 65536;
	a[KV_STORE_VALUES] = layer * 65536 + 32768;
	a[KV_STORE_COS] = a[KV_STORE_SIN] = at(4);
	a[KV_STORE_COLUMNS] = 1;
	change(m, &a[KV_STORE_PAGES], PLAN_PAGES, 0, sequence);
	change(m, &a[KV_STORE_POS0], PLAN_POSITION, 0, sequence);
}

static void attend(struct made *m, uint32_t layer, uint32_t sequence, bool window)
{
	uint64_t *a = add(m,
	                  (struct key){ .kind = KEY_ATTENTION,
	                                .heads = 2,
	                                .kv_heads = 2,
	                                .head_dim = 32,
	                                .kv = key_type(DTYPE_F32),
	                                .tile_n = 1 },
	                  2);

	a[ATTENTION_Q] = at(2);
	a[ATTENTION_OUT] = at(6 + 2 * sequence);
	a[ATTENTION_KEYS] = layer * 65536;
	a[ATTENTION_VALUES] = layer * 65536 + 32768;
	a[ATTENTION_COLUMNS] = 1;
	change(m, &a[ATTENTION_PAGES], window ? PLAN_WINDOW_PAGES : PLAN_PAGES, 0, sequence);
	change(m, &a[ATTENTION_POS0], PLAN_POSITION, 0, sequence);
}

static void test_caches(void **state)
{
	struct made m;
	(void)state;

	begin(&m); /* sequences have pages of their own */
	store(&m, 0, 0);
	store(&m, 0, 1);
	attend(&m, 0, 0, false);
	attend(&m, 0, 1, false);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1 | 1 << 3);

	begin(&m); /* so have layers a part of each page, and layers with a window a table */
	store(&m, 0, 0);
	attend(&m, 1, 0, false);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1);
	begin(&m);
	store(&m, 0, 0);
	attend(&m, 0, 0, true);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1);
	begin(&m);
	store(&m, 1, 3);
	attend(&m, 1, 3, false);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1);

	begin(&m); /* behind an op of which one slot changes */
	uint64_t *a = add(&m, (struct key){ .kind = KEY_MERGE, .heads = 1, .head_dim = 32 }, 1);
	a[MERGE_RECORDS] = at(20);
	a[MERGE_OUT] = at(30);
	change(&m, &a[MERGE_POS0], PLAN_POSITION, 0, 0);
	store(&m, 0, 0);
	attend(&m, 0, 0, false);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 1 | 1 << 2);
}

/* Where the tiles of attention are numbered from the last one. */
static void test_tiles(void **state)
{
	enum { HEADS = 4, DIMS = 32, WIDTH = HEADS * DIMS / 32 /* rows of a column */ };
	const struct target *t = target_find("sm80");
	const uint32_t tile = attention_wave_columns(t, HEADS, 1), columns = 6 * tile - 1;
	(void)state;

	assert_true(tile > 1);
	for (unsigned row = 0; row < (columns + 1) * WIDTH; row++) {
		struct made m;
		begin(&m);
		attend(&m, 0, 0, false);
		m.kernel[0].key.target = (uint8_t)t->id;
		m.kernel[0].key.heads = HEADS;
		m.kernel[0].key.kv_heads = 1;
		m.kernel[0].key.tile_n = tile;
		m.op[0].arg[ATTENTION_Q] = at(5000);
		m.op[0].arg[ATTENTION_OUT] = at(0);
		m.op[0].arg[ATTENTION_COLUMNS] = columns;
		m.op[0].end = 7; /* one more than columns fill */
		scale(&m, row, 6000, 1);
		end_plan(&m, 0);
		expect_barriers(&m, (row < columns * WIDTH ? 1u : 0u) | 1u << 1);
	}
}

/* OUT and the state behind the pass, from X and the state before. */
static void convolve(struct made *m, uint64_t offset, enum plan_change in, uint32_t sequence)
{
	uint64_t *a = add(m, (struct key){ .kind = KEY_CONV, .k = 32, .rows = 4 }, 1);

	a[CONV_X] = at(0);
	a[CONV_WEIGHT] = at(1);
	a[CONV_OUT] = at(2 + (unsigned)m->plan.n_ops);
	a[CONV_COLUMNS] = 1;
	change(m, &a[CONV_STATE_IN], in, offset, sequence);
	change(m, &a[CONV_STATE_OUT], PLAN_STATE_BEHIND, offset, sequence);
}

static void test_states(void **state)
{
	struct made m;
	(void)state;

	begin(&m); /* other sequences; other layers */
	convolve(&m, 0, PLAN_STATE_BEFORE, 0);
	convolve(&m, 0, PLAN_STATE_BEFORE, 1);
	convolve(&m, 384, PLAN_STATE_BEFORE, 0);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 2);
	begin(&m); /* the same layer's twice; then from the one that was left */
	convolve(&m, 0, PLAN_STATE_BEFORE, 0);
	convolve(&m, 0, PLAN_STATE_BEFORE, 0);
	convolve(&m, 0, PLAN_STATE_BEHIND, 0);
	end_plan(&m, 0);
	expect_barriers(&m, 1 << 0 | 1 << 1 | 1 << 2);
}

/* Columns that data choose: any of so many. */
static void test_choices(void **state)
{
	for (unsigned row = 0; row < 6; row++) {
		struct made m;
		uint64_t *a;

		(void)state;
		begin(&m);
		a = add(&m, (struct key){ .kind = KEY_SCATTER, .k = 32, .heads = 2, .activation = key_type(DTYPE_F32) },
		        2);
		a[SCATTER_X] = at(20);
		a[SCATTER_POSITIONS] = at(24);
		a[SCATTER_OUT] = at(1);
		scale(&m, row, 30, 1);
		end_plan(&m, 4);
		expect_barriers(&m, (row >= 1 && row < 5 ? 1u : 0u) | 1u << 1);
	}
}

static void test_written_since(void **state)
{
	struct made m;
	(void)state;

	begin(&m);
	scale(&m, 0, 1, 2);
	scale(&m, 1, 5, 1);
	assert_true(plan_written_since(&m.plan, 0, at(2), at(3), 1));
	assert_false(plan_written_since(&m.plan, 0, at(3), at(5), 1));
	assert_false(plan_written_since(&m.plan, 1, at(1), at(5), 1));
	assert_true(plan_written_since(&m.plan, 1, at(0), at(5) + 1, 1));
	assert_false(plan_written_since(&m.plan, 2, 0, UINT64_MAX, 1));
	store(&m, 0, 0); /* into pages, which lie elsewhere whatever the number says */
	assert_false(plan_written_since(&m.plan, 2, 0, UINT64_MAX, 1));
}

/* More accesses than a stage keeps: barriers come early, and none is missing. */
static void test_wide_stage(void **state)
{
	struct made m;
	(void)state;

	begin(&m);
	for (unsigned i = 0; i < OPS / 2; i++)
		store(&m, 0, i);
	for (unsigned i = 0; i < OPS / 2; i++)
		attend(&m, 1, i, false);
	end_plan(&m, 0);
	assert_true(m.plan.n_stages > 1 && m.plan.n_stages < 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diamond), cmocka_unit_test(test_hazards),       cmocka_unit_test(test_boundaries),
		cmocka_unit_test(test_caches),  cmocka_unit_test(test_tiles),         cmocka_unit_test(test_states),
		cmocka_unit_test(test_choices), cmocka_unit_test(test_written_since), cmocka_unit_test(test_wide_stage)
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + order_random_tests();
}
