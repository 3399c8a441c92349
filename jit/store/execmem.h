/* jit/store/execmem.h - bytes into pages that run. Never writable and executable at once. */
#ifndef JIT_EXECMEM_H
#define JIT_EXECMEM_H

#include <stddef.h>
#include "base/error.h"

/* Maps a copy of n bytes read+execute; page-aligned. NULL and err on failure. */
void *execmem_map(const void *code, size_t n, struct error *err);
void execmem_unmap(void *p, size_t n);
/* The same for many blocks of code that live and go together: cheaper, as pages are had from the system many at a time.
 * Thread-safe. */
struct execmem;
struct execmem *execmem_open(struct error *err);
/* On pages of its own. */
void *execmem_put(struct execmem *m, const void *code, size_t n, struct error *err);
struct execmem_block {
	const void *code;
	size_t n;
	void *at;
};
/* Blocks that share pages, made executable in one go; fills their `at`, aligned to 64 bytes. All or none. */
bool execmem_put_all(struct execmem *m, struct execmem_block *block, size_t blocks, struct error *err);
void execmem_close(struct execmem *m);
/* Whether there is, or can be, a file /tmp/perf-PID.map that is this user's own: no link, FIFO or second name, and none
 * that others write. */
bool execmem_perf_map_open(struct error *err);
/* Appends "address size name" to it. */
void execmem_perf_map(const void *p, size_t n, const char *name);
/* Whether all lines got there. */
bool execmem_perf_map_written(void);

#endif
