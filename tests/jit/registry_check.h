/* tests/jit/registry_check.h - what the tests of the registry share: builds that are counted, and functions that are
 * asked for. */
#ifndef TESTS_JIT_REGISTRY_CHECK_H
#define TESTS_JIT_REGISTRY_CHECK_H

#include <stdint.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"

extern _Atomic unsigned builds, inside, max_inside, callers;
extern _Atomic bool fail_builds;
extern _Atomic unsigned hold_until_callers; /* a build_counted goes on once so many threads have begun to ask */
;
extern _Atomic unsigned hold_until_builds; /* a build_counted goes on once so many have begun, or after a long time */
;
/* A kernel that stores the key's rows as f32 where its first argument points. */
bool build_counted(struct ir *ir, const struct key *key, const struct target *target, struct error *err);
struct key make_key(uint32_t n);
bool is_native(void);
struct registry *open_registry(struct cache *cache);
struct registry_counters count_code(struct registry *r);
/* Calls the kernel when this machine can. */
bool does_its_work(const struct kernel *k);
extern char registry_dir[24];
int make_dir(void **unused);
int remove_dir(void **unused);

/* The tests of the other files of the program: the number that failed. */
int registry_disk_tests(void);

#endif
