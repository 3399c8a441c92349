/* jit/store/safefile.h - reading and replacing the files that hold code: who may have written them, and that they are
 * there whole or not at all.
 *
 * Owns: the rule of trust (jit/store/cache.h gives its reasons), the order write, fsync, rename, and what is known of
 * temporary files whose writers died. Knows nothing of what is in the files.
 */
#ifndef JIT_SAFEFILE_H
#define JIT_SAFEFILE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Whether only the effective user and root can have written it. what and name are for the sentence: "the pack file",
 * "\"x.jkp\"". err may be NULL. */
bool safefile_trusted(const struct stat *st, const char *what, const char *name, struct error *err);
/* The same rule for a user who is known already, and nothing said. */
bool safefile_safe(const struct stat *st, uid_t user);
/* n bytes at an offset; false: the system refuses (errno), or fewer are there (errno is 0). */
bool safefile_read(int fd, void *out, size_t n, off_t at);

struct safefile_part {
	const void *bytes;
	size_t n;
};
enum safefile_step { SAFEFILE_DONE, SAFEFILE_CREATE, SAFEFILE_WRITE, SAFEFILE_SYNC, SAFEFILE_RENAME };
/* False: there is a device, a pipe or a socket of that name, which a file that a user names must not take the place of.
 * Directories are left to rename(). */
bool safefile_replaceable(int dir, const char *name);
/* Makes name (200 bytes at most) in directory dir hold the parts, through a temporary file
 * ".NAME-PROCESS-NUMBER-TIME.tmp" that is locked while it is written and gone afterwards. Readers see the old file or
 * the new one, whole. The directory is not synced: a rename that a power cut undoes is a file that is not there.
 * Nothing is begun that would go beyond this process's limit on the size of files (EFBIG): to write beyond it would
 * also be a signal. What failed, errno kept. */
enum safefile_step safefile_replace(int dir, const char *name, mode_t mode, const struct safefile_part *part,
                                    int n_parts);
/* The same of a file that is too large for that, or written in no order: begin, write to fd, then commit or abandon.
 * dir and name must live as long; a failed commit has abandoned. */
struct safefile {
	int dir, fd;
	const char *name;
	char temporary[256];
};
enum safefile_step safefile_begin(struct safefile *f, int dir, const char *name, mode_t mode);
enum safefile_step safefile_commit(struct safefile *f);
void safefile_abandon(struct safefile *f);
/* The directory that a path is in, as a descriptor; *name is the rest of the path, of 1 to 200 bytes; quoted: the path
 * for sentences. -1: err, with what, as "the pack file",
 * which is also said of what is not replaceable. */
int safefile_directory(const char *path, const char *what, const char **name, char quoted[256], struct error *err);
/* The sentence for it: "cannot sync the pack file "x.jkp": ...". Returns false. */
bool safefile_failed(enum safefile_step step, const char *what, const char *name, struct error *err);
/* Whether so many bytes are within this process's limit on the size of files; otherwise errno is EFBIG. */
bool safefile_may_grow_to(uint64_t bytes);
/* The same for n bytes more at the end of an open file. What is no regular file has no such limit. */
bool safefile_may_grow_by(int fd, uint64_t n);
/* A stream that writes a file anew; NULL: errno. What would go beyond the limit is not written, and is a failed write
 * of the stream (EFBIG) instead of a signal. */
FILE *safefile_stream(const char *path);

extern const char safefile_temporary[]; /* how the names of temporary files end */
/* Whether a temporary file's writer is dead: it is a few seconds old, and nobody holds its lock; an hour, where there
 * are no locks. */
bool safefile_abandoned(int dir, const char *name, const struct stat *st);
/* Removes the abandoned temporary files of one name. */
void safefile_sweep(int dir, const char *name);

/* Whether an error is a shortage of this process or machine, such as of memory or descriptors, and so says nothing of
 * the file. */
bool safefile_shortage(int why);

#endif
