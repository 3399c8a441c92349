/* jit/spirv/wide.c - conversions of floats and doubles to integers, which are cut to the least or the greatest one.
 *
 * Rule for editors: what is converted lies in range, whatever the operand is; SPIR-V says nothing of others.
 */
#include "jit/ir/lanes.h"
#include "jit/spirv/spirv.h"

/* Of a float or a double: what lies above `below` and below `above` is converted, and NaN as 0; at `below` and less the
 * result is `min`, at `above` and more `max`. */
struct cut {
	uint16_t row;
	bool is_signed, to_wide;
	double below, above;
	uint64_t min, max;
};

/* The floats and doubles at which conversions change; -2^31 and -2^63 themselves give the least number either way. */
static const struct cut cuts[] = {
	{ IR_f2i_cut, true, false, -0x1p31, 0x1p31, UINT64_C(0x80000000), INT32_MAX },
	{ IR_f2u_cut, false, false, 0, 0x1p32, 0, UINT32_MAX },
	{ IR_d2i_cut, true, false, -0x1p31 - 1, 0x1p31, UINT64_C(0x80000000), INT32_MAX },
	{ IR_d2u_cut, false, false, 0, 0x1p32, 0, UINT32_MAX },
	{ IR_d2l_cut, true, true, -0x1p63, 0x1p63, UINT64_C(1) << 63, INT64_MAX },
	{ IR_d2ul_cut, false, true, 0, 0x1p64, 0, UINT64_MAX },
};

static uint32_t number(struct spirv_writer *w, enum spirv_type type, double v)
{
	return spirv_constant(w, type, type == SPIRV_F32 ? f32_bits((float)v) : f64_bits(v));
}

bool spirv_wide(struct spirv_emitter *e, const struct ir_ins *i)
{
	const struct cut *c = cuts;
	struct spirv_writer *w = &e->w;

	while (c < cuts + sizeof cuts / sizeof *cuts && c->row != ir_row(i))
		c++;
	if (c == cuts + sizeof cuts / sizeof *cuts)
		return false;
	const enum spirv_type from = spirv_type_of(e, i->a), to = c->to_wide ? SPIRV_U64 : SPIRV_U32;
	const uint32_t a = spirv_get(e, i->a), below = number(w, from, c->below), above = number(w, from, c->above),
		       more = SPIRV_VALUE(w, SPIRV_BOOL, FOrdGreaterThan, a, below),
		       less = SPIRV_VALUE(w, SPIRV_BOOL, FOrdLessThan, a, above),
		       in = SPIRV_VALUE(w, SPIRV_BOOL, LogicalAnd, more, less),
		       inside = SPIRV_VALUE(w, from, Select, in, a, number(w, from, 0)),
		       made = spirv_make_value(w, to, c->is_signed ? SPV_ConvertFToS : SPV_ConvertFToU, &inside, 1),
		       is_low = SPIRV_VALUE(w, SPIRV_BOOL, FOrdLessThanEqual, a, below),
		       is_high = SPIRV_VALUE(w, SPIRV_BOOL, FOrdGreaterThanEqual, a, above),
		       low = SPIRV_VALUE(w, to, Select, is_low, spirv_constant(w, to, c->min), made);
	spirv_set(e, i->dst, SPIRV_VALUE(w, to, Select, is_high, spirv_constant(w, to, c->max), low));
	return true;
}
