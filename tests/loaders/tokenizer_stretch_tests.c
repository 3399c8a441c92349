/* tests/loaders/tokenizer_stretch_tests.c - words so long that they are merged in stretches, beside a search of the
 * whole word for the best pair: rules and texts that are drawn, and pairs that a text's end decides from afar.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/loaders/tokenizer_check.h"

enum { LETTERS = 5, MAX_IDS = 60, RULES = 40, MAX_PIECE = 24, LENGTH = 3500, DRAWS = 12 };

static uint32_t seed = 5;
static uint32_t next_random(void) { return (seed = seed * 1664525 + 1013904223) >> 8; }

/* Ids 0 to LETTERS - 1 are letters, the two behind them the bytes of a character that is no token. */
struct rules {
	char text[MAX_IDS][2 * MAX_PIECE];
	unsigned n_ids, n_rules;
	unsigned left[RULES], right[RULES];
	int result[RULES];
};

static int find_text(const struct rules *r, const char *text)
{
	for (unsigned i = 0; i < r->n_ids; i++)
		if (strcmp(r->text[i], text) == 0)
			return (int)i;
	return -1;
}

static bool has_rule(const struct rules *r, unsigned left, unsigned right)
{
	for (unsigned i = 0; i < r->n_rules; i++)
		if (r->left[i] == left && r->right[i] == right)
			return true;
	return false;
}

/* Two tokens, then their order: a rule may rank above those that make its parts. */
static void draw_rules(struct rules *r)
{
	memset(r, 0, sizeof *r);
	for (unsigned i = 0; i < LETTERS; i++)
		r->text[r->n_ids++][0] = (char)('a' + i);
	strcpy(r->text[r->n_ids++], "<0xC3>");
	strcpy(r->text[r->n_ids++], "<0xA9>");
	for (unsigned tries = 0; tries < 400 && r->n_rules < RULES; tries++) {
		const unsigned left = next_random() % r->n_ids, right = next_random() % r->n_ids;
		char text[2 * MAX_PIECE];
		if (strlen(r->text[left]) + strlen(r->text[right]) >= MAX_PIECE || has_rule(r, left, right))
			continue;
		snprintf(text, sizeof text, "%s%s", r->text[left], r->text[right]);
		int result = find_text(r, text);
		if (result < 0) {
			result = (int)r->n_ids;
			strcpy(r->text[r->n_ids++], text);
		}
		r->left[r->n_rules] = left;
		r->right[r->n_rules] = right;
		r->result[r->n_rules++] = result;
	}
	for (unsigned i = r->n_rules; i > 1; i--) {
		const unsigned a = i - 1, b = next_random() % i;
		const unsigned left = r->left[a], right = r->right[a];
		const int result = r->result[a];
		r->left[a] = r->left[b];
		r->right[a] = r->right[b];
		r->result[a] = r->result[b];
		r->left[b] = left;
		r->right[b] = right;
		r->result[b] = result;
	}
}

