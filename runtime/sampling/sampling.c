#include "runtime/sampling/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "runtime/sampling/greatest.h"

enum { DEFAULT_WINDOW = 64 };

struct sampling_candidate {
	float logit;
	int32_t id;
};

bool sampling_open(struct sampling *s, int32_t vocab)
{
	s->vocab = vocab;
	s->work = malloc((size_t)vocab * sizeof *s->work);
	s->candidate = malloc((size_t)vocab * sizeof *s->candidate);
	s->weight = malloc((size_t)vocab * sizeof *s->weight);
	return candidates_open(&s->first, vocab) && s->work && s->candidate && s->weight;
}

void sampling_close(struct sampling *s)
{
	free(s->work);
	free(s->candidate);
	free(s->weight);
	candidates_close(&s->first);
	chain_close(s->chain);
	free(s->after);
}

/* ---- random numbers */

static double random_unit(uint64_t seed, uint64_t position)
{
	uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15ull; /* splitmix64 (Steele, Lea, Flood 2014) */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-53;
}

/* ---- with a chain */

bool sampling_use(struct sampling *s, const struct chain_options *o, size_t context, struct chain_pieces pieces,
                  struct error *err)
{
	struct chain *chain = o ? chain_open(o, s->vocab, context, pieces, err) : NULL;
	struct chain_state *after = NULL;

	if (o && !chain)
		return false;
	if (chain && chain_has_state(chain)) {
		after = malloc((context + 2) * sizeof *after);
		if (!after) {
			chain_close(chain);
			return error_set(err, ERROR_MEMORY, "no memory for the samplers' state at %zu positions",
			                 context);
		}
		after[0] = chain_begin(chain);
	}
	chain_close(s->chain);
	free(s->after);
	s->chain = chain;
	s->after = after;
	s->known = 0;
	s->left.n = 0;
	return true;
}

void sampling_rewind(struct sampling *s, size_t n)
{
	if (s->known > n)
		s->known = n;
	s->left.n = 0;
}

void sampling_shift(struct sampling *s, size_t before, size_t n)
{
	if (s->after && s->known >= before)
		s->after[n] = s->after[before];
	s->known = s->known >= before ? n : s->known < n ? s->known : n;
	s->gone += before - n;
	s->left.n = 0;
}

/* The state before the draw at a position as far as states are known. */
static struct chain_state state_before(const struct sampling *s, const int32_t *history, size_t position)
{
	struct chain_state state = s->after[position];

	if (position)
		chain_accept(s->chain, &state, history[position - 1]);
	return state;
}

/* The token of a choice without a draw. */
static int32_t take(struct sampling *s, int32_t id)
{
	s->left = (struct sampling_left){ .n = 1, .only = id };
	return id;
}

static int32_t drawn_by_chain(struct sampling *s, int32_t id)
{
	if (chain_is_greedy(s->chain))
		return take(s, id);
	s->left = (struct sampling_left){ .n = chain_list(s->chain)->n, .only = -1 };
	return id;
}

static int32_t choose_by_chain(struct sampling *s, const float *logits, const int32_t *history, size_t position)
{
	static const uint64_t other_numbers = 0x9b05688c2b3e6c1full; /* XTC's are not the draw's */
	const struct chain_draws u = { random_unit(s->params.seed ^ other_numbers, s->gone + position),
		                       random_unit(s->params.seed, s->gone + position) };
	struct chain_state state = { 0 };

	if (!s->after)
		return drawn_by_chain(s, chain_choose(s->chain, logits, history, position, u, &state));
	for (; s->known < position; s->known++) /* tokens that were fed: nothing was drawn */
		s->after[s->known + 1] = state_before(s, history, s->known);
	state = state_before(s, history, position);
	int32_t id = chain_choose(s->chain, logits, history, position, u, &state);
	s->after[position + 1] = state;
	s->known = position + 1;
	return drawn_by_chain(s, id);
}

/* ---- without */

static const float *penalise(struct sampling *s, const float *logits, const int32_t *history, size_t n)
{
	float p = s->params.repeat_penalty;
	size_t window = s->params.repeat_window > 0 ? (size_t)s->params.repeat_window : DEFAULT_WINDOW;

	if (p == 1 || !(p > 0) || n == 0)
		return logits;
	memcpy(s->work, logits, (size_t)s->vocab * sizeof *logits);
	for (size_t i = n > window ? n - window : 0; i < n; i++) {
		int32_t id = history[i]; /* from the untouched logits: a token seen twice is not penalised twice */
		s->work[id] = logits[id] > 0 ? logits[id] / p : logits[id] * p;
	}
	return s->work;
}

