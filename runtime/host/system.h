/* runtime/host/system.h - what this machine lets the process use: cores, memory, large buffers.
 *
 * Owns: the answers (affinity, cgroup quota, free memory) and large zero-filled mappings. No policy.
 */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* One thread for each core this process may use: cores in the affinity mask (one per physical core), at most the cgroup
 * CPU quota rounded up. */
int system_default_threads(void);

/* What that is made of. */
struct system_cores {
	int cores;    /* physical ones in the affinity mask; 0: the system does not say */
	int cpus;     /* hardware threads in it */
	double quota; /* of the cgroup, in CPUs; 0: none */
};
struct system_cores system_cores(void);

/* Bytes of the caches farthest from the cores, of the whole machine; 0: the system does not say. */
uint64_t system_cache_bytes(void);

/* What the cgroup's memory limit is, whatever of it is used; UINT64_MAX: none. */
uint64_t system_memory_limit(void);

/* Bytes that can still be had: the smaller of MemAvailable and what the cgroup's memory limit leaves. Without /proc,
 * unused memory stands for MemAvailable. UINT64_MAX when unknown. */
uint64_t system_available_memory(void);

/* Zero-filled pages, huge ones where the system agrees, aligned to 2 MiB when large. NULL when refused. Untouched pages
 * cost no memory. */
void *system_map(size_t bytes);
void system_unmap(void *p, size_t bytes);
/* Bytes that were asked for and not given back. */
uint64_t system_mapped_bytes(void);

/* For programs, not for the library, whose host's signals are not its own: writing beyond the limit on the size of
 * files (ulimit -f) is an error from now on, and not the end. */
void system_file_limit_is_error(void);
/* The same of pages of a mapped file that are gone, because it was cut or its disk fails: one sentence and status 1
 * instead of a signal. program: its name, kept. */
void system_lost_pages_are_error(const char *program);

double system_seconds(void); /* monotonic */

/* Every thread of the runtime calls this first. A program whose allocator wants to know of threads sets the function
 * before it opens a model. */
void system_thread_began(void);
/* Starts a thread that nobody joins. Returns 0, or a value of errno. */
int system_thread_start(void *(*run)(void *user), void *user);
/* The calling thread's niceness, 0 to 19: the higher, the less it gets of a core that other threads want, too. It never
 * falls. */
void system_thread_set_niceness(int niceness);
extern void (*system_thread_begins)(void);

#endif
