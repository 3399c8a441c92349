/* server/ollama/ollama_request.c - requests in the form of ollama's API, converted to the one that the rest of the
 * server reads.
 *
 * Owns: that what stands in "options" counts as what stands beside them, and which call each result of a tool belongs
 * to where clients name the function alone.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/request/fields.h"
#include "server/completions/infill.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_facts.h"
#include "server/http/server.h"
#include "server/talk/talk.h"

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- options */

/* In ollama every number that is not positive means no bound. */
static bool read_predict(json_t *body, const json_t *options, struct refusal *r)
{
	int64_t max = -1;

	if (!field_integer(options, "num_predict", INT_MIN, INT_MAX, &max, r))
		return false;
	json_put(body, "max_completion_tokens", json_integer(max > 0 ? max : -1));
	return true;
}

static bool read_options(struct ollama_request *q, struct refusal *r)
{
	json_t *given = field_object(q->body, "options", r), *v;
	const char *name;
	void *next;

	if (!given)
		return r->status == 0;
	json_t *options = json_copied(given, false);
	bool ok = options ? request_take(options, REQUEST_OLLAMA_OPTIONS, r) : no_memory(r);
	ok = ok && field_integer(options, "num_ctx", 1, INT_MAX, &q->context, r) && ollama_read_keep(q, options, r);
	if (ok && field_value(options, "num_predict"))
		ok = read_predict(q->body, options, r);
	json_object_del(options, "num_ctx");
	json_object_del(options, "num_predict");
	json_object_foreach_safe(options, next, name, v) if (ok && field_value(options, name))
		json_put(q->body, name, json_incref(v));
	json_object_del(q->body, "options");
	json_decref(options);
	return ok;
}

/* ---- what else ollama has its own way of saying */

static bool read_think(struct ollama_request *q, struct refusal *r)
{
	json_t *body = q->body;
	const json_t *think = field_value(body, "think");
	const char *level = json_string_value(think);

	if (!think)
		return true;
	if (level && (strcmp(level, "low") == 0 || strcmp(level, "medium") == 0 || strcmp(level, "high") == 0))
		json_put(body, "reasoning_effort", json_string(level));
	else if (json_is_boolean(think) && !json_not_finite(think))
		json_put(body, "enable_thinking", json_boolean(json_is_true(think)));
	else
		return refuse(r, 400, "think",
		              "think is %s%.60s%s, expected true, false, \"low\", \"medium\" or \"high\"",
		              level ? "\"" : "", level ? level : json_kind(think), level ? "\"" : "");
	q->thinks = level || json_is_true(think);
	json_object_del(body, "think");
	return true;
}

static bool read_stream(json_t *body, struct refusal *r)
{
	bool stream = true;

	if (!field_flag(body, "stream", &stream, r))
		return false;
	json_put(body, "stream", json_boolean(stream));
	return true;
}

static bool read_keep(struct ollama_request *q, struct refusal *r)
{
	const json_t *v = field_value(q->body, "keep_alive");

	q->has_keep = v != NULL;
	return !v || ollama_duration(v, "keep_alive", &q->keep, r);
}

static void reword(struct refusal *r, const char *name)
{
	if (r->status != 404 || !name)
		return;
	*r = (struct refusal){ 0 };
	refuse(r, 404, "model", "model '%.200s' not found", name);
}

const struct served *ollama_model(struct exchange *x, const json_t *body)
{
	const struct served *m = exchange_model_of(x, body);

	if (!m)
		reword(&x->refusal, json_string_value(json_object_get(body, "model")));
	return m;
}

/* A model that is to leave need not be in memory for it. */
static const struct served *dismiss(struct exchange *x, const char *name)
{
	struct served *m = models_find(x->server->models, name, &x->refusal);

	if (m)
		loader_unload(x->server->models->loader, m, false);
	else
		reword(&x->refusal, name);
	return m;
}

static bool is_empty(const json_t *v) { return !v || (json_is_array(v) && json_array_size(v) == 0); }

static bool is_no_text(const json_t *v) { return !v || (json_is_string(v) && json_string_length(v) == 0); }

