#include "grammar/machine/effort.h"

enum { ASK_EVERY = 1 << 16 };

_Thread_local struct effort *effort_of_thread;
static _Thread_local struct effort_bound *bound;

void effort_bind(struct effort_bound *b) { bound = b; }

void effort_unbind(void) { bound = NULL; }

bool effort_bound_is_hit(void) { return bound && bound->hit; }

static void tell_bound(struct effort *e)
{
	const uint64_t taken = e->told > e->left ? e->told - e->left : 0;

	e->told = e->left;
	bound->hit = bound->hit || taken > bound->left;
	bound->left -= taken < bound->left ? taken : bound->left;
	e->spent = e->spent || bound->hit;
	e->stopped = e->stopped || (bound->stop && bound->stop(bound->user));
}

bool effort_ask(struct effort *e)
{
	e->ask_at = e->left > ASK_EVERY ? e->left - ASK_EVERY : 0;
	e->stopped = e->stopped || (e->stop && e->stop(e->user));
	if (bound)
		tell_bound(e);
	return !e->spent && !e->stopped && !e->lost;
}

bool effort_check(const struct effort *e, struct error *err)
{
	if (!e->spent && !e->stopped && !e->lost)
		return true;
	*err = (struct error){ 0 }; /* of whatever was at work just then */
	if (e->stopped)
		return error_set(err, ERROR_CANCELLED, "cancelled, as the caller asked");
	if (e->lost)
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	return error_set(err, ERROR_UNSUPPORTED,
	                 "the grammar takes more work or memory than is allowed: it has too many ways to go on");
}
