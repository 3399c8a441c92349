/* tests/encoders/t_rdna.c - the RDNA encoder against bytes that another assembler made, and every refusal's sentence.
 *
 * Owns: comparing tests/golden/rdna.txt (made by gen_rdna_golden) line by line with what the encoder makes of the same
 * list. The rule: a row of rdna.def that meets no golden in a generation where it exists is a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "encoders/rdna_form.h"
#include "tests/encoders/rdna_assembler.h"
#include "tests/encoders/rdna_golden.h"
#include "tests/encoders/rdna_random.h"
#include "tests/support/shared.h"
#include "tests/encoders/rdna_test.h"

static void hex_of(char *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", p[i]);
	out[2 * n] = 0;
}

/* --- goldens */

/* A branch is encoded with its target bound `branch` words behind its end, or before it. */
static void encode_branch(struct rdna *r, const struct rdna_case *c, char hex[80])
{
	static const uint8_t zeros[4 * 32768];
	struct rdna_ins x = c->x;
	int label = rdna_label(r);

	for (unsigned i = 0; i < 4; i++)
		if (x.s[i].kind == RDNA_LABEL)
			x.s[i] = rdna_to(label);
	if (c->branch < 0) {
		rdna_bind(r, label);
		rdna_bytes(r, zeros, 4 * (size_t)(-1 - c->branch));
	}
	size_t at = r->size;
	rdna_put(r, &x);
	if (c->branch >= 0) {
		rdna_bytes(r, zeros, 4 * (size_t)c->branch);
		rdna_bind(r, label);
	}
	if (rdna_finish(r))
		hex_of(hex, r->code + at, 4);
}

/* What is laid out at a glance is what all rules together make of it. Returns whether it was. */
static bool glance(const struct rdna_case *c, const char *text)
{
	struct rdna_plain p;
	struct rdna checked;
	uint32_t w[4];
	unsigned n = c->dual || !rdna_plain_of(&p, &c->x) ? 0 : rdna_encode_plain(c->x.op, c->gen, &p, w);

	if (!c->dual && !n && c->x.s[0].kind == RDNA_CONST &&
	    (w[0] = rdna_encode_immediate(c->x.op, c->gen, (int32_t)c->x.s[0].value)))
		n = 1;
	if (!n)
		return false;
	rdna_init(&checked, c->gen);
	rdna_put_checked(&checked, &c->x);
	if (checked.error)
		fail_msg("%s: %s is taken at a glance, but %s", rdna_golden_target[c->gen], text, checked.error);
	assert_int_equal(checked.size, 4 * n);
	for (unsigned i = 0; i < n; i++)
		if (memcmp(&checked.code[4 * i],
		           &(uint8_t[4]){ (uint8_t)w[i], (uint8_t)(w[i] >> 8), (uint8_t)(w[i] >> 16),
		                          (uint8_t)(w[i] >> 24) },
		           4))
			fail_msg("%s: %s at a glance has word %u %08x", rdna_golden_target[c->gen], text, i, w[i]);
	rdna_free(&checked);
	return true;
}

struct judge {
	FILE *golden;
	unsigned cases[RDNA_GEN_COUNT], absent, plain;
	bool seen[RDNA_OP_COUNT][RDNA_GEN_COUNT];
};

