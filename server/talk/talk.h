/* server/talk/talk.h - what requests with a conversation say in several ways.
 *
 * Owns: the switches of reasoning, which become variables of the template; which tools a request may have; and that a
 * request may want one call at most.
 */
#ifndef SERVER_TALK_H
#define SERVER_TALK_H

#include <jansson.h>
#include <stdbool.h>

#include "server/request/refusal.h"
#include "server/engine/task.h"

/* body is in the form of chat completions: "thinking" and "enable_thinking" become variables of the template, its tools
 * are functions, and the texts of calls' arguments are whole. conversation: the name of the field that has them. False:
 * refused. */
bool talk_normalise(json_t *body, const char *conversation, struct refusal *r);
/* The same of a request to chat completions, whose tools may be of type custom. *warnings: an array, given back, of
 * what is said of them; NULL: nothing. */
bool talk_read_chat(json_t *body, json_t **warnings, struct refusal *r);
/* Whether an array of messages, and of calls in them, is no longer than can be gone through several times, and the
 * calls are objects. conversation: the name of the field. False: refused. */
bool talk_is_short(const json_t *messages, const char *conversation, struct refusal *r);
/* parallel_tool_calls. False: refused. */
bool talk_read_calls(struct task *t, const json_t *body, struct refusal *r);
/* A tool of a type that is not done. False always. */
bool talk_refuse_tool(size_t number, const char *type, struct refusal *r);

#endif
