/* jit/store/execmem.c - pages that run generated code, and the names profilers give them.
 *
 * Owns: the only mmap and mprotect of executable memory. A page is writable, then executable, never both and never
 * writable
 * again: code that must change is mapped anew.
 */
#include "jit/store/execmem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/store/safefile.h"

/* Some processes may not have such pages at all, which their owner may not know of. */
static bool not_executable(size_t n, int why, struct error *err)
{
	bool forbidden = why == EACCES || why == EPERM;

	return error_set(err, ERROR_MEMORY, "cannot make %zu bytes of generated code executable: %s%s", n,
	                 strerror(why),
	                 forbidden ? "; where the system forbids that (PR_SET_MDWE, MemoryDenyWriteExecute, SELinux), "
	                             "--device ref computes without generated code"
	                           : "");
}

void *execmem_map(const void *code, size_t n, struct error *err)
{
	assert(n > 0);
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		error_set(err, ERROR_MEMORY, "cannot map %zu bytes for generated code: %s", n, strerror(errno));
		return NULL;
	}
	memcpy(p, code, n);
	if (mprotect(p, n, PROT_READ | PROT_EXEC)) {
		not_executable(n, errno, err);
		munmap(p, n);
		return NULL;
	}
	return p;
}

void execmem_unmap(void *p, size_t n)
{
	if (p)
		munmap(p, n);
}

/* --- many */

enum { CHUNK_BYTES = 128 << 10, BLOCK_ALIGN = 64 };

struct chunk {
	struct chunk *next;
	uint8_t *base;
	size_t bytes, used;
};
struct execmem {
	pthread_mutex_t lock;
	struct chunk *chunk;
	size_t page;
};

struct execmem *execmem_open(struct error *err)
{
	struct execmem *m = calloc(1, sizeof *m);

	if (!m) {
		error_set(err, ERROR_MEMORY, "no memory for generated code");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->page = (size_t)sysconf(_SC_PAGESIZE);
	return m;
}

void execmem_close(struct execmem *m)
{
	if (!m)
		return;
	for (struct chunk *c = m->chunk, *next; c; c = next) {
		next = c->next;
		munmap(c->base, c->bytes);
		free(c);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Writable pages nobody has been given before; with the lock. */
static uint8_t *fresh_pages(struct execmem *m, size_t bytes)
{
	struct chunk *c = m->chunk;

	if (!c || bytes > c->bytes - c->used) {
		if (!(c = calloc(1, sizeof *c)))
			return NULL;
		c->bytes = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
		/* all pages at once: one by one, faults would take longer than the copying */
		c->base =
			mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (c->base == MAP_FAILED) {
			free(c);
			return NULL;
		}
		/* one that is full at once goes behind the one that is not */
		struct chunk **link = m->chunk && bytes > CHUNK_BYTES ? &m->chunk->next : &m->chunk;
		c->next = *link;
		*link = c;
	}
	c->used += bytes;
	return c->base + c->used - bytes;
}

/* How far a block reaches with what fills up to the next one; SIZE_MAX: further than can be. */
static size_t block_end(size_t at, size_t n)
{
	return n > SIZE_MAX / 2 - at ? SIZE_MAX : at + (n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

bool execmem_put_all(struct execmem *m, struct execmem_block *block, size_t blocks, struct error *err)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < blocks && n != SIZE_MAX; i++) {
		assert(block[i].n > 0);
		n = block_end(n, block[i].n);
	}
	if (n == 0)
		return true;
	size_t bytes = n == SIZE_MAX ? n : (n + m->page - 1) & ~(m->page - 1);
	errno = ENOMEM;
	pthread_mutex_lock(&m->lock);
	uint8_t *p = n == SIZE_MAX ? NULL : fresh_pages(m, bytes);
	pthread_mutex_unlock(&m->lock);
	if (!p)
		return error_set(err, ERROR_MEMORY, "cannot map %zu bytes for generated code: %s", n, strerror(errno));
	for (size_t i = 0; i < blocks; at = block_end(at, block[i++].n)) {
		block[i].at = p + at;
		memcpy(p + at, block[i].code, block[i].n);
	}
	if (mprotect(p, bytes, PROT_READ | PROT_EXEC))
		return not_executable(n, errno, err);
	return true;
}

void *execmem_put(struct execmem *m, const void *code, size_t n, struct error *err)
{
	struct execmem_block block = { .code = code, .n = n };

	return execmem_put_all(m, &block, 1, err) ? block.at : NULL;
}

/* --- the map of names: lines that are appended to a file whose name anybody can foresee, in a directory that is
 * everybody's */

static atomic_bool map_lost;
static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether the file was laid there by somebody else, or is another file's second name. */
static bool map_is_own(int fd, const char *path, struct error *err)
{
	static const char expected[] = "expected a file of this user's that others cannot write, or none";
	struct stat st;

	if (fstat(fd, &st) != 0)
		return error_set(err, ERROR_IO, "%s: cannot be looked at: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, ERROR_ARGUMENT, "%s is no regular file; %s", path, expected);
	if (st.st_uid != geteuid())
		return error_set(err, ERROR_ARGUMENT, "%s belongs to user %lu; %s", path, (unsigned long)st.st_uid,
		                 expected);
	if (st.st_nlink != 1)
		return error_set(err, ERROR_ARGUMENT, "%s has %lu names; %s with this name alone", path,
		                 (unsigned long)st.st_nlink, expected);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, ERROR_ARGUMENT, "%s has mode %04o; %s", path, (unsigned)st.st_mode & 07777,
		                 expected);
	return true;
}

/* Waits for nobody: a FIFO without a reader is refused as it is with one. */
static int map_open(struct error *err)
{
	char path[48];

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_set(err, ERROR_IO, "%s: cannot be written: %s", path,
		          errno == ELOOP   ? "it is a symbolic link"
		          : errno == ENXIO ? "it is a FIFO or a device"
		                           : strerror(errno));
		return -1;
	}
	if (map_is_own(fd, path, err))
		return fd;
	close(fd);
	return -1;
}

bool execmem_perf_map_open(struct error *err)
{
	int fd = map_open(err);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool execmem_perf_map_written(void) { return !map_lost; }

void execmem_perf_map(const void *p, size_t n, const char *name)
{
	char line[320];
	int len = snprintf(line, sizeof line, "%lx %zx %.256s\n", (unsigned long)p, n, name), fd = map_open(NULL);

	/* one write: lines of threads stay whole; one at a time, so that none outgrows the limit on files behind
	 * another's back */
	pthread_mutex_lock(&map_lock);
	if (fd < 0 || !safefile_may_grow_by(fd, (uint64_t)len) || write(fd, line, (size_t)len) != len)
		map_lost = true;
	pthread_mutex_unlock(&map_lock);
	if (fd >= 0)
		close(fd);
}
