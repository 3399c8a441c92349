/* runtime/model/weight_cache.h - weights of GGUF and safetensors files kept packed between runs, so that the next one
 * maps them.
 *
 * Owns: a directory of packed models that hold weights alone, one for each set of files and layout; which of them
 * belongs to the files that are there now; the limit on their size. The texts of a model are always its own files'.
 *
 * An entry is for files of certain sizes, times of change, places on a disk and headers, and for what a few KiB of each
 * tensor were. So a file that changed has no entry, and the old one goes when room is needed: the least recently used
 * first, by the time of last access, which opening sets. What a living process maps stays.
 */
#ifndef RUNTIME_WEIGHT_CACHE_H
#define RUNTIME_WEIGHT_CACHE_H

#include "jit/store/container.h"
#include "jit/target.h"
#include "loaders/model/model.h"
#include "runtime/host/pool.h"

enum { WEIGHT_CACHE_DEFAULT_GIB = 64 };

struct weight_cache_options {
	const char *dir;      /* made when it is missing */
	uint64_t limit_bytes; /* 0: WEIGHT_CACHE_DEFAULT_GIB */
	bool read_only;       /* nothing is made or removed */
	int (*progress)(void *user, uint64_t done, uint64_t total);
	void *user;
};

/* $JITRUN_WEIGHT_CACHE, or $XDG_CACHE_HOME/jitrun-weights, or ~/.cache/jitrun-weights; false when none is set. */
bool weight_cache_default(char *out, size_t cap);

/* The entry of a model for a target, made when it is not there; in use until container_close(). NULL and err.code 0:
 * there is none, and why says what stood in the way. NULL and err: the directory is dangerous, the model's files cannot
 * be read, or progress said to stop. */
struct container *weight_cache_get(const struct weight_cache_options *o, const struct model *m, const struct target *t,
                                   struct pool *pool, struct error *why, struct error *err);

struct weight_cache_item {
	const char *name; /* of its file */
	uint64_t bytes;
	struct timespec used;
};
/* The entries of a directory, the least recently used first; none where there is no directory. False: err. */
bool weight_cache_each(const char *dir, void (*visit)(const struct weight_cache_item *i, void *user), void *user,
                       struct error *err);
/* Removes what this version cannot open, what dead writers left, and what was used longest ago until the rest is within
 * the limit; but nothing that is in use. False: err. */
struct weight_cache_gc {
	uint64_t entries, bytes, removed, removed_bytes, in_use; /* entries, bytes: left */
};
bool weight_cache_gc(const char *dir, uint64_t limit, struct weight_cache_gc *out, struct error *err);

#endif
