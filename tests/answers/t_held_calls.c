/* tests/answers/t_held_calls.c - texts that are free but for their calls, in each form: what opens a call, what may
 * then follow by the grammar, and that the reader finds the call that was held. */
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
#include "answers/tool_grammar.h"
#include "grammar/call/call.h"
#include "tests/support/shared.h"

static const char functions_text[] =
	"[{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
	"\"maxLength\":3},\"count\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":99}},\"required\":[\"text\","
	"\"count\"],\"additionalProperties\":false}},{\"name\":\"g\",\"parameters\":{\"type\":\"object\","
	"\"additionalProperties\":false}}]";

static json_t *functions;

static uint64_t seed = 88172645463325252u;
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}

static uint32_t walk(struct machine *m, uint32_t state, const char *text)
{
	for (; *text && state != MACHINE_DEAD; text++)
		state = machine_step(m, state, (uint8_t)*text);
	return state;
}

static struct machine *machine_of(enum tools_form form, const char *watched)
{
	struct error err = { 0 };
	json_t *of = json_loads(watched, 0, NULL);
	char *text = tool_grammar_held(functions, of, form, false, &err);

	if (!text)
		fail_msg("form %d: %s", form, err.text);
	struct machine *m = machine_of_call(text, strlen(text), 0, &err);
	if (!m)
		fail_msg("form %d: %s: %s", form, err.text, text);
	json_decref(of);
	free(text);
	return m;
}

/* No mark opens a call of these: the function's name does. */
static bool by_name(enum tools_form form) { return !tools_rows[form].mark[0] || tools_rows[form].opened; }

/* What opens a call; by name: of f. */
static void open_text(enum tools_form form, char out[400])
{
	const struct tools_row *row = &tools_rows[form];
	struct tool_grammar g;
	struct error err = { 0 };

	assert_true(tool_grammar_make(&g, functions, form, false, &err));
	snprintf(out, 400, "%s%s%s", g.prompt, by_name(form) ? "f" : "",
	         !by_name(form) ? ""
	         : row->opened  ? row->mark[2]
	                        : "\"");
	tool_grammar_free(&g);
}

/* Any text that opens no call is free, may end anywhere, and leaves no trace. */
static void test_text(void **state)
{
	static const char *const words[] = { "The ",  "<b> ", "{\"a\": 1} ", "[1, 2]\n", "a < b ", "<tool",
		                             "```\n", "> ",   "\xc3\xa4",    "call",     "\"x\"",  "functions" };
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct machine *m = machine_of(form, functions_text);
		for (unsigned round = 0; round < (test_quick() ? 20 : 400); round++) {
			uint32_t at = m->start;
			for (unsigned i = 0; i < 12; i++) {
				at = walk(m, at, words[draw(sizeof words / sizeof *words)]);
				if (at == MACHINE_DEAD || !m->is_free(m, at) || !machine_ends(m, at))
					fail_msg("form %d: a text is not free", form);
			}
		}
		assert_false(m->failed);
		machine_close(m);
	}
}

static void check_read(enum tools_form form, const char *said)
{
	struct tool_calls t = { 0 };

	tool_calls_begin(&t, form, NULL, functions_text);
	tool_calls_take(&t, said, strlen(said));
	tool_calls_end(&t, false);
	if (t.found.n == 0 || (t.found.n != 1 && !tools_rows[form].list))
		fail_msg("form %d: %zu calls of: %s", form, t.found.n, said);
	for (size_t i = 0; i < t.found.n; i++) {
		const struct tool_call *call = &t.found.call[i];
		json_t *given = json_loadb(call->arguments.p, call->arguments.n, JSON_ALLOW_NUL, NULL);
		const json_t *text = json_object_get(given, "text");
		const json_t *count = json_object_get(given, "count");
		if (!call->whole ||
		    (strcmp(call->name, "f") == 0
		             ? !json_is_string(text) || json_object_size(given) != 2 || !json_is_integer(count) ||
		                       json_integer_value(count) < -5 || json_integer_value(count) > 99
		             : json_object_size(given) != 0))
			fail_msg("form %d: %s %.*s, of: %s", form, call->name, (int)call->arguments.n,
			         call->arguments.p, said);
		json_decref(given);
	}
	tool_calls_free(&t);
}

