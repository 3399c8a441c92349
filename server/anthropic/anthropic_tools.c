/* server/anthropic/anthropic_tools.c - the tools of Anthropic's API that have a type instead of a schema. */
#include "server/anthropic/anthropic_tools.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/request/fields.h"
#include "server/request/tool_notes.h"

#define TEXT "{\"type\":\"string\"}"
#define WHOLE "{\"type\":\"integer\"}"
#define PAIR "{\"type\":\"array\",\"items\":" WHOLE ",\"minItems\":2,\"maxItems\":2}"
#define ENUM(values) "{\"type\":\"string\",\"enum\":[" values "]}"
#define OBJECT(required, properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
	"],\"additionalProperties\":false}"

#define EDITS "\"view\",\"create\",\"str_replace\",\"insert\""
#define EDITED \
	"\"path\":" TEXT ",\"file_text\":" TEXT ",\"old_str\":" TEXT ",\"new_str\":" TEXT ",\"insert_line\":" WHOLE
#define VIEWED "\"view_range\":" PAIR
#define POINTS \
	"\"key\",\"type\",\"mouse_move\",\"left_click\",\"left_click_drag\",\"right_click\",\"middle_click\"," \
	"\"double_click\",\"screenshot\",\"cursor_position\""
#define MORE_POINTS POINTS ",\"left_mouse_down\",\"left_mouse_up\",\"scroll\",\"hold_key\",\"wait\",\"triple_click\""
#define POINTED "\"coordinate\":" PAIR ",\"text\":" TEXT
#define MORE_POINTED \
	POINTED ",\"start_coordinate\":" PAIR ",\"scroll_direction\":" ENUM( \
		"\"up\",\"down\",\"left\",\"right\"") ",\"scroll_amount\":" WHOLE \
						      ",\"duration\":{\"type\":\"number\"}"

static const char shell_says[] =
	"Runs a command in a shell on the user's machine, which stays open from one call to the next, and returns "
	"what it prints. With restart the shell begins anew.";
static const char editor_says[] =
	"Looks at files of the user's machine and changes them. view shows a file, from one line to another with "
	"view_range (-1: to its end), or what a folder holds. create writes a new file with file_text. str_replace "
	"puts new_str in the place of old_str, which must stand in the file exactly once. insert puts a text behind "
	"the line insert_line (0: at the beginning).";
static const char memory_says[] =
	"Notes that stay from one conversation to the next, in files below /memories. view shows a file or what a "
	"folder holds; create writes a file with file_text; str_replace puts new_str in the place of old_str; insert "
	"puts insert_text behind the line insert_line; delete removes path; rename moves old_path to new_path.";
static const char screen_says[] =
	"Uses the screen, the keyboard and the mouse of the user's machine. Places are [x, y] in points from the "
	"upper left corner. screenshot shows the screen.";

/* From a date on, which stands behind the type's name; later rows win. */
static const struct typed {
	const char *type;
	long from;
	const char *name, *says, *schema;
} typed[] = {
	{ "bash_", 20241022, "bash", shell_says,
	  OBJECT("", "\"command\":" TEXT ",\"restart\":{\"type\":\"boolean\"}") },
	{ "text_editor_", 20241022, "str_replace_editor", editor_says,
	  OBJECT("\"command\",\"path\"", "\"command\":" ENUM(EDITS ",\"undo_edit\"") "," EDITED "," VIEWED) },
	{ "text_editor_", 20250429, "str_replace_based_edit_tool", editor_says,
	  OBJECT("\"command\",\"path\"", "\"command\":" ENUM(EDITS) "," EDITED ",\"insert_text\":" TEXT "," VIEWED) },
	{ "memory_", 20250818, "memory", memory_says,
	  OBJECT("\"command\"", "\"command\":" ENUM(EDITS ",\"delete\",\"rename\"") "," EDITED ",\"insert_text\":" TEXT
	                                                                            ",\"old_path\":" TEXT
	                                                                            ",\"new_path\":" TEXT "," VIEWED) },
	{ "computer_", 20241022, "computer", screen_says,
	  OBJECT("\"action\"", "\"action\":" ENUM(POINTS) "," POINTED) },
	{ "computer_", 20250124, "computer", screen_says,
	  OBJECT("\"action\"", "\"action\":" ENUM(MORE_POINTS) "," MORE_POINTED) },
	{ "computer_", 20251124, "computer", screen_says,
	  OBJECT("\"action\"",
	         "\"action\":" ENUM(MORE_POINTS
	                            ",\"zoom\"") "," MORE_POINTED ",\"region\":{\"type\":\"array\",\"items\":" WHOLE
	                                         ",\"minItems\":4,\"maxItems\":4}") },
};

/* The date behind a name that the type begins with; 0: it is another type. */
static long date_behind(const char *type, const char *name)
{
	const size_t n = strlen(name);

	return strncmp(type, name, n) == 0 && strlen(type + n) == 8 && strspn(type + n, "0123456789") == 8
	               ? strtol(type + n, NULL, 10)
	               : 0;
}

