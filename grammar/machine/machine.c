/* grammar/machine/machine.c - the account of a machine that is used without one, and why a machine is of no use. */
#include "grammar/machine/machine.h"

struct machine *machine_make(machine_maker *make, const void *source, struct error *err)
{
	enum { TEXTS = 3 /* what may be taken for texts, of what may be to open */ };
	struct effort own = { 0 };

	if (effort_of_thread)
		return make(source, err);
	effort_give(&own, EFFORT_TO_OPEN);
	struct effort *before = effort_begin(&own);
	struct machine *m = make(source, err);
	effort_end(before);
	if (!effort_check(&own, err)) {
		machine_close(m);
		return NULL;
	}
	if (m) {
		effort_give(&m->own, (uint64_t)TEXTS * EFFORT_TO_OPEN);
		m->own.bytes = own.bytes;
	}
	return m;
}

void machine_refuse(const struct machine *m, const char *other, struct error *err)
{
	if (m->limited)
		error_set(err, ERROR_UNSUPPORTED,
		          "the schemas of all functions together are too large to be held: give fewer functions, or "
		          "smaller ones");
	else if (m->failed)
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	else
		error_set(err, ERROR_ARGUMENT, "%s", other);
}
