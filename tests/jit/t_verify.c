/* tests/jit/t_verify.c - one broken kernel per rule of the verifier, and its neighbours that are well formed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"

static void good(const char *text)
{
	struct ir ir;
	struct error err = { 0 };

	if (!ir_parse(&ir, text, &err) || !ir_verify(&ir, &err))
		fail_msg("%s", err.text);
	ir_free(&ir);
}

static void expect(const struct ir *ir, const char *fragment)
{
	struct error err = { 0 };

	assert_false(ir_verify(ir, NULL));
	assert_false(ir_verify(ir, &err));
	assert_int_equal(err.code, ERROR_ARGUMENT);
	if (!strstr(err.text, fragment))
		fail_msg("found: %s, expected: %s", err.text, fragment);
}

static void bad(const char *text, const char *fragment)
{
	struct ir ir;
	struct error err = { 0 };

	if (!ir_parse(&ir, text, &err))
		fail_msg("%s", err.text);
	expect(&ir, fragment);
	ir_free(&ir);
}

static void test_lanes(void **unused)
{
	good("lanes 8");
	good("lanes 16");
	good("lanes 32");
	bad("lanes 4", "lanes is 4, expected 8, 16 or 32");
	bad("lanes 64", "lanes is 64");
	bad("lanes 0", "lanes is 0");
}

static void test_kinds(void **unused)
{
	bad("%1:I = iconst #1\n%2:F = fabs %1", "IR instruction 1 (fabs): operand a is %1 of kind I, expected kind F");
	bad("%1:F = fconst #0x0\n%2:S = sconst #1\n%3:F = fadd %1 %2",
	    "IR instruction 2 (fadd): operand b is %2 of kind S, expected kind F");
	bad("%1:M = ieq %3 %3", "operand a is %3 of kind _, expected kind I");
	bad("%1:F = fconst #0x0\n%2:I = ilane\n%3:M = ieq %2 %2\n%4:F = fsel %3 %1 %2",
	    "IR instruction 3 (fsel): operand c is %2 of kind I");
	bad("%1:F = ilane", "operand dst is %1 of kind F, expected kind I");
	bad("%1:F = fabs %0", "operand a is missing");
	bad("%0:F = fconst #0x0", "operand dst is missing, expected a register of kind F");
}

/* What text cannot say. */
static void test_malformed_instructions(void **unused)
{
	struct ir b;

	ir_init(&b, 8);
	ir_fabs(&b, ir_fconst(&b, 1.0f));
	b.ins[1].b = 1;
	expect(&b, "IR instruction 1 (fabs): operand b is %1, expected none");
	b.ins[1].b = 0;
	b.ins[1].a = 99;
	expect(&b, "operand a is %99, expected a register below 3");
	b.ins[1].a = 1;
	assert_true(ir_verify(&b, NULL));
	b.ins[1].op = IR_OPS;
	expect(&b, "op is ");
	b.ins[1].op = IR_NO_ROW;
	expect(&b, "IR instruction 1: op is 0, expected 1 to ");
	b.ins[1].op = IR_abs;
	b.ins[1].type = IR_TYPE_i32;
	expect(&b, "IR instruction 1 (abs): there is none of type 2 (i32)");
	b.ins[1].type = IR_TYPE__;
	expect(&b, "IR instruction 1 (abs): there is none of type 0 (none)");
	b.ins[1].type = IR_TYPES;
	expect(&b, "IR instruction 1 (abs): there is none of type ");
	b.ins[1].op = IR_prefetch;
	b.ins[1].type = IR_TYPE_f32;
	expect(&b, "IR instruction 1 (prefetch): there is none of type 1 (f32)");
	b.ins[1].op = IR_abs;
	b.ins[1].mask = 1;
	expect(&b, "IR instruction 1 (fabs): mask is %1, expected none");
	b.ins[1].mask = 0;
	b.ins[1].imm = 1;
	expect(&b, "immediate is 1, expected 0..0");
	b.ins[1].imm = 0;
	b.local_bytes = 64;
	expect(&b, "local_bytes is 64, its locals take 0");
	b.local_bytes = 0;
	b.n_regs = 70000;
	expect(&b, "70000 registers");
	b.n_regs = 3;
	assert_true(ir_verify(&b, NULL));
	ir_free(&b);

	ir_init(&b, 8);
	ir_prefetch(&b, ir_arg(&b), 0);
	b.ins[1].dst = 1;
	expect(&b, "IR instruction 1 (prefetch): operand dst is %1, expected none");
	ir_free(&b);
}

