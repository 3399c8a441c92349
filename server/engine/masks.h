/* server/engine/masks.h - threads that find what grammars allow next.
 *
 * A mask can cost half a second, and the thread that computes for all does not wait for it: the session's grammar is
 * lent to one of these, and the session takes no part in passes until that has found it. Which pass that is changes no
 * bit of any answer.
 *
 * Owns: the threads, the grammars that they have, and the order. Grammars whose last mask was cheap come first, and one
 * thread at least is always left to them. The threads are polite: where cores are few, passes have them first.
 */
#ifndef SERVER_MASKS_H
#define SERVER_MASKS_H

#include <stdbool.h>

#include "include/jitrun.h"

struct masks_of_all;
struct mask_work;

/* found: called by these threads whenever one was found; NULL: nobody asks. Threads are started when there is work.
 * NULL: no memory. */
struct masks_of_all *masks_of_all_open(void (*found)(void *user), void *user);
/* Grammars that nobody has taken back are closed; a thread that looks for a mask is told to stop. */
void masks_of_all_close(struct masks_of_all *all);

/* Lends the session's grammar. NULL: there is neither memory nor a thread for it, and nothing was done. */
struct mask_work *mask_work_begin(struct masks_of_all *all, jit_session *s);
/* Whether the caller had better wait for it: it costs little, and is not found yet. */
bool mask_work_is_short(const struct mask_work *w);
/* Gives the grammar back to the session, with its mask, or what is wrong. False: it is not found yet. */
bool mask_work_end(struct mask_work *w, jit_session *s);
/* Nobody wants it any more; the session may be closed. */
void mask_work_drop(struct mask_work *w);

#endif
