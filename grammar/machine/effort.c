#include "grammar/machine/effort.h"

enum { ASK_EVERY = 1 << 16 };

_Thread_local struct effort *effort_of_thread;

bool effort_ask(struct effort *e)
{
	e->ask_at = e->left > ASK_EVERY ? e->left - ASK_EVERY : 0;
	e->stopped = e->stopped || (e->stop && e->stop(e->user));
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
