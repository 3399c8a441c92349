/* runtime/graph/graph_api.h - what is behind the handles of jitrun_graph.h, for programs that look at graphs. */
#ifndef RUNTIME_GRAPH_API_H
#define RUNTIME_GRAPH_API_H

#include "graph/text.h"
#include "include/jitrun_graph.h"
#include "runtime/graph/executable.h"

enum { GRAPH_SIZES_MOST = 32 };
struct graph_sizes {
	char text[4096];
	struct graph_size size[GRAPH_SIZES_MOST];
	size_t n;
};

struct jit_graph {
	struct tensor_graph g;
	struct graph_sizes *sizes; /* as it was opened; NULL: none */
};

/* A file's bytes, malloc'ed. NULL: err. */
char *graph_read_file(const char *path, size_t *n, struct error *err);

/* Each lives as long as its handle. */
const struct tensor_graph *graph_of(const jit_graph *g);
const struct executable *executable_of(const jit_executable *x);

#endif
