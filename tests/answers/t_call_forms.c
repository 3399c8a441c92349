/* tests/answers/t_call_forms.c - calls that a grammar forces, in each form: whatever it allows is read as a
 * call that is right by the schema, and what models write for such calls is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/tool_calls.h"
#include "grammar/call/call.h"
#include "base/json_write.h"
#include "answers/tool_grammar.h"
#include "tests/support/shared.h"

#define DSML \
	"\xef\xbd\x9c" \
	"DSML" \
	"\xef\xbd\x9c"

static const char parameters[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"text\":{\"type\":\"string\",\"maxLength\":3},"
	"\"count\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":99},"
	"\"maybe\":{\"anyOf\":[{\"type\":\"string\",\"maxLength\":5},{\"type\":\"null\"}]},"
	"\"list\":{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"boolean\"],\"maxLength\":2},\"maxItems\":2},"
	"\"deep\":{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\",\"maxLength\":2},\"l\":{\"type\":"
	"\"array\",\"items\":{\"type\":\"null\"},\"maxItems\":1}},\"required\":[\"k\"],\"additionalProperties\":false}"
	"},\"required\":[\"text\",\"count\"],\"additionalProperties\":false}";

/* Of a call of one function, as JSON in this form; forms that are no JSON have it as {"name": ..., "arguments": ...}.
 */
static json_t *schema_of_call(const struct tools_row *row, const char *name, json_t *own)
{
	bool json = row->body == BODY_JSON;

	if (json && !row->name)
		return json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", name, own, "required",
		                 name, "additionalProperties", 0);
	const char *of_name = json ? row->name : "name", *arguments = json ? row->arguments : "arguments";
	return json_pack("{s:s, s:{s:{s:s}, s:o}, s:[s,s], s:b}", "type", "object", "properties", of_name, "const",
	                 name, arguments, own, "required", of_name, arguments, "additionalProperties", 0);
}

/* The schema of calls of f, with these parameters, and of g, which has none. */
static json_t *schema_of_calls(enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];
	json_t *f = json_loads(parameters, 0, NULL);
	json_t *g = json_pack("{s:s, s:b}", "type", "object", "additionalProperties", 0);
	json_t *any = json_pack("{s:[o, o]}", "anyOf", schema_of_call(row, "f", f), schema_of_call(row, "g", g));

	return row->body != BODY_JSON || !row->list
	               ? any
	               : json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", any, "minItems", 1, "maxItems", 1);
}

static struct machine *machine_of_form(enum tools_form form)
{
	struct error err = { 0 };
	json_t *o = tool_grammar_form(form);

	assert_non_null(o);
	json_object_set_new(o, "schema", schema_of_calls(form));
	char *text = json_write(o);
	struct machine *m = machine_of_call(text, strlen(text), 0, &err);
	if (!m)
		fail_msg("form %d: %s", form, err.text);
	free(text);
	return m;
}

static uint32_t walk(struct machine *m, uint32_t state, const char *text)
{
	for (; *text && state != MACHINE_DEAD; text++)
		state = machine_step(m, state, (uint8_t)*text);
	return state;
}

/* Judged by the machine of the parameters alone. */
static bool is_right(const char *name, const char *arguments)
{
	static const char none[] = "{\"type\":\"object\",\"additionalProperties\":false}";
	struct error err = { 0 };
	const char *schema = strcmp(name, "f") == 0 ? parameters : strcmp(name, "g") == 0 ? none : "false";
	struct machine *m = machine_of_schema(schema, strlen(schema), true, &err);
	bool right = m && machine_ends(m, walk(m, m->start, arguments));

	machine_close(m);
	return right;
}

/* The same functions as a request has them. */
static char *functions_text(void)
{
	return json_write(json_pack("[{s:s, s:o}, {s:s, s:{s:s, s:b}}]", "name", "f", "parameters",
	                            json_loads(parameters, 0, NULL), "name", "g", "parameters", "type", "object",
	                            "additionalProperties", 0));
}

