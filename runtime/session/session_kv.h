/* runtime/session/session_kv.h - the used part of a session's KV cache, piece by piece, for those who copy it.
 *
 * Owns: the order of the pieces, which is that of files (session_file.c) and of forks: chunk by chunk, in each the
 * layers one after the other. A piece is one layer's keys and values in one chunk, wherever the session keeps them.
 */
#ifndef RUNTIME_SESSION_KV_H
#define RUNTIME_SESSION_KV_H

#include "runtime/session/session_memory.h"

struct kv_extent {
	uint8_t *at; /* NULL: this session does not keep it */
	uint32_t layer, chunk;
	size_t bytes;
};

/* Chunks that so many positions lie in. */
static inline uint32_t kv_chunks(size_t positions) { return (uint32_t)((positions + 127) / 128); }
/* How many pieces so many positions are; layers with a window from chunk `first` on. All their bytes; those of the
 * largest. */
uint64_t kv_extents_count(const struct model_spec *s, size_t positions, uint32_t first);
uint64_t kv_extents_bytes(const struct plan_cache *kv, const struct model_spec *s, size_t positions, uint32_t first);
size_t kv_extent_max(const struct plan_cache *kv, const struct model_spec *s);
/* The pieces, malloc'ed. NULL: err. */
struct kv_extent *kv_extents(const struct session_memory *m, const struct model_spec *s, size_t positions,
                             uint32_t first, struct error *err);
/* Copies so many positions, but for pages that both have, into a cache that has none, where
 * session_memory_begin_window() was told of them; and the last state from which a pass at position `next` can go on. */
bool kv_copy(struct session_memory *to, const struct session_memory *from, const struct model_spec *s, size_t positions,
             size_t next, struct error *err);
/* From one place of a device to another. */
bool kv_copy_bytes(struct device *d, uint8_t *to, const uint8_t *from, size_t bytes, struct error *err);
/* A copy of a layer's piece of the last chunk becomes 0 where it holds no position below `used` (1 to 128): there is
 * what was forgotten, and draft tokens. */
void kv_extent_clean(const struct session_memory *m, const struct model_spec *s, uint32_t layer, uint8_t *extent,
                     uint32_t used);

#endif
