/* runtime/kernels/launch_plan.c - the launch of a user's kernel as a plan. See launch_plan.h. */
#include "runtime/kernels/launch_plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cancelled launch goes on to the end of an op: some tenths of a second on one core, or on a card that reaches a
 * tenth of its arithmetic. The blocks of an op's end leave a card half empty, so that short ops waste it. Devices count
 * an op's units in 32 bits. */
#define WORK_OF_OP 1e9
#define SECONDS_OF_OP 0.02
#define UNITS_OF_OP (UINT64_C(1) << 30)

static uint64_t ops_of(const struct launch_shape *s)
{
	const double max = fmax(WORK_OF_OP, s->arithmetic * SECONDS_OF_OP),
		     work = ceil((s->moves + s->operations) / max);
	uint64_t by_work = work < 1                    ? 1
	                   : work < LAUNCH_OPS_MAX / 4 ? (uint64_t)work
	                                               : LAUNCH_OPS_MAX / 4,
		 by_units = (s->units + UNITS_OF_OP - 1) / UNITS_OF_OP;

	if (s->serial)
		return s->units < LAUNCH_OPS_MAX ? s->units ? s->units : 1 : LAUNCH_OPS_MAX;
	by_work = by_work < s->units ? by_work : s->units;
	return by_work > by_units ? by_work : by_units ? by_units : 1;
}

/* Op i of n has units i / n to (i + 1) / n of the launch. */
static int64_t units_before(uint64_t units, uint64_t i, uint64_t n)
{
	return (int64_t)(units / n * i + (i < units % n ? i : units % n));
}

static void fill(struct launch_plan *l, uint64_t n)
{
	struct plan *p = &l->plan;
	const struct launch_shape *s = &l->shape;

	p->kernel[0].key = s->key;
	for (uint64_t i = 0; i < n; i++) {
		p->op[i] = (struct plan_op){
			.n_args = s->args,
			.begin = units_before(s->units, i, n),
			.end = units_before(s->units, i + 1, n),
			.arg = p->args + i * LAUNCH_ARGS_MAX,
			.barrier = true,
			.unit_cost = 1,
			.serial = s->serial,
			.parts = true,
			.moves = s->moves / (double)n,
			.operations = s->operations / (double)n
		};
		p->stage[i] = (uint32_t)i;
		for (uint32_t k = 0; k < s->args; k++)
			p->changing[i * s->args + k].slot = &p->op[i].arg[k];
	}
	p->stage[n] = (uint32_t)n;
}

bool launch_plan_make(struct launch_plan *l, const struct launch_shape *shape, struct error *err)
{
	const uint64_t n = ops_of(shape);
	struct plan *p = &l->plan;

	*l = (struct launch_plan){ .shape = *shape };
	if (n > LAUNCH_OPS_MAX)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "a launch of %llu work units is too large, expected at most %llu",
		                 (unsigned long long)shape->units, (unsigned long long)(UNITS_OF_OP * LAUNCH_OPS_MAX));
	if (shape->args > LAUNCH_ARGS_MAX)
		return error_set(err, ERROR_UNSUPPORTED, "a kernel of %u arguments, expected at most %d", shape->args,
		                 LAUNCH_ARGS_MAX);
	p->tokens = 1;
	p->n_kernels = 1;
	p->n_ops = p->n_stages = n;
	p->n_args = n * LAUNCH_ARGS_MAX;
	p->n_changing = n * shape->args;
	p->kernel = calloc(1, sizeof *p->kernel);
	p->op = calloc(n, sizeof *p->op);
	p->args = calloc(p->n_args, sizeof *p->args);
	p->stage = calloc(n + 1, sizeof *p->stage);
	p->changing = calloc(p->n_changing + 1, sizeof *p->changing);
	if (!p->kernel || !p->op || !p->args || !p->stage || !p->changing) {
		launch_plan_free(l);
		return error_set(err, ERROR_MEMORY, "no memory for a launch in %llu parts", (unsigned long long)n);
	}
	fill(l, n);
	return true;
}

void launch_plan_set_args(struct launch_plan *l)
{
	for (size_t i = 0; i < l->plan.n_ops; i++)
		memcpy(l->plan.op[i].arg, l->arg, l->shape.args * sizeof *l->arg);
}

void launch_plan_free(struct launch_plan *l)
{
	struct plan *p = &l->plan;

	free(p->kernel);
	free(p->op);
	free(p->args);
	free(p->stage);
	free(p->changing);
	*l = (struct launch_plan){ 0 };
}
