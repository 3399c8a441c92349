/* runtime/plan/cut_shares.h - which rows of a model's matrices, and which heads of keys, each of several ranks has.
 *
 * Owns: the proportion. Matrices are shared out by blocks of 32 rows, those of queries, keys and values so that a head
 * of keys is whole on one rank, together with the queries that it serves. A block at a border may belong to both. Rank
 * 0 has the embeddings of tokens. All of it follows from the model and the shares alone, so that each rank knows it of
 * all.
 */
#ifndef RUNTIME_PLAN_CUT_SHARES_H
#define RUNTIME_PLAN_CUT_SHARES_H

#include "runtime/plan/weights.h"

enum { CUT_RANKS_MAX = 64 };

/* How much each rank has of everything, in proportion; a rank may have 0. */
struct cut_shares {
	unsigned ranks, own; /* own: the number of this one */
	uint32_t share[CUT_RANKS_MAX];
};

/* Of n things the first that a rank has; rank == ranks: n. */
uint64_t cut_share_begin(const struct cut_shares *c, unsigned rank, uint64_t n);

struct cut_blocks {
	uint64_t first, end;
};
/* The row blocks of a matrix that a rank computes with; of experts, of each; of a matrix by heads, of all. */
struct cut_blocks cut_share_blocks(const struct cut_shares *c, const struct model_spec *s, const struct model_tensor *t,
                                   unsigned rank);
/* Those that it must have in memory: on rank 0 also what a token's row is looked up in. */
struct cut_blocks cut_share_kept(const struct cut_shares *c, const struct model_spec *s, const struct model_tensor *t,
                                 unsigned rank);

#endif