/* A total order: larger logit first, then lower id, so that ties never depend on the sort. */
static bool before(struct sampling_candidate a, struct sampling_candidate b)
{
	return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

static void sift(struct sampling_candidate *h, int32_t at, int32_t n)
{
	struct sampling_candidate c = h[at];
	for (;;) {
		int32_t kid = 2 * at + 1;
		if (kid >= n)
			break;
		if (kid + 1 < n && before(h[kid + 1], h[kid]))
			kid++;
		if (!before(h[kid], c))
			break;
		h[at] = h[kid];
		at = kid;
	}
	h[at] = c;
}

/* Takes candidates from the heap, best first, into the array's end (heap sort), until the filters are satisfied.
 * Returns how many; they then lie at h[n-1], h[n-2], ... */
static int32_t take_best(const jit_sampling *p, struct sampling_candidate *h, int32_t n, double total, float top)
{
	int32_t taken = 0, left = n;
	double sum = 0, want = p->top_p > 0 && p->top_p < 1 ? p->top_p * total : INFINITY;
	double floor = p->min_p > 0 ? top + math_host_log(p->min_p) : -INFINITY;

	while (left > 0) {
		struct sampling_candidate best = h[0];
		if (taken && (best.logit < floor || sum >= want || (p->top_k > 0 && taken >= p->top_k)))
			break;
		sum += math_host_exp((double)best.logit - top);
		h[0] = h[--left];
		sift(h, 0, left);
		h[left] = best;
		taken++;
	}
	return taken;
}

/* The mass of all candidates, as top-p needs it: of the top-k when both are set. A float exp is enough for a threshold,
 * but must be the same everywhere. */
static double total_mass(struct sampling *s, int32_t n, float top)
{
	double sum = 0;
	size_t near = 0;

	for (int32_t i = 0; i < n; i++) {
		float x = s->candidate[i].logit - top;
		if (x > -30)
			s->weight[near++] = (double)x;
	}
	math_host_exps(s->weight, near);
	for (size_t i = 0; i < near; i++)
		sum += s->weight[i];
	return sum;
}

static int32_t count_from(const float *x, int32_t n, float min)
{
	int32_t count = 0;

	for (int32_t i = 0; i < n; i++)
		count += x[i] >= min;
	return count;
}

/* The k first of all, best first, which is a heap. */
static void fill_first(struct sampling *s, const float *logits, int32_t k)
{
	candidates_load_first(&s->first, logits, s->vocab, k);
	for (int32_t i = 0; i < k; i++)
		s->candidate[i] = (struct sampling_candidate){ s->first.logit[i], s->first.id[i] };
}

/* All from `min` on, as a heap. */
static void fill_from(struct sampling *s, const float *logits, float min)
{
	struct sampling_candidate *h = s->candidate;
	int32_t n = 0;

	for (int32_t i = 0; i < s->vocab; i++)
		if (logits[i] >= min)
			h[n++] = (struct sampling_candidate){ logits[i], i };
	for (int32_t i = n / 2; i-- > 0;)
		sift(h, i, n);
}

/* One of h[n - 1], h[n - 2], ..., so many of them. */
static int32_t draw(struct sampling *s, int32_t n, int32_t taken, float top, double u)
{
	const struct sampling_candidate *h = s->candidate;
	double sum = 0;

	for (int32_t i = 0; i < taken; i++)
		s->weight[i] = ((double)h[n - 1 - i].logit - top) / s->params.temperature;
	math_host_exps(s->weight, (size_t)taken);
	for (int32_t i = 0; i < taken; i++)
		sum += s->weight[i];
	s->left = (struct sampling_left){ .n = taken, .of = n, .only = -1, .mass = sum };
	double at = u * sum;
	sum = 0;
	for (int32_t i = 0; i < taken; i++) {
		sum += s->weight[i];
		if (at < sum)
			return h[n - 1 - i].id;
	}
	return h[n - taken].id;
}

bool sampling_any_left(struct sampling *s, const float *logits)
{
	bool any = false;

	if (s->chain)
		logits = chain_forbid(s->chain, memcpy(s->work, logits, (size_t)s->vocab * sizeof *logits));
	for (int32_t i = 0; i < s->vocab && !any; i++)
		any = logits[i] > -INFINITY;
	return any;
}

int32_t sampling_choose_knowing(struct sampling *s, const float *logits, const float *greatest, const int32_t *history,
                                size_t position)
{
	const jit_sampling *p = &s->params;
	const float *given = logits;

	if (s->chain)
		return choose_by_chain(s, logits, history, position);
	logits = penalise(s, logits, history, position);
	int32_t best = greatest && logits == given ? greatest_of_blocks(logits, greatest, s->vocab)
	                                           : greatest_first(logits, s->vocab);
	if (!(p->temperature > 0) || p->top_k == 1)
		return take(s, best);
	/* what lies this far below the best has no chance that a double could show, whatever the filters; without a
	 * filter the temperature widens it */
	float top = logits[best], min = top - 40.0f * (p->temperature > 1 ? p->temperature : 1);
	int32_t n = count_from(logits, s->vocab, min);
	if (n == 0)
		return take(s, best);
	if (p->top_k > 0 && p->top_k < n)
		fill_first(s, logits, n = p->top_k); /* top-p counts the mass of the top-k only */
	else
		fill_from(s, logits, min);
	double total = p->top_p > 0 && p->top_p < 1 ? total_mass(s, n, top) : 0;
	bool filtered = total > 0 || p->top_k > 0 || p->min_p > 0;
	int32_t taken = filtered ? take_best(p, s->candidate, n, total, top) : n;
	return draw(s, n, taken, top, random_unit(p->seed, s->gone + position));
}

void sampling_took(struct sampling *s, int32_t id) { take(s, id); }

int32_t sampling_left(struct sampling *s)
{
	struct sampling_left *l = &s->left;

	for (int32_t i = 0, n = s->chain && l->only < 0 && l->mass == 0 ? l->n : 0; i < n; i++)
		l->mass += (double)chain_list(s->chain)->p[i];
	return l->n;
}

int32_t sampling_left_at(const struct sampling *s, int32_t i, double *probability)
{
	const struct sampling_left *l = &s->left;

	if (l->only >= 0) {
		*probability = 1;
		return l->only;
	}
	*probability = (s->chain ? (double)chain_list(s->chain)->p[i] : s->weight[i]) / l->mass;
	return s->chain ? chain_list(s->chain)->id[i] : s->candidate[l->of - 1 - i].id;
}
