/* runtime/session/session_memory.h - what a session keeps of its tokens: the KV cache, and states. All of it is the
 * device's.
 *
 * Owns: where they lie, and the tables in which kernels find the pages of the cache. The pages are a session's own, one
 * behind the other, or come from elsewhere one by one. Layers with a window may have pages of their own, which are a
 * ring: a chunk takes the place of one that no window reaches any more. All sizes are fixed at open.
 */
#ifndef RUNTIME_SESSION_MEMORY_H
#define RUNTIME_SESSION_MEMORY_H

#include "runtime/engine/pass_memory.h"
#include "runtime/session/session_recurrent.h"

/* Bytes behind the last page that kernels may read. */
enum { SESSION_PAGE_SLACK = 256 };
enum session_pages { SESSION_OWN_PAGES, SESSION_PAGES_ELSEWHERE };

struct session_memory {
	struct device *device;
	struct plan_cache kv;
	uint32_t chunks, held; /* of the context; and how many of them have a page, from the first on */
	/* Layers with a window: the first chunk that they have, since earlier positions were given up; and for how many
	 * chunks they have memory, where that is less than the context; 0: their keys are in the others' pages. */
	uint32_t window_first, window_chunks;
	/* What the device's tables hold, or will: an entry for each chunk, and one more, which is readable. Then the
	 * same of layers with a window. */
	uint8_t **page, **window_page;
	uint32_t changed_from, changed_to; /* entries of the former that the device has not got yet */
	struct session_states states;      /* behind the cache */
	size_t kv_bytes;                   /* of the cache and the states, but for pages that are elsewhere */
	uint8_t *own;                      /* all of it that is not elsewhere; tables behind the states */
	size_t own_bytes, tables_at;
};

/* How much that takes, and where it has what, without taking any: kv_bytes, and kv, of which the type is set by the
 * caller. */
void session_memory_measure(struct session_memory *m, const struct model_spec *s, uint32_t tokens, uint32_t context);
/* What a session takes whose pages are elsewhere, beside them and tables. */
uint64_t session_memory_fixed_bytes(const struct session_memory *m);
/* For passes over at most `tokens` tokens, in a context of so many. kv.type is set by the caller. False: err, and
 * session_memory_close() is still due. */
bool session_memory_open(struct session_memory *m, struct device *d, const struct model_spec *s, uint32_t tokens,
                         uint32_t context, enum session_pages pages, struct error *err);
/* Of pages that are elsewhere: where a chunk's is, which may be the first one that had none; and how many stay. */
void session_memory_set_page(struct session_memory *m, uint32_t chunk, uint8_t *page);
void session_memory_keep_pages(struct session_memory *m, uint32_t chunks);
/* The tables of a run, on the device as they are here. False: err. */
bool session_memory_tables(struct session_memory *m, const void **pages, const void **window_pages, struct error *err);
/* Whether there is so much memory, for passes and for a session, both measured: the host's can be asked for beforehand,
 * so that a machine does not run out of it in the middle of a text. */
bool session_memory_check(const struct session_memory *m, const struct pass_memory *p, struct device *d,
                          uint32_t context, struct error *err);
/* Before a pass of so many tokens at a position: where layers keep a window, what it does not reach makes room. */
void session_memory_slide(struct session_memory *m, const struct model_spec *s, uint64_t position, uint32_t tokens);
/* Whether a pass at a position finds all that its windows reach, where layers with one have chunks from `first` on. */
bool session_memory_serves(const struct model_spec *s, uint64_t position, uint32_t first);
/* Of an empty cache: layers with a window will get so many positions, from no earlier chunk than `first` on. */
void session_memory_begin_window(struct session_memory *m, const struct model_spec *s, uint64_t positions,
                                 uint32_t first);
/* Where a layer keeps a chunk; NULL: it does not. */
uint8_t *session_memory_chunk(const struct session_memory *m, const struct model_spec *s, uint32_t layer,
                              uint32_t chunk);
void session_memory_close(struct session_memory *m);

#endif
