#include "runtime/dev.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/profile.h"

struct region { struct device *device; struct plan *plan; int workers; };

static void call(const struct region *r, int worker, size_t i, int64_t begin, int64_t end)
{
	struct plan *p = r->plan;
	struct plan_launch *l = &p->launch[i];
	uint64_t start = r->device->profile || p->took ? profile_now() : 0;

	r->device->call(p->kernel[l->kernel].handle, l->arg, begin, end);
	if (!start)
		return;
	uint64_t now = profile_now();
	if (r->device->profile)
		profile_launch(r->device->profile, worker, p, i, start, now);
	if (p->took)
		atomic_fetch_add_explicit(&p->took[i], now - start, memory_order_relaxed);
}

/* ---- kernels */

/* What it takes to make a kernel, roughly, in quarters of a plain matmul's: for the order alone in which threads take them, so columns, which a pass's kernels have in common, and
 * formats, whose matmuls stand together anyway, are left out. Found by counting the code generators' instructions. */
static unsigned effort_of(const struct key *k)
{
	switch (k->kind) {
	case KEY_MATMUL: return k->flags & KEY_SILU_MUL ? 5 : 4;
	case KEY_ATTENTION: return 8;
	case KEY_NORM: case KEY_EMBED: case KEY_KV_STORE: return 2;
	default: return 1;
	}
}

struct task { const struct key *key; unsigned effort; };

static int hardest_first(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	if (x->effort != y->effort)
		return x->effort < y->effort ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key;       /* the list's order, for that of the code in memory */
}

struct making { struct registry *registry; const struct task *task; size_t n; _Atomic size_t next; };

static void make_some(void *user, int worker, int workers)
{
	struct making *m = user;
	(void)worker;
	(void)workers;

	for (size_t i; (i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed)) < m->n;)
		registry_get(m->registry, m->task[i].key, NULL, NULL);
}

/* The longest first, so that threads come to an end together. Without memory for the list nothing is made: whoever asks for a kernel will make it. */
void dev_make_kernels(struct registry *r, const struct key *key, size_t n, struct pool *pool)
{
	registry_load(r, key, n);
	struct task *missing = registry_in_order(r) ? NULL : malloc(n * sizeof *missing);
	struct making m = { .registry = r, .task = missing };

	for (size_t i = 0; missing && i < n; i++)
		if (!registry_ready(r, &key[i]))
			missing[m.n++] = (struct task){ &key[i], effort_of(&key[i]) };
	if (m.n > 1) {
		qsort(missing, m.n, sizeof *missing, hardest_first);
		pool_run(pool, make_some, &m);
	}
	free(missing);
}

bool dev_make_plan(struct registry *r, const struct plan *p, struct pool *pool, struct error *err)
{
	struct key *key = malloc((p->n_kernels + 1) * sizeof *key);

	if (!key)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", p->n_kernels);
	for (size_t i = 0; i < p->n_kernels; i++)
		key[i] = p->kernel[i].key;
	dev_make_kernels(r, key, p->n_kernels, pool);
	free(key);
	return true;
}

/* ---- how the units of a launch are cut into shares
 *
 * Three quarters are cut evenly, one share for each worker, in long runs of neighbouring weights. The rest is cut finer and finer, so that workers finish
 * together although they do not run alike. The steps of a chain are cut as the units of a launch are. */

struct cut { int64_t units, large; int workers; };      /* large: units of an even share */

static struct cut cut_launch(const struct plan_launch *l, int workers)
{
	int64_t units = (l->end - l->begin) / (l->chain ? l->chain : 1);
	return (struct cut){ units, units * 3 / 4 / workers, workers };
}

/* Where the small share `n` begins, counted from the end of the large ones. */
static int64_t small_begin(const struct cut *c, int64_t n)
{
	int64_t rest = c->units - c->large * c->workers, begin = 0, w = c->workers;

	for (int64_t part = 2 * w; part <= 8 * w; part *= 2) {
		int64_t size = (rest + part - 1) / part, here = part == 8 * w || n < w ? n : w;
		begin += here * size;
		n -= here;
	}
	return begin < rest ? begin : rest;
}

static uint32_t small_shares(const struct cut *c)
{
	uint32_t n = 0;
	while (small_begin(c, n) < c->units - c->large * c->workers)
		n++;
	return n;
}

