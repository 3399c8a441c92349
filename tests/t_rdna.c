/* tests/t_rdna.c - the RDNA encoder against bytes that another assembler made, and every refusal's sentence.
 *
 * Owns: comparing tests/golden/rdna.txt (made by gen_rdna_golden) line by line with what the encoder makes of the same list.
 * The rule: a row of rdna.def that meets no golden in a generation where it exists is a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rdna_form.h"
#include "tests/rdna_golden.h"

static FILE *golden_open(void)
{
	const char *dir = getenv("srcdir");
	char path[1024];

	snprintf(path, sizeof path, "%s/tests/golden/rdna.txt", dir ? dir : ".");
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be opened", path);
	return f;
}

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

struct judge { FILE *golden; unsigned cases[RDNA_GEN_COUNT], absent; bool seen[RDNA_OP_COUNT][RDNA_GEN_COUNT]; };

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

	j.golden = golden_open();
	rdna_golden_each(judge_case, &j);
	assert_null(fgets(line, sizeof line, j.golden));
	fclose(j.golden);
	for (int op = 0; op < RDNA_OP_COUNT; op++)
		for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
			if (!j.seen[op][gen])
				fail_msg("no golden for %s on %s", rdna_op_name((enum rdna_op)op, (enum rdna_gen)gen), rdna_golden_target[gen]);
	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
		total += j.cases[gen];
	print_message("%u cases of %d instructions (%u, %u, %u, %u by generation); %u absences\n", total, RDNA_OP_COUNT, j.cases[0],
	              j.cases[1], j.cases[2], j.cases[3], j.absent);
}

/* The file is what the installed assembler says now. */
static void test_regenerate(void **state)
{
	const char *assembler = rdna_golden_assembler();
	char why[1024], a[600], b[600];
	FILE *now = tmpfile(), *file = golden_open();

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_regenerate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
