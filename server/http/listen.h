/* server/http/listen.h - the socket that clients connect to.
 *
 * Owns: which address it has, whether that is of this machine alone, and sockets that systemd hands over.
 */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include <stdbool.h>

#include "base/error.h"

struct listener {
	int fd;
	bool loopback;
	char address[80]; /* "127.0.0.1:8080", "[::1]:8080" */
};

/* port 0: any that is free. Where systemd has opened a socket ($LISTEN_FDS), that one is taken. False: err. */
bool listen_open(struct listener *l, const char *host, long port, struct error *err);

#endif
