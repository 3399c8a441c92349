/* tests/optimise/t_optimise.c - evolution strategies beside published values, LAPACK, and invariants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimise/bbob.h"
#include "optimise/restarts.h"
#include "tests/optimise/optimise_tests.h"
#include "tests/support/shared.h"

/* ---- random numbers */

static void test_draw(void **state)
{
	struct random_stream a = { .seed = 7 }, b = { .seed = 7 };
	double x[20001], sum = 0, squares = 0, fourth = 0;
	enum { N = 20001 };

	draw_normals(&a, x, N);
	for (int i = 0; i < N; i++) {
		sum += x[i];
		squares += x[i] * x[i];
		fourth += x[i] * x[i] * x[i] * x[i];
	}
	assert_true(fabs(sum / N) < 0.03 && fabs(squares / N - 1) < 0.04 && fabs(fourth / N - 3) < 0.3);
	/* A number is a function of seed and counter: drawing on from the middle gives the same. */
	b.drawn = 1000;
	for (uint64_t i = a.drawn = 0; i < 1000; i++)
		draw_bits(&a);
	assert_true(draw_bits(&a) == draw_bits(&b));
	/* SplitMix64 itself: seed 1234567 gives 6457827717110365317 first (Vigna's reference program). */
	assert_true(draw_mix(1234567 + 0x9e3779b97f4a7c15u) == 6457827717110365317u);
	for (int i = 0; i < 1000; i++) {
		const double u = draw_uniform(&a);
		assert_true(u > 0 && u < 1 && draw_below(&a, 7) < 7);
	}
}

/* ---- the benchmark */

static const struct {
	int function, dimension, instance, k;
	double min, value;
} bbob_values[] = {
#define ROW(...) { __VA_ARGS__ },
#include "tests/optimise/bbob_values.def"
#undef ROW
};

static void test_bbob(void **state)
{
	struct error err = { 0 };

	for (size_t c = 0; c < sizeof bbob_values / sizeof *bbob_values; c++) {
		const int n = bbob_values[c].dimension;
		struct bbob *b = bbob_open(bbob_values[c].function, n, bbob_values[c].instance, &err);
		double x[40];
		assert_non_null(b);
		for (int i = 0; i < n; i++)
			x[i] = 5.5 * (2 * ((7919 * (i + 1) + 104729 * bbob_values[c].k) % 1009 / 1009.0) - 1);
		const double value = bbob_value(b, x), want = bbob_values[c].value;
		if (!(fabs(value - want) <= 2e-11 * fmax(1, fabs(want))))
			fail_msg("function %d in %d dimensions: %.17g, expected %.17g", bbob_values[c].function, n,
			         value, want);
		assert_true(bbob_min(b) == bbob_values[c].min);
		assert_true(fabs(bbob_value(b, bbob_optimum(b)) - bbob_min(b)) < 1e-9);
		bbob_close(b);
	}
	assert_null(bbob_open(0, 4, 1, &err));
	assert_string_equal(err.text, "function 0: expected 1 to 24");
	err.code = ERROR_NONE;
	assert_null(bbob_open(1, 1, 1, &err));
	assert_string_equal(err.text, "dimension 1: expected 2 to 320");
	err.code = ERROR_NONE;
	assert_null(bbob_open(1, 2, -1, &err));
	assert_string_equal(err.text, "instance -1: expected 0 to 100000");
	for (int f = 1; f <= BBOB_FUNCTIONS; f++)
		assert_true(strlen(bbob_name(f)) > 3);
}

/* ---- CMA-ES */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

enum { DIMENSION_MAX = 40 };
static const double minus_four[DIMENSION_MAX] = { [0 ... DIMENSION_MAX - 1] = -4 };
static const double four[DIMENSION_MAX] = { [0 ... DIMENSION_MAX - 1] = 4 };

static void evaluate(const struct bbob *b, const double *x, int n, int count, double *values)
{
	for (int k = 0; k < count; k++)
		values[k] = bbob_value(b, x + (size_t)k * (size_t)n);
}

/* How many evaluations an instance takes to 1e-8, with BIPOP restarts. */
static double solve(int function, int n, int instance)
{
	struct error err = { 0 };
	struct bbob *b = bbob_open(function, n, instance, &err);
	struct restarts *r = restarts_open(
		&(struct restarts_options){ .cma = { .n = n, .sigma = 2, .seed = 1000 + (uint64_t)instance },
	                                    .start_low = minus_four,
	                                    .start_high = four,
	                                    .kind = RESTARTS_BIPOP,
	                                    .runs = 10 },
		&err);
	static double values[CMA_POPULATION_MAX];
	struct restarts_state s;

	assert_non_null(r);
	do {
		int count;
		const double *x = restarts_ask(r, &count);
		evaluate(b, x, n, count, values);
		assert_true(restarts_tell(r, values, &err));
		s = restarts_get_state(r);
	} while (!(s.best_value - bbob_min(b) <= 1e-8) && !s.over);
	assert_true(bbob_value(b, s.best) == s.best_value);
	const double evaluations = s.over ? (double)INFINITY : (double)s.evaluations;
	restarts_close(r);
	bbob_close(b);
	return evaluations;
}

