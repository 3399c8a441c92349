/* server/refusal.h - why a request is not answered as it asks.
 *
 * Owns: one HTTP status and one sentence for the client, and how they become JSON. The first one wins.
 */
#ifndef SERVER_REFUSAL_H
#define SERVER_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

struct refusal {
	int status;         /* 0: none */
	const char *type;   /* as clients know it: "invalid_request_error"; NULL: what the status says */
	char param[80];     /* the field that is wrong; empty: none */
	char message[1024]; /* valid UTF-8 */
	size_t tokens;      /* of a prompt that is too long; 0: that is not why */
	int context;        /* what it should fit in */
};

/* Sets *r unless it is set already; false always. param NULL: no field. */
bool refuse(struct refusal *r, int status, const char *param, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* {"error": {...}}, malloc'ed. NULL: no memory. */
char *refusal_json(const struct refusal *r);
/* {"type": "error", "error": {...}}, as clients of Anthropic's API read it. */
char *refusal_json_anthropic(const struct refusal *r);

#endif
