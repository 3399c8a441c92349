/* runtime/session/cancel.c - jit_cancel: a request to stop that a program may make from any thread. */
#include "runtime/host/cancel.h"

#include <stdlib.h>

#include "include/jitrun.h"
#include "runtime/model/model.h"

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may ask");

jit_cancel *jit_cancel_open(jit_error *err)
{
	struct error e = { 0 };
	jit_cancel *c = calloc(1, sizeof *c);

	if (!c)
		error_set(&e, ERROR_MEMORY, "no memory for a request to cancel");
	model_report(err, &e);
	return c;
}

void jit_cancel_close(jit_cancel *c) { free(c); }

void jit_cancel_set(jit_cancel *c, int requested)
{
	if (c)
		atomic_store(&c->requested, requested != 0);
}

int jit_cancel_get(const jit_cancel *c) { return cancel_requested(c); }
