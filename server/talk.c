/* server/talk.c - what requests with a conversation say in several ways. */
#include "server/talk.h"

#include <string.h>

#include "loaders/json_read.h"
#include "server/fields.h"
#include "server/json_write.h"

bool talk_refuse_tool(size_t number, const char *type, struct refusal *r)
{
	return refuse(r, 400, "tools",
	              "tools[%zu] is of type %.60s, and only functions are supported: nothing here runs other tools",
	              number, type);
}

bool talk_may_leave_out(const char *type)
{
	return strncmp(type, "web_search", 10) == 0 || strcmp(type, "image_generation") == 0;
}

/* The model is told of functions alone; what it never hears of it cannot call. */
static bool has_functions(const json_t *body, struct refusal *r)
{
	json_t *tools = field_array(body, "tools", r), *tool;
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
	}
	return r->status == 0;
}

/* The most general one first: what comes later wins. */
static bool read_thinking(const json_t *body, const json_t *variables, bool *told, bool *thinks, struct refusal *r)
{
	json_t *thinking = field_object(body, "thinking", r);
	const char *type = NULL;

	if (r->status || (thinking && !field_text(thinking, "type", &type, r)))
		return false;
	if (thinking && !type)
		return refuse(r, 400, "thinking", "thinking has no type, such as enabled or disabled");
	*told = type || field_value(body, "enable_thinking");
	*thinks = type && strcmp(type, "disabled") != 0;
	*told = *told && !json_object_get(variables, "enable_thinking");
	return field_flag(body, "enable_thinking", thinks, r);
}

bool talk_bring_to_form(json_t *body, struct refusal *r)
{
	json_t *variables = field_object(body, "chat_template_kwargs", r);
	bool told = false, thinks = false;

	if (r->status || !has_functions(body, r) || !read_thinking(body, variables, &told, &thinks, r))
		return false;
	if (!told)
		return true;
	variables = variables ? json_copied(variables, false) : json_object();
	json_put(variables, "enable_thinking", json_boolean(thinks));
	json_put(body, "chat_template_kwargs", variables);
	return true;
}

bool talk_read_calls(struct task *t, const json_t *body, struct refusal *r)
{
	bool several = true;

	if (!field_flag(body, "parallel_tool_calls", &several, r))
		return false;
	t->one_call = !several;
	return true;
}