/* Behind an opening any byte that is allowed, until the call ends: the reader finds it, and it is right. */
static void test_calls(void **state)
{
	char said[3000];
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct machine *m = machine_of(form, functions_text);
		unsigned whole = 0;
		for (unsigned round = 0; round < (test_quick() ? 40 : 1000); round++) {
			open_text(form, said);
			size_t n = strlen(said);
			uint32_t at = walk(m, m->start, said);
			assert_false(at == MACHINE_DEAD || m->is_free(m, at));
			while (n + 40 < sizeof said && !machine_ends(m, at)) {
				uint8_t can[256];
				unsigned k = 0;
				for (unsigned b = 1; b < 256; b++)
					if (machine_step(m, at, (uint8_t)b) != MACHINE_DEAD)
						can[k++] = (uint8_t)b;
				assert_true(k > 0);
				said[n] = (char)can[draw(k)];
				at = machine_step(m, at, (uint8_t)said[n++]);
			}
			said[n] = 0;
			if (!machine_ends(m, at))
				continue;
			whole++;
			check_read(form, said);
			/* The text goes on behind the mark that closes. */
			const char *close = tools_rows[form].mark[1];
			if (close && !m->is_free(m, at)) {
				assert_int_equal(walk(m, at, " {\"name\""), MACHINE_DEAD);
				at = walk(m, at, close);
				strcat(said, close);
				check_read(form, said);
			}
			assert_true(at != MACHINE_DEAD && m->is_free(m, at));
			assert_int_not_equal(walk(m, at, "\nDone."), MACHINE_DEAD);
		}
		assert_false(m->failed);
		if (whole < 10)
			fail_msg("form %d: %u texts have an end", form, whole);
		machine_close(m);
	}
}

/* Calls of no other function; and again behind the first call. */
static void test_names(void **state)
{
	char said[400];
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		if (by_name(form))
			continue;
		struct machine *m = machine_of(form, "[{\"name\":\"f\"}]");
		open_text(form, said);
		assert_int_equal(walk(m, walk(m, m->start, said), "h"), MACHINE_DEAD);
		assert_int_not_equal(walk(m, walk(m, m->start, said), "g"), MACHINE_DEAD);
		assert_int_equal(walk(m, walk(m, walk(m, m->start, "Well, "), said), "h"), MACHINE_DEAD);
		machine_close(m);
	}
	/* By name: white space where JSON may have it, the other way in which Llama writes it, and what was not asked.
	 */
	struct machine *m = machine_of(TOOLS_BARE, "[{\"name\":\"f\"}]");
	static const struct {
		const char *said;
		bool is_free;
	} bare[] = { { "{\"name\": \"f\"", false },
		     { " {\n  \"name\" :\"f\"", false },
		     { "{\"type\": \"function\", \"name\": \"f\"", false },
		     { "{\"name\": \"fo\"", true },
		     { "{\"name\": \"g\"", true },
		     { "{\"na me\": \"f\"", true },
		     { "x{\"name\": \"f\"", true } };
	for (size_t i = 0; i < sizeof bare / sizeof *bare; i++) {
		const uint32_t at = walk(m, m->start, bare[i].said);
		if (at == MACHINE_DEAD || m->is_free(m, at) != bare[i].is_free)
			fail_msg("%s", bare[i].said);
	}
	assert_int_not_equal(walk(m, m->start, "{\"name\": \"f\", \"parameters\": {\"text\": \"abc\", \"count\": 9}}"),
	                     MACHINE_DEAD);
	assert_int_equal(walk(m, m->start, "{\"name\": \"f\", \"parameters\": {\"text\": \"abcd"), MACHINE_DEAD);
	machine_close(m);
}

