/* runtime/session/answers.c - jit_answer: what a model says, read by the form that its chat template teaches.
 *
 * Owns: which form that is, and what of an answer callers see. answers/ owns what texts mean.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/answer.h"
#include "answers/think.h"
#include "answers/tool_grammar.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "runtime/session/answer_marks.h"
#include "runtime/session/chat.h"
#include "include/jitrun_answers.h"
#include "include/jitrun_grammar.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

struct jit_answer {
	struct answer answer;
	struct answer_marks marks;
	char *prefix; /* of ids */
	char **id;    /* of calls, n_ids of them */
	size_t n_ids;
	size_t next; /* of the events */
	bool ended;
};

static bool lacks_memory(struct error *e) { return error_set(e, ERROR_MEMORY, "no memory for an answer"); }

/* ---- options */

/* The functions of the tools; *functions NULL: there are none. False: err. */
static bool read_tools(json_t **functions, const char *tools, const char *field, struct error *e)
{
	json_t *list = NULL, *tool;
	size_t i;
	bool ok = true;

	*functions = NULL;
	if (!tools)
		return true;
	if (!(list = json_read(tools, strlen(tools), JSON_MAX_CONFIG, field, e)))
		return false;
	if (!json_is_array(list))
		ok = error_set(e, ERROR_ARGUMENT, "%s is %s, expected an array", field, json_kind(list));
	json_array_foreach(list, i,
	                   tool) if (ok && !json_is_string(json_object_get(json_object_get(tool, "function"), "name")))
		ok = error_set(e, ERROR_ARGUMENT, "%s: tool %zu has no function with a name", field, i);
	json_lacks();
	if (ok && json_array_size(list) && !(*functions = tool_grammar_functions(list)))
		ok = lacks_memory(e);
	json_decref(list);
	return ok;
}

/* The form of calls that the template teaches by which a conversation with these tools is rendered, and that template,
 * NULL: the answer has none. False: err. */
static bool find_form(enum tools_form *form, const char **by, const jit_model *m, const char *text, const char *name,
                      const char *tools, struct error *e)
{
	const jit_chat_options o = { .template_text = text, .template_name = name, .tools = tools };
	const char *found = text;
	size_t n;

	if (!m && !text)
		return error_set(e, ERROR_ARGUMENT, "m is NULL, and there is no template_text");
	if (!m && name)
		return error_set(e, ERROR_ARGUMENT, "template_name is \"%.60s\", and m is NULL", name);
	if (!m || chat_find_text(&m->file, &o, &found, &n, e))
		*form = tools_form_of(found);
	*by = found;
	return e->code == 0;
}

static bool begin(jit_answer *a, const jit_model *m, const jit_answer_options *o, struct error *e)
{
	enum tools_form form = TOOLS_NONE;
	const char *template_text;
	json_t *functions = NULL;
	bool ok = find_form(&form, &template_text, m, o->template_text, o->template_name, o->tools, e) &&
	          read_tools(&functions, o->tools, "jit_answer_options.tools", e);
	char *text = ok && functions ? json_write(json_incref(functions)) : NULL;

	if (ok && functions && !text)
		ok = lacks_memory(e);
	if (ok && o->opened && !functions)
		ok = error_set(e, ERROR_ARGUMENT, "jit_answer_options.opened is given, and there are no tools");
	if (ok && !(a->prefix = strdup(o->id ? o->id : "call")))
		ok = lacks_memory(e);
	if (ok) {
		form = tools_form_in((int)form, functions != NULL);
		a->answer.keeps_reasoning = o->keep_reasoning;
		a->answer.one_call = o->one_call;
		answer_begin(&a->answer, o->prompt ? o->prompt : "", o->prompt ? o->n_prompt : 0, form, o->opened,
		             text);
		if (m && form != TOOLS_NONE)
			answer_marks_find(&a->marks, m, form);
		ok = !a->answer.tools.lost || lacks_memory(e);
	}
	free(text);
	json_decref(functions);
	return ok;
}

static bool read_options(jit_answer_options *o, const jit_answer_options *options, struct error *e)
{
	if (!SIZED_READ(jit_answer_options, o, options, e))
		return false;
	if (o->reserved)
		return error_set(e, ERROR_ARGUMENT, "reserved: %d is not 0", o->reserved);
	return (o->prompt || o->n_prompt == 0) ||
	       error_set(e, ERROR_ARGUMENT, "jit_answer_options.prompt is NULL, and n_prompt is %zu", o->n_prompt);
}

static jit_answer *open_answer(const jit_model *m, const jit_answer_options *o, struct error *e)
{
	jit_answer *a = calloc(1, sizeof *a);

	if (!a)
		lacks_memory(e);
	if (a && begin(a, m, o, e))
		return a;
	jit_answer_close(a);
	return NULL;
}

jit_answer *jit_answer_open(const jit_model *m, const jit_answer_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_answer_options o;
	jit_answer *a = read_options(&o, options, &e) ? open_answer(m, &o, &e) : NULL;

	model_report(err, &e);
	return a;
}

