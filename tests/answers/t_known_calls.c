/* tests/answers/t_known_calls.c - what models write where the functions are known: calls of these alone, with values
 * that are right by their schemas, and all else as text. Each the same in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "answers/tool_calls.h"
#include "tests/support/shared.h"

static const char functions[] =
	"[{\"name\":\"add\",\"parameters\":{\"type\":\"object\",\"$defs\":{\"S\":{\"type\":\"string\"},\"E\":{\"type\":"
	"\"string\",\"enum\":[\"1\",\"2\"]}},\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},"
	"\"b\":{\"type\":\"boolean\"},\"maybe\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
	"\"list\":{\"type\":[\"string\",\"null\"]},\"ref\":{\"$ref\":\"#/$defs/S\"},\"all\":{\"allOf\":[{\"$ref\":"
	"\"#/$defs/S\"},{\"maxLength\":9}]},\"one\":{\"anyOf\":[{\"$ref\":\"#/$defs/E\"},{\"type\":\"null\"}]},"
	"\"num\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},\"bn\":{\"anyOf\":[{\"type\":\"boolean\"},{"
	"\"type\":\"null\"}]},\"o\":{\"type\":\"object\"},\"a\":{\"type\":\"array\"},\"so\":{\"anyOf\":[{\"type\":"
	"\"string\"},{\"type\":\"object\"}]},\"any\":{}}}},{\"name\":\"now\"},{\"name\":\"odd\",\"parameters\":{"
	"\"properties\":{\"u\":{\"$ref\":"
	"\"http://localhost/u\"},\"s\":{\"type\":\"string\"},\"m\":{\"$ref\":\"#/$defs/"
	"M\"}},\"$defs\":{\"M\":{\"anyOf\":[{"
	"\"type\":\"string\"},{\"type\":\"null\"}]}}}},{\"name\":\"get\",\"parameters\":{"
	"\"type\":"
	"\"object\",\"properties\":{\"x\":{\"type\":\"string\"},\"y\":{\"type\":\"string\"}}}}]";

/* A value of an argument, as it is written and as JSON. */
static const struct {
	const char *key, *said, *json;
} values[] = {
	{ "s", "5", "\"5\"" },
	{ "s", "null", "\"null\"" },
	{ "s", "{\"a\": 1}", "\"{\\\"a\\\": 1}\"" },
	{ "s", "True", "\"True\"" },
	{ "maybe", "5", "\"5\"" },
	{ "maybe", "3.10", "\"3.10\"" },
	{ "maybe", "true", "\"true\"" },
	{ "maybe", "{\"a\": 1}", "\"{\\\"a\\\": 1}\"" },
	{ "maybe", "[1, 2]", "\"[1, 2]\"" },
	{ "maybe", "null", "null" },
	{ "maybe", "None", "null" },
	{ "maybe", "none", "\"none\"" },
	{ "maybe", "nothing", "\"nothing\"" },
	{ "maybe", "None of it", "\"None of it\"" },
	{ "maybe", "a text", "\"a text\"" },
	{ "list", "5", "\"5\"" },
	{ "list", "null", "null" },
	{ "list", "-1e5", "\"-1e5\"" },
	{ "ref", "5", "\"5\"" },
	{ "ref", "false", "\"false\"" },
	{ "all", "5", "\"5\"" },
	{ "one", "1", "\"1\"" },
	{ "one", "3", "\"3\"" },
	{ "one", "null", "null" },
	{ "num", "5", "5" },
	{ "num", "5.5", "\"5.5\"" },
	{ "num", "5 apples", "\"5 apples\"" },
	{ "i", "42", "42" },
	{ "i", "many", "\"many\"" },
	{ "b", "true", "true" },
	{ "b", "True", "true" },
	{ "b", "False", "false" },
	{ "b", "FALSE", "false" },
	{ "b", "Trueish", "\"Trueish\"" },
	{ "bn", "None", "null" },
	{ "bn", "True", "true" },
	{ "bn", "null", "null" },
	{ "o", "{\"a\": [1, \"x\"]}", "{\"a\":[1,\"x\"]}" },
	{ "o", "{'a': [True, None, 'it\\'s \"x\"'], 'b': {'c': False}}",
	  "{\"a\":[true,null,\"it's \\\"x\\\"\"],\"b\":{\"c\":false}}" },
	{ "a", "[1, 2]", "[1,2]" },
	{ "a", "['x', True]", "[\"x\",true]" },
	{ "so", "{\"a\": 1}", "{\"a\":1}" },
	{ "so", "[1]", "\"[1]\"" },
	{ "any", "5", "5" },
	{ "any", "a text", "\"a text\"" },
	{ "extra", "5", "5" },
};

