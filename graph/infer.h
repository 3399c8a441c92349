/* graph/infer.h - the rules that find types and shapes of results; each checks operands and attributes. */
#ifndef GRAPH_INFER_H
#define GRAPH_INFER_H

#include "graph/graph.h"

/* A node under inference: its operands' types and shapes, and what is found. */
struct inference {
	const struct tensor_node *n;
	const char *op;
	int type[TENSOR_MAX_OPERANDS];
	const struct shape *shape[TENSOR_MAX_OPERANDS];
	struct inferred *out;
	struct error *err;
};
typedef bool infer_rule(struct inference *x);

/* Sets the only result. Returns true. */
bool infer_result(struct inference *x, int type, const struct shape *s);
/* An attribute of n integers, one for each of `rank` dimensions; false: err. NULL in *out: it is not there. */
bool infer_list(struct inference *x, enum tensor_attribute name, unsigned rank, const struct attribute **out);
/* An axis of a shape of that rank. */
bool infer_axis(struct inference *x, enum tensor_attribute name, unsigned rank, unsigned *axis);
/* Different axes; marked[i]: i is one of them. */
bool infer_axes(struct inference *x, enum tensor_attribute name, unsigned rank, bool marked[TENSOR_MAX_RANK]);
/* Dimensions from `first` on of operand 0 are seen through windows of such sizes: attributes strides, low, high and
 * dilation; input: dilation of the operand. Writes their number of positions into s->dim[first..]. */
bool infer_windows(struct inference *x, unsigned first, const uint64_t *window, const struct attribute *input,
                   struct shape *s);

infer_rule infer_elements, infer_select, infer_convert, infer_bitcast;
infer_rule infer_iota, infer_broadcast, infer_reshape, infer_transpose, infer_slice, infer_pad, infer_concatenate,
	infer_reverse;
infer_rule infer_take, infer_take_along, infer_gather_nd, infer_scatter_nd, infer_scatter_along;
infer_rule infer_reduce, infer_arg, infer_scan, infer_sort, infer_dot, infer_conv, infer_window, infer_dequantise,
	infer_random, infer_solve, infer_loop, infer_kernel;

#endif
