/* jit/rdna/select_scalar.c - 64-bit scalars in scalar registers.
 *
 * Owns: the rows for S and A. A scalar is two halves; one that is known to lie in 0..2^32-1 has the constant 0 as its
 * upper half and takes one register. Rule for editors: what is known of a value's range must hold for every operand
 * that ops.def allows; where the destination may be an operand, its lower half is written when nothing reads the
 * operand's any more.
 */
#include "jit/rdna/select.h"

struct rsel_value rsel_whole(rsel_op o, rsel_op high)
{
	return (struct rsel_value){ .kind = RSEL_SCALAR, .o = o, .high = high, .low = INT64_MIN, .top = INT64_MAX };
}

struct rsel_value rsel_constant(int64_t v)
{
	return (struct rsel_value){
		.kind = RSEL_SCALAR, .o = rsel_low_half(v), .high = rsel_high_half(v), .low = v, .top = v
	};
}

/* What sconst, begin, end, wave stand for. */
static struct rsel_value given(const struct ir_ins *i)
{
	struct rsel_value v = rsel_constant(i->imm);

	if (i->op == IR_begin)
		v = rsel_whole(rdna_lir_fixed(RDNA_ABI_BEGIN, 1), rdna_lir_fixed(RDNA_ABI_BEGIN + 1, 1));
	else if (i->op == IR_end)
		v = rsel_whole(rdna_lir_fixed(RDNA_ABI_END, 1), rdna_lir_fixed(RDNA_ABI_END + 1, 1));
	else if (i->op == IR_wave)
		v = (struct rsel_value){ .kind = RSEL_SCALAR,
			                 .o = rdna_lir_fixed(RDNA_ABI_WAVE, 1),
			                 .high = rdna_lir_imm(0),
			                 .low = 0,
			                 .top = IR_MAX_WAVES - 1 };
	return v;
}

struct rsel_value rsel_scalar(struct rsel *s, uint16_t r)
{
	if (!s->ir->is_var[r] && s->scan.reg[r].fold == RSCAN_CONST)
		return given(rsel_definition(s, r));
	return *rsel_home(s, r);
}

/* Both halves as one operand of 64 bits, where they are one. */
static bool as_pair(const struct rsel_value *v, rsel_op *pair)
{
	if (v->o.kind != v->high.kind || v->o.kind == RDNA_LIR_CONST)
		return false;
	*pair = v->o;
	pair->n = 2;
	return v->o.kind == RDNA_LIR_VIRTUAL
	               ? v->high.reg == v->o.reg && v->high.sub == v->o.sub + 1 && v->o.sub % 2 == 0
	               : v->high.reg == v->o.reg + 1 && v->o.reg % 2 == 0;
}

struct rsel_value rsel_scalar_dst(struct rsel *s, const struct ir_ins *i, int64_t low, int64_t top, bool pair)
{
	struct rsel_value v = { .kind = RSEL_SCALAR, .low = low, .top = top };

	if (s->ir->is_var[i->dst])
		return *rsel_home(s, i->dst);
	if (rsel_is_narrow(&v) && !pair) {
		v.o = rsel_new_sgpr(s);
		v.high = rdna_lir_imm(0);
	} else {
		uint32_t reg = rdna_lir_new(s->l, RDNA_CLASS_SGPR, 2);
		v.o = rdna_lir_words(reg, 0, 1);
		v.high = rdna_lir_words(reg, 1, 1);
	}
	s->value[i->dst] = v;
	return v;
}

static bool has_high(const struct rsel_value *v) { return v->high.kind != RDNA_LIR_CONST; }

static void clear_high(struct rsel *s, const struct rsel_value *d)
{
	if (has_high(d))
		rsel_mov(s, d->high, rdna_lir_imm(0));
}

/* Gives the value v to i's destination: another name of it, or a copy where it or the destination is a variable. */
static void give(struct rsel *s, const struct ir_ins *i, const struct rsel_value *v, bool changes)
{
	rsel_op from, to;

	if (!s->ir->is_var[i->dst] && !changes) {
		s->value[i->dst] = *v;
		return;
	}
	struct rsel_value d = rsel_scalar_dst(s, i, v->low, v->top, false);
	if (as_pair(v, &from) && as_pair(&d, &to)) {
		rsel_salu(s, RDNA_S_MOV_B64, to, from, rsel_none());
		return;
	}
	rsel_mov(s, d.o, v->o);
	if (has_high(&d))
		rsel_mov(s, d.high, v->high);
}

