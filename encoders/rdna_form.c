/* encoders/rdna_form.c - one function per RDNA encoding: a checked instruction to words.
 *
 * Owns: where every field lies in every generation. Never judges: what arrives here has passed rdna_check.
 */
#include "encoders/rdna_form.h"

/* Appends the literal. */
static unsigned rdna_tail(const struct rdna_match *m, uint32_t out[4], unsigned n)
{
	if (m->has_literal || m->distance)
		out[n++] = m->distance ? 0 : m->literal;
	return n;
}

/* The number of "no register" in a scalar field. */
static unsigned rdna_null(const struct rdna_match *m) { return m->gen == RDNA_GFX10_3 ? 125 : 124; }

/* --- scalar */

static unsigned rdna_sop1(const struct rdna_match *m, uint32_t out[4])
{
	out[0] = 0x17du << 23 | (uint32_t)m->d[0] << 16 | m->opcode << 8 | (m->n_src ? m->s[0] : 0u);
	return rdna_tail(m, out, 1);
}

static unsigned rdna_sop2(const struct rdna_match *m, uint32_t out[4])
{
	unsigned second = m->src[1] == 'K' ? m->s[2] : m->s[1];

	out[0] = 2u << 30 | m->opcode << 23 | (uint32_t)m->d[0] << 16 | second << 8 | m->s[0];
	return rdna_tail(m, out, 1);
}

static unsigned rdna_sopc(const struct rdna_match *m, uint32_t out[4])
{
	out[0] = 0x17eu << 23 | m->opcode << 16 | (uint32_t)m->s[1] << 8 | m->s[0];
	return rdna_tail(m, out, 1);
}

/* One register, which may be a source, and one immediate; the literal of s_setreg_imm32 behind them. */
static unsigned rdna_sopk(const struct rdna_match *m, uint32_t out[4])
{
	unsigned reg = m->n_dst ? m->d[0] : 0, imm = 0;

	for (unsigned i = 0; i < m->n_src; i++) {
		if (m->src[i] == 'c' || m->src[i] == 'N')
			reg = m->s[i];
		else if (m->src[i] != 'K')
			imm = m->s[i];
	}
	out[0] = 0xbu << 28 | m->opcode << 23 | reg << 16 | imm;
	return rdna_tail(m, out, 1);
}

static unsigned rdna_sopp(const struct rdna_match *m, uint32_t out[4])
{
	out[0] = 0x17fu << 23 | m->opcode << 16 | (m->n_src ? m->s[0] : 0u);
	return 1;
}

static unsigned rdna_smem(const struct rdna_match *m, uint32_t out[4])
{
	const struct rdna_ins *ins = m->ins;
	bool address = m->n_src > 0;
	unsigned data = m->n_dst ? m->d[0] : m->n_src > 1 ? m->s[1] : 0;
	unsigned soffset = ins->saddr.kind ? m->saddr : address ? rdna_null(m) : 0;
	unsigned glc = ins->cache & RDNA_GLC ? 1 : 0, dlc = ins->cache & RDNA_DLC ? 1 : 0;

	out[0] = 0x3du << 26 | data << 6 | (address ? m->s[0] / 2u : 0u);
	if (m->gen == RDNA_GFX12)
		out[0] |= m->opcode << 13 | (uint32_t)ins->scope << 21 | (uint32_t)ins->th << 23;
	else if (m->gen == RDNA_GFX10_3)
		out[0] |= m->opcode << 18 | glc << 16 | dlc << 14;
	else
		out[0] |= m->opcode << 18 | glc << 14 | dlc << 13;
	out[1] = soffset << 25 | ((uint32_t)ins->offset & (m->gen == RDNA_GFX12 ? 0xffffff : 0x1fffff));
	return 2;
}

/* --- vector */

/* The word behind a DPP instruction, and in *src what stands in source 0's field instead. The short encodings have neg
 * and abs of both sources here, the long ones where they always are. */
static uint32_t rdna_dpp_word(const struct rdna_match *m, unsigned *src)
{
	const struct rdna_dpp *d = &m->ins->dpp;
	uint32_t v = m->s[0] & 0xffu;

	if (d->kind == RDNA_DPP8) {
		*src = d->fetch_inactive ? 234 : 233;
		return v | d->lanes << 8;
	}
	*src = 250;
	if (!m->long_form && m->row->enc <= RDNA_E_VOPC)
		v |= (m->neg & 1u) << 20 | (m->abs & 1u) << 21 | (m->neg >> 1 & 1u) << 22 | (m->abs >> 1 & 1u) << 23;
	v |= (uint32_t)d->ctrl << 8 | (uint32_t)d->fetch_inactive << 18 | (uint32_t)d->bound_zero << 19;
	return v | (uint32_t)d->bank_mask << 24 | (uint32_t)d->row_mask << 28;
}

