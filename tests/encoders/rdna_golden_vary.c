/* tests/encoders/rdna_golden_vary.c - the operands, addresses and modifiers with which the goldens try an instruction.
 */
#include "tests/encoders/rdna_golden.h"

#include "encoders/rdna_form.h"
#include "tests/encoders/rdna_golden_vary.h"

void rdna_tell(struct each *e) { e->f(e->ctx, &e->c); }

/* --- operands */

/* Values of one letter: fills at most 40, returns how many. */
static unsigned vgprs(struct rdna_operand *o, unsigned size, unsigned n)
{
	static const uint8_t first[] = { 0, 1, 105, 127, 128, 254 };

	for (unsigned i = 0; i < sizeof first; i++)
		if (first[i] + size <= 256)
			o[n++] = rdna_vn(first[i], size);
	o[n++] = rdna_vn(256 - size, size);
	return n;
}

static unsigned sgprs(struct rdna_operand *o, unsigned size, bool source, bool special, unsigned n)
{
	static const uint8_t one[] = { 0, 1, 100, 105, RDNA_VCC_LO, RDNA_VCC_HI, RDNA_TTMP0 + 9 };
	static const uint8_t pair[] = { 0, 2, 104, RDNA_VCC_LO, RDNA_TTMP0 + 4 };
	static const uint8_t more[] = { 0, 4, 64, 88 };

	for (unsigned i = 0; size == 1 && i < sizeof one; i++)
		o[n++] = rdna_s(one[i]);
	for (unsigned i = 0; size == 2 && i < sizeof pair; i++)
		o[n++] = rdna_sn(pair[i], 2);
	for (unsigned i = 0; size > 2 && i < sizeof more; i++)
		o[n++] = rdna_sn(more[i], size);
	if (size <= 2)
		o[n++] = rdna_sn(RDNA_NULL, size);
	if (special && size <= 2)
		o[n++] = rdna_sn(RDNA_EXEC_LO, size);
	if (special && size == 1) {
		o[n++] = rdna_s(RDNA_EXEC_HI);
		o[n++] = rdna_s(RDNA_M0);
		if (source)
			o[n++] = rdna_s(RDNA_SCC);
	}
	return n;
}

static unsigned constants(struct rdna_operand *o, char letter, unsigned n)
{
	static const int64_t whole[] = { 0, 1, 64, -1, -16 };
	static const uint32_t single[] = { 0x3f000000, 0xbf800000, 0x40800000, 0xc0800000, 0x3e22f983,
		                           65,         0xffffffef, 0x12345678, 0x3f800001, 0x80000000 };
	static const uint16_t half[] = { 0x3800, 0xbc00, 0x4400, 0xc400, 0x3118, 65, 0xffef, 0x1234, 0x3c01 };
	bool is_half = strchr("bfu", letter), is_packed = letter == 'p' || letter == 'P',
	     wide = letter == 'A' || letter == 'S';

	for (unsigned i = 0; i < 5; i++)
		o[n++] = rdna_imm(whole[i]);
	if (strchr("mlWB", letter))
		return n;
	for (unsigned i = 0; !is_half && !is_packed && i < 10; i++)
		if (!wide || single[i] < 0x80000000)
			o[n++] = rdna_imm(single[i]);
	for (unsigned i = is_half && letter == 'b' ? 5 : 0; (is_half || letter == 'P') && i < 9; i++)
		if (letter != 'P' || half[i] != 0xffef)
			o[n++] = rdna_imm(half[i]);
	if (is_packed) {
		o[n++] = rdna_imm(0x12345678);
		o[n++] = rdna_imm(65);
	}
	return n;
}

static unsigned immediates(struct rdna_operand *o, const struct rdna_match *m, char letter)
{
	static const int32_t wide[] = { 0, 1, 0x1234, 0x7fff, 0xffff }, is_signed[] = { 0, 1, -1, -32768, 32767 };
	static const int32_t small[] = { 0, 1, 31 }, clause[] = { 1, 2, 31 }, barrier[] = { -1, 0, 1 };
	static const int32_t message[] = { 128, 129, 131 }, hwreg[] = { 0xf801, 0x0001, 0x1882 };
	const int32_t *v = letter == 'i' ? is_signed : wide;
	unsigned n = 5;

	if (letter == 'm')
		v = small, n = 3;
	else if (letter == 'I')
		v = message, n = 3;
	else if (letter == 'H')
		v = hwreg, n = 3;
	else if (m->op == RDNA_S_CLAUSE)
		v = clause, n = 3;
	else if (m->op == RDNA_S_BARRIER_WAIT)
		v = barrier, n = 3;
	for (unsigned i = 0; i < n; i++)
		o[i] = rdna_imm(v[i]);
	return n;
}

