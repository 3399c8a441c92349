/* tests/kernels/matmul_schedule_tests.c - the schedules of matmul: the same bits with each, and no spills. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/matmul/recipe.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/kernels/matmul_check.h"
#include "tests/support/widths.h"

enum { DIGITS = 16 /* of a field */, ALONE_MAX = MATMUL_SCHEDULE_FIELDS * DIGITS };

static bool has_schedule(const struct target *t, const struct key *key, uint32_t schedule)
{
	struct key k = *key;

	k.schedule = schedule;
	return !matmul_recipe(&k, t).refusal;
}

/* Those that differ from the usual one in one field; the distance of several columns comes with both levels. */
static unsigned list_alone(const struct target *t, const struct key *key, uint32_t out[ALONE_MAX])
{
	unsigned n = 0;

	for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
		for (uint32_t digit = 1; digit < DIGITS; digit++)
			if (has_schedule(t, key, digit << 4 * f))
				out[n++] = digit << 4 * f;
			else if (has_schedule(t, key, digit << 4 * f | SCHEDULE_BOTH_LEVELS))
				out[n++] = digit << 4 * f | SCHEDULE_BOTH_LEVELS;
	return n;
}

/* Any there is, made of those; 0: none was found. */
static uint32_t draw_schedule(const struct target *t, const struct key *key, const uint32_t alone[], unsigned n)
{
	for (unsigned tries = 0; n && tries < 20; tries++) {
		uint32_t s = 0;
		for (unsigned i = 0; i < 3; i++) {
			uint32_t one = alone[draw_number(n)];
			for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
				s |= s >> 4 * f & 15 ? 0 : one & 15u << 4 * f;
		}
		if (s && has_schedule(t, key, s))
			return s;
	}
	return 0;
}

/* What changes registers or the loops; distances and levels come with them. */
static const struct {
	uint32_t columns, wide;
} schedule_tile_n[] = { { 1, 0 },        { 4, 0 },         { 8, 0 },         { 4, KEY_WIDE },
	                { 8, KEY_WIDE }, { 16, KEY_WIDE }, { 12, KEY_WIDE }, { 24, KEY_WIDE } };
enum { SCHEDULE_COLUMNS = sizeof schedule_tile_n / sizeof *schedule_tile_n };

/* Every way of going through the weights gives the bits of the plain loops: all that differ in one field, and some that
 * differ in several. */
static void test_schedules(void **unused)
{
	static const uint32_t ks[] = { 512, 768, 2048 };
	uint32_t alone[ALONE_MAX];
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), tried[MATMUL_SCHEDULE_FIELDS] = { 0 }, at = 0, drawn = test_quick() ? 1 : 3;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned c = 0; c < SCHEDULE_COLUMNS; c++) {
			struct problem p =
				problem(mix, 97, ks[at++ % 3], schedule_tile_n[c].columns, 1, 1 + draw_number(2), 0);
			if (schedule_tile_n[c].wide)
				p.key.row_blocks = 1;
			set_flags(&p.key, schedule_tile_n[c].wide | flag_sets[draw_number(FLAG_SETS)]);
			/* The plain loops take most of the time: half of the problems at the quick size. */
			if ((test_quick() && (mix + c) % 2) || !test_mine((mix + c) / 2))
				continue;
			struct data d;
			float *old = expect_data(&d, &p);
			for (unsigned i = 0; i < n; i++) {
				unsigned found = takes_way(&ways[i].target, &p.key)
				                         ? list_alone(&ways[i].target, &p.key, alone)
				                         : 0;
				for (unsigned j = 0; j < found + (found ? drawn : 0); j++) {
					p.key.schedule =
						j < found ? alone[j]
							  : draw_schedule(&ways[i].target, &p.key, alone, found);
					if (j < found && test_quick() && (j + at + i) % 5)
						continue;
					check_way(&ways[i], &p, &d, old);
					for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
						tried[f] += (p.key.schedule >> 4 * f & 15) != 0;
				}
				p.key.schedule = 0;
			}
			free(old);
			free_data(&d);
		}
	/* One share of many may have no problem with a schedule of each field. */
	for (unsigned f = 0; f < MATMUL_SCHEDULE_FIELDS; f++)
		assert_true(tried[f] > 0 || test_share()->of > 8);
}

