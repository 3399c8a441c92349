/* server/responses_request.c - requests in the form of OpenAI's responses, brought to the one of chat completions.
 *
 * Nothing is kept between requests: what refers to an earlier one is refused, and the conversation stands in "input".
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "loaders/json_read.h"
#include "loaders/json_write.h"
#include "server/fields.h"
#include "server/responses.h"
#include "server/talk.h"

static void add_message(json_t *messages, const char *role, json_t *content)
{
	json_t *o = json_object();

	json_put(o, "role", json_string(role));
	json_put(o, "content", content);
	json_add(messages, o);
}

/* ---- items of the conversation */

static bool has_texts(const json_t *item, const char *one, const char *other, struct refusal *r)
{
	const char *missing = !json_is_string(json_object_get(item, one))     ? one
	                      : !json_is_string(json_object_get(item, other)) ? other
	                                                                      : NULL;

	return !missing || refuse(r, 400, "input", "input has a %s without a text as its %s",
	                          json_string_value(json_object_get(item, "type")), missing);
}

/* A call belongs to the message of the assistant before it, where there is one. */
static bool add_call(json_t *messages, const json_t *item, struct refusal *r)
{
	json_t *last = json_array_get(messages, json_array_size(messages) - 1), *call = json_object();
	const char *role = json_string_value(json_object_get(last, "role"));
	json_t *function = json_object();

	if (!role || strcmp(role, "assistant") != 0) {
		add_message(messages, "assistant", json_null());
		last = json_array_get(messages, json_array_size(messages) - 1);
	}
	if (last && !json_object_get(last, "tool_calls"))
		json_put(last, "tool_calls", json_array());
	if (has_texts(item, "call_id", "name", r) && has_texts(item, "call_id", "arguments", r)) {
		json_put(function, "name", json_incref(json_object_get(item, "name")));
		json_put(function, "arguments", json_incref(json_object_get(item, "arguments")));
		json_put(call, "id", json_incref(json_object_get(item, "call_id")));
		json_put(call, "type", json_string("function"));
		json_put(call, "function", json_incref(function));
		json_add(json_object_get(last, "tool_calls"), json_incref(call));
	}
	json_decref(function);
	json_decref(call);
	return r->status == 0;
}

static bool add_result(json_t *messages, const json_t *item, struct refusal *r)
{
	json_t *output = json_object_get(item, "output"), *o = json_object();

	if (has_texts(item, "call_id", "call_id", r)) {
		json_put(o, "role", json_string("tool"));
		json_put(o, "tool_call_id", json_incref(json_object_get(item, "call_id")));
		json_put(o, "content", output && !json_is_null(output) ? json_incref(output) : json_string(""));
		json_add(messages, json_incref(o));
	}
	json_decref(o);
	return r->status == 0;
}

static bool add_item(json_t *messages, const json_t *item, size_t number, struct refusal *r)
{
	const char *type = json_string_value(json_object_get(item, "type"));
	const char *role = json_string_value(json_object_get(item, "role"));
	json_t *content = json_object_get(item, "content");

	if (type && strcmp(type, "function_call") == 0)
		return add_call(messages, item, r);
	if (type && strcmp(type, "function_call_output") == 0)
		return add_result(messages, item, r);
	if (type && strcmp(type, "reasoning") == 0)
		return true;
	if (type && strcmp(type, "message") != 0)
		return refuse(r, 400, "input", "input has an item of type %.60s, which is not supported", type);
	if (!role || (!json_is_string(content) && !json_is_array(content)))
		return refuse(r, 400, "input", "item %zu of input has no role, or no content", number);
	add_message(messages, role, json_incref(content));
	return true;
}

static bool read_input(json_t *messages, const json_t *body, struct refusal *r)
{
	const json_t *input = field_value(body, "input"), *item;
	const char *instructions = NULL;
	size_t i;

	if (!field_text(body, "instructions", &instructions, r))
		return false;
	if (instructions && *instructions)
		add_message(messages, "system", json_incref(field_value(body, "instructions")));
	if (!json_is_string(input) && json_array_size(input) == 0)
		return refuse(r, 400, "input", "input is missing or empty, or neither a text nor an array");
	if (json_is_string(input))
		add_message(messages, "user", json_incref(field_value(body, "input")));
	json_array_foreach(input, i, item) if (!add_item(messages, item, i, r)) return false;
	return true;
}

/* ---- tools */

