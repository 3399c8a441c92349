/* server/anthropic/anthropic_tools.h - the tools of Anthropic's API.
 *
 * Owns: the form of those that have a type instead of a schema, and which of these nobody here can run.
 */
#ifndef SERVER_ANTHROPIC_TOOLS_H
#define SERVER_ANTHROPIC_TOOLS_H

#include <jansson.h>

#include "server/request/refusal.h"

/* As functions of chat completions. Tools that a client runs by a form of their own become functions of that form;
 * those that Anthropic's servers run are left out, which `warnings` is told, a sentence each; NULL: nobody wants to
 * know. NULL: refused. */
json_t *anthropic_tools(const json_t *tools, json_t *warnings, struct refusal *r);
/* Whether a block of a conversation is of a tool that other servers ran: it is passed over. */
bool anthropic_block_is_hosted(const char *type);

#endif
