/* server/http/tls.h - encryption of what clients and server say, by GnuTLS.
 *
 * Owns: the certificate and the key, and a session for each connection. Without GnuTLS both are refused at the start.
 */
#ifndef SERVER_TLS_H
#define SERVER_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct tls {
	char *certificate, *key; /* PEM; NULL: no encryption */
	void *credentials;       /* made of both; NULL: not yet */
};

/* Both paths, or neither. False: err. */
bool tls_read(struct tls *t, const char *certificate, const char *key, struct error *err);
/* What was read, for the server of this address. False: err, as they are of no use, or do not belong together. */
bool tls_open(struct tls *t, const char *address, struct error *err);
/* The key's bytes are overwritten. */
void tls_free(struct tls *t);

/* ---- of one connection, whose socket does not block */

struct tls_line;

/* NULL: no memory. The socket stays the caller's. */
struct tls_line *tls_begin(const struct tls *t, int fd);
/* Bytes that went; 0: none at the moment, and then the same ones must be given again; -1: the connection is of no use
 * any more. What goes before the first byte is done on the way. */
ssize_t tls_send(struct tls_line *l, const char *p, size_t n);
/* Bytes that came; 0: none yet; -1: nothing more comes. */
ssize_t tls_receive(struct tls_line *l, char *p, size_t n);
/* The client is told that nothing more comes, when there is room for that. */
void tls_end(struct tls_line *l);
void tls_finish(struct tls_line *l);

#endif
