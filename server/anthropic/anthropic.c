/* server/anthropic/anthropic.c - /v1/messages and /v1/messages/count_tokens: conversations in the form of Anthropic's
 * API.
 *
 * Owns: the blocks of an answer - thinking, text, calls of tools - one after the other, and the order of events.
 */
#include "server/anthropic/anthropic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/think.h"
#include "answers/tool_calls.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/talk/conversation.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/openai.h"
#include "server/request/request_fields.h"
#include "server/http/server.h"
#include "server/talk/talk.h"
#include "server/talk/tool_choice.h"

enum block { BLOCK_NONE, BLOCK_THINKING, BLOCK_TEXT };

struct anthropic_reply {
	struct reply base;
	const struct served *model;
	struct task *task;
	char id[40], request[REQUEST_ID], *prompt;
	size_t n_prompt;
	bool in_call;
	struct think think;
	struct tool_calls tools;
	json_t *content;   /* blocks of a whole answer */
	json_t *warnings;  /* what of the request was left out */
	enum block open;   /* of the text that comes */
	struct bytes text; /* of the open block, of a whole answer */
	unsigned blocks;   /* begun so far */
	enum end_reason reason;
	int stop;
	struct run_numbers numbers;
};

/* ---- events */

static void send_event(struct anthropic_reply *o, const char *name, json_t *j)
{
	json_put(j, "type", json_string(name));
	bytes_print(&o->base.out, "event: %s\ndata: ", name);
	bytes_take(&o->base.out, json_write(j));
	bytes_text(&o->base.out, "\n\n");
}

static json_t *usage(const struct anthropic_reply *o)
{
	const struct run_numbers *n = &o->numbers;

	return json_pack("{s:I, s:I, s:I, s:i}", "input_tokens", (json_int_t)(n->prompt - n->reused), "output_tokens",
	                 (json_int_t)n->generated, "cache_read_input_tokens", (json_int_t)n->reused,
	                 "cache_creation_input_tokens", 0);
}

static json_t *message(const struct anthropic_reply *o, json_t *content, json_t *reason, json_t *stop)
{
	json_t *j = json_object();

	json_put(j, "id", json_string(o->id));
	json_put(j, "type", json_string("message"));
	json_put(j, "role", json_string("assistant"));
	json_put(j, "model", json_text(o->model->name, strlen(o->model->name)));
	json_put(j, "content", content);
	json_put(j, "stop_reason", reason);
	json_put(j, "stop_sequence", stop);
	json_put(j, "usage", usage(o));
	if (json_array_size(o->warnings))
		json_put(j, "warnings", json_incref(o->warnings));
	return j;
}

static json_t *empty_block(enum block kind)
{
	return kind == BLOCK_THINKING
	               ? json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", "")
	               : json_pack("{s:s, s:s}", "type", "text", "text", "");
}

static void close_block(struct anthropic_reply *o)
{
	if (o->open == BLOCK_NONE)
		return;
	if (o->base.events) {
		send_event(o, "content_block_stop", json_pack("{s:i}", "index", (int)o->blocks - 1));
	} else {
		json_t *block = empty_block(o->open);
		json_put(block, o->open == BLOCK_TEXT ? "text" : "thinking",
		         json_text(o->text.n ? o->text.p : "", o->text.n));
		json_add(o->content, block);
		o->base.out.lost = o->base.out.lost || o->text.lost;
		bytes_clear(&o->text);
	}
	o->open = BLOCK_NONE;
}

static void open_block(struct anthropic_reply *o, enum block kind)
{
	if (o->open == kind)
		return;
	close_block(o);
	o->open = kind;
	if (o->base.events)
		send_event(o, "content_block_start",
		           json_pack("{s:i, s:o}", "index", (int)o->blocks, "content_block", empty_block(kind)));
	o->blocks++;
}

static void add_text(struct anthropic_reply *o, enum block kind, const char *text, size_t n)
{
	bool thinks = kind == BLOCK_THINKING;

	if (n == 0)
		return;
	open_block(o, kind);
	if (!o->base.events) {
		bytes_add(&o->text, text, n);
		return;
	}
	json_t *delta = json_object();
	json_put(delta, "type", json_string(thinks ? "thinking_delta" : "text_delta"));
	json_put(delta, thinks ? "thinking" : "text", json_text(text, n));
	send_event(o, "content_block_delta", json_pack("{s:i, s:o}", "index", (int)o->blocks - 1, "delta", delta));
}

