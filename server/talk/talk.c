/* server/talk/talk.c - what requests with a conversation say in several ways. */
#include "server/talk/talk.h"

#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/talk/custom_tools.h"
#include "server/request/fields.h"
#include "server/talk/old_functions.h"
#include "server/request/tool_notes.h"

bool talk_refuse_tool(size_t number, const char *type, struct refusal *r)
{
	return refuse(r, 400, "tools",
	              "tools[%zu] is of type %.60s, and only functions are supported: nothing here runs other tools",
	              number, type);
}

/* Without a name it cannot be called. */
static bool has_name(const json_t *tool, size_t number, struct refusal *r)
{
	const json_t *function = field_value(tool, "function"), *name = field_value(function, "name");

	if (!json_is_object(function))
		return refuse(r, 400, "tools", "tools[%zu].function is %s, expected an object", number,
		              json_kind(function));
	return json_string_length(name) > 0 ||
	       refuse(r, 400, "tools", "tools[%zu] has a function whose name is %s, expected a text that is not empty",
	              number, json_is_string(name) ? "empty" : json_kind(name));
}

/* The model is told of functions alone; what it never hears of it cannot call. What came as a function is noted. */
static bool has_functions(const json_t *body, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool;
	char path[80];
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		const json_t *type = field_value(tool, "type");
		if (!json_is_object(tool))
			return refuse(r, 400, "tools", "tools[%zu] is %s, expected an object", i, json_kind(tool));
		if (type && !json_is_string(type))
			return refuse(r, 400, "tools", "tools[%zu].type is %s, expected a text", i, json_kind(type));
		if (type && strcmp(json_string_value(type), "function") != 0)
			return talk_refuse_tool(i, json_string_value(type), r);
		if (!has_name(tool, i, r))
			return false;
		if (!tool_path(tool)) {
			snprintf(path, sizeof path, "tools[%zu].function.parameters", i);
			tool_note(tool, path, false);
		}
	}
	return r->status == 0;
}

/* The most general one first: what comes later wins. */
static bool read_thinking(const json_t *body, const json_t *variables, bool *told, bool *thinks, struct refusal *r)
{
	json_t *thinking = field_object(body, "thinking", r);
	const char *type = NULL;

	if (r->status)
		return false;
	if (thinking && !field_text(thinking, "type", &type, r))
		return refuse_within(r, "thinking");
	if (thinking && !type)
		return refuse(r, 400, "thinking", "thinking has no type, such as enabled or disabled");
	*told = type || field_value(body, "enable_thinking");
	*thinks = type && strcmp(type, "disabled") != 0;
	*told = *told && !json_object_get(variables, "enable_thinking");
	return field_flag(body, "enable_thinking", thinks, r);
}

/* The code of an escape \uXXXX at p, of which 4 digits follow; -1: it is none. */
static int escaped(const char *p)
{
	int code = 0;

	if (p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		const char c = p[i];
		const int digit = c >= '0' && c <= '9'   ? c - '0'
		                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
		                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                         : -1;
		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

/* Whether a JSON text, or what will be made one, spells half of a surrogate pair. */
static bool spells_half(const char *p)
{
	while ((p = strchr(p, '\\'))) {
		const int code = escaped(p);
		if (code >= 0xd800 && code <= 0xdbff) {
			const int next = escaped(p + 6);
			if (next < 0xdc00 || next > 0xdfff)
				return true;
			p += 12;
		} else if (code >= 0xdc00 && code <= 0xdfff) {
			return true;
		} else {
			p += p[1] ? 2 : 1;
		}
	}
	return false;
}

/* Several passes over a history give it the form that a template takes. */
enum { MESSAGES_MAX = 10000 };

/* Messages and calls: not too many, and objects. */
static bool are_calls(const json_t *message, size_t number, size_t *count, const char *conversation, struct refusal *r)
{
	json_t *calls = field_value(message, "tool_calls"), *call;
	size_t k;

	*count += 1 + json_array_size(calls);
	if (*count > MESSAGES_MAX)
		return refuse(r, 400, conversation, "%s has more than %d messages and calls of tools", conversation,
		              MESSAGES_MAX);
	json_array_foreach(calls, k, call)
	{
		if (!json_is_object(call))
			return refuse(r, 400, conversation, "%s[%zu].tool_calls[%zu] is %s, expected an object",
			              conversation, number, k, json_kind(call));
	}
	return true;
}

bool talk_is_short(const json_t *messages, const char *conversation, struct refusal *r)
{
	size_t i, count = 0;
	json_t *message;

	json_array_foreach(messages, i, message)
	{
		if (!are_calls(message, i, &count, conversation, r))
			return false;
	}
	return true;
}

/* Arguments are JSON texts within a text, and what they spell becomes values of the template. */
static bool has_whole_arguments(const json_t *body, const char *conversation, struct refusal *r)
{
	json_t *message, *call;
	size_t i, k;

	json_array_foreach(json_object_get(body, "messages"), i, message)
	{
		json_array_foreach(json_object_get(message, "tool_calls"), k, call)
		{
			const json_t *function = json_object_get(call, "function");
			const char *text = json_string_value(json_object_get(function, "arguments"));
			if (text && spells_half(text))
				return refuse(r, 400, conversation,
				              "%s has a call whose arguments spell half of a surrogate pair, expected "
				              "text that is whole",
				              conversation);
		}
	}
	return true;
}

/* {"effort": ...}, as responses and some routers have it; a budget in it is read with the other limits (task_limits.c).
 */
static bool read_reasoning(json_t *body, struct refusal *r)
{
	json_t *reasoning = field_object(body, "reasoning", r);
	const char *effort = NULL;

	if (r->status || !reasoning || field_value(body, "reasoning_effort"))
		return r->status == 0;
	if (!field_text(reasoning, "effort", &effort, r))
		return refuse_within(r, "reasoning");
	if (effort)
		json_put(body, "reasoning_effort", json_string(effort));
	return true;
}

bool talk_normalise(json_t *body, const char *conversation, struct refusal *r)
{
	json_t *variables = field_object(body, "chat_template_kwargs", r);
	bool told = false, thinks = false;

	if (r->status || !talk_is_short(json_object_get(body, "messages"), conversation, r) ||
	    !old_functions_to_tools(body, r) || !read_reasoning(body, r) || !has_functions(body, r) ||
	    !has_whole_arguments(body, conversation, r) || !read_thinking(body, variables, &told, &thinks, r))
		return false;
	if (!told)
		return true;
	variables = variables ? json_copied(variables, false) : json_object();
	json_put(variables, "enable_thinking", json_boolean(thinks));
	json_put(body, "chat_template_kwargs", variables);
	return true;
}

bool talk_read_chat(json_t *body, json_t **warnings, struct refusal *r)
{
	*warnings = json_array();
	const bool ok = talk_is_short(json_object_get(body, "messages"), "messages", r) &&
	                custom_tools_take(body, *warnings, r) && talk_normalise(body, "messages", r);

	if (ok && json_array_size(*warnings))
		return true;
	json_decref(*warnings);
	*warnings = NULL;
	return ok;
}

bool talk_read_calls(struct task *t, const json_t *body, struct refusal *r)
{
	bool several = true;

	if (!field_flag(body, "parallel_tool_calls", &several, r))
		return false;
	t->one_call = !several;
	return true;
}
