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

static void hex_of(char *out, const uint8_t *p, size_t n)
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

/* --- refusals */

#define R(n) x86_r64(n)
#define D(n) x86_r32(n)
#define Y(n) x86_ymm(n)
#define K(n) x86_k(n)
#define T(n) x86_tmm(n)
#define I(n) x86_imm(n)
#define MEM x86_mem(X86_RAX, 0)
#define NONE \
	{ \
		.cls = X86_NONE \
	}
#define VSIB(n) x86_mem_index(X86_RAX, n, 4, 0)

struct refusal {
	const char *rule;
	enum x86_op op;
	struct x86_operand o[4];
	bool evex;
	uint8_t mask;
	bool zeroing;
};

static void refuse(const struct refusal *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct x86 x;
		x86_init(&x);
		x.evex = r[i].evex;
		x.mask = r[i].mask;
		x.zeroing = r[i].zeroing;
		x86_label(&x);
		x86_ins(&x, r[i].op, r[i].o[0], r[i].o[1], r[i].o[2], r[i].o[3]);
		if (!x.error)
			fail_msg("refusal %u, %s: accepted, but %s", i, x86_op_name(r[i].op), r[i].rule);
		assert_string_equal(x.error, r[i].rule);
		assert_int_equal(x.error_op, r[i].op);
		assert_int_equal(x.size, 0);
		x86_ins(&x, X86_RET, X86_0, X86_0, X86_0, X86_0);
		assert_int_equal(x.size, 0);
		assert_false(x86_finish(&x));
		x86_free(&x);
	}
}

#define REFUSE(r) refuse(r, sizeof r / sizeof r[0])

