/* programs/jitrun/line_history.h - the lines of earlier sessions: $JITRUN_HISTORY, or jitrun/history where programs of
 * a user keep their state. Only the user may read them.
 */
#ifndef PROGRAMS_LINE_HISTORY_H
#define PROGRAMS_LINE_HISTORY_H

#ifdef HAVE_LIBEDIT
#include <histedit.h>
#include <stdbool.h>

/* NULL: no memory. keep: whether lines are read from the file and written to it; where that cannot be done there are
 * those of the running program. */
HistoryW *line_history_open(bool keep);
/* Whether lines are written from now on, as far as there is a file for them. Returns whether they are. */
bool line_history_keep(bool on);
void line_history_add(HistoryW *h, const wchar_t *line);
void line_history_close(HistoryW *h);
#endif

#endif
