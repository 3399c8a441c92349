/* runtime/graph/partition_attention.h - attention: two products with a softmax between them, as one kernel.
 *
 * Owns: which products are computed together. The scores of a block of queries are made, become shares by the rows of
 * a softmax (partition_rows.h), and are multiplied by the values, all in a tile that no other group sees. Masks of any
 * kind are expressions of single scores. The order of sums is that of the groups by themselves.
 */
#ifndef RUNTIME_GRAPH_PARTITION_ATTENTION_H
#define RUNTIME_GRAPH_PARTITION_ATTENTION_H

#include "runtime/graph/partition_rows.h"
#include "runtime/graph/source_tile.h"

struct attention {
	const struct tensor_node *by_keys, *by_values; /* the two products */
	tensor_value scores, read, shares;             /* what rows begin with, as they read it, and end with */
	struct row_trace rows;                         /* of the shares */
	struct side key[2], value[2];                  /* of the operands of the products */
	uint64_t batches, queries, keys, depth, width; /* depth: of a key; width: of a value */
	unsigned block;                                /* queries whose scores a tile has */
};

/* Where node i is a product of shares and values, and all is computed together, scores[i] becomes the scores, and homes
 * become HOME_INLINE. view: its needed is NULL, and nothing is banned. rows: the ends that partition_rows_find() has
 * found. */
void partition_attention_find(const struct row_view *view, uint8_t *home, const uint64_t *rows, tensor_value *scores,
                              unsigned lanes);
/* The same of a partition's group that computes attention. */
bool partition_attention_again(const struct partition *p, const struct tensor_graph *g, const struct group *group,
                               unsigned lanes, struct attention *a);

#endif