/* ---- texts of whole answers: T, B, P, E and U as in t_call_stream */
static const struct row {
	enum tools_form form;
	const char *said, *told;
} rows[] = {
	/* Names. */
	{ TOOLS_BARE, "{\"name\": \"Bob\", \"age\": 5}", "T{\"name\": \"Bob\", \"age\": 5}" },
	{ TOOLS_BARE, "{\"name\": \"Bob\", \"parameters\": {\"age\": 5}}",
	  "T{\"name\": \"Bob\", \"parameters\": {\"age\": 5}}" },
	{ TOOLS_BARE, "{\"name\": \"add\", \"age\": 5}", "T{\"name\": \"add\", \"age\": 5}" },
	{ TOOLS_BARE, "{\"type\": \"function\", \"name\": \"now\"}", "Bnow\nP{}\nE" },
	{ TOOLS_BARE, "{\"name\": \"add\", \"parameters\": {\"i\": 5}}", "Badd\nP{\"i\":5}\nE" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"sub\", \"arguments\": {}}</tool_call> so",
	  "T<tool_call>{\"name\": \"sub\", \"arguments\": {}}</tool_call> so" },
	{ TOOLS_LIST, "[TOOL_CALLS][{\"name\":\"sub\",\"arguments\":{}}]",
	  "T[TOOL_CALLS][{\"name\":\"sub\",\"arguments\":{}}]" },
	{ TOOLS_ARGS, "[TOOL_CALLS]sub[ARGS]{\"a\":1}", "T[TOOL_CALLS]sub[ARGS]{\"a\":1}" },
	{ TOOLS_ARGS, "[TOOL_CALLS]now[ARGS]{\"a\":1}", "Bnow\nP{\"a\":1}\nE" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[sub(a=1)]<|tool_call_end|>",
	  "T<|tool_call_start|>[sub(a=1)]<|tool_call_end|>" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=sub>\n</function>\n</tool_call>",
	  "T<tool_call>\n<function=sub>\n</function>\n</tool_call>" },
	{ TOOLS_GLM, "<tool_call>sub\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
	  "T<tool_call>sub\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>" },
	/* Arguments that are null are none. */
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"now\", \"arguments\": null}</tool_call>", "Bnow\nP{}\nE" },
	{ TOOLS_TAGGED, "<tool_call>{\"arguments\": null, \"name\": \"now\"}</tool_call>", "Bnow\nP{}\nE" },
	{ TOOLS_BARE, "{\"name\": \"now\", \"parameters\": null}", "Bnow\nP{}\nE" },
	{ TOOLS_LIST, "[TOOL_CALLS][{\"name\":\"now\",\"arguments\":null},{\"name\":\"add\",\"arguments\":{}}]",
	  "Bnow\nP{}\nE\nBadd\nP{}\nE" },
	/* A schema that is not supported says what it can. */
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=odd>\n<parameter=s>\n5\n</parameter>\n<parameter=m>\n6\n</"
	  "parameter>\n<parameter=u>\n7\n"
	  "</parameter>\n</function>\n</tool_call>",
	  "Bodd\nP{\"s\":\"5\",\"m\":\"6\",\"u\":7}\nE" },
	/* Words of Python and of Gemma's braces. */
	{ TOOLS_PYTHON,
	  "<|tool_call_start|>[add(s=5, maybe=True, i=5, num=6, any=7, bn=None, extra=8)]<|tool_call_end|>",
	  "Badd\nP{\"s\":\"5\",\"maybe\":\"True\",\"i\":5,\"num\":6,\"any\":7,\"bn\":null,\"extra\":8}\nE" },
	{ TOOLS_BRACES, "<|tool_call>call:add{s:5,i:5,a:[1],maybe:null}<tool_call|>",
	  "Badd\nP{\"s\":\"5\",\"i\":5,\"a\":[1],\"maybe\":null}\nE" },
	/* Two objects between the same marks, and texts beside them. */
	{ TOOLS_TAGGED,
	  "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"i\":1}}\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>",
	  "Badd\nP{\"i\":1}\nE\nBnow\nP{}\nE" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"now\"},{\"name\":\"now\"},{\"name\":\"now\"}</tool_call>",
	  "Bnow\nP{}\nE\nBnow\nP{}\nE\nBnow\nP{}\nE" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"now\"}{\"name\":\"sub\"}</tool_call>",
	  "Bnow\nP{}\nE\nT{\"name\":\"sub\"}" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"now\"} that was it</tool_call>", "Bnow\nP{}\nE\nTthat was it" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"now\"}}\n</tool_call>", "Bnow\nP{}\nE" },
	/* A call that never ends keeps what was written, and no call begins in it. */
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"now\",\"arguments\":\"{\\\"a(\":{}}</tool_call>", "Bnow\nP{\"a(\nU" },
	{ TOOLS_ELEMENTS, "<tool_call>{\"name\":\"now\"}\n{\"name\":\"add\",\"arguments\":{}}</tool_call>",
	  "Bnow\nP{}\nE\nBadd\nP{}\nE" },
	/* Calls without the mark that opens them. */
	{ TOOLS_ELEMENTS, "Well. <function=get>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>",
	  "TWell. \nBget\nP{\"x\":\"1\"}\nE" },
	{ TOOLS_ELEMENTS, "<function=get>\n<parameter=x>\n1\n</parameter>\n</function>", "Bget\nP{\"x\":\"1\"}\nE" },
	{ TOOLS_ELEMENTS, "<function=now>\n</function>\n<function=now>\n</function> and",
	  "Bnow\nP{}\nE\nBnow\nP{}\nE\nT and" },
	{ TOOLS_ELEMENTS, "write <function=foo> here", "Twrite <function=foo> here" },
	{ TOOLS_SEED, "<function=get>\n<parameter=x>1</parameter>\n</function>\n</seed:tool_call>",
	  "Bget\nP{\"x\":\"1\"}\nE" },
	/* What closes a value, in it and left out. */
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=get>\n<parameter=x>\na </parameter> b\n</parameter>\n<parameter=y>\n2\n</parameter>\n"
	  "</function>\n</tool_call>",
	  "Bget\nP{\"x\":\"a </parameter> b\",\"y\":\"2\"}\nE" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=get>\n<parameter=x>\na\n</parameter>\nb\n</parameter>\n</function>\n</tool_call>",
	  "Bget\nP{\"x\":\"a\\n</parameter>\\nb\"}\nE" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=get>\n<parameter=x>\n1\n<parameter=y>\n2\n</parameter>\n</function>\n</tool_call>",
	  "Bget\nP{\"x\":\"1\",\"y\":\"2\"}\nE" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=get>\n<parameter=x>\n1\n<parameter=z>\n2\n</parameter>\n</function>\n</tool_call>",
	  "Bget\nP{\"x\":\"1\\n<parameter=z>\\n2\"}\nE" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=get>\n<parameter=x>\n1\n</function>\n</tool_call>",
	  "Bget\nP{\"x\":\"1\"}\nE" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=get>\n<parameter=x>\n1\n</function>", "Bget\nP{\"x\":\"1\"}\nE" },
	{ TOOLS_ELEMENTS,
	  "<tool_call>\n<function=add>\n<parameter=i>\n1\n<parameter=b>\nTrue\n</parameter>\n</function>\n</tool_call>",
	  "Badd\nP{\"i\":1,\"b\":true}\nE" },
	{ TOOLS_GLM, "<tool_call>get\n<arg_key>x</arg_key>\n<arg_value>a</arg_value> b</arg_value>\n</tool_call>",
	  "Bget\nP{\"x\":\"a</arg_value> b\"}\nE" },
	{ TOOLS_GLM,
	  "<tool_call>get\n<arg_key>x</arg_key>\n<arg_value>a\n<arg_key>y</arg_key>\n<arg_value>b</arg_value>\n</"
	  "tool_call>",
	  "Bget\nP{\"x\":\"a\\n\",\"y\":\"b\"}\nE" },
	{ TOOLS_INVOKE,
	  "<minimax:tool_call>\n<invoke name=\"get\">\n<parameter name=\"x\">a</parameter>b</parameter>\n</invoke>\n"
	  "</minimax:tool_call>",
	  "Bget\nP{\"x\":\"a</parameter>b\"}\nE" },
	/* What is no part of a call is a text. */
	{ TOOLS_ELEMENTS,
	  "<tool_call>\nI call it: <function=add>\nwith\n<parameter=i>\n1\n</parameter>\nas it "
	  "is\n</function>\nthere\n</tool_call>",
	  "TI call it: \nBadd\nP{\"i\":1}\nE\nTwith\n\nas it is\nthere\n" },
};

