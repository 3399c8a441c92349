/* bench/serve_clients.h - clients that ask a server, so many at a time, and what they waited for.
 *
 * Owns: the requests, which are the same for every server, and the times at which events of their answers came.
 */
#ifndef BENCH_SERVE_CLIENTS_H
#define BENCH_SERVE_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct serve_work {
	int port;
	long concurrency;   /* clients; each asks again when it has its answer */
	long requests;      /* of each client */
	long words, tokens; /* of a prompt, of an answer */
	uint64_t first;     /* number of the first prompt: no prompt is asked twice */
};

struct serve_times {
	double seconds;          /* of all */
	uint64_t tokens;         /* generated */
	double rate;             /* tokens a second, of all clients together */
	double first50, first99; /* seconds from asking to the first event with text */
	double next50, next99;   /* seconds between tokens of one answer, which the server counts */
};

bool serve_is_ready(int port);
/* False: err, also when one request was not answered as it should be. */
bool serve_measure(const struct serve_work *w, struct serve_times *out, struct error *err);

#endif
