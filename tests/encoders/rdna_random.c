/* tests/encoders/rdna_random.c - picks random instructions: what the encoder and the assembler must agree on, yes or no
 * and to the bit. */
#include "tests/encoders/rdna_random.h"

#include "encoders/rdna_form.h"

static unsigned pick(uint64_t *seed, unsigned n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (unsigned)(*seed >> 20) % n;
}

static bool now_and_then(uint64_t *seed) { return pick(seed, 12) == 0; }

static struct rdna_operand vgpr(uint64_t *seed, unsigned size)
{
	static const uint8_t edge[] = { 0, 1, 127, 128, 240, 248, 252, 254, 255 };

	return rdna_vn(pick(seed, 3) ? pick(seed, 240) : edge[pick(seed, 9)], size);
}

static struct rdna_operand sgpr(uint64_t *seed, unsigned size)
{
	static const uint8_t one[] = { RDNA_VCC_LO,  RDNA_VCC_HI,  RDNA_NULL, RDNA_M0,
		                       RDNA_EXEC_LO, RDNA_EXEC_HI, RDNA_SCC };
	static const uint8_t two[] = { RDNA_VCC_LO, RDNA_NULL, RDNA_EXEC_LO };

	if (size <= 2 && pick(seed, 4) == 0)
		return rdna_sn(size == 1 ? one[pick(seed, 7)] : two[pick(seed, 3)], size);
	unsigned align = size == 1 || now_and_then(seed) ? 1 : size == 2 ? 2 : 4;
	return rdna_sn(pick(seed, 108) / align * align, size);
}

static struct rdna_operand constant(uint64_t *seed, char letter)
{
	static const uint32_t single[] = { 0x3f800000, 0xc0800000, 0x3e22f983, 0x12345678, 0x3f800001, 65, 1000 };
	static const uint16_t half[] = { 0x3c00, 0xc400, 0x3118, 0x1234, 65, 1000 };

	if (pick(seed, 2))
		return rdna_imm((int)pick(seed, 81) - 16);
	return rdna_imm(strchr("bfukpP", letter) ? half[letter == 'b' ? 3 + pick(seed, 3) : pick(seed, 6)]
	                                         : single[pick(seed, 7)]);
}

static struct rdna_operand random_operand(uint64_t *seed, const struct rdna_match *m, bool source, char letter)
{
	unsigned size = rdna_letter_size(m, letter), kind = pick(seed, 10);

	if (strstr(m->row->names, "v_cvt_pk_f32_")) /* versions of the assembler disagree about the upper ones */
		return rdna_vn(pick(seed, 128), size);
	if (strchr("1234h8", letter))
		return now_and_then(seed) ? sgpr(seed, size <= 2 ? size : 4) : vgpr(seed, size);
	if (letter == 'W' || letter == 'm')
		return kind < 7 ? vgpr(seed, size) : rdna_imm((int)pick(seed, 81) - 16);
	if (letter == 'K' || letter == 'k')
		return rdna_imm(pick(seed, 65536));
	if (letter == 'N')
		return rdna_s(RDNA_NULL);
	if (letter == 'B')
		return kind < 5 ? rdna_s(RDNA_M0) : rdna_imm((int)pick(seed, 20) - 2);
	if (letter == 'H' || letter == 'w')
		return rdna_imm(m->op == RDNA_S_CLAUSE ? 1 + pick(seed, 31) : pick(seed, 65536));
	if (letter == 'i')
		return rdna_imm((int)pick(seed, 65536) - 32768);
	if (letter == 'I')
		return rdna_imm(128 + pick(seed, 4));
	if (strchr("aAbfpP", letter))
		return kind > 7 && strstr(m->row->names, "bf16") ? rdna_imm((int)pick(seed, 81) - 16)
		       : kind < 5                                ? vgpr(seed, size)
		       : kind < 8                                ? sgpr(seed, size)
		                                                 : constant(seed, letter);
	if (source && strchr("sSul", letter) && kind < 3)
		return letter == 'l' ? rdna_imm(pick(seed, 65)) : constant(seed, letter == 'u' ? 'u' : 'a');
	return now_and_then(seed) ? vgpr(seed, size) : sgpr(seed, size);
}