static json_t *call_block(const struct anthropic_reply *o, size_t number, json_t *input)
{
	const struct tool_call *call = &o->tools.found.call[number];
	char id[80];
	json_t *block = json_object();

	snprintf(id, sizeof id, "toolu_%s_%zu", o->id + 4, number);
	json_put(block, "type", json_string("tool_use"));
	json_put(block, "id", json_string(id));
	json_put(block, "name", json_text(call->name, strlen(call->name)));
	json_put(block, "input", input);
	return block;
}

/* Of a stream. */
static void send_call(struct anthropic_reply *o, const struct tool_event *e)
{
	const struct tool_call *call = &o->tools.found.call[e->call];

	if (e->kind == TOOL_BEGINS) {
		close_block(o);
		send_event(o, "content_block_start",
		           json_pack("{s:i, s:o}", "index", (int)o->blocks, "content_block",
		                     call_block(o, e->call, json_object())));
		o->blocks++;
	} else if (e->kind == TOOL_DELTA) {
		json_t *delta = json_object();
		json_put(delta, "type", json_string("input_json_delta"));
		json_put(delta, "partial_json", json_text(call->arguments.p + e->from, e->n));
		send_event(o, "content_block_delta",
		           json_pack("{s:i, s:o}", "index", (int)o->blocks - 1, "delta", delta));
	} else {
		send_event(o, "content_block_stop", json_pack("{s:i}", "index", (int)o->blocks - 1));
	}
}

/* Of a whole answer. An input is an object: what is none is no call here, but the text that the model wrote. */
static void add_call(struct anthropic_reply *o, size_t number)
{
	const struct tool_call *call = &o->tools.found.call[number];
	const size_t n = call->arguments.n;
	json_t *input = call->whole ? json_read_plain(call->arguments.p, n) : NULL;

	if (!json_is_object(input)) {
		json_decref(input);
		add_text(o, BLOCK_TEXT, call->said, call->n_said);
		return;
	}
	close_block(o);
	json_add(o->content, call_block(o, number, input));
	o->blocks++;
}

/* ---- records */

/* Without the marks around it. */
static void add_reasoning(struct anthropic_reply *o, const char *text, size_t n)
{
	for (size_t part, i = 0; i < n; i += part + think_mark_at(text + i + part, n - i - part)) {
		part = think_until_mark(text + i, n - i);
		add_text(o, BLOCK_THINKING, text + i, part);
	}
}

/* What has become known of the answer. */
static void tell(struct anthropic_reply *o)
{
	const struct tool_events *t = &o->tools.found;

	if (o->task->one_call)
		tool_events_keep_one(&o->tools.found);
	for (size_t i = 0; i < t->n_events; i++) {
		const struct tool_event *e = &t->event[i];
		if (e->kind == TOOL_TEXT)
			add_text(o, BLOCK_TEXT, t->text.p + e->from, e->n);
		else if (o->base.events)
			send_call(o, e);
		else if (e->kind == TOOL_ENDS)
			add_call(o, e->call);
	}
	o->base.out.lost = o->base.out.lost || o->tools.lost;
}

static void take_text(struct anthropic_reply *o, const char *text, size_t n)
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

static void take(struct reply *r, const struct answer_event *item, const jit_logprob *top, const char *text)
{
	struct anthropic_reply *o = (struct anthropic_reply *)(void *)r;
	(void)top;

	if (item->kind == EVENT_TOKEN) {
		if (item->n_text)
			take_text(o, text, item->n_text);
		return;
	}
	o->numbers = item->numbers;
	if (item->kind == EVENT_PROMPT)
		return;
	if (item->kind == EVENT_STARTED) {
		think_begin(&o->think, o->prompt ? o->prompt : "", o->n_prompt);
		if (r->events)
			send_event(o, "message_start",
			           json_pack("{s:o}", "message", message(o, json_array(), json_null(), json_null())));
		return;
	}
	o->reason = item->reason;
	o->stop = item->stop;
	take_text(o, NULL, 0);
	close_block(o);
}

