/* server/completions/openai.c - answers in the form of OpenAI's API: one object, or chunks of one as events. */
#include "server/completions/openai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/json_write.h"
#include "server/request/fields.h"
#include "server/completions/native.h"
#include "server/http/server.h"

/* ---- chunks */

static json_t *head(struct openai_reply *o, bool chunk)
{
	json_t *j = json_object();
	const char *object = o->chat ? (chunk ? "chat.completion.chunk" : "chat.completion") : "text_completion";

	json_put(j, "id", json_string(o->id));
	json_put(j, "object", json_string(object));
	json_put(j, "created", json_integer(o->created));
	json_put(j, "model", json_text(o->name, strlen(o->name)));
	json_put(j, "system_fingerprint", json_string(openai_fingerprint()));
	if (json_array_size(o->warnings))
		json_put(j, "warnings", o->warnings);
	else
		json_decref(o->warnings);
	o->warnings = NULL;
	return j;
}

static void send_event(struct openai_reply *o, json_t *j)
{
	bytes_text(&o->base.out, "data: ");
	bytes_take(&o->base.out, json_write(j));
	bytes_text(&o->base.out, "\n\n");
}

/* delta: of a chat, an object; else a text. */
static json_t *chunk(struct openai_reply *o, unsigned number, json_t *delta, json_t *logprobs, const char *finish)
{
	const struct openai_choice *c = &o->choice[number];
	json_t *j = head(o, true), *choices = json_array(), *one = json_object();

	json_put(one, "index", json_integer(number));
	json_put(one, o->chat ? "delta" : "text", delta);
	json_put(one, "logprobs", logprobs ? logprobs : json_null());
	json_put(one, "finish_reason", finish ? json_string(finish) : json_null());
	json_add(choices, one);
	json_put(j, "choices", choices);
	if (o->usage && !finish)
		json_put(j, "usage", json_null());
	if (finish || (o->tasks[0]->timings && c->numbers.generated))
		json_put(j, "timings", openai_timings(&c->numbers));
	return j;
}

static void send_chunk(struct openai_reply *o, unsigned number, json_t *delta, json_t *logprobs, const char *finish)
{
	send_event(o, chunk(o, number, delta, logprobs, finish));
}

/* ---- log probabilities */

/* The newer form stands beside the older one, as "content". */
static json_t *logprobs_of(struct openai_reply *o, unsigned number, json_t *entries)
{
	if (!o->logprobs)
		return NULL;
	json_t *list = entries ? entries : json_array();
	json_t *j = o->chat ? json_object() : openai_flat(o, number, list);
	json_put(j, "content", list);
	return j;
}

/* ---- texts */

static json_t *delta_of(const struct openai_reply *o, const struct bytes *reasoning, const char *text, size_t n)
{
	if (!o->chat)
		return json_text(text, n);
	json_t *delta = json_object();
	if (reasoning->n)
		json_put(delta, "reasoning_content", json_text(reasoning->p, reasoning->n));
	if (n || !reasoning->n)
		json_put(delta, "content", json_text(text, n));
	return delta;
}

/* Calls are taken out of an answer's piece, NULL: of its end; what is left is in rest. What a stream says of them;
 * NULL: nothing. */
static json_t *take_calls(struct openai_reply *o, unsigned number, const struct think_parts *parts, struct bytes *rest)
{
	struct tool_calls *t = &o->choice[number].tools;

	if (parts)
		tool_calls_take(t, parts->n_answer ? parts->answer : "", parts->n_answer);
	else
		tool_calls_end(t, openai_was_cut(o->choice[number].reason));
	bytes_add(rest, t->found.text.p, t->found.text.n);
	o->base.out.lost = o->base.out.lost || t->lost || rest->lost;
	if (o->tasks[0]->one_call)
		tool_events_keep_one(&t->found);
	return o->base.events ? openai_call_deltas(o, number) : NULL;
}

/* calls is taken over. */
static void send_calls(struct openai_reply *o, unsigned number, json_t *calls)
{
	json_t *call, *delta;
	size_t i;

	if (!o->tasks[0]->old_functions) {
		delta = json_object();
		json_put(delta, "tool_calls", calls);
		send_chunk(o, number, delta, NULL, NULL);
		return;
	}
	json_array_foreach(calls, i, call)
	{
		delta = json_object();
		json_put(delta, "function_call", json_incref(json_object_get(call, "function")));
		send_chunk(o, number, delta, NULL, NULL);
	}
	json_decref(calls);
}

