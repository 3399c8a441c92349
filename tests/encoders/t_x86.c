/* tests/encoders/t_x86.c - the x86 encoder against bytes that another assembler made, and every refusal's sentence.
 *
 * Owns: reading tests/golden/x86.txt (made by gen_x86_golden) and a small parser of its assembly text, so that what is
 * compared is text against bytes. The rule: a row of x86.def without a golden is a failure, so a new row needs a new
 * file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/x86_form.h"
#include "tests/support/shared.h"
#include "tests/encoders/x86_golden.h"
#include "tests/encoders/x86_test.h"

static const char *const op_ids[X86_OP_COUNT] = {
#define X86(id, ...) #id,
#define X86_ALT(id, ...)
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
};

/* --- reading assembly text */

struct parsed {
	enum x86_op op;
	struct x86_operand o[4];
	unsigned mask;
	bool zeroing;
	bool rip;       /* the memory operand is rip + disp: a label at the instruction's end, plus disp */
	char label[32]; /* the name of a label that an operand names, or "" */
};

static char *blanks(char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

static int general_register(const char *name, int *bits)
{
	static const char *const names[8][5] = {
		{ "rax", "eax", "ax", "al", "" },  { "rcx", "ecx", "cx", "cl", "" },  { "rdx", "edx", "dx", "dl", "" },
		{ "rbx", "ebx", "bx", "bl", "" },  { "rsp", "esp", "sp", "spl", "" }, { "rbp", "ebp", "bp", "bpl", "" },
		{ "rsi", "esi", "si", "sil", "" }, { "rdi", "edi", "di", "dil", "" }
	};
	int n, used = 0;

	for (int r = 0; r < 8; r++)
		for (int k = 0; k < 4; k++)
			if (strcmp(name, names[r][k]) == 0) {
				*bits = 64 >> k;
				return r;
			}
	if (sscanf(name, "r%d%n", &n, &used) != 1 || n < 8 || n > 15)
		return -1;
	name += used;
	*bits = !*name ? 64 : *name == 'd' ? 32 : *name == 'w' ? 16 : 8;
	return n;
}

/* A register by name; vsib takes the number of any vector register. */
static bool parse_register(const char *name, struct x86_operand *o)
{
	int n, bits;

	if (sscanf(name, "xmm%d", &n) == 1)
		*o = x86_xmm(n);
	else if (sscanf(name, "ymm%d", &n) == 1)
		*o = x86_ymm(n);
	else if (sscanf(name, "zmm%d", &n) == 1)
		*o = x86_zmm(n);
	else if (sscanf(name, "k%d", &n) == 1)
		*o = x86_k(n);
	else if (sscanf(name, "tmm%d", &n) == 1)
		*o = x86_tmm(n);
	else if ((n = general_register(name, &bits)) >= 0)
		*o = bits == 64 ? x86_r64(n) : x86_r32(n);
	else
		return false;
	return true;
}

/* [base+index*scale+disp], [rip+disp] or [rip+label] */
static char *parse_memory(char *p, struct parsed *out, struct x86_operand *o)
{
	int base = X86_NO_BASE, index = X86_NO_INDEX, scale = 1;
	long disp = 0;

	while (*p != ']') {
		char name[32], *star;
		if (*p == '+')
			p++;
		size_t n = strcspn(p, (*p == '-') ? "]" : "+-]");
		snprintf(name, sizeof name, "%.*s", (int)n, p);
		p += n;
		star = strchr(name, '*');
		struct x86_operand r;
		if (star)
			*star = 0;
		if (strcmp(name, "rip") == 0) {
			out->rip = true;
		} else if (star || parse_register(name, &r)) {
			assert_true(parse_register(name, &r));
			*(star ? &index : &base) = r.reg;
			scale = star ? atoi(star + 1) : scale;
		} else if (isdigit((unsigned char)name[0]) || name[0] == '-') {
			disp = strtol(name, NULL, 10);
		} else {
			snprintf(out->label, sizeof out->label, "%s", name);
		}
	}
	*o = out->rip ? x86_mem_label(0, (int32_t)disp) : x86_mem_index(base, index, scale, (int32_t)disp);
	p++;
	if (strncmp(p, "{1to", 4) == 0) {
		*o = x86_mem_broadcast(*o);
		p = strchr(p, '}') + 1;
	}
	return p;
}

static char *parse_operand(char *p, struct parsed *out, struct x86_operand *o)
{
	static const char *const sizes[] = { "byte ptr ", "dword ptr ", "qword ptr ", "word ptr " };
	char name[32];

	for (int i = 0; i < 4; i++)
		if (strncmp(p, sizes[i], strlen(sizes[i])) == 0)
			p += strlen(sizes[i]);
	if (*p == '[')
		return parse_memory(p + 1, out, o);
	if (isdigit((unsigned char)*p) || *p == '-') {
		*o = x86_imm(strtoll(p, &p, 10));
		return p;
	}
	size_t n = strcspn(p, ", ");
	snprintf(name, sizeof name, "%.*s", (int)n, p);
	if (!parse_register(name, o)) {
		snprintf(out->label, sizeof out->label, "%s", name);
		*o = x86_mem_label(0, 0);
	}
	return p + n;
}

static void parse_text(char *p, struct parsed *out)
{
	int n = 0;

	memset(out->o, 0, sizeof out->o);
	out->mask = 0;
	out->zeroing = out->rip = false;
	out->label[0] = 0;
	if (*p == '{')
		p = strchr(p, ' ') + 1; /* {vex} {vex3}: what we do anyway */
	p = blanks(p + strcspn(p, " "));
	while (*p) {
		assert_in_range(n, 0, 3);
		p = blanks(parse_operand(p, out, &out->o[n++]));
		if (strncmp(p, "{k", 2) == 0) {
			out->mask = (unsigned)p[2] - '0';
			p += 4;
			out->zeroing = strncmp(p, "{z}", 3) == 0;
			p += out->zeroing ? 3 : 0;
		}
		if (*p == ',')
			p = blanks(p + 1);
	}
}

/* --- goldens */

void hex_of(char *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", p[i]);
	out[2 * n] = 0;
}

static void append(struct x86 *x, const struct parsed *in)
{
	x->mask = (uint8_t)in->mask;
	x->zeroing = in->zeroing;
	x86_ins(x, in->op, in->o[0], in->o[1], in->o[2], in->o[3]);
}

/* "= OP n mode" to the row's index. */
static unsigned section_row(const char *line, bool *evex)
{
	char id[32], mode[8];
	unsigned alternative;

	assert_int_equal(sscanf(line, "= %31s %u %7s", id, &alternative, mode), 3);
	*evex = strcmp(mode, "evex") == 0;
	if (strcmp(id, "LABELS") == 0)
		return x86_row_count;
	for (unsigned r = 0; r < x86_row_count; r++)
		if (strcmp(op_ids[x86_rows[r].op], id) == 0) {
			assert_true(r + alternative < x86_row_count && x86_rows[r + alternative].op == x86_rows[r].op);
			return r + alternative;
		}
	fail_msg("golden file: x86.def has no row %s", id);
	return 0;
}

static bool encodes_as(char *text, const struct parsed *in, bool evex, const char *expected)
{
	struct x86 x;
	char hex[64];

	x86_init(&x);
	x.evex = evex;
	int end = x86_label(&x);
	append(&x, in);
	x86_bind(&x, end);
	bool ok = x86_finish(&x);
	assert_true(x.size <= 15);
	hex_of(hex, x.code, x.size);
	if (!ok || strcmp(hex, expected) != 0)
		print_error("%s\n  expected %s\n  encoded  %s %s\n", text, expected, hex, ok ? "" : x.error);
	ok = ok && strcmp(hex, expected) == 0;
	x86_free(&x);
	return ok;
}

static void test_golden(void **state)
{
	FILE *f = source_open("tests/golden/x86.txt");
	char line[512];
	unsigned row = x86_row_count, cases = 0, wrong = 0, *seen = calloc(2 * x86_row_count, sizeof *seen);
	bool evex = false;
	struct parsed in;

	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '=') {
			row = section_row(line, &evex);
			if (row == x86_row_count)
				break;
			continue;
		}
		char *semicolon = strchr(line, ';');
		assert_non_null(semicolon);
		*semicolon = 0;
		in.op = x86_rows[row].op;
		parse_text(line, &in);
		assert_string_equal(in.label, "");
		wrong += !encodes_as(line, &in, evex, semicolon + 1);
		if (!evex && !(x86_rows[row].facts & X86_HAS_EVEX)) /* then it is the only coding */
			wrong += !encodes_as(line, &in, true, semicolon + 1);
		seen[2 * row + evex]++;
		cases++;
		assert_in_range(wrong, 0, 30);
	}
	fclose(f);
	for (unsigned r = 0; r < x86_row_count; r++) {
		bool mask_register = strpbrk(x86_rows[r].sig, "kK"), has_evex = x86_rows[r].facts & X86_HAS_EVEX;
		bool vex = !mask_register && ((x86_rows[r].facts & X86_HAS_VEX) || !has_evex);
		if (x86_rows[r].form == X86_F_REL)
			continue; /* tested by the program of section LABELS */
		if ((vex && !seen[2 * r]) || ((mask_register || has_evex) && !seen[2 * r + 1]))
			fail_msg("row %s %s has no golden: run gen_x86_golden", op_ids[x86_rows[r].op],
			         x86_rows[r].sig);
	}
	free(seen);
	print_message("%u instructions encoded\n", cases);
	assert_int_equal(wrong, 0);
	assert_true(cases > 0);
}

