/* base/memfile.h - a stream that writes to memory and reports when memory ran out.
 *
 * Owns: the bytes until they are taken. A stream of open_memstream() drops what it has no memory for, and neither its
 * error flag nor fclose() says so: a later, smaller write may fit again, and the text has a gap.
 */
#ifndef BASE_MEMFILE_H
#define BASE_MEMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct memfile {
	FILE *out; /* to write to; NULL: there was no memory for it */
	char *bytes;
	size_t n, at, capacity; /* at: where the next byte goes */
	bool cut;               /* something was lost */
};

/* m stays where it is until memfile_take. False: no memory; memfile_take may be called, and gives NULL. */
bool memfile_open(struct memfile *m);
/* Closes the stream. All that was written, with a 0 behind it, to be freed; NULL: no memory for all of it. n may be
 * NULL. */
char *memfile_take(struct memfile *m, size_t *n);

#endif
