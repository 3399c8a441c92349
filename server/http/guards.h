/* server/http/guards.h - which heads of requests are refused before anything of them is used.
 *
 * Owns: the one reading of a request's head (RFC 9112). What could mean one thing to a proxy and another to this server
 * is refused: lengths given twice or in two ways, codings of transfer beyond chunked, lines that go on, line ends and
 * bytes that have no place there, a URL with a user or a fragment in it. The HTTP library never sees the bytes of a
 * client: it is handed a head that is written anew from what was read here, so that it cannot read them otherwise.
 */
#ifndef SERVER_GUARDS_H
#define SERVER_GUARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "server/request/refusal.h"

enum { GUARD_MAX_FIELDS = 100, GUARD_MAX_HEAD = 60 << 10, GUARD_MAX_TARGET = 16 << 10 };

/* Fields that the library is handed beside those of the client, who can send none of these names: "400 why" of a head
 * or a trailer that is refused; the value of Host where the request's target is a whole URL, whose host counts. */
#define GUARD_REFUSAL "@refusal"
#define GUARD_HOST "@host"

enum guard_body { GUARD_NO_BODY, GUARD_LENGTH, GUARD_CHUNKS };

/* What stands in a head. */
struct guard {
	enum guard_body body;
	uint64_t length; /* GUARD_LENGTH */
	bool last;       /* nothing behind this request is read on its connection */
};

/* p: n bytes, a head with its empty line. What the library is handed for it is added to out: in the path "%" is written
 * as "%25", so that the path it gives is the one that the client sent. False: refused, and nothing was added. */
bool guard_head(struct guard *g, const char *p, size_t n, struct bytes *out, struct refusal *r);
/* The line before a chunk, without its end. False: refused. */
bool guard_chunk(uint64_t *size, const char *p, size_t n, struct refusal *r);
/* What stands behind the last chunk, with the empty line; nothing of it is used. False: refused. */
bool guard_trailer(const char *p, size_t n, struct refusal *r);
/* What the library is handed for a head that is refused, of which n bytes are there; for a body in chunks of which one
 * is. */
void guard_put_refusal(struct bytes *out, const char *head, size_t n, const struct refusal *r);
void guard_put_trailer(struct bytes *out, const struct refusal *r);

/* "%41" becomes "A", in place. */
void guard_decode(char *text);

#endif
