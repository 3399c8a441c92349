/* server/http/gate.h - between clients and the HTTP library: every byte of a client passes here first.
 *
 * Owns: the sockets of clients, how many there may be, their encryption, and one thread that carries bytes. The library
 * is handed one end of a pair of sockets for each connection, and reads there what framing.h makes of the client's
 * bytes. What it answers goes out as it is; nothing more of it is taken than the client reads.
 */
#ifndef SERVER_GATE_H
#define SERVER_GATE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"
#include "server/http/tls.h"

struct gate;
struct gated; /* a connection */

struct gate_options {
	int listener;
	long connections, per_address; /* most that are open at once; per_address 0: any number */
	struct tls *tls;               /* NULL: what is sent is not encrypted */
	/* Hands a connection over to the library: fd, which is the callee's in any case, and an address that
	 * gated_of() knows. From the gate's thread. False: it is not served. *doomed: it is, and must be ended. */
	bool (*serve)(void *user, int fd, const struct sockaddr *address, socklen_t n, bool *doomed);
	void *user;
};

/* NULL: err. */
struct gate *gate_open(const struct gate_options *o, struct error *err);
/* No connection is passed on any more. */
void gate_shut(struct gate *g);
/* When the library has closed all connections: what it said is sent, as far as clients read it at once. */
void gate_close(struct gate *g);

/* The connection that the library was given this address for; the library begins with it, and lets go of it. The socket
 * of its client stays open until then. */
struct gated *gated_of(const struct sockaddr *address);
void gated_take(struct gated *c);
int gated_client(const struct gated *c);
void gated_let_go(struct gated *c);

#endif
