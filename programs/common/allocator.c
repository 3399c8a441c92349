/* programs/common/allocator.c - jemalloc as the programs want it: as quick as it is, and without its crashes where
 * memory is short.
 *
 * A jemalloc thread cache is memory too. When a thread begins and there is none for its cache, jemalloc takes no notice
 * and the thread's next malloc() reads address 0; a thread whose arena cannot be made ends the same way. So no thread
 * gets either by itself (malloc_conf). While the program is still one thread, an arena for everybody is made, and arena
 * 0, where jemalloc takes caches from, sets room for many aside and never gives it back. A thread that begins then has
 * its cache from there. When the room could not be had, or too many threads are there already, it goes without: slower,
 * and a malloc() without memory returns NULL.
 */
#include "programs/common/allocator.h"

#ifndef HAVE_JEMALLOC

#include <malloc.h>

void allocator_begin(void) {}

void allocator_give_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

#else

#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/host/system.h"

/* jemalloc looks for this name before main() begins. */
const char *malloc_conf = "narenas:1,tcache:false";

enum {
	CACHES_MAX = 64,
	CACHE_BYTES = 40 << 10
}; /* a cache takes 28 KiB; the rest is for what threads ask for before they have one */

static unsigned arena;
static pthread_key_t ending;
static _Atomic int caches;

static bool set(const char *name, void *value, size_t size) { return mallctl(name, NULL, NULL, value, size) == 0; }

static bool use_cache(bool use) { return set("thread.tcache.enabled", &use, sizeof use); }

static void thread_ends(void *unused)
{
	use_cache(false);
	atomic_fetch_sub(&caches, 1);
}

static void thread_begins(void)
{
	if (!set("thread.arena", &arena, sizeof arena))
		return;
	if (atomic_fetch_add(&caches, 1) < CACHES_MAX && pthread_setspecific(ending, &arena) == 0 && use_cache(true))
		return;
	atomic_fetch_sub(&caches, 1);
}

/* Room for caches, left with arena 0. */
static bool set_aside(void)
{
	ssize_t never = -1;
	void *room;

	if (!set("arena.0.dirty_decay_ms", &never, sizeof never))
		return false;
	room = mallocx((size_t)CACHES_MAX * CACHE_BYTES, MALLOCX_ARENA(0) | MALLOCX_TCACHE_NONE);
	if (!room)
		return false;
	dallocx(room, MALLOCX_TCACHE_NONE);
	return true;
}

void allocator_begin(void)
{
	size_t n = sizeof arena;

	if (mallctl("arenas.create", &arena, &n, NULL, 0) != 0 || !set_aside() ||
	    pthread_key_create(&ending, thread_ends) != 0)
		return;
	system_thread_begins = thread_begins;
	thread_begins();
}

void allocator_give_back(void)
{
	char name[40];

	snprintf(name, sizeof name, "arena.%u.purge", arena);
	if (arena)
		mallctl(name, NULL, NULL, NULL, 0);
}

#endif
