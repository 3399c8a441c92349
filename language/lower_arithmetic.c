/* language/lower_arithmetic.c - operators and casts on values. */
#include "jit/ir/ir_functions_integer.h"
#include "language/fold.h"
#include "language/lower.h"

/* --- ranges of integers: what a result can be, when its operands can be what they are */

static bool fits(unsigned type, wide lo, wide hi)
{
	wide min, max;

	jk_type_range(type, &min, &max);
	return lo >= min && hi <= max;
}

static void set_range(struct value *v, wide lo, wide hi)
{
	if (fits(v->type, lo, hi)) {
		v->lo = lo;
		v->hi = hi;
	}
}

static wide min(wide a, wide b) { return a < b ? a : b; }
static wide max(wide a, wide b) { return a > b ? a : b; }

static void range_of_product(struct value *v, const struct value *a, const struct value *b)
{
	const wide bound = (wide)1 << 62;

	if (a->lo < -bound || a->hi > bound || b->lo < -bound || b->hi > bound)
		return;
	const wide p[] = { a->lo * b->lo, a->lo * b->hi, a->hi * b->lo, a->hi * b->hi };
	set_range(v, min(min(p[0], p[1]), min(p[2], p[3])), max(max(p[0], p[1]), max(p[2], p[3])));
}

static wide all_ones(wide v)
{
	wide ones = 1;

	while (ones <= v)
		ones *= 2;
	return ones - 1;
}

static void range_of(struct value *v, unsigned op, const struct value *a, const struct value *b)
{
	const bool positive = a->lo >= 0 && b->lo >= 0;
	int64_t by;

	switch (op) {
	case OP_ADD: set_range(v, a->lo + b->lo, a->hi + b->hi); break;
	case OP_SUB: set_range(v, a->lo - b->hi, a->hi - b->lo); break;
	case OP_MUL: range_of_product(v, a, b); break;
	case OP_DIV:
		if (a->lo >= 0 && b->lo > 0)
			set_range(v, a->lo / b->hi, a->hi / b->lo);
		break;
	case OP_REM:
		if (a->lo >= 0 && b->lo > 0)
			set_range(v, 0, min(a->hi, b->hi - 1));
		break;
	case OP_AND:
		if (a->lo >= 0 || b->lo >= 0)
			set_range(v, 0, positive ? min(a->hi, b->hi) : a->lo >= 0 ? a->hi : b->hi);
		break;
	case OP_OR:
	case OP_XOR:
		if (positive)
			set_range(v, 0, all_ones(max(a->hi, b->hi)));
		break;
	case OP_SHR:
		if (jk_value_is_constant(b, &by) && by >= 0 && by < 64 && a->lo >= 0)
			set_range(v, a->lo >> by, a->hi >> by);
		break;
	case OP_MIN: set_range(v, min(a->lo, b->lo), min(a->hi, b->hi)); break;
	case OP_MAX: set_range(v, max(a->lo, b->lo), max(a->hi, b->hi)); break;
	default: break;
	}
}

/* --- rows: of f32, f64, 32-bit and 64-bit integers, and those without sign where they differ */

