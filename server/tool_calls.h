/* server/tool_calls.h - calls of tools in what a model says.
 *
 * Owns: the forms in which model families write calls, which of them a template teaches, and finding them in a text
 * that comes in pieces. What may become a call is held back; what turns out to be none is text as it was.
 *
 *   TOOLS_TAGGED   <tool_call>{"name": "f", "arguments": {...}}</tool_call>, one after the other (Hermes, Qwen)
 *   TOOLS_ELEMENTS <tool_call><function=f><parameter=x>1</parameter></function></tool_call> (Qwen coder)
 *   TOOLS_BARE     {"name": "f", "parameters": {...}} as the whole answer (Llama 3)
 */
#ifndef SERVER_TOOL_CALLS_H
#define SERVER_TOOL_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/bytes.h"

enum tools_form { TOOLS_NONE, TOOLS_TAGGED, TOOLS_ELEMENTS, TOOLS_BARE };

struct tool_call {
	char *name, *arguments; /* arguments: JSON text of an object */
};

struct tool_calls {
	enum tools_form form;
	struct bytes held; /* what may become a call */
	bool inside;       /* TAGGED, ELEMENTS: behind an opening mark; BARE: the text began with a brace */
	bool begun;        /* something that is not space was seen */
	struct bytes text; /* what is no call, of the last piece */
	struct tool_call *call;
	size_t n, capacity; /* of the whole answer so far */
	bool lost;          /* memory ran out */
};

/* What a template's text teaches; TOOLS_TAGGED where it teaches nothing that is known. */
enum tools_form tools_form_of(const char *template_text);
/* The next piece; NULL is the end. Afterwards t->text holds what is no call, and calls that are complete are in the
 * list. */
void tool_calls_take(struct tool_calls *t, const char *p, size_t n);
void tool_calls_free(struct tool_calls *t);

#endif