static bool read_body(struct ollama_request *q, struct exchange *x, enum request_kind kind)
{
	struct refusal *r = &x->refusal;
	const char *name = NULL;

	if (!read_keep(q, r) || !read_options(q, r) || !field_text(q->body, "model", &name, r))
		return false;
	if (kind == REQUEST_OLLAMA_EMBED)
		q->loads = false;
	else if (!read_think(q, r) || !read_stream(q->body, r) || !field_flag(q->body, "raw", &q->raw, r))
		return false;
	else if (kind == REQUEST_OLLAMA_CHAT)
		q->loads = is_empty(field_value(q->body, "messages"));
	else
		q->loads = is_no_text(field_value(q->body, "prompt")) && is_empty(field_value(q->body, "context")) &&
		           is_no_text(field_value(q->body, "suffix"));
	q->leaves = q->loads && q->has_keep && q->keep == 0;
	q->model = q->leaves ? dismiss(x, name) : ollama_model(x, q->body);
	if (!q->model)
		return false;
	if (kind != REQUEST_OLLAMA_EMBED && !q->leaves && !ollama_read_room(q, r))
		return false;
	if (q->has_keep && !q->leaves)
		loader_keep(x->server->models->loader, x->lease.model, q->keep < 0 ? -1 : q->keep);
	snprintf(q->name, sizeof q->name, "%s", name && strlen(name) < sizeof q->name ? name : q->model->name);
	return true;
}

bool ollama_read(struct ollama_request *q, struct exchange *x, enum request_kind kind)
{
	*q = (struct ollama_request){ .body = request_read(x->body.p, x->body.n, kind, &x->refusal) };
	return q->body && read_body(q, x, kind);
}

void ollama_request_free(struct ollama_request *q)
{
	json_decref(q->body);
	q->body = NULL;
}

/* ---- conversations */

/* The last call of that name that has no result yet; any, where no name is given. NULL: there is none. */
static json_t *call_of(const json_t *messages, const char *name)
{
	for (size_t i = json_array_size(messages); i-- > 0;) {
		json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls"), *call;
		size_t k;
		json_array_foreach(calls, k, call)
		{
			const char *own = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
			if (!json_object_get(call, "answered") && (!name || (own && strcmp(own, name) == 0)))
				return call;
		}
	}
	return NULL;
}

/* Results name their function, calls have no numbers: both get the same one, as templates know them. */
static void take_result(json_t *message, const json_t *messages)
{
	json_t *name = json_object_get(message, "tool_name");

	if (!json_is_string(name))
		name = json_object_get(message, "name");
	json_t *call = json_object_get(message, "tool_call_id") ? NULL : call_of(messages, json_string_value(name));
	if (json_is_string(name))
		json_put(message, "name", json_incref(name));
	json_object_del(message, "tool_name");
	if (!call)
		return;
	json_put(message, "tool_call_id", json_incref(json_object_get(call, "id")));
	json_put(call, "answered", json_true());
}

static bool take_calls(json_t *message, size_t number, struct refusal *r)
{
	json_t *given = field_array(message, "tool_calls", r), *list = json_array(), *call;
	char id[64];
	size_t i;

	snprintf(id, sizeof id, "messages[%zu]", number);
	if (r->status)
		refuse_within(r, id);
	json_array_foreach(given, i, call)
	{
		const json_t *function = json_object_get(call, "function");
		json_t *own = json_is_object(call) ? json_copied(call, false) : NULL;
		if (!own || !json_is_object(function) || !json_is_string(json_object_get(function, "name"))) {
			json_decref(own);
			json_decref(list);
			return refuse(r, 400, "messages",
			              "messages[%zu].tool_calls[%zu] is no object with a function that has a name",
			              number, i);
		}
		snprintf(id, sizeof id, "call_%zu_%zu", number, i);
		if (!json_is_string(json_object_get(own, "id")))
			json_put(own, "id", json_string(id));
		json_put(own, "type", json_string("function"));
		if (!field_value(function, "arguments")) {
			json_t *whole = json_copied(function, false);
			json_put(whole, "arguments", json_object());
			json_put(own, "function", whole);
		}
		json_add(list, own);
	}
	if (json_array_size(list))
		json_put(message, "tool_calls", list);
	else
		json_decref(list);
	return r->status == 0;
}

static bool take_message(json_t *message, size_t number, const json_t *messages, struct refusal *r)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	const json_t *images = field_value(message, "images");
	json_t *thinking = field_value(message, "thinking");

	if (thinking && !json_is_string(thinking))
		return refuse(r, 400, "messages", "messages[%zu].thinking is %s, expected a string", number,
		              json_kind(thinking));
	if (!is_no_text(thinking))
		json_put(message, "reasoning_content", json_incref(thinking));
	json_object_del(message, "images");
	json_object_del(message, "thinking");
	if (!take_calls(message, number, r))
		return false;
	if (!field_value(message, "content"))
		json_put(message, "content", json_string(""));
	if (role && strcmp(role, "tool") == 0)
		take_result(message, messages);
	return ollama_put_images(message, images, r);
}

