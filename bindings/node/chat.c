/* chat.c - conversations: chat templates, answers as text, reasoning and calls, and answers that must be a call. */
#include <stdlib.h>

#include "addon.h"

static const char *const text_names[N_TEXTS] = {
	[MESSAGES] = "messages",
	[TOOLS] = "tools",
	[VARIABLES] = "variables",
	[TEMPLATE] = "template",
	[TEMPLATE_NAME] = "templateName",
	[FUNCTION] = "function",
	[OPENED] = "opened",
	[OPENING] = "opening",
	[CALL_ID] = "callId"
};

void free_given(struct given *g)
{
	for (size_t i = 0; i < N_TEXTS; i++)
		free(g->t[i]);
	free(g->prompt);
	*g = (struct given){ 0 };
}

static int flag_of(napi_env env, napi_value object, const char *name)
{
	return take_int(env, named(env, object, name)) != 0;
}

/* model may be undefined. false: thrown. */
bool take_given(napi_env env, napi_value model, napi_value object, struct given *g)
{
	*g = (struct given){ .object = object };
	if (!is_nothing(env, model) && !(g->model = take_box(env, model, BOX_MODEL)))
		return false;
	for (size_t i = 0; i < N_TEXTS && !is_pending(env); i++)
		g->t[i] = take_text(env, named(env, g->object, text_names[i]), NULL);
	if (!is_pending(env))
		g->prompt = take_text(env, named(env, g->object, "prompt"), &g->n_prompt);
	g->one_call = flag_of(env, g->object, "oneCall");
	g->keep_reasoning = flag_of(env, g->object, "keepReasoning");
	g->cut = flag_of(env, g->object, "cut");
	if (!is_pending(env))
		return true;
	free_given(g);
	return false;
}

static jit_model *model_given(const struct given *g) { return g->model ? g->model->p : NULL; }

static napi_value rendered(napi_env env, const struct given *g)
{
	napi_value out = NULL;
	jit_error err = { 0 };
	jit_chat chat = JIT_CHAT();
	jit_chat_options o =
		JIT_CHAT_OPTIONS(.messages = g->t[MESSAGES], .tools = g->t[TOOLS], .variables = g->t[VARIABLES],
	                         .template_text = g->t[TEMPLATE], .template_name = g->t[TEMPLATE_NAME]);
	o.has_now = napi_get_value_int64(env, named(env, g->object, "now"), &o.now) == napi_ok;
	o.no_generation_prompt = flag_of(env, g->object, "noGenerationPrompt");
	if (jit_chat_render(model_given(g), &o, &chat, &err))
		return throw_error(env, &err);
	napi_create_object(env, &out);
	set(env, out, "text", from_text(env, chat.text, chat.n));
	set(env, out, "ids", from_ids(env, chat.ids, chat.n_ids));
	jit_chat_free(&chat);
	return out;
}

static napi_value forced(napi_env env, const struct given *g)
{
	napi_value out = NULL;
	jit_error err = { 0 };
	jit_forced_call f = JIT_FORCED_CALL();
	const jit_forced_options o =
		JIT_FORCED_OPTIONS(.tools = g->t[TOOLS], .function = g->t[FUNCTION], .template_text = g->t[TEMPLATE],
	                           .template_name = g->t[TEMPLATE_NAME], .one_call = g->one_call, .prompt = g->prompt,
	                           .n_prompt = g->n_prompt);
	if (jit_call_force(model_given(g), &o, &f, &err))
		return throw_error(env, &err);
	napi_create_object(env, &out);
	set(env, out, "kind", from_int(env, f.kind));
	set(env, out, "grammar", from_text(env, f.grammar, f.n_grammar));
	set(env, out, "prompt", from_text(env, f.prompt, f.n_prompt));
	set(env, out, "ids", from_ids(env, f.ids, f.n_ids));
	set(env, out, "opened", from_text(env, f.behind_reasoning ? NULL : f.opened, NAPI_AUTO_LENGTH));
	set(env, out, "behindReasoning", from_flag(env, f.behind_reasoning));
	jit_forced_call_free(&f);
	return out;
}

static jit_answer_options answer_options(const struct given *g)
{
	return JIT_ANSWER_OPTIONS(.tools = g->t[TOOLS], .prompt = g->prompt, .n_prompt = g->n_prompt,
	                          .template_text = g->t[TEMPLATE], .template_name = g->t[TEMPLATE_NAME],
	                          .opened = g->t[OPENED], .id = g->t[CALL_ID], .one_call = g->one_call,
	                          .keep_reasoning = g->keep_reasoning, .cut = g->cut);
}

