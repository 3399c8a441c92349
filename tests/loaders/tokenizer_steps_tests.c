/* tests/loaders/tokenizer_steps_tests.c - hostile tokenizers: the steps of a text are counted, and a budget ends them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

#define SPLIT_LITERAL \
	"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":" \
	"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"},\"behavior\":\"Isolated\"}"
#define CUT(regex) \
	"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}"
#define GROW "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"
#define GROW_ANY "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"|a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"
#define PREFIX_AND_CUT \
	"{\"type\":\"ByteLevel\",\"use_regex\":false},{\"type\":\"Split\",\"pattern\":{\"Regex\":\".\"},\"behavior\":" \
	"\"Isolated\"}"

/* Encodes n bytes of the unit and counts; the bound of steps is the one every text has. */
static bool count_steps(const struct tokenizer *t, const char *unit, size_t n, uint64_t *steps, struct error *err)
{
	char *text = malloc(n + strlen(unit));
	struct tok_work w = { .max_steps = TOK_STEPS_MORE + (uint64_t)TOK_STEPS_A_BYTE * n, .err = err };

	assert_non_null(text);
	memset(err, 0, sizeof *err);
	for (size_t i = 0; i < n; i += strlen(unit))
		memcpy(text + i, unit, strlen(unit));
	bool ok = tok_encode_text(t, &w, text, n);
	*steps = w.steps;
	assert_true(w.steps <= (ok ? 1 : 2) * w.max_steps); /* the last piece of work may go beyond */
	tok_work_free(&w);
	free(text);
	return ok;
}

/* A step that grows faster than its text is stopped by the budget; what is honest takes twice the steps for twice the
 * text. */
static void check_growth(const char *name, const struct tokenizer *t, const char *unit, bool hostile)
{
	struct error err;
	uint64_t small = 0, large = 0;
	size_t n = test_quick() ? 8192 : 65536;

	if (!hostile) {
		if (!count_steps(t, unit, n, &small, &err) || !count_steps(t, unit, 2 * n, &large, &err))
			fail_msg("%s: %s", name, err.text);
		if (large > 2 * small + 1000)
			fail_msg("%s: %llu steps, %llu for twice the text", name, (unsigned long long)small,
			         (unsigned long long)large);
		return;
	}
	if (!count_steps(t, unit, 30, &small, &err))
		fail_msg("%s: a short text: %s", name, err.text);
	if (count_steps(t, unit, n, &large, &err))
		fail_msg("%s: done in %llu steps", name, (unsigned long long)large);
	if (!strstr(err.text, "steps for this text") && !strstr(err.text, "gave up"))
		fail_msg("%s says: %s", name, err.text);
}

static void test_hostile_steps(void **unused)
{
	static const struct {
		const char *json, *unit;
		bool hostile;
	} rows[] = {
		{ "{" CUT("a(?=a*b)") "," MODEL(UNK) "}", "a", true },
		{ "{" CUT("(?=[^b]*+b)a") "," MODEL(UNK) "}", "a", true },
		{ "{" CUT("c(?<!d)|(?:a|b)*?c") "," MODEL(UNK) "}", "ab", true },
		{ "{" CUT("(?i)q(?=.*z)|a") "," MODEL(UNK) "}", "q", true },
		{ "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a(?=a*b)\"},\"content\":\"\"}," MODEL(
			  UNK) "}",
		  "a", true },
		{ "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" GROW "," GROW "," GROW
		  "]}," MODEL(UNK) "}",
		  "a", true },
		{ "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" GROW_ANY "," GROW_ANY "," GROW_ANY
		  "]}," MODEL(UNK) "}",
		  "a", true },
		{ "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" PREFIX_AND_CUT "," PREFIX_AND_CUT
		  "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT
		  "]}," MODEL(UNK) "}",
		  "a", false },
		{ "{" CUT("[a-z]+|[^a-z]") "," MODEL(UNK) "}", "a b", false },
		{ "{" CUT("\\\\s*x|\\\\s+(?!\\\\S)|\\\\S+") "," MODEL(UNK) "}", "a   ", false },
		{ "{" SPLIT_LITERAL "," MODEL(UNK) "}", "a", false },
		{ "{" MODEL(UNK) "}", "ab", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tokenizer *t = must_json(rows[i].json, NULL);
		check_growth(rows[i].json, t, rows[i].unit, rows[i].hostile);
		tokenizer_close(t);
	}
}

/* An added token that every position of the text begins and none ends. */
static void test_hostile_added_token(void **unused)
{
	enum { LONG = 4000 };
	char *json = malloc(LONG + 1000);

	assert_non_null(json);
	strcpy(json, "{\"added_tokens\":[{\"id\":8,\"content\":\"");
	size_t n = strlen(json);
	memset(json + n, 'a', LONG);
	strcpy(json + n + LONG, "b\",\"normalized\":false}]," MODEL(UNK) "}");
	struct tokenizer *t = must_json(json, NULL);
	check_growth("a long added token", t, "a", true);
	tokenizer_close(t);
	free(json);
}

/* Tokens of every length: each merge reads the text of both halves. */
static void test_hostile_scores(void **unused)
{
	enum { LENGTHS = 1500 };
	const char *piece[LENGTHS];
	struct small s;
	struct error err;
	char *all = malloc(LENGTHS * (LENGTHS + 1));

	assert_non_null(all);
	for (size_t i = 0; i < LENGTHS; i++) {
		char *p = all + i * (LENGTHS + 1);
		memset(p, 'a', i + 1);
		p[i + 1] = 0;
		piece[i] = p;
	}
	spm_vocab(&s.file, piece, LENGTHS);
	assert_true(small_open(&s, 0, &err));
	check_growth("tokens of every length", s.t, "a", false);
	small_close(&s);
	free(all);
}

/* The published rules stay far below the budget, whatever the text. */
static void test_published_steps(void **unused)
{
	static const char *const units[] = { "a", " ", "\n", "ab ", "\xe4\xb8\xad", "\t \n", "'", "1", "A" };
	struct tokenizer *t = must_json("{" CUT("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}+|"
	                                        "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*|"
	                                        "\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+") "," MODEL(UNK) "}",
	                                NULL);
	struct error err;
	uint64_t steps;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t n = 6000 * strlen(units[i]);
		if (!count_steps(t, units[i], n, &steps, &err) || steps > 64 * n)
			fail_msg("\"%s\": %llu steps for %zu bytes %s", units[i], (unsigned long long)steps, n,
			         err.text);
	}
	tokenizer_close(t);
}

static void test_runaway_expression(void **unused)
{
	struct error err = { 0 };
	struct tokenizer *t = must_json("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},"
	                                "\"behavior\":\"Isolated\"}," MODEL(UNK) "}",
	                                NULL);
	char text[60];
	int32_t *ids;
	size_t n;

	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 'b';
	assert_false(tokenizer_encode(t, text, sizeof text, 0, &ids, &n, &err));
	assert_non_null(strstr(err.text, "gave up"));
	tokenizer_close(t);
}

int tokenizer_steps_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile_steps),      cmocka_unit_test(test_hostile_added_token),
		cmocka_unit_test(test_hostile_scores),     cmocka_unit_test(test_published_steps),
		cmocka_unit_test(test_runaway_expression),
	};

	return cmocka_run_group_tests_name("tokenizer_steps_tests", tests, NULL, NULL);
}
