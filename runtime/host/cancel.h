/* runtime/host/cancel.h - requests to stop, from any thread: who asks, and who looks whether somebody did.
 *
 * Owns: the flags. A caller's stays until the caller takes it back; a session's own is answered by the call that it
 * stopped.
 */
#ifndef RUNTIME_HOST_CANCEL_H
#define RUNTIME_HOST_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct jit_cancel {
	_Atomic int requested; /* lock-free, and so for signal handlers as well */
};

/* Whom a session listens to. */
struct cancel {
	struct jit_cancel own;   /* jit_session_cancel() */
	struct jit_cancel *from; /* the caller's; NULL: none */
};

static inline bool cancel_requested(const struct jit_cancel *c)
{
	return c && atomic_load_explicit(&c->requested, memory_order_acquire);
}

static inline bool cancel_any(const struct cancel *c)
{
	return c && (cancel_requested(&c->own) || cancel_requested(c->from));
}

/* The sentence about it. Returns false. */
static inline bool cancel_error(struct error *err)
{
	return error_set(err, ERROR_CANCELLED, "cancelled, as the caller asked");
}

#endif
