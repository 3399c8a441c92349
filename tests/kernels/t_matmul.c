/* tests/kernels/t_matmul.c - the matmul template against the plain loops: every way to run, formats, activations, odd
 * shapes, flags. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/matmul/recipe.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/kernels/matmul_check.h"
#include "tests/support/widths.h"

/* card: a turn's, or KERNEL_ALL_CARDS. Side by side are all problems that can be, or every third. */
static void check_on(const struct problem *p, int card)
{
	static unsigned round;
	const struct kernel_way *ways;
	struct data d;
	unsigned n = kernel_ways_and_cards(&ways, card);
	float *old = expect_data(&d, p);

	for (unsigned i = 0; i < n; i++) {
		const struct problem with = side_by_side(p);
		check_way(&ways[i], p, &d, old);
		if (matmul_recipe(&with.key, &ways[i].target).engine == MATMUL_SIDE_BY_SIDE &&
		    (!test_quick() || round++ % 3 == 0))
			check_way(&ways[i], &with, &d, old);
	}
	free(old);
	free_data(&d);
}

/* Cards take turns: each problem on one, but for JITRUN_TEST_FULL. */
static void check(const struct problem *p)
{
	static int round, problems;
	if (test_mine_of_many((unsigned)problems++))
		check_on(p, round++);
}

static const uint32_t row_counts[] = { 1, 31, 33, 64, 97 };
/* Rounded up to whole blocks of the weights. 2048 and 3072 have eight spans, 384 and 3072 spans with a short segment;
 * of blocks of 256, the spans of 768, 1280, 2560 and 2816 begin in the middle. */
static const uint32_t lengths[] = {
	32, 64, 96, 224, 256, 288, 384, 512, 768, 1024, 1088, 1280, 2048, 2560, 2816, 3072
};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void test_shapes(void **unused)
{
	unsigned step = test_full() ? 1 : test_quick() ? 37 : 4, at = 0;
	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (uint32_t columns = 1; columns <= TEMPLATE_MAX_COLUMNS; columns++)
			for (unsigned i = 0; i < LENGTHS; i++, at++) {
				uint32_t rows = row_counts[draw_number(5)],
					 tiles = 1 + draw_number(lengths[i] > 1024 ? 2 : 3);
				struct problem p = problem(mix, rows, lengths[i], columns, tiles, 1 + draw_number(2),
				                           flag_sets[draw_number(FLAG_SETS)]);
				if (at % step == 0)
					check(&p);
			}
}

/* Many columns, which lie side by side. */
static void test_wide(void **unused)
{
	static const uint32_t widths[] = { 24, 12, 10, 1, 2, 3, 5, 7, 9, 13, 14, 16, 17, 20, 21, 23 };
	unsigned n = sizeof widths / sizeof widths[0], at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0;
		     widths_has_wide(&target_table[TARGET_AVX2], mixes[mix].weight) && i < (test_quick() ? 3 : n);
		     i++, at++) {
			uint32_t k = lengths[draw_number(LENGTHS)];
			struct problem p = problem(mix, row_counts[draw_number(5)], k, widths[at % n],
			                           1 + draw_number(2), 1, KEY_WIDE | flag_sets[draw_number(FLAG_SETS)]);
			if (k % dtype_table[mixes[mix].weight].block == 0)
				check(&p);
		}
}

/* By integer matrix products, on targets that have them: one mix, in `step`th cases alone. */
static void check_matrices(unsigned mix, unsigned step)
{
	static unsigned at;

	for (unsigned i = 0; i < LENGTHS; i++)
		for (unsigned j = 0; j < 2; j++, at++) {
			uint32_t flags = flag_sets[j ? draw_number(ONE_MATRIX)
			                             : ONE_MATRIX + draw_number(FLAG_SETS - ONE_MATRIX)];
			struct problem p = problem(mix, row_counts[draw_number(5)], lengths[i], TEMPLATE_MMA_MIN,
			                           1 + draw_number(2), 1, KEY_MMA | flags);
			if (at % 4) /* also where rows are too few for what a tile of so many columns wants */
				p.key.tile_n = widths_mma_tile_n(&target_table[TARGET_SM90], mixes[mix].weight,
				                                 at % 4 == 1 ? UINT32_MAX : p.key.rows, p.key.k, flags);
			if (at % 4 > 2)
				p.key.tile_n = widths_mma_narrow_n(p.key.k, flags);
			if (at % step == 0)
				check(&p);
		}
}

