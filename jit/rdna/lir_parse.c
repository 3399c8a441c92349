/* jit/rdna/lir_parse.c - RDNA machine instructions, read from the lines of text that lir_text.c writes.
 */
#include <ctype.h>
#include <stdlib.h>

#include "jit/rdna/lir_text.h"

struct parser {
	struct rdna_lir *l;
	struct error *err;
	const char *p, *line;
	unsigned number;
};

static bool bad(struct parser *r, const char *what)
{
	return error_set(r->err, ERROR_ARGUMENT, "machine instruction in line %u, \"%.*s\": %s", r->number,
	                 (int)strcspn(r->line, "\n"), r->line, what);
}

static void blanks(struct parser *r)
{
	while (*r->p == ' ' || *r->p == '\t')
		r->p++;
}

static bool at_end(const struct parser *r) { return !*r->p || *r->p == '\n' || *r->p == ';' || *r->p == '#'; }

static bool skip(struct parser *r, char c)
{
	if (*r->p != c)
		return false;
	r->p++;
	return true;
}

static bool number(struct parser *r, uint32_t *v)
{
	char *end;
	if (!isdigit((unsigned char)*r->p) && *r->p != '-')
		return false;
	*v = (uint32_t)strtoll(r->p, &end, 0);
	bool some = end != r->p;
	r->p = end;
	return some;
}

/* A word of letters, digits, underscores and colons between digits ("null:2"). */
static size_t word_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

/* Registers are made as they are named; the largest mention says how many words there are. */
static bool declare(struct parser *r, uint32_t reg, enum rdna_class cls, unsigned words)
{
	struct rdna_lir *l = r->l;
	if (!reg || reg > 100000 || words < 1 || words > 16)
		return bad(r, "a virtual register is numbered from 1 and has 1 to 16 words");
	while (l->n_regs <= reg && !l->failed)
		rdna_lir_new(l, RDNA_CLASSES, 1);
	if (l->failed)
		return error_set(r->err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
	struct rdna_lir_reg *g = &l->reg[reg];
	if (g->cls != RDNA_CLASSES && g->cls != cls)
		return bad(r, "a virtual register is named with two classes");
	g->cls = (uint8_t)cls;
	g->n = (uint8_t)(g->n > words ? g->n : words);
	g->align = (uint8_t)rdna_lir_alignment(cls, g->n);
	return true;
}

/* "[3]", "[2:3]" */
static bool range(struct parser *r, uint32_t *from, uint32_t *to)
{
	if (!skip(r, '[') || !number(r, from))
		return false;
	*to = *from;
	if (skip(r, ':') && !number(r, to))
		return false;
	return skip(r, ']') && *to >= *from && *to - *from < 16;
}

static bool parse_virtual(struct parser *r, struct rdna_lir_operand *o)
{
	uint32_t reg = 0, from = 0, to = 0, words = 1;
	enum rdna_class cls = *r->p == 'v' ? RDNA_CLASS_VGPR : RDNA_CLASS_SGPR;
	r->p++;
	if (!number(r, &reg))
		return bad(r, "a virtual register has a number");
	bool part = *r->p == '[';
	if (part ? !range(r, &from, &to) : skip(r, ':') && !number(r, &words))
		return bad(r, "a virtual register has words like [1], [2:3] or :4");
	unsigned n = part ? to - from + 1 : words;
	*o = rdna_lir_words(reg, from, n);
	return declare(r, reg, cls, part ? to + 1 : words);
}

static bool parse_machine(struct parser *r, struct rdna_lir_operand *o)
{
	uint32_t from, to;
	for (unsigned k = SPECIALS; k-- > 0;) {
		size_t n = strlen(specials[k].name);
		if (strncmp(r->p, specials[k].name, n) == 0 && !isalnum((unsigned char)r->p[n]) && r->p[n] != '_' &&
		    r->p[n] != ':') {
			r->p += n;
			*o = rdna_lir_fixed(specials[k].reg, specials[k].n);
			return true;
		}
	}
	unsigned base = *r->p == 'v' ? RDNA_V0 : 0;
	if (*r->p != 'v' && *r->p != 's')
		return bad(r, "no operand begins so");
	r->p++;
	if (*r->p == '[') {
		if (!range(r, &from, &to))
			return bad(r, "a tuple of machine registers is written v[2:3]");
	} else if (number(r, &from)) {
		to = from;
	} else {
		return bad(r, "a machine register has a number");
	}
	*o = rdna_lir_fixed(base + from, to - from + 1);
	return true;
}

static bool parse_operand(struct parser *r, struct rdna_lir_operand *o)
{
	bool neg = *r->p == '-' && !isdigit((unsigned char)r->p[1]), abs;
	uint32_t v;
	r->p += neg;
	abs = skip(r, '|');
	if (strncmp(r->p, "off", 3) == 0 && word_length(r->p) == 3) {
		r->p += 3;
		*o = (struct rdna_lir_operand){ 0 };
	} else if (skip(r, '%')) {
		if (!parse_virtual(r, o))
			return false;
	} else if (number(r, &v)) {
		*o = rdna_lir_imm(v);
	} else if (!parse_machine(r, o)) {
		return false;
	}
	if (abs && !skip(r, '|'))
		return bad(r, "a | is not closed");
	o->mods = (uint8_t)((neg ? RDNA_NEG : 0) | (abs ? RDNA_ABS : 0));
	for (; *r->p == '.' && r->p[1]; r->p += 2)
		o->mods |= r->p[1] == 'h' ? RDNA_HIGH : r->p[1] == 'n' ? RDNA_NEG : RDNA_FLIP;
	return true;
}

static unsigned find_op(const char *p, size_t n, enum rdna_gen gen)
{
	static const char *const pseudo[] = { "loop", "endloop", "break", "if", "else", "endif", "dual" };
	for (unsigned k = 0; k < sizeof pseudo / sizeof *pseudo; k++)
		if (strlen(pseudo[k]) == n && memcmp(pseudo[k], p, n) == 0)
			return RDNA_OP_COUNT + k;
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned op = 0; op < RDNA_OP_COUNT; op++) {
			const char *name = rdna_op_name((enum rdna_op)op, pass ? RDNA_GFX12 : gen);
			if (strlen(name) == n && memcmp(name, p, n) == 0 && (pass || rdna_has((enum rdna_op)op, gen)))
				return op;
		}
	return RDNA_LIR_OPS;
}

