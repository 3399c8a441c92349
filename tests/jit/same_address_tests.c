/* tests/jit/same_address_tests.c - scatters of which two lanes have the same place: the interpreter and simulated cards
 * stop with one sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_build_memory.h"
#include "tests/jit/every_target.h"
#include "tests/jit/same_address_tests.h"

/* Two lanes at one place stop a run, but not where one of them takes no part. */
static void test_same_address(void **state)
{
	for (unsigned masked = 0; masked < 2; masked++) {
		struct random_ir_buffers *x = random_ir_buffers_new(1);
		struct ir b;
		ir_init(&b, 8);
		const ir_a out = ir_aload(&b, ir_arg(&b), 8);
		const ir_i lane = ir_ilane(&b), index = ir_iand(&b, lane, ir_iconst(&b, 3));
		const ir_m some = ir_igt(&b, ir_iconst(&b, 4), lane);
		ir_scatter_distinct_u8(&b, out, index, lane, 0, masked ? some : ir_everywhere);
		struct interp_program *p = interp_compile(&b);
		assert_non_null(p);
		const enum interp_end end = interp_run(p, NULL, x->arg, 0, 1);
		assert_int_equal(end, masked ? INTERP_DONE : INTERP_SAME_ELEMENT);
		assert_non_null(strstr(interp_why(INTERP_SAME_ELEMENT), "two lanes store to the same element"));
		interp_free(p);
		ir_free(&b);
		free(x);
	}
}

static void build_same_address(struct ir *b)
{
	const ir_i index = ir_iand(b, ir_ilane(b), ir_iconst(b, 15));

	ir_scatter_distinct_i32(b, ir_aload(b, ir_arg(b), 8), index, index, 0, ir_everywhere);
}

static void test_same_address_on_cards(void **state)
{
	every_card_refuses(build_same_address, "two lanes of a store have the same place");
}

static int open_all(void **state)
{
	every_target_open();
	return 0;
}

static int close_all(void **state)
{
	every_target_close();
	return 0;
}

int same_address_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_address),
		cmocka_unit_test(test_same_address_on_cards),
	};

	return cmocka_run_group_tests_name("same place", tests, open_all, close_all);
}
