/* kernels-templates/matmul/matmul_dot.h - a matmul of lanes that own rows, at work: what its inner loops (matmul_dot.c)
 * and its outer ones (matmul.c) share. Internal to these two.
 */
#ifndef KERNELS_MATMUL_DOT_H
#define KERNELS_MATMUL_DOT_H

#include "kernels-templates/matmul/matmul.h"
#include "kernels-templates/matmul/recipe.h"

enum { MATMUL_MAX_COLUMNS = 8 };

struct matmul {
	struct ir *b;
	const struct key *key;
	const struct matmul_recipe *recipe;
	const struct weight_format *format;
	bool int8, has_vnni, has_bsel;
	bool by_pairs, keeps_heads;       /* of single columns */
	uint32_t kp, rows_padded, blocks; /* padded k and rows; blocks of 32 rows */
	uint32_t in_width;                /* elements from a column of inputs to the next */
	int64_t block_bytes;
	unsigned spans, span_k;
	bool aligned;         /* formats with heads: every span and segment begins with one */
	unsigned columns;     /* of a column tile */
	unsigned row_vectors; /* vectors in 32 rows */
	unsigned matrices;

	struct matmul_shape shape;
	struct matmul_schedule schedule;
	struct matmul_parts part; /* of a tile, that fits the registers */
	unsigned iteration_k;     /* k's in one iteration of the inner loop */
	unsigned streams;         /* row blocks side by side, stream_bytes apart in memory */
	int64_t stream_bytes;
	struct matmul_route route; /* KEY_EXPERTS */

	ir_a arg, sums;
	ir_a w, x, xs, sum; /* walking */
	ir_a head;
	ir_s unit; /* formats with heads: that of the unit at w, and its number among them */

	/* Weights asked for by an iteration: `lines` lines from w + ahead + lines_at (ahead.r 0: none) on. */
	ir_s ahead;
	int64_t lines_at, lines;
};

/* A count of inner-loop iterations: known now, or only when the kernel runs. */
struct iterations {
	bool known;
	int64_t n;
	ir_s s;
};

static inline int64_t dot_span_bytes(const struct matmul *m) { return (int64_t)m->matrices * m->columns * 128; }

/* From the totals of one row block to those of the next. */
static inline int64_t dot_stream_sums(const struct matmul *m) { return m->spans * dot_span_bytes(m); }

/* Adds the products of a step of f32 from number k of an iteration on, of all row vectors and columns of the tile. */
void dot_floats(struct ir *b, const struct weight_format *f, const struct weight_tile *t, unsigned k);
/* A segment of so many iterations, from the addresses on, which are left behind it; totals into the sums at m->sum. */
void dot_segment(struct matmul *m, const struct iterations *iterations);

#endif