static void test_definition_before_use(void **unused)
{
	bad("%2:F = fabs %1\n%1:F = fconst #0x0",
	    "IR instruction 0 (fabs): operand a is %1, which is not defined on every path to here");
	bad("%1:I = iadd %1 %1", "operand a is %1, which is not defined");
	bad("var %1:I\n%2:I = imov %1", "operand a is %1, which is not defined");
	bad("var %1:I\n%1:I = iadd %1 %1", "operand a is %1, which is not defined");
	good("var %1:I\n%1:I = ilane\n%1:I = iadd %1 %1");
}

static void test_definition_in_loops(void **unused)
{
	bad("%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\nendloop\n%4:I = iadd %3 %3",
	    "IR instruction 4 (iadd): operand a is %3");
	bad("%1:S = sconst #3\n%2:S = loop %1\nendloop\n%4:I = isplat %2",
	    "IR instruction 3 (isplat): operand a is %2");
	bad("var %3:I\n%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\nendloop\n%4:I = imov %3",
	    "IR instruction 4 (imov): operand a is %3");
	bad("var %3:I\n%1:S = sconst #3\n%2:S = loop %1\n%4:I = iadd %3 %3\n%3:I = ilane\nendloop",
	    "IR instruction 2 (iadd): operand a is %3");
	bad("var %3:I\n%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\n%5:S = loop %1\n%6:I = ilane\nendloop\n%7:I = "
	    "imov %6\nendloop",
	    "IR instruction 6 (imov): operand a is %6");
	bad("%1:S = loop %1\nendloop", "operand a is %1, which is not defined");
	good("var %3:I\n%3:I = ilane\n%1:S = sconst #3\n%2:S = loop %1\n%3:I = iadd %3 %3\nendloop\n%4:I = imov %3");
	good("var %3:I\n%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\n%5:S = loop %2\n%6:I = imov %3\nendloop\n%7:I "
	     "= imov %3\nendloop");
	/* defined again after the loop: a variable may be */
	good("var %3:I\n%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\nendloop\n%3:I = ilane\n%4:I = imov %3");
}

static void test_single_write(void **unused)
{
	bad("%1:I = ilane\n%1:I = ilane",
	    "IR instruction 1 (ilane): operand dst is %1, which is written before and is no variable");
	bad("%1:S = sconst #3\n%2:S = loop %1\n%3:I = ilane\nendloop\n%3:I = ilane",
	    "IR instruction 4 (ilane): operand dst is %3, which is written before");
	bad("%1:S = sconst #3\n%1:S = loop %1\nendloop", "operand dst is %1, which is written before");
	bad("var %2:S\n%1:S = sconst #3\n%2:S = loop %1\nendloop",
	    "IR instruction 1 (loop): operand dst is the variable %2, expected a plain register");
	bad("var %3:O\n%1:A = arg\n%3:O = oload %1 @0/1*32", "operand dst is the variable %3");
}