static int32_t random_offset(uint64_t *seed, bool is_signed)
{
	static const int32_t edge[] = { 255,   256,   2047,    2048,    4095,    4096,
		                        65535, 65536, 1048575, 1048576, 8388607, 8388608 };
	int32_t v = pick(seed, 3) ? (int32_t)pick(seed, 300) : edge[pick(seed, 12)];

	return is_signed && pick(seed, 3) == 0 ? -v : v;
}

static void random_memory(uint64_t *seed, const struct rdna_match *m, struct rdna_ins *x, char letter)
{
	enum rdna_enc e = m->row->enc;
	bool scratch = e == RDNA_E_SCRATCH, two = m->row->facts & RDNA_F_TWO;

	x->offset = pick(seed, 2) ? random_offset(seed, e != RDNA_E_DS && letter != '#') : 0;
	if (e == RDNA_E_SMEM) {
		x->s[0] = sgpr(seed, letter == '#' ? 4 : 2);
		if (x->s[0].reg >= RDNA_NULL)
			x->s[0] = rdna_sn(12, letter == '#' ? 4 : 2);
		if (pick(seed, 3) == 0)
			x->saddr = sgpr(seed, 1);
		return;
	}
	if (e == RDNA_E_DS) {
		x->s[0] = vgpr(seed, 1);
		x->offset = two ? (int32_t)pick(seed, 258) : x->offset;
		x->offset1 = two ? (int32_t)pick(seed, 258) : 0;
		return;
	}
	bool with_s = e != RDNA_E_FLAT && pick(seed, 2);
	if (with_s)
		x->saddr = rdna_sn(pick(seed, 108) / 2 * 2 + (scratch ? pick(seed, 2) : 0), scratch ? 1 : 2);
	x->s[0] = vgpr(seed, scratch || with_s ? 1 : 2);
	if (scratch && pick(seed, 3) == 0)
		x->s[0] = (struct rdna_operand){ 0 };
}

static void random_cache(uint64_t *seed, const struct rdna_match *m, struct rdna_ins *x)
{
	if (pick(seed, 3) || m->row->enc == RDNA_E_DS || !m->n_src || (m->row->enc == RDNA_E_SMEM && m->n_src > 1))
		return;
	bool atomic = m->row->sig[0] == '?', smem = m->row->enc == RDNA_E_SMEM;
	if (m->gen != RDNA_GFX12)
		x->cache = (uint8_t)(pick(seed, 8) & (atomic ? 6 : 7));
	else
		x->scope = (uint8_t)pick(seed, 4),
		x->th = (uint8_t)(atomic ? 2 * pick(seed, 2) : pick(seed, smem ? 4 : 7));
	if (x->th == RDNA_TH_LU)
		x->scope = RDNA_SCOPE_SYS;
}