/* Units that differ in cost are taken one by one, unless there are very many. */
static int64_t dynamic_grain(const struct plan_launch *l) { return (l->end - l->begin) / (POOL_MOST_SHARES / 2) + 1; }

static uint32_t dynamic_shares(const struct plan_launch *l)
{
	int64_t grain = dynamic_grain(l);
	return (uint32_t)((l->end - l->begin + grain - 1) / grain);
}

/* ---- phases */

/* A phase's launches do not depend on each other, or each unit of one only on the same unit of those before, which `chain` says. */
static uint32_t phase_end(const struct plan *p, uint32_t phase) { return p->phase[phase + 1]; }

static uint32_t shares_of(const struct region *r, const struct plan_launch *l)
{
	if (l->dynamic)
		return dynamic_shares(l);
	struct cut c = cut_launch(l, r->workers);
	return (c.large ? (uint32_t)c.workers : 0) + small_shares(&c);
}

static uint32_t open_phase(void *user, int worker, uint32_t phase)
{
	struct region *r = user;
	struct plan *p = r->plan;
	uint32_t first = p->phase[phase], shares = 0;

	if (p->launch[first].chain)
		return shares_of(r, &p->launch[first]);
	for (uint32_t i = first; i < phase_end(p, phase); i++) {
		if (p->launch[i].alone)
			call(r, worker, i, p->launch[i].begin, p->launch[i].end);
		else
			shares += shares_of(r, &p->launch[i]);
	}
	return shares;
}

/* Neighbouring steps together: attention then reads the cache in longer pieces. */
static void do_chain(const struct region *r, int worker, uint32_t phase, uint32_t share)
{
	uint32_t first = r->plan->phase[phase];
	struct cut c = cut_launch(&r->plan->launch[first], r->workers);
	uint32_t large = c.large ? (uint32_t)c.workers : 0;
	int64_t begin = share < large ? share * c.large : large * c.large + small_begin(&c, share - large);
	int64_t end = share < large ? begin + c.large : large * c.large + small_begin(&c, share - large + 1);

	for (uint32_t i = first; i < phase_end(r->plan, phase); i++) {
		const struct plan_launch *l = &r->plan->launch[i];
		call(r, worker, i, l->begin + begin * l->chain, l->begin + end * l->chain);
	}
}

/* The large shares of all launches come before the small ones of any. */
static void do_even(const struct region *r, int worker, uint32_t phase, uint32_t share)
{
	uint32_t first = r->plan->phase[phase], end = phase_end(r->plan, phase);

	for (int small = 0; small < 2; small++)
		for (uint32_t i = first; i < end; i++) {
			const struct plan_launch *l = &r->plan->launch[i];
			struct cut c = cut_launch(l, r->workers);
			uint32_t here = l->alone || l->dynamic ? 0 : small ? small_shares(&c) : c.large ? (uint32_t)c.workers : 0;
			if (share >= here) {
				share -= here;
				continue;
			}
			int64_t from = l->begin + c.large * c.workers;
			if (small)
				call(r, worker, i, from + small_begin(&c, share), from + small_begin(&c, share + 1));
			else
				call(r, worker, i, l->begin + c.large * share, l->begin + c.large * (share + 1));
			return;
		}
}

/* From the last unit down: later columns see more positions, and the longest work must not start last. */
static void do_dynamic(const struct region *r, int worker, uint32_t i, uint32_t share)
{
	const struct plan_launch *l = &r->plan->launch[i];
	int64_t grain = dynamic_grain(l), end = l->end - share * grain, begin = end - grain;

	call(r, worker, i, begin > l->begin ? begin : l->begin, end);
}

static void do_share(void *user, int worker, uint32_t phase, uint32_t share)
{
	const struct region *r = user;
	uint32_t first = r->plan->phase[phase];

	if (r->plan->launch[first].chain)
		do_chain(r, worker, phase, share);
	else if (r->plan->launch[first].dynamic)
		do_dynamic(r, worker, first, share);
	else
		do_even(r, worker, phase, share);
}

bool dev_run(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	struct region r = { d, p, pool_threads(pool) };
	(void)err;

	for (size_t i = 0; r.workers == 1 && i < p->n_launches; i++)
		call(&r, 0, i, p->launch[i].begin, p->launch[i].end);
	if (r.workers > 1)
		pool_work(pool, &(struct pool_work){ .phases = (uint32_t)p->n_phases, .open = open_phase, .share = do_share, .user = &r });
	return true;
}
