/* tests/jit/t_interp.c - what the interpreter computes: every row with an expression against a second, independent
 * formula on edge values; every row written by hand on memory whose neighbours must stay untouched. Loops, locals and
 * whole kernels: t_interp_kernels.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/run_ir.h"

static float as_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static uint32_t as_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

/* Runs a finished kernel twice, on the host's instance and the portable one; frames start as garbage. check() looks at
 * memory after each. */
static void run_both(struct ir *b, const uint64_t *arg, int64_t begin, int64_t end, void (*reset)(void *),
                     void (*check)(void *, const char *), void *context)
{
	struct error err = { 0 };
	struct interp_program *p;

	if (!ir_verify(b, &err))
		fail_msg("%s", err.text);
	p = interp_compile(b);
	assert_non_null(p);
	for (int portable = 0; portable < 2; portable++) {
		const size_t bytes = (interp_frame_bytes(p) + 63) & ~(size_t)63;
		char *frame = aligned_alloc(64, bytes);

		assert_non_null(frame);
		memset(frame, portable ? 0xff : 0x5a, bytes);
		if (portable)
			interp_use_portable(p);
		if (reset)
			reset(context);
		assert_true(interp_run(p, frame, arg, begin, end));
		check(context, portable ? "portable" : "host");
		free(frame);
	}
	interp_free(p);
	ir_free(b);
}

/* ---- rows with an expression ---- */

static uint32_t exact_fma(uint32_t a, uint32_t b, uint32_t c)
{
	/* the product is exact in double; the sum is rounded to odd there, so that the second rounding, to float, is
	 * right */
	const double x = (double)as_float(a) * as_float(b), y = as_float(c), sum = x + y, part = sum - x;
	const double rest = (x - (sum - part)) + (y - part);
	uint64_t bits;
	double odd = sum;

	memcpy(&bits, &odd, 8);
	if (isfinite(sum) && rest != 0 && !(bits & 1)) {
		bits += (rest > 0) == (sum > 0) ? 1 : (uint64_t)-1;
		memcpy(&odd, &bits, 8);
	}
	return as_bits((float)odd);
}

static int64_t wide(uint32_t u) { return u < 0x80000000u ? (int64_t)u : (int64_t)u - 0x100000000; }
static int is_nan(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }
/* Order of two floats by their bits: -1, 0, 1; 2 when either is NaN. */
static int order(uint32_t x, uint32_t y)
{
	const int64_t p = x & 0x80000000u ? -(int64_t)(x & 0x7fffffff) : x,
		      q = y & 0x80000000u ? -(int64_t)(y & 0x7fffffff) : y;

	return is_nan(x) || is_nan(y) ? 2 : p < q ? -1 : p > q;
}

static uint32_t nearest(uint32_t u)
{
	const double v = as_float(u), down = floor(v), rest = v - down;

	return (uint32_t)(int32_t)(rest < 0.5 ? down : rest > 0.5 ? down + 1 : fmod(down, 2) == 0 ? down : down + 1);
}

static uint32_t shift(uint32_t u, uint32_t by, int left)
{
	uint64_t v = u;

	for (uint32_t k = 0; k < by && v; k++)
		v = left ? v * 2 & 0xffffffff : v / 2;
	return (uint32_t)v;
}

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c)
{
	int64_t sum = wide(c);

	for (int k = 0; k < 32; k += 8)
		sum += (wide(a << (24 - k)) >> 24) * (wide(b << (24 - k)) >> 24);
	return (uint32_t)sum;
}

static uint32_t halves(int64_t low, int64_t high) { return (uint32_t)((low & 0xffff) | (high & 0xffff) << 16); }

static int64_t dot_bytes(uint32_t a, uint32_t b, int at)
{
	return (wide(a << (24 - at)) >> 24 & 0xff) * (wide(b << (24 - at)) >> 24) +
	       (wide(a << (16 - at)) >> 24 & 0xff) * (wide(b << (16 - at)) >> 24);
}

/* Sign, exponent and mantissa apart. */
static uint32_t widened(uint32_t half)
{
	const int exponent = half >> 10 & 31, mantissa = half & 1023;
	const double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

	if (exponent == 31)
		return as_bits(mantissa ? NAN : half >> 15 ? -INFINITY : INFINITY);
	return as_bits((float)(half >> 15 ? -size : size));
}

