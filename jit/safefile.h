/* jit/safefile.h - reading and replacing the files that hold code: who may have written them, and that they are there whole or not at all.
 *
 * Owns: the rule of trust (jit/cache.h gives its reasons) and the order write, fsync, rename. Knows nothing of what is in the files.
 */
#ifndef JIT_SAFEFILE_H
#define JIT_SAFEFILE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Whether only the effective user and root can have written it. what and name are for the sentence: "the pack file", "\"x.jkp\"". err may be NULL. */
bool safefile_trusted(const struct stat *st, const char *what, const char *name, struct error *err);
/* The same rule for a user who is known already, and nothing said. */
bool safefile_safe(const struct stat *st, uid_t user);
/* n bytes at an offset; false: fewer are there, or the system refuses. */
bool safefile_read(int fd, void *out, size_t n, off_t at);

struct safefile_part { const void *bytes; size_t n; };
enum safefile_step { SAFEFILE_DONE, SAFEFILE_CREATE, SAFEFILE_WRITE, SAFEFILE_SYNC, SAFEFILE_RENAME };
/* Makes name in directory dir hold the parts, through a file named temporary, which is gone afterwards. Readers see the old file or the new one, whole. The directory is
 * not synced: a rename that a power cut undoes is a file that is not there. What failed, errno kept. */
enum safefile_step safefile_replace(int dir, const char *name, const char *temporary, mode_t mode, const struct safefile_part *part, int n_parts);

#endif
