/* tests/runtime/t_stop.c - texts that end a generation: every text over a few letters, cut in every way, against
 * strstr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/sampling/stop.h"
#include "tests/support/no_memory.h"
#include "tests/support/shared.h"

enum { MAX_TEXTS = 4, LONGEST = 64 };
struct set {
	const char *text[MAX_TEXTS];
	size_t n;
};

static const struct set sets[] = {
	{ { "a" }, 1 },
	{ { "ab" }, 1 },
	{ { "aab" }, 1 },
	{ { "abaab" }, 1 },
	{ { "aaaa" }, 1 },
	{ { "abab", "ba" }, 2 },
	{ { "abaa", "ba" }, 2 },
	{ { "b", "ab", "aab" }, 3 },
	{ { "abb", "bba", "aaa" }, 3 },
	{ { "abcabd", "bca" }, 2 },
	{ { "cab", "abc", "bca", "ccc" }, 4 },
	{ { "ab", "ab" }, 2 }
};
enum { SETS = sizeof sets / sizeof *sets };

/* ---- the judge: strstr in every beginning of the text */

/* How much of the text is printed when all of it came, and which stop text was found, of the longest; -1: none. */
static size_t judge_end(const struct set *set, const char *text, int *found)
{
	size_t n = strlen(text);
	char head[LONGEST];

	*found = -1;
	for (size_t end = 1; end <= n; end++) {
		size_t start = n;
		memcpy(head, text, end);
		head[end] = 0;
		for (size_t i = 0; i < set->n; i++) {
			const char *at = strstr(head, set->text[i]);
			if (at && (size_t)(at - head) < start) {
				start = (size_t)(at - head);
				*found = (int)i;
			}
		}
		if (*found >= 0)
			return start;
	}
	return n;
}

/* How much of a text without any may be printed while more can come: all but the longest end that is a beginning of
 * one. */
static size_t judge_now(const struct set *set, const char *text, size_t n)
{
	for (size_t kept = n; kept > 0; kept--)
		for (size_t i = 0; i < set->n; i++)
			if (kept < strlen(set->text[i]) && memcmp(text + n - kept, set->text[i], kept) == 0)
				return n - kept;
	return n;
}

/* ---- cuts */

/* The text in pieces: a bit of `cuts` for every place between two bytes. */
static void try_cut(struct stop *s, const struct set *set, const char *text, uint32_t cuts)
{
	size_t n = strlen(text), printed = 0, got;
	int want_found;
	size_t want = judge_end(set, text, &want_found);

	stop_again(s);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && !(cuts >> (to - 1) & 1); to++)
			;
		const char *out = stop_take(s, text + from, to - from, &got);
		assert_non_null(out);
		assert_true(printed + got <= want && memcmp(out, text + printed, got) == 0);
		printed += got;
		if (stop_found(s) < 0)
			assert_int_equal(printed, judge_now(set, text, to));
	}
	assert_int_equal(stop_found(s), want_found);
	const char *out = stop_rest(s, "", 0, &got);
	assert_memory_equal(out, text + printed, got);
	assert_int_equal(printed + got, want);
	stop_rest(s, "", 0, &got);
	assert_int_equal(got, 0);
}

/* Every text of so many letters, of `letters` sorts, in every cut. */
static void try_all(const struct set *set, unsigned length, unsigned letters)
{
	struct error err = { 0 };
	char text[LONGEST];
	struct stop *s = stop_open(set->text, set->n, &err);
	uint64_t texts = 1;

	assert_non_null(s);
	for (unsigned i = 0; i < length; i++)
		texts *= letters;
	for (uint64_t t = 0; t < texts; t++) {
		uint64_t rest = t;
		for (unsigned i = 0; i < length; i++, rest /= letters)
			text[i] = (char)('a' + rest % letters);
		text[length] = 0;
		for (uint32_t cuts = 0; cuts < 1u << (length - 1); cuts++)
			try_cut(s, set, text, cuts);
	}
	stop_close(s);
}

