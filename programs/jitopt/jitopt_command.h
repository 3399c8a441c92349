/* programs/jitopt/jitopt_command.h - a command as an objective: it reads a candidate a line, and writes its values, a
 * line for each, in the same order. It is started once. */
#ifndef PROGRAMS_JITOPT_COMMAND_H
#define PROGRAMS_JITOPT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "include/jitrun.h"

struct jitopt_command;
/* By the shell. NULL: err. */
struct jitopt_command *jitopt_command_open(const char *text, jit_error *err);
/* Its input ends, and its end is waited for. */
void jitopt_command_close(struct jitopt_command *c);
/* values[count][m] of x[count][n]. False: err. */
bool jitopt_command_values(struct jitopt_command *c, const double *x, size_t count, size_t n, double *values, size_t m,
                           jit_error *err);

#endif
