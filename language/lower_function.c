/* language/lower_function.c - the functions that the language has. */
#include "jit/ir/ir_functions_integer.h"
#include "jit/ir/ir_functions_narrow.h"
#include "jit/ir/ir_functions_wide.h"
#include "jit/ir/ir_random.h"
#include "language/fold.h"
#include "language/lower.h"

static uint16_t of_type(struct lower *l, unsigned type, enum ir_op f, enum ir_op d, uint16_t a)
{
	return jk_lower_emit(l, type == JK_F32 ? f : d, a, 0, 0, 0);
}

static uint16_t series_f32(struct ir *b, unsigned f, ir_f x)
{
	switch (f) {
	case BUILTIN_exp: return ir_fn_exp_f32(b, x).r;
	case BUILTIN_log: return ir_fn_log_f32(b, x).r;
	case BUILTIN_sin: return ir_fn_sin_f32(b, x).r;
	case BUILTIN_cos: return ir_fn_cos_f32(b, x).r;
	case BUILTIN_tanh: return ir_fn_tanh_f32(b, x).r;
	default: return ir_fn_erf_f32(b, x).r;
	}
}

static uint16_t series_f64(struct ir *b, unsigned f, ir_d x)
{
	switch (f) {
	case BUILTIN_exp: return ir_fn_exp_f64(b, x).r;
	case BUILTIN_log: return ir_fn_log_f64(b, x).r;
	case BUILTIN_sin: return ir_fn_sin_f64(b, x).r;
	case BUILTIN_cos: return ir_fn_cos_f64(b, x).r;
	case BUILTIN_tanh: return ir_fn_tanh_f64(b, x).r;
	default: return ir_fn_erf_f64(b, x).r;
	}
}

static struct value series(struct lower *l, const struct node *n, const struct value *a)
{
	const uint16_t x = jk_lower_to_vector(l, a);
	const size_t before = l->ir->n_ins;
	const uint16_t r =
		a->type == JK_F32 ? series_f32(l->ir, n->op, (ir_f){ x }) : series_f64(l->ir, n->op, (ir_d){ x });

	jk_lower_check(l);
	l->operations += (l->ir->n_ins - before) * l->iterations;
	return jk_value_vector(a->type, r, a->varying);
}

static struct value power(struct lower *l, const struct value *a)
{
	const uint16_t x = jk_lower_to_vector(l, &a[0]), y = jk_lower_to_vector(l, &a[1]);
	const size_t before = l->ir->n_ins;
	const uint16_t r = a->type == JK_F32 ? ir_fn_pow_f32(l->ir, (ir_f){ x }, (ir_f){ y }).r
	                                     : ir_fn_pow_f64(l->ir, (ir_d){ x }, (ir_d){ y }).r;

	jk_lower_check(l);
	l->operations += (l->ir->n_ins - before) * l->iterations;
	return jk_value_vector(a->type, r, a[0].varying || a[1].varying);
}

static struct value ones(struct lower *l, const struct node *n, const struct value *a)
{
	const bool count = n->op == BUILTIN_popcount;
	struct value v;

	if (!type_is_wide(a->type)) {
		v = jk_value_vector(a->type,
		                    jk_lower_emit(l, count ? IR_iones : IR_iclz, jk_lower_to_int(l, a), 0, 0, 0),
		                    a->varying);
		v.lo = 0;
		v.hi = 32;
		return v;
	}
	const ir_l all = { jk_lower_to_vector(l, a) };
	const ir_l r = count ? ir_fn_ones_i64(l->ir, all) : ir_fn_leading_zeros_i64(l->ir, all);
	v = jk_value_vector(a->type, r.r, a->varying);
	jk_lower_check(l);
	v.lo = 0;
	v.hi = 64;
	return v;
}

static struct value rotated(struct lower *l, const struct node *n, struct value a, struct value by)
{
	const unsigned type = a.type == JK_I32 ? JK_U32 : a.type == JK_I64 ? JK_U64 : a.type;
	const int64_t width = type_is_wide(type) ? 64 : 32;

	a = jk_lower_cast(l, n, type, a);
	by = jk_lower_binary(l, n, OP_AND, jk_lower_cast(l, n, type, by), jk_value_int(type, width - 1));
	const struct value rest =
		jk_lower_binary(l, n, OP_AND, jk_lower_binary(l, n, OP_SUB, jk_value_int(type, width), by),
	                        jk_value_int(type, width - 1));
	const struct value x = jk_lower_binary(l, n, OP_SHL, a, by), y = jk_lower_binary(l, n, OP_SHR, a, rest);
	return jk_lower_cast(l, n, n->type, jk_lower_binary(l, n, OP_OR, x, y));
}

static struct value random_word(struct lower *l, const struct node *n, const struct value *operand)
{
	struct ir_philox counter;
	bool varying = false;
	const struct node *which = n->a;

	for (unsigned k = 0; k < 6; k++)
		varying |= operand[k].varying;
	for (unsigned k = 0; k < 6; k++)
		which = which->next;
	for (unsigned k = 0; k < 4; k++)
		counter.word[k] = (ir_i){ jk_lower_to_int(l, &operand[k]) };
	const ir_i key0 = { jk_lower_to_int(l, &operand[4]) }, key1 = { jk_lower_to_int(l, &operand[5]) };
	const struct ir_philox r = ir_philox(l->ir, counter, key0, key1);
	jk_lower_check(l);
	return jk_value_vector(JK_U32, r.word[which->bits & 3].r, varying);
}

