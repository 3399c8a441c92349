/* server/http/keys.h - who may ask: keys from a file, one a line.
 *
 * Owns: the keys, and how one is compared: the time that takes depends neither on the keys nor on how much of one was
 * right.
 */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { KEY_MAX_BYTES = 256, KEYS_MAX = 4096, KEYS_MAX_FILE = 1 << 20 };

struct keys;

/* Lines of printable ASCII without spaces; empty ones and those that begin with # count for nothing. NULL: err. */
struct keys *keys_read(const char *path, struct error *err);
/* Those given as texts, each of which is one or several with commas between, and those of the file unless it is NULL.
 */
struct keys *keys_gather(const char *const *text, size_t n, const char *path, struct error *err);
/* The same of n bytes; label names them. */
struct keys *keys_parse(const char *text, size_t n, const char *label, struct error *err);
void keys_free(struct keys *k);
size_t keys_count(const struct keys *k);
/* Which key it is, from 1 on; 0: none. */
unsigned keys_number(const struct keys *k, const char *key, size_t n);
bool keys_has(const struct keys *k, const char *key, size_t n);
/* The key in a header field Authorization, "Bearer KEY"; NULL: it has another form. */
const char *keys_bearer(const char *authorization);

#endif