static enum ir_op row_of(unsigned op, unsigned type)
{
	static const uint16_t rows[][6] = {
		[OP_ADD] = { IR_fadd, IR_dadd, IR_iadd, IR_iadd, IR_ladd, IR_ladd },
		[OP_SUB] = { IR_fsub, IR_dsub, IR_isub, IR_isub, IR_lsub, IR_lsub },
		[OP_MUL] = { IR_fmul, IR_dmul, IR_imul, IR_imul, IR_lmul, IR_lmul },
		[OP_DIV] = { IR_fdiv, IR_ddiv, IR_idiv, IR_udiv, 0, 0 },
		[OP_REM] = { 0, 0, IR_irem, IR_urem, 0, 0 },
		[OP_AND] = { 0, 0, IR_iand, IR_iand, IR_land, IR_land },
		[OP_OR] = { 0, 0, IR_ior, IR_ior, IR_lor, IR_lor },
		[OP_XOR] = { 0, 0, IR_ixor, IR_ixor, IR_lxor, IR_lxor },
		[OP_SHL] = { 0, 0, IR_ishlv, IR_ishlv, IR_lshlv, IR_lshlv },
		[OP_SHR] = { 0, 0, IR_isarv, IR_ishrv, IR_lsarv, IR_lshrv },
		[OP_LT] = { IR_flt, IR_dlt, IR_ilt, IR_ult, IR_llt, IR_lult },
		[OP_LE] = { IR_fle, IR_dle, IR_ile, IR_ule, IR_lle, IR_lule },
		[OP_EQ] = { IR_feq, IR_deq, IR_ieq, IR_ieq, IR_leq, IR_leq },
		[OP_NE] = { IR_fne, IR_dne, IR_ine, IR_ine, IR_lne, IR_lne },
		[OP_MIN] = { IR_fmin, IR_dmin, IR_imin, IR_umin, IR_lmin, IR_lumin },
		[OP_MAX] = { IR_fmax, IR_dmax, IR_imax, IR_umax, IR_lmax, IR_lumax },
	};

	return (enum ir_op)rows[op][type - JK_F32];
}

static bool is_comparison(unsigned op) { return op >= OP_LT && op <= OP_NE; }

/* --- linear forms and uniform integers */

static bool linear_result(struct lower *l, unsigned type, struct linear f, struct value *out)
{
	wide lo, hi;

	jk_linear_range(l, &f, &lo, &hi);
	if (!fits(type, lo, hi) || (f.n && (lo < INT64_MIN || hi > INT64_MAX)) ||
	    (!f.n && f.constant < 0 && type_is_unsigned(type)))
		return false;
	*out = jk_value_linear(l, type, &f);
	return true;
}

static bool linear_binary(struct lower *l, unsigned op, const struct value *a, const struct value *b, struct value *out)
{
	const struct linear zero = { 0 };
	struct linear f = a->linear;
	int64_t by;

	switch (op) {
	case OP_ADD: return jk_linear_add(&f, &b->linear, 1) && linear_result(l, a->type, f, out);
	case OP_SUB: return jk_linear_add(&f, &b->linear, -1) && linear_result(l, a->type, f, out);
	case OP_SHL:
		if (!jk_value_is_constant(b, &by) || by < 0 || by > 31)
			return false;
		f = zero;
		return jk_linear_add(&f, &a->linear, INT64_C(1) << by) && linear_result(l, a->type, f, out);
	case OP_MUL:
		f = zero;
		if (jk_value_is_constant(b, &by))
			return jk_linear_add(&f, &a->linear, by) && linear_result(l, a->type, f, out);
		return jk_value_is_constant(a, &by) && jk_linear_add(&f, &b->linear, by) &&
		       linear_result(l, a->type, f, out);
	default: return false;
	}
}

/* Uniform integers whose result scalars can have: in the range of 31 bits where the rows ask for that. */
static bool scalar_binary(struct lower *l, unsigned op, struct value a, struct value b, struct value *out)
{
	const wide bound = (wide)1 << 31;
	const bool small = a.lo >= 0 && a.hi < bound,
		   both = a.lo >= -bound && a.hi < bound && b.lo >= -bound && b.hi < bound;
	struct value r = jk_value_vector(a.type, 0, false);
	int64_t by;
	const bool constant = jk_value_is_constant(&b, &by);
	uint16_t reg;

	range_of(&r, op, &a, &b);
	const uint16_t x = jk_lower_scalar(l, &a.linear);
	if ((op == OP_DIV || op == OP_REM) && constant && small && by > 0 && by < bound) {
		reg = jk_lower_emit(l, IR_sdivi, x, 0, 0, by);
		if (op == OP_REM) {
			const uint16_t whole = jk_lower_emit(l, IR_smuli, reg, 0, 0, by);
			reg = jk_lower_emit(l, IR_ssub, x, whole, 0, 0);
		}
	} else if (op == OP_AND && constant && by >= 0 && by < bound) {
		reg = jk_lower_emit(l, IR_sandi, x, 0, 0, by);
	} else if (op == OP_SHR && constant && by >= 0 && by < (type_is_wide(a.type) ? 64 : 32)) {
		reg = jk_lower_emit(l, IR_sshri, x, 0, 0, by);
	} else if (op == OP_MIN || op == OP_MAX) {
		reg = jk_lower_emit(l, op == OP_MIN ? IR_smin : IR_smax, x, jk_lower_scalar(l, &b.linear), 0, 0);
	} else if (op == OP_MUL && both && fits(a.type, r.lo, r.hi) && (r.lo > -((wide)1 << 62))) {
		wide lo, hi;
		jk_type_range(a.type, &lo, &hi);
		if (r.lo == lo && r.hi == hi && !type_is_wide(a.type))
			return false; /* it may wrap */
		reg = jk_lower_emit(l, IR_smul, x, jk_lower_scalar(l, &b.linear), 0, 0);
	} else {
		return false;
	}
	*out = jk_value_scalar(l, a.type, reg, (int64_t)r.lo, (int64_t)r.hi);
	return true;
}

