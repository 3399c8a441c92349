/* programs/jitwarm/search.c - rounds over fields, for each kind of pass. */
#include "programs/jitwarm/search.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "runtime/host/system.h"
#include "runtime/tuning/tuner.h"

/* share: of the time that is left, for this pass and those after it; one token is what most tokens go through. */
static const struct {
	uint32_t tokens;
	bool logits;
	unsigned share;
} kinds[] = { { 1, true, 4 },
	      { 4, true, 2 },
	      { 8, true, 2 },
	      { 16, true, 2 },
	      { SEARCH_CONTEXT - SEARCH_CONTEXT / 4, false, 2 } };
enum {
	KINDS = sizeof kinds / sizeof *kinds,
	SAMPLES = 8,
	CONFIRMED = 24 /* of each schedule, at least */,
	PASSES_MIN = 8,
	SWEEPS = 2,
	WARM_UP = 2
};

/* A kernel of the pass at work: the best schedule so far, and the fewest samples of a schedule that this was judged by;
 * 0: no round was long enough. */
struct kernel_state {
	struct key key;
	uint32_t samples;
};

struct search {
	jit_session *session;
	struct tune *results;
	const struct search_options *opt;
	struct plan *plan;
	double deadline; /* of this kind of pass; 0: none */
	struct kernel_state *kernel;
	size_t n;
	unsigned field; /* in this round */
	bool confirm;   /* it compares what came out with the usual schedule */
	bool changed;
	struct search_progress progress;
};

static struct key plain(struct key k)
{
	k.schedule = 0;
	return k;
}

static struct kernel_state *find(struct search *s, const struct key *key)
{
	for (size_t i = 0; i < s->n; i++) {
		struct key a = plain(s->kernel[i].key), b = plain(*key);
		if (key_equal(&a, &b))
			return &s->kernel[i];
	}
	return NULL;
}

/* ---- a round */

static unsigned list_round(void *user, const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX])
{
	struct search *s = user;

	if (!find(s, key))
		return 0;
	out[0] = s->confirm ? 0 : key->schedule;
	if (!s->confirm)
		return 1 + template_schedules_near(key, s->field, out + 1);
	out[1] = key->schedule;
	return key->schedule ? 2 : 1;
}

static void judge_round(void *user, const struct tuner_verdict *v)
{
	struct search *s = user;
	struct kernel_state *k = find(s, v->key);

	if (s->confirm && v->time[0] <= 0) {
		k->key.schedule = 0; /* not known: a session will find out */
	} else if (s->confirm) {
		struct tune_result r = {
			.key = plain(k->key), .gain = v->best ? v->time[0] / v->time[v->best] : 1, .samples = v->samples
		};
		r.key.schedule = v->schedule[v->best];
		s->progress.better += v->best != 0;
		tune_set(s->results, &r);
	} else if (v->time[0] > 0 && v->samples) {
		k->samples = k->samples && k->samples < v->samples ? k->samples : v->samples;
		if (v->best) {
			k->key.schedule = v->schedule[v->best];
			s->changed = true;
		}
	}
}

static bool time_is_up(const struct search *s) { return s->deadline > 0 && system_seconds() >= s->deadline; }

/* Launches use what was best so far, whatever a confirmation or an end in the middle left. */
static bool run_round(struct search *s, struct error *err)
{
	struct tuner_options o = {
		.plan = s->plan, .passes = UINT32_MAX, .list = list_round, .judged = judge_round, .user = s
	};
	struct tuner *t = tuner_open(&o, err);
	bool ok = t || err->code == ERROR_NONE;

	if (!t)
		return ok;
	unsigned passes = (s->confirm ? CONFIRMED : SAMPLES) * tuner_rounds(t);
	tuner_set_passes(t, passes > PASSES_MIN ? passes : PASSES_MIN);
	ok = session_prepare(s->session, s->plan, err);
	for (bool over = false; ok && !over && (!time_is_up(s) || s->confirm); s->progress.passes++) {
		tuner_before(t);
		ok = session_pass(s->session, s->plan, err);
		over = ok && tuner_after(t);
	}
	tuner_close(t);
	s->progress.rounds++;
	return ok;
}

/* ---- a kind of pass */

static bool list_kernels(struct search *s, struct error *err)
{
	uint32_t near[TEMPLATE_SCHEDULES_MAX - 1];

	s->n = 0;
	if (!(s->kernel = calloc(s->plan->n_kernels, sizeof *s->kernel)))
		return error_set(err, ERROR_MEMORY, "no memory to tune %zu kernels", s->plan->n_kernels);
	for (size_t i = 0; i < s->plan->n_kernels; i++) {
		const struct key *key = &s->plan->kernel[i].key;
		struct tune_result ignored;
		unsigned n = 0;
		for (unsigned f = 0; f < TEMPLATE_SCHEDULE_FIELDS; f++)
			n += template_schedules_near(key, f, near);
		if (n && !tune_find(s->results, key, &ignored)) /* prompts meet kernels of draft tokens again */
			s->kernel[s->n++].key = *key;
	}
	return true;
}

/* Kernels that were tried and for which nothing was found are known to like the usual schedule; those that found
 * something are confirmed. Of others nothing is known. */
static bool finish(struct search *s, struct error *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->kernel[i].key.schedule && s->kernel[i].samples)
			tune_set(s->results,
			         &(struct tune_result){
					 .key = s->kernel[i].key, .gain = 1, .samples = s->kernel[i].samples });
	s->confirm = true;
	bool ok = run_round(s, err);
	s->confirm = false;
	return ok;
}

static bool search_kind(struct search *s, unsigned kind, struct error *err)
{
	double start = system_seconds();

	s->progress = (struct search_progress){ .tokens = kinds[kind].tokens, .prompt = !kinds[kind].logits };
	if (!(s->plan = session_plan(s->session, kinds[kind].tokens, kinds[kind].logits, err)) || !list_kernels(s, err))
		return false;
	bool ok = true;
	for (int i = 0; ok && s->n && i < WARM_UP; i++)
		ok = session_pass(s->session, s->plan, err);
	s->changed = ok && s->n;
	for (unsigned sweep = 0; ok && sweep < SWEEPS && s->changed; sweep++) {
		s->changed = false;
		for (s->field = 0; ok && s->field < TEMPLATE_SCHEDULE_FIELDS && !time_is_up(s); s->field++)
			ok = run_round(s, err);
	}
	s->progress.cut = time_is_up(s);
	ok = ok && finish(s, err);
	s->progress.kernels = (unsigned)s->n;
	s->progress.seconds = system_seconds() - start;
	free(s->kernel);
	s->kernel = NULL;
	if (ok && s->opt->progress)
		s->opt->progress(s->opt->user, &s->progress);
	return ok;
}

bool search_schedules(jit_session *session, struct tune *results, const struct search_options *o, struct error *err)
{
	struct search s = { .session = session, .results = results, .opt = o };
	double end = o->seconds > 0 ? system_seconds() + o->seconds : 0;
	unsigned shares = 0;
	bool ok = true;

	for (unsigned k = 0; k < KINDS; k++)
		shares += kinds[k].share;
	for (unsigned k = 0; ok && k < KINDS; k++) {
		double now = system_seconds();
		s.deadline = end > 0 ? now + (end > now ? (end - now) * kinds[k].share / shares : 0) : 0;
		shares -= kinds[k].share;
		ok = search_kind(&s, k, err);
	}
	return ok;
}
