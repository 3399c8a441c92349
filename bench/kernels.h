/* bench/kernels.h - what a model's kernels cost before they run: generated, opened from a directory of the cache, opened from a pack, looked up.
 *
 * Owns: the temporary cache this is measured in. Needs no weights, only a header. Opening is all of it: the file or directory, the index, checksums, decompression, pages that
 * execute; what is in the system's file cache already.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "base/error.h"
#include "bench/row.h"
#include "runtime/warm.h"

/* generated, from a directory, from a pack: all kernels of the model; the last two for passes of one token alone; one lookup */
enum { KERNEL_ROWS = 6 };

/* options->columns counts for the first three rows. */
bool kernels_measure(const struct model_spec *spec, const struct warm_options *options, long repetitions, double noise, struct row out[KERNEL_ROWS], struct error *err);

#endif
