/* kernels-templates/matmul/matmul_wide.h - a wide matmul at work: what its shape (matmul_wide_shape.c) and its loops
 * (matmul_wide.c) share. Internal to these two.
 */
#ifndef KERNELS_MATMUL_WIDE_H
#define KERNELS_MATMUL_WIDE_H

#include "kernels-templates/formats/weight_unpack.h"
#include "kernels-templates/matmul/matmul.h"
#include "kernels-templates/matmul/matmul_schedule.h"

/* Columns of a tile where there are many. */
enum { WIDE_MANY = 24 };

struct wide {
	struct ir *b;
	const struct weight_format *format; /* of what is multiplied */
	const struct weight_format *packed; /* of what is in memory */
	struct weight_unpacked unpacked;    /* in use when they differ */
	bool whole;   /* a row block is unpacked before its first tile, instead of a segment for each tile */
	ir_a scratch; /* local: a segment's, or a row block's */
	ir_s block, tile, matrix, segment_number; /* at work */
	bool int8, has_vnni;
	bool tiles; /* int8 products come from tiles, through `products`: local, int32 [unit of an
	               iteration][column][32] */
	ir_a products;
	uint32_t kp;
	int64_t block_bytes;
	unsigned spans, span_k; /* span_k, segment: elements of the format, which are k's or pairs of them; so is kp */
	unsigned segment;
	unsigned block_k;     /* elements in 32 k's */
	unsigned iteration_k; /* k's in one iteration of the inner loop */
	unsigned columns, part_columns, row_vectors, part_vectors, matrices;
	struct matmul_schedule schedule;
	struct matmul_results results;
	ir_a w, x, xs, sum; /* walking */
	ir_a beside;        /* the same, through what is unpacked beside weights that are read in place */
	ir_a ahead;         /* walks through the next segment's weights, which every part asks for a share of */
	unsigned lines;     /* ... in an iteration */
	ir_s iterations;    /* of this segment; in use when segments differ */
};

static inline bool wide_unpacks(const struct wide *m) { return m->format != m->packed; }
static inline bool wide_unpacks_segments(const struct wide *m) { return wide_unpacks(m) && !m->whole; }
static inline bool wide_reads_packed(const struct wide *m) { return wide_unpacks(m) && m->unpacked.reads_packed; }

/* Bytes that a row block takes unpacked. */
static inline int64_t wide_block_unpacked(const struct wide *m)
{
	return (int64_t)m->kp / NUMERICS_BLOCK * m->unpacked.unit_bytes * m->matrices;
}

/* All but the IR, of a key that is done. m stays where it is from now on. */
void wide_shape_key(struct wide *m, const struct key *key, const struct target *target, uint32_t stretch);

#endif