/* As models write them. */
static void test_rows(void **state)
{
	static const struct {
		enum tools_form form;
		const char *said;
		bool ends;
	} rows[] = {
		{ TOOLS_HARMONY,
		  "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"text\":\"a\",\"count\":7}",
		  true },
		{ TOOLS_HARMONY, "<|channel|>commentary to=functions.f<|message|>{\"text\":\"a\",\"count\":7}", true },
		{ TOOLS_HARMONY, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"text\":7",
		  false },
		{ TOOLS_HARMONY, "<|channel|>commentary to=functions.f2 <", false },
		{ TOOLS_HARMONY, "<|channel|>final<|message|>Well.", true },
		{ TOOLS_HARMONY, " to=functions.g <|constrain|>json7<|message|>{}", false },
		{ TOOLS_HARMONY, " to=functions.g<|message|>{} Well", true },
		{ TOOLS_INVOKE, "<invoke name=\"g\">\n</invoke>\nWell", true },
		{ TOOLS_KIMI, "<|tool_call_begin|>functions.g:12<|tool_call_argument_begin|>{}<|tool_call_end|>",
		  true },
		{ TOOLS_KIMI, "<|tool_call_begin|>functions.g:12<|tool_call_argument_begin|>{\"", false },
		{ TOOLS_ARGS, "[TOOL_CALLS]g[CALL_ID]abc[ARGS]{}", true },
		{ TOOLS_SOLAR, "<|tool_call:begin|>xy7<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|>", true },
		{ TOOLS_ELEMENTS, "<tool_call><function=g>\n</function>\n</tool_call>", true },
		{ TOOLS_ELEMENTS, "<function=g>\n</function>", true },
		{ TOOLS_ELEMENTS, "<function=h", false },
		/* what closes a call comes next, or the end of the text */
		{ TOOLS_ELEMENTS, "<tool_call>\n<function=g>\n</function>\n\n", true },
		{ TOOLS_ELEMENTS, "<tool_call>\n<function=g>\n</function>\n Well", false },
		{ TOOLS_TAGGED, "<tool_call>{\"name\": \"g\", \"arguments\": {}} Well", false },
		{ TOOLS_TAGGED,
		  "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\"", false },
		{ TOOLS_TAGGED, "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"h",
		  false },
		{ TOOLS_TAGGED, "<<tool_call>{\"name\": \"g\", \"arguments\": {}}\n</tool_call>.", true },
		{ TOOLS_FUNCTOOLS, "The functools module", true },
		{ TOOLS_FUNCTOOLS, "functools[{\"name\": \"g\", \"arguments\": {}}]", true },
		{ TOOLS_JSON, "```json\n{\"a\": 1}\n```", true },
		{ TOOLS_JSON, "Action: ```json", true },
		{ TOOLS_JSON, "Action:```json\n[{\"tool_name\": \"h", false },
		{ TOOLS_RECIPIENT, "all\nWell >>> then", true },
		{ TOOLS_RECIPIENT, "all\nWell.\n>>>f\n{\"c", false },
		{ TOOLS_RECIPIENT, "f\n{\"text\":\"a\",\"count\":7}", true },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct machine *m = machine_of(rows[i].form, functions_text);
		const uint32_t at = walk(m, m->start, rows[i].said);
		if (machine_ends(m, at) != rows[i].ends)
			fail_msg("form %d: %s: %s", rows[i].form, rows[i].ends ? "not allowed" : "allowed",
			         rows[i].said);
		machine_close(m);
	}
}

/* machine_easy() promises what steps then do. */
static void test_easy(void **state)
{
	static const char *const of_class[EASY_CLASSES] = {
		[EASY_ANY] = "tool_call> <|([{",
		[EASY_ASCII] = "<tool_call> /",
		[EASY_SOLID] = "</=>:.[{",
		[EASY_WORD] = "tool_cALSf",
		[EASY_LOWER] = "functionspa"
	};
	char said[400];
	unsigned some = 0;
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct machine *m = machine_of(form, functions_text);
		/* The characters of the opening itself, which may have several bytes, and others behind it. */
		open_text(form, said);
		strcat(said, "!!!!!!!!!!!!!!!!!!!!");
		uint32_t max = machine_easy(m, m->start, EASY_ANY), at = m->start;
		for (const char *p = said; *p && max; max--) {
			const unsigned n = (*p & 0xf0) == 0xe0 ? 3 : 1;
			if (easy_of((uint8_t)*p) == EASY_NOT)
				break;
			for (unsigned i = 0; i < n; i++)
				at = machine_step(m, at, (uint8_t)*p++);
			assert_int_not_equal(at, MACHINE_DEAD);
		}
		for (unsigned round = 0; round < 60; round++) {
			open_text(form, said);
			said[draw((uint32_t)strlen(said) + 1)] = 0;
			const uint32_t from = walk(m, m->start, said);
			for (unsigned c = EASY_ANY; c < EASY_CLASSES; c++) {
				uint32_t many = machine_easy(m, from, (enum easy)c), here = from;
				for (uint32_t k = 0; k < many && k < 40; k++) {
					const char *set = of_class[c], *mark = said + draw((uint32_t)strlen(said) + 1);
					char byte = set[draw((uint32_t)strlen(set))];
					if (draw(2) && *mark > 0 && easy_of((uint8_t)*mark) >= (enum easy)c)
						byte = *mark;
					here = machine_step(m, here, (uint8_t)byte);
					assert_int_not_equal(here, MACHINE_DEAD);
					some++;
				}
			}
		}
		machine_close(m);
	}
	assert_true(some > 100);
}

