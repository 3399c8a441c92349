/* bench/startup.h - what a start costs: loading; the first token with kernels from the cache, from a pack, or
 * generated; code generation; memory.
 *
 * Owns: the processes that are measured. Each repetition is a process of its own, forked before this one holds
 * anything, so that the peak of memory is the model's alone. The files are read once before, so that the page cache is
 * warm.
 */
#ifndef BENCH_STARTUP_H
#define BENCH_STARTUP_H

#include "bench/measurement.h"
#include "include/jitrun.h"

enum { START_ROWS = 6 }; /* load, ttft, ttft sealed, ttft cold, codegen, rss */

/* Call while the process has one thread. session->context is replaced by one that holds the short prompt. A row whose
 * test has no name is none: of a sealed start, where the device cannot run sealed. */
bool start_measure(const char *path, const jit_model_options *model, const jit_session_options *session,
                   long repetitions, double noise, struct row out[START_ROWS], jit_error *err);

#endif
