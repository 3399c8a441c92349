/* tests/answers/t_answers.c - jitrun_answers.h: answers read in pieces of every size, as whole ones are, and calls that
 * are forced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "include/jitrun_answers.h"
#include "include/jitrun_grammar.h"
#include "tests/answers/answers.h"
#include "tests/support/no_memory.h"
#include "tests/support/shared.h"

static jit_model *model;

/* ---- what events tell, put together by hand */

struct told {
	char text[2000], reasoning[400];
	unsigned calls;
	struct {
		char id[40], name[40], arguments[400];
		int ended, whole;
	} call[4];
};

static void add(char *to, size_t size, const jit_answer_event *e)
{
	size_t n = strlen(to);

	assert_true(n + e->n < size);
	memcpy(to + n, e->text, e->n);
	to[n + e->n] = 0;
}

static void take_events(jit_answer *a, struct told *t)
{
	jit_error err = { 0 };
	jit_answer_event e = JIT_ANSWER_EVENT();

	while (jit_answer_next(a, &e, &err) == JIT_OK && e.kind != JIT_ANSWER_NOTHING) {
		assert_in_range(e.call, 0, 3);
		if (e.kind == JIT_ANSWER_TEXT || e.kind == JIT_ANSWER_REASONING) {
			assert_true(e.n > 0 && !e.id && !e.name);
			if (e.kind == JIT_ANSWER_TEXT)
				add(t->text, sizeof t->text, &e);
			else
				add(t->reasoning, sizeof t->reasoning, &e);
			continue;
		}
		if (e.kind == JIT_ANSWER_CALL) {
			assert_int_equal(e.call, t->calls++);
			snprintf(t->call[e.call].id, 40, "%s", e.id);
			snprintf(t->call[e.call].name, 40, "%s", e.name);
		}
		assert_true((unsigned)e.call < t->calls && !t->call[e.call].ended);
		assert_string_equal(e.id, t->call[e.call].id);
		assert_string_equal(e.name, t->call[e.call].name);
		if (e.kind == JIT_ANSWER_ARGUMENTS)
			add(t->call[e.call].arguments, sizeof t->call[e.call].arguments, &e);
		t->call[e.call].ended = e.kind == JIT_ANSWER_CALL_END;
		t->call[e.call].whole = e.whole;
	}
	assert_int_equal(err.code, JIT_OK);
	assert_int_equal(e.n, 0);
}

/* In pieces that end at `cut`, and every `step` bytes behind it. */
static void read_in_parts(const char *says, const jit_answer_options *o, size_t cut, size_t step, int cut_off,
                          struct told *t)
{
	jit_error err = { 0 };
	jit_answer *a = jit_answer_open(NULL, o, &err);
	size_t n = strlen(says);

	*t = (struct told){ 0 };
	if (!a)
		fail_msg("%s", err.message);
	for (size_t at = 0, next; at < n; at = next) {
		next = at == 0 ? cut : at + step;
		next = next < n ? next : n;
		char *part = strndup(says + at, next - at); /* a sanitizer sees what is read beyond it */
		assert_int_equal(jit_answer_feed(a, part, next - at, &err), JIT_OK);
		free(part);
		if (at % 3 || step < 3) /* else they wait for the next ones */
			take_events(a, t);
	}
	assert_int_equal(jit_answer_finish(a, cut_off, &err), JIT_OK);
	take_events(a, t);
	jit_answer_close(a);
}

static void check_told(const struct told *t, const json_t *message, const char *says)
{
	const json_t *calls = json_object_get(message, "tool_calls");
	const char *reasoning = json_string_value(json_object_get(message, "reasoning_content"));

	assert_string_equal(t->text, json_string_value(json_object_get(message, "content")));
	assert_string_equal(t->reasoning, reasoning ? reasoning : "");
	if (t->calls != json_array_size(calls))
		fail_msg("%u calls in %s", t->calls, says);
	for (unsigned i = 0; i < t->calls; i++) {
		const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
		assert_string_equal(t->call[i].id, json_string_value(json_object_get(call, "id")));
		assert_string_equal(t->call[i].name, json_string_value(json_object_get(function, "name")));
		assert_string_equal(t->call[i].arguments, json_string_value(json_object_get(function, "arguments")));
		assert_true(t->call[i].ended && t->call[i].whole);
	}
}

