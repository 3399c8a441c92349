/* sim/ptx_order.h - the order of accesses of global memory in a cooperative launch. See ptx_order.c.
 *
 * Warps are numbered over all blocks; an address is one of bytes. */
#ifndef SIM_PTX_ORDER_H
#define SIM_PTX_ORDER_H

#include "sim/ptx_text.h"

struct ptx_order;
/* Of that many blocks of so many warps. NULL: no memory, or too many. */
struct ptx_order *ptx_order_open(uint32_t blocks, uint32_t each);
void ptx_order_close(struct ptx_order *o);

enum { PTX_WRITES = 1, PTX_STRONG = 2 /* not weak */, PTX_WIDE = 4 /* elements of 64 bits */ };
/* An access by a lane of that warp. NULL, or what it races with. */
const char *ptx_order_touch(struct ptx_order *o, uint32_t warp, uint64_t at, size_t bytes, unsigned kind, uint32_t line,
                            char *text, size_t size);
/* What that access orders; one that both loads and stores is atomic. False: no memory. */
bool ptx_order_sync(struct ptx_order *o, uint32_t warp, unsigned lane, uint64_t at, size_t bytes,
                    enum ptx_order_of order, bool loads, bool stores);
void ptx_order_fence(struct ptx_order *o, uint32_t warp, uint32_t lanes);
/* The warps of a block meet. */
void ptx_order_barrier(struct ptx_order *o, uint32_t block);
/* Whether the word was written in this launch. */
bool ptx_order_is_written(struct ptx_order *o, uint64_t at);

#endif