void jit_answer_close(jit_answer *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_ids; i++)
		free(a->id[i]);
	free(a->id);
	free(a->prefix);
	answer_free(&a->answer);
	free(a);
}

/* ---- events */

/* Every call that was told has an id. */
static bool name_calls(jit_answer *a, struct error *e)
{
	const size_t n = a->answer.tools.found.n, length = strlen(a->prefix) + 24;

	if (a->answer.lost)
		return lacks_memory(e);
	char **more = n > a->n_ids ? realloc(a->id, n * sizeof *more) : a->id;
	if (n > a->n_ids && !more)
		return lacks_memory(e);
	a->id = more;
	for (; a->n_ids < n; a->n_ids++) {
		if (!(a->id[a->n_ids] = malloc(length)))
			return lacks_memory(e);
		snprintf(a->id[a->n_ids], length, "%s_%zu", a->prefix, a->n_ids);
	}
	return true;
}

/* What was told already makes room. */
static bool goes_on(jit_answer *a, const char *function, struct error *e)
{
	if (a->next == a->answer.n) {
		answer_clear(&a->answer);
		a->next = 0;
	}
	return !a->ended || error_set(e, ERROR_ARGUMENT, "%s: the answer was finished before", function);
}

int jit_answer_feed(jit_answer *a, const char *text, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(a, &e) && NEEDED_LIST(text, n, &e) && goes_on(a, __func__, &e)) {
		answer_take(&a->answer, text, n);
		name_calls(a, &e);
	}
	return model_report(err, &e);
}

const char *jit_answer_mark(const jit_answer *a, int32_t id, size_t *n)
{
	const char *mark = a && n ? answer_marks_text(&a->marks, id) : NULL;

	if (n)
		*n = mark ? strlen(mark) : 0;
	return mark;
}

int jit_answer_finish(jit_answer *a, int cut, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(a, &e) && goes_on(a, __func__, &e)) {
		a->ended = true;
		answer_end(&a->answer, cut);
		name_calls(a, &e);
	}
	return model_report(err, &e);
}

static void fill(jit_answer_event *own, const jit_answer *a, const struct answer_event *event)
{
	static const int kinds[] = { [ANSWER_TEXT] = JIT_ANSWER_TEXT,
		                     [ANSWER_REASONING] = JIT_ANSWER_REASONING,
		                     [ANSWER_CALL] = JIT_ANSWER_CALL,
		                     [ANSWER_ARGUMENTS] = JIT_ANSWER_ARGUMENTS,
		                     [ANSWER_CALL_END] = JIT_ANSWER_CALL_END };
	const bool of_call = event->kind != ANSWER_TEXT && event->kind != ANSWER_REASONING;

	own->kind = kinds[event->kind];
	own->text = event->n ? a->answer.told.p + event->from : "";
	own->n = event->n;
	if (of_call) {
		const struct tool_call *call = &a->answer.tools.found.call[event->call];
		own->call = (int)event->call;
		own->id = a->id[event->call];
		own->name = call->name;
		own->whole = event->kind == ANSWER_CALL_END && call->whole;
	}
}

int jit_answer_next(jit_answer *a, jit_answer_event *out, jit_error *err)
{
	struct error e = { 0 };
	jit_answer_event own = { .text = "" };

	if (NEEDED(a, &e) && NEEDED(out, &e)) {
		if (a->next < a->answer.n)
			fill(&own, a, &a->answer.event[a->next]);
		if (SIZED_WRITE(jit_answer_event, out, &own, &e) && a->next < a->answer.n)
			a->next++;
	}
	return model_report(err, &e);
}

/* ---- a whole answer */

static void gather(const jit_answer *a, struct bytes *text, struct bytes *reasoning)
{
	for (size_t i = 0; i < a->answer.n; i++) {
		const struct answer_event *event = &a->answer.event[i];
		if (event->kind == ANSWER_TEXT || event->kind == ANSWER_REASONING)
			bytes_add(event->kind == ANSWER_TEXT ? text : reasoning, a->answer.told.p + event->from,
			          event->n);
	}
}

static json_t *calls_of(const jit_answer *a)
{
	const struct tool_events *found = &a->answer.tools.found;
	json_t *list = json_array();

	for (size_t i = 0; i < found->n && (i == 0 || !a->answer.one_call); i++) {
		const struct tool_call *c = &found->call[i];
		json_t *call = json_object(), *function = json_object();
		json_put(call, "id", json_text(a->id[i], strlen(a->id[i])));
		json_put(call, "type", json_string("function"));
		json_put(function, "name", json_text(c->name, strlen(c->name)));
		json_put(function, "arguments", json_text(c->arguments.n ? c->arguments.p : "", c->arguments.n));
		json_put(call, "function", function);
		json_add(list, call);
	}
	return list;
}

static char *message_of(const jit_answer *a, const struct bytes *text, const struct bytes *reasoning)
{
	json_t *o;

	if (text->lost || reasoning->lost)
		return NULL;
	json_lacks();
	o = json_object();
	json_put(o, "role", json_string("assistant"));
	if (reasoning->n)
		json_put(o, "reasoning_content", json_text(reasoning->p, reasoning->n));
	json_put(o, "content", json_text(text->n ? text->p : "", text->n));
	if (a->answer.tools.found.n)
		json_put(o, "tool_calls", calls_of(a));
	return json_write(o);
}