static void check_read(enum tools_form form, const char *said, const char *functions)
{
	struct tool_calls t = { 0 };

	tool_calls_begin(&t, form, tool_grammar_before_name(form), functions);
	tool_calls_take(&t, said, strlen(said));
	tool_calls_end(&t, false);
	const struct tool_call *call = t.found.call;
	char *arguments = t.found.n ? strndup(call->arguments.p, call->arguments.n) : NULL;
	if (t.found.n != 1 || !call->whole || !is_right(call->name, arguments))
		fail_msg("form %d: %zu calls, %s %s, of: %s", form, t.found.n, t.found.n ? call->name : "",
		         arguments ? arguments : "", said);
	free(arguments);
	tool_calls_free(&t);
}

static uint64_t seed = 88172645463325252u;
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

/* Any byte that is allowed, until the end: there is always one. */
static bool say_anything(struct machine *m, char *said, size_t max)
{
	uint32_t state = m->start;
	size_t n = 0;

	while (n + 1 < max && !(machine_ends(m, state) && draw(2))) {
		uint8_t can[256];
		unsigned k = 0;
		for (unsigned b = 1; b < 256; b++)
			if (machine_step(m, state, (uint8_t)b) != MACHINE_DEAD)
				can[k++] = (uint8_t)b;
		if (k == 0)
			break;
		said[n] = (char)can[draw(k)];
		state = machine_step(m, state, (uint8_t)said[n++]);
	}
	said[n] = 0;
	if (n + 1 == max)
		return false;
	if (!machine_ends(m, state))
		fail_msg("nothing can follow: %s", said);
	return true;
}

static void test_anything(void **state)
{
	char said[2000];
	unsigned max = test_quick() ? (SANITIZED ? 50 : 100) : 3000;
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct machine *m = machine_of_form(form);
		char *functions = functions_text();
		unsigned whole = 0;
		for (unsigned i = 0; i < max; i++)
			if (say_anything(m, said, sizeof said)) {
				check_read(form, said, functions);
				whole++;
			}
		assert_false(m->failed);
		if (whole < max / 2)
			fail_msg("form %d: %u texts of %u have an end", form, whole, max);
		free(functions);
		machine_close(m);
	}
}

