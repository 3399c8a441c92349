/* encoders/rdna_check.c - does an instruction of a generation take these operands and modifiers?
 *
 * Owns: every rule that can be broken and its sentence, and the number that each operand gets in its field. Never lays
 * out bits. The rule: whatever cannot be encoded, or what the hardware forbids, is refused here; nothing is silently
 * truncated.
 */
#include "encoders/rdna_form.h"

#include <assert.h>
#include <stdatomic.h>

/* --- the row's letters */

/* What stands for a letter in a row: how many 32-bit registers (0: as many as the destination has), and what else
 * may. */
enum {
	LETTER_IMMEDIATE = 1,
	LETTER_LITERAL = 2,
	LETTER_CONSTANT = 4,
	LETTER_SCALAR = 8 /* and nothing else */,
	LETTER_LOW = 16 /* short encodings reach v0-v127 from gfx11 on */,
	LETTER_PLAIN_V = 32,
	LETTER_PLAIN_S = 64,
	LETTER_PLAIN_CONSTANT = 128 /* any vector register, any of s0-s105, -16 to 64 will do: rdna_plain */
};
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

static bool rdna_letter_is(char letter, unsigned what)
{
	return rdna_letter_facts[(unsigned char)letter & 127].is & what;
}

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

/* NULL and *field when a register may stand for the letter. */
static const char *rdna_take_register(const struct rdna_match *m, char letter, const struct rdna_operand *o,
                                      uint16_t *field)
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

/* Most operands: a register that any may be, an integer that needs no literal. False says nothing: rdna_take knows; a
 * field that no operand fills stays 0. */
static inline bool rdna_plain(char letter, const struct rdna_operand *o, uint16_t *field)
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

static const char *rdna_take(struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field)
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

static const char *rdna_check_range(int32_t offset, int32_t low, int32_t high)
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
	bool buffer = letter == '#', prefetch = m->n_src > 1;
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
	(void)prefetch;
	return rdna_check_range(m->ins->offset, buffer ? 0 : -limit, limit - 1);
}

static const char *rdna_take_address(struct rdna_match *m, char letter)
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

/* --- modifiers */

/* Whether there is anything beside the plain operands: modifiers, cache policy, addresses, forms. */
static bool rdna_has_extras(const struct rdna_ins *ins)
{
	unsigned mods = ins->d[0].mods | ins->d[1].mods | ins->s[0].mods | ins->s[1].mods | ins->s[2].mods |
	                ins->s[3].mods | ins->saddr.mods;
	unsigned rest =
		ins->clamp | ins->omod | ins->cache | ins->scope | ins->th | ins->e64 | ins->dpp.kind | ins->saddr.kind;

	return mods | rest | (unsigned)ins->offset | (unsigned)ins->offset1;
}

static const char *rdna_check_modifiers(struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;
	uint32_t f = m->row->facts;

	for (unsigned i = 0; i < 4; i++) {
		m->neg |= (uint8_t)((ins->s[i].mods & RDNA_NEG ? 1 : 0) << i);
		m->abs |= (uint8_t)((ins->s[i].mods & RDNA_ABS ? 1 : 0) << i);
		m->sel |= (uint8_t)((ins->s[i].mods & RDNA_HIGH ? 1 : 0) << i);
		m->flip |= (uint8_t)((ins->s[i].mods & RDNA_FLIP ? 1 : 0) << i);
	}
	if (ins->d[0].mods & RDNA_HIGH)
		m->sel |= 8;
	if ((ins->d[0].mods & ~RDNA_HIGH) || ins->d[1].mods || ins->saddr.mods)
		return "the operand takes no modifier";
	if (m->neg & ~(f & 7))
		return "the operand takes no neg";
	if (m->abs & ~(f >> 3 & 7))
		return "the operand takes no abs";
	if (m->sel & ~(f >> 6 & 15))
		return "the operand takes no op_sel";
	if (m->flip & ~(m->row->enc == RDNA_E_VOP3P ? f >> 6 & 7 : 0))
		return "the operand takes no op_sel_hi";
	if (ins->clamp && !(f & RDNA_F_CLAMP))
		return "the instruction takes no clamp";
	if (ins->omod && (!(f & RDNA_F_OMOD) || ins->omod > 3))
		return "the instruction takes no omod";
	return NULL;
}

