/* server/http/watch.h - connections, looked at from beside: clients that leave, and clients that do not come to the
 * point.
 *
 * Owns: an epoll of its own over the sockets of running requests, because the HTTP library does not look at a
 * connection while it waits for the batcher; the time within which a request must have arrived whole, however slowly it
 * drips; and signs of life while a prompt is computed. One thread.
 */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include <stdbool.h>

#include "base/error.h"
#include "server/engine/stream.h"

struct watch;
struct watched; /* a connection */

/* arrive: seconds until a request must be there, and until what is left of an answer must be read when it is complete;
 * alive: seconds of silence before a sign of life; each: called about twice a second from the watch's thread, NULL:
 * nothing is. NULL: err. */
struct watch *watch_open(double arrive, double alive, void (*each)(void *user), void *user, struct error *err);
/* Nothing is watched any more. */
void watch_close(struct watch *w);

/* A connection begins, and waits for its first request. NULL: no memory. */
struct watched *watch_begin(struct watch *w, int fd);
void watch_end(struct watch *w, struct watched *c);
/* It waits for a request. */
void watch_reading(struct watch *w, struct watched *c);
/* The request is there. running: cancelled when the client leaves; NULL: answered at once. */
void watch_running(struct watch *w, struct watched *c, struct answer_stream *running);

#endif
