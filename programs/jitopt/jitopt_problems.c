/* programs/jitopt/jitopt_problems.c - functions and problems whose best values are known. */
#include <stdio.h>
#include <stdlib.h>

#include "optimise/bbob.h"
#include "optimise/problems.h"
#include "programs/jitopt/jitopt.h"

static int fail(const struct error *err)
{
	jitopt_fail(err->text);
	return err->code == ERROR_ARGUMENT ? JITOPT_USAGE : JITOPT_FAILED;
}

struct bbob_user {
	struct bbob *b;
	size_t n;
};
static int bbob_values(void *user, const double *x, size_t count, double *values)
{
	const struct bbob_user *u = user;

	for (size_t i = 0; i < count; i++)
		values[i] = bbob_value(u->b, x + i * u->n);
	return 0;
}

static int one_function(int function, int n)
{
	struct error e = { 0 };
	jit_error err = { 0 };
	struct bbob_user u = { bbob_open(function, n, (int)jitopt.instance, &e), (size_t)n };
	bool reached = false;
	char name[120];

	if (!u.b)
		return fail(&e);
	jit_optimise_options p = jitopt_options("cma");
	double *low = jitopt_numbers("--lower", jitopt.lower, -4, n, &err);
	double *high = low ? jitopt_numbers("--upper", jitopt.upper, 4, n, &err) : NULL;
	double *start = high ? jitopt_numbers("--start", jitopt.start, 0, n, &err) : NULL;
	p.dimension = n;
	p.sigma = jitopt.sigma > 0 ? jitopt.sigma : 2;
	p.start = jitopt.start ? start : NULL;
	p.start_low = low;
	p.start_high = high;
	if (!jitopt.restarts)
		p.restarts = JIT_RESTARTS_BIPOP;
	jit_optimiser *o = !start          ? NULL
	                   : jitopt.resume ? jit_optimiser_load(jitopt.state, &err)
	                                   : jit_optimiser_open(&p, &err);
	const double min = bbob_min(u.b);
	int status = o && jitopt_fits(o, n, 1, &err) ? jitopt_go(o, bbob_values, &u, min, &reached)
	                                             : jitopt_fail_error(&err);
	if (o && status == JITOPT_DONE) {
		snprintf(name, sizeof name, "f%d %s, %d dimensions, instance %ld", function, bbob_name(function), n,
		         jitopt.instance);
		status = jitopt_print(o, name, min, reached);
	}
	jit_optimiser_close(o);
	free(low);
	free(high);
	free(start);
	bbob_close(u.b);
	return status;
}

int jitopt_bbob(void)
{
	const int n = jitopt.dimension ? (int)jitopt.dimension : 10;
	int status = JITOPT_DONE;

	if (jitopt.method && jitopt.method[0] != 'c')
		return jitopt_wrong("bbob has one objective; --method cma solves it");
	if (!jitopt.has_target)
		jitopt.target = 1e-8;
	jitopt.has_target = true;
	if (jitopt.function)
		return one_function((int)jitopt.function, n);
	if (jitopt.state)
		return jitopt_wrong("--state keeps one run; --function says which one");
	for (int f = 1; f <= BBOB_FUNCTIONS; f++) {
		const int one = one_function(f, n);
		if (one != JITOPT_DONE && one != JITOPT_NOT_REACHED)
			return one;
		status = one ? one : status;
	}
	return status;
}

static int problem_all(void *user, const double *x, size_t count, double *values)
{
	const struct problem *p = user;

	for (size_t i = 0; i < count; i++)
		problem_values(p, x + i * (size_t)p->n, values + i * (size_t)p->objectives);
	return 0;
}

int jitopt_problem(void)
{
	struct error e = { 0 };
	jit_error err = { 0 };
	struct problem problem;
	bool reached;

	if (!problem_find(&problem, jitopt.operand, (int)jitopt.dimension, (int)jitopt.objectives, &e))
		return fail(&e);
	jit_optimise_options p = jitopt_options("nsga2");
	if (p.method == JIT_OPTIMISE_CMA)
		return jitopt_wrong("a problem has several objectives; --method nsga2, nsga3 or moead solves it");
	double *bounds = calloc(2 * (size_t)problem.n, sizeof *bounds);
	if (!bounds)
		return jitopt_fail("there is no memory for the bounds");
	problem_bounds(&problem, bounds, bounds + problem.n);
	p.dimension = problem.n;
	p.objectives = problem.objectives;
	p.lower = bounds;
	p.upper = bounds + problem.n;
	if (jitopt.reference == 0)
		jitopt.reference = 1.1;
	jit_optimiser *o = jitopt.resume ? jit_optimiser_load(jitopt.state, &err) : jit_optimiser_open(&p, &err);
	int status = o && jitopt_fits(o, problem.n, problem.objectives, &err)
	                     ? jitopt_go(o, problem_all, &problem, 0, &reached)
	                     : jitopt_fail_error(&err);
	if (o && status == JITOPT_DONE)
		status = jitopt_print(o, jitopt.operand, 0, reached);
	jit_optimiser_close(o);
	free(bounds);
	return status;
}
