/* language/lower_rows.c - loads and stores of lanes by the type of elements, and the NaN that memory gets. */
#include "language/lower_memory.h"

/* The instructions that a search for what made a stored value may look at. */
enum { LOOKED_AT = 1024 };

static const struct ir_ins *maker_of(const struct ir *ir, uint16_t x, unsigned *left)
{
	for (size_t k = ir->n_ins; !ir->is_var[x] && k > 0 && *left > 0; k--, --*left)
		if (ir->ins[k - 1].dst == x)
			return &ir->ins[k - 1];
	return NULL;
}

static bool is_constant_nan(const struct ir_ins *i)
{
	return i->type == IR_TYPE_f64 ? ((uint64_t)i->imm & INT64_MAX) > UINT64_C(0x7ff0000000000000)
	                              : ((uint64_t)i->imm & INT32_MAX) > 0x7f800000;
}

/* Whether it is never a NaN: made of constants and integers, or cut by min and max, whose second operand is what they
 * give where the first one is a NaN. Sums and products may be infinity less infinity. */
static bool is_number(const struct ir *ir, uint16_t x, unsigned *left)
{
	const struct ir_ins *i = maker_of(ir, x, left);

	switch (i ? i->op : (unsigned)IR_OPS) {
	case IR_const: return !is_constant_nan(i);
	case IR_from_int:
	case IR_from_unsigned:
	case IR_widen_int:
	case IR_widen_unsigned: return true;
	case IR_min:
	case IR_max: return is_number(ir, i->b, left);
	case IR_sel: return is_number(ir, i->b, left) && is_number(ir, i->c, left);
	case IR_abs:
	case IR_neg:
	case IR_round:
	case IR_floor:
	case IR_ceil:
	case IR_trunc:
	case IR_widen:
	case IR_narrow: return is_number(ir, i->a, left);
	default: return false;
	}
}

/* Of an f16 all bits but the sign, because NVIDIA's cards convert every NaN to that one, and the others cut bits off.
 */
uint16_t jk_lower_one_nan(struct lower *l, unsigned element, uint16_t x)
{
	const bool is_double = element == JK_F64;
	unsigned left = LOOKED_AT;

	if (is_number(l->ir, x, &left))
		return x;
	const uint16_t is_nan = jk_lower_emit(l, is_double ? IR_dne : IR_fne, x, x, 0, 0);
	const uint16_t nan =
		is_double ? jk_lower_emit(l, IR_dconst, 0, 0, 0, INT64_C(0x7ff8000000000000))
			  : jk_lower_emit(l, IR_fconst, 0, 0, 0, element == JK_F16 ? 0x7fffffff : 0x7fc00000);

	return jk_lower_emit(l, is_double ? IR_dsel : IR_fsel, is_nan, nan, x, 0);
}

uint16_t jk_load_lanes(struct lower *l, unsigned type, uint16_t p, int32_t disp, unsigned n, uint16_t m)
{
	struct ir *b = l->ir;
	const ir_a a = { p };
	const ir_m mask = { m };

	switch (type) {
	case JK_F32: return ir_load_f32(b, a, disp, n, mask).r;
	case JK_F64: return ir_load_f64(b, a, disp, n, mask).r;
	case JK_I32:
	case JK_U32: return ir_load_i32(b, a, disp, n, mask).r;
	case JK_I64:
	case JK_U64: return ir_load_i64(b, a, disp, n, mask).r;
	case JK_F16: return ir_load_f16(b, a, disp, n, mask).r;
	case JK_BF16: return ir_load_bf16(b, a, disp, n, mask).r;
	case JK_I8: return ir_load_i8(b, a, disp, n, mask).r;
	case JK_U8: return ir_load_u8(b, a, disp, n, mask).r;
	case JK_I16: return ir_load_i16(b, a, disp, n, mask).r;
	default: return ir_load_u16(b, a, disp, n, mask).r;
	}
}

