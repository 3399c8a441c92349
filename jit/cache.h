/* jit/cache.h - code objects on disk.
 *
 * Owns: one directory, one file per key: a fixed header, the whole key, a zstd body, a checksum over everything. Written to a temporary file,
 * fsync, rename. Anything wrong with an entry (cut, flipped bit, another key's content, another version) is a counted miss, never an error
 * and never executed; the entry is then rewritten. Safe among processes. A directory owned by someone else or writable by others is refused.
 */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include "jit/compile.h"

struct cache;
/* damaged: the misses that found something, and could not use it. */
struct cache_counters { uint64_t hits, misses, damaged, stored, store_failed; };

/* Opens (creates, mode 0700) a cache directory. NULL and err on refusal. */
struct cache *cache_open(const char *dir, struct error *err);
/* $XDG_CACHE_HOME/jitrun or ~/.cache/jitrun into out; false when neither is set. */
bool cache_default_dir(char *out, size_t cap);
void cache_close(struct cache *c);
bool cache_load(struct cache *c, const struct key *key, struct object *out);           /* false: miss */
void cache_store(struct cache *c, const struct key *key, const struct object *o);      /* failure is counted, not reported */
void cache_count(const struct cache *c, struct cache_counters *out);

#endif
