/* graph/graph.h - graphs of tensors: values, and nodes that make values of others.
 *
 * Owns: the structure. A graph has exact shapes: every dimension is a number. Nodes stand in an order in which each
 * comes behind those that make its operands; nothing is written twice. ops.def is the table of operations, eval.h says
 * what they mean, text.h is the form that people read and write.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "graph/tensor.h"

/* A value by its number, from 1. 0: none. */
typedef uint32_t tensor_value;

enum tensor_op {
#define OP(name, min, max, results, kind, attributes) OP_##name,
#include "graph/ops.def"
#undef OP
	TENSOR_OPS
};
enum tensor_kind {
	KIND_NUMBERS,
	KIND_FLOATS,
	KIND_BITS,
	KIND_INTEGERS,
	KIND_COMPARE,
	KIND_SELECT,
	KIND_CONVERT,
	KIND_BITCAST, /* up to here: a number of each operand gives a number */
	KIND_CONSTANT,
	KIND_IOTA,
	KIND_BROADCAST,
	KIND_RESHAPE,
	KIND_TRANSPOSE,
	KIND_SLICE,
	KIND_PAD,
	KIND_CONCATENATE,
	KIND_REVERSE,
	KIND_TAKE,
	KIND_TAKE_ALONG,
	KIND_GATHER_ND,
	KIND_SCATTER_ND,
	KIND_SCATTER_ALONG,
	KIND_REDUCE,
	KIND_REDUCE_BOOL,
	KIND_ARG,
	KIND_SCAN,
	KIND_SORT,
	KIND_DOT,
	KIND_CONV,
	KIND_WINDOW,
	KIND_DEQUANTISE,
	KIND_RANDOM,
	KIND_SOLVE,
	KIND_LOOP,
	KIND_KERNEL
};
enum { TENSOR_MANY = 255, TENSOR_MAX_OPERANDS = 64 };

struct tensor_op_row {
	const char *name;
	uint8_t min, max, results, kind;
	const char *attributes;
};
extern const struct tensor_op_row tensor_ops[TENSOR_OPS];
static inline bool tensor_op_is_elementwise(enum tensor_op op) { return tensor_ops[op].kind <= KIND_BITCAST; }
/* TENSOR_OPS: none has that name. */
enum tensor_op tensor_op_find(const char *name, size_t n);

enum tensor_attribute {
#define ATTRIBUTE(name, kind) ATTRIBUTE_##name,
#include "graph/attributes.def"
#undef ATTRIBUTE
	TENSOR_ATTRIBUTES
};
enum attribute_kind {
	ATTRIBUTE_WHOLE,
	ATTRIBUTE_WHOLES,
	ATTRIBUTE_REAL,
	ATTRIBUTE_TYPE,
	ATTRIBUTE_WORD,
	ATTRIBUTE_TEXT
};
extern const struct attribute_row {
	const char *name;
	enum attribute_kind kind;
} tensor_attributes[TENSOR_ATTRIBUTES];
enum tensor_attribute tensor_attribute_find(const char *name, size_t n);

/* What a number of a WORD stands for: of mode enum scatter_mode, of format a type of weights. NULL: nothing. */
const char *tensor_word(enum tensor_attribute a, int64_t number);
/* The number of a word; -1: the attribute has no such word. */
int64_t tensor_word_find(enum tensor_attribute a, const char *word);

enum scatter_mode { SCATTER_SET, SCATTER_ADD, SCATTER_MUL, SCATTER_MIN, SCATTER_MAX, SCATTER_MODES };

/* Integers of a TYPE or WORD: the type, or the word's number (tensor_word()); of a TEXT its bytes (users.h). */
struct attribute {
	enum tensor_attribute name;
	uint32_t n;
	int64_t *whole; /* n of them; the graph's own, of one that is being added the caller's */
	double real;
};

struct tensor_node {
	enum tensor_op op;
	uint32_t operands, results, attributes;
	tensor_value *operand, first; /* results are first, first + 1 and so on */
	struct attribute *attribute;
	struct tensor *constant; /* of OP_constant */
	bool lent;               /* the constant's elements are not the graph's own */
};

enum { VALUE_OUTSIDE = UINT32_MAX };
struct tensor_value_info {
	char *name; /* NULL: it has none */
	int type;
	struct shape shape;
	uint32_t node; /* which makes it; VALUE_OUTSIDE: an input */
};

struct tensor_graph {
	char *name;
	struct tensor_value_info *value; /* number 0 is none */
	struct tensor_node *node;
	tensor_value *input, *output;
	char **output_name;
	uint32_t values, nodes, inputs, outputs;
	size_t value_room, node_room, input_room, output_room, output_name_room;
};

