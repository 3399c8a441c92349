/* server/tool_elements.h - calls of tools that are written as elements.
 *
 * Owns: reading them, and which of their values are texts. Elements do not say that: by the schema of a call,
 * {"name": NAME, "arguments": {...}}, a value is a text where nothing else is right; else it is JSON where it can be
 * read as such, as without a schema. call.h writes by the same rule.
 */
#ifndef SERVER_TOOL_ELEMENTS_H
#define SERVER_TOOL_ELEMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/tool_forms.h"

/* The arguments, an object, and *name, malloc'ed: both the caller's. schema: JSON text, or NULL. NULL: it is no call.
 */
json_t *tool_elements(enum tools_form form, const char *p, size_t n, const char *schema, char **name);

#endif
