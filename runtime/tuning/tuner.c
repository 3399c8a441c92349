/* runtime/tuning/tuner.c - which schedule runs when, samples of time, and the judgement. See tuner.h. */
#include "runtime/tuning/tuner.h"

#include <stdlib.h>
#include <string.h>

#include "jit/store/registry.h"

enum { SAMPLES_MAX = 512, SAMPLES_MIN = 4, SAMPLES_SURE = 8 };
/* What a pass runs once, the matrix of logits, may take so many times as many passes. */
enum { LATE_PASS_FACTOR = 3 };

/* A kernel with several schedules; number[s]: that of schedule[s] among the plan's kernels. */
struct candidate {
	uint32_t number[TEMPLATE_SCHEDULES_MAX], schedule[TEMPLATE_SCHEDULES_MAX], schedules, ops;
	uint32_t *sample[TEMPLATE_SCHEDULES_MAX], n[TEMPLATE_SCHEDULES_MAX]; /* nanoseconds of an op, of all workers */
	bool settled;                                                        /* judged: its ops have the best */
};

struct quick {
	struct tune *tune;
	struct registry *only;
};

struct tuner {
	struct tuner_options opt;
	struct quick quick;
	struct plan *plan;
	unsigned done;
	bool over;
	struct candidate *candidate;
	size_t n, capacity;
	uint32_t *op_candidate;   /* by op: 1 + candidate, 0: none */
	uint32_t *op_number;      /* by op: which of its candidate's ops it is */
	uint8_t *launch_schedule; /* in the pass that runs */
};

/* ---- candidates */

/* The number of the plan's kernel with this key, which is added where it is missing; UINT32_MAX: no memory. Launches
 * name kernels by number, so these may move. */
static uint32_t plan_kernel(struct plan *p, const struct key *key)
{
	for (size_t i = 0; i < p->n_kernels; i++)
		if (key_equal(&p->kernel[i].key, key))
			return (uint32_t)i;
	struct plan_kernel *more = realloc(p->kernel, (p->n_kernels + 1) * sizeof *more);
	if (!more)
		return UINT32_MAX;
	p->kernel = more;
	p->kernel[p->n_kernels] = (struct plan_kernel){ .key = *key };
	return (uint32_t)p->n_kernels++;
}

static bool add_candidate(struct tuner *t, uint32_t kernel, const uint32_t schedule[], unsigned schedules)
{
	struct candidate *c = &t->candidate[t->n++];
	struct key key = t->plan->kernel[kernel].key;

	c->schedules = schedules;
	for (unsigned s = 0; s < schedules; s++) {
		key.schedule = c->schedule[s] = schedule[s];
		c->number[s] = plan_kernel(t->plan, &key);
		if (c->number[s] == UINT32_MAX || !(c->sample[s] = malloc(SAMPLES_MAX * sizeof *c->sample[s])))
			return false;
	}
	return true;
}

/* Of the kernels that ops have. */
static bool find_candidates(struct tuner *t)
{
	uint32_t schedule[TEMPLATE_SCHEDULES_MAX];
	size_t kernels = t->plan->n_kernels;
	uint32_t *number = calloc(kernels, sizeof *number); /* by kernel: 1 + its candidate; UINT32_MAX: it is none */

	for (size_t i = 0; number && i < t->plan->n_ops; i++) {
		uint32_t k = t->plan->op[i].kernel;
		const struct key key = t->plan->kernel[k].key;
		if (!number[k]) {
			unsigned n = t->opt.list(t->opt.user, &key, schedule);
			number[k] = n > 1 ? (uint32_t)t->n + 1 : UINT32_MAX;
			if (n > 1 && !add_candidate(t, k, schedule, n)) {
				free(number);
				return false;
			}
		}
		if (number[k] != UINT32_MAX) {
			t->op_candidate[i] = number[k];
			t->op_number[i] = t->candidate[number[k] - 1].ops++;
		}
	}
	free(number);
	return number != NULL;
}

struct tuner *tuner_open(const struct tuner_options *o, struct error *err)
{
	struct tuner *t = calloc(1, sizeof *t);
	bool ok = t != NULL;

