/* runtime/speculate/speculate_parts.h - what the files of speculate.h share.
 *
 *   speculate.c        windows: copies, rules, and what became of them
 *   speculate_width.c  what passes of each width take and give, and which one pays
 *   speculate_model.c  when a draft model is asked
 */
#ifndef RUNTIME_SPECULATE_PARTS_H
#define RUNTIME_SPECULATE_PARTS_H

#include "runtime/speculate/speculate.h"

#define SPECULATE_MARGIN 1.05 /* gain that is worth a change */

/* The class of a draft behind so many tokens that agree. */
unsigned speculate_class(uint32_t agreed);
/* A draft of the window, of that class, was right or not. */
void speculate_learn(struct speculate *s, unsigned class, bool right);
/* Of the window's drafts, those that a pass of that width has; and how many tokens it should give with them. */
uint32_t speculate_drafts(const struct speculate *s, unsigned width);
double speculate_expected(const struct speculate *s, unsigned width);
/* The width for the window's drafts. *tokens_a_second: what is expected with it; 0: nothing is known yet. */
unsigned speculate_choose(const struct speculate *s, uint32_t room, const struct speculate_company *others,
                          double *tokens_a_second);
/* The window gets the drafts that cost nothing, once for each text. */
void speculate_refresh(struct speculate *s, uint32_t length);

#endif
