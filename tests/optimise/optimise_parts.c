/* tests/optimise/optimise_parts.c - parts of the methods by themselves: the fold of space, which run follows which,
 * parents, extreme points.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optimise/cma_parts.h"
#include "optimise/many_parts.h"
#include "optimise/restarts_parts.h"
#include "tests/optimise/optimise_tests.h"
#include "tests/support/shared.h"

/* The fold is itself in the middle, within the bounds everywhere, without jumps, and mirrored; what unfolds comes back.
 */
void test_fold(void **state)
{
	const double lower[3] = { -1, -(double)INFINITY, 10 }, upper[3] = { 2, 0.5, (double)INFINITY };
	const double start[3] = { 0, 0, 20 };
	struct error err = { 0 };
	struct cma *c = cma_open(
		&(struct cma_options){
			.n = 3, .sigma = 1, .start = start, .lower = lower, .upper = upper, .bounds = CMA_BOX },
		&err);
	double before[3], inside[3];

	assert_non_null(c);
	for (int i = -20000; i <= 20000; i++) {
		const double at = i * 1e-3, x[3] = { at, at, at };
		cma_bounds_fold(c, x, inside);
		for (int k = 0; k < 3; k++) {
			assert_true(inside[k] >= lower[k] && inside[k] <= upper[k]);
			assert_true(i == -20000 || fabs(inside[k] - before[k]) <= 1.0001e-3);
			const double back[3] = { cma_bounds_unfold(c, 0, inside[0]), cma_bounds_unfold(c, 1, inside[1]),
				                 cma_bounds_unfold(c, 2, inside[2]) };
			double again[3];
			cma_bounds_fold(c, back, again);
			assert_true(fabs(again[k] - inside[k]) < 1e-12);
			before[k] = inside[k];
		}
		assert_true(at < -0.8 || at > 1.7 || inside[0] == at);
		/* The margin below -1 is 0.1, that above 2 is 0.15: mirrors stand at -1.1 and 2.15. */
		const double mirrored[3] = { -2.2 - at, 1.15 - at, 2 * 9.45 - at };
		double other[3];
		cma_bounds_fold(c, mirrored, other);
		assert_true(fabs(other[0] - inside[0]) < 1e-9);
		assert_true(fabs(other[1] - inside[1]) < 1e-9);
		assert_true(fabs(other[2] - inside[2]) < 1e-9);
	}
	cma_close(c);
}

/* Of values without any order: each large run has twice the population, a small one begins while small ones spent less,
 * and takes at most half of what the last large one took, but for the population at hand. */
void test_bipop(void **state)
{
	const double start[2] = { 0, 0 };
	struct random_stream draw = { .seed = 5 };
	struct error err = { 0 };
	struct restarts *r = restarts_open(
		&(struct restarts_options){
			.cma = { .n = 2, .sigma = 1, .start = start, .seed = 2 }, .kind = RESTARTS_BIPOP, .runs = 5 },
		&err);
	static double values[1 << 16];
	uint64_t spent[2] = { 0, 0 }, large = 0;
	int population = 0, small_runs = 0, large_runs = 0, halves = 0;

	assert_non_null(r);
	while (!restarts_get_state(r).over) {
		struct restarts_state s = restarts_get_state(r);
		const int run = s.run, count = restarts_population(r);
		const bool small = s.small;
		uint64_t taken = 0;
		if (small) {
			assert_true(spent[1] < spent[0]);
			assert_true(count >= 6 && count <= population);
			halves += count * 2 <= population;
			small_runs++;
		} else {
			assert_int_equal(count, population ? 2 * population : 6);
			population = count;
			large_runs++;
		}
		for (int n; s.run == run && !s.over; s = restarts_get_state(r)) {
			restarts_ask(r, &n);
			for (int k = 0; k < n; k++)
				values[k] = draw_uniform(&draw);
			taken += (uint64_t)n;
			assert_true(restarts_tell(r, values, &err));
		}
		assert_true(!small || taken <= large / 2 + (uint64_t)count);
		spent[small] += taken;
		large = small ? large : taken;
	}
	assert_int_equal(large_runs, 5);
	assert_true(small_runs > 3 && 3 * halves > small_runs);
	restarts_close(r);
}

/* Of two that are drawn from one front, the less crowded one becomes a parent. */
void test_parents(void **state)
{
	enum { SIZE = 200 };
	const double lower[1] = { 0 }, upper[1] = { SIZE };
	struct error err = { 0 };
	struct many *m =
		many_open(&(struct many_options){ .n = 1,
	                                          .objectives = 2,
	                                          .lower = lower,
	                                          .upper = upper,
	                                          .population = SIZE,
	                                          .crossover = 1e-9,
	                                          .mutation = 1e-9 },
	                  &err);
	double values[2 * SIZE] = { 0 }, sum = 0;
	int count;

	assert_non_null(m);
	many_ask(m, &count);
	assert_true(many_tell(m, values, &err));
	for (int i = 0; i < SIZE; i++) {
		m->x[i] = m->crowding[i] = i;
		m->rank[i] = 0;
	}
	const double *x = many_ask(m, &count);
	for (int i = 0; i < SIZE; i++)
		sum += x[i];
	/* The greater of two of 0 to 199 is 133 in the mean; either of them, 100. */
	assert_true(fabs(sum / SIZE - 133) < 12);
	many_close(m);
}

/* NSGA-III knows the corners of a front as its extreme points. */
void test_extremes(void **state)
{
	const double lower[1] = { 0 }, upper[1] = { 1 };
	struct random_stream draw = { .seed = 8 };
	struct error err = { 0 };
	struct many *m = many_open(
		&(struct many_options){
			.method = MANY_NSGA3, .n = 1, .objectives = 3, .lower = lower, .upper = upper, .divisions = 5 },
		&err);
	double values[3 * 21];
	int count;

	assert_non_null(m);
	for (int g = 0; g < 2; g++) {
		many_ask(m, &count);
		assert_int_equal(count, 21);
		for (int i = 0; i < count; i++) {
			const double a = 0.05 + 0.4 * draw_uniform(&draw), b = 0.05 + 0.4 * draw_uniform(&draw);
			const double point[3] = { a, b, 1 - a - b };
			for (int k = 0; k < 3; k++)
				values[3 * i + k] = i < 3 ? i == k : point[k];
		}
		assert_true(many_tell(m, values, &err));
	}
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			assert_true(m->extreme[3 * i + k] == (i == k));
	many_close(m);
}
