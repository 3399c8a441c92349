/* server/anthropic/anthropic_request.c - requests in the form of Anthropic's API, converted to the one that the rest of
 * the server reads. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "server/anthropic/anthropic.h"
#include "server/anthropic/anthropic_tools.h"
#include "server/request/fields.h"
#include "server/talk/talk.h"

/* Clients put a line that changes with every request before all else; with it no prompt would begin like another. */
static bool is_billing(const char *text) { return strncmp(text, "x-anthropic-billing-header", 26) == 0; }

static void add_message(json_t *messages, const char *role, json_t *content)
{
	json_t *o = json_object();

	json_put(o, "role", json_string(role));
	json_put(o, "content", content);
	json_add(messages, o);
}

static void add_system(json_t *messages, const json_t *system)
{
	json_t *block, *parts = json_array();
	size_t i;

	if (json_is_string(system))
		json_add(parts, json_pack("{s:s, s:O}", "type", "text", "text", system));
	json_array_foreach(system, i, block)
	{
		const char *text = json_string_value(json_object_get(block, "text"));
		if (!text || !is_billing(text))
			json_add(parts, json_incref(block));
	}
	if (json_array_size(parts))
		add_message(messages, "system", parts);
	else
		json_decref(parts);
}

static bool has_texts(const json_t *block, const char *one, const char *other, struct refusal *r)
{
	const char *missing = !json_is_string(json_object_get(block, one))     ? one
	                      : !json_is_string(json_object_get(block, other)) ? other
	                                                                       : NULL;

	return !missing || refuse(r, 400, "messages", "a block of type %s has no text as its %s",
	                          json_string_value(json_object_get(block, "type")), missing);
}

/* The result of a call: a text or blocks of text. */
static bool add_result(json_t *messages, const json_t *block, struct refusal *r)
{
	json_t *content = json_object_get(block, "content");

	if (!has_texts(block, "tool_use_id", "tool_use_id", r))
		return false;
	json_t *o = json_object();

	json_put(o, "role", json_string("tool"));
	json_put(o, "tool_call_id", json_incref(json_object_get(block, "tool_use_id")));
	json_put(o, "content", content && !json_is_null(content) ? json_incref(content) : json_string(""));
	json_add(messages, o);
	return true;
}

static bool add_call(json_t *calls, const json_t *block, struct refusal *r)
{
	if (!has_texts(block, "id", "name", r))
		return false;
	json_t *o = json_object(), *function = json_object(), *input = json_object_get(block, "input");

	json_put(o, "id", json_incref(json_object_get(block, "id")));
	json_put(o, "type", json_string("function"));
	json_put(function, "name", json_incref(json_object_get(block, "name")));
	json_put(function, "arguments", input ? json_incref(input) : json_object());
	json_put(o, "function", function);
	json_add(calls, o);
	return true;
}

/* A message of several blocks: results come first as messages of their own, then texts, with the calls beside them. */
static bool add_blocks(json_t *messages, const char *role, const json_t *blocks, struct refusal *r)
{
	json_t *parts = json_array(), *calls = json_array(), *block;
	struct bytes thoughts = { 0 };
	bool ok = true;
	size_t i;

	json_array_foreach(blocks, i, block)
	{
		const char *type = json_string_value(json_object_get(block, "type"));
		if (type && (strcmp(type, "text") == 0 || strcmp(type, "image") == 0))
			json_add(parts, json_incref(block));
		else if (type && strcmp(type, "tool_result") == 0)
			ok = add_result(messages, block, r) && ok;
		else if (type && strcmp(type, "tool_use") == 0)
			ok = add_call(calls, block, r) && ok;
		else if (type && strcmp(type, "thinking") == 0 && json_is_string(json_object_get(block, type)))
			bytes_text(&thoughts, json_string_value(json_object_get(block, type)));
		else if (!type || (strstr(type, "thinking") == NULL && !anthropic_block_is_hosted(type)))
			ok = refuse(r, 400, "messages", "a message has content of type %.60s, which is not supported",
			            type ? type : "none");
	}
	if (json_array_size(parts) || json_array_size(calls)) {
		add_message(messages, role, json_array_size(parts) ? json_incref(parts) : json_null());
		json_t *message = json_array_get(messages, json_array_size(messages) - 1);
		if (json_array_size(calls))
			json_put(message, "tool_calls", json_incref(calls));
		if (thoughts.n)
			json_put(message, "reasoning_content", json_text(thoughts.p, thoughts.n));
	}
	bytes_free(&thoughts);
	json_decref(parts);
	json_decref(calls);
	return ok;
}

