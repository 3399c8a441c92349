/* programs/jitrun/jitrun_doctor.h - what the parts of jitrun doctor share.
 *
 *   jitrun_doctor.c         the command line, and what the processor, the memory and the folders are
 *   jitrun_doctor_cards.c   graphics cards: which there are, what they say of themselves, why they cannot be used
 *   doctor_report.h         --report: trials of a device
 *
 * A finding is told once and comes out as a row for people or as a member of the JSON object.
 */
#ifndef PROGRAMS_JITRUN_DOCTOR_H
#define PROGRAMS_JITRUN_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

struct doctor {
	bool json;
	json_t *object; /* with json: all findings */
	json_t *advice; /* array of sentences: what would help */
	bool runs;
};

/* A finding: its row, and its member, which it takes over (NULL: no member; the row goes on with the one before where
 * name is ""). */
void doctor_tell(struct doctor *d, const char *name, const char *member, json_t *value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* A sentence without its full stop. */
void doctor_advise(struct doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

void doctor_cards(struct doctor *d);
/* Whether the driver, "amd" or "cuda", has no card at all, and why. */
bool doctor_no_cards(const char *driver, struct error *why_not);
/* Tries a device from that rung on, of ten, and writes the findings to a file; the exit status. */
int doctor_report(const char *device, const char *path, unsigned from);

#endif
