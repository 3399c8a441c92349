/* tests/server/hostile.h - requests that no honest client sends, and what each must be answered with. */
#ifndef TESTS_SERVER_HOSTILE_H
#define TESTS_SERVER_HOSTILE_H

#include <stddef.h>

/* The bytes of a connection, which may hold NULs. Either status will do. */
struct hostile {
	const char *name, *text;
	size_t n;
	int status, or_status;
};

/* For a server that takes bodies of 1 MiB. Ends with a name of NULL. */
extern const struct hostile hostile_requests[];

#endif
