/* language/lower_value.c - values, and how they become registers. */
#include "language/lower.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "language/fold.h"

/* --- failures: the walk ends at once, jk_lower_kernel() says why */

_Noreturn void jk_lower_fail(struct lower *l, struct source_location at, const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (l->m)
		jk_message_add(l->m, at, "%s", text);
	l->failed = true;
	longjmp(*l->arena.out, 2);
}

void jk_lower_check(struct lower *l)
{
	if (l->ir->error)
		longjmp(*l->arena.out, l->ir->no_memory ? 1 : 3);
}

static void grow(struct lower *l, void **array, uint32_t *capacity, uint32_t n, size_t size)
{
	size_t c = *capacity;

	if (!array_grow(array, &c, n, size))
		longjmp(*l->arena.out, 1);
	*capacity = (uint32_t)c;
}

/* --- instructions. A pure one whose operands are no variables is there once in its block. */

static uint32_t hash_of(uint32_t row, uint16_t a, uint16_t b, uint16_t c, int64_t imm)
{
	uint64_t h = row * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)imm;

	h = (h ^ a) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ (h >> 29) ^ b) * UINT64_C(0xc4ceb9fe1a85ec53);
	h = (h ^ (h >> 31) ^ c) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(h >> 40) & 4095;
}

void jk_lower_note_undo(struct lower *l, unsigned kind, uint32_t number)
{
	grow(l, (void **)&l->undo, &l->undo_capacity, l->n_undo + 1, sizeof *l->undo);
	l->undo[l->n_undo].kind = kind;
	l->undo[l->n_undo].copy = l->copy;
	l->undo[l->n_undo++].number = number;
}

uint16_t jk_lower_emit(struct lower *l, enum ir_op row, uint16_t a, uint16_t b, uint16_t c, int64_t imm)
{
	const struct ir_facts *facts = &ir_facts[row];
	const bool *is_var = l->ir->is_var;
	const bool once = facts->effects == IR_PURE && facts->dst && facts->op != IR_mov && is_var && !is_var[a] &&
	                  !is_var[b] && !is_var[c];
	const uint32_t at = once ? hash_of(row, a, b, c, imm) : 0;

	for (uint32_t k = once ? l->bucket[at] : 0; k; k = l->cse[k].next) {
		const struct cse *e = &l->cse[k];
		if (e->row == row && e->a == a && e->b == b && e->c == c && e->imm == imm)
			return e->reg;
	}
	const uint16_t reg = ir_emit(l->ir, row, 0, a, b, c, imm);
	jk_lower_check(l);
	if (facts->type != IR_TYPE_s && facts->type != IR_TYPE_a && facts->effects == IR_PURE &&
	    facts->op != IR_const && facts->op != IR_splat)
		l->operations += l->iterations;
	if (once) {
		grow(l, (void **)&l->cse, &l->cse_capacity, l->n_cse + 2, sizeof *l->cse);
		l->n_cse += !l->n_cse; /* number 0 is none */
		l->cse[l->n_cse] = (struct cse){ row, a, b, c, reg, imm, l->bucket[at] };
		l->bucket[at] = l->n_cse++;
		jk_lower_note_undo(l, UNDO_CSE, at);
	}
	return reg;
}

uint32_t jk_lower_scope(const struct lower *l) { return l->n_undo; }

/* Forgets what was computed since: it is not defined behind its block. */
void jk_lower_unscope(struct lower *l, uint32_t scope)
{
	while (l->n_undo > scope) {
		const struct undo *u = &l->undo[--l->n_undo];
		if (u->kind == UNDO_CSE)
			l->bucket[u->number] = l->cse[l->bucket[u->number]].next;
		else if (u->kind == UNDO_NODE)
			l->memo_of[u->copy][u->number] = NULL;
		else
			l->symbol_of[u->copy][u->number] = NULL;
	}
}

