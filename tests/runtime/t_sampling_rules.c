/* tests/runtime/t_sampling_rules.c - each sampler against its rule written once more, plainly: qsort, doubles and libm,
 * on random lists of every kind, long and short, in any order. Where a threshold lies so near to a sum that rounding
 * decides, the case is drawn anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/draws.h"
#include "runtime/sampling/filters.h"
#include "tests/runtime/plain_list.h"

/* ---- filters */

static void test_first(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		int32_t n = random_length(), k = draw(3) ? 1 + (int32_t)draw((uint32_t)n + 3) : 1 + (int32_t)draw(50);
		make(n, (int)draw(KINDS), draw(2));
		filter_top_k(&list, k);
		sort_plain(&want, by_logit);
		want.n = k < n ? k : n;
		same("top-k", run);
		for (int32_t i = 0; i < list.room; i++) /* and a list loaded anew has every token at its place */
			list.logit[i] = 0;
		static float none[MAX];
		candidates_load(&list, none, MAX);
		for (int32_t i = 0; i < MAX; i++)
			assert_int_equal(list.id[i], i);
	}
}

/* The shortest head with that mass. False: rounding decides. */
static bool cut_mass(double mass, bool above, int32_t min)
{
	double sum = 0;
	int32_t n = 0;

	while (n < want.n) {
		sum += want.e[n++].p;
		if (fabs(sum - mass) < 1e-5)
			return false;
		if (n >= min && (above ? sum > mass : sum >= mass))
			break;
	}
	want.n = n;
	return true;
}

static void test_top_p(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		float p = draw(3) ? (float)unit() : 0.9f + 0.1f * (float)unit();
		int32_t min = draw(2) ? 0 : (int32_t)draw(30);
		make(random_length(), (int)draw(KINDS), draw(2));
		softmax_plain(&want);
		sort_plain(&want, by_logit);
		if (!cut_mass((double)p, false, min))
			continue;
		filter_top_p(&list, p, min);
		same("top-p", run);
	}
}

static void test_min_p(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		float p = (float)pow(unit(), 3);
		int32_t min = draw(2) ? 0 : (int32_t)draw(30), kept = 0;
		bool shuffled = draw(2);
		make(random_length(), (int)draw(3), shuffled);
		double max = -INFINITY;
		for (int32_t i = 0; i < want.n; i++)
			max = fmax(max, want.e[i].logit);
		bool edge = false;
		for (int32_t i = 0; i < want.n; i++) {
			edge |= fabs(want.e[i].logit - max - log((double)p)) < 1e-5;
			kept += want.e[i].logit >= max + log((double)p);
		}
		if (edge || !(p > 0))
			continue;
		filter_min_p(&list, p, min);
		candidates_sort(&list);
		sort_plain(&want, by_logit);
		want.n = kept > min ? kept : min < want.n ? min : want.n;
		same("min-p", run);
	}
}

/* Scores that differ by rounding alone would order either way; such lists are drawn anew. */
static bool scores_apart(void)
{
	for (int32_t i = 1; i < want.n; i++) {
		double gap = want.e[i].score - want.e[i - 1].score;
		if (gap != 0 && gap < 1e-4 && want.e[i].logit != want.e[i - 1].logit)
			return false;
	}
	return true;
}

static void test_typical(void **state)
{
	int compared = 0;
	(void)state;

	for (int run = 0; run < runs(); run++) {
		float p = (float)unit();
		int32_t min = draw(2) ? 0 : (int32_t)draw(20);
		double h = 0;
		make(1 + (int32_t)draw(draw(4) ? 40 : 1500), (int)draw(5), draw(2));
		softmax_plain(&want);
		for (int32_t i = 0; i < want.n; i++)
			h -= want.e[i].p > 0 ? want.e[i].p * log(want.e[i].p) : 0;
		for (int32_t i = 0; i < want.n; i++)
			want.e[i].score = want.e[i].p > 0 ? fabs(-log(want.e[i].p) - h) : INFINITY;
		for (int32_t i = 0; i < want.n; i++) /* equal logits have equal scores, however libm rounds */
			for (int32_t j = 0; j < i; j++)
				if (want.e[i].logit == want.e[j].logit)
					want.e[i].score = want.e[j].score;
		sort_plain(&want, by_score);
		if (!scores_apart() || !cut_mass((double)p, true, min))
			continue;
		filter_typical(&list, p, min);
		same("typical", run);
		compared++;
	}
	assert_true(compared > runs() / 4);
}

static void test_top_n_sigma(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		double n = 3 * unit() + 0.01, mean = 0, variance = 0, max = -INFINITY, count = 0;
		bool edge = false;
		make(random_length(), (int)draw(KINDS), draw(2));
		for (int32_t i = 0; i < want.n; i++)
			if (isfinite(want.e[i].logit)) {
				mean += want.e[i].logit;
				max = fmax(max, want.e[i].logit);
				count++;
			}
		mean /= count;
		for (int32_t i = 0; i < want.n; i++)
			variance += isfinite(want.e[i].logit)
			                    ? (want.e[i].logit - mean) * (want.e[i].logit - mean) / count
			                    : 0;
		double min = max - (double)(float)n * sqrt(variance);
		for (int32_t i = 0; want.n > 1 && i < want.n; i++) {
			edge |= fabs(want.e[i].logit - min) < 1e-4 * (1 + fabs(min)) && sqrt(variance) > 0;
			if (want.e[i].logit < min)
				want.e[i].logit = -INFINITY;
		}
		filter_top_n_sigma(&list, (float)n);
		if (!edge)
			same("top-n-sigma", run);
	}
}