static bool take_messages(json_t *body, struct refusal *r)
{
	const json_t *all = field_array(body, "messages", r), *given = talk_is_short(all, "messages", r) ? all : NULL;
	json_t *messages = json_array(), *message, *call;
	size_t i, k;

	json_array_foreach(given, i, message)
	{
		json_t *own = json_is_object(message) ? json_copied(message, false) : NULL;
		if (!own)
			refuse(r, 400, "messages", "messages[%zu] is %s, expected an object", i, json_kind(message));
		else
			take_message(own, i, messages, r);
		json_add(messages, own ? own : json_null());
		if (r->status)
			break;
	}
	json_array_foreach(messages, i, message) json_array_foreach(json_object_get(message, "tool_calls"), k, call)
		json_object_del(call, "answered");
	json_put(body, "messages", messages);
	return r->status == 0;
}

/* ---- texts */

/* A text as it is, with the tokens that begin one. */
static bool read_raw(struct conversation *c, const char *text, const struct served *m, struct refusal *r)
{
	jit_error err = { 0 };

	if (!field_fits("prompt", strlen(text), r))
		return false;
	if (jit_model_tokenize(m->model, text, strlen(text), 1, 1, &c->ids, &c->n_ids, &err) != JIT_OK)
		return refuse_error(r, "prompt", &err);
	c->text = strdup(text);
	c->n_text = strlen(text);
	return c->text || no_memory(r);
}

/* What /api/generate has instead of messages; NULL: empty. */
struct texts {
	const char *system, *prompt, *suffix;
};

static void take_rendered(struct conversation *c, const struct infill_text *t)
{
	*c = (struct conversation){ .ids = t->ids, .n_ids = t->n_ids, .text = t->text, .n_text = t->n_text };
	c->before = think_before(c->text, c->n_text, NULL);
}

/* By a template of the request's own: a gap where there is a suffix, else the system message and the prompt. */
static bool read_own_template(struct conversation *c, const char *given, const struct texts *v, const struct served *m,
                              int64_t now, struct refusal *r)
{
	const char *system = v->system ? v->system : m->system;
	const bool gap = v->suffix && *v->prompt;
	json_t *variables = json_object(), *messages = json_array();
	struct infill_text out = { 0 };

	if (gap) {
		json_put(variables, "prompt", json_string(v->prompt));
		json_put(variables, "suffix", json_string(v->suffix));
	} else {
		if (system)
			ollama_add_message(messages, "system", json_string(system));
		ollama_add_message(messages, "user", json_string(v->prompt));
	}
	char *text = json_write(messages);
	if (!text)
		json_decref(variables);
	bool ok = text ? infill_render(given, text, variables, m, now, &out, r) : no_memory(r);
	free(text);
	take_rendered(c, &out);
	return ok;
}

/* The tokens of an earlier answer stand before those of the prompt, which begins no text then. */
static bool put_context(struct conversation *c, const json_t *context, const struct served *m, struct refusal *r)
{
	const size_t n = json_array_size(context);
	int32_t *all = malloc((n + c->n_ids + 1) * sizeof *all);
	size_t n_first, i;
	const json_t *one;

	if (!all)
		return no_memory(r);
	json_array_foreach(context, i, one)
	{
		const json_int_t id = json_integer_value(one);
		if (!json_is_integer(one) || id < 0 || id >= m->info.vocab) {
			free(all);
			return refuse(r, 400, "context", "context[%zu] is no token, expected an integer from 0 to %d",
			              i, m->info.vocab - 1);
		}
		all[i] = (int32_t)id;
	}
	n_first = c->n_ids && c->ids[0] == models_first_token(m);
	memcpy(all + n, c->ids + n_first, (c->n_ids - n_first) * sizeof *all);
	free(c->ids);
	c->ids = all;
	c->n_ids += n - n_first;
	return true;
}

/* The prompt stands before a gap, and the suffix behind it: by the model's template where that writes gaps. */
static bool read_gap(struct conversation *c, const char *prompt, const char *suffix, const struct served *m,
                     int64_t now, struct refusal *r)
{
	const char *own = m->template_text ? m->template_text : models_template(m->model, NULL);
	struct infill_text written = { 0 };
	jit_error err = { 0 };
	int32_t *before = NULL, *behind = NULL;
	struct infill o = { .max = SIZE_MAX };

	if (*prompt && infill_in_template(own)) {
		const bool rendered = infill_by_template(m, prompt, suffix, now, &written, r);
		take_rendered(c, &written);
		return rendered;
	}
	bool ok = models_go_on(m->model, prompt, true, &before, &o.n_prefix, &err) || refuse_error(r, "prompt", &err);
	ok = ok &&
	     (models_go_on(m->model, suffix, false, &behind, &o.n_suffix, &err) || refuse_error(r, "suffix", &err));
	o.prefix = before;
	o.suffix = behind;
	ok = ok && infill_make(&o, m, "suffix", &c->ids, &c->n_ids, r);
	free(before);
	free(behind);
	return ok && ((c->text = strdup("")) || no_memory(r));
}