/* Tiles of 128 rows, or columns, with spans that end in half a period, and of all numbers of spans. */
static void check_large_tiles(unsigned mix)
{
	static const struct {
		uint32_t rows, k, columns, flags;
	} all[] = { { 2080, 768, TEMPLATE_MMA_SHARED, KEY_RESIDUAL },
		    { 1056, 512, TEMPLATE_MMA_SHARED, KEY_PAIR | KEY_QUANTISED_OUT },
		    { 97, 1024, TEMPLATE_MMA_WIDE, KEY_BIAS },
		    { 33, 3072, TEMPLATE_MMA_WIDE, KEY_PAIR | KEY_QUANTISED_OUT } };

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		struct problem p =
			problem(mix, all[i].rows, all[i].k, all[i].columns, 1 + i % 2, 1, KEY_MMA | all[i].flags);
		check_on(&p, KERNEL_ALL_CARDS);
	}
}

/* Formats that NVIDIA cards unpack for it are multiplied there alone. */
static void test_matrices(void **unused)
{
	for (unsigned mix = 0; mix < n_mixes; mix++) {
		bool bytes = mixes[mix].weight == DTYPE_Q8_0;
		if (widths_mma(&target_table[TARGET_SM90], mixes[mix].weight, mixes[mix].activation, false))
			check_matrices(mix, test_full() ? 1 : bytes ? (test_quick() ? 5 : 1) : test_quick() ? 16 : 7);
		if (bytes && mixes[mix].activation == DTYPE_Q8_0)
			check_large_tiles(mix);
	}
}

static void test_one_column(void **unused)
{
	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < 5; i++)
			for (unsigned j = 0; j < (test_quick() ? 3 : LENGTHS); j++) {
				struct problem pair = problem(mix, row_counts[i], lengths[j], 1, 1 + draw_number(2), 2,
				                              flag_sets[draw_number(ONE_MATRIX)]);
				struct problem silu =
					problem(mix, row_counts[i], lengths[j], 1, 1, 1 + draw_number(2),
				                flag_sets[ONE_MATRIX + draw_number(FLAG_SETS - ONE_MATRIX)]);
				check((i + j + mix) % 2 ? &pair : &silu);
			}
}

/* At the quick size each set of flags has one of the two numbers of row blocks, and the next mix the other. */
static void test_flags(void **unused)
{
	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < FLAG_SETS; i++)
			for (unsigned row_blocks = 1; row_blocks <= 2; row_blocks++) {
				struct problem p = problem(mix, 65 + draw_number(32), 64, 1 + draw_number(8),
				                           1 + draw_number(2), row_blocks, flag_sets[i]);
				if (!test_quick() || (mix + i + row_blocks) % 2)
					check(&p);
			}
}

/* Lengths that are no multiple of 32: padded weights and activations. */
static void test_padding(void **unused)
{
	static const uint32_t odd[] = { 1, 2, 31, 33, 100, 257, 300, 1000 };
	for (unsigned mix = 0; mix < 3; mix++)
		for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++) {
			struct problem p = problem(mix, row_counts[draw_number(5)], odd[i], 1 + draw_number(8), 1,
			                           1 + draw_number(2), flag_sets[draw_number(FLAG_SETS)]);
			check(&p);
		}
}

