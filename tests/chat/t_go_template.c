/* tests/chat/t_go_template.c - templates in Go's language by themselves: constructs with what Go makes of them, which
 * language a template is taken for, refusals with their lines, limits, marks, and a lack of memory at every place.
 *
 * t_go_template.sh compares with Go itself, where that is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "chat/chat.h"

/* ---- allocations that fail: the program is linked with --wrap */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
static long until_failure = -1; /* the next this many succeed; below 0: all */

static bool fails(void) { return until_failure >= 0 && until_failure-- == 0; }
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
char *__wrap_strdup(const char *s) { return fails() ? NULL : __real_strdup(s); }

/* ---- one template */

static const char usual_messages[] =
	"[{\"role\":\"system\",\"content\":\"Be <kind>.\"},{\"role\":\"user\",\"content\":\"Look\"},"
	"{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"hm\",\"tool_calls\":[{\"id\":\"c1\","
	"\"function\":"
	"{\"name\":\"look\",\"arguments\":\"{\\\"b\\\":1.5,\\\"a\\\":\\\"<x>\\\",\\\"n\\\":123456789}\"}}]},"
	"{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"seen\"},{\"role\":\"user\",\"content\":\"And?\"}]";
static const char usual_tools[] =
	"[{\"type\":\"function\",\"function\":{\"name\":\"look\",\"description\":\"sees\",\"strict\":true,"
	"\"parameters\":{"
	"\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":"
	"\"number\","
	"\"minimum\":1},\"a\":{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",1]},\"free\":true}}}}]";

struct case_of {
	const char *messages, *tools, *think, *effort, *prompt, *suffix, *begins;
};
static const struct case_of usual = { .messages = usual_messages, .tools = usual_tools };

/* False with err set. */
static bool run(const char *template, size_t n, const struct case_of *c, struct chat_text *out, struct error *err)
{
	static const struct tm now = { .tm_year = 124, .tm_mon = 2, .tm_mday = 1 };
	const struct {
		const char *name, *json;
	} rows[] = { { "messages", c->messages },           { "tools", c->tools },   { "enable_thinking", c->think },
		     { "reasoning_effort", c->effort },     { "prompt", c->prompt }, { "suffix", c->suffix },
		     { "add_generation_prompt", c->begins } };
	struct chat_variable v[8];
	size_t n_v = 0;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].json)
			v[n_v++] = (struct chat_variable){ rows[i].name, rows[i].json, strlen(rows[i].json),
				                           i ? CHAT_USER : CHAT_MESSAGES };
	memset(out, 0, sizeof *out);
	struct chat_template *t = chat_template_parse(template, n, "test", err);
	bool ok = t && chat_render(t, &(struct chat_request){ v, n_v, &now, false }, out, NULL, err);
	chat_template_free(t);
	return ok;
}

static void expect_of(const char *template, const struct case_of *c, const char *text)
{
	struct error err = { 0 };
	struct chat_text out;

	assert_true(chat_template_is_go(template, strlen(template)));
	if (!run(template, strlen(template), c, &out, &err))
		fail_msg("%s: %s", template, err.text);
	assert_string_equal(out.p, text);
	chat_text_free(&out);
}

static void expect(const char *template, const char *text) { expect_of(template, &usual, text); }

static void refused_of(const char *template, const struct case_of *c, const char *says)
{
	struct error err = { 0 };
	struct chat_text out;

	if (run(template, strlen(template), c, &out, &err))
		fail_msg("%.100s: expected the refusal \"%s\", found \"%.100s\"", template, says, out.p);
	assert_string_equal(err.text, says);
	assert_null(out.p);
	assert_null(out.span);
}

static void refused(const char *template, const char *says) { refused_of(template, &usual, says); }

/* ---- constructs */

