/* server/ollama/ollama.c - /api/chat and /api/generate: answers in the form of ollama's API, as one object or as lines
 * of JSON.
 *
 * Owns: that times are measured and add up: what is told of loading, the prompt and the answer is within what is told
 * of all, and the rest of it was spent waiting for other requests.
 */
#include "server/ollama/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/infill.h"
#include "server/completions/openai.h"
#include "server/http/server.h"
#include "server/talk/talk.h"
#include "server/talk/tool_choice.h"

struct ollama_reply {
	struct reply base;
	const struct served *model;
	struct task *task; /* held */
	char name[200];
	bool chat, raw, parse_reasoning, has_tools;
	char *prompt; /* its end: whether it opens the model's reasoning */
	size_t n_prompt;
	struct openai_choice choice;
	json_t *calls, *context; /* arrays: of a whole answer; tokens of prompt and answer */
	double arrived, loading;
};

/* What one piece of an answer has. */
struct delta {
	struct bytes content, thinking;
	json_t *calls; /* NULL: none */
};

/* ---- lines */

static json_t *head(const struct ollama_reply *o)
{
	json_t *j = json_object();
	char now[OLLAMA_TIME];

	ollama_now(now);
	json_put(j, "model", json_text(o->name, strlen(o->name)));
	json_put(j, "created_at", json_string(now));
	return j;
}

/* calls: NULL, or an array that the function then owns. */
static void put_words(const struct ollama_reply *o, json_t *j, const struct bytes *content,
                      const struct bytes *thinking, json_t *calls)
{
	json_t *to = o->chat ? json_object() : j;

	if (o->chat)
		json_put(to, "role", json_string("assistant"));
	json_put(to, o->chat ? "content" : "response", json_text(content->n ? content->p : "", content->n));
	if (thinking->n)
		json_put(to, "thinking", json_text(thinking->p, thinking->n));
	if (calls)
		json_put(to, "tool_calls", calls);
	if (o->chat)
		json_put(j, "message", to);
}

static void send_line(struct ollama_reply *o, json_t *j)
{
	bytes_take(&o->base.out, json_write(j));
	bytes_text(&o->base.out, "\n");
}

static void send_delta(struct ollama_reply *o, struct delta *p, json_t *entry)
{
	json_t *j = head(o), *list = json_array();

	put_words(o, j, &p->content, &p->thinking, p->calls);
	p->calls = NULL;
	json_put(j, "done", json_false());
	if (entry) {
		json_add(list, entry);
		json_put(j, "logprobs", list);
	} else {
		json_decref(list);
	}
	send_line(o, j);
}

static void put_end(struct ollama_reply *o, json_t *j)
{
	const struct run_numbers *n = &o->choice.numbers;

	json_put(j, "done", json_true());
	json_put(j, "done_reason", json_string(o->choice.reason == END_LENGTH ? "length" : "stop"));
	if (!o->chat && !o->raw) {
		json_put(j, "context", o->context);
		o->context = NULL;
	}
	json_put(j, "total_duration", ollama_nanoseconds(n->told - o->arrived));
	json_put(j, "load_duration", ollama_nanoseconds(o->loading));
	json_put(j, "prompt_eval_count", json_integer((json_int_t)n->prompt));
	json_put(j, "prompt_eval_duration", ollama_nanoseconds(n->prompt_seconds));
	json_put(j, "eval_count", json_integer((json_int_t)n->generated));
	json_put(j, "eval_duration", ollama_nanoseconds(n->decode_seconds));
}

/* ---- records */

/* Arguments are an object: what has none is no call here, but the text that the model wrote. */
static void add_call(struct ollama_reply *o, size_t number, struct delta *p)
{
	const struct tool_call *call = &o->choice.tools.found.call[number];
	const size_t n = call->arguments.n;
	json_t *arguments = call->whole ? json_read_plain(call->arguments.p, n) : NULL;
	char id[80];

	if (!json_is_object(arguments)) {
		json_decref(arguments);
		bytes_add(&p->content, call->said, call->n_said);
		return;
	}
	json_t *one = json_object(), *function = json_object();
	snprintf(id, sizeof id, "call_%08llx_%zu", (unsigned long long)o->task->sampling.seed, number);
	json_put(one, "id", json_string(id));
	json_put(function, "index", json_integer((json_int_t)number));
	json_put(function, "name", json_text(call->name, strlen(call->name)));
	json_put(function, "arguments", arguments);
	json_put(one, "function", function);
	p->calls = p->calls ? p->calls : json_array();
	json_add(p->calls, one);
}

