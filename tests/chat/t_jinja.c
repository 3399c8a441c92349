/* tests/chat/t_jinja.c - the template language by itself: every construct against what Jinja2 makes of it, refusals
 * with their lines, limits, and a lack of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/chat/golden.h"
#include "tests/loaders/small_vocab.h"

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

/* False with err set. */
static bool run(const char *template, size_t n, const struct variables *vars, struct chat_text *out, struct error *err)
{
	struct chat_template *t = chat_template_parse(template, n, "test", err);

	memset(out, 0, sizeof *out);
	bool ok =
		t &&
		chat_render(t, &(struct chat_request){ vars ? vars->v : NULL, vars ? vars->n : 0, &golden_time, false },
	                    out, NULL, err);
	chat_template_free(t);
	return ok;
}

static void expect(const char *template, const char *json, const char *text)
{
	struct variables vars = { .v = { { "x", json, json ? strlen(json) : 0, CHAT_USER } }, .n = 1 };
	struct error err = { 0 };
	struct chat_text out;

	if (!run(template, strlen(template), &vars, &out, &err))
		fail_msg("%s: %s", template, err.text);
	assert_string_equal(out.p, text);
	chat_text_free(&out);
}

static void refused(const char *template, const char *json, const char *says)
{
	struct variables vars = { .v = { { "x", json, json ? strlen(json) : 0, CHAT_USER } }, .n = 1 };
	struct error err = { 0 };
	struct chat_text out;

	if (run(template, strlen(template), &vars, &out, &err))
		fail_msg("%.100s: expected the refusal \"%s\", found \"%.100s\"", template, says, out.p);
	assert_string_equal(err.text, says);
	assert_null(out.p);
	assert_null(out.span);
}

/* ---- what Python makes of it */

static void compare(json_t *row, const struct variables *vars)
{
	const char *template = json_string_value(json_array_get(row, 0)),
		   *says = json_string_value(json_array_get(row, 2));
	const json_t *want = json_array_get(row, 1);
	struct error err = { 0 };
	struct chat_text out;

	bool ok = run(template, json_string_length(json_array_get(row, 0)), vars, &out, &err);
	if (ok != json_is_string(want))
		fail_msg("%s: expected %s, found %s", template, says ? says : json_string_value(want),
		         ok ? out.p : err.text);
	if (ok && (out.n != json_string_length(want) || memcmp(out.p, json_string_value(want), out.n) != 0))
		fail_msg("%s: expected \"%s\", found \"%s\"", template, json_string_value(want), out.p);
	if (!ok && !strstr(err.text, says))
		fail_msg("%s: expected the refusal \"%s\", found \"%s\"", template, says, err.text);
	chat_text_free(&out);
}

static void test_python(void **state)
{
	FILE *f = source_open("tests/golden/jinja_python.txt");
	struct variables vars = { .n = 0 };
	char line[8192];
	const char *name;
	json_t *all = NULL, *value;
	unsigned n = 0;
	(void)state;

	while (fgets(line, sizeof line, f)) {
		if (line[0] == '#')
			continue;
		json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
		assert_non_null(row);
		if (json_is_object(row)) {
			all = row;
			json_object_foreach(all, name, value) variable_add(&vars, name, value, CHAT_USER);
			continue;
		}
		compare(row, &vars);
		json_decref(row);
		n++;
	}
	fclose(f);
	assert_true(n > 1200);
	variables_free(&vars);
	json_decref(all);
}

/* ---- refusals: what was expected, and in which line */

#define ANY_STATEMENT \
	"expected a statement (if, for, set, macro, call, filter, with, break, continue, generation or the end of " \
	"one), found "

