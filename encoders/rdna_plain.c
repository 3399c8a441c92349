/* encoders/rdna_plain.c - plain instructions, which most are, by one look at a recipe each: what may stand where, and
 * where it goes.
 *
 * Owns: what a row takes without a question being asked (registers below s106, constants, modifiers, offsets), kept as
 * a recipe for each row and generation. Never refuses: what a recipe does not cover is rdna_check's. The rule: a recipe
 * may only take what rdna_check takes, and lay it out as rdna_encode does; tests/encoders/t_rdna.c holds both ways
 * together.
 */
#include "encoders/rdna_form.h"

#include <stdatomic.h>

enum { SLOTS = 4, D = 0, S0, S1, S2 };
enum {
	NOTHING = RDNA_AT_NOTHING,
	V1 = RDNA_AT_V1,
	V2 = RDNA_AT_V2,
	V3 = RDNA_AT_V3,
	V4 = RDNA_AT_V4,
	V8 = RDNA_AT_V8,
	SG1 = RDNA_AT_S1,
	SG2 = RDNA_AT_S2,
	SG4 = RDNA_AT_S4,
	SG8 = RDNA_AT_S8,
	SG16 = RDNA_AT_S16,
	INTEGER = RDNA_AT_INTEGER,
	FLOAT = RDNA_AT_FLOAT,
	LITERAL = RDNA_AT_LITERAL,
	OTHER = RDNA_AT_OTHER
};
enum { VECTORS = V1 | V2 | V3 | V4 | V8, SCALARS = SG1 | SG2 | SG4 | SG8 | SG16, REGISTERS = VECTORS | SCALARS };

const struct rdna_tuple rdna_tuples[RDNA_TUPLES] = {
	{ OTHER, OTHER, 0 }, { V1, SG1, 0 },      { V2, SG2, 1 },      { V3, OTHER, 0 },    { V4, SG4, 3 },
	{ OTHER, OTHER, 0 }, { OTHER, OTHER, 0 }, { OTHER, OTHER, 0 }, { V8, SG8, 3 },      { OTHER, OTHER, 0 },
	{ OTHER, OTHER, 0 }, { OTHER, OTHER, 0 }, { OTHER, OTHER, 0 }, { OTHER, OTHER, 0 }, { OTHER, OTHER, 0 },
	{ OTHER, OTHER, 0 }, { OTHER, SG16, 3 },
};

/* How an instruction is laid out: fields added to words that have everything else. */
struct rdna_form {
	uint64_t takes; /* by slot, 16 bits each: what it may be; 0: there is no such form */
	uint64_t words;
	uint16_t mods;     /* by slot, 4 bits each: the modifiers it may have */
	uint8_t at[SLOTS]; /* the first bit of its field */
	uint8_t n;         /* words */
};
struct rdna_recipe {
	_Atomic int made; /* NOT_YET ... */
	uint8_t enc;
	bool is_half, second_only;
	uint8_t half;                   /* of a dual instruction, the opcode */
	uint32_t immediate;             /* the word of what has 16 bits and nothing else; 0: it is not so */
	struct rdna_form first, second; /* the short encoding, where there is one; the long one */
	uint64_t alone;                 /* what can stand in no more than one slot: the constant bus, the literal */
	int32_t low, high;              /* the offset */
};
enum { NOT_YET, BEING_MADE, MADE };
static struct rdna_recipe recipes[RDNA_GEN_COUNT][RDNA_OP_COUNT];

/* --- making a recipe */

/* What may stand for a letter; 0: nothing at a glance. */
static unsigned rdna_taken(char letter)
{
	switch (letter) {
	case '1':
	case 'h': return V1;
	case '2': return V2;
	case '3': return V3;
	case '4': return V4;
	case '8': return V8;
	case 'a': return V1 | SG1 | INTEGER | FLOAT | LITERAL;
	case 'A': return V2 | SG2 | INTEGER;
	case 'b':
	case 'f':
	case 'p':
	case 'P':
	case 'm': return V1 | SG1 | INTEGER;
	case 's': return SG1 | INTEGER | FLOAT | LITERAL;
	case 'S': return SG2 | INTEGER;
	case 'u': return SG1 | INTEGER;
	case 'c': return SG1;
	case 'r': return SG2;
	case 'q': return SG4;
	case 'o': return SG8;
	case 'x': return SG16;
	default: return 0;
	}
}

