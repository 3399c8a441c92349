/* tests/optimise/optimise_api.c - jitrun_optimise.h: the same runs as of the room itself, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/jitrun_optimise.h"
#include "include/jitrun_options.h"
#include "optimise/many.h"
#include "optimise/restarts.h"
#include "tests/optimise/optimise_tests.h"
#include "tests/support/shared.h"

enum { N = 3 };
static const double start[N] = { 1, -2, 3 }, low[N] = { -5, -5, -5 }, high[N] = { 5, 5, 5 };

/* A valley; user: how many candidates had values, and when to give up. */
static int valley(void *user, const double *x, size_t count, double *values)
{
	size_t *calls = user;

	for (size_t i = 0; i < count; i++, x += N) {
		const double a = x[1] - x[0] * x[0], b = x[2] - x[1] * x[1];
		values[i] = 100 * (a * a + b * b) + (1 - x[0]) * (1 - x[0]) + (1 - x[1]) * (1 - x[1]);
	}
	calls[0] += count;
	return calls[1] && calls[0] >= calls[1];
}

static int two(void *user, const double *x, size_t count, double *values)
{
	for (size_t i = 0; i < count; i++) {
		values[2 * i] = x[N * i] * x[N * i];
		values[2 * i + 1] = (x[N * i] - 2) * (x[N * i] - 2) + fabs(x[N * i + 1]) + fabs(x[N * i + 2]);
	}
	return 0;
}

static void fails(int status, const jit_error *err, const char *want)
{
	assert_int_not_equal(status, JIT_OK);
	assert_int_equal(status, err->code);
	assert_string_equal(err->message, want);
}

/* Every field reaches the room: the public run is the inner one with the same fields, bit for bit. */
static void check_cma(const jit_optimise_options *p, const struct restarts_options *q)
{
	jit_error err = { 0 };
	struct error e = { 0 };
	jit_optimiser *o = jit_optimiser_open(p, &err);
	struct restarts *r = restarts_open(q, &e);
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	size_t calls[2] = { 0 };
	double values[400], x[N], value;

	if (!o)
		fail_msg("%s", err.message);
	assert_non_null(r);
	assert_int_equal(jit_optimiser_run(o, valley, calls, 1500, NULL, &err), JIT_OK);
	while (restarts_get_state(r).evaluations < 1500 && !restarts_get_state(r).over) {
		int count;
		const double *drawn = restarts_ask(r, &count);
		valley(calls, drawn, (size_t)count, values);
		assert_true(restarts_tell(r, values, &e));
	}
	const struct restarts_state t = restarts_get_state(r);
	assert_int_equal(jit_optimiser_get_state(o, &s, &err), JIT_OK);
	assert_true(s.evaluations == t.evaluations && s.generations == t.generations && s.best_value == t.best_value);
	assert_true(s.sigma == t.now.sigma && s.condition == t.now.condition && s.run == t.run && s.small == t.small);
	assert_true(s.over == t.over && s.dimension == N && s.objectives == 1 && s.method == JIT_OPTIMISE_CMA);
	assert_string_equal(s.why, t.last == CMA_RUNS ? "" : cma_stop_name(t.last));
	assert_int_equal(jit_optimiser_best(o, x, &value, &err), JIT_OK);
	assert_memory_equal(x, t.best, sizeof x);
	assert_true(value == t.best_value);
	jit_optimiser_close(o);
	restarts_close(r);
}

void test_api_cma(void **state)
{
	struct restarts_options q = { .cma = { .n = N, .sigma = 0.5, .start = start, .seed = 3 }, .runs = 10 };
	jit_optimise_options p = JIT_OPTIMISE_OPTIONS(.dimension = N, .sigma = 0.5, .start = start, .seed = 3);

	check_cma(&p, &q);
	p.population = q.cma.population = 9;
	p.passive = q.cma.passive = 1;
	p.objectives = 1;
	check_cma(&p, &q);
	p.separable = q.cma.separable = 1;
	p.lower = q.cma.lower = low;
	p.upper = q.cma.upper = high;
	q.cma.bounds = CMA_BOX;
	check_cma(&p, &q);
	p.bounds = JIT_BOUNDS_PENALTY;
	q.cma.bounds = CMA_PENALTY;
	check_cma(&p, &q);
	p.separable = q.cma.separable = 0;
	p.start = q.cma.start = NULL;
	p.start_low = q.start_low = low;
	p.start_high = q.start_high = high;
	for (int kind = JIT_RESTARTS_NONE; kind <= JIT_RESTARTS_BIPOP; kind++) {
		p.restarts = kind;
		q.kind = (enum restarts_kind)kind;
		p.runs = q.runs = kind == JIT_RESTARTS_SAME ? 2 : 3;
		check_cma(&p, &q);
	}
}