static void test_constructs(void **state)
{
	(void)state;
	expect("{{ len .Messages }}{{/* a }} b */}} {{- /* c */ -}} d {{- .Nope }}", "5d<no value>");
	expect("{{ range $i, $m := .Messages }}{{ if $i }}, {{ end }}{{ $i }} {{ $m.Role }}{{ end }}",
	       "0 system, 1 user, 2 assistant, 3 tool, 4 user");
	expect("{{ range .Messages }}{{ if eq .Role \"tool\" \"user\" }}{{ continue }}{{ end }}{{ .Role }};{{ end }}",
	       "system;assistant;");
	expect("{{ range .Messages }}{{ if eq .Role \"tool\" }}{{ break }}{{ end }}{{ .Role }};{{ end }}",
	       "system;user;assistant;");
	expect("{{ $x := 0 }}{{ range $i, $_ := .Messages }}{{ if gt $i 2 }}{{ $x = $i }}{{ end }}{{ end }}{{ $x }}",
	       "4");
	expect("{{ range .Messages }}{{ range .ToolCalls }}{{ .Function.Name }}{{ .Function.Arguments }}{{ .ID }}{{ "
	       "end }}"
	       "{{ .Thinking }}{{ .ToolName }}{{ .ToolCallID }}{{ end }}",
	       "look{\"a\":\"\\u003cx\\u003e\",\"b\":1.5,\"n\":123456789}c1hmlookc1");
	expect("{{ range (index .Messages 2).ToolCalls }}{{ range $k, $v := .Function.Arguments }}{{ $k }}={{ $v }};{{ "
	       "end }}"
	       "{{ end }}{{ len .Messages }}",
	       "a=<x>;b=1.5;n=1.23456789e+08;5");
	expect("{{ .Tools }}{{ with .Messages }}{{ end }}",
	       "[{\"type\":\"function\",\"function\":{\"name\":\"look\",\"description\":\"sees\",\"parameters\":{"
	       "\"type\":\"object\",\"required\":[\"b\"],\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],"
	       "\"enum\":[\"x\",1]},\"b\":{\"type\":\"number\"},\"free\":{}}}}}]");
	expect("{{ with .System }}{{ . }}{{ else }}none{{ end }}{{ with .Nope }}a{{ else with .ThinkLevel }}b{{ else "
	       "}}c"
	       "{{ end }}{{ len .Messages }}",
	       "Be <kind>.c5");
	expect("{{ range $i := 3 }}{{ $i }}{{ else }}x{{ end }}{{ range 0 }}y{{ else }}z{{ end }}{{ len .Messages }}",
	       "012z5");
	expect("{{ define \"a\" }}<{{ . }}{{ $ }}>{{ end }}{{ template \"a\" (len .Messages) }}{{ template \"a\" }}"
	       "{{ block \"b\" .System }}[{{ . }}]{{ end }}",
	       "<55><<no value><no value>>[Be <kind>.]");
	expect("{{ printf \"%5.1f|%-4d|%04d|%q|%x|%v\" 3.14159 42 42 \"a\\n\" \"hi\" (slice .System 0 2) }}{{ len "
	       ".Messages }}",
	       "  3.1|42  |0042|\"a\\n\"|6869|Be5");
	expect("{{ printf \"%+q|%+d|%+v|\" 2.5 3 4.0 }}{{ len .Messages }}", "%!q(float64=+2.5)|+3|4|5");
	/* a minus makes the zero mean nothing; a byte below a blank and the last one of ASCII are written by digits */
	expect("{{ printf \"%-05d|%05d|%+06d|%-+6d|\" 7 7 7 7 }}{{ len .Messages }}", "7    |00007|+00007|+7    |5");
	expect("{{ printf \"%q\" \"\\x7f\\x01\\u00ad\" }}{{ len .Messages }}", "\"\\x7f\\x01\\u00ad\"5");
	expect("{{ currentDate }} {{ yesterdayDate }}{{ len .Messages }}", "2024-03-01 2024-02-295");
	expect("{{ range $n, $p := (index .Tools 0).Function.Parameters.Properties }}{{ $n }}: {{ $p.Type }} "
	       "{{ toTypeScriptType $p }}; {{ end }}{{ len .Messages }}",
	       "a: [string null] string | null; b: number number; free:  any; 5");
	expect("{{ json .System }}{{ \"a\" | printf \"%s%s\" .System | len }}{{ html \"<&\" }}{{ js \"'=\" }}{{ "
	       "urlquery \"a b/\" }}"
	       "{{ len .Messages }}",
	       "\"Be \\u003ckind\\u003e.\"11&lt;&amp;\\'\\u003Da+b%2F5");
	expect("{{ index .System 0 }}{{ 'a' }}{{ 0x1F }}{{ 1_000 }}{{ 1e3 }}{{ `r\\n` }}{{ \"\\u00e9\\x41\\101\" }}{{ "
	       "len .Messages }}",
	       "66973110001000r\\n\303\251AA5");
	expect("{{ and 1 0 2 }}{{ or 0 \"\" 3 }}{{ not 1 }}{{ eq 1 2 3 1 }}{{ lt 1 2 }}{{ ge 1.5 1.5 }}{{ ne \"a\" "
	       "\"b\" }}"
	       "{{ eq .Nope nil }}{{ len .Messages }}",
	       "03falsetruetruetruetruetrue5");
	/* bytes of half a character become the one for what is none */
	expect("{{ slice \"\303\251a\" 1 }}{{ len .Messages }}", "\357\277\275a5");
}

