#include "runtime/dev.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profile.h"

/* Even shares that a worker did in this run, and how long they took. */
struct lane { _Alignas(64) uint64_t took, shares; };
enum { LANES_MOST = 64 };

struct region { struct device *device; struct plan *plan; int workers; uint32_t even; struct lane lane[LANES_MOST]; };

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
 * Some are cut evenly, one share for each worker, in long runs of neighbouring weights. The rest is cut finer and finer, so that workers finish
 * together although they do not run alike. Every share begins with waiting for memory, though. So the rest is as much as lets the slowest one of the plan's last run come to the end of its
 * even share in time; where workers were alike, none, if runs of both kinds, in turn and now and then, say that this is faster: workers that are alike in the end may not be so in every
 * launch. The steps of a chain are cut as the units of a launch are. */

enum { EVEN_USUAL = DEV_WHOLE * 3 / 4, EVEN_ALIKE = DEV_WHOLE * 19 / 20, EVEN_CARE = DEV_WHOLE * 7 / 8, PERIOD = 128 };

struct cut { int64_t units, large; int workers; };      /* large: units of an even share */

static struct cut cut_launch(const struct region *r, const struct plan_launch *l)
{
	int64_t units = (l->end - l->begin) / (l->chain ? l->chain : 1);
	return (struct cut){ units, units * r->even / DEV_WHOLE / r->workers, r->workers };
}

/* What the next run should cut evenly: of all units, what the slowest worker does while all together do them, times the workers. 0: not every worker came to an even share. */
static uint32_t even_next(const struct region *r)
{
	double all = 0, least = 0;

	for (int i = 0; i < r->workers; i++) {
		const struct lane *l = &r->lane[i < LANES_MOST ? i : 0];
		if (r->workers > LANES_MOST || !l->shares || !l->took)
			return 0;
		double speed = (double)l->shares / (double)l->took;
		all += speed;
		least = i == 0 || speed < least ? speed : least;
	}
	uint32_t even = (uint32_t)(DEV_WHOLE * r->workers * least / all);
	return even >= EVEN_ALIKE ? DEV_WHOLE : even * EVEN_CARE / DEV_WHOLE + 1;
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

/* Of workers that are alike: whether this run leaves a rest all the same. The runs that decide are of the kinds 0 1 1 0 0 1 1 0. */
static bool is_apart(const struct plan_pace *p) { return p->trials < DEV_TRIALS ? (p->trials + 1) / 2 & 1 : p->apart; }

static void count_trial(struct plan_pace *p, uint64_t took)
{
	bool kind = is_apart(p);

	if (p->trials < DEV_TRIALS) {
		p->took[kind] += took;
		p->longest[kind] = took > p->longest[kind] ? took : p->longest[kind];
	}
	if (++p->trials == DEV_TRIALS)
		p->apart = p->took[1] - p->longest[1] < p->took[0] - p->longest[0];
	if (p->trials == PERIOD)
		*p = (struct plan_pace){ .even = p->even, .apart = p->apart };
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
	struct cut c = cut_launch(r, l);
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

/* Of an even share. */
static void keep_time(struct region *r, int worker, uint64_t start)
{
	if (worker < LANES_MOST) {
		r->lane[worker].took += profile_now() - start;
		r->lane[worker].shares++;
	}
}

/* Neighbouring steps together: attention then reads the cache in longer pieces. */
static void do_chain(struct region *r, int worker, uint32_t phase, uint32_t share)
{
	uint32_t first = r->plan->phase[phase];
	struct cut c = cut_launch(r, &r->plan->launch[first]);
	uint32_t large = c.large ? (uint32_t)c.workers : 0;
	int64_t begin = share < large ? share * c.large : large * c.large + small_begin(&c, share - large);
	int64_t end = share < large ? begin + c.large : large * c.large + small_begin(&c, share - large + 1);
	uint64_t start = share < large ? profile_now() : 0;

	for (uint32_t i = first; i < phase_end(r->plan, phase); i++) {
		const struct plan_launch *l = &r->plan->launch[i];
		call(r, worker, i, l->begin + begin * l->chain, l->begin + end * l->chain);
	}
	if (share < large)
		keep_time(r, worker, start);
}

/* The large shares of all launches come before the small ones of any. */
static void do_even(struct region *r, int worker, uint32_t phase, uint32_t share)
{
	uint32_t first = r->plan->phase[phase], end = phase_end(r->plan, phase);

	for (int small = 0; small < 2; small++)
		for (uint32_t i = first; i < end; i++) {
			const struct plan_launch *l = &r->plan->launch[i];
			struct cut c = cut_launch(r, l);
			uint32_t here = l->alone || l->dynamic ? 0 : small ? small_shares(&c) : c.large ? (uint32_t)c.workers : 0;
			if (share >= here) {
				share -= here;
				continue;
			}
			int64_t from = l->begin + c.large * c.workers;
			if (small) {
				call(r, worker, i, from + small_begin(&c, share), from + small_begin(&c, share + 1));
			} else {
				uint64_t start = profile_now();
				call(r, worker, i, l->begin + c.large * share, l->begin + c.large * (share + 1));
				keep_time(r, worker, start);
			}
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
	struct region *r = user;
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
	struct region r;
	(void)err;

	r.device = d;
	r.plan = p;
	r.workers = pool_threads(pool);
	bool alike = p->pace.even == DEV_WHOLE;
	/* While schedules are tried (took) runs differ, and say nothing of this. */
	r.even = !p->pace.even || (alike && (p->took || is_apart(&p->pace))) ? EVEN_USUAL : p->pace.even;
	if (r.workers == 1) {
		for (size_t i = 0; i < p->n_launches; i++)
			call(&r, 0, i, p->launch[i].begin, p->launch[i].end);
		return true;
	}
	memset(r.lane, 0, sizeof *r.lane * (r.workers < LANES_MOST ? (size_t)r.workers : LANES_MOST));
	uint64_t start = profile_now();
	pool_work(pool, &(struct pool_work){ .phases = (uint32_t)p->n_phases, .open = open_phase, .share = do_share, .user = &r });
	if (alike && !p->took)
		count_trial(&p->pace, profile_now() - start);
	p->pace.even = even_next(&r);
	return true;
}
