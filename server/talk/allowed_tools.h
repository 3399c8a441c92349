/* server/talk/allowed_tools.h - tool_choice of type allowed_tools: which of a request's tools may be called.
 *
 * Owns: both of OpenAI's forms: {"type", "mode", "tools"} of responses, and of chat completions, where mode and tools
 * stand in "allowed_tools".
 */
#ifndef SERVER_ALLOWED_TOOLS_H
#define SERVER_ALLOWED_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

#include "server/request/refusal.h"

/* Whether a tool_choice is of that type; what follows is about one that is. */
bool allowed_tools_is(const json_t *choice);
/* That it has a mode, and an array of tools that have names. False: refused. */
bool allowed_tools_check(const json_t *choice, struct refusal *r);
/* Whether a call is required. */
bool allowed_tools_required(const json_t *choice);
json_t *allowed_tools_mode(const json_t *choice); /* NULL: it has none */
/* Its tools, and the name of one of them; NULL: it has none. */
const json_t *allowed_tools_list(const json_t *choice);
const char *allowed_tools_name(const json_t *tool);
bool allowed_tools_have(const json_t *choice, const char *name);

#endif
