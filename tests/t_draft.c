/* tests/t_draft.c - the drafter against a search that looks at every earlier place, while the text grows, shrinks and grows otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/draft.h"
#include "tests/shared.h"

enum { CAPACITY = 3000 };

static uint64_t seed = 1;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static uint32_t agree(const int32_t *ids, uint32_t a, uint32_t b)
{
	uint32_t n = 0;
	while (n < DRAFT_REACH && n <= a && ids[a - n] == ids[b - n])
		n++;
	return n;
}

/* Of the latest DRAFT_PLACES places that agree in DRAFT_LONGEST tokens, the one that agrees in most, the latest of equals; else the latest
 * place that agrees in fewer, as many as possible. */
static struct draft_match search(const int32_t *ids, uint32_t n)
{
	struct draft_match best = { 0 };
	uint32_t places = 0;

	for (uint32_t run = DRAFT_LONGEST; run >= DRAFT_SHORTEST && !best.length; run--)
		for (uint32_t at = n; at-- > 1 && places < DRAFT_PLACES;) {
			uint32_t k = agree(ids, at - 1, n - 1);
			if (k < run)
				continue;
			places++;
			if (k > best.length)
				best = (struct draft_match){ k, at };
		}
	return best;
}

static unsigned found[DRAFT_REACH + 1];

static void compare(const struct draft *d, const int32_t *ids, uint32_t n)
{
	int32_t guess[16];
	struct draft_match got = draft_find(d), want = n ? search(ids, n) : (struct draft_match){ 0 };

	assert_int_equal(got.length, want.length);
	assert_int_equal(got.next, want.next);
	found[got.length]++;
	if (!got.length)
		return;
	draft_copy(d, got, guess, 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(guess[i], want.next + i < n ? ids[want.next + i] : guess[i - (n - want.next)]);
}

static void grow(int32_t *ids, uint32_t from, uint32_t to, uint32_t vocab)
{
	for (uint32_t i = from; i < to;) {
		uint32_t copy = i > 10 && draw(4) == 0 ? draw(50) : 0, source = copy ? draw(i) : 0;
		if (!copy)
			ids[i++] = (int32_t)draw(vocab);
		for (; copy > 0 && i < to; copy--)
			ids[i++] = ids[source++];
	}
}

static void test_against_search(void **state)
{
	static int32_t ids[CAPACITY];
	(void)state;
	for (uint32_t vocab = 1; vocab <= 100000; vocab *= 10) {
		struct draft d;
		uint32_t n = 0, turns = test_quick() ? 20 : 80;
		assert_true(draft_open(&d, ids, CAPACITY));
		compare(&d, ids, 0);
		for (uint32_t turn = 0; turn < turns; turn++) {
			uint32_t back = draw(8) == 0 ? draw(n + 1) : draw(n < 5 ? n + 1 : 5), to = n - back + draw(60);
			draft_rewind(&d, n -= back);
			if (to > CAPACITY)
				to = CAPACITY;
			grow(ids, n, to, vocab);
			for (; n < to; n++) {
				compare(&d, ids, n);
				draft_extend(&d, n + 1);
			}
			compare(&d, ids, n);
		}
		draft_close(&d);
	}
	for (uint32_t i = 0; i <= DRAFT_REACH; i++)
		if (i != 1)
			assert_true(found[i] > 0);       /* every length was met */
	assert_int_equal(found[1], 0);
}

/* After growing and shrinking, the index is what it was: to the last slot. */
static void test_rewind_leaves_nothing(void **state)
{
	static int32_t ids[CAPACITY];
	struct draft d;
	(void)state;
	grow(ids, 0, CAPACITY, 30);
	assert_true(draft_open(&d, ids, CAPACITY));
	draft_extend(&d, 700);
	size_t slots = (size_t)d.mask + 1;
	uint32_t *before = malloc(slots * sizeof *before);
	assert_non_null(before);
	for (int r = 0; r < DRAFT_RUNS; r++) {
		memcpy(before, d.latest[r], slots * sizeof *before);
		draft_extend(&d, CAPACITY);
		assert_true(memcmp(before, d.latest[r], slots * sizeof *before) != 0);
		draft_rewind(&d, 700);
		assert_memory_equal(before, d.latest[r], slots * sizeof *before);
	}
	draft_rewind(&d, 0);
	for (int r = 0; r < DRAFT_RUNS; r++)
		for (size_t i = 0; i < slots; i++)
			assert_int_equal(d.latest[r][i], 0);
	free(before);
	draft_close(&d);
}

/* Every place near, the nearest and then the later of equals first. */
static struct draft_match search_near(const int32_t *ids, uint32_t n, uint32_t expected)
{
	struct draft_match best = { 0, expected };

	for (int64_t away = 0; away <= DRAFT_NEAR; away++)
		for (int64_t at = (int64_t)expected + away; at >= (int64_t)expected - away; at -= away ? 2 * away : 1) {
			uint32_t k = at > 0 && at < (int64_t)n ? agree(ids, (uint32_t)at - 1, n - 1) : 0;
			if (k > best.length)
				best = (struct draft_match){ k, (uint32_t)at };
		}
	return best;
}

static void test_resume(void **state)
{
	static int32_t ids[CAPACITY];
	unsigned nowhere = 0, elsewhere = 0;
	struct draft d;
	(void)state;

	grow(ids, 0, CAPACITY, 30);
	assert_true(draft_open(&d, ids, CAPACITY));
	for (uint32_t n = 1; n <= CAPACITY; n += 1 + n / 40) {
		draft_extend(&d, n);
		for (uint32_t expected = 0; expected < n; expected += 1 + n / 60) {
			struct draft_match got = draft_resume(&d, expected), want = search_near(ids, n, expected);
			assert_int_equal(got.length, want.length);
			assert_int_equal(got.next, want.next);
			nowhere += !got.length;
			elsewhere += got.next != expected;
		}
	}
	assert_true(nowhere > 0 && elsewhere > 0);
	draft_close(&d);
}

/* A loop goes on as a loop, however few tokens of it there are. */
static void test_loop(void **state)
{
	static const int32_t ids[] = { 9, 1, 2, 3, 1, 2, 3, 1 };
	struct draft d;
	int32_t guess[7];
	static const int32_t want[7] = { 2, 3, 1, 2, 3, 1, 2 };
	(void)state;
	assert_true(draft_open(&d, ids, 8));
	draft_extend(&d, 8);
	struct draft_match m = draft_find(&d);
	assert_int_equal(m.length, 4);
	assert_int_equal(m.next, 5);
	draft_copy(&d, m, guess, 7);
	assert_memory_equal(guess, want, sizeof want);
	draft_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_search), cmocka_unit_test(test_rewind_leaves_nothing), cmocka_unit_test(test_resume), cmocka_unit_test(test_loop) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
