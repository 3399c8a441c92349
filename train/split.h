/* train/split.h - a graph cut in two: what can be computed before some inputs are known, and the rest.
 *
 * Owns: which values go from the first part to the second. Neither part computes anything else than the graph does, so
 * the bits are the same; where what is kept has room, the first part is not computed twice.
 */
#ifndef TRAIN_SPLIT_H
#define TRAIN_SPLIT_H

#include "graph/graph.h"

enum { SPLIT_KEPT_MAX = 120 };
struct split {
	struct tensor_graph front, back;
	tensor_value kept[SPLIT_KEPT_MAX]; /* of the graph; outputs of `front` in this order, behind the graph's own */
	uint32_t n_kept, front_outputs;    /* front_outputs: outputs of the graph that `front` has: the first ones */
};

/* front: has inputs 0 to late - 1; outputs: those of g that need no later one, which come first in g, then kept values.
 * back: has all inputs of g, then the kept values; outputs: the others of g. False: err; split_free() is due in any
 * case. */
bool split_graph(struct split *s, const struct tensor_graph *g, uint32_t late, struct error *err);
void split_free(struct split *s);

#endif
