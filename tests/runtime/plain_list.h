/* tests/runtime/plain_list.h - lists of candidates for tests: random ones of every kind, and the same as plain arrays
 * of doubles, which qsort sorts and libm makes probabilities of. Behind cmocka.h.
 */
#ifndef TESTS_PLAIN_LIST_H
#define TESTS_PLAIN_LIST_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sampling/candidates.h"
#include "tests/support/shared.h"

enum { MAX = 4000 };

static uint64_t seed = 1;
static inline uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}
static inline double unit(void) { return draw(1u << 30) / (double)(1u << 30); }

/* ---- plain lists */

struct entry {
	int32_t id;
	double logit, p, score;
};
struct plain {
	struct entry e[MAX];
	int32_t n;
};

static inline int by_logit(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	return a->logit != b->logit ? a->logit > b->logit ? -1 : 1 : a->id < b->id ? -1 : a->id > b->id;
}

static inline int by_score(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	return a->score != b->score ? a->score < b->score ? -1 : 1 : a->id < b->id ? -1 : a->id > b->id;
}

static inline void sort_plain(struct plain *l, int (*order)(const void *, const void *))
{
	qsort(l->e, (size_t)l->n, sizeof *l->e, order);
}

static inline void softmax_plain(struct plain *l)
{
	double max = -INFINITY, sum = 0;

	for (int32_t i = 0; i < l->n; i++)
		max = fmax(max, l->e[i].logit);
	for (int32_t i = 0; i < l->n; i++)
		sum += l->e[i].p = l->e[i].logit == max ? 1 : exp(l->e[i].logit - max);
	for (int32_t i = 0; i < l->n; i++)
		l->e[i].p /= sum;
}

/* The kinds of lists: even, peaked, with many ties, with -inf, all equal, spread wide, all -inf. */
enum { KINDS = 7 };
static inline float random_logit(int kind)
{
	double a = sqrt(-2 * log(unit() + 1e-12)) * cos(6.283185307179586 * unit());

	switch (kind) {
	case 0: return (float)(3 * a);
	case 1: return draw(40) ? (float)a : (float)(8 + a);
	case 2: return (float)(int)(2 * a);
	case 3: return draw(5) < 2 ? -INFINITY : (float)(2 * a);
	case 4: return 1.25f;
	case 5: return (float)(40 * a);
	default: return -INFINITY;
	}
}

static struct candidates list;
static struct plain want;

/* A list of n of the tokens 0 .. MAX-1, the same for both; shuffled: in any order, and not of all tokens. */
static inline void make(int32_t n, int kind, bool shuffled)
{
	static float logits[MAX];

	for (int32_t i = 0; i < n; i++)
		logits[i] = random_logit(kind);
	candidates_load(&list, logits, n);
	for (int32_t i = 0; shuffled && i < n; i++)
		list.id[i] = MAX / n * i + (int32_t)draw((uint32_t)(MAX / n));
	for (int32_t i = n - 1; shuffled && i > 0; i--) {
		int32_t j = (int32_t)draw((uint32_t)i + 1), id = list.id[i];
		list.id[i] = list.id[j];
		list.id[j] = id;
	}
	if (shuffled)
		list.changed = list.room;
	want.n = n;
	for (int32_t i = 0; i < n; i++)
		want.e[i] = (struct entry){ .id = list.id[i], .logit = (double)logits[i] };
}

static inline int32_t random_length(void)
{
	uint32_t size = draw(5);

	return 1 + (int32_t)draw(size == 0 ? 3 : size == 1 ? 20 : size == 2 ? 100 : size == 3 ? 1200 : MAX);
}

static inline void same(const char *what, int run)
{
	if (list.n != want.n)
		fail_msg("%s, run %d: %d stay, not %d", what, run, list.n, want.n);
	for (int32_t i = 0; i < list.n; i++) {
		double p = list.has_p ? (double)list.p[i] : 0;
		if (list.id[i] != want.e[i].id ||
		    !((double)list.logit[i] == want.e[i].logit ||
		      fabs((double)list.logit[i] - want.e[i].logit) <= 1e-6 * fabs(want.e[i].logit) + 1e-6))
			fail_msg("%s, run %d: place %d has token %d of %g, not %d of %g", what, run, i, list.id[i],
			         (double)list.logit[i], want.e[i].id, want.e[i].logit);
		if (fabs(p - want.e[i].p) > 1e-6 * want.e[i].p + 1e-30)
			fail_msg("%s, run %d: place %d has probability %g, not %g", what, run, i, p, want.e[i].p);
	}
}

static inline int runs(void) { return test_quick() ? 300 : 3000; }

static inline int open_list(void **state)
{
	(void)state;
	return candidates_open(&list, MAX) ? 0 : -1;
}

static inline int close_list(void **state)
{
	(void)state;
	candidates_close(&list);
	return 0;
}

#endif
