/* tests/grammar/t_account.c - what a grammar's account is for: memory that the system refuses is told as such and costs
 * no answer, drafts cost nothing, and machines without an account have one of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grammar/machine/effort.h"
#include "grammar/grammar.h"
#include "tests/support/shared.h"

/* ---- allocations, of which some fail */

static unsigned long requests, fails_at, fails_for;

static bool fails(void)
{
	requests++;
	return fails_at && requests >= fails_at && requests < fails_at + fails_for;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }

/* ---- a small vocabulary */

static const char *const words[] = {
	"{\"",  "\": ",   "\": \"", "\", \"", "name", "true", "null", "12", "aab", "ab",  "\"name",
	"}\n",  "\"}",    "[[",     "[",      "]",    ", ",   "-1",   "e",  " ",   "\\n", "\xc3",
	"\xa9", "abcabc", "kind",   "x1",     "<b>",  "cc",   "\n",   "  ", "\"]", "3.25"
};
enum { N_WORDS = sizeof words / sizeof *words, N_TOKENS = 95 + N_WORDS };

static const char *token(void *user, uint32_t id, size_t *n)
{
	static char bytes[95];

	(void)user;
	if (id < 95) {
		bytes[id] = (char)(32 + id);
		*n = 1;
		return &bytes[id];
	}
	*n = strlen(words[id - 95]);
	return words[id - 95];
}
static uint32_t named(void *user, const char *text, size_t n)
{
	(void)user;
	(void)text;
	(void)n;
	return UINT32_MAX;
}
static bool takes(void *user, uint32_t id)
{
	(void)user;
	(void)id;
	return true;
}
static const struct machine_tokens tokens = { NULL, N_TOKENS, named, takes };
static struct vocabulary *vocabulary;

static const struct source {
	enum grammar_kind kind;
	const char *text;
} sources[] = {
	{ GRAMMAR_SCHEMA,
	  "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"pattern\":\"^(?=.*a)[a-c]{2,9}$\"},"
	  "\"kind\":{\"enum\":[\"x1\",12,null,{\"a\":[1]}]},\"n\":{\"type\":\"number\",\"minimum\":3,\"multipleOf\":"
	  "0.25}},\"required\":[\"name\",\"kind\"],\"patternProperties\":{\"^[xy]\":{\"type\":\"boolean\"}},"
	  "\"minProperties\":3}" },
	{ GRAMMAR_SCHEMA,
	  "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"oneOf\":[{\"type\":\"string\",\"maxLength\":3},{"
	  "\"type\":\"integer\",\"maximum\":20}]},\"contains\":{\"const\":\"ab\"},\"minItems\":3,\"maxItems\":5}" },
	{ GRAMMAR_REGEX, "(?!.*aab)[a-z]{3,7}(name|kind)[0-9]{2,9}" },
	{ GRAMMAR_GBNF,
	  "root ::= item (\", \" item){1,4}\nitem ::= \"[\" item* \"]\" | [a-c]+ | number\nnumber ::= \"-\"? "
	  "[0-9]{1,3}" },
	{ GRAMMAR_LARK,
	  "start: start \",\" t | t\nt: pair{name, \"12\"} | STRING | \"x\"i /[\\d.]{2,9}/\npair{x, y}: x \": \" y\n"
	  "name: \"name\" | \"kind\"\nSTRING: /\".*?(aab|\")/\n%import common.WS\n%ignore WS\n" },
	{ GRAMMAR_CALL,
	  "{\"schema\":{\"type\":\"object\",\"properties\":{\"name\":{\"const\":\"cc\"},\"arguments\":{\"type\":"
	  "\"object\",\"properties\":{\"ab\":{\"type\":\"string\"},\"e\":{\"type\":\"integer\"}},\"required\":[\"ab\","
	  "\"e\"]}},\"required\":[\"name\",\"arguments\"]},\"values\":\"plain\",\"behind_name\":\"<b>\","
	  "\"first_key\":\"<b>\",\"next_key\":\"<b>\",\"behind_key\":\"x\",\"behind_value\":\"<b>\",\"end\":\"}\"}" },
	{ GRAMMAR_CALL,
	  "{\"schema\":{\"type\":\"object\",\"properties\":{\"name\":{\"const\":\"cc\"},\"arguments\":{\"type\":"
	  "\"object\"}},\"required\":[\"name\",\"arguments\"]},\"values\":\"json\",\"behind_name\":\"<b>\","
	  "\"gaps\":[\" 12\"],\"openings\":[{\"text\":\"<b>\",\"then\":\"\\n\"},{\"text\":\"[\",\"first\":true,"
	  "\"loose\":true},{\"text\":\"aab\",\"begun\":\"cc\"}],\"close\":\"}\\n\",\"spelled\":[\"]\"]}" },
};
enum { N_SOURCES = sizeof sources / sizeof *sources, LONGEST = 14 };

