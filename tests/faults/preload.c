/* tests/faults/preload.c - preloaded into a program: the allocation functions, of which a chosen call fails as if there
 * were no memory. It counts calls of the program, of its libraries, and of the C library on their behalf (strdup,
 * fopen).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/faults/control.h"

static struct faults_control *control;
static struct {
	void *(*malloc)(size_t), *(*calloc)(size_t, size_t), *(*realloc)(void *, size_t),
		*(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
} next;

/* What dlsym() itself asks for while it looks for the next functions. Never freed: free() is not replaced, and dlsym()
 * keeps it. */
static _Alignas(64) unsigned char early[4096];
static size_t early_used;

static void *early_bytes(size_t n)
{
	size_t at = early_used;

	if (n > sizeof early - at)
		abort();
	early_used = at + ((n + 63) & ~(size_t)63);
	return early + at;
}

static void find_next(void)
{
	void *calloc_found;

	if (next.calloc)
		return;
	next.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	next.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next.aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
	next.posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
	calloc_found = dlsym(RTLD_NEXT, "calloc");
	next.calloc = (void *(*)(size_t, size_t))calloc_found;
}

__attribute__((constructor)) static void begin(void)
{
	const char *fd = getenv(FAULTS_FD);

	find_next();
	void *page = fd ? mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0) : MAP_FAILED;
	if (page != MAP_FAILED)
		control = page;
}

static bool fails(void)
{
	if (!control || !atomic_load_explicit(&control->begun, memory_order_relaxed))
		return false;
	unsigned n = atomic_fetch_add(&control->count, 1) + 1;
	if (!control->at || (control->later ? n < control->at : n != control->at))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	if (!next.malloc)
		find_next();
	return fails() ? NULL : next.malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (!next.calloc)
		return early_bytes(n * size);
	return fails() ? NULL : next.calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	find_next();
	return fails() ? NULL : next.realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	find_next();
	return fails() ? NULL : next.aligned_alloc(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
	find_next();
	return fails() ? ENOMEM : next.posix_memalign(p, alignment, n);
}