void rsel_give_loaded(struct rsel *s, const struct ir_ins *i, rsel_op words)
{
	rsel_op o = words, high = words;
	struct rsel_value v = { .kind = RSEL_ADDRESS, .o = words };

	if (s->ir->type[i->dst] == IR_TYPE_a) {
		if (s->ir->is_var[i->dst])
			rsel_salu(s, RDNA_S_MOV_B64, rsel_home(s, i->dst)->o, words, rsel_none());
		else
			s->value[i->dst] = v;
		return;
	}
	o.n = high.n = 1;
	high.sub++;
	v = words.n == 2 ? rsel_whole(o, high)
	                 : (struct rsel_value){
				   .kind = RSEL_SCALAR, .o = o, .high = rdna_lir_imm(0), .low = 0, .top = UINT32_MAX
			   };
	give(s, i, &v, false);
}

/* --- sums */

/* Newer cards add 64 bits at once. A constant operand is a positive literal: a negative one takes the
 * opposite operation. */
static bool sum_64(struct rsel *s, bool minus, const struct rsel_value *d, const struct rsel_value *a,
                   const struct rsel_value *b)
{
	rsel_op to, x, y;

	if (!rdna_has(RDNA_S_ADD_NC_U64, s->gen) || !as_pair(d, &to) || !as_pair(a, &x))
		return false;
	if (rsel_is_constant(b) && b->low >= -INT32_MAX && b->low <= INT32_MAX) {
		minus ^= b->low < 0;
		y = rdna_lir_imm((uint32_t)(b->low < 0 ? -b->low : b->low));
	} else if (!as_pair(b, &y)) {
		return false;
	}
	rsel_salu(s, minus ? RDNA_S_SUB_NC_U64 : RDNA_S_ADD_NC_U64, to, x, y);
	return true;
}

void rsel_sum_of(struct rsel *s, bool minus, const struct rsel_value *d, const struct rsel_value *a,
                 const struct rsel_value *b)
{
	if (sum_64(s, minus, d, a, b))
		return;
	rsel_salu(s, minus ? RDNA_S_SUB_CO_U32 : RDNA_S_ADD_CO_U32, d->o, a->o, b->o);
	if (has_high(d))
		rsel_salu(s, minus ? RDNA_S_SUB_CO_CI_U32 : RDNA_S_ADD_CO_CI_U32, d->high, a->high, b->high);
}

static void rsel_sum(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), b = i->b ? rsel_scalar(s, i->b) : rsel_constant(i->imm);
	bool minus = r->extra;
	int64_t low, top;

	if (minus ? __builtin_sub_overflow(a.low, b.top, &low) || __builtin_sub_overflow(a.top, b.low, &top)
	          : __builtin_add_overflow(a.low, b.low, &low) || __builtin_add_overflow(a.top, b.top, &top)) {
		low = INT64_MIN;
		top = INT64_MAX;
	}
	if (!minus && rsel_is_constant(&a)) {
		struct rsel_value t = a;
		a = b;
		b = t;
	}
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, false);
	rsel_sum_of(s, minus, &d, &a, &b);
}

/* --- products, shifts */

static void shift_left(struct rsel *s, const struct ir_ins *i, const struct rsel_value *a, unsigned n)
{
	int64_t low = INT64_MIN, top = INT64_MAX;
	rsel_op from, to;

	if (n < 63 && (__builtin_mul_overflow(a->low, INT64_C(1) << n, &low) ||
	               __builtin_mul_overflow(a->top, INT64_C(1) << n, &top))) {
		low = INT64_MIN;
		top = INT64_MAX;
	}
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, false);
	if (!has_high(&d)) {
		rsel_salu(s, RDNA_S_LSHL_B32, d.o, a->o, rdna_lir_imm(n));
	} else if (as_pair(a, &from) && as_pair(&d, &to)) {
		rsel_salu(s, RDNA_S_LSHL_B64, to, from, rdna_lir_imm(n));
	} else { /* the upper half is 0 */
		if (n == 0)
			rsel_mov(s, d.high, rdna_lir_imm(0));
		else
			rsel_salu(s, n < 32 ? RDNA_S_LSHR_B32 : RDNA_S_LSHL_B32, d.high, a->o,
			          rdna_lir_imm(n < 32 ? 32 - n : n - 32));
		if (n < 32)
			rsel_salu(s, RDNA_S_LSHL_B32, d.o, a->o, rdna_lir_imm(n));
		else
			rsel_mov(s, d.o, rdna_lir_imm(0));
	}
}

static void rsel_sshli(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a);

	if (rsel_is_constant(&a)) {
		a = rsel_constant((int64_t)((uint64_t)a.low << i->imm));
		give(s, i, &a, false);
	} else {
		shift_left(s, i, &a, (unsigned)i->imm);
	}
}

