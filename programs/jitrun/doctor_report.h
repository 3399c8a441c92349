/* programs/jitrun/doctor_report.h - what the parts of jitrun doctor --report share.
 *
 *   doctor_report.c    the order of the trials, the file, and the lines for people
 *   doctor_memory.c    memory of every kind: allocated, zeroed, copied both ways
 *   doctor_kernels.c   every kernel of small models, one step of a pass at a time, beside the CPU's
 *   doctor_speed.c     launches, barriers, and passes over a larger model
 *
 * The file goes to strangers: it holds no path, no name of the machine or of its user, no serial number. The first
 * trial that the device does not come back from ends the report, since nothing that follows would mean anything.
 */
#ifndef PROGRAMS_DOCTOR_REPORT_H
#define PROGRAMS_DOCTOR_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "include/jitrun.h"

struct report {
	const char *device; /* as --device has it */
	json_t *object;     /* the file */
	unsigned differences;
	bool began;   /* the device is there */
	bool stopped; /* by stop.text */
	struct error stop;
	uint64_t bandwidth; /* of the card's memory by its data, bytes a second; 0: not known */
};

/* A line for people, and its end is a full stop. */
void report_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Remembers why nothing more can be tried. False always. */
bool report_stop(struct report *r, const char *during, const struct error *why);
bool report_stop_public(struct report *r, const char *during, const jit_error *why);

/* Each is false when the report ends there. */
bool report_memory(struct report *r);
bool report_kernels(struct report *r);
bool report_speed(struct report *r);
/* JITRUN_REPORT_QUICK in the environment: a few trials of each sort, for tests. */
bool report_is_quick(void);

/* ---- models without a file: doctor_report.c */

struct trial_model {
	int fd;
	jit_model *model;
};
/* Of a shape and a mixture (programs/common/shapes.h), on a device; isa: for CPUs, or NULL. */
bool trial_open(struct trial_model *t, const char *shape, const char *mixture, const char *device, const char *isa,
                jit_error *err);
void trial_close(struct trial_model *t);
/* Models opened from now on have a launch for each op on NVIDIA cards: ops of a dataflow pass cannot be run
 * one by one. Returns what was asked for before, malloc'ed, or NULL; trial_launch() takes that. */
char *trial_launch_graphs(void);
void trial_launch(char *usual);
jit_session *trial_session(struct trial_model *t, int kv, jit_error *err);
enum { TRIAL_CONTEXT = 128 };

#endif
