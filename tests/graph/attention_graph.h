/* tests/graph/attention_graph.h - random graphs of attention: layouts, groups of heads, masks, what is done to scores.
 */
#ifndef TESTS_GRAPH_ATTENTION_GRAPH_H
#define TESTS_GRAPH_ATTENTION_GRAPH_H

#include <stdint.h>

#include "graph/graph.h"
#include "runtime/graph/executable.h"

/* An empty graph becomes one. *together: whether it is one kernel; where values are narrow, devices differ. */
enum together { TOGETHER_NEVER, TOGETHER_PERHAPS, TOGETHER_ALWAYS };
void attention_graph(struct tensor_graph *g, uint64_t seed, enum together *together);
/* How many groups of an executable compute attention. */
uint32_t attention_groups(const struct executable *x);

#endif