static unsigned rdna_vector_tail(const struct rdna_match *m, uint32_t out[4], unsigned n, uint32_t dpp)
{
	if (m->ins->dpp.kind)
		out[n++] = dpp;
	return rdna_tail(m, out, n);
}

static unsigned rdna_vop_short(const struct rdna_match *m, uint32_t out[4])
{
	unsigned src0 = m->n_src ? m->s[0] : 0, d = m->n_dst ? m->d[0] & 0xff : 0;
	unsigned second = m->src[1] == 'K' || m->src[1] == 'k' ? m->s[2] : m->s[1];
	uint32_t dpp = 0;

	if (m->ins->dpp.kind)
		dpp = rdna_dpp_word(m, &src0);
	if (m->row->enc == RDNA_E_VOP1)
		out[0] = 0x3fu << 25 | d << 17 | m->opcode << 9 | src0;
	else if (m->row->enc == RDNA_E_VOP2)
		out[0] = m->opcode << 25 | d << 17 | (second & 0xff) << 9 | src0;
	else
		out[0] = 0x3eu << 25 | m->opcode << 17 | (second & 0xff) << 9 | src0;
	return rdna_vector_tail(m, out, 1, dpp);
}

static unsigned rdna_vop3(const struct rdna_match *m, uint32_t out[4])
{
	enum rdna_enc e = m->row->enc;
	unsigned opcode = m->opcode + (e == RDNA_E_VOP1 ? 0x180 : e == RDNA_E_VOP2 && m->opcode < 0x100 ? 0x100 : 0);
	unsigned s[3] = { 0 }, d = m->n_dst ? m->d[0] & 0xff : e == RDNA_E_VOPC ? RDNA_EXEC_LO : 0;
	uint32_t dpp = 0;

	for (unsigned i = 0; i < m->n_src; i++)
		s[i] = m->s[i];
	if (m->ins->dpp.kind)
		dpp = rdna_dpp_word(m, &s[0]);
	out[0] = 0x35u << 26 | opcode << 16 | (uint32_t)m->ins->clamp << 15 | d;
	out[0] |= m->n_dst > 1 ? (uint32_t)m->d[1] << 8 : (uint32_t)m->sel << 11 | (uint32_t)m->abs << 8;
	out[1] = s[0] | s[1] << 9 | s[2] << 18 | (uint32_t)m->ins->omod << 27 | (uint32_t)m->neg << 29;
	return rdna_vector_tail(m, out, 2, dpp);
}

static unsigned rdna_vop3p(const struct rdna_match *m, uint32_t out[4])
{
	unsigned s[3] = { 0 }, hi = (m->row->facts & RDNA_F_MIX ? 0u : 7u) ^ m->flip;
	uint32_t dpp = 0;

	for (unsigned i = 0; i < m->n_src; i++)
		s[i] = m->s[i];
	if (m->ins->dpp.kind)
		dpp = rdna_dpp_word(m, &s[0]);
	out[0] = 0xccu << 24 | m->opcode << 16 | (uint32_t)m->ins->clamp << 15 | (hi >> 2) << 14 |
	         (uint32_t)m->sel << 11 | (uint32_t)m->abs << 8 | (m->d[0] & 0xff);
	out[1] = s[0] | s[1] << 9 | s[2] << 18 | (hi & 3) << 27 | (uint32_t)m->neg << 29;
	return rdna_vector_tail(m, out, 2, dpp);
}

/* --- memory */

/* The n-th operand that is data, or 0. */
static unsigned rdna_data(const struct rdna_match *m, unsigned n)
{
	for (unsigned i = 0; i < m->n_src; i++)
		if (m->src[i] != '@' && n-- == 0)
			return m->s[i] & 0xff;
	return 0;
}

static unsigned rdna_ds(const struct rdna_match *m, uint32_t out[4])
{
	unsigned addr = m->n_src && m->src[0] == '@' ? m->s[0] & 0xff : 0, d = m->n_dst ? m->d[0] & 0xff : 0;

	out[0] = 0x36u << 26 | m->opcode << 18 | (uint32_t)m->ins->offset | (uint32_t)m->ins->offset1 << 8;
	out[1] = addr | rdna_data(m, 0) << 8 | rdna_data(m, 1) << 16 | d << 24;
	return 2;
}

