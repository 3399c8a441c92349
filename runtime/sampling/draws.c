#include "runtime/sampling/draws.h"

#include <math.h>

#include "base/math_host.h"

#define LN2 0.693147180559945309417

int32_t draw_greedy(struct candidates *c) { return candidates_first_max(c); }

/* By the weights in p[], whose sum this is; they become probabilities. */
static int32_t draw(struct candidates *c, double all, double u)
{
	double sum = 0, at = u * all;
	int32_t chosen = 0;
	bool reached = false;

	for (int32_t i = 0; i < c->n; i++) {
		float weight = c->p[i];
		if (weight > 0 && !reached) {
			sum += (double)weight;
			chosen = i;
			reached = sum >= at;
		}
		c->p[i] = (float)((double)weight / all);
	}
	return chosen;
}

int32_t draw_token(struct candidates *c, double u) { return draw(c, candidates_exp(c), u); }

/* ---- mirostat */

float mirostat_begin(const struct mirostat *m) { return 2 * m->tau; }

static int32_t draw_and_learn(struct candidates *c, const struct mirostat *m, double u, float *mu)
{
	int32_t chosen = draw_token(c, u);
	float surprise = (float)(-math_host_log((double)c->p[chosen]) / LN2);

	*mu -= m->eta * (surprise - m->tau);
	return chosen;
}

/* The exponent of Zipf's law that the first `counted` of a sorted list follow best. What has probability 0 follows
 * none. */
static double steepness(const struct candidates *c, int32_t counted)
{
	double products = 0, squares = 0;

	for (int32_t i = 0; i + 1 < counted && i + 1 < c->n && isfinite(c->logit[i + 1]); i++) {
		double t = math_host_log((double)(i + 2) / (i + 1));
		products += t * ((double)c->logit[i] - c->logit[i + 1]);
		squares += t * t;
	}
	return squares > 0 ? products / squares : 0;
}

int32_t draw_mirostat(struct candidates *c, const struct mirostat *m, int32_t counted, int32_t vocab, double u,
                      float *mu)
{
	candidates_sort(c);
	double s = steepness(c, counted), e = s - 1, ln_v = math_host_log(vocab),
	       scale = fabs(e) > 1e-9 ? e / (1 - math_host_exp(-e * ln_v)) : 1 / ln_v;
	double base = vocab > 1 ? scale * math_host_exp((double)*mu * LN2) : 1;
	double k = base > 1 && s > 0 ? math_host_pow(base, 1 / s)
	           : base > 1        ? c->n
	                             : 1; /* where all are as likely: all or one */
	candidates_keep_first(c, k < c->n ? k > 1 ? (int32_t)k : 1 : c->n);
	return draw_and_learn(c, m, u, mu);
}

int32_t draw_mirostat_v2(struct candidates *c, const struct mirostat *m, double u, float *mu)
{
	float max = candidates_max(c);
	double above = math_host_log(candidates_exp(c)) - (double)*mu * LN2, min = (double)max + above;
	float bound = (double)(float)min < min ? nextafterf((float)min, INFINITY) : (float)min;

	if (above > 0) /* even the likeliest is too surprising */
		candidates_keep_first(c, 1);
	else if (isfinite(max))
		candidates_keep_from(c, bound);
	candidates_sort(c);
	return draw_and_learn(c, m, u, mu);
}

/* ---- adaptive-p */

static float clamped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

static float decay_of(const struct adaptive *a) { return clamped(a->decay, 0, 0.99f); }

struct adaptive_state adaptive_begin(const struct adaptive *a)
{
	float d = decay_of(a);

	return (struct adaptive_state){ .sum = a->target / (1 - d), .weight = 1 / (1 - d), .drawn = -1 };
}

int32_t draw_adaptive(struct candidates *c, const struct adaptive *a, double u, struct adaptive_state *s)
{
	float target = a->target < 1 ? a->target : 1;

	if (a->target < 0)
		return draw_token(c, u);
	candidates_softmax(c);
	float wanted = clamped(2 * target - s->sum / s->weight, 0, 1);
	for (int32_t i = 0; i < c->n; i++) {
		float distance = fabsf(c->p[i] - wanted) * (1 / 0.3f),
		      logit = 5 - 10 * distance * distance / (1 + distance);
		c->key[i] = c->p[i];
		if (c->logit[i] != -INFINITY)
			c->logit[i] = logit;
	}
	c->sorted = false;
	int32_t chosen = draw_token(c, u);
	s->drawn = c->id[chosen];
	s->drawn_p = c->key[chosen];
	return chosen;
}

void adaptive_accept(const struct adaptive *a, struct adaptive_state *s, int32_t id)
{
	if (s->drawn >= 0 && s->drawn == id) {
		s->sum = s->drawn_p + decay_of(a) * s->sum;
		s->weight = 1 + decay_of(a) * s->weight;
	}
	s->drawn = -1;
}