static void judge_case(void *ctx, const struct rdna_case *c)
{
	struct judge *j = ctx;
	struct rdna r;
	char line[600], text[400], hex[80] = "", want[1100];

	rdna_golden_text(c, text);
	rdna_init(&r, c->gen);
	if (c->branches && !c->absent)
		encode_branch(&r, c, hex);
	else if (c->dual)
		rdna_put_dual(&r, &c->x, &c->y);
	else
		rdna_put(&r, &c->x);
	if (c->absent) {
		assert_non_null(r.error);
		assert_string_equal(r.error, "the generation lacks the instruction");
		assert_int_equal(r.error_op, c->x.op);
		strcpy(hex, "-");
		j->absent++;
	} else {
		if (r.error)
			fail_msg("%s: %s: %s", rdna_golden_target[c->gen], text, r.error);
		if (!c->branches)
			hex_of(hex, r.code, r.size);
		j->cases[c->gen]++;
	}
	j->seen[c->x.op][c->gen] = true;
	j->plain += glance(c, text);
	if (!fgets(line, sizeof line, j->golden))
		fail_msg("the golden file ends before %s", text);
	snprintf(want, sizeof want, "%s;%s;%s\n", rdna_golden_target[c->gen], text, hex);
	if (strcmp(line, want) != 0)
		fail_msg("golden %sencoder %s", line, want);
	rdna_free(&r);
}

static void test_golden(void **state)
{
	static struct judge j;
	char line[600];
	unsigned total = 0;

	j.golden = source_open("tests/golden/rdna.txt");
	rdna_golden_each(judge_case, &j);
	assert_null(fgets(line, sizeof line, j.golden));
	fclose(j.golden);
	for (int op = 0; op < RDNA_OP_COUNT; op++)
		for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
			if (!j.seen[op][gen])
				fail_msg("no golden for %s on %s", rdna_op_name((enum rdna_op)op, (enum rdna_gen)gen),
				         rdna_golden_target[gen]);
	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
		total += j.cases[gen];
	assert_true(j.plain > total / 4);
	print_message("%u cases of %d instructions (%u, %u, %u, %u by generation), %u of them plain; %u absences\n",
	              total, RDNA_OP_COUNT, j.cases[0], j.cases[1], j.cases[2], j.cases[3], j.plain, j.absent);
}

/* The file is what the installed assembler says now. */
static void test_regenerate(void **state)
{
	const char *assembler = rdna_assembler();
	char why[1024], a[600], b[600];
	FILE *now = tmpfile(), *file = source_open("tests/golden/rdna.txt");

	if (!assembler) {
		print_message("no llvm-mc of version 19 or later: the golden file is not made anew\n");
		fclose(now);
		fclose(file);
		skip();
	}
	if (!rdna_golden_write(now, assembler, why, sizeof why))
		fail_msg("%s", why);
	rewind(now);
	while (fgets(a, sizeof a, now)) {
		assert_non_null(fgets(b, sizeof b, file));
		assert_string_equal(b, a);
	}
	assert_null(fgets(b, sizeof b, file));
	fclose(now);
	fclose(file);
}

/* --- random instructions: the encoder and the assembler agree on every one, taken or refused */

/* Rules that the assembler does not check, or only for some instructions. */
static bool stricter(const char *why)
{
	static const char *const ours[] = {
		"the destination of a matrix instruction must not overlap A or B",
		"the destination of a matrix instruction must be C or not overlap it",
		"a literal of a 64-bit operand must be 0 to 2^31-1, as its upper half may be either sign",
		"the destination cannot be this special register",
		"scc can only be read, and as 32 bits",
		"with DPP the sources of a packed instruction must be vector registers",
		"with DPP source 0 must be a vector register and there can be no literal"
	};

	for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strcmp(why, ours[i]) == 0)
			return true;
	return false;
}

static void random_encode(const struct rdna_case *c, char hex[80], const char **why)
{
	struct rdna r;

	rdna_init(&r, c->gen);
	if (c->dual)
		rdna_put_dual(&r, &c->x, &c->y);
	else
		rdna_put(&r, &c->x);
	*why = r.error;
	strcpy(hex, "-");
	if (!r.error)
		hex_of(hex, r.code, r.size);
	rdna_free(&r);
}

