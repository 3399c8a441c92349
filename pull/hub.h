/* pull/hub.h - Hugging Face's hub: its addresses, who asks it, and what its refusals mean.
 *
 * Owns: the token, which only the hub itself is told and no server that it redirects to; how often something is tried
 * and how long is waited in between.
 */
#ifndef PULL_HUB_H
#define PULL_HUB_H

#include "pull/http.h"
#include "pull/listing.h"
#include "pull/reference.h"

enum { HUB_TOKEN_MAX = 256 };

struct hub {
	struct http *http;
	char endpoint[400];            /* without a slash at its end */
	char token[HUB_TOKEN_MAX + 1]; /* "": none */
	int tries;                     /* in a row without a byte of a body */
	long wait_ms;                  /* before the second try; each further one waits twice as long */
	const volatile sig_atomic_t *interrupted;
	void (*say)(void *user, const char *sentence); /* what is waited for */
	void *user;
};

/* Reads HF_ENDPOINT and the token. All else is filled by the caller before. hub_close is due in any case. */
bool hub_open(struct hub *hub, const char *agent, struct error *err);
void hub_close(struct hub *hub);

/* The files of a revision. False: err. */
bool hub_list(struct hub *hub, const struct reference *r, struct listing *l, struct error *err);
/* Of a file: its size and hash, where the listing does not have them, and the commit, where that is "". */
bool hub_look_up(struct hub *hub, const struct reference *r, struct listing_file *f, char commit[41],
                 struct error *err);
/* One try to get a file from an offset on. *status: of the answer. */
enum http_end hub_get(struct hub *hub, const struct reference *r, const char *commit, const struct listing_file *f,
                      const struct http_request *how, struct http_answer *a, struct error *err);
/* After `tried` tries in a row. False: err, there shall be no more. */
bool hub_wait(struct hub *hub, int tried, const struct http_answer *a, struct error *err);
/* Whether an answer of that status may be another one later. */
bool hub_is_passing(long status);
/* The sentence on an answer that is none. False. */
bool hub_refused(struct hub *hub, const struct reference *r, const char *file, const struct http_answer *a,
                 struct error *err);

#endif