static void end(struct reply *r)
{
	struct anthropic_reply *o = (struct anthropic_reply *)(void *)r;
	bool stopped = o->reason == END_STOP_TEXT && o->stop >= 0;
	json_t *stop = stopped ? json_text(o->task->stop[o->stop], strlen(o->task->stop[o->stop])) : json_null();
	const bool called = openai_has_one_call(o->task, &o->tools.found);
	json_t *reason = json_string(o->reason == END_LENGTH && !called ? "max_tokens"
	                             : o->tools.found.whole             ? "tool_use"
	                             : stopped                          ? "stop_sequence"
	                                                                : "end_turn");

	if (!r->events) {
		bytes_take(&r->out, json_write(message(o, o->content, reason, stop)));
		o->content = NULL;
		return;
	}
	send_event(o, "message_delta",
	           json_pack("{s:{s:o, s:o}, s:o}", "delta", "stop_reason", reason, "stop_sequence", stop, "usage",
	                     usage(o)));
	send_event(o, "message_stop", json_object());
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_text(&r->out, "event: error\ndata: ");
	bytes_take(&r->out, refusal_json_anthropic(why, ((struct anthropic_reply *)(void *)r)->request));
	bytes_text(&r->out, "\n\n");
}

static void close_reply(struct reply *r)
{
	struct anthropic_reply *o = (struct anthropic_reply *)(void *)r;

	think_end(&o->think);
	tool_calls_free(&o->tools);
	json_decref(o->content);
	json_decref(o->warnings);
	bytes_free(&o->text);
	task_release(o->task);
	free(o->prompt);
	free(o);
}

static const struct reply_kind anthropic_kind = { take, end, fail, close_reply };

/* ---- requests */

static struct anthropic_reply *open_reply(const struct served *m, struct task *t)
{
	struct anthropic_reply *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->base.kind = &anthropic_kind;
	o->model = m;
	snprintf(o->id, sizeof o->id, "msg_%016llx%08x", (unsigned long long)t->sampling.seed, (unsigned)(uintptr_t)o);
	task_hold(t);
	o->task = t;
	o->content = json_array();
	return o;
}

static bool begin(struct exchange *x, const json_t *body, json_t *warnings, const struct served *m, struct task *t,
                  struct conversation *c)
{
	bool forced = false;

	conversation_give(c, t);
	t->warnings = json_incref(warnings);
	if (!task_read(t, body, m->model, batcher_context(m->batcher), &x->refusal) ||
	    !talk_read_calls(t, body, &x->refusal) || !tool_choice_read(t, body, m, &forced, &x->refusal))
		return false;
	struct anthropic_reply *o = open_reply(m, t);
	if (!o)
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	snprintf(o->request, sizeof o->request, "%s", x->id);
	o->in_call = forced;
	o->warnings = json_incref(warnings);
	tool_calls_begin(&o->tools, tools_form_in(m->tools, field_value(body, "tools") != NULL), t->opened,
	                 t->functions);
	o->prompt = c->text;
	o->n_prompt = c->n_text;
	c->text = NULL;
	if (field_flag(body, "stream", &o->base.events, &x->refusal))
		return generate(x, &o->base, m, &t, 1);
	reply_close(&o->base);
	return false;
}

/* The request in the form that the others have, its model and its prompt. NULL: refused. */
static json_t *read_request(struct exchange *x, json_t *warnings, const struct served **m, struct conversation *c)
{
	json_t *given = request_read(x->body.p, x->body.n, REQUEST_MESSAGES, &x->refusal);
	json_t *body = given ? anthropic_to_openai(given, warnings, &x->refusal) : NULL;

	json_decref(given);
	*m = body ? exchange_model_of(x, body) : NULL;
	if (*m && conversation_read(c, body, *m, x->now, &x->refusal))
		return body;
	json_decref(body);
	return NULL;
}

bool answer_messages(struct exchange *x)
{
	struct conversation c = { .fetches = &x->shown };
	const struct served *m;
	json_t *warnings = json_array(), *body = read_request(x, warnings, &m, &c);
	struct task *t = body ? task_open(m) : NULL;

	if (body && !t)
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	bool ok = t && begin(x, body, warnings, m, t, &c);
	refusal_rename(&x->refusal, "stop", "stop_sequences");
	task_release(t);
	conversation_free(&c);
	json_decref(warnings);
	json_decref(body);
	return ok;
}

bool answer_count_tokens(struct exchange *x)
{
	struct conversation c = { .fetches = &x->shown };
	const struct served *m;
	json_t *body = read_request(x, NULL, &m, &c), *o = NULL;

	if (body)
		o = json_pack("{s:I}", "input_tokens", (json_int_t)c.n_ids);
	conversation_free(&c);
	json_decref(body);
	return body && exchange_json(x, json_write(o));
}