static void rsel_sshri(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a);
	unsigned n = (unsigned)i->imm;
	rsel_op from = rsel_none(), to = rsel_none();

	if (rsel_is_constant(&a)) {
		a = rsel_constant(a.low >> n);
		give(s, i, &a, false);
		return;
	}
	bool narrow = !as_pair(&a, &from); /* then the upper half is 0 */
	struct rsel_value d = rsel_scalar_dst(s, i, a.low >> n, a.top >> n, !narrow);
	if (narrow) {
		if (n < 32)
			rsel_salu(s, RDNA_S_LSHR_B32, d.o, a.o, rdna_lir_imm(n));
		else
			rsel_mov(s, d.o, rdna_lir_imm(0));
		clear_high(s, &d);
		return;
	}
	as_pair(&d, &to);
	rsel_salu(s, RDNA_S_ASHR_I64, to, from, rdna_lir_imm(n));
}

/* a times a constant. Products of 32 bits take two multiplications, others a third and sums. */
static void times(struct rsel *s, const struct ir_ins *i, const struct rsel_value *a, int64_t by)
{
	int64_t low, top, x, y;
	rsel_op factor = rdna_lir_imm((uint32_t)by);

	if (__builtin_mul_overflow(a->low, by, &x) || __builtin_mul_overflow(a->top, by, &y)) {
		x = INT64_MIN;
		y = INT64_MAX;
	}
	low = x < y ? x : y;
	top = x < y ? y : x;
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, false);
	if (has_high(&d)) {
		if (rsel_is_int32(a)) {
			rsel_salu(s, RDNA_S_MUL_HI_I32, d.high, a->o, factor);
		} else if (rsel_is_narrow(a) && by >= 0) {
			rsel_salu(s, RDNA_S_MUL_HI_U32, d.high, a->o, factor);
		} else {
			rsel_op carry = rsel_new_sgpr(s), upper = rsel_new_sgpr(s);
			rsel_salu(s, RDNA_S_MUL_HI_U32, carry, a->o, factor);
			rsel_salu(s, RDNA_S_MUL_I32, upper, a->high, factor);
			rsel_salu(s, RDNA_S_ADD_CO_U32, d.high, carry, upper);
			if (by < 0) /* the factor was read without its sign */
				rsel_salu(s, RDNA_S_SUB_CO_U32, d.high, d.high, a->o);
		}
	}
	rsel_salu(s, RDNA_S_MUL_I32, d.o, a->o, factor);
}

static void multiply(struct rsel *s, const struct ir_ins *i, const struct rsel_value *a, int64_t by)
{
	struct rsel_value v = rsel_constant((int64_t)((uint64_t)a->low * (uint64_t)by));

	if (rsel_is_constant(a) || by == 0)
		give(s, i, &v, false);
	else if (by == 1)
		give(s, i, a, true);
	else if (by > 0 && !(by & (by - 1)))
		shift_left(s, i, a, (unsigned)__builtin_ctzll((uint64_t)by));
	else
		times(s, i, a, by);
}

static void rsel_smuli(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a);

	multiply(s, i, &a, i->imm);
}

/* Both within 32 bits, with sign. */
static void rsel_smul(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), b = rsel_scalar(s, i->b);
	int64_t low = INT64_MIN, top = INT64_MAX;

	if (rsel_is_constant(&b) || rsel_is_constant(&a)) {
		multiply(s, i, rsel_is_constant(&b) ? &a : &b, rsel_is_constant(&b) ? b.low : a.low);
		return;
	}
	if (a.low >= 0 && b.low >= 0 && rsel_is_int32(&a) && rsel_is_int32(&b)) {
		low = a.low * b.low;
		top = a.top * b.top;
	}
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, false);
	if (has_high(&d))
		rsel_salu(s, RDNA_S_MUL_HI_I32, d.high, a.o, b.o);
	rsel_salu(s, RDNA_S_MUL_I32, d.o, a.o, b.o);
}

static void rsel_sandi(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), d = rsel_scalar_dst(s, i, 0, i->imm, false);

	rsel_salu(s, RDNA_S_AND_B32, d.o, a.o, rdna_lir_imm((uint32_t)i->imm));
	clear_high(s, &d);
}

/* 0 <= a < 2^31: a / d is a times ceil(2^(31+n) / d) shifted right by 31+n, where 2^n is the first power of two not
 * below d: the factor is off by less than d / 2^(31+n) <= 2^-31, too little to reach the next quotient. The factor has
 * 32 bits, so the upper half of the product is at hand. */