static struct tokenizer *open_rules(const struct rules *r)
{
	static char json[MAX_IDS * 2 * MAX_PIECE + RULES * 4 * MAX_PIECE + 200];
	size_t n = (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{");

	for (unsigned i = 0; i < r->n_ids; i++)
		n += (size_t)sprintf(json + n, "%s\"%s\":%u", i ? "," : "", r->text[i], i);
	n += (size_t)sprintf(json + n, "},\"merges\":[");
	for (unsigned i = 0; i < r->n_rules; i++)
		n += (size_t)sprintf(json + n, "%s[\"%s\",\"%s\"]", i ? "," : "", r->text[r->left[i]],
		                     r->text[r->right[i]]);
	sprintf(json + n, "]}}");
	return must_json(json, NULL);
}

/* The best rule of the whole word, at its leftmost place, until none is left. */
static size_t merge_plainly(const struct rules *r, int32_t *ids, size_t n)
{
	for (unsigned rule = 0; rule < r->n_rules;) {
		size_t i = 0, at = 0;
		bool any = false;
		while (i < n) {
			any |= i + 1 < n && ids[i] == (int32_t)r->left[rule] && ids[i + 1] == (int32_t)r->right[rule];
			if (any)
				break;
			i++;
		}
		if (!any) {
			rule++;
			continue;
		}
		at = i;
		ids[at] = r->result[rule];
		memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
		n--;
		rule = 0; /* it may have made a better pair */
	}
	return n;
}

static size_t draw_text(char *text, int32_t *ids, size_t *n_ids)
{
	size_t n = 0;

	*n_ids = 0;
	while (n < LENGTH) {
		const unsigned letter = next_random() % (LETTERS + 1),
			       times = next_random() % 8 ? 1 : next_random() % 40;
		for (unsigned k = 0; k < times; k++) {
			if (letter < LETTERS) {
				text[n++] = (char)('a' + letter);
				ids[(*n_ids)++] = (int32_t)letter;
				continue;
			}
			memcpy(text + n, "\xc3\xa9", 2);
			n += 2;
			ids[(*n_ids)++] = LETTERS;
			ids[(*n_ids)++] = LETTERS + 1;
		}
	}
	return n;
}

static void test_drawn_rules(void **unused)
{
	static char text[LENGTH + 100];
	static int32_t ids[LENGTH + 100];

	for (unsigned draw = 0; draw < DRAWS; draw++) {
		struct rules r;
		size_t n_ids;
		draw_rules(&r);
		struct tokenizer *t = open_rules(&r);
		const size_t n = draw_text(text, ids, &n_ids);
		n_ids = merge_plainly(&r, ids, n_ids);
		check_ids(t, text, n, 0, ids, n_ids);
		tokenizer_close(t);
	}
}

/* Characters that stand in one order alone, each pair of which ranks above the pair before it. So the last two merge
 * first, and whether a character is the first of a pair is decided by where the text ends, however far that is. */
enum { CHAIN = 3000, FIRST = 0x4e00 };

static void test_decided_by_the_end(void **unused)
{
	static const size_t lengths[] = { CHAIN, CHAIN - 1, 1025, 1024, 1200, 1201 };
	char *json = malloc(CHAIN * 80), *text = malloc(3 * CHAIN);
	int32_t want[CHAIN];

	assert_true(json && text);
	size_t n = (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
	for (unsigned i = 0; i < CHAIN; i++) {
		char *p = text + 3 * i;
		tok_encode(FIRST + i, p);
		n += (size_t)sprintf(json + n, "%s\"%.3s\":%u", i ? "," : "", p, i);
		if (i)
			n += (size_t)sprintf(json + n, ",\"%.6s\":%u", p - 3, CHAIN + i);
	}
	n += (size_t)sprintf(json + n, "},\"merges\":[");
	for (unsigned i = CHAIN - 1; i > 0; i--)
		n += (size_t)sprintf(json + n, "%s[\"%.3s\",\"%.3s\"]", i < CHAIN - 1 ? "," : "", text + 3 * (i - 1),
		                     text + 3 * i);
	sprintf(json + n, "]}}");
	struct tokenizer *t = must_json(json, NULL);
	for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
		size_t n_want = 0;
		if (lengths[l] % 2)
			want[n_want++] = 0;
		for (size_t i = lengths[l] % 2; i < lengths[l]; i += 2)
			want[n_want++] = (int32_t)(CHAIN + i + 1);
		check_ids(t, text, 3 * lengths[l], 0, want, n_want);
	}
	tokenizer_close(t);
	free(json);
	free(text);
}

/* Tokens that are longer than a stretch: 1 to 2^DOUBLED letters. Of n letters those are used that n is the sum of. */
static void test_long_tokens(void **unused)
{
	enum { DOUBLED = 12, MAX = 3 << DOUBLED };
	static const size_t lengths[] = { 1023, 1024, 1025, 4095, 4096, 5000, 10000, MAX - 1 };
	char *json = malloc(8 << DOUBLED), *text = malloc(MAX);
	size_t n;

	assert_true(json && text);
	memset(text, 'a', MAX);
	n = (size_t)sprintf(json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
	for (int i = 0; i <= DOUBLED; i++)
		n += (size_t)sprintf(json + n, "%s\"%.*s\":%d", i ? "," : "", 1 << i, text, i);
	n += (size_t)sprintf(json + n, "},\"merges\":[");
	for (int i = 0; i < DOUBLED; i++)
		n += (size_t)sprintf(json + n, "%s[\"%.*s\",\"%.*s\"]", i ? "," : "", 1 << i, text, 1 << i, text);
	sprintf(json + n, "]}}");
	struct tokenizer *t = must_json(json, NULL);
	for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
		int32_t want[DOUBLED + 4];
		size_t n_want = 0, left = lengths[l];
		for (int i = DOUBLED; i >= 0; i--)
			for (; left >= (size_t)1 << i; left -= (size_t)1 << i)
				want[n_want++] = i;
		check_ids(t, text, lengths[l], 0, want, n_want);
	}
	tokenizer_close(t);
	free(json);
	free(text);
}

int tokenizer_stretch_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_drawn_rules), cmocka_unit_test(test_long_tokens),
		                            cmocka_unit_test(test_decided_by_the_end) };

	return cmocka_run_group_tests_name("tokenizer_stretch_tests", tests, NULL, NULL);
}