static uint64_t rdna_at_slot(unsigned what, unsigned slot) { return (uint64_t)what << 16 * slot; }

/* What each place takes, as the letters say; false: a letter needs a closer look. */
static bool rdna_find_slots(const struct rdna_match *m, uint64_t *takes)
{
	unsigned n = 0, what[SLOTS] = { NOTHING, NOTHING, NOTHING, NOTHING };

	if (m->row->sig[0] == '?' || m->n_dst > 1 || m->n_src > 3)
		return false;
	if (m->n_dst)
		what[D] = rdna_taken(m->dst[0]) & REGISTERS;
	for (; n < m->n_src; n++)
		what[S0 + n] = m->src[n] == '@' ? m->row->enc == RDNA_E_SMEM ? SG2 : V1 : rdna_taken(m->src[n]);
	if (m->row->enc == RDNA_E_GLOBAL)
		what[S2] = SG2; /* the scalar half of the address */
	*takes = 0;
	for (unsigned p = 0; p < SLOTS; p++)
		*takes |= rdna_at_slot(what[p], p);
	return what[D] && what[S0] && what[S1] && what[S2];
}

static bool rdna_takes_vector(uint64_t takes, unsigned slot) { return takes >> 16 * slot & VECTORS; }

/* Fields of 8 bits have no 256 that numbers of vector registers begin with: the words have it taken off. */
static void rdna_field(struct rdna_form *f, unsigned slot, unsigned at, bool vectors_alone)
{
	f->at[slot] = (uint8_t)at;
	if (vectors_alone && rdna_takes_vector(f->takes, slot))
		f->words -= (uint64_t)RDNA_V0 << at;
}

static void rdna_form_scalar(struct rdna_form *f, const struct rdna_match *m, uint64_t takes)
{
	enum rdna_enc e = m->row->enc;

	for (unsigned p = 0; p < SLOTS; p++)
		f->takes |= rdna_at_slot(takes >> 16 * p & SG1 ? RDNA_AT_SPECIAL : 0, p);
	f->takes |= takes;
	f->n = 1;
	f->words = e == RDNA_E_SOP1   ? 0x17du << 23 | m->opcode << 8
	           : e == RDNA_E_SOP2 ? 2u << 30 | m->opcode << 23
	                              : 0x17eu << 23 | m->opcode << 16;
	f->at[D] = 16;
	f->at[S1] = 8;
}

/* The short encoding: source 1 in a vector register. What reaches v127 alone is not looked at so closely. */
static void rdna_form_short(struct rdna_form *f, const struct rdna_match *m, uint64_t takes)
{
	enum rdna_enc e = m->row->enc;

	if ((e != RDNA_E_VOP1 && e != RDNA_E_VOP2) || m->n_dst != 1 || m->n_src > 2 || !rdna_takes_vector(takes, D))
		return;
	f->takes = m->n_src < 2 ? takes : takes & ~rdna_at_slot(0xffff & ~VECTORS, S1);
	f->n = 1;
	f->words = e == RDNA_E_VOP1 ? 0x3fu << 25 | m->opcode << 9 : m->opcode << 25;
	rdna_field(f, D, 17, true);
	rdna_field(f, S1, 9, m->n_src > 1);
}

static uint16_t rdna_mods_taken(const struct rdna_match *m)
{
	uint32_t f = m->row->facts;
	bool packed = m->row->enc == RDNA_E_VOP3P;
	unsigned mods = !packed && f >> 9 & 1 ? RDNA_HIGH : 0;

	for (unsigned k = 0; k < 3; k++)
		mods |= ((f >> k & 1 ? RDNA_NEG : 0u) | (f >> (3 + k) & 1 ? RDNA_ABS : 0u) |
		         (f >> (6 + k) & 1 ? RDNA_HIGH : 0u) | (packed && f >> (6 + k) & 1 ? RDNA_FLIP : 0u))
		        << 4 * (S0 + k);
	return (uint16_t)mods;
}

