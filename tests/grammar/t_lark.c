/* tests/grammar/t_lark.c - grammars as Lark writes them, by hand: what is read, what texts they take, and what is
 * refused in which sentence. `t_lark --judge` answers lark_judge.py, which draws grammars: of a line {"grammar",
 * "texts"} whether each text is taken, 2 where that was too much work, or the error. */
#include <jansson.h>
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
#include "grammar/rules/lark.h"
#include "grammar/machine/machine.h"

/* Up to its end, or where nothing can follow. */
static bool takes(struct machine *m, const char *text)
{
	uint32_t at = m->start;

	for (; *text && at != MACHINE_DEAD; text++)
		at = machine_step(m, at, (uint8_t)*text);
	return at != MACHINE_DEAD && machine_ends(m, at);
}

static const struct grammar {
	const char *text, *yes[6], *no[8];
} grammars[] = {
	{ "start: \"a\" \"b\"", { "ab" }, { "", "a", "abb", "AB" } },
	{ "start: \"a\"i | \"\\u00e9\"i", { "a", "A", "\u00e9", "\u00c9" }, { "b" } },
	{ "// one\nstart: x // two\n    | \"z\" -> last\n\nx: \"a\" | # three\n", { "", "a", "z" }, { "b" } },
	{ "start: [\"a\"] (\"b\" | \"c\")~2..3 \"d\"~2", { "abcdd", "bbbdd" }, { "abdd", "bbbbdd", "bbd" } },
	{ "start: \"a\"..\"c\"+ \"\\x30\"..\"2\"?", { "abc", "a2", "b0" }, { "", "d", "a3" } },
	{ "?start.2: x | _y\n!?x: \"1\"\n_y.-1: A\nA.3: \"2\"", { "1", "2" }, { "" } },
	{ "start: \"\\\\n\\n\\t\\\"\\d\"", { "\\n\n\t\"\\d" }, { "\n\n\t\"\\d", "\\n\n\t\"d" } },
	/* Between terminals, before and behind them, and nowhere else. */
	{ "start: AB \"c\"*\nAB: \"a\" \"b\"\n%ignore \" \"", { "ab", " ab c c ", "abc" }, { "a b", "" } },
	{ "start: \"a\"?\n%ignore / +/\n%ignore /#[^\\n]*\\n/", { "", " ", "#x\n a#\n", "  a " }, { "#", "aa" } },
	{ "start: WORD \"=\" NUMBER\n%import common (WORD, NUMBER)\n%import common.WS -> _SPACE\n%ignore _SPACE",
	  { "a = 1.5e3", "abc=.5", "x\n=\n10" },
	  { "a b = 1", "a=1 2", "a=." } },
	{ "start: ESCAPED_STRING C_COMMENT?\n%import common.ESCAPED_STRING\n%import common.C_COMMENT",
	  { "\"\"", "\"a\\\"b\\\\\"", "\"x\"/**/", "\"\"/* a * b **/" },
	  { "\"\\\"", "\"\"\"", "\"a\nb\"", "\"\"/* */ */" } },
	{ "start: (SIGNED_FLOAT | SIGNED_INT NEWLINE)+\n%import common.SIGNED_FLOAT\n%import common.SIGNED_INT\n"
	  "%import common.NEWLINE",
	  { "-1e5", "+.5", "1.", "-7\n\r\n" },
	  { "1", "--1.0", "1\r" } },
	/* Rules that begin with themselves: at once, by others, behind what may be empty. */
	{ "start: start \"+\" t | t\nt: t \"*\" f | f\nf: \"(\" start \")\" | \"1\"",
	  { "1", "1+1*1", "(1+1)*(1)", "1*1*1+1" },
	  { "", "1+", "+1", "(1", "1)" } },
	{ "start: a\na: b \"x\" | \"1\"\nb: c \"y\" | a \"w\"\nc: a \"z\" | b",
	  { "1", "1wx", "1zyx", "1wyx", "1wxwyyx" },
	  { "1x", "1w", "wx" } },
	{ "start: e start \"a\" | \"b\"\ne: \"c\"*", { "b", "ba", "cba", "ccbaa", "cbaa" }, { "a", "cb" } },
	{ "start: start start | \"a\" |", { "", "a", "aaaa" }, { "b" } },
	{ "start: start | \"a\"", { "a" }, { "", "aa" } },
	/* Templates: values are symbols and texts, also of other templates; they may use themselves. */
	{ "start: _list{item, \",\"}\n_list{x, d}: x (d x)*\nitem: \"1\" | \"[\" _list{item, \";\"} \"]\"",
	  { "1", "1,1", "[1;1],1" },
	  { "", "1;1", "[1,1]" } },
	{ "start: twice{twice{\"a\"}} | half{A}\ntwice{x}: x x\nhalf{x}: x | half{x} \"-\"\nA: \"b\"",
	  { "aaaa", "b", "b--" },
	  { "aa", "bb" } },
	{ "start: use{wrap, \"a\"}\nuse{t, x}: t{x}\nwrap{x}: \"<\" x \">\"\n%ignore \" \"",
	  { "<a>", " < a > " },
	  { "a" } },
	/* Expressions are Python's. */
	{ "start: /a{,2}b{2}c{1,}/", { "bbc", "aabbcc" }, { "aaabbc", "bbb" } },
	{ "start: /[]x]{2}[^]x]/", { "]x.", "xx[" }, { "]]]", "ab." } },
	{ "start: /\\w\\d\\s\\W/ | /\\x41\\u0042/", { "\u00e9\u0663\u3000-", "AB", "_1 ." }, { "-1 .", "ab" } },
	{ "start: /a.b/ | /c.d/s", { "a.b", "c\nd", "a\rb" }, { "a\nb" } },
	{ "start: /a  # x\n [ ] b\\ /x", { "a b " }, { "a  # x", "ab" } },
	{ "start: /(?i:ab)c/ | /(?P<n>x)(?#y)/ | /(?i)q/ | /[a-c]d/i", { "ABc", "x", "Q", "BD" }, { "abC" } },
	/* Without regard to case as Python is, also where a set has all others. */
	{ "start: /[^ks\u03b8]/i", { "a", "\u00df" }, { "k", "K", "\u212a", "\u017f", "\u03d1", "\u03f4", "\u0398" } },
	{ "start: /k[i\u01c6]/i | \"s\"i", { "\u212aI", "K\u0130", "k\u0131", "K\u01c5", "\u017f" }, { "l", "k" } },
	{ "start: /\\/\\*/ | /{a}/ | /a{b/", { "/*", "{a}", "a{b" }, { "\\/*" } },
	/* As few as possible: up to the first of what follows. */
	{ "start: /\".*?\"/", { "\"\"", "\"ab\"" }, { "\"", "\"a\"b\"", "\"\"\"" } },
	{ "start: C \"x\"?\nC: \"/*\" /(.|\\n)*?/ \"*/\"", { "/**/", "/* a * \n/ */x" }, { "/* */ */", "/*/" } },
	{ "start: /a+?b*?c?\?/ /d.*?(ef|g)/", { "adef", "ad..g" }, { "aad", "abdg", "adgg" } },
	{ "start: STRING+\nSTRING: /'''(.|\\n)*?'''/ | /'(\\\\.|[^'\\\\])*?'/", { "'a'", "'''a''b'''" }, { "'''''" } },
	{ "start: a\na: \"1\"\n%extend a: \"2\"\nb: \"x\"\n%override b: \"y\"", { "1", "2" }, { "3" } },
	{ "start: a\na{x}: x\n%override a: \"1\"", { "1" }, { "" } },
	{ "start: a \\\n  b\na: \"1\"\nb: (\"2\"\n  | \"3\")\n", { "12", "13" }, { "1" } },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
		const struct grammar *g = &grammars[i];
		struct error err = { 0 };
		struct machine *m = machine_of_lark(g->text, strlen(g->text), &err);
		if (!m)
			fail_msg("%s: %s", g->text, err.text);
		for (unsigned k = 0; k < 6 && g->yes[k]; k++)
			if (!takes(m, g->yes[k]))
				fail_msg("%s does not take %s", g->text, g->yes[k]);
		for (unsigned k = 0; k < 8 && g->no[k]; k++)
			if (takes(m, g->no[k]))
				fail_msg("%s takes %s", g->text, g->no[k]);
		assert_false(m->failed);
		machine_close(m);
	}
}