static const char *rdna_check_cache(const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;
	enum rdna_enc e = m->row->enc;
	bool atomic = m->row->sig[0] == '?', smem = e == RDNA_E_SMEM && m->n_src == 1;

	if (!(ins->cache | ins->th | ins->scope))
		return NULL;
	bool plain = rdna_is_flat(e) && (m->n_src || m->n_dst);
	unsigned bits = m->gen == RDNA_GFX12 ? 0 : plain ? (atomic ? 6 : 7) : smem ? 5 : 0;
	unsigned th = m->gen != RDNA_GFX12 ? 0 : plain ? (atomic ? 6 : 7) : smem ? 3 : 0;

	if (ins->cache & ~bits)
		return "the instruction of this generation takes no such cache bit";
	if (ins->th & ~th)
		return "the instruction of this generation takes no such temporal hint";
	if (ins->scope > (m->gen == RDNA_GFX12 && (rdna_is_flat(e) || smem) ? 3 : 0))
		return "the instruction of this generation takes no scope";
	if (atomic && ins->d[0].kind && ins->th == RDNA_TH_ATOMIC_NT && ins->scope == RDNA_SCOPE_SYS)
		return "a non-temporal atomic that returns cannot have system scope";
	return NULL;
}

static const char *rdna_check_offsets(const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;
	enum rdna_enc e = m->row->enc;
	bool address = m->n_src && (m->src[0] == '@' || m->src[0] == '#');

	if (e == RDNA_E_DS) {
		bool two = m->row->facts & RDNA_F_TWO;
		const char *why = rdna_check_range(ins->offset, 0, m->op == RDNA_DS_NOP ? 0 : two ? 255 : 65535);
		if (why || (why = rdna_check_range(ins->offset1, 0, two ? 255 : 0)))
			return why;
	} else if ((ins->offset && !address) || ins->offset1) {
		return "the instruction takes no offset";
	}
	if (ins->saddr.kind && (!address || e == RDNA_E_DS))
		return "the instruction takes no scalar address";
	return NULL;
}

/* --- vector instructions: short or long, constant bus, DPP */

static bool rdna_reaches(const struct rdna_match *m, char letter, unsigned reg)
{
	return m->gen == RDNA_GFX10_3 || !rdna_letter_is(letter, LETTER_LOW) || reg < RDNA_V0 + 128;
}

/* Does the instruction need the long encoding? */
static bool rdna_needs_long(const struct rdna_match *m)
{
	enum rdna_enc e = m->row->enc;
	const struct rdna_ins *ins = m->ins;

	if (ins->e64 || m->sel || ins->clamp || ins->omod || (e == RDNA_E_VOP2 && m->opcode >= 0x100))
		return true;
	if ((m->neg || m->abs) && ins->dpp.kind != RDNA_DPP16) /* DPP16's own word has room for them */
		return true;
	if (!m->reaches)
		return m->n_src > 1 && m->s[1] < RDNA_V0 && !rdna_letter_is(m->src[1], LETTER_LITERAL);
	for (unsigned i = 0; i < m->n_dst; i++)
		if (m->dst[i] == 'c' ? m->d[i] != RDNA_VCC_LO : !rdna_reaches(m, m->dst[i], m->d[i]))
			return true;
	for (unsigned i = 0; i < m->n_src; i++) {
		if (m->src[i] == 'c' ? m->s[i] != RDNA_VCC_LO : !rdna_reaches(m, m->src[i], m->s[i]))
			return true;
		if (i == 1 && m->s[i] < RDNA_V0 && m->src[i] != 'c' && !rdna_letter_is(m->src[i], LETTER_LITERAL))
			return true;
	}
	return false;
}

/* Scalar values travel to the lanes on a bus of two: distinct scalar registers and the literal, and apart from them the
 * mask that v_div_fmas reads unasked. A literal that is read as 32 and as 64 bits is two values. Instructions with a
 * bus of one count every use. */
