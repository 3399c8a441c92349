/* tests/runtime/t_penalties.c - penalties, DRY and logit biases against their rules written once more, plainly: DRY by
 * comparing every two places of the text, its breakers in the whole text's bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/dry.h"
#include "runtime/sampling/penalties.h"
#include "tests/runtime/plain_list.h"

static int32_t tally[MAX], text[600];

static void make_text(size_t n, uint32_t tokens)
{
	for (size_t i = 0; i < n; i++)
		text[i] = i > 8 && draw(3) ? text[i - 1 - draw(8)] : (int32_t)draw(tokens);
}

static void assert_tally(void)
{
	for (int32_t i = 0; i < MAX; i++)
		assert_int_equal(tally[i], 0);
}

static void test_penalties(void **state)
{
	(void)state;
	for (int run = 0; run < runs(); run++) {
		const struct penalties p = { (float)(0.5 + unit()), draw(2) ? (float)unit() - 0.5f : 0,
			                     draw(2) ? (float)unit() : 0, (int32_t)draw(100) - 1 };
		size_t n = draw(200), window = p.window <= 0 ? 0 : (size_t)p.window;
		bool all = draw(2);
		make(all ? MAX : random_length(), (int)draw(KINDS), !all);
		make_text(n, all ? MAX : 300);
		for (int32_t i = 0; i < want.n; i++) {
			int count = 0;
			for (size_t t = n > window ? n - window : 0; t < n; t++)
				count += text[t] == want.e[i].id;
			double *l = &want.e[i].logit;
			if (count && (p.repeat != 1 || p.frequency != 0 || p.presence != 0))
				*l = (*l > 0 ? *l / (double)p.repeat : *l * (double)p.repeat) -
				     count * (double)p.frequency - (double)p.presence;
		}
		penalties_apply(&list, &p, text, n, tally);
		same("penalties", run);
		if (run % 50 == 0)
			assert_tally();
	}
}

/* ---- DRY */

static const char *const words[] = { "a",  "b",   " c",  "\n", ".\n",   "\n\n", "ab", ":",
	                             "d:", "x\"", "\"y", "",   "said ", "e",    "f",  "aid" };
enum { WORDS = sizeof words / sizeof *words };

static const char *spell(void *user, int32_t id, size_t *n)
{
	(void)user;
	*n = strlen(words[id % WORDS]);
	return words[id % WORDS];
}

/* Tokens behind the breaker that begins last of those that fit: by the whole text, and the token of each byte. */
static int32_t plain_behind(const struct dry *d, const int32_t *w, int32_t n)
{
	static char all[600 * 8];
	static int32_t token[600 * 8];
	int32_t bytes = 0, best = n, at_token = -1;

	for (int32_t i = 0; i < n; i++)
		for (const char *p = words[w[i] % WORDS]; *p; p++) {
			token[bytes] = i;
			all[bytes++] = *p;
		}
	for (int32_t at = 0; at < bytes; at++)
		for (uint32_t b = 0; b < d->n_breakers; b++) {
			int32_t size = (int32_t)d->breaker[b].n;
			if (at + size > bytes || memcmp(all + at, d->breaker[b].bytes, (size_t)size) != 0)
				continue;
			int32_t behind = n - 1 - token[at + size - 1];
			if (token[at] > at_token || behind < best)
				best = behind;
			at_token = token[at];
		}
	return best;
}

static bool plain_is_breaker(const struct dry *d, int32_t id)
{
	for (uint32_t b = 0; b < d->n_breakers; b++)
		if (memmem(words[id % WORDS], strlen(words[id % WORDS]), d->breaker[b].bytes, d->breaker[b].n))
			return true;
	return false;
}

static void plain_dry(const struct dry *d, const int32_t *w, int32_t n)
{
	static int32_t longest[MAX];

	for (int32_t i = 0; i < MAX; i++)
		longest[i] = -1;
	if (n > d->window) {
		w += n - d->window;
		n = d->window;
	}
	int32_t limit = plain_behind(d, w, n);
	if (n <= d->allowed || limit < d->allowed)
		return;
	for (int32_t e = 0; e < n - 1; e++) {
		int32_t m = 0;
		while (m <= e && m < limit && w[e - m] == w[n - 1 - m])
			m++;
		if (m >= d->allowed && m > longest[w[e + 1]])
			longest[w[e + 1]] = m;
	}
	for (int32_t i = 0; i < want.n; i++) {
		int32_t m = longest[want.e[i].id];
		if (m >= 0 && !plain_is_breaker(d, want.e[i].id))
			want.e[i].logit -= (double)(float)((double)d->multiplier *
			                                   fmin(pow((double)d->base, m - d->allowed), 3e38));
	}
}

static void test_dry(void **state)
{
	static const char *const breakers[] = { "\n", ":", "\"", "said", "b\n", "a:\n", "\n\n\n" };
	static int32_t same_room[600];
	static struct dry_breaker breaker[3];
	(void)state;

	for (int run = 0; run < runs(); run++) {
		struct dry d = { .multiplier = (float)unit() + 0.1f,
			         .base = 1 + (float)unit(),
			         .allowed = (int32_t)draw(5),
			         .window = 1 + (int32_t)draw(300),
			         .breaker = breaker,
			         .n_breakers = draw(4),
			         .piece = spell,
			         .same = same_room };
		int32_t n = (int32_t)draw(draw(2) ? 40 : 300);
		for (uint32_t b = 0; b < d.n_breakers; b++) {
			const char *t = breakers[draw(sizeof breakers / sizeof *breakers)];
			breaker[b].n = (uint32_t)strlen(t);
			memcpy(breaker[b].bytes, t, breaker[b].n);
		}
		bool all = draw(2);
		make(all ? 64 : random_length(), (int)draw(3), !all);
		make_text((size_t)n, draw(2) ? 40 : 3);
		plain_dry(&d, text, n);
		dry_apply(&list, &d, text, (size_t)n, tally);
		same("dry", run);
		if (run % 50 == 0)
			assert_tally();
	}
}

static void test_bias(void **state)
{
	static const jit_logit_bias bias[] = { { 3, 5 }, { 7, -INFINITY }, { 3, 1 }, { MAX, 1 }, { -1, 2 }, { 9, -2 } };
	(void)state;
	for (int run = 0; run < 100; run++) {
		make(run % 2 ? MAX : 40, 0, run % 2 == 0);
		for (int32_t i = 0; i < want.n; i++)
			for (size_t b = 0; b < sizeof bias / sizeof *bias; b++)
				want.e[i].logit += want.e[i].id == bias[b].id ? (double)bias[b].bias : 0;
		penalties_bias(&list, bias, sizeof bias / sizeof *bias);
		same("bias", run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_penalties), cmocka_unit_test(test_dry),
		                            cmocka_unit_test(test_bias) };
	return cmocka_run_group_tests(tests, open_list, close_list);
}
