/* programs/jitrun/line_complete.h - what Tab makes of a line: the next word of a command, or the name of a file behind
 * one. */
#ifndef PROGRAMS_LINE_COMPLETE_H
#define PROGRAMS_LINE_COMPLETE_H

#include <stdbool.h>

/* typed: the line up to the cursor. commands: up to a NULL, as line_editor_begin() has them. Returns what is to be
 * inserted, malloc'ed, which is "" where that is not known; *listed: what it may be was printed, on lines of its own.
 * NULL: there is nothing to complete here. */
char *line_complete(const char *const *commands, const char *typed, bool *listed);

#endif