static const char *rdna_check_bus(const struct rdna_match *m)
{
	unsigned seen[5], n = 0, literals = m->has_literal;
	bool one = m->row->facts & RDNA_F_BUS_1, narrow = false;
	unsigned scalars = 2 * literals;

	for (unsigned i = 0; i < m->n_src; i++)
		scalars += m->s[i] < RDNA_V0 && m->ins->s[i].kind == RDNA_REG;
	if (scalars + !!(m->row->facts & RDNA_F_READS_VCC) <= 1) /* whatever it is */
		return NULL;
	if (m->row->facts & RDNA_F_READS_VCC)
		seen[n++] = 0;
	for (unsigned i = 0; i < m->n_src; i++) {
		unsigned reg = m->s[i], key = reg + 1 + (m->ins->s[i].n & 15u) * 512,
			 k; /* a pair is another value than its half */
		if (reg == 255 && m->src[i] == 'A' && narrow)
			literals = 2;
		narrow |= reg == 255 && m->src[i] != 'A';
		if (m->ins->s[i].kind != RDNA_REG || reg >= RDNA_V0 || m->ins->s[i].reg == RDNA_NULL)
			continue;
		for (k = 0; k < n && (one || seen[k] != key); k++)
			;
		if (k == n)
			seen[n++] = key;
	}
	if (n + literals <= (one ? 1u : 2u))
		return NULL;
	return one ? "the instruction can read one scalar register or literal (constant bus)"
	           : "a vector instruction can read at most two different scalar registers or literals (constant bus)";
}

static const char *rdna_check_dpp(const struct rdna_match *m)
{
	const struct rdna_dpp *d = &m->ins->dpp;
	enum rdna_enc e = m->row->enc;
	unsigned c = d->ctrl;

	if (!(m->row->facts & RDNA_F_DPP) || d->kind > RDNA_DPP8)
		return "the instruction takes no DPP";
	if (m->gen == RDNA_GFX10_3 && (m->long_form || e == RDNA_E_VOPC || e == RDNA_E_VOP3 || e == RDNA_E_VOP3P))
		return "gfx10 has DPP only in the short encodings of one or two sources";
	if (m->has_literal || m->s[0] < RDNA_V0)
		return "with DPP source 0 must be a vector register and there can be no literal";
	for (unsigned i = 1; i < m->n_src; i++) {
		bool last = i == 2 || m->src[i] == 'c';
		if (m->s[i] < RDNA_V0 && !last && m->gen < RDNA_GFX11_5)
			return "with DPP source 1 must be a vector register before gfx11.5";
		if (m->s[i] < RDNA_V0 && (e == RDNA_E_VOP3P || m->src[i] == 'P' || m->src[i] == 'p'))
			return "with DPP the sources of a packed instruction must be vector registers";
	}
	if (d->kind == RDNA_DPP8)
		return d->lanes >> 24 || d->ctrl || d->row_mask || d->bank_mask || d->bound_zero
		               ? "DPP8 takes 24 bits of lanes and nothing else"
		               : NULL;
	if (d->row_mask > 15 || d->bank_mask > 15 || d->lanes)
		return "DPP16 takes a control and masks of 4 bits";
	if (c <= 0xff || (c > 0x100 && c < 0x130 && c % 16) || c == RDNA_ROW_MIRROR || c == RDNA_ROW_HALF_MIRROR ||
	    (c >= 0x150 && c < 0x170))
		return NULL;
	return "there is no such DPP control";
}

static const char *rdna_check_vector(struct rdna_match *m)
{
	enum rdna_enc e = m->row->enc;
	const char *why;

	if (e == RDNA_E_VOP1 || e == RDNA_E_VOP2 || e == RDNA_E_VOPC) {
		m->long_form = rdna_needs_long(m);
		if (m->long_form && (m->row->facts & RDNA_F_SHORT))
			return "the instruction has only the short encoding: no modifiers, source 1 a vector register, "
			       "16-bit operands in v0 to v127";
	}
	if (m->row->facts & RDNA_F_SHORT)
		for (unsigned i = 1; i < m->n_src; i++)
			if (m->ins->s[i].kind == RDNA_REG && m->s[i] < RDNA_V0)
				return "source 1 must be a vector register";
	if ((why = rdna_check_bus(m)))
		return why;
	return m->ins->dpp.kind ? rdna_check_dpp(m) : NULL;
}

