/* tests/encoders/rdna_refusal_tests.c - the encoder's sentence for every rule. The assembler, where it is installed,
 * must refuse the same, unless the rule is ours alone or the text cannot say the mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/encoders/rdna_assembler.h"
#include "tests/encoders/rdna_golden.h"
#include "tests/encoders/rdna_test.h"

struct refusal {
	const char *why;
	enum rdna_gen gen;
	bool ours;
	struct rdna_ins x, y; /* y.d set: a dual instruction */
};

#define V2(i) rdna_vn(i, 2)

static void refuse(const struct refusal *t, size_t n)
{
	struct rdna_sheet sheet[RDNA_GEN_COUNT] = { { 0 } };
	const char *assembler = rdna_assembler();
	char text[400], why[600];

	for (size_t i = 0; i < n; i++) {
		struct rdna_case c = { .gen = t[i].gen, .dual = t[i].y.d[0].kind, .x = t[i].x, .y = t[i].y };
		struct rdna r;
		rdna_init(&r, c.gen);
		c.dual ? rdna_put_dual(&r, &c.x, &c.y) : rdna_put(&r, &c.x);
		if (!r.error)
			fail_msg("taken, number %zu: expected \"%s\"", i, t[i].why);
		assert_string_equal(r.error, t[i].why);
		assert_true(r.error_op == c.x.op || (c.dual && r.error_op == c.y.op));
		assert_int_equal(r.size, 0);
		rdna_put0(&r, RDNA_S_ENDPGM); /* the error sticks */
		assert_int_equal(r.size, 0);
		assert_false(rdna_finish(&r));
		rdna_free(&r);
		if (t[i].ours)
			continue;
		rdna_golden_text(&c, text);
		rdna_sheet_add(&sheet[c.gen], text);
	}
	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++) {
		if (assembler && !rdna_sheet_assemble(&sheet[gen], assembler, rdna_golden_target[gen], why, sizeof why))
			fail_msg("%s", why);
		for (unsigned i = 0; assembler && i < sheet[gen].n; i++)
			if (strcmp(sheet[gen].hex[i], "-") != 0)
				fail_msg("the assembler takes for %s: %s", rdna_golden_target[gen], sheet[gen].text[i]);
		rdna_sheet_clear(&sheet[gen]);
	}
}
#define REFUSE(t) refuse(t, sizeof(t) / sizeof((t)[0]))

static void test_refused_operands(void **state)
{
	const struct refusal t[] = {
#include "tests/encoders/rdna_refused_operands.def"
	};
	REFUSE(t);
}

static void test_refused_constants(void **state)
{
	const struct refusal t[] = {
#include "tests/encoders/rdna_refused_constants.def"
	};
	REFUSE(t);
}

static void test_refused_memory(void **state)
{
	const struct refusal t[] = {
#include "tests/encoders/rdna_refused_memory.def"
	};
	REFUSE(t);
}

static void test_refused_vector(void **state)
{
	static const char bus[] =
		"a vector instruction can read at most two different scalar registers or literals (constant bus)";
	static const char shorter[] = "the instruction has only the short encoding: no modifiers, source 1 a vector "
				      "register, 16-bit operands in v0 to v127";
	static const char bus_1[] = "the instruction can read one scalar register or literal (constant bus)";
	const struct rdna_dpp dpp = rdna_dpp16(RDNA_ROW_SHL(1)), wrong = { .kind = RDNA_DPP16, .ctrl = 0x142 },
			      eight = { .kind = RDNA_DPP8, .row_mask = 1 };
	const struct rdna_dpp masks = { .kind = RDNA_DPP16, .row_mask = 16 },
			      none = { .kind = RDNA_DPP16, .ctrl = 0x110 };
	const struct rdna_operand d8 = rdna_vn(0, 8), a8 = rdna_vn(8, 8), b8 = rdna_vn(16, 8);
	const struct refusal t[] = {
#include "tests/encoders/rdna_refused_vector.def"
	};
	REFUSE(t);
}

static void test_refused_dual(void **state)
{
	static const char bus[] = "a dual instruction can read at most two different scalar registers or literals";
#define ADD(d_, a, b) \
	{ \
		OP(V_ADD_F32), .d = { V(d_) }, .s = { a, b } \
	}
#define MOV(d_, a) \
	{ \
		OP(V_MOV_B32), .d = { V(d_) }, .s = { a } \
	}
#define FMAC(d_, a, b) \
	{ \
		OP(V_FMAC_F32), .d = { V(d_) }, .s = { a, b } \
	}
	const struct refusal t[] = {
		{ "one destination of a dual instruction must be even and the other odd", G11, 0, ADD(0, V(0), V(1)),
		  ADD(2, V(1), V(2)) },
		{ "source 0 of the halves of a dual instruction must be in different banks (number modulo 4)", G11, 0,
		  ADD(0, V(0), V(1)), ADD(1, V(4), V(2)) },
		{ "source 0 of the halves of a dual instruction must be in different banks (number modulo 4)", G11, 0,
		  MOV(0, V(1)), MOV(1, V(5)) },
		{ "source 1 of the halves of a dual instruction must be in different banks (number modulo 4)", G12, 0,
		  ADD(0, V(0), V(1)), ADD(1, V(1), V(5)) },
		{ "source 2 of the halves of a dual instruction must be in different banks (number modulo 2)",
		  G11,
		  0,
		  FMAC(0, V(0), V(1)),
		  { OP(V_FMAMK_F32), .d = { V(1) }, .s = { V(1), I(100), V(2) } } },
		{ bus, G11, 0, ADD(0, S(0), V(1)), { OP(V_FMAAK_F32), .d = { V(1) }, .s = { S(1), V(2), I(100) } } },
		{ bus,
		  G12,
		  0,
		  { OP(V_CNDMASK_B32), .d = { V(0) }, .s = { S(1), V(1), S(RDNA_VCC_LO) } },
		  MOV(1, S(2)) },
		{ "a dual instruction can have only one literal", G11, 0, MOV(0, I(100)), MOV(1, I(101)) },
		{ "half of a dual instruction must have the short encoding, without DPP",
		  G11,
		  1,
		  { OP(V_ADD_F32), .d = { V(0) }, .s = { rdna_neg(V(0)), V(1) } },
		  MOV(1, V(1)) },
		{ "the instruction cannot be half of a dual instruction",
		  G11,
		  0,
		  { OP(V_OR_B32), .d = { V(0) }, .s = { V(0), V(1) } },
		  MOV(1, V(1)) },
		{ "the instruction cannot be half of a dual instruction", G10, 0, MOV(0, V(0)), MOV(1, V(1)) },
		{ "the instruction can only be the second half of a dual instruction",
		  G11,
		  0,
		  { OP(V_AND_B32), .d = { V(0) }, .s = { V(0), V(1) } },
		  MOV(1, V(1)) },
	};
	REFUSE(t);
}

int rdna_refusal_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_operands), cmocka_unit_test(test_refused_constants),
		cmocka_unit_test(test_refused_memory),   cmocka_unit_test(test_refused_vector),
		cmocka_unit_test(test_refused_dual),
	};

	return cmocka_run_group_tests_name("rdna_refusal_tests", tests, NULL, NULL);
}
