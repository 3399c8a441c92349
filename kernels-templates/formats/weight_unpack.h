/* kernels-templates/formats/weight_unpack.h - weights of a row block unpacked in local memory, to be met by many
 * columns.
 *
 * Owns: the unpacked form, its writing and its reading. Where prompts are computed, taking nibbles apart and making
 * scales costs as much as multiplying with them does for a few columns; here it is done once for all columns of a tile.
 *
 * int8 activations: a unit is 32 k's of 32 rows: [8][32] words of four quants, then per half (or for both) f32 scales
 * [32], f32 minima [32] where the format has them, and with VNNI int32 corrections [32]. VNNI multiplies unsigned with
 * signed bytes: there the quants are signed, their offset taken off, and the activations are the unsigned ones, 128 too
 * large (KEY_INTERLEAVE); a correction is -128 times the sum of the quants it belongs to, so that sums begin with it.
 * Quants that are signed bytes in memory already stay there: a unit then is scales and corrections alone. Tiles
 * multiply signed bytes with signed ones: no corrections, and the activations as they are. f32 activations: the weights
 * as f32, [k][32], as in F32.
 */
#ifndef KERNELS_WEIGHT_UNPACK_H
#define KERNELS_WEIGHT_UNPACK_H

#include "kernels-templates/formats/weight_format.h"

struct weight_unpacked {
	const struct weight_format *from;
	struct weight_format format; /* of what is there then, as the readers of formats see it */
	struct weight_quants quants; /* its own */
	bool int8, vnni, tiles, many_registers, chooses;
	bool corrects;       /* sums are of unsigned activations: there are corrections */
	bool reads_packed;   /* quants are read where they are packed: weight_stream.at of a tile is there, and its head
	                    at   the unit unpacked */
	uint32_t unit_bytes; /* of 32 k's */
	int32_t scales, minima, corrections; /* in a unit */
	int32_t packed_quants;               /* in a packed unit, where they are read in place */
};

/* Whether a target multiplies such weights by tiles. Not where half a unit has a scale of its own: storing sums is what
 * a tile's time goes into, and there would be twice as many. */
bool weight_by_tiles(const struct weight_format *f, const struct target *target);
/* u is not to be moved afterwards. */
void weight_unpacked_init(struct weight_unpacked *u, const struct weight_format *from, bool int8,
                          const struct target *target);
/* Four quants, as bytes() gives them, without their offset: signed; of wide ones 128 is taken off. */
ir_i weight_signed_bytes(const struct weight_quants *q, struct ir *b, ir_i bytes);
/* Row vector v of the unit at `w`, to the unit at `to`. */
void weight_unpack(const struct weight_unpacked *u, struct ir *b, const struct weight_stream *w, unsigned v, ir_a to);
/* int8: one unit of the tile's unpacked weights, unit_disp behind its addresses, as weight_dot_int8() does for packed
 * ones. */
void weight_unpacked_dot(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                         unsigned index);

/* The same in two steps, by tiles, so that the products of several units are under way at once: the unit's integer sums
 * go to `sums` + disp, int32 [column][32]; from there into the tile's accumulators. `index`: of the unit, behind all of
 * the tile's addresses. */
void weight_unpacked_products(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t,
                              unsigned index, ir_a sums, int32_t disp);
void weight_unpacked_add(const struct weight_unpacked *u, struct ir *b, const struct weight_tile *t, unsigned index,
                         ir_a sums, int32_t disp);

#endif
