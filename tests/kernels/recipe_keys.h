/* tests/kernels/recipe_keys.h - keys of matmuls by number, legal and not: what t_recipe.c asks recipes of.
 *
 * Owns: the walk over the keys. Number n stands for the same key on every machine and in every build, because a table
 * in t_recipe.c was written down by it.
 */
#ifndef TESTS_RECIPE_KEYS_H
#define TESTS_RECIPE_KEYS_H

#include "jit/key.h"

/* Key number n: every sort of kernel in turn, each third with one field that does not suit it. */
struct key recipe_key(uint32_t n);

#endif