static void test_malformed(void **state)
{
	(void)state;

	refused("a\n{% if x %}\nb", NULL, "test, line 3: expected the end of a block, found the end of the template");
	refused("{% for a in b %}\n{% endif %}", NULL, "test, line 2: " ANY_STATEMENT "'endif'");
	refused("{% macro m(a, b, a) %}{% endmacro %}{{ m(b=1, a=2) }}", NULL,
	        "test, line 1: a macro has two parameters of the name 'a'");
	refused("{% macro m(a $", NULL, "test, line 1: unexpected \"$\"");
	char many[3000] = "{% macro m(";
	for (int i = 0; i < 256; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "p%d,", i);
	strcat(many, ") %}{% endmacro %}");
	refused(many, NULL, "test, line 1: a macro has over 255 parameters");
	refused("{% include 'a' %}", NULL, "test, line 1: " ANY_STATEMENT "'include'");
	refused("\n\n{{ a", NULL, "test, line 3: expected '}}', found the end of the template");
	refused("{{ }}", NULL, "test, line 1: expected an expression, found '}}'");
	refused("{{ 1 + }}", NULL, "test, line 1: expected an expression, found '}}'");
	refused("{{ (1 }}", NULL, "test, line 1: unexpected '}', expected ')'");
	refused("{{ 1) }}", NULL, "test, line 1: unexpected ')'");
	refused("{{ a b }}", NULL, "test, line 1: expected '}}', found 'b'");
	refused("{{ 'a }}", NULL, "test, line 1: a string has no end, expected '");
	refused("{{ a $ }}", NULL, "test, line 1: unexpected \"$\"");
	refused("{{ a \xc3\xa9 }}", NULL, "test, line 1: unexpected \"\xc3\xa9\"");
	refused("a\n{{ '\xff' }}", NULL, "test, line 2: the template is not valid UTF-8");
	refused("a{# b\n", NULL, "test, line 1: the comment has no end, expected '#}'");
	refused("{% raw %}\nb", NULL, "test, line 1: {% raw %} has no {% endraw %}");
	refused("{{ a|nothing }}", NULL, "test, line 1: No filter named 'nothing'");
	refused("{{ a is\nnothing }}", NULL, "test, line 2: No test named 'nothing'");
	refused("{{ a. }}", NULL, "test, line 1: expected a name or a number behind '.', found '}}'");
	refused("{{ a[1, 2:3] }}", NULL, "test, line 1: expected ']', found ':'");
	refused("{{ f(a=1, 2) }}", NULL,
	        "test, line 1: expected arguments without names first, then those with names, found ')'");
	refused("{% set 1 = 2 %}", NULL, "test, line 1: expected a name, found a number");
	refused("{% set true = 2 %}", NULL, "test, line 1: expected a name that can be assigned to, found 'true'");
	refused("{% break %}", NULL, "test, line 1: expected break and continue inside a loop alone, found 'break'");
	refused("{% for x in y recursive %}{% endfor %}", NULL,
	        "test, line 1: expected '%}': recursive loops are not supported, found 'recursive'");
	refused("{% macro m(a=1, b) %}{% endmacro %}", NULL,
	        "test, line 1: expected a default value, as the parameter before has one, found ')'");
	refused("{{ 9223372036854775808 }}", NULL, "test, line 1: an integer does not fit 64 bits");
	refused("{{ '\\ud800' }}", NULL, "test, line 1: the escape \\u in a string is no character");
	refused("{{ '\\x4' }}", NULL, "test, line 1: the escape \\x in a string has not 2 hexadecimal digits");
	refused("{{ '\\N{DASH}' }}", NULL, "test, line 1: a string names a character by \\N, which is not supported");
}

