/* server/responses/responses_request.c - requests in the form of OpenAI's responses, converted to the one of chat
 * completions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/engine/batcher.h"
#include "server/talk/allowed_tools.h"
#include "server/request/fields.h"
#include "server/responses/response_tools.h"
#include "server/responses/responses.h"
#include "server/talk/talk.h"

static void add_message(json_t *messages, const char *role, json_t *content)
{
	json_t *o = json_object();

	json_put(o, "role", json_string(role));
	json_put(o, "content", content);
	json_add(messages, o);
}

/* ---- items of the conversation */

/* What is read so far. */
struct talk_so_far {
	json_t *messages;
	struct bytes thoughts; /* reasoning that belongs to the next message of the assistant */
};

static json_t *last_of(struct talk_so_far *t) { return json_array_get(t->messages, json_array_size(t->messages) - 1); }

/* The thoughts before it go into a message of the assistant. */
static void give_thoughts(struct talk_so_far *t, json_t *message)
{
	if (t->thoughts.n)
		json_put(message, "reasoning_content", json_text(t->thoughts.p, t->thoughts.n));
	bytes_clear(&t->thoughts);
}

/* A call belongs to the message of the assistant before it, where there is one. call is taken over. */
static void add_call(struct talk_so_far *t, json_t *call)
{
	const char *role = json_string_value(json_object_get(last_of(t), "role"));

	if (!role || strcmp(role, "assistant") != 0)
		add_message(t->messages, "assistant", json_null());
	if (!json_object_get(last_of(t), "tool_calls"))
		json_put(last_of(t), "tool_calls", json_array());
	give_thoughts(t, last_of(t));
	json_add(json_object_get(last_of(t), "tool_calls"), call);
}

static void add_texts(struct bytes *to, const json_t *parts)
{
	json_t *part;
	size_t i;

	json_array_foreach(parts, i, part)
	{
		const char *text = json_string_value(json_object_get(part, "text"));
		bytes_text(to, text ? text : "");
	}
}

/* Its text, or what its client was given to restore it; else what it was summed up to. */
static void add_reasoning(struct talk_so_far *t, const json_t *item)
{
	const char *sealed = json_string_value(json_object_get(item, "encrypted_content"));
	const size_t before = t->thoughts.n;

	add_texts(&t->thoughts, json_object_get(item, "content"));
	if (t->thoughts.n == before && sealed)
		responses_unseal(sealed, &t->thoughts);
	if (t->thoughts.n == before)
		add_texts(&t->thoughts, json_object_get(item, "summary"));
}

/* Of what other servers' tools did, which a conversation may hold. */
static bool is_hosted_call(const char *type)
{
	const char *end = strstr(type, "_call");

	return (end && response_tools_are_hosted(type)) || strncmp(type, "mcp_", 4) == 0 ||
	       strcmp(type, "computer_call_output") == 0 || strcmp(type, "compaction") == 0;
}

static bool add_item(struct talk_so_far *t, const json_t *item, size_t number, struct refusal *r)
{
	const char *type = json_string_value(json_object_get(item, "type"));
	const char *role = json_string_value(json_object_get(item, "role"));
	json_t *content = json_object_get(item, "content"), *made;
	enum response_item kind;

	if (!response_tools_item(item, &kind, &made, r)) {
		json_decref(made);
		return false;
	}
	if (kind == ITEM_IS_CALL) {
		add_call(t, made);
		return true;
	}
	if (kind == ITEM_IS_RESULT) {
		json_add(t->messages, made);
		return true;
	}
	if (type && strcmp(type, "reasoning") == 0) {
		add_reasoning(t, item);
		return true;
	}
	if (type && is_hosted_call(type))
		return true;
	if (type && strcmp(type, "message") != 0)
		return refuse(r, 400, "input", "input has an item of type %.60s, which is not supported", type);
	if (!role || (!json_is_string(content) && !json_is_array(content)))
		return refuse(r, 400, "input", "item %zu of input has no role, or no content", number);
	add_message(t->messages, role, json_incref(content));
	if (strcmp(role, "assistant") == 0)
		give_thoughts(t, last_of(t));
	return true;
}

static bool read_input(json_t *messages, const json_t *body, const json_t *items, struct refusal *r)
{
	struct talk_so_far t = { .messages = messages };
	const char *instructions = NULL;
	json_t *item;
	size_t i;

	if (!field_text(body, "instructions", &instructions, r))
		return false;
	if (instructions && *instructions)
		add_message(messages, "system", json_incref(field_value(body, "instructions")));
	json_array_foreach(items, i, item) if (!add_item(&t, item, i, r)) break;
	if (!r->status && json_array_size(messages) == 0)
		refuse(r, 400, "input", "input has no message, and nothing else that the model could read");
	const bool lost = t.thoughts.lost;
	bytes_free(&t.thoughts);
	return r->status == 0 && (!lost || refuse(r, 503, NULL, "There is no memory for this request."));
}

