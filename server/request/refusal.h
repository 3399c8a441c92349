/* server/request/refusal.h - why a request is not answered as it asks.
 *
 * Owns: one HTTP status and one sentence for the client, and how they become JSON. The first one wins.
 */
#ifndef SERVER_REFUSAL_H
#define SERVER_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "include/jitrun.h"

struct refusal {
	int status;         /* 0: none */
	const char *type;   /* as clients know it: "invalid_request_error"; NULL: what the status says */
	const char *code;   /* a word that clients look for; NULL: the status */
	char param[80];     /* the field that is wrong; empty: none */
	char message[1024]; /* valid UTF-8 */
	size_t tokens;      /* of a prompt that is too long; 0: that is not why */
	int context;        /* what it should fit in */
	const char *more;   /* what would let it be longer */
};

/* Sets *r unless it is set already; false always. param NULL: no field. */
bool refuse(struct refusal *r, int status, const char *param, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A prompt that is longer than its context; more: what would let it be longer. False always. */
bool refuse_tokens(struct refusal *r, size_t tokens, int context, const char *more);
/* The same facts for a refusal that says something else. */
bool refusal_of_tokens(struct refusal *r, size_t tokens, int context, const char *more);
/* What a reader of fields says of one that is in another: "type is 7" becomes "thinking.type is 7", and so does the
 * field's name. outer: "thinking". False always. */
bool refuse_within(struct refusal *r, const char *outer);
/* A field that the client knows by another name, at the beginning of what is said. */
void refusal_rename(struct refusal *r, const char *from, const char *to);
/* The same for what the library says of a request's text: a lack of memory is status 503, all else 400. */
bool refuse_error(struct refusal *r, const char *param, const jit_error *err);
/* Where files of the server lie is none of a client's business: of paths their last part stays. of: a path that may be
 * relative; NULL. */
void refusal_hide_paths(char *text, const char *of);
/* {"error": {...}}, malloc'ed. NULL: no memory. */
char *refusal_json(const struct refusal *r);
/* {"type": "error", "error": {...}}, as clients of Anthropic's API read it. */
char *refusal_json_anthropic(const struct refusal *r, const char *id);
/* The status that such a refusal has: 529 where others have 503. */
unsigned refusal_status_anthropic(const struct refusal *r);
/* {"error": TEXT}, as clients of ollama's API read it: the text names the field. */
char *refusal_json_ollama(const struct refusal *r);

#endif