/* A function, or NULL: refused. */
static json_t *tool_of(const json_t *tool, size_t number, struct refusal *r)
{
	static const char *const same[] = { "name", "description", "parameters", "strict" };
	const char *type = json_string_value(json_object_get(tool, "type"));
	json_t *function, *o, *v;

	if (!type || strcmp(type, "function") != 0) {
		talk_refuse_tool(number, type ? type : "none", r);
		return NULL;
	}
	if (!json_is_string(json_object_get(tool, "name"))) {
		refuse(r, 400, "tools", "tool %zu has no text as its name", number);
		return NULL;
	}
	function = json_object();
	for (size_t k = 0; k < sizeof same / sizeof *same; k++)
		if ((v = field_value(tool, same[k])))
			json_put(function, same[k], json_incref(v));
	o = json_object();
	json_put(o, "type", json_string("function"));
	json_put(o, "function", function);
	return o;
}

static bool has_function(const json_t *tools)
{
	json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		const char *type = json_string_value(json_object_get(tool, "type"));
		if (type && strcmp(type, "function") == 0)
			return true;
	}
	return false;
}

static bool is_left_out(const json_t *tool, const json_t *tools)
{
	const char *type = json_string_value(json_object_get(tool, "type"));

	return type && talk_may_leave_out(type) && has_function(tools);
}

static json_t *tools_of(const json_t *tools, struct refusal *r)
{
	json_t *list = json_array(), *tool, *one;
	size_t i;

	json_array_foreach(tools, i, tool) if (!is_left_out(tool, tools) && (one = tool_of(tool, i, r)))
		json_add(list, one);
	return list;
}

json_t *responses_warnings(const json_t *body)
{
	json_t *list = json_array(), *tools = field_value(body, "tools"), *tool;
	char text[160];
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		if (!is_left_out(tool, tools))
			continue;
		snprintf(text, sizeof text, "tools[%zu] of type %.60s was left out: nothing here runs it", i,
		         json_string_value(json_object_get(tool, "type")));
		json_add(list, json_text(text, strlen(text)));
	}
	return list;
}

static void set_choice(json_t *o, const json_t *choice, struct refusal *r)
{
	const char *type = json_string_value(json_object_get(choice, "type"));
	json_t *name = json_object_get(choice, "name"), *function;

	if (!json_is_object(choice))
		return;
	if (!type || strcmp(type, "function") != 0 || !json_is_string(name)) {
		refuse(r, 400, "tool_choice", "tool_choice is of type %.60s, expected function, with a name",
		       type ? type : "none");
		return;
	}
	function = json_object();
	json_put(function, "name", json_incref(name));
	json_t *made = json_object();
	json_put(made, "type", json_string("function"));
	json_put(made, "function", function);
	json_put(o, "tool_choice", made);
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
	static const char *const names[] = { "input", "instructions", "text",         "max_output_tokens",
		                             "n",     "logprobs",     "top_logprobs", "stream_options" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		json_object_del(o, names[i]);
}

json_t *responses_to_chat(const json_t *body, struct refusal *r)
{
	json_t *o = json_copied(body, false), *messages = json_array();
	json_t *text = field_object(body, "text", r), *format = text ? field_value(text, "format") : NULL;
	json_t *most = field_value(body, "max_output_tokens"), *tools = field_array(body, "tools", r);
	json_t *reasoning = field_object(body, "reasoning", r), *effort = field_value(reasoning, "effort");
	int64_t length = 0;

	if (format && !json_is_object(format))
		refuse(r, 400, "text", "text.format is %s, expected an object", json_kind(format));
	if (!o || !messages)
		refuse(r, 503, NULL, "There is no memory for this request.");
	if (r->status == 0 && includes_known(body, r) &&
	    field_integer(body, "max_output_tokens", -1, INT32_MAX, &length, r) && read_input(messages, body, r)) {
		drop_fields(o);
		json_put(o, "messages", json_incref(messages));
		if (most)
			json_put(o, "max_tokens", json_incref(most));
		if (effort)
			json_put(o, "reasoning_effort", json_incref(effort));
		if (format)
			json_put(o, "response_format", json_incref(format));
		if (tools) {
			json_t *list = tools_of(tools, r);
			if (json_array_size(list) == 0)
				json_object_del(o, "tools");
			else
				json_put(o, "tools", json_incref(list));
			json_decref(list);
		}
		set_choice(o, field_value(body, "tool_choice"), r);
		talk_bring_to_form(o, "input", r);
	}
	json_decref(messages);
	if (r->status == 0)
		return o;
	json_decref(o);
	return NULL;
}