/* ---- turns */

static void test_turns(void **state)
{
	static const char plain[] = "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"},"
				    "{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"user\",\"content\":\"V\"}]";
	static const char joined[] = "[{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"USER\",\"content\":\"V\"},"
				     "{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"system\",\"content\":\"T\"}]";
	const struct case_of c = { .messages = plain }, two = { .messages = joined },
			     all = { .messages = plain, .begins = "false" };

	(void)state;
	expect_of("{{ if .System }}<s>{{ .System }}{{ end }}<u>{{ .Prompt }}<a>{{ .Response }}<e>", &c,
	          "<s>S<u>U<a>A<e><u>V<a>");
	expect_of("{{ if .System }}<s>{{ .System }}{{ end }}<u>{{ .Prompt }}<a>{{ .Response }}<e>", &all,
	          "<s>S<u>U<a>A<e><u>V<a><e>");
	/* without .Response it stands at the end */
	expect_of("<u>{{ .Prompt }}<a>", &c, "<u>U<a>A<u>V<a>");
	expect_of("{{ if .Response }}{{ .Response }}x{{ else }}y{{ end }}z{{ .Prompt }}", &c, "AxzU");
	expect_of("{{ .System }}|{{ range .Messages }}{{ .Role }}={{ .Content }};{{ end }}", &two,
	          "S\n\nT|user=U\n\nV;system=S\n\nT;");
	expect_of("{{ .System }}|{{ .Prompt }}|", &two, "|U\n\nV|S\n\nT||");
	refused_of("{{ range .Messages }}{{ .Role }}{{ end }}", &all,
	           "test: in Go's language it is the template that begins the answer; add_generation_prompt cannot be "
	           "false");
}

static void test_think_and_gaps(void **state)
{
	static const char template[] =
		"{{ if .Suffix }}<P>{{ .Prompt }}<S>{{ .Suffix }}<M>{{ else }}{{ .Think }} {{ .IsThinkSet }} "
		"{{ .ThinkLevel }}{{ len .Messages }}{{ end }}";
	static const char none[] = "[]";

	(void)state;
	expect_of(template, &(struct case_of){ .messages = none }, "false false 0");
	expect_of(template, &(struct case_of){ .messages = none, .think = "true" }, "true true medium0");
	expect_of(template, &(struct case_of){ .messages = none, .think = "false" }, "false true 0");
	expect_of(template, &(struct case_of){ .messages = none, .effort = "\"high\"" }, "true true high0");
	expect_of(template, &(struct case_of){ .messages = none, .effort = "\"none\"" }, "false true 0");
	expect_of(template, &(struct case_of){ .messages = none, .prompt = "\"a\"", .suffix = "\"b\"" }, "<P>a<S>b<M>");
	/* a conversation has no gap */
	expect_of(template, &(struct case_of){ .messages = usual_messages, .prompt = "\"a\"", .suffix = "\"b\"" },
	          "false false 5");
}

/* ---- the language, and facts */

static void test_language(void **state)
{
	static const char *const go[] = {
		"{{ .System }}",
		"{{- if .A }}{{ end }}",
		"{{ \"a\" }}{{ $.X }}",
		"{{ range .M }}{{ end }}",
		"{{ range (slice .M) }}{{ .x }}{{ end }}",
		"{{/* {% */}}",
		"{{ json .Tools }}",
		"{{ (index .Messages 0) }}{{ end }}",
		"{{ currentDate }}",
		"{{ `a` }}",
		"{{ eq 1 .A }}",
		"{{- (index .A 0).B }}",
		"{{ trim .A }}",
		"{{ not .A }}"
	};
	static const char *const jinja[] = {
		"",
		"{{ messages }}",
		"{% if x %}{{ .x }}{% endif %}",
		"{{ 'a' + b }}",
		"{{- x }}",
		"{{ not x }}{{ x }}",
		"{# {{ .x #}{{ y }}",
		"a {{ messages[0].content }}",
		"{{ len }}",
		"{{ \"{{ .X\" }}{{ y }}",
		"{{ index if a }}",
		"{{ (a or b) }}",
		"{{ len(x) }}",
		"{{ json }}",
		"{{ range(5)[1:3] }}",
		"{{ end }}",
		"{{ with }}",
		"{{ not (a) }}{{ b }}"
	};

	(void)state;
	for (size_t i = 0; i < sizeof go / sizeof *go; i++)
		if (!chat_template_is_go(go[i], strlen(go[i])))
			fail_msg("%s is taken for Jinja", go[i]);
	for (size_t i = 0; i < sizeof jinja / sizeof *jinja; i++)
		if (chat_template_is_go(jinja[i], strlen(jinja[i])))
			fail_msg("%s is taken for Go", jinja[i]);
}

