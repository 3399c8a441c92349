/* server/tls.h - the certificate and the key by which the server encrypts what it says.
 *
 * Owns: both as texts, and what is told at once where the HTTP library cannot encrypt.
 */
#ifndef SERVER_TLS_H
#define SERVER_TLS_H

#include <stdbool.h>

#include "base/error.h"

struct tls {
	char *certificate, *key; /* PEM; NULL: no encryption */
};

/* Both paths, or neither. False: err. */
bool tls_read(struct tls *t, const char *certificate, const char *key, struct error *err);
/* The key's bytes are overwritten. */
void tls_free(struct tls *t);

#endif