static const struct {
	const char *text;
	enum error_code code;
	const char *says;
} wrong[] = {
	{ "", ERROR_ARGUMENT, "line 1, column 1: there is no rule named start" },
	{ "a: \"b\"", ERROR_ARGUMENT, "there is no rule named start" },
	{ "start: a", ERROR_ARGUMENT, "line 1, column 8: this name is used but not defined" },
	{ "start: A", ERROR_ARGUMENT, "line 1, column 8: this name is used but not defined" },
	{ "start: \"a\"\n\nstart: \"b\"", ERROR_ARGUMENT, "line 3, column 1: this name was defined before" },
	{ "start: \"a\"\n%declare X", ERROR_UNSUPPORTED, "line 2, column 1: %declare, which is not supported" },
	{ "start: \"a\"\n%json {}", ERROR_UNSUPPORTED, "line 2, column 1: %json, which is not supported" },
	{ "start: \"a\"\n%import python.name", ERROR_UNSUPPORTED, "line 2, column 9: %import of another" },
	{ "start: \"a\"\n%import .other.A", ERROR_UNSUPPORTED, "line 2, column 9: %import of another" },
	{ "start: \"a\"\n%import common.NONE", ERROR_UNSUPPORTED, "%import of NONE: common has no such" },
	{ "start: \"a\"\n%override b: \"c\"", ERROR_ARGUMENT, "line 2, column 11: there is no such name so far" },
	{ "start: /a(?=b)/", ERROR_UNSUPPORTED, "line 1, column 12: looking ahead, which is not supported" },
	{ "start: /a(?!b)/", ERROR_UNSUPPORTED, "looking ahead, which is not supported" },
	{ "start: /(?<!a)b/", ERROR_UNSUPPORTED, "looking behind, which is not supported" },
	{ "start: /(a)\\1/", ERROR_UNSUPPORTED, "a reference to a group" },
	{ "start: /(?P<n>a)(?P=n)/", ERROR_UNSUPPORTED, "a reference to a group" },
	{ "start: /a*+/", ERROR_UNSUPPORTED, "a possessive repetition" },
	{ "start: /(?>a)/", ERROR_UNSUPPORTED, "an atomic group" },
	{ "start: /\\ba/", ERROR_UNSUPPORTED, "\\b, \\B, \\A or \\Z, which is not supported" },
	{ "start: /^a$/", ERROR_UNSUPPORTED, "^ or $, which is not supported" },
	{ "start: /a/l", ERROR_UNSUPPORTED, "the flag l, which is not supported" },
	{ "start: /\\Q/", ERROR_UNSUPPORTED, "an escape that is not supported" },
	{ "start: /a**/", ERROR_ARGUMENT, "a repetition of a repetition" },
	{ "start: /*a/", ERROR_ARGUMENT, "a repetition of nothing" },
	{ "start: /[b-a]/", ERROR_ARGUMENT, "a range of characters that is none" },
	{ "start: /(a/", ERROR_ARGUMENT, "a group without end" },
	{ "start: /a)/", ERROR_ARGUMENT, "the end of a group that was not begun" },
	{ "start: /a{3,2}/", ERROR_ARGUMENT, "whose most is below its least" },
	{ "start: /a{9999}/", ERROR_UNSUPPORTED, "more than 2000 repetitions" },
	{ "start: /a\nb/", ERROR_ARGUMENT, "which needs the flag x" },
	{ "start: \"a", ERROR_ARGUMENT, "line 1, column 8: a string without end" },
	{ "start: \"\"", ERROR_ARGUMENT, "a string that is empty" },
	{ "start: \"\\x4\"", ERROR_ARGUMENT, "too few hexadecimal digits" },
	{ "start: \"\\ud800\"", ERROR_ARGUMENT, "no character of Unicode" },
	{ "start: \"c\"..\"a\"", ERROR_ARGUMENT, "a range of characters in the wrong order" },
	{ "start: \"ab\"..\"c\"", ERROR_ARGUMENT, "expected a string of one character" },
	{ "start: A\nA: \"b\" A", ERROR_ARGUMENT, "line 2, column 1: this terminal has itself as a part" },
	{ "start: A\nA: start", ERROR_ARGUMENT, "a rule inside of a terminal" },
	{ "start: A\nA: \"b\" -> c", ERROR_ARGUMENT, "-> in a terminal" },
	{ "start: A\nA: \"b\" |", ERROR_ARGUMENT, "a terminal that is empty" },
	{ "start: (\"a\"\nb: \"c\"", ERROR_ARGUMENT, "expected ) or another part of a group" },
	{ "start: \"a\")", ERROR_ARGUMENT, "expected another part of the rule or the end of the line" },
	{ "start: \"a\"??", ERROR_ARGUMENT, "a repetition of a repetition" },
	{ "start: \"a\"~3..2", ERROR_ARGUMENT, "whose most is below its least" },
	{ "start: \"a\"~9999", ERROR_UNSUPPORTED, "more than 2000 repetitions" },
	{ "start: t\nt{x}: x", ERROR_ARGUMENT, "a template without {" },
	{ "start: t{\"a\"}\nt: \"b\"", ERROR_ARGUMENT, "this rule is no template" },
	{ "start: t{\"a\", \"b\"}\nt{x}: x", ERROR_ARGUMENT, "another number of values" },
	{ "start: t{\"a\"}\nt{x}: x | t{t{x}}", ERROR_UNSUPPORTED, "which is not supported" },
	{ "start \"a\"", ERROR_ARGUMENT, "expected : behind the name" },
	{ "start: \"a\" -> B", ERROR_ARGUMENT, "expected a name of small letters" },
	{ "\"a\"", ERROR_ARGUMENT, "expected a rule, a terminal or a statement" },
	{ "start: start \"a\"", ERROR_ARGUMENT, "no text is right by" },
	{ "start: \"a\" \x01", ERROR_ARGUMENT, "expected another part" },
};

