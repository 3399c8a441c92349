/* jit/store/cache_lock.h - which entries of a cache directory are in use: read locks of open file descriptions on bytes
 * of its file "lock".
 *
 * Owns: that file. An entry's byte is the one of its file's number, because files that were made together have
 * neighbouring numbers: the system keeps such locks as one, and hundreds of single ones would be searched for each one
 * more. Who comes to have a dead file's number is held too, which harms nobody; who replaces a file takes away from
 * others' locks what they hold, but they have loaded it.
 */
#ifndef JIT_CACHE_LOCK_H
#define JIT_CACHE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

uint64_t cache_lock_number(const struct stat *st);

/* In the directory of this descriptor, to hold entries as long as what this returns is open. -1: errno. */
int cache_lock_open(int dir);
/* Sorts file. */
void cache_lock_hold(int fd, uint64_t *file, size_t n);

/* Opened for the question what is held, as locks do not stand in the way of those who took them. -1: nobody has locked
 * anything; -2: who has is not to be known now. */
int cache_lock_look(int dir);
/* look: what that gave. */
bool cache_lock_held(int look, uint64_t file);

#endif
