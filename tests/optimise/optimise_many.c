/* tests/optimise/optimise_many.c - many objectives: fronts and volumes beside plain counting, known fronts, saving. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimise/hypervolume.h"
#include "optimise/many_parts.h"
#include "optimise/problems.h"
#include "optimise/state_text.h"
#include "tests/optimise/optimise_tests.h"
#include "tests/support/shared.h"

/* ---- volumes */

/* Inclusion and exclusion over all subsets. */
static double by_subsets(const double *points, int count, int m, const double *reference)
{
	double sum = 0;

	for (int set = 1; set < 1 << count; set++) {
		double volume = 1;
		for (int k = 0; k < m; k++) {
			double max = -(double)INFINITY;
			for (int i = 0; i < count; i++)
				if (set >> i & 1)
					max = fmax(max, points[i * m + k]);
			volume *= fmax(0, reference[k] - max);
		}
		sum += __builtin_popcount((unsigned)set) % 2 ? volume : -volume;
	}
	return sum;
}

void test_hypervolume(void **state)
{
	struct random_stream draw = { .seed = 5 };
	const double reference[3] = { 1, 2, 1.5 };
	double points[36], volume;

	for (int c = 0; c < 300; c++) {
		const int m = 2 + c % 2, count = c % 11;
		for (int i = 0; i < count * m; i++) /* equal ones, and some outside of the reference */
			points[i] = c % 3 ? draw_uniform(&draw) * 2.2 : floor(draw_uniform(&draw) * 4) / 2;
		assert_true(hypervolume(points, count, m, reference, &volume));
		assert_true(fabs(volume - by_subsets(points, count, m, reference)) < 1e-12);
	}
	/* A hundred points along the front of ZDT1 have 99.5 percent of its area. */
	double front[200];
	for (int i = 0; i < 100; i++) {
		front[2 * i] = i / 99.0 * (i / 99.0);
		front[2 * i + 1] = 1 - i / 99.0;
	}
	assert_true(hypervolume(front, 100, 2, (double[]){ 1.1, 1.1 }, &volume));
	assert_true(volume > 0.86 && volume < 0.8766667);
}

/* ---- fronts and variation */

void test_fronts(void **state)
{
	enum { COUNT = 60 };
	struct random_stream draw = { .seed = 9 };
	double f[COUNT * 3], crowding[COUNT];
	int rank[COUNT];

	for (int c = 0; c < 60; c++) {
		const int m = 2 + c % 2;
		for (int i = 0; i < COUNT * m; i++)
			f[i] = c % 4 ? draw_uniform(&draw) : floor(4 * draw_uniform(&draw));
		const int fronts = many_fronts(f, COUNT, m, rank);
		for (int i = 0; i < COUNT; i++) { /* one more than the worst front of those that dominate it */
			int want = 0;
			for (int j = 0; j < COUNT; j++)
				if (many_dominates(f + j * m, f + i * m, m) && rank[j] + 1 > want)
					want = rank[j] + 1;
			assert_int_equal(rank[i], want);
			assert_true(rank[i] < fronts);
		}
		assert_true(many_crowd(f, COUNT, m, rank, crowding));
		for (int i = 0; i < COUNT; i++)
			assert_true(crowding[i] >= 0);
	}
	/* Four in a row: the ends are infinite, the others have the width of their neighbours, in both objectives. */
	const double row[] = { 0, 10, 1, 8, 4, 2, 5, 0 };
	assert_int_equal(many_fronts(row, 4, 2, rank), 1);
	assert_true(many_crowd(row, 4, 2, rank, crowding));
	assert_true(isinf(crowding[0]) && isinf(crowding[3]));
	assert_true(fabs(crowding[1] - (4.0 / 5 + 8.0 / 10)) < 1e-15);
	assert_true(fabs(crowding[2] - (4.0 / 5 + 8.0 / 10)) < 1e-15);
}

