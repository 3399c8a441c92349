/* tests/loaders/tokenizer_queue_tests.c - which pair merges next, in short and in long words: beside a plain search for
 * the smallest key, and in a long word whose tokens are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/loaders/tokenizer_check.h"

enum { KEEP = 400, STEPS = 6000 };

static uint32_t seed = 1;
static uint32_t next_random(void) { return (seed = seed * 1664525 + 1013904223) >> 8; }

/* Priorities of some kind: few of them, small ones, any of 32 bits, and those near where buckets become wider. */
static uint32_t priority_of(unsigned kind)
{
	switch (kind) {
	case 0: return 7;
	case 1: return next_random() % 5;
	case 2: return next_random() % 200000;
	case 3: return next_random() << 8 | next_random() % 256;
	case 4: return 1020 + next_random() % 8;
	case 5: return UINT32_MAX - next_random() % 3;
	default: return (uint32_t)1 << next_random() % 32;
	}
}

/* Keys are pushed and popped in any order; each that comes out is the smallest of those that are in. */
static void compare(const struct tokenizer *t, struct tok_work *w, size_t symbols, unsigned kind, bool rises)
{
	static struct tok_pair in[KEEP];
	struct tok_pair c;
	size_t n = 0;
	bool any;

	assert_true(tok_queue_begin(w, symbols));
	for (uint32_t step = 0; step < STEPS || n; step++) {
		if (step < STEPS && n < KEEP && next_random() % 64 < (step % 1024 < 512 ? 40u : 20u)) {
			const uint64_t left = rises ? step : (uint32_t)STEPS - step;
			in[n] = (struct tok_pair){ (uint64_t)priority_of(kind) << 32 | left, step,
				                   (int32_t)(step % 97) };
			assert_true(tok_queue_push(t, w, &in[n++]));
			continue;
		}
		assert_true(tok_queue_pop(w, &c, &any));
		assert_int_equal(any, n > 0);
		size_t best = 0;
		for (size_t i = 1; i < n; i++)
			if (in[i].key < in[best].key)
				best = i;
		if (!n)
			continue;
		assert_memory_equal(&c, &in[best], sizeof c);
		in[best] = in[--n];
	}
	assert_true(tok_queue_pop(w, &c, &any));
	assert_false(any);
}

static void test_smallest_first(void **unused)
{
	static const enum tok_model models[] = { TOK_BYTE_LEVEL, TOK_CHAR_SCORES };
	static const size_t symbols[] = { 10, 4096, 4097, 1000000 };
	static struct tok_symbol symbol[STEPS + 1];
	struct error err = { 0 };

	for (size_t m = 0; m < 2; m++) {
		const struct tokenizer t = { .model = models[m] };
		struct tok_work w = { .err = &err, .symbol = symbol };
		for (size_t s = 0; s < sizeof symbols / sizeof *symbols; s++)
			for (unsigned kind = 0; kind < 7; kind++)
				for (int rises = 0; rises < 2; rises++)
					compare(&t, &w, symbols[s], kind, rises != 0);
		tok_queue_free(&w.queue);
	}
}

/* A word of n times "ab": as many tokens, whether it is short or long; and c is between two of them. */
static void test_long_words(void **unused)
{
	struct tokenizer *t = must_json("{" MODEL() "}", NULL);
	static const size_t lengths[] = { 1, 100, 2048, 2049, 50000 };

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (unsigned each = 2; each <= 3; each++) {
			const size_t n = lengths[i];
			char *text = malloc(each * n);
			int32_t *want = malloc((each - 1) * n * sizeof *want);
			assert_true(text && want);
			for (size_t k = 0; k < n; k++) {
				memcpy(text + each * k, "abc", each);
				want[(each - 1) * k] = 3;
				if (each == 3)
					want[2 * k + 1] = 2;
			}
			check_ids(t, text, each * n, 0, want, (each - 1) * n);
			free(text);
			free(want);
		}
	tokenizer_close(t);
}

int tokenizer_queue_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_smallest_first), cmocka_unit_test(test_long_words) };

	return cmocka_run_group_tests_name("tokenizer_queue_tests", tests, NULL, NULL);
}
