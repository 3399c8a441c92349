/* jit/compile_pipeline.h - between compile.c and the pipelines of the backends. */
#ifndef JIT_COMPILE_PIPELINE_H
#define JIT_COMPILE_PIPELINE_H

#include "jit/compile.h"

struct compile_job { const struct ir *ir; const struct target *target; const char *title; const struct compile_options *options /* never NULL */; };

/* ir is verified and has the target's lanes; *out is empty. stats may be NULL. */
bool compile_x86(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err);
bool compile_rdna(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err);

#endif
