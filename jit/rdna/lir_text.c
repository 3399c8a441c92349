/* jit/rdna/lir_text.c - RDNA machine instructions as lines of text, and back.
 *
 * Owns: the notation. An instruction is written as the assembler would: name, destinations, sources, then a scalar
 * address or "off" where the instruction may have one, then its attributes. Virtual registers are "%v12", "%s3:2"
 * (whole, of so many words), "%v12[1]", "%v12[2:3]" (words); once registers are assigned they are printed as machine
 * registers. A modifier stands around the operand: -x, |x|, x.h (upper half), x.f (flipped); of constants -x is x.n.
 * Rule for editors: what print writes, parse reads back to the same instruction.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/live.h"

static const struct {
	const char *name;
	uint16_t reg;
	uint8_t n;
} specials[] = {
	{ "vcc", RDNA_VCC_LO, 2 },   { "vcc_lo", RDNA_VCC_LO, 1 },   { "vcc_hi", RDNA_VCC_HI, 1 },
	{ "null", RDNA_NULL, 1 },    { "null:2", RDNA_NULL, 2 },     { "m0", RDNA_M0, 1 },
	{ "exec", RDNA_EXEC_LO, 2 }, { "exec_lo", RDNA_EXEC_LO, 1 }, { "exec_hi", RDNA_EXEC_HI, 1 },
	{ "scc", RDNA_SCC, 1 },
};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* Attributes that are one number, and where they lie. */
enum attribute {
	A_OFFSET,
	A_OFFSET1,
	A_EXEC,
	A_CACHE,
	A_SCOPE,
	A_TH,
	A_OMOD,
	A_DPP16,
	A_DPP8,
	A_ROW_MASK,
	A_BANK_MASK,
	A_MEMORY,
	A_IR,
	A_COUNT
};
static const char *const attribute_names[A_COUNT] = {
	"offset", "offset1", "exec",     "cache",     "scope",  "th", "omod",
	"dpp16",  "dpp8",    "row_mask", "bank_mask", "memory", "ir",
};
static const char *const memory_names[] = { "none", "global", "lds", "const" };

static uint32_t get_attribute(const struct rdna_lir_ins *i, enum attribute a)
{
	switch (a) {
	case A_OFFSET: return (uint32_t)i->offset;
	case A_OFFSET1: return (uint32_t)i->offset1;
	case A_EXEC: return i->exec;
	case A_CACHE: return i->cache;
	case A_SCOPE: return i->scope;
	case A_TH: return i->th;
	case A_OMOD: return i->omod;
	case A_DPP16: return i->dpp.ctrl;
	case A_DPP8: return i->dpp.lanes;
	case A_ROW_MASK: return i->dpp.row_mask;
	case A_BANK_MASK: return i->dpp.bank_mask;
	case A_MEMORY: return i->memory;
	default: return i->ir;
	}
}

static void set_attribute(struct rdna_lir_ins *i, enum attribute a, uint32_t v)
{
	switch (a) {
	case A_OFFSET: i->offset = (int32_t)v; break;
	case A_OFFSET1: i->offset1 = (int32_t)v; break;
	case A_EXEC: i->exec = v; break;
	case A_CACHE: i->cache = (uint8_t)v; break;
	case A_SCOPE: i->scope = (uint8_t)v; break;
	case A_TH: i->th = (uint8_t)v; break;
	case A_OMOD: i->omod = (uint8_t)v; break;
	case A_DPP16: i->dpp = rdna_dpp16(v); break;
	case A_DPP8: i->dpp = (struct rdna_dpp){ .kind = RDNA_DPP8, .lanes = v }; break;
	case A_ROW_MASK: i->dpp.row_mask = (uint8_t)v; break;
	case A_BANK_MASK: i->dpp.bank_mask = (uint8_t)v; break;
	case A_MEMORY: i->memory = (uint8_t)v; break;
	default: i->ir = v; break;
	}
}

static bool has_attribute(const struct rdna_lir_ins *i, enum attribute a, const struct rdna_lir_ins *plain)
{
	bool dpp16 = i->dpp.kind == RDNA_DPP16;
	switch (a) {
	case A_DPP16: return dpp16;
	case A_DPP8: return i->dpp.kind == RDNA_DPP8;
	case A_ROW_MASK: return dpp16 && i->dpp.row_mask != 15;
	case A_BANK_MASK: return dpp16 && i->dpp.bank_mask != 15;
	case A_MEMORY: return i->memory != plain->memory;
	case A_IR: return false;
	default: return get_attribute(i, a) != 0;
	}
}

/* --- print */

static void print_machine(unsigned reg, unsigned n, FILE *out)
{
	for (unsigned k = 0; k < SPECIALS; k++)
		if (specials[k].reg == reg && specials[k].n == n) {
			fputs(specials[k].name, out);
			return;
		}
	char file = reg >= RDNA_V0 ? 'v' : 's';
	reg -= reg >= RDNA_V0 ? RDNA_V0 : 0;
	if (n == 1)
		fprintf(out, "%c%u", file, reg);
	else
		fprintf(out, "%c[%u:%u]", file, reg, reg + n - 1);
}

static void print_virtual(const struct rdna_lir *l, const struct rdna_lir_operand *o, FILE *out)
{
	struct rdna_lir_reg g = o->reg < l->n_regs ? l->reg[o->reg] : (struct rdna_lir_reg){ 0 };
	if (l->allocated) {
		print_machine(g.phys + o->sub, o->n, out);
		return;
	}
	fprintf(out, "%%%c%u", g.cls == RDNA_CLASS_VGPR ? 'v' : 's', (unsigned)o->reg);
	if (o->sub == 0 && o->n == g.n) {
		if (o->n > 1)
			fprintf(out, ":%u", o->n);
	} else if (o->n == 1) {
		fprintf(out, "[%u]", o->sub);
	} else {
		fprintf(out, "[%u:%u]", o->sub, o->sub + o->n - 1);
	}
}