/* --- the program of section LABELS */

struct program {
	char name[128][16];
	int label[128];
	int n;
	bool branch[X86_OP_COUNT];
};

static int program_label(struct program *p, struct x86 *x, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->name[i], name) == 0)
			return p->label[i];
	assert_in_range(p->n, 0, 127);
	snprintf(p->name[p->n], sizeof p->name[0], "%s", name);
	return p->label[p->n++] = x86_label(x);
}

/* The op of a mnemonic whose rows take the operands; the text's memory sizes do not say which mov it is. */
static enum x86_op program_op(const char *text)
{
	char name[32];

	if (strncmp(text, "mov dword ptr", 13) == 0)
		return X86_MOV32I;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
	for (unsigned op = 0; op < X86_OP_COUNT; op++)
		if (strcmp(x86_op_name(op), name) == 0)
			return op;
	fail_msg("no instruction %s", name);
	return 0;
}

static void program_line(struct program *p, struct x86 *x, char *line)
{
	static const uint8_t zero[256];
	struct parsed in;
	char *colon = strchr(line, ':');

	if (colon) {
		*colon = 0;
		x86_bind(x, program_label(p, x, line));
	} else if (strncmp(line, ".fill ", 6) == 0) {
		x86_bytes(x, zero, strtoul(line + 6, NULL, 10));
	} else {
		in.op = program_op(line);
		parse_text(line, &in);
		for (int i = 0; i < 4; i++)
			if (in.o[i].cls == X86_MEM)
				in.o[i].label = program_label(p, x, in.label);
		p->branch[in.op] = true;
		append(x, &in);
	}
}