struct told {
	struct bytes log;
	char last;
};

static void note(struct told *o, char kind, const char *p, size_t n)
{
	if (kind != o->last || (kind != 'T' && kind != 'P')) {
		bytes_text(&o->log, o->log.n ? "\n" : "");
		bytes_add(&o->log, &kind, 1);
	}
	bytes_add(&o->log, p, n);
	o->last = kind;
}

static void write_down(struct told *o, const struct tool_calls *t)
{
	const struct tool_events *f = &t->found;

	assert_false(t->lost);
	for (size_t i = 0; i < f->n_events; i++) {
		const struct tool_event *e = &f->event[i];
		switch (e->kind) {
		case TOOL_TEXT: note(o, 'T', f->text.p + e->from, e->n); break;
		case TOOL_BEGINS: note(o, 'B', f->call[e->call].name, strlen(f->call[e->call].name)); break;
		case TOOL_DELTA: note(o, 'P', f->call[e->call].arguments.p + e->from, e->n); break;
		case TOOL_ENDS: note(o, f->call[e->call].whole ? 'E' : 'U', "", 0); break;
		}
	}
}

static void check(enum tools_form form, const char *said, const char *told)
{
	const size_t n = strlen(said);

	for (size_t size = 1; size <= n; size = size < 5 ? size + 1 : size * 2 < n ? size * 2 : size < n ? n : n + 1) {
		struct tool_calls t = { 0 };
		struct told o = { 0 };
		tool_calls_begin(&t, form, NULL, functions);
		for (size_t at = 0; at < n; at += size) {
			tool_calls_take(&t, said + at, n - at < size ? n - at : size);
			write_down(&o, &t);
		}
		tool_calls_end(&t, false);
		write_down(&o, &t);
		bytes_add(&o.log, "", 1);
		if (strcmp(o.log.p, told) != 0)
			fail_msg("pieces of %zu of: %s\nare: %s\nexpected: %s", size, said, o.log.p, told);
		bytes_free(&o.log);
		tool_calls_free(&t);
	}
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(rows[i].form, rows[i].said, rows[i].told);
}

