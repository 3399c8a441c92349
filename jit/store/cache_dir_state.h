/* jit/store/cache_dir_state.h - what the files of one cache directory share. */
#ifndef JIT_STORE_CACHE_DIR_STATE_H
#define JIT_STORE_CACHE_DIR_STATE_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "jit/store/cache_dir.h"
#include "jit/store/safefile.h"

enum {
	TOUCH_SECONDS = 60, /* an entry's last use is written down no more often */
	NAME_BYTES = 24,
	NEAR_BYTES = 16384, /* a file of this size is read without asking for memory */
	MAX_FILE = CACHE_ENTRY_HEADER + RECORD_MAX_BODY,
};
static const char entry_magic[8] = "jitr\nko";
static const char entry_suffix[] = ".jko";

struct cache_dir {
	const char *path; /* borrowed */
	int fd;
	bool writable;
	uid_t user; /* who opened it, and is trusted besides root */
	uint64_t limit;
	_Atomic int lock_fd;  /* -1: not opened yet; -2: cannot be */
	pthread_mutex_t lock; /* the two below, and one eviction at a time */
	bool measured;
	uint64_t room; /* bytes that may be stored before the directory is measured again */
};

/* What a directory says of a file, without opening it. */
struct found {
	char name[NAME_BYTES];
	uint64_t bytes, file;
	int64_t last_use;
};

/* A whole file: in room, or in memory of its own. */
struct whole {
	uint8_t *bytes;
	size_t n;
	struct stat st;
	uint8_t room[NEAR_BYTES];
};

/* --- cache_dir_read.c */

void cache_dir_whole_free(struct whole *w);
/* A whole file into memory: FOUND says that there may be an entry in it. FAILED: errno. *trouble, for a person, unless
 * it is found or absent. using: it counts as a use. */
enum record_answer cache_dir_read_entry(const struct cache_dir *d, const char *name, bool using, struct whole *w,
                                        const char **trouble);
/* What is wrong with an entry's bytes, or NULL. r is filled when that is not the version. */
const char *cache_dir_entry_trouble(const uint8_t *p, size_t n, struct record *r);

/* --- cache_dir_scan.c */

/* With d->lock, after n bytes were stored. The directory is measured at first, and again before it can have outgrown
 * its limit: others store too. */
void cache_dir_keep_limit(struct cache_dir *d, uint64_t stored, uint64_t *evicted);

/* --- cache_dir.c */

void cache_dir_entry_name(const struct key *key, char out[NAME_BYTES]);
bool cache_dir_is_entry_name(const char *name);

#endif
