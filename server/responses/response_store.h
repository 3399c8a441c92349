/* server/responses/response_store.h - responses that are kept for requests which go on from them.
 *
 * Owns: the bounds of what is kept, in number, bytes and time, and that a client sees its own responses alone: those
 * asked for with the same key. Used from any thread.
 */
#ifndef SERVER_RESPONSE_STORE_H
#define SERVER_RESPONSE_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct response_store;

/* Of more than `max`, of more than `bytes`, and of those that nobody asked for in so many seconds the oldest go. NULL:
 * no memory. */
struct response_store *response_store_open(size_t max, size_t bytes, double seconds);
void response_store_close(struct response_store *s);

/* Keeps a response with the items of its whole input, both borrowed. One that there is no room for is not kept. */
void response_store_put(struct response_store *s, uint64_t owner, const char *id, const json_t *response,
                        const json_t *items);
/* A response, or the items of its input; to be given back. NULL: it is not kept. */
json_t *response_store_get(struct response_store *s, uint64_t owner, const char *id);
json_t *response_store_items(struct response_store *s, uint64_t owner, const char *id);
/* An item of a kept response's output. NULL: none. */
json_t *response_store_find(struct response_store *s, uint64_t owner, const char *item);
/* False: it was not there. */
bool response_store_drop(struct response_store *s, uint64_t owner, const char *id);

#endif
