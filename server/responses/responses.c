/* server/responses/responses.c - /v1/responses and /v1/responses/input_tokens: conversations in the form of OpenAI's
 * responses.
 *
 * Owns: the items of an answer - reasoning, a message, calls of tools - one after the other, and the order of events.
 */
#include "server/responses/responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "answers/think.h"
#include "answers/tool_calls.h"
#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/talk/conversation.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/openai.h"
#include "server/request/request_fields.h"
#include "server/responses/response_tools.h"
#include "server/http/server.h"
#include "server/talk/talk.h"
#include "server/talk/tool_choice.h"

enum item { ITEM_NONE, ITEM_REASONING, ITEM_MESSAGE, ITEM_CALL };

struct responses_reply {
	struct reply base;
	const struct served *model;
	struct task *task; /* held */
	char id[40], name[200], *prompt;
	size_t n_prompt;
	long created;
	bool in_call;
	struct think think;
	struct tool_calls tools;
	json_t *echoed; /* what of the request is said again */
	json_t *output; /* items that are complete */
	json_t *items;  /* of the whole input, where it is kept; NULL */
	struct response_store *store;
	uint64_t owner;
	bool stores, seals;      /* it is kept; reasoning comes back with what it may be sent back as */
	enum response_call call; /* the open one */
	enum item open;          /* what the text that comes belongs to */
	struct bytes text;       /* of the open item */
	unsigned events;         /* sent so far */
	enum end_reason reason;
	struct run_numbers numbers;
};

/* ---- events */

/* j is taken over. */
static void send_event(struct responses_reply *o, const char *name, json_t *j)
{
	if (!o->base.events) {
		json_decref(j);
		return;
	}
	json_put(j, "type", json_string(name));
	json_put(j, "sequence_number", json_integer(o->events++));
	bytes_print(&o->base.out, "event: %s\ndata: ", name);
	bytes_take(&o->base.out, json_write(j));
	bytes_text(&o->base.out, "\n\n");
}

/* why: of one that failed; NULL. */
static json_t *response(struct responses_reply *o, const char *status, const struct refusal *why)
{
	json_t *j = json_object();
	bool ended = strcmp(status, "in_progress") != 0, cut = strcmp(status, "incomplete") == 0;

	json_put(j, "id", json_string(o->id));
	json_put(j, "object", json_string("response"));
	json_put(j, "created_at", json_integer(o->created));
	json_put(j, "status", json_string(status));
	json_put(j, "error",
	         why ? json_pack("{s:s, s:s}", "code", "server_error", "message", why->message) : json_null());
	json_put(j, "incomplete_details", cut ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null());
	json_put(j, "model", json_text(o->name, strlen(o->name)));
	json_put(j, "output", json_copied(o->output, false));
	json_put(j, "parallel_tool_calls", json_boolean(!o->task->one_call));
	json_put(j, "store", json_boolean(o->stores));
	json_put(j, "temperature", json_number((double)o->task->sampling.temperature));
	json_put(j, "top_p", json_number((double)o->task->sampling.top_p));
	json_put(j, "usage", ended ? responses_usage(&o->numbers) : json_null());
	responses_add_said(j, o->echoed, o->task->warnings);
	return j;
}

/* ---- items */

static void make_id(const struct responses_reply *o, const char *kind, char id[80])
{
	snprintf(id, 80, "%s_%s_%zu", kind, o->id + strlen("resp_"), json_array_size(o->output));
}

static json_t *part_of(enum item kind, const char *text, size_t n)
{
	json_t *part = json_object();

	json_put(part, "type", json_string(kind == ITEM_MESSAGE ? "output_text" : "reasoning_text"));
	json_put(part, "text", json_text(text, n));
	if (kind == ITEM_MESSAGE) {
		json_put(part, "annotations", json_array());
		json_put(part, "logprobs", json_array());
	}
	return part;
}

/* text NULL: it begins. */
static json_t *item_of(const struct responses_reply *o, enum item kind, const char *text, size_t n)
{
	json_t *j = json_object(), *content = json_array();
	char id[80];

	make_id(o, kind == ITEM_MESSAGE ? "msg" : "rs", id);
	json_put(j, "id", json_string(id));
	json_put(j, "type", json_string(kind == ITEM_MESSAGE ? "message" : "reasoning"));
	json_put(j, "status", json_string(text ? "completed" : "in_progress"));
	if (kind == ITEM_MESSAGE)
		json_put(j, "role", json_string("assistant"));
	else
		json_put(j, "summary", json_array());
	if (text)
		json_add(content, part_of(kind, text, n));
	json_put(j, "content", content);
	if (text && kind == ITEM_REASONING && o->seals)
		json_put(j, "encrypted_content", responses_seal(text, n));
	return j;
}