static void random_generation(const char *assembler, enum rdna_gen gen, unsigned n, unsigned *taken, unsigned *refused)
{
	struct rdna_sheet s = { 0 };
	uint64_t seed = 0x9e3779b97f4a7c15u + gen, again = seed;
	struct rdna_case c;
	char text[400], hex[80], why_not[600];
	const char *why;

	for (unsigned i = 0; i < n; i++) {
		rdna_random_case(&seed, gen, &c);
		rdna_golden_text(&c, text);
		rdna_sheet_add(&s, text);
	}
	if (!rdna_sheet_assemble(&s, assembler, rdna_golden_target[gen], why_not, sizeof why_not))
		fail_msg("%s", why_not);
	for (unsigned i = 0; i < n; i++) {
		rdna_random_case(&again, gen, &c);
		random_encode(&c, hex, &why);
		if (why && stricter(why))
			continue;
		if (strcmp(hex, s.hex[i]) != 0)
			fail_msg("%s %s: assembler %s, encoder %s (%s)", rdna_golden_target[gen], s.text[i], s.hex[i],
			         hex, why ? why : "taken");
		++*(why ? refused : taken);
	}
	rdna_sheet_clear(&s);
}

static void test_plain(void **state)
{
	struct rdna_case c;
	char text[400];
	unsigned plain = 0;

	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++) {
		uint64_t seed = 77 + (unsigned)gen;
		for (unsigned i = 0; i < 100000; i++) {
			rdna_random_case(&seed, (enum rdna_gen)gen, &c);
			rdna_golden_text(&c, text);
			plain += glance(&c, text);
		}
	}
	print_message("%u of 400000 random instructions are plain\n", plain);
	assert_true(plain > 10000);
}

static void test_random(void **state)
{
	const char *assembler = rdna_assembler();
	unsigned taken = 0, refused = 0;

	if (!assembler) {
		print_message("no llvm-mc of version 19 or later: random instructions are not compared\n");
		skip();
	}
	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
		random_generation(assembler, (enum rdna_gen)gen, 10000, &taken, &refused);
	print_message("%u random instructions, %u of them refused by both\n", taken + refused, refused);
}

/* --- labels, data, immediates, names */

static void test_labels(void **state)
{
	struct rdna r;

	rdna_init(&r, RDNA_GFX11);
	int top = rdna_label(&r), end = rdna_label(&r), here = rdna_label(&r), data = rdna_label(&r);
	rdna_bind(&r, top);
	rdna_put_branch(&r, RDNA_S_CBRANCH_SCC0, end);
	rdna_put1(&r, RDNA_S_GETPC_B64, S2(4), (struct rdna_operand){ 0 });
	rdna_bind(&r, here);
	rdna_put2(&r, RDNA_S_ADD_CO_U32, S(4), S(4), rdna_distance(data, here));
	rdna_put2(&r, RDNA_S_SUB_CO_U32, S(4), S(4), rdna_distance(here, data));
	rdna_put_branch(&r, RDNA_S_BRANCH, top);
	rdna_bind(&r, end);
	rdna_put0(&r, RDNA_S_ENDPGM);
	rdna_align(&r, 64);
	rdna_bind(&r, data);
	rdna_bytes(&r, "abc", 3);
	rdna_align(&r, 4);
	assert_true(rdna_finish(&r));
	char hex[400];
	hex_of(hex, r.code, r.size);
	assert_string_equal(hex, "0600a1bf"
	                         "004784be"
	                         "04ff048038000000"
	                         "04ff8480c8ffffff"
	                         "f9ffa0bf"
	                         "0000b0bf"
	                         "00009fbf00009fbf00009fbf00009fbf00009fbf00009fbf00009fbf00009fbf"
	                         "61626300");
	rdna_free(&r);
}

