/* runtime/session_memory.h - what a session keeps of its tokens: the KV cache, and states. All of it is the device's.
 *
 * Owns: where they lie. Sizes are fixed at open.
 */
#ifndef RUNTIME_SESSION_MEMORY_H
#define RUNTIME_SESSION_MEMORY_H

#include "runtime/pass_memory.h"
#include "runtime/session_recurrent.h"

struct session_memory {
	struct device *device;
	struct plan_cache kv;
	/* Layers with a window: the first chunk that they have, since earlier positions were given up; and for how many
	 * chunks they have memory, where that is less than the context (kv.window_base). */
	uint32_t window_first, window_chunks;
	struct session_states states; /* behind the cache */
	size_t kv_bytes;
};

/* How much that takes, and where it has what, without taking any: kv_bytes, and kv without addresses, of which the type
 * is set by the caller. */
void session_memory_measure(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context);
/* For passes over at most `tokens` tokens, in a context of so many. kv.type is set by the caller. False: err, and
 * session_memory_close() is still due. */
bool session_memory_open(struct session_memory *m, struct device *d, const struct model_spec *s, uint32_t tokens,
                         uint32_t context, struct error *err);
/* Whether there is so much memory, for passes and for a session, both measured: the host's can be asked for beforehand,
 * so that a machine does not run out of it in the middle of a text. */
bool session_memory_check(const struct session_memory *m, const struct pass_memory *p, struct device *d,
                          uint32_t context, struct error *err);
/* Before a pass of so many tokens at a position: where layers keep a window, what it does not reach makes room. False:
 * err. */
bool session_memory_slide(struct session_memory *m, const struct model_spec *s, uint64_t position, uint32_t tokens,
                          struct error *err);
/* Whether a pass at a position finds all that its windows reach, where layers with one have chunks from `first` on. */
bool session_memory_serves(const struct model_spec *s, uint64_t position, uint32_t first);
/* Of an empty cache: layers with a window will get so many positions, from no earlier chunk than `first` on. */
void session_memory_begin_window(struct session_memory *m, const struct model_spec *s, uint64_t positions,
                                 uint32_t first);
/* Where a layer keeps a chunk; NULL: it does not. */
uint8_t *session_memory_place(const struct session_memory *m, const struct model_spec *s, uint32_t layer,
                              uint32_t chunk);
void session_memory_close(struct session_memory *m);

#endif
