/* bench/reports.h - compares two reports of jitbench suite (bench/suite.h), row by row.
 *
 * Owns: reading reports, and the rule for when a row is slower. A report is a file from outside, and nothing in it is
 * trusted.
 */
#ifndef BENCH_REPORTS_H
#define BENCH_REPORTS_H

#include <stdio.h>

#include "base/error.h"

/* Ratios of the rows of two reports, as a table or as JSON. threshold: 0.1 for 10 %. *slower: rows whose share of the
 * peak fell by more. False: err. */
bool reports_compare(const char *a, const char *b, double threshold, bool json, FILE *out, int *slower,
                     struct error *err);

#endif
