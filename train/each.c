/* train/each.c - see each.h. */
#include "train/each.h"

#include <string.h>

#include "train/adamw.h"

enum { PART = 1 << 16 };

static uint64_t part_size(uint64_t n)
{
	const uint64_t min = (n + POOL_MAX_SHARES - 1) / POOL_MAX_SHARES;

	return min > PART ? min : PART;
}

uint32_t each_parts(uint64_t n) { return (uint32_t)((n + part_size(n) - 1) / part_size(n)); }

struct each {
	uint64_t n, size;
	each_fn fn;
	void *user;
};

static uint32_t open_stage(void *user, int worker, uint32_t stage)
{
	const struct each *e = user;
	(void)worker, (void)stage;

	return each_parts(e->n);
}

static void run_part(void *user, int worker, uint32_t stage, uint32_t part)
{
	const struct each *e = user;
	const uint64_t from = part * e->size, to = from + e->size;
	(void)worker, (void)stage;

	e->fn(e->user, from, to < e->n ? to : e->n, part);
}

void each_run(struct pool *pool, uint64_t n, each_fn fn, void *user)
{
	struct each e = { n, part_size(n), fn, user };

	if (pool && each_parts(n) > 1)
		pool_work(pool, &(struct pool_work){ 1, open_stage, run_part, &e });
	else
		for (uint32_t part = 0; part < each_parts(n); part++)
			run_part(&e, 0, 0, part);
}

struct arrays {
	float *to;
	const float *from;
	double *parts;
};

static void add_part(void *user, uint64_t from, uint64_t to, uint32_t part)
{
	const struct arrays *a = user;
	(void)part;

	for (uint64_t i = from; i < to; i++)
		a->to[i] += a->from[i];
}

void each_add(struct pool *pool, float *sum, const float *x, uint64_t n)
{
	each_run(pool, n, add_part, &(struct arrays){ sum, x, NULL });
}

static void zero_part(void *user, uint64_t from, uint64_t to, uint32_t part)
{
	const struct arrays *a = user;
	(void)part;

	memset(a->to + from, 0, (to - from) * sizeof *a->to);
}

void each_zero(struct pool *pool, float *x, uint64_t n)
{
	each_run(pool, n, zero_part, &(struct arrays){ x, NULL, NULL });
}

static void square_part(void *user, uint64_t from, uint64_t to, uint32_t part)
{
	const struct arrays *a = user;

	a->parts[part] = adamw_squares(a->from + from, to - from, 0);
}

double each_squares(struct pool *pool, const float *x, uint64_t n, double sum, double *parts)
{
	each_run(pool, n, square_part, &(struct arrays){ NULL, x, parts });
	for (uint32_t i = 0; i < each_parts(n); i++)
		sum += parts[i];
	return sum;
}
