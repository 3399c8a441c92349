/* runtime/ranks/carrier.c - see carrier.h. */
#include "runtime/ranks/carrier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct carrier_driver *const drivers[] = { &carrier_fork, &carrier_mpi, &carrier_delay };
enum { DRIVERS = sizeof drivers / sizeof *drivers };

struct carrier *carrier_open(const char *name, struct error *err)
{
	char quoted[64];

	for (size_t i = 0; i < DRIVERS; i++) {
		const size_t n = strlen(drivers[i]->name);
		if (strncmp(name, drivers[i]->name, n) == 0)
			return drivers[i]->open(name + n, err);
	}
	error_set(err, ERROR_ARGUMENT,
	          "ranks: \"%s\" is no carrier that this build has; expected fork:2 or more, or mpi",
	          error_quote(quoted, sizeof quoted, name, strlen(name)));
	return NULL;
}

void carrier_close(struct carrier *c)
{
	if (c)
		c->driver->close(c);
}

bool carrier_send(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err)
{
	assert(to < c->size && to != c->rank);
	return c->driver->send(c, to, bytes, n, err);
}

bool carrier_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	assert(from < c->size && from != c->rank);
	return c->driver->receive(c, from, bytes, n, err);
}

bool carrier_gather_begin(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	return c->driver->gather_begin(c, all, begin, err);
}

bool carrier_gather_wait(struct carrier *c, struct error *err) { return c->driver->gather_wait(c, err); }

bool carrier_broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	return c->driver->broadcast(c, root, bytes, n, err);
}

bool carrier_alive(struct carrier *c, struct error *err) { return c->driver->alive(c, err); }

void carrier_abort(struct carrier *c, const char *why) { c->driver->abort(c, why); }

#define USUAL_PATIENCE 1.5
#define MIN_PATIENCE 0.2
#define MAX_PATIENCE 86400.0

bool carrier_patience(double *seconds, struct error *err)
{
	const char *text = getenv("JITRUN_RANK_PATIENCE");
	char *end;

	*seconds = USUAL_PATIENCE;
	if (!text || !*text)
		return true;
	*seconds = strtod(text, &end);
	return (!*end && *seconds >= MIN_PATIENCE && *seconds <= MAX_PATIENCE) ||
	       error_set(err, ERROR_ARGUMENT, "JITRUN_RANK_PATIENCE is \"%.32s\", expected seconds from %.1f to %.0f",
	                 text, MIN_PATIENCE, MAX_PATIENCE);
}