static void test_loops(void **unused)
{
	char text[2048] = "%1:S = sconst #1\n";

	bad("endloop", "IR instruction 0 (endloop): no loop is open");
	bad("%1:S = sconst #1\n%2:S = loop %1\nendloop\nendloop", "IR instruction 3 (endloop): no loop is open");
	bad("%1:S = sconst #1\n%2:S = loop %1", "1 loops are open at its end, expected none");
	bad("%1:S = sconst #1\n%2:S = loop %1\n%3:S = loop %1\nendloop", "1 loops are open");
	for (int k = 0; k < IR_MAX_LOOP_DEPTH; k++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%%%d:S = loop %%1\n", 2 + k);
	for (int k = 0; k < IR_MAX_LOOP_DEPTH; k++)
		strcat(text, "endloop\n");
	good(text);
	strcpy(text, "%1:S = sconst #1\n");
	for (int k = 0; k <= IR_MAX_LOOP_DEPTH; k++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%%%d:S = loop %%1\n", 2 + k);
	bad(text, "IR instruction 17 (loop): loops nest deeper than 16");
}

static void test_ifs(void **unused)
{
#define CONDITION "%1:S = sconst #1\n%2:C = seq %1 %1\n"
	char text[2048] = CONDITION;

	good(CONDITION "if %2\nelse\nendif\nif %2\nif %2\nendif\nendif");
	good(CONDITION "%3:S = loop %1\nif %2\n%4:S = loop %1\nbreak %2\nendloop\nelse\nbreak %2\nendif\nbreak %2\n"
	               "endloop");
	bad("else", "IR instruction 0 (else): no if is open that it can belong to");
	bad("endif", "IR instruction 0 (endif): no if is open that it can belong to");
	bad(CONDITION "break %2", "IR instruction 2 (break): no loop is open");
	bad(CONDITION "if %2\nbreak %2\nendif", "IR instruction 3 (break): no loop is open");
	bad(CONDITION "if %2\nelse\nelse\nendif", "IR instruction 4 (else): no if is open that it can belong to");
	bad(CONDITION "if %2\nendif\nelse", "IR instruction 4 (else): no if is open");
	bad(CONDITION "if %2\n%3:S = loop %1\nendif\nendloop",
	    "IR instruction 4 (endif): no if is open that it can belong to");
	bad(CONDITION "if %2\n%3:S = loop %1\nelse\nendloop\nendif", "IR instruction 4 (else): no if is open");
	bad(CONDITION "%3:S = loop %1\nif %2\nendloop\nendif",
	    "IR instruction 4 (endloop): an if is open, expected its endif first");
	bad(CONDITION "if %2\nendloop\nendif", "IR instruction 3 (endloop): no loop is open");
	bad(CONDITION "if %2", "1 loops and ifs are open at its end, expected none");
	bad(CONDITION "if %2\nelse", "1 loops and ifs are open at its end, expected none");
	bad(CONDITION "if %2\n%3:A = local #64\nendif",
	    "IR instruction 3 (local): a local stands inside an if, expected outside");
	bad(CONDITION "if %2\nelse\n%3:A = shared #64\nendif",
	    "IR instruction 4 (shared): shared bytes stand inside an if, expected outside");
	bad("%1:S = sconst #1\nif %1\nendif", "operand a is %1 of kind S, expected kind C");
	bad("%1:I = ilane\n%2:M = ieq %1 %1\nif %2\nendif", "operand a is %2 of kind M, expected kind C");
	for (int k = 0; k < IR_MAX_DEPTH; k++)
		strcat(text, "if %2\n");
	for (int k = 0; k < IR_MAX_DEPTH; k++)
		strcat(text, k % 2 ? "endif\n" : "else\nendif\n");
	good(text);
	strcpy(text, CONDITION);
	for (int k = 0; k <= IR_MAX_DEPTH; k++)
		strcat(text, "if %2\n");
	bad(text, "IR instruction 34 (if): loops and ifs nest deeper than 32");
}

/* What one part defines is defined nowhere else; a break takes nothing back. */
static void test_definitions_in_parts(void **unused)
{
	bad(CONDITION "if %2\n%3:I = ilane\nendif\n%4:I = iadd %3 %3",
	    "IR instruction 5 (iadd): operand a is %3, which is not defined on every path");
	bad(CONDITION "if %2\n%3:I = ilane\nelse\n%4:I = iadd %3 %3\nendif", "not defined on every path");
	bad(CONDITION "var %3:I\nif %2\n%3:I = ilane\nelse\n%3:I = ilane\nendif\n%4:I = iadd %3 %3",
	    "not defined on every path");
	good(CONDITION "var %3:I\n%3:I = ilane\nif %2\n%3:I = iadd %3 %3\nelse\n%4:I = iadd %3 %3\nendif\n"
	               "%5:I = iadd %3 %3");
	good(CONDITION "%3:S = loop %1\n%4:I = ilane\nbreak %2\n%5:I = iadd %4 %4\nendloop");
	bad(CONDITION "%3:S = loop %1\n%4:I = ilane\nbreak %2\nendloop\n%5:I = iadd %4 %4",
	    "not defined on every path");
#undef CONDITION
}

static void test_masks(void **unused)
{
#define MASK "%1:A = arg\n%2:I = ilane\n%3:M = ieq %2 %2\n"
	good(MASK "%4:F = fload %1 @0 ?%3\n%5:F = fload_h %1 @0/3 ?%3\n%6:I = iload_u8 %1 @0/2\n"
	          "%7:I = iload_s %1 @0*4 ?%3\n%8:I = igather %1 %2 @0 ?%3\nfstore %1 %4 @0/5 ?%3\n"
	          "fstore_hs %1 %4 @0/5*2 ?%3\nistore_8 %1 %2 @0/5 ?%3");
	bad(MASK "%4:I = iadd %2 %2 ?%3", "IR instruction 3 (iadd): mask is %3, expected none");
	bad(MASK "%4:I = ibcast %1 @0 ?%3", "IR instruction 3 (ibcast): mask is %3, expected none");
	bad(MASK "%4:F = fawait %1 @0*4 ?%3", "IR instruction 3 (fawait): mask is %3, expected none");
	bad(MASK "%4:F = fload %1 @0 ?%2", "IR instruction 3 (fload): operand mask is %2 of kind I, expected kind M");
	bad(MASK "%4:F = fload %1 @0 ?%9", "operand mask is %9");
	bad(MASK "%4:S = sconst #1\n%5:S = loop %4\n%6:M = mnot %3\nendloop\n%7:F = fload %1 @0 ?%6",
	    "operand mask is %6, which is not defined on every path");
#undef MASK
}

static void test_locals(void **unused)
{
	good("%1:A = local #1048576");
	bad("%1:S = sconst #1\n%2:S = loop %1\n%3:A = local #64\nendloop",
	    "IR instruction 2 (local): a local stands inside a loop, expected outside");
	bad("%1:A = local #0", "immediate is 0, expected 1..1048576");
	bad("%1:A = local #-64", "immediate is -64");
	bad("%1:A = local #100\n%2:A = local #1048449",
	    "IR instruction 1 (local): immediate is 1048449, expected 1..1048448");
}

static void test_shared(void **unused)
{
	struct ir b;

	good("waves 8\n%1:A = shared #229376\n%2:S = wave\nbarrier");
	good("waves 16");
	bad("waves 0", "waves is 0, expected 1 to 16");
	bad("waves 17", "waves is 17, expected 1 to 16");
	bad("%1:A = shared #0", "immediate is 0, expected 1..229376");
	bad("%1:A = shared #100\n%2:A = shared #229249",
	    "IR instruction 1 (shared): immediate is 229249, expected 1..229248");
	bad("%1:S = sconst #1\n%2:S = loop %1\n%3:A = shared #64\nendloop",
	    "IR instruction 2 (shared): shared bytes stand inside a loop, expected outside");
	ir_init(&b, 8);
	ir_shared(&b, 100);
	assert_int_equal(b.shared_bytes, 128);
	assert_true(ir_verify(&b, NULL));
	b.shared_bytes = 64;
	expect(&b, "shared_bytes is 64, its shared rows take 128");
	b.shared_bytes = 128;
	b.cooperative = false;
	expect(&b, "cooperative is 0, its rows make it 1");
	ir_free(&b);
}

static void test_immediates(void **unused)
{
	static const char I[] = "%1:I = ilane\n", S[] = "%1:S = sconst #5\n", A[] = "%1:A = arg\n";
	static const struct {
		const char *before, *row;
		int64_t low, high;
	} ranges[] = {
		{ "", "%2:I = iconst #", INT32_MIN, UINT32_MAX },
		{ "", "%2:F = fconst #", 0, UINT32_MAX },
		{ I, "%2:I = ishl %1 #", 0, 31 },
		{ I, "%2:I = ishr %1 #", 0, 31 },
		{ I, "%2:I = isar %1 #", 0, 31 },
		{ I, "%2:I = irotl %1 #", 0, 31 },
		{ I, "%2:I = ilut16 %1 #", 0, LANES_TABLES - 1 },
		{ I, "%2:F = fhalf %1 #", 0, 1 },
		{ S, "%2:S = sshli %1 #", 0, 63 },
		{ S, "%2:S = sshri %1 #", 0, 63 },
		{ S, "%2:S = smuli %1 #", INT32_MIN, INT32_MAX },
		{ S, "%2:S = sandi %1 #", 0, INT32_MAX },
		{ S, "%2:S = sdivi %1 #", 1, INT32_MAX },
		{ A, "%2:A = aaddi %1 #", INT32_MIN, INT32_MAX },
		{ A, "%2:I = ibcast %1 @", INT32_MIN, INT32_MAX },
		{ A, "%2:F = fbcast_h %1 @", INT32_MIN, INT32_MAX },
		{ A, "%2:S = sload32 %1 @", INT32_MIN, INT32_MAX },
		{ A, "%2:A = aload %1 @", INT32_MIN, INT32_MAX },
		{ A, "prefetch %1 @", INT32_MIN, INT32_MAX },
		{ "", "copied #", 0, IR_MAX_COPIES },
	};
	char text[256];

	for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
		const long long low = ranges[k].low, high = ranges[k].high, values[] = { low, high, low - 1, high + 1 };

		for (int j = 0; j < 4; j++) {
			snprintf(text, sizeof text, "%s%s%lld", ranges[k].before, ranges[k].row, values[j]);
			if (j < 2)
				good(text);
			else
				bad(text, "immediate is ");
		}
	}
	good("%1:S = sconst #-9223372036854775807");
	good("%1:S = sconst #1\n%2:S = saddi %1 #9223372036854775807");
}

static void test_exchange(void **unused)
{
	char text[128];

	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (int imm = -1; imm <= 33; imm++) {
			snprintf(text, sizeof text, "lanes %u\n%%1:F = fconst #0\n%%2:F = fxor %%1 #%d", lanes, imm);
			if (imm > 0 && imm < (int)lanes && (imm & (imm - 1)) == 0)
				good(text);
			else
				bad(text, "IR instruction 1 (fxor): immediate is ");
		}
}

static void test_lane_counts(void **unused)
{
	char text[256];

	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (unsigned n = 1; n <= 33; n++) {
			snprintf(text, sizeof text, "lanes %u\n%%1:A = arg\n%%2:F = fload %%1 @0/%u", lanes, n);
			if (n <= lanes)
				good(text);
			else
				bad(text, "lane count is ");
		}
	bad("%1:A = arg\n%2:F = fconst #0\nfstore %1 %2 @0/9",
	    "IR instruction 2 (fstore): lane count is 9, expected at most 8");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_h %1 %2 @0/9", "lane count is 9");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_s %1 %2 @0/9*4", "lane count is 9");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_hs %1 %2 @0/9*4", "lane count is 9");
	good("%1:A = arg\n%2:F = fconst #0\nfstore_hs %1 %2 @-8/8*2");
}