static json_t *choice_of(const json_t *choice, struct refusal *r)
{
	const json_t *name = json_object_get(choice, "name");
	const char *type = json_string_value(json_object_get(choice, "type"));

	if (!type || strcmp(type, "auto") == 0)
		return json_string("auto");
	if (strcmp(type, "any") == 0)
		return json_string("required");
	if (strcmp(type, "tool") != 0)
		return json_string(type);
	if (!json_is_string(name))
		refuse(r, 400, "tool_choice", "tool_choice has no text as its name");
	return json_pack("{s:s, s:{s:O?}}", "type", "function", "function", "name", name);
}

/* Texts alone. */
static bool is_texts(const json_t *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v, i, one) if (!json_is_string(one)) return false;
	return json_is_array(v);
}

/* How much effort there shall be says nothing of whether the model reasons: a variable of the template alone. */
static void add_effort(json_t *o, const char *effort)
{
	json_t *given = json_object_get(o, "chat_template_kwargs");
	if (given && !json_is_object(given)) /* which is refused */
		return;
	json_t *variables = given ? json_copied(given, false) : json_object();

	if (!json_object_get(variables, "reasoning_effort"))
		json_put(variables, "reasoning_effort", json_string(effort));
	json_put(o, "chat_template_kwargs", variables);
}

/* The fields that chat completions have in another form. */
static bool take_fields(json_t *o, const json_t *body, json_t *warnings, struct refusal *r)
{
	static const char *const others[] = { "system", "stop_sequences", "tools", "tool_choice" };
	const json_t *system = field_value(body, "system"), *stops = field_value(body, "stop_sequences");
	json_t *choice = field_object(body, "tool_choice", r), *tools = field_array(body, "tools", r);
	json_t *config = field_object(body, "output_config", r);
	const char *effort = NULL;
	bool one = false;

	if (config && !field_text(config, "effort", &effort, r))
		return refuse_within(r, "output_config");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		json_object_del(o, others[i]);
	if (system && !json_is_string(system) && !json_is_array(system))
		return refuse(r, 400, "system", "system is %s, expected a text or an array of blocks",
		              json_kind(system));
	if (stops && !is_texts(stops))
		return refuse(r, 400, "stop_sequences", "stop_sequences is no array of texts");
	if (r->status)
		return false;
	if (choice && !field_flag(choice, "disable_parallel_tool_use", &one, r))
		return refuse_within(r, "tool_choice");
	if (stops)
		json_put(o, "stop", json_incref((json_t *)(uintptr_t)stops));
	if (json_array_size(tools)) {
		json_t *list = anthropic_tools(tools, warnings, r);
		if (json_array_size(list))
			json_put(o, "tools", json_incref(list));
		json_decref(list);
	}
	if (choice)
		json_put(o, "tool_choice", choice_of(choice, r));
	if (one)
		json_put(o, "parallel_tool_calls", json_false());
	if (effort)
		add_effort(o, effort);
	return r->status == 0;
}

json_t *anthropic_to_openai(const json_t *body, json_t *warnings, struct refusal *r)
{
	const json_t *given = json_object_get(body, "messages");
	json_t *o = json_copied(body, false), *messages = json_array(), *message;
	bool ok = json_is_array(given) || refuse(r, 400, "messages", "messages is no array");
	size_t i;

	ok = ok && talk_is_short(given, "messages", r);
	given = ok ? given : NULL;
	if (!o || !messages)
		ok = refuse(r, 503, NULL, "There is no memory for this request.");
	add_system(messages, json_object_get(body, "system"));
	json_array_foreach(given, i, message)
	{
		const char *role = json_string_value(json_object_get(message, "role"));
		json_t *content = json_object_get(message, "content");
		if (!role || (!json_is_string(content) && !json_is_array(content)))
			ok = refuse(r, 400, "messages", "message %zu has no role, or no content", i);
		else if (json_is_string(content))
			add_message(messages, role, json_incref(content));
		else
			ok = add_blocks(messages, role, content, r) && ok;
	}
	json_put(o, "messages", messages);
	if (ok && take_fields(o, body, warnings, r) && talk_normalise(o, "messages", r))
		return o;
	json_decref(o);
	return NULL;
}