static struct chat_facts facts_of(const char *text)
{
	struct error err = { 0 };
	struct chat_template *t = chat_template_parse(text, strlen(text), "test", &err);

	assert_non_null(t);
	const struct chat_facts f = chat_template_facts(t);
	chat_template_free(t);
	return f;
}

static void test_facts(void **state)
{
	struct chat_facts f = facts_of("{{ messages }}");

	(void)state;
	assert_false(f.go || f.messages || f.tools || f.suffix || f.think || f.thinks);
	f = facts_of("{{ .Prompt }}{{ if .Suffix }}x{{ end }}");
	assert_true(f.go && f.suffix && !f.messages && !f.tools && !f.think && !f.thinks);
	f = facts_of("{{ range .Messages }}{{ if and $.IsThinkSet .Thinking }}<think>{{ .Thinking }}</think>{{ end "
	             "}}{{ end }}"
	             "{{ $.Tools }}");
	assert_true(f.messages && f.tools && f.think && f.thinks);
	/* no marks around it */
	f = facts_of("{{ range .Messages }}{{ .Thinking }}{{ end }}");
	assert_true(f.messages && !f.thinks);
	f = facts_of("{{ define \"a\" }}{{ .Messages }}{{ end }}{{ template \"a\" . }}");
	assert_true(f.messages);
}

/* ---- refusals */

static void test_refusals(void **state)
{
	(void)state;
	refused("a\n{{ if .A }}", "test, line 2: {{ if }} has no {{ end }}");
	refused("a\n\n{{ .A ", "test, line 3: {{ without }} behind it");
	refused("{{ .A }}{{ end }}", "test, line 1: {{ end }} without {{ if }}, {{ range }} or {{ with }} before it");
	refused("{{ if .A }}{{ else }}{{ else }}{{ end }}", "test, line 1: found {{ else }}, expected {{ end }}");
	refused("{{ .A }}\n{{ trim .A }}", "test, line 2: \"trim\" is no function, expected one of Go's or ollama's");
	refused("{{ .A }}\n{{ $x }}", "test, line 2: the variable $x is not declared");
	refused("{{ if .A }}{{ $x := 1 }}{{ end }}{{ $x }}", "test, line 1: the variable $x is not declared");
	refused("{{ .A }}{{ break }}", "test, line 1: found \"break\", expected it in a {{ range }}");
	refused("{{ .A }}{{ \"a }}", "test, line 1: a text in quotes (\") does not end");
	refused("{{ .A }}{{ \"\\q\" }}", "test, line 1: \"\\q\" is no text of Go's language");
	refused("{{ .A }}{{ 0xZ }}", "test, line 1: 0xZ is no number of Go's language");
	refused("{{ .A }}{{ (len .A }}", "test, line 1: ( without ) behind it");
	refused("{{ .A | 1 }}", "test, line 1: behind | stands a constant or a dot, expected a function or a field");
	refused("{{ .A }}{{ if }}{{ end }}", "test, line 1: if has no value");
	refused("{{ .A\"b\" }}", "test, line 1: \".A\" is followed by \"\"\", expected a space, an operand or }}");
	refused("{{ range $a, $b, $c := .A }}{{ end }}",
	        "test, line 1: found \"$c\", expected a variable behind the comma, two in all");
	refused("{{ define \"a\" }}x{{ end }}{{ define \"a\" }}y{{ end }}{{ .A }}",
	        "test, line 1: the template \"a\" is defined twice");
	refused("{{/* a }}", "test, line 1: a comment, {{/*, does not end with */}}");
	refused("{{ .System.X }}{{ len .Messages }}", "test, line 1: a value of type string has no field X");
	refused("\n{{ (index .Messages 0).Foo }}{{ len .Messages }}",
	        "test, line 2: a value of type *template.templateMessage has no field Foo");
	refused("{{ .Nope.X }}{{ len .Messages }}", "test, line 1: the field X of nothing");
	refused("{{ index .Messages 9 }}", "test, line 1: index has the index 9, expected 0 to 4");
	refused("{{ eq 1 \"a\" }}{{ len .Messages }}",
	        "test, line 1: a value of type int is compared with one of type string, expected one type");
	refused("{{ len 3 }}{{ len .Messages }}",
	        "test, line 1: len of a value of type int, expected a string, a list or a map");
	refused("{{ range .System }}{{ end }}{{ len .Messages }}",
	        "test, line 1: range over a value of type string, expected a list, a map or an integer");
	refused("{{ template \"x\" . }}{{ len .Messages }}", "test, line 1: the template \"x\" is not defined");
	refused("{{ .Messages }}",
	        "test, line 1: a value of type *template.templateMessage within another one prints as an "
	        "address, expected one of its members");
	refused_of("{{ len .Messages }}", &(struct case_of){ .messages = "[{\"role\":\"user\",\"content\":3}]" },
	           "messages[0]: content is int, expected a string");
	refused_of("{{ len .Messages }}",
	           &(struct case_of){ .messages = "[]",
	                              .tools = "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":[]}}}]" },
	           "tools[0]: properties is list, expected an object of schemas");
}