static void test_refused(void **state)
{
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_lark(wrong[i].text, strlen(wrong[i].text), &err);
		if (m || err.code != wrong[i].code || !strstr(err.text, wrong[i].says))
			fail_msg("%s: code %d, \"%s\", expected \"%s\"", wrong[i].text, m ? 0 : (int)err.code, err.text,
			         wrong[i].says);
	}
}

/* More parts than an expression may have are no lack of memory. */
static void test_large(void **state)
{
	enum { PARTS = 200000 };
	static const char begins[] = "start: ";
	char *text = malloc(sizeof begins + PARTS);
	struct error err = { 0 };
	(void)state;

	assert_non_null(text);
	memcpy(text, begins, sizeof begins - 1);
	memset(text + sizeof begins - 1, '|', PARTS);
	assert_null(machine_of_lark(text, sizeof begins - 1 + PARTS, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "the grammar is too large"));
	free(text);
}

/* A JSON text with a member that keeps to such a grammar, written with escapes. */
static void test_in_schemas(void **state)
{
	static const char schema[] =
		"{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\",\"maxLength\":9,\"x-lark\":"
		"\"start: start \\\"\\\\n\\\" l | l\\nl: /\\\"?[a-c]+/\"}},\"required\":[\"input\"]}";
	static const char *const yes[] = { "{\"input\":\"ab\"}", "{\"input\":\"a\\nb\\n\\\"c\"}" }, *const no[] = {
		"{\"input\":\"\"}", "{\"input\":\"a\\n\"}", "{\"input\":\"a\\nabcabcab\"}", "{\"input\":\"a\\n\\nb\"}"
	};
	struct error err = { 0 };
	(void)state;

	for (int writes = 0; writes < 2; writes++) {
		struct machine *m = writes ? machine_to_write_schema(schema, sizeof schema - 1, 0, &err)
		                           : machine_of_schema(schema, sizeof schema - 1, true, &err);
		if (!m)
			fail_msg("%s", err.text);
		for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
			assert_true(takes(m, yes[i]));
		for (size_t i = 0; i < sizeof no / sizeof *no; i++)
			assert_false(takes(m, no[i]));
		machine_close(m);
	}
	static const char bad[] = "{\"properties\":{\"a\":{\"x-lark\":\"start: /(?=b)/\"}}}",
			  seven[] = "{\"x-lark\":7}";
	assert_null(machine_of_schema(bad, sizeof bad - 1, true, &err));
	assert_non_null(strstr(err.text, "#/properties/a/x-lark"));
	assert_non_null(strstr(err.text, "line 1, column 11: looking ahead"));
	err = (struct error){ 0 };
	assert_null(machine_of_schema(seven, sizeof seven - 1, true, &err));
}

/* ---- for lark_judge.py */

static int judge(void)
{
	char *line = NULL;
	size_t room = 0, i;

	while (getline(&line, &room, stdin) > 0) {
		json_t *o = json_loads(line, 0, NULL), *said = json_object(), *list = json_array(), *text;
		const char *grammar = json_string_value(json_object_get(o, "grammar"));
		struct error err = { 0 };
		struct machine *m = machine_of_lark(grammar, strlen(grammar), &err);
		json_array_foreach(json_object_get(o, "texts"), i, text)
		{
			if (m)
				effort_give(&m->own, EFFORT_TO_OPEN);
			const bool is = m && takes(m, json_string_value(text));
			json_array_append_new(list, json_integer(m && m->failed ? 2 : is));
		}
		json_object_set_new(said, m ? "takes" : "error", m ? json_incref(list) : json_string(err.text));
		char *spelled = json_dumps(said, JSON_COMPACT);
		puts(spelled);
		fflush(stdout);
		free(spelled);
		machine_close(m);
		json_decref(list);
		json_decref(said);
		json_decref(o);
	}
	free(line);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_in_schemas),
	};

	if (argc == 2 && strcmp(argv[1], "--judge") == 0)
		return judge();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
