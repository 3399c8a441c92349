/* programs/common/progress.h - one line on standard error that says how far something long is and how long it will take
 * yet, and is gone when it ends.
 *
 * Owns: that line. It is shown on a terminal alone, and not for what is over at once.
 */
#ifndef PROGRAMS_PROGRESS_H
#define PROGRAMS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what, *unit; /* "prompt", "tokens"; unit NULL: bytes */
	double begun, shown;     /* seconds */
	int width;               /* of what stands there now */
	bool wanted, rate;       /* rate: bytes a second are shown, too */
	uint64_t from;           /* of the first `from` nothing is concluded: they were there at the beginning */
};

/* Nothing is shown unless it is wanted and standard error is a terminal. */
void progress_begin(struct progress *p, const char *what, const char *unit, bool wanted);
void progress_show(struct progress *p, uint64_t done, uint64_t total);
void progress_end(struct progress *p);

#endif