static void test_limits(void **state)
{
	struct error err = { 0 };
	struct chat_text out;
	char deep[40000] = "{{ .A }}";

	(void)state;
	refused("{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
	        "test, line 1: templates and structures are more than 1500 deep in each other");
	refused("{{ range 100000000 }}{{ end }}{{ .A }}", "test, line 1: the template takes more than 33554432 steps");
	refused("{{ printf \"%999999d\" 1 | printf \"%[1]s\" }}{{ .A }}",
	        "test, line 1: printf's format has %[, which is not supported: arguments stand in their order");
	for (int i = 0; i < 300; i++)
		strcat(deep, "{{ if .A }}");
	assert_false(run(deep, strlen(deep), &usual, &out, &err));
	assert_string_equal(err.text, "test, line 1: more than 200 structures are nested in each other");
	strcpy(deep, "{{ .A }}{{ ");
	for (int i = 0; i < 300; i++)
		strcat(deep, "(");
	err = (struct error){ 0 };
	strcat(deep, " }}");
	assert_false(run(deep, strlen(deep), &usual, &out, &err));
	/* a text that doubles */
	refused("{{ $x := .System }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}{{ len .Messages }}",
	        "test, line 1: a text grows beyond 67108864 bytes");
}

/* ---- marks */

static void test_marks(void **state)
{
	struct error err = { 0 };
	struct chat_text out;
	char seen[200];
	static const char template[] =
		"<|{{ .System }}|>{{ range .Messages }}<{{ .Role }}>{{ printf \"%q\" .Content }}{{ end }}";
	static const char messages[] = "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"<|x|>\",\"content\":\"b\"}]";

	(void)state;
	assert_true(run(template, strlen(template), &(struct case_of){ .messages = messages }, &out, &err));
	assert_string_equal(out.p, "<||><user>\"a\"<<|x|>>\"b\"");
	for (size_t i = 0; i < out.n_spans; i++)
		memset(seen + out.span[i].begin, out.span[i].user ? 'u' : '.', out.span[i].end - out.span[i].begin);
	seen[out.n] = 0;
	assert_string_equal(seen, "...........u..uuuuu..u.");
	chat_text_free(&out);
}

/* ---- memory */

static void test_no_memory(void **state)
{
	static const char template[] =
		"{{ define \"a\" }}{{ . }}{{ end }}{{ $x := .Tools }}{{ range $i, $m := "
		".Messages }}{{ template \"a\" .Content }}"
		"{{ printf \"%s%d\" .Role $i }}{{ .ToolCalls }}{{ end }}{{ json $x }}";
	bool done = false;

	(void)state;
	for (long i = 0; !done && i < 1000; i++) {
		struct error err = { 0 };
		struct chat_text out;
		until_failure = i;
		done = run(template, strlen(template), &usual, &out, &err);
		until_failure = -1;
		if (!done && (err.code != ERROR_MEMORY || !err.text[0]))
			fail_msg("allocation %ld: %s", i, err.text);
		chat_text_free(&out);
	}
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constructs), cmocka_unit_test(test_turns), cmocka_unit_test(test_think_and_gaps),
		cmocka_unit_test(test_language),   cmocka_unit_test(test_facts), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_limits),     cmocka_unit_test(test_marks), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