static struct grammar *open_source(const struct source *s, struct error *err)
{
	return grammar_open(vocabulary, s->kind, s->text, strlen(s->text), &tokens, err);
}

/* A token that is allowed, another one at each place; N_TOKENS: there is none. */
static uint32_t choose(const uint32_t *bits, unsigned position)
{
	uint32_t id = position * 37 % N_TOKENS;

	for (unsigned i = 0; i < N_TOKENS; i++, id = (id + 1) % N_TOKENS)
		if (bits[id / 32] >> id % 32 & 1)
			return id;
	return N_TOKENS;
}

/* What came of a text: what was chosen and allowed (as a sum), and how often memory was short. */
struct told {
	uint32_t id[LONGEST];
	uint64_t sum;
	unsigned n, short_of;
	bool wrong;
};

static bool is_memory(struct error *err, struct told *t)
{
	t->short_of++;
	if (err->code != ERROR_MEMORY) {
		printf("# told as: %s\n", err->text);
		t->wrong = true;
	}
	*err = (struct error){ 0 };
	return !t->wrong && t->short_of < 4;
}

/* What fails is tried again, as long as it fails for memory. */
static struct told walk(const struct source *s, bool drafts)
{
	struct told t = { .sum = 1 };
	struct error err = { 0 };
	struct grammar *g;
	bool ends = false;
	char out[40];

	while (!(g = open_source(s, &err)))
		if (!is_memory(&err, &t))
			return t;
	while (t.n < LONGEST && !t.wrong) {
		const uint32_t *bits = grammar_allowed(g, &ends, &err);
		if (!bits && is_memory(&err, &t))
			continue;
		if (!bits)
			break;
		for (unsigned i = 0; i < (N_TOKENS + 31) / 32; i++)
			t.sum = (t.sum ^ bits[i] ^ ends) * 0x9e3779b97f4a7c15u + 1;
		struct grammar_token one = { .id = choose(bits, t.n) };
		if (one.id == N_TOKENS)
			break;
		one.text = token(NULL, one.id, &one.n);
		if (drafts) {
			grammar_forced(g, out, sizeof out);
			grammar_fitting(g, &one, 1);
		}
		while (!grammar_take(g, &one, &err))
			if (!is_memory(&err, &t))
				break;
		t.id[t.n++] = one.id;
	}
	grammar_close(g);
	return t;
}

static bool same(const struct told *a, const struct told *b)
{
	return a->n == b->n && a->sum == b->sum && memcmp(a->id, b->id, a->n * sizeof *a->id) == 0;
}

/* Each allocation fails once, by itself and with some behind it. Then the answer is the same, and where a call failed
 * it said that memory was short. */
