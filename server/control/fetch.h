/* server/control/fetch.h - models that the program of --pull-with fetches while the server runs.
 *
 * Owns: which are being fetched, for whom, and how far each is. Nothing here uses the network.
 */
#ifndef SERVER_FETCH_H
#define SERVER_FETCH_H

#include <jansson.h>
#include <stdbool.h>

#include "server/http/http.h"
#include "server/engine/stream.h"

/* Whether models may be fetched, and this is the name of one. False: refused. */
bool fetch_allowed(struct exchange *x, const char *name);
/* Starts the program, or follows the one that fetches this model already. Its end is that of the stream, and where
 * `lines` says so, what it says before goes there as records of tokens, each an object as a line of /api/pull; the
 * program ends when the clients of all its streams have gone. stream NULL: it runs until it is done, and listeners to
 * model_events.h are told alone; one that runs already is refused. False: refused. */
bool fetch_start(struct exchange *x, const char *name, struct answer_stream *stream, bool lines);
/* OWNER/NAME, also behind hf.co: names that can be given to the program. */
bool fetch_is_of_hub(const char *name);
/* Whether two names are of one model: hf.co/OWNER/NAME is OWNER/NAME. */
bool fetch_is_same(const char *a, const char *b);
/* The program is ended. False: none fetches that model. */
bool fetch_cancel(const char *name);
/* While the server stops: none is started any more, and none runs behind this. What runs was told by the server's
 * state, and takes a few seconds at most. */
void fetch_end(void);
/* Adds those that are being fetched to a list of models as /models has it. */
void fetch_list(json_t *list);

#endif
