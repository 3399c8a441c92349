/* server/completions/chat_completions.c - /v1/chat/completions. */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/talk/conversation.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/talk/old_functions.h"
#include "server/completions/openai.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"
#include "server/talk/talk.h"
#include "server/talk/tool_choice.h"

static bool read_logprobs(struct task *t, const json_t *body, struct refusal *r)
{
	bool wanted = false;
	int64_t max = 0;

	if (!field_flag(body, "logprobs", &wanted, r) ||
	    !field_integer(body, "top_logprobs", 0, JIT_LOGPROBS_MOST, &max, r))
		return false;
	if (field_value(body, "top_logprobs") && !wanted)
		return refuse(r, 400, "top_logprobs", "top_logprobs requires logprobs to be set to true");
	t->logprobs = wanted ? (int)max : -1;
	return true;
}

static bool is_none(const json_t *choice)
{
	return json_is_string(choice) && strcmp(json_string_value(choice), "none") == 0;
}

/* The task takes over the conversation's tokens, the reply its text. */
static bool begin(struct exchange *x, const json_t *body, json_t *warnings, const struct served *m, struct task *t,
                  struct conversation *c)
{
	const char *format = NULL;
	bool forced = false;

	conversation_give(c, t);
	t->warnings = warnings ? json_incref(warnings) : json_array();
	if (!task_read(t, body, m->model, batcher_context(m->batcher), &x->refusal) ||
	    !read_logprobs(t, body, &x->refusal) || !task_read_prompt_top(t, body, &x->refusal) ||
	    !field_text(body, "reasoning_format", &format, &x->refusal))
		return false;
	if (!talk_read_calls(t, body, &x->refusal) || !tool_choice_read(t, body, m, &forced, &x->refusal))
		return false;
	struct openai_reply *o = openai_reply_open(x, m, &t, 1, body, true);
	if (!o)
		return false;
	o->functions = json_incref(field_value(body, "tools"));
	o->warnings = json_incref(t->warnings);
	o->parse_reasoning = format ? strcmp(format, "none") != 0 : !m->keeps_reasoning;
	o->tools = tools_form_in(m->tools, field_value(body, "tools") && !is_none(field_value(body, "tool_choice")));
	o->in_call = forced;
	o->parse_reasoning = o->parse_reasoning && !forced;
	o->prompt = c->text;
	o->n_prompt = c->n_text;
	c->text = NULL;
	t->scores = t->prompt_top >= 0;
	if (t->scores && t->shown.images) {
		reply_close(&o->base);
		return refuse(&x->refusal, 400, "prompt_logprobs",
		              "prompt_logprobs is given, and the prompt has pictures, whose tokens have none");
	}
	if (openai_prompt_logprobs(o, &x->refusal))
		return generate(x, &o->base, m, &t, 1);
	reply_close(&o->base);
	return false;
}

static bool run_tokens(struct exchange *x, json_t *body, const struct served *m)
{
	json_t *o = NULL, *warnings = NULL;
	struct conversation c = { .fetches = &x->shown };

	if (talk_read_chat(body, &warnings, &x->refusal) && conversation_read(&c, body, m, x->now, &x->refusal))
		o = json_pack("{s:I}", "input_tokens", (json_int_t)c.n_ids);
	json_decref(warnings);
	conversation_free(&c);
	return o && exchange_json(x, json_write(o));
}

bool answer_chat_tokens(struct exchange *x) { return request_run(x, REQUEST_CHAT, run_tokens); }

static bool run(struct exchange *x, json_t *body, const struct served *m)
{
	json_t *warnings = NULL;
	struct conversation c = { .fetches = &x->shown };
	struct task *t = NULL;
	const bool old = old_functions_are_in(body);
	bool ok = talk_read_chat(body, &warnings, &x->refusal) && conversation_read(&c, body, m, x->now, &x->refusal);

	if (ok) {
		t = task_open(m);
		if (t)
			t->old_functions = old;
		ok = t ? begin(x, body, warnings, m, t, &c)
		       : refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	task_release(t);
	conversation_free(&c);
	json_decref(warnings);
	return ok;
}

bool answer_chat(struct exchange *x) { return request_run(x, REQUEST_CHAT, run); }