/* Medians over 15 instances that pycma 4.4.0 took, with the same starts' region, step size and restarts. */
static const struct {
	int function, n;
	double median, times; /* how many times that is allowed */
} goals[] = {
	{ 1, 5, 705, 1.1 },     { 2, 5, 1478, 1.1 },    { 8, 5, 1881, 1.1 },    { 10, 5, 1530, 1.1 },
	{ 14, 5, 1387, 1.1 },   { 12, 5, 3757, 1.5 },   { 15, 5, 27711, 1.5 },  { 1, 20, 2809, 1.1 },
	{ 10, 20, 13540, 1.1 }, { 14, 20, 13283, 1.1 }, { 2, 20, 13908, 1.1 },  { 8, 20, 16712, 1.1 },
	{ 12, 20, 20348, 1.5 }, { 1, 40, 5248, 1.1 },   { 2, 40, 52084, 1.1 },  { 8, 40, 62304, 1.1 },
	{ 10, 40, 52293, 1.1 }, { 12, 40, 40493, 1.5 }, { 14, 40, 47990, 1.1 },
};

static void test_evaluations(void **state)
{
	const int count = test_quick() ? 6 : (int)(sizeof goals / sizeof *goals);

	for (int g = 0; g < count; g++) {
		double taken[15];
		for (int instance = 1; instance <= 15; instance++)
			taken[instance - 1] = solve(goals[g].function, goals[g].n, instance);
		qsort(taken, 15, sizeof *taken, by_size);
		if (!isfinite(taken[14]) || taken[7] > goals[g].times * goals[g].median)
			fail_msg("function %d in %d dimensions: %g evaluations (%g to %g), expected %g",
			         goals[g].function, goals[g].n, taken[7], taken[0], taken[14], goals[g].median);
	}
}

/* Optima at a corner and outside of the bounds: no candidate is ever outside, and the best one is the nearest point. */
static void test_bounds(void **state)
{
	enum { N = 6 };
	double lower[N], upper[N], start[N], values[100];
	struct error err = { 0 };

	for (int bounds = CMA_BOX; bounds <= CMA_PENALTY; bounds++)
		for (int variant = 0; variant < 4; variant++) {
			for (int i = 0; i < N; i++) {
				lower[i] = variant == 3 ? -(double)INFINITY : -1 - i;
				upper[i] = variant == 2 ? (double)INFINITY : 2;
				start[i] = variant == 1 ? lower[i] : 0.5;
			}
			struct cma *c =
				cma_open(&(struct cma_options){ .n = N,
			                                        .sigma = 0.5,
			                                        .start = start,
			                                        .lower = lower,
			                                        .upper = upper,
			                                        .seed = 3,
			                                        .bounds = (enum cma_bounds)bounds },
			                 &err);
			assert_non_null(c);
			struct cma_state s = cma_get_state(c);
			for (int i = 0; i < N; i++)
				assert_true(fabs(s.mean[i] - start[i]) < 1e-12);
			for (int g = 0; g < 700 && s.stop == CMA_RUNS; g++, s = cma_get_state(c)) {
				const double *x = cma_ask(c);
				for (int k = 0; k < cma_population(c); k++) {
					values[k] = 0;
					for (int i = 0; i < N; i++) { /* least at 3, or at -3 */
						const double at = x[k * N + i], far = at - (variant == 2 ? -30 : 3);
						assert_true(at >= lower[i] && at <= upper[i]);
						values[k] += (i + 1) * far * far;
					}
				}
				cma_tell(c, values);
			}
			assert_true(s.sigma < 0.05); /* the bound holds it: it has not run away over a plateau */
			for (int i = 0; i < N; i++) {
				const double want = variant == 2 ? lower[i] : 2;
				if (!(fabs(s.best[i] - want) < 1e-4))
					fail_msg("bounds %d, variant %d: coordinate %d is %g, expected %g", bounds,
					         variant, i, s.best[i], want);
			}
			cma_close(c);
		}
}