/* In each form of elements that does not tell texts from other values. */
static void test_values(void **state)
{
	static const struct {
		enum tools_form form;
		const char *before_key, *before_value, *behind;
	} forms[] = {
		{ TOOLS_ELEMENTS, "<tool_call>\n<function=add>\n<parameter=", ">\n",
		  "\n</parameter>\n</function>\n</tool_call>" },
		{ TOOLS_SEED, "<seed:tool_call>\n<function=add>\n<parameter=", ">",
		  "</parameter>\n</function>\n</seed:tool_call>" },
		{ TOOLS_GLM, "<tool_call>add\n<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>" },
		{ TOOLS_INVOKE, "<minimax:tool_call>\n<invoke name=\"add\">\n<parameter name=\"", "\">",
		  "</parameter>\n</invoke>\n</minimax:tool_call>" },
		{ TOOLS_PARAM, "<function name=\"add\"><param name=\"", "\">", "</param></function>" },
	};
	char said[600], told[600];
	(void)state;

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
			snprintf(said, sizeof said, "%s%s%s%s%s", forms[k].before_key, values[i].key,
			         forms[k].before_value, values[i].said, forms[k].behind);
			snprintf(told, sizeof told, "Badd\nP{\"%s\":%s}\nE", values[i].key, values[i].json);
			check(forms[k].form, said, told);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
