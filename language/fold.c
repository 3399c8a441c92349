/* language/fold.c - arithmetic on values that are known while a kernel is made. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include "language/fold.h"

#include <math.h>

#include "jit/ir/lanes.h"

uint64_t jk_fold_form(unsigned type, uint64_t bits)
{
	switch (type) {
	case JK_BOOL: return bits != 0;
	case JK_I32: return (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
	case JK_U32:
	case JK_F32: return (uint32_t)bits;
	default: return bits;
	}
}

static bool fold_float(unsigned op, double a, double b, double *out)
{
	switch (op) {
	case OP_ADD: *out = a + b; return true;
	case OP_SUB: *out = a - b; return true;
	case OP_MUL: *out = a * b; return true;
	case OP_DIV: *out = a / b; return true;
	default: return false;
	}
}

static bool fold_compare(unsigned op, bool less, bool equal, bool ordered, uint64_t *out)
{
	switch (op) {
	case OP_LT: *out = less; return true;
	case OP_LE: *out = less || equal; return true;
	case OP_GT: *out = ordered && !less && !equal; return true;
	case OP_GE: *out = ordered && !less; return true;
	case OP_EQ: *out = equal; return true;
	case OP_NE: *out = !equal; return true;
	default: return false;
	}
}

static uint64_t divided(unsigned type, uint64_t a, uint64_t b)
{
	const int64_t x = (int64_t)a, y = (int64_t)b;

	if (b == 0)
		return UINT64_MAX;
	if (type_is_unsigned(type))
		return a / b;
	return y == -1 ? 0 - a : (uint64_t)(x / y);
}

/* Counts are numbers without sign; those beyond the width push all bits out. */
static uint64_t shifted(unsigned op, unsigned type, uint64_t a, uint64_t b)
{
	const unsigned width = type_is_wide(type) ? 64 : 32;
	const uint64_t count = type_is_wide(type) ? b : (uint32_t)b;

	if (op == OP_SHL)
		return count < width ? a << count : 0;
	if (type_is_unsigned(type))
		return count < width ? a >> count : 0;
	return (uint64_t)((int64_t)a >> (count < width ? count : width - 1));
}

static bool fold_int(unsigned op, unsigned type, uint64_t a, uint64_t b, uint64_t *out)
{
	const bool less = type_is_unsigned(type) ? a < b : (int64_t)a < (int64_t)b;

	switch (op) {
	case OP_ADD: *out = a + b; break;
	case OP_SUB: *out = a - b; break;
	case OP_MUL: *out = a * b; break;
	case OP_DIV: *out = divided(type, a, b); break;
	case OP_REM: *out = a - divided(type, a, b) * b; break;
	case OP_AND: *out = a & b; break;
	case OP_OR: *out = a | b; break;
	case OP_XOR: *out = a ^ b; break;
	case OP_SHL:
	case OP_SHR: *out = shifted(op, type, a, b); break;
	case OP_MIN: *out = less ? a : b; break;
	case OP_MAX: *out = less || a == b ? b : a; break;
	default: return fold_compare(op, less, a == b, true, out);
	}
	*out = jk_fold_form(type, *out);
	return true;
}

bool jk_fold_binary(unsigned op, unsigned type, uint64_t a, uint64_t b, uint64_t *out)
{
	double d;

	if (type == JK_BOOL) {
		if (op == OP_BOTH || op == OP_EITHER)
			op = op == OP_BOTH ? OP_AND : OP_OR;
		return (op == OP_AND || op == OP_OR || op == OP_XOR || op == OP_EQ || op == OP_NE) &&
		       fold_int(op, JK_U64, a, b, out);
	}
	if (!type_is_float(type))
		return fold_int(op, type, a, b, out);
	if (type == JK_F32) { /* in single precision: double would round twice */
		const float x = fold_f32(a), y = fold_f32(b);
		if (op >= OP_LT && op <= OP_NE)
			return fold_compare(op, x < y, x == y, x == x && y == y, out);
		const float r = op == OP_ADD ? x + y : op == OP_SUB ? x - y : op == OP_MUL ? x * y : x / y;
		*out = fold_of_f32(r);
		return op <= OP_DIV;
	}
	const double x = fold_f64(a), y = fold_f64(b);
	if (op >= OP_LT && op <= OP_NE)
		return fold_compare(op, x < y, x == y, x == x && y == y, out);
	if (!fold_float(op, x, y, &d))
		return false;
	*out = fold_of_f64(d);
	return true;
}

uint64_t jk_fold_unary(unsigned op, unsigned type, uint64_t a)
{
	if (op == OP_NOT)
		return !a;
	if (op == OP_FLIP)
		return jk_fold_form(type, ~a);
	return type == JK_F32   ? (uint32_t)a ^ 0x80000000u
	       : type == JK_F64 ? a ^ UINT64_C(1) << 63
	                        : jk_fold_form(type, 0 - a);
}