void jk_lower_open_if(struct lower *l, uint16_t condition)
{
	ir_emit(l->ir, IR_if, 0, condition, 0, 0, 0);
	jk_lower_check(l);
	l->if_scope[l->ifs++] = jk_lower_scope(l); /* the IR's own limit is lower */
}

void jk_lower_close_if(struct lower *l)
{
	ir_emit(l->ir, IR_endif, 0, 0, 0, 0, 0);
	jk_lower_check(l);
	jk_lower_unscope(l, l->if_scope[--l->ifs]);
}

static enum ir_op mov_of(const struct lower *l, uint16_t reg) { return ir_rows[l->ir->type[reg]][IR_mov]; }

uint16_t jk_lower_copy(struct lower *l, uint16_t reg)
{
	if (!reg || !l->ir->is_var[reg])
		return reg;
	const uint16_t copy = ir_emit(l->ir, mov_of(l, reg), 0, reg, 0, 0, 0);
	jk_lower_check(l);
	return copy;
}

uint16_t jk_lower_variable(struct lower *l, enum ir_type type, uint16_t first)
{
	const uint16_t v = ir_new_var(l->ir, type);

	jk_lower_check(l);
	jk_lower_assign(l, v, first);
	return v;
}

void jk_lower_assign(struct lower *l, uint16_t variable, uint16_t value)
{
	ir_emit(l->ir, mov_of(l, variable), variable, value, 0, 0, 0);
	jk_lower_check(l);
}

/* --- linear forms */

uint32_t jk_lower_quantity(struct lower *l, enum quantity_kind kind, uint32_t id, uint16_t reg, bool lanes, int64_t lo,
                           int64_t hi)
{
	grow(l, (void **)&l->quantity, &l->quantities_capacity, l->n_quantities + 1, sizeof *l->quantity);
	l->quantity[l->n_quantities] = (struct quantity){ (uint8_t)kind, lanes, reg, id, lo, hi, l->each };
	return l->n_quantities++;
}

bool jk_linear_add(struct linear *to, const struct linear *b, int64_t by)
{
	struct linear r = { 0 };
	unsigned i = 0, k = 0;
	int64_t product;

	if (__builtin_mul_overflow(b->constant, by, &product) ||
	    __builtin_add_overflow(to->constant, product, &r.constant))
		return false;
	while (i < to->n || k < b->n) {
		const bool left = i < to->n && (k >= b->n || to->term[i].quantity <= b->term[k].quantity);
		const bool right = k < b->n && (i >= to->n || b->term[k].quantity <= to->term[i].quantity);
		struct term t = { left ? to->term[i].quantity : b->term[k].quantity, left ? to->term[i].by : 0 };
		if (right && (__builtin_mul_overflow(b->term[k].by, by, &product) ||
		              __builtin_add_overflow(t.by, product, &t.by)))
			return false;
		i += left;
		k += right;
		if (!t.by)
			continue;
		if (r.n == MAX_TERMS || t.by > INT64_MAX / 4 || t.by < -(INT64_MAX / 4))
			return false;
		r.term[r.n++] = t;
	}
	*to = r;
	return true;
}

void jk_linear_range(const struct lower *l, const struct linear *f, wide *lo, wide *hi)
{
	*lo = *hi = f->constant;
	for (unsigned k = 0; k < f->n; k++) {
		const struct quantity *q = &l->quantity[f->term[k].quantity];
		const wide by = f->term[k].by, a = by * q->lo, b = by * q->hi;
		*lo += a < b ? a : b;
		*hi += a < b ? b : a;
	}
}

bool jk_linear_has_lanes(const struct lower *l, const struct linear *f, int64_t *by)
{
	*by = 0;
	for (unsigned k = 0; k < f->n; k++)
		if (l->quantity[f->term[k].quantity].lanes)
			*by += f->term[k].by;
	for (unsigned k = 0; k < f->n; k++)
		if (l->quantity[f->term[k].quantity].lanes)
			return true;
	return false;
}

/* --- values */

