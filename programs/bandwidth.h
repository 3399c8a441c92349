/* programs/bandwidth.h - how fast this machine's memory can be read, measured when asked.
 *
 * Owns: the measurement that every share of bandwidth refers to. It tries several read patterns (one and four streams,
 * with software prefetch, AVX2 and AVX-512 where available) on huge pages, each thread on its own part. The best
 * pattern counts.
 */
#ifndef PROGRAMS_BANDWIDTH_H
#define PROGRAMS_BANDWIDTH_H

struct bandwidth;

/* Maps and touches bytes well beyond the last-level cache, and picks the pattern that reads them fastest. NULL: no
 * memory. JITRUN_BENCH_BYTES in the environment says how many there are instead of 256 MiB: for tests that run jitbench
 * often and ask nothing of its numbers. */
struct bandwidth *bandwidth_open(int threads);
/* The same for an estimate: each pattern is tried once. */
struct bandwidth *bandwidth_open_quickly(int threads);
void bandwidth_close(struct bandwidth *b);
const char *bandwidth_pattern(const struct bandwidth *b);

/* Bytes per second now: the best of `times` readings, a few milliseconds each. To judge a rate, take one right before
 * it and one right after. */
double bandwidth_sample(struct bandwidth *b, int times);

#endif