static void test_label_rules(void **state)
{
	static const uint8_t zeros[4 * 32768 + 4];
	struct rdna r;
	int l;

	rdna_init(&r, RDNA_GFX11);
	rdna_put_branch(&r, RDNA_S_BRANCH, rdna_label(&r));
	assert_false(rdna_finish(&r));
	assert_string_equal(r.error, "a label is used but never bound");
	assert_int_equal(r.error_op, RDNA_S_BRANCH);
	rdna_free(&r);

	rdna_init(&r, RDNA_GFX11);
	l = rdna_label(&r);
	rdna_bind(&r, l);
	rdna_bind(&r, l);
	assert_string_equal(r.error, "a label can be bound only once");
	assert_int_equal(r.error_op, RDNA_OP_COUNT);
	assert_int_equal(rdna_label(&r), -1);
	rdna_free(&r);
	assert_string_equal(r.error, "the encoder has been freed");

	rdna_init(&r, RDNA_GFX11);
	rdna_bind(&r, 0);
	assert_string_equal(r.error, "a label must come from rdna_label");
	rdna_free(&r);

	rdna_init(&r, RDNA_GFX11);
	rdna_put_branch(&r, RDNA_S_BRANCH, 5);
	assert_string_equal(r.error, "a label must come from rdna_label");
	rdna_free(&r);

	rdna_init(&r, RDNA_GFX11);
	l = rdna_label(&r);
	rdna_put_branch(&r, RDNA_S_BRANCH, l);
	rdna_bytes(&r, zeros, 4 * 32768);
	rdna_bind(&r, l);
	assert_false(rdna_finish(&r));
	assert_string_equal(r.error, "a branch's target must be within 32768 words");
	rdna_free(&r);

	rdna_init(&r, RDNA_GFX11);
	l = rdna_label(&r);
	rdna_put_branch(&r, RDNA_S_BRANCH, l);
	rdna_bytes(&r, zeros, 2);
	rdna_bind(&r, l);
	assert_false(rdna_finish(&r));
	assert_string_equal(r.error, "a branch's target must be a multiple of 4 bytes away");
	rdna_free(&r);

	rdna_init(&r, RDNA_GFX11);
	rdna_align(&r, 12);
	assert_string_equal(r.error, "an alignment must be a power of two, 4 at least");
	rdna_free(&r);

	rdna_init(&r, RDNA_GEN_COUNT);
	assert_string_equal(r.error, "the generation is not one of enum rdna_gen");
	rdna_free(&r);
}

static void test_many_labels(void **state)
{
	enum { N = 1000 };
	static int label[N];
	static size_t slot[N];
	struct rdna r;

	rdna_init(&r, RDNA_GFX10_3);
	for (int i = 0; i < N; i++)
		label[i] = rdna_label(&r);
	for (int i = 0; i < N; i++) {
		slot[i] = r.size;
		rdna_bind(&r, label[i]);
		rdna_put_branch(&r, RDNA_S_BRANCH, label[i * 7 % N]);
	}
	assert_true(rdna_finish(&r));
	for (int i = 0; i < N; i++) {
		int16_t distance;
		memcpy(&distance, r.code + slot[i], 2);
		assert_int_equal((int64_t)slot[i] + 4 + 4 * distance, (int64_t)slot[i * 7 % N]);
	}
	rdna_free(&r);
}

static void one(enum rdna_gen gen, struct rdna_ins x, const char *want)
{
	struct rdna r;
	char hex[80];

	rdna_init(&r, gen);
	rdna_put(&r, &x);
	if (r.error)
		fail_msg("%s: %s", rdna_op_name(x.op, gen), r.error);
	hex_of(hex, r.code, r.size);
	assert_string_equal(hex, want);
	rdna_free(&r);
}

