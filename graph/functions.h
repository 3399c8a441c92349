/* graph/functions.h - exp, log, sin, cos, tanh, erf and pow of single numbers, by interpreting the series of kernels.
 */
#ifndef GRAPH_FUNCTIONS_H
#define GRAPH_FUNCTIONS_H

#include "graph/graph.h"

/* out[i] = op(x[i], y[i]) of n numbers of the type F32 or F64; y: of pow. */
bool function_apply(enum tensor_op op, int type, const union number *x, const union number *y, union number *out,
                    uint64_t n, struct error *err);

#endif
