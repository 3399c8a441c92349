/* jit/compile_pipeline.h - what compile.c hands to a backend's compile(). */
#ifndef JIT_COMPILE_PIPELINE_H
#define JIT_COMPILE_PIPELINE_H

#include "jit/compile.h"

struct compile_job {
	const struct ir *ir;
	const struct target *target;
	const char *title;
	const struct compile_options *options /* never NULL */;
};

#endif
