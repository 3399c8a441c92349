#include "runtime/host/system.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

void system_file_limit_is_error(void) { signal(SIGXFSZ, SIG_IGN); }

double system_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool read_line(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(out, (int)cap, f) != NULL;
	fclose(f);
	return ok;
}

/* This process's own cgroup (version 2): the path after "0::" . */
static bool cgroup_path(char *out, size_t cap)
{
	char line[512];
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof line, f)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		found = snprintf(out, cap, "/sys/fs/cgroup%s", line + 3) < (int)cap;
	}
	fclose(f);
	return found;
}

/* Walks from the own cgroup up to the root, giving each directory's file to `see`; limits of parents bind too. */
static void cgroup_walk(const char *file, void (*see)(const char *line, const char *dir, void *), void *user)
{
	char dir[600], path[700], line[128];

	if (!cgroup_path(dir, sizeof dir))
		return;
	for (;;) {
		snprintf(path, sizeof path, "%s/%s", dir, file);
		if (read_line(path, line, sizeof line))
			see(line, dir, user);
		char *slash = strrchr(dir, '/');
		if (!slash || strlen(dir) <= strlen("/sys/fs/cgroup"))
			return;
		*slash = 0;
	}
}

static void see_quota(const char *line, const char *dir, void *user)
{
	double quota, period, *best = user;
	(void)dir;
	if (sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 && quota / period < *best)
		*best = quota / period;
}

/* Lowest-numbered sibling of a CPU: equal for the hardware threads of one core. */
static int core_of(int cpu)
{
	char path[128], line[64];
	int first;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	return read_line(path, line, sizeof line) && sscanf(line, "%d", &first) == 1 ? first : cpu;
}

int system_default_threads(void)
{
	cpu_set_t *set = NULL;
	int cpus = 1024, cores = 0;
	double quota = 1e9;

	for (; cpus <= 1 << 16; cpus *= 2) { /* the kernel's mask may be larger than cpu_set_t */
		set = CPU_ALLOC((size_t)cpus);
		if (!set)
			return 1;
		if (sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) == 0)
			break;
		CPU_FREE(set);
		set = NULL;
	}
	if (!set)
		return 1;
	unsigned char *seen = calloc((size_t)cpus, 1);
	for (int i = 0; i < cpus; i++) {
		if (!CPU_ISSET_S(i, CPU_ALLOC_SIZE(cpus), set))
			continue;
		int core = core_of(i);
		if (seen && core >= 0 && core < cpus && seen[core]++)
			continue;
		cores++;
	}
	free(seen);
	CPU_FREE(set);
	cgroup_walk("cpu.max", see_quota, &quota);
	char a[64], b[64];
	if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", a, sizeof a) &&
	    read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", b, sizeof b) && atof(a) > 0 && atof(b) > 0 &&
	    atof(a) / atof(b) < quota)
		quota = atof(a) / atof(b);
	if (quota < cores)
		cores = (int)quota + (quota > (int)quota);
	return cores < 1 ? 1 : cores;
}

static void see_memory(const char *line, const char *dir, void *user)
{
	uint64_t *best = user, max, used;
	char path[700], now[64];
	if (sscanf(line, "%lu", &max) != 1)
		return;
	snprintf(path, sizeof path, "%s/memory.current", dir);
	if (!read_line(path, now, sizeof now) || sscanf(now, "%lu", &used) != 1)
		used = 0;
	uint64_t left = used < max ? max - used : 0;
	if (left < *best)
		*best = left;
}

uint64_t system_available_memory(void)
{
	uint64_t best = UINT64_MAX, kib;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			best = kib * 1024;
	if (f)
		fclose(f);
	cgroup_walk("memory.max", see_memory, &best);
	return best;
}

void *system_map(size_t bytes)
{
	size_t extra = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
	if (bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	char *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (extra) { /* cut to the alignment that huge pages need */
		size_t head = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
		if (head)
			munmap(p, head);
		p += head;
		size_t page = (size_t)sysconf(_SC_PAGESIZE), keep = (bytes + page - 1) / page * page;
		if (head + keep < bytes + extra)
			munmap(p + keep, bytes + extra - head - keep);
		madvise(p, keep, MADV_HUGEPAGE);
	}
	return p;
}

void system_unmap(void *p, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (p)
		munmap(p, (bytes + page - 1) / page * page);
}

void (*system_thread_begins)(void);

void system_thread_began(void)
{
	if (system_thread_begins)
		system_thread_begins();
}