static void rdna_form_long(struct rdna_form *f, const struct rdna_match *m, uint64_t takes)
{
	enum rdna_enc e = m->row->enc;
	unsigned opcode = m->opcode + (e == RDNA_E_VOP1 ? 0x180 : e == RDNA_E_VOP2 && m->opcode < 0x100 ? 0x100 : 0);
	bool mix = m->row->facts & RDNA_F_MIX;

	if (m->row->facts & RDNA_F_SHORT || m->n_dst != 1)
		return;
	f->takes = takes;
	f->n = 2;
	f->mods = rdna_mods_taken(m);
	f->words = e == RDNA_E_VOP3P ? 0xccu << 24 | m->opcode << 16 | (mix ? 0 : 1u << 14 | UINT64_C(3) << 59)
	                             : 0x35u << 26 | opcode << 16;
	rdna_field(f, D, 0, true);
	rdna_field(f, S0, 32, false);
	rdna_field(f, S1, 41, false);
	rdna_field(f, S2, 50, false);
}

/* Memory instructions are laid out by their encodings: see rdna_lay_memory. */
static void rdna_form_memory(struct rdna_recipe *q, const struct rdna_match *m, uint64_t takes)
{
	enum rdna_enc e = m->row->enc;
	bool gfx10 = m->gen == RDNA_GFX10_3, gfx12 = m->gen == RDNA_GFX12;
	struct rdna_form *f = &q->first;

	if (!m->n_src || m->src[0] != '@' || m->row->facts & RDNA_F_TWO ||
	    (e == RDNA_E_SMEM && (m->n_src > 1 || m->n_dst != 1)) || (e == RDNA_E_GLOBAL && m->n_src > 2))
		return;
	f->takes = takes;
	f->n = e == RDNA_E_GLOBAL && gfx12 ? 3 : 2;
	if (e == RDNA_E_DS) {
		q->high = 65535;
		f->words = 0x36u << 26 | m->opcode << 18;
	} else if (e == RDNA_E_SMEM) {
		q->high = (gfx12 ? 1 << 23 : 1 << 20) - 1;
		f->words = (0x3du << 26 | m->opcode << (gfx12 ? 13 : 18)) | (uint64_t)(gfx10 ? 125 : 124) << 57;
	} else {
		q->high = (gfx10 ? 2048 : gfx12 ? 1 << 23 : 4096) - 1;
		f->words = gfx12 ? (0xecu + 2) << 24 | m->opcode << 14
		                 : 0x37u << 26 | m->opcode << 18 | 2u << (gfx10 ? 14 : 16);
	}
	q->low = e == RDNA_E_DS ? 0 : -q->high - 1;
}

static void rdna_make_recipe(struct rdna_recipe *q, enum rdna_op op, enum rdna_gen gen)
{
	struct rdna_match m = { .row = &rdna_rows[op], .gen = gen, .op = op };
	enum rdna_enc e = m.row->enc;
	uint64_t takes;

	if (!rdna_has(op, gen))
		return;
	rdna_letters(&m);
	m.opcode = rdna_opcode(op, gen);
	q->enc = (uint8_t)e;
	int half = rdna_dual_opcode(op, gen, &q->second_only);
	q->is_half = half >= 0;
	q->half = (uint8_t)half;
	q->immediate = e == RDNA_E_SOPP && m.src[0] == 'w' && m.n_src == 1 ? 0x17fu << 23 | m.opcode << 16 : 0;
	if (!rdna_find_slots(&m, &takes))
		return;
	for (unsigned p = S0; p < SLOTS; p++)
		q->alone |= rdna_at_slot(rdna_is_vector(e) ? SCALARS | LITERAL : LITERAL, p);
	if (rdna_is_vector(e)) {
		bool mask = m.dst[0] == 'c' || m.src[2] == 'c',
		     long_alone = e >= RDNA_E_VOP3 || (e == RDNA_E_VOP2 && m.opcode >= 0x100) ||
		                  mask; /* a mask that is not vcc */
		if ((m.reaches && !long_alone) || (m.row->facts & RDNA_F_BUS_1 && m.row->facts & RDNA_F_READS_VCC))
			return;
		if (!long_alone)
			rdna_form_short(&q->first, &m, takes);
		if (long_alone || q->first.takes)
			rdna_form_long(&q->second, &m, takes);
	} else if (e == RDNA_E_SOP1 || e == RDNA_E_SOP2 || e == RDNA_E_SOPC) {
		rdna_form_scalar(&q->first, &m, takes);
	} else if (e == RDNA_E_DS || e == RDNA_E_SMEM || e == RDNA_E_GLOBAL) {
		rdna_form_memory(q, &m, takes);
	}
}

