/* runtime/sampling/stop.h - texts that end a generation (stop strings), found in bytes as they come.
 *
 * Owns: what may be printed so far. No part of a stop text is ever given out, wherever tokens are cut: bytes that could
 * still become one are held back, and all others are given at once. The text ends at the first byte that completes a
 * stop text; of several that end there, the longest counts. Time is that of reading the bytes once for each stop text.
 */
#ifndef RUNTIME_SAMPLING_STOP_H
#define RUNTIME_SAMPLING_STOP_H

#include <stddef.h>

#include "base/error.h"

enum { STOP_TEXTS = 256, STOP_BYTES = 4096 }; /* the most of them, and of each */

struct stop;
/* n of them, none empty; they are copied. */
struct stop *stop_open(const char *const *texts, size_t n, struct error *err);
void stop_close(struct stop *s);

/* The next n bytes. Returns those that may be printed now, *out of them, valid until the next call; none any more once
 * a stop text was found. NULL: no memory; the bytes were not taken. */
const char *stop_take(struct stop *s, const char *bytes, size_t n, size_t *out);
/* The last n bytes; what is still held back then is given as well. */
const char *stop_rest(struct stop *s, const char *bytes, size_t n, size_t *out);
/* The number of the text that was found; -1: none yet. */
int stop_found(const struct stop *s);
/* As new. */
void stop_again(struct stop *s);

#endif