/* The tables' own rules: FP4 is a sign, two bits of exponent and one of mantissa; the levels of IQ4 as the format lists
 * them. */
static int level(int entry, int64_t table)
{
	static const int levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
	const int exponent = entry >> 1 & 3, mantissa = entry & 1,
		  doubled = exponent ? (2 + mantissa) << (exponent - 1) : mantissa;

	return table == LANES_TABLE_IQ4 ? levels[entry] : entry & 8 ? 12 - doubled : 12 + doubled;
}

static uint32_t look_up(uint32_t a, int64_t table)
{
	uint32_t out = 0;

	for (int k = 0; k < 32; k += 8)
		out |= (uint32_t)(level((int)(a >> k & 15), table) & 0xff) << k;
	return out;
}

/* The second formula for vector rows. a, b, c: bits of the lane (masks: 0 or 1); masks come back as 0 or 1. */
static uint32_t formula(enum ir_op op, uint32_t a, uint32_t b, uint32_t c, int64_t imm, uint32_t lane)
{
	const double x = as_float(a), y = as_float(b);

	switch (op) {
	case IR_fconst:
	case IR_iconst: return (uint32_t)imm;
	case IR_fadd: return as_bits((float)(x + y)); /* 53 bits hold 2*24+2: rounding twice is harmless */
	case IR_fsub: return as_bits((float)(x - y));
	case IR_fmul: return as_bits((float)(x * y));
	case IR_fdiv: return as_bits((float)(x / y));
	case IR_fsqrt: return as_bits((float)sqrt(x));
	case IR_ffma: return exact_fma(a, b, c);
	case IR_fmin: return order(a, b) == -1 ? a : b;
	case IR_fmax: return order(a, b) == 1 ? a : b;
	case IR_fabs: return a % 0x80000000u;
	case IR_fneg: return a + 0x80000000u;
	case IR_flt: return order(a, b) == -1;
	case IR_fle: return order(a, b) <= 0;
	case IR_fsel:
	case IR_isel: return a ? b : c;
	case IR_f2i: return nearest(a);
	case IR_fbits:
	case IR_ibits:
	case IR_fmov:
	case IR_imov: return a;
	case IR_fhalf: return widened(imm ? a / 65536 : a % 65536);
	case IR_ilane: return lane;
	case IR_iadd: return (uint32_t)(wide(a) + wide(b));
	case IR_isub: return (uint32_t)(wide(a) - wide(b));
	case IR_imul: return (uint32_t)((uint64_t)a * b);
	case IR_iand: return ~(~a | ~b);
	case IR_ior: return ~(~a & ~b);
	case IR_ixor: return (a | b) - (a & b);
	case IR_ibsel: return a - (a & ~b) + (c - (a & c));
	case IR_ishl: return shift(a, (uint32_t)imm, 1);
	case IR_ishr: return shift(a, (uint32_t)imm, 0);
	case IR_isar: return (uint32_t)(int64_t)floor(ldexp((double)wide(a), -(int)imm));
	case IR_irotl: return shift(a, (uint32_t)imm, 1) + (imm ? shift(a, 32 - (uint32_t)imm, 0) : 0);
	case IR_ishlv: return shift(a, b, 1);
	case IR_ishrv: return shift(a, b, 0);
	case IR_imin: return wide(a) < wide(b) ? a : b;
	case IR_imax: return wide(a) < wide(b) ? b : a;
	case IR_ieq: return !(a ^ b);
	case IR_igt: return wide(b) < wide(a);
	case IR_i2f: return as_bits((float)(double)wide(a));
	case IR_dot4: return dot(a, b, c);
	case IR_dot2b: return halves(dot_bytes(a, b, 0), dot_bytes(a, b, 16));
	case IR_iadd_16: return halves((a % 65536 + b % 65536), (a / 65536 + b / 65536));
	case IR_dot2h:
		return (uint32_t)(wide(c) + (wide(a << 16) >> 16) * (wide(b << 16) >> 16) +
		                  (wide(a) >> 16) * (wide(b) >> 16));
	case IR_ilut16: return look_up(a, imm);
	case IR_dot4u: return dot(a & 0x7f7f7f7f, b, dot(a >> 1 & 0x40404040, b, dot(a >> 1 & 0x40404040, b, c)));
	case IR_mand: return a & b;
	case IR_mor: return a | b;
	case IR_mnot: return 1 - a;
	default: fail_msg("%s has no second formula", ir_facts[op].name); return 0;
	}
}

