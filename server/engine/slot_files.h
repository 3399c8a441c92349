/* server/engine/slot_files.h - how many files clients may save, and how large.
 *
 * Owns: the limits on the folder of --slot-save, of which every file counts, whatever its origin. No file is removed
 * for another one: what is not wanted any more its owner takes away.
 */
#ifndef SERVER_SLOT_FILES_H
#define SERVER_SLOT_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct slot_limits {
	long files;     /* 0: any number */
	uint64_t bytes; /* of all together; 0: any */
};

enum { SLOT_FILES_WHY = 300 };

/* Whether a file of that path and size has room beside the others; one of its name is replaced. bytes 0: it is not
 * known yet. False: why, a sentence without paths. */
bool slot_files_fit(const char *path, uint64_t bytes, const struct slot_limits *l, char why[SLOT_FILES_WHY]);
/* Puts a file that was written beside it in the place of that path, if it fits; else it is removed. */
bool slot_files_put(const char *written, const char *path, const struct slot_limits *l, char why[SLOT_FILES_WHY]);
/* Where it is to be written first: no client can name that. malloc'ed; NULL: no memory. */
char *slot_files_beside(const char *path);

#endif
