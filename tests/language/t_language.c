/* tests/language/t_language.c - the parser: what it takes, and what it says of mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language/jk.h"

/* --- texts that are right */

static void test_files(void **state)
{
	static const char *const texts[] = {
		"kernel k(out i32 o[8]) over (i in 8) { o[i] = i; }",
		"const i64 n; const f32 c = 0.5 * 2; kernel k(in f32 x[n], out f32 y[n]) over (i in n) { y[i] = x[i] * "
		"c; }",
		"fn f32 twice(f32 a) { return a + a; } /* a\ncomment */\n"
		"kernel k(inout f32 y[4]) over (i in 4) { y[i] = twice(y[i]); }",
		"tune b in {64, 128}; kernel k(out u8 o[3][5]) over (y in 3, x in 5) block(b) { o[y][x] = 1; }",
		"kernel k(out f32 o[4]) over (i in 4) { f32 s = 0; for (k in 0..3 step 2) { s += f32(k); if (s > 2) "
		"break; } "
		"while (s < 9) at most 10 { s *= 2; } o[i] = s; }",
		"kernel k(in f32 x[2][9], out f32 o[2]) over (r in 2) { f32 m = max(j in 0..9: x[r][j]); "
		"o[r] = sum(j in 0..9: exp(x[r][j] - m)); }",
	};

	for (unsigned k = 0; k < sizeof texts / sizeof *texts; k++) {
		struct jk_messages m;
		struct jk_file *f = jk_parse("a.jk", texts[k], strlen(texts[k]), &m);
		if (!f)
			fail_msg("%u: %u:%u %s", k, m.message[0].line, m.message[0].column, m.message[0].text);
		assert_int_equal(jk_kernels(f), 1);
		assert_string_equal(jk_kernel_name(f, 0), "k");
		assert_null(jk_kernel_name(f, 1));
		jk_file_close(f);
	}
}

static void test_constants(void **state)
{
	static const char text[] =
		"const i64 n; const i64 twice = 2 * n; const f32 c = 1.5; const u32 w = 0xffffffff; "
		"const i32 d = -7 / 2; tune b in {64, 128};\nkernel k(out f32 o[4]) over (i in 4) { o[i] = c; }";
	struct jk_messages m;
	struct jk_file *f = jk_parse("a.jk", text, strlen(text), &m);

	assert_non_null(f);
	assert_int_equal(jk_constants(f), 6);
	assert_string_equal(jk_constant(f, 0)->name, "n");
	assert_int_equal(jk_constant(f, 0)->type, JK_I64);
	assert_false(jk_constant(f, 0)->has_value);
	assert_false(jk_constant(f, 1)->has_value);
	assert_true(jk_constant(f, 2)->has_value);
	assert_true(jk_constant(f, 2)->number == 1.5);
	assert_true(jk_constant(f, 3)->integer == 0xffffffff);
	assert_int_equal(jk_constant(f, 4)->integer, -3);
	assert_true(jk_constant(f, 5)->tuned);
	assert_int_equal(jk_constant(f, 5)->choices, 2);
	assert_int_equal(jk_constant(f, 5)->choice[1], 128);
	assert_null(jk_constant(f, 6));
	jk_file_close(f);
}

/* --- mistakes. Each text has one, which the message names with its place; % stands for what is put into a kernel. */

struct mistake {
	const char *text;
	unsigned line, column;
	const char *says, *suggests;
};