static const uint32_t float_edges[] = {
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
	0x00800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0xbf7fffff, 0x3f000000, 0x3fc00000,
	0x40200000, 0xc0200000, 0x40490fdb, 0x3dcccccd, 0xbdcccccd, 0x4b000000, 0x4b7fffff, 0x4b800000,
	0xcb800001, 0x34000000, 0x33800000, 0x1fffffff, 0x20000001, 0x5f000000, 0x7f7fffff, 0xff7fffff,
	0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x66800000, 0x0c000001, 0x477fe000,
};
static const uint32_t integer_edges[] = {
	0,          1,          2,          3,          0xffffffff, 0xfffffffe, 0x80000000, 0x80000001, 0x7fffffff,
	0x7ffffffe, 31,         32,         33,         63,         64,         127,        128,        129,
	255,        256,        0x7f,       0x80,       0x7f7f7f7f, 0x80808080, 0x81818181, 0x00ff00ff, 0x12345678,
	0xdeadbeef, 0x01000001, 0x00ffffff, 0xff000001, 0x01000003, 0x55555555,
};

enum { EDGES_MAX = 40, CASES_MAX = EDGES_MAX * EDGES_MAX * EDGES_MAX + 32 };

struct cases {
	enum ir_op op;
	unsigned lanes;
	int64_t imm;
	size_t n;
	uint32_t a[CASES_MAX], b[CASES_MAX], c[CASES_MAX], out[CASES_MAX];
};

static size_t edges(uint8_t kind, uint32_t *values)
{
	size_t n = 0;

	if (kind == IR_KIND_F)
		for (; n < sizeof float_edges / 4; n++)
			values[n] = float_edges[n];
	else if (kind == IR_KIND_I)
		for (; n < sizeof integer_edges / 4; n++)
			values[n] = integer_edges[n];
	else if (kind == IR_KIND_M)
		for (; n < 2; n++)
			values[n] = (uint32_t)n;
	else
		values[n++] = 0;
	return n;
}

static bool has_byte_128(uint32_t u)
{
	return (u & 0xff) == 0x80 || (u >> 8 & 0xff) == 0x80 || (u >> 16 & 0xff) == 0x80 || u >> 24 == 0x80;
}

/* All combinations that the row allows, filled up to whole vectors. */
static void combine(struct cases *t)
{
	const struct ir_facts *f = &ir_facts[t->op];
	uint32_t a[EDGES_MAX], b[EDGES_MAX], c[EDGES_MAX];
	const size_t na = edges(f->a, a), nb = edges(f->b, b), nc = edges(f->c, c);

	t->n = 0;
	for (size_t k = 0; k < na * nb * nc; k++) {
		const uint32_t x = a[k % na], y = b[k / na % nb], z = c[k / na / nb];

		if ((t->op == IR_f2i && !(fabsf(as_float(x)) <= 0x1p30f)) || (t->op == IR_dot4 && has_byte_128(y)))
			continue;
		t->a[t->n] = t->op == IR_dot2b ? x & 0x7f7f7f7f : t->op == IR_ilut16 ? x & 0x0f0f0f0f : x;
		t->b[t->n] = y;
		t->c[t->n++] = z;
	}
	for (; t->n % t->lanes; t->n++) {
		t->a[t->n] = t->a[0];
		t->b[t->n] = t->b[0];
		t->c[t->n] = t->c[0];
	}
}

static uint16_t load_operand(struct ir *b, uint8_t kind, ir_a from, ir_s offset)
{
	ir_i v;

	if (kind == IR_KIND__)
		return 0;
	v = ir_iload(b, ir_aadd(b, from, offset), 0);
	if (kind == IR_KIND_F)
		return ir_fbits(b, v).r;
	return kind == IR_KIND_M ? ir_igt(b, v, ir_iconst(b, 0)).r : v.r;
}

