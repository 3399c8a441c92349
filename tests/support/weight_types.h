/* tests/support/weight_types.h - every type that weights may have, read off the list of formats: a new format needs no
 * line in the list of a test. */
#ifndef TESTS_WEIGHT_TYPES_H
#define TESTS_WEIGHT_TYPES_H

#include <ctype.h>

#include "kernels-templates/templates.h"

/* Those that matmuls take; returns how many. */
static inline unsigned weight_types_all(enum dtype out[DTYPE_COUNT])
{
	unsigned n = 0;

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (weight_supported((enum dtype)t))
			out[n++] = (enum dtype)t;
	return n;
}

/* Those that GGUF files have. */
static inline unsigned weight_types(enum dtype out[DTYPE_COUNT])
{
	unsigned n = 0;

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (weight_supported((enum dtype)t) && dtype_table[t].gguf >= 0)
			out[n++] = (enum dtype)t;
	return n;
}

/* The name in small letters, as options of the programs have it. Returns out. */
static inline const char *weight_type_name(char out[32], enum dtype type)
{
	unsigned n = 0;

	for (const char *p = dtype_table[type].name; *p && n < 31; p++)
		out[n++] = (char)tolower(*p);
	out[n] = 0;
	return out;
}

#endif