void test_variation(void **state)
{
	const double lower[3] = { -1, 0, 5 }, upper[3] = { 1, 100, 5.5 };
	struct error err = { 0 };
	struct many *m =
		many_open(&(struct many_options){ .n = 3,
	                                          .objectives = 2,
	                                          .lower = lower,
	                                          .upper = upper,
	                                          .crossover = 1,
	                                          .mutation = 0.5,
	                                          .seed = 3 },
	                  &err);
	double p[3], q[3], a[3], b[3], middle = 0, wide = 0;
	int crossed = 0, mutated = 0, changed = 0;

	assert_non_null(m);
	for (int c = 0; c < 4000; c++) {
		for (int i = 0; i < 3; i++) {
			p[i] = lower[i] + draw_uniform(&m->draw) * (upper[i] - lower[i]);
			q[i] = c % 5 ? lower[i] + draw_uniform(&m->draw) * (upper[i] - lower[i]) : p[i];
		}
		many_cross(m, p, q, a, b);
		for (int i = 0; i < 3; i++) {
			assert_true(a[i] >= lower[i] && a[i] <= upper[i] && b[i] >= lower[i] && b[i] <= upper[i]);
			crossed += c % 5 && a[i] != p[i] && a[i] != q[i];
			assert_true(c % 5 || (a[i] == p[i] && b[i] == p[i]));
			middle += (a[i] + b[i] - p[i] - q[i]) / (upper[i] - lower[i]);
		}
		memcpy(b, a, sizeof b);
		many_mutate(m, b);
		for (int i = 0; i < 3; i++) {
			assert_true(b[i] >= lower[i] && b[i] <= upper[i]);
			mutated += a[i] != b[i];
			wide += fabs(a[i] - b[i]) / (upper[i] - lower[i]);
			changed++;
		}
	}
	assert_true(abs(crossed - 4800) < 300); /* half of the coordinates of four fifths of the pairs */
	assert_true(abs(mutated - 6000) < 300);
	assert_true(fabs(middle) < 100);                             /* children lie about their parents' middle */
	assert_true(wide / mutated > 0.02 && wide / mutated < 0.06); /* 1 / (eta + 2) for a coordinate in the middle */
	many_close(m);
}

/* ---- problems */

/* Points of the known fronts have their values, and those beside them are worse. */
void test_problems(void **state)
{
	static const char *const names[] = {
		"zdt1", "zdt2", "zdt3", "zdt4", "zdt6", "dtlz1", "dtlz2", "dtlz3", "dtlz4"
	};
	struct error err = { 0 };
	struct problem p;
	double x[30], f[3], lower[30], upper[30];

	for (int k = 0; k < 9; k++)
		for (int step = 0; step <= 10; step++) {
			assert_true(problem_find(&p, names[k], 0, 0, &err));
			problem_bounds(&p, lower, upper);
			for (int i = 0; i < p.n; i++)
				x[i] = k < 5 ? 0 : 0.5;
			x[0] = step / 10.0;
			if (k >= 5)
				x[1] = 0.3;
			problem_values(&p, x, f);
			double want = k == 0 || k == 3 ? 1 - sqrt(f[0]) : 1 - f[0] * f[0];
			if (k == 2)
				want = 1 - sqrt(f[0]) - f[0] * sin(10 * M_PI * f[0]);
			if (k < 5)
				assert_true(fabs(f[1] - want) < 1e-12 && x[0] >= lower[0] && x[0] <= upper[0]);
			else if (k == 5)
				assert_true(fabs(f[0] + f[1] + f[2] - 0.5) < 1e-12);
			else
				assert_true(fabs(f[0] * f[0] + f[1] * f[1] + f[2] * f[2] - 1) < 1e-12);
			x[p.n - 1] = k == 3 ? 1.3 : 0.83;
			const double before = f[0] + f[1];
			problem_values(&p, x, f);
			assert_true(f[0] + f[1] > before || k >= 5);
		}
	assert_true(problem_find(&p, "dtlz1", 0, 0, &err) && p.n == 7 && p.objectives == 3);
	assert_true(problem_find(&p, "dtlz2", 0, 2, &err) && p.n == 11 && p.objectives == 2);
	/* All coordinates matter in their place: DTLZ2 with four objectives, by its definition. */
	assert_true(problem_find(&p, "dtlz2", 5, 4, &err));
	const double y[5] = { 0.2, 0.7, 0.4, 0.9, 0.1 }, g = 1 + 0.16 + 0.16, h = M_PI / 2;
	double f4[4];
	problem_values(&p, y, f4);
	assert_true(fabs(f4[0] - g * cos(0.2 * h) * cos(0.7 * h) * cos(0.4 * h)) < 1e-12);
	assert_true(fabs(f4[1] - g * cos(0.2 * h) * cos(0.7 * h) * sin(0.4 * h)) < 1e-12);
	assert_true(fabs(f4[2] - g * cos(0.2 * h) * sin(0.7 * h)) < 1e-12);
	assert_true(fabs(f4[3] - g * sin(0.2 * h)) < 1e-12);
	assert_false(problem_find(&p, "zdt5", 0, 0, &err));
	assert_string_equal(err.text,
	                    "zdt5 is no problem that is known: expected zdt1 to zdt4, zdt6, or dtlz1 to dtlz4");
	err.code = ERROR_NONE;
	assert_false(problem_find(&p, "zdt1", 0, 3, &err));
	assert_string_equal(err.text, "zdt1 has 2 objectives, not 3");
	err.code = ERROR_NONE;
	assert_false(problem_find(&p, "dtlz1", 2, 3, &err));
	assert_string_equal(err.text, "dtlz1: dimension 2: expected 3 to 10000");
}