void test_api_many(void **state)
{
	for (int method = JIT_OPTIMISE_NSGA2; method <= JIT_OPTIMISE_MOEAD; method++) {
		jit_error err = { 0 };
		struct error e = { 0 };
		jit_optimise_options p =
			JIT_OPTIMISE_OPTIONS(.method = method, .dimension = N, .objectives = 2, .lower = low,
		                             .upper = high, .seed = 5, .crossover_eta = 9, .mutation_eta = 11,
		                             .crossover = 0.8, .mutation = 0.4);
		if (method == JIT_OPTIMISE_NSGA2)
			p.population = 24;
		else
			p.divisions = 23;
		jit_optimiser *o = jit_optimiser_open(&p, &err);
		struct many *m = many_open(
			&(struct many_options){
				.method = (enum many_method)(method - 1),
				.n = N,
				.objectives = 2,
				.population = p.population,
				.divisions = p.divisions,
				.lower = low,
				.upper = high,
				.seed = 5,
				.crossover_eta = 9,
				.mutation_eta = 11,
				.crossover = 0.8,
				.mutation = 0.4 },
			&e);
		double values[48], x[24 * N], f[48], volume;
		int32_t front[24];
		jit_optimise_state s = JIT_OPTIMISE_STATE();
		assert_non_null(o);
		fails(jit_optimiser_population(o, x, f, front, &err), &err, "no candidates have values yet");
		assert_int_equal(jit_optimiser_count(o), 24);
		assert_int_equal(jit_optimiser_run(o, two, NULL, 480, NULL, &err), JIT_OK);
		for (int g = 0; g < 20; g++) {
			int count;
			two(NULL, many_ask(m, &count), 24, values);
			assert_true(many_tell(m, values, &e));
		}
		assert_int_equal(jit_optimiser_population(o, x, f, front, &err), JIT_OK);
		assert_memory_equal(x, many_get_state(m).x, sizeof x);
		assert_memory_equal(f, many_get_state(m).values, sizeof f);
		assert_memory_equal(front, many_get_state(m).rank, sizeof front);
		assert_int_equal(jit_optimiser_get_state(o, &s, &err), JIT_OK);
		assert_true(s.evaluations == 480 && s.generations == 20 && s.method == method && s.objectives == 2);
		assert_int_equal(jit_hypervolume(f, 24, 2, (double[]){ 100, 100 }, &volume, &err), JIT_OK);
		assert_true(volume > 9900);
		fails(jit_optimiser_best(o, x, f, &err), &err,
		      "with many objectives no candidate is the best; see the population");
		many_close(m);
		jit_optimiser_close(o);
	}
}

void test_api_order(void **state)
{
	jit_error err = { 0 };
	jit_optimiser *o = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = N, .sigma = 1, .start = start), &err);
	double x[64 * N], values[64];
	size_t calls[2] = { 0, 100 };

	assert_non_null(o);
	fails(jit_optimiser_tell(o, values, &err), &err, "no candidates were asked for");
	assert_int_equal(jit_optimiser_ask(o, x, &err), JIT_OK);
	fails(jit_optimiser_ask(o, x, &err), &err, "the candidates that were asked for have no values yet");
	fails(jit_optimiser_save(o, "/dev/null/state", &err), &err,
	      "the candidates that were asked for have no values yet");
	valley(calls, x, jit_optimiser_count(o), values);
	assert_int_equal(jit_optimiser_tell(o, values, &err), JIT_OK);
	fails(jit_optimiser_population(o, x, NULL, NULL, &err), &err,
	      "CMA-ES keeps no population; see the best candidate");
	assert_int_equal(jit_optimiser_run(o, valley, calls, 0, NULL, &err), JIT_ERROR_CANCELLED);
	assert_string_equal(err.message, "the objective ended the run");
	jit_optimiser_close(o);
	/* To a target, and to the end of the run. */
	o = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = N, .sigma = 1, .start = start), &err);
	calls[1] = 0;
	assert_int_equal(jit_optimiser_run(o, valley, calls, 0, &(double){ 1e-3 }, &err), JIT_OK);
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	assert_int_equal(jit_optimiser_get_state(o, &s, &err), JIT_OK);
	assert_true(s.best_value <= 1e-3 && s.best_value > 1e-9 && !s.over);
	assert_int_equal(jit_optimiser_run(o, valley, calls, 0, NULL, &err), JIT_OK);
	assert_int_equal(jit_optimiser_get_state(o, &s, &err), JIT_OK);
	assert_true(s.best_value < 1e-15 && s.over && s.why[0]);
	fails(jit_optimiser_ask(o, x, &err), &err, "the last run is over");
	jit_optimiser_close(o);
}

