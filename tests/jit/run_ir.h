/* tests/jit/run_ir.h - a kernel that tests just built, verified, interpreted once and freed. */
#ifndef TESTS_RUN_IR_H
#define TESTS_RUN_IR_H

#include "jit/ir/ir.h"

/* arg[0]: the source, arg[1]: where vectors of 32-bit words go */
static inline void run_here(struct ir *b, const void *from, void *to)
{
	const uint64_t arg[] = { (uintptr_t)from, (uintptr_t)to };
	struct error err = { 0 };

	if (!ir_verify(b, &err))
		fail_msg("%s", err.text);
	ir_interp(b, arg, 0, 1);
	ir_free(b);
}

#endif