/* --- whole instructions */

/* May the instruction write this register? Scalar loads and lane reads do not reach all that scalar arithmetic does. */
static bool rdna_writes_special(const struct rdna_match *m, unsigned reg)
{
	if (reg == RDNA_M0)
		return m->row->enc != RDNA_E_SMEM && !rdna_is_vector(m->row->enc);
	if (reg == RDNA_EXEC_LO || reg == RDNA_EXEC_HI)
		return m->row->enc != RDNA_E_SMEM;
	return reg != RDNA_SCC;
}

static const char *rdna_check_operands(struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;
	bool optional = m->row->sig[0] == '?' && ins->d[0].kind == RDNA_NONE;
	const char *why;

	if (optional)
		m->n_dst = 0;
	unsigned n_dst = m->n_dst, n_src = m->n_src;
	for (unsigned i = 0; i < n_dst; i++) {
		if (ins->d[i].kind != RDNA_REG)
			return ins->d[i].kind ? "a destination must be a register" : "an operand is missing";
		if (rdna_plain(m->dst[i], &ins->d[i], &m->d[i]))
			continue;
		if (!rdna_writes_special(m, ins->d[i].reg))
			return "the destination cannot be this special register";
		if ((why = rdna_take_register(m, m->dst[i], &ins->d[i], &m->d[i])))
			return why;
	}
	for (unsigned i = 0; i < n_src; i++) {
		if (rdna_plain(m->src[i], &ins->s[i], &m->s[i]))
			continue;
		bool address = m->src[i] == '@' || m->src[i] == '#';
		why = address ? rdna_take_address(m, m->src[i]) : rdna_take(m, m->src[i], &ins->s[i], &m->s[i]);
		if (why)
			return why;
	}
	for (unsigned i = n_dst; i < 2; i++)
		if (ins->d[i].kind != RDNA_NONE)
			return "there are too many operands";
	for (unsigned i = n_src; i < 4; i++)
		if (ins->s[i].kind != RDNA_NONE)
			return "there are too many operands";
	return NULL;
}

/* Hardware reads A and B of a matrix product while it writes D. */
static const char *rdna_check_matrix(const struct rdna_match *m)
{
	if (m->row->enc != RDNA_E_VOP3P || m->n_src != 3 || m->src[2] != 'W')
		return NULL;
	unsigned size = rdna_letter_size(m, m->dst[0]);
	for (unsigned i = 0; i < 2; i++) {
		unsigned n = rdna_letter_size(m, m->src[i]);
		if (m->s[i] < m->d[0] + size && m->d[0] < m->s[i] + n)
			return "the destination of a matrix instruction must not overlap A or B";
	}
	if (m->s[2] >= RDNA_V0 && m->s[2] != m->d[0] && m->s[2] < m->d[0] + size && m->d[0] < m->s[2] + size)
		return "the destination of a matrix instruction must be C or not overlap it";
	return NULL;
}

const char *rdna_check(struct rdna_match *m)
{
	const char *why;

	rdna_letters(m);
	if ((why = rdna_check_operands(m)))
		return why;
	if (rdna_has_extras(m->ins) &&
	    ((why = rdna_check_modifiers(m)) || (why = rdna_check_cache(m)) || (why = rdna_check_offsets(m))))
		return why;
	if ((why = rdna_check_matrix(m)))
		return why;
	if (rdna_is_vector(m->row->enc))
		return rdna_check_vector(m);
	if (m->ins->e64 || m->ins->dpp.kind)
		return "only vector instructions have a long encoding and DPP";
	if (m->op == RDNA_S_CLAUSE && (m->s[0] < 1 || m->s[0] > 63))
		return "a clause has 2 to 64 instructions";
	if (m->src[0] == 'N' && m->n_src && m->ins->s[0].reg != RDNA_NULL)
		return "the wait's register must be null";
	return NULL;
}

