/* programs/jitrun/bandwidth.h - how fast this machine's memory can be read, measured when asked.
 *
 * Owns: the measurement that every share of bandwidth refers to. It tries several read patterns (one and four streams,
 * with software prefetch, AVX2 and AVX-512 where available) on huge pages, each thread on its own part. The best
 * pattern counts.
 */
#ifndef PROGRAMS_BANDWIDTH_H
#define PROGRAMS_BANDWIDTH_H

#include <stdint.h>

struct bandwidth;

/* How many bytes to read so that caches of so many together hold little of them: four times as many, and 256 MiB at
 * least; no more than a quarter of the memory that is available. */
uint64_t bandwidth_bytes(uint64_t caches, uint64_t available);
/* Maps and touches so many bytes, and picks the pattern that reads them fastest. NULL: no memory. JITRUN_BENCH_BYTES in
 * the environment says that there are fewer: for tests that run jitbench often and ask nothing of its numbers. */
struct bandwidth *bandwidth_open(int threads);
/* The same for an estimate: each pattern is tried once. */
struct bandwidth *bandwidth_open_quickly(int threads);
void bandwidth_close(struct bandwidth *b);
const char *bandwidth_pattern(const struct bandwidth *b);

/* Bytes per second now: the best of `times` readings, a few milliseconds each. To judge a rate, take one right before
 * it and one right after. */
double bandwidth_sample(struct bandwidth *b, int times);

#endif
