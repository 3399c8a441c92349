/* runtime/engine/report.h - what a model's kernels are and what they took, for people and for programs.
 *
 * Owns: the report's text and JSON form, the trace's file. Never measures: times are profile.h's, sources the
 * registry's.
 */
#ifndef RUNTIME_REPORT_H
#define RUNTIME_REPORT_H

#include "runtime/model/model.h"
#include "runtime/device/profile.h"
#include "runtime/engine/compile_ahead.h"

/* What was made beside the passes; and what passes of decoding found missing. */
struct report_background {
	struct compile_ahead_counters compile_ahead;
	uint64_t stalls;
};

/* p may be NULL: kernels without times. malloc'ed. NULL: err. */
char *report_make(jit_model *m, const struct profile *p, const struct report_background *b, bool json,
                  struct error *err);
/* Adds to a JSON object a key's schedule, in words and by its fields. */
struct json_t;
void report_schedule(struct json_t *o, const struct key *key);
bool report_trace(const struct profile *p, const char *path, struct error *err);

#endif