/* What has become known of the answer. */
static void tell(struct ollama_reply *o, struct delta *p)
{
	const struct tool_events *t = &o->choice.tools.found;

	if (o->task->one_call)
		tool_events_keep_one(&o->choice.tools.found);
	for (size_t i = 0; i < t->n_events; i++) {
		const struct tool_event *e = &t->event[i];
		if (e->kind == TOOL_TEXT)
			bytes_add(&p->content, t->text.p + e->from, e->n);
		else if (e->kind == TOOL_ENDS)
			add_call(o, e->call, p);
	}
	o->base.out.lost = o->base.out.lost || o->choice.tools.lost;
}

static void keep_delta(struct ollama_reply *o, struct delta *p, json_t *entry)
{
	struct openai_choice *c = &o->choice;
	json_t *call;
	size_t i;

	bytes_add(&c->text, p->content.p, p->content.n);
	bytes_add(&c->reasoning, p->thinking.p, p->thinking.n);
	json_array_foreach(p->calls, i, call) json_add(o->calls, json_incref(call));
	if (entry) {
		c->logprobs = c->logprobs ? c->logprobs : json_array();
		json_add(c->logprobs, entry);
	}
	o->base.out.lost = o->base.out.lost || c->text.lost || c->reasoning.lost;
}

/* A piece of text; NULL is the end, and gives what was held back. */
static void take_text(struct ollama_reply *o, const char *text, size_t n, json_t *entry)
{
	struct openai_choice *c = &o->choice;
	struct think_parts parts = { .answer = text ? text : "", .n_answer = n };
	struct delta p = { .calls = NULL };

	if (o->parse_reasoning && !think_take(&c->think, text, n, &parts))
		o->base.out.lost = true;
	think_words_take(&c->words, parts.reasoning, parts.n_reasoning, &p.thinking);
	if (!o->has_tools) {
		bytes_add(&p.content, parts.answer, parts.n_answer);
	} else {
		tool_calls_take(&c->tools, parts.n_answer ? parts.answer : "", parts.n_answer);
		tell(o, &p);
		if (!text) {
			tool_calls_end(&c->tools, openai_was_cut(c->reason));
			tell(o, &p);
		}
	}
	o->base.out.lost = o->base.out.lost || p.content.lost || p.thinking.lost;
	if (!o->base.events)
		keep_delta(o, &p, entry);
	else if (p.content.n || p.thinking.n || p.calls || entry)
		send_delta(o, &p, entry);
	json_decref(p.calls);
	bytes_free(&p.content);
	bytes_free(&p.thinking);
}

static void take(struct reply *r, const struct answer_event *item, const jit_logprob *top, const char *text)
{
	struct ollama_reply *o = (struct ollama_reply *)(void *)r;

	if (item->kind == EVENT_STARTED) {
		think_begin(&o->choice.think, o->prompt ? o->prompt : "", o->n_prompt);
	} else if (item->kind == EVENT_TOKEN) {
		json_t *entry = o->task->logprobs >= 0 && item->id >= 0
		                        ? openai_logprob(o->model->model, item, top, false)
		                        : NULL;
		if (o->context && item->id >= 0)
			json_add(o->context, json_integer(item->id));
		if (item->n_text || entry)
			take_text(o, text, item->n_text, entry);
	} else if (item->kind == EVENT_ENDED) {
		o->choice.reason = item->reason;
		o->choice.numbers = item->numbers;
		take_text(o, NULL, 0, NULL);
	}
}

static void end(struct reply *r)
{
	struct ollama_reply *o = (struct ollama_reply *)(void *)r;
	struct openai_choice *c = &o->choice;
	const struct bytes nothing = { 0 };
	json_t *j = head(o);

	if (r->events) {
		put_words(o, j, &nothing, &nothing, NULL);
	} else {
		const bool called = json_array_size(o->calls) > 0;
		put_words(o, j, &c->text, &c->reasoning, called ? json_incref(o->calls) : NULL);
	}
	put_end(o, j);
	if (c->logprobs)
		json_put(j, "logprobs", c->logprobs);
	c->logprobs = NULL;
	if (r->events)
		send_line(o, j);
	else
		bytes_take(&r->out, json_write(j));
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_take(&r->out, refusal_json_ollama(why));
	bytes_text(&r->out, "\n");
}

/* Clients read each line as an object: a piece without text is the least that says something. */
static void stay_alive(struct reply *r)
{
	struct ollama_reply *o = (struct ollama_reply *)(void *)r;
	struct delta nothing = { .calls = NULL };

	send_delta(o, &nothing, NULL);
}

static void close_reply(struct reply *r)
{
	struct ollama_reply *o = (struct ollama_reply *)(void *)r;

	openai_choice_free(&o->choice);
	json_decref(o->calls);
	json_decref(o->context);
	task_release(o->task);
	free(o->prompt);
	free(o);
}