/* One unit is one vector of cases. */
static void build_row(struct ir *b, const struct cases *t)
{
	const struct ir_facts *f = &ir_facts[t->op];
	uint16_t r;
	ir_a p[4], arg;
	ir_s i, offset;

	ir_init(b, t->lanes);
	arg = ir_arg(b);
	for (int k = 0; k < 4; k++)
		p[k] = ir_aload(b, arg, 8 * k);
	i = ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	offset = ir_smuli(b, ir_sadd(b, i, ir_begin(b)), 4 * (int)t->lanes);
	const uint16_t x = load_operand(b, f->a, p[0], offset), y = load_operand(b, f->b, p[1], offset),
		       z = load_operand(b, f->c, p[2], offset);
	const bool move = t->op == IR_fmov || t->op == IR_imov;
	r = ir_emit(b, t->op, move ? ir_new_var(b, (enum ir_kind)f->dst) : 0, x, y, z, t->imm);
	if (f->dst == IR_KIND_M)
		r = ir_isel(b, (ir_m){ r }, ir_iconst(b, 1), ir_iconst(b, 0)).r;
	if (f->dst != IR_KIND_F)
		r = ir_fbits(b, (ir_i){ r }).r;
	ir_fstore(b, ir_aadd(b, p[3], offset), (ir_f){ r }, 0, 0);
	ir_endloop(b);
}

static void check_row(void *context, const char *instance)
{
	const struct cases *t = context;
	const struct ir_facts *f = &ir_facts[t->op];

	for (size_t k = 0; k < t->n; k++) {
		const uint32_t want = formula(t->op, t->a[k], t->b[k], t->c[k], t->imm, (uint32_t)(k % t->lanes));
		/* which NaN arithmetic gives is not defined; moves keep the bits */
		const bool any_nan = f->dst == IR_KIND_F && t->op != IR_fmov && t->op != IR_fbits && t->op != IR_fsel &&
		                     t->op != IR_fabs && t->op != IR_fneg;

		if (t->out[k] != want && !(any_nan && is_nan(t->out[k]) && is_nan(want)))
			fail_msg("%s (%u lanes, %s): a %08x b %08x c %08x imm %lld: found %08x, expected %08x", f->name,
			         t->lanes, instance, t->a[k], t->b[k], t->c[k], (long long)t->imm, t->out[k], want);
	}
}

static void reset_row(void *context)
{
	struct cases *t = context;

	memset(t->out, 0xcd, sizeof t->out);
}

static void test_vector_rows(void **unused)
{
	static const int64_t constants[] = { 0, 1, 0x3f800000, 0x7fc00001, 0x80000000, 0xffffffff, 0x00000001 };
	struct cases *t = malloc(sizeof *t);

	assert_non_null(t);
	for (unsigned op = 0; op < IR_OP_COUNT; op++) {
		const struct ir_facts *f = &ir_facts[op];
		const bool shifts = op == IR_ishl || op == IR_ishr || op == IR_isar || op == IR_irotl;
		const int immediates =
			f->imm == IR_IMM__ ? 1
			: shifts           ? 32
			: op == IR_fhalf   ? 2
			: op == IR_ilut16  ? LANES_TABLES
					   : (int)(sizeof constants / sizeof *constants);

		if (!f->expression[0] || f->dst == IR_KIND_S || f->dst == IR_KIND_A || f->dst == IR_KIND_T ||
		    op == IR_isplat)
			continue;
		for (t->lanes = 8; t->lanes <= 32; t->lanes *= 2)
			for (int k = 0; k < immediates; k++) {
				const uint64_t arg[] = { (uintptr_t)t->a, (uintptr_t)t->b, (uintptr_t)t->c,
					                 (uintptr_t)t->out };
				struct ir b;

				t->op = (enum ir_op)op;
				t->imm = f->imm == IR_IMM__                            ? 0
				         : shifts || op == IR_ilut16 || op == IR_fhalf ? k
				                                                       : constants[k];
				combine(t);
				build_row(&b, t);
				run_both(&b, arg, 0, (int64_t)(t->n / t->lanes), reset_row, check_row, t);
			}
	}
	free(t);
}

