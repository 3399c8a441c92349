/* tests/grammar/t_regex_classes.c - which characters a class of a regular expression has: shorthands, general
 * categories by all their names, and escapes, asked of every character of Unicode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <utf8proc.h>

#include "base/error.h"
#include "grammar/regex/automaton.h"
#include "grammar/regex/regex.h"
#include "tests/support/shared.h"

enum { LAST = 0x10ffff };

static bool takes(struct automaton *a, uint32_t c)
{
	utf8proc_uint8_t byte[4];
	const utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)c, byte);
	uint32_t state = AUTOMATON_START;

	for (utf8proc_ssize_t i = 0; i < n; i++)
		state = automaton_step(a, state, byte[i]);
	return automaton_accepts(a, state);
}

static struct automaton *open_class(const char *class)
{
	struct error err = { 0 };
	char text[100];

	const int n = snprintf(text, sizeof text, "^%s$", class);
	struct automaton *a = regex_automaton(text, (size_t)n, false, &err);
	if (!a)
		fail_msg("%s: %s", text, err.text);
	return a;
}

/* Whether a class has exactly these. */
static void check(const char *class, bool (*has)(uint32_t c, const char *name), const char *name, bool without)
{
	struct automaton *a = open_class(class);

	for (uint32_t c = 0; c <= LAST; c += test_quick() && c > 0xffff ? 13 : 1) {
		if (c >= 0xd800 && c < 0xe000)
			continue;
		if (takes(a, c) != (has(c, name) != without))
			fail_msg("%s: U+%04X is %s", class, (unsigned)c, takes(a, c) ? "taken" : "not taken");
	}
	assert_false(automaton_failed(a));
	automaton_close(a);
}

/* WhiteSpace and LineTerminator of ECMAScript: tabs and line ends, U+FEFF, and all of the category Zs. */
static bool is_space(uint32_t c, const char *name)
{
	(void)name;
	return (c >= 9 && c <= 13) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
	       utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ZS;
}

static bool is_among(uint32_t c, const char *letters) { return c && c < 0x80 && strchr(letters, (int)c); }

static void test_shorthands(void **state)
{
	static const char digits[] = "0123456789",
			  words[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	(void)state;

	check("\\s", is_space, NULL, false);
	check("\\S", is_space, NULL, true);
	check("[^\\s]", is_space, NULL, true);
	check("\\d", is_among, digits, false);
	check("\\D", is_among, digits, true);
	check("\\w", is_among, words, false);
	check("[^\\w]", is_among, words, true);
}

static bool has_category(uint32_t c, const char *letters)
{
	return strncmp(utf8proc_category_string((utf8proc_int32_t)c), letters, strlen(letters)) == 0;
}

/* Names of categories, and their letters. */
static const char *const names[][2] = {
	{ "L", "L" },
	{ "Letter", "L" },
	{ "Lu", "Lu" },
	{ "Uppercase_Letter", "Lu" },
	{ "Ll", "Ll" },
	{ "Lt", "Lt" },
	{ "Lm", "Lm" },
	{ "Lo", "Lo" },
	{ "Lowercase_Letter", "Ll" },
	{ "M", "M" },
	{ "Mn", "Mn" },
	{ "Mc", "Mc" },
	{ "Me", "Me" },
	{ "Titlecase_Letter", "Lt" },
	{ "N", "N" },
	{ "Nd", "Nd" },
	{ "Nl", "Nl" },
	{ "No", "No" },
	{ "Modifier_Letter", "Lm" },
	{ "P", "P" },
	{ "Pc", "Pc" },
	{ "Pd", "Pd" },
	{ "Ps", "Ps" },
	{ "Other_Letter", "Lo" },
	{ "Pe", "Pe" },
	{ "Pi", "Pi" },
	{ "Pf", "Pf" },
	{ "Po", "Po" },
	{ "Decimal_Number", "Nd" },
	{ "S", "S" },
	{ "Sm", "Sm" },
	{ "Sc", "Sc" },
	{ "Sk", "Sk" },
	{ "Letter_Number", "Nl" },
	{ "So", "So" },
	{ "Z", "Z" },
	{ "Zs", "Zs" },
	{ "Zl", "Zl" },
	{ "Other_Number", "No" },
	{ "Zp", "Zp" },
	{ "Cc", "Cc" },
	{ "Cf", "Cf" },
	{ "Co", "Co" },
	{ "Space_Separator", "Zs" },
	{ "Mark", "M" },
	{ "Symbol", "S" },
	{ "Number", "N" },
	{ "Punctuation", "P" },
	{ "Separator", "Z" },
	{ "Control", "Cc" },
	{ "Combining_Mark", "M" },
	{ "Nonspacing_Mark", "Mn" },
	{ "Spacing_Mark", "Mc" },
	{ "Enclosing_Mark", "Me" },
	{ "Connector_Punctuation", "Pc" },
	{ "Dash_Punctuation", "Pd" },
	{ "Open_Punctuation", "Ps" },
	{ "Close_Punctuation", "Pe" },
	{ "Initial_Punctuation", "Pi" },
	{ "Final_Punctuation", "Pf" },
	{ "Other_Punctuation", "Po" },
	{ "Math_Symbol", "Sm" },
	{ "Currency_Symbol", "Sc" },
	{ "Modifier_Symbol", "Sk" },
	{ "Other_Symbol", "So" },
	{ "Line_Separator", "Zl" },
	{ "Paragraph_Separator", "Zp" },
	{ "cntrl", "Cc" },
	{ "Format", "Cf" },
	{ "Private_Use", "Co" },
	{ "Titlecase_Letter", "Lt" },
};

static void test_categories(void **state)
{
	char class[100];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(class, sizeof class, "\\p{%s%s}",
		         i % 3 == 1   ? "gc="
		         : i % 3 == 2 ? "General_Category="
		                      : "",
		         names[i][0]);
		check(class, has_category, names[i][1], false);
		if (i % 5)
			continue;
		snprintf(class, sizeof class, "\\P{%s}", names[i][0]);
		check(class, has_category, names[i][1], true);
	}
}

