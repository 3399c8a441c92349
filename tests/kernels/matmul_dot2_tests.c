/* tests/kernels/matmul_dot2_tests.c - BF16 by BF16 in pairs (numerics.h, rule 13a): the plain loop's bytes, and within
 * the bound of what exact arithmetic gives.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/support/shared.h"
#include "tests/kernels/matmul_check.h"
#include "tests/support/widths.h"

static const uint32_t rows_of[] = { 1, 31, 33, 64, 97 };
/* Spans of one, two, four and eight; segments that are whole and short, spans that are no multiple of 64; any number.
 */
static const uint32_t k_of[] = { 32,   64,   96,   224,  256,  288, 384, 512, 544, 768, 1024, 1088, 1280, 2048,
	                         2304, 2560, 2816, 3072, 4352, 1,   2,   31,  33,  100, 257,  300,  1000 };
enum { LENGTHS = sizeof k_of / sizeof k_of[0], ROWS = sizeof rows_of / sizeof rows_of[0] };

/* Rule 13's bound, and what 13a adds to it. */
static void check_bound(const struct problem *p, const struct data *d)
{
	const struct plain_matrix w = { DTYPE_BF16, p->key.rows, p->key.k, d->rows[0] };
	const uint64_t kp = numerics_pad(w.k), rp = numerics_pad(w.rows);

	for (uint64_t c = 0; c < d->columns; c++)
		for (uint32_t row = 0; row < w.rows; row++) {
			double sum = 0, products = 0, weights = 0, inputs = 0;
			for (uint32_t k = 0; k < w.k; k++) {
				const double x = (double)d->x[c * kp + k], y = (double)plain_weight(&w, row, k);
				sum += x * y;
				products += fabs(x * y);
				weights += fabs(y);
				inputs += fabs(x);
			}
			const double K = (double)kp, error = fabs((double)d->got.out[c * rp + row] - sum),
				     max = (0x1p-8 + (K + 16) * 0x1p-22) * products + 0x1p-24 * weights +
			                   0x1p-126 * (inputs + weights + K);
			if (!(error <= max))
				fail_msg("k %u: %g away, expected at most %g", w.k, error, max);
		}
}

/* By the usual schedule, and by another one. */
static void check(const struct problem *p)
{
	const struct kernel_way *ways;
	const unsigned n = kernel_ways(&ways);
	unsigned tried = 0;
	struct data d;
	float *old = expect_data(&d, p);

	for (unsigned i = 0; i < n; i++) {
		if (!takes_way(&ways[i].target, &p->key))
			continue;
		check_way(&ways[i], p, &d, old);
		tried++;
		if (!(p->key.flags & ~(uint32_t)KEY_WIDE) && !p->key.act)
			check_bound(p, &d);
		struct problem other = *p;
		uint32_t schedule[TEMPLATE_SCHEDULES_MAX];
		other.key.target = (uint8_t)ways[i].target.id;
		if (!other.key.target)
			continue;
		const unsigned schedules = template_schedules(&other.key, schedule);
		other.key.schedule = schedule[draw_number(schedules)];
		other.key.target = p->key.target;
		check_way(&ways[i], &other, &d, old);
	}
	assert_true(tried > 0);
	free(old);
	free_data(&d);
}

/* Narrow tiles and wide ones, and inputs so small that products are below the normal numbers. */
static void test_dot2(void **unused)
{
	const unsigned step = test_full() ? 1 : test_quick() ? 29 : 2;
	unsigned at = 0;

	for (uint32_t columns = 1; columns <= TEMPLATE_MAX_WIDE; columns++)
		for (unsigned i = 0; i < LENGTHS; i++, at++) {
			const uint32_t wide = columns > 8 || draw_number(2) ? KEY_WIDE : 0;
			struct problem p =
				problem(mix_of_dot2(), rows_of[draw_number(ROWS)], k_of[i], columns, 1 + draw_number(2),
			                1, wide | (draw_number(3) ? flag_sets[draw_number(FLAG_SETS)] : 0));
			p.power = at % 5 ? 0 : -100 - (int)draw_number(30);
			if (at % step == 0 && test_mine_of_many(at / step))
				check(&p);
		}
}

/* No other target, class, weights or kind of matrix. */
static void test_dot2_refused(void **unused)
{
	static const enum target_id targets[] = { TARGET_AVX2, TARGET_AVX512_VNNI, TARGET_GFX1100, TARGET_SM90 };
	const struct problem good = problem(mix_of_dot2(), 64, 256, 4, 1, 1, 0);
	struct key bad[] = { good.key, good.key, good.key, good.key };

	for (unsigned i = 0; i < sizeof targets / sizeof targets[0]; i++)
		assert_false(widths_dot2(&target_table[targets[i]], DTYPE_BF16));
	assert_true(widths_dot2(&target_table[TARGET_AVX512_BF16], DTYPE_BF16));
	assert_false(widths_dot2(&target_table[TARGET_AVX512_BF16], DTYPE_F16));
	bad[0].numerics = NUMERICS_EXACT;
	bad[1].weight = DTYPE_F16 + 1;
	bad[2].weight = DTYPE_Q8_0 + 1;
	bad[3].activation = DTYPE_F16 + 1;
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		kernel_refused(&bad[i]);
}

int matmul_dot2_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_dot2), cmocka_unit_test(test_dot2_refused) };

	return cmocka_run_group_tests_name("matmul_dot2_tests", tests, NULL, NULL);
}
