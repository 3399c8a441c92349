/* runtime/sized.h - the structs of jitrun.h, which begin with their size, between callers and a library of other
 * versions.
 *
 * Owns: what a size may be, what is copied of it, and what of a longer struct is refused.
 */
#ifndef RUNTIME_SIZED_H
#define RUNTIME_SIZED_H

#include <stddef.h>

#include "base/error.h"

enum { SIZED_MOST = 4096, SIZED_STEP = sizeof(size_t) };

/* Options: *own becomes a copy of the caller's, with its own size and 0 where the caller's ends before it. from NULL: 0
 * everywhere. False: the size is none, or beyond *own something is not 0. */
bool sized_read(void *own, size_t own_size, const void *from, const char *type, struct error *err);
/* Results: the caller's struct becomes a copy of *own, but for its size; 0 beyond. False: the size is none. */
bool sized_write(void *to, const void *own, size_t own_size, const char *type, struct error *err);

#define SIZED_READ(type, own, from, err) sized_read((type *){ own }, sizeof(type), (const type *){ from }, #type, err)
#define SIZED_WRITE(type, to, own, err) sized_write((type *){ to }, (const type *){ own }, sizeof(type), #type, err)

#endif