static const struct mistake mistakes[] = {
	{ "", 0, 0, "expected a kernel", "" },
	{ "const i64 n = 3;", 0, 0, "expected a kernel", "" },
	{ "kernel", 1, 7, "expected the name of a kernel, found the end of the file", "" },
	{ "kernel for() over (i in 1) {}", 1, 8, "expected the name of a kernel", "no word of the language" },
	{ "kernel k(f32) over (i in 1) {}", 1, 13, "expected the name of a parameter", "" },
	{ "kernel k(f32 x[4]) over (i in 1) {}", 1, 14, "expected in, out or inout", "" },
	{ "kernel k(in f32 x) over (i in 1) {}", 1, 17, "expected the extents of the array x", "x[n]" },
	{ "kernel k(f16 x) over (i in 1) {}", 1, 14, "f16 is a type of elements of arrays alone", "a scalar is f32" },
	{ "kernel k(in bool x[3]) over (i in 1) {}", 1, 18, "no elements of bool", "u8" },
	{ "kernel k() { }", 1, 12, "expected over behind the parameters", "over (i in n)" },
	{ "kernel k() over (i in 1.5) {}", 1, 23, "ends of a range: expected integers", "i32(...)" },
	{ "const i64 n = 1; const i64 n = 2; kernel k() over (i in 1) {}", 1, 28, "n has a meaning already, at line 1",
	  "another name" },
	{ "const i32 n = 0.5; kernel k() over (i in 1) {}", 1, 15, "expected i32, found a number with a fraction",
	  "whole" },
	{ "const i32 n = 4000000000; kernel k() over (i in 1) {}", 1, 15, "4000000000 does not fit i32",
	  "another type" },
	{ "const f32 n = 1e60; kernel k() over (i in 1) {}", 1, 15, "1e60 does not fit f32", "another type" },
	{ "const f32 c = 1.5f; kernel k() over (i in 1) {}", 1, 18, "unexpected letters behind a number", "suffix" },
	{ "const f16 n = 1; kernel k() over (i in 1) {}", 1, 11, "f16 is a type of elements", "f32" },
	{ "tune b {1}; kernel k() over (i in 1) {}", 1, 8, "expected in behind the name", "" },
	{ "tune b in {1}; const i64 n = b; kernel k() over (i in 1) {}", 1, 30, "b is tuned", "block(...)" },
	{ "fn f32 f(f32 a) { a = 1; } kernel k() over (i in 1) {}", 1, 26, "expected return and a value", "" },
	{ "fn f32 f(f32 a) { return f(a); } kernel k() over (i in 1) {}", 1, 26, "f has no meaning here", "above" },
	{ "fn f32 f(out f32 a[1]) { return 1; } kernel k() over (i in 1) {}", 1, 18, "a function can read arrays",
	  "in" },
	{ "/* open", 1, 1, "this comment has no end", "*/" },
	{ "kernel k() over (i in 1) { \xc3\xa9 }", 1, 28, "no token begins with '\xc3\xa9'", "ASCII" },
	{ "%s = 1;", 3, 1, "s has no meaning here", "declare it above" },
	{ "%f32 count = 1; f32 b = cuont;", 3, 24, "cuont has no meaning here", "is count meant?" },
	{ "%f32 b = sqtr(2.0);", 3, 9, "sqtr has no meaning here", "is sqrt meant?" },
	{ "%f32 b = i;", 3, 9, "value of b: expected f32, found i32 (index i)", "write f32(...)" },
	{ "%o[i] = x[i] + i;", 3, 15, "operands of +: expected f32, found i32 (index i)", "f32(...)" },
	{ "%o[i] = x[i] % 2.0;", 3, 13, "operands of %: expected integers, found f32", "cast" },
	{ "%bool b = x[i];", 3, 10, "expected bool, found f32 (element of x)", "comparison" },
	{ "%bool b = 0.5 < 0.6;", 3, 10, "no type is given to these numbers", "f32(...)" },
	{ "%if (1) { }", 3, 5, "condition of if: expected bool", "comparison" },
	{ "%o[i] = x;", 3, 8, "x has 1 dimensions, and 0 subscripts are given", "[...]" },
	{ "%o[i][i] = 1;", 3, 1, "o has 1 dimensions, and 2 subscripts are given", "[...]" },
	{ "%o[0.5] = 1;", 3, 3, "subscript of o: expected an integer", "i32(...)" },
	{ "%x[i] = 1;", 3, 1, "x is only read", "out or inout" },
	{ "%f32 v = o[i];", 3, 9, "o is only written", "inout" },
	{ "%o[i] += 1;", 3, 1, "o is only written", "inout" },
	{ "%i = 1;", 3, 1, "i is an index, and cannot be assigned", "variable" },
	{ "%f32 b;", 3, 6, "expected = and a first value", "" },
	{ "%f32 b = 1; b++;", 3, 13, "expected += 1", "" },
	{ "%break;", 3, 1, "break leaves a for or while loop", "if" },
	{ "%while (true) { }", 3, 14, "expected at most and a number of iterations", "at most 1000" },
	{ "%for (k = 0) { }", 3, 8, "expected in behind the index", "in 0..n" },
	{ "%for (k in 3) { }", 3, 12, "expected .. between the ends of a range", "0..n" },
	{ "%if (i < 3) f32 b = 1;", 3, 12, "expected { before a declaration", "" },
	{ "%each (j in 0..4) { each (k in 0..4) { } }", 3, 20, "each cannot stand inside each", "uniform" },
	{ "%each (j in 0..4) { sync; }", 3, 20, "sync cannot stand inside each", "uniform" },
	{ "%atomic_add(o[i], 1);", 3, 12, "atomics take elements of i32", "sum(...)" },
	{ "%f32 b = sum(j in 0..4: true);", 3, 24, "expected a number with a type", "cast" },
	{ "%f32 b = fma(x[i], 2);", 3, 9, "fma takes 3 operands, found 2", "" },
	{ "%u32 b = popcount(x[i]);", 3, 18, "operand of popcount: expected an integer, found f32", "cast" },
	{ "%u32 b = philox(0, 0, 0, 0, 0, 0, 4);", 3, 34, "expected 0, 1, 2 or 3", "" },
	{ "%f32 b = f16(1);", 3, 9, "f16 is a type of elements", "f32(...)" },
	{ "%f32 b = f32 + 1;", 3, 13, "expected ( behind a type", "f32(i)" },
	{ "%f32 b = k;", 3, 9, "k is a kernel, and a value is expected", "" },
	{ "%o[i] = (1 + ;", 3, 13, "expected an expression, found ';'", "" },
};

