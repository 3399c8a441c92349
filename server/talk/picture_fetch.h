/* server/talk/picture_fetch.h - pictures that requests name by http and https addresses: a program fetches them while
 * the request's connection sleeps.
 *
 * Owns: which addresses are allowed, the program's processes, and the bytes until the request is over. Nothing here
 * uses the network.
 */
#ifndef SERVER_PICTURE_FETCH_H
#define SERVER_PICTURE_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#include "server/engine/sight.h"
#include "server/engine/stream.h"
#include "server/request/refusal.h"

struct picture_job;

/* Of a request; all 0: none. */
struct picture_fetches {
	struct picture_job *job;
	bool wanted; /* some are not there yet, so that the request cannot be read */
};

/* The picture at an address of n bytes. True: *bytes are there, as long as the request is. False: refused; or without a
 * refusal, it is wanted. */
bool picture_fetch_find(struct picture_fetches *f, const struct sight_options *o, const char *url, size_t n,
                        const void **bytes, size_t *n_bytes, struct refusal *r);
/* Begins with those that are wanted; *stream ends with them. False: refused. */
bool picture_fetch_start(struct picture_fetches *f, struct answer_stream **stream, struct refusal *r);
/* The request is over: what still runs is ended. */
void picture_fetch_leave(struct picture_fetches *f);
/* While the server stops: none is started any more, and none runs behind this. */
void picture_fetch_end(void);
/* Whether the list of --image-hosts has the host of an address: exactly, with its port where that is named, behind
 * "*." as its end, or as "*". */
bool picture_fetch_is_allowed(const char *hosts, const char *url, size_t n);

#endif