/* The norm inside, for as many k's as there may be: of a few lanes, and of blocks that waves share unevenly. */
static void test_norms_inside(void **unused)
{
	static const uint32_t k_of[] = { 32, 64, 96, 160, 256, 288, 512, 768, 992, 1024, 1280, 1536, 2048, 3072, 4096 };
	enum { N = sizeof k_of / sizeof k_of[0] };
	unsigned step = test_full() ? 1 : test_quick() ? 71 : 13, at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (uint32_t columns = 1; columns <= TEMPLATE_MAX_COLUMNS; columns++)
			for (unsigned i = 0; i < N; i++) {
				struct problem p = problem(mix, row_counts[draw_number(5)], k_of[i], columns,
				                           1 + draw_number(2), 1 + draw_number(2),
				                           KEY_NORM_IN | (draw_number(4) ? 0 : KEY_CENTRED) |
				                                   flag_sets[draw_number(FLAG_SETS)]);
				if (takes_way(&target_table[TARGET_SM90], &p.key) && at++ % step == 0)
					check(&p);
			}
}

/* Of floats there may be any number. */
static void test_odd_norms_inside(void **unused)
{
	static const uint32_t odd[] = { 1, 2, 31, 33, 100, 257, 300, 1000, 1023, 2047, 4095 };

	for (unsigned mix = 0; mix < 3; mix++)
		for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++) {
			uint32_t max = 4096 / (uint32_t)numerics_pad(odd[i]),
				 columns = 1 + draw_number(max < 5 ? max : 5);
			struct problem p = problem(mix, row_counts[draw_number(5)], odd[i], columns, 1, 1,
			                           KEY_NORM_IN | (i % 2 ? KEY_CENTRED : 0));
			check(&p);
		}
}

/* What is awaited: quads and vectors that the waves share evenly or not, with the norm inside and without, every flag
 * that goes with it; and of floats any number. */
static void test_awaited(void **unused)
{
	static const uint32_t k_of[] = { 32,  64,  96,   128,  160,  256,  288,  1,    33,   127,  512,  1000,
		                         768, 992, 1024, 1280, 1536, 2048, 3072, 4095, 4096, 6144, 7680, 14336 },
			      flags[] = { 0,
		                          KEY_BIAS,
		                          KEY_RESIDUAL,
		                          KEY_BIAS | KEY_RESIDUAL,
		                          KEY_PAIR,
		                          KEY_PAIR | KEY_NORM_IN | KEY_QUANTISED_OUT,
		                          KEY_RESIDUAL | KEY_QUANTISED_OUT,
		                          KEY_NORM_IN,
		                          KEY_PAIR | KEY_NORM_IN | KEY_BIAS | KEY_BIAS2,
		                          KEY_NORM_IN | KEY_RESIDUAL,
		                          KEY_NORM_IN | KEY_CENTRED };
	enum { N = sizeof k_of / sizeof k_of[0], FLAGS = sizeof flags / sizeof flags[0] };
	unsigned step = test_full() ? 1 : test_quick() ? 47 : 7, at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned j = 0; j < FLAGS; j++)
			for (unsigned i = 0; i < N; i++) {
				uint32_t columns = at % 2 ? 1 : 1 + draw_number(TEMPLATE_MAX_COLUMNS);
				struct problem p = problem(mix, row_counts[draw_number(5)], k_of[i], columns, 1,
				                           1 + draw_number(2), KEY_AWAITED | flags[j]);
				if (takes_way(&target_table[TARGET_SM90], &p.key) && at++ % step == 0)
					check(&p);
			}
}

/* More words than a group has registers for come in batches: of floats any number, of int8 blocks whole ones. */
static void test_awaited_in_batches(void **unused)
{
	static const uint32_t k_of[] = { 17408, 17409, 17440, 20000, 24576, 28672, 32768, 33001 },
			      flags[] = { KEY_RESIDUAL, 0, KEY_BIAS | KEY_RESIDUAL };
	enum { N = sizeof k_of / sizeof k_of[0], FLAGS = sizeof flags / sizeof flags[0] };
	unsigned step = test_full() ? 1 : test_quick() ? 37 : 11, at = 0, tried = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < N; i++) {
			struct problem p = problem(mix, draw_number(2) ? 32 : 33, k_of[i], 1, 1, 1,
			                           KEY_AWAITED | flags[draw_number(FLAGS)]);
			if (takes_way(&target_table[TARGET_SM90], &p.key) && at++ % step == 0) {
				check(&p);
				tried++;
			}
		}
	assert_true(tried >= 2);
}