/* dst may be an operand too: the same register, lane for lane. */
static void test_in_place(void **unused)
{
	struct cases *t = calloc(1, sizeof *t);

	assert_non_null(t);
	for (t->lanes = 8; t->lanes <= 32; t->lanes *= 2) {
		const uint64_t arg[] = { (uintptr_t)t->a, (uintptr_t)t->out };
		struct ir b;

		ir_init(&b, t->lanes);
		ir_f v = ir_var_f(&b, ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0));
		ir_set_f(&b, v, ir_fadd(&b, v, v));
		ir_set_f(&b, v, ir_ffma(&b, v, v, v));
		ir_set_f(&b, v, ir_fxor(&b, v, 4));
		ir_fstore(&b, ir_aload(&b, ir_arg(&b), 8), v, 0, 0);
		for (unsigned l = 0; l < t->lanes; l++)
			t->a[l] = as_bits((float)l);
		assert_true(ir_verify(&b, NULL));
		ir_interp(&b, arg, 0, 1);
		for (unsigned l = 0; l < t->lanes; l++) {
			const float w = 2 * (float)(l ^ 4);

			assert_int_equal(t->out[l], as_bits(w * w + w));
		}
		ir_free(&b);
	}
	free(t);
}

/* ---- scalar rows ---- */

static int64_t scalar_formula(enum ir_op op, int64_t a, int64_t b, int64_t imm)
{
	switch (op) {
	case IR_sconst: return imm;
	case IR_sadd: return (int64_t)((__int128)a + b);
	case IR_ssub: return (int64_t)((__int128)a - b);
	case IR_smul: return (int64_t)((__int128)a * b);
	case IR_smin: return a > b ? b : a;
	case IR_smax: return a > b ? a : b;
	case IR_saddi: return (int64_t)((__int128)a + imm);
	case IR_smuli: return (int64_t)((__int128)a * imm);
	case IR_sshli: return (int64_t)((uint64_t)a * ((uint64_t)1 << imm));
	case IR_sshri:
		return (int64_t)(a < 0 ? -((-(__int128)a + (((__int128)1 << imm) - 1)) / ((__int128)1 << imm))
		                       : (__int128)a / ((__int128)1 << imm));
	case IR_sandi: return (int64_t)((uint64_t)a & (uint64_t)imm);
	case IR_sdivi: return a / imm;
	case IR_smov: return a;
	default: fail_msg("%s has no second formula", ir_facts[op].name); return 0;
	}
}

struct scalar_case {
	int64_t a, b;
	uint32_t out[2][32];
};

/* Whether ops.def defines the row for these operands. */
static bool scalar_defined(enum ir_op op, int64_t a, int64_t b, int64_t imm)
{
	const bool narrow = a >= INT32_MIN && a <= INT32_MAX && b >= INT32_MIN && b <= INT32_MAX;
	int64_t unused;

	switch (op) {
	case IR_sadd: return !__builtin_add_overflow(a, b, &unused);
	case IR_ssub: return !__builtin_sub_overflow(a, b, &unused);
	case IR_saddi: return !__builtin_add_overflow(a, imm, &unused);
	case IR_smul: return narrow;
	case IR_smuli: return narrow && imm >= INT32_MIN && imm <= INT32_MAX;
	case IR_sshli:
	case IR_sshri: return imm >= 0 && imm <= 63;
	case IR_sandi: return imm >= 0 && imm <= INT32_MAX;
	case IR_sdivi: return a >= 0 && a <= INT32_MAX && imm > 0 && imm <= INT32_MAX;
	default: return true;
	}
}

struct scalar_check {
	enum ir_op op;
	int64_t imm;
	struct scalar_case *c;
};

static void check_scalar(void *context, const char *instance)
{
	const struct scalar_check *t = context;
	const int64_t want = scalar_formula(t->op, t->c->a, t->c->b, t->imm);

	for (unsigned l = 0; l < 8; l++)
		if (t->c->out[0][l] != (uint32_t)want || t->c->out[1][l] != (uint32_t)((uint64_t)want >> 32))
			fail_msg("%s (%s): a %lld b %lld imm %lld: found %08x%08x, expected %016llx",
			         ir_facts[t->op].name, instance, (long long)t->c->a, (long long)t->c->b,
			         (long long)t->imm, t->c->out[1][l], t->c->out[0][l], (unsigned long long)want);
}

