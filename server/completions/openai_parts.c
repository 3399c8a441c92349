/* server/completions/openai_parts.c - the parts that answers in the form of OpenAI's API consist of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math_host.h"
#include "base/json_write.h"
#include "server/completions/openai.h"
#include "server/request/tool_notes.h"

const char *openai_fingerprint(void)
{
	static _Thread_local char text[64];

	if (!text[0])
		snprintf(text, sizeof text, "b-jitrun-%s", jit_version());
	return text;
}

const char *openai_finish(const struct openai_reply *o, const struct openai_choice *c)
{
	const char *called = o->tasks[0]->old_functions ? "function_call" : "tool_calls";

	if (openai_has_one_call(o->tasks[0], &c->tools.found))
		return called;
	switch (c->reason) {
	case END_LENGTH: return "length";
	case END_CANCELLED:
	case END_TOKEN:
	case END_STOP_TEXT:
	case END_GRAMMAR: break;
	}
	return c->tools.found.whole ? called : "stop";
}

/* A call, or the beginning of one, with n bytes of its arguments; of one whose argument is a text, that text. */
static json_t *call_json(const struct openai_reply *o, unsigned choice, size_t number, size_t n, bool begins)
{
	const struct tool_call *c = &o->choice[choice].tools.found.call[number];
	json_t *call = json_object(), *function = json_object();
	char id[80];

	const bool custom = tool_is_custom(o->functions, c->name);

	snprintf(id, sizeof id, "call_%s_%u_%zu", o->id + strlen("chatcmpl-"), choice, number);
	json_put(call, "id", json_string(id));
	json_put(call, "type", json_string(custom ? "custom" : "function"));
	json_put(function, "name", json_text(c->name, strlen(c->name)));
	if (custom)
		json_put(function, "input", begins ? json_string("") : tool_input(c->arguments.p, n, c->whole));
	else
		json_put(function, "arguments", json_text(c->arguments.p, n));
	json_put(call, custom ? "custom" : "function", function);
	return call;
}

json_t *openai_calls(const struct openai_reply *o, unsigned choice)
{
	const struct tool_events *t = &o->choice[choice].tools.found;
	json_t *list = json_array();

	for (size_t i = 0; i < t->n && (i == 0 || !o->tasks[0]->one_call); i++)
		json_add(list, call_json(o, choice, i, t->call[i].arguments.n, false));
	return list;
}

json_t *openai_call_deltas(const struct openai_reply *o, unsigned choice)
{
	const struct tool_events *t = &o->choice[choice].tools.found;
	json_t *list = NULL, *call = NULL;
	bool begun = false;

	/* A call begins with what is known of its arguments by the end of the piece; of another one there is at most
	 * one part, as parts of one call are together. */
	for (size_t i = 0; i < t->n_events; i++) {
		const struct tool_event *e = &t->event[i];
		const struct tool_call *c = e->kind == TOOL_TEXT ? NULL : &t->call[e->call];
		bool again = e->kind == TOOL_DELTA && begun && t->event[i - 1].call == e->call;
		if (e->kind == TOOL_BEGINS) {
			call = call_json(o, choice, e->call, c->arguments.n, true);
		} else if (c && tool_is_custom(o->functions, c->name)) { /* its text is known when it is whole */
			if (e->kind != TOOL_ENDS)
				continue;
			call = json_pack("{s:{s:o}}", "custom", "input",
			                 tool_input(c->arguments.p, c->arguments.n, c->whole));
		} else if (e->kind == TOOL_DELTA && !again) {
			call = json_object();
			json_put(call, "function",
			         json_pack("{s:o}", "arguments", json_text(c->arguments.p + e->from, e->n)));
		} else {
			continue;
		}
		begun = e->kind == TOOL_BEGINS;
		json_put(call, "index", json_integer((json_int_t)e->call));
		list = list ? list : json_array();
		json_add(list, call);
	}
	return list;
}

static void put_token(json_t *o, const jit_model *model, int32_t id, float logprob, bool sampled)
{
	char scratch[256];
	size_t n = 0;
	const char *text = models_bytes(model, id, false, scratch, &n);

	json_put(o, "id", json_integer(id));
	json_put(o, "token", json_text(text, n));
	json_put(o, "bytes", json_bytes(text, n));
	if (sampled)
		json_put(o, "prob", json_number(math_host_exp((double)logprob)));
	else
		json_put(o, "logprob", json_number((double)logprob));
}