static void rsel_sdivi(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a);
	uint64_t by = (uint64_t)i->imm;
	unsigned n = 0;

	while (UINT64_C(1) << n < by)
		n++;
	struct rsel_value d = rsel_scalar_dst(s, i, 0, INT32_MAX / i->imm, false);
	if (UINT64_C(1) << n == by) {
		rsel_salu(s, RDNA_S_LSHR_B32, d.o, a.o, rdna_lir_imm(n));
	} else {
		rsel_op product = rsel_new_sgpr(s);
		rsel_salu(s, RDNA_S_MUL_HI_U32, product, a.o,
		          rdna_lir_imm((uint32_t)(((UINT64_C(1) << (31 + n)) + by - 1) / by)));
		rsel_salu(s, RDNA_S_LSHR_B32, d.o, product, rdna_lir_imm(n - 1));
	}
	clear_high(s, &d);
}

static rsel_op sign_flipped(struct rsel *s, rsel_op o)
{
	if (o.kind == RDNA_LIR_CONST)
		return rdna_lir_imm(o.value ^ 0x80000000u);
	rsel_op d = rsel_new_sgpr(s);
	rsel_salu(s, RDNA_S_XOR_B32, d, o, rdna_lir_imm(0x80000000u));
	return d;
}

/* There is no comparison of 64 bits but for equality: with their signs flipped the numbers are compared by the borrow
 * of their difference. */
void rsel_less(struct rsel *s, const struct rsel_value *a, const struct rsel_value *b)
{
	rsel_op x = sign_flipped(s, a->high), y = sign_flipped(s, b->high), rest = rsel_new_sgpr(s);

	rsel_salu(s, RDNA_S_SUB_CO_U32, rest, a->o, b->o);
	rsel_salu(s, RDNA_S_SUB_CO_CI_U32, rest, x, y);
}

static void choose(struct rsel *s, bool max, const struct rsel_value *d, const struct rsel_value *a,
                   const struct rsel_value *b)
{
	const struct rsel_value *yes = max ? b : a, *no = max ? a : b;

	rsel_less(s, a, b);
	rsel_salu(s, RDNA_S_CSELECT_B32, d->o, yes->o, no->o);
	rsel_salu(s, RDNA_S_CSELECT_B32, d->high, yes->high, no->high);
}

static void rsel_minmax(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value a = rsel_scalar(s, i->a), b = rsel_scalar(s, i->b);
	bool max = r->extra, narrow = rsel_is_narrow(&a) && rsel_is_narrow(&b),
	     small = rsel_is_int32(&a) && rsel_is_int32(&b);
	int64_t low = max ? (a.low > b.low ? a.low : b.low) : a.low < b.low ? a.low : b.low;
	int64_t top = max ? (a.top > b.top ? a.top : b.top) : a.top < b.top ? a.top : b.top;
	struct rsel_value d = rsel_scalar_dst(s, i, low, top, !narrow && !small);

	if (narrow) {
		rsel_salu(s, max ? RDNA_S_MAX_U32 : RDNA_S_MIN_U32, d.o, a.o, b.o);
		clear_high(s, &d);
	} else if (small) {
		rsel_salu(s, max ? RDNA_S_MAX_I32 : RDNA_S_MIN_I32, d.o, a.o, b.o);
		if (has_high(&d))
			rsel_salu(s, RDNA_S_ASHR_I32, d.high, d.o, rdna_lir_imm(31));
	} else {
		choose(s, max, &d, &a, &b);
	}
}

/* smov, and what is otherwise folded, written into a variable. */
static void rsel_smove(struct rsel *s, const struct ir_ins *i, const struct rsel_rule *r)
{
	struct rsel_value v = i->op == IR_mov ? rsel_scalar(s, i->a) : given(i);

	give(s, i, &v, i->op == IR_mov && s->ir->is_var[i->a]);
}

const struct rsel_rule rsel_scalar_rules[IR_ROWS] = {
	[IR_sconst] = { .select = rsel_smove },       [IR_begin] = { .select = rsel_smove },
	[IR_end] = { .select = rsel_smove },          [IR_wave] = { .select = rsel_smove },
	[IR_smov] = { .select = rsel_smove },         [IR_sadd] = { .select = rsel_sum },
	[IR_saddi] = { .select = rsel_sum },          [IR_ssub] = { .select = rsel_sum, .extra = true },
	[IR_smul] = { .select = rsel_smul },          [IR_smuli] = { .select = rsel_smuli },
	[IR_sshli] = { .select = rsel_sshli },        [IR_sshri] = { .select = rsel_sshri },
	[IR_sandi] = { .select = rsel_sandi },        [IR_sdivi] = { .select = rsel_sdivi },
	[IR_smin] = { .select = rsel_minmax },        [IR_smax] = { .select = rsel_minmax, .extra = true },
	[IR_aadd] = { .select = rsel_address_sum },   [IR_aaddi] = { .select = rsel_address_sum },
	[IR_amov] = { .select = rsel_address_move },  [IR_arg] = { .select = rsel_address_move },
	[IR_local] = { .select = rsel_address_move }, [IR_shared] = { .select = rsel_address_move },
};
