/* tests/graph/product_graph.h - graphs of one product or convolution, in shapes around the ends of tiles and lanes. */
#ifndef TESTS_GRAPH_PRODUCT_GRAPH_H
#define TESTS_GRAPH_PRODUCT_GRAPH_H

#include "graph/graph.h"

/* The same seed gives the same graph: operands in any order of dimensions, inputs or constants, of any type of numbers,
 * and what is often done to a product behind it. */
void product_graph(struct tensor_graph *g, uint64_t seed);
void conv_graph(struct tensor_graph *g, uint64_t seed);

#endif
