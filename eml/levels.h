/* eml/levels.h - all values of eml(x, y) = exp(x) - Ln(y) by the size of their smallest tree.
 *
 * Owns: the enumeration. Leaves are the constant 1 and the variables; a tree's size is its number of leaves and inner
 * nodes, so it is odd. A value is what a tree gives at POINTS choices of the variables, as complex numbers; trees with
 * one value are one, and the first that is met stands for it. Kernels (levels.jk) compute the hashes of all trees of a
 * size, on a CPU or a card, with the same bits on each.
 *
 * Trees in which exp would get a real part beyond the cap, and those with Ln(0), have no value. Without the cap, exp of
 * large negative numbers would be 0, and make equal what is not. `extended`: Ln(0) is minus infinity, and exp of that
 * 0.
 */
#ifndef EML_LEVELS_H
#define EML_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eml/seen.h"
#include "include/jitrun_kernel.h"

enum { LEVELS_POINTS = 3, LEVELS_WIDTH = 1024, LEVELS_VARIABLES = 2, LEVELS_MAX = 41 };

struct level {
	uint32_t count, blocks; /* values that no smaller tree has */
	uint64_t pairs;         /* trees that were examined */
	uint32_t first;         /* the number of its first value; a multiple of LEVELS_WIDTH */
	uint32_t *left, *right; /* numbers of operands; of leaves `leaf` */
	/* The values as operands, once needed: exp and Ln, as levels.jk has them. */
	jit_buffer *exp_buffer, *ln_buffer;
	double *exp_value, *ln_value;
	bool owned;                                        /* the host's copies are its own */
	double seconds, processor_seconds, kernel_seconds; /* the latter two of all threads; the last one in kernels */
};

struct levels_options {
	unsigned variables; /* 0 to LEVELS_VARIABLES */
	bool extended;
	double cap; /* 0: 12 */
	const char *device, *cache;
	int threads;
	jit_cancel *cancel;
};

struct levels {
	struct levels_options options;
	jit_compute *compute;
	struct levels_kernel {
		jit_kernel *kernel;
		jit_launch *launch;
	} by_left[3], by_right[3], operands;
	struct level level[LEVELS_MAX / 2 + 1]; /* that of size 2 i + 1 */
	unsigned size;                          /* of the last one that is complete; 0: none */
	uint32_t next;                          /* number */
	struct seen seen;
	uint64_t *hash; /* of a launch */
	double *a, *b;  /* values, in a block */
};

/* The variables' values: a real and an imaginary part. */
void levels_point(unsigned point, unsigned variable, double value[2]);

/* NULL: err. */
struct levels *levels_open(const struct levels_options *options, jit_error *err);
void levels_close(struct levels *l);
/* Goes on with the next size. False: err. */
bool levels_next(struct levels *l, jit_error *err);
static inline struct level *levels_of(struct levels *l, unsigned size) { return &l->level[size / 2]; }
/* The level that a value belongs to, by its number. */
const struct level *levels_owner(const struct levels *l, uint32_t number);
static inline unsigned levels_size(const struct levels *l, const struct level *v)
{
	return (unsigned)(v - l->level) * 2 + 1;
}
/* Makes exp and Ln of a level's values. False: err. */
bool levels_operands(struct levels *l, struct level *v, jit_error *err);
/* The hash of a value, LEVELS_POINTS complex numbers, as kernels compute it; 0: it has NaNs. nearby: NULL, or receives
 * the hash that it would have if what lies close to the middle between two roundings were rounded the other way; 0:
 * nothing does. */
uint64_t levels_hash(const double value[2 * LEVELS_POINTS], uint64_t *nearby);

#endif