/* The same by products of matrices: all numbers of columns, which fill half an operand or more, over periods that are
 * whole or not, batches of what is staged, and columns that end within a quad. */
static void test_awaited_matrices(void **unused)
{
	static const uint32_t k_of[] = { 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304, 3072, 4096, 8192, 14336 },
			      flags[] = { 0, KEY_BIAS, KEY_RESIDUAL, KEY_PAIR, KEY_PAIR | KEY_QUANTISED_OUT };
	enum { N = sizeof k_of / sizeof k_of[0], FLAGS = sizeof flags / sizeof flags[0] };
	const struct target *target = &target_table[TARGET_SM90];
	unsigned step = test_full() ? 1 : test_quick() ? 61 : 11, at = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < N; i++)
			for (unsigned columns = 1; columns <= TEMPLATE_MAX_COLUMNS; columns++) {
				struct problem p = problem(mix, row_counts[draw_number(5)], k_of[i], columns, 1, 1,
				                           KEY_AWAITED | KEY_MMA | flags[draw_number(FLAGS)]);
				if (widths_mma(target, mixes[mix].weight, mixes[mix].activation, false) &&
				    takes_way(target, &p.key) && at++ % step == 0)
					check(&p);
			}
	for (unsigned mix = 0; mix < n_mixes; mix++) /* inputs in two batches; fewer row blocks than waves could have */
		for (unsigned i = 0; i < 2 && mixes[mix].weight == DTYPE_Q8_0; i++) {
			struct problem p = problem(mix, 31, i ? 2048 : 8448, i ? 2 : 8, 1, 1,
			                           KEY_AWAITED | KEY_MMA | KEY_RESIDUAL);
			if (takes_way(target, &p.key))
				check_on(&p, KERNEL_ALL_CARDS);
		}
}

/* What may be awaited is IR that the verifier takes, and has room in a block; products of matrices leave so many bytes
 * of each wave to copies of weights at least, whether these fit there or not. False: it may not be awaited. */
static bool is_built(const struct problem *p)
{
	enum { COPIES = 3 << 10 };
	const struct target *target = &target_table[TARGET_SM90];
	struct key key = p->key;
	struct error err = { 0 };
	struct ir ir;
	bool copies = false;

	if (!takes_way(target, &key))
		return false;
	key.target = TARGET_SM90;
	ir_init(&ir, target->lanes);
	ir.waves = target->waves;
	if (!template_build(&ir, &key, target, &err) || !ir_verify(&ir, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ir.n_ins; i++)
		copies = copies || ir.ins[i].op == IR_copy;
	uint32_t own = ir.local_bytes + (key.flags & KEY_MMA && !copies ? COPIES : 0);
	if (((ir.shared_bytes + 63) & ~63u) + ir.waves * own > target->block_bytes) {
		char text[KEY_TEXT_MAX];
		fail_msg("%s: %u shared bytes, %u local ones", key_text(&key, text, sizeof text), ir.shared_bytes,
		         ir.local_bytes);
	}
	ir_free(&ir);
	return true;
}

/* Copies ahead, parts of periods and heads in every combination. */
static void test_awaited_is_built(void **unused)
{
	static const uint32_t flags[] = { 0, KEY_RESIDUAL, KEY_PAIR | KEY_QUANTISED_OUT, KEY_NORM_IN };

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (uint32_t k = 256; k <= 14336; k += k < 4096 ? (test_quick() ? 768 : 256) : 1024)
			for (unsigned i = 0; i < 8 * TEMPLATE_MAX_COLUMNS; i++) {
				struct problem p = problem(mix, 64, k, 1 + i / 8, 1, 1,
				                           KEY_AWAITED | flags[i % 4] | (i & 4 ? KEY_MMA : 0));
				is_built(&p);
			}
}

/* The longest that has room, of few columns and of many: there is room for half an operand or all of it. */
static void test_longest_awaited(void **unused)
{
	const struct target *target = &target_table[TARGET_SM90];

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < 4; i++) {
			struct problem p = problem(mix, 64, 256, i & 1 ? 9 : 1, 1, 1,
			                           KEY_AWAITED | KEY_MMA | (i & 2 ? KEY_PAIR : 0));
			while (takes_way(target, &p.key))
				p.key.k += 256;
			p.key.k -= 256;
			assert_true(!p.key.k || (is_built(&p) && p.key.k >= 2048));
		}
}

