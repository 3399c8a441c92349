/* tests/language/t_bind.c - what is said of a kernel once constants are bound: refusals, accesses, faults and ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "tests/language/run_kernel.h"

/* --- refusals: text, line and column, and what the message says */

struct refusal {
	const char *text, *constants;
	unsigned column;
	const char *says;
};

#define LANES "kernel k(in i32 x[8], out i32 o[64], inout i32 p[64]) over (i in 8) { "
#define UNIFORM "kernel k(in i32 x[8], out i32 o[64], inout i32 p[64]) over (i in 8) { each (z in 0..0) { } "

static const struct refusal refusals[] = {
	{ "const i64 n; " LANES "o[i] = i32(n); }", "", 95,
	  "the constant n has no value; give one, such as --const n=1000" },
	{ LANES "o[i] = 1; }", "m=3", 0, "there is no constant m" },
	{ "const i32 n; " LANES "o[i] = n; }", "n=1.5", 0, "constant n: expected a number of type i32, found '1.5'" },
	{ "const i32 n; " LANES "o[i] = n; }", "n=3000000000", 0, "expected a number of type i32" },
	{ "const u32 n; " LANES "o[i] = 1; }", "n=-3", 0, "expected a number of type u32" },
	{ "tune b in {32, 64}; kernel k(out i32 o[8]) over (i in 8) block(b) { o[i] = 1; }", "b=96", 0,
	  "96 is none of the values" },
	{ "const i32 n = -3; kernel k(out i32 o[n]) over (i in 8) { o[i] = 1; }", "", 38, "an extent of o is -3" },
	{ "kernel k(out i32 o[8]) over (i in 8) block(33) { o[i] = 1; }", "", 44,
	  "block is 33; expected a multiple of 32" },
	{ LANES "o[0] = i; }", "", 71, "several instances may write the same element of o" },
	{ LANES "o[i / 2] = i; }", "", 71, "it is not proven that instances write different elements of o" },
	{ LANES "o[x[i]] = i; }", "", 71, "use scatter_distinct or an atomic" },
	{ LANES "p[i] = p[i + 1]; }", "", 71, "instances may write elements of p that others read at line 1" },
	{ LANES "o[2 * i] = 1; o[2 * i + 2] = 2; }", "", 71, "others write at line 1" },
	{ LANES "for (k in 0..5) { o[4 * i + k] = k; } }", "", 89, "several instances may write" },
	{ LANES "atomic_add(p[i], 1); p[i] = 3; }", "", 92, "p is changed by an atomic at line 1" },
	{ LANES "for (k in 0..5 step 0) { o[i] = k; } }", "", 91, "step of a loop: expected 1 or more, found 0" },
	{ LANES "i32 v[4]; v[x[i]] = 1; o[i] = v[0]; }", "", 81, "a subscript of v differs between lanes" },
	{ UNIFORM "i32 s = 0; each (j in 0..4) { s += j; } o[i] = s; }", "", 122, "s is declared outside of each" },
	{ UNIFORM "each (j in 0..4) { o[3] = j; } }", "", 111, "several instances may write" },
	{ UNIFORM "each (j in 0..4) { o[4 * i + j] = j; o[4 * i + 3 - j] = 1; } }", "", 0, "" },
	{ UNIFORM "each (j in 0..2) { p[4 * i + 2 * j] = j; } p[4 * i + 2 * (x[i] & 3)] = 1; }", "", 0,
	  "instances may write elements of p that others write" },
	{ UNIFORM "tile i32 t[8]; each (j in 0..8) { t[j] = j; } o[i] = t[3]; }", "", 145,
	  "t was written, and nothing waits" },
	{ UNIFORM "tile i32 t[8]; each (j in 0..8) { t[j] = t[7 - j]; } o[i] = 1; }", "", 126,
	  "iterations of each may write elements of t" },
	{ "fn i32 f(in i32 a[9]) { return a[0]; } " LANES "o[i] = f(x); }", "", 119,
	  "extent 1 of a: expected 9, found 8 (x)" },
};