static unsigned check_mistake(const struct mistake *m)
{
	char text[600];
	struct jk_messages said;

	if (m->text[0] == '%' || m->text[0] == 0)
		snprintf(text, sizeof text, "%s%s%s",
		         m->text[0] ? "kernel k(in f32 x[8], out f32 o[8])\nover (i in 8) {\n" : "",
		         m->text + (m->text[0] != 0), m->text[0] ? "\n}\n" : "");
	else
		snprintf(text, sizeof text, "%s", m->text);
	assert_null(jk_parse("a.jk", text, strlen(text), &said));
	const struct jk_message *first = &said.message[0];
	if (!said.n || first->line != m->line || first->column != m->column || !strstr(first->text, m->says) ||
	    !strstr(first->text, m->suggests)) {
		print_error("%s\n%u:%u: %s\nexpected %u:%u: %s ... %s\n", text, first->line, first->column, first->text,
		            m->line, m->column, m->says, m->suggests);
		return 1;
	}
	return 0;
}

static void test_mistakes(void **state)
{
	unsigned wrong = 0;

	for (unsigned k = 0; k < sizeof mistakes / sizeof *mistakes; k++)
		wrong += check_mistake(&mistakes[k]);
	assert_int_equal(wrong, 0);
}

/* Each wrong statement gets a message, and those between none. */
static void test_recovery(void **state)
{
	static const char text[] =
		"kernel k(out f32 o[8]) over (i in 8) {\n"
		"f32 a = ;\n"
		"f32 b = 1;\n"
		"b = nothing;\n"
		"if (b > 0) { b = ] 3; }\n"
		"o[i] = b\n"
		"}\n"
		"fn f32 f( { return 1; }\n"
		"const i32 z = 1.5;\n";
	static const unsigned lines[] = { 2, 4, 5, 7, 8, 9 };
	struct jk_messages m;

	assert_null(jk_parse("a.jk", text, strlen(text), &m));
	for (unsigned k = 0; k < m.n; k++)
		if (k >= 6 || m.message[k].line != lines[k])
			fail_msg("message %u: %u: %s", k, m.message[k].line, m.message[k].text);
	assert_int_equal(m.n, 6);
}

static void test_limits(void **state)
{
	static const char head[] = "kernel k(out f32 o[8]) over (i in 8) { o[i] = ";
	const size_t max = 1 << 20;
	char *text = malloc(max + 2);
	struct jk_messages m;

	assert_non_null(text);
	memset(text, ' ', max + 2);
	assert_null(jk_parse("a.jk", text, max + 1, &m));
	assert_non_null(strstr(m.message[0].text, "1048577 bytes"));
	memcpy(text, head, sizeof head);
	memset(text + sizeof head - 1, '(', max - sizeof head);
	assert_null(jk_parse("a.jk", text, max, &m));
	assert_non_null(strstr(m.message[0].text, "nest deeper than 64"));
	for (size_t k = sizeof head - 1; k + 2 < max; k += 2)
		memcpy(text + k, "1+", 2);
	assert_null(jk_parse("a.jk", text, max, &m));
	assert_non_null(strstr(m.message[0].text, "over 1000 operations"));
	for (size_t k = 0; k + 2 < max; k += 2) /* more messages than are kept */
		memcpy(text + k, "@\n", 2);
	assert_null(jk_parse("a.jk", text, max, &m));
	assert_int_equal(m.n, JK_MAX_MESSAGES);
	free(text);
}

static void test_print(void **state)
{
	static const char text[] = "const i64 n = 1;\n\tkernel k(in f32 x[n]) over (i in n) { x[i] = 1; }\n";
	char out[400] = "";
	FILE *file = fmemopen(out, sizeof out, "w");
	struct jk_messages m;

	assert_non_null(file);
	assert_null(jk_parse("a.jk", text, strlen(text), &m));
	jk_print_messages("a.jk", text, strlen(text), &m, file);
	fclose(file);
	assert_string_equal(out, "a.jk:2:40: x is only read; make it out or inout to write it\n"
	                         "\tkernel k(in f32 x[n]) over (i in n) { x[i] = 1; }\n"
	                         "\t                                      ^\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),    cmocka_unit_test(test_constants), cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_recovery), cmocka_unit_test(test_limits),    cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests_name("t_language", tests, NULL, NULL);
}
