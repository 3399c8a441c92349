/* tests/encoders/x86_label_tests.c - labels, data, padding, and which encoding is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/encoders/x86_test.h"

static void test_label_rules(void **state)
{
	struct x86 x;

	x86_init(&x);
	int l = x86_label(&x);
	x86_ins(&x, X86_JMP, x86_mem_label(l, 0), X86_0, X86_0, X86_0);
	assert_false(x86_finish(&x));
	assert_string_equal(x.error, "a label is used but never bound");
	assert_int_equal(x.error_op, X86_JMP);
	x86_free(&x);

	x86_init(&x);
	l = x86_label(&x);
	x86_bind(&x, l);
	x86_bind(&x, l);
	assert_string_equal(x.error, "a label can be bound only once");
	assert_int_equal(x.error_op, X86_OP_COUNT);
	x86_free(&x);

	x86_init(&x);
	x86_bind(&x, 0);
	assert_string_equal(x.error, "a label must come from x86_label");
	x86_free(&x);

	x86_init(&x);
	x86_align(&x, 3);
	assert_string_equal(x.error, "an alignment must be a power of two");
	x86_free(&x);

	x86_init(&x);
	x86_ins(&x, X86_OP_COUNT, X86_0, X86_0, X86_0, X86_0);
	assert_string_equal(x.error, "the instruction is not in the table");
	x86_free(&x);
}

/* Many labels and branches, each to a label with a number of its own: arrays grow, every distance is right. */
static void test_many_labels(void **state)
{
	enum { N = 1000 };
	static int label[N];
	static size_t at[N], bound[N];
	struct x86 x;

	x86_init(&x);
	for (int i = 0; i < N; i++)
		label[i] = x86_label(&x);
	for (int i = 0; i < N; i++) {
		bound[i] = x.size;
		x86_bind(&x, label[i]);
		at[i] = x.size;
		x86_ins(&x, X86_JMP, x86_mem_label(label[i * 7 % N], i), X86_0, X86_0, X86_0);
	}
	assert_true(x86_finish(&x));
	for (int i = 0; i < N; i++) {
		int32_t distance;
		memcpy(&distance, x.code + at[i] + 1, 4);
		assert_int_equal(x.code[at[i]], 0xe9);
		assert_int_equal((int64_t)at[i] + 5 + distance, (int64_t)bound[i * 7 % N] + i);
	}
	x86_free(&x);
}

static void test_align_and_bytes(void **state)
{
	static const char *const nops[] = {
		"",
		"90",
		"6690",
		"0f1f00",
		"0f1f4000",
		"0f1f440000",
		"660f1f440000",
		"0f1f8000000000",
		"0f1f840000000000",
		"660f1f840000000000",
		"660f1f84000000000090",
		"660f1f8400000000006690"
	};
	uint8_t big[300];
	char hex[64];

	memset(big, 0xcc, sizeof big);
	for (unsigned gap = 0; gap <= 11; gap++) {
		struct x86 x;
		x86_init(&x);
		x86_bytes(&x, big, 16 - gap);
		x86_align(&x, 16);
		x86_align(&x, 1);
		assert_int_equal(x.size, 16);
		hex_of(hex, x.code + 16 - gap, gap);
		assert_string_equal(hex, nops[gap]);
		x86_bytes(&x, big, sizeof big);
		x86_bytes(&x, big, 0);
		assert_int_equal(x.size, 316);
		assert_memory_equal(x.code + 16, big, sizeof big);
		assert_true(x86_finish(&x));
		x86_free(&x);
	}
}

/* A mask decorates one instruction; where EVEX may be used, VEX is taken when it says the same. */
static void test_evex_choice(void **state)
{
	struct x86 x;
	char hex[64];

	x86_init(&x);
	x.evex = true;
	x.mask = 3;
	x.zeroing = true;
	x86_ins(&x, X86_VADDPS, Y(1), Y(2), Y(3), X86_0);
	assert_int_equal(x.mask, 0);
	assert_false(x.zeroing);
	x86_ins(&x, X86_VADDPS, Y(1), Y(2), Y(3), X86_0);
	x86_ins(&x, X86_VPDPBUSD, Y(1), Y(2), Y(3), X86_0);
	x86_ins(&x, X86_TDPBUSD, T(1), T(2), T(3), X86_0);
	x86_ins(&x, X86_TILERELEASE, X86_0, X86_0, X86_0, X86_0);
	assert_true(x86_finish(&x));
	hex_of(hex, x.code, x.size);
	assert_string_equal(hex, "62f16cab58cb"
	                         "c5ec58cb"
	                         "62f26d2850cb"
	                         "c4e2615eca"
	                         "c4e27849c0");
	x86_free(&x);
	assert_string_equal(x86_op_name(X86_VPDPBUSD), "vpdpbusd");
	assert_string_equal(x86_op_name(X86_OP_COUNT), "none");
}

int x86_label_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_label_rules),
		cmocka_unit_test(test_many_labels),
		cmocka_unit_test(test_align_and_bytes),
		cmocka_unit_test(test_evex_choice),
	};

	return cmocka_run_group_tests_name("x86_label_tests", tests, NULL, NULL);
}