void jk_type_range(unsigned type, wide *lo, wide *hi)
{
	*lo = type == JK_I32 ? INT32_MIN : type == JK_I64 ? INT64_MIN : 0;
	*hi = type == JK_I32 ? INT32_MAX : type == JK_U32 ? UINT32_MAX : type == JK_I64 ? INT64_MAX : (wide)UINT64_MAX;
}

enum ir_type jk_lower_lane_type(unsigned type)
{
	switch (type) {
	case JK_F32: return IR_TYPE_f32;
	case JK_F64: return IR_TYPE_f64;
	case JK_I32:
	case JK_U32: return IR_TYPE_i32;
	case JK_BOOL: return IR_TYPE_m;
	default: return IR_TYPE_i64;
	}
}

struct value jk_value_int(unsigned type, int64_t v)
{
	return (struct value){
		.kind = VALUE_LINEAR, .type = (uint8_t)type, .linear = { .constant = v }, .lo = v, .hi = v
	};
}

struct value jk_value_bits(unsigned type, uint64_t bits)
{
	struct value v = { .kind = VALUE_CONSTANT, .type = (uint8_t)type, .bits = bits };

	if (!type_is_int(type))
		return v;
	if (type != JK_U64 || bits <= INT64_MAX)
		return jk_value_int(type, (int64_t)bits);
	v.lo = v.hi = (wide)bits;
	return v;
}

struct value jk_value_vector(unsigned type, uint16_t reg, bool varying)
{
	struct value v = { .kind = type == JK_BOOL ? VALUE_MASK : VALUE_VECTOR,
		           .type = (uint8_t)type,
		           .varying = varying,
		           .reg = reg };

	if (type_is_int(type))
		jk_type_range(type, &v.lo, &v.hi);
	return v;
}

struct value jk_value_linear(const struct lower *l, unsigned type, const struct linear *f)
{
	struct value v = { .kind = VALUE_LINEAR, .type = (uint8_t)type, .linear = *f };
	int64_t by;

	v.varying = jk_linear_has_lanes(l, f, &by);
	jk_linear_range(l, f, &v.lo, &v.hi);
	return v;
}

struct value jk_value_of_quantity(struct lower *l, unsigned type, uint32_t quantity)
{
	const struct linear f = { .n = 1, .term = { { quantity, 1 } } };

	return jk_value_linear(l, type, &f);
}

struct value jk_value_scalar(struct lower *l, unsigned type, uint16_t reg, int64_t lo, int64_t hi)
{
	/* a register has one quantity, so that forms of it can be compared */
	for (uint32_t k = l->n_quantities; k-- > 0 && l->n_quantities - k < 64;)
		if (l->quantity[k].reg == reg && !l->quantity[k].lanes && l->quantity[k].kind == QUANTITY_OTHER &&
		    l->quantity[k].lo == lo && l->quantity[k].hi == hi && !l->ir->is_var[reg])
			return jk_value_of_quantity(l, type, k);
	return jk_value_of_quantity(l, type, jk_lower_quantity(l, QUANTITY_OTHER, 0, reg, false, lo, hi));
}

bool jk_value_is_constant(const struct value *v, int64_t *out)
{
	*out = v->linear.constant;
	return v->kind == VALUE_LINEAR && !v->linear.n;
}

/* --- registers */

static uint16_t scaled(struct lower *l, uint16_t reg, int64_t by)
{
	unsigned shift = 0;

	if (by == 1)
		return reg;
	while (shift < 62 && (by & 1) == 0 && (by > INT32_MAX || by < INT32_MIN || (by & (by - 1)) == 0) && by != 1) {
		by /= 2;
		shift++;
	}
	if (by > INT32_MAX || by < INT32_MIN) { /* smuli multiplies by 32 bits with a sign */
		const int64_t low = by & INT32_MAX;
		/* Rounds down, as a shift of a negative number does only by the compiler's choice. */
		const int64_t high = (by - low) / (INT64_C(1) << 31);
		const uint16_t upper = jk_lower_emit(l, IR_sshli, scaled(l, reg, high), 0, 0, 31);
		reg = low ? jk_lower_emit(l, IR_sadd, upper, scaled(l, reg, low), 0, 0) : upper;
	} else if (by != 1) {
		reg = jk_lower_emit(l, IR_smuli, reg, 0, 0, by);
	}
	return shift ? jk_lower_emit(l, IR_sshli, reg, 0, 0, shift) : reg;
}

