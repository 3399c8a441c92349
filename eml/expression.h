/* eml/expression.h - expressions of numbers, variables, functions and operators: built, read, written, and their
 * values.
 *
 *   expression.c          building and comparing
 *   expression_read.c     texts into expressions: bytes from outside
 *   expression_write.c    expressions as text, C and LaTeX
 *   expression_value.c    values, as complex numbers
 *   expression_tidy.c     a shorter expression with the same values
 *
 * Owns: the form. Nodes lie in one array, operands before what uses them, and the last one is the whole.
 */
#ifndef EML_EXPRESSION_H
#define EML_EXPRESSION_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum operation {
#define OPERATION(name, text, operands) OP_##name,
#include "eml/operations.def"
#undef OPERATION
	OPERATIONS
};
struct operation_form {
	const char *text;
	unsigned operands;
};
extern const struct operation_form operation_form[OPERATIONS];

struct node {
	enum operation op;
	uint32_t a, b; /* operands; of a variable, a is its number */
	double number;
};
/* Begins as zeros. */
struct expression {
	struct node *node;
	size_t n, capacity;
	bool failed; /* there was no memory; what follows does nothing */
};
enum { EXPRESSION_VARIABLES = 64, EXPRESSION_NODES = 1 << 16, EXPRESSION_DEPTH = 200 };

void expression_free(struct expression *e);
/* Each returns the new node's number. */
uint32_t expression_number(struct expression *e, double number);
uint32_t expression_variable(struct expression *e, uint32_t number);
uint32_t expression_add(struct expression *e, enum operation op, uint32_t a, uint32_t b);
/* A copy of another's part, whose variables become what `with` says, nodes of e; NULL: variables. */
uint32_t expression_copy(struct expression *e, const struct expression *from, uint32_t root, const uint32_t *with);
static inline uint32_t expression_root(const struct expression *e) { return (uint32_t)e->n - 1; }
/* Nodes of a part, each counted as often as it is used. */
size_t expression_size(const struct expression *e, uint32_t root);
bool expression_equal(const struct expression *e, uint32_t a, const struct expression *f, uint32_t b);

/* names: of `variables` variables, a blank between: "x y". what: of the text, for sentences. False: err. */
bool expression_read(struct expression *e, const char *what, const char *text, const char *const *names,
                     unsigned variables, struct error *err);

/* clang has no CMPLX with glibc's headers. */
static inline double complex complex_of(double re, double im)
{
	const union {
		double part[2];
		double complex z;
	} u = { { re, im } };

	return u.z;
}

enum expression_form { EXPRESSION_TEXT, EXPRESSION_C, EXPRESSION_LATEX };
void expression_write(const struct expression *e, const char *const *names, enum expression_form form, FILE *out);

/* With complex numbers for its variables. Logarithms and roots have their principal values; a number that is real but
 * for rounding, and below 0, has the angle pi. */
double complex expression_value(const struct expression *e, const double complex *variable);
/* The logarithm that it takes. */
double complex expression_log(double complex z);

/* Computes what is constant, leaves out what changes nothing, and puts numbers in front of products and behind sums.
 * The values stay but for rounding, where both have one and variables are real. */
void expression_tidy(struct expression *e);

#endif
