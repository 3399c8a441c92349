/* tests/jit/ir_rows_tests.c - what ops.def says of its rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/ir.h"
#include "tests/jit/ir_rows_tests.h"

static void test_facts(void **unused)
{
	const struct ir_facts *f = &ir_facts[IR_ffma];

	assert_string_equal(f->name, "ffma");
	assert_int_equal(f->dst, IR_TYPE_f32);
	assert_int_equal(f->c, IR_TYPE_f32);
	assert_int_equal(f->imm, IR_IMM__);
	assert_string_equal(f->expression, "lane_fma(a, b, c)");
	f = &ir_facts[IR_igather];
	assert_int_equal(f->dst, IR_TYPE_i32);
	assert_int_equal(f->a, IR_TYPE_a);
	assert_int_equal(f->b, IR_TYPE_i32);
	assert_int_equal(f->imm, IR_IMM_d);
	assert_string_equal(f->expression, "");
	for (unsigned k = 0; k < IR_ROWS; k++)
		for (unsigned j = 0; j < k; j++)
			assert_true(!ir_facts[k].name || !ir_facts[j].name ||
			            strcmp(ir_facts[k].name, ir_facts[j].name));
}

/* Operations and types make rows, and rows say what their operands are. */
static void test_rows(void **unused)
{
	unsigned rows = 0;

	assert_int_equal(ir_facts[IR_add].types, 1u << IR_TYPE_f32 | 1u << IR_TYPE_i32 | 1u << IR_TYPE_s |
	                                                 1u << IR_TYPE_a | 1u << IR_TYPE_f64 | 1u << IR_TYPE_i64);
	assert_false(ir_is_row(IR_add) || ir_is_row(IR_NO_ROW) || ir_is_row(IR_OPS) || ir_is_row(IR_ROWS));
	assert_true(ir_is_row(IR_fadd) && ir_is_row(IR_loop));
	assert_int_equal(ir_facts[IR_aadd].b, IR_TYPE_s);   /* moved by a scalar */
	assert_int_equal(ir_facts[IR_iadd].b, IR_TYPE_i32); /* added to its kind */
	assert_int_equal(ir_facts[IR_iload_u8].dst, IR_TYPE_i32);
	assert_int_equal(ir_facts[IR_iload_u8].type, IR_TYPE_u8);
	assert_int_equal(ir_facts[IR_fload_h].dst, IR_TYPE_f32);
	assert_int_equal(ir_facts[IR_fbits].a, IR_TYPE_i32);
	assert_int_equal(ir_facts[IR_ibits].a, IR_TYPE_f32);
	assert_int_equal(ir_facts[IR_flt].dst, IR_TYPE_m);
	assert_int_equal(ir_facts[IR_ti2f].a, IR_TYPE_t);
	assert_int_equal(ir_facts[IR_fconst].imm, IR_IMM_f);
	assert_int_equal(ir_facts[IR_iconst].imm, IR_IMM_i);
	assert_int_equal(ir_facts[IR_tconst].needs, IR_NEEDS_mma);
	assert_int_equal(ir_facts[IR_sconst].needs, 0);
	for (unsigned op = 0; op < IR_OPS; op++)
		for (unsigned type = 0; type < IR_TYPES; type++) {
			const struct ir_ins i = { .op = (uint8_t)op, .type = (uint8_t)type };
			const unsigned row = ir_row(&i);

			assert_int_equal(row != IR_NO_ROW, op && (ir_facts[op].types ? ir_facts[op].types >> type & 1
			                                                             : type == IR_TYPE__));
			if (row == IR_NO_ROW)
				continue;
			rows++;
			assert_true(ir_is_row(row));
			assert_int_equal(ir_facts[row].op, op);
			assert_int_equal(ir_facts[row].type, type);
			assert_int_equal(ir_facts[row].effects, ir_facts[op].effects);
		}
	for (unsigned row = 0; row < IR_ROWS; row++)
		rows -= ir_is_row(row);
	assert_int_equal(rows, 0);
}

/* What passes rely on: that effects and operands of a row go together. */
static void test_effects(void **unused)
{
	for (unsigned k = 0; k < IR_ROWS; k++) {
		const struct ir_facts *f = &ir_facts[k];
		if (!ir_is_row(k))
			continue;
		const unsigned known = IR_PURE | IR_READS | IR_WRITES | IR_AWAITS | IR_COPIES | IR_HINTS | IR_BRANCHES |
		                       IR_FRAMES | IR_MEETS | IR_GROUPS | IR_MASKABLE | IR_INDEXED;

		if (!f->effects || f->effects & ~known)
			fail_msg("%s has the effects %x", f->name, f->effects);
		if (f->effects & (IR_READS | IR_WRITES | IR_HINTS | IR_COPIES) && f->a && f->a != IR_TYPE_a)
			fail_msg("%s has no address in operand a", f->name);
		if (f->effects & IR_READS && !(f->effects & IR_WRITES) != (f->dst != IR_TYPE__))
			fail_msg("%s reads memory and keeps nothing of it", f->name);
		if ((f->dst == IR_TYPE__) != (ir_stays(f->op) && k != IR_loop))
			fail_msg("%s has neither a result nor an effect, or both", f->name);
		if (f->effects & IR_PURE && (f->dst == IR_TYPE__ || f->effects & ~(unsigned)(IR_PURE | IR_GROUPS)))
			fail_msg("%s is a function and does something else", f->name);
		if (f->expression[0] && !(f->effects & IR_PURE))
			fail_msg("%s has an expression and is no function", f->name);
		if (f->effects & IR_MASKABLE && (!(f->effects & (IR_READS | IR_WRITES)) || f->effects & IR_AWAITS))
			fail_msg("%s has a mask and moves no lanes", f->name);
		if (f->effects & IR_FRAMES && (f->dst != IR_TYPE_a || f->imm != IR_IMM_i))
			fail_msg("%s takes bytes and gives no address", f->name);
	}
}

int ir_rows_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_effects),
	};

	return cmocka_run_group_tests_name("ir_rows_tests", tests, NULL, NULL);
}