unsigned rdna_candidates(const struct each *e, bool source, char letter, struct rdna_operand o[40])
{
	unsigned size = rdna_letter_size(&e->m, letter), n = 0;
	bool smem = e->m.row->enc == RDNA_E_SMEM;

	if (strchr("1234h8", letter))
		return vgprs(o, size, 0);
	if (letter == 'W')
		return constants(o, letter, vgprs(o, size, 0));
	if (letter == 'B') {
		o[n++] = rdna_s(RDNA_M0);
		return constants(o, letter, n);
	}
	if (letter == 'N') {
		o[n++] = rdna_s(RDNA_NULL);
		return n;
	}
	if (letter == 'K' || letter == 'k') {
		o[n++] = rdna_imm(letter == 'k' ? 0x1234 : 0x12345678);
		o[n++] = rdna_imm(letter == 'k' ? 0x3c00 : 0x3f800000);
		o[n++] = rdna_imm(1);
		return n;
	}
	if (strchr("iwHI", letter) || (letter == 'm' && smem))
		return immediates(o, &e->m, letter);
	if (strchr("aAbfpPm", letter))
		return constants(o, letter, sgprs(o, size, true, true, vgprs(o, size, 0)));
	n = sgprs(o, size, source && !strchr("clr", letter), !smem, 0);
	if (source && strchr("sSul", letter))
		n = constants(o, letter, n);
	return n;
}

/* The operand that stands in place i while others vary. */
static struct rdna_operand usual(const struct each *e, bool source, unsigned i, char letter)
{
	unsigned size = rdna_letter_size(&e->m, letter), k = (source ? 2 : 0) + i;

	if (letter == 'h' || strchr("aAbfpPmW1248", letter) || (letter == '3'))
		return letter == 'm' && e->m.row->enc == RDNA_E_SMEM ? rdna_imm(3) : rdna_vn(16 * k + 2, size);
	if (letter == 'c')
		return e->m.row->enc == RDNA_E_SOPK ? rdna_s(4) : rdna_s(20 + k);
	if (letter == 'l')
		return rdna_s(30 + k);
	if (strchr("sSrqoxtu", letter))
		return rdna_sn(16 * k + 4, size);
	if (letter == 'L')
		return rdna_to(0);
	struct rdna_operand o[40];
	rdna_candidates(e, source, letter, o);
	return o[0];
}

/* --- addresses */

void rdna_base(struct each *e)
{
	struct rdna_case *c = &e->c;
	enum rdna_enc enc = e->m.row->enc;

	memset(&c->x, 0, sizeof c->x);
	c->x.op = e->m.op;
	c->branches = false;
	c->branch = 16;
	for (unsigned i = 0; i < e->m.n_dst; i++)
		c->x.d[i] = usual(e, false, i, e->m.dst[i]);
	for (unsigned i = 0; i < e->m.n_src; i++) {
		char l = e->m.src[i];
		if (l == '@' || l == '#')
			c->x.s[i] = enc == RDNA_E_SMEM                          ? rdna_sn(4, l == '#' ? 4 : 2)
			            : enc == RDNA_E_DS || enc == RDNA_E_SCRATCH ? rdna_v(9)
			                                                        : rdna_vn(9, 2);
		else
			c->x.s[i] = usual(e, true, i, l);
		c->branches |= l == 'L';
	}
	if (e->m.row->sig[0] == '?')
		c->x.d[0] = (struct rdna_operand){ 0 };
}

static void vary_offsets(struct each *e, const int32_t *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!e->full && i != e->counter % n)
			continue;
		e->c.x.offset = v[i];
		rdna_tell(e);
	}
	e->c.x.offset = 0;
	e->counter++;
}

static void vary_cache(struct each *e)
{
	bool g12 = e->c.gen == RDNA_GFX12, smem = e->m.row->enc == RDNA_E_SMEM, atomic = e->m.row->sig[0] == '?';
	bool bare = !e->m.n_src, prefetch = smem && e->m.n_src != 1;
	unsigned low = atomic ? 6 : smem ? 5 : 7;

	for (unsigned i = 1; i < 8 && !g12 && !bare && !prefetch; i++)
		if (!(i & ~low) && (e->full || i == 1 + e->counter % 7)) {
			e->c.x.cache = (uint8_t)i;
			rdna_tell(e);
		}
	e->c.x.cache = 0;
	for (unsigned i = 1; i < 4 && g12 && !prefetch; i++) {
		e->c.x.scope = (uint8_t)i;
		rdna_tell(e);
	}
	e->c.x.scope = 0;
	for (unsigned i = 1; i < 7 && g12 && !bare && !prefetch; i++) {
		e->c.x.scope = i == RDNA_TH_LU ? RDNA_SCOPE_SYS
		                               : RDNA_SCOPE_CU; /* of 3, bypass is what all versions spell alike */
		if ((atomic && (i & 1 || i == 4)) || (smem && i > 3) || (!e->full && i != 1 + e->counter % 6))
			continue;
		e->c.x.th = (uint8_t)i;
		rdna_tell(e);
	}
	e->c.x.scope = e->c.x.th = 0;
	e->counter++;
}