static napi_value opened(napi_env env, const struct given *g)
{
	jit_error err = { 0 };
	const jit_answer_options o = answer_options(g);
	jit_answer *a = jit_answer_open(model_given(g), &o, &err);
	return a ? make_box(env, BOX_ANSWER, a, g->model, NULL) : throw_error(env, &err);
}

/* Of a function(model or undefined, object). */
static napi_value with_given(napi_env env, napi_callback_info info,
                             napi_value (*then)(napi_env env, const struct given *g))
{
	napi_value argv[2];
	struct given g;
	if (!arguments(env, info, argv, 2) || !take_given(env, argv[0], argv[1], &g))
		return NULL;
	napi_value out = then(env, &g);
	free_given(&g);
	return out;
}

/* render(model, {messages, tools, variables, template, templateName, now, noGenerationPrompt}) */
static napi_value render(napi_env env, napi_callback_info info) { return with_given(env, info, rendered); }

/* force(model, {tools, function, template, templateName, oneCall, prompt}) */
static napi_value force(napi_env env, napi_callback_info info) { return with_given(env, info, forced); }

/* answer(model or undefined, {tools, template, templateName, prompt, opened, callId, oneCall, keepReasoning}) */
static napi_value open_answer(napi_env env, napi_callback_info info) { return with_given(env, info, opened); }

/* parse(model or undefined, as answer and {cut}, text): a message as JSON */
static napi_value parse(napi_env env, napi_callback_info info)
{
	napi_value argv[3], out = NULL;
	struct given g;
	size_t n = 0;
	jit_error err = { 0 };
	if (!arguments(env, info, argv, 3) || !take_given(env, argv[0], argv[1], &g))
		return NULL;
	char *text = take_bytes(env, argv[2], &n);
	if (text) {
		const jit_answer_options o = answer_options(&g);
		char *json = jit_chat_parse(model_given(&g), text, n, &o, &err);
		out = json ? from_text(env, json, NAPI_AUTO_LENGTH) : throw_error(env, &err);
		jit_free(json);
	}
	free(text);
	free_given(&g);
	return out;
}

static napi_value event_of(napi_env env, const jit_answer_event *e)
{
	static const char *const kinds[] = { [JIT_ANSWER_TEXT] = "text",
		                             [JIT_ANSWER_REASONING] = "reasoning",
		                             [JIT_ANSWER_CALL] = "call",
		                             [JIT_ANSWER_ARGUMENTS] = "arguments",
		                             [JIT_ANSWER_CALL_END] = "call_end" };
	napi_value out = NULL;
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
	if (e->kind == JIT_ANSWER_CALL_END)
		set(env, out, "whole", from_flag(env, e->whole));
	return out;
}

/* The events that there are by now; NULL: thrown. */
static napi_value events_of(napi_env env, jit_answer *a)
{
	napi_value list = NULL;
	uint32_t n = 0;
	jit_error err = { 0 };
	napi_create_array(env, &list);
	for (;;) {
		jit_answer_event e = JIT_ANSWER_EVENT();
		if (jit_answer_next(a, &e, &err))
			return throw_error(env, &err);
		if (e.kind == JIT_ANSWER_NOTHING)
			return list;
		if (e.kind > JIT_ANSWER_NOTHING && e.kind <= JIT_ANSWER_CALL_END) /* others are of a later library */
			napi_set_element(env, list, n++, event_of(env, &e));
	}
}

/* answerFeed(answer, text, token): the bytes, and what a token stands for that has no text, or -1 */
static napi_value feed(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	size_t n = 0, n_mark = 0;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 3, BOX_ANSWER);
	char *text = b ? take_bytes(env, argv[1], &n) : NULL;
	if (!text)
		return NULL;
	int id = take_int(env, argv[2]), status = jit_answer_feed(b->p, text, n, &err);
	free(text);
	const char *mark = id >= 0 && !status ? jit_answer_mark(b->p, id, &n_mark) : NULL;
	if (mark && n_mark)
		status = jit_answer_feed(b->p, mark, n_mark, &err);
	return status ? throw_error(env, &err) : events_of(env, b->p);
}

/* answerFinish(answer, cut) */
static napi_value finish(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_ANSWER);
	if (!b)
		return NULL;
	return jit_answer_finish(b->p, take_int(env, argv[1]), &err) ? throw_error(env, &err) : events_of(env, b->p);
}

void export_chat(napi_env env, napi_value exports)
{
	export_function(env, exports, "render", render);
	export_function(env, exports, "force", force);
	export_function(env, exports, "answer", open_answer);
	export_function(env, exports, "parse", parse);
	export_function(env, exports, "answerFeed", feed);
	export_function(env, exports, "answerFinish", finish);
}
