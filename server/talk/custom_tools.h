/* server/talk/custom_tools.h - tools whose calls have one text, which may be of a grammar: OpenAI's tools of type
 * custom.
 *
 * Owns: how they become functions with one argument, in both of OpenAI's APIs, and what is said of their grammars.
 */
#ifndef SERVER_CUSTOM_TOOLS_H
#define SERVER_CUSTOM_TOOLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/request/refusal.h"

/* Tools being read. A grammar is read where it is held, or where there are warnings. */
struct tool_intake {
	json_t *warnings;      /* NULL: they are told elsewhere */
	bool required;         /* the answer must be a call, */
	const char *only;      /* and of the tool of this name; NULL: of any */
	bool none;             /* the answer is no call */
	const json_t *allowed; /* what says which tools may be called (allowed_tools.h); NULL: all */
	uint64_t steps;        /* that are left for grammars */
	char at[60];           /* the tool's place in the request */
	struct refusal *r;
};

struct tool_intake tool_intake(const json_t *body, json_t *warnings, struct refusal *r);
/* The sentence is taken over. */
void tool_warn(struct tool_intake *a, json_t *sentence);
json_t *tool_function(const char *name, const char *description, json_t *parameters);
/* The function that a tool is: tool is {"description", "format": {"type", "syntax", "definition"}} of responses, or of
 * chat completions, where syntax and definition stand in "grammar" of the format. */
json_t *custom_tool(struct tool_intake *a, const json_t *tool, const char *name, bool chat);

/* The tools, the choice of one and the calls in messages of a request to chat completions. Sentences about grammars
 * that are not held are added to warnings, which may be NULL. False: refused. */
bool custom_tools_take(json_t *body, json_t *warnings, struct refusal *r);

#endif
