/* runtime/tuner.c - turns, samples, judgement. */
#include "runtime/tuner.h"

#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"

enum { SCHEDULES_MOST = 8, SAMPLES_MOST = 512, SAMPLES_LEAST = 4 };
/* A schedule must be so much faster than the usual one to be worth a difference between machines. */
#define WORTH 1.02

/* A kernel with several schedules. number[s] is that of schedule s among the plan's kernels, number[0] its own. */
struct candidate {
	uint32_t number[SCHEDULES_MOST], schedules;
	uint32_t *sample[SCHEDULES_MOST], n[SCHEDULES_MOST];    /* nanoseconds of a launch, of all workers */
};

struct tuner {
	struct tune *tune;
	struct plan *plan;
	unsigned passes, done;
	struct candidate *candidate; size_t n;
	uint32_t *launch_candidate;                     /* by launch: 1 + candidate, 0: none */
	uint32_t *launch_turn;                          /* by launch: which of its candidate's launches it is */
	uint8_t *launch_schedule;                       /* in the pass that runs */
};

/* The plan's kernels grow; launches name them by number, so they may move. */
static bool add_kernels(struct plan *p, size_t n)
{
	struct plan_kernel *more = realloc(p->kernel, (p->n_kernels + n) * sizeof *more);

	if (more)
		p->kernel = more;
	return more != NULL;
}

static bool add_candidate(struct tuner *t, uint32_t kernel, unsigned schedules)
{
	struct plan *p = t->plan;
	struct candidate *c = &t->candidate[t->n];

	c->schedules = schedules < SCHEDULES_MOST ? schedules : SCHEDULES_MOST;
	if (!add_kernels(p, c->schedules))
		return false;
	c->number[0] = kernel;
	for (uint32_t s = 0; s < c->schedules; s++) {
		if (!(c->sample[s] = malloc(SAMPLES_MOST * sizeof *c->sample[s])))
			return false;
		if (s == 0)
			continue;
		c->number[s] = (uint32_t)p->n_kernels;
		p->kernel[p->n_kernels] = (struct plan_kernel){ .key = p->kernel[kernel].key };
		p->kernel[p->n_kernels++].key.schedule = s;
	}
	t->n++;
	return true;
}

static bool find_candidates(struct tuner *t)
{
	size_t kernels = t->plan->n_kernels;

	for (uint32_t k = 0; k < kernels; k++) {
		const struct key key = t->plan->kernel[k].key;
		unsigned schedules = template_schedules(&key);
		if (key.schedule == 0 && schedules > 1 && !tune_known(t->tune, &key) && !add_candidate(t, k, schedules))
			return false;
	}
	return true;
}

static void number_launches(struct tuner *t)
{
	for (size_t c = 0; c < t->n; c++) {
		uint32_t turn = 0;
		for (size_t i = 0; i < t->plan->n_launches; i++)
			if (t->plan->launch[i].kernel == t->candidate[c].number[0]) {
				t->launch_candidate[i] = (uint32_t)c + 1;
				t->launch_turn[i] = turn++;
			}
	}
}

struct tuner *tuner_open(struct tune *tune, struct plan *plan, unsigned passes, struct error *err)
{
	struct tuner *t = calloc(1, sizeof *t);
	bool ok = t != NULL;

	if (ok) {
		*t = (struct tuner){ .tune = tune, .plan = plan, .passes = passes };
		t->candidate = calloc(plan->n_kernels, sizeof *t->candidate);
		t->launch_candidate = calloc(plan->n_launches, sizeof *t->launch_candidate);
		t->launch_turn = calloc(plan->n_launches, sizeof *t->launch_turn);
		t->launch_schedule = calloc(plan->n_launches, sizeof *t->launch_schedule);
		ok = t->candidate && t->launch_candidate && t->launch_turn && t->launch_schedule && find_candidates(t);
	}
	if (ok && t->n) {
		plan->took = calloc(plan->n_launches, sizeof *plan->took);
		ok = plan->took != NULL;
	}
	if (ok && t->n) {
		number_launches(t);
		return t;
	}
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory to tune a plan of %zu kernels", plan->n_kernels);
	tuner_close(t);
	return NULL;
}

void tuner_close(struct tuner *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->candidate && i < t->n + 1 && i < t->plan->n_kernels; i++)
		for (unsigned s = 0; s < SCHEDULES_MOST; s++)
			free(t->candidate[i].sample[s]);
	free(t->plan->took);
	t->plan->took = NULL;
	free(t->candidate);
	free(t->launch_candidate);
	free(t->launch_turn);
	free(t->launch_schedule);
	free(t);
}

void tuner_before(struct tuner *t)
{
	for (size_t i = 0; i < t->plan->n_launches; i++) {
		atomic_store_explicit(&t->plan->took[i], 0, memory_order_relaxed);
		if (!t->launch_candidate[i])
			continue;
		const struct candidate *c = &t->candidate[t->launch_candidate[i] - 1];
		t->launch_schedule[i] = (uint8_t)((t->launch_turn[i] + t->done) % c->schedules);
		t->plan->launch[i].kernel = c->number[t->launch_schedule[i]];
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

static void judge(struct tuner *t, struct candidate *c)
{
	double usual = 0, best = 0;
	uint32_t choice = 0, samples = UINT32_MAX;

	for (uint32_t s = 0; s < c->schedules; s++) {
		if (c->n[s] < SAMPLES_LEAST)
			return;
		double time = typical(c->sample[s], c->n[s]);
		samples = c->n[s] < samples ? c->n[s] : samples;
		if (s == 0)
			usual = best = time;
		if (time < best) {
			best = time;
			choice = s;
		}
	}
	if (best <= 0 || usual / best < WORTH)
		choice = 0;
	struct tune_result r = { .key = t->plan->kernel[c->number[choice]].key, .gain = choice ? usual / best : 1, .samples = samples };
	tune_set(t->tune, &r);
	c->number[0] = c->number[choice];
}

static void take_samples(struct tuner *t)
{
	for (size_t i = 0; i < t->plan->n_launches; i++)
		if (t->launch_candidate[i]) {
			struct candidate *c = &t->candidate[t->launch_candidate[i] - 1];
			uint64_t took = atomic_load_explicit(&t->plan->took[i], memory_order_relaxed);
			unsigned s = t->launch_schedule[i];
			if (c->n[s] < SAMPLES_MOST)
				c->sample[s][c->n[s]++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
		}
}

bool tuner_after(struct tuner *t)
{
	/* the first pass meets cold pages */
	if (t->done++ > 0)
		take_samples(t);
	if (t->done <= t->passes)
		return false;
	for (size_t c = 0; c < t->n; c++)
		judge(t, &t->candidate[c]);
	for (size_t i = 0; i < t->plan->n_launches; i++)
		if (t->launch_candidate[i])
			t->plan->launch[i].kernel = t->candidate[t->launch_candidate[i] - 1].number[0];
	return true;
}
