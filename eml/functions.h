/* eml/functions.h - functions of data by their size, and which of them explain targets.
 *
 * Owns: the enumeration. Leaves are the variables and 1; each function or operator adds 1 to the size. A function is
 * its values at ROWS rows of the data; those with equal values are one. Kernels (formulas.jk) compute all functions of
 * a size, and what of each target is left when a x + b is fitted to it.
 */
#ifndef EML_FUNCTIONS_H
#define EML_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eml/expression.h"
#include "eml/seen.h"
#include "include/jitrun_kernel.h"

enum { FUNCTIONS_ROWS = 32, FUNCTIONS_WIDTH = 1024, FUNCTIONS_TARGETS = 6, FUNCTIONS_SIZES = 24, FUNCTIONS_BEST = 24 };
enum { FUNCTIONS_CODES = 16, FUNCTIONS_LEAF = 16 };

/* How a function is made: a code as formulas.jk has it, and numbers of functions; a leaf's left is 0 for the constant
 * 1, else a variable's number and 1. */
struct made {
	uint32_t left, right;
	uint8_t code;
};
struct candidate {
	struct made made;
	uint64_t hash;
	double rest; /* of the target that it explains best */
	unsigned size, target;
};

struct functions_options {
	unsigned variables, targets;
	const double *x;       /* [variables][FUNCTIONS_ROWS] */
	const double *t;       /* [targets][FUNCTIONS_ROWS], with mean 0 and length 1 */
	uint32_t codes;        /* a bit for each that may be used */
	uint64_t max_kept;     /* a size with more functions to examine is not kept; 0: 1 million */
	uint64_t max_examined; /* functions; 0: 20 million */
	const char *device, *cache;
	int threads;
	jit_cancel *cancel;
};

struct function_size {
	uint32_t first, count, blocks;
	jit_buffer *buffer;
	double *value;                         /* [blocks][ROWS][WIDTH] */
	struct candidate best[FUNCTIONS_BEST]; /* the least rests, least first */
	unsigned n_best;
	bool owned;
};

struct functions {
	struct functions_options options;
	jit_compute *compute;
	struct functions_kernel {
		jit_kernel *kernel;
		jit_launch *launch;
	} pairs[8][2], singles[8], keep;
	struct function_size size[FUNCTIONS_SIZES + 1];
	unsigned largest, kept; /* sizes that were examined, and whose values are kept */
	uint64_t examined;
	struct made *made; /* of each function, by number */
	size_t made_capacity;
	uint32_t next;
	struct seen seen;
	uint64_t *hash;
	double *rest, *a, *b, *t;
	uint8_t *which, *code;
};

/* NULL: err. */
struct functions *functions_open(const struct functions_options *options, jit_error *err);
void functions_close(struct functions *f);
/* Goes on with the next size. *more: whether there was one within the limits. False: err. */
bool functions_next(struct functions *f, bool *more, jit_error *err);
/* The values of a function that is kept, `FUNCTIONS_WIDTH` apart. */
const double *functions_values(const struct functions *f, uint32_t number);
/* The hash of values, as kernels compute it; 0: one of them is no number. */
uint64_t functions_hash(const double values[FUNCTIONS_ROWS]);
/* A function as a part of an expression; returns its node. */
uint32_t functions_expression(const struct functions *f, struct made made, struct expression *out);

#endif
