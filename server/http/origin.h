/* server/http/origin.h - which pages of a browser may ask, and by which names this server may be called.
 *
 * Owns: the check of Host, without which any page could reach a server on this machine through a name of its own that
 * leads to 127.0.0.1 (DNS rebinding), and that of Origin, which says whose page asks.
 */
#ifndef SERVER_ORIGIN_H
#define SERVER_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "server/request/refusal.h"

struct origin_rules {
	bool loopback;           /* bound to this machine alone: only its own names are taken */
	const char *bound;       /* --host */
	const char *const *host; /* further names, n_hosts of them */
	size_t n_hosts;
	const char *const
		*page; /* origins that may ask, n_pages of them; "*": any; "localhost": those of this machine */
	size_t n_pages;
};

/* host: of the header field, NULL when there is none. */
bool origin_takes_host(const struct origin_rules *o, const char *host, struct refusal *r);
/* origin: of the header field; NULL: no page asks. True also for pages of this server. */
bool origin_takes_page(const struct origin_rules *o, const char *host, const char *origin, struct refusal *r);
/* What Access-Control-Allow-Origin is for this page; NULL: the field is not sent. */
const char *origin_allowed(const struct origin_rules *o, const char *origin);
/* What Access-Control-Allow-Headers is: those that a preflight asks for, as clients send fields of their own
 * (X-Stainless-Os). asked: the value of Access-Control-Request-Headers; NULL, or no list of names: those that the
 * server reads. */
const char *origin_allowed_fields(const char *requested);

/* The fields of answers that pages may read. */
extern const char origin_exposed[];

#endif