/* The calls of a whole answer. */
static void put_calls(struct openai_reply *o, unsigned number, json_t *message)
{
	json_t *calls = openai_calls(o, number);

	if (!o->tasks[0]->old_functions) {
		json_put(message, "tool_calls", calls);
		return;
	}
	json_put(message, "function_call", json_incref(json_object_get(json_array_get(calls, 0), "function")));
	if (json_string_length(json_object_get(message, "content")) == 0)
		json_put(message, "content", json_null());
	json_decref(calls);
}

/* A piece of text; NULL is the end, and gives what was held back. */
static void take_text(struct openai_reply *o, unsigned number, const char *text, size_t n, json_t *entry)
{
	struct openai_choice *c = &o->choice[number];
	struct think_parts parts = { .answer = text ? text : "", .n_answer = n };
	struct bytes reasoning = { 0 }, rest = { 0 };
	json_t *calls[2] = { NULL, NULL };

	if (o->parse_reasoning && !think_take(&c->think, text, n, &parts))
		o->base.out.lost = true;
	think_words_take(&c->words, parts.reasoning, parts.n_reasoning, &reasoning);
	if (o->tools != TOOLS_NONE) {
		calls[0] = take_calls(o, number, &parts, &rest);
		calls[1] = text ? NULL : take_calls(o, number, NULL, &rest);
		parts.answer = rest.p;
		parts.n_answer = rest.n;
	}
	if (!o->base.events) {
		bytes_add(&c->text, parts.answer, parts.n_answer);
		bytes_add(&c->reasoning, reasoning.p, reasoning.n);
		if (entry) {
			c->logprobs = c->logprobs ? c->logprobs : json_array();
			json_add(c->logprobs, entry);
		}
	} else if (parts.n_answer || reasoning.n || entry) {
		json_t *list = entry ? json_array() : NULL;
		if (entry)
			json_add(list, entry);
		send_chunk(o, number, delta_of(o, &reasoning, parts.answer, parts.n_answer),
		           entry ? logprobs_of(o, number, list) : NULL, NULL);
	}
	bytes_free(&reasoning);
	bytes_free(&rest);
	for (int i = 0; i < 2; i++)
		if (calls[i]) {
			send_calls(o, number, calls[i]);
		}
}

/* ---- records */

static struct openai_echo *echo_of(const struct openai_reply *o, unsigned number)
{
	return o->echo ? &o->echo[number / (o->n / o->n_tasks)] : NULL;
}

/* A prompt before its answer, with what is known of its tokens. */
static void take_echo(struct openai_reply *o, unsigned number, const struct openai_echo *e)
{
	json_t *list = e->logprobs ? json_copied(e->logprobs, false) : NULL;

	if (e->logprobs && !list)
		o->base.out.lost = true;
	if (!o->base.events) {
		bytes_add(&o->choice[number].text, e->text, e->n);
		o->choice[number].logprobs = list;
	} else {
		send_chunk(o, number, json_text(e->text, e->n), list ? logprobs_of(o, number, list) : NULL, NULL);
	}
}

static void begin_choice(struct openai_reply *o, unsigned number)
{
	tool_calls_begin(&o->choice[number].tools, o->tools, o->in_call ? o->tasks[0]->opened : NULL,
	                 o->tasks[0]->functions);
	think_begin(&o->choice[number].think, o->prompt ? o->prompt : "", o->n_prompt);
	if (o->base.events && o->chat) {
		json_t *delta = json_object();
		json_put(delta, "role", json_string("assistant"));
		json_put(delta, "content", json_null());
		send_chunk(o, number, delta, NULL, NULL);
	} else if (o->echo) {
		take_echo(o, number, echo_of(o, number));
	}
}