static unsigned rdna_segment(const struct rdna_match *m)
{
	return m->row->enc == RDNA_E_FLAT ? 0 : m->row->enc == RDNA_E_SCRATCH ? 1 : 2;
}

static unsigned rdna_flat(const struct rdna_match *m, uint32_t out[4])
{
	const struct rdna_ins *ins = m->ins;
	bool gfx10 = m->gen == RDNA_GFX10_3, scratch = m->row->enc == RDNA_E_SCRATCH,
	     vaddr = ins->s[0].kind != RDNA_NONE;
	unsigned glc = (ins->cache & RDNA_GLC) || (m->row->sig[0] == '?' && m->n_dst),
		 slc = ins->cache & RDNA_SLC ? 1 : 0;
	unsigned dlc = ins->cache & RDNA_DLC ? 1 : 0, d = m->n_dst ? m->d[0] & 0xff : 0;
	unsigned saddr = ins->saddr.kind ? m->saddr : gfx10 && scratch && !vaddr ? 127 : rdna_null(m);

	if (gfx10)
		out[0] = 0x37u << 26 | m->opcode << 18 | slc << 17 | glc << 16 | rdna_segment(m) << 14 | dlc << 12 |
		         ((uint32_t)ins->offset & 0xfff);
	else
		out[0] = 0x37u << 26 | m->opcode << 18 | rdna_segment(m) << 16 | slc << 15 | glc << 14 | dlc << 13 |
		         ((uint32_t)ins->offset & 0x1fff);
	out[1] = (m->s[0] & 0xffu) | rdna_data(m, 0) << 8 | saddr << 16 | d << 24;
	if (!gfx10 && scratch && vaddr)
		out[1] |= 1u << 23;
	return 2;
}

/* gfx12: three words, and the invalidates, which have no operands, among them. */
static unsigned rdna_flat12(const struct rdna_match *m, uint32_t out[4])
{
	const struct rdna_ins *ins = m->ins;
	bool scratch = m->row->enc == RDNA_E_SCRATCH;
	unsigned th = ins->th | (m->row->sig[0] == '?' && m->n_dst), d = m->n_dst ? m->d[0] & 0xff : 0;
	unsigned saddr = ins->saddr.kind ? m->saddr : rdna_null(m);

	out[0] = (0xecu + rdna_segment(m)) << 24 | m->opcode << 14 | saddr;
	out[1] = d | (uint32_t)(scratch && ins->s[0].kind) << 17 | (uint32_t)ins->scope << 18 | th << 20 |
	         rdna_data(m, 0) << 23;
	out[2] = (m->s[0] & 0xffu) | (uint32_t)ins->offset << 8;
	return 3;
}

static unsigned rdna_mubuf(const struct rdna_match *m, uint32_t out[4])
{
	out[0] = 0x38u << 26 | m->opcode << 18;
	out[1] = 0;
	return 2;
}

unsigned rdna_encode(const struct rdna_match *m, uint32_t out[4])
{
	switch ((enum rdna_enc)m->row->enc) {
	case RDNA_E_SOP1: return rdna_sop1(m, out);
	case RDNA_E_SOP2: return rdna_sop2(m, out);
	case RDNA_E_SOPC: return rdna_sopc(m, out);
	case RDNA_E_SOPK: return rdna_sopk(m, out);
	case RDNA_E_SOPP: return rdna_sopp(m, out);
	case RDNA_E_SMEM: return rdna_smem(m, out);
	case RDNA_E_VOP1:
	case RDNA_E_VOP2:
	case RDNA_E_VOPC: return m->long_form ? rdna_vop3(m, out) : rdna_vop_short(m, out);
	case RDNA_E_VOP3: return rdna_vop3(m, out);
	case RDNA_E_VOP3P: return rdna_vop3p(m, out);
	case RDNA_E_DS: return rdna_ds(m, out);
	case RDNA_E_MUBUF: return rdna_mubuf(m, out);
	default: return m->gen == RDNA_GFX12 ? rdna_flat12(m, out) : rdna_flat(m, out);
	}
}

/* --- dual instructions */

unsigned rdna_encode_dual(const struct rdna_half *x, const struct rdna_half *y, uint32_t out[4])
{
	out[0] = 0x32u << 26 | (uint32_t)x->opcode << 22 | (uint32_t)y->opcode << 17 | (uint32_t)x->second << 9 |
	         x->first;
	out[1] = (x->dst & 0xffu) << 24 | (uint32_t)(y->dst & 0xff) / 2 << 17 | (uint32_t)y->second << 9 | y->first;
	if (!x->has_literal && !y->has_literal)
		return 2;
	out[2] = x->has_literal ? x->literal : y->literal;
	return 3;
}
