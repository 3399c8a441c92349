/* jit/store/perf_gdb.h - tells profilers and debuggers what the code that appears in memory is.
 *
 * Owns: the jitdump file, which `perf inject --jit` turns into symbols with code to disassemble, and the list that gdb
 * reads by its JIT interface. Both are the process's, whatever number of registries there is. Never keeps code or
 * changes it. (The map of names alone is execmem.h's.)
 */
#ifndef JIT_PERF_GDB_H
#define JIT_PERF_GDB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct perf_gdb;

/* jitdump: the directory where the file jit-PID.dump is made; NULL: none. gdb: enter code into the list. NULL: err. */
struct perf_gdb *perf_gdb_open(const char *jitdump, bool gdb, struct error *err);
/* Before the code is unmapped. */
void perf_gdb_close(struct perf_gdb *o);
/* n bytes at `code` are now the function `name`. Thread-safe. What cannot be written is not told; perf_gdb_written()
 * says so. */
void perf_gdb_code(struct perf_gdb *o, const void *code, size_t n, const char *name);
/* Whether all that was to be in the jitdump file got there. */
bool perf_gdb_written(const struct perf_gdb *o, struct error *err);

#endif
