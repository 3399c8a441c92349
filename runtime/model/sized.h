/* runtime/model/sized.h - what callers of jitrun.h point to: structs, which begin with their size, between callers and
 * a library of other versions; and pointers that are NULL.
 *
 * Owns: what a size may be, what is copied of it, and what of a longer struct is refused; the sentence about a NULL.
 */
#ifndef RUNTIME_SIZED_H
#define RUNTIME_SIZED_H

#include <stddef.h>

#include "base/error.h"

enum { SIZED_MAX = 4096, SIZED_STEP = sizeof(size_t) };

/* Options: *own becomes a copy of the caller's, with its own size and 0 where the caller's ends before it. from NULL: 0
 * everywhere. False: the size is none, or beyond *own something is not 0. */
bool sized_read(void *own, size_t own_size, const void *from, const char *type, struct error *err);
/* Results: the caller's struct becomes a copy of *own, but for its size; 0 beyond. False: the size is none. */
bool sized_write(void *to, const void *own, size_t own_size, const char *type, struct error *err);

/* Whether a parameter points to something. False: the sentence names it and its function. */
bool needed(const void *p, const char *function, const char *parameter, struct error *err);
/* In the function itself. Of a list with n entries, of which there may be none: NEEDED_LIST. */
#define NEEDED(p, err) needed(p, __func__, #p, err)
#define NEEDED_LIST(p, n, err) ((n) == 0 || needed(p, __func__, #p, err))

#define SIZED_READ(type, own, from, err) sized_read((type *){ own }, sizeof(type), (const type *){ from }, #type, err)
#define SIZED_WRITE(type, to, own, err) sized_write((type *){ to }, (const type *){ own }, sizeof(type), #type, err)

#endif