static const struct typed *typed_of(const char *type)
{
	const struct typed *found = NULL;

	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		const long date = date_behind(type, typed[i].type);
		if (date && date >= typed[i].from)
			found = &typed[i];
	}
	return found;
}

static bool begins_with(const char *type, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(type, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Run by Anthropic's own servers. */
static bool is_hosted(const char *type)
{
	static const char *const names[] = { "web_search_",  "web_fetch_",  "code_execution_",
		                             "tool_search_", "mcp_toolset", "advisor_" };

	return begins_with(type, names, sizeof names / sizeof *names);
}

bool anthropic_block_is_hosted(const char *type)
{
	static const char *const names[] = {
		"server_tool_use",
		"web_search_tool_result",
		"web_fetch_tool_result",
		"code_execution_tool_result",
		"bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result",
		"tool_search_tool_result",
		"advisor_tool_result",
		"mcp_tool_use",
		"mcp_tool_result",
		"compaction"
	};

	return begins_with(type, names, sizeof names / sizeof *names);
}

static void leave_out(json_t *warnings, size_t number, const char *type)
{
	char text[160];

	snprintf(text, sizeof text, "tools[%zu] of type %.60s was left out: nothing here runs it", number, type);
	if (warnings)
		json_add(warnings, json_text(text, strlen(text)));
}

static json_t *wrap(const json_t *tool, size_t number, const json_t *name, json_t *description, json_t *schema)
{
	json_t *o = json_object(), *function = json_object(), *strict = field_value(tool, "strict");
	char path[80];

	json_put(function, "name", json_incref((json_t *)(uintptr_t)name));
	if (description)
		json_put(function, "description", description);
	json_put(function, "parameters", schema);
	if (strict)
		json_put(function, "strict", json_incref(strict));
	json_put(o, "type", json_string("function"));
	json_put(o, "function", function);
	snprintf(path, sizeof path, field_value(tool, "input_schema") ? "tools[%zu].input_schema" : "tools[%zu]",
	         number);
	tool_note(o, path, false);
	return o;
}

/* How large the screen is belongs to what a model must know of it. */
static json_t *describe(const struct typed *t, const json_t *tool, size_t number, struct refusal *r)
{
	int64_t width = 0, height = 0;

	if (!field_integer(tool, "display_width_px", 1, INT32_MAX, &width, r) ||
	    !field_integer(tool, "display_height_px", 1, INT32_MAX, &height, r)) {
		char outer[40];
		snprintf(outer, sizeof outer, "tools[%zu]", number);
		refuse_within(r, outer);
		return NULL;
	}
	if (t->says != screen_says || !width || !height)
		return json_string(t->says);
	return json_sprintf("%s The screen has %lld by %lld points.", t->says, (long long)width, (long long)height);
}

static void add_tool(json_t *list, const json_t *tool, size_t number, json_t *warnings, struct refusal *r)
{
	json_t *schema = field_value(tool, "input_schema"), *description = field_value(tool, "description"),
	       *name = field_value(tool, "name");
	const char *type = json_string_value(field_value(tool, "type"));
	const struct typed *t = type && !schema ? typed_of(type) : NULL;

	if (!json_is_object(tool)) {
		refuse(r, 400, "tools", "tools[%zu] is %s, expected an object", number, json_kind(tool));
	} else if (t) {
		json_t *own = name ? json_incref(name) : json_string(t->name), *says = describe(t, tool, number, r);
		if (!json_is_string(own) || strcmp(json_string_value(own), t->name) != 0)
			refuse(r, 400, "tools", "tools[%zu] is of type %.60s, whose name is %s", number, type, t->name);
		json_add(list, wrap(tool, number, own, says,
		                    json_read(t->schema, strlen(t->schema), UINT64_MAX, t->name, NULL)));
		json_decref(own);
	} else if (type && !schema && is_hosted(type)) {
		leave_out(warnings, number, type);
	} else if (!schema) {
		refuse(r, 400, "tools",
		       "tools[%zu] is of type %.60s and has no input_schema; such types are bash, text_editor, memory "
		       "and computer, each with its date",
		       number, type ? type : "none");
	} else if (!json_is_string(name)) {
		refuse(r, 400, "tools", "tools[%zu] has no text as its name", number);
	} else {
		json_add(list,
		         wrap(tool, number, name, description ? json_incref(description) : NULL, json_incref(schema)));
	}
}

json_t *anthropic_tools(const json_t *tools, json_t *warnings, struct refusal *r)
{
	json_t *list = json_array(), *tool;
	size_t i;

	json_array_foreach(tools, i, tool) if (r->status == 0) add_tool(list, tool, i, warnings, r);
	if (r->status == 0)
		return list;
	json_decref(list);
	return NULL;
}