static struct value scalar_compare(struct lower *l, unsigned op, const struct value *a, const struct value *b)
{
	const bool swaps = op == OP_GT || op == OP_GE, negates = op == OP_NE;
	const uint16_t x = jk_lower_scalar(l, &a->linear), y = jk_lower_scalar(l, &b->linear);
	const enum ir_op row = op == OP_LT || op == OP_GT ? IR_slt : op == OP_LE || op == OP_GE ? IR_sle : IR_seq;
	uint16_t reg = jk_lower_emit(l, row, swaps ? y : x, swaps ? x : y, 0, 0);

	if (negates)
		reg = jk_lower_emit(l, IR_cnot, reg, 0, 0, 0);
	return (struct value){ .kind = VALUE_CONDITION, .type = JK_BOOL, .reg = reg };
}

/* What ranges say of a comparison. */
static bool known_compare(unsigned op, const struct value *a, const struct value *b, struct value *out)
{
	bool is = false, known = true;

	switch (op) {
	case OP_LT:
		is = a->hi < b->lo;
		known = is || a->lo >= b->hi;
		break;
	case OP_LE:
		is = a->hi <= b->lo;
		known = is || a->lo > b->hi;
		break;
	case OP_GT:
		is = a->lo > b->hi;
		known = is || a->hi <= b->lo;
		break;
	case OP_GE:
		is = a->lo >= b->hi;
		known = is || a->hi < b->lo;
		break;
	default:
		known = a->lo > b->hi || a->hi < b->lo;
		is = op == OP_NE;
		break;
	}
	if (known)
		*out = jk_value_bits(JK_BOOL, is);
	return known;
}

/* --- operators */

static struct value bool_binary(struct lower *l, unsigned op, struct value a, struct value b)
{
	const bool varying = a.varying || b.varying;
	const bool scalar = a.kind != VALUE_MASK && b.kind != VALUE_MASK;
	const uint16_t x = scalar ? jk_lower_to_condition(l, &a) : jk_lower_to_mask(l, &a);
	const uint16_t y = scalar ? jk_lower_to_condition(l, &b) : jk_lower_to_mask(l, &b);
	enum ir_op row = op == OP_AND || op == OP_BOTH    ? scalar ? IR_cand : IR_mand
	                 : op == OP_OR || op == OP_EITHER ? scalar ? IR_cor : IR_mor
	                 : scalar                         ? IR_cxor
	                                                  : IR_mxor;
	uint16_t reg = jk_lower_emit(l, row, x, y, 0, 0);

	if (op == OP_EQ)
		reg = jk_lower_emit(l, scalar ? IR_cnot : IR_mnot, reg, 0, 0, 0);
	return (struct value){
		.kind = scalar ? VALUE_CONDITION : VALUE_MASK, .type = JK_BOOL, .varying = varying, .reg = reg
	};
}

