/* server/tool_values.h - arguments of calls that are not written as JSON.
 *
 * Owns: reading them. A value that is none of its language is a text as it stands.
 */
#ifndef SERVER_TOOL_VALUES_H
#define SERVER_TOOL_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls as Python writes them, f(x=1, y='a'), one behind another with commas or lines between them, also in brackets or
 * behind three backquotes. One more from *at on: its name and arguments are the caller's. False: there is none. */
bool tool_python_call(const char *p, size_t n, size_t *at, char **name, json_t **arguments);
/* {key:<|"|>text<|"|>,other:[1,true]} as Gemma 4 writes it; NULL: it is none. */
json_t *tool_braces(const char *p, size_t n);

#endif