/* --- dual instructions */

static unsigned rdna_dual_vgpr(const struct rdna_match *m, unsigned i)
{
	if (i == 2) /* the accumulator of fmac and dot2acc, the addend of fmaak and fmamk */
		return m->op == RDNA_V_FMAC_F32 || m->op == RDNA_V_DOT2ACC_F32_F16 ? m->d[0]
		       : m->op == RDNA_V_FMAMK_F32                                 ? m->s[2]
		                                                                   : 0;
	if (i == 1)
		return m->op == RDNA_V_FMAMK_F32 || m->n_src < 2 ? 0 : m->s[1];
	return m->s[0] >= RDNA_V0 ? m->s[0] : 0;
}

static void rdna_add_scalar(uint16_t *list, uint8_t *n, unsigned scalar)
{
	for (unsigned k = 0; k < *n; k++)
		if (list[k] == scalar)
			return;
	list[(*n)++] = (uint16_t)scalar;
}

/* How many different scalar registers the two read. */
static unsigned rdna_dual_scalars(const struct rdna_half *x, const struct rdna_half *y)
{
	uint16_t all[6];
	uint8_t n = x->n_scalars;

	memcpy(all, x->scalar, sizeof x->scalar);
	for (unsigned k = 0; k < y->n_scalars; k++)
		rdna_add_scalar(all, &n, y->scalar[k]);
	return n;
}

void rdna_find_half(struct rdna_half *h, const struct rdna_match *m)
{
	*h = (struct rdna_half){ .gen = m->gen,
		                 .dst = m->d[0],
		                 .has_literal = m->has_literal,
		                 .literal = m->literal,
		                 .is_move = m->op == RDNA_V_MOV_B32 };
	if (m->long_form || m->ins->dpp.kind)
		h->error = "half of a dual instruction must have the short encoding, without DPP";
	for (unsigned i = 0; i < 3; i++)
		h->vgpr[i] = (uint16_t)rdna_dual_vgpr(m, i);
	for (unsigned i = 0; i < m->n_src && i < 3; i++) {
		if (m->ins->s[i].kind != RDNA_REG || m->s[i] >= RDNA_V0 || m->ins->s[i].reg == RDNA_NULL)
			continue;
		rdna_add_scalar(
			h->scalar, &h->n_scalars,
			m->s[i] | (m->src[i] == 'c' ? 0x1000u : 0)); /* a mask is read apart from vcc as a value */
	}
	h->first = m->s[0];
	h->second = (uint8_t)(m->n_src < 2       ? 0
	                      : m->src[1] == 'K' ? m->s[2]
	                                         : m->s[1]); /* fmamk's literal stands before it */
}

const char *rdna_check_dual(const struct rdna_half *x, const struct rdna_half *y)
{
	static const char *const banks[] = {
		"source 0 of the halves of a dual instruction must be in different banks (number modulo 4)",
		"source 1 of the halves of a dual instruction must be in different banks (number modulo 4)",
		"source 2 of the halves of a dual instruction must be in different banks (number modulo 2)"
	};

	if ((x->dst ^ y->dst) % 2 == 0)
		return "one destination of a dual instruction must be even and the other odd";
	if (x->has_literal && y->has_literal && x->literal != y->literal)
		return "a dual instruction can have only one literal";
	if (rdna_dual_scalars(x, y) + (x->has_literal || y->has_literal) > 2)
		return "a dual instruction can read at most two different scalar registers or literals";
	bool moves = x->gen == RDNA_GFX12 && x->is_move && y->is_move;
	for (unsigned i = moves ? 1 : 0; i < 3; i++) {
		unsigned a = x->vgpr[i], b = y->vgpr[i];
		if (a && b && (a ^ b) % (i == 2 ? 2 : 4) == 0)
			return banks[i];
	}
	return NULL;
}