json_t *responses_items(const json_t *body, struct response_store *store, uint64_t owner, struct refusal *r)
{
	const json_t *input = field_value(body, "input");
	const char *previous = NULL;
	json_t *items, *more, *item;
	size_t i;

	if (!field_text(body, "previous_response_id", &previous, r))
		return NULL;
	if (!json_is_string(input) && json_array_size(input) == 0) {
		refuse(r, 400, "input", "input is missing or empty, or neither a text nor an array");
		return NULL;
	}
	items = previous ? response_store_items(store, owner, previous) : json_array();
	more = previous ? response_store_get(store, owner, previous) : NULL;
	if (previous && (!items || !more)) {
		refuse(r, 400, "previous_response_id",
		       "previous_response_id is %.80s, and no response of that name is kept here; send the whole "
		       "conversation in input",
		       previous);
		r->code = "previous_response_not_found"; /* on which clients send all of it */
	}
	if (!r->status && more && json_array_extend(items, json_object_get(more, "output")))
		refuse(r, 503, NULL, "There is no memory for this request.");
	json_decref(more);
	if (r->status) {
		json_decref(items);
		return NULL;
	}
	if (json_is_string(input))
		json_add(items, json_pack("{s:s, s:s, s:O}", "type", "message", "role", "user", "content", input));
	json_array_foreach(input, i, item)
	{
		const char *type = json_string_value(json_object_get(item, "type")),
			   *id = json_string_value(json_object_get(item, "id"));
		if (!type || strcmp(type, "item_reference") != 0) {
			json_add(items, json_incref(item));
			continue;
		}
		json_t *known = id ? response_store_find(store, owner, id) : NULL;
		if (known)
			json_add(items, known);
		else
			refuse(r, 400, "input", "input[%zu] refers to an item that is not kept here; send the item", i);
	}
	if (!r->status)
		return items;
	json_decref(items);
	return NULL;
}

/* ---- tools */

json_t *responses_warnings(const json_t *body)
{
	struct refusal ignored = { 0 };
	json_t *list = json_array();

	json_decref(response_tools_functions(body, list, &ignored));
	return list;
}

static void set_choice(json_t *o, const json_t *choice, struct refusal *r)
{
	char name[200];

	if (allowed_tools_is(choice)) {
		json_put(o, "tool_choice", response_tools_allowed(choice, r));
		return;
	}
	if (!json_is_object(choice) || !response_tools_choice(choice, name, r))
		return;
	json_put(o, "tool_choice",
	         json_pack("{s:s, s:{s:o}}", "type", "function", "function", "name", json_text(name, strlen(name))));
}

/* ---- all of it */

/* Log probabilities are told nowhere in an answer. */
static bool includes_known(const json_t *body, struct refusal *r)
{
	json_t *list = field_array(body, "include", r), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(one);
		if (name && strstr(name, "logprobs"))
			return refuse(r, 400, "include", "include has %.60s, which is not supported", name);
	}
	return r->status == 0;
}

/* Fields that chat completions have by another name or form, or that mean nothing there. */
static void drop_fields(json_t *o)
{
	static const char *const names[] = {
		"input",        "instructions",   "text",  "max_output_tokens",    "n",         "logprobs",
		"top_logprobs", "stream_options", "store", "previous_response_id", "truncation"
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		json_object_del(o, names[i]);
}

json_t *responses_to_chat(const json_t *body, const json_t *items, struct refusal *r)
{
	json_t *o = json_copied(body, false), *messages = json_array();
	json_t *text = field_object(body, "text", r), *format = text ? field_value(text, "format") : NULL;
	json_t *max = field_value(body, "max_output_tokens"), *tools = field_array(body, "tools", r);
	json_t *reasoning = field_object(body, "reasoning", r), *effort = field_value(reasoning, "effort");
	int64_t length = 0;

	if (format && !json_is_object(format))
		refuse(r, 400, "text", "text.format is %s, expected an object", json_kind(format));
	if (!o || !messages)
		refuse(r, 503, NULL, "There is no memory for this request.");
	if (r->status == 0 && includes_known(body, r) &&
	    field_integer(body, "max_output_tokens", -1, INT32_MAX, &length, r) &&
	    read_input(messages, body, items, r)) {
		drop_fields(o);
		json_put(o, "messages", json_incref(messages));
		if (max)
			json_put(o, "max_tokens", json_incref(max));
		if (effort)
			json_put(o, "reasoning_effort", json_incref(effort));
		if (format)
			json_put(o, "response_format", json_incref(format));
		if (tools) {
			json_t *list = response_tools_functions(body, NULL, r);
			if (json_array_size(list) == 0)
				json_object_del(o, "tools");
			else
				json_put(o, "tools", json_incref(list));
			json_decref(list);
		}
		set_choice(o, field_value(body, "tool_choice"), r);
		talk_normalise(o, "input", r);
	}
	json_decref(messages);
	if (r->status == 0)
		return o;
	json_decref(o);
	return NULL;
}

bool responses_own_names(const json_t *given, struct refusal *r)
{
	static const char *const names[][2] = { { "response_format", "text.format" },
		                                { "reasoning_effort", "reasoning.effort" },
		                                { "max_tokens", "max_output_tokens" },
		                                { "messages", "input" } };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!field_value(given, names[i][0]))
			refusal_rename(r, names[i][0], names[i][1]);
	return false;
}

bool responses_read_room(const json_t *body, const struct served *m, size_t *room, struct refusal *r)
{
	const int64_t max = batcher_context(m->batcher);
	int64_t n = 0;
	const char *how = NULL;

	*room = 0;
	if (!field_text(body, "truncation", &how, r) || !how || strcmp(how, "disabled") == 0)
		return r->status == 0;
	if (strcmp(how, "auto") != 0)
		return refuse(r, 400, "truncation", "truncation is \"%.40s\", expected \"auto\" or \"disabled\"", how);
	if (!field_integer(body, "n_ctx", 0, INT32_MAX, &n, r) || !field_integer(body, "num_ctx", 0, INT32_MAX, &n, r))
		return false;
	*room = (size_t)(n && n < max ? n : max);
	return true;
}