static void test_labels(void **state)
{
	static char line[1 << 16];
	struct program *p = calloc(1, sizeof *p);
	FILE *f = source_open("tests/golden/x86.txt");
	struct x86 x;
	bool in_program = false;

	x86_init(&x);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == ';')
			break;
		if (in_program)
			program_line(p, &x, line);
		in_program |= strncmp(line, "= LABELS", 8) == 0;
	}
	fclose(f);
	assert_true(in_program && line[0] == ';');
	if (!x86_finish(&x))
		fail_msg("%s: %s", x86_op_name(x.error_op), x.error);
	char *hex = malloc(2 * x.size + 1);
	hex_of(hex, x.code, x.size);
	assert_string_equal(hex, line + 1);
	for (unsigned r = 0; r < x86_row_count; r++)
		if (x86_rows[r].form == X86_F_REL && !p->branch[x86_rows[r].op])
			fail_msg("branch %s has no golden: run gen_x86_golden", op_ids[x86_rows[r].op]);
	free(hex);
	free(p);
	x86_free(&x);
}

static void test_regenerate(void **state)
{
	static char a[1 << 16], b[1 << 16];
	const char *assembler = x86_golden_assembler();
	char why[1024];

	if (!assembler) {
		print_message("no llvm-mc and objcopy on PATH: the golden file is not made anew\n");
		skip();
	}
	FILE *made = tmpfile(), *kept = source_open("tests/golden/x86.txt");
	assert_non_null(made);
	if (!x86_golden_write(made, assembler, why, sizeof why))
		fail_msg("%s", why);
	rewind(made);
	for (;;) {
		bool more_a = fgets(a, sizeof a, made), more_b = fgets(b, sizeof b, kept);
		if (!more_a && !more_b)
			break;
		assert_true(more_a == more_b);
		assert_string_equal(a, b);
	}
	fclose(made);
	fclose(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_regenerate),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += x86_refusal_tests();
	failed += x86_label_tests();
	return failed;
}