static bool is_one(uint32_t c, const char *name) { return *name && c == (uint32_t)strtoul(name, NULL, 16); }

/* name: the character that an escape stands for, by its number; "": none. */
static void test_escapes(void **state)
{
	static const char *const rows[][2] = {
		{ "\\u0041", "41" },
		{ "\\x41", "41" },
		{ "\\u{1f600}", "1f600" },
		{ "\\ud83d\\ude00", "1f600" },
		{ "\\udbff\\udfff", "10ffff" },
		{ "\\ud800\\udc00", "10000" },
		{ "\\ud83d\\ue000", "" },
		{ "\\ud83d\\udbff", "" },
		{ "\\ude00", "" },
		{ "\\ud83d", "" },
		{ "\\t", "9" },
		{ "\\n", "a" },
		{ "\\v", "b" },
		{ "\\f", "c" },
		{ "\\r", "d" },
		{ "\\cA", "1" },
		{ "\\.", "2e" },
		{ "[\\]]", "5d" },
		{ "[\\b]", "8" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(rows[i][0], is_one, rows[i][1], false);
}

/* What a class has, as pairs of first and last character, and nothing beside them: neighbours are asked one by one. */
static void test_ranges(void **state)
{
	static const struct {
		const char *class;
		uint32_t range[8], never;
	} rows[] = {
		{ "[\\ud83d\\udbff]", { 0 }, 0x1f3ff },
		{ "[\\ud83d\\ue000]", { 0xe000, 0xe000 }, 0x1f800 },
		{ "[\\ud7ff\\udc00]", { 0xd7ff, 0xd7ff }, 0xfc00 },
		{ "[\\ud83d\\ude00-\\ud83d\\ude4f]", { 0x1f600, 0x1f64f }, 0 },
		{ "[\\ud83d\\ude00-\\u{1f64f}x]", { 'x', 'x', 0x1f600, 0x1f64f }, 0 },
		{ "[\\u{1f600}-\\ud83d\\ude4f]", { 0x1f600, 0x1f64f }, 0 },
		{ "[\\ud7ff-\\ud83d\\ude00]", { 0xd7ff, 0xd7ff, 0xe000, 0x1f600 }, 0 },
		{ "[\\ud83d-\\ude4fx]", { 'x', 'x' }, 0 },
		{ "[a\xf0\x9f\x98\x80-\xf0\x9f\x99\x8f]", { 'a', 'a', 0x1f600, 0x1f64f }, 0 },
		{ "[a-\\d]", { '-', '-', '0', '9', 'a', 'a' }, 0 },
		{ "[\\d-z]", { '-', '-', '0', '9', 'z', 'z' }, 0 },
		{ "[+--]", { '+', '-' }, 0 },
		{ "[--/]", { '-', '/' }, 0 },
		{ "[a-]", { '-', '-', 'a', 'a' }, 0 },
		{ "[-a]", { '-', '-', 'a', 'a' }, 0 },
		{ "[a-c-e]", { '-', '-', 'a', 'c', 'e', 'e' }, 0 },
		{ "[\\x41-\\x43]", { 'A', 'C' }, 0 },
		{ "[\\t-\\r]", { 9, 13 }, 0 },
		{ "[\\]-a]", { ']', 'a' }, 0 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct automaton *a = open_class(rows[i].class);
		for (size_t k = 0; k < 8 && rows[i].range[k]; k++) {
			const uint32_t c = rows[i].range[k], beside = k % 2 ? c + 1 : c - 1;
			if (!takes(a, c))
				fail_msg("%s: U+%04X is not taken", rows[i].class, (unsigned)c);
			if ((beside < 0xd800 || beside > 0xdfff) && takes(a, beside))
				fail_msg("%s: U+%04X is taken", rows[i].class, (unsigned)beside);
		}
		if (rows[i].never && takes(a, rows[i].never))
			fail_msg("%s: U+%04X is taken", rows[i].class, (unsigned)rows[i].never);
		automaton_close(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shorthands), cmocka_unit_test(test_categories),
		                            cmocka_unit_test(test_escapes), cmocka_unit_test(test_ranges) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
