/* server/control/not_done.c - routes of other servers that are not done here: each is answered with the reason and with
 * what does the same, as far as there is something. */
#include <string.h>

#include "server/api/endpoints.h"
#include "server/request/refusal.h"

static const struct {
	const char *path, *why; /* path: the route's */
} rows[] = {
	{ "/props", "No property is changed while the server runs; its options and each request set them." },
	{ "/chat/completions/control",
	  "A running answer takes no orders; a request bounds its reasoning by reasoning_budget." },
	{ "/v1/stream", "No answer goes on without its client: the request is sent again." },
	{ "/v1/streams/lookup", "No answer goes on without its client: there is none to be found." },
	{ "/tools", "The server runs no tools; a client runs the calls that an answer has." },
	{ "/cors-proxy", "The server fetches nothing for its clients." },
	{ "/audio/transcriptions", "Models that hear do not run here." },
	{ "/audio/translations", "Models that hear do not run here." },
	{ "/audio/speech", "Models that speak do not run here." },
	{ "/images/generations", "Models that draw do not run here." },
	{ "/images/edits", "Models that draw do not run here." },
	{ "/moderations", "Models that judge what is harmful have no endpoint here; ask one by a conversation." },
	{ "/api/me", "There are no accounts here." },
	{ "/api/signout", "There are no accounts here." },
	{ "/api/web_search", "The server fetches nothing for its clients." },
	{ "/api/web_fetch", "The server fetches nothing for its clients." },
};

bool answer_not_done(struct exchange *x)
{
	const char *why = "This is not done here.";

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].path, x->route->path) == 0)
			why = rows[i].why;
	return refuse(&x->refusal, 501, NULL, "%s", why);
}