static void test_xtc(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		float threshold = (float)(0.55 * pow(unit(), 2)), probability = (float)unit();
		double u = unit();
		int32_t min = draw(2) ? 0 : (int32_t)draw(20), likely = 0;
		bool edge = false;
		make(random_length(), (int)draw(KINDS), draw(2));
		filter_xtc(&list, probability, threshold, min, u);
		bool fires = probability > 0 && threshold <= 0.5f && want.n >= 2 && u <= (double)probability;
		if (fires) {
			softmax_plain(&want);
			sort_plain(&want, by_logit);
			for (int32_t i = 0; i < want.n; i++)
				edge |= fabs(want.e[i].p - (double)threshold) < 1e-7;
			while (likely < want.n && want.e[likely].p >= (double)threshold)
				likely++;
			if (likely > 1 && want.n - likely + 1 >= min) {
				memmove(want.e, want.e + likely - 1, (size_t)(want.n - likely + 1) * sizeof *want.e);
				want.n -= likely - 1;
			}
		}
		if (!edge)
			same("xtc", run);
	}
}

static void test_temperature(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		float t = (float)(2 * unit()), range = draw(2) ? 0 : (float)unit(),
		      exponent = draw(2) ? 1 : (float)(2 * unit());
		double now = (double)t, h = 0;
		make(2 + (int32_t)draw(200), (int)draw(3), draw(2));
		if (range > 0) {
			softmax_plain(&want);
			sort_plain(&want, by_logit);
			for (int32_t i = 0; i < want.n; i++)
				h -= want.e[i].p > 0 ? want.e[i].p * log(want.e[i].p) : 0;
			double low = fmax(0, (double)(t - range));
			now = low + ((double)(t + range) - low) * pow(h / log(want.n), (double)exponent);
		}
		if (now < 0.05)
			continue;
		for (int32_t i = 0; i < want.n; i++)
			want.e[i].logit /= now;
		if (range > 0)
			softmax_plain(&want);
		temperature_dynamic(&list, t, range, exponent);
		for (int32_t i = 0; i < want.n; i++) /* temperature and logits are floats, which p's error grows with */
			if (list.has_p &&
			    fabs((double)list.p[i] - want.e[i].p) < want.e[i].p * (1 - log(want.e[i].p)) * 2e-6)
				want.e[i].p = (double)list.p[i];
		same("temperature", run);
	}
	make(50, 2, false);
	temperature_scale(&list, 0);
	int32_t first = -1;
	for (int32_t i = 0; i < want.n; i++)
		if (first < 0 || want.e[i].logit > want.e[first].logit)
			first = i;
	for (int32_t i = 0; i < want.n; i++)
		want.e[i].logit = i == first ? want.e[i].logit : -INFINITY;
	same("temperature 0", 0);
}

/* ---- draws */

/* The chosen place for every u of a fine comb: as many as the probabilities say; and never one of probability 0. */
static void test_draw(void **state)
{
	enum { COMB = 2000 };
	static int count[MAX];
	(void)state;

	for (int run = 0; run < runs() / 20; run++) {
		int kind = (int)draw(KINDS);
		int32_t n = 1 + (int32_t)draw(60);
		double sum = 0;
		memset(count, 0, sizeof count);
		for (int i = 0; i <= COMB; i++) {
			uint64_t before = seed;
			seed = (uint64_t)run * 77 + 5;
			make(n, kind, false);
			seed = before;
			int32_t chosen = draw_token(&list, i < COMB ? i / (double)COMB : 1 - 0x1p-53);
			assert_true(chosen >= 0 && chosen < n && list.p[chosen] > 0);
			count[chosen]++;
		}
		softmax_plain(&want);
		for (int32_t i = 0; i < n; i++) {
			if (fabs(count[i] - COMB * want.e[i].p) > 2.01 || fabs((double)list.p[i] - want.e[i].p) > 1e-6)
				fail_msg("run %d: token %d of probability %g was chosen %d times of %d", run, i,
				         want.e[i].p, count[i], COMB);
			sum += (double)list.p[i];
		}
		assert_true(fabs(sum - 1) < 1e-6);
	}
}

/* Mirostat 2: those of a surprise up to mu stay, and mu follows what was drawn. */
static void test_mirostat(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		const struct mirostat m = { (float)(5 * unit()), (float)unit() };
		float mu = draw(2) ? mirostat_begin(&m) : (float)(12 * unit() - 1), before = mu;
		bool edge = false;
		make(random_length(), (int)draw(6), draw(2));
		softmax_plain(&want);
		sort_plain(&want, by_logit);
		int32_t kept = 0;
		for (int32_t i = 0; i < want.n; i++) {
			edge |= fabs(-log2(want.e[i].p) - (double)mu) < 1e-5;
			kept += -log2(want.e[i].p) <= (double)mu;
		}
		if (edge)
			continue;
		want.n = kept ? kept : 1;
		softmax_plain(&want);
		int32_t chosen = draw_mirostat_v2(&list, &m, unit(), &mu);
		same("mirostat 2", run);
		double expected = (double)before - (double)m.eta * (-log2(want.e[chosen].p) - (double)m.tau);
		if (fabs((double)mu - expected) > 1e-5 * (1 + fabs(expected)))
			fail_msg("run %d: mu is %g, not %g", run, (double)mu, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),       cmocka_unit_test(test_top_p),       cmocka_unit_test(test_min_p),
		cmocka_unit_test(test_typical),     cmocka_unit_test(test_top_n_sigma), cmocka_unit_test(test_xtc),
		cmocka_unit_test(test_temperature), cmocka_unit_test(test_draw),        cmocka_unit_test(test_mirostat)
	};
	return cmocka_run_group_tests(tests, open_list, close_list);
}
