/* runtime/graph/arena.h - where the values of a graph lie in one buffer: by live ranges, so that values that are not
 * needed at the same time share bytes. */
#ifndef RUNTIME_GRAPH_ARENA_H
#define RUNTIME_GRAPH_ARENA_H

#include "runtime/graph/partition.h"

/* Behind what products and convolutions read lie so many bytes of the buffer that nothing writes while they do. */
enum { ARENA_ALIGN = 64, ARENA_BEHIND = 1024 };

struct arena {
	uint64_t *at;              /* of each stored value that is no constant: the byte where it begins */
	uint64_t bytes, all_bytes; /* of the buffer; of all values, one behind the other */
};

/* outside: of each value, whether its bytes are somewhere else; NULL: of none. */
bool arena_make(struct arena *a, const struct tensor_graph *g, const struct partition *p, const bool *outside,
                struct error *err);
void arena_free(struct arena *a);

#endif