static void vary_flat(struct each *e)
{
	static const int32_t offsets[3][2][4] = { { { -2048, -1, 1, 2047 }, { 1, 100, 2046, 2047 } },
		                                  { { -4096, -1, 1, 4095 }, { 1, 100, 4094, 4095 } },
		                                  { { -8388608, -1, 1, 8388607 }, { -8388608, -1, 4095, 8388607 } } };
	enum rdna_enc enc = e->m.row->enc;
	unsigned g = e->c.gen == RDNA_GFX10_3 ? 0 : e->c.gen == RDNA_GFX12 ? 2 : 1, n;
	struct rdna_operand o[40], v = e->c.x.s[0];

	vary_offsets(e, offsets[g][enc == RDNA_E_FLAT], 4);
	vary_cache(e);
	n = vgprs(o, enc == RDNA_E_SCRATCH ? 1 : 2, 0);
	for (unsigned i = 0; i < n; i++)
		if (e->full || i == e->counter % n) {
			e->c.x.s[0] = o[i];
			rdna_tell(e);
		}
	e->c.x.s[0] = v;
	if (enc == RDNA_E_FLAT)
		return;
	n = sgprs(o, enc == RDNA_E_SCRATCH ? 1 : 2, false, false, 0) - 1; /* without null, which says off */
	for (unsigned i = 0; i < n; i++) {
		if (!e->full && i != e->counter % n)
			continue;
		e->c.x.saddr = o[i];
		e->c.x.s[0] = enc == RDNA_E_SCRATCH && (e->c.gen == RDNA_GFX10_3 || i % 2)
		                      ? (struct rdna_operand){ 0 }
		                      : rdna_v(9 + i);
		vary_offsets(e, offsets[g][0], 4);
	}
	e->c.x.saddr = (struct rdna_operand){ 0 };
	if (enc == RDNA_E_SCRATCH) {
		e->c.x.s[0] = (struct rdna_operand){ 0 };
		rdna_tell(e);
	}
	e->c.x.s[0] = v;
}

void rdna_vary_memory(struct each *e)
{
	static const int32_t ds[] = { 1, 255, 256, 65535 }, two[] = { 1, 2, 254, 255 };
	static const int32_t scalar[2][4] = { { 1, 4, -1048576, 1048575 }, { 1, 4, -8388608, 8388607 } };
	static const int32_t buffer[2][4] = { { 1, 4, 100, 1048575 }, { 1, 4, 100, 8388607 } };
	enum rdna_enc enc = e->m.row->enc;
	bool g12 = e->c.gen == RDNA_GFX12, address = e->m.n_src && (e->m.src[0] == '@' || e->m.src[0] == '#');

	if (rdna_is_flat(enc)) {
		if (address)
			vary_flat(e);
		else
			vary_cache(e);
	} else if (enc == RDNA_E_DS && (address || e->m.n_dst || e->m.n_src)) {
		if (e->m.row->facts & RDNA_F_TWO)
			e->c.x.offset1 = 7;
		vary_offsets(e, e->m.row->facts & RDNA_F_TWO ? two : ds, 4);
		e->c.x.offset1 = 0;
	} else if (enc == RDNA_E_SMEM && address) {
		struct rdna_operand o[40];
		const int32_t(*v)[4] = e->m.src[0] == '#' ? buffer : scalar;
		vary_offsets(e, v[g12], 4);
		vary_cache(e);
		unsigned n = sgprs(o, 1, false, false, 0);
		o[n++] = rdna_s(RDNA_M0);
		for (unsigned i = 0; i < n; i++) {
			e->c.x.saddr = o[i];
			if (o[i].reg != RDNA_NULL)
				vary_offsets(e, buffer[g12], 4);
		}
		e->c.x.saddr = (struct rdna_operand){ 0 };
		for (unsigned i = 0; i < 3; i++) {
			static const uint8_t at[] = { 0, 100, RDNA_VCC_LO };
			if (at[i] == RDNA_VCC_LO && e->m.src[0] == '#')
				continue;
			e->c.x.s[0] = rdna_sn(at[i], e->m.src[0] == '#' ? 4 : 2);
			rdna_tell(e);
		}
	}
}

/* --- vector modifiers */

static const uint16_t dpp_controls[] = {
	RDNA_QUAD_PERM(3, 2, 1, 0),
	0,
	RDNA_ROW_SHL(1),
	RDNA_ROW_SHR(15),
	RDNA_ROW_ROR(8),
	RDNA_ROW_MIRROR,
	RDNA_ROW_HALF_MIRROR,
	RDNA_ROW_SHARE(0),
	RDNA_ROW_SHARE(15),
	RDNA_ROW_XMASK(1),
	RDNA_ROW_XMASK(15)
};