/* Terms first, so that forms that differ in their constant alone share all but an addition. */
uint16_t jk_lower_scalar(struct lower *l, const struct linear *f)
{
	uint16_t sum = 0;

	for (unsigned k = 0; k < f->n; k++) {
		const uint16_t part = scaled(l, l->quantity[f->term[k].quantity].reg, f->term[k].by);
		sum = sum ? jk_lower_emit(l, IR_sadd, sum, part, 0, 0) : part;
	}
	if (!sum)
		return jk_lower_emit(l, IR_sconst, 0, 0, 0, f->constant);
	if (!f->constant)
		return sum;
	if (f->constant >= INT32_MIN && f->constant <= INT32_MAX)
		return jk_lower_emit(l, IR_saddi, sum, 0, 0, f->constant);
	const uint16_t constant = jk_lower_emit(l, IR_sconst, 0, 0, 0, f->constant);
	return jk_lower_emit(l, IR_sadd, sum, constant, 0, 0);
}

/* The form without the quantities of lanes, and these times their number as lanes. */
static uint16_t lanes_of(struct lower *l, const struct linear *f, bool is_wide)
{
	int64_t by;
	const bool varying = jk_linear_has_lanes(l, f, &by);
	const uint16_t scalar = f->n ? jk_lower_scalar(l, f) : 0;
	uint16_t reg, lane;

	if (!f->n)
		return is_wide ? jk_lower_emit(l, IR_lconst, 0, 0, 0, f->constant)
		               : jk_lower_emit(l, IR_iconst, 0, 0, 0, (int32_t)(uint32_t)(uint64_t)f->constant);
	reg = jk_lower_emit(l, is_wide ? IR_lsplat : IR_isplat, scalar, 0, 0, 0);
	if (!varying || !by)
		return reg;
	lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0);
	if (is_wide) {
		lane = jk_lower_emit(l, IR_u2l, lane, 0, 0, 0);
		if (by != 1) {
			const uint16_t factor = jk_lower_emit(l, IR_lconst, 0, 0, 0, by);
			lane = jk_lower_emit(l, IR_lmul, lane, factor, 0, 0);
		}
		return jk_lower_emit(l, IR_ladd, reg, lane, 0, 0);
	}
	if (by != 1) {
		const uint16_t factor = jk_lower_emit(l, IR_iconst, 0, 0, 0, (int32_t)(uint32_t)(uint64_t)by);
		lane = jk_lower_emit(l, IR_imul, lane, factor, 0, 0);
	}
	return jk_lower_emit(l, IR_iadd, reg, lane, 0, 0);
}

uint16_t jk_lower_to_vector(struct lower *l, const struct value *v)
{
	switch (v->kind) {
	case VALUE_CONSTANT:
		return v->type == JK_F32   ? jk_lower_emit(l, IR_fconst, 0, 0, 0, (int64_t)(uint32_t)v->bits)
		       : v->type == JK_F64 ? jk_lower_emit(l, IR_dconst, 0, 0, 0, (int64_t)v->bits)
		                           : jk_lower_emit(l, IR_lconst, 0, 0, 0, (int64_t)v->bits);
	case VALUE_LINEAR: return lanes_of(l, &v->linear, type_is_wide(v->type));
	default: return v->reg;
	}
}

uint16_t jk_lower_to_int(struct lower *l, const struct value *v)
{
	if (v->kind == VALUE_LINEAR)
		return lanes_of(l, &v->linear, false);
	const uint16_t reg = jk_lower_to_vector(l, v);
	return type_is_wide(v->type) ? jk_lower_emit(l, IR_l2i, reg, 0, 0, 0) : reg;
}