static void test_strides(void **unused)
{
	good("%1:A = arg\n%2:F = fconst #0\nfstore_s %1 %2 @0*4\nfstore_hs %1 %2 @0*2\nfstore_s %1 %2 @0*16777215");
	bad("%1:A = arg\n%2:F = fload %1 @0*4", "IR instruction 1 (fload): stride is 4, expected none");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore %1 %2 @0*4", "stride is 4, expected none");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_h %1 %2 @0*2", "stride is 2, expected none");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_s %1 %2 @0", "stride is 0, expected at least 4");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_s %1 %2 @0*3", "stride is 3, expected at least 4");
	good("%1:A = arg\n%2:F = fawait %1 @0/3*4\n%3:F = fawait %1 @4*16");
	bad("%1:A = arg\n%2:F = fawait %1 @0/3", "stride is 0 for 3 lanes");
	bad("%1:A = arg\n%2:F = fawait %1 @0/3*8", "stride is 8 for 3 lanes");
	bad("%1:A = arg\n%2:F = fawait %1 @0*6", "stride is 6");
	bad("%1:A = arg\n%2:F = fawait %1 @0/9*4", "lane count is 9");
	bad("%1:A = arg\n%2:F = fconst #0\nfstore_hs %1 %2 @0*1", "stride is 1, expected at least 2");
	good("%1:A = arg\n%2:I = iload_s %1 @-6*16777212");
	bad("%1:A = arg\n%2:I = iload_s %1 @0",
	    "IR instruction 1 (iload_s): stride is 0 for 8 lanes, expected a multiple of 4 for all lanes");
	bad("%1:A = arg\n%2:I = iload_s %1 @0*6", "stride is 6");
	bad("%1:A = arg\n%2:I = iload_s %1 @0/4*16", "stride is 16 for 4 lanes");
}

