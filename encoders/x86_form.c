/* encoders/x86_form.c - a matched row to bytes: legacy, VEX and EVEX prefixes, ModRM, SIB, displacement, immediate.
 *
 * Owns: the bit layouts of the instruction formats. Never decides whether an operand is allowed (x86.c has), never
 * knows an instruction by name. The rule: a layout is written once; what differs between instructions is in x86.def.
 */
#include "encoders/x86_form.h"

static void x86_put(struct x86_code *out, unsigned byte) { out->byte[out->n++] = (uint8_t)byte; }

static void x86_put_le(struct x86_code *out, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		x86_put(out, (unsigned)(v >> 8 * i & 0xff));
}

static bool x86_is_mem(const struct x86_operand *o) { return o && o->cls == X86_MEM; }

static unsigned x86_reg_of(const struct x86_operand *o) { return o ? o->reg : 0; }

/* Bit 3 of the register numbers as REX and VEX spread them: r ModRM.reg, x index, b ModRM.rm or base. */
struct x86_high {
	unsigned r, x, b;
};

static struct x86_high x86_high_bits(const struct x86_match *m)
{
	struct x86_high h = { x86_reg_of(m->reg) >> 3 & 1, 0, 0 };

	if (x86_is_mem(m->rm)) {
		bool base = m->rm->label < 0 && m->rm->reg != X86_NO_BASE;
		h.b = base ? m->rm->reg >> 3 & 1 : 0;
		h.x = m->rm->label < 0 && m->rm->index != X86_NO_INDEX ? m->rm->index >> 3 & 1 : 0;
	} else {
		h.b = x86_reg_of(m->rm) >> 3 & 1;
	}
	return h;
}

/* The number of bytes that one step of an EVEX disp8 stands for. */
static int x86_disp8_unit(const struct x86_match *m)
{
	int vector = 16 << m->l;

	if (!m->evex)
		return 1;
	switch (x86_f_tuple(m->row->facts)) {
	case X86_T_FV: return m->rm->broadcast ? 4 : vector;
	case X86_T_FV64: return m->rm->broadcast ? 8 : vector;
	case X86_T_HV: return m->rm->broadcast ? 4 : vector / 2;
	case X86_T_FVM: return vector;
	case X86_T_HVM: return vector / 2;
	case X86_T_QVM: return vector / 4;
	case X86_T_OVM: return vector / 8;
	case X86_T_N1: return 1;
	case X86_T_N2: return 2;
	case X86_T_N4: return 4 << m->w; /* only the converts from a general register have a w of their own */
	case X86_T_N8: return 8;
	case X86_T_N16: return 16;
	case X86_T_N32: return 32;
	case X86_T_NONE: break;
	}
	return 1;
}

/* ModRM with a memory operand: base + index * scale + disp, or rip + distance to a label. */
static void x86_put_memory(struct x86_code *out, const struct x86_match *m, unsigned reg)
{
	const struct x86_operand *o = m->rm;
	unsigned base = o->reg & 7u, scale = o->scale == 8 ? 3 : o->scale == 4 ? 2 : o->scale == 2 ? 1 : 0;
	bool no_base = o->reg == X86_NO_BASE, indexed = o->index != X86_NO_INDEX;

	if (o->label >= 0) {
		x86_put(out, reg << 3 | 5);
		out->label_at = (int)out->n;
		out->label = o->label;
		out->addend = o->disp;
		x86_put_le(out, 0, 4);
		return;
	}
	int unit = x86_disp8_unit(m);
	bool divides = o->disp % unit == 0, short_disp = divides && o->disp / unit >= -128 && o->disp / unit <= 127;
	/* mod 0 with base 5 (rbp, r13) means no base at all, so these two always carry a displacement */
	unsigned mod = no_base ? 0 : o->disp == 0 && base != 5 ? 0 : short_disp ? 1 : 2;
	/* rm 4 (rsp, r12) means that a SIB follows; an index needs one anyway */
	if (indexed || no_base || base == 4) {
		x86_put(out, mod << 6 | reg << 3 | 4);
		x86_put(out, scale << 6 | (indexed ? o->index & 7u : 4) << 3 | (no_base ? 5 : base));
	} else {
		x86_put(out, mod << 6 | reg << 3 | base);
	}
	if (no_base || mod == 2)
		x86_put_le(out, (uint32_t)o->disp, 4);
	else if (mod == 1)
		x86_put(out, (unsigned)(o->disp / unit) & 0xff);
}

static void x86_put_modrm(struct x86_code *out, const struct x86_match *m)
{
	unsigned reg = m->reg ? m->reg->reg & 7u : x86_f_digit(m->row->facts);

	if (x86_is_mem(m->rm))
		x86_put_memory(out, m, reg);
	else
		x86_put(out, 0xc0 | reg << 3 | (x86_reg_of(m->rm) & 7u));
}