void jk_store_lanes(struct lower *l, unsigned type, uint16_t p, uint16_t v, int32_t disp, unsigned n, uint16_t m)
{
	struct ir *b = l->ir;
	const ir_a a = { p };
	const ir_m mask = { m };

	switch (type) {
	case JK_F32: ir_store_f32(b, a, (ir_f){ v }, disp, n, mask); break;
	case JK_F64: ir_store_f64(b, a, (ir_d){ v }, disp, n, mask); break;
	case JK_I32:
	case JK_U32: ir_store_i32(b, a, (ir_i){ v }, disp, n, mask); break;
	case JK_I64:
	case JK_U64: ir_store_i64(b, a, (ir_l){ v }, disp, n, mask); break;
	case JK_F16: ir_store_f16(b, a, (ir_f){ v }, disp, n, mask); break;
	case JK_BF16: ir_store_bf16(b, a, (ir_f){ v }, disp, n, mask); break;
	case JK_I8: ir_store_i8(b, a, (ir_i){ v }, disp, n, mask); break;
	case JK_U8: ir_store_u8(b, a, (ir_i){ v }, disp, n, mask); break;
	case JK_I16: ir_store_i16(b, a, (ir_i){ v }, disp, n, mask); break;
	default: ir_store_u16(b, a, (ir_i){ v }, disp, n, mask); break;
	}
}

/* Words of an array below 2 GiB by their offsets in bytes. */
static uint16_t gather_words(struct lower *l, unsigned type, uint16_t p, uint16_t i, int32_t disp, uint16_t m)
{
	const uint16_t offset = jk_lower_emit(l, IR_ishl, i, 0, 0, 2);
	const uint16_t r = ir_emit(l->ir, IR_igather, 0, p, offset, 0, disp);

	if (m)
		ir_where(l->ir, (ir_m){ m });
	jk_lower_check(l);
	return type == JK_F32 ? jk_lower_emit(l, IR_fbits, r, 0, 0, 0) : r;
}

uint16_t jk_gather(struct lower *l, const struct spot *at, uint16_t p, uint16_t i, int32_t disp, uint16_t m)
{
	const unsigned type = at->s->type;
	struct ir *b = l->ir;
	const ir_a a = { p };
	const ir_i index = { i };
	const ir_m mask = { m };

	if (jk_type_bytes(type) == 4 && at->s->elements < 1 << 29)
		return gather_words(l, type, p, i, disp, m);
	switch (type) {
	case JK_F32: return ir_gather_f32(b, a, index, disp, mask).r;
	case JK_F64: return ir_gather_f64(b, a, index, disp, mask).r;
	case JK_I32:
	case JK_U32: return ir_gather_i32(b, a, index, disp, mask).r;
	case JK_I64:
	case JK_U64: return ir_gather_i64(b, a, index, disp, mask).r;
	case JK_F16: return ir_gather_f16(b, a, index, disp, mask).r;
	case JK_BF16: return ir_gather_bf16(b, a, index, disp, mask).r;
	case JK_I8: return ir_gather_i8(b, a, index, disp, mask).r;
	case JK_U8: return ir_gather_u8(b, a, index, disp, mask).r;
	case JK_I16: return ir_gather_i16(b, a, index, disp, mask).r;
	default: return ir_gather_u16(b, a, index, disp, mask).r;
	}
}

void jk_scatter(struct lower *l, unsigned type, uint16_t p, uint16_t i, uint16_t v, int32_t disp, uint16_t m)
{
	struct ir *b = l->ir;
	const ir_a a = { p };
	const ir_i index = { i };
	const ir_m mask = { m };

	switch (type) {
	case JK_F32: ir_scatter_distinct_f32(b, a, index, (ir_f){ v }, disp, mask); break;
	case JK_F64: ir_scatter_distinct_f64(b, a, index, (ir_d){ v }, disp, mask); break;
	case JK_I32:
	case JK_U32: ir_scatter_distinct_i32(b, a, index, (ir_i){ v }, disp, mask); break;
	case JK_I64:
	case JK_U64: ir_scatter_distinct_i64(b, a, index, (ir_l){ v }, disp, mask); break;
	case JK_F16: ir_scatter_distinct_f16(b, a, index, (ir_f){ v }, disp, mask); break;
	case JK_BF16: ir_scatter_distinct_bf16(b, a, index, (ir_f){ v }, disp, mask); break;
	case JK_I8: ir_scatter_distinct_i8(b, a, index, (ir_i){ v }, disp, mask); break;
	case JK_U8: ir_scatter_distinct_u8(b, a, index, (ir_i){ v }, disp, mask); break;
	case JK_I16: ir_scatter_distinct_i16(b, a, index, (ir_i){ v }, disp, mask); break;
	default: ir_scatter_distinct_u16(b, a, index, (ir_i){ v }, disp, mask); break;
	}
}
