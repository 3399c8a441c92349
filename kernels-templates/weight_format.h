/* kernels-templates/weight_format.h - what a weight format must say for matmul, embed and packing to do it.
 *
 * Owns: the interface of the wf_*.c files. To add a format: one file that fills a struct weight_format, a declaration below and a line in
 * weights.c's table; nothing else in this room knows a format.
 *
 * The packed form of 32 rows is a run of units, each unit_k long in k and unit_bytes in size. Inside a unit lies one or more arrays indexed by row
 * (the lane), each with lanes of 1, 2 or 4 bytes, so row vector v of an array with lanes of n bytes lies v * W * n bytes after its start.
 */
#ifndef KERNELS_WEIGHT_FORMAT_H
#define KERNELS_WEIGHT_FORMAT_H

#include "jit/ir_build.h"
#include "kernels-templates/templates.h"

/* Where the current unit of 32 rows lies, seen from arrays with lanes of 1, 2 and 4 bytes: a kernel that starts at row r has added r * 1, r * 2
 * and r * 4. at[] of a lane size the format does not have need not be set. */
enum { WEIGHT_LANE_1, WEIGHT_LANE_2, WEIGHT_LANE_4, WEIGHT_LANES };
struct weight_stream { ir_a at[WEIGHT_LANES]; };

enum { WEIGHT_MAX_ACC = 32, WEIGHT_MAX_STEP = 4 };

/* A tile of dot products: row vectors first_vector, ... (`vectors` of them) by `columns` columns of activations. */
struct weight_tile {
	unsigned vectors, first_vector, columns;
	unsigned sums;                       /* integer sums that registers may hold beside the accumulators, at least `columns` */
	bool has_vnni;                       /* the target's: dot4u beats dot4 */
	struct weight_stream w;
	ir_a x, xs;                          /* first column at the current k: elements; with int8 also scales */
	int32_t x_stride, xs_stride;         /* bytes from a column to the next */
	ir_f acc[WEIGHT_MAX_ACC];            /* variables */
};
static inline ir_f weight_acc(const struct weight_tile *t, unsigned v, unsigned c) { return t->acc[v * t->columns + c]; }

struct weight_format {
	enum dtype type;
	uint32_t unit_k, unit_bytes;
	uint8_t lane_sizes;                  /* bit WEIGHT_LANE_n: the format has arrays with such lanes */

	/* f32 activations: load() yields the next `step` (at most WEIGHT_MAX_STEP) k's of row vector v as f32, from number `index` (k / step)
	 * of the unit unit_disp after w. step divides unit_k. */
	unsigned step;
	void (*load)(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[]);

	/* int8 activations: adds one unit, unit_disp after the tile's addresses, to the tile's accumulators; unit number `index` of x and xs. NULL: the
	 * format is not multiplied with int8. */
	void (*dot_int8)(struct ir *b, const struct weight_tile *t, int32_t unit_disp, unsigned index);

	/* Files to packed units, and to floats. Rows are as the file has them; no alignment, no padding. No row is NULL; k elements of each. */
	void (*pack)(void *dst, const void *const row[32], uint64_t k);
	void (*to_f32)(float *out, const void *row, uint64_t k);
};

extern const struct weight_format wf_f32, wf_f16, wf_bf16, wf_q8_0;

/* NULL: not supported. */
const struct weight_format *weight_format_find(enum dtype t);

/* ---- packing, shared by the formats. Files are little-endian and so is the host. */

/* Takes n 32-bit words (a multiple of 4) from each of 32 rows: dst[word * 32 + row]. */
void weight_turn_words(uint32_t *dst, const uint8_t *const row[32], unsigned n);
/* The same for 16-bit halves; n is a multiple of 8. */
void weight_turn_halves(uint16_t *dst, const uint8_t *const row[32], unsigned n);
/* Turns whole rows of `bytes` bytes in tiles of a cache line, adding zeros up to padded_bytes (a multiple of 64). */
void weight_turn_rows(void *dst, const void *const row[32], uint64_t bytes, uint64_t padded_bytes, bool halves);

#endif