/* What models write, behind what the prompt ends with; ends: whether that is a call. */
static const struct {
	enum tools_form form;
	const char *said;
	bool ends;
	const char *arguments;
} rows[] = {
	{ TOOLS_ELEMENTS, "f>\n<parameter=text>\n42\n</parameter>\n<parameter=count>\n7\n</parameter>\n</function>",
	  true, "{\"text\":\"42\",\"count\":7}" },
	{ TOOLS_ELEMENTS, "f>\n<parameter=text>\n<\n\n\n</parameter>\n<parameter=count>\n7\n</parameter>\n</function>",
	  true, "{\"text\":\"<\\n\\n\",\"count\":7}" },
	/* Parameters come in the schema's order. */
	{ TOOLS_ELEMENTS, "f>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\nx\n</parameter>\n<parameter=text",
	  false, NULL },
	{ TOOLS_ELEMENTS,
	  "f>\n<parameter=text>\n\"\n</parameter>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\nnull\n"
	  "</parameter>\n<parameter=list>\n[\"a\", true]\n</parameter>\n</function>",
	  true, "{\"text\":\"\\\"\",\"count\":7,\"maybe\":null,\"list\":[\"a\",true]}" },
	{ TOOLS_ELEMENTS,
	  "f>\n<parameter=text>\n\n</parameter>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\ntrues\n"
	  "</parameter>\n</function>",
	  true, "{\"text\":\"\",\"count\":7,\"maybe\":\"trues\"}" },
	{ TOOLS_ELEMENTS, "g>\n</function>", true, "{}" },
	{ TOOLS_ELEMENTS, "h", false, NULL },
	{ TOOLS_ELEMENTS, "f>\n</", false, NULL },
	{ TOOLS_ELEMENTS, "f>\n<parameter=text>\nabcd", false, NULL },
	{ TOOLS_ELEMENTS, "f>\n<parameter=count>\n100", false, NULL },
	{ TOOLS_ELEMENTS, "f>\n<parameter=other", false, NULL },
	{ TOOLS_ELEMENTS, "f>\n<parameter=text>\na\n</parameter>\n<parameter=t", false, NULL },
	{ TOOLS_ELEMENTS,
	  "f>\n<parameter=text>\na\n</parameter>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\ntrue\n"
	  "</parameter>\n</function>",
	  true, "{\"text\":\"a\",\"count\":7,\"maybe\":\"true\"}" },
	{ TOOLS_ELEMENTS,
	  "f>\n<parameter=text>\na\n</parameter>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\n5 {x\n"
	  "</parameter>\n</function>",
	  true, "{\"text\":\"a\",\"count\":7,\"maybe\":\"5 {x\"}" },
	/* It is read as null, and no text. */
	{ TOOLS_ELEMENTS,
	  "f>\n<parameter=text>\na\n</parameter>\n<parameter=count>\n7\n</parameter>\n<parameter=maybe>\nNone\n"
	  "</parameter>\n</function>",
	  false, NULL },
	{ TOOLS_SEED, "f>\n<parameter=text>a\n</parameter>\n<parameter=count>7</parameter>\n</function>", true,
	  "{\"text\":\"a\\n\",\"count\":7}" },
	{ TOOLS_GLM,
	  "f\n<arg_key>text</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>count</arg_key>\n<arg_value>7</arg_value>",
	  true, "{\"text\":\"a b\",\"count\":7}" },
	{ TOOLS_GLM, "f<arg_key>text</arg_key><arg_value>1</arg_value><arg_key>count</arg_key><arg_value>7</arg_value>",
	  true, "{\"text\":\"1\",\"count\":7}" },
	{ TOOLS_GLM, "g", true, "{}" },
	{ TOOLS_GLM, "f<arg_key>text</arg_key><arg_value>1</arg_value>", false, NULL },
	{ TOOLS_HY,
	  "f<tool_sep:opensource>\n<arg_key:opensource>text</arg_key:opensource>\n<arg_value:opensource>1"
	  "</arg_value:opensource>\n<arg_key:opensource>count</arg_key:opensource>\n<arg_value:opensource>-5"
	  "</arg_value:opensource>",
	  true, "{\"text\":\"1\",\"count\":-5}" },
	{ TOOLS_INVOKE,
	  "f\">\n<parameter name=\"text\"><b></parameter>\n<parameter name=\"count\">7</parameter>\n</invoke>", true,
	  "{\"text\":\"<b>\",\"count\":7}" },
	{ TOOLS_DSML,
	  "f\">\n<" DSML "parameter name=\"text\" string=\"true\">1</" DSML "parameter>\n<" DSML
	  "parameter name=\"count\" string=\"false\">7</" DSML "parameter>\n</" DSML "invoke>",
	  true, "{\"text\":\"1\",\"count\":7}" },
	{ TOOLS_DSML, "f\">\n<" DSML "parameter name=\"text\" string=\"f", false, NULL },
	{ TOOLS_DSML, "f\">\n<" DSML "parameter name=\"count\" string=\"t", false, NULL },
	{ TOOLS_PARAM,
	  "f\"><param name=\"text\"><![CDATA[<]]></param><param name=\"count\">7</param><param name=\"maybe\">x</param>"
	  "</function>",
	  true, "{\"text\":\"<\",\"count\":7,\"maybe\":\"x\"}" },
	{ TOOLS_PYTHON, "f(text='it\\'', count=7, maybe=None, list=['a', True], deep={'k': \"'\", 'l': [None]})]", true,
	  "{\"text\":\"it'\",\"count\":7,\"maybe\":null,\"list\":[\"a\",true],\"deep\":{\"k\":\"'\",\"l\":[null]}}" },
	{ TOOLS_PYTHON, "f(text=\"\\n\\\\\", count=-1)]", true, "{\"text\":\"\\n\\\\\",\"count\":-1}" },
	{ TOOLS_PYTHON, "g()]", true, "{}" },
	{ TOOLS_PYTHON, "f(text='a')", false, NULL },
	{ TOOLS_PYTHON, "f(text='a', count=7, maybe=true", false, NULL },
	{ TOOLS_BRACES, "f{text:<|\"|>b<|\"|>,count:7,maybe:null,list:[],deep:{k:<|\"|>a}<|\"|>,l:[null]}}", true,
	  "{\"text\":\"b\",\"count\":7,\"maybe\":null,\"list\":[],\"deep\":{\"k\":\"a}\",\"l\":[null]}}" },
	{ TOOLS_BRACES, "g{}", true, "{}" },
	{ TOOLS_BRACES, "f{count:7}", false, NULL },
	{ TOOLS_BRACES, "f{count:<", false, NULL },
	{ TOOLS_ARGS, "f[ARGS]{\"text\": \"a\", \"count\": 7}", true, "{\"text\":\"a\",\"count\":7}" },
	{ TOOLS_KIMI, "f:0<|tool_call_argument_begin|>{\"text\": \"a\", \"count\": 7}", true,
	  "{\"text\":\"a\",\"count\":7}" },
	{ TOOLS_HARMONY, "f<|channel|>commentary json<|message|>{\"text\": \"a\", \"count\": 7}", true,
	  "{\"text\":\"a\",\"count\":7}" },
	{ TOOLS_ARGS, "f[ARGS][", false, NULL },
	{ TOOLS_TAGGED, "f\", \"arguments\": {\"text\": \"a\", \"count\": 7}}", true, "{\"text\":\"a\",\"count\":7}" },
	{ TOOLS_TAGGED, "g\", \"arguments\": {}}\n", true, "{}" },
	{ TOOLS_TAGGED, "g\"}", false, NULL },
	{ TOOLS_TAGGED, "h", false, NULL },
	{ TOOLS_TAGGED, "f\", \"name", false, NULL },
	{ TOOLS_BARE, "f\", \"parameters\": {\"text\": \"a\", \"count\": 7}}", true, "{\"text\":\"a\",\"count\":7}" },
	{ TOOLS_LIST, "g\", \"arguments\": {}}]", true, "{}" },
	{ TOOLS_LIST, "g\", \"arguments\": {}}", false, NULL },
	{ TOOLS_ACTION, "g\", \"parameters\": {}}]", true, "{}" },
	{ TOOLS_PREFIX, "g\": {}}]", true, "{}" },
	{ TOOLS_PREFIX, "h", false, NULL },
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct machine *m = machine_of_form(rows[i].form);
		char *functions = functions_text();
		uint32_t at = walk(m, m->start, rows[i].said);
		if (machine_ends(m, at) != rows[i].ends)
			fail_msg("form %d: %s: %s", rows[i].form, rows[i].ends ? "not allowed" : "allowed",
			         rows[i].said);
		if (rows[i].ends) {
			struct tool_calls t = { 0 };
			tool_calls_begin(&t, rows[i].form, tool_grammar_before_name(rows[i].form), functions);
			tool_calls_take(&t, rows[i].said, strlen(rows[i].said));
			tool_calls_end(&t, false);
			assert_int_equal(t.found.n, 1);
			assert_true(t.found.call[0].whole);
			assert_int_equal(t.found.call[0].arguments.n, strlen(rows[i].arguments));
			assert_memory_equal(t.found.call[0].arguments.p, rows[i].arguments, strlen(rows[i].arguments));
			tool_calls_free(&t);
		}
		free(functions);
		machine_close(m);
	}
}

