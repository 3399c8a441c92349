/* tests/jit/interp_scalar_tests.c - the scalar operations of the interpreter, against their formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/interp_check.h"

/* Conditions, operands and results, are numbers above 0, or not. */
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
	case IR_slt: return (__int128)a - b < 0;
	case IR_sle: return (__int128)a - b <= 0;
	case IR_seq: return !(a ^ b);
	case IR_ssel: return a > 0 ? b : ~b;
	case IR_cand: return !(a <= 0 || b <= 0);
	case IR_cor: return !(a <= 0 && b <= 0);
	case IR_cxor: return (a > 0) + (b > 0) == 1;
	case IR_cnot: return a <= 0;
	case IR_cmov: return a > 0;
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

static uint16_t operand(struct ir *b, uint8_t type, ir_s v)
{
	return type == IR_TYPE_c ? ir_slt(b, ir_sconst(b, 0), v).r : type == IR_TYPE_s ? v.r : 0;
}

static void run_scalar(enum ir_op op, int64_t a, int64_t b, int64_t imm)
{
	const struct ir_facts *f = &ir_facts[op];
	struct scalar_case c = { .a = a, .b = b };
	struct scalar_check t = { op, imm, &c };
	const uint64_t arg[] = { (uintptr_t)&c };
	struct ir k;
	ir_a p;
	ir_s r, x, y, z;

	ir_init(&k, 8);
	p = ir_aload(&k, ir_arg(&k), 0);
	x = ir_sload64(&k, p, offsetof(struct scalar_case, a));
	y = ir_sload64(&k, p, offsetof(struct scalar_case, b));
	z = ir_ssub(&k, ir_sconst(&k, -1), y);
	r.r = ir_emit(&k, op, f->op == IR_mov ? ir_new_var(&k, (enum ir_type)f->dst) : 0, operand(&k, f->a, x),
	              operand(&k, f->b, y), operand(&k, f->c, z), imm);
	if (f->dst == IR_TYPE_c)
		r = ir_ssel(&k, (ir_c){ r.r }, ir_sconst(&k, 1), ir_sconst(&k, 0));
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

	for (unsigned op = 0; op < IR_ROWS; op++) {
		const struct ir_facts *f = &ir_facts[op];

		if (!ir_is_row(op) || !f->expression[0] || (f->dst != IR_TYPE_s && f->dst != IR_TYPE_c))
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

int interp_scalar_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalar_rows),
	};

	return cmocka_run_group_tests_name("interp_scalar_tests", tests, NULL, NULL);
}