static void parts_of_every_size_are_the_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ANSWERS; i++) {
		const jit_answer_options o = JIT_ANSWER_OPTIONS(.tools = tools, .template_text = answers[i].teaches);
		const char *says = answers[i].says;
		jit_error err = { 0 };
		json_t *expected = read_json(answers[i].message);
		char *text = jit_chat_parse(NULL, says, strlen(says), &o, &err);
		if (!text)
			fail_msg("%s: %s", says, err.message);
		json_t *message = read_json(text);
		if (!json_equal(message, expected))
			fail_msg("%s\nis read as\n%s, expected\n%s", says, text, answers[i].message);
		for (size_t cut = 1; cut <= strlen(says); cut++)
			for (size_t step = 1; step <= strlen(says); step += step < 3 ? 1 : strlen(says)) {
				struct told t;
				read_in_parts(says, &o, cut, step, 0, &t);
				check_told(&t, expected, says);
			}
		json_decref(message);
		json_decref(expected);
		free(text);
	}
}

/* ---- options */

static char *parsed(const char *says, jit_answer_options o)
{
	jit_error err = { 0 };
	char *text = jit_chat_parse(NULL, says, strlen(says), &o, &err);

	if (!text)
		fail_msg("%s", err.message);
	return text;
}

static void check_has(const char *says, jit_answer_options o, const char *has, const char *lacks)
{
	char *text = parsed(says, o);

	if (!strstr(text, has) || (lacks && strstr(text, lacks)))
		fail_msg("%s\nis read as\n%s", says, text);
	free(text);
}

static void every_option_counts(void **state)
{
	static const char two[] = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>"
				  "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
	static const char begun[] = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1";
	struct told t;
	(void)state;

	check_has(two, JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools), "\"call_1\"", NULL);
	check_has(two, JIT_ANSWER_OPTIONS(.template_text = ""), "\"content\":\"<tool_call>", "tool_calls");
	check_has(two, JIT_ANSWER_OPTIONS(.template_text = "", .tools = "[]"), "\"content\":\"<tool_call>",
	          "tool_calls");
	check_has(two, JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools, .id = "x9"), "\"x9_1\"", "call_0");
	check_has(two, JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools, .one_call = 1), "\"call_0\"", "call_1");
	check_has("<think>a</think>b", JIT_ANSWER_OPTIONS(.template_text = "", .keep_reasoning = 1),
	          "\"content\":\"<think>a</think>b\"", "reasoning_content");
	check_has("a</think>b", JIT_ANSWER_OPTIONS(.template_text = "", .prompt = "x<think>\n", .n_prompt = 9),
	          "\"reasoning_content\":\"a\",\"content\":\"b\"", NULL);
	check_has("a</think>b", JIT_ANSWER_OPTIONS(.template_text = "", .prompt = "x<think>\n", .n_prompt = 1),
	          "\"content\":\"a</think>b\"", NULL);
	check_has("add\", \"arguments\": {\"a\": 1}}</tool_call>",
	          JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools, .opened = "\n{\"name\": \""),
	          "\"arguments\":\"{\\\"a\\\":1}\"", NULL);
	check_has(begun, JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools, .cut = 1), "\"call_0\"", NULL);
	for (size_t cut = 1; cut <= strlen(begun); cut++) {
		read_in_parts(begun, &JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools), cut, 1, 1, &t);
		assert_int_equal(t.calls, 1);
		assert_true(t.call[0].ended && !t.call[0].whole);
		read_in_parts(two, &JIT_ANSWER_OPTIONS(.template_text = "", .tools = tools, .one_call = 1), cut, 1, 0,
		              &t);
		assert_int_equal(t.calls, 1);
	}
	check_has("a\xff"
	          "b\0",
	          JIT_ANSWER_OPTIONS(.template_text = ""),
	          "a\xef\xbf\xbd"
	          "b",
	          NULL);
}

