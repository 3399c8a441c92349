/* tests/graph/transform_checks.h - graphs' derivatives and batches beside what shares nothing with them. Each check
 * fails the test, having printed the graph. what: which graph it is, for people. */
#ifndef TESTS_GRAPH_TRANSFORM_CHECKS_H
#define TESTS_GRAPH_TRANSFORM_CHECKS_H

#include "graph/graph.h"
#include "include/jitrun_kernel.h"

enum { MAX = 32, BATCH = 3 };
/* What a graph is given, or what it gives. */
struct values {
	struct tensor t[MAX];
	uint32_t n;
};
/* Elements of gradients, how many are not 0, and how many differences say nothing about: they depend on the step. */
struct witnessed {
	uint64_t elements, moving, kinks;
};

void checks_seed(uint64_t seed);
void checks_say(const struct tensor_graph *g, const char *what, const char *why);
void checks_must(bool ok, const struct tensor_graph *g, const char *what, const struct error *err);
void checks_free_values(struct values *v);
/* Random numbers for the inputs from number `first` on. */
void checks_fill_from(const struct tensor_graph *g, uint32_t first, struct values *in);
void checks_run(const struct tensor_graph *g, const struct values *in, struct values *out, const char *what);
/* The inputs of floats, from number `first` on. */
uint32_t checks_floats_of(const struct tensor_graph *g, tensor_value wrt[MAX], uint32_t first);
/* NaNs are equal: which bits they have is the machine's affair. */
bool checks_same_bits(const struct tensor *a, const struct tensor *b);

/* v: all outputs of g, and its gradient by all inputs of floats. */
void checks_gradient_of(struct tensor_graph *v, const struct tensor_graph *g, const char *what);
/* v, as checks_gradient_of() makes it, beside central differences of g in f64; in: of v. */
void checks_beside_differences(const struct tensor_graph *g, const struct tensor_graph *v, struct values *in,
                               struct witnessed *seen, const char *what);
/* The derivative in a random direction beside the gradient, in f64. */
void checks_beside_each_other(const struct tensor_graph *g, const struct tensor_graph *v, const struct values *in,
                              const char *what);
/* The derivative of the gradient v in a random direction beside differences of v, in f64. */
void checks_beside_moved(const struct tensor_graph *v, const struct values *in, const char *what);
/* A batch of g, with random inputs that have it at random axes, beside each set alone, bit for bit. False: it would
 * have more than 8 dimensions. */
bool checks_beside_loop(const struct tensor_graph *g, uint64_t size, const char *what);
/* The gradient of a batch of g beside differences. */
void checks_batched_gradient(const struct tensor_graph *g, struct witnessed *seen, const char *what);
/* What is compiled beside the interpreter, bit for bit. */
void checks_beside_compiled(const struct tensor_graph *g, const struct values *in, jit_compute *c, const char *what);

#endif