/* What templates that were written for other engines do, where the caller allows it. */
static void test_lenient(void **state)
{
	static const struct {
		const char *template, *says;
		bool ok;
	} rows[] = {
		{ "{% set a = [] %}{% set _ = a.append('x') %}{% set _ = a.append(2) %}{{ a }}{{ a.pop(0) }}{{ a }}{{ "
		  "a.pop() }}{{ a }}",
		  "['x', 2]x[2]2[]", true },
		{ "{% set n = namespace(l=[1, 2, 3]) %}{% for i in n.l %}{{ i }}{{ loop.revindex }}{% set _ = "
		  "n.l.pop() %}{% set _ = "
		  "n.l.append(9) %}{% set _ = n.l.append(i) %}{% endfor %}{{ n.l }}",
		  "132231[1, 2, 9, 9, 9, 3]", true },
		{ "{% set a = [1, 2, 3] %}{% for i in a %}{{ i }}{% for k in [1, 2] %}{% if a %}{% set _ = a.pop() "
		  "%}{% endif %}"
		  "{% endfor %}{% endfor %}{{ a }}",
		  "123[]", true },
		{ "{% set a = [] %}{% set _ = a.append(a) %}{{ a == [a] }}", "", true },
		{ "{% set a = [] %}{% set _ = a.append(a) %}{{ a | tojson }}", "a value is nested too deep", false },
		{ "{{ [].pop() }}", "pop from empty list", false },
		{ "{{ [1].pop(3) }}", "pop index out of range", false },
		{ "{{ x.append(1) }}", "access to attribute 'append' of 'list' object is unsafe.", false },
		{ "{{ [{'a': 1}] | map(attribute='a') | tojson }}", "[1]", true },
	};
	const struct chat_variable x = { "x", "[]", 2, CHAT_USER };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct chat_text out;
		struct chat_template *t = chat_template_parse(rows[i].template, strlen(rows[i].template), "test", &err);
		assert_non_null(t);
		const struct chat_request request = { .variable = &x, .n_variables = 1, .lenient = true };
		bool ok = chat_render(t, &request, &out, NULL, &err);
		if (ok != rows[i].ok || !strstr(ok ? out.p : err.text, rows[i].says))
			fail_msg("%s: %s", rows[i].template, ok ? out.p : err.text);
		if (ok)
			chat_text_free(&out);
		chat_template_free(t);
	}
}

static void test_runtime(void **state)
{
	(void)state;
	refused("a\n{{ x.y.z }}", "{}", "test, line 2: 'dict object' has no attribute 'y'");
	refused("\n\n{{ raise_exception('Not ' ~ x) }}", "\"so\\n!\"", "test, line 3: Not so\\x0a!");
	refused("{{ x + 1 }}", "9223372036854775807", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x * x }}", "4294967296", "test, line 1: an integer does not fit 64 bits");
	refused("{{ -x }}", "-9223372036854775808", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x|abs }}", "-9223372036854775808", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x // -1 }}", "-9223372036854775808", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x|int }}", "1e30", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x|int }}", "\"9223372036854775808\"", "test, line 1: an integer does not fit 64 bits");
	refused("{{ x|select }}", "[1]", "test, line 1: a value of type 'generator' has no text");
	refused("{{ x.encode() }}", "\"a\"", "test, line 1: the method 'encode' of 'str' is not supported");
	refused("{% for a in [1] %}\n{{ x.append(a) }}{% endfor %}", "[]",
	        "test, line 2: access to attribute 'append' of 'list' object is unsafe.");
	refused("{{ strftime_now('%Q') }}", NULL,
	        "test, line 1: strftime_now: the format has a conversion '%Q' that is not supported");
	expect("{{ x % -1 }}{{ x + 1 - 1 }}", "-9223372036854775808", "0-9223372036854775808");
	expect("{{ -9223372036854775807 - 1 }}", NULL, "-9223372036854775808");
	expect("{{ x is defined }}", NULL, "False");
	expect("{{ x|title }}", "\"ab-cD (e [f {g <h \\\"i /j .k é_l\"", "Ab-Cd (E [F {G <H \"i /j .k É_l");
	/* a text that is safe stays so when nothing was replaced in it, and one that was changed is not */
	expect("{{ (x|safe|replace('q', 'r'))|e }}", "\"<a>\"", "&lt;a&gt;");
	expect("{{ {(1, 2): 3}[1, 2] }}{{ {(1,): 4}[1,] }}{{ x[] is defined }}", "{}", "34False");
}

/* ---- variables */