static void print_operand(const struct rdna_lir *l, const struct rdna_lir_operand *o, FILE *out)
{
	bool constant = o->kind == RDNA_LIR_CONST, neg = o->mods & RDNA_NEG;
	fprintf(out, "%s%s", neg && !constant ? "-" : "", o->mods & RDNA_ABS ? "|" : "");
	if (o->kind == RDNA_LIR_VIRTUAL)
		print_virtual(l, o, out);
	else if (o->kind == RDNA_LIR_FIXED)
		print_machine(o->reg, o->n, out);
	else if (o->kind == RDNA_LIR_NONE)
		fputs("off", out);
	else if ((int32_t)o->value >= -0x8000 && (int32_t)o->value <= 0xffff)
		fprintf(out, "%" PRId32, (int32_t)o->value);
	else
		fprintf(out, "0x%08" PRIx32, o->value);
	fprintf(out, "%s%s%s%s", o->mods & RDNA_ABS ? "|" : "", neg && constant ? ".n" : "",
	        o->mods & RDNA_HIGH ? ".h" : "", o->mods & RDNA_FLIP ? ".f" : "");
}

static bool may_have_saddr(unsigned op)
{
	unsigned form = op < RDNA_OP_COUNT ? rdna_lir_address_form(op) : RDNA_ADDRESS_NONE;
	return form == RDNA_ADDRESS_GLOBAL || form == RDNA_ADDRESS_SCRATCH;
}

static void print_attributes(const struct rdna_lir_ins *i, FILE *out)
{
	struct rdna_lir_ins plain;
	rdna_lir_set_usual(&plain, i->op < RDNA_LIR_OPS ? i->op : RDNA_LIR_DUAL);
	for (enum attribute a = 0; a < A_COUNT; a++) {
		if (!has_attribute(i, a, &plain))
			continue;
		if (a == A_MEMORY)
			fprintf(out, " memory:%s", memory_names[i->memory & 3]);
		else if (a <= A_OFFSET1)
			fprintf(out, " %s:%" PRId32, attribute_names[a], (int32_t)get_attribute(i, a));
		else
			fprintf(out, " %s:0x%" PRIx32, attribute_names[a], get_attribute(i, a));
	}
	fprintf(out, "%s%s%s%s", i->clamp ? " clamp" : "", i->e64 ? " e64" : "", i->dpp.bound_zero ? " bound_ctrl" : "",
	        i->dpp.fetch_inactive ? " fi" : "");
}

static void print_one(const struct rdna_lir *l, const struct rdna_lir_ins *i, FILE *out)
{
	static const char *const pseudo[] = { "loop", "endloop", "dual" };
	const char *comma = " ";
	fputs(i->op < RDNA_OP_COUNT  ? rdna_op_name((enum rdna_op)i->op, l->gen)
	      : i->op < RDNA_LIR_OPS ? pseudo[i->op - RDNA_OP_COUNT]
	                             : "?",
	      out);
	bool address = may_have_saddr(i->op);
	const struct rdna_lir_operand *all[7] = {
		&i->d[0], &i->d[1], &i->s[0], &i->s[1], &i->s[2], &i->s[3], &i->saddr
	};
	bool has_address = address && i->op < RDNA_OP_COUNT && strchr(rdna_lir_letters(i->op, l->gen), '@');
	for (unsigned k = 0; k < 7; k++) {
		bool off = (k == 6 || (k == 2 && i->s[0].kind == RDNA_LIR_NONE)) && has_address;
		if (!all[k]->kind && !off)
			continue;
		fputs(comma, out);
		print_operand(l, all[k], out);
		comma = ", ";
	}
	print_attributes(i, out);
	fputc('\n', out);
}

void rdna_lir_print(const struct rdna_lir *l, FILE *out)
{
	unsigned depth = 0;
	for (size_t k = 0; k < l->n_ins; k++) {
		if (l->ins[k].op == RDNA_LIR_ENDLOOP && depth)
			depth--;
		for (unsigned d = 0; d < depth; d++)
			fputs("  ", out);
		print_one(l, &l->ins[k], out);
		depth += l->ins[k].op == RDNA_LIR_LOOP;
	}
}

/* --- parse */

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
	*o = rdna_lir_words(r->l, reg, from, n);
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
	static const char *const pseudo[] = { "loop", "endloop", "dual" };
	for (unsigned k = 0; k < 3; k++)
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
	bool optional = false, saddr = may_have_saddr(i->op) && n;
	if (i->op == RDNA_LIR_LOOP) {
		dst = n > 1;
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

static bool parse_attribute(struct parser *r, struct rdna_lir_ins *i)
{
	const char *p = r->p;
	size_t n = word_length(p);
	uint32_t v = 0;
	r->p += n;
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
	set_attribute(i, a, v);
	return v < 4 || a != A_MEMORY || bad(r, "there is no such memory");
}

static bool is_attribute(const char *p)
{
	size_t n = word_length(p);
	struct rdna_lir_ins scratch = { 0 };
	for (enum attribute a = 0; a < A_COUNT; a++)
		if (p[n] == ':' && strlen(attribute_names[a]) == n && memcmp(attribute_names[a], p, n) == 0)
			return true;
	return flag(&scratch, p, n);
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
