/* tests/support/no_memory.h - allocations that fail on demand, for programs linked with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup. */
#ifndef TESTS_NO_MEMORY_H
#define TESTS_NO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

/* The allocation that fails, counted from 1; 0: none. memory_requests: how many there were. */
static unsigned memory_fails, memory_requests;

static inline bool memory_there(void) { return ++memory_requests != memory_fails; }
void *__wrap_malloc(size_t n) { return memory_there() ? __real_malloc(n) : NULL; }
void *__wrap_calloc(size_t n, size_t size) { return memory_there() ? __real_calloc(n, size) : NULL; }
void *__wrap_realloc(void *p, size_t n) { return memory_there() ? __real_realloc(p, n) : NULL; }
char *__wrap_strdup(const char *s) { return memory_there() ? __real_strdup(s) : NULL; }

/* From now on the n-th fails; 0: none. */
static inline void memory_fail(unsigned n)
{
	memory_fails = n;
	memory_requests = 0;
}

#endif
