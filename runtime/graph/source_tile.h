/* runtime/graph/source_tile.h - products: tiles of rows and columns whose sums stay in registers.
 *
 * Owns: the shape of tiles, and the kernel around them. An element's sum is one chain of fused products in ascending
 * order, whatever the tile is: lanes are columns, several rows share what is read of the columns, and several vectors
 * of columns share what is read of the rows. On a CPU a vector has neighbouring columns. On a card each lane has
 * neighbouring columns, which it loads at once.
 */
#ifndef RUNTIME_GRAPH_SOURCE_TILE_H
#define RUNTIME_GRAPH_SOURCE_TILE_H

#include "runtime/graph/source.h"

enum { TILE_LOOPS_MAX = 2 + TENSOR_MAX_RANK };

struct tile {
	const struct tensor_node *n;
	uint64_t batches, rows, columns, depth;
	unsigned lanes, r, j; /* of a vector; rows and vectors of columns of a tile */
	unsigned apart, step; /* columns from a lane to its neighbour, and from one of a lane's vectors to the next */

	/* Texts: the kernel's indices in front of m, the block of rows, and n, the lane; and the batch. */
	const char *indices, *batch;
	/* Where elements lie: array[base + r * step + depth], of a row's block also + m * block; of columns also + n.
	 */
	struct tile_side {
		const char *array, *base, *depth;
		uint64_t block, step;
	} row, column;
	const char *loop[TILE_LOOPS_MAX]; /* over the depth, in front of their bodies: "for (k in 0..9)" */
	unsigned loops;
	/* The result's subscripts behind those of batch and row, of number j of a tile's vectors: "[y][x]". */
	const char *(*subscript)(struct source *s, const struct tile *t, unsigned j);
	bool transposed; /* a row's subscript is behind those of a column */
	/* The position in the product's dimensions of a row, a text, and that vector. */
	struct position (*position)(struct source *s, const struct tile *t, const char *row, unsigned j);
	const void *user;
};

static inline uint64_t tile_row_blocks(const struct tile *t) { return (t->rows + t->r - 1) / t->r; }
static inline uint64_t tile_width(const struct tile *t) { return (uint64_t)t->lanes * t->j; }
static inline uint64_t tile_column_blocks(const struct tile *t)
{
	return (t->columns + tile_width(t) - 1) / tile_width(t);
}

/* Whether tiles compute such a node. lanes 0: they compute none. */
bool tile_takes(const struct tensor_graph *g, const struct tensor_node *n, unsigned lanes);
bool tile_takes_conv(const struct tensor_graph *g, const struct tensor_node *n, unsigned lanes);
/* Finds r and j. vectors: of columns, of which j are side by side; wide: the type of sums. Returns the hundredths of
 * cycles of the multipliers that all tiles take for an element of the depth. */
uint64_t tile_choose(struct tile *t, uint64_t vectors, int wide);
/* The same for a card, whose lanes are those of a warp: fewer sums for each where there would be few warps. */
void tile_choose_on_card(struct tile *t, int wide);
/* Columns that lie in one line, cut into blocks of a tile's width: indices b and p. */
void tile_in_line(struct source *s, struct tile *t);
/* Writes the kernel's indices and body. */
void tile_write(struct source *s, const struct tile *t);

/* ---- operands in another order */

/* Dimensions of an operand that one index goes through, in its order. */
struct through {
	struct shape shape;
	uint64_t stride[TENSOR_MAX_RANK];
};
/* Those of an operand of a product. */
struct side {
	struct through batch, own, sum;
};
struct side product_side(const struct tensor_graph *g, const struct tensor_node *n, unsigned operand);
/* The position in the dimensions of a product of such operands, of a batch, and of an element of each operand's own. */
struct position product_position(struct source *s, const struct side side[2], const char *batch, const char *left,
                                 const char *right);
/* How far the index's element is from the first one, as a text. */
const char *through_distance(struct source *s, const struct through *t, const char *index);
/* Whether one stride leads through them, which is 0 where there is one element alone. */
bool through_is_straight(const struct through *t, uint64_t *stride);

/* A kernel that fills an array of so many elements with those of a value. Begin gives a source whose head and body are
 * then written; end makes it the next of s->prepared, and returns its name. pairs: it reads two elements of 32 bits as
 * a u64. */
void prepare_begin(const struct source *s, struct source *to);
const char *prepare_end(struct source *s, struct source *to, tensor_value from, bool pairs, uint64_t elements);
/* The name of an array [batch][sum][own] of an operand. */
const char *prepare_lines(struct source *s, tensor_value v, const struct side *side);
/* t->row becomes an array [batch][block of rows][depth][row], whose rows of a tile are neighbours. t->row.base is for
 * a batch `b`, t->row.depth for `k`. */
void prepare_rows(struct source *s, struct tile *t, tensor_value v, const struct side *side, uint64_t batches);
/* t->column becomes an array [batch][block of columns][depth][column]. */
void prepare_columns(struct source *s, struct tile *t, tensor_value v, const struct side *side);

/* A convolution as plain loops. */
void source_conv_plain(struct source *s, const struct tensor_node *n);

#endif
