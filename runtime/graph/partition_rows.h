/* runtime/graph/partition_rows.h - softmax, norms and their kind: a kernel that computes rows.
 *
 * Owns: which reductions over the last dimensions, and which values that they are made of, are computed inside of the
 * group that reads them. An instance of such a kernel has a row: what is one number for it is a local, and what is
 * dear and read by several of its loops stays in a tile. The order of sums is that of a reduction by itself.
 */
#ifndef RUNTIME_GRAPH_PARTITION_ROWS_H
#define RUNTIME_GRAPH_PARTITION_ROWS_H

#include "runtime/graph/partition.h"

enum { ROW_NODES_MAX = 40, ROW_READS_MAX = 20, CARD_TILE_BYTES = 8 << 10 /* that each of a group's waves may have */ };

/* Nodes behind the result at its end, in the order of the graph; the last one is that end. */
struct row_trace {
	uint64_t rows, columns;
	uint32_t node[ROW_NODES_MAX], nodes;
	bool is_row[ROW_NODES_MAX]; /* its value has one element for each row; else it has a row of elements */
	uint32_t used[ROW_NODES_MAX];
	uint32_t reads, reductions, stored; /* stored: nodes whose values are in memory */
};

/* What partition_rows_trace() asks about values. All of it is by value. */
struct row_view {
	const struct tensor_graph *g;
	const uint8_t *home;     /* enum value_home */
	const uint32_t *product; /* as in a partition */
	const bool *needed;      /* NULL: what is in memory stays there */
	bool *banned;            /* may not be computed by rows */
	const uint32_t *users, *reads;
};

/* Of rows of so many elements. False: there are too many nodes, or they do not fit each other. */
bool partition_rows_trace(struct row_trace *t, const struct row_view *view, uint32_t end, uint64_t columns);
/* Whether a value is kept in a tile, as several loops would compute it again. */
bool partition_rows_tile(const struct tensor_graph *g, const struct row_trace *t, uint32_t i);
/* Bytes of all tiles of a row; tiles: how many there are. */
uint64_t partition_rows_tile_bytes(const struct tensor_graph *g, const struct row_trace *t, uint32_t *tiles);
/* The same of a partition's group that computes rows. */
bool partition_rows_again(const struct partition *p, const struct tensor_graph *g, uint32_t end, uint64_t columns,
                          struct row_trace *t);
/* Computes what it can by rows: homes become HOME_INLINE, and ends[node] the elements of a row. lanes: as
 * partition_make(). */
void partition_rows_find(const struct row_view *view, uint8_t *home, uint64_t *ends, unsigned lanes);

#endif
