/* sim/ptx.h - a functional simulator of PTX: it runs the text of kernels.
 *
 * Memory is host memory: a simulated address IS the host's, and a kernel may touch only what is registered. A launch
 * runs to its end in the calling thread, block after block in a seeded order; the warps of a block take turns, which a
 * seed decides, so that what they must wait for shows. In a cooperative launch the warps of all blocks take turns, so
 * that they may wait for each other's stores. Shared memory begins at address 0 of its own space.
 *
 * It refuses ("traps") with one sentence what hardware may do silently wrong: registers and shared bytes that nothing
 * wrote, and addresses that are not aligned or belong to no memory. Branches that only some lanes of a warp take, and
 * barriers that not all warps come to. Shared bytes of a copy that was not waited for. Shared bytes that two warps
 * touch without a barrier between, one of them writing. What a lane reads that another lane of its warp stored since
 * they last met, and shared bytes that it stores where another read. And in launches that overlap others, global memory
 * before the wait. Its parser and its table are its own, from the PTX manual; it includes nothing of jit/.
 *
 * A cooperative launch traps when every warp that is left polls (a loop that only reads words again, with relaxed or
 * acquire loads) or waits at a barrier for one that does; a poll that gives up by itself after some time is not known.
 * And where two warps touch the same global bytes, one of them writing, and nothing orders the two: barriers of a
 * block, releases and acquires, fences. Relaxed accesses on both sides, of the same width, need no order.
 *
 * The same launch on several cards runs as one, whose blocks are numbered over all cards. What it orders must hold for
 * all of them (scope .sys). A card loads from its own memory and the host's, and stores anywhere.
 *
 * NaN that arithmetic makes is 0x7fffffff, as on cards.
 */
#ifndef SIM_PTX_H
#define SIM_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ptx_text; /* a module that was read */
struct ptx_memory;

/* A text for cards of compute capability `capability` (80, 90) or less. NULL: err. */
struct ptx_text *ptx_text_read(const char *text, unsigned capability, struct error *err);
void ptx_text_free(struct ptx_text *t);
/* Whether it has an entry of that name. */
bool ptx_text_has(const struct ptx_text *t, const char *entry);
/* Whether it orders accesses of several cards (scope .sys). */
bool ptx_text_is_for_cards(const struct ptx_text *t);
/* How many parameters an entry has (NULL: the first one), and how many bytes each of the first `max` has. */
size_t ptx_text_params(const struct ptx_text *t, const char *entry, unsigned bytes[], size_t max);

struct ptx_memory *ptx_memory_open(void); /* NULL: no memory */
void ptx_memory_close(struct ptx_memory *m);
/* Regions must not overlap. False: no memory. */
bool ptx_memory_add(struct ptx_memory *m, void *base, size_t bytes);
/* The region that begins there is that card's memory: of a launch on another card nothing may load from it. */
void ptx_memory_own(struct ptx_memory *m, const void *base, int card);
/* False: no region begins there. */
bool ptx_memory_remove(struct ptx_memory *m, const void *base);

/* In which order a product of matrices of floats adds, which the manual leaves open: from c on or c last, rounded each
 * time to nearest; or all at once, where terms lose what lies below the last place of the largest, as the sum does; or
 * as ops.def says, rounded once. Products are exact. */
enum ptx_sums { PTX_SUMS_ONCE, PTX_SUMS_FORWARD, PTX_SUMS_BACKWARD, PTX_SUMS_CUT };

struct ptx_run {
	const char *entry; /* NULL: the first one */
	enum ptx_sums sums;
	uint32_t blocks, blocks_y, blocks_z /* 0: one */, threads, shared_bytes;
	void *const *params; /* where each parameter's value is; of several cards, one card's behind the other's */
	uint64_t seed;
	bool cooperative;              /* all blocks at once */
	const int *card;               /* the numbers of the cards; NULL: one, and nobody asks which */
	unsigned cards;                /* cooperative launches that run together, of so many blocks each; 0: one */
	bool overlaps;                 /* the launch before it may not have ended */
	uint64_t steady, steady_bytes; /* memory that no launch writes: it may be read all the same */
	uint64_t instructions;         /* added to: of all warps */
};
bool ptx_text_run(const struct ptx_text *t, const struct ptx_memory *m, struct ptx_run *run, struct error *err);

#endif
