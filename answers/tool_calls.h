/* answers/tool_calls.h - calls of tools in what a model says.
 *
 * Owns: finding calls, in the form that a template teaches (tool_forms.h), in a text that comes in pieces. What may
 * become a call is held back; what turns out to be none is text as it was. What is known of a call's arguments goes on
 * as it comes (tool_reader.h).
 */
#ifndef ANSWERS_TOOL_CALLS_H
#define ANSWERS_TOOL_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "answers/tool_events.h"
#include "answers/tool_forms.h"
#include "answers/tool_reader.h"
#include "base/bytes.h"

struct tool_calls {
	enum tools_form form;
	json_t *functions;       /* [{"name": NAME, "parameters": SCHEMA}]; NULL: not known */
	struct bytes held;       /* what may become a call, or a mark */
	struct bytes space;      /* inside: what stood before the mark, and is text where it opens no call */
	size_t fed;              /* inside: bytes of it that the reader has, or that stand before them */
	size_t skipped;          /* bytes before those */
	enum tool_reading reads; /* what it said of them */
	struct tool_reader reader;
	bool unopened;            /* inside: no mark that opens stands before it, and none is text */
	bool inside;              /* behind an opening mark; forms without one: the text began as a call does */
	bool may_be_text;         /* inside, and whether it is a call is not known yet (tools_row.opened) */
	bool begun;               /* something that is not space was seen, since the last call */
	size_t first;             /* inside: the first call that it may have */
	struct tool_events found; /* what the last piece has told, and all calls so far */
	bool lost;                /* memory ran out */
};

/* Before an answer. opened: the prompt has opened a call, and this of it stands behind the mark; NULL: it has not.
 * functions: JSON text of an array of the functions that may be called, each with its name and parameters: calls of
 * others are text, and values of elements are right by the parameters. NULL: not known, and values are what they look
 * like. */
void tool_calls_begin(struct tool_calls *t, enum tools_form form, const char *opened, const char *functions);
/* The next piece: t->found has what it told. */
void tool_calls_take(struct tool_calls *t, const char *p, size_t n);
/* The answer's end, in the same way; cut: the model had more to say. */
void tool_calls_end(struct tool_calls *t, bool cut);
void tool_calls_free(struct tool_calls *t);

#endif
