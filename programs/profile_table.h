/* programs/profile_table.h - where a session's time went, a row for each kernel.
 *
 * Owns: the table's form. Its numbers are those of jit_session_report, of a session with jit_session_options.profile.
 */
#ifndef PROGRAMS_PROFILE_TABLE_H
#define PROGRAMS_PROFILE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/jitrun.h"

/* What a session did so far. NULL: err. */
json_t *profile_table_mark(jit_session *s, jit_error *err);
/* of: what ran, for the first line; NULL: it need not be said. since: only what was done since then; NULL: all. False:
 * err. */
bool profile_table_print(FILE *out, jit_session *s, const char *of, const json_t *since, jit_error *err);

#endif