static void run_scalar(enum ir_op op, int64_t a, int64_t b, int64_t imm)
{
	const struct ir_facts *f = &ir_facts[op];
	struct scalar_case c = { .a = a, .b = b };
	struct scalar_check t = { op, imm, &c };
	const uint64_t arg[] = { (uintptr_t)&c };
	struct ir k;
	ir_a p;
	ir_s r;

	ir_init(&k, 8);
	p = ir_aload(&k, ir_arg(&k), 0);
	r.r = ir_emit(&k, op, op == IR_smov ? ir_new_var(&k, IR_KIND_S) : 0,
	              f->a == IR_KIND_S ? ir_sload64(&k, p, offsetof(struct scalar_case, a)).r : 0,
	              f->b == IR_KIND_S ? ir_sload64(&k, p, offsetof(struct scalar_case, b)).r : 0, 0, imm);
	ir_fstore(&k, p, ir_fbits(&k, ir_isplat(&k, r)), offsetof(struct scalar_case, out[0]), 0);
	ir_fstore(&k, p, ir_fbits(&k, ir_isplat(&k, ir_sshri(&k, r, 32))), offsetof(struct scalar_case, out[1]), 0);
	run_both(&k, arg, 0, 1, NULL, check_scalar, &t);
}

static void test_scalar_rows(void **unused)
{
	static const int64_t v[] = {
		0,
		1,
		2,
		3,
		-1,
		-2,
		7,
		31,
		32,
		33,
		63,
		64,
		100,
		255,
		-1000,
		65535,
		INT32_MAX,
		INT32_MIN,
		(int64_t)INT32_MAX + 1,
		(int64_t)INT32_MIN - 1,
		UINT32_MAX,
		0x123456789abcdef,
		-0x123456789abcdef,
		INT64_MAX,
		INT64_MIN,
	};
	const size_t n = sizeof v / sizeof *v;

	for (unsigned op = 0; op < IR_OP_COUNT; op++) {
		const struct ir_facts *f = &ir_facts[op];

		if (!f->expression[0] || f->dst != IR_KIND_S)
			continue;
		for (size_t x = 0; x < (f->a ? n : 1); x++)
			for (size_t y = 0; y < (f->b ? n : 1); y++)
				for (size_t z = 0; z < (f->imm ? n : 1); z++) {
					const int64_t a = v[x], b = f->b ? v[y] : 0, imm = f->imm ? v[z] : 0;

					if (scalar_defined((enum ir_op)op, a, b, imm))
						run_scalar((enum ir_op)op, a, b, imm);
				}
	}
}

/* ---- memory ---- */

/* Two pages after which nothing may be touched, and before which neither. */
struct guarded {
	char *low, *high;
	size_t page;
	char *base;
};

static void guard_open(struct guarded *g)
{
	g->page = (size_t)sysconf(_SC_PAGESIZE);
	g->base = mmap(NULL, 4 * g->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->base != MAP_FAILED);
	assert_int_equal(mprotect(g->base + g->page, 2 * g->page, PROT_READ | PROT_WRITE), 0);
	g->low = g->base + g->page;
	g->high = g->base + 3 * g->page;
}

static void guard_close(struct guarded *g) { munmap(g->base, 4 * g->page); }

static void test_load_lanes(void **unused)
{
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (unsigned n = 0; n <= lanes; n++) {
			const unsigned touched = n ? n : lanes;
			uint32_t *from = (uint32_t *)(void *)(g.high - 4 * touched);
			struct ir b;

			for (unsigned l = 0; l < touched; l++)
				from[l] = 0x7f800001u + l; /* a load moves bits, also those of a signalling NaN */
			ir_init(&b, lanes);
			ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
			ir_fstore(&b, q, ir_fload(&b, p, 1000, n), 0, 0);
			memset(out, 0xee, sizeof out);
			run_here(&b, (char *)from - 1000, out);
			for (unsigned l = 0; l < 32; l++)
				assert_int_equal(out[l], l < touched ? 0x7f800001u + l : l < lanes ? 0 : 0xeeeeeeee);
		}
	guard_close(&g);
}

