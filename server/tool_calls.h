/* server/tool_calls.h - calls of tools in what a model says.
 *
 * Owns: finding calls, in the form that a template teaches (tool_forms.h), in a text that comes in pieces. What may
 * become a call is held back; what turns out to be none is text as it was.
 */
#ifndef SERVER_TOOL_CALLS_H
#define SERVER_TOOL_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/bytes.h"
#include "server/tool_forms.h"

struct tool_call {
	char *name, *arguments; /* arguments: JSON text of an object */
};

struct tool_calls {
	enum tools_form form;
	const char *schemas; /* of calls (tool_elements.h); NULL: not known */
	struct bytes held;   /* what may become a call */
	bool inside;         /* behind an opening mark; TOOLS_BARE: the text began with a brace */
	bool may_be_text;    /* inside, and whether it is a call is not known yet (tools_row.opened) */
	bool begun;          /* something that is not space was seen, since the last call */
	struct bytes text;   /* what is no call, of the last piece */
	struct tool_call *call;
	size_t n, capacity; /* of the whole answer so far */
	bool lost;          /* memory ran out */
};

/* Before an answer. opened: the prompt has opened a call, and this of it stands behind the mark; NULL: it has not.
 * schemas: borrowed until the end; NULL: values of elements are what they look like. */
void tool_calls_begin(struct tool_calls *t, enum tools_form form, const char *opened, const char *schemas);
/* The next piece; NULL is the end. Afterwards t->text holds what is no call, and calls that are complete are in the
 * list. */
void tool_calls_take(struct tool_calls *t, const char *p, size_t n);
void tool_calls_free(struct tool_calls *t);

#endif