/* In braces, arguments come in the order of dictsort, whatever order the request has. */
static void test_order_in_braces(void **state)
{
	static const char tools[] =
		"[{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"required\":[\"b\",\"Z\",\"a\"],\"properties\":{"
		"\"b\":{\"type\":\"object\",\"properties\":{\"y\":{\"type\":\"null\"},\"X\":{\"type\":\"null\"}}},"
		"\"Z\":{\"type\":\"null\"},\"a\":{\"type\":\"null\"}}}}]";
	static const struct {
		enum tools_form form;
		const char *said;
		bool ends;
	} said[] = { { TOOLS_BRACES, "f{a:null,b:{X:null,y:null},Z:null}", true },
		     { TOOLS_BRACES, "f{b:{X:null,y:null},Z:null,a:null}", false },
		     { TOOLS_BRACES, "f{a:null,b:{y:null,X:null},Z:null}", false },
		     { TOOLS_PYTHON, "f(b={'y': None, 'X': None}, Z=None, a=None)]", true } };
	json_t *functions = json_loads(tools, 0, NULL);
	(void)state;

	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		struct error err = { 0 };
		struct tool_grammar g;
		assert_true(tool_grammar_make(&g, functions, said[i].form, true, &err));
		struct machine *m = machine_of_call(g.text, strlen(g.text), 0, &err);
		assert_non_null(m);
		if (machine_ends(m, walk(m, m->start, said[i].said)) != said[i].ends)
			fail_msg("%s: %s", said[i].ends ? "not allowed" : "allowed", said[i].said);
		machine_close(m);
		tool_grammar_free(&g);
	}
	json_decref(functions);
}

