/* server/anthropic/anthropic.h - requests in the form of Anthropic's API.
 *
 * Owns: how they become requests in the form of OpenAI's API, which the rest of the server reads: one meaning for both.
 */
#ifndef SERVER_ANTHROPIC_H
#define SERVER_ANTHROPIC_H

#include <jansson.h>

#include "server/request/refusal.h"

/* warnings: an array, which is told what was left out, a sentence each; NULL. NULL: refused. */
json_t *anthropic_to_openai(const json_t *body, json_t *warnings, struct refusal *r);

#endif
