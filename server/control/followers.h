/* server/control/followers.h - the clients that wait for one fetch of a model, and what a client that comes late must
 * be told.
 *
 * Owns: their streams, each held, and the last line of each file. The caller guards it with a lock of its own; nothing
 * here waits.
 */
#ifndef SERVER_FOLLOWERS_H
#define SERVER_FOLLOWERS_H

#include <jansson.h>
#include <stdbool.h>

#include "server/engine/stream.h"

struct follower;

struct followers {
	struct follower *first; /* in the order in which they came */
	json_t *lines;          /* by file, or by what else a line is about: its text */
};

/* lines: its client reads how far the fetch is; then it is told at once what others were told before. False: no memory.
 */
bool followers_add(struct followers *all, struct answer_stream *stream, bool lines);
/* A line of the fetch, for those that read lines. about: the subject, whose latest line replaces earlier ones. */
void followers_tell(struct followers *all, const char *about, const char *line);
/* ENDED or FAILED, for all. */
void followers_end(struct followers *all, const struct answer_event *r, const char *text);
/* Those whose clients have gone leave. Whether any is still there. */
bool followers_remain(struct followers *all);
void followers_free(struct followers *all);

#endif
