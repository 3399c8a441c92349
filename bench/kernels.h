/* bench/kernels.h - what a model's kernels cost before they run: generated, opened from a directory of the cache, opened from a pack, looked up; as shares of what
 * generating them takes.
 *
 * Owns: the temporary cache this is measured in. Needs no weights, only a header. Opening is all of it: the file or directory, the index, checksums, decompression, pages that
 * execute; what is in the system's file cache already.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "base/error.h"
#include "bench/row.h"
#include "runtime/warm.h"

/* generated, from a directory, from a pack: all kernels of the model; the same for passes of one token alone; one lookup */
enum { KERNEL_ROWS = 7 };

/* options->columns counts for the first three rows. */
bool kernels_measure(const struct model_spec *spec, const struct warm_options *options, long repetitions, double noise, struct row out[KERNEL_ROWS], struct error *err);

/* Generates every kernel that sessions with a model can need, for starts that only load; into a new pack. */
bool kernels_write_pack(const char *model, const struct warm_options *options, const char *pack, struct error *err);

#endif
