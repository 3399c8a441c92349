/* tests/runtime/t_draft.c - the drafter against a search that looks at every earlier place, while the text grows,
 * shrinks and grows otherwise; and copies with changes against the changes made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/speculate/draft.h"
#include "tests/support/shared.h"

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

/* Of the latest DRAFT_POSITIONS places that agree in DRAFT_LONGEST tokens, the one that agrees in most, the latest of
 * equals; else the latest place that agrees in fewer, as many as possible. */
static struct draft_match search(const int32_t *ids, uint32_t n)
{
	struct draft_match best = { 0 };
	uint32_t positions = 0;

	for (uint32_t run = DRAFT_LONGEST; run >= DRAFT_SHORTEST && !best.length; run--)
		for (uint32_t at = n; at-- > 1 && positions < DRAFT_POSITIONS;) {
			uint32_t k = agree(ids, at - 1, n - 1);
			if (k < run)
				continue;
			positions++;
			if (k > best.length)
				best = (struct draft_match){ .length = k, .next = at };
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
		uint32_t n = 0, rounds = test_quick() ? 20 : 80;
		assert_true(draft_open(&d, ids, CAPACITY));
		compare(&d, ids, 0);
		for (uint32_t round = 0; round < rounds; round++) {
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
			assert_true(found[i] > 0); /* every length was met */
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
	struct draft_match best = { .next = expected };

	for (int64_t away = 0; away <= DRAFT_NEAR; away++)
		for (int64_t at = (int64_t)expected + away; at >= (int64_t)expected - away; at -= away ? 2 * away : 1) {
			uint32_t k = at > 0 && at < (int64_t)n ? agree(ids, (uint32_t)at - 1, n - 1) : 0;
			if (k > best.length)
				best = (struct draft_match){ .length = k, .next = (uint32_t)at };
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

/* ---- changes */

/* The copy of ids[next ...]: so many tokens, each with where the copy stood before it and by which change. A change is
 * what agrees with it and with as much of what is before it. */
struct plain_copy {
	int32_t id;
	uint32_t next, within;
	const struct draft_change *change;
};

static void plain_copy(const struct draft *d, uint32_t next, uint32_t n, struct plain_copy *out)
{
	for (uint32_t made = 0; made < n;) {
		const struct draft_change *by = NULL;
		for (uint32_t i = d->changes; i-- > 0;) {
			const struct draft_change *c = &d->change[i];
			if (next + c->was_n <= d->indexed &&
			    memcmp(d->ids + next, d->ids + c->was, c->was_n * sizeof *d->ids) == 0 &&
			    (c->before == 0 || (next >= c->before && c->was >= c->before &&
			                        memcmp(d->ids + next - c->before, d->ids + c->was - c->before,
			                               c->before * sizeof *d->ids) == 0)))
				by = c;
		}
		for (uint32_t k = 0; k < (by ? by->is_n : 1) && made < n; k++, made++) {
			uint32_t from = by ? by->is + k : next;
			assert_true(from < d->indexed);
			out[made] = (struct plain_copy){ d->ids[from], next, k, by };
		}
		next += by ? by->was_n : 1;
	}
}

static void compare_copies(const struct draft *d, uint32_t next, unsigned *changed)
{
	enum { TOKENS = 24 };
	struct plain_copy want[TOKENS];
	int32_t got[TOKENS];

	plain_copy(d, next, TOKENS, want);
	for (uint32_t made = 0; made < TOKENS; made += 1 + draw(4)) {
		struct draft_match m = { .next = next, .made = made };
		draft_copy(d, m, got, TOKENS - made);
		for (uint32_t i = made; i < TOKENS; i++)
			assert_int_equal(got[i - made], want[i].id);
		for (uint32_t n = made; n < TOKENS; n++) {
			struct draft_standing at = draft_standing(d, m, n);
			assert_ptr_equal(at.change, want[n].change);
			assert_int_equal(at.next, want[n].next);
			assert_int_equal(at.made, n - want[n].within);
		}
	}
	for (uint32_t i = 0; i < TOKENS; i++)
		*changed += want[i].change != NULL;
}

/* Random changes of a text with few different tokens: they overlap, begin alike and stand beside one another. */
static void test_changes(void **state)
{
	static int32_t ids[CAPACITY];
	unsigned changed = 0, doubted = 0;
	(void)state;

	for (unsigned round = 0; round < (test_quick() ? 40 : 400); round++) {
		struct draft d;
		assert_true(draft_open(&d, ids, CAPACITY));
		grow(ids, 0, 400, 4 + draw(12));
		draft_extend(&d, 400);
		for (unsigned i = 0; i < 1 + draw(DRAFT_CHANGES + 4); i++)
			draft_note_change(&d, 1 + draw(180), 1 + draw(3), 200 + draw(190), 1 + draw(3));
		assert_true(d.changes <= DRAFT_CHANGES);
		for (unsigned i = 0; i < 20; i++) {
			uint32_t next = draw(150);
			struct plain_copy first;
			compare_copies(&d, next, &changed);
			plain_copy(&d, next, 1, &first);
			if (!first.change || draw(3))
				continue;
			struct draft_change doubtful = *first.change;
			draft_doubt_change(&d, first.change, next);
			doubted++;
			plain_copy(&d, next, 1, &first);
			assert_false(first.change &&
			             memcmp(first.change, &doubtful, offsetof(struct draft_change, before)) == 0);
			compare_copies(&d, next, &changed);
		}
		draft_rewind(&d, 300);
		for (uint32_t i = 0; i < d.changes; i++)
			assert_true(d.change[i].is + d.change[i].is_n <= 300);
		draft_close(&d);
	}
	assert_true(changed > 1000 && doubted > 10);
}

/* 1 2 3 4 5 6, of which a copy made 1 2 30 31 5 6. */
static void test_which_changes(void **state)
{
	static const int32_t ids[] = { 1, 2, 3, 4, 5, 6, 1, 2, 30, 31, 5, 6, 7, 3, 4, 5, 2, 3, 4, 9 };
	enum { N = sizeof ids / sizeof *ids };
	struct draft d;
	int32_t got[8];
	(void)state;

	assert_true(draft_open(&d, ids, N));
	draft_extend(&d, N);
	draft_note_change(&d, 2, 2, 8, 2);
	draft_note_change(&d, 2, 2, 8, 2); /* the same again */
	draft_note_change(&d, 0, 4, 6, 4); /* and behind what is alike */
	draft_note_change(&d, 0, DRAFT_CHANGE_MAX + 1, 8, 2);
	draft_note_change(&d, 0, 2, 8, DRAFT_CHANGE_MAX + 1);
	draft_note_change(&d, 0, 0, 8, 2); /* nothing before it */
	assert_int_equal(d.changes, 1);
	draft_copy(&d, (struct draft_match){ .next = 0 }, got, 6);
	assert_memory_equal(got, ids + 6, 6 * sizeof *ids);
	assert_true(draft_follows(&d, 13, N) && !draft_follows(&d, 13, N - 1));

	draft_rewind(&d, 12);
	assert_int_equal(d.changes, 1);
	assert_true(draft_follows(&d, 0, 6) && draft_follows(&d, 0, 9) == false);
	draft_extend(&d, N);
	draft_doubt_change(&d, d.change,
	                   13); /* behind 7 it was not made: before it there must be what was before 3 4 */
	assert_int_equal(d.change[0].before, 1);
	draft_copy(&d, (struct draft_match){ .next = 13 }, got, 2);
	assert_memory_equal(got, ids + 13, 2 * sizeof *ids);
	draft_copy(&d, (struct draft_match){ .next = 16 }, got, 3);
	assert_memory_equal(got, ids + 7, 3 * sizeof *ids);
	draft_doubt_change(&d, d.change, 2); /* where it was made once: never again */
	assert_int_equal(d.changes, 0);

	draft_note_change(&d, 2, 0, 8, 2); /* put in behind 2 */
	assert_int_equal(d.change[0].was, 1);
	assert_int_equal(d.change[0].was_n, 1);
	assert_int_equal(d.change[0].is, 7);
	assert_int_equal(d.change[0].is_n, 3);
	assert_int_equal(d.change[0].before, 1);
	draft_note_change(&d, 2, 2, 8, 0); /* left out behind 2 */
	assert_int_equal(d.change[0].was_n, 3);
	assert_int_equal(d.change[0].is_n, 1);
	draft_rewind(&d, 9); /* the first of them needs ids[9] */
	assert_int_equal(d.changes, 1);
	draft_rewind(&d, 7);
	assert_int_equal(d.changes, 0);
	draft_close(&d);
}

/* 2 becomes 5 6 behind 1; when that is seen again behind 3, it is expected behind 4, too. */
static void test_seen_again(void **state)
{
	static const int32_t ids[] = { 1, 2, 3, 2, 4, 2, 9, 1, 2, 5, 6, 3, 2, 5, 6 };
	enum { N = sizeof ids / sizeof *ids };
	struct draft d;
	(void)state;

	assert_true(draft_open(&d, ids, N));
	draft_extend(&d, N);
	draft_note_change(&d, 2, 0, 9, 2);
	assert_int_equal(d.change[0].before, 1);
	assert_false(draft_follows(&d, 2, 11));
	draft_note_change(&d, 4, 0, 13, 2);
	assert_int_equal(d.changes, 1);
	assert_int_equal(d.change[0].before, 0);
	assert_true(draft_follows(&d, 2, 11));
	draft_close(&d);
}

/* A copy that left out all there is has nothing to go on with, but tokens of the text all the same. */
static void test_copy_caught_up(void **state)
{
	static const int32_t ids[] = { 5, 1, 2, 9 };
	struct draft d;
	int32_t got[2] = { -1, -1 };
	(void)state;

	assert_true(draft_open(&d, ids, 4));
	draft_extend(&d, 4);
	draft_note_change(&d, 1, 3, 3, 1);
	draft_copy(&d, (struct draft_match){ .next = 1, .made = 1 }, got, 2);
	assert_int_equal(got[0], 9);
	assert_int_equal(got[1], 9);
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_search), cmocka_unit_test(test_rewind_leaves_nothing),
		cmocka_unit_test(test_resume),         cmocka_unit_test(test_changes),
		cmocka_unit_test(test_which_changes),  cmocka_unit_test(test_seen_again),
		cmocka_unit_test(test_copy_caught_up), cmocka_unit_test(test_loop)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