static uint64_t from_float(double d, unsigned to)
{
	switch (to) {
	case JK_BOOL: return d != 0;
	case JK_I32: return (uint64_t)(int64_t)f64_to_i32_cut(d);
	case JK_U32: return (uint32_t)f64_to_u32_cut(d);
	case JK_I64: return (uint64_t)f64_to_i64_cut(d);
	case JK_U64: return f64_to_u64_cut(d);
	case JK_F32: return fold_of_f32((float)d);
	default: return fold_of_f64(d);
	}
}

uint64_t jk_fold_cast(unsigned from, unsigned to, uint64_t a)
{
	if (type_is_float(from))
		return from == to ? a : from_float(from == JK_F32 ? (double)fold_f32(a) : fold_f64(a), to);
	if (to == JK_F32)
		return fold_of_f32(from == JK_U64 ? (float)a : (float)(int64_t)a);
	if (to == JK_F64)
		return fold_of_f64(from == JK_U64 ? (double)a : (double)(int64_t)a);
	return jk_fold_form(to, a);
}

static bool builtin_int(unsigned builtin, unsigned type, uint64_t a, uint64_t b, uint64_t *out)
{
	switch (builtin) {
	case BUILTIN_min: return fold_int(OP_MIN, type, a, b, out);
	case BUILTIN_max: return fold_int(OP_MAX, type, a, b, out);
	case BUILTIN_abs: *out = !type_is_unsigned(type) && (int64_t)a < 0 ? jk_fold_form(type, 0 - a) : a; return true;
	default: return false;
	}
}

bool jk_fold_builtin(unsigned builtin, unsigned type, const uint64_t *a, uint64_t *out)
{
	if (builtin == BUILTIN_select) {
		*out = a[0] ? a[1] : a[2];
		return true;
	}
	if (!type_is_float(type))
		return builtin_int(builtin, type, a[0], a[1], out);
	if (type == JK_F32) {
		const float x = fold_f32(a[0]), y = fold_f32(a[1]);
		switch (builtin) {
		case BUILTIN_sqrt: *out = fold_of_f32(sqrtf(x)); return true;
		case BUILTIN_abs: *out = (uint32_t)a[0] & 0x7fffffff; return true;
		case BUILTIN_min: *out = fold_of_f32(x < y ? x : y); return true;
		case BUILTIN_max: *out = fold_of_f32(x > y ? x : y); return true;
		default: return false;
		}
	}
	const double x = fold_f64(a[0]), y = fold_f64(a[1]);
	switch (builtin) {
	case BUILTIN_sqrt: *out = fold_of_f64(sqrt(x)); return true;
	case BUILTIN_abs: *out = a[0] & INT64_MAX; return true;
	case BUILTIN_min: *out = fold_of_f64(x < y ? x : y); return true;
	case BUILTIN_max: *out = fold_of_f64(x > y ? x : y); return true;
	default: return false;
	}
}

bool jk_fold_tree(const struct node *n, const struct environment *e, uint64_t *out, const struct node **where)
{
	uint64_t v[3] = { 0 };
	unsigned k = 0;

	*where = n;
	switch (n->kind) {
	case NODE_NUMBER:
	case NODE_BOOL: *out = jk_fold_form(n->type, n->bits); return n->typed;
	case NODE_NAME:
		if (n->symbol->kind > SYMBOL_TUNE || !e->known[n->symbol->number])
			return false;
		*out = e->value[n->symbol->number];
		return true;
	case NODE_UNARY:
		if (!jk_fold_tree(n->a, e, v, where))
			return false;
		*out = jk_fold_unary(n->op, n->type, v[0]);
		return true;
	case NODE_BINARY:
		if (!jk_fold_tree(n->a, e, v, where) || !jk_fold_tree(n->b, e, v + 1, where))
			return false;
		*where = n;
		return jk_fold_binary(n->op, n->a->type, v[0], v[1], out);
	case NODE_SELECT: return jk_fold_tree(n->a, e, v, where) && jk_fold_tree(v[0] ? n->b : n->c, e, out, where);
	case NODE_CAST:
		if (!jk_fold_tree(n->a, e, v, where))
			return false;
		*out = jk_fold_cast(n->a->type, n->type, v[0]);
		return true;
	case NODE_BUILTIN:
		if (jk_builtin_operands(n->op) > 3)
			return false;
		for (const struct node *a = n->a; a; a = a->next)
			if (!jk_fold_tree(a, e, v + k++, where))
				return false;
		*where = n;
		return jk_fold_builtin(n->op, n->type, v, out);
	default: return false;
	}
}