/* By the model's template, as a message of the user. */
static bool read_epoch(struct conversation *c, struct ollama_request *q, const struct texts *values, int64_t now,
                       struct refusal *r)
{
	json_t *messages = json_array();

	if (values->system)
		ollama_add_message(messages, "system", json_string(values->system));
	ollama_add_message(messages, "user", json_string(values->prompt));
	ollama_put_images(json_array_get(messages, json_array_size(messages) - 1), field_value(q->body, "images"), r);
	json_put(q->body, "messages", messages);
	if (!r->status && talk_normalise(q->body, "prompt", r) && conversation_read(c, q->body, q->model, now, r))
		return true;
	if (!is_empty(field_value(q->body, "images")))
		refusal_rename(r, "messages", "images");
	return false;
}

/* Empty texts are as good as none. */
static bool read_text(const json_t *body, const char *name, const char **text, struct refusal *r)
{
	if (!field_text(body, name, text, r))
		return false;
	*text = *text && **text ? *text : NULL;
	return true;
}

static bool read_generate(struct conversation *c, struct ollama_request *q, int64_t now, struct refusal *r)
{
	json_t *context = field_array(q->body, "context", r);
	struct texts v = { .prompt = "" };
	const char *own = NULL;
	const struct served *m = q->model;
	const bool has_context = json_array_size(context) > 0, sees = !is_empty(field_value(q->body, "images"));

	if (r->status || !field_text(q->body, "prompt", &v.prompt, r) || !read_text(q->body, "system", &v.system, r) ||
	    !read_text(q->body, "suffix", &v.suffix, r) || !read_text(q->body, "template", &own, r))
		return false;
	v.prompt = v.prompt ? v.prompt : "";
	q->fills = v.suffix && !own;
	if (sees && (q->raw || own || v.suffix || has_context))
		return refuse(r, 400, "images", "images go with a prompt, without raw, template, suffix and context");
	if (q->fills && (v.system || has_context))
		return refuse(r, 400, "suffix", "suffix goes with a prompt alone, without system and context");
	if (q->raw && (v.system || has_context || own))
		return refuse(r, 400, "raw", "raw mode does not support template, system, or context");
	if (own && q->thinks)
		return refuse(r, 400, "think", "think and template cannot both be given");
	if (q->fills)
		return read_gap(c, v.prompt, v.suffix, m, now, r);
	/* As ollama has it for models without a template. */
	const bool plain = q->raw || (!m->template_text && !m->info.has_chat_template && !v.system && !sees);
	return (own     ? read_own_template(c, own, &v, m, now, r)
	        : plain ? read_raw(c, v.prompt, m, r)
	                : read_epoch(c, q, &v, now, r)) &&
	       (!has_context || put_context(c, context, m, r));
}

/* A model that was never taught to reason cannot be told to. */
static bool may_think(const struct ollama_request *q, struct refusal *r)
{
	const struct served *m = q->model;
	const char *own = m->template_text ? m->template_text : models_template(m->model, NULL);

	if (!q->thinks)
		return true;
	if (q->raw)
		return refuse(r, 400, "think", "raw mode does not support think: it is the template that says so");
	return (own && ollama_can_think(own)) ||
	       refuse(r, 400, "think", "think is given, and \"%.200s\" does not support thinking", q->name);
}

/* As ollama has it, a model whose template in Go's language writes reasoning is told to reason where a request does not
 * say. */
static void think_by_default(struct ollama_request *q)
{
	const struct served *m = q->model;
	const char *own = m->template_text ? m->template_text : models_template(m->model, NULL);

	if (q->raw || m->reasoning != REASONING_TEMPLATE || field_value(q->body, "enable_thinking") ||
	    field_value(q->body, "reasoning_effort") || field_value(q->body, "template"))
		return;
	if (own && ollama_thinks_by_itself(own))
		json_put(q->body, "enable_thinking", json_true());
}

bool ollama_prompt(struct conversation *c, struct ollama_request *q, int64_t now, struct refusal *r)
{
	if (!may_think(q, r))
		return false;
	think_by_default(q);
	c->room = q->truncates ? (size_t)q->room : 0;
	const bool ok = !field_value(q->body, "messages")
	                        ? read_generate(c, q, now, r)
	                        : take_messages(q->body, r) && talk_normalise(q->body, "messages", r) &&
	                                  conversation_read(c, q->body, q->model, now, r);
	if (ok)
		ollama_cut(q, c);
	return ok;
}
