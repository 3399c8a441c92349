/* graph/users.h - users' kernels as operations: their texts, and what these say of operands and results.
 *
 * The arrays that a kernel reads are its operands, in their order, and those that it writes its results. Elements that
 * it does not write are 0. A gradient is a kernel of the same text: it reads the operands, then a cotangent for each
 * result of floats, and writes a gradient for each operand of floats.
 */
#ifndef GRAPH_USERS_H
#define GRAPH_USERS_H

#include "graph/graph.h"
#include "language/jk.h"

/* Attributes of text are bytes with a 0 behind them, instead of integers. NULL: the node has none of that name. */
const char *attribute_text(const struct tensor_node *n, enum tensor_attribute name);
/* An attribute of a text: its integers are malloc'ed. False: err. */
bool attribute_make_text(struct attribute *a, enum tensor_attribute name, const char *text, size_t n,
                         struct error *err);

/* A node's kernel, its constants bound; a tuned constant has the first of its values. The caller closes the kernel and
 * *file. NULL: err. */
struct jk_kernel *users_bind(const struct tensor_node *n, struct jk_file **file, struct error *err);

#endif
