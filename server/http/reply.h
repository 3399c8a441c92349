/* server/http/reply.h - how records become what a client reads.
 *
 * Owns: what the families of endpoints have in common: a reply is fed the records of its stream, one after the other,
 * and gives bytes: events while they come, or one text at the end.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <stdbool.h>

#include "base/bytes.h"
#include "server/request/refusal.h"
#include "server/engine/stream.h"

struct reply;

struct reply_kind {
	/* A record that is STARTED, TOKEN or ENDED. */
	void (*take)(struct reply *r, const struct answer_event *record, const jit_logprob *top, const char *text);
	/* All have ended: what is left, or all of it. */
	void (*end)(struct reply *r);
	/* Something failed after the first event. */
	void (*fail)(struct reply *r, const struct refusal *why);
	void (*close)(struct reply *r); /* gives back what is its own, and itself */
};

/* The beginning of each family's own struct. */
struct reply {
	const struct reply_kind *kind;
	struct answer_stream *stream; /* NULL: not begun */
	bool events;                  /* a stream of events, not one text */
	/* Of a stream that is none of server-sent events: its type, and what is sent when nothing came for some time.
	 */
	const char *events_type;
	void (*idle)(struct reply *r);
	struct bytes out; /* for the client */
	bool ended;
};

/* Takes what is there until there is something for the client, or all (whole). False: a record FAILED, and why says
 * so; the first one may still be answered by its status. */
bool reply_advance(struct reply *r, struct refusal *why);
void reply_close(struct reply *r);

#endif
