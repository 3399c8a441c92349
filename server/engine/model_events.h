/* server/engine/model_events.h - what happens to models, told to all clients that listen at /models/sse.
 *
 * Owns: the list of those who listen. Each has a stream of its own (stream.h), which is bounded: who leaves too much
 * unread is dropped, and so are all when there is no memory for an event, so that nobody believes to know all and does
 * not. There is one list for the program. Any thread may tell, whatever locks it holds: nothing here waits.
 */
#ifndef SERVER_MODEL_EVENTS_H
#define SERVER_MODEL_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct answer_stream;

/* A stream that is told all events from now on; unread: its most bytes. NULL: no memory, or nothing is told any more.
 */
struct answer_stream *model_events_listen(size_t unread);
/* No event comes there any more. */
void model_events_leave(struct answer_stream *s);

/* An event of a model, without data. */
void model_events_tell(const char *model, const char *event);
/* With data, which is taken over; NULL: there was no memory for it. */
void model_events_tell_data(const char *model, const char *event, json_t *data);
/* The list of models is another one. */
void model_events_list_changed(void);
/* Whether anybody listens: what nobody hears need not be put into words. */
bool model_events_heard(void);
/* All streams end, and none is opened any more. */
void model_events_end(void);

#endif