/* What the goldens cannot say: a literal that an inline constant could replace, and the packed immediates by name. */
static void test_immediates(void **state)
{
	one(G10, (struct rdna_ins){ OP(S_MOV_B32), .d = { S(1) }, .s = { rdna_literal(1) } }, "ff0381be01000000");
	one(G10, (struct rdna_ins){ OP(S_MOV_B32), .d = { S(1) }, .s = { rdna_float(1.0f) } }, "f20381be");
	one(G11, (struct rdna_ins){ OP(V_MOV_B32), .d = { V(1) }, .s = { rdna_float(3.0f) } }, "ff02027e00004040");
	assert_int_equal(rdna_waitcnt(G10, -1, -1, -1), 0xff7f);
	assert_int_equal(rdna_waitcnt(G10, 0, -1, -1), 0x3f70);
	assert_int_equal(rdna_waitcnt(G10, 17, 2, 5), 0x4521);
	assert_int_equal(rdna_waitcnt(G10, -1, -1, 0), 0xc07f);
	assert_int_equal(rdna_waitcnt(G11, -1, -1, -1), 0xfff7 & 0xfff7);
	assert_int_equal(rdna_waitcnt(G11, 0, -1, -1), 0x03f7);
	assert_int_equal(rdna_waitcnt(G11, 17, 2, 5), 0x4452);
	assert_int_equal(rdna_waitcnt(G11, -1, -1, 0), 0xfc07);
	assert_int_equal(RDNA_WAIT_PAIR(2, 3), 0x203);
	assert_int_equal(RDNA_DEPCTR_VA_VDST(0), 0x0fff);
	assert_int_equal(RDNA_DEPCTR_VA_SDST(0), 0xf1ff);
	assert_int_equal(RDNA_DEPCTR_VA_SSRC(0), 0xfeff);
	assert_int_equal(RDNA_DEPCTR_VM_VSRC(0), 0xffe3);
	assert_int_equal(RDNA_DEPCTR_VA_VCC(0), 0xfffd);
	assert_int_equal(RDNA_DEPCTR_SA_SDST(0), 0xfffe);
	assert_int_equal(RDNA_DELAY(RDNA_DELAY_VALU_1, 1, RDNA_DELAY_SALU_2), 0x0511);
	assert_int_equal(RDNA_HWREG(RDNA_HW_MODE, 4, 2), 0x0901);
	assert_int_equal(RDNA_SWIZZLE(31, 0, 16), 0x401f);
}

static void test_names(void **state)
{
	bool second;

	assert_string_equal(rdna_op_name(RDNA_S_LOAD_B32, G10), "s_load_dword");
	assert_string_equal(rdna_op_name(RDNA_S_LOAD_B32, G11), "s_load_b32");
	assert_string_equal(rdna_op_name(RDNA_V_MIN_NUM_F32, G115), "v_min_f32");
	assert_string_equal(rdna_op_name(RDNA_V_MIN_NUM_F32, G12), "v_min_num_f32");
	assert_string_equal(rdna_op_name(RDNA_OP_COUNT, G12), "none");
	assert_true(rdna_has(RDNA_S_ADD_F32, G115));
	assert_false(rdna_has(RDNA_S_ADD_F32, G11));
	assert_false(rdna_has(RDNA_OP_COUNT, G11));
	assert_int_equal(rdna_dual_opcode(RDNA_V_AND_B32, G11, &second), 18);
	assert_true(second);
	assert_int_equal(rdna_dual_opcode(RDNA_V_AND_B32, G10, &second), -1);
	assert_int_equal(rdna_dual_opcode(RDNA_V_DOT2ACC_F32_F16, G12, &second), -1);
	assert_int_equal(rdna_gen_of("gfx1036"), G10);
	assert_int_equal(rdna_gen_of("gfx1103"), G11);
	assert_int_equal(rdna_gen_of("gfx1151"), G115);
	assert_int_equal(rdna_gen_of("gfx1201"), G12);
	assert_int_equal(rdna_gen_of("gfx90a"), RDNA_GEN_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),      cmocka_unit_test(test_regenerate),
		cmocka_unit_test(test_plain),       cmocka_unit_test(test_random),
		cmocka_unit_test(test_labels),      cmocka_unit_test(test_label_rules),
		cmocka_unit_test(test_many_labels), cmocka_unit_test(test_immediates),
		cmocka_unit_test(test_names),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += rdna_refusal_tests();
	return failed;
}
