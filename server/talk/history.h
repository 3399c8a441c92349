/* server/talk/history.h - the messages of a request in the shape that a chat template takes.
 *
 * Owns: what templates were written for and clients do not send, as repairs of a conversation, each of which changes
 * only messages that have what it is for; and which of them a model's template needs, found by probes when the model is
 * opened. A template that takes a conversation as it comes gets it so.
 */
#ifndef SERVER_HISTORY_H
#define SERVER_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

#include "server/engine/models.h"
#include "server/request/refusal.h"

enum history_repair {
	HISTORY_TEXT_ARGUMENTS = 1 << 0,   /* arguments of calls are the JSON text, else an object */
	HISTORY_NULL_CONTENT = 1 << 1,     /* content beside calls that is empty is null */
	HISTORY_SPLIT_CONTENT = 1 << 2,    /* a text beside calls is a message of its own before them */
	HISTORY_ONE_CALL = 1 << 3,         /* a message has one call, with its result behind it */
	HISTORY_RESULT_NAMES = 1 << 4,     /* results have the name and the id of their call */
	HISTORY_SHORT_IDS = 1 << 5,        /* ids of calls have nine letters and digits */
	HISTORY_MEND_ARGUMENTS = 1 << 6,   /* arguments that are no JSON object become one */
	HISTORY_FILL_TOOLS = 1 << 7,       /* tools have a description, parameters, and these a type */
	HISTORY_JOIN_FIRST = 1 << 8,       /* system messages before all others are one */
	HISTORY_JOIN_SYSTEM = 1 << 9,      /* all system messages are one, the first message */
	HISTORY_NO_SYSTEM = 1 << 10,       /* their text stands before the first one of the user */
	HISTORY_JOIN_NEIGHBOURS = 1 << 11, /* neighbours of one role are one message */
	HISTORY_ANSWERS = 1 << 12,         /* an empty answer stands between the result of a call and the user */
	HISTORY_SOME_USER = 1 << 13,       /* where the user has said nothing, there is an empty message of theirs */
	HISTORY_FIRST_USER = 1 << 14,      /* so there is before an answer that comes first */
	HISTORY_PARTS = 1 << 15,           /* content is an array of parts, else a text */
	HISTORY_FLAT_TOOLS = 1 << 16,      /* a tool has its function's members, too */
	HISTORY_PLAIN_CALLS = 1 << 17      /* calls and results are texts of the assistant and the user */
};
enum { HISTORY_REPAIRS = 18 };

/* Which repairs the model's template needs, with tools and without, and whether it writes documents: into the model. */
void history_probe(struct served *m);

/* A new array: a copy with these repairs made. Arguments of calls are objects where they can be. NULL: no memory. */
json_t *history_messages(const json_t *messages, unsigned repairs);
/* The tools for these repairs; NULL: no memory. */
json_t *history_tools(const json_t *tools, unsigned repairs);
/* An object of arguments that are no JSON text of one: Python's dict, the beginning of an object, any text. */
json_t *history_mend(const char *text, size_t n);

#endif