/* The rows that load a whole vector of elements of some size, right up to the guard; and the broadcasts. */
static void test_load_rows(void **unused)
{
	static const struct {
		enum ir_op op;
		unsigned size;
		bool one;
	} rows[] = {
		{ IR_fload_h, 2, false },  { IR_iload, 4, false },     { IR_iload_u8, 1, false },
		{ IR_iload_s8, 1, false }, { IR_iload_u16, 2, false }, { IR_fbcast, 4, true },
		{ IR_fbcast_h, 2, true },  { IR_ibcast, 4, true },
	};
	static const uint16_t halves[] = { 0x3c00, 0xc000, 0x0001, 0x8400, 0x7bff, 0x7c00, 0x0000, 0x8000 };
	static const uint32_t widened[] = { 0x3f800000, 0xc0000000, 0x33800000, 0xb8800000,
		                            0x477fe000, 0x7f800000, 0,          0x80000000 };
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
			const enum ir_op op = rows[r].op;
			const bool half = op == IR_fload_h || op == IR_fbcast_h;
			const unsigned bytes = rows[r].one ? rows[r].size : rows[r].size * lanes;
			unsigned char *from = (unsigned char *)g.high - bytes;
			struct ir b;

			for (unsigned k = 0; k < bytes; k++)
				from[k] = half ? (unsigned char)(halves[k / 2 % 8] >> 8 * (k % 2))
				               : (unsigned char)(0x7d + 37 * k);
			ir_init(&b, lanes);
			ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
			uint16_t v = ir_emit(&b, op, 0, p.r, 0, 0, -24);
			if (ir_facts[op].dst == IR_KIND_I)
				v = ir_fbits(&b, (ir_i){ v }).r;
			ir_fstore(&b, q, (ir_f){ v }, 0, 0);
			run_here(&b, from + 24, out);
			for (unsigned l = 0; l < lanes; l++) {
				const unsigned char *at = from + (rows[r].one ? 0 : l * rows[r].size);
				uint32_t want = 0;

				for (unsigned k = 0; k < rows[r].size; k++)
					want |= (uint32_t)at[k] << 8 * k;
				if (half)
					want = widened[rows[r].one ? 0 : l % 8];
				if (op == IR_iload_s8 && want > 127)
					want -= 256;
				if (out[l] != want)
					fail_msg("%s, lane %u: found %08x, expected %08x", ir_facts[op].name, l, out[l],
					         want);
			}
		}
	guard_close(&g);
}

/* bf16 is the upper half of an f32: every one of them, as templates read it. */
static void test_bf16_every_value(void **unused)
{
	uint16_t *in = malloc(65536 * 2);
	uint32_t *out = malloc(65536 * 4);
	const uint64_t arg[] = { (uintptr_t)in, (uintptr_t)out };
	struct ir b;

	assert_non_null(in);
	assert_non_null(out);
	for (unsigned k = 0; k < 65536; k++)
		in[k] = (uint16_t)k;
	ir_init(&b, 16);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
	ir_s i = ir_loop(&b, ir_end(&b));
	ir_f v = ir_fbits(&b, ir_ishl(&b, ir_iload_u16(&b, ir_aadd(&b, p, ir_smuli(&b, i, 32)), 0), 16));
	ir_fstore(&b, ir_aadd(&b, q, ir_smuli(&b, i, 64)), v, 0, 0);
	ir_endloop(&b);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, arg, 0, 4096);
	for (unsigned k = 0; k < 65536; k++)
		assert_int_equal(out[k], k * 65536);
	ir_free(&b);
	free(in);
	free(out);
}

static void test_gather(void **unused)
{
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		uint32_t *table = (uint32_t *)(void *)(g.high - 400);
		struct ir b;

		for (unsigned k = 0; k < 100; k++)
			table[k] = 0xabc00000u + k;
		ir_init(&b, lanes);
		ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
		/* lane l: word 99 - 3l; the destination is the variable that holds the offsets */
		ir_i offset =
			ir_var_i(&b, ir_isub(&b, ir_iconst(&b, 4 * 99), ir_imul(&b, ir_ilane(&b), ir_iconst(&b, 12))));
		ir_set_i(&b, offset, ir_igather(&b, p, offset, 16));
		ir_fstore(&b, q, ir_fbits(&b, offset), 0, 0);
		run_here(&b, (char *)table - 16, out);
		for (unsigned l = 0; l < lanes; l++)
			assert_int_equal(out[l], 0xabc00000u + 99 - 3 * l);
	}
	guard_close(&g);
}