/* The first caller makes it; callers meanwhile do without. */
static const struct rdna_recipe *rdna_recipe_of(enum rdna_op op, enum rdna_gen gen)
{
	struct rdna_recipe *q = &recipes[gen][op];
	int none = NOT_YET, made = atomic_load_explicit(&q->made, memory_order_acquire);

	if (made == MADE)
		return q;
	if (made == BEING_MADE || !atomic_compare_exchange_strong(&q->made, &none, BEING_MADE))
		return NULL;
	rdna_make_recipe(q, op, gen);
	atomic_store_explicit(&q->made, MADE, memory_order_release);
	return q;
}

/* --- laying out */

static bool rdna_fits(const struct rdna_form *f, const struct rdna_plain *p)
{
	return !(p->is & ~f->takes) && !(p->mods & ~f->mods);
}

/* Neg, abs and op_sel of both long encodings, and what op_sel_hi is turned to. */
static uint64_t rdna_lay_mods(unsigned mods)
{
	static const uint8_t flip[3] = { 59, 60, 14 };
	uint64_t w = mods & RDNA_HIGH ? 1u << 14 : 0;

	for (unsigned k = 0; k < 3; k++) {
		unsigned of = mods >> 4 * (S0 + k);
		w ^= (uint64_t)(of & RDNA_NEG) << (61 + k) | (uint64_t)(of >> 1 & 1) << (8 + k) |
		     (uint64_t)(of >> 2 & 1) << (11 + k) | (uint64_t)(of >> 3 & 1) << flip[k];
	}
	return w;
}

static void rdna_lay_memory(const struct rdna_recipe *q, enum rdna_gen gen, const struct rdna_plain *p, uint32_t out[4])
{
	uint32_t d = p->at[D] & 0xff, address = p->at[S0] & 0xff, data = p->at[S1] & 0xff, offset = (uint32_t)p->offset;

	out[0] = (uint32_t)q->first.words;
	if (q->enc == RDNA_E_DS) {
		out[0] |= offset;
		out[1] = address | data << 8 | (p->at[S2] & 0xffu) << 16 | d << 24;
	} else if (q->enc == RDNA_E_SMEM) {
		out[0] |= d << 6 | address / 2;
		out[1] = (uint32_t)(q->first.words >> 32) | (offset & (gen == RDNA_GFX12 ? 0xffffff : 0x1fffff));
	} else if (gen == RDNA_GFX12) {
		out[0] |= p->at[S2];
		out[1] = d | data << 23;
		out[2] = address | offset << 8;
	} else {
		out[0] |= offset & (gen == RDNA_GFX10_3 ? 0xfff : 0x1fff);
		out[1] = address | data << 8 | (uint32_t)p->at[S2] << 16 | d << 24;
	}
}