/* An event of the open item, with further members. */
static void send_of_item(struct responses_reply *o, const char *name, const char *member, json_t *value, bool in_part)
{
	json_t *j = json_object();
	char id[80];

	make_id(o, o->open == ITEM_MESSAGE ? "msg" : o->open == ITEM_REASONING ? "rs" : "fc", id);
	json_put(j, "item_id", json_string(id));
	json_put(j, "output_index", json_integer((json_int_t)json_array_size(o->output)));
	if (in_part)
		json_put(j, "content_index", json_integer(0));
	if (in_part && o->open == ITEM_MESSAGE && strcmp(member, "part") != 0)
		json_put(j, "logprobs", json_array());
	json_put(j, member, value);
	if (o->task->timings && strcmp(member, "delta") == 0)
		json_put(j, "timings", openai_timings(&o->numbers));
	send_event(o, name, j);
}

/* As what it is told complete, it is kept. */
static void complete(struct responses_reply *o, json_t *item)
{
	json_t *j = json_object();

	json_put(j, "output_index", json_integer((json_int_t)json_array_size(o->output)));
	json_put(j, "item", json_incref(item));
	send_event(o, "response.output_item.done", j);
	json_add(o->output, item);
}

static void begin_item(struct responses_reply *o, json_t *item)
{
	json_t *j = json_object();

	json_put(j, "output_index", json_integer((json_int_t)json_array_size(o->output)));
	json_put(j, "item", item);
	send_event(o, "response.output_item.added", j);
}

static void close_item(struct responses_reply *o)
{
	const char *text = o->text.n ? o->text.p : "";
	size_t n = o->text.n;

	if (o->open == ITEM_NONE || o->open == ITEM_CALL)
		return;
	send_of_item(o, o->open == ITEM_MESSAGE ? "response.output_text.done" : "response.reasoning_text.done", "text",
	             json_text(text, n), true);
	send_of_item(o, "response.content_part.done", "part", part_of(o->open, text, n), true);
	complete(o, item_of(o, o->open, text, n));
	o->base.out.lost = o->base.out.lost || o->text.lost;
	bytes_clear(&o->text);
	o->open = ITEM_NONE;
}

static void add_text(struct responses_reply *o, enum item kind, const char *text, size_t n)
{
	if (n == 0)
		return;
	if (o->open != kind) {
		close_item(o);
		o->open = kind;
		begin_item(o, item_of(o, kind, NULL, 0));
		send_of_item(o, "response.content_part.added", "part", part_of(kind, "", 0), true);
	}
	bytes_add(&o->text, text, n);
	send_of_item(o, kind == ITEM_MESSAGE ? "response.output_text.delta" : "response.reasoning_text.delta", "delta",
	             json_text(text, n), true);
}

static json_t *call_item(const struct responses_reply *o, const struct tool_call *call, bool begins,
                         enum response_call *kind)
{
	char id[80], call_id[80];
	json_t *j = json_object();

	make_id(o, "fc", id);
	make_id(o, "call", call_id);
	json_put(j, "id", json_string(id));
	json_put(j, "status", json_string(begins ? "in_progress" : call->whole ? "completed" : "incomplete"));
	json_put(j, "call_id", json_string(call_id));
	*kind = response_tools_call(json_object_get(o->echoed, "tools"), call->name, call->arguments.p,
	                            begins ? 0 : call->arguments.n, call->whole && !begins, j);
	return j;
}

/* A text for a tool is known when it is whole. */
static void end_call(struct responses_reply *o, const struct tool_call *call)
{
	enum response_call kind;
	json_t *item = call_item(o, call, false, &kind);

	if (kind == CALL_CUSTOM) {
		json_t *input = json_object_get(item, "input");
		send_of_item(o, "response.custom_tool_call_input.delta", "delta", json_incref(input), false);
		send_of_item(o, "response.custom_tool_call_input.done", "input", json_incref(input), false);
	} else if (kind == CALL_FUNCTION) {
		send_of_item(o, "response.function_call_arguments.done", "arguments",
		             json_text(call->arguments.p, call->arguments.n), false);
	}
	complete(o, item);
	o->open = ITEM_NONE;
}

