/* server/engine/slots.h - places of answers, and what each place held last: what clients of llama.cpp's server call
 * slots.
 *
 * Owns: the tokens that the last answer at each place had computed, with which adapters, and what becomes of them when
 * a client wants them in a file, out of a file, or forgotten. A place owns no memory of the KV cache: that is the
 * batch's, which gives an answer what any other computed for the same tokens. So a slot that is saved may be computed
 * again for it, with the same bits. For the batcher's thread alone.
 */
#ifndef SERVER_SLOTS_H
#define SERVER_SLOTS_H

#include "server/engine/choice.h"

struct slots;

/* adapters: the model's, NULL: it has none. NULL: no memory. */
struct slots *slots_open(unsigned n, struct served_adapters *adapters);
void slots_close(struct slots *s);

/* An answer gets its place: the one that it asks for, or the first that is free. */
void slots_enter(struct slots *s, struct choice *c);
/* It has ended: what it computed is what the place holds. */
void slots_leave(struct slots *s, struct choice *c);

/* A task that is no answer but wants a slot saved, restored or erased. What is to be saved is computed first. */
void slots_act(struct slots *s, struct choice *c, jit_batch *batch);
/* It is computed: into the file. */
void slots_save(struct choice *c);

#endif
