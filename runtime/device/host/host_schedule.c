/* runtime/device/host/host_schedule.c - how the host's threads run a plan: the kernels they make first, and how the
 * units of a stage are shared out among them.
 *
 * Owns: the cutting of units into shares, and what a run teaches the next one. Knows no device but the function that a
 * stream calls.
 */
#include "runtime/device/device.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"
#include "runtime/host/cancel.h"
#include "runtime/device/collect.h"
#include "runtime/device/profile.h"

/* Long chunks that a worker did in this run, and how long they took. */
struct lane {
	_Alignas(64) uint64_t took, shares;
};
enum { LANES_MAX = 64 };

struct region {
	struct stream *stream;
	struct plan *plan;
	uint32_t workers, even;
	bool cancelled; /* what is left is not done */
	uint64_t cost;
	uint32_t chunks; /* of the stage that is open: the first worker's run, than which none is longer; the short
	                    chunks of each; 0: it has parts */
	uint32_t parts;  /* of equal length, of each run; 0: it has chunks */
	uint32_t dynamic, grain; /* its shares, where units differ in cost, and how many units are one */
	struct lane lane[LANES_MAX];
};

static void call(const struct region *r, int worker, size_t i, int64_t begin, int64_t end)
{
	struct plan *p = r->plan;
	struct plan_op *l = &p->op[i];
	uint64_t start = r->stream->profile || p->took ? profile_now() : 0;

	r->stream->call(p->kernel[l->kernel].handle, l->arg, begin, end);
	if (!start)
		return;
	uint64_t now = profile_now();
	if (r->stream->profile)
		profile_launch(r->stream->profile, worker, p, i, start, now);
	if (p->took)
		atomic_fetch_add_explicit(&p->took[i], now - start, memory_order_relaxed);
}

/* ---- kernels */

struct task {
	const struct key *key;
	unsigned effort;
};

static int hardest_first(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	if (x->effort != y->effort)
		return x->effort < y->effort ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key; /* the list's order, for that of the code in memory */
}

struct making {
	struct registry *registry;
	const struct task *task;
	size_t n;
	_Atomic size_t next;
};

static void make_some(void *user, int worker, int workers)
{
	struct making *m = user;

	for (size_t i; (i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed)) < m->n;)
		registry_get(m->registry, m->task[i].key, NULL, NULL);
}

/* The longest first, so that threads come to an end together. Without memory for the list nothing is made: the pass
 * that asks for a kernel will make it. */
void device_make_kernels(struct registry *r, const struct key *key, size_t n, struct pool *pool)
{
	registry_load(r, key, n);
	struct task *missing = registry_in_order(r) ? NULL : malloc(n * sizeof *missing);
	struct making m = { .registry = r, .task = missing };

	for (size_t i = 0; missing && i < n; i++)
		if (!registry_ready(r, &key[i]))
			missing[m.n++] = (struct task){ &key[i], template_effort(&key[i]) };
	if (m.n > 1) {
		qsort(missing, m.n, sizeof *missing, hardest_first);
		pool_run(pool, make_some, &m);
	}
	free(missing);
}

bool device_make_plan(struct registry *r, const struct plan *p, struct pool *pool, struct error *err)
{
	struct key *key = malloc((p->n_kernels + 1) * sizeof *key);

	if (!key)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", p->n_kernels);
	for (size_t i = 0; i < p->n_kernels; i++)
		key[i] = p->kernel[i].key;
	device_make_kernels(r, key, p->n_kernels, pool);
	free(key);
	return true;
}

/* ---- how the units of a stage are cut into shares
 *
 * Each worker has a run of neighbouring units of every op, and one after another they are cut into chunks: a long one,
 * then short ones, of which others take the last when they have done their own. So memory is read from first to last,
 * what is asked for ahead at the end of a chunk is in the next one, and workers finish together although they do not
 * run alike. The long chunk is what the slowest worker of the plan's last run does while all together do all, less some
 * care. The steps of a chain are cut as the units of an op are. */

enum {
	STATIC_SHARE_USUAL = HOST_SCHEDULE_SHARE_ONE * 3 / 4,
	EVEN_CARE = HOST_SCHEDULE_SHARE_ONE * 7 / 8,
	CHUNKS_MAX = 8
};

/* The cost of a unit of a user's kernel is unknown: a loop may end early. Each worker's run is cut into parts of equal
 * length, so that at the end workers wait for a part, and not for a long chunk of units that cost more than others.
 * Taking a part costs some 200 ns, so little work has fewer parts; but at least PARTS_MIN, because a loop of unknown
 * length counts as one iteration. */
enum { PARTS_MIN = 8, PARTS_MAX = 48, WORK_OF_PART = 1 << 18 };

