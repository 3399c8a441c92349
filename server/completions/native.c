/* server/completions/native.c - /completion: texts that go on, in the form of llama.cpp's server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/infill.h"
#include "server/completions/native.h"
#include "server/completions/openai.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"

struct native_reply {
	struct reply base;
	const struct served *model;
	struct task *tasks[PROMPTS_MAX]; /* held: one for each prompt */
	unsigned n_tasks;
	json_t *fields; /* response_fields; NULL: all */
	bool tokens;    /* return_tokens */
	struct native_choice {
		struct bytes text;
		json_t *ids, *probabilities; /* arrays; NULL: none */
		enum end_reason reason;
		int stop;
		struct run_numbers numbers;
	} * choice;
	unsigned n;
};

static const struct task *task_of(const struct native_reply *o, unsigned number)
{
	return o->tasks[number / (o->n / o->n_tasks)];
}

/* What every piece says; stop: the last one. */
static json_t *delta(const struct native_reply *o, unsigned number, const char *text, size_t n, json_t *ids, bool stop)
{
	const struct native_choice *c = &o->choice[number];
	json_t *j = json_object();

	json_put(j, "index", json_integer(number));
	json_put(j, "content", json_text(text, n));
	json_put(j, "tokens", ids ? ids : json_array());
	json_put(j, "id_slot", json_integer(c->numbers.slot));
	json_put(j, "stop", json_boolean(stop));
	json_put(j, "tokens_predicted", json_integer((json_int_t)c->numbers.generated));
	json_put(j, "tokens_evaluated", json_integer((json_int_t)c->numbers.prompt));
	return j;
}

static void put_end(const struct native_reply *o, unsigned number, json_t *j)
{
	const struct native_choice *c = &o->choice[number];
	const struct native_end e = { c->reason, c->stop, &c->numbers, c->text.n ? c->text.p : "", c->text.n };

	native_put_end(j, o->model, task_of(o, number), &e);
}

static void send_event(struct native_reply *o, json_t *j)
{
	bytes_text(&o->base.out, "data: ");
	bytes_take(&o->base.out, json_write(j));
	bytes_text(&o->base.out, "\n\n");
}

static void take_token(struct native_reply *o, const struct answer_event *r, const jit_logprob *top, const char *text)
{
	struct native_choice *c = &o->choice[r->choice];
	const struct task *t = task_of(o, r->choice);
	json_t *p = t->logprobs >= 0 && r->id >= 0 ? openai_logprob(o->model->model, r, top, t->sampled) : NULL;

	c->numbers.generated += r->id >= 0;
	bytes_add(&c->text, text, r->n_text);
	if (!o->base.events) {
		if (o->tokens && r->id >= 0) {
			c->ids = c->ids ? c->ids : json_array();
			json_add(c->ids, json_integer(r->id));
		}
		if (p) {
			c->probabilities = c->probabilities ? c->probabilities : json_array();
			json_add(c->probabilities, p);
		}
		return;
	}
	json_t *ids = json_array();
	if (r->id >= 0)
		json_add(ids, json_integer(r->id));
	json_t *j = delta(o, r->choice, text, r->n_text, ids, false);
	if (task_of(o, r->choice)->timings)
		json_put(j, "timings", openai_timings(&r->numbers));
	if (p) {
		json_t *list = json_array();
		json_add(list, p);
		json_put(j, "completion_probabilities", list);
	}
	send_event(o, j);
}

static void send_progress(struct native_reply *o, const struct answer_event *r)
{
	json_t *j = delta(o, r->choice, "", 0, NULL, false);

	json_put(j, "prompt_progress", openai_progress(r));
	send_event(o, j);
}

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	struct native_reply *o = (struct native_reply *)(void *)r;
	struct native_choice *c = &o->choice[event->choice];

	if (event->kind == EVENT_TOKEN) {
		take_token(o, event, top, text);
		return;
	}
	if (event->kind == EVENT_PROMPT) {
		send_progress(o, event);
		return;
	}
	c->numbers = event->numbers;
	if (event->kind == EVENT_STARTED)
		return;
	c->reason = event->reason;
	c->stop = event->stop;
	if (r->events) {
		json_t *j = delta(o, event->choice, "", 0, NULL, true);
		put_end(o, event->choice, j);
		send_event(o, j);
	}
}

