/* jit/store/registry_state.h - what the files of the registry share: its table and what they do with entries. */
#ifndef JIT_STORE_REGISTRY_STATE_H
#define JIT_STORE_REGISTRY_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "jit/store/registry.h"
#include "jit/store/execmem.h"

enum entry_state { ENTRY_IDLE, ENTRY_BUILDING, ENTRY_READY };

struct entry {
	struct kernel kernel;     /* .key is set before the entry is in a table */
	_Atomic int state;        /* enum entry_state; changed with the lock held */
	enum record_answer known; /* ABSENT, DAMAGED: registry_load saw that, and the next attempt need not look;
	                             FAILED: nothing is known */
	uint64_t attempts;        /* finished ones; with the lock */
	struct error failure;     /* of the last failed attempt; with the lock */
	pthread_cond_t done;
};

struct table {
	struct table *older; /* readers may still be probing it: kept to the end */
	size_t mask;
	_Atomic(struct entry *) slot[];
};

struct registry {
	struct registry_options opt;
	struct target_cpu cpu;
	struct execmem *pages;
	pthread_mutex_t lock; /* adding to the table, entry states, attempts, failures, frozen */
	bool frozen;
	pthread_mutex_t dump_lock; /* one kernel's dump at a time */
	pthread_mutex_t kept_lock; /* the three below */
	struct key *kept;
	size_t n_kept;
	bool kept_listed; /* sealed: what the cache has, listed for the first refusal */
	_Atomic(struct table *) table;
	size_t entries;
	_Atomic uint64_t count[KERNEL_SOURCE_COUNT], generated_ns, from_disk_ns, code_bytes;
};

/* --- registry.c */

uint64_t registry_now_ns(void);
/* With the lock: the entry of key, made when there is none. NULL: no memory. */
struct entry *registry_entry_claim(struct registry *r, const struct key *key, uint64_t hash);
/* False where code is dumped: cached kernels are then generated again. */
bool registry_can_load(const struct registry *r);
enum kernel_source registry_source_of(const struct registry *r, unsigned number);
/* Where its code is in memory now; NULL for targets this machine cannot run. */
void registry_set_code(struct registry *r, struct kernel *k, void *code);
bool registry_runs_here(const struct registry *r, const struct kernel *k);
void registry_count_kernel(struct registry *r, struct kernel *k, uint64_t nanoseconds);
bool registry_key_is_usable(const struct key *key, struct error *err);

#endif
