/* server/responses/responses.h - requests in the form of OpenAI's responses.
 *
 * Owns: how they become requests in the form of chat completions, which the rest of the server reads: one meaning for
 * both.
 */
#ifndef SERVER_RESPONSES_H
#define SERVER_RESPONSES_H

#include <jansson.h>

#include "base/bytes.h"
#include "server/engine/models.h"
#include "server/request/refusal.h"
#include "server/responses/response_store.h"
#include "server/engine/stream.h"

/* All items of a conversation: those of the response that it goes on from, and those of the request's input. NULL:
 * refused. */
json_t *responses_items(const json_t *body, struct response_store *store, uint64_t owner, struct refusal *r);
/* NULL: refused. */
json_t *responses_to_chat(const json_t *body, const json_t *items, struct refusal *r);
/* What was refused of that request has the names that the client knows. False always. */
bool responses_own_names(const json_t *given, struct refusal *r);
/* Tokens for which its oldest items are left out; 0: for none. False: refused. */
bool responses_read_room(const json_t *body, const struct served *m, size_t *room, struct refusal *r);
/* Reasoning as a text that only this server reads, and back: nothing where it is of another one. */
json_t *responses_seal(const char *text, size_t n);
void responses_unseal(const char *sealed, struct bytes *out);
/* What of a request its response says again, and what its answer took. */
json_t *responses_said_again(const json_t *body);
/* Puts that into a response, and what is told of the request; warnings: NULL or an array. */
void responses_add_said(json_t *j, json_t *echoed, json_t *warnings);
json_t *responses_usage(const struct run_numbers *n);
/* Whether it has this in "include". */
bool responses_include(const json_t *body, const char *what);
/* What of a request was left out, a sentence each: an array. */
json_t *responses_warnings(const json_t *body);

#endif
