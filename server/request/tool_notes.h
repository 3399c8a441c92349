/* server/request/tool_notes.h - what is noted beside a tool that a request's became.
 *
 * Owns: which field of the request the form of its calls stands in, for sentences about it, and whether its calls have
 * one text. The notes stand in the tool, and no model is shown them.
 */
#ifndef SERVER_TOOL_NOTES_H
#define SERVER_TOOL_NOTES_H

#include <jansson.h>
#include <stdbool.h>

/* What a client wrote there itself is no note. */
void tool_notes_remove(json_t *body);
/* path: of the field, such as "tools[2].input_schema". */
void tool_note(json_t *tool, const char *path, bool custom);
/* Whether calls of it are held to its grammar where the model decides that it calls. */
void tool_note_held(json_t *tool, bool held);
enum tool_held { TOOL_NOT_NOTED, TOOL_HELD, TOOL_NOT_HELD };
enum tool_held tool_is_held(const json_t *tool);
/* NULL: nothing was noted. */
const char *tool_path(const json_t *tool);
/* Whether a function of that name has one text as its argument. tools: NULL or an array. */
bool tool_is_custom(const json_t *tools, const char *name);
/* The text of such a call, whose arguments are n bytes; of one that was cut, its beginning. */
json_t *tool_input(const char *arguments, size_t n, bool whole);

/* The tools as a model is shown them: without notes, and without grammars in Lark's form, which their descriptions
 * have. A new reference; NULL: there are none, or no memory. */
json_t *tools_shown(json_t *tools);

#endif
