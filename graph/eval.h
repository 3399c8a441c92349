/* graph/eval.h - what a graph means: each operation by plain loops over single elements.
 *
 * Owns: the meaning. It is slow and plain on purpose: what is compiled must have the same bits. Functions such as exp
 * are the series that kernels have, interpreted (functions.h).
 */
#ifndef GRAPH_EVAL_H
#define GRAPH_EVAL_H

#include "graph/graph.h"

/* Computes the results of a node of the graph. in: its operands. out: made here, freed by the caller if it is true. */
bool tensor_node_eval(const struct tensor_graph *g, const struct tensor_node *n, const struct tensor *const in[],
                      struct tensor out[], struct error *err);
/* All of it. in: g->inputs of the inputs' types and shapes. out: g->outputs, made here, freed by the caller. */
bool tensor_graph_eval(const struct tensor_graph *g, const struct tensor *const in[], struct tensor out[],
                       struct error *err);
/* A value that depends on no input, computed; false, err: it does depend on one, or there is no memory. */
bool tensor_graph_known(const struct tensor_graph *g, tensor_value v, struct tensor *out, struct error *err);

#endif
