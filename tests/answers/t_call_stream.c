/* tests/answers/t_call_stream.c - calls of tools while they are generated: what is said of them does not depend on how
 * the text is cut, is never taken back, and is what was meant. Calls are written at random by writers of this test's
 * own, one for each form, and spoilt in many ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/tool_calls.h"
#include "tests/answers/call_writers.h"
#include "tests/support/shared.h"

/* ---- what was told, written down: T text, B a name, P a part of its arguments, E or U the end */

struct told {
	struct bytes log;
	char last;
	unsigned parts;
	struct tool_calls t;
};

static void note(struct told *o, char kind, const char *p, size_t n)
{
	bool more = o->last == kind && (kind == 'T' || kind == 'P');

	if (!more) {
		const char head[] = { '\n', kind };
		bytes_add(&o->log, head, 2);
	}
	bytes_add(&o->log, p, n);
	o->last = kind;
}

static void write_down(struct told *o)
{
	const struct tool_events *f = &o->t.found;

	for (size_t i = 0; i < f->n_events; i++) {
		const struct tool_event *e = &f->event[i];
		const struct tool_call *c = e->kind == TOOL_TEXT ? NULL : &f->call[e->call];
		if (e->kind == TOOL_TEXT) {
			note(o, 'T', f->text.p + e->from, e->n);
		} else if (e->kind == TOOL_BEGINS) {
			note(o, 'B', c->name, strlen(c->name));
		} else if (e->kind == TOOL_DELTA) {
			json_t *whole = json_stringn(c->arguments.p + e->from, e->n);
			assert_non_null(whole); /* it is UTF-8 */
			json_decref(whole);
			note(o, 'P', c->arguments.p + e->from, e->n);
			o->parts++;
		} else {
			note(o, c->whole ? 'E' : 'U', "", 0);
		}
	}
}

/* size: of pieces; 0: any. */
static void read_text(struct told *o, enum tools_form form, const char *schemas, const char *p, size_t n, size_t size,
                      bool cut)
{
	*o = (struct told){ 0 };
	tool_calls_begin(&o->t, form, NULL, schemas);
	for (size_t at = 0, step; at < n; at += step) {
		step = size ? size : 1 + draw(9);
		step = step < n - at ? step : n - at;
		tool_calls_take(&o->t, p + at, step);
		write_down(o);
	}
	tool_calls_end(&o->t, cut);
	write_down(o);
	assert_false(o->t.lost);
	bytes_add(&o->log, "", 1);
}

static void forget(struct told *o)
{
	bytes_free(&o->log);
	tool_calls_free(&o->t);
}

/* What holds of any answer. */
static void check_sound(const struct told *o, const char *said)
{
	for (size_t i = 0; i < o->t.found.n; i++) {
		const struct tool_call *c = &o->t.found.call[i];
		json_t *value = json_loadb(c->arguments.p ? c->arguments.p : "", c->arguments.n, JSON_ALLOW_NUL, NULL);
		if (c->whole != json_is_object(value))
			fail_msg("%s: %.*s, of: %s", c->whole ? "whole, and no object" : "it looks whole",
			         (int)c->arguments.n, c->arguments.p, said);
		if (!c->whole && !c->said)
			fail_msg("what the model wrote is not kept: %s", said);
		json_decref(value);
	}
}

static void check_cuts(enum tools_form form, const char *schemas, const char *said, size_t n)
{
	static const size_t sizes[] = { 1, 2, 3, 0, 0 };
	struct told whole, other;

	read_text(&whole, form, schemas, said, n, n ? n : 1, false);
	check_sound(&whole, said);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		read_text(&other, form, schemas, said, n, sizes[i], false);
		if (whole.log.n != other.log.n || memcmp(whole.log.p, other.log.p, whole.log.n) != 0)
			fail_msg("form %d, pieces of %zu: %s\nbut whole: %s\nof: %s", form, sizes[i], other.log.p,
			         whole.log.p, said);
		forget(&other);
	}
	/* Cut off, it says nothing else of a call than the whole text does. */
	size_t at = n ? draw((uint32_t)n) : 0;
	read_text(&other, form, schemas, said, at, 0, true);
	check_sound(&other, said);
	for (size_t i = 0; i < other.t.found.n; i++) {
		const struct tool_call *c = &other.t.found.call[i], *w = &whole.t.found.call[i];
		if (i >= whole.t.found.n || strcmp(c->name, w->name) != 0 ||
		    (c->whole && (!w->whole || c->arguments.n != w->arguments.n)) || c->arguments.n > w->arguments.n ||
		    memcmp(c->arguments.p, w->arguments.p, c->arguments.n) != 0)
			fail_msg("form %d, cut at %zu: call %zu is another: %s\nwhole: %s\nof: %s", form, at, i,
			         other.log.p, whole.log.p, said);
	}
	forget(&other);
	forget(&whole);
}