void test_api_files(void **state)
{
	jit_error err = { 0 };
	size_t calls[2] = { 0 };
	char dir[] = "/tmp/jitrun-optimise-XXXXXX", path[80], other[80];
	uint8_t *a, *b;
	size_t n, k;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/state", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	for (int method = JIT_OPTIMISE_CMA; method <= JIT_OPTIMISE_MOEAD; method++) {
		jit_optimiser *o = jit_optimiser_open(
			method ? &JIT_OPTIMISE_OPTIONS(.method = method, .dimension = N, .lower = low, .upper = high)
			       : &JIT_OPTIMISE_OPTIONS(.dimension = N, .start = start, .sigma = 1),
			&err);
		jit_objective_fn f = method ? two : valley;
		assert_non_null(o);
		assert_int_equal(jit_optimiser_run(o, f, calls, 300, NULL, &err), JIT_OK);
		assert_int_equal(jit_optimiser_save(o, path, &err), JIT_OK);
		jit_optimiser *loaded = jit_optimiser_load(path, &err);
		if (!loaded)
			fail_msg("%s", err.message);
		assert_int_equal(jit_optimiser_run(o, f, calls, 600, NULL, &err), JIT_OK);
		assert_int_equal(jit_optimiser_run(loaded, f, calls, 600, NULL, &err), JIT_OK);
		assert_int_equal(jit_optimiser_save(o, path, &err), JIT_OK);
		assert_int_equal(jit_optimiser_save(loaded, other, &err), JIT_OK);
		a = file_bytes(path, &n);
		b = file_bytes(other, &k);
		assert_int_equal(n, k);
		assert_memory_equal(a, b, n);
		free(a);
		free(b);
		fails(jit_optimiser_save(o, "/dev/null/state", &err), &err,
		      "/dev/null/state.new: cannot be made: Not a directory");
		remove(other);
		assert_int_equal(mkfifo(other, 0600), 0);
		assert_int_equal(jit_optimiser_save(o, other, &err), JIT_ERROR_IO);
		assert_non_null(strstr(err.message, ": is no regular file, so it is not replaced"));
		struct stat kept;
		assert_true(stat(other, &kept) == 0 && S_ISFIFO(kept.st_mode));
		remove(other);
		jit_optimiser_close(o);
		jit_optimiser_close(loaded);
	}
	remove(path);
	remove(other);
	assert_int_equal(rmdir(dir), 0);
	assert_null(jit_optimiser_load("/dev/null", &err));
	assert_string_equal(err.message, "/dev/null:1: expected a saved state; the file is too short");
	assert_null(jit_optimiser_load("/dev/zero", &err)); /* has no end */
	assert_string_equal(err.message, "/dev/zero:1: expected a saved state, which begins with jitopt-");
}

void test_api_refused(void **state)
{
	static const struct {
		jit_optimise_options o;
		const char *want;
	} cases[] = {
		{ { .dimension = N, .sigma = 1, .start = start, .divisions = 5 },
		  "CMA-ES has no crossover, mutation or divisions; they are of the other methods" },
		{ { .dimension = N, .sigma = 1, .start = start, .mutation = 0.5 },
		  "CMA-ES has no crossover, mutation or divisions; they are of the other methods" },
		{ { .dimension = N, .sigma = 1 }, "start: a point is missing, or a region to draw it from" },
		{ { .dimension = N, .sigma = 1, .start = start, .lower = low },
		  "bounds: expected both of lower and upper" },
		{ { .dimension = N, .sigma = 1, .start = start, .objectives = 2 },
		  "objectives: 2 is not a number from 0 to 1" },
		{ { .method = JIT_OPTIMISE_MOEAD, .dimension = N, .lower = low, .upper = high, .sigma = 1 },
		  "start, sigma, separable, passive, bounds, restarts and runs are of CMA-ES alone" },
		{ { .method = JIT_OPTIMISE_NSGA3, .dimension = N, .lower = low },
		  "bounds: both of lower and upper are needed" },
	};
	jit_error err = { 0 };
	double volume;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		jit_optimise_options o = cases[i].o;
		o.size = sizeof o;
		assert_null(jit_optimiser_open(&o, &err));
		assert_string_equal(err.message, cases[i].want);
	}
	fails(jit_hypervolume(start, 1, 4, start, &volume, &err), &err, "objectives: 4 is not a number from 2 to 3");
	/* By name, decimals in full precision. */
	jit_optimise_options o = JIT_OPTIMISE_OPTIONS(.dimension = N);
	assert_int_equal(jit_optimise_options_set(&o, "sigma", "0.1", &err), JIT_OK);
	assert_int_equal(jit_optimise_options_set(&o, "restarts", "bipop", &err), JIT_OK);
	assert_int_equal(jit_optimise_options_set(&o, "method", "moead", &err), JIT_OK);
	assert_int_equal(jit_optimise_options_set(&o, "bounds", "penalty", &err), JIT_OK);
	assert_true(o.sigma == 0.1 && o.restarts == JIT_RESTARTS_BIPOP && o.method == JIT_OPTIMISE_MOEAD &&
	            o.bounds == 1);
	assert_int_equal(jit_optimise_options_set(&o, "sigma", "1,5", &err), JIT_ERROR_ARGUMENT);
}
