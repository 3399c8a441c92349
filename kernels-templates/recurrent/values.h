/* kernels-templates/recurrent/values.h - the unit that the delta rule and the selective scan have in common: 32 values
 * of a head, or the 16 behind the last whole block where a head's size is an odd multiple of 16.
 *
 * The state of such a short block lies as that of a whole one, and its further lanes stay +0: they take up values of
 * +0 alone.
 */
#ifndef KERNELS_RECURRENT_VALUES_H
#define KERNELS_RECURRENT_VALUES_H

#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

struct values {
	uint32_t size;    /* of a head; a multiple of 16 */
	ir_s head, block; /* of the unit */
};

/* unit = head * blocks + block. */
struct values values_of_unit(struct ir *b, ir_s unit, uint32_t size);
/* The bytes from the first value of the first head to the unit's first. */
ir_s values_offset(struct ir *b, const struct values *v, ir_s unit);
void values_load(struct ir *b, const struct values *v, ir_a at, ir_f out[MATH_MAX_PARTS]);
void values_store(struct ir *b, const struct values *v, ir_a at, const ir_f in[MATH_MAX_PARTS]);

#endif
