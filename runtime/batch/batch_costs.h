/* runtime/batch/batch_costs.h - how long a pass of so many tokens takes, by what passes took before.
 *
 * Owns: fading means by width. What was measured decides how many tokens go into a pass, and never a bit of a result.
 */
#ifndef RUNTIME_BATCH_COSTS_H
#define RUNTIME_BATCH_COSTS_H

#include <stdint.h>

enum { BATCH_COSTS_WIDTHS = 12 }; /* of 1, 2 to 3, 4 to 7 ... tokens */
struct batch_costs {
	struct {
		double tokens, seconds; /* of such a pass */
		uint32_t seen;
	} width[BATCH_COSTS_WIDTHS];
	double late; /* how many times as long as they should passes take, the last one most */
};

void batch_costs_took(struct batch_costs *c, uint32_t tokens, double seconds);
/* Seconds that a pass should take: between what narrower and wider ones took, and in proportion behind the widest. 0:
 * nothing is known yet. */
double batch_costs_of(const struct batch_costs *c, uint32_t tokens);
/* The same, but where no such wide pass was seen, what makes it worth a try; 0 where no such narrow one was, either. */
double batch_costs_hoped(const struct batch_costs *c, uint32_t tokens);
/* How many tokens, `max` at most, fit beside so many others into a pass of so many seconds. */
uint32_t batch_costs_fit(const struct batch_costs *c, uint32_t beside, uint32_t max, double seconds);

#endif