	if (ok) {
		*t = (struct tuner){ .opt = *o, .plan = o->plan, .capacity = o->plan->n_kernels };
		t->candidate = calloc(t->capacity, sizeof *t->candidate);
		t->op_candidate = calloc(o->plan->n_ops, sizeof *t->op_candidate);
		t->op_number = calloc(o->plan->n_ops, sizeof *t->op_number);
		t->launch_schedule = calloc(o->plan->n_ops, sizeof *t->launch_schedule);
		ok = t->candidate && t->op_candidate && t->op_number && t->launch_schedule && find_candidates(t);
	}
	if (ok && t->n) {
		o->plan->took = calloc(o->plan->n_ops, sizeof *o->plan->took);
		ok = o->plan->took != NULL;
	}
	if (ok && t->n)
		return t;
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory to tune a plan of %zu kernels", o->plan->n_kernels);
	tuner_close(t);
	return NULL;
}

static void run_with(struct tuner *t, size_t i, unsigned s)
{
	t->plan->op[i].kernel = t->candidate[t->op_candidate[i] - 1].number[s];
}

void tuner_close(struct tuner *t)
{
	if (!t)
		return;
	for (size_t i = 0; !t->over && t->op_candidate && i < t->plan->n_ops; i++)
		if (t->op_candidate[i] && !t->candidate[t->op_candidate[i] - 1].settled)
			run_with(t, i, 0);
	for (size_t i = 0; i < t->n; i++)
		for (unsigned s = 0; s < TEMPLATE_SCHEDULES_MAX; s++)
			free(t->candidate[i].sample[s]);
	free(t->plan->took);
	t->plan->took = NULL;
	free(t->candidate);
	free(t->op_candidate);
	free(t->op_number);
	free(t->launch_schedule);
	free(t);
}

unsigned tuner_rounds(const struct tuner *t)
{
	unsigned max = 1;

	for (size_t i = 0; i < t->n; i++) {
		const struct candidate *c = &t->candidate[i];
		unsigned rounds = (c->schedules + c->ops - 1) / c->ops;
		max = rounds > max ? rounds : max;
	}
	return max;
}

void tuner_set_passes(struct tuner *t, unsigned passes) { t->opt.passes = passes; }

unsigned tuner_judged(const struct tuner *t)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->candidate[i].settled;
	return n;
}

/* ---- turns */

