/* runtime/graph/source_tile.h - products on CPUs: tiles of rows and columns whose sums stay in registers.
 *
 * Owns: the shape of tiles, and the kernel around them. An element's sum is one chain of fused products in ascending
 * order, whatever the tile is: lanes are columns, several rows share what is read of the columns, and several vectors
 * of columns share what is read of the rows.
 */
#ifndef RUNTIME_GRAPH_SOURCE_TILE_H
#define RUNTIME_GRAPH_SOURCE_TILE_H

#include "runtime/graph/source.h"

enum { TILE_LOOPS_MOST = 2 + TENSOR_MAX_RANK };

struct tile {
	const struct tensor_node *n;
	uint64_t batches, rows, columns, depth;
	unsigned lanes, r, j; /* of a vector; rows and vectors of columns of a tile */

	/* Where elements lie, as texts of array and position: batch + block * (of the tile) + r * stride, and in loops
	 * over the depth what `depth` says. Columns of a tile lie side by side. */
	struct tile_side {
		const char *array, *batch, *depth;
		uint64_t block, stride;
	} row, column;
	const char *loop[TILE_LOOPS_MOST]; /* over the depth, in front of their bodies: "for (k in 0..9)" */
	unsigned loops;

	/* Stores the sum of a row and the lanes' columns of a vector, as texts. */
	void (*store)(struct source *s, const struct tile *t, const char *row, const char *column, const char *sum);
	const void *user;
};

static inline uint64_t tile_row_blocks(const struct tile *t) { return (t->rows + t->r - 1) / t->r; }
static inline uint64_t tile_width(const struct tile *t) { return (uint64_t)t->lanes * t->j; }
static inline uint64_t tile_column_blocks(const struct tile *t)
{
	return (t->columns + tile_width(t) - 1) / tile_width(t);
}

/* Of batches, rows, columns, depth and lanes finds r and j. wide: the type of sums. */
void tile_choose(struct tile *t, int wide);
/* Writes the kernel's indices and body. */
void tile_write(struct source *s, const struct tile *t);

/* ---- operands in another order */

/* A kernel that fills an array of so many elements: from + the statements that are in its body. Begin gives a source to
 * write into; end makes it the next of s->prepared, and returns its name. */
void prepare_begin(const struct source *s, struct source *to);
const char *prepare_end(struct source *s, struct source *to, tensor_value from, uint64_t elements);

#endif
