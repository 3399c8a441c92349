/* encoders/rdna_operand.c - does an instruction of a generation take this operand or address?
 *
 * Owns: what the letters of a row mean, the number that each operand gets in its field, and the sentence for an operand
 * that it cannot take.
 */
#include <assert.h>
#include <stdatomic.h>

#include "encoders/rdna_form.h"

/* --- the row's letters */

static const struct {
	uint8_t size, is;
} rdna_letter_facts[128] = {
	['1'] = { 1, LETTER_PLAIN_V },
	['2'] = { 2, LETTER_PLAIN_V },
	['3'] = { 3, LETTER_PLAIN_V },
	['4'] = { 4, LETTER_PLAIN_V },
	['8'] = { 8, LETTER_PLAIN_V },
	['h'] = { 1, LETTER_LOW | LETTER_PLAIN_V },
	['a'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['A'] = { 2, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['b'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_LOW | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['f'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_LOW | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['p'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['P'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_V | LETTER_PLAIN_S },
	['m'] = { 1, LETTER_CONSTANT },
	['W'] = { 0, LETTER_CONSTANT },
	['s'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_S },
	['S'] = { 2, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_S },
	['u'] = { 1, LETTER_CONSTANT | LETTER_PLAIN_CONSTANT | LETTER_PLAIN_S },
	['l'] = { 1, LETTER_CONSTANT },
	['B'] = { 1, LETTER_CONSTANT },
	['c'] = { 1, LETTER_SCALAR | LETTER_PLAIN_S },
	['r'] = { 2, LETTER_SCALAR | LETTER_PLAIN_S },
	['t'] = { 3, LETTER_SCALAR },
	['q'] = { 4, LETTER_SCALAR },
	['o'] = { 8, LETTER_SCALAR },
	['x'] = { 16, LETTER_SCALAR },
	['N'] = { 1, LETTER_SCALAR },
	['K'] = { 1, LETTER_LITERAL },
	['k'] = { 1, LETTER_LITERAL },
	['i'] = { 1, LETTER_IMMEDIATE },
	['w'] = { 1, LETTER_IMMEDIATE },
	['H'] = { 1, LETTER_IMMEDIATE },
	['I'] = { 1, LETTER_IMMEDIATE },
	['L'] = { 1, 0 },
	['@'] = { 1, 0 },
	['#'] = { 1, 0 },
};

bool rdna_letter_is(char letter, unsigned what) { return rdna_letter_facts[(unsigned char)letter & 127].is & what; }

/* Returns where they end. */
static const char *rdna_read_row(struct rdna_read *l, const char *p)
{
	*l = (struct rdna_read){ .n_dst = 0 };
	for (p += *p == '?'; *p != '='; p++) {
		l->dst[l->n_dst++] = *p;
		l->reaches |= *p == 'c' || rdna_letter_is(*p, LETTER_LOW);
	}
	for (p++; *p && *p != '/'; p++) {
		l->src[l->n_src++] = *p;
		l->reaches |= *p == 'c' || rdna_letter_is(*p, LETTER_LOW);
	}
	return p;
}

static struct rdna_read rdna_read_of(enum rdna_op op, enum rdna_gen gen)
{
	static _Atomic uint64_t known[2][RDNA_OP_COUNT];
	_Atomic uint64_t *at = &known[gen == RDNA_GFX12][op];
	uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
	struct rdna_read l;

	static_assert(sizeof l == sizeof word, "a row's letters fill a word");
	if (!word) {
		const char *end = rdna_read_row(&l, rdna_rows[op].sig);
		if (*end == '/' && gen == RDNA_GFX12)
			rdna_read_row(&l, end + 1);
		memcpy(&word, &l, sizeof word); /* 0 of the few rows without operands */
		atomic_store_explicit(at, word, memory_order_relaxed);
	}
	memcpy(&l, &word, sizeof l);
	return l;
}

void rdna_letters(struct rdna_match *m) { m->letters = rdna_read_of((enum rdna_op)(m->row - rdna_rows), m->gen); }

unsigned rdna_letter_size(const struct rdna_match *m, char letter)
{
	unsigned size = rdna_letter_facts[(unsigned char)letter & 127].size;

	return size ? size : rdna_letter_facts[(unsigned char)m->dst[0] & 127].size;
}

/* --- registers */

static uint16_t rdna_number(const struct rdna_match *m, unsigned reg)
{
	if (m->gen == RDNA_GFX10_3 && (reg == RDNA_NULL || reg == RDNA_M0))
		return (uint16_t)(reg ^ 1);
	return (uint16_t)reg;
}

static const char *rdna_check_vgpr(const struct rdna_operand *o, unsigned size)
{
	if (o->reg < RDNA_V0)
		return "the operand must be a vector register";
	if (o->n != size)
		return "the vector operand has a wrong number of registers";
	return o->reg + size > RDNA_V0 + 256u ? "a vector register must be numbered 0 to 255" : NULL;
}

/* Scalar registers; scc only where it is read. */
static const char *rdna_check_sgpr(const struct rdna_operand *o, unsigned size, bool source)
{
	unsigned reg = o->reg;

	if (reg >= RDNA_V0)
		return "the operand must be a scalar register";
	if (reg == RDNA_NULL)
		return NULL;
	if (o->n != size)
		return "the scalar operand has a wrong number of registers";
	if (reg == RDNA_SCC)
		return source && size == 1 ? NULL : "scc can only be read, and as 32 bits";
	if (reg > RDNA_EXEC_HI || (reg == RDNA_M0 && size > 1))
		return "there is no such scalar register";
	if (size > 1 && reg % (size == 2 ? 2 : 4))
		return "a scalar register pair must start at an even number, a longer tuple at a multiple of four";
	unsigned last = reg + size - 1,
		 end = reg <= 105           ? 105
	               : reg <= RDNA_VCC_HI ? RDNA_VCC_HI
	               : reg <= 123         ? 123
	                                    : RDNA_EXEC_HI;
	return last > end ? "a scalar register must be numbered 0 to 105" : NULL;
}

/* --- constants */

int rdna_inline_float(uint32_t v, bool half)
{
	static const uint32_t single[] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
		                           0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
	static const uint16_t halves[] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118 };

	if (!half && v & 0x7fffff && v != single[8]) /* all others are powers of two */
		return -1;
	for (int i = 0; i < 9; i++)
		if (v == (half ? halves[i] : single[i]))
			return 240 + i;
	return -1;
}

/* The number of an inline constant in an operand of this letter, or -1. */
static int rdna_inline(char letter, uint32_t value)
{
	int32_t v = (int32_t)value;

	if (v >= 0 && v <= 64)
		return 128 + v;
	if (v < 0 && v >= -16)
		return 192 - v;
	switch (letter) {
	case 'a':
	case 's': return rdna_inline_float(value, false);
	case 'f':
	case 'u':
	case 'P': return rdna_inline_float(value, true);
	default: return -1;
	}
}

static const char *rdna_take_literal(struct rdna_match *m, uint32_t v)
{
	if ((m->has_literal && m->literal != v) || m->distance)
		return "an instruction can have only one literal";
	m->has_literal = true;
	m->literal = v;
	return NULL;
}

static const char *rdna_take_constant(struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field)
{
	bool half = letter == 'b' || letter == 'f' || letter == 'u';
	int code = o->kind == RDNA_CONST ? rdna_inline(letter, o->value) : -1;

	if (o->n)
		return "a constant must fit in 32 bits";
	if (half && o->value > 0xffff && o->value < 0xffff8000)
		return "a constant of a 16-bit operand must fit in 16 bits";
	if (code >= 0) {
		*field = (uint16_t)code;
		return NULL;
	}
	if (letter == 'W' || letter == 'm' || letter == 'l' || letter == 'B')
		return "the operand can only be a register or a constant from -16 to 64";
	if ((letter == 'A' || letter == 'S') && o->value > INT32_MAX)
		return "a literal of a 64-bit operand must be 0 to 2^31-1, as its upper half may be either sign";
	*field = 255;
	return rdna_take_literal(m, half ? o->value & 0xffff : o->value);
}

static const char *rdna_take_immediate(const struct rdna_match *m, char letter, const struct rdna_operand *o,
                                       uint16_t *field)
{
	int64_t v = (int32_t)o->value, max = letter == 'm' ? 31 : letter == 'I' ? 255 : 0xffff;
	bool is_signed = letter == 'i' || m->op == RDNA_S_BARRIER_WAIT;

	if (o->kind != RDNA_CONST)
		return "the operand must be an immediate";
	if (o->n || v > max || v < (is_signed ? -32768 : 0))
		return "the immediate does not fit in its field";
	*field = (uint16_t)v;
	return NULL;
}

/* --- one operand */

static const char *rdna_take_label(struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field)
{
	if (letter == 'L') {
		if (o->n != 1)
			return "the operand must be a label";
		m->branch = (int32_t)o->value;
		*field = 0;
		return m->branch < 0 ? "a label must come from rdna_label" : NULL;
	}
	if (letter != 's' || o->n != 2 || m->row->enc > RDNA_E_SOPC)
		return "a distance of labels can only be a scalar 32-bit source";
	if (m->has_literal || m->distance)
		return "an instruction can have only one literal";
	m->distance = true;
	m->to = (int32_t)o->value;
	m->from = o->reg;
	*field = 255;
	return NULL;
}

const char *rdna_take_register(const struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field)
{
	unsigned size = rdna_letter_size(m, letter);

	*field = rdna_number(m, o->reg);
	switch (letter) {
	case '1':
	case '2':
	case '3':
	case '4':
	case '8':
	case 'h':
	case 'W': return rdna_check_vgpr(o, size);
	case 'a':
	case 'A':
	case 'b':
	case 'f':
	case 'p':
	case 'P':
	case 'm': return o->reg >= RDNA_V0 ? rdna_check_vgpr(o, size) : rdna_check_sgpr(o, size, true);
	case 's':
	case 'S':
	case 'u': return rdna_check_sgpr(o, size, true);
	case 'c':
	case 'N':
	case 'r': return rdna_check_sgpr(o, size, false);
	case 'l': return rdna_check_sgpr(o, 1, false);
	case 'B': return o->reg == RDNA_M0 && o->n == 1 ? NULL : "a barrier is named by a constant or by m0";
	case 'q':
	case 'o':
	case 'x':
	case 't': return rdna_check_sgpr(o, size, false);
	default:
		return rdna_letter_is(letter, LETTER_LITERAL) ? "the operand must be a literal"
		                                              : "the operand must be an immediate";
	}
}

bool rdna_plain(char letter, const struct rdna_operand *o, uint16_t *field)
{
	unsigned is = rdna_letter_facts[(unsigned char)letter & 127].is,
		 size = rdna_letter_facts[(unsigned char)letter & 127].size;

	if (o->kind == RDNA_REG) {
		unsigned reg = *field = o->reg, vector = reg & RDNA_V0;
		return o->n == size && is & (vector ? LETTER_PLAIN_V : LETTER_PLAIN_S) &&
		       reg + size <= (vector ? RDNA_V0 + 256u : 106u) &&
		       (vector || !(reg & (size - 1))); /* of 1 or 2 */
	}
	unsigned up = o->value + 16; /* -16 .. 64 */
	if (o->kind != RDNA_CONST || o->n || up > 80 || !(is & LETTER_PLAIN_CONSTANT))
		return false;
	*field = (uint16_t)(up >= 16 ? 112 + up : 208 - up);
	return true;
}

const char *rdna_take(struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field)
{
	switch (o->kind) {
	case RDNA_NONE: return "an operand is missing";
	case RDNA_LABEL: return rdna_take_label(m, letter, o, field);
	case RDNA_REG: return rdna_take_register(m, letter, o, field);
	default: break;
	}
	if (letter == 'L')
		return "the operand must be a label";
	if (rdna_letter_is(letter, LETTER_IMMEDIATE) || (letter == 'm' && m->row->enc == RDNA_E_SMEM))
		return rdna_take_immediate(m, letter, o, field);
	if (rdna_letter_is(letter, LETTER_LITERAL)) {
		*field = 0;
		if (o->n || (letter == 'k' && o->value > 0xffff && o->value < 0xffff8000))
			return "the literal does not fit in the operand";
		return rdna_take_literal(m, letter == 'k' ? o->value & 0xffff : o->value);
	}
	if (rdna_letter_is(letter, LETTER_CONSTANT))
		return rdna_take_constant(m, letter, o, field);
	return rdna_letter_is(letter, LETTER_SCALAR) ? "the operand must be a scalar register"
	                                             : "the operand must be a vector register";
}

/* --- addresses */

const char *rdna_check_range(int32_t offset, int32_t low, int32_t high)
{
	return offset < low || offset > high ? "the offset does not fit in the instruction" : NULL;
}

static const char *rdna_take_flat(struct rdna_match *m)
{
	const struct rdna_operand *v = &m->ins->s[0], *s = &m->ins->saddr;
	bool scratch = m->row->enc == RDNA_E_SCRATCH, flat = m->row->enc == RDNA_E_FLAT;
	bool has_s = s->kind != RDNA_NONE;
	const char *why;
	int32_t limit = m->gen == RDNA_GFX10_3 ? 2048 : m->gen == RDNA_GFX12 ? 1 << 23 : 4096;

	if (v->kind != RDNA_NONE && v->kind != RDNA_REG)
		return "an address must be in registers";
	if (has_s) {
		if (flat || s->kind != RDNA_REG || s->reg == RDNA_NULL || s->reg == RDNA_M0)
			return flat ? "a flat address has no scalar part"
			            : "the scalar part of an address must be in scalar registers";
		if ((why = rdna_check_sgpr(s, scratch ? 1 : 2, false)))
			return why;
		m->saddr = rdna_number(m, s->reg);
	}
	if (v->kind == RDNA_NONE && !scratch)
		return "an operand is missing";
	if (scratch && has_s && v->kind && m->gen == RDNA_GFX10_3)
		return "a scratch address of gfx10 has a vector or a scalar part, not both";
	if (v->kind) {
		if ((why = rdna_check_vgpr(v, scratch || has_s ? 1 : 2)))
			return why;
		m->s[0] = v->reg;
	}
	return rdna_check_range(m->ins->offset, flat && m->gen != RDNA_GFX12 ? 0 : -limit, limit - 1);
}

static const char *rdna_take_smem(struct rdna_match *m, char letter)
{
	const struct rdna_operand *b = &m->ins->s[0], *o = &m->ins->saddr;
	bool buffer = letter == '#';
	int32_t limit = m->gen == RDNA_GFX12 ? 1 << 23 : 1 << 20;
	const char *why;

	if (b->kind == RDNA_NONE)
		return "an operand is missing";
	if (b->kind != RDNA_REG)
		return "an address must be in registers";
	if ((why = rdna_check_sgpr(b, buffer ? 4 : 2, false)))
		return why;
	m->s[0] = rdna_number(m, b->reg);
	if (o->kind != RDNA_NONE) {
		if (o->kind != RDNA_REG)
			return "an address must be in registers";
		if ((why = rdna_check_sgpr(o, 1, false)))
			return why;
		m->saddr = rdna_number(m, o->reg);
	}
	return rdna_check_range(m->ins->offset, buffer ? 0 : -limit, limit - 1);
}

const char *rdna_take_address(struct rdna_match *m, char letter)
{
	const struct rdna_ins *ins = m->ins;
	const char *why;

	if (rdna_is_flat(m->row->enc))
		return rdna_take_flat(m);
	if (m->row->enc == RDNA_E_SMEM)
		return rdna_take_smem(m, letter);
	if (ins->s[0].kind != RDNA_REG)
		return ins->s[0].kind ? "an address must be in registers" : "an operand is missing";
	if ((why = rdna_check_vgpr(&ins->s[0], 1)))
		return why;
	m->s[0] = ins->s[0].reg;
	return NULL;
}
