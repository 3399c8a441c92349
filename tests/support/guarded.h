/* tests/support/guarded.h - a copy of bytes whose end is the end of readable memory: reading one byte further ends the
 * test. */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guarded {
	uint8_t *region;
	size_t size; /* readable bytes; a page without access follows */
};

static inline struct guarded guarded_open(size_t max)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct guarded g = { .size = (max + page) / page * page };

	g.region = mmap(NULL, g.size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g.region == MAP_FAILED || mprotect(g.region + g.size, page, PROT_NONE) != 0)
		abort();
	return g;
}

/* The n bytes at p, placed right before the end. Overwrites the copy made before. */
static inline const uint8_t *guarded_copy(struct guarded *g, const void *p, size_t n)
{
	if (n > g->size)
		abort();
	return n ? memcpy(g->region + g->size - n, p, n) : g->region + g->size;
}

static inline void guarded_close(struct guarded *g) { munmap(g->region, g->size + (size_t)sysconf(_SC_PAGESIZE)); }

#endif