static void test_variables(void **state)
{
	(void)state;
	expect("{{ x }}", "{\"b\": 1, \"a\": 2, \"b\": 3}", "{'b': 3, 'a': 2}");
	expect("{{ x|tojson }}", "{\"z\":1,\"k\":[1.0,1e2,-0.0,1E-7,12345678901234567890.0]}",
	       "{\"z\": 1, \"k\": [1.0, 100.0, -0.0, 1e-07, 1.2345678901234567e+19]}");
	expect("{{ x }}", "[9223372036854775807, -9223372036854775808, -0]",
	       "[9223372036854775807, -9223372036854775808, 0]");
	expect("{{ x|length }}{{ x|tojson }}", "\"a\\u0000b\\ud83d\\ude00\"", "4\"a\\u0000b\xf0\x9f\x98\x80\"");
	expect("{{ x.k17 }}{{ x['k3'] }}{{ x.k99 is defined }}{{ x|length }}",
	       "{\"k1\":1,\"k2\":2,\"k3\":3,\"k4\":4,\"k5\":5,\"k6\":6,\"k7\":7,\"k8\":8,\"k9\":9,\"k10\":10,\"k17\":"
	       "17,\"k3\":33,\"k12\":12}",
	       "1733False12");
	refused("{{ x }}", "9223372036854775808",
	        "\"x\" is not valid JSON at byte 20: an integer does not fit 64 bits");
	refused("{{ x }}", "[1,]", "\"x\" is not valid JSON at byte 4: expected a value");
	refused("{{ x }}", "{\"a\" 1}", "\"x\" is not valid JSON at byte 6: expected ':'");
	refused("{{ x }}", "\"\\ud800\"", "\"x\" is not valid JSON at byte 2: bad escape in a string");
	refused("{{ x }}", "\"\xff\"", "\"x\" is not valid JSON at byte 2: invalid UTF-8 in a string");
	refused("{{ x }}", "NaN", "\"x\" is not valid JSON at byte 1: expected a value");
	refused("{{ x }}", "1 2", "\"x\" is not valid JSON at byte 3: expected nothing more");
	refused("{{ x }}", "", "\"x\" is not valid JSON at byte 1: expected a value");
}

/* Without the time, the function is not there either. */
static void test_time(void **state)
{
	static const char text[] =
		"{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}no time{% endif %}";
	struct error err = { 0 };
	struct chat_text out;
	(void)state;

	struct chat_template *t = chat_template_parse(text, sizeof text - 1, "test", &err);
	assert_non_null(t);
	assert_true(chat_render(t, &(struct chat_request){ .now = &golden_time }, &out, NULL, &err));
	assert_string_equal(out.p, "02 Jan 2026");
	chat_text_free(&out);
	assert_true(chat_render(t, &(struct chat_request){ .now = NULL }, &out, NULL, &err));
	assert_string_equal(out.p, "no time");
	chat_text_free(&out);
	chat_template_free(t);
}

/* ---- limits */

static char *repeated(const char *before, const char *part, size_t n, const char *after)
{
	char *text = malloc(strlen(before) + n * strlen(part) + strlen(after) + 1), *p = stpcpy(text, before);

	assert_non_null(text);
	while (n--)
		p = stpcpy(p, part);
	strcpy(p, after);
	return text;
}

static void refused_repeated(const char *before, const char *part, size_t n, const char *after, const char *says)
{
	char *text = repeated(before, part, n, after);
	struct error err = { 0 };
	struct chat_text out;

	assert_false(run(text, strlen(text), NULL, &out, &err));
	if (!strstr(err.text, says))
		fail_msg("%s...: expected \"%s\", found \"%s\"", before, says, err.text);
	free(text);
}