/* machine_easy() promises what steps then do. */
static void test_easy(void **state)
{
	static const char *const of_class[EASY_CLASSES] = {
		[EASY_ASCII] = "<>'!", [EASY_SOLID] = "</=", [EASY_WORD] = "XY_", [EASY_LOWER] = "pa"
	};
	char said[2000];
	unsigned some = 0;
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct machine *m = machine_of_form(form);
		for (unsigned round = 0; round < 100; round++) {
			say_anything(m, said, sizeof said);
			said[draw((uint32_t)strlen(said) + 1)] = 0;
			uint32_t from = walk(m, m->start, said);
			for (unsigned c = EASY_ASCII; c < EASY_CLASSES; c++) {
				uint32_t max = machine_easy(m, from, (enum easy)c), at = from;
				for (uint32_t k = 0; k < max && k < 40; k++) {
					const char *set = of_class[c];
					at = machine_step(m, at, (uint8_t)set[draw((uint32_t)strlen(set))]);
					assert_int_not_equal(at, MACHINE_DEAD);
					some++;
				}
			}
		}
		machine_close(m);
	}
	assert_true(some > 100);
}

/* A mark that opens no call is text, with the space before it. */
static void test_no_call(void **state)
{
	static const struct {
		enum tools_form form;
		const char *said;
	} texts[] = { { TOOLS_ACTION, " \n<|START_ACTION|>[{\n  " },
		      { TOOLS_ACTION, "<|START_ACTION|>[{\n  " },
		      { TOOLS_TAGGED, "\n\n<tool_call>\nno object</tool_call>" } };
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct tool_calls t = { 0 };
		char said[100] = "";
		tool_calls_begin(&t, texts[i].form, NULL, NULL);
		for (const char *p = texts[i].said; *p; p++) {
			tool_calls_take(&t, p, 1);
			strncat(said, t.found.text.p ? t.found.text.p : "", t.found.text.n);
		}
		tool_calls_end(&t, false);
		strncat(said, t.found.text.p ? t.found.text.p : "", t.found.text.n);
		assert_int_equal(t.found.n, 0);
		assert_string_equal(said, texts[i].said);
		tool_calls_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),    cmocka_unit_test(test_order_in_braces),
		cmocka_unit_test(test_no_call), cmocka_unit_test(test_anything),
		cmocka_unit_test(test_easy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
