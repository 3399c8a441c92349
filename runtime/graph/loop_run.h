/* runtime/graph/loop_run.h - scan on a device: its body as an executable of its own, which is run for each iteration.
 *
 * Owns: the order of an iteration. The body's inputs are bound to where the values around it are: what is carried to
 * the loop's results, what is stacked to the iteration's slice. What the body gives is copied there behind each
 * iteration. Where the host's threads run all steps of the body one behind the other, nothing is copied: what the body
 * gives is made where it belongs (loop_rounds.h), and many iterations are one run.
 */
#ifndef RUNTIME_GRAPH_LOOP_RUN_H
#define RUNTIME_GRAPH_LOOP_RUN_H

#include "runtime/graph/executable.h"

struct looping;

/* NULL: err. */
struct looping *looping_open(struct executable *x, const struct tensor_node *n, struct error *err);
void looping_close(struct looping *l); /* l may be NULL */
bool looping_run(struct looping *l, struct error *err);
/* The constant that a shared operand of a scan is, of which the body has the elements; else NULL. */
const struct tensor *looping_constant(const struct executable *x, const struct tensor_node *n, uint32_t operand);
/* The body's kernels. */
const struct executable *looping_body(const struct looping *l);

#endif
