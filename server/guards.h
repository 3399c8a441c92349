/* server/guards.h - which heads of requests are refused before anything of them is used.
 *
 * Owns: what could mean one thing to a proxy and another to this server (RFC 9112, sections 2.2, 5 and 6): lengths
 * given twice or in two ways, codings of transfer beyond chunked, names and values with bytes that have no place there.
 * The HTTP library is lenient with some of these; a connection on which one was seen is closed.
 */
#ifndef SERVER_GUARDS_H
#define SERVER_GUARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/refusal.h"

/* What was seen of a head so far; all zero before its first field. */
struct guard {
	unsigned lengths, codings, hosts, fields;
	struct refusal refusal;
};

enum { GUARD_MOST_FIELDS = 100 };

/* The next field of a head; any bytes. False: refused, as refusal says. */
bool guard_field(struct guard *g, const char *name, size_t n_name, const char *value, size_t n_value);
/* Behind the last one. version: "HTTP/1.1". */
bool guard_end(struct guard *g, const char *version);

#endif