static void test_refusals(void **state)
{
	unsigned wrong = 0;

	for (unsigned k = 0; k < sizeof refusals / sizeof *refusals; k++) {
		const struct refusal *r = &refusals[k];
		struct jk_messages m;
		const char *said = run_refused(r->text, r->constants, &m);
		if ((r->column && (m.message[0].column != r->column || m.message[0].line != 1)) ||
		    !strstr(said, r->says)) {
			print_error("%s\n%u:%u: %s\nexpected %u: %s\n", r->text, m.message[0].line, m.message[0].column,
			            said, r->column, r->says);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* What mixed radix proves: all of these are taken. */
static void test_owned(void **state)
{
	static const char *const texts[] = {
		LANES "o[2 * i] = i; o[2 * i + 1] = i; }",
		LANES "for (k in 0..4) { o[4 * i + k] = k; } }",
		LANES "for (k in 0..4) { o[8 * k + i] = k; } }",
		LANES "o[7 - i] = i; p[i + 3] = p[i + 3] + 1; }",
		LANES "scatter_distinct(o[x[i]], 3); atomic_add(p[x[i]], 1); atomic_add(p[0], 1); }",
		"kernel k(out i32 o[8][8]) over (x in 8, y in 8) { o[y][x] = x; }",
		"kernel k(out i32 o[8][40]) over (r in 8) { for (c in 0..10) { each (j in 0..4) { o[r][c + j] = 1; } } "
		"}",
		/* Places in one row, of which neither is known: their difference is too small for another row. */
		"kernel k(in i32 x[64], inout i32 o[8][2][4]) over (r in 8, c in 4) { each (j in 0..2) { o[r][j][c] = "
		"j; } "
		"o[r][x[r * 8 + c] & 1][c] = 3; }",
		"kernel k(out i32 o[8][4]) over (r in 8) { each (j in 0..4) { o[r][j] = j; } each (j in 0..4) { o[r][3 "
		"- j] = j; } }",
	};

	for (unsigned k = 0; k < sizeof texts / sizeof *texts; k++) {
		struct run r;
		run_open(&r, texts[k], NULL, "");
		run_close(&r);
	}
}

/* --- accesses */

static void test_uses(void **state)
{
	static const char text[] =
		"kernel k(in f32 x[64], in i32 w[16], out f32 o[16], f32 a) over (i in 16) {\n"
		"	o[i] = x[3] + x[i] + x[4 * i] + x[w[i]] + x[w[i] & 63] + x[i + 60] * a;\n"
		"}\n";
	static const struct {
		unsigned column;
		enum jk_pattern pattern;
		int64_t stride;
		bool checked;
	} want[] = { { 2, JK_CONTIGUOUS, 0, false }, { 9, JK_UNIFORM, 0, false },     { 16, JK_CONTIGUOUS, 0, false },
		     { 23, JK_STRIDED, 4, false },   { 34, JK_GATHER, 0, true },      { 36, JK_CONTIGUOUS, 0, false },
		     { 44, JK_GATHER, 0, false },    { 46, JK_CONTIGUOUS, 0, false }, { 59, JK_CONTIGUOUS, 0, true } };
	struct run r;

	run_open(&r, text, NULL, "");
	assert_int_equal(jk_uses(r.kernel), 9);
	for (size_t k = 0; k < 9; k++) {
		const struct jk_use *u = jk_use(r.kernel, k);
		if (u->line != 2 || u->column != want[k].column || u->pattern != want[k].pattern ||
		    u->stride != want[k].stride || u->checked != want[k].checked || u->write != (k == 0))
			fail_msg("%u:%u %s: pattern %d, stride %d, %s", u->line, u->column, u->array, (int)u->pattern,
			         (int)u->stride, u->checked ? "checked" : "not checked");
	}
	assert_null(jk_use(r.kernel, 9));
	assert_int_equal(jk_bytes_read(r.kernel), 64 * 4 + 16 * 4);
	assert_int_equal(jk_bytes_written(r.kernel), 16 * 4);
	assert_true(jk_operations(r.kernel) >= 16 * 6);
	run_close(&r);
}

static void test_locals(void **state)
{
	static const char text[] =
		"kernel k(out f32 o[16], f32 a) over (i in 16) {\n"
		"	i32 c = 3 + 4;\n"
		"	f32 b = a * 2;\n"
		"	f32 v[4];\n"
		"	f32 d = f32(i) + b;\n"
		"	v[c - 5] = d;\n"
		"	o[i] = v[2] + v[1];\n"
		"}\n";
	static const struct {
		const char *name, *where;
		bool uniform;
	} want[] = { { "c", "constant", true },
		     { "b", "register", true },
		     { "v", "frame", false },
		     { "d", "register", false } };
	struct run r;

	run_open(&r, text, NULL, "");
	assert_int_equal(jk_locals(r.kernel), 4);
	for (size_t k = 0; k < 4; k++) {
		assert_string_equal(jk_local(r.kernel, k)->name, want[k].name);
		assert_string_equal(jk_local(r.kernel, k)->where, want[k].where);
		assert_int_equal(jk_local(r.kernel, k)->uniform, want[k].uniform);
		assert_int_equal(jk_local(r.kernel, k)->line, k + 2);
	}
	run_close(&r);
}

/* --- faults */

static void check_fault(const char *text, unsigned lanes, const char *expected)
{
	char said[300] = "";
	uint64_t fault[4] = { 0 }, arg[JK_MAX_PARAMETERS + 1];
	struct error err = { 0 };
	struct run r;
	struct ir ir;
	size_t k;

	run_open(&r, text, NULL, "");
	for (k = 0; k < jk_parameters(r.kernel); k++)
		arg[k] = (uintptr_t)r.memory + r.arg[k];
	arg[k] = (uintptr_t)fault;
	int32_t *x = run_array(&r, "x");
	for (int32_t i = 0; i < 40; i++)
		x[i] = i < 21 ? i : 100 - i;
	assert_true(jk_build_lanes(&ir, r.kernel, lanes, 1, true, &err));
	assert_true(ir_verify(&ir, &err));
	ir_interp(&ir, arg, 0, (int64_t)jk_units(r.kernel));
	ir_free(&ir);
	assert_int_equal(jk_fault_text(r.kernel, fault, said, sizeof said), expected != NULL);
	if (expected)
		assert_string_equal(said, expected);
	run_close(&r);
}

static void test_faults(void **state)
{
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		check_fault("kernel k(in i32 x[40], out i32 o[40]) over (i in 40) {\no[i] = x[x[i]];\n}", lanes,
		            "test.jk:2:8: subscript 1 of x is 79, and its extent is 40, in instance 21");
		check_fault("kernel k(in i32 x[40], out i32 o[40][50]) over (i in 40) {\nif (i > 30) "
		            "{\nscatter_distinct(o[i][x[i]], "
		            "1); }\n}",
		            lanes, "test.jk:3:18: subscript 2 of o is 69, and its extent is 50, in instance 31");
		check_fault(
			"kernel k(in i32 x[40], out i32 o[40]) over (i in 40) {\no[i] = x[i] < 40 ? x[x[i]] : 0;\n}",
			lanes, NULL);
		check_fault(
			"kernel k(in i32 x[40], out i32 o[4]) over (r in 4) {\no[r] = sum(j in 0..40: x[x[j] - 3]);\n}",
			lanes, "test.jk:2:24: subscript 1 of x is -3, and its extent is 40, in instance 0");
	}
}

/* --- ids */

static void test_ids(void **state)
{
	static const char a[] = "const i32 n; kernel k(out i32 o[n]) over (i in n) { o[i] = i; }",
			  b[] = "const i32 n;\n// a comment\nkernel k(out i32 o[n])  over (i in n) { o[i]=i; }",
			  c[] = "const i32 n; kernel k(out i32 o[n]) over (i in n) { o[i] = n; }";
	struct run one, same, other, larger;

	run_open(&one, a, NULL, "n=5");
	run_open(&same, b, NULL, "n=5");
	run_open(&other, c, NULL, "n=5");
	run_open(&larger, a, NULL, "n=6");
	assert_memory_equal(jk_id(one.kernel, false), jk_id(same.kernel, false), JK_ID_BYTES);
	assert_memory_not_equal(jk_id(one.kernel, false), jk_id(one.kernel, true), JK_ID_BYTES);
	assert_memory_not_equal(jk_id(one.kernel, false), jk_id(other.kernel, false), JK_ID_BYTES);
	assert_memory_not_equal(jk_id(one.kernel, false), jk_id(larger.kernel, false), JK_ID_BYTES);
	run_close(&one);
	run_close(&same);
	run_close(&other);
	run_close(&larger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_owned),  cmocka_unit_test(test_uses),
		cmocka_unit_test(test_locals),   cmocka_unit_test(test_faults), cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests_name("t_bind", tests, NULL, NULL);
}