/* Tiles and operands in memory. */
static void refuse(uint16_t (*emit)(struct ir *b, ir_a p), const char *why)
{
	struct ir b;
	ir_init(&b, 32);
	emit(&b, ir_aload(&b, ir_arg(&b), 0));
	expect(&b, why);
	ir_free(&b);
}

static uint16_t no_step(struct ir *b, ir_a p) { return ir_oload(b, p, 0, 32, 0).r; }
static uint16_t odd_strips(struct ir *b, ir_a p) { return ir_oload(b, p, 0, 24, 1).r; }
static uint16_t odd_vector(struct ir *b, ir_a p) { return ir_oload_swizzled(b, p, 0, 3).r; }
static uint16_t far_vector(struct ir *b, ir_a p) { return ir_oload_swizzled(b, p, 0, 8).r; }
static uint16_t odd_words(struct ir *b, ir_a p) { return ir_tload(b, p, 0, 6, 4).r; }
static uint16_t odd_halves(struct ir *b, ir_a p) { return ir_tload_h(b, p, 0, 6, 1).r; }
static uint16_t overlap(struct ir *b, ir_a p) { return ir_tstore(b, p, ir_tconst(b, 0), 0, 60, 4), 0; }

static uint16_t overlap_top(struct ir *b, ir_a p) { return ir_tstore_top(b, p, ir_tconst(b, 0), 0, 60, 4), 0; }
static uint16_t overlap_vectors(struct ir *b, ir_a p)
{
	return ir_ostore(b, p, ir_oload(b, p, 0, 32, 1), 0, 16, 15), 0;
}

static void test_matrices(void **unused)
{
	refuse(overlap_vectors, "makes vectors overlap");
	refuse(no_step, "a step of 1 or more");
	refuse(odd_strips, "a stride that is a multiple of 16");
	refuse(odd_vector, "expected 0, 2, 4 or 6 and 128");
	refuse(far_vector, "expected 0, 2, 4 or 6 and 128");
	refuse(odd_words, "expected multiples of 4");
	refuse(odd_halves, "expected multiples of 2");
	refuse(overlap, "makes elements overlap");
	refuse(overlap_top, "makes elements overlap");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_malformed_instructions),
		cmocka_unit_test(test_definition_before_use),
		cmocka_unit_test(test_definition_in_loops),
		cmocka_unit_test(test_single_write),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_ifs),
		cmocka_unit_test(test_definitions_in_parts),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_locals),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_immediates),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_lane_counts),
		cmocka_unit_test(test_strides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