/* Lays the operands, in the order of the text, where the instruction has them. */
static bool lay(struct parser *r, struct rdna_lir_ins *i, const struct rdna_lir_operand *o, unsigned n)
{
	unsigned dst = 0, src = 0, k = 0;
	bool optional = false, saddr = rdna_may_have_saddr(i->op) && n;
	if (i->op == RDNA_LIR_LOOP) {
		dst = n > 1;
		src = 1;
	} else if (i->op == RDNA_LIR_IF || i->op == RDNA_LIR_BREAK) {
		src = 1;
	} else if (i->op < RDNA_OP_COUNT) {
		const char *p = rdna_lir_letters(i->op, r->l->gen);
		optional = *p == '?';
		for (p += optional; *p != '='; p++)
			dst++;
		for (p++; *p && *p != '/'; p++)
			src++;
	}
	if (optional && n == src + saddr)
		dst = 0;
	if (n == dst + src + 1 && i->op < RDNA_OP_COUNT && rdna_lir_address_form(i->op) == RDNA_ADDRESS_SCALAR)
		saddr = true;
	if (n != dst + src + saddr)
		return bad(r, "it has a wrong number of operands");
	for (unsigned j = 0; j < dst; j++)
		i->d[j] = o[k++];
	for (unsigned j = 0; j < src; j++)
		i->s[j] = o[k++];
	if (saddr)
		i->saddr = o[k];
	return true;
}

static bool flag(struct rdna_lir_ins *i, const char *p, size_t n)
{
	static const char *const names[] = { "clamp", "e64", "bound_ctrl", "fi" };
	bool *const where[] = { &i->clamp, &i->e64, &i->dpp.bound_zero, &i->dpp.fetch_inactive };
	for (unsigned k = 0; k < 4; k++)
		if (strlen(names[k]) == n && memcmp(names[k], p, n) == 0)
			return *where[k] = true;
	return false;
}

/* The mask of a memory instruction. */
static bool is_lanes(const char *p, size_t n) { return n == 5 && memcmp(p, "lanes:", 6) == 0; }

static bool parse_attribute(struct parser *r, struct rdna_lir_ins *i)
{
	const char *p = r->p;
	size_t n = word_length(p);
	uint32_t v = 0;
	r->p += n;
	if (is_lanes(p, n))
		return skip(r, ':') && parse_operand(r, &i->s[3]);
	if (!skip(r, ':'))
		return flag(i, p, n) || bad(r, "there is no such attribute");
	enum attribute a = 0;
	while (a < A_COUNT && (strlen(attribute_names[a]) != n || memcmp(attribute_names[a], p, n) != 0))
		a++;
	if (a == A_COUNT)
		return bad(r, "there is no such attribute");
	if (a == A_MEMORY) {
		size_t m = word_length(r->p);
		while (v < 4 && (strlen(memory_names[v]) != m || memcmp(memory_names[v], r->p, m) != 0))
			v++;
		r->p += m;
	} else if (!number(r, &v)) {
		return bad(r, "an attribute lacks its number");
	}
	rdna_set_attribute(i, a, v);
	return v < 4 || a != A_MEMORY || bad(r, "there is no such memory");
}

static bool is_attribute(const char *p)
{
	size_t n = word_length(p);
	struct rdna_lir_ins scratch = { 0 };
	for (enum attribute a = 0; a < A_COUNT; a++)
		if (p[n] == ':' && strlen(attribute_names[a]) == n && memcmp(attribute_names[a], p, n) == 0)
			return true;
	return flag(&scratch, p, n) || is_lanes(p, n);
}

static bool parse_line(struct parser *r)
{
	struct rdna_lir_operand o[8];
	unsigned n = 0;
	size_t length = word_length(r->p);
	unsigned op = find_op(r->p, length, r->l->gen);
	if (op == RDNA_LIR_OPS)
		return bad(r, "there is no such instruction");
	struct rdna_lir_ins i;
	rdna_lir_set_usual(&i, op);
	r->p += length;
	blanks(r);
	while (!at_end(r) && !is_attribute(r->p)) {
		if (n == 8 || !parse_operand(r, &o[n++]))
			return bad(r, "it has too many operands");
		blanks(r);
		if (!skip(r, ','))
			break;
		blanks(r);
	}
	if (!lay(r, &i, o, n))
		return false;
	for (blanks(r); !at_end(r); blanks(r))
		if (!parse_attribute(r, &i))
			return false;
	struct rdna_lir_ins *to = rdna_lir_add(r->l, op);
	*to = i;
	return !r->l->failed || error_set(r->err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
}

bool rdna_lir_parse(struct rdna_lir *l, const char *text, struct error *err)
{
	struct parser r = { .l = l, .err = err, .p = text };
	while (*r.p) {
		r.line = r.p;
		r.number++;
		blanks(&r);
		if (!at_end(&r) && !parse_line(&r))
			return false;
		r.p += strcspn(r.p, "\n");
		r.p += *r.p == '\n';
	}
	return true;
}
