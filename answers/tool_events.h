/* answers/tool_events.h - what becomes known of a text with calls of tools, in the order in which it does.
 *
 * Owns: the calls of an answer, with their arguments as they grow, and that these are valid UTF-8 whose characters are
 * whole at every moment: other bytes become U+FFFD, one each.
 */
#ifndef ANSWERS_TOOL_EVENTS_H
#define ANSWERS_TOOL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct tool_call {
	char *name;
	struct bytes arguments; /* so far; of a call that is whole, JSON text of an object */
	bool whole;             /* else it goes on, or never came to its end */
	char *said;             /* of one that never will: as the model wrote it, n_said bytes */
	size_t n_said;
};

enum tool_event_kind {
	TOOL_TEXT,   /* no call */
	TOOL_BEGINS, /* a call, of which the name is known */
	TOOL_DELTA,  /* more of its arguments */
	TOOL_ENDS    /* nothing more comes of it */
};

struct tool_event {
	enum tool_event_kind kind;
	size_t call;    /* its number */
	size_t from, n; /* TOOL_TEXT and TOOL_DELTA: where in the text or the arguments */
};

struct tool_events {
	struct tool_event *event; /* of the last piece of the answer */
	size_t n_events, event_capacity;
	struct bytes text; /* of these events, one behind the other */
	struct tool_call *call;
	size_t n, capacity; /* calls of the whole answer so far */
	size_t whole;       /* how many of them have all of their arguments */
	char pending[4];    /* of a character that is not complete */
	unsigned n_pending;
	bool lost; /* memory ran out */
};

void tool_events_clear(struct tool_events *e); /* but for the calls */
void tool_events_free(struct tool_events *e);
void tool_events_text(struct tool_events *e, const char *p, size_t n);
/* name is taken over; NULL: lost. */
void tool_events_begin(struct tool_events *e, char *name);
void tool_events_put(struct tool_events *e, const char *p, size_t n);
void tool_events_end(struct tool_events *e, bool whole);
/* Of the last piece's events only texts and those of the first call stay. */
void tool_events_keep_one(struct tool_events *e);

#endif
