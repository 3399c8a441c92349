/* loaders/onnx/import.h - how the import of one file goes: scopes of names, and one node at a time.
 *
 * An operator is a function that reads a node's operands and attributes, and draws its results. Errors are sticky (as
 * in graph/draw.h): the importer asks once, behind the function, and adds which node it was.
 */
#ifndef LOADERS_ONNX_IMPORT_H
#define LOADERS_ONNX_IMPORT_H

#include "graph/draw.h"
#include "loaders/files/names.h"
#include "loaders/onnx/file.h"

enum { IMPORT_MAX_DEPTH = 24, IMPORT_MAX_NODES = 1 << 16 };
/* About as many steps as the import may spend on known values: some seconds. */
#define IMPORT_MAX_WORK (UINT64_C(1) << 28)

/* Values that depend on no input, as far as they were asked for. */
struct known {
	struct tensor **value; /* by value of the graph */
	uint32_t values;
	uint64_t work; /* steps that are left for computing them */
};

struct import {
	struct onnx_file *file;
	struct tensor_graph *g;
	const struct onnx_sizes *sizes;
	struct onnx_refusal *why;
	struct known known;
	uint32_t nodes;           /* imported so far, each as often as it was drawn */
	unsigned depth;           /* of subgraphs and functions */
	struct import *outer;     /* of a loop's body: whose graph the loop is in; NULL */
	struct import_body *body; /* of a loop's body: its inputs */
};

/* The names of a graph, of a subgraph, or of a function that is called. */
struct scope {
	struct import *im;
	const struct scope *outer; /* whose names a subgraph sees, too */
	const char **name;
	tensor_value *value; /* 0: not yet made */
	uint8_t *narrow;     /* the type of the file, where value holds its elements in a wider one */
	const struct onnx_tensor **initializer; /* of a name that is one; its value is made when it is first used */
	struct names index;
	uint32_t names;
	const struct onnx_function *function; /* attributes refer to those of the call */
	const struct op *call;
};

/* A node that is imported. in[i]: 0: it is left out. out[i]: to be set, if wanted[i]. */
struct op {
	struct draw d;
	struct import *im;
	struct scope *scope;
	const struct onnx_node *node;
	const struct operator_row *row;
	int64_t opset;
	uint32_t inputs, outputs;
	tensor_value *in, *out;
	uint8_t *narrow_in, *narrow_out; /* types of the file that are held in wider ones; 0: others */
	struct error *err;               /* the node's own: d.err, too */
};
typedef void op_rule(struct op *o);
struct operator_row {
	const char *domain, *name, *attributes;
	op_rule *rule;
	uint16_t min, max; /* inputs */
	int user;          /* for the rule: which of its operators it is */
};
/* NULL: no operator of that name is known in the domain, which is empty for ONNX's own. */
const struct operator_row *operator_find(const char *domain, const char *name);

/* ---- import.c */
bool import_body(struct scope *s, struct onnx_node *const *node, size_t n, struct error *err);
/* Draws a subgraph: in: as many as it has inputs; out: as many as it has outputs. */
bool import_subgraph(struct op *o, const struct onnx_graph *g, const tensor_value *in, uint32_t n_in, tensor_value *out,
                     uint32_t n_out);
/* ---- scope.c */
bool import_scope_of_graph(struct scope *s, struct import *im, const struct scope *outer, const struct onnx_graph *g,
                           struct error *err);
bool import_scope_of_function(struct scope *s, const struct op *call, const struct onnx_function *f, struct error *err);
void import_scope_free(struct scope *s);
/* False: the name is not of this scope. narrow: as in struct scope. */
bool import_scope_set(struct scope *s, const char *name, tensor_value v, uint8_t narrow);
/* 0, err: no scope has it, or it is not yet made. narrow: as in struct scope; may be NULL. */
tensor_value import_scope_find(const struct scope *s, const char *name, uint8_t *narrow, struct error *err);

/* ---- op_iterate.c */
/* A value of owner's graph, in which im's lies, in the graph of im: v itself where these are the same. 0: err. */
tensor_value import_capture(struct import *im, const struct import *owner, tensor_value v, struct error *err);

/* ---- known.c */
/* The value, which stays where it is until the import ends; NULL, err: it depends on an input. */
const struct tensor *import_known(struct import *im, tensor_value v, struct error *err);
bool import_is_known(struct import *im, tensor_value v);
void import_forget(struct import *im);

/* ---- attribute.c: attributes of a node; one of another type is a sticky error */
const struct onnx_attribute *op_attribute(const struct op *o, const char *name);
int64_t op_int(struct op *o, const char *name, int64_t usual);
double op_float(struct op *o, const char *name, double usual);
/* Whether the attribute, or what is usual, is that word. */
bool op_is(struct op *o, const char *name, const char *usual, const char *word);
/* The integers of an attribute: *n of them; false: the node has no such attribute, or err. */
bool op_ints(struct op *o, const char *name, int64_t *out, unsigned max, unsigned *n);
/* Exactly n integers of at least `least`; without the attribute all are `usual`. */
bool op_list(struct op *o, const char *name, int64_t *out, unsigned n, int64_t usual, int64_t min);
/* Refuses the node: one sentence without the node's name. */
void op_refuse(struct op *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool op_failed(const struct op *o) { return o->err->code != ERROR_NONE; }
static inline tensor_value op_in(const struct op *o, unsigned i) { return i < o->inputs ? o->in[i] : 0; }
static inline bool op_wants(const struct op *o, unsigned i)
{
	return i < o->node->n_output && o->node->output[i] && o->node->output[i][0];
}
/* An input whose value shapes the graph; NULL: it is left out, or an error. */
const struct tensor *op_known(struct op *o, unsigned input);
bool op_known_ints(struct op *o, unsigned input, int64_t *out, unsigned max, unsigned *n);
/* The same of one integer, or what is usual. */
int64_t op_known_int(struct op *o, unsigned input, int64_t usual);
/* Integers that later versions have as an input, and earlier ones as an attribute. */
bool op_ints_of(struct op *o, unsigned input, const char *attribute, int64_t *out, unsigned max, unsigned *n);
/* An axis of `rank` dimensions, counted from the end if it is negative. */
unsigned op_axis(struct op *o, int64_t axis, unsigned rank);
/* The set of axes that integers are. */
unsigned op_axes(struct op *o, const int64_t *axis, unsigned n, unsigned rank);
double number_of(const struct tensor *t, uint64_t element);

#endif
