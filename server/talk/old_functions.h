/* server/talk/old_functions.h - functions as chat completions had them before tools.
 *
 * Owns: how "functions", "function_call" and messages of the role "function" become tools, their choice and their
 * results, which the rest of the server reads.
 */
#ifndef SERVER_OLD_FUNCTIONS_H
#define SERVER_OLD_FUNCTIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "server/request/refusal.h"

/* Whether a request has them, so that its answer has that form, too. */
bool old_functions_are_in(const json_t *body);
/* False: refused. */
bool old_functions_to_tools(json_t *body, struct refusal *r);

#endif
