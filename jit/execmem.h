/* jit/execmem.h - bytes into pages that run. Never writable and executable at once. */
#ifndef JIT_EXECMEM_H
#define JIT_EXECMEM_H

#include <stddef.h>
#include "base/error.h"

/* Maps a copy of n bytes read+execute; page-aligned. NULL and err on failure. */
void *execmem_map(const void *code, size_t n, struct error *err);
void execmem_unmap(void *p, size_t n);
/* The same for many pieces of code that live and go together, each on pages of its own: cheaper, as pages are had from the system many at a time. Thread-safe. */
struct execmem;
struct execmem *execmem_open(struct error *err);
void *execmem_put(struct execmem *m, const void *code, size_t n, struct error *err);
void execmem_close(struct execmem *m);
/* Appends "address size name" to /tmp/perf-PID.map. */
void execmem_perf_map(const void *p, size_t n, const char *name);

#endif
