/* runtime/host/pairs.h - whether this processor multiplies pairs of BF16 faster than floats.
 *
 * Some have vdpbf16ps at twice the pace of fma, others at half of it: what cpuid says does not tell. It is measured
 * once in a process, in a few milliseconds, and kept nowhere: a file from another machine, or of an earlier one,
 * decides nothing here. True ratios are far from the least that counts, so that a busy machine comes to the same
 * answer.
 *
 * Owns: the two loops, and which ratio is enough.
 */
#ifndef RUNTIME_HOST_PAIRS_H
#define RUNTIME_HOST_PAIRS_H

#include <stdbool.h>

/* Multiplications a second of one thread, each with its addition; a pair is two. 0: this CPU lacks the instruction. */
struct pairs_peaks {
	double floats, pairs;
};
struct pairs_peaks pairs_peaks(void);
/* How many times as many multiplications pairs make. 0: it is not known. */
double pairs_gain(const struct pairs_peaks *p);
/* Whether that is enough to give up exact results. */
bool pairs_pay(const struct pairs_peaks *p);

/* For tests: peaks as they would be elsewhere, from now on; NULL: those of this machine. */
void pairs_pretend(const struct pairs_peaks *p);

#endif