/* Everything behind the ModRM: the is4 register or the immediate, or the distance of a branch. */
static void x86_put_tail(struct x86_code *out, const struct x86_match *m)
{
	if (m->is4)
		x86_put(out, (unsigned)m->is4->reg << 4 & 0xf0u);
	switch (m->imm_letter) {
	case 'i':
	case 'j': x86_put(out, (unsigned)(m->imm->imm & 0xff)); break;
	case 'J': x86_put_le(out, (uint64_t)m->imm->imm, 4); break;
	case 'o': x86_put_le(out, (uint64_t)m->imm->imm, 8); break;
	case 'l':
		out->label_at = (int)out->n;
		out->label = m->imm->label;
		out->addend = m->imm->disp;
		x86_put_le(out, 0, 4);
		break;
	default: break; /* none, or the number one, which the opcode says */
	}
}

/* [prefix] [REX] [0F [38|3A]] opcode [ModRM ...]; O forms add the register to the opcode. */
static void x86_encode_legacy(struct x86_code *out, const struct x86_match *m)
{
	static const uint8_t prefix[] = { 0, 0x66, 0xf3, 0xf2 };
	uint32_t f = m->row->facts;
	bool in_opcode = m->row->form == X86_F_O || m->row->form == X86_F_OI;
	struct x86_high h = x86_high_bits(m);
	unsigned rex = (unsigned)m->w << 3 | h.r << 2 | h.x << 1 | h.b;

	if (x86_f_prefix(f))
		x86_put(out, prefix[x86_f_prefix(f)]);
	if (rex || m->force_rex)
		x86_put(out, 0x40 | rex);
	if (x86_f_map(f) != X86_MAP_1)
		x86_put(out, 0x0f);
	if (x86_f_map(f) == X86_MAP_0F38)
		x86_put(out, 0x38);
	if (x86_f_map(f) == X86_MAP_0F3A)
		x86_put(out, 0x3a);
	x86_put(out, x86_f_opcode(f) + (in_opcode ? m->rm->reg & 7u : 0));
	if (m->rm && !in_opcode)
		x86_put_modrm(out, m);
}

/* C5 [R vvvv L pp] when map is 0F and W, X, B are 0, else C4 [RXB mmmmm] [W vvvv L pp]; R X B vvvv are inverted. */
static void x86_encode_vex(struct x86_code *out, const struct x86_match *m)
{
	uint32_t f = m->row->facts;
	struct x86_high h = x86_high_bits(m);
	unsigned last = (~x86_reg_of(m->vvvv) & 15u) << 3 | (m->l & 1u) << 2 | x86_f_prefix(f);

	if (x86_f_map(f) == X86_MAP_0F && !m->w && !h.x && !h.b) {
		x86_put(out, 0xc5);
		x86_put(out, (h.r ^ 1) << 7 | last);
	} else {
		x86_put(out, 0xc4);
		x86_put(out, (h.r ^ 1) << 7 | (h.x ^ 1) << 6 | (h.b ^ 1) << 5 | x86_f_map(f));
		x86_put(out, (unsigned)m->w << 7 | last);
	}
	x86_put(out, x86_f_opcode(f));
	if (m->rm || m->row->form == X86_F_R || m->row->form == X86_F_ZR)
		x86_put_modrm(out, m);
}

/* 62 [R X B R' 0 0 m m] [W vvvv 1 pp] [z L'L b V' aaa]; R X B R' vvvv V' are inverted. A vector in ModRM.rm takes X as
 * its bit 4; a vector index takes V' as its bit 4. */
static void x86_encode_evex(struct x86_code *out, const struct x86_match *m)
{
	uint32_t f = m->row->facts;
	struct x86_high h = x86_high_bits(m);
	unsigned reg = x86_reg_of(m->reg), v = x86_reg_of(m->vvvv), v_high = v >> 4 & 1;
	bool broadcast = x86_is_mem(m->rm) && m->rm->broadcast;

	if (!x86_is_mem(m->rm))
		h.x = x86_reg_of(m->rm) >> 4 & 1;
	if (m->vsib)
		v_high = m->rm->index >> 4 & 1;
	x86_put(out, 0x62);
	x86_put(out, (h.r ^ 1) << 7 | (h.x ^ 1) << 6 | (h.b ^ 1) << 5 | ((reg >> 4 & 1) ^ 1) << 4 | x86_f_map(f));
	x86_put(out, (unsigned)m->w << 7 | (~v & 15u) << 3 | 4 | x86_f_prefix(f));
	x86_put(out, (unsigned)m->zeroing << 7 | (unsigned)m->l << 5 | (unsigned)broadcast << 4 | (v_high ^ 1) << 3 |
	                     m->mask);
	x86_put(out, x86_f_opcode(f));
	x86_put_modrm(out, m);
}

void x86_form_encode(const struct x86_match *m, struct x86_code *out)
{
	out->n = 0;
	out->label_at = -1;
	if (m->evex)
		x86_encode_evex(out, m);
	else if (m->row->facts & X86_HAS_VEX)
		x86_encode_vex(out, m);
	else
		x86_encode_legacy(out, m);
	x86_put_tail(out, m);
}
