/* tests/graph/random_draw.h - parts of random graphs: nodes that are drawn on values that are there. */
#ifndef TESTS_GRAPH_RANDOM_DRAW_H
#define TESTS_GRAPH_RANDOM_DRAW_H

#include "tests/graph/random_graph.h"

struct draw {
	uint64_t state;
	struct tensor_graph *g;
	bool smooth;    /* values are f64, small ones, and constants are tame */
	bool loops;     /* of smooth graphs: there are loops */
	unsigned depth; /* loops around it */
};

unsigned random_below(struct draw *d, unsigned n);
uint64_t random_size_of(struct draw *d);
tensor_value random_any_value(struct draw *d);
const struct tensor_value_info *random_info(const struct draw *d, tensor_value v);
/* 0: it does not fit, and is not drawn. */
tensor_value random_add(struct draw *d, enum tensor_op op, const tensor_value *x, unsigned n, const struct attribute *a,
                        unsigned attributes);
/* Some value in the type and shape of v: one that is there, or one that is made of v. */
tensor_value random_like(struct draw *d, tensor_value v);
tensor_value random_broadcast(struct draw *d, tensor_value x);
tensor_value random_reshape(struct draw *d, tensor_value x);
tensor_value random_by_axes(struct draw *d, enum tensor_op op, tensor_value x);
tensor_value random_slice(struct draw *d, tensor_value x);
tensor_value random_pad(struct draw *d, tensor_value x);
tensor_value random_take(struct draw *d, tensor_value x);
tensor_value random_dot(struct draw *d, tensor_value x);
tensor_value random_windows(struct draw *d, tensor_value x);
tensor_value random_node(struct draw *d);
/* What constants have. */
void random_constant(struct draw *d, struct tensor *t, int type, const struct shape *s);

/* ---- smooth_graph.c: an operation that has a derivative; a number between -1 and 1 */
tensor_value smooth_node(struct draw *d);
tensor_value smooth_tame(struct draw *d, tensor_value x);

/* ---- random_loops.c */
tensor_value random_scan(struct draw *d);
tensor_value random_solve(struct draw *d, tensor_value x);
tensor_value random_scatter(struct draw *d, tensor_value x);

#endif