static void wrong_options_end_in_a_sentence(void **state)
{
	static const struct {
		jit_answer_options o;
		const char *says;
	} wrong[] = {
		{ { .tools = "{}" }, "jit_answer_options.tools is an object, expected an array" },
		{ { .tools = "[1" }, "jit_answer_options.tools" },
		{ { .tools = "[3]" }, "tool 0 has no function with a name" },
		{ { .tools = "[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":5}}]" },
		  "tool 1 has no function" },
		{ { .n_prompt = 1 }, "prompt is NULL, and n_prompt is 1" },
		{ { .reserved = 2 }, "reserved: 2 is not 0" },
		{ { .opened = "x" }, "opened is given, and there are no tools" },
		{ { .template_name = "a", .template_text = "b" }, "template_name is \"a\"" },
	};
	jit_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		jit_answer_options o = wrong[i].o;
		o.size = sizeof o;
		err = (jit_error){ 0 };
		assert_null(jit_answer_open(model, &o, &err));
		assert_int_not_equal(err.code, JIT_OK);
		if (!strstr(err.message, wrong[i].says))
			fail_msg("\"%s\" is not \"%s\"", err.message, wrong[i].says);
		assert_null(jit_chat_parse(model, "a", 1, &o, &err));
	}
	assert_null(jit_answer_open(NULL, NULL, &err));
	assert_non_null(strstr(err.message, "m is NULL, and there is no template_text"));
	assert_null(jit_answer_open(model, &JIT_ANSWER_OPTIONS(.template_name = "none"), &err));
	assert_non_null(strstr(err.message, "none"));
	jit_answer *a = jit_answer_open(model, NULL, &err);
	size_t n = 7;
	assert_non_null(a);
	assert_string_equal(jit_answer_mark(a, 1, &n), "");
	assert_int_equal(n, 0);
	assert_string_equal(jit_answer_mark(a, -5, &n), "");
	assert_int_equal(jit_answer_finish(a, 0, &err), JIT_OK);
	assert_int_equal(jit_answer_feed(a, "a", 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "was finished before"));
	assert_int_equal(jit_answer_finish(a, 0, &err), JIT_ERROR_ARGUMENT);
	jit_answer_close(a);
}

/* ---- forced calls */

/* An answer of a small model, which knows no calls, that the grammar makes one. */
static char *generate(const jit_forced_call *f, size_t max, bool *complete)
{
	jit_error err = { 0 };
	jit_sampling sampling = JIT_SAMPLING(.temperature = 1, .seed = 3);
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = 512, .threads = 1, .sampling = &sampling), &err);
	char *said = calloc(1, 8192);
	int32_t id;
	size_t n;

	assert_int_equal(jit_session_feed_text(s, "Once", 4, 0, &err), JIT_OK);
	assert_int_equal(f->n_ids ? jit_session_feed(s, f->ids, f->n_ids, &err) : JIT_OK, JIT_OK);
	if (jit_session_set_grammar(s, f->kind, f->grammar, f->n_grammar, &err) != JIT_OK)
		fail_msg("%s", err.message);
	*complete = false;
	for (size_t i = 0; i < max && !*complete; i++) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			break;
		if (jit_model_is_end(model, id))
			break;
		const char *text = jit_session_text(s, id, &n, &err);
		assert_true(strlen(said) + n < 8000);
		strncat(said, text, n);
		*complete = jit_session_grammar_complete(s) == 1;
	}
	jit_session_close(s);
	return said;
}