static void take_scored(struct openai_reply *o, const struct answer_event *r, const jit_logprob *top)
{
	const unsigned number = r->choice / (o->n / o->n_tasks);
	const struct task *t = o->tasks[number];
	struct answer_event limited = *r;

	if (o->echo && o->echo[number].logprobs) {
		if (limited.n_top > (uint32_t)t->logprobs)
			limited.n_top = (uint32_t)t->logprobs;
		json_add(o->echo[number].logprobs, openai_logprob(o->model->model, &limited, top, false));
	}
	if (o->prompt_logprobs)
		json_add(o->prompt_logprobs[number], openai_ranked(o->model->model, r, top, (uint32_t)t->prompt_top));
}

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	struct openai_reply *o = (struct openai_reply *)(void *)r;
	struct openai_choice *c = &o->choice[event->choice];

	if (event->kind == EVENT_STARTED) {
		c->numbers = event->numbers;
		begin_choice(o, event->choice);
	} else if (event->kind == EVENT_SCORED) {
		take_scored(o, event, top);
	} else if (event->kind == EVENT_PROMPT) {
		json_t *j = chunk(o, event->choice, o->chat ? json_object() : json_string(""), NULL, NULL);
		json_put(j, "prompt_progress", openai_progress(event));
		send_event(o, j);
	} else if (event->kind == EVENT_TOKEN) {
		if (o->tasks[0]->timings)
			c->numbers = event->numbers;
		json_t *entry =
			o->logprobs && event->id >= 0 ? openai_logprob(o->model->model, event, top, false) : NULL;
		if (event->n_text || entry)
			take_text(o, event->choice, text, event->n_text, entry);
	} else {
		c->reason = event->reason;
		c->stop = event->stop;
		c->numbers = event->numbers;
		take_text(o, event->choice, NULL, 0, NULL);
		if (r->events)
			send_chunk(o, event->choice, o->chat ? json_object() : json_string(""), NULL,
			           openai_finish(o, c));
	}
}

static json_t *choice_json(struct openai_reply *o, unsigned number)
{
	struct openai_choice *c = &o->choice[number];
	json_t *one = json_object();
	json_t *text = json_text(c->text.n ? c->text.p : "", c->text.n);

	if (c->text.lost || c->reasoning.lost)
		o->base.out.lost = true;
	json_put(one, "index", json_integer(number));
	if (o->chat) {
		json_t *message = json_object();
		json_put(message, "role", json_string("assistant"));
		if (c->reasoning.n)
			json_put(message, "reasoning_content", json_text(c->reasoning.p, c->reasoning.n));
		json_put(message, "content", text);
		if (c->tools.found.n)
			put_calls(o, number, message);
		json_put(one, "message", message);
	} else {
		json_put(one, "text", text);
	}
	json_t *logprobs = logprobs_of(o, number, c->logprobs);
	c->logprobs = NULL;
	json_put(one, "logprobs", logprobs ? logprobs : json_null());
	json_put(one, "finish_reason", json_string(openai_finish(o, c)));
	if (o->prompt_logprobs && !o->chat)
		json_put(one, "prompt_logprobs", json_incref(o->prompt_logprobs[number / (o->n / o->n_tasks)]));
	return one;
}

static json_t *verbose_of(const struct openai_reply *o)
{
	const struct openai_choice *c = &o->choice[0];
	const struct native_end e = { c->reason, c->stop, &c->numbers, c->text.n ? c->text.p : "", c->text.n };

	return native_whole(o->model, o->tasks[0], &e);
}

static void end(struct reply *r)
{
	struct openai_reply *o = (struct openai_reply *)(void *)r;
	json_t *j, *choices = json_array();

	if (!r->events) {
		j = head(o, false);
		for (unsigned i = 0; i < o->n; i++)
			json_add(choices, choice_json(o, i));
		json_put(j, "choices", choices);
		if (o->prompt_logprobs && o->chat)
			json_put(j, "prompt_logprobs", json_incref(o->prompt_logprobs[0]));
		json_put(j, "usage", openai_usage(o->choice, o->n, o->n / o->n_tasks));
		json_put(j, "timings", openai_timings(&o->choice[0].numbers));
		if (o->verbose)
			json_put(j, "__verbose", verbose_of(o));
		bytes_take(&r->out, json_write(j));
		return;
	}
	if (o->usage) {
		j = head(o, true);
		json_put(j, "choices", choices);
		json_put(j, "usage", openai_usage(o->choice, o->n, o->n / o->n_tasks));
		json_put(j, "timings", openai_timings(&o->choice[0].numbers));
		send_event(o, j);
	} else {
		json_decref(choices);
	}
	bytes_text(&r->out, "data: [DONE]\n\n");
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_text(&r->out, "data: ");
	bytes_take(&r->out, refusal_json(why));
	bytes_text(&r->out, "\n\ndata: [DONE]\n\n");
}

void openai_choice_free(struct openai_choice *c)
{
	bytes_free(&c->text);
	bytes_free(&c->reasoning);
	think_words_free(&c->words);
	tool_calls_free(&c->tools);
	think_end(&c->think);
	json_decref(c->logprobs);
}

