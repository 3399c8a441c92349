/* runtime/ranks/choose.c - see choose.h. */
#include "runtime/ranks/choose.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/pool.h"
#include "runtime/host/system.h"

enum { ROUNDS = 64, LARGE_ROUNDS = 4, LARGE = 1 << 20 /* bytes of a rank */ };
enum { READ_MIN = 1 << 20, READ_MAX = 128 << 20 /* more than caches have */, READ_ROUNDS = 5 };
#define MIN_SECONDS 1e-7 /* that can be told apart */
enum { CONTEXT = 4096 /* the time of a token does not depend on it */ };

/* ---- messages */

/* On rank 0: half the time that n bytes take to another rank and back, the shortest of some rounds; of the rank to
 * which that is longest. Ranks that give each other something at the same time would not show it: the last one finds
 * all there.
 */
static bool time_messages(struct ranks *r, uint8_t *bytes, size_t n, int rounds, double *longest, struct error *err)
{
	struct carrier *by = r->carrier;

	*longest = 0;
	for (int i = 0; by->rank && i <= rounds; i++)
		if (!carrier_receive(by, 0, bytes, n, err) || !carrier_send(by, 0, bytes, n, err))
			return false;
	for (unsigned peer = 1; by->rank == 0 && peer < by->size; peer++) {
		double min = 1e9;
		for (int i = 0; i <= rounds; i++) { /* before the first one the other is perhaps not there yet */
			const double began = system_seconds();
			if (!carrier_send(by, peer, bytes, n, err) || !carrier_receive(by, peer, bytes, n, err))
				return false;
			const double took = (system_seconds() - began) / 2;
			min = i && took < min ? took : min;
		}
		*longest = min > *longest ? min : *longest;
	}
	return true;
}

/* ---- reading */

struct reading {
	const uint64_t *from;
	size_t words;
	_Atomic uint64_t sum; /* that somebody wants it */
};

static void read_share(void *user, int worker, int workers)
{
	struct reading *r = user;
	const size_t begin = r->words * (size_t)worker / (size_t)workers,
		     end = r->words * ((size_t)worker + 1) / (size_t)workers;
	uint64_t sum = 0;

	for (size_t i = begin; i < end; i++)
		sum += r->from[i];
	atomic_fetch_add(&r->sum, sum);
}

/* Bytes a second, on all cores that this rank may use; of as many bytes as it will read, which perhaps a cache has. */
static bool time_reading(uint64_t wanted, double *rate, struct error *err)
{
	const size_t bytes = wanted < READ_MIN ? READ_MIN : wanted > READ_MAX ? READ_MAX : (size_t)wanted;
	struct pool *pool = pool_open(system_default_threads(), err);
	uint64_t *from = malloc(bytes);
	struct reading r = { .from = from, .words = bytes / sizeof *from };
	bool ok = pool && (from || error_set(err, ERROR_MEMORY, "no memory to measure how fast it is read"));

	*rate = 0;
	if (ok)
		memset(from, 1, bytes);
	for (int i = 0; ok && i < READ_ROUNDS; i++) {
		const double began = system_seconds();
		pool_run(pool, read_share, &r);
		const double now = (double)bytes / (system_seconds() - began + 1e-9);
		*rate = now > *rate ? now : *rate;
	}
	if (pool)
		pool_close(pool);
	free(from);
	return ok;
}

/* ---- all ranks together */

bool ranks_measure(struct ranks *r, uint64_t reads, struct ranks_machine *out, struct error *err)
{
	const unsigned size = r->carrier->size;
	struct ranks_machine all[CARRIER_RANKS_MAX], own = { 0 };
	uint8_t *bytes = calloc(1, LARGE);
	double small, large;
	size_t begin[CARRIER_RANKS_MAX + 1];

	bool ok = bytes || error_set(err, ERROR_MEMORY, "no memory to measure how fast messages are");
	ok = ok && time_messages(r, bytes, 1, ROUNDS, &small, err) &&
	     time_messages(r, bytes, LARGE, LARGE_ROUNDS, &large, err) && time_reading(reads, &own.read, err);
	free(bytes);
	if (!ok)
		return false;
	own.delay = small;
	own.bits = 8.0 * LARGE / (large - small > MIN_SECONDS ? large - small : MIN_SECONDS);
	for (unsigned i = 0; i <= size; i++)
		begin[i] = i * sizeof *all;
	all[r->carrier->rank] = own;
	if (!carrier_gather_begin(r->carrier, all, begin, err) || !carrier_gather_wait(r->carrier, err))
		return false;
	*out = all[0]; /* all ranks choose by the same numbers */
	for (unsigned i = 1; i < size; i++)
		out->read = all[i].read < out->read ? all[i].read : out->read;
	return true;
}

/* ---- the choice */

static double seconds_of(const struct model_spec *s, const struct target *t, enum dtype kv, unsigned ranks,
                         const char *split, const struct ranks_machine *m, struct error *err)
{
	struct ranks_forecast f;

	return ranks_forecast(s, t, kv, CONTEXT, ranks, split, &f, err) ? ranks_token_seconds(&f, m) : 0;
}

bool ranks_choose(const struct model_spec *s, const struct target *t, enum dtype kv, unsigned ranks,
                  const struct ranks_machine *m, struct ranks_choice *out, struct error *err)
{
	struct error no_rows = { 0 }, no_layers = { 0 };

	out->rows = seconds_of(s, t, kv, ranks, "rows", m, &no_rows);
	out->layers = seconds_of(s, t, kv, ranks, "pipeline", m, &no_layers);
	if (no_rows.code && no_layers.code)
		return error_set(err, no_layers.code, "%s", no_layers.text);
	out->by_rows = no_layers.code || (!no_rows.code && out->rows < out->layers);
	const int n =
		snprintf(out->why, sizeof out->why, "auto: %.0f us a message, %.2f Gbit/s, weights read at %.1f GB/s; ",
	                 m->delay * 1e6, m->bits / 1e9, m->read / 1e9);
	char *to = out->why + n;
	const size_t room = sizeof out->why - (size_t)n;
	if (no_rows.code || no_layers.code)
		snprintf(to, room, "the other split is not possible: %.200s",
		         no_rows.code ? no_rows.text : no_layers.text);
	else
		snprintf(to, room, "predicted for a token: %.3g ms by rows, %.3g ms by layers", out->rows * 1e3,
		         out->layers * 1e3);
	return true;
}