static void random_modifiers(uint64_t *seed, const struct rdna_match *m, struct rdna_ins *x)
{
	for (unsigned i = 0; i < m->n_src; i++) {
		unsigned allowed =
			(m->row->facts >> i & 1 ? RDNA_NEG : 0) | (m->row->facts >> (3 + i) & 1 ? RDNA_ABS : 0) |
			(m->row->facts >> (6 + i) & 1 ? RDNA_HIGH | (m->row->enc == RDNA_E_VOP3P ? RDNA_FLIP : 0) : 0);
		if (pick(seed, 4) == 0 && x->s[i].kind == RDNA_REG)
			x->s[i].mods = (uint8_t)(pick(seed, 16) & allowed);
	}
	x->clamp = (m->row->facts & RDNA_F_CLAMP) && pick(seed, 6) == 0;
	x->omod = (m->row->facts & RDNA_F_OMOD) && pick(seed, 6) == 0 ? (uint8_t)pick(seed, 4) : 0;
	if (!(m->row->facts & RDNA_F_DPP) || pick(seed, 5) || x->s[0].reg < RDNA_V0)
		return;
	if (pick(seed, 2)) {
		x->dpp = (struct rdna_dpp){
			.kind = RDNA_DPP8, .lanes = pick(seed, 1 << 24), .fetch_inactive = pick(seed, 2)
		};
		return;
	}
	x->dpp = rdna_dpp16(pick(seed, 2) ? pick(seed, 256) : RDNA_ROW_SHL(1 + pick(seed, 15)) + 16 * pick(seed, 3));
	x->dpp.row_mask = (uint8_t)pick(seed, 16);
	x->dpp.bank_mask = (uint8_t)pick(seed, 16);
	x->dpp.bound_zero = pick(seed, 2);
	x->dpp.fetch_inactive = pick(seed, 2);
}

static void random_instruction(uint64_t *seed, struct rdna_case *c)
{
	enum rdna_op op;
	struct rdna_match m;

	do
		op = (enum rdna_op)pick(seed, RDNA_OP_COUNT);
	while (!rdna_has(op, c->gen) || strchr(rdna_rows[op].sig, 'L'));
	m = (struct rdna_match){ .row = &rdna_rows[op], .gen = c->gen, .op = op };
	rdna_letters(&m);
	c->x.op = op;
	for (unsigned i = 0; i < m.n_dst; i++)
		c->x.d[i] = random_operand(seed, &m, false, m.dst[i]);
	if (m.row->sig[0] == '?' && pick(seed, 2))
		c->x.d[0] = (struct rdna_operand){ 0 };
	for (unsigned i = 0; i < m.n_src; i++) {
		char l = m.src[i];
		if (l == '@' || l == '#')
			random_memory(seed, &m, &c->x, l);
		else if (l == 'm' && m.row->enc == RDNA_E_SMEM)
			c->x.s[i] = rdna_imm(pick(seed, 32));
		else
			c->x.s[i] = random_operand(seed, &m, true, l);
		if (l == 'c' && pick(seed, 2))
			c->x.s[i] = rdna_s(RDNA_VCC_LO);
	}
	if (rdna_is_vector(m.row->enc))
		random_modifiers(seed, &m, &c->x);
	else if (m.row->enc >= RDNA_E_SMEM)
		random_cache(seed, &m, &c->x);
}

static struct rdna_ins random_half(uint64_t *seed, enum rdna_gen gen, bool second)
{
	enum rdna_op op;
	bool only_second;
	struct rdna_ins x;

	do
		op = (enum rdna_op)pick(seed, RDNA_OP_COUNT);
	while (rdna_dual_opcode(op, gen, &only_second) < 0 || (only_second && !second));
	struct rdna_match m = { .row = &rdna_rows[op], .gen = gen, .op = op };
	rdna_letters(&m);
	x = (struct rdna_ins){ .op = op, .d = { vgpr(seed, 1) } };
	for (unsigned i = 0; i < m.n_src; i++)
		x.s[i] = m.src[i] == 'c'        ? rdna_s(RDNA_VCC_LO)
		         : i && m.src[i] != 'K' ? vgpr(seed, 1)
		         : m.src[i] == 'K'      ? rdna_imm(0x12345678)
		         : m.src[i] == 'P'      ? vgpr(seed, 1)
		                                : random_operand(seed, &m, true, m.src[i]);
	return x;
}

void rdna_random_case(uint64_t *seed, enum rdna_gen gen, struct rdna_case *c)
{
	memset(c, 0, sizeof *c);
	c->gen = gen;
	c->dual = gen != RDNA_GFX10_3 && pick(seed, 8) == 0;
	if (!c->dual) {
		random_instruction(seed, c);
		return;
	}
	c->x = random_half(seed, gen, false);
	c->y = random_half(seed, gen, true);
}