json_t *openai_logprob(const jit_model *model, const struct answer_event *r, const jit_logprob *top, bool sampled)
{
	json_t *o = json_object(), *list = json_array();

	put_token(o, model, r->id, r->logprob, sampled);
	for (uint32_t i = 0; i < r->n_top; i++) {
		json_t *one = json_object();
		put_token(one, model, top[i].id, top[i].logprob, sampled);
		json_add(list, one);
	}
	json_put(o, sampled ? "top_probs" : "top_logprobs", list);
	return o;
}

static void put_ranked(json_t *o, const jit_model *model, int32_t id, float logprob, json_int_t rank)
{
	char scratch[256], name[16];
	size_t n = 0;
	const char *text = models_bytes(model, id, false, scratch, &n);
	json_t *one = json_object();

	snprintf(name, sizeof name, "%d", (int)id);
	json_put(one, "logprob", json_number((double)logprob));
	json_put(one, "rank", rank ? json_integer(rank) : json_null());
	json_put(one, "decoded_token", json_text(text, n));
	json_put(o, name, one);
}

json_t *openai_ranked(const jit_model *model, const struct answer_event *r, const jit_logprob *top, uint32_t max)
{
	json_t *o;
	json_int_t rank = 0;

	if (r->logprob != r->logprob)
		return json_null();
	o = json_object();
	for (uint32_t i = 0; i < r->n_top && !rank; i++)
		rank = top[i].id == r->id ? (json_int_t)i + 1 : 0;
	put_ranked(o, model, r->id, r->logprob, rank);
	for (uint32_t i = 0; i < r->n_top && i < max; i++)
		if (top[i].id != r->id)
			put_ranked(o, model, top[i].id, top[i].logprob, (json_int_t)i + 1);
	return o;
}

json_t *openai_usage(const struct openai_choice *c, unsigned n, unsigned each)
{
	json_t *o = json_object(), *details = json_object();
	uint64_t generated = 0, prompt = 0, reused = 0;

	for (unsigned i = 0; i < n; i++) {
		generated += c[i].numbers.generated;
		prompt += i % each == 0 ? c[i].numbers.prompt : 0;
		reused += i % each == 0 ? c[i].numbers.reused : 0;
	}
	json_put(o, "completion_tokens", json_integer((json_int_t)generated));
	json_put(o, "prompt_tokens", json_integer((json_int_t)prompt));
	json_put(o, "total_tokens", json_integer((json_int_t)(prompt + generated)));
	json_put(details, "cached_tokens", json_integer((json_int_t)reused));
	json_put(o, "prompt_tokens_details", details);
	return o;
}

static void put_rate(json_t *o, const char *names[4], uint64_t tokens, double seconds)
{
	json_put(o, names[0], json_integer((json_int_t)tokens));
	json_put(o, names[1], json_number(seconds * 1e3));
	json_put(o, names[2], json_number(tokens ? seconds * 1e3 / (double)tokens : 0));
	json_put(o, names[3], json_number(seconds > 0 ? (double)tokens / seconds : 0));
}

json_t *openai_timings(const struct run_numbers *n)
{
	static const char *prompt[] = { "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second" };
	static const char *predicted[] = { "predicted_n", "predicted_ms", "predicted_per_token_ms",
		                           "predicted_per_second" };
	json_t *o = json_object();

	json_put(o, "cache_n", json_integer((json_int_t)n->reused));
	put_rate(o, prompt, n->prompt - n->reused, n->prompt_seconds);
	put_rate(o, predicted, n->generated, n->decode_seconds);
	if (n->drafted) {
		json_put(o, "draft_n", json_integer((json_int_t)n->drafted));
		json_put(o, "draft_n_accepted", json_integer((json_int_t)n->accepted));
	}
	if (n->draft_requests) {
		json_put(o, "draft_model_n", json_integer((json_int_t)n->draft_proposed));
		json_put(o, "draft_model_n_accepted", json_integer((json_int_t)n->draft_accepted));
		json_put(o, "draft_model_ms", json_number(n->draft_seconds * 1e3));
		json_put(o, "draft_model_gain", n->draft_gain > 0 ? json_number(n->draft_gain) : json_null());
	}
	return o;
}

json_t *openai_progress(const struct answer_event *r)
{
	json_t *o = json_object();

	json_put(o, "total", json_integer((json_int_t)r->numbers.prompt));
	json_put(o, "cache", json_integer((json_int_t)r->numbers.reused));
	json_put(o, "processed", json_integer((json_int_t)r->done));
	json_put(o, "time_ms", json_number(r->numbers.prompt_seconds * 1e3));
	return o;
}