/* The number at a place of the sequence that begins with a seed. */
static struct value split_mix(struct lower *l, const struct node *n, struct value seed, struct value counter)
{
	const struct value step = jk_value_bits(JK_U64, UINT64_C(0x9e3779b97f4a7c15));
	const struct value back = jk_lower_binary(l, n, OP_SUB, counter, jk_value_int(JK_U64, 1));
	const struct value state = jk_lower_binary(l, n, OP_ADD, seed, jk_lower_binary(l, n, OP_MUL, back, step));
	const ir_l r = ir_splitmix64(l->ir, (ir_l){ jk_lower_to_vector(l, &state) });

	jk_lower_check(l);
	return jk_value_vector(JK_U64, r.r, state.varying);
}

static struct value absolute(struct lower *l, const struct node *n, struct value a)
{
	if (type_is_float(a.type))
		return jk_value_vector(a.type, of_type(l, a.type, IR_fabs, IR_dabs, jk_lower_to_vector(l, &a)),
		                       a.varying);
	if (type_is_unsigned(a.type) || a.lo >= 0)
		return a;
	struct value v = jk_lower_binary(l, n, OP_MAX, a, jk_lower_binary(l, n, OP_SUB, jk_value_int(a.type, 0), a));
	if (v.lo < 0 && a.lo > (a.type == JK_I32 ? (wide)INT32_MIN : (wide)INT64_MIN))
		v.lo = 0;
	return v;
}

static struct value bits_of(struct lower *l, const struct node *n, struct value a)
{
	static const uint16_t rows[] = { IR_ibits, IR_fbits, IR_lbits, IR_dbits };

	if (!type_is_float(a.type) && (a.kind == VALUE_CONSTANT || (a.kind == VALUE_LINEAR && !a.linear.n)))
		return jk_value_bits(n->type, a.kind == VALUE_CONSTANT ? a.bits : (uint64_t)a.linear.constant);
	uint16_t x = jk_lower_to_vector(l, &a);
	if (type_is_float(a.type))
		x = jk_lower_one_nan(l, a.type, x);
	return jk_value_vector(n->type, jk_lower_emit(l, (enum ir_op)rows[n->op - BUILTIN_bits_u32], x, 0, 0, 0),
	                       a.varying);
}

static struct value high_product(struct lower *l, const struct value *a)
{
	const uint16_t x = jk_lower_to_vector(l, &a[0]), y = jk_lower_to_vector(l, &a[1]);
	uint16_t r;

	if (!type_is_wide(a->type))
		r = jk_lower_emit(l, a->type == JK_I32 ? IR_imulh : IR_umulh, x, y, 0, 0);
	else if (a->type == JK_I64)
		r = ir_fn_mul_high_i64(l->ir, (ir_l){ x }, (ir_l){ y }).r;
	else
		r = ir_fn_mul_high_u64(l->ir, (ir_l){ x }, (ir_l){ y }).r;
	jk_lower_check(l);
	return jk_value_vector(a->type, r, a[0].varying || a[1].varying);
}

static struct value rounded(struct lower *l, const struct node *n, const struct value *a)
{
	static const uint16_t rows[][2] = {
		{ IR_ffloor, IR_dfloor }, { IR_fceil, IR_dceil }, { IR_fround, IR_dround }, { IR_ftrunc, IR_dtrunc }
	};
	const uint16_t *row = rows[n->op - BUILTIN_floor];

	return jk_value_vector(a->type,
	                       of_type(l, a->type, (enum ir_op)row[0], (enum ir_op)row[1], jk_lower_to_vector(l, a)),
	                       a->varying);
}

struct value jk_lower_builtin(struct lower *l, const struct node *n, struct value *a)
{
	const unsigned type = a->type;
	uint16_t x, y, z;

	switch (n->op) {
	case BUILTIN_fma:
		x = jk_lower_to_vector(l, &a[0]);
		y = jk_lower_to_vector(l, &a[1]);
		z = jk_lower_to_vector(l, &a[2]);
		return jk_value_vector(type, jk_lower_emit(l, type == JK_F32 ? IR_ffma : IR_dfma, x, y, z, 0),
		                       a[0].varying || a[1].varying || a[2].varying);
	case BUILTIN_sqrt:
		return jk_value_vector(type, of_type(l, type, IR_fsqrt, IR_dsqrt, jk_lower_to_vector(l, a)),
		                       a->varying);
	case BUILTIN_abs: return absolute(l, n, a[0]);
	case BUILTIN_min: return jk_lower_binary(l, n, OP_MIN, a[0], a[1]);
	case BUILTIN_max: return jk_lower_binary(l, n, OP_MAX, a[0], a[1]);
	case BUILTIN_floor:
	case BUILTIN_ceil:
	case BUILTIN_round:
	case BUILTIN_trunc: return rounded(l, n, a);
	case BUILTIN_select: return jk_lower_choose(l, a[0], a[1], a[2]);
	case BUILTIN_popcount:
	case BUILTIN_clz: return ones(l, n, a);
	case BUILTIN_mulhi: return high_product(l, a);
	case BUILTIN_rotl: return rotated(l, n, a[0], a[1]);
	case BUILTIN_bits_u32:
	case BUILTIN_bits_f32:
	case BUILTIN_bits_u64:
	case BUILTIN_bits_f64: return bits_of(l, n, a[0]);
	case BUILTIN_splitmix64: return split_mix(l, n, a[0], a[1]);
	case BUILTIN_philox: return random_word(l, n, a);
	case BUILTIN_pow: return power(l, a);
	default: return series(l, n, a);
	}
}