static bool constant_bits(const struct value *v, uint64_t *bits)
{
	*bits = v->kind == VALUE_LINEAR ? (uint64_t)v->linear.constant : v->bits;
	return v->kind == VALUE_CONSTANT || (v->kind == VALUE_LINEAR && !v->linear.n);
}

/* Shifts by a constant have rows of their own. */
static uint16_t shift_by(struct lower *l, unsigned op, unsigned type, uint16_t x, int64_t by)
{
	const bool is_wide = type_is_wide(type);
	const enum ir_op row = op == OP_SHL             ? is_wide ? IR_lshl : IR_ishl
	                       : type_is_unsigned(type) ? is_wide ? IR_lshr : IR_ishr
	                       : is_wide                ? IR_lsar
	                                                : IR_isar;

	return jk_lower_emit(l, row, x, 0, 0, by);
}

/* Quotients of 64 bits are no row. */
static uint16_t wide_quotient(struct lower *l, unsigned op, bool is_unsigned, ir_l x, ir_l y)
{
	struct ir *b = l->ir;
	const ir_l r = op == OP_DIV  ? is_unsigned ? ir_fn_div_u64(b, x, y) : ir_fn_div_i64(b, x, y)
	                : is_unsigned ? ir_fn_rem_u64(b, x, y)
	                             : ir_fn_rem_i64(b, x, y);

	jk_lower_check(l);
	return r.r;
}

static struct value vector_binary(struct lower *l, unsigned op, const struct value *a, const struct value *b)
{
	const bool varying = a->varying || b->varying, swaps = op == OP_GT || op == OP_GE;
	const unsigned plain = op == OP_GT ? OP_LT : op == OP_GE ? OP_LE : op;
	const enum ir_op row = row_of(plain, a->type);
	int64_t by = 0;
	uint16_t reg;

	const uint16_t x = jk_lower_to_vector(l, a);
	if ((op == OP_SHL || op == OP_SHR) && jk_value_is_constant(b, &by) && by >= 0 &&
	    by < (type_is_wide(a->type) ? 64 : 32)) {
		reg = shift_by(l, op, a->type, x, by);
	} else {
		const uint16_t y = jk_lower_to_vector(l, b);
		reg = row ? jk_lower_emit(l, row, swaps ? y : x, swaps ? x : y, 0, 0)
		          : wide_quotient(l, op, type_is_unsigned(a->type), (ir_l){ x }, (ir_l){ y });
	}
	struct value v = jk_value_vector(is_comparison(op) ? JK_BOOL : a->type, reg, varying);
	if (type_is_int(v.type))
		range_of(&v, op, a, b);
	return v;
}

struct value jk_lower_binary(struct lower *l, const struct node *n, unsigned op, struct value a, struct value b)
{
	uint64_t x, y, bits;
	struct value v;

	if (constant_bits(&a, &x) && constant_bits(&b, &y) && jk_fold_binary(op, a.type, x, y, &bits))
		return jk_value_bits(is_comparison(op) ? JK_BOOL : a.type, bits);
	if (a.type == JK_BOOL)
		return bool_binary(l, op, a, b);
	if (type_is_int(a.type) && is_comparison(op) && known_compare(op, &a, &b, &v))
		return v;
	if (a.kind == VALUE_LINEAR && b.kind == VALUE_LINEAR) {
		if (linear_binary(l, op, &a, &b, &v))
			return v;
		if (!a.varying && !b.varying) {
			if (is_comparison(op))
				return scalar_compare(l, op, &a, &b);
			if (scalar_binary(l, op, a, b, &v))
				return v;
		}
	}
	return vector_binary(l, op, &a, &b);
}

struct value jk_lower_unary(struct lower *l, const struct node *n, struct value a)
{
	uint64_t x;
	uint16_t reg;

