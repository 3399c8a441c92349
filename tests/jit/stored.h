/* tests/jit/stored.h - numbered objects for tests of what is kept on disk: the key and the object of a number follow
 * from it, so that what comes back can be judged. */
#ifndef TESTS_STORED_H
#define TESTS_STORED_H

#include "jit/store/cache.h"
#include "tests/jit/stored_sum.h"

enum { STORED_OTHER_USER = 65534 };

extern char stored_dir[128]; /* of the test that runs; not made yet when it begins */

/* For cmocka: a directory for the program and, in it, a name for each test. */
int stored_make_base(void **unused);
int stored_remove_base(void **unused);
int stored_fresh(void **unused);

struct key stored_key(uint32_t n);
struct object stored_object(uint32_t n); /* object_free */
bool stored_same(const struct object *a, const struct object *b);

void stored_store(struct cache *c, uint32_t n);
int stored_load(struct cache *c, uint32_t n); /* 1: loaded and right; 0: missed; -1: loaded and wrong */
struct cache_counters stored_count(const struct cache *c);
struct cache *stored_open(const char *path, uint64_t limit); /* fails the test when it cannot */
void stored_entry_path(uint32_t n, char out[256]);           /* in stored_dir */

size_t stored_read_file(const char *path, uint8_t *out, size_t cap);
void stored_write_file(const char *path, const uint8_t *bytes, size_t n);
unsigned stored_files(const char *suffix);           /* in stored_dir */
void stored_set_age(const char *path, long seconds); /* how long ago it was written; negative: in the future */

/* Runs steps in a child, as another user when as_other; returns what it returned, 100 and more: it died of a signal. */
int stored_in_child(int (*steps)(void *), void *user, bool as_other);

#endif
