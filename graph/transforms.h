/* graph/transforms.h - graphs made of graphs: gradients, forward derivatives, and batches.
 *
 * Owns: vjp, jvp and vmap. Each draws a new graph of the same operations, so what is true of graphs is true of their
 * derivatives: the same bits on every device with any number of threads, and they can be transformed again. rules.def
 * says by which rules; an operation that has none, where a derivative must flow through it, is refused by its name.
 *
 * `to` is initialised and empty; if a function returns false, err says why, and `to` is to be freed all the same. It
 * has `from`'s inputs, in their order, and then new ones. A new name that another input has already gets its prefix
 * again.
 */
#ifndef GRAPH_TRANSFORMS_H
#define GRAPH_TRANSFORMS_H

#include "graph/graph.h"

/* Gradients, from the outputs backwards. New inputs: "ct.NAME" for each output of floats, in its type and shape: how
 * much each of its elements counts. Outputs: with_outputs, all of `from`; then "grad.NAME" for each of the n inputs
 * wrt, in its type and shape, which is zeros where no output depends on it. wrt: inputs of `from`, of floats. */
bool tensor_graph_vjp(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value wrt[], uint32_t n,
                      bool with_outputs, struct error *err);

/* Derivatives, from the inputs forwards. New inputs: "t.NAME" for each of the n inputs wrt: the direction in which it
 * moves. Outputs: with_outputs, all of `from`; then "t.NAME" for each output of floats: how it moves. */
bool tensor_graph_jvp(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value wrt[], uint32_t n,
                      bool with_outputs, struct error *err);

/* The graph for `size` sets of inputs at once, with the bits that each has alone. axis: one for each input of `from`:
 * where the new dimension of `size` stands in it, 0 to its rank; below 0: all share this input. Outputs have the new
 * dimension in front, those that depend on no such input, too. */
bool tensor_graph_vmap(struct tensor_graph *to, const struct tensor_graph *from, uint64_t size, const int axis[],
                       struct error *err);

#endif
