/* graph/passes_state.h - a graph that is being copied into a simpler one: what the passes share. */
#ifndef GRAPH_PASSES_STATE_H
#define GRAPH_PASSES_STATE_H

#include "graph/passes.h"

enum { BUCKETS = 4096 };

/* A node of constants, and the constant that it became. */
struct known {
	struct tensor_node n; /* its lists are its own */
	tensor_value is;
	uint32_t next; /* number from 1 */
};

struct copying {
	struct tensor_graph *to;
	const struct tensor_graph *from;
	tensor_value *is; /* what a value of `from` is in `to` */
	bool *live;
	uint32_t *bucket, *next; /* nodes of `to` by hash, numbers from 1 */
	size_t next_room;
	struct known *known; /* what was computed of constants */
	uint32_t n_known, known_at[BUCKETS];
	size_t known_room;
	unsigned passes; /* bits of enum pass: which are done */
	bool lends;      /* the constants of `from` */
	struct error *err;
};

/* A node with operands of `to`: one that is there, a constant, or a new one. 0: err. */
tensor_value passes_put(struct copying *c, const struct tensor_node *n);
/* A convolution of an input with gaps as several of inputs without; 0, and *err is not set: it stays as it is. */
tensor_value passes_put_conv(struct copying *c, const struct tensor_node *n);
/* Linear equations as loops of operations that have kernels; 0 as above. */
tensor_value passes_put_solve(struct copying *c, const struct tensor_node *n);
/* Sorting as a loop of merges, and elements that are taken by the order that it makes. out: the node's results. False,
 * and *err is not set: it stays as it is. */
bool passes_put_sort(struct copying *c, const struct tensor_node *n, tensor_value out[]);

/* A scatter whose indices are i32; 0 as above. */
tensor_value passes_put_scatter(struct copying *c, const struct tensor_node *n);

#endif