void tensor_graph_init(struct tensor_graph *g);
void tensor_graph_free(struct tensor_graph *g);
/* 0, err: there is no memory, or the shape is too large. name is copied. */
tensor_value tensor_graph_input(struct tensor_graph *g, const char *name, int type, const struct shape *s,
                                struct error *err);
/* Copies the tensor. */
tensor_value tensor_graph_constant(struct tensor_graph *g, const struct tensor *t, struct error *err);
/* The same, but it takes the elements, and t has none from then on. */
tensor_value tensor_graph_take(struct tensor_graph *g, struct tensor *t, struct error *err);
/* The same without its elements, which stay the caller's and outlive the graph, or tensor_graph_forget(). */
tensor_value tensor_graph_lend(struct tensor_graph *g, const struct tensor *t, struct error *err);
/* Constants have no elements from now on: they are where they are needed. */
void tensor_graph_forget(struct tensor_graph *g);
/* Adds a node, checks operands and attributes, and finds its results' types and shapes. The first result; 0: err says
 * what is wrong, and the graph is as it was. */
tensor_value tensor_graph_add(struct tensor_graph *g, enum tensor_op op, const tensor_value *operand, uint32_t operands,
                              const struct attribute *attribute, uint32_t attributes, struct error *err);
bool tensor_graph_output(struct tensor_graph *g, const char *name, tensor_value v, struct error *err);
bool tensor_graph_name_value(struct tensor_graph *g, tensor_value v, const char *name, struct error *err);
/* The value of that name, the last one where several have it; 0: none has. */
tensor_value tensor_graph_find(const struct tensor_graph *g, const char *name);

/* How much a graph has; cutting takes away what was added since. */
struct tensor_graph_mark {
	uint32_t values, nodes, inputs, outputs;
};
static inline struct tensor_graph_mark tensor_graph_mark(const struct tensor_graph *g)
{
	return (struct tensor_graph_mark){ g->values, g->nodes, g->inputs, g->outputs };
}
void tensor_graph_cut(struct tensor_graph *g, const struct tensor_graph_mark *to);

static inline const struct tensor_value_info *tensor_value_of(const struct tensor_graph *g, tensor_value v)
{
	return &g->value[v];
}
static inline const struct tensor_node *tensor_node_of(const struct tensor_graph *g, tensor_value v)
{
	return g->value[v].node == (uint32_t)VALUE_OUTSIDE ? NULL : &g->node[g->value[v].node];
}
/* NULL: the node has none of that name. */
const struct attribute *tensor_node_attribute(const struct tensor_node *n, enum tensor_attribute name);
/* Whether an axis is one of its integers; NULL has none. */
bool attribute_has(const struct attribute *a, unsigned axis);
/* An integer of it, or what is usual. */
int64_t tensor_node_whole(const struct tensor_node *n, enum tensor_attribute name, unsigned i, int64_t usual);

/* Finds types and shapes of all results, having checked everything. The node is not yet in the graph. */
enum { TENSOR_MAX_RESULTS = 64 };
struct inferred {
	int type[TENSOR_MAX_RESULTS];
	struct shape shape[TENSOR_MAX_RESULTS];
	uint32_t results;
};
bool tensor_infer(const struct tensor_graph *g, const struct tensor_node *n, struct inferred *out, struct error *err);

/* ---- short forms for those who draw graphs; each is tensor_graph_add(), and 0 as an operand gives 0 */

tensor_value graph_unary(struct tensor_graph *g, enum tensor_op op, tensor_value x, struct error *err);
tensor_value graph_binary(struct tensor_graph *g, enum tensor_op op, tensor_value x, tensor_value y, struct error *err);
/* All elements are `number`, in the type and shape of like. */
tensor_value graph_full(struct tensor_graph *g, double number, int type, const struct shape *s, struct error *err);
tensor_value graph_convert(struct tensor_graph *g, tensor_value x, int type, struct error *err);
tensor_value graph_reshape(struct tensor_graph *g, tensor_value x, const struct shape *s, struct error *err);
tensor_value graph_transpose(struct tensor_graph *g, tensor_value x, const unsigned *axes, struct error *err);
tensor_value graph_broadcast(struct tensor_graph *g, tensor_value x, const struct shape *s, const unsigned *axes,
                             struct error *err);
/* Numpy's rule: dimensions are aligned at the last one, and those of size 1 are repeated. */
tensor_value graph_broadcast_last(struct tensor_graph *g, tensor_value x, const struct shape *s, struct error *err);
/* op is one of KIND_REDUCE; the reduced dimensions go. */
tensor_value graph_reduce(struct tensor_graph *g, enum tensor_op op, tensor_value x, const unsigned *axes, unsigned n,
                          struct error *err);

#endif