/* ---- whole runs */

static void step(struct many *m, const struct problem *p)
{
	static double values[MANY_POPULATION_MAX];
	struct error err = { 0 };
	int count;
	const double *x = many_ask(m, &count);

	for (int i = 0; i < count; i++)
		problem_values(p, x + (size_t)i * (size_t)p->n, values + (size_t)i * (size_t)p->objectives);
	assert_true(many_tell(m, values, &err));
}

static struct many *open_problem(const char *name, int objectives, enum many_method method, uint64_t seed,
                                 struct problem *p)
{
	double lower[30], upper[30];
	struct error err = { 0 };

	assert_true(problem_find(p, name, 0, objectives, &err));
	problem_bounds(p, lower, upper);
	struct many *m =
		many_open(&(struct many_options){ .method = method,
	                                          .n = p->n,
	                                          .objectives = p->objectives,
	                                          .lower = lower,
	                                          .upper = upper,
	                                          .seed = seed },
	                  &err);
	if (!m)
		fail_msg("%s", err.text);
	return m;
}

static double volume_after(const char *name, int objectives, enum many_method method, uint64_t seed, double r)
{
	struct problem p;
	struct many *m = open_problem(name, objectives, method, seed, &p);
	double volume;

	while (many_get_state(m).evaluations + 91 <= 25000)
		step(m, &p);
	const struct many_state s = many_get_state(m);
	assert_true(hypervolume(s.values, s.count, s.objectives, (double[]){ r, r, r }, &volume));
	many_close(m);
	return volume;
}

/* Parts of the volume that evenly spaced points of the known fronts have, after 25 000 evaluations; the median of
 * eleven runs. With three objectives parts of the exact volume. */
static const struct {
	const char *name;
	int objectives;
	double volume, r, part[3]; /* part: of NSGA-II, NSGA-III and MOEA/D; 0: not asked for */
} goals[] = {
	{ "zdt1", 2, 0.87203, 1.1, { 0.99, 0.99, 0.99 } },   { "dtlz2", 3, 7.4764012, 2, { 0.97, 0.97, 0.97 } },
	{ "zdt2", 2, 0.53874, 1.1, { 0.99, 0.99, 0.99 } },   { "dtlz2", 2, 0.42067, 1.1, { 0.99, 0.99, 0.99 } },
	{ "zdt3", 2, 1.3317629, 1.1, { 0.99, 0.99, 0.99 } }, { "zdt4", 2, 0.87203, 1.1, { 0.99, 0.97, 0.98 } },
	{ "zdt6", 2, 0.50463, 1.1, { 0.98, 0.955, 0.965 } }, { "dtlz1", 3, 0.9791667, 1, { 0.97, 0.97, 0.97 } },
	{ "dtlz4", 3, 7.4764012, 2, { 0.97, 0.97, 0.97 } },
};

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void test_many_goals(void **state)
{
	const size_t count = test_quick() ? 1 : sizeof goals / sizeof *goals;

	for (size_t g = 0; g < count; g++)
		for (int method = MANY_NSGA2; method <= MANY_MOEAD; method++) {
			enum { RUNS = 11 };
			double volume[RUNS];
			const int runs = test_quick() ? 1 : RUNS;
			for (int seed = 0; seed < runs; seed++)
				volume[seed] = volume_after(goals[g].name, goals[g].objectives,
				                            (enum many_method)method, (uint64_t)seed + 1, goals[g].r);
			qsort(volume, (size_t)runs, sizeof *volume, by_size);
			if (volume[runs / 2] < goals[g].part[method] * goals[g].volume)
				fail_msg("%s by method %d: %.4f of the volume, expected %.3f", goals[g].name, method,
				         volume[runs / 2] / goals[g].volume, goals[g].part[method]);
		}
}