static void test_memory(void **state)
{
	unsigned wrong = 0, short_of = 0;
	unsigned long tried = 0;
	(void)state;

	for (size_t i = 0; i < N_SOURCES; i++) {
		fails_at = requests = 0;
		const struct told plain = walk(&sources[i], false);
		const unsigned long all = requests, apart = all / (test_quick() ? 150 : 2000) + 1;
		if (plain.n <= 3 || plain.wrong || plain.short_of)
			fail_msg("source %zu ends behind %u tokens", i, plain.n);
		for (fails_at = 1; fails_at <= all; fails_at += apart, tried++) {
			requests = 0;
			fails_for = 1 + fails_at % 3;
			const struct told t = walk(&sources[i], false);
			short_of += t.short_of;
			if (t.wrong || !same(&t, &plain)) {
				printf("# source %zu, allocation %lu of %lu: %s\n", i, fails_at, all,
				       t.wrong ? "wrong" : "another answer");
				wrong++;
			}
		}
		fails_at = 0;
	}
	printf("# %lu failures, %u calls that told\n", tried, short_of);
	assert_int_equal(wrong, 0);
	assert_true(short_of > tried / 4);
}

/* With drafts and without, the account is the same at every token, also where it is nearly used up. */
static void test_drafts(void **state)
{
	(void)state;

	for (size_t i = 0; i < N_SOURCES; i++) {
		const struct told a = walk(&sources[i], false), b = walk(&sources[i], true);
		assert_true(same(&a, &b));
		uint64_t need = 0;
		for (int drafts = 0; drafts < 2; drafts++) {
			struct error err = { 0 };
			struct grammar *g = open_source(&sources[i], &err);
			uint64_t used = 0;
			bool ends;
			for (unsigned k = 0; k < LONGEST; k++) {
				const uint64_t left = grammar_left(g);
				const uint32_t *bits = grammar_allowed(g, &ends, &err);
				used = used * 31 + left - grammar_left(g);
				struct grammar_token one = { .id = choose(bits, k) };
				if (one.id == N_TOKENS)
					break;
				one.text = token(NULL, one.id, &one.n);
				char out[80];
				if (drafts) {
					grammar_forced(g, out, sizeof out);
					assert_int_equal(grammar_fitting(g, &one, 1), 1);
				}
				assert_true(grammar_take(g, &one, &err));
			}
			grammar_close(g);
			assert_true(!drafts || used == need);
			need = used;
		}
	}
}