void tuner_before(struct tuner *t)
{
	for (size_t i = 0; i < t->plan->n_ops; i++) {
		atomic_store_explicit(&t->plan->took[i], 0, memory_order_relaxed);
		if (!t->op_candidate[i] || t->candidate[t->op_candidate[i] - 1].settled)
			continue;
		t->launch_schedule[i] =
			(uint8_t)((t->op_number[i] + t->done) % t->candidate[t->op_candidate[i] - 1].schedules);
		run_with(t, i, t->launch_schedule[i]);
	}
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* The lower quartile: what else runs on the machine only ever adds. */
static double typical(uint32_t *sample, uint32_t n)
{
	qsort(sample, n, sizeof *sample, ascending);
	return sample[n / 4];
}

static void take_samples(struct tuner *t)
{
	for (size_t i = 0; i < t->plan->n_ops; i++)
		if (t->op_candidate[i] && !t->candidate[t->op_candidate[i] - 1].settled) {
			struct candidate *c = &t->candidate[t->op_candidate[i] - 1];
			uint64_t took = atomic_load_explicit(&t->plan->took[i], memory_order_relaxed);
			unsigned s = t->launch_schedule[i];
			if (c->n[s] < SAMPLES_MAX)
				c->sample[s][c->n[s]++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
		}
}

/* Seconds that went to schedules slower than the first. */
static double lost(struct tuner *t)
{
	double sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct candidate *c = &t->candidate[i];
		double first = c->n[0] ? typical(c->sample[0], c->n[0]) : 0;
		for (unsigned s = 1; first > 0 && s < c->schedules; s++) {
			double more = c->n[s] ? typical(c->sample[s], c->n[s]) - first : 0;
			sum += more > 0 ? more * c->n[s] : 0;
		}
	}
	return 1e-9 * sum / (t->opt.workers > 0 ? t->opt.workers : 1);
}

/* ---- judgement */

/* Returns which. */
static unsigned judge(struct tuner *t, struct candidate *c)
{
	struct tuner_verdict v = {
		.key = &t->plan->kernel[c->number[0]].key, .n = c->schedules, .samples = UINT32_MAX
	};

	for (unsigned s = 0; s < c->schedules; s++) {
		v.schedule[s] = c->schedule[s];
		v.time[s] = c->n[s] >= SAMPLES_MIN ? typical(c->sample[s], c->n[s]) : 0;
		v.samples = c->n[s] < v.samples ? c->n[s] : v.samples;
		if (v.time[s] > 0 && v.time[0] > 0 && v.time[s] < v.time[v.best])
			v.best = s;
	}
	if (v.best && v.time[0] < v.time[v.best] * TUNER_WORTH)
		v.best = 0;
	if (v.best && v.time[0] > v.time[v.best] * TUNER_MAX_PLAUSIBLE_GAIN)
		v.time[0] = v.best = 0;
	t->opt.judged(t->opt.user, &v);
	return v.best;
}

static void settle_candidate(struct tuner *t, size_t c)
{
	unsigned best = judge(t, &t->candidate[c]);

	t->candidate[c].settled = true;
	for (size_t i = 0; i < t->plan->n_ops; i++)
		if (t->op_candidate[i] == c + 1)
			run_with(t, i, best);
}

static bool sure(const struct candidate *c)
{
	for (unsigned s = 0; s < c->schedules; s++)
		if (c->n[s] < SAMPLES_SURE)
			return false;
	return true;
}

bool tuner_after(struct tuner *t)
{
	/* the first pass meets cold pages */
	if (t->done++ > 0)
		take_samples(t);
	bool end = t->done > LATE_PASS_FACTOR * (uint64_t)t->opt.passes || (t->opt.cost > 0 && lost(t) >= t->opt.cost);
	if (!end && t->done <= t->opt.passes)
		return false;
	t->over = true;
	for (size_t c = 0; c < t->n; c++)
		if (!t->candidate[c].settled && (end || sure(&t->candidate[c])))
			settle_candidate(t, c);
		else if (!t->candidate[c].settled)
			t->over = false;
	return t->over;
}

/* ---- during a session's first passes */

static unsigned list_quick(void *user, const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX])
{
	const struct quick *q = user;
	struct key k = *key;
	uint32_t all[TEMPLATE_SCHEDULES_MAX];
	unsigned n = 0, listed = key->schedule || tune_known(q->tune, key) ? 0 : template_schedules(key, all);

	for (unsigned i = 0; i < listed; i++) {
		k.schedule = all[i];
		if (i == 0 || !q->only || registry_ready(q->only, &k))
			out[n++] = all[i];
	}
	return n;
}

static void keep_quick(void *user, const struct tuner_verdict *v)
{
	const struct quick *q = user;
	struct tune_result r = {
		.key = *v->key, .gain = v->best ? v->time[0] / v->time[v->best] : 1, .samples = v->samples
	};

	for (unsigned s = 0; s < v->n; s++)
		if (v->time[s] <= 0)
			return;
	r.key.schedule = v->schedule[v->best];
	tune_set(q->tune, &r);
}

struct tuner *tuner_open_quick(struct tune *tune, struct plan *plan, unsigned passes, int workers,
                               struct registry *only, struct error *err)
{
	struct quick quick = { tune, only };
	struct tuner_options o = { .plan = plan,
		                   .passes = passes,
		                   .workers = workers,
		                   .cost = 1e-3 * TUNER_COST_MS,
		                   .list = list_quick,
		                   .judged = keep_quick,
		                   .user = &quick };
	struct tuner *t = tuner_open(&o, err);

	if (t) {
		t->quick = quick;
		t->opt.user = &t->quick;
	}
	return t;
}