	if (constant_bits(&a, &x))
		return jk_value_bits(a.type, jk_fold_unary(n->op, a.type, x));
	if (n->op == OP_NOT) {
		a.reg = jk_lower_emit(l, a.kind == VALUE_CONDITION ? IR_cnot : IR_mnot, a.reg, 0, 0, 0);
		return a;
	}
	if (n->op == OP_FLIP)
		return jk_lower_binary(l, n, OP_XOR, a, jk_value_bits(a.type, jk_fold_form(a.type, UINT64_MAX)));
	if (type_is_int(a.type))
		return jk_lower_binary(l, n, OP_SUB, jk_value_int(a.type, 0), a);
	reg = jk_lower_to_vector(l, &a);
	return jk_value_vector(a.type, jk_lower_emit(l, a.type == JK_F32 ? IR_fneg : IR_dneg, reg, 0, 0, 0), a.varying);
}

/* --- casts */

/* A number of 64 bits rounded once: where it has over 53 bits, its low ones become one that only says whether any is
 * set, which changes no rounding to 24 bits. */
static uint16_t wide_to_f32(struct lower *l, uint16_t v, bool is_unsigned)
{
	struct ir *b = l->ir;
	const ir_l x = { v }, mask = ir_lconst(b, 0xfff), zero = ir_lconst(b, 0), one = ir_lconst(b, 1);
	const ir_l low = ir_land(b, x, mask);
	const ir_m any = ir_lne(b, low, zero);
	const ir_l cut = is_unsigned ? ir_lshr(b, x, 12) : ir_lsar(b, x, 12);
	const ir_l sticky = ir_lsel(b, any, one, zero), odd = ir_lor(b, cut, sticky);
	const ir_d scale = ir_dconst(b, 4096), large = ir_dmul(b, ir_l2d(b, odd), scale),
		   small = is_unsigned ? ir_ul2d(b, x) : ir_l2d(b, x);
	const ir_l limit = ir_lconst(b, INT64_C(1) << 53), lowest = ir_lconst(b, -(INT64_C(1) << 53));
	const ir_m above = is_unsigned ? ir_lult(b, x, limit) : ir_llt(b, x, limit);
	const ir_m fits = is_unsigned ? above : ir_mand(b, above, ir_llt(b, lowest, x));
	const ir_f r = ir_d2f(b, ir_dsel(b, fits, small, large));

	jk_lower_check(l);
	return r.r;
}

static uint16_t cast_from_float(struct lower *l, bool is_double, unsigned to, uint16_t v)
{
	if (to == JK_BOOL) {
		const uint16_t zero = jk_lower_emit(l, is_double ? IR_dconst : IR_fconst, 0, 0, 0, 0);
		return jk_lower_emit(l, is_double ? IR_dne : IR_fne, v, zero, 0, 0);
	}
	if (!is_double && to <= JK_F64)
		return to == JK_F32 ? v : jk_lower_emit(l, IR_f2d, v, 0, 0, 0);
	if (!is_double && !type_is_wide(to))
		return jk_lower_emit(l, to == JK_I32 ? IR_f2i_cut : IR_f2u_cut, v, 0, 0, 0);
	if (!is_double)
		v = jk_lower_emit(l, IR_f2d, v, 0, 0, 0);
	switch (to) {
	case JK_F32: return jk_lower_emit(l, IR_d2f, v, 0, 0, 0);
	case JK_I32: return jk_lower_emit(l, IR_d2i_cut, v, 0, 0, 0);
	case JK_U32: return jk_lower_emit(l, IR_d2u_cut, v, 0, 0, 0);
	case JK_I64: return jk_lower_emit(l, IR_d2l_cut, v, 0, 0, 0);
	case JK_U64: return jk_lower_emit(l, IR_d2ul_cut, v, 0, 0, 0);
	default: return v;
	}
}

