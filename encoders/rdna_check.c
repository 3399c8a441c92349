/* encoders/rdna_check.c - does an instruction of a generation take these modifiers, and these operands together?
 *
 * Owns: every rule about whole instructions and its sentence; operands one by one are rdna_operand.c's. Never lays out
 * bits. The rule: whatever cannot be encoded, or what the hardware forbids, is refused here; nothing is silently
 * truncated.
 */
#include "encoders/rdna_form.h"

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
		seen[n++] = RDNA_VCC_LO + 1 + 2 * 512; /* which a pair of 64 bits may be, too */
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