/* Stores of n lanes at the end of the last page: what they must not touch faults, or is seen to have changed. */
static void store_case(struct guarded *g, enum ir_op op, unsigned lanes, unsigned n, unsigned stride)
{
	const unsigned size = op == IR_istore_8 ? 1 : op == IR_fstore_h || op == IR_fstore_hs ? 2 : 4;
	const unsigned touched = op == IR_fstore1 ? 1 : n ? n : lanes, step = stride ? stride : size;
	unsigned char want[32 * 64 + 64], *to = (unsigned char *)g->high - ((touched - 1) * step + size);
	uint32_t source[32];
	struct ir b;

	for (unsigned l = 0; l < lanes; l++)
		source[l] = op == IR_istore_8 ? (uint32_t)((int)l * 7 - 100) : as_bits(0.5f + (float)l);
	memset(g->high - sizeof want, 0x77, sizeof want);
	memset(want, 0x77, sizeof want);
	for (unsigned l = 0; l < touched; l++) {
		/* 0.5, 1.5, 2.5 ... as half */
		const uint32_t v = size == 2 ? (source[l] >> 13) - (112u << 10) : source[l];

		for (unsigned k = 0; k < size; k++)
			want[sizeof want - (size_t)((unsigned char *)g->high - to) + l * step + k] =
				(unsigned char)(v >> 8 * k);
	}
	ir_init(&b, lanes);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
	const uint16_t v = op == IR_istore_8 ? ir_iload(&b, p, 0).r : ir_fload(&b, p, 0, 0).r;
	ir_emit(&b, op, 0, q.r, v, 0, ir_facts[op].imm == IR_IMM_x ? ir_x(-40, n, stride) : -40);
	run_here(&b, source, to + 40);
	if (memcmp(want, g->high - sizeof want, sizeof want))
		fail_msg("%s of %u in %u lanes, stride %u", ir_facts[op].name, touched, lanes, stride);
}

static void test_store_rows(void **unused)
{
	struct guarded g;

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		store_case(&g, IR_istore_8, lanes, 0, 0);
		store_case(&g, IR_fstore1, lanes, 0, 0);
		for (unsigned n = 0; n <= lanes; n++) {
			store_case(&g, IR_fstore, lanes, n, 0);
			store_case(&g, IR_fstore_h, lanes, n, 0);
			for (unsigned stride = 4; stride <= 64; stride += 20) {
				store_case(&g, IR_fstore_s, lanes, n, stride);
				store_case(&g, IR_fstore_hs, lanes, n, stride - 2);
			}
		}
	}
	guard_close(&g);
}

static void test_store_half_rounds(void **unused)
{
	static const uint32_t in[8] = { 0x3f801000, 0x3f803000, 0x477ff000, 0x33000000,
		                        0x33000001, 0xff800000, 0x80000000, 0x387fffff };
	static const uint16_t want[8] = { 0x3c00, 0x3c02, 0x7c00, 0x0000, 0x0001, 0xfc00, 0x8000, 0x0400 };
	uint16_t out[8];
	struct ir b;

	ir_init(&b, 8);
	ir_fstore_h(&b, ir_aload(&b, ir_arg(&b), 8), ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0), 0, 0);
	run_here(&b, in, out);
	assert_memory_equal(out, want, sizeof want);
}

static void test_exchange(void **unused)
{
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (unsigned by = 1; by < lanes; by *= 2) {
			uint32_t in[32], out[32];
			struct ir b;

			for (unsigned l = 0; l < lanes; l++)
				in[l] = 1000 + l;
			ir_init(&b, lanes);
			ir_fstore(&b, ir_aload(&b, ir_arg(&b), 8),
			          ir_fxor(&b, ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0), by), 0, 0);
			run_here(&b, in, out);
			for (unsigned l = 0; l < lanes; l++)
				assert_int_equal(out[l], 1000 + (l / by % 2 ? l - by : l + by));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_rows),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_scalar_rows),
		cmocka_unit_test(test_load_lanes),
		cmocka_unit_test(test_load_rows),
		cmocka_unit_test(test_bf16_every_value),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_store_rows),
		cmocka_unit_test(test_store_half_rounds),
		cmocka_unit_test(test_exchange),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