static uint16_t cast_from_int(struct lower *l, const struct value *a, unsigned to)
{
	const bool is_unsigned = type_is_unsigned(a->type);
	const bool small = a->lo >= INT32_MIN && a->hi <= INT32_MAX;
	uint16_t v;

	if (to == JK_BOOL) {
		const struct value zero = jk_value_int(a->type, 0);
		const uint16_t none = jk_lower_to_vector(l, &zero);
		v = jk_lower_to_vector(l, a);
		return jk_lower_emit(l, type_is_wide(a->type) ? IR_lne : IR_ine, v, none, 0, 0);
	}
	if (type_is_float(to) && (small || !type_is_wide(a->type))) {
		v = jk_lower_to_int(l, a);
		if (to == JK_F32)
			return jk_lower_emit(l, small ? IR_i2f : IR_u2f, v, 0, 0, 0);
		return jk_lower_emit(l, small ? IR_i2d : IR_u2d, v, 0, 0, 0);
	}
	if (type_is_float(to)) {
		v = jk_lower_to_vector(l, a);
		return to == JK_F32 ? wide_to_f32(l, v, is_unsigned)
		                    : jk_lower_emit(l, is_unsigned ? IR_ul2d : IR_l2d, v, 0, 0, 0);
	}
	if (!type_is_wide(to))
		return jk_lower_to_int(l, a);
	v = jk_lower_to_vector(l, a);
	return type_is_wide(a->type) ? v : jk_lower_emit(l, is_unsigned ? IR_u2l : IR_i2l, v, 0, 0, 0);
}

struct value jk_lower_cast(struct lower *l, const struct node *n, unsigned type, struct value a)
{
	uint64_t bits;
	struct value v;

	(void)n;
	if (a.type == type)
		return a;
	if (constant_bits(&a, &bits))
		return jk_value_bits(type, jk_fold_cast(a.type, type, bits));
	if (type_is_int(a.type) && type_is_int(type) && a.kind == VALUE_LINEAR && linear_result(l, type, a.linear, &v))
		return v;
	if (a.type == JK_BOOL) {
		if (!type_is_float(type))
			return jk_lower_choose(l, a, jk_value_int(type, 1), jk_value_int(type, 0));
		return jk_lower_choose(l, a, jk_value_bits(type, jk_fold_cast(JK_I32, type, 1)),
		                       jk_value_bits(type, 0));
	}
	const uint16_t reg =
		type_is_float(a.type) ? cast_from_float(l, a.type == JK_F64, type, jk_lower_to_vector(l, &a))
				      : cast_from_int(l, &a, type);
	v = jk_value_vector(type, reg, a.varying);
	if (type_is_int(a.type) && type_is_int(type) && fits(type, a.lo, a.hi))
		set_range(&v, a.lo, a.hi);
	return v;
}

/* --- choices */

struct value jk_lower_choose(struct lower *l, struct value c, struct value a, struct value b)
{
	static const uint16_t rows[] = { 0, IR_fsel, IR_dsel, IR_isel, IR_isel, IR_lsel, IR_lsel };
	struct value v;

	if (c.kind == VALUE_CONSTANT)
		return c.bits ? a : b;
	const bool varying = a.varying || b.varying || c.varying;
	if (a.type == JK_BOOL) {
		const struct value no = jk_lower_unary(l, &(struct node){ .op = OP_NOT }, c);
		const struct value yes = jk_lower_binary(l, NULL, OP_AND, c, a),
				   other = jk_lower_binary(l, NULL, OP_AND, no, b);
		return jk_lower_binary(l, NULL, OP_OR, yes, other);
	}
	if (c.kind == VALUE_CONDITION && !varying && a.kind == VALUE_LINEAR && b.kind == VALUE_LINEAR) {
		const uint16_t x = jk_lower_scalar(l, &a.linear), y = jk_lower_scalar(l, &b.linear);
		return jk_value_scalar(l, a.type, jk_lower_emit(l, IR_ssel, c.reg, x, y, 0), (int64_t)min(a.lo, b.lo),
		                       (int64_t)max(a.hi, b.hi));
	}
	const uint16_t mask = jk_lower_to_mask(l, &c), x = jk_lower_to_vector(l, &a), y = jk_lower_to_vector(l, &b);
	v = jk_value_vector(a.type, jk_lower_emit(l, (enum ir_op)rows[a.type], mask, x, y, 0), varying);
	if (type_is_int(a.type))
		set_range(&v, min(a.lo, b.lo), max(a.hi, b.hi));
	return v;
}