/* What the next run should cut evenly: of all units, what the slowest worker does while all together do them, times the
 * workers. 0: not every worker came to a long chunk. */
static uint32_t static_share_next(const struct region *r)
{
	double all = 0, min = 0;

	for (uint32_t i = 0; i < r->workers; i++) {
		const struct lane *l = &r->lane[i < LANES_MAX ? i : 0];
		if (r->workers > LANES_MAX || !l->shares || !l->took)
			return 0;
		double speed = (double)l->shares / (double)l->took;
		all += speed;
		min = i == 0 || speed < min ? speed : min;
	}
	return (uint32_t)(EVEN_CARE * r->workers * min / all) + 1;
}

/* Units, or steps of a chain, that are cut. */
static uint32_t units_of(const struct plan_op *l)
{
	return l->serial || l->uneven ? 0 : (uint32_t)(l->end - l->begin) / (l->fused_units ? l->fused_units : 1);
}

static uint32_t stage_end(const struct plan *p, uint32_t stage) { return p->stage[stage + 1]; }

/* The ops of a chain go through the same steps: its first one stands for all. */
static uint32_t cut_end(const struct plan *p, uint32_t stage)
{
	uint32_t first = p->stage[stage];
	return p->op[first].fused_units ? first + 1 : stage_end(p, stage);
}

static uint64_t run_cost(const struct region *r, uint32_t stage)
{
	const struct plan *p = r->plan;
	uint64_t cost = 0;

	for (uint32_t i = p->stage[stage]; i < cut_end(p, stage); i++)
		cost += (uint64_t)p->op[i].unit_cost * pool_run_begin(units_of(&p->op[i]), 1, r->workers);
	return cost;
}

/* How much of a run lies before a chunk. */
static uint64_t cost_before(const struct region *r, uint32_t chunk)
{
	uint64_t large = r->cost * r->even / HOST_SCHEDULE_SHARE_ONE;
	if (r->parts)
		return r->cost * chunk / r->parts;
	return chunk == 0 ? 0 : large + (r->cost - large) * (chunk - 1) / r->chunks;
}

static uint32_t parts_of(const struct region *r, const struct plan_op *l)
{
	const double work = (l->moves + l->operations) / WORK_OF_PART / r->workers;
	uint32_t n = work < PARTS_MIN   ? PARTS_MIN
	             : work < PARTS_MAX ? (uint32_t)work
	                                : PARTS_MAX,
		 max = POOL_MAX_SHARES / r->workers, run = pool_run_begin(units_of(l), 1, r->workers);

	n = n < max ? n : max;
	return n < run ? n : run;
}

/* How often workers take some of an op whose units differ in cost. */
static uint32_t dynamic_times(const struct plan_op *l, uint32_t grain)
{
	return ((uint32_t)(l->end - l->begin) + grain - 1) / grain;
}

/* Such units are taken one by one, unless there are very many; as often by each worker. */
static uint32_t open_dynamic(struct region *r, uint32_t stage)
{
	const struct plan *p = r->plan;
	uint32_t units = 0, n = 0;

	for (uint32_t i = p->stage[stage]; i < stage_end(p, stage); i++)
		units += (uint32_t)(p->op[i].end - p->op[i].begin);
	r->grain = units / (POOL_MAX_SHARES / 2) + 1;
	for (uint32_t i = p->stage[stage]; i < stage_end(p, stage); i++)
		n += dynamic_times(&p->op[i], r->grain);
	return r->dynamic = (n + r->workers - 1) / r->workers * r->workers;
}

/* ---- stages: ops that do not depend on each other, or a chain, of which each step depends only on the same step of
 * the ops before */

static uint32_t open_stage(void *user, int worker, uint32_t stage)
{
	struct region *r = user;
	struct plan *p = r->plan;
	uint32_t first = p->stage[stage];

	if (r->cancelled || cancel_any(r->stream->cancel)) {
		r->cancelled = true;
		return 0;
	}
	for (uint32_t i = first; r->stream->collect && i < stage_end(p, stage); i++)
		collect_see(r->stream->collect, p, i);
	if (p->op[first].uneven) /* then all are: attention of one sequence or several */
		return open_dynamic(r, stage);
	for (uint32_t i = first; i < stage_end(p, stage); i++)
		if (p->op[i].serial)
			call(r, worker, i, p->op[i].begin, p->op[i].end);
	r->cost = run_cost(r, stage);
	r->chunks = r->parts = 0;
	if (p->op[first].parts) /* a launch: a stage of its own */
		return r->workers * (r->parts = r->cost ? parts_of(r, &p->op[first]) : 0);
	uint64_t rest = r->cost - r->cost * r->even / HOST_SCHEDULE_SHARE_ONE;
	r->chunks = rest == 0 ? 1 : rest < CHUNKS_MAX ? (uint32_t)rest : CHUNKS_MAX;
	return r->cost ? r->workers * (1 + r->chunks) : 0;
}