/* A vector's lanes are the same: the first one goes by memory. */
static uint16_t bounced(struct lower *l, const struct value *v, struct source_location at)
{
	const bool is_wide = type_is_wide(v->type);

	l->wants_bounce = true;
	if (!l->bounce)
		return jk_lower_emit(l, IR_sconst, 0, 0, 0, 0); /* only while binding: the kernel is built with it */
	(void)at;
	if (is_wide) {
		ir_store_i64(l->ir, (ir_a){ l->bounce }, (ir_l){ v->reg }, 0, 1, ir_everywhere);
		return ir_sload64(l->ir, (ir_a){ l->bounce }, 0).r;
	}
	ir_store_i32(l->ir, (ir_a){ l->bounce }, (ir_i){ v->reg }, 0, 1, ir_everywhere);
	const ir_s word = ir_sload32(l->ir, (ir_a){ l->bounce }, 0);
	jk_lower_check(l);
	return v->type == JK_U32 ? word.r : ir_sshri(l->ir, ir_sshli(l->ir, word, 32), 32).r;
}

uint16_t jk_lower_to_scalar(struct lower *l, struct value *v, struct source_location at)
{
	if (v->kind == VALUE_LINEAR)
		return jk_lower_scalar(l, &v->linear);
	if (v->kind == VALUE_CONSTANT)
		return jk_lower_emit(l, IR_sconst, 0, 0, 0, (int64_t)v->bits);
	const wide lo = v->lo < INT64_MIN ? INT64_MIN : v->lo, hi = v->hi > INT64_MAX ? INT64_MAX : v->hi;
	*v = jk_value_scalar(l, v->type, bounced(l, v, at), (int64_t)lo, (int64_t)hi);
	return jk_lower_scalar(l, &v->linear);
}

uint16_t jk_lower_all_lanes(struct lower *l)
{
	const uint16_t zero = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);

	return jk_lower_emit(l, IR_ieq, zero, zero, 0, 0);
}

uint16_t jk_lower_to_mask(struct lower *l, const struct value *v)
{
	uint16_t zero, one, number;

	switch (v->kind) {
	case VALUE_CONSTANT:
		zero = jk_lower_all_lanes(l);
		return v->bits ? zero : jk_lower_emit(l, IR_mnot, zero, 0, 0, 0);
	case VALUE_CONDITION:
		one = jk_lower_emit(l, IR_sconst, 0, 0, 0, 1);
		zero = jk_lower_emit(l, IR_sconst, 0, 0, 0, 0);
		number = jk_lower_emit(l, IR_ssel, v->reg, one, zero, 0);
		number = jk_lower_emit(l, IR_isplat, number, 0, 0, 0);
		zero = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);
		return jk_lower_emit(l, IR_ine, number, zero, 0, 0);
	default: return v->reg;
	}
}

uint16_t jk_lower_to_condition(struct lower *l, const struct value *v)
{
	uint16_t a, b;

	if (v->kind == VALUE_CONDITION)
		return v->reg;
	if (v->kind == VALUE_MASK)
		return jk_lower_emit(l, IR_any, v->reg, 0, 0, 0);
	a = jk_lower_emit(l, IR_sconst, 0, 0, 0, 0);
	b = jk_lower_emit(l, IR_sconst, 0, 0, 0, v->bits ? 0 : 1);
	return jk_lower_emit(l, IR_seq, a, b, 0, 0);
}

uint16_t jk_lower_and(struct lower *l, uint16_t a, uint16_t b)
{
	return !a ? b : !b || a == b ? a : jk_lower_emit(l, IR_mand, a, b, 0, 0);
}

uint16_t jk_lower_full_mask(struct lower *l)
{
	uint16_t some = l->some_mask;

	if (l->some) {
		const uint16_t lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0),
			       n = jk_lower_emit(l, IR_iconst, 0, 0, 0, l->some);
		some = jk_lower_emit(l, IR_ilt, lane, n, 0, 0);
	}
	return jk_lower_and(l, l->mask, some);
}