static void test_all_cuts(void **state)
{
	unsigned max = test_quick() ? 5 : test_full() ? 8 : 6;
	(void)state;

	for (size_t i = 0; i < SETS; i++)
		for (unsigned length = 1; length <= max; length++)
			try_all(&sets[i], length, 3);
}

/* Long texts and long pieces; every cut in two, and one byte at a time. */
static void test_long(void **state)
{
	static const struct set words = { { "<|im_end|>", "\nUser:", "\n\nQ", "###" }, 4 };
	static const char *const texts[] = {
		"Hello there.\nUse\nUser: what?",
		"a ## b ### c",
		"\n\n\nQ",
		"<|im_<|im_end|",
		"x<|im_end|>",
		"nothing of that",
		"## \nUser",
		"\n\nUser:"
	};
	struct error err = { 0 };
	struct stop *s = stop_open(words.text, words.n, &err);
	(void)state;

	assert_non_null(s);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		for (unsigned cut = 0; cut < 32; cut++)
			try_cut(s, &words, texts[i], 1u << cut);
		try_cut(s, &words, texts[i], UINT32_MAX);
		try_cut(s, &words, texts[i], 0x55555555u);
	}
	stop_close(s);
}

static void test_refused(void **state)
{
	static char longest[STOP_BYTES + 2];
	static const char *many[STOP_TEXTS + 1];
	struct error err = { 0 };
	(void)state;

	assert_null(stop_open((const char *[]){ "a", "" }, 2, &err));
	assert_string_equal(err.text, "stop: text 1 has 0 bytes, not 1..4096");
	memset(longest, 'x', STOP_BYTES + 1);
	err = (struct error){ 0 };
	assert_null(stop_open((const char *[]){ longest }, 1, &err));
	assert_string_equal(err.text, "stop: text 0 has 4097 bytes, not 1..4096");
	for (size_t i = 0; i <= STOP_TEXTS; i++)
		many[i] = longest + 1;
	err = (struct error){ 0 };
	assert_null(stop_open(many, STOP_TEXTS + 1, &err));
	assert_string_equal(err.text, "stop: 257 texts are not 1..256");
	struct stop *s = stop_open(many, STOP_TEXTS, &err);
	size_t n;
	assert_non_null(s);
	for (int i = 1; i < STOP_BYTES; i++) {
		assert_non_null(stop_take(s, "x", 1, &n));
		assert_int_equal(n, 0);
	}
	stop_take(s, "xy", 2, &n);
	assert_true(n == 0 && stop_found(s) == 0);
	stop_close(s);
}

/* Each allocation fails in turn: opening says so, and bytes that found no room may come again. */
static void test_memory(void **state)
{
	static const char text[] = "one two three four five six, one two three four five six";
	const struct set set = { { "seven", "six, two" }, 2 };
	(void)state;

	for (unsigned fails = 1;; fails++) {
		struct error err = { 0 };
		size_t got, printed = 0;
		char all[LONGEST];
		bool refused = false;
		memory_fail(fails);
		struct stop *s = stop_open(set.text, set.n, &err);
		if (!s) {
			assert_string_equal(err.text, "no memory for 2 stop texts");
			continue;
		}
		for (size_t at = 0; at < sizeof text - 1; at += 4) {
			const char *out = stop_take(s, text + at, 4, &got);
			if (!out) {
				refused = true;
				assert_non_null(out = stop_take(s, text + at, 4, &got));
			}
			memcpy(all + printed, out, got);
			printed += got;
		}
		const char *rest = stop_rest(s, "", 0, &got);
		memcpy(all + printed, rest, got);
		assert_true(printed + got == sizeof text - 1 && memcmp(all, text, printed + got) == 0);
		stop_close(s);
		if (!refused && fails > memory_requests)
			break;
	}
	memory_fail(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_cuts), cmocka_unit_test(test_long),
		                            cmocka_unit_test(test_refused), cmocka_unit_test(test_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