static void add_call(struct responses_reply *o, const struct tool_event *e)
{
	const struct tool_call *call = &o->tools.found.call[e->call];

	if (e->kind == TOOL_BEGINS) {
		close_item(o);
		o->open = ITEM_CALL;
		begin_item(o, call_item(o, call, true, &o->call));
	} else if (e->kind != TOOL_DELTA) {
		end_call(o, call);
	} else if (o->call == CALL_FUNCTION) {
		send_of_item(o, "response.function_call_arguments.delta", "delta",
		             json_text(call->arguments.p + e->from, e->n), false);
	}
}

/* ---- records */

/* Without the marks around it. */
static void add_reasoning(struct responses_reply *o, const char *text, size_t n)
{
	for (size_t part, i = 0; i < n; i += part + think_mark_at(text + i + part, n - i - part)) {
		part = think_until_mark(text + i, n - i);
		add_text(o, ITEM_REASONING, text + i, part);
	}
}

/* What has become known of the answer. */
static void tell(struct responses_reply *o)
{
	const struct tool_events *t = &o->tools.found;

	if (o->task->one_call)
		tool_events_keep_one(&o->tools.found);
	for (size_t i = 0; i < t->n_events; i++) {
		const struct tool_event *e = &t->event[i];
		if (e->kind == TOOL_TEXT)
			add_text(o, ITEM_MESSAGE, t->text.p + e->from, e->n);
		else
			add_call(o, e);
	}
	o->base.out.lost = o->base.out.lost || o->tools.lost;
}

static void take_text(struct responses_reply *o, const char *text, size_t n)
{
	struct think_parts parts = { .answer = text ? text : "", .n_answer = n };

	if (!o->in_call && !think_take(&o->think, text, n, &parts))
		o->base.out.lost = true;
	add_reasoning(o, parts.reasoning, parts.n_reasoning);
	if (parts.n_answer) {
		tool_calls_take(&o->tools, parts.answer, parts.n_answer);
		tell(o);
	}
	if (!text) {
		tool_calls_end(&o->tools, openai_was_cut(o->reason));
		tell(o);
	}
}

static void send_response(struct responses_reply *o, const char *name, const char *status, const struct refusal *why)
{
	json_t *j = json_object();

	json_put(j, "response", response(o, status, why));
	if (strcmp(status, "in_progress") != 0)
		json_put(j, "timings", openai_timings(&o->numbers));
	send_event(o, name, j);
}

static void take(struct reply *r, const struct answer_event *got, const jit_logprob *top, const char *text)
{
	struct responses_reply *o = (struct responses_reply *)(void *)r;
	(void)top;

	if (got->kind == EVENT_TOKEN) {
		if (o->task->timings)
			o->numbers = got->numbers;
		if (got->n_text)
			take_text(o, text, got->n_text);
		return;
	}
	o->numbers = got->numbers;
	if (got->kind == EVENT_PROMPT) {
		json_t *j = json_pack("{s:o}", "response", response(o, "in_progress", NULL));
		json_put(j, "prompt_progress", openai_progress(got));
		send_event(o, "response.in_progress", j);
		return;
	}
	if (got->kind == EVENT_STARTED) {
		think_begin(&o->think, o->prompt ? o->prompt : "", o->n_prompt);
		send_response(o, "response.created", "in_progress", NULL);
		send_response(o, "response.in_progress", "in_progress", NULL);
		return;
	}
	o->reason = got->reason;
	take_text(o, NULL, 0);
	close_item(o);
}

static void keep(struct responses_reply *o, const char *status)
{
	if (!o->stores || !o->store)
		return;
	json_t *j = response(o, status, NULL);
	response_store_put(o->store, o->owner, o->id, j, o->items);
	json_decref(j);
}

static void end(struct reply *r)
{
	struct responses_reply *o = (struct responses_reply *)(void *)r;
	bool cut = o->reason == END_LENGTH && !openai_has_one_call(o->task, &o->tools.found);
	const char *status = cut ? "incomplete" : "completed";

	keep(o, status);
	if (r->events) {
		send_response(o, cut ? "response.incomplete" : "response.completed", status, NULL);
		return;
	}
	json_t *j = response(o, status, NULL);
	json_put(j, "timings", openai_timings(&o->numbers));
	bytes_take(&r->out, json_write(j));
}

static void fail(struct reply *r, const struct refusal *why)
{
	send_response((struct responses_reply *)(void *)r, "response.failed", "failed", why);
}

static void close_reply(struct reply *r)
{
	struct responses_reply *o = (struct responses_reply *)(void *)r;

	think_end(&o->think);
	tool_calls_free(&o->tools);
	json_decref(o->output);
	json_decref(o->echoed);
	json_decref(o->items);
	bytes_free(&o->text);
	task_release(o->task);
	free(o->prompt);
	free(o);
}

