/* chat.c - conversations: chat templates, answers as text, reasoning and calls, and answers that must be a call. */
#include "addon.h"

#include <stdlib.h>

static bool pending(napi_env env)
{
	bool thrown = false;
	napi_is_exception_pending(env, &thrown);
	return thrown;
}

/* Takes texts of an object by their names; false: thrown. */
static bool take_named(napi_env env, napi_value object, const char *const *names, char **out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = NULL;
	for (size_t i = 0; i < n; i++) {
		napi_value value;
		if (napi_get_named_property(env, object, names[i], &value) != napi_ok)
			return false;
		out[i] = take_text(env, value, NULL);
		if (pending(env))
			return false;
	}
	return true;
}

static void free_named(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
}

enum { MESSAGES, TOOLS, VARIABLES, TEMPLATE, TEMPLATE_NAME, FUNCTION, PROMPT, OPENED, N_TEXTS };
static const char *const text_names[N_TEXTS] = { "messages",     "tools",    "variables", "template",
	                                         "templateName", "function", "prompt",    "opened" };

static bool number_of(napi_env env, napi_value object, const char *name, int64_t *out)
{
	napi_value value;
	napi_get_named_property(env, object, name, &value);
	return napi_get_value_int64(env, value, out) == napi_ok;
}

/* render(model, {messages, tools, variables, template, templateName, now, noGenerationPrompt}) */
static napi_value render(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	char *t[N_TEXTS];
	jit_error err = { 0 };
	jit_chat chat = JIT_CHAT();
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	if (!b)
		return NULL;
	if (take_named(env, argv[1], text_names, t, N_TEXTS)) {
		int64_t unfinished = 0;
		jit_chat_options o =
			JIT_CHAT_OPTIONS(.messages = t[MESSAGES], .tools = t[TOOLS], .variables = t[VARIABLES],
		                         .template_text = t[TEMPLATE], .template_name = t[TEMPLATE_NAME]);
		o.has_now = number_of(env, argv[1], "now", &o.now);
		o.no_generation_prompt = number_of(env, argv[1], "noGenerationPrompt", &unfinished) && unfinished;
		if (jit_chat_render(b->p, &o, &chat, &err)) {
			throw_error(env, &err);
		} else {
			napi_create_object(env, &out);
			set(env, out, "text", from_text(env, chat.text, chat.n));
			set(env, out, "ids", from_ids(env, chat.ids, chat.n_ids));
			jit_chat_free(&chat);
		}
	}
	free_named(t, N_TEXTS);
	return out;
}

/* force(model, {tools, function, template, templateName}) */
static napi_value force(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	char *t[N_TEXTS];
	jit_error err = { 0 };
	jit_forced_call f = JIT_FORCED_CALL();
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	if (!b)
		return NULL;
	if (take_named(env, argv[1], text_names, t, N_TEXTS)) {
		jit_forced_options o =
			JIT_FORCED_OPTIONS(.tools = t[TOOLS], .function = t[FUNCTION], .template_text = t[TEMPLATE],
		                           .template_name = t[TEMPLATE_NAME]);
		if (jit_call_force(b->p, &o, &f, &err)) {
			throw_error(env, &err);
		} else {
			napi_create_object(env, &out);
			set(env, out, "kind", from_int(env, f.kind));
			set(env, out, "grammar", from_text(env, f.grammar, f.n_grammar));
			set(env, out, "ids", from_ids(env, f.ids, f.n_ids));
			set(env, out, "opened", from_text(env, f.opened, NAPI_AUTO_LENGTH));
			jit_forced_call_free(&f);
		}
	}
	free_named(t, N_TEXTS);
	return out;
}

