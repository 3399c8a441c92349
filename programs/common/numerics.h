/* programs/common/numerics.h - --numerics: its values, which all programs share, and what is said where it gains
 * nothing. */
#ifndef PROGRAMS_NUMERICS_H
#define PROGRAMS_NUMERICS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/jitrun.h"

#define NUMERICS_VALUES "exact|bounded|always-bounded"

static inline int numerics_option(const char *value)
{
	return strcmp(value, "exact") == 0     ? JIT_NUMERICS_EXACT
	       : strcmp(value, "bounded") == 0 ? JIT_NUMERICS_BOUNDED
	                                       : JIT_NUMERICS_ALWAYS_BOUNDED;
}

/* The class that it asks for. */
static inline const char *numerics_class(const char *value)
{
	return numerics_option(value) == JIT_NUMERICS_EXACT ? "exact" : "bounded";
}

/* Whether the class was asked for and this processor would gain nothing from it. */
static inline bool numerics_stay_exact(const char *value, const jit_model_info *info)
{
	return strcmp(value, "bounded") == 0 && info->bounded == JIT_BOUNDED_NONE && info->bounded_gain > 0;
}

/* The sentence about that. */
static inline void numerics_note(const char *program, const jit_model_info *info)
{
	fprintf(stderr,
	        "%s: --numerics bounded: this processor makes %.2f times as many products of BF16 pairs as of floats, "
	        "so "
	        "that results stay exact; always-bounded computes with pairs all the same.\n",
	        program, info->bounded_gain);
}

#endif
