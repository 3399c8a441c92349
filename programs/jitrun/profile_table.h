/* programs/jitrun/profile_table.h - where a session's time went, a row for each kernel.
 *
 * Owns: the table's form. Its numbers are those of jit_session_report, of a session with jit_session_options.profile.
 */
#ifndef PROGRAMS_PROFILE_TABLE_H
#define PROGRAMS_PROFILE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "include/jitrun.h"

/* What a session did so far. NULL: err. */
json_t *profile_table_mark(jit_session *s, jit_error *err);
struct profile_table {
	const char *of;      /* what ran, for the first line; NULL: it need not be said */
	const json_t *since; /* only what was done since then; NULL: all */
	double bandwidth;    /* bytes a second that could be read; 0: nobody knows, and there is no such column */
};
/* False: err. */
bool profile_table_print(FILE *out, jit_session *s, const struct profile_table *o, jit_error *err);

#endif
