/* graph/loop.h - scan: a loop with values that are carried from iteration to iteration, as jax.lax.scan has it.
 *
 * Owns: what a node of scan says. Its body is a graph as text. Operands are first the carried values as they are before
 * the first iteration, then stacked ones, of which each iteration is given the slice at its index along the first
 * dimension, then those that all iterations share; the body's inputs are these, in this order. Its outputs are the
 * carried values for the next iteration, and then a slice of each stacked result. Results are the carried values behind
 * the last iteration, and the stacked results. In reverse, the first iteration has the last slices.
 */
#ifndef GRAPH_LOOP_H
#define GRAPH_LOOP_H

#include "graph/graph.h"

struct loop {
	struct tensor_graph body;
	uint32_t carried, stacked; /* operands; those behind them are shared */
	uint64_t length;           /* iterations */
	bool reverse;
};

/* shape: those of the operands. False: err; else the caller closes it. */
bool loop_open(struct loop *l, const struct tensor_node *n, const struct shape *const shape[], struct error *err);
/* With the operands of a node that is in g. */
bool loop_of(struct loop *l, const struct tensor_graph *g, const struct tensor_node *n, struct error *err);
void loop_close(struct loop *l);
/* The index along the first dimension of iteration number i. */
static inline uint64_t loop_index(const struct loop *l, uint64_t i) { return l->reverse ? l->length - 1 - i : i; }

/* The nodes of `from` once more: in[] stands for its inputs, and out[] is given what its outputs are. False: err. */
bool graph_inline(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value in[], tensor_value out[],
                  struct error *err);
/* A node of scan over l->body, with l's numbers. The first result; 0: err. */
tensor_value graph_scan(struct tensor_graph *g, const struct loop *l, const tensor_value operand[], uint32_t operands,
                        struct error *err);

#endif
