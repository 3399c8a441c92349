/* runtime/graph/graph_api.h - what is behind the handles of jitrun_graph.h, for programs that look at graphs. */
#ifndef RUNTIME_GRAPH_API_H
#define RUNTIME_GRAPH_API_H

#include "include/jitrun_graph.h"
#include "runtime/graph/executable.h"

/* Each lives as long as its handle. */
const struct tensor_graph *graph_of(const jit_graph *g);
const struct executable *executable_of(const jit_executable *x);

#endif
