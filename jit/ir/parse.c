/* jit/ir/parse.c - reads the text form of print.c.
 *
 * Owns: the way back from text, for tests. It takes register numbers, types and immediates as written and judges none
 * of them: a test writes a broken kernel down and lets verify.c refuse it. What is not the text form is refused here,
 * with its line.
 */
#include "jit/ir/ir.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct parse {
	struct ir *ir;
	struct error *err;
	const char *at; /* within the line */
	unsigned line;
};

static bool parse_fail(const struct parse *p, const char *expected)
{
	char found[64];
	size_t n = strcspn(p->at, "\n");

	return error_set(p->err, ERROR_FORMAT, "IR text, line %u: found \"%s\", expected %s", p->line,
	                 error_quote(found, sizeof found, p->at, n), expected);
}

static void parse_blanks(struct parse *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
		p->at++;
}

static bool parse_char(struct parse *p, char c)
{
	parse_blanks(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

/* low..high, decimal or 0x. strtoll would skip blanks and lines. */
static bool parse_integer(struct parse *p, int64_t low, int64_t high, int64_t *value)
{
	const char *digits = p->at + (*p->at == '-');
	char *end;
	long long v;

	if (!isdigit((unsigned char)*digits))
		return parse_fail(p, "a number");
	v = strtoll(p->at, &end, digits[0] == '0' && digits[1] == 'x' ? 16 : 10);
	if (v < low || v > high)
		return parse_fail(p, "a number in range");
	p->at = end;
	*value = v;
	return true;
}

static bool parse_register(struct parse *p, uint16_t *reg)
{
	int64_t v;

	if (!parse_char(p, '%'))
		return parse_fail(p, "a register, %N");
	if (!parse_integer(p, 0, IR_MAX_REGS - 1, &v))
		return false;
	*reg = (uint16_t)v;
	if (p->ir->n_regs <= *reg)
		p->ir->n_regs = (size_t)*reg + 1;
	return true;
}

/* "%12:F" */
static bool parse_declared(struct parse *p, uint16_t *reg)
{
	uint8_t type = IR_TYPE__;

	if (!parse_register(p, reg))
		return false;
	for (uint8_t t = 1; *p->at == ':' && t <= IR_REGISTER_TYPES; t++)
		if (p->at[1] == ir_types[t].letter)
			type = t;
	if (type == IR_TYPE__)
		return parse_fail(p, "a kind, one of :F :I :M :S :C :A :T :O :D :L");
	p->at += 2;
	p->ir->type[*reg] = type;
	return true;
}

static bool parse_row(struct parse *p, struct ir_ins *in)
{
	size_t n = 0;

	parse_blanks(p);
	while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
		n++;
	for (unsigned k = 0; k < IR_ROWS; k++)
		if (ir_is_row(k) && strlen(ir_facts[k].name) == n && !memcmp(ir_facts[k].name, p->at, n)) {
			in->op = ir_facts[k].op;
			in->type = ir_facts[k].type;
			p->at += n;
			return true;
		}
	return parse_fail(p, "the name of an operation");
}

static bool parse_immediate(struct parse *p, struct ir_ins *in)
{
	const uint8_t form = ir_facts_of(in)->imm;
	int64_t disp, lanes = 0, stride = 0;

	if (form == IR_IMM__)
		return true;
	if (form == IR_IMM_i || form == IR_IMM_f)
		return parse_char(p, '#') ? parse_integer(p, INT64_MIN, INT64_MAX, &in->imm)
		                          : parse_fail(p, "an immediate, #N");
	if (!parse_char(p, '@'))
		return parse_fail(p, "a displacement, @N");
	if (form == IR_IMM_d)
		return parse_integer(p, INT64_MIN, INT64_MAX, &in->imm);
	if (!parse_integer(p, INT32_MIN, INT32_MAX, &disp))
		return false;
	if (*p->at == '/') {
		p->at++;
		if (!parse_integer(p, 1, 0xff, &lanes))
			return false;
	}
	if (*p->at == '*') {
		p->at++;
		if (!parse_integer(p, 1, 0xffffff, &stride))
			return false;
	}
	in->imm = ir_x((int32_t)disp, (unsigned)lanes, (unsigned)stride);
	return true;
}

static bool parse_append(struct parse *p, const struct ir_ins *in)
{
	struct ir *ir = p->ir;

	if (ir->n_ins == ir->capacity) {
		const size_t capacity = ir->capacity ? ir->capacity * 2 : 256;
		struct ir_ins *ins = realloc(ir->ins, capacity * sizeof *ins);

		if (!ins)
			return error_set(p->err, ERROR_MEMORY, "no memory for %zu IR instructions", capacity);
		ir->ins = ins;
		ir->capacity = capacity;
	}
	ir->ins[ir->n_ins++] = *in;
	if (in->op == IR_local)
		ir->local_bytes += ir_local_size(in->imm);
	else if (in->op == IR_shared)
		ir->shared_bytes += ir_local_size(in->imm);
	ir->cooperative |= ir_does(in->op, IR_GROUPS);
	ir_blocks_step(&ir->blocks, in->op);
	return true;
}

static bool parse_instruction(struct parse *p)
{
	struct ir_ins in = { 0 };
	const struct ir_facts *facts;
	const char *start;
	bool has_dst = false;

	if (*p->at == '%') {
		if (!parse_declared(p, &in.dst))
			return false;
		if (!parse_char(p, '='))
			return parse_fail(p, "=");
		has_dst = true;
	}
	parse_blanks(p);
	start = p->at;
	if (!parse_row(p, &in))
		return false;
	facts = ir_facts_of(&in);
	if (has_dst != (facts->dst != IR_TYPE__)) {
		p->at = start;
		return parse_fail(p, has_dst ? "an operation with a result" : "an operation without a result");
	}
	return (facts->a == IR_TYPE__ || parse_register(p, &in.a)) &&
	       (facts->b == IR_TYPE__ || parse_register(p, &in.b)) &&
	       (facts->c == IR_TYPE__ || parse_register(p, &in.c)) && parse_immediate(p, &in) &&
	       (!parse_char(p, '?') || parse_register(p, &in.mask)) && parse_append(p, &in);
}

static bool parse_word(struct parse *p, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(p->at, word, n) || (p->at[n] != ' ' && p->at[n] != '\t'))
		return false;
	p->at += n;
	parse_blanks(p);
	return true;
}

static bool parse_line(struct parse *p)
{
	int64_t lanes;
	uint16_t reg;

	parse_blanks(p);
	if (parse_word(p, "lanes")) {
		if (!parse_integer(p, 0, 255, &lanes))
			return false;
		p->ir->lanes = (unsigned)lanes;
	} else if (parse_word(p, "waves")) {
		if (!parse_integer(p, 0, 255, &lanes))
			return false;
		p->ir->waves = (unsigned)lanes;
	} else if (parse_word(p, "var")) {
		if (!parse_declared(p, &reg))
			return false;
		p->ir->is_var[reg] = true;
	} else if (*p->at && *p->at != '\n' && *p->at != ';' && !parse_instruction(p)) {
		return false;
	}
	parse_blanks(p);
	if (*p->at && *p->at != '\n' && *p->at != ';')
		return parse_fail(p, "the end of the line");
	return true;
}

bool ir_parse(struct ir *ir, const char *text, struct error *err)
{
	struct parse p = { .ir = ir, .err = err, .at = text, .line = 1 };

	ir_init(ir, 8); /* a text without its lanes line */
	ir->type = calloc(IR_MAX_REGS, sizeof *ir->type);
	ir->is_var = calloc(IR_MAX_REGS, sizeof *ir->is_var);
	ir->regs_capacity = IR_MAX_REGS;
	if (!ir->type || !ir->is_var) {
		ir_free(ir);
		return error_set(err, ERROR_MEMORY, "no memory for the registers of an IR text");
	}
	for (;; p.line++) {
		if (!parse_line(&p)) {
			ir_free(ir);
			return false;
		}
		p.at += strcspn(p.at, "\n");
		if (!*p.at)
			return true;
		p.at++;
	}
}
