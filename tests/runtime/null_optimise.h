/* tests/runtime/null_optimise.h - a part of t_null.c: optimisers, and calls that null_rows.def makes of them. */
#ifndef TESTS_NULL_OPTIMISE_H
#define TESTS_NULL_OPTIMISE_H

static jit_optimiser *cma, *many;
static double point[256];
static const double zeros[2], ones[2] = { 1, 1 };
static int no_values(void *user, const double *x, size_t count, double *values) { return 1; }
static int all_zero(void *user, const double *x, size_t count, double *values)
{
	memset(values, 0, 2 * count * sizeof *values);
	return 0;
}
static int optimising(jit_optimiser *p, const jit_error *err)
{
	jit_optimiser_close(p);
	return p ? JIT_OK : code(err);
}
/* Behind what was asked for: a status of what is done then. */
static int told(jit_optimiser *o, const double *values, jit_error *err)
{
	jit_optimiser_ask(o, point, NULL);
	const int status = jit_optimiser_tell(o, values, err);
	if (status != JIT_OK)
		jit_optimiser_tell(o, point, NULL);
	return status;
}

static int open_optimisers(jit_error *err)
{
	cma = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = 2, .start = zeros, .sigma = 1), err);
	many = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.method = JIT_OPTIMISE_NSGA2, .dimension = 2, .lower = zeros,
	                                                .upper = ones, .population = 8),
	                          err);
	return cma && many && told(many, point, err) == JIT_OK;
}

#endif