/* A thousand dimensions with a diagonal; without it a rotated valley would be one of many lengths. */
static void test_separable(void **state)
{
	enum { N = 1000 };
	static double start[N], values[64];
	struct error err = { 0 };
	struct cma *c;

	for (int i = 0; i < N; i++)
		start[i] = 1;
	c = cma_open(&(struct cma_options){ .n = N, .sigma = 0.5, .start = start, .separable = true, .seed = 1 }, &err);
	assert_non_null(c);
	const int generations = test_quick() ? 400 : 6000;
	for (int g = 0; g < generations; g++) {
		const double *x = cma_ask(c);
		for (int k = 0; k < cma_population(c); k++) {
			values[k] = 0;
			for (int i = 0; i < N; i++)
				values[k] += (1 + 999.0 * i / (N - 1)) * x[(size_t)k * N + (size_t)i] *
				             x[(size_t)k * N + (size_t)i];
		}
		cma_tell(c, values);
	}
	assert_true(cma_get_state(c).best_value < (test_quick() ? 250000 : 100));
	cma_close(c);
}

static void test_stops(void **state)
{
	double values[64];
	struct error err = { 0 };
	const double start[4] = { 1, 2, 3, 4 };

	/* What each function ends with: a plateau, a slope without end, NaN everywhere, a run to the optimum,
	 * and values that are nothing but noise. */
	struct random_stream noise = { .seed = 3 };
	const enum cma_stop want[] = { CMA_STOP_GROWTH, CMA_STOP_GROWTH, CMA_STOP_GROWTH, CMA_STOP_VALUES,
		                       CMA_STOP_STAGNATION };
	for (int kind = 0; kind < 5; kind++) {
		struct cma *c = cma_open(&(struct cma_options){ .n = 4, .sigma = 1, .start = start }, &err);
		assert_non_null(c);
		while (cma_get_state(c).stop == CMA_RUNS) {
			const double *x = cma_ask(c);
			for (int k = 0; k < cma_population(c); k++)
				values[k] = kind == 0   ? 1
				            : kind == 1 ? x[k * 4]
				            : kind == 2 ? (double)NAN
				            : kind == 4 ? draw_uniform(&noise)
				                        : x[k * 4] * x[k * 4] + x[k * 4 + 1] * x[k * 4 + 1];
			cma_tell(c, values);
		}
		const enum cma_stop stop = cma_get_state(c).stop;
		if (kind != 3 && stop != want[kind])
			fail_msg("kind %d ended: %s", kind, cma_stop_name(stop));
		assert_true(strlen(cma_stop_name(stop)) > 10);
		assert_true(kind != 2 || isinf(cma_get_state(c).best_value));
		cma_close(c);
	}
}

/* ---- saving */

/* Steps a run on by one generation of a bounded problem. */
static void step(struct restarts *r, const struct bbob *b, int n)
{
	static double values[CMA_POPULATION_MAX];
	struct error err = { 0 };
	int count;
	const double *x = restarts_ask(r, &count);

	evaluate(b, x, n, count, values);
	assert_true(restarts_tell(r, values, &err));
}

static void test_saved(void **state)
{
	enum { N = 5 };
	struct error err = { 0 };
	struct bbob *b = bbob_open(15, N, 3, &err);

	for (int variant = 0; variant < 6; variant++) {
		struct restarts_options o = { .cma = { .n = N, .sigma = 2, .seed = 11 },
			                      .start_low = minus_four,
			                      .start_high = four,
			                      .kind = RESTARTS_BIPOP,
			                      .runs = 4 };
		o.cma.separable = variant == 1;
		o.cma.passive = variant == 2;
		o.cma.bounds = variant == 3 ? CMA_BOX : variant == 4 ? CMA_PENALTY : CMA_FREE;
		o.cma.lower = variant == 3 || variant == 4 ? minus_four : NULL;
		o.cma.upper = variant == 3 || variant == 4 ? four : NULL;
		o.cma.start = variant == 5 ? four : NULL;
		struct restarts *r = restarts_open(&o, &err);
		assert_non_null(r);
		for (int g = 0; g < 1200 && !restarts_get_state(r).over; g++) {
			if (g % 97 == 0) { /* the loaded one takes over */
				size_t bytes, again;
				char *text = restarts_save(r, &bytes), *other;
				struct restarts *loaded = restarts_load(text, bytes, "state", &err);
				if (!loaded)
					fail_msg("%s", err.text);
				other = restarts_save(loaded, &again);
				assert_int_equal(bytes, again);
				assert_memory_equal(text, other, bytes);
				step(loaded, b, N);
				step(r, b, N);
				const struct restarts_state p = restarts_get_state(r), q = restarts_get_state(loaded);
				assert_memory_equal(p.best, q.best, N * sizeof(double));
				assert_memory_equal(p.now.mean, q.now.mean, N * sizeof(double));
				assert_true(p.evaluations == q.evaluations && p.now.sigma == q.now.sigma);
				restarts_close(r);
				r = loaded;
				free(text);
				free(other);
			} else {
				step(r, b, N);
			}
		}
		assert_true(restarts_get_state(r).run > 1);
		restarts_close(r);
	}
	bbob_close(b);
}

