/* server/talk/held_calls.h - answers that may call tools: how calls keep to what their tools say.
 *
 * Owns: which tools of a request ask for that, as the grammar that leaves an answer free but for its calls.
 */
#ifndef SERVER_HELD_CALLS_H
#define SERVER_HELD_CALLS_H

#include "server/engine/task.h"

/* Of a request whose tool_choice leaves the call to the model. Calls are held where a tool has a grammar that can be,
 * where a function is strict, and where tool_choice allows some tools alone (allowed; NULL: all); what is not held for
 * the model's sake is told in t->warnings. False: refused. */
bool held_calls_read(struct task *t, const json_t *body, const json_t *allowed, const struct served *m,
                     struct refusal *r);

#endif
