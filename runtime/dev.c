#include "runtime/dev.h"
#include "runtime/profile.h"

struct region { struct device *device; struct plan *plan; struct pool *pool; };

/* Three quarters of the units are split evenly, in long runs of neighbouring weights; the rest is taken grain by grain by whoever comes first,
 * so that a thread whose core is slowed or taken away does not hold up the others. */
static void run_shared(const struct region *r, struct plan_launch *l, int worker, int workers)
{
	void *handle = r->plan->kernel[l->kernel].handle;
	int64_t units = l->end - l->begin, own = units * 3 / 4 / workers, shared = l->begin + own * workers;
	int64_t grain = (l->end - shared) / (workers * 4);

	if (grain < 1)
		grain = 1;
	if (own > 0)
		r->device->call(handle, l->arg, l->begin + own * worker, l->begin + own * (worker + 1));
	for (;;) {
		int64_t begin = shared + atomic_fetch_add_explicit(&l->next, grain, memory_order_relaxed);
		if (begin >= l->end)
			return;
		r->device->call(handle, l->arg, begin, begin + grain < l->end ? begin + grain : l->end);
	}
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
		uint64_t start = r->device->profile || p->took ? profile_now() : 0, end;
		if (workers == 1)
			r->device->call(p->kernel[l->kernel].handle, l->arg, l->begin, l->end);
		else if (l->dynamic)
			run_dynamic(r, l);
		else
			run_shared(r, l, worker, workers);
		if (start) {
			end = profile_now();
			if (r->device->profile)
				profile_launch(r->device->profile, worker, p, i, start, end);
			if (p->took)
				atomic_fetch_add_explicit(&p->took[i], end - start, memory_order_relaxed);
		}
		if (l->barrier)
			pool_barrier(r->pool, worker);
	}
}

bool dev_run(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	struct region r = { d, p, pool };
	(void)err;

	for (size_t i = 0; i < p->n_launches; i++)
		atomic_store_explicit(&p->launch[i].next, 0, memory_order_relaxed);
	pool_run(pool, region_main, &r);
	return true;
}
