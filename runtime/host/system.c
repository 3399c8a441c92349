#include "runtime/host/system.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, CPUS_MAX = 1 << 16, FAREST_CACHE = 4 /* of sysfs's numbers */ };
#define NO_QUOTA 1e9

void system_file_limit_is_error(void) { signal(SIGXFSZ, SIG_IGN); }

static char lost_pages[160];

static void on_lost_pages(int sig, siginfo_t *info, void *context)
{
	if (info->si_code != BUS_ADRERR && info->si_code != BUS_OBJERR) {
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	if (write(STDERR_FILENO, lost_pages, strlen(lost_pages)) < 0)
		_exit(2);
	_exit(1);
}

void system_lost_pages_are_error(const char *program)
{
	struct sigaction on_bus = { .sa_sigaction = on_lost_pages, .sa_flags = SA_SIGINFO };

	snprintf(lost_pages, sizeof lost_pages,
	         "%s: a packed model in use was cut short, or cannot be read from its disk.\n", program);
	sigaction(SIGBUS, &on_bus, NULL);
}

double system_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Without a stream, which takes memory: how many threads there are must not depend on whether there is some. */
static bool read_text(const char *path, char *out, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, cap - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Its first line. */
static bool read_line(const char *path, char *out, size_t cap)
{
	bool ok = read_text(path, out, cap);

	out[strcspn(out, "\n")] = 0;
	return ok;
}

/* This process's own cgroup (version 2): the path after "0::" . */
static bool cgroup_path(char *out, size_t cap)
{
	char text[4096];

	if (!read_text("/proc/self/cgroup", text, sizeof text))
		return false;
	const char *at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!at)
		return false;
	at = strstr(at, "0::") + 3;
	return snprintf(out, cap, "/sys/fs/cgroup%.*s", (int)strcspn(at, "\n"), at) < (int)cap;
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

/* Of a CPU's cache that is farthest from it: its bytes, and the first of the CPUs that share it. */
static bool far_cache(int cpu, uint64_t *bytes, int *first)
{
	char path[128], size[64], shared[64], unit = 0;

	for (int i = FAREST_CACHE; i >= 0; i--) {
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, i);
		if (!read_line(path, size, sizeof size) || sscanf(size, "%" SCNu64 "%c", bytes, &unit) < 1)
			continue;
		*bytes <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, i);
		*first = read_line(path, shared, sizeof shared) && isdigit((unsigned char)*shared) ? atoi(shared) : cpu;
		return true;
	}
	return false;
}

uint64_t system_cache_bytes(void)
{
	uint64_t sum = 0, bytes;

	for (int cpu = 0, first; cpu < CPUS_MAX && far_cache(cpu, &bytes, &first); cpu++)
		sum += first == cpu ? bytes : 0;
	return sum;
}

/* The kernel's mask may be larger than a cpu_set_t. */
struct cpus {
	unsigned long bit[CPUS_MAX / (8 * sizeof(unsigned long))];
};

static bool take(struct cpus *set, int cpu)
{
	unsigned long *word = &set->bit[(size_t)cpu / (8 * sizeof *word)],
		      bit = 1ul << (size_t)cpu % (8 * sizeof *word);
	bool was = *word & bit;

	*word |= bit;
	return !was;
}

/* Without bounds: more than any machine has. */
static double cgroup_quota(void)
{
	double quota = NO_QUOTA;
	char a[64], b[64];

	cgroup_walk("cpu.max", see_quota, &quota);
	if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", a, sizeof a) &&
	    read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", b, sizeof b) && atof(a) > 0 && atof(b) > 0 &&
	    atof(a) / atof(b) < quota)
		quota = atof(a) / atof(b);
	return quota;
}

/* Nothing is allocated for it, for the same reason as in read_line(). */
struct system_cores system_cores(void)
{
	struct cpus own = { { 0 } }, seen = { { 0 } };
	struct system_cores c = { 0 };
	double quota = cgroup_quota();

	c.quota = quota < NO_QUOTA ? quota : 0;
	if (sched_getaffinity(0, sizeof own, (cpu_set_t *)own.bit) != 0)
		return c;
	for (int i = 0; i < CPUS_MAX; i++) {
		if (!CPU_ISSET_S(i, sizeof own, (cpu_set_t *)own.bit))
			continue;
		int core = core_of(i);
		c.cores += core < 0 || core >= CPUS_MAX || take(&seen, core);
		c.cpus++;
	}
	return c;
}

int system_default_threads(void)
{
	const struct system_cores c = system_cores();
	int n = c.quota > 0 && c.quota < c.cores ? (int)c.quota + (c.quota > (int)c.quota) : c.cores;

	return n < 1 ? 1 : n;
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

static void see_limit(const char *line, const char *dir, void *user)
{
	uint64_t *best = user, max;

	(void)dir;
	if (sscanf(line, "%lu", &max) == 1 && max < *best)
		*best = max;
}

uint64_t system_memory_limit(void)
{
	uint64_t best = UINT64_MAX;

	cgroup_walk("memory.max", see_limit, &best);
	return best;
}

/* Where /proc is not mounted, as in a bare root: without what the page cache could give back. */
static uint64_t unused_memory(void)
{
	struct sysinfo all;

	return sysinfo(&all) == 0 ? (uint64_t)(all.freeram + all.bufferram) * all.mem_unit : UINT64_MAX;
}

uint64_t system_available_memory(void)
{
	uint64_t best = unused_memory(), kib;
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

static _Atomic uint64_t mapped;

uint64_t system_mapped_bytes(void) { return atomic_load(&mapped); }

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
	atomic_fetch_add(&mapped, bytes);
	return p;
}

void system_unmap(void *p, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (!p)
		return;
	munmap(p, (bytes + page - 1) / page * page);
	atomic_fetch_sub(&mapped, bytes);
}

void (*system_thread_begins)(void);

void system_thread_began(void)
{
	if (system_thread_begins)
		system_thread_begins();
}

int system_thread_start(void *(*run)(void *user), void *user)
{
	pthread_attr_t detached;
	pthread_t thread;
	int why = pthread_attr_init(&detached);

	if (why)
		return why;
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	why = pthread_create(&thread, &detached, run, user);
	pthread_attr_destroy(&detached);
	return why;
}

/* On Linux a thread has a niceness of its own, and 0 names the calling one. */
void system_thread_set_niceness(int niceness)
{
	if (getpriority(PRIO_PROCESS, 0) < niceness)
		setpriority(PRIO_PROCESS, 0, niceness);
}
