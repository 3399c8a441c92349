/* optimise/hypervolume.h - how much of space a set of points dominates, exactly, with two or three objectives. */
#ifndef OPTIMISE_HYPERVOLUME_H
#define OPTIMISE_HYPERVOLUME_H

#include <stdbool.h>

/* points: count x m, m 2 or 3, all objectives made small; reference: m numbers. Points that are not below the reference
 * in every objective dominate nothing. False: out of memory. */
bool hypervolume(const double *points, int count, int m, const double *reference, double *volume);

#endif
