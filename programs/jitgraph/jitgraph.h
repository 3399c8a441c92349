/* programs/jitgraph/jitgraph.h - what the parts of jitgraph share: its command line, and a graph with its values. */
#ifndef PROGRAMS_JITGRAPH_H
#define PROGRAMS_JITGRAPH_H

#include "base/error.h"
#include "include/jitrun_graph.h"
#include "programs/common/array.h"
#include "programs/common/options.h"

enum { JITGRAPH_DONE, JITGRAPH_FAILED, JITGRAPH_USAGE, JITGRAPH_INTERRUPTED = 130 };

struct jitgraph_arguments {
	const char *command, *file;
	const char *device, *isa, *cache, *dump_ir, *dump_asm, *stage;
	struct option_list in, out, expect, sizes, each;
	long seed, threads, times, shown; /* seed: -1: none */
	double rtol, atol;
	bool no_cache, sealed, quiet, json, kernels;
};
extern struct jitgraph_arguments jitgraph;
extern jit_cancel *jitgraph_cancel; /* set by a signal */

/* Prints the sentence and a newline on standard error; returns JITGRAPH_FAILED, or JITGRAPH_INTERRUPTED where that was
 * why. */
int jitgraph_fail(const char *sentence);
int jitgraph_fail_error(const jit_error *err);

/* ---- jitgraph_files.c: arrays in files */

/* Whether a text names a file of several arrays: FILE.safetensors or FILE.gguf, with :NAME behind it or not. */
bool jitgraph_is_container(const char *text);
/* Reads an array: FILE.npy, FILE.pb, or of a container the tensor :NAME, or without one that of `name`. It has the
 * file's type and shape; of packed weights the bytes, as u8, with those of a row in the last dimension. out->data is
 * malloc'ed. missing: NULL, or set where the container has no such tensor, which is no error then. */
bool jitgraph_read(struct array *out, const char *spec, const char *name, bool *missing, struct error *err);
/* Writes n arrays into FILE.safetensors. */
bool jitgraph_write_all(const char *path, const struct array *list, size_t n, struct error *err);

/* ---- jitgraph_values.c: the values of a graph's inputs and outputs */

struct jitgraph_values {
	struct array *list; /* data: malloc'ed */
	void **data;        /* of each */
	size_t n;
};
void jitgraph_values_close(struct jitgraph_values *v);
/* Inputs with what --input and --random give. False: err. */
bool jitgraph_inputs(struct jitgraph_values *v, const jit_graph *g, struct error *err);
/* Memory for the outputs. */
bool jitgraph_outputs(struct jitgraph_values *v, const jit_graph *g, struct error *err);
/* Writes what --out asks for, and prints a line for each output unless --quiet. */
bool jitgraph_put_outputs(const struct jitgraph_values *v, struct error *err);
/* Whether --out and --expect name outputs. */
bool jitgraph_check_names(const jit_graph *g, struct error *err);

/* ---- what is opened */

/* "n=64 m=4 " of --size. False: err. */
bool jitgraph_sizes(char *out, size_t room, jit_error *err);
jit_graph *jitgraph_open(jit_error *err);
/* With further sizes. */
jit_graph *jitgraph_open_more(const char *more, jit_error *err);
/* On --device; auto becomes the name of one. NULL: err. */
jit_compute *jitgraph_compute_open(const jit_graph *g, jit_error *err);

/* A graph with its executable and its values. */
struct jitgraph_run {
	jit_graph *graph;
	jit_compute *compute;
	jit_executable *executable;
	struct jitgraph_values in, out;
};
/* Opens all of it. False: *status is set, and an error was printed. Closed in both cases by the caller. */
bool jitgraph_run_open(struct jitgraph_run *r, int *status);
void jitgraph_run_close(struct jitgraph_run *r);

/* ---- commands: the exit status */

int jitgraph_run(void);
int jitgraph_check(void);
int jitgraph_bench(void);
int jitgraph_each(void); /* bench with --each */
int jitgraph_dump(void);

#endif