/* answer(model, {tools, template, templateName, prompt, opened}) */
static napi_value open_answer(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	char *t[N_TEXTS];
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	if (!b)
		return NULL;
	/* A prompt may have a zero byte. */
	napi_value prompt, undefined;
	size_t n = 0;
	napi_get_named_property(env, argv[1], "prompt", &prompt);
	napi_get_undefined(env, &undefined);
	napi_set_named_property(env, argv[1], "prompt", undefined);
	char *text = take_text(env, prompt, &n);
	if (take_named(env, argv[1], text_names, t, N_TEXTS)) {
		jit_answer_options o = JIT_ANSWER_OPTIONS(.tools = t[TOOLS], .prompt = text, .n_prompt = n,
		                                          .template_text = t[TEMPLATE],
		                                          .template_name = t[TEMPLATE_NAME], .opened = t[OPENED]);
		jit_answer *a = jit_answer_open(b->p, &o, &err);
		out = a ? make_box(env, BOX_ANSWER, a, b) : throw_error(env, &err);
	}
	free(text);
	free_named(t, N_TEXTS);
	return out;
}

static napi_value event_of(napi_env env, const jit_answer_event *e)
{
	static const char *const kinds[] = { "", "text", "reasoning", "call", "arguments", "call_end" };
	napi_value out = NULL, whole;
	napi_create_object(env, &out);
	set(env, out, "kind", from_text(env, kinds[e->kind], NAPI_AUTO_LENGTH));
	if (e->kind == JIT_ANSWER_TEXT || e->kind == JIT_ANSWER_REASONING || e->kind == JIT_ANSWER_ARGUMENTS)
		set(env, out, "text", from_text(env, e->text, e->n));
	if (e->kind >= JIT_ANSWER_CALL)
		set(env, out, "call", from_int(env, e->call));
	if (e->kind == JIT_ANSWER_CALL) {
		set(env, out, "id", from_text(env, e->id, NAPI_AUTO_LENGTH));
		set(env, out, "name", from_text(env, e->name, NAPI_AUTO_LENGTH));
	}
	if (e->kind == JIT_ANSWER_CALL_END) {
		napi_get_boolean(env, e->whole, &whole);
		set(env, out, "whole", whole);
	}
	return out;
}

static bool append_events(napi_env env, jit_answer *a, napi_value list, uint32_t *n, jit_error *err)
{
	for (;;) {
		jit_answer_event e = JIT_ANSWER_EVENT();
		if (jit_answer_next(a, &e, err))
			return false;
		if (e.kind <= JIT_ANSWER_NOTHING || e.kind > JIT_ANSWER_CALL_END)
			return true;
		napi_set_element(env, list, (*n)++, event_of(env, &e));
	}
}

/* answerFeed(answer, text, token) */
static napi_value feed(napi_env env, napi_callback_info info)
{
	napi_value argv[3], list;
	size_t n = 0, n_mark = 0;
	uint32_t events = 0;
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 3) ? take_box(env, argv[0], BOX_ANSWER) : NULL;
	char *text = b ? take_text(env, argv[1], &n) : NULL;
	if (!text)
		return NULL;
	napi_create_array(env, &list);
	bool ok = !jit_answer_feed(b->p, text, n, &err) && append_events(env, b->p, list, &events, &err);
	free(text);
	int id = take_int(env, argv[2]);
	const char *mark = id >= 0 ? jit_answer_mark(b->p, id, &n_mark) : NULL;
	if (ok && mark && n_mark)
		ok = !jit_answer_feed(b->p, mark, n_mark, &err) && append_events(env, b->p, list, &events, &err);
	return ok ? list : throw_error(env, &err);
}

/* answerFinish(answer, cut) */
static napi_value finish(napi_env env, napi_callback_info info)
{
	napi_value argv[2], list;
	uint32_t events = 0;
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_ANSWER) : NULL;
	if (!b)
		return NULL;
	napi_create_array(env, &list);
	if (jit_answer_finish(b->p, take_int(env, argv[1]), &err) || !append_events(env, b->p, list, &events, &err))
		return throw_error(env, &err);
	return list;
}

void export_chat(napi_env env, napi_value exports)
{
	export_function(env, exports, "render", render);
	export_function(env, exports, "force", force);
	export_function(env, exports, "answer", open_answer);
	export_function(env, exports, "answerFeed", feed);
	export_function(env, exports, "answerFinish", finish);
}