/* Lists are of what there is: every schedule near a legal one is legal, and what packs have too. */
static void test_schedule_lists(void **unused)
{
	unsigned all = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned c = 0; c < SCHEDULE_COLUMNS; c++)
			for (unsigned target = TARGET_NONE + 1; target < TARGET_COUNT; target++) {
				struct problem p = problem(mix, 97, 2048, schedule_tile_n[c].columns, 1, 1,
				                           schedule_tile_n[c].wide);
				uint32_t list[TEMPLATE_SCHEDULES_MAX];
				p.key.target = (uint8_t)target;
				unsigned n = template_schedules(&p.key, list);
				assert_in_range(n, 1,
				                target_table[target].lane_bytes       ? 1
				                : target_table[target].prefetch_to_l2 ? 8
				                                                      : 6);
				assert_int_equal(list[0], 0);
				for (unsigned step = 0; step < 12; step++) {
					unsigned near = template_schedules_near(
						&p.key, draw_number(TEMPLATE_SCHEDULE_FIELDS), list);
					assert_true(near < TEMPLATE_SCHEDULES_MAX);
					for (unsigned i = 0; i < near; i++) {
						struct key k = p.key;
						char name[TEMPLATE_SCHEDULE_NAME];
						k.schedule = list[i];
						assert_null(template_schedule_refusal(&k));
						assert_true(k.schedule != p.key.schedule);
						assert_true(strlen(template_schedule_name(&k, name, sizeof name)) + 1 <
						            sizeof name);
					}
					all += near;
					p.key.schedule = near ? list[draw_number(near)] : p.key.schedule;
				}
			}
	assert_true(all > 0);
}

static unsigned spills(const struct kernel_way *way, const struct problem *p)
{
	char text[KEY_TEXT_MAX];
	struct kernel k;

	kernel_open(&k, way, &p->key);
	unsigned n = k.stats.spills_in_inner_loops;
	kernel_close(&k);
	if (n)
		print_message("%s: %s: %u spills in inner loops\n", way->name, key_text(&p->key, text, sizeof text), n);
	return n;
}

/* Some of them. */
static unsigned spills_of_schedules(const struct kernel_way *way, const struct problem *p, unsigned times)
{
	uint32_t alone[ALONE_MAX];
	unsigned n = list_alone(&way->target, &p->key, alone), bad = 0;

	for (unsigned i = 0; i < (test_quick() ? (times + 1) / 2 : times); i++) {
		struct problem one = *p;
		if ((one.key.schedule = draw_schedule(&way->target, &p->key, alone, n)))
			bad += spills(way, &one);
	}
	return bad;
}

/* Whether passes of so few columns usually prefetch into both cache levels, on targets whose cores have many lines on
 * their way. */
static bool prefetches_both(const struct target *t, const struct key *key, bool wide)
{
	const bool int8 = key->activation == key_type(DTYPE_Q8_0);

	if (!wide)
		return int8 && key->tile_n > 1;
	return int8 ? t->has_vnni && key->weight == key_type(DTYPE_Q8_0) && key->tile_n > 4 && key->tile_n <= 16
	            : key->tile_n <= 8;
}

static void check_usual_level(const struct target *t, const struct key *key, bool wide)
{
	struct matmul_schedule s;

	assert_null(matmul_schedule(key, t, &s));
	if (s.prefetch_level != SCHEDULE_SECOND_LEVEL) /* row blocks that are unpacked as a whole */
		assert_int_equal(s.prefetch_level,
		                 prefetches_both(t, key, wide) ? SCHEDULE_BOTH_LEVELS : SCHEDULE_FIRST_LEVEL);
}

/* Where a core waits for few lines at a time, both cache levels are usual up to 16 columns. */
static void test_usual_levels(void **unused)
{
	static const uint32_t columns[] = { 1, 2, 4, 5, 8, 12, 16, 24 };

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned c = 0; c < sizeof columns / sizeof *columns; c++)
			for (unsigned wide = columns[c] > 16; wide <= (columns[c] > 1); wide++) {
				struct problem p = problem(mix, 97, 2048, columns[c], 1, 1, wide ? KEY_WIDE : 0);
				struct matmul_schedule small, many;
				if (!takes_way(&target_table[TARGET_AVX512_AMX], &p.key) ||
				    !takes_way(&target_table[TARGET_AVX512_VNNI], &p.key))
					continue;
				assert_null(matmul_schedule(&p.key, &target_table[TARGET_AVX512_AMX], &small));
				assert_null(matmul_schedule(&p.key, &target_table[TARGET_AVX512_VNNI], &many));
				if (many.prefetch_level == SCHEDULE_SECOND_LEVEL)
					assert_int_equal(small.prefetch_level, SCHEDULE_SECOND_LEVEL);
				else
					assert_int_equal(small.prefetch_level == SCHEDULE_BOTH_LEVELS,
					                 columns[c] <= 16);
				check_usual_level(&target_table[TARGET_AVX512_VNNI], &p.key, wide);
				if (takes_way(&target_table[TARGET_AVX2], &p.key))
					check_usual_level(&target_table[TARGET_AVX2], &p.key, wide);
			}
	(void)unused;
}

/* At the quick size every shape has half of each mix's columns, and these columns have one of three shapes at least. */
static bool is_mine_of_wide(unsigned sum, unsigned columns)
{
	return !(test_quick() && sum % 2) && test_mine(sum + columns / 2);
}

