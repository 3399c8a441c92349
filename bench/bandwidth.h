/* bench/bandwidth.h - how fast this machine's memory can be read, measured here and now.
 *
 * Owns: the measurement that every share of bandwidth is quoted against: several read patterns (one and four streams, with software prefetch,
 * AVX2 and AVX-512 where there), huge pages, each thread its own part; the best pattern counts.
 */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include <stddef.h>

struct bandwidth { double best, worst; const char *pattern; };   /* bytes per second of the best pattern: its fastest and slowest repetition */

/* bytes: total read per repetition (well beyond the last-level cache). 0 best: no memory. */
struct bandwidth bandwidth_measure(int threads, size_t bytes, int repetitions);

#endif
