/* kernels-templates/matmul/matmul_schedule.h - how a matmul goes through its weights: all that may be chosen without
 * changing a bit of the result.
 *
 * Owns: the fields of a schedule, what they are when nobody chooses, which of them a kernel can do, and how they lie in
 * key.schedule: a hexadecimal digit a field, the first field in the lowest, 0 its usual value and n the n-th of the
 * values that matmul_schedule.c lists. Every way of going must leave a row's chain along k as numerics.h rules 3 to 5
 * say it. To add a field: a member, a row in the table of fields, what it is usually, who refuses it, and its words.
 * Values keep their numbers; results of machines name them.
 */
#ifndef KERNELS_MATMUL_SCHEDULE_H
#define KERNELS_MATMUL_SCHEDULE_H

#include "jit/key.h"
#include "jit/target.h"
#include "kernels-templates/formats/weight_format.h"

/* Into which level of the cache weights are asked for. Weights that are met once: both is into the second, and at half
 * the distance into the first. What is met again is asked for into the first, and both is into the second as well,
 * `distance` further on; row blocks that are unpacked as a whole into the second. */
enum schedule_level { SCHEDULE_FIRST_LEVEL = 1, SCHEDULE_SECOND_LEVEL, SCHEDULE_BOTH_LEVELS, SCHEDULE_NO_LEVEL };

struct matmul_schedule {
	uint32_t prefetch_level;    /* enum schedule_level */
	uint32_t prefetch_distance; /* bytes from the weights in use to those that are asked for */
	uint32_t unroll_k;          /* k's in one iteration of the inner loop */
	uint32_t row_blocks; /* walked side by side, each a stream of its own; on cards TEMPLATE_SIDE_BY_SIDE alone says
	                        so */
	uint32_t tile_n;     /* of a tile, side by side in registers */
	uint32_t k_block_bytes; /* bytes of weights at most that a part leaves in the cache for the next one; int8 */
};
enum { MATMUL_SCHEDULE_FIELDS = 6 };

/* Parts of a tile that fit the registers. */
struct matmul_parts {
	unsigned vectors, columns, sums /* integer sums side by side */;
};

/* What a schedule is judged by. */
struct matmul_shape {
	const struct weight_format *format;
	bool int8, wide;
	bool aligned; /* formats with heads: every span begins with one */
	unsigned regs, row_vectors, columns, spans, span_k, segment_k, matrices; /* _k: elements of the format */
	uint32_t blocks;                                                         /* of 32 rows */
};

/* key: matmul_refusal() has nothing against it. */
struct matmul_shape matmul_shape(const struct key *key, const struct target *target);
/* What key->schedule stands for, of lanes that own rows; matmul_recipe() asks. Returns NULL, or why this kernel cannot
 * do that. What it stands for where it is 0. */
const char *matmul_schedule(const struct key *key, const struct target *target, struct matmul_schedule *out);
struct matmul_schedule matmul_usual_schedule(const struct key *key, const struct target *target);

/* Two row blocks side by side, with int8: registers hold the integer sums of a unit, but not the totals too, which wait
 * in memory. */
bool matmul_accumulators_in_memory(const struct matmul_shape *s);
/* Of kernels that are not wide, with so many columns in a part. */
struct matmul_parts matmul_parts(const struct matmul_shape *s, unsigned columns);
static inline bool matmul_single_part(const struct matmul_shape *s, const struct matmul_parts *p)
{
	return p->columns == s->columns && p->vectors == s->row_vectors;
}
/* Weights are met once. */
static inline bool matmul_once(const struct matmul_shape *s, const struct matmul_parts *p)
{
	return s->columns == 1 && !s->wide && matmul_single_part(s, p);
}
/* k's that the parts of a tile do before they come back for the next columns. */
unsigned matmul_stretch(const struct matmul_shape *s, const struct matmul_schedule *c, const struct matmul_parts *p);

/* For templates.h, which says what they do; of keys that are matmuls. */
const char *matmul_schedule_refusal(const struct key *key);
unsigned matmul_schedules(const struct key *key, uint32_t out[]);
unsigned matmul_schedules_near(const struct key *key, unsigned field, uint32_t out[]);
uint32_t matmul_schedule_follow(const struct key *key, const struct key *one);
char *matmul_schedule_name(const struct key *key, char *out, size_t cap);
const char *matmul_schedule_field(const struct key *key, unsigned field, uint32_t *value);

#endif