/* The fields that were asked for; "a/b" is the member b of a. */
static json_t *chosen(const struct native_reply *o, json_t *j)
{
	json_t *out = json_object(), *name;
	size_t i;

	if (json_array_size(o->fields) == 0) {
		json_decref(out);
		return j;
	}
	json_array_foreach(o->fields, i, name)
	{
		const char *path = json_string_value(name);
		json_t *v = j;
		char member[100];
		for (const char *at = path; v && at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
			snprintf(member, sizeof member, "%.*s", (int)strcspn(at, "/"), at);
			v = json_object_get(v, member);
		}
		if (v)
			json_put(out, path, json_incref(v));
	}
	json_decref(j);
	return out;
}

static json_t *whole(struct native_reply *o, unsigned number)
{
	struct native_choice *c = &o->choice[number];
	json_t *j = delta(o, number, c->text.n ? c->text.p : "", c->text.n, c->ids, true);

	c->ids = NULL;
	put_end(o, number, j);
	if (c->probabilities)
		json_put(j, "completion_probabilities", c->probabilities);
	c->probabilities = NULL;
	o->base.out.lost = o->base.out.lost || c->text.lost;
	return chosen(o, j);
}

static void end(struct reply *r)
{
	struct native_reply *o = (struct native_reply *)(void *)r;

	if (r->events)
		return;
	if (o->n == 1) {
		bytes_take(&r->out, json_write(whole(o, 0)));
		return;
	}
	json_t *list = json_array();
	for (unsigned i = 0; i < o->n; i++)
		json_add(list, whole(o, i));
	bytes_take(&r->out, json_write(list));
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_text(&r->out, "error: ");
	bytes_take(&r->out, refusal_json(why));
	bytes_text(&r->out, "\n\n");
}

static void close_reply(struct reply *r)
{
	struct native_reply *o = (struct native_reply *)(void *)r;

	for (unsigned i = 0; o->choice && i < o->n; i++) {
		bytes_free(&o->choice[i].text);
		json_decref(o->choice[i].ids);
		json_decref(o->choice[i].probabilities);
	}
	free(o->choice);
	for (unsigned i = 0; i < o->n_tasks; i++)
		task_release(o->tasks[i]);
	json_decref(o->fields);
	free(o);
}

static const struct reply_kind native_kind = { take, end, fail, close_reply };

/* ---- the request */

static bool read_fields(struct native_reply *o, const json_t *body, struct refusal *r)
{
	json_t *fields = field_array(body, "response_fields", r), *name;
	size_t i;

	json_array_foreach(fields, i, name) if (!json_is_string(name))
		refuse(r, 400, "response_fields", "response_fields has something that is no text");
	o->fields = fields ? json_copied(fields, true) : NULL;
	if (fields && !o->fields)
		refuse(r, 503, NULL, "There is no memory for this request.");
	return r->status == 0 && field_flag(body, "stream", &o->base.events, r) &&
	       field_flag(body, "return_tokens", &o->tokens, r);
}

static bool read_own(struct task *t, const json_t *body, const struct served *m, struct refusal *r)
{
	int64_t probabilities = 0;
	(void)m;

	if (!field_integer(body, "n_probs", 0, JIT_LOGPROBS_MOST, &probabilities, r) ||
	    !field_flag(body, "post_sampling_probs", &t->sampled, r))
		return false;
	if (probabilities)
		t->logprobs = (int)probabilities;
	return true;
}

static bool read_gap(struct task *t, const json_t *body, const struct served *m, struct refusal *r)
{
	return read_own(t, body, m, r) && infill_end(t, m->model, r);
}

bool native_begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p, bool infill)
{
	struct native_reply *o = calloc(1, sizeof *o);
	bool ok = o != NULL;

	if (o) {
		o->base.kind = &native_kind;
		o->model = m;
	}
	if (ok) {
		o->n_tasks = (unsigned)p->n;
		ok = prompt_tasks(o->tasks, &o->n, body, m, p, infill ? read_gap : read_own, &x->refusal) &&
		     read_fields(o, body, &x->refusal);
	}
	if (ok) {
		o->choice = calloc(o->n, sizeof *o->choice);
		if (o->choice)
			return generate(x, &o->base, m, o->tasks, o->n_tasks);
	}
	reply_close(o ? &o->base : NULL);
	return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p)
{
	return native_begin(x, body, m, p, false);
}

static bool run(struct exchange *x, json_t *body, const struct served *m)
{
	return prompts_run(x, body, m, "prompt", 0, begin);
}

bool answer_native(struct exchange *x) { return request_run(x, REQUEST_NATIVE, run); }
