/* programs/common/adapter_args.h - adapters as options name them: FILE[:SCALE]. */
#ifndef PROGRAMS_ADAPTER_ARGS_H
#define PROGRAMS_ADAPTER_ARGS_H

#include <stdbool.h>

/* Cuts the scale off behind the last colon. False: there is none, and the scale is 1; a path may have a colon. */
bool adapter_args_cut(char *path, float *scale);

#endif