static void test_nesting(void **state)
{
	(void)state;
	refused_repeated("{{ ", "(", 200, "", "nested more than 100 deep");
	refused_repeated("{{ ", "[", 200, "", "nested more than 100 deep");
	refused_repeated("{{ ", "-", 200, "1 }}", "nested more than 100 deep");
	refused_repeated("{{ ", "not ", 200, "1 }}", "nested more than 100 deep");
	refused_repeated("{{ ", "1 if 1 else ", 200, "1 }}", "nested more than 100 deep");
	refused_repeated("", "{% if 1 %}", 200, "", "nested more than 100 deep");
	refused_repeated("{% set ", "(", 200, "", "nested more than 100 deep");
	refused_repeated("{{ 1", " + 1", 1000, " }}", "more than 400 operators inside each other");
	refused_repeated("{{ 1", "|string", 1000, " }}", "more than 400 operators inside each other");
	refused_repeated("{{ a", ".b", 1000, " }}", "more than 400 operators inside each other");
	refused_repeated("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "", 0, "",
	                 "maximum recursion depth exceeded");
	refused_repeated(
		"{% set ns = namespace(a=1) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
		"", 0, "", "a value is nested too deep");
	refused_repeated("{% set ns = namespace(a=1) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ "
	                 "ns.a|tojson }}",
	                 "", 0, "", "a value is nested too deep");
	refused_repeated("{% set ns = namespace(a=(1,)) %}{% for i in range(5000) %}{% set ns.a = (ns.a,) %}{% endfor "
	                 "%}{{ {ns.a: 1} }}",
	                 "", 0, "", "a key is nested too deep");
	expect("{{ ((((((((((((((((((((((1)))))))))))))))))))))) }}", NULL, "1");
}

static void test_amounts(void **state)
{
	char *text = repeated("", "a", CHAT_MAX_TEMPLATE + 1, "");
	struct error err = { 0 };
	struct chat_text out;
	(void)state;

	assert_false(run(text, strlen(text), NULL, &out, &err));
	assert_string_equal(err.text, "test: the chat template has 1048577 bytes, expected at most 1048576");
	free(text);
	refused("{% set t = 'a' * 1000000 %}{% for a in range(100000) %}{% if 'b' in t %}{% endif %}{% endfor %}", NULL,
	        "test, line 1: the template takes more than 33554432 steps");
	refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", NULL,
	        "test, line 1: the template takes more than 268435456 bytes of memory");
	refused("{{ 'abcdefgh' * 10000000 }}", NULL, "test, line 1: a text grows beyond 67108864 bytes");
	refused("{% set ns = namespace(a='x') %}{% for a in range(100) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
	        NULL, "test, line 1: the template takes more than 268435456 bytes of memory");
	refused("{% set a = [1] * 100000000 %}", NULL, "test, line 1: a list has more items than there is memory for");
	refused("{% set a = range(100000)|list %}{% for b in range(1000) %}{% set c = a + a %}{% endfor %}", NULL,
	        "test, line 1: the template takes more than 268435456 bytes of memory");
	refused("{% set t = 'a' * 2000000 %}{{ t.rfind('a' * 500000 ~ 'ba') }}{{ t.rfind('ab' ~ 'a' * 500000) }}", NULL,
	        "test, line 1: the template takes more than 33554432 steps");
	refused("{% macro m(n) %}{% if 0 %}{{ [1, 2, 3, 4, 5, 6, 7, 8, 9] }}{% endif %}{% endmacro %}{% for i in "
	        "range(100000) %}{% for j in range(100000) %}{{ m(1) }}{% endfor %}{% endfor %}",
	        NULL, "test, line 1: the template takes more than 268435456 bytes of memory");
	/* a large text goes through what templates do with it in time */
	text = repeated("\"", "<think> \\u00e9 a </think>\\n ", 40000, "\"");
	struct variables vars = { .v = { { "x", text, strlen(text), CHAT_USER } }, .n = 1 };
	static const char all[] =
		"{{ x.split('</think>')[-1].strip() ~ x.rsplit('a')|length ~ (x|trim)[5:-5]|length ~ "
		"x[::-1]|length ~ x.splitlines()|length ~ x.replace('a', 'bb')|length "
		"~ x.split()|join|length ~ x|upper|tojson|length }}";
	memset(&err, 0, sizeof err);
	if (!run(all, sizeof all - 1, &vars, &out, &err))
		fail_msg("%s", err.text);
	assert_string_equal(out.p, "4000187998888000040001920000680000920002");
	chat_text_free(&out);
	free(text);
}

