/* jitrun_graph.h - graphs of tensors: a program of operations, compiled to its exact shapes, with the same bits on each
 * device.
 *
 * Everything here follows jitrun.h: ERRORS, MEMORY, and STRUCTS AND VERSIONS. docs/graphs.md describes the operations
 * and the text form. A graph is built by calls, or read:
 *
 *     jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.path = "mlp.jg", .sizes = "n=64"), &err);
 *     jit_executable *x = jit_executable_open(compute, g, &err);
 *     jit_executable_run(x, (const void *[]){ input }, 1, (void *[]){ output }, 1, &err);
 *
 * THREADS. A graph that is not being changed may be used by any number of threads. Runs of executables of one
 * jit_compute take turns, and one jit_executable belongs to one thread at a time.
 */
#ifndef JITRUN_GRAPH_H
#define JITRUN_GRAPH_H

#include "jitrun_kernel.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- graphs */

typedef struct jit_graph jit_graph;
typedef struct jit_graph_options {
	size_t size;
	const char *source; /* a graph as text, or an ONNX file's bytes; NULL: what the file `path` contains */
	size_t n;           /* its bytes; 0: of a text, up to its end */
	const char *path;  /* the file's name, also in messages; NULL: "graph". External data of an ONNX file are looked
	                      for in its folder */
	const char *sizes; /* "n=64 m=4": what the text declares as sizes, or dimensions that the ONNX file names; NULL:
	                      none */
} jit_graph_options;
#define JIT_GRAPH_OPTIONS(...) JIT_STRUCT(jit_graph_options, __VA_ARGS__)

/* Reads a graph. options NULL, or without source and path: an empty one, which the calls below build. The options are
 * copied. JIT_ERROR_FORMAT: the text is not right, and the message names its line. */
jit_graph *jit_graph_open(const jit_graph_options *options, jit_error *err);
void jit_graph_close(jit_graph *g);
/* Writes it as text, which jit_graph_open() reads. path: a file, which is replaced. */
int jit_graph_write(const jit_graph *g, const char *path, jit_error *err);

/* BUILDING. A value is a number of its graph, from 1; *value receives it. dims: `rank` of them, at most 8, the last one
 * contiguous. type: JIT_TYPE_F32 and so on. A call that fails leaves the graph as it was. */
int jit_graph_add_input(jit_graph *g, const char *name, int type, const uint64_t *dims, size_t rank, uint32_t *value,
                        jit_error *err);
/* data: the elements, which are copied; as many bytes as the shape has. */
int jit_graph_add_constant(jit_graph *g, int type, const uint64_t *dims, size_t rank, const void *data, uint32_t *value,
                           jit_error *err);
/* operation: its name and attributes as in the text form, "reduce_sum axes=[1]". operands: n values. *value: the first
 * result; the others follow it. */
int jit_graph_add_node(jit_graph *g, const char *operation, const uint32_t *operands, size_t n, uint32_t *value,
                       jit_error *err);
/* A kernel in the language of jitrun_kernel.h as an operation. kernel: its text, or the file `path`; its name, where
 * the text has several, and its constants; check and messages are not used. operands: the n arrays that it reads, in
 * their order; *value: the first array that it writes, and the others follow. Scalars and inout arrays are refused.
 * gradient: the name of a kernel of the same text, which reads the operands and then a cotangent for each result of
 * floats, and writes a gradient for each operand of floats. NULL: derivatives of the operation are refused. */
int jit_graph_add_kernel(jit_graph *g, const jit_kernel_options *kernel, const char *gradient, const uint32_t *operands,
                         size_t n, uint32_t *value, jit_error *err);
int jit_graph_add_output(jit_graph *g, const char *name, uint32_t value, jit_error *err);
/* Statements as a file has them, a line each: "input x f32[n,4]\nh = tanh x\noutput h\n". Names stand for values of
 * this text, inputs, and named values of the graph. The sizes are those of jit_graph_options, here and in attributes
 * of jit_graph_add_node(). */
int jit_graph_add_text(jit_graph *g, const char *text, jit_error *err);

typedef struct jit_tensor {
	size_t size;
	const char *name; /* lives as long as the graph; NULL: it has none */
	int type, rank;
	uint64_t dim[8], elements, bytes;
	uint32_t value; /* its number in the graph, for the calls that build */
	int reserved;   /* 0 */
} jit_tensor;
#define JIT_TENSOR() JIT_STRUCT(jit_tensor, )
size_t jit_graph_inputs(const jit_graph *g);
size_t jit_graph_outputs(const jit_graph *g);
/* By number from 0; a value by its own number. */
int jit_graph_input(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err);
int jit_graph_output(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err);
int jit_graph_value(const jit_graph *g, uint32_t value, jit_tensor *out, jit_error *err);

/* What the graph means: every operation by plain loops on the host, slowly. in: the bytes of each input in their order;
 * out: memory for each output. Executables give the same bits, but for which NaN a NaN is. */
int jit_graph_interpret(const jit_graph *g, const void *const *in, size_t n_in, void *const *out, size_t n_out,
                        jit_error *err);

/* ---- graphs made of graphs */