static void close_reply(struct reply *r)
{
	struct openai_reply *o = (struct openai_reply *)(void *)r;

	for (unsigned i = 0; o->choice && i < o->n; i++)
		openai_choice_free(&o->choice[i]);
	free(o->choice);
	free(o->prompt);
	json_decref(o->functions);
	json_decref(o->warnings);
	for (unsigned i = 0; o->echo && i < o->n_tasks; i++) {
		free(o->echo[i].text);
		json_decref(o->echo[i].logprobs);
	}
	free(o->echo);
	for (unsigned i = 0; o->prompt_logprobs && i < o->n_tasks; i++)
		json_decref(o->prompt_logprobs[i]);
	free(o->prompt_logprobs);
	for (unsigned i = 0; o->tasks && i < o->n_tasks; i++)
		task_release(o->tasks[i]);
	free(o->tasks);
	free(o);
}

const struct reply_kind openai_kind = { take, end, fail, close_reply };

/* ---- the beginning */

static void make_id(struct openai_reply *o)
{
	unsigned char random[12] = { 0 };
	size_t n = (size_t)snprintf(o->id, sizeof o->id, "%s", o->chat ? "chatcmpl-" : "cmpl-");

	if (getrandom(random, sizeof random, GRND_NONBLOCK) < 0)
		memcpy(random, &o, sizeof o);
	for (size_t i = 0; i < sizeof random; i++)
		n += (size_t)snprintf(o->id + n, sizeof o->id - n, "%02x", random[i]);
}

static bool read_stream_options(struct openai_reply *o, const json_t *body, struct refusal *r)
{
	const json_t *options = field_object(body, "stream_options", r);

	o->verbose = o->model->verbose;
	if (r->status || !field_flag(body, "stream", &o->base.events, r) ||
	    !field_flag(body, "verbose", &o->verbose, r))
		return false;
	return !options || field_flag(options, "include_usage", &o->usage, r) || refuse_within(r, "stream_options");
}

static bool hold_tasks(struct openai_reply *o, struct task *const *tasks, unsigned n)
{
	o->tasks = calloc(n, sizeof *o->tasks);
	for (unsigned i = 0; o->tasks && i < n; i++) {
		task_hold(tasks[i]);
		o->tasks[o->n_tasks++] = tasks[i];
		o->n += tasks[i]->choices;
	}
	o->choice = o->tasks ? calloc(o->n, sizeof *o->choice) : NULL;
	return o->choice != NULL;
}

struct openai_reply *openai_reply_open(struct exchange *x, const struct served *m, struct task *const *tasks,
                                       unsigned n, const json_t *body, bool chat)
{
	struct openai_reply *o = calloc(1, sizeof *o);
	const char *name = json_string_value(json_object_get(body, "model"));

	if (!o) {
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
		return NULL;
	}
	o->base.kind = &openai_kind;
	o->model = m;
	o->chat = chat;
	o->created = (long)time(NULL);
	o->logprobs = tasks[0]->logprobs >= 0;
	snprintf(o->name, sizeof o->name, "%s", name && strlen(name) < sizeof o->name ? name : m->name);
	make_id(o);
	if (!hold_tasks(o, tasks, n))
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	else if (read_stream_options(o, body, &x->refusal))
		return o;
	reply_close(&o->base);
	return NULL;
}

bool openai_echo(struct openai_reply *o, unsigned i, const json_t *text, struct refusal *r)
{
	const struct task *t = o->tasks[i];

	if (!o->echo)
		o->echo = calloc(o->n_tasks, sizeof *o->echo);
	if (!o->echo)
		return refuse(r, 503, NULL, "There is no memory for this request.");
	struct openai_echo *e = &o->echo[i];
	if (text) {
		e->n = json_string_length(text);
		e->text = malloc(e->n + 1);
		if (e->text)
			memcpy(e->text, json_string_value(text), e->n + 1);
	} else {
		e->text = jit_model_detokenize(o->model->model, t->ids, t->n_ids, &e->n, NULL);
	}
	const bool scored = t->scores && t->logprobs >= 0;
	e->logprobs = scored ? json_array() : NULL;
	return (e->text && (e->logprobs || !scored)) || refuse(r, 503, NULL, "There is no memory for this request.");
}

bool openai_prompt_logprobs(struct openai_reply *o, struct refusal *r)
{
	bool ok = true;

	if (o->tasks[0]->prompt_top < 0)
		return true;
	if (o->base.events)
		return refuse(r, 400, "prompt_logprobs",
		              "prompt_logprobs is told in whole answers alone, not in streams");
	o->prompt_logprobs = calloc(o->n_tasks, sizeof *o->prompt_logprobs);
	for (unsigned i = 0; o->prompt_logprobs && i < o->n_tasks; i++)
		ok = (o->prompt_logprobs[i] = json_array()) && ok;
	return (o->prompt_logprobs && ok) || refuse(r, 503, NULL, "There is no memory for this request.");
}