/* ---- a lack of memory */

static const char busy[] =
	"{%- macro m(a, b=[1]) -%}<{{ a }}{{ b }}{{ varargs }}{{ kwargs }}>{%- endmacro -%}{% set ns = namespace(n=0) "
	"%}"
	"{% for i in x if i %}{% set ns.n = ns.n + loop.index %}{{ m(i, 2, 3, k=loop.last) }}{{ "
	"i|string|upper|tojson(indent=2) }}{% endfor %}"
	"{% set t %}{{ x|map('string')|join(', ') }}{% endset %}{{ t.split(', ')[::-1]|sort|unique|list ~ t|title ~ "
	"{'a': t, 'b': 2}|dictsort }}"
	"{% filter replace('1', 'one') %}{{ t[1:] }}{% endfilter %}{% call m('c') %}{{ t }}{% endcall %}{{ '%s|%5.1f' "
	"% (t, 2.5) }}{{ ns.n }}";

static bool try_busy(struct chat_text *out, struct error *err)
{
	static const char x[] = "[1, \"two \\u00e9\", null, {\"k\": [true, 1.5]}, \"2\", 1]";
	struct variables vars = { .v = { { "x", x, sizeof x - 1, CHAT_USER }, { "y", "\"<s>\"", 5, CHAT_MODEL } },
		                  .n = 2 };

	return run(busy, sizeof busy - 1, &vars, out, err);
}

/* Each allocation fails in turn: a sentence says so, and nothing is left over; then it works. */
static void test_no_memory(void **state)
{
	struct error err = { 0 };
	struct chat_text whole, out;
	long n = 0;
	(void)state;

	if (!try_busy(&whole, &err))
		fail_msg("%s", err.text);
	for (bool done = false; !done; n++) {
		struct error why = { 0 };
		until_failure = n;
		done = try_busy(&out, &why);
		assert_true(done == (until_failure >= 0));
		until_failure = -1;
		if (!done) {
			assert_int_equal(why.code, ERROR_MEMORY);
			assert_null(out.p);
		}
	}
	assert_string_equal(out.p, whole.p);
	assert_true(n > 6);
	chat_text_free(&out);
	chat_text_free(&whole);
}

/* The same for token ids: of the marks, and of the tokenizer's own work. */
static void test_no_memory_for_tokens(void **state)
{
	static const char *const merges[] = { "l o", "aa aa" };
	static char text[] = "a loaa <|a|> b";
	struct chat_span span[] = { { 0, 4, false }, { 4, sizeof text - 1, true } };
	const struct chat_text t = { text, sizeof text - 1, span, 2 };
	struct error err = { 0 };
	struct small v = { 0 };
	int32_t *want, *ids;
	size_t n_want, n;
	long failed = 0;
	(void)state;

	byte_level_vocab(&v.file, "llama-bpe", merges, 2);
	assert_true(small_open(&v, 0, &err));
	assert_true(chat_tokenize(v.t, &t, true, &want, &n_want, &err));
	for (bool done = false; !done; failed++) {
		struct error why = { 0 };
		until_failure = failed;
		done = chat_tokenize(v.t, &t, true, &ids, &n, &why);
		until_failure = -1;
		assert_int_equal(why.code, done ? ERROR_NONE : ERROR_MEMORY);
		assert_true(done || !ids);
	}
	assert_true(failed > 3 && n == n_want && memcmp(ids, want, n * sizeof *ids) == 0);
	free(ids);
	free(want);
	small_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),    cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_runtime),   cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_variables), cmocka_unit_test(test_time),
		cmocka_unit_test(test_nesting),   cmocka_unit_test(test_amounts),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_memory_for_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
