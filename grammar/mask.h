/* grammar/mask.h - which tokens can come next, as a bit for each.
 *
 * Owns: what was found out for the tops of a machine's states: the tokens that are allowed whatever lies below, and
 * those that reach below and must be tried again in each state.
 */
#ifndef GRAMMAR_MASK_H
#define GRAMMAR_MASK_H

#include "grammar/machine/machine.h"
#include "grammar/vocabulary.h"

struct masks;

/* Both must outlive it. */
struct masks *masks_open(const struct vocabulary *v, struct machine *m);
void masks_close(struct masks *s);
/* bits[id / 32] >> id % 32 & 1: the token's text can follow. (n_ids + 31) / 32 words. False: no memory; and
 * machine.failed says whether the machine has reached its limits. */
bool masks_of(struct masks *s, uint32_t state, uint32_t *bits);

#endif