/* Sets of thousands of characters leave drafts what they may take. */
static void test_sets(void **state)
{
	static const struct source sets[] = {
		{ GRAMMAR_LARK, "start: \"forced\" /\\w/" },
		{ GRAMMAR_LARK, "start: \"forced\" /\\w+/ \"=\" /\\W*/ /[^\\w-]/" },
		{ GRAMMAR_LARK,
		  "start: \"forced\" (A | B | C | D)+\nA: /\\w+/i\nB: /\\d\\w*/\nC: /[\\w.]{2,9}/\nD: /\\W/" },
		{ GRAMMAR_GBNF, "root ::= \"forced\" [^a-z]+ [\xc3\xa0-\xf0\x9f\x98\x80]* [0-9]" },
		{ GRAMMAR_REGEX, "forced[^a-z]{1,40}" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		struct error err = { 0 };
		struct grammar *g = open_source(&sets[i], &err);
		char out[80];
		assert_non_null(g);
		const size_t n = grammar_forced(g, out, sizeof out);
		printf("# %llu steps to open %.40s\n", (unsigned long long)(EFFORT_TO_OPEN - grammar_left(g)),
		       sets[i].text);
		if (n != 6 || memcmp(out, "forced", 6) != 0)
			fail_msg("%s: %zu bytes must follow", sets[i].text, n);
		grammar_close(g);
	}
}

/* Every character is in a set, or is not, as its ranges say, which may overlap and come in any order; and so with
 * halves of surrogate pairs, which are no characters, and bytes that are none. */
static void test_characters(void **state)
{
	static const uint32_t border[] = { 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff };
	enum { RANGES = 12, END = 0x110000 };
	uint64_t draw = 88172645463325252u;
	static uint8_t in[END];
	(void)state;

	for (unsigned round = 0; round < (test_quick() ? 3 : 30); round++) {
		char text[400];
		int n = sprintf(text, "root ::= [");
		memset(in, 0, sizeof in);
		for (unsigned i = 0; i < RANGES; i++) {
			draw = draw * 6364136223846793005u + 1442695040888963407u;
			const uint32_t a = (uint32_t)(draw >> 20) % 9, shift = (uint32_t)(draw >> 30) % 20;
			uint32_t low = i % 3 ? (uint32_t)(draw >> 40) % END >> shift : border[a],
				 high = low + ((uint32_t)(draw >> 25) % END >> (shift + 2));
			high = high < END ? high : END - 1;
			low = low >= 0xd800 && low < 0xe000 ? 0xe000 : low ? low : 1;
			high = high >= 0xd800 && high < 0xe000 ? 0xe000 : high < low ? low : high;
			n += sprintf(text + n, "\\U%08x-\\U%08x", low, high);
			memset(in + low, 1, high - low + 1);
		}
		sprintf(text + n, "]");
		struct error err = { 0 };
		struct machine *m = machine_of_gbnf(text, strlen(text), NULL, &err);
		if (!m)
			fail_msg("%s: %s", text, err.text);
		for (uint32_t code = 1; code < END; code++) {
			const uint8_t four[] = { (uint8_t)(0xf0 | code >> 18), (uint8_t)(0x80 | (code >> 12 & 63)),
				                 (uint8_t)(0x80 | (code >> 6 & 63)), (uint8_t)(0x80 | (code & 63)) };
			const uint8_t three[] = { (uint8_t)(0xe0 | code >> 12), four[2], four[3] },
				      two[] = { (uint8_t)(0xc0 | code >> 6), four[3] }, one[] = { (uint8_t)code };
			const uint8_t *p = code < 0x80 ? one : code < 0x800 ? two : code < 0x10000 ? three : four;
			const unsigned bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
			uint32_t at = m->start;
			for (unsigned b = 0; b < bytes; b++)
				at = machine_step(m, at, p[b]);
			const bool want = in[code] && (code < 0xd800 || code >= 0xe000);
			if (machine_ends(m, at) != want)
				fail_msg("U+%04X is %s in %s", code, want ? "not" : "", text);
			if (want && machine_step(m, at, 0x80) != MACHINE_DEAD)
				fail_msg("U+%04X and a byte", code);
		}
		machine_close(m);
	}
}

/* Machines that nobody keeps an account for. */
static void test_alone(void **state)
{
	static const char *const regex = "(a|b|c)*a(a|b|c){14}(d|(a|b|c)*b(a|b|c){14}e)",
				 *const rules =
					 "root ::= x | root2\nroot2 ::= x root2 | y\nx ::= [a-c] x? | \"a\" y\ny ::= "
					 "[a-c] (x | y)? y?";
	(void)state;

	for (int kind = 0; kind < 2; kind++) {
		struct error err = { 0 };
		struct machine *m = kind ? machine_of_gbnf(rules, strlen(rules), NULL, &err)
		                         : machine_of_regex(regex, strlen(regex), &err);
		uint64_t draw = 88172645463325252u, taken = 0;
		assert_non_null(m);
		const uint64_t had = m->own.left;
		assert_true(had > 0);
		for (uint32_t at = m->start; at != MACHINE_DEAD && taken < 300000; taken++) {
			draw = draw * 6364136223846793005u + 1442695040888963407u;
			at = machine_step(m, at, (uint8_t)('a' + (draw >> 33) % 3));
		}
		printf("# %llu bytes, %llu steps%s\n", (unsigned long long)taken,
		       (unsigned long long)(had - m->own.left), m->failed ? ", then no more" : "");
		assert_true(m->own.left < had);
		assert_true(m->failed == (m->own.spent || m->limited));
		machine_close(m);
	}
}

static int set_up(void **state)
{
	struct error err = { 0 };
	(void)state;

	vocabulary = vocabulary_open(N_TOKENS, token, NULL, &err);
	return vocabulary ? 0 : 1;
}

static int tear_down(void **state)
{
	(void)state;
	vocabulary_close(vocabulary);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory), cmocka_unit_test(test_drafts),
		                            cmocka_unit_test(test_sets), cmocka_unit_test(test_characters),
		                            cmocka_unit_test(test_alone) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
