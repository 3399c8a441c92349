/* kernels-templates/kinds/route.h - what route.c and route_groups.c share: the choice at hand, how candidates compare.
 */
#ifndef KERNELS_ROUTE_H
#define KERNELS_ROUTE_H

#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { BLOCK_BYTES = 128, TAKEN = INT32_MIN };

struct route {
	struct ir *b;
	const struct key *key;
	unsigned parts, blocks; /* blocks of 32 experts */
	bool sigmoid;
	ir_a logits, bias;  /* this column's; of all */
	ir_a times;         /* of all, where there are any */
	ir_a kept;          /* local: by group, 0 for those whose experts nobody may choose */
	ir_a order, values; /* locals: int32, and f32 where the logits are not what counts */
	ir_f chosen[MATH_MAX_PARTS], value[MATH_MAX_PARTS]; /* by slot: the bits of its expert, and its value */
	ir_f factor[MATH_MAX_PARTS];                        /* and of `times` */
	ir_f near;                                          /* with GREATEST: how far others may be */
};

/* The greatest so far of some lanes: its order, number and value; with SCALED, of a choice among all, its factor. */
struct candidate {
	ir_i order, number;
	ir_f value, factor;
};

static inline bool is_scaled(const struct route *r) { return r->key->flags & KEY_SCALED; }

static inline int32_t part_at(const struct route *r, unsigned v) { return (int32_t)(v * r->b->lanes * 4); }

/* Whole numbers in the order of the floats; both zeros are one, NaN the least. */
ir_i route_order_of(struct ir *b, ir_f x);
/* The best of all lanes, in every lane. */
struct candidate route_fold(const struct route *r, struct candidate best[]);
/* Takes out the experts of all groups but the best. */
void route_keep_groups(const struct route *r);

#endif