static const struct reply_kind ollama_kind = { take, end, fail, close_reply };

/* ---- requests */

static bool read_logprobs(struct task *t, const json_t *body, struct refusal *r)
{
	bool wanted = false;
	int64_t max = 0;

	if (!field_flag(body, "logprobs", &wanted, r) ||
	    !field_integer(body, "top_logprobs", 0, JIT_LOGPROBS_MOST, &max, r))
		return false;
	if (max && !wanted)
		return refuse(r, 400, "top_logprobs", "top_logprobs requires logprobs to be true");
	t->logprobs = wanted ? (int)max : -1;
	return true;
}

static bool has_functions(const json_t *body)
{
	const char *choice = json_string_value(field_value(body, "tool_choice"));

	return json_array_size(field_value(body, "tools")) > 0 && !(choice && strcmp(choice, "none") == 0);
}

static struct ollama_reply *open_reply(struct exchange *x, const struct ollama_request *q, struct task *t, bool forced)
{
	struct ollama_reply *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->base.kind = &ollama_kind;
	o->base.events_type = "application/x-ndjson";
	o->base.idle = stay_alive;
	o->base.events = json_is_true(field_value(q->body, "stream"));
	o->model = q->model;
	memcpy(o->name, q->name, sizeof o->name);
	o->raw = q->raw || q->fills;
	o->arrived = x->arrived;
	o->loading = x->loading;
	o->calls = json_array();
	task_hold(t);
	o->task = t;
	const enum tools_form form = o->raw ? TOOLS_NONE : tools_form_in(q->model->tools, has_functions(q->body));
	o->has_tools = form != TOOLS_NONE;
	o->parse_reasoning = !o->raw && !q->model->keeps_reasoning && !forced;
	tool_calls_begin(&o->choice.tools, form, forced ? t->opened : NULL, t->functions);
	return o;
}

/* The task takes over the conversation's tokens, the reply its text. */
static bool begin(struct exchange *x, struct ollama_request *q, struct task *t, struct conversation *c, bool chat)
{
	struct refusal *r = &x->refusal;
	const struct served *m = q->model;
	bool forced = false;

	conversation_give(c, t);
	if (!task_read(t, q->body, m->model, batcher_context(m->batcher), r) || !read_logprobs(t, q->body, r) ||
	    !talk_read_calls(t, q->body, r) || (chat && !tool_choice_read(t, q->body, m, &forced, r)) ||
	    (q->fills && !infill_end(t, m->model, r)))
		return false;
	ollama_set_room(q, t);
	struct ollama_reply *o = open_reply(x, q, t, forced);
	if (!o)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	o->chat = chat;
	if (!chat && !o->raw)
		o->context = t->shown.images ? json_array() : json_ids(t->ids, t->n_ids);
	o->prompt = c->text;
	o->n_prompt = c->n_text;
	c->text = NULL;
	return generate(x, &o->base, m, &t, 1);
}

/* Nothing is to be answered: the model is there by now. */
static bool say_loaded(struct exchange *x, const struct ollama_request *q, bool chat)
{
	const struct ollama_reply o = { .chat = chat };
	const struct bytes nothing = { 0 };
	json_t *j = json_object();
	char now[OLLAMA_TIME];

	ollama_now(now);
	json_put(j, "model", json_text(q->name, strlen(q->name)));
	json_put(j, "created_at", json_string(now));
	put_words(&o, j, &nothing, &nothing, NULL);
	json_put(j, "done", json_true());
	json_put(j, "done_reason", json_string(q->leaves ? "unload" : "load"));
	return exchange_json(x, json_write(j));
}

static bool answer(struct exchange *x, enum request_kind kind)
{
	const bool chat = kind == REQUEST_OLLAMA_CHAT;
	struct ollama_request q;
	struct conversation c = { 0 };
	struct task *t = NULL;
	bool ok = ollama_read(&q, x, kind);

	if (ok && q.loads) {
		ok = say_loaded(x, &q, chat);
	} else if (ok && (ok = ollama_prompt(&c, &q, x->now, &x->refusal))) {
		t = task_open(q.model);
		ok = t ? begin(x, &q, t, &c, chat)
		       : refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	task_release(t);
	conversation_free(&c);
	ollama_request_free(&q);
	return ok;
}

bool answer_ollama_chat(struct exchange *x) { return answer(x, REQUEST_OLLAMA_CHAT); }

bool answer_ollama_generate(struct exchange *x) { return answer(x, REQUEST_OLLAMA_TEXT); }
