/* programs/common/version.h - what to paste into a report: the version, its commit, and the code generated for this
 * CPU.
 *
 * Owns: that answer, and the day in man pages. The commit is that of the sources' repository when they were built, or
 * of the archive they came in; programs/commit.sh finds it out.
 */
#ifndef PROGRAMS_VERSION_H
#define PROGRAMS_VERSION_H

#include <stdio.h>

extern const char version_commit[]; /* "1a2b3c4d5e6f", with -dirty where files were changed; "" where nobody knows */

extern const char version_day[]; /* of the commit, "2026-11-23"; "" */

void version_print(const char *program, const char *version, FILE *out);

#endif
