/* graph/passes.h - a graph made simpler: what nothing needs is left out, equal nodes are one, what depends on constants
 * alone is computed, convolutions of inputs with gaps become several without, linear equations become loops, products
 * are written so that their operands lie as kernels read them, and packed weights are unpacked for each product anew,
 * so that they do not lie unpacked in memory from one product to the next. None changes a bit. */
#ifndef GRAPH_PASSES_H
#define GRAPH_PASSES_H

#include "graph/graph.h"

/* In their order. */
enum pass { PASS_NEEDED, PASS_EQUAL, PASS_CONSTANTS, PASS_GAPS, PASS_LOOPS, PASS_PRODUCTS, PASS_WEIGHTS, PASSES };
extern const struct pass_row {
	const char *name, *what; /* "equal", and a sentence without its end */
} pass_rows[PASSES];

/* to: initialised, and empty; it has the same inputs and outputs. False: err, and `to` is to be freed all the same. */
bool passes_run(struct tensor_graph *to, const struct tensor_graph *from, struct error *err);
/* Those that have their bit: 1u << PASS_EQUAL. The elements of constants are lent to `to`. */
bool passes_run_some(struct tensor_graph *to, const struct tensor_graph *from, unsigned passes, struct error *err);
/* One of them alone. */
bool passes_run_one(struct tensor_graph *to, const struct tensor_graph *from, enum pass pass, struct error *err);

#endif