static void vary_lanes(struct each *e)
{
	struct rdna_ins *x = &e->c.x;

	for (unsigned i = 0; i < sizeof dpp_controls / sizeof dpp_controls[0]; i++) {
		if (!e->full && i != e->counter % 11)
			continue;
		x->dpp = rdna_dpp16(dpp_controls[i]);
		x->dpp.row_mask = (uint8_t)(i % 3 ? 15 : 5);
		x->dpp.bank_mask = (uint8_t)(i % 4 ? 15 : 3);
		x->dpp.bound_zero = i % 5 == 2;
		x->dpp.fetch_inactive = i % 7 == 1;
		rdna_tell(e);
	}
	for (unsigned i = 0; i < 2; i++) {
		x->dpp = (struct rdna_dpp){
			.kind = RDNA_DPP8, .lanes = i ? 0xfac688 : 07654321 << 3, .fetch_inactive = i
		};
		x->dpp.lanes &= 0xffffff;
		rdna_tell(e);
	}
}

static void vary_dpp(struct each *e)
{
	struct rdna_ins *x = &e->c.x;
	enum rdna_enc enc = e->m.row->enc;
	bool three = enc == RDNA_E_VOP3 || enc == RDNA_E_VOP3P;

	if (!(e->m.row->facts & RDNA_F_DPP) || (e->c.gen == RDNA_GFX10_3 && (three || enc == RDNA_E_VOPC)))
		return;
	for (unsigned wide = 0; wide < 2; wide++) {
		rdna_base(e);
		if (wide && (three || e->c.gen == RDNA_GFX10_3 || (e->m.row->facts & RDNA_F_SHORT)))
			break;
		x->e64 = wide;
		for (unsigned i = 0; !wide && !three && i < 2; i++) {
			if (e->m.dst[i] == 'c')
				x->d[i] = rdna_s(RDNA_VCC_LO);
			if (e->m.src[2] == 'c')
				x->s[2] = rdna_s(RDNA_VCC_LO);
		}
		vary_lanes(e);
		x->dpp = rdna_dpp16(RDNA_ROW_XMASK(7));
		for (unsigned i = 0; i < e->m.n_src; i++) {
			struct rdna_operand o = x->s[i];
			for (unsigned mods = 1; mods < 4; mods++) {
				x->s[i] = rdna_mod(o, (mods & (e->m.row->facts >> i & 1)) |
				                              (mods & (e->m.row->facts >> (2 + i) & 2)));
				if (x->s[i].mods == mods && (e->full || mods == 1 + (e->counter + i) % 3))
					rdna_tell(e);
			}
			x->s[i] = o;
		}
		e->counter++;
	}
}

void rdna_vary_modifiers(struct each *e)
{
	struct rdna_ins *x = &e->c.x;
	uint32_t f = e->m.row->facts;

	for (unsigned i = 0; i < e->m.n_src; i++) {
		static const uint8_t mods[] = {
			RDNA_NEG, RDNA_ABS, RDNA_HIGH, RDNA_NEG | RDNA_ABS, RDNA_FLIP, RDNA_FLIP | RDNA_HIGH
		};
		for (unsigned k = 0; k < sizeof mods; k++) {
			bool ok = (!(mods[k] & RDNA_NEG) || f >> i & 1) &&
			          (!(mods[k] & RDNA_ABS) || f >> (3 + i) & 1) &&
			          (!(mods[k] & (RDNA_HIGH | RDNA_FLIP)) || f >> (6 + i) & 1) &&
			          (!(mods[k] & RDNA_FLIP) || e->m.row->enc == RDNA_E_VOP3P);
			if (!ok || (!e->full && k == 3))
				continue;
			rdna_base(e);
			x->s[i] = rdna_mod(x->s[i], mods[k]);
			rdna_tell(e);
		}
	}
	rdna_base(e);
	if (f >> 9 & 1) {
		x->d[0] = rdna_high(x->d[0]);
		rdna_tell(e);
		rdna_base(e);
	}
	x->clamp = true;
	if (f & RDNA_F_CLAMP)
		rdna_tell(e);
	x->clamp = false;
	for (unsigned i = 1; i < 4 && (f & RDNA_F_OMOD); i++) {
		x->omod = (uint8_t)i;
		if (e->full || i == 1 + e->counter % 3)
			rdna_tell(e);
	}
	x->omod = 0;
	if (e->m.row->enc <= RDNA_E_VOPC && !(f & RDNA_F_SHORT) &&
	    (e->m.opcode < 0x100 || e->m.row->enc != RDNA_E_VOP2)) {
		x->e64 = true;
		rdna_tell(e);
	}
	vary_dpp(e);
}