/* DERIVATIVES AND BATCHES. Each is a graph of its own, which can be built upon, run, and transformed again: products of
 * second derivatives and a vector come from jit_graph_jvp() of what jit_graph_vjp() made. It has the inputs of g in
 * their order, then new ones. docs/graph-transforms.md has the rules. JIT_ERROR_UNSUPPORTED: an operation has no rule,
 * and the message names it. */

/* Gradients. inputs: the numbers, from 0, of n inputs of floats; n 0: all of them. New inputs: "ct.NAME" for each
 * output of floats: how much each of its elements counts. Outputs: with with_outputs not 0 those of g; then
 * "grad.NAME" for each of the n inputs, in its type and shape. */
jit_graph *jit_graph_vjp(const jit_graph *g, const size_t *inputs, size_t n, int with_outputs, jit_error *err);
/* Derivatives in a direction. New inputs: "t.NAME" for each of the n inputs: how it moves. Outputs: with with_outputs
 * not 0 those of g; then "t.NAME" for each output of floats: how that moves. */
jit_graph *jit_graph_jvp(const jit_graph *g, const size_t *inputs, size_t n, int with_outputs, jit_error *err);
/* g for `size` sets of inputs at once, each with the bits that it has alone. axes: for each of the n inputs of g where
 * the new dimension stands in it, from 0; below 0: all sets share the input. Outputs have it in front. */
jit_graph *jit_graph_vmap(const jit_graph *g, uint64_t size, const int *axes, size_t n, jit_error *err);

/* ---- executables: a graph as kernels of a device */

typedef struct jit_executable jit_executable;
/* The graph may be closed before the executable is; the jit_compute is closed after it. */
jit_executable *jit_executable_open(jit_compute *c, const jit_graph *g, jit_error *err);
void jit_executable_close(jit_executable *x);
/* Returns when it is done. in: the bytes of each input in their order, which are copied to the device; out: memory that
 * receives each output. n_in, n_out: how many the caller has, which must be those of the graph. */
int jit_executable_run(jit_executable *x, const void *const *in, size_t n_in, void *const *out, size_t n_out,
                       jit_error *err);

typedef struct jit_executable_report {
	size_t size;
	uint32_t kernels;   /* groups of nodes that are a kernel each */
	uint32_t on_host;   /* groups that are interpreted, because no kernel can be written for them yet */
	uint64_t generated; /* kernels whose code was made; that of the others was at hand */
	uint64_t open_ns;   /* how long all kernels took to open */
	uint64_t bytes;     /* of the device's memory for values */
	uint64_t all_bytes; /* what that would be if no two values shared memory */
	uint64_t constant_bytes;
	uint64_t last_ns; /* the last run, copies included */
} jit_executable_report;
#define JIT_EXECUTABLE_REPORT() JIT_STRUCT(jit_executable_report, )
int jit_executable_get_report(const jit_executable *x, jit_executable_report *out, jit_error *err);
/* Writes a line for each group to a file, which is replaced: its operation, its shape, whether it is native,
 * interpreted or on the host, its key in caches, its code's bytes, its last run. text: non-zero: its kernel's text,
 * too. */
int jit_executable_write_report(const jit_executable *x, const char *path, int text, jit_error *err);

/* ---- graphs whose sizes change */

/* The executables of one graph, one for each set of sizes that was named. Any number of threads may call these
 * functions. Code is kept by its shape, as that of all kernels: what two sets have in common is generated once. */
typedef struct jit_specialiser jit_specialiser;
/* options: with source or path, which is read once; its sizes hold for all executables. */
jit_specialiser *jit_specialiser_open(jit_compute *c, const jit_graph_options *options, jit_error *err);
/* Closes its executables, too, which nobody may be using. */
void jit_specialiser_close(jit_specialiser *s);
/* The executable for these sizes beside those of the options, "n=64 batch=2", in any order; "": there are none. It is
 * made if it is not there; one that the thread is making is waited for. The specialiser owns it. NULL: err; the next
 * call tries again. */
jit_executable *jit_specialiser_get(jit_specialiser *s, const char *sizes, jit_error *err);
/* Has a thread make it, in the order of these calls, and returns at once. jit_specialiser_get() says what goes wrong.
 */
int jit_specialiser_ahead(jit_specialiser *s, const char *sizes, jit_error *err);

enum { JIT_SPECIALISING, JIT_SPECIALISED, JIT_SPECIALISE_FAILED };
typedef struct jit_specialisation {
	size_t size;
	const char *sizes;         /* in the order of their names; lives as long as the specialiser */
	int state;                 /* JIT_SPECIALISING: it is not there yet */
	int ahead;                 /* 1: the thread made it, 0: jit_specialiser_get() did */
	uint32_t kernels, on_host; /* as of jit_executable_report */
	uint64_t generated;
	uint64_t began_ns, took_ns; /* began_ns: how long after jit_specialiser_open() */
	uint64_t waited_ns;         /* how long jit_specialiser_get() waited for the thread */
	uint64_t uses;              /* how often jit_specialiser_get() gave it */
} jit_specialisation;
#define JIT_SPECIALISATION() JIT_STRUCT(jit_specialisation, )
/* How many sets were named, and what became of each, by its number from 0. */
size_t jit_specialiser_count(jit_specialiser *s);
int jit_specialiser_report(jit_specialiser *s, size_t number, jit_specialisation *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
