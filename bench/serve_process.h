/* bench/serve_process.h - servers that bench/serve starts, asks and ends.
 *
 * Owns: their processes, and how each is told its model, its port, how many answers at once and how many threads.
 */
#ifndef BENCH_SERVE_PROCESS_H
#define BENCH_SERVE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct serve_process {
	pid_t pid;
	int port;
};

struct serve_command {
	const char *program, *model;
	const char *arguments; /* more of them, spaces between; NULL: none */
	bool llama;            /* llama.cpp's server, which divides its context among its answers */
	long context, parallel, threads;
};

/* On a port that was free; waits until it answers /health. What it prints is lost. False: err. */
bool serve_process_start(struct serve_process *p, const struct serve_command *c, struct error *err);
void serve_process_stop(struct serve_process *p);

#endif
