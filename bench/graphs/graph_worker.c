/* bench/graphs/graph_worker.c - one graph, opened and run when compare.mjs says so.
 *
 * graph_worker FILE FOLDER THREADS SIZES [ISA]: opens an ONNX file or a graph as text, reads the inputs from
 * FOLDER/in0, in1 and so on, runs it once, writes its outputs to FOLDER/out0 and so on, and says how many nanoseconds
 * reading, opening and the first run took, of wall and then of processor time. Then each line of its input, a number of
 * milliseconds, has it run at least once and until they are over; it answers how often it ran, and the nanoseconds of
 * wall and of processor time. "report FILE" writes the executable's report. SIZES are "n=64 m=4", or "".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/jitrun_graph.h"

enum { TENSORS_MAX = 64 };

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct moment {
	uint64_t wall, cpu;
};

static struct moment moment(void) { return (struct moment){ now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID) }; }

static void fail(const char *what, const char *why)
{
	printf("no %s: %s\n", what, why);
	exit(1);
}

/* A tensor's bytes, of a file or for one. */
static void *transfer(const char *folder, const char *name, size_t number, void *bytes, size_t n)
{
	char path[4096];
	void *p = bytes ? bytes : malloc(n ? n : 1);

	snprintf(path, sizeof path, "%s/%s%zu", folder, name, number);
	FILE *f = p ? fopen(path, bytes ? "wb" : "rb") : NULL;
	/* cppcheck-suppress IOWithoutPositioning ; a file is written or read */
	if (!f || (bytes ? fwrite(p, 1, n, f) : fread(p, 1, n, f)) != n || fclose(f) != 0)
		fail(path, errno ? strerror(errno) : "its length is not that of the tensor");
	return p;
}

struct bench {
	jit_executable *x;
	const void *in[TENSORS_MAX];
	void *out[TENSORS_MAX];
	size_t out_bytes[TENSORS_MAX], n_in, n_out;
};

static void run(const struct bench *b)
{
	jit_error err = { 0 };

	if (jit_executable_run(b->x, b->in, b->n_in, b->out, b->n_out, &err) != JIT_OK)
		fail("run", err.message);
}

static void read_tensors(struct bench *b, const jit_graph *g, const char *folder)
{
	jit_error err = { 0 };

	b->n_in = jit_graph_inputs(g);
	b->n_out = jit_graph_outputs(g);
	if (b->n_in > TENSORS_MAX || b->n_out > TENSORS_MAX)
		fail("graph", "it has too many inputs or outputs");
	for (size_t i = 0; i < b->n_in; i++) {
		jit_tensor t = JIT_TENSOR();
		if (jit_graph_input(g, i, &t, &err) != JIT_OK)
			fail("input", err.message);
		b->in[i] = transfer(folder, "in", i, NULL, t.bytes);
	}
	for (size_t i = 0; i < b->n_out; i++) {
		jit_tensor t = JIT_TENSOR();
		if (jit_graph_output(g, i, &t, &err) != JIT_OK || !(b->out[i] = malloc(t.bytes ? t.bytes : 1)))
			fail("output", err.message);
		b->out_bytes[i] = t.bytes;
	}
}

static void measure(const struct bench *b, double ms)
{
	const uint64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t runs = 0;

	do {
		run(b);
		runs++;
	} while ((double)(now(CLOCK_MONOTONIC) - wall) < ms * 1e6);
	printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", runs, now(CLOCK_MONOTONIC) - wall,
	       now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	struct bench b = { 0 };
	char line[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 5)
		fail("graph_worker", "expected FILE FOLDER THREADS SIZES [ISA]");
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "cpu", .threads = atoi(argv[3]),
	                                                       .cache_dir = "", .isa = argc > 5 ? argv[5] : NULL),
	                                  &err);
	if (!c)
		fail("device", err.message);
	struct moment at[5];
	at[0] = moment();
	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.path = argv[1], .sizes = argv[4]), &err);
	if (!g)
		fail("graph", err.message);
	at[1] = moment();
	b.x = jit_executable_open(c, g, &err);
	if (!b.x)
		fail("executable", err.message);
	at[2] = moment();
	read_tensors(&b, g, argv[2]);
	at[3] = moment();
	run(&b);
	at[4] = moment();
	for (size_t i = 0; i < b.n_out; i++)
		transfer(argv[2], "out", i, b.out[i], b.out_bytes[i]);
	printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", at[1].wall - at[0].wall,
	       at[2].wall - at[1].wall, at[4].wall - at[3].wall, at[1].cpu - at[0].cpu, at[2].cpu - at[1].cpu,
	       at[4].cpu - at[3].cpu);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "report ", 7) == 0)
			printf(jit_executable_write_report(b.x, line + 7, 1, &err) == JIT_OK ? "ok\n" : "no\n");
		else
			measure(&b, atof(line));
	}
	jit_executable_close(b.x);
	jit_graph_close(g);
	jit_compute_close(c);
	return 0;
}