unsigned rdna_encode_plain(enum rdna_op op, enum rdna_gen gen, const struct rdna_plain *p, uint32_t out[4])
{
	const struct rdna_recipe *q = op < RDNA_OP_COUNT ? rdna_recipe_of(op, gen) : NULL;
	const struct rdna_form *f;

	if (!q || p->offset < q->low || p->offset > q->high)
		return 0;
	if (!rdna_fits(f = &q->first, p) && !rdna_fits(f = &q->second, p))
		return 0;
	uint64_t alone = p->is & q->alone, w = f->words;
	if (alone & (alone - 1))
		return 0;
	if (q->enc >= RDNA_E_DS || q->enc == RDNA_E_SMEM) {
		rdna_lay_memory(q, gen, p, out);
		return f->n;
	}
	for (unsigned k = 0; k < SLOTS; k++)
		w += (uint64_t)p->at[k] << f->at[k];
	if (p->mods)
		w ^= rdna_lay_mods(p->mods);
	out[0] = (uint32_t)w;
	out[1] = (uint32_t)(w >> 32);
	if (!(alone & RDNA_AT_LITERALS))
		return f->n;
	out[f->n] = p->literal;
	return f->n + 1u;
}

uint32_t rdna_encode_immediate(enum rdna_op op, enum rdna_gen gen, int64_t v)
{
	const struct rdna_recipe *q = op < RDNA_OP_COUNT && v >= 0 && v <= 0xffff ? rdna_recipe_of(op, gen) : NULL;

	return q && q->immediate && (op != RDNA_S_CLAUSE || (v >= 1 && v <= 63)) ? q->immediate | (uint32_t)v : 0;
}

uint64_t rdna_plain_rare_constant(struct rdna_plain *p, unsigned slot, uint32_t value)
{
	int number = rdna_inline_float(value, false);

	if (number < 0)
		p->literal = value;
	return rdna_plain_is(p, slot, number < 0 ? LITERAL : FLOAT, number < 0 ? 255u : (unsigned)number);
}

bool rdna_plain_of(struct rdna_plain *p, const struct rdna_ins *ins)
{
	const struct rdna_operand *const o[SLOTS] = { &ins->d[0], &ins->s[0], &ins->s[1],
		                                      ins->saddr.kind ? &ins->saddr : &ins->s[2] };

	if (ins->d[1].kind || ins->s[3].kind || (ins->saddr.kind && ins->s[2].kind) || ins->offset1 || ins->cache ||
	    ins->scope || ins->th || ins->clamp || ins->omod || ins->e64 || ins->dpp.kind ||
	    (ins->d[1].mods | ins->s[3].mods | ins->saddr.mods))
		return false;
	*p = (struct rdna_plain){ .offset = ins->offset };
	for (unsigned k = 0; k < SLOTS; k++) {
		p->mods |= (uint16_t)((o[k]->mods & 15u) << 4 * k);
		if (o[k]->kind == RDNA_REG)
			p->is |= rdna_plain_register(p, k, o[k]->reg, o[k]->n);
		else if (o[k]->kind == RDNA_CONST && !o[k]->n)
			p->is |= rdna_plain_constant(p, k, o[k]->value);
		else if (o[k]->kind == RDNA_NONE)
			p->is |= rdna_plain_nothing(p, k);
		else
			return false;
	}
	return true;
}

bool rdna_plain_half(struct rdna_half *h, enum rdna_op op, enum rdna_gen gen, const struct rdna_plain *p)
{
	const struct rdna_recipe *q = op < RDNA_OP_COUNT ? rdna_recipe_of(op, gen) : NULL;

	if (!q || !q->is_half || !rdna_fits(&q->first, p))
		return false;
	uint64_t s0 = p->is >> 16 * S0;
	*h = (struct rdna_half){ .gen = gen,
		                 .second_only = q->second_only,
		                 .opcode = q->half,
		                 .is_move = op == RDNA_V_MOV_B32,
		                 .dst = p->at[D],
		                 .first = p->at[S0],
		                 .second = (uint8_t)p->at[S1] };
	if (s0 & VECTORS)
		h->vgpr[0] = p->at[S0];
	else if (s0 & SCALARS)
		h->scalar[h->n_scalars++] = p->at[S0];
	else if (s0 & LITERAL) {
		h->has_literal = true;
		h->literal = p->literal;
	}
	h->vgpr[1] = p->at[S1];
	if (op == RDNA_V_FMAC_F32 || op == RDNA_V_DOT2ACC_F32_F16)
		h->vgpr[2] = h->dst;
	return true;
}
