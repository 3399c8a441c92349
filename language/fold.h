/* language/fold.h - arithmetic on values that are known while a kernel is made, as ops.def defines it.
 *
 * Owns: the form of such a value: 64 bits, i32 with its sign extended, u32 with zeros, f32 in the lower half, bool 0
 * or 1.
 */
#ifndef LANGUAGE_FOLD_H
#define LANGUAGE_FOLD_H

#include "language/tree.h"

uint64_t jk_fold_form(unsigned type, uint64_t bits); /* cuts to the type */
/* type: that of the operands. False: not known here, such as a function that kernels compute by a series. */
bool jk_fold_binary(unsigned op, unsigned type, uint64_t a, uint64_t b, uint64_t *out);
uint64_t jk_fold_unary(unsigned op, unsigned type, uint64_t a);
uint64_t jk_fold_cast(unsigned from, unsigned to, uint64_t a);
bool jk_fold_builtin(unsigned builtin, unsigned type, const uint64_t *a, uint64_t *out);

static inline float fold_f32(uint64_t bits)
{
	const uint32_t u = (uint32_t)bits;
	float f;
	__builtin_memcpy(&f, &u, 4);
	return f;
}
static inline uint64_t fold_of_f32(float f)
{
	uint32_t u;
	__builtin_memcpy(&u, &f, 4);
	return u;
}
static inline double fold_f64(uint64_t bits)
{
	double d;
	__builtin_memcpy(&d, &bits, 8);
	return d;
}
static inline uint64_t fold_of_f64(double d)
{
	uint64_t bits;
	__builtin_memcpy(&bits, &d, 8);
	return bits;
}

/* What constants are worth: by their number in the file. */
struct environment {
	const uint64_t *value;
	const bool *known;
};
/* A constant expression. False: it is none, or one of its constants has no value; *where is the node to blame. */
bool jk_fold_tree(const struct node *n, const struct environment *e, uint64_t *out, const struct node **where);

#endif
