/* train/each.h - work on each element of long arrays, in parallel.
 *
 * Owns: how arrays are cut. It depends on their length alone, so sums over parts have the same bits for any number of
 * threads.
 */
#ifndef TRAIN_EACH_H
#define TRAIN_EACH_H

#include "runtime/host/pool.h"

/* Elements from..to-1, part number `part`. */
typedef void (*each_fn)(void *user, uint64_t from, uint64_t to, uint32_t part);

uint32_t each_parts(uint64_t n);
/* pool NULL: in this thread. */
void each_run(struct pool *pool, uint64_t n, each_fn fn, void *user);

void each_add(struct pool *pool, float *sum, const float *x, uint64_t n);
void each_zero(struct pool *pool, float *x, uint64_t n);
/* The sum of squares behind `sum`: parts one after the other. parts: room for each_parts(n). */
double each_squares(struct pool *pool, const float *x, uint64_t n, double sum, double *parts);

#endif
