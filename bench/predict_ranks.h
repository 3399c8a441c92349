/* bench/predict_ranks.h - how fast a model would be on several machines: arithmetic alone (runtime/ranks/forecast.h).
 *
 * Owns: the networks that it is printed for, and their delays, which are assumptions and are printed.
 */
#ifndef BENCH_PREDICT_RANKS_H
#define BENCH_PREDICT_RANKS_H

#include <stdio.h>

#include "base/error.h"
#include "jit/target.h"
#include "loaders/model/model.h"

/* Prints a table as markdown. ranks: "fork:4" or "mpi:4"; read: bytes a second that each machine reads. */
bool predict_ranks(const struct model *m, const struct target *t, const char *ranks, double read, FILE *out,
                   struct error *err);

#endif
