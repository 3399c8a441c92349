/* server/http/authority.h - the name of a server and its port, as they stand in Host, in an origin and in a whole URL.
 *
 * Owns: the one way to read them. What follows a name that we know must not be read by others as the name: a user
 * ("localhost@evil.example"), more of a name, or anything behind a bracket or a port.
 */
#ifndef SERVER_AUTHORITY_H
#define SERVER_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>

struct authority {
	const char *host; /* n_host bytes, of an address of IPv6 without its brackets */
	size_t n_host;
	bool bracketed; /* it is an address of IPv6 */
	long port;      /* -1: none */
};

/* n bytes, all of which must belong to it; text is not copied. False: it is none. */
bool authority_read(struct authority *a, const char *text, size_t n);
/* Whether it is of that name, or of that address, with or without brackets around it. Ports do not matter. */
bool authority_is(const struct authority *a, const char *name);

#endif
