/* server/engine/bits.h - answers that are computed once more, to see whether all their logits have the same bits.
 *
 * Owns: one such answer at a time, in a session that is alone and computes all of it itself. For the batcher's thread,
 * which goes on with it when it has nothing else to do.
 */
#ifndef SERVER_BITS_H
#define SERVER_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/jitrun.h"
#include "server/engine/served_adapters.h"

struct bits;

/* Of every so many answers one is to be checked. NULL: no memory. */
struct bits *bits_open(jit_model *model, const jit_session_options *o, unsigned every);
void bits_close(struct bits *b);

/* Whether the answer that begins is one that is to be checked. */
bool bits_wants(struct bits *b);
/* What stands for rows of logits, one after the other: 0 at first. */
uint64_t bits_sum(uint64_t sum, const float *row, size_t n);
/* The answer has ended: its tokens, of which the first n_prompt are the prompt, the sum of the row behind the
 * prompt and those behind all further tokens, and the adapters it had. */
void bits_take(struct bits *b, const int32_t *ids, size_t n, size_t n_prompt, uint64_t sum,
               const struct used_adapters *adapters);
/* Whether there is something to compute, and a piece of it. */
bool bits_pending(const struct bits *b);
void bits_step(struct bits *b);

/* Answers so far, and those of them whose bits were others. */
uint64_t bits_checked(const struct bits *b);
uint64_t bits_wrong(const struct bits *b);

#endif
