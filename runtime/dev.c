#include "runtime/dev.h"

struct region { struct device *device; struct plan *plan; struct pool *pool; };

static void run_static(const struct region *r, const struct plan_launch *l, int worker, int workers)
{
	int64_t units = l->end - l->begin;
	int64_t begin = l->begin + units * worker / workers, end = l->begin + units * (worker + 1) / workers;
	if (begin < end)
		r->device->call(r->plan->kernel[l->kernel].handle, l->arg, begin, end);
}

static void run_dynamic(const struct region *r, struct plan_launch *l)
{
	/* from the last unit down: later columns see more positions, and the longest work must not start last */
	for (;;) {
		int64_t u = l->end - 1 - atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
		if (u < l->begin)
			return;
		r->device->call(r->plan->kernel[l->kernel].handle, l->arg, u, u + 1);
	}
}

static void region_main(void *user, int worker, int workers)
{
	struct region *r = user;
	struct plan *p = r->plan;

	for (size_t i = 0; i < p->n_launches; i++) {
		struct plan_launch *l = &p->launch[i];
		if (l->dynamic && workers > 1)
			run_dynamic(r, l);
		else
			run_static(r, l, worker, workers);
		if (l->barrier)
			pool_barrier(r->pool, worker);
	}
}

void dev_run(struct device *d, struct plan *p, struct pool *pool)
{
	struct region r = { d, p, pool };

	for (size_t i = 0; i < p->n_launches; i++)
		atomic_store_explicit(&p->launch[i].next, 0, memory_order_relaxed);
	pool_run(pool, region_main, &r);
}
