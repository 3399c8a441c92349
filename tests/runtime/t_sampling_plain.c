/* tests/runtime/t_sampling_plain.c - tokens chosen without a chain of samplers, with top-k: exactly those that plain
 * loops over a sorted list choose, so that a seed goes on giving the text that it gave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/math_host.h"
#include "runtime/sampling/sampling.h"
#include "tests/support/shared.h"

enum { VOCAB = 900 };
struct entry {
	float logit;
	int32_t id;
};

static uint64_t dice = 1;
static double unit(void)
{
	dice = dice * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(dice >> 40) * 0x1p-24;
}

/* The number drawn at a position: splitmix64. */
static double number_at(uint64_t seed, uint64_t position)
{
	uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int by_logit(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	return a->logit != b->logit ? (a->logit > b->logit ? -1 : 1) : a->id < b->id ? -1 : 1;
}

static double weight(struct entry e, float top, double temperature)
{
	return math_host_exp(((double)e.logit - top) / temperature);
}

/* Top-k, then top-p by the mass of those, then min-p, then a draw. */
static int32_t plain_choice(const jit_sampling *p, const struct entry *sorted, int32_t k, size_t position)
{
	float top = sorted[0].logit;
	double all = 0, mass = 0, sum = 0, floor = p->min_p > 0 ? top + math_host_log(p->min_p) : -INFINITY;
	int32_t n = 0;

	for (int32_t i = 0; i < k; i++)
		all += sorted[i].logit - top > -30 ? math_host_exp(sorted[i].logit - top) : 0;
	while (n < k &&
	       (n == 0 || (sorted[n].logit >= floor && !(p->top_p > 0 && p->top_p < 1 && mass >= p->top_p * all))))
		mass += math_host_exp((double)sorted[n++].logit - top);
	for (int32_t i = 0; i < n; i++)
		sum += weight(sorted[i], top, p->temperature);
	double at = number_at(p->seed, position) * sum;
	sum = 0;
	for (int32_t i = 0; i < n; i++) {
		sum += weight(sorted[i], top, p->temperature);
		if (at < sum)
			return sorted[i].id;
	}
	return sorted[n - 1].id;
}

/* The kinds of logits: even, with many ties, spread wide, all equal. */
static void make_logits(int kind, float *logits, struct entry *sorted)
{
	for (int32_t i = 0; i < VOCAB; i++) {
		double x = sqrt(-2 * log(unit() + 1e-9)) * cos(6.283185307179586 * unit());
		logits[i] = kind == 0   ? (float)(3 * x)
		            : kind == 1 ? (float)(int)(2 * x)
		            : kind == 2 ? (float)(9 * x)
		                        : 1.5f;
		sorted[i] = (struct entry){ logits[i], i };
	}
	qsort(sorted, VOCAB, sizeof *sorted, by_logit);
}

static void test_top_k(void **state)
{
	static float logits[VOCAB];
	static struct entry sorted[VOCAB];
	static const int32_t history[4];
	struct sampling s = { 0 };
	int compared = 0;
	(void)state;

	assert_true(sampling_open(&s, VOCAB));
	for (int run = 0; run < (test_quick() ? 300 : 4000); run++) {
		int32_t k = 2 + (int32_t)(unit() * (unit() < 0.5 ? 50 : VOCAB - 10)), near = 0;
		float t = (float)(0.1 + 2 * unit());
		make_logits(run % 4, logits, sorted);
		s.params = (jit_sampling){ .temperature = t,
			                   .top_k = k,
			                   .top_p = unit() < 0.5 ? (float)unit() : 0,
			                   .min_p = unit() < 0.5 ? (float)(unit() * unit()) : 0,
			                   .seed = (uint64_t)run };
		while (near < VOCAB && sorted[near].logit >= sorted[0].logit - 40.0f * (t > 1 ? t : 1))
			near++;
		if (k >= near) /* then all are, in another order */
			continue;
		for (size_t position = 0; position < 4; position++) {
			int32_t want = plain_choice(&s.params, sorted, k, position);
			assert_int_equal(sampling_choose(&s, logits, history, position), want);
		}
		compared++;
	}
	assert_true(compared > 100);
	sampling_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_top_k) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
