/* jit/store/cache_dir.h - one directory of a cache: entries, the file of locks, eviction. For jit/store/cache.c alone.
 *
 * Owns: the files of one directory. An entry is "HASH.jko": 8 bytes of magic, the version, the bytes of a record, a
 * record (jit/store/record.h), its body.
 */
#ifndef JIT_CACHE_DIR_H
#define JIT_CACHE_DIR_H

#include "jit/store/cache.h"
#include "jit/store/record.h"

enum { CACHE_ENTRY_PREFACE = 16, CACHE_ENTRY_HEADER = CACHE_ENTRY_PREFACE + RECORD_BYTES };

struct cache_dir;
struct cache_dir *cache_dir_open(const char *path, const struct cache_options *opt, struct error *err);
void cache_dir_close(struct cache_dir *d);
bool cache_dir_writable(const struct cache_dir *d);

/* RECORD_FAILED: err, which may be NULL. *file is the entry's, for cache_dir_hold: a load alone holds nothing. */
enum record_answer cache_dir_load(struct cache_dir *d, const struct key *key, struct object *out, uint64_t *file,
                                  struct error *err);
/* Entries that were loaded are in use from now on; sorts file. */
void cache_dir_hold(struct cache_dir *d, uint64_t *file, size_t n);
/* *evicted grows by what had to go. */
bool cache_dir_store(struct cache_dir *d, const struct key *key, const struct object *o, uint64_t *evicted,
                     struct error *err);

/* Every file that looks like an entry, read and checked; unsorted; free(). item.source is left 0. */
bool cache_dir_list(struct cache_dir *d, struct cache_item **items, size_t *n, struct error *err);
/* The code of an entry that was listed. */
enum record_answer cache_dir_read(struct cache_dir *d, const struct cache_item *item, struct object *out,
                                  struct error *err);
/* Takes a listed entry away. True when it is gone. */
bool cache_dir_remove(struct cache_dir *d, const struct cache_item *item, struct error *err);
bool cache_dir_remove_key(struct cache_dir *d, const struct key *key, bool *was_there, struct error *err);
bool cache_dir_size(struct cache_dir *d, uint64_t *bytes, uint64_t *entries, struct cache_leftovers *left,
                    struct error *err);
bool cache_dir_gc(struct cache_dir *d, uint64_t limit, struct cache_gc *out, struct error *err);

#endif
