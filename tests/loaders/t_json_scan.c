/* tests/loaders/t_json_scan.c - the in-place JSON reader, judged by jansson: both accept or both refuse, over texts and
 * mutations of them. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json_scan.h"
#include "tests/support/guarded.h"

/* The two differ by design here: jansson bounds numbers, we bound depth. */
static bool comparable(const json_error_t *e)
{
	enum json_error_code c = json_error_code(e);

	return c != json_error_numeric_overflow && c != json_error_stack_overflow;
}

static void compare(struct guarded *guard, const char *text, size_t n)
{
	const char *q = (const char *)guarded_copy(guard, text, n);
	struct json_scan s = json_scan_of(q, n);
	bool ours = json_scan_skip(&s) && json_scan_finish(&s);
	json_error_t e = { 0 };
	json_t *tree = json_loadb(q, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);

	if ((tree || comparable(&e)) && ours != (tree != NULL))
		fail_msg("%.*s: here %s, jansson %s", (int)n, text, ours ? "accepted" : s.problem,
		         tree ? "accepts" : e.text);
	assert_true(ours || s.problem);
	assert_true(s.at <= n);
	json_decref(tree);
}

static const char *const texts[] = {
	"null",
	"true",
	"false",
	"0",
	"-0",
	"-1.5e+30",
	"12.25",
	"1E5",
	"1.0e-7",
	"\"\"",
	"\"a\\n\\\"\\\\\\/\\u00e9\\ud83d\\ude00\"",
	"[]",
	"{}",
	"[1,2,[3,{}]]",
	"{\"a\":1,\"b\":[true,null,\"x\"],\"c\":{\"d\":{}}}",
	" \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
	"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
	"",
	" ",
	"tru",
	"nul",
	"01",
	"-",
	"+1",
	".5",
	"1.",
	"1e",
	"1e+",
	"[1,]",
	"{\"a\":1,}",
	"{\"a\"}",
	"{a:1}",
	"[1 2]",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\ud800\"",
	"\"\\udc00\"",
	"\"\\ud800\\u0041\"",
	"\"\n\"",
	"\"",
	"[",
	"{",
	"]",
	"}",
	"1 1",
	"\xef\xbb\xbf{}",
	"\"\xff\"",
	"\"\xc0\x80\"",
	"\"\xed\xa0\x80\"",
	"\"\xf4\x90\x80\x80\"",
	"\"\xe2\x82\"",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void test_agrees_with_jansson(void **state)
{
	struct guarded guard = guarded_open(4096);

	for (size_t i = 0; i < TEXTS; i++)
		compare(&guard, texts[i], strlen(texts[i]));
	guarded_close(&guard);
}

static void test_agrees_on_mutations(void **state)
{
	static const char spice[] = "{}[]\",:\\u0d89eE+-.tfn \xc3\xa9\xff\x01";
	struct guarded guard = guarded_open(4096);
	uint32_t seed = 1;
	char text[200];

	for (int round = 0; round < 60000; round++) {
		const char *from = texts[(seed >> 8) % TEXTS];
		size_t n = strlen(from);
		memcpy(text, from, n);
		for (unsigned edits = 1 + (unsigned)round % 3; edits && n; edits--) {
			seed = seed * 1664525 + 1013904223;
			size_t at = (seed >> 10) % n;
			char c = spice[(seed >> 3) % (sizeof spice - 1)];
			switch (seed >> 29) {
			case 0:
			case 1:
			case 2: text[at] = c; break;
			case 3:
			case 4:
				memmove(text + at, text + at + 1, n - at - 1);
				n--;
				break;
			default:
				memmove(text + at + 1, text + at, n - at);
				text[at] = c;
				n++;
			}
		}
		seed = seed * 1664525 + 1013904223;
		compare(&guard, text, n);
	}
	guarded_close(&guard);
}

/* Strings come out as jansson's do. */
static void test_unescapes(void **state)
{
	for (size_t i = 0; i < TEXTS; i++) {
		struct json_scan s = json_scan_of(texts[i], strlen(texts[i]));
		struct json_scan_text t;
		char out[64];
		if (texts[i][0] != '"' || !json_scan_string(&s, &t))
			continue;
		json_t *tree = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		assert_non_null(tree);
		uint64_t n = json_scan_unescape(&t, out);
		assert_true(n <= t.n && n == json_string_length(tree) && memcmp(out, json_string_value(tree), n) == 0);
		assert_true(json_scan_is(&t, json_string_value(tree)));
		assert_false(json_scan_is(&t, "something else"));
		json_decref(tree);
	}
}

static void test_integers(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
		bool ok;
	} want[] = {
		{ "0", 0, true },
		{ " 42", 42, true },
		{ "18446744073709551615", UINT64_MAX, true },
		{ "18446744073709551616", 0, false },
		{ "99999999999999999999", 0, false },
		{ "-1", 0, false },
		{ "1.0", 0, false },
		{ "1e3", 0, false },
		{ "007", 0, false },
		{ "\"1\"", 0, false },
		{ "", 0, false },
		{ "true", 0, false },
	};

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct json_scan s = json_scan_of(want[i].text, strlen(want[i].text));
		uint64_t v = 0;
		assert_int_equal(json_scan_u64(&s, &v), want[i].ok);
		if (want[i].ok)
			assert_int_equal(v, want[i].value);
		assert_int_equal(s.problem == NULL, want[i].ok);
	}
}

static void test_depth(void **state)
{
	char text[2 * (JSON_MAX_DEPTH + 1)];

	for (unsigned depth = JSON_MAX_DEPTH - 2; depth <= JSON_MAX_DEPTH + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		struct json_scan s = json_scan_of(text, 2 * depth);
		assert_int_equal(json_scan_skip(&s), depth <= JSON_MAX_DEPTH);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_jansson),
		cmocka_unit_test(test_agrees_on_mutations),
		cmocka_unit_test(test_unescapes),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
