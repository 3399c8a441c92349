/* runtime/ranks/carrier_delay.c - another carrier whose messages arrive later, as over a slow network: to see what a
 * split does there before there is one.
 *
 * Owns: the stamps. Each message says when it was sent, and who receives it waits until it is that old, so that
 * messages sent one behind the other are late together. Clocks are compared, so all ranks must be of one machine.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/host/system.h"
#include "runtime/ranks/carrier.h"

#define MAX_MICROSECONDS 1000000ul

struct delay_carrier {
	struct carrier carrier;
	struct carrier *below;
	double delay, began; /* began: the gathering */
};

static struct delay_carrier *of(struct carrier *c) { return (struct delay_carrier *)c; }

static void wait_until(double at)
{
	for (double left; (left = at - system_seconds()) > 0;)
		nanosleep(&(struct timespec){ (time_t)left, (long)((left - (double)(time_t)left) * 1e9) }, NULL);
}

static bool delay_send(struct carrier *c, unsigned to, const void *bytes, size_t n, struct error *err)
{
	const double now = system_seconds();

	return carrier_send(of(c)->below, to, &now, sizeof now, err) && carrier_send(of(c)->below, to, bytes, n, err);
}

static bool delay_receive(struct carrier *c, unsigned from, void *bytes, size_t n, struct error *err)
{
	double sent;

	if (!carrier_receive(of(c)->below, from, &sent, sizeof sent, err) ||
	    !carrier_receive(of(c)->below, from, bytes, n, err))
		return false;
	wait_until(sent + of(c)->delay);
	return true;
}

static bool delay_gather_begin(struct carrier *c, void *all, const size_t *begin, struct error *err)
{
	of(c)->began = system_seconds();
	return carrier_gather_begin(of(c)->below, all, begin, err);
}

static bool delay_gather_wait(struct carrier *c, struct error *err)
{
	double sent[CARRIER_RANKS_MAX], last = 0;
	size_t begin[CARRIER_RANKS_MAX + 1];

	for (unsigned r = 0; r <= c->size; r++)
		begin[r] = r * sizeof *sent;
	sent[c->rank] = of(c)->began;
	if (!carrier_gather_wait(of(c)->below, err) || !carrier_gather_begin(of(c)->below, sent, begin, err) ||
	    !carrier_gather_wait(of(c)->below, err))
		return false;
	for (unsigned r = 0; r < c->size; r++)
		last = r != c->rank && sent[r] > last ? sent[r] : last;
	wait_until(last + of(c)->delay);
	return true;
}

static bool delay_broadcast(struct carrier *c, unsigned root, void *bytes, size_t n, struct error *err)
{
	if (c->rank != root)
		return delay_receive(c, root, bytes, n, err);
	for (unsigned r = 0; r < c->size; r++)
		if (r != root && !delay_send(c, r, bytes, n, err))
			return false;
	return true;
}

static bool delay_alive(struct carrier *c, struct error *err) { return carrier_alive(of(c)->below, err); }

static void delay_abort(struct carrier *c, const char *why)
{
	carrier_abort(of(c)->below, why);
	c->told_why = of(c)->below->told_why;
}

static void delay_close(struct carrier *c)
{
	carrier_close(of(c)->below);
	free(c);
}

static struct carrier *delay_open(const char *which, struct error *err)
{
	char *end = NULL;
	const unsigned long us = *which >= '0' && *which <= '9' ? strtoul(which, &end, 10) : MAX_MICROSECONDS + 1;
	struct delay_carrier *d;

	if (us > MAX_MICROSECONDS || *end != ':' || strncmp(end + 1, "fork:", 5) != 0) {
		error_set(err, ERROR_ARGUMENT,
		          "ranks: delay:%.64s does not say microseconds up to %lu and the ranks; expected as in "
		          "delay:200:fork:2",
		          which, MAX_MICROSECONDS);
		return NULL;
	}
	if (!(d = calloc(1, sizeof *d))) {
		error_set(err, ERROR_MEMORY, "no memory for ranks");
		return NULL;
	}
	if (!(d->below = carrier_open(end + 1, err))) {
		free(d);
		return NULL;
	}
	d->carrier = *d->below;
	d->carrier.driver = &carrier_delay;
	d->delay = (double)us * 1e-6;
	return &d->carrier;
}

const struct carrier_driver carrier_delay = {
	.name = "delay:",
	.open = delay_open,
	.send = delay_send,
	.receive = delay_receive,
	.gather_begin = delay_gather_begin,
	.gather_wait = delay_gather_wait,
	.broadcast = delay_broadcast,
	.alive = delay_alive,
	.abort = delay_abort,
	.close = delay_close
};