/* Of an op whose run begins when `before` was spent: the units that are done when `cost` is. */
static uint32_t units_before(const struct plan_op *l, uint64_t before, uint64_t cost, uint32_t units)
{
	uint64_t n = cost > before ? (cost - before) / l->unit_cost : 0;
	return n < units ? (uint32_t)n : units;
}

/* Neighbouring steps together: attention then reads the cache in longer chunks. */
static void do_steps(const struct region *r, int worker, uint32_t stage, uint32_t begin, uint32_t end)
{
	const struct plan *p = r->plan;

	for (uint32_t i = p->stage[stage]; i < stage_end(p, stage); i++)
		call(r, worker, i, p->op[i].begin + (int64_t)begin * p->op[i].fused_units,
		     p->op[i].begin + (int64_t)end * p->op[i].fused_units);
}

static void do_chunk(struct region *r, int worker, uint32_t stage, uint32_t share)
{
	const struct plan *p = r->plan;
	const uint32_t of_run = r->parts ? r->parts : 1 + r->chunks;
	uint32_t owner = share / of_run, chunk = share % of_run, did = 0;
	uint64_t from = cost_before(r, chunk), to = cost_before(r, chunk + 1), before = 0,
		 start = chunk == 0 && !r->parts ? profile_now() : 0;

	for (uint32_t i = p->stage[stage]; i < cut_end(p, stage); i++) {
		const struct plan_op *l = &p->op[i];
		uint32_t first = pool_run_begin(units_of(l), owner, r->workers),
			 n = pool_run_begin(units_of(l), owner + 1, r->workers) - first;
		uint32_t begin = first + units_before(l, before, from, n), end = first + units_before(l, before, to, n);
		before += (uint64_t)n * l->unit_cost;
		if (begin == end)
			continue;
		if (l->fused_units)
			do_steps(r, worker, stage, begin, end);
		else
			call(r, worker, i, l->begin + begin, l->begin + end);
		did++;
	}
	if (start && did && worker < LANES_MAX) {
		r->lane[worker].took += profile_now() - start;
		r->lane[worker].shares++;
	}
}

/* From the last unit of the last op down, workers in turn: later tokens see more positions, and the longest work must
 * not start last. */
static void do_dynamic(const struct region *r, int worker, uint32_t stage, uint32_t share)
{
	const struct plan *p = r->plan;
	uint32_t each = r->dynamic / r->workers, rank = share % each * r->workers + share / each,
		 i = stage_end(p, stage);

	while (i-- > p->stage[stage]) {
		const struct plan_op *l = &p->op[i];
		uint32_t times = dynamic_times(l, r->grain);
		int64_t end = l->end - (int64_t)rank * r->grain, begin = end - r->grain;
		if (rank < times) {
			call(r, worker, i, begin > l->begin ? begin : l->begin, end);
			return;
		}
		rank -= times;
	}
}

static void do_share(void *user, int worker, uint32_t stage, uint32_t share)
{
	struct region *r = user;
	if (r->plan->op[r->plan->stage[stage]].uneven)
		do_dynamic(r, worker, stage, share);
	else
		do_chunk(r, worker, stage, share);
}

/* Without a look at what each took: a lone thread does all of it. */
static bool run_alone(struct region *r, struct error *err)
{
	const struct plan *p = r->plan;

	for (size_t i = p->stage[0]; i < p->stage[p->n_stages]; i++) {
		if (cancel_any(r->stream->cancel))
			return cancel_error(err);
		if (r->stream->collect)
			collect_see(r->stream->collect, p, i);
		call(r, 0, i, p->op[i].begin, p->op[i].end);
	}
	return true;
}

bool host_schedule_run(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	struct region r;

	r.stream = s;
	r.plan = p;
	r.cancelled = false;
	r.workers = (uint32_t)pool_threads(pool);
	r.even = p->static_share ? p->static_share : STATIC_SHARE_USUAL;
	if (r.workers == 1)
		return run_alone(&r, err);
	memset(r.lane, 0, sizeof *r.lane * (r.workers < LANES_MAX ? r.workers : LANES_MAX));
	pool_work(pool, &(struct pool_work){
				.stages = (uint32_t)p->n_stages, .open = open_stage, .share = do_share, .user = &r });
	if (r.cancelled)
		return cancel_error(err);
	p->static_share = static_share_next(&r);
	return true;
}