void test_many_saved(void **state)
{
	struct problem p;
	struct error err = { 0 };

	for (int method = MANY_NSGA2; method <= MANY_MOEAD; method++) {
		struct many *m = open_problem("dtlz2", 3, (enum many_method)method, 5, &p);
		for (int g = 0; g < 12; g++) {
			size_t bytes, again;
			char *text = many_save(m, &bytes);
			struct many *loaded = many_load(text, bytes, "state", &err);
			if (!loaded)
				fail_msg("%s", err.text);
			char *other = many_save(loaded, &again);
			assert_int_equal(bytes, again);
			assert_memory_equal(text, other, bytes);
			step(m, &p);
			step(loaded, &p);
			const struct many_state a = many_get_state(m), b = many_get_state(loaded);
			assert_memory_equal(a.x, b.x, (size_t)(a.count * a.n) * sizeof(double));
			assert_memory_equal(a.values, b.values, (size_t)(a.count * a.objectives) * sizeof(double));
			assert_memory_equal(a.rank, b.rank, (size_t)a.count * sizeof(int));
			many_close(m);
			m = loaded;
			for (size_t cut = 0; cut < bytes; cut += bytes / 37) {
				err.code = ERROR_NONE;
				assert_null(many_load(text, cut, "state", &err));
			}
			free(text);
			free(other);
		}
		many_close(m);
	}
}

static void refused(const struct many_options *o, const char *want)
{
	struct error err = { 0 };

	assert_null(many_open(o, &err));
	assert_string_equal(err.text, want);
}

void test_many_refused(void **state)
{
	const double zero[2] = { 0, 0 }, one[2] = { 1, 1 }, far[2] = { 1, INFINITY };

	refused(&(struct many_options){ .objectives = 2 }, "dimension 0: expected 1 to 100000");
	refused(&(struct many_options){ .n = 2, .objectives = 17, .lower = zero, .upper = one },
	        "objectives: 17: expected 2 to 16");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero },
	        "bounds: both of lower and upper are needed");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero, .upper = far },
	        "bounds of coordinate 1: 0 to inf: expected two finite numbers, the first below the second");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero, .upper = one, .population = 7 },
	        "population 7: expected an even number from 4 to 20000");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero, .upper = one, .divisions = 7 },
	        "divisions: NSGA-II has no directions");
	refused(
		&(struct many_options){
			.method = MANY_NSGA3, .n = 2, .objectives = 3, .lower = zero, .upper = one, .population = 90 },
		"population 90: expected 0 or the number of directions, 91");
	refused(
		&(struct many_options){
			.method = MANY_MOEAD, .n = 2, .objectives = 16, .lower = zero, .upper = one, .divisions = 50 },
		"divisions 50: they give more than 20000 directions, or none");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero, .upper = one, .crossover_eta = -1 },
	        "eta of crossover -1, of mutation 0: expected 0 to 1000");
	refused(&(struct many_options){ .n = 2, .objectives = 2, .lower = zero, .upper = one, .mutation = 1.5 },
	        "crossover 0, mutation 1.5: expected 0 to 1");
}