/* n calls, with their marks. */
static void put_calls(struct bytes *b, enum tools_form form, unsigned n, json_t *all)
{
	const struct tools_row *row = &tools_rows[form];
	char name[20];

	for (unsigned i = 0; i < n; i++) {
		json_t *arguments = call_any_arguments(form);
		snprintf(name, sizeof name, "call_%u", draw(100));
		bytes_text(b, row->mark[0] && !(row->opened && i == 0) ? row->mark[0] : "");
		call_write(b, form, name, arguments);
		bytes_text(b, row->mark[1] ? row->mark[1] : "");
		bytes_text(b, i + 1 < n && draw(2) && !row->opened ? "\n" : "");
		json_array_append_new(all, json_pack("{s:s, s:o}", "name", name, "arguments", arguments));
	}
}

static unsigned calls_of(enum tools_form form) { return tools_rows[form].mark[0] ? 1 + draw(3) : 1; }

/* What was written is what is read. */
static void test_meant(void **state)
{
	const unsigned max = test_quick() ? (SANITIZED ? 25 : 100) : test_full() ? 10000 : 500;
	(void)state;

	for (enum tools_form form = TOOLS_TAGGED; form < TOOLS_FORMS; form++)
		for (unsigned round = 0; round < max && test_in_part(form); round++) {
			struct bytes said = { 0 };
			struct told o;
			json_t *all = json_array();
			put_calls(&said, form, calls_of(form), all);
			read_text(&o, form, NULL, said.p, said.n, round % 5, false);
			bytes_add(&said, "", 1);
			for (size_t i = 0; i < o.t.found.n || i < json_array_size(all); i++) {
				const struct tool_call *c = i < o.t.found.n ? &o.t.found.call[i] : NULL;
				const json_t *one = json_array_get(all, i), *meant = json_object_get(one, "arguments");
				json_t *got = c ? json_loadb(c->arguments.p, c->arguments.n, 0, NULL) : NULL;
				if (!c || !c->whole || !one || !json_equal(got, meant) ||
				    strcmp(c->name, json_string_value(json_object_get(one, "name"))) != 0)
					fail_msg("form %d, call %zu: %s\nof: %s", form, i, o.log.p, said.p);
				json_decref(got);
			}
			assert_int_equal(o.t.found.text.n, 0);
			check_cuts(form, NULL, said.p, said.n - 1);
			forget(&o);
			bytes_free(&said);
			json_decref(all);
		}
}

/* ---- texts that are spoilt */

static void spoil(struct bytes *b, enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];
	const char *mark = draw(2) ? row->mark[draw(TOOLS_MARKS)] : call_bit();
	static const char *const odd[] = {
		"\\ud83d",          "\\ude00",       "\\u00",       "\xe4\xb8", "\xff", "{\"name\": \"f\", ",
		"</parameter>",     "<parameter=x>", "</function>", "1e999",    "-",    "NaN",
		"\"arguments\": {", "<![CDATA[",     "]]>",         ",,",       "}}}",  "\x7f"
	};
	const char *more = mark ? mark : odd[draw(sizeof odd / sizeof *odd)];
	size_t n = strlen(more), at = draw((uint32_t)b->n + 1), gone = draw(3) ? draw(4) : draw((uint32_t)b->n + 1);
	struct bytes out = { 0 };

	gone = gone < b->n - at ? gone : b->n - at;
	bytes_add(&out, b->p, at);
	bytes_add(&out, more, draw(3) ? n : 0);
	bytes_add(&out, b->p + at + gone, b->n - at - gone);
	bytes_free(b);
	*b = out;
}

#define OF_ALL \
	"\"parameters\":{\"type\":\"object\",\"properties\":{\"key0\":{\"type\":\"string\"},\"key1\":{\"type\":" \
	"\"integer\"}," \
	"\"key2\":{\"type\":\"array\"},\"key3\":{\"type\":\"object\"},\"key4\":{\"type\":[\"string\",\"null\"]}}}}"

static const char functions[] = "[{\"name\":\"f\"," OF_ALL ",{\"name\":\"call\"," OF_ALL "]";