static void check_call(const char *teaches, const char *function)
{
	jit_error err = { 0 };
	jit_forced_call f = JIT_FORCED_CALL();
	bool complete;

	if (jit_call_force(
		    model,
		    &JIT_FORCED_OPTIONS(.tools = tools, .template_text = teaches, .function = function, .one_call = 1),
		    &f, &err) != JIT_OK)
		fail_msg("%s: %s", teaches, err.message);
	assert_int_equal(strlen(f.prompt), f.n_prompt);
	assert_true(strlen(f.grammar) == f.n_grammar && !(f.kind & JIT_GRAMMAR_ADDITIONAL));
	char *said = generate(&f, 300, &complete);
	const jit_answer_options o =
		JIT_ANSWER_OPTIONS(.tools = tools, .template_text = teaches, .opened = f.opened, .one_call = 1);
	char *text = jit_chat_parse(NULL, said, strlen(said), &o, &err);
	assert_non_null(text);
	json_t *message = read_json(text);
	const json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
	const json_t *of = json_object_get(call, "function");
	if (!complete || !of)
		fail_msg("%s: \"%s%s\" is read as %s", teaches, f.prompt, said, text);
	const char *name = json_string_value(json_object_get(of, "name"));
	json_t *arguments = read_json(json_string_value(json_object_get(of, "arguments")));
	if (function)
		assert_string_equal(name, function);
	if (strcmp(name, "add") == 0)
		assert_true(json_is_integer(json_object_get(arguments, "a")) ||
		            json_is_real(json_object_get(arguments, "a")));
	else
		assert_int_equal(json_object_size(arguments), 0);
	json_decref(arguments);
	json_decref(message);
	free(text);
	free(said);
	jit_forced_call_free(&f);
	assert_null(f.grammar);
	jit_forced_call_free(&f);
}

static void a_forced_call_is_one(void **state)
{
	static const char *const forms[] = {
		"<tool_call>", "<tool_call><function=", "\"parameters\"", "[TOOL_CALLS]", "[ARGS]",
		"<arg_key>",   "<|tool_call_start|>"
	};
	(void)state;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		check_call(forms[i], "add");
		check_call(forms[i], "now");
		check_call(forms[i], NULL);
		jit_forced_call f = JIT_FORCED_CALL();
		const char *strict = "[{\"function\":{\"name\":\"add\",\"strict\":true}}]";
		const jit_forced_options o = JIT_FORCED_OPTIONS(.tools = strict, .template_text = forms[i]);
		assert_int_equal(jit_call_force(model, &o, &f, NULL), JIT_OK);
		assert_int_equal(f.kind & JIT_GRAMMAR_ADDITIONAL, JIT_GRAMMAR_ADDITIONAL);
		jit_forced_call_free(&f);
	}
}

