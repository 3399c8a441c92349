/* jit/execmem.h - bytes into pages that run. Never writable and executable at once. */
#ifndef JIT_EXECMEM_H
#define JIT_EXECMEM_H

#include <stddef.h>
#include "base/error.h"

/* Maps a copy of n bytes read+execute; page-aligned. NULL and err on failure. */
void *execmem_map(const void *code, size_t n, struct error *err);
void execmem_unmap(void *p, size_t n);
/* Appends "address size name" to /tmp/perf-PID.map. */
void execmem_perf_map(const void *p, size_t n, const char *name);

#endif
