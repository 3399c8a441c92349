/* runtime/graph/partition.h - a graph cut into groups of nodes, of which each becomes one kernel.
 *
 * Owns: which values are kept in memory, and which are computed inside of the kernels that read them. A group has one
 * node at its end, whose results are kept; the nodes before it that no other group needs are computed with it. No cut
 * changes a bit: elements of narrow types are rounded where they would be stored, so those are always kept.
 */
#ifndef RUNTIME_GRAPH_PARTITION_H
#define RUNTIME_GRAPH_PARTITION_H

#include "graph/graph.h"

enum value_home {
	HOME_NONE,   /* nothing reads it */
	HOME_INLINE, /* computed inside of the groups that read it */
	HOME_ALIAS,  /* the same bytes as the operand of its node */
	HOME_STORED  /* an input, a constant, or the result of a group */
};

struct group {
	uint32_t node;       /* the one at its end */
	uint32_t product;    /* the product or convolution that it begins with; else `node` */
	bool host;           /* it has no kernel, and is interpreted */
	uint64_t rows;       /* elements of a row, which an instance of its kernel computes (partition_rows.h), or 0 */
	tensor_value scores; /* of attention (partition_attention.h); 0: it is none */
};

struct partition {
	uint8_t *home;     /* enum value_home, of each value */
	uint32_t *product; /* of each value that is inline: number + 1 of the product in its expression */
	bool *none;        /* of each value: false */
	/* Of each value that is made as a part of a concatenation, which has no kernel then: that one, and the byte of
	 * it where the part begins. 0: it is none. */
	tensor_value *part_of;
	uint64_t *part_at;
	struct group *group; /* in the order in which they run */
	uint32_t groups, kernels;
};

/* lanes: of a CPU's vectors, whose products are tiles; 0: of other devices. False, err: there is no memory. */
bool partition_make(struct partition *p, const struct tensor_graph *g, unsigned lanes, struct error *err);
void partition_free(struct partition *p);
/* The stored value whose bytes are those of v. */
tensor_value partition_root(const struct partition *p, const struct tensor_graph *g, tensor_value v);
/* ---- partition_parts.c */

/* Whether the node is a concatenation whose operands are its parts. */
bool partition_is_joined(const struct partition *p, const struct tensor_graph *g, const struct tensor_node *n);
/* users: of each value. */
void partition_parts_find(struct partition *p, const struct tensor_graph *g, const uint32_t *users);

/* ---- partition.c */

/* Whether elements of this node are computed by an expression of single elements of its operands. */
bool partition_is_element(const struct tensor_graph *g, const struct tensor_node *n);
/* Whether kernels can be written that read packed weights of that node's format. */
bool partition_knows_weights(const struct tensor_node *n);
/* Constants of one element stand in the text of kernels. */
bool partition_is_literal(const struct tensor_graph *g, tensor_value v);

#endif
