/* eml/search.h - the smallest tree of eml(x, y) = exp(x) - Ln(y) with a given value.
 *
 * Owns: the search from both ends. A value that no tree of the levels (levels.h) has is a tree's result: for each of
 * its operands that is small, the other one follows, and is looked up, or searched in the same way. So all trees of a
 * size are looked at without being made. What is found equals the value at LEVELS_POINTS points within some 1e-9, which
 * is no proof.
 */
#ifndef EML_SEARCH_H
#define EML_SEARCH_H

#include "eml/expression.h"
#include "eml/levels.h"

struct search_report {
	unsigned size;    /* of the tree; 0: none was found */
	uint64_t lookups; /* operands that were looked up */
};

/* target: the value at each point, a real and an imaginary part. Trees of up to `most` nodes, with the levels that are
 * there. out: the tree. False, err: it could not be done. */
bool search_tree(struct levels *l, const double target[2 * LEVELS_POINTS], unsigned max, struct expression *out,
                 struct search_report *report, jit_error *err);
/* The tree of a value of the levels, as a part of out. Returns its node. */
uint32_t search_value_tree(const struct levels *l, uint32_t number, struct expression *out);

#endif