static void what_cannot_be_forced_is_refused(void **state)
{
	static const struct {
		jit_forced_options o;
		const char *says;
	} wrong[] = {
		{ { .tools = NULL }, "has no function to call" },
		{ { .tools = "[]" }, "has no function to call" },
		{ { .tools = "7" }, "jit_forced_options.tools is" },
		{ { .tools = tools, .function = "nothing" }, "function is \"nothing\", which tools do not have" },
		{ { .tools = tools, .reserved = 1 }, "reserved: 1 is not 0" },
		{ { .tools = tools, .template_name = "x", .template_text = "y" }, "template_name is \"x\"" },
		{ { .tools = "[{\"function\":{\"name\":\"a b\"}}]", .template_text = "<arg_key>" },
		  "names of function a b" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		jit_forced_options o = wrong[i].o;
		jit_forced_call f = JIT_FORCED_CALL();
		jit_error err = { 0 };
		o.size = sizeof o;
		if (jit_call_force(model, &o, &f, &err) != JIT_ERROR_ARGUMENT || !strstr(err.message, wrong[i].says))
			fail_msg("\"%s\" is not \"%s\"", err.message, wrong[i].says);
		assert_null(f.grammar);
	}
}

/* ---- tokens that are marks */

/* The model with its first control token spelled as a mark that is as long. */
static void control_tokens_are_marks(void **state)
{
	static const char was[] = "<|begin_of_text|>", mark[] = "<|tool_call_end|>";
	char path[1024], to[] = "/tmp/t_answers-XXXXXX";
	jit_error err = { 0 };
	size_t n, n_mark = 0;
	(void)state;

	uint8_t *bytes = file_bytes(source_path(path, "models/tale-q8_0.gguf"), &n);
	uint8_t *at = memmem(bytes, n, was, strlen(was));
	assert_non_null(at);
	memcpy(at, mark, strlen(mark));
	int file = mkstemp(to);
	assert_true(file >= 0 && write(file, bytes, n) == (ssize_t)n && close(file) == 0);
	free(bytes);
	jit_model *m =
		jit_model_open(to, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	if (!m)
		fail_msg("%s", err.message);
	for (int taught = 0; taught < 3; taught++) {
		jit_answer *a = jit_answer_open(
			m,
			&JIT_ANSWER_OPTIONS(.tools = taught < 2 ? tools : NULL,
		                            .template_text = taught ? "<|tool_call_start|>" : "<tool_call>"),
			&err);
		assert_non_null(a);
		assert_string_equal(jit_answer_mark(a, 0, &n_mark), taught == 1 ? mark : "");
		assert_int_equal(n_mark, taught == 1 ? strlen(mark) : 0);
		assert_string_equal(jit_answer_mark(a, 1, &n_mark), "");
		jit_answer_close(a);
	}
	jit_model_close(m);
	unlink(to);
}

/* ---- while there is no memory */

/* Reads an answer in pieces and makes a call; NULL: an error of memory. */
static char *all_of_it(const char *says, const jit_answer_options *o)
{
	jit_error err = { 0 };
	jit_forced_call f = JIT_FORCED_CALL();
	jit_answer_event e = JIT_ANSWER_EVENT();
	jit_answer *a = jit_answer_open(model, o, &err);
	size_t n = strlen(says);
	char *text = NULL;

	for (size_t i = 0; a && err.code == 0 && i < n; i += 9)
		jit_answer_feed(a, says + i, n - i < 9 ? n - i : 9, &err);
	if (a && err.code == 0 && jit_answer_finish(a, 0, &err) == JIT_OK)
		while (jit_answer_next(a, &e, &err) == JIT_OK && e.kind != JIT_ANSWER_NOTHING)
			;
	jit_answer_close(a);
	if (err.code == 0 &&
	    jit_call_force(model, &JIT_FORCED_OPTIONS(.tools = tools, .template_text = o->template_text), &f, &err) ==
	            JIT_OK) {
		assert_non_null(f.grammar);
		text = jit_chat_parse(model, says, n, o, &err);
	}
	jit_forced_call_free(&f);
	if (err.code != (text ? JIT_OK : JIT_ERROR_MEMORY))
		fail_msg("%d: %s", err.code, err.message);
	return text;
}

static void without_memory_there_is_a_sentence(void **state)
{
	json_malloc_t take;
	json_free_t give;
	unsigned refused = 0;
	(void)state;

	json_get_alloc_funcs(&take, &give);
	json_set_alloc_funcs(__wrap_malloc, free);
	for (size_t i = 1; i < ANSWERS; i += 4) {
		const jit_answer_options o = JIT_ANSWER_OPTIONS(.tools = tools, .template_text = answers[i].teaches);
		memory_fail(0);
		char *whole = all_of_it(answers[i].says, &o);
		const unsigned requests = memory_requests, step = 1 + requests / 150;
		assert_non_null(whole);
		for (unsigned n = 1; n <= requests; n += step) {
			memory_fail(n);
			char *text = all_of_it(answers[i].says, &o);
			memory_fail(0);
			if (text)
				assert_string_equal(text, whole);
			refused += !text;
			free(text);
		}
		free(whole);
	}
	json_set_alloc_funcs(take, give);
	assert_in_range(refused, 100, 1000);
}

static int open_all(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	(void)state;

	source_path(path, "models/tale-q8_0.gguf");
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	return model ? 0 : -1;
}

static int close_all(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_every_size_are_the_whole),  cmocka_unit_test(every_option_counts),
		cmocka_unit_test(wrong_options_end_in_a_sentence),    cmocka_unit_test(a_forced_call_is_one),
		cmocka_unit_test(what_cannot_be_forced_is_refused),   cmocka_unit_test(control_tokens_are_marks),
		cmocka_unit_test(without_memory_there_is_a_sentence),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
