/* programs/jitrun/doctor_report.h - what the parts of jitrun doctor --report share.
 *
 *   doctor_report.c    what the machine is, models for trials, and the end
 *   doctor_ladder.c    the rungs in their order, the file, and the verdict
 *   doctor_machine.c   firmware, drivers and the slot of an AMD card
 *   doctor_rungs.c     the rungs below kernels of models, and tokens for a minute
 *   doctor_chain.c     two of them: barriers, and data that others have just written
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
	uint32_t units;     /* compute units of an AMD card; 0: it is none */
	const char *path;
	json_t *ladder; /* of the file: what became of each rung */
	/* of the rung that is tried: trials, those that were wrong, and whether this device has nothing to try */
	uint64_t tries, wrong;
	bool nothing;
};

/* ---- doctor_ladder.c */

enum { REPORT_RUNGS = 10 };
/* from: 1, or the rung to go on with, where the file has those below. False: err. */
bool ladder_open(struct report *r, unsigned from, struct error *err);
/* False: err, the file cannot be written. */
bool ladder_climb(struct report *r, unsigned from, struct error *err);
bool ladder_has(const struct report *r, const char *state);
void ladder_verdict(struct report *r);
/* The file, which is on the disk then. False: err. */
bool report_write(const struct report *r, struct error *err);
/* By a rung: so many trials were made, of which so many were wrong. */
void rung_tried(struct report *r, uint64_t tries, uint64_t wrong);

/* doctor_rungs.c: where small kernels run, and one of them; constants as of jit_kernel_options. NULL: e. */
struct jit_compute *rung_compute(const char *device, jit_error *e);
struct jit_kernel *rung_kernel(struct jit_compute *c, const char *source, const char *constants, jit_error *e);

/* ---- doctor_rungs.c and doctor_chain.c: each is false when the report ends there */

bool rung_end(struct report *r);
bool rung_store(struct report *r);
bool rung_workgroup(struct report *r);
bool rung_instructions(struct report *r);
bool rung_barrier(struct report *r);
bool rung_stale(struct report *r);
bool rung_layer(struct report *r);
bool rung_tokens(struct report *r);

struct amd_card;
/* doctor_machine.c: an object of what drivers and firmware say; a number of the machine or its user is not in it. */
json_t *report_card_drivers(const struct amd_card *c);

/* A line for people, and its end is a full stop. */
void report_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Remembers why nothing more can be tried. False always. */
bool report_stop(struct report *r, const char *during, const struct error *why);
bool report_stop_public(struct report *r, const char *during, const jit_error *why);

/* Each is false when the report ends there. */
bool report_memory(struct report *r);
bool report_kernels(struct report *r);
bool report_model(struct report *r);
bool report_speed(struct report *r);
/* The logits of a prompt and of tokens behind it, of a model of a shape in Q4_K or so; member: in the file. */
bool report_logits(struct report *r, const char *member, const char *shape, const char *mixture);
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
