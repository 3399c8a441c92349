/* server/responses.h - requests in the form of OpenAI's responses.
 *
 * Owns: how they become requests in the form of chat completions, which the rest of the server reads: one meaning for
 * both.
 */
#ifndef SERVER_RESPONSES_H
#define SERVER_RESPONSES_H

#include <jansson.h>

#include "server/refusal.h"

/* NULL: refused. */
json_t *responses_to_chat(const json_t *body, struct refusal *r);
/* What of a request was left out, a sentence each: an array. */
json_t *responses_warnings(const json_t *body);

#endif