/* Functions of all names that are drawn. */
static const char *functions_text(void)
{
	static char text[100 * (sizeof OF_ALL + 30)];
	size_t n = 0;

	for (unsigned i = 0; i < 100; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%c{\"name\":\"call_%u\",%s", i ? ',' : '[', i,
		                      OF_ALL);
	strcpy(text + n, "]");
	return text;
}

static void test_spoilt(void **state)
{
	const unsigned max = test_quick() ? (SANITIZED ? 50 : 200) : test_full() ? 40000 : 2000;
	(void)state;

	for (enum tools_form form = TOOLS_NONE; form < TOOLS_FORMS; form++)
		for (unsigned round = 0; round < max && test_in_part(form); round++) {
			struct bytes said = { 0 };
			json_t *all = json_array();
			if (form != TOOLS_NONE)
				put_calls(&said, form, calls_of(form), all);
			else
				bytes_text(&said, "plain <tool_call> text");
			for (unsigned i = 0; i < 1 + round % 4; i++)
				spoil(&said, form);
			bytes_add(&said, "", 1);
			check_cuts(form, round % 2 ? functions_text() : NULL, said.p, said.n - 1);
			bytes_free(&said);
			json_decref(all);
		}
}

/* ---- what is known early is said early, and nothing before it is */

static const struct {
	enum tools_form form;
	const char *said, *log; /* log: behind what was said so far */
} early[] = {
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"f\"", "" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": { ", "" },
	{ TOOLS_ARGS, "[TOOL_CALLS]f[ARGS]{ ", "" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"\\ude00a", "\nBf\nP{\"x\":\"\\ufffda" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"", "\nBf\nP{\"" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1", "\nBf\nP{\"x\":" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1,", "\nBf\nP{\"x\":1," },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"a\\u00e", "\nBf\nP{\"x\":\"a" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"\\ud83d", "\nBf\nP{\"x\":\"" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"\\ud83da", "\nBf\nP{\"x\":\"\\ufffda" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"</tool_call>",
	  "\nBf\nP{\"x\":\"</tool_call>" },
	{ TOOLS_TAGGED, "<tool_call>{\"arguments\":{\"x\":\"abc", "" },
	{ TOOLS_TAGGED, "<tool_call>{\"arguments\":{\"x\":\"a\"},\"name\":\"f\"", "\nBf\nP{\"x\":\"a\"}\nE" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": \\\"a", "\nBf\nP{\"x\":\"a" },
	{ TOOLS_TAGGED, "<tool_call>{\"name\":7,", "" },
	{ TOOLS_LIST, "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{\"x\":{}},", "\nBf\nP{\"x\":{}}\nE" },
	{ TOOLS_ARGS, "[TOOL_CALLS]f[ARGS]{\"x\":\"ab", "\nBf\nP{\"x\":\"ab" },
	{ TOOLS_BARE, "{\"name\":\"f\",\"parameters\":{\"x\":\"ab", "\nBf\nP{\"x\":\"ab" },
	{ TOOLS_BARE, "{\"a\":1, 7", "\nT{\"a\":1, 7" },
	{ TOOLS_HARMONY, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":\"a",
	  "\nBf\nP{\"x\":\"a" },
	/* of a text, what is behind the first byte that no JSON has; of a value that may be a text, nothing */
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=x>\na b\n</para", "\nBf\nP{\"x\":\"a b" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=x>\n[1, 2", "\nBf\nP{" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=x>\n[1, 2 or", "\nBf\nP{\"x\":\"[1, 2 or" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key0>\n[1, 2", "\nBf\nP{\"key0\":\"[1, 2" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key1>\n12", "\nBf\nP{" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key2>\n[1, 2,", "\nBf\nP{\"key2\":[1,2," },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key4>\nnull", "\nBf\nP{" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key3>{\"a\":</parameter> 1}}",
	  "\nBf\nP{\"key3\":{\"a\":</parameter> 1}}" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n<parameter=key3>{}}", "\nBf\nP{\"key3\":{},,}" },
	{ TOOLS_ELEMENTS, "<tool_call>\n<function=f>\n</function>", "\nBf\nP{}\nE" },
	{ TOOLS_GLM, "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>ab</arg", "\nBf\nP{\"x\":\"ab" },
	{ TOOLS_GLM, "<tool_call>f g", "" },
	{ TOOLS_DSML,
	  "<\xef\xbd\x9c"
	  "DSML\xef\xbd\x9cinvoke name=\"f\">\n<\xef\xbd\x9c"
	  "DSML\xef\xbd\x9cparameter name=\"x\" string=\"true\">1",
	  "\nBf\nP{\"x\":\"1" },
	{ TOOLS_PARAM, "<function name=\"f\"><param name=\"x\"><![CDATA[1 </param> 2]]",
	  "\nBf\nP{\"x\":\"1 </param> 2" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[f(x=", "" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[f(x=1})", "\nBf\nP{\"x\":1,,})" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[f(x='a\\", "\nBf\nP{\"x\":\"a" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[f(x='a', y=[12", "\nBf\nP{\"x\":\"a\",\"y\":[" },
	{ TOOLS_PYTHON, "<|tool_call_start|>[f(x='<|tool_call_end|>", "\nBf\nP{\"x\":\"<|tool_call_end|>" },
	{ TOOLS_BRACES, "<|tool_call>call:f{x:<|\"|>a<|", "\nBf\nP{\"x\":\"a" },
};

static void test_early(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof early / sizeof *early; i++) {
		struct told o = { 0 };
		tool_calls_begin(&o.t, early[i].form, NULL, functions);
		tool_calls_take(&o.t, early[i].said, strlen(early[i].said));
		write_down(&o);
		bytes_add(&o.log, "", 1);
		if (strcmp(o.log.p, early[i].log) != 0)
			fail_msg("%s: %s\nexpected %s", early[i].said, o.log.p, early[i].log);
		forget(&o);
	}
}

/* ---- while there is no memory: the linker leads the readers' allocations through here (--wrap in Makefile.am),
 * jansson is told of them */

static struct {
	bool armed;
	unsigned at, count;
} fault;

static bool fails(void) { return fault.armed && ++fault.count == fault.at; }

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n) { return fails() ? NULL : __real_strndup(text, n); }

/* The at-th allocation fails, 0: none. Whether the reader says that it was lost. What it told is there in any case. */
static bool is_lost(struct told *o, enum tools_form form, const struct bytes *said, unsigned at)
{
	enum { STEP = 7 };

	*o = (struct told){ 0 };
	fault.at = at;
	fault.count = 0;
	for (size_t from = 0; from <= said->n; from += STEP) {
		size_t n = said->n - from < STEP ? said->n - from : STEP;
		fault.armed = true;
		if (from == 0)
			tool_calls_begin(&o->t, form, NULL, functions);
		tool_calls_take(&o->t, said->p + from, n);
		fault.armed = false;
		write_down(o);
	}
	fault.armed = true;
	tool_calls_end(&o->t, false);
	fault.armed = false;
	write_down(o);
	bytes_add(&o->log, "", 1);
	return o->t.lost;
}

static void check_short(enum tools_form form, const struct bytes *said)
{
	struct told whole, other;

	assert_false(is_lost(&whole, form, said, 0));
	const unsigned n = fault.count, step = test_full() || n < 200 ? 1 : 1 + n / 200;
	for (unsigned at = 1; at <= n; at += step) {
		if (!is_lost(&other, form, said, at) && strcmp(other.log.p, whole.log.p) != 0)
			fail_msg("form %d, allocation %u fails: %s\nbut else: %s\nof: %s", form, at, other.log.p,
			         whole.log.p, said->p);
		forget(&other);
	}
	forget(&whole);
}

static void test_short(void **state)
{
	static const char arguments[] = "{\"key0\":\"42\",\"key1\":-3.25,"
					"\"key2\":[true,\"\\u00e9\"],\"key4\":\"null\"}";
	static const char number[] =
		"<tool_call>{\"name\":\"f\",\"arguments\":"
		"{\"x\":3.14159265358979323846264338327950288419716939937510582097494459230781}}</tool_call>";
	struct bytes long_number = { 0 };
	json_malloc_t take;
	json_free_t give;
	(void)state;

	bytes_text(&long_number, number);
	check_short(TOOLS_TAGGED, &long_number);
	bytes_free(&long_number);
	json_get_alloc_funcs(&take, &give);
	json_set_alloc_funcs(__wrap_malloc, free);
	for (enum tools_form form = TOOLS_TAGGED; form < TOOLS_FORMS; form++)
		for (unsigned round = 0; round < 4; round++) {
			const struct tools_row *row = &tools_rows[form];
			struct bytes said = { 0 };
			json_t *o = json_loads(arguments, 0, NULL);
			bytes_text(&said, row->mark[0] && !row->opened ? row->mark[0] : "");
			call_write(&said, form, "call", o);
			bytes_text(&said, row->mark[1] ? row->mark[1] : "");
			bytes_text(&said, row->mark[1] ? " and a text" : "");
			bytes_add(&said, "", 1);
			said.n--;
			check_short(form, &said);
			bytes_free(&said);
			json_decref(o);
		}
	json_set_alloc_funcs(take, give);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meant),
		cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
