/* runtime/graph/graph_api.h - what is behind the handles of jitrun_graph.h, for programs that read graphs. */
#ifndef RUNTIME_GRAPH_API_H
#define RUNTIME_GRAPH_API_H

#include "graph/text.h"
#include "include/jitrun_graph.h"
#include "runtime/graph/executable.h"

enum { GRAPH_SIZES_MAX = 32 };
struct graph_sizes {
	char text[4096];
	struct graph_size size[GRAPH_SIZES_MAX];
	size_t n;
};

struct jit_graph {
	struct tensor_graph g;
	struct graph_sizes *sizes; /* as it was opened; NULL: none */
};

/* "n=64 m=4"; NULL: none. Names are in s->text. */
bool graph_read_sizes(struct graph_sizes *s, const char *text, struct error *err);
/* The text or file of the options, initialised here and freed by the caller if this is true. */
bool graph_read(struct tensor_graph *g, const jit_graph_options *o, const struct graph_sizes *sizes, struct error *err);
/* ONNX files begin with the version of their format, which no text begins with. */
bool graph_is_onnx(const char *bytes, size_t n);
struct onnx_file;
/* path: NULL: the bytes are of no file. */
struct onnx_file *graph_open_onnx(const char *path, const char *bytes, size_t n, struct error *err);
bool graph_import_onnx(struct tensor_graph *g, struct onnx_file *f, const struct graph_sizes *sizes, struct error *err);
/* aside: as of executable_open_aside(). NULL: err. */
jit_executable *graph_executable(jit_compute *c, const struct tensor_graph *g, bool aside, struct error *err);
/* A file's bytes, malloc'ed. NULL: err. */
char *graph_read_file(const char *path, size_t *n, struct error *err);

/* Each lives as long as its handle. */
const struct tensor_graph *graph_of(const jit_graph *g);
const struct executable *executable_of(const jit_executable *x);

#endif