static void test_refused_operands(void **state)
{
	const struct refusal r[] = {
		{ "an operand is missing", X86_MOV, { R(0) }, 0, 0, 0 },
		{ "an operand is missing", X86_VADDPS, { Y(0), Y(1) }, 0, 0, 0 },
		{ "an operand is missing", X86_VADDPS, { NONE }, 0, 0, 0 },
		{ "there is an operand too many", X86_RET, { R(0) }, 0, 0, 0 },
		{ "there is an operand too many", X86_VADDPS, { Y(0), Y(1), Y(2), Y(3) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_VADDPS, { MEM, Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_VADDPS, { Y(1), MEM, MEM }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_MOV, { MEM, MEM }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_ADD, { MEM, I(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_LEA, { R(0), R(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_PREFETCHT0, { R(0) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_MOV8, { D(0), D(1) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_MOV, { R(0), D(1) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_PUSH, { D(1) }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_IMUL, { D(0), R(1) }, 0, 0, 0 },
		{ "the operand must be a 32-bit general register", X86_SETE, { R(1) }, 0, 0, 0 },
		{ "the operand must be an xmm register", X86_VMOVSS, { x86_xmm(0), x86_xmm(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be an xmm register", X86_VPMOVZXBD, { Y(0), Y(1) }, 0, 0, 0 },
		{ "the operand must be a ymm register", X86_VADDPS, { Y(0), x86_xmm(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a ymm register", X86_VCVTPH2PS, { x86_zmm(0), x86_zmm(1) }, 1, 0, 0 },
		{ "the operand must be a zmm register", X86_VADDPS, { x86_zmm(0), Y(1), Y(2) }, 1, 0, 0 },
		{ "the operand must be a mask register", X86_KANDW, { K(1), K(2), Y(1) }, 1, 0, 0 },
		{ "the operand must be a vector register", X86_VADDPS, { R(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the instruction has no 128-bit form", X86_VPERMD, { x86_xmm(0), x86_xmm(1), x86_xmm(2) }, 0, 0, 0 },
		{ "the instruction has no 128-bit form", X86_VEXTRACTI128, { x86_xmm(0), x86_xmm(1), I(1) }, 0, 0, 0 },
		{ "the instruction has only a 512-bit form", X86_VEXTRACTI64X4, { Y(0), Y(1), I(1) }, 1, 0, 0 },
		{ "a general register must be numbered 0 to 15", X86_MOV, { R(16), R(0) }, 0, 0, 0 },
		{ "a general register must be numbered 0 to 15", X86_MOV, { R(-1), R(0) }, 0, 0, 0 },
		{ "a vector register must be numbered 0 to 31", X86_VADDPS, { Y(32), Y(0), Y(0) }, 1, 0, 0 },
		{ "a mask register must be k0 to k7", X86_KANDW, { K(8), K(0), K(0) }, 1, 0, 0 },
		{ "the operand must be an immediate", X86_VPSHUFD, { Y(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a label", X86_JE, { R(0) }, 0, 0, 0 },
		{ "the operand must be a label", X86_JE, { MEM }, 0, 0, 0 },
		{ "a label must come from x86_label", X86_JE, { x86_mem_label(7, 0) }, 0, 0, 0 },
		{ "a label must come from x86_label", X86_LEA, { R(0), x86_mem_label(1, 0) }, 0, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_memory(void **state)
{
	const struct refusal r[] = {
		{ "rsp cannot be an index", X86_MOV, { R(0), x86_mem_index(0, X86_RSP, 1, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_MOV, { R(0), x86_mem_index(0, 1, 3, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_MOV, { R(0), x86_mem_index(0, 1, 0, 0) }, 0, 0, 0 },
		{ "a scale must be 1, 2, 4 or 8", X86_VMOVUPS, { Y(0), x86_mem_index(0, 1, 16, 0) }, 0, 0, 0 },
		{ "a base must be a general register numbered 0 to 15", X86_MOV, { R(0), x86_mem(16, 0) }, 0, 0, 0 },
		{ "an index must be a general register numbered 0 to 15",
		  X86_MOV,
		  { R(0), x86_mem_index(0, 16, 1, 0) },
		  0,
		  0,
		  0 },
		{ "an address needs a base, an index or a label",
		  X86_MOV,
		  { R(0), x86_mem(X86_NO_BASE, 64) },
		  0,
		  0,
		  0 },
		{ "a gather or scatter address must have a vector index",
		  X86_VGATHERDPS,
		  { Y(0), MEM, Y(2) },
		  0,
		  0,
		  0 },
		{ "a gather or scatter address must have a vector index",
		  X86_VGATHERDPS,
		  { Y(0), x86_mem_label(0, 0), Y(2) },
		  0,
		  0,
		  0 },
		{ "a vector register must be numbered 0 to 31", X86_VPGATHERDD, { Y(0), VSIB(32) }, 1, 1, 0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(0), Y(2) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(1), Y(0) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VGATHERDPS,
		  { Y(0), VSIB(1), Y(1) },
		  0,
		  0,
		  0 },
		{ "the destination, index and mask of a gather must differ",
		  X86_VPGATHERDD,
		  { x86_zmm(5), VSIB(5) },
		  1,
		  1,
		  0 },
	};
	REFUSE(r);
}

static void test_refused_tiles(void **state)
{
	static const char none[] =
		"the instruction has no EVEX form: no zmm, no register above 15, no mask, no broadcast";
	static const char pitch[] = "the address of a tile must have an index, the pitch of its rows";
	static const char differ[] = "the three tiles of a product must differ";
	const struct x86_operand rows = x86_mem_index(X86_RAX, X86_RCX, 1, 0);
	const struct refusal r[] = {
		{ "a tile register must be tmm0 to tmm7", X86_TILEZERO, { T(8) }, 0, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TILEZERO, { T(-1) }, 0, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TILELOADD, { T(8), rows }, 1, 0, 0 },
		{ "a tile register must be tmm0 to tmm7", X86_TDPBUSD, { T(0), T(1), T(8) }, 0, 0, 0 },
		{ "the operand must be a tile register", X86_TILEZERO, { Y(0) }, 0, 0, 0 },
		{ "the operand must be a tile register", X86_TDPBSSD, { T(0), K(1), T(2) }, 1, 0, 0 },
		{ "the operand must be a tile register", X86_TILELOADD, { R(0), rows }, 0, 0, 0 },
		{ "the operand must be a vector register", X86_VADDPS, { T(0), Y(1), Y(2) }, 0, 0, 0 },
		{ "the operand must be a 64-bit general register", X86_MOV, { R(0), T(1) }, 0, 0, 0 },
		{ "the operand cannot be in memory", X86_TDPBSSD, { T(0), T(1), rows }, 0, 0, 0 },
		{ "the operand must be in memory", X86_TILELOADDT1, { T(0), T(1) }, 0, 0, 0 },
		{ "the operand must be in memory", X86_LDTILECFG, { R(0) }, 0, 0, 0 },
		{ "there is an operand too many", X86_TILERELEASE, { T(0) }, 0, 0, 0 },
		{ "an operand is missing", X86_TILEZERO, { NONE }, 0, 0, 0 },
		{ pitch, X86_TILELOADD, { T(0), MEM }, 0, 0, 0 },
		{ pitch, X86_TILELOADDT1, { T(0), x86_mem(X86_RSP, 64) }, 1, 0, 0 },
		{ pitch, X86_TILESTORED, { x86_mem(X86_R12, 0), T(0) }, 1, 0, 0 },
		{ pitch, X86_TILESTORED, { x86_mem_label(0, 0), T(0) }, 0, 0, 0 },
		{ "rsp cannot be an index", X86_TILELOADD, { T(0), x86_mem_index(0, X86_RSP, 1, 0) }, 0, 0, 0 },
		{ "an index must be a general register numbered 0 to 15",
		  X86_TILELOADD,
		  { T(0), x86_mem_index(0, 16, 1, 0) },
		  1,
		  0,
		  0 },
		{ differ, X86_TDPBSSD, { T(1), T(1), T(2) }, 0, 0, 0 },
		{ differ, X86_TDPBSUD, { T(1), T(2), T(1) }, 1, 0, 0 },
		{ differ, X86_TDPBUSD, { T(2), T(1), T(1) }, 0, 0, 0 },
		{ differ, X86_TDPBUUD, { T(7), T(7), T(7) }, 0, 0, 0 },
		{ differ, X86_TDPBF16PS, { T(0), T(3), T(0) }, 1, 0, 0 },
		{ none, X86_TDPBUSD, { T(0), T(1), T(2) }, 1, 1, 0 },
		{ none, X86_TILELOADD, { T(0), x86_mem_broadcast(rows) }, 1, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_immediates(void **state)
{
	const struct refusal r[] = {
		{ "the immediate must fit in one byte", X86_VPSHUFD, { Y(0), Y(1), I(256) }, 0, 0, 0 },
		{ "the immediate must fit in one byte", X86_VPSRLD, { Y(0), Y(1), I(-129) }, 0, 0, 0 },
		{ "the immediate must fit in one byte", X86_SHL, { R(0), I(256) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits, sign-extended", X86_ADD, { R(1), I(0x80000000) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits, sign-extended", X86_MOV64I, { MEM, I(-0x80000001ll) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_ADD, { D(1), I(0x100000000) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_MOV, { D(1), I(-0x80000001ll) }, 0, 0, 0 },
		{ "the immediate must fit in 32 bits", X86_IMUL, { D(1), D(2), I(0x100000000) }, 0, 0, 0 },
	};
	REFUSE(r);
}

static void test_refused_evex(void **state)
{
	static const char off[] =
		"a zmm or mask register, a vector register above 15, a broadcast or an AVX-512 instruction needs EVEX";
	static const char none[] =
		"the instruction has no EVEX form: no zmm, no register above 15, no mask, no broadcast";
	const struct x86_operand bcst = x86_mem_broadcast(MEM), z = x86_zmm(1);
	const struct refusal r[] = {
		{ off, X86_VADDPS, { z, z, z }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(16), Y(0), Y(0) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(31), Y(0) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(16) }, 0, 0, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(0) }, 0, 1, 0 },
		{ off, X86_VADDPS, { Y(0), Y(0), Y(0) }, 0, 0, 1 },
		{ off, X86_VADDPS, { Y(0), Y(0), bcst }, 0, 0, 0 },
		{ off, X86_VGATHERDPS, { Y(0), VSIB(16), Y(2) }, 0, 0, 0 },
		{ off, X86_VPANDD, { Y(0), Y(0), Y(0) }, 0, 0, 0 },
		{ off, X86_KMOVW, { K(1), D(0) }, 0, 0, 0 },
		{ off, X86_VPCMPEQD, { K(1), Y(0), Y(0) }, 0, 0, 0 },
		{ none, X86_VPAND, { z, z, z }, 1, 0, 0 },
		{ none, X86_VPAND, { Y(16), Y(0), Y(0) }, 1, 0, 0 },
		{ none, X86_VBLENDVPS, { Y(0), Y(0), Y(0), Y(16) }, 1, 0, 0 },
		{ none, X86_VMOVDQU, { Y(0), Y(1) }, 1, 3, 0 },
		{ none, X86_ADD, { R(0), R(1) }, 1, 3, 0 },
		{ none, X86_VPAND, { Y(0), Y(0), bcst }, 1, 0, 0 },
		{ "the instruction cannot broadcast its memory operand", X86_VPADDB, { z, z, bcst }, 1, 0, 0 },
		{ "the instruction cannot broadcast its memory operand", X86_VMOVUPS, { z, bcst }, 1, 0, 0 },
		{ "the instruction takes no mask", X86_VMOVD, { x86_xmm(1), D(1) }, 1, 1, 0 },
		{ "the instruction takes no mask", X86_VPEXTRD, { D(1), x86_xmm(1), I(0) }, 1, 1, 0 },
		{ "a mask register must be k0 to k7", X86_VADDPS, { z, z, z }, 1, 8, 0 },
		{ "a gather or scatter needs a mask other than k0", X86_VPGATHERDD, { z, VSIB(2) }, 1, 0, 0 },
		{ "a gather or scatter needs a mask other than k0", X86_VPSCATTERDD, { VSIB(2), z }, 1, 0, 0 },
		{ "zeroing needs a mask other than k0", X86_VADDPS, { z, z, z }, 1, 0, 1 },
		{ "zeroing needs a vector register as destination and no gather", X86_VMOVUPS, { MEM, z }, 1, 1, 1 },
		{ "zeroing needs a vector register as destination and no gather",
		  X86_VPCMPEQD,
		  { K(1), z, z },
		  1,
		  1,
		  1 },
		{ "zeroing needs a vector register as destination and no gather",
		  X86_VPGATHERDD,
		  { z, VSIB(2) },
		  1,
		  1,
		  1 },
	};
	REFUSE(r);
}

/* --- labels, data, padding */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_regenerate),
		cmocka_unit_test(test_refused_operands),
		cmocka_unit_test(test_refused_memory),
		cmocka_unit_test(test_refused_tiles),
		cmocka_unit_test(test_refused_immediates),
		cmocka_unit_test(test_refused_evex),
		cmocka_unit_test(test_label_rules),
		cmocka_unit_test(test_many_labels),
		cmocka_unit_test(test_align_and_bytes),
		cmocka_unit_test(test_evex_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