/* What is no such grammar is refused, and never read past its end. */
static void test_refused(void **state)
{
	static const char *const cases[] = {
		"{\"schema\":{},\"begun\":\"\",\"openings\":[]}",
		"{\"schema\":{},\"begun\":\"\",\"openings\":7}",
		"{\"schema\":{},\"begun\":\"\",\"openings\":[7]}",
		"{\"schema\":{},\"begun\":\"\",\"openings\":[{\"text\":\"\"}]}",
		"{\"schema\":{\"type\":\"null\"},\"begun\":\"\",\"openings\":[{\"text\":\"a\",\"begun\":\"{\"}]}",
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };
		struct machine *m = machine_of_call(cases[i], strlen(cases[i]), 0, &err);
		if (m || err.code != ERROR_ARGUMENT || !*err.text)
			fail_msg("%s: %s", cases[i], err.text);
		free(call_marks(cases[i], strlen(cases[i])));
	}
}

/* Functions as an agent's are. */
static json_t *many_functions(unsigned n)
{
	static const char parameters[] =
		"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"},"
		"\"mode\":{\"enum\":[\"read\",\"write\"]},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
		"},"
		"\"required\":[\"path\",\"count\",\"mode\",\"tags\"],\"additionalProperties\":false}";
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all, json_pack("{s:o, s:o}", "name", json_sprintf("f%u", i), "parameters",
		                                     json_loads(parameters, 0, NULL)));
	return all;
}

/* The machine of so many functions, all of which are held; *steps: what it took. NULL: err. */
static struct machine *machine_of_many(enum tools_form form, unsigned n, uint64_t *steps, struct error *err)
{
	struct effort account = { 0 };
	json_t *all = many_functions(n);
	char *text = tool_grammar_held(all, all, form, false, err);

	assert_non_null(text);
	effort_give(&account, 10 * (uint64_t)EFFORT_TO_OPEN);
	struct effort *before = effort_begin(&account);
	struct machine *m = machine_of_call(text, strlen(text), 0, err);
	effort_end(before);
	*steps = 10 * (uint64_t)EFFORT_TO_OPEN - account.left;
	free(text);
	json_decref(all);
	return m;
}

/* Twice as many functions as OpenAI takes leave most of the account to the first token, and four times as many steps
 * are enough for twice the functions. More are refused for what they are. */
static void test_many(void **state)
{
	uint64_t small, max;
	(void)state;

	for (enum tools_form form = TOOLS_NONE + 1; form < TOOLS_FORMS; form++) {
		struct error err = { 0 };
		if (!by_name(form) && form % 8)
			continue;
		struct machine *half = machine_of_many(form, 125, &small, &err),
			       *m = machine_of_many(form, 250, &max, &err);
		if (!half || !m)
			fail_msg("form %d: %s", form, err.text);
		if (max > EFFORT_TO_OPEN / 3 || max > 5 * small)
			fail_msg("form %d: %llu steps, %llu for half", form, (unsigned long long)max,
			         (unsigned long long)small);
		assert_int_not_equal(walk(m, m->start, "{\"name\": \"f249\""), MACHINE_DEAD);
		machine_close(half);
		machine_close(m);
		if (!tools_rows[form].name && tools_rows[form].body == BODY_JSON)
			continue; /* {NAME: ARGUMENTS}: one schema has all names */
		assert_null(machine_of_many(form, 300, &max, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
	}
}

static int start(void **state)
{
	(void)state;
	functions = json_loads(functions_text, 0, NULL);
	return functions == NULL;
}

static int stop(void **state)
{
	(void)state;
	json_decref(functions);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text), cmocka_unit_test(test_calls), cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows), cmocka_unit_test(test_easy),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
