/* jit/store/cache_state.h - what the files of the search path share. */
#ifndef JIT_STORE_CACHE_STATE_H
#define JIT_STORE_CACHE_STATE_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "jit/store/cache.h"

struct source {
	char *path;
	struct cache_dir *dir; /* or */
	struct pack *pack;
	_Atomic uint64_t hits, misses, damaged, failed, stored, store_failed, evicted;
};

struct cache {
	struct source source[CACHE_MAX_SOURCES];
	unsigned n;
	struct source *sink; /* receives what is new; NULL: none */
	_Atomic uint64_t hits, misses, unstored;
	atomic_flag store_failing;  /* taken by the first store that fails, */
	struct error store_trouble; /* which says why, */
	_Atomic bool has_trouble;   /* before this is set */
};

#endif
