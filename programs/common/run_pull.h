/* programs/common/run_pull.h - jitpull, as other programs run it.
 *
 * Owns: where it is looked for, and what is said where it is not installed. The library and the other programs have no
 * code for the network.
 */
#ifndef PROGRAMS_RUN_PULL_H
#define PROGRAMS_RUN_PULL_H

#include <stdbool.h>

/* Becomes jitpull with these arguments, of which the first is replaced. Returns only where it cannot be run: the exit
 * status, after a sentence on stderr. */
int run_pull(const char *program, char **argv);
/* Fetches a model, unless it is here. file: of the repository; NULL: the usual one. *path: where it is, malloc'ed.
 * Otherwise NULL, and the exit status; all that there is to say was said on stderr. */
int run_pull_for(const char *program, const char *name, const char *file, bool quiet, char **path);

#endif