/* Quotients in the middle of two numbers, of scales that are next to nothing, and of large ones, where a group makes
 * int8 blocks. */
static void test_halves(void **unused)
{
	static const int powers[] = { -148, -140, -127, -120, -66, -64, -30, -3, 30, 63, 66 };
	enum { POWERS = sizeof powers / sizeof *powers };

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < POWERS && mixes[mix].weight == DTYPE_Q8_0; i++) {
			struct problem p = problem(mix, 32, 256, i % 3 ? 1 : 3, 1, 1, KEY_AWAITED | KEY_NORM_IN);
			p.halves = powers[i];
			check(&p);
		}
}

/* The greatest of each row block, of results of which one may be no number. */
static void test_greatest(void **unused)
{
	static const uint32_t rows[] = { 32, 64, 96, 160, 352 }, k_of[] = { 32, 256, 512, 1024 };
	/* That NaN is what cards make of any. */
	const float spoils[] = { 0, 0, __builtin_nanf("0x3fffff"), INFINITY, -INFINITY, -1e30f, 1e30f };
	enum { SPOILS = sizeof spoils / sizeof spoils[0] };

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned i = 0; i < (test_quick() ? 1 : 2 * SPOILS); i++) {
			uint32_t k = k_of[draw_number(4)], columns = i % 2 ? 1 : 1 + draw_number(TEMPLATE_MAX_COLUMNS);
			struct problem p =
				problem(mix, rows[draw_number(5)], k, columns, 1 + draw_number(2), 1 + draw_number(2),
			                KEY_GREATEST | (draw_number(2) ? KEY_NORM_IN : 0));
			p.spoil = spoils[(mix + i) % SPOILS];
			p.key.flags |= p.spoil != 0 ? KEY_BIAS : 0;
			p.key.act = ACT_NONE;
			check(&p);
			if (!widths_mma(&target_table[TARGET_SM90], mixes[mix].weight, mixes[mix].activation, false))
				continue;
			p.key.flags = (p.key.flags & ~(uint32_t)KEY_NORM_IN) | KEY_MMA;
			p.key.row_blocks = 1;
			p.key.tile_n = draw_number(2) ? widths_mma_tile_n(&target_table[TARGET_SM90], mixes[mix].weight,
			                                                  p.key.rows, k, p.key.flags)
			                              : TEMPLATE_MMA_MIN;
			check(&p);
		}
}

/* n columns at once are n times one column. At the quick size each mix has one of the cards. */
static void test_columns_do_not_matter(void **unused)
{
	for (unsigned mix = 0; mix < n_mixes; mix++) {
		const struct kernel_way *ways;
		const unsigned n = kernel_ways_and_cards(&ways, test_quick() ? (int)mix : KERNEL_ALL_CARDS);
		for (unsigned i = 0; i < n && test_mine(mix); i++) {
			struct problem wide = problem(mix, 97, 768, 7, 1, 2, 0), narrow = wide;
			struct data d;
			struct kernel k;
			narrow.key.tile_n = 1;
			narrow.tiles = 7;
			make_data(&d, &wide);
			kernel_open(&k, &ways[i], &wide.key);
			launch(&ways[i], &k, &d, &wide);
			kernel_close(&k);
			memcpy(d.expected.out, d.got.out, d.out_n * 4);
			memset(d.got.out, 0x55, d.out_n * 4);
			kernel_open(&k, &ways[i], &narrow.key);
			launch(&ways[i], &k, &d, &narrow);
			kernel_close(&k);
			same_output("out", &ways[i], &narrow, d.got.out, d.expected.out, d.out_n * 4);
			free_data(&d);
		}
	}
}