static const struct reply_kind responses_kind = { take, end, fail, close_reply };

/* ---- requests */

static struct responses_reply *open_reply(const struct served *m, struct task *t, const json_t *given)
{
	struct responses_reply *o = calloc(1, sizeof *o);
	const char *name = json_string_value(json_object_get(given, "model"));
	unsigned char random[12] = { 0 };
	size_t n;

	if (!o)
		return NULL;
	if (getrandom(random, sizeof random, GRND_NONBLOCK) < 0)
		memcpy(random, &o, sizeof o);
	n = (size_t)snprintf(o->id, sizeof o->id, "resp_");
	for (size_t i = 0; i < sizeof random; i++)
		n += (size_t)snprintf(o->id + n, sizeof o->id - n, "%02x", random[i]);
	snprintf(o->name, sizeof o->name, "%s", name && strlen(name) < sizeof o->name ? name : m->name);
	o->base.kind = &responses_kind;
	o->model = m;
	o->created = (long)time(NULL);
	task_hold(t);
	o->task = t;
	o->output = json_array();
	o->echoed = responses_said_again(given);
	return o;
}

static bool begin(struct exchange *x, const json_t *given, json_t *items, const json_t *body, const struct served *m,
                  struct task *t, struct conversation *c)
{
	bool forced = false;

	conversation_give(c, t);
	t->warnings = responses_warnings(given);
	if (!task_read(t, body, m->model, batcher_context(m->batcher), &x->refusal) ||
	    !talk_read_calls(t, body, &x->refusal) || !tool_choice_read(t, body, m, &forced, &x->refusal))
		return false;
	if (t->grammar_field && strcmp(t->grammar_field, "response_format") == 0)
		t->grammar_field = "text.format";
	struct responses_reply *o = open_reply(m, t, given);
	if (!o)
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	o->in_call = forced;
	tool_calls_begin(&o->tools, tools_form_in(m->tools, field_value(body, "tools") != NULL), t->opened,
	                 t->functions);
	o->prompt = c->text;
	o->n_prompt = c->n_text;
	c->text = NULL;
	o->store = x->server->responses;
	o->owner = x->client.key;
	o->stores = o->store != NULL;
	o->items = json_incref(items);
	o->seals = responses_include(given, "reasoning.encrypted_content");
	if (field_flag(given, "store", &o->stores, &x->refusal) &&
	    field_flag(body, "stream", &o->base.events, &x->refusal))
		return generate(x, &o->base, m, &t, 1);
	reply_close(&o->base);
	return false;
}

/* The request in the form of chat completions, its model and its prompt. NULL: refused. */
static json_t *read_request(struct exchange *x, const json_t *given, json_t **items, const struct served **m,
                            struct conversation *c)
{
	*items = given ? responses_items(given, x->server->responses, x->client.key, &x->refusal) : NULL;
	json_t *body = *items ? responses_to_chat(given, *items, &x->refusal) : NULL;

	*m = body ? exchange_model_of(x, body) : NULL;
	if (*m && responses_read_room(given, *m, &c->room, &x->refusal) &&
	    conversation_read(c, body, *m, x->now, &x->refusal))
		return body;
	json_decref(body);
	responses_own_names(given, &x->refusal);
	return NULL;
}

bool answer_responses(struct exchange *x)
{
	struct conversation c = { .fetches = &x->shown };
	const struct served *m;
	json_t *given = request_read(x->body.p, x->body.n, REQUEST_RESPONSES, &x->refusal), *items,
	       *body = read_request(x, given, &items, &m, &c);
	struct task *t = body ? task_open(m) : NULL;

	if (body && !t)
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	bool ok = (t && begin(x, given, items, body, m, t, &c)) || responses_own_names(given, &x->refusal);
	task_release(t);
	conversation_free(&c);
	json_decref(items);
	json_decref(body);
	json_decref(given);
	return ok;
}

bool answer_input_tokens(struct exchange *x)
{
	struct conversation c = { .fetches = &x->shown };
	const struct served *m;
	json_t *given = request_read(x->body.p, x->body.n, REQUEST_RESPONSES, &x->refusal), *items,
	       *body = read_request(x, given, &items, &m, &c), *o = NULL;

	if (body)
		o = json_pack("{s:s, s:I}", "object", "response.input_tokens", "input_tokens", (json_int_t)c.n_ids);
	conversation_free(&c);
	json_decref(items);
	json_decref(body);
	json_decref(given);
	return o && exchange_json(x, json_write(o));
}