/* A state with its sum made right again: what a wrong field does is then seen by what reads it. */
static void resum(char *text, size_t bytes)
{
	char *sum = NULL;
	size_t n;
	FILE *f = open_memstream(&sum, &n);

	state_write_sum(f, text, bytes - 21);
	fclose(f);
	memcpy(text + bytes - 21, sum, 21);
	free(sum);
}

static void test_damaged(void **state)
{
	struct error err = { 0 };
	struct bbob *b = bbob_open(1, 2, 1, &err);
	struct restarts *r = restarts_open(
		&(struct restarts_options){
			.cma = { .n = 2,
	                         .sigma = 1,
	                         .seed = 4,
	                         .lower = minus_four,
	                         .upper = four,
	                         .bounds = CMA_PENALTY },
			.start_low = minus_four,
			.start_high = four },
		&err);
	size_t bytes;

	for (int g = 0; g < 3; g++)
		step(r, b, 2);
	char *text = restarts_save(r, &bytes), *copy = malloc(bytes);
	int refused = 0;
	for (size_t i = 0; i < bytes; i++) {
		memcpy(copy, text, bytes);
		copy[i] ^= 1 + (char)(i % 7);
		err.code = ERROR_NONE;
		assert_null(restarts_load(copy, bytes, "state", &err));
		assert_true(strncmp(err.text, "state:1: ", 9) == 0);
		resum(copy, bytes);
		err.code = ERROR_NONE;
		struct restarts *other = restarts_load(copy, bytes, "state", &err);
		refused += !other && strncmp(err.text, "state", 5) == 0;
		if (other && restarts_dimension(other) == 2)
			step(other, b, 2);
		restarts_close(other);
	}
	for (size_t n = 0; n < bytes; n += 13) {
		err.code = ERROR_NONE;
		assert_null(restarts_load(text, n, "state", &err));
	}
	assert_true(refused > (int)bytes / 4);
	free(text);
	free(copy);
	restarts_close(r);
	bbob_close(b);
}

static void refused(const struct cma_options *o, const char *want)
{
	struct error err = { 0 };

	assert_null(cma_open(o, &err));
	assert_string_equal(err.text, want);
}

static void test_refused(void **state)
{
	const double zero[2] = { 0, 0 }, one[2] = { 1, 1 }, wrong[2] = { 0, NAN };

	refused(&(struct cma_options){ .n = 0, .sigma = 1, .start = zero },
	        "dimension 0: expected 1 to 1000; the separable form takes more");
	refused(&(struct cma_options){ .n = 200000, .separable = true, .sigma = 1, .start = zero },
	        "dimension 200000: expected 1 to 100000");
	refused(&(struct cma_options){ .n = 2, .population = 3, .sigma = 1, .start = zero },
	        "population 3: expected 4 to 1000000");
	refused(&(struct cma_options){ .n = 2, .start = zero }, "first step size 0: expected a number above 0");
	refused(&(struct cma_options){ .n = 2, .sigma = 1, .start = zero, .lower = zero },
	        "bounds: expected both of lower and upper, or neither");
	refused(&(struct cma_options){ .n = 2, .sigma = 1, .start = wrong }, "start: coordinate 1 is nan");
	refused(
		&(struct cma_options){
			.n = 2, .sigma = 1, .start = zero, .lower = one, .upper = one, .bounds = CMA_BOX },
		"bounds of coordinate 0: 1 is not below 1");
	refused(&(struct cma_options){ .n = 2,
	                               .sigma = 1,
	                               .start = one,
	                               .lower = (double[]){ 2, 0 },
	                               .upper = (double[]){ 3, 3 },
	                               .bounds = CMA_BOX },
	        "start: coordinate 0 is 1, outside of 2 to 3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_draw),         cmocka_unit_test(test_eigen),
		cmocka_unit_test(test_bbob),         cmocka_unit_test(test_evaluations),
		cmocka_unit_test(test_bounds),       cmocka_unit_test(test_separable),
		cmocka_unit_test(test_stops),        cmocka_unit_test(test_saved),
		cmocka_unit_test(test_damaged),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_hypervolume),  cmocka_unit_test(test_fronts),
		cmocka_unit_test(test_variation),    cmocka_unit_test(test_problems),
		cmocka_unit_test(test_many_goals),   cmocka_unit_test(test_many_saved),
		cmocka_unit_test(test_many_refused), cmocka_unit_test(test_api_cma),
		cmocka_unit_test(test_api_many),     cmocka_unit_test(test_api_order),
		cmocka_unit_test(test_api_files),    cmocka_unit_test(test_api_refused),
		cmocka_unit_test(test_fold),         cmocka_unit_test(test_bipop),
		cmocka_unit_test(test_parents),      cmocka_unit_test(test_extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