/* ---- schedules */

static void test_refusals(void **unused)
{
	static const struct target target = { .name = "test", .lanes = 8, .vector_regs = 16 };
	struct problem good = problem(3, 32, 64, 1, 1, 1, 0), bad[27];
	unsigned n = 0;

	for (unsigned i = 0; i < 27; i++)
		bad[i] = good;
	bad[n++].key.weight = DTYPE_I64 + 1;
	bad[n++].key.weight = 0;
	bad[n++].key.activation = DTYPE_F16 + 1;
	bad[n].key.weight = DTYPE_F32 + 1;
	bad[n++].key.activation = DTYPE_Q8_0 + 1;
	bad[n++].key.k = 33;
	bad[n++].key.rows = 0;
	bad[n++].key.tile_n = 9;
	bad[n++].key.row_blocks = 3;
	set_flags(&bad[n++].key, KEY_BIAS2);
	set_flags(&bad[n++].key, KEY_PAIR | KEY_RESIDUAL);
	set_flags(&bad[n++].key, KEY_PAIR | KEY_GATED);
	set_flags(&bad[n++].key, KEY_GATED | KEY_RESIDUAL);
	bad[n].key.flags = KEY_WIDE;
	bad[n++].key.tile_n = TEMPLATE_MAX_WIDE + 1;
	bad[n].key.flags = KEY_WIDE;
	bad[n++].key.row_blocks = 2;
	set_flags(&bad[n++].key, KEY_WIDE | KEY_PAIR | KEY_RESIDUAL);
	bad[n++].key.flags = KEY_PAIR; /* no activation function */
	bad[n++].key.flags = KEY_GATED;
	set_flags(&bad[n].key, KEY_RESIDUAL);
	bad[n++].key.act = ACT_SILU;
	set_flags(&bad[n].key, KEY_PAIR);
	bad[n++].key.act = KEY_ACT_COUNT;
	bad[n++].key.schedule = 1; /* the usual level, written out */
	bad[n++].key.schedule = 0xf;
	bad[n++].key.schedule = 0x2000;  /* two row blocks of one */
	bad[n++].key.schedule = 0x30000; /* three columns of one */
	bad[n++].key.schedule = 1u << 24;
	bad[n++].key.flags = KEY_AWAITED;
	bad[n++].key.flags = KEY_NORM_IN; /* not by a wave alone */
	bad[n++].key.flags = KEY_CENTRED;
	for (unsigned i = 0; i <= n; i++) {
		struct error err = { 0 };
		struct ir ir;
		ir_init(&ir, 8);
		bool built = template_build(&ir, i < n ? &bad[i].key : &good.key, &target, &err);
		ir_free(&ir);
		assert_int_equal(built, i == n);
		assert_int_equal(err.code, i < n ? ERROR_UNSUPPORTED : ERROR_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_one_column),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_columns_do_not_matter),
		cmocka_unit_test(test_norms_inside),
		cmocka_unit_test(test_odd_norms_inside),
		cmocka_unit_test(test_awaited),
		cmocka_unit_test(test_awaited_matrices),
		cmocka_unit_test(test_awaited_in_batches),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_awaited_is_built),
		cmocka_unit_test(test_greatest),
		cmocka_unit_test(test_longest_awaited),
	};
	make_mixes();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += matmul_dot2_tests();
	failed += matmul_schedule_tests();
	return failed;
}