static char *parse(jit_answer *a, const char *text, size_t n, bool cut, struct error *e)
{
	struct bytes said = { 0 }, reasoning = { 0 };
	char *out = NULL;

	answer_take(&a->answer, text, n);
	answer_end(&a->answer, cut);
	gather(a, &said, &reasoning);
	if (name_calls(a, e) && !(out = message_of(a, &said, &reasoning)))
		lacks_memory(e);
	bytes_free(&said);
	bytes_free(&reasoning);
	return out;
}

char *jit_chat_parse(const jit_model *m, const char *text, size_t n, const jit_answer_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_answer_options o;
	jit_answer *a = NEEDED_LIST(text, n, &e) && read_options(&o, options, &e) ? open_answer(m, &o, &e) : NULL;
	char *out = a ? parse(a, text, n, o.cut, &e) : NULL;

	jit_answer_close(a);
	model_report(err, &e);
	return out;
}

/* ---- forced calls */

/* The functions that may be called. NULL: err. */
static json_t *wanted(const jit_forced_options *o, struct error *e)
{
	json_t *functions = NULL, *one, *own = NULL;
	size_t i;

	if (!read_tools(&functions, o->tools, "jit_forced_options.tools", e))
		return NULL;
	if (!functions) {
		error_set(e, ERROR_ARGUMENT, "jit_forced_options.tools has no function to call");
		return NULL;
	}
	if (!o->function)
		return functions;
	json_array_foreach(functions, i,
	                   one) if (strcmp(json_string_value(json_object_get(one, "name")), o->function) == 0) own =
		own ? own : one;
	if (!own)
		error_set(e, ERROR_ARGUMENT, "jit_forced_options.function is \"%.200s\", which tools do not have",
		          o->function);
	json_t *list = own ? json_pack("[O]", own) : NULL;
	if (own && !list)
		lacks_memory(e);
	json_decref(functions);
	return list;
}

static bool force(const jit_model *m, const jit_forced_options *o, jit_forced_call *out, struct error *e)
{
	struct tool_grammar g = { 0 };
	enum tools_form form = TOOLS_NONE;
	const char *template_text = NULL;
	json_t *functions = NULL;

	if (o->reserved)
		return error_set(e, ERROR_ARGUMENT, "reserved: %d is not 0", o->reserved);
	json_lacks();
	bool ok = find_form(&form, &template_text, m, o->template_text, o->template_name, o->tools, e) &&
	          (functions = wanted(o, e)) && tool_grammar_make(&g, functions, form, o->one_call || o->function, e) &&
	          model_go_on(m, g.prompt, true, &out->ids, &out->n_ids, e);
	json_decref(functions);
	if (!ok) {
		tool_grammar_free(&g);
		return false;
	}
	out->kind = (g.in_form ? JIT_GRAMMAR_CALL : JIT_GRAMMAR_JSON_SCHEMA) | (g.strict ? JIT_GRAMMAR_ADDITIONAL : 0);
	const struct think_before before =
		o->prompt ? think_before(o->prompt, o->n_prompt, template_text) : (struct think_before){ 0 };
	out->behind_reasoning = before.inside || before.may;
	out->grammar = g.text;
	out->n_grammar = strlen(g.text);
	out->prompt = g.prompt;
	out->n_prompt = strlen(g.prompt);
	out->opened = g.opened;
	return true;
}

/* What a caller's struct has no room for is nobody's. */
static void drop_unseen(jit_forced_call *own, size_t size)
{
	if (size < offsetof(jit_forced_call, grammar) + sizeof own->grammar)
		free(own->grammar);
	if (size < offsetof(jit_forced_call, prompt) + sizeof own->prompt)
		free(own->prompt);
	if (size < offsetof(jit_forced_call, ids) + sizeof own->ids)
		free(own->ids);
	if (size < offsetof(jit_forced_call, opened) + sizeof own->opened)
		free(own->opened);
}

int jit_call_force(const jit_model *m, const jit_forced_options *options, jit_forced_call *out, jit_error *err)
{
	struct error e = { 0 };
	jit_forced_options o;
	jit_forced_call own = { 0 };

	if (NEEDED(m, &e) && NEEDED(options, &e) && SIZED_READ(jit_forced_options, &o, options, &e) &&
	    SIZED_WRITE(jit_forced_call, out, &own, &e) && force(m, &o, &own, &e)) {
		SIZED_WRITE(jit_forced_call, out, &own, &e);
		drop_unseen(&own, out->size);
	}
	return model_report(err, &e);
}

void jit_forced_call_free(jit_forced_call *out)
{
	if (!out)
		return;
	free(out->grammar);
	free(out->prompt);
	free(out->ids);
	free(out->opened);
	out->grammar = out->prompt = out->opened = NULL;
	out->ids = NULL;
	out->n_grammar = out->n_prompt = out->n_ids = 0;
}
