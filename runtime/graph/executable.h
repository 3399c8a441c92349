/* runtime/graph/executable.h - a graph of tensors as kernels of a device, ready to run.
 *
 * Owns: the kernels of a graph's groups (partition.h, source.h), memory for all values that are kept, by live ranges in
 * one buffer, and the runs. Kernels go through the cache of their jit_compute. What no kernel can be written for is
 * interpreted on the host, and the report says so.
 */
#ifndef RUNTIME_GRAPH_EXECUTABLE_H
#define RUNTIME_GRAPH_EXECUTABLE_H

#include <stdio.h>

#include "graph/graph.h"
#include "runtime/graph/partition.h"

struct executable;

/* The graph is copied as far as it is needed, after the passes of graph/passes.h. NULL: err. */
struct executable *executable_open(jit_compute *c, const struct tensor_graph *g, struct error *err);
/* The same by the calling thread alone, while others run what is open. */
struct executable *executable_open_aside(jit_compute *c, const struct tensor_graph *g, struct error *err);
/* The same, but inputs of which `bound` says so, by their number, have no memory of their own: before it runs,
 * executable_bind() says where each is. Weights stay there from run to run, and several executables share them. */
struct executable *executable_open_bound(jit_compute *c, const struct tensor_graph *g, const bool bound[],
                                         struct error *err);
/* From now on a bound input is in that buffer of the same jit_compute, from its byte `at` on, a multiple of its
 * elements' size. Borrowed. */
bool executable_bind(struct executable *x, uint32_t input, jit_buffer *b, uint64_t at, struct error *err);
/* The memory that values are in while it runs, and that another may have between two runs: executables that never run
 * at the same time can share what the greatest one needs. Borrowed; own memory is given back. */
uint64_t executable_memory_bytes(const struct executable *x);
bool executable_lend(struct executable *x, jit_buffer *b, struct error *err);
void executable_close(struct executable *x); /* x may be NULL */

/* in: the bytes of each input of the graph, in its order, of bound ones nothing; out: memory for each output's; NULL:
 * it is not fetched. */
bool executable_run(struct executable *x, const void *const in[], void *const out[], struct error *err);

struct executable_report {
	uint32_t kernels, hosted;    /* groups with a kernel, and groups that are interpreted */
	uint64_t generated, code_ns; /* kernels whose code was made, and how long all took to open */
	uint64_t arena_bytes /* with what products are laid out in */, constant_bytes,
		value_bytes; /* value_bytes: what the arena would be without live ranges */
	uint64_t last_ns;    /* the last run */
};
void executable_get_report(const struct executable *x, struct executable_report *out);
/* A line for each group: its operation, shape, kernel and where that runs; with text, the kernel's text, too. */
void executable_print(const struct executable *x, FILE *out, bool text);

#endif
