/* server/responses/response_tools.h - the tools of responses that are no plain functions.
 *
 * Owns: how tools of the types custom, namespace, local_shell, shell and apply_patch become functions, and how calls of
 * these become items of the type that the client knows, and back. Tools that other servers run are left out.
 */
#ifndef SERVER_RESPONSE_TOOLS_H
#define SERVER_RESPONSE_TOOLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/request/refusal.h"

/* Whether another server runs tools of that type: nothing here does. */
bool response_tools_are_hosted(const char *type);
/* The functions that the tools of a request are: an array. Sentences about what was left out are added to warnings,
 * which may be NULL. NULL: refused. */
json_t *response_tools_functions(const json_t *body, json_t *warnings, struct refusal *r);

enum response_call { CALL_FUNCTION, CALL_CUSTOM, CALL_TYPED };
/* What a call of the function of that name is to the client, with n bytes of arguments that are whole or not: members
 * of its item are put into `item`. */
enum response_call response_tools_call(const json_t *tools, const char *name, const char *arguments, size_t n,
                                       bool whole, json_t *item);
/* An item of the input: whether it is a call, or the result of one; then in the form of a function's. *made: given
 * back. False: refused. */
enum response_item { ITEM_OTHER, ITEM_IS_CALL, ITEM_IS_RESULT };
bool response_tools_item(const json_t *item, enum response_item *kind, json_t **made, struct refusal *r);
/* The same of one of type allowed_tools (allowed_tools.h), whose tools become names of functions. Refused: r says so.
 */
json_t *response_tools_allowed(const json_t *choice, struct refusal *r);
/* The name of the function that a tool_choice of this type and name means; false: refused. */
bool response_tools_choice(const json_t *choice, char name[200], struct refusal *r);

#endif