/* Shapes of real models: compiled, not run. */
static void test_no_spills(void **unused)
{
	static const struct {
		uint32_t rows, k, flags;
	} shapes[] = {
		{ 2048, 1024, 0 },
		{ 1024, 2048, KEY_RESIDUAL },
		{ 3072, 1024, KEY_PAIR },
		{ 3072, 1024, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 1024, 3072, KEY_RESIDUAL },
		{ 151936, 1024, 0 },
		{ 2048, 2048, KEY_RESIDUAL },
		{ 512, 2048, 0 },
		{ 8192, 2048, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 2048, 8192, KEY_RESIDUAL },
		{ 128256, 2048, 0 },
		{ 4096, 4096, KEY_RESIDUAL },
		{ 14336, 4096, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 4096, 14336, KEY_RESIDUAL },
		{ 896, 896, KEY_BIAS },
		{ 4864, 896, KEY_PAIR | KEY_QUANTISED_OUT },
		{ 896, 4864, KEY_RESIDUAL },
		{ 32000, 4096, 0 },
		{ 11008, 4096, KEY_PAIR | KEY_QUANTISED_OUT },
	};
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), bad = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned shape = 0; ways[i].native && shape < sizeof shapes / sizeof shapes[0]; shape++)
			for (unsigned mix = 0; mix < n_mixes; mix++)
				for (uint32_t columns = 1; columns <= 8; columns++) {
					if (!test_full() && (shape + mix + columns) % (test_quick() ? 3 : 2))
						continue;
					if (!test_mine(shape + mix))
						continue;
					struct problem p = problem(mix, shapes[shape].rows, shapes[shape].k, columns, 1,
					                           1, shapes[shape].flags);
					bad += spills(&ways[i], &p);
					if (columns == 1 || columns == 4 || columns == 8)
						bad += spills_of_schedules(&ways[i], &p, columns == 1 ? 6 : 2);
				}
	for (unsigned i = 0; i < n; i++)
		for (unsigned shape = 2; ways[i].native && shape < 5; shape++)
			for (unsigned mix = 0; mix < n_mixes; mix++)
				/* From 3 on: plans have no narrower ones. */
				for (uint32_t columns = 3;
				     widths_has_wide(&target_table[TARGET_AVX2], mixes[mix].weight) &&
				     columns <= TEMPLATE_MAX_WIDE;
				     columns++) {
					if (!is_mine_of_wide(shape + mix + columns, columns))
						continue;
					struct problem p = problem(mix, shapes[shape].rows, shapes[shape].k, columns, 1,
					                           1, KEY_WIDE | shapes[shape].flags);
					bad += spills(&ways[i], &p);
					if (columns % 12 == 0 || columns == 4 || columns == 8 || columns == 16)
						bad += spills_of_schedules(&ways[i], &p, 2);
				}
	assert_int_equal(bad, 0);
}

/* Compiled for cards, not run. Kernels fit in the order they are written, too: that is what is left when the
 * scheduler's needs too many registers. */
static void test_cards_registers(void **unused)
{
	static const char *const cards[] = { "gfx1030", "gfx1100", "gfx1200" };
	static const uint32_t columns[] = { 1, 2, 3, 4, 8, 16 }, flags[] = {
		KEY_GATED | KEY_QUANTISED_OUT, KEY_PAIR | KEY_BIAS | KEY_BIAS2, KEY_BIAS | KEY_RESIDUAL
	};
	enum { WIDTHS = sizeof columns / sizeof *columns, SETS = sizeof flags / sizeof *flags };
	unsigned kernels = 0;

	for (unsigned mix = 0; mix < n_mixes; mix++)
		for (unsigned card = 0; card < 3; card++)
			for (unsigned i = 0; i < 2 * WIDTHS * SETS; i++) {
				const struct compile_options options = {
					.skip = i < WIDTHS * SETS ? COMPILE_SKIP_SCHED : 0, .verify_passes = true
				};
				struct problem p = problem(mix, 31, 768, columns[i % WIDTHS], 1, 1 + mix % 2,
				                           flags[i / WIDTHS % SETS]);
				char text[KEY_TEXT_MAX];
				struct error err = { 0 };
				struct object o = { 0 };
				p.key.target = (uint8_t)(target_find(cards[card]) - target_table);
				kernels++;
				if (!test_mine(mix + card + i / WIDTHS))
					continue;
				if (!compile_key(&o, &p.key, template_build, &options, NULL, &err))
					fail_msg("%s%s: %s", key_text(&p.key, text, sizeof text),
					         options.skip ? " as it is written" : "", err.text);
				object_free(&o);
			}
	assert_int_equal(kernels, n_mixes * 3 * 2 * WIDTHS * SETS);
}

int matmul_schedule_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedules),       cmocka_unit_test(test_schedule_lists),
		cmocka_unit_test(test_usual_levels),    cmocka_unit_test(test_no_spills),
		cmocka_unit_test(test_cards_registers),
	};

	return cmocka_run_group_tests_name("matmul_schedule_tests", tests, NULL, NULL);
}
